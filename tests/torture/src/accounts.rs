//! Requests and their answers, and the figures that follow from them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::Value;

/// SHA-256 of evidence.
pub type Digest = [u8; 32];

/// The end of an appraisal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The evidence was accepted, or a key was released for it.
    Accepted,
    /// It was denied.
    Denied,
}

/// The verdict in an answer to an appraisal; `None` if the answer is not final. If the answer to an
/// earlier attempt was lost, the verdict is in the member `kept`.
pub fn verdict(status: u16, body: &Value) -> Option<Verdict> {
    let named = |name: &Value| match name.as_str()? {
        "accepted" => Some(Verdict::Accepted),
        "denied" => Some(Verdict::Denied),
        _ => None,
    };
    match (status, body["code"].as_str()) {
        (200, _) => named(&body["verdict"]),
        (422, Some("SHEF-SVC-043")) => Some(Verdict::Denied),
        (409, Some("SHEF-SVC-042")) => named(&body["kept"]["verdict"]),
        _ => None,
    }
}

/// Whether used evidence was accepted once more; `None` if the answer is not final.
pub fn accepted_again(status: u16, body: &Value) -> Option<bool> {
    match (status, body["code"].as_str()) {
        (200, _) => Some(true),
        (409, Some("SHEF-SVC-042")) => Some(!body["kept"].is_null()),
        (422, Some("SHEF-SVC-043")) => Some(false),
        _ => None,
    }
}

/// Times at which a service cannot answer because its only process is down, or because its disk is
/// full. They count for no outage.
#[derive(Default)]
pub struct Windows {
    closed: Vec<(Instant, Instant)>,
    open: Option<Instant>,
}

impl Windows {
    /// Begins a window.
    pub fn open(&mut self, at: Instant) {
        self.open.get_or_insert(at);
    }

    /// Ends it.
    pub fn close(&mut self, at: Instant) {
        self.closed.extend(self.open.take().map(|from| (from, at)));
    }

    /// How much of a time is in no window.
    pub fn outside(&self, from: Instant, to: Instant) -> Duration {
        let open = self.open.map(|begin| (begin, to));
        let inside = self
            .closed
            .iter()
            .copied()
            .chain(open)
            .map(|(begin, end)| end.min(to).saturating_duration_since(begin.max(from)));
        to.saturating_duration_since(from).saturating_sub(inside.sum())
    }
}

/// A receipt, as far as the accounts need it.
pub struct Kept {
    /// Digest of the evidence.
    pub evidence: Digest,
    /// Name of the key.
    pub key: String,
}

/// A fault, and the longest wait of an innocent tenant.
#[derive(Clone, Debug, Serialize)]
pub struct Outage {
    /// Name of the fault.
    pub fault: &'static str,
    /// The longest time from the first attempt of a request to its final answer, in seconds.
    pub outage_of_innocent_s: f64,
    /// The request that waited longest.
    #[serde(skip)]
    pub request: String,
}

/// The figures of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Answered requests of innocent tenants.
    pub requests: u64,
    /// Appraisals and releases without a final answer.
    pub answers_lost: usize,
    /// Used evidence that was accepted for another identity or key.
    pub nonces_twice: usize,
    /// Releases without a receipt.
    pub receipts_missing: usize,
    /// Releases with two receipts, or two different answers.
    pub releases_twice: usize,
    /// Good evidence that was denied, or bad evidence that was accepted.
    pub wrong_verdicts: usize,
    /// Panics in any process.
    pub panics: usize,
    /// The faults.
    pub faults: Vec<Outage>,
}

impl Report {
    /// The longest outage that a run may have, in seconds.
    pub const OUTAGE: f64 = 5.0;

    /// The figures that must be 0, by name.
    pub fn counts(&self) -> [(&'static str, usize); 6] {
        [
            ("answers lost", self.answers_lost),
            ("nonces twice", self.nonces_twice),
            ("receipts missing", self.receipts_missing),
            ("releases twice", self.releases_twice),
            ("wrong verdicts", self.wrong_verdicts),
            ("panics", self.panics),
        ]
    }

    /// Whether all counts are 0, and no outage is too long.
    pub fn holds(&self) -> bool {
        self.counts().iter().all(|(_, count)| *count == 0)
            && self.faults.iter().all(|fault| fault.outage_of_innocent_s <= Self::OUTAGE)
    }
}

/// A counter that must stay 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Lost,
    NonceTwice,
    Missing,
    ReleasedTwice,
    Verdict,
    Panic,
}

