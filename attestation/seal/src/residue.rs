//! Ciphers and the register channel leave no key on the stack, and no key in the process memory
//! after they are dropped.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::sync::Mutex;

use shef_proto::channel::{
    OwnerChannel, Received, ShieldAnswer, ShieldChannel, ShieldRequest, status,
};
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::{Entropy, SeededEntropy};
use shef_proto::hpke_suite::{self, PrivateKey, Receiver, Sender, derive_key_pair};
use shef_proto::load::{Key, SessionKeys, first_epochs, open_load_key, seal_load_key};

use zeroize::Zeroizing;

use crate::gcm::{lc, rust};

/// Stack bytes searched below the test's frame: more than any of these calls uses.
const STACK: usize = 96 << 10;
/// Mask on the stored needles, so that the search does not find itself.
const MASK: u8 = 0xa5;

/// Tests run one at a time: a search copies the other tests' memory.
static ALONE: Mutex<()> = Mutex::new(());

/// Masked 16-byte pieces of keys.
#[derive(Default)]
struct Needles(Vec<[u8; 16]>);

impl Needles {
    /// Adds the round keys of an AES-256 key in the order of FIPS 197. The first two are the key.
    fn add(&mut self, key: &[u8; 32]) {
        let mut words = [[0; 4]; 60];
        for (word, bytes) in words.iter_mut().zip(key.chunks(4)) {
            word.copy_from_slice(bytes);
        }
        let mut constant = 1;
        for i in 8..words.len() {
            let mut word = words[i - 1];
            if i % 8 == 0 {
                word.rotate_left(1);
                word = word.map(sub_byte);
                word[0] ^= constant;
                constant <<= 1;
            } else if i % 8 == 4 {
                word = word.map(sub_byte);
            }
            words[i] = core::array::from_fn(|j| words[i - 8][j] ^ word[j]);
        }
        for piece in words.chunks(4) {
            self.0.push(core::array::from_fn(|i| piece[i / 4][i % 4] ^ MASK));
        }
        words.fill([0; 4]);
        black_box(&mut words);
    }

    /// Adds a number of 32 bytes in big-endian and in little-endian order.
    fn add_number(&mut self, number: &[u8]) {
        for i in [0, 16] {
            self.0.push(core::array::from_fn(|j| number[i + j] ^ MASK));
            self.0.push(core::array::from_fn(|j| number[31 - i - j] ^ MASK));
        }
    }

    /// Pieces found in `bytes`.
    fn found(&self, bytes: &[u8]) -> usize {
        bytes
            .windows(16)
            .filter(|window| {
                self.0.iter().any(|needle| needle.iter().zip(*window).all(|(n, w)| n ^ MASK == *w))
            })
            .count()
    }

    /// Pieces found on the stack below this call.
    #[inline(never)]
    fn on_the_stack(&self, mem: &mut File) -> usize {
        let mut bytes = Zeroizing::new(vec![0; STACK]);
        let here = (&raw const bytes).addr() as u64;
        mem.seek(SeekFrom::Start(here - STACK as u64)).unwrap();
        mem.read_exact(&mut bytes).unwrap();
        self.found(&bytes)
    }

    /// Pieces found in all writable memory of this process.
    fn in_memory(&self, mem: &mut File) -> usize {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let ranges = maps.lines().filter(|line| line.contains(" rw-p ")).map(|line| {
            let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
            (u64::from_str_radix(from, 16).unwrap(), u64::from_str_radix(to, 16).unwrap())
        });
        let mut found = 0;
        for (from, to) in ranges {
            let mut bytes = Zeroizing::new(vec![0; (to - from) as usize]);
            // A guard page cannot be read.
            if mem.seek(SeekFrom::Start(from)).and_then(|_| mem.read_exact(&mut bytes)).is_ok() {
                found += self.found(&bytes);
            }
        }
        found
    }
}

