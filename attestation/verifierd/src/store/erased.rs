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

/// Locks a tenant until the end of a transaction, unless it was erased: by a statement with
/// [`same_erasures`] for each database, which returns a row.
macro_rules! lock {
    ($store:expr, $tx:expr, $tenant:expr, $by:expr) => {{
        let tenant: &str = $tenant;
        let locked: Option<(i64,)> = sqlx::query_as($store.by_database($by))
            .bind(tenant)
            .bind($store.served.erasures(tenant))
            .fetch_optional(&mut *$tx)
            .await?;
        if locked.is_none() {
            return Err($crate::store::erased::gone(tenant));
        }
    }};
}
pub(super) use lock;

/// For a change, which other changes wait for.
pub(super) const CHANGE: [&str; 2] = [concat!(
    same_erasures!("UPDATE tenant SET swept = swept WHERE name = $1"),
    " RETURNING erased"
); 2];

/// For a record, which only an erasure waits for. A writer of SQLite is alone.
pub(super) const RECORD: [&str; 2] = [
    same_erasures!("SELECT erased FROM tenant WHERE name = $1"),
    concat!(same_erasures!("SELECT erased FROM tenant WHERE name = $1"), " FOR KEY SHARE"),
];

/// The refusal.
pub(super) fn gone(tenant: &str) -> Problem {
    Kind::Erased.because(format!(
        "tenant {tenant} was erased while this service had it in its configuration"
    ))
}

/// A tenant that has a row, and how many times it was erased.
#[derive(Clone, Debug)]
pub struct Erasures {
    pub(super) tenant: String,
    pub(super) count: i64,
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

    /// Begins to serve those of these tenants that are not served, and ends the service of all others.
    pub(super) fn serve(&self, tenants: &[Erasures]) {
        self.keep(&tenants.iter().map(|known| known.tenant.as_str()).collect::<Vec<_>>());
        let mut all = self.all();
        for Erasures { tenant, count } in tenants {
            if !all.get(tenant).is_some_and(|since| since.serves) {
                all.insert(tenant.clone(), Since { erasures: *count, serves: true });
            }
        }
    }
}
