//! `cl_shef` in the shell: what the host does to start it, and with the native kernel, what the kernel
//! does to make a design run.

use super::config::F2Config;
use super::irq::Msix;
use super::shell::F2Shell;
use crate::{AxiLite, Error, HostBus, Library, Result};
use shef_regs::f2;
use std::cell::RefCell;
use std::rc::Rc;

/// Ids in the manifest of the image.
pub const IDS: [u32; 2] = [0xf010_1d0f, 0x1d51_fedc];
/// First byte of the boot medium in BAR 0.
pub const MEDIUM: u32 = 0x100_0000;
/// Clock of the core in kHz, as `cl_shef` has it by default.
pub const CORE_KHZ: u64 = 66_667;
/// Cycles of `clk_main_a0` in which the core is wiped, or starts.
const LIFE_CYCLES: u64 = 25_000_000;
/// Cycles of the core's clock in which the fabric takes a command.
const FABRIC_CYCLES: u64 = 1 << 22;
/// Cycles of the core's clock for an access of the kernel.
const KERNEL_CYCLES: u64 = 1_000_000;

/// The custom logic for AWS F2 with the native kernel.
pub struct NativeF2<B> {
    /// The shell around it.
    pub shell: F2Shell<B>,
    kernel: Rc<RefCell<AxiLite>>,
}

impl<B: HostBus> NativeF2<B> {
    /// The image in a slot; its core is being wiped.
    ///
    /// # Errors
    /// As [`F2Shell::new`].
    pub fn new(lib: &Library, mut config: F2Config, host: B) -> Result<Self> {
        config.inputs.push(("native_ready".to_owned(), vec![1]));
        let mut shell = F2Shell::new(lib, config, IDS, host)?;
        let kernel = Rc::new(RefCell::new(AxiLite::new(shell.core().sim(), "krn_")?));
        shell.core().attach(Box::new(Rc::clone(&kernel)));
        Ok(Self { shell, kernel })
    }

    /// A register of the adapter page.
    pub fn page(&mut self, register: u32) -> u32 {
        self.shell.ocl_read(f2::BASE + register)
    }

    /// Writes CONTROL.
    pub fn command(&mut self, command: u32) {
        self.shell.ocl_write(f2::BASE + f2::CONTROL, command);
    }

    /// Waits until STATUS satisfies `done`.
    ///
    /// # Errors
    /// [`Error::Hang`] with this name.
    pub fn wait(&mut self, what: &'static str, done: impl Fn(u32) -> bool) -> Result<()> {
        let end = self.shell.main_cycles() + LIFE_CYCLES;
        while !done(self.page(f2::STATUS)) {
            if self.shell.main_cycles() > end {
                return Err(Error::Hang { what, cycles: LIFE_CYCLES });
            }
            self.shell.step(64);
        }
        Ok(())
    }

    /// Waits until the core is wiped and held in reset: the medium is open.
    ///
    /// # Errors
    /// [`Error::Hang`]
    pub fn wait_open(&mut self) -> Result<()> {
        self.wait("end of the wipe", |status| {
            f2::STATUS_LOCKED.get(status) == 1 && f2::STATUS_FROZEN.get(status) == 0
        })
    }

    /// Starts a core that is held, and sets up what a driver sets up: bus mastering, and line k as
    /// vector k.
    ///
    /// # Errors
    /// [`Error::Hang`]
    pub fn start(&mut self) -> Result<()> {
        self.command(f2::CONTROL_COMMAND_START);
        self.wait("start of the core", |status| f2::STATUS_RUNNING.get(status) == 1)?;
        self.enable();
        for word in 0..4_u8 {
            let vectors = [0, 1, 2, 3].map(|k| 4 * word + k);
            self.shell.bar2_write(0x2080 + 4 * u32::from(word), u32::from_le_bytes(vectors));
        }
        self.shell.bar2_write(0x2004, u16::MAX.into());
        Ok(())
    }

