//! Trust anchors, CoRIMs, policies, revocations. Each change raises the tenant's generation, so that replicas read again.

use super::{Store, on, row};
use crate::problem::{Kind, Result};

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
    /// As it came.
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
    /// What it is about.
    pub kind: String,
    /// Which.
    pub value: String,
    /// Why.
    pub reason: String,
    /// Seconds since 1970.
    pub created: i64,
}

row!(RevocationRow { kind, value, reason, created });

/// Everything of a tenant that appraisals are held against.
#[derive(Clone, Debug)]
pub struct CollateralRows {
    /// Generation of what was read.
    pub generation: i64,
    /// Trust anchors.
    pub anchors: Vec<AnchorRow>,
    /// Signers of CoRIMs.
    pub signers: Vec<SignerRow>,
    /// Reference values.
    pub corims: Vec<CorimRow>,
    /// Policies, all versions.
    pub policies: Vec<PolicyRow>,
    /// Revocations.
    pub revocations: Vec<RevocationRow>,
}

const RAISE: &str = "UPDATE tenant SET generation = generation + 1 WHERE name = $1";

impl Store {
    /// Generation of a tenant's collateral.
    ///
    /// # Errors
    /// The database does not answer, or has no such tenant.
    pub async fn generation(&self, tenant: &str) -> Result<i64> {
        on!(self, |pools| {
            let (generation,): (i64,) =
                sqlx::query_as("SELECT generation FROM tenant WHERE name = $1").bind(tenant).fetch_one(&pools.read).await?;
            Ok(generation)
        })
    }

