//! Keys that something else holds and never gives away: a token of PKCS #11, or, behind the same
//! trait, the key management service of a cloud.

#[cfg(feature = "pkcs11")]
mod pin;
#[cfg(feature = "pkcs11")]
pub mod pkcs11;
mod queue;

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use shef_proto::hpke_suite::PublicKey;
use shef_verify::crypto::aws_lc;
use tokio::sync::oneshot;
use tokio::task::block_in_place;
use zeroize::Zeroizing;

use self::queue::Queue;
use crate::problem::{Because, Kind, Problem, Result};

/// A holder of keys, which it knows by their labels.
pub trait Vault: Send + Sync {
    /// The public key of a pair on P-256.
    ///
    /// # Errors
    /// There is no such pair, or the holder does not answer.
    fn public_key(&self, label: &str) -> Result<PublicKey>;

    /// The signature `r | s` of ECDSA with SHA-256, with either s.
    ///
    /// # Errors
    /// There is no such pair, or the holder does not answer.
    fn sign(&self, label: &str, message: &[u8]) -> Result<[u8; 64]>;

    /// Seals a key of 32 bytes under a key of the holder.
    ///
    /// # Errors
    /// There is no such key, or the holder does not answer.
    fn seal(&self, label: &str, key: &[u8; 32]) -> Result<Vec<u8>>;

    /// Opens what [`Vault::seal`] has sealed.
    ///
    /// # Errors
    /// The bytes were not sealed under this key, the key is missing, or the holder does not answer.
    fn open(&self, label: &str, sealed: &[u8]) -> Result<Zeroizing<[u8; 32]>>;

    /// Makes the keys with these labels that are missing: a pair that signs, a key that seals.
    /// Returns the labels of those that it made.
    ///
    /// # Errors
    /// The holder refuses, or does not answer.
    fn make(&self, pair: Option<&str>, seals: Option<&str>) -> Result<Vec<String>>;
}

/// How long a caller waits for a signature, its turn included.
const LIMIT: Duration = Duration::from_secs(4);

/// How long a command, a start or a reload waits for a holder.
const PATIENCE: Duration = Duration::from_secs(10);

/// For how long the last signature says whether the next one can be made.
const FRESH: Duration = Duration::from_secs(2);

/// Does something with a holder in a separate thread, and waits for ten seconds at most.
///
/// # Errors
/// Those of `work`; it takes too long.
pub fn within<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    let (answer, done) = sync_channel(1);
    let work = move || {
        // The caller may have given up.
        let _ = answer.send(work());
    };
    spawn(work)?;
    done.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        Err(unanswered(format!("it has not answered within {} s", PATIENCE.as_secs())))
    })
}

/// Does something that may take its time in a separate thread, for which nothing waits when the
/// service ends.
///
/// # Errors
/// Those of `work`.
pub async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let (answer, done) = oneshot::channel();
    spawn(move || drop(answer.send(work())))?;
    done.await.unwrap_or_else(|error| Err(Kind::Internal.because(error.to_string())))
}

/// Threads that may be in the library of a token.
static THREADS: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name("token".into()).spawn(work);
    let thread = thread.map_err(|error| Kind::Internal.because(error.to_string()))?;
    let mut threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
    threads.retain(|thread| !thread.is_finished());
    threads.push(thread);
    Ok(())
}