/// Requests and answers of a run.
#[derive(Default)]
pub struct Accounts {
    requests: u64,
    /// What went wrong, in words.
    wrong: Vec<(Wrong, String)>,
    /// By tenant: the evidence of all requests for a release, with its first answer.
    releases: BTreeMap<String, BTreeMap<Digest, Option<Value>>>,
    faults: Vec<Outage>,
}

impl Accounts {
    fn note(&mut self, wrong: Wrong, text: String) {
        let during = self.faults.last().map_or("set-up", |fault| fault.fault);
        // The first ones tell what happens.
        if self.wrong.iter().filter(|(other, _)| *other == wrong).count() < 20 {
            eprintln!("torture: {during}: {text}");
        }
        self.wrong.push((wrong, text));
    }

    /// Begins a fault; returns its number.
    pub fn begin(&mut self, fault: &'static str) -> usize {
        self.faults.push(Outage { fault, outage_of_innocent_s: 0.0, request: String::new() });
        self.faults.len() - 1
    }

    /// The number of the fault that is under way; `None` before the first one.
    pub fn now(&self) -> Option<usize> {
        self.faults.len().checked_sub(1)
    }

    /// A request had an answer, final or not.
    pub fn answered(&mut self) {
        self.requests += 1;
    }

    /// A request that began in a fault waited this long for its final answer.
    pub fn waited(&mut self, fault: Option<usize>, time: Duration, request: &str) {
        let Some(fault) = fault.and_then(|fault| self.faults.get_mut(fault)) else { return };
        if time.as_secs_f64() > fault.outage_of_innocent_s {
            fault.outage_of_innocent_s = time.as_secs_f64();
            request.clone_into(&mut fault.request);
        }
    }

    /// An appraisal or a release had no final answer.
    pub fn lost(&mut self, what: String) {
        self.note(Wrong::Lost, what);
    }

    /// An appraisal ended.
    pub fn verdict(&mut self, what: &str, expected: Verdict, found: Verdict) {
        if expected != found {
            self.note(Wrong::Verdict, format!("{what}: expected {expected:?}, found {found:?}"));
        }
    }

    /// Used evidence was submitted again, by another identity or for another key.
    pub fn reused(&mut self, what: &str, accepted: bool) {
        if accepted {
            self.note(Wrong::NonceTwice, format!("{what}: used evidence was accepted again"));
        }
    }

    /// A client is about to request a release.
    pub fn asks(&mut self, tenant: &str, evidence: Digest) {
        self.releases.entry(tenant.to_owned()).or_default().entry(evidence).or_default();
    }

    /// A release was answered. Every answer for the same evidence must have the same bytes.
    pub fn released(&mut self, tenant: &str, evidence: Digest, answer: &Value) {
        let asked = self.releases.entry(tenant.to_owned()).or_default();
        match asked.entry(evidence).or_default() {
            Some(first) if first != answer => {
                let what = format!("{tenant}: two answers to one release: {first} and {answer}");
                self.note(Wrong::ReleasedTwice, what);
            }
            Some(_) => {}
            none => *none = Some(answer.clone()),
        }
    }

    /// A line of a process's log.
    pub fn line(&mut self, line: &str) {
        if line.contains("panicked") {
            self.note(Wrong::Panic, line.to_owned());
        }
    }

