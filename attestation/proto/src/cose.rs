//! ECDSA P-256 keys and COSE_Sign1 (RFC 9052) for evidence, image headers and close records.
//!
//! One narrow form: protected header `{1: alg, 3: content type}` and nothing else, unprotected
//! header empty or `{33: x5chain}`, payload attached, signature `r | s` with low s. The signed
//! bytes are stored and verified as received.

use alloc::{boxed::Box, vec, vec::Vec};
use core::ops::Range;

use minicbor::Encoder;
use zeroize::Zeroizing;

use crate::cbor::{self, CborError, Fields, Item, Limits, Value};
use crate::crypto::scrub::derived;
use crate::crypto::{self, ACTIVE, Crypto};
use crate::entropy::Entropy;
use crate::hpke_suite::{PrivateKey, PublicKey, derive_key_pair, generate_key_pair};

/// COSE algorithm ESP256 (RFC 9864): ECDSA on P-256 with SHA-256. Written by this code.
pub const ESP256: i64 = -9;
/// COSE algorithm ES256, the older name of the same; accepted, not written.
pub const ES256: i64 = -7;
/// Bytes of a signature `r | s`.
pub const SIGNATURE_LEN: usize = 64;
/// Tag of a COSE_Sign1.
pub const TAG_SIGN1: u64 = 18;
/// Maximum number of certificates in an x5chain.
pub const MAX_X5CHAIN: usize = 4;

crate::coded! {
    /// Why a COSE_Sign1 is rejected.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum CoseError {
        /// Not strict CBOR, or not of this shape.
        #[error(transparent)]
        Cbor(#[from] CborError) => (error) error.code(),
        /// Tags other than the format's.
        #[error("the message does not carry the tags of its format")]
        Tags = "SHEF-PRO-010": "not a COSE_Sign1 of the expected form",
            "The outer tags, the headers or the payload are not what the format says: tags 61 and 18 for evidence, 18 elsewhere; the \
             protected header holds algorithm and content type only.",
        /// A header parameter that the format does not allow (`crit`, `kid`, a label in both
        /// buckets, ...).
        #[error("header parameter {label} is not allowed in the {bucket} header")]
        Header {
            /// Its label, 0 for a text.
            label: i64,
            /// The header.
            bucket: &'static str,
        } = "SHEF-PRO-010",
        /// Not the expected content type.
        #[error("wrong content type")]
        ContentType = "SHEF-PRO-010",
        /// The payload is detached.
        #[error("the payload is not attached")]
        Detached = "SHEF-PRO-010",
        /// The algorithm is missing from the protected header, or is another one.
        #[error("algorithm {found:?} is not ECDSA P-256 with SHA-256 (-9 or -7) in the protected header")]
        Algorithm {
            /// The algorithm of the protected header.
            found: Option<i64>,
        } = "SHEF-PRO-011": "signature algorithm not allowed",
            "Only ECDSA on P-256 with SHA-256 is allowed (-9, or its old name -7), named in the protected header.",
        /// The signature does not match bytes and key.
        #[error("the signature does not verify")]
        Signature = "SHEF-PRO-012": "signature does not verify", "The message was changed after it was signed, or another key signed it.",
        /// The signature verifies with `n - s` for s: the same message under another digest.
        #[error("the signature verifies, but its s is above n / 2: expected the lower of s and n - s")]
        HighS = "SHEF-PRO-013": "signature has a high s",
            "Of the two values s and n - s that verify, this format takes the lower one, so that one object has one digest. The message \
             was changed on its way, or its signer writes either value: sign it again, or put n - s for s.",
    }
}

/// An ECDSA P-256 signing key; erased when dropped. Signatures are deterministic (RFC 6979) and have
/// low s.
pub struct SigningKey(PrivateKey);

impl SigningKey {
    /// The key with this private scalar.
    #[must_use]
    pub fn new(private: &PrivateKey) -> Self {
        Self(private.again())
    }

    /// The key of `DeriveKeyPair(ikm)` (RFC 9180 7.1.3), the source of the device's certified keys.
    #[must_use]
    pub fn derive(ikm: &[u8]) -> Self {
        Self(derive_key_pair(ikm).0)
    }

