//! The lock file: one file that names everything of an image, from its sources to its id at AWS.
//! The policy of a session comes from it.
//!
//! The text is canonical: a file with the same values has the same bytes. Its last line has the
//! SHA-256 of all lines before it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{CloudError, place};

/// Version of the format.
const FORMAT: &str = "shef-cloud-lock/1";
const HEAD: &str =
    "# Everything of one image on AWS F2. Written by `shef cloud afi`; never edit it.\n";

/// Contents of a lock file. Digests are SHA-256 in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// Version of the format.
    pub format: String,
    /// Name of the accelerator.
    pub accelerator: String,
    /// Device type.
    pub target: String,
    /// Kind of root of trust.
    pub root_of_trust: String,
    /// Digest of the design, computed from its sources.
    pub source: String,
    /// Digest of the Security Kernel's image.
    pub firmware: String,
    /// Its security version.
    pub firmware_svn: u64,
    /// Digest of the shell's checkpoint.
    pub shell: String,
    /// Version of the shell.
    pub shell_version: String,
    /// Release of the HDK.
    pub hdk_release: String,
    /// State of the noise source in evidence: owner and vendor accept it with this file.
    pub entropy: String,
    /// Clock of the core in kHz.
    pub core_khz: u32,
    /// Whether card memory is the HBM.
    pub hbm: bool,
    /// Digest of the routed checkpoint.
    pub dcp: String,
    /// Digest of the tarball.
    pub tarball: String,
    /// Region of the AFI.
    pub region: String,
    /// Id of the image in its region.
    pub afi: String,
    /// Id of the image in all regions.
    pub agfi: String,
    /// Name of the device: of every card with this image.
    pub ueid: String,
    /// Digest of its DeviceID certificate.
    pub certificate: String,
    /// Digest of the trust anchor's file.
    pub anchor: String,
    /// Digest of the vendor's signed reference values (CoRIM).
    pub corim: String,
}

impl Lock {
    /// The format that this program writes.
    #[must_use]
    pub fn format() -> String {
        FORMAT.to_owned()
    }

    /// The text.
    ///
    /// # Errors
    /// SHEF-CLD-031.
    pub fn text(&self) -> Result<String, CloudError> {
        let body = toml::to_string(self).map_err(|e| wrong(Path::new("lock"), e.to_string()))?;
        let body = format!("{HEAD}{body}");
        let digest = hex::encode(shef_proto::crypto::sha256(body.as_bytes()));
        Ok(format!("{body}digest = \"{digest}\"\n"))
    }

    /// Reads a lock file.
    ///
    /// # Errors
    /// SHEF-CLD-031, SHEF-CLD-055.
    pub fn read(file: &Path) -> Result<Self, CloudError> {
        let bytes =
            shef_files::regular::read(file, 1 << 16).map_err(CloudError::io("read", file))?;
        let text = String::from_utf8(bytes).map_err(|_| wrong(file, "it is not text"))?;
        Self::parse(file, &text)
    }

    fn parse(file: &Path, text: &str) -> Result<Self, CloudError> {
        let last = text.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
        let (body, line) = text.split_at(last);
        let found = hex::encode(shef_proto::crypto::sha256(body.as_bytes()));
        let given = line.strip_prefix("digest = \"").and_then(|it| it.strip_suffix("\"\n"));
        let given = given.ok_or_else(|| {
            wrong(
                file,
                "expected the line digest = \"...\" at its end: it was cut, or is another file",
            )
        })?;
        if given != found {
            return Err(wrong(
                file,
                format!("its lines have SHA-256 {found}, and its last line has {given}"),
            ));
        }
        let lock: Self = toml::from_str(body).map_err(|e| wrong(file, e.to_string()))?;
        if lock.format != FORMAT {
            return Err(wrong(
                file,
                format!("its format is {:?}, expected {FORMAT:?}", lock.format),
            ));
        }
        for (name, value) in lock.digests() {
            let digits = value.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            if value.len() != 64 || !digits {
                return Err(wrong(
                    file,
                    format!("{name} is {value:?}, expected 64 hexadecimal digits"),
                ));
            }
        }
        if lock.text()? != text {
            return Err(wrong(file, "it is not in canonical form"));
        }
        Ok(lock)
    }

    fn digests(&self) -> [(&'static str, &str); 8] {
        [
            ("source", &self.source),
            ("firmware", &self.firmware),
            ("shell", &self.shell),
            ("dcp", &self.dcp),
            ("tarball", &self.tarball),
            ("certificate", &self.certificate),
            ("anchor", &self.anchor),
            ("corim", &self.corim),
        ]
    }

    /// Writes the file as a whole.
    ///
    /// # Errors
    /// SHEF-CLD-031, SHEF-CLD-055.
    pub fn write(&self, file: &Path) -> Result<(), CloudError> {
        place::write(file, self.text()?.as_bytes())
    }

    /// Compares a file with the digest that this lock file has for it.
    ///
    /// # Errors
    /// SHEF-CLD-032.
    pub fn holds(
        &self,
        file: &Path,
        bytes: &[u8],
        what: &'static str,
        expected: &str,
    ) -> Result<(), CloudError> {
        let found = hex::encode(shef_proto::crypto::sha256(bytes));
        if found == expected {
            return Ok(());
        }
        let expected = expected.to_owned();
        Err(CloudError::Locked { file: file.to_owned(), what, found, expected })
    }
}

fn wrong(file: &Path, what: impl Into<String>) -> CloudError {
    CloudError::Lock { file: file.to_owned(), what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let digest = |n: u8| hex::encode([n; 32]);
        Lock {
            format: Lock::format(),
            accelerator: "digits-knn".to_owned(),
            target: "aws-f2".to_owned(),
            root_of_trust: "provider".to_owned(),
            source: digest(1),
            firmware: digest(2),
            firmware_svn: 1,
            shell: digest(3),
            shell_version: "0x10212415".to_owned(),
            hdk_release: "2.3.2".to_owned(),
            entropy: "unmeasured".to_owned(),
            core_khz: 66_666,
            hbm: false,
            dcp: digest(4),
            tarball: digest(5),
            region: "us-east-1".to_owned(),
            afi: "afi-0123456789abcdef0".to_owned(),
            agfi: "agfi-0123456789abcdef0".to_owned(),
            ueid: "01".repeat(17),
            certificate: digest(6),
            anchor: digest(7),
            corim: digest(8),
        }
    }

    #[test]
    fn a_lock_file_has_one_text_and_no_change_passes() {
        let file = Path::new("x.lock");
        let text = lock().text().unwrap();
        assert_eq!(Lock::parse(file, &text).unwrap(), lock());
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] = if bytes[at] == b'7' { b'8' } else { b'7' };
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            let error = Lock::parse(file, &changed).unwrap_err();
            assert_eq!(error.code(), "SHEF-CLD-031", "byte {at}");
        }
        for at in 0..text.len() {
            assert!(Lock::parse(file, &text[..at]).is_err(), "cut at {at}");
        }
        // Another text of the same values, with a right digest.
        let body = text.rsplit_once("digest").unwrap().0.replace("format =", "format  =");
        let digest = hex::encode(shef_proto::crypto::sha256(body.as_bytes()));
        let error = Lock::parse(file, &format!("{body}digest = \"{digest}\"\n")).unwrap_err();
        assert!(error.to_string().contains("canonical"), "{error}");
    }
}
