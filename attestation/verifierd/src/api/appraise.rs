//! Sessions and appraisals.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::post;
use axum::{Extension, Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use shef_proto::evidence::{self, Layer};
use shef_proto::hpke_suite::PublicKey;
use shef_verify::Outcome;
use shef_verify::cmw::MediaType;
use shef_verify::ear::{self, Dialect, Issue};

use super::{Shared, bytes, json as read_json, nonce_text};
use crate::app::App;
use crate::appraiser::{self, Collateral, Question, Received, StoredPolicy};
use crate::audit;
use crate::auth::Identity;
use crate::metrics::Counter;
use crate::problem::{Kind, Problem, Result};
use crate::secrets::{Signer, random};
use crate::session::{NONCE_LEN, Session, draw_nonce};

/// Seconds for which a relying party's own nonce is remembered.
const OWN_NONCE: i64 = 24 * 3600;
/// The policy of a request that names none.
pub const DEFAULT_POLICY: &str = "default";

pub fn router() -> Router<Arc<App>> {
    Router::new().route("/v1/sessions", post(session)).route("/v1/appraise", post(appraise)).route("/v1/explain", post(explain))
}

/// The layer of this name.
pub fn layer(name: &str) -> Result<Layer> {
    Layer::from_name(name).ok_or_else(|| Kind::Malformed.because(format!("layer {name:?} is neither kernel nor shield")))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewSession {
    layer: String,
    recipient: Option<String>,
}

async fn session(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>)> {
    let new: NewSession = read_json(&headers, &body)?;
    let config = app.config.load_full();
    let recipient = match &new.recipient {
        None => None,
        Some(key) => {
            let point = bytes("recipient", key)?;
            Some(PublicKey::from_bytes(&point).map_err(|error| Kind::Malformed.because(format!("recipient: {error}")))?)
        }
    };
    let now = app.now();
    let session = Session {
        tenant: identity.tenant,
        layer: Some(layer(&new.layer)?),
        nonce: draw_nonce(NONCE_LEN),
        issued: now,
        expires: now + config.limits.session_seconds,
        recipient,
    };
    if session.layer()? == Layer::Kernel && session.recipient.is_some() {
        return Err(Kind::Malformed.because("recipient: an image key goes to the key in the kernel's evidence and to no other"));
    }
    let answer = json!({
        "session": session.token(&app.kek.load()),
        "nonce": nonce_text(&session.nonce),
        "audience": config.audience,
        "layer": new.layer,
        "expires": session.expires,
        "accept": [evidence::MEDIA_TYPE],
    });
    Ok((StatusCode::CREATED, Json(answer)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Submission {
    evidence: String,
    session: Option<String>,
    nonce: Option<String>,
    layer: Option<String>,
    policy: Option<String>,
}

/// A submission, read: evidence, layer, nonce, end of the nonce's life, collateral and policy.
struct Case {
    evidence: Received,
    layer: Layer,
    nonce: Vec<u8>,
    expires: i64,
    challenged: Option<i64>,
    signer: Arc<Signer>,
    shown_svn: u64,
    collateral: Arc<Collateral>,
    policy: Arc<StoredPolicy>,
    audience: String,
    now: i64,
}

impl Case {
    async fn read(app: &App, tenant: &str, submission: &Submission) -> Result<Self> {
        let evidence = Received::new(bytes("evidence", &submission.evidence)?);
        let now = app.now();
        let (layer, nonce, expires, challenged) = match (&submission.session, &submission.nonce, &submission.layer) {
            (Some(token), None, None) => {
                let session = Session::open(&app.kek.load(), tenant, token)?;
                session.is_open(now)?;
                (session.layer()?, session.nonce, session.expires, Some(session.issued))
            }
            (None, Some(nonce), Some(name)) => {
                let nonce = bytes("nonce", nonce)?;
                if !(evidence::NONCE_MIN..=evidence::NONCE_MAX).contains(&nonce.len()) {
                    return Err(Kind::Malformed.because(format!("nonce has {} bytes, expected 32 to 64", nonce.len())));
                }
                (layer(name)?, nonce, now + OWN_NONCE, None)
            }
            _ => return Err(Kind::Malformed.because("expected either session, or nonce and layer")),
        };
        let collateral = app.collateral(tenant).await?;
        let policy = collateral.policy(submission.policy.as_deref().unwrap_or(DEFAULT_POLICY))?;
        let (signer, audience) = (app.signer.load_full(), app.config.load().audience.clone());
        let shown_svn = app.shown_svn(tenant, &evidence).await?;
        Ok(Self { evidence, layer, nonce, expires, challenged, signer, shown_svn, collateral, policy, audience, now })
    }

    fn question(&self) -> Question<'_> {
        Question {
            evidence: &self.evidence,
            layer: self.layer,
            nonce: &self.nonce,
            audience: &self.audience,
            challenged: self.challenged,
            own_keys: self.signer.public_keys(),
            shown_svn: self.shown_svn,
            now: self.now,
        }
    }
}

/// The answer to denied evidence: every check.
pub fn denied(outcome: &Outcome, collateral: &Collateral, evidence: &Received) -> Problem {
    let first = outcome.appraisal.first_failure();
    let detail = first.map_or_else(
        || "no check failed, but nothing was verified".to_owned(),
        |check| format!("{} ({}): expected {}, found {}", check.id.name(), check.code, check.expected, check.actual),
    );
    Kind::Denied.because(detail).with("appraisal", json!(outcome.appraisal)).with("revocations", json!(collateral.revocations_of(evidence)))
}

/// The dialect of results that a request asks for: `Accept: application/eat+jwt; eat_profile="..."`.
trait FromAccept {
    fn from_accept(headers: &HeaderMap) -> Self;
}

impl FromAccept for Dialect {
    fn from_accept(headers: &HeaderMap) -> Self {
        let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
        let profile = accepted.filter_map(MediaType::parse).find_map(|media| media.eat_profile);
        profile.and_then(|profile| Self::from_profile(&profile)).unwrap_or_default()
    }
}

/// The signed result of an appraisal.
pub fn result(app: &App, identity: &Identity, outcome: &Outcome, layer: Layer, nonce: &[u8], dialect: Dialect) -> Result<String> {
    let config = app.config.load_full();
    let now = app.now();
    let id = hex::encode(random::<16>());
    let issue = Issue {
        dialect,
        issuer: &config.audience,
        audience: &identity.tenant,
        issued: now,
        expires: now + config.limits.result_seconds,
        id: &id,
        nonce,
        developer: "shef-verifierd",
        build: env!("CARGO_PKG_VERSION"),
        with_ueid: true,
    };
    ear::sign(outcome, layer, &issue, app.signer.load().jwt()).map_err(|error| Kind::Internal.because(error.to_string()))
}

/// Counts an appraisal.
pub fn count(app: &App, layer: Layer, outcome: &Outcome) {
    let verdict = if outcome.verified.is_some() { "accepted" } else { "denied" };
    let code = outcome.appraisal.first_failure().map_or("none", |check| check.code);
    app.metrics.count(Counter::Appraisals, &[layer.name(), verdict, code]);
}

async fn appraise(State(app): Shared, Extension(identity): Extension<Identity>, headers: HeaderMap, body: Bytes) -> Result<Json<Value>> {
    let submission: Submission = read_json(&headers, &body)?;
    let case = Case::read(&app, &identity.tenant, &submission).await?;
    let question = case.question();
    let outcome = case.collateral.appraise(&case.policy, &question, &app.chains);
    let record = appraiser::record(&outcome, &case.policy, &question);
    if record.genuine {
        if !app.store.use_nonce(&identity.tenant, case.expires, None, &record).await? {
            return Err(Kind::NonceUsed.because("evidence for this nonce was submitted before"));
        }
    } else {
        app.store.record(&identity.tenant, &record).await?;
    }
    count(&app, case.layer, &outcome);
    audit::appraisal(&identity, "appraise", &record);
    let result = result(&app, &identity, &outcome, case.layer, &case.nonce, Dialect::from_accept(&headers))?;
    if outcome.verified.is_none() {
        let problem = denied(&outcome, &case.collateral, &case.evidence);
        return Err(problem.with("appraisal_id", json!(hex::encode(record.id))).with("result", json!(result)));
    }
    Ok(Json(json!({
        "verdict": "accepted",
        "result": result,
        "appraisal_id": hex::encode(record.id),
        "policy": case.policy.id(),
        "policy_sha256": hex::encode(case.policy.sha256),
        "appraisal": outcome.appraisal,
    })))
}

async fn explain(State(app): Shared, Extension(identity): Extension<Identity>, headers: HeaderMap, body: Bytes) -> Result<Json<Value>> {
    let submission: Submission = read_json(&headers, &body)?;
    let case = Case::read(&app, &identity.tenant, &submission).await?;
    let question = case.question();
    let outcome = case.collateral.appraise(&case.policy, &question, &app.chains);
    let used = app.store.used_result(&identity.tenant, &case.nonce).await?.is_some();
    Ok(Json(json!({
        "would_be": if outcome.verified.is_some() && !used { "accepted" } else { "denied" },
        "nonce_used": used,
        "policy": case.policy.id(),
        "claims": case.evidence.describe(),
        "revocations": case.collateral.revocations_of(&case.evidence),
        "appraisal": outcome.appraisal,
    })))
}
