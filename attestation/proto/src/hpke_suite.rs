//! Suite 1 of RFC 9180: base mode, DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-256-GCM.
//!
//! Built on the primitives of [`crate::crypto`]. The AEAD is a parameter, so that the published
//! vectors of RFC 9180 A.3 (AES-128-GCM) run through the same code.

use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::crypto::scrub::derived;
use crate::crypto::{self, ACTIVE, Crypto};
use crate::entropy::Entropy;
use crate::fork::{ForkGuard, Forked};

/// The suite id that every format carries.
pub const SUITE: u16 = 1;
/// HPKE KEM id: DHKEM(P-256, HKDF-SHA256).
pub const KEM_ID: u16 = 0x0010;
/// HPKE KDF id: HKDF-SHA256.
pub const KDF_ID: u16 = 0x0001;
/// HPKE AEAD id: AES-256-GCM.
pub const AEAD_ID: u16 = 0x0002;
/// Bytes of an uncompressed public key (`04 | x | y`).
pub const PUBLIC_KEY_LEN: usize = 65;
/// Bytes of an encapsulated key.
pub const ENC_LEN: usize = 65;
/// Bytes of a private key.
pub const PRIVATE_KEY_LEN: usize = 32;
/// Bytes that sealing adds.
pub const TAG_LEN: usize = 16;

crate::coded! {
    /// Errors of the suite's keys and messages.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum HpkeError {
        /// The bytes are not a point of the curve.
        #[error("not a P-256 public key")]
        PublicKey = "SHEF-PRO-270": "not a P-256 public key",
            "A public key is 65 bytes, 04 | x | y, and its point lies on the curve. The bytes were damaged or come from another suite.",
        /// The message does not open.
        #[error("hpke message does not open")]
        Open = "SHEF-PRO-271": "an HPKE message does not open",
            "The message was changed on its way, was made for another key, or its info or aad is not the one expected.",
        /// The bytes are not a private key.
        #[error("not a P-256 private key")]
        PrivateKey = "SHEF-PRO-272": "not a P-256 private key", "A private key is 32 bytes, 0 < k < n. The bytes were damaged.",
    }
}

crate::coded! {
    /// Why a [`Sender`] refuses to seal.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum SenderError {
        /// This process is a fork of the one that made the sender.
        #[error("process {made} made the HPKE sender, and this is process {found}")]
        Forked {
            /// process that made the sender
            made: u32,
            /// this process
            found: u32,
        } = "SHEF-PRO-273": "a copy of a process uses an HPKE sender",
            "A copy made by fork has the same key and the same message number, and would seal another message under the same nonce. Set up \
             a sender in the new process.",
        /// No message numbers left.
        #[error("the HPKE sender has no message number left")]
        Exhausted = "SHEF-PRO-274": "an HPKE sender is exhausted", "Set up a new sender.",
    }
}

impl From<Forked> for SenderError {
    fn from(Forked { made, found }: Forked) -> Self {
        Self::Forked { made, found }
    }
}

/// A public key; its point is on the curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PublicKey([u8; PUBLIC_KEY_LEN]);

impl PublicKey {
    /// Checks and accepts the 65 bytes `04 | x | y`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HpkeError> {
        let raw: [u8; PUBLIC_KEY_LEN] = bytes.try_into().map_err(|_| HpkeError::PublicKey)?;
        if raw[0] != 4 {
            return Err(HpkeError::PublicKey);
        }
        let key = Self(raw);
        if ACTIVE.on_curve(&key.xy()) { Ok(key) } else { Err(HpkeError::PublicKey) }
    }

    /// Checks and accepts the 64 bytes `x | y`, as read from the Shield's kernel port.
    pub fn from_xy(xy: &[u8; 64]) -> Result<Self, HpkeError> {
        if ACTIVE.on_curve(xy) { Ok(Self::of_point(xy)) } else { Err(HpkeError::PublicKey) }
    }

    /// Key of a point that is on the curve.
    fn of_point(xy: &[u8; 64]) -> Self {
        let mut raw = [4; PUBLIC_KEY_LEN];
        raw[1..].copy_from_slice(xy);
        Self(raw)
    }

    /// `04 | x | y`.
    pub fn as_bytes(&self) -> &[u8; PUBLIC_KEY_LEN] {
        &self.0
    }

    /// `x | y`.
    pub fn xy(&self) -> [u8; 64] {
        let mut xy = [0; 64];
        xy.copy_from_slice(&self.0[1..]);
        xy
    }
}

