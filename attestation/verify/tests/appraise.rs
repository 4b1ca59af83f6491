//! An appraisal accepts good evidence, and each check has one case that it refuses.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use shef_fixtures::case::{AUDIENCE, Case, NONCE, NOW, key};
use shef_proto::cbor::{self, Limits, Value};
use shef_proto::cert;
use shef_proto::config::OnFault;
use shef_proto::cose;
use shef_proto::evidence::{
    self, AcceptedEntropy, DebugState, EntropySource, Evidence, Layer, RootOfTrust, ShieldState,
};
use shef_verify::corim::CorimSigner;
use shef_verify::{
    AppraisalPolicy, AppraisalRequest, CODES, ChainCache, ChainKey, CheckId, EvidenceSource,
    Policy, ReferenceValues, TrustAnchor, TrustAnchors, Verified, VerifiedChain, appraise,
    appraise_kernel, appraise_shield,
};

#[test]
fn good_evidence_is_accepted() {
    for layer in [Layer::Kernel, Layer::Shield] {
        let case = Case::new(layer);
        let appraisal = case.appraise();
        assert!(appraisal.accepted(), "{}", appraisal.to_json());
        assert_eq!(appraisal.checks.len(), CheckId::all(layer).len());
        assert_eq!(appraisal.anchor.as_deref(), Some("maker"));
        assert!(appraisal.warnings.is_empty());
        assert!(appraisal.first_failure().is_none());
        // The same with certificates beside the evidence instead of inside it, or both.
        let bare = evidence::sign(&case.claims, &key("ak"), &[]);
        assert!(case.appraise_bytes(&bare, &case.certificates()).appraisal.accepted());
        assert!(case.appraise_bytes(&case.evidence(), &case.certificates()).appraisal.accepted());
    }
}

/// Each change is refused by exactly one check.
#[test]
fn each_check_refuses() {
    type Change = fn(&mut Case);
    let rows: Vec<(CheckId, Change)> = vec![
        (CheckId::Nonce, |c| c.nonce = vec![0x43; 48]),
        (CheckId::Nonce, |c| c.nonce = NONCE[..47].to_vec()),
        (CheckId::Nonce, |c| c.nonce = vec![]),
        (CheckId::Nonce, |c| c.nonce.push(0x42)),
        (CheckId::Audience, |c| c.audience = "somebody".into()),
        (CheckId::Audience, |c| c.audience = String::new()),
        (CheckId::Anchor, |c| c.known_maker = "another maker"),
        (CheckId::AnchorKind, |c| c.anchor.0 = RootOfTrust::Board),
        (CheckId::AnchorKind, |c| c.anchor.0 = RootOfTrust::Simulated),
        (CheckId::Chain, |c| c.now = NOW + 101),
        (CheckId::Chain, |c| c.now = NOW - 51),
        (CheckId::Signature, |c| c.signer = "somebody"),
        (CheckId::Signature, |c| c.signer = "device"),
        (CheckId::Ueid, |c| c.claims.common.ueid[32] ^= 1),
        (CheckId::Measured, |c| c.tcb.digest[0] ^= 1),
        (CheckId::Measured, |c| c.tcb.svn = 4),
        (CheckId::DebugConsistent, |c| c.tcb.flags = cert::FLAG_DEBUG),
        (CheckId::DebugConsistent, |c| c.tcb.flags = 1),
        (CheckId::DebugConsistent, |c| c.tcb.flags = 1 << 2),
        (CheckId::DebugConsistent, |c| c.anchor.1 = true),
        (CheckId::Key, |c| c.claims.common.key = key("ak").public_key()),
        (CheckId::Key, |c| c.claims.common.key = key("device").public_key()),
        (CheckId::Key, |c| c.claims.common.key = key("maker").public_key()),
        (CheckId::RootOfTrust, |c| {
            c.policy.root_of_trust = vec!["board".into(), "simulated".into()];
        }),
        (CheckId::RootOfTrust, |c| c.policy.root_of_trust = vec![]),
        (CheckId::Debug, |c| c.claims.common.debug = DebugState::Disabled),
        (CheckId::Seeded, |c| c.claims.common.entropy = EntropySource::Seeded),
        (CheckId::Seeded, |c| {
            c.claims.common.entropy = EntropySource::Seeded;
            c.policy.entropy = AcceptedEntropy::Unmeasured;
        }),
        (CheckId::Entropy, |c| c.claims.common.entropy = EntropySource::Unmeasured),
        (CheckId::Entropy, |c| {
            c.claims.common.entropy = EntropySource::Unmeasured;
            c.policy.allow_seeded = true;
        }),
        (CheckId::Target, |c| c.policy.targets = vec!["u250".into()]),
        (CheckId::Device, |c| c.policy.devices = ["01".repeat(33)].into()),
        (CheckId::Device, |c| c.policy.revoked = [hex_of(&c.claims.common.ueid)].into()),
        (CheckId::Kernel, |c| c.reference.kernels[0].digest[31] ^= 0x80),
        (CheckId::Kernel, |c| c.reference.kernels[0].svn = 6),
        (CheckId::Kernel, |c| c.reference.kernels.clear()),
        (CheckId::KernelSvn, |c| c.policy.min_kernel_svn = 6),
        (CheckId::KernelSvn, |c| c.shown_svn = 6),
        (CheckId::Shell, |c| c.reference.shells[0].digest[0] ^= 1),
        (CheckId::Shell, |c| c.reference.shells.clear()),
    ];
    for (at, (id, change)) in rows.iter().enumerate() {
        for layer in [Layer::Kernel, Layer::Shield] {
            let mut case = Case::new(layer);
            change(&mut case);
            assert_eq!(case.failed(), vec![*id], "row {at} {}", layer.name());
            assert_eq!(
                case.appraise().first_failure().map(|check| check.code),
                Some(id.code()),
                "row {at}"
            );
        }
    }
    let rows: Vec<(CheckId, Change)> = vec![
        (CheckId::Image, |c| c.shield().image_digest[0] ^= 1),
        (CheckId::Image, |c| c.shield().accelerator = "another".into()),
        (CheckId::Image, |c| c.shield().vendor[0] ^= 1),
        (CheckId::Image, |c| c.reference.images.clear()),
        (CheckId::Config, |c| c.shield().config_digest[9] ^= 1),
        (CheckId::Design, |c| c.shield().design_digest[9] ^= 1),
        (CheckId::ImageSvn, |c| c.policy.min_image_svn = 7),
        (CheckId::ImageSvn, |c| c.shield().image_svn = 7),
        (CheckId::ImageSvn, |c| c.shield().image_svn = 5),
        (CheckId::OnFault, |c| c.shield().on_fault = OnFault::Region),
        (CheckId::Bypass, |c| c.shield().bypass = vec!["public".into()]),
        (CheckId::State, |c| c.shield().state = ShieldState::Keyed([1; 32])),
        (CheckId::State, |c| c.shield().state = ShieldState::Closed([1; 32])),
    ];
    for (at, (id, change)) in rows.iter().enumerate() {
        let mut case = Case::new(Layer::Shield);
        change(&mut case);
        assert_eq!(case.failed(), vec![*id], "row {at}");
    }
}

