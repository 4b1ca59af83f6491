//! TLS: version 1.3 only, client certificates of the configured CA, revocation lists.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::{ConfigBuilder, ServerConfig, WantsVerifier};
use shef_files as files;
use x509_cert::crl::CertificateList;
use x509_cert::der::Decode as _;
use x509_cert::der::oid::db::rfc5280::{ID_KP_CLIENT_AUTH, ID_KP_SERVER_AUTH};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, SubjectAltName,
    SubjectKeyIdentifier,
};
use zeroize::Zeroizing;

use crate::config::{ClientAuth, Tls, same_file};
use crate::problem::{Kind, Problem, Result};
use crate::time::{self, DAY};

fn cannot(path: &Path, error: impl std::fmt::Display) -> Problem {
    Kind::Material.because(format!("{}: {error}", path.display()))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let pem = read(path)?;
    let list: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| cannot(path, error))?;
    if list.is_empty() { Err(cannot(path, "no certificate in PEM")) } else { Ok(list) }
}

/// The first certificate of a file.
fn first(path: &Path) -> Result<x509_cert::Certificate> {
    let first = certificates(path)?.remove(0);
    x509_cert::Certificate::from_der(&first).map_err(|error| cannot(path, error))
}

/// When a certificate expires, in seconds since 1970.
///
/// # Errors
/// Not a certificate.
pub fn not_after(path: &Path) -> Result<i64> {
    Ok(first(path)?.tbs_certificate().validity().not_after.to_unix_duration().as_secs() as i64)
}

/// The keys that issued and hold a certificate, and its serial number. Names would not do: every CA
/// of `init` has the same name.
pub struct Names {
    /// Identifier of the issuer's key.
    pub issuer: Option<Vec<u8>>,
    /// Identifier of the certificate's own key, for a CA.
    pub subject: Option<Vec<u8>>,
    /// Serial number.
    pub serial: Vec<u8>,
    /// Whether a client may show it.
    pub client: bool,
}

/// The identifiers in the certificate of a file.
///
/// # Errors
/// Not one certificate.
pub(crate) fn only_names(path: &Path) -> Result<Names> {
    let pem = read(path)?;
    match CertificateDer::pem_slice_iter(&pem).count() {
        0 | 1 => names_in(path, &pem),
        count => {
            let text = format!("expected one certificate, found {count}: put each in its own file");
            Err(cannot(path, text))
        }
    }
}

/// The identifiers in the first certificate of a file's content.
///
/// # Errors
/// Not a certificate.
pub(crate) fn names_in(path: &Path, pem: &[u8]) -> Result<Names> {
    let der = CertificateDer::from_pem_slice(pem).map_err(|error| cannot(path, error))?;
    let certificate =
        x509_cert::Certificate::from_der(&der).map_err(|error| cannot(path, error))?;
    let tbs = certificate.tbs_certificate();
    let issuer =
        tbs.get_extension::<AuthorityKeyIdentifier>().map_err(|error| cannot(path, error))?;
    let subject =
        tbs.get_extension::<SubjectKeyIdentifier>().map_err(|error| cannot(path, error))?;
    let usage = tbs.get_extension::<ExtendedKeyUsage>().map_err(|error| cannot(path, error))?;
    Ok(Names {
        issuer: issuer.and_then(|(_, id)| id.key_identifier).map(|id| id.as_bytes().to_vec()),
        subject: subject.map(|(_, id)| id.0.as_bytes().to_vec()),
        serial: tbs.serial_number().as_bytes().to_vec(),
        client: usage.is_none_or(|(_, usage)| usage.0.contains(&ID_KP_CLIENT_AUTH)),
    })
}

fn read(path: &Path) -> Result<Vec<u8>> {
    files::regular::open(path)
        .and_then(|file| files::contents(&file))
        .map_err(|error| cannot(path, error))
}

/// The revocation lists in the content of a file, at least one.
fn lists(path: &Path, pem: &[u8]) -> Result<Vec<CertificateRevocationListDer<'static>>> {
    let list: Vec<_> = CertificateRevocationListDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| cannot(path, error))?;
    if list.is_empty() { Err(cannot(path, "no revocation list in PEM")) } else { Ok(list) }
}

