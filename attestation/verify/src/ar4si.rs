//! AR4SI trustworthiness claims (draft-ietf-rats-ar4si) in attestation results.

use serde::ser::{Serialize, SerializeMap, Serializer};
use shef_proto::evidence::{Claims, EntropySource, Layer, RootOfTrust};

use crate::checks::{Check, CheckId};

/// The verifier itself failed.
pub const MALFUNCTION: i8 = -1;
/// Evidence of another kind than requested.
pub const UNEXPECTED_EVIDENCE: i8 = 1;
/// Evidence that is not authentic, or does not answer the challenge.
pub const CRYPTO_FAILED: i8 = 99;
/// Claim `hardware`: a cloud provider loaded the image, and no hardware proves itself. AR4SI leaves
/// -2 to -32 to verifiers, for affirming values.
pub const PROVIDER_LOADS: i8 = -2;

/// Overall result: the tier of the worst claim, and at best contraindicated for denied evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// Undecided: evidence of another kind than requested, or a verifier failure. Not accepted.
    None = 0,
    /// Every check passed.
    Affirming = 2,
    /// Every check passed, with an exception in the policy: simulated, debug, seeded, unmeasured
    /// noise, or an unprotected region.
    Warning = 32,
    /// At least one check failed.
    Contraindicated = 96,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::None, Self::Affirming, Self::Warning, Self::Contraindicated];

    /// Name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Affirming => "affirming",
            Self::Warning => "warning",
            Self::Contraindicated => "contraindicated",
        }
    }

    /// The tier of a claim's value.
    #[must_use]
    pub fn of_claim(value: i8) -> Self {
        match value {
            -1..=1 => Self::None,
            -32..=-2 | 2..=31 => Self::Affirming,
            -96..=-33 | 32..=95 => Self::Warning,
            _ => Self::Contraindicated,
        }
    }

    /// The status with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Names of the claims, in the order of their numbers.
pub const CLAIM_NAMES: [&str; 8] = [
    "instance-identity",
    "configuration",
    "executables",
    "file-system",
    "hardware",
    "runtime-opaque",
    "storage-opaque",
    "sourced-data",
];

const INSTANCE: usize = 0;
const CONFIGURATION: usize = 1;
const EXECUTABLES: usize = 2;
const HARDWARE: usize = 4;
const RUNTIME: usize = 5;
const STORAGE: usize = 6;

/// The trustworthiness vector: one value per entry of [`CLAIM_NAMES`], 0 for no claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrustVector(pub [i8; 8]);

impl TrustVector {
    /// The claim with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<i8> {
        CLAIM_NAMES.iter().position(|known| *known == name).map(|at| self.0[at])
    }

    /// The non-zero claims, by name.
    pub fn claims(&self) -> impl Iterator<Item = (&'static str, i8)> + '_ {
        CLAIM_NAMES.iter().copied().zip(self.0).filter(|(_, value)| *value != 0)
    }

    fn worse(&mut self, at: usize, value: i8) {
        self.0[at] = self.0[at].max(value);
    }
}

impl Serialize for TrustVector {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.claims() {
            map.serialize_entry(name, &value)?;
        }
        map.end()
    }
}

/// The meaning of a failed check: a claim and its value. `None` stands for the whole vector.
fn meaning(id: CheckId) -> (Option<usize>, i8) {
    use CheckId as C;
    match id {
        C::Framing
        | C::Claims
        | C::Nonce
        | C::Audience
        | C::Age
        | C::Certificates
        | C::Chain
        | C::Signature => (None, CRYPTO_FAILED),
        C::Profile => (None, UNEXPECTED_EVIDENCE),
        C::Anchor => (Some(HARDWARE), 97),
        C::AnchorKind | C::RootOfTrust => (Some(HARDWARE), 96),
        C::Target => (Some(HARDWARE), 97),
        C::KernelSvn => (Some(HARDWARE), 32),
        C::Ueid | C::Key | C::Revocation => (Some(INSTANCE), 96),
        C::Device => (Some(INSTANCE), 97),
        C::Measured => (Some(EXECUTABLES), 96),
        C::Kernel | C::Shell | C::Image | C::Design => (Some(EXECUTABLES), 33),
        C::ImageSvn => (Some(EXECUTABLES), 32),
        C::ImageSigner => (Some(EXECUTABLES), 96),
        C::DebugConsistent | C::Debug | C::Seeded | C::Entropy | C::Config | C::Rego => {
            (Some(CONFIGURATION), 96)
        }
        C::OnFault | C::State => (Some(CONFIGURATION), 32),
        C::Bypass => (Some(RUNTIME), 96),
    }
}

/// The vector and status that follow from the checks; `malfunction` if the verifier itself failed.
pub(crate) fn derive(
    layer: Layer,
    claims: Option<&Claims>,
    checks: &[Check],
    accepted: bool,
    malfunction: bool,
) -> (TrustVector, Status) {
    let shield = layer == Layer::Shield;
    let opaque = if shield { 2 } else { 0 };
    let mut vector = TrustVector([2, 2, if shield { 2 } else { 3 }, 0, 2, opaque, opaque, 0]);
    if let Some(claims) = claims {
        let c = &claims.common;
        match c.root_of_trust {
            RootOfTrust::Simulated => vector.worse(HARDWARE, 32),
            RootOfTrust::Provider => {
                // All cards that run the image have one identity.
                vector.0[INSTANCE] = 0;
                vector.0[HARDWARE] = PROVIDER_LOADS;
            }
            RootOfTrust::ShefBoot | RootOfTrust::Board => {}
        }
        if c.entropy != EntropySource::Tested || !c.debug.is_safe() {
            vector.worse(CONFIGURATION, 32);
        }
        if claims.shield.as_ref().is_some_and(|shield| !shield.bypass.is_empty()) {
            vector.worse(RUNTIME, 32);
        }
    }
    let all = |vector: &mut TrustVector, value: i8| {
        for at in [INSTANCE, CONFIGURATION, EXECUTABLES, HARDWARE, RUNTIME, STORAGE] {
            vector.0[at] = value;
        }
    };
    let failed =
        |id: CheckId| checks.iter().any(|check| check.id == id && check.reached && !check.passed);
    if malfunction {
        all(&mut vector, MALFUNCTION);
    } else if failed(CheckId::Profile) {
        all(&mut vector, UNEXPECTED_EVIDENCE);
    } else {
        for check in checks.iter().filter(|check| check.reached && !check.passed) {
            match meaning(check.id) {
                (Some(at), value) => vector.worse(at, value),
                (None, value) => all(&mut vector, value),
            }
        }
        if failed(CheckId::Anchor) {
            // No known authority vouches for any of it.
            all(&mut vector, CRYPTO_FAILED);
            vector.0[INSTANCE] = 97;
            vector.0[HARDWARE] = 97;
        } else if !accepted
            && !checks.iter().any(|check| check.id == CheckId::Signature && check.passed)
        {
            all(&mut vector, CRYPTO_FAILED);
        }
    }
    let status = if accepted {
        if vector.0.iter().any(|value| *value >= 32) { Status::Warning } else { Status::Affirming }
    } else if malfunction || failed(CheckId::Profile) {
        Status::None
    } else {
        Status::Contraindicated
    };
    (vector, status)
}
