//! Boot ROM and Security Kernel, as committed, on the Verilated subsystem: both rounds, from
//! power-on to close record, before the verifier of the native kernel's tests.

#[path = "../../../attestation/kernel/tests/common/mod.rs"]
mod common;

use common::*;
use shef_gen::secret::{SECRET_PACKAGE, secret_package};
use shef_kernel::{KernelImage, Medium, SIGNATURE_FILE_LEN};
use shef_proto::cert::Certificate;
use shef_proto::evidence::{DebugState, RootOfTrust, ShieldState};
use shef_proto::load::first_epochs;
use shef_proto::mailbox::{Answer, Request};
use shef_rtl::{DesignSpec, KernelPort, KernelSim, KernelStraps, Library, Noise, Sim, build, fair_noise, kernel_spec};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

const IMAGE: &[u8] = include_bytes!("../../../attestation/firmware/kernel.img");
const SIGNATURE: &[u8; SIGNATURE_FILE_LEN] = include_bytes!("../../../attestation/firmware/kernel.sig");

fn library() -> &'static Library {
    static LIB: OnceLock<Library> = OnceLock::new();
    LIB.get_or_init(|| build(&kernel_spec(None).expect("sources").fast().savable()).expect("model"))
}

#[derive(Clone)]
struct Port(Arc<Mutex<FakeShield>>);

impl KernelPort for Port {
    fn read(&mut self, offset: u32) -> Option<u32> {
        Some(self.0.lock().unwrap().read(offset))
    }

    fn write(&mut self, offset: u32, value: u32) -> bool {
        self.0.lock().unwrap().write(offset, value)
    }
}

/// The subsystem, its cycles told where one looks (`--nocapture`).
struct Firmware {
    sim: KernelSim,
    shield: Port,
}

impl Answers for Firmware {
    fn answer(&mut self, message: &[u8]) -> Vec<u8> {
        let begin = self.sim.cycles();
        assert!(self.sim.send(message).expect("host port"));
        let answer = self.sim.receive(60_000_000).expect("host port");
        let answer = answer.unwrap_or_else(|| panic!("no answer; alert {}", self.sim.alert()));
        println!(
            "request {:02x?}: {} cycles, answer {} bytes {:02x?}",
            &message[..6.min(message.len())],
            self.sim.cycles() - begin,
            answer.len(),
            &answer[..answer.len().min(60)]
        );
        answer
    }
}

fn straps(kind: RootOfTrust) -> KernelStraps {
    let root = match kind {
        RootOfTrust::Simulated => 0,
        RootOfTrust::ShefBoot => 1,
        RootOfTrust::Board => 2,
        RootOfTrust::Provider => 3,
    };
    KernelStraps { uds: UDS, root, target: KernelStraps::name(TARGET), shell: SHELL, shell_flags: 0, debug: false, seeded: false }
}

/// A device with the committed image, in reset.
fn device(kind: RootOfTrust) -> Firmware {
    let mut sim = KernelSim::new(library(), &straps(kind)).expect("instance");
    let shield = Port(Arc::new(Mutex::new(FakeShield::power(config()))));
    sim.around.medium = Medium::build(IMAGE, SIGNATURE, &Manufacturer::new(1).certify(kind, false));
    sim.around.shield = Some(Box::new(shield.clone()));
    sim.around.fabric = Box::new(|image: &[u8]| image.starts_with(PLAINTEXT).then_some(DESIGN));
    Firmware { sim, shield }
}

/// A verifier that knows the committed image, and the device after boot.
fn world(kind: RootOfTrust, noise: Noise) -> World<Firmware> {
    let mut firmware = device(kind);
    firmware.sim.around.noise = noise;
    let cycles = firmware.sim.boot(60_000_000).expect("boot");
    println!("boot: {cycles} cycles");
    assert_eq!(firmware.sim.alert(), 0);
    let mut world =
        World::with(kind, DebugState::DisabledSinceBoot, &shef_proto::image::Description { min_kernel_svn: 1, ..description(3) }, |_| {});
    let (digest, svn) = (KernelImage::digest(IMAGE), KernelImage::parse(IMAGE).expect("an image").svn);
    world.reference.kernels = vec![shef_verify::KernelReference { name: "firmware".into(), digest, svn }];
    world.on(firmware)
}

fn shield(world: &World<Firmware>) -> MutexGuard<'_, FakeShield> {
    world.kernel.shield.0.lock().unwrap()
}

#[test]
fn two_rounds_and_a_close_record() {
    let mut world = world(RootOfTrust::ShefBoot, fair_noise(1));
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

#[test]
fn cards_of_one_image_share_the_ueid_and_not_the_attestation_key() {
    let [first, second] = [2, 3].map(|seed| {
        let mut world = world(RootOfTrust::Provider, fair_noise(seed));
        let evidence = world.verified_kernel();
        assert_eq!(evidence.claims().root_of_trust, RootOfTrust::Provider);
        let Answer::Certificates(list) = world.call(&Request::Certificates).unwrap() else { panic!() };
        let [ak, device_id] = [0, 1].map(|at| Certificate::parse(&list[at]).unwrap());
        (*ak.key(), device_id.der().to_vec(), evidence.claims().ueid)
    });
    assert_eq!((&first.1, first.2), (&second.1, second.2));
    assert_ne!(first.0, second.0);
}

#[test]
fn a_providers_device_without_tested_entropy_does_not_boot() {
    for seeded in [false, true] {
        let mut firmware = device(RootOfTrust::Provider);
        if seeded {
            firmware.sim.strap(&KernelStraps { seeded, ..straps(RootOfTrust::Provider) }).expect("straps");
        } else {
            firmware.sim.around.noise = Box::new(|_| Some(false));
        }
        firmware.sim.boot(60_000_000).expect("boot");
        assert_eq!(firmware.sim.alert(), 5, "seeded: {seeded}");
        for request in [Request::Status, Request::KernelEvidence { nonce: vec![0x77; 32], audience: AUDIENCE.into() }] {
            let answer = Answer::decode(&firmware.answer(&request.encode())).expect("an answer");
            assert!(matches!(&answer, Answer::Error { code, .. } if code == "SHEF-KRN-006"), "{answer:?}");
        }
    }
}

#[test]
fn a_shell_takes_the_secret_of_an_image_from_its_package() {
    let uds = core::array::from_fn(|at| at as u8 + 1);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("image secret");
    std::fs::create_dir_all(&folder).expect("folder");
    std::fs::write(folder.join(format!("{SECRET_PACKAGE}.sv")), &*secret_package(&uds)).expect("package");
    let shell = "`default_nettype none\nmodule image_secret (\n  input wire logic clk_i, output logic [255:0] uds_o\n);\n  \
                 always_ff @(posedge clk_i) uds_o <= shef_image_secret_pkg::UDS;\nendmodule\n`default_nettype wire\n";
    std::fs::write(folder.join("image_secret.sv"), shell).expect("shell");
    let library = build(&DesignSpec::new("image_secret").search(&folder).deny_warnings()).expect("no warning of -Wall");
    let mut sim = Sim::new(&library).expect("instance");
    sim.tick();
    // As `KernelSim` gives uds_i.
    let port = sim.port_of("uds_o", 256).expect("port");
    assert_eq!(*sim.raw(port), uds);
}
