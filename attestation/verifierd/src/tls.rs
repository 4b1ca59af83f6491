//! TLS: version 1.3 only, client certificates of the configured CA, revocation lists.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, UnixTime};
use rustls::server::WantsServerCert;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ConfigBuilder, ServerConfig, WantsVerifier};
use shef_console::applied;
use shef_files as files;
use shef_tls::{List, Lists};
use x509_cert::der::Decode as _;
use x509_cert::der::oid::db::rfc5280::{ID_KP_CLIENT_AUTH, ID_KP_SERVER_AUTH};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{BasicConstraints, ExtendedKeyUsage, SubjectAltName};
use zeroize::Zeroizing;

use crate::config::{ClientAuth, Tls, same_file};
use crate::problem::{Because, Kind, Problem, Result};
use crate::secrets::open_private;
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

/// The only certificate of a file, in DER.
///
/// # Errors
/// Not one certificate.
pub(crate) fn only_certificate(path: &Path) -> Result<CertificateDer<'static>> {
    let mut all = certificates(path)?;
    if all.len() > 1 {
        let count = all.len();
        let text = format!("expected one certificate, found {count}: put each in its own file");
        return Err(cannot(path, text));
    }
    Ok(all.remove(0))
}

/// The serial number of a certificate, and whether a client may show it.
///
/// # Errors
/// Not a certificate.
pub(crate) fn serial_of_client(path: &Path, der: &CertificateDer<'_>) -> Result<(Vec<u8>, bool)> {
    let certificate = x509_cert::Certificate::from_der(der).map_err(|error| cannot(path, error))?;
    let tbs = certificate.tbs_certificate();
    let usage = tbs.get_extension::<ExtendedKeyUsage>().map_err(|error| cannot(path, error))?;
    let client = usage.is_none_or(|(_, usage)| usage.0.contains(&ID_KP_CLIENT_AUTH));
    Ok((tbs.serial_number().as_bytes().to_vec(), client))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    files::open_linked(path)
        .and_then(|file| files::contents(&file))
        .map_err(|error| cannot(path, error))
}

/// The revocation lists in the content of a file, at least one.
///
/// # Errors
/// No revocation lists.
pub(crate) fn lists_in(
    path: &Path,
    pem: &[u8],
) -> Result<Vec<CertificateRevocationListDer<'static>>> {
    let list: Vec<_> = CertificateRevocationListDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|error| cannot(path, error))?;
    if list.is_empty() { Err(cannot(path, "no revocation list in PEM")) } else { Ok(list) }
}

/// What revocation lists in files hold.
#[derive(Default)]
struct ReadLists {
    /// The usable lists, each with its file.
    good: Vec<(PathBuf, List)>,
    /// The problems of the other lists.
    bad: Vec<Problem>,
    /// The files that have only usable lists, with the [`digest`](applied::digest) of each.
    whole: Vec<(PathBuf, String)>,
}

/// Reads the revocation lists in these files. `ca` is any CA of clients.
fn read_lists(paths: &[PathBuf], ca: &CertificateDer<'_>) -> ReadLists {
    let mut read_lists = ReadLists::default();
    for path in paths {
        let problems = read_lists.bad.len();
        match read(path).and_then(|pem| Ok((lists_in(path, &pem)?, applied::digest(&pem)))) {
            Ok((lists, digest)) => {
                for der in lists {
                    match List::new(der, ca) {
                        Ok(list) => read_lists.good.push((path.clone(), list)),
                        Err(error) => read_lists.bad.push(cannot(path, error)),
                    }
                }
                if read_lists.bad.len() == problems {
                    read_lists.whole.push((path.clone(), digest));
                }
            }
            Err(problem) => read_lists.bad.push(problem),
        }
    }
    read_lists
}

/// The files whose revocation lists no CA of clients issued.
///
/// # Errors
/// A file has no certificate.
pub fn foreign_lists(tls: &Tls) -> Result<Vec<PathBuf>> {
    if tls.client_auth == ClientAuth::Off {
        return Ok(Vec::new());
    }
    let cas = certificates(&tls.client_ca)?;
    let foreign = |list: &List| !cas.iter().any(|ca| list.is_of(ca, &provider()));
    let lists = read_lists(&tls.crls, &cas[0]).good;
    let mut files: Vec<_> =
        lists.into_iter().filter(|(_, list)| foreign(list)).map(|(path, _)| path).collect();
    files.dedup();
    Ok(files)
}

