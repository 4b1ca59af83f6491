//! The Load Key message, which gives a session its keys; the session's transcript and keys.
//!
//! The format is in `docs/reference/load-key.md`.

use alloc::boxed::Box;
use alloc::vec::Vec;

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::config::{Config, MAX_EPOCH, Mode};
use crate::crypto::scrub::{DERIVATION, scrubbed};
use crate::entropy::Entropy;
use crate::fork::ForkGuard;
use crate::hpke_suite::{ENC_LEN, PrivateKey, PublicKey, Receiver, SUITE, Sender, TAG_LEN};

/// Maximum size of a message.
pub const MAX_MESSAGE: usize = 1024;
/// Maximum length of `info`.
pub const MAX_INFO: usize = 256;
/// Maximum length of the HPKE ciphertext, including the tag.
pub const MAX_CT: usize = 256;
/// Maximum length of the tenant's name in `info`.
pub const MAX_TENANT: usize = 64;
/// Maximum length of the nonce in `info`.
pub const MAX_NONCE: usize = 64;
/// Bytes of the master key.
pub const MASTER_LEN: usize = 32;

const LABEL: &[u8] = b"shef-load/1";
const KEY_LABEL: &[u8] = b"shef-key/1";
const EXPORT_LABEL: &[u8] = b"shef-session";
const CONFIRM_LABEL: &[u8] = b"shield";

crate::coded! {
    /// Why a Load Key is rejected.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum LoadError {
        /// Wrong lengths or trailing bytes.
        #[error("malformed load key message: {0}")]
        Malformed(&'static str) = "SHEF-PRO-230": "a Load Key message is malformed",
            "A length is wrong or bytes are missing or left over. docs/reference/load-key.md gives the layout.",
        /// Another suite.
        #[error("load key message of suite {0}, expected 1")]
        Suite(u16) = "SHEF-PRO-231": "a Load Key message is of another suite", "This program and the Shield know suite 1 only.",
        /// The HPKE message does not open.
        #[error("load key message does not open")]
        Open = "SHEF-PRO-232": "a Load Key message does not open",
            "It was made for another Shield key or another configuration, or was changed on its way. Attest the Shield again and make a \
             new one.",
        /// The list of epochs does not match the configuration.
        #[error("epochs of the load key do not fit the configuration: {0}")]
        Epochs(&'static str) = "SHEF-PRO-233": "the epochs of a Load Key do not fit the configuration",
            "Name every input and output region exactly once, in ascending order, with an epoch below 2^48.",
        /// A malformed info field.
        #[error("malformed info of a load key")]
        Info = "SHEF-PRO-234": "the info of a Load Key is malformed",
            "info is \"shef-load/1\", tenant, SHA-256 of the evidence and nonce; tenant and nonce are at most 64 bytes each.",
        /// The Shield's key confirmation is wrong.
        #[error("key confirmation of the shield is wrong")]
        Confirmation = "SHEF-PRO-235": "the key confirmation is wrong",
            "The Shield did not take this Load Key: it was lost or replaced on its way. Send no data; attest again.",
    }
}

/// The message on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Encapsulated key, `04 | x | y`; not checked to be on the curve.
    pub enc: [u8; ENC_LEN],
    /// The owner's info, at most [`MAX_INFO`] bytes.
    pub info: Vec<u8>,
    /// HPKE ciphertext and tag.
    pub ct: Vec<u8>,
}

impl Message {
    /// The bytes of the message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + ENC_LEN + self.info.len() + self.ct.len());
        out.extend_from_slice(&SUITE.to_be_bytes());
        put(&mut out, &self.enc);
        put(&mut out, &self.info);
        put(&mut out, &self.ct);
        out
    }

    /// Reads a message; checks suite, all lengths, and that there are no trailing bytes.
    ///
    /// # Errors
    /// [`LoadError::Suite`] or [`LoadError::Malformed`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LoadError> {
        if bytes.len() > MAX_MESSAGE {
            return Err(LoadError::Malformed("longer than 1024 bytes"));
        }
        let mut r = bytes;
        let suite = take_u16(&mut r).ok_or(LoadError::Malformed("truncated"))?;
        if suite != SUITE {
            return Err(LoadError::Suite(suite));
        }
        let enc = take(&mut r, ENC_LEN, ENC_LEN)?
            .try_into()
            .map_err(|_| LoadError::Malformed("enc_len is not 65"))?;
        let info = take(&mut r, 0, MAX_INFO)?.to_vec();
        let ct = take(&mut r, TAG_LEN, MAX_CT)?.to_vec();
        if !r.is_empty() {
            return Err(LoadError::Malformed("trailing bytes"));
        }
        Ok(Self { enc, info, ct })
    }
}

