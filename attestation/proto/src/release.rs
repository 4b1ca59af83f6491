//! Key release: a key leaves only as an HPKE message to a key that verified evidence vouches for.
//!
//! The `info` binds tenant, key id and version, layer, evidence digest, nonce, recipient key and
//! receipt id, so that a box for one key cannot pass for another.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::cbor::{self, CborError, Fields, Limits, Value};
use crate::entropy::Entropy;
use crate::evidence::{Layer, NONCE_MAX, NONCE_MIN};
use crate::hpke_suite::{self, ENC_LEN, HpkeError, PrivateKey, PublicKey, SUITE};
use crate::image::ImageKey;

/// Maximum size of a box.
pub const MAX_BOX: usize = 2048;
/// Maximum length of tenant and key id.
pub const ID_MAX: usize = 64;
/// Maximum size of a box's secret.
pub const MAX_SECRET: usize = 512;

const INFO_LABEL: &str = "shef-release/1";

crate::coded! {
    /// Why a released key is rejected.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum ReleaseError {
        /// Not strict CBOR, or not the fields of a box.
        #[error(transparent)]
        Cbor(#[from] CborError) => (error) error.code(),
        /// The message does not open.
        #[error(transparent)]
        Hpke(#[from] HpkeError) => (error) error.code(),
        /// An unknown suite.
        #[error("unknown suite {found}")]
        Suite {
            /// Its number.
            found: u64,
        } = "SHEF-PRO-031",
        /// The box is not for this recipient or purpose.
        #[error("the box was made for another {what}")]
        Binding {
            /// Layer, evidence, nonce, recipient key or requested key.
            what: &'static str,
        } = "SHEF-PRO-050": "key box made for something else",
            "The info of the box names another layer, evidence, nonce, recipient key or key id than the one that is waiting. A box answers \
             one piece of evidence.",
        /// The opened bytes are not the expected kind of secret.
        #[error("the box does not hold {expected}")]
        Secret {
            /// The expected kind.
            expected: &'static str,
        } = "SHEF-PRO-051": "key box holds something else",
            "The box opened, but what is inside is not the kind of key that is expected here.",
    }
}

/// The binding of a release: the HPKE `info`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseInfo {
    /// Owner of the key.
    pub tenant: String,
    /// Name of the key.
    pub key_id: String,
    /// Version of the key.
    pub key_version: u64,
    /// Layer whose evidence was appraised.
    pub layer: Layer,
    /// Digest of that evidence.
    pub evidence_digest: [u8; 32],
    /// Nonce of that evidence.
    pub nonce: Vec<u8>,
    /// Key that the evidence vouches for, or a one-time key bound to it.
    pub recipient: PublicKey,
    /// Id of the receipt.
    pub receipt_id: [u8; 16],
}

impl ReleaseInfo {
    /// Deterministic CBOR: the HPKE `info`.
    #[must_use]
    pub fn to_cbor(&self) -> Vec<u8> {
        Value::Array(vec![
            INFO_LABEL.into(),
            u64::from(SUITE).into(),
            self.tenant.as_str().into(),
            self.key_id.as_str().into(),
            self.key_version.into(),
            self.layer.name().into(),
            (&self.evidence_digest).into(),
            self.nonce.as_slice().into(),
            self.recipient.as_bytes().into(),
            (&self.receipt_id).into(),
        ])
        .encode()
    }

    /// Reads the output of [`ReleaseInfo::to_cbor`].
    ///
    /// # Errors
    /// The first violated rule.
    pub fn from_cbor(bytes: &[u8]) -> Result<Self, ReleaseError> {
        const WHAT: &str = "release info";
        let Value::Array(items) = cbor::read(bytes, &Limits::bytes(MAX_BOX))? else {
            return Err(CborError::Shape { what: WHAT, expected: "an array" }.into());
        };
        if items.len() != 10 {
            return Err(CborError::Shape { what: WHAT, expected: "an array of ten" }.into());
        }
        // Read by position, as strictly as fields.
        let mut f = Fields::of_places(items, WHAT);
        if f.text(0, 0..=32)? != INFO_LABEL {
            return Err(f.bad(0, "the label of this format").into());
        }
        match f.uint(1, u64::MAX)? {
            found if found == u64::from(SUITE) => {}
            found => return Err(ReleaseError::Suite { found }),
        }
        let layer = f.text(5, 1..=16)?;
        Ok(Self {
            tenant: f.text(2, 0..=ID_MAX)?.into(),
            key_id: f.text(3, 1..=ID_MAX)?.into(),
            key_version: f.uint(4, u64::MAX)?,
            layer: Layer::from_name(layer).ok_or_else(|| f.bad(5, "a layer"))?,
            evidence_digest: f.array(6)?,
            nonce: f.bytes(7, NONCE_MIN..=NONCE_MAX)?.into(),
            recipient: {
                let key = f.bytes(8, 65..=65)?;
                PublicKey::from_bytes(key).map_err(|_| f.bad(8, "a point of the curve"))?
            },
            receipt_id: f.array(9)?,
        })
    }
}

/// A sealed key in transit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyBox {
    info_bytes: Vec<u8>,
    info: ReleaseInfo,
    enc: [u8; ENC_LEN],
    ct: Vec<u8>,
}