/// A private key with its public key; erased when dropped.
pub struct PrivateKey {
    scalar: Zeroizing<[u8; PRIVATE_KEY_LEN]>,
    public: PublicKey,
}

impl PrivateKey {
    /// Takes 32 bytes, big-endian, `0 < k < n`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HpkeError> {
        derived!({
            let scalar = Zeroizing::new(
                <[u8; PRIVATE_KEY_LEN]>::try_from(bytes).map_err(|_| HpkeError::PrivateKey)?,
            );
            if !crypto::in_range(&scalar) {
                return Err(HpkeError::PrivateKey);
            }
            let point = ACTIVE.multiply(&scalar, None).ok_or(HpkeError::PrivateKey)?;
            Ok(Self { scalar, public: PublicKey::of_point(&point) })
        })
    }

    /// The pair of these bytes, which the caller knows to match: saves the multiplication.
    pub fn of_pair(bytes: &[u8], public: PublicKey) -> Result<Self, HpkeError> {
        let scalar = Zeroizing::new(
            <[u8; PRIVATE_KEY_LEN]>::try_from(bytes).map_err(|_| HpkeError::PrivateKey)?,
        );
        if crypto::in_range(&scalar) {
            Ok(Self { scalar, public })
        } else {
            Err(HpkeError::PrivateKey)
        }
    }

    /// A copy of the key, for its other use.
    pub(crate) fn again(&self) -> Self {
        Self { scalar: self.scalar.clone(), public: self.public }
    }

    /// The 32 bytes, for authorised storage.
    pub fn to_bytes(&self) -> Zeroizing<[u8; PRIVATE_KEY_LEN]> {
        self.scalar.clone()
    }

    /// The public key.
    pub fn public_key(&self) -> PublicKey {
        self.public
    }

    /// The x coordinate of the product of this key and a point.
    fn agree(&self, key: &PublicKey) -> Result<Zeroizing<[u8; 32]>, HpkeError> {
        let point = Zeroizing::new(
            ACTIVE.multiply(&self.scalar, Some(&key.xy())).ok_or(HpkeError::PublicKey)?,
        );
        let mut x = Zeroizing::new([0; 32]);
        x.copy_from_slice(&point[..32]);
        Ok(x)
    }
}

/// Suite id of the KEM in labels.
const KEM_SUITE: &[u8] = &[b'K', b'E', b'M', 0x00, 0x10];

/// `LabeledExtract`, RFC 9180 section 4.
fn labeled_extract(suite: &[u8], salt: &[u8], label: &[u8], ikm: &[u8]) -> Zeroizing<[u8; 32]> {
    crypto::extract(salt, &[b"HPKE-v1", suite, label, ikm])
}

/// `LabeledExpand`.
fn labeled_expand<const N: usize>(
    suite: &[u8],
    prk: &[u8; 32],
    label: &[u8],
    info: &[&[u8]],
) -> Zeroizing<[u8; N]> {
    let len = (N as u16).to_be_bytes();
    let mut all: Vec<&[u8]> = Vec::with_capacity(4 + info.len());
    all.extend_from_slice(&[&len, b"HPKE-v1", suite, label]);
    all.extend_from_slice(info);
    crypto::expand(prk, &all)
}

/// `DeriveKeyPair(ikm)`, RFC 9180 7.1.3.
///
/// # Panics
/// Never: this needs 256 consecutive candidates out of range.
pub fn derive_key_pair(ikm: &[u8]) -> (PrivateKey, PublicKey) {
    derived!({
        let prk = labeled_extract(KEM_SUITE, b"", b"dkp_prk", ikm);
        let key = (0..=u8::MAX)
            .find_map(|counter| {
                let candidate =
                    labeled_expand::<PRIVATE_KEY_LEN>(KEM_SUITE, &prk, b"candidate", &[&[counter]]);
                PrivateKey::from_bytes(&candidate[..]).ok()
            })
            .expect("a candidate is in range");
        let public = key.public;
        (key, public)
    })
}

