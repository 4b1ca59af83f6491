//! CMW, CoRIM and bundles survive a round trip, and malformed ones are refused.

use std::collections::BTreeSet;

use proptest::prelude::*;
use shef_fixtures::case::{AUDIENCE, Case, NONCE, NOW, key};
use shef_proto::cbor::Value;
use shef_proto::cert::{self, Certificate};
use shef_proto::evidence::{Layer, RootOfTrust};
use shef_verify::bundle::{Bundle, BundleError, BundledEvidence};
use shef_verify::cmw::{self, Cmw, MediaType, Record, Type, indicator};
use shef_verify::corim::{self, Corim, CorimError, CorimSigner, Describe, Trust};
use shef_verify::crypto::portable;
use shef_verify::rego::Unconfined;
use shef_verify::{CheckId, ImageReference, Policy, ReferenceValues, Revocations, TrustAnchor};

// ---- CMW ----

fn record(kind: Type, indicator: Option<u8>) -> Cmw {
    Cmw::Record(Record { kind, value: vec![1, 2, 3], indicator })
}

fn collection(items: Vec<(&str, Cmw)>) -> Cmw {
    Cmw::Collection {
        kind: None,
        items: items.into_iter().map(|(name, item)| (name.into(), item)).collect(),
    }
}

#[test]
fn cmw_examples() {
    // RFC 9999: a CBOR record, its tag form, and a JSON record.
    let eat = record(Type::Format(263), None);
    assert_eq!(eat.to_cbor(), [0x82, 0x19, 0x01, 0x07, 0x43, 1, 2, 3]);
    assert_eq!(
        eat.to_tagged_cbor().unwrap(),
        [0xda, 0x63, 0x74, 0x02, 0x08, 0x43, 1, 2, 3],
        "1668546817 + 263"
    );
    assert_eq!(Cmw::parse(&eat.to_tagged_cbor().unwrap()).unwrap(), eat);
    let json = br#"["application/eat+cwt; eat_profile=\"tag:shef.dev,2026:shield#1\"", "AQID", 4]"#;
    let parsed = Cmw::parse(json).unwrap();
    assert_eq!(parsed.evidence().unwrap(), [1, 2, 3]);
    assert_eq!(Cmw::from_cbor(&parsed.to_cbor()).unwrap(), parsed);
    let both = collection(vec![
        ("a", eat),
        ("result", record(Type::Media("application/eat+jwt".into()), Some(indicator::RESULTS))),
    ]);
    assert_eq!(both.evidence().unwrap(), [1, 2, 3]);
}

