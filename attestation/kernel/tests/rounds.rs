//! Both rounds from power-on to close record, and the kernel's refusals along the way.

use shef_fixtures::world::*;
use shef_kernel::{
    BootError, EntropyQuality, Kernel, KernelImage, Measurement, boot, device_id_key, identify,
};
use shef_proto::cert::Certificate;
use shef_proto::evidence::{
    AcceptedEntropy, DebugState, Evidence, Layer, RootOfTrust, ShieldState,
};
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::image::Description;
use shef_proto::load::first_epochs;
use shef_proto::mailbox::{Answer, KernelState, MAX_MESSAGE, Request};
use shef_proto::release::{KeyBox, ReleaseInfo};

#[test]
fn two_rounds_and_a_close_record() {
    let mut world = World::new();
    let key_box = world.key_box(3);
    let Answer::Loaded { image_digest, config_digest } = world.load(&key_box).unwrap() else {
        panic!()
    };
    assert_eq!(image_digest, world.vendor.image_digest());
    assert_eq!(config_digest, config().digest());
    assert_eq!(world.kernel.platform().loaded.as_deref(), Some(PLAINTEXT));

    let evidence = world.verified_shield();
    assert_eq!(evidence.shield_key().xy(), world.shield().public.unwrap());
    assert_eq!(*evidence.state(), ShieldState::Fresh);
    assert_eq!(evidence.shield().vendor, sha256(world.vendor.key.public_key().as_bytes()));
    let (message, keys) = evidence
        .seal_load_key(&config(), "owner", &first_epochs(&config(), 1), &mut entropy(5))
        .unwrap();
    let shield_keys = world.shield().take_load_key(&message).unwrap();
    assert_eq!(keys.transcript(), shield_keys.transcript());
    assert_eq!(keys.confirmation(), shield_keys.confirmation());

    world.policy.states = vec!["keyed".into()];
    let keyed = world.verified_shield();
    assert_eq!(*keyed.state(), ShieldState::Keyed(keys.transcript().0));
    assert_eq!(keyed.shield_key(), evidence.shield_key());
    // A keyed Shield gets no second Load Key.
    assert_eq!(
        keyed
            .seal_load_key(&config(), "owner", &first_epochs(&config(), 1), &mut entropy(5))
            .err()
            .unwrap()
            .code(),
        "SHEF-ATT-061"
    );

    assert_eq!(world.code(&Request::CloseRecord), "SHEF-KRN-014");
    world.shield().close(&[0x77; 88]);
    let Answer::CloseRecord(record) = world.call(&Request::CloseRecord).unwrap() else { panic!() };
    let opened = evidence.verify_close(&record).unwrap();
    assert_eq!((opened.transcript, opened.last), (keys.transcript().0, [0x77; 88]));
    for at in 0..record.len() {
        let mut changed = record.clone();
        changed[at] ^= 1;
        assert!(evidence.verify_close(&changed).is_err(), "byte {at}");
        assert!(evidence.verify_close(&record[..at]).is_err());
    }
    world.policy.states = vec!["closed".into()];
    assert_eq!(*world.verified_shield().state(), ShieldState::Closed(keys.transcript().0));

    // A second session: new seed, new key, new evidence.
    world.call(&Request::NewSession).unwrap();
    world.policy.states = vec!["fresh".into()];
    let second = world.verified_shield();
    assert_ne!(second.shield_key(), evidence.shield_key());
    let seeds = &world.shield().seeds_taken;
    assert_eq!(seeds.len(), 2);
    assert_ne!(seeds[0], seeds[1]);
    // The first session's Load Key is for an erased key.
    assert!(world.shield().take_load_key(&message).is_err());
}

#[test]
fn a_shield_reset_under_the_session_gets_a_new_seed() {
    let mut world = World::loaded();
    let first = world.verified_shield();
    world.call(&Request::Reset).unwrap();
    assert_eq!(world.code(&Request::NewSession), "SHEF-KRN-014");
    let mut world = World::loaded();
    world.verified_shield();
    let krn_wipe = 2;
    shef_kernel::Platform::krn_write(world.kernel.platform_mut(), 0, krn_wipe).unwrap();
    let second = world.verified_shield();
    assert_ne!(first.shield_key(), second.shield_key());
}

#[test]
fn evidence_of_a_fresh_shield_may_be_asked_again() {
    let mut world = World::loaded();
    let (a, b) = (world.verified_shield(), world.verified_shield());
    assert_eq!(a.shield_key(), b.shield_key());
    assert_eq!(world.shield().seeds_taken.len(), 1);
    assert_eq!(world.code(&Request::NewSession), "SHEF-KRN-014");
}