fn put(out: &mut Vec<u8>, field: &[u8]) {
    out.extend_from_slice(&(field.len() as u16).to_be_bytes());
    out.extend_from_slice(field);
}

fn take_u16(r: &mut &[u8]) -> Option<u16> {
    let (head, rest) = r.split_first_chunk::<2>()?;
    *r = rest;
    Some(u16::from_be_bytes(*head))
}

fn take<'a>(r: &mut &'a [u8], min: usize, max: usize) -> Result<&'a [u8], LoadError> {
    let n = usize::from(take_u16(r).ok_or(LoadError::Malformed("truncated"))?);
    if n < min || n > max {
        return Err(LoadError::Malformed("a length is out of range"));
    }
    let (head, rest) = r.split_at_checked(n).ok_or(LoadError::Malformed("truncated"))?;
    *r = rest;
    Ok(head)
}

/// The owner's `info`: the session's owner and the evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Name of the tenant, at most [`MAX_TENANT`] bytes.
    pub tenant: Vec<u8>,
    /// SHA-256 of the appraised evidence.
    pub evidence_digest: [u8; 32],
    /// The nonce in that evidence, at most [`MAX_NONCE`] bytes.
    pub nonce: Vec<u8>,
}

impl Info {
    /// The bytes for [`seal_load_key`].
    ///
    /// # Errors
    /// Tenant or nonce is too long.
    pub fn to_bytes(&self) -> Result<Vec<u8>, LoadError> {
        if self.tenant.len() > MAX_TENANT || self.nonce.len() > MAX_NONCE {
            return Err(LoadError::Info);
        }
        let mut out = LABEL.to_vec();
        put(&mut out, &self.tenant);
        out.extend_from_slice(&self.evidence_digest);
        put(&mut out, &self.nonce);
        Ok(out)
    }

    /// Reads the bytes.
    ///
    /// # Errors
    /// The bytes are not in this form.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LoadError> {
        let mut r = bytes.strip_prefix(LABEL).ok_or(LoadError::Info)?;
        let tenant = take(&mut r, 0, MAX_TENANT).map_err(|_| LoadError::Info)?.to_vec();
        let (digest, rest) = r.split_first_chunk::<32>().ok_or(LoadError::Info)?;
        r = rest;
        let nonce = take(&mut r, 0, MAX_NONCE).map_err(|_| LoadError::Info)?.to_vec();
        if r.is_empty() {
            Ok(Self { tenant, evidence_digest: *digest, nonce })
        } else {
            Err(LoadError::Info)
        }
    }
}

/// First epoch of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstEpoch {
    /// Region number.
    pub region: u8,
    /// Epoch; 0 if the region must not be used before the channel's EPOCH command.
    pub epoch: u64,
}

/// The same epoch for every region that has one.
pub fn first_epochs(config: &Config, epoch: u64) -> Vec<FirstEpoch> {
    config.epoch_regions().map(|r| FirstEpoch { region: r.id, epoch }).collect()
}

fn check_epochs(config: &Config, epochs: &[FirstEpoch]) -> Result<(), LoadError> {
    if !config.epoch_regions().map(|r| r.id).eq(epochs.iter().map(|e| e.region)) {
        return Err(LoadError::Epochs("not every input and output region exactly once, ascending"));
    }
    if epochs.iter().any(|e| e.epoch > MAX_EPOCH) {
        return Err(LoadError::Epochs("an epoch is above 48 bits"));
    }
    Ok(())
}

/// Transcript hash T of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transcript(pub [u8; 32]);

impl Transcript {
    /// First 16 bytes of T.
    pub fn session_id(&self) -> [u8; 16] {
        let mut id = [0; 16];
        id.copy_from_slice(&self.0[..16]);
        id
    }
}

/// T, computed from the values that both sides know.
pub fn transcript(
    config_digest: &[u8; 32],
    enc: &[u8],
    pk: &PublicKey,
    info: &[u8],
    ct: &[u8],
) -> Transcript {
    let mut h = Sha256::new();
    h.update(LABEL);
    h.update(SUITE.to_be_bytes());
    h.update(config_digest);
    h.update((enc.len() as u16).to_be_bytes());
    h.update(enc);
    h.update((pk.as_bytes().len() as u16).to_be_bytes());
    h.update(pk.as_bytes());
    h.update(Sha256::digest(info));
    h.update(Sha256::digest(ct));
    Transcript(h.finalize().into())
}

/// A symmetric key of 16 or 32 bytes, erased on drop and never printed. A move copies the pointer,
/// not the bytes.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Key {
    bytes: Box<[u8; 32]>,
    len: usize,
}

