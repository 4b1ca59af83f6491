//! The image container: a signed header and numbered AES-256-GCM chunks; the last one is marked.
//!
//! The IP vendor signs the header, which lists the digest of every sealed chunk. The image key is
//! released only to an attested kernel, which checks each chunk in its private memory. Image digest
//! = SHA-256(signed header | plaintext).

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use zeroize::Zeroizing;

use crate::cbor::{self, CborError, Fields, Limits, Value};
use crate::config::{Config, ConfigError};
use crate::cose::{self, ContentType, CoseError, Form, Sign1, SigningKey};
use crate::crypto::{self, ACTIVE, Active, Crypto};
use crate::entropy::Entropy;
use crate::evidence::{AcceptedEntropy, NAME_MAX, UNMEASURED};
use crate::hpke_suite::{PublicKey, SUITE};

/// First bytes of a container.
pub const MAGIC: &[u8; 8] = b"SHEFIMG1";
/// Maximum size of a signed header.
pub const MAX_HEADER: usize = 64 * 1024;
/// Maximum plaintext bytes of a chunk: a sealed chunk fits one mailbox message.
pub const MAX_CHUNK: usize = 4096;
/// Bytes that sealing adds to a chunk.
pub const TAG_LEN: usize = 16;

/// Items of a header: its fields, and the digests that fit in [`MAX_HEADER`].
const ITEMS: usize = 32 + MAX_HEADER / 34;

/// Form of the signed header.
pub const FORM: Form = Form {
    tags: &[cose::TAG_SIGN1],
    content_type: ContentType::Media("application/shef-image+cbor"),
    domain: b"shef-image/1",
    max_len: MAX_HEADER,
    x5chain: false,
};

crate::coded! {
    /// Why an image is rejected.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum ImageError {
        /// The header is not a signed message of this form.
        #[error("header: {0}")]
        Header(#[from] CoseError) => (error) error.code(),
        /// The header's fields are not those of the format.
        #[error("header: {0}")]
        Fields(#[from] CborError) => (error) error.code(),
        /// The configuration in the header is invalid.
        #[error("configuration: {0}")]
        Config(#[from] ConfigError) => (error) error.code(),
        /// An unknown suite.
        #[error("unknown suite {found}")]
        Suite {
            /// Its number.
            found: u64,
        } = "SHEF-PRO-031",
        /// Not a container, truncated, or followed by other bytes.
        #[error("container has {found} bytes where its header says {expected}")]
        Length {
            /// Expected bytes.
            expected: usize,
            /// Actual bytes.
            found: usize,
        } = "SHEF-PRO-040": "not an image container",
            "The file does not begin with SHEFIMG1, was cut, or is followed by other bytes. Build or copy it again.",
        /// The first bytes are not those of a container.
        #[error("not an image container")]
        Magic = "SHEF-PRO-040",
        /// The digest of a chunk is not the one in the header.
        #[error("chunk {index} is not the one that the header lists")]
        ChunkDigest {
            /// The chunk.
            index: usize,
        } = "SHEF-PRO-041": "image chunk changed",
            "A chunk's bytes are not the ones whose digest the vendor signed in the header. The container was changed on its way.",
        /// A chunk does not open under the image key.
        #[error("chunk {index} does not open under this image key")]
        ChunkOpen {
            /// The chunk.
            index: usize,
        } = "SHEF-PRO-042": "image chunk does not open", "The chunk is as the vendor signed it, but the image key is another one.",
        /// A chunk out of order, or after the last one.
        #[error("chunk {found} where chunk {expected} is due")]
        ChunkOrder {
            /// The expected chunk.
            expected: usize,
            /// The received chunk.
            found: usize,
        } = "SHEF-PRO-043": "image chunks missing or out of order",
            "Chunks are numbered and come in order, each once, up to the one with the last mark.",
        /// Chunks are missing.
        #[error("{missing} chunks are missing")]
        Incomplete {
            /// Their number.
            missing: usize,
        } = "SHEF-PRO-043",
        /// An image that cannot be built.
        #[error("{what} must be {expected}")]
        Build {
            /// The invalid part.
            what: &'static str,
            /// Expected value.
            expected: &'static str,
        } = "SHEF-PRO-044": "image cannot be built",
            "A value is out of the range of the container format; docs/reference/image-container.md lists the ranges.",
    }
}

/// The AES-256 key of one container, erased on drop. A key seals only one container.
pub struct ImageKey(Zeroizing<[u8; 32]>);

impl ImageKey {
    /// A fresh key.
    #[must_use]
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        let mut key = Zeroizing::new([0; 32]);
        entropy.fill(&mut key[..]);
        Self(key)
    }

    /// The key with these bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; 32]) -> Self {
        Self(Zeroizing::new(*bytes))
    }

    /// The bytes, for storing or sealing the key.
    #[must_use]
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// Seals one chunk.
    fn seal(&self, container: &[u8; 16], index: usize, last: bool, chunk: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(chunk.len() + TAG_LEN);
        out.extend_from_slice(chunk);
        let tag = ACTIVE.seal(&self.0[..], &iv(index, last), &aad(container), &mut out);
        out.extend_from_slice(&tag);
        out
    }

    /// Opens one chunk.
    fn open(
        &self,
        container: &[u8; 16],
        index: usize,
        last: bool,
        sealed: &[u8],
    ) -> Option<Zeroizing<Vec<u8>>> {
        let (data, tag) = sealed.split_last_chunk::<TAG_LEN>()?;
        let mut data = Zeroizing::new(data.to_vec());
        ACTIVE.open(&self.0[..], &iv(index, last), &aad(container), &mut data, tag).then_some(data)
    }
}

