//! The appraisal itself: one list of checks, every one of which must pass.

use serde::{Serialize, Serializer};
use shef_proto::cert::{self, CertError, Certificate, Chain};
use shef_proto::code::Code;
use shef_proto::evidence::{Claims, DebugState, Evidence, EvidenceError, Layer, RootOfTrust};
use subtle::ConstantTimeEq;

use crate::policy::Policy;
use crate::reference::{ReferenceValues, TrustAnchor};
use crate::verified::{Verified, VerifiedKernelEvidence, VerifiedShieldEvidence, verified};

/// What is to be appraised, and against what.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The evidence as it came.
    pub evidence: &'a [u8],
    /// Certificates that came beside it, leaf first; empty when they are inside the evidence. When both are there they must be equal.
    pub certificates: &'a [Vec<u8>],
    /// Roots, each registered for one kind of root of trust.
    pub anchors: &'a [TrustAnchor],
    /// Known measurements.
    pub reference: &'a ReferenceValues,
    /// What is demanded.
    pub policy: &'a Policy,
    /// The layer whose evidence is expected: image keys go to the kernel's, data keys to the Shield's.
    pub layer: Layer,
    /// The nonce of this challenge.
    pub nonce: &'a [u8],
    /// The audience of this challenge.
    pub audience: &'a str,
    /// Seconds since 1970.
    pub now: i64,
}

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

        /// Codes of the checks.
        pub(crate) const CODES: &[Code] = &[$(Code::new($code, $summary, $help),)*];
    };
}

checks! {
    /// Strict CBOR, COSE_Sign1 with the right tags, headers and algorithm.
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
    /// The key vouched for is a key of its own.
    Key = ("SHEF-ATT-018", "key", "the attested key is one of the certificates' keys",
        "The key in cnf must be a key of its own, not the attestation or DeviceID key."),
    /// The kind of root of trust is accepted.
    RootOfTrust = ("SHEF-ATT-020", "root-of-trust", "kind of root of trust is not accepted",
        "The policy does not name this kind of root of trust. A simulated device protects nothing; a policy must name it to accept it."),
    /// Debug is off, or accepted.
    Debug = ("SHEF-ATT-021", "debug", "debug is not off",
        "Debug is on, or was not shown to be off since boot, and the policy does not accept that. A device in debug mode protects nothing."),
    /// Randomness is real, or a seed is accepted.
    Seeded = ("SHEF-ATT-022", "seeded", "device draws from a test's seed",
        "Its keys can be computed by anybody who knows the seed. Only a test's policy may accept that (allow_seeded)."),
    /// The type of device is accepted.
    Target = ("SHEF-ATT-023", "target", "type of device is not accepted",
        "The policy lists the types of device it accepts, and this is none of them."),
    /// The device is in the fleet and not revoked.
    Device = ("SHEF-ATT-024", "device", "device is not accepted",
        "The policy lists the devices it accepts and this is none of them, or it lists this one as revoked."),
    /// A known kernel.
    Kernel = ("SHEF-ATT-030", "kernel", "unknown kernel",
        "No reference value has this kernel digest and security version. Reference values come from whoever built the kernel."),
    /// A kernel that is new enough.
    KernelSvn = ("SHEF-ATT-031", "kernel-svn", "kernel is too old",
        "The security version of the kernel is below the policy's least. Update the kernel of the card."),
    /// A known shell.
    Shell = ("SHEF-ATT-032", "shell", "unknown shell",
        "No reference value has this measurement of the shell."),
    /// A known image.
    Image = ("SHEF-ATT-040", "image", "unknown image",
        "No reference value has this image digest for this accelerator and vendor."),
    /// The configuration of that image.
    Config = ("SHEF-ATT-041", "configuration", "Shield configuration is not the image's",
        "The configuration digest is not the one of the reference value: regions or their protection are others."),
    /// The design of that image.
    Design = ("SHEF-ATT-042", "design", "loaded design is not the image's",
        "The digest of the loaded design is not the one of the reference value."),
    /// An image that is new enough.
    ImageSvn = ("SHEF-ATT-043", "image-svn", "image is too old",
        "The security version of the image is below the policy's least, or not the one of its reference value."),
    /// An accepted fault policy.
    OnFault = ("SHEF-ATT-044", "fault-policy", "fault policy is not accepted",
        "The policy does not name what this Shield does on a fault."),
    /// No region without protection, or named ones only.
    Bypass = ("SHEF-ATT-045", "bypass", "region without protection",
        "The Shield has a region in mode bypass that the policy does not name: what lies there is open to the host."),
    /// An accepted state.
    State = ("SHEF-ATT-046", "state", "state of the Shield is not accepted",
        "The policy does not accept this state of the session. A Load Key goes to a fresh Shield only; ask the kernel for a new session."),
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
        const SHIELD: &[CheckId] = &[
            CheckId::Framing,
            CheckId::Profile,
            CheckId::Claims,
            CheckId::Nonce,
            CheckId::Audience,
            CheckId::Certificates,
            CheckId::Anchor,
            CheckId::Chain,
            CheckId::AnchorKind,
            CheckId::Signature,
            CheckId::Ueid,
            CheckId::Measured,
            CheckId::DebugConsistent,
            CheckId::Key,
            CheckId::RootOfTrust,
            CheckId::Debug,
            CheckId::Seeded,
            CheckId::Target,
            CheckId::Device,
            CheckId::Kernel,
            CheckId::KernelSvn,
            CheckId::Shell,
            CheckId::Image,
            CheckId::Config,
            CheckId::Design,
            CheckId::ImageSvn,
            CheckId::OnFault,
            CheckId::Bypass,
            CheckId::State,
        ];
        match layer {
            Layer::Kernel => &SHIELD[..22],
            Layer::Shield => SHIELD,
        }
    }
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Which check.
    pub id: CheckId,
    /// Its code.
    pub code: &'static str,
    /// True when it was made and holds.
    pub passed: bool,
    /// False when an earlier failure left nothing to look at.
    pub reached: bool,
    /// What must be.
    pub expected: String,
    /// What is.
    pub actual: String,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Every check passed.
    Accepted,
    /// At least one did not.
    Denied,
}

