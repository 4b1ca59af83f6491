//! Health, readiness, metrics, published keys, the API description.

use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Json, Router};
use serde_json::{Value, json};
use shef_console::Log;

use super::{Shared, openapi};
use crate::app::App;
use crate::audit;
use crate::auth::Identity;
use crate::metrics::Gauge;
use crate::problem::{Kind, Problem, Result};
use crate::tls;

pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/healthz", get(async || Json(json!({"status": "ok"}))))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/.well-known/jwks.json", get(jwks))
        .route("/v1/openapi.json", get(description))
}

/// Callers need no credentials, so the text is made only once.
async fn description() -> impl IntoResponse {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| openapi().to_string().into());
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone())
}

async fn ready(State(app): Shared) -> Result<Json<Value>> {
    app.store.check_kek(&app.kek.load_full()).await?;
    app.signs_as_all().await?;
    let config = app.config.load_full();
    let end = tls::not_after(&config.tls.certificate)?;
    if end <= app.now() {
        return Err(Kind::Store
            .because("the server certificate has ended: issue a new one and send SIGHUP"));
    }
    if let Some(why) = app.unwritable.load_full() {
        let problem = Kind::Store.because("the database cannot be written");
        return Err(Problem { cause: Some(String::clone(&why)), ..problem.retry_after(5) });
    }
    let log = if config.audit.required { Some(audit::required()?) } else { Log::installed() };
    let works = log.map(|log| log.works());
    if config.audit.required && works == Some(false) {
        let text =
            "lines of the log are lost or late: its reader is gone or slow, or its disk is full";
        return Err(Kind::Log.because(text).retry_after(5));
    }
    let log = works.map_or("none", |works| if works { "written" } else { "lost" });
    Ok(Json(json!({
        "status": "ready",
        "version": env!("CARGO_PKG_VERSION"),
        "certificate_ends": end,
        "log": log,
    })))
}

/// The tenant's metrics; all tenants' for operators of the service.
async fn metrics(
    State(app): Shared,
    Extension(who): Extension<Identity>,
) -> Result<impl IntoResponse> {
    let config = app.config.load_full();
    let whole = config
        .operators
        .iter()
        .any(|operator| operator.split_once('/') == Some((&who.tenant, &who.name)));
    let own = [who.tenant.as_str()];
    let all: Vec<&str> = config.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    let tenants = if whole { &all[..] } else { &own[..] };
    let (mut devices, mut stale, mut stored) = (0, 0, 0);
    for tenant in tenants {
        let counts = app.device_counts(tenant).await?;
        (devices, stale, stored) =
            (devices + counts.all, stale + counts.stale, stored + app.store.stored(tenant).await?);
    }
    let left = app
        .ends(tenants, whole)
        .await?
        .into_iter()
        .map(|(of, end)| ("of", of, (end - app.now()) as f64))
        .collect();
    let gauges = [
        Gauge::one("shef_devices", "Devices that were seen.", devices as f64),
        Gauge::one(
            "shef_devices_stale",
            "Devices that were not accepted for longer than retention.stale_seconds.",
            stale as f64,
        ),
        Gauge::one(
            "shef_stored_bytes",
            "Bytes that are stored, as each tenant's count against limits.tenant_bytes.",
            stored as f64,
        ),
        Gauge::one(
            "shef_log_lost_lines",
            "Lines of the log that were lost: their reader is gone or too slow, or their disk is full.",
            Log::installed().map_or(0, |log| log.lost()) as f64,
        ),
        Gauge {
            name: "shef_certificate_seconds_left",
            help: "Seconds until the first of these ends: server, client-ca, crl, signer (certificate), corim (reference values).",
            values: left,
        },
    ];
    let text = app.metrics.render((!whole).then_some(who.tenant.as_str()), &gauges);
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text))
}

async fn jwks(State(app): Shared) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/jwk-set+json")], Json(app.signer.load().jwks()))
}
