//! Trust anchors, CoRIMs, policies, revocations. Each change is one transaction: it raises the
//! tenant's generation, so that replicas reload, is checked with all other collateral, and records
//! its event.

use shef_verify::name;

use super::erase::remember_gone;
use super::erased::{CHANGE, lock, same_erasures};
use super::events::{Event, record_event};
use super::quota::hold_quota;
use super::turns::Turn;
use super::{Store, on, row};
use crate::problem::{Because, Kind, Result};

/// A trust anchor.
#[derive(Clone, Debug)]
pub struct AnchorRow {
    /// Name.
    pub name: String,
    /// Kind of root of trust.
    pub kind: String,
    /// 1 for devices in debug mode.
    pub debug: i64,
    /// DER.
    pub certificate: Vec<u8>,
    /// Seconds since 1970.
    pub created: i64,
}

row!(AnchorRow { name, kind, debug, certificate, created });

/// Reference values.
#[derive(Clone, Debug)]
pub struct CorimRow {
    /// Id.
    pub id: String,
    /// Media type of the content.
    pub media_type: String,
    /// As received.
    pub content: Vec<u8>,
    /// 0 when deactivated.
    pub active: i64,
    /// Seconds since 1970.
    pub created: i64,
}

row!(CorimRow { id, media_type, content, active, created });

/// A signer of CoRIMs.
#[derive(Clone, Debug)]
pub struct SignerRow {
    /// Name.
    pub name: String,
    /// The entry in TOML.
    pub content: String,
    /// Seconds since 1970.
    pub created: i64,
}

row!(SignerRow { name, content, created });

/// One version of a policy.
#[derive(Clone, Debug)]
pub struct PolicyRow {
    /// Name.
    pub name: String,
    /// Version, from 1.
    pub version: i64,
    /// Media type of the text.
    pub media_type: String,
    /// The text.
    pub content: Vec<u8>,
    /// Its SHA-256.
    pub sha256: Vec<u8>,
    /// Seconds since 1970.
    pub created: i64,
}

row!(PolicyRow { name, version, media_type, content, sha256, created });

/// One revocation.
#[derive(Clone, Debug, serde::Serialize)]
pub struct RevocationRow {
    /// Kind of the subject.
    pub kind: String,
    /// The subject.
    pub value: String,
    /// The reason.
    pub reason: String,
    /// Seconds since 1970.
    pub created: i64,
}

row!(RevocationRow { kind, value, reason, created });

/// Kinds of revocations.
const REVOCATION_KINDS: [&str; 8] =
    ["device", "serial", "certificate", "authority", "kernel", "shell", "image", "vendor"];

/// The canonical spelling of a revocation's value.
///
/// # Errors
/// An unknown kind, or a malformed value.
pub fn revoked_value(kind: &str, value: &str) -> Result<String> {
    let (read, expected): (fn(&str) -> Option<String>, _) = match kind {
        "device" => (name::ueid, name::UEID),
        "serial" => (name::serial, name::SERIAL),
        "certificate" | "authority" | "kernel" | "shell" | "image" | "vendor" => {
            (name::digest, name::DIGEST)
        }
        _ => {
            return Err(Kind::Revocation
                .because(format!("kind {kind:?} is none of {}", REVOCATION_KINDS.join(", "))));
        }
    };
    read(value).ok_or_else(|| {
        Kind::Revocation.because(format!("value {value:?} of kind {kind}: expected {expected}"))
    })
}

/// The highest version ever stored of a CoRIM, by its id and signer. It outlives the CoRIM.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CorimVersion {
    /// The signer.
    pub signer: String,
    /// The CoRIM's id.
    pub id: String,
    /// The highest version.
    pub version: i64,
}

row!(CorimVersion { signer, id, version });