    /// Enables what configuration space and VFIO enable: bus mastering and MSI-X. BAR 2 still gives
    /// the lines their vectors.
    pub fn enable(&mut self) {
        self.shell.set_bus_master(true);
        self.shell.set_msix(Msix::Eventfds);
        self.shell.give_lines(u16::MAX);
    }

    /// Sets whether the kernel is ready, as it is after a load, and its alert, 0 for none.
    pub fn set_kernel(&mut self, ready: bool, alert: u32) {
        let sim = self.shell.core().sim();
        sim.poke("native_ready", ready.into());
        sim.poke("native_alert", alert.into());
    }

    /// Cycles of the core's clock.
    pub fn step(&mut self, cycles: u64) {
        let end = self.shell.core_cycles() + cycles;
        while self.shell.core_cycles() < end {
            self.shell.edge();
        }
    }

    fn set(&mut self, ports: [(&str, u64); 2]) {
        for (port, level) in ports {
            self.shell.core().sim().poke(port, level);
        }
        self.step(1);
    }

    fn until(&mut self, port: &str, level: u64, what: &'static str) -> Result<()> {
        let end = self.shell.core_cycles() + FABRIC_CYCLES;
        while self.shell.core().sim().peek(port) != level {
            if self.shell.core_cycles() > end {
                return Err(Error::Hang { what, cycles: FABRIC_CYCLES });
            }
            self.step(1);
        }
        Ok(())
    }

    /// The design is wiped and becomes active, as when the kernel loads its image.
    ///
    /// # Errors
    /// [`Error::Hang`]
    pub fn mount(&mut self) -> Result<()> {
        self.set([("cfg_begin", 1), ("cfg_clear", 0)]);
        self.set([("cfg_begin", 0), ("cfg_clear", 0)]);
        self.until("cfg_busy", 1, "begin of an image")?;
        self.set([("cfg_valid", 1), ("cfg_last", 1)]);
        self.until("cfg_active", 1, "end of an image")?;
        self.set([("cfg_valid", 0), ("cfg_last", 0)]);
        self.until("obs_held", 0, "start of the design")
    }

    /// The design is wiped and stays in reset.
    ///
    /// # Errors
    /// [`Error::Hang`]
    pub fn unmount(&mut self) -> Result<()> {
        self.set([("cfg_begin", 0), ("cfg_clear", 1)]);
        self.set([("cfg_begin", 0), ("cfg_clear", 0)]);
        self.until("obs_held", 1, "wipe of the design")
    }

    /// An access of the kernel to the Shield; `None` is an error. The value of a write is 0.
    ///
    /// # Errors
    /// [`Error::Hang`]
    pub fn kernel_port(&mut self, offset: u32, write: Option<u32>) -> Result<Option<u32>> {
        {
            let (mut kernel, sim) = (self.kernel.borrow_mut(), self.shell.core().sim());
            match write {
                Some(value) => kernel.start_write(sim, offset.into(), value, 0xf),
                None => kernel.start_read(sim, offset.into()),
            }
        }
        let end = self.shell.core_cycles() + KERNEL_CYCLES;
        while self.shell.core_cycles() < end {
            self.shell.edge();
            let answer = self.kernel.borrow_mut().take();
            if let Some((resp, data)) = answer {
                return Ok((resp == 0).then_some(data));
            }
        }
        Err(Error::Hang { what: "access of the kernel", cycles: KERNEL_CYCLES })
    }

    /// Resets the function as VFIO does, and waits until the medium is open; returns the nanoseconds
    /// until the CL was done.
    ///
    /// # Errors
    /// [`Error::Hang`]
    pub fn flr(&mut self) -> Result<u64> {
        self.kernel.borrow_mut().abort(self.shell.core().sim());
        let ns = self.shell.flr();
        self.wait_open()?;
        Ok(ns)
    }
}
