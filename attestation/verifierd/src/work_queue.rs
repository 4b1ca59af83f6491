//! Work that takes long enough to delay others: appraisals, and dry runs of policies over recorded
//! evidence.
//!
//! Each tenant has a separate work queue, with separate workers for policies in Rego: a slow policy
//! delays only its tenant. A caller has at most a quarter of its tenant's slots. The work runs off the
//! threads that serve connections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use shef_rego::Workers;
use shef_verify::rego::Evaluate;
use shef_verify::{Rego, RegoError};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use crate::auth::Identity;
use crate::metrics::{Counter, Metrics};
use crate::problem::{Because, Kind, Result};
use crate::spans;

/// How long work waits for its turn.
const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum time of a dry run.
const DRY_RUN: Duration = Duration::from_secs(10);

/// Idle time after which a worker ends.
const UNUSED: Duration = Duration::from_secs(60);

/// Maximum concurrent work of one tenant, whatever the number of processors.
const MOST: usize = 16;

/// The work queue of one tenant.
pub struct WorkQueue {
    tenant: String,
    /// Slots for work in progress.
    places: Arc<Semaphore>,
    /// The slots of each caller with work in progress or waiting: a quarter of all.
    callers: Mutex<BTreeMap<Identity, Arc<Semaphore>>>,
    most: usize,
    dry_runs: Arc<Semaphore>,
    workers: Workers,
    metrics: Arc<Metrics>,
}

/// The one dry run of a tenant; dropping this ends it.
#[derive(Debug)]
pub struct DryRun {
    start: Instant,
    _place: OwnedSemaphorePermit,
}

impl WorkQueue {
    /// The queue of a tenant. How many of its requests wait is limited by their
    /// [places](crate::lanes).
    #[must_use]
    pub fn new(tenant: &str, workers: Workers, metrics: Arc<Metrics>) -> Self {
        let places = available_parallelism().map_or(2, usize::from).clamp(2, MOST);
        Self {
            tenant: tenant.into(),
            places: Arc::new(Semaphore::new(places)),
            callers: Mutex::default(),
            most: (places / 4).max(1),
            dry_runs: Arc::new(Semaphore::new(1)),
            workers,
            metrics,
        }
    }

    /// The slots of a caller.
    fn share(&self, who: &Identity) -> Arc<Semaphore> {
        let mut callers = self.callers.lock().unwrap_or_else(PoisonError::into_inner);
        callers.retain(|_, share| Arc::strong_count(share) > 1);
        let new = || Arc::new(Semaphore::new(self.most));
        Arc::clone(callers.entry(who.clone()).or_insert_with(new))
    }

    /// Runs some work of a caller when its turn comes. Work that has begun is finished, even if the
    /// caller has gone.
    ///
    /// # Errors
    /// The caller or its tenant has too much work in progress.
    pub async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        who: &Identity,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T> {
        let share = self.share(who);
        let [own, of_all] = [&share, &self.places].map(Arc::clone);
        let place = timeout(PATIENCE, async {
            Ok::<_, AcquireError>((own.acquire_owned().await?, of_all.acquire_owned().await?))
        });
        let place = place.await.ok().and_then(Result::ok).ok_or_else(|| {
            let (whose, name) = match share.available_permits() {
                0 => ("caller", &who.name),
                _ => ("tenant", &self.tenant),
            };
            Kind::Busy
                .because(format!("{whose} {name}: as many appraisals as it may have are under way"))
                .retry_after(1)
        })?;
        let work_queue = Arc::clone(self);
        let done = spawn_blocking(move || {
            let done = work(&work_queue);
            drop(place);
            done
        });
        done.await
            .map_err(|error| Kind::Internal.because(format!("an appraisal broke off: {error}")))
    }

    /// Begins a dry run.
    ///
    /// # Errors
    /// The tenant already has a dry run in progress.
    pub fn dry_run(&self) -> Result<DryRun> {
        match Arc::clone(&self.dry_runs).try_acquire_owned() {
            Ok(place) => Ok(DryRun { start: Instant::now(), _place: place }),
            Err(_) => {
                Err(Kind::DryRun.because("a dry run of this tenant is under way").retry_after(1))
            }
        }
    }

    /// Checks that a policy in Rego can be run.
    ///
    /// # Errors
    /// It does not parse, or exceeds a limit while it is parsed; or the caller or its tenant has too
    /// much work in progress.
    pub async fn check(self: &Arc<Self>, who: &Identity, policy: Option<&Rego>) -> Result<()> {
        let Some(policy) = policy.cloned() else { return Ok(()) };
        let checked = self.work(who, move |work_queue| work_queue.workers.check(&policy)).await?;
        checked.map_err(|error| Kind::Policy.because(error.to_string()))
    }

    /// Ends idle workers.
    pub fn retire(&self) {
        self.workers.retire(UNUSED);
    }

    /// Process ids of the idle workers.
    #[must_use]
    pub fn workers(&self) -> Vec<u32> {
        self.workers.ids()
    }
}

