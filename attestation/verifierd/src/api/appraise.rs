//! Sessions and appraisals.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use axum::{Extension, Json, Router};
use shef_api as api;
use shef_api::{Submission, Verdict};
use shef_proto::evidence::{self, Layer};
use shef_proto::hpke_suite::PublicKey;
use shef_verify::ear::{Dialect, Reader};

use super::accept::dialect;
use super::{Shared, bytes, json as read_json, nonce_text};
use crate::app::App;
use crate::appraiser::Received;
use crate::auth::Identity;
use crate::flow::{self, Case, Form};
use crate::problem::{Because, Kind, Result};
use crate::session::{Challenge, NONCE_LEN, Protocol, Session, draw_nonce};

pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/sessions", post(session))
        .route("/v1/appraise", post(appraise))
        .route("/v1/explain", post(explain))
}

async fn session(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    body: Bytes,
) -> Result<(StatusCode, Json<api::Session>)> {
    let new: api::NewSession = read_json(&body)?;
    let config = app.config.load_full();
    let recipient = match &new.recipient {
        None => None,
        Some(key) => {
            let point = bytes("recipient", key)?;
            Some(
                PublicKey::from_bytes(&point)
                    .map_err(|error| Kind::Malformed.because(format!("recipient: {error}")))?,
            )
        }
    };
    let session = Session {
        layer: Some(new.layer.into()),
        recipient,
        ..Session::new(
            Protocol::Native,
            &identity.tenant,
            draw_nonce(NONCE_LEN),
            app.now(),
            config.limits.session_seconds,
        )
    };
    if session.layer()? == Layer::Kernel && session.recipient.is_some() {
        return Err(Kind::Malformed.because(
            "recipient: an image key goes to the key in the kernel's evidence and to no other",
        ));
    }
    let answer = api::Session {
        session: session.token(&app.kek.load()),
        nonce: nonce_text(&session.nonce),
        audience: config.audience.clone(),
        layer: new.layer,
        expires: session.expires,
        accept: vec![evidence::MEDIA_TYPE.to_owned()],
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

/// The challenge that a submission answers, and its layer.
fn challenge(
    app: &App,
    identity: &Identity,
    submission: &Submission,
) -> Result<(Challenge, Layer)> {
    match (&submission.session, &submission.nonce, submission.layer) {
        (Some(token), None, None) => {
            let session =
                Session::open(&app.kek.load(), Protocol::Native, &identity.tenant, token)?;
            session.is_open(app.now())?;
            Ok((Challenge::of(&session), session.layer()?))
        }
        (None, Some(nonce), Some(layer)) => {
            let nonce = bytes("nonce", nonce)?;
            if !(evidence::NONCE_MIN..=evidence::NONCE_MAX).contains(&nonce.len()) {
                return Err(Kind::Malformed
                    .because(format!("nonce has {} bytes, expected 32 to 64", nonce.len())));
            }
            Ok((Challenge::own(&identity.name, nonce, app.now()), layer.into()))
        }
        _ => Err(Kind::Malformed.because("expected either session, or nonce and layer")),
    }
}

/// How to write the result. Deployed parsers of the older claim names reject every token with
/// `aud`, so results for them omit it; other requests may ask for that too.
fn form(headers: &HeaderMap, submission: &Submission) -> Result<Form> {
    let dialect = dialect(headers)?.unwrap_or_default();
    let reader = if submission.aud.unwrap_or(dialect == Dialect::Draft04) {
        Reader::Own
    } else {
        Reader::Veraison
    };
    Ok(Form::new(dialect, reader))
}

async fn appraise(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<api::Appraised>> {
    let submission: Submission = read_json(&body)?;
    let form = form(&headers, &submission)?;
    let evidence = Received::new(bytes("evidence", &submission.evidence)?);
    let (challenge, layer) = challenge(&app, &identity, &submission)?;
    let policy = flow::policy(&app, &identity, submission.policy.as_deref()).await?;
    let mut case =
        Case::new(&app, &identity, "appraise", challenge, layer, &evidence, policy).await?;
    let appraised = case.appraise().await?;
    let (id, used) = match case.keep(&appraised, Some(&case.mark(&appraised))).await {
        Ok(id) => (id, None),
        // The answer to the same request may have been lost: its caller gets it again.
        Err(problem) if problem.kind == Kind::NonceUsed => match case.before(&appraised).await? {
            Some(id) => (id, Some(problem)),
            None => return Err(problem),
        },
        Err(problem) => return Err(problem),
    };
    let result = case.result(&appraised, form)?;
    if used.is_none() && !appraised.accepted() {
        return Err(case.denied(&appraised).with(|finding| {
            finding.appraisal_id = Some(id);
            finding.result = Some(result);
        }));
    }
    let answer = api::Appraised {
        verdict: Verdict::of(appraised.accepted()),
        result,
        appraisal_id: id,
        policy: case.policy.id(),
        policy_sha256: hex::encode(case.policy.sha256),
        appraisal: case.shown(&appraised),
    };
    match used {
        Some(problem) => Err(problem.with(|finding| finding.kept = Some(answer))),
        None => Ok(Json(answer)),
    }
}

async fn explain(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    body: Bytes,
) -> Result<Json<api::Explained>> {
    let submission: Submission = read_json(&body)?;
    let evidence = Received::new(bytes("evidence", &submission.evidence)?);
    let (challenge, layer) = challenge(&app, &identity, &submission)?;
    let used = app.store.kept(&identity.tenant, &challenge).await?.is_some();
    let policy = flow::policy(&app, &identity, submission.policy.as_deref()).await?;
    let mut case =
        Case::new(&app, &identity, "explain", challenge, layer, &evidence, policy).await?;
    let appraised = case.appraise().await?;
    Ok(Json(api::Explained {
        would_be: Verdict::of(appraised.accepted() && !used),
        nonce_used: used,
        policy: case.policy.id(),
        claims: evidence.describe(),
        revocations: case.revocations(),
        appraisal: case.shown(&appraised),
    }))
}
