//! Simulated hardware below boot code and kernel.

use std::cell::RefCell;
use std::rc::Rc;

use sha2::{Digest, Sha256};
use shef_device::SimKernel;
use shef_kernel::{BootPlatform, EntropyQuality, KernelImage, Platform, PlatformError, Shell};
use shef_project::{Program, TARGET};
use shef_proto::entropy::{Entropy, SeededEntropy};
use shef_proto::evidence::{DebugState, RootOfTrust};
use shef_regs::krn;
use zeroize::Zeroizing;

use crate::CardError;
use crate::backend::Backend;

/// Security version of the kernel.
pub const KERNEL_SVN: u64 = 1;

/// Kernel image of the FPGA's processor, as committed.
pub(crate) const FIRMWARE: &[u8] = include_bytes!("../../../attestation/firmware/kernel.img");

/// The Security Kernel's image, as the boot code measures it: the committed one of the FPGA's
/// processor. For a native kernel, the digests of its crate's sources stand for its code.
pub(crate) fn kernel_image(kernel: SimKernel) -> Vec<u8> {
    match kernel {
        SimKernel::Firmware => FIRMWARE.to_vec(),
        SimKernel::Native => native_image(),
    }
}

fn native_image() -> Vec<u8> {
    let code: Vec<u8> = SOURCES.iter().flat_map(|(_, text)| Sha256::digest(text)).collect();
    KernelImage { svn: KERNEL_SVN, version: env!("CARGO_PKG_VERSION"), code: &code }.to_bytes()
}

macro_rules! sources {
    ($($name:literal)*) => { &[$(($name, include_bytes!(concat!("../../../attestation/kernel/src/", $name)))),*] };
}

