//! The boot ROM admits only well-formed, signed media; signing uses low s; identities round-trip.

use shef_fixtures::world::*;
use shef_kernel::{
    BootError, Identity, KernelImage, Measurement, Medium, SIGNATURE_FILE_LEN, admit, identify,
};
use shef_proto::cose::SigningKey;
use shef_proto::crypto;
use shef_proto::evidence::{DebugState, Layer, RootOfTrust};
use shef_proto::hpke_suite::PrivateKey;

fn signed(key: &SigningKey, image: &[u8]) -> [u8; SIGNATURE_FILE_LEN] {
    [&key.sign(image)[..], &key.public_key().xy()].concat().try_into().unwrap()
}

fn read(medium: &[u8], image_max: usize) -> Result<Medium, BootError> {
    Medium::read(medium.len(), image_max, |at| {
        core::array::from_fn(|n| medium.get(at + n).copied().unwrap_or(0))
    })
}

#[test]
fn a_medium_is_read_as_it_was_built() {
    for (image, certificate) in [(1, 0), (4, 1), (1003, 500), (70_000, 2048)] {
        let (image, certificate) = (vec![0x11; image], vec![0x22; certificate]);
        let medium = Medium::build(&image, &[0x33; SIGNATURE_FILE_LEN], &certificate);
        let layout = read(&medium, 70_000).unwrap();
        assert_eq!((layout.image_len, layout.certificate_len), (image.len(), certificate.len()));
        assert_eq!(&medium[Medium::IMAGE..][..image.len()], image);
        assert_eq!(medium[layout.signature()..][..SIGNATURE_FILE_LEN], [0x33; SIGNATURE_FILE_LEN]);
        assert_eq!(&medium[layout.certificate()..][..certificate.len()], certificate);
        // Truncated, or longer than its header says.
        for len in [0, 3, 11, medium.len() - 1, medium.len() - 4] {
            assert_eq!(read(&medium[..len], 70_000).unwrap_err().code(), "SHEF-KRN-002", "{len}");
        }
    }
}

#[test]
fn lengths_that_contradict_one_another_are_refused() {
    let medium = Medium::build(&[0x11; 100], &[0x33; SIGNATURE_FILE_LEN], &[0x22; 40]);
    for (at, value) in [
        (0, 0),
        (4, 0),
        (4, u32::MAX),
        (8, 101),
        (8, 4),
        (8, u32::MAX - 3),
        (240, 39 + 8),
        (240, u32::MAX),
        (240, 2049),
    ] {
        let mut changed = medium.clone();
        changed[at..at + 4].copy_from_slice(&value.to_le_bytes());
        assert_eq!(read(&changed, 1000).unwrap_err().code(), "SHEF-KRN-002", "{value} at {at}");
    }
    assert!(read(&medium, 100).is_ok());
    let whole = |certificate| {
        Medium::build(&[0x11; 100], &[0x33; SIGNATURE_FILE_LEN], &vec![0x22; certificate])
    };
    assert!(read(&whole(2048), 100).is_ok());
    assert_eq!(read(&whole(2049), 100).unwrap_err().code(), "SHEF-KRN-002");
    // A certificate length beyond the end is not read.
    let words = [*b"SHKI", 100_u32.to_le_bytes(), 90_u32.to_le_bytes()];
    assert_eq!(Medium::read(100, 1000, |at| words[at / 4]).unwrap_err().code(), "SHEF-KRN-002");
    assert_eq!(
        read(&medium, 99).unwrap_err(),
        BootError::KernelImage { what: "larger than the kernel's memory" }
    );
}

#[test]
fn a_kernel_of_the_trusted_signer_and_no_older_than_it_must_be_is_admitted() {
    let (key, other) = (SigningKey::derive(b"signer"), SigningKey::derive(b"another"));
    let signer = sha256(&key.public_key().xy());
    let image = kernel_image(2);
    let digest = KernelImage::digest(&image);
    let kernel = Measurement { digest, svn: 2, version: "0.1.0" };
    assert_eq!(admit(&kernel, &signed(&key, &image), &signer, 2), Ok(()));
    assert_eq!(
        admit(&kernel, &signed(&key, &image), &signer, 3),
        Err(BootError::Svn { svn: 2, least: 3 })
    );
    let code = |signature| admit(&kernel, &signature, &signer, 2).unwrap_err().code();
    assert_eq!(code(signed(&other, &image)), "SHEF-KRN-004");
    assert_eq!(code(signed(&key, b"another image")), "SHEF-KRN-004");
    for at in 0..SIGNATURE_FILE_LEN {
        let mut changed = signed(&key, &image);
        changed[at] ^= 1;
        assert_eq!(code(changed), "SHEF-KRN-004", "byte {at}");
    }
    assert_eq!(BootError::Svn { svn: 2, least: 3 }.code(), "SHEF-KRN-005");
}

/// If s verifies, so does n - s. The ROM accepts one of the two.
#[test]
fn a_kernel_whose_signature_has_a_high_s_is_refused() {
    // RFC 6979 A.2.5: the key, and its signature of "sample", whose s is high.
    let private =
        hex::decode("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721").unwrap();
    let key = SigningKey::new(&PrivateKey::from_bytes(&private).unwrap());
    let high = hex::decode(
        "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8",
    );
    let xy = key.public_key().xy();
    let kernel = Measurement { digest: sha256(b"sample"), svn: 2, version: "0.1.0" };
    let admit =
        |rs: &[u8]| admit(&kernel, &[rs, &xy].concat().try_into().unwrap(), &sha256(&xy), 2);
    assert_eq!(admit(&high.unwrap()), Err(BootError::Signature { what: "s is above n / 2" }));
    assert_eq!(admit(&key.sign(b"sample")), Ok(()));
}

/// The same code runs on the processor in the FPGA.
#[test]
fn what_boot_code_and_kernel_sign_has_low_s() {
    let mut world = World::new();
    for _ in 0..24 {
        let nonce = world.nonce();
        let evidence = world.evidence(Layer::Kernel, &nonce).unwrap();
        assert!(crypto::is_low_s(evidence.last_chunk().unwrap()));
    }
}

#[test]
fn an_identity_survives_its_way_through_memory() {
    let manufacturer = Manufacturer::new(1);
    let make = || {
        let mut platform =
            FakePlatform::new(&manufacturer, RootOfTrust::Board, DebugState::DisabledSinceBoot);
        let image = kernel_image(2);
        identify(
            &mut platform,
            &Measurement { digest: KernelImage::digest(&image), svn: 2, version: "0.1.0" },
        )
        .unwrap()
    };
    let bytes = make().to_bytes();
    assert!(bytes.len() <= shef_kernel::IDENTITY_MAX);
    assert_eq!(Identity::from_bytes(&bytes).unwrap().to_bytes(), bytes);
    for end in 0..bytes.len() {
        assert!(Identity::from_bytes(&bytes[..end]).is_err(), "{end}");
    }
    assert!(Identity::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
}
