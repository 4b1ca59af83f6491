//! Who gets in: handshakes have a small pool of their own, and connections are counted by owner.
//!
//! A stranger costs a place in the pool until it has shown a certificate. A pool that is full never turns a newcomer away: it lets one go that has said nothing yet, of the
//! address that has the most places, the oldest first. Addresses from which an owner came have a pool of their own.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shef_device::wire::codes;
use tokio::sync::Notify;

use crate::slot::Refusal;

/// Handshakes at once from addresses that no owner came from, and from those that one did.
const HANDSHAKES: usize = 32;
/// Handshakes at once from one address.
const PER_ADDRESS: usize = 8;
/// Addresses that are remembered.
const REMEMBERED: usize = 256;

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What counts as one address: of IPv6 the network that a machine usually has to itself.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

/// One handshake.
struct Waiting {
    id: u64,
    address: IpAddr,
    /// An owner came from this address.
    known: bool,
    /// Something came in.
    spoke: bool,
    displaced: Arc<Notify>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    waiting: Vec<Waiting>,
    /// The oldest first.
    known: VecDeque<IpAddr>,
}

/// All handshakes that are under way.
#[derive(Default)]
pub(crate) struct Door(Mutex<Inner>);

/// A place in a pool, until it is dropped.
pub(crate) struct Ticket {
    door: Arc<Door>,
    id: u64,
    address: IpAddr,
    displaced: Arc<Notify>,
}

impl Door {
    /// Takes a place, from another one if there is none left.
    pub(crate) fn enter(self: &Arc<Self>, address: IpAddr) -> Ticket {
        let (address, displaced) = (network(address), Arc::<Notify>::default());
        let mut inner = hold(&self.0);
        let known = inner.known.contains(&address);
        let places = |address: IpAddr| inner.waiting.iter().filter(|w| w.known == known && w.address == address).count();
        let full = inner.waiting.iter().filter(|w| w.known == known).count() >= HANDSHAKES;
        let crowded = places(address) >= PER_ADDRESS;
        let victim = inner
            .waiting
            .iter()
            .filter(|w| w.known == known && if crowded { w.address == address } else { full })
            .min_by_key(|w| (std::cmp::Reverse(places(w.address)), w.spoke, w.id))
            .map(|w| w.id);
        if let Some(at) = victim.and_then(|id| inner.waiting.iter().position(|w| w.id == id)) {
            inner.waiting.swap_remove(at).displaced.notify_one();
        }
        let id = inner.next;
        inner.next += 1;
        inner.waiting.push(Waiting { id, address, known, spoke: false, displaced: Arc::clone(&displaced) });
        drop(inner);
        Ticket { door: Arc::clone(self), id, address, displaced }
    }

    /// Handshakes that are under way.
    pub(crate) fn waiting(&self) -> usize {
        hold(&self.0).waiting.len()
    }
}

impl Ticket {
    /// Something came in.
    pub(crate) fn spoke(&self) {
        if let Some(waiting) = hold(&self.door.0).waiting.iter_mut().find(|w| w.id == self.id) {
            waiting.spoke = true;
        }
    }

    /// Waits until the place is somebody else's.
    pub(crate) async fn displaced(&self) {
        self.displaced.notified().await;
    }

