//! The owner's certificates.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use shef_device::DeviceError;
use shef_files::PrivateError;

use crate::wire::{self, codes};

/// Largest file with settings or certificates, in bytes.
const MOST: u64 = 4 << 20;

/// Paths of the owner's certificates and key, all PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate of the agent's CA.
    pub ca: PathBuf,
    /// Certificate of the owner, issued by that CA.
    pub cert: PathBuf,
    /// Private key of that certificate.
    pub key: PathBuf,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientFile {
    ca: PathBuf,
    cert: PathBuf,
    key: PathBuf,
}

impl TlsFiles {
    /// Reads a `client.toml` with `ca`, `cert` and `key`, relative to its folder.
    ///
    /// # Errors
    /// SHEF-AGT-003.
    pub fn from_config(path: &Path) -> Result<Self, DeviceError> {
        let file: ClientFile = toml::from_slice(&read(path)?).map_err(|e| trouble(path, &e))?;
        let dir = path.parent().unwrap_or(Path::new(""));
        Ok(Self { ca: dir.join(file.ca), cert: dir.join(file.cert), key: dir.join(file.key) })
    }

    /// The files that the environment names: `SHEF_TLS_CA`, `SHEF_TLS_CERT` and `SHEF_TLS_KEY`, or
    /// the `client.toml` of `SHEF_TLS_CONFIG`, or `shef/client.toml` in `XDG_CONFIG_HOME` or
    /// `~/.config`.
    ///
    /// # Errors
    /// SHEF-AGT-003.
    pub fn find() -> Result<Self, DeviceError> {
        let path = |name: &str| {
            std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
        };
        match ["SHEF_TLS_CA", "SHEF_TLS_CERT", "SHEF_TLS_KEY"].map(path) {
            [Some(ca), Some(cert), Some(key)] => return Ok(Self { ca, cert, key }),
            [None, None, None] => {}
            _ => {
                let message = "SHEF_TLS_CA, SHEF_TLS_CERT and SHEF_TLS_KEY go together: one of them is missing".to_owned();
                return Err(DeviceError::Transport { code: codes::TLS_FILES, message });
            }
        }
        if let Some(config) = path("SHEF_TLS_CONFIG") {
            return Self::from_config(&config);
        }
        let base =
            path("XDG_CONFIG_HOME").or_else(|| path("HOME").map(|home| home.join(".config")));
        match base.map(|base| base.join("shef/client.toml")).filter(|file| file.exists()) {
            Some(file) => Self::from_config(&file),
            None => Err(DeviceError::Transport {
                code: codes::TLS_FILES,
                message: "an agent requires a certificate: expected --tls-ca, --tls-cert and \
                    --tls-key, SHEF_TLS_CONFIG, or ~/.config/shef/client.toml"
                    .to_owned(),
            }),
        }
    }

    /// A warning about the owner's certificate before it connects: it expires within 30 days, has
    /// expired, or is not valid yet.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        const DAY: u64 = 86_400;
        let validity = shef_tls::Validity::of(certificates(&self.cert).ok()?.first()?).ok()?;
        let now =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?.as_secs();
        let file = self.cert.display();
        if now < validity.from {
            return Some(format!(
                "the certificate {file} is not valid yet: is this machine's clock right?"
            ));
        }
        let new = "ask the agent's operator for a new one (`shef-agent renew --dir DIR NAME`)";
        match validity.until.checked_sub(now).map(|left| left / DAY) {
            None => Some(format!("the certificate {file} has expired: {new}")),
            Some(0) => Some(format!("the certificate {file} expires within a day: {new}")),
            Some(1) => Some(format!("the certificate {file} expires in 1 day: {new}")),
            Some(days @ 2..30) => {
                Some(format!("the certificate {file} expires in {days} days: {new}"))
            }
            Some(_) => None,
        }
    }

    /// TLS 1.3 with these files only: no other CA is trusted, and this one only while its own
    /// certificate is valid.
    ///
    /// # Errors
    /// SHEF-AGT-003.
    pub fn load(&self) -> Result<Arc<ClientConfig>, DeviceError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let servers = shef_tls::server_verifier(&certificates(&self.ca)?, &provider)
            .map_err(|e| trouble(&self.ca, &e))?;
        let key = private_key(&self.key)?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|e| trouble(&self.ca, &e))?
            .dangerous()
            .with_custom_certificate_verifier(servers)
            .with_client_auth_cert(certificates(&self.cert)?, key)
            .map_err(|e| unpaired(&self.cert, &self.key, &e))?;
        config.alpn_protocols = vec![wire::ALPN.to_vec()];
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Arc::new(config))
    }
}

