//! The life cycle of the process: start, reload on SIGHUP, revocation lists that change, sweep, orderly
//! shutdown on SIGTERM and SIGINT.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use shef_console::applied::{self, Reporter};
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::interval;

use crate::app::App;
use crate::config::Config;
use crate::problem::{Because, Problem, Result};
use crate::router::router;
use crate::server::{self, Timing};
use crate::time::{Clock, DAY};
use crate::tls;
use crate::traces::Traces;

/// Days of remaining validity below which the service warns.
const WARN_DAYS: i64 = 14;

/// The same for a revocation list, which is renewed every few weeks.
const WARN_LIST_DAYS: i64 = 2;

/// A warning if something has expired or expires soon: `what` is one of the names that
/// [`App::ends`] returns, and has `left` seconds.
#[must_use]
pub fn ends_soon(what: &str, left: i64) -> Option<String> {
    let days = if what == "crl" { WARN_LIST_DAYS } else { WARN_DAYS };
    let (what, then) = match what {
        "server" => ("the server certificate", "nobody connects"),
        "client-ca" => ("a CA of client certificates", "none of its clients connects"),
        "crl" => ("a revocation list", "every client certificate is refused"),
        "signer" => {
            ("the certificate of a signer of reference values", "what it signed counts no more")
        }
        _ => ("the validity of reference values", "what they list is unknown"),
    };
    let ago = (-left).div_euclid(DAY);
    match left {
        ..0 => Some(format!("{what} has ended, {ago} days ago: {then}")),
        _ if left < days * DAY => {
            Some(format!("{what} ends soon, in {} days: then {then}", left.div_euclid(DAY)))
        }
        _ => None,
    }
}

/// A running service.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its state.
    pub app: Arc<App>,
    /// The configuration at the start: some settings need a restart.
    fixed: Config,
    tls: Arc<ArcSwap<tls::Material>>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    jobs: Vec<JoinHandle<()>>,
}

/// Descriptors for everything but connections of clients: files, listeners, workers.
const DESCRIPTORS: u64 = 128;

/// Checks that this process may open as many files as the configuration needs, and raises its own
/// limit to that; `raise` is false for a command that only checks.
///
/// # Errors
/// The limit cannot be raised so far.
pub fn descriptors(config: &Config, raise: bool) -> Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    // SQLite has three files for a connection.
    let need = config.limits.connections as u64 + 3 * u64::from(config.connections) + DESCRIPTORS;
    let mut limit = getrlimit(Resource::Nofile);
    let enough = |most: Option<u64>| most.is_none_or(|most| most >= need);
    if enough(limit.current) {
        return Ok(());
    }
    if !enough(limit.maximum) {
        let most = limit.maximum.unwrap_or(u64::MAX);
        let text = format!(
            "limits.connections = {} needs {need} open files, and this process may open {most}: raise the limit (ulimit -n, LimitNOFILE=), or \
             lower limits.connections",
            config.limits.connections
        );
        return Err(crate::problem::Kind::Config.because(text));
    }
    if raise {
        limit.current = Some(need);
        setrlimit(Resource::Nofile, limit)
            .map_err(|error| crate::problem::Kind::Internal.because(error.to_string()))?;
    }
    Ok(())
}