/// The revocation lists in a file, parsed. Their signatures are not verified.
///
/// # Errors
/// Not revocation lists.
pub fn revocations(path: &Path) -> Result<Vec<CertificateList>> {
    revocations_in(path, &read(path)?)
}

/// Like [`revocations`], from the content of the file.
///
/// # Errors
/// Not revocation lists.
pub(crate) fn revocations_in(path: &Path, pem: &[u8]) -> Result<Vec<CertificateList>> {
    lists(path, pem)?
        .iter()
        .map(|der| CertificateList::from_der(der).map_err(|error| cannot(path, error)))
        .collect()
}

/// When the configured certificates and lists expire, in seconds since 1970, by name: the server's
/// certificate, the first CA of clients, the first list.
///
/// # Errors
/// A file has no certificate or list.
pub fn ends(tls: &Tls) -> Result<Vec<(&'static str, i64)>> {
    let mut ends = vec![("server", not_after(&tls.certificate)?)];
    if tls.client_auth != ClientAuth::Off {
        for der in certificates(&tls.client_ca)? {
            let ca = x509_cert::Certificate::from_der(&der)
                .map_err(|error| cannot(&tls.client_ca, error))?;
            ends.push((
                "client-ca",
                ca.tbs_certificate().validity().not_after.to_unix_duration().as_secs() as i64,
            ));
        }
    }
    for path in &tls.crls {
        let next = revocations(path)?.into_iter().filter_map(|list| list.tbs_cert_list.next_update);
        ends.extend(next.map(|end| ("crl", end.to_unix_duration().as_secs() as i64)));
    }
    Ok(ends)
}

/// The server's TLS configuration, and the verifier of client certificates.
pub struct Material {
    /// For new connections.
    pub config: Arc<ServerConfig>,
    /// The permitted clients; `None` if client certificates are off.
    clients: Option<Clients>,
}

/// The clients whose certificates are accepted.
struct Clients {
    cas: Vec<CertificateDer<'static>>,
    /// Its revocation lists and whether certificates are required.
    tls: Tls,
    verifier: Arc<dyn ClientCertVerifier>,
}

impl Clients {
    /// Reads the lists.
    fn new(cas: Vec<CertificateDer<'static>>, tls: Tls) -> Result<Self> {
        let mut crls = Vec::new();
        for path in &tls.crls {
            crls.extend(lists(path, &read(path)?)?);
        }
        // With lists, a client whose CA has no list is rejected, and so is every client once a list
        // has expired.
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = shef_tls::client_verifier(&cas, &provider, |mut verifier| {
            verifier = verifier.with_crls(crls.clone());
            if !tls.crls.is_empty() {
                verifier = verifier.enforce_revocation_expiration();
            }
            if tls.client_auth == ClientAuth::Optional {
                verifier = verifier.allow_unauthenticated();
            }
            verifier
        });
        let verifier = verifier.map_err(|error| cannot(&tls.client_ca, error))?;
        Ok(Self { cas, tls, verifier })
    }
}

impl Material {
    /// Whether a client's certificates would be accepted now: for connections that were made under
    /// another configuration, and for resumed ones.
    #[must_use]
    pub fn accepts(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((own, others)) = chain.split_first() else { return false };
        self.clients.as_ref().is_some_and(|clients| {
            clients.verifier.verify_client_cert(own, others, UnixTime::now()).is_ok()
        })
    }

    /// The same server certificate, with the present content of the revocation lists and those of a
    /// new configuration, and without the CAs of clients that it does not name. `None` if there are
    /// no lists and all these CAs.
    ///
    /// # Errors
    /// A list cannot be used.
    pub fn narrowed(&self, new: Option<&Tls>) -> Result<Option<Arc<Self>>> {
        let Some(clients) = &self.clients else { return Ok(None) };
        let (mut cas, mut tls) = (clients.cas.clone(), clients.tls.clone());
        for list in new.map_or(&[][..], |new| &new.crls) {
            if !tls.crls.iter().any(|known| same_file(known, list)) {
                tls.crls.push(list.clone());
            }
        }
        if let Some(named) = new.and_then(|new| certificates(&new.client_ca).ok()) {
            cas.retain(|ca| named.contains(ca));
            if cas.is_empty() {
                cas = named;
            }
        }
        if tls.crls.is_empty() && cas == clients.cas {
            return Ok(None);
        }
        let clients = Clients::new(cas, tls)?;
        let config = builder()
            .map_err(|error| Kind::Material.because(error.to_string()))?
            .with_client_cert_verifier(Arc::clone(&clients.verifier))
            .with_cert_resolver(Arc::clone(&self.config.cert_resolver));
        Ok(Some(Self::of(config, Some(clients))))
    }

