//! The custom logic for AWS F2 with its Security Kernel: the kernel boots from the medium that the host
//! writes, and answers in the mailbox; another kernel needs no other image of the FPGA; the medium
//! is frozen from the start to the reset, and a kernel that the boot ROM refuses raises an alert.

use std::sync::OnceLock;

use shef_kernel::{KernelImage, Medium, device_id_key};
use shef_proto::cert::{self, Certificate};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::SeededEntropy;
use shef_proto::evidence::RootOfTrust;
use shef_proto::mailbox::{Answer, Request};
use shef_regs::f2;
use shef_rtl::agent::Rng;
use shef_rtl::f2::{CoreClock, F2Config, MEDIUM, NativeF2, TestHost};
use shef_rtl::{Agent, Library, Port, Sim, build_once, counted, f2_spec, repo_root};

const MAILBOX: u32 = 0xc000;
const REQ_LEN: u32 = 0xff00;
const STATUS: u32 = 0xff04;
const RSP_LEN: u32 = 0xff08;
const ANSWER: u32 = 0xe000;
const UDS: [u8; 32] = [0x5a; 32];
const NOW: i64 = 1_795_000_000;
/// The signer of kernels for simulated devices, whose key is public (`cargo xtask firmware`).
const SIGNER: &[u8] = b"shef/1: signer of kernels for simulated devices, known to all";
/// Cycles of `clk_main_a0` for a boot.
const BOOT: u64 = 60_000_000;

fn library() -> &'static Library {
    static LIB: OnceLock<Library> = OnceLock::new();
    LIB.get_or_init(|| {
        let spec = f2_spec(false).expect("sources").search("shell-rtl/accel/digits");
        build_once(&counted(spec.fast())).expect("build").clone()
    })
}

/// Fair bits on the noise port.
struct Noise(Port, Port, Rng);

impl Agent for Noise {
    fn sample(&mut self, _: &Sim) {}

    fn drive(&mut self, sim: &mut Sim) {
        let word = self.2.next_u64();
        sim.set(self.0, (word & 3 == 0).into());
        sim.set(self.1, word >> 63);
    }
}

struct Card(NativeF2<TestHost>);

impl Card {
    /// A card whose core is wiped and held.
    fn new() -> Self {
        let mut target = b"shef-test".to_vec();
        target.resize(32, 0);
        let inputs = [
            ("uds_i", UDS.to_vec()),
            ("target_i", target),
            ("shell_i", vec![0x5e; 32]),
            ("noise_seeded_i", vec![1]),
        ];
        let config = F2Config {
            // The ratio of the clocks is not that of the card, to simulate fewer cycles of the shell.
            core: CoreClock::khz(200_000),
            inputs: inputs.map(|(name, bytes)| (name.to_owned(), bytes)).into(),
            ..F2Config::default()
        };
        let mut f2 = NativeF2::new(library(), config, TestHost::default()).expect("a slot");
        let sim = f2.shell.core().sim();
        let (valid, bit) = ("noise_valid_i", "noise_bit_i");
        let noise = Noise(sim.port(valid).unwrap(), sim.port(bit).unwrap(), Rng::new(3));
        f2.shell.core().attach(Box::new(noise));
        f2.wait_open().expect("wiped");
        Self(f2)
    }

    fn until(&mut self, limit: u64, what: &str, done: impl Fn(u32) -> bool) -> u32 {
        let end = self.0.shell.main_cycles() + limit;
        loop {
            let status = self.0.page(f2::STATUS);
            if done(status) {
                return status;
            }
            assert!(self.0.shell.main_cycles() < end, "{what}: status {status:#x}");
            self.0.shell.step(20_000);
        }
    }

    fn write_medium(&mut self, medium: &[u8]) {
        for (at, chunk) in (MEDIUM..).step_by(4).zip(medium.chunks(4)) {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0.shell.ocl_write(at, u32::from_le_bytes(word));
        }
    }

    /// Starts the kernel; its first alert, or 0 when it is ready.
    fn boot(&mut self) -> u32 {
        self.0.command(f2::CONTROL_COMMAND_START);
        let status = self
            .until(BOOT, "boot", |s| f2::STATUS_READY.get(s) == 1 || f2::STATUS_ALERT.get(s) != 0);
        f2::STATUS_ALERT.get(status)
    }

    fn ask(&mut self, request: &Request) -> Answer {
        let request = request.encode();
        for (at, chunk) in (MAILBOX..).step_by(4).zip(request.chunks(4)) {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0.shell.ocl_write(at, u32::from_le_bytes(word));
        }
        self.0.shell.ocl_write(REQ_LEN, request.len() as u32);
        let end = self.0.shell.main_cycles() + BOOT;
        while self.0.shell.ocl_read(STATUS) != 1 {
            assert!(self.0.shell.main_cycles() < end, "the kernel does not answer");
            self.0.shell.step(20_000);
        }
        let len = self.0.shell.ocl_read(RSP_LEN) as usize;
        let words = (ANSWER..).step_by(4).take(len.div_ceil(4));
        let mut answer: Vec<u8> =
            words.flat_map(|at| self.0.shell.ocl_read(at).to_le_bytes()).collect();
        answer.truncate(len);
        Answer::decode(&answer).expect("an answer")
    }

