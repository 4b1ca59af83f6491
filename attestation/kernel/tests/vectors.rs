//! `tests/vectors/attestation.json` matches one device in both rounds, byte for byte.
//! `SHEF_WRITE_VECTORS=1` writes the file.

use serde_json::{Value, json};
use shef_fixtures::world::*;
use shef_kernel::{KernelImage, device_id_key};
use shef_proto::entropy::Entropy;
use shef_proto::evidence::{Evidence, Layer, RootOfTrust};
use shef_proto::load::first_epochs;
use shef_proto::mailbox::{Answer, Request, load_requests};
use shef_verify::{Outcome, Verified};

fn evidence_json(bytes: &[u8], nonce: &[u8]) -> Value {
    let parsed = Evidence::parse(bytes).unwrap();
    let claims: serde_json::Map<String, Value> =
        parsed.describe().into_iter().map(|(name, text)| (name.into(), text.into())).collect();
    json!({
        "nonce": hex::encode(nonce),
        "audience": AUDIENCE,
        "bytes": hex::encode(bytes),
        "digest": hex::encode(parsed.digest()),
        "claims": claims,
    })
}

fn make() -> Value {
    let mut world = World::new();
    // The device's random bytes, drawn again.
    let mut device_entropy = entropy(99);
    let mut draw = || {
        let mut bytes = [0; 32];
        device_entropy.fill(&mut bytes);
        bytes
    };
    let (kem_ikm, seed_salt) = (draw(), draw());

    let nonce = world.nonce();
    let kernel_evidence = world.evidence(Layer::Kernel, &nonce).unwrap();
    let Outcome { verified: Some(Verified::Kernel(kernel)), .. } =
        world.appraise(Layer::Kernel, &kernel_evidence, &nonce)
    else {
        panic!()
    };
    let secret = world.vendor.secret(3);
    let key_box = kernel
        .release_image_key("vendor", "image", 1, [9; 16], &secret, &mut entropy(3))
        .unwrap()
        .to_cbor();
    let mut kernel_json = evidence_json(&kernel_evidence, &nonce);
    kernel_json["kem_ikm"] = hex::encode(kem_ikm).into();

    world.load(&key_box).unwrap();
    let nonce = world.nonce();
    let shield_evidence = world.evidence(Layer::Shield, &nonce).unwrap();
    let Outcome { verified: Some(Verified::Shield(shield)), .. } =
        world.appraise(Layer::Shield, &shield_evidence, &nonce)
    else {
        panic!()
    };
    let mut shield_json = evidence_json(&shield_evidence, &nonce);
    shield_json["seed_salt"] = hex::encode(seed_salt).into();
    shield_json["seed"] = hex::encode(world.shield().seeds_taken[0]).into();

    let (message, keys) = shield
        .seal_load_key(&config(), "owner", &first_epochs(&config(), 1), &mut entropy(5))
        .unwrap();
    world.shield().take_load_key(&message).unwrap();
    world.shield().close(&[0x77; 88]);
    let Answer::CloseRecord(record) = world.call(&Request::CloseRecord).unwrap() else { panic!() };
    let Answer::Certificates(certificates) = world.call(&Request::Certificates).unwrap() else {
        panic!()
    };

    // Evidence that a verifier must refuse, with the first failed check.
    let mut refused = Vec::new();
    let mut refuse = |why: &str, layer: Layer, bytes: Vec<u8>, nonce: &[u8]| {
        let appraisal = world.appraise(layer, &bytes, nonce).appraisal;
        let failure = appraisal.first_failure().unwrap();
        refused.push(
            json!({ "why": why, "layer": layer.name(), "nonce": hex::encode(nonce), "evidence": hex::encode(bytes), "code": failure.code }),
        );
    };
    refuse(
        "kernel evidence where Shield evidence is due",
        Layer::Shield,
        kernel_evidence.clone(),
        &[1; 48],
    );
    refuse("evidence of another challenge", Layer::Shield, shield_evidence.clone(), &[9; 48]);
    let mut swapped = shield_evidence.clone();
    let (x, other) = (&shield.shield_key().xy()[..32].to_vec(), [0x11; 32]);
    let at = swapped.windows(32).position(|window| window == x).unwrap();
    swapped[at..at + 32].copy_from_slice(&other);
    refuse("the x coordinate of the Shield key overwritten", Layer::Shield, swapped, &nonce);
    let mut digest = shield_evidence.clone();
    let image_digest = world.vendor.image_digest();
    let at = digest.windows(32).position(|window| window == image_digest).unwrap();
    digest[at] ^= 1;
    refuse("a bit of the image digest flipped", Layer::Shield, digest, &nonce);
    let mut signature = shield_evidence.clone();
    *signature.last_mut().unwrap() ^= 1;
    refuse("a bit of the signature flipped", Layer::Shield, signature, &nonce);
    refuse(
        "cut by a byte",
        Layer::Shield,
        shield_evidence[..shield_evidence.len() - 1].to_vec(),
        &nonce,
    );
    refuse("a byte too long", Layer::Shield, [&shield_evidence[..], &[0]].concat(), &nonce);

    let kind = RootOfTrust::ShefBoot;
    json!({
        "device": {
            "root_of_trust": kind.name(),
            "uds": hex::encode(UDS),
            "device_id_public_key": hex::encode(device_id_key(&UDS, kind, false).public_key().as_bytes()),
            "kernel_image": hex::encode(kernel_image(2)),
            "kernel_digest": hex::encode(KernelImage::digest(&kernel_image(2))),
            "root_certificate": hex::encode(world.manufacturer.root.der()),
            "device_id_certificate": hex::encode(&certificates[1]),
            "ak_certificate": hex::encode(&certificates[0]),
            "now": NOW,
        },
        "kernel_evidence": kernel_json,
        "image": {
            "vendor_public_key": hex::encode(world.vendor.key.public_key().as_bytes()),
            "image_key": hex::encode(world.vendor.image_key),
            "plaintext_byte": hex::encode(&PLAINTEXT[..1]),
            "plaintext_len": PLAINTEXT.len(),
            "container": hex::encode(world.vendor.container.to_bytes()),
            "image_digest": hex::encode(image_digest),
        },
        "key_box": {
            "tenant": "vendor", "key_id": "image", "key_version": 1, "receipt_id": hex::encode([9; 16]), "min_svn": 3,
            "plaintext": hex::encode(&secret.to_bytes()[..]),
            "bytes": hex::encode(&key_box),
        },
        "mailbox": {
            "load_begin": hex::encode(load_requests(&world.vendor.container, &key_box)[0].encode()),
            "certificates": hex::encode(Request::Certificates.encode()),
            "certificates_answer": hex::encode(Answer::Certificates(certificates.clone()).encode()),
        },
        "shield_evidence": shield_json,
        "close_record": { "bytes": hex::encode(record), "transcript": hex::encode(keys.transcript().0), "last": hex::encode([0x77; 88]) },
        "refused": refused,
    })
}

#[test]
fn the_file_is_what_the_code_makes() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/attestation.json");
    let made = format!("{}\n", serde_json::to_string_pretty(&make()).unwrap());
    if std::env::var_os("SHEF_WRITE_VECTORS").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap();
    assert!(
        found == made,
        "{path} differs; SHEF_WRITE_VECTORS=1 cargo test -p shef-kernel --test vectors writes it"
    );
}