/// All collateral of a tenant.
#[derive(Clone, Debug)]
pub struct CollateralRows {
    /// Generation of these rows.
    pub generation: i64,
    /// Trust anchors.
    pub anchors: Vec<AnchorRow>,
    /// Signers of CoRIMs.
    pub signers: Vec<SignerRow>,
    /// Reference values.
    pub corims: Vec<CorimRow>,
    /// Highest versions of CoRIMs, including removed ones.
    pub versions: Vec<CorimVersion>,
    /// Policies, in all versions.
    pub policies: Vec<PolicyRow>,
    /// Revocations.
    pub revocations: Vec<RevocationRow>,
}

/// A change of a tenant's collateral.
#[derive(Clone, Debug)]
pub enum Change {
    /// Adds a trust anchor.
    AddAnchor(AnchorRow),
    /// Removes the trust anchor of this name.
    RemoveAnchor(String),
    /// Adds a signer of CoRIMs, or replaces the one of this name.
    PutSigner(SignerRow),
    /// Removes the signer of this name; its CoRIMs are no longer used.
    RemoveSigner(String),
    /// Adds reference values under their id.
    AddCorim(CorimRow),
    /// Removes the reference values of this id.
    RemoveCorim(String),
    /// Reactivates the reference values of this id.
    Activate(String),
    /// Deactivates them.
    Deactivate(String),
    /// Adds the next version of a policy; ignores the row's version.
    AddPolicy(PolicyRow),
    /// Removes a policy that no key names, or this version of it.
    RemovePolicy(String, Option<i64>),
    /// Revokes; the first reason stays.
    Revoke(RevocationRow),
    /// Withdraws the revocations of this kind and value, in every spelling of the value.
    Unrevoke(String, String),
}

impl Change {
    /// Its name in the audit log.
    #[must_use]
    pub fn action(&self) -> &'static str {
        match self {
            Self::AddAnchor(_) => "trust-anchor-add",
            Self::RemoveAnchor(_) => "trust-anchor-remove",
            Self::PutSigner(_) => "signer-put",
            Self::RemoveSigner(_) => "signer-remove",
            Self::AddCorim(_) => "corim-add",
            Self::RemoveCorim(_) => "corim-remove",
            Self::Activate(_) => "corim-activate",
            Self::Deactivate(_) => "corim-deactivate",
            Self::AddPolicy(_) => "policy-add",
            Self::RemovePolicy(..) => "policy-remove",
            Self::Revoke(_) => "revoke",
            Self::Unrevoke(..) => "unrevoke",
        }
    }

    /// Whether it adds something.
    fn adds(&self) -> bool {
        matches!(
            self,
            Self::AddAnchor(_)
                | Self::PutSigner(_)
                | Self::AddCorim(_)
                | Self::AddPolicy(_)
                | Self::Revoke(_)
        )
    }

    /// Its subject.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::AddAnchor(AnchorRow { name, .. })
            | Self::PutSigner(SignerRow { name, .. })
            | Self::AddPolicy(PolicyRow { name, .. }) => name.clone(),
            Self::AddCorim(row) => row.id.clone(),
            Self::RemoveAnchor(name) | Self::RemoveSigner(name) | Self::RemoveCorim(name) => {
                name.clone()
            }
            Self::Activate(id) | Self::Deactivate(id) | Self::RemovePolicy(id, None) => id.clone(),
            Self::RemovePolicy(name, Some(version)) => format!("{name}@{version}"),
            Self::Revoke(RevocationRow { kind, value, .. }) | Self::Unrevoke(kind, value) => {
                format!("{kind} {value}")
            }
        }
    }
}

/// Outcome of a change.
#[derive(Clone, Debug)]
pub enum Changed<T> {
    /// Done: the result of the check, and the version of a policy (0 for everything else).
    Done(T, i64),
    /// The store already had it; nothing is written.
    Same(T, i64),
    /// Nothing has this name; nothing is written.
    Missing,
}

/// Locks the tenant's row, which serialises changes of its collateral.
const RAISE: [&str; 2] = [concat!(
    same_erasures!("UPDATE tenant SET generation = generation + 1 WHERE name = $1"),
    " RETURNING erased"
); 2];