/// Starts the service; returns once it accepts connections.
///
/// # Errors
/// A file, the database or the address cannot be used.
pub async fn start(config: Config, clock: Clock) -> Result<Running> {
    descriptors(&config, true)?;
    let now = clock.now();
    let limits = config.limits.clone();
    let tls = Arc::new(ArcSwap::new(tls::server(&config.tls, now)?));
    let listener = server::listen(config.listen).await?;
    let fixed = config.clone();
    let app = App::open(config, clock).await?;
    let address = listener
        .local_addr()
        .map_err(|error| crate::problem::Kind::Listen.because(error.to_string()))?;
    let timing = Timing {
        header: Duration::from_secs(limits.header_seconds),
        idle: Duration::from_secs((limits.header_seconds + limits.body_seconds) * 2),
        shutdown: Duration::from_secs(limits.shutdown_seconds),
        connections: limits.connections,
        age: Duration::from_secs(limits.connection_seconds),
    };
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(server::serve(
        listener,
        Arc::clone(&tls),
        router(Arc::clone(&app)),
        timing,
        (Arc::clone(&app.metrics), Arc::clone(&app.logins)),
        stopped.clone(),
    ));
    let job = |period, what, work: fn(Arc<App>) -> Work| {
        tokio::spawn(every(period, what, stopped.clone(), Arc::clone(&app), work))
    };
    let jobs = vec![
        job(Duration::from_secs(60), "sweep", |app| Box::pin(async move { app.sweep().await })),
        job(Duration::from_secs(60), "certificates", |app| {
            Box::pin(async move { warn(&app).await })
        }),
        job(Duration::from_secs(60), NO_ANSWER, |app| Box::pin(provider_keys(app))),
        job(Duration::from_secs(60), "spans", |app| {
            Box::pin(async move {
                app.traces.iter().for_each(Traces::tell);
                Ok(())
            })
        }),
        job(Duration::from_secs(1), "deleted data is not erased", |app| {
            Box::pin(async move { app.erase_remains().await })
        }),
        job(Duration::from_secs(2), "the signing key does not sign", |app| {
            Box::pin(async move { app.probe_signer().await })
        }),
        job(Duration::from_secs(5), "nothing can be written", |app| {
            Box::pin(async move { app.probe().await })
        }),
        job(Duration::from_millis(200), "checkpoint", |app| {
            Box::pin(async move { app.store.checkpoint().await })
        }),
    ];
    tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "listening");
    Ok(Running { address, app, fixed, tls, stop, serving, jobs })
}

async fn warn(app: &App) -> Result<()> {
    let config = app.config.load_full();
    for (what, end) in app.ends(&config.tenant_names(), true).await? {
        let left = end - app.now();
        if let Some(text) = ends_soon(what, left) {
            tracing::warn!(what, days = left.div_euclid(DAY), "{text}");
        }
    }
    Ok(())
}

/// The warning about an identity provider without keys.
const NO_ANSWER: &str = "an identity provider does not answer";

/// Fetches the keys of identity providers that are not young any more.
async fn provider_keys(app: Arc<App>) -> Result<()> {
    app.provider_keys.refresh(&app.config.load_full().oidc_sources()).await
}

/// A periodic task.
type Work = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// Runs `work` every `period` until the service stops; logs a failure and tries again the next
/// time.
async fn every(
    period: Duration,
    what: &'static str,
    mut stop: watch::Receiver<bool>,
    app: Arc<App>,
    work: fn(Arc<App>) -> Work,
) {
    let mut tick = interval(period);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = server::stopped(&mut stop) => return,
        }
        // What waits for others, such as a provider, must not hold up the end.
        let done = tokio::select! {
            done = work(Arc::clone(&app)) => done,
            () = server::stopped(&mut stop) => return,
        };
        if let Err(problem) = done {
            tracing::warn!(code = problem.kind.code(), %problem, what);
        }
    }
}

/// A new configuration that has taken from callers what they do not have in it, and gives nothing yet.
struct Revoked {
    config: Config,
    /// Its number, by [`App::withdraw`].
    number: u64,
    /// The problems of revocation lists, whose last content stays in force.
    lists: Vec<Problem>,
}

impl Running {
    /// Applies revocations, which depend on nothing else and wait for nothing: each revocation list,
    /// and what a new configuration takes from callers.
    fn revoke(&self, config: Config) -> Revoked {
        let number = self.app.withdraw(&config);
        let lists = self.narrow(Some(&config));
        Revoked { config, number, lists }
    }

    /// Applies revocation lists, and what a new configuration takes from the holders of certificates.
    /// Returns the problems of lists, whose last content stays in force.
    pub fn narrow(&self, new: Option<&Config>) -> Vec<Problem> {
        let narrowed = self.exchange(|held| held.narrowed(new.map(|new| &new.tls)));
        narrowed.unwrap_or_else(|problem| vec![problem])
    }

