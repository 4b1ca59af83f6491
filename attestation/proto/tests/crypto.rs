//! The software primitives and the units' registers pass the same tests; ECDSA and RFC 6979 match
//! their published values.

mod primitives;

use shef_proto::crypto::{self, Crypto, Software};
use shef_units::regs::unit::{CMD, DATA1, DATA4, STATUS, STATUS_OK, STATUS_READY, WIPE};
use shef_units::{Bus, Units, regs};
use std::cell::RefCell;
use std::collections::VecDeque;

/// One unit as its header in shell-rtl describes it, for sequential commands.
#[derive(Default)]
struct Unit {
    command: u32,
    expected: usize,
    input: Vec<u8>,
    output: VecDeque<u8>,
    ok: bool,
    /// k, x, y and the last product.
    p256: [Vec<u8>; 5],
    message: Vec<u8>,
    /// Key and IV, whether it decrypts, AAD, data in.
    gcm: (Vec<u8>, bool, Vec<u8>, Vec<u8>),
}

/// A bus with the four units.
#[derive(Default)]
struct Model {
    units: RefCell<[Unit; 4]>,
    wipes: RefCell<[usize; 4]>,
}

impl Model {
    fn place(address: u32) -> (usize, u32) {
        let unit = [regs::P256, regs::HASH, regs::AES, regs::MEASURE]
            .iter()
            .position(|base| address & !0xfff == *base);
        (unit.unwrap_or_else(|| panic!("{address:#x}")), address & 0xfff)
    }
}

impl Unit {
    fn start(&mut self, unit: usize, command: u32, len: usize) {
        assert_eq!(self.input.len(), self.expected, "command {} is not over", self.command);
        (self.command, self.input) = (command, Vec::new());
        self.expected = match (unit, command) {
            (0, 0..=2) => 32,
            (1 | 3, 2) | (2, 1 | 2) => len,
            (2, 0) => 12 + if len & 1 == 1 { 32 } else { 16 },
            _ => 0,
        };
        match (unit, command) {
            (0, 3 | 4) => {
                let point: [u8; 64] =
                    [&self.p256[1][..], &self.p256[2]].concat().try_into().unwrap_or([0; 64]);
                let k = self.p256[0][..].try_into().expect("k");
                let product = Software.multiply(k, (command == 3).then_some(&point));
                self.ok = product.is_some();
                let product = product.unwrap_or([0; 64]);
                (self.p256[3], self.p256[4]) = (product[..32].to_vec(), product[32..].to_vec());
            }
            (0, 5) => {
                self.ok = Software.on_curve(
                    &[&self.p256[1][..], &self.p256[2]].concat().try_into().expect("x and y"),
                );
            }
            (0, 7 | 8) => self.output.extend(&self.p256[command as usize - 4]),
            (1 | 3, 0) => self.message.clear(),
            (1 | 3, 3) => {
                self.output.extend(Software.sha256(&[&std::mem::take(&mut self.message)]));
            }
            (2, 0) => self.gcm = (Vec::new(), len & 2 != 0, Vec::new(), Vec::new()),
            (2, 3) => {
                let (key, decrypt, aad, data) = &self.gcm;
                let (key, iv) = key.split_at(key.len() - 12);
                let mut data = data.clone();
                if *decrypt {
                    // The input is the ciphertext; the tag is that of its plaintext.
                    Software.seal(key, iv.try_into().unwrap(), aad, &mut data);
                }
                self.output.extend(Software.seal(key, iv.try_into().unwrap(), aad, &mut data));
            }
            _ => {}
        }
    }

