//! Reference values as signed CoRIM (draft-ietf-rats-corim-11): signers and their authority,
//! reading, and writing.
//!
//! | what | class | measurements |
//! |---|---|---|
//! | kernel | vendor `shef`, model `security-kernel`, layer 1 | `kernel`: name, exact SVN, SHA-256 |
//! | shell | vendor `shef`, model `shell`, layer 0 | `shell`: name, measurement |
//! | image | class id SHA-256 of the IP vendor's key, vendor `shef`, model = accelerator, layer 2 | `image`: name, exact SVN, digest; `configuration`, `design`: digests |
//!
//! The encoding is checked to be deterministic first, and the contents are read only after the
//! signature has been verified.

mod envelope;
mod signer;
mod triples;
mod write;

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use corim::types::corim::CorimId;
use corim::types::signed::decode_signed_corim;
use sha2::{Digest, Sha256};
use shef_proto::cbor::{self, CborError, Limits, Value};
use shef_proto::cert::Certificate;
use shef_proto::cose::VerifyFn;
use shef_proto::crypto;

use crate::reference::ReferenceValues;
use crate::revocation::Revocations;

pub use signer::{CorimSigner, vendor_id};
pub use write::{Describe, sign, write, write_signed};

/// Maximum size of a signed CoRIM.
pub const MAX_CORIM: usize = 1 << 20;
/// Media type of a signed CoRIM.
pub const MEDIA_TYPE: &str = "application/rim+cose";
/// Content type in its protected header.
const CONTENT_TYPE: &str = "application/rim+cbor";
/// Named Information number of SHA-256.
const SHA_256: i64 = 1;
const CLASS_VENDOR: &str = "shef";
const KERNEL_MODEL: &str = "security-kernel";
const SHELL_MODEL: &str = "shell";

shef_proto::coded! {
    /// Why a CoRIM is refused.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum CorimError {
        /// Not strict CBOR.
        #[error(transparent)]
        Cbor(#[from] CborError) = "SHEF-ATT-080": "not a CoRIM of the form",
            "Reference values come as deterministic CBOR: a CoRIM (tag 501) with one SHA-256 digest and an exact SVN for each measurement, \
             none of them twice.",
        /// Not a signed CoRIM of this form.
        #[error("not a CoRIM of the form: {text}")]
        Form {
            /// What is wrong.
            text: String,
        } = "SHEF-ATT-080",
        /// Not a COSE_Sign1 whose header says that it signs a CoRIM.
        #[error("not a signed CoRIM: {text}")]
        Unsigned {
            /// What is wrong.
            text: String,
        } = "SHEF-ATT-081": "CoRIM is not in force",
            "It is not signed, not by a signer registered for what it vouches for, not valid now, deactivated, or older than one that is \
             known. The text says which. Signers are registered as [[signer]] with their key or CA.",
        /// A CoRIM with the same id and signer is known, and has a higher version, or the same
        /// version and different bytes.
        #[error("{id:?} version {version} of {signer} is not newer than version {known}")]
        Older {
            /// Id of the CoRIM.
            id: String,
            /// Its signer.
            signer: String,
            /// Its version.
            version: u64,
            /// The known version.
            known: u64,
        } = "SHEF-ATT-081",
        /// No signer with authority for reference values signed it.
        #[error("no known signer: {text}")]
        Signer {
            /// Why.
            text: String,
        } = "SHEF-ATT-081",
        /// The signature does not verify.
        #[error("the signature of {signer} does not verify")]
        Signature {
            /// The expected signer.
            signer: String,
        } = "SHEF-ATT-081",
        /// Outside its validity period.
        #[error("not valid at {now}: {text}")]
        Validity {
            /// Seconds since 1970.
            now: i64,
            /// Which limit.
            text: String,
        } = "SHEF-ATT-081",
        /// The signer may not vouch for this class.
        #[error("{signer} may not vouch for {class}")]
        Authority {
            /// The signer.
            signer: String,
            /// The class.
            class: String,
        } = "SHEF-ATT-081",
        /// Deactivated, or its signer is revoked.
        #[error("{what} is no longer in force")]
        Deactivated {
            /// The CoRIM or its signer.
            what: String,
        } = "SHEF-ATT-081",
    }
}

fn form(text: impl ToString) -> CorimError {
    CorimError::Form { text: text.to_string() }
}

fn unsigned(text: impl ToString) -> CorimError {
    CorimError::Unsigned { text: text.to_string() }
}

/// Context for reading CoRIMs.
#[derive(Clone, Copy)]
pub struct Trust<'a> {
    /// The accepted signers.
    pub signers: &'a [CorimSigner],
    /// Deactivated CoRIMs, by one of their [`names`] in hexadecimal.
    pub deactivated: &'a BTreeSet<String>,
    /// Revoked authorities and certificates, if there is a list.
    pub revocations: Option<&'a Revocations>,
    /// Seconds since 1970.
    pub now: i64,
    /// Implementation of ECDSA verification.
    pub verify: VerifyFn,
}

