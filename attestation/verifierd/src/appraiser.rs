//! The collateral of a tenant, read once for each generation, and the appraisal with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use shef_proto::cert::Certificate;
use shef_proto::evidence::{Claims, Evidence, EvidenceError, Layer, RootOfTrust};
use shef_proto::hpke_suite::PublicKey;
use shef_verify::corim::{self, CorimSigner, Trust};
use shef_verify::crypto::aws_lc;
use shef_verify::name;
use shef_verify::rego::Evaluate;
use shef_verify::{
    AppraisalPolicy, AppraisalRequest, ChainCache, CheckId, Outcome, ReferenceValues, Rego,
    Revocations, TrustAnchor, TrustAnchors,
};

use crate::auth::Identity;
use crate::problem::{Kind, Result};
use crate::secrets::{random, sha256};
use crate::store::{
    AnchorRow, AppraisalRecord, CollateralRows, CorimRow, CorimVersion, PolicyRow, RevocationRow,
    revoked_value,
};

/// Media type of a typed policy.
pub const POLICY_TOML: &str = "application/toml";
/// Media type of a policy with both parts: `{"typed": TOML, "rego": Rego}`.
pub const POLICY_JSON: &str = "application/json";
/// Media types of policies.
pub const POLICY_TYPES: &[&str] = &[POLICY_TOML, POLICY_JSON];
/// Media types of reference values: signed CoRIMs, and plain lists on the operator's authority.
pub const REFERENCE_TYPES: &[&str] = &[corim::MEDIA_TYPE, "application/toml", "application/json"];

/// One version of a policy.
#[derive(Clone, Debug)]
pub struct StoredPolicy {
    /// Name.
    pub name: String,
    /// Version.
    pub version: i64,
    /// SHA-256 of its text.
    pub sha256: [u8; 32],
    policy: AppraisalPolicy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BothParts {
    typed: String,
    rego: String,
}

impl StoredPolicy {
    /// Parses a policy. Its part in Rego gets only basic checks:
    /// [`WorkQueue::check`](crate::work_queue::WorkQueue::check) parses it.
    ///
    /// # Errors
    /// Not a policy.
    pub fn parse(name: &str, version: i64, media_type: &str, content: &[u8]) -> Result<Self> {
        let bad = |text: String| Kind::Policy.because(text);
        let typed =
            |text: &str| AppraisalPolicy::from_toml(text).map_err(|error| bad(error.to_string()));
        let text = std::str::from_utf8(content).map_err(|_| bad("not UTF-8".into()))?;
        let policy = match media_type {
            POLICY_TOML => typed(text)?,
            POLICY_JSON => {
                let both: BothParts =
                    serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
                typed(&both.typed)?
                    .with_rego(Rego::new(&both.rego).map_err(|error| bad(error.to_string()))?)
            }
            other => {
                return Err(bad(format!(
                    "content type {other}, expected one of {}",
                    POLICY_TYPES.join(", ")
                )));
            }
        };
        Ok(Self { name: name.into(), version, sha256: sha256(content), policy })
    }

    /// Its part in Rego.
    #[must_use]
    pub fn rego(&self) -> Option<&Rego> {
        self.policy.rego()
    }

    /// Whether keys under this policy may be marked as the host's.
    #[must_use]
    pub fn to_host(&self) -> bool {
        self.policy.typed().to_host
    }

