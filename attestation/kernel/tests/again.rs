//! The kernel repeats its checks before it signs, and erases finished state: keys, sessions and
//! partial images.

use shef_fixtures::world::*;
use shef_kernel::EntropyQuality;
use shef_proto::evidence::{
    AcceptedEntropy, DebugState, EntropySource, Evidence, Layer, RootOfTrust,
};
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::image::Description;
use shef_proto::load::first_epochs;
use shef_proto::mailbox::{Answer, MailboxError, Request, load_requests};

fn shield_evidence() -> Request {
    Request::ShieldEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() }
}

fn kernel_evidence() -> Request {
    Request::KernelEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() }
}

/// A device whose Shield took a Load Key.
fn keyed() -> World {
    let mut world = World::loaded();
    let evidence = world.verified_shield();
    let (message, _) = evidence
        .seal_load_key(&config(), "owner", &first_epochs(&config(), 1), &mut entropy(5))
        .unwrap();
    world.shield().take_load_key(&message).unwrap();
    world
}

/// A device with a closed session and an available close record.
fn closed() -> World {
    let mut world = keyed();
    world.shield().close(&[0x77; 88]);
    world
}

/// A load that stops after its first chunk.
fn half_loaded() -> (World, Vec<u8>) {
    let mut world = World::new();
    let key_box = world.key_box(3);
    for request in load_requests(&world.vendor.container.clone(), &key_box) {
        world.call(&request).unwrap();
        if matches!(request, Request::LoadChunk { .. }) {
            break;
        }
    }
    assert!(!world.kernel.platform().coming.is_empty());
    (world, key_box)
}

// ---- repeated checks ----

#[test]
fn the_key_of_a_keyed_shield_is_compared_again() {
    let mut world = keyed();
    world.policy.states = vec!["keyed".into()];
    world.verified_shield();
    world.shield().public = Some(derive_key_pair(b"host").1.xy());
    assert_eq!(world.code(&shield_evidence()), "SHEF-KRN-030");
}

#[test]
fn configuration_and_design_are_compared_again_for_each_piece_of_evidence() {
    for make in [World::loaded as fn() -> World, keyed, closed] {
        let mut world = make();
        world.call(&shield_evidence()).unwrap();
        world.shield().config_digest = Some([1; 32]);
        assert_eq!(world.code(&shield_evidence()), "SHEF-KRN-024");
        world.shield().config_digest = None;
        world.kernel.platform_mut().design = None;
        assert_eq!(world.code(&shield_evidence()), "SHEF-KRN-023");
        world.kernel.platform_mut().design = Some(DESIGN);
        world.call(&shield_evidence()).unwrap();
    }
}

/// Also at the end of a load: the shell may have changed since it began.
#[test]
fn the_shell_is_looked_at_again() {
    let opened = |world: &mut World| world.kernel.platform_mut().shell.readback = true;
    let mut world = World::loaded();
    world.call(&shield_evidence()).unwrap();
    opened(&mut world);
    assert_eq!(world.code(&shield_evidence()), "SHEF-KRN-013");
    // Evidence has the current measurement of the shell.
    let mut world = World::loaded();
    world.kernel.platform_mut().shell.digest = [9; 32];
    let nonce = world.nonce();
    let evidence = world.evidence(Layer::Shield, &nonce).unwrap();
    assert_eq!(
        Evidence::parse(&evidence).unwrap().unverified_claims().common.shell_digest,
        [9; 32]
    );

    let mut world = World::new();
    let key_box = world.key_box(3);
    let requests = load_requests(&world.vendor.container.clone(), &key_box);
    let (last, all) = requests.split_last().unwrap();
    all.iter().for_each(|request| drop(world.call(request).unwrap()));
    opened(&mut world);
    assert_eq!(world.code(last), "SHEF-KRN-013");
    assert!(world.kernel.platform().loaded.is_none() && world.kernel.platform().coming.is_empty());
}

#[test]
fn debug_ends_every_request_that_needs_a_key() {
    let requests = |key_box: Vec<u8>| {
        [
            Request::CloseRecord,
            shield_evidence(),
            kernel_evidence(),
            Request::NewSession,
            Request::LoadBegin { key_box, header_len: 10 },
            Request::LoadHeader { offset: 0, bytes: vec![0] },
            Request::LoadChunk { index: 0, bytes: vec![0; 20] },
            Request::LoadFinish,
        ]
    };
    for which in 0..requests(Vec::new()).len() {
        let mut world = closed();
        let key_box = world.key_box(3);
        assert!(matches!(world.call(&Request::CloseRecord), Ok(Answer::CloseRecord(_))));
        world.kernel.platform_mut().debug = DebugState::Enabled;
        let request = &requests(key_box)[which];
        assert_eq!(world.code(request), "SHEF-KRN-032", "{request:?}");
        assert!(world.kernel.platform().loaded.is_none(), "{request:?}");
    }
}

