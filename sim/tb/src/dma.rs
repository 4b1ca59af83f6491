//! The DMA engine with host memory, card memory and interrupts under one clock, driven by the real
//! driver of the rings.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use shef_device::ring::{Descriptor, DmaMemory, OP_TO_CARD, OP_TO_HOST, Queue, Registers, Status};
use shef_device::{DeviceError, OutOfRange};
use shef_rtl::memory::{Bytes, SparseMemory};
use shef_rtl::{
    Agent, AxiLite, AxiMemory, AxiMemoryConfig, DesignSpec, HostBus, HostFault, HostMemory,
    Library, Sim, build_once, cycle, module_spec,
};

/// Bytes of card memory.
pub const CARD_BYTES: u64 = 1 << 20;
/// Cycles until the engine gives up a port.
pub const TIMEOUT: u64 = 4096;
/// Cycles of one wait for an interrupt.
const PATIENCE: u64 = 20_000;

fn spec() -> DesignSpec {
    module_spec("shef_dma_top").expect("sources")
}

fn library() -> &'static Library {
    build_once(&spec()).expect("build")
}

/// Bytes shared by program, checking memory and faulty memory.
#[derive(Default)]
struct Pages(Mutex<SparseMemory>);

impl Bytes for Pages {
    fn read(&self, addr: u64, buf: &mut [u8]) {
        self.0.lock().expect("one thread").read(addr, buf);
    }

    fn write(&self, addr: u64, data: &[u8]) {
        self.0.lock().expect("one thread").write(addr, data);
    }
}

/// Host memory, with its mapping.
pub struct Host {
    /// Its contents.
    pub bytes: SparseMemory,
    /// Readable addresses.
    pub readable: Vec<Range<u64>>,
    /// Writable addresses.
    pub writable: Vec<Range<u64>>,
    /// Lines that answer with poisoned data.
    pub poisoned: Vec<Range<u64>>,
    /// Number of accesses, so that a test sees when they stop.
    pub accesses: u64,
}

/// Whether one of the ranges contains the address.
pub fn inside(ranges: &[Range<u64>], at: u64) -> bool {
    ranges.iter().any(|r| r.contains(&at))
}

impl Host {
    /// Makes addresses readable and writable.
    pub fn map(&mut self, range: Range<u64>) {
        self.readable.push(range.clone());
        self.writable.push(range);
    }
}

/// Host memory that the bench and the engine share.
#[derive(Clone)]
pub struct Shared(pub Rc<RefCell<Host>>);

impl Default for Shared {
    /// Without any mapping.
    fn default() -> Self {
        let bytes = SparseMemory::over(Arc::new(Pages::default()));
        Self(Rc::new(RefCell::new(Host {
            bytes,
            readable: Vec::new(),
            writable: Vec::new(),
            poisoned: Vec::new(),
            accesses: 0,
        })))
    }
}

impl Shared {
    /// Memory for a ring, mapped.
    pub fn ring(&self, entries: u32, base: u64) -> RingMemory {
        self.piece(Queue::<RingMemory>::bytes(entries), base)
    }

    /// Memory at an address, mapped.
    pub fn piece(&self, bytes: u64, base: u64) -> RingMemory {
        self.0.borrow_mut().map(base..(base + bytes).next_multiple_of(4096));
        RingMemory { host: self.clone(), base, bytes }
    }
}

impl HostBus for Shared {
    fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), HostFault> {
        let mut host = self.0.borrow_mut();
        host.accesses += 1;
        if !inside(&host.readable, addr) {
            return Err(HostFault::Unreachable);
        }
        host.bytes.read(addr, out);
        if inside(&host.poisoned, addr) { Err(HostFault::Poisoned) } else { Ok(()) }
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), HostFault> {
        let mut host = self.0.borrow_mut();
        host.accesses += 1;
        if !inside(&host.writable, addr) {
            return Err(HostFault::Unreachable);
        }
        host.bytes.write(addr, bytes);
        Ok(())
    }
}

/// A piece of host memory that contains a ring.
pub struct RingMemory {
    host: Shared,
    base: u64,
    bytes: u64,
}

impl DmaMemory for RingMemory {
    fn device_address(&self) -> u64 {
        self.base
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        self.host.0.borrow().bytes.read(self.base + offset, out);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
        self.host.0.borrow_mut().bytes.write(self.base + offset, bytes);
        Ok(())
    }