    fn of(mut config: ServerConfig, clients: Option<Clients>) -> Arc<Self> {
        // HTTP/1.1 only: requests are small, and one protocol is less to get wrong.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(Self { config: Arc::new(config), clients })
    }
}

fn builder() -> Result<ConfigBuilder<ServerConfig, WantsVerifier>, rustls::Error> {
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
}

/// Checks that clients can accept a server certificate: they reject a certificate outside its
/// validity, of a CA, without a host name, or for another purpose.
fn fit_for_clients(certificate: &x509_cert::Certificate, now: i64) -> Result<(), String> {
    let tbs = certificate.tbs_certificate();
    let seconds = |time: x509_cert::time::Time| time.to_unix_duration().as_secs() as i64;
    let (start, end) = (seconds(tbs.validity().not_before), seconds(tbs.validity().not_after));
    if end <= now {
        return Err(format!(
            "the certificate ended {} days ago; issue a new one",
            (now - end) / DAY
        ));
    }
    if start > now {
        let start = time::text(start);
        return Err(format!(
            "the validity of the certificate starts at {start}, and clients refuse it until then; is a clock wrong?"
        ));
    }
    let malformed = |error: x509_cert::der::Error| error.to_string();
    if tbs
        .get_extension::<BasicConstraints>()
        .map_err(malformed)?
        .is_some_and(|(_, constraints)| constraints.ca)
    {
        return Err(
            "the certificate is one of a CA (CA:TRUE), and clients refuse it; expected a server's certificate that a CA issued".into()
        );
    }
    let names = tbs.get_extension::<SubjectAltName>().map_err(malformed)?;
    let hosts = names.iter().flat_map(|(_, names)| &names.0);
    if !hosts
        .into_iter()
        .any(|name| matches!(name, GeneralName::DnsName(_) | GeneralName::IpAddress(_)))
    {
        return Err("the certificate names no host (subjectAltName), and clients refuse it; expected a DNS name or an address".into());
    }
    if tbs
        .get_extension::<ExtendedKeyUsage>()
        .map_err(malformed)?
        .is_some_and(|(_, usage)| !usage.0.contains(&ID_KP_SERVER_AUTH))
    {
        return Err("the purpose of the certificate (extendedKeyUsage) is not serverAuth, and clients refuse it".into());
    }
    Ok(())
}

/// The server's TLS configuration from the configured files.
///
/// # Errors
/// A file is missing, not PEM, does not match its key, is accessible to others, or no client would
/// accept the certificate.
pub fn server(tls: &Tls, now: i64) -> Result<Arc<Material>> {
    use std::os::unix::fs::PermissionsExt as _;
    let file = files::regular::open(&tls.key).map_err(|error| cannot(&tls.key, error))?;
    let mode =
        file.metadata().map_err(|error| cannot(&tls.key, error))?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(Kind::Permissions
            .because(format!("{}: mode is {mode:03o}, expected 600", tls.key.display())));
    }
    let chain = certificates(&tls.certificate)?;
    fit_for_clients(&first(&tls.certificate)?, now)
        .map_err(|what| cannot(&tls.certificate, what))?;
    let pem = Zeroizing::new(files::contents(&file).map_err(|error| cannot(&tls.key, error))?);
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| cannot(&tls.key, error))?;
    let builder = builder().map_err(|error| cannot(&tls.certificate, error))?;
    let (builder, clients) = if tls.client_auth == ClientAuth::Off {
        (builder.with_no_client_auth(), None)
    } else {
        let clients = Clients::new(certificates(&tls.client_ca)?, tls.clone())?;
        (builder.with_client_cert_verifier(Arc::clone(&clients.verifier)), Some(clients))
    };
    let fits = builder.with_single_cert(chain, key);
    let config = fits.map_err(|error| {
        cannot(&tls.certificate, format!("with the key {}: {error}", tls.key.display()))
    })?;
    Ok(Material::of(config, clients))
}
