//! The Security Kernel behind its mailbox.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use shef_proto::close::{CloseRecord, LAST_LEN};
use shef_proto::config::OnFault;
use shef_proto::crypto;
use shef_proto::evidence::{
    self, AcceptedEntropy, Claims, Common, DebugState, EntropySource, Layer, RootOfTrust,
    ShieldClaims, ShieldState,
};
use shef_proto::hpke_suite::{PrivateKey, PublicKey, derive_key_pair};
use shef_proto::image::{Header, ImageKey, Opener};
use shef_proto::mailbox::{
    Answer, KernelState, MAX_MESSAGE, MAX_TEXT, MailboxError, Request, Status,
};
use shef_proto::release::{Expected, ImageSecret, KeyBox};
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

use crate::error::KernelError;
use crate::identity::Identity;
use crate::platform::{EntropyQuality, Platform, Shell};
use shef_regs::krn;

/// Maximum number of polls of the Shield's state. Between polls the kernel calls
/// [`Platform::idle`].
pub const WAITS: u32 = 10_000;

/// The KEM key of the last kernel evidence, until an image is loaded with it.
struct Pending {
    key: PrivateKey,
    evidence_digest: [u8; 32],
    nonce: Vec<u8>,
}

/// An image being loaded. Secrets are boxed, because moving them would leave their bytes behind.
enum Load {
    None,
    Header { secret: Box<ImageSecret>, len: usize, bytes: Vec<u8> },
    Chunks { opener: Box<Opener>, vendor: [u8; 32] },
}

/// The image in the fabric.
struct Loaded {
    image_digest: [u8; 32],
    config_digest: [u8; 32],
    design_digest: [u8; 32],
    svn: u64,
    accelerator: String,
    vendor: [u8; 32],
    on_fault: OnFault,
    bypass: Vec<String>,
    entropy: AcceptedEntropy,
    session: Option<Session>,
}

/// The session of the last seed handed over.
struct Session {
    public: PublicKey,
    entropy: EntropySource,
}

/// The Security Kernel.
pub struct Kernel<P> {
    platform: P,
    identity: Identity,
    /// Boxed, as in [`Load`].
    pending: Option<Box<Pending>>,
    load: Load,
    loaded: Option<Loaded>,
    /// The fabric may hold a complete or partial image.
    occupied: bool,
    halted: bool,
}

impl<P: Platform> Kernel<P> {
    /// The kernel on this hardware, with the boot code's identity.
    pub fn new(platform: P, identity: Identity) -> Self {
        Self {
            platform,
            identity,
            pending: None,
            load: Load::None,
            loaded: None,
            occupied: false,
            halted: false,
        }
    }

    /// The hardware, for the card around the kernel.
    pub fn platform(&self) -> &P {
        &self.platform
    }

    /// The hardware, for the card around the kernel.
    pub fn platform_mut(&mut self) -> &mut P {
        &mut self.platform
    }

    /// Power-off: gives the hardware back; all keys of the kernel are erased.
    pub fn into_platform(self) -> P {
        self.platform
    }

    /// Answers one mailbox message. Copies it before parsing.
    pub fn handle(&mut self, message: &[u8]) -> Vec<u8> {
        let answer = if message.len() > MAX_MESSAGE {
            let limit = shef_proto::cbor::CborError::Limit { what: "length", limit: MAX_MESSAGE };
            Err(KernelError::Request(MailboxError::Cbor(limit)))
        } else {
            let mut copy = message.to_vec();
            let answer = Request::decode(&copy)
                .map_err(KernelError::from)
                .and_then(|request| self.run(request));
            copy.zeroize();
            answer
        };
        answer
            .unwrap_or_else(|error| {
                let mut text = error.to_string();
                let end = (0..=MAX_TEXT.min(text.len()))
                    .rev()
                    .find(|end| text.is_char_boundary(*end))
                    .unwrap_or(0);
                text.truncate(end);
                Answer::Error { code: error.code().into(), text }
            })
            .encode()
    }

