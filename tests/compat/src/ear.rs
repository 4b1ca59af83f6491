//! The crate `ear` in both versions in use: 0.5 reads the dialect of 2023, 0.6 that of draft 04.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde_json::{Value, json};

use crate::{Case, Outcome, World, demand, kbs, text, veraison};

/// The crate's view of a result.
struct Read {
    profile: String,
    audience: Option<String>,
    nonce: Value,
    status: Value,
    identity: i8,
    hardware: i8,
    key: Option<Vec<u8>>,
}

macro_rules! reader {
    ($name:ident, $version:ident) => {
        fn $name(world: &World, token: &str) -> Outcome<Read> {
            use $version::{Algorithm, Ear, RawValue, RawValueKind};
            let mut ear = Ear::from_jwt_jwk(token, Algorithm::ES256, &world.jwk)?;
            ear.validate()?;
            ear.extensions.register("shef_audience", -75100, RawValueKind::String)?;
            let audience = match ear.extensions.get_by_name("shef_audience") {
                Some(RawValue::String(text)) => Some(text),
                _ => None,
            };
            let layer = ear.submods.get("fpga-kernel").ok_or("no submod fpga-kernel")?;
            Ok(Read {
                profile: ear.profile.clone(),
                audience,
                nonce: serde_json::to_value(&ear.nonce)?,
                status: serde_json::to_value(&layer.status)?,
                identity: layer.trust_vector.instance_identity.get(),
                hardware: layer.trust_vector.hardware.get(),
                key: layer.key_attestation.as_ref().map(|key| key.pub_key.as_slice().to_vec()),
            })
        }
    };
}

reader!(read_old, ear05);
reader!(read_new, ear06);

type Reader = fn(&World, &str) -> Outcome<Read>;

/// An affirming result of the card, in this profile and for the tenant, with its key.
fn affirms(world: &World, read: Reader, token: &str, profile: &str) -> Outcome<Read> {
    let read = read(world, token)?;
    demand!(read.profile == profile, "profile {}, expected {profile}", read.profile);
    demand!(read.audience.as_deref() == Some("default"), "shef_audience {:?}", read.audience);
    demand!(
        read.status == "affirming" && read.identity == 2 && read.hardware == 2,
        "{} {} {}",
        read.status,
        read.identity,
        read.hardware
    );
    let key = read.key.as_deref().ok_or("no attested key")?;
    demand!(
        key.ends_with(world.card.key.public_key().as_bytes()) && key.len() == 91,
        "the attested key is not the card's"
    );
    Ok(read)
}

const OLD_PROFILE: &str = "tag:github.com,2023:veraison/ear";
const NEW_PROFILE: &str = "tag:ietf.org,2026:rats/ear#04";

fn changed(world: &World, read: Reader, token: &str) -> Outcome {
    read(world, token)?;
    let (message, signature) = token.rsplit_once('.').ok_or("no token")?;
    let mut bytes = B64.decode(signature)?;
    bytes[10] ^= 1;
    demand!(
        read(world, &format!("{message}.{}", B64.encode(bytes))).is_err(),
        "another signature is taken"
    );
    let mut parts: Vec<&str> = message.split('.').collect();
    let claims = B64.decode(parts[1])?;
    let claims = B64.encode(String::from_utf8(claims)?.replace("affirming", "contraindicated"));
    parts[1] = &claims;
    demand!(
        read(world, &format!("{}.{signature}", parts.join("."))).is_err(),
        "other claims are taken"
    );
    Ok(())
}

fn denied(world: &World, read: Reader, accept: &str) -> Outcome {
    let read = read(world, &veraison::denied(world, accept)?)?;
    demand!(
        read.status == "contraindicated" && read.identity == 99,
        "{} {}",
        read.status,
        read.identity
    );
    demand!(read.key.is_none(), "denied evidence vouches for a key");
    Ok(())
}

/// The crate rejects a token with `aud`, so omitting it is necessary.
fn addressed(world: &World, read: Reader, accept: &str) -> Outcome {
    let answer = world.appraise(&world.operator, accept, &json!({"aud": true}))?;
    demand!(
        read(world, text(&answer, "result")?).is_err(),
        "aud is no longer refused: it need not be left out"
    );
    Ok(())
}

/// Cases for 0.5.
pub const OLD: &[Case] = &[
    Case("reads the result of a Veraison session", |world| {
        let (token, nonce) = veraison::result(world, None)?;
        let read = affirms(world, read_old, &token, OLD_PROFILE)?;
        demand!(read.nonce == nonce, "nonce {}, expected {nonce}", read.nonce);
        Ok(())
    }),
    Case("reads the result of a KBS session", |world| {
        affirms(world, read_old, &kbs::result(world)?, OLD_PROFILE)?;
        Ok(())
    }),
    Case("reads a result of /v1/appraise in the names that it asks for", |world| {
        world.recorded("appraise-2023", |tape| {
            let answer = world.appraise(&world.operator.on(tape), crate::OLD, &json!({}))?;
            affirms(world, read_old, text(&answer, "result")?, OLD_PROFILE)?;
            Ok(())
        })
    }),
    Case("reads a result that says no", |world| denied(world, read_old, crate::OLD)),
    Case("refuses a result that was changed", |world| {
        changed(world, read_old, &veraison::result(world, None)?.0)
    }),
    Case("refuses a result with aud", |world| addressed(world, read_old, crate::OLD)),
];

/// Cases for 0.6.
pub const NEW: &[Case] = &[
    Case("reads the result of a Veraison session in the names that it asks for", |world| {
        let (token, nonce) = veraison::result(world, Some(crate::NEW))?;
        let read = affirms(world, read_new, &token, NEW_PROFILE)?;
        demand!(read.nonce == nonce, "nonce {}, expected {nonce}", read.nonce);
        Ok(())
    }),
    Case("reads a result of /v1/appraise without aud", |world| {
        world.recorded("appraise-04", |tape| {
            let answer = world.appraise(&world.operator.on(tape), "*/*", &json!({"aud": false}))?;
            affirms(world, read_new, text(&answer, "result")?, NEW_PROFILE)?;
            Ok(())
        })
    }),
    Case("reads a result that says no", |world| denied(world, read_new, crate::NEW)),
    Case("refuses a result that was changed", |world| {
        changed(world, read_new, &veraison::result(world, Some(crate::NEW))?.0)
    }),
    Case("refuses a result with aud", |world| addressed(world, read_new, crate::NEW)),
];
