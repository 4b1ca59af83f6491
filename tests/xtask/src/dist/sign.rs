//! A signature of `SHA256SUMS` in minisign's format, by the user's key and the program `minisign`.

use crate::debian;
use crate::process::{Failure, Result, ensure};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file with the hashes; its signature is the same name with `.minisig`.
pub const SUMS: &str = "SHA256SUMS";

/// A secret key of minisign.
pub struct Key(PathBuf);

impl Key {
    /// Checks, before the build, that the key can be read and that minisign runs.
    ///
    /// # Errors
    /// One of them is missing.
    pub fn new(path: &Path) -> Result<Self> {
        debian::install("minisign", "signatures of the hashes", debian::has_minisign)
            .map_err(|command| Failure::missing(format!("minisign is missing: run `{command}`")))?;
        let text = fs_err::read_to_string(path)?;
        let is_key = text.starts_with("untrusted comment:") && text.lines().count() == 2;
        let shown = path.display();
        ensure!(
            is_key,
            "{shown}: expected a secret key of minisign; `minisign -G -s {shown}` makes one"
        );
        Ok(Self(std::path::absolute(path)?))
    }

    /// Writes `SHA256SUMS.minisig`. minisign asks for the password of the key, if it has one.
    ///
    /// # Errors
    /// Wrong password, or not a secret key.
    pub fn sign(&self, folder: &Path, what: &str) -> Result<()> {
        let mut minisign = Command::new("minisign");
        minisign.args(["-S", "-m", SUMS, "-t", what, "-s"]).arg(&self.0).current_dir(folder);
        // Its password comes from stdin.
        let status = minisign.stdout(std::io::stderr().as_fd().try_clone_to_owned()?).status()?;
        ensure!(status.success(), "the hashes are not signed; minisign's messages are above");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::runs;
    use fs_err as fs;

    #[test]
    fn minisign_accepts_the_signature_of_these_hashes_only() {
        if !debian::has_minisign() {
            println!("skipped: no minisign");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let pair = |name: &str| {
            let (public, secret) = (at(&format!("{name}.pub")), at(&format!("{name}.key")));
            let mut make = Command::new("minisign");
            assert!(runs(make.args(["-G", "-W", "-p"]).arg(&public).arg("-s").arg(&secret)));
            (public, secret)
        };
        let ((public, secret), (other, _)) = (pair("a"), pair("b"));
        let verified = |public: &Path| {
            let mut minisign = Command::new("minisign");
            runs(minisign.args(["-V", "-m", SUMS, "-p"]).arg(public).current_dir(dir.path()))
        };
        fs::write(at(SUMS), "00  a\n").unwrap();
        assert!(!verified(&public));
        Key::new(&secret).unwrap().sign(dir.path(), "shef-verifierd 1.2.3").unwrap();
        assert!(verified(&public) && !verified(&other));
        let signature = fs::read_to_string(at("SHA256SUMS.minisig")).unwrap();
        assert!(signature.contains("trusted comment: shef-verifierd 1.2.3\n"), "{signature}");
        fs::write(at(SUMS), "01  a\n").unwrap();
        assert!(!verified(&public));
        // Files that are no secret key.
        assert!(Key::new(&at("missing")).is_err() && Key::new(&at(SUMS)).is_err());
        assert!(Key::new(&public).unwrap().sign(dir.path(), "x").is_err());
    }
}
