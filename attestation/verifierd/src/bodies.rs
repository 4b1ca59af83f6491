//! Memory of request bodies. A body is read before its request takes one of `limits.requests`, so
//! that a slow client does not hold one. This module therefore counts the memory of bodies, by
//! tenant.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::Limits;
use crate::problem::{Kind, Result};

/// Bytes held by bodies, by tenant.
#[derive(Debug, Default)]
pub struct Bodies(Mutex<BTreeMap<String, usize>>);

/// The bytes of one body, counted until this is dropped.
#[derive(Debug)]
pub struct Held {
    bodies: Arc<Bodies>,
    tenant: String,
    bytes: usize,
    /// Maximum of all bodies, and of one tenant's.
    most: (usize, usize),
}

/// Maximum bytes of all bodies, and of one tenant's: `requests` bodies of ordinary size, and a
/// quarter of that, but at least four of the largest bodies, and one.
fn most(limits: &Limits) -> (usize, usize) {
    let largest = limits.body_bytes.max(limits.corim_bytes);
    let all = limits.requests.saturating_mul(limits.body_bytes).max(largest.saturating_mul(4));
    (all, (all / 4).max(largest))
}

impl Bodies {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty account for a body of this tenant.
    #[must_use]
    pub fn hold(self: &Arc<Self>, tenant: &str, limits: &Limits) -> Held {
        Held { bodies: Arc::clone(self), tenant: tenant.to_owned(), bytes: 0, most: most(limits) }
    }
}

impl Held {
    /// Sets the size of the body to `bytes`.
    ///
    /// # Errors
    /// The bodies of its tenant, or all bodies, have reached their limit.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        let more = bytes.saturating_sub(self.bytes);
        let mut held = self.bodies.lock();
        let (all, mine) =
            (held.values().sum::<usize>(), held.get(&self.tenant).copied().unwrap_or(0));
        let text = if mine + more > self.most.1 {
            format!(
                "bodies of this tenant hold {mine} of {} bytes, and this one has {bytes}",
                self.most.1
            )
        } else if all + more > self.most.0 {
            format!("bodies hold {all} of {} bytes, and this one has {bytes}", self.most.0)
        } else {
            held.insert(self.tenant.clone(), mine + more);
            self.bytes += more;
            return Ok(());
        };
        Err(Kind::Busy.because(text).retry_after(1))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.bodies.lock();
        if let Some(bytes) = held.get_mut(&self.tenant) {
            *bytes -= self.bytes;
            if *bytes == 0 {
                held.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenant_has_a_quarter_and_gives_back_what_it_held() {
        let bodies = Arc::new(Bodies::default());
        let limits =
            Limits { requests: 16, body_bytes: 1024, corim_bytes: 4096, ..Limits::default() };
        let take = |tenant: &str, bytes| {
            let mut held = bodies.hold(tenant, &limits);
            held.grow(bytes).map(|()| held)
        };
        let mut one = take("a", 1024).unwrap();
        one.grow(2048).unwrap();
        one.grow(512).unwrap();
        let error = take("a", 2049).unwrap_err();
        assert_eq!(
            error.detail,
            "bodies of this tenant hold 2048 of 4096 bytes, and this one has 2049"
        );
        let others: Vec<_> =
            ["b", "c", "d"].iter().map(|tenant| take(tenant, 4096).unwrap()).collect();
        assert!(one.grow(4096).is_ok());
        assert_eq!(
            take("e", 1).unwrap_err().detail,
            "bodies hold 16384 of 16384 bytes, and this one has 1"
        );
        drop(others);
        drop(take("e", 4096).unwrap());
        drop(one);
        assert!(bodies.lock().is_empty());
    }
}