    /// A fresh key.
    #[must_use]
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        Self(generate_key_pair(entropy).0)
    }

    /// The public key.
    #[must_use]
    pub fn public_key(&self) -> PublicKey {
        self.0.public_key()
    }

    /// The private scalar, for the one program that receives this key.
    #[must_use]
    pub fn private_bytes(&self) -> Zeroizing<[u8; 32]> {
        self.0.to_bytes()
    }

    /// Signature `r | s` over `message`.
    #[must_use]
    pub fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_LEN] {
        self.sign_parts(&[message])
    }

    /// The same over the concatenated parts of a message.
    fn sign_parts(&self, parts: &[&[u8]]) -> [u8; SIGNATURE_LEN] {
        derived!(crypto::sign(&self.0.to_bytes(), &ACTIVE.sha256(parts)))
    }
}

/// A verification function: `(key, message, r | s)`; true if the signature is `key`'s over
/// `message`.
///
/// [`verify`] is this crate's implementation. A service that must be fast supplies another one of
/// the same algorithm. It accepts either s; formats that require the low one check it themselves.
pub type VerifyFn = fn(&PublicKey, &[u8], &[u8; SIGNATURE_LEN]) -> bool;

/// True if `signature` (`r | s`) is `key`'s over `message`.
#[must_use]
pub fn verify(key: &PublicKey, message: &[u8], signature: &[u8; SIGNATURE_LEN]) -> bool {
    verify_digest(key, &crypto::sha256(message), signature)
}

/// The same for a message given by its SHA-256.
#[must_use]
pub fn verify_digest(key: &PublicKey, digest: &[u8; 32], signature: &[u8; SIGNATURE_LEN]) -> bool {
    crypto::verify(&key.xy(), digest, signature)
}

/// Content type of a protected header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentType {
    /// A CoAP content format.
    Format(u64),
    /// A media type.
    Media(&'static str),
}

impl ContentType {
    fn value(self) -> Value {
        match self {
            Self::Format(n) => Value::Uint(n),
            Self::Media(text) => text.into(),
        }
    }

    fn is(self, found: &Item<'_>) -> bool {
        match (self, found) {
            (Self::Format(n), Value::Uint(found)) => *found == n,
            (Self::Media(text), Value::Text(found)) => *found == text,
            _ => false,
        }
    }
}

/// Definition of a kind of signed message: its tags from the outside in, content type, domain
/// string and limit.
#[derive(Clone, Copy, Debug)]
pub struct Form {
    /// Tags, outermost first.
    pub tags: &'static [u64],
    /// Content type in the protected header.
    pub content_type: ContentType,
    /// `external_aad` of the signature, which separates kinds of messages.
    pub domain: &'static [u8],
    /// Maximum size of the whole message.
    pub max_len: usize,
    /// Whether the unprotected header may carry an x5chain.
    pub x5chain: bool,
}

/// A parsed COSE_Sign1. Its signature is unverified until [`Sign1::verify`] succeeds.
#[derive(Clone, Debug)]
pub struct Sign1 {
    form: Form,
    algorithm: i64,
    bytes: Vec<u8>,
    protected: Range<usize>,
    payload: Range<usize>,
    x5chain: Vec<Vec<u8>>,
    signature: [u8; SIGNATURE_LEN],
}

/// Sig_structure of RFC 9052 section 4.4, up to the payload's bytes at its end.
fn before_payload(protected: &[u8], domain: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut e = Encoder::new(Vec::with_capacity(protected.len() + domain.len() + 32));
    // Writing to a Vec cannot fail.
    drop(e.array(4));
    drop(e.str("Signature1"));
    for part in [protected, domain] {
        drop(e.bytes(part));
    }
    drop(e.bytes_len(payload.len() as u64));
    e.into_writer()
}

/// Items outside the payload: tags, the four parts, two headers, certificates.
const ITEMS: usize = 32;

