//! A value one beyond a limit is refused, and a failed operation has no effect.

use shef_fixtures::world::*;
use shef_kernel::{Identity, KernelImage, Measurement, identify};
use shef_proto::cose::MAX_X5CHAIN;
use shef_proto::evidence::{DebugState, RootOfTrust};
use shef_proto::mailbox::{Answer, KernelState, Request, load_requests};

#[test]
fn a_version_of_33_bytes_is_no_version() {
    let image = |len| KernelImage { svn: 1, version: &"v".repeat(len), code: b"code" }.to_bytes();
    assert_eq!(KernelImage::parse(&image(32)).unwrap().version.len(), 32);
    assert_eq!(KernelImage::parse(&image(33)).err().unwrap().code(), "SHEF-KRN-002");
}

#[test]
fn an_identity_has_its_members_and_no_more() {
    let mut platform =
        FakePlatform::new(&Manufacturer::new(1), RootOfTrust::Board, DebugState::DisabledSinceBoot);
    let bytes = identify(&mut platform, &Measurement { digest: [1; 32], svn: 2, version: "0.1.0" })
        .unwrap()
        .to_bytes();
    Identity::from_bytes(&bytes).unwrap();
    // A map of eleven members; the fourth is a list of two certificates.
    assert_eq!(bytes[0], 0xab);
    let more = [&[0xac], &bytes[1..], &[12, 0]].concat();
    assert!(Identity::from_bytes(&more).is_err());
    let list = bytes.windows(3).position(|window| window == [4, 0x82, 0x59]).unwrap();
    for (count, fits) in [(MAX_X5CHAIN, true), (MAX_X5CHAIN + 1, false)] {
        let head = [4, 0x80 + count as u8];
        let chain = [&bytes[..list], &head, &vec![0x40; count - 2], &bytes[list + 2..]].concat();
        assert_eq!(Identity::from_bytes(&chain).is_ok(), fits, "{count}");
    }
}

/// Each hardware operation fails once: the request is refused, and the next load is complete.
#[test]
fn an_operation_that_fails_refuses_its_request() {
    for operation in ["begin", "program", "finish"] {
        let mut world = World::new();
        let key_box = world.key_box(3);
        world.kernel.platform_mut().fails = Some(operation);
        assert_eq!(
            world.load(&key_box).unwrap_err().kernel_code(),
            Some("SHEF-KRN-010"),
            "{operation}"
        );
        let platform = world.kernel.platform();
        assert!(
            platform.loaded.is_none() && platform.coming.is_empty() && platform.fails.is_none(),
            "{operation}"
        );
        world.load(&key_box).unwrap();
        world.verified_shield();
    }
}

#[test]
fn a_session_that_is_not_over_gets_no_seed() {
    let mut world = World::loaded();
    world.call(&Request::NewSession).unwrap();
    for state in [3, 4] {
        world.shield().state = state;
        assert_eq!(world.code(&Request::NewSession), "SHEF-KRN-014", "state {state}");
        assert_eq!(world.shield().seeds_taken.len(), 1, "state {state}");
    }
}

#[test]
fn status_is_what_the_kernel_does() {
    let state = |world: &mut World| {
        let Answer::Status(status) = world.call(&Request::Status).unwrap() else { panic!() };
        (status.state, status.accelerator)
    };
    let mut world = World::new();
    let key_box = world.key_box(3);
    assert_eq!(state(&mut world), (KernelState::Idle, None));
    for request in load_requests(&world.vendor.container.clone(), &key_box) {
        world.call(&request).unwrap();
        if request != Request::LoadFinish {
            assert_eq!(state(&mut world), (KernelState::Loading, None));
        }
    }
    assert_eq!(state(&mut world), (KernelState::Loaded, Some("digits".into())));
    world.kernel.platform_mut().debug = DebugState::Enabled;
    world.code(&Request::LoadFinish);
    assert_eq!(state(&mut world), (KernelState::Halted, None));
}

/// An empty header has no expected part.
#[test]
fn a_header_of_no_bytes_is_none() {
    let mut world = World::new();
    let key_box = world.key_box(3);
    world.call(&Request::LoadBegin { key_box, header_len: 0 }).unwrap();
    for offset in [0, 1] {
        assert_eq!(world.code(&Request::LoadHeader { offset, bytes: vec![0] }), "SHEF-KRN-014");
    }
}

#[test]
fn a_shield_that_does_not_come_out_of_reset_ends_the_load() {
    let mut world = World::new();
    let key_box = world.key_box(3);
    let requests = load_requests(&world.vendor.container.clone(), &key_box);
    let (finish, before) = requests.split_last().unwrap();
    before.iter().for_each(|request| drop(world.call(request).unwrap()));
    world.shield().state = 0;
    assert_eq!(world.code(finish), "SHEF-KRN-031");
    assert!(world.kernel.platform().loaded.is_none());
    world.load(&key_box).unwrap();
}
