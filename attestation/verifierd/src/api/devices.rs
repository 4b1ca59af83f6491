//! Read access to devices and appraisals.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Extension, Json, Router};
use serde_json::Value;
use shef_api as api;

use super::{Query, Shared, next, page, stored_layer, stored_verdict};
use crate::app::App;
use crate::appraiser::Received;
use crate::audit;
use crate::auth::Identity;
use crate::problem::{Because, Kind, Result};
use crate::store::{AppraisalRow, DeviceRow, Event, EventRow};

pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/devices", get(devices))
        .route("/v1/devices/{ueid}", get(device).delete(forget))
        .route("/v1/appraisals", get(appraisals))
        .route("/v1/appraisals/{id}", get(appraisal))
        .route("/v1/events", get(events))
}

fn show(row: &DeviceRow, now: i64, stale_seconds: i64) -> api::Device {
    api::Device {
        ueid: hex::encode(&row.ueid),
        target: row.target.clone(),
        kernel_svn: row.kernel_svn.unsigned_abs(),
        highest_svn: row.highest_svn.unsigned_abs(),
        verdict: stored_verdict(&row.verdict),
        first_seen: row.first_seen,
        last_seen: row.last_seen,
        last_appraised: (row.last_appraised > 0).then_some(row.last_appraised),
        stale: row.last_appraised < now - stale_seconds,
    }
}

fn show_event(row: EventRow) -> api::Event {
    api::Event {
        seq: row.seq.unsigned_abs(),
        time: row.time,
        who: row.who,
        role: row.role,
        action: row.action,
        what: row.what,
        digest: hex::encode(row.digest),
    }
}

fn brief(row: &AppraisalRow) -> Result<api::Record> {
    Ok(api::Record {
        id: hex::encode(&row.id),
        time: row.time,
        layer: stored_layer(&row.layer)?.into(),
        verdict: stored_verdict(&row.verdict),
        code: row.code.clone(),
        policy: row.policy.clone(),
        ueid: hex::encode(&row.ueid),
        evidence_sha256: hex::encode(&row.sha256),
    })
}

/// Decodes hexadecimal.
pub fn unhex(what: &str, text: &str) -> Result<Vec<u8>> {
    hex::decode(text).map_err(|_| Kind::Malformed.because(format!("{what} is not hexadecimal")))
}

async fn devices(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Query(query): Query<api::RowsAfter>,
) -> Result<Json<api::Devices>> {
    let after = unhex("after", query.after.as_deref().unwrap_or(""))?;
    let rows = app.store.devices(&identity.tenant, &after, page(query.limit)).await?;
    let (now, stale) = (app.now(), app.config.load().retention.stale_seconds);
    let next = next(&rows, query.limit, |row| hex::encode(&row.ueid));
    let devices = rows.iter().map(|row| show(row, now, stale)).collect();
    Ok(Json(api::Devices { devices, next }))
}

async fn device(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(ueid): Path<String>,
) -> Result<Json<api::Device>> {
    let row = app.store.device(&identity.tenant, &unhex("ueid", &ueid)?).await?;
    let row = row.ok_or_else(|| Kind::NotFound.because("there is no such device"))?;
    Ok(Json(show(&row, app.now(), app.config.load().retention.stale_seconds)))
}

async fn forget(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(ueid): Path<String>,
) -> Result<StatusCode> {
    let bytes = unhex("ueid", &ueid)?;
    let event = Event {
        tenant: &identity.tenant,
        who: &identity.name,
        role: identity.role.name(),
        time: app.now(),
    };
    app.store.forget_device(&event, &bytes).await?;
    audit::change(&identity, "device-forget", &hex::encode(bytes));
    app.recount(&identity.tenant).await;
    Ok(StatusCode::NO_CONTENT)
}

/// Where a page begins: a time, or the previous page's `next`, which is the time and id of its last
/// row.
pub fn cursor(before: Option<&str>) -> Result<(i64, Vec<u8>)> {
    let Some(text) = before else { return Ok((i64::MAX, Vec::new())) };
    let (time, id) = text.split_once('-').unwrap_or((text, ""));
    let time = time.parse().map_err(|_| {
        Kind::Malformed
            .because(format!("before {text:?} is neither a time nor the `next` of a page"))
    })?;
    // Only a time: skip every row of that second.
    Ok((time, if id.is_empty() { vec![0xff; 17] } else { unhex("before", id)? }))
}

/// The `next` of a page that ends with this row.
pub fn cursor_of(time: i64, id: &[u8]) -> String {
    format!("{time}-{}", hex::encode(id))
}

async fn appraisals(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Query(query): Query<api::RowsBefore>,
) -> Result<Json<api::Records>> {
    let (time, id) = cursor(query.before.as_deref())?;
    let rows = app.store.appraisals(&identity.tenant, time, &id, page(query.limit)).await?;
    let next = next(&rows, query.limit, |row| cursor_of(row.time, &row.id));
    let appraisals = rows.iter().map(brief).collect::<Result<_>>()?;
    Ok(Json(api::Records { appraisals, next }))
}

async fn events(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Query(query): Query<api::RowsBehind>,
) -> Result<Json<api::Events>> {
    let rows =
        app.store.events(&identity.tenant, query.after.unwrap_or(0), page(query.limit)).await?;
    let next = next(&rows, query.limit, |row| row.seq.unsigned_abs());
    Ok(Json(api::Events { events: rows.into_iter().map(show_event).collect(), next }))
}

async fn appraisal(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Json<api::WholeRecord>> {
    let row = app.store.appraisal(&identity.tenant, &unhex("id", &id)?).await?;
    let row = row.ok_or_else(|| Kind::NotFound.because("there is no such appraisal"))?;
    Ok(Json(api::WholeRecord {
        record: brief(&row)?,
        appraisal: serde_json::from_str(&row.report).unwrap_or(Value::Null),
        claims: Received::new(row.evidence).describe(),
    }))
}