    /// Replaces the TLS material, and computes the new one again if a list came into force in between.
    fn exchange<T>(
        &self,
        make: impl Fn(&tls::Material) -> Result<(Arc<tls::Material>, T)>,
    ) -> Result<T> {
        loop {
            let held = self.tls.load_full();
            let (material, rest) = make(&held)?;
            if Arc::ptr_eq(&self.tls.compare_and_swap(&held, material), &held) {
                return Ok(rest);
            }
        }
    }

    /// Applies a new configuration, revocations first. Open connections stay; their certificates are
    /// checked against it at their next request. A configuration lifts no revocation: what its lists
    /// have lost stays revoked until the service restarts, with a warning. Returns the names of changed
    /// settings that need a restart.
    ///
    /// # Errors
    /// The new configuration cannot be used; the old one stays, without what was revoked.
    pub async fn reload(&self, config: Config) -> Result<Vec<&'static str>> {
        self.apply(self.revoke(config)).await
    }

    /// Applies the rest of a configuration.
    async fn apply(&self, new: Revoked) -> Result<Vec<&'static str>> {
        let Revoked { config, number, lists } = new;
        let result: Result<Vec<&'static str>> = async {
            let (tls, held) = (config.tls.clone(), self.tls.load_full());
            let (material, mut lost) = held.reloaded(&tls, self.app.now())?;
            let ignored = self.fixed.fixed(&config);
            self.app.reload(config, number).await?;
            // A list that came into force in the meantime stays in force.
            if !Arc::ptr_eq(&self.tls.compare_and_swap(&held, material), &held) {
                lost = self.exchange(|held| held.reloaded(&tls, self.app.now()))?;
            }
            // At once, as at the start, and without waiting for them.
            let app = Arc::clone(&self.app);
            tokio::spawn(async move {
                if let Err(problem) = provider_keys(app).await {
                    tracing::warn!(code = problem.kind.code(), %problem, NO_ANSWER);
                }
            });
            for what in lost {
                tracing::warn!("{what}");
            }
            Ok(ignored)
        }
        .await;
        // One that succeeds may leave out a list that cannot be read.
        if result.is_err() {
            lists_stay(&lists);
        }
        self.reloaded(result.as_deref()).await;
        result
    }

    /// Counts a reload. The future records it as an event, and waits for the database.
    fn reloaded(
        &self,
        result: Result<&[&'static str], &Problem>,
    ) -> impl Future<Output = ()> + use<> {
        self.app.metrics.reloaded(result.is_ok());
        let (action, what) = match result {
            Ok([]) => ("reload", String::new()),
            Ok(ignored) => ("reload", format!("not before a restart: {}", ignored.join(", "))),
            Err(problem) => ("reload-refused", problem.kind.code().to_owned()),
        };
        let app = Arc::clone(&self.app);
        async move { app.note(action, &what).await }
    }

    /// Shuts down: no new connections, open requests may finish, then the database closes, and the
    /// last spans are sent.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.serving.await;
        for job in self.jobs {
            let _ = job.await;
        }
        if let Err(problem) = self.app.store.end().await {
            tracing::warn!(code = problem.kind.code(), %problem, "the end of the service was not noted in the database");
        }
        self.app.store.close().await;
        let app = self.app;
        // The collector may keep the thread waiting.
        let _ = spawn_blocking(move || app.traces.iter().for_each(Traces::stop)).await;
    }
}

/// Logs the revocation lists that are not in force.
fn lists_stay(problems: &[Problem]) {
    for problem in problems {
        tracing::error!(code = problem.kind.code(), %problem, "a revocation list cannot be used; its last content stays in force, and so do all other lists");
    }
}

/// How often a service checks its revocation lists.
const LISTS: Duration = Duration::from_secs(1);

