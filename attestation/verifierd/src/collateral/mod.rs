//! The collateral of a tenant, read once for each generation: trust anchors, signers, reference
//! values, policies, revocations.

mod policy;
mod read;
mod versions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use shef_proto::cert::Certificate;
use shef_verify::corim::{self, CorimSigner};
use shef_verify::crypto::aws_lc;
use shef_verify::rego::Evaluate;
use shef_verify::{
    AppraisalRequest, ChainCache, Outcome, ReferenceValues, Revocations, TrustAnchor, TrustAnchors,
};

use crate::appraiser::{AppraisalInput, Received, certificate_names, claimed_names};
use crate::problem::{Because, Kind, Result};
use crate::secrets::sha256;
use crate::store::{CollateralRows, CorimRow, CorimVersion, RevocationRow};

pub use policy::{POLICY_JSON, POLICY_TOML, POLICY_TYPES, StoredPolicy};
pub use read::{Ahead, Before, REFERENCE_TYPES, anchor, check_revocation, signer};
use read::{Entries, Entry, Reader, canonical};
use versions::{Known, by_key, versions};

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
    /// Versions of the stored CoRIMs that the store does not remember yet.
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
    entries: Entries,
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

impl Collateral {
    /// Parses the stored collateral, as of `now`. Entries that have expired since, or whose signer
    /// is gone, have no effect; an unreadable entry is an error. Rows that `before` has read are not
    /// read again.
    ///
    /// # Errors
    /// The store holds data that this version cannot read.
    pub fn new(rows: &CollateralRows, now: i64, before: Before<'_>) -> Result<Self> {
        let mut reader = Reader::new(rows, now, before)?;
        let anchors =
            rows.anchors.iter().map(|row| reader.anchor(row)).collect::<Result<Vec<_>>>()?;
        let entries: Vec<(&CorimRow, Arc<Entry>)> =
            rows.corims.iter().map(|row| (row, reader.reference(row))).collect();
        // The content of an inactive CoRIM is not in force under another encoding of its signatures
        // either, whether or not its signer is still registered.
        let inactive: BTreeSet<[u8; 32]> = entries
            .iter()
            .filter(|(row, _)| row.active == 0)
            .filter_map(|(_, entry)| entry.payload)
            .collect();
        let twice = |entry: &Entry| entry.payload.is_some_and(|name| inactive.contains(&name));
        let mut watched = Watched {
            signer: reader
                .signers
                .iter()
                .filter_map(CorimSigner::not_after)
                .min()
                .unwrap_or(i64::MAX),
            corim: i64::MAX,
        };
        let (mut withdrawn, mut plain, mut corims) = (Vec::new(), Vec::new(), Vec::new());
        let (mut stored, mut ends) = (Vec::new(), i64::MAX);
        for (row, entry) in &entries {
            let counts = row.active != 0 && !twice(entry);
            if row.active != 0 && !counts {
                tracing::warn!(id = %row.id, "a deactivated CoRIM does not count under another id");
                withdrawn.push(row.id.clone());
            }
            if let Some(corim) = entry.stored.as_ref().or_else(|| entry.corim()) {
                stored.extend(versions(corim)?);
                if counts {
                    watched.signer = watched.signer.min(corim.signer_not_after.unwrap_or(i64::MAX));
                    watched.corim = watched.corim.min(corim.not_after.unwrap_or(i64::MAX));
                }
            }
            match entry.values() {
                _ if !counts => {}
                Ok((_, Some(corim))) => {
                    ends = ends.min(corim.not_after.unwrap_or(i64::MAX));
                    corims.push((row, corim));
                }
                Ok((values, None)) => plain.push(values),
                Err(problem) => {
                    tracing::warn!(id = %row.id, %problem, "reference values do not count");
                }
            }
        }
        let known = Known::new(rows.versions.iter().chain(&stored));
        corims.retain(|(row, corim)| match known.admit(corim) {
            Ok(()) => true,
            Err(problem) => {
                tracing::debug!(id = %row.id, %problem, "reference values do not count");
                false
            }
        });
        let signed = corim::merge(corims.iter().map(|(_, corim)| *corim))
            .map_err(|error| Kind::Corim.because(error.to_string()))?;
        let mut reference = ReferenceValues::default();
        reference.extend(plain.into_iter().chain([&signed]));
        let mut policies = BTreeMap::new();
        for row in &rows.policies {
            let key = (row.name.clone(), row.version);
            let read = before
                .collateral
                .and_then(|before| before.policies.get(&key)?.as_ref().ok())
                .filter(|known| known.sha256[..] == row.sha256)
                .map(|known| Ok(Arc::clone(known)));
            let policy = read.unwrap_or_else(|| {
                StoredPolicy::parse(&row.name, row.version, &row.media_type, &row.content)
                    .map(Arc::new)
                    .map_err(|problem| problem.detail)
            });
            if let Err(why) = &policy {
                tracing::warn!(policy = %row.name, version = row.version, %why, "nothing is held against this policy");
            }
            policies.insert(key, policy);
        }
        stored.extend(by_key(&rows.versions, &reader.signers));
        let known = Known::new(&rows.versions);
        stored.retain(|version| !known.holds(version));
        Ok(Self {
            generation: rows.generation,
            ends,
            watched,
            versions: stored,
            withdrawn,
            anchors: TrustAnchors::new(anchors),
            signers: reader.signers,
            signer_certificates: entries
                .iter()
                .filter_map(|(_, entry)| entry.certificate.clone())
                .collect(),
            reference,
            policies,
            revocations: reader.revoked,
            revocation_rows: rows.revocations.iter().cloned().map(canonical).collect(),
            entries: reader.entries,
        })
    }

