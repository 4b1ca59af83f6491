//! Turns at the connections that write.
//!
//! The changes of a tenant wait for its row, one behind the other. If each of them held a connection
//! while it waits, a tenant with many changes, or whose row a stopped replica has locked, would take
//! the connections of all others. So each tenant has one turn for durable changes, and some for
//! quick ones.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::problem::{Kind, Result};

/// How long to wait for a turn.
const PATIENCE: Duration = Duration::from_secs(5);

/// A tenant's turn to change something; it lasts until this is dropped.
pub struct Turn(#[expect(dead_code, reason = "held")] OwnedSemaphorePermit);

/// The turns of all tenants.
pub(super) struct Turns {
    quick: usize,
    tenants: Mutex<BTreeMap<String, [Arc<Semaphore>; 2]>>,
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
        self.turn(tenant, 0).await
    }

    /// Waits for one of the tenant's turns for a quick change.
    ///
    /// # Errors
    /// The changes before it take too long.
    pub(super) async fn quick(&self, tenant: &str) -> Result<Turn> {
        self.turn(tenant, 1).await
    }

    async fn turn(&self, tenant: &str, which: usize) -> Result<Turn> {
        let turns = {
            let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
            let new = || [1, self.quick].map(|turns| Arc::new(Semaphore::new(turns)));
            Arc::clone(&tenants.entry(tenant.to_owned()).or_insert_with(new)[which])
        };
        match timeout(PATIENCE, turns.acquire_owned()).await {
            Ok(Ok(turn)) => Ok(Turn(turn)),
            _ => Err(Kind::Busy
                .because(format!(
                    "tenant {tenant}: its earlier changes have waited for the database for {} s",
                    PATIENCE.as_secs()
                ))
                .retry_after(1)),
        }
    }
}