    fn load(&self, offset: u64) -> Result<u32, OutOfRange> {
        let mut word = [0; 4];
        self.read(offset, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }
}

/// The memory at the host port.
pub enum Link {
    /// Memory that checks the rules of the shell.
    Host(HostMemory<Shared>),
    /// Memory that violates the protocol on demand.
    Hostile(AxiMemory),
}

/// The engine and what it is connected to.
pub struct DmaBench {
    /// The engine.
    pub sim: Sim,
    /// Memory at its host port.
    pub link: Link,
    /// Card memory.
    pub mem: AxiMemory,
    /// Host memory.
    pub host: Shared,
    ctl: AxiLite,
    /// Interrupts so far.
    pub irqs: Msix,
}

/// Counts interrupts: for each vector, the total and the number not yet taken.
#[derive(Default)]
pub struct Msix(HashMap<u32, (u32, u32)>);

impl Msix {
    /// Interrupts of this vector so far.
    pub fn count(&self, vector: u32) -> u32 {
        self.0.get(&vector).map_or(0, |c| c.0)
    }

    /// Number of vectors raised.
    pub fn vectors(&self) -> usize {
        self.0.values().filter(|c| c.0 > 0).count()
    }

    /// Whether one arrived since the last call.
    pub fn take(&mut self, vector: u32) -> bool {
        std::mem::take(&mut self.0.entry(vector).or_default().1) > 0
    }
}

impl Agent for Msix {
    fn sample(&mut self, sim: &Sim) {
        if sim.peek("dma_irq_valid") == 1 && sim.peek("dma_irq_ready") == 1 {
            let count = self.0.entry(sim.peek("dma_irq_vector") as u32).or_default();
            *count = (count.0 + 1, count.1 + 1);
        }
    }

    fn drive(&mut self, sim: &mut Sim) {
        sim.poke("dma_irq_ready", 1);
    }
}

impl DmaBench {
    /// Creates it with this timing of host and card memory.
    pub fn new(host: AxiMemoryConfig, mem: AxiMemoryConfig) -> Self {
        Self::with(mem, |sim, shared| {
            Link::Host(HostMemory::new(sim, "host_", host, shared).expect("host port"))
        })
    }

    /// Creates it with a host port that violates the protocol.
    pub fn hostile() -> Self {
        let timing = || AxiMemoryConfig { stalls: None, ..AxiMemoryConfig::default() };
        Self::with(timing(), |sim, shared| {
            let mut memory = AxiMemory::new(sim, "host_", timing()).expect("host port");
            memory.memory = shared.0.borrow().bytes.clone();
            Link::Hostile(memory)
        })
    }

    fn with(mem: AxiMemoryConfig, link: impl FnOnce(&Sim, Shared) -> Link) -> Self {
        let sim = Sim::new(library()).expect("instance");
        let host = Shared::default();
        let mut bench = Self {
            link: link(&sim, host.clone()),
            mem: AxiMemory::new(&sim, "mem_", mem).expect("memory port"),
            ctl: AxiLite::new(&sim, "ctl_").expect("registers"),
            irqs: Msix::default(),
            host,
            sim,
        };
        bench.reset();
        bench
    }

    /// Resets the engine and both ports; the bytes of the memories stay.
    pub fn reset(&mut self) {
        self.ctl.abort(&mut self.sim);
        self.sim.reset("rst_n", 3);
        self.mem.reset(&mut self.sim);
        match &mut self.link {
            Link::Host(host) => host.reset(&mut self.sim),
            Link::Hostile(host) => host.reset(&mut self.sim),
        }
    }

    /// Runs the clock.
    pub fn step(&mut self, cycles: u64) {
        let Self { sim, link, mem, irqs, .. } = self;
        let link: &mut dyn Agent = match link {
            Link::Host(host) => host,
            Link::Hostile(host) => host,
        };
        for _ in 0..cycles {
            cycle(sim, &mut [link, mem, irqs]);
        }
    }

    /// The memory behind a hostile port.
    pub fn breaker(&mut self) -> &mut AxiMemory {
        match &mut self.link {
            Link::Hostile(host) => host,
            Link::Host(_) => panic!("this one keeps the rules"),
        }
    }

    /// The memory that checks the rules of the shell.
    pub fn shell(&mut self) -> &mut HostMemory<Shared> {
        match &mut self.link {
            Link::Host(host) => host,
            Link::Hostile(_) => panic!("this one keeps no rules"),
        }
    }

