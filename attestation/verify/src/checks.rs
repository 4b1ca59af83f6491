//! The checks of an appraisal and their results.

use core::fmt;

use serde::{Serialize, Serializer};
use shef_proto::code::Code;
use shef_proto::evidence::Layer;

macro_rules! checks {
    ($($(#[$doc:meta])* $variant:ident = ($code:literal, $name:literal, $summary:literal, $help:literal),)*) => {
        /// One rule of the appraisal.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum CheckId {
            $($(#[$doc])* $variant,)*
        }

        impl CheckId {
            /// Stable code.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self {
                    $(Self::$variant => $code,)*
                }
            }

            /// Name in reports.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl CheckId {
            /// The checks of all layers.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Their number.
            pub(crate) const COUNT: usize = Self::ALL.len();
        }

        /// Codes of the checks.
        pub(crate) const CODES: &[Code] = &[$(Code::new($code, $summary, $help),)*];
    };
}

checks! {
    /// Strict CBOR, and a COSE_Sign1 with the right tags, headers and algorithm.
    Framing = ("SHEF-ATT-001", "framing", "evidence is not a signed token of the form",
        "The bytes are not a deterministic COSE_Sign1 under tags 61 and 18, signed by ECDSA P-256 with SHA-256. They were cut or changed, or are no evidence."),
    /// The profile of the expected layer.
    Profile = ("SHEF-ATT-002", "profile", "evidence of another layer",
        "The profile is not the one expected. An image key is released to evidence of the kernel only, a data key to evidence of the Shield only."),
    /// Every claim of the profile, and no other.
    Claims = ("SHEF-ATT-003", "claims", "claims missing or malformed",
        "A claim that the profile demands is missing, of the wrong form, or unknown. A missing claim denies."),
    /// The nonce of this challenge.
    Nonce = ("SHEF-ATT-004", "nonce", "evidence is not an answer to this challenge",
        "The nonce is not the one of this challenge: the evidence is old or was made for somebody else. Ask for new evidence."),
    /// The audience of this challenge.
    Audience = ("SHEF-ATT-005", "audience", "evidence was made for another audience",
        "The evidence names another audience than this verifier's."),
    /// The challenge is not older than the policy allows.
    Age = ("SHEF-ATT-006", "age", "evidence is too old",
        "The policy says how old an answer to a challenge may be (max_age), and this one is older, or nobody knows when the challenge was made."),
    /// AK and DeviceID certificate, well-formed.
    Certificates = ("SHEF-ATT-010", "certificates", "certificates missing or malformed",
        "Exactly two certificates are expected, attestation key first, then DeviceID, in strict DER."),
    /// A trust anchor that issued the DeviceID certificate.
    Anchor = ("SHEF-ATT-011", "trust-anchor", "no trust anchor for this device",
        "None of the trust anchors issued the DeviceID certificate: the device was made by somebody who is not trusted here."),
    /// The rules of the chain.
    Chain = ("SHEF-ATT-012", "chain", "certificate chain is not valid",
        "A certificate breaks a rule of the chain manufacturer -> DeviceID -> attestation key, is not signed by its issuer, or is not valid now."),
    /// The anchor is registered for the kind of root of trust that the evidence claims.
    AnchorKind = ("SHEF-ATT-013", "anchor-kind", "root of trust is not the one of the trust anchor",
        "The trust anchor is registered for another kind of root of trust than the evidence claims. A simulator cannot call itself hardware."),
    /// The signature of the attestation key.
    Signature = ("SHEF-ATT-014", "signature", "evidence is not signed by the attestation key",
        "The evidence was changed after it was signed, or another key signed it."),
    /// The identity in the evidence is the certified one.
    Ueid = ("SHEF-ATT-015", "ueid", "device identity is not the certified one",
        "The ueid in the evidence is not the one that the manufacturer certified."),
    /// The kernel in the evidence is the certified one.
    Measured = ("SHEF-ATT-016", "measured-kernel", "kernel is not the measured one",
        "Digest or security version in the evidence differ from what the boot code certified."),
    /// Debug state in evidence, TcbInfo and anchor agree.
    DebugConsistent = ("SHEF-ATT-017", "debug-consistent", "debug state contradicts the certificates",
        "Evidence, TcbInfo flags and trust anchor must all say debug, or none of them."),
    /// The attested key differs from all keys in the certificates.
    Key = ("SHEF-ATT-018", "key", "the attested key is a key of the certificates or of the verifier",
        "The key in cnf must be a key of its own, not that of a certificate, and not one of the verifier's."),
    /// The kind of root of trust is accepted.
    RootOfTrust = ("SHEF-ATT-020", "root-of-trust", "kind of root of trust is not accepted",
        "The policy does not name this kind of root of trust. A simulated device protects nothing; a policy must name it to accept it."),
    /// Debug is off, or accepted.
    Debug = ("SHEF-ATT-021", "debug", "debug is not off",
        "Debug is on, or was not shown to be off since boot, and the policy does not accept that. A device in debug mode protects nothing."),
    /// Keys come from real entropy, or a seed is accepted.
    Seeded = ("SHEF-ATT-022", "seeded", "device draws from a test's seed",
        "Its keys can be computed by anybody who knows the seed. Only a test's policy may accept that (allow_seeded)."),
    /// The type of device is accepted.
    Target = ("SHEF-ATT-023", "target", "type of device is not accepted",
        "The policy lists the types of device it accepts, and this is none of them."),
    /// The device is in the fleet and not revoked.
    Device = ("SHEF-ATT-024", "device", "device is not accepted",
        "The policy lists the devices it accepts and this is none of them, or it lists this one as revoked."),
    /// Nothing in the evidence is revoked.
    Revocation = ("SHEF-ATT-025", "revocation", "revoked, or the revocation list is missing or out of date",
        "A certificate, authority, device, kernel, shell, image or signer is on the revocation list; or the policy demands a list and there is none that is valid now."),
    /// The noise source was measured, or the policy accepts one that was not.
    Entropy = ("SHEF-ATT-026", "entropy", "min-entropy of the noise source was never measured",
        "The device's noise source passes its health tests, but nobody measured its min-entropy on silicon, so its keys may be predictable. A policy accepts that with `entropy = \"unmeasured\"`."),
    /// A known kernel.
    Kernel = ("SHEF-ATT-030", "kernel", "unknown kernel",
        "No reference value has this kernel digest and security version. Reference values come from whoever built the kernel."),
    /// A kernel with a sufficient security version.
    KernelSvn = ("SHEF-ATT-031", "kernel-svn", "kernel is too old",
        "The security version of the kernel is below the policy's least, or below the one that this device has shown before. Update the kernel of the card."),
    /// A known shell.
    Shell = ("SHEF-ATT-032", "shell", "unknown shell",
        "No reference value has this measurement of the shell."),
    /// A known image.
    Image = ("SHEF-ATT-040", "image", "unknown image",
        "No reference value has this image digest for this accelerator and vendor, or the policy names the images or accelerators that it accepts, and this is none of them."),
    /// The configuration of that image.
    Config = ("SHEF-ATT-041", "configuration", "Shield configuration is not the image's",
        "The configuration digest is not the one of the reference value: regions or their protection are others."),
    /// The design of that image.
    Design = ("SHEF-ATT-042", "design", "loaded design is not the image's",
        "The digest of the loaded design is not the one of the reference value."),
    /// An image with a sufficient security version.
    ImageSvn = ("SHEF-ATT-043", "image-svn", "image is too old",
        "The security version of the image is below the policy's least, or not the one of its reference value."),
    /// An accepted fault policy.
    OnFault = ("SHEF-ATT-044", "fault-policy", "fault policy is not accepted",
        "The policy does not name what this Shield does on a fault."),
    /// No unprotected regions, or only those in the policy.
    Bypass = ("SHEF-ATT-045", "bypass", "region without protection",
        "The Shield has a region in mode bypass that the policy does not name: what lies there is open to the host."),
    /// An accepted state.
    State = ("SHEF-ATT-046", "state", "state of the Shield is not accepted",
        "The policy does not accept this state of the session. A Load Key goes to a fresh Shield only; ask the kernel for a new session."),
    /// An accepted signer of the image.
    ImageSigner = ("SHEF-ATT-047", "image-signer", "signer of the image is not accepted",
        "The policy lists the IP vendors whose images it accepts, and this image was signed by none of them."),
    /// The Rego policy, if any.
    Rego = ("SHEF-ATT-048", "rego", "the Rego policy does not allow it",
        "The rule allow of the policy in Rego did not come to true. If it failed, ran out of time or gave no truth value, the verifier could not decide, and denies."),
}

impl Serialize for CheckId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl CheckId {
    /// Checks of evidence of this layer, in order.
    #[must_use]
    pub fn all(layer: Layer) -> &'static [Self] {
        use CheckId::*;
        const SHARED: &[CheckId] = &[
            Framing,
            Profile,
            Claims,
            Nonce,
            Audience,
            Age,
            Certificates,
            Anchor,
            Chain,
            AnchorKind,
            Signature,
            Ueid,
            Measured,
            DebugConsistent,
            Key,
            RootOfTrust,
            Debug,
            Seeded,
            Entropy,
            Target,
            Device,
            Revocation,
            Kernel,
            KernelSvn,
            Shell,
        ];
        const OF_SHIELD: &[CheckId] =
            &[Image, Config, Design, ImageSvn, ImageSigner, OnFault, Bypass, State];
        /// A Rego policy is evaluated last.
        const fn then_rego<const N: usize>(first: &[CheckId], more: &[CheckId]) -> [CheckId; N] {
            assert!(N == first.len() + more.len() + 1);
            let mut all = [Rego; N];
            let mut i = 0;
            while i + 1 < N {
                all[i] = if i < first.len() { first[i] } else { more[i - first.len()] };
                i += 1;
            }
            all
        }
        const KERNEL: &[CheckId] = &then_rego::<{ SHARED.len() + 1 }>(SHARED, &[]);
        const SHIELD: &[CheckId] =
            &then_rego::<{ SHARED.len() + OF_SHIELD.len() + 1 }>(SHARED, OF_SHIELD);
        match layer {
            Layer::Kernel => KERNEL,
            Layer::Shield => SHIELD,
        }
    }
}

