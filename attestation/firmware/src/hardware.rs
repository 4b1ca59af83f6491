//! The registers of `shef_kernel` as seen by boot code and kernel.

use alloc::string::String;
use alloc::vec::Vec;

use shef_kernel::{BootPlatform, EntropyQuality, Platform, PlatformError, Shell};
use shef_proto::crypto;
use shef_proto::evidence::{DebugState, RootOfTrust};
use shef_units::{Bus, regs};
use zeroize::{Zeroize, Zeroizing};

/// Cycles without a kick after which the watchdog resets the subsystem.
const WATCHDOG: u32 = 400_000_000;
/// Cycles of [`Platform::idle`].
const IDLE: u32 = 1000;
/// Maximum cycles until the noise source provides a word.
const NOISE_WAIT: u32 = 2_000_000;
/// Maximum cycles of a command of the configuration port.
const CONFIG_WAIT: u32 = 200_000_000;
/// Alarms of the noise source's health tests.
const ALARMS: u32 = regs::noise::STATUS_REPETITION
    | regs::noise::STATUS_PROPORTION
    | regs::noise::STATUS_SILENCE
    | regs::noise::STATUS_LAG;
/// Raw words of a seed. At half a bit of entropy per bit, they hold twice what a seed needs.
const RAW_WORDS: usize = 32;

/// The hardware; the boot ROM adds the boot medium's DeviceID certificate.
pub struct Hardware<B> {
    bus: B,
    certificate: Vec<u8>,
    rest: Rest,
}

/// Trailing bytes of an image that do not fill a word yet.
#[derive(Default)]
struct Rest {
    word: u32,
    len: u32,
}

impl Rest {
    fn push(&mut self, byte: u8) -> Option<u32> {
        self.word |= u32::from(byte) << (8 * self.len);
        self.len += 1;
        (self.len == 4).then(|| core::mem::take(self).word)
    }
}

/// Kicks the watchdog.
pub(crate) fn kick<B: Bus>(bus: &B) {
    bus.write(regs::sys::WATCHDOG, WATCHDOG);
}

/// Wipes RAM and units, raises the alert, and stops the core until reset.
pub fn stop<B: Bus>(bus: &B, alert: u32) -> ! {
    bus.write(regs::sys::ALERT, alert);
    loop {
        bus.write(regs::sys::CONTROL, regs::sys::CONTROL_WIPE | regs::sys::CONTROL_HALT);
    }
}

impl<B: Bus> Hardware<B> {
    /// The hardware on this bus.
    pub fn new(bus: B, certificate: Vec<u8>) -> Self {
        kick(&bus);
        Self { bus, certificate, rest: Rest::default() }
    }

    fn bytes<const N: usize>(&self, address: u32) -> [u8; N] {
        let mut out = [0; N];
        for (word, bytes) in out.chunks_exact_mut(4).enumerate() {
            bytes.copy_from_slice(&self.bus.read(address + 4 * word as u32).to_le_bytes());
        }
        out
    }

    fn now(&self) -> u32 {
        self.bus.read(regs::sys::TIMER_LO)
    }

    /// Waits until `done`, for at most `cycles` cycles.
    fn wait(&self, cycles: u32, done: impl Fn() -> bool) -> bool {
        let begin = self.now();
        while !done() {
            if self.now().wrapping_sub(begin) > cycles {
                return done();
            }
        }
        true
    }

    /// Sends a command to the configuration port, and waits until these status bits clear.
    fn configure(&self, action: u32, gone: u32) -> Result<(), PlatformError> {
        self.bus.write(regs::config::CONTROL, action);
        kick(&self.bus);
        if !self.wait(CONFIG_WAIT, || self.bus.read(regs::config::STATUS) & gone == 0) {
            return Err(PlatformError::new(
                "the configuration port has not done in time what it was told",
            ));
        }
        Ok(())
    }

    /// Programs bytes one by one; a word is sent when it is complete.
    fn program_bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if let Some(word) = self.rest.push(*byte) {
                self.bus.write(regs::config::DATA, word);
            }
        }
    }

    /// Checks an access to the Shield's port.
    fn answered(&self) -> Result<(), PlatformError> {
        if self.bus.read(regs::sys::STATUS) & regs::sys::STATUS_NO_SHIELD == 0 {
            Ok(())
        } else {
            Err(PlatformError::new("the kernel port refused an access"))
        }
    }
}

impl<B: Bus> BootPlatform for Hardware<B> {
    fn take_uds(&mut self) -> Option<Zeroizing<[u8; 32]>> {
        if self.bus.read(regs::sys::STATUS) & regs::sys::STATUS_UDS_LOCKED != 0 {
            return None;
        }
        let uds = Zeroizing::new(self.bytes(regs::sys::UDS));
        self.bus.write(regs::sys::CONTROL, regs::sys::CONTROL_UDS_LOCK);
        Some(uds)
    }

    fn device_id_certificate(&self) -> Vec<u8> {
        self.certificate.clone()
    }

