//! Evidence that passed every check, here or at a verifier service that says so in a signed
//! receipt. Only this crate constructs it, and keys go to nothing else.

use sha2::{Digest, Sha256};
use shef_proto::cert::{CertError, Certificate, UEID_LEN};
use shef_proto::close::{CloseError, CloseRecord};
use shef_proto::config::Config;
use shef_proto::cose::CoseError;
use shef_proto::entropy::Entropy;
use shef_proto::evidence::{
    Claims, Common, Evidence, EvidenceError, Layer, ShieldClaims, ShieldState,
};
use shef_proto::hpke_suite::PublicKey;
use shef_proto::load::{self, FirstEpoch, LoadError, MASTER_LEN, SessionKeys};
use shef_proto::receipt::Receipt;
use shef_proto::release::{ImageSecret, KeyBox, ReleaseError, ReleaseInfo};
use zeroize::Zeroizing;

shef_proto::coded! {
    /// Why no Load Key message is made.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum LoadKeyError {
        /// The message cannot be made.
        #[error(transparent)]
        Load(#[from] LoadError) => (error) error.code(),
        /// The owner's configuration differs from the Shield's.
        #[error("the owner's configuration is not the one that the Shield attests")]
        Config = "SHEF-ATT-060": "owner and Shield have different configurations",
            "The digest of the owner's configuration is not the one in the evidence: seal nothing. Take the shield.toml that the image was \
             built from.",
        /// The Shield is not waiting for a Load Key.
        #[error("the Shield is {state}, not fresh")]
        State {
            /// Its state.
            state: &'static str,
        } = "SHEF-ATT-061": "Shield is not waiting for a Load Key",
            "A Load Key goes to a fresh Shield only. Ask the kernel for a new session and for new evidence.",
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

    /// The appraised layer.
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
    ak: PublicKey,
    digest: [u8; 32],
}

/// Evidence of a loaded Shield that passed every check: data keys go to it.
///
/// Only an appraisal constructs it:
///
/// ```compile_fail,E0451
/// use shef_verify::VerifiedShieldEvidence;
/// fn forged(real: VerifiedShieldEvidence) -> VerifiedShieldEvidence {
///     VerifiedShieldEvidence { digest: [0; 32], ..real }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct VerifiedShieldEvidence {
    common: Common,
    shield: ShieldClaims,
    ak: PublicKey,
    digest: [u8; 32],
}

/// Constructs verified evidence. Private to the crate; called after every check has passed, or for
/// evidence that a verifier service vouches for.
pub(crate) fn verified(claims: Claims, ak: PublicKey, digest: [u8; 32]) -> Verified {
    match claims {
        Claims { common, shield: None } => {
            Verified::Kernel(VerifiedKernelEvidence { common, ak, digest })
        }
        Claims { common, shield: Some(shield) } => {
            Verified::Shield(VerifiedShieldEvidence { common, shield, ak, digest })
        }
    }
}

shef_proto::coded! {
    /// Why a receipt does not vouch for evidence.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum VouchError {
        /// The evidence cannot be read, or its signature is not by the accompanying key.
        #[error(transparent)]
        Evidence(#[from] EvidenceError) => (error) error.code(),
        /// The certificate of the attestation key, which must accompany the evidence.
        #[error("certificate of the attestation key: {0}")]
        Certificate(#[from] CertError) => (error) error.code(),
        /// The receipt is not from this verifier.
        #[error("the receipt is not signed by a key of the verifier service: {0}")]
        Receipt(CoseError) = "SHEF-PRO-090",
        /// The receipt is for something else.
        #[error("the receipt is of another {what}")]
        Other {
            /// The field that differs.
            what: &'static str,
        } = "SHEF-ATT-062": "receipt vouches for something else",
            "The verifier service's receipt is not of this evidence, challenge, key and recipient: an answer was exchanged on its way, or \
             is an old one. Ask for a new session.",
    }
}

/// Required contents of a receipt that vouches for evidence.
#[derive(Clone, Copy, Debug)]
pub struct Vouched<'a> {
    /// Keys that sign the verifier service's receipts.
    pub keys: &'a [PublicKey],
    /// The requested layer.
    pub layer: Layer,
    /// Nonce of the challenge.
    pub nonce: &'a [u8],
    /// Name of the requested key.
    pub key_id: &'a str,
    /// The intended recipient of the key; `None` stands for the key in the evidence.
    pub recipient: Option<&'a PublicKey>,
}

