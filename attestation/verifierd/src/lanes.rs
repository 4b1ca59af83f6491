//! Places for requests in progress.
//!
//! The kind of a request decides its [`Lane`]. A lane has reserved places, which no other
//! lane can take, and may take common ones beyond them: however many releases wait for the
//! database, revocations and probes have room. Within a lane, a tenant has a quarter of the places
//! if there are other tenants, a caller a quarter of its tenant's, and an address a quarter of what
//! callers without credentials have. Requests beyond a share wait for a moment, in order.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::auth::Identity;
use crate::problem::{Because, Kind, Problem, Result};

/// How long a request waits for its place.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a request does, and thus which places it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Asks whether the service can answer.
    Ready,
    /// Takes a right away: revokes, disables.
    Revoke,
    /// Changes something else.
    Change,
    /// Reads.
    Read,
    /// Releases a key.
    Release,
    /// Begins a session, or submits evidence.
    Attest,
}

impl Lane {
    const ALL: [Self; 6] =
        [Self::Ready, Self::Revoke, Self::Change, Self::Read, Self::Release, Self::Attest];

    /// The lane's own places, in sixteenths of all.
    fn sixteenths(self) -> usize {
        match self {
            Self::Ready | Self::Revoke => 1,
            Self::Change | Self::Read | Self::Release | Self::Attest => 2,
        }
    }
}

/// One of those that share the places of a lane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holder {
    /// Callers without credentials at an address ([`shef_tls::admission::network`]).
    Address(IpAddr),
    /// A caller.
    Caller(Identity),
    /// All callers of a tenant.
    Tenant(String),
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "address {address}"),
            Self::Caller(who) => write!(f, "caller {}", who.name),
            Self::Tenant(name) => write!(f, "tenant {name}"),
        }
    }
}

/// A place of a request, free again on drop.
#[derive(Debug)]
pub struct Place(Vec<OwnedSemaphorePermit>);

/// All lanes of a service.
#[derive(Debug)]
pub struct Lanes {
    /// The places of each lane, in the order of [`Lane::ALL`].
    own: [Arc<Semaphore>; Lane::ALL.len()],
    common: Arc<Semaphore>,
    /// The number of places that a lane may have at most.
    most: [usize; Lane::ALL.len()],
    patience: Duration,
    shares: Mutex<BTreeMap<(Lane, Holder), Arc<Semaphore>>>,
}

fn busy(whose: impl fmt::Display) -> Problem {
    Kind::Busy
        .because(format!("{whose}: as many requests of this kind as it may have are under way"))
        .retry_after(1)
}

/// A quarter, at least one.
fn quarter(places: usize) -> usize {
    (places / 4).max(1)
}

impl Lanes {
    /// Lanes for this many requests in progress (`limits.requests`).
    #[must_use]
    pub fn new(requests: usize) -> Self {
        let own = Lane::ALL.map(|lane| (requests * lane.sixteenths() / 16).max(1));
        let common = requests.saturating_sub(own.iter().sum());
        // A probe needs none of the common places, and strangers send probes.
        let most =
            Lane::ALL.map(|lane| own[lane as usize] + if lane == Lane::Ready { 0 } else { common });
        Self {
            own: own.map(|places| Arc::new(Semaphore::new(places))),
            common: Arc::new(Semaphore::new(common)),
            most,
            patience: PATIENCE,
            shares: Mutex::default(),
        }
    }

    /// Waits for a place in a lane: of a known caller, or else of an address, which is one of many
    /// callers of the anonymous identity. `alone`: there is only one tenant.
    ///
    /// # Errors
    /// Others of the same address, caller or tenant have too many requests in progress, or all
    /// tenants have.
    pub async fn enter(
        &self,
        lane: Lane,
        who: Option<&Identity>,
        address: Option<IpAddr>,
        alone: bool,
    ) -> Result<Place> {
        let most = self.most[lane as usize];
        let mut shares = Vec::with_capacity(3);
        let mut share = most;
        if let Some(who) = who {
            share = if alone { most } else { quarter(most) };
            shares.push((Holder::Tenant(who.tenant.clone()), share));
            share = quarter(share);
            shares.push((Holder::Caller(who.clone()), share));
        }
        if who.is_none_or(Identity::is_anonymous)
            && let Some(address) = address
        {
            shares.push((Holder::Address(address), quarter(share)));
        }
        let until = Instant::now() + self.patience;
        let mut place = Place(Vec::with_capacity(shares.len() + 1));
        // The smallest share first: who waits there keeps nothing from others.
        for (holder, most) in shares.into_iter().rev() {
            let share = self.share(lane, &holder, most);
            match timeout_at(until, share.acquire_owned()).await {
                Ok(Ok(permit)) => place.0.push(permit),
                _ => return Err(busy(holder)),
            }
        }
        let permit = timeout_at(until, self.permit(lane)).await;
        place.0.push(permit.ok().flatten().ok_or_else(|| busy("the service"))?);
        Ok(place)
    }

