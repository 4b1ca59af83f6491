//! Evidence: an EAT (RFC 9711) as CWT in COSE_Sign1, one profile for the Security Kernel and one
//! for the Shield.
//!
//! [`Evidence`] is parsed but unverified. Only `shef-verify` turns it into a type that keys are
//! released to.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::cbor::{self, CborError, Fields, Item, Limits, Value};
use crate::cert::UEID_LEN;
use crate::config::OnFault;
use crate::cose::{self, ContentType, CoseError, Form, Sign1, SigningKey};
use crate::crypto;
use crate::hpke_suite::{PublicKey, SUITE};

/// `eat_profile` of the Security Kernel's evidence.
pub const PROFILE_KERNEL: &str = "tag:shef.dev,2026:kernel#1";
/// `eat_profile` of the Shield's evidence.
pub const PROFILE_SHIELD: &str = "tag:shef.dev,2026:shield#1";
/// Media type of evidence (RFC 9782).
pub const MEDIA_TYPE: &str = "application/eat+cwt";
/// Minimum length of a nonce.
pub const NONCE_MIN: usize = 32;
/// Maximum length of a nonce.
pub const NONCE_MAX: usize = 64;
/// Maximum length of an audience in bytes.
pub const AUDIENCE_MAX: usize = 256;
/// Maximum size of evidence.
pub const MAX_EVIDENCE: usize = 6 * 1024;
/// Maximum length of a name (target, accelerator) in bytes.
pub const NAME_MAX: usize = 32;
/// Name of a source whose min-entropy was never measured.
pub(crate) const UNMEASURED: &str = "unmeasured";

/// Form of the signed message: tags 61(18(..)), content format 263, no external data, as other
/// verifiers expect.
pub const FORM: Form = Form {
    tags: &[61, cose::TAG_SIGN1],
    content_type: ContentType::Format(263),
    domain: b"",
    max_len: MAX_EVIDENCE,
    x5chain: true,
};

mod claim {
    pub const AUD: i64 = 3;
    pub const CNF: i64 = 8;
    pub const NONCE: i64 = 10;
    pub const UEID: i64 = 256;
    pub const HWMODEL: i64 = 259;
    pub const DBGSTAT: i64 = 263;
    pub const PROFILE: i64 = 265;
    // Private claims of both profiles.
    pub const SUITE: i64 = -75_000;
    pub const ROOT_OF_TRUST: i64 = -75_001;
    pub const KERNEL_DIGEST: i64 = -75_002;
    pub const KERNEL_SVN: i64 = -75_003;
    pub const SHELL_DIGEST: i64 = -75_004;
    pub const ENTROPY: i64 = -75_005;
    // Private claims of the Shield's profile.
    pub const IMAGE_DIGEST: i64 = -75_010;
    pub const CONFIG_DIGEST: i64 = -75_011;
    pub const DESIGN_DIGEST: i64 = -75_012;
    pub const IMAGE_SVN: i64 = -75_013;
    pub const ACCELERATOR: i64 = -75_014;
    pub const VENDOR: i64 = -75_015;
    pub const ON_FAULT: i64 = -75_016;
    pub const BYPASS: i64 = -75_017;
    pub const STATE: i64 = -75_018;
    pub const TRANSCRIPT: i64 = -75_019;
}

crate::coded! {
    /// Why evidence is not a valid message.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum EvidenceError {
        /// Not a signed message of this form.
        #[error(transparent)]
        Cose(#[from] CoseError) => (error) error.code(),
        /// The claims do not match the profile.
        #[error("claims: {0}")]
        Claims(#[from] CborError) => (error) error.code(),
        /// An unknown profile.
        #[error("unknown evidence profile {found:?}")]
        Profile {
            /// Its name.
            found: String,
        } = "SHEF-PRO-030": "unknown evidence profile",
            "The claim eat_profile names neither the kernel's nor the Shield's profile of this version.",
        /// An unknown suite.
        #[error("unknown suite {found}")]
        Suite {
            /// Its number.
            found: u64,
        } = "SHEF-PRO-031": "unknown suite",
            "The message is of a suite of algorithms that this version does not know. Suites are never guessed or downgraded.",
    }
}

/// The layer that makes the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// The Security Kernel, before an image: image keys go to it.
    Kernel,
    /// A loaded Shield: data keys go to it.
    Shield,
}