impl Key {
    /// Takes 16 or 32 bytes.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != 16 && bytes.len() != 32 {
            return None;
        }
        let mut key = Self { bytes: Box::new([0; 32]), len: bytes.len() };
        key.bytes[..bytes.len()].copy_from_slice(bytes);
        Some(key)
    }

    /// The bytes, for the cipher.
    pub fn expose(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Purpose of a derived key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Use {
    /// Data of a region.
    Data(u8),
    /// Tree nodes of a region.
    Node(u8),
    /// Register channel, owner to Shield.
    ToShield,
    /// Register channel, Shield to owner.
    ToOwner,
    /// Key confirmation.
    Confirm,
}

impl Use {
    fn label(self) -> [u8; 3] {
        match self {
            Self::Data(region) => [1, 0, region],
            Self::Node(region) => [2, 0, region],
            Self::ToShield => [3, 1, 0xff],
            Self::ToOwner => [3, 2, 0xff],
            Self::Confirm => [4, 0, 0xff],
        }
    }
}

/// All keys of one session. The session master is erased after derivation. Types made from the keys
/// work only in the process that derived them.
pub struct SessionKeys {
    fork_guard: ForkGuard,
    transcript: Transcript,
    config_digest: [u8; 32],
    data: Vec<(u8, Key)>,
    nodes: Vec<(u8, Key)>,
    to_shield: Key,
    to_owner: Key,
    confirm: Key,
}

impl SessionKeys {
    /// Derives the keys. `export` is the HPKE export of [`EXPORT_LABEL`](self), `master` the first
    /// 32 bytes of the plaintext.
    pub fn derive(
        export: &[u8; 32],
        master: &[u8; MASTER_LEN],
        transcript: Transcript,
        config: &Config,
    ) -> Self {
        let mut session = Zeroizing::new([0; 32]);
        Hkdf::<Sha256>::new(Some(export), master)
            .expand(&transcript.0, &mut session[..])
            .expect("32 bytes are within HKDF's limit");
        let session = Hkdf::<Sha256>::from_prk(&session[..]).expect("a PRK of the hash's length");
        let key = |usage: Use, len: usize| {
            let mut k = Key { bytes: Box::new([0; 32]), len };
            session
                .expand_multi_info(&[KEY_LABEL, &usage.label()], &mut k.bytes[..len])
                .expect("at most 32 bytes");
            k
        };
        Self {
            fork_guard: ForkGuard::this(),
            transcript,
            config_digest: config.digest(),
            data: config
                .regions()
                .iter()
                .filter(|r| r.mode.has_tags())
                .map(|r| (r.id, key(Use::Data(r.id), r.key_len())))
                .collect(),
            nodes: config
                .regions()
                .iter()
                .filter(|r| r.mode == Mode::Tree)
                .map(|r| (r.id, key(Use::Node(r.id), r.key_len())))
                .collect(),
            to_shield: key(Use::ToShield, 32),
            to_owner: key(Use::ToOwner, 32),
            confirm: key(Use::Confirm, 32),
        }
    }

    /// The process that derived the keys.
    pub fn fork_guard(&self) -> ForkGuard {
        self.fork_guard
    }

    /// T.
    pub fn transcript(&self) -> Transcript {
        self.transcript
    }

    /// Digest of the keys' configuration.
    pub fn config_digest(&self) -> &[u8; 32] {
        &self.config_digest
    }

    /// K_data of a region; `None` if it has no key.
    pub fn data_key(&self, region: u8) -> Option<&Key> {
        self.data.iter().find(|(id, _)| *id == region).map(|(_, k)| k)
    }

    /// K_node of a region; `None` if it is not a `tree` region.
    pub fn node_key(&self, region: u8) -> Option<&Key> {
        self.nodes.iter().find(|(id, _)| *id == region).map(|(_, k)| k)
    }

    /// Removes and returns K_data of a region, so that only one sealer can own it.
    pub fn take_data_key(&mut self, region: u8) -> Option<Key> {
        let at = self.data.iter().position(|(id, _)| *id == region)?;
        Some(self.data.swap_remove(at).1)
    }

    /// Channel key, owner to Shield.
    pub fn to_shield(&self) -> &Key {
        &self.to_shield
    }

    /// Channel key, Shield to owner.
    pub fn to_owner(&self) -> &Key {
        &self.to_owner
    }

    /// `HMAC-SHA-256(confirmation key, "shield" | T)`.
    pub fn confirmation(&self) -> [u8; 32] {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(self.confirm.expose())
            .expect("HMAC takes a key of any length");
        mac.update(CONFIRM_LABEL);
        mac.update(&self.transcript.0);
        mac.finalize().into_bytes().into()
    }

    /// Compares the Shield's confirmation in constant time.
    ///
    /// # Errors
    /// [`LoadError::Confirmation`].
    pub fn check_confirmation(&self, shown: &[u8]) -> Result<(), LoadError> {
        if shown.len() == 32 && bool::from(self.confirmation()[..].ct_eq(shown)) {
            Ok(())
        } else {
            Err(LoadError::Confirmation)
        }
    }
}

fn aad(config_digest: &[u8; 32]) -> [u8; 34] {
    let mut aad = [0; 34];
    aad[..2].copy_from_slice(&SUITE.to_be_bytes());
    aad[2..].copy_from_slice(config_digest);
    aad
}

/// Owner: creates a message for the Shield with public key `pk`, and the session's keys.
///
/// Draws 32 bytes for the master key, then 32 for the ephemeral key.
///
/// # Errors
/// Epochs that do not match the configuration, or an `info` that is too long.
pub fn seal_load_key(
    config: &Config,
    pk: &PublicKey,
    info: &[u8],
    epochs: &[FirstEpoch],
    entropy: &mut dyn Entropy,
) -> Result<(Vec<u8>, SessionKeys), LoadError> {
    let mut master = Zeroizing::new([0; MASTER_LEN]);
    entropy.fill(&mut master[..]);
    seal_load_key_of(&master, config, pk, info, epochs, entropy)
}

/// The same under an existing master key. Draws 32 bytes for the ephemeral key.
///
/// # Errors
/// As [`seal_load_key`].
pub fn seal_load_key_of(
    master: &[u8; MASTER_LEN],
    config: &Config,
    pk: &PublicKey,
    info: &[u8],
    epochs: &[FirstEpoch],
    entropy: &mut dyn Entropy,
) -> Result<(Vec<u8>, SessionKeys), LoadError> {
    if info.len() > MAX_INFO {
        return Err(LoadError::Info);
    }
    check_epochs(config, epochs)?;
    scrubbed::<DERIVATION, _>(|| {
        let mut plaintext = Zeroizing::new(Vec::with_capacity(MASTER_LEN + 1 + 7 * epochs.len()));
        plaintext.extend_from_slice(master);
        plaintext.push(epochs.len() as u8);
        for e in epochs {
            plaintext.push(e.region);
            plaintext.extend_from_slice(&e.epoch.to_be_bytes()[2..]);
        }
        let digest = config.digest();
        let (enc, mut sender) = Sender::setup(pk, info, entropy).map_err(|_| LoadError::Open)?;
        let ct = sender.seal(&aad(&digest), &plaintext).map_err(|_| LoadError::Open)?;
        let t = transcript(&digest, &enc, pk, info, &ct);
        let export = sender.export(EXPORT_LABEL).map_err(|_| LoadError::Open)?;
        let keys = SessionKeys::derive(&export, master, t, config);
        Ok((Message { enc, info: info.to_vec(), ct }.to_bytes(), keys))
    })
}

/// Shield: opens a message.
///
/// # Errors
/// Any rejection by the Shield; the error reveals nothing else.
pub fn open_load_key(
    config: &Config,
    sk: &PrivateKey,
    bytes: &[u8],
) -> Result<(SessionKeys, Vec<FirstEpoch>), LoadError> {
    let m = Message::from_bytes(bytes)?;
    scrubbed::<DERIVATION, _>(|| {
        let digest = config.digest();
        let mut receiver = Receiver::setup(sk, &m.enc, &m.info).map_err(|_| LoadError::Open)?;
        let plaintext = receiver.open(&aad(&digest), &m.ct).map_err(|_| LoadError::Open)?;
        let (head, list) = plaintext
            .split_at_checked(MASTER_LEN + 1)
            .ok_or(LoadError::Epochs("plaintext too short"))?;
        let mut master = Zeroizing::new([0; MASTER_LEN]);
        master.copy_from_slice(&head[..MASTER_LEN]);
        if list.len() != 7 * usize::from(head[MASTER_LEN]) {
            return Err(LoadError::Epochs("count does not match the length"));
        }
        let epochs: Vec<FirstEpoch> = list
            .chunks_exact(7)
            .map(|c| FirstEpoch {
                region: c[0],
                epoch: c[1..].iter().fold(0, |n, &b| n << 8 | u64::from(b)),
            })
            .collect();
        check_epochs(config, &epochs)?;
        let t = transcript(&digest, &m.enc, &sk.public_key(), &m.info, &m.ct);
        Ok((SessionKeys::derive(&receiver.export(EXPORT_LABEL), &master, t, config), epochs))
    })
}
