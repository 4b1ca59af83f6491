//! The client of a verifier service (`shef-verifierd`): its native API over mutual TLS.
//!
//! The service appraises and releases; the holder of a [`Service`] trusts it as its own verifier. A
//! key counts as released for evidence only under the service's signed receipt, and a box opens
//! only for the requested evidence, challenge and key.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use rustls::pki_types::{CertificateDer, UnixTime};
use serde::Serialize;
use serde::de::DeserializeOwned;
pub use shef_api as api;
use shef_api::{Key, NewVersion, Secret, Verdict};
use shef_device::DeviceError;
use shef_proto::crypto::scrub::{DERIVATION, scrubbed};
use shef_proto::entropy::Entropy;
use shef_proto::evidence::{Evidence, Layer};
use shef_proto::hpke_suite::{PrivateKey, PublicKey, generate_key_pair};
use shef_proto::image::ImageKey;
use shef_proto::receipt::{Head, Receipt};
use shef_proto::release::{Expected, KeyBox, ReleaseInfo};
use shef_remote::TlsFiles;
use shef_tls::Validity;
use shef_verify::{Verified, Vouched};
use ureq::tls::{Certificate, ClientCert, PrivateKey as PemKey, RootCerts, TlsConfig, TlsProvider};
use ureq::unversioned::resolver::DefaultResolver;
use zeroize::Zeroizing;

use super::proxy::{self, Named};
use super::tcp::{CONNECT, connector};
use super::{Appraised, Challenge};
use crate::SdkError;
use crate::entropy::fit_for;
use crate::error::printable;
use crate::host::Host;
use crate::progress::Cancel;
use crate::vendor::Release;

/// Time limit of a whole request.
const REQUEST: Duration = Duration::from_secs(60);
/// Interval at which a waiting request checks for cancellation.
const LOOK: Duration = Duration::from_millis(20);
/// Time limit for each step of the handshake that finds out the reason for a refusal.
const ALERT: Duration = Duration::from_secs(2);
/// Maximum size of an answer, in bytes.
const MAX_ANSWER: u64 = 64 << 20;

/// Entries on a page of a list.
const PAGE: usize = 1000;
/// Limits of a whole list: entries, bytes, and time in requests of the longest kind.
const MOST_ROWS: usize = if cfg!(test) { 10_000 } else { 1_000_000 };
const MOST_BYTES: usize = 512 << 20;
const PAGES_TIME: u32 = if cfg!(test) { 1 } else { 10 };

/// A verifier service, reached with a client certificate.
#[derive(Clone)]
pub struct Service {
    agent: ureq::Agent,
    url: String,
    tls: TlsFiles,
    /// The CAs under which answers are trusted.
    anchors: Vec<(Validity, CertificateDer<'static>)>,
    /// Keys that may sign receipts; if empty, those of the service's own list.
    receipt_keys: Vec<PublicKey>,
    /// Time limit of a request.
    most: Duration,
    cancel: Option<Cancel>,
    /// The proxy in front of the service, if the environment names one.
    proxy: Option<Named>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Service").field(&self.url).finish()
    }
}

/// A challenge of the service, open until it expires.
#[derive(Debug, Clone)]
pub struct ServiceSession {
    token: String,
    layer: Layer,
    challenge: Challenge,
}

impl ServiceSession {
    /// Nonce and audience.
    pub fn challenge(&self) -> &Challenge {
        &self.challenge
    }
}

/// The service's answer to a release.
#[derive(Debug, Clone)]
pub struct Released {
    /// The key in an HPKE box.
    pub key_box: Vec<u8>,
    /// Version of the key.
    pub version: u64,
    /// The signed receipt.
    pub receipt: Vec<u8>,
    /// Head of the tenant's chain of receipts: keep it, because it reveals a truncated chain.
    pub head: Head,
    /// Time until which the same request returns the same box, seconds since 1970.
    pub expires: i64,
}

/// A data key that the service released to this program.
pub struct DataKey {
    /// The key.
    pub secret: Zeroizing<Vec<u8>>,
    /// The evidence for which it was released.
    pub evidence: Vec<u8>,
    /// The challenge that the evidence answers.
    pub challenge: Challenge,
    /// The evidence as the service vouches for it.
    pub verified: Verified,
    /// The receipt, decoded.
    pub receipt: Receipt,
    /// The answer as received.
    pub released: Released,
}

/// The material of a key.
pub enum KeyMaterial<'a> {
    /// These bytes, for the layer `shield`.
    Secret(&'a [u8]),
    /// This number of random bytes, drawn by the service, for the layer `shield`.
    Generate(usize),
    /// The key of an image, for the layer `kernel`.
    Image {
        /// The key.
        key: &'a ImageKey,
        /// Minimum SVN that may be loaded with it.
        min_svn: u64,
        /// The key that signs the vendor's images.
        vendor: &'a PublicKey,
    },
}

/// A new version of a key.
pub struct NewKey<'a> {
    /// Policy, `name` or `name@version`; frozen with this version.
    pub policy: &'a str,
    /// The key.
    pub material: KeyMaterial<'a>,
    /// Maximum number of releases; 0 for no limit.
    pub max_releases: u32,
    /// Start of validity, seconds since 1970.
    pub not_before: i64,
    /// End of validity, seconds since 1970; 0 for no end.
    pub not_after: i64,
}

impl NewKey<'_> {
    fn version(&self) -> NewVersion {
        let hidden = |bytes: &[u8]| Secret::new(B64.encode(bytes));
        let (mut secret, mut generate, mut image) = (None, None, None);
        match &self.material {
            KeyMaterial::Secret(bytes) => secret = Some(hidden(bytes)),
            KeyMaterial::Generate(len) => generate = Some(*len),
            KeyMaterial::Image { key, min_svn, vendor } => {
                image = Some(api::ImageKey {
                    key: hidden(key.expose()),
                    min_svn: *min_svn,
                    vendor: B64.encode(vendor.as_bytes()),
                });
            }
        }
        let Self { max_releases, not_before, not_after, .. } = *self;
        let policy = self.policy.to_owned();
        NewVersion { policy, secret, generate, image, max_releases, not_before, not_after }
    }
}

/// The body of a request that may hold a secret; erased when dropped.
fn secret_body(request: &impl Serialize) -> Result<Zeroizing<Vec<u8>>, SdkError> {
    // Room for the longest secret: a growing buffer leaves copies behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(4096));
    serde_json::to_writer(&mut *bytes, request).map_err(|error| unread(error.to_string()))?;
    Ok(bytes)
}

/// The keys of a verifier service from its `/.well-known/jwks.json`: they verify results and
/// receipts.
///
/// # Errors
/// A description of the defect.
pub fn keys_from_jwks(bytes: &[u8]) -> Result<Vec<PublicKey>, String> {
    let set: api::Jwks = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let coordinate = |name: &str, text: &str| {
        B64.decode(text).map_err(|error| format!("{name} is no base64url without padding: {error}"))
    };
    let point = |key: &api::Jwk| {
        if (key.kty.as_str(), key.crv.as_str()) != ("EC", "P-256") {
            return Err(format!("a key of type {} {}, expected EC P-256", key.kty, key.crv));
        }
        let xy = [coordinate("x", &key.x)?, coordinate("y", &key.y)?].concat();
        let xy: [u8; 64] = xy
            .try_into()
            .map_err(|xy: Vec<u8>| format!("x and y have {} bytes, expected 64", xy.len()))?;
        PublicKey::from_xy(&xy).map_err(|error| error.to_string())
    };
    let keys = set.keys.iter().map(point).collect::<Result<Vec<_>, _>>()?;
    if keys.is_empty() { Err("no key in the set".to_owned()) } else { Ok(keys) }
}

