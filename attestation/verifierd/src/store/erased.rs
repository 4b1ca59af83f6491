//! Tenants that were erased while a replica still has them in its configuration, or still works on
//! requests from when it had: the replica adds nothing to them, until it begins to serve them again.
//!
//! `tenant.erased` counts the erasures. A store remembers the number that it found when it began
//! to serve a tenant, and each transaction that adds something compares it under a lock of the
//! tenant's row, which an erasure waits for.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::problem::{Because, Kind, Problem};

/// The condition on a row of `tenant`; `$2` is [`Served::erasures`]. A store of a command serves no
/// tenant, and changes all.
macro_rules! same_erasures {
    ($sql:literal) => {
        concat!($sql, " AND erased = COALESCE($2, erased)")
    };
}
pub(super) use same_erasures;

/// Locks a tenant until the end of a transaction, by a statement with [`same_erasures`].
macro_rules! lock_by {
    ($sql:expr, $store:expr, $tx:expr, $tenant:expr) => {{
        let tenant: &str = $tenant;
        let locked = sqlx::query($sql)
            .bind(tenant)
            .bind($store.served.erasures(tenant))
            .execute(&mut *$tx)
            .await?
            .rows_affected();
        if locked == 0 {
            return Err($crate::store::erased::gone(tenant));
        }
    }};
}
pub(super) use lock_by;

/// Locks a tenant until the end of a transaction.
macro_rules! lock {
    ($store:expr, $tx:expr, $tenant:expr) => {
        $crate::store::erased::lock_by!($crate::store::erased::LOCK, $store, $tx, $tenant)
    };
}
pub(super) use lock;

/// Checks that a tenant was not erased, nor is until the end of the transaction: by a lock that only an
/// erasure waits for. A writer of SQLite is alone.
macro_rules! hold_tenant {
    ($store:expr, $tx:expr, $tenant:expr) => {{
        let tenant: &str = $tenant;
        let there: Option<(i64,)> =
            sqlx::query_as($store.by_database($crate::store::erased::THERE))
                .bind(tenant)
                .bind($store.served.erasures(tenant))
                .fetch_optional(&mut *$tx)
                .await?;
        if there.is_none() {
            return Err($crate::store::erased::gone(tenant));
        }
    }};
}
pub(super) use hold_tenant;

pub(super) const LOCK: &str = same_erasures!("UPDATE tenant SET swept = swept WHERE name = $1");
/// For SQLite and PostgreSQL.
pub(super) const THERE: [&str; 2] = [
    same_erasures!("SELECT erased FROM tenant WHERE name = $1"),
    concat!(same_erasures!("SELECT erased FROM tenant WHERE name = $1"), " FOR KEY SHARE"),
];

/// The refusal.
pub(super) fn gone(tenant: &str) -> Problem {
    Kind::Erased.because(format!(
        "tenant {tenant} was erased while this service had it in its configuration"
    ))
}

/// When a store began to serve a tenant.
struct Since {
    /// How many times the tenant had been erased.
    erasures: i64,
    /// Whether it still serves the tenant. Requests from before go on.
    serves: bool,
}

/// The tenants that a store serves, or has served.
#[derive(Default)]
pub(super) struct Served(Mutex<BTreeMap<String, Since>>);

impl Served {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Since>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The erasures of a tenant before it was served; `None` for one that never was.
    pub(super) fn erasures(&self, tenant: &str) -> Option<i64> {
        self.all().get(tenant).map(|since| since.erasures)
    }

    /// Ends the service of all tenants but these.
    pub(super) fn keep(&self, names: &[&str]) {
        for (name, since) in self.all().iter_mut() {
            since.serves &= names.contains(&name.as_str());
        }
    }

    /// Begins to serve a tenant, unless it is served.
    pub(super) fn begin(&self, tenant: &str, erasures: i64) {
        let mut all = self.all();
        if !all.get(tenant).is_some_and(|since| since.serves) {
            all.insert(tenant.to_owned(), Since { erasures, serves: true });
        }
    }
}