#[test]
fn the_shield_key_is_the_one_of_the_seed() {
    let mut world = World::loaded();
    let evidence = world.verified_shield();
    let seed = world.shield().seeds_taken[0];
    assert_eq!(*evidence.shield_key(), derive_key_pair(&seed).1);
    // The seed depends on the device secret, not only on entropy.
    let mut same_entropy = entropy(99);
    let mut drawn = [0; 32];
    for _ in 0..4 {
        shef_proto::entropy::Entropy::fill(&mut same_entropy, &mut drawn);
        assert_ne!(seed, drawn);
    }
}

#[test]
fn a_wrong_shield_key_is_not_signed() {
    let mut world = World::loaded();
    world.shield().wrong_key = true;
    let request = Request::ShieldEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() };
    assert_eq!(world.code(&request), "SHEF-KRN-030");
    assert_eq!(world.shield().state, 1, "wiped");
    // A key that changes afterwards is refused too.
    let mut world = World::loaded();
    world.verified_shield();
    world.shield().public = Some(derive_key_pair(b"host").1.xy());
    assert_eq!(world.code(&request), "SHEF-KRN-030");
}

#[test]
fn a_seed_that_does_not_arrive_whole_is_no_seed() {
    let mut world = World::loaded();
    let request = Request::ShieldEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() };
    for word in [0, 7] {
        world.shield().lost_word = Some(word);
        assert_eq!(world.code(&request), "SHEF-KRN-010", "word {word}");
        assert_eq!((world.shield().state, world.shield().seeds_taken.len()), (1, 0), "word {word}");
    }
    world.shield().lost_word = None;
    world.verified_shield();
}

#[test]
fn a_shield_that_hangs_is_reported() {
    let mut world = World::loaded();
    world.shield().stuck = true;
    assert_eq!(
        world.code(&Request::ShieldEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() }),
        "SHEF-KRN-031"
    );
}

#[test]
fn no_seed_without_tested_entropy() {
    let mut world = World::loaded();
    world.kernel.platform_mut().quality = EntropyQuality::Failed;
    let request = Request::ShieldEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() };
    assert_eq!(world.code(&request), "SHEF-KRN-011");
    assert!(world.shield().seeds_taken.is_empty());
    assert_eq!(
        world.code(&Request::KernelEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() }),
        "SHEF-KRN-011"
    );
    world.kernel.platform_mut().quality = EntropyQuality::Seeded;
    assert_eq!(world.code(&request), "SHEF-KRN-012");
}

/// The image `accepted` names, and a card whose noise source was never measured.
fn unmeasured(kind: RootOfTrust, accepted: AcceptedEntropy) -> World {
    let description = Description { entropy: accepted, ..description(3) };
    World::with(kind, DebugState::DisabledSinceBoot, &description, |platform| {
        platform.quality = EntropyQuality::Unmeasured;
    })
}

/// Codes of the failed checks.
fn failures(world: &World, layer: Layer, evidence: &[u8], nonce: &[u8]) -> Vec<&'static str> {
    let appraisal = world.appraise(layer, evidence, nonce).appraisal;
    appraisal.checks.iter().filter(|check| !check.passed).map(|check| check.code).collect()
}

#[test]
fn an_unmeasured_source_gives_a_seed_only_to_an_image_that_accepts_it() {
    for kind in [RootOfTrust::Provider, RootOfTrust::ShefBoot] {
        for accepted in [AcceptedEntropy::Tested, AcceptedEntropy::Unmeasured] {
            let mut world = unmeasured(kind, accepted);
            world.policy.entropy = AcceptedEntropy::Unmeasured;
            let key_box = world.key_box(3);
            world.load(&key_box).unwrap();
            let shield = Request::ShieldEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() };
            if accepted == AcceptedEntropy::Unmeasured {
                world.verified_shield();
                assert_eq!(world.shield().seeds_taken.len(), 1);
                continue;
            }
            for request in [Request::NewSession, shield] {
                let error = world.call(&request).unwrap_err();
                assert_eq!(error.kernel_code(), Some("SHEF-KRN-015"));
                assert!(error.to_string().contains("entropy = \"unmeasured\""), "{error}");
                assert_eq!((world.shield().state, world.shield().seeds_taken.len()), (1, 0));
            }
            // The same image in a card with a measured source.
            world.kernel.platform_mut().quality = EntropyQuality::Tested;
            world.verified_shield();
        }
    }
}

#[test]
fn an_image_that_accepts_an_unmeasured_source_accepts_no_worse_one() {
    let mut world = unmeasured(RootOfTrust::ShefBoot, AcceptedEntropy::Unmeasured);
    world.policy.entropy = AcceptedEntropy::Unmeasured;
    let key_box = world.key_box(3);
    world.load(&key_box).unwrap();
    for (quality, code) in
        [(EntropyQuality::Seeded, "SHEF-KRN-012"), (EntropyQuality::Failed, "SHEF-KRN-011")]
    {
        world.kernel.platform_mut().quality = quality;
        assert_eq!(world.code(&Request::NewSession), code);
        assert!(world.shield().seeds_taken.is_empty());
    }
}

