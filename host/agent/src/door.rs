//! Admission: [`shef_tls::admission`] limits the handshakes of strangers, and the agent counts connections by
//! owner.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shef_remote::wire::codes;
use shef_tls::admission::Admission;

use crate::slot::Refusal;

/// The agent's door: 32 handshakes at once from addresses that no owner has connected from, 32 from
/// addresses that an owner has, and 8 from one address.
pub(crate) fn door() -> Arc<Admission> {
    Arc::new(Admission::new(32, 8))
}

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Connections of owners, by name.
#[derive(Default)]
pub(crate) struct Seats(Mutex<BTreeMap<String, usize>>);

/// One owner connection; dropping it frees the seat.
pub(crate) struct Seat {
    seats: Arc<Seats>,
    owner: String,
}

impl Seats {
    /// Takes one of `total` seats, and one of the owner's `each`. A quarter of the total is
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
    ) -> Result<Seat, Refusal> {
        let mut seats = hold(&self.0);
        let taken = seats.values().sum::<usize>();
        let (reserved, mine) =
            (if has_session { 0 } else { total / 4 }, seats.get(owner).copied().unwrap_or(0));
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
        seats.insert(owner.to_owned(), mine + 1);
        Ok(Seat { seats: Arc::clone(self), owner: owner.to_owned() })
    }

    /// Number of seats taken.
    pub(crate) fn taken(&self) -> usize {
        hold(&self.0).values().sum()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = hold(&self.seats.0);
        if let Some(n) = seats.get_mut(&self.owner) {
            *n -= 1;
            if *n == 0 {
                seats.remove(&self.owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_are_limited_for_each_and_kept_for_those_with_a_session() {
        let seats = Arc::new(Seats::default());
        let take = |owner: &str, session| seats.take(owner, 8, 3, session);
        let mut taken: Vec<Seat> = (0..3).map(|_| take("alice", false).unwrap()).collect();
        let error = take("alice", true).err().unwrap();
        assert!(error.message.contains("at most 3 for one owner"), "{}", error.message);
        taken.extend((0..3).map(|_| take("bob", false).unwrap()));
        // Two of eight seats are reserved for owners with a session.
        assert_eq!(take("carol", false).err().unwrap().code, codes::BUSY);
        taken.extend((0..2).map(|_| take("carol", true).unwrap()));
        assert!(take("dave", true).is_err());
        taken.truncate(2);
        assert_eq!(seats.taken(), 2);
        take("dave", false).unwrap();
    }
}