/// Applies revocation lists when their files change, and reports to commands which content is in
/// force.
async fn lists(tls: Arc<ArcSwap<tls::Material>>, app: Arc<App>) {
    let mut reporter = Reporter::new("service");
    let (mut answer, mut look) = (interval(applied::LOOK), interval(LISTS));
    // The lists in force, with the versions of their files. A reload may have read a file before it
    // changed, so after a reload, and at the start, the files are read again.
    let mut seen = None;
    loop {
        tokio::select! {
            _ = answer.tick() => {
                for (file, error) in reporter.answer(tls.load().applied()) {
                    tracing::warn!(file = %file.display(), "cannot tell `shef-verifierd revoke` that this list is applied: {error}");
                }
            }
            _ = look.tick() => {
                let held = tls.load_full();
                let files = held.list_files();
                if seen.as_ref().is_some_and(|(material, versions)| {
                    Arc::ptr_eq(material, &held) && *versions == files
                }) {
                    continue;
                }
                match held.narrowed(None) {
                    Ok((material, bad)) => {
                        lists_stay(&bad);
                        // If a reload came in between, its material stays, for the next look.
                        let before = tls.compare_and_swap(&held, Arc::clone(&material));
                        for (file, digest) in material.applied() {
                            if !held.applied().iter().any(|(_, known)| known == digest) {
                                // On its own: the next list must not wait for the database.
                                let what = format!("{} {digest}", file.display());
                                let app = Arc::clone(&app);
                                tokio::spawn(async move { app.note("revocation-list", &what).await });
                            }
                        }
                        seen = Arc::ptr_eq(&before, &held).then_some((material, files));
                    }
                    Err(problem) => {
                        lists_stay(&[problem]);
                        seen = Some((held, files));
                    }
                }
            }
        }
    }
}

/// Waits for what is under way, if anything is.
async fn under_way<F: Future + Unpin>(work: Option<&mut F>) -> F::Output {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

/// Logs how a reload ended.
fn tell(result: Result<&[&'static str], &Problem>) {
    match result {
        Ok([]) => tracing::info!("configuration read again"),
        Ok(ignored) => {
            tracing::warn!(
                ignored = ignored.join(", "),
                "configuration read again; what is ignored counts after a restart"
            );
        }
        Err(problem) => {
            tracing::error!(code = problem.kind.code(), %problem, "the old configuration stays, without what was revoked");
        }
    }
}

/// Runs until SIGTERM or SIGINT, and passes the listening address to `ready`; SIGHUP reloads the
/// configuration. A revocation list that changes is in force within a second, and commands on this
/// machine can ask for it ([`applied`]).
///
/// # Errors
/// The service cannot start.
pub async fn run(path: PathBuf, ready: impl FnOnce(SocketAddr)) -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    // Before `ready`: the handlers must be in place when a caller may send a signal.
    let cannot =
        |error: std::io::Error| crate::problem::Kind::Internal.because(format!("signals: {error}"));
    let mut hup = signal(SignalKind::hangup()).map_err(cannot)?;
    let mut term = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut int = signal(SignalKind::interrupt()).map_err(cannot)?;
    let running = start(Config::read(&path)?, Clock::System).await?;
    ready(running.address);
    // On its own: a reload waits for the database.
    let lists = tokio::spawn(lists(Arc::clone(&running.tls), Arc::clone(&running.app)));
    // A reload may wait for the database, or for the token that holds the keys. During that time, the next
    // one takes effect as far as it revokes, and the service can be stopped.
    let (mut reloading, mut next) = (None, None);
    loop {
        if reloading.is_none()
            && let Some(revoked) = next.take()
        {
            reloading = Some(Box::pin(running.apply(revoked)));
        }
        tokio::select! {
            _ = hup.recv() => match Config::read(&path) {
                Ok(config) => next = Some(running.revoke(config)),
                Err(problem) => {
                    lists_stay(&running.narrow(None));
                    tell(Err(&problem));
                    // On its own: the next signal must not wait for the database.
                    tokio::spawn(running.reloaded(Err(&problem)));
                }
            },
            result = under_way(reloading.as_mut()) => {
                reloading = None;
                tell(result.as_deref());
            }
            _ = term.recv() => break,
            _ = int.recv() => break,
        }
    }
    drop(reloading);
    tracing::info!("stopping");
    lists.abort();
    running.stop().await;
    Ok(())
}
