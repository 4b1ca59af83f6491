//! Trust anchors, reference values, policies, revocations.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use axum::{Extension, Json, Router};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use shef_api as api;
use shef_api::Verdict;
use shef_verify::{ReferenceValues, TrustAnchor};
use tokio::task::block_in_place;

use super::{
    Query, Shared, bytes, json as read_json, media_type, page, stored_layer, stored_verdict,
};
use crate::app::App;
use crate::appraiser::{self, AppraisalInput, Received};
use crate::audit;
use crate::auth::Identity;
use crate::collateral::{self, Before, Collateral, StoredPolicy};
use crate::flow::shown_check;
use crate::name::{is_name, name_rule};
use crate::problem::{Because, Kind, Result};
use crate::secrets::sha256;
use crate::store::{
    AnchorRow, Change, Changed, CollateralRows, CorimRow, Event, PolicyRow, RevocationRow,
    SignerRow, revoked_value,
};
use crate::work_queue::WorkQueue;

pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/trust-anchors", get(anchors).post(add_anchor))
        .route("/v1/trust-anchors/{name}", delete(remove_anchor))
        .route("/v1/signers", get(signers))
        .route("/v1/signers/{name}", put(put_signer).delete(remove_signer))
        .route("/v1/corims", get(corims))
        .route("/v1/corims/{id}", put(add_corim).get(corim).delete(remove_corim))
        .route("/v1/corims/{id}/activate", post(activate))
        .route("/v1/corims/{id}/deactivate", post(deactivate))
        .route("/v1/policies", get(policies))
        .route("/v1/policies/dry-run", post(dry_run))
        .route("/v1/policies/{name}", put(add_policy).get(policy).delete(remove_policy))
        .route("/v1/revocations", get(revocations).post(revoke))
        .route("/v1/revocations/{kind}/{value}", delete(unrevoke))
}

/// Checks a name from a path.
pub fn name(what: &str, name: &str) -> Result<()> {
    if is_name(name) {
        Ok(())
    } else {
        Err(Kind::Name.because(format!("{what} {name:?}: {}", name_rule())))
    }
}

