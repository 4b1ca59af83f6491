//! The card: BAR0, memory, kernel.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use shef_device::{
    CTL_BYTES, Device, DeviceError, DeviceInfo, SimKernel, SimParameters, SimShell, Uri, mailbox,
};
use shef_kernel::device_id_key;
use shef_model::SparseMemory;
use shef_proto::entropy::SeededEntropy;
use shef_proto::evidence::RootOfTrust;
use shef_proto::hpke_suite::PublicKey;
use shef_regs::bus::sys;
use shef_rtl::check::{Checked, DoneRegister, Report};
use shef_rtl::f2::BAR0_BYTES;
use shef_rtl::measure::{Measured, MeasuredJob};
use shef_rtl::progress::Progress;
use shef_rtl::{Library, Traced};
use zeroize::Zeroizing;

use crate::backend::{Backend, Change, MemoryTap};
use crate::f2::{Behind, CONTROL};
use crate::host_port::HostPort;
use crate::kernel::{BootFault, Firmware, KernelView, Mailbox, Native, Power, boot_files};
use crate::model::ModelBackend;
use crate::platform::{Fabric, Fuses, Hardware, SharedBackend, Source};
use crate::rtl::{RtlBackend, bare_library, kernel_library};
use crate::{CardError, Design, RtlOptions};

/// Default size of card memory, in bytes.
pub const MEMORY_BYTES: u64 = 1 << 34;

/// Maximum clock steps of a wait for an interrupt.
const INTERRUPT_STEPS: u32 = 1 << 14;

/// The engine of the card.
#[derive(Debug, Clone)]
pub enum Engine {
    /// The functional model, which has the digits accelerator in Rust and no other.
    Model,
    /// The Verilated RTL.
    Rtl(RtlOptions),
}

/// Options for a card.
#[derive(Debug, Clone)]
pub struct CardOptions {
    /// The engine of the card.
    pub engine: Engine,
    /// The design in it.
    pub design: Design,
    /// The card takes randomness from this seed instead of a tested source, which is reported in
    /// evidence.
    pub seed: Option<u64>,
    /// The min-entropy of the tested source was never measured, which is reported in evidence.
    pub unmeasured: bool,
    /// Debug is enabled: another device secret, another CA, and it is reported in evidence.
    pub debug: bool,
}

impl CardOptions {
    /// A card with `design` on `engine`, with a measured and tested source and debug off.
    pub fn new(engine: Engine, design: Design) -> Self {
        Self { engine, design, seed: None, unmeasured: false, debug: false }
    }

    /// A card with the digits accelerator.
    ///
    /// # Errors
    /// As [`Design::digits`].
    pub fn digits(engine: Engine) -> Result<Self, CardError> {
        Ok(Self::new(engine, Design::digits()?))
    }

    /// Builds the simulation of such a card, or takes it from the cache. [`Blank::new`] then takes no
    /// time.
    ///
    /// # Errors
    /// Build errors.
    pub fn build(&self, progress: &mut dyn FnMut(&str)) -> Result<(), CardError> {
        match &self.engine {
            Engine::Model => Ok(()),
            Engine::Rtl(options) => {
                RtlBackend::build(&self.design, options, progress)?;
                match options.kernel {
                    SimKernel::Native => Ok(()),
                    SimKernel::Firmware => kernel_library(progress).map(drop),
                }
            }
        }
    }

    /// The URI of such a card.
    pub fn uri(&self) -> Uri {
        match &self.engine {
            Engine::Model => Uri::SimModel,
            Engine::Rtl(options) => {
                let project = self.design.folder().map(Path::to_owned);
                Uri::SimRtl(SimParameters {
                    project,
                    kernel: options.kernel,
                    shell: options.shell,
                    latency: options.memory_latency,
                    stalls: options.stalls,
                    contents: options.contents,
                    seed: self.seed,
                    check: options.check,
                    wave: options.wave.clone(),
                    wave_scope: options.wave_scope,
                    wave_from: options.wave_from,
                })
            }
        }
    }
}

/// A card that has no identity yet.
pub struct Blank {
    options: CardOptions,
    backend: SharedBackend,
    /// The subsystem of the Security Kernel, unless it is native.
    kernel: Option<Library>,
    uds: Option<Zeroizing<[u8; 32]>>,
}

