//! The boot medium as the boot ROM reads it: kernel image, its signature and the DeviceID
//! certificate. All of it is untrusted until it is copied and checked.

use alloc::vec::Vec;

use shef_proto::cose::{self, SIGNATURE_LEN};
use shef_proto::crypto;
use shef_proto::hpke_suite::PublicKey;

use crate::boot::{BootError, Measurement};

const MAGIC: &[u8; 4] = b"SHKI";
/// Size of the signature file of a kernel image: `signature (r | s, 64) | public key (x | y, 64)`.
pub const SIGNATURE_FILE_LEN: usize = SIGNATURE_LEN + 64;
/// The signing key of kernels for simulated devices is derived from this. It is not secret.
pub const SIMULATED_SIGNER: &[u8] =
    b"shef/1: signer of kernels for simulated devices, known to all";
/// Maximum size of a DeviceID certificate.
const CERTIFICATE_MAX: usize = 2048;

/// Layout of a boot medium: `"SHKI" | total length u32 | length of the image u32 | image |
/// signature (64) | public key (64) | length of the certificate u32 | certificate`. Integers are
/// little-endian; image and certificate are zero-padded to whole words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Medium {
    /// Bytes of the image, which begins at [`Medium::IMAGE`].
    pub image_len: usize,
    /// Bytes of the DeviceID certificate.
    pub certificate_len: usize,
}

impl Medium {
    /// Offset of the image.
    pub const IMAGE: usize = 12;

    /// Offset of signature and public key.
    #[must_use]
    pub fn signature(&self) -> usize {
        Self::IMAGE + self.image_len.next_multiple_of(4)
    }

    /// Offset of the certificate.
    #[must_use]
    pub fn certificate(&self) -> usize {
        self.signature() + SIGNATURE_FILE_LEN + 4
    }

    /// Total bytes.
    fn len(&self) -> usize {
        self.certificate() + self.certificate_len.next_multiple_of(4)
    }

    /// The medium with these contents.
    #[must_use]
    pub fn build(
        image: &[u8],
        signature: &[u8; SIGNATURE_FILE_LEN],
        certificate: &[u8],
    ) -> Vec<u8> {
        let layout = Self { image_len: image.len(), certificate_len: certificate.len() };
        let mut out = Vec::with_capacity(layout.len());
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&(layout.len() as u32).to_le_bytes());
        out.extend_from_slice(&(image.len() as u32).to_le_bytes());
        out.extend_from_slice(image);
        out.resize(layout.signature(), 0);
        out.extend_from_slice(signature);
        out.extend_from_slice(&(certificate.len() as u32).to_le_bytes());
        out.extend_from_slice(certificate);
        out.resize(layout.len(), 0);
        out
    }

    /// Reads the lengths in a medium of `size` bytes, each once; `word` returns the four bytes at
    /// an offset.
    ///
    /// # Errors
    /// Not a medium, or its lengths are inconsistent.
    pub fn read(
        size: usize,
        image_max: usize,
        word: impl Fn(usize) -> [u8; 4],
    ) -> Result<Self, BootError> {
        let bad = |what| BootError::KernelImage { what };
        let length = |at| u32::from_le_bytes(word(at)) as usize;
        if word(0) != *MAGIC {
            return Err(bad("no boot medium"));
        }
        let (total, image_len) = (length(4), length(8));
        if total > size {
            return Err(bad("length of the boot medium"));
        }
        if image_len > image_max {
            return Err(bad("larger than the kernel's memory"));
        }
        let mut medium = Self { image_len, certificate_len: 0 };
        if medium.certificate() > total {
            return Err(bad("length of the boot medium"));
        }
        medium.certificate_len = length(medium.certificate() - 4);
        if medium.certificate_len > CERTIFICATE_MAX || medium.len() != total {
            return Err(bad("length of the boot medium"));
        }
        Ok(medium)
    }
}

/// Checks that a kernel may run: `signature` is its image's signature file, `signer` the SHA-256 of
/// the public key (`x | y`) that the boot ROM trusts.
///
/// # Errors
/// Another signer, a signature of other bytes or with a high s, or a kernel older than `least_svn`.
pub fn admit(
    kernel: &Measurement<'_>,
    signature: &[u8; SIGNATURE_FILE_LEN],
    signer: &[u8; 32],
    least_svn: u64,
) -> Result<(), BootError> {
    let refused = |what| BootError::Signature { what };
    let (signature, key) =
        signature.split_first_chunk::<SIGNATURE_LEN>().ok_or(refused("length"))?;
    let key: &[u8; 64] = key.try_into().map_err(|_| refused("length"))?;
    if crypto::sha256(key) != *signer {
        return Err(refused("another public key"));
    }
    let key = PublicKey::from_xy(key).map_err(|_| refused("not a public key"))?;
    if !cose::verify_digest(&key, &kernel.digest, signature) {
        return Err(refused("the signature does not verify"));
    }
    if !crypto::is_low_s(signature) {
        return Err(refused("s is above n / 2"));
    }
    if kernel.svn < least_svn {
        return Err(BootError::Svn { svn: kernel.svn, least: least_svn });
    }
    Ok(())
}
