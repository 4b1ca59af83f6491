//! The verifier's role inside a party: challenge, appraise, reject.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use shef_proto::config::Config;
use shef_proto::entropy::Entropy;
use shef_proto::evidence::Layer;
#[cfg(feature = "service")]
use shef_proto::evidence::RootOfTrust;
#[cfg(feature = "service")]
use shef_proto::hpke_suite::PublicKey;
use shef_proto::receipt::{Head, Receipt};
use shef_verify::rego::Evaluate;
use shef_verify::{
    Appraisal, AppraisalPolicy, AppraisalRequest, Policy, ReferenceValues, Revocations,
    TrustAnchor, TrustAnchors, Verified, VerifiedKernelEvidence, VerifiedShieldEvidence,
    appraise_kernel, appraise_shield, floor,
};

use crate::SdkError;

#[cfg(feature = "service")]
mod proxy;
#[cfg(feature = "service")]
pub mod service;
#[cfg(feature = "service")]
mod tcp;

/// Bytes of a nonce.
const NONCE: usize = 32;

/// A challenge that only fresh evidence answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    nonce: Vec<u8>,
    audience: String,
    /// When this program drew or requested it.
    drawn: Option<Instant>,
}

impl Challenge {
    /// Draws a nonce for `audience`.
    pub fn draw(audience: &str, entropy: &mut dyn Entropy) -> Self {
        let mut nonce = vec![0; NONCE];
        entropy.fill(&mut nonce);
        Self { nonce, audience: audience.to_owned(), drawn: Some(Instant::now()) }
    }

    /// A challenge from another party, or one that was drawn earlier: its age is unknown.
    pub fn of(nonce: Vec<u8>, audience: String) -> Self {
        Self { nonce, audience, drawn: None }
    }

    /// A challenge that another party has just drawn, because this program requested it at `asked`.
    #[cfg(feature = "service")]
    pub(crate) fn asked(nonce: Vec<u8>, audience: String, asked: Instant) -> Self {
        Self { nonce, audience, drawn: Some(asked) }
    }

    /// The time at which it was drawn, by a clock that reads `now`.
    pub(crate) fn drawn(&self, now: i64) -> Option<i64> {
        self.drawn.map(|drawn| {
            now.saturating_sub(i64::try_from(drawn.elapsed().as_secs()).unwrap_or(i64::MAX))
        })
    }

    /// The nonce.
    pub fn nonce(&self) -> &[u8] {
        &self.nonce
    }

    /// The audience of the evidence.
    pub fn audience(&self) -> &str {
        &self.audience
    }
}

/// Who appraised evidence, and the result.
#[derive(Debug, Clone)]
pub enum Appraised {
    /// This program, with these checks.
    Here(Appraisal),
    /// A verifier service, which released a key.
    ByService {
        /// Its receipt.
        receipt: Receipt,
        /// The head of its chain of receipts at that time.
        head: Head,
    },
}

impl fmt::Display for Appraised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here(appraisal) => write!(f, "{} checks passed", appraisal.checks.len()),
            Self::ByService { receipt, .. } => {
                write!(
                    f,
                    "the service released {} version {}, receipt {}",
                    receipt.key_id, receipt.key_version, receipt.seq
                )
            }
        }
    }
}

/// A party's basis for appraisal: anchors, reference values, policy. Holding these makes a party
/// the verifier; this type is independent of any device.
#[derive(Debug, Clone)]
pub struct Verifier {
    audience: String,
    anchors: TrustAnchors,
    reference: ReferenceValues,
    policy: AppraisalPolicy,
    revocations: Option<Revocations>,
    rego: Option<Evaluator>,
}

/// The evaluator of a policy's Rego part.
#[derive(Clone)]
struct Evaluator(Arc<dyn Evaluate + Send>);

impl fmt::Debug for Evaluator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Evaluator")
    }
}

