//! Drivers of the crypto units: byte streams through command, status and data registers.

use crate::bus::Bus;
use crate::regs;
use crate::regs::unit::{CMD, DATA1, DATA4, STATUS, STATUS_OK, STATUS_READY, WIPE};

/// Commands of `shef_p256`.
mod p256 {
    pub const LOAD_K: u32 = 0;
    pub const LOAD_X: u32 = 1;
    pub const LOAD_Y: u32 = 2;
    pub const MUL: u32 = 3;
    pub const MUL_G: u32 = 4;
    pub const CHECK_POINT: u32 = 5;
    pub const READ_X: u32 = 7;
    pub const READ_Y: u32 = 8;
}

/// Commands of `shef_hmac`.
mod hash {
    pub const INIT: u32 = 0;
    pub const ABSORB: u32 = 2;
    pub const FINAL: u32 = 3;
}

/// Commands of `shef_gcm_iter`.
mod aes {
    pub const INIT: u32 = 0;
    pub const AAD: u32 = 1;
    pub const DATA: u32 = 2;
    pub const FINAL: u32 = 3;
    pub const LONG_KEY: usize = 1;
    pub const DECRYPT: usize = 2;
}

/// Maximum bytes of one command, a whole number of words.
const PART: usize = 0xfffc;

/// A running SHA-256 in the second unit.
#[derive(Debug)]
pub struct Running(());

/// The units on a bus. Units that would retain a secret are wiped after use.
///
/// A unit's address is a constant of the functions that access it, so that the bus need not check
/// it for each word.
#[derive(Clone, Copy, Debug)]
pub struct Units<B>(B);

impl<B: Bus> Units<B> {
    /// The units on this bus.
    pub const fn new(bus: B) -> Self {
        Self(bus)
    }

    /// SHA-256 of the concatenated parts.
    pub fn hash(&self, parts: &[&[u8]]) -> [u8; 32] {
        self.command::<{ regs::HASH }>(hash::INIT, 0);
        for part in parts {
            self.absorb::<{ regs::HASH }>(part);
        }
        self.digest::<{ regs::HASH }>()
    }

    /// Begins a SHA-256 in the second unit, which may overlap with other hashes. A SHA-256 that is
    /// already running there is lost.
    pub fn hash_begin(&self) -> Running {
        self.command::<{ regs::MEASURE }>(hash::INIT, 0);
        Running(())
    }

    /// Appends to a running SHA-256.
    pub fn hash_add(&self, _: &mut Running, part: &[u8]) {
        self.absorb::<{ regs::MEASURE }>(part);
    }

    /// Finishes a running SHA-256.
    pub fn hash_end(&self, _: Running) -> [u8; 32] {
        self.digest::<{ regs::MEASURE }>()
    }

    /// Whether `x | y` is a point of the curve.
    pub fn check_point(&self, point: &[u8; 64]) -> bool {
        self.load_point(point);
        self.command::<{ regs::P256 }>(p256::CHECK_POINT, 0);
        self.outcome::<{ regs::P256 }>()
    }

    /// `scalar` times a point of the curve, or times the generator; `None` is the point at
    /// infinity.
    pub fn scalar_multiply(&self, scalar: &[u8; 32], point: Option<&[u8; 64]>) -> Option<[u8; 64]> {
        self.load(p256::LOAD_K, scalar);
        if let Some(point) = point {
            self.load_point(point);
        }
        self.command::<{ regs::P256 }>(if point.is_some() { p256::MUL } else { p256::MUL_G }, 0);
        let finite = self.outcome::<{ regs::P256 }>();
        let mut product = [0; 64];
        let (x, y) = product.split_at_mut(32);
        for (command, half) in [(p256::READ_X, x), (p256::READ_Y, y)] {
            self.command::<{ regs::P256 }>(command, 0);
            self.receive::<{ regs::P256 }>(half);
        }
        self.wipe::<{ regs::P256 }>();
        finite.then_some(product)
    }

