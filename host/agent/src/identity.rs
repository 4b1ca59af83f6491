//! The owner that a certificate names, and the revoked certificates.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use shef_console::applied;
use shef_device::is_name;
use shef_files as files;
use shef_proto::crypto::sha256;
use shef_proto::name::digest;

use crate::AgentError;

/// How long before a certificate expires the agent warns.
const WARN: Duration = Duration::from_secs(30 * 86_400);

/// Record of a certificate at issue, in hexadecimal: the SHA-256 of the TBSCertificate, and of the
/// whole certificate. The signature has two encodings, and so has the latter digest.
pub(crate) fn noted(der: &CertificateDer<'_>) -> Option<[String; 2]> {
    let names = shef_tls::names(der)?;
    Some([hex::encode(names.first()?), hex::encode(names.get(1)?)])
}

/// SHA-256 of the public key of a certificate (SubjectPublicKeyInfo), in hexadecimal.
pub(crate) fn key_of(der: &CertificateDer<'_>) -> Option<String> {
    use x509_cert::der::{Decode, Encode};
    let certificate = x509_cert::Certificate::from_der(der).ok()?;
    let key = certificate.tbs_certificate().subject_public_key_info().to_der().ok()?;
    Some(hex::encode(sha256(&key)))
}

/// Whether a certificate is a CA certificate: basicConstraints with CA:TRUE.
pub(crate) fn is_ca(der: &CertificateDer<'_>) -> bool {
    use x509_cert::der::Decode;
    use x509_cert::ext::pkix::BasicConstraints;
    let Ok(certificate) = x509_cert::Certificate::from_der(der) else { return false };
    let found = certificate.tbs_certificate().get_extension::<BasicConstraints>();
    found.is_ok_and(|found| found.is_some_and(|(_, constraints)| constraints.ca))
}

/// An owner, as its certificate names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The common name.
    pub(crate) name: String,
    /// Digests that identify the certificate in the revocation list ([`shef_tls::names`]).
    names: Vec<String>,
    /// When the certificate expires.
    pub(crate) until: SystemTime,
}

impl Identity {
    /// Reads a certificate that TLS has checked; `None` if its common name is not the name of an
    /// owner.
    pub(crate) fn of(der: &CertificateDer<'_>) -> Option<Self> {
        use x509_cert::der::Decode;
        use x509_cert::der::asn1::{ObjectIdentifier, PrintableStringRef, Utf8StringRef};
        let certificate = x509_cert::Certificate::from_der(der).ok()?;
        let common_name: ObjectIdentifier = "2.5.4.3".parse().ok()?;
        let mut names = certificate
            .tbs_certificate()
            .subject()
            .iter()
            .filter(|attribute| attribute.oid == common_name);
        let (name, None) = (names.next()?, names.next()) else { return None };
        let text = name.value.decode_as::<Utf8StringRef<'_>>().map(|s| s.as_str().to_owned());
        let text = text
            .or_else(|_| {
                name.value.decode_as::<PrintableStringRef<'_>>().map(|s| s.as_str().to_owned())
            })
            .ok()?;
        let until =
            UNIX_EPOCH + certificate.tbs_certificate().validity().not_after.to_unix_duration();
        let names = shef_tls::names(der)?.iter().map(hex::encode).collect();
        is_name(&text).then_some(Self { name: text, names, until })
    }

    /// An owner of a test.
    #[cfg(test)]
    pub(crate) fn named(name: &str, until: SystemTime) -> Self {
        Self { name: name.to_owned(), names: vec![], until }
    }

    /// SHA-256 of the certificate in DER, in hexadecimal.
    pub(crate) fn fingerprint(&self) -> &str {
        self.names.get(1).map_or("", String::as_str)
    }

    /// Days until the certificate expires, if they are few.
    pub(crate) fn ends_soon(&self) -> Option<u64> {
        ends_soon(self.until)
    }
}

/// Days until `until`, if they are few.
pub(crate) fn ends_soon(until: SystemTime) -> Option<u64> {
    let left = until.duration_since(SystemTime::now()).unwrap_or_default();
    (left < WARN).then_some(left.as_secs() / 86_400)
}

/// Start and end of a certificate's validity.
pub(crate) fn validity_of(der: &[u8]) -> Option<[SystemTime; 2]> {
    use x509_cert::der::Decode;
    let certificate = x509_cert::Certificate::from_der(der).ok()?;
    let validity = certificate.tbs_certificate().validity();
    Some([validity.not_before, validity.not_after].map(|time| UNIX_EPOCH + time.to_unix_duration()))
}

/// Revoked certificates, by SHA-256 of the TBSCertificate or of the whole certificate: one per
/// line, `#` begins a comment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Revoked {
    certificates: HashSet<String>,
    /// Comments that are names of owners, as `shef-agent revoke` writes them, each with its
    /// certificate.
    owners: Vec<(String, String)>,
    /// Digest that identifies the list.
    digest: String,
}