impl Layer {
    /// `eat_profile` of this layer's evidence.
    #[must_use]
    pub fn profile(self) -> &'static str {
        match self {
            Self::Kernel => PROFILE_KERNEL,
            Self::Shield => PROFILE_SHIELD,
        }
    }

    /// `kernel` or `shield`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Shield => "shield",
        }
    }

    /// The layer with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Kernel, Self::Shield].into_iter().find(|layer| layer.name() == name)
    }
}

/// Location of the device secret and the kernel, from strongest to weakest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RootOfTrust {
    /// Our kernel in the FPGA's package.
    ShefBoot,
    /// The kernel in another package: seed and decrypted image cross board wires.
    Board,
    /// A cloud provider loads the image (AWS F2), which holds the kernel and its secret: all cards
    /// that run it share secret and ueid. If the provider and the vendor's build are honest, this
    /// protects against the host's software, the instance's user and off-chip memory. It does not
    /// identify the card, or protect against a holder of the image's secret.
    Provider,
    /// A simulator, which protects nothing.
    Simulated,
}

impl RootOfTrust {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::ShefBoot, Self::Board, Self::Provider, Self::Simulated];

    /// Name in evidence and policies.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ShefBoot => "shef-boot",
            Self::Board => "board",
            Self::Provider => "provider",
            Self::Simulated => "simulated",
        }
    }

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Source of the random bytes behind a device's keys, from strongest to weakest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EntropySource {
    /// Passes its health tests, and its min-entropy was measured.
    Tested,
    /// Passes its health tests, which assume a min-entropy that was never measured.
    Unmeasured,
    /// A test seed: anyone who knows it can compute the keys.
    Seeded,
}

impl EntropySource {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Tested, Self::Unmeasured, Self::Seeded];

    /// Name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tested => "tested",
            Self::Unmeasured => UNMEASURED,
            Self::Seeded => "seeded",
        }
    }

    /// The claim: a test seed or not, and the exception by name.
    fn claim(self) -> Value {
        match self {
            Self::Tested => false.into(),
            Self::Unmeasured => UNMEASURED.into(),
            Self::Seeded => true.into(),
        }
    }

    fn from_claim(claim: &Item<'_>) -> Option<Self> {
        match claim {
            Value::Bool(false) => Some(Self::Tested),
            Value::Bool(true) => Some(Self::Seeded),
            Value::Text(UNMEASURED) => Some(Self::Unmeasured),
            _ => None,
        }
    }
}

/// The weakest source of random bytes that a vendor or a relying party accepts. A test seed is not
/// one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AcceptedEntropy {
    /// [`EntropySource::Tested`].
    #[default]
    Tested,
    /// [`EntropySource::Unmeasured`] too.
    Unmeasured,
}

impl AcceptedEntropy {
    /// Name in images and policies.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tested => "tested",
            Self::Unmeasured => UNMEASURED,
        }
    }

    /// The value with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Tested, Self::Unmeasured].into_iter().find(|accepted| accepted.name() == name)
    }
}

/// `dbgstat` of RFC 9711 section 4.2.9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum DebugState {
    /// Debug is on.
    Enabled = 0,
    /// Off now.
    Disabled = 1,
    /// Off since boot.
    DisabledSinceBoot = 2,
    /// Off for good, except for the manufacturer.
    DisabledPermanently = 3,
    /// Off for good, for everyone.
    DisabledFullyAndPermanently = 4,
}

impl DebugState {
    /// The number in the claim.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The state with this number.
    #[must_use]
    pub fn from_number(n: u64) -> Option<Self> {
        [
            Self::Enabled,
            Self::Disabled,
            Self::DisabledSinceBoot,
            Self::DisabledPermanently,
            Self::DisabledFullyAndPermanently,
        ]
        .into_iter()
        .find(|state| u64::from(state.number()) == n)
    }

    /// Name for reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::DisabledSinceBoot => "disabled-since-boot",
            Self::DisabledPermanently => "disabled-permanently",
            Self::DisabledFullyAndPermanently => "disabled-fully-and-permanently",
        }
    }

    /// True if debug was off at boot and cannot have been on since.
    #[must_use]
    pub fn is_safe(self) -> bool {
        self >= Self::DisabledSinceBoot
    }
}

