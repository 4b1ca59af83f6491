//! The shipped boot ROM and Security Kernel, on the RTL, start, make every required refusal, and
//! answer byte for byte as the native kernel does.

mod foretold;

use shef_kernel::{
    BootPlatform, EntropyQuality, Kernel, KernelImage, Medium, Platform, PlatformError, Shell,
    boot, device_id_key,
};
use shef_proto::cert::{self, Certificate};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::SeededEntropy;
use shef_proto::evidence::{DebugState, RootOfTrust};
use shef_proto::mailbox::{Answer, Request};
use shef_rtl::kernel_sim::host;
use shef_rtl::{
    KernelSim, KernelSnapshot, KernelStraps, Library, build_once, kernel_spec, repo_root,
    sparse_noise,
};
use std::sync::OnceLock;
use zeroize::Zeroizing;

const UDS: [u8; 32] = [0x5a; 32];
const SHELL: [u8; 32] = [0x5e; 32];
const TARGET: &str = "shef-test";
const NOW: i64 = 1_795_000_000;
const BOOT: u64 = 30_000_000;
const ANSWER: u64 = 30_000_000;

fn library() -> &'static Library {
    build_once(&kernel_spec(None).expect("sources").fast().savable()).expect("model")
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(repo_root().join("attestation/firmware").join(name)).expect("committed firmware")
}

fn certificate() -> Vec<u8> {
    let key = SigningKey::generate(&mut SeededEntropy::new(7, "test"));
    let root = Certificate::parse(&cert::issue_root(
        &key,
        "test manufacturer",
        NOW - 1000,
        NOW + 1_000_000,
    ))
    .expect("root");
    let device_id = device_id_key(&UDS, RootOfTrust::Simulated, false).public_key();
    cert::issue_device_id(&key, &root, &device_id, NOW - 500)
}

/// The signer of kernels for simulated devices, whose key is public (`cargo xtask firmware`).
const SIGNER: &[u8] = b"shef/1: signer of kernels for simulated devices, known to all";

/// A medium whose image this signer signs.
fn signed(image: &[u8], signer: &[u8]) -> Vec<u8> {
    let key = SigningKey::derive(signer);
    let signature = [&key.sign(image)[..], &key.public_key().xy()].concat();
    Medium::build(image, &signature.try_into().expect("signature and key"), &certificate())
}

fn medium(image: &[u8]) -> Vec<u8> {
    Medium::build(image, &file("kernel.sig").try_into().expect("signature and key"), &certificate())
}

/// Cycles within which [`noise`] passes the start-up test.
const START_UP: u64 = 1 << 15;

