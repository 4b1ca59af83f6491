//! A bundle: evidence and all inputs of its appraisal, in one signed file, for an offline auditor.
//!
//! The maker signs the contents and the time of creation; that time is the maker's word.
//! [`Bundle::appraise`] gives the appraisal as of that time, or as of any later one with a newer
//! revocation list. A bundle without evidence carries trust data into a closed network.

use std::collections::BTreeSet;

use shef_proto::cbor::{self, CborError, Fields, Limits, Value};
use shef_proto::cose::{self, ContentType, CoseError, Form, Sign1, SigningKey, VerifyFn};
use shef_proto::evidence::{AUDIENCE_MAX, Layer, MAX_EVIDENCE, NONCE_MAX, NONCE_MIN};
use shef_proto::hpke_suite::PublicKey;

use crate::appraise::{AppraisalRequest, Outcome, appraise};
use crate::chain::TrustAnchors;
use crate::corim::{self, CorimError, CorimSigner, Trust};
use crate::files::PolicyError;
use crate::name;
use crate::policy::AppraisalPolicy;
use crate::reference::{ReferenceValues, TrustAnchor};
use crate::rego::{Evaluate, Rego};
use crate::revocation::Revocations;

/// Maximum size of a bundle.
pub const MAX_BUNDLE: usize = 8 << 20;
/// Maximum size of one of its texts.
const MAX_TEXT: usize = 4 << 20;
/// Maximum number of CoRIMs in a bundle.
const MAX_CORIMS: usize = 256;

/// Form of the signed message.
pub const FORM: Form = Form {
    tags: &[cose::TAG_SIGN1],
    content_type: ContentType::Media("application/shef-bundle+cbor"),
    domain: b"shef-bundle/1",
    max_len: MAX_BUNDLE,
    x5chain: false,
};

mod key {
    pub const VERSION: i64 = 1;
    pub const CREATED: i64 = 2;
    pub const LAYER: i64 = 3;
    pub const EVIDENCE: i64 = 4;
    pub const CERTIFICATES: i64 = 5;
    pub const NONCE: i64 = 6;
    pub const AUDIENCE: i64 = 7;
    pub const CHALLENGED: i64 = 8;
    pub const ANCHORS: i64 = 10;
    pub const REFERENCE: i64 = 11;
    pub const SIGNERS: i64 = 12;
    pub const CORIMS: i64 = 13;
    pub const DEACTIVATED: i64 = 14;
    pub const POLICY: i64 = 15;
    pub const REGO: i64 = 16;
    pub const REVOCATIONS: i64 = 17;
}

shef_proto::coded! {
    /// Why a bundle is refused.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum BundleError {
        /// Not a signed message of this form, or not signed by the expected key.
        #[error(transparent)]
        Cose(#[from] CoseError) => (error) match error {
            CoseError::Signature => "SHEF-ATT-101",
            CoseError::HighS => error.code(),
            _ => "SHEF-ATT-100",
        },
        /// Invalid policy, anchors, reference values or revocation list in the bundle.
        #[error(transparent)]
        Part(#[from] PolicyError) => (error) error.code(),
        /// A CoRIM in it is refused.
        #[error(transparent)]
        Corim(#[from] CorimError) => (error) error.code(),
        /// Not the fields of a bundle.
        #[error(transparent)]
        Cbor(#[from] CborError) = "SHEF-ATT-100": "not a bundle of the form",
            "The file is not a signed bundle of this version: it was cut or changed, or is something else.",
        /// An unknown version.
        #[error("version {found} of the format is not known here")]
        Version {
            /// Its number.
            found: u64,
        } = "SHEF-ATT-100",
        /// It holds no evidence to appraise.
        #[error("the bundle holds no evidence")]
        NoEvidence = "SHEF-ATT-102": "bundle holds no evidence", "It carries trust data only: `shef bundle import` installs them.",
    }
    also {
        "SHEF-ATT-101": "bundle is not signed by the expected key", "Give the key of whoever made the bundle; or the file was changed.",
    }
}

/// Evidence and its challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundledEvidence {
    /// The expected layer.
    pub layer: Layer,
    /// The evidence as received.
    pub evidence: Vec<u8>,
    /// Certificates sent beside it, leaf first.
    pub certificates: Vec<Vec<u8>>,
    /// Nonce of the challenge.
    pub nonce: Vec<u8>,
    /// Audience of the challenge.
    pub audience: String,
    /// Time of the challenge, seconds since 1970.
    pub challenged: Option<i64>,
}

/// Contents of a bundle; texts as their owners wrote them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle {
    /// Time of creation, seconds since 1970, by the maker's word.
    pub created: i64,
    /// Evidence, if any.
    pub evidence: Option<BundledEvidence>,
    /// Trust anchors (TOML).
    pub anchors: String,
    /// Reference values (TOML).
    pub reference: String,
    /// Signers of the CoRIMs (TOML).
    pub signers: String,
    /// Signed CoRIMs.
    pub corims: Vec<Vec<u8>>,
    /// Deactivated CoRIMs, by digest in hexadecimal.
    pub deactivated: BTreeSet<String>,
    /// Policy (TOML).
    pub policy: String,
    /// Policy in Rego.
    pub rego: Option<String>,
    /// Revocation list (TOML).
    pub revocations: Option<String>,
}