/// State of the Shield's session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShieldState {
    /// Has a key pair but no session; accepts a Load Key.
    Fresh,
    /// Has accepted a Load Key; the session's transcript hash.
    Keyed([u8; 32]),
    /// The session is over; its transcript hash.
    Closed([u8; 32]),
}

impl ShieldState {
    /// Name in evidence and policies.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fresh => "fresh",
            Self::Keyed(_) => "keyed",
            Self::Closed(_) => "closed",
        }
    }

    /// Transcript hash of the session.
    #[must_use]
    pub fn transcript(&self) -> Option<&[u8; 32]> {
        match self {
            Self::Fresh => None,
            Self::Keyed(t) | Self::Closed(t) => Some(t),
        }
    }
}

/// Claims of both profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Common {
    /// The intended audience of the evidence.
    pub audience: String,
    /// The challenge.
    pub nonce: Vec<u8>,
    /// Identity of the device.
    pub ueid: [u8; UEID_LEN],
    /// Type of the device, which images name as their target.
    pub target: String,
    /// Debug state.
    pub debug: DebugState,
    /// Kind of root of trust.
    pub root_of_trust: RootOfTrust,
    /// SHA-256 of the kernel image.
    pub kernel_digest: [u8; 32],
    /// Security version number of the kernel.
    pub kernel_svn: u64,
    /// Measurement of the shell.
    pub shell_digest: [u8; 32],
    /// Source of the randomness.
    pub entropy: EntropySource,
    /// The key that the layer vouches for: the kernel's KEM key, or the Shield's key.
    pub key: PublicKey,
}

/// Claims about a loaded Shield.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShieldClaims {
    /// SHA-256 of the image's signed header and plaintext.
    pub image_digest: [u8; 32],
    /// Digest of the Shield's configuration.
    pub config_digest: [u8; 32],
    /// Digest of the loaded design.
    pub design_digest: [u8; 32],
    /// Security version number of the image.
    pub image_svn: u64,
    /// Name of the accelerator.
    pub accelerator: String,
    /// SHA-256 of the IP vendor's public key that signed the image header.
    pub vendor: [u8; 32],
    /// The scope of a fault.
    pub on_fault: OnFault,
    /// Names of the regions without protection.
    pub bypass: Vec<String>,
    /// State of the session.
    pub state: ShieldState,
}

/// All claims of one piece of evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    /// Claims of both profiles.
    pub common: Common,
    /// Claims of the Shield's profile; `None` for the kernel's.
    pub shield: Option<ShieldClaims>,
}

impl Claims {
    /// The layer that makes the evidence.
    #[must_use]
    pub fn layer(&self) -> Layer {
        if self.shield.is_some() { Layer::Shield } else { Layer::Kernel }
    }

    /// The claims-set in deterministic CBOR.
    #[must_use]
    pub fn to_cbor(&self) -> Vec<u8> {
        let c = &self.common;
        let mut map = vec![
            (claim::AUD, c.audience.as_str().into()),
            (claim::CNF, Value::map(vec![(1, cose::key_to_cose(&c.key))])),
            (claim::NONCE, c.nonce.as_slice().into()),
            (claim::UEID, (&c.ueid).into()),
            (claim::HWMODEL, c.target.as_bytes().into()),
            (claim::DBGSTAT, u64::from(c.debug.number()).into()),
            (claim::PROFILE, self.layer().profile().into()),
            (claim::SUITE, u64::from(SUITE).into()),
            (claim::ROOT_OF_TRUST, c.root_of_trust.name().into()),
            (claim::KERNEL_DIGEST, (&c.kernel_digest).into()),
            (claim::KERNEL_SVN, c.kernel_svn.into()),
            (claim::SHELL_DIGEST, (&c.shell_digest).into()),
            (claim::ENTROPY, c.entropy.claim()),
        ];
        if let Some(s) = &self.shield {
            map.extend([
                (claim::IMAGE_DIGEST, (&s.image_digest).into()),
                (claim::CONFIG_DIGEST, (&s.config_digest).into()),
                (claim::DESIGN_DIGEST, (&s.design_digest).into()),
                (claim::IMAGE_SVN, s.image_svn.into()),
                (claim::ACCELERATOR, s.accelerator.as_str().into()),
                (claim::VENDOR, (&s.vendor).into()),
                (claim::ON_FAULT, s.on_fault.name().into()),
                (
                    claim::BYPASS,
                    Value::Array(s.bypass.iter().map(|name| name.as_str().into()).collect()),
                ),
                (claim::STATE, s.state.name().into()),
            ]);
            if let Some(transcript) = s.state.transcript() {
                map.push((claim::TRANSCRIPT, transcript.into()));
            }
        }
        Value::map(map).encode()
    }

