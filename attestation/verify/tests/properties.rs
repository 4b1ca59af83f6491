//! Properties of the appraisal: any changed byte denies, less knowledge never helps, and the same
//! inputs give the same answer.

use proptest::prelude::*;
use shef_fixtures::case::{Case, NOW};
use shef_proto::evidence::{Claims, DebugState, EntropySource, Evidence, Layer, ShieldState};
use shef_verify::ar4si::CLAIM_NAMES;
use shef_verify::{AppraisalRequest, Revocations, Status, TrustAnchor, TrustAnchors, appraise};

/// Rank of a status, best first.
fn rank(status: Status) -> u8 {
    match status {
        Status::Affirming => 0,
        Status::Warning => 1,
        Status::None => 2,
        Status::Contraindicated => 3,
    }
}

/// Every position, and every other value of a byte that is not only covered by a hash: header,
/// tags, first claims.
#[test]
fn any_single_byte_change_never_affirms() {
    for layer in [Layer::Kernel, Layer::Shield] {
        let case = Case::new(layer);
        let good = case.evidence();
        let anchors = TrustAnchors::new(vec![
            TrustAnchor::new("maker", case.anchor.0, false, Case::root("maker").der()).unwrap(),
        ]);
        let policy = case.appraisal_policy();
        let cache = shef_verify::MemoryChainCache::new(16);
        let request = |evidence: &[u8]| {
            let request = AppraisalRequest::new(
                evidence,
                &anchors,
                &case.reference,
                &policy,
                layer,
                &case.nonce,
                &case.audience,
                NOW,
            );
            appraise(&AppraisalRequest { chains: Some(&cache), ..request }).appraisal.status
        };
        assert_eq!(request(&good), Status::Affirming);
        let mut bytes = good.clone();
        for at in 0..good.len() {
            let values: Vec<u8> = if at < 24 { (1..=255).collect() } else { vec![1, 0x80, 0xff] };
            for value in values {
                bytes[at] = good[at] ^ value;
                assert!(rank(request(&bytes)) >= 2, "byte {at} xor {value:#04x}");
            }
            bytes[at] = good[at];
        }
        assert_eq!(request(&good), Status::Affirming, "a poisoned cache would show here");
    }
}

/// A case with several reference values, some of which match, and other options.
fn any_case() -> impl Strategy<Value = Case> {
    let layer = prop_oneof![Just(Layer::Kernel), Just(Layer::Shield)];
    (layer, 0u8..4, 0u8..3, 0u8..3, any::<[bool; 4]>(), 3u64..8).prop_map(
        |(layer, kernels, shells, images, flags, svn)| {
            let mut case = Case::new(layer);
            let [debug, seeded, bypass, keyed] = flags;
            let known = case.reference.clone();
            case.reference.kernels.clear();
            for n in 0..kernels {
                let mut kernel = known.kernels[0].clone();
                kernel.digest = [n; 32];
                case.reference.kernels.push(kernel);
            }
            for n in 0..shells {
                let mut shell = known.shells[0].clone();
                shell.digest = [n + 1; 32];
                case.reference.shells.push(shell);
            }
            for n in 0..images {
                let mut image = known.images[0].clone();
                image.svn += u64::from(n);
                case.reference.images.push(image);
            }
            case.policy.min_kernel_svn = svn;
            if debug {
                case.claims.common.debug = DebugState::Disabled;
                case.policy.allow_debug = true;
            }
            if seeded {
                case.claims.common.entropy = EntropySource::Seeded;
                case.policy.allow_seeded = true;
            }
            if let Some(shield) = &mut case.claims.shield {
                if bypass {
                    shield.bypass = vec!["public".into()];
                    case.policy.bypass = vec!["public".into()];
                }
                if keyed {
                    shield.state = ShieldState::Keyed([9; 32]);
                }
            }
            case
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// Removing any one reference value never improves the verdict, the status or any claim of the
    /// vector.
    #[test]
    fn removing_a_reference_value_never_improves(case in any_case(), at in any::<proptest::sample::Index>()) {
        let before = case.appraise();
        let r = &case.reference;
        let all = r.kernels.len() + r.shells.len() + r.images.len();
        let at = at.index(all.max(1));
        let mut fewer = case.clone();
        let (k, s) = (r.kernels.len(), r.shells.len());
        if at < k {
            fewer.reference.kernels.remove(at);
        } else if at < k + s {
            fewer.reference.shells.remove(at - k);
        } else if at < all {
            fewer.reference.images.remove(at - k - s);
        }
        let after = fewer.appraise();
        prop_assert!(rank(after.status) >= rank(before.status), "{:?} -> {:?}", before.status, after.status);
        prop_assert!(before.accepted() || !after.accepted());
        for (name, (old, new)) in CLAIM_NAMES.into_iter().zip(before.vector.0.into_iter().zip(after.vector.0)) {
            prop_assert!(new >= old, "{name}: {old} -> {new}");
        }
    }

    /// A longer revocation list never improves any of them either.
    #[test]
    fn revoking_never_improves(case in any_case(), kernel in any::<bool>(), device in any::<bool>()) {
        let before = case.appraise();
        let mut list = Revocations { issued: NOW, next_update: NOW, ..Revocations::default() };
        if kernel { list.kernels.insert("01".repeat(32)); }
        if device { list.devices.insert(hex::encode(case.claims.common.ueid)); }
        let after = Case { revocations: Some(list), ..case }.appraise();
        prop_assert!(rank(after.status) >= rank(before.status));
        prop_assert!(!(kernel || device) || !after.accepted());
    }

    /// The same inputs give the same answer, byte for byte; `Case` itself compares with and without
    /// a chain cache.
    #[test]
    fn appraisal_is_a_function_of_its_inputs(case in any_case()) {
        prop_assert_eq!(case.appraise(), case.appraise());
    }

    /// A written value reads back equal.
    #[test]
    fn evidence_is_read_back(case in any_case()) {
        prop_assert_eq!(&Claims::from_cbor(&case.claims.to_cbor()).unwrap(), &case.claims);
        let bytes = case.evidence();
        let read = Evidence::parse(&bytes).unwrap();
        prop_assert_eq!(read.bytes(), &bytes[..]);
        prop_assert_eq!(read.unverified_claims(), &case.claims);
    }
}