#[test]
fn an_unmeasured_source_shows_in_evidence_and_a_policy_must_name_it() {
    let mut world = unmeasured(RootOfTrust::Provider, AcceptedEntropy::Unmeasured);
    for layer in [Layer::Kernel, Layer::Shield] {
        let nonce = world.nonce();
        world.policy.entropy = AcceptedEntropy::Unmeasured;
        let evidence = world.evidence(layer, &nonce).unwrap();
        let accepted = world.appraise(layer, &evidence, &nonce).appraisal;
        assert!(accepted.accepted(), "{layer:?}");
        assert!(accepted.warnings.iter().any(|text| text.contains("never measured")), "{layer:?}");
        world.policy.entropy = AcceptedEntropy::Tested;
        world.policy.allow_seeded = true;
        assert_eq!(failures(&world, layer, &evidence, &nonce), ["SHEF-ATT-026"], "{layer:?}");
        world.policy.allow_seeded = false;
        world.policy.entropy = AcceptedEntropy::Unmeasured;
        if layer == Layer::Kernel {
            let key_box = world.key_box(3);
            world.load(&key_box).unwrap();
        }
    }
}

#[test]
fn a_seed_shows_in_simulated_evidence() {
    let change = |platform: &mut FakePlatform| platform.quality = EntropyQuality::Seeded;
    let mut world =
        World::with(RootOfTrust::Simulated, DebugState::DisabledSinceBoot, &description(3), change);
    let nonce = world.nonce();
    let evidence = world.evidence(Layer::Kernel, &nonce).unwrap();
    let denied = world.appraise(Layer::Kernel, &evidence, &nonce).appraisal;
    assert_eq!(denied.first_failure().unwrap().code, "SHEF-ATT-022");
    world.policy.allow_seeded = true;
    let accepted = world.appraise(Layer::Kernel, &evidence, &nonce).appraisal;
    assert!(accepted.accepted());
    assert_eq!(accepted.warnings.len(), 2);
}

/// A device of kind `kind` whose entropy source starts with `seed`.
fn device_with(
    kind: RootOfTrust,
    seed: u64,
    quality: EntropyQuality,
) -> Result<Kernel<FakePlatform>, BootError> {
    let mut platform =
        FakePlatform::new(&Manufacturer::new(1), kind, DebugState::DisabledSinceBoot);
    (platform.entropy, platform.quality) = (entropy(seed), quality);
    boot(platform, &kernel_image(2))
}

fn certificates(kernel: &mut Kernel<FakePlatform>) -> [Certificate; 2] {
    let Answer::Certificates(list) =
        Answer::decode(&kernel.handle(&Request::Certificates.encode())).unwrap()
    else {
        panic!()
    };
    list.iter().map(|der| Certificate::parse(der).unwrap()).collect::<Vec<_>>().try_into().unwrap()
}

#[test]
fn cards_of_one_image_share_the_ueid_and_not_the_attestation_key() {
    let kind = RootOfTrust::Provider;
    let mut world = World::with(kind, DebugState::DisabledSinceBoot, &description(3), |_| {});
    let mut verified = Vec::new();
    for seed in [1, 2] {
        world.kernel = device_with(kind, seed, EntropyQuality::Tested).unwrap();
        let key_box = world.key_box(3);
        world.load(&key_box).unwrap();
        verified.push((world.verified_shield(), certificates(&mut world.kernel)));
    }
    // An unmeasured source enters the key in the same way.
    let [one, two] = [1, 2].map(|seed| {
        let mut kernel = device_with(kind, seed, EntropyQuality::Unmeasured).unwrap();
        *certificates(&mut kernel)[0].key()
    });
    assert_ne!(one, two);
    let [(first, [ak, id]), (second, [other_ak, other_id])] = verified.try_into().unwrap();
    assert_eq!((id.der(), first.claims().ueid), (other_id.der(), second.claims().ueid));
    assert_ne!(ak.key(), other_ak.key());
    assert_ne!(first.shield_key(), second.shield_key());
    // The key needs the secret too: the same noise with another secret gives another key.
    let again = certificates(&mut device_with(kind, 1, EntropyQuality::Tested).unwrap());
    assert_eq!(again[0].key(), ak.key());
    let mut bytes = [0; 32];
    shef_proto::entropy::Entropy::fill(&mut entropy(1), &mut bytes);
    assert_ne!(derive_key_pair(&bytes).1, *ak.key());
}

#[test]
fn a_providers_device_without_tested_entropy_does_not_boot() {
    for (quality, says) in
        [(EntropyQuality::Seeded, "seeded"), (EntropyQuality::Failed, "fails its test")]
    {
        let error = device_with(RootOfTrust::Provider, 1, quality).err().unwrap();
        assert_eq!(error.code(), "SHEF-KRN-006");
        assert!(
            error.to_string().contains(says) && error.to_string().contains("provider"),
            "{error}"
        );
    }
}