/// Signs `payload` in the given form. An empty `x5chain` is omitted; the leaf is first.
#[must_use]
pub fn sign(form: &Form, key: &SigningKey, payload: &[u8], x5chain: &[&[u8]]) -> Vec<u8> {
    let protected =
        Value::map(vec![(1, Value::int(ESP256)), (3, form.content_type.value())]).encode();
    let signature = key.sign_parts(&[&before_payload(&protected, form.domain, payload), payload]);
    let unprotected = match x5chain {
        [] => Vec::new(),
        [one] => vec![(33, (*one).into())],
        many => {
            vec![(33, Value::Array(many.iter().map(|certificate| (*certificate).into()).collect()))]
        }
    };
    let mut value = Value::Array(vec![
        protected.into(),
        Value::map(unprotected),
        payload.into(),
        (&signature).into(),
    ]);
    for tag in form.tags.iter().rev() {
        value = Value::Tag(*tag, Box::new(value));
    }
    value.encode()
}

/// The same, without certificates, by a key that something else holds: `sign` returns `r | s` over a
/// message, with either s.
///
/// # Errors
/// Those of `sign`.
pub fn sign_by<E>(
    form: &Form,
    payload: &[u8],
    sign: impl FnOnce(&[u8]) -> Result<[u8; SIGNATURE_LEN], E>,
) -> Result<Vec<u8>, E> {
    // Not joined with `sign`, whose code is part of the measured kernel image.
    let protected =
        Value::map(vec![(1, Value::int(ESP256)), (3, form.content_type.value())]).encode();
    let mut signed = before_payload(&protected, form.domain, payload);
    signed.extend_from_slice(payload);
    let signature = crypto::to_low_s(sign(&signed)?);
    let parts = vec![protected.into(), Value::map(Vec::new()), payload.into(), (&signature).into()];
    let tagged = |value, tag: &u64| Value::Tag(*tag, Box::new(value));
    Ok(form.tags.iter().rev().fold(Value::Array(parts), tagged).encode())
}

impl Sign1 {
    /// Parses a message of this form; checks everything but the signature.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn parse(form: &Form, bytes: &[u8]) -> Result<Self, CoseError> {
        Self::take(form, bytes.to_vec())
    }

    /// The same without copying the message.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn take(form: &Form, bytes: Vec<u8>) -> Result<Self, CoseError> {
        const WHAT: &str = "COSE_Sign1";
        let limits = Limits::bytes(form.max_len).items(ITEMS);
        let mut value = cbor::read(&bytes, &limits)?;
        for tag in form.tags {
            value = match value {
                Value::Tag(found, inner) if found == *tag => *inner,
                _ => return Err(CoseError::Tags),
            };
        }
        let shape = CborError::Shape { what: WHAT, expected: "an array of four" };
        let Value::Array(items) = value else {
            return Err(if matches!(value, Value::Tag(..)) {
                CoseError::Tags
            } else {
                shape.into()
            });
        };
        let Ok([protected, unprotected, payload, signature]) = <[Item<'_>; 4]>::try_from(items)
        else {
            return Err(shape.into());
        };
        let Value::Bytes(protected) = protected else { return Err(shape.into()) };
        let payload = match payload {
            Value::Bytes(payload) => payload,
            Value::Null => return Err(CoseError::Detached),
            _ => return Err(shape.into()),
        };
        let Value::Bytes(signature) = signature else { return Err(shape.into()) };
        let signature = signature.try_into().map_err(|_| CoseError::Signature)?;

        let mut header = header_of(cbor::read(protected, &limits)?, "protected", &[1, 3])?;
        let algorithm = match header.optional(1).as_ref().and_then(Value::as_int) {
            Some(algorithm @ (ESP256 | ES256)) => algorithm,
            found => return Err(CoseError::Algorithm { found }),
        };
        if header.optional(3).is_none_or(|found| !form.content_type.is(&found)) {
            return Err(CoseError::ContentType);
        }
        let mut header =
            header_of(unprotected, "unprotected", if form.x5chain { &[33] } else { &[] })?;
        let x5chain = match header.optional(33) {
            None => Vec::new(),
            Some(Value::Bytes(one)) => vec![one.to_vec()],
            Some(Value::Array(many)) if (2..=MAX_X5CHAIN).contains(&many.len()) => {
                let mut chain = Vec::with_capacity(many.len());
                for certificate in many {
                    let Value::Bytes(certificate) = certificate else {
                        return Err(CoseError::Header { label: 33, bucket: "unprotected" });
                    };
                    chain.push(certificate.to_vec());
                }
                chain
            }
            Some(_) => return Err(CoseError::Header { label: 33, bucket: "unprotected" }),
        };
        let place = |part: &[u8]| {
            let begin = part.as_ptr().addr() - bytes.as_ptr().addr();
            begin..begin + part.len()
        };
        let (protected, payload) = (place(protected), place(payload));
        Ok(Self { form: *form, algorithm, bytes, protected, payload, x5chain, signature })
    }

    /// The whole message as received.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The payload, unverified.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.payload.clone()]
    }

    /// Algorithm in the protected header.
    #[must_use]
    pub fn algorithm(&self) -> i64 {
        self.algorithm
    }

    /// Certificates of the unprotected header, leaf first; unverified.
    #[must_use]
    pub fn x5chain(&self) -> &[Vec<u8>] {
        &self.x5chain
    }

    /// Verifies the signature over the received bytes.
    ///
    /// # Errors
    /// It is not `key`'s, or has a high s.
    pub fn verify(&self, key: &PublicKey) -> Result<(), CoseError> {
        let digest = ACTIVE.sha256(&[&self.before_payload(), self.payload()]);
        self.judge(verify_digest(key, &digest, &self.signature))
    }

    /// Verifies the signature with any of `keys`.
    ///
    /// # Errors
    /// No key matches, or the signature has a high s.
    pub fn verify_any(&self, keys: &[PublicKey]) -> Result<(), CoseError> {
        let not_of = |result: &Result<(), CoseError>| *result == Err(CoseError::Signature);
        keys.iter()
            .map(|key| self.verify(key))
            .find(|result| !not_of(result))
            .unwrap_or(Err(CoseError::Signature))
    }

    /// Calls `verify` with the message and signature as received.
    ///
    /// # Errors
    /// `verify` returns false, or the signature has a high s.
    pub fn verify_with(
        &self,
        verify: impl FnOnce(&[u8], &[u8; SIGNATURE_LEN]) -> bool,
    ) -> Result<(), CoseError> {
        let message = [&self.before_payload(), self.payload()].concat();
        self.judge(verify(&message, &self.signature))
    }

    fn judge(&self, verifies: bool) -> Result<(), CoseError> {
        match (verifies, crypto::is_low_s(&self.signature)) {
            (false, _) => Err(CoseError::Signature),
            (true, false) => Err(CoseError::HighS),
            (true, true) => Ok(()),
        }
    }

    fn before_payload(&self) -> Vec<u8> {
        before_payload(&self.bytes[self.protected.clone()], self.form.domain, self.payload())
    }
}

