//! The verifier's role inside a party: challenge, appraise, refuse.

use shef_proto::config::Config;
use shef_proto::entropy::Entropy;
use shef_proto::evidence::Layer;
use shef_proto::receipt::{Head, Receipt};
use shef_verify::{
    Appraisal, AppraisalPolicy, Policy, ReferenceValues, Request, TrustAnchor, TrustAnchors, VerifiedKernelEvidence,
    VerifiedShieldEvidence, appraise_kernel, appraise_shield,
};

use crate::SdkError;

/// Bytes of a nonce.
const NONCE: usize = 32;

/// A question that only fresh evidence answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    nonce: Vec<u8>,
    audience: String,
}

impl Challenge {
    /// Draws a nonce for `audience`.
    pub fn draw(audience: &str, entropy: &mut dyn Entropy) -> Self {
        let mut nonce = vec![0; NONCE];
        entropy.fill(&mut nonce);
        Self { nonce, audience: audience.to_owned() }
    }

    /// A challenge of somebody else's, as a verifier service's, or one that was drawn before.
    pub fn of(nonce: Vec<u8>, audience: String) -> Self {
        Self { nonce, audience }
    }

    /// The nonce.
    pub fn nonce(&self) -> &[u8] {
        &self.nonce
    }

    /// For whom the evidence is made.
    pub fn audience(&self) -> &str {
        &self.audience
    }
}

/// Who appraised evidence, and what came out.
#[derive(Debug, Clone)]
pub enum Appraised {
    /// This program, with these checks.
    Here(Appraisal),
    /// A verifier service, which released a key.
    ByService {
        /// Its receipt.
        receipt: Receipt,
        /// The head of its chain of receipts then.
        head: Head,
    },
}

impl std::fmt::Display for Appraised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Here(appraisal) => write!(f, "{} checks passed", appraisal.checks.len()),
            Self::ByService { receipt, .. } => {
                write!(f, "the service released {} version {}, receipt {}", receipt.key_id, receipt.key_version, receipt.seq)
            }
        }
    }
}

/// What a party holds evidence against: anchors, reference values, policy. Whoever holds these is the verifier; nothing here knows a device.
#[derive(Debug, Clone)]
pub struct Verifier {
    audience: String,
    anchors: TrustAnchors,
    reference: ReferenceValues,
    policy: AppraisalPolicy,
}

impl Verifier {
    /// Puts the parts together.
    pub fn new(audience: &str, anchors: Vec<TrustAnchor>, reference: ReferenceValues, policy: Policy) -> Self {
        Self { audience: audience.to_owned(), anchors: anchors.into(), reference, policy: AppraisalPolicy::new(policy) }
    }

    /// Name under which evidence is asked for.
    pub fn audience(&self) -> &str {
        &self.audience
    }

    /// The trust anchors.
    pub fn anchors(&self) -> &[TrustAnchor] {
        self.anchors.list()
    }

    /// The reference values.
    pub fn reference(&self) -> &ReferenceValues {
        &self.reference
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        self.policy.typed()
    }

    fn request<'a>(&'a self, evidence: &'a [u8], challenge: &'a Challenge, layer: Layer, now: i64) -> Request<'a> {
        Request::new(evidence, &self.anchors, &self.reference, &self.policy, layer, &challenge.nonce, &challenge.audience, now)
    }

    /// Appraises evidence of the kernel.
    ///
    /// # Errors
    /// [`SdkError::Rejected`] with every check.
    pub fn appraise_kernel(
        &self,
        evidence: &[u8],
        challenge: &Challenge,
        now: i64,
    ) -> Result<(VerifiedKernelEvidence, Appraisal), SdkError> {
        appraise_kernel(&self.request(evidence, challenge, Layer::Kernel, now)).map_err(|appraisal| SdkError::Rejected { appraisal })
    }

    /// Appraises evidence of the Shield, whose configuration must be `config`.
    ///
    /// # Errors
    /// [`SdkError::Rejected`] with every check, [`SdkError::OtherConfig`].
    pub fn appraise_shield(
        &self,
        evidence: &[u8],
        challenge: &Challenge,
        config: &Config,
        now: i64,
    ) -> Result<(VerifiedShieldEvidence, Appraisal), SdkError> {
        let (verified, appraisal) = appraise_shield(&self.request(evidence, challenge, Layer::Shield, now))
            .map_err(|appraisal| SdkError::Rejected { appraisal })?;
        if *verified.config_digest() != config.digest() {
            return Err(SdkError::OtherConfig);
        }
        Ok((verified, appraisal))
    }
}