/// All sources of the crate `shef-kernel`.
const SOURCES: &[(&str, &[u8])] =
    sources!["boot.rs" "error.rs" "identity.rs" "kernel.rs" "lib.rs" "medium.rs" "platform.rs"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_native_kernel_is_measured_whole() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../attestation/kernel/src");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, SOURCES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}

/// Measurement of a card's Security Kernel, as computed by the boot code.
pub fn kernel_digest(kernel: SimKernel) -> [u8; 32] {
    KernelImage::digest(&kernel_image(kernel))
}

/// Measurement of the simulation shell.
pub fn shell_digest() -> [u8; 32] {
    Sha256::digest(b"shef-shell/1 simulation").into()
}

/// The manufacturer's fuses.
pub(crate) struct Fuses {
    pub(crate) uds: Zeroizing<[u8; 32]>,
    pub(crate) certificate: Vec<u8>,
    pub(crate) debug: bool,
}

/// The card's source of randomness. A reset does not restart it, so no two sessions draw the same
/// bytes.
pub(crate) enum Source {
    System { unmeasured: bool },
    Seeded(Box<SeededEntropy>),
}

pub(crate) type SharedBackend = Rc<RefCell<Box<dyn Backend>>>;

/// State of the fabric, which kernel and host see differently.
pub(crate) struct Fabric {
    pub(crate) programmed: bool,
}

/// State that boot code and kernel share with the rest of the card.
#[derive(Clone)]
pub(crate) struct Hardware {
    pub(crate) backend: SharedBackend,
    pub(crate) fabric: Rc<RefCell<Fabric>>,
    pub(crate) source: Rc<RefCell<Source>>,
}

impl Hardware {
    /// Loads an image into the fabric and releases the design from reset, if the image is that of
    /// the compiled-in design.
    pub(crate) fn mount(&self, image: &[u8]) -> Result<(), PlatformError> {
        let refused = PlatformError::new;
        let program = Program::read(image).map_err(refused)?;
        let own = self.backend.borrow().design_digest();
        if program.digest().map_err(refused)? != own {
            let digest: String = own.iter().map(|byte| format!("{byte:02x}")).collect();
            let name = self.backend.borrow().accelerator().to_owned();
            return Err(refused(&format!(
                "the image holds another design than this card, which is {name}, design {digest}"
            )));
        }
        if program.accelerator() != self.backend.borrow().accelerator() {
            return Err(refused(
                "the image is for another accelerator than the one in this design",
            ));
        }
        self.backend.borrow_mut().mount().map_err(failed)?;
        self.fabric.borrow_mut().programmed = true;
        if program.config_digest() != Some(self.config_digest()?) {
            self.unmount().map_err(failed)?;
            return Err(refused(
                "the image holds another configuration than the Shield of this design",
            ));
        }
        Ok(())
    }

    /// Digest of the Shield's configuration, as its hardware shows it.
    fn config_digest(&self) -> Result<[u8; 32], PlatformError> {
        let mut digest = [0; 32];
        for (word, bytes) in (0..).step_by(4).zip(digest.chunks_exact_mut(4)) {
            bytes.copy_from_slice(&self.krn_read(krn::CONFIG_DIGEST + word)?.to_le_bytes());
        }
        Ok(digest)
    }

    /// Clears the fabric.
    pub(crate) fn unmount(&self) -> Result<(), CardError> {
        // A Shield that cannot be reset stays unreachable: the fabric counts as unprogrammed.
        self.fabric.borrow_mut().programmed = false;
        self.backend.borrow_mut().unmount()
    }

    /// Digest of the design in the fabric.
    pub(crate) fn design(&self) -> Option<[u8; 32]> {
        self.fabric.borrow().programmed.then(|| self.backend.borrow().design_digest())
    }

    fn programmed(&self) -> Result<(), PlatformError> {
        if self.fabric.borrow().programmed {
            Ok(())
        } else {
            Err(PlatformError::new("no design is loaded"))
        }
    }

    /// Reads the Shield's kernel port.
    pub(crate) fn krn_read(&self, offset: u32) -> Result<u32, PlatformError> {
        self.programmed()?;
        self.backend
            .borrow_mut()
            .krn_read(offset)
            .map_err(failed)?
            .ok_or_else(|| PlatformError::new("the kernel port refused a read"))
    }

    /// Writes the Shield's kernel port.
    pub(crate) fn krn_write(&self, offset: u32, value: u32) -> Result<(), PlatformError> {
        self.programmed()?;
        if self.backend.borrow_mut().krn_write(offset, value).map_err(failed)? {
            Ok(())
        } else {
            Err(PlatformError::new("the kernel port refused a write"))
        }
    }
}

pub(crate) struct CardPlatform {
    hardware: Hardware,
    fuses: Rc<Fuses>,
    /// The DeviceID certificate that the boot code finds.
    certificate: Vec<u8>,
    uds_taken: bool,
    /// The received part of an image that is not complete yet.
    coming: Zeroizing<Vec<u8>>,
}

fn failed(error: impl std::fmt::Display) -> PlatformError {
    PlatformError::new(&error.to_string())
}

impl CardPlatform {
    pub(crate) fn new(hardware: Hardware, fuses: Rc<Fuses>, certificate: Vec<u8>) -> Self {
        Self { hardware, fuses, certificate, uds_taken: false, coming: Zeroizing::default() }
    }
}

impl BootPlatform for CardPlatform {
    fn take_uds(&mut self) -> Option<Zeroizing<[u8; 32]>> {
        if std::mem::replace(&mut self.uds_taken, true) {
            None
        } else {
            Some(self.fuses.uds.clone())
        }
    }

    fn device_id_certificate(&self) -> Vec<u8> {
        self.certificate.clone()
    }

    fn root_of_trust(&self) -> RootOfTrust {
        RootOfTrust::Simulated
    }

    fn target(&self) -> String {
        TARGET.to_owned()
    }

    fn debug_state(&mut self) -> DebugState {
        Platform::debug_state(self)
    }

    fn entropy(&mut self, out: &mut [u8; 32]) -> EntropyQuality {
        Platform::entropy(self, out)
    }
}

impl Platform for CardPlatform {
    fn debug_state(&mut self) -> DebugState {
        if self.fuses.debug { DebugState::Enabled } else { DebugState::DisabledSinceBoot }
    }

    fn entropy(&mut self, out: &mut [u8; 32]) -> EntropyQuality {
        match &mut *self.hardware.source.borrow_mut() {
            Source::Seeded(source) => {
                source.fill(out);
                EntropyQuality::Seeded
            }
            Source::System { unmeasured } => match (getrandom::fill(out), *unmeasured) {
                (Ok(()), false) => EntropyQuality::Tested,
                (Ok(()), true) => EntropyQuality::Unmeasured,
                (Err(_), _) => EntropyQuality::Failed,
            },
        }
    }

    fn shell(&mut self) -> Result<Shell, PlatformError> {
        Ok(Shell {
            digest: shell_digest(),
            config_port: false,
            readback: false,
            debug_bridge: false,
        })
    }

    fn begin_image(&mut self) -> Result<(), PlatformError> {
        self.coming = Zeroizing::new(Vec::new());
        Ok(())
    }

    fn program(&mut self, part: &[u8]) -> Result<(), PlatformError> {
        self.coming.extend_from_slice(part);
        Ok(())
    }

    fn finish_image(&mut self) -> Result<(), PlatformError> {
        let image = std::mem::take(&mut self.coming);
        self.hardware.mount(&image)
    }

    fn unload_image(&mut self) -> Result<(), PlatformError> {
        self.coming = Zeroizing::new(Vec::new());
        self.hardware.unmount().map_err(failed)
    }

    fn design_digest(&mut self) -> Option<[u8; 32]> {
        self.hardware.design()
    }

    fn krn_read(&mut self, offset: u32) -> Result<u32, PlatformError> {
        self.hardware.krn_read(offset)
    }

    fn krn_write(&mut self, offset: u32, value: u32) -> Result<(), PlatformError> {
        self.hardware.krn_write(offset, value)
    }

    fn idle(&mut self) {
        for _ in 0..16 {
            if self.hardware.backend.borrow_mut().advance().is_err() {
                return;
            }
        }
    }
}
