//! Signed receipts of key releases. Each names the digest of the previous one, so that edits, gaps,
//! reordering and truncation are detected.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};

use crate::cbor::{self, CborError, Fields, Limits, Value};
use crate::cert::UEID_LEN;
use crate::cose::{self, ContentType, CoseError, Form, Sign1, SigningKey};
use crate::evidence::Layer;
use crate::hpke_suite::PublicKey;
use crate::release::ID_MAX;

/// Maximum size of a receipt.
pub const MAX_RECEIPT: usize = 1024;
/// Maximum length in characters of the name of the released key or resource path.
pub const NAME_MAX: usize = 200;
const LABEL: &[u8] = b"shef-receipt/1";

/// Form of the signed message.
pub const FORM: Form = Form {
    tags: &[cose::TAG_SIGN1],
    content_type: ContentType::Media("application/shef-receipt+cbor"),
    domain: LABEL,
    max_len: MAX_RECEIPT,
    x5chain: false,
};

/// Form of the statement that receipts were forgotten.
const FORGOTTEN_FORM: Form = Form {
    tags: &[cose::TAG_SIGN1],
    content_type: ContentType::Media("application/shef-receipts-forgotten+cbor"),
    domain: b"shef-receipts-forgotten/1",
    max_len: MAX_RECEIPT,
    x5chain: false,
};

crate::coded! {
    /// Why a receipt or its place in the chain is rejected.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum ReceiptError {
        /// Not a receipt signed by one of the keys.
        #[error("receipt {seq}: {error}")]
        Signed {
            /// The number expected at this place.
            seq: u64,
            /// The problem.
            error: CoseError,
        } = "SHEF-PRO-090": "receipt is not genuine",
            "The receipt was changed after it was signed, was signed by another key, or is of another tenant. Give all keys that signed, \
             retired ones too.",
        /// Another tenant's receipt.
        #[error("receipt {seq}: expected tenant {expected:?}, found {found:?}")]
        Tenant {
            /// The number expected at this place.
            seq: u64,
            /// The chain's tenant.
            expected: String,
            /// The receipt's tenant.
            found: String,
        } = "SHEF-PRO-090",
        /// Not the next number: a gap or reordering.
        #[error("expected receipt {expected}, found {found}")]
        Sequence {
            /// The next number.
            expected: u64,
            /// The number found.
            found: u64,
        } = "SHEF-PRO-091": "receipts are not in one chain",
            "A receipt is missing, stands elsewhere, or was exchanged: it does not follow the one before it. The text names the first that \
             does not fit.",
        /// Does not name the digest of the previous receipt.
        #[error("receipt {seq} does not name the digest of the receipt before it")]
        Previous {
            /// Its number.
            seq: u64,
        } = "SHEF-PRO-091",
        /// The chain does not end at the known head.
        #[error("the chain ends at receipt {found}, but receipt {expected} is known to exist, or has another digest")]
        Head {
            /// The known end.
            expected: u64,
            /// The actual end.
            found: u64,
        } = "SHEF-PRO-092": "receipts end too early",
            "The chain does not reach the head that a release gave out: receipts at the end were cut off, or exchanged.",
        /// The receipts up to here are missing, and no key has signed that they were forgotten.
        #[error("the receipts up to {seq} are missing, and no statement of the service says that it forgot them: {text}")]
        Forgotten {
            /// Number of the last missing receipt.
            seq: u64,
            /// The problem with the statement.
            text: String,
        } = "SHEF-PRO-093": "receipts begin too late",
            "Receipts at the beginning are missing, and the service has not signed that it forgot them (`retention.receipt_days`): \
             somebody cut them off. Where it is known that they are gone, and behind which head, give that with `--after`.",
    }
}

/// Record of one release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Owner of the key.
    pub tenant: String,
    /// Number in the tenant's chain, from 1.
    pub seq: u64,
    /// Digest of the previous receipt.
    pub previous: [u8; 32],
    /// Id, which the box names.
    pub id: [u8; 16],
    /// Seconds since 1970.
    pub time: i64,
    /// Name of the key.
    pub key_id: String,
    /// Version of the key.
    pub key_version: u64,
    /// Layer whose evidence was appraised.
    pub layer: Layer,
    /// Identity of the device.
    pub ueid: [u8; UEID_LEN],
    /// Digest of the evidence.
    pub evidence_digest: [u8; 32],
    /// SHA-256 of the policy in force.
    pub policy_digest: [u8; 32],
    /// SHA-256 of the recipient's key.
    pub recipient_digest: [u8; 32],
    /// Whether the recipient may be any key, not only one that the evidence vouches for: a resource
    /// for the card's host.
    pub to_host: bool,
    /// The tenant's newest event ([`crate::event`]); `None` in receipts of version 0.1.
    pub events: Option<Head>,
}

