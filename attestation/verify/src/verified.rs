//! Evidence that passed every check. Only this crate makes these, and keys go to nothing else.

use shef_proto::cert::{Chain, UEID_LEN};
use shef_proto::close::{CloseError, CloseRecord};
use shef_proto::config::Config;
use shef_proto::entropy::Entropy;
use shef_proto::evidence::{Claims, Common, Layer, ShieldClaims, ShieldState};
use shef_proto::hpke_suite::PublicKey;
use shef_proto::load::{self, FirstEpoch, LoadError, SessionKeys};
use shef_proto::release::{ImageSecret, KeyBox, ReleaseError, ReleaseInfo};

/// Why no Load Key is made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadKeyError {
    /// The owner's configuration is not the Shield's.
    #[error("the owner's configuration is not the one that the Shield attests")]
    Config,
    /// The Shield is not waiting for a Load Key.
    #[error("the Shield is {state}, not fresh")]
    State {
        /// Its state.
        state: &'static str,
    },
    /// The message cannot be made.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl LoadKeyError {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config => "SHEF-ATT-060",
            Self::State { .. } => "SHEF-ATT-061",
            Self::Load(error) => error.code(),
        }
    }
}

/// Evidence of either layer that passed every check.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "made once for an appraisal, and unwrapped at once")]
pub enum Verified {
    /// Of a Security Kernel.
    Kernel(VerifiedKernelEvidence),
    /// Of a loaded Shield.
    Shield(VerifiedShieldEvidence),
}

impl Verified {
    /// The claims of both profiles.
    #[must_use]
    pub fn claims(&self) -> &Common {
        match self {
            Self::Kernel(evidence) => &evidence.common,
            Self::Shield(evidence) => &evidence.common,
        }
    }

    /// SHA-256 of the evidence.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        match self {
            Self::Kernel(evidence) => &evidence.digest,
            Self::Shield(evidence) => &evidence.digest,
        }
    }

    /// Which layer was appraised.
    #[must_use]
    pub fn layer(&self) -> Layer {
        match self {
            Self::Kernel(_) => Layer::Kernel,
            Self::Shield(_) => Layer::Shield,
        }
    }
}

/// Evidence of a Security Kernel that passed every check: image keys go to it.
#[derive(Clone, Debug)]
pub struct VerifiedKernelEvidence {
    common: Common,
    chain: Chain,
    digest: [u8; 32],
}

/// Evidence of a loaded Shield that passed every check: data keys go to it.
#[derive(Clone, Debug)]
pub struct VerifiedShieldEvidence {
    common: Common,
    shield: ShieldClaims,
    chain: Chain,
    digest: [u8; 32],
}

/// Makes verified evidence; private to the crate, called once, when every check has passed.
pub(crate) fn verified(claims: Claims, chain: Chain, digest: [u8; 32]) -> Verified {
    match claims {
        Claims { common, shield: None } => Verified::Kernel(VerifiedKernelEvidence { common, chain, digest }),
        Claims { common, shield: Some(shield) } => Verified::Shield(VerifiedShieldEvidence { common, shield, chain, digest }),
    }
}

impl VerifiedKernelEvidence {
    /// The claims.
    #[must_use]
    pub fn claims(&self) -> &Common {
        &self.common
    }

    /// Identity of the device.
    #[must_use]
    pub fn ueid(&self) -> &[u8; UEID_LEN] {
        &self.common.ueid
    }

    /// SHA-256 of the evidence.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The attestation key.
    #[must_use]
    pub fn attestation_key(&self) -> &PublicKey {
        &self.chain.ak
    }

    /// What a release to this kernel is bound to.
    #[must_use]
    pub fn release_info(&self, tenant: &str, key_id: &str, key_version: u64, receipt_id: [u8; 16]) -> ReleaseInfo {
        ReleaseInfo {
            tenant: tenant.into(),
            key_id: key_id.into(),
            key_version,
            layer: Layer::Kernel,
            evidence_digest: self.digest,
            nonce: self.common.nonce.clone(),
            recipient: self.common.key,
            receipt_id,
        }
    }

    /// Seals an image key to this kernel.
    ///
    /// # Errors
    /// Tenant or key id are too long.
    pub fn release_image_key(
        &self,
        tenant: &str,
        key_id: &str,
        key_version: u64,
        receipt_id: [u8; 16],
        secret: &ImageSecret,
        entropy: &mut dyn Entropy,
    ) -> Result<KeyBox, ReleaseError> {
        KeyBox::seal(&self.release_info(tenant, key_id, key_version, receipt_id), &secret.to_bytes(), entropy)
    }
}

impl VerifiedShieldEvidence {
    /// The claims of both profiles.
    #[must_use]
    pub fn claims(&self) -> &Common {
        &self.common
    }

    /// The claims about the Shield.
    #[must_use]
    pub fn shield(&self) -> &ShieldClaims {
        &self.shield
    }

    /// Identity of the device.
    #[must_use]
    pub fn ueid(&self) -> &[u8; UEID_LEN] {
        &self.common.ueid
    }

    /// SHA-256 of the evidence.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// The attestation key.
    #[must_use]
    pub fn attestation_key(&self) -> &PublicKey {
        &self.chain.ak
    }

    /// The Shield's public key: the Load Key is sealed to it.
    #[must_use]
    pub fn shield_key(&self) -> &PublicKey {
        &self.common.key
    }

    /// Digest of the Shield's configuration; the owner's own configuration must give the same.
    #[must_use]
    pub fn config_digest(&self) -> &[u8; 32] {
        &self.shield.config_digest
    }

    /// Life of the Shield's session.
    #[must_use]
    pub fn state(&self) -> &ShieldState {
        &self.shield.state
    }

    /// The owner's part of the Load Key message, bound to this evidence.
    #[must_use]
    pub fn load_info(&self, tenant: &str) -> load::Info {
        load::Info { tenant: tenant.as_bytes().to_vec(), evidence_digest: self.digest, nonce: self.common.nonce.clone() }
    }

    /// Makes the Load Key message for this Shield, and the session's keys.
    ///
    /// # Errors
    /// The owner's configuration is not the one of the evidence, the Shield has a session already, or the epochs do not fit.
    pub fn seal_load_key(
        &self,
        config: &Config,
        tenant: &str,
        epochs: &[FirstEpoch],
        entropy: &mut dyn Entropy,
    ) -> Result<(Vec<u8>, SessionKeys), LoadKeyError> {
        if config.digest() != self.shield.config_digest {
            return Err(LoadKeyError::Config);
        }
        if self.shield.state != ShieldState::Fresh {
            return Err(LoadKeyError::State { state: self.shield.state.name() });
        }
        let info = self.load_info(tenant).to_bytes()?;
        Ok(load::seal_load_key(config, &self.common.key, &info, epochs, entropy)?)
    }

    /// Verifies a close record of this device and image.
    ///
    /// # Errors
    /// Not a record signed by this device's attestation key.
    pub fn verify_close(&self, record: &[u8]) -> Result<CloseRecord, CloseError> {
        let record = CloseRecord::verify(record, &self.chain.ak)?;
        let same = record.ueid == self.common.ueid
            && record.image_digest == self.shield.image_digest
            && record.config_digest == self.shield.config_digest;
        if same { Ok(record) } else { Err(CloseError::Other) }
    }
}
