//! The KBS protocol of Confidential Containers (`/kbs/v0`, version 0.4.0): authenticate, attest, fetch resources.
//!
//! A resource is a key whose name is a path: it has layer, policy, versions, limits and receipts like any other, and goes to the key that the evidence vouches
//! for, unless its tenant marked it as the host's. A client attests again on 401 and gives up on 404.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use shef_verify::ear::Dialect;

use super::release::{self, Recipient, Wanted};
use super::{Shared, bytes, nonce_text, text};
use crate::app::App;
use crate::appraiser::Received;
use crate::auth::{Identity, Need};
use crate::config::is_path;
use crate::flow::{self, Case};
use crate::jwe;
use crate::problem::{Kind, Problem, Result};
use crate::session::{Challenge, NONCE_LEN, Protocol, Session, draw_nonce};

const VERSION: &str = "0.4.0";
const COOKIE: &str = "kbs-session-id";

pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/kbs/v0/auth", post(auth))
        .route("/kbs/v0/attest", post(attest))
        .route("/kbs/v0/resource/{repository}/{kind}/{tag}", get(resource).post(set_resource))
}

/// A problem as these clients read it: `type` and `detail` beside the rest. Where another attestation may help, it is 401; where none does, 404 or 403.
struct Refusal(Problem);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self.0.kind {
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Recipient | Kind::Layer | Kind::KeyDisabled | Kind::KeyWindow | Kind::KeyExhausted => StatusCode::FORBIDDEN,
            kind if kind.status() >= 500 => StatusCode::from_u16(kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            _ => StatusCode::UNAUTHORIZED,
        };
        let mut response = self.0.into_response();
        *response.status_mut() = status;
        response
    }
}

#[derive(Deserialize)]
struct Auth {
    version: String,
    tee: String,
}