/// Reads one of these files.
fn read(path: &Path) -> Result<Vec<u8>, DeviceError> {
    shef_files::regular::read(path, MOST).map_err(|e| trouble(path, &e))
}

/// The certificates of a PEM file, at least one.
///
/// # Errors
/// SHEF-AGT-003.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, DeviceError> {
    let list = CertificateDer::pem_slice_iter(&read(path)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| trouble(path, &e))?;
    if list.is_empty() { Err(trouble(path, &"it holds no certificate")) } else { Ok(list) }
}

/// Opens the file of a private key, which other users can neither read nor replace
/// ([`shef_files::open_private`]). A group may read it, as is usual for services on Debian.
///
/// # Errors
/// SHEF-AGT-003.
pub fn open_key(path: &Path) -> Result<File, DeviceError> {
    shef_files::open_private(path, 0o027).map_err(|error| match error {
        PrivateError::Open(error) => trouble(path, &error),
        PrivateError::Mode(mode) => {
            let what = format!(
                "its mode is {mode:03o}, so other users can read or replace this private key: expected 600 (`chmod 600 {}`)",
                path.display()
            );
            trouble(path, &what)
        }
    })
}

/// The private key of a PEM file ([`open_key`]).
///
/// # Errors
/// SHEF-AGT-003.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, DeviceError> {
    PrivateKeyDer::from_pem_reader(open_key(path)?).map_err(|e| match e {
        rustls::pki_types::pem::Error::NoItemsFound => trouble(path, &"it holds no private key"),
        e => trouble(path, &e),
    })
}

/// SHEF-AGT-003 for a certificate that TLS does not accept together with a key.
pub fn unpaired(cert: &Path, key: &Path, error: &rustls::Error) -> DeviceError {
    match error {
        rustls::Error::InconsistentKeys(_) => trouble(
            cert,
            &format!("it is not the certificate of the private key in {}", key.display()),
        ),
        error => trouble(cert, error),
    }
}

fn trouble(path: &Path, error: &dyn std::fmt::Display) -> DeviceError {
    DeviceError::Transport {
        code: codes::TLS_FILES,
        message: format!("TLS file {}: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_private_key_of_another_user_is_refused() {
        use std::os::unix::fs::{chown, lchown, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("key.pem"), dir.path().join("link.pem"));
        let pem = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
        std::fs::write(&path, pem).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        symlink("key.pem", &link).unwrap();
        private_key(&link).unwrap();
        if lchown(&link, Some(4001), None).is_err() {
            println!("skipped: only root can give files away");
            return;
        }
        let refused = |path: &Path, user: u32| {
            let error = private_key(path).unwrap_err();
            assert!(
                error.code() == "SHEF-AGT-003"
                    && error.to_string().contains(&format!("belongs to user {user}")),
                "{error}"
            );
        };
        refused(&link, 4001);
        chown(dir.path(), Some(4001), None).unwrap();
        chown(&path, Some(5001), None).unwrap();
        refused(&path, 5001);
    }

    #[test]
    fn a_private_key_that_strangers_reach_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key.pem");
        std::fs::write(&path, "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
            .unwrap();
        for (mode, fine) in [
            (0o600, true),
            (0o400, true),
            (0o640, true),
            (0o644, false),
            (0o660, false),
            (0o602, false),
        ] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let found = private_key(&path);
            assert_eq!(found.is_ok(), fine, "{mode:o}");
            if let Err(error) = found {
                assert_eq!(error.code(), "SHEF-AGT-003");
                assert!(
                    error.to_string().contains(&format!("{mode:o}"))
                        && error.to_string().contains("chmod 600"),
                    "{error}"
                );
            }
        }
    }
}