    fn take(&mut self, unit: usize, byte: u8) {
        assert!(self.input.len() < self.expected, "a byte too many for command {}", self.command);
        self.input.push(byte);
        match (unit, self.command) {
            (0, command) if self.input.len() == 32 => {
                self.p256[command as usize] = self.input.clone();
            }
            (1 | 3, _) => self.message.push(byte),
            (2, 0) => self.gcm.0.push(byte),
            (2, 1) => self.gcm.2.push(byte),
            (2, 2) => {
                self.gcm.3.push(byte);
                let (key, _, aad, data) = &self.gcm;
                let (key, iv) = key.split_at(key.len() - 12);
                // The key stream is the same in both directions.
                let mut stream = vec![0; data.len()];
                Software.seal(key, iv.try_into().unwrap(), aad, &mut stream);
                self.output.push_back(byte ^ stream[data.len() - 1]);
                assert!(self.output.len() <= 4, "bytes that came out are not taken");
            }
            _ => {}
        }
    }
}

impl Bus for Model {
    fn read(&self, address: u32) -> u32 {
        let (n, register) = Self::place(address);
        let unit = &mut self.units.borrow_mut()[n];
        let mut next = || u32::from(unit.output.pop_front().expect("a byte waits"));
        match register {
            DATA4 => (0..4).fold(0, |word, at| word | next() << (8 * at)),
            DATA1 => next(),
            STATUS => STATUS_READY | if unit.ok { STATUS_OK } else { 0 },
            _ => panic!("read of {address:#x}"),
        }
    }

    fn write(&self, address: u32, value: u32) {
        let (n, register) = Self::place(address);
        let unit = &mut self.units.borrow_mut()[n];
        match register {
            CMD => unit.start(n, value & 0xf, (value >> 16) as usize),
            DATA4 => value.to_le_bytes().iter().for_each(|byte| unit.take(n, *byte)),
            DATA1 => unit.take(n, value as u8),
            WIPE => {
                *unit = Unit::default();
                self.wipes.borrow_mut()[n] += 1;
            }
            _ => panic!("write of {address:#x}"),
        }
    }
}

fn on_the_model(body: impl Fn(&Units<&'static Model>)) -> &'static Model {
    let model: &Model = Box::leak(Box::default());
    body(&Units::new(model));
    model
}

#[test]
fn hashes() {
    primitives::sha256(&Software, 2_000_000);
    // Longer than one command accepts.
    on_the_model(|units| primitives::sha256(units, 2_000_000));
}

#[test]
fn multiples_of_points() {
    primitives::p256(&Software);
    let model = on_the_model(primitives::p256);
    assert!(
        model.wipes.borrow()[0] > 0 && model.units.borrow()[0].p256.iter().all(Vec::is_empty),
        "no scalar stays"
    );
}

#[test]
fn sealing() {
    primitives::gcm(&Software);
    let model = on_the_model(primitives::gcm);
    assert!(
        model.wipes.borrow()[2] > 0 && model.units.borrow()[2].gcm.0.is_empty(),
        "no key stays"
    );
}

/// RFC 6979 A.2.5.
#[test]
fn signatures_are_those_of_rfc_6979() {
    let bytes = |hex: &str| hex::decode(hex).unwrap();
    let private: [u8; 32] =
        bytes("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721")
            .try_into()
            .unwrap();
    let public = Software.multiply(&private, None).unwrap();
    for (message, signature) in [
        (
            "sample",
            "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8",
        ),
        (
            "test",
            "f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083",
        ),
    ] {
        let digest = crypto::sha256(message.as_bytes());
        let made = crypto::sign(&private, &digest);
        // RFC 6979 prints either s.
        assert_eq!(made, crypto::to_low_s(bytes(signature).try_into().unwrap()));
        assert!(crypto::verify(&public, &digest, &made));
        for at in 0..64 {
            let mut changed = made;
            changed[at] ^= 1;
            assert!(!crypto::verify(&public, &digest, &changed), "byte {at}");
        }
        assert!(!crypto::verify(&public, &crypto::sha256(b"other"), &made));
    }
    assert!(
        !crypto::verify(&public, &[0; 32], &[0; 64])
            && !crypto::verify(&public, &[0; 32], &[0xff; 64])
    );
}
