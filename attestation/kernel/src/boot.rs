//! Boot code: from the device secret to an attestation key that is bound to the measured kernel.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use shef_proto::cert::{self, Certificate, TcbInfo};
use shef_proto::cose::SigningKey;
use shef_proto::evidence::{DebugState, RootOfTrust};
use zeroize::Zeroizing;

use crate::kernel::{Identity, Kernel};
use crate::platform::Platform;

shef_proto::coded! {
    /// Why the boot code stopped.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum BootError {
        /// The device secret was already read since power-on.
        #[error("the device secret was already taken since power-on")]
        UdsLocked = "SHEF-KRN-001": "device secret already taken",
            "The boot code reads the device secret once per power-on, then it is locked. Power-cycle the card.",
        /// The kernel image is malformed.
        #[error("not a kernel image: {what}")]
        KernelImage {
            /// What is wrong.
            what: &'static str,
        } = "SHEF-KRN-002": "not a kernel image", "The bytes given to the boot code are not a Security Kernel image.",
        /// The certificate in the device does not match its DeviceID key.
        #[error("the DeviceID certificate is not the one of this device ({what})")]
        DeviceIdCertificate {
            /// What is wrong.
            what: &'static str,
        } = "SHEF-KRN-003": "DeviceID certificate does not belong to this device",
            "The certificate in the device is not of the DeviceID key that its secret gives. A device in debug mode has another key, and \
             needs the certificate of a debug CA.",
    }
}

const IMAGE_LABEL: &[u8] = b"shef-kernel/1";
const VERSION_MAX: usize = 32;

/// A kernel image: `"shef-kernel/1" | svn u64 | version_len u16 | version | code`. All of it is
/// measured.
pub struct KernelImage<'a> {
    /// Security version number.
    pub svn: u64,
    /// Version text.
    pub version: &'a str,
    /// The code.
    pub code: &'a [u8],
}

impl<'a> KernelImage<'a> {
    /// The bytes of the image.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = IMAGE_LABEL.to_vec();
        out.extend_from_slice(&self.svn.to_be_bytes());
        out.extend_from_slice(&(self.version.len() as u16).to_be_bytes());
        out.extend_from_slice(self.version.as_bytes());
        out.extend_from_slice(self.code);
        out
    }

    /// Reads an image.
    ///
    /// # Errors
    /// A wrong label, a truncated image, or a version that is too long.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BootError> {
        let bad = |what| BootError::KernelImage { what };
        let rest = bytes.strip_prefix(IMAGE_LABEL).ok_or(bad("label"))?;
        let (svn, rest) = rest.split_first_chunk::<8>().ok_or(bad("length"))?;
        let (len, rest) = rest.split_first_chunk::<2>().ok_or(bad("length"))?;
        let len = usize::from(u16::from_be_bytes(*len));
        if len > VERSION_MAX || len > rest.len() {
            return Err(bad("version"));
        }
        let (version, code) = rest.split_at(len);
        let version = core::str::from_utf8(version).map_err(|_| bad("version"))?;
        if code.is_empty() {
            return Err(bad("no code"));
        }
        Ok(Self { svn: u64::from_be_bytes(*svn), version, code })
    }

    /// SHA-256 of an image's bytes, as in TcbInfo, evidence and reference values.
    #[must_use]
    pub fn digest(bytes: &[u8]) -> [u8; 32] {
        Sha256::digest(bytes).into()
    }
}

fn derive(salt: &[u8], ikm: &[u8], info: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut out = Zeroizing::new([0; 32]);
    // 32 bytes are within HKDF's limit.
    let _ = Hkdf::<Sha256>::new(Some(salt), ikm).expand(info, &mut out[..]);
    out
}

/// The device secret for this kind of device: simulated and debug devices derive a different secret
/// and therefore different keys.
fn device_secret(uds: &[u8; 32], kind: RootOfTrust, debug: bool) -> Zeroizing<[u8; 32]> {
    let mut info = b"shef-uds/1".to_vec();
    info.push(u8::from(debug));
    info.extend_from_slice(kind.name().as_bytes());
    derive(b"", uds, &info)
}

fn device_id_of(secret: &[u8; 32]) -> SigningKey {
    SigningKey::derive(&derive(b"", secret, b"shef-device-id/1")[..])
}

/// The DeviceID key of a device with this secret. The manufacturer certifies its public key. In the
/// device, only the boot code has the private key.
#[must_use]
pub fn device_id_key(uds: &[u8; 32], kind: RootOfTrust, debug: bool) -> SigningKey {
    device_id_of(&device_secret(uds, kind, debug))
}

/// Boots: takes and locks the device secret, measures `kernel_image`, derives DeviceID, CDI and
/// attestation key, certifies the latter, erases device secret and DeviceID private key, and starts
/// the kernel with what remains.
///
/// # Errors
/// The secret was already taken, the image is not a kernel, or the certificate is for another
/// device.
pub fn boot<P: Platform>(mut platform: P, kernel_image: &[u8]) -> Result<Kernel<P>, BootError> {
    let kind = platform.root_of_trust();
    let debug_state = platform.debug_state();
    let debug = debug_state == DebugState::Enabled;
    let secret = {
        let uds = platform.take_uds().ok_or(BootError::UdsLocked)?;
        device_secret(&uds, kind, debug)
    };
    let image = KernelImage::parse(kernel_image)?;
    let digest = KernelImage::digest(kernel_image);

    let device_id = device_id_of(&secret);
    let certificate = platform.device_id_certificate();
    let certificate = Certificate::parse(&certificate).map_err(|_| BootError::DeviceIdCertificate { what: "malformed" })?;
    if *certificate.key() != device_id.public_key() {
        return Err(BootError::DeviceIdCertificate { what: "another key" });
    }

    let mut measured = Sha256::new();
    measured.update(b"shef-cdi/1");
    measured.update(digest);
    measured.update(image.svn.to_be_bytes());
    measured.update([u8::from(debug)]);
    let cdi = derive(&measured.finalize(), &secret[..], b"shef-cdi/1");
    drop(secret);

    let ak = SigningKey::derive(&derive(b"", &cdi[..], b"shef-ak/1")[..]);
    let info = TcbInfo { version: String::from(image.version), svn: image.svn, digest, flags: if debug { cert::FLAG_DEBUG } else { 0 } };
    let ak_certificate = cert::issue_ak(&device_id, &certificate, &ak.public_key(), &info);
    drop(device_id);

    let identity = Identity {
        cdi,
        ak,
        certificates: vec![ak_certificate, certificate.der().to_vec()],
        ueid: cert::ueid_of(certificate.key()),
        kernel_digest: digest,
        kernel_svn: image.svn,
        kernel_version: String::from(image.version),
        root_of_trust: kind,
        target: platform.target(),
        debug_at_boot: debug_state,
    };
    Ok(Kernel::new(platform, identity))
}
