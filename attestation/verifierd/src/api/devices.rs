//! Read access to devices and appraisals.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Extension, Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Query, Shared, page};
use crate::app::App;
use crate::audit;
use crate::auth::Identity;
use crate::problem::{Kind, Result};
use crate::store::{AppraisalRow, DeviceRow, Event};

pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/devices", get(devices))
        .route("/v1/devices/{ueid}", get(device).delete(forget))
        .route("/v1/appraisals", get(appraisals))
        .route("/v1/appraisals/{id}", get(appraisal))
        .route("/v1/events", get(events))
}

/// A device as this API shows it.
pub fn show(row: &DeviceRow, now: i64, stale_seconds: i64) -> Value {
    json!({
        "ueid": hex::encode(&row.ueid), "target": row.target, "kernel_svn": row.kernel_svn, "highest_svn": row.highest_svn, "verdict": row.verdict,
        "first_seen": row.first_seen, "last_seen": row.last_seen,
        "last_appraised": (row.last_appraised > 0).then_some(row.last_appraised),
        "stale": row.last_appraised < now - stale_seconds,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct After {
    after: Option<String>,
    limit: Option<i64>,
}

/// Decodes hexadecimal.
pub fn unhex(what: &str, text: &str) -> Result<Vec<u8>> {
    hex::decode(text).map_err(|_| Kind::Malformed.because(format!("{what} is not hexadecimal")))
}

async fn devices(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Query(query): Query<After>,
) -> Result<Json<Value>> {
    let after = unhex("after", query.after.as_deref().unwrap_or(""))?;
    let rows = app.store.devices(&identity.tenant, &after, page(query.limit)).await?;
    let (now, stale) = (app.now(), app.config.load().retention.stale_seconds);
    let next = (rows.len() as i64 == page(query.limit))
        .then(|| rows.last().map(|row| hex::encode(&row.ueid)))
        .flatten();
    Ok(Json(
        json!({"devices": rows.iter().map(|row| show(row, now, stale)).collect::<Vec<_>>(), "next": next}),
    ))
}

async fn device(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(ueid): Path<String>,
) -> Result<Json<Value>> {
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

fn brief(row: &AppraisalRow) -> Value {
    json!({
        "id": hex::encode(&row.id), "time": row.time, "layer": row.layer, "verdict": row.verdict, "code": row.code,
        "policy": row.policy, "ueid": hex::encode(&row.ueid), "evidence_sha256": hex::encode(&row.sha256),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Before {
    before: Option<String>,
    limit: Option<i64>,
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
    Query(query): Query<Before>,
) -> Result<Json<Value>> {
    let (time, id) = cursor(query.before.as_deref())?;
    let rows = app.store.appraisals(&identity.tenant, time, &id, page(query.limit)).await?;
    let last = rows.last().filter(|_| rows.len() as i64 == page(query.limit));
    let next = last.map(|row| cursor_of(row.time, &row.id));
    Ok(Json(json!({"appraisals": rows.iter().map(brief).collect::<Vec<_>>(), "next": next})))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Behind {
    after: Option<i64>,
    limit: Option<i64>,
}

async fn events(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Query(query): Query<Behind>,
) -> Result<Json<Value>> {
    let rows =
        app.store.events(&identity.tenant, query.after.unwrap_or(0), page(query.limit)).await?;
    let next = rows.last().filter(|_| rows.len() as i64 == page(query.limit)).map(|row| row.seq);
    Ok(Json(json!({"events": rows, "next": next})))
}

async fn appraisal(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Json<Value>> {
    let row = app.store.appraisal(&identity.tenant, &unhex("id", &id)?).await?;
    let row = row.ok_or_else(|| Kind::NotFound.because("there is no such appraisal"))?;
    let mut shown = brief(&row);
    shown["appraisal"] = serde_json::from_str(&row.report).unwrap_or(Value::Null);
    shown["claims"] = crate::appraiser::Received::new(row.evidence.clone()).describe();
    Ok(Json(shown))
}