impl Blank {
    /// Builds the engine, or takes it from the cache, and starts it. `progress` receives messages
    /// about long steps.
    ///
    /// # Errors
    /// Build errors.
    pub fn new(options: CardOptions, progress: &mut dyn FnMut(&str)) -> Result<Self, CardError> {
        let backend: Box<dyn Backend> = match &options.engine {
            Engine::Model if options.design.folder().is_some() => {
                let what = "the model needs the accelerator in Rust, so it has no projects: \
                            use the RTL"
                    .to_owned();
                return Err(CardError::Design { what });
            }
            Engine::Rtl(RtlOptions { host_boots: true, shell, kernel, .. })
                if (*shell, *kernel) != (SimShell::AwsF2, SimKernel::Native) =>
            {
                let what = "a card that a host boots has the shell of AWS F2 and a native kernel";
                return Err(CardError::Design { what: what.to_owned() });
            }
            Engine::Model => Box::new(ModelBackend::new(&options.design)),
            Engine::Rtl(rtl) => Box::new(RtlBackend::new(&options.design, rtl, progress)?),
        };
        let kernel = match &options.engine {
            Engine::Rtl(RtlOptions { kernel: SimKernel::Firmware, .. }) => {
                Some(kernel_library(progress)?)
            }
            _ => None,
        };
        Ok(Self { options, backend: Rc::new(RefCell::new(backend)), kernel, uds: None })
    }

    /// Burns the device secret and returns the DeviceID key to be certified.
    pub fn burn(&mut self, uds: Zeroizing<[u8; 32]>) -> PublicKey {
        let key = device_id_key(&uds, RootOfTrust::Simulated, self.options.debug).public_key();
        self.uds = Some(uds);
        key
    }

    /// Takes the DeviceID certificate and powers the card on.
    ///
    /// # Errors
    /// The boot code refuses: no secret was burnt, or the certificate is for another device.
    pub fn finish(self, certificate: Vec<u8>) -> Result<Card, CardError> {
        let uds = self
            .uds
            .ok_or_else(|| CardError::Design { what: "no device secret was burnt".to_owned() })?;
        let source = match self.options.seed {
            Some(seed) => Source::Seeded(Box::new(SeededEntropy::new(seed, "card"))),
            None => Source::System { unmeasured: self.options.unmeasured },
        };
        let hardware = Hardware {
            backend: self.backend,
            fabric: Rc::new(RefCell::new(Fabric { programmed: false })),
            source: Rc::new(RefCell::new(source)),
        };
        let power = Rc::default();
        let host_boots =
            matches!(&self.options.engine, Engine::Rtl(RtlOptions { host_boots: true, .. }));
        let mut card = Card {
            uri: self.options.uri(),
            host_boots,
            runs: !host_boots,
            fuses: Rc::new(Fuses { uds, certificate, debug: self.options.debug }),
            other: None,
            memory_bytes: MEMORY_BYTES,
            fabric: Rc::clone(&hardware.fabric),
            backend: Rc::clone(&hardware.backend),
            power: Rc::clone(&power),
            kernel: Box::new(Behind {
                backend: Rc::clone(&hardware.backend),
                kernel: match self.kernel {
                    Some(library) => Box::new(Firmware::new(hardware, power, library)),
                    None => Box::new(Native::new(hardware)),
                },
            }),
        };
        card.power_on()?;
        Ok(card)
    }
}

/// A simulated card.
pub struct Card {
    uri: Uri,
    /// The host starts the core, with its medium ([`RtlOptions::host_boots`]).
    host_boots: bool,
    /// The core is out of reset.
    runs: bool,
    fuses: Rc<Fuses>,
    /// The card's identity with the opposite debug state.
    other: Option<Rc<Fuses>>,
    memory_bytes: u64,
    fabric: Rc<RefCell<Fabric>>,
    backend: SharedBackend,
    power: Rc<RefCell<Power>>,
    kernel: Box<dyn Mailbox>,
}

