//! The verifier's role inside a party: challenge, appraise, refuse.

use shef_proto::config::Config;
use shef_proto::entropy::Entropy;
use shef_proto::evidence::Layer;
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

    /// The nonce.
    pub fn nonce(&self) -> &[u8] {
        &self.nonce
    }

    /// For whom the evidence is made.
    pub fn audience(&self) -> &str {
        &self.audience
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
