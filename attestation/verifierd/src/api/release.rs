//! Key release: appraise under the policy that the key's version froze, seal to the key that the
//! evidence vouches for, commit, answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use axum::{Extension, Json, Router};
use shef_api::{Head, ReleaseRequest};
use shef_proto::evidence::{self, Layer};
use shef_proto::hpke_suite::PublicKey;
use shef_proto::receipt::Receipt;
use shef_proto::release::{KeyBox, ReleaseInfo};
use shef_verify::Verified;
use zeroize::Zeroizing;

use super::{Shared, bytes, json as read_json, text};
use crate::app::App;
use crate::appraiser::Received;
use crate::audit;
use crate::auth::{Identity, Standing};
use crate::flow::{Appraised, Case};
use crate::jwe;
use crate::metrics::Counter;
use crate::name::{is_name, is_path};
use crate::problem::{Because, Kind, Problem, Result};
use crate::secrets::{SystemEntropy, key_parts, random, sha256};
use crate::session::{Challenge, Protocol, Session};
use crate::store::{Ends, NewRelease, Outcome, Released, Signed};

pub fn router() -> Router<Arc<App>> {
    Router::new().route("/v1/release", post(release))
}

/// A request for a release, and the evidence behind it.
pub struct Wanted<'a> {
    /// Action in the audit log.
    pub action: &'static str,
    /// Key.
    pub key: &'a str,
    /// Its version; `None` for the newest.
    pub version: Option<i64>,
    /// The challenge that the evidence answers.
    pub challenge: Challenge,
    /// Whether an earlier attestation, on which this release relies, used the challenge up.
    pub used: bool,
    /// Layer of the evidence.
    pub layer: Layer,
    /// The evidence.
    pub evidence: &'a Received,
    /// Which key to seal to.
    pub recipient: Recipient,
    /// The rights of the caller.
    pub caller: &'a Arc<dyn Standing>,
}

/// The key that a release is sealed to, and the format.
pub enum Recipient {
    /// An HPKE box for the kernel's key in its evidence; for the Shield, for the owner's one-time
    /// key, which the session bound to the nonce.
    Box(Option<PublicKey>),
    /// A JWE for the key that a KBS client brought. It must be the one in the evidence, unless the
    /// resource is marked as the host's.
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
                let sealed = KeyBox::seal(info, secret, &mut SystemEntropy)
                    .map_err(|error| Kind::Internal.because(error.to_string()))?;
                Ok(sealed.to_cbor())
            }
            Self::Jwe(key) => Ok(jwe::encrypt(key, secret)?.to_string().into_bytes()),
        }
    }
}

async fn release(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Extension(caller): Extension<Arc<dyn Standing>>,
    body: Bytes,
) -> Result<Json<shef_api::Released>> {
    let request: ReleaseRequest = read_json(&body)?;
    let session =
        Session::open(&app.kek.load(), Protocol::Native, &identity.tenant, &request.session)?;
    let layer = session.layer()?;
    let evidence = Received::new(bytes("evidence", &request.evidence)?);
    let wanted = Wanted {
        action: "release",
        key: &request.key,
        version: request.version.map(u64::cast_signed),
        challenge: Challenge::of(&session),
        used: false,
        layer,
        evidence: &evidence,
        recipient: Recipient::Box(session.recipient),
        caller: &caller,
    };
    let (version, released) = run(&app, &identity, &wanted).await?;
    Ok(Json(shef_api::Released {
        key: request.key,
        version: version.unsigned_abs(),
        r#box: text(&released.bytes),
        receipt: text(&released.receipt),
        head: Head { seq: released.head.seq, digest: hex::encode(released.head.digest) },
        expires: released.expires,
    }))
}

/// How long a release is tried again after the database has undone it or has lost the connection.
const AGAIN: Duration = Duration::from_secs(3);

/// The first pause before that; each is twice as long.
const PAUSE: Duration = Duration::from_millis(50);

