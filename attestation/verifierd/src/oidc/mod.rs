//! Callers with a token of an OpenID Connect provider: an access token (RFC 9068) or an ID token in
//! JWS form, for this service as its audience.
//!
//! A signature is verified with the provider's published keys only ([`Keys`]): never with a key, or
//! a URL of one, that the token brings, and never with a symmetric algorithm.

mod keys;

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk, JwkSet, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header, Validation, decode, decode_header};
use serde_json::Value;

use crate::auth::Identity;
use crate::config::{Config, Oidc};
use crate::problem::{Kind, Problem, Result};
use crate::secrets::sha256;

pub use keys::{Keys, check};

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

/// Seconds by which the provider's clock may differ from this one.
const LEEWAY: u64 = 30;

/// Maximum length of a token.
const LONGEST: usize = 16 * 1024;

/// Characters of a claim that go into a caller's name.
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

/// Identifies the caller by a provider's token. `take` runs before the provider is asked.
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
    let header = decode_header(token).map_err(|_| refused("its header is not one of a JWS"))?;
    // `crit` names extensions that must be understood, and none is.
    let whole = part(token, 0).unwrap_or_default();
    if whole.get("crit").is_some() {
        return Err(refused("its header has `crit`"));
    }
    if !ALGORITHMS.contains(&header.alg) {
        return Err(refused(format!("algorithm {:?} is not accepted", header.alg)));
    }
    let set = match keys.known(&oidc.source, header.kid.as_deref()) {
        Some(set) => set,
        None => {
            take()?;
            keys.fetched(&oidc.source).await?
        }
    };
    let claims = verify(oidc, &set, &header, token)?;
    granted(oidc, &claims)
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
        (AlgorithmParameters::EllipticCurve(_), Algorithm::ES256 | Algorithm::ES384)
        | (AlgorithmParameters::OctetKeyPair(_), Algorithm::EdDSA) => true,
        _ => false,
    };
    for_signatures && same_name && algorithm && family
}

/// The claims of a token that one of the keys has signed, for this service and this time.
fn verify(oidc: &Oidc, set: &JwkSet, header: &Header, token: &str) -> Result<Value> {
    let mut fitting = set.keys.iter().filter(|jwk| may_sign(jwk, header));
    let (Some(jwk), None) = (fitting.next(), fitting.next()) else {
        return Err(refused("not exactly one of the provider's keys has its `kid` and algorithm"));
    };
    let key = DecodingKey::from_jwk(jwk)
        .map_err(|_| refused("the provider's key with its `kid` cannot be used"))?;
    let mut validation = Validation::new(header.alg);
    validation.leeway = LEEWAY;
    validation.validate_nbf = true;
    validation.set_audience(&[&oidc.audience]);
    validation.set_issuer(&[&oidc.source.issuer]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    match decode::<Value>(token, &key, &validation) {
        Ok(data) => Ok(data.claims),
        Err(error) => Err(refused(format!("{:?}", error.kind()))),
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