#[test]
fn other_kinds_draw_nothing_at_boot() {
    for kind in RootOfTrust::ALL.into_iter().filter(|kind| *kind != RootOfTrust::Provider) {
        let mut aks =
            [(1, EntropyQuality::Tested), (2, EntropyQuality::Failed)].map(|(seed, quality)| {
                let mut kernel = device_with(kind, seed, quality).unwrap();
                let (mut next, mut first) = ([0; 32], [0; 32]);
                shef_proto::entropy::Entropy::fill(&mut kernel.platform_mut().entropy, &mut next);
                shef_proto::entropy::Entropy::fill(&mut entropy(seed), &mut first);
                assert_eq!(next, first, "{kind:?}");
                *certificates(&mut kernel)[0].key()
            });
        let [first, second] = &mut aks;
        assert_eq!(first, second, "{kind:?}");
    }
}

#[test]
fn evidence_of_a_providers_device_needs_its_anchor_and_its_policy() {
    let mut world =
        World::with(RootOfTrust::Provider, DebugState::DisabledSinceBoot, &description(3), |_| {});
    let nonce = world.nonce();
    let evidence = world.evidence(Layer::Kernel, &nonce).unwrap();
    let codes = |world: &World| failures(world, Layer::Kernel, &evidence, &nonce);
    assert_eq!(codes(&world), [""; 0]);
    for kind in RootOfTrust::ALL.into_iter().filter(|kind| *kind != RootOfTrust::Provider) {
        world.anchors = vec![world.manufacturer.anchor(kind, false)];
        assert_eq!(codes(&world), ["SHEF-ATT-013"], "{kind:?}");
        world.anchors = vec![world.manufacturer.anchor(RootOfTrust::Provider, false)];
        world.policy = shef_verify::Policy::strict("test", &[kind]);
        assert_eq!(codes(&world), ["SHEF-ATT-020"], "{kind:?}");
        world.policy = shef_verify::Policy::strict("test", &[RootOfTrust::Provider]);
    }
    assert_eq!(codes(&world), [""; 0]);
}

#[test]
fn debug_devices_have_other_keys_and_show_it() {
    let mut world =
        World::with(RootOfTrust::Simulated, DebugState::Enabled, &description(3), |_| {});
    let nonce = world.nonce();
    let evidence = world.evidence(Layer::Kernel, &nonce).unwrap();
    let denied = world.appraise(Layer::Kernel, &evidence, &nonce).appraisal;
    assert_eq!(denied.first_failure().unwrap().code, "SHEF-ATT-021");
    // Registered as a production anchor, it exposes the contradiction.
    world.policy.allow_debug = true;
    assert!(world.appraise(Layer::Kernel, &evidence, &nonce).appraisal.accepted());
    world.anchors = vec![world.manufacturer.anchor(RootOfTrust::Simulated, false)];
    let denied = world.appraise(Layer::Kernel, &evidence, &nonce).appraisal;
    assert_eq!(denied.first_failure().unwrap().code, "SHEF-ATT-017");

    let mut keys = Vec::new();
    for kind in RootOfTrust::ALL {
        for debug in [false, true] {
            keys.push(*device_id_key(&UDS, kind, debug).public_key().as_bytes());
        }
    }
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 8);
}

#[test]
fn a_production_certificate_does_not_boot_a_debug_device() {
    let manufacturer = Manufacturer::new(1);
    let mut platform =
        FakePlatform::new(&manufacturer, RootOfTrust::ShefBoot, DebugState::DisabledSinceBoot);
    platform.debug = DebugState::Enabled;
    let error = boot(platform, &kernel_image(2)).err().unwrap();
    assert_eq!(
        (error.code(), error),
        ("SHEF-KRN-003", BootError::DeviceIdCertificate { what: "another key" })
    );
}

#[test]
fn debug_turned_on_ends_everything() {
    let mut world = World::loaded();
    world.verified_shield();
    world.kernel.platform_mut().debug = DebugState::Enabled;
    let request = Request::ShieldEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() };
    assert_eq!(world.code(&request), "SHEF-KRN-032");
    assert_eq!(world.shield().state, 1);
    assert!(world.kernel.platform().loaded.is_none());
    // It stays halted.
    world.kernel.platform_mut().debug = DebugState::DisabledSinceBoot;
    assert_eq!(world.code(&request), "SHEF-KRN-032");
    let Answer::Status(status) = world.call(&Request::Status).unwrap() else { panic!() };
    assert_eq!(status.state, KernelState::Halted);
}

#[test]
fn the_device_secret_is_taken_once() {
    let manufacturer = Manufacturer::new(1);
    let platform =
        FakePlatform::new(&manufacturer, RootOfTrust::ShefBoot, DebugState::DisabledSinceBoot);
    let platform = boot(platform, &kernel_image(2)).unwrap().into_platform();
    assert_eq!(boot(platform, &kernel_image(2)).err().unwrap().code(), "SHEF-KRN-001");
}

