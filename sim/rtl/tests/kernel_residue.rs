//! The running firmware erases its secrets in time: after boot, after a refused boot, after each
//! message, and after a halt. The tests search the whole state of the subsystem.

mod device;
mod foretold;

use device::*;
use shef_fixtures::world::*;
use shef_kernel::{KernelImage, Measurement, Medium, device_id_key, identify};
use shef_proto::evidence::{DebugState, RootOfTrust};
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::mailbox::{Answer, Request, load_requests};
use shef_rtl::KernelSim;
use shef_verify::VerifiedKernelEvidence;

const KIND: RootOfTrust = RootOfTrust::ShefBoot;
/// Cycles between two bits of the noise source: more than the firmware needs to read a word.
const NOISE: u64 = 256;
/// Adjacent bytes of a secret that must not be found, in either byte order.
const PIECE: usize = 8;

type Secret = (&'static str, Vec<u8>);

/// Number of pieces of a secret in the subsystem.
fn pieces(sim: &KernelSim, secret: &[u8]) -> usize {
    let state = sim.save().expect("savable");
    let reversed: Vec<u8> = secret.iter().rev().copied().collect();
    let pieces: Vec<&[u8]> = secret.windows(PIECE).chain(reversed.windows(PIECE)).collect();
    state.bytes().windows(PIECE).filter(|window| pieces.contains(window)).count()
}

/// Number of pieces of the device secret in a subsystem whose boot ROM has just started: at its
/// input.
fn at_the_input() -> usize {
    let mut firmware = device(KIND);
    firmware.sim.step(66_000);
    pieces(&firmware.sim, &UDS)
}

/// Names of the secrets with a piece in the subsystem.
fn found(sim: &KernelSim, secrets: &[Secret]) -> Vec<&'static str> {
    secrets.iter().filter(|(_, secret)| pieces(sim, secret) > 0).map(|(name, _)| *name).collect()
}

/// Secrets of the boot code that the kernel lacks; and the identity that the kernel keeps.
fn of_the_device() -> ([Secret; 2], [Secret; 2]) {
    let certificate = Manufacturer::new(1).certify(KIND, false);
    let kernel = KernelImage::parse(IMAGE).expect("an image");
    let measured = Measurement {
        digest: KernelImage::digest(IMAGE),
        svn: kernel.svn,
        version: kernel.version,
    };
    let mut platform =
        FakePlatform::new(&Manufacturer::new(1), KIND, DebugState::DisabledSinceBoot);
    platform.certificate = certificate;
    let identity = identify(&mut platform, &measured).expect("an identity").to_bytes();
    let device_id = device_id_key(&UDS, KIND, false).private_bytes().to_vec();
    // {1: CDI, 2: attestation key, ...}: the map's head, and for each a key and the head of 32 bytes.
    (
        [("device secret", UDS.to_vec()), ("DeviceID key", device_id)],
        [("CDI", identity[4..36].to_vec()), ("attestation key", identity[39..71].to_vec())],
    )
}

/// The kernel's draws for this evidence, and the KEM key that it keeps until the image key arrives.
fn of_evidence(evidence: &VerifiedKernelEvidence) -> Vec<Secret> {
    let (drawn, key) = foretold::draws(0)
        .map(|(_, drawn)| (drawn, derive_key_pair(&drawn)))
        .find_map(|(drawn, (key, public))| {
            (public == evidence.claims().key).then_some((drawn, key))
        })
        .expect("noise that was foretold");
    vec![("drawn noise", drawn.to_vec()), ("KEM key", key.to_bytes().to_vec())]
}

#[test]
fn a_refused_boot_leaves_nothing() {
    let (of_boot, of_kernel) = of_the_device();
    let all = [of_boot, of_kernel].concat();
    let other = Manufacturer::new(1).certify(KIND, true);
    let mut changed = *SIGNATURE;
    changed[0] ^= 1;
    let at_the_input = at_the_input();
    // A device of a provider boots with tested entropy only.
    let provider = RootOfTrust::Provider;
    let certificate = Manufacturer::new(1).certify(provider, false);
    for (why, kind, medium, alert) in [
        ("no certificate", KIND, Medium::build(IMAGE, SIGNATURE, &[]), 4),
        ("the certificate of another key", KIND, Medium::build(IMAGE, SIGNATURE, &other), 4),
        ("a changed signature", KIND, Medium::build(IMAGE, &changed, &other), 4),
        ("stuck noise", provider, Medium::build(IMAGE, SIGNATURE, &certificate), 5),
    ] {
        let mut firmware = device(kind);
        firmware.sim.environment.medium = medium;
        if alert == 5 {
            firmware.sim.environment.noise = Box::new(|_| Some(false));
        }
        firmware.sim.boot(LIMIT).expect("boot");
        assert_eq!(firmware.sim.alert(), alert, "{why}");
        let answer =
            Answer::decode(&firmware.answer(&Request::Status.encode())).expect("an answer");
        assert!(
            matches!(&answer, Answer::Error { code, .. } if code.starts_with("SHEF-KRN-00")),
            "{why}: {answer:?}"
        );
        let device_id = device_id_key(&UDS, kind, false).private_bytes().to_vec();
        let secrets = [&all[1..], &[("DeviceID key of its kind", device_id)]].concat();
        assert_eq!(found(&firmware.sim, &secrets), [""; 0], "{why}");
        // The shell shows the device secret at an input, which is part of the state.
        assert!(pieces(&firmware.sim, &UDS) <= at_the_input, "{why} leaves the device secret");
    }
}