    fn run(&mut self, request: Request) -> Result<Answer, KernelError> {
        // Debug stops all requests except these.
        if !matches!(request, Request::Status | Request::Certificates | Request::Reset) {
            self.check_debug()?;
        }
        match request {
            Request::Status => Ok(Answer::Status(self.status())),
            Request::Certificates => Ok(Answer::Certificates(self.identity.certificates.clone())),
            Request::Reset => self.reset().map(|()| Answer::Done),
            Request::KernelEvidence { nonce, audience } => self.kernel_evidence(nonce, audience),
            Request::LoadBegin { key_box, header_len } => self.load_begin(&key_box, header_len),
            Request::LoadHeader { offset, bytes } => self.load_header(offset, &bytes),
            Request::LoadChunk { index, bytes } => self.load_chunk(index, &bytes),
            Request::LoadFinish => self.load_finish(),
            Request::NewSession => self.new_session().map(|()| Answer::Done),
            Request::ShieldEvidence { nonce, audience } => self.shield_evidence(nonce, audience),
            Request::CloseRecord => self.close_record(),
        }
    }

    fn status(&self) -> Status {
        let state = match (&self.load, &self.loaded) {
            _ if self.halted => KernelState::Halted,
            (Load::Header { .. } | Load::Chunks { .. }, _) => KernelState::Loading,
            (Load::None, Some(_)) => KernelState::Loaded,
            (Load::None, None) => KernelState::Idle,
        };
        Status {
            state,
            kernel_version: self.identity.kernel_version.clone(),
            kernel_svn: self.identity.kernel_svn,
            root_of_trust: self.identity.root_of_trust.name().into(),
            target: self.identity.target.clone(),
            accelerator: self.loaded.as_ref().map(|loaded| loaded.accelerator.clone()),
        }
    }

    fn reset(&mut self) -> Result<(), KernelError> {
        self.pending = None;
        self.unload()
    }

    /// Drops the image, complete or partial, and clears the fabric. If that fails, it is retried
    /// before the next load.
    fn unload(&mut self) -> Result<(), KernelError> {
        self.load = Load::None;
        self.loaded = None;
        if self.occupied {
            self.platform.unload_image()?;
            self.occupied = false;
        }
        Ok(())
    }

    /// Enabling debug after boot ends all operation.
    fn check_debug(&mut self) -> Result<(), KernelError> {
        if self.identity.debug_at_boot != DebugState::Enabled
            && self.platform.debug_state() == DebugState::Enabled
        {
            self.halted = true;
            self.identity.erase();
        }
        if self.halted {
            self.reset()?;
            return Err(KernelError::Debug);
        }
        Ok(())
    }

    fn entropy(&mut self) -> Result<(Zeroizing<[u8; 32]>, EntropySource), KernelError> {
        let mut bytes = Zeroizing::new([0; 32]);
        match self.platform.entropy(&mut bytes) {
            EntropyQuality::Tested => Ok((bytes, EntropySource::Tested)),
            EntropyQuality::Unmeasured => Ok((bytes, EntropySource::Unmeasured)),
            EntropyQuality::Seeded if self.identity.root_of_trust == RootOfTrust::Simulated => {
                Ok((bytes, EntropySource::Seeded))
            }
            EntropyQuality::Seeded => {
                Err(KernelError::Seeded { kind: self.identity.root_of_trust.name() })
            }
            EntropyQuality::Failed => Err(KernelError::Entropy),
        }
    }

    fn shell(&mut self) -> Result<Shell, KernelError> {
        let shell = self.platform.shell()?;
        for (present, what) in [
            (shell.config_port, "configuration port"),
            (shell.readback, "readback path"),
            (shell.debug_bridge, "debug bridge"),
        ] {
            if present {
                return Err(KernelError::Shell { what });
            }
        }
        Ok(shell)
    }