    /// Reads all collateral of a tenant.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn collateral(&self, tenant: &str) -> Result<CollateralRows> {
        on!(self, |pools| {
            // The generation first: a change in between is then read twice rather than missed.
            let (generation,): (i64,) =
                sqlx::query_as("SELECT generation FROM tenant WHERE name = $1").bind(tenant).fetch_one(&pools.read).await?;
            let anchors = sqlx::query_as("SELECT name, kind, debug, certificate, created FROM anchor WHERE tenant = $1 ORDER BY name")
                .bind(tenant)
                .fetch_all(&pools.read)
                .await?;
            let signers = sqlx::query_as("SELECT name, content, created FROM signer WHERE tenant = $1 ORDER BY name")
                .bind(tenant)
                .fetch_all(&pools.read)
                .await?;
            let corims = sqlx::query_as("SELECT id, media_type, content, active, created FROM corim WHERE tenant = $1 ORDER BY id")
                .bind(tenant)
                .fetch_all(&pools.read)
                .await?;
            let policies = sqlx::query_as(
                "SELECT name, version, media_type, content, sha256, created FROM policy WHERE tenant = $1 ORDER BY name, version",
            )
            .bind(tenant)
            .fetch_all(&pools.read)
            .await?;
            let revocations =
                sqlx::query_as("SELECT kind, value, reason, created FROM revocation WHERE tenant = $1 ORDER BY created, kind, value")
                    .bind(tenant)
                    .fetch_all(&pools.read)
                    .await?;
            Ok(CollateralRows { generation, anchors, signers, corims, policies, revocations })
        })
    }

    /// Adds a trust anchor; the same again changes nothing.
    ///
    /// # Errors
    /// Another one has the name, or the database does not answer.
    pub async fn add_anchor(&self, tenant: &str, row: &AnchorRow) -> Result<()> {
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            sqlx::query(RAISE).bind(tenant).execute(&mut *tx).await?;
            let new = sqlx::query(
                "INSERT INTO anchor (tenant, name, kind, debug, certificate, created) VALUES ($1, $2, $3, $4, $5, $6) \
                 ON CONFLICT (tenant, name) DO NOTHING",
            )
            .bind(tenant)
            .bind(&row.name)
            .bind(&row.kind)
            .bind(row.debug)
            .bind(&row.certificate)
            .bind(row.created)
            .execute(&mut *tx)
            .await?
            .rows_affected();
            if new == 0 {
                let same: Option<(i64,)> = sqlx::query_as(
                    "SELECT created FROM anchor WHERE tenant = $1 AND name = $2 AND kind = $3 AND debug = $4 AND certificate = $5",
                )
                .bind(tenant)
                .bind(&row.name)
                .bind(&row.kind)
                .bind(row.debug)
                .bind(&row.certificate)
                .fetch_optional(&mut *tx)
                .await?;
                if same.is_none() {
                    return Err(Kind::Conflict.because(format!("trust anchor {}", row.name)));
                }
            }
            tx.commit().await?;
            Ok(())
        })
    }

    /// Removes what `delete` names, and raises the generation; false when there is none.
    async fn remove(&self, delete: &'static str, tenant: &str, name: &str) -> Result<bool> {
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            sqlx::query(RAISE).bind(tenant).execute(&mut *tx).await?;
            let gone = sqlx::query(delete).bind(tenant).bind(name).execute(&mut *tx).await?.rows_affected();
            tx.commit().await?;
            Ok(gone > 0)
        })
    }

    /// Removes a trust anchor; false when there is none.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn remove_anchor(&self, tenant: &str, name: &str) -> Result<bool> {
        self.remove("DELETE FROM anchor WHERE tenant = $1 AND name = $2", tenant, name).await
    }

    /// Adds a signer of CoRIMs, or replaces the one of this name.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn put_signer(&self, tenant: &str, row: &SignerRow) -> Result<()> {
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            sqlx::query(RAISE).bind(tenant).execute(&mut *tx).await?;
            sqlx::query(
                "INSERT INTO signer (tenant, name, content, created) VALUES ($1, $2, $3, $4) \
                 ON CONFLICT (tenant, name) DO UPDATE SET content = excluded.content, created = excluded.created",
            )
            .bind(tenant)
            .bind(&row.name)
            .bind(&row.content)
            .bind(row.created)
            .execute(&mut *tx)
            .await?;
            tx.commit().await?;
            Ok(())
        })
    }

    /// Removes a signer: its CoRIMs count no more. False when there is none.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn remove_signer(&self, tenant: &str, name: &str) -> Result<bool> {
        self.remove("DELETE FROM signer WHERE tenant = $1 AND name = $2", tenant, name).await
    }

    /// Adds reference values under their id; the same again changes nothing.
    ///
    /// # Errors
    /// Other content has the id, or the database does not answer.
    pub async fn add_corim(&self, tenant: &str, row: &CorimRow) -> Result<()> {
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            sqlx::query(RAISE).bind(tenant).execute(&mut *tx).await?;
            let new = sqlx::query(
                "INSERT INTO corim (tenant, id, media_type, content, active, created) VALUES ($1, $2, $3, $4, 1, $5) \
                 ON CONFLICT (tenant, id) DO NOTHING",
            )
            .bind(tenant)
            .bind(&row.id)
            .bind(&row.media_type)
            .bind(&row.content)
            .bind(row.created)
            .execute(&mut *tx)
            .await?
            .rows_affected();
            if new == 0 {
                let (content,): (Vec<u8>,) = sqlx::query_as("SELECT content FROM corim WHERE tenant = $1 AND id = $2")
                    .bind(tenant)
                    .bind(&row.id)
                    .fetch_one(&mut *tx)
                    .await?;
                if content != row.content {
                    return Err(Kind::Conflict.because(format!("reference values {}", row.id)));
                }
            }
            tx.commit().await?;
            Ok(())
        })
    }

    /// Activates or deactivates reference values; false when there are none of this id.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn activate_corim(&self, tenant: &str, id: &str, active: bool) -> Result<bool> {
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            sqlx::query(RAISE).bind(tenant).execute(&mut *tx).await?;
            let found = sqlx::query("UPDATE corim SET active = $3 WHERE tenant = $1 AND id = $2")
                .bind(tenant)
                .bind(id)
                .bind(i64::from(active))
                .execute(&mut *tx)
                .await?
                .rows_affected();
            tx.commit().await?;
            Ok(found > 0)
        })
    }

    /// Removes reference values; false when there are none of this id.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn remove_corim(&self, tenant: &str, id: &str) -> Result<bool> {
        self.remove("DELETE FROM corim WHERE tenant = $1 AND id = $2", tenant, id).await
    }

    /// Adds the next version of a policy; gives its number. The same text as the newest version is that version.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn add_policy(&self, tenant: &str, row: &PolicyRow) -> Result<i64> {
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            // The tenant's row is the lock under which versions are numbered.
            sqlx::query(RAISE).bind(tenant).execute(&mut *tx).await?;
            let newest: Option<(i64, Vec<u8>, String)> = sqlx::query_as(
                "SELECT version, sha256, media_type FROM policy WHERE tenant = $1 AND name = $2 ORDER BY version DESC LIMIT 1",
            )
            .bind(tenant)
            .bind(&row.name)
            .fetch_optional(&mut *tx)
            .await?;
            let version = match newest {
                Some((version, sha256, media_type)) if sha256 == row.sha256 && media_type == row.media_type => return Ok(version),
                Some((version, ..)) => version + 1,
                None => 1,
            };
            sqlx::query(
                "INSERT INTO policy (tenant, name, version, media_type, content, sha256, created) VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .bind(tenant)
            .bind(&row.name)
            .bind(version)
            .bind(&row.media_type)
            .bind(&row.content)
            .bind(&row.sha256)
            .bind(row.created)
            .execute(&mut *tx)
            .await?;
            tx.commit().await?;
            Ok(version)
        })
    }

    /// Revokes; the first reason stays.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn revoke(&self, tenant: &str, row: &RevocationRow) -> Result<()> {
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            sqlx::query(RAISE).bind(tenant).execute(&mut *tx).await?;
            sqlx::query(
                "INSERT INTO revocation (tenant, kind, value, reason, created) VALUES ($1, $2, $3, $4, $5) \
                 ON CONFLICT (tenant, kind, value) DO NOTHING",
            )
            .bind(tenant)
            .bind(&row.kind)
            .bind(&row.value)
            .bind(&row.reason)
            .bind(row.created)
            .execute(&mut *tx)
            .await?;
            tx.commit().await?;
            Ok(())
        })
    }

    /// Takes a revocation back; false when there is none.
    ///
    /// # Errors
    /// The database does not answer.
    pub async fn unrevoke(&self, tenant: &str, kind: &str, value: &str) -> Result<bool> {
        on!(self, |pools| {
            let mut tx = pools.durable.begin_with(pools.begin).await?;
            sqlx::query(RAISE).bind(tenant).execute(&mut *tx).await?;
            let gone = sqlx::query("DELETE FROM revocation WHERE tenant = $1 AND kind = $2 AND value = $3")
                .bind(tenant)
                .bind(kind)
                .bind(value)
                .execute(&mut *tx)
                .await?
                .rows_affected();
            tx.commit().await?;
            Ok(gone > 0)
        })
    }
}