/// Observation and fault injection, for simulated cards only.
#[derive(Clone)]
pub struct CardProbe {
    backend: SharedBackend,
    power: Rc<RefCell<Power>>,
}

impl CardProbe {
    /// Also counts 64-bit words that the accelerator receives from these addresses.
    pub fn watch(&self, range: Range<u64>) {
        self.backend.borrow_mut().watch(range);
    }

    /// Clears the watched addresses and resets the count.
    pub fn unwatch(&self) {
        self.backend.borrow_mut().unwatch();
    }

    /// Words received with OKAY from the watched addresses.
    pub fn words_delivered(&self) -> u64 {
        self.backend.borrow().words_delivered()
    }

    /// Memory answers reads of these addresses with a bus error until the card is reset.
    pub fn fail_reads(&self, range: Range<u64>) {
        self.backend.borrow_mut().fail_reads(range);
    }

    /// Passes what card memory stores and answers through `tap`, in place of an earlier one. The
    /// functional model has none.
    pub fn tap_memory(&self, tap: Arc<Mutex<dyn MemoryTap>>) {
        self.backend.borrow_mut().tap_memory(tap);
    }

    /// Turns the protocol checker of the accelerator's ports on. With the status register of a job,
    /// it also demands that no burst is open when the register says that the job is done. Neither
    /// the design's digest nor its cycles change.
    ///
    /// # Errors
    /// [`CardError::Design`] for the functional model, which has no ports.
    pub fn check(&self, done: Option<DoneRegister>) -> Result<(), CardError> {
        self.backend.borrow_mut().check(done)
    }

    /// Turns the checker off.
    pub fn uncheck(&self) {
        self.backend.borrow_mut().uncheck();
    }

    /// What the checker saw since the last call.
    pub fn checked(&self) -> Checked {
        self.backend.borrow_mut().checked()
    }

    /// Also calls `hook` with each report, in the cycle in which it comes out. [`CardProbe::checked`]
    /// still returns it.
    pub fn on_report(&self, hook: impl FnMut(&Report) + Send + 'static) {
        self.backend.borrow_mut().on_report(Box::new(hook));
    }

    /// Records what passes the ports of the Shield, with cycles from now on.
    ///
    /// # Errors
    /// [`CardError::Design`] for the functional model, which has no ports.
    pub fn trace(&self) -> Result<(), CardError> {
        self.backend.borrow_mut().trace()
    }

    /// The record since [`CardProbe::trace`], which ends.
    pub fn traced(&self) -> Traced {
        self.backend.borrow_mut().traced()
    }

    /// Measures a job of this card's design that begins from now on, while no session has a key. It builds
    /// the accelerator without a Shield, or takes it from the cache: copies of it find the end
    /// ([`shef_rtl::measure`]). No cycle of the design changes.
    ///
    /// # Errors
    /// Build errors, and [`CardError::Design`] for the functional model, which has no ports.
    pub fn measure(
        &self,
        design: &Design,
        job: MeasuredJob,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), CardError> {
        let bare = bare_library(design, progress)?;
        self.backend.borrow_mut().measure(&bare, job)
    }

    /// The measured job, after its end.
    ///
    /// # Errors
    /// [`CardError::Rtl`] if no job has begun and ended, or if it cannot be measured.
    pub fn measured(&self) -> Result<Measured, CardError> {
        self.backend.borrow_mut().measured()
    }

    /// The bursts at the accelerator's ports, and who waits for whom.
    ///
    /// # Errors
    /// [`CardError::Design`] for the functional model, which has no ports.
    pub fn progress(&self) -> Result<Progress, CardError> {
        self.backend.borrow().progress()
    }

    /// Calls `hook` when the accelerator's ports are [stuck](Progress::is_stuck) for this number of
    /// cycles, once each time.
    pub fn on_stuck(&self, cycles: u64, hook: impl FnMut(&Progress) + Send + 'static) {
        self.backend.borrow_mut().on_stuck(cycles, Box::new(hook));
    }

    /// Clock cycles so far, if there is a clock.
    pub fn cycles(&self) -> Option<u64> {
        self.backend.borrow().cycles()
    }

    /// Cycle at which the memory acknowledged the last write.
    pub fn last_write_cycle(&self) -> Option<u64> {
        self.backend.borrow().last_write_cycle()
    }