    /// `name@version`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// Everything that appraisals of one tenant need.
#[derive(Debug)]
pub struct Collateral {
    /// Generation in the store.
    pub generation: i64,
    /// When the first of its CoRIMs expires, seconds since 1970; the collateral is read again then.
    pub ends: i64,
    /// When the first of its signers' certificates and the first of its active CoRIMs expire,
    /// seconds since 1970; in the past if they have expired.
    pub watched: Watched,
    /// Versions of the stored CoRIMs.
    pub versions: Vec<CorimVersion>,
    /// Ids of active CoRIMs whose payload is deactivated under another id: they have no effect.
    pub withdrawn: Vec<String>,
    anchors: TrustAnchors,
    signers: Vec<CorimSigner>,
    /// Certificates in the CoRIMs.
    signer_certificates: Vec<Certificate>,
    reference: ReferenceValues,
    /// By name and version; an error text for a policy that cannot be used, for example one that
    /// calls a function of Rego that is no longer available.
    policies: BTreeMap<(String, i64), std::result::Result<Arc<StoredPolicy>, String>>,
    revocations: Revocations,
    revocation_rows: Vec<RevocationRow>,
}

/// Expiry times to warn about; [`i64::MAX`] without one.
#[derive(Clone, Copy, Debug)]
pub struct Watched {
    /// Of a signer's certificate.
    pub signer: i64,
    /// Of reference values.
    pub corim: i64,
}

impl Watched {
    /// The expiry times that are set, by name.
    pub fn list(self) -> impl Iterator<Item = (&'static str, i64)> {
        [("signer", self.signer), ("corim", self.corim)]
            .into_iter()
            .filter(|(_, end)| *end != i64::MAX)
    }
}

/// Parses a trust anchor.
///
/// # Errors
/// Not a root certificate, or an unknown kind.
pub fn anchor(row: &AnchorRow) -> Result<TrustAnchor> {
    let kind = RootOfTrust::from_name(&row.kind).ok_or_else(|| {
        Kind::Anchor.because(format!(
            "kind {:?} is none of shef-boot, board, provider, simulated",
            row.kind
        ))
    })?;
    TrustAnchor::new(&row.name, kind, row.debug != 0, &row.certificate)
        .map_err(|error| Kind::Anchor.because(error.to_string()))
}

/// Reference values of one entry.
pub struct Parsed {
    /// The CoRIM, when it is one.
    corim: Option<corim::Corim>,
    /// The reference values.
    pub reference: ReferenceValues,
}

/// Parses reference values; one of the signers must have signed a CoRIM.
///
/// # Errors
/// Malformed, not signed by a known signer, or expired.
pub fn reference(
    media_type: &str,
    content: &[u8],
    signers: &[CorimSigner],
    revocations: &Revocations,
    now: i64,
) -> Result<Parsed> {
    let bad = |text: String| Kind::Corim.because(text);
    if media_type == corim::MEDIA_TYPE {
        let trust = Trust {
            signers,
            deactivated: &BTreeSet::new(),
            revocations: Some(revocations),
            now,
            verify: aws_lc,
        };
        let corim = corim::read(content, &trust)
            .map_err(|error| bad(format!("{error} ({})", error.code())))?;
        return Ok(Parsed { reference: corim.reference.clone(), corim: Some(corim) });
    }
    let text = std::str::from_utf8(content).map_err(|_| bad("not UTF-8".into()))?;
    let reference = match media_type {
        "application/toml" => ReferenceValues::from_toml(text),
        "application/json" => ReferenceValues::from_json(text),
        other => {
            return Err(bad(format!(
                "content type {other}, expected one of {}",
                REFERENCE_TYPES.join(", ")
            )));
        }
    }
    .map_err(|error| bad(error.to_string()))?;
    Ok(Parsed { corim: None, reference })
}

/// Parses a signer of CoRIMs: one entry `[[signer]]` with the name that it is stored under.
///
/// # Errors
/// Malformed.
pub fn signer(name: &str, content: &str) -> Result<CorimSigner> {
    let list = CorimSigner::list_from_toml(content)
        .map_err(|error| Kind::Corim.because(error.to_string()))?;
    match <[CorimSigner; 1]>::try_from(list) {
        Ok([signer]) if signer.name() == name => Ok(signer),
        Ok([signer]) => Err(Kind::Corim
            .because(format!("the signer is named {:?}, expected {name:?}", signer.name()))),
        Err(list) => {
            Err(Kind::Corim.because(format!("expected one [[signer]], found {}", list.len())))
        }
    }
}

/// Checks a revocation, and converts its value to the canonical spelling.
///
/// # Errors
/// An unknown kind, or a malformed value.
pub fn check_revocation(row: &mut RevocationRow) -> Result<()> {
    row.value = revoked_value(&row.kind, &row.value)?;
    if row.reason.is_empty() || row.reason.len() > 256 {
        return Err(Kind::Revocation.because("reason must have 1 to 256 characters"));
    }
    Ok(())
}

/// A revocation with its value in the canonical spelling: versions before 0.2 stored values as
/// typed.
fn canonical(mut row: RevocationRow) -> RevocationRow {
    row.value = revoked_value(&row.kind, &row.value).unwrap_or(row.value);
    row
}

/// The revocation list of these rows. It comes from the live store and so is always current.
fn revocations(rows: &[RevocationRow]) -> Result<Revocations> {
    let mut list =
        Revocations { issued: i64::MIN, next_update: i64::MAX, ..Revocations::default() };
    for row in rows {
        let set = match row.kind.as_str() {
            "device" => &mut list.devices,
            "serial" => &mut list.serials,
            "certificate" => &mut list.certificates,
            "authority" => &mut list.authorities,
            "kernel" => &mut list.kernels,
            "shell" => &mut list.shells,
            "image" => &mut list.images,
            _ => &mut list.vendors,
        };
        set.insert(revoked_value(&row.kind, &row.value)?);
    }
    Ok(list)
}

/// The version of a CoRIM to remember, under each key of its signer.
fn versions(corim: &corim::Corim) -> Result<Vec<CorimVersion>> {
    let version = i64::try_from(corim.version).map_err(|_| {
        Kind::Corim.because(format!(
            "version {} of {}: expected at most {}",
            corim.version,
            corim.id,
            i64::MAX
        ))
    })?;
    Ok(corim
        .signer_keys
        .iter()
        .map(|key| CorimVersion { signer: signer_id(key), id: corim.id.clone(), version })
        .collect())
}

/// How the store names the signer of a CoRIM: by its key. Versions before 0.2 stored the signer's
/// registered name.
fn signer_id(key: &[u8; 32]) -> String {
    format!("key:{}", hex::encode(key))
}

/// Converts a version that was remembered under a signer's name (before 0.2) to the current key of
/// that name.
fn by_key(known: &CorimVersion, signers: &[CorimSigner]) -> Option<CorimVersion> {
    let signer = signers.iter().find(|signer| signer.name() == known.signer)?;
    Some(CorimVersion { signer: signer_id(&sha256(signer.key().as_bytes())), ..known.clone() })
}

/// Rejects a CoRIM if a higher version was ever known, even one that was removed or has expired.
fn newest<'a>(
    corim: &corim::Corim,
    known: impl IntoIterator<Item = &'a CorimVersion>,
) -> Result<()> {
    let signers =
        [signer_id(&corim.signer_keys[0]), signer_id(&corim.signer_keys[1]), corim.signer.clone()];
    let same =
        known.into_iter().filter(|known| known.id == corim.id && signers.contains(&known.signer));
    let highest = same.map(|known| known.version.unsigned_abs()).max().unwrap_or(0);
    if corim.version >= highest {
        return Ok(());
    }
    let error = corim::CorimError::Older {
        id: corim.id.clone(),
        signer: corim.signer.clone(),
        version: corim.version,
        known: highest,
    };
    Err(Kind::Corim.because(format!("{error} ({})", error.code())))
}

impl Collateral {
    /// Parses the stored collateral, as of `now`. Entries that have expired since, or whose signer
    /// is gone, have no effect; an unreadable entry is an error.
    ///
    /// # Errors
    /// The store holds data that this version cannot read.
    pub fn new(rows: &CollateralRows, now: i64) -> Result<Self> {
        let revoked = revocations(&rows.revocations)?;
        let anchors = rows.anchors.iter().map(anchor).collect::<Result<Vec<_>>>()?;
        let signers = rows
            .signers
            .iter()
            .map(|row| signer(&row.name, &row.content))
            .collect::<Result<Vec<_>>>()?;
        let mut values = ReferenceValues::default();
        let (mut corims, mut stored, mut ends) = (Vec::new(), Vec::new(), i64::MAX);
        // The content of an inactive CoRIM is not in force under another encoding of its signatures
        // either, whether or not its signer is still registered.
        let payload = |row: &CorimRow| corim::content(&row.content).ok();
        let are_corims = || rows.corims.iter().filter(|row| row.media_type == corim::MEDIA_TYPE);
        let inactive: BTreeSet<[u8; 32]> =
            are_corims().filter(|row| row.active == 0).filter_map(payload).collect();
        let twice = |row: &&CorimRow| {
            row.active != 0
                && !inactive.is_empty()
                && payload(row).is_some_and(|name| inactive.contains(&name))
        };
        let withdrawn: Vec<String> = are_corims().filter(twice).map(|row| row.id.clone()).collect();
        let mut watched = Watched {
            signer: signers.iter().filter_map(CorimSigner::not_after).min().unwrap_or(i64::MAX),
            corim: i64::MAX,
        };
        for row in &rows.corims {
            let counts = row.active != 0 && !withdrawn.contains(&row.id);
            let read = |at| reference(&row.media_type, &row.content, &signers, &revoked, at);
            let found = read(now);
            // An expired CoRIM counted when it was stored: older versions stay out all the same.
            let as_it_was = found.as_ref().err().and_then(|_| read(row.created).ok()?.corim);
            if let Some(corim) = as_it_was.as_ref().or_else(|| found.as_ref().ok()?.corim.as_ref())
            {
                stored.extend(versions(corim)?);
                if counts {
                    watched.signer = watched.signer.min(corim.signer_not_after.unwrap_or(i64::MAX));
                    watched.corim = watched.corim.min(corim.not_after.unwrap_or(i64::MAX));
                }
            }
            match found {
                _ if !counts => {}
                Ok(Parsed { corim: Some(corim), .. }) => {
                    ends = ends.min(corim.not_after.unwrap_or(i64::MAX));
                    corims.push((row, corim));
                }
                Ok(Parsed { corim: None, reference }) => values.extend(&reference),
                Err(problem) => {
                    tracing::warn!(id = %row.id, %problem, "reference values do not count");
                }
            }
        }
        for id in &withdrawn {
            tracing::warn!(%id, "a deactivated CoRIM does not count under another id");
        }
        let mut current = Vec::new();
        for (row, corim) in corims {
            match newest(&corim, rows.versions.iter().chain(&stored)) {
                Ok(()) => current.push(corim),
                Err(problem) => {
                    tracing::debug!(id = %row.id, %problem, "reference values do not count");
                }
            }
        }
        let corims = current;
        values.extend(
            &corim::merge(&corims).map_err(|error| Kind::Corim.because(error.to_string()))?,
        );
        let mut policies = BTreeMap::new();
        for PolicyRow { name, version, media_type, content, .. } in &rows.policies {
            let policy = StoredPolicy::parse(name, *version, media_type, content)
                .map(Arc::new)
                .map_err(|problem| problem.detail);
            if let Err(why) = &policy {
                tracing::warn!(%name, version, %why, "nothing is held against this policy");
            }
            policies.insert((name.clone(), *version), policy);
        }
        stored.extend(rows.versions.iter().filter_map(|known| by_key(known, &signers)));
        Ok(Self {
            generation: rows.generation,
            ends,
            watched,
            versions: stored,
            withdrawn,
            anchors: TrustAnchors::new(anchors),
            signers,
            signer_certificates: are_corims()
                .filter_map(|row| corim::certificate(&row.content))
                .collect(),
            reference: values,
            policies,
            revocations: revoked,
            revocation_rows: rows.revocations.iter().cloned().map(canonical).collect(),
        })
    }