/// Releases a key or explains the refusal; counts both, and logs releases.
///
/// What the database undid is tried again, and also what it may have committed without an answer:
/// the same evidence gets the same box.
pub async fn run(app: &App, identity: &Identity, wanted: &Wanted<'_>) -> Result<(i64, Released)> {
    let (start, mut pause) = (Instant::now(), PAUSE);
    let released = loop {
        let released = attempt(app, identity, wanted, wanted.version).await;
        let released = before(app, identity, wanted, released).await;
        let undone = released.as_ref().is_err_and(|problem| problem.kind == Kind::Store);
        if !undone || start.elapsed() + pause > AGAIN {
            break released;
        }
        tokio::time::sleep(pause).await;
        pause *= 2;
    };
    let result = match &released {
        Ok((_, released)) if released.fresh => "released",
        Ok(_) => "repeated",
        Err(problem) if problem.kind.status() >= 500 => "failed",
        Err(_) => "refused",
    };
    app.metrics.count(Counter::Releases, Some(&identity.tenant), &[wanted.layer.name(), result]);
    match &released {
        Ok((version, released)) => {
            audit::release(identity, wanted.key, *version, released.head.seq, released.fresh);
        }
        Err(problem) if (400..500).contains(&problem.kind.status()) => {
            let key = if is_name(wanted.key) || is_path(wanted.key) { wanted.key } else { "?" };
            let version = wanted.version.map_or_else(String::new, |version| format!("@{version}"));
            let what = format!("{} {key}{version}: {}", wanted.action, problem.kind.code());
            app.refused(identity, &what).await;
        }
        Err(_) => {}
    }
    released
}

/// The release of an earlier version, if a request that names no version was refused only because
/// the key has a newer one by now: the answer to an earlier attempt may have been lost.
async fn before(
    app: &App,
    identity: &Identity,
    wanted: &Wanted<'_>,
    released: Result<(i64, Released)>,
) -> Result<(i64, Released)> {
    let refused = released
        .as_ref()
        .is_err_and(|problem| matches!(problem.kind, Kind::NonceUsed | Kind::Denied));
    if !refused || wanted.used || wanted.version.is_some() {
        return released;
    }
    let evidence = evidence::digest(wanted.evidence.bytes());
    match app.store.released_version(&identity.tenant, wanted.key, &evidence).await? {
        None => released,
        version => attempt(app, identity, wanted, version).await,
    }
}

async fn attempt(
    app: &App,
    identity: &Identity,
    wanted: &Wanted<'_>,
    version: Option<i64>,
) -> Result<(i64, Released)> {
    let tenant = identity.tenant.as_str();
    let key = find(app, tenant, wanted, version).await?;
    let mut collateral = app.collateral(tenant).await?;
    if collateral.policy(&key.policy).is_err() {
        // A policy that a key names is never removed: another replica has added this one within the
        // last second.
        collateral = app.read_collateral(tenant).await?;
    }
    // At most twice: if the collateral changes between appraisal and commit, appraise again; after
    // a second change the caller has to retry.
    for _ in 0..2 {
        let terms = (Arc::clone(&collateral), collateral.policy(&key.policy)?);
        let mut case = Case::new(
            app,
            identity,
            wanted.action,
            wanted.challenge.clone(),
            wanted.layer,
            wanted.evidence,
            terms,
        )
        .await?;
        let appraised = case.appraise().await?;
        let Some(verified) = &appraised.outcome.verified else {
            return Err(deny(&case, &appraised, wanted.used).await);
        };
        if let Some(released) = commit(&case, &appraised, verified, &key, wanted).await? {
            if released.fresh {
                case.tell(&appraised);
            }
            return Ok((key.version, released));
        }
        collateral = app.read_collateral(tenant).await?;
    }
    Err(Kind::Busy
        .because("the reference values or policies are being changed; send the request again")
        .retry_after(1))
}

/// A version of a key, unsealed.
struct Key {
    name: String,
    version: i64,
    /// The policy that the version froze, `NAME@VERSION`.
    policy: String,
    to_host: bool,
    secret: Zeroizing<Vec<u8>>,
}

