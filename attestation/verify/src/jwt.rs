//! Compact JWS with ES256 only (RFC 7515, RFC 7518), for results in JWT form.
//!
//! The classic mistakes in JWT verification are ruled out: the algorithm is fixed, keys come only
//! from the caller, and a header that contains or references a key is refused.

use std::fmt;

use base64_simd::URL_SAFE_NO_PAD as B64;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use shef_proto::cose::{self, SigningKey, VerifyFn};
use shef_proto::crypto;
use shef_proto::hpke_suite::PublicKey;

/// Maximum size of a token.
pub const MAX_TOKEN: usize = 64 * 1024;

/// Creates ES256 signatures, with a key in memory or elsewhere.
pub trait Signer {
    /// Name of the key, for the header.
    fn key_id(&self) -> &str;
    /// Signature `r | s` over `message`; [`sign`] normalises it to the low s.
    ///
    /// # Errors
    /// The key cannot be used.
    fn sign(&self, message: &[u8]) -> Result<[u8; 64], JwtError>;
}

/// A key in memory with its name.
pub struct NamedKey {
    /// Name for the header.
    pub kid: String,
    /// The key.
    pub key: SigningKey,
}

impl Signer for NamedKey {
    fn key_id(&self) -> &str {
        &self.kid
    }

    fn sign(&self, message: &[u8]) -> Result<[u8; 64], JwtError> {
        Ok(self.key.sign(message))
    }
}

/// A public key that verifies tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JwtKey {
    /// Its name in headers.
    pub kid: String,
    /// The key.
    pub key: PublicKey,
}

shef_proto::coded! {
    /// Why a token is refused.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum JwtError {
        /// A claim is missing, of the wrong type, or not as expected.
        #[error("claim {claim}: expected {expected}, found {found}")]
        Claim {
            /// Its name.
            claim: &'static str,
            /// Expected value.
            expected: String,
            /// Actual value.
            found: String,
        } => { claim, .. } if matches!(*claim, "iat" | "exp") { "SHEF-ATT-074" } else { "SHEF-ATT-073" },
        /// Not three parts in base64url without padding, or too long.
        #[error("the token is not a compact JWS: {what}")]
        Form {
            /// What is wrong.
            what: &'static str,
        } = "SHEF-ATT-070": "not a token of the expected form", "A result is a compact JWS: three parts in base64url without padding.",
        /// No known key has the name in the header.
        #[error("no known key is named {kid:?}")]
        Key {
            /// Name in the header.
            kid: String,
        } = "SHEF-ATT-071": "token is not signed by a known key",
            "The token was changed, or signed by a key that is not, or no longer, one of the verifier's.",
        /// The signature does not verify.
        #[error("the signature does not verify")]
        Signature = "SHEF-ATT-071",
        /// The signature verifies only with `n - s` for s.
        #[error("the signature verifies, but its s is above n / 2: expected the lower of s and n - s")]
        HighS = "SHEF-ATT-076": "signature of the token has a high s",
            "Of the two values s and n - s that verify, a result has the lower one, so that one result has one encoding. The token was \
             changed on its way, or a verifier service of version 0.1 signed it: ask for a new result.",
        /// An algorithm other than ES256.
        #[error("algorithm {found:?}, expected \"ES256\"")]
        Algorithm {
            /// Algorithm in the header.
            found: String,
        } = "SHEF-ATT-072": "algorithm or header of the token is not allowed",
            "Results are signed with ES256. The header names algorithm, type and key, and nothing else: `none`, HMAC, RSA, and keys inside \
             or behind the header are refused.",
        /// A header parameter that is not allowed: `jwk`, `jku`, `x5u`, `x5c`, `crit`, ...
        #[error("header: {text}")]
        Header {
            /// What is wrong.
            text: String,
        } = "SHEF-ATT-072",
        /// The signing key cannot be used.
        #[error("the signing key cannot be used: {text}")]
        Signer {
            /// Why.
            text: String,
        } = "SHEF-ATT-075": "the signing key cannot be used", "The key that signs results gave no signature. Look at where it is kept.",
    }
    also {
        "SHEF-ATT-073": "a claim of the result is not what is expected",
            "Audience, nonce, layer or form of the result are not those expected. The text names the claim.",
        "SHEF-ATT-074": "the result is not valid now", "It has expired, or was issued in the future: look at both clocks.",
    }
}

