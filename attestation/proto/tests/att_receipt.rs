//! An edited, missing, reordered or truncated receipt is detected.

use shef_proto::cose::{self, SigningKey};
use shef_proto::entropy::SeededEntropy;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::PublicKey;
use shef_proto::receipt::{Audit, FORM, Head, Receipt, digest, genesis};

fn key(seed: u64) -> SigningKey {
    SigningKey::generate(&mut SeededEntropy::new(seed, "receipt"))
}

fn chain(key: &SigningKey, tenant: &str, len: u64) -> (Vec<Vec<u8>>, Head) {
    let mut head = Head { seq: 0, digest: genesis(tenant) };
    let mut list = Vec::new();
    for seq in 1..=len {
        let receipt = Receipt {
            tenant: tenant.into(),
            seq,
            previous: head.digest,
            id: [seq as u8; 16],
            time: 1_795_000_000 + seq as i64,
            key_id: "image".into(),
            key_version: 1,
            layer: Layer::Kernel,
            ueid: [1; 33],
            evidence_digest: [2; 32],
            policy_digest: [3; 32],
            recipient_digest: [4; 32],
            to_host: seq.is_multiple_of(2),
            events: seq.is_multiple_of(3).then_some(Head { seq, digest: [5; 32] }),
        };
        let bytes = receipt.sign(key);
        assert_eq!(Receipt::verify(&bytes, &[key.public_key()]).unwrap(), receipt);
        head = Head { seq, digest: digest(&bytes) };
        list.push(bytes);
    }
    (list, head)
}

fn audit(list: &[Vec<u8>], keys: &[PublicKey], head: &Head) -> Result<(), &'static str> {
    let mut audit = Audit::new("a", keys, None);
    for bytes in list {
        audit.push(bytes).map_err(|error| error.code())?;
    }
    audit.finish(head).map_err(|error| error.code())
}

#[test]
fn a_chain_holds_and_every_change_shows() {
    let key = key(1);
    let keys = [key.public_key()];
    let (list, head) = chain(&key, "a", 5);
    audit(&list, &keys, &head).unwrap();
    // An edit of any byte.
    for at in 0..list[2].len() {
        let mut changed = list.clone();
        changed[2][at] ^= 1;
        assert_eq!(audit(&changed, &keys, &head), Err("SHEF-PRO-090"), "byte {at}");
    }
    // A gap, a reordering, a duplicate.
    for order in [vec![0, 1, 3, 4], vec![0, 2, 1, 3, 4], vec![0, 1, 1, 2, 3, 4], vec![1, 2, 3, 4]] {
        let changed: Vec<_> = order.iter().map(|at| list[*at].clone()).collect();
        assert_eq!(audit(&changed, &keys, &head), Err("SHEF-PRO-091"), "{order:?}");
    }
    // Truncated: the chain alone does not show it, the head does.
    assert_eq!(audit(&list[..4], &keys, &head), Err("SHEF-PRO-092"));
    assert_eq!(audit(&[], &keys, &head), Err("SHEF-PRO-092"));
    // A chain that the key's holder rewrote does not end at the head either.
    let (mut other, _) = chain(&key, "a", 5);
    other[4] = list[4].clone();
    assert!(audit(&other, &keys, &Head { seq: 5, digest: [0; 32] }).is_err());
}

#[test]
fn other_keys_tenants_and_forms() {
    let signer = key(1);
    let (list, head) = chain(&signer, "a", 1);
    assert_eq!(audit(&list, &[key(2).public_key()], &head), Err("SHEF-PRO-090"));
    audit(&list, &[key(2).public_key(), signer.public_key()], &head).unwrap();
    let (foreign, head) = chain(&signer, "b", 1);
    assert_eq!(audit(&foreign, &[signer.public_key()], &head), Err("SHEF-PRO-090"));
    // The same bytes signed for another purpose are not a receipt.
    let payload = shef_proto::cose::Sign1::parse(&FORM, &list[0]).unwrap().payload().to_vec();
    let form = cose::Form { domain: b"", ..FORM };
    assert!(
        Receipt::verify(&cose::sign(&form, &signer, &payload, &[]), &[signer.public_key()])
            .is_err()
    );
}

#[test]
fn a_chain_goes_on_behind_a_known_head() {
    let signer = key(1);
    let keys = [signer.public_key()];
    let (list, head) = chain(&signer, "a", 4);
    let mut audit = Audit::new("a", &keys, Some(Head { seq: 2, digest: digest(&list[1]) }));
    audit.push(&list[2]).unwrap();
    audit.push(&list[3]).unwrap();
    audit.finish(&head).unwrap();
    let mut audit = Audit::new("a", &keys, Some(Head { seq: 2, digest: [0; 32] }));
    assert_eq!(audit.push(&list[2]).unwrap_err().code(), "SHEF-PRO-091");
}
