//! Boot ROM and Security Kernel, as committed, on the Verilated subsystem: both rounds, from
//! power-on to close record, before the verifier of the native kernel's tests.

#[path = "../../../attestation/kernel/tests/common/mod.rs"]
mod common;

use common::*;
use shef_kernel::{KernelImage, Medium, SIGNATURE_FILE_LEN};
use shef_proto::evidence::{DebugState, RootOfTrust, ShieldState};
use shef_proto::load::first_epochs;
use shef_proto::mailbox::{Answer, Request};
use shef_rtl::{KernelPort, KernelSim, KernelStraps, Library, build, kernel_spec};
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

/// A device with this medium, in reset.
fn device(medium: Vec<u8>) -> Firmware {
    let straps =
        KernelStraps { uds: UDS, root: 1, target: KernelStraps::name(TARGET), shell: SHELL, shell_flags: 0, debug: false, seeded: false };
    let mut sim = KernelSim::new(library(), &straps).expect("instance");
    let shield = Port(Arc::new(Mutex::new(FakeShield::power(config()))));
    sim.around.medium = medium;
    sim.around.shield = Some(Box::new(shield.clone()));
    sim.around.fabric = Box::new(|image: &[u8]| image.starts_with(PLAINTEXT).then_some(DESIGN));
    Firmware { sim, shield }
}

fn medium(image: &[u8]) -> Vec<u8> {
    Medium::build(image, SIGNATURE, &Manufacturer::new(1).certify(RootOfTrust::ShefBoot, false))
}

/// A verifier that knows the committed image, and the device after boot.
fn world() -> World<Firmware> {
    let mut firmware = device(medium(IMAGE));
    let cycles = firmware.sim.boot(60_000_000).expect("boot");
    println!("boot: {cycles} cycles");
    assert_eq!(firmware.sim.alert(), 0);
    let kind = RootOfTrust::ShefBoot;
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