    fn common(
        &mut self,
        nonce: Vec<u8>,
        audience: String,
        key: PublicKey,
        entropy: EntropySource,
    ) -> Result<Common, KernelError> {
        let shell_digest = self.shell()?.digest;
        let debug = self.platform.debug_state().min(self.identity.debug_at_boot);
        let id = &self.identity;
        Ok(Common {
            audience,
            nonce,
            ueid: id.ueid,
            target: id.target.clone(),
            debug,
            root_of_trust: id.root_of_trust,
            kernel_digest: id.kernel_digest,
            kernel_svn: id.kernel_svn,
            shell_digest,
            entropy,
            key,
        })
    }

    fn sign(&self, claims: &Claims) -> Vec<u8> {
        let chain: Vec<&[u8]> = self.identity.certificates.iter().map(Vec::as_slice).collect();
        evidence::sign(claims, &self.identity.ak, &chain)
    }

    fn kernel_evidence(&mut self, nonce: Vec<u8>, audience: String) -> Result<Answer, KernelError> {
        self.pending = None;
        let (ikm, entropy) = self.entropy()?;
        let (key, public) = derive_key_pair(&ikm[..]);
        drop(ikm);
        let common = self.common(nonce.clone(), audience, public, entropy)?;
        let bytes = self.sign(&Claims { common, shield: None });
        self.pending =
            Some(Box::new(Pending { key, evidence_digest: evidence::digest(&bytes), nonce }));
        Ok(Answer::Evidence(bytes))
    }

    // ---- loading ----

    fn load_begin(&mut self, key_box: &[u8], header_len: usize) -> Result<Answer, KernelError> {
        // Ends an unfinished load; a complete image stays until the next one's chunks arrive.
        if matches!(core::mem::replace(&mut self.load, Load::None), Load::Chunks { .. }) {
            self.unload()?;
        }
        let Some(pending) = &self.pending else {
            return Err(KernelError::State {
                what: "there is no kernel evidence that a key box could answer",
            });
        };
        let key_box = KeyBox::from_cbor(key_box)?;
        let expected = Expected {
            layer: Layer::Kernel,
            evidence_digest: &pending.evidence_digest,
            nonce: &pending.nonce,
            key: None,
        };
        let secret = Box::new(ImageSecret::from_bytes(&key_box.open(&pending.key, &expected)?)?);
        self.load = Load::Header { secret, len: header_len, bytes: Vec::with_capacity(header_len) };
        Ok(Answer::Done)
    }

    fn load_header(&mut self, offset: usize, part: &[u8]) -> Result<Answer, KernelError> {
        let (mut secret, len, mut bytes) = match core::mem::replace(&mut self.load, Load::None) {
            Load::Header { secret, len, bytes } => (secret, len, bytes),
            other => {
                self.load = other;
                return Err(KernelError::State { what: "no image header is due" });
            }
        };
        let due = offset == bytes.len() && bytes.len() + part.len() <= len;
        if due {
            bytes.extend_from_slice(part);
        }
        if !due || bytes.len() < len {
            self.load = Load::Header { secret, len, bytes };
            let refusal = KernelError::State { what: "this part of the image header is not due" };
            return if due { Ok(Answer::Done) } else { Err(refusal) };
        }
        // From here on a refusal ends the load.
        let header = Header::open(bytes, &secret.vendor)?;
        let description = header.description();
        if description.target != self.identity.target {
            return Err(KernelError::Target {
                image: description.target.clone(),
                device: self.identity.target.clone(),
            });
        }
        if description.svn < secret.min_svn {
            return Err(KernelError::ImageSvn { svn: description.svn, least: secret.min_svn });
        }
        if self.identity.kernel_svn < description.min_kernel_svn {
            return Err(KernelError::KernelSvn {
                svn: self.identity.kernel_svn,
                least: description.min_kernel_svn,
            });
        }
        let vendor = crypto::sha256(secret.vendor.as_bytes());
        self.shell()?;
        // Wipes the previous image, even if the next steps fail.
        self.unload()?;
        self.occupied = true;
        self.platform.begin_image()?;
        // A move out of the box would leave the key in it.
        let key = core::mem::replace(&mut secret.key, ImageKey::from_bytes(&[0; 32]));
        self.load = Load::Chunks { opener: Box::new(Opener::new(header, key)), vendor };
        Ok(Answer::Done)
    }

