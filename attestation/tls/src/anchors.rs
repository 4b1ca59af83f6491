//! Verification of TLS certificates against CAs that must be valid themselves.
//!
//! A trust anchor of webpki is a name and a key: it accepts a leaf before its CA becomes valid, and
//! after its CA has expired. The verifiers here accept a leaf only while the certificate of its CA
//! is valid too. They keep the CAs separate, and check each handshake, because a server can outlive
//! certificates.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientCertVerifierBuilder, WebPkiClientVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use x509_cert::der::Decode as _;

use crate::lists::Lists;
use crate::webpki::{failed, store};

/// Validity of a certificate, in seconds since 1970, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    /// Start.
    pub from: u64,
    /// End.
    pub until: u64,
}

impl Validity {
    /// The validity of a certificate in DER.
    ///
    /// # Errors
    /// Not a certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, Error> {
        let bad = |_| Error::InvalidCertificate(CertificateError::BadEncoding);
        let certificate = x509_cert::Certificate::from_der(certificate).map_err(bad)?;
        let validity = certificate.tbs_certificate().validity();
        Ok(Self {
            from: validity.not_before.to_unix_duration().as_secs(),
            until: validity.not_after.to_unix_duration().as_secs(),
        })
    }

    /// Checks that `now` is within.
    ///
    /// # Errors
    /// [`CertificateError::NotValidYet`], [`CertificateError::Expired`].
    pub fn check(&self, now: UnixTime) -> Result<(), Error> {
        if now.as_secs() < self.from {
            return Err(CertificateError::NotValidYet.into());
        }
        if now.as_secs() > self.until { Err(CertificateError::Expired.into()) } else { Ok(()) }
    }
}

/// The verifier under one CA.
#[derive(Debug)]
struct Anchor<V: ?Sized> {
    validity: Validity,
    verifier: Arc<V>,
    /// Each with one more revocation list: only a certificate that is in it is refused.
    entries: Vec<Arc<V>>,
    /// Why no certificate of this CA is accepted.
    closed: Option<CertificateError>,
}

impl<V: ?Sized> Anchor<V> {
    fn check<T>(&self, verify: impl Fn(&V) -> Result<T, Error>) -> Result<T, Error> {
        let verified = verify(&self.verifier)?;
        let revoked = Error::InvalidCertificate(CertificateError::Revoked);
        if self.entries.iter().any(|one| verify(one).is_err_and(|error| error == revoked)) {
            return Err(revoked);
        }
        self.closed.clone().map_or(Ok(verified), |error| Err(error.into()))
    }
}

/// Verifiers, each under one CA.
#[derive(Debug)]
struct Anchors<V: ?Sized> {
    list: Vec<Anchor<V>>,
    schemes: Arc<V>,
    names: Vec<DistinguishedName>,
}

impl<V: ?Sized> Anchors<V> {
    fn new(
        cas: &[CertificateDer<'_>],
        make: impl Fn(&CertificateDer<'_>) -> Result<Anchor<V>, Error>,
    ) -> Result<Self, Error> {
        let mut list = Vec::with_capacity(cas.len());
        let mut names = Vec::with_capacity(cas.len());
        for ca in cas {
            names.extend(store(ca)?.subjects());
            list.push(make(ca)?);
        }
        let first = list.first().ok_or_else(|| Error::General("no certificate of a CA".into()))?;
        Ok(Self { schemes: Arc::clone(&first.verifier), list, names })
    }

    /// The result of the first CA that accepts and is valid itself; else the most specific error.
    fn hold<T>(&self, now: UnixTime, verify: impl Fn(&V) -> Result<T, Error>) -> Result<T, Error> {
        // A CA of another name, or of the same name with another key.
        let elsewhere = |error: &Error| match error {
            Error::InvalidCertificate(CertificateError::UnknownIssuer) => 2,
            Error::InvalidCertificate(CertificateError::BadSignature) => 1,
            _ => 0,
        };
        let mut refused = Error::InvalidCertificate(CertificateError::UnknownIssuer);
        for anchor in &self.list {
            match anchor
                .check(&verify)
                .and_then(|verified| anchor.validity.check(now).map(|()| verified))
            {
                Ok(verified) => return Ok(verified),
                Err(error) if elsewhere(&error) < elsewhere(&refused) => refused = error,
                Err(_) => {}
            }
        }
        Err(refused)
    }
}

/// A verifier of client certificates under these CAs. `with` adds further requirements.
///
/// # Errors
/// A malformed certificate, no certificate at all, or a malformed revocation list.
pub fn client_verifier(
    cas: &[CertificateDer<'_>],
    provider: &Arc<CryptoProvider>,
    with: impl Fn(ClientCertVerifierBuilder) -> ClientCertVerifierBuilder,
) -> Result<Arc<dyn ClientCertVerifier>, Error> {
    Clients { cas, withdrawn: &[], lists: &Lists::default() }.verifier(provider, with)
}

/// The clients that a server accepts.
#[derive(Clone, Copy, Debug)]
pub struct Clients<'a> {
    /// CAs of their certificates.
    pub cas: &'a [CertificateDer<'a>],
    /// Those of the CAs whose certificates are not accepted any more.
    pub withdrawn: &'a [CertificateDer<'a>],
    /// Revocation lists. If the configuration has any, it must have one of each CA.
    pub lists: &'a Lists,
}