/// Reads all collateral of a tenant through a pool or in a transaction.
macro_rules! rows {
    ($via:expr, $tenant:expr) => {{
        let tenant: &str = $tenant;
        // The generation first: a change in between is then read twice rather than missed.
        let (generation,): (i64,) = sqlx::query_as("SELECT generation FROM tenant WHERE name = $1").bind(tenant).fetch_one($via).await?;
        let anchors = sqlx::query_as("SELECT name, kind, debug, certificate, created FROM anchor WHERE tenant = $1 ORDER BY name")
            .bind(tenant)
            .fetch_all($via)
            .await?;
        let signers = sqlx::query_as("SELECT name, content, created FROM signer WHERE tenant = $1 ORDER BY name")
            .bind(tenant)
            .fetch_all($via)
            .await?;
        let corims = sqlx::query_as("SELECT id, media_type, content, active, created FROM corim WHERE tenant = $1 ORDER BY id")
            .bind(tenant)
            .fetch_all($via)
            .await?;
        let versions =
            sqlx::query_as("SELECT signer, id, version FROM corim_version WHERE tenant = $1").bind(tenant).fetch_all($via).await?;
        let policies = sqlx::query_as(
            "SELECT name, version, media_type, content, sha256, created FROM policy WHERE tenant = $1 ORDER BY name, version",
        )
        .bind(tenant)
        .fetch_all($via)
        .await?;
        let revocations =
            sqlx::query_as("SELECT kind, value, reason, created FROM revocation WHERE tenant = $1 ORDER BY created, kind, value")
                .bind(tenant)
                .fetch_all($via)
                .await?;
        CollateralRows { generation, anchors, signers, corims, versions, policies, revocations }
    }};
}

/// Remembers versions of CoRIMs; they only increase.
macro_rules! remember {
    ($tx:expr, $tenant:expr, $versions:expr) => {
        for row in $versions {
            sqlx::query(
                "INSERT INTO corim_version (tenant, signer, id, version) VALUES ($1, $2, $3, $4) ON CONFLICT (tenant, signer, id) \
                 DO UPDATE SET version = excluded.version WHERE corim_version.version < excluded.version",
            )
            .bind($tenant)
            .bind(&row.signer)
            .bind(&row.id)
            .bind(row.version)
            .execute(&mut *$tx)
            .await?;
        }
    };
}

/// Runs a statement that changes at most one row: whether it did.
macro_rules! one {
    ($tx:expr, $sql:expr, $($value:expr),*) => {
        sqlx::query($sql)$(.bind($value))*.execute(&mut *$tx).await?.rows_affected() > 0
    };
}

/// Removes the row with this name or id; `None` if it does not exist.
macro_rules! remove {
    ($tx:expr, $table:literal, $key:literal, $tenant:expr, $name:expr) => {
        one!(
            $tx,
            concat!("DELETE FROM ", $table, " WHERE tenant = $1 AND ", $key, " = $2"),
            $tenant,
            $name
        )
        .then_some(true)
    };
}

/// Adds a trust anchor: whether it is new.
macro_rules! add_anchor {
    ($tx:expr, $tenant:expr, $row:expr) => {{
        let (tenant, row): (&str, &AnchorRow) = ($tenant, $row);
        let new = one!(
            $tx,
            "INSERT INTO anchor (tenant, name, kind, debug, certificate, created) VALUES ($1, $2, $3, $4, $5, $6) \
             ON CONFLICT (tenant, name) DO NOTHING",
            tenant,
            &row.name,
            &row.kind,
            row.debug,
            &row.certificate,
            row.created
        );
        let same: Option<(i64,)> = sqlx::query_as(
            "SELECT created FROM anchor WHERE tenant = $1 AND name = $2 AND kind = $3 AND debug = $4 AND certificate = $5",
        )
        .bind(tenant)
        .bind(&row.name)
        .bind(&row.kind)
        .bind(row.debug)
        .bind(&row.certificate)
        .fetch_optional(&mut *$tx)
        .await?;
        if same.is_none() {
            return Err(Kind::Conflict.because(format!("trust anchor {} exists", row.name)));
        }
        new
    }};
}

