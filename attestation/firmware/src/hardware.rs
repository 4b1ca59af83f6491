//! The registers of `shef_kernel` as boot code and kernel see them.

use alloc::string::String;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};
use shef_kernel::{BootPlatform, EntropyQuality, Platform, PlatformError, Shell};
use shef_proto::evidence::{DebugState, RootOfTrust};
use shef_units::{Bus, regs};
use zeroize::{Zeroize, Zeroizing};

/// Cycles without a sign of life after which the watchdog resets the subsystem.
const WATCHDOG: u32 = 400_000_000;
/// Cycles of [`Platform::idle`].
const IDLE: u32 = 1000;
/// Cycles within which the noise source gives a word.
const NOISE_WAIT: u32 = 2_000_000;
/// Cycles within which the configuration port has done what it was told.
const CONFIG_WAIT: u32 = 200_000_000;
/// Raw words of a seed: at half a bit of entropy per bit twice what a seed needs.
const RAW_WORDS: usize = 32;

/// The hardware; the boot ROM adds the DeviceID certificate of the boot medium.
pub struct Hardware<B> {
    bus: B,
    certificate: Vec<u8>,
}

/// Tells the watchdog that the program is alive.
pub(crate) fn kick<B: Bus>(bus: &B) {
    bus.write(regs::sys::WATCHDOG, WATCHDOG);
}

/// Wipes RAM and units, raises the alert, and stops the core until reset.
pub fn stop<B: Bus>(bus: &B, alert: u32) -> ! {
    bus.write(regs::sys::ALERT, alert);
    loop {
        bus.write(regs::sys::CONTROL, regs::sys::WIPE | regs::sys::HALT);
    }
}

impl<B: Bus> Hardware<B> {
    /// The hardware on this bus.
    pub fn new(bus: B, certificate: Vec<u8>) -> Self {
        kick(&bus);
        Self { bus, certificate }
    }

    fn bytes<const N: usize>(&self, address: u32) -> [u8; N] {
        let mut out = [0; N];
        for (word, bytes) in out.chunks_exact_mut(4).enumerate() {
            bytes.copy_from_slice(&self.bus.read(address + 4 * word as u32).to_le_bytes());
        }
        out
    }

    fn now(&self) -> u32 {
        self.bus.read(regs::sys::TIMER)
    }

    /// Until `done`, at most so many cycles.
    fn wait(&self, cycles: u32, done: impl Fn() -> bool) -> bool {
        let begin = self.now();
        while !done() {
            if self.now().wrapping_sub(begin) > cycles {
                return done();
            }
        }
        true
    }

    fn configure(&self, action: u32) -> Result<(), PlatformError> {
        self.bus.write(regs::config::CONTROL, action);
        kick(&self.bus);
        if !self.wait(CONFIG_WAIT, || self.bus.read(regs::config::STATUS) & regs::config::BUSY == 0) {
            return Err(PlatformError::new("the configuration port does not become idle"));
        }
        if self.bus.read(regs::config::STATUS) & regs::config::ERROR != 0 {
            return Err(PlatformError::new("the configuration port refused the design"));
        }
        Ok(())
    }

    /// After an access to the Shield's port.
    fn answered(&self) -> Result<(), PlatformError> {
        if self.bus.read(regs::sys::STATUS) & regs::sys::NO_SHIELD == 0 {
            Ok(())
        } else {
            Err(PlatformError::new("the kernel port refused an access"))
        }
    }
}

impl<B: Bus> BootPlatform for Hardware<B> {
    fn take_uds(&mut self) -> Option<Zeroizing<[u8; 32]>> {
        if self.bus.read(regs::sys::STATUS) & regs::sys::UDS_LOCKED != 0 {
            return None;
        }
        let uds = Zeroizing::new(self.bytes(regs::sys::UDS));
        self.bus.write(regs::sys::CONTROL, regs::sys::UDS_LOCK);
        Some(uds)
    }

    fn device_id_certificate(&self) -> Vec<u8> {
        self.certificate.clone()
    }