#[test]
fn another_kernel_has_another_attestation_key() {
    let ak = |image: &[u8]| {
        let manufacturer = Manufacturer::new(1);
        let platform =
            FakePlatform::new(&manufacturer, RootOfTrust::ShefBoot, DebugState::DisabledSinceBoot);
        let mut kernel = boot(platform, image).unwrap();
        let Answer::Certificates(list) =
            Answer::decode(&kernel.handle(&Request::Certificates.encode())).unwrap()
        else {
            panic!()
        };
        let ak = Certificate::parse(&list[0]).unwrap();
        assert_eq!(ak.tcb_info().unwrap().digest, KernelImage::digest(image));
        *ak.key()
    };
    let changed =
        KernelImage { svn: 2, version: "0.1.0", code: b"the code of the kerne1" }.to_bytes();
    assert_eq!(ak(&kernel_image(2)), ak(&kernel_image(2)));
    assert_ne!(ak(&kernel_image(2)), ak(&changed));
    assert_ne!(ak(&kernel_image(2)), ak(&kernel_image(3)));
}

#[test]
fn kernel_images_are_parsed_strictly() {
    let image = kernel_image(2);
    let head = 13 + 8 + 2 + 5;
    for end in 0..=head {
        assert!(KernelImage::parse(&image[..end]).is_err(), "{end}");
    }
    assert!(KernelImage::parse(&image[..head + 1]).is_ok());
    let mut long = image.clone();
    long[21] = 0xff;
    assert!(KernelImage::parse(&long).is_err());
    let mut text = image;
    text[23] = 0xff;
    assert!(KernelImage::parse(&text).is_err());
}

// ---- image ----

#[test]
fn a_load_needs_kernel_evidence() {
    let mut world = World::new();
    let key_box = world.key_box(3);
    world.call(&Request::Reset).unwrap();
    assert_eq!(world.load(&key_box).unwrap_err().kernel_code(), Some("SHEF-KRN-014"));
}

#[test]
fn a_key_box_answers_one_piece_of_evidence() {
    let mut world = World::new();
    let old = world.key_box(3);
    let new = world.key_box(3);
    // Old evidence, another key.
    assert_eq!(world.load(&old).unwrap_err().kernel_code(), Some("SHEF-PRO-050"));
    // The refusal has no effect.
    world.load(&new).unwrap();
    // The KEM key is erased with the load.
    assert_eq!(world.load(&new).unwrap_err().kernel_code(), Some("SHEF-KRN-014"));
}

#[test]
fn bindings_of_a_key_box() {
    let mut world = World::new();
    let secret = world.vendor.secret(3);
    let verified = world.verified_kernel();
    let honest = verified.release_info("vendor", "image", 1, [9; 16]);
    let sealed = |info: &ReleaseInfo| {
        KeyBox::seal(info, &secret.to_bytes(), &mut entropy(3)).unwrap().to_cbor()
    };
    let cases: Vec<(&str, ReleaseInfo)> = vec![
        ("layer", ReleaseInfo { layer: Layer::Shield, ..honest.clone() }),
        ("evidence", ReleaseInfo { evidence_digest: [0; 32], ..honest.clone() }),
        ("nonce", ReleaseInfo { nonce: vec![0; 48], ..honest.clone() }),
        ("recipient", ReleaseInfo { recipient: derive_key_pair(b"other").1, ..honest.clone() }),
    ];
    for (what, info) in cases {
        assert_eq!(
            world.load(&sealed(&info)).unwrap_err().kernel_code(),
            Some("SHEF-PRO-050"),
            "{what}"
        );
    }
    // HPKE binds tenant, key id, version and receipt: changing them afterwards breaks the seal.
    let key_box = sealed(&honest);
    let at = key_box.windows(6).position(|w| w == b"vendor").unwrap();
    let mut renamed = key_box.clone();
    renamed[at] ^= 1;
    assert_eq!(world.load(&renamed).unwrap_err().kernel_code(), Some("SHEF-PRO-271"));
    let mut changed = 0;
    for at in 0..key_box.len() {
        let mut bytes = key_box.clone();
        bytes[at] ^= 0x10;
        let request = Request::LoadBegin { key_box: bytes, header_len: 10 };
        changed += usize::from(world.call(&request).is_err());
    }
    assert_eq!(changed, key_box.len(), "every changed byte is refused");
    world.load(&key_box).unwrap();
}

#[test]
fn an_image_below_the_least_svn_is_refused() {
    let mut world = World::new();
    let key_box = world.key_box(4);
    assert_eq!(world.load(&key_box).unwrap_err().kernel_code(), Some("SHEF-KRN-021"));
    assert_eq!(world.kernel.platform().loads, 0);
}

