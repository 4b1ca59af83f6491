//! The boot medium, the signature of the kernel, and what boot code hands over.

mod common;

use common::*;
use shef_kernel::{BootError, Identity, KernelImage, Measurement, Medium, SIGNATURE_FILE_LEN, admit, identify};
use shef_proto::cose::SigningKey;
use shef_proto::evidence::{DebugState, RootOfTrust};

fn signed(key: &SigningKey, image: &[u8]) -> [u8; SIGNATURE_FILE_LEN] {
    [&key.sign(image)[..], &key.public_key().xy()].concat().try_into().unwrap()
}

fn read(medium: &[u8], image_max: usize) -> Result<Medium, BootError> {
    Medium::read(medium.len(), image_max, |at| core::array::from_fn(|n| medium.get(at + n).copied().unwrap_or(0)))
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
        // Cut, or longer than it says.
        for len in [0, 3, 11, medium.len() - 1, medium.len() - 4] {
            assert_eq!(read(&medium[..len], 70_000).unwrap_err().code(), "SHEF-KRN-002", "{len}");
        }
    }
}

#[test]
fn lengths_that_contradict_one_another_are_refused() {
    let medium = Medium::build(&[0x11; 100], &[0x33; SIGNATURE_FILE_LEN], &[0x22; 40]);
    for (at, value) in [(0, 0), (4, 0), (4, u32::MAX), (8, 101), (8, 4), (8, u32::MAX - 3), (240, 39 + 8), (240, u32::MAX), (240, 2049)] {
        let mut changed = medium.clone();
        changed[at..at + 4].copy_from_slice(&value.to_le_bytes());
        assert_eq!(read(&changed, 1000).unwrap_err().code(), "SHEF-KRN-002", "{value} at {at}");
    }
    assert!(read(&medium, 100).is_ok());
    assert_eq!(read(&medium, 99).unwrap_err(), BootError::KernelImage { what: "larger than the kernel's memory" });
}

#[test]
fn a_kernel_of_the_trusted_signer_and_no_older_than_it_must_be_is_admitted() {
    let (key, other) = (SigningKey::derive(b"signer"), SigningKey::derive(b"another"));
    let signer = sha256(&key.public_key().xy());
    let image = kernel_image(2);
    let digest = KernelImage::digest(&image);
    let kernel = Measurement { digest, svn: 2, version: "0.1.0" };
    assert_eq!(admit(&kernel, &signed(&key, &image), &signer, 2), Ok(()));
    assert_eq!(admit(&kernel, &signed(&key, &image), &signer, 3), Err(BootError::Svn { svn: 2, least: 3 }));
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

#[test]
fn an_identity_survives_its_way_through_memory() {
    let manufacturer = Manufacturer::new(1);
    let make = || {
        let mut platform = FakePlatform::new(&manufacturer, RootOfTrust::Board, DebugState::DisabledSinceBoot);
        let image = kernel_image(2);
        identify(&mut platform, &Measurement { digest: KernelImage::digest(&image), svn: 2, version: "0.1.0" }).unwrap()
    };
    let bytes = make().to_bytes();
    assert!(bytes.len() <= shef_kernel::IDENTITY_MAX);
    assert_eq!(Identity::from_bytes(&bytes).unwrap().to_bytes(), bytes);
    for end in 0..bytes.len() {
        assert!(Identity::from_bytes(&bytes[..end]).is_err(), "{end}");
    }
    assert!(Identity::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
}