fn hex_of(bytes: &[u8]) -> String {
    hex::encode(bytes)
}

#[test]
fn exceptions_must_be_named() {
    let mut case = Case::new(Layer::Shield);
    case.shield().bypass = vec!["public".into(), "more".into()];
    case.policy.bypass = vec!["public".into()];
    assert_eq!(case.failed(), [CheckId::Bypass]);
    case.policy.bypass.push("more".into());
    assert!(case.appraise().accepted());
    case.shield().on_fault = OnFault::Region;
    case.policy.on_fault.push("region".into());
    case.shield().state = ShieldState::Keyed([1; 32]);
    case.policy.states = vec!["keyed".into()];
    case.policy.devices = [hex_of(&case.claims.common.ueid)].into();
    assert!(case.appraise().accepted());
}

/// Two anchors share a name and key identifier: a reissued root, and a root registered for several
/// kinds. Neither hides the other.
#[test]
fn anchors_of_one_name_do_not_hide_each_other() {
    let case = Case::new(Layer::Kernel);
    let root = |from, to| cert::issue_root(&key("maker"), "maker", from, to);
    let anchor =
        |name: &str, kind, debug, root: &[u8]| TrustAnchor::new(name, kind, debug, root).unwrap();
    let ended = anchor("ended", RootOfTrust::ShefBoot, false, &root(NOW - 100, NOW - 1));
    let current = anchor("current", RootOfTrust::ShefBoot, false, &root(NOW - 100, NOW + 100));
    let simulated = anchor("simulated", RootOfTrust::Simulated, false, Case::root("maker").der());
    let debug = anchor("debug", RootOfTrust::ShefBoot, true, Case::root("maker").der());
    let policy = AppraisalPolicy::new(case.policy.clone());
    let evidence = case.evidence();
    let ask = |list: &[&TrustAnchor]| {
        let anchors = TrustAnchors::new(list.iter().map(|anchor| (*anchor).clone()).collect());
        appraise(&AppraisalRequest::new(
            &evidence,
            &anchors,
            &case.reference,
            &policy,
            case.layer,
            &NONCE,
            AUDIENCE,
            NOW,
        ))
        .appraisal
    };
    for list in [
        [&ended, &current],
        [&current, &ended],
        [&simulated, &current],
        [&debug, &current],
        [&current, &debug],
    ] {
        let appraisal = ask(&list);
        assert!(appraisal.accepted(), "{}", appraisal.to_json());
        assert_eq!(appraisal.anchor.as_deref(), Some("current"));
    }
    // No anchor makes another one valid.
    assert_eq!(ask(&[&ended, &simulated]).first_failure().unwrap().id, CheckId::AnchorKind);
    assert_eq!(ask(&[&ended, &debug]).first_failure().unwrap().id, CheckId::DebugConsistent);
    assert_eq!(ask(&[&ended]).first_failure().unwrap().id, CheckId::Chain);
}

/// A simulator's certificate under an anchor for hardware, whatever it claims to be.
#[test]
fn a_simulator_is_no_hardware() {
    let mut case = Case::new(Layer::Shield);
    case.claims.common.root_of_trust = RootOfTrust::Simulated;
    assert_eq!(case.failed(), [CheckId::AnchorKind, CheckId::RootOfTrust]);
    // A policy that accepts simulators does not help under the wrong anchor.
    case.policy.root_of_trust.push("simulated".into());
    assert_eq!(case.failed(), [CheckId::AnchorKind]);
    // Nor does calling itself hardware under the simulators' anchor.
    case.claims.common.root_of_trust = RootOfTrust::ShefBoot;
    case.anchor.0 = RootOfTrust::Simulated;
    assert_eq!(case.failed(), [CheckId::AnchorKind]);
    case.claims.common.root_of_trust = RootOfTrust::Simulated;
    let accepted = case.appraise();
    assert!(accepted.accepted());
    assert_eq!(accepted.warnings.len(), 1, "loudly");
}

#[test]
fn a_debug_device_is_refused_unless_named() {
    let mut case = Case::new(Layer::Shield);
    case.claims.common.debug = DebugState::Enabled;
    assert_eq!(case.failed(), [CheckId::DebugConsistent, CheckId::Debug]);
    case.tcb.flags = cert::FLAG_DEBUG;
    assert_eq!(
        case.failed(),
        [CheckId::DebugConsistent, CheckId::Debug],
        "an anchor of production"
    );
    case.anchor.1 = true;
    assert_eq!(case.failed(), [CheckId::Debug]);
    case.policy.allow_debug = true;
    assert_eq!(case.appraise().warnings.len(), 1);
}