    /// Reads a claims-set. Every claim of its profile is required, and no other is allowed.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn from_cbor(bytes: &[u8]) -> Result<Self, EvidenceError> {
        let mut f = Fields::new(cbor::read(bytes, &Limits::bytes(MAX_EVIDENCE))?, "evidence")?;
        let profile = f.text(claim::PROFILE, 0..=256)?;
        let layer =
            [Layer::Kernel, Layer::Shield].into_iter().find(|layer| layer.profile() == profile);
        let Some(layer) = layer else {
            return Err(EvidenceError::Profile { found: profile.into() });
        };
        match f.uint(claim::SUITE, u64::MAX)? {
            found if found == u64::from(SUITE) => {}
            found => return Err(EvidenceError::Suite { found }),
        }
        let mut cnf = Fields::new(f.take(claim::CNF)?, "cnf")?;
        let key = cose::key_from_cose(cnf.take(1)?)?;
        cnf.finish()?;
        let target = f.bytes(claim::HWMODEL, 1..=NAME_MAX)?;
        let target = cbor::printable(target)
            .ok_or_else(|| f.bad(claim::HWMODEL, "a name in UTF-8 without control characters"))?;
        let debug = f.uint(claim::DBGSTAT, 4)?;
        let debug =
            DebugState::from_number(debug).ok_or_else(|| f.bad(claim::DBGSTAT, "a debug state"))?;
        let kind = f.text(claim::ROOT_OF_TRUST, 1..=NAME_MAX)?;
        let root_of_trust = RootOfTrust::from_name(kind)
            .ok_or_else(|| f.bad(claim::ROOT_OF_TRUST, "a kind of root of trust"))?;
        let entropy = EntropySource::from_claim(&f.take(claim::ENTROPY)?).ok_or_else(|| {
            f.bad(claim::ENTROPY, "a source of entropy: false, true or \"unmeasured\"")
        })?;
        let common = Common {
            audience: f.text(claim::AUD, 1..=AUDIENCE_MAX)?.into(),
            nonce: f.bytes(claim::NONCE, NONCE_MIN..=NONCE_MAX)?.into(),
            ueid: f.array(claim::UEID)?,
            target: target.into(),
            debug,
            root_of_trust,
            kernel_digest: f.array(claim::KERNEL_DIGEST)?,
            kernel_svn: f.uint(claim::KERNEL_SVN, u64::MAX)?,
            shell_digest: f.array(claim::SHELL_DIGEST)?,
            entropy,
            key,
        };
        let shield = match layer {
            Layer::Kernel => None,
            Layer::Shield => Some(shield_claims(&mut f)?),
        };
        f.finish()?;
        Ok(Self { common, shield })
    }
}

fn shield_claims(f: &mut Fields<'_>) -> Result<ShieldClaims, CborError> {
    let on_fault = f.text(claim::ON_FAULT, 1..=NAME_MAX)?;
    let on_fault =
        OnFault::from_name(on_fault).ok_or_else(|| f.bad(claim::ON_FAULT, "a fault policy"))?;
    let Value::Array(names) = f.take(claim::BYPASS)? else {
        return Err(f.bad(claim::BYPASS, "a list of names"));
    };
    let mut bypass = Vec::new();
    for name in names {
        match name {
            Value::Text(name)
                if (1..=NAME_MAX).contains(&name.len()) && cbor::is_printable(name) =>
            {
                bypass.push(name.into());
            }
            _ => return Err(f.bad(claim::BYPASS, "a list of names")),
        }
    }
    let state = match f.text(claim::STATE, 1..=NAME_MAX)? {
        "fresh" => ShieldState::Fresh,
        "keyed" => ShieldState::Keyed(f.array(claim::TRANSCRIPT)?),
        "closed" => ShieldState::Closed(f.array(claim::TRANSCRIPT)?),
        _ => return Err(f.bad(claim::STATE, "fresh, keyed or closed")),
    };
    Ok(ShieldClaims {
        image_digest: f.array(claim::IMAGE_DIGEST)?,
        config_digest: f.array(claim::CONFIG_DIGEST)?,
        design_digest: f.array(claim::DESIGN_DIGEST)?,
        image_svn: f.uint(claim::IMAGE_SVN, u64::MAX)?,
        accelerator: f.text(claim::ACCELERATOR, 1..=NAME_MAX)?.into(),
        vendor: f.array(claim::VENDOR)?,
        on_fault,
        bypass,
        state,
    })
}

