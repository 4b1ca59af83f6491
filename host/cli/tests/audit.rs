//! `shef audit verify` accepts chains that hold and rejects chains that do not.

use std::path::Path;
use std::process::{Command, Output};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use shef_proto::cose::SigningKey;
use shef_proto::evidence::Layer;
use shef_proto::receipt::{Forgotten, Head, Receipt, digest, genesis};

/// Five receipts of one tenant.
fn chain(key: &SigningKey) -> Vec<Vec<u8>> {
    let mut previous = genesis("acme");
    let receipt = |seq| {
        let receipt = Receipt {
            tenant: "acme".into(),
            seq,
            previous,
            id: [seq as u8; 16],
            time: 1_800_000_000,
            key_id: "digits".into(),
            key_version: 1,
            layer: Layer::Shield,
            ueid: [1; 33],
            evidence_digest: [2; 32],
            policy_digest: [3; 32],
            recipient_digest: [4; 32],
            to_host: false,
            events: None,
        };
        let signed = receipt.sign(key);
        previous = digest(&signed);
        signed
    };
    (1..=5).map(receipt).collect()
}

fn audit(
    dir: &Path,
    key: &SigningKey,
    tenant: &str,
    receipts: &[Vec<u8>],
    more: &[&str],
) -> Output {
    let kept = serde_json::json!({"seq": 0, "digest": hex::encode([0; 32])});
    audit_kept(dir, key, tenant, receipts, &kept, more)
}

fn audit_kept(
    dir: &Path,
    key: &SigningKey,
    tenant: &str,
    receipts: &[Vec<u8>],
    kept: &serde_json::Value,
    more: &[&str],
) -> Output {
    let xy = key.public_key().xy();
    let jwk = serde_json::json!({"kty": "EC", "crv": "P-256", "x": B64.encode(&xy[..32]), "y": B64.encode(&xy[32..])});
    std::fs::write(dir.join("jwks.json"), serde_json::json!({ "keys": [jwk] }).to_string())
        .unwrap();
    let row = |(seq, receipt): (u64, &Vec<u8>)| serde_json::json!({"seq": seq, "time": 0, "key": "key", "receipt": B64.encode(receipt)});
    let rows: Vec<_> = (1..).zip(receipts).map(row).collect();
    let head = serde_json::json!({"seq": rows.len(), "digest": hex::encode([0; 32])});
    // Two pages, as a service splits a long chain.
    let (first, second) = rows.split_at(rows.len() / 2);
    let mut command = Command::new(env!("CARGO_BIN_EXE_shef"));
    command.args(["audit", "verify", "--jwks"]).arg(dir.join("jwks.json")).args(more);
    for (name, rows) in [("first.json", first), ("second.json", second)] {
        std::fs::write(
            dir.join(name),
            serde_json::json!({"tenant": tenant, "receipts": rows, "head": head, "kept": kept, "next": null})
                .to_string(),
        )
        .unwrap();
        command.arg(dir.join(name));
    }
    command.output().unwrap()
}

#[test]
fn a_chain_holds_and_every_change_of_it_shows() {
    let dir = tempfile::tempdir().unwrap();
    let key = SigningKey::generate(&mut shef::SystemEntropy::new().unwrap());
    let other = SigningKey::generate(&mut shef::SystemEntropy::new().unwrap());
    let good = chain(&key);
    let head = |i: usize| format!("{}:{}", i + 1, hex::encode(digest(&good[i])));

    let holds = |receipts: &[Vec<u8>], more: &[&str]| {
        let out = audit(dir.path(), &key, "acme", receipts, more);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        assert!(
            String::from_utf8_lossy(&out.stdout)
                .contains(&format!("{} receipts of tenant acme", receipts.len()))
        );
    };
    holds(&good, &["--head", &head(4)]);
    holds(&good, &["--head", &head(2)]);
    holds(&good, &[]);
    holds(&good[2..], &["--after", &head(1), "--head", &head(4)]);

    let breaks =
        |key: &SigningKey, tenant: &str, receipts: &[Vec<u8>], more: &[&str], code: &str| {
            let out = audit(dir.path(), key, tenant, receipts, more);
            let text = String::from_utf8_lossy(&out.stderr).into_owned();
            assert_eq!(out.status.code(), Some(1), "{text}");
            assert!(text.contains(code), "expected {code}: {text}");
        };
    let mut edited = good.clone();
    edited[1][60] ^= 1;
    breaks(&key, "acme", &edited, &[], "SHEF-PRO-090");
    breaks(&other, "acme", &good, &[], "SHEF-PRO-090");
    let mut gap = good.clone();
    gap.remove(2);
    breaks(&key, "acme", &gap, &[], "SHEF-PRO-091");
    let mut reordered = good.clone();
    reordered.swap(1, 2);
    breaks(&key, "acme", &reordered, &[], "SHEF-PRO-091");
    breaks(&key, "acme", &good[1..], &[], "SHEF-PRO-091");
    breaks(&key, "acme", &good[..4], &["--head", &head(4)], "SHEF-PRO-092");
    breaks(&key, "acme", &good, &["--head", &head(4).replace("5:", "4:")], "SHEF-PRO-092");
    breaks(&key, "else", &good, &[], "SHEF-PRO-09");
}

/// A chain may begin late if, and only if, the service has signed that it deleted the earlier
/// receipts.
#[test]
fn receipts_that_were_forgotten_need_the_services_signature() {
    let dir = tempfile::tempdir().unwrap();
    let key = SigningKey::generate(&mut shef::SystemEntropy::new().unwrap());
    let other = SigningKey::generate(&mut shef::SystemEntropy::new().unwrap());
    let good = chain(&key);
    let head = Head { seq: 2, digest: digest(&good[1]) };
    let kept = |by: &SigningKey, tenant: &str, seq: u64| {
        let statement =
            Forgotten { tenant: tenant.into(), head: Head { seq, ..head }, time: 1_800_000_000 }
                .sign(by);
        serde_json::json!({"seq": 2, "digest": hex::encode(head.digest), "statement": B64.encode(statement)})
    };
    let ask = |kept: &serde_json::Value, more: &[&str]| {
        let out = audit_kept(dir.path(), &key, "acme", &good[2..], kept, more);
        (out.status.code(), String::from_utf8_lossy(&out.stderr).into_owned())
    };
    assert_eq!(ask(&kept(&key, "acme", 2), &[]).0, Some(0));
    let unsigned = serde_json::json!({"seq": 2, "digest": hex::encode(head.digest)});
    for bad in
        [kept(&other, "acme", 2), kept(&key, "else", 2), kept(&key, "acme", 3), unsigned.clone()]
    {
        let (status, text) = ask(&bad, &[]);
        assert!(status == Some(1) && text.contains("SHEF-PRO-093"), "{bad}: {text}");
    }
    // A caller that knows the head from another source may pass it.
    assert_eq!(ask(&unsigned, &["--after", &format!("2:{}", hex::encode(head.digest))]).0, Some(0));
}
