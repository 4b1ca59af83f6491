//! What all verifiers of webpki are built from.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::{Error, OtherError, RootCertStore};

/// The store of one CA.
pub(crate) fn store(ca: &CertificateDer<'_>) -> Result<Arc<RootCertStore>, Error> {
    let mut store = RootCertStore::empty();
    store.add(ca.clone().into_owned())?;
    Ok(Arc::new(store))
}

/// The error of a verifier that cannot be built.
pub(crate) fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Other(OtherError(Arc::new(error)))
}
