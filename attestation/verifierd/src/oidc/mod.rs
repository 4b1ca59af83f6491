//! Callers with a token of an OpenID Connect provider: an access token (RFC 9068) or an ID token in
//! JWS form, for this service as its audience.
//!
//! A signature is verified with the provider's published keys only ([`Keys`]): never with a key, or
//! a URL of one, that the token brings, and never with a symmetric algorithm.

mod keys;

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{
    AlgorithmParameters, EllipticCurve, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse,
};
use jsonwebtoken::{
    Algorithm, DecodingKey, Header, Validation, decode, decode_header, get_current_timestamp,
};
use serde_json::Value;

use crate::auth::Identity;
use crate::config::{Config, Oidc};
use crate::problem::{Because, Kind, Problem, Result};
use crate::secrets::sha256;

pub use keys::{Keys, check, readable};

/// Accepted algorithms: with a key pair, and at least SHA-256.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// Types of access tokens and ID tokens. Providers sign other tokens with the same keys, such as logout
/// tokens (`logout+jwt`), which are no proof of who sends them.
const TYPES: [&str; 2] = ["jwt", "at+jwt"];

/// Seconds by which the provider's clock may differ from this one.
const LEEWAY: u64 = 30;

/// Maximum length of a token.
const LONGEST: usize = 16 * 1024;

/// Characters of a claim that go into a caller's name, or of a header into an error.
const NAME: usize = 40;

fn refused(why: impl std::fmt::Display) -> Problem {
    Kind::Unauthenticated.because(format!("the token of the identity provider: {why}"))
}

/// The token in a request's headers, and the configured provider that it says it is from.
#[must_use]
pub fn shown<'a>(config: &'a Config, headers: &'a HeaderMap) -> Option<(&'a Oidc, &'a str)> {
    let (scheme, token) =
        headers.get(axum::http::header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    if !scheme.eq_ignore_ascii_case("bearer") || token.len() > LONGEST {
        return None;
    }
    let claims: Value = part(token, 1)?;
    let issuer = claims.get("iss")?.as_str()?;
    config.oidc.iter().find(|oidc| oidc.source.issuer == issuer).map(|oidc| (oidc, token))
}

/// A part of a token, not verified.
fn part(token: &str, at: usize) -> Option<Value> {
    let parts: Vec<&str> = token.split('.').collect();
    let [_, _, _] = parts[..] else { return None };
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[at]).ok()?).ok()
}

/// Identifies the caller by a provider's token. `take` runs before a request to the provider.
///
/// # Errors
/// The token is not genuine, not for this service, not valid now, or has no granted claim; the
/// provider's keys are not known; or those of `take`.
pub async fn identify(
    keys: &Keys,
    oidc: &Oidc,
    token: &str,
    take: &(dyn Fn() -> Result<()> + Sync),
) -> Result<Identity> {
    let header = header(token)?;
    let set = match keys.known(oidc, header.kid.as_deref()) {
        Some(set) => set,
        None => {
            take()?;
            keys.fetched(oidc).await?
        }
    };
    let claims = verify(oidc, &set, &header, token)?;
    granted(oidc, &claims)
}

/// The header of a token that may be accepted.
fn header(token: &str) -> Result<Header> {
    let not_jws = || refused("its header is not one of a JWS");
    let whole = part(token, 0).ok_or_else(not_jws)?;
    // `crit` names extensions that must be understood, and none is.
    if whole.get("crit").is_some() {
        return Err(refused("its header has `crit`"));
    }
    let text = |name: &str| -> Option<String> {
        Some(whole.get(name)?.as_str()?.chars().take(NAME).collect())
    };
    let alg = text("alg").ok_or_else(not_jws)?;
    if !alg.parse().is_ok_and(|alg| ALGORITHMS.contains(&alg)) {
        return Err(refused(format!("algorithm {alg:?}: expected one of {ALGORITHMS:?}")));
    }
    let header = decode_header(token).map_err(|_| not_jws())?;
    if let Some(typ) = text("typ") {
        let short = typ.to_ascii_lowercase();
        if !TYPES.contains(&short.strip_prefix("application/").unwrap_or(&short)) {
            return Err(refused(format!("type {typ:?}: expected an access token or an ID token")));
        }
    }
    Ok(header)
}

