//! What the kernel does about a Shield that is not clean when a session is to begin.

mod common;

use common::World;
use shef_proto::mailbox::{Answer, Request};

#[test]
fn a_stopped_shield_is_wiped_before_it_gets_a_seed() {
    for state in [1, 5] {
        let mut world = World::loaded();
        let before = world.shield().wipes;
        (world.shield().state, world.shield().stopped) = (state, true);
        assert_eq!(world.call(&Request::NewSession).unwrap(), Answer::Done);
        assert_eq!((world.shield().wipes - before, world.shield().stopped, world.shield().state), (1, false, 3), "state {state}");
        assert_eq!(world.shield().seeds_taken.len(), 1);
        world.verified_shield();
    }
    // evidence that hands over a seed by itself does the same
    let mut world = World::loaded();
    let before = world.shield().wipes;
    world.shield().stopped = true;
    world.verified_shield();
    assert_eq!((world.shield().wipes - before, world.shield().stopped), (1, false));
    // and nothing is wiped without need
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

/// Nor does one that stops before its evidence was given: it is wiped, and the next session is
/// clean.
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
    assert!(world.evidence(shef_proto::evidence::Layer::Shield, &nonce).is_err(), "no key is shown, nothing is signed");
    world.shield().uncleared = false;
    world.call(&Request::NewSession).unwrap();
    world.verified_shield();
}

/// CLOSED shows before the last message does.
#[test]
fn the_end_of_the_session_before_is_waited_for() {
    let mut world = World::loaded();
    (world.shield().state, world.shield().ending, world.shield().stopped) = (5, 5, true);
    assert_eq!(world.call(&Request::NewSession).unwrap(), Answer::Done);
    assert_eq!((world.shield().hurried, world.shield().seeds_taken.len()), (0, 1));
    // and not for ever
    let mut world = World::loaded();
    (world.shield().state, world.shield().ending) = (5, usize::MAX);
    assert_eq!(world.code(&Request::NewSession), "SHEF-KRN-031");
    assert_eq!((world.shield().hurried, world.shield().seeds_taken.len()), (0, 0));
}