#[test]
fn an_image_that_wants_a_newer_kernel_is_refused() {
    let mut newer = description(3);
    newer.min_kernel_svn = 3;
    let mut world =
        World::with(RootOfTrust::ShefBoot, DebugState::DisabledSinceBoot, &newer, |_| {});
    let key_box = world.key_box(3);
    assert_eq!(world.load(&key_box).unwrap_err().kernel_code(), Some("SHEF-KRN-022"));
}

#[test]
fn an_image_for_another_target_is_refused() {
    let mut other = description(3);
    other.target = "somewhere".into();
    let mut world =
        World::with(RootOfTrust::ShefBoot, DebugState::DisabledSinceBoot, &other, |_| {});
    let key_box = world.key_box(3);
    assert_eq!(world.load(&key_box).unwrap_err().kernel_code(), Some("SHEF-KRN-020"));
}

#[test]
fn an_image_of_another_vendor_is_refused() {
    let mut world = World::new();
    let mut secret = world.vendor.secret(3);
    secret.vendor = shef_proto::cose::SigningKey::derive(b"another vendor").public_key();
    let verified = world.verified_kernel();
    let key_box = verified
        .release_image_key("vendor", "image", 1, [9; 16], &secret, &mut entropy(3))
        .unwrap()
        .to_cbor();
    assert_eq!(world.load(&key_box).unwrap_err().kernel_code(), Some("SHEF-PRO-012"));
}

#[test]
fn changed_or_shuffled_chunks_are_refused_and_the_honest_load_follows() {
    let mut world = World::new();
    let key_box = world.key_box(3);
    let requests = shef_proto::mailbox::load_requests(&world.vendor.container, &key_box);
    let first_chunk = requests.iter().position(|r| matches!(r, Request::LoadChunk { .. })).unwrap();
    for (change, code) in [
        ("byte", "SHEF-PRO-041"),
        ("order", "SHEF-PRO-043"),
        ("twice", "SHEF-PRO-043"),
        ("missing", "SHEF-PRO-043"),
        ("swapped bytes", "SHEF-PRO-041"),
    ] {
        let mut tampered = requests.clone();
        match change {
            "byte" => {
                let Request::LoadChunk { bytes, .. } = &mut tampered[first_chunk + 1] else {
                    panic!()
                };
                bytes[7] ^= 1;
            }
            "order" => tampered.swap(first_chunk, first_chunk + 1),
            "twice" => tampered.insert(first_chunk, tampered[first_chunk].clone()),
            "missing" => drop(tampered.remove(tampered.len() - 2)),
            _ => {
                let (Request::LoadChunk { bytes: a, .. }, Request::LoadChunk { bytes: b, .. }) =
                    (tampered[first_chunk].clone(), tampered[first_chunk + 1].clone())
                else {
                    panic!()
                };
                tampered[first_chunk] = Request::LoadChunk { index: 0, bytes: b };
                tampered[first_chunk + 1] = Request::LoadChunk { index: 1, bytes: a };
            }
        }
        let error = tampered.iter().find_map(|request| world.call(request).err()).unwrap();
        assert_eq!(error.kernel_code(), Some(code), "{change}");
        // No unchecked byte reached the fabric, and checked ones are cleared.
        let platform = world.kernel.platform();
        assert_eq!(platform.loads, 0);
        assert!(
            platform.coming.is_empty() && PLAINTEXT.starts_with(&platform.programmed),
            "{change}"
        );
    }
    world.load(&key_box).unwrap();
    assert_eq!(world.kernel.platform().loads, 1);
}

#[test]
fn a_changed_header_is_refused() {
    let mut world = World::new();
    let key_box = world.key_box(3);
    let header = world.vendor.container.header().bytes().to_vec();
    for at in (0..header.len()).step_by(7) {
        let mut bytes = header.clone();
        bytes[at] ^= 0x20;
        world
            .call(&Request::LoadBegin { key_box: key_box.clone(), header_len: bytes.len() })
            .unwrap();
        assert!(world.call(&Request::LoadHeader { offset: 0, bytes }).is_err(), "byte {at}");
        assert_eq!(world.code(&Request::LoadFinish), "SHEF-KRN-014");
    }
    assert_eq!(world.code(&Request::LoadChunk { index: 0, bytes: vec![0; 20] }), "SHEF-KRN-014");
    assert_eq!(world.kernel.platform().loads, 0);
}

#[test]
fn header_parts_come_in_order() {
    let mut world = World::new();
    let key_box = world.key_box(3);
    let header = world.vendor.container.header().bytes().to_vec();
    world.call(&Request::LoadBegin { key_box, header_len: header.len() }).unwrap();
    assert_eq!(
        world.code(&Request::LoadHeader { offset: 1, bytes: header[1..].to_vec() }),
        "SHEF-KRN-014"
    );
    world.call(&Request::LoadHeader { offset: 0, bytes: header[..100].to_vec() }).unwrap();
    assert_eq!(
        world.code(&Request::LoadHeader { offset: 0, bytes: header[..100].to_vec() }),
        "SHEF-KRN-014"
    );
    assert_eq!(
        world.code(&Request::LoadHeader { offset: 100, bytes: [&header[100..], &[0]].concat() }),
        "SHEF-KRN-014"
    );
    world.call(&Request::LoadHeader { offset: 100, bytes: header[100..].to_vec() }).unwrap();
}