    /// The places of one holder in a lane.
    fn share(&self, lane: Lane, holder: &Holder, most: usize) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        // Each permit owns a reference: a share with only one reference has no permits.
        shares.retain(|_, share| Arc::strong_count(share) > 1);
        let share = shares.entry((lane, holder.clone()));
        Arc::clone(share.or_insert_with(|| Arc::new(Semaphore::new(most))))
    }

    /// One of the lane's own places, or a common one.
    async fn permit(&self, lane: Lane) -> Option<OwnedSemaphorePermit> {
        let own = Arc::clone(&self.own[lane as usize]).acquire_owned();
        if lane == Lane::Ready {
            return own.await.ok();
        }
        tokio::select! {
            biased;
            own = own => own.ok(),
            common = Arc::clone(&self.common).acquire_owned() => common.ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::role::Role;

    fn who(tenant: &str, name: &str) -> Identity {
        Identity { tenant: tenant.into(), name: name.into(), role: Role::Operator }
    }

    /// Lanes with a short waiting time.
    fn lanes(requests: usize) -> Lanes {
        Lanes { patience: Duration::from_millis(20), ..Lanes::new(requests) }
    }

    async fn enter(lanes: &Lanes, lane: Lane, who: &Identity) -> Result<Place> {
        lanes.enter(lane, Some(who), None, false).await
    }

    fn detail(result: Result<Place>) -> String {
        let problem = result.unwrap_err();
        assert_eq!((problem.kind, problem.headers.len()), (Kind::Busy, 1));
        problem.detail.split(':').next().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn a_caller_a_tenant_and_a_lane_leave_room() {
        let mut lanes = lanes(256);
        // 32 of the lane and 96 common ones: 32 a tenant, 8 a caller.
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(enter(&lanes, Lane::Release, &who("a", "1")).await.unwrap());
        }
        assert_eq!(detail(enter(&lanes, Lane::Release, &who("a", "1")).await), "caller 1");
        for name in ["2", "3", "4"] {
            for _ in 0..8 {
                held.push(enter(&lanes, Lane::Release, &who("a", name)).await.unwrap());
            }
        }
        assert_eq!(detail(enter(&lanes, Lane::Release, &who("a", "5")).await), "tenant a");
        drop(enter(&lanes, Lane::Revoke, &who("a", "1")).await.unwrap());
        for tenant in ["b", "c", "d"] {
            for name in ["1", "2", "3", "4"] {
                for _ in 0..8 {
                    held.push(enter(&lanes, Lane::Release, &who(tenant, name)).await.unwrap());
                }
            }
        }
        // The lane and the common places are full: other lanes have their own.
        assert_eq!(detail(enter(&lanes, Lane::Release, &who("e", "1")).await), "the service");
        let mut revokers = Vec::new();
        for tenant in 0..4 {
            for name in ["1", "2", "3", "4"] {
                let who = who(&tenant.to_string(), name);
                revokers.push(enter(&lanes, Lane::Revoke, &who).await.unwrap());
            }
        }
        assert_eq!(detail(enter(&lanes, Lane::Revoke, &who("4", "1")).await), "the service");
        // A waiting request gets the next free place, and unused shares are removed.
        lanes.patience = Duration::from_secs(60);
        let waits = who("a", "1");
        let (waits, ()) = tokio::join!(enter(&lanes, Lane::Release, &waits), async { drop(held) });
        drop((waits.unwrap(), revokers));
        drop(enter(&lanes, Lane::Read, &who("a", "1")).await.unwrap());
        drop(enter(&lanes, Lane::Read, &who("b", "1")).await.unwrap());
        assert_eq!(lanes.shares.lock().unwrap().len(), 2);
    }

    #[tokio::test]
    async fn strangers_share_by_address() {
        let lanes = lanes(256);
        let [one, two] = [1, 2].map(|last| Some(IpAddr::from([10, 0, 0, last])));
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(lanes.enter(Lane::Ready, None, one, false).await.unwrap());
        }
        assert_eq!(detail(lanes.enter(Lane::Ready, None, one, false).await), "address 10.0.0.1");
        drop(lanes.enter(Lane::Ready, None, two, false).await.unwrap());
        // The anonymous identity is many callers: an address has a quarter of its share.
        let anonymous = Identity::anonymous("a");
        for _ in 0..2 {
            held.push(lanes.enter(Lane::Attest, Some(&anonymous), one, false).await.unwrap());
        }
        let third = lanes.enter(Lane::Attest, Some(&anonymous), one, false).await;
        assert_eq!(detail(third), "address 10.0.0.1");
        drop(lanes.enter(Lane::Attest, Some(&anonymous), two, false).await.unwrap());
        drop(enter(&lanes, Lane::Attest, &who("a", "1")).await.unwrap());
    }

    /// However few requests are allowed, each lane has a place.
    #[tokio::test]
    async fn one_place_is_enough() {
        let lanes = lanes(1);
        let mut held = Vec::new();
        for lane in Lane::ALL {
            held.push(enter(&lanes, lane, &who("a", "1")).await.unwrap());
        }
    }
}