/// The recipient's values, which a box must match.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// Layer of the recipient's evidence.
    pub layer: Layer,
    /// Its digest.
    pub evidence_digest: &'a [u8; 32],
    /// Its nonce.
    pub nonce: &'a [u8],
    /// Tenant and id of the requested key, if the recipient requested it by name.
    pub key: Option<(&'a str, &'a str)>,
}

impl KeyBox {
    /// Seals `secret` to `info.recipient`.
    ///
    /// # Errors
    /// The secret is too long.
    pub fn seal(
        info: &ReleaseInfo,
        secret: &[u8],
        entropy: &mut dyn Entropy,
    ) -> Result<Self, ReleaseError> {
        if secret.len() > MAX_SECRET {
            return Err(ReleaseError::Secret { expected: "at most 512 bytes" });
        }
        let info_bytes = info.to_cbor();
        // Seals only an `info` that can be parsed again.
        let info = ReleaseInfo::from_cbor(&info_bytes)?;
        let (enc, ct) =
            hpke_suite::seal(&info.recipient, &info_bytes, &SUITE.to_be_bytes(), secret, entropy)?;
        Ok(Self { info_bytes, info, enc, ct })
    }

    /// The bytes of the box.
    #[must_use]
    pub fn to_cbor(&self) -> Vec<u8> {
        Value::map(vec![
            (1, u64::from(SUITE).into()),
            (2, self.info_bytes.as_slice().into()),
            (3, (&self.enc).into()),
            (4, self.ct.as_slice().into()),
        ])
        .encode()
    }

    /// Parses a box.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn from_cbor(bytes: &[u8]) -> Result<Self, ReleaseError> {
        let mut f = Fields::new(cbor::read(bytes, &Limits::bytes(MAX_BOX))?, "key box")?;
        match f.uint(1, u64::MAX)? {
            found if found == u64::from(SUITE) => {}
            found => return Err(ReleaseError::Suite { found }),
        }
        let info_bytes = f.bytes(2, 1..=MAX_BOX)?;
        let (enc, ct) = (f.array(3)?, f.bytes(4, 16..=MAX_SECRET + 16)?);
        f.finish()?;
        let info = ReleaseInfo::from_cbor(info_bytes)?;
        Ok(Self { info_bytes: info_bytes.into(), info, enc, ct: ct.into() })
    }

    /// The claimed binding; opening the box authenticates it.
    #[must_use]
    pub fn info(&self) -> &ReleaseInfo {
        &self.info
    }

    /// Checks the bindings and opens.
    ///
    /// # Errors
    /// Made for another purpose, or does not open.
    pub fn open(
        &self,
        key: &PrivateKey,
        expected: &Expected<'_>,
    ) -> Result<Zeroizing<Vec<u8>>, ReleaseError> {
        let binding = |what| Err(ReleaseError::Binding { what });
        if self.info.layer != expected.layer {
            return binding("layer");
        }
        if self.info.evidence_digest != *expected.evidence_digest {
            return binding("evidence");
        }
        if self.info.nonce != expected.nonce {
            return binding("nonce");
        }
        if self.info.recipient != key.public_key() {
            return binding("recipient key");
        }
        if expected.key.is_some_and(|(tenant, key_id)| {
            self.info.tenant != tenant || self.info.key_id != key_id
        }) {
            return binding("key");
        }
        Ok(hpke_suite::open(key, &self.enc, &self.info_bytes, &SUITE.to_be_bytes(), &self.ct)?)
    }
}

/// The IP vendor's release to a kernel: the image key and the constraints that the kernel checks
/// the image against.
pub struct ImageSecret {
    /// Key of the container.
    pub key: ImageKey,
    /// Minimum security version number of an image that may be loaded with it.
    pub min_svn: u64,
    /// Required signer of the image header.
    pub vendor: PublicKey,
}

const IMAGE_SECRET_LABEL: &[u8] = b"shef-image-key/1";

impl ImageSecret {
    /// `"shef-image-key/1" | key (32) | min_svn u64 | vendor_len u16 | vendor`.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut out = Zeroizing::new(Vec::with_capacity(160));
        out.extend_from_slice(IMAGE_SECRET_LABEL);
        out.extend_from_slice(self.key.expose());
        out.extend_from_slice(&self.min_svn.to_be_bytes());
        out.extend_from_slice(&(self.vendor.as_bytes().len() as u16).to_be_bytes());
        out.extend_from_slice(self.vendor.as_bytes());
        out
    }

    /// Reads the output of [`ImageSecret::to_bytes`].
    ///
    /// # Errors
    /// Any other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ReleaseError> {
        const EXPECTED: ReleaseError = ReleaseError::Secret { expected: "an image key" };
        let rest = bytes.strip_prefix(IMAGE_SECRET_LABEL).ok_or(EXPECTED)?;
        let (key, rest) = rest.split_first_chunk::<32>().ok_or(EXPECTED)?;
        let (min_svn, rest) = rest.split_first_chunk::<8>().ok_or(EXPECTED)?;
        let (len, vendor) = rest.split_first_chunk::<2>().ok_or(EXPECTED)?;
        if usize::from(u16::from_be_bytes(*len)) != vendor.len() {
            return Err(EXPECTED);
        }
        let vendor = PublicKey::from_bytes(vendor).map_err(|_| EXPECTED)?;
        Ok(Self { key: ImageKey::from_bytes(key), min_svn: u64::from_be_bytes(*min_svn), vendor })
    }
}