#[test]
fn layers_do_not_stand_in_for_each_other() {
    for layer in [Layer::Kernel, Layer::Shield] {
        let mut case = Case::new(layer);
        case.layer = if layer == Layer::Kernel { Layer::Shield } else { Layer::Kernel };
        assert_eq!(case.failed(), [CheckId::Profile]);
        let evidence = case.evidence();
        let outcome = case.appraise_bytes(&evidence, &[]);
        assert!(outcome.verified.is_none());
        // Unreached checks count as failed.
        assert!(
            outcome
                .appraisal
                .checks
                .iter()
                .filter(|check| !check.reached)
                .all(|check| !check.passed)
        );
        assert_eq!(outcome.appraisal.checks.len(), CheckId::all(case.layer).len());
    }
    let kernel = Case::new(Layer::Kernel);
    let (anchors, evidence) = (
        [TrustAnchor::new("maker", RootOfTrust::ShefBoot, false, Case::root("maker").der())
            .unwrap()],
        kernel.evidence(),
    );
    let (anchors, policy) =
        (TrustAnchors::from(anchors.to_vec()), AppraisalPolicy::new(kernel.policy.clone()));
    let request = AppraisalRequest::new(
        &evidence,
        &anchors,
        &kernel.reference,
        &policy,
        Layer::Shield,
        &NONCE,
        AUDIENCE,
        NOW,
    );
    assert!(appraise_kernel(&request).is_ok(), "the function names the layer");
    assert!(appraise_shield(&request).is_err());
}

/// A cache that keeps every chain in one slot.
#[derive(Default)]
struct OnePlace(Mutex<Option<Arc<VerifiedChain>>>);

impl ChainCache for OnePlace {
    fn get(&self, _: &ChainKey) -> Option<Arc<VerifiedChain>> {
        self.0.lock().unwrap().clone()
    }

    fn put(&self, _: ChainKey, chain: Arc<VerifiedChain>) {
        *self.0.lock().unwrap() = Some(chain);
    }
}

#[test]
fn a_cache_that_gives_another_chain_changes_nothing() {
    let (good, mut other) = (Case::new(Layer::Shield), Case::new(Layer::Shield));
    // Another certificate of the same key: it measures another kernel than the evidence does.
    other.tcb.digest = [9; 32];
    let anchor = |name: &str| {
        TrustAnchor::new(name, RootOfTrust::ShefBoot, false, Case::root("maker").der()).unwrap()
    };
    let (anchors, renamed) =
        (TrustAnchors::new(vec![anchor("maker")]), TrustAnchors::new(vec![anchor("renamed")]));
    let (policy, cache) = (AppraisalPolicy::new(good.policy.clone()), OnePlace::default());
    let ask = |case: &Case, anchors: &TrustAnchors| {
        let evidence = case.evidence();
        let request = AppraisalRequest::new(
            &evidence,
            anchors,
            &case.reference,
            &policy,
            Layer::Shield,
            &NONCE,
            AUDIENCE,
            NOW,
        );
        let cached = appraise(&AppraisalRequest { chains: Some(&cache), ..request }).appraisal;
        assert_eq!(cached, appraise(&request).appraisal);
        cached
    };
    assert!(ask(&good, &anchors).accepted());
    assert!(cache.0.lock().unwrap().is_some());
    assert_eq!(ask(&other, &anchors).first_failure().unwrap().id, CheckId::Measured);
    assert!(ask(&good, &anchors).accepted());
    assert_eq!(ask(&good, &renamed).anchor.as_deref(), Some("renamed"));
}

#[test]
fn evidence_that_was_read_before_is_appraised_as_its_bytes() {
    let case = Case::new(Layer::Shield);
    let anchors = TrustAnchors::new(vec![
        TrustAnchor::new("maker", RootOfTrust::ShefBoot, false, Case::root("maker").der()).unwrap(),
    ]);
    let (policy, evidence) = (AppraisalPolicy::new(case.policy.clone()), case.evidence());
    for bytes in
        [&evidence[..], &evidence[1..], &cose::sign(&evidence::FORM, &key("ak"), &[0xa0], &[])[..]]
    {
        let read = Evidence::parse(bytes);
        let ask = |given: EvidenceSource<'_>| {
            appraise(&AppraisalRequest::new(
                given,
                &anchors,
                &case.reference,
                &policy,
                Layer::Shield,
                &NONCE,
                AUDIENCE,
                NOW,
            ))
            .appraisal
        };
        assert_eq!(ask((&read).into()), ask(bytes.into()));
        assert_eq!(ask(bytes.into()).accepted(), bytes.len() == evidence.len());
    }
}

#[test]
fn certificates_missing_or_others() {
    let case = Case::new(Layer::Shield);
    let good = case.certificates();
    let bare = evidence::sign(&case.claims, &key("ak"), &[]);
    let first = |evidence: &[u8], certificates: &[Vec<u8>]| {
        let appraisal = case.appraise_bytes(evidence, certificates).appraisal;
        assert!(!appraisal.accepted());
        appraisal.first_failure().unwrap().id
    };
    assert_eq!(first(&bare, &[]), CheckId::Certificates);
    assert_eq!(first(&bare, &good[..1]), CheckId::Certificates);
    assert_eq!(
        first(&bare, &[good[0].clone(), good[1].clone(), Case::root("maker").der().to_vec()]),
        CheckId::Certificates
    );
    assert_eq!(first(&bare, &[good[0].clone(), good[1][1..].to_vec()]), CheckId::Certificates);
    assert_eq!(first(&bare, &[good[1].clone(), good[0].clone()]), CheckId::Anchor);
    assert_eq!(first(&case.evidence(), &[good[1].clone(), good[0].clone()]), CheckId::Certificates);
    // Without anchors no device is trusted.
    let (anchors, policy) = (TrustAnchors::new(vec![]), AppraisalPolicy::new(case.policy.clone()));
    let evidence = case.evidence();
    let outcome = appraise(&AppraisalRequest::new(
        &evidence,
        &anchors,
        &case.reference,
        &policy,
        case.layer,
        &NONCE,
        AUDIENCE,
        NOW,
    ));
    assert_eq!(outcome.appraisal.first_failure().unwrap().id, CheckId::Anchor);
}

