//! Key release: appraise under the policy that the key's version froze, seal to what the evidence vouches for, commit, answer.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use axum::{Extension, Json, Router};
use serde::Deserialize;
use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::PublicKey;
use shef_proto::receipt::Receipt;
use shef_proto::release::{KeyBox, ReleaseInfo};
use shef_verify::Verified;

use super::{Shared, bytes, json as read_json, text};
use crate::app::App;
use crate::appraiser::Received;
use crate::audit;
use crate::auth::Identity;
use crate::flow::Case;
use crate::metrics::Counter;
use crate::problem::{Kind, Result};
use crate::secrets::{SystemEntropy, key_parts, random, sha256};
use crate::session::{Challenge, Protocol, Session};
use crate::store::{NewRelease, Released};

pub fn router() -> Router<Arc<App>> {
    Router::new().route("/v1/release", post(release))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    key: String,
    version: Option<i64>,
    session: String,
    evidence: String,
}

/// The key that a box goes to: the kernel's from its evidence; for the Shield the owner's one-time key, which the session bound to the nonce.
fn recipient(verified: &Verified, session: &Session) -> Result<PublicKey> {
    match verified {
        Verified::Kernel(evidence) => Ok(evidence.claims().key),
        Verified::Shield(_) => session.recipient.ok_or_else(|| Kind::Recipient.because("the session was made without `recipient`")),
    }
}

async fn release(State(app): Shared, Extension(identity): Extension<Identity>, body: Bytes) -> Result<Json<Value>> {
    let request: Request = read_json(&body)?;
    let session = Session::open(&app.kek.load(), Protocol::Native, &identity.tenant, &request.session)?;
    let layer = session.layer()?;
    let released = run(&app, &identity, &request, &session, layer).await;
    let result = match &released {
        Ok((_, released)) if released.fresh => "released",
        Ok(_) => "repeated",
        Err(problem) if problem.kind.status() >= 500 => "failed",
        Err(_) => "refused",
    };
    app.metrics.count(Counter::Releases, &[layer.name(), result]);
    let (version, released) = released?;
    audit::release(&identity, &request.key, version, released.head.seq, released.fresh);
    Ok(Json(json!({
        "key": request.key,
        "version": version,
        "box": text(&released.bytes),
        "receipt": text(&released.receipt),
        "head": {"seq": released.head.seq, "digest": hex::encode(released.head.digest)},
        "expires": released.expires,
    })))
}

async fn run(app: &App, identity: &Identity, request: &Request, session: &Session, layer: Layer) -> Result<(i64, Released)> {
    let tenant = identity.tenant.as_str();
    let evidence = Received::new(bytes("evidence", &request.evidence)?);
    let config = app.config.load_full();
    let (key, versions) = app.store.key(tenant, &request.key).await?;
    let number = request.version.unwrap_or(key.version);
    let Some(version) = versions.iter().find(|version| version.version == number) else {
        return Err(Kind::NotFound.because(format!("key {} has no version {number}", request.key)));
    };
    if key.layer != layer.name() {
        return Err(Kind::Layer.because(format!("the key is for the layer {}, the session for {}", key.layer, layer.name())));
    }
    if layer == Layer::Shield && session.recipient.is_none() {
        return Err(Kind::Recipient.because("the session was made without `recipient`"));
    }
    let secret = app.unseal(&key_parts(tenant, &key.name, &version.version.to_be_bytes()), &version.sealed).await?;
    let signer = app.signer.load_full();
    let policy_id = format!("{}@{}", version.policy, version.policy_version);
    let mut collateral = app.collateral(tenant).await?;
    // Twice at most: a change of the collateral between appraisal and commit is appraised again; a second one is the caller's to retry.
    for _ in 0..2 {
        let policy = collateral.policy(&policy_id)?;
        let terms = (Arc::clone(&collateral), Arc::clone(&policy));
        let case = Case::new(app, identity, "release", Challenge::of(session), layer, &evidence, terms).await?;
        let appraised = case.appraise();
        let Some(verified) = &appraised.outcome.verified else {
            // Denied evidence that is genuine uses the challenge up, as anywhere else; a box that was committed before stays committed.
            session.is_open(case.now)?;
            let denied = case.denied(&appraised);
            return Err(match case.keep(&appraised, None).await {
                Ok(()) => denied.with("appraisal_id", json!(hex::encode(appraised.record.id))),
                Err(used) if used.kind == Kind::NonceUsed => denied,
                Err(problem) => problem,
            });
        };
        let now = case.now;
        let recipient = recipient(verified, session)?;
        let claims = verified.claims();
        let receipt_id: [u8; 16] = random();
        let digest = *verified.digest();
        let info = ReleaseInfo {
            tenant: tenant.to_owned(),
            key_id: key.name.clone(),
            key_version: number.unsigned_abs(),
            layer,
            evidence_digest: digest,
            nonce: session.nonce.clone(),
            recipient,
            receipt_id,
        };
        let new = NewRelease {
            tenant,
            name: &key.name,
            version: number,
            evidence: digest,
            recipient: recipient.as_bytes(),
            challenge: &case.challenge,
            expires: now + config.limits.release_seconds,
            now,
            generation: collateral.generation,
            record: &appraised.record,
        };
        let released = app
            .store
            .release(&new, |head| {
                let sealed = KeyBox::seal(&info, &secret, &mut SystemEntropy).map_err(|error| Kind::Internal.because(error.to_string()))?;
                let receipt = Receipt {
                    tenant: tenant.to_owned(),
                    seq: head.seq + 1,
                    previous: head.digest,
                    id: receipt_id,
                    time: now,
                    key_id: key.name.clone(),
                    key_version: number.unsigned_abs(),
                    layer,
                    ueid: claims.ueid,
                    evidence_digest: digest,
                    policy_digest: policy.sha256,
                    recipient_digest: sha256(recipient.as_bytes()),
                };
                Ok((sealed.to_cbor(), receipt.sign(signer.cose())))
            })
            .await?;
        if let Some(released) = released {
            if released.fresh {
                case.tell(&appraised);
            }
            return Ok((number, released));
        }
        collateral = app.read_collateral(tenant).await?;
    }
    Err(Kind::Busy.because("the reference values or policies are being changed; send the request again").retry_after(1))
}