    /// Compares a tenant's receipts, and what its keys count, with the releases. A receipt of a
    /// release whose answer was lost is a good one.
    pub fn audit(&mut self, tenant: &str, receipts: &[Kept], counted: &BTreeMap<String, usize>) {
        let asked = self.releases.remove(tenant).unwrap_or_default();
        let mut seen = BTreeSet::new();
        let mut by_key: BTreeMap<&str, usize> = BTreeMap::new();
        for receipt in receipts {
            let evidence = hex::encode(receipt.evidence);
            *by_key.entry(&receipt.key).or_default() += 1;
            if !seen.insert(receipt.evidence) {
                self.note(Wrong::ReleasedTwice, format!("{tenant}: {evidence} has two receipts"));
            } else if !asked.contains_key(&receipt.evidence) {
                self.note(Wrong::ReleasedTwice, format!("{tenant}: nobody asked for {evidence}"));
            }
        }
        let missing =
            asked.iter().filter(|(evidence, answer)| answer.is_some() && !seen.contains(*evidence));
        for (evidence, _) in missing {
            let what = format!("{tenant}: {} has no receipt", hex::encode(evidence));
            self.note(Wrong::Missing, what);
        }
        let keys: BTreeSet<&str> =
            counted.keys().map(String::as_str).chain(by_key.keys().copied()).collect();
        for key in keys {
            let (released, receipts) =
                (counted.get(key).copied().unwrap_or(0), by_key.get(key).copied().unwrap_or(0));
            let what = format!(
                "{tenant}: key {key} was released {released} times, with {receipts} receipts"
            );
            match released.cmp(&receipts) {
                std::cmp::Ordering::Greater => self.note(Wrong::Missing, what),
                std::cmp::Ordering::Less => self.note(Wrong::ReleasedTwice, what),
                std::cmp::Ordering::Equal => {}
            }
        }
    }

    /// A tenant's receipts are no chain, or cannot be read.
    pub fn broken(&mut self, what: String) {
        self.note(Wrong::Missing, what);
    }

    /// The figures.
    pub fn report(&self) -> Report {
        let count = |wrong| self.wrong.iter().filter(|(other, _)| *other == wrong).count();
        Report {
            requests: self.requests,
            answers_lost: count(Wrong::Lost),
            nonces_twice: count(Wrong::NonceTwice),
            receipts_missing: count(Wrong::Missing),
            releases_twice: count(Wrong::ReleasedTwice),
            wrong_verdicts: count(Wrong::Verdict),
            panics: count(Wrong::Panic),
            faults: self.faults.clone(),
        }
    }
}

/// The accounts of a run, shared by all threads.
#[derive(Default)]
pub struct Book(Mutex<Accounts>);