/// Adds a signer, or replaces the one of this name: whether that changes anything.
macro_rules! put_signer {
    ($tx:expr, $tenant:expr, $row:expr) => {{
        let row: &SignerRow = $row;
        one!(
            $tx,
            "INSERT INTO signer (tenant, name, content, created) VALUES ($1, $2, $3, $4) ON CONFLICT (tenant, name) \
             DO UPDATE SET content = excluded.content, created = excluded.created WHERE signer.content <> excluded.content",
            $tenant,
            &row.name,
            &row.content,
            row.created
        )
    }};
}

/// Adds reference values: whether they are new.
macro_rules! add_corim {
    ($tx:expr, $tenant:expr, $row:expr) => {{
        let (tenant, row): (&str, &CorimRow) = ($tenant, $row);
        let new = one!(
            $tx,
            "INSERT INTO corim (tenant, id, media_type, content, active, created) VALUES ($1, $2, $3, $4, 1, $5) \
             ON CONFLICT (tenant, id) DO NOTHING",
            tenant,
            &row.id,
            &row.media_type,
            &row.content,
            row.created
        );
        let (content,): (Vec<u8>,) =
            sqlx::query_as("SELECT content FROM corim WHERE tenant = $1 AND id = $2")
                .bind(tenant)
                .bind(&row.id)
                .fetch_one(&mut *$tx)
                .await?;
        if content != row.content {
            return Err(Kind::Conflict.because(format!("reference values {} exist", row.id)));
        }
        new
    }};
}

/// Activates (1) or deactivates (0) reference values. Returns whether that changes them, or `None`
/// if this id does not exist.
macro_rules! set_active {
    ($tx:expr, $tenant:expr, $id:expr, $active:literal) => {{
        let known: Option<(i64,)> =
            sqlx::query_as("SELECT active FROM corim WHERE tenant = $1 AND id = $2")
                .bind($tenant)
                .bind($id)
                .fetch_optional(&mut *$tx)
                .await?;
        let set = one!(
            $tx,
            "UPDATE corim SET active = $3 WHERE tenant = $1 AND id = $2 AND active <> $3",
            $tenant,
            $id,
            $active
        );
        known.map(|_| set)
    }};
}

/// Adds the next version of a policy: the newest version, and whether it is new.
macro_rules! add_policy {
    ($tx:expr, $tenant:expr, $row:expr) => {{
        let (tenant, row): (&str, &PolicyRow) = ($tenant, $row);
        let newest: Option<(i64, Vec<u8>, String)> = sqlx::query_as(
            "SELECT version, sha256, media_type FROM policy WHERE tenant = $1 AND name = $2 ORDER BY version DESC LIMIT 1",
        )
        .bind(tenant)
        .bind(&row.name)
        .fetch_optional(&mut *$tx)
        .await?;
        let same = newest
            .as_ref()
            .is_some_and(|(_, sha256, kind)| *sha256 == row.sha256 && *kind == row.media_type);
        let before = match &newest {
            Some((version, ..)) => *version,
            None => sqlx::query_as(
                "SELECT version FROM gone WHERE tenant = $1 AND kind = 'policy' AND name = $2",
            )
            .bind(tenant)
            .bind(&row.name)
            .fetch_optional(&mut *$tx)
            .await?
            .map_or(0, |(version,): (i64,)| version),
        };
        let version = before + i64::from(!same);
        let new = !same
            && one!(
                $tx,
                "INSERT INTO policy (tenant, name, version, media_type, content, sha256, created) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
                tenant,
                &row.name,
                version,
                &row.media_type,
                &row.content,
                &row.sha256,
                row.created
            );
        (version, new)
    }};
}