impl Bundle {
    /// The signed bundle.
    #[must_use]
    pub fn sign(&self, signer: &SigningKey) -> Vec<u8> {
        let list = |items: &[Vec<u8>]| {
            Value::Array(items.iter().map(|item| item.as_slice().into()).collect())
        };
        let mut map = vec![
            (key::VERSION, Value::Uint(1)),
            (key::CREATED, Value::int(self.created)),
            (key::ANCHORS, self.anchors.as_str().into()),
            (key::REFERENCE, self.reference.as_str().into()),
            (key::SIGNERS, self.signers.as_str().into()),
            (key::CORIMS, list(&self.corims)),
            (
                key::DEACTIVATED,
                Value::Array(
                    self.deactivated.iter().map(|digest| digest.as_str().into()).collect(),
                ),
            ),
            (key::POLICY, self.policy.as_str().into()),
        ];
        if let Some(e) = &self.evidence {
            map.extend([
                (key::LAYER, e.layer.name().into()),
                (key::EVIDENCE, e.evidence.as_slice().into()),
                (key::CERTIFICATES, list(&e.certificates)),
                (key::NONCE, e.nonce.as_slice().into()),
                (key::AUDIENCE, e.audience.as_str().into()),
            ]);
            map.extend(e.challenged.map(|at| (key::CHALLENGED, Value::int(at))));
        }
        map.extend(self.rego.as_deref().map(|text| (key::REGO, text.into())));
        map.extend(self.revocations.as_deref().map(|text| (key::REVOCATIONS, text.into())));
        cose::sign(&FORM, signer, &Value::map(map).encode(), &[])
    }

    /// Opens a bundle that `maker` signed.
    ///
    /// # Errors
    /// Another signer, a changed byte, or malformed fields.
    pub fn open(bytes: &[u8], maker: &PublicKey, verify: VerifyFn) -> Result<Self, BundleError> {
        const WHAT: &str = "bundle";
        let signed = Sign1::parse(&FORM, bytes)?;
        signed.verify_with(|message, signature| verify(maker, message, signature))?;
        let mut f = Fields::new(cbor::read(signed.payload(), &Limits::bytes(MAX_BUNDLE))?, WHAT)?;
        match f.uint(key::VERSION, u64::MAX)? {
            1 => {}
            found => return Err(BundleError::Version { found }),
        }
        let created = time(&mut f, key::CREATED)?
            .ok_or(CborError::Missing { what: WHAT, key: key::CREATED })?;
        let evidence = match f.optional(key::EVIDENCE) {
            None => None,
            Some(Value::Bytes(evidence)) if evidence.len() <= MAX_EVIDENCE => {
                let layer = f.text(key::LAYER, 1..=32)?;
                let layer = Layer::from_name(layer).ok_or_else(|| f.bad(key::LAYER, "a layer"))?;
                Some(BundledEvidence {
                    layer,
                    evidence: evidence.into(),
                    certificates: byte_strings(&mut f, key::CERTIFICATES, 4)?,
                    nonce: f.bytes(key::NONCE, NONCE_MIN..=NONCE_MAX)?.into(),
                    audience: f.text(key::AUDIENCE, 1..=AUDIENCE_MAX)?.into(),
                    challenged: time(&mut f, key::CHALLENGED)?,
                })
            }
            Some(_) => return Err(f.bad(key::EVIDENCE, "evidence").into()),
        };
        let Value::Array(list) = f.take(key::DEACTIVATED)? else {
            return Err(f.bad(key::DEACTIVATED, "a list").into());
        };
        let mut deactivated = BTreeSet::new();
        for digest in list {
            match digest {
                Value::Text(digest)
                    if name::digest(digest).as_deref() == Some(digest)
                        && deactivated
                            .last()
                            .is_none_or(|last: &String| last.as_str() < digest) =>
                {
                    deactivated.insert(digest.to_owned());
                }
                _ => return Err(f.bad(key::DEACTIVATED, "a sorted list of digests").into()),
            }
        }
        let mut optional = |key| match f.optional(key) {
            None => Ok(None),
            Some(Value::Text(text)) if text.len() <= MAX_TEXT => Ok(Some(text.into())),
            Some(_) => {
                Err(CborError::Field { what: WHAT, key, expected: "a text of the right length" })
            }
        };
        let (rego, revocations) = (optional(key::REGO)?, optional(key::REVOCATIONS)?);
        let bundle = Self {
            created,
            evidence,
            anchors: f.file(key::ANCHORS, 0..=MAX_TEXT)?.into(),
            reference: f.file(key::REFERENCE, 0..=MAX_TEXT)?.into(),
            signers: f.file(key::SIGNERS, 0..=MAX_TEXT)?.into(),
            corims: byte_strings(&mut f, key::CORIMS, MAX_CORIMS)?,
            deactivated,
            policy: f.file(key::POLICY, 0..=MAX_TEXT)?.into(),
            rego,
            revocations,
        };
        f.finish()?;
        Ok(bundle)
    }

