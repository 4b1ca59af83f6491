//! Boot ROM and Security Kernel, as committed, on the Verilated subsystem: both rounds, from
//! power-on to close record, before the verifier of the native kernel's tests.

mod device;

use device::common::*;
use device::*;
use shef_proto::evidence::ShieldState;
use shef_proto::load::first_epochs;
use shef_proto::mailbox::{Answer, Request};

#[test]
fn two_rounds_and_a_close_record() {
    let mut world = world();
    let key_box = world.key_box(3);
    let Answer::Loaded { image_digest, config_digest } = world.load(&key_box).unwrap() else { panic!() };
    assert_eq!((image_digest, config_digest), (world.vendor.image_digest(), config().digest()));
    assert_eq!(world.kernel.sim.around.image, PLAINTEXT);

    let evidence = world.verified_shield();
    assert_eq!(evidence.shield_key().xy(), shield(&world).public.unwrap());
    let (message, keys) = evidence.seal_load_key(&config(), "owner", &first_epochs(&config(), 1), &mut entropy(5)).unwrap();
    shield(&world).take_load_key(&message).unwrap();
    world.policy.states = vec!["keyed".into()];
    assert_eq!(*world.verified_shield().state(), ShieldState::Keyed(keys.transcript().0));
    shield(&world).close(&[0x77; 88]);
    let Answer::CloseRecord(record) = world.call(&Request::CloseRecord).unwrap() else { panic!() };
    assert_eq!(evidence.verify_close(&record).unwrap().transcript, keys.transcript().0);
}
