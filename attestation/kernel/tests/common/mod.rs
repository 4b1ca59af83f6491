//! A test device: manufacturer, IP vendor, simulated hardware, and the requests between them.
#![allow(dead_code, reason = "each test uses a part")]

use shef_kernel::{
    BootPlatform, EntropyQuality, Kernel, KernelImage, Platform, PlatformError, Shell, boot,
    device_id_key,
};
use shef_proto::cert::{self, Certificate};
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_proto::cose::SigningKey;
pub use shef_proto::crypto::sha256;
use shef_proto::entropy::{Entropy, SeededEntropy};
use shef_proto::evidence::{DebugState, Layer, RootOfTrust};
use shef_proto::hpke_suite::{PrivateKey, derive_key_pair};
use shef_proto::image::{Container, Description, ImageKey};
use shef_proto::load;
use shef_proto::mailbox::{Answer, MailboxError, Request, load_requests};
use shef_proto::release::ImageSecret;
use shef_verify as verify;
use zeroize::Zeroizing;

pub const NOW: i64 = 1_795_000_000;
pub const UDS: [u8; 32] = [0x5a; 32];
pub const TARGET: &str = "shef-test";
pub const AUDIENCE: &str = "verifier.example";
pub const DESIGN: [u8; 32] = [0xd5; 32];
pub const PLAINTEXT: &[u8] = &[0xa7; 10_000];
pub const SHELL: [u8; 32] = [0x5e; 32];

pub fn entropy(seed: u64) -> SeededEntropy {
    SeededEntropy::new(seed, "test")
}

pub fn config() -> Config {
    let region = |id, name: &str, mode, base, tag_base| Region {
        id,
        name: name.into(),
        mode,
        base,
        size: 0x10000,
        chunk: 4096,
        key_bits: 256,
        tag_base,
        ..Region::default()
    };
    let regions = vec![
        region(0, "in", Mode::Input, 0, 0x30_0000),
        region(1, "out", Mode::Output, 0x10_0000, 0x31_0000),
    ];
    Config::new(OnFault::Shield, 1, vec![Set::default()], regions).unwrap()
}

/// Manufacturer: a CA registered for one kind of device.
pub struct Manufacturer {
    pub key: SigningKey,
    pub root: Certificate,
}

impl Manufacturer {
    pub fn new(seed: u64) -> Self {
        let key = SigningKey::generate(&mut entropy(seed));
        let root = cert::issue_root(&key, "test manufacturer", NOW - 1000, NOW + 1_000_000);
        Self { root: Certificate::parse(&root).unwrap(), key }
    }

    pub fn certify(&self, kind: RootOfTrust, debug: bool) -> Vec<u8> {
        let device_id = device_id_key(&UDS, kind, debug).public_key();
        cert::issue_device_id(&self.key, &self.root, &device_id, NOW - 500)
    }

    pub fn anchor(&self, kind: RootOfTrust, debug: bool) -> verify::TrustAnchor {
        verify::TrustAnchor::new("test manufacturer", kind, debug, self.root.der()).unwrap()
    }
}

/// The Shield as seen through its kernel port.
#[derive(Default)]
pub struct FakeShield {
    pub state: u32,
    pub seed: [u8; 32],
    /// Words of the seed written since the last one was taken.
    pub seed_fresh: u8,
    /// A word of the seed that is lost in transit.
    pub lost_word: Option<u32>,
    pub key: Option<PrivateKey>,
    pub public: Option<[u8; 64]>,
    pub transcript: [u8; 32],
    pub last: Vec<u8>,
    pub seeds_taken: Vec<[u8; 32]>,
    /// Shows a key that does not match its seed.
    pub wrong_key: bool,
    /// Never leaves DERIVE.
    pub stuck: bool,
    /// Stopped by a fault.
    pub stopped: bool,
    /// A wipe does not end the stop.
    pub dead_port: bool,
    /// A fault stops it while it derives its next key pair.
    pub stops_in_derive: bool,
    /// Its accelerator does not clear its memories.
    pub uncleared: bool,
    /// Status reads until the previous session is over.
    pub ending: usize,
    /// Status reads until the scrub is done.
    pub scrubs: usize,
    /// Ignores the wipe command.
    pub deaf: bool,
    /// The next read of its transcript changes its state to this.
    pub then: Option<u32>,
    /// Commands received too early.
    pub hurried: usize,
    pub wipes: usize,
    pub config: Option<Config>,
    /// Shows this digest instead of its configuration's.
    pub config_digest: Option<[u8; 32]>,
    pub derive_waits: u32,
}

