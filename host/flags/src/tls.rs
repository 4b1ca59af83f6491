//! Flags for an agent.

use std::path::PathBuf;

use shef::TlsFiles;
use shef_console::{CliError, file};

/// Certificates for an agent; default: those in SHEF_TLS_CONFIG or ~/.config/shef/client.toml.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct TlsArgs {
    /// Certificate of the agent's CA (PEM), for tls:// devices
    #[arg(long, value_name = "FILE", requires_all = ["tls_cert", "tls_key"])]
    pub tls_ca: Option<PathBuf>,
    /// Your certificate (PEM), for tls:// devices
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_key"])]
    pub tls_cert: Option<PathBuf>,
    /// Your private key (PEM), for tls:// devices
    #[arg(long, value_name = "FILE", requires_all = ["tls_ca", "tls_cert"])]
    pub tls_key: Option<PathBuf>,
}

impl TlsArgs {
    /// The files, if they were given.
    ///
    /// # Errors
    /// SHEF-CLI-001 if one of them is missing.
    pub fn files(&self) -> Result<Option<TlsFiles>, CliError> {
        match (&self.tls_ca, &self.tls_cert, &self.tls_key) {
            (None, None, None) => {
                // If the environment names files, they are inputs too.
                if let Ok(files) = TlsFiles::find() {
                    [&files.ca, &files.cert, &files.key]
                        .into_iter()
                        .for_each(|path| file::is_input(path));
                }
                Ok(None)
            }
            (Some(ca), Some(cert), Some(key)) => {
                [ca, cert, key].into_iter().for_each(|path| file::is_input(path));
                Ok(Some(TlsFiles { ca: ca.clone(), cert: cert.clone(), key: key.clone() }))
            }
            _ => {
                Err(CliError::new("SHEF-CLI-001", "--tls-ca, --tls-cert and --tls-key go together"))
            }
        }
    }
}