#[test]
fn a_design_or_configuration_other_than_the_headers_is_refused() {
    let mut world = World::new();
    world.kernel.platform_mut().design = Some([0; 32]);
    let key_box = world.key_box(3);
    assert_eq!(world.load(&key_box).unwrap_err().kernel_code(), Some("SHEF-KRN-023"));
    assert!(world.kernel.platform().loaded.is_none(), "unloaded again");
    world.kernel.platform_mut().design = Some(DESIGN);
    world.shield().config_digest = Some([1; 32]);
    assert_eq!(world.load(&key_box).unwrap_err().kernel_code(), Some("SHEF-KRN-024"));
    world.shield().config_digest = None;
    world.load(&key_box).unwrap();
    // Measured again for evidence.
    world.kernel.platform_mut().design = Some([0; 32]);
    assert_eq!(
        world.code(&Request::ShieldEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() }),
        "SHEF-KRN-023"
    );
}

#[test]
fn shells_that_open_the_fabric_are_refused() {
    for which in 0..3 {
        let mut world = World::new();
        let key_box = world.key_box(3);
        let shell = &mut world.kernel.platform_mut().shell;
        match which {
            0 => shell.config_port = true,
            1 => shell.readback = true,
            _ => shell.debug_bridge = true,
        }
        assert_eq!(world.load(&key_box).unwrap_err().kernel_code(), Some("SHEF-KRN-013"));
        assert!(world.kernel.platform().programmed.is_empty(), "refused before the first chunk");
        assert_eq!(
            world.code(&Request::KernelEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() }),
            "SHEF-KRN-013"
        );
        assert_eq!(world.kernel.platform().loads, 0);
    }
}

#[test]
fn a_second_load_ends_the_first_session() {
    let mut world = World::loaded();
    let first = world.verified_shield();
    let key_box = world.key_box(3);
    world.load(&key_box).unwrap();
    assert_eq!(world.shield().state, 1);
    assert_ne!(first.shield_key(), world.verified_shield().shield_key());
}

#[test]
fn shield_evidence_needs_an_image() {
    let mut world = World::new();
    for request in [
        Request::ShieldEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() },
        Request::NewSession,
        Request::CloseRecord,
    ] {
        assert_eq!(world.code(&request), "SHEF-KRN-014");
    }
}

// ---- mailbox ----

#[test]
fn messages_are_bounded_and_strict() {
    let mut world = World::loaded();
    let refused = |world: &mut World, bytes: &[u8]| match Answer::decode(
        &world.kernel.handle(bytes),
    )
    .unwrap()
    {
        Answer::Error { code, .. } => code,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(&mut world, &vec![0; MAX_MESSAGE + 1]), "SHEF-PRO-003");
    assert_eq!(refused(&mut world, &[]), "SHEF-PRO-001");
    assert_eq!(refused(&mut world, &[0x82, 0x18, 0x99, 0xa0]), "SHEF-PRO-060");
    assert_eq!(refused(&mut world, &[0x82, 0x01, 0xa0, 0x00]), "SHEF-PRO-004");
    assert_eq!(refused(&mut world, &[0x82, 0x01, 0xa1, 0x01, 0x01]), "SHEF-PRO-007");
    assert_eq!(refused(&mut world, &[0x82, 0x18, 0x01, 0xa0]), "SHEF-PRO-002");
    let request =
        Request::ShieldEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() }.encode();
    for end in 0..request.len() {
        refused(&mut world, &request[..end]);
    }
    for nonce in [vec![], vec![1; 31], vec![1; 65]] {
        assert_eq!(
            world.code(&Request::ShieldEvidence { nonce, audience: AUDIENCE.into() }),
            "SHEF-PRO-006"
        );
    }
    assert_eq!(
        world.code(&Request::ShieldEvidence { nonce: vec![1; 48], audience: "a".repeat(257) }),
        "SHEF-PRO-006"
    );
}

#[test]
fn the_largest_messages_fit() {
    let mut large = description(3);
    large.chunk_size = 64;
    let mut world =
        World::with(RootOfTrust::ShefBoot, DebugState::DisabledSinceBoot, &large, |_| {});
    assert!(world.vendor.container.header().bytes().len() > 4096, "more than one part");
    let key_box = world.key_box(3);
    world.load(&key_box).unwrap();
    let nonce = vec![1; 64];
    let request = Request::ShieldEvidence { nonce, audience: "a".repeat(256) };
    assert!(world.kernel.handle(&request.encode()).len() <= MAX_MESSAGE);
}

