//! A card in the model of AWS F2's shell: the host reaches the design through `cl_shef` and the rules
//! of that shell.
//!
//! The model starts the core after each reset, or the host does ([`RtlOptions::host_boots`]). A card
//! that the host boots has BAR0 and the interrupt registers of BAR2 as F2 has them: adapter page,
//! boot medium, START and RESET, and the reset, wipe and freeze behind them are those of `cl_shef`,
//! and an interrupt has the vector that the host wrote. Only the Security Kernel's processor is not
//! in it. When the host writes START, and before `cl_shef` has it, the boot medium is read through
//! BAR0 as `cl_shef` holds it; when the core runs, the native kernel checks these bytes as the boot
//! ROM does, boots from them if they hold this kernel, and drives ready and alert.
//!
//! [`RtlOptions::host_boots`]: crate::RtlOptions::host_boots

use std::cell::RefCell;
use std::rc::Rc;

use shef_device::mailbox;
use shef_kernel::Medium;
use shef_regs::f2;
use shef_rtl::f2::{CORE_KHZ, CoreClock, F2Config, MEDIUM, NativeF2};
use shef_rtl::measure::Measured;
use shef_rtl::{Agent, AxiMemoryConfig, CoreSide, HostBus, HostFault, Library, Port, Sim};

use crate::CardError;
use crate::backend::Change;
use crate::config_space::{MAX_PAYLOAD, MAX_READ_REQUEST};
use crate::host_port::HostPort;
use crate::kernel::Mailbox;
use crate::platform::{Fuses, SharedBackend};

/// Cycles of the core's clock, more than a read of a register takes.
const LAST_READS: u64 = 512;
/// The line of the accelerator's interrupt.
const ACCELERATOR_LINE: u8 = 15;
/// Cycles of `clk_main_a0` after which the page shows the effect of a command, and the kernel's state.
const COMMAND_CYCLES: u64 = 64;
/// CONTROL of the adapter page, in BAR0.
pub(crate) const CONTROL: u32 = f2::BASE + f2::CONTROL;

/// Host memory, once a link is connected.
#[derive(Default)]
pub(crate) struct Host(Option<HostPort>);

impl HostBus for Host {
    fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), HostFault> {
        self.0.as_mut().map_or(Err(HostFault::Unreachable), |port| port.read(addr, out))
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), HostFault> {
        self.0.as_mut().map_or(Err(HostFault::Unreachable), |port| port.write(addr, bytes))
    }
}

/// The design's side of the mailbox: an AXI4-Lite slave that has the answer to the next read, and
/// keeps the last write.
struct MailboxPort {
    ready: [Port; 3],
    valid: [Port; 3],
    write: [Port; 2],
    b: [Port; 2],
    r: [Port; 3],
    /// `None`: an error.
    answer: Option<u32>,
    written: Option<u32>,
    /// The response that waits: of a write, of a read.
    owed: [bool; 2],
}

impl MailboxPort {
    fn new(sim: &Sim) -> shef_rtl::Result<Self> {
        let port = |name: &str| sim.port(&format!("mbox_{name}"));
        Ok(Self {
            ready: [port("awready")?, port("wready")?, port("arready")?],
            valid: [port("awvalid")?, port("wvalid")?, port("arvalid")?],
            write: [port("wdata")?, port("wstrb")?],
            b: [port("bvalid")?, port("bready")?],
            r: [port("rvalid")?, port("rready")?, port("rdata")?],
            answer: None,
            written: None,
            owed: [false; 2],
        })
    }
}

impl Agent for MailboxPort {
    fn sample(&mut self, sim: &Sim) {
        let is = |port: Port| sim.get(port) != 0;
        let [aw, w, ar] = [0, 1, 2].map(|k| is(self.valid[k]) && is(self.ready[k]));
        if aw && w {
            self.written = (sim.get(self.write[1]) == 0xf).then(|| sim.get(self.write[0]) as u32);
            self.owed[0] = true;
        }
        self.owed[1] |= ar;
        for (owed, [valid, ready]) in
            self.owed.iter_mut().zip([[self.b[0], self.b[1]], [self.r[0], self.r[1]]])
        {
            *owed &= !(is(valid) && is(ready));
        }
    }

    fn drive(&mut self, sim: &mut Sim) {
        let [write, read] = self.owed;
        sim.set(self.b[0], write.into());
        sim.set(self.r[0], read.into());
        sim.set(self.r[2], self.answer.unwrap_or(u32::MAX).into());
        // Address and data are taken together.
        let both = sim.get(self.valid[0]) != 0 && sim.get(self.valid[1]) != 0;
        sim.set(self.ready[0], (both && !write).into());
        sim.set(self.ready[1], (both && !write).into());
        sim.set(self.ready[2], (!read).into());
    }
}