/// IV of a chunk: seven zero bytes, its number (32 bits), and 1 for the last chunk.
fn iv(index: usize, last: bool) -> [u8; 12] {
    let mut iv = [0; 12];
    iv[7..11].copy_from_slice(&(index as u32).to_be_bytes());
    iv[11] = u8::from(last);
    iv
}

fn aad(container: &[u8; 16]) -> [u8; 28] {
    let mut aad = [0; 28];
    aad[..12].copy_from_slice(b"shef-image/1");
    aad[12..].copy_from_slice(container);
    aad
}

/// An IP vendor's description of an image.
#[derive(Clone, Debug)]
pub struct Description {
    /// Target device.
    pub target: String,
    /// Name of the accelerator.
    pub accelerator: String,
    /// Security version number.
    pub svn: u64,
    /// Minimum security version number of a kernel that may load it.
    pub min_kernel_svn: u64,
    /// The Shield's configuration.
    pub config: Config,
    /// Digest of the design that the plaintext describes.
    pub design_digest: [u8; 32],
    /// Plaintext bytes of a chunk, 1 to [`MAX_CHUNK`].
    pub chunk_size: usize,
    /// The weakest noise source from which the kernel may make a seed for this image's Shield.
    pub entropy: AcceptedEntropy,
}

/// A parsed header. Its signature is unverified until [`Header::open`] or [`Header::verify`].
#[derive(Clone, Debug)]
pub struct Header {
    signed: Sign1,
    description: Description,
    container: [u8; 16],
    total: usize,
    digests: Vec<[u8; 32]>,
}

