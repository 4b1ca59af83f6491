//! The boot ROM and the Security Kernel as they ship, on the RTL: they start, refuse what they must,
//! and answer byte for byte what the native kernel answers.

use sha2::{Digest, Sha256};
use shef_kernel::{BootPlatform, EntropyQuality, Kernel, Medium, Platform, PlatformError, Shell, boot, device_id_key};
use shef_proto::cert::{self, Certificate};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::SeededEntropy;
use shef_proto::evidence::{DebugState, RootOfTrust};
use shef_proto::mailbox::{Answer, Request};
use shef_rtl::{KernelSim, KernelStraps, Library, build, kernel_spec, repo_root};
use std::sync::OnceLock;
use zeroize::Zeroizing;

const UDS: [u8; 32] = [0x5a; 32];
const SHELL: [u8; 32] = [0x5e; 32];
const TARGET: &str = "shef-test";
const NOW: i64 = 1_795_000_000;
const BOOT: u64 = 30_000_000;
const ANSWER: u64 = 30_000_000;

fn library() -> &'static Library {
    static LIB: OnceLock<Library> = OnceLock::new();
    LIB.get_or_init(|| build(&kernel_spec(None).expect("sources").fast().savable()).expect("model"))
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(repo_root().join("attestation/firmware").join(name)).expect("committed firmware")
}

fn certificate() -> Vec<u8> {
    let key = SigningKey::generate(&mut SeededEntropy::new(7, "test"));
    let root = Certificate::parse(&cert::issue_root(&key, "test manufacturer", NOW - 1000, NOW + 1_000_000)).expect("root");
    let device_id = device_id_key(&UDS, RootOfTrust::Simulated, false).public_key();
    cert::issue_device_id(&key, &root, &device_id, NOW - 500)
}

fn medium(image: &[u8]) -> Vec<u8> {
    Medium::build(image, &file("kernel.sig").try_into().expect("signature and key"), &certificate())
}

/// Bits that alternate, seldom enough for a kernel that reads each word when it comes: all words are
/// 0x55555555, or all are 0xaaaaaaaa, but for the first one, which waits for its reader.
fn alternating(every: u64) -> shef_rtl::kernel_sim::Noise {
    let mut bit = false;
    Box::new(move |cycle| {
        cycle.is_multiple_of(every).then(|| {
            bit = !bit;
            bit
        })
    })
}

/// The device without RTL.
struct Native {
    taken: bool,
    seed: [u8; 32],
}

impl BootPlatform for Native {
    fn take_uds(&mut self) -> Option<Zeroizing<[u8; 32]>> {
        (!std::mem::replace(&mut self.taken, true)).then(|| Zeroizing::new(UDS))
    }
    fn device_id_certificate(&self) -> Vec<u8> {
        certificate()
    }
    fn root_of_trust(&self) -> RootOfTrust {
        RootOfTrust::Simulated
    }
    fn target(&self) -> String {
        TARGET.into()
    }
    fn debug_state(&mut self) -> DebugState {
        DebugState::DisabledSinceBoot
    }
    fn entropy(&mut self, out: &mut [u8; 32]) -> EntropyQuality {
        Platform::entropy(self, out)
    }
}

impl Platform for Native {
    fn debug_state(&mut self) -> DebugState {
        DebugState::DisabledSinceBoot
    }
    fn entropy(&mut self, out: &mut [u8; 32]) -> EntropyQuality {
        *out = self.seed;
        EntropyQuality::Seeded
    }
    fn shell(&mut self) -> Result<Shell, PlatformError> {
        Ok(Shell { digest: SHELL, config_port: false, readback: false, debug_bridge: false })
    }
    fn begin_image(&mut self) -> Result<(), PlatformError> {
        Ok(())
    }
    fn program(&mut self, _: &[u8]) -> Result<(), PlatformError> {
        Ok(())
    }
    fn finish_image(&mut self) -> Result<(), PlatformError> {
        Ok(())
    }
    fn unload_image(&mut self) {}
    fn design_digest(&mut self) -> Option<[u8; 32]> {
        None
    }
    fn krn_read(&mut self, _: u32) -> Result<u32, PlatformError> {
        Err(PlatformError::new("no Shield"))
    }
    fn krn_write(&mut self, _: u32, _: u32) -> Result<(), PlatformError> {
        Err(PlatformError::new("no Shield"))
    }
    fn idle(&mut self) {}
}