/// A name as a path segment: characters other than letters, digits and `._-@` are percent-encoded.
fn part(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@".contains(&byte);
    name.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Positions of ordered rows: each follows all before it.
fn ordered<R, T: Ord + ToString>(of: impl Fn(&R) -> T) -> impl FnMut(&R) -> (String, bool) {
    let mut last = None;
    move |row| {
        let here = of(row);
        let place = (here.to_string(), last.as_ref().is_none_or(|last| *last < here));
        last = Some(here);
        place
    }
}

/// Positions of keys in the order of the service's database, which may depend on a locale: no name
/// occurs twice.
fn distinct() -> impl FnMut(&Key) -> (String, bool) {
    let mut seen = HashSet::new();
    move |key| (key.name.clone(), seen.insert(key.name.clone()))
}

fn unread(what: impl Into<String>) -> SdkError {
    SdkError::ServiceAnswer { what: what.into() }
}

fn unbase64(what: &str, text: &str) -> Result<Vec<u8>, SdkError> {
    // The service's nonces decode the same in both alphabets.
    B64.decode(text.trim_end_matches('=')).map_err(|_| unread(format!("{what} is not base64")))
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    let mut out = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        let nibble = |digit: u8| char::from(digit).to_digit(16);
        *byte = (nibble(pair[0])? << 4 | nibble(pair[1])?) as u8;
    }
    Some(out)
}

/// A CA file that contains no CA that is valid for the service now.
fn no_ca(tls: &TlsFiles, error: &rustls::Error) -> SdkError {
    let message = format!("TLS file {}: a CA in it: {error}", tls.ca.display());
    DeviceError::Transport { code: shef_remote::wire::codes::TLS_FILES, message }.into()
}

/// A request with this time limit.
fn timed<B: ureq::AsSendBody>(
    agent: &ureq::Agent,
    request: ureq::http::Request<B>,
    most: Duration,
) -> ureq::http::Request<B> {
    agent.configure_request(request).timeout_global(Some(most)).build()
}

/// Whether a request that was answered may be sent again: the same evidence in the same session has
/// the same answer, with the same box.
fn is_repeatable(method: &str, path: &str) -> bool {
    method == "GET" || ["/v1/sessions", "/v1/appraise", "/v1/release"].contains(&path)
}

/// Whether the connection ended before the answer, and not by an alert of TLS.
fn is_cut(error: &ureq::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(error, ureq::Error::Io(error) if tls_error(error).is_none()
        && matches!(error.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof))
}

impl Service {
    /// The service at `url` (`https://HOST:PORT`), with a client certificate of its CA. Sends
    /// nothing yet.
    ///
    /// # Errors
    /// [`SdkError::ServiceUrl`], and unusable files, such as expired CAs.
    pub fn new(url: &str, tls: TlsFiles) -> Result<Self, SdkError> {
        let url = url.trim_end_matches('/');
        let host = url
            .strip_prefix("https://")
            .filter(|host| !host.is_empty() && !host.contains(['/', '?', '#', '@']));
        let Some(uri) = host.and_then(|_| url.parse().ok()) else {
            return Err(SdkError::ServiceUrl { url: url.to_owned() });
        };
        // Reports which file is wrong, and checks that key and certificate belong together.
        tls.load()?;
        // CAs that are valid now; if none is, the last error.
        let (mut anchors, mut refused) = (Vec::new(), None);
        for ca in shef_remote::certificates(&tls.ca)? {
            match Validity::of(&ca)
                .and_then(|validity| validity.check(UnixTime::now()).map(|()| validity))
            {
                Ok(validity) => anchors.push((validity, ca)),
                Err(error) => refused = Some(error),
            }
        }
        if let Some(error) = refused.filter(|_| anchors.is_empty()) {
            return Err(no_ca(&tls, &error));
        }
        let proxy = proxy::for_service(&uri)?;
        let agent = Self::agent(&tls, anchors.iter().map(|(_, ca)| ca), proxy.as_ref())?;
        Ok(Self {
            agent,
            url: url.to_owned(),
            tls,
            anchors,
            receipt_keys: Vec::new(),
            most: REQUEST,
            cancel: None,
            proxy,
        })
    }

