//! The appraisal: one list of checks, all of which must pass.

use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest, Sha256};
use shef_proto::cert::{self, CertError, Certificate, Chain};
use shef_proto::cose::{CoseError, VerifyFn};
use shef_proto::evidence::{
    AcceptedEntropy, Claims, DebugState, EntropySource, Evidence, EvidenceError, Layer,
    RootOfTrust, ShieldClaims,
};
use shef_proto::hpke_suite::PublicKey;
use subtle::ConstantTimeEq;

use crate::ar4si::{self, Status, TrustVector};
use crate::chain::{ChainCache, ChainKey, TrustAnchors, VerifiedChain};
use crate::checks::{Check, CheckId, Checks, Text};
use crate::policy::{AppraisalPolicy, Policy};
use crate::reference::{
    ImageReference, KernelReference, ReferenceValues, ShellReference, TrustAnchor,
};
use crate::rego::{Evaluate, RegoError};
use crate::revocation::{Revocations, Subject};
use crate::verified::{Verified, VerifiedKernelEvidence, VerifiedShieldEvidence, verified};

/// The evidence of a request.
#[derive(Clone, Copy, Debug)]
pub enum EvidenceSource<'a> {
    /// As received.
    Bytes(&'a [u8]),
    /// The result of [`Evidence::parse`], for a caller that must identify the device first.
    Read(&'a Result<Evidence, EvidenceError>),
}

impl<'a> From<&'a [u8]> for EvidenceSource<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a Vec<u8>> for EvidenceSource<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a> From<&'a Result<Evidence, EvidenceError>> for EvidenceSource<'a> {
    fn from(read: &'a Result<Evidence, EvidenceError>) -> Self {
        Self::Read(read)
    }
}

/// Input of an appraisal. The result depends on nothing else.
#[derive(Clone, Copy)]
pub struct AppraisalRequest<'a> {
    /// The evidence.
    pub evidence: EvidenceSource<'a>,
    /// Certificates sent beside the evidence, leaf first; empty if they are inside it. If both are
    /// present they must be equal.
    pub certificates: &'a [Vec<u8>],
    /// Roots, each registered for one kind of root of trust.
    pub anchors: &'a TrustAnchors,
    /// Known measurements.
    pub reference: &'a ReferenceValues,
    /// The demands.
    pub policy: &'a AppraisalPolicy,
    /// The revocation list, if any.
    pub revocations: Option<&'a Revocations>,
    /// The expected layer: image keys go to the kernel, data keys to the Shield.
    pub layer: Layer,
    /// The nonce of this challenge.
    pub nonce: &'a [u8],
    /// The audience of this challenge.
    pub audience: &'a str,
    /// Time of the challenge, seconds since 1970; a policy with `max_age` requires it.
    pub challenged: Option<i64>,
    /// Seconds since 1970.
    pub now: i64,
    /// The verifier's own keys (for results and for TLS): evidence that vouches for one of them is
    /// refused.
    pub own_keys: &'a [PublicKey],
    /// The highest security version that a known kernel of this device has shown, if the verifier
    /// remembers it, else 0. A lower version is a rollback, whatever the policy's minimum is.
    pub shown_svn: u64,
    /// Cached verified chains, if any. They affect the duration of an appraisal, never its result.
    pub chains: Option<&'a dyn ChainCache>,
    /// Implementation of ECDSA verification.
    pub verify: VerifyFn,
    /// Evaluator of Rego policies; without one, a policy with a Rego part denies.
    pub rego: Option<&'a dyn Evaluate>,
}

impl<'a> AppraisalRequest<'a> {
    /// A request with the portable crypto, and without separate certificates, revocation list,
    /// challenge time, cache or Rego.
    #[must_use]
    #[expect(
        clippy::too_many_arguments,
        reason = "each is needed, and all are of different types or meaning"
    )]
    pub fn new(
        evidence: impl Into<EvidenceSource<'a>>,
        anchors: &'a TrustAnchors,
        reference: &'a ReferenceValues,
        policy: &'a AppraisalPolicy,
        layer: Layer,
        nonce: &'a [u8],
        audience: &'a str,
        now: i64,
    ) -> Self {
        Self {
            evidence: evidence.into(),
            certificates: &[],
            anchors,
            reference,
            policy,
            revocations: None,
            layer,
            nonce,
            audience,
            challenged: None,
            now,
            own_keys: &[],
            shown_svn: 0,
            chains: None,
            verify: crate::crypto::portable,
            rego: None,
        }
    }
}

