//! The KBS protocol of Confidential Containers (`/kbs/v0`, version 0.4.0): authenticate, attest,
//! fetch resources.
//!
//! A resource is a key whose name is a path. It has a layer, a policy, versions, limits and
//! receipts like any other key. It is encrypted to the key that the evidence vouches for, unless
//! its tenant marked it as the host's. A client attests again on 401 and gives up on 404.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shef_verify::ear::{Dialect, Reader};
use subtle::ConstantTimeEq as _;

use super::release::{self, Recipient, Wanted};
use super::routes::Route;
use super::{Shared, bytes, nonce_text, text};
use crate::app::App;
use crate::appraiser::Received;
use crate::auth::{Identity, Standing, shown_token};
use crate::config::Config;
use crate::flow::{self, Case, Form};
use crate::jwe;
use crate::name::is_path;
use crate::oidc;
use crate::problem::{Because, Kind, Problem, Result};
use crate::role::{Need, Role};
use crate::secrets::sha256;
use crate::session::{Challenge, NONCE_LEN, Protocol, Session, draw_nonce};

const VERSION: &str = "0.4.0";
const COOKIE: &str = "kbs-session-id";
const RESOURCE: &str = "/kbs/v0/resource/{repository}/{kind}/{tag}";

pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/kbs/v0/auth", post(auth))
        .route("/kbs/v0/attest", post(attest))
        .route(RESOURCE, get(resource).post(set_resource))
}

/// A problem in the form that these clients read: `type` and `detail` beside the other members. The
/// status is 401 if another attestation may help, else 400, 403 or 404.
struct Refusal(Problem);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self.0.kind {
            Kind::Malformed => StatusCode::BAD_REQUEST,
            Kind::NotFound => StatusCode::NOT_FOUND,
            Kind::Recipient
            | Kind::Layer
            | Kind::KeyDisabled
            | Kind::KeyWindow
            | Kind::KeyExhausted
            | Kind::Erased => StatusCode::FORBIDDEN,
            kind if kind.status() >= 500 => {
                StatusCode::from_u16(kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
            _ => StatusCode::UNAUTHORIZED,
        };
        self.0.with_status(status)
    }
}

fn unauthorised(text: &str) -> Problem {
    Kind::Unauthenticated.because(text)
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Auth {
    version: String,
    tee: String,
    #[serde(default)]
    extra_params: Value,
}

/// The only hash of runtime data that fits into evidence here.
const HASH: &str = "sha384";

async fn auth(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    body: Bytes,
) -> Result<Response, Refusal> {
    let request: Auth = super::json(&body)?;
    if request.version != VERSION {
        return Err(Kind::Malformed
            .because(format!("protocol version {:?}, expected {VERSION}", request.version))
            .into());
    }
    if request.tee.is_empty() || request.tee.len() > 64 {
        return Err(Kind::Malformed.because("tee is not a name").into());
    }
    if let Some(hashes) = request.extra_params.get("supported-hash-algorithms")
        && !hashes.as_array().is_some_and(|hashes| hashes.iter().any(|hash| hash == HASH))
    {
        return Err(Kind::Malformed
            .because(format!("supported-hash-algorithms: expected {HASH} among them"))
            .into());
    }
    let seconds = app.config.load().limits.session_seconds;
    let session =
        Session::new(Protocol::Kbs, &identity.tenant, draw_nonce(NONCE_LEN), app.now(), seconds);
    let cookie = format!(
        "{COOKIE}={}; Path=/kbs; Max-Age={seconds}; HttpOnly; Secure; SameSite=Strict",
        session.token(&app.kek.load())
    );
    let body = json!({"nonce": nonce_text(&session.nonce), "extra-params": {"selected-hash-algorithm": HASH}});
    Ok(([(header::SET_COOKIE, cookie)], Json(body)).into_response())
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    let all = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'));
    all.filter_map(|pair| pair.trim().split_once('='))
        .find_map(|(name, value)| (name == COOKIE).then_some(value))
}

/// The body of an attestation. Nothing is ignored: members that this version does not know are
/// rejected, and so is everything that a card does not vouch for.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Attest {
    #[serde(default)]
    init_data: Value,
    runtime_data: RuntimeData,
    tee_evidence: TeeEvidence,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RuntimeData {
    nonce: String,
    tee_pubkey: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
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

impl Attest {
    fn read(body: &[u8]) -> Result<Self> {
        let request: Self = super::json(body)?;
        if !request.init_data.is_null() {
            return Err(Kind::Malformed
                .because("init-data: expected null: a card's evidence vouches for none"));
        }
        if !request.tee_evidence.additional_evidence.is_empty() {
            return Err(Kind::Malformed.because("additional_evidence: expected \"\": devices beside the card are not appraised here"));
        }
        Ok(request)
    }

    /// The nonce that the evidence must carry: SHA-384 of the runtime data in canonical JSON (RFC
    /// 8785), which binds the challenge and the client's key. Everything is ASCII, and members are
    /// in order.
    fn report_data(&self) -> Vec<u8> {
        let key: BTreeMap<&String, &Value> =
            self.runtime_data.tee_pubkey.as_object().into_iter().flatten().collect();
        let runtime = BTreeMap::from([
            ("additional-evidence", json!(self.tee_evidence.additional_evidence)),
            ("nonce", json!(self.runtime_data.nonce)),
            ("tee-pubkey", json!(key)),
        ]);
        aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA384, json!(runtime).to_string().as_bytes())
            .as_ref()
            .to_vec()
    }
}

/// The record of an attested session: everything that a later release relies on. The cookie and the
/// result both name it.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Attested {
    tee_pubkey: Value,
    evidence: String,
    nonce: String,
    issued: i64,
    accepted: bool,
    /// SHA-256 of the result: only this token counts, not another one with a valid signature.
    result: String,
    /// When it expires.
    ends: i64,
    /// Name of the identity that attested.
    name: String,
    role: String,
    /// SHA-256 of the bearer token that was shown: the result ends with it, whatever replaces it
    /// under its name.
    #[serde(default)]
    bearer: Option<String>,
}