/// Digest of a receipt, as in the next receipt and in the head of the chain.
#[must_use]
pub fn digest(receipt: &[u8]) -> [u8; 32] {
    Sha256::digest(receipt).into()
}

/// The previous digest in a tenant's first receipt.
#[must_use]
pub fn genesis(tenant: &str) -> [u8; 32] {
    Sha256::new().chain_update(LABEL).chain_update(tenant.as_bytes()).finalize().into()
}

impl Receipt {
    /// The signed receipt.
    #[must_use]
    pub fn sign(&self, key: &SigningKey) -> Vec<u8> {
        cose::sign(&FORM, key, &self.payload(), &[])
    }

    /// The receipt, signed as in [`cose::sign_by`].
    ///
    /// # Errors
    /// Those of `sign`.
    pub fn sign_by<E>(
        &self,
        sign: impl FnOnce(&[u8]) -> Result<[u8; cose::SIGNATURE_LEN], E>,
    ) -> Result<Vec<u8>, E> {
        cose::sign_by(&FORM, &self.payload(), sign)
    }

    fn payload(&self) -> Vec<u8> {
        let mut payload = vec![
            (1, self.tenant.as_str().into()),
            (2, self.seq.into()),
            (3, (&self.previous).into()),
            (4, (&self.id).into()),
            (5, Value::int(self.time)),
            (6, self.key_id.as_str().into()),
            (7, self.key_version.into()),
            (8, self.layer.name().into()),
            (9, (&self.ueid).into()),
            (10, (&self.evidence_digest).into()),
            (11, (&self.policy_digest).into()),
            (12, (&self.recipient_digest).into()),
        ];
        if self.to_host {
            payload.push((13, Value::Bool(true)));
        }
        if let Some(events) = &self.events {
            payload.push((14, events.seq.into()));
            payload.push((15, (&events.digest).into()));
        }
        Value::map(payload).encode()
    }

    fn from_cbor(bytes: &[u8]) -> Result<Self, CborError> {
        let mut f = Fields::new(cbor::read(bytes, &Limits::bytes(MAX_RECEIPT))?, "receipt")?;
        let layer = f.text(8, 1..=16)?;
        let receipt = Self {
            tenant: f.text(1, 1..=ID_MAX)?.into(),
            seq: f.uint(2, u64::MAX)?,
            previous: f.array(3)?,
            id: f.array(4)?,
            time: f.take(5)?.as_int().ok_or_else(|| f.bad(5, "an integer"))?,
            key_id: f.text(6, 1..=NAME_MAX)?.into(),
            key_version: f.uint(7, u64::MAX)?,
            layer: Layer::from_name(layer).ok_or_else(|| f.bad(8, "a layer"))?,
            ueid: f.array(9)?,
            evidence_digest: f.array(10)?,
            policy_digest: f.array(11)?,
            recipient_digest: f.array(12)?,
            to_host: match f.optional(13) {
                None => false,
                Some(Value::Bool(true)) => true,
                Some(_) => return Err(f.bad(13, "true, or absent")),
            },
            events: match f.optional(14) {
                None => None,
                Some(seq) => {
                    let seq = seq.as_int().and_then(|seq| u64::try_from(seq).ok());
                    let seq = seq.ok_or_else(|| f.bad(14, "an unsigned integer"))?;
                    Some(Head { seq, digest: f.array(15)? })
                }
            },
        };
        f.finish()?;
        Ok(receipt)
    }

    /// Reads a receipt that one of `keys` signed.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn verify(bytes: &[u8], keys: &[PublicKey]) -> Result<Self, CoseError> {
        let message = Sign1::parse(&FORM, bytes)?;
        message.verify_any(keys)?;
        Ok(Self::from_cbor(message.payload())?)
    }

    /// The same for a receipt in its chain, which fixes every byte of it.
    fn verify_in_chain(bytes: &[u8], keys: &[PublicKey]) -> Result<Self, CoseError> {
        let message = Sign1::parse(&FORM, bytes)?;
        verify_stored(&message, keys)?;
        Ok(Self::from_cbor(message.payload())?)
    }
}

/// Verifies a stored message. Version 0.1 signed with either s, and its stored messages stay valid:
/// a receipt is identified by its place in the chain, a statement by its tenant and head.
fn verify_stored(message: &Sign1, keys: &[PublicKey]) -> Result<(), CoseError> {
    match message.verify_any(keys) {
        Err(CoseError::HighS) => Ok(()),
        result => result,
    }
}

/// The end of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Number of the last receipt; 0 before the first.
    pub seq: u64,
    /// Its digest.
    pub digest: [u8; 32],
}

