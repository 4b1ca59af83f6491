//! After debug halts a kernel, no key is left in its memory.

use std::os::unix::fs::FileExt;

use shef_fixtures::world::*;
use shef_kernel::{KernelImage, Measurement, identify};
use shef_proto::evidence::{DebugState, RootOfTrust};
use shef_proto::mailbox::Request;

/// The bytes of a value, padding included.
fn bytes_of<T>(value: &T) -> Vec<u8> {
    let mut bytes = vec![0; size_of::<T>()];
    let memory = std::fs::File::open("/proc/self/mem").expect("memory");
    memory.read_exact_at(&mut bytes, (&raw const *value).addr() as u64).expect("a value");
    bytes
}

fn has(bytes: &[u8], secret: &[u8]) -> bool {
    bytes.windows(secret.len()).any(|window| window == secret)
}

#[test]
fn debug_erases_identity_and_attestation_key() {
    let mut world = World::new();
    // The same device, booted again: its identity is a map with CDI and attestation key in front.
    let mut platform = FakePlatform::new(
        &world.manufacturer,
        RootOfTrust::ShefBoot,
        DebugState::DisabledSinceBoot,
    );
    let image = kernel_image(2);
    let identity = identify(
        &mut platform,
        &Measurement { digest: KernelImage::digest(&image), svn: 2, version: "0.1.0" },
    )
    .unwrap()
    .to_bytes();
    let member = |key: u8| {
        identity
            .windows(3)
            .position(|head| head == [key, 0x58, 32])
            .map(|at| identity[at + 3..at + 35].to_vec())
            .unwrap()
    };
    let secrets = [member(1), member(2)];
    let found =
        |world: &World| secrets.each_ref().map(|secret| has(&bytes_of(&world.kernel), secret));
    assert_eq!(found(&world), [true; 2]);
    world.kernel.platform_mut().debug = DebugState::Enabled;
    assert_eq!(world.code(&Request::CloseRecord), "SHEF-KRN-032");
    assert_eq!(found(&world), [false; 2]);
}
