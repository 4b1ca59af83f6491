//! Boot ROM and Security Kernel, as committed, complete both rounds on the Verilated subsystem,
//! from power-on to close record, before the verifier of the native kernel's tests.

mod device;

use device::*;
use shef_fixtures::world::*;
use shef_gen::secret::{SECRET_PACKAGE, secret_package};
use shef_proto::cert::Certificate;
use shef_proto::evidence::{AcceptedEntropy, EntropySource, Layer, RootOfTrust, ShieldState};
use shef_proto::image::Description;
use shef_proto::load::first_epochs;
use shef_proto::mailbox::{Answer, Request};
use shef_rtl::{DesignSpec, KernelStraps, Sim, build, fair_noise};
use std::path::Path;

#[test]
fn two_rounds_and_a_close_record() {
    let mut world = world();
    let key_box = world.key_box(3);
    let Answer::Loaded { image_digest, config_digest } = world.load(&key_box).unwrap() else {
        panic!()
    };
    assert_eq!((image_digest, config_digest), (world.vendor.image_digest(), config().digest()));
    assert_eq!(world.kernel.sim.environment.image, PLAINTEXT);

    let evidence = world.verified_shield();
    assert_eq!(evidence.shield_key().xy(), shield(&world).public.unwrap());
    let (message, keys) = evidence
        .seal_load_key(&config(), "owner", &first_epochs(&config(), 1), &mut entropy(5))
        .unwrap();
    shield(&world).take_load_key(&message).unwrap();
    world.policy.states = vec!["keyed".into()];
    assert_eq!(*world.verified_shield().state(), ShieldState::Keyed(keys.transcript().0));
    shield(&world).close(&[0x77; 88]);
    let Answer::CloseRecord(record) = world.call(&Request::CloseRecord).unwrap() else { panic!() };
    assert_eq!(evidence.verify_close(&record).unwrap().transcript, keys.transcript().0);
}

#[test]
fn cards_of_one_image_share_the_ueid_and_not_the_attestation_key() {
    let [first, second] = [2, 3].map(|seed| {
        let mut world = world_with(RootOfTrust::Provider, &description_for_firmware(), |device| {
            device.sim.environment.noise = fair_noise(seed);
        });
        let evidence = world.verified_kernel();
        assert_eq!(evidence.claims().root_of_trust, RootOfTrust::Provider);
        let Answer::Certificates(list) = world.call(&Request::Certificates).unwrap() else {
            panic!()
        };
        let [ak, device_id] = [0, 1].map(|at| Certificate::parse(&list[at]).unwrap());
        (*ak.key(), device_id.der().to_vec(), evidence.claims().ueid)
    });
    assert_eq!((&first.1, first.2), (&second.1, second.2));
    assert_ne!(first.0, second.0);
}

#[test]
fn a_providers_device_without_tested_entropy_does_not_boot() {
    for (seeded, unmeasured) in [(false, false), (true, false), (true, true)] {
        let mut firmware = device(RootOfTrust::Provider);
        let straps = KernelStraps { seeded, unmeasured, ..straps(RootOfTrust::Provider) };
        firmware.sim.strap(&straps).expect("straps");
        if !seeded {
            firmware.sim.environment.noise = Box::new(|_| Some(false));
        }
        firmware.sim.boot(LIMIT).expect("boot");
        assert_eq!(firmware.sim.alert(), 5, "seeded: {seeded}, unmeasured: {unmeasured}");
        for request in [
            Request::Status,
            Request::KernelEvidence { nonce: vec![0x77; 32], audience: AUDIENCE.into() },
        ] {
            let answer = Answer::decode(&firmware.answer(&request.encode())).expect("an answer");
            assert!(
                matches!(&answer, Answer::Error { code, .. } if code == "SHEF-KRN-006"),
                "{answer:?}"
            );
        }
    }
}

#[test]
fn an_unmeasured_source_gives_a_seed_only_to_an_image_that_accepts_it() {
    for accepted in [AcceptedEntropy::Tested, AcceptedEntropy::Unmeasured] {
        let image = Description { entropy: accepted, ..description_for_firmware() };
        let mut world = world_with(RootOfTrust::Provider, &image, |device| {
            let straps = KernelStraps { unmeasured: true, ..straps(RootOfTrust::Provider) };
            device.sim.strap(&straps).expect("straps");
        });
        let nonce = world.nonce();
        let evidence = world.evidence(Layer::Kernel, &nonce).unwrap();
        let denied = world.appraise(Layer::Kernel, &evidence, &nonce).appraisal;
        assert_eq!(denied.first_failure().unwrap().code, "SHEF-ATT-026");
        world.policy.entropy = AcceptedEntropy::Unmeasured;
        let key_box = world.key_box(3);
        world.load(&key_box).unwrap();
        if accepted == AcceptedEntropy::Unmeasured {
            let evidence = world.verified_shield();
            assert_eq!(evidence.claims().entropy, EntropySource::Unmeasured);
        } else {
            assert_eq!(world.code(&Request::NewSession), "SHEF-KRN-015");
            assert!(shield(&world).seeds_taken.is_empty());
        }
    }
}

#[test]
fn a_shell_takes_the_secret_of_an_image_from_its_package() {
    let uds = core::array::from_fn(|at| at as u8 + 1);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("image secret");
    std::fs::create_dir_all(&folder).expect("folder");
    std::fs::write(folder.join(format!("{SECRET_PACKAGE}.sv")), &*secret_package(&uds))
        .expect("package");
    let shell = "`default_nettype none\nmodule image_secret (\n  input wire logic clk_i, output logic [255:0] uds_o\n);\n  \
                 always_ff @(posedge clk_i) uds_o <= shef_image_secret_pkg::UDS;\nendmodule\n`default_nettype wire\n";
    std::fs::write(folder.join("image_secret.sv"), shell).expect("shell");
    let library = build(&DesignSpec::new("image_secret").search(&folder).deny_warnings())
        .expect("no warning of -Wall");
    let mut sim = Sim::new(&library).expect("instance");
    sim.tick();
    // As `KernelSim` sets uds_i.
    let port = sim.port_of("uds_o", 256).expect("port");
    assert_eq!(*sim.raw(port), uds);
}
