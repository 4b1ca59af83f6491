//! The published keys of providers: fetched when they are first needed, then every few minutes, and
//! when a token names a key that is not among them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use jsonwebtoken::jwk::JwkSet;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

use crate::config::Source;
use crate::problem::{Kind, Problem, Result};

/// How old keys get before they are fetched again.
const REFRESH: Duration = Duration::from_secs(300);
/// How old keys may get if the provider does not answer.
const OLDEST: Duration = Duration::from_secs(24 * 3600);
/// The time between two attempts: unknown key names cost the provider no more.
const PAUSE: Duration = Duration::from_secs(3);
/// The time that an answer of the provider may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum size of its answers.
const LARGEST: u64 = 256 * 1024;
/// Certificates of CAs, as Debian and its kin install them.
const SYSTEM: &str = "/etc/ssl/certs/ca-certificates.crt";

/// Keys and their age.
struct Fetched {
    keys: Arc<JwkSet>,
    at: Instant,
}

/// What an attempt to fetch keys came to; `None` while it is made.
type Outcome = Option<Result<(), String>>;

/// The keys of one provider.
#[derive(Default)]
struct Provider {
    fetched: ArcSwapOption<Fetched>,
    attempt: Mutex<Attempt>,
}

/// The attempt in progress, which all callers share, and the end of the last one.
#[derive(Default)]
struct Attempt {
    running: Option<watch::Receiver<Outcome>>,
    ended: Option<Instant>,
}

impl Provider {
    /// Keys that are not too old.
    fn known(&self) -> Option<Arc<JwkSet>> {
        let fetched = self.fetched.load_full()?;
        (fetched.at.elapsed() < OLDEST).then(|| Arc::clone(&fetched.keys))
    }

    fn age(&self) -> Option<Duration> {
        self.fetched.load().as_ref().map(|fetched| fetched.at.elapsed())
    }

    fn attempt(&self) -> std::sync::MutexGuard<'_, Attempt> {
        self.attempt.lock().expect("no panic under this lock")
    }

    /// Fetches the keys, unless the last attempt ended less than `pause` ago. The attempt goes on
    /// when its callers are gone: none of them can keep the others from its result.
    async fn fetch(self: &Arc<Self>, source: &Source, pause: Duration) -> Result<(), String> {
        let mut outcome = {
            let mut attempt = self.attempt();
            let open = attempt.running.clone().filter(|running| running.has_changed().is_ok());
            match open {
                Some(running) => running,
                None if attempt.ended.is_some_and(|end| end.elapsed() < pause) => return Ok(()),
                None => {
                    let (tell, running) = watch::channel(None);
                    attempt.running = Some(running.clone());
                    tokio::spawn(Arc::clone(self).run(source.clone(), tell));
                    running
                }
            }
        };
        match outcome.wait_for(Outcome::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Ok(())),
            Err(_) => Err("the attempt to fetch its keys broke off".into()),
        }
    }

    async fn run(self: Arc<Self>, source: Source, tell: watch::Sender<Outcome>) {
        let found = tokio::task::spawn_blocking(move || fetched(&source)).await;
        let found = found.unwrap_or_else(|error| Err(error.to_string()));
        let outcome = found.map(|keys| {
            let fetched = Fetched { keys: Arc::new(keys), at: Instant::now() };
            self.fetched.store(Some(Arc::new(fetched)));
        });
        *self.attempt() = Attempt { running: None, ended: Some(Instant::now()) };
        let _ = tell.send(Some(outcome));
    }
}

/// The keys of all providers.
#[derive(Default)]
pub struct Keys {
    providers: Mutex<HashMap<Source, Arc<Provider>>>,
}

impl Keys {
    fn provider(&self, source: &Source) -> Arc<Provider> {
        let mut all = self.providers.lock().expect("no panic under this lock");
        Arc::clone(all.entry(source.clone()).or_default())
    }

    /// The keys of a provider, if they are known and have the one of this name.
    pub(super) fn known(&self, source: &Source, kid: Option<&str>) -> Option<Arc<JwkSet>> {
        let holds = |keys: &Arc<JwkSet>| kid.is_none_or(|kid| keys.find(kid).is_some());
        self.provider(source).known().filter(holds)
    }

    /// The keys of a provider, fetched unless that was tried a moment ago.
    ///
    /// # Errors
    /// They are not known, and the provider does not answer as it should.
    pub(super) async fn fetched(&self, source: &Source) -> Result<Arc<JwkSet>> {
        let provider = self.provider(source);
        let fetched = provider.fetch(source, PAUSE).await;
        provider.known().ok_or_else(|| {
            problem(source, &fetched.err().unwrap_or_else(|| "its keys are not known yet".into()))
        })
    }

    /// Fetches the keys of these providers that are not young any more. The old ones go on for a
    /// day if a provider does not answer.
    ///
    /// # Errors
    /// The first provider that does not answer as it should.
    pub async fn refresh(&self, sources: &[Source]) -> Result<()> {
        let mut all = Ok(());
        for source in sources {
            let provider = self.provider(source);
            if provider.age().is_none_or(|age| age >= REFRESH) {
                let fetched = provider.fetch(source, Duration::ZERO).await;
                all = all.and(fetched.map_err(|why| problem(source, &why)));
            }
        }
        all
    }

    /// The age of each provider's keys, or `None` before the first fetch.
    ///
    /// # Panics
    /// Never: nothing panics under the lock.
    #[must_use]
    pub fn ages(&self, sources: &[Source]) -> Vec<Option<Duration>> {
        sources.iter().map(|source| self.provider(source).age()).collect()
    }
}

fn problem(source: &Source, why: &str) -> Problem {
    Kind::Provider.because(format!("{}: {why}", source.issuer)).retry_after(PAUSE.as_secs())
}

/// Checks that a provider answers as it should.
///
/// # Errors
/// It does not.
pub fn check(source: &Source) -> Result<usize> {
    fetched(source).map(|set| set.keys.len()).map_err(|why| problem(source, &why))
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

/// The CAs that a provider's server may have.
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

fn fetched(source: &Source) -> Result<JwkSet, String> {
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .root_certs(roots(source.ca.as_deref())?)
        .build();
    let config = ureq::Agent::config_builder()
        .tls_config(tls)
        .https_only(true)
        .max_redirects(0)
        .timeout_global(Some(PATIENCE))
        .build();
    let agent = ureq::Agent::new_with_config(config);
    let uri = match &source.jwks_uri {
        Some(uri) => uri.clone(),
        None => {
            let issuer = source.issuer.trim_end_matches('/');
            let found: Discovery =
                get(&agent, &format!("{issuer}/.well-known/openid-configuration"))?;
            if found.issuer != source.issuer {
                return Err(format!("its discovery document is of {:?}", found.issuer));
            }
            found.jwks_uri
        }
    };
    let set: JwkSet = get(&agent, &uri)?;
    if set.keys.is_empty() {
        return Err(format!("{uri}: no key"));
    }
    Ok(set)
}

fn get<T: DeserializeOwned>(agent: &ureq::Agent, url: &str) -> Result<T, String> {
    let cannot = |error: &dyn std::fmt::Display| format!("{url}: {error}");
    let mut answer = agent.get(url).call().map_err(|error| cannot(&error))?;
    let bytes = answer
        .body_mut()
        .with_config()
        .limit(LARGEST)
        .read_to_vec()
        .map_err(|error| cannot(&error))?;
    serde_json::from_slice(&bytes).map_err(|error| cannot(&error))
}