    /// An HTTP client that trusts these CAs.
    fn agent<'a>(
        tls: &TlsFiles,
        cas: impl Iterator<Item = &'a CertificateDer<'static>>,
        proxy: Option<&Named>,
    ) -> Result<ureq::Agent, SdkError> {
        let certificate = |der: &CertificateDer<'static>| Certificate::from_der(der).to_owned();
        let key = shef_files::contents(&shef_remote::open_key(&tls.key)?)
            .map_err(|error| SdkError::key_file(&tls.key, &error))?;
        let key = PemKey::from_pem(&Zeroizing::new(key)).map_err(|_| SdkError::KeyFormat {
            path: tls.key.clone(),
            reason: "no private key in PEM".into(),
        })?;
        let own: Vec<_> = shef_remote::certificates(&tls.cert)?.iter().map(certificate).collect();
        let config = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(
                rustls::crypto::aws_lc_rs::default_provider(),
            ))
            .root_certs(RootCerts::new_with_certs(&cas.map(certificate).collect::<Vec<_>>()))
            .client_cert(Some(ClientCert::new_with_certs(&own, key)))
            .build();
        let config = ureq::Agent::config_builder()
            .tls_config(config)
            .proxy(proxy.map(|named| named.proxy.clone()))
            .https_only(true)
            .http_status_as_error(false)
            .max_redirects(0)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(REQUEST))
            .build();
        Ok(ureq::Agent::with_parts(config, connector(), DefaultResolver::default()))
    }

    /// Trusts only receipts of these keys; without any, those of the service's own list.
    #[must_use]
    pub fn with_receipt_keys(mut self, keys: &[PublicKey]) -> Self {
        if !keys.is_empty() {
            self.receipt_keys = keys.to_vec();
        }
        self
    }

    /// Sets the time limit of each request; the default is a minute.
    #[must_use]
    pub fn with_deadline(mut self, most: Duration) -> Self {
        self.most = most;
        self
    }

    /// Ends requests with [`SdkError::ServiceEnded`] when `cancel` is cancelled.
    #[must_use]
    pub fn ended_by(mut self, cancel: &Cancel) -> Self {
        self.cancel = Some(cancel.clone());
        self
    }

    /// Its address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The same service over separate connections, which close with it: a connection keeps the last
    /// data sent in its buffers, and that will be a secret.
    fn apart(&self) -> Result<Self, SdkError> {
        let agent =
            Self::agent(&self.tls, self.anchors.iter().map(|(_, ca)| ca), self.proxy.as_ref())?;
        Ok(Self { agent, ..self.clone() })
    }

    /// Sends a request and reads the answer, unless `cancel` ends it first.
    fn send(
        &self,
        method: &'static str,
        path: &str,
        content_type: &'static str,
        body: Option<&[u8]>,
    ) -> Result<Vec<u8>, SdkError> {
        let Some(cancel) = &self.cancel else {
            return self.exchange(method, path, content_type, body);
        };
        let ended = || SdkError::ServiceEnded { url: self.url.clone() };
        if cancel.is_cancelled() {
            return Err(ended());
        }
        // The blocking call stays behind on a separate thread, which ends with the request's time
        // limit.
        let (answer, answered) = mpsc::channel();
        let (service, path, body) =
            (self.clone(), path.to_owned(), body.map(|body| Zeroizing::new(body.to_vec())));
        std::thread::Builder::new()
            .name("shef-service".to_owned())
            .spawn(move || {
                answer.send(service.exchange(
                    method,
                    &path,
                    content_type,
                    body.as_deref().map(Vec::as_slice),
                ))
            })
            .map_err(|error| SdkError::ServiceUnreachable {
                url: self.url.clone(),
                reason: error.to_string(),
            })?;
        loop {
            match answered.recv_timeout(LOOK) {
                Ok(answer) => return answer,
                Err(mpsc::RecvTimeoutError::Timeout) if cancel.is_cancelled() => {
                    return Err(ended());
                }
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Err(mpsc::RecvTimeoutError::Disconnected) => return Err(SdkError::WorkerGone),
            }
        }
    }

    fn exchange(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Option<&[u8]>,
    ) -> Result<Vec<u8>, SdkError> {
        // The HTTP client checks the validity of the service's certificate, but not that of its CA.
        let now = UnixTime::now();
        let valid =
            |(validity, _): &&(Validity, CertificateDer<'static>)| validity.check(now).is_ok();
        let still;
        let agent = match self.anchors.iter().try_for_each(|(validity, _)| validity.check(now)) {
            Ok(()) => &self.agent,
            Err(error) if self.anchors.iter().filter(valid).count() == 0 => {
                return Err(no_ca(&self.tls, &error));
            }
            // A CA that has expired since then does not affect the others.
            Err(_) => {
                still = Self::agent(
                    &self.tls,
                    self.anchors.iter().filter(valid).map(|(_, ca)| ca),
                    self.proxy.as_ref(),
                )?;
                &still
            }
        };
        let begun = Instant::now();
        let attempt = || {
            let most = self.most.saturating_sub(begun.elapsed());
            let request =
                ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.url));
            let mut answer = match body {
                None => agent.run(timed(agent, request.body(())?, most))?,
                Some(body) => {
                    let request = request.header("content-type", content_type).body(body)?;
                    agent.run(timed(agent, request, most))?
                }
            };
            let bytes = answer.body_mut().with_config().limit(MAX_ANSWER).read_to_vec()?;
            Ok::<_, ureq::Error>((answer.status().as_u16(), bytes))
        };
        // A service that stops, or is replaced, may end the connection before its answer.
        let answered = match attempt() {
            Err(error) if is_repeatable(method, path) && is_cut(&error) => attempt(),
            answered => answered,
        };
        let (status, bytes) = answered.map_err(|error| self.trouble(error))?;
        if (200..300).contains(&status) {
            return Ok(bytes);
        }
        let problem: api::Problem = serde_json::from_slice(&bytes).map_err(|_| {
            unread(format!("{} answers {method} {path} with status {status} and no code", self.url))
        })?;
        // The answer to an earlier request of the same content, which may have been lost.
        let kept = problem.finding.kept;
        if let Some(kept) = kept.as_ref().filter(|kept| kept.verdict == Verdict::Accepted) {
            return serde_json::to_vec(kept).map_err(|error| unread(error.to_string()));
        }
        let appraisal = problem.finding.appraisal.or(kept.map(|kept| kept.appraisal));
        let failed = appraisal
            .and_then(|appraisal| appraisal.checks.into_iter().find(|check| !check.passed));
        let text = printable(&problem.detail);
        Err(match failed {
            Some(check) => SdkError::Denied { code: printable(&check.code), text },
            None => SdkError::Refused { code: printable(&problem.code), text, status },
        })
    }

    fn json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, SdkError> {
        let bytes = if bytes.is_empty() { b"null" } else { bytes };
        serde_json::from_slice(bytes).map_err(|error| unread(error.to_string()))
    }

    /// Posts a JSON document to `path`.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, SdkError> {
        let body = serde_json::to_vec(body).map_err(|error| unread(error.to_string()))?;
        Self::json(&self.send("POST", path, "application/json", Some(&body))?)
    }

    /// Classifies a failed exchange, by the party that must act.
    fn trouble(&self, error: ureq::Error) -> SdkError {
        use rustls::{AlertDescription as A, CertificateError as C, Error as E};
        let url = self.url.clone();
        let found = match &error {
            ureq::Error::Rustls(error) => Some(error.clone()),
            // The service may close before its alert is read: try once more, without a request.
            ureq::Error::Io(error) => match tls_error(error) {
                None if self.proxy.is_none()
                    && !matches!(
                        error.kind(),
                        io::ErrorKind::ConnectionRefused
                            | io::ErrorKind::NotFound
                            | io::ErrorKind::TimedOut
                    ) =>
                {
                    self.handshake()
                }
                found => found,
            },
            _ => None,
        };
        match found {
            Some(E::InvalidCertificate(C::Expired | C::ExpiredContext { .. })) => {
                SdkError::ServiceExpired { url, state: "has expired" }
            }
            Some(E::InvalidCertificate(C::NotValidYet | C::NotValidYetContext { .. })) => {
                SdkError::ServiceExpired { url, state: "is not valid yet" }
            }
            Some(E::InvalidCertificate(reason)) => SdkError::ServiceCertificate {
                url,
                ca: self.tls.ca.clone(),
                reason: E::InvalidCertificate(reason).to_string(),
            },
            Some(E::AlertReceived(alert)) => {
                let reason = match alert {
                    // The same alert covers a certificate that is not valid yet.
                    A::CertificateExpired => {
                        "by the service's clock it has expired, or is not valid yet: is a clock wrong?"
                    }
                    A::CertificateRevoked => "it was revoked",
                    A::UnknownCA => {
                        "its CA is none of the service's, or the service's revocation list is past its end"
                    }
                    A::CertificateRequired => "the service wants one",
                    A::BadCertificate
                    | A::CertificateUnknown
                    | A::UnsupportedCertificate
                    | A::DecryptError
                    | A::AccessDenied => "the service does not take it",
                    other => {
                        return SdkError::ServiceUnreachable {
                            url,
                            reason: format!("TLS alert {other:?}"),
                        };
                    }
                };
                SdkError::ClientCertificate { path: self.tls.cert.clone(), url, reason }
            }
            Some(other) => SdkError::ServiceUnreachable { url, reason: other.to_string() },
            None => match &self.proxy {
                Some(Named { name, .. }) => SdkError::Proxy {
                    name: name.clone(),
                    reason: format!("no way to {url} through it: {error}"),
                },
                None => SdkError::ServiceUnreachable { url, reason: error.to_string() },
            },
        }
    }

    /// A bare handshake: returns the alert that the service answers it with, if there is one.
    fn handshake(&self) -> Option<rustls::Error> {
        use std::io::Read as _;
        let mut config = (*self.tls.load().ok()?).clone();
        config.alpn_protocols.clear();
        let uri: ureq::http::Uri = self.url.parse().ok()?;
        let host = uri.host()?.trim_matches(['[', ']']).to_owned();
        let stream = shef_remote::connect(
            &host,
            uri.port_u16().unwrap_or(443),
            std::time::Instant::now() + ALERT,
        )
        .ok()?;
        stream.set_read_timeout(Some(ALERT)).ok()?;
        stream.set_write_timeout(Some(ALERT)).ok()?;
        let connection =
            rustls::ClientConnection::new(Arc::new(config), host.try_into().ok()?).ok()?;
        rustls::StreamOwned::new(connection, stream)
            .read(&mut [0])
            .err()
            .and_then(|error| tls_error(&error))
    }

    /// The JSON document at `path`, as specified in `docs/reference/verifier-api.md`.
    ///
    /// # Errors
    /// Transport errors, and the service's refusals.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, SdkError> {
        Self::json(&self.get_bytes(path)?)
    }

    /// The bytes at `path`.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn get_bytes(&self, path: &str) -> Result<Vec<u8>, SdkError> {
        self.send("GET", path, "", None)
    }

    /// Puts a document of this content type to `path`; the answer is JSON.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn put<T: DeserializeOwned>(
        &self,
        path: &str,
        content_type: &'static str,
        body: &[u8],
    ) -> Result<T, SdkError> {
        Self::json(&self.send("PUT", path, content_type, Some(body))?)
    }

    /// Whether the service is ready, its version, and the expiry of its certificate.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn ready(&self) -> Result<api::Ready, SdkError> {
        self.get("/readyz")
    }

    /// The keys that sign its results and receipts, including retired ones.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn keys_that_sign(&self) -> Result<Vec<PublicKey>, SdkError> {
        keys_from_jwks(&self.get_bytes("/.well-known/jwks.json")?).map_err(unread)
    }

    /// A challenge for evidence of `layer`; data keys are released to `recipient`, a one-time key.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn session(
        &self,
        layer: Layer,
        recipient: Option<&PublicKey>,
    ) -> Result<ServiceSession, SdkError> {
        let recipient = recipient.map(|key| B64.encode(key.as_bytes()));
        let asked = Instant::now();
        let answer: api::Session =
            self.post("/v1/sessions", &api::NewSession { layer: layer.into(), recipient })?;
        let challenge = Challenge::asked(unbase64("nonce", &answer.nonce)?, answer.audience, asked);
        Ok(ServiceSession { token: answer.session, layer, challenge })
    }

    /// Sends evidence for appraisal.
    ///
    /// # Errors
    /// [`SdkError::Denied`] with the first check that failed; and as [`Service::get`].
    pub fn appraise(
        &self,
        session: &ServiceSession,
        evidence: &[u8],
        policy: Option<&str>,
    ) -> Result<api::Appraised, SdkError> {
        let submission = api::Submission {
            evidence: B64.encode(evidence),
            session: Some(session.token.clone()),
            nonce: None,
            layer: None,
            policy: policy.map(str::to_owned),
            aud: None,
        };
        let answer: api::Appraised = self.post("/v1/appraise", &submission)?;
        // Evidence that is denied is answered with an error.
        match answer.verdict {
            Verdict::Accepted => Ok(answer),
            Verdict::Denied => Err(unread("verdict is \"denied\", expected \"accepted\"")),
        }
    }

    /// Requests the release of a key for evidence, in its newest version or in the given one.
    ///
    /// # Errors
    /// [`SdkError::Denied`] with the first check that failed; and as [`Service::get`].
    pub fn release(
        &self,
        session: &ServiceSession,
        key: &str,
        version: Option<u64>,
        evidence: &[u8],
    ) -> Result<Released, SdkError> {
        let request = api::ReleaseRequest {
            key: key.to_owned(),
            version,
            session: session.token.clone(),
            evidence: B64.encode(evidence),
        };
        let answer: api::Released = self.post("/v1/release", &request)?;
        let digest = unhex(&answer.head.digest)
            .ok_or_else(|| unread("the head's digest has not 64 hexadecimal digits"))?;
        Ok(Released {
            key_box: unbase64("box", &answer.r#box)?,
            version: answer.version,
            receipt: unbase64("receipt", &answer.receipt)?,
            head: Head { seq: answer.head.seq, digest },
            expires: answer.expires,
        })
    }

    /// The claims that the service's receipt vouches for. Key, version, receipt, box and head must
    /// all match the request.
    fn vouched(
        &self,
        session: &ServiceSession,
        (key, version): (&str, Option<u64>),
        recipient: Option<&PublicKey>,
        evidence: &[u8],
        released: &Released,
    ) -> Result<(Verified, Receipt), SdkError> {
        let fetched =
            if self.receipt_keys.is_empty() { self.keys_that_sign()? } else { Vec::new() };
        let keys = if self.receipt_keys.is_empty() { &fetched } else { &self.receipt_keys };
        let vouched = Vouched {
            keys,
            layer: session.layer,
            nonce: session.challenge.nonce(),
            key_id: key,
            recipient,
        };
        let (verified, receipt) = vouched.verified(evidence, &released.receipt)?;
        let key_box = KeyBox::from_cbor(&released.key_box)?;
        let info = key_box.info();
        if info.receipt_id != receipt.id {
            return Err(shef_verify::VouchError::Other { what: "box" }.into());
        }
        compare((key, version), verified.digest(), &receipt, info, released)?;
        Ok((verified, receipt))
    }

    /// The kernel round: challenge, evidence of the kernel behind `host`, and the image key `key`
    /// in a box for that kernel.
    ///
    /// # Errors
    /// [`SdkError::Denied`] with the first check that failed; no key is released then.
    /// [`SdkError::OtherRelease`]. Also transport errors.
    pub fn release_image_key(
        &self,
        host: &mut Host,
        key: &str,
        version: Option<u64>,
    ) -> Result<(Release, Released), SdkError> {
        let session = self.session(Layer::Kernel, None)?;
        let evidence = host.kernel_evidence(&session.challenge)?;
        let released = self.release(&session, key, version, &evidence)?;
        let (verified, receipt) =
            self.vouched(&session, (key, version), None, &evidence, &released)?;
        let Verified::Kernel(verified) = verified else {
            return Err(unread("a receipt of another layer"));
        };
        let (key_box, appraised) =
            (released.key_box.clone(), Appraised::ByService { receipt, head: released.head });
        Ok((
            Release { key_box, evidence, challenge: session.challenge, verified, appraised },
            released,
        ))
    }

    /// The Shield round: challenge, evidence of the Shield behind `host`, and the data key `key`,
    /// released to a one-time key of this program.
    ///
    /// # Errors
    /// [`SdkError::Denied`] with the first check that failed; no key is released then.
    /// [`SdkError::OtherRelease`], [`SdkError::Seeded`]. Also transport errors.
    pub fn release_data_key(
        &self,
        host: &mut Host,
        key: &str,
        version: Option<u64>,
        entropy: &mut dyn Entropy,
    ) -> Result<DataKey, SdkError> {
        scrubbed::<DERIVATION, _>(|| self.released_to_us(host, (key, version), entropy))
    }

    /// [`Service::release_data_key`], in a separate stack frame.
    fn released_to_us(
        &self,
        host: &mut Host,
        (key, version): (&str, Option<u64>),
        entropy: &mut dyn Entropy,
    ) -> Result<DataKey, SdkError> {
        let (private, public): (PrivateKey, PublicKey) = generate_key_pair(entropy);
        let session = self.session(Layer::Shield, Some(&public))?;
        let evidence = host.shield_evidence(&session.challenge)?;
        // Checked before anything is released to a key from a seed. The service verifies that the
        // evidence is true.
        let kind = Evidence::parse(&evidence)
            .map(|evidence| evidence.unverified_claims().common.root_of_trust);
        fit_for(entropy, kind.map_err(shef_verify::VouchError::from)?)?;
        let released = self.release(&session, key, version, &evidence)?;
        let (verified, receipt) =
            self.vouched(&session, (key, version), Some(&public), &evidence, &released)?;
        let expected = Expected {
            layer: Layer::Shield,
            evidence_digest: verified.digest(),
            nonce: session.challenge.nonce(),
            key: Some((&receipt.tenant, key)),
        };
        let secret = KeyBox::from_cbor(&released.key_box)?.open(&private, &expected)?;
        Ok(DataKey { secret, evidence, challenge: session.challenge, verified, receipt, released })
    }

    /// Adds a key.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn add_key(
        &self,
        name: &str,
        layer: Layer,
        key: &NewKey<'_>,
    ) -> Result<api::AddedKey, SdkError> {
        let key = api::NewKey::new(layer.into(), api::To::Evidence, key.version());
        Self::json(&self.apart()?.send(
            "PUT",
            &format!("/v1/keys/{}", part(name)),
            "application/json",
            Some(&secret_body(&key)?),
        )?)
    }

    /// Adds the next version of a key.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn rotate_key(&self, name: &str, key: &NewKey<'_>) -> Result<api::AddedKey, SdkError> {
        Self::json(&self.apart()?.send(
            "POST",
            &format!("/v1/keys/{}/rotate", part(name)),
            "application/json",
            Some(&secret_body(&key.version())?),
        )?)
    }

    /// Disables or enables a key, or one version of it.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn switch_key(
        &self,
        name: &str,
        version: Option<u64>,
        enabled: bool,
    ) -> Result<(), SdkError> {
        let path =
            format!("/v1/keys/{}/{}", part(name), if enabled { "enable" } else { "disable" });
        self.post::<()>(&path, &api::Which { version })
    }

    /// Deletes a key, or one version of it that is not the newest.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn delete_key(&self, name: &str, version: Option<u64>) -> Result<(), SdkError> {
        let which = version.map_or_else(String::new, |version| format!("?version={version}"));
        self.send("DELETE", &format!("/v1/keys/{}{which}", part(name)), "", None).map(drop)
    }

    /// The keys, without their secrets.
    ///
    /// # Errors
    /// As [`Service::get`], and [`SdkError::ServiceAnswer`] for an endless list.
    pub fn keys(&self) -> Result<Vec<Key>, SdkError> {
        let rows = |page: &mut api::Keys| std::mem::take(&mut page.keys);
        Ok(self.pages("/v1/keys", rows, distinct(), |_| true)?.0)
    }

    /// The devices for which `wanted` returns true.
    ///
    /// # Errors
    /// As [`Service::keys`].
    pub fn devices(
        &self,
        wanted: impl Fn(&api::Device) -> bool,
    ) -> Result<Vec<api::Device>, SdkError> {
        let rows = |page: &mut api::Devices| std::mem::take(&mut page.devices);
        let place = ordered(|row: &api::Device| row.ueid.clone());
        Ok(self.pages("/v1/devices", rows, place, wanted)?.0)
    }

    /// All stored receipts, in one document in the format of `GET /v1/receipts`: input for `shef
    /// audit verify`.
    ///
    /// # Errors
    /// As [`Service::keys`].
    pub fn receipts(&self) -> Result<api::Receipts, SdkError> {
        let rows = |page: &mut api::Receipts| std::mem::take(&mut page.receipts);
        let place = ordered(|row: &api::Receipt| row.seq);
        let (receipts, page) = self.pages("/v1/receipts", rows, place, |_| true)?;
        Ok(api::Receipts { receipts, ..page })
    }

    /// All events, in one document in the format of `GET /v1/events`: input for `shef audit verify`.
    ///
    /// # Errors
    /// As [`Service::keys`].
    pub fn events(&self) -> Result<api::Events, SdkError> {
        let rows = |page: &mut api::Events| std::mem::take(&mut page.events);
        let place = ordered(|row: &api::Event| row.seq);
        let (events, page) = self.pages("/v1/events", rows, place, |_| true)?;
        Ok(api::Events { events, ..page })
    }

    /// The `wanted` rows of a list from all of its pages, and the last page without its rows.
    /// `rows` takes the rows of a page; `place` returns the value of `after` that follows a row, and
    /// whether the row advances.
    ///
    /// The service controls the size of the list: rows must advance, and their number, their bytes
    /// and the total time are bounded.
    fn pages<P: DeserializeOwned, R>(
        &self,
        path: &str,
        rows: impl Fn(&mut P) -> Vec<R>,
        mut place: impl FnMut(&R) -> (String, bool),
        wanted: impl Fn(&R) -> bool,
    ) -> Result<(Vec<R>, P), SdkError> {
        let refused = |what: String| unread(format!("{} answers GET {path} with {what}", self.url));
        let most = self.most.saturating_mul(PAGES_TIME);
        let begun = Instant::now();
        let (mut all, mut after, mut rows_seen, mut bytes_seen) = (Vec::new(), String::new(), 0, 0);
        loop {
            // The first page has no `after`: an empty number is not a number.
            let behind =
                if after.is_empty() { String::new() } else { format!("&after={}", part(&after)) };
            let bytes = self.get_bytes(&format!("{path}?limit={PAGE}{behind}"))?;
            let mut page: P = Self::json(&bytes)?;
            let rows = rows(&mut page);
            let full = rows.len() >= PAGE;
            rows_seen += rows.len();
            bytes_seen += bytes.len();
            if rows.len() > PAGE {
                return Err(refused(format!(
                    "{} entries on a page, expected at most {PAGE}",
                    rows.len()
                )));
            }
            for row in rows {
                let (here, advances) = place(&row);
                if !advances {
                    let (found, before) = (printable(&here), printable(&after));
                    return Err(refused(format!(
                        "entry {found:?} after entry {before:?}: the list does not advance"
                    )));
                }
                after = here;
                if wanted(&row) {
                    all.push(row);
                }
            }
            if !full {
                return Ok((all, page));
            }
            if rows_seen >= MOST_ROWS || bytes_seen > MOST_BYTES || begun.elapsed() > most {
                let limits =
                    format!("{MOST_ROWS} entries, {MOST_BYTES} bytes and {} s", most.as_secs());
                return Err(refused(format!(
                    "a list that goes on after {rows_seen} entries: the limits are {limits}"
                )));
            }
        }
    }

    /// One key with its versions.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn key(&self, name: &str) -> Result<api::WholeKey, SdkError> {
        self.get(&format!("/v1/keys/{}", part(name)))
    }

    /// Registers a manufacturer's root for one kind of root of trust.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn add_anchor(&self, anchor: &shef_verify::TrustAnchor) -> Result<(), SdkError> {
        let new = api::NewAnchor {
            name: anchor.name().to_owned(),
            kind: anchor.kind().name().to_owned(),
            debug: anchor.debug(),
            certificate: B64.encode(anchor.certificate().der()),
        };
        self.post::<api::AddedAnchor>("/v1/trust-anchors", &new).map(drop)
    }

    /// Adds reference values under an id.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn add_reference(
        &self,
        id: &str,
        reference: &shef_verify::ReferenceValues,
    ) -> Result<(), SdkError> {
        let text = reference.to_toml()?;
        let path = format!("/v1/corims/{}", part(id));
        self.put::<api::AddedCorim>(&path, "application/toml", text.as_bytes()).map(drop)
    }

    /// Permits a signer of CoRIMs, under a name; `signer` is one `[[signer]]` (TOML).
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn add_signer(&self, name: &str, signer: &str) -> Result<(), SdkError> {
        let path = format!("/v1/signers/{}", part(name));
        self.put::<api::AddedSigner>(&path, "application/toml", signer.as_bytes()).map(drop)
    }

    /// Adds the reference values of a signed CoRIM under an id.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn add_corim(&self, id: &str, corim: &[u8]) -> Result<(), SdkError> {
        let path = format!("/v1/corims/{}", part(id));
        self.put::<api::AddedCorim>(&path, "application/rim+cose", corim).map(drop)
    }

    /// Adds the next version of a policy, unless the newest one is the same; returns its
    /// `name@version`.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn add_policy(&self, name: &str, policy: &shef_verify::Policy) -> Result<String, SdkError> {
        let text = policy.to_toml()?;
        let path = format!("/v1/policies/{}", part(name));
        let answer: api::AddedPolicy = self.put(&path, "application/toml", text.as_bytes())?;
        Ok(format!("{name}@{}", answer.version))
    }

    /// Removes a trust anchor, reference values, or a policy that no key names: `kind` is
    /// `trust-anchors`, `corims` or `policies`.
    ///
    /// # Errors
    /// As [`Service::get`].
    pub fn remove(&self, kind: &str, name: &str) -> Result<(), SdkError> {
        self.send("DELETE", &format!("/v1/{kind}/{}", part(name)), "", None).map(drop)
    }
}