async fn auth(State(app): Shared, Extension(identity): Extension<Identity>, body: Bytes) -> Result<Response, Refusal> {
    let request: Auth = super::json(&body)?;
    if request.version != VERSION {
        return Err(Kind::Malformed.because(format!("protocol version {:?}, expected {VERSION}", request.version)).into());
    }
    if request.tee.is_empty() || request.tee.len() > 64 {
        return Err(Kind::Malformed.because("tee is not a name").into());
    }
    let seconds = app.config.load().limits.session_seconds;
    let session = Session::new(Protocol::Kbs, &identity.tenant, draw_nonce(NONCE_LEN), app.now(), seconds);
    let cookie = format!("{COOKIE}={}; Path=/kbs; Max-Age={seconds}; HttpOnly; Secure; SameSite=Strict", session.token(&app.kek.load()));
    let body = json!({"nonce": nonce_text(&session.nonce), "extra-params": {"selected-hash-algorithm": "sha384"}});
    Ok(([(header::SET_COOKIE, cookie)], Json(body)).into_response())
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
    all.filter_map(|pair| pair.trim().split_once('=')).find_map(|(name, value)| (name == COOKIE).then_some(value))
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Attest {
    runtime_data: RuntimeData,
    tee_evidence: TeeEvidence,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct RuntimeData {
    nonce: String,
    tee_pubkey: Value,
}

#[derive(Deserialize)]
struct TeeEvidence {
    primary_evidence: Primary,
    #[serde(default)]
    additional_evidence: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Primary {
    evidence: String,
}

/// What the evidence's nonce must be: SHA-384 of the runtime data in canonical JSON (RFC 8785), which binds the challenge and the client's key.
/// Members are ASCII strings or objects of such, whose canonical form is the compact one with sorted members.
fn report_data(request: &Attest) -> Vec<u8> {
    let runtime = json!({
        "additional-evidence": request.tee_evidence.additional_evidence,
        "nonce": request.runtime_data.nonce,
        "tee-pubkey": request.runtime_data.tee_pubkey,
    });
    aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA384, runtime.to_string().as_bytes()).as_ref().to_vec()
}

async fn attest(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let unauthorised = |text: &str| Kind::Unauthenticated.because(text);
    let token = cookie(&headers).ok_or_else(|| unauthorised("there is no session cookie"))?;
    let session = Session::open(&app.kek.load(), Protocol::Kbs, &identity.tenant, token)?;
    session.is_open(app.now())?;
    let request: Attest = super::json(&body)?;
    if bytes("nonce", &request.runtime_data.nonce)? != session.nonce {
        return Err(unauthorised("the nonce is not the one of the session").into());
    }
    jwe::recipient(&request.runtime_data.tee_pubkey)?;
    let evidence = Received::new(bytes("evidence", &request.tee_evidence.primary_evidence.evidence)?);
    let mut challenge = Challenge::of(&session);
    // The evidence's nonce binds the client's key too; what is used up is the session, whatever key it brings.
    challenge.nonce = report_data(&request);
    challenge.remembered += app.config.load().limits.result_seconds;
    let policy = flow::policy(&app, &identity, None).await?;
    let case = Case::new(&app, &identity, "kbs", challenge, evidence.layer(), &evidence, policy).await?;
    let appraised = case.appraise().await?;
    let token = case.result(&appraised, Dialect::Veraison2023)?;
    let kept = json!({
        "tee-pubkey": request.runtime_data.tee_pubkey,
        "evidence": text(evidence.bytes()),
        "nonce": text(&case.challenge.nonce),
        "affirmed": appraised.accepted(),
    })
    .to_string();
    case.keep(&appraised, Some(&kept)).await?;
    if !appraised.accepted() {
        return Err(case.denied(&appraised).into());
    }
    Ok(Json(json!({"token": token})).into_response())
}

/// The path of a resource, each part a name.
fn path(parts: &(String, String, String)) -> Result<String> {
    let path = format!("{}/{}/{}", parts.0, parts.1, parts.2);
    if is_path(&path) { Ok(path) } else { Err(Kind::NotFound.because("there is no such resource")) }
}

async fn resource(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(parts): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let unauthorised = |text: &str| Kind::Unauthenticated.because(text);
    let path = path(&parts)?;
    if !identity.role.may(Need::Release) {
        let config = app.config.load_full();
        let listed = identity.is_anonymous() && config.compat.anonymous_resources.contains(&path);
        if !listed {
            return Err(unauthorised("this resource needs an identity with the role release or operator").into());
        }
    }
    let token = cookie(&headers).ok_or_else(|| unauthorised("there is no session cookie: attest first"))?;
    let session = Session::open(&app.kek.load(), Protocol::Kbs, &identity.tenant, token)?;
    let mut challenge = Challenge::of(&session);
    let kept = app.store.kept(&identity.tenant, &challenge).await?.flatten();
    let kept: Value = kept.and_then(|kept| serde_json::from_str(&kept).ok()).ok_or_else(|| unauthorised("the session has not attested"))?;
    if kept["affirmed"] != true {
        return Err(unauthorised("the result of this session is not affirming").into());
    }
    let part = |name: &str| bytes(name, kept[name].as_str().unwrap_or(""));
    let evidence = Received::new(part("evidence")?);
    challenge.nonce = part("nonce")?;
    challenge.remembered += app.config.load().limits.result_seconds;
    // Appraised again, under the resource's own policy and what is known now: a revocation counts at once.
    let wanted = Wanted {
        action: "kbs-resource",
        key: &path,
        version: None,
        challenge,
        used: true,
        layer: evidence.layer(),
        evidence: &evidence,
        recipient: Recipient::Jwe(jwe::recipient(&kept["tee-pubkey"])?),
    };
    let (_, released) = release::run(&app, &identity, &wanted).await?;
    Ok(([(header::CONTENT_TYPE, "application/json")], released.bytes).into_response())
}

async fn set_resource(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Path(parts): Path<(String, String, String)>,
    body: Bytes,
) -> Result<StatusCode> {
    super::keys::store_resource(&app, &identity, &path(&parts)?, &body).await
}
