//! Memory of request bodies. A body is read before its request takes one of `limits.requests`, so
//! that a slow client does not hold one. This module therefore counts the memory of bodies, by
//! tenant and by caller.
//!
//! A tenant has a quarter of the memory, and a caller a quarter of its tenant's. The callers without
//! the role `operator` together have three quarters, so that they keep no operator from a change.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::auth::Identity;
use crate::config::Limits;
use crate::problem::{Because, Kind, Result};
use crate::role::Role;

/// The caller; `None` without credentials.
type Caller = Option<Identity>;

/// The tenant of a caller.
fn tenant(caller: &Caller) -> Option<&str> {
    caller.as_ref().map(|who| who.tenant.as_str())
}

/// Whether a caller has the role `operator`.
fn operates(caller: &Caller) -> bool {
    caller.as_ref().is_some_and(|who| who.role == Role::Operator)
}

/// Bytes held by bodies.
#[derive(Debug, Default)]
pub struct Bodies(Mutex<BTreeMap<Caller, usize>>);

/// The bytes of one body, counted until this is dropped.
#[derive(Debug)]
pub struct Held {
    bodies: Arc<Bodies>,
    caller: Caller,
    bytes: usize,
    /// Maximum of all bodies, of one tenant's, and of one caller's.
    most: [usize; 3],
}

/// Maximum bytes of all bodies, of one tenant's and of one caller's: `requests` bodies of ordinary
/// size, a quarter and a sixteenth of that, but at least four of the largest bodies, two, and one.
fn most(limits: &Limits) -> [usize; 3] {
    let largest = limits.body_bytes.max(limits.corim_bytes);
    let all = limits.requests.saturating_mul(limits.body_bytes).max(largest.saturating_mul(4));
    let tenant = (all / 4).max(largest.saturating_mul(2));
    [all, tenant, (tenant / 4).max(largest)]
}

impl Bodies {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Caller, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether no body is held.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// An empty account for a body of this caller.
    #[must_use]
    pub fn hold(self: &Arc<Self>, who: Option<&Identity>, limits: &Limits) -> Held {
        Held { bodies: Arc::clone(self), caller: who.cloned(), bytes: 0, most: most(limits) }
    }
}

impl Held {
    /// Sets the size of the body to `bytes`.
    ///
    /// # Errors
    /// The bodies of its caller, of its tenant, or all bodies have reached their limit.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        let more = bytes.saturating_sub(self.bytes);
        let mut held = self.bodies.lock();
        let operator = operates(&self.caller);
        let name = self.caller.as_ref().map_or("", |who| &who.name);
        let sum = |counts: &dyn Fn(&Caller) -> bool| -> usize {
            held.iter().filter(|(caller, _)| counts(caller)).map(|(_, bytes)| bytes).sum()
        };
        // Operators count all bodies, others only those of others.
        let rival = |caller: &Caller| operator || !operates(caller);
        let share = |most: usize| if operator { most } else { most / 4 * 3 };
        let [all, mine, own] = self.most;
        let accounts = [
            (format!("bodies of {name}"), sum(&|caller| *caller == self.caller), own),
            (
                "bodies of this tenant".to_owned(),
                sum(&|caller| rival(caller) && tenant(caller) == tenant(&self.caller)),
                share(mine),
            ),
            ("bodies".to_owned(), sum(&rival), share(all)),
        ];
        if let Some((whose, has, most)) = accounts.iter().find(|(_, has, most)| has + more > *most)
        {
            return Err(Kind::Busy
                .because(format!("{whose} hold {has} of {most} bytes, and this one has {bytes}"))
                .retry_after(1));
        }
        *held.entry(self.caller.clone()).or_default() += more;
        self.bytes += more;
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.bodies.lock();
        if let Some(bytes) = held.get_mut(&self.caller) {
            *bytes -= self.bytes;
            if *bytes == 0 {
                held.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_callers_tenants_and_operators() {
        let bodies = Arc::new(Bodies::default());
        let limits =
            Limits { requests: 64, body_bytes: 1024, corim_bytes: 1024, ..Limits::default() };
        assert_eq!(most(&limits), [64 << 10, 16 << 10, 4 << 10]);
        let take = |tenant: &str, name: &str, role, bytes| {
            let who = Identity { tenant: tenant.into(), name: name.into(), role };
            let mut held = bodies.hold(Some(&who), &limits);
            held.grow(bytes).map(|()| held)
        };
        let attest = |tenant: &str, name: &str, bytes| take(tenant, name, Role::Attest, bytes);
        let mut one = attest("a", "1", 1024).unwrap();
        one.grow(4096).unwrap();
        one.grow(512).unwrap();
        let refused = |result: Result<Held>| result.unwrap_err().detail;
        assert_eq!(
            refused(attest("a", "1", 1)),
            "bodies of 1 hold 4096 of 4096 bytes, and this one has 1"
        );
        let more: Vec<_> = ["2", "3"].iter().map(|name| attest("a", name, 4096).unwrap()).collect();
        assert_eq!(
            refused(attest("a", "4", 1)),
            "bodies of this tenant hold 12288 of 12288 bytes, and this one has 1"
        );
        // The operator's part is left, in the tenant and in all.
        drop(take("a", "operator", Role::Operator, 4096).unwrap());
        let others: Vec<_> = ["b", "c", "d"]
            .iter()
            .flat_map(|tenant| ["1", "2", "3"].map(|name| attest(tenant, name, 4096).unwrap()))
            .collect();
        assert_eq!(
            refused(attest("e", "1", 1)),
            "bodies hold 49152 of 49152 bytes, and this one has 1"
        );
        drop(take("e", "operator", Role::Operator, 4096).unwrap());
        drop((others, more));
        drop(attest("e", "1", 4096).unwrap());
        drop(one);
        assert!(bodies.is_empty());
    }
}
