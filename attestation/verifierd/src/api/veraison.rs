//! Veraison's challenge-response, discovery and provisioning, for clients written for that service.
//!
//! Compatibility details: the object has `status` (not `state`), `Location` is relative, the nonce
//! reads the same in both base64 alphabets, bad evidence is 200 with a negative result, and the
//! answer is complete at once (no 202).

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use shef_proto::evidence::{Layer, MEDIA_TYPE, NONCE_MAX, NONCE_MIN};
use shef_verify::cmw::{Cmw, MediaType};
use shef_verify::ear::{Dialect, Reader};
use utoipa::IntoParams;

use super::accept::{accepted, dialect};
use super::{Shared, bytes, nonce_text};
use crate::app::App;
use crate::appraiser::Received;
use crate::auth::Identity;
use crate::flow::{self, Case, Form};
use crate::problem::{Because, Kind, Result};
use crate::secrets::jwk;
use crate::session::{Challenge, NONCE_LEN, Protocol, Session, draw_nonce};
use crate::store::CorimRow;
use crate::time::rfc3339;

pub const SESSION: &str = "application/vnd.veraison.challenge-response-session+json";
pub const DISCOVERY: &str = "application/vnd.veraison.discovery+json";
pub const PROVISIONING: &str = "application/vnd.veraison.provisioning-session+json";
const CMW: [&str; 4] = [
    "application/cmw+cbor",
    "application/cmw+json",
    "application/vnd.veraison.cmw+cbor",
    "application/vnd.veraison.cmw+json",
];

pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/.well-known/veraison/verification", get(discovery))
        .route("/challenge-response/v1/newSession", post(new_session))
        .route("/challenge-response/v1/session/{id}", post(submit).get(session).delete(delete))
        .route("/endorsement-provisioning/v1/submit", post(provision))
}

/// Media types of evidence: one of each layer, and the wrappers.
pub fn evidence_types() -> Vec<String> {
    let own = [Layer::Kernel, Layer::Shield]
        .map(|layer| format!("{MEDIA_TYPE}; eat_profile=\"{}\"", layer.profile()));
    own.into_iter().chain(CMW.map(str::to_owned)).collect()
}

/// Whether a media type, without its parameters, is one of these.
pub fn is_evidence(essence: &str) -> bool {
    essence == MEDIA_TYPE || CMW.contains(&essence)
}

fn acceptable(headers: &HeaderMap, wanted: &str) -> Result<()> {
    let essence = |range: &str| range.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let fits = accepted(headers).is_none_or(|ranges| {
        ranges
            .into_iter()
            .any(|range| [wanted, "*/*", "application/*"].contains(&essence(range).as_str()))
    });
    if fits {
        Ok(())
    } else {
        Err(Kind::NotAcceptable.because(format!("Accept must allow {wanted}")))
    }
}

async fn discovery(State(app): Shared, headers: HeaderMap) -> Result<Response> {
    acceptable(&headers, DISCOVERY)?;
    let body = json!({
        "ear-verification-key": jwk(app.signer.load().public_key()),
        "media-types": evidence_types(),
        "version": env!("CARGO_PKG_VERSION"),
        "service-state": "READY",
        "api-endpoints": {"newChallengeResponseSession": "/challenge-response/v1/newSession"},
    });
    Ok(([(header::CONTENT_TYPE, DISCOVERY)], body.to_string()).into_response())
}

fn show(session: &Session, evidence: Option<(&str, &[u8])>, result: Option<&str>) -> Value {
    let mut body = json!({
        "nonce": nonce_text(&session.nonce),
        "expiry": rfc3339(session.expires),
        "accept": evidence_types(),
        "status": if result.is_some() { "complete" } else { "waiting" },
    });
    if let Some((kind, value)) = evidence {
        body["evidence"] = json!({"type": kind, "value": STANDARD.encode(value)});
    }
    if let Some(result) = result {
        body["result"] = json!(result);
    }
    body
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, SESSION)], body.to_string()).into_response()
}

/// What a session's nonce shall be.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    /// Bytes of a drawn nonce.
    #[param(nullable = false)]
    nonce_size: Option<usize>,
    /// The client's own nonce, base64, which is no challenge.
    #[param(nullable = false)]
    nonce: Option<String>,
}

