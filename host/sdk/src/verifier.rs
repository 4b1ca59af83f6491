//! The verifier's role inside a party: challenge, appraise, refuse.

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
    Appraisal, AppraisalPolicy, Policy, ReferenceValues, Request, Revocations, TrustAnchor,
    TrustAnchors, Verified, VerifiedKernelEvidence, VerifiedShieldEvidence, appraise_kernel,
    appraise_shield, floor,
};

use crate::SdkError;

/// Bytes of a nonce.
const NONCE: usize = 32;

/// A question that only fresh evidence answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    nonce: Vec<u8>,
    audience: String,
    /// When this program drew it, or asked for it.
    drawn: Option<Instant>,
}

impl Challenge {
    /// Draws a nonce for `audience`.
    pub fn draw(audience: &str, entropy: &mut dyn Entropy) -> Self {
        let mut nonce = vec![0; NONCE];
        entropy.fill(&mut nonce);
        Self { nonce, audience: audience.to_owned(), drawn: Some(Instant::now()) }
    }

    /// A challenge of somebody else's, or one that was drawn before: how old it is nobody knows.
    pub fn of(nonce: Vec<u8>, audience: String) -> Self {
        Self { nonce, audience, drawn: None }
    }

    /// A challenge that somebody else drew now, because this program asked for it at `asked`.
    #[cfg(feature = "service")]
    pub(crate) fn asked(nonce: Vec<u8>, audience: String, asked: Instant) -> Self {
        Self { nonce, audience, drawn: Some(asked) }
    }

    /// When it was drawn, by a clock that says `now`.
    pub(crate) fn drawn(&self, now: i64) -> Option<i64> {
        self.drawn.map(|drawn| {
            now.saturating_sub(i64::try_from(drawn.elapsed().as_secs()).unwrap_or(i64::MAX))
        })
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

/// What a party holds evidence against: anchors, reference values, policy. Whoever holds these is
/// the verifier; nothing here knows a device.
#[derive(Debug, Clone)]
pub struct Verifier {
    audience: String,
    anchors: TrustAnchors,
    reference: ReferenceValues,
    policy: AppraisalPolicy,
    revocations: Option<Revocations>,
    rego: Option<Evaluator>,
}

/// What evaluates a policy's part in Rego.
#[derive(Clone)]
struct Evaluator(Arc<dyn Evaluate + Send>);

impl fmt::Debug for Evaluator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Evaluator")
    }
}

impl Verifier {
    /// Puts the parts together. The policy is a [`Policy`], or an [`AppraisalPolicy`] with a part
    /// in Rego, which denies until [`with_rego`](Self::with_rego) says what evaluates it.
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

    /// With a list of what is no longer trusted, in place of the one before.
    #[must_use]
    pub fn with_revocations(mut self, revocations: Revocations) -> Self {
        self.revocations = Some(revocations);
        self
    }

    /// With what evaluates the policy's part in Rego: [`Unconfined`](shef_verify::rego::Unconfined)
    /// for a policy of the program's own, processes apart (crate `shef-rego`) for one of somebody
    /// else's.
    #[must_use]
    pub fn with_rego(mut self, evaluator: impl Evaluate + Send + 'static) -> Self {
        self.rego = Some(Evaluator(Arc::new(evaluator)));
        self
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

    fn request<'a>(
        &'a self,
        evidence: &'a [u8],
        challenge: &'a Challenge,
        layer: Layer,
        now: i64,
    ) -> Request<'a> {
        Request {
            revocations: self.revocations.as_ref(),
            challenged: challenge.drawn(now),
            rego: self.rego.as_ref().map(|rego| &*rego.0 as &dyn Evaluate),
            ..Request::new(
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

    /// Appraises evidence of the Shield, behind which must be what the owner expects.
    ///
    /// # Errors
    /// [`SdkError::Rejected`] with every check, and those of [`Expect::check`].
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
    /// The image with this digest, and no other.
    Image([u8; 32]),
    /// Any image of this accelerator.
    Accelerator(String),
}

/// What a data owner expects behind evidence, whoever appraises it: which program gets the data,
/// under which configuration of the Shield, and what no verifier service may go below.
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
    /// The image with this digest, and the configuration that it has.
    pub fn image(config: &Config, digest: &[u8; 32]) -> Self {
        Self::program(config, Program::Image(*digest))
    }

    /// Any image of this accelerator that `signer` signed (SHA-256 of the vendor's public key), and
    /// the configuration that it has.
    pub fn accelerator(config: &Config, name: &str, signer: &[u8; 32]) -> Self {
        Self::program(config, Program::Accelerator(name.to_owned())).signer(signer)
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

    /// The vendor who signed the image, by SHA-256 of the public key.
    #[must_use]
    pub fn signer(mut self, signer: &[u8; 32]) -> Self {
        self.signer = Some(*signer);
        self
    }

    /// What evidence must meet, whoever appraised it. Without one a verifier service is held to
    /// [`Policy::strict`] for hardware: no simulated, debug or seeded device, no unprotected
    /// region.
    #[must_use]
    pub fn floor(mut self, policy: Policy) -> Self {
        self.floor = Some(policy);
        self
    }

    /// What is no longer trusted, where a verifier service appraises.
    #[must_use]
    pub fn revocations(mut self, revocations: Revocations) -> Self {
        self.revocations = Some(revocations);
        self
    }

    /// The keys that may sign receipts of a verifier service. Without them its own list is
    /// believed.
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

    /// Whether verified evidence is of this program and configuration.
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

    /// The floor under what a verifier service says.
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
