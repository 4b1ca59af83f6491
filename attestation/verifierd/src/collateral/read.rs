//! Rows of collateral, parsed and verified once.
//!
//! Every change reads the whole collateral of its tenant, under the database's lock. A row that has
//! not changed keeps what was read of it, as long as the signers and their revocations stay the
//! same: reading costs a digest for each row.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use shef_proto::cert::Certificate;
use shef_proto::evidence::RootOfTrust;
use shef_verify::corim::{self, CorimSigner, Trust};
use shef_verify::crypto::aws_lc;
use shef_verify::{ReferenceValues, Revocations, TrustAnchor};

use super::Collateral;
use crate::problem::{Because, Kind, Result};
use crate::secrets::sha256;
use crate::store::{AnchorRow, CollateralRows, CorimRow, RevocationRow, SignerRow, revoked_value};

/// Media types of reference values: signed CoRIMs, and plain lists on the operator's authority.
pub const REFERENCE_TYPES: &[&str] = &[corim::MEDIA_TYPE, "application/toml", "application/json"];

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
pub(super) fn canonical(mut row: RevocationRow) -> RevocationRow {
    row.value = revoked_value(&row.kind, &row.value).unwrap_or(row.value);
    row
}

/// The revocation list of these rows. It comes from the live store and so is always current.
pub(super) fn revocations(rows: &[RevocationRow]) -> Result<Revocations> {
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

/// Reference values of one row.
#[derive(Debug)]
pub(super) struct Entry {
    /// The reference values and the CoRIM, if it is one; or why they do not count, for good.
    found: std::result::Result<(ReferenceValues, Option<corim::Corim>), String>,
    /// The CoRIM as it was when it was stored, if it counts no more: older versions stay out all
    /// the same.
    pub(super) stored: Option<corim::Corim>,
    /// SHA-256 of its payload, which names a CoRIM in any encoding of its signatures.
    pub(super) payload: Option<[u8; 32]>,
    /// The certificate in it.
    pub(super) certificate: Option<Certificate>,
}

impl Entry {
    /// The reference values, and the CoRIM if it is one.
    ///
    /// # Errors
    /// Malformed, not signed by a known signer, or expired.
    pub(super) fn values(&self) -> Result<(&ReferenceValues, Option<&corim::Corim>)> {
        match &self.found {
            Ok((values, corim)) => Ok((values, corim.as_ref())),
            Err(why) => Err(Kind::Corim.because(why.clone())),
        }
    }

    /// The CoRIM, if it is in force.
    pub(super) fn corim(&self) -> Option<&corim::Corim> {
        self.found.as_ref().ok()?.1.as_ref()
    }

    /// Whether it would be read in the same way at `now`.
    fn holds(&self, now: i64) -> bool {
        self.corim().and_then(|corim| corim.not_after).is_none_or(|end| now <= end)
    }
}

/// What was read of the rows of a tenant.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Digest of the signers, and of the revocations that can concern them.
    trust: [u8; 32],
    at: i64,
    anchors: HashMap<[u8; 32], TrustAnchor>,
    signers: HashMap<[u8; 32], CorimSigner>,
    reference: HashMap<[u8; 32], Arc<Entry>>,
}

/// Reference values that were read before they are stored: parsing them takes longer than the
/// database's lock may be held.
#[derive(Debug)]
pub struct Ahead {
    trust: [u8; 32],
    at: i64,
    key: [u8; 32],
    entry: Arc<Entry>,
}

/// What is known of rows that are about to be read: nothing by default.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before<'a> {
    /// Collateral that was read before.
    pub collateral: Option<&'a Collateral>,
    /// Reference values that were read ahead.
    pub ahead: Option<&'a Ahead>,
}

impl<'a> Before<'a> {
    fn entries(&self) -> Option<&'a Entries> {
        self.collateral.map(|collateral| &collateral.entries)
    }
}

impl<'a> From<Option<&'a Collateral>> for Before<'a> {
    fn from(collateral: Option<&'a Collateral>) -> Self {
        Self { collateral, ahead: None }
    }
}

/// Digest of some values, each with its length.
fn digest(parts: &[&[u8]]) -> [u8; 32] {
    let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u64).to_be_bytes());
        bytes.extend_from_slice(part);
    }
    sha256(&bytes)
}

/// Digest of reference values as they are stored.
fn name_of(row: &CorimRow) -> [u8; 32] {
    digest(&[row.media_type.as_bytes(), &row.created.to_be_bytes(), &row.content])
}

/// Reads rows, or finds what `before` has read of them.
pub(super) struct Reader<'a> {
    before: Before<'a>,
    /// What it has read.
    pub(super) entries: Entries,
    /// The signers.
    pub(super) signers: Vec<CorimSigner>,
    /// The revocations.
    pub(super) revoked: Revocations,
}