/// What was checked, and the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Appraisal {
    /// The answer.
    pub verdict: Verdict,
    /// The layer that was expected.
    pub layer: &'static str,
    /// Id of the policy.
    pub policy: String,
    /// The trust anchor under which the chain stands.
    pub anchor: Option<String>,
    /// What an accepted appraisal should still be read with: exceptions that the policy made.
    pub warnings: Vec<String>,
    /// Every check, in order.
    pub checks: Vec<Check>,
}

impl Appraisal {
    /// True when every check passed.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.verdict == Verdict::Accepted
    }

    /// The first check that was made and did not pass; of a denial, the reason to show first.
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

/// Appraisal, and what it verified.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What was checked.
    pub appraisal: Appraisal,
    /// The evidence, when every check passed.
    pub verified: Option<Verified>,
}

struct Checks {
    list: Vec<Check>,
}

impl Checks {
    fn add(&mut self, id: CheckId, passed: bool, expected: impl Into<String>, actual: impl Into<String>) -> bool {
        self.list.push(Check { id, code: id.code(), passed, reached: true, expected: expected.into(), actual: actual.into() });
        passed
    }

    /// Closes the list: what was not reached counts as failed.
    fn finish(mut self, layer: Layer) -> (Verdict, Vec<Check>) {
        let mut out = Vec::new();
        for id in CheckId::all(layer) {
            match self.list.iter().position(|check| check.id == *id) {
                Some(at) => out.push(self.list.swap_remove(at)),
                None => out.push(Check {
                    id: *id,
                    code: id.code(),
                    passed: false,
                    reached: false,
                    expected: String::new(),
                    actual: "not reached".into(),
                }),
            }
        }
        let accepted = self.list.is_empty() && out.iter().all(|check| check.passed);
        (if accepted { Verdict::Accepted } else { Verdict::Denied }, out)
    }
}

fn names(list: &[String]) -> String {
    if list.is_empty() { "none".into() } else { list.join(", ") }
}