#[test]
fn any_changed_byte_denies() {
    for layer in [Layer::Kernel, Layer::Shield] {
        let case = Case::new(layer);
        let good = case.evidence();
        for at in 0..good.len() {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << (at % 8);
            let outcome = case.appraise_bytes(&bytes, &[]);
            assert!(!outcome.appraisal.accepted() && outcome.verified.is_none(), "byte {at}");
        }
    }
}

#[test]
fn any_cut_or_longer_evidence_denies() {
    let case = Case::new(Layer::Shield);
    let good = case.evidence();
    for end in 0..good.len() {
        assert_eq!(
            case.appraise_bytes(&good[..end], &[]).appraisal.first_failure().unwrap().id,
            CheckId::Framing,
            "{end}"
        );
    }
    let long = [&good[..], &[0]].concat();
    assert_eq!(
        case.appraise_bytes(&long, &[]).appraisal.first_failure().unwrap().id,
        CheckId::Framing
    );
    assert_eq!(
        case.appraise_bytes(&vec![0; 100_000], &[]).appraisal.first_failure().unwrap().id,
        CheckId::Framing
    );
}

// ---- evidence that is signed by the right key, but still wrong ----

/// The claims-set as a map, changed and re-signed.
fn resigned(case: &Case, change: impl FnOnce(&mut Vec<(Value, Value)>)) -> Vec<u8> {
    let Value::Map(mut map) = cbor::parse(&case.claims.to_cbor(), &Limits::bytes(8192)).unwrap()
    else {
        panic!()
    };
    change(&mut map);
    signed(case, &Value::Map(map).encode())
}

fn signed(case: &Case, payload: &[u8]) -> Vec<u8> {
    let certificates = case.certificates();
    let chain: Vec<&[u8]> = certificates.iter().map(Vec::as_slice).collect();
    cose::sign(&evidence::FORM, &key("ak"), payload, &chain)
}

#[test]
fn a_missing_claim_denies() {
    for layer in [Layer::Kernel, Layer::Shield] {
        let case = Case::new(layer);
        let Value::Map(map) = cbor::parse(&case.claims.to_cbor(), &Limits::bytes(8192)).unwrap()
        else {
            panic!()
        };
        assert_eq!(map.len(), if layer == Layer::Kernel { 13 } else { 22 });
        for at in 0..map.len() {
            let bytes = resigned(&case, |map| drop(map.remove(at)));
            let failure = case.appraise_bytes(&bytes, &[]).appraisal.first_failure().unwrap().id;
            assert_eq!(failure, CheckId::Claims, "claim {:?}", map[at].0);
            // It must not be null or of another type either.
            for other in [Value::Null, Value::Map(vec![]), Value::Uint(u64::MAX)] {
                let bytes = resigned(&case, |map| map[at].1 = other.clone());
                let appraisal = case.appraise_bytes(&bytes, &[]).appraisal;
                assert!(!appraisal.accepted(), "claim {:?} {other:?}", map[at].0);
            }
        }
    }
}

/// One claim states the source of randomness: a seed or not, or the exception by name.
#[test]
fn the_source_of_randomness_has_one_claim() {
    let at = Value::int(-75_005);
    for layer in [Layer::Kernel, Layer::Shield] {
        for (source, claim) in [
            (EntropySource::Tested, Value::Bool(false)),
            (EntropySource::Seeded, Value::Bool(true)),
            (EntropySource::Unmeasured, Value::Text("unmeasured".into())),
        ] {
            let mut case = Case::new(layer);
            case.claims.common.entropy = source;
            let Value::Map(map) =
                cbor::parse(&case.claims.to_cbor(), &Limits::bytes(8192)).unwrap()
            else {
                panic!()
            };
            assert!(map.contains(&(at.clone(), claim)), "{source:?}");
            let read = Evidence::parse(&case.evidence()).unwrap();
            assert_eq!(read.unverified_claims().common.entropy, source);
            let lines = read.describe();
            assert!(lines.contains(&("entropy", source.name().into())));
        }
        for other in ["tested", "seeded", "UNMEASURED", ""].map(|name| Value::Text(name.into())) {
            let mut case = Case::new(layer);
            case.policy.entropy = AcceptedEntropy::Unmeasured;
            let bytes = resigned(&case, |map| {
                for entry in map.iter_mut().filter(|entry| entry.0 == at) {
                    entry.1 = other.clone();
                }
            });
            let denied = case.appraise_bytes(&bytes, &[]).appraisal;
            assert_eq!(denied.first_failure().unwrap().id, CheckId::Claims, "{other:?}");
        }
    }
}

