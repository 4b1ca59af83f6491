//! Flags for a verifier service.

use std::path::{Path, PathBuf};

use shef::{Service, TlsFiles};
use shef_console::{CliError, file};

/// A verifier service's address, and the client's identity.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct ServiceArgs {
    /// Verifier service, https://HOST:PORT [env: SHEF_VERIFIER]
    #[arg(long, value_name = "URL", global = true)]
    pub verifier: Option<String>,
    /// Your certificate and key, PREFIX.pem and PREFIX.key, as `shef-verifierd init` and
    /// `shef-verifierd client` write them [env: SHEF_VERIFIER_AS]
    #[arg(long = "as", value_name = "PREFIX", global = true)]
    pub identity: Option<PathBuf>,
    /// Certificate of the service's CA (PEM); default: ca.pem next to your certificate [env:
    /// SHEF_VERIFIER_CA]
    #[arg(long, value_name = "FILE", global = true)]
    pub verifier_ca: Option<PathBuf>,
}

/// The given value, or that of an environment variable that is not empty.
fn or_env(given: Option<PathBuf>, name: &str) -> Option<PathBuf> {
    given.or_else(|| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from))
}

impl ServiceArgs {
    /// The first flag that was given: the environment is for all commands, a flag for this one.
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            (self.verifier.is_some(), "--verifier"),
            (self.identity.is_some(), "--as"),
            (self.verifier_ca.is_some(), "--verifier-ca"),
        ];
        flags.into_iter().find_map(|(given, flag)| given.then_some(flag))
    }

    /// The service that the flags or the environment name, if any.
    ///
    /// # Errors
    /// SHEF-CLI-001 for an address without a certificate or a flag without an address, and errors for
    /// unusable files.
    pub fn find(&self) -> Result<Option<Service>, CliError> {
        let url = self
            .verifier
            .clone()
            .or_else(|| std::env::var("SHEF_VERIFIER").ok().filter(|url| !url.is_empty()));
        let Some(url) = url else {
            return match self.given() {
                Some(flag) => Err(CliError::new(
                    "SHEF-CLI-001",
                    format!("{flag} goes with --verifier https://HOST:PORT, or SHEF_VERIFIER"),
                )),
                None => Ok(None),
            };
        };
        let Some(prefix) = or_env(self.identity.clone(), "SHEF_VERIFIER_AS") else {
            let message = "a verifier service requires a certificate: expected --as PREFIX for \
                PREFIX.pem and PREFIX.key, or SHEF_VERIFIER_AS";
            return Err(CliError::new("SHEF-CLI-001", message));
        };
        let ca = or_env(self.verifier_ca.clone(), "SHEF_VERIFIER_CA")
            .unwrap_or_else(|| prefix.with_file_name("ca.pem"));
        let files = identity(&prefix, ca);
        [&files.ca, &files.cert, &files.key].into_iter().for_each(|path| file::is_input(path));
        Ok(Some(Service::new(&url, files)?))
    }

    /// The service that the flags or the environment name.
    ///
    /// # Errors
    /// As [`ServiceArgs::find`], and an error if they name no service.
    pub fn open(&self) -> Result<Service, CliError> {
        self.find()?.ok_or_else(|| {
            CliError::new("SHEF-CLI-001", "expected --verifier https://HOST:PORT, or SHEF_VERIFIER")
        })
    }
}

/// The files of a client, PREFIX.pem and PREFIX.key.
pub fn identity(prefix: &Path, ca: PathBuf) -> TlsFiles {
    let with = |end: &str| {
        let mut path = prefix.as_os_str().to_owned();
        path.push(end);
        PathBuf::from(path)
    };
    TlsFiles { ca, cert: with(".pem"), key: with(".key") }
}
