//! The primitives in the units of the Security Kernel's subsystem.

use shef_units::{Bus, Running, Units};
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use super::{Crypto, TAG_LEN};

impl<B: Bus> Crypto for Units<B> {
    type Running = Running;

    fn begin(&self) -> Running {
        self.hash_begin()
    }

    fn add(&self, hash: &mut Running, part: &[u8]) {
        self.hash_add(hash, part);
    }

    fn end(&self, hash: Running) -> [u8; 32] {
        self.hash_end(hash)
    }

    fn sha256(&self, parts: &[&[u8]]) -> [u8; 32] {
        self.hash(parts)
    }

    fn on_curve(&self, point: &[u8; 64]) -> bool {
        self.check_point(point)
    }

    fn multiply(&self, scalar: &[u8; 32], point: Option<&[u8; 64]>) -> Option<[u8; 64]> {
        self.scalar_multiply(scalar, point)
    }

    fn seal(&self, key: &[u8], iv: &[u8; 12], aad: &[u8], data: &mut [u8]) -> [u8; TAG_LEN] {
        self.encrypt(key, iv, aad, data)
    }

    fn open(
        &self,
        key: &[u8],
        iv: &[u8; 12],
        aad: &[u8],
        data: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> bool {
        let good = bool::from(self.decrypt(key, iv, aad, data).ct_eq(tag));
        if !good {
            data.zeroize();
        }
        good
    }
}