async fn attest(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let token = cookie(&headers).ok_or_else(|| unauthorised("there is no session cookie"))?;
    let session = Session::open(&app.kek.load(), Protocol::Kbs, &identity.tenant, token)?;
    session.is_open(app.now())?;
    let request = Attest::read(&body)?;
    if bytes("nonce", &request.runtime_data.nonce)? != session.nonce {
        return Err(unauthorised("the nonce is not the one of the session").into());
    }
    let key = jwe::recipient(&request.runtime_data.tee_pubkey)?;
    let evidence =
        Received::new(bytes("evidence", &request.tee_evidence.primary_evidence.evidence)?);
    let mut challenge = Challenge::of(&session);
    // The evidence's nonce binds the client's key too. The session itself is used up, whatever key
    // the client brings.
    challenge.nonce = request.report_data();
    let life = app.config.load().limits.result_seconds;
    challenge.remembered += life;
    let policy = flow::policy(&app, &identity, None).await?;
    let mut case =
        Case::new(&app, &identity, "kbs", challenge, evidence.layer(), &evidence, policy).await?;
    let appraised = case.appraise().await?;
    // A key that the host brought is not in the result: readers would take it for a key that the
    // card vouches for.
    let vouched =
        appraised.outcome.verified.as_ref().is_some_and(|verified| verified.claims().key == key);
    let reader = if vouched { Reader::Trustee } else { Reader::Veraison };
    let token =
        case.result(&appraised, Form { dialect: Dialect::Veraison2023, reader, id: session.id })?;
    let kept = Attested {
        tee_pubkey: request.runtime_data.tee_pubkey,
        evidence: text(evidence.bytes()),
        nonce: text(&case.challenge.nonce),
        issued: session.issued,
        accepted: appraised.accepted(),
        result: hex::encode(sha256(token.as_bytes())),
        ends: case.now + life,
        name: identity.name.clone(),
        role: identity.role.name().into(),
        bearer: shown_token(&headers).map(hex::encode),
    };
    case.keep(&appraised, Some(&json!(kept).to_string())).await?;
    if !appraised.accepted() {
        return Err(case.denied(&appraised).into());
    }
    Ok(Json(json!({"token": token})).into_response())
}

/// The record of the session with this id, and its challenge.
async fn attested(app: &App, tenant: &str, id: [u8; 16]) -> Result<(Attested, Challenge)> {
    let none = || unauthorised("the session has not attested");
    let session =
        |nonce, issued| Session { id, issued, ..Session::new(Protocol::Kbs, tenant, nonce, 0, 0) };
    let kept = app
        .store
        .kept(tenant, &Challenge::of(&session(Vec::new(), 0)))
        .await?
        .flatten()
        .ok_or_else(none)?;
    let kept: Attested = serde_json::from_str(&kept).map_err(|_| none())?;
    if !kept.accepted {
        return Err(unauthorised("the evidence of this session was denied"));
    }
    if app.now() >= kept.ends {
        return Err(unauthorised("the attestation of this session has ended: attest again"));
    }
    let mut challenge = Challenge::of(&session(bytes("nonce", &kept.nonce)?, kept.issued));
    (challenge.expires, challenge.remembered) = (kept.ends, kept.ends);
    Ok((kept, challenge))
}

/// Whether a route accepts the result of an attestation instead of a cookie.
pub fn takes_result(route: &Route) -> bool {
    route.path == RESOURCE && route.need == Need::Attest
}