#[test]
fn unknown_claims_deny() {
    let case = Case::new(Layer::Shield);
    for (claim, value) in [
        (Value::int(6), Value::Uint(1)),
        (Value::int(-75_019), Value::Bytes(vec![0; 32])),
        (Value::int(-76_000), Value::Null),
        (Value::Text("x".into()), Value::Null),
        (Value::Uint(u64::MAX), Value::Null),
    ] {
        let bytes = resigned(&case, |map| map.push((claim.clone(), value)));
        assert_eq!(
            case.appraise_bytes(&bytes, &[]).appraisal.first_failure().unwrap().id,
            CheckId::Claims,
            "{claim:?}"
        );
    }
    // Claims of the Shield in evidence that calls itself the kernel's.
    let bytes = resigned(&case, |map| {
        let profile = map.iter_mut().find(|(claim, _)| *claim == Value::int(265)).unwrap();
        profile.1 = evidence::PROFILE_KERNEL.into();
    });
    let mut kernel = case.clone();
    kernel.layer = Layer::Kernel;
    assert_eq!(
        kernel.appraise_bytes(&bytes, &[]).appraisal.first_failure().unwrap().id,
        CheckId::Claims
    );
    let bytes = resigned(&case, |map| {
        let profile = map.iter_mut().find(|(claim, _)| *claim == Value::int(265)).unwrap();
        profile.1 = "tag:shef.dev,2026:shield#2".into();
    });
    assert_eq!(
        case.appraise_bytes(&bytes, &[]).appraisal.first_failure().unwrap().id,
        CheckId::Profile
    );
}

#[test]
fn claims_of_the_wrong_form_deny() {
    let case = Case::new(Layer::Shield);
    let denied = |claim: i64, value: Value| {
        let bytes = resigned(&case, |map| {
            let entry = map.iter_mut().find(|(key, _)| *key == Value::int(claim)).unwrap();
            entry.1 = value;
        });
        let appraisal = case.appraise_bytes(&bytes, &[]).appraisal;
        assert!(!appraisal.accepted());
        appraisal.first_failure().unwrap().id
    };
    // A short, long or repeated nonce.
    for nonce in [vec![0x42; 31], vec![0x42; 65], vec![]] {
        assert_eq!(denied(10, Value::Bytes(nonce)), CheckId::Claims);
    }
    assert_eq!(denied(10, Value::Array(vec![(&NONCE).into(), (&NONCE).into()])), CheckId::Claims);
    assert_eq!(denied(263, Value::Uint(5)), CheckId::Claims);
    assert_eq!(denied(-75_001, "hardware".into()), CheckId::Claims);
    assert_eq!(denied(-75_000, Value::Uint(2)), CheckId::Claims);
    assert_eq!(denied(-75_018, "keyed".into()), CheckId::Claims, "keyed without a transcript");
    assert_eq!(denied(-75_018, "open".into()), CheckId::Claims);
    assert_eq!(denied(-75_016, "none".into()), CheckId::Claims);
    assert_eq!(denied(-75_005, Value::Uint(0)), CheckId::Claims);
    assert_eq!(denied(-75_013, Value::int(-1)), CheckId::Claims);
    assert_eq!(denied(3, "".into()), CheckId::Claims);
    assert_eq!(denied(256, Value::Bytes(vec![1; 32])), CheckId::Claims);
    // The key in cnf.
    let xy = key("shield").public_key().xy();
    let cose_key = |x: &[u8], y: &[u8]| {
        Value::map(vec![(
            1,
            Value::map(vec![
                (1, Value::Uint(2)),
                (-1, Value::Uint(1)),
                (-2, x.into()),
                (-3, y.into()),
            ]),
        )])
    };
    let mut off = xy;
    off[63] ^= 1;
    assert_eq!(denied(8, cose_key(&off[..32], &off[32..])), CheckId::Claims, "not on the curve");
    assert_eq!(denied(8, cose_key(&[0; 32], &[0; 32])), CheckId::Claims, "zero");
    assert_eq!(denied(8, cose_key(&[0xff; 32], &xy[32..])), CheckId::Claims, "not reduced");
    assert_eq!(denied(8, cose_key(&xy[..31], &xy[32..])), CheckId::Claims, "short");
    let p384 = Value::map(vec![(
        1,
        Value::map(vec![
            (1, Value::Uint(2)),
            (-1, Value::Uint(2)),
            (-2, xy[..32].into()),
            (-3, xy[32..].into()),
        ]),
    )]);
    assert_eq!(denied(8, p384), CheckId::Claims, "another curve");
    let compressed = Value::map(vec![(
        1,
        Value::map(vec![
            (1, Value::Uint(2)),
            (-1, Value::Uint(1)),
            (-2, xy[..32].into()),
            (-3, Value::Bool(true)),
        ]),
    )]);
    assert_eq!(denied(8, compressed), CheckId::Claims, "compressed");
    let private = Value::map(vec![(
        1,
        Value::map(vec![
            (1, Value::Uint(2)),
            (-1, Value::Uint(1)),
            (-2, xy[..32].into()),
            (-3, xy[32..].into()),
            (-4, (&[1; 32]).into()),
        ]),
    )]);
    assert_eq!(denied(8, private), CheckId::Claims, "with a private key");
}

