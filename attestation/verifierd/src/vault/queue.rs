//! Signatures that wait for the holder of the key, which makes one at a time: tenants take turns,
//! so that one with many waiting ones delays each of the others by one signature. Those of a tenant's
//! chain come before its results, of which one caller has half of the places at most.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How many results of a tenant wait at most.
const MOST: usize = 16;
/// How many signatures of all tenants wait before each tenant may have only one result more: a
/// thread waits with each, and the service has 512.
const ALL: usize = 128;

/// What waits, by tenant.
pub(super) struct Queue<T> {
    waiting: Mutex<Waiting<T>>,
    changed: Condvar,
}

struct Waiting<T> {
    /// The tenant whose turn is next first; none without anything that waits.
    tenants: VecDeque<(String, Of<T>)>,
    closed: bool,
}

/// What waits of a tenant.
struct Of<T> {
    /// For its chain: one release at a time, and statements of the service.
    chain: VecDeque<T>,
    /// Results, each with its caller.
    results: VecDeque<(String, T)>,
}

impl<T> Of<T> {
    fn len(&self) -> usize {
        self.chain.len() + self.results.len()
    }

    fn next(&mut self) -> Option<T> {
        self.chain.pop_front().or_else(|| self.results.pop_front().map(|(_, one)| one))
    }
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let waiting = Waiting { tenants: VecDeque::new(), closed: false };
        Self { waiting: Mutex::new(waiting), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one for a tenant's chain, or for a result of this caller; returns whether there was room.
    pub(super) fn push(&self, tenant: &str, caller: Option<&str>, one: T) -> bool {
        let mut waiting = self.lock();
        let all: usize = waiting.tenants.iter().map(|(_, own)| own.len()).sum();
        let most = if all < ALL { MOST } else { 1 };
        let at = waiting.tenants.iter().position(|(name, _)| name == tenant);
        let at = at.unwrap_or_else(|| {
            let none = Of { chain: VecDeque::new(), results: VecDeque::new() };
            waiting.tenants.push_back((tenant.to_owned(), none));
            waiting.tenants.len() - 1
        });
        let own = &mut waiting.tenants[at].1;
        let room = match caller {
            None => own.chain.len() < MOST,
            Some(caller) => {
                let callers = own.results.iter().filter(|(who, _)| who == caller).count();
                own.results.len() < most && callers < most.div_ceil(2)
            }
        };
        if room {
            match caller {
                None => own.chain.push_back(one),
                Some(caller) => own.results.push_back((caller.to_owned(), one)),
            }
            self.changed.notify_one();
        }
        room
    }

    /// Waits for the next one; `None` after [`Queue::close`].
    pub(super) fn next(&self) -> Option<T> {
        let empty = |waiting: &mut Waiting<T>| waiting.tenants.is_empty() && !waiting.closed;
        let mut waiting =
            self.changed.wait_while(self.lock(), empty).unwrap_or_else(PoisonError::into_inner);
        if waiting.closed {
            return None;
        }
        let (tenant, mut own) = waiting.tenants.pop_front()?;
        let one = own.next();
        if own.len() > 0 {
            waiting.tenants.push_back((tenant, own));
        }
        one
    }

    /// Ends the queue; what still waits is dropped with it.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_take_turns() {
        let queue = Queue::new();
        for number in 0..MOST / 2 {
            assert!(queue.push("many", Some("a"), number));
        }
        assert!(!queue.push("many", Some("a"), 99), "a caller has a share");
        for number in MOST / 2..MOST {
            assert!(queue.push("many", Some("b"), number));
        }
        assert!(!queue.push("many", Some("c"), 99), "a tenant has a share");
        assert!(queue.push("one", Some("a"), 100) && queue.push("other", None, 200));
        let mut first: Vec<_> = std::iter::from_fn(|| queue.next()).take(3).collect();
        assert_eq!(first, [0, 100, 200]);
        assert!(queue.push("many", None, 300), "a release has its own place");
        first = std::iter::from_fn(|| queue.next()).take(3).collect();
        assert_eq!(first, [300, 1, 2]);
        queue.close();
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn many_tenants_leave_room_for_each() {
        let queue = Queue::new();
        let push = |number: &usize| {
            queue.push(&format!("t{}", number % 20), Some(&format!("{}", number % 7)), *number)
        };
        assert_eq!((0..10_000).filter(push).count(), ALL);
        assert!(queue.push("new", Some("a"), 0) && !queue.push("new", Some("b"), 1));
        assert!(queue.push("t0", None, 0));
    }
}