/// Bytes of a digest shown in reports.
const PREFIX: usize = 8;

/// A value in a report, formatted on demand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// Fixed text.
    Static(&'static str),
    /// A number.
    Number(u64),
    /// A minimum.
    AtLeast(u64),
    /// An age in seconds.
    Age(i64),
    /// The maximum age in seconds.
    AtMostAge(u32),
    /// The first bytes of a digest or nonce, shown in hexadecimal.
    Prefix([u8; PREFIX]),
    /// First bytes of a digest, and a security version.
    Measured([u8; PREFIX], u64),
    /// Any other text.
    Owned(Box<str>),
}

impl Text {
    /// The first bytes of `bytes` in hexadecimal.
    #[must_use]
    pub fn prefix(bytes: &[u8]) -> Self {
        Self::Prefix(prefix(bytes))
    }

    /// First bytes of a digest, and a security version.
    #[must_use]
    pub fn measured(digest: &[u8], svn: u64) -> Self {
        Self::Measured(prefix(digest), svn)
    }
}

fn prefix(bytes: &[u8]) -> [u8; PREFIX] {
    let mut out = [0; PREFIX];
    let n = bytes.len().min(PREFIX);
    out[..n].copy_from_slice(&bytes[..n]);
    out
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = |f: &mut fmt::Formatter<'_>, bytes: &[u8; PREFIX]| {
            write!(f, "{:016x}...", u64::from_be_bytes(*bytes))
        };
        match self {
            Self::Static(text) => f.write_str(text),
            Self::Owned(text) => f.write_str(text),
            Self::Number(n) => write!(f, "{n}"),
            Self::AtLeast(n) => write!(f, "at least {n}"),
            Self::Age(age) => write!(f, "{age} s"),
            Self::AtMostAge(age) => write!(f, "at most {age} s"),
            Self::Prefix(bytes) => hex(f, bytes),
            Self::Measured(bytes, svn) => {
                hex(f, bytes)?;
                write!(f, " svn {svn}")
            }
        }
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Self::Static(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::Owned(text.into())
    }
}

