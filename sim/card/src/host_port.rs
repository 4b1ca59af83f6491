//! Access of the card to host memory and interrupts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shef_rtl::{Agent, HostBus, HostFault, Port, Sim};
use shef_vfio_user::{Bus, DmaError};

use crate::link::Link;

/// The path to the host. It blocks all accesses while the link is down or bus mastering is off, and
/// records every fault.
#[derive(Clone)]
pub(crate) struct HostPort {
    pub bus: Bus,
    pub link: Arc<Link>,
}

impl HostPort {
    /// Accesses host memory.
    pub fn reach(
        &self,
        access: impl FnOnce(&Bus) -> Result<(), DmaError>,
    ) -> Result<(), HostFault> {
        if self.link.is_down() || !self.link.master.load(Ordering::Acquire) {
            self.link.fault("DMA without bus mastering or without a link".to_owned());
            return Err(HostFault::Unreachable);
        }
        access(&self.bus).map_err(|error| {
            self.link.fault(error.to_string());
            HostFault::Unreachable
        })
    }

    /// Raises an interrupt of the DMA engine, if the link delivers it.
    pub fn interrupt(&self, vector: u32) {
        if self.raise(vector) {
            self.link.dma_interrupts.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Raises an interrupt, and returns whether the link delivers it.
    pub fn raise(&self, vector: u32) -> bool {
        let carried = self.link.carries_interrupt();
        if carried {
            let bit = 1_u64.checked_shl(vector).unwrap_or(0);
            self.link.vectors.fetch_or(bit, Ordering::AcqRel);
            self.bus.interrupt(vector);
        }
        carried
    }
}

impl HostBus for HostPort {
    fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), HostFault> {
        self.reach(|bus| bus.read(addr, out))?;
        if self.link.poisoned() { Err(HostFault::Poisoned) } else { Ok(()) }
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), HostFault> {
        self.reach(|bus| bus.write(addr, bytes))
    }
}

/// Receives the interrupts of a design's engine.
pub(crate) struct Interrupts {
    valid: Port,
    vector: Port,
    ready: Port,
    host: HostPort,
}

impl Interrupts {
    /// Binds to the ports of the design; `None` if it has none.
    pub fn new(sim: &Sim, host: HostPort) -> Option<Self> {
        Some(Self {
            valid: sim.find("dma_irq_valid")?,
            vector: sim.find("dma_irq_vector")?,
            ready: sim.find("dma_irq_ready")?,
            host,
        })
    }
}

impl Agent for Interrupts {
    fn sample(&mut self, sim: &Sim) {
        if sim.get(self.valid) != 0 && sim.get(self.ready) != 0 {
            self.host.interrupt(sim.get(self.vector) as u32);
        }
    }

    fn drive(&mut self, sim: &mut Sim) {
        sim.set(self.ready, 1);
    }
}