/// Predictable noise: after an instance's start-up test, bits are rare enough for the kernel to
/// read each word as it arrives.
fn noise() -> shef_rtl::kernel_sim::Noise {
    Box::new(|cycle| {
        let (every, first, since) =
            if cycle < START_UP { (4, 0, cycle) } else { (256, START_UP / 4, cycle - START_UP) };
        since.is_multiple_of(every).then(|| foretold::bit(first + since / every))
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
    fn unload_image(&mut self) -> Result<(), PlatformError> {
        Ok(())
    }
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
    let straps = KernelStraps {
        uds: UDS,
        root: 0,
        target,
        shell: SHELL,
        shell_flags: 0,
        debug: false,
        seeded: true,
        unmeasured: false,
    };
    let mut kernel = KernelSim::new(library(), &straps).expect("instance");
    kernel.environment.noise = noise();
    kernel.environment.medium = medium;
    kernel
}

/// The committed firmware after boot: the tests that begin there share it, each with a separate
/// instance and noise ([`sparse_noise`]).
fn booted() -> KernelSim {
    static BOOTED: OnceLock<KernelSnapshot> = OnceLock::new();
    let medium = medium(&file("kernel.img"));
    let snapshot = BOOTED.get_or_init(|| {
        let mut kernel = rtl(medium.clone());
        kernel.environment.noise = sparse_noise(noise());
        println!("boot: {} cycles", kernel.boot(BOOT).expect("boot"));
        kernel.save().expect("savable")
    });
    let mut kernel = rtl(medium);
    kernel.restore(snapshot).expect("of this design");
    assert_eq!((kernel.alert(), kernel.ready()), (0, true));
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
    let mut kernel = booted();
    let evidence =
        Request::KernelEvidence { nonce: vec![0x77; 32], audience: "verifier.example".into() };
    let mut native = native(&image, [0; 32]);
    for (what, request) in [("Status", Request::Status), ("Certificates", Request::Certificates)] {
        assert_eq!(ask(&mut kernel, what, &request), native.handle(&request.encode()), "{what}");
    }
    let answer = ask(&mut kernel, "KernelEvidence", &evidence);
    let drawn = foretold::draws(0).any(|(_, drawn)| {
        native.platform_mut().seed = drawn;
        native.handle(&evidence.encode()) == answer
    });
    assert!(drawn, "KernelEvidence");
    let Ok(Answer::Evidence(_)) = Answer::decode(&answer) else { panic!("no evidence") };
    // Garbage of any length is answered, natively and here alike.
    for message in [&[][..], &[0xff], &[0x82, 0x01], &[0; 8192]] {
        assert!(kernel.send(message).expect("host port"));
        let answer = kernel.receive(ANSWER).expect("host port").expect("an answer");
        assert_eq!(answer, native.handle(message), "{} bytes", message.len());
    }
}

/// The first page of the firmware as an image with this security version.
fn short_image(svn: u64) -> Vec<u8> {
    let image = file("kernel.img");
    let KernelImage { version, code, .. } = KernelImage::parse(&image).expect("an image");
    KernelImage { svn, version, code: &code[..4096] }.to_bytes()
}

#[test]
fn another_image_is_refused() {
    let short = signed(&short_image(1), SIGNER);
    for (mut medium, at) in [(short.clone(), 0), (short, 20), (medium(&file("kernel.img")), 5000)] {
        medium[Medium::IMAGE + at] ^= 1;
        let mut kernel = rtl(medium);
        kernel.boot(BOOT).expect("boot");
        assert_eq!(kernel.alert(), 4, "byte {at}");
        for request in [Request::Status, Request::Certificates] {
            let answer = Answer::decode(&ask(&mut kernel, "refused", &request)).expect("an answer");
            assert!(
                matches!(&answer, Answer::Error { code, .. } if code.starts_with("SHEF-KRN-00")),
                "{answer:?}"
            );
        }
    }
}

#[test]
fn a_stuck_source_gives_no_evidence() {
    let mut kernel = booted();
    // The source sticks after its start-up test.
    kernel.step(START_UP);
    assert_eq!(kernel.alert(), 0);
    kernel.environment.noise = Box::new(|_| Some(false));
    let evidence =
        Request::KernelEvidence { nonce: vec![0x77; 32], audience: "verifier.example".into() };
    let answer = Answer::decode(&ask(&mut kernel, "KernelEvidence", &evidence)).expect("an answer");
    assert!(
        matches!(&answer, Answer::Error { code, .. } if code.starts_with("SHEF-KRN-")),
        "{answer:?}"
    );
    assert_eq!(kernel.alert(), 5);
}

/// How a boot ends.
#[derive(Clone, Copy)]
enum End {
    /// The boot ROM serves only this code.
    Refused(&'static str),
    /// The processor is halted, with this alert.
    Halted(u64),
}

/// One instance boots from each bad medium in turn, and finally from a good one: no refusal and no
/// halt outlives a reset.
#[test]
fn each_bad_medium_ends_with_a_code_and_the_next_reset_works() {
    const NOT_AN_IMAGE: End = End::Refused("SHEF-KRN-002");
    const SIGNATURE: End = End::Refused("SHEF-KRN-004");
    const TRAP: End = End::Halted(1);
    let image = file("kernel.img");
    let version = KernelImage::parse(&image).expect("an image").version;
    let good = medium(&image);
    let cut = |len: usize| good[..len].to_vec();
    let length = |at: usize, value: u32| {
        let mut bytes = good.clone();
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    // Tests that end at the signature or after it use a short image, which is measured quickly.
    let short = short_image(1);
    let mut unsigned = signed(&short, SIGNER);
    let signature = Medium::IMAGE + short.len().next_multiple_of(4);
    unsigned[signature..signature + 64].fill(0);
    // Begins with a jump to the boot medium, like a program linked for that address.
    let elsewhere = [0x3000_02b7_u32, 0x0002_8067].map(u32::to_le_bytes).concat();
    let cases: [(&str, Vec<u8>, End); 18] = [
        ("no medium", Vec::new(), TRAP),
        ("zeros", vec![0; 4096], NOT_AN_IMAGE),
        ("no image", signed(&[], SIGNER), NOT_AN_IMAGE),
        (
            "no code",
            signed(&KernelImage { svn: 1, version, code: &[] }.to_bytes(), SIGNER),
            NOT_AN_IMAGE,
        ),
        ("another label", signed(&[b"shef-kernel/2", &image[13..]].concat(), SIGNER), NOT_AN_IMAGE),
        ("longer than the medium", length(4, u32::MAX), NOT_AN_IMAGE),
        ("image longer than the medium", length(8, good.len() as u32), NOT_AN_IMAGE),
        (
            "image larger than kernel memory",
            signed(&KernelImage { svn: 1, version, code: &vec![0; 0x4_0000] }.to_bytes(), SIGNER),
            NOT_AN_IMAGE,
        ),
        (
            "code where the way out lies",
            signed(
                &KernelImage { svn: 1, version: "", code: &vec![0; 0x4_0000 - 60] }.to_bytes(),
                SIGNER,
            ),
            NOT_AN_IMAGE,
        ),
        ("image of any length", length(8, u32::MAX), NOT_AN_IMAGE),
        ("medium cut in the image", cut(40_000), TRAP),
        ("medium cut in its first word", cut(3), NOT_AN_IMAGE),
        ("image cut", medium(&image[..image.len() - 4]), SIGNATURE),
        ("no signature", unsigned, SIGNATURE),
        ("another signer", signed(&short, b"another signer"), SIGNATURE),
        ("another signer's old image", signed(&short_image(0), b"another signer"), SIGNATURE),
        ("an old image", signed(&short_image(0), SIGNER), End::Refused("SHEF-KRN-005")),
        (
            "an image for another place",
            signed(&KernelImage { svn: 1, version, code: &elsewhere }.to_bytes(), SIGNER),
            TRAP,
        ),
    ];
    let mut kernel = rtl(Vec::new());
    for (what, medium, end) in cases {
        kernel.environment.medium = medium;
        kernel.reset();
        println!("{what}: {} cycles", kernel.boot(BOOT).expect(what));
        match end {
            End::Refused(expected) => {
                assert_eq!(kernel.alert(), 4, "{what}");
                let answer =
                    Answer::decode(&ask(&mut kernel, what, &Request::Status)).expect("an answer");
                assert!(
                    matches!(&answer, Answer::Error { code, .. } if code == expected),
                    "{what}: {answer:?}"
                );
            }
            End::Halted(alert) => {
                assert_eq!(kernel.alert(), alert, "{what}");
                kernel.step(70_000);
                assert!(kernel.send(&Request::Status.encode()).expect("host port"), "{what}");
                assert_eq!(kernel.receive(100_000).expect("host port"), None, "{what}");
            }
        }
    }
    kernel.environment.medium = good;
    kernel.reset();
    kernel.boot(BOOT).expect("boot");
    assert_eq!((kernel.alert(), kernel.ready()), (0, true));
    let answer = Answer::decode(&ask(&mut kernel, "Status", &Request::Status)).expect("an answer");
    assert!(!matches!(answer, Answer::Error { .. }), "{answer:?}");
}

#[test]
fn a_source_that_never_delivers_gives_no_evidence() {
    let mut kernel = rtl(medium(&file("kernel.img")));
    kernel.environment.noise = Box::new(|_| None);
    kernel.boot(BOOT).expect("boot");
    let evidence =
        Request::KernelEvidence { nonce: vec![0x77; 32], audience: "verifier.example".into() };
    let answer = Answer::decode(&ask(&mut kernel, "KernelEvidence", &evidence)).expect("an answer");
    assert!(matches!(&answer, Answer::Error { code, .. } if code == "SHEF-KRN-011"), "{answer:?}");
    assert_eq!(kernel.alert(), 5);
    kernel.environment.noise = noise();
    kernel.reset();
    kernel.boot(BOOT).expect("boot");
    let answer = Answer::decode(&ask(&mut kernel, "KernelEvidence", &evidence)).expect("an answer");
    assert!(matches!(answer, Answer::Evidence(_)), "{answer:?}");
    assert_eq!(kernel.alert(), 0);
}

/// A length that exceeds every buffer counts as an empty message.
#[test]
fn a_request_of_any_length_is_answered() {
    let image = file("kernel.img");
    let mut kernel = booted();
    let mut native = native(&image, [0; 32]);
    let mut bytes = Request::Status.encode();
    bytes.resize(host::REQUEST_BYTES, 0);
    for (n, word) in bytes.chunks(4).enumerate() {
        assert!(
            kernel
                .host_write(
                    host::REQUEST + 4 * n as u64,
                    u32::from_le_bytes(word.try_into().expect("word"))
                )
                .expect("host port")
        );
    }
    let status = Request::Status.encode().len() as u32;
    for len in [
        0,
        1,
        2,
        8191,
        8192,
        8193,
        8196,
        0x4000,
        0x1_0000,
        0x8000_0000,
        u32::MAX - 3,
        u32::MAX,
        status,
    ] {
        assert!(kernel.host_write(host::REQ_LEN, len).expect("host port"));
        let answer = kernel.receive(ANSWER).expect("host port").expect("an answer");
        let message =
            usize::try_from(len).ok().and_then(|len| bytes.get(..len)).unwrap_or_default();
        assert_eq!(answer, native.handle(message), "{len} bytes");
        let refused = matches!(Answer::decode(&answer).expect("an answer"), Answer::Error { .. });
        assert_eq!(refused, len != status, "{len} bytes");
    }
    assert_eq!((kernel.alert(), kernel.ready()), (0, true));
}