    /// An owner came from here.
    pub(crate) fn admit(self) {
        let known = &mut hold(&self.door.0).known;
        known.retain(|address| *address != self.address);
        known.push_back(self.address);
        if known.len() > REMEMBERED {
            known.pop_front();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        hold(&self.door.0).waiting.retain(|w| w.id != self.id);
    }
}

/// Connections of owners.
#[derive(Default)]
pub(crate) struct Seats(Mutex<BTreeMap<String, usize>>);

/// A connection of an owner, until it is dropped.
pub(crate) struct Seat {
    seats: Arc<Seats>,
    owner: String,
}

impl Seats {
    /// Takes a seat of `total` and of the owner's `each`. A quarter of all is for owners that have a session.
    ///
    /// # Errors
    /// SHEF-AGT-015, which says what the limit is.
    pub(crate) fn take(self: &Arc<Self>, owner: &str, total: usize, each: usize, has_session: bool) -> Result<Seat, Refusal> {
        let mut seats = hold(&self.0);
        let taken = seats.values().sum::<usize>();
        let (reserved, mine) = (if has_session { 0 } else { total / 4 }, seats.get(owner).copied().unwrap_or(0));
        if mine >= each {
            return Err(Refusal::new(codes::BUSY, format!("owner {owner} has {mine} connections, of at most {each} for one owner")));
        }
        if taken + reserved >= total {
            let what =
                format!("the agent has {taken} connections, of at most {total}, of which {reserved} are for owners that have a session");
            return Err(Refusal::new(codes::BUSY, what));
        }
        seats.insert(owner.to_owned(), mine + 1);
        Ok(Seat { seats: Arc::clone(self), owner: owner.to_owned() })
    }

    /// Seats that are taken.
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
    use std::time::Duration;

    async fn is_displaced(ticket: &Ticket) -> bool {
        tokio::time::timeout(Duration::ZERO, ticket.displaced()).await.is_ok()
    }

    fn v4(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[tokio::test]
    async fn a_crowd_makes_room_for_newcomers_and_the_crowded_address_pays() {
        let door = Arc::new(Door::default());
        let crowd: Vec<Ticket> = (0..100).map(|_| door.enter(v4(1))).collect();
        assert_eq!(door.waiting(), PER_ADDRESS);
        assert!(is_displaced(&crowd[0]).await && !is_displaced(&crowd[99]).await);
        // Many addresses fill the pool; the one with the most places makes room.
        let others: Vec<Ticket> = (2..200).map(|n| door.enter(v4(n))).collect();
        assert_eq!(door.waiting(), HANDSHAKES);
        assert!(is_displaced(&crowd[98]).await && is_displaced(&others[0]).await && !is_displaced(&others[197]).await);
        // One that speaks stays longer than those that do not.
        let speaks = door.enter(v4(201));
        speaks.spoke();
        let more: Vec<Ticket> = (0..PER_ADDRESS).map(|n| door.enter(v4(202 + n as u8))).collect();
        assert!(!is_displaced(&speaks).await);
        drop((crowd, others, more));
        assert_eq!(door.waiting(), 1);
        // An owner's address has a pool of its own.
        speaks.admit();
        let owner = door.enter(v4(201));
        let strangers: Vec<Ticket> = (0..200).map(|n| door.enter(v4(n))).collect();
        assert!(!is_displaced(&owner).await);
        assert_eq!(door.waiting(), HANDSHAKES + 1);
        drop(strangers);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let same = |a: &str, b: &str| network(a.parse().unwrap()) == network(b.parse().unwrap());
        assert!(same("2001:db8::1", "2001:db8::ffff:1") && !same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("::ffff:10.0.0.1", "10.0.0.1") && !same("10.0.0.1", "10.0.0.2"));
    }

    #[test]
    fn seats_are_limited_for_each_and_kept_for_those_with_a_session() {
        let seats = Arc::new(Seats::default());
        let take = |owner: &str, session| seats.take(owner, 8, 3, session);
        let mut taken: Vec<Seat> = (0..3).map(|_| take("alice", false).unwrap()).collect();
        let error = take("alice", true).err().unwrap();
        assert!(error.message.contains("at most 3 for one owner"), "{}", error.message);
        taken.extend((0..3).map(|_| take("bob", false).unwrap()));
        // Two of eight are for owners with a session.
        assert_eq!(take("carol", false).err().unwrap().code, codes::BUSY);
        taken.extend((0..2).map(|_| take("carol", true).unwrap()));
        assert!(take("dave", true).is_err());
        taken.truncate(2);
        assert_eq!(seats.taken(), 2);
        take("dave", false).unwrap();
    }
}