async fn new_session(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Query(query): Query<NewSession>,
    headers: HeaderMap,
) -> Result<Response> {
    acceptable(&headers, SESSION)?;
    let size = |len: usize| {
        let fits = (NONCE_MIN..=NONCE_MAX).contains(&len);
        fits.then_some(()).ok_or_else(|| {
            let text = format!(
                "a nonce of {len} bytes: evidence of these devices has {NONCE_MIN} to {NONCE_MAX}; leave nonceSize out for {NONCE_LEN}"
            );
            Kind::Malformed.because(text)
        })
    };
    let nonce = match (query.nonce_size, &query.nonce) {
        (None, None) => draw_nonce(NONCE_LEN),
        (Some(len), None) => {
            size(len)?;
            draw_nonce(len)
        }
        (None, Some(own)) => {
            let nonce = bytes("nonce", own)?;
            size(nonce.len())?;
            nonce
        }
        (Some(_), Some(_)) => {
            return Err(Kind::Malformed.because("nonce and nonceSize exclude each other"));
        }
    };
    let seconds = app.config.load().limits.session_seconds;
    let session = Session {
        drawn: query.nonce.is_none(),
        ..Session::new(Protocol::Veraison, &identity.tenant, nonce, app.now(), seconds)
    };
    let mut response = answer(StatusCode::CREATED, &show(&session, None, None));
    let location = format!("session/{}", session.token(&app.kek.load()));
    let location = location
        .parse()
        .map_err(|_| Kind::Internal.because("a session token is no header value"))?;
    response.headers_mut().insert(header::LOCATION, location);
    Ok(response)
}

fn open(app: &App, identity: &Identity, id: &str) -> Result<Session> {
    Session::open(&app.kek.load(), Protocol::Veraison, &identity.tenant, id)
        .map_err(|problem| Kind::NotFound.because(problem.detail))
}

/// The evidence in a body of one of the accepted types.
fn evidence(headers: &HeaderMap, body: &[u8]) -> Result<Vec<u8>> {
    let unknown = |found: &str| {
        let list = evidence_types().join(", ");
        Kind::MediaType
            .because(format!("content type {found:?}, expected one of {list}"))
            .header(header::ACCEPT, &list)
    };
    let text =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let media = MediaType::parse(text).ok_or_else(|| unknown(text))?;
    if media.essence == MEDIA_TYPE {
        let known = |profile: &String| {
            [Layer::Kernel, Layer::Shield].iter().any(|layer| layer.profile() == profile)
        };
        return if media.eat_profile.as_ref().is_none_or(known) {
            Ok(body.to_vec())
        } else {
            Err(unknown(text))
        };
    }
    if !is_evidence(&media.essence) {
        return Err(unknown(text));
    }
    let bad = |error: shef_verify::cmw::CmwError| {
        Kind::Malformed.because(format!("{error} ({})", error.code()))
    };
    let wrapper =
        if media.essence.ends_with("json") { Cmw::from_json(body) } else { Cmw::from_cbor(body) }
            .map_err(bad)?;
    Ok(wrapper.evidence().map_err(bad)?.to_vec())
}

async fn submit(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response> {
    acceptable(&headers, SESSION)?;
    let form = Form::new(dialect(&headers)?.unwrap_or(Dialect::Veraison2023), Reader::Veraison);
    let session = open(&app, &identity, &id)?;
    session.is_open(app.now()).map_err(|problem| Kind::NotFound.because(problem.detail))?;
    let evidence = Received::new(evidence(&headers, &body)?);
    let policy = flow::policy(&app, &identity, None).await?;
    let mut case = Case::new(
        &app,
        &identity,
        "veraison",
        Challenge::of(&session),
        evidence.layer(),
        &evidence,
        policy,
    )
    .await?;
    let appraised = case.appraise().await?;
    let token = case.result(&appraised, form)?;
    case.keep(&appraised, Some(&token)).await?;
    Ok(answer(StatusCode::OK, &show(&session, Some((MEDIA_TYPE, evidence.bytes())), Some(&token))))
}

async fn session(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response> {
    acceptable(&headers, SESSION)?;
    let session = open(&app, &identity, &id)?;
    session.is_open(app.now()).map_err(|problem| Kind::NotFound.because(problem.detail))?;
    let used = app.store.kept(&identity.tenant, &Challenge::of(&session)).await?;
    if used == Some(None) {
        return Err(Kind::NotFound.because("the session was deleted"));
    }
    Ok(answer(StatusCode::OK, &show(&session, None, used.flatten().as_deref())))
}

async fn delete(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let session = open(&app, &identity, &id)?;
    app.store.end_session(&identity.tenant, &Challenge::of(&session)).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn provision(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    body: Bytes,
) -> Result<Json<Value>> {
    const SIGNED: &str = shef_verify::corim::MEDIA_TYPE;
    let expiry = rfc3339(app.now() + 60);
    let stored = async {
        let id = format!("rim-{}", &hex::encode(crate::secrets::sha256(&body))[..24]);
        let row = CorimRow {
            id,
            media_type: SIGNED.into(),
            content: body.to_vec(),
            active: 1,
            created: app.now(),
        };
        super::collateral::store_corim(&app, &identity, &row).await
    };
    Ok(Json(match stored.await {
        Ok(_) => json!({"status": "success", "expiry": expiry}),
        Err(problem) if problem.kind == Kind::Corim => {
            json!({"status": "failed", "failure-reason": problem.detail, "expiry": expiry})
        }
        Err(problem) => return Err(problem),
    }))
}