/// Waits until no thread is in the library of a token, for a second at most: at the end of the program,
/// the library takes down what a thread would still use, and the program would end by a signal.
pub fn settle() {
    let end = Instant::now() + Duration::from_secs(1);
    let threads = std::mem::take(&mut *THREADS.lock().unwrap_or_else(PoisonError::into_inner));
    for thread in threads {
        while !thread.is_finished() {
            if Instant::now() >= end {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // A panic of it was in the log; its end has also left the library.
        let _ = thread.join();
    }
}

/// A holder does not answer as it should. Only the log, and commands, say why: it is about the machine.
fn unanswered(cause: String) -> Problem {
    let problem =
        Kind::Vault.because("the token that holds the keys of this service is not usable");
    Problem { cause: Some(cause), ..problem.retry_after(5) }
}

/// A message to sign.
struct Job {
    message: Vec<u8>,
    answer: SyncSender<Result<[u8; 64]>>,
    /// The caller gives up at this time.
    until: Instant,
}

/// How signatures went.
struct State {
    /// When the last one ended, and why it failed, if it did.
    last: (Instant, Option<String>),
    /// Since when the holder works on one.
    since: Option<Instant>,
}

/// A pair of a vault, which signs. A separate thread waits for the vault, which may take its time
/// or never answer.
pub struct VaultKey {
    jobs: Arc<Queue<Job>>,
    state: Arc<Mutex<State>>,
    /// Name in headers.
    kid: String,
}

impl Drop for VaultKey {
    fn drop(&mut self) {
        self.jobs.close();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl VaultKey {
    /// The pair with this label and public key, under its name in headers. Each signature is verified
    /// with the public key before it is used.
    ///
    /// # Errors
    /// The vault does not sign, the signature does not verify, or the system has no thread for it.
    pub fn new(vault: Arc<dyn Vault>, label: &str, public: PublicKey, kid: String) -> Result<Self> {
        let jobs = Arc::new(Queue::<Job>::new());
        let state = Arc::new(Mutex::new(State { last: (Instant::now(), None), since: None }));
        let (own, told, label) = (Arc::clone(&jobs), Arc::clone(&state), label.to_owned());
        let work = move || {
            while let Some(job) = own.next() {
                if Instant::now() >= job.until {
                    continue;
                }
                lock(&told).since = Some(Instant::now());
                let made = vault.sign(&label, &job.message).and_then(|signature| {
                    if aws_lc(&public, &job.message, &signature) {
                        return Ok(signature);
                    }
                    let text = format!("what the private key labelled {label:?} signs does not verify with the public key of this label");
                    Err(unanswered(text))
                });
                let failed = made.as_ref().err().map(Problem::with_cause);
                *lock(&told) = State { last: (Instant::now(), failed), since: None };
                // The caller may have given up.
                let _ = job.answer.send(made);
            }
        };
        spawn(work)?;
        let key = Self { jobs, state, kid };
        key.test()?;
        Ok(key)
    }

    /// Signs a message for the chain of a tenant, or for a result of this caller.
    ///
    /// # Errors
    /// As [`Vault::sign`]; too many wait, the signature takes too long, or it does not verify.
    pub fn signature(
        &self,
        tenant: &str,
        caller: Option<&str>,
        message: &[u8],
    ) -> Result<[u8; 64]> {
        let busy = || {
            let text = format!("tenant {tenant}: too many of its signatures wait for the token");
            Err(Kind::Busy.because(text).retry_after(1))
        };
        let (answer, made) = sync_channel(1);
        let job = Job { message: message.to_vec(), answer, until: Instant::now() + LIMIT };
        if !self.jobs.push(tenant, caller, job) {
            return busy();
        }
        block_in_place(|| made.recv_timeout(LIMIT)).unwrap_or_else(|_| {
            let mut state = lock(&self.state);
            // It may have waited for the signatures of others rather than for the token.
            if state.since.is_none_or(|since| since.elapsed() < LIMIT / 2) {
                return busy();
            }
            let text = format!("it has not signed within {} s", LIMIT.as_secs());
            state.last = (Instant::now(), Some(text.clone()));
            Err(unanswered(text))
        })
    }

    fn test(&self) -> Result<()> {
        self.signature("", None, b"shef-verifierd asks whether the key signs").map(drop)
    }

    /// Its name in headers.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.kid
    }

    /// Why the last signature failed, if it did.
    #[must_use]
    pub fn failed(&self) -> Option<Problem> {
        lock(&self.state).last.1.clone().map(unanswered)
    }

    /// Has the vault sign something, unless it has just done so.
    ///
    /// # Errors
    /// It does not answer.
    pub fn probe(&self) -> Result<()> {
        let (at, failed) = lock(&self.state).last.clone();
        if failed.is_none() && at.elapsed() < FRESH {
            return Ok(());
        }
        self.test()
    }
}

#[cfg(test)]
mod tests {
    use shef_proto::hpke_suite::generate_key_pair;
    use shef_verify::crypto::AwsLcKey;
    use shef_verify::jwt::Signer as _;

    use super::*;
    use crate::secrets::SystemEntropy;

    /// A token that takes its time.
    struct Slow(AwsLcKey, Duration);

    impl Vault for Slow {
        fn public_key(&self, _: &str) -> Result<PublicKey> {
            Err(unanswered("the test has it".into()))
        }

        fn sign(&self, _: &str, message: &[u8]) -> Result<[u8; 64]> {
            std::thread::sleep(self.1);
            self.0.sign(message).map_err(|error| unanswered(error.to_string()))
        }

        fn seal(&self, _: &str, _: &[u8; 32]) -> Result<Vec<u8>> {
            Err(unanswered("it only signs".into()))
        }

        fn open(&self, _: &str, _: &[u8]) -> Result<Zeroizing<[u8; 32]>> {
            Err(unanswered("it only signs".into()))
        }

        fn make(&self, _: Option<&str>, _: Option<&str>) -> Result<Vec<String>> {
            Err(unanswered("it only signs".into()))
        }
    }

    #[test]
    fn a_tenant_with_many_results_waits_for_itself_and_the_token_works() {
        let (private, public) = generate_key_pair(&mut SystemEntropy);
        let slow = Slow(AwsLcKey::new("k", &private).unwrap(), LIMIT / 12);
        let key = VaultKey::new(Arc::new(slow), "k", public, "k".into()).unwrap();
        let all: Vec<_> = std::thread::scope(|scope| {
            let sign = |caller| {
                let key = &key;
                scope.spawn(move || key.signature("many", Some(caller), b"a result"))
            };
            let threads: Vec<_> = ["a", "b"].into_iter().cycle().take(40).map(sign).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let refused: Vec<_> = all.iter().filter_map(|made| made.as_ref().err()).collect();
        assert!(refused.len() >= 24, "{}", refused.len());
        assert!(refused.iter().all(|problem| problem.kind == Kind::Busy), "{refused:?}");
        assert!(all.len() > refused.len(), "some were made");
        assert!(key.failed().is_none(), "the token works all the time");
    }
}