/// A custom logic in the shell.
pub(crate) struct F2Card {
    f2: NativeF2<Host>,
    mailbox: Rc<RefCell<MailboxPort>>,
    interrupts: u64,
    host_boots: bool,
}

impl F2Card {
    /// With random stalls of the shell and random contents, each if there is a seed.
    pub(crate) fn new(
        library: &Library,
        memory: AxiMemoryConfig,
        stalls: Option<u64>,
        contents: Option<u64>,
        host_boots: bool,
    ) -> Result<Self, CardError> {
        let mut config = F2Config {
            core: CoreClock { seed: stalls.unwrap_or(1), ..CoreClock::khz(CORE_KHZ) },
            stalls,
            memory,
            contents,
            ..F2Config::default()
        };
        if host_boots {
            // The host compares these with configuration space.
            config.max_payload = MAX_PAYLOAD;
            config.max_read_request = MAX_READ_REQUEST;
        }
        let mut f2 = NativeF2::new(library, config, Host::default())?;
        let mailbox = Rc::new(RefCell::new(MailboxPort::new(f2.shell.core().sim())?));
        f2.shell.core().attach(Box::new(Rc::clone(&mailbox)));
        f2.wait_open()?;
        let mut card = Self { f2, mailbox, interrupts: 0, host_boots };
        card.begin()?;
        Ok(card)
    }

    /// After a load or a reset.
    fn begin(&mut self) -> Result<(), CardError> {
        if !self.host_boots {
            return Ok(self.f2.start()?);
        }
        self.f2.enable();
        self.f2.set_kernel(false, 0);
        Ok(())
    }

    pub(crate) fn side(&mut self) -> &mut CoreSide {
        self.f2.shell.core()
    }

    pub(crate) fn seen(&self) -> &CoreSide {
        self.f2.shell.core_ref()
    }

    /// `None` if the shell answers with an error, for which PCIe shows all ones.
    pub(crate) fn ctl_read(&mut self, offset: u32) -> Option<u32> {
        let errors = self.f2.shell.metrics().errors[0];
        let word = self.f2.shell.ocl_read(offset);
        (self.f2.shell.metrics().errors[0] == errors).then_some(word)
    }

    pub(crate) fn ctl_write(&mut self, offset: u32, value: u32) -> bool {
        let errors = self.f2.shell.metrics().errors[0];
        self.f2.shell.ocl_write(offset, value);
        self.f2.shell.metrics().errors[0] == errors
    }

    pub(crate) fn krn(
        &mut self,
        offset: u32,
        write: Option<u32>,
    ) -> Result<Option<u32>, CardError> {
        Ok(self.f2.kernel_port(offset, write)?)
    }

    pub(crate) fn mem_read(&mut self, addr: u64, bytes: &mut [u8]) {
        self.f2.shell.bar4_read(addr, bytes);
    }

    pub(crate) fn mem_write(&mut self, addr: u64, bytes: &[u8]) {
        self.f2.shell.bar4_write(addr, bytes);
    }

    /// Cycles of the core's clock.
    pub(crate) fn step(&mut self, cycles: u64) {
        self.f2.step(cycles);
        while let Some(interrupt) = self.f2.shell.take_interrupt() {
            let vector = interrupt.vector.into();
            match (&self.f2.shell.host.0, interrupt.line) {
                (Some(host), ACCELERATOR_LINE) if self.host_boots => {
                    host.raise(vector);
                }
                (_, ACCELERATOR_LINE) => self.interrupts += 1,
                (Some(host), _) => host.interrupt(vector),
                (None, _) => {}
            }
        }
    }

    /// The measured job; its last reads may be in flight.
    pub(crate) fn measured(&mut self) -> Result<Measured, CardError> {
        for _ in 0..LAST_READS {
            if let Some(measured) = self.f2.shell.core_ref().measured() {
                return Ok(measured?);
            }
            self.step(1);
        }
        Err(shef_rtl::Error::NotMeasured("no job has begun and ended".to_owned()).into())
    }

    pub(crate) fn interrupts(&self) -> u64 {
        self.interrupts
    }

    pub(crate) fn connect(&mut self, host: HostPort) {
        self.f2.shell.host = Host(Some(host));
    }

