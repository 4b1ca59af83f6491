//! Boot code: derives the measured kernel's attestation key from the device secret.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use shef_proto::cert::{self, Certificate, TcbInfo};
use shef_proto::cose::SigningKey;
use shef_proto::crypto::{self, ACTIVE, Crypto};
use shef_proto::evidence::{DebugState, RootOfTrust};
use zeroize::Zeroizing;

use crate::identity::{IDENTITY_MAX, Identity};
use crate::kernel::Kernel;
use crate::platform::{BootPlatform, EntropyQuality, Platform};

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
            /// The problem.
            what: &'static str,
        } = "SHEF-KRN-002": "not a kernel image", "The bytes given to the boot code are not a Security Kernel image.",
        /// The certificate in the device does not match its DeviceID key.
        #[error("the DeviceID certificate is not the one of this device ({what})")]
        DeviceIdCertificate {
            /// The mismatch.
            what: &'static str,
        } = "SHEF-KRN-003": "DeviceID certificate does not belong to this device",
            "The certificate in the device is not of the DeviceID key that its secret gives. A device in debug mode has another key, and \
             needs the certificate of a debug CA.",
        /// The image is not signed by the key that the boot code trusts.
        #[error("the kernel image is not signed by the signer that the boot ROM names ({what})")]
        Signature {
            /// The problem.
            what: &'static str,
        } = "SHEF-KRN-004": "kernel image not signed by the trusted signer",
            "The boot ROM names one signer of kernels. The image was changed, or is signed by another key: install the image and the \
             signature that came with this device's boot ROM.",
        /// The image is older than the boot code accepts.
        #[error("kernel image has security version {svn}, the boot ROM demands {least}")]
        Svn {
            /// Version of the image.
            svn: u64,
            /// Minimum version.
            least: u64,
        } = "SHEF-KRN-005": "kernel image too old",
            "The boot ROM demands a newer security version, so that an old kernel with a known flaw cannot return. Install a newer kernel.",
        /// A device whose secret is part of an image has no tested entropy.
        #[error("root of trust {kind} needs a tested entropy source at boot, and this one {quality}")]
        Entropy {
            /// Kind of the device.
            kind: &'static str,
            /// The actual quality of the source.
            quality: &'static str,
        } = "SHEF-KRN-006": "no tested entropy source at boot",
            "All cards that run one image share its secret, so the attestation key also needs fresh entropy. The noise source is seeded or \
             fails its health test. The boot code does not fall back to a weaker key. Reset the card; if it happens again, the shell's \
             noise source is broken.",
    }
}

/// Maximum bytes of an identity besides the DeviceID certificate and its subject's name, which the
/// AK certificate repeats. A test builds the longest one of each kind.
const REST_MAX: usize = 920;
const IMAGE_LABEL: &[u8] = b"shef-kernel/1";
const VERSION_MAX: usize = 32;

/// A kernel image: `"shef-kernel/1" | svn u64 | version_len u16 | version | code`. The measurement
/// covers all of it.
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

    /// Maximum number of bytes before the code.
    pub const HEAD_MAX: usize = IMAGE_LABEL.len() + 8 + 2 + VERSION_MAX;

    /// Reads an image.
    ///
    /// # Errors
    /// A wrong label, a truncated image, or a version that is too long.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BootError> {
        let (svn, version, head) = Self::parse_head(bytes)?;
        Ok(Self { svn, version, code: &bytes[head..] })
    }

    /// Reads security version, version text, and the number of bytes before the code. `bytes` must
    /// include at least one byte of the code.
    ///
    /// # Errors
    /// A wrong label, a truncated image, or a version that is too long.
    pub fn parse_head(bytes: &'a [u8]) -> Result<(u64, &'a str, usize), BootError> {
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
        Ok((u64::from_be_bytes(*svn), version, bytes.len() - code.len()))
    }

    /// SHA-256 of an image's bytes, as in TcbInfo, evidence and reference values.
    #[must_use]
    pub fn digest(bytes: &[u8]) -> [u8; 32] {
        crypto::sha256(bytes)
    }
}

fn derive(salt: &[u8], ikm: &[u8], info: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    crypto::expand(&crypto::extract(salt, &[ikm]), info)
}

/// The device secret for this kind of device: simulated and debug devices derive a different secret
/// and therefore different keys.
fn device_secret(uds: &[u8; 32], kind: RootOfTrust, debug: bool) -> Zeroizing<[u8; 32]> {
    derive(b"", uds, &[b"shef-uds/1", &[u8::from(debug)], kind.name().as_bytes()])
}

fn device_id_of(secret: &[u8; 32]) -> SigningKey {
    SigningKey::derive(&derive(b"", secret, &[b"shef-device-id/1"])[..])
}