    /// Makes the next reset boot with this fault; the one after it boots without.
    pub fn fail_boot(&self, fault: BootFault) {
        self.power.borrow_mut().next = Some(fault);
    }

    /// The Security Kernel, if it is the firmware on the RTL.
    pub fn kernel(&self) -> Option<KernelView> {
        self.power.borrow().seen.clone()
    }
}

impl Card {
    /// Connects the design's DMA engine, if it has one, to host memory and interrupts. Returns
    /// whether it has one.
    pub(crate) fn connect(&mut self, host: HostPort) -> Result<bool, CardError> {
        self.backend.borrow_mut().connect(host)
    }

    /// Observation and fault injection.
    pub fn probe(&self) -> CardProbe {
        CardProbe { backend: Rc::clone(&self.backend), power: Rc::clone(&self.power) }
    }

    /// Sets the card's debug identity: another device secret, certified by another CA. `certify`
    /// receives the DeviceID key and returns the certificate.
    pub fn add_debug_identity(
        &mut self,
        uds: Zeroizing<[u8; 32]>,
        certify: impl FnOnce(&PublicKey) -> Vec<u8>,
    ) {
        let key = device_id_key(&uds, RootOfTrust::Simulated, true).public_key();
        self.other = Some(Rc::new(Fuses { certificate: certify(&key), uds, debug: true }));
    }

    /// Enables or disables debug, as a shell does. The Security Kernel's hardware then halts: it clears
    /// its memories and the fabric, and answers no request until the host resets the card, which
    /// starts with its other identity.
    ///
    /// # Errors
    /// [`CardError::Design`] if the card has no such identity, and errors of the simulation.
    pub fn set_debug(&mut self, on: bool) -> Result<(), CardError> {
        if self.fuses.debug == on {
            return Ok(());
        }
        let none = || CardError::Design { what: "the card has no identity for debug".to_owned() };
        let other = self.other.take().ok_or_else(none)?;
        self.other = Some(std::mem::replace(&mut self.fuses, other));
        if !self.runs {
            return Ok(());
        }
        self.kernel.debug(on)?;
        if self.host_boots {
            self.backend.borrow_mut().set_kernel(false, sys::ALERT_CODE_DEBUG);
        }
        Ok(())
    }

    /// Replaces the card's memory with memory shared with other programs. The old contents are
    /// lost.
    pub(crate) fn put_memory(&mut self, memory: SparseMemory, bytes: u64) {
        self.backend.borrow_mut().put_memory(memory);
        self.memory_bytes = bytes;
    }

    /// The card's serial number on the bus: the first bytes of its certificate's digest.
    pub(crate) fn serial(&self) -> u64 {
        let digest: [u8; 32] = Sha256::digest(&self.fuses.certificate).into();
        u64::from_be_bytes(*digest.first_chunk().unwrap_or(&[0; 8]))
    }

    /// The files from which a host boots this card: kernel image, signature, DeviceID certificate
    /// ([`RtlOptions::host_boots`], [`shef_device::pci::f2::Medium::FILES`]).
    pub fn boot_files(&self) -> [Vec<u8>; 3] {
        boot_files(&self.fuses)
    }

    /// Reads an interrupt register of BAR2 in AWS F2's shell.
    pub(crate) fn bar2_read(&mut self, offset: u32) -> u32 {
        self.backend.borrow_mut().bar2_read(offset)
    }

    /// Writes one.
    pub(crate) fn bar2_write(&mut self, offset: u32, value: u32) {
        self.backend.borrow_mut().bar2_write(offset, value);
    }

    /// The host writes CONTROL of the adapter page.
    fn command(&mut self, value: u32) -> Result<(), CardError> {
        let change = self.backend.borrow_mut().command(value);
        match change {
            Change::None => Ok(()),
            Change::Stopped => {
                self.stop();
                Ok(())
            }
            Change::Started(medium) => {
                self.runs = true;
                let alert = self.kernel.boot(&self.fuses, &medium)?;
                self.backend.borrow_mut().set_kernel(alert == 0, alert);
                Ok(())
            }
        }
    }