    fn load_chunk(&mut self, index: usize, sealed: &[u8]) -> Result<Answer, KernelError> {
        let Load::Chunks { opener, .. } = &mut self.load else {
            return Err(KernelError::State { what: "no image chunk is due" });
        };
        // Checks the chunk first, and programs it from this memory.
        let programmed = match opener.push(index, sealed) {
            Ok(plain) => self.platform.program(&plain).map_err(KernelError::from),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = programmed {
            self.unload()?;
            return Err(error);
        }
        Ok(Answer::Done)
    }

    fn load_finish(&mut self) -> Result<Answer, KernelError> {
        let Load::Chunks { opener, vendor } = core::mem::replace(&mut self.load, Load::None) else {
            return Err(KernelError::State { what: "no image is being loaded" });
        };
        let description = opener.header().description().clone();
        let checked = opener.finish().map_err(KernelError::from).and_then(|image_digest| {
            self.shell()?;
            self.activate(&description.design_digest, &description.config.digest())?;
            Ok(image_digest)
        });
        let image_digest = match checked {
            Ok(image_digest) => image_digest,
            Err(error) => {
                self.unload()?;
                return Err(error);
            }
        };
        self.pending = None;
        let config_digest = description.config.digest();
        self.loaded = Some(Loaded {
            image_digest,
            config_digest,
            design_digest: description.design_digest,
            svn: description.svn,
            accelerator: description.accelerator,
            vendor,
            on_fault: description.config.on_fault(),
            bypass: description.config.bypass_regions().map(|region| region.name.clone()).collect(),
            entropy: description.entropy,
            session: None,
        });
        Ok(Answer::Loaded { image_digest, config_digest })
    }

    fn activate(&mut self, design: &[u8; 32], config: &[u8; 32]) -> Result<(), KernelError> {
        self.platform.finish_image()?;
        if self.platform.design_digest().as_ref() != Some(design) {
            return Err(KernelError::Design);
        }
        self.wait_for(krn::STATUS_STATE_EMPTY, "empty")?;
        if self.read::<32>(krn::CONFIG_DIGEST)? != *config {
            return Err(KernelError::Config);
        }
        Ok(())
    }

    // ---- the Shield's kernel port ----

    fn shield_status(&mut self) -> Result<u32, KernelError> {
        Ok(self.platform.krn_read(krn::STATUS)?)
    }

    fn state(&mut self) -> Result<u32, KernelError> {
        Ok(krn::STATUS_STATE.get(self.shield_status()?))
    }

    fn wait_for(&mut self, state: u32, name: &'static str) -> Result<(), KernelError> {
        for _ in 0..WAITS {
            if self.state()? == state {
                return Ok(());
            }
            self.platform.idle();
        }
        Err(KernelError::Timeout { state: name })
    }

    /// Waits until the Shield has derived its key pair, discarded the seed or stopped.
    fn wait_fresh(&mut self) -> Result<(), KernelError> {
        for _ in 0..WAITS {
            let status = self.shield_status()?;
            if krn::STATUS_UNCLEARED.get(status) != 0 {
                return Err(KernelError::Uncleared);
            }
            if krn::STATUS_STATE.get(status) == krn::STATUS_STATE_FRESH {
                // A fault after derivation: the owner should not waste a Load Key on this Shield.
                return if krn::STATUS_STOPPED.get(status) == 0 {
                    Ok(())
                } else {
                    Err(KernelError::Stopped)
                };
            }
            self.platform.idle();
        }
        Err(KernelError::Timeout { state: "fresh" })
    }

    /// Byte `i` is at `offset + i`.
    fn read<const N: usize>(&mut self, offset: u32) -> Result<[u8; N], KernelError> {
        let mut out = [0; N];
        for (word, bytes) in out.chunks_exact_mut(4).enumerate() {
            let value = self.platform.krn_read(offset + 4 * word as u32)?;
            bytes.copy_from_slice(&value.to_le_bytes());
        }
        Ok(out)
    }

    fn public_key(&mut self) -> Result<[u8; 64], KernelError> {
        self.read::<64>(krn::PUBKEY)
    }

    /// Wipes the Shield and erases its session; the image stays if the Shield responds.
    fn wipe(&mut self) -> Result<(), KernelError> {
        if let Some(loaded) = &mut self.loaded {
            loaded.session = None;
        }
        if self.platform.krn_write(krn::CTRL, krn::CTRL_WIPE.put(1)).is_err()
            || self.wait_for(krn::STATUS_STATE_EMPTY, "empty").is_err()
        {
            self.reset()?;
        }
        Ok(())
    }

    /// Waits until the previous session has ended. CLOSED appears before the last message, and
    /// acting on it too early would destroy the message.
    fn wait_ended(&mut self) -> Result<(), KernelError> {
        for _ in 0..WAITS {
            if krn::STATUS_CHAN_BUSY.get(self.shield_status()?) == 0 {
                return Ok(());
            }
            self.platform.idle();
        }
        Err(KernelError::Timeout { state: "closed" })
    }

    /// A stopped Shield gets a seed only after a wipe, and no seed if it stays stopped.
    fn wipe_stopped(&mut self) -> Result<(), KernelError> {
        if krn::STATUS_STOPPED.get(self.shield_status()?) == 0 {
            return Ok(());
        }
        if let Some(loaded) = &mut self.loaded {
            loaded.session = None;
        }
        self.platform.krn_write(krn::CTRL, krn::CTRL_WIPE.put(1))?;
        self.wait_for(krn::STATUS_STATE_EMPTY, "empty")?;
        if krn::STATUS_STOPPED.get(self.shield_status()?) == 0 {
            Ok(())
        } else {
            Err(KernelError::Stopped)
        }
    }

    /// Derives a seed, hands it over once, and compares public keys.
    fn new_session(&mut self) -> Result<(), KernelError> {
        let Some(loaded) = &self.loaded else {
            return Err(KernelError::State { what: "no image is loaded" });
        };
        let (image_digest, accepted) = (loaded.image_digest, loaded.entropy);
        match self.state()? {
            krn::STATUS_STATE_CLOSED | krn::STATUS_STATE_EMPTY => {
                self.wait_ended()?;
                self.wipe_stopped()?;
            }
            krn::STATUS_STATE_FRESH => {
                return Err(KernelError::State {
                    what: "the Shield has a seed that no Load Key was made for yet",
                });
            }
            krn::STATUS_STATE_KEYED => {
                return Err(KernelError::State { what: "the Shield's session is not over" });
            }
            _ => {
                self.wait_for(krn::STATUS_STATE_EMPTY, "empty")?;
                self.wipe_stopped()?;
            }
        }
        if let Some(loaded) = &mut self.loaded {
            loaded.session = None;
        }
        let (fresh, entropy) = self.entropy()?;
        if entropy == EntropySource::Unmeasured && accepted != AcceptedEntropy::Unmeasured {
            return Err(KernelError::Unmeasured);
        }
        let prk = crypto::extract(&fresh[..], &[&self.identity.cdi[..]]);
        let seed = crypto::expand::<32>(&prk, &[b"shef-seed/1", &image_digest]);
        drop(prk);
        drop(fresh);
        // The private key is erased before the seed leaves.
        let public = {
            let (_private, public) = derive_key_pair(&seed[..]);
            public
        };
        let handed = self.hand_over(&seed);
        drop(seed);
        let shown = handed.and_then(|()| self.wait_fresh()).and_then(|()| self.public_key());
        match shown {
            Ok(shown) if bool::from(shown[..].ct_eq(&public.xy()[..])) => {}
            Ok(_) => {
                self.wipe()?;
                return Err(KernelError::ShieldKey);
            }
            Err(error) => {
                self.wipe()?;
                return Err(error);
            }
        }
        if let Some(loaded) = &mut self.loaded {
            loaded.session = Some(Session { public, entropy });
        }
        Ok(())
    }

    fn hand_over(&mut self, seed: &[u8; 32]) -> Result<(), KernelError> {
        for (word, bytes) in seed.chunks_exact(4).enumerate() {
            let value = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            self.platform.krn_write(krn::SEED + 4 * word as u32, value)?;
        }
        Ok(self.platform.krn_write(krn::CTRL, krn::CTRL_SEED.put(1))?)
    }

    /// Reads a consistent pair of the Shield's state and transcript.
    fn shield_state(&mut self) -> Result<Option<ShieldState>, KernelError> {
        for _ in 0..WAITS {
            let before = self.state()?;
            let transcript = self.read::<32>(krn::T)?;
            if self.state()? != before {
                continue;
            }
            return Ok(match before {
                krn::STATUS_STATE_FRESH => Some(ShieldState::Fresh),
                krn::STATUS_STATE_KEYED => Some(ShieldState::Keyed(transcript)),
                krn::STATUS_STATE_CLOSED => Some(ShieldState::Closed(transcript)),
                krn::STATUS_STATE_EMPTY => None,
                _ => {
                    self.platform.idle();
                    continue;
                }
            });
        }
        Err(KernelError::Timeout { state: "steady" })
    }

    fn shield_evidence(&mut self, nonce: Vec<u8>, audience: String) -> Result<Answer, KernelError> {
        if self.loaded.is_none() {
            return Err(KernelError::State { what: "no image is loaded" });
        }
        let state = match self.shield_state()? {
            Some(state) => state,
            None => {
                self.new_session()?;
                ShieldState::Fresh
            }
        };
        if matches!(state, ShieldState::Fresh)
            && krn::STATUS_STOPPED.get(self.shield_status()?) != 0
        {
            self.wipe()?;
            return Err(KernelError::Stopped);
        }
        // Measures the fabric again for each piece of evidence.
        let design_digest = self.platform.design_digest();
        let config_digest = self.read::<32>(krn::CONFIG_DIGEST)?;
        let shown = self.public_key()?;
        let Some(loaded) = &self.loaded else {
            return Err(KernelError::State { what: "no image is loaded" });
        };
        if design_digest != Some(loaded.design_digest) {
            return Err(KernelError::Design);
        }
        if config_digest != loaded.config_digest {
            return Err(KernelError::Config);
        }
        let Some(session) = &loaded.session else {
            return Err(KernelError::State {
                what: "the Shield holds a session that this kernel did not begin",
            });
        };
        // A closed Shield no longer shows its key.
        if !matches!(state, ShieldState::Closed(_)) && shown != session.public.xy() {
            return Err(KernelError::ShieldKey);
        }
        let (public, entropy) = (session.public, session.entropy);
        let shield = ShieldClaims {
            image_digest: loaded.image_digest,
            config_digest: loaded.config_digest,
            design_digest: loaded.design_digest,
            image_svn: loaded.svn,
            accelerator: loaded.accelerator.clone(),
            vendor: loaded.vendor,
            on_fault: loaded.on_fault,
            bypass: loaded.bypass.clone(),
            state,
        };
        let common = self.common(nonce, audience, public, entropy)?;
        Ok(Answer::Evidence(self.sign(&Claims { common, shield: Some(shield) })))
    }

    fn close_record(&mut self) -> Result<Answer, KernelError> {
        if self.loaded.as_ref().is_none_or(|loaded| loaded.session.is_none()) {
            return Err(KernelError::State { what: "there was no session" });
        }
        let Some(ShieldState::Closed(transcript)) = self.shield_state()? else {
            return Err(KernelError::State { what: "the session is not over" });
        };
        let last = self.read::<LAST_LEN>(krn::LAST)?;
        let Some(loaded) = &self.loaded else {
            return Err(KernelError::State { what: "no image is loaded" });
        };
        let record = CloseRecord {
            transcript,
            last,
            image_digest: loaded.image_digest,
            config_digest: loaded.config_digest,
            ueid: self.identity.ueid,
        };
        Ok(Answer::CloseRecord(record.sign(&self.identity.ak)))
    }
}
