//! What boot code and kernel see of the hardware.

use alloc::string::String;
use alloc::vec::Vec;

use shef_proto::evidence::{DebugState, RootOfTrust};
use zeroize::Zeroizing;

/// The hardware did not do it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct PlatformError {
    /// What failed.
    pub what: String,
}

impl PlatformError {
    /// An error with this text.
    #[must_use]
    pub fn new(what: &str) -> Self {
        Self { what: what.into() }
    }
}

/// Where random bytes came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntropyQuality {
    /// A source whose health test passes now.
    Tested,
    /// A test's seed: repeatable, for simulated devices only. Shows in evidence.
    Seeded,
    /// No source, or its health test fails: the bytes are worthless.
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
    /// The shell holds a debug bridge.
    pub debug_bridge: bool,
}

/// The hardware under the boot code.
pub trait BootPlatform {
    /// The device secret. The first call since power-on gives it and locks it; every later one
    /// gives `None`.
    fn take_uds(&mut self) -> Option<Zeroizing<[u8; 32]>>;

    /// The DeviceID certificate that the manufacturer put into the device, in DER.
    fn device_id_certificate(&self) -> Vec<u8>;

    /// Where secret and kernel live.
    fn root_of_trust(&self) -> RootOfTrust;

    /// Name of the device type; images name it as their target. 1 to 32 bytes.
    fn target(&self) -> String;

    /// Debug state at boot.
    fn debug_state(&mut self) -> DebugState;
}

/// The hardware under the kernel.
pub trait Platform {
    /// Debug state now.
    fn debug_state(&mut self) -> DebugState;

    /// Draws 32 random bytes and says how good they are.
    fn entropy(&mut self, out: &mut [u8; 32]) -> EntropyQuality;

    /// Loads and measures the shell, or measures the one that is there.
    fn shell(&mut self) -> Result<Shell, PlatformError>;

    /// Clears the fabric for an image whose bytes follow.
    fn begin_image(&mut self) -> Result<(), PlatformError>;

    /// Programs the fabric with the next bytes of the decrypted image.
    fn program(&mut self, part: &[u8]) -> Result<(), PlatformError>;

    /// The image is whole: the Shield comes out of reset.
    fn finish_image(&mut self) -> Result<(), PlatformError>;

    /// Wipes the Shield and clears the fabric, also of an image that is not whole.
    fn unload_image(&mut self);

    /// Digest of the design that stands in the fabric, taken from the fabric and not from the
    /// image.
    fn design_digest(&mut self) -> Option<[u8; 32]>;

    /// Reads a 32-bit register of the Shield's kernel port.
    fn krn_read(&mut self, offset: u32) -> Result<u32, PlatformError>;

    /// Writes a 32-bit register of the Shield's kernel port.
    fn krn_write(&mut self, offset: u32, value: u32) -> Result<(), PlatformError>;

    /// Lets some time pass between two looks at a register (a simulation steps its clock, a
    /// thousand cycles or so).
    fn idle(&mut self);
}