/// A fresh key pair: `DeriveKeyPair` of 32 random bytes.
pub fn generate_key_pair(entropy: &mut dyn Entropy) -> (PrivateKey, PublicKey) {
    derived!({
        let mut ikm = Zeroizing::new([0; PRIVATE_KEY_LEN]);
        entropy.fill(&mut ikm[..]);
        derive_key_pair(&ikm[..])
    })
}

/// The supported AEADs; suite 1 uses the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aead {
    /// AES-128-GCM.
    Aes128Gcm = 0x0001,
    /// AES-256-GCM.
    Aes256Gcm = AEAD_ID as isize,
}

/// State that sender and receiver share after set-up.
struct Context {
    suite: [u8; 10],
    aead: Aead,
    key: Zeroizing<[u8; 32]>,
    base_nonce: Zeroizing<[u8; 12]>,
    exporter: Zeroizing<[u8; 32]>,
    messages: u64,
}

impl Context {
    /// `ExtractAndExpand` of the KEM, then `KeySchedule` in base mode.
    fn new(
        aead: Aead,
        dh: &[u8; 32],
        enc: &[u8; ENC_LEN],
        recipient: &PublicKey,
        info: &[u8],
    ) -> Self {
        let prk = labeled_extract(KEM_SUITE, b"", b"eae_prk", dh);
        let shared =
            labeled_expand::<32>(KEM_SUITE, &prk, b"shared_secret", &[enc, recipient.as_bytes()]);

        let mut suite = *b"HPKE......";
        for (place, id) in suite[4..].chunks_exact_mut(2).zip([KEM_ID, KDF_ID, aead as u16]) {
            place.copy_from_slice(&id.to_be_bytes());
        }
        let psk_id_hash = labeled_extract(&suite, b"", b"psk_id_hash", b"");
        let info_hash = labeled_extract(&suite, b"", b"info_hash", info);
        let context: [&[u8]; 3] = [&[0], &psk_id_hash[..], &info_hash[..]];
        let secret = labeled_extract(&suite, &shared[..], b"secret", b"");
        let mut key = Zeroizing::new([0; 32]);
        match aead {
            Aead::Aes128Gcm => key[..16]
                .copy_from_slice(&labeled_expand::<16>(&suite, &secret, b"key", &context)[..]),
            Aead::Aes256Gcm => {
                key.copy_from_slice(&labeled_expand::<32>(&suite, &secret, b"key", &context)[..]);
            }
        }
        Self {
            suite,
            aead,
            key,
            base_nonce: labeled_expand(&suite, &secret, b"base_nonce", &context),
            exporter: labeled_expand(&suite, &secret, b"exp", &context),
            messages: 0,
        }
    }

    fn key(&self) -> &[u8] {
        match self.aead {
            Aead::Aes128Gcm => &self.key[..16],
            Aead::Aes256Gcm => &self.key[..],
        }
    }

    /// Nonce of the next message.
    fn nonce(&self) -> [u8; 12] {
        let mut nonce = *self.base_nonce;
        for (byte, number) in nonce[4..].iter_mut().zip(self.messages.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }

    fn export(&self, context: &[u8]) -> Zeroizing<[u8; 32]> {
        labeled_expand(&self.suite, &self.exporter, b"sec", &[context])
    }
}

/// The sender's context after `SetupBaseS`. It works only in the process that made it: a fork would
/// seal another message under the same nonce.
pub struct Sender {
    context: Context,
    fork_guard: ForkGuard,
}

/// The receiver's context after `SetupBaseR`.
pub struct Receiver(Context);

/// Maximum length of `info`.
const MAX_INFO: usize = 65_000;

impl Sender {
    /// `SetupBaseS(pk, info)` in suite 1. Draws 32 bytes and applies `DeriveKeyPair` to get the
    /// ephemeral key. `info` is at most 65,000 bytes.
    pub fn setup(
        pk: &PublicKey,
        info: &[u8],
        entropy: &mut dyn Entropy,
    ) -> Result<([u8; ENC_LEN], Self), HpkeError> {
        Self::setup_with(Aead::Aes256Gcm, pk, info, entropy)
    }