impl FakeShield {
    pub fn power(config: Config) -> Self {
        Self { state: 1, last: vec![0; 88], config: Some(config), ..Self::default() }
    }

    fn wipe(&mut self) {
        (self.state, self.key, self.public, self.seed_fresh) = (1, None, None, 0);
        (self.seed, self.transcript, self.last) = ([0; 32], [0; 32], vec![0; 88]);
        self.stopped = self.dead_port;
        self.wipes += 1;
    }

    fn word(bytes: &[u8], at: u32) -> u32 {
        let at = at as usize;
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    pub fn read(&mut self, offset: u32) -> u32 {
        match offset {
            0x004 => {
                if self.state == 2 && !self.stuck {
                    self.derive_waits += 1;
                    if self.derive_waits > 3 && self.uncleared {
                        (self.seed, self.state) = ([0; 32], 1);
                        return 1 | 1 << 9;
                    } else if self.derive_waits > 3 {
                        let (key, public) = derive_key_pair(&self.seed);
                        let mut xy = public.xy();
                        if self.wrong_key {
                            xy = derive_key_pair(b"another").1.xy();
                        }
                        (self.seed, self.state, self.key, self.public) =
                            ([0; 32], 3, Some(key), Some(xy));
                        self.stopped |= std::mem::take(&mut self.stops_in_derive);
                    }
                }
                if self.scrubs > 0 {
                    self.scrubs -= 1;
                    self.state = u32::from(self.scrubs == 0);
                }
                let ending = self.ending > 0;
                self.ending = self.ending.saturating_sub(1);
                self.state | u32::from(self.stopped) << 3 | u32::from(ending) << 6
            }
            0x040..0x080 => Self::word(&self.public.unwrap_or([0; 64]), offset - 0x40),
            0x080..0x0a0 => {
                let word = Self::word(&self.transcript, offset - 0x80);
                if let Some(state) = self.then.take() {
                    (self.state, self.transcript) = (state, [0x7e; 32]);
                }
                word
            }
            0x0a0..0x0c0 => {
                let digest =
                    self.config_digest.unwrap_or_else(|| self.config.as_ref().unwrap().digest());
                Self::word(&digest, offset - 0xa0)
            }
            0x100..0x158 => Self::word(&self.last, offset - 0x100),
            _ => panic!("read of {offset:#x}"),
        }
    }

    /// Whether the port accepts the write.
    pub fn write(&mut self, offset: u32, value: u32) -> bool {
        self.hurried += usize::from(self.ending > 0);
        match offset {
            0x000 if value == 2 && self.deaf => {}
            0x000 if value == 2 => self.wipe(),
            0x000 => {
                assert_eq!(value, 1);
                if self.state == 1 || self.state == 5 {
                    if std::mem::take(&mut self.seed_fresh) != 0xff {
                        return false;
                    }
                    self.seeds_taken.push(self.seed);
                    self.transcript = [0; 32];
                    (self.state, self.derive_waits) = (2, 0);
                }
            }
            0x020..0x040 if self.lost_word == Some((offset - 0x20) / 4) => {}
            0x020..0x040 => {
                let at = (offset - 0x20) as usize;
                self.seed[at..at + 4].copy_from_slice(&value.to_le_bytes());
                self.seed_fresh |= 1 << (at / 4);
            }
            _ => panic!("write of {offset:#x}"),
        }
        true
    }

    /// Effect of the host's doorbell.
    pub fn take_load_key(&mut self, message: &[u8]) -> Result<load::SessionKeys, load::LoadError> {
        let (keys, _epochs) = load::open_load_key(
            self.config.as_ref().unwrap(),
            self.key.as_ref().unwrap(),
            message,
        )?;
        self.key = None;
        self.state = 4;
        self.transcript = keys.transcript().0;
        Ok(keys)
    }

    /// Effect of CLOSE over the sealed channel.
    pub fn close(&mut self, last: &[u8]) {
        self.state = 5;
        self.public = None;
        self.last = last.to_vec();
    }
}

/// Simulated hardware.
pub struct FakePlatform {
    pub uds: Option<[u8; 32]>,
    pub certificate: Vec<u8>,
    pub kind: RootOfTrust,
    pub target: String,
    pub debug: DebugState,
    pub entropy: SeededEntropy,
    /// Overrides the drawn bytes, each time.
    pub drawn: Option<[u8; 32]>,
    pub quality: EntropyQuality,
    pub shell: Shell,
    pub shield: FakeShield,
    pub coming: Vec<u8>,
    /// All bytes programmed since the last begin, cleared or not.
    pub programmed: Vec<u8>,
    pub loaded: Option<Vec<u8>>,
    pub design: Option<[u8; 32]>,
    pub loads: usize,
    /// The next attempt to clear the fabric fails.
    pub not_cleared: bool,
    /// The operation that fails on its next call.
    pub fails: Option<&'static str>,
}

impl FakePlatform {
    pub fn new(manufacturer: &Manufacturer, kind: RootOfTrust, debug: DebugState) -> Self {
        Self {
            uds: Some(UDS),
            certificate: manufacturer.certify(kind, debug == DebugState::Enabled),
            kind,
            target: TARGET.into(),
            debug,
            entropy: entropy(99),
            drawn: None,
            quality: EntropyQuality::Tested,
            shell: Shell {
                digest: SHELL,
                config_port: false,
                readback: false,
                debug_bridge: false,
            },
            shield: FakeShield::power(config()),
            coming: Vec::new(),
            programmed: Vec::new(),
            loaded: None,
            design: Some(DESIGN),
            loads: 0,
            not_cleared: false,
            fails: None,
        }
    }
}

impl FakePlatform {
    fn operation(&mut self, name: &str) -> Result<(), PlatformError> {
        match self.fails.take_if(|fails| *fails == name) {
            Some(_) => Err(PlatformError::new("failed")),
            None => Ok(()),
        }
    }
}

impl BootPlatform for FakePlatform {
    fn take_uds(&mut self) -> Option<Zeroizing<[u8; 32]>> {
        self.uds.take().map(Zeroizing::new)
    }