    /// The core is wiped and in reset: neither design nor kernel is there.
    fn stop(&mut self) {
        self.runs = false;
        self.fabric.borrow_mut().programmed = false;
    }

    /// Whether the accelerator raised an interrupt since the last call.
    pub(crate) fn interrupted(&mut self) -> bool {
        self.backend.borrow_mut().interrupted()
    }

    /// The kernel boots, unless a host boots it.
    fn power_on(&mut self) -> Result<(), CardError> {
        if self.host_boots {
            self.stop();
            return Ok(());
        }
        self.fabric.borrow_mut().programmed = false;
        self.kernel.power_on(&self.fuses)
    }

    /// Bytes of BAR0.
    fn bar0_bytes(&self) -> u32 {
        if self.host_boots { BAR0_BYTES } else { CTL_BYTES }
    }

    fn check(&self, addr: u64, len: u64) -> Result<(), DeviceError> {
        if addr.checked_add(len).is_some_and(|end| end <= self.memory_bytes) {
            Ok(())
        } else {
            Err(DeviceError::MemoryRange { addr, len, memory_bytes: self.memory_bytes })
        }
    }
}

impl Device for Card {
    fn progress(&mut self) -> Option<Progress> {
        self.backend.borrow().progress().ok()
    }

    fn info(&self) -> DeviceInfo {
        let description = match self.uri {
            Uri::SimModel => "simulated card around the functional model: protects nothing",
            _ => "simulated card around the Verilated RTL: protects nothing",
        };
        DeviceInfo::new(
            self.uri.to_string(),
            description,
            RootOfTrust::Simulated.name(),
            self.memory_bytes,
            self.cycles().is_some(),
        )
    }

    fn ctl_read32(&mut self, offset: u32) -> Result<u32, DeviceError> {
        let refused = DeviceError::CtlRefused { access: "read", offset };
        if !offset.is_multiple_of(4) || offset >= self.bar0_bytes() {
            return Err(refused);
        }
        match offset {
            // Beside the control window, and in reset, the adapter answers.
            _ if offset >= CTL_BYTES || !self.runs => {
                self.backend.borrow_mut().ctl_read(offset)?.ok_or(refused)
            }
            mailbox::REQUEST.. => self.kernel.read(offset)?.ok_or(refused),
            _ if !self.fabric.borrow().programmed => Err(refused),
            _ => self.backend.borrow_mut().ctl_read(offset)?.ok_or(refused),
        }
    }

    fn ctl_write32(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        let refused = DeviceError::CtlRefused { access: "write", offset };
        if !offset.is_multiple_of(4) || offset >= self.bar0_bytes() {
            return Err(refused);
        }
        match offset {
            CONTROL => Ok(self.command(value)?),
            _ if offset >= CTL_BYTES || !self.runs => {
                let taken = self.backend.borrow_mut().ctl_write(offset, value)?;
                taken.then_some(()).ok_or(refused)
            }
            mailbox::REQUEST.. if self.kernel.write(offset, value)? => Ok(()),
            mailbox::REQUEST.. => Err(refused),
            _ if !self.fabric.borrow().programmed => Err(refused),
            _ if self.backend.borrow_mut().ctl_write(offset, value)? => Ok(()),
            _ => Err(refused),
        }
    }

    fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.check(addr, bytes.len() as u64)?;
        self.backend.borrow_mut().mem_read(addr, bytes);
        Ok(())
    }

    fn mem_write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check(addr, bytes.len() as u64)?;
        self.backend.borrow_mut().mem_write(addr, bytes);
        Ok(())
    }

    fn wait_hint(&mut self) -> Result<(), DeviceError> {
        Ok(self.backend.borrow_mut().advance()?)
    }

    fn wait_interrupt(&mut self) -> Result<bool, DeviceError> {
        let mut backend = self.backend.borrow_mut();
        for _ in 0..INTERRUPT_STEPS {
            if backend.interrupted() {
                return Ok(true);
            }
            backend.advance()?;
        }
        Ok(false)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.backend.borrow_mut().reset()?;
        Ok(self.power_on()?)
    }

    fn cycles(&self) -> Option<u64> {
        self.backend.borrow().cycles()
    }
}