impl From<u64> for Text {
    fn from(n: u64) -> Self {
        Self::Number(n)
    }
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Which check.
    pub id: CheckId,
    /// Its code.
    pub code: &'static str,
    /// True if the check ran and passed.
    pub passed: bool,
    /// False if an earlier failure left nothing to check.
    pub reached: bool,
    /// The expected value.
    pub expected: Text,
    /// The actual value.
    pub actual: Text,
}

/// The checks run so far.
pub(crate) struct Checks {
    slots: [Option<Check>; CheckId::COUNT],
}

impl Checks {
    pub(crate) fn new() -> Self {
        Self { slots: [const { None }; CheckId::COUNT] }
    }

    /// Records a check. A failed check stays failed.
    pub(crate) fn add(
        &mut self,
        id: CheckId,
        passed: bool,
        expected: impl Into<Text>,
        actual: impl Into<Text>,
    ) -> bool {
        let slot = &mut self.slots[id as usize];
        if slot.as_ref().is_none_or(|before| before.passed) {
            *slot = Some(Check {
                id,
                code: id.code(),
                passed,
                reached: true,
                expected: expected.into(),
                actual: actual.into(),
            });
        }
        passed
    }

    /// True if the check ran and passed.
    pub(crate) fn passed(&self, id: CheckId) -> bool {
        self.slots[id as usize].as_ref().is_some_and(|check| check.passed)
    }