/// Appraises evidence. Deny by default: only when every check of the layer passed is there verified evidence.
#[must_use]
pub fn appraise(request: &Request<'_>) -> Outcome {
    let mut checks = Checks { list: Vec::new() };
    let mut anchor = None;
    let result = run(request, &mut checks, &mut anchor);
    let (verdict, list) = checks.finish(request.layer);
    let verified = match (verdict, result) {
        (Verdict::Accepted, Some((claims, chain, digest))) => Some(verified(claims, chain, digest)),
        _ => None,
    };
    let verdict = if verified.is_some() { Verdict::Accepted } else { Verdict::Denied };
    let mut warnings = Vec::new();
    if let Some(verified) = &verified {
        let c = verified.claims();
        for (applies, text) in [
            (c.root_of_trust == RootOfTrust::Simulated, "the device is simulated: it protects nothing"),
            (!c.debug.is_safe(), "the device is in debug mode: it protects nothing"),
            (c.seeded, "the device draws from a test's seed: its keys are known to whoever knows the seed"),
        ] {
            if applies {
                warnings.push(text.into());
            }
        }
    }
    let appraisal = Appraisal { verdict, layer: request.layer.name(), policy: request.policy.id.clone(), anchor, warnings, checks: list };
    Outcome { appraisal, verified }
}

/// Appraises evidence of a Security Kernel.
///
/// # Errors
/// The appraisal, when it denies.
pub fn appraise_kernel(request: &Request<'_>) -> Result<(VerifiedKernelEvidence, Appraisal), Box<Appraisal>> {
    match appraise(&Request { layer: Layer::Kernel, ..*request }) {
        Outcome { appraisal, verified: Some(Verified::Kernel(evidence)) } => Ok((evidence, appraisal)),
        Outcome { appraisal, .. } => Err(Box::new(appraisal)),
    }
}

/// Appraises evidence of a loaded Shield.
///
/// # Errors
/// The appraisal, when it denies.
pub fn appraise_shield(request: &Request<'_>) -> Result<(VerifiedShieldEvidence, Appraisal), Box<Appraisal>> {
    match appraise(&Request { layer: Layer::Shield, ..*request }) {
        Outcome { appraisal, verified: Some(Verified::Shield(evidence)) } => Ok((evidence, appraisal)),
        Outcome { appraisal, .. } => Err(Box::new(appraisal)),
    }
}

fn run(request: &Request<'_>, checks: &mut Checks, anchor_name: &mut Option<String>) -> Option<(Claims, Chain, [u8; 32])> {
    let evidence = framing(request, checks)?;
    let claims = evidence.unverified_claims();
    let c = &claims.common;

    let same = bool::from(c.nonce.as_slice().ct_eq(request.nonce));
    checks.add(CheckId::Nonce, same, hex::encode(request.nonce), hex::encode(&c.nonce));
    checks.add(CheckId::Audience, c.audience == request.audience, request.audience, &*c.audience);

    let chain = chain(request, &evidence, checks, anchor_name);
    if let Some((chain, anchor)) = &chain {
        let signed = evidence.verify(&chain.ak).is_ok();
        checks.add(CheckId::Signature, signed, "a signature of the attestation key", if signed { "verifies" } else { "does not verify" });
        checks.add(CheckId::Ueid, c.ueid == chain.ueid, hex::encode(chain.ueid), hex::encode(c.ueid));
        let tcb = &chain.tcb_info;
        checks.add(
            CheckId::Measured,
            c.kernel_digest == tcb.digest && c.kernel_svn == tcb.svn,
            format!("{} svn {}", hex::encode(tcb.digest), tcb.svn),
            format!("{} svn {}", hex::encode(c.kernel_digest), c.kernel_svn),
        );
        let debug = c.debug == DebugState::Enabled;
        let flags_fit = tcb.flags == if debug { cert::FLAG_DEBUG } else { 0 };
        checks.add(
            CheckId::DebugConsistent,
            flags_fit && anchor.debug() == debug,
            format!("TcbInfo flags and anchor as the evidence: debug {debug}"),
            format!("TcbInfo flags {:#x}, anchor for debug: {}", tcb.flags, anchor.debug()),
        );
        let own = c.key != chain.ak && c.key != chain.device_id && c.key != *anchor.certificate().key();
        checks.add(CheckId::Key, own, "a key of its own", if own { "a key of its own" } else { "a key of the certificates" });
    }

    policy(request, claims, checks);
    if let Some(shield) = &claims.shield {
        image(request, claims, shield, checks);
    }
    chain.map(|(chain, _)| (claims.clone(), chain, evidence.digest()))
}