fn native(image: &[u8], seed: [u8; 32]) -> Kernel<Native> {
    boot(Native { taken: false, seed }, image).expect("native boot")
}

fn rtl(medium: Vec<u8>) -> KernelSim {
    let mut target = [0; 32];
    target[..TARGET.len()].copy_from_slice(TARGET.as_bytes());
    let straps = KernelStraps { uds: UDS, root: 0, target, shell: SHELL, shell_flags: 0, debug: false, seeded: true };
    let mut kernel = KernelSim::new(library(), &straps).expect("instance");
    kernel.around.noise = alternating(256);
    kernel.around.medium = medium;
    kernel
}

fn ask(kernel: &mut KernelSim, what: &str, request: &Request) -> Vec<u8> {
    let begin = kernel.cycles();
    assert!(kernel.send(&request.encode()).expect("host port"));
    let answer = kernel.receive(ANSWER).expect("host port").expect("an answer");
    println!("{what}: {} cycles", kernel.cycles() - begin);
    answer
}

#[test]
fn the_firmware_answers_what_the_native_kernel_answers() {
    let image = file("kernel.img");
    let mut kernel = rtl(medium(&image));
    println!("boot: {} cycles", kernel.boot(BOOT).expect("boot"));
    assert_eq!((kernel.alert(), kernel.ready()), (0, true));
    let evidence = Request::KernelEvidence { nonce: vec![0x77; 32], audience: "verifier.example".into() };
    let words = [0x5555_5555_u32, 0xaaaa_aaaa];
    let seeds = words.iter().flat_map(|first| words.iter().map(move |rest| (*first, *rest))).map(|(first, rest)| {
        let raw: Vec<u8> = std::iter::once(first).chain(std::iter::repeat_n(rest, 31)).flat_map(u32::to_le_bytes).collect();
        <[u8; 32]>::from(Sha256::digest(raw))
    });
    let mut natives: Vec<_> = seeds.map(|seed| native(&image, seed)).collect();
    for (what, request) in [("Status", Request::Status), ("Certificates", Request::Certificates)] {
        assert_eq!(ask(&mut kernel, what, &request), natives[0].handle(&request.encode()), "{what}");
    }
    let answer = ask(&mut kernel, "KernelEvidence", &evidence);
    assert!(natives.iter_mut().any(|native| native.handle(&evidence.encode()) == answer), "KernelEvidence");
    let Ok(Answer::Evidence(_)) = Answer::decode(&answer) else { panic!("no evidence") };
    // Nonsense of any length is answered, natively and here alike.
    for message in [&[][..], &[0xff], &[0x82, 0x01], &[0; 8192]] {
        assert!(kernel.send(message).expect("host port"));
        let answer = kernel.receive(ANSWER).expect("host port").expect("an answer");
        assert_eq!(answer, natives[0].handle(message), "{} bytes", message.len());
    }
}

#[test]
fn another_image_is_refused() {
    for at in [0, 20, 5000] {
        let mut image = file("kernel.img");
        image[at] ^= 1;
        let mut kernel = rtl(medium(&image));
        kernel.boot(BOOT).expect("boot");
        assert_eq!(kernel.alert(), 4, "byte {at}");
        for request in [Request::Status, Request::Certificates] {
            let answer = Answer::decode(&ask(&mut kernel, "refused", &request)).expect("an answer");
            assert!(matches!(&answer, Answer::Error { code, .. } if code.starts_with("SHEF-KRN-00")), "{answer:?}");
        }
    }
}

#[test]
fn a_stuck_source_gives_no_evidence() {
    let mut kernel = rtl(medium(&file("kernel.img")));
    kernel.boot(BOOT).expect("boot");
    kernel.around.noise = Box::new(|_| Some(false));
    let evidence = Request::KernelEvidence { nonce: vec![0x77; 32], audience: "verifier.example".into() };
    let answer = Answer::decode(&ask(&mut kernel, "KernelEvidence", &evidence)).expect("an answer");
    assert!(matches!(&answer, Answer::Error { code, .. } if code.starts_with("SHEF-KRN-")), "{answer:?}");
    assert_eq!(kernel.alert(), 5);
}