impl Book {
    /// The accounts.
    pub fn lock(&self) -> MutexGuard<'_, Accounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn counts(accounts: &Accounts) -> [usize; 6] {
        accounts.report().counts().map(|(_, count)| count)
    }

    #[test]
    fn a_lost_answer_counts_and_a_kept_one_is_an_answer() {
        let accepted = json!({"verdict": "accepted"});
        assert_eq!(verdict(200, &accepted), Some(Verdict::Accepted));
        let denied = json!({"code": "SHEF-SVC-043"});
        assert_eq!(verdict(422, &denied), Some(Verdict::Denied));
        let used = json!({"code": "SHEF-SVC-042"});
        assert_eq!(verdict(409, &used), None);
        let kept = json!({"code": "SHEF-SVC-042", "kept": {"verdict": "denied"}});
        assert_eq!(verdict(409, &kept), Some(Verdict::Denied));
        assert_eq!(verdict(503, &json!({"code": "SHEF-SVC-004"})), None);
        assert_eq!(verdict(422, &json!({"code": "SHEF-SVC-050"})), None);
        let mut accounts = Accounts::default();
        assert!(accounts.report().holds());
        accounts.lost("no answer".into());
        assert_eq!(counts(&accounts), [1, 0, 0, 0, 0, 0]);
        assert!(!accounts.report().holds());
    }

    #[test]
    fn a_nonce_accepted_twice_counts() {
        let mut accounts = Accounts::default();
        let used = json!({"code": "SHEF-SVC-042"});
        let kept = json!({"code": "SHEF-SVC-042", "kept": {"verdict": "accepted"}});
        accounts.reused("another identity", accepted_again(409, &used).unwrap());
        assert_eq!(counts(&accounts), [0; 6]);
        accounts.reused("another identity", accepted_again(409, &kept).unwrap());
        accounts.reused("another key", accepted_again(200, &json!({"box": ""})).unwrap());
        assert_eq!(accepted_again(503, &json!({"code": "SHEF-SVC-004"})), None);
        assert_eq!(counts(&accounts), [0, 2, 0, 0, 0, 0]);
    }

    fn kept(evidence: u8) -> Kept {
        Kept { evidence: [evidence; 32], key: "data".into() }
    }

    /// Two releases with answers, and one whose answer was lost.
    fn three() -> Accounts {
        let mut accounts = Accounts::default();
        for evidence in 1..=3 {
            accounts.asks("a", [evidence; 32]);
        }
        for evidence in 1..=2 {
            accounts.released("a", [evidence; 32], &json!({"box": evidence}));
        }
        accounts
    }

    fn audited(receipts: &[u8], counted: usize) -> [usize; 6] {
        let mut accounts = three();
        let receipts: Vec<Kept> = receipts.iter().copied().map(kept).collect();
        accounts.audit("a", &receipts, &[("data".to_owned(), counted)].into());
        counts(&accounts)
    }

    #[test]
    fn a_missing_receipt_counts_and_so_do_two_for_one_release() {
        assert_eq!(audited(&[1, 2], 2), [0; 6]);
        assert_eq!(audited(&[1, 2, 3], 3), [0; 6]);
        assert_eq!(audited(&[1], 1), [0, 0, 1, 0, 0, 0]);
        assert_eq!(audited(&[1, 2], 3), [0, 0, 1, 0, 0, 0]);
        assert_eq!(audited(&[1, 2, 2], 3), [0, 0, 0, 1, 0, 0]);
        assert_eq!(audited(&[1, 2, 4], 3), [0, 0, 0, 1, 0, 0]);
        assert_eq!(audited(&[1, 2], 1), [0, 0, 0, 1, 0, 0]);
        let mut accounts = three();
        accounts.released("a", [1; 32], &json!({"box": 1}));
        assert_eq!(counts(&accounts), [0; 6]);
        accounts.released("a", [1; 32], &json!({"box": 7}));
        assert_eq!(counts(&accounts), [0, 0, 0, 1, 0, 0]);
        accounts.broken("no chain".into());
        assert_eq!(counts(&accounts), [0, 0, 1, 1, 0, 0]);
    }

    #[test]
    fn a_wrong_verdict_and_a_panic_count() {
        let mut accounts = Accounts::default();
        accounts.verdict("good evidence", Verdict::Accepted, Verdict::Accepted);
        accounts.line("{\"level\":\"INFO\",\"message\":\"listening\"}");
        assert_eq!(counts(&accounts), [0; 6]);
        accounts.verdict("good evidence", Verdict::Accepted, Verdict::Denied);
        accounts.verdict("revoked device", Verdict::Denied, Verdict::Accepted);
        assert_eq!(counts(&accounts), [0, 0, 0, 0, 2, 0]);
        accounts.line("thread 'tokio-runtime-worker' panicked at src/log.rs:1:1:");
        assert_eq!(counts(&accounts), [0, 0, 0, 0, 2, 1]);
    }

    #[test]
    fn an_outage_is_the_longest_wait_outside_of_windows() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut windows = Windows::default();
        assert_eq!(windows.outside(at(0), at(9)).as_secs(), 9);
        windows.open(at(2));
        assert_eq!(windows.outside(at(0), at(9)).as_secs(), 2);
        windows.close(at(5));
        assert_eq!(windows.outside(at(0), at(9)).as_secs(), 6);
        assert_eq!(windows.outside(at(3), at(4)).as_secs(), 0);
        assert_eq!(windows.outside(at(6), at(9)).as_secs(), 3);
        let mut accounts = Accounts::default();
        accounts.waited(accounts.now(), at(99) - start, "before the first fault");
        let fault = accounts.begin("kill");
        accounts.waited(Some(fault), Duration::from_secs(4), "read");
        assert!(accounts.report().holds());
        accounts.waited(Some(fault), Duration::from_secs(6), "release");
        accounts.waited(Some(fault), Duration::from_secs(1), "read");
        let report = accounts.report();
        assert_eq!(report.faults[0].request, "release");
        assert!(!report.holds());
    }
}
