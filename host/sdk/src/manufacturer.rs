//! The manufacturer: a CA that makes and certifies devices. For an image that a cloud provider
//! loads, this is the image's vendor.

use shef_proto::cert::{Certificate, NO_END, issue_device_id, issue_root};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::Entropy;
use shef_proto::hpke_suite::{PrivateKey, PublicKey, generate_key_pair};
use zeroize::Zeroizing;

use crate::{KeyFolder, SdkError};

const CA_KEY: &str = "ca.key";
const CA_CERTIFICATE: &str = "ca.der";
/// Seconds by which validity starts before the time of issue: clocks differ, and a device has no
/// clock.
const BACKDATED: i64 = 86_400;

/// A manufacturer with its CA.
pub struct Manufacturer {
    /// Absent if the keys are in this process only.
    folder: Option<KeyFolder>,
    ca: SigningKey,
    root: Certificate,
}

impl Manufacturer {
    /// Opens the manufacturer whose keys are in `folder`. If there are no keys, creates a CA named
    /// `name`, valid from a day before `now` (seconds since 1970).
    ///
    /// # Errors
    /// [`SdkError::KeyFile`], [`SdkError::KeyFormat`], [`SdkError::KeyOpen`].
    pub fn open(
        folder: KeyFolder,
        name: &str,
        now: i64,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, SdkError> {
        let key = |folder: &KeyFolder| -> Result<SigningKey, SdkError> {
            let secret = PrivateKey::from_bytes(&folder.secret32(CA_KEY)?[..]).map_err(|e| {
                SdkError::KeyFormat { path: folder.path().join(CA_KEY), reason: e.to_string() }
            })?;
            Ok(SigningKey::new(&secret))
        };
        if !folder.has(CA_KEY) || !folder.has(CA_CERTIFICATE) {
            let _alone = folder.alone()?;
            if !folder.has(CA_KEY) {
                if folder.has(CA_CERTIFICATE) {
                    let reason = format!(
                        "it is missing, and {CA_CERTIFICATE} beside it is there: restore the key, or give another folder"
                    );
                    return Err(SdkError::KeyFile { path: folder.path().join(CA_KEY), reason });
                }
                folder.store_secret(CA_KEY, &generate_key_pair(entropy).0.to_bytes()[..])?;
            }
            // A process may have ended between writing the two: the key is complete, and its
            // certificate follows.
            if !folder.has(CA_CERTIFICATE) {
                folder.store_public(
                    CA_CERTIFICATE,
                    &issue_root(&key(&folder)?, name, now - BACKDATED, NO_END),
                )?;
            }
        }
        let ca = key(&folder)?;
        let malformed = |reason: String| SdkError::KeyFormat {
            path: folder.path().join(CA_CERTIFICATE),
            reason,
        };
        let root = Certificate::parse(&folder.public(CA_CERTIFICATE)?)
            .map_err(|e| malformed(e.to_string()))?;
        root.check_root().map_err(|e| malformed(e.to_string()))?;
        if root.key() != &ca.public_key() {
            let key = folder.path().join(CA_KEY);
            return Err(malformed(format!(
                "it is not the certificate of {}: restore both files from one backup",
                key.display()
            )));
        }
        Ok(Self { folder: Some(folder), ca, root })
    }

    /// A manufacturer with a new CA named `name`, whose keys are in no file and end with this value:
    /// for simulated cards whose certificates need not outlast them. Validity is as in
    /// [`Manufacturer::open`].
    ///
    /// # Errors
    /// None of a valid `name`.
    pub fn in_memory(name: &str, now: i64, entropy: &mut dyn Entropy) -> Result<Self, SdkError> {
        let ca = SigningKey::new(&generate_key_pair(entropy).0);
        let root = Certificate::parse(&issue_root(&ca, name, now - BACKDATED, NO_END))?;
        Ok(Self { folder: None, ca, root })
    }

    /// The root certificate: the trust anchor that verifiers register for one kind of root of
    /// trust.
    pub fn root(&self) -> &Certificate {
        &self.root
    }

    /// The folder with the keys, if they are in one.
    pub fn folder(&self) -> Option<&KeyFolder> {
        self.folder.as_ref()
    }

    /// Draws the secret for a new device. It is burnt into the device and stored nowhere else.
    pub fn device_secret(&self, entropy: &mut dyn Entropy) -> Zeroizing<[u8; 32]> {
        let mut uds = Zeroizing::new([0; 32]);
        entropy.fill(&mut uds[..]);
        uds
    }

    /// Certifies a device by its DeviceID key, with validity from a day before `now` (seconds since
    /// 1970).
    pub fn certify(&self, device_id: &PublicKey, now: i64) -> Vec<u8> {
        issue_device_id(&self.ca, &self.root, device_id, now - BACKDATED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn key_and_certificate_are_a_pair() {
        let dir = tempfile::tempdir().unwrap();
        let mut entropy = crate::SystemEntropy::new().unwrap();
        let mut open = |name: &str| {
            Manufacturer::open(
                KeyFolder::open(dir.path().join(name)).unwrap(),
                name,
                1_767_225_600,
                &mut entropy,
            )
        };
        let root = open("one").unwrap().root().der().to_vec();
        open("two").unwrap();
        let file = |folder: &str, name: &str| dir.path().join(folder).join(name);
        // The certificate of another CA.
        std::fs::copy(file("two", CA_CERTIFICATE), file("one", CA_CERTIFICATE)).unwrap();
        let error = open("one").map(drop).expect_err("another CA's certificate");
        let said = error.to_string();
        assert!(
            error.code() == "SHEF-SDK-013" && said.contains("ca.der") && said.contains("ca.key"),
            "{said}"
        );
        // A process that was killed between writing the two.
        std::fs::remove_file(file("one", CA_CERTIFICATE)).unwrap();
        let again = open("one").unwrap();
        assert_eq!(again.root().key(), Certificate::parse(&root).unwrap().key());
        // A key that has been moved elsewhere is not replaced.
        std::fs::rename(file("one", CA_KEY), file("one", "away")).unwrap();
        let said = open("one").map(drop).expect_err("a certificate without its key").to_string();
        assert!(said.contains("ca.key") && said.contains("ca.der"), "{said}");
    }

    /// Clocks differ, and an error helps to find the one that is wrong.
    #[test]
    fn validity_starts_a_day_before_the_issue_and_an_error_names_the_distance() {
        const NOW: i64 = 1_767_225_600;
        const DAY: i64 = 86_400;
        let dir = tempfile::tempdir().unwrap();
        let mut entropy = crate::SystemEntropy::new().unwrap();
        let folder = KeyFolder::open(dir.path().join("maker")).unwrap();
        let stored = Manufacturer::open(folder, "maker", NOW, &mut entropy).unwrap();
        let unstored = Manufacturer::in_memory("maker", NOW, &mut entropy).unwrap();
        assert!(stored.folder().is_some() && unstored.folder().is_none());
        for maker in [stored, unstored] {
            maker.root().check_root().unwrap();
            assert_eq!(maker.root().not_before(), NOW - DAY);
            let device_id = generate_key_pair(&mut entropy).1;
            let issued = Certificate::parse(&maker.certify(&device_id, NOW + DAY)).unwrap();
            assert_eq!(issued.not_before(), NOW);
            assert!(maker.root().is_issuer_of(&issued));
        }
        let says = |now| {
            let (not_before, not_after) = (NOW, NOW + DAY);
            shef_proto::cert::CertError::Validity { which: "root", not_before, not_after, now }
                .to_string()
        };
        for (now, expected) in [
            (NOW - 60, ": 60 s before it starts; is a clock wrong?"),
            (NOW - 3 * 3600, ": 3 hours before it starts; is a clock wrong?"),
            (NOW + 4 * DAY, ": 3 days after its end"),
        ] {
            assert!(says(now).ends_with(expected), "{}", says(now));
        }
    }

    #[test]
    fn whoever_finds_an_empty_folder_at_once_has_the_same_keys() {
        for _ in 0..8 {
            let (dir, begin) = (tempfile::tempdir().unwrap(), Barrier::new(6));
            let open = || {
                let mut entropy = crate::SystemEntropy::new().unwrap();
                begin.wait();
                let folder = || KeyFolder::open(dir.path().join("maker")).unwrap();
                let root = Manufacturer::open(folder(), "maker", 1_767_225_600, &mut entropy)
                    .unwrap()
                    .root()
                    .der()
                    .to_vec();
                (root, folder().signing_key(&mut entropy).unwrap().public_key().as_bytes().to_vec())
            };
            let found: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..6).map(|_| scope.spawn(open)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert!(found.iter().all(|one| *one == found[0]));
        }
    }
}