impl Evaluate for WorkQueue {
    fn evaluate(&self, policy: &Rego, input: &str) -> Result<bool, RegoError> {
        let step = spans::step("evaluate policy in Rego");
        let answer = self.workers.evaluate(policy, input);
        drop(step);
        let reason = match &answer {
            Ok(_) => return answer,
            Err(RegoError::Failed { .. }) => "failed",
            Err(RegoError::Time | RegoError::Ended { .. }) => "limit",
            Err(RegoError::Refused { .. }) => "refused",
            Err(_) => "unavailable",
        };
        self.metrics.count(Counter::Policies, Some(&self.tenant), &[reason]);
        if let Err(error) = &answer {
            tracing::warn!(tenant = %self.tenant, policy = policy.id(), code = error.code(), %error, "a policy in Rego gave no answer");
        }
        answer
    }
}

impl DryRun {
    /// Checks that there is time for the next of `all` records, after `held` of them.
    ///
    /// # Errors
    /// The time is up.
    pub fn goes_on(&self, held: usize, all: usize) -> Result<()> {
        if self.start.elapsed() < DRY_RUN {
            return Ok(());
        }
        let text = format!(
            "held {held} of {all} records in {} s: ask for fewer with ?limit=, or make the policy quicker",
            DRY_RUN.as_secs()
        );
        Err(Kind::DryRunTime.because(text).retry_after(DRY_RUN.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use axum::response::IntoResponse as _;

    use super::*;

    fn caller(name: impl std::fmt::Display) -> Identity {
        Identity { tenant: "t".into(), name: name.to_string(), role: crate::role::Role::Attest }
    }

    fn refused<T: std::fmt::Debug>(result: Result<T>, kind: Kind) {
        let problem = result.unwrap_err();
        assert_eq!(problem.kind, kind);
        let answer = problem.into_response();
        assert_eq!(
            (answer.status().as_u16(), answer.headers().contains_key("retry-after")),
            (kind.status(), true)
        );
    }

    #[test]
    fn dry_runs_are_one_at_a_time_and_end() {
        let work_queue = WorkQueue::new("t", Workers::default(), Arc::default());
        let run = work_queue.dry_run().unwrap();
        refused(work_queue.dry_run(), Kind::DryRun);
        run.goes_on(3, 30).unwrap();
        drop(run);
        let Some(start) = Instant::now().checked_sub(DRY_RUN) else { return };
        let late = DryRun { start, ..work_queue.dry_run().unwrap() };
        refused(late.goes_on(3, 30), Kind::DryRunTime);
    }

    /// Work waits for its turn for a limited time.
    #[test]
    fn work_waits_for_a_while() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let work_queue = Arc::new(WorkQueue::new("t", Workers::default(), Arc::default()));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let begin = |name: usize| {
            let (work_queue, wait) = (Arc::clone(&work_queue), Arc::clone(&wait));
            runtime.spawn(async move {
                let work = move |_: &WorkQueue| wait.lock().unwrap().recv().is_ok();
                work_queue.work(&caller(name), work).await
            })
        };
        let all: Vec<_> = (0..work_queue.places.available_permits()).map(begin).collect();
        runtime.block_on(async {
            while work_queue.places.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
            let start = Instant::now();
            let late = timeout(PATIENCE * 3, begin(99)).await.expect("it does not wait for ever");
            refused(late.unwrap(), Kind::Busy);
            assert!(start.elapsed() >= PATIENCE);
            // Work that ends in time makes room for it.
            let waits = begin(99);
            all.iter().for_each(|_| go.send(()).unwrap());
            go.send(()).unwrap();
            waits.await.unwrap().unwrap();
            for work in all {
                work.await.unwrap().unwrap();
            }
        });
    }

    /// One caller has a quarter of the slots of its tenant: work of others begins at once.
    #[test]
    fn a_caller_leaves_its_tenant_room() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let work_queue = Arc::new(WorkQueue::new("t", Workers::default(), Arc::default()));
        let (go, wait) = std::sync::mpsc::channel::<()>();
        let wait = Arc::new(std::sync::Mutex::new(wait));
        let all: Vec<_> = (0..work_queue.most)
            .map(|_| {
                let (work_queue, wait) = (Arc::clone(&work_queue), Arc::clone(&wait));
                runtime.spawn(async move {
                    let work = move |_: &WorkQueue| wait.lock().unwrap().recv().is_ok();
                    work_queue.work(&caller("many"), work).await
                })
            })
            .collect();
        runtime.block_on(async {
            let of_all = work_queue.places.available_permits() - work_queue.most;
            while work_queue.places.available_permits() > of_all {
                tokio::task::yield_now().await;
            }
            let (many, one) = (caller("many"), caller("one"));
            let (more, one) = tokio::join!(
                work_queue.work(&many, |_| ()),
                timeout(PATIENCE / 2, work_queue.work(&one, |_| ())),
            );
            one.expect("it does not wait").unwrap();
            let more = more.unwrap_err();
            assert!(more.detail.starts_with("caller many"), "{more}");
            for _ in &all {
                go.send(()).unwrap();
            }
            for work in all {
                let _ = work.await.unwrap();
            }
            // The slots of callers without work are not remembered.
            work_queue.work(&caller("one"), |_| ()).await.unwrap();
            drop(work_queue.share(&caller("one")));
            let callers = work_queue.callers.lock().unwrap();
            assert_eq!(callers.keys().map(|who| who.name.as_str()).collect::<Vec<_>>(), ["one"]);
        });
    }
}
