//! A pool of slots that never rejects a newcomer: it evicts a slot of the group with the most, and in it
//! of the holder with the most.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::hold;

/// The holder of slots, and the group whose share they count against.
pub trait Holder: Clone + Ord {
    /// The group, such as the callers of a tenant: the slots of one count for all.
    type Group: Clone + Ord;

    /// The group.
    fn group(&self) -> Self::Group;
}

impl Holder for IpAddr {
    type Group = Self;

    fn group(&self) -> Self {
        *self
    }
}

/// Limits of a pool, each at least one.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// Slots in total.
    pub all: usize,
    /// Slots of all strangers together.
    pub strangers: usize,
    /// Slots of one holder.
    pub holder: usize,
}

/// One slot.
struct Held<K> {
    holder: K,
    stranger: bool,
    engaged: bool,
    /// When it was taken, or last changed between engaged and idle.
    since: u64,
    displaced: Arc<Notify>,
}

/// Counts one slot less.
fn release<K: Ord>(counts: &mut BTreeMap<K, usize>, of: &K) {
    if let Some(slots) = counts.get_mut(of) {
        *slots -= 1;
        if *slots == 0 {
            counts.remove(of);
        }
    }
}

/// All slots, and their counts.
struct Inner<K: Holder> {
    next: u64,
    held: BTreeMap<u64, Held<K>>,
    /// Slots of each holder.
    holders: BTreeMap<K, usize>,
    /// Slots of each group.
    groups: BTreeMap<K::Group, usize>,
    strangers: usize,
}

impl<K: Holder> Inner<K> {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn slots(&self, of: &K) -> usize {
        self.holders.get(of).copied().unwrap_or(0)
    }

    fn of_group(&self, of: &K) -> usize {
        self.groups.get(&of.group()).copied().unwrap_or(0)
    }

    fn remove(&mut self, id: u64) -> Option<Held<K>> {
        let held = self.held.remove(&id)?;
        self.strangers -= usize::from(held.stranger);
        release(&mut self.holders, &held.holder);
        release(&mut self.groups, &held.holder.group());
        Some(held)
    }

    /// Adds a slot, and evicts another one if there is no room.
    fn insert(&mut self, id: u64, new: Held<K>, shares: &Shares) {
        let crowded = self.slots(&new.holder) >= shares.holder;
        let strangers = new.stranger && self.strangers >= shares.strangers;
        if crowded || strangers || self.held.len() >= shares.all {
            let may_go = |held: &Held<K>| {
                if crowded { held.holder == new.holder } else { !strangers || held.stranger }
            };
            let candidates = self.held.iter().filter(|(_, held)| may_go(held));
            let victim = candidates
                .min_by_key(|(_, held)| {
                    let most = (self.of_group(&held.holder), self.slots(&held.holder));
                    (Reverse(most), held.engaged, held.since)
                })
                .map(|(id, _)| *id);
            if let Some(victim) = victim.and_then(|id| self.remove(id)) {
                victim.displaced.notify_one();
            }
        }
        *self.holders.entry(new.holder.clone()).or_default() += 1;
        *self.groups.entry(new.holder.group()).or_default() += 1;
        self.strangers += usize::from(new.stranger);
        self.held.insert(id, new);
    }
}

/// Slots, each of a holder: an address, or a client that is known by name. A newcomer always gets
/// one. If its holder, the strangers or the pool have reached their limit, another slot is evicted:
/// of that holder, of a stranger, or of anyone. The group with the most slots makes room, in it the
/// holder with the most: a group gets no more by having more holders. Idle slots are evicted before
/// engaged ones, and the oldest first.
pub struct Pool<K: Holder> {
    shares: Shares,
    inner: Mutex<Inner<K>>,
    empty: Notify,
}

/// A slot in a pool, released on drop.
pub struct Slot<K: Holder> {
    pool: Arc<Pool<K>>,
    id: u64,
    displaced: Arc<Notify>,
}

impl<K: Holder> Pool<K> {
    /// A pool with these limits.
    #[must_use]
    pub fn new(Shares { all, strangers, holder }: Shares) -> Arc<Self> {
        let shares = Shares { all: all.max(1), strangers: strangers.max(1), holder: holder.max(1) };
        let inner = Inner {
            next: 0,
            held: BTreeMap::new(),
            holders: BTreeMap::new(),
            groups: BTreeMap::new(),
            strangers: 0,
        };
        Arc::new(Self { shares, inner: Mutex::new(inner), empty: Notify::new() })
    }

    /// Takes a slot, evicting another one if there is no room.
    #[must_use]
    pub fn enter(self: &Arc<Self>, holder: K, stranger: bool) -> Slot<K> {
        let displaced = Arc::<Notify>::default();
        let mut inner = hold(&self.inner);
        let id = inner.number();
        let new =
            Held { holder, stranger, engaged: false, since: id, displaced: Arc::clone(&displaced) };
        inner.insert(id, new, &self.shares);
        drop(inner);
        Slot { pool: Arc::clone(self), id, displaced }
    }