    /// The same with another AEAD.
    pub fn setup_with(
        aead: Aead,
        pk: &PublicKey,
        info: &[u8],
        entropy: &mut dyn Entropy,
    ) -> Result<([u8; ENC_LEN], Self), HpkeError> {
        if info.len() > MAX_INFO {
            return Err(HpkeError::Open);
        }
        let fork_guard = ForkGuard::this();
        derived!({
            let (ephemeral, enc) = generate_key_pair(entropy);
            let dh = ephemeral.agree(pk)?;
            Ok((enc.0, Self { context: Context::new(aead, &dh, &enc.0, pk, info), fork_guard }))
        })
    }

    /// Seals the next message.
    ///
    /// # Errors
    /// This is a fork of the process that made the sender, or no numbers are left.
    pub fn seal(&mut self, aad: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, SenderError> {
        self.fork_guard.check()?;
        let nonce = self.context.nonce();
        self.context.messages =
            self.context.messages.checked_add(1).ok_or(SenderError::Exhausted)?;
        let mut out = Vec::with_capacity(plaintext.len() + TAG_LEN);
        out.extend_from_slice(plaintext);
        let tag = ACTIVE.seal(self.context.key(), &nonce, aad, &mut out);
        out.extend_from_slice(&tag);
        Ok(out)
    }

    /// `Export(context, 32)`.
    ///
    /// # Errors
    /// This process is a fork of the one that made the sender: both would derive the same secret.
    pub fn export(&self, context: &[u8]) -> Result<Zeroizing<[u8; 32]>, SenderError> {
        self.fork_guard.check()?;
        Ok(derived!(self.context.export(context)))
    }
}

impl Receiver {
    /// `SetupBaseR(enc, sk, info)` in suite 1; refuses an `enc` that is not a point of the curve.
    pub fn setup(sk: &PrivateKey, enc: &[u8], info: &[u8]) -> Result<Self, HpkeError> {
        Self::setup_with(Aead::Aes256Gcm, sk, enc, info)
    }

    /// The same with another AEAD.
    pub fn setup_with(
        aead: Aead,
        sk: &PrivateKey,
        enc: &[u8],
        info: &[u8],
    ) -> Result<Self, HpkeError> {
        if info.len() > MAX_INFO {
            return Err(HpkeError::PublicKey);
        }
        let enc = PublicKey::from_bytes(enc)?;
        derived!({
            let dh = sk.agree(&enc)?;
            Ok(Self(Context::new(aead, &dh, &enc.0, &sk.public, info)))
        })
    }

    /// Opens the next message.
    pub fn open(&mut self, aad: &[u8], ct: &[u8]) -> Result<Zeroizing<Vec<u8>>, HpkeError> {
        let (data, tag) = ct.split_last_chunk::<TAG_LEN>().ok_or(HpkeError::Open)?;
        let nonce = self.0.nonce();
        let mut data = Zeroizing::new(data.to_vec());
        if !ACTIVE.open(self.0.key(), &nonce, aad, &mut data, tag) {
            return Err(HpkeError::Open);
        }
        self.0.messages = self.0.messages.checked_add(1).ok_or(HpkeError::Open)?;
        Ok(data)
    }

    /// `Export(context, 32)`.
    pub fn export(&self, context: &[u8]) -> Zeroizing<[u8; 32]> {
        derived!(self.0.export(context))
    }
}

/// One message in suite 1: `(enc, ct)`.
pub fn seal(
    pk: &PublicKey,
    info: &[u8],
    aad: &[u8],
    plaintext: &[u8],
    entropy: &mut dyn Entropy,
) -> Result<([u8; ENC_LEN], Vec<u8>), HpkeError> {
    derived!({
        let (enc, mut ctx) = Sender::setup(pk, info, entropy)?;
        Ok((enc, ctx.seal(aad, plaintext).map_err(|_| HpkeError::Open)?))
    })
}

/// Opens the output of [`seal`].
pub fn open(
    sk: &PrivateKey,
    enc: &[u8],
    info: &[u8],
    aad: &[u8],
    ct: &[u8],
) -> Result<Zeroizing<Vec<u8>>, HpkeError> {
    derived!(Receiver::setup(sk, enc, info)?.open(aad, ct))
}