/// Reference values whose signature, authority and validity were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corim {
    /// Its id.
    pub id: String,
    /// Its version. Of two with the same id and signer, the higher one is used.
    pub version: u64,
    /// SHA-256 of its payload, which its signer signed.
    pub content: [u8; 32],
    /// Its signer.
    pub signer: String,
    /// SHA-256 of the signing key, and of the key or CA registered for the signer. Ordering and
    /// withdrawal go by these, because a key can be registered under any name.
    pub signer_keys: [[u8; 32]; 2],
    /// End of validity, seconds since 1970; `None` for no end.
    pub not_after: Option<i64>,
    /// Expiry of its signer's certificate, seconds since 1970; `None` if the signer is known by its
    /// key.
    pub signer_not_after: Option<i64>,
    /// The reference values.
    pub reference: ReferenceValues,
    /// Triples about classes of other vendors, which are ignored.
    pub ignored: usize,
}

impl Corim {
    /// Whether one of its signer's keys is among these.
    #[must_use]
    pub fn shares_a_key(&self, keys: &[[u8; 32]]) -> bool {
        self.signer_keys.iter().any(|key| keys.contains(key))
    }
}

/// Reads a signed CoRIM.
///
/// # Errors
/// The first violated rule. The whole CoRIM is then unusable.
pub fn read(bytes: &[u8], trust: &Trust<'_>) -> Result<Corim, CorimError> {
    let limits = Limits::bytes(MAX_CORIM);
    let envelope = cbor::parse(bytes, &limits)?;
    let (protected, x5chain) = envelope::shape(&envelope)?;
    let header = envelope::header(protected)?;
    let signed = decode_signed_corim(bytes).map_err(form)?;
    let payload = signed.payload.as_deref().ok_or_else(|| form("the payload is not attached"))?;
    let content: [u8; 32] = Sha256::digest(payload).into();
    let listed = |name: &[u8; 32]| trust.deactivated.contains(&hex::encode(name));
    if !trust.deactivated.is_empty()
        && (listed(&content) || spellings(&envelope).iter().any(listed))
    {
        return Err(CorimError::Deactivated {
            what: format!("this CoRIM, whose payload has the SHA-256 {},", hex::encode(content)),
        });
    }
    let message = signed.to_be_signed(b"").map_err(form)?;
    let signature: [u8; 64] = signed
        .signature
        .as_slice()
        .try_into()
        .map_err(|_| form("the signature is not 64 bytes r | s"))?;
    let signer::Signed { signer, keys: signer_keys, end: signer_end } =
        signer::verified(trust, &x5chain, &message, &signature)?;
    header.in_time(trust.now)?;

    // Everything from here on is authenticated.
    for tag in envelope::tags(payload, &limits)? {
        cbor::check(&tag, &limits)?;
    }
    let validity = |error: corim::ValidationError| match error {
        corim::ValidationError::Expired | corim::ValidationError::NotYetValid => {
            CorimError::Validity { now: trust.now, text: error.to_string() }
        }
        other => form(other),
    };
    let (map, comids) =
        corim::validate::decode_and_validate_at(payload, trust.now).map_err(validity)?;
    let id = match &map.id {
        CorimId::Text(text) => text.clone(),
        CorimId::Uuid(uuid) => hex::encode(uuid),
        _ => return Err(form("the id is neither text nor UUID")),
    };
    let own_end = map.rim_validity.as_ref().map(|validity| validity.not_after.epoch_secs());
    let mut out = Corim {
        id,
        version: 0,
        content,
        signer: signer.name().into(),
        signer_keys,
        not_after: own_end.into_iter().chain(header.not_after).chain(signer_end).min(),
        signer_not_after: signer_end,
        reference: ReferenceValues::default(),
        ignored: 0,
    };
    for comid in &comids {
        out.version = out.version.max(comid.tag_identity.tag_version.unwrap_or(0));
        for triple in comid.triples.reference_triples.iter().flatten() {
            triples::reference(signer, triple, &mut out)?;
        }
    }
    Ok(out)
}

/// The digests that name a signed CoRIM in a list of deactivated ones. SHA-256 of its payload names
/// it whatever its envelope is. SHA-256 of its bytes names it in every spelling of its signature
/// and of its certificate's signature, and without the certificate: anyone can turn one into the
/// other. If the certificate is reissued, or is missing from the named bytes, only the payload
/// names it.
///
/// # Errors
/// Not a signed CoRIM.
pub fn names(bytes: &[u8]) -> Result<Vec<[u8; 32]>, CorimError> {
    let (envelope, content) = opened(bytes)?;
    Ok(core::iter::once(content).chain(spellings(&envelope)).collect())
}

/// SHA-256 of the payload of a signed CoRIM, the first of its [`names`].
///
/// # Errors
/// Not a signed CoRIM.
pub fn content(bytes: &[u8]) -> Result<[u8; 32], CorimError> {
    Ok(opened(bytes)?.1)
}