/// Signs claims with the attestation key; `x5chain` is `[AK, DeviceID]`, or empty if the
/// certificates are sent separately.
#[must_use]
pub fn sign(claims: &Claims, ak: &SigningKey, x5chain: &[&[u8]]) -> Vec<u8> {
    cose::sign(&FORM, ak, &claims.to_cbor(), x5chain)
}

/// SHA-256 of evidence as received, certificates included. Release `info` and Load Key `info` carry
/// it.
#[must_use]
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    crypto::sha256(bytes)
}

/// Evidence as received: parsed strictly, **not verified**.
#[derive(Clone, Debug)]
pub struct Evidence {
    signed: Sign1,
    claims: Claims,
}

impl Evidence {
    /// Parses evidence of either profile.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn parse(bytes: &[u8]) -> Result<Self, EvidenceError> {
        let signed = Sign1::parse(&FORM, bytes)?;
        let claims = Claims::from_cbor(signed.payload())?;
        Ok(Self { signed, claims })
    }

    /// The bytes as received.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.signed.bytes()
    }

    /// SHA-256 of the bytes as received.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        digest(self.bytes())
    }

    /// The layer claimed by the evidence.
    #[must_use]
    pub fn layer(&self) -> Layer {
        self.claims.layer()
    }

    /// The unverified claims.
    #[must_use]
    pub fn unverified_claims(&self) -> &Claims {
        &self.claims
    }

    /// Takes the unverified claims.
    #[must_use]
    pub fn into_unverified_claims(self) -> Claims {
        self.claims
    }

    /// Certificates in the evidence, leaf first.
    #[must_use]
    pub fn x5chain(&self) -> &[Vec<u8>] {
        self.signed.x5chain()
    }

    /// Verifies the signature with the attestation key.
    ///
    /// # Errors
    /// It is not `ak`'s.
    pub fn verify(&self, ak: &PublicKey) -> Result<(), CoseError> {
        self.signed.verify(ak)
    }

    /// Verifies the signature with `verify`, a function of message and signature under that key.
    ///
    /// # Errors
    /// `verify` returns false.
    pub fn verify_with(
        &self,
        verify: impl FnOnce(&[u8], &[u8; cose::SIGNATURE_LEN]) -> bool,
    ) -> Result<(), CoseError> {
        self.signed.verify_with(verify)
    }

    /// The claims as readable text, one line each.
    #[must_use]
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let hex = |bytes: &[u8]| {
            bytes.iter().map(|byte| alloc::format!("{byte:02x}")).collect::<String>()
        };
        let c = &self.claims.common;
        let mut out = vec![
            ("layer", self.layer().name().to_string()),
            ("root_of_trust", c.root_of_trust.name().to_string()),
            ("ueid", hex(&c.ueid)),
            ("target", c.target.clone()),
            ("debug", c.debug.name().to_string()),
            ("audience", c.audience.clone()),
            ("nonce", hex(&c.nonce)),
            ("kernel_digest", hex(&c.kernel_digest)),
            ("kernel_svn", c.kernel_svn.to_string()),
            ("shell_digest", hex(&c.shell_digest)),
            ("seeded", (c.entropy == EntropySource::Seeded).to_string()),
            ("entropy", c.entropy.name().to_string()),
            ("key", hex(c.key.as_bytes())),
        ];
        if let Some(s) = &self.claims.shield {
            out.extend([
                ("image_digest", hex(&s.image_digest)),
                ("config_digest", hex(&s.config_digest)),
                ("design_digest", hex(&s.design_digest)),
                ("image_svn", s.image_svn.to_string()),
                ("accelerator", s.accelerator.clone()),
                ("vendor", hex(&s.vendor)),
                ("on_fault", s.on_fault.name().to_string()),
                ("bypass", s.bypass.join(", ")),
                ("state", s.state.name().to_string()),
            ]);
            if let Some(t) = s.state.transcript() {
                out.push(("transcript", hex(t)));
            }
        }
        out
    }
}