    /// True if every check of the layer except `except` ran and passed, and no check of another
    /// layer ran.
    pub(crate) fn all_passed(&self, layer: Layer, except: Option<CheckId>) -> bool {
        let of_layer = CheckId::all(layer).iter();
        let made = of_layer.clone().filter(|id| self.slots[**id as usize].is_some()).count();
        of_layer.clone().all(|id| Some(*id) == except || self.passed(*id))
            && made == self.slots.iter().flatten().count()
    }

    /// The checks that ran, in order, for an appraisal that does not run all of them.
    pub(crate) fn made(self) -> Vec<Check> {
        self.slots.into_iter().flatten().collect()
    }

    /// Completes the list: checks that did not run count as failed.
    pub(crate) fn finish(mut self, layer: Layer) -> (bool, Vec<Check>) {
        let accepted = self.all_passed(layer, None);
        let list = CheckId::all(layer)
            .iter()
            .map(|id| {
                self.slots[*id as usize].take().unwrap_or(Check {
                    id: *id,
                    code: id.code(),
                    passed: false,
                    reached: false,
                    expected: Text::Static(""),
                    actual: Text::Static("not reached"),
                })
            })
            .collect();
        (accepted, list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_checked_denies() {
        for layer in [Layer::Kernel, Layer::Shield] {
            for missing in CheckId::all(layer) {
                let mut checks = Checks::new();
                for id in CheckId::all(layer).iter().filter(|id| *id != missing) {
                    checks.add(*id, true, "", "");
                }
                assert!(!checks.finish(layer).0, "{}", missing.name());
            }
            let mut all = Checks::new();
            for id in CheckId::all(layer) {
                all.add(*id, true, "", "");
            }
            assert!(all.finish(layer).0);
        }
        // Checks of another layer do not count.
        let mut checks = Checks::new();
        for id in CheckId::all(Layer::Shield) {
            checks.add(*id, true, "", "");
        }
        assert!(!checks.finish(Layer::Kernel).0);
    }

    #[test]
    fn a_failed_check_stays_failed() {
        let mut checks = Checks::new();
        checks.add(CheckId::Nonce, false, "a", "b");
        checks.add(CheckId::Nonce, true, "a", "a");
        assert!(!checks.passed(CheckId::Nonce));
    }

    #[test]
    fn texts() {
        assert_eq!(Text::prefix(&[0xab; 32]).to_string(), "abababababababab...");
        assert_eq!(Text::measured(&[0; 32], 7).to_string(), "0000000000000000... svn 7");
        assert_eq!(Text::from(7).to_string(), "7");
    }
}
