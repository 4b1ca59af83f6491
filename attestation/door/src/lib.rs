//! Admission of TLS connections. The agent and the verifier service each have a [CA](ca) of their
//! own, and keep unauthenticated connections in a separate pool from authenticated ones.
//!
//! A connection occupies a slot in the pool until it is authenticated. A full pool never rejects a
//! new connection: it evicts the oldest one that has sent nothing yet, from the address with the
//! most slots. Addresses from which a client was authenticated before have their own pool.

pub mod ca;
pub mod files;
pub mod output;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Maximum number of remembered addresses.
const REMEMBERED: usize = 256;

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The unit that counts as one address: for IPv6, the network that usually belongs to one machine.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// One handshake.
struct Waiting {
    id: u64,
    address: IpAddr,
    /// A client was authenticated from this address.
    known: bool,
    /// Data has arrived.
    spoke: bool,
    displaced: Arc<Notify>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    waiting: Vec<Waiting>,
    /// Oldest first.
    known: VecDeque<IpAddr>,
}

/// All handshakes in progress.
pub struct Door {
    handshakes: usize,
    per_address: usize,
    inner: Mutex<Inner>,
}

/// A slot in a pool, released on drop.
pub struct Ticket {
    door: Arc<Door>,
    id: u64,
    address: IpAddr,
    displaced: Arc<Notify>,
}

impl Door {
    /// Allows this many concurrent handshakes from unknown addresses, as many from known ones, and
    /// a limit per address.
    #[must_use]
    pub fn new(handshakes: usize, per_address: usize) -> Self {
        Self { handshakes, per_address, inner: Mutex::default() }
    }

    /// Takes a slot, evicting another handshake if none is free.
    #[must_use]
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Ticket {
        let (address, displaced) = (network(address), Arc::<Notify>::default());
        let mut inner = hold(&self.inner);
        let known = inner.known.contains(&address);
        let places = |address: IpAddr| inner.waiting.iter().filter(|w| w.known == known && w.address == address).count();
        let full = inner.waiting.iter().filter(|w| w.known == known).count() >= self.handshakes;
        let crowded = places(address) >= self.per_address;
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

    /// Number of handshakes in progress.
    #[must_use]
    pub fn waiting(&self) -> usize {
        hold(&self.inner).waiting.len()
    }
}

impl Ticket {
    /// Data has arrived.
    pub fn spoke(&self) {
        if let Some(waiting) = hold(&self.door.inner).waiting.iter_mut().find(|w| w.id == self.id) {
            waiting.spoke = true;
        }
    }

    /// Waits until the slot is evicted.
    pub async fn displaced(&self) {
        self.displaced.notified().await;
    }

    /// A client was authenticated from this address.
    pub fn admit(self) {
        let known = &mut hold(&self.door.inner).known;
        known.retain(|address| *address != self.address);
        known.push_back(self.address);
        if known.len() > REMEMBERED {
            known.pop_front();
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        hold(&self.door.inner).waiting.retain(|w| w.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HANDSHAKES: usize = 32;
    const PER_ADDRESS: usize = 8;

    async fn is_displaced(ticket: &Ticket) -> bool {
        tokio::time::timeout(Duration::ZERO, ticket.displaced()).await.is_ok()
    }

    fn v4(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[tokio::test]
    async fn a_crowd_makes_room_for_newcomers_and_the_crowded_address_pays() {
        let door = Arc::new(Door::new(HANDSHAKES, PER_ADDRESS));
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
        // The address of somebody known has a pool of its own.
        speaks.admit();
        let known = door.enter(v4(201));
        let strangers: Vec<Ticket> = (0..200).map(|n| door.enter(v4(n))).collect();
        assert!(!is_displaced(&known).await);
        assert_eq!(door.waiting(), HANDSHAKES + 1);
        drop(strangers);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let same = |a: &str, b: &str| network(a.parse().unwrap()) == network(b.parse().unwrap());
        assert!(same("2001:db8::1", "2001:db8::ffff:1") && !same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("::ffff:10.0.0.1", "10.0.0.1") && !same("10.0.0.1", "10.0.0.2"));
    }
}