impl Vouched<'_> {
    /// Accepts evidence on the word of a verifier service, which appraised exactly these bytes and
    /// released a key for them. The caller trusts the holder of `keys` like its own appraisal:
    /// nothing else about the device is checked.
    ///
    /// # Errors
    /// The receipt is for another service, layer, evidence, challenge, key, recipient or device, or
    /// the evidence is damaged.
    pub fn verified(
        &self,
        evidence: &[u8],
        receipt: &[u8],
    ) -> Result<(Verified, Receipt), VouchError> {
        let receipt = Receipt::verify(receipt, self.keys).map_err(VouchError::Receipt)?;
        let evidence = Evidence::parse(evidence)?;
        let claims = &evidence.unverified_claims().common;
        let recipient = self.recipient.unwrap_or(&claims.key);
        for (same, what) in [
            (receipt.layer == self.layer && evidence.layer() == self.layer, "layer"),
            (receipt.evidence_digest == evidence.digest(), "evidence"),
            (claims.nonce == self.nonce, "challenge"),
            (receipt.key_id == self.key_id, "key"),
            (
                receipt.recipient_digest == <[u8; 32]>::from(Sha256::digest(recipient.as_bytes())),
                "recipient",
            ),
            (receipt.ueid == claims.ueid, "device"),
        ] {
            if !same {
                return Err(VouchError::Other { what });
            }
        }
        let leaf = evidence
            .x5chain()
            .first()
            .ok_or(VouchError::Other { what: "form: no certificate came with the evidence" })?;
        let ak = *Certificate::parse(leaf)?.key();
        evidence.verify(&ak).map_err(EvidenceError::from)?;
        let digest = evidence.digest();
        Ok((verified(evidence.into_unverified_claims(), ak, digest), receipt))
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
        &self.ak
    }

    /// The binding of a release to this kernel.
    #[must_use]
    pub fn release_info(
        &self,
        tenant: &str,
        key_id: &str,
        key_version: u64,
        receipt_id: [u8; 16],
    ) -> ReleaseInfo {
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
    /// The tenant or key id is too long.
    pub fn release_image_key(
        &self,
        tenant: &str,
        key_id: &str,
        key_version: u64,
        receipt_id: [u8; 16],
        secret: &ImageSecret,
        entropy: &mut dyn Entropy,
    ) -> Result<KeyBox, ReleaseError> {
        KeyBox::seal(
            &self.release_info(tenant, key_id, key_version, receipt_id),
            &secret.to_bytes(),
            entropy,
        )
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
        &self.ak
    }

    /// The Shield's public key: the Load Key is sealed to it.
    #[must_use]
    pub fn shield_key(&self) -> &PublicKey {
        &self.common.key
    }

    /// Digest of the Shield's configuration; the owner's own configuration must have the same.
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
        load::Info {
            tenant: tenant.as_bytes().to_vec(),
            evidence_digest: self.digest,
            nonce: self.common.nonce.clone(),
        }
    }

    /// Makes the Load Key message for this Shield, and the session's keys.
    ///
    /// # Errors
    /// The owner's configuration differs from the evidence, the Shield already has a session, or
    /// the epochs do not fit.
    pub fn seal_load_key(
        &self,
        config: &Config,
        tenant: &str,
        epochs: &[FirstEpoch],
        entropy: &mut dyn Entropy,
    ) -> Result<(Vec<u8>, SessionKeys), LoadKeyError> {
        let mut master = Zeroizing::new([0; MASTER_LEN]);
        entropy.fill(&mut master[..]);
        self.seal_load_key_of(&master, config, tenant, epochs, entropy)
    }

    /// The same under an existing master key, such as one that a verifier service released for this
    /// evidence. The session's keys are still unique to this session: they depend on the message.
    ///
    /// # Errors
    /// As [`VerifiedShieldEvidence::seal_load_key`].
    pub fn seal_load_key_of(
        &self,
        master: &[u8; MASTER_LEN],
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
        Ok(load::seal_load_key_of(master, config, &self.common.key, &info, epochs, entropy)?)
    }

    /// Verifies a close record of this device and image.
    ///
    /// # Errors
    /// Not a record signed by this device's attestation key.
    pub fn verify_close(&self, record: &[u8]) -> Result<CloseRecord, CloseError> {
        let record = CloseRecord::verify(record, &self.ak)?;
        let same = record.ueid == self.common.ueid
            && record.image_digest == self.shield.image_digest
            && record.config_digest == self.shield.config_digest;
        if same { Ok(record) } else { Err(CloseError::Other) }
    }
}