    fn root_of_trust(&self) -> RootOfTrust {
        match self.bus.read(regs::sys::ROOT) & regs::sys::ROOT_KIND {
            regs::sys::ROOT_KIND_SHEF_BOOT => RootOfTrust::ShefBoot,
            regs::sys::ROOT_KIND_BOARD => RootOfTrust::Board,
            regs::sys::ROOT_KIND_PROVIDER => RootOfTrust::Provider,
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

    fn entropy(&mut self, out: &mut [u8; 32]) -> EntropyQuality {
        Platform::entropy(self, out)
    }
}

impl<B: Bus> Platform for Hardware<B> {
    fn debug_state(&mut self) -> DebugState {
        if self.bus.read(regs::sys::STATUS) & regs::sys::STATUS_DEBUG != 0 {
            DebugState::Enabled
        } else {
            DebugState::DisabledSinceBoot
        }
    }

    /// SHA-256 of raw words, a vetted conditioning component of SP 800-90B. The hardware's health
    /// tests must pass before and after.
    fn entropy(&mut self, out: &mut [u8; 32]) -> EntropyQuality {
        let status = || self.bus.read(regs::noise::STATUS);
        let healthy =
            || status() & (regs::noise::STATUS_TESTED | ALARMS) == regs::noise::STATUS_TESTED;
        let mut raw = Zeroizing::new([0_u8; 4 * RAW_WORDS]);
        let mut good = self
            .wait(NOISE_WAIT, || status() & (regs::noise::STATUS_TESTED | ALARMS) != 0)
            && healthy();
        for bytes in raw.chunks_exact_mut(4) {
            good = good
                && self.wait(NOISE_WAIT, || status() & (regs::noise::STATUS_WORD | ALARMS) != 0);
            bytes.copy_from_slice(&self.bus.read(regs::noise::WORD).to_le_bytes());
        }
        if !good || !healthy() {
            out.zeroize();
            self.bus.write(regs::sys::ALERT, regs::sys::ALERT_CODE_NOISE);
            return EntropyQuality::Failed;
        }
        *out = crypto::sha256(&raw[..]);
        match status() & regs::noise::STATUS_SOURCE {
            regs::noise::STATUS_SOURCE_MEASURED => EntropyQuality::Tested,
            regs::noise::STATUS_SOURCE_UNMEASURED => EntropyQuality::Unmeasured,
            _ => EntropyQuality::Seeded,
        }
    }

    fn shell(&mut self) -> Result<Shell, PlatformError> {
        let flags = self.bus.read(regs::sys::SHELL_FLAGS);
        Ok(Shell {
            digest: self.bytes(regs::sys::SHELL),
            config_port: flags & regs::sys::SHELL_FLAGS_CONFIGURATION != 0,
            readback: flags & regs::sys::SHELL_FLAGS_READBACK != 0,
            debug_bridge: flags & regs::sys::SHELL_FLAGS_DEBUG_BRIDGE != 0,
        })
    }

    fn begin_image(&mut self) -> Result<(), PlatformError> {
        self.rest = Rest::default();
        self.bus.write(regs::config::CONTROL, regs::config::CONTROL_BEGIN);
        Ok(())
    }

    fn program(&mut self, part: &[u8]) -> Result<(), PlatformError> {
        // Bytes that complete a word, whole words, and the remainder.
        let (begin, part) = part.split_at(part.len().min((4 - self.rest.len as usize) % 4));
        let (words, end) = part.as_chunks::<4>();
        self.program_bytes(begin);
        for word in words {
            self.bus.write(regs::config::DATA, u32::from_le_bytes(*word));
        }
        self.program_bytes(end);
        Ok(())
    }

    fn finish_image(&mut self) -> Result<(), PlatformError> {
        while self.rest.len > 0 {
            self.program(&[0])?;
        }
        self.configure(regs::config::CONTROL_FINISH, regs::config::STATUS_BUSY)?;
        if self.bus.read(regs::config::STATUS) & regs::config::STATUS_ERROR != 0 {
            return Err(PlatformError::new("the configuration port refused the design"));
        }
        Ok(())
    }

    fn unload_image(&mut self) -> Result<(), PlatformError> {
        self.rest = Rest::default();
        // The error bit of a refused image may stay set.
        self.configure(
            regs::config::CONTROL_CLEAR,
            regs::config::STATUS_BUSY | regs::config::STATUS_ACTIVE,
        )
    }

    fn design_digest(&mut self) -> Option<[u8; 32]> {
        let active = self.bus.read(regs::config::STATUS) & regs::config::STATUS_ACTIVE != 0;
        active.then(|| self.bytes(regs::config::DESIGN))
    }

    fn krn_read(&mut self, offset: u32) -> Result<u32, PlatformError> {
        let value = self.bus.read(regs::SHIELD + offset % regs::SHIELD_LEN as u32);
        self.answered().map(|()| value)
    }

    fn krn_write(&mut self, offset: u32, value: u32) -> Result<(), PlatformError> {
        self.bus.write(regs::SHIELD + offset % regs::SHIELD_LEN as u32, value);
        self.answered()
    }

    fn idle(&mut self) {
        kick(&self.bus);
        self.wait(IDLE, || false);
    }
}