impl Header {
    /// Parses a signed header without verifying its signature.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn parse(bytes: &[u8]) -> Result<Self, ImageError> {
        Self::of(Sign1::parse(&FORM, bytes)?)
    }

    /// Parses a header signed by `vendor`; verifies the signature first.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn open(bytes: Vec<u8>, vendor: &PublicKey) -> Result<Self, ImageError> {
        let signed = Sign1::take(&FORM, bytes)?;
        signed.verify(vendor)?;
        Self::of(signed)
    }

    fn of(signed: Sign1) -> Result<Self, ImageError> {
        let limits = Limits::bytes(MAX_HEADER).items(ITEMS);
        let mut f = Fields::new(cbor::read(signed.payload(), &limits)?, "image header")?;
        match f.uint(1, u64::MAX)? {
            found if found == u64::from(SUITE) => {}
            found => return Err(ImageError::Suite { found }),
        }
        let description = Description {
            target: f.text(2, 1..=NAME_MAX)?.into(),
            accelerator: f.text(3, 1..=NAME_MAX)?.into(),
            svn: f.uint(4, u64::MAX)?,
            min_kernel_svn: f.uint(5, u64::MAX)?,
            config: Config::from_cbor(f.bytes(6, 1..=MAX_HEADER)?)?,
            design_digest: f.array(7)?,
            chunk_size: f.uint(9, MAX_CHUNK as u64)? as usize,
            entropy: match f.optional(12) {
                None => AcceptedEntropy::Tested,
                Some(Value::Text(UNMEASURED)) => AcceptedEntropy::Unmeasured,
                Some(_) => return Err(f.bad(12, "\"unmeasured\", or absent").into()),
            },
        };
        let container = f.array(8)?;
        let total =
            usize::try_from(f.uint(10, u64::from(u32::MAX))?).map_err(|_| f.bad(10, "a length"))?;
        if description.chunk_size == 0 || total == 0 {
            return Err(f.bad(9, "a chunk size and a length of at least 1").into());
        }
        let Value::Array(list) = f.take(11)? else {
            return Err(f.bad(11, "a list of digests").into());
        };
        let mut digests = Vec::with_capacity(list.len());
        for digest in list {
            match digest {
                Value::Bytes(digest) => digests.push(
                    <[u8; 32]>::try_from(digest).map_err(|_| f.bad(11, "a list of digests"))?,
                ),
                _ => return Err(f.bad(11, "a list of digests").into()),
            }
        }
        if digests.len() != total.div_ceil(description.chunk_size) {
            return Err(f.bad(11, "one digest for each chunk").into());
        }
        f.finish()?;
        Ok(Self { signed, description, container, total, digests })
    }

    /// Verifies the vendor's signature.
    ///
    /// # Errors
    /// It is not `vendor`'s.
    pub fn verify(&self, vendor: &PublicKey) -> Result<(), ImageError> {
        Ok(self.signed.verify(vendor)?)
    }

    /// The vendor's description of the image.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// The signed bytes as received.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.signed.bytes()
    }

    /// SHA-256 of the signed bytes.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        crypto::sha256(self.bytes())
    }

    /// Random id of this container.
    #[must_use]
    pub fn container_id(&self) -> &[u8; 16] {
        &self.container
    }

    /// Total plaintext bytes.
    #[must_use]
    pub fn plaintext_len(&self) -> usize {
        self.total
    }

    /// Number of chunks.
    #[must_use]
    pub fn chunks(&self) -> usize {
        self.digests.len()
    }

    /// Bytes of sealed chunk `index`.
    #[must_use]
    pub fn sealed_len(&self, index: usize) -> usize {
        let size = self.description.chunk_size;
        let plain = if index + 1 == self.chunks() { self.total - index * size } else { size };
        plain + TAG_LEN
    }

    /// Checks the digest of a sealed chunk.
    ///
    /// # Errors
    /// It differs from the one in the header.
    pub fn check_chunk(&self, index: usize, sealed: &[u8]) -> Result<(), ImageError> {
        let digest = crypto::sha256(sealed);
        match self.digests.get(index) {
            Some(expected) if *expected == digest => Ok(()),
            Some(_) => Err(ImageError::ChunkDigest { index }),
            None => Err(ImageError::ChunkOrder { expected: self.chunks(), found: index }),
        }
    }
}

/// Opens and measures the chunks of one container, in order.
pub struct Opener {
    header: Header,
    key: ImageKey,
    next: usize,
    hash: <Active as Crypto>::Running,
}