/// Whether a published key may have made this signature.
fn may_sign(jwk: &Jwk, header: &Header) -> bool {
    let common = &jwk.common;
    let for_signatures = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
    let same_name = header.kid.as_deref().is_none_or(|kid| common.key_id.as_deref() == Some(kid));
    let algorithm = match common.key_algorithm {
        None => true,
        Some(KeyAlgorithm::UNKNOWN_ALGORITHM) => false,
        Some(named) => named.to_string() == format!("{:?}", header.alg),
    };
    let family = match (&jwk.algorithm, header.alg) {
        (AlgorithmParameters::RSA(_), alg) => {
            use Algorithm::{PS256, PS384, PS512, RS256, RS384, RS512};
            [RS256, RS384, RS512, PS256, PS384, PS512].contains(&alg)
        }
        (AlgorithmParameters::EllipticCurve(key), Algorithm::ES256) => {
            key.curve == EllipticCurve::P256
        }
        (AlgorithmParameters::EllipticCurve(key), Algorithm::ES384) => {
            key.curve == EllipticCurve::P384
        }
        (AlgorithmParameters::OctetKeyPair(key), Algorithm::EdDSA) => {
            key.curve == EllipticCurve::Ed25519
        }
        _ => false,
    };
    for_signatures && same_name && algorithm && family
}

/// The only key that may have made a signature.
fn only<'a>(set: &'a JwkSet, header: &Header) -> Option<&'a Jwk> {
    let mut fitting = set.keys.iter().filter(|jwk| may_sign(jwk, header));
    fitting.next().filter(|_| fitting.next().is_none())
}

/// The published keys that can verify a token which names them.
fn usable(set: &JwkSet) -> Vec<&Jwk> {
    let verifies = |jwk: &&Jwk| {
        ALGORITHMS.into_iter().any(|alg| {
            let header = Header { kid: jwk.common.key_id.clone(), ..Header::new(alg) };
            only(set, &header).is_some_and(|only| std::ptr::eq(only, *jwk))
        }) && DecodingKey::from_jwk(jwk).is_ok()
    };
    set.keys.iter().filter(verifies).collect()
}

/// A text of others, short and escaped.
fn cut(text: &str) -> String {
    let more = if text.chars().nth(NAME).is_some() { "..." } else { "" };
    format!("{:?}{more}", text.chars().take(NAME).collect::<String>())
}

/// What is wrong with a token, of whose claims only those are named that were expected to differ.
fn unfit(oidc: &Oidc, token: &str, error: &ErrorKind) -> Problem {
    let claims = part(token, 1).unwrap_or_default();
    let found = |name: &str| match &claims[name] {
        Value::String(text) => cut(text),
        Value::Array(list) => {
            let all: Vec<_> = list.iter().take(4).map(|one| one.as_str().map(cut)).collect();
            let all = all.into_iter().map(|one| one.unwrap_or_else(|| "another type".into()));
            format!("[{}]", all.collect::<Vec<_>>().join(", "))
        }
        Value::Number(number) => number.to_string(),
        _ => "of another type".into(),
    };
    let time = || format!("now is {}, in seconds since 1970", get_current_timestamp());
    refused(match error {
        ErrorKind::InvalidSignature => {
            "its signature is not one of the provider's key with its `kid`".into()
        }
        ErrorKind::InvalidAudience => {
            format!("its `aud` is {}: expected {:?}", found("aud"), oidc.audience)
        }
        ErrorKind::InvalidIssuer => {
            format!("its `iss` is {}: expected {:?}", found("iss"), oidc.source.issuer)
        }
        ErrorKind::ExpiredSignature => {
            format!("it has ended: its `exp` is {}, {}", found("exp"), time())
        }
        ErrorKind::ImmatureSignature => {
            format!("it is not valid yet: its `nbf` is {}, {}", found("nbf"), time())
        }
        ErrorKind::MissingRequiredClaim(name) => format!("it has no `{name}`"),
        ErrorKind::InvalidClaimFormat(name) => {
            format!("its `{name}` is {}, which is not of the form of this claim", found(name))
        }
        _ => "expected a JWS whose claims are JSON".into(),
    })
}