    /// Checks new reference values together with the stored ones: they must be in force and
    /// contradict nothing.
    ///
    /// # Errors
    /// Malformed, not signed by a known signer, expired, or another version of a stored CoRIM.
    pub fn check(rows: &CollateralRows, row: &CorimRow, now: i64) -> Result<ReferenceValues> {
        let revoked = revocations(&rows.revocations)?;
        let signers = rows
            .signers
            .iter()
            .map(|row| signer(&row.name, &row.content))
            .collect::<Result<Vec<_>>>()?;
        let parsed = reference(&row.media_type, &row.content, &signers, &revoked, now)?;
        if let Some(new) = parsed.corim {
            let known = rows.corims.iter().filter(|known| known.active != 0 && known.id != row.id);
            let known = known.filter_map(|known| {
                reference(&known.media_type, &known.content, &signers, &revoked, now).ok()?.corim
            });
            let known: Vec<corim::Corim> = known.collect();
            corim::admit(&new, &known)
                .map_err(|error| Kind::Corim.because(format!("{error} ({})", error.code())))?;
            versions(&new)?;
            newest(&new, &rows.versions)?;
        }
        Ok(parsed.reference)
    }

    /// Checks that a CoRIM to activate is not older than a version that became known since.
    ///
    /// # Errors
    /// It is older. A CoRIM that has expired or whose signer is gone passes: it has no effect
    /// either way.
    pub fn check_activation(rows: &CollateralRows, id: &str, now: i64) -> Result<()> {
        let revoked = revocations(&rows.revocations)?;
        let signers = rows
            .signers
            .iter()
            .map(|row| signer(&row.name, &row.content))
            .collect::<Result<Vec<_>>>()?;
        let row = rows.corims.iter().find(|row| row.id == id);
        let corim = row.and_then(|row| {
            reference(&row.media_type, &row.content, &signers, &revoked, now).ok()?.corim
        });
        corim.map_or(Ok(()), |corim| newest(&corim, &rows.versions))
    }

