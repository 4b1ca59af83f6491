//! JWE (RFC 7516, flattened JSON) with ECDH-ES+A256KW and A256GCM: how resources go to KBS clients.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use aws_lc_rs::key_wrap::{AES_256, AesKek, KeyWrap as _};
use aws_lc_rs::rand::SystemRandom;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde_json::{Value, json};
use shef_proto::hpke_suite::PublicKey;
use zeroize::Zeroizing;

use crate::problem::{Kind, Problem, Result};
use crate::secrets::{random, sha256};

const ALG: &str = "ECDH-ES+A256KW";
const ENC: &str = "A256GCM";

fn failed<E>(_: E) -> Problem {
    Kind::Internal.because("encryption failed")
}

/// A P-256 key in a JWK.
///
/// # Errors
/// Another kind of key, or not a point of the curve.
pub fn recipient(key: &Value) -> Result<PublicKey> {
    let bad = || Kind::Malformed.because("tee-pubkey: expected an EC key of P-256 for ECDH-ES+A256KW");
    let text = |name: &str| key.get(name).and_then(Value::as_str);
    if text("kty") != Some("EC") || text("crv") != Some("P-256") || text("alg").is_some_and(|alg| alg != ALG) {
        return Err(bad());
    }
    let coordinate = |name: &str| text(name).and_then(|text| B64.decode(text).ok()).filter(|bytes| bytes.len() == 32).ok_or_else(bad);
    let point = [vec![4], coordinate("x")?, coordinate("y")?].concat();
    PublicKey::from_bytes(&point).map_err(|_| bad())
}

/// Concat KDF of RFC 7518 4.6.2 for a key of 256 bits: one round of SHA-256.
fn concat_kdf(shared: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut input = Zeroizing::new(Vec::new());
    input.extend_from_slice(&1u32.to_be_bytes());
    input.extend_from_slice(shared);
    input.extend_from_slice(&(ALG.len() as u32).to_be_bytes());
    input.extend_from_slice(ALG.as_bytes());
    // No party information.
    input.extend_from_slice(&[0; 8]);
    input.extend_from_slice(&256u32.to_be_bytes());
    Zeroizing::new(sha256(&input))
}

/// Encrypts to a key.
///
/// Clients serialise the header again to get the additional data, so its members stand in one order, without spaces.
///
/// # Errors
/// The crypto failed.
pub fn encrypt(recipient: &PublicKey, plaintext: &[u8]) -> Result<Value> {
    let own = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).map_err(failed)?;
    let point = own.compute_public_key().map_err(failed)?;
    let (x, y) = (B64.encode(&point.as_ref()[1..33]), B64.encode(&point.as_ref()[33..65]));
    let kek = agree_ephemeral(own, UnparsedPublicKey::new(&ECDH_P256, recipient.as_bytes()), failed(()), |shared| Ok(concat_kdf(shared)))?;
    let key = Zeroizing::new(random::<32>());
    let mut wrapped = [0; 40];
    let kek = AesKek::new(&AES_256, &kek[..]).map_err(failed)?;
    let wrapped = kek.wrap(&key[..], &mut wrapped).map_err(failed)?;
    let header = format!(r#"{{"alg":"{ALG}","enc":"{ENC}","epk":{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}}}"#);
    let protected = B64.encode(header);
    let iv: [u8; 12] = random();
    let mut ciphertext = plaintext.to_vec();
    let tag = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key[..]).map_err(failed)?)
        .seal_in_place_separate_tag(Nonce::assume_unique_for_key(iv), Aad::from(protected.as_bytes()), &mut ciphertext)
        .map_err(failed)?;
    Ok(json!({
        "protected": protected,
        "encrypted_key": B64.encode(wrapped),
        "iv": B64.encode(iv),
        "ciphertext": B64.encode(ciphertext),
        "tag": B64.encode(tag.as_ref()),
    }))
}