impl Revoked {
    /// Reads a list, as root by the rules of [`files::open_linked`].
    ///
    /// # Errors
    /// SHEF-AGT-016 if a line is not a fingerprint, SHEF-AGT-017 if the file cannot be read:
    /// without a readable list, the agent admits no owner.
    pub(crate) fn load(path: &Path) -> Result<Self, AgentError> {
        let text = files::read_linked(path).map_err(|e| AgentError::file("read", path, &e))?;
        let (mut list, mut owners) = (HashSet::new(), Vec::new());
        for (line, number) in text.lines().zip(1..) {
            let (entry, comment) = line.split_once('#').unwrap_or((line, ""));
            let (entry, comment) = (entry.trim(), comment.trim());
            if let Some(fingerprint) = digest(entry) {
                if is_name(comment) {
                    owners.push((comment.to_owned(), fingerprint.clone()));
                }
                list.insert(fingerprint);
            } else if !entry.is_empty() {
                let message = format!(
                    "{} line {number}: {entry:?} is not a fingerprint, expected 64 hexadecimal \
                    digits",
                    path.display()
                );
                return Err(AgentError::Config { message });
            }
        }
        Ok(Self { certificates: list, owners, digest: applied::digest(text.as_bytes()) })
    }

    pub(crate) fn contains(&self, owner: &Identity) -> bool {
        owner.names.iter().any(|name| self.lists(name))
    }

    /// Certificates that the list attributes to this owner.
    pub(crate) fn of_owner(&self, owner: &str) -> impl Iterator<Item = &str> {
        self.owners
            .iter()
            .filter(move |(name, _)| name == owner)
            .map(|(_, fingerprint)| fingerprint.as_str())
    }

    /// Certificates in this list that are not in `next`, each with its owner if the list names one.
    pub(crate) fn lifted_by(&self, next: &Self) -> Vec<String> {
        let owner = |fingerprint: &String| {
            let mut named = self.owners.iter().filter(|(_, of)| of == fingerprint);
            named.next().map_or_else(
                || fingerprint.clone(),
                |(owner, _)| format!("{fingerprint} of {owner}"),
            )
        };
        let mut lifted: Vec<_> =
            self.certificates.difference(&next.certificates).map(owner).collect();
        lifted.sort();
        lifted
    }

    /// Whether the list has a fingerprint, given in lower case.
    pub(crate) fn lists(&self, fingerprint: &str) -> bool {
        self.certificates.contains(fingerprint)
    }

    /// [`applied::digest`] of the file.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_values_and_not_spellings() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let digest = "0a".repeat(32);
        for entry in
            [&digest, &digest.to_uppercase(), &format!("sha256:{digest}"), &["0A"; 32].join(":")]
        {
            std::fs::write(file.path(), format!("# lost\n{entry} # alice\n")).unwrap();
            assert!(Revoked::load(file.path()).unwrap().lists(&digest), "{entry}");
        }
        for entry in ["alice", "sha1:0a", &digest[2..], &format!("{digest}:")] {
            std::fs::write(file.path(), format!("\n{entry}\n")).unwrap();
            let error = Revoked::load(file.path()).unwrap_err();
            assert!(
                error.code() == "SHEF-AGT-016" && error.to_string().contains("line 2"),
                "{error}"
            );
        }
    }

    /// Anyone can change s of an ECDSA signature to n - s: whichever of both encodings the list names,
    /// it has both.
    #[test]
    fn a_list_has_a_certificate_in_either_encoding_of_its_signature() {
        use shef_tls::ca::{Ca, Holder, KeyPair, Validity};
        use x509_cert::der::asn1::{BitString, Uint};
        use x509_cert::der::{Decode as _, Encode as _};
        // Order of P-256.
        const ORDER: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
        let sequence = |parts: [Vec<u8>; 2]| {
            let body = parts.concat();
            x509_cert::der::asn1::AnyRef::new(x509_cert::der::Tag::Sequence, &body)
                .unwrap()
                .to_der()
                .unwrap()
        };
        let (ca, _) = Ca::new("CA", KeyPair::generate().unwrap(), 0).unwrap();
        let holder = Holder::Client { name: "alice", uri: None };
        let key = KeyPair::generate().unwrap();
        let one = ca.issue(holder, &key, Validity { from: 0, days: 1 }).unwrap().der().clone();
        let parsed = x509_cert::Certificate::from_der(&one).unwrap();
        let [r, s] =
            <[Uint; 2]>::try_from(Vec::<Uint>::from_der(parsed.signature().raw_bytes()).unwrap())
                .unwrap();
        // n - s, digit by digit from the end.
        let padded = [vec![0; 32 - s.as_bytes().len()], s.as_bytes().to_vec()].concat();
        let (mut twin, mut borrow) = (hex::decode(ORDER).unwrap(), false);
        for (digit, taken) in twin.iter_mut().zip(&padded).rev() {
            let (first, under) = digit.overflowing_sub(*taken);
            let (second, again) = first.overflowing_sub(borrow.into());
            (*digit, borrow) = (second, under || again);
        }
        let signature =
            sequence([r.to_der().unwrap(), Uint::new(&twin).unwrap().to_der().unwrap()]);
        let signed = [
            parsed.tbs_certificate().to_der().unwrap(),
            parsed.signature_algorithm().to_der().unwrap(),
        ];
        let signature = BitString::from_bytes(&signature).unwrap().to_der().unwrap();
        let other = CertificateDer::from(sequence([signed.concat(), signature]));
        assert_ne!(one, other);
        let identities = [&one, &other].map(|der| Identity::of(der).unwrap());
        let file = tempfile::NamedTempFile::new().unwrap();
        for listed in [noted(&one), noted(&other)].map(Option::unwrap).concat() {
            std::fs::write(file.path(), &listed).unwrap();
            let list = Revoked::load(file.path()).unwrap();
            assert!(identities.iter().all(|owner| list.contains(owner)), "{listed}");
        }
        assert_ne!(identities[0].fingerprint(), identities[1].fingerprint());
    }
}