#[test]
fn cmw_refuses() {
    let refused = |bytes: &[u8]| Cmw::parse(bytes).unwrap_err().code();
    for (what, bytes) in [
        ("empty", &b""[..]),
        ("indicator 0", br#"["a/b","AQID",0]"#),
        ("unknown indicator", br#"["a/b","AQID",32]"#),
        ("indicator as text", br#"["a/b","AQID","4"]"#),
        ("padded", br#"["a/b","AQI=",4]"#),
        ("standard alphabet", br#"["a/b","+/+/",4]"#),
        ("no media type", br#"["ab","AQID"]"#),
        ("one part", br#"["a/b"]"#),
        ("four parts", br#"["a/b","AQID",4,4]"#),
        ("name twice", br#"{"a":["a/b","AQID"],"a":["a/b","AQID"]}"#),
        ("empty collection", b"{}"),
        ("type only", br#"{"__cmwc_t":"tag:x"}"#),
        ("number", b"7"),
        ("trailing", br#"["a/b","AQID"] 1"#),
        ("content format too large", br#"[65536,"AQID"]"#),
        ("indefinite array", &[0x9f, 0x19, 0x01, 0x07, 0x41, 1, 0xff]),
        ("long form of a number", &[0x82, 0x19, 0x00, 0x07, 0x41, 1]),
        ("another tag", &[0xc1, 0x41, 1]),
        ("text as message", &[0x82, 0x07, 0x61, 0x61]),
    ] {
        let code = refused(bytes);
        assert!(
            code.starts_with("SHEF-PRO-08") || code.starts_with("SHEF-PRO-00"),
            "{what}: {code}"
        );
    }
    let deep = collection(vec![(
        "a",
        collection(vec![("b", collection(vec![("c", record(Type::Format(263), None))]))]),
    )]);
    assert_eq!(refused(&deep.to_cbor()), "SHEF-PRO-081");
    assert_eq!(refused(deep.to_json().as_bytes()), "SHEF-PRO-081");
    assert_eq!(refused(&[b'['; 100_000]), "SHEF-PRO-081");
    // Several pieces of evidence, no evidence, or an indicator that excludes evidence.
    let eat = || record(Type::Format(263), None);
    for cmw in [
        collection(vec![("a", eat()), ("b", eat())]),
        record(Type::Media("application/eat+jwt".into()), None),
        record(Type::Format(263), Some(indicator::RESULTS)),
        Cmw::Record(Record { kind: Type::Format(263), value: vec![0; 10_000], indicator: None }),
    ] {
        assert!(cmw.evidence().is_err(), "{cmw:?}");
    }
}

#[test]
fn media_types() {
    let profile =
        |text: &str| MediaType::parse(text).map(|media| (media.essence, media.eat_profile));
    let eat = "application/eat+cwt".to_owned();
    assert_eq!(profile("application/eat+cwt"), Some((eat.clone(), None)));
    assert_eq!(
        profile("Application/EAT+cwt; eat_profile=\"tag:x;y\" ; q=1"),
        Some((eat.clone(), Some("tag:x;y".into())))
    );
    assert_eq!(profile("application/eat+cwt;eat_profile=1.2.3"), Some((eat, Some("1.2.3".into()))));
    for bad in
        ["", "text", "a/b/c", "a/", "/b", "a/b;x", "a/b;x=\"y", "a/b;x=1;x=2", "a/b; =1", "a /b"]
    {
        assert_eq!(profile(bad), None, "{bad}");
    }
}

fn any_cmw() -> impl Strategy<Value = Cmw> {
    let kind = prop_oneof![
        any::<u16>().prop_map(Type::Format),
        "[a-z]{1,8}/[a-z+.]{1,8}".prop_map(Type::Media)
    ];
    let bytes = proptest::collection::vec(any::<u8>(), 0..40);
    let record = (kind, bytes, proptest::option::of(1u8..32))
        .prop_map(|(kind, value, indicator)| Cmw::Record(Record { kind, value, indicator }))
        .boxed();
    let items = proptest::collection::btree_map("[a-z]{1,6}", record.clone(), 1..5);
    let collection = (items, proptest::option::of("tag:[a-z]{1,6}")).prop_map(|(items, kind)| {
        let mut items: Vec<(String, Cmw)> = items.into_iter().collect();
        items.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
        Cmw::Collection { kind, items }
    });
    prop_oneof![record, collection]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cmw_is_read_back(cmw in any_cmw()) {
        prop_assert_eq!(&Cmw::parse(&cmw.to_cbor()).unwrap(), &cmw);
        prop_assert_eq!(&Cmw::parse(cmw.to_json().as_bytes()).unwrap(), &cmw);
        if let Some(tagged) = cmw.to_tagged_cbor() {
            prop_assert_eq!(&Cmw::parse(&tagged).unwrap(), &cmw);
        }
    }

    #[test]
    fn noise_is_no_cmw_corim_or_bundle(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Cmw::parse(&bytes);
        prop_assert!(corim::read(&bytes, &trust(&[signer()])).is_err());
        prop_assert!(Bundle::open(&bytes, &key("auditor").public_key(), portable).is_err());
    }
}

// ---- CoRIM ----

static NONE: BTreeSet<String> = BTreeSet::new();

fn trust(signers: &[CorimSigner]) -> Trust<'_> {
    Trust { signers, deactivated: &NONE, revocations: None, now: NOW, verify: portable }
}

fn signer() -> CorimSigner {
    CorimSigner::with_key("maker", key("corim").public_key())
        .for_kernels()
        .for_shells()
        .for_vendor(&[6; 32])
}

fn describe(version: u64) -> Describe<'static> {
    Describe { id: "digits", version, issuer: "maker", not_after: Some(NOW + 100) }
}

fn signed(reference: &ReferenceValues) -> Vec<u8> {
    corim::write_signed(reference, &describe(1), &key("corim"), None).unwrap()
}

#[test]
fn corim_is_read_back() {
    let reference = Case::new(Layer::Shield).reference;
    let bytes = signed(&reference);
    let read = corim::read(&bytes, &trust(&[signer()])).unwrap();
    assert_eq!(read.reference, reference);
    assert_eq!(
        (read.id.as_str(), read.version, read.signer.as_str(), read.not_after, read.ignored),
        ("digits", 1, "maker", Some(NOW + 100), 0)
    );
    // With it alone, evidence is accepted.
    let mut case = Case::new(Layer::Shield);
    case.reference = read.reference;
    assert!(case.appraise().accepted());
}

#[test]
fn corim_of_a_certified_signer() {
    let root = Case::root("corim ca");
    let leaf = |maker: &str, until: i64| {
        cert::issue_signer(
            &key(maker),
            &Case::root(maker),
            &key("corim").public_key(),
            "release key",
            NOW - 10,
            until,
        )
    };
    let reference = Case::new(Layer::Shield).reference;
    let sign = |leaf: &[u8]| {
        corim::write_signed(&reference, &describe(1), &key("corim"), Some(leaf)).unwrap()
    };
    let ca = CorimSigner::with_authority("ca", root.der())
        .unwrap()
        .for_kernels()
        .for_shells()
        .for_vendor(&[6; 32]);
    let good = sign(&leaf("corim ca", NOW + 10));
    assert_eq!(corim::read(&good, &trust(std::slice::from_ref(&ca))).unwrap().signer, "ca");
    let refused = |bytes: &[u8]| corim::read(bytes, &trust(std::slice::from_ref(&ca))).unwrap_err();
    assert!(matches!(refused(&sign(&leaf("somebody", NOW + 10))), CorimError::Signer { .. }));
    assert!(refused(&sign(&leaf("corim ca", NOW - 1))).to_string().contains("valid from"));
    // A device's certificates cannot sign reference values.
    let case = Case { maker: "corim ca", ..Case::new(Layer::Shield) };
    for der in case.certificates() {
        assert!(matches!(refused(&sign(&der)), CorimError::Signer { .. }));
    }
    let revoked = Revocations {
        serials: [hex::encode(Certificate::parse(&leaf("corim ca", NOW + 10)).unwrap().serial())]
            .into(),
        ..Revocations::default()
    };
    let error =
        corim::read(&good, &Trust { revocations: Some(&revoked), ..trust(&[ca]) }).unwrap_err();
    assert_eq!(error.code(), "SHEF-ATT-081");
}

#[test]
fn corim_refuses() {
    let reference = Case::new(Layer::Shield).reference;
    let good = signed(&reference);
    let code =
        |bytes: &[u8], trust: &Trust<'_>| corim::read(bytes, trust).map(|_| ()).unwrap_err().code();
    let all = [signer()];
    // Unsigned, by another key, or without a known signer.
    assert_eq!(
        code(&corim::write(&reference, &describe(1)).unwrap(), &trust(&all)),
        "SHEF-ATT-081"
    );
    assert_eq!(
        code(
            &corim::write_signed(&reference, &describe(1), &key("other"), None).unwrap(),
            &trust(&all)
        ),
        "SHEF-ATT-081"
    );
    assert_eq!(code(&good, &trust(&[])), "SHEF-ATT-081");
    // Every byte counts.
    for at in 0..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(corim::read(&bytes, &trust(&all)).is_err(), "byte {at}");
    }
    assert_eq!(code(&[&good[..], &[0]].concat(), &trust(&all)), "SHEF-ATT-080");
    // Time, deactivation, revocation.
    assert_eq!(code(&good, &Trust { now: NOW + 101, ..trust(&all) }), "SHEF-ATT-081");
    let digest = hex::encode(corim::names(&good).unwrap()[1]);
    let deactivated = BTreeSet::from([digest]);
    assert_eq!(code(&good, &Trust { deactivated: &deactivated, ..trust(&all) }), "SHEF-ATT-081");
    let revoked = Revocations {
        authorities: [hex::encode(corim::vendor_id(&key("corim").public_key()))].into(),
        ..Revocations::default()
    };
    assert_eq!(code(&good, &Trust { revocations: Some(&revoked), ..trust(&all) }), "SHEF-ATT-081");
    // Authority, one class at a time.
    let base = || CorimSigner::with_key("maker", key("corim").public_key());
    for partial in [
        base().for_shells().for_vendor(&[6; 32]),
        base().for_kernels().for_vendor(&[6; 32]),
        base().for_kernels().for_shells(),
        base().for_kernels().for_shells().for_vendor(&[7; 32]),
    ] {
        assert_eq!(code(&good, &trust(&[partial])), "SHEF-ATT-081");
    }
}

/// An IP vendor vouches for its own images only.
#[test]
fn vendors_vouch_for_their_own_images() {
    let vendor = key("corim").public_key();
    let image = |vendor: [u8; 32]| ReferenceValues {
        images: vec![ImageReference {
            vendor,
            ..Case::new(Layer::Shield).reference.images[0].clone()
        }],
        ..ReferenceValues::default()
    };
    let known = [CorimSigner::vendor("vendor", vendor)];
    assert!(corim::read(&signed(&image(corim::vendor_id(&vendor))), &trust(&known)).is_ok());
    assert_eq!(
        corim::read(&signed(&image([6; 32])), &trust(&known)).unwrap_err().code(),
        "SHEF-ATT-081"
    );
    let text = known[0].to_toml() + &signer().to_toml();
    let list = CorimSigner::list_from_toml(&text).unwrap();
    assert_eq!(list.iter().map(CorimSigner::to_toml).collect::<String>(), text);
    for bad in [
        text.replace("key =", "kez ="),
        text.replacen("key = \"04", "key = \"05", 1),
        "[[signer]]\nname = \"x\"\n".into(),
    ] {
        assert!(CorimSigner::list_from_toml(&bad).is_err());
    }
}

/// Other shapes of header and measurements under a good signature.
#[test]
fn corim_headers_and_measurements_are_exact() {
    let payload = corim::write(&Case::new(Layer::Shield).reference, &describe(1)).unwrap();
    let envelope = |header: Vec<(i64, Value)>, unprotected: Vec<(i64, Value)>| {
        let protected = Value::map(header).encode();
        let message = Value::Array(vec![
            "Signature1".into(),
            protected.as_slice().into(),
            Value::Bytes(vec![]),
            payload.as_slice().into(),
        ]);
        let signature = key("corim").sign(&message.encode());
        let parts = vec![
            protected.into(),
            Value::map(unprotected),
            payload.as_slice().into(),
            (&signature).into(),
        ];
        Value::Tag(18, Box::new(Value::Array(parts))).encode()
    };
    let good = || {
        vec![
            (1, Value::int(-9)),
            (3, "application/rim+cbor".into()),
            (15, Value::map(vec![(1, "maker".into())])),
        ]
    };
    let with = |at: usize, entry: (i64, Value)| {
        let mut header = good();
        header[at] = entry;
        header
    };
    let read = |bytes: &[u8]| {
        corim::read(bytes, &trust(&[signer()])).map(|_| ()).map_err(|error| error.code())
    };
    assert_eq!(read(&envelope(good(), vec![])), Ok(()));
    assert_eq!(read(&envelope(with(0, (1, Value::int(-7))), vec![])), Ok(()), "the older name");
    for (what, bytes) in [
        ("algorithm", envelope(with(0, (1, Value::int(-35))), vec![])),
        ("no algorithm", envelope(good()[1..].to_vec(), vec![(1, Value::int(-9))])),
        ("content type", envelope(with(1, (3, "application/rim+cose".into())), vec![])),
        ("no meta", envelope(good()[..2].to_vec(), vec![])),
        ("crit", envelope([good(), vec![(2, Value::Array(vec![Value::int(3)]))]].concat(), vec![])),
        ("kid", envelope(good(), vec![(4, Value::Bytes(vec![1]))])),
        ("label in both", envelope(good(), vec![(3, "x".into())])),
    ] {
        assert_eq!(read(&bytes), Err("SHEF-ATT-081"), "{what}");
    }
    let expired = vec![(1, "maker".into()), (4, Value::int(NOW - 1))];
    assert_eq!(read(&envelope(with(2, (15, Value::map(expired))), vec![])), Err("SHEF-ATT-081"));
    let later = vec![(1, "maker".into()), (5, Value::int(NOW + 1))];
    assert_eq!(read(&envelope(with(2, (15, Value::map(later))), vec![])), Err("SHEF-ATT-081"));
}

#[test]
fn of_two_versions_the_newer_counts() {
    let with = |version: u64, svn: u64| {
        let mut reference = Case::new(Layer::Shield).reference;
        reference.images[0].svn = svn;
        let bytes =
            corim::write_signed(&reference, &describe(version), &key("corim"), None).unwrap();
        corim::read(&bytes, &trust(&[signer()])).unwrap()
    };
    let svns = |corims: &[Corim]| {
        corim::merge(corims).unwrap().images.iter().map(|image| image.svn).collect::<Vec<_>>()
    };
    assert_eq!(svns(&[with(1, 6), with(2, 7)]), [7]);
    assert_eq!(svns(&[with(2, 7), with(1, 6)]), [7], "in any order");
    assert_eq!(svns(&[with(1, 6), with(1, 6)]), [6]);
    assert!(corim::merge(&[with(1, 6), with(1, 7)]).is_err(), "nobody can say which is meant");
    assert_eq!(corim::merge(&[]).unwrap(), ReferenceValues::default());
}

// ---- bundles ----

fn bundle(case: &Case) -> Bundle {
    let anchor =
        TrustAnchor::new("maker", RootOfTrust::ShefBoot, false, Case::root("maker").der()).unwrap();
    Bundle {
        created: NOW,
        evidence: Some(BundledEvidence {
            layer: case.layer,
            evidence: case.evidence(),
            certificates: vec![],
            nonce: NONCE.to_vec(),
            audience: AUDIENCE.into(),
            challenged: Some(NOW - 5),
        }),
        anchors: anchor.to_toml(),
        reference: String::new(),
        signers: signer().to_toml(),
        corims: vec![
            corim::write_signed(
                &case.reference,
                &Describe { not_after: None, ..describe(1) },
                &key("corim"),
                None,
            )
            .unwrap(),
        ],
        deactivated: BTreeSet::new(),
        policy: Policy { max_age: Some(60), ..case.policy.clone() }.to_toml().unwrap(),
        rego: Some("package shef\nallow if input.layer == \"shield\"".into()),
        revocations: Some(
            Revocations { issued: NOW - 10, next_update: NOW + 10, ..Revocations::default() }
                .to_toml()
                .unwrap(),
        ),
    }
}

fn open(bytes: &[u8]) -> Result<Bundle, BundleError> {
    Bundle::open(bytes, &key("auditor").public_key(), portable)
}

#[test]
fn a_bundle_is_appraised_as_of_its_date_and_as_of_today() {
    let case = Case::new(Layer::Shield);
    let bytes = bundle(&case).sign(&key("auditor"));
    let read = open(&bytes).unwrap();
    assert_eq!(read, bundle(&case));
    let outcome = read.appraise(read.created, None, portable, Some(&Unconfined)).unwrap();
    assert!(outcome.appraisal.accepted(), "{}", outcome.appraisal.to_json());
    // Later: its age stays the same, until something it depends on is revoked or expires (the root
    // of this test ends at NOW + 100).
    assert!(
        read.appraise(NOW + 99, None, portable, Some(&Unconfined)).unwrap().appraisal.accepted()
    );
    assert_eq!(
        read.appraise(NOW + 101, None, portable, Some(&Unconfined))
            .unwrap()
            .appraisal
            .first_failure()
            .unwrap()
            .id,
        CheckId::Chain
    );
    let newer = Revocations {
        issued: NOW + 50,
        next_update: NOW + 90,
        images: ["03".repeat(32)].into(),
        ..Revocations::default()
    };
    assert_eq!(
        read.appraise(NOW + 60, Some(&newer), portable, Some(&Unconfined))
            .unwrap()
            .appraisal
            .first_failure()
            .unwrap()
            .id,
        CheckId::Revocation
    );
    assert!(
        read.appraise(read.created, None, portable, Some(&Unconfined))
            .unwrap()
            .appraisal
            .accepted(),
        "as of its date it stays what it was"
    );
    let newer = Revocations {
        vendors: [hex::encode(corim::vendor_id(&key("corim").public_key()))].into(),
        ..newer
    };
    assert_eq!(
        read.appraise(NOW + 60, Some(&newer), portable, Some(&Unconfined)).unwrap_err().code(),
        "SHEF-ATT-081",
        "the signer of its reference values"
    );

    // No list lifts what the bundle revokes: not an old one, and not a newer one without the entry.
    let own = Revocations {
        issued: NOW - 10,
        next_update: NOW + 10,
        devices: [hex::encode(case.claims.common.ueid)].into(),
        ..Revocations::default()
    };
    let revoked = Bundle { revocations: Some(own.to_toml().unwrap()), ..bundle(&case) };
    for issued in [NOW - 1000, NOW] {
        let empty = Revocations { issued, next_update: NOW + 20, ..Revocations::default() };
        let outcome = revoked.appraise(NOW, Some(&empty), portable, Some(&Unconfined)).unwrap();
        assert_eq!(outcome.appraisal.first_failure().unwrap().id, CheckId::Revocation, "{issued}");
    }
}

#[test]
fn a_changed_bundle_is_none() {
    let bytes = bundle(&Case::new(Layer::Shield)).sign(&key("auditor"));
    for at in (0..bytes.len()).step_by(7) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        assert!(open(&changed).is_err(), "byte {at}");
    }
    assert_eq!(open(&bytes[..bytes.len() - 1]).unwrap_err().code(), "SHEF-ATT-100");
    assert_eq!(
        open(&bundle(&Case::new(Layer::Shield)).sign(&key("other"))).unwrap_err().code(),
        "SHEF-ATT-101"
    );
    let trust_only = Bundle { evidence: None, ..bundle(&Case::new(Layer::Shield)) };
    let read = open(&trust_only.sign(&key("auditor"))).unwrap();
    assert_eq!(read, trust_only);
    assert_eq!(
        read.appraise(NOW, None, portable, Some(&Unconfined)).unwrap_err().code(),
        "SHEF-ATT-102"
    );
    // A challenge that was too old stays so: the policy of this bundle allows 60 seconds.
    let mut old = bundle(&Case::new(Layer::Shield));
    old.evidence.as_mut().unwrap().challenged = Some(NOW - 61);
    assert_eq!(
        old.appraise(NOW, None, portable, Some(&Unconfined))
            .unwrap()
            .appraisal
            .first_failure()
            .unwrap()
            .id,
        CheckId::Age
    );
}

#[test]
fn content_types() {
    assert_eq!(cmw::FORMAT_EAT_CWT, 263);
    assert_eq!(corim::MEDIA_TYPE, "application/rim+cose");
}

#[test]
fn many_reference_values_are_put_together_in_no_time() {
    let kernel = |at: u32| {
        let mut digest = [0; 32];
        digest[..4].copy_from_slice(&at.to_be_bytes());
        shef_verify::KernelReference { name: "k".into(), digest, svn: 1 }
    };
    let of = |range: std::ops::Range<u32>| ReferenceValues {
        kernels: range.map(kernel).collect(),
        ..ReferenceValues::default()
    };
    let start = std::time::Instant::now();
    let mut all = of(0..60_000);
    all.extend([&of(50_000..120_000)]);
    all.extend([&of(0..60_000)]);
    assert_eq!(all, of(0..120_000));
    assert!(start.elapsed().as_secs() < 5, "{:?}", start.elapsed());
}