/// The verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every check passed.
    Accepted,
    /// At least one check failed.
    Denied,
}

/// The checks and the verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Appraisal {
    /// The verdict.
    pub verdict: Verdict,
    /// The expected layer.
    pub layer: &'static str,
    /// Name of the policy.
    pub policy: String,
    /// Ids of the policy's texts: SHA-256 of the typed part, and of the Rego part if there is one.
    pub policy_ids: Vec<String>,
    /// Overall result.
    pub status: Status,
    /// AR4SI trustworthiness vector, derived from the checks.
    pub vector: TrustVector,
    /// The trust anchor of the chain.
    pub anchor: Option<String>,
    /// Caveats of an accepted appraisal: the exceptions that the policy made.
    pub warnings: Vec<String>,
    /// Every check, in order.
    pub checks: Vec<Check>,
}

impl Appraisal {
    /// True if every check passed.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.verdict == Verdict::Accepted
    }

    /// The first check that ran and failed: the main reason of a denial.
    #[must_use]
    pub fn first_failure(&self) -> Option<&Check> {
        let made = self.checks.iter().find(|check| check.reached && !check.passed);
        made.or_else(|| self.checks.iter().find(|check| !check.passed))
    }

    /// The result of one check.
    #[must_use]
    pub fn check(&self, id: CheckId) -> Option<&Check> {
        self.checks.iter().find(|check| check.id == id)
    }

    /// The appraisal as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// An appraisal, and the evidence that it verified.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The appraisal.
    pub appraisal: Appraisal,
    /// The evidence, if every check passed.
    pub verified: Option<Verified>,
}

fn names<'a>(list: impl IntoIterator<Item = &'a String>) -> Text {
    const MOST: usize = 8;
    let mut text = String::new();
    for (at, name) in list.into_iter().enumerate() {
        if at == MOST {
            text.push_str(", ...");
            break;
        }
        if at > 0 {
            text.push_str(", ");
        }
        text.push_str(name);
    }
    if text.is_empty() { Text::Static("none") } else { text.into() }
}

/// A list of accepted names in the report of a check: the whole list if it failed, a short form if
/// it passed.
fn one_of<'a>(passed: bool, list: impl IntoIterator<Item = &'a String>) -> Text {
    if passed { Text::Static("one that the policy names") } else { names(list) }
}

/// Appraises evidence. Deny by default: the evidence is verified only if every check of the layer
/// passed.
#[must_use]
pub fn appraise(request: &AppraisalRequest<'_>) -> Outcome {
    let parsed;
    let read = match request.evidence {
        EvidenceSource::Bytes(bytes) => {
            parsed = Evidence::parse(bytes);
            &parsed
        }
        EvidenceSource::Read(read) => read,
    };
    let mut run = Run { request, checks: Checks::new(), anchor: None, malfunction: false };
    let evidence = run.framing(read.as_ref());
    let chain = evidence.and_then(|evidence| run.appraise(evidence));
    let Run { checks, anchor, malfunction, .. } = run;
    let (accepted, list) = checks.finish(request.layer);
    let claims = evidence.map(Evidence::unverified_claims);
    let accepted = accepted && chain.is_some() && !malfunction;
    let (vector, status) = ar4si::derive(request.layer, claims, &list, accepted, malfunction);
    let verified = match (evidence, chain) {
        (Some(evidence), Some(chain)) if accepted => {
            Some(verified(evidence.unverified_claims().clone(), chain.chain.ak, evidence.digest()))
        }
        _ => None,
    };
    let mut warnings = Vec::new();
    if let Some(verified) = &verified {
        let c = verified.claims();
        for (applies, text) in [
            (
                c.root_of_trust == RootOfTrust::Simulated,
                "the device is simulated: it protects nothing",
            ),
            (!c.debug.is_safe(), "the device is in debug mode: it protects nothing"),
            (
                c.entropy == EntropySource::Seeded,
                "the device draws from a test's seed: its keys are known to whoever knows the seed",
            ),
            (
                c.entropy == EntropySource::Unmeasured,
                "the min-entropy of the device's noise source was never measured: its keys may be predictable",
            ),
        ] {
            if applies {
                warnings.push(text.into());
            }
        }
    }
    let appraisal = Appraisal {
        verdict: if verified.is_some() { Verdict::Accepted } else { Verdict::Denied },
        layer: request.layer.name(),
        policy: request.policy.typed().id.clone(),
        policy_ids: request.policy.ids().to_vec(),
        status,
        vector,
        anchor: anchor.map(|anchor| anchor.name().into()),
        warnings,
        checks: list,
    };
    Outcome { appraisal, verified }
}

