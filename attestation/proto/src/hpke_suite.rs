//! Suite 1 of RFC 9180: base mode, DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-256-GCM.
//!
//! A thin layer over crate `hpke` with keys as newtypes. The AEAD is a type parameter with the
//! suite's as default, so that the published vectors of RFC 9180 A.3 (AES-128-GCM) run through the
//! same code.

use alloc::vec::Vec;
use core::marker::PhantomData;

use hpke::aead::{Aead, AeadCtxR, AeadCtxS, AesGcm256};
use hpke::kdf::HkdfSha256;
use hpke::kem::DhP256HkdfSha256;
use hpke::{Deserializable, Kem, OpModeR, OpModeS, Serializable};
use zeroize::Zeroizing;

use crate::entropy::{AsCryptoRng, Entropy};

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
    /// What can go wrong with keys and messages of the suite.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum HpkeError {
        /// The bytes are no point of the curve.
        #[error("not a P-256 public key")]
        PublicKey = "SHEF-PRO-270": "not a P-256 public key",
            "A public key is 65 bytes, 04 | x | y, and its point lies on the curve. The bytes were damaged or come from another suite.",
        /// The message does not open.
        #[error("hpke message does not open")]
        Open = "SHEF-PRO-271": "an HPKE message does not open",
            "The message was changed on its way, was made for another key, or its info or aad is not the one expected.",
        /// The bytes are no private key.
        #[error("not a P-256 private key")]
        PrivateKey = "SHEF-PRO-272": "not a P-256 private key", "A private key is 32 bytes, 0 < k < n. The bytes were damaged.",
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
        <DhP256HkdfSha256 as Kem>::PublicKey::from_bytes(&raw).map_err(|_| HpkeError::PublicKey)?;
        Ok(Self(raw))
    }

    /// Checks and accepts the 64 bytes `x | y`, as read from the Shield's kernel port.
    pub fn from_xy(xy: &[u8; 64]) -> Result<Self, HpkeError> {
        let mut raw = [4; PUBLIC_KEY_LEN];
        raw[1..].copy_from_slice(xy);
        Self::from_bytes(&raw)
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

/// A private key; erased when dropped.
pub struct PrivateKey(<DhP256HkdfSha256 as Kem>::PrivateKey);

impl PrivateKey {
    /// Takes 32 bytes, big-endian, `0 < k < n`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HpkeError> {
        <DhP256HkdfSha256 as Kem>::PrivateKey::from_bytes(bytes).map(Self).map_err(|_| HpkeError::PrivateKey)
    }

    /// The 32 bytes, for storage by whoever may store them.
    pub fn to_bytes(&self) -> Zeroizing<[u8; PRIVATE_KEY_LEN]> {
        let mut out = Zeroizing::new([0; PRIVATE_KEY_LEN]);
        self.0.write_exact(&mut out[..]);
        out
    }

    /// The public key of this key.
    pub fn public_key(&self) -> PublicKey {
        PublicKey(<DhP256HkdfSha256 as Kem>::sk_to_pk(&self.0).to_bytes().into())
    }
}

/// `DeriveKeyPair(ikm)`, RFC 9180 7.1.3.
pub fn derive_key_pair(ikm: &[u8]) -> (PrivateKey, PublicKey) {
    let (sk, pk) = DhP256HkdfSha256::derive_keypair(ikm);
    (PrivateKey(sk), PublicKey(pk.to_bytes().into()))
}

/// A fresh key pair: `DeriveKeyPair` of 32 random bytes.
pub fn generate_key_pair(entropy: &mut dyn Entropy) -> (PrivateKey, PublicKey) {
    let mut ikm = Zeroizing::new([0; PRIVATE_KEY_LEN]);
    entropy.fill(&mut ikm[..]);
    derive_key_pair(&ikm[..])
}

/// The sender's context after `SetupBaseS`.
pub struct Sender<A: Aead = AesGcm256>(AeadCtxS<A, HkdfSha256, DhP256HkdfSha256>, PhantomData<A>);

/// The receiver's context after `SetupBaseR`.
pub struct Receiver<A: Aead = AesGcm256>(AeadCtxR<A, HkdfSha256, DhP256HkdfSha256>, PhantomData<A>);

impl<A: Aead> Sender<A> {
    /// `SetupBaseS(pk, info)`. Draws 32 bytes: the ephemeral key is `DeriveKeyPair` of them. `info`
    /// is at most 65,000 bytes.
    pub fn setup(pk: &PublicKey, info: &[u8], entropy: &mut dyn Entropy) -> Result<([u8; ENC_LEN], Self), HpkeError> {
        if info.len() > 65_000 {
            return Err(HpkeError::Open);
        }
        let pk = <DhP256HkdfSha256 as Kem>::PublicKey::from_bytes(&pk.0).map_err(|_| HpkeError::PublicKey)?;
        let (enc, ctx) =
            hpke::setup_sender_with_rng::<A, HkdfSha256, DhP256HkdfSha256>(&OpModeS::Base, &pk, info, &mut AsCryptoRng(entropy))
                .map_err(|_| HpkeError::PublicKey)?;
        Ok((enc.to_bytes().into(), Self(ctx, PhantomData)))
    }

    /// Seals the next message.
    pub fn seal(&mut self, aad: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, HpkeError> {
        self.0.seal(plaintext, aad).map_err(|_| HpkeError::Open)
    }

    /// `Export(context, 32)`.
    pub fn export(&self, context: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut out = Zeroizing::new([0; 32]);
        self.0.export(context, &mut out[..]).expect("32 bytes are within HKDF's limit");
        out
    }
}

impl<A: Aead> Receiver<A> {
    /// `SetupBaseR(enc, sk, info)`; refuses an `enc` that is no point of the curve.
    pub fn setup(sk: &PrivateKey, enc: &[u8], info: &[u8]) -> Result<Self, HpkeError> {
        if enc.first() != Some(&4) || info.len() > 65_000 {
            return Err(HpkeError::PublicKey);
        }
        let enc = <DhP256HkdfSha256 as Kem>::EncappedKey::from_bytes(enc).map_err(|_| HpkeError::PublicKey)?;
        hpke::setup_receiver::<A, HkdfSha256, DhP256HkdfSha256>(&OpModeR::Base, &sk.0, &enc, info)
            .map(|ctx| Self(ctx, PhantomData))
            .map_err(|_| HpkeError::Open)
    }

    /// Opens the next message.
    pub fn open(&mut self, aad: &[u8], ct: &[u8]) -> Result<Zeroizing<Vec<u8>>, HpkeError> {
        self.0.open(ct, aad).map(Zeroizing::new).map_err(|_| HpkeError::Open)
    }

    /// `Export(context, 32)`.
    pub fn export(&self, context: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut out = Zeroizing::new([0; 32]);
        self.0.export(context, &mut out[..]).expect("32 bytes are within HKDF's limit");
        out
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
    let (enc, mut ctx) = Sender::<AesGcm256>::setup(pk, info, entropy)?;
    Ok((enc, ctx.seal(aad, plaintext)?))
}

/// Opens the output of [`seal`].
pub fn open(sk: &PrivateKey, enc: &[u8], info: &[u8], aad: &[u8], ct: &[u8]) -> Result<Zeroizing<Vec<u8>>, HpkeError> {
    Receiver::<AesGcm256>::setup(sk, enc, info)?.open(aad, ct)
}
