//! The close record: the kernel's countersignature under a session's last sealed message.
//!
//! Only the owner can open the last message; the record proves to others that this device closed
//! that session with these bytes. A missing record proves nothing.

use alloc::vec;
use alloc::vec::Vec;

use crate::cbor::{self, CborError, Fields, Limits, Value};
use crate::cert::UEID_LEN;
use crate::cose::{self, ContentType, CoseError, Form, Sign1, SigningKey};
use crate::hpke_suite::{PublicKey, SUITE};

/// Bytes of the last sealed message.
pub const LAST_LEN: usize = 88;
/// Maximum size of a record.
pub const MAX_CLOSE: usize = 1024;

/// Form of the signed message.
pub const FORM: Form = Form {
    tags: &[cose::TAG_SIGN1],
    content_type: ContentType::Media("application/shef-close+cbor"),
    domain: b"shef-close/1",
    max_len: MAX_CLOSE,
    x5chain: false,
};

crate::coded! {
    /// Why a close record is rejected.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum CloseError {
        /// Not a signed message of this form, or not signed by this key.
        #[error(transparent)]
        Cose(#[from] CoseError) => (error) error.code(),
        /// The fields are not those of a record.
        #[error(transparent)]
        Cbor(#[from] CborError) => (error) error.code(),
        /// An unknown suite.
        #[error("unknown suite {found}")]
        Suite {
            /// Its number.
            found: u64,
        } = "SHEF-PRO-031",
        /// The record is of another device, image or configuration.
        #[error("the close record is of another device or image")]
        Other = "SHEF-PRO-070": "close record of another device or image",
            "The record is signed, but it is not of the device, image and configuration whose evidence was appraised.",
    }
}

/// The contents of a close record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CloseRecord {
    /// Transcript hash of the session.
    pub transcript: [u8; 32],
    /// The Shield's last sealed message.
    pub last: [u8; LAST_LEN],
    /// Digest of the image.
    pub image_digest: [u8; 32],
    /// Digest of the Shield's configuration.
    pub config_digest: [u8; 32],
    /// Identity of the device.
    pub ueid: [u8; UEID_LEN],
}

impl CloseRecord {
    /// The record signed by the attestation key.
    #[must_use]
    pub fn sign(&self, ak: &SigningKey) -> Vec<u8> {
        let payload = Value::map(vec![
            (1, u64::from(SUITE).into()),
            (2, (&self.transcript).into()),
            (3, (&self.last).into()),
            (4, (&self.image_digest).into()),
            (5, (&self.config_digest).into()),
            (6, (&self.ueid).into()),
        ]);
        cose::sign(&FORM, ak, &payload.encode(), &[])
    }

    /// Parses a record and verifies it with the attestation key.
    ///
    /// # Errors
    /// Not a record, or not signed by `ak`.
    pub fn verify(bytes: &[u8], ak: &PublicKey) -> Result<Self, CloseError> {
        let signed = Sign1::parse(&FORM, bytes)?;
        signed.verify(ak)?;
        let mut f =
            Fields::new(cbor::read(signed.payload(), &Limits::bytes(MAX_CLOSE))?, "close record")?;
        match f.uint(1, u64::MAX)? {
            found if found == u64::from(SUITE) => {}
            found => return Err(CloseError::Suite { found }),
        }
        let record = Self {
            transcript: f.array(2)?,
            last: f.array(3)?,
            image_digest: f.array(4)?,
            config_digest: f.array(5)?,
            ueid: f.array(6)?,
        };
        f.finish()?;
        Ok(record)
    }
}