/// When the configured certificates and lists expire, in seconds since 1970, by name: the server's
/// certificate, the CAs of clients, the newest list of each issuer.
///
/// # Errors
/// A file has no certificate or list.
pub fn ends(tls: &Tls) -> Result<Vec<(&'static str, i64)>> {
    let mut ends = vec![("server", not_after(&tls.certificate)?)];
    if tls.client_auth == ClientAuth::Off {
        return Ok(ends);
    }
    let cas = certificates(&tls.client_ca)?;
    for der in &cas {
        let ca =
            x509_cert::Certificate::from_der(der).map_err(|error| cannot(&tls.client_ca, error))?;
        ends.push((
            "client-ca",
            ca.tbs_certificate().validity().not_after.to_unix_duration().as_secs() as i64,
        ));
    }
    let ReadLists { good: lists, bad, .. } = read_lists(&tls.crls, &cas[0]);
    if let Some(problem) = bad.into_iter().next() {
        return Err(problem);
    }
    let lists = Lists::default().after(lists.into_iter().map(|(_, list)| list).collect(), true);
    ends.extend(lists.ends().filter_map(|(_, end)| Some(("crl", end? as i64))));
    Ok(ends)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// The server's TLS configuration, and the clients that it accepts.
pub struct Material {
    /// For new connections.
    pub config: Arc<ServerConfig>,
    clients: Clients,
    verifier: Option<Arc<dyn ClientCertVerifier>>,
}

/// The clients that are accepted.
///
/// A reload that is refused only takes rights away ([`narrowed`](Self::narrowed)). One that is not
/// gives and takes what its files say ([`of`](Self::of)), except that it lifts no revocation: that
/// takes a restart.
#[derive(Clone)]
struct Clients {
    /// CAs of client certificates.
    cas: Vec<CertificateDer<'static>>,
    /// Those of them whose certificates are not accepted any more.
    withdrawn: Vec<CertificateDer<'static>>,
    /// Whether connections without a certificate are accepted.
    strangers: bool,
    /// The files of the revocation lists.
    files: Vec<PathBuf>,
    /// Those of them whose lists are all in force, with the digest of the content that is.
    applied: Vec<(PathBuf, String)>,
    lists: Lists,
}

/// What [`Clients::of`] has found.
struct Found {
    clients: Clients,
    /// What the revocation lists in force have, and those of the configuration do not.
    lost: Vec<String>,
}

impl Clients {
    /// The clients of a configuration, and the revocations in force that it would lift.
    ///
    /// # Errors
    /// A file is missing or not PEM, or only some of the CAs have a revocation list.
    fn of(tls: &Tls, held: Option<&Self>) -> Result<Found> {
        let none = Lists::default();
        let before = held.map_or(&none, |held| &held.lists);
        if tls.client_auth == ClientAuth::Off {
            let clients = Self {
                cas: Vec::new(),
                withdrawn: Vec::new(),
                strangers: true,
                files: Vec::new(),
                applied: Vec::new(),
                lists: before.after(Vec::new(), true),
            };
            return Ok(Found { clients, lost: Vec::new() });
        }
        let cas = certificates(&tls.client_ca)?;
        let ReadLists { good: new, bad, whole } = read_lists(&tls.crls, &cas[0]);
        if let Some(problem) = bad.into_iter().next() {
            return Err(problem);
        }
        let new: Vec<List> = new.into_iter().map(|(_, list)| list).collect();
        // A list of a CA that has left, with its clients, has no effect.
        let provider = provider();
        let of = |list: &List, cas: &[CertificateDer<'_>]| {
            cas.iter().any(|ca| list.is_of(ca, &provider))
        };
        let lost = before
            .lost(&new, |list| of(list, &cas) || !held.is_some_and(|held| of(list, &held.cas)));
        let lists = before.after(new, true);
        if let Some(ca) = cas.iter().find(|ca| !lists.cover(ca, &provider)) {
            let name = x509_cert::Certificate::from_der(ca)
                .map_or_else(|_| "a CA".into(), |ca| ca.tbs_certificate().subject().to_string());
            let text = format!(
                "tls.crls has no revocation list that the key of {name} signed, so every client of that CA would be refused; name its list, or take the CA out of the file"
            );
            return Err(cannot(&tls.client_ca, text));
        }
        let clients = Self {
            cas,
            withdrawn: Vec::new(),
            strangers: tls.client_auth == ClientAuth::Optional,
            files: tls.crls.clone(),
            applied: whole,
            lists,
        };
        Ok(Found { clients, lost })
    }

    /// These clients without those that a refused configuration does not accept: every list and
    /// every CA on its own. Also returns the problems of lists, whose last content stays in force.
    fn narrowed(&self, new: Option<&Tls>) -> (Self, Vec<Problem>) {
        let mut all = self.clone();
        for list in new.map_or(&[][..], |new| &new.crls) {
            if !all.files.iter().any(|known| same_file(known, list)) {
                all.files.push(list.clone());
            }
        }
        if let Some(new) = new {
            all.strangers &= new.client_auth != ClientAuth::Required;
            let off = new.client_auth == ClientAuth::Off;
            let named = if off { Some(Vec::new()) } else { certificates(&new.client_ca).ok() };
            if let Some(named) = named {
                let gone = |ca: &&CertificateDer<'static>| {
                    !named.contains(*ca) || self.withdrawn.contains(*ca)
                };
                all.withdrawn = self.cas.iter().filter(gone).cloned().collect();
            }
        }
        let Some(ca) = all.cas.first() else { return (all, Vec::new()) };
        let ReadLists { good, bad, whole } = read_lists(&all.files, ca);
        all.lists = all.lists.after(good.into_iter().map(|(_, list)| list).collect(), false);
        // The last content of the other files stays in force.
        all.applied.retain(|(file, _)| !whole.iter().any(|(new, _)| new == file));
        all.applied.extend(whole);
        (all, bad)
    }

    /// The verifier of certificates; `None` if clients are not asked for any.
    fn verifier(&self) -> Result<Option<Arc<dyn ClientCertVerifier>>, rustls::Error> {
        let all_gone = self.cas.iter().all(|ca| self.withdrawn.contains(ca));
        if self.cas.is_empty() || (all_gone && self.strangers) {
            return Ok(None);
        }
        let Self { cas, withdrawn, strangers, lists, .. } = self;
        let clients = shef_tls::Clients { cas, withdrawn, lists };
        let verifier = clients.verifier(&provider(), |verifier| {
            if *strangers { verifier.allow_unauthenticated() } else { verifier }
        });
        verifier.map(Some)
    }
}

