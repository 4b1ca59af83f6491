//! The client of other services: identity providers, and the collector of traces.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use ureq::Agent;
use ureq::config::ConfigBuilder;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::typestate::AgentScope;

/// Certificates of CAs, as Debian and its kin install them.
const SYSTEM: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The CAs that a server may have.
fn roots(ca: Option<&Path>) -> Result<RootCerts, String> {
    let path = ca.unwrap_or(Path::new(SYSTEM));
    let cannot = |error: String| format!("CAs in {}: {error}", path.display());
    let text = shef_files::read_linked(path).map_err(|error| cannot(error.to_string()))?;
    let mut all = Vec::new();
    for der in CertificateDer::pem_slice_iter(text.as_bytes()) {
        let der = der.map_err(|error| cannot(error.to_string()))?;
        all.push(Certificate::from_der(&der).to_owned());
    }
    if all.is_empty() {
        return Err(cannot("expected certificates in PEM".into()));
    }
    Ok(RootCerts::new_with_certs(&all))
}

/// A client that trusts the CAs in a file of PEM, or those of the system, and follows no redirect. A
/// request takes at most `patience`.
///
/// # Errors
/// The file holds no certificate, or cannot be read.
pub(crate) fn agent(
    ca: Option<&Path>,
    patience: Duration,
) -> Result<ConfigBuilder<AgentScope>, String> {
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .root_certs(roots(ca)?)
        .build();
    let builder = Agent::config_builder().tls_config(tls).max_redirects(0);
    Ok(builder.timeout_global(Some(patience)))
}