    /// Number of taken slots.
    #[must_use]
    pub fn taken(&self) -> usize {
        hold(&self.inner).held.len()
    }

    /// Waits until no slot is taken.
    pub async fn emptied(&self) {
        loop {
            let emptied = self.empty.notified();
            tokio::pin!(emptied);
            emptied.as_mut().enable();
            if self.taken() == 0 {
                return;
            }
            emptied.await;
        }
    }
}

impl<K: Holder> Slot<K> {
    /// Sets whether the holder is at work. This makes its slot as young as a new one.
    pub fn engage(&self, engaged: bool) {
        let mut inner = hold(&self.pool.inner);
        let since = inner.number();
        if let Some(held) = inner.held.get_mut(&self.id) {
            (held.engaged, held.since) = (engaged, since);
        }
    }

    /// Moves the slot to a known holder: its client has become known by name. Has no effect on an
    /// evicted slot.
    pub fn recognise(&self, holder: K) {
        let mut inner = hold(&self.pool.inner);
        if let Some(held) = inner.remove(self.id) {
            inner.insert(self.id, Held { holder, stranger: false, ..held }, &self.pool.shares);
        }
    }

    /// Waits until the slot is evicted.
    pub async fn displaced(&self) {
        self.displaced.notified().await;
    }
}

impl<K: Holder> Drop for Slot<K> {
    fn drop(&mut self) {
        let mut inner = hold(&self.pool.inner);
        inner.remove(self.id);
        if inner.held.is_empty() {
            self.pool.empty.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The group is the name up to a slash.
    impl Holder for &'static str {
        type Group = Self;

        fn group(&self) -> Self {
            self.split('/').next().unwrap()
        }
    }

    #[tokio::test]
    async fn a_group_gets_no_more_by_having_more_holders() {
        let pool = Pool::new(Shares { all: 8, strangers: 6, holder: 3 });
        let honest: Vec<_> = (0..3).map(|_| pool.enter("honest/one", false)).collect();
        let many = ["m/1", "m/2", "m/3", "m/4", "m/5", "m/6", "m/7", "m/8", "m/9"];
        let crowd: Vec<_> = many.iter().map(|name| pool.enter(*name, false)).collect();
        for slot in &honest {
            assert!(!evicted(slot).await);
        }
        // In the group, the holder with the most makes room.
        let more = pool.enter("m/9", false);
        let newest = pool.enter("m/1", false);
        assert!(evicted(&crowd[8]).await && !evicted(&more).await && !evicted(&newest).await);
        assert_eq!(pool.taken(), 8);
        drop((honest, crowd, more, newest));
        let inner = hold(&pool.inner);
        assert!(inner.groups.is_empty() && inner.holders.is_empty());
    }

    async fn evicted(slot: &Slot<&'static str>) -> bool {
        tokio::time::timeout(Duration::ZERO, slot.displaced()).await.is_ok()
    }

    #[tokio::test]
    async fn whoever_has_most_makes_room_and_who_works_stays() {
        let pool = Pool::new(Shares { all: 8, strangers: 6, holder: 3 });
        // A holder makes room for itself: idle slots first, the oldest of them before the others.
        let greedy: Vec<_> = (0..3).map(|_| pool.enter("greedy", true)).collect();
        greedy[0].engage(true);
        let another = pool.enter("greedy", true);
        assert!(
            evicted(&greedy[1]).await && !evicted(&greedy[0]).await && !evicted(&greedy[2]).await
        );
        greedy[0].engage(false);
        // It is idle now, but for a shorter time than the others.
        let last = pool.enter("greedy", true);
        assert!(evicted(&greedy[2]).await && !evicted(&greedy[0]).await);
        // Strangers have a share, and the one with the most slots makes room.
        let others: Vec<_> =
            ["a", "b", "c"].into_iter().map(|name| pool.enter(name, true)).collect();
        assert_eq!(pool.taken(), 6);
        let one = pool.enter("d", true);
        assert!(evicted(&another).await && pool.taken() == 6);
        // The rest is for known holders, and the whole pool for all of them.
        let known: Vec<_> =
            ["x", "y", "z"].into_iter().map(|name| pool.enter(name, false)).collect();
        assert_eq!(pool.taken(), 8);
        assert!(evicted(&greedy[0]).await || evicted(&last).await);
        for slot in known.iter().chain(&others).chain([&one]) {
            assert!(!evicted(slot).await);
        }
        // A connection that has become known is no longer evicted for strangers.
        one.recognise("w");
        let crowd: Vec<_> = (0..9).map(|_| pool.enter("crowd", true)).collect();
        assert!(!evicted(&one).await && pool.taken() == 8);
        drop(crowd);
        drop((greedy, another, last, others, known));
        assert!(tokio::time::timeout(Duration::ZERO, pool.emptied()).await.is_err());
        drop(one);
        pool.emptied().await;
    }
}