fn opened(bytes: &[u8]) -> Result<(Value, [u8; 32]), CorimError> {
    let envelope = cbor::parse(bytes, &Limits::bytes(MAX_CORIM))?;
    envelope::shape(&envelope)?;
    let signed = decode_signed_corim(bytes).map_err(form)?;
    let payload = signed.payload.as_deref().ok_or_else(|| form("the payload is not attached"))?;
    Ok((envelope, Sha256::digest(payload).into()))
}

/// The signer's certificate in a signed CoRIM.
#[must_use]
pub fn certificate(bytes: &[u8]) -> Option<Certificate> {
    let envelope = cbor::parse(bytes, &Limits::bytes(MAX_CORIM)).ok()?;
    let (_, x5chain) = envelope::shape(&envelope).ok()?;
    Certificate::parse(x5chain.first()?).ok()
}

/// SHA-256 of a signed CoRIM as received and in its other spellings.
fn spellings(envelope: &Value) -> Vec<[u8; 32]> {
    let Value::Tag(tag, inner) = envelope else { return Vec::new() };
    let Value::Array(parts) = &**inner else { return Vec::new() };
    let [protected, unprotected, payload, signature] = &parts[..] else { return Vec::new() };
    let mut headers = vec![unprotected.clone()];
    if let Value::Map(entries) = unprotected
        && let [(label, Value::Bytes(der))] = &entries[..]
    {
        headers.push(Value::Map(Vec::new()));
        let twin = Certificate::parse(der).ok().and_then(|certificate| certificate.twin());
        headers.extend(twin.map(|twin| Value::Map(vec![(label.clone(), Value::Bytes(twin))])));
    }
    let mut signatures = vec![signature.clone()];
    if let Value::Bytes(bytes) = signature
        && let Some(twin) = bytes.as_slice().try_into().ok().and_then(crypto::twin)
    {
        signatures.push(Value::Bytes(twin.to_vec()));
    }
    let message = |header: &Value, signature: &Value| {
        let parts = [protected, header, payload, signature].map(Value::clone);
        Sha256::digest(Value::Tag(*tag, Box::new(Value::Array(parts.to_vec()))).encode()).into()
    };
    headers
        .iter()
        .flat_map(|header| signatures.iter().map(move |signature| (header, signature)))
        .map(|(h, s)| message(h, s))
        .collect()
}

/// Checks that a CoRIM may be added: no known CoRIM with the same id and a key of the same signer
/// has a higher version, or the same version and different content.
///
/// # Errors
/// A known CoRIM conflicts.
pub fn admit<'a>(
    corim: &Corim,
    known: impl IntoIterator<Item = &'a Corim>,
) -> Result<(), CorimError> {
    let same = |other: &&Corim| {
        other.id == corim.id
            && corim.shares_a_key(&other.signer_keys)
            && other.content != corim.content
    };
    match known.into_iter().filter(same).map(|other| other.version).max() {
        Some(known) if known >= corim.version => Err(CorimError::Older {
            id: corim.id.clone(),
            signer: corim.signer.clone(),
            version: corim.version,
            known,
        }),
        _ => Ok(()),
    }
}

/// Merges CoRIMs. Of several with the same id and a key of the same signer, only the highest
/// version is used.
///
/// # Errors
/// Two with the same id, signer and version differ.
pub fn merge<'a>(
    corims: impl IntoIterator<Item = &'a Corim> + Clone,
) -> Result<ReferenceValues, CorimError> {
    /// The highest version of an id and key: one of that version, and whether another differs.
    #[derive(Clone, Copy)]
    struct Newest<'a> {
        one: &'a Corim,
        differ: bool,
    }
    let mut newest: HashMap<(&str, &[u8; 32]), Newest<'_>> = HashMap::new();
    for corim in corims.clone() {
        for key in &corim.signer_keys {
            let first = Newest { one: corim, differ: false };
            let newest = newest.entry((&corim.id, key)).or_insert(first);
            match corim.version.cmp(&newest.one.version) {
                Ordering::Less => {}
                Ordering::Equal => newest.differ |= newest.one.content != corim.content,
                Ordering::Greater => *newest = first,
            }
        }
    }
    let mut counted = Vec::new();
    for corim in corims {
        let of_key = |key| newest.get(&(corim.id.as_str(), key)).copied();
        let same = || corim.signer_keys.iter().filter_map(of_key);
        if same().any(|newest| newest.one.version > corim.version) {
            continue;
        }
        if same().any(|newest| newest.differ) {
            return Err(CorimError::Older {
                id: corim.id.clone(),
                signer: corim.signer.clone(),
                version: corim.version,
                known: corim.version,
            });
        }
        counted.push(&corim.reference);
    }
    let mut out = ReferenceValues::default();
    out.extend(counted);
    Ok(out)
}