    fn device_id_certificate(&self) -> Vec<u8> {
        self.certificate.clone()
    }

    fn root_of_trust(&self) -> RootOfTrust {
        self.kind
    }

    fn target(&self) -> String {
        self.target.clone()
    }

    fn debug_state(&mut self) -> DebugState {
        self.debug
    }

    fn entropy(&mut self, out: &mut [u8; 32]) -> EntropyQuality {
        Platform::entropy(self, out)
    }
}

impl Platform for FakePlatform {
    fn debug_state(&mut self) -> DebugState {
        self.debug
    }

    fn entropy(&mut self, out: &mut [u8; 32]) -> EntropyQuality {
        match self.drawn {
            Some(bytes) => *out = bytes,
            None => self.entropy.fill(out),
        }
        self.quality
    }

    fn shell(&mut self) -> Result<Shell, PlatformError> {
        Ok(self.shell.clone())
    }

    fn begin_image(&mut self) -> Result<(), PlatformError> {
        self.operation("begin")?;
        self.coming = Vec::new();
        self.programmed = Vec::new();
        Ok(())
    }

    fn program(&mut self, part: &[u8]) -> Result<(), PlatformError> {
        self.operation("program")?;
        self.coming.extend_from_slice(part);
        self.programmed.extend_from_slice(part);
        Ok(())
    }

    fn finish_image(&mut self) -> Result<(), PlatformError> {
        self.operation("finish")?;
        self.loaded = Some(std::mem::take(&mut self.coming));
        self.loads += 1;
        Ok(())
    }