/// Makes a change, after checking it with all other collateral; returns the version of a policy,
/// else 0. Additions must leave collateral that is readable as a whole. Removals always succeed:
/// they may be the repair.
async fn change<T>(
    app: &App,
    who: &Identity,
    change: Change,
    check: impl Fn(&CollateralRows, Before<'_>) -> Result<T>,
) -> Result<(T, i64)> {
    let event =
        Event { tenant: &who.tenant, who: &who.name, role: who.role.name(), time: app.now() };
    let adds = matches!(
        change,
        Change::AddAnchor(_)
            | Change::PutSigner(_)
            | Change::AddCorim(_)
            | Change::Activate(_)
            | Change::AddPolicy(_)
    );
    let turn = app.store.turn(&who.tenant).await?;
    let known = app.known_collateral(&who.tenant);
    // Off the threads that serve connections: there may be a lot to parse.
    let ahead = match (&known, &change) {
        (Some(known), Change::AddCorim(row)) => {
            Some(block_in_place(|| known.read_ahead(row, event.time)))
        }
        _ => None,
    };
    let before = Before { collateral: known.as_deref(), ahead: ahead.as_ref() };
    let mut after = None;
    let whole = |rows: &CollateralRows| {
        block_in_place(|| {
            let checked = check(rows, before)?;
            let mut versions = Vec::new();
            if adds {
                let new = Collateral::new(rows, event.time, before)?;
                versions.clone_from(&new.versions);
                after = Some(Arc::new(new));
            }
            Ok((checked, versions))
        })
    };
    match app.store.change(&turn, &event, &change, whole).await? {
        Changed::Done(checked, number) => {
            let what =
                if number > 0 { format!("{}@{number}", change.what()) } else { change.what() };
            audit::change(who, change.action(), &what);
            match after {
                Some(after) => app.keep(&who.tenant, &after),
                None => drop(app.read_collateral(&who.tenant).await?),
            }
            Ok((checked, number))
        }
        Changed::Same(checked, number) => Ok((checked, number)),
        Changed::Missing => Err(Kind::NotFound.because(format!(
            "there is no {:?} for {}",
            change.what(),
            change.action()
        ))),
    }
}

/// A change whose response is 204.
async fn plain(app: &App, who: &Identity, what: Change) -> Result<StatusCode> {
    change(app, who, what, |_, _| Ok(())).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How revocations name the anchors of a tenant, by their names: SHA-256 of the public key.
pub async fn authorities(app: &App, tenant: &str) -> Result<HashMap<String, String>> {
    let collateral = app.read_collateral(tenant).await?;
    let authority = |anchor: &TrustAnchor| {
        let digest = sha256(anchor.certificate().key().as_bytes());
        (anchor.name().to_owned(), hex::encode(digest))
    };
    Ok(collateral.anchors().iter().map(authority).collect())
}

async fn anchors(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
) -> Result<Json<api::Anchors>> {
    let rows = app.store.collateral(&identity.tenant).await?;
    let authorities = authorities(&app, &identity.tenant).await?;
    let list = rows
        .anchors
        .iter()
        .map(|row| api::Anchor {
            name: row.name.clone(),
            kind: row.kind.clone(),
            debug: row.debug != 0,
            sha256: hex::encode(sha256(&row.certificate)),
            authority: authorities.get(&row.name).cloned().unwrap_or_default(),
            certificate: super::text(&row.certificate),
            created: row.created,
        })
        .collect();
    Ok(Json(api::Anchors { generation: rows.generation.unsigned_abs(), trust_anchors: list }))
}

async fn add_anchor(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    body: Bytes,
) -> Result<(StatusCode, Json<api::AddedAnchor>)> {
    let new: api::NewAnchor = read_json(&body)?;
    name("trust anchor", &new.name)?;
    let certificate = if new.certificate.contains("-----BEGIN") {
        CertificateDer::from_pem_slice(new.certificate.as_bytes())
            .map_err(|error| Kind::Anchor.because(error.to_string()))?
            .to_vec()
    } else {
        bytes("certificate", &new.certificate)?
    };
    let row = AnchorRow {
        name: new.name,
        kind: new.kind,
        debug: i64::from(new.debug),
        certificate,
        created: app.now(),
    };
    collateral::anchor(&row)?;
    let answer =
        api::AddedAnchor { name: row.name.clone(), sha256: hex::encode(sha256(&row.certificate)) };
    change(&app, &identity, Change::AddAnchor(row), |_, _| Ok(())).await?;
    Ok((StatusCode::CREATED, Json(answer)))
}

async fn remove_anchor(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    plain(&app, &identity, Change::RemoveAnchor(id)).await
}

async fn signers(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
) -> Result<Json<api::Signers>> {
    let rows = app.store.collateral(&identity.tenant).await?;
    let list = rows
        .signers
        .into_iter()
        .map(|row| api::Signer { name: row.name, signer: row.content, created: row.created })
        .collect();
    Ok(Json(api::Signers { generation: rows.generation.unsigned_abs(), signers: list }))
}

async fn put_signer(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<(StatusCode, Json<api::AddedSigner>)> {
    name("signer", &id)?;
    let content = String::from_utf8(body.to_vec()).map_err(|_| Kind::Corim.because("not UTF-8"))?;
    collateral::signer(&id, &content)?;
    let row = SignerRow { name: id.clone(), content, created: app.now() };
    change(&app, &identity, Change::PutSigner(row), |_, _| Ok(())).await?;
    Ok((StatusCode::CREATED, Json(api::AddedSigner { name: id })))
}

async fn remove_signer(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    plain(&app, &identity, Change::RemoveSigner(id)).await
}

async fn corims(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
) -> Result<Json<api::Corims>> {
    let rows = app.store.collateral(&identity.tenant).await?;
    let list = rows
        .corims
        .into_iter()
        .map(|row| api::Corim {
            sha256: hex::encode(sha256(&row.content)),
            bytes: row.content.len() as u64,
            id: row.id,
            media_type: row.media_type,
            active: row.active != 0,
            created: row.created,
        })
        .collect();
    Ok(Json(api::Corims { generation: rows.generation.unsigned_abs(), corims: list }))
}

async fn add_corim(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<api::AddedCorim>)> {
    name("reference values", &id)?;
    let media_type = media_type(&headers);
    let row = CorimRow { id, media_type, content: body.to_vec(), active: 1, created: app.now() };
    let found = store_corim(&app, &identity, &row).await?;
    let [kernels, shells, images] =
        [found.kernels.len(), found.shells.len(), found.images.len()].map(|count| count as u64);
    let answer = api::AddedCorim {
        id: row.id,
        sha256: hex::encode(sha256(&body)),
        reference_values: api::Counts { kernels, shells, images },
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// Checks reference values and stores them.
pub async fn store_corim(
    app: &App,
    identity: &Identity,
    row: &CorimRow,
) -> Result<ReferenceValues> {
    let now = app.now();
    Ok(change(app, identity, Change::AddCorim(row.clone()), |rows, before| {
        Collateral::check(rows, row, now, before)
    })
    .await?
    .0)
}

async fn corim(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Response> {
    let row = app
        .store
        .corim(&identity.tenant, &id)
        .await?
        .ok_or_else(|| Kind::NotFound.because("there are no such reference values"))?;
    Ok(([(header::CONTENT_TYPE, row.media_type)], row.content).into_response())
}

async fn remove_corim(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    plain(&app, &identity, Change::RemoveCorim(id)).await
}

async fn activate(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let (now, of) = (app.now(), id.clone());
    change(&app, &identity, Change::Activate(id), |rows, before| {
        Collateral::check_activation(rows, &of, now, before)
    })
    .await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn deactivate(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    plain(&app, &identity, Change::Deactivate(id)).await
}

async fn policies(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
) -> Result<Json<api::Policies>> {
    let rows = app.store.collateral(&identity.tenant).await?;
    let list = rows
        .policies
        .into_iter()
        .map(|row| api::Policy {
            name: row.name,
            version: row.version.unsigned_abs(),
            media_type: row.media_type,
            sha256: hex::encode(row.sha256),
            created: row.created,
        })
        .collect();
    Ok(Json(api::Policies { generation: rows.generation.unsigned_abs(), policies: list }))
}

async fn add_policy(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<api::AddedPolicy>)> {
    name("policy", &id)?;
    let media_type = media_type(&headers);
    let policy = StoredPolicy::parse(&id, 0, &media_type, &body)?;
    app.work_queue(&identity.tenant).check(&identity, policy.rego()).await?;
    let digest = sha256(&body);
    let row = PolicyRow {
        name: id,
        version: 0,
        media_type,
        content: body.to_vec(),
        sha256: digest.to_vec(),
        created: app.now(),
    };
    let name = row.name.clone();
    let ((), version) = change(&app, &identity, Change::AddPolicy(row), |_, _| Ok(())).await?;
    let (version, sha256) = (version.unsigned_abs(), hex::encode(digest));
    Ok((StatusCode::CREATED, Json(api::AddedPolicy { name, version, sha256 })))
}

async fn policy(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Response> {
    let found = app.read_collateral(&identity.tenant).await?.policy(&id)?;
    let row = app.store.policy(&identity.tenant, &found.name, found.version).await?;
    let row = row.ok_or_else(|| Kind::NotFound.because("there is no such policy"))?;
    Ok(([(header::CONTENT_TYPE, row.media_type)], row.content).into_response())
}

async fn remove_policy(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let none = || Kind::NotFound.because(format!("there is no policy {id}"));
    let (name, version) = match id.split_once('@') {
        Some((name, version)) => (name, Some(version.parse().map_err(|_| none())?)),
        None => (id.as_str(), None),
    };
    plain(&app, &identity, Change::RemovePolicy(name.to_owned(), version)).await
}

/// Evaluates recorded evidence against a policy, as of the time of each record: which accepted
/// evidence would the policy deny, and why?
async fn dry_run(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Query(query): Query<api::RowsLimit>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<api::DryRun>> {
    let media_type = media_type(&headers);
    let work_queue = app.work_queue(&identity.tenant);
    let run = work_queue.dry_run()?;
    let collateral = app.read_collateral(&identity.tenant).await?;
    let policy = Arc::new(StoredPolicy::parse("dry-run", 0, &media_type, &body)?);
    work_queue.check(&identity, policy.rego()).await?;
    let audience = app.config.load().audience.clone();
    let rows = app.store.appraisals(&identity.tenant, i64::MAX, &[], page(query.limit)).await?;
    let signer = app.signer.load_full();
    let (mut accepted, mut changes) = (0, Vec::new());
    for (at, row) in rows.iter().enumerate() {
        run.goes_on(at, rows.len())?;
        let layer = stored_layer(&row.layer)?;
        let (evidence, nonce, now, audience) =
            (row.evidence.clone(), row.nonce.clone(), row.time, audience.clone());
        let (collateral, policy, signer, chains) = (
            Arc::clone(&collateral),
            Arc::clone(&policy),
            Arc::clone(&signer),
            Arc::clone(&app.chains),
        );
        let work = move |work_queue: &WorkQueue| {
            let input = AppraisalInput {
                evidence: &Received::new(evidence),
                layer,
                nonce: &nonce,
                audience: &audience,
                challenged: Some(now),
                own_keys: signer.public_keys(),
                // The version that the device had shown by then is not on record.
                shown_svn: 0,
                now,
            };
            collateral.appraise(&policy, &input, &*chains, work_queue)
        };
        let outcome = work_queue.work(&identity, work).await?;
        let (was, would_be) =
            (stored_verdict(&row.verdict), Verdict::of(outcome.verified.is_some()));
        accepted += u64::from(outcome.verified.is_some());
        if would_be != was {
            let failed = outcome.appraisal.checks.iter().filter(|check| !check.passed);
            changes.push(api::Change {
                appraisal_id: hex::encode(&row.id),
                ueid: hex::encode(&row.ueid),
                time: row.time,
                was,
                would_be,
                failed: failed.map(shown_check).collect(),
            });
        }
    }
    let held = rows.len() as u64;
    Ok(Json(api::DryRun { held, accepted, denied: held - accepted, changes }))
}

async fn revocations(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
) -> Result<Json<api::Revocations>> {
    let rows = app.store.collateral(&identity.tenant).await?;
    let revocations = rows.revocations.iter().map(Into::into).collect();
    Ok(Json(api::Revocations { generation: rows.generation.unsigned_abs(), revocations }))
}

impl From<&RevocationRow> for api::Revocation {
    fn from(row: &RevocationRow) -> Self {
        let RevocationRow { kind, value, reason, created } = row.clone();
        Self { kind, value, reason, created }
    }
}

/// How many appraisals to search for the subject of a revocation.
const SEARCHED: i64 = 256;

/// Revokes, for the API and for the operator's page. Returns the canonical spelling of the value.
pub async fn add_revocation(
    app: &App,
    identity: &Identity,
    kind: String,
    value: String,
    reason: String,
) -> Result<String> {
    let mut row = RevocationRow { kind, value, reason, created: app.now() };
    collateral::check_revocation(&mut row)?;
    let value = row.value.clone();
    change(app, identity, Change::Revoke(row), |_, _| Ok(())).await?;
    Ok(value)
}

/// Whether anchors, reference values or the newest appraisals hold a value, in its canonical
/// spelling.
pub(crate) async fn is_known(app: &App, tenant: &str, kind: &str, value: &str) -> Result<bool> {
    let collateral = app.read_collateral(tenant).await?;
    let kept = app.store.appraisals(tenant, i64::MAX, &[], SEARCHED).await?;
    Ok(collateral.names(kind, value)
        || kept.iter().any(|row| appraiser::evidence_names(&row.evidence, kind, value)))
}

async fn revoke(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    body: Bytes,
) -> Result<(StatusCode, Json<api::AddedRevocation>)> {
    let new: api::NewRevocation = read_json(&body)?;
    let kind = new.kind.clone();
    let value = add_revocation(&app, &identity, new.kind, new.value, new.reason).await?;
    let known = is_known(&app, &identity.tenant, &kind, &value).await?;
    Ok((StatusCode::CREATED, Json(api::AddedRevocation { kind, value, known })))
}

async fn unrevoke(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path((kind, value)): Path<(String, String)>,
) -> Result<StatusCode> {
    // Versions before 0.2 stored values as typed, even invalid ones.
    let value = revoked_value(&kind, &value).unwrap_or(value);
    plain(&app, &identity, Change::Unrevoke(kind, value)).await
}