fn framing(request: &Request<'_>, checks: &mut Checks) -> Option<Evidence> {
    let form = "a COSE_Sign1 under tags 61 and 18";
    match Evidence::parse(request.evidence) {
        Ok(evidence) => {
            checks.add(CheckId::Framing, true, form, form);
            let found = evidence.layer();
            let passed = checks.add(CheckId::Profile, found == request.layer, request.layer.profile(), found.profile());
            checks.add(CheckId::Claims, true, "all claims of the profile", "all claims of the profile");
            // Claims of another profile say nothing about what is asked.
            passed.then_some(evidence)
        }
        Err(EvidenceError::Cose(error)) => {
            checks.add(CheckId::Framing, false, form, format!("{error} ({})", error.code()));
            None
        }
        Err(EvidenceError::Profile { found }) => {
            checks.add(CheckId::Framing, true, form, form);
            checks.add(CheckId::Profile, false, request.layer.profile(), found);
            None
        }
        Err(error) => {
            checks.add(CheckId::Framing, true, form, form);
            checks.add(CheckId::Claims, false, "all claims of the profile", format!("{error} ({})", error.code()));
            None
        }
    }
}

fn chain<'a>(
    request: &Request<'a>,
    evidence: &Evidence,
    checks: &mut Checks,
    anchor_name: &mut Option<String>,
) -> Option<(Chain, &'a TrustAnchor)> {
    let expected = "the certificates of attestation key and DeviceID";
    let (inside, beside) = (evidence.x5chain(), request.certificates);
    if !inside.is_empty() && !beside.is_empty() && inside != beside {
        checks.add(CheckId::Certificates, false, expected, "certificates in the evidence and beside it differ");
        return None;
    }
    let bytes = if inside.is_empty() { beside } else { inside };
    if bytes.len() != 2 {
        let error = CertError::Length { found: bytes.len() };
        checks.add(CheckId::Certificates, false, expected, format!("{error} ({})", error.code()));
        return None;
    }
    let mut certificates = Vec::with_capacity(2);
    for der in bytes {
        match Certificate::parse(der) {
            Ok(certificate) => certificates.push(certificate),
            Err(error) => {
                checks.add(CheckId::Certificates, false, expected, format!("{error} ({})", error.code()));
                return None;
            }
        }
    }
    checks.add(CheckId::Certificates, true, expected, expected);

    let known = names(&request.anchors.iter().map(|anchor| anchor.name().to_string()).collect::<Vec<_>>());
    let Some(anchor) = request.anchors.iter().find(|anchor| anchor.certificate().is_issuer_of(&certificates[1])) else {
        checks.add(CheckId::Anchor, false, format!("issued by one of: {known}"), "issued by somebody else");
        return None;
    };
    *anchor_name = Some(anchor.name().into());
    checks.add(CheckId::Anchor, true, format!("issued by one of: {known}"), anchor.name());

    let kind = evidence.unverified_claims().common.root_of_trust;
    checks.add(CheckId::AnchorKind, anchor.kind() == kind, anchor.kind().name(), kind.name());

    match cert::validate_chain(&certificates, anchor.certificate(), request.now) {
        Ok(chain) => {
            checks.add(CheckId::Chain, true, "valid", "valid");
            Some((chain, anchor))
        }
        Err(error) => {
            checks.add(CheckId::Chain, false, "valid", format!("{error} ({})", error.code()));
            None
        }
    }
}