    /// Reads reference values that are to be added to this collateral.
    #[must_use]
    pub fn read_ahead(&self, row: &CorimRow, now: i64) -> Ahead {
        Reader::ahead(&self.entries, (&self.signers, &self.revocations), row, now)
    }

    /// Checks new reference values together with the stored ones: they must be in force and
    /// contradict nothing.
    ///
    /// # Errors
    /// Malformed, not signed by a known signer, expired, or another version of a stored CoRIM.
    pub fn check(
        rows: &CollateralRows,
        row: &CorimRow,
        now: i64,
        before: Before<'_>,
    ) -> Result<ReferenceValues> {
        let mut reader = Reader::new(rows, now, before)?;
        let entry = reader.reference(row);
        let (values, corim) = entry.values()?;
        if let Some(new) = corim {
            let others = rows.corims.iter().filter(|known| known.active != 0 && known.id != row.id);
            let others: Vec<_> = others.map(|known| reader.reference(known)).collect();
            corim::admit(new, others.iter().filter_map(|other| other.corim()))
                .map_err(|error| Kind::Corim.because(format!("{error} ({})", error.code())))?;
            versions(new)?;
            Known::new(&rows.versions).admit(new)?;
        }
        Ok(values.clone())
    }

    /// Checks that a CoRIM to activate is not older than a version that became known since.
    ///
    /// # Errors
    /// It is older. A CoRIM that has expired or whose signer is gone passes: it has no effect
    /// either way.
    pub fn check_activation(
        rows: &CollateralRows,
        id: &str,
        now: i64,
        before: Before<'_>,
    ) -> Result<()> {
        let mut reader = Reader::new(rows, now, before)?;
        let entry = rows.corims.iter().find(|row| row.id == id).map(|row| reader.reference(row));
        match entry.as_ref().and_then(|entry| entry.corim()) {
            Some(corim) => Known::new(&rows.versions).admit(corim),
            None => Ok(()),
        }
    }

    /// The trust anchors.
    #[must_use]
    pub fn anchors(&self) -> &[TrustAnchor] {
        self.anchors.list()
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
            evidence: input.evidence.parsed().into(),
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