/// Removes a policy, or one version of it; `None` if it does not exist.
macro_rules! remove_policy {
    ($tx:expr, $tenant:expr, $name:expr, $version:expr) => {{
        let (tenant, name, version): (&str, &str, Option<i64>) = ($tenant, $name, $version);
        let (newest,): (Option<i64>,) =
            sqlx::query_as("SELECT MAX(version) FROM policy WHERE tenant = $1 AND name = $2")
                .bind(tenant)
                .bind(name)
                .fetch_one(&mut *$tx)
                .await?;
        let key: Option<(String, i64)> = sqlx::query_as(
            "SELECT name, version FROM key_version WHERE tenant = $1 AND policy = $2 AND policy_version = COALESCE($3, policy_version) \
             ORDER BY name, version LIMIT 1",
        )
        .bind(tenant)
        .bind(name)
        .bind(version)
        .fetch_optional(&mut *$tx)
        .await?;
        match newest {
            None => None,
            Some(_) if key.is_some() => {
                let (key, number) = key.unwrap_or_default();
                return Err(Kind::InUse
                    .because(format!("key {key} version {number} is released under policy {name}")));
            }
            Some(newest) if version == Some(newest) => {
                return Err(Kind::InUse.because(format!("{name}@{newest} is the newest version")));
            }
            Some(newest) => {
                if version.is_none() {
                    remember_gone!($tx, tenant, "policy", name, newest);
                }
                let sql = "DELETE FROM policy WHERE tenant = $1 AND name = $2 AND version = COALESCE($3, version)";
                one!($tx, sql, tenant, name, version).then_some(true)
            }
        }
    }};
}

/// Adds a revocation: whether it is new.
macro_rules! revoke {
    ($tx:expr, $tenant:expr, $row:expr) => {{
        let row: &RevocationRow = $row;
        one!(
            $tx,
            "INSERT INTO revocation (tenant, kind, value, reason, created) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (tenant, kind, value) DO NOTHING",
            $tenant,
            &row.kind,
            &row.value,
            &row.reason,
            row.created
        )
    }};
}

/// Withdraws a revocation; `None` if it does not exist.
macro_rules! unrevoke {
    ($tx:expr, $tenant:expr, $kind:expr, $value:expr) => {{
        let (tenant, kind, value): (&str, &str, &str) = ($tenant, $kind, $value);
        let stored: Vec<(String,)> =
            sqlx::query_as("SELECT value FROM revocation WHERE tenant = $1 AND kind = $2")
                .bind(tenant)
                .bind(kind)
                .fetch_all(&mut *$tx)
                .await?;
        let mut found = None;
        for (stored,) in stored {
            if stored == value || revoked_value(kind, &stored).is_ok_and(|stored| stored == value) {
                let sql = "DELETE FROM revocation WHERE tenant = $1 AND kind = $2 AND value = $3";
                found = one!($tx, sql, tenant, kind, &stored).then_some(true).or(found);
            }
        }
        found
    }};
}

impl Store {
    /// Generation of a tenant's collateral.
    ///
    /// # Errors
    /// The database does not answer, or has no such tenant.
    pub async fn generation(&self, tenant: &str) -> Result<i64> {
        on!(self, |pools| {
            let (generation,): (i64,) =
                sqlx::query_as("SELECT generation FROM tenant WHERE name = $1")
                    .bind(tenant)
                    .fetch_one(&pools.read)
                    .await?;
            Ok(generation)
        })
    }