/// Appraises evidence of a Security Kernel.
///
/// # Errors
/// The appraisal, if it denies.
pub fn appraise_kernel(
    request: &AppraisalRequest<'_>,
) -> Result<(VerifiedKernelEvidence, Appraisal), Box<Appraisal>> {
    match appraise(&AppraisalRequest { layer: Layer::Kernel, ..*request }) {
        Outcome { appraisal, verified: Some(Verified::Kernel(evidence)) } => {
            Ok((evidence, appraisal))
        }
        Outcome { appraisal, .. } => Err(Box::new(appraisal)),
    }
}

/// Appraises evidence of a loaded Shield.
///
/// # Errors
/// The appraisal, if it denies.
pub fn appraise_shield(
    request: &AppraisalRequest<'_>,
) -> Result<(VerifiedShieldEvidence, Appraisal), Box<Appraisal>> {
    match appraise(&AppraisalRequest { layer: Layer::Shield, ..*request }) {
        Outcome { appraisal, verified: Some(Verified::Shield(evidence)) } => {
            Ok((evidence, appraisal))
        }
        Outcome { appraisal, .. } => Err(Box::new(appraisal)),
    }
}

/// Checks evidence that another party, such as a verifier service, appraised against the caller's
/// own policy: every demand of its typed part. Certificates and reference values are left to that
/// party. `revocations` are checked if present. `challenged` and `now` are as in
/// [`AppraisalRequest`].
///
/// # Errors
/// The demands that were checked, if one is not met.
pub fn floor(
    policy: &Policy,
    verified: &Verified,
    revocations: Option<&Revocations>,
    challenged: Option<i64>,
    now: i64,
) -> Result<(), Box<Appraisal>> {
    let claims = match verified {
        Verified::Kernel(evidence) => Claims { common: evidence.claims().clone(), shield: None },
        Verified::Shield(evidence) => {
            Claims { common: evidence.claims().clone(), shield: Some(evidence.shield().clone()) }
        }
    };
    let c = &claims.common;
    let mut reference = ReferenceValues {
        kernels: vec![KernelReference {
            name: String::new(),
            digest: c.kernel_digest,
            svn: c.kernel_svn,
        }],
        shells: vec![ShellReference { name: String::new(), digest: c.shell_digest }],
        images: Vec::new(),
    };
    if let Some(shield) = &claims.shield {
        reference.images.push(ImageReference {
            name: String::new(),
            accelerator: shield.accelerator.clone(),
            digest: shield.image_digest,
            config_digest: shield.config_digest,
            design_digest: shield.design_digest,
            vendor: shield.vendor,
            svn: shield.image_svn,
        });
    }
    let (anchors, policy, layer) =
        (TrustAnchors::new(Vec::new()), AppraisalPolicy::new(policy.clone()), verified.layer());
    let nothing: &[u8] = &[];
    let request = AppraisalRequest {
        revocations,
        challenged,
        ..AppraisalRequest::new(
            nothing,
            &anchors,
            &reference,
            &policy,
            layer,
            &c.nonce,
            &c.audience,
            now,
        )
    };
    let mut run =
        Run { request: &request, checks: Checks::new(), anchor: None, malfunction: false };
    run.age();
    run.policy(&claims, None);
    if let Some(shield) = &claims.shield {
        run.image(shield);
    }
    let checks = run.checks.made();
    if checks.iter().all(|check| check.passed) {
        return Ok(());
    }
    let (vector, status) = ar4si::derive(layer, Some(&claims), &checks, false, false);
    Err(Box::new(Appraisal {
        verdict: Verdict::Denied,
        layer: layer.name(),
        policy: policy.typed().id.clone(),
        policy_ids: policy.ids().to_vec(),
        status,
        vector,
        anchor: None,
        warnings: Vec::new(),
        checks,
    }))
}

