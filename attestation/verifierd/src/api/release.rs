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
use crate::config::is_path;
use crate::flow::Case;
use crate::jwe;
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

/// What somebody wants to have released, and on the strength of what.
pub struct Wanted<'a> {
    /// In the audit log.
    pub action: &'static str,
    /// Key.
    pub key: &'a str,
    /// Its version; none: the newest.
    pub version: Option<i64>,
    /// The challenge that the evidence answers.
    pub challenge: Challenge,
    /// Whether the challenge was used up already, by an attestation that this rests on.
    pub used: bool,
    /// Layer of the evidence.
    pub layer: Layer,
    /// The evidence.
    pub evidence: &'a Received,
    /// Whose key it goes to.
    pub recipient: Recipient,
}

/// Whose key something that is released goes to, and in which form.
pub enum Recipient {
    /// In an HPKE box to the kernel's key in its evidence; for the Shield to the owner's one-time key, which the session bound to the nonce.
    Box(Option<PublicKey>),
    /// In a JWE to the key that a KBS client brought. It has to be the one in the evidence, unless what is released is marked as the host's.
    Jwe(PublicKey),
}

impl Recipient {
    fn key(&self, verified: &Verified, to_host: bool) -> Result<PublicKey> {
        match (self, verified) {
            (Self::Box(_), Verified::Kernel(evidence)) => Ok(evidence.claims().key),
            (Self::Box(owner), Verified::Shield(_)) => owner.ok_or_else(|| Kind::Recipient.because("the session was made without `recipient`")),
            (Self::Jwe(key), _) if to_host || *key == verified.claims().key => Ok(*key),
            (Self::Jwe(_), _) => Err(Kind::Recipient.because(
                "tee-pubkey is not the key that the evidence vouches for (cnf); a resource goes to any other key only where it is marked `to = \"host\"`",
            )),
        }
    }

    fn seal(&self, info: &ReleaseInfo, secret: &[u8]) -> Result<Vec<u8>> {
        match self {
            Self::Box(_) => {
                let sealed = KeyBox::seal(info, secret, &mut SystemEntropy).map_err(|error| Kind::Internal.because(error.to_string()))?;
                Ok(sealed.to_cbor())
            }
            Self::Jwe(key) => Ok(jwe::encrypt(key, secret)?.to_string().into_bytes()),
        }
    }
}

async fn release(State(app): Shared, Extension(identity): Extension<Identity>, body: Bytes) -> Result<Json<Value>> {
    let request: Request = read_json(&body)?;
    let session = Session::open(&app.kek.load(), Protocol::Native, &identity.tenant, &request.session)?;
    let layer = session.layer()?;
    let evidence = Received::new(bytes("evidence", &request.evidence)?);
    let wanted = Wanted {
        action: "release",
        key: &request.key,
        version: request.version,
        challenge: Challenge::of(&session),
        used: false,
        layer,
        evidence: &evidence,
        recipient: Recipient::Box(session.recipient),
    };
    let (version, released) = run(&app, &identity, &wanted).await?;
    Ok(Json(json!({
        "key": request.key,
        "version": version,
        "box": text(&released.bytes),
        "receipt": text(&released.receipt),
        "head": {"seq": released.head.seq, "digest": hex::encode(released.head.digest)},
        "expires": released.expires,
    })))
}

/// Releases what is wanted, or says why not; counted and told either way.
pub async fn run(app: &App, identity: &Identity, wanted: &Wanted<'_>) -> Result<(i64, Released)> {
    let released = attempt(app, identity, wanted).await;
    let result = match &released {
        Ok((_, released)) if released.fresh => "released",
        Ok(_) => "repeated",
        Err(problem) if problem.kind.status() >= 500 => "failed",
        Err(_) => "refused",
    };
    app.metrics.count(Counter::Releases, Some(&identity.tenant), &[wanted.layer.name(), result]);
    if let Ok((version, released)) = &released {
        audit::release(identity, wanted.key, *version, released.head.seq, released.fresh);
    }
    released
}