    /// Encrypts `data` in place with AES-GCM and a key of 16 or 32 bytes, and returns the tag.
    pub fn encrypt(&self, key: &[u8], iv: &[u8; 12], aad: &[u8], data: &mut [u8]) -> [u8; 16] {
        self.gcm(0, key, iv, aad, data)
    }

    /// Decrypts `data` in place and returns the expected tag; the caller compares it.
    #[must_use]
    pub fn decrypt(&self, key: &[u8], iv: &[u8; 12], aad: &[u8], data: &mut [u8]) -> [u8; 16] {
        self.gcm(aes::DECRYPT, key, iv, aad, data)
    }

    fn gcm(
        &self,
        direction: usize,
        key: &[u8],
        iv: &[u8; 12],
        aad: &[u8],
        data: &mut [u8],
    ) -> [u8; 16] {
        let size = if key.len() == 32 { aes::LONG_KEY } else { 0 };
        self.command::<{ regs::AES }>(aes::INIT, direction | size);
        self.send::<{ regs::AES }>(key);
        self.send::<{ regs::AES }>(iv);
        for part in aad.chunks(PART) {
            self.command::<{ regs::AES }>(aes::AAD, part.len());
            self.send::<{ regs::AES }>(part);
        }
        for part in data.chunks_mut(PART) {
            self.command::<{ regs::AES }>(aes::DATA, part.len());
            for bytes in part.chunks_mut(4) {
                self.send::<{ regs::AES }>(bytes);
                self.receive::<{ regs::AES }>(bytes);
            }
        }
        self.command::<{ regs::AES }>(aes::FINAL, 0);
        let mut tag = [0; 16];
        self.receive::<{ regs::AES }>(&mut tag);
        self.wipe::<{ regs::AES }>();
        tag
    }

    fn absorb<const UNIT: u32>(&self, part: &[u8]) {
        for part in part.chunks(PART) {
            self.command::<UNIT>(hash::ABSORB, part.len());
            self.send::<UNIT>(part);
        }
    }

    fn digest<const UNIT: u32>(&self) -> [u8; 32] {
        self.command::<UNIT>(hash::FINAL, 0);
        let mut digest = [0; 32];
        self.receive::<UNIT>(&mut digest);
        digest
    }

    fn load(&self, command: u32, bytes: &[u8]) {
        self.command::<{ regs::P256 }>(command, bytes.len());
        self.send::<{ regs::P256 }>(bytes);
    }

    fn load_point(&self, point: &[u8; 64]) {
        self.load(p256::LOAD_X, &point[..32]);
        self.load(p256::LOAD_Y, &point[32..]);
    }

    /// Waits until the unit is idle, and starts a command.
    fn command<const UNIT: u32>(&self, command: u32, len: usize) {
        self.0.write(UNIT + CMD, command | (len as u32) << 16);
    }

    /// Waits until the command finishes, and returns its outcome.
    fn outcome<const UNIT: u32>(&self) -> bool {
        loop {
            let status = self.0.read(UNIT + STATUS);
            if status & STATUS_READY != 0 {
                return status & STATUS_OK != 0;
            }
        }
    }

    fn send<const UNIT: u32>(&self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<4>();
        for word in words {
            self.0.write(UNIT + DATA4, u32::from_le_bytes(*word));
        }
        for byte in rest {
            self.0.write(UNIT + DATA1, u32::from(*byte));
        }
    }

    fn receive<const UNIT: u32>(&self, out: &mut [u8]) {
        let (words, rest) = out.as_chunks_mut::<4>();
        for word in words {
            *word = self.0.read(UNIT + DATA4).to_le_bytes();
        }
        for byte in rest {
            *byte = self.0.read(UNIT + DATA1) as u8;
        }
    }

    fn wipe<const UNIT: u32>(&self) {
        self.0.write(UNIT + WIPE, 1);
    }
}