/// Tags, headers and algorithms around good claims and a good signature.
#[test]
fn framing_is_exact() {
    let case = Case::new(Layer::Shield);
    let payload = case.claims.to_cbor();
    let header = |entries: Vec<(Value, Value)>| Value::Map(entries).encode();
    let (alg, typ) = ((Value::int(1), Value::int(-9)), (Value::int(3), Value::Uint(263)));
    let good_header = header(vec![alg.clone(), typ.clone()]);
    let certificates = case.certificates();
    let chain = Value::Array(certificates.iter().map(|der| der.as_slice().into()).collect());
    let good_unprotected = Value::map(vec![(33, chain.clone())]);
    let sign = |protected: &[u8], payload: &[u8]| {
        let message = Value::Array(vec![
            "Signature1".into(),
            protected.into(),
            Value::Bytes(vec![]),
            payload.into(),
        ])
        .encode();
        Value::from(&key("ak").sign(&message))
    };
    let tagged = |tags: &[u64], value: Value| {
        tags.iter().rev().fold(value, |value, tag| Value::Tag(*tag, Box::new(value))).encode()
    };
    let token = |tags: &[u64], protected: &[u8], unprotected: &Value| {
        tagged(
            tags,
            Value::Array(vec![
                protected.into(),
                unprotected.clone(),
                payload.as_slice().into(),
                sign(protected, &payload),
            ]),
        )
    };
    assert!(
        case.appraise_bytes(&token(&[61, 18], &good_header, &good_unprotected), &[])
            .appraisal
            .accepted()
    );
    let es256 = header(vec![(Value::int(1), Value::int(-7)), typ.clone()]);
    assert!(
        case.appraise_bytes(&token(&[61, 18], &es256, &good_unprotected), &[]).appraisal.accepted(),
        "the older name of the algorithm"
    );

    let mut refused: Vec<(&str, Vec<u8>)> = vec![
        ("no tags", token(&[], &good_header, &good_unprotected)),
        ("tag 18 only", token(&[18], &good_header, &good_unprotected)),
        ("tag 61 only", token(&[61], &good_header, &good_unprotected)),
        ("tags swapped", token(&[18, 61], &good_header, &good_unprotected)),
        ("self-described", token(&[55799, 61, 18], &good_header, &good_unprotected)),
        ("COSE_Mac0", token(&[61, 17], &good_header, &good_unprotected)),
        ("COSE_Sign", token(&[61, 98], &good_header, &good_unprotected)),
        ("COSE_Encrypt0", token(&[61, 16], &good_header, &good_unprotected)),
        ("tag inside", token(&[61, 18, 18], &good_header, &good_unprotected)),
        ("no algorithm", token(&[61, 18], &header(vec![typ.clone()]), &good_unprotected)),
        ("no content type", token(&[61, 18], &header(vec![alg.clone()]), &good_unprotected)),
        (
            "another content type",
            token(
                &[61, 18],
                &header(vec![alg.clone(), (Value::int(3), Value::Uint(264))]),
                &good_unprotected,
            ),
        ),
        ("empty protected header", token(&[61, 18], &[], &good_unprotected)),
        (
            "algorithm unprotected only",
            token(
                &[61, 18],
                &header(vec![typ.clone()]),
                &Value::map(vec![(1, Value::int(-9)), (33, chain.clone())]),
            ),
        ),
        (
            "algorithm in both",
            token(
                &[61, 18],
                &good_header,
                &Value::map(vec![(1, Value::int(-9)), (33, chain.clone())]),
            ),
        ),
        (
            "crit",
            token(
                &[61, 18],
                &header(vec![
                    alg.clone(),
                    (Value::int(2), Value::Array(vec![Value::int(99)])),
                    typ.clone(),
                ]),
                &good_unprotected,
            ),
        ),
        (
            "kid",
            token(
                &[61, 18],
                &good_header,
                &Value::map(vec![(4, Value::Bytes(vec![1])), (33, chain.clone())]),
            ),
        ),
        (
            "x5u",
            token(
                &[61, 18],
                &good_header,
                &Value::map(vec![(33, chain.clone()), (35, "http://x".into())]),
            ),
        ),
        ("x5bag", token(&[61, 18], &good_header, &Value::map(vec![(32, chain.clone())]))),
        (
            "text label",
            token(&[61, 18], &good_header, &Value::Map(vec![("x".into(), Value::Null)])),
        ),
        (
            "x5chain of one in a list",
            token(
                &[61, 18],
                &good_header,
                &Value::map(vec![(33, Value::Array(vec![(&certificates[0][..]).into()]))]),
            ),
        ),
        (
            "x5chain of numbers",
            token(
                &[61, 18],
                &good_header,
                &Value::map(vec![(33, Value::Array(vec![Value::Uint(1), Value::Uint(2)]))]),
            ),
        ),
        (
            "five certificates",
            token(
                &[61, 18],
                &good_header,
                &Value::map(vec![(33, Value::Array(vec![(&certificates[0][..]).into(); 5]))]),
            ),
        ),
        ("header is a list", token(&[61, 18], &Value::Array(vec![]).encode(), &good_unprotected)),
        (
            "header not deterministic",
            token(&[61, 18], &[0xa2, 0x03, 0x19, 0x01, 0x07, 0x01, 0x28], &good_unprotected),
        ),
        (
            "header with a float",
            token(
                &[61, 18],
                &[0xa2, 0x01, 0xf9, 0xc8, 0x80, 0x03, 0x19, 0x01, 0x07],
                &good_unprotected,
            ),
        ),
        (
            "detached payload",
            tagged(
                &[61, 18],
                Value::Array(vec![
                    (&good_header[..]).into(),
                    good_unprotected.clone(),
                    Value::Null,
                    sign(&good_header, &payload),
                ]),
            ),
        ),
        (
            "three parts",
            tagged(
                &[61, 18],
                Value::Array(vec![
                    (&good_header[..]).into(),
                    good_unprotected.clone(),
                    (&payload[..]).into(),
                ]),
            ),
        ),
        (
            "signature as DER",
            tagged(
                &[61, 18],
                Value::Array(vec![
                    (&good_header[..]).into(),
                    good_unprotected.clone(),
                    (&payload[..]).into(),
                    Value::Bytes(vec![0x30; 70]),
                ]),
            ),
        ),
    ];
    for algorithm in [-35, -51, -8, -36, -257, 5, -16, -47, -48, 0] {
        refused.push((
            "algorithm",
            token(
                &[61, 18],
                &header(vec![(Value::int(1), Value::int(algorithm)), typ.clone()]),
                &good_unprotected,
            ),
        ));
    }
    refused.push((
        "algorithm as text",
        token(&[61, 18], &header(vec![(Value::int(1), "ES256".into()), typ]), &good_unprotected),
    ));
    for (what, bytes) in refused {
        let appraisal = case.appraise_bytes(&bytes, &[]).appraisal;
        assert_eq!(
            appraisal.first_failure().map(|check| check.id),
            Some(CheckId::Framing),
            "{what}"
        );
    }
    // r or s of 0, or at least n.
    let order =
        hex::decode("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551").unwrap();
    for half in [vec![0; 32], order.clone(), vec![0xff; 32]] {
        for first in [true, false] {
            let Value::Bytes(mut rs) = sign(&good_header, &payload) else { panic!() };
            let range = if first { 0..32 } else { 32..64 };
            rs[range].copy_from_slice(&half);
            let bytes = tagged(
                &[61, 18],
                Value::Array(vec![
                    (&good_header[..]).into(),
                    good_unprotected.clone(),
                    (&payload[..]).into(),
                    Value::Bytes(rs),
                ]),
            );
            assert_eq!(
                case.appraise_bytes(&bytes, &[]).appraisal.first_failure().unwrap().id,
                CheckId::Signature
            );
        }
    }
    // Non-empty external data: a signature for something else.
    let message = Value::Array(vec![
        "Signature1".into(),
        (&good_header[..]).into(),
        b"shef-close/1"[..].into(),
        (&payload[..]).into(),
    ])
    .encode();
    let bytes = tagged(
        &[61, 18],
        Value::Array(vec![
            (&good_header[..]).into(),
            good_unprotected,
            (&payload[..]).into(),
            (&key("ak").sign(&message)).into(),
        ]),
    );
    assert_eq!(
        case.appraise_bytes(&bytes, &[]).appraisal.first_failure().unwrap().id,
        CheckId::Signature
    );
}

