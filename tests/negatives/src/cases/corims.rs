//! Reference values as CoRIM: signers, validity and authority.

use std::collections::BTreeSet;

use corim::builder::{ComidBuilder, CorimBuilder};
use corim::types::common::{MeasuredElement, TagIdChoice};
use corim::types::corim::CorimId;
use corim::types::environment::{ClassMap, EnvironmentMap};
use corim::types::measurement::{
    Digest as CorimDigest, MeasurementMap, MeasurementValuesMap, SvnChoice,
};
use corim::types::triples::ReferenceTriple;
use shef_proto::cbor::{self, Limits, Value};
use shef_proto::cose::SigningKey;
use shef_proto::evidence::Layer;
use shef_verify::corim::{
    Corim, CorimError, CorimSigner, Describe, Trust, admit, merge, read, sign, write,
};
use shef_verify::{ReferenceValues, Revocations, crypto};

use super::Run;
use crate::device::Device;
use crate::{ACCEPTED, Seen};
use shef_fixtures::der::other_s;
use shef_fixtures::world::{NOW, sha256};

pub(super) const CASES: &[(u32, Run)] = &[
    (94, one_key_twice),
    (96, no_common_algorithm),
    (97, two_values),
    (100, authority),
    (118, of_others),
];

const ISSUER: &str = "builder of kernels";

fn builder() -> SigningKey {
    SigningKey::derive(b"signs reference values of kernels and shells")
}

/// A verifier that knows the builder of kernels and shells, and one IP vendor.
struct Known {
    signers: Vec<CorimSigner>,
    deactivated: BTreeSet<String>,
    revocations: Revocations,
}

impl Known {
    fn new() -> Self {
        let vendor = SigningKey::derive(b"an IP vendor").public_key();
        let signers = vec![
            CorimSigner::with_key(ISSUER, builder().public_key()).for_kernels().for_shells(),
            CorimSigner::vendor("vendor", vendor),
        ];
        Self { signers, deactivated: BTreeSet::new(), revocations: Revocations::default() }
    }

    fn read(&self, bytes: &[u8]) -> Result<Corim, CorimError> {
        self.read_at(bytes, NOW)
    }

    fn read_at(&self, bytes: &[u8], now: i64) -> Result<Corim, CorimError> {
        let revocations = Some(&self.revocations);
        read(
            bytes,
            &Trust {
                signers: &self.signers,
                deactivated: &self.deactivated,
                revocations,
                now,
                verify: crypto::portable,
            },
        )
    }

    fn ask(&self, variant: &str, bytes: &[u8]) -> Seen {
        Seen::of(variant, &self.read(bytes), |error| error.code())
    }
}

/// Kernels and shells of the device.
fn reference(device: &Device) -> ReferenceValues {
    ReferenceValues { images: Vec::new(), ..device.verifier.reference.clone() }
}

fn describe(version: u64) -> Describe<'static> {
    Describe { id: "kernels", version, issuer: ISSUER, not_after: Some(NOW + 100) }
}

fn signed(reference: &ReferenceValues, version: u64) -> Vec<u8> {
    sign(write(reference, &describe(version)).unwrap(), ISSUER, &builder(), None).unwrap()
}

/// A CoRIM about the device's kernel, built with the types of crate `corim` only and signed by the
/// builder.
fn of_kernel(digests: Vec<CorimDigest>, copies: usize) -> Vec<u8> {
    let class = ClassMap {
        class_id: None,
        vendor: Some("shef".into()),
        model: Some("security-kernel".into()),
        layer: Some(1),
        index: None,
    };
    let mut mval = MeasurementValuesMap::default();
    mval.svn = Some(SvnChoice::ExactValue(2));
    mval.digests = Some(digests);
    let one = MeasurementMap {
        mkey: Some(MeasuredElement::Text("kernel".into())),
        mval,
        authorized_by: None,
    };
    let triple = ReferenceTriple::new(
        EnvironmentMap { class: Some(class), instance: None, group: None },
        vec![one; copies],
    );
    let comid = ComidBuilder::new(TagIdChoice::Text("kernels".into()))
        .add_reference_triple(triple)
        .build()
        .unwrap();
    let corim = CorimBuilder::new(CorimId::Text("kernels".into())).add_comid_tag(comid).unwrap();
    sign(corim.build_bytes().unwrap(), ISSUER, &builder(), None).unwrap()
}

fn digest(algorithm: i64, byte: u8, len: usize) -> CorimDigest {
    CorimDigest::new(algorithm, vec![byte; len])
}

fn one_key_twice() -> Vec<Seen> {
    let known = Known::new();
    assert!(known.read(&of_kernel(vec![digest(1, 7, 32)], 1)).is_ok());
    let device = Device::new(Layer::Shield);
    // In evidence every measurement is a separate claim: a repetition is a second claim.
    let mut twice = device.entries();
    let kernel = twice.iter().find(|(key, _)| *key == Value::int(-75_002)).unwrap().clone();
    twice.push((kernel.0, (&[0; 32]).into()));
    vec![
        device.ask("evidence", &device.signed(&Value::Map(twice).encode())),
        known.ask("reference values", &of_kernel(vec![digest(1, 7, 32)], 2)),
    ]
}

fn no_common_algorithm() -> Vec<Seen> {
    let known = Known::new();
    vec![
        known.ask("SHA-384", &of_kernel(vec![digest(7, 7, 48)], 1)),
        known.ask("SHA-512", &of_kernel(vec![digest(8, 7, 64)], 1)),
        known.ask("SHA-256 of 48 bytes", &of_kernel(vec![digest(1, 7, 48)], 1)),
        known.ask("no digest", &of_kernel(vec![], 1)),
    ]
}

