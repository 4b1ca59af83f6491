//! Health, readiness, metrics, published keys, the description of the API.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Json, Router};
use serde_json::{Map, Value, json};

use super::{ROUTES, Shared};
use crate::app::App;
use crate::auth::{Identity, Need};
use crate::metrics::Gauge;
use crate::problem::{Kind, Result};
use crate::tls;

pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/healthz", get(async || Json(json!({"status": "ok"}))))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .route("/.well-known/jwks.json", get(jwks))
        .route("/v1/openapi.json", get(async || Json(openapi())))
}

async fn ready(State(app): Shared) -> Result<Json<Value>> {
    app.store.check_kek(&app.kek.load_full()).await?;
    let config = app.config.load_full();
    let end = tls::not_after(&config.tls.certificate)?;
    if end <= app.now() {
        return Err(Kind::Store.because("the server certificate has ended: issue a new one and send SIGHUP"));
    }
    Ok(Json(json!({"status": "ready", "version": env!("CARGO_PKG_VERSION"), "certificate_ends": end})))
}

/// The tenant's own; all of them for those who run the service.
async fn metrics(State(app): Shared, Extension(who): Extension<Identity>) -> Result<impl IntoResponse> {
    let config = app.config.load_full();
    let whole = config.operators.iter().any(|operator| operator.split_once('/') == Some((&who.tenant, &who.name)));
    let own = [who.tenant.as_str()];
    let all: Vec<&str> = config.tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    let tenants = if whole { &all[..] } else { &own[..] };
    let (mut devices, mut stale) = (0, 0);
    for tenant in tenants {
        let counts = app.device_counts(tenant).await?;
        (devices, stale) = (devices + counts.all, stale + counts.stale);
    }
    let left = app.ends(tenants, whole).await?.into_iter().map(|(of, end)| ("of", of, (end - app.now()) as f64)).collect();
    let gauges = [
        Gauge::one("shef_devices", "Devices that were seen.", devices as f64),
        Gauge::one("shef_devices_stale", "Devices that were not accepted for longer than retention.stale_seconds.", stale as f64),
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

/// The description of the API, from the same table that admits requests.
#[must_use]
pub fn openapi() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let parameters: Vec<Value> = route
            .path
            .split('/')
            .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
            .collect();
        let mut operation = json!({
            "summary": route.summary,
            "operationId": operation_id(route.method, route.path),
            "responses": {
                "default": {
                    "description": "What went wrong.",
                    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
                },
                "200": {"description": "Done."},
            },
        });
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
        if let Some(schema) = body_schema(route.path, route.method) {
            operation["requestBody"] = json!({"required": true, "content": {"application/json": {"schema": schema}}});
        }
        if route.need == Need::Open {
            operation["security"] = json!([]);
        }
        let entry = paths.entry(route.path).or_insert_with(|| json!({}));
        entry[route.method.to_ascii_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "shef-verifierd", "version": env!("CARGO_PKG_VERSION"), "license": {"name": "Apache-2.0 OR MIT"}},
        "security": [{"bearer": []}, {"mutualTLS": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}, "mutualTLS": {"type": "mutualTLS"}},
            "schemas": {"Problem": {
                "type": "object",
                "required": ["type", "title", "status", "code", "detail"],
                "properties": {
                    "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
                    "code": {"type": "string", "pattern": "^SHEF-[A-Z]{3}-[0-9]{3}$"}, "detail": {"type": "string"},
                },
            }},
        },
    })
}

fn operation_id(method: &str, path: &str) -> String {
    let words = path.split(['/', '.', '-']).map(|part| part.trim_matches(['{', '}'])).filter(|part| !part.is_empty());
    std::iter::once(method.to_ascii_lowercase()).chain(words.map(str::to_owned)).collect::<Vec<_>>().join("_")
}

fn object(required: &[&str], members: &[(&str, &str, &str)]) -> Value {
    let members: Map<String, Value> =
        members.iter().map(|(name, kind, text)| ((*name).to_owned(), json!({"type": kind, "description": text}))).collect();
    json!({"type": "object", "additionalProperties": false, "required": required, "properties": members})
}

fn body_schema(path: &str, method: &str) -> Option<Value> {
    let version = [
        ("policy", "string", "`name` or `name@version`; frozen with the version of the key"),
        ("secret", "string", "base64url; not with generate or image"),
        ("generate", "integer", "length of a random secret, 16 to 64"),
        ("image", "object", "an image key: key (base64url, 32 bytes), min_svn, vendor (base64url point)"),
        ("max_releases", "integer", "0 for any number"),
        ("not_before", "integer", "seconds since 1970"),
        ("not_after", "integer", "seconds since 1970; 0 for none"),
    ];
    let evidence = [
        ("evidence", "string", "base64"),
        ("session", "string", "from /v1/sessions"),
        ("nonce", "string", "base64; a relying party's own nonce, instead of session"),
        ("layer", "string", "kernel or shield; with nonce"),
        ("policy", "string", "`name` or `name@version`; `default` when not given"),
    ];
    Some(match (method, path) {
        ("POST", "/v1/sessions") => object(
            &["layer"],
            &[
                ("layer", "string", "kernel or shield"),
                ("recipient", "string", "base64url point: the owner's one-time key that data keys go to"),
            ],
        ),
        ("POST", "/v1/appraise" | "/v1/explain") => object(&["evidence"], &evidence),
        ("POST", "/v1/release") => object(
            &["key", "session", "evidence"],
            &[
                ("key", "string", "name"),
                ("version", "integer", "newest when not given"),
                ("session", "string", ""),
                ("evidence", "string", "base64"),
            ],
        ),
        ("POST", "/v1/trust-anchors") => object(
            &["name", "kind", "certificate"],
            &[
                ("name", "string", ""),
                ("kind", "string", "shef-boot, board, provider or simulated"),
                ("debug", "boolean", ""),
                ("certificate", "string", "DER in base64, or PEM"),
            ],
        ),
        ("POST", "/v1/revocations") => {
            object(&["kind", "value", "reason"], &[("kind", "string", ""), ("value", "string", ""), ("reason", "string", "")])
        }
        ("PUT", "/v1/keys/{name}") => {
            let mut members = vec![("layer", "string", "kernel or shield")];
            members.extend(version);
            object(&["layer", "policy"], &members)
        }
        ("POST", "/v1/keys/{name}/rotate") => object(&["policy"], &version),
        ("POST", "/v1/keys/{name}/disable" | "/v1/keys/{name}/enable") => object(&[], &[("version", "integer", "all when not given")]),
        _ => return None,
    })
}