/// Loads that do not reach their end: the KEM key stays for another try, and nothing of the image key
/// does. `secrets` are the drawn noise, the KEM key and the image key.
fn loads_that_end_early(world: &mut World<Firmware>, key_box: &[u8], secrets: &[Secret]) {
    let kem_key = ["KEM key"];
    let requests = load_requests(&world.vendor.container.clone(), key_box);
    let header = requests
        .iter()
        .position(|request| matches!(request, Request::LoadChunk { .. }))
        .expect("a chunk");
    let last_changed = |request: &Request| {
        let mut request = request.clone();
        let (Request::LoadBegin { key_box: bytes, .. }
        | Request::LoadHeader { bytes, .. }
        | Request::LoadChunk { bytes, .. }) = &mut request
        else {
            panic!("a message without bytes")
        };
        *bytes.last_mut().expect("bytes") ^= 1;
        request
    };
    // What is sent, and the message that is refused then.
    for (why, sent, refused) in [
        ("a refused key box", 0, last_changed(&requests[0])),
        ("a refused header", header - 1, last_changed(&requests[header - 1])),
        ("a refused chunk", header, last_changed(&requests[header])),
        ("a second chunk that is refused", header + 1, last_changed(&requests[header + 1])),
        ("a finish before the last chunk", header + 1, Request::LoadFinish),
    ] {
        for (at, request) in requests[..sent].iter().enumerate() {
            world.call(request).unwrap_or_else(|error| panic!("{why}: message {at}: {error}"));
            let now = found(&world.kernel.sim, secrets);
            // The program that opens the chunks has the key, or a cipher that was made of it.
            let expected: &[&str] = &["KEM key", "image key"];
            assert_eq!(now, expected, "{why}: after message {at}: the search finds");
        }
        world.code(&refused);
        assert_eq!(found(&world.kernel.sim, secrets), kem_key, "{why}");
    }
    // A load that another one, which is refused, replaces.
    world.call(&requests[0]).unwrap();
    world.code(&last_changed(&requests[0]));
    assert_eq!(found(&world.kernel.sim, secrets), kem_key, "a load that begins anew");
}

#[test]
fn each_message_takes_its_secrets_with_it() {
    let (of_boot, of_kernel) = of_the_device();
    // Predictable noise: the KEM key's source is one of a few values.
    let mut world = world_with(KIND, &description_for_firmware(), |firmware| {
        firmware.sim.environment.noise =
            Box::new(|cycle| cycle.is_multiple_of(NOISE).then(|| foretold::bit(cycle / NOISE)));
    });
    assert_eq!(
        found(&world.kernel.sim, &of_kernel),
        ["CDI", "attestation key"],
        "the search finds"
    );
    assert_eq!(found(&world.kernel.sim, &of_boot[1..]), [""; 0], "after boot");
    assert!(pieces(&world.kernel.sim, &UDS) <= at_the_input(), "after boot");

    let first = of_evidence(&world.verified_kernel());
    assert_eq!(found(&world.kernel.sim, &first), ["KEM key"], "the search finds");
    let evidence = world.verified_kernel();
    let second = of_evidence(&evidence);
    assert_ne!(first, second);
    assert_eq!(found(&world.kernel.sim, &first), [""; 0], "after other evidence");
    assert_eq!(found(&world.kernel.sim, &second), ["KEM key"], "the search finds");
    let secret = world.vendor.secret(3);
    let key_box = evidence
        .release_image_key("vendor", "image", 1, [9; 16], &secret, &mut entropy(3))
        .unwrap()
        .to_cbor();
    let image_key = [second, vec![("image key", secret.key.expose().to_vec())]].concat();
    loads_that_end_early(&mut world, &key_box, &image_key);
    world.load(&key_box).unwrap();
    assert_eq!(found(&world.kernel.sim, &image_key), [""; 0], "after the load");
    let of_session = |world: &World<Firmware>| -> Vec<Secret> {
        let seed = *shield(world).seeds_taken.last().expect("a seed");
        vec![("seed", seed.to_vec()), ("session key", derive_key_pair(&seed).0.to_bytes().to_vec())]
    };
    world.verified_shield();
    assert_eq!(found(&world.kernel.sim, &of_session(&world)), [""; 0], "after evidence");
    shield(&world).close(&[0x77; 88]);
    world.call(&Request::CloseRecord).unwrap();
    assert_eq!(found(&world.kernel.sim, &of_session(&world)), [""; 0], "after a close record");
    world.call(&Request::NewSession).unwrap();
    assert_eq!(found(&world.kernel.sim, &of_session(&world)), [""; 0], "after a new session");
    let last = [image_key, of_session(&world)].concat();
    let third = of_evidence(&world.verified_kernel());
    assert_eq!(found(&world.kernel.sim, &third), ["KEM key"], "the search finds");
    world.call(&Request::Reset).unwrap();
    assert_eq!(found(&world.kernel.sim, &[last, third].concat()), [""; 0], "after a reset");

    // Debug halts the kernel, and erases its identity and a waiting key, too.
    let all = [&of_kernel[..], &of_evidence(&world.verified_kernel())].concat();
    assert_eq!(
        found(&world.kernel.sim, &all),
        ["CDI", "attestation key", "KEM key"],
        "the search finds"
    );
    world.kernel.sim.debug(true);
    world.kernel.sim.step(70_000);
    assert_eq!(world.kernel.sim.alert(), 7);
    assert_eq!(found(&world.kernel.sim, &all), [""; 0], "after a halt");
}
