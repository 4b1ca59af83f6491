//! A device for tests: boot ROM and Security Kernel, as committed, on the Verilated subsystem, with
//! the Shield, the vendor and the verifier of the native kernel's tests around it.
#![allow(dead_code, reason = "each test uses a part")]

pub mod heap;

use shef_fixtures::world::{
    Answers, DESIGN, FakeShield, Manufacturer, PLAINTEXT, SHELL, TARGET, UDS, World, config,
    description,
};
use shef_kernel::{KernelImage, Medium, SIGNATURE_FILE_LEN};
use shef_proto::evidence::{DebugState, RootOfTrust};
use shef_rtl::{Fabric, KernelPort, KernelSim, KernelStraps, Library, build_once, kernel_spec};
use std::sync::{Arc, Mutex, MutexGuard};

pub const IMAGE: &[u8] = include_bytes!("../../../../attestation/firmware/kernel.img");
pub const SIGNATURE: &[u8; SIGNATURE_FILE_LEN] =
    include_bytes!("../../../../attestation/firmware/kernel.sig");
/// Limit in cycles for a boot, and for an answer.
pub const LIMIT: u64 = 60_000_000;

pub fn library() -> &'static Library {
    build_once(&kernel_spec(None).expect("sources").fast().savable()).expect("model")
}

#[derive(Clone)]
pub struct Port(pub Arc<Mutex<FakeShield>>);

impl Port {
    /// The Shield's state after reset.
    pub fn power(&self) {
        let mut shield = self.0.lock().unwrap();
        let config = shield.config.take().unwrap_or_else(config);
        *shield = FakeShield::power(config);
    }
}

impl KernelPort for Port {
    fn read(&mut self, offset: u32) -> Option<u32> {
        Some(self.0.lock().unwrap().read(offset))
    }

    fn write(&mut self, offset: u32, value: u32) -> bool {
        self.0.lock().unwrap().write(offset, value)
    }
}

/// A fabric that accepts the vendor's plaintext; the Shield disappears with the design.
impl Fabric for Port {
    fn clear(&mut self) {
        self.power();
    }

    fn configure(&mut self, image: &[u8]) -> Option<[u8; 32]> {
        image.starts_with(PLAINTEXT).then_some(DESIGN)
    }
}

/// The subsystem; it prints its cycles (visible with `--nocapture`).
pub struct Firmware {
    pub sim: KernelSim,
    pub shield: Port,
    /// Cycles from the doorbell to the last answer.
    pub took: u64,
}

impl Answers for Firmware {
    fn answer(&mut self, message: &[u8]) -> Vec<u8> {
        assert!(self.sim.send(message).expect("host port"));
        let begin = self.sim.cycles();
        let answer = self.sim.receive(LIMIT).expect("host port");
        let answer = answer.unwrap_or_else(|| panic!("no answer; alert {}", self.sim.alert()));
        self.took = self.sim.cycles() - begin;
        println!(
            "request {:02x?}: {} cycles, answer {} bytes {:02x?}",
            &message[..6.min(message.len())],
            self.took,
            answer.len(),
            &answer[..answer.len().min(60)]
        );
        answer
    }
}

pub fn straps(kind: RootOfTrust) -> KernelStraps {
    let root = match kind {
        RootOfTrust::Simulated => 0,
        RootOfTrust::ShefBoot => 1,
        RootOfTrust::Board => 2,
        RootOfTrust::Provider => 3,
    };
    KernelStraps {
        uds: UDS,
        root,
        target: KernelStraps::name(TARGET),
        shell: SHELL,
        shell_flags: 0,
        debug: false,
        seeded: false,
        unmeasured: false,
    }
}

/// A device with the committed image, in reset.
pub fn device(kind: RootOfTrust) -> Firmware {
    let mut sim = KernelSim::new(library(), &straps(kind)).expect("instance");
    let shield = Port(Arc::new(Mutex::new(FakeShield::power(config()))));
    sim.environment.medium =
        Medium::build(IMAGE, SIGNATURE, &Manufacturer::new(1).certify(kind, false));
    sim.environment.shield = Some(Box::new(shield.clone()));
    sim.environment.fabric = Box::new(shield.clone());
    Firmware { sim, shield, took: 0 }
}

/// A verifier that knows the committed image, and the device after boot. `change` is called before
/// reset ends.
pub fn world_with(
    kind: RootOfTrust,
    image: &shef_proto::image::Description,
    change: impl FnOnce(&mut Firmware),
) -> World<Firmware> {
    let mut firmware = device(kind);
    change(&mut firmware);
    let cycles = firmware.sim.boot(LIMIT).expect("boot");
    println!("boot: {cycles} cycles");
    assert_eq!(firmware.sim.alert(), 0);
    let mut world = World::with(kind, DebugState::DisabledSinceBoot, image, |_| {});
    let (digest, svn) =
        (KernelImage::digest(IMAGE), KernelImage::parse(IMAGE).expect("an image").svn);
    world.reference.kernels =
        vec![shef_verify::KernelReference { name: "firmware".into(), digest, svn }];
    world.on(firmware)
}

/// The same with the vendor's usual image.
pub fn world() -> World<Firmware> {
    world_with(RootOfTrust::ShefBoot, &description_for_firmware(), |_| {})
}

/// The vendor's image; the firmware's security version is 1.
pub fn description_for_firmware() -> shef_proto::image::Description {
    shef_proto::image::Description { min_kernel_svn: 1, ..description(3) }
}

pub fn shield(world: &World<Firmware>) -> MutexGuard<'_, FakeShield> {
    world.kernel.shield.0.lock().unwrap()
}
