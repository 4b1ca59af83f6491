//! Health, readiness, metrics, published keys, the API description.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Json, Router};
use shef_api::{Health, IdentityProvider, Ready};
use shef_console::Log;
use tokio::time::timeout;

use super::{ROUTES, Shared, openapi};
use crate::app::App;
use crate::audit;
use crate::auth::Identity;
use crate::metrics::{CONTENT_TYPE, Family};
use crate::problem::{Because, Kind, Problem, Result};
use crate::{tls, usage};

pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/healthz", get(async || Json(Health { status: "ok".to_owned() })))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/.well-known/jwks.json", get(jwks))
        .route("/v1/openapi.json", get(description))
}

/// Callers need no credentials, so the text is made only once.
async fn description() -> impl IntoResponse {
    static TEXT: LazyLock<Bytes> =
        LazyLock::new(|| openapi().to_json().expect("the description is JSON").into());
    ([(header::CONTENT_TYPE, "application/json")], TEXT.clone())
}

async fn ready(State(app): Shared) -> Result<Json<Ready>> {
    readiness(&app).await.map(Json)
}

/// The document of a service that can answer.
///
/// # Errors
/// Why it cannot.
async fn readiness(app: &App) -> Result<Ready> {
    app.store.check_kek(&app.kek.load_full()).await?;
    app.signs_as_all().await?;
    app.signs()?;
    let config = app.config.load_full();
    let end = tls::not_after(&config.tls.certificate)?;
    if end <= app.now() {
        return Err(Kind::Material
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
    let sources = config.oidc_sources();
    let ages = app.provider_keys.ages(&sources).into_iter();
    // Without their names: strangers may read this.
    let identity_providers =
        ages.map(|age| IdentityProvider { keys_age: age.map(|age| age.as_secs()) }).collect();
    Ok(Ready {
        status: "ready".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        certificate_ends: end,
        log: log.to_owned(),
        identity_providers,
    })
}

/// Seconds since the keys of the identity providers were fetched, of the oldest.
fn oldest_keys(app: &App) -> Option<f64> {
    let ages = app.provider_keys.ages(&app.config.load_full().oidc_sources()).into_iter();
    ages.map(|age| age.map_or(f64::INFINITY, |age| age.as_secs_f64())).reduce(f64::max)
}

/// How long metrics wait for the database, twice at most: scrapes time out after ten seconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// The tenant's metrics; all tenants' for operators of the service. Families that the database does
/// not answer in time are left out.
async fn metrics(State(app): Shared, Extension(who): Extension<Identity>) -> impl IntoResponse {
    let config = app.config.load_full();
    let whole = config
        .operators
        .iter()
        .any(|operator| operator.split_once('/') == Some((&who.tenant, &who.name)));
    let own = [who.tenant.as_str()];
    let all = config.tenant_names();
    let tenants = if whole { &all[..] } else { &own[..] };
    let mut families = match timeout(PATIENCE, stored(&app, tenants, whole)).await {
        Ok(Ok(families)) => families,
        Ok(Err(_)) | Err(_) => Vec::new(),
    };
    let log = Log::installed();
    families.push(Family::gauge(
        "shef_log_lost_lines",
        "Lines of the log that were lost: their reader is gone or too slow, or their disk is full.",
        log.as_ref().map_or(0, Log::lost) as f64,
    ));
    if whole {
        let spans = app.traces.as_ref().map_or(0.0, |traces| traces.lost() as f64);
        families.push(Family::counter(
            "shef_trace_spans_lost_total",
            "Spans that the collector of [traces] did not take.",
            spans,
        ));
        let ready = timeout(PATIENCE, readiness(&app)).await.is_ok_and(|ready| ready.is_ok());
        let is = |yes: bool| f64::from(u8::from(yes));
        families.extend([
            Family {
                values: vec![("version", env!("CARGO_PKG_VERSION"), 1.0)],
                ..Family::gauge("shef_build_info", "Version of the program.", None)
            },
            Family::gauge(
                "shef_provider_keys_age_seconds",
                "Age of the oldest keys of an identity provider; none if there is no provider, infinite without keys.",
                oldest_keys(&app),
            ),
            Family::gauge("shef_ready", "1 if /readyz answers 200, else 0.", is(ready)),
            Family::gauge(
                "shef_log_works",
                "0 if lines of the log are lost or late, else 1.",
                is(log.is_none_or(|log| log.works())),
            ),
            Family::gauge(
                "shef_config_last_reload_successful",
                "0 if the last reload of the configuration was refused, else 1.",
                is(app.metrics.is_current()),
            ),
        ]);
        families.extend(usage::families());
    }
    let routes: Vec<&str> = ROUTES.iter().map(|route| route.path).chain(["other"]).collect();
    let text = app.metrics.render((!whole).then_some(who.tenant.as_str()), &routes, families);
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], text)
}

/// The families whose values are in the database.
///
/// # Errors
/// The database does not answer, or a certificate cannot be read.
async fn stored(app: &App, tenants: &[&str], whole: bool) -> Result<Vec<Family>> {
    let quota = app.config.load().limits.tenant_bytes as f64;
    let (mut devices, mut stale, mut stored, mut used) = (0, 0, 0, 0.0);
    for tenant in tenants {
        let counts = app.device_counts(tenant).await?;
        let bytes = app.store.stored(tenant).await?;
        (devices, stale, stored) = (devices + counts.all, stale + counts.stale, stored + bytes);
        used = f64::max(used, bytes as f64 / quota);
    }
    let left = app
        .ends(tenants, whole)
        .await?
        .into_iter()
        .map(|(of, end)| ("of", of, (end - app.now()) as f64))
        .collect();
    Ok(vec![
        Family::gauge("shef_devices", "Devices that were seen.", devices as f64),
        Family::gauge(
            "shef_devices_stale",
            "Devices that were not accepted for longer than retention.stale_seconds.",
            stale as f64,
        ),
        Family::gauge(
            "shef_stored_bytes",
            "Bytes that are stored, as each tenant's count against limits.tenant_bytes.",
            stored as f64,
        ),
        Family::gauge(
            "shef_stored_ratio",
            "Highest share of limits.tenant_bytes that a tenant stores.",
            used,
        ),
        Family {
            values: left,
            ..Family::gauge(
                "shef_certificate_seconds_left",
                "Seconds until the first of these ends: server, client-ca, crl, signer (certificate), corim (reference values).",
                None,
            )
        },
    ])
}

async fn jwks(State(app): Shared) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/jwk-set+json")], Json(app.signer.load().jwks()))
}
