//! Released keys in transit: boxes modified, swapped, and opened by the wrong recipient.

use shef_proto::cbor::{self, Limits, Value};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::{PrivateKey, PublicKey, Receiver, Sender, derive_key_pair};
use shef_proto::release::{Expected, KeyBox, MAX_BOX, ReleaseError, ReleaseInfo};
use zeroize::Zeroizing;

use super::Run;
use crate::Seen;
use shef_fixtures::world::entropy;

pub(super) const CASES: &[(u32, Run)] =
    &[(57, other_info), (58, flips), (59, sequence), (60, substitution)];

const DIGEST: [u8; 32] = [0xe1; 32];
const NONCE: [u8; 48] = [0x42; 48];

/// A data key on its way to its owner.
pub struct Released {
    key: PrivateKey,
    pub bytes: Vec<u8>,
}

impl Released {
    pub fn new() -> Self {
        Self::of("tenant", "key-a", DIGEST)
    }

    fn of(tenant: &str, key_id: &str, evidence_digest: [u8; 32]) -> Self {
        let (key, recipient) = derive_key_pair(b"one-time key of the owner");
        let info = info(tenant, key_id, evidence_digest, recipient);
        let bytes = KeyBox::seal(&info, b"a data key", &mut entropy(5)).unwrap().to_cbor();
        let made = Self { key, bytes };
        if (tenant, key_id, evidence_digest) == ("tenant", "key-a", DIGEST) {
            assert!(made.open(&KeyBox::from_cbor(&made.bytes).unwrap()).is_ok());
        }
        made
    }

    /// The box with one field replaced.
    pub fn with_field(&self, field: i64, value: Value) -> Vec<u8> {
        let Value::Map(mut entries) = cbor::parse(&self.bytes, &Limits::bytes(MAX_BOX)).unwrap()
        else {
            unreachable!()
        };
        entries.iter_mut().find(|(key, _)| *key == Value::int(field)).unwrap().1 = value;
        Value::Map(entries).encode()
    }

    fn field(&self, field: i64) -> Vec<u8> {
        let Value::Map(entries) = cbor::parse(&self.bytes, &Limits::bytes(MAX_BOX)).unwrap() else {
            unreachable!()
        };
        let Some((_, Value::Bytes(bytes))) =
            entries.into_iter().find(|(key, _)| *key == Value::int(field))
        else {
            unreachable!()
        };
        bytes
    }

    /// Opens it as the owner who requested `key-a` of `tenant`.
    pub fn open(&self, released: &KeyBox) -> Result<Zeroizing<Vec<u8>>, ReleaseError> {
        let expected = Expected {
            layer: Layer::Shield,
            evidence_digest: &DIGEST,
            nonce: &NONCE,
            key: Some(("tenant", "key-a")),
        };
        released.open(&self.key, &expected)
    }

    fn ask(&self, variant: impl Into<String>, bytes: &[u8]) -> Seen {
        let result = KeyBox::from_cbor(bytes).and_then(|released| self.open(&released));
        Seen::of(variant, &result, |error| error.code())
    }
}

fn info(
    tenant: &str,
    key_id: &str,
    evidence_digest: [u8; 32],
    recipient: PublicKey,
) -> ReleaseInfo {
    ReleaseInfo {
        tenant: tenant.into(),
        key_id: key_id.into(),
        key_version: 1,
        layer: Layer::Shield,
        evidence_digest,
        nonce: NONCE.to_vec(),
        recipient,
        receipt_id: [9; 16],
    }
}

/// Encapsulated key and ciphertext of a box for something else, under the expected `info`; and the
/// reverse.
fn other_info() -> Vec<Seen> {
    let good = Released::new();
    let recipient = good.key.public_key();
    let under = |variant: &str, other: &Released| {
        let bytes = Released {
            key: derive_key_pair(b"").0,
            bytes: good.with_field(3, other.field(3).as_slice().into()),
        };
        good.ask(variant, &bytes.with_field(4, other.field(4).as_slice().into()))
    };
    let mut version = info("tenant", "key-a", DIGEST, recipient);
    version.key_version = 2;
    let mut receipt = info("tenant", "key-a", DIGEST, recipient);
    receipt.receipt_id = [8; 16];
    let digest = info("tenant", "key-a", [0xe2; 32], recipient);
    vec![
        under("key id", &Released::of("tenant", "key-b", DIGEST)),
        under("tenant", &Released::of("another", "key-a", DIGEST)),
        under("ciphertext for other evidence", &Released::of("tenant", "key-a", [0xe2; 32])),
        good.ask("key version", &good.with_field(2, version.to_cbor().as_slice().into())),
        good.ask("receipt", &good.with_field(2, receipt.to_cbor().as_slice().into())),
        good.ask("evidence digest", &good.with_field(2, digest.to_cbor().as_slice().into())),
    ]
}

fn flips() -> Vec<Seen> {
    let good = Released::new();
    let mut seen = Vec::new();
    let ciphertext = good.field(4);
    for at in 0..ciphertext.len() {
        for bit in [0x01, 0x80] {
            let mut changed = ciphertext.clone();
            changed[at] ^= bit;
            let part = if at < ciphertext.len() - 16 { "ciphertext" } else { "tag" };
            seen.push(
                good.ask(
                    format!("{part}, byte {at}"),
                    &good.with_field(4, changed.as_slice().into()),
                ),
            );
        }
    }
    let enc = good.field(3);
    for at in 0..enc.len() {
        let mut changed = enc.clone();
        changed[at] ^= 1;
        seen.push(good.ask("encapsulated key", &good.with_field(3, changed.as_slice().into())));
    }
    // Another point of the curve is a valid key, but the wrong one.
    let (_, other) = derive_key_pair(b"somebody");
    seen.push(
        good.ask(
            "another encapsulated key",
            &good.with_field(3, other.as_bytes().as_slice().into()),
        ),
    );
    seen
}

fn sequence() -> Vec<Seen> {
    let (key, public) = derive_key_pair(b"receiver");
    let (enc, mut sender) = <Sender>::setup(&public, b"info", &mut entropy(6)).unwrap();
    let messages: Vec<Vec<u8>> = (0..3u8).map(|n| sender.seal(b"aad", &[n]).unwrap()).collect();
    // The messages opened first, and the message then tried.
    let with = |variant: &str, before: &[usize], then: usize| {
        let mut receiver = <Receiver>::setup(&key, &enc, b"info").unwrap();
        for at in before {
            assert!(receiver.open(b"aad", &messages[*at]).is_ok());
        }
        Seen::of(variant, &receiver.open(b"aad", &messages[then]), |error| error.code())
    };
    vec![
        with("repeated", &[0], 0),
        with("repeated later", &[0, 1, 2], 1),
        with("left out", &[], 1),
        with("two left out", &[], 2),
        with("another order", &[0], 2),
    ]
}

fn substitution() -> Vec<Seen> {
    let asked = Released::new();
    let other = Released::of("tenant", "key-b", DIGEST);
    let rewritten = info("tenant", "key-a", DIGEST, asked.key.public_key()).to_cbor();
    vec![
        asked.ask("as it is", &other.bytes),
        asked.ask("of another tenant", &Released::of("another", "key-a", DIGEST).bytes),
        asked.ask("with info rewritten", &other.with_field(2, rewritten.as_slice().into())),
    ]
}
