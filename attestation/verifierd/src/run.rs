//! The life of the process: start, reload on SIGHUP, sweep, orderly end on SIGTERM and SIGINT.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::api;
use crate::app::{App, Clock};
use crate::config::Config;
use crate::metrics::Counter;
use crate::problem::Result;
use crate::server::{self, Timing};
use crate::time::DAY;
use crate::tls;

/// A certificate with less left is warned about.
const WARN_DAYS: i64 = 14;

/// So is a revocation list.
const WARN_LIST_DAYS: i64 = 2;

/// A running service.
pub struct Running {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its state.
    pub app: Arc<App>,
    tls: Arc<ArcSwap<ServerConfig>>,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    jobs: Vec<JoinHandle<()>>,
}

/// Starts the service; returns when it takes connections.
///
/// # Errors
/// A file, the database or the address cannot be used.
pub async fn start(config: Config, clock: Clock) -> Result<Running> {
    let now = clock.now();
    let limits = config.limits.clone();
    let tls = Arc::new(ArcSwap::new(tls::server(&config.tls, now)?));
    warn(&config, now)?;
    let listener = server::listen(config.listen).await?;
    let app = App::open(config, clock).await?;
    let address = listener.local_addr().map_err(|error| crate::problem::Kind::Listen.because(error.to_string()))?;
    let timing = Timing {
        header: Duration::from_secs(limits.header_seconds),
        idle: Duration::from_secs((limits.header_seconds + limits.body_seconds) * 2),
        shutdown: Duration::from_secs(limits.shutdown_seconds),
        connections: limits.connections,
    };
    let (stop, stopped) = watch::channel(false);
    let serving = tokio::spawn(server::serve(
        listener,
        Arc::clone(&tls),
        api::router(Arc::clone(&app)),
        timing,
        Arc::clone(&app.metrics),
        stopped.clone(),
    ));
    let job = |period, what, work: fn(Arc<App>) -> Work| tokio::spawn(every(period, what, stopped.clone(), Arc::clone(&app), work));
    let jobs = vec![
        job(Duration::from_secs(60), "sweep", |app| Box::pin(async move { app.sweep().await })),
        job(Duration::from_secs(60), "certificate", |app| Box::pin(async move { warn(&app.config.load_full(), app.now()) })),
        job(Duration::from_millis(200), "checkpoint", |app| Box::pin(async move { app.store.checkpoint().await })),
    ];
    tracing::info!(%address, version = env!("CARGO_PKG_VERSION"), "listening");
    Ok(Running { address, app, tls, stop, serving, jobs })
}

fn warn(config: &Config, now: i64) -> Result<()> {
    let left = tls::not_after(&config.tls.certificate)? - now;
    if left < WARN_DAYS * DAY {
        tracing::warn!(days = left / DAY, file = %config.tls.certificate.display(), "the server certificate ends soon");
    }
    if let Some(left) = tls::lists_end(&config.tls)?.map(|end| end - now)
        && left < WARN_LIST_DAYS * DAY
    {
        tracing::warn!(hours = left / 3600, "a revocation list ends soon: then every client certificate is refused");
    }
    Ok(())
}

/// What is done again and again.
type Work = Pin<Box<dyn Future<Output = Result<()>> + Send>>;

/// Does `work` every `period` until the service stops; what fails is told in the log, and tried again the next time.
async fn every(period: Duration, what: &'static str, mut stop: watch::Receiver<bool>, app: Arc<App>, work: fn(Arc<App>) -> Work) {
    let mut tick = tokio::time::interval(period);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = server::stopped(&mut stop) => return,
        }
        if let Err(problem) = work(Arc::clone(&app)).await {
            tracing::warn!(code = problem.kind.code(), %problem, what);
        }
    }
}

impl Running {
    /// Takes a new configuration. Connections that are open stay.
    ///
    /// # Errors
    /// It cannot be used; the old one stays.
    pub async fn reload(&self, config: Config) -> Result<()> {
        let result = async {
            let server = tls::server(&config.tls, self.app.now())?;
            self.app.reload(config).await?;
            self.tls.store(server);
            Ok(())
        }
        .await;
        self.app.metrics.count(Counter::Reloads, &[if result.is_ok() { "done" } else { "refused" }]);
        result
    }

    /// Ends: no new connection, open requests get their time, then the database closes.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.serving.await;
        for job in self.jobs {
            let _ = job.await;
        }
        self.app.store.close().await;
    }
}

/// Runs until SIGTERM or SIGINT, and tells `ready` where it listens; SIGHUP reads the configuration again.
///
/// # Errors
/// It cannot start.
pub async fn run(path: PathBuf, ready: impl FnOnce(SocketAddr)) -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let running = start(Config::read(&path)?, Clock::System).await?;
    ready(running.address);
    let cannot = |error: std::io::Error| crate::problem::Kind::Internal.because(format!("signals: {error}"));
    let mut hup = signal(SignalKind::hangup()).map_err(cannot)?;
    let mut term = signal(SignalKind::terminate()).map_err(cannot)?;
    let mut int = signal(SignalKind::interrupt()).map_err(cannot)?;
    loop {
        tokio::select! {
            _ = hup.recv() => {
                let result = match Config::read(&path) {
                    Ok(config) => running.reload(config).await,
                    Err(problem) => Err(problem),
                };
                match result {
                    Ok(()) => tracing::info!("configuration read again"),
                    Err(problem) => tracing::error!(code = problem.kind.code(), %problem, "the old configuration stays"),
                }
            }
            _ = term.recv() => break,
            _ = int.recv() => break,
        }
    }
    tracing::info!("stopping");
    running.stop().await;
    Ok(())
}