    fn root_of_trust(&self) -> RootOfTrust {
        match self.bus.read(regs::sys::ROOT) {
            1 => RootOfTrust::ShefBoot,
            2 => RootOfTrust::Board,
            3 => RootOfTrust::Provider,
            _ => RootOfTrust::Simulated,
        }
    }

    fn target(&self) -> String {
        let name: [u8; 32] = self.bytes(regs::sys::TARGET);
        let len = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        String::from_utf8_lossy(&name[..len]).into_owned()
    }

    fn debug_state(&mut self) -> DebugState {
        Platform::debug_state(self)
    }
}

impl<B: Bus> Platform for Hardware<B> {
    fn debug_state(&mut self) -> DebugState {
        if self.bus.read(regs::sys::STATUS) & regs::sys::DEBUG != 0 { DebugState::Enabled } else { DebugState::DisabledSinceBoot }
    }

    /// SHA-256 of raw words, a vetted conditioning component of SP 800-90B; the health tests of the
    /// hardware must have passed before and after.
    fn entropy(&mut self, out: &mut [u8; 32]) -> EntropyQuality {
        let status = || self.bus.read(regs::noise::STATUS);
        let healthy = || status() & (regs::noise::TESTED | regs::noise::ALARMS) == regs::noise::TESTED;
        let mut raw = Zeroizing::new([0_u8; 4 * RAW_WORDS]);
        let mut good = self.wait(NOISE_WAIT, || status() & (regs::noise::TESTED | regs::noise::ALARMS) != 0) && healthy();
        for bytes in raw.chunks_exact_mut(4) {
            good = good && self.wait(NOISE_WAIT, || status() & (regs::noise::READY | regs::noise::ALARMS) != 0);
            bytes.copy_from_slice(&self.bus.read(regs::noise::WORD).to_le_bytes());
        }
        if !good || !healthy() {
            out.zeroize();
            self.bus.write(regs::sys::ALERT, regs::sys::ALERT_NOISE);
            return EntropyQuality::Failed;
        }
        *out = Sha256::digest(&raw[..]).into();
        if status() & regs::noise::SEEDED != 0 { EntropyQuality::Seeded } else { EntropyQuality::Tested }
    }

    fn shell(&mut self) -> Result<Shell, PlatformError> {
        let flags = self.bus.read(regs::sys::SHELL_FLAGS);
        Ok(Shell {
            digest: self.bytes(regs::sys::SHELL),
            config_port: flags & 1 != 0,
            readback: flags & 2 != 0,
            debug_bridge: flags & 4 != 0,
        })
    }

    fn load_image(&mut self, image: &[u8]) -> Result<(), PlatformError> {
        self.configure(regs::config::BEGIN)?;
        for bytes in image.chunks(4) {
            let mut word = [0; 4];
            word[..bytes.len()].copy_from_slice(bytes);
            self.bus.write(regs::config::DATA, u32::from_le_bytes(word));
        }
        self.configure(regs::config::FINISH)
    }

    fn unload_image(&mut self) {
        // A fabric that cannot be cleared shows no design that evidence could name.
        let _ = self.configure(regs::config::CLEAR);
    }

    fn design_digest(&mut self) -> Option<[u8; 32]> {
        let active = self.bus.read(regs::config::STATUS) & regs::config::ACTIVE != 0;
        active.then(|| self.bytes(regs::config::DESIGN))
    }

    fn krn_read(&mut self, offset: u32) -> Result<u32, PlatformError> {
        let value = self.bus.read(regs::shield::BASE + offset % regs::shield::LEN);
        self.answered().map(|()| value)
    }

    fn krn_write(&mut self, offset: u32, value: u32) -> Result<(), PlatformError> {
        self.bus.write(regs::shield::BASE + offset % regs::shield::LEN, value);
        self.answered()
    }

    fn idle(&mut self) {
        kick(&self.bus);
        self.wait(IDLE, || false);
    }
}