    fn unload_image(&mut self) -> Result<(), PlatformError> {
        if std::mem::take(&mut self.not_cleared) {
            return Err(PlatformError::new("the fabric was not cleared"));
        }
        self.coming = Vec::new();
        self.loaded = None;
        self.shield.wipe();
        Ok(())
    }

    fn design_digest(&mut self) -> Option<[u8; 32]> {
        self.loaded.as_ref().and(self.design)
    }

    fn krn_read(&mut self, offset: u32) -> Result<u32, PlatformError> {
        Ok(self.shield.read(offset))
    }

    fn krn_write(&mut self, offset: u32, value: u32) -> Result<(), PlatformError> {
        if self.shield.write(offset, value) {
            Ok(())
        } else {
            Err(PlatformError::new("the kernel port refused a write"))
        }
    }

    fn idle(&mut self) {}
}

pub fn kernel_image(svn: u64) -> Vec<u8> {
    KernelImage { svn, version: "0.1.0", code: b"the code of the kernel" }.to_bytes()
}

/// IP vendor with one image.
pub struct Vendor {
    pub key: SigningKey,
    pub image_key: [u8; 32],
    pub container: Container,
}

pub fn description(svn: u64) -> Description {
    Description {
        target: TARGET.into(),
        accelerator: "digits".into(),
        svn,
        min_kernel_svn: 2,
        config: config(),
        design_digest: DESIGN,
        chunk_size: 4096,
    }
}

impl Vendor {
    pub fn new(description: &Description) -> Self {
        let mut entropy = entropy(7);
        let key = SigningKey::generate(&mut entropy);
        let mut image_key = [0; 32];
        entropy.fill(&mut image_key);
        let container = Container::build(
            description,
            PLAINTEXT,
            &ImageKey::from_bytes(&image_key),
            &key,
            &mut entropy,
        )
        .unwrap();
        Self { key, image_key, container }
    }

    pub fn secret(&self, min_svn: u64) -> ImageSecret {
        ImageSecret {
            key: ImageKey::from_bytes(&self.image_key),
            min_svn,
            vendor: self.key.public_key(),
        }
    }

    pub fn image_digest(&self) -> [u8; 32] {
        self.container
            .open(&self.key.public_key(), ImageKey::from_bytes(&self.image_key))
            .unwrap()
            .0
    }
}

/// A kernel behind its mailbox.
pub trait Answers {
    fn answer(&mut self, message: &[u8]) -> Vec<u8>;
}

impl Answers for Kernel<FakePlatform> {
    fn answer(&mut self, message: &[u8]) -> Vec<u8> {
        self.handle(message)
    }
}

/// One manufacturer, one device, one vendor, one verifier.
pub struct World<K = Kernel<FakePlatform>> {
    pub manufacturer: Manufacturer,
    pub vendor: Vendor,
    pub kernel: K,
    pub anchors: Vec<verify::TrustAnchor>,
    pub reference: verify::ReferenceValues,
    pub policy: verify::Policy,
    pub nonces: u8,
}

impl World {
    pub fn new() -> Self {
        Self::with(RootOfTrust::ShefBoot, DebugState::DisabledSinceBoot, &description(3), |_| {})
    }

    pub fn with(
        kind: RootOfTrust,
        debug: DebugState,
        description: &Description,
        change: impl FnOnce(&mut FakePlatform),
    ) -> Self {
        let manufacturer = Manufacturer::new(1);
        let vendor = Vendor::new(description);
        let mut platform = FakePlatform::new(&manufacturer, kind, debug);
        change(&mut platform);
        let image = kernel_image(2);
        let reference = verify::ReferenceValues {
            kernels: vec![verify::KernelReference {
                name: "kernel".into(),
                digest: KernelImage::digest(&image),
                svn: 2,
            }],
            shells: vec![verify::ShellReference { name: "shell".into(), digest: SHELL }],
            images: vec![verify::ImageReference {
                name: "digits".into(),
                accelerator: "digits".into(),
                digest: vendor.image_digest(),
                config_digest: config().digest(),
                design_digest: DESIGN,
                vendor: sha256(vendor.key.public_key().as_bytes()),
                svn: description.svn,
            }],
        };
        let kernel = boot(platform, &image).unwrap();
        let anchors = vec![manufacturer.anchor(kind, debug == DebugState::Enabled)];
        Self {
            manufacturer,
            vendor,
            kernel,
            anchors,
            reference,
            policy: verify::Policy::strict("test", &[kind]),
            nonces: 0,
        }
    }