fn two_values() -> Vec<Seen> {
    let known = Known::new();
    vec![
        known.ask("two values", &of_kernel(vec![digest(1, 7, 32), digest(1, 8, 32)], 1)),
        known.ask("one value twice", &of_kernel(vec![digest(1, 7, 32), digest(1, 7, 32)], 1)),
    ]
}

/// A CoRIM with `n - s` for s.
pub(super) fn corim_with_other_s(variant: &str) -> Seen {
    let good = of_kernel(vec![digest(1, 7, 32)], 1);
    Known::new().ask(variant, &other_s(&good))
}

/// The signed message with one part replaced, by position: protected, unprotected, payload,
/// signature.
fn with_part(bytes: &[u8], at: usize, value: Value) -> Vec<u8> {
    let Value::Tag(18, inner) = cbor::parse(bytes, &Limits::bytes(1 << 20)).unwrap() else {
        unreachable!()
    };
    let Value::Array(mut parts) = *inner else { unreachable!() };
    parts[at] = value;
    Value::Tag(18, Box::new(Value::Array(parts))).encode()
}

fn authority() -> Vec<Seen> {
    let mut device = Device::new(Layer::Shield);
    let reference = reference(&device);
    let known = Known::new();
    let good = signed(&reference, 1);
    let unsigned = write(&reference, &describe(1)).unwrap();
    assert_eq!(known.read(&good).unwrap().reference, reference);

    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let stranger = SigningKey::derive(b"a stranger");
    let vendor = SigningKey::derive(b"an IP vendor");
    let by = |reference: &ReferenceValues, key: &SigningKey| {
        sign(write(reference, &describe(1)).unwrap(), ISSUER, key, None).unwrap()
    };
    let content = Value::Map(vec![
        (Value::int(1), Value::int(-9)),
        (Value::int(3), "application/json".into()),
        (Value::int(15), Value::Map(vec![(Value::int(1), ISSUER.into())])),
    ]);
    let images = ReferenceValues {
        images: device.verifier.reference.images.clone(),
        ..ReferenceValues::default()
    };

    let mut seen = vec![
        known.ask("unsigned", &unsigned),
        known.ask("signature changed", &flipped),
        known.ask(
            "payload of another",
            &with_part(
                &good,
                2,
                write(&ReferenceValues { shells: vec![], ..reference.clone() }, &describe(1))
                    .unwrap()
                    .as_slice()
                    .into(),
            ),
        ),
        known.ask("signed by a stranger", &by(&reference, &stranger)),
        known.ask("another content type", &with_part(&good, 0, content.encode().as_slice().into())),
        Seen::of("expired", &known.read_at(&good, NOW + 101), |error| error.code()),
        known.ask("kernels by an IP vendor", &by(&reference, &vendor)),
        known.ask("images of another vendor", &by(&images, &vendor)),
    ];
    let mut withdrawn = Known::new();
    withdrawn.deactivated.insert(hex::encode(sha256(&good)));
    seen.push(withdrawn.ask("withdrawn", &good));
    let mut revoked = Known::new();
    revoked.revocations.authorities.insert(hex::encode(sha256(builder().public_key().as_bytes())));
    seen.push(revoked.ask("signer revoked", &good));

    // Two with the same id: the newer one counts; of two equally new ones with different content,
    // neither counts.
    let mut newer = reference.clone();
    newer.kernels[0].digest = [0xee; 32];
    let (first, second) = (known.read(&good).unwrap(), known.read(&signed(&newer, 2)).unwrap());
    let again = known.read(&signed(&newer, 1)).unwrap();
    assert!(
        merge(&[first.clone(), again.clone()]).is_err(),
        "nobody can say which of two is meant"
    );
    let admitted = |what: &str, corim: &Corim, known: &Corim| {
        Seen::of(what, &admit(corim, std::slice::from_ref(known)), |error| error.code())
    };
    seen.push(admitted("same id and version, other content", &again, &first));
    seen.push(admitted("older than one that is known", &first, &second));
    let images = device.verifier.reference.images.clone();
    for order in [[&first, &second], [&second, &first]] {
        let merged = merge(&order.map(Clone::clone)).unwrap();
        device.verifier.reference = ReferenceValues { images: images.clone(), ..merged };
        seen.push(device.ask("an older one beside a newer", &device.evidence));
    }
    seen
}

/// Written by the builder of crate `corim`, with an environment of another manufacturer beside
/// ours.
fn of_others() -> Vec<Seen> {
    let known = Known::new();
    let device = Device::new(Layer::Shield);
    let bytes = of_kernel(vec![digest(1, 7, 32)], 1);
    let corim = known.read(&bytes).unwrap();
    assert_eq!((corim.reference.kernels[0].digest, corim.reference.kernels[0].svn), ([7; 32], 2));
    let decoded =
        corim::types::signed::decode_signed_corim(&signed(&reference(&device), 3)).unwrap();
    let (_, comids) =
        corim::validate::decode_and_validate_at(decoded.payload.as_deref().unwrap(), NOW).unwrap();
    let read = comids
        .iter()
        .all(|comid| comid.triples.reference_triples.as_ref().is_some_and(|list| !list.is_empty()));
    vec![
        known.ask("theirs by us", &bytes),
        Seen::new("ours by them", if read { ACCEPTED } else { "not read" }),
    ]
}