/// Signs a claims-set in JSON.
///
/// # Errors
/// The key cannot be used.
pub fn sign(claims: &[u8], signer: &dyn Signer) -> Result<String, JwtError> {
    let mut header = br#"{"alg":"ES256","typ":"JWT","kid":"#.to_vec();
    serde_json::to_writer(&mut header, signer.key_id())
        .map_err(|error| JwtError::Signer { text: error.to_string() })?;
    header.push(b'}');
    let mut token =
        Vec::with_capacity((header.len() + claims.len() + cose::SIGNATURE_LEN) * 4 / 3 + 8);
    B64.encode_append(&header, &mut token);
    token.push(b'.');
    B64.encode_append(claims, &mut token);
    let signature = crypto::to_low_s(signer.sign(&token)?);
    token.push(b'.');
    B64.encode_append(signature, &mut token);
    String::from_utf8(token).map_err(|error| JwtError::Signer { text: error.to_string() })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    alg: String,
    typ: Option<String>,
    kid: Option<String>,
}

/// Verifies a token with one of `keys` and returns its claims. A token without `kid` needs exactly
/// one key.
///
/// # Errors
/// The first violated rule. Claims are read only after the signature is verified.
pub fn verify(
    token: &str,
    keys: &[JwtKey],
    verify: VerifyFn,
) -> Result<Map<String, Value>, JwtError> {
    let form = |what| JwtError::Form { what };
    if token.len() > MAX_TOKEN {
        return Err(form("it is too long"));
    }
    let (message, signature) = token.rsplit_once('.').ok_or(form("it has no parts"))?;
    let (header, claims) = message.split_once('.').ok_or(form("it has two parts"))?;
    if claims.contains('.') {
        return Err(form("it has more than three parts"));
    }
    let decode = |part: &str, what| B64.decode_to_vec(part).map_err(|_| form(what));
    let header = decode(header, "the header is not base64url without padding")?;
    let header: Header = serde_json::from_slice(&header).map_err(|error| JwtError::Header {
        text: error.to_string().chars().take(128).collect(),
    })?;
    if header.alg != "ES256" {
        return Err(JwtError::Algorithm { found: header.alg.chars().take(32).collect() });
    }
    if header.typ.as_deref().is_some_and(|typ| !typ.eq_ignore_ascii_case("JWT")) {
        return Err(JwtError::Header { text: "typ is not JWT".into() });
    }
    let key = match (&header.kid, keys) {
        (None, [one]) => Some(one),
        (None, _) => None,
        (Some(kid), keys) => keys.iter().find(|key| key.kid == *kid),
    };
    let key = key.ok_or_else(|| JwtError::Key {
        kid: header.kid.unwrap_or_default().chars().take(64).collect(),
    })?;
    let signature = decode(signature, "the signature is not base64url without padding")?;
    let signature: [u8; cose::SIGNATURE_LEN] =
        signature.try_into().map_err(|_| form("the signature is not 64 bytes r | s"))?;
    if !verify(&key.key, message.as_bytes(), &signature) {
        return Err(JwtError::Signature);
    }
    if !crypto::is_low_s(&signature) {
        return Err(JwtError::HighS);
    }
    let claims = decode(claims, "the claims are not base64url without padding")?;
    match json(&claims).map_err(|_| form("the claims are not JSON without repeated names"))? {
        Value::Object(claims) => Ok(claims),
        _ => Err(form("the claims are not an object")),
    }
}

/// Reads JSON. Duplicate names in an object are an error.
///
/// # Errors
/// Not JSON, or a duplicate name.
pub(crate) fn json(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let value = Once.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// Builds a [`Value`] and refuses duplicate names, which `serde_json` itself accepts.
struct Once;

impl<'de> DeserializeSeed<'de> for Once {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Once {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(b.into())
    }

    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(n.into())
    }

    fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
        Ok(n.into())
    }

    fn visit_f64<E>(self, n: f64) -> Result<Value, E> {
        Ok(n.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element_seed(Once)? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if object.contains_key(&name) {
                return Err(A::Error::custom("a name appears twice"));
            }
            let value = map.next_value_seed(Once)?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}
