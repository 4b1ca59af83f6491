//! The published keys of providers: fetched when they are first needed, then every few minutes, and
//! when a token names a key that is not among them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use axum::http::Uri;
use jsonwebtoken::jwk::{Jwk, JwkSet};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::{ALGORITHMS, cut, usable};
use crate::config::{Oidc, Source};
use crate::http_client;
use crate::problem::{Because, Kind, Problem, Result};

/// How old keys get before they are fetched again.
const REFRESH: Duration = Duration::from_secs(300);
/// The time between two attempts: unknown key names cost the provider no more.
const PAUSE: Duration = Duration::from_secs(3);
/// The time that an answer of the provider may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Maximum size of its answers.
const LARGEST: u64 = 256 * 1024;
/// Maximum length of a text about it.
const CAUSE: usize = 500;

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
    /// Keys that are not older than this.
    fn known(&self, oldest: Duration) -> Option<Arc<JwkSet>> {
        let fetched = self.fetched.load_full()?;
        (fetched.at.elapsed() < oldest).then(|| Arc::clone(&fetched.keys))
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
    pub(super) fn known(&self, oidc: &Oidc, kid: Option<&str>) -> Option<Arc<JwkSet>> {
        let holds = |keys: &Arc<JwkSet>| kid.is_none_or(|kid| keys.find(kid).is_some());
        self.provider(&oidc.source).known(oldest(oidc)).filter(holds)
    }

    /// The keys of a provider, fetched unless that was tried a moment ago.
    ///
    /// # Errors
    /// They are not known, and the provider does not answer as it should.
    pub(super) async fn fetched(&self, oidc: &Oidc) -> Result<Arc<JwkSet>> {
        let source = &oidc.source;
        let provider = self.provider(source);
        let fetched = provider.fetch(source, PAUSE).await;
        provider.known(oldest(oidc)).ok_or_else(|| {
            problem(source, &fetched.err().unwrap_or_else(|| "its keys are not known yet".into()))
        })
    }

    /// Fetches the keys of these providers that are not young any more. The old ones go on for
    /// [`Oidc::keys_seconds`] if a provider does not answer.
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

/// How old a provider's keys may get.
fn oldest(oidc: &Oidc) -> Duration {
    Duration::from_secs(oidc.keys_seconds)
}

/// Callers do not learn why: the owner of the provider could have them look at others' servers.
fn problem(source: &Source, why: &str) -> Problem {
    let text = format!("{}: there are no keys of it to verify its tokens with", source.issuer);
    let cause = Some(why.chars().take(CAUSE).collect());
    Problem { cause, ..Kind::Provider.because(text).retry_after(PAUSE.as_secs()) }
}

/// Checks that the files of CAs can be used.
///
/// # Errors
/// The first that cannot.
pub fn readable(sources: &[Source]) -> Result<()> {
    for ca in sources.iter().filter_map(|source| source.ca.as_deref()) {
        http_client::agent(Some(ca), PATIENCE)
            .map_err(|why| Kind::Material.because(format!("oidc: {why}")))?;
    }
    Ok(())
}

/// Checks that a provider answers as it should. Returns the names of the keys that can verify tokens.
///
/// # Errors
/// It does not, or its file of CAs cannot be used.
pub fn check(source: &Source) -> Result<Vec<String>> {
    readable(std::slice::from_ref(source))?;
    let set = fetched(source).map_err(|why| problem(source, &why))?;
    let name = |jwk: &Jwk| cut(jwk.common.key_id.as_deref().unwrap_or(""));
    Ok(usable(&set).into_iter().map(name).collect())
}

#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

#[derive(Deserialize)]
struct Published {
    keys: Vec<serde_json::Value>,
}

fn fetched(source: &Source) -> Result<JwkSet, String> {
    let agent = http_client::agent(source.ca.as_deref(), PATIENCE)?.https_only(true).build().into();
    let uri = match &source.jwks_uri {
        Some(uri) => uri.clone(),
        None => {
            let issuer = source.issuer.trim_end_matches('/');
            let found: Discovery =
                get(&agent, &format!("{issuer}/.well-known/openid-configuration"))?;
            if found.issuer != source.issuer {
                return Err(format!("its discovery document is of {}", cut(&found.issuer)));
            }
            if origin(&found.jwks_uri) != origin(&source.issuer) {
                return Err(format!(
                    "its discovery document names keys that are not on the issuer's host, at {}: if they should be used, set oidc.jwks_uri",
                    cut(&found.jwks_uri)
                ));
            }
            found.jwks_uri
        }
    };
    let set: Published = get(&agent, &uri)?;
    // A provider may have keys for others that cannot be read here (RFC 7517, section 5).
    let keys: Vec<_> =
        set.keys.into_iter().filter_map(|key| serde_json::from_value(key).ok()).collect();
    let set = JwkSet { keys };
    if usable(&set).is_empty() {
        return Err(format!(
            "{uri}: none of {} keys can verify a token: expected a public key with `use` sig, a `kid` of its own, and an `alg` of {ALGORITHMS:?}",
            set.keys.len()
        ));
    }
    Ok(set)
}

/// Host and port of an `https` URL.
fn origin(url: &str) -> Option<(String, u16)> {
    let url = url.parse::<Uri>().ok().filter(|url| url.scheme_str() == Some("https"))?;
    Some((url.host()?.to_ascii_lowercase(), url.port_u16().unwrap_or(443)))
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