fn header_of<'a>(
    item: Item<'a>,
    bucket: &'static str,
    allowed: &[i64],
) -> Result<Fields<'a>, CoseError> {
    if let Value::Map(entries) = &item {
        for (label, _) in entries {
            let label = label.as_int().unwrap_or(0);
            if !allowed.contains(&label) {
                return Err(CoseError::Header { label, bucket });
            }
        }
    }
    Ok(Fields::new(item, "COSE header")?)
}

/// A public key as COSE_Key `{1: 2, -1: 1, -2: x, -3: y}`.
#[must_use]
pub fn key_to_cose(key: &PublicKey) -> Value {
    let xy = key.xy();
    Value::map(vec![
        (1, Value::Uint(2)),
        (-1, Value::Uint(1)),
        (-2, xy[..32].into()),
        (-3, xy[32..].into()),
    ])
}

/// The public key of a COSE_Key.
///
/// # Errors
/// Another key type or curve, extra parameters, or a point that is not on the curve.
pub fn key_from_cose(item: Item<'_>) -> Result<PublicKey, CborError> {
    const WHAT: &str = "COSE_Key";
    let mut fields = Fields::new(item, WHAT)?;
    if fields.uint(1, 2)? != 2 {
        return Err(fields.bad(1, "key type EC2 (2)"));
    }
    if fields.uint(-1, 1)? != 1 {
        return Err(fields.bad(-1, "curve P-256 (1)"));
    }
    let mut xy = [0; 64];
    xy[..32].copy_from_slice(&fields.array::<32>(-2)?);
    xy[32..].copy_from_slice(&fields.array::<32>(-3)?);
    fields.finish()?;
    PublicKey::from_xy(&xy).map_err(|_| CborError::Field {
        what: WHAT,
        key: -3,
        expected: "a point of the curve",
    })
}