    /// Reads a register; `None` if it is refused.
    pub fn read(&mut self, offset: u32) -> Option<u32> {
        let Self { sim, link, mem, irqs, ctl, .. } = self;
        let link: &mut dyn Agent = match link {
            Link::Host(host) => host,
            Link::Hostile(host) => host,
        };
        ctl.read(sim, &mut [link, mem, irqs], offset.into()).expect("an answer")
    }

    /// Writes a register; returns whether it was accepted.
    pub fn write(&mut self, offset: u32, value: u32) -> bool {
        let Self { sim, link, mem, irqs, ctl, .. } = self;
        let link: &mut dyn Agent = match link {
            Link::Host(host) => host,
            Link::Hostile(host) => host,
        };
        ctl.write(sim, &mut [link, mem, irqs], offset.into(), value).expect("an answer")
    }

    /// Checks that no rule of the shell or the memory was violated.
    pub fn check(&mut self) {
        assert_eq!(self.shell().violations(), &[] as &[String]);
        assert_eq!(self.mem.violations(), &[] as &[String]);
    }
}

/// A DMA engine under its driver, with its clock.
pub trait Engine: Registers + Sized {
    /// Host memory.
    fn host(&self) -> &Shared;
    /// Cycles of the engine's clock so far.
    fn cycles(&self) -> u64;
    /// Runs the clock.
    fn run(&mut self, cycles: u64);

    /// Enables a queue whose ring is mapped at `base`.
    fn queue(&mut self, index: u32, entries: u32, base: u64, batch: u16) -> Queue<RingMemory> {
        let ring = self.host().ring(entries, base);
        Queue::open(self, index, entries, ring, index + 1, batch).expect("a queue")
    }
}

impl Engine for DmaBench {
    fn host(&self) -> &Shared {
        &self.host
    }

    fn cycles(&self) -> u64 {
        self.sim.cycles()
    }

    fn run(&mut self, cycles: u64) {
        self.step(cycles);
    }
}

/// First byte of host memory that [`both_ways`] uses; an area of the same size follows for the way
/// back.
pub const HOST: u64 = 1 << 20;

/// Moves `count` pieces to the card and as many to the host at once, repeatedly between the same
/// halves of card memory; returns the cycles from the first doorbell to the last completion.
pub fn both_ways<E: Engine>(bench: &mut E, piece: u64, count: u64) -> u64 {
    const HALF: u64 = CARD_BYTES / 2;
    bench.host().0.borrow_mut().map(HOST..HOST + CARD_BYTES);
    let mut queues = [(0, OP_TO_CARD), (1, OP_TO_HOST)].map(|(index, op)| {
        (bench.queue(index, 2048, (1 << 31) + (u64::from(index) << 20), 64), op)
    });
    for (queue, op) in &mut queues {
        for n in 0..count {
            let at = n % (HALF / piece) * piece + if *op == OP_TO_HOST { HALF } else { 0 };
            let d = Descriptor {
                op: *op,
                flags: 0,
                tag: n as u32,
                host: HOST + at,
                card: at,
                bytes: piece as u32,
            };
            assert!(queue.push(&d).expect("in the ring"));
        }
    }
    let start = bench.cycles();
    queues.iter_mut().for_each(|(queue, _)| queue.submit(bench).expect("a doorbell"));
    let mut left = 2 * count;
    while left > 0 {
        for (queue, _) in &mut queues {
            while let Some(c) = queue.poll().expect("sense") {
                assert_eq!((c.status, u64::from(c.bytes)), (Status::Done, piece));
                left -= 1;
            }
        }
        bench.run(8);
        assert!(
            bench.cycles() - start < 2_000 + count * piece / 16,
            "{left} completions are missing"
        );
    }
    bench.cycles() - start
}

impl Registers for DmaBench {
    fn register(&mut self, offset: u32) -> Result<u32, DeviceError> {
        Ok(self.read(offset).unwrap_or(u32::MAX))
    }

    fn set_register(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        self.write(offset, value);
        Ok(())
    }

    /// Time is counted in cycles of the design's clock.
    fn interrupted(&mut self, vector: u32, _: Duration) -> Result<bool, DeviceError> {
        for _ in 0..PATIENCE / 16 {
            if self.irqs.take(vector) {
                return Ok(true);
            }
            self.step(16);
        }
        Ok(false)
    }
}