    fn no_rule_broken(&self) {
        assert!(self.0.shell.violations().is_empty(), "{:?}", self.0.shell.violations());
    }
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(repo_root().join("attestation/firmware").join(name)).expect("committed firmware")
}

fn certificate() -> Vec<u8> {
    let key = SigningKey::generate(&mut SeededEntropy::new(7, "test"));
    let root = cert::issue_root(&key, "test manufacturer", NOW - 1000, NOW + 1_000_000);
    let root = Certificate::parse(&root).expect("root");
    let device_id = device_id_key(&UDS, RootOfTrust::Simulated, false).public_key();
    cert::issue_device_id(&key, &root, &device_id, NOW - 500)
}

fn shipped() -> Vec<u8> {
    let signature = file("kernel.sig").try_into().expect("signature and key");
    Medium::build(&file("kernel.img"), &signature, &certificate())
}

/// The shipped kernel as another version, signed by its signer.
fn updated(svn: u64) -> Vec<u8> {
    let image = file("kernel.img");
    let kernel = KernelImage::parse(&image).expect("image");
    let image = KernelImage { svn, ..kernel }.to_bytes();
    let key = SigningKey::derive(SIGNER);
    let signature = [&key.sign(&image)[..], &key.public_key().xy()].concat();
    Medium::build(&image, &signature.try_into().expect("signature and key"), &certificate())
}

mod long {
    use super::*;

    #[test]
    #[ignore = "long"]
    fn the_medium_is_the_hosts_until_the_start() {
        let mut card = Card::new();
        card.write_medium(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(card.0.page(f2::MEDIUM_WRITES), 2);
        assert_eq!(card.0.shell.ocl_read(MEDIUM + 4), 0x0807_0605);
        // The mailbox is not there before the start, and the last word of the medium is.
        assert_eq!(card.0.shell.ocl_read(STATUS), u32::MAX);
        let last = MEDIUM + 4 * (card.0.page(f2::MEDIUM_WORDS) - 1);
        card.0.shell.ocl_write(last, 77);
        assert_eq!((card.0.shell.ocl_read(last), card.0.shell.ocl_read(last + 4)), (77, 0));
        card.0.command(f2::CONTROL_COMMAND_START);
        let running = |s| f2::STATUS_RUNNING.get(s) == 1;
        card.until(100_000, "start", running);
        card.0.shell.ocl_write(MEDIUM, 99);
        assert_eq!(card.0.shell.ocl_read(MEDIUM), 0, "a frozen medium shows nothing");
        // A second start, and one with a byte missing, change nothing.
        card.0.command(f2::CONTROL_COMMAND_START);
        assert!(running(card.0.page(f2::STATUS)));
        card.0.command(f2::CONTROL_COMMAND_RESET);
        card.0.wait_open().expect("wiped");
        assert_eq!(card.0.shell.ocl_read(MEDIUM), 0x0403_0201, "the frozen word");
        assert_eq!(card.0.page(f2::MEDIUM_WRITES), 0);
        card.no_rule_broken();
    }

    /// Boot, evidence, wipe, another kernel, refusals: minutes of simulation.
    #[test]
    #[ignore = "long"]
    fn kernels_boot_from_the_medium() {
        let mut card = Card::new();
        card.write_medium(&shipped());
        let before = card.0.shell.core_cycles();
        assert_eq!(card.boot(), 0);
        println!("boot: {} cycles of the core", card.0.shell.core_cycles() - before);
        let Answer::Certificates(first) = card.ask(&Request::Certificates) else {
            panic!("no certificates")
        };
        // A change after the start is without effect; after the reset it is booted.
        let ns = card.0.flr().expect("wiped");
        println!("reset of the function: {} us", ns / 1_000);
        assert!(ns < 100_000_000);
        card.0.wait_open().expect("wiped");
        card.write_medium(&updated(2));
        assert_eq!(card.boot(), 0, "a new kernel");
        let Answer::Certificates(second) = card.ask(&Request::Certificates) else {
            panic!("no certificates")
        };
        assert_ne!(first[0], second[0], "the attestation key belongs to the kernel");
        assert_eq!(first[1], second[1], "the same device");

        for (what, medium) in [
            ("one bit flipped", {
                let mut medium = shipped();
                let middle = medium.len() / 2;
                medium[middle] ^= 1;
                medium
            }),
            ("an older kernel", updated(0)),
            ("cut short", {
                let mut medium = shipped();
                let middle = medium.len() / 2;
                medium[middle..].fill(0);
                medium
            }),
        ] {
            card.0.command(f2::CONTROL_COMMAND_RESET);
            card.0.wait_open().expect("wiped");
            card.write_medium(&medium);
            assert_ne!(card.boot(), 0, "{what}");
        }
        card.no_rule_broken();
    }
}