/// Expected by the check of the certificates.
const CERTIFICATES: &str = "the certificates of attestation key and DeviceID";

/// The certificates of a chain, from the evidence or beside it; or what was found instead.
fn chain_bytes<'c>(inside: &'c [Vec<u8>], beside: &'c [Vec<u8>]) -> Result<&'c [Vec<u8>], Text> {
    if !inside.is_empty() && !beside.is_empty() && inside != beside {
        return Err("certificates in the evidence and beside it differ".into());
    }
    let bytes = if inside.is_empty() { beside } else { inside };
    if bytes.len() != 2 {
        let error = CertError::Length { found: bytes.len() };
        return Err(format!("{error} ({})", error.code()).into());
    }
    Ok(bytes)
}

/// An appraisal in progress.
struct Run<'a> {
    request: &'a AppraisalRequest<'a>,
    checks: Checks,
    anchor: Option<&'a TrustAnchor>,
    malfunction: bool,
}

impl<'a> Run<'a> {
    fn check(
        &mut self,
        id: CheckId,
        passed: bool,
        expected: impl Into<Text>,
        actual: impl Into<Text>,
    ) -> bool {
        self.checks.add(id, passed, expected, actual)
    }

    fn framing<'e>(&mut self, read: Result<&'e Evidence, &EvidenceError>) -> Option<&'e Evidence> {
        const FORM: &str = "a COSE_Sign1 under tags 61 and 18";
        const CLAIMS: &str = "all claims of the profile";
        let layer = self.request.layer;
        match read {
            Ok(evidence) => {
                self.check(CheckId::Framing, true, FORM, FORM);
                let found = evidence.layer();
                let passed =
                    self.check(CheckId::Profile, found == layer, layer.profile(), found.profile());
                self.check(CheckId::Claims, true, CLAIMS, CLAIMS);
                // Claims of another profile do not answer this request.
                passed.then_some(evidence)
            }
            Err(EvidenceError::Cose(error)) => {
                self.check(CheckId::Framing, false, FORM, format!("{error} ({})", error.code()));
                None
            }
            Err(EvidenceError::Profile { found }) => {
                self.check(CheckId::Framing, true, FORM, FORM);
                self.check(CheckId::Profile, false, layer.profile(), found.clone());
                None
            }
            Err(error) => {
                self.check(CheckId::Framing, true, FORM, FORM);
                self.check(CheckId::Claims, false, CLAIMS, format!("{error} ({})", error.code()));
                None
            }
        }
    }

    /// Every check after the framing; returns the chain if it is valid.
    fn appraise(&mut self, evidence: &Evidence) -> Option<Arc<VerifiedChain>> {
        let request = self.request;
        let claims = evidence.unverified_claims();
        let c = &claims.common;

        let same = bool::from(c.nonce.as_slice().ct_eq(request.nonce));
        self.check(CheckId::Nonce, same, Text::prefix(request.nonce), Text::prefix(&c.nonce));
        if c.audience == request.audience {
            self.check(CheckId::Audience, true, "this verifier", "this verifier");
        } else {
            self.check(CheckId::Audience, false, request.audience.to_owned(), c.audience.clone());
        }
        self.age();

        let chain = self.chain(evidence);
        if let (Some(verified), Some(anchor)) = (&chain, self.anchor) {
            self.binding(evidence, verified, anchor);
        }
        self.policy(claims, chain.as_deref());
        if let Some(shield) = &claims.shield {
            self.image(shield);
        }
        self.rego(claims);
        chain
    }

    fn age(&mut self) {
        let request = self.request;
        let Some(max) = request.policy.typed().max_age else {
            self.check(CheckId::Age, true, "any", "any");
            return;
        };
        let age = request.challenged.map(|at| request.now.saturating_sub(at));
        let passed = age.is_some_and(|age| (0..=i64::from(max)).contains(&age));
        let actual =
            age.map_or(Text::Static("nobody knows when the challenge was made"), Text::Age);
        self.check(CheckId::Age, passed, Text::AtMostAge(max), actual);
    }

    fn chain(&mut self, evidence: &Evidence) -> Option<Arc<VerifiedChain>> {
        let request = self.request;
        let bytes = match chain_bytes(evidence.x5chain(), request.certificates) {
            Ok(bytes) => bytes,
            Err(found) => return self.certificates_refused(found),
        };
        let key = request.chains.map(|_| ChainKey::new(bytes, request.anchors));
        if let Some((chain, anchor)) = self.cached_chain(bytes, key.as_ref()) {
            self.check(CheckId::Certificates, true, CERTIFICATES, CERTIFICATES);
            self.anchor_found(anchor, evidence);
            self.check(CheckId::Chain, true, "valid", "valid");
            return Some(chain);
        }
        let certificates: Result<Vec<Certificate>, CertError> =
            bytes.iter().map(|der| Certificate::parse(der)).collect();
        let certificates = match certificates {
            Ok(certificates) => certificates,
            Err(error) => {
                return self.certificates_refused(format!("{error} ({})", error.code()).into());
            }
        };
        self.check(CheckId::Certificates, true, CERTIFICATES, CERTIFICATES);
        let (at, validated) = self.issuer(evidence, &certificates)?;
        let anchor = &request.anchors.list()[at];
        self.anchor_found(anchor, evidence);
        let chain = match validated {
            Ok(chain) => chain,
            Err(error) => {
                self.check(CheckId::Chain, false, "valid", format!("{error} ({})", error.code()));
                return None;
            }
        };
        self.check(CheckId::Chain, true, "valid", "valid");
        let all = [&certificates[0], &certificates[1], anchor.certificate()];
        let chain = Arc::new(VerifiedChain {
            ak_ready: request.chains.and_then(|cache| cache.ready(&chain.ak)),
            chain,
            anchor: at,
            serials: all.map(|certificate| certificate.serial().to_vec()),
            names: all.iter().flat_map(|certificate| certificate.names()).collect(),
            authority: Sha256::digest(anchor.certificate().key().as_bytes()).into(),
            certificates: bytes.to_vec(),
            generation: *request.anchors.generation(),
        });
        if let Some((cache, key)) = request.chains.zip(key) {
            cache.put(key, Arc::clone(&chain));
        }
        Some(chain)
    }

    fn certificates_refused<T>(&mut self, found: Text) -> Option<T> {
        self.check(CheckId::Certificates, false, CERTIFICATES, found);
        None
    }

    /// The chain in the cache, with its anchor. Ignores a chain of other certificates or anchors.
    /// An expired chain is checked in full, to report the exact reason.
    fn cached_chain(
        &self,
        bytes: &[Vec<u8>],
        key: Option<&ChainKey>,
    ) -> Option<(Arc<VerifiedChain>, &'a TrustAnchor)> {
        let request = self.request;
        let chain = request.chains?.get(key?)?;
        if !chain.is_of(bytes, request.anchors) || chain.chain.check_time(request.now).is_err() {
            return None;
        }
        let anchor = request.anchors.list().get(chain.anchor)?;
        Some((chain, anchor))
    }

    /// The trust anchor that issued the chain, by its place in the list, and the result of the
    /// validation under it.
    ///
    /// Several anchors may share a name and key identifier: the chain belongs to one whose
    /// signature it carries. An anchor registered for the claimed kind and debug state comes first,
    /// so that another registration of the same root hides nothing.
    fn issuer(
        &mut self,
        evidence: &Evidence,
        certificates: &[Certificate],
    ) -> Option<(usize, Result<Chain, CertError>)> {
        let request = self.request;
        let c = &evidence.unverified_claims().common;
        let anchors = request.anchors.list();
        let fits = |at: &usize| {
            let debug = c.debug == DebugState::Enabled;
            (anchors[*at].kind() == c.root_of_trust, anchors[*at].debug() == debug)
        };
        let mut named: Vec<usize> = (0..anchors.len())
            .filter(|at| anchors[*at].certificate().is_issuer_of(&certificates[1]))
            .collect();
        named.sort_by_key(|at| std::cmp::Reverse(fits(at)));
        let Some(first) = named.first() else {
            let known: Vec<String> =
                anchors.iter().map(|anchor| anchor.name().to_owned()).collect();
            self.check(
                CheckId::Anchor,
                false,
                format!("issued by one of: {}", names(&known)),
                "issued by somebody else",
            );
            return None;
        };
        let validate = |at: usize| {
            cert::validate_under_anchor(
                certificates,
                anchors[at].certificate(),
                request.now,
                request.verify,
            )
        };
        let valid =
            named.iter().map(|at| (*at, validate(*at))).find(|(_, validated)| validated.is_ok());
        Some(valid.unwrap_or_else(|| (*first, validate(*first))))
    }

    fn anchor_found(&mut self, anchor: &'a TrustAnchor, evidence: &Evidence) {
        let kind = evidence.unverified_claims().common.root_of_trust;
        self.anchor = Some(anchor);
        self.check(CheckId::Anchor, true, "issued by a trust anchor", "issued by a trust anchor");
        self.check(CheckId::AnchorKind, anchor.kind() == kind, anchor.kind().name(), kind.name());
    }

    /// The evidence is signed by the chain's key and agrees with the chain.
    fn binding(&mut self, evidence: &Evidence, verified: &VerifiedChain, anchor: &TrustAnchor) {
        let c = &evidence.unverified_claims().common;
        let chain = &verified.chain;
        let signed = evidence.verify_with(|message, signature| match &verified.ak_ready {
            Some(ak) => ak.verify(message, signature),
            None => (self.request.verify)(&chain.ak, message, signature),
        });
        let found = match &signed {
            Ok(()) => "verifies",
            Err(CoseError::HighS) => "verifies, but its s is above n / 2 (SHEF-PRO-013)",
            Err(_) => "does not verify",
        };
        self.check(CheckId::Signature, signed.is_ok(), "a signature of the attestation key", found);
        self.check(
            CheckId::Ueid,
            c.ueid == chain.ueid,
            Text::prefix(&chain.ueid),
            Text::prefix(&c.ueid),
        );
        let tcb = &chain.tcb_info;
        self.check(
            CheckId::Measured,
            c.kernel_digest == tcb.digest && c.kernel_svn == tcb.svn,
            Text::measured(&tcb.digest, tcb.svn),
            Text::measured(&c.kernel_digest, c.kernel_svn),
        );
        let debug = c.debug == DebugState::Enabled;
        let flags_fit = tcb.flags == if debug { cert::FLAG_DEBUG } else { 0 };
        let expected =
            if debug { "TcbInfo and anchor for debug" } else { "TcbInfo and anchor without debug" };
        if flags_fit && anchor.debug() == debug {
            self.check(CheckId::DebugConsistent, true, expected, expected);
        } else {
            let actual =
                format!("TcbInfo flags {:#x}, anchor for debug: {}", tcb.flags, anchor.debug());
            self.check(CheckId::DebugConsistent, false, expected, actual);
        }
        const OWN: &str = "a key of its own";
        if self.request.own_keys.contains(&c.key) {
            self.check(CheckId::Key, false, OWN, "a key of this verifier");
        } else if [&chain.ak, &chain.device_id, anchor.certificate().key()].contains(&&c.key) {
            self.check(CheckId::Key, false, OWN, "a key of the certificates");
        } else {
            self.check(CheckId::Key, true, OWN, OWN);
        }
    }

    fn policy(&mut self, claims: &Claims, chain: Option<&VerifiedChain>) {
        let request = self.request;
        let policy = request.policy.typed();
        let c = &claims.common;
        let kind = c.root_of_trust.name();
        let named = policy.root_of_trust.iter().any(|name| name == kind);
        self.check(CheckId::RootOfTrust, named, one_of(named, &policy.root_of_trust), kind);
        let expected = if policy.allow_debug {
            "any, debug is accepted"
        } else {
            "disabled since boot or for good"
        };
        self.check(
            CheckId::Debug,
            policy.allow_debug || c.debug.is_safe(),
            expected,
            c.debug.name(),
        );
        let seeded = c.entropy == EntropySource::Seeded;
        let expected = if policy.allow_seeded { "any, a seed is accepted" } else { "false" };
        self.check(
            CheckId::Seeded,
            policy.allow_seeded || !seeded,
            expected,
            if seeded { "true" } else { "false" },
        );
        let accepted = policy.entropy == AcceptedEntropy::Unmeasured;
        let expected = if accepted { "any, unmeasured is accepted" } else { "not unmeasured" };
        self.check(
            CheckId::Entropy,
            accepted || c.entropy != EntropySource::Unmeasured,
            expected,
            c.entropy.name(),
        );
        if policy.targets.is_empty() {
            self.check(CheckId::Target, true, "any", c.target.clone());
        } else {
            let named = policy.targets.contains(&c.target);
            self.check(CheckId::Target, named, one_of(named, &policy.targets), c.target.clone());
        }
        self.device(claims);
        self.revocation(claims, chain);

        let kernels = &request.reference.kernels;
        let known = kernels
            .iter()
            .any(|known| known.digest == c.kernel_digest && known.svn == c.kernel_svn);
        let expected = if known {
            Text::measured(&c.kernel_digest, c.kernel_svn)
        } else {
            let list: Vec<String> = kernels
                .iter()
                .map(|k| format!("{} ({})", k.name, Text::measured(&k.digest, k.svn)))
                .collect();
            names(&list)
        };
        self.check(
            CheckId::Kernel,
            known,
            expected,
            Text::measured(&c.kernel_digest, c.kernel_svn),
        );
        let least = policy.min_kernel_svn.max(request.shown_svn);
        self.check(CheckId::KernelSvn, c.kernel_svn >= least, Text::AtLeast(least), c.kernel_svn);

        let shells = &request.reference.shells;
        let known = shells.iter().any(|known| known.digest == c.shell_digest);
        let named = policy.shells.is_empty()
            || policy.shells.contains(hex::encode(c.shell_digest).as_str());
        let expected = if known && named {
            Text::prefix(&c.shell_digest)
        } else if known {
            format!("one that the policy names: {}", names(&policy.shells)).into()
        } else {
            let list: Vec<String> = shells
                .iter()
                .map(|s| format!("{} ({})", s.name, Text::prefix(&s.digest)))
                .collect();
            names(&list)
        };
        self.check(CheckId::Shell, known && named, expected, Text::prefix(&c.shell_digest));
    }

    fn device(&mut self, claims: &Claims) {
        let policy = self.request.policy.typed();
        let ueid = &claims.common.ueid;
        if policy.devices.is_empty() && policy.revoked.is_empty() {
            self.check(CheckId::Device, true, "any", Text::prefix(ueid));
            return;
        }
        let name = hex::encode(ueid);
        let revoked = policy.revoked.contains(&name);
        let listed = policy.devices.is_empty() || policy.devices.contains(&name);
        let expected = if policy.devices.is_empty() {
            "any that the policy does not refuse"
        } else {
            "one of the policy's fleet, not refused"
        };
        self.check(
            CheckId::Device,
            listed && !revoked,
            expected,
            if revoked { format!("{name}, refused by name") } else { name },
        );
    }

    fn revocation(&mut self, claims: &Claims, chain: Option<&VerifiedChain>) {
        let required = self.request.policy.typed().require_revocation;
        let Some(list) = self.request.revocations else {
            let expected = if required {
                "a current revocation list"
            } else {
                "not revoked, where there is a list"
            };
            self.check(CheckId::Revocation, !required, expected, "no list");
            return;
        };
        if required && !list.is_current(self.request.now) {
            let actual = format!(
                "a list for {} to {}, now is {}",
                list.issued, list.next_update, self.request.now
            );
            self.check(CheckId::Revocation, false, "a current revocation list", actual);
            return;
        }
        let c = &claims.common;
        let shield = claims.shield.as_ref();
        const NONE: &[u8] = &[];
        let subject = Subject {
            ueid: &c.ueid,
            serials: chain.map_or([NONE; 3], |chain| chain.serials.each_ref().map(Vec::as_slice)),
            certificates: chain.map_or(&[], |chain| &chain.names[..]),
            authority: chain.map(|chain| &chain.authority[..]),
            kernel: &c.kernel_digest,
            shell: &c.shell_digest,
            image: shield.map(|shield| &shield.image_digest[..]),
            vendor: shield.map(|shield| &shield.vendor[..]),
        };
        let found = list.find(&subject);
        self.check(
            CheckId::Revocation,
            found.is_none(),
            "not revoked",
            found.unwrap_or("not revoked"),
        );
    }

    fn image(&mut self, shield: &ShieldClaims) {
        let policy = self.request.policy.typed();
        let images = &self.request.reference.images;
        let known = images.iter().find(|known| {
            known.digest == shield.image_digest
                && known.accelerator == shield.accelerator
                && known.vendor == shield.vendor
        });
        let named = policy.images.is_empty()
            || policy.images.contains(hex::encode(shield.image_digest).as_str());
        let fits =
            policy.accelerators.is_empty() || policy.accelerators.contains(&shield.accelerator);
        let expected = if known.is_some() && named && fits {
            Text::prefix(&shield.image_digest)
        } else if known.is_some() && named {
            format!("one of an accelerator that the policy names: {}", names(&policy.accelerators))
                .into()
        } else if known.is_some() {
            format!("one that the policy names: {}", names(&policy.images)).into()
        } else {
            let list: Vec<String> = images
                .iter()
                .map(|i| format!("{} ({} of {})", i.name, Text::prefix(&i.digest), i.accelerator))
                .collect();
            names(&list)
        };
        let actual = if known.is_some() && !(named && fits) {
            format!("{} of {}", Text::prefix(&shield.image_digest), shield.accelerator).into()
        } else {
            Text::prefix(&shield.image_digest)
        };
        self.check(CheckId::Image, known.is_some() && named && fits, expected, actual);
        // Without a known image there is nothing to compare the rest with: those checks stay
        // unreached.
        if let Some(known) = known {
            let same = known.config_digest == shield.config_digest;
            let named = policy.configs.is_empty()
                || policy.configs.contains(hex::encode(shield.config_digest).as_str());
            let expected = if same && !named {
                format!("one that the policy names: {}", names(&policy.configs)).into()
            } else {
                Text::prefix(&known.config_digest)
            };
            self.check(
                CheckId::Config,
                same && named,
                expected,
                Text::prefix(&shield.config_digest),
            );
            let same = known.design_digest == shield.design_digest;
            self.check(
                CheckId::Design,
                same,
                Text::prefix(&known.design_digest),
                Text::prefix(&shield.design_digest),
            );
            let passed = shield.image_svn == known.svn && shield.image_svn >= policy.min_image_svn;
            let expected = if passed {
                Text::Number(known.svn)
            } else {
                format!("{}, and at least {}", known.svn, policy.min_image_svn).into()
            };
            self.check(CheckId::ImageSvn, passed, expected, shield.image_svn);
        }
        let named = policy.image_signers.is_empty()
            || policy.image_signers.contains(hex::encode(shield.vendor).as_str());
        let expected = if policy.image_signers.is_empty() {
            Text::Static("any known")
        } else {
            one_of(named, &policy.image_signers)
        };
        self.check(CheckId::ImageSigner, named, expected, Text::prefix(&shield.vendor));
        let on_fault = shield.on_fault.name();
        let named = policy.on_fault.iter().any(|name| name == on_fault);
        self.check(CheckId::OnFault, named, one_of(named, &policy.on_fault), on_fault);
        let fits = shield.bypass.iter().all(|name| policy.bypass.contains(name));
        let expected = if policy.bypass.is_empty() {
            Text::Static("none")
        } else {
            format!("none but: {}", names(&policy.bypass)).into()
        };
        self.check(CheckId::Bypass, fits, expected, names(&shield.bypass));
        let state = shield.state.name();
        let named = policy.states.iter().any(|name| name == state);
        self.check(CheckId::State, named, one_of(named, &policy.states), state);
    }

    /// The Rego policy runs last, and only on evidence that passed all other checks: it can deny,
    /// but never allow what a check denied.
    fn rego(&mut self, claims: &Claims) {
        let Some(rego) = self.request.policy.rego() else {
            self.check(CheckId::Rego, true, "no policy in Rego", "no policy in Rego");
            return;
        };
        if !self.checks.all_passed(self.request.layer, Some(CheckId::Rego)) {
            return;
        }
        let answer = match self.request.rego {
            Some(evaluator) => {
                evaluator.evaluate(rego, &crate::rego::input(claims, self.request.now))
            }
            None => {
                Err(RegoError::Unavailable { text: "this verifier has nothing that does".into() })
            }
        };
        let actual = match &answer {
            Ok(true) => Text::Static("true"),
            Ok(false) => Text::Static("false or undefined"),
            Err(RegoError::Failed { text }) => text.clone().into(),
            Err(error) => format!("{error} ({})", error.code()).into(),
        };
        self.malfunction = answer.is_err();
        self.check(CheckId::Rego, answer == Ok(true), "data.shef.allow = true", actual);
    }
}