/// Checks that all parts of a release match the request: key and version, evidence, receipt, box
/// and head.
fn compare(
    (key, version): (&str, Option<u64>),
    evidence: &[u8; 32],
    receipt: &Receipt,
    info: &ReleaseInfo,
    released: &Released,
) -> Result<(), SdkError> {
    let same = |what, expected: &dyn ToString, found: &dyn ToString| {
        let (expected, found) = (expected.to_string(), printable(&found.to_string()));
        if expected == found {
            Ok(())
        } else {
            Err(SdkError::OtherRelease { what, expected, found })
        }
    };
    same("version", &version.unwrap_or(receipt.key_version), &receipt.key_version)?;
    same("version", &receipt.key_version, &released.version)?;
    same("version in the box", &receipt.key_version, &info.key_version)?;
    same("key in the box", &key, &info.key_id)?;
    same("tenant in the box", &receipt.tenant, &info.tenant)?;
    same(
        "evidence in the box",
        &format!("{evidence:02x?}"),
        &format!("{:02x?}", info.evidence_digest),
    )?;
    // The head is at this receipt, or later if the same release was requested again.
    let Head { seq, digest } = &released.head;
    let head = |expected, found| {
        Err(SdkError::OtherRelease { what: "head of the receipts", expected, found })
    };
    if *seq < receipt.seq {
        return head(format!("{} or later", receipt.seq), seq.to_string());
    }
    if *seq == receipt.seq && *digest != shef_proto::receipt::digest(&released.receipt) {
        return head(format!("the digest of receipt {seq}"), "another digest".to_owned());
    }
    Ok(())
}