/// The DeviceID key of a device with this secret. The manufacturer certifies its public key. In the
/// device, only the boot code has the private key.
#[must_use]
pub fn device_id_key(uds: &[u8; 32], kind: RootOfTrust, debug: bool) -> SigningKey {
    device_id_of(&device_secret(uds, kind, debug))
}

/// The boot code's measurement.
pub struct Measurement<'a> {
    /// SHA-256 of the image.
    pub digest: [u8; 32],
    /// Its security version number.
    pub svn: u64,
    /// Its version text.
    pub version: &'a str,
}

/// Fresh bytes for the attestation key of a device whose secret is part of an image: without them,
/// all cards that run the image would share one key. Other kinds need no fresh bytes.
///
/// No image is known yet, so an unmeasured source is taken: evidence reports it, and the kernel makes
/// no seed from it unless the image accepts it.
fn fresh<P: BootPlatform>(
    platform: &mut P,
    kind: RootOfTrust,
) -> Result<Option<Zeroizing<[u8; 32]>>, BootError> {
    if kind != RootOfTrust::Provider {
        return Ok(None);
    }
    let mut bytes = Zeroizing::new([0; 32]);
    let refused = |quality| BootError::Entropy { kind: kind.name(), quality };
    match platform.entropy(&mut bytes) {
        EntropyQuality::Tested | EntropyQuality::Unmeasured => Ok(Some(bytes)),
        EntropyQuality::Seeded => Err(refused("is seeded")),
        EntropyQuality::Failed => Err(refused("fails its test")),
    }
}

/// Takes and locks the device secret, derives DeviceID, CDI and the measured kernel's attestation
/// key, certifies that key, and erases device secret and DeviceID private key. The result is the
/// kernel's identity.
///
/// # Errors
/// The secret was already taken, the certificate is not this device's, or a device of kind
/// [`RootOfTrust::Provider`] has no tested entropy.
pub fn identify<P: BootPlatform>(
    platform: &mut P,
    kernel: &Measurement<'_>,
) -> Result<Identity, BootError> {
    let root_of_trust = platform.root_of_trust();
    // First: an error here leaves the secret untouched.
    let fresh = fresh(platform, root_of_trust)?;
    let debug_at_boot = platform.debug_state();
    let debug = debug_at_boot == DebugState::Enabled;
    // Reads the host's bytes before the secret is taken.
    let certificate = platform.device_id_certificate();
    let certificate = Certificate::parse(&certificate)
        .map_err(|_| BootError::DeviceIdCertificate { what: "malformed" })?;
    // The identity holds this certificate, and the AK certificate repeats its subject.
    if certificate.der().len() + certificate.subject().len() + REST_MAX > IDENTITY_MAX {
        return Err(BootError::DeviceIdCertificate { what: "too long" });
    }
    let secret = {
        let uds = platform.take_uds().ok_or(BootError::UdsLocked)?;
        device_secret(&uds, root_of_trust, debug)
    };
    let device_id = device_id_of(&secret);
    if *certificate.key() != device_id.public_key() {
        return Err(BootError::DeviceIdCertificate { what: "another key" });
    }

    let measured = ACTIVE.sha256(&[
        b"shef-cdi/1",
        &kernel.digest,
        &kernel.svn.to_be_bytes(),
        &[u8::from(debug)],
    ]);
    let cdi = derive(&measured, &secret[..], &[b"shef-cdi/1"]);
    drop(secret);

    let ak = match fresh {
        None => derive(b"", &cdi[..], &[b"shef-ak/1"]),
        Some(fresh) => derive(&fresh[..], &cdi[..], &[b"shef-ak-fresh/1"]),
    };
    let ak = SigningKey::derive(&ak[..]);
    let info = TcbInfo {
        version: String::from(kernel.version),
        svn: kernel.svn,
        digest: kernel.digest,
        flags: if debug { cert::FLAG_DEBUG } else { 0 },
    };
    let ak_certificate = cert::issue_ak(&device_id, &certificate, &ak.public_key(), &info);
    drop(device_id);

    Ok(Identity {
        cdi,
        ak,
        certificates: vec![ak_certificate, certificate.der().to_vec()],
        ueid: cert::ueid_of(certificate.key()),
        kernel_digest: kernel.digest,
        kernel_svn: kernel.svn,
        kernel_version: String::from(kernel.version),
        root_of_trust,
        target: platform.target(),
        debug_at_boot,
    })
}

/// Boots natively: measures `image`, and starts the kernel of this build with the identity that
/// [`identify`] returns.
///
/// # Errors
/// Those of [`identify`], or the image is not a kernel.
pub fn boot<P: BootPlatform + Platform>(
    mut platform: P,
    image: &[u8],
) -> Result<Kernel<P>, BootError> {
    let parsed = KernelImage::parse(image)?;
    let measurement = Measurement {
        digest: KernelImage::digest(image),
        svn: parsed.svn,
        version: parsed.version,
    };
    let identity = identify(&mut platform, &measurement)?;
    Ok(Kernel::new(platform, identity))
}