fn sub_byte(x: u8) -> u8 {
    let double = |x: u8| x << 1 ^ if x & 0x80 == 0 { 0 } else { 0x1b };
    let times = |a: u8, b: u8| {
        (0..8)
            .fold((0, a), |(sum, a), bit| {
                (if b >> bit & 1 == 0 { sum } else { sum ^ a }, double(a))
            })
            .0
    };
    let inverse = (0..254).fold(1, |power, _| times(power, x));
    (1..5).fold(inverse ^ 0x63, |sum, by| sum ^ inverse.rotate_left(by))
}

/// Fills the stack below the caller with a pattern, which overwrites residue of earlier calls.
#[inline(never)]
fn pattern() {
    black_box(&mut [0x5a_u8; STACK]);
}

/// A new key.
fn key() -> [u8; 32] {
    let mut key = [0; 32];
    File::open("/dev/urandom").unwrap().read_exact(&mut key).unwrap();
    key
}

#[test]
fn no_key_stays_on_the_stack_or_in_freed_memory() {
    let _alone = ALONE.lock();
    let mut mem = File::open("/proc/self/mem").unwrap();
    let mut all = Needles::default();
    for _ in 0..10 {
        let mut needles = Needles::default();
        let mut check = |what: &str, needles: &Needles| {
            assert_eq!(
                needles.on_the_stack(&mut mem),
                0,
                "{what} leaves pieces of its key on the stack"
            );
            pattern();
        };
        pattern();
        let mut raw = key();
        needles.add(&raw);
        let boxed = Key::new(&raw).unwrap();
        raw.fill(0);
        black_box(&mut raw);
        pattern();

        let software = rust::Aes::new(&boxed);
        check("the expansion of a software key", &needles);
        let mut data = [7; 512];
        let tag = software.seal([1; 12], &[], &mut data);
        check("a software seal", &needles);
        assert!(software.open([1; 12], &[], &mut data, &tag));
        check("a software open", &needles);
        drop(software);
        check("the end of a software key", &needles);

        let native = lc::Aes::new(&boxed);
        check("the expansion of a key of aws-lc", &needles);
        let tag = native.seal([2; 12], &[], &mut data);
        check("a seal of aws-lc", &needles);
        assert!(native.open([2; 12], &[], &mut data, &tag));
        check("an open of aws-lc", &needles);
        drop(native);
        drop(boxed);
        all.0.append(&mut needles.0);
    }
    assert_eq!(all.in_memory(&mut mem), 0, "pieces of keys are left in memory");
}

/// The keys of both ends of a session.
fn session(seed: u64) -> (SessionKeys, SessionKeys) {
    let (mode, size, chunk, key_bits) = (Mode::Input, 0x1000, 512, 256);
    let region = Region {
        name: "r".into(),
        mode,
        size,
        chunk,
        key_bits,
        tag_base: 0x1000,
        ..Region::default()
    };
    let config = Config::new(OnFault::Shield, 1, vec![Set::default()], vec![region]).unwrap();
    let (private, public) = derive_key_pair(&seed.to_be_bytes().repeat(4));
    let mut entropy = SeededEntropy::new(seed, "residue");
    let (message, owner) =
        seal_load_key(&config, &public, b"", &first_epochs(&config, 1), &mut entropy).unwrap();
    (owner, open_load_key(&config, &private, &message).unwrap().0)
}

/// A session's messages, in a separate frame that its values may occupy.
#[inline(never)]
fn channel(seed: u64, mem: &mut File) -> Needles {
    let (of_owner, of_shield) = session(seed);
    let mut needles = Needles::default();
    for key in [of_owner.to_shield(), of_owner.to_owner()] {
        needles.add(key.expose().try_into().unwrap());
    }
    pattern();
    let mut check = |what: &str| {
        assert_eq!(needles.on_the_stack(mem), 0, "{what} leaves pieces of a key on the stack");
        pattern();
    };
    let (mut owner, mut shield) = (OwnerChannel::new(&of_owner), ShieldChannel::new(&of_shield));
    check("a new channel");
    let sealed = owner.request(&ShieldRequest::ping()).unwrap();
    check("a request");
    let Received::Run(request) = shield.receive(&sealed) else { panic!("not the next request") };
    check("a received request");
    let answer = shield.answer(&ShieldAnswer::to(&request, status::DONE));
    check("a sealed answer");
    owner.answer(&answer).unwrap();
    check("an opened answer");
    drop((owner, shield, of_owner, of_shield));
    needles
}

