//! Evidence that a verifier service vouches for by its receipt.

use sha2::{Digest as _, Sha256};
use shef_fixtures::case::{Case, NONCE, key};
use shef_proto::cose::SigningKey;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::PublicKey;
use shef_proto::receipt::Receipt;
use shef_verify::{Verified, Vouched};

fn receipt(layer: Layer, evidence: &[u8], ueid: [u8; 33], recipient: &PublicKey) -> Receipt {
    Receipt {
        tenant: "default".into(),
        seq: 1,
        previous: [0; 32],
        id: [7; 16],
        time: 0,
        key_id: "data".into(),
        key_version: 1,
        layer,
        ueid,
        evidence_digest: Sha256::digest(evidence).into(),
        policy_digest: [8; 32],
        recipient_digest: Sha256::digest(recipient.as_bytes()).into(),
        to_host: false,
        events: None,
    }
}

#[test]
fn a_receipt_vouches_for_exactly_what_it_names() {
    let case = Case::new(Layer::Shield);
    let (evidence, ueid, service, owner) =
        (case.evidence(), case.claims.common.ueid, key("service"), key("owner").public_key());
    let keys = [key("retired").public_key(), service.public_key()];
    let good = receipt(Layer::Shield, &evidence, ueid, &owner);
    let vouched = Vouched {
        keys: &keys,
        layer: Layer::Shield,
        nonce: &NONCE,
        key_id: "data",
        recipient: Some(&owner),
    };
    let (Verified::Shield(verified), read) =
        vouched.verified(&evidence, &good.sign(&service)).unwrap()
    else {
        panic!("another layer")
    };
    assert_eq!(
        (verified.digest(), verified.attestation_key(), &read),
        (&good.evidence_digest, &key("ak").public_key(), &good)
    );

    let code = |vouched: &Vouched<'_>, evidence: &[u8], receipt: &Receipt, by: &SigningKey| {
        vouched.verified(evidence, &receipt.sign(by)).unwrap_err().code()
    };
    // Signed by another key, or changed after signing.
    assert_eq!(code(&vouched, &evidence, &good, &key("stranger")), "SHEF-PRO-090");
    let mut changed = good.sign(&service);
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(vouched.verified(&evidence, &changed).unwrap_err().code(), "SHEF-PRO-090");
    // Evidence of something else.
    let mut other_case = Case::new(Layer::Shield);
    other_case.shield().image_digest = [9; 32];
    let stranger = key("stranger").public_key();
    for (receipt, evidence) in [
        (Receipt { key_id: "other".into(), ..good.clone() }, &evidence),
        (Receipt { layer: Layer::Kernel, ..good.clone() }, &evidence),
        (Receipt { ueid: [1; 33], ..good.clone() }, &evidence),
        (
            Receipt {
                recipient_digest: Sha256::digest(stranger.as_bytes()).into(),
                ..good.clone()
            },
            &evidence,
        ),
        (good.clone(), &other_case.evidence()),
    ] {
        assert_eq!(code(&vouched, evidence, &receipt, &service), "SHEF-ATT-062", "{receipt:?}");
    }
    for other in [
        Vouched { nonce: &[9; 48], ..vouched },
        Vouched { key_id: "image", ..vouched },
        Vouched { layer: Layer::Kernel, ..vouched },
        Vouched { recipient: None, ..vouched },
    ] {
        assert_eq!(code(&other, &evidence, &good, &service), "SHEF-ATT-062", "{other:?}");
    }
    // Evidence that the accompanying key did not sign.
    let forged = Case { signer: "stranger", ..Case::new(Layer::Shield) }.evidence();
    assert!(
        vouched
            .verified(&forged, &receipt(Layer::Shield, &forged, ueid, &owner).sign(&service))
            .is_err()
    );
}

#[test]
fn an_image_key_goes_to_the_key_in_the_evidence() {
    let case = Case::new(Layer::Kernel);
    let (evidence, service) = (case.evidence(), key("service"));
    let vouched = Vouched {
        keys: &[service.public_key()],
        layer: Layer::Kernel,
        nonce: &NONCE,
        key_id: "data",
        recipient: None,
    };
    let good = receipt(Layer::Kernel, &evidence, case.claims.common.ueid, &case.claims.common.key);
    assert!(matches!(
        vouched.verified(&evidence, &good.sign(&service)),
        Ok((Verified::Kernel(_), _))
    ));
    let other =
        receipt(Layer::Kernel, &evidence, case.claims.common.ueid, &key("owner").public_key());
    assert_eq!(
        vouched.verified(&evidence, &other.sign(&service)).unwrap_err().code(),
        "SHEF-ATT-062"
    );
}