    /// The revocation list in it.
    ///
    /// # Errors
    /// It is malformed.
    pub fn revocation_list(&self) -> Result<Option<Revocations>, PolicyError> {
        self.revocations.as_deref().map(Revocations::from_toml).transpose()
    }

    /// The policy in it, with its Rego part.
    ///
    /// # Errors
    /// It is malformed.
    pub fn appraisal_policy(&self) -> Result<AppraisalPolicy, PolicyError> {
        let policy = AppraisalPolicy::from_toml(&self.policy)?;
        Ok(match &self.rego {
            Some(text) => policy.with_rego(Rego::new(text)?),
            None => policy,
        })
    }

    /// The trust anchors in it.
    ///
    /// # Errors
    /// They are malformed.
    pub fn trust_anchors(&self) -> Result<TrustAnchors, PolicyError> {
        TrustAnchor::list_from_toml(&self.anchors).map(TrustAnchors::new)
    }

    /// All reference values in force at `now`, including those of its CoRIMs.
    ///
    /// # Errors
    /// They are malformed, or a CoRIM is refused at `now`.
    pub fn reference_values(
        &self,
        now: i64,
        revocations: Option<&Revocations>,
        verify: VerifyFn,
    ) -> Result<ReferenceValues, BundleError> {
        let mut reference = ReferenceValues::from_toml(&self.reference)?;
        let signers = CorimSigner::list_from_toml(&self.signers)?;
        let trust =
            Trust { signers: &signers, deactivated: &self.deactivated, revocations, now, verify };
        let corims = self
            .corims
            .iter()
            .map(|bytes| corim::read(bytes, &trust))
            .collect::<Result<Vec<_>, _>>()?;
        reference.extend([&corim::merge(&corims)?]);
        Ok(reference)
    }

    /// Appraises the evidence as of `now`, with the bundle's revocation list and the entries of
    /// another one: an old list or an empty one lifts nothing that the bundle revokes. `rego` runs
    /// the bundle's Rego policy, which its maker wrote.
    ///
    /// The evidence has the age that it had when the bundle was made: it does not grow older in an
    /// archive.
    ///
    /// # Errors
    /// There is no evidence, or a part of the bundle is malformed.
    pub fn appraise(
        &self,
        now: i64,
        more: Option<&Revocations>,
        verify: VerifyFn,
        rego: Option<&dyn Evaluate>,
    ) -> Result<Outcome, BundleError> {
        let e = self.evidence.as_ref().ok_or(BundleError::NoEvidence)?;
        let revocations = match (self.revocation_list()?, more) {
            (Some(own), Some(more)) => Some(own.with(more)),
            (own, more) => own.or_else(|| more.cloned()),
        };
        let revocations = revocations.as_ref();
        let (anchors, policy) = (self.trust_anchors()?, self.appraisal_policy()?);
        let reference = self.reference_values(now, revocations, verify)?;
        let age = e.challenged.map(|at| self.created.saturating_sub(at));
        let request = AppraisalRequest::new(
            &e.evidence,
            &anchors,
            &reference,
            &policy,
            e.layer,
            &e.nonce,
            &e.audience,
            now,
        );
        Ok(appraise(&AppraisalRequest {
            certificates: &e.certificates,
            revocations,
            challenged: age.map(|age| now.saturating_sub(age)),
            verify,
            rego,
            ..request
        }))
    }
}

fn time(f: &mut Fields<'_>, key: i64) -> Result<Option<i64>, CborError> {
    match f.optional(key) {
        None => Ok(None),
        Some(value) => value.as_int().map(Some).ok_or_else(|| f.bad(key, "a time")),
    }
}

fn byte_strings(f: &mut Fields<'_>, key: i64, most: usize) -> Result<Vec<Vec<u8>>, CborError> {
    let wrong = |f: &Fields<'_>| f.bad(key, "a list of byte strings, not too long");
    let Value::Array(list) = f.take(key)? else { return Err(wrong(f)) };
    if list.len() > most {
        return Err(wrong(f));
    }
    let mut out = Vec::with_capacity(list.len());
    for item in list {
        let Value::Bytes(bytes) = item else { return Err(wrong(f)) };
        out.push(bytes.to_vec());
    }
    Ok(out)
}
