//! Receipts of key releases: signed, and each names the digest of the one before, so that an edit,
//! a gap, a reorder and a truncation show.

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

/// Most bytes of a receipt.
pub const MAX_RECEIPT: usize = 1024;
/// Most characters of the name of what was released: a key's, or the path of a resource.
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
    /// What is wrong with a receipt or its place in the chain.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum ReceiptError {
        /// Not a signed receipt of one of the keys.
        #[error("receipt {seq}: {error}")]
        Signed {
            /// The number expected at this place.
            seq: u64,
            /// What is wrong.
            error: CoseError,
        } = "SHEF-PRO-090": "receipt is not genuine",
            "The receipt was changed after it was signed, was signed by another key, or is of another tenant. Give all keys that signed, \
             retired ones too.",
        /// Of another tenant.
        #[error("receipt {seq}: expected tenant {expected:?}, found {found:?}")]
        Tenant {
            /// The number expected at this place.
            seq: u64,
            /// Whose chain this is.
            expected: String,
            /// Who is named.
            found: String,
        } = "SHEF-PRO-090",
        /// Another number than the next one: a gap, or another order.
        #[error("expected receipt {expected}, found {found}")]
        Sequence {
            /// The next number.
            expected: u64,
            /// The number found.
            found: u64,
        } = "SHEF-PRO-091": "receipts are not in one chain",
            "A receipt is missing, stands elsewhere, or was exchanged: it does not follow the one before it. The text names the first that \
             does not fit.",
        /// Does not follow the receipt before it.
        #[error("receipt {seq} does not name the digest of the receipt before it")]
        Previous {
            /// Its number.
            seq: u64,
        } = "SHEF-PRO-091",
        /// The chain ends elsewhere than is known.
        #[error("the chain ends at receipt {found}, but receipt {expected} is known to exist, or has another digest")]
        Head {
            /// The known end.
            expected: u64,
            /// The end found.
            found: u64,
        } = "SHEF-PRO-092": "receipts end too early",
            "The chain does not reach the head that a release gave out: receipts at the end were cut off, or exchanged.",
        /// Nobody of the keys has signed that the receipts up to here were forgotten.
        #[error("the receipts up to {seq} are missing, and no statement of the service says that it forgot them: {text}")]
        Forgotten {
            /// Number of the last one that is missing.
            seq: u64,
            /// What is wrong with the statement.
            text: String,
        } = "SHEF-PRO-093": "receipts begin too late",
            "Receipts at the beginning are missing, and the service has not signed that it forgot them (`retention.receipt_days`): \
             somebody cut them off. Where it is known that they are gone, and behind which head, give that with `--after`.",
    }
}

/// Record of one release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Whose key it was.
    pub tenant: String,
    /// Number in the tenant's chain, from 1.
    pub seq: u64,
    /// Digest of the receipt before it.
    pub previous: [u8; 32],
    /// Id; the box names it.
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
    /// SHA-256 of the policy that was in force.
    pub policy_digest: [u8; 32],
    /// SHA-256 of the recipient's key.
    pub recipient_digest: [u8; 32],
    /// Whether the recipient's key may be anybody's, and not only the one that the evidence vouches
    /// for: a resource for the host beside the card.
    pub to_host: bool,
}

/// Digest of a receipt, as named by the next one and as head of the chain.
#[must_use]
pub fn digest(receipt: &[u8]) -> [u8; 32] {
    Sha256::digest(receipt).into()
}

/// What a tenant's first receipt names as the one before it.
#[must_use]
pub fn genesis(tenant: &str) -> [u8; 32] {
    Sha256::new().chain_update(LABEL).chain_update(tenant.as_bytes()).finalize().into()
}

impl Receipt {
    /// The signed receipt.
    #[must_use]
    pub fn sign(&self, key: &SigningKey) -> Vec<u8> {
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
        cose::sign(&FORM, key, &Value::map(payload).encode(), &[])
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

    /// The same for a receipt in its chain, which pins every byte of it.
    fn verify_in_chain(bytes: &[u8], keys: &[PublicKey]) -> Result<Self, CoseError> {
        let message = Sign1::parse(&FORM, bytes)?;
        verify_stored(&message, keys)?;
        Ok(Self::from_cbor(message.payload())?)
    }
}

/// Verifies what a service has stored. Version 0.1 signed with either s, and what it stored stays
/// valid: a receipt is named by its place in the chain, a statement by its tenant and head.
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
    /// Whose receipts.
    pub tenant: String,
    /// The last one forgotten.
    pub head: Head,
    /// Seconds since 1970.
    pub time: i64,
}

impl Forgotten {
    /// The signed statement.
    #[must_use]
    pub fn sign(&self, key: &SigningKey) -> Vec<u8> {
        let payload = vec![
            (1, self.tenant.as_str().into()),
            (2, self.head.seq.into()),
            (3, (&self.head.digest).into()),
            (4, Value::int(self.time)),
        ];
        cose::sign(&FORGOTTEN_FORM, key, &Value::map(payload).encode(), &[])
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
    /// Signed by somebody else, or about other receipts.
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

/// Verifies receipts one after another.
#[derive(Clone, Debug)]
pub struct Audit<'a> {
    tenant: &'a str,
    keys: &'a [PublicKey],
    head: Head,
}

impl<'a> Audit<'a> {
    /// Begins at the first receipt of a tenant, or behind `after` where older ones were cut off
    /// knowingly.
    #[must_use]
    pub fn new(tenant: &'a str, keys: &'a [PublicKey], after: Option<Head>) -> Self {
        Self { tenant, keys, head: after.unwrap_or(Head { seq: 0, digest: genesis(tenant) }) }
    }

    /// Takes the next receipt.
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

    /// The end so far.
    #[must_use]
    pub fn head(&self) -> Head {
        self.head
    }

    /// Demands that the chain ends at a head that is known, as each release gives it out.
    ///
    /// # Errors
    /// Cut off, or another chain.
    pub fn finish(self, known: &Head) -> Result<(), ReceiptError> {
        if self.head == *known {
            Ok(())
        } else {
            Err(ReceiptError::Head { expected: known.seq, found: self.head.seq })
        }
    }
}