#[test]
fn registers_are_those_of_the_map() {
    let text = include_str!("../../../shell-rtl/regs/ctl.toml");
    let map: toml::Value = toml::from_str(text).unwrap();
    let krn = map["addrmap"]
        .as_array()
        .unwrap()
        .iter()
        .find(|m| m["name"].as_str() == Some("krn"))
        .unwrap();
    let mut found = std::collections::BTreeMap::new();
    for kind in ["reg", "mem"] {
        for entry in krn[kind].as_array().unwrap() {
            found.insert(
                entry["name"].as_str().unwrap().to_string(),
                entry["offset"].as_integer().unwrap(),
            );
        }
    }
    // The same numbers that the kernel and the test's Shield use.
    let expected = [
        ("KRN_CTRL", 0x000),
        ("KRN_STATUS", 0x004),
        ("KRN_SEED", 0x020),
        ("KRN_PUBKEY", 0x040),
        ("KRN_T", 0x080),
        ("KRN_CONFIG_DIGEST", 0x0a0),
        ("KRN_LAST", 0x100),
    ];
    assert_eq!(
        found,
        expected.into_iter().map(|(name, offset)| (name.to_string(), offset)).collect()
    );
}

#[test]
fn evidence_names_what_was_loaded() {
    let mut world = World::loaded();
    let nonce = world.nonce();
    let bytes = world.evidence(Layer::Shield, &nonce).unwrap();
    let evidence = Evidence::parse(&bytes).unwrap();
    let shield = evidence.unverified_claims().shield.as_ref().unwrap();
    assert_eq!(shield.image_digest, world.vendor.image_digest());
    assert_eq!(shield.image_svn, 3);
    assert_eq!(shield.design_digest, DESIGN);
    assert_eq!(evidence.x5chain().len(), 2);
    // The output contains no secret of the device.
    let seed = world.shield().seeds_taken[0];
    let secrets = [&UDS[..], &world.vendor.image_key, &seed];
    for secret in secrets {
        assert!(!bytes.windows(16).any(|window| secret.windows(16).any(|s| s == window)));
    }
}

#[test]
fn every_error_code_is_listed() {
    let listed: Vec<&str> = shef_kernel::CODES.iter().map(|code| code.id).collect();
    let mut unique = listed.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), listed.len());
    for error in [
        BootError::UdsLocked.code(),
        "SHEF-KRN-002",
        "SHEF-KRN-003",
        "SHEF-KRN-004",
        "SHEF-KRN-005",
        "SHEF-KRN-006",
    ] {
        assert!(listed.contains(&error));
    }
    let source = include_str!("../src/error.rs");
    for part in source.split("\"SHEF-KRN-").skip(1) {
        let id = format!("SHEF-KRN-{}", &part[..3]);
        assert!(listed.contains(&id.as_str()), "{id}");
    }
}

/// A certificate that is too long for the kernel is refused with a reason, before the hand-over.
#[test]
fn a_certificate_that_does_not_fit_is_refused_before_there_is_a_secret() {
    // All parts of variable size have their maximum length.
    let measured = Measurement { digest: [0xff; 32], svn: u64::MAX, version: &"v".repeat(32) };
    let mut seen = [false; 2];
    // The largest size of an identity besides the certificate and its subject's name, and the
    // largest size of these that is accepted.
    let (mut rest, mut taken) = (0, 0);
    let manufacturer = Manufacturer::new(1);
    for (kind, subject) in RootOfTrust::ALL
        .into_iter()
        .flat_map(|kind| (50..1450).step_by(9).map(move |subject| (kind, subject)))
    {
        let device_id = device_id_key(&UDS, kind, true).public_key();
        let mut platform = FakePlatform::new(&manufacturer, kind, DebugState::Enabled);
        platform.target = "t".repeat(32);
        platform.certificate = shef_proto::cert::issue_signer(
            &manufacturer.key,
            &manufacturer.root,
            &device_id,
            &"x".repeat(subject),
            0,
            1,
        );
        let certificate = Certificate::parse(&platform.certificate).unwrap();
        let of_the_host = certificate.der().len() + certificate.subject().len();
        match identify(&mut platform, &measured) {
            Ok(identity) => {
                let len = identity.to_bytes().len();
                assert!(len <= shef_kernel::IDENTITY_MAX, "{subject}");
                (rest, taken) = (rest.max(len - of_the_host), taken.max(of_the_host));
                seen[0] = true;
            }
            Err(error) => {
                assert_eq!(error, BootError::DeviceIdCertificate { what: "too long" });
                assert!(platform.uds.is_some(), "{subject}");
                seen[1] = true;
            }
        }
    }
    assert_eq!(seen, [true; 2]);
    // The limit refuses few certificates that would fit.
    assert!(taken + rest + 48 > shef_kernel::IDENTITY_MAX, "{taken} taken, {rest} beside them");
}