/// The result in a request's bearer token.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && token.split('.').count() == 3).then_some(token)
}

/// The attestation behind a result: one that this service issued to a KBS client, byte for byte,
/// and that has not expired.
///
/// It stands for its session like the cookie, and for nothing more: a resource goes to the same
/// key, after the same appraisal.
async fn by_result(app: &App, token: &str) -> Result<(String, Attested, Challenge)> {
    let bad = || unauthorised("the bearer token is no result of an attestation here");
    let claims = app.signer.load().verify_jwt(token).ok_or_else(bad)?;
    let claim = |name: &str| claims.get(name).and_then(Value::as_str);
    let (Some(tenant), Some(id)) = (claim("shef_audience"), claim("jti")) else {
        return Err(bad());
    };
    let mut session = [0; 16];
    hex::decode_to_slice(id, &mut session).map_err(|_| bad())?;
    // A result of another protocol has an id that names no session.
    let (kept, challenge) = attested(app, tenant, session).await?;
    let digest = hex::encode(sha256(token.as_bytes()));
    if !bool::from(digest.as_bytes().ct_eq(kept.result.as_bytes())) {
        return Err(bad());
    }
    Ok((tenant.to_owned(), kept, challenge))
}

/// The identity behind a request that carries only a result: the one that attested, if the
/// configuration still has it. That is the anonymous identity or the owner of a token, and it may
/// fetch resources but not change them. A client that attested with a certificate has to present it
/// again.
///
/// # Errors
/// The token is not a result of an attestation here, or belongs to another identity.
pub async fn who_attested(app: &App, config: &Config, headers: &HeaderMap) -> Result<Identity> {
    let token = bearer(headers).ok_or_else(|| unauthorised("there is no bearer token"))?;
    let (tenant, kept, _) = by_result(app, token).await?;
    let nobody = Identity::anonymous(&tenant);
    if kept.name == nobody.name {
        let let_in = config.compat.anonymous_tenant.as_ref() == Some(&tenant);
        return let_in
            .then_some(nobody)
            .ok_or_else(|| unauthorised("clients without a token are no longer let in"));
    }
    let tokens = config.tenant(&tenant).into_iter().flat_map(|tenant| &tenant.tokens);
    let known = tokens.into_iter().find(|token| {
        token.name == kept.name
            && token.role.name() == kept.role
            && kept.bearer.as_ref().is_some_and(|shown| *shown == hex::encode(token.sha256))
    });
    let known =
        known.ok_or_else(|| unauthorised("whoever attested showed a certificate, or a token that counts no more: show one that counts"))?;
    let role = if known.role.may(Need::Release) { Role::Release } else { known.role };
    Ok(Identity { tenant, name: kept.name, role })
}

/// The path of a resource; each part must be a valid name.
fn path(parts: &(String, String, String)) -> Result<String> {
    let path = format!("{}/{}/{}", parts.0, parts.1, parts.2);
    if is_path(&path) { Ok(path) } else { Err(Kind::NotFound.because("there is no such resource")) }
}

async fn resource(
    State(app): Shared,
    Extension(identity): Extension<Identity>,
    Extension(caller): Extension<Arc<dyn Standing>>,
    Path(parts): Path<(String, String, String)>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let path = path(&parts)?;
    if !identity.role.may(Need::Release) {
        let config = app.config.load_full();
        let listed = identity.is_anonymous() && config.compat.anonymous_resources.contains(&path);
        if !listed {
            return Err(unauthorised(
                "this resource needs an identity with the role release or operator",
            )
            .into());
        }
    }
    // The token of an identity provider names the caller, and is no result.
    let result = bearer(&headers).filter(|_| oidc::shown(&app.config.load(), &headers).is_none());
    let (kept, challenge) = if let Some(token) = result {
        let (tenant, kept, challenge) = by_result(&app, token).await?;
        if tenant != identity.tenant {
            return Err(unauthorised("the bearer token is no result of an attestation here").into());
        }
        (kept, challenge)
    } else {
        let token = cookie(&headers).ok_or_else(|| {
            unauthorised("there is neither a session cookie nor a result: attest first")
        })?;
        attested(
            &app,
            &identity.tenant,
            Session::open(&app.kek.load(), Protocol::Kbs, &identity.tenant, token)?.id,
        )
        .await?
    };
    let evidence = Received::new(bytes("evidence", &kept.evidence)?);
    // Appraise again, under the resource's policy and the current collateral: a revocation takes
    // effect at once.
    let wanted = Wanted {
        action: "kbs-resource",
        key: &path,
        version: None,
        challenge,
        used: true,
        layer: evidence.layer(),
        evidence: &evidence,
        recipient: Recipient::Jwe(jwe::recipient(&kept.tee_pubkey)?),
        caller: &caller,
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
