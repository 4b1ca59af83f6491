//! The hardware interface of boot code and kernel.

use alloc::string::String;
use alloc::vec::Vec;

use shef_proto::evidence::{DebugState, RootOfTrust};
use zeroize::Zeroizing;

/// A hardware operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct PlatformError {
    /// The failed operation.
    pub what: String,
}

impl PlatformError {
    /// An error with this text.
    #[must_use]
    pub fn new(what: &str) -> Self {
        Self { what: what.into() }
    }
}

/// The source of random bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntropyQuality {
    /// A source that currently passes its health test, with a measured min-entropy.
    Tested,
    /// A source that currently passes its health test, which assumes a min-entropy that was never
    /// measured. It is reported in evidence, and gives a seed only to an image that accepts it.
    Unmeasured,
    /// A test seed: reproducible, for simulated devices only, and reported in evidence.
    Seeded,
    /// No source, or its health test fails: the bytes must not be used.
    Failed,
}

/// The shell around the core, as measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    /// Measurement of the shell.
    pub digest: [u8; 32],
    /// The shell lets the host reconfigure the fabric.
    pub config_port: bool,
    /// The shell lets the host read the fabric's state back.
    pub readback: bool,
    /// The shell contains a debug bridge.
    pub debug_bridge: bool,
}

/// The hardware under the boot code.
pub trait BootPlatform {
    /// The device secret. The first call since power-on returns and locks it; later calls return
    /// `None`.
    fn take_uds(&mut self) -> Option<Zeroizing<[u8; 32]>>;

    /// The DeviceID certificate installed by the manufacturer, in DER.
    fn device_id_certificate(&self) -> Vec<u8>;

    /// The kind of root of trust: where secret and kernel reside.
    fn root_of_trust(&self) -> RootOfTrust;

    /// Name of the device type, which is the target in images. 1 to 32 bytes.
    fn target(&self) -> String;

    /// Debug state at boot.
    fn debug_state(&mut self) -> DebugState;

    /// Generates 32 random bytes and reports their source. The boot code asks for them only if
    /// the root of trust is [`RootOfTrust::Provider`].
    fn entropy(&mut self, out: &mut [u8; 32]) -> EntropyQuality;
}

/// The hardware under the kernel.
pub trait Platform {
    /// The current debug state.
    fn debug_state(&mut self) -> DebugState;

    /// Generates 32 random bytes and reports their source.
    fn entropy(&mut self, out: &mut [u8; 32]) -> EntropyQuality;

    /// Loads and measures the shell, or measures the existing one.
    fn shell(&mut self) -> Result<Shell, PlatformError>;

    /// Clears the fabric for an image whose bytes follow.
    fn begin_image(&mut self) -> Result<(), PlatformError>;

    /// Programs the fabric with the next bytes of the decrypted image.
    fn program(&mut self, part: &[u8]) -> Result<(), PlatformError>;

    /// The image is complete: the Shield leaves reset.
    fn finish_image(&mut self) -> Result<(), PlatformError>;

    /// Wipes the Shield and clears the fabric, including a partial image. After an error, parts of
    /// it may remain: the kernel loads nothing and answers nothing about it until a later call
    /// succeeds.
    fn unload_image(&mut self) -> Result<(), PlatformError>;

    /// Digest of the design in the fabric, measured from the fabric and not from the image.
    fn design_digest(&mut self) -> Option<[u8; 32]>;

    /// Reads a 32-bit register of the Shield's kernel port.
    fn krn_read(&mut self, offset: u32) -> Result<u32, PlatformError>;

    /// Writes a 32-bit register of the Shield's kernel port.
    fn krn_write(&mut self, offset: u32, value: u32) -> Result<(), PlatformError>;

    /// Lets some time pass between polls (a simulation steps its clock by about a thousand cycles).
    fn idle(&mut self);
}