/// The TLS error inside an I/O error.
fn tls_error(error: &io::Error) -> Option<rustls::Error> {
    error.get_ref()?.downcast_ref::<rustls::Error>().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn names_stay_one_part_of_a_path() {
        assert_eq!(part("a.b-c_d@2"), "a.b-c_d@2");
        assert_eq!(part("a/b?c#é"), "a%2Fb%3Fc%23%C3%A9");
    }

    #[test]
    fn a_ca_that_has_ended_vouches_for_no_service() {
        use shef_tls::ca::{Ca, Holder, KeyPair, Validity as Days};
        const DAY: i64 = 86_400;
        let dir = tempfile::tempdir().unwrap();
        let now = UnixTime::now().as_secs().cast_signed();
        let write = |name: &str, text: String| {
            let path = dir.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .unwrap();
            path
        };
        let (good, root) = Ca::new("good", KeyPair::generate().unwrap(), now - DAY).unwrap();
        // A CA is valid for 3650 days.
        let old = Ca::new("old", KeyPair::generate().unwrap(), now - 3651 * DAY).unwrap().1;
        let key = KeyPair::generate().unwrap();
        let cert = good
            .issue(Holder::Client { name: "op", uri: None }, &key, Days { from: now, days: 30 })
            .unwrap();
        let (cert, key) = (write("op.pem", cert.pem()), write("op.key", key.serialize_pem()));
        let files =
            |ca: String| TlsFiles { ca: write("ca.pem", ca), cert: cert.clone(), key: key.clone() };
        let url = "https://localhost:1";

        let error = Service::new(url, files(old.pem())).unwrap_err();
        assert!(error.code() == "SHEF-AGT-003" && error.to_string().contains("ca.pem"), "{error}");
        let mut service = Service::new(url, files(old.pem() + &root.pem())).unwrap();
        assert_eq!(service.anchors, [(Validity::of(root.der()).unwrap(), root.der().clone())]);
        let error = service.exchange("GET", "/", "", None).unwrap_err();
        assert!(
            error.code() != "SHEF-AGT-003" && error.to_string().contains("127.0.0.1:1: "),
            "{error}"
        );
        // The same after that one has expired too.
        service.anchors[0].0.until = UnixTime::now().as_secs() - 1;
        assert_eq!(service.exchange("GET", "/", "", None).unwrap_err().code(), "SHEF-AGT-003");
        // A single valid CA is enough.
        let next = Ca::new("next", KeyPair::generate().unwrap(), now).unwrap().1;
        let mut service = Service::new(url, files(root.pem() + &next.pem())).unwrap();
        service.anchors[0].0.until = UnixTime::now().as_secs() - 1;
        assert_ne!(service.exchange("GET", "/", "", None).unwrap_err().code(), "SHEF-AGT-003");
    }

    /// An answer to an appraisal.
    fn appraised(verdict: &str, checks: &Value) -> Value {
        json!({
            "verdict": verdict, "result": "a.b.c", "appraisal_id": "00", "policy": "default@1", "policy_sha256": "00", "added": "in a later version",
            "appraisal": {"verdict": verdict, "layer": "kernel", "policy": "default", "policy_ids": [], "status": "affirming", "vector": {},
                          "anchor": null, "warnings": [], "checks": checks},
        })
    }

    #[test]
    fn an_appraisal_without_acceptance_or_result_is_no_answer() {
        let dir = tempfile::tempdir().unwrap();
        let good = appraised("accepted", &json!([]));
        let mut unsigned = good.clone();
        unsigned.as_object_mut().unwrap().remove("result");
        let denied = appraised("denied", &json!([]));
        let mut answers = [json!({}), denied, unsigned, good].into_iter();
        let service = fake(dir.path(), move |_| answers.next().unwrap());
        let challenge = Challenge::of(vec![0; 32], "a".to_owned());
        let session = ServiceSession { token: "token".to_owned(), layer: Layer::Kernel, challenge };
        let appraise = || service.appraise(&session, b"evidence", None);
        for expected in
            ["missing field `verdict`", "verdict is \"denied\"", "missing field `result`"]
        {
            let error = appraise().unwrap_err();
            assert!(error.to_string().contains(expected), "{expected}: {error}");
        }
        assert_eq!(appraise().unwrap().result, "a.b.c");
    }

    /// The answer to an earlier request with the same content was lost: the refusal of the second one
    /// has it.
    #[test]
    fn an_appraisal_that_is_kept_is_an_answer() {
        let dir = tempfile::tempdir().unwrap();
        let used = |kept: Value| json!({"type": "urn:shef:code:SHEF-SVC-042", "title": "used", "status": 409, "code": "SHEF-SVC-042", "detail": "used", "kept": kept});
        let check = json!({"id": "measured", "code": "SHEF-ATT-031", "passed": false, "reached": true, "expected": "1", "actual": "0"});
        let mut answers = [
            used(appraised("accepted", &json!([]))),
            used(appraised("denied", &json!([check]))),
            used(Value::Null),
        ]
        .into_iter();
        let service = fake(dir.path(), move |_| answers.next().unwrap());
        let challenge = Challenge::of(vec![0; 32], "a".to_owned());
        let session = ServiceSession { token: "token".to_owned(), layer: Layer::Kernel, challenge };
        let appraise = || service.appraise(&session, b"evidence", None);
        assert_eq!(appraise().unwrap().result, "a.b.c");
        for code in ["SHEF-ATT-031", "SHEF-SVC-042"] {
            assert_eq!(appraise().unwrap_err().code(), code);
        }
    }

    /// A replica that stops may end the connection before its answer. The client then repeats reads,
    /// sessions, appraisals and releases once, and no other request.
    #[test]
    fn a_request_that_is_safe_to_repeat_survives_the_end_of_a_connection() {
        use std::sync::Mutex;
        let dir = tempfile::tempdir().unwrap();
        let asked = Arc::new(Mutex::new((Vec::<String>::new(), 1)));
        let seen = Arc::clone(&asked);
        let service = fake(dir.path(), move |path| {
            let (asked, cuts) = &mut *seen.lock().unwrap();
            asked.push(path.to_owned());
            if *cuts > 0 {
                *cuts -= 1;
                return json!("the connection ends");
            }
            json!({"key": "data", "box": "AA", "version": 1, "receipt": "AA", "head": {"seq": 1, "digest": "00".repeat(32)}, "expires": 9})
        });
        let with_cuts = |cuts| *asked.lock().unwrap() = (Vec::new(), cuts);
        let sent = || asked.lock().unwrap().0.len();
        let challenge = Challenge::of(vec![0; 32], "a".to_owned());
        let session = ServiceSession { token: "token".to_owned(), layer: Layer::Kernel, challenge };
        let release = || service.release(&session, "data", None, b"evidence");
        assert_eq!(release().unwrap().head.seq, 1);
        assert_eq!(sent(), 2);
        // Twice in a row is a fault.
        with_cuts(2);
        assert_eq!(release().unwrap_err().code(), "SHEF-SDK-031");
        assert_eq!(sent(), 2);
        // A second version of a key would be another one.
        with_cuts(1);
        let rotated = service.post::<Value>("/v1/keys/data/rotate", &json!({}));
        assert_eq!(rotated.unwrap_err().code(), "SHEF-SDK-031");
        assert_eq!(sent(), 1);
    }

    /// A service that answers each path with a document from this function, and a client for it.
    fn fake(dir: &std::path::Path, answer: impl FnMut(&str) -> Value + Send + 'static) -> Service {
        fake_from(dir, 0, answer)
    }

    /// The same with a certificate whose validity starts so many seconds from now.
    fn fake_from(
        dir: &std::path::Path,
        seconds: i64,
        mut answer: impl FnMut(&str) -> Value + Send + 'static,
    ) -> Service {
        use shef_tls::ca::{Ca, Holder, KeyPair, Validity as Days};
        use std::io::{BufRead, BufReader, Write};
        let now = UnixTime::now().as_secs().cast_signed();
        let (ca, root) = Ca::new("ca", KeyPair::generate().unwrap(), now).unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .unwrap();
            path
        };
        let issue = |name: &str, holder| {
            let key = KeyPair::generate().unwrap();
            let from = now + seconds;
            let cert = ca.issue(holder, &key, Days { from, days: 30 }).unwrap();
            (
                file(&format!("{name}.pem"), &cert.pem()),
                file(&format!("{name}.key"), &key.serialize_pem()),
            )
        };
        let hosts = ["localhost".to_owned()];
        let (cert, key) = issue("server", Holder::Server { name: "server", hosts: &hosts });
        let tls = rustls::ServerConfig::builder_with_provider(
            rustls::crypto::aws_lc_rs::default_provider().into(),
        )
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            shef_remote::certificates(&cert).unwrap(),
            shef_remote::private_key(&key).unwrap(),
        );
        let (cert, key) = issue("client", Holder::Client { name: "client", uri: None });
        let (tls, listener) =
            (Arc::new(tls.unwrap()), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
        let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        std::thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                let connection = rustls::ServerConnection::new(tls.clone()).unwrap();
                let mut stream = BufReader::new(rustls::StreamOwned::new(connection, tcp));
                let (mut first, mut line) = (String::new(), String::new());
                if stream.read_line(&mut first).is_err() {
                    // A client that does not accept the certificate.
                    continue;
                }
                while line != "\r\n" {
                    line.clear();
                    stream.read_line(&mut line).unwrap();
                }
                let answer = answer(first.split(' ').nth(1).unwrap());
                if answer == json!("the connection ends") {
                    continue;
                }
                let status = answer["status"].as_u64().unwrap_or(200);
                let answer = answer.to_string();
                let head = format!(
                    "HTTP/1.1 {status} OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    answer.len()
                );
                let mut stream = stream.into_inner();
                stream.write_all((head + &answer).as_bytes()).unwrap();
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
        Service::new(&url, TlsFiles { ca: file("ca.pem", &root.pem()), cert, key }).unwrap()
    }

    #[test]
    fn a_service_that_is_not_valid_yet_is_named_as_such() {
        let dir = tempfile::tempdir().unwrap();
        let service = fake_from(dir.path(), 3 * 86_400, |_| json!({}));
        let error = service.get::<Value>("/healthz").unwrap_err();
        let said = error.to_string();
        assert!(
            matches!(error, SdkError::ServiceExpired { .. })
                && said.contains("is not valid yet")
                && said.contains(service.url()),
            "{said}"
        );
    }

    /// Runs a call against a fake service, for at most 30 seconds.
    fn asked<T: Send + 'static>(
        answer: impl FnMut(&str) -> Value + Send + 'static,
        ask: impl FnOnce(Service) -> Result<T, SdkError> + Send + 'static,
    ) -> Result<T, SdkError> {
        let (sender, result) = mpsc::channel();
        std::thread::spawn(move || {
            let dir = tempfile::tempdir().unwrap();
            sender.send(ask(fake(dir.path(), answer).with_deadline(Duration::from_secs(6))))
        });
        result.recv_timeout(Duration::from_secs(30)).expect("a list without an end")
    }

    #[test]
    fn a_list_of_a_service_ends() {
        let key = |n: usize| json!({"name": format!("k{n:09}"), "layer": "shield", "to": "evidence", "disabled": false, "version": 1, "version_disabled": false});
        let device = |n: usize| json!({"ueid": format!("{n:09}"), "target": "t", "kernel_svn": 1, "highest_svn": 1, "verdict": "accepted", "first_seen": 0, "last_seen": 0, "last_appraised": null, "stale": false});
        let receipt = |n: usize| json!({"seq": n + 1, "time": 0, "key": "k", "receipt": ""});
        let page = move |rows: std::ops::Range<usize>| {
            let [keys, devices, receipts]: [Vec<Value>; 3] = [
                rows.clone().map(key).collect(),
                rows.clone().map(device).collect(),
                rows.map(receipt).collect(),
            ];
            let head = json!({"seq": 0, "digest": ""});
            json!({"keys": keys, "devices": devices, "receipts": receipts, "next": null, "tenant": "t", "head": head, "kept": head})
        };
        let ended = |result: Result<usize, SdkError>, says: &str| {
            let error = result.expect_err(says);
            assert!(error.code() == "SHEF-SDK-035" && error.to_string().contains(says), "{error}");
        };
        let keys = |service: Service| service.keys().map(|all| all.len());
        let devices = |service: Service| {
            service.devices(|device| device.ueid == "000000003").map(|all| all.len())
        };
        let receipts = |service: Service| service.receipts().map(|all| all.receipts.len());
        // Honest lists, by path.
        let honest = move |path: &str| {
            let after = path
                .split_once("&after=")
                .map(|(_, after)| after.trim_start_matches('k').parse::<usize>().unwrap());
            let begin = after.map_or(0, |after| after + usize::from(!path.contains("receipts")));
            page(begin..2500.min(begin + PAGE))
        };
        assert_eq!(asked(honest, keys).unwrap(), 2500);
        assert_eq!(asked(honest, devices).unwrap(), 1);
        assert_eq!(asked(honest, receipts).unwrap(), 2500);
        // The same page for ever; a list that goes backwards; a page of any length; no names.
        ended(asked(move |_| page(0..PAGE), keys), "does not advance");
        ended(asked(move |_| page(0..PAGE), devices), "does not advance");
        ended(asked(move |_| page(0..PAGE), receipts), "does not advance");
        ended(asked(move |_| page(0..PAGE + 1), keys), "expected at most 1000");
        ended(asked(|_| json!({"keys": [{}], "next": null}), keys), "missing field `name`");
        // A list that advances for ever.
        let (mut at, mut next) = (0, 0);
        let endless = move |_: &str| {
            at += PAGE;
            page(at - PAGE..at)
        };
        ended(asked(endless, keys), "goes on after");
        let slow = move |_: &str| {
            std::thread::sleep(Duration::from_secs(2));
            next += PAGE;
            page(next - PAGE..next)
        };
        ended(asked(slow, receipts), "goes on after");
    }

    #[test]
    fn a_release_of_something_else_is_refused() {
        let digest = [5; 32];
        let recipient = generate_key_pair(&mut crate::SystemEntropy::new().unwrap()).1;
        let receipt = Receipt {
            tenant: "owner".into(),
            seq: 7,
            previous: [1; 32],
            id: [2; 16],
            time: 0,
            key_id: "data".into(),
            key_version: 3,
            layer: Layer::Shield,
            ueid: [4; shef_proto::cert::UEID_LEN],
            evidence_digest: digest,
            policy_digest: [6; 32],
            recipient_digest: [7; 32],
            to_host: false,
            events: None,
        };
        let info = ReleaseInfo {
            tenant: "owner".into(),
            key_id: "data".into(),
            key_version: 3,
            layer: Layer::Shield,
            evidence_digest: digest,
            nonce: vec![0; 32],
            recipient,
            receipt_id: [2; 16],
        };
        let bytes = b"receipt".to_vec();
        let head = Head { seq: 7, digest: shef_proto::receipt::digest(&bytes) };
        let released =
            Released { key_box: Vec::new(), version: 3, receipt: bytes, head, expires: 0 };
        let fine = |version, info: &ReleaseInfo, released: &Released| {
            compare(("data", version), &digest, &receipt, info, released)
        };
        fine(None, &info, &released).unwrap();
        fine(Some(3), &info, &released).unwrap();
        fine(None, &info, &Released { head: Head { seq: 8, digest: [0; 32] }, ..released.clone() })
            .unwrap();
        for (what, answer) in [
            ("an old version", fine(Some(4), &info, &released)),
            (
                "the answer's version",
                fine(None, &info, &Released { version: 2, ..released.clone() }),
            ),
            (
                "the box's version",
                fine(None, &ReleaseInfo { key_version: 2, ..info.clone() }, &released),
            ),
            (
                "the box's key",
                fine(None, &ReleaseInfo { key_id: "other".into(), ..info.clone() }, &released),
            ),
            (
                "the box's tenant",
                fine(None, &ReleaseInfo { tenant: "other".into(), ..info.clone() }, &released),
            ),
            (
                "the box's evidence",
                fine(None, &ReleaseInfo { evidence_digest: [6; 32], ..info.clone() }, &released),
            ),
            (
                "an old head",
                fine(
                    None,
                    &info,
                    &Released { head: Head { seq: 6, digest: [0; 32] }, ..released.clone() },
                ),
            ),
            (
                "another head",
                fine(
                    None,
                    &info,
                    &Released { head: Head { seq: 7, digest: [0; 32] }, ..released.clone() },
                ),
            ),
        ] {
            assert_eq!(answer.expect_err(what).code(), "SHEF-SDK-047", "{what}");
        }
    }

    #[test]
    fn key_sets_that_are_none_are_refused() {
        let good = B64.encode(generate_key_pair(&mut crate::SystemEntropy::new().unwrap()).1.xy());
        let bytes = B64.decode(&good).unwrap();
        let (x, y) = (B64.encode(&bytes[..32]), B64.encode(&bytes[32..]));
        let set = |kty: &str, x: &str, y: &str| {
            format!(r#"{{"keys":[{{"kty":"{kty}","crv":"P-256","x":"{x}","y":"{y}","kid":"a"}}]}}"#)
        };
        assert_eq!(keys_from_jwks(set("EC", &x, &y).as_bytes()).unwrap()[0].xy()[..], bytes[..]);
        for (bad, says) in [
            (set("RSA", &x, &y), "expected EC P-256"),
            (set("EC", &x, ""), "32 bytes, expected 64"),
            (set("EC", &x, &x), ""),
            (set("EC", "=", &y), "base64url"),
            (r#"{"keys":[]}"#.to_owned(), "no key"),
            ("{}".to_owned(), "keys"),
        ] {
            let error = keys_from_jwks(bad.as_bytes()).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
