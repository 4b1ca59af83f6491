//! JWE (RFC 7516, flattened JSON) with ECDH-ES+A256KW and A256GCM: the format of resources for KBS
//! clients.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use aws_lc_rs::kdf::{SskdfDigestAlgorithmId, get_sskdf_digest_algorithm, sskdf_digest};
use aws_lc_rs::key_wrap::{AES_256, AesKek, KeyWrap as _};
use aws_lc_rs::rand::SystemRandom;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde_json::{Value, json};
use shef_proto::hpke_suite::PublicKey;
use zeroize::Zeroizing;

use crate::problem::{Because, Kind, Problem, Result};
use crate::secrets::random;

const ALG: &str = "ECDH-ES+A256KW";
const ENC: &str = "A256GCM";

fn failed<E>(_: E) -> Problem {
    Kind::Internal.because("encryption failed")
}

/// Parses a P-256 key in a JWK: the only kind that evidence vouches for.
///
/// # Errors
/// Another kind of key, additional members, or not a point on the curve.
pub fn recipient(key: &Value) -> Result<PublicKey> {
    const MEMBERS: [&str; 5] = ["alg", "crv", "kty", "x", "y"];
    let bad = |found: &str| {
        let text = format!(
            "tee-pubkey: expected an EC key of P-256 with alg {ALG}, the kind that cards vouch for, found {found}"
        );
        Kind::Malformed.because(text)
    };
    let members = key.as_object().ok_or_else(|| bad("no object"))?;
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    if text("kty") != Some("EC") || text("crv") != Some("P-256") || text("alg") != Some(ALG) {
        let found = |name| {
            text(name).map_or_else(
                || format!("no {name}"),
                |text| format!("{name} {:?}", text.chars().take(32).collect::<String>()),
            )
        };
        return Err(bad(&["kty", "crv", "alg"].map(found).join(", ")));
    }
    if let Some(other) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
        return Err(bad(&format!(
            "the member {:?} too",
            other.chars().take(32).collect::<String>()
        )));
    }
    let coordinate = |name: &str| {
        let bytes =
            text(name).and_then(|text| B64.decode(text).ok()).filter(|bytes| bytes.len() == 32);
        bytes.ok_or_else(|| {
            bad(&format!("{name} that is not 32 bytes in base64url without padding"))
        })
    };
    let point = [vec![4], coordinate("x")?, coordinate("y")?].concat();
    PublicKey::from_bytes(&point).map_err(|_| bad("x and y that are no point of the curve"))
}

/// Concat KDF of RFC 7518 4.6.2 for a key of 256 bits: the one-step KDF of SP 800-56C with SHA-256.
fn concat_kdf(shared: &[u8]) -> Result<Zeroizing<[u8; 32]>> {
    let mut info = Vec::new();
    info.extend_from_slice(&(ALG.len() as u32).to_be_bytes());
    info.extend_from_slice(ALG.as_bytes());
    // No party information.
    info.extend_from_slice(&[0; 8]);
    info.extend_from_slice(&256u32.to_be_bytes());
    let algorithm =
        get_sskdf_digest_algorithm(SskdfDigestAlgorithmId::Sha256).ok_or_else(|| failed(()))?;
    let mut key = Zeroizing::new([0; 32]);
    sskdf_digest(algorithm, shared, &info, &mut key[..]).map_err(failed)?;
    Ok(key)
}

/// Encrypts to a key.
///
/// Clients serialise the header again to get the additional data, so its members have a fixed
/// order, without spaces.
///
/// # Errors
/// The crypto failed.
pub fn encrypt(recipient: &PublicKey, plaintext: &[u8]) -> Result<Value> {
    let own = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).map_err(failed)?;
    let point = own.compute_public_key().map_err(failed)?;
    let (x, y) = (B64.encode(&point.as_ref()[1..33]), B64.encode(&point.as_ref()[33..65]));
    let kek = agree_ephemeral(
        own,
        UnparsedPublicKey::new(&ECDH_P256, recipient.as_bytes()),
        failed(()),
        concat_kdf,
    )?;
    let key = Zeroizing::new(random::<32>());
    let mut wrapped = [0; 40];
    let kek = AesKek::new(&AES_256, &kek[..]).map_err(failed)?;
    let wrapped = kek.wrap(&key[..], &mut wrapped).map_err(failed)?;
    let header = format!(
        r#"{{"alg":"{ALG}","enc":"{ENC}","epk":{{"crv":"P-256","kty":"EC","x":"{x}","y":"{y}"}}}}"#
    );
    let protected = B64.encode(header);
    let iv: [u8; 12] = random();
    let cipher = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key[..]).map_err(failed)?);
    let mut ciphertext = Zeroizing::new(plaintext.to_vec());
    let tag = cipher
        .seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(iv),
            Aad::from(protected.as_bytes()),
            &mut ciphertext,
        )
        .map_err(failed)?;
    Ok(json!({
        "protected": protected,
        "encrypted_key": B64.encode(wrapped),
        "iv": B64.encode(iv),
        "ciphertext": B64.encode(&*ciphertext),
        "tag": B64.encode(tag.as_ref()),
    }))
}
