//! Admission of connections. The agent and the verifier service keep unauthenticated connections in a
//! separate pool from authenticated ones.
//!
//! A connection occupies a slot in the [`Pool`] of handshakes until it is authenticated. A full pool
//! never rejects a new connection: it evicts the oldest one that has done nothing yet, from the
//! address with the most slots. Addresses from which a client was authenticated before have their
//! own share ([`Admission`]).

mod pool;

pub use pool::{Holder, Pool, Shares, Slot};

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of remembered addresses.
const REMEMBERED: usize = 256;

fn hold<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The unit that counts as one address: for IPv6, the network that usually belongs to one machine.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// All handshakes in progress.
pub struct Admission {
    handshakes: Arc<Pool<IpAddr>>,
    /// Addresses from which a client was authenticated, oldest first.
    known: Mutex<VecDeque<IpAddr>>,
}

/// A slot of a handshake, released on drop.
pub struct Permit {
    admission: Arc<Admission>,
    address: IpAddr,
    slot: Slot<IpAddr>,
}

impl Admission {
    /// Allows this many concurrent handshakes from unknown addresses, twice as many in all, and a
    /// limit per address.
    #[must_use]
    pub fn new(handshakes: usize, per_address: usize) -> Self {
        let shares = Shares { all: 2 * handshakes, strangers: handshakes, holder: per_address };
        Self { handshakes: Pool::new(shares), known: Mutex::default() }
    }

    /// Takes a slot, evicting another handshake if none is free.
    #[must_use]
    pub fn enter(self: &Arc<Self>, address: IpAddr) -> Permit {
        let address = network(address);
        let known = hold(&self.known).contains(&address);
        Permit {
            admission: Arc::clone(self),
            address,
            slot: self.handshakes.enter(address, !known),
        }
    }

    /// A client was authenticated from this address.
    pub fn know(&self, address: IpAddr) {
        let address = network(address);
        let known = &mut hold(&self.known);
        known.retain(|other| *other != address);
        known.push_back(address);
        if known.len() > REMEMBERED {
            known.pop_front();
        }
    }

    /// Number of handshakes in progress.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.handshakes.taken()
    }
}

impl Permit {
    /// A complete `ClientHello` has arrived: the peer takes part in a handshake. Silent connections
    /// are evicted before it.
    pub fn spoke(&self) {
        self.slot.engage(true);
    }

    /// Waits until the slot is evicted.
    pub async fn displaced(&self) {
        self.slot.displaced().await;
    }

    /// The client was authenticated.
    pub fn admit(self) {
        self.admission.know(self.address);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const HANDSHAKES: usize = 32;
    const PER_ADDRESS: usize = 8;

    async fn is_displaced(permit: &Permit) -> bool {
        tokio::time::timeout(Duration::ZERO, permit.displaced()).await.is_ok()
    }

    fn v4(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    #[tokio::test]
    async fn a_crowd_makes_room_for_newcomers_and_the_crowded_address_pays() {
        let admission = Arc::new(Admission::new(HANDSHAKES, PER_ADDRESS));
        let crowd: Vec<Permit> = (0..100).map(|_| admission.enter(v4(1))).collect();
        assert_eq!(admission.waiting(), PER_ADDRESS);
        assert!(is_displaced(&crowd[0]).await && !is_displaced(&crowd[99]).await);
        // Many addresses fill the pool; the one with the most slots makes room.
        let others: Vec<Permit> = (2..200).map(|n| admission.enter(v4(n))).collect();
        assert_eq!(admission.waiting(), HANDSHAKES);
        assert!(
            is_displaced(&crowd[98]).await
                && is_displaced(&others[0]).await
                && !is_displaced(&others[197]).await
        );
        // A connection that has spoken stays longer than silent ones.
        let speaks = admission.enter(v4(201));
        speaks.spoke();
        let more: Vec<Permit> =
            (0..PER_ADDRESS).map(|n| admission.enter(v4(202 + n as u8))).collect();
        assert!(!is_displaced(&speaks).await);
        drop((crowd, others, more));
        assert_eq!(admission.waiting(), 1);
        // A known client's address has a separate pool.
        speaks.admit();
        let known = admission.enter(v4(201));
        let strangers: Vec<Permit> = (0..200).map(|n| admission.enter(v4(n))).collect();
        assert!(!is_displaced(&known).await);
        assert_eq!(admission.waiting(), HANDSHAKES + 1);
        drop(strangers);
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let same = |a: &str, b: &str| network(a.parse().unwrap()) == network(b.parse().unwrap());
        assert!(same("2001:db8::1", "2001:db8::ffff:1") && !same("2001:db8::1", "2001:db8:0:1::1"));
        assert!(same("::ffff:10.0.0.1", "10.0.0.1") && !same("10.0.0.1", "10.0.0.2"));
    }
}
