//! The certification authority of a server with a local CA: certificates for the server and its
//! clients, and the list of revoked certificates.

use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, SystemTime};

use rcgen::string::Ia5String;
pub use rcgen::{Certificate, CertificateRevocationList, Error, KeyPair};
use rcgen::{
    CertificateParams, CertificateRevocationListParams, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyIdMethod, KeyUsagePurpose, PublicKeyData as _, RevokedCertParams, SanType,
    SerialNumber,
};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, DnsName};
use x509_cert::TbsCertificate;
use x509_cert::crl::CertificateList;
use x509_cert::der::oid::AssociatedOid as _;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::BasicConstraints;
use x509_cert::ext::pkix::crl::CrlNumber;

use crate::names::signed_with;

/// Seconds of a day.
const DAY: i64 = 86_400;
/// Validity of a CA in days.
const CA_DAYS: u32 = 3650;
const CA_USAGES: &[KeyUsagePurpose] = &[KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];

/// The holder of a certificate.
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

/// Time of issue, in seconds since 1970, and length of the validity. The validity starts on the day
/// before the time of issue, because the peers' clocks differ.
#[derive(Clone, Copy, Debug)]
pub struct Validity {
    /// Time of issue.
    pub from: i64,
    /// Days of validity from the time of issue.
    pub days: u32,
}

impl Validity {
    /// Midnight (UTC) at the start of the day of issue.
    fn day(self) -> i64 {
        self.from - self.from.rem_euclid(DAY)
    }

    fn start(self) -> SystemTime {
        at(self.day() - DAY)
    }

    fn end(self) -> SystemTime {
        at(self.day()) + Duration::from_secs(u64::from(self.days) * DAY.unsigned_abs())
    }
}

impl Validity {
    /// When a list ends that is issued now, in seconds since 1970.
    #[must_use]
    pub fn list_end(self) -> i64 {
        self.from + i64::from(self.days) * DAY
    }
}

fn read(der: &CertificateDer<'_>) -> Option<x509_cert::Certificate> {
    x509_cert::Certificate::from_der(der).ok()
}

fn is_ca(certificate: &x509_cert::Certificate) -> bool {
    let found = certificate.tbs_certificate().get_extension::<BasicConstraints>();
    found.is_ok_and(|found| found.is_some_and(|(_, constraints)| constraints.ca))
}

fn has_ended(certificate: &x509_cert::Certificate, now: i64) -> bool {
    let end = certificate.tbs_certificate().validity().not_after.to_unix_duration().as_secs();
    u64::try_from(now).is_ok_and(|now| now > end)
}

fn at(seconds: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// The host name or address in `text` in the form of certificates: an IPv6 address without its
/// brackets, a name that a client can request, or a wildcard of such names.
#[must_use]
pub fn host(text: &str) -> Option<String> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(address) = bare {
        return address.parse::<Ipv6Addr>().is_ok().then(|| address.to_owned());
    }
    let name = text.strip_prefix("*.").unwrap_or(text);
    (text.parse::<IpAddr>().is_ok() || DnsName::try_from(name).is_ok()).then(|| text.to_owned())
}