#[test]
fn seeded_randomness_shows_in_every_piece_of_evidence() {
    let unmeasured = Description { entropy: AcceptedEntropy::Unmeasured, ..description(3) };
    for (quality, source) in [
        (EntropyQuality::Seeded, EntropySource::Seeded),
        (EntropyQuality::Unmeasured, EntropySource::Unmeasured),
        (EntropyQuality::Tested, EntropySource::Tested),
    ] {
        let change = |platform: &mut FakePlatform| platform.quality = quality;
        let mut world =
            World::with(RootOfTrust::Simulated, DebugState::DisabledSinceBoot, &unmeasured, change);
        world.policy.allow_seeded = true;
        world.policy.entropy = AcceptedEntropy::Unmeasured;
        let key_box = world.key_box(3);
        world.load(&key_box).unwrap();
        for layer in [Layer::Kernel, Layer::Shield] {
            let nonce = world.nonce();
            let evidence = world.evidence(layer, &nonce).unwrap();
            let found = Evidence::parse(&evidence).unwrap().unverified_claims().common.entropy;
            assert_eq!(found, source, "{layer:?}");
        }
    }
    // Evidence reports the source of the session's seed, whatever the source's later quality is.
    for (quality, source) in [
        (EntropyQuality::Seeded, EntropySource::Seeded),
        (EntropyQuality::Unmeasured, EntropySource::Unmeasured),
    ] {
        let change = |platform: &mut FakePlatform| platform.quality = quality;
        let mut world =
            World::with(RootOfTrust::Simulated, DebugState::DisabledSinceBoot, &unmeasured, change);
        world.policy.allow_seeded = true;
        world.policy.entropy = AcceptedEntropy::Unmeasured;
        let key_box = world.key_box(3);
        world.load(&key_box).unwrap();
        world.call(&Request::NewSession).unwrap();
        world.kernel.platform_mut().quality = EntropyQuality::Tested;
        let nonce = world.nonce();
        let evidence = world.evidence(Layer::Shield, &nonce).unwrap();
        let found = Evidence::parse(&evidence).unwrap().unverified_claims().common.entropy;
        assert_eq!(found, source);
    }
}

// ---- erased state ----

#[test]
fn the_key_of_older_evidence_is_gone() {
    // A failed evidence request leaves no key either.
    let mut world = World::new();
    let key_box = world.key_box(3);
    world.kernel.platform_mut().quality = EntropyQuality::Failed;
    assert_eq!(world.code(&kernel_evidence()), "SHEF-KRN-011");
    assert_eq!(world.load(&key_box).unwrap_err().kernel_code(), Some("SHEF-KRN-014"));
    // A load has used the key.
    let mut world = World::new();
    let key_box = world.key_box(3);
    world.load(&key_box).unwrap();
    assert_eq!(world.load(&key_box).unwrap_err().kernel_code(), Some("SHEF-KRN-014"));
    // Reset and debug erase it.
    let mut world = World::new();
    let key_box = world.key_box(3);
    world.call(&Request::Reset).unwrap();
    assert_eq!(world.load(&key_box).unwrap_err().kernel_code(), Some("SHEF-KRN-014"));
}

#[test]
fn an_image_that_is_not_whole_does_not_stay_in_the_fabric() {
    let refused = |answer: Result<Answer, MailboxError>| {
        answer.unwrap_err().kernel_code().unwrap().to_string()
    };
    let empty = |world: &World| {
        world.kernel.platform().coming.is_empty() && world.kernel.platform().loaded.is_none()
    };
    // A new load, a reset, an end before the last chunk.
    let (mut world, key_box) = half_loaded();
    world.call(&Request::LoadBegin { key_box, header_len: 10 }).unwrap();
    assert!(empty(&world));
    let (mut world, _) = half_loaded();
    world.call(&Request::Reset).unwrap();
    assert!(empty(&world));
    assert_eq!(refused(world.call(&Request::LoadFinish)), "SHEF-KRN-014");
    let (mut world, _) = half_loaded();
    assert_eq!(refused(world.call(&Request::LoadFinish)), "SHEF-PRO-043");
    assert!(empty(&world));
    // A key box that does not open also ends a load.
    let (mut world, mut key_box) = half_loaded();
    *key_box.last_mut().unwrap() ^= 1;
    world.call(&Request::LoadBegin { key_box, header_len: 10 }).unwrap_err();
    assert!(empty(&world));
    assert_eq!(
        refused(world.call(&Request::LoadChunk { index: 1, bytes: vec![0; 20] })),
        "SHEF-KRN-014"
    );
    // Debug.
    let (mut world, _) = half_loaded();
    world.kernel.platform_mut().debug = DebugState::Enabled;
    assert_eq!(refused(world.call(&Request::LoadFinish)), "SHEF-KRN-032");
    assert!(empty(&world));
}

