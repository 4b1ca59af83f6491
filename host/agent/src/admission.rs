//! Admission: [`shef_tls::admission`] limits the handshakes of strangers, and the agent counts
//! connections by owner.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shef_remote::wire::codes;
use shef_tls::admission::Admission;

use crate::slot::Refusal;

/// The agent's limits: 32 handshakes at once from addresses that no owner has connected from, 32
/// from addresses that an owner has, and 8 from one address.
pub(crate) fn admission() -> Arc<Admission> {
    Arc::new(Admission::new(32, 8))
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connections of owners, by name.
#[derive(Default)]
pub(crate) struct OwnerConnections(Mutex<BTreeMap<String, usize>>);

/// One owner connection; dropping it ends it.
pub(crate) struct OwnerPermit {
    connections: Arc<OwnerConnections>,
    owner: String,
}

impl OwnerConnections {
    /// Takes one of `total` connections, and one of the owner's `each`. A quarter of the total is
    /// reserved for owners that have a session.
    ///
    /// # Errors
    /// SHEF-AGT-015, which states the limit.
    pub(crate) fn take(
        self: &Arc<Self>,
        owner: &str,
        total: usize,
        each: usize,
        has_session: bool,
    ) -> Result<OwnerPermit, Refusal> {
        let mut connections = hold(&self.0);
        let taken = connections.values().sum::<usize>();
        let (reserved, mine) =
            (if has_session { 0 } else { total / 4 }, connections.get(owner).copied().unwrap_or(0));
        if mine >= each {
            return Err(Refusal::new(
                codes::BUSY,
                format!("owner {owner} has {mine} connections, the most for one owner is {each}"),
            ));
        }
        if taken + reserved >= total {
            let what = format!(
                "the agent has {taken} connections, the most is {total}, with {reserved} reserved \
                for owners that have a session"
            );
            return Err(Refusal::new(codes::BUSY, what));
        }
        connections.insert(owner.to_owned(), mine + 1);
        Ok(OwnerPermit { connections: Arc::clone(self), owner: owner.to_owned() })
    }

    /// Number of connections taken.
    pub(crate) fn taken(&self) -> usize {
        hold(&self.0).values().sum()
    }
}

impl Drop for OwnerPermit {
    fn drop(&mut self) {
        let mut connections = hold(&self.connections.0);
        if let Some(n) = connections.get_mut(&self.owner) {
            *n -= 1;
            if *n == 0 {
                connections.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_limited_for_each_and_kept_for_those_with_a_session() {
        let connections = Arc::new(OwnerConnections::default());
        let take = |owner: &str, session| connections.take(owner, 8, 3, session);
        let mut taken: Vec<OwnerPermit> = (0..3).map(|_| take("alice", false).unwrap()).collect();
        let error = take("alice", true).err().unwrap();
        assert!(error.message.contains("the most for one owner is 3"), "{}", error.message);
        taken.extend((0..3).map(|_| take("bob", false).unwrap()));
        // Two of eight connections are reserved for owners with a session.
        assert_eq!(take("carol", false).err().unwrap().code, codes::BUSY);
        taken.extend((0..2).map(|_| take("carol", true).unwrap()));
        assert!(take("dave", true).is_err());
        taken.truncate(2);
        assert_eq!(connections.taken(), 2);
        take("dave", false).unwrap();
    }
}