/// An attacker swaps the Shield's public key in signed evidence.
#[test]
fn a_swapped_key_breaks_the_signature() {
    let case = Case::new(Layer::Shield);
    let good = case.evidence();
    let (old, new) = (key("shield").public_key().xy(), key("attacker").public_key().xy());
    let mut bytes = good.clone();
    for half in [0..32, 32..64] {
        let at = bytes.windows(32).position(|w| w == &old[half.clone()]).unwrap();
        bytes[at..at + 32].copy_from_slice(&new[half]);
    }
    assert!(Evidence::parse(&bytes).is_ok());
    let appraisal = case.appraise_bytes(&bytes, &[]).appraisal;
    assert_eq!(appraisal.first_failure().unwrap().code, "SHEF-ATT-014");
}

#[test]
fn verified_evidence_says_what_was_appraised() {
    let case = Case::new(Layer::Shield);
    let bytes = case.evidence();
    let Some(Verified::Shield(verified)) = case.appraise_bytes(&bytes, &[]).verified else {
        panic!()
    };
    assert_eq!(*verified.claims(), case.claims.common);
    assert_eq!(Some(verified.shield()), case.claims.shield.as_ref());
    assert_eq!(*verified.digest(), evidence::digest(&bytes));
    assert_eq!(*verified.attestation_key(), key("ak").public_key());
    let info = verified.load_info("tenant");
    assert_eq!((info.evidence_digest, &info.nonce[..]), (evidence::digest(&bytes), &NONCE[..]));
}

#[test]
fn files_are_read_strictly() {
    let policy = Policy::strict("p", &[RootOfTrust::Simulated]);
    assert_eq!(Policy::from_toml(&policy.to_toml().unwrap()).unwrap(), policy);
    let short = "id = \"p\"\nroot_of_trust = [\"simulated\"]\nmin_kernel_svn = 1\n";
    let defaults = Policy::from_toml(short).unwrap();
    assert!(!defaults.allow_debug && !defaults.allow_seeded && defaults.bypass.is_empty());
    assert_eq!(defaults.entropy, AcceptedEntropy::Tested);
    for (text, accepted) in [
        (format!("{short}entropy = \"unmeasured\"\n"), AcceptedEntropy::Unmeasured),
        (format!("{short}entropy = \"tested\"\n"), AcceptedEntropy::Tested),
    ] {
        let policy = Policy::from_toml(&text).unwrap();
        assert_eq!(policy.entropy, accepted);
        assert_eq!(Policy::from_toml(&policy.to_toml().unwrap()).unwrap(), policy);
    }
    assert_eq!(defaults.states, ["fresh"]);
    assert_eq!(defaults.on_fault, ["shield", "halt"]);
    for (what, text) in [
        ("cut", "id = \"p".to_string()),
        ("empty", String::new()),
        ("unknown key", format!("{short}allow_all = true\n")),
        ("no kinds", short.replace("[\"simulated\"]", "[]")),
        ("kind that does not exist", short.replace("simulated", "hardware")),
        ("kinds missing", "id = \"p\"\nmin_kernel_svn = 1\n".into()),
        ("svn missing", "id = \"p\"\nroot_of_trust = [\"board\"]\n".into()),
        ("a source that no policy accepts", format!("{short}entropy = \"seeded\"\n")),
        ("a source as a truth value", format!("{short}entropy = true\n")),
        ("negative svn", short.replace("= 1", "= -1")),
        ("svn as text", short.replace("= 1", "= \"1\"")),
        ("state", format!("{short}states = [\"open\"]\n")),
        ("fault policy", format!("{short}on_fault = [\"ignore\"]\n")),
        ("device", format!("{short}devices = [\"01\"]\n")),
        ("a device that is none", format!("{short}revoked = [\"{}\"]\n", "xy".repeat(33))),
        ("key twice", format!("{short}id = \"q\"\n")),
    ] {
        assert_eq!(Policy::from_toml(&text).unwrap_err().code(), "SHEF-ATT-050", "{what}");
    }
    let error = Policy::from_toml(&format!("{short}allow_all = true\n")).unwrap_err().to_string();
    assert!(error.contains("line 4") && error.contains("allow_all"), "{error}");

    let reference = Case::new(Layer::Shield).reference;
    let text = reference.to_toml().unwrap();
    assert_eq!(ReferenceValues::from_toml(&text).unwrap(), reference);
    let json = serde_json::to_string(&reference).unwrap();
    assert_eq!(ReferenceValues::from_json(&json).unwrap(), reference);
    for bad in [
        text.replace("digest", "digset"),
        text.replacen("0101", "01", 1),
        text.replacen("0101", "zz01", 1),
        text + "more = 1\n",
    ] {
        assert_eq!(ReferenceValues::from_toml(&bad).unwrap_err().code(), "SHEF-ATT-051");
    }
    for bad in
        [format!("{json} "), json[..json.len() - 1].into(), format!("{json}{{}}"), "[]".into()]
    {
        assert_eq!(ReferenceValues::from_json(&bad).is_ok(), bad == format!("{json} "));
    }

    let anchor =
        TrustAnchor::new("maker", RootOfTrust::Board, true, Case::root("maker").der()).unwrap();
    let list = TrustAnchor::list_from_toml(&anchor.to_toml()).unwrap();
    assert_eq!(
        (list[0].name(), list[0].kind(), list[0].debug()),
        ("maker", RootOfTrust::Board, true)
    );
    assert_eq!(list[0].certificate().der(), anchor.certificate().der());
    for bad in [
        anchor.to_toml().replace("board", "boards"),
        anchor.to_toml().replacen("3082", "3083", 1),
        anchor.to_toml().replace("debug", "bug"),
    ] {
        assert_eq!(TrustAnchor::list_from_toml(&bad).unwrap_err().code(), "SHEF-ATT-052");
    }
    // A device certificate is not a root.
    let device = Case::new(Layer::Kernel).certificates()[1].clone();
    assert!(TrustAnchor::new("device", RootOfTrust::Board, false, &device).is_err());
}