impl Clients<'_> {
    /// A verifier of their certificates. `with` adds further requirements.
    ///
    /// # Errors
    /// A malformed certificate, or no CA at all.
    pub fn verifier(
        &self,
        provider: &Arc<CryptoProvider>,
        with: impl Fn(ClientCertVerifierBuilder) -> ClientCertVerifierBuilder,
    ) -> Result<Arc<dyn ClientCertVerifier>, Error> {
        let make = |ca: &CertificateDer<'_>| {
            let [lists, entries] = self.lists.under(ca, provider);
            let new = || {
                let builder =
                    WebPkiClientVerifier::builder_with_provider(store(ca)?, Arc::clone(provider));
                Ok::<_, Error>(with(builder))
            };
            let mut builder = new()?.with_crls(lists.clone());
            if !lists.is_empty() {
                builder = builder.enforce_revocation_expiration();
            }
            let one = |list| {
                new()?.with_crls([list]).allow_unknown_revocation_status().build().map_err(failed)
            };
            let closed = if self.withdrawn.contains(ca) {
                Some(CertificateError::UnknownIssuer)
            } else {
                (!self.lists.cover(ca, provider))
                    .then_some(CertificateError::UnknownRevocationStatus)
            };
            Ok(Anchor::<dyn ClientCertVerifier> {
                validity: Validity::of(ca)?,
                verifier: builder.build().map_err(failed)?,
                entries: entries.into_iter().map(one).collect::<Result<_, _>>()?,
                closed,
            })
        };
        Ok(Arc::new(Anchors::<dyn ClientCertVerifier>::new(self.cas, make)?))
    }
}

/// A verifier of server certificates under these CAs.
///
/// # Errors
/// A malformed certificate, or no certificate at all.
pub fn server_verifier(
    cas: &[CertificateDer<'_>],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, Error> {
    let make = |ca: &CertificateDer<'_>| {
        let verifier =
            WebPkiServerVerifier::builder_with_provider(store(ca)?, Arc::clone(provider))
                .build()
                .map_err(failed)?;
        Ok(Anchor::<dyn ServerCertVerifier> {
            validity: Validity::of(ca)?,
            verifier,
            entries: Vec::new(),
            closed: None,
        })
    };
    Ok(Arc::new(Anchors::<dyn ServerCertVerifier>::new(cas, make)?))
}

impl ClientCertVerifier for Anchors<dyn ClientCertVerifier> {
    fn offer_client_auth(&self) -> bool {
        self.schemes.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.schemes.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.names
    }

    fn verify_client_cert(
        &self,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.hold(now, |verifier| verifier.verify_client_cert(leaf, between, now))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.schemes.verify_tls12_signature(message, leaf, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.schemes.verify_tls13_signature(message, leaf, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.supported_verify_schemes()
    }
}

impl ServerCertVerifier for Anchors<dyn ServerCertVerifier> {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.hold(now, |verifier| verifier.verify_server_cert(leaf, between, name, ocsp, now))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.schemes.verify_tls12_signature(message, leaf, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.schemes.verify_tls13_signature(message, leaf, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.supported_verify_schemes()
    }
}