/// The service's statement that it forgot a tenant's receipts up to a head. Without it a chain
/// begins at its first receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// Tenant of the receipts.
    pub tenant: String,
    /// Head of the forgotten receipts.
    pub head: Head,
    /// Seconds since 1970.
    pub time: i64,
}

impl Forgotten {
    /// The signed statement.
    #[must_use]
    pub fn sign(&self, key: &SigningKey) -> Vec<u8> {
        cose::sign(&FORGOTTEN_FORM, key, &self.payload(), &[])
    }

    /// The statement, signed as in [`cose::sign_by`].
    ///
    /// # Errors
    /// Those of `sign`.
    pub fn sign_by<E>(
        &self,
        sign: impl FnOnce(&[u8]) -> Result<[u8; cose::SIGNATURE_LEN], E>,
    ) -> Result<Vec<u8>, E> {
        cose::sign_by(&FORGOTTEN_FORM, &self.payload(), sign)
    }

    fn payload(&self) -> Vec<u8> {
        let payload = vec![
            (1, self.tenant.as_str().into()),
            (2, self.head.seq.into()),
            (3, (&self.head.digest).into()),
            (4, Value::int(self.time)),
        ];
        Value::map(payload).encode()
    }

    fn from_cbor(bytes: &[u8]) -> Result<Self, CborError> {
        let mut f = Fields::new(
            cbor::read(bytes, &Limits::bytes(MAX_RECEIPT))?,
            "statement of forgotten receipts",
        )?;
        let tenant = f.text(1, 1..=ID_MAX)?.into();
        let head = Head { seq: f.uint(2, u64::MAX)?, digest: f.array(3)? };
        let time = f.take(4)?.as_int().ok_or_else(|| f.bad(4, "an integer"))?;
        f.finish()?;
        Ok(Self { tenant, head, time })
    }

    /// Reads a statement that one of `keys` signed about this tenant's receipts up to this head.
    ///
    /// # Errors
    /// Signed by another key, or about other receipts.
    pub fn verify(
        bytes: &[u8],
        keys: &[PublicKey],
        tenant: &str,
        head: Head,
    ) -> Result<Self, ReceiptError> {
        let bad = |text: String| ReceiptError::Forgotten { seq: head.seq, text };
        if bytes.is_empty() {
            return Err(bad("there is none".to_string()));
        }
        let read = || -> Result<Self, CoseError> {
            let message = Sign1::parse(&FORGOTTEN_FORM, bytes)?;
            verify_stored(&message, keys)?;
            Ok(Self::from_cbor(message.payload())?)
        };
        let found = read().map_err(|error| bad(error.to_string()))?;
        if found.tenant != tenant || found.head != head {
            return Err(bad(alloc::format!(
                "it is about receipt {} of tenant {:?}, or another one of that number",
                found.head.seq,
                found.tenant
            )));
        }
        Ok(found)
    }
}

/// Verifies receipts in order.
#[derive(Clone, Debug)]
pub struct Audit<'a> {
    tenant: &'a str,
    keys: &'a [PublicKey],
    head: Head,
}

impl<'a> Audit<'a> {
    /// Begins at a tenant's first receipt, or after `after` if older receipts were forgotten on
    /// purpose.
    #[must_use]
    pub fn new(tenant: &'a str, keys: &'a [PublicKey], after: Option<Head>) -> Self {
        Self { tenant, keys, head: after.unwrap_or(Head { seq: 0, digest: genesis(tenant) }) }
    }

    /// Verifies the next receipt.
    ///
    /// # Errors
    /// It is not genuine, or not the next one.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Receipt, ReceiptError> {
        let seq = self.head.seq + 1;
        let receipt = Receipt::verify_in_chain(bytes, self.keys)
            .map_err(|error| ReceiptError::Signed { seq, error })?;
        if receipt.tenant != self.tenant {
            return Err(ReceiptError::Tenant {
                seq,
                expected: self.tenant.to_string(),
                found: receipt.tenant,
            });
        }
        if receipt.seq != seq {
            return Err(ReceiptError::Sequence { expected: seq, found: receipt.seq });
        }
        if receipt.previous != self.head.digest {
            return Err(ReceiptError::Previous { seq });
        }
        self.head = Head { seq, digest: digest(bytes) };
        Ok(receipt)
    }

    /// The current end.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// Requires that the chain ends at a known head, which each release returns.
    ///
    /// # Errors
    /// Truncated, or another chain.
    pub fn finish(self, known: &Head) -> Result<(), ReceiptError> {
        if self.head == *known {
            Ok(())
        } else {
            Err(ReceiptError::Head { expected: known.seq, found: self.head.seq })
        }
    }
}