/// The name of a CA with the begin of its key's identifier: CAs of other keys have other names.
#[must_use]
pub fn name_with_key(name: &str, key: &KeyPair) -> String {
    let id = shef_proto::crypto::sha256(&key.subject_public_key_info());
    let id: String = id[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{name} {id}")
}

/// A CA: its name and its key.
pub struct Ca(Issuer<'static, KeyPair>);

impl Ca {
    /// A new CA with this key, and its certificate.
    ///
    /// # Errors
    /// The name cannot be in a certificate.
    pub fn new(name: &str, key: KeyPair, from: i64) -> Result<(Self, Certificate), Error> {
        let mut params = params(name, CA_USAGES, Validity { from, days: CA_DAYS });
        params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Constrained(0));
        let certificate = params.self_signed(&key)?;
        Ok((Self(Issuer::new(params, key)), certificate))
    }

    /// The CA with this name, or [the same with its key](name_with_key), and key, if a certificate in `certificates` (PEM) is one of this CA
    /// that has not ended at `now`. Its signatures would not verify under another certificate.
    ///
    /// # Errors
    /// There is no such certificate; the reason begins with a lower-case letter.
    pub fn of_pair(
        name: &str,
        key: KeyPair,
        certificates: &str,
        now: i64,
    ) -> Result<Self, &'static str> {
        let named = |name: &str| params(name, CA_USAGES, Validity { from: 0, days: CA_DAYS });
        let both = [named(name), named(&name_with_key(name, &key))];
        let certified = |params: &CertificateParams| {
            let own = params.self_signed(&key).ok().and_then(|own| read(own.der()));
            own.ok_or("it is not a key that signs certificates")
        };
        let own = [certified(&both[0])?, certified(&both[1])?];
        let mut reason =
            "it is not the key of ca.pem beside it, so no verifier accepts its signatures";
        for der in CertificateDer::pem_slice_iter(certificates.as_bytes()) {
            let Some(found) = der.ok().and_then(|der| read(&der)) else { continue };
            let same = |own: &x509_cert::Certificate,
                        of: fn(&TbsCertificate) -> Option<Vec<u8>>| {
                of(found.tbs_certificate()) == of(own.tbs_certificate())
            };
            if !same(&own[0], |tbs| tbs.subject_public_key_info().to_der().ok()) {
                continue;
            }
            let subject = own.iter().position(|own| same(own, |tbs| tbs.subject().to_der().ok()));
            reason = if subject.is_none() {
                "ca.pem beside it has the same key but another subject, so no verifier accepts its signatures"
            } else if !is_ca(&found) {
                "ca.pem beside it is not a CA's certificate (CA:TRUE), so no verifier accepts its signatures"
            } else if has_ended(&found, now) {
                "ca.pem beside it has ended, so no verifier accepts its signatures"
            } else {
                let params = both.into_iter().nth(subject.unwrap_or(0)).expect("two names");
                return Ok(Self(Issuer::new(params, key)));
            };
        }
        Err(reason)
    }

    /// Whether this CA's key signed a certificate or a revocation list in DER.
    #[must_use]
    pub fn signed(&self, der: &[u8], provider: &CryptoProvider) -> bool {
        signed_with(self.0.key().der_bytes(), der, provider)
    }

    /// A certificate for `key`.
    ///
    /// # Errors
    /// A name, address or URI cannot be in a certificate.
    pub fn issue(
        &self,
        holder: Holder<'_>,
        key: &KeyPair,
        validity: Validity,
    ) -> Result<Certificate, Error> {
        let (name, purpose, names) = match holder {
            Holder::Server { name, hosts } => (
                name,
                ExtendedKeyUsagePurpose::ServerAuth,
                CertificateParams::new(hosts)?.subject_alt_names,
            ),
            Holder::Client { name, uri } => {
                let uri = uri
                    .map(|uri| Ok::<_, Error>(SanType::URI(Ia5String::try_from(uri)?)))
                    .transpose()?;
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

    /// The revocation list with these serial numbers and times. It is valid for whole days from the
    /// time of issue, and numbered by that time.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn revocations(
        &self,
        revoked: impl IntoIterator<Item = (Vec<u8>, i64)>,
        validity: Validity,
    ) -> Result<CertificateRevocationList, Error> {
        self.revocations_above(revoked, validity, 0)
    }

    /// The same, with a number above `number` even if the clock was set back.
    ///
    /// # Errors
    /// The key cannot sign.
    pub fn revocations_above(
        &self,
        revoked: impl IntoIterator<Item = (Vec<u8>, i64)>,
        validity: Validity,
        number: u64,
    ) -> Result<CertificateRevocationList, Error> {
        let params = CertificateRevocationListParams {
            this_update: validity.start().into(),
            next_update: at(validity.list_end()).into(),
            crl_number: SerialNumber::from(
                validity.from.unsigned_abs().max(number.saturating_add(1)),
            ),
            issuing_distribution_point: None,
            revoked_certs: revoked
                .into_iter()
                .map(|(serial, time)| RevokedCertParams {
                    serial_number: SerialNumber::from(serial),
                    revocation_time: at(time).into(),
                    reason_code: None,
                    invalidity_date: None,
                })
                .collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.0)
    }
}

/// The content of a revocation list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Revocations {
    /// crlNumber; the highest number if it does not fit.
    pub number: u64,
    /// Serial numbers, with the times of the revocations in seconds since 1970.
    pub entries: Vec<(Vec<u8>, i64)>,
}

impl Revocations {
    /// Reads a list in DER. Its signature is not verified.
    ///
    /// # Errors
    /// Not a revocation list.
    pub fn read(der: &[u8]) -> Result<Self, x509_cert::der::Error> {
        let list: CertificateList = CertificateList::from_der(der)?;
        let mut number = 0;
        for extension in list.tbs_cert_list.crl_extensions.iter().flatten() {
            if extension.extn_id == CrlNumber::OID {
                let found = CrlNumber::from_der(extension.extn_value.as_bytes())?;
                let value = |number: u64, byte: &u8| {
                    number.checked_mul(256).map(|number| number | u64::from(*byte))
                };
                number = found.0.as_bytes().iter().try_fold(0, value).unwrap_or(u64::MAX);
            }
        }
        let entries = list.tbs_cert_list.revoked_certificates.into_iter().flatten();
        Ok(Self {
            number,
            entries: entries
                .map(|entry| {
                    let time = entry.revocation_date.to_unix_duration().as_secs() as i64;
                    (entry.serial_number.as_bytes().to_vec(), time)
                })
                .collect(),
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_that_clients_can_ask_for() {
        for (text, named) in [
            ("card.example", "card.example"),
            ("*.example", "*.example"),
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "::1"),
            ("[::1]", "::1"),
            ("[2001:db8::7]", "2001:db8::7"),
        ] {
            assert_eq!(host(text).as_deref(), Some(named), "{text:?}");
        }
        for text in [
            "",
            "card.example:7433",
            "http://card.example",
            "card example",
            "10.0.0.300",
            "[10.0.0.3]",
            "[card]",
            "[::1",
            "[::1]:80",
            "*",
        ] {
            assert_eq!(host(text), None, "{text:?}");
        }
    }

    #[test]
    fn validity_starts_before_the_day_of_issue() {
        // Five seconds after midnight of 2026-01-02.
        let validity = Validity { from: 1_767_312_005, days: 30 };
        assert_eq!(validity.start(), at(1_767_312_000 - DAY));
        assert_eq!(validity.end(), at(1_767_312_000 + 30 * DAY));
    }
}
