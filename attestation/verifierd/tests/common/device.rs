//! A manufacturer and a device that answers challenges, without hardware.

use shef_proto::cert::{self, Certificate, TcbInfo};
use shef_proto::config::OnFault;
use shef_proto::cose::SigningKey;
use shef_proto::entropy::SeededEntropy;
use shef_proto::evidence::{
    self, Claims, Common, DebugState, Layer, RootOfTrust, ShieldClaims, ShieldState,
};
use shef_proto::hpke_suite::{PrivateKey, generate_key_pair};

pub const AUDIENCE: &str = "https://verifier.example";
pub const KERNEL: [u8; 32] = [0x11; 32];
/// The next version of the kernel, with a higher security version.
pub const NEXT_KERNEL: [u8; 32] = [0x12; 32];
pub const SHELL: [u8; 32] = [0x22; 32];
pub const IMAGE: [u8; 32] = [0x33; 32];
pub const CONFIG: [u8; 32] = [0x44; 32];
pub const DESIGN: [u8; 32] = [0x55; 32];
pub const VENDOR: [u8; 32] = [0x66; 32];

/// The manufacturer and one of its devices.
pub struct Device {
    pub root: Certificate,
    ak: SigningKey,
    chain: [Vec<u8>; 2],
    pub ueid: [u8; 33],
    pub key: PrivateKey,
    pub kernel: [u8; 32],
    pub svn: u64,
    pub image: [u8; 32],
    pub kind: RootOfTrust,
    pub audience: String,
}

impl Device {
    pub fn new(seed: u64) -> Self {
        Self::made_by(1, seed)
    }

    pub fn made_by(manufacturer: u64, seed: u64) -> Self {
        Self::with_kernel(manufacturer, seed, KERNEL, 2)
    }

    /// The device of [`Device::new`], after an update of its kernel.
    pub fn updated(seed: u64) -> Self {
        Self::with_kernel(1, seed, NEXT_KERNEL, 3)
    }

    fn with_kernel(manufacturer: u64, seed: u64, kernel: [u8; 32], svn: u64) -> Self {
        let ca = SigningKey::generate(&mut SeededEntropy::new(manufacturer, "manufacturer"));
        // Fixed times: all devices of a manufacturer have the same root.
        let root = cert::issue_root(&ca, "test manufacturer", 1_600_000_000, cert::NO_END);
        let root = Certificate::parse(&root).unwrap();
        let mut entropy = SeededEntropy::new(seed, "device");
        let device_id = SigningKey::generate(&mut entropy);
        let device_certificate =
            cert::issue_device_id(&ca, &root, &device_id.public_key(), 1_600_000_001);
        let ak = SigningKey::generate(&mut entropy);
        let info = TcbInfo { version: "0.1.0".into(), svn, digest: kernel, flags: 0 };
        let parsed = Certificate::parse(&device_certificate).unwrap();
        let ak_certificate = cert::issue_ak(&device_id, &parsed, &ak.public_key(), &info);
        let (key, _) = generate_key_pair(&mut entropy);
        Self {
            root,
            ak,
            chain: [ak_certificate, device_certificate],
            ueid: cert::ueid_of(&device_id.public_key()),
            key,
            kernel,
            svn,
            image: IMAGE,
            kind: RootOfTrust::ShefBoot,
            audience: AUDIENCE.into(),
        }
    }

    pub fn evidence(&self, layer: Layer, nonce: &[u8]) -> Vec<u8> {
        let common = Common {
            audience: self.audience.clone(),
            nonce: nonce.to_vec(),
            ueid: self.ueid,
            target: "shef-test".into(),
            debug: DebugState::DisabledSinceBoot,
            root_of_trust: self.kind,
            kernel_digest: self.kernel,
            kernel_svn: self.svn,
            shell_digest: SHELL,
            seeded: false,
            key: self.key.public_key(),
        };
        let shield = (layer == Layer::Shield).then(|| ShieldClaims {
            image_digest: self.image,
            config_digest: CONFIG,
            design_digest: DESIGN,
            image_svn: 3,
            accelerator: "digits".into(),
            vendor: VENDOR,
            on_fault: OnFault::Shield,
            bypass: Vec::new(),
            state: ShieldState::Fresh,
        });
        let chain: Vec<&[u8]> = self.chain.iter().map(Vec::as_slice).collect();
        evidence::sign(&Claims { common, shield }, &self.ak, &chain)
    }
}

/// Reference values of the updated kernel.
pub fn next_reference() -> String {
    format!(
        "[[kernel]]\nname = \"next kernel\"\ndigest = \"{}\"\nsvn = 3\n",
        hex::encode(NEXT_KERNEL)
    )
}

/// Reference values of this device.
pub fn reference() -> String {
    let h = |digest: [u8; 32]| hex::encode(digest);
    format!(
        "[[kernel]]\nname = \"kernel\"\ndigest = \"{}\"\nsvn = 2\n[[shell]]\nname = \"shell\"\ndigest = \"{}\"\n\
         [[image]]\nname = \"digits\"\naccelerator = \"digits\"\ndigest = \"{}\"\nconfig_digest = \"{}\"\ndesign_digest = \"{}\"\n\
         vendor = \"{}\"\nsvn = 3\n",
        h(KERNEL),
        h(SHELL),
        h(IMAGE),
        h(CONFIG),
        h(DESIGN),
        h(VENDOR)
    )
}