/// A new load wipes the previous image, even if the load never completes.
#[test]
fn the_image_before_is_gone_when_the_next_one_begins() {
    let mut world = closed();
    let key_box = world.key_box(3);
    for request in load_requests(&world.vendor.container.clone(), &key_box) {
        if matches!(request, Request::LoadChunk { .. }) {
            break;
        }
        world.call(&request).unwrap();
    }
    assert!(world.kernel.platform().loaded.is_none());
    for request in [Request::CloseRecord, shield_evidence(), Request::NewSession] {
        assert_eq!(world.code(&request), "SHEF-KRN-014", "{request:?}");
    }
}

/// If drawing a new seed fails, the kernel still erases the last session. It signs no record for a
/// Shield that it may already have wiped.
#[test]
fn the_session_before_is_forgotten() {
    // No entropy for the next session.
    let mut world = closed();
    world.kernel.platform_mut().quality = EntropyQuality::Failed;
    assert_eq!(world.code(&Request::NewSession), "SHEF-KRN-011");
    assert_eq!(world.code(&Request::CloseRecord), "SHEF-KRN-014");
    assert_eq!(world.code(&shield_evidence()), "SHEF-KRN-014");
    // A Shield that stays stopped.
    let mut world = closed();
    (world.shield().stopped, world.shield().dead_port) = (true, true);
    assert_eq!(world.code(&Request::NewSession), "SHEF-KRN-034");
    world.shield().close(&[0x78; 88]);
    assert_eq!(world.code(&Request::CloseRecord), "SHEF-KRN-014");
    // A Shield that stopped before its evidence and is wiped.
    let mut world = World::loaded();
    world.call(&Request::NewSession).unwrap();
    world.shield().stopped = true;
    assert_eq!(world.code(&shield_evidence()), "SHEF-KRN-034");
    world.shield().close(&[0x79; 88]);
    assert_eq!(world.code(&Request::CloseRecord), "SHEF-KRN-014");
}

// ---- a fabric that cannot be cleared ----

#[test]
fn a_fabric_that_is_not_cleared_is_told_and_nothing_is_loaded_into_it() {
    let stuck = |world: &mut World| world.kernel.platform_mut().not_cleared = true;
    // Reset.
    let mut world = closed();
    stuck(&mut world);
    assert_eq!(world.code(&Request::Reset), "SHEF-KRN-010");
    for request in [Request::CloseRecord, shield_evidence(), Request::NewSession] {
        assert_eq!(world.code(&request), "SHEF-KRN-014", "{request:?}");
    }
    // Each reset and each load retries it.
    assert!(world.kernel.platform().loaded.is_some());
    let key_box = world.key_box(3);
    stuck(&mut world);
    assert_eq!(world.load(&key_box).unwrap_err().kernel_code(), Some("SHEF-KRN-010"));
    assert!(world.kernel.platform().loaded.is_some() && world.kernel.platform().coming.is_empty());
    world.call(&Request::Reset).unwrap();
    assert!(world.kernel.platform().loaded.is_none());
    // Then it succeeds.
    stuck(&mut world);
    world.call(&Request::Reset).unwrap();
    world.kernel.platform_mut().not_cleared = false;
    let key_box = world.key_box(3);
    world.load(&key_box).unwrap();

    // A load refused at a chunk, at its end, and one followed by another load.
    let (mut world, key_box) = half_loaded();
    stuck(&mut world);
    assert_eq!(world.code(&Request::LoadChunk { index: 0, bytes: vec![0; 20] }), "SHEF-KRN-010");
    assert!(!world.kernel.platform().coming.is_empty());
    world.load(&key_box).unwrap();
    let (mut world, _) = half_loaded();
    stuck(&mut world);
    assert_eq!(world.code(&Request::LoadFinish), "SHEF-KRN-010");
    let (mut world, key_box) = half_loaded();
    stuck(&mut world);
    assert_eq!(world.code(&Request::LoadBegin { key_box, header_len: 10 }), "SHEF-KRN-010");

    // After debug, the next request clears the fabric; no request succeeds.
    let mut world = closed();
    stuck(&mut world);
    world.kernel.platform_mut().debug = DebugState::Enabled;
    assert_eq!(world.code(&Request::CloseRecord), "SHEF-KRN-010");
    assert_eq!(world.code(&Request::CloseRecord), "SHEF-KRN-032");
    assert!(world.kernel.platform().loaded.is_none());
}