impl<'a> Reader<'a> {
    /// Reads the signers and revocations of some collateral.
    ///
    /// # Errors
    /// A row that this version cannot read.
    pub(super) fn new(rows: &CollateralRows, now: i64, before: Before<'a>) -> Result<Self> {
        let revoked = revocations(&rows.revocations)?;
        let mut reader = Self {
            before,
            entries: Entries { at: now, ..Entries::default() },
            signers: Vec::with_capacity(rows.signers.len()),
            revoked,
        };
        let mut trust = Vec::new();
        for row in &rows.signers {
            let key = digest(&[row.name.as_bytes(), row.content.as_bytes()]);
            let signer = reader.signer(key, row)?;
            reader.signers.push(signer);
            trust.extend_from_slice(&key);
        }
        let concerns = |row: &&RevocationRow| {
            !["device", "kernel", "shell", "image"].contains(&row.kind.as_str())
        };
        for row in rows.revocations.iter().filter(concerns) {
            trust.extend_from_slice(&digest(&[row.kind.as_bytes(), row.value.as_bytes()]));
        }
        reader.entries.trust = sha256(&trust);
        Ok(reader)
    }

    fn signer(&mut self, key: [u8; 32], row: &SignerRow) -> Result<CorimSigner> {
        let known = self.before.entries().and_then(|before| before.signers.get(&key)).cloned();
        let read = known.map_or_else(|| signer(&row.name, &row.content), Ok)?;
        self.entries.signers.insert(key, read.clone());
        Ok(read)
    }

    /// A trust anchor.
    ///
    /// # Errors
    /// See [`anchor`].
    pub(super) fn anchor(&mut self, row: &AnchorRow) -> Result<TrustAnchor> {
        let debug = [u8::from(row.debug != 0)];
        let key = digest(&[row.name.as_bytes(), row.kind.as_bytes(), &debug, &row.certificate]);
        let known = self.before.entries().and_then(|before| before.anchors.get(&key)).cloned();
        let read = known.map_or_else(|| anchor(row), Ok)?;
        self.entries.anchors.insert(key, read.clone());
        Ok(read)
    }

    /// Reads reference values that may become a row of this collateral.
    pub(super) fn ahead(
        before: &Entries,
        (signers, revoked): (&[CorimSigner], &Revocations),
        row: &CorimRow,
        now: i64,
    ) -> Ahead {
        let mut reader = Self {
            before: Before::default(),
            entries: Entries { trust: before.trust, at: now, ..Entries::default() },
            signers: signers.to_vec(),
            revoked: revoked.clone(),
        };
        let (key, entry) = (name_of(row), reader.reference(row));
        Ahead { trust: before.trust, at: now, key, entry }
    }

    /// Reference values.
    pub(super) fn reference(&mut self, row: &CorimRow) -> Arc<Entry> {
        let (key, now, trust) = (name_of(row), self.entries.at, self.entries.trust);
        let known = self
            .before
            .entries()
            .filter(|before| before.trust == trust && before.at <= now)
            .and_then(|before| before.reference.get(&key));
        let ahead = self
            .before
            .ahead
            .filter(|ahead| ahead.key == key && ahead.trust == trust && ahead.at <= now)
            .map(|ahead| &ahead.entry);
        let known = known.or(ahead).filter(|entry| entry.holds(now));
        let entry = known.map_or_else(|| Arc::new(self.read(row)), Arc::clone);
        self.entries.reference.insert(key, Arc::clone(&entry));
        entry
    }

    fn read(&self, row: &CorimRow) -> Entry {
        let read = |now| self.parse(&row.media_type, &row.content, now);
        let found = read(self.entries.at);
        let stored =
            if found.is_err() { read(row.created).ok().and_then(|found| found.1) } else { None };
        let signed = row.media_type == corim::MEDIA_TYPE;
        Entry {
            payload: signed.then(|| corim::content(&row.content).ok()).flatten(),
            certificate: signed.then(|| corim::certificate(&row.content)).flatten(),
            found: found.map_err(|problem| problem.detail),
            stored,
        }
    }

    fn parse(
        &self,
        media_type: &str,
        content: &[u8],
        now: i64,
    ) -> Result<(ReferenceValues, Option<corim::Corim>)> {
        let bad = |text: String| Kind::Corim.because(text);
        if media_type == corim::MEDIA_TYPE {
            let trust = Trust {
                signers: &self.signers,
                deactivated: &BTreeSet::new(),
                revocations: Some(&self.revoked),
                now,
                verify: aws_lc,
            };
            let corim = corim::read(content, &trust)
                .map_err(|error| bad(format!("{error} ({})", error.code())))?;
            return Ok((corim.reference.clone(), Some(corim)));
        }
        let text = std::str::from_utf8(content).map_err(|_| bad("not UTF-8".into()))?;
        let values = match media_type {
            "application/toml" => ReferenceValues::from_toml(text),
            "application/json" => ReferenceValues::from_json(text),
            other => {
                return Err(bad(format!(
                    "content type {other}, expected one of {}",
                    REFERENCE_TYPES.join(", ")
                )));
            }
        };
        Ok((values.map_err(|error| bad(error.to_string()))?, None))
    }
}