    /// A policy by `name` (its newest version) or `name@version`.
    ///
    /// # Errors
    /// There is no such policy, or it cannot be used; an older version never replaces it.
    pub fn policy(&self, id: &str) -> Result<Arc<StoredPolicy>> {
        let none = || Kind::NotFound.because(format!("there is no policy {id}"));
        let (name, version) = match id.split_once('@') {
            Some((name, version)) => (name, Some(version.parse::<i64>().map_err(|_| none())?)),
            None => (id, None),
        };
        let found = match version {
            Some(version) => self.policies.get(&(name.to_owned(), version)),
            None => self
                .policies
                .range((name.to_owned(), 0)..=(name.to_owned(), i64::MAX))
                .next_back()
                .map(|(_, policy)| policy),
        };
        let policy = found.ok_or_else(none)?;
        policy.clone().map_err(|why| Kind::Policy.because(format!("policy {id}: {why}")))
    }

    /// Appraises evidence. It may take long: use
    /// [`WorkQueue::work`](crate::work_queue::WorkQueue::work).
    #[must_use]
    pub fn appraise(
        &self,
        policy: &StoredPolicy,
        input: &AppraisalInput<'_>,
        chains: &dyn ChainCache,
        rego: &dyn Evaluate,
    ) -> Outcome {
        shef_verify::appraise(&AppraisalRequest {
            evidence: (&input.evidence.0.evidence).into(),
            certificates: &[],
            anchors: &self.anchors,
            reference: &self.reference,
            policy: &policy.policy,
            revocations: Some(&self.revocations),
            layer: input.layer,
            nonce: input.nonce,
            audience: input.audience,
            challenged: input.challenged,
            now: input.now,
            chains: Some(chains),
            own_keys: input.own_keys,
            shown_svn: input.shown_svn,
            verify: aws_lc,
            rego: Some(rego),
        })
    }