impl Opener {
    /// An opener for the chunks under `header`, whose signature the caller has verified.
    #[must_use]
    pub fn new(header: Header, key: ImageKey) -> Self {
        let mut hash = ACTIVE.begin();
        ACTIVE.add(&mut hash, header.bytes());
        Self { header, key, next: 0, hash }
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Number of the next expected chunk.
    #[must_use]
    pub fn next(&self) -> usize {
        self.next
    }

    /// Checks and opens the next chunk, and returns its plaintext.
    ///
    /// # Errors
    /// Out of order, changed, or not under this key. The opener is unchanged.
    pub fn push(&mut self, index: usize, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, ImageError> {
        if index != self.next || index >= self.header.chunks() {
            return Err(ImageError::ChunkOrder { expected: self.next, found: index });
        }
        self.header.check_chunk(index, sealed)?;
        let last = index + 1 == self.header.chunks();
        if sealed.len() != self.header.sealed_len(index) {
            return Err(ImageError::ChunkOpen { index });
        }
        let plain = self
            .key
            .open(&self.header.container, index, last, sealed)
            .ok_or(ImageError::ChunkOpen { index })?;
        ACTIVE.add(&mut self.hash, &plain);
        self.next += 1;
        Ok(plain)
    }

    /// The image digest, after the last chunk.
    ///
    /// # Errors
    /// Chunks are missing.
    pub fn finish(self) -> Result<[u8; 32], ImageError> {
        match self.header.chunks() - self.next {
            0 => Ok(ACTIVE.end(self.hash)),
            missing => Err(ImageError::Incomplete { missing }),
        }
    }
}

/// A container split into header and sealed chunks. The digests of the chunks are verified, the
/// signature is not.
#[derive(Clone, Debug)]
pub struct Container {
    header: Header,
    chunks: Vec<Vec<u8>>,
}

impl Container {
    /// Builds and signs a container. `key` must be fresh: it seals only this container.
    ///
    /// # Errors
    /// A value is out of range.
    pub fn build(
        description: &Description,
        plaintext: &[u8],
        key: &ImageKey,
        vendor: &SigningKey,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, ImageError> {
        let build = |what, expected| Err(ImageError::Build { what, expected });
        if !(1..=MAX_CHUNK).contains(&description.chunk_size) {
            return build("chunk size", "1 to 4096 bytes");
        }
        if plaintext.is_empty() || plaintext.len() > u32::MAX as usize {
            return build("plaintext", "1 byte to 4 GiB");
        }
        for (what, name) in
            [("target", &description.target), ("accelerator", &description.accelerator)]
        {
            if !(1..=NAME_MAX).contains(&name.len()) {
                return build(what, "a name of 1 to 32 bytes");
            }
        }
        let mut container = [0; 16];
        entropy.fill(&mut container);
        let count = plaintext.len().div_ceil(description.chunk_size);
        let seal = |(index, chunk)| key.seal(&container, index, index + 1 == count, chunk);
        let chunks: Vec<Vec<u8>> =
            plaintext.chunks(description.chunk_size).enumerate().map(seal).collect();
        let digests =
            chunks.iter().map(|chunk| Value::Bytes(crypto::sha256(chunk).to_vec())).collect();
        let mut payload = vec![
            (1, u64::from(SUITE).into()),
            (2, description.target.as_str().into()),
            (3, description.accelerator.as_str().into()),
            (4, description.svn.into()),
            (5, description.min_kernel_svn.into()),
            (6, description.config.to_cbor().into()),
            (7, (&description.design_digest).into()),
            (8, (&container).into()),
            (9, (description.chunk_size as u64).into()),
            (10, (plaintext.len() as u64).into()),
            (11, Value::Array(digests)),
        ];
        if description.entropy == AcceptedEntropy::Unmeasured {
            payload.push((12, description.entropy.name().into()));
        }
        let bytes = cose::sign(&FORM, vendor, &Value::map(payload).encode(), &[]);
        if bytes.len() > MAX_HEADER {
            return build(
                "plaintext",
                "short enough for the header to list all chunks; take larger chunks",
            );
        }
        Ok(Self { header: Header::parse(&bytes)?, chunks })
    }

    /// The bytes of the container.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&(self.header.bytes().len() as u32).to_be_bytes());
        out.extend_from_slice(self.header.bytes());
        for chunk in &self.chunks {
            out.extend_from_slice(chunk);
        }
        out
    }

    /// Splits a container and checks the digest of every chunk.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn parse(bytes: &[u8]) -> Result<Self, ImageError> {
        let Some(rest) = bytes.strip_prefix(MAGIC) else { return Err(ImageError::Magic) };
        let Some((len, rest)) = rest.split_first_chunk::<4>() else {
            return Err(ImageError::Length { expected: MAGIC.len() + 4, found: bytes.len() });
        };
        let len = u32::from_be_bytes(*len) as usize;
        if len > MAX_HEADER || len > rest.len() {
            return Err(ImageError::Length { expected: MAGIC.len() + 4 + len, found: bytes.len() });
        }
        let (header, mut rest) = rest.split_at(len);
        let header = Header::parse(header)?;
        let expected = header.total + header.chunks() * TAG_LEN;
        if rest.len() != expected {
            return Err(ImageError::Length {
                expected: MAGIC.len() + 4 + len + expected,
                found: bytes.len(),
            });
        }
        let mut chunks = Vec::with_capacity(header.chunks());
        for index in 0..header.chunks() {
            let (chunk, after) = rest.split_at(header.sealed_len(index));
            header.check_chunk(index, chunk)?;
            chunks.push(chunk.to_vec());
            rest = after;
        }
        Ok(Self { header, chunks })
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The sealed chunks.
    #[must_use]
    pub fn chunks(&self) -> &[Vec<u8>] {
        &self.chunks
    }

    /// Verifies the vendor's signature and opens all chunks: image digest and plaintext.
    ///
    /// # Errors
    /// Not signed by `vendor`, or not under this key.
    pub fn open(
        &self,
        vendor: &PublicKey,
        key: ImageKey,
    ) -> Result<([u8; 32], Zeroizing<Vec<u8>>), ImageError> {
        self.header.verify(vendor)?;
        let mut opener = Opener::new(self.header.clone(), key);
        // Reserved once, so that growth leaves no copy of the plaintext behind.
        let mut plaintext = Zeroizing::new(Vec::with_capacity(self.header.total));
        for (index, chunk) in self.chunks.iter().enumerate() {
            plaintext.extend_from_slice(&opener.push(index, chunk)?);
        }
        Ok((opener.finish()?, plaintext))
    }
}