impl Verifier {
    /// Combines the parts. The policy is a [`Policy`], or an [`AppraisalPolicy`] with a Rego part,
    /// which denies until [`with_rego`](Self::with_rego) sets an evaluator.
    pub fn new(
        audience: &str,
        anchors: Vec<TrustAnchor>,
        reference: ReferenceValues,
        policy: impl Into<AppraisalPolicy>,
    ) -> Self {
        Self {
            audience: audience.to_owned(),
            anchors: anchors.into(),
            reference,
            policy: policy.into(),
            revocations: None,
            rego: None,
        }
    }

    /// Sets a revocation list, in place of the previous one.
    #[must_use]
    pub fn with_revocations(mut self, revocations: Revocations) -> Self {
        self.revocations = Some(revocations);
        self
    }

    /// Sets the evaluator of the policy's Rego part: [`Unconfined`](shef_verify::rego::Unconfined)
    /// for the program's own policy, separate processes (crate `shef-rego`) for another party's.
    #[must_use]
    pub fn with_rego(mut self, evaluator: impl Evaluate + Send + 'static) -> Self {
        self.rego = Some(Evaluator(Arc::new(evaluator)));
        self
    }

    /// Audience of the evidence.
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

    fn request<'a>(
        &'a self,
        evidence: &'a [u8],
        challenge: &'a Challenge,
        layer: Layer,
        now: i64,
    ) -> AppraisalRequest<'a> {
        AppraisalRequest {
            revocations: self.revocations.as_ref(),
            challenged: challenge.drawn(now),
            rego: self.rego.as_ref().map(|rego| &*rego.0 as &dyn Evaluate),
            ..AppraisalRequest::new(
                evidence,
                &self.anchors,
                &self.reference,
                &self.policy,
                layer,
                &challenge.nonce,
                &challenge.audience,
                now,
            )
        }
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
        appraise_kernel(&self.request(evidence, challenge, Layer::Kernel, now))
            .map_err(|appraisal| SdkError::Rejected { appraisal })
    }

    /// Appraises evidence of the Shield, which must meet the owner's expectations.
    ///
    /// # Errors
    /// [`SdkError::Rejected`] with every check, and as [`Expect::check`].
    pub fn appraise_shield(
        &self,
        evidence: &[u8],
        challenge: &Challenge,
        expect: &Expect,
        now: i64,
    ) -> Result<(VerifiedShieldEvidence, Appraisal), SdkError> {
        let (verified, appraisal) =
            appraise_shield(&self.request(evidence, challenge, Layer::Shield, now))
                .map_err(|appraisal| SdkError::Rejected { appraisal })?;
        expect.check(&verified)?;
        if let Some(policy) = &expect.floor {
            expect.hold(policy, &verified, challenge, now)?;
        }
        Ok((verified, appraisal))
    }
}

/// The program that may have the data.
#[derive(Debug, Clone)]
enum Program {
    /// Exactly the image with this digest.
    Image([u8; 32]),
    /// Any image of this accelerator.
    Accelerator(String),
    /// Any image of the design with this digest.
    Design([u8; 32]),
}

/// The data owner's expectations of evidence, independent of the appraiser: the program that gets
/// the data, the configuration of the Shield, and a floor that no verifier service may go below.
#[derive(Debug, Clone)]
pub struct Expect {
    config: Config,
    program: Program,
    signer: Option<[u8; 32]>,
    floor: Option<Policy>,
    revocations: Option<Revocations>,
    #[cfg(feature = "service")]
    receipt_keys: Vec<PublicKey>,
}

impl Expect {
    /// The image with this digest, and its configuration.
    pub fn image(config: &Config, digest: &[u8; 32]) -> Self {
        Self::program(config, Program::Image(*digest))
    }

    /// Any image of this accelerator that `signer` signed (SHA-256 of the vendor's public key), and
    /// its configuration.
    pub fn accelerator(config: &Config, name: &str, signer: &[u8; 32]) -> Self {
        Self::program(config, Program::Accelerator(name.to_owned())).signer(signer)
    }

