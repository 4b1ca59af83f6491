//! Evidence as it is received, the input of its appraisal, and the record of it.

use std::sync::Arc;

use serde_json::{Value, json};
use shef_proto::cert::Certificate;
use shef_proto::evidence::{Claims, Evidence, EvidenceError, Layer};
use shef_proto::hpke_suite::PublicKey;
use shef_verify::{CheckId, Outcome, name};

use crate::auth::Identity;
use crate::collateral::StoredPolicy;
use crate::secrets::{random, sha256};
use crate::store::AppraisalRecord;

/// Everything in the claims that a revocation can name: kinds and values.
pub(crate) fn claimed_names(claims: &Claims) -> Vec<(&'static str, String)> {
    let common = &claims.common;
    let mut names = vec![
        ("device", hex::encode(common.ueid)),
        ("kernel", hex::encode(common.kernel_digest)),
        ("shell", hex::encode(common.shell_digest)),
    ];
    if let Some(shield) = &claims.shield {
        names.push(("image", hex::encode(shield.image_digest)));
        names.push(("vendor", hex::encode(shield.vendor)));
    }
    names
}

/// Whether a revocation names this certificate.
pub(crate) fn certificate_names(certificate: &Certificate, kind: &str, value: &str) -> bool {
    match kind {
        "serial" => {
            name::serial(&hex::encode(certificate.serial())).is_some_and(|serial| serial == value)
        }
        "certificate" => certificate.names().iter().any(|name| hex::encode(name) == value),
        "authority" => hex::encode(sha256(certificate.key().as_bytes())) == value,
        _ => false,
    }
}

/// Whether a revocation names something in this evidence.
#[must_use]
pub fn evidence_names(evidence: &[u8], kind: &str, value: &str) -> bool {
    let Ok(evidence) = Evidence::parse(evidence) else { return false };
    let mut certificates = evidence.x5chain().iter().filter_map(|der| Certificate::parse(der).ok());
    certificates.any(|shown| certificate_names(&shown, kind, value))
        || claimed_names(evidence.unverified_claims())
            .iter()
            .any(|(claimed, named)| *claimed == kind && named == value)
}

/// Evidence as received, parsed once.
#[derive(Clone, Debug)]
pub struct Received(Arc<Read>);

#[derive(Debug)]
struct Read {
    bytes: Vec<u8>,
    evidence: std::result::Result<Evidence, EvidenceError>,
}

impl Received {
    /// Parses evidence; the appraisal denies malformed evidence, with the reason.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Read { evidence: Evidence::parse(&bytes), bytes }))
    }

    /// The bytes as received.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0.bytes
    }

    /// The evidence, if it can be read.
    pub(crate) fn parsed(&self) -> &std::result::Result<Evidence, EvidenceError> {
        &self.0.evidence
    }

    /// The claims, if they can be read; not verified yet.
    #[must_use]
    pub fn claims(&self) -> Option<&Claims> {
        self.0.evidence.as_ref().ok().map(Evidence::unverified_claims)
    }

    /// The layer that the evidence claims. Evidence without a layer is appraised as the kernel's,
    /// and denied.
    #[must_use]
    pub fn layer(&self) -> Layer {
        self.claims().map_or(Layer::Kernel, Claims::layer)
    }

    /// The claims as text; only the appraisal proves them.
    #[must_use]
    pub fn describe(&self) -> Value {
        let Ok(evidence) = &self.0.evidence else { return Value::Null };
        Value::Object(
            evidence
                .describe()
                .into_iter()
                .map(|(name, value)| (name.to_owned(), json!(value)))
                .collect(),
        )
    }
}

/// The input of an appraisal.
#[derive(Clone, Copy, Debug)]
pub struct AppraisalInput<'a> {
    /// The evidence.
    pub evidence: &'a Received,
    /// Layer whose evidence is expected.
    pub layer: Layer,
    /// Nonce of the challenge.
    pub nonce: &'a [u8],
    /// Audience of the challenge.
    pub audience: &'a str,
    /// When this service made the challenge, if it did.
    pub challenged: Option<i64>,
    /// Keys of this service: evidence with one of them in `cnf` is rejected.
    pub own_keys: &'a [PublicKey],
    /// The highest security version that a known kernel of the device has shown, or 0.
    pub shown_svn: u64,
    /// Seconds since 1970.
    pub now: i64,
}

fn passed(outcome: &Outcome, checks: &[CheckId]) -> bool {
    checks.iter().all(|id| outcome.appraisal.check(*id).is_some_and(|check| check.passed))
}

/// Whether a certified device has signed this evidence for this nonce. Only then is the nonce used
/// up, so that strangers cannot burn it.
#[must_use]
pub fn is_genuine(outcome: &Outcome) -> bool {
    passed(outcome, &[CheckId::Nonce, CheckId::Signature, CheckId::Ueid])
}

/// The record of an appraisal for this caller.
#[must_use]
pub fn record(
    outcome: &Outcome,
    policy: &StoredPolicy,
    input: &AppraisalInput<'_>,
    caller: &Identity,
) -> AppraisalRecord {
    let common = input.evidence.claims().map(|claims| &claims.common);
    let accepted = outcome.verified.is_some();
    let kernel_svn = common.map_or(0, |common| common.kernel_svn);
    // An unknown kernel may claim any version: it must not lock the device out of known kernels.
    let proven = is_genuine(outcome) && passed(outcome, &[CheckId::Measured, CheckId::Kernel]);
    AppraisalRecord {
        id: random(),
        caller: caller.uri(),
        time: input.now,
        layer: input.layer.name(),
        verdict: if accepted { "accepted" } else { "denied" },
        code: outcome.appraisal.first_failure().map_or("", |check| check.code),
        policy: policy.id(),
        ueid: common.map(|common| common.ueid.to_vec()).unwrap_or_default(),
        target: common.map(|common| common.target.clone()).unwrap_or_default(),
        kernel_svn,
        proven_svn: if proven { kernel_svn } else { 0 },
        genuine: is_genuine(outcome),
        fresh: input.challenged.is_some(),
        nonce: input.nonce.to_vec(),
        // Unreadable evidence is useless, and may be arbitrary bytes.
        evidence: common.map(|_| input.evidence.bytes().to_vec()).unwrap_or_default(),
        sha256: sha256(input.evidence.bytes()),
        report: outcome.appraisal.to_json(),
    }
}