fn policy(request: &Request<'_>, claims: &Claims, checks: &mut Checks) {
    let policy = request.policy;
    let c = &claims.common;
    let kind = c.root_of_trust.name();
    checks.add(CheckId::RootOfTrust, policy.root_of_trust.iter().any(|name| name == kind), names(&policy.root_of_trust), kind);
    let expected = if policy.allow_debug { "any, debug is accepted" } else { "disabled since boot or for good" };
    checks.add(CheckId::Debug, policy.allow_debug || c.debug.is_safe(), expected, c.debug.name());
    let expected = if policy.allow_seeded { "any, a seed is accepted" } else { "false" };
    checks.add(CheckId::Seeded, policy.allow_seeded || !c.seeded, expected, c.seeded.to_string());
    let any = policy.targets.is_empty();
    checks.add(
        CheckId::Target,
        any || policy.targets.contains(&c.target),
        if any { "any".into() } else { names(&policy.targets) },
        &*c.target,
    );
    let ueid = hex::encode(c.ueid);
    let revoked = policy.revoked.contains(&ueid);
    let listed = policy.devices.is_empty() || policy.devices.contains(&ueid);
    checks.add(
        CheckId::Device,
        listed && !revoked,
        if policy.devices.is_empty() {
            "any that is not revoked".into()
        } else {
            format!("not revoked, one of: {}", names(&policy.devices))
        },
        if revoked { format!("{ueid}, revoked") } else { ueid },
    );
    let known = request.reference.kernels.iter().find(|known| known.digest == c.kernel_digest && known.svn == c.kernel_svn);
    let expected = names(
        &request.reference.kernels.iter().map(|k| format!("{} ({} svn {})", k.name, hex::encode(k.digest), k.svn)).collect::<Vec<_>>(),
    );
    checks.add(CheckId::Kernel, known.is_some(), expected, format!("{} svn {}", hex::encode(c.kernel_digest), c.kernel_svn));
    checks.add(
        CheckId::KernelSvn,
        c.kernel_svn >= policy.min_kernel_svn,
        format!("at least {}", policy.min_kernel_svn),
        c.kernel_svn.to_string(),
    );
    let known = request.reference.shells.iter().any(|known| known.digest == c.shell_digest);
    let expected = names(&request.reference.shells.iter().map(|s| format!("{} ({})", s.name, hex::encode(s.digest))).collect::<Vec<_>>());
    checks.add(CheckId::Shell, known, expected, hex::encode(c.shell_digest));
}

fn image(request: &Request<'_>, _claims: &Claims, shield: &shef_proto::evidence::ShieldClaims, checks: &mut Checks) {
    let policy = request.policy;
    let images = &request.reference.images;
    let known = images
        .iter()
        .find(|known| known.digest == shield.image_digest && known.accelerator == shield.accelerator && known.vendor == shield.vendor);
    let expected =
        names(&images.iter().map(|i| format!("{} ({} of {})", i.name, hex::encode(i.digest), i.accelerator)).collect::<Vec<_>>());
    checks.add(CheckId::Image, known.is_some(), expected, format!("{} of {}", hex::encode(shield.image_digest), shield.accelerator));
    // Without a known image there is nothing to hold the rest against: those checks stay unreached.
    if let Some(known) = known {
        checks.add(
            CheckId::Config,
            known.config_digest == shield.config_digest,
            hex::encode(known.config_digest),
            hex::encode(shield.config_digest),
        );
        checks.add(
            CheckId::Design,
            known.design_digest == shield.design_digest,
            hex::encode(known.design_digest),
            hex::encode(shield.design_digest),
        );
        checks.add(
            CheckId::ImageSvn,
            shield.image_svn == known.svn && shield.image_svn >= policy.min_image_svn,
            format!("{}, and at least {}", known.svn, policy.min_image_svn),
            shield.image_svn.to_string(),
        );
    }
    let on_fault = shield.on_fault.name();
    checks.add(CheckId::OnFault, policy.on_fault.iter().any(|name| name == on_fault), names(&policy.on_fault), on_fault);
    let fits = shield.bypass.iter().all(|name| policy.bypass.contains(name));
    checks.add(CheckId::Bypass, fits, format!("none but: {}", names(&policy.bypass)), names(&shield.bypass));
    let state = shield.state.name();
    checks.add(CheckId::State, policy.states.iter().any(|name| name == state), names(&policy.states), state);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_checked_denies() {
        for layer in [Layer::Kernel, Layer::Shield] {
            for missing in CheckId::all(layer) {
                let mut checks = Checks { list: Vec::new() };
                for id in CheckId::all(layer).iter().filter(|id| *id != missing) {
                    checks.add(*id, true, "", "");
                }
                assert_eq!(checks.finish(layer).0, Verdict::Denied, "{}", missing.name());
            }
            let mut all = Checks { list: Vec::new() };
            for id in CheckId::all(layer) {
                all.add(*id, true, "", "");
            }
            assert_eq!(all.finish(layer).0, Verdict::Accepted);
        }
        // Checks of another layer do not count.
        let mut checks = Checks { list: Vec::new() };
        for id in CheckId::all(Layer::Shield) {
            checks.add(*id, true, "", "");
        }
        assert_eq!(checks.finish(Layer::Kernel).0, Verdict::Denied);
    }
}
