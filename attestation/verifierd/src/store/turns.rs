//! Turns at the connections that write.
//!
//! The changes of a tenant wait for its row, one behind the other. If each of them held a connection
//! while it waits, a tenant with many changes, or whose row a stopped replica has locked, would take
//! the connections of all others. So each tenant has one turn for durable changes, and some for
//! quick ones. Its releases take turns with each other, because a receipt names the one before; while
//! one waits for its signature, other changes go on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::problem::{Because, Kind, Result};
use crate::spans::{self, Step};

/// How long to wait for a turn.
const PATIENCE: Duration = Duration::from_secs(5);

/// A tenant's turn to change something; it lasts until this is dropped, and so does its step.
pub struct Turn(#[expect(dead_code, reason = "held")] (OwnedSemaphorePermit, Option<Step>));

/// What a turn is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    Durable,
    Quick,
    Release,
}

/// The turns of all tenants.
pub(super) struct Turns {
    quick: usize,
    tenants: Mutex<BTreeMap<String, [Arc<Semaphore>; 3]>>,
}

impl Turns {
    /// Turns at this many connections, of which a tenant may have half for quick changes.
    pub(super) fn new(connections: u32) -> Self {
        let quick = usize::try_from(connections / 2).unwrap_or(1).max(1);
        Self { quick, tenants: Mutex::default() }
    }

    /// Waits for the tenant's turn to change something durably.
    ///
    /// # Errors
    /// The changes before it take too long.
    pub(super) async fn durable(&self, tenant: &str) -> Result<Turn> {
        self.turn(tenant, For::Durable).await
    }

    /// Waits for one of the tenant's turns for a quick change.
    ///
    /// # Errors
    /// The changes before it take too long.
    pub(super) async fn quick(&self, tenant: &str) -> Result<Turn> {
        self.turn(tenant, For::Quick).await
    }

    /// Waits for the tenant's turn to release a key, which it needs in addition to that for the
    /// change itself.
    ///
    /// # Errors
    /// The releases before it take too long.
    pub(super) async fn release(&self, tenant: &str) -> Result<Turn> {
        self.turn(tenant, For::Release).await
    }

    async fn turn(&self, tenant: &str, which: For) -> Result<Turn> {
        // A release has other steps.
        let step = (which != For::Release).then(|| spans::step("change in database"));
        let turns = {
            let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || [1, self.quick, 1].map(|turns| Arc::new(Semaphore::new(turns)));
            Arc::clone(&tenants.entry(tenant.to_owned()).or_insert_with(new)[which as usize])
        };
        match timeout(PATIENCE, turns.acquire_owned()).await {
            Ok(Ok(turn)) => Ok(Turn((turn, step))),
            _ => Err(Kind::Busy
                .because(format!(
                    "tenant {tenant}: its earlier changes or releases have waited for {} s",
                    PATIENCE.as_secs()
                ))
                .retry_after(1)),
        }
    }
}