/// The claims of a token that one of the keys has signed, for this service and this time.
fn verify(oidc: &Oidc, set: &JwkSet, header: &Header, token: &str) -> Result<Value> {
    let jwk = only(set, header).ok_or_else(|| {
        refused("not exactly one of the provider's keys has its `kid` and algorithm")
    })?;
    let key = DecodingKey::from_jwk(jwk)
        .map_err(|_| refused("the provider's key with its `kid` cannot be used"))?;
    let mut validation = Validation::new(header.alg);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    validation.set_audience(&[&oidc.audience]);
    validation.set_issuer(&[&oidc.source.issuer]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    match decode::<Value>(token, &key, &validation) {
        // A thief of such a token must not be able to use it without the key (RFC 8705, RFC 9449).
        Ok(data) if data.claims.get("cnf").is_some() => Err(refused(
            "it is bound to a key of the caller (`cnf`), which is not verified here: have the provider issue bearer tokens",
        )),
        Ok(data) => Ok(data.claims),
        Err(error) => Err(unfit(oidc, token, error.kind())),
    }
}

/// The caller with these claims.
fn granted(oidc: &Oidc, claims: &Value) -> Result<Identity> {
    let grant = oidc.grants.iter().find(|grant| has(claims, &grant.claim, &grant.value));
    let grant = grant
        .ok_or_else(|| refused("none of its claims has a [[oidc.grant]] in the configuration"))?;
    Ok(Identity { tenant: grant.tenant.clone(), name: name(oidc, claims), role: grant.role })
}

fn claim<'a>(claims: &'a Value, name: &str) -> Option<&'a Value> {
    if name.starts_with('/') { claims.pointer(name) } else { claims.get(name) }
}

/// Whether a claim is this value, or a list that contains it. The texts of `scope` (RFC 9068) and
/// `scp` are lists of words; callers may choose the words of other texts.
fn has(claims: &Value, name: &str, value: &str) -> bool {
    match claim(claims, name) {
        Some(Value::String(text)) if ["scope", "scp"].contains(&name) => {
            text.split(' ').any(|word| word == value)
        }
        Some(Value::String(text)) => text == value,
        Some(Value::Array(list)) => list.iter().any(|one| one.as_str() == Some(value)),
        Some(Value::Bool(flag)) => flag.to_string() == value,
        _ => false,
    }
}

/// A name by [`crate::name::is_name`]: the subject, as far as it can be written so, and a digest of
/// issuer and subject, which makes it unique. Limits and rates go by it, so no claim that changes is
/// part of it.
fn name(oidc: &Oidc, claims: &Value) -> String {
    let subject = claim(claims, "sub").and_then(Value::as_str).unwrap_or_default();
    let mut name = String::new();
    for character in subject.chars().take(NAME) {
        let lower = character.to_ascii_lowercase();
        name.push(if lower.is_ascii_lowercase() || lower.is_ascii_digit() { lower } else { '-' });
    }
    let name = name.trim_matches('-');
    let name = if name.is_empty() { "caller" } else { name };
    let digest = sha256(format!("{}\0{subject}", oidc.source.issuer).as_bytes());
    format!("{name}.{}", hex::encode(&digest[..8]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{Grant, Source};
    use crate::name::is_name;
    use crate::role::Role;

    fn oidc() -> Oidc {
        let grant = |claim: &str, value: &str, role| Grant {
            claim: claim.into(),
            value: value.into(),
            tenant: "default".into(),
            role,
        };
        Oidc {
            source: Source { issuer: "https://id.example".into(), jwks_uri: None, ca: None },
            keys_seconds: 60,
            audience: "shef".into(),
            grants: vec![
                grant("/realm/roles", "fpga", Role::Operator),
                grant("scope", "attest", Role::Attest),
                grant("robot", "true", Role::Release),
            ],
        }
    }

    #[test]
    fn the_first_grant_that_fits_counts() {
        let role = |claims: Value| granted(&oidc(), &claims).map(|who| who.role).ok();
        assert_eq!(
            role(json!({"realm": {"roles": ["a", "fpga"]}, "scope": "attest"})),
            Some(Role::Operator)
        );
        assert_eq!(role(json!({"scope": "openid attest"})), Some(Role::Attest));
        assert_eq!(role(json!({"robot": true})), Some(Role::Release));
        for none in [
            json!({}),
            json!({"scope": "attestation"}),
            json!({"realm": {"roles": "friends of fpga"}}),
            json!({"realm": {"roles": "fpg"}}),
            json!({"roles": ["fpga"], "realm/roles": ["fpga"]}),
            json!({"robot": 1, "scope": {"attest": true}}),
        ] {
            assert_eq!(role(none.clone()), None, "{none}");
        }
    }

    #[test]
    fn names_can_be_written_and_are_unique() {
        let of = |sub: &str| name(&oidc(), &json!({"email": "jo@example.org", "sub": sub}));
        let jo = of("Jo.Doe@Example.org");
        assert!(jo.starts_with("jo-doe-example-org."), "{jo}");
        for sub in ["", "..", "ü@@", &"x".repeat(99), "auth0|7"] {
            assert!(is_name(&of(sub)), "{}", of(sub));
        }
        assert_ne!(jo, of("jo.doe@example.org"));
    }
}