async fn attempt(app: &App, identity: &Identity, wanted: &Wanted<'_>) -> Result<(i64, Released)> {
    let tenant = identity.tenant.as_str();
    let layer = wanted.layer;
    let config = app.config.load_full();
    let (key, versions) = app.store.key(tenant, wanted.key).await?;
    let number = wanted.version.unwrap_or(key.version);
    let Some(version) = versions.iter().find(|version| version.version == number) else {
        return Err(Kind::NotFound.because(format!("key {} has no version {number}", wanted.key)));
    };
    if key.layer != layer.name() {
        return Err(Kind::Layer.because(format!("the key is for the layer {}, the evidence of {}", key.layer, layer.name())));
    }
    let to_host = key.to_host != 0;
    if is_path(&key.name) != matches!(wanted.recipient, Recipient::Jwe(_)) {
        return Err(Kind::NotFound.because(format!("there is no key {}", wanted.key)));
    }
    if layer == Layer::Shield && matches!(wanted.recipient, Recipient::Box(None)) {
        return Err(Kind::Recipient.because("the session was made without `recipient`"));
    }
    let secret = app.unseal(&key_parts(tenant, &key.name, &version.version.to_be_bytes()), &version.sealed).await?;
    let signer = app.signer.load_full();
    let policy_id = format!("{}@{}", version.policy, version.policy_version);
    let mut collateral = app.collateral(tenant).await?;
    if collateral.policy(&policy_id).is_err() {
        // Policies never go: this one came in at another replica, within the last second.
        collateral = app.read_collateral(tenant).await?;
    }
    // Twice at most: a change of the collateral between appraisal and commit is appraised again; a second one is the caller's to retry.
    for _ in 0..2 {
        let policy = collateral.policy(&policy_id)?;
        let terms = (Arc::clone(&collateral), Arc::clone(&policy));
        let mut case = Case::new(app, identity, wanted.action, wanted.challenge.clone(), layer, wanted.evidence, terms).await?;
        let appraised = case.appraise().await?;
        let Some(verified) = &appraised.outcome.verified else {
            // Denied evidence that is genuine uses the challenge up, as anywhere else; a box that was committed before stays committed.
            if case.now >= case.challenge.remembered {
                return Err(Kind::SessionExpired.because(format!("the session ended {} seconds ago", case.now - case.challenge.remembered)));
            }
            let denied = case.denied(&appraised);
            if wanted.used {
                case.tell(&appraised);
                return Err(denied);
            }
            return Err(match case.keep(&appraised, None).await {
                Ok(()) => denied.with("appraisal_id", json!(hex::encode(appraised.record.id))),
                Err(used) if used.kind == Kind::NonceUsed => denied,
                Err(problem) => problem,
            });
        };
        if to_host && !policy.to_host() {
            return Err(
                Kind::Recipient.because(format!("the key is marked as the host's, and policy {policy_id} does not say `to_host = true`"))
            );
        }
        let now = case.now;
        let recipient = wanted.recipient.key(verified, to_host)?;
        let claims = verified.claims();
        let receipt_id: [u8; 16] = random();
        let digest = *verified.digest();
        let info = ReleaseInfo {
            tenant: tenant.to_owned(),
            key_id: key.name.clone(),
            key_version: number.unsigned_abs(),
            layer,
            evidence_digest: digest,
            nonce: wanted.challenge.nonce.clone(),
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
            used: wanted.used,
            expires: now + config.limits.release_seconds,
            now,
            generation: case.collateral.generation,
            record: &appraised.record,
        };
        let released = app
            .store
            .release(&new, |head| {
                let sealed = wanted.recipient.seal(&info, &secret)?;
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
                    to_host,
                };
                Ok((sealed, receipt.sign(signer.cose())))
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
