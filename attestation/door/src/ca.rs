//! The certification authority of a server that keeps its own: certificates for the server and for
//! its clients, and the list of those that are revoked.

use std::time::{Duration, SystemTime};

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod,
    KeyUsagePurpose, RevokedCertParams, SanType, SerialNumber,
};
pub use rcgen::{Certificate, CertificateRevocationList, Error, KeyPair};

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Days that a CA is good for.
const CA_DAYS: u32 = 3650;
const CA_USAGES: &[KeyUsagePurpose] = &[KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];

/// To whom a certificate is given.
#[derive(Clone, Copy, Debug)]
pub enum Holder<'a> {
    /// A server that clients reach under these host names and addresses.
    Server {
        /// Common name.
        name: &'a str,
        /// Names and addresses.
        hosts: &'a [String],
    },
    /// A client.
    Client {
        /// Common name.
        name: &'a str,
        /// Its identity as a URI.
        uri: Option<&'a str>,
    },
}

/// Start of validity, in seconds since 1970, and days from there. It begins with its day, so that
/// clocks may differ.
#[derive(Clone, Copy, Debug)]
pub struct Validity {
    /// Start.
    pub from: i64,
    /// Length.
    pub days: u32,
}

impl Validity {
    fn start(self) -> SystemTime {
        at(self.from - self.from.rem_euclid(DAY))
    }

    fn end(self) -> SystemTime {
        self.start() + Duration::from_secs(u64::from(self.days) * DAY.unsigned_abs())
    }
}

fn at(seconds: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// A CA: its name and its key.
pub struct Ca(Issuer<'static, KeyPair>);

impl Ca {
    /// A new CA with this key, and its certificate.
    ///
    /// # Errors
    /// The name cannot stand in a certificate.
    pub fn new(name: &str, key: KeyPair, from: i64) -> Result<(Self, Certificate), Error> {
        let mut params = params(name, CA_USAGES, Validity { from, days: CA_DAYS });
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let certificate = params.self_signed(&key)?;
        Ok((Self(Issuer::new(params, key)), certificate))
    }

    /// The CA that has this name and this key.
    #[must_use]
    pub fn with_key(name: &str, key: KeyPair) -> Self {
        Self(Issuer::new(params(name, CA_USAGES, Validity { from: 0, days: CA_DAYS }), key))
    }

    /// A certificate for `key`.
    ///
    /// # Errors
    /// A name, address or URI cannot stand in a certificate.
    pub fn issue(&self, holder: Holder<'_>, key: &KeyPair, validity: Validity) -> Result<Certificate, Error> {
        let (name, purpose, names) = match holder {
            Holder::Server { name, hosts } => (name, ExtendedKeyUsagePurpose::ServerAuth, CertificateParams::new(hosts)?.subject_alt_names),
            Holder::Client { name, uri } => {
                let uri = uri.map(|uri| Ok::<_, Error>(SanType::URI(Ia5String::try_from(uri)?))).transpose()?;
                (name, ExtendedKeyUsagePurpose::ClientAuth, uri.into_iter().collect())
            }
        };
        let mut params = params(name, &[KeyUsagePurpose::DigitalSignature], validity);
        params.subject_alt_names = names;
        params.extended_key_usages = vec![purpose];
        params.use_authority_key_identifier_extension = true;
        let mut serial = [0; 16];
        getrandom::fill(&mut serial).map_err(|_| Error::RingUnspecified)?;
        serial[0] &= 0x7f;
        params.serial_number = Some(SerialNumber::from(serial.to_vec()));
        params.signed_by(key, &self.0)
    }

    /// The revocation list of these serial numbers and times.
    ///
    /// # Errors
    /// The key does not sign.
    pub fn revocations(
        &self,
        revoked: impl IntoIterator<Item = (Vec<u8>, i64)>,
        validity: Validity,
    ) -> Result<CertificateRevocationList, Error> {
        let params = CertificateRevocationListParams {
            this_update: validity.start().into(),
            next_update: validity.end().into(),
            // Only upwards, as the clock.
            crl_number: SerialNumber::from(validity.from.unsigned_abs()),
            issuing_distribution_point: None,
            revoked_certs: revoked
                .into_iter()
                .map(|(serial, time)| RevokedCertParams {
                    serial_number: SerialNumber::from(serial),
                    revocation_time: Validity { from: time, days: 0 }.start().into(),
                    reason_code: None,
                    invalidity_date: None,
                })
                .collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.0)
    }
}

fn params(name: &str, usages: &[KeyUsagePurpose], validity: Validity) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.key_usages = usages.to_vec();
    (params.not_before, params.not_after) = (validity.start().into(), validity.end().into());
    params
}