    /// Reads all collateral of a tenant.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn collateral(&self, tenant: &str) -> Result<CollateralRows> {
        on!(self, |pools| Ok(rows!(&pools.read, tenant)))
    }

    /// The reference values of this id.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn corim(&self, tenant: &str, id: &str) -> Result<Option<CorimRow>> {
        on!(self, |pools| {
            let sql = "SELECT id, media_type, content, active, created FROM corim WHERE tenant = $1 AND id = $2";
            Ok(sqlx::query_as(sql).bind(tenant).bind(id).fetch_optional(&pools.read).await?)
        })
    }

    /// This version of a policy.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn policy(
        &self,
        tenant: &str,
        name: &str,
        version: i64,
    ) -> Result<Option<PolicyRow>> {
        on!(self, |pools| {
            let sql = "SELECT name, version, media_type, content, sha256, created FROM policy \
                       WHERE tenant = $1 AND name = $2 AND version = $3";
            let row = sqlx::query_as(sql).bind(tenant).bind(name).bind(version);
            Ok(row.fetch_optional(&pools.read).await?)
        })
    }

    /// Tenants with CoRIM versions that are remembered under a signer's name, as before 0.2.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn remembered_by_name(&self) -> Result<Vec<String>> {
        on!(self, |pools| {
            let found: Vec<(String,)> = sqlx::query_as(
                "SELECT DISTINCT tenant FROM corim_version WHERE signer NOT LIKE 'key:%'",
            )
            .fetch_all(&pools.read)
            .await?;
            Ok(found.into_iter().map(|(tenant,)| tenant).collect())
        })
    }

    /// Remembers the versions of CoRIMs that were stored before versions were remembered.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn remember(&self, tenant: &str, versions: &[CorimVersion]) -> Result<()> {
        let _turn = self.turns.durable(tenant).await?;
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            lock!(self, tx, tenant, CHANGE);
            remember!(tx, tenant, versions);
            tx.commit().await?;
            Ok(())
        })
    }

    /// Waits for the tenant's turn to change its collateral. What takes long is done in the turn,
    /// but before the change, which holds the database's lock.
    ///
    /// # Errors
    /// The changes before it take too long.
    pub async fn turn(&self, tenant: &str) -> Result<Turn> {
        self.turns.durable(tenant).await
    }

    /// Changes the collateral, in the tenant's turn. The change, `check` on the resulting
    /// collateral, and the event are one transaction. `check` also returns the versions of the
    /// present CoRIMs, which are remembered.
    ///
    /// # Errors
    /// An error of the check, another content under the name, the tenant stores too much, or the
    /// database does not answer; nothing is changed then.
    pub async fn change<T>(
        &self,
        _turn: &Turn,
        event: &Event<'_>,
        change: &Change,
        check: impl FnOnce(&CollateralRows) -> Result<(T, Vec<CorimVersion>)>,
    ) -> Result<Changed<T>> {
        let tenant = event.tenant;
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            lock!(self, tx, tenant, RAISE);
            let mut what = change.what();
            let mut number = 0;
            // `None`: nothing of this name. `false`: no change.
            let done = match change {
                Change::AddAnchor(row) => Some(add_anchor!(tx, tenant, row)),
                Change::RemoveAnchor(name) => remove!(tx, "anchor", "name", tenant, name),
                Change::PutSigner(row) => Some(put_signer!(tx, tenant, row)),
                Change::RemoveSigner(name) => remove!(tx, "signer", "name", tenant, name),
                Change::AddCorim(row) => Some(add_corim!(tx, tenant, row)),
                Change::RemoveCorim(id) => remove!(tx, "corim", "id", tenant, id),
                Change::Activate(id) => set_active!(tx, tenant, id, 1),
                Change::Deactivate(id) => set_active!(tx, tenant, id, 0),
                Change::AddPolicy(row) => {
                    let (version, new) = add_policy!(tx, tenant, row);
                    (what, number) = (format!("{what}@{version}"), version);
                    Some(new)
                }
                Change::RemovePolicy(name, version) => remove_policy!(tx, tenant, name, *version),
                Change::Revoke(row) => Some(revoke!(tx, tenant, row)),
                Change::Unrevoke(kind, value) => unrevoke!(tx, tenant, kind, value),
            };
            let Some(done) = done else { return Ok(Changed::Missing) };
            if done && change.adds() {
                hold_quota!(self, tx, tenant, matches!(change, Change::Revoke(_)));
            }
            let (checked, versions) = check(&rows!(&mut *tx, tenant))?;
            if !done {
                return Ok(Changed::Same(checked, number));
            }
            remember!(tx, tenant, &versions);
            record_event!(tx, event, change.action(), what);
            tx.commit().await?;
            Ok(Changed::Done(checked, number))
        })
    }
}