/// The requested key, if evidence of this layer and a recipient of this kind may have it at all.
async fn find(app: &App, tenant: &str, wanted: &Wanted<'_>, version: Option<i64>) -> Result<Key> {
    let (key, versions) = app.store.key(tenant, wanted.key).await?;
    let number = version.unwrap_or(key.version);
    let Some(version) = versions.iter().find(|version| version.version == number) else {
        return Err(Kind::NotFound.because(format!("key {} has no version {number}", wanted.key)));
    };
    let layer = wanted.layer;
    if key.layer != layer.name() {
        return Err(Kind::Layer.because(format!(
            "the key is for the layer {}, the evidence of {}",
            key.layer,
            layer.name()
        )));
    }
    if is_path(&key.name) != matches!(wanted.recipient, Recipient::Jwe(_)) {
        return Err(Kind::NotFound.because(format!("there is no key {}", wanted.key)));
    }
    if layer == Layer::Shield && matches!(wanted.recipient, Recipient::Box(None)) {
        return Err(Kind::Recipient.because("the session was made without `recipient`"));
    }
    let secret =
        app.unseal(&key_parts(tenant, &key.name, &number.to_be_bytes()), &version.sealed).await?;
    let policy = format!("{}@{}", version.policy, version.policy_version);
    Ok(Key { name: key.name, version: number, policy, to_host: key.to_host != 0, secret })
}

/// The answer to denied evidence. Genuine evidence uses the challenge up, as elsewhere; a box that
/// was committed earlier stays committed.
async fn deny(case: &Case<'_>, appraised: &Appraised, used: bool) -> Problem {
    let ended = case.now - case.challenge.remembered;
    if ended >= 0 {
        return Kind::SessionExpired.because(format!("the session ended {ended} seconds ago"));
    }
    let denied = case.denied(appraised);
    if used {
        case.tell(appraised);
        return denied;
    }
    match case.keep(appraised, None).await {
        Ok(id) => denied.with(|finding| finding.appraisal_id = Some(id)),
        Err(used) if used.kind == Kind::NonceUsed => denied,
        Err(problem) => problem,
    }
}

/// Seals the key to the recipient and commits nonce, receipt and box together; `None` if the
/// collateral has changed since the appraisal.
async fn commit(
    case: &Case<'_>,
    appraised: &Appraised,
    verified: &Verified,
    key: &Key,
    wanted: &Wanted<'_>,
) -> Result<Option<Released>> {
    if key.to_host && !case.policy.to_host() {
        let text = format!(
            "the key is marked as the host's, and policy {} does not say `to_host = true`",
            key.policy
        );
        return Err(Kind::Recipient.because(text));
    }
    let (app, tenant, now) = (case.app, case.identity.tenant.as_str(), case.now);
    let recipient = wanted.recipient.key(verified, key.to_host)?;
    let receipt_id: [u8; 16] = random();
    let digest = *verified.digest();
    let info = ReleaseInfo {
        tenant: tenant.to_owned(),
        key_id: key.name.clone(),
        key_version: key.version.unsigned_abs(),
        layer: wanted.layer,
        evidence_digest: digest,
        nonce: wanted.challenge.nonce.clone(),
        recipient,
        receipt_id,
    };
    let new = NewRelease {
        tenant,
        name: &key.name,
        version: key.version,
        evidence: digest,
        recipient: recipient.as_bytes(),
        challenge: &case.challenge,
        used: wanted.used,
        expires: now + app.config.load().limits.release_seconds,
        clock: &app.clock,
        generation: case.collateral.generation,
        record: &appraised.record,
    };
    if app.config.load().audit.required {
        audit::announced(case.identity, &key.name, key.version, &digest).await?;
    }
    let signer = app.signer.load_full();
    let sign = |ends: Ends| {
        let bytes = wanted.recipient.seal(&info, &key.secret)?;
        let receipt = Receipt {
            tenant: tenant.to_owned(),
            seq: ends.receipts.seq + 1,
            previous: ends.receipts.digest,
            id: receipt_id,
            time: app.now(),
            key_id: key.name.clone(),
            key_version: key.version.unsigned_abs(),
            layer: wanted.layer,
            ueid: verified.claims().ueid,
            evidence_digest: digest,
            policy_digest: case.policy.sha256,
            recipient_digest: sha256(recipient.as_bytes()),
            to_host: key.to_host,
            events: ends.events,
        };
        Ok(Signed { ends, time: receipt.time, bytes, receipt: signer.receipt(&receipt)? })
    };
    let mut caller = Arc::clone(wanted.caller);
    loop {
        let certain = || caller.is_certain();
        match app.store.release(&new, signer.is_slow(), sign, certain).await? {
            Outcome::Released(released) => return Ok(Some(released)),
            Outcome::Changed => return Ok(None),
            Outcome::Doubted => caller = caller.confirmed().await?,
        }
    }
}
