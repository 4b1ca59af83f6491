//! The primitives on the processor.

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit};
use p256::elliptic_curve::PrimeField;
use p256::elliptic_curve::point::AffineCoordinates;
use p256::{AffinePoint, FieldBytes, ProjectivePoint, Scalar};
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

use super::scrub::{CIPHER, scrubbed};
use super::{Crypto, TAG_LEN};

/// RustCrypto's implementations, in constant time.
#[derive(Clone, Copy, Debug)]
pub struct Software;

pub(super) fn point(xy: &[u8; 64]) -> Option<AffinePoint> {
    let (x, y) = xy.split_at(32);
    Option::from(AffinePoint::from_coordinates(
        &FieldBytes::try_from(x).ok()?,
        &FieldBytes::try_from(y).ok()?,
    ))
}

fn coordinates(point: &AffinePoint) -> [u8; 64] {
    let mut xy = [0; 64];
    xy[..32].copy_from_slice(&point.x());
    xy[32..].copy_from_slice(&point.y());
    xy
}

impl Crypto for Software {
    type Running = Sha256;

    fn begin(&self) -> Sha256 {
        Sha256::new()
    }

    fn add(&self, hash: &mut Sha256, part: &[u8]) {
        hash.update(part);
    }

    fn end(&self, hash: Sha256) -> [u8; 32] {
        hash.finalize().into()
    }

    fn sha256(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part);
        }
        hash.finalize().into()
    }

    fn on_curve(&self, xy: &[u8; 64]) -> bool {
        point(xy).is_some()
    }

    fn multiply(&self, scalar: &[u8; 32], xy: Option<&[u8; 64]>) -> Option<[u8; 64]> {
        let scalar = Option::<Scalar>::from(Scalar::from_repr((*scalar).into()))?;
        let product = match xy {
            Some(xy) => ProjectivePoint::from(point(xy)?) * scalar,
            None => ProjectivePoint::GENERATOR * scalar,
        };
        (product != ProjectivePoint::IDENTITY).then(|| coordinates(&product.to_affine()))
    }

    fn seal(&self, key: &[u8], iv: &[u8; 12], aad: &[u8], data: &mut [u8]) -> [u8; TAG_LEN] {
        let sealed = scrubbed::<CIPHER, _>(|| match key.len() {
            16 => Aes128Gcm::new_from_slice(key)
                .map(|aes| aes.encrypt_inout_detached(&(*iv).into(), aad, data.into())),
            _ => Aes256Gcm::new_from_slice(key)
                .map(|aes| aes.encrypt_inout_detached(&(*iv).into(), aad, data.into())),
        });
        sealed
            .ok()
            .and_then(Result::ok)
            .expect("a key of 16 or 32 bytes, and less than 64 GiB")
            .into()
    }

    fn open(
        &self,
        key: &[u8],
        iv: &[u8; 12],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> bool {
        let tag = (*tag).into();
        let opened = scrubbed::<CIPHER, _>(|| match key.len() {
            16 => Aes128Gcm::new_from_slice(key).map(|aes| {
                aes.decrypt_inout_detached(&(*iv).into(), aad, (&mut *data).into(), &tag)
            }),
            _ => Aes256Gcm::new_from_slice(key).map(|aes| {
                aes.decrypt_inout_detached(&(*iv).into(), aad, (&mut *data).into(), &tag)
            }),
        });
        let good = matches!(opened, Ok(Ok(())));
        if !good {
            data.zeroize();
        }
        good
    }
}