    /// Resets the function as VFIO does, and starts the core again.
    pub(crate) fn reset(&mut self) -> Result<(), CardError> {
        self.f2.flr()?;
        self.begin()
    }

    /// Writes CONTROL as the host does.
    pub(crate) fn command(&mut self, value: u32) -> Change {
        let was = self.runs();
        // The core freezes the medium when it starts.
        let medium = (!was && value == f2::CONTROL_COMMAND_START).then(|| self.medium());
        self.ctl_write(CONTROL, value);
        self.f2.shell.step(COMMAND_CYCLES);
        match (was, self.runs(), medium) {
            (false, true, Some(medium)) => Change::Started(medium),
            (true, false, _) => {
                self.f2.set_kernel(false, 0);
                Change::Stopped
            }
            _ => Change::None,
        }
    }

    fn runs(&mut self) -> bool {
        f2::STATUS_RUNNING.get(self.f2.page(f2::STATUS)) == 1
    }

    /// The boot medium that `cl_shef` holds, read through BAR0 while it is open. A medium whose
    /// lengths are wrong is read as far as its header, and is zero behind it.
    fn medium(&mut self) -> Vec<u8> {
        let room = 4 * self.f2.page(f2::MEDIUM_WORDS) as usize;
        let shell = RefCell::new(&mut self.f2.shell);
        let word = |at: usize| shell.borrow_mut().ocl_read(MEDIUM + at as u32).to_le_bytes();
        let len = Medium::read(room, room, word)
            .map_or(Medium::IMAGE, |medium| medium.certificate() + medium.certificate_len);
        let mut bytes: Vec<u8> = (0..len).step_by(4).flat_map(word).collect();
        bytes.resize(room, 0);
        bytes
    }

    /// The state of the kernel that boots from the host's medium, until the page shows it.
    pub(crate) fn set_kernel(&mut self, ready: bool, alert: u32) {
        self.f2.set_kernel(ready, alert);
        self.f2.shell.step(COMMAND_CYCLES);
    }

    /// A register of BAR2.
    pub(crate) fn bar2_read(&mut self, offset: u32) -> u32 {
        self.f2.shell.bar2_read(offset)
    }

    pub(crate) fn bar2_write(&mut self, offset: u32, value: u32) {
        self.f2.shell.bar2_write(offset, value);
    }

    /// Wipes the design and starts it again, as when the kernel loads an image.
    pub(crate) fn mount(&mut self) -> Result<(), CardError> {
        Ok(self.f2.mount()?)
    }

    /// Wipes the design, which stays in reset.
    pub(crate) fn unmount(&mut self) -> Result<(), CardError> {
        Ok(self.f2.unmount()?)
    }
}

/// The kernel's mailbox behind the shell.
///
/// The kernel works while no access is under way: before a read, and after a write. The access
/// itself passes the shell, which may answer in the kernel's place.
pub(crate) struct Behind {
    pub backend: SharedBackend,
    pub kernel: Box<dyn Mailbox>,
}

impl Mailbox for Behind {
    fn power_on(&mut self, fuses: &Rc<Fuses>) -> Result<(), CardError> {
        self.kernel.power_on(fuses)
    }

    fn boot(&mut self, fuses: &Rc<Fuses>, medium: &[u8]) -> Result<u32, CardError> {
        self.kernel.boot(fuses, medium)
    }

    fn debug(&mut self, on: bool) -> Result<(), CardError> {
        self.kernel.debug(on)
    }

    fn read(&mut self, offset: u32) -> Result<Option<u32>, CardError> {
        let answer = self.kernel.read(offset)?;
        let Some(answer) = answer else { return Ok(None) };
        self.backend.borrow_mut().mailbox_read(offset, answer)
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<bool, CardError> {
        debug_assert!(offset >= mailbox::REQUEST);
        let came = self.backend.borrow_mut().mailbox_write(offset, value)?;
        came.map_or(Ok(false), |value| self.kernel.write(offset, value))
    }
}

impl F2Card {
    /// A read of the mailbox that the kernel answers with this word.
    pub(crate) fn mailbox_read(&mut self, offset: u32, answer: u32) -> Option<u32> {
        self.mailbox.borrow_mut().answer = Some(answer);
        self.ctl_read(offset)
    }

    /// A write of the mailbox: what reached the kernel.
    pub(crate) fn mailbox_write(&mut self, offset: u32, value: u32) -> Option<u32> {
        self.mailbox.borrow_mut().written = None;
        self.ctl_write(offset, value);
        self.mailbox.borrow_mut().written.take()
    }
}