#[test]
fn no_key_of_a_channel_stays_on_the_stack_or_in_freed_memory() {
    let _alone = ALONE.lock();
    let mut mem = File::open("/proc/self/mem").unwrap();
    let mut all = Needles::default();
    for seed in 0..10 {
        pattern();
        all.0.append(&mut channel(seed, &mut mem).0);
        pattern();
    }
    assert_eq!(all.in_memory(&mut mem), 0, "pieces of keys are left in memory");
}

/// Returns 32 bytes from a place that the search does not cover.
struct Once<'a>(&'a [u8]);

impl Entropy for Once<'_> {
    fn fill(&mut self, out: &mut [u8]) {
        out.copy_from_slice(self.0);
    }
}

/// A new secret, in one place.
fn drawn() -> Zeroizing<Vec<u8>> {
    let mut secret = Zeroizing::new(vec![0; 32]);
    File::open("/dev/urandom").unwrap().read_exact(&mut secret).unwrap();
    secret
}

/// Uses every operation once, in a separate frame that its values may occupy.
#[inline(never)]
fn boxes(mem: &mut File) -> Needles {
    let (seed, ikm, secret) = (drawn(), drawn(), drawn());
    let mut needles = Needles::default();
    {
        let (private, public) = derive_key_pair(&seed[..]);
        let (ephemeral, _) = derive_key_pair(&ikm[..]);
        let (enc, sender) = Sender::setup(&public, b"info", &mut Once(&ikm)).unwrap();
        assert_eq!(enc, *ephemeral.public_key().as_bytes());
        for number in [private.to_bytes(), ephemeral.to_bytes(), sender.export(b"one").unwrap()] {
            needles.add_number(&number[..]);
        }
        for number in [&seed, &ikm, &secret] {
            needles.add_number(number);
        }
    }
    pattern();
    let mut check = |what: &str| {
        assert_eq!(needles.on_the_stack(mem), 0, "{what} leaves pieces of a secret on the stack");
        pattern();
    };
    let (private, public) = derive_key_pair(&seed[..]);
    check("a key pair");
    let bytes = private.to_bytes();
    let again = PrivateKey::from_bytes(&bytes[..]).unwrap();
    check("a private key");
    let (enc, mut sender) = Sender::setup(&public, b"info", &mut Once(&ikm)).unwrap();
    check("a sender");
    let sealed = sender.seal(b"", &secret[..]).unwrap();
    check("a sealed message");
    drop(sender.export(b"one").unwrap());
    check("a sender's export");
    let mut receiver = Receiver::setup(&again, &enc, b"info").unwrap();
    check("a receiver");
    assert!(receiver.open(b"", &sealed).unwrap()[..] == secret[..]);
    check("an opened message");
    drop(receiver.export(b"one"));
    check("a receiver's export");
    assert!(Receiver::setup(&again, &[4; 65], b"info").is_err());
    check("a receiver that is none");
    let (enc, sealed) =
        hpke_suite::seal(&public, b"info", b"", &secret[..], &mut Once(&ikm)).unwrap();
    check("a box");
    assert!(hpke_suite::open(&private, &enc, b"info", b"", &sealed).unwrap()[..] == secret[..]);
    check("an opened box");
    assert!(hpke_suite::open(&private, &enc, b"other", b"", &sealed).is_err());
    check("a box that does not open");
    let _ = SigningKey::new(&private).sign(b"message");
    check("a signature");
    needles
}

#[test]
fn no_secret_of_hpke_and_signatures_stays_on_the_stack_or_in_freed_memory() {
    let _alone = ALONE.lock();
    let mut mem = File::open("/proc/self/mem").unwrap();
    let mut all = Needles::default();
    for _ in 0..10 {
        pattern();
        all.0.append(&mut boxes(&mut mem).0);
        pattern();
    }
    assert_eq!(all.in_memory(&mut mem), 0, "pieces of secrets are left in memory");
}