    /// Any image of the design with this digest, and its configuration. The digest in evidence is
    /// the word of the image's signer, whom the appraiser must trust.
    pub fn design(config: &Config, digest: &[u8; 32]) -> Self {
        Self::program(config, Program::Design(*digest))
    }

    fn program(config: &Config, program: Program) -> Self {
        Self {
            config: config.clone(),
            program,
            signer: None,
            floor: None,
            revocations: None,
            #[cfg(feature = "service")]
            receipt_keys: Vec::new(),
        }
    }

    /// The signer of the image, as SHA-256 of the vendor's public key.
    #[must_use]
    pub fn signer(mut self, signer: &[u8; 32]) -> Self {
        self.signer = Some(*signer);
        self
    }

    /// Minimum policy for evidence, independent of the appraiser. By default a verifier service is
    /// held to [`Policy::strict`] for hardware: no simulated, debug or seeded device, no unmeasured
    /// noise source, no unprotected region.
    #[must_use]
    pub fn floor(mut self, policy: Policy) -> Self {
        self.floor = Some(policy);
        self
    }

    /// Revocation list that applies if a verifier service appraises.
    #[must_use]
    pub fn revocations(mut self, revocations: Revocations) -> Self {
        self.revocations = Some(revocations);
        self
    }

    /// The keys that may sign receipts of a verifier service. Without them the service's own list
    /// is trusted.
    #[cfg(feature = "service")]
    #[must_use]
    pub fn receipt_keys(mut self, keys: Vec<PublicKey>) -> Self {
        self.receipt_keys = keys;
        self
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    #[cfg(feature = "service")]
    pub(crate) fn pinned(&self) -> &[PublicKey] {
        &self.receipt_keys
    }

    /// Checks that verified evidence is of this program and configuration.
    ///
    /// # Errors
    /// [`SdkError::OtherConfig`], [`SdkError::OtherProgram`].
    pub fn check(&self, verified: &VerifiedShieldEvidence) -> Result<(), SdkError> {
        let shield = verified.shield();
        let hex =
            |digest: &[u8; 32]| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let other = |what, expected, found| Err(SdkError::OtherProgram { what, expected, found });
        match &self.program {
            Program::Image(digest) if *digest != shield.image_digest => {
                return other("image", hex(digest), hex(&shield.image_digest));
            }
            Program::Accelerator(name) if *name != shield.accelerator => {
                return other("accelerator", name.clone(), shield.accelerator.clone());
            }
            Program::Design(digest) if *digest != shield.design_digest => {
                return other("design", hex(digest), hex(&shield.design_digest));
            }
            _ => {}
        }
        match &self.signer {
            Some(signer) if *signer != shield.vendor => {
                other("signer", hex(signer), hex(&shield.vendor))
            }
            _ if *verified.config_digest() != self.config.digest() => Err(SdkError::OtherConfig {
                expected: hex(&self.config.digest()),
                found: hex(verified.config_digest()),
            }),
            _ => Ok(()),
        }
    }

    /// The floor that applies to a verifier service's appraisal.
    #[cfg(feature = "service")]
    pub(crate) fn hold_service(
        &self,
        verified: &VerifiedShieldEvidence,
        challenge: &Challenge,
        now: i64,
    ) -> Result<(), SdkError> {
        const HARDWARE: &[RootOfTrust] =
            &[RootOfTrust::ShefBoot, RootOfTrust::Board, RootOfTrust::Provider];
        let strict = Policy::strict("floor for hardware", HARDWARE);
        self.hold(self.floor.as_ref().unwrap_or(&strict), verified, challenge, now)
    }

    fn hold(
        &self,
        policy: &Policy,
        verified: &VerifiedShieldEvidence,
        challenge: &Challenge,
        now: i64,
    ) -> Result<(), SdkError> {
        floor(
            policy,
            &Verified::Shield(verified.clone()),
            self.revocations.as_ref(),
            challenge.drawn(now),
            now,
        )
        .map_err(|appraisal| SdkError::Rejected { appraisal })
    }
}