#[test]
fn codes_are_unique_and_checks_have_them() {
    let mut ids: Vec<&str> = CODES.iter().map(|code| code.id).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
    for check in CheckId::all(Layer::Shield) {
        assert!(ids.contains(&check.code()), "{}", check.name());
    }
    let mut proto: Vec<&str> = shef_proto::CODES.iter().map(|code| code.id).collect();
    let all = proto.len();
    proto.sort_unstable();
    proto.dedup();
    assert_eq!(proto.len(), all);
    assert!(
        CODES
            .iter()
            .chain(shef_proto::CODES)
            .all(|code| !code.summary.is_empty() && !code.help.is_empty())
    );
}

#[test]
fn json_of_an_appraisal() {
    let mut case = Case::new(Layer::Shield);
    case.nonce = vec![0; 48];
    let json: serde_json::Value = serde_json::from_str(&case.appraise().to_json()).unwrap();
    assert_eq!(json["verdict"], "denied");
    assert_eq!(json["layer"], "shield");
    let nonce =
        json["checks"].as_array().unwrap().iter().find(|check| check["id"] == "nonce").unwrap();
    assert_eq!(nonce["code"], "SHEF-ATT-004");
    assert_eq!(nonce["passed"], false);
    assert_eq!(nonce["expected"], "0000000000000000...");
    assert_eq!(nonce["actual"], "4242424242424242...");
    assert_eq!(json["status"], "contraindicated");
    assert_eq!(json["vector"]["instance-identity"], 99);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// No change to the bytes of good evidence is accepted.
    #[test]
    fn garbled_evidence_denies(at in 0usize..2000, len in 1usize..40, noise in proptest::collection::vec(any::<u8>(), 40)) {
        let case = Case::new(Layer::Kernel);
        let good = case.evidence();
        let mut bytes = good.clone();
        let at = at % good.len();
        let end = (at + len).min(good.len());
        bytes[at..end].copy_from_slice(&noise[..end - at]);
        prop_assume!(bytes != good);
        prop_assert!(!case.appraise_bytes(&bytes, &[]).appraisal.accepted());
    }

    /// Removing a reference value never turns a denial into an acceptance; appraisal is
    /// deterministic.
    #[test]
    fn fewer_reference_values_never_help(kernels in any::<bool>(), shells in any::<bool>(), images in any::<bool>(), svn in 4u64..7) {
        let mut case = Case::new(Layer::Shield);
        case.policy.min_kernel_svn = svn;
        let before = case.appraise();
        prop_assert_eq!(&before, &case.appraise());
        let mut fewer = case.clone();
        if kernels { fewer.reference.kernels.clear(); }
        if shells { fewer.reference.shells.clear(); }
        if images { fewer.reference.images.clear(); }
        prop_assert!(before.accepted() || !fewer.appraise().accepted());
        prop_assert!(!(kernels || shells || images) || !fewer.appraise().accepted());
    }

    /// Noise is never evidence, and never a panic.
    #[test]
    fn noise_denies(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(!Case::new(Layer::Shield).appraise_bytes(&bytes, &[]).appraisal.accepted());
    }
}

#[test]
fn names_of_anchors_and_signers_are_read_back() {
    let root = Case::root("maker");
    for name in [
        "maker",
        "a\0b",
        "\u{1b}[2J",
        "say \"no\"",
        "c:\\x",
        "two\nlines",
        "'''\"\"\"",
        "Ger\u{e4}t",
    ] {
        let anchor = TrustAnchor::new(name, RootOfTrust::Board, false, root.der()).unwrap();
        let read = TrustAnchor::list_from_toml(&anchor.to_toml()).unwrap();
        assert_eq!(read[0].name(), name);
        let signer = CorimSigner::with_key(name, key("builder").public_key());
        assert_eq!(CorimSigner::list_from_toml(&signer.to_toml()).unwrap()[0].name(), name);
    }
}
