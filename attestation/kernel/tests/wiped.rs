//! The kernel wipes a Shield that is not clean before a session begins.

use shef_fixtures::world::{AUDIENCE, World};
use shef_proto::evidence::{Evidence, Layer, ShieldState};
use shef_proto::mailbox::{Answer, Request};

#[test]
fn a_stopped_shield_is_wiped_before_it_gets_a_seed() {
    for state in [1, 5] {
        let mut world = World::loaded();
        let before = world.shield().wipes;
        (world.shield().state, world.shield().stopped) = (state, true);
        assert_eq!(world.call(&Request::NewSession).unwrap(), Answer::Done);
        assert_eq!(
            (world.shield().wipes - before, world.shield().stopped, world.shield().state),
            (1, false, 3),
            "state {state}"
        );
        assert_eq!(world.shield().seeds_taken.len(), 1);
        world.verified_shield();
    }
    // evidence that hands over a seed automatically does the same
    let mut world = World::loaded();
    let before = world.shield().wipes;
    world.shield().stopped = true;
    world.verified_shield();
    assert_eq!((world.shield().wipes - before, world.shield().stopped), (1, false));
    // and no unnecessary wipe happens
    let mut world = World::loaded();
    let before = world.shield().wipes;
    world.call(&Request::NewSession).unwrap();
    assert_eq!(world.shield().wipes, before);
}

#[test]
fn a_shield_that_stays_stopped_gets_no_seed() {
    let mut world = World::loaded();
    (world.shield().stopped, world.shield().dead_port) = (true, true);
    assert_eq!(world.code(&Request::NewSession), "SHEF-KRN-034");
    assert!(world.shield().seeds_taken.is_empty());
    let nonce = world.nonce();
    assert!(world.evidence(shef_proto::evidence::Layer::Shield, &nonce).is_err());
    assert!(world.shield().seeds_taken.is_empty());
}

/// No session begins on a Shield that stops before its evidence either: it is wiped, and the next
/// session is clean.
#[test]
fn a_shield_that_stops_before_its_evidence_vouches_for_nothing() {
    let mut world = World::loaded();
    world.shield().stops_in_derive = true;
    assert_eq!(world.code(&Request::NewSession), "SHEF-KRN-034");
    assert_eq!((world.shield().state, world.shield().stopped), (1, false));
    world.call(&Request::NewSession).unwrap();
    world.shield().stopped = true;
    let nonce = world.nonce();
    assert!(world.evidence(shef_proto::evidence::Layer::Shield, &nonce).is_err());
    assert_eq!((world.shield().state, world.shield().stopped), (1, false));
    world.verified_shield();
}

#[test]
fn an_accelerator_that_is_not_cleared_is_told() {
    let mut world = World::loaded();
    world.shield().uncleared = true;
    assert_eq!(world.code(&Request::NewSession), "SHEF-KRN-033");
    let nonce = world.nonce();
    assert!(
        world.evidence(shef_proto::evidence::Layer::Shield, &nonce).is_err(),
        "no key is shown, nothing is signed"
    );
    world.shield().uncleared = false;
    world.call(&Request::NewSession).unwrap();
    world.verified_shield();
}

/// CLOSED appears before the last message.
#[test]
fn the_end_of_the_session_before_is_waited_for() {
    let mut world = World::loaded();
    (world.shield().state, world.shield().ending, world.shield().stopped) = (5, 5, true);
    assert_eq!(world.call(&Request::NewSession).unwrap(), Answer::Done);
    assert_eq!((world.shield().hurried, world.shield().seeds_taken.len()), (0, 1));
    // but not forever
    let mut world = World::loaded();
    (world.shield().state, world.shield().ending) = (5, usize::MAX);
    assert_eq!(world.code(&Request::NewSession), "SHEF-KRN-031");
    assert_eq!((world.shield().hurried, world.shield().seeds_taken.len()), (0, 0));
}

/// If the Shield cannot be wiped, the kernel clears the fabric, and reports an error if that fails.
#[test]
fn a_shield_that_takes_no_wipe_is_unloaded() {
    let evidence = Request::ShieldEvidence { nonce: vec![1; 48], audience: AUDIENCE.into() };
    let wrong_key = |world: &mut World| world.shield().wrong_key = true;
    let stuck = |world: &mut World| world.shield().stuck = true;
    let stopped = |world: &mut World| {
        world.call(&Request::NewSession).unwrap();
        world.shield().stopped = true;
    };
    type Spoil = fn(&mut World);
    let cases: [(Spoil, &str); 3] =
        [(wrong_key, "SHEF-KRN-030"), (stuck, "SHEF-KRN-031"), (stopped, "SHEF-KRN-034")];
    for (spoil, code) in cases {
        // The Shield is wiped and keeps its image,
        let mut world = World::loaded();
        spoil(&mut world);
        let before = world.shield().wipes;
        assert_eq!(world.code(&evidence), code);
        assert_eq!((world.shield().wipes - before, world.shield().state), (1, 1), "{code}");
        assert!(world.kernel.platform().loaded.is_some(), "{code}");
        // or it is not wiped, and its image is cleared,
        let mut world = World::loaded();
        spoil(&mut world);
        world.shield().deaf = true;
        assert_eq!(world.code(&evidence), code);
        assert!(world.kernel.platform().loaded.is_none(), "{code}");
        // unless the fabric cannot be cleared.
        let mut world = World::loaded();
        spoil(&mut world);
        world.shield().deaf = true;
        world.kernel.platform_mut().not_cleared = true;
        assert_eq!(world.code(&evidence), "SHEF-KRN-010", "{code}");
    }
}

#[test]
fn a_stopped_shield_that_takes_no_wipe_gets_no_seed() {
    // From a finished session: it stays closed.
    let mut world = World::loaded();
    (world.shield().state, world.shield().stopped, world.shield().deaf) = (5, true, true);
    assert_eq!(world.code(&Request::NewSession), "SHEF-KRN-031");
    assert!(world.shield().seeds_taken.is_empty());
    // A Shield in a scrub that never ends, or that is stopped after it.
    let mut world = World::loaded();
    world.shield().state = 0;
    let error = world.call(&Request::NewSession).unwrap_err();
    assert_eq!(error.kernel_code(), Some("SHEF-KRN-031"));
    assert!(error.to_string().contains("did not become empty"), "{error}");
    assert!(world.shield().seeds_taken.is_empty());
    let mut world = World::loaded();
    (world.shield().state, world.shield().scrubs) = (0, 3);
    (world.shield().stopped, world.shield().dead_port) = (true, true);
    assert_eq!(world.code(&Request::NewSession), "SHEF-KRN-034");
    assert!(world.shield().seeds_taken.is_empty());
}

/// State and transcript are a consistent snapshot.
#[test]
fn a_load_key_between_two_reads_is_seen_whole() {
    let mut world = World::loaded();
    world.call(&Request::NewSession).unwrap();
    world.shield().then = Some(4);
    let nonce = world.nonce();
    let evidence = world.evidence(Layer::Shield, &nonce).unwrap();
    let claims = Evidence::parse(&evidence).unwrap();
    let state = claims.unverified_claims().shield.as_ref().unwrap().state;
    assert_eq!(state, ShieldState::Keyed([0x7e; 32]));
}