    /// Whether a revocation names one of the anchors or reference values.
    #[must_use]
    pub fn names(&self, kind: &str, value: &str) -> bool {
        let reference = &self.reference;
        let is = |bytes: &[u8]| hex::encode(bytes) == value;
        match kind {
            "kernel" => reference.kernels.iter().any(|known| is(&known.digest)),
            "shell" => reference.shells.iter().any(|known| is(&known.digest)),
            "image" => reference.images.iter().any(|known| is(&known.digest)),
            "vendor" => {
                let mut signers = self
                    .signers
                    .iter()
                    .map(CorimSigner::key)
                    .chain(self.signer_certificates.iter().map(Certificate::key));
                reference.images.iter().any(|known| is(&known.vendor))
                    || signers.any(|key| is(&sha256(key.as_bytes())))
            }
            _ => {
                let anchors = self.anchors.list().iter().map(TrustAnchor::certificate);
                let chains = self
                    .signers
                    .iter()
                    .filter_map(CorimSigner::certificate)
                    .chain(&self.signer_certificates);
                let key = |signer: &CorimSigner| {
                    kind == "authority" && is(&sha256(signer.key().as_bytes()))
                };
                anchors.chain(chains).any(|certificate| certificate_names(certificate, kind, value))
                    || self.signers.iter().any(key)
            }
        }
    }

    /// Revocations that apply to this evidence, to explain a denial.
    #[must_use]
    pub fn revocations_of(&self, evidence: &Received) -> Vec<&RevocationRow> {
        let names = evidence.claims().map(claimed_names).unwrap_or_default();
        self.revocation_rows
            .iter()
            .filter(|row| {
                names.iter().any(|(kind, value)| row.kind == *kind && row.value == *value)
            })
            .collect()
    }
}

/// Everything in the claims that a revocation can name: kinds and values.
fn claimed_names(claims: &Claims) -> Vec<(&'static str, String)> {
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
fn certificate_names(certificate: &Certificate, kind: &str, value: &str) -> bool {
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