impl Material {
    /// Whether a connection would be accepted now that showed these certificates, or none: for
    /// connections that were made under another configuration, and for resumed ones.
    #[must_use]
    pub fn accepts(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((own, others)) = chain.split_first() else { return self.clients.strangers };
        self.verifier.as_ref().is_some_and(|verifier| {
            verifier.verify_client_cert(own, others, UnixTime::now()).is_ok()
        })
    }

    /// The files of revocation lists, with the version of each that is there now.
    #[must_use]
    pub fn list_files(&self) -> Vec<(PathBuf, Option<files::Stamp>)> {
        self.clients.files.iter().map(|file| (file.clone(), files::stamp(file))).collect()
    }

    /// The files of revocation lists that are in force, with the
    /// [`digest`](shef_console::applied::digest) of the content that is.
    #[must_use]
    pub fn applied(&self) -> &[(PathBuf, String)] {
        &self.clients.applied
    }

    /// The same server certificate, for the clients that are left of the present ones: without those
    /// of revocation lists and, if there is a new configuration, without those that it does not
    /// accept. Also returns the problems of lists, whose last content stays in force.
    ///
    /// # Errors
    /// A certificate of a CA cannot be used.
    pub fn narrowed(&self, new: Option<&Tls>) -> Result<(Arc<Self>, Vec<Problem>)> {
        let (clients, bad) = self.clients.narrowed(new);
        let material = Self::of(clients, |builder| {
            Ok(builder.with_cert_resolver(Arc::clone(&self.config.cert_resolver)))
        });
        Ok((material.map_err(|error| Kind::Material.because(error.to_string()))?, bad))
    }

    /// The TLS configuration after a reload, and a warning for each issuer of revocations that this
    /// configuration would lift: they stay in force until a restart.
    ///
    /// # Errors
    /// As for [`server`].
    pub fn reloaded(&self, tls: &Tls, now: i64) -> Result<(Arc<Self>, Vec<String>)> {
        load(tls, now, Some(&self.clients))
    }

    fn of(
        clients: Clients,
        with: impl FnOnce(
            ConfigBuilder<ServerConfig, WantsServerCert>,
        ) -> Result<ServerConfig, rustls::Error>,
    ) -> Result<Arc<Self>, rustls::Error> {
        let (builder, verifier) = (builder()?, clients.verifier()?);
        let mut config = with(match &verifier {
            Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
            None => builder.with_no_client_auth(),
        })?;
        // HTTP/1.1 only: requests are small, and one protocol is less to get wrong.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(Self { config: Arc::new(config), clients, verifier }))
    }
}

fn builder() -> Result<ConfigBuilder<ServerConfig, WantsVerifier>, rustls::Error> {
    ServerConfig::builder_with_provider(provider())
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
/// A file is missing, not PEM, does not match its key, is accessible to others, no client would
/// accept the certificate, or only some of the CAs have a revocation list.
pub fn server(tls: &Tls, now: i64) -> Result<Arc<Material>> {
    load(tls, now, None).map(|(material, _)| material)
}

fn load(tls: &Tls, now: i64, held: Option<&Clients>) -> Result<(Arc<Material>, Vec<String>)> {
    let file = open_private(&tls.key)?;
    let chain = certificates(&tls.certificate)?;
    fit_for_clients(&first(&tls.certificate)?, now)
        .map_err(|what| cannot(&tls.certificate, what))?;
    let pem = Zeroizing::new(files::contents(&file).map_err(|error| cannot(&tls.key, error))?);
    let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| cannot(&tls.key, error))?;
    let Found { clients, lost } = Clients::of(tls, held)?;
    clients.verifier().map_err(|error| cannot(&tls.client_ca, error))?;
    let material = Material::of(clients, |builder| builder.with_single_cert(chain, key));
    let material = material.map_err(|error| {
        cannot(&tls.certificate, format!("with the key {}: {error}", tls.key.display()))
    })?;
    Ok((material, lost))
}