    pub fn loaded() -> Self {
        let mut world = Self::new();
        let key_box = world.key_box(3);
        world.load(&key_box).unwrap();
        world
    }

    pub fn shield(&mut self) -> &mut FakeShield {
        &mut self.kernel.platform_mut().shield
    }

    /// The same with another kernel.
    pub fn on<K>(self, kernel: K) -> World<K> {
        let Self { manufacturer, vendor, kernel: _, anchors, reference, policy, nonces } = self;
        World { manufacturer, vendor, kernel, anchors, reference, policy, nonces }
    }
}

impl<K: Answers> World<K> {
    pub fn nonce(&mut self) -> Vec<u8> {
        self.nonces += 1;
        vec![self.nonces; 48]
    }

    pub fn call(&mut self, request: &Request) -> Result<Answer, MailboxError> {
        Answer::decode(&self.kernel.answer(&request.encode()))?.into_result()
    }

    pub fn code(&mut self, request: &Request) -> String {
        self.call(request).unwrap_err().kernel_code().unwrap().to_string()
    }

    pub fn evidence(&mut self, layer: Layer, nonce: &[u8]) -> Result<Vec<u8>, MailboxError> {
        let (nonce, audience) = (nonce.to_vec(), AUDIENCE.to_string());
        let request = match layer {
            Layer::Kernel => Request::KernelEvidence { nonce, audience },
            Layer::Shield => Request::ShieldEvidence { nonce, audience },
        };
        match self.call(&request)? {
            Answer::Evidence(evidence) => Ok(evidence),
            other => panic!("{other:?}"),
        }
    }

    pub fn appraise(&self, layer: Layer, evidence: &[u8], nonce: &[u8]) -> verify::Outcome {
        let anchors = verify::TrustAnchors::new(self.anchors.clone());
        let policy = verify::AppraisalPolicy::new(self.policy.clone());
        verify::appraise(&verify::Request::new(
            evidence,
            &anchors,
            &self.reference,
            &policy,
            layer,
            nonce,
            AUDIENCE,
            NOW,
        ))
    }

    pub fn verified_kernel(&mut self) -> verify::VerifiedKernelEvidence {
        let nonce = self.nonce();
        let evidence = self.evidence(Layer::Kernel, &nonce).unwrap();
        match self.appraise(Layer::Kernel, &evidence, &nonce) {
            verify::Outcome { verified: Some(verify::Verified::Kernel(evidence)), .. } => evidence,
            denied => panic!("{}", denied.appraisal.to_json()),
        }
    }

    pub fn verified_shield(&mut self) -> verify::VerifiedShieldEvidence {
        let nonce = self.nonce();
        let evidence = self.evidence(Layer::Shield, &nonce).unwrap();
        match self.appraise(Layer::Shield, &evidence, &nonce) {
            verify::Outcome { verified: Some(verify::Verified::Shield(evidence)), .. } => evidence,
            denied => panic!("{}", denied.appraisal.to_json()),
        }
    }

    pub fn key_box(&mut self, min_svn: u64) -> Vec<u8> {
        let secret = self.vendor.secret(min_svn);
        let verified = self.verified_kernel();
        verified
            .release_image_key("vendor", "image", 1, [9; 16], &secret, &mut entropy(3))
            .unwrap()
            .to_cbor()
    }

    /// Sends all messages of a load; returns the first refusal, or the last answer.
    pub fn load(&mut self, key_box: &[u8]) -> Result<Answer, MailboxError> {
        let mut last = Ok(Answer::Done);
        for request in load_requests(&self.vendor.container.clone(), key_box) {
            last = self.call(&request);
            if last.is_err() {
                break;
            }
        }
        last
    }
}
