//! The whole Shield: control window, kernel port, session, register channel, and the engine sets
//! between accelerator and memory.

use std::ops::Range;

use sha2::{Digest, Sha256};
use shef_proto::channel::{
    FaultKind, MESSAGE_LEN, Op, Received, RefusalKind, Sealed, ShieldAnswer, ShieldChannel,
    ShieldRequest, ShieldStatement, State, Statistics, status,
};
use shef_proto::config::{Config, OnFault};
use shef_proto::hpke_suite::{PrivateKey, PublicKey, derive_key_pair};
use shef_proto::load::{MAX_MESSAGE, Transcript, open_load_key};
use shef_regs::{ctl, krn};
use zeroize::{Zeroize, Zeroizing};

use crate::bus::{Accelerator, BEAT, Beat, Burst, Resp, ShieldBus, WriteBeat};
use crate::engine::{Card, Counters, Engine, MemoryFault, Records, WriteTap};
use crate::memory::SparseMemory;

/// Counts 64-bit words that the accelerator received with OKAY from watched addresses.
#[derive(Default)]
struct Watch {
    ranges: Vec<Range<u64>>,
    words: u64,
}

impl Watch {
    fn count(&mut self, burst: &Burst, beats: &[Beat]) {
        if self.ranges.is_empty() {
            return;
        }
        for (i, beat) in (0u64..).zip(beats) {
            let at = (burst.start() + (i << burst.size.min(7))) & !63;
            for r in self.ranges.iter().filter(|_| beat.resp == Resp::Okay) {
                let (from, to) = (r.start.max(at), r.end.min(at + BEAT as u64));
                if from < to {
                    self.words += to.div_ceil(8) - from / 8;
                }
            }
        }
    }
}

struct Bus<'a> {
    engine: &'a mut Engine,
    card: &'a mut Card,
    watch: &'a mut Watch,
}

impl ShieldBus for Bus<'_> {
    fn read(&mut self, burst: &Burst) -> Vec<Beat> {
        let beats = self.engine.read(self.card, burst);
        self.watch.count(burst, &beats);
        beats
    }

    fn write(&mut self, burst: &Burst, data: &[WriteBeat]) -> Resp {
        self.engine.write(self.card, burst, data)
    }
}

/// State of a session; the numbers are those of STATUS.STATE. SCRUB and DERIVE take no time here.
enum Life {
    Empty,
    Fresh { sk: Box<PrivateKey>, pk: PublicKey },
    Keyed { pk: PublicKey, t: Transcript, confirm: [u8; 32], channel: Box<ShieldChannel> },
    Closed { t: Transcript, last: Box<Sealed> },
}

/// A Shield with its accelerator and card memory.
///
/// Everything happens inside the call that causes it: when [`Model::ctl_write`] returns, the
/// doorbell has been served, and when the register write that starts the accelerator is answered,
/// the accelerator has finished.
///
/// Where the RTL's behaviour depends on timing, the model takes one of the allowed paths: which
/// dirty chunk is sealed first when lines run out, how often a chunk that is written repeatedly is
/// sealed in between (and so its version), which tree nodes are on chip, and whether the second of
/// two writes to an `output` chunk still finds its line open. So answers, statements, written maps
/// and the content of `input` and `output` regions after a flush are the same bit for bit; the
/// ciphertext of scratch regions differs, but has the same plaintext. `shef-tb`'s oracle can check
/// every single write of either against the format.
pub struct Model {
    config: Config,
    digest: [u8; 32],
    accelerator: Box<dyn Accelerator>,
    engine: Engine,
    card: Card,
    watch: Watch,
    life: Life,
    load_msg: Vec<u8>,
    chan_req: Sealed,
    chan_rsp: Sealed,
    seed: Zeroizing<[u8; 32]>,
    /// Words of the seed written since the last seed was taken.
    seed_fresh: u8,
    load_refused: bool,
    chan_refused: bool,
    answer: bool,
    /// The accelerator did not clear its memories for the last seed.
    uncleared: bool,
}

impl Model {
    /// A Shield with this configuration, in reset state.
    pub fn new(config: Config, accelerator: Box<dyn Accelerator>) -> Self {
        let mut model = Self {
            digest: config.digest(),
            engine: Engine::new(&config),
            config,
            accelerator,
            card: Card::default(),
            watch: Watch::default(),
            life: Life::Empty,
            load_msg: vec![0; MAX_MESSAGE],
            chan_req: [0; MESSAGE_LEN],
            chan_rsp: [0; MESSAGE_LEN],
            seed: Zeroizing::new([0; 32]),
            seed_fresh: 0,
            load_refused: false,
            chan_refused: false,
            answer: false,
            uncleared: false,
        };
        model.accelerator.reset();
        model
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Identifies this model: SHA-256 of the model's version, the configuration and the
    /// accelerator.
    pub fn design_digest(&self) -> [u8; 32] {
        let mut h = Sha256::new();
        h.update(b"shef-model/1");
        h.update(self.digest);
        h.update(self.accelerator.name().as_bytes());
        h.finalize().into()
    }

    /// The model has no clock.
    pub fn cycles(&self) -> Option<u64> {
        None
    }

    /// Card memory.
    pub fn memory(&self) -> &SparseMemory {
        &self.card.memory
    }

    /// Card memory, for changes. Drops verified on-chip chunks, so that the accelerator sees the
    /// new content.
    pub fn memory_mut(&mut self) -> &mut SparseMemory {
        self.engine.forget_clean();
        &mut self.card.memory
    }

    /// Makes a range of card memory faulty for the Shield; host accesses through [`Model::memory`]
    /// are not affected.
    pub fn add_fault(&mut self, range: Range<u64>, fault: MemoryFault) {
        self.engine.forget_clean();
        self.card.faults.push((range, fault));
    }

    /// Repairs all faulty ranges. A port that timed out stays dead until [`Model::reset`].
    pub fn clear_faults(&mut self) {
        self.card.faults.clear();
    }

    /// Passes every beat that the Shield writes to card memory from now on to `tap`.
    pub fn on_write(&mut self, tap: WriteTap) {
        self.card.on_write = Some(tap);
    }

    /// Statistics of an engine set; `None` if there is no such set. Counters that need a clock read
    /// 0, as do those of prefetch, which the model does not do.
    pub fn counters(&self, set: usize) -> Option<&Counters> {
        self.engine.counters(set)
    }

    /// Bit i: region i is frozen after a fault, under `on_fault = "region"`.
    pub fn region_faults(&self) -> u16 {
        self.engine.region_faults()
    }

    /// Also counts words that the accelerator receives from this range, from now on.
    pub fn watch(&mut self, range: Range<u64>) {
        self.watch.ranges.push(range);
    }

    /// Clears watched ranges and count.
    pub fn clear_watch(&mut self) {
        self.watch = Watch::default();
    }

    /// 64-bit words that the accelerator received from watched ranges with OKAY.
    pub fn words_delivered(&self) -> u64 {
        self.watch.words
    }

    /// `wipe_req`: zeroises everything and returns when that is acknowledged. Card memory stays.
    pub fn wipe(&mut self) {
        self.engine.wipe();
        self.forget_records();
        self.life = Life::Empty;
        self.load_msg.zeroize();
        self.load_msg.resize(MAX_MESSAGE, 0);
        self.chan_req.zeroize();
        self.chan_rsp.zeroize();
        self.seed.zeroize();
        self.seed_fresh = 0;
        self.load_refused = false;
        self.chan_refused = false;
        self.answer = false;
        self.uncleared = false;
        self.accelerator.reset();
        self.accelerator.clear();
    }

    /// Clears earlier faults and refusals; a port that timed out is not used again, so its fault
    /// stays.
    fn forget_records(&mut self) {
        if self.card.dead {
            self.engine.records.refusals = 0;
            self.engine.records.refusal = None;
        } else {
            self.engine.records = Records::default();
        }
    }

    /// Reset. Card memory stays.
    pub fn reset(&mut self) {
        self.card.dead = false;
        self.wipe();
    }

    /// Reads the control window; `None` is SLVERR.
    pub fn ctl_read(&self, addr: u32) -> Option<u32> {
        let addr = addr & !3;
        if let Some(v) = bytes_at(addr, ctl::CONFIG_DIGEST, &self.digest) {
            return Some(v);
        }
        let confirm = match &self.life {
            Life::Keyed { confirm, .. } => confirm,
            _ => &[0; 32],
        };
        if let Some(v) = bytes_at(addr, ctl::CONFIRM, confirm) {
            return Some(v);
        }
        let answer = if self.answer { &self.chan_rsp } else { &[0; MESSAGE_LEN] };
        if let Some(v) = bytes_at(addr, ctl::CHAN_RSP, answer) {
            return Some(v);
        }
        match addr {
            ctl::MAGIC => Some(u32::from_le_bytes(*b"SHEF")),
            ctl::VERSION => Some(0x0001_0000),
            ctl::SHELL => Some(1),
            ctl::CLOCK_KHZ => Some(250_000),
            ctl::SHAPE => Some(
                ctl::SHAPE_PORTS.put(u32::from(self.config.ports()))
                    | ctl::SHAPE_SETS.put(self.config.sets().len() as u32)
                    | ctl::SHAPE_REGIONS.put(self.config.regions().len() as u32),
            ),
            ctl::STATUS => Some(self.status()),
            _ => None,
        }
    }

    /// Writes the control window; `None` is SLVERR.
    pub fn ctl_write(&mut self, addr: u32, value: u32) -> Option<()> {
        let addr = addr & !3;
        if set_bytes(addr, ctl::LOAD_MSG, &mut self.load_msg, value)
            || set_bytes(addr, ctl::CHAN_REQ, &mut self.chan_req, value)
        {
            return Some(());
        }
        match addr {
            ctl::LOAD_DOORBELL => self.load(value),
            ctl::CHAN_DOORBELL => self.channel(),
            _ => return None,
        }
        Some(())
    }

    /// Reads the kernel port; `None` is SLVERR.
    pub fn krn_read(&self, addr: u32) -> Option<u32> {
        let addr = addr & !3;
        let pubkey = match &self.life {
            Life::Fresh { pk, .. } | Life::Keyed { pk, .. } => pk.xy(),
            _ => [0; 64],
        };
        let t = match &self.life {
            Life::Keyed { t, .. } | Life::Closed { t, .. } => t.0,
            _ => [0; 32],
        };
        let last = match &self.life {
            Life::Closed { last, .. } => **last,
            _ => [0; MESSAGE_LEN],
        };
        if addr == krn::STATUS {
            return Some(self.status());
        }
        bytes_at(addr, krn::PUBKEY, &pubkey)
            .or_else(|| bytes_at(addr, krn::T, &t))
            .or_else(|| bytes_at(addr, krn::CONFIG_DIGEST, &self.digest))
            .or_else(|| bytes_at(addr, krn::LAST, &last))
    }

    /// Writes the kernel port; `None` is SLVERR.
    pub fn krn_write(&mut self, addr: u32, value: u32) -> Option<()> {
        let addr = addr & !3;
        let open = matches!(self.life, Life::Empty | Life::Closed { .. });
        if open && set_bytes(addr, krn::SEED, &mut self.seed[..], value) {
            self.seed_fresh |= 1 << ((addr - krn::SEED) / 4);
            return Some(());
        }
        if addr != krn::CTRL {
            return None;
        }
        if krn::CTRL_SEED.get(value) == 1 {
            if !open || self.seed_fresh != 0xff {
                return None;
            }
            // One event: wipes the previous state, including fault records.
            self.engine.wipe();
            self.forget_records();
            self.accelerator.reset();
            self.uncleared = !self.accelerator.clear();
            self.answer = false;
            self.chan_rsp.zeroize();
            self.load_refused = false;
            self.chan_refused = false;
            self.life = Life::Empty;
            if !self.uncleared {
                let (sk, pk) = derive_key_pair(&self.seed[..]);
                self.life = Life::Fresh { sk: Box::new(sk), pk };
            }
            self.seed.zeroize();
            self.seed_fresh = 0;
        }
        if krn::CTRL_WIPE.get(value) == 1 {
            self.wipe();
        }
        Some(())
    }

    /// Makes a read burst on behalf of the accelerator.
    pub fn axi_read(&mut self, burst: &Burst) -> Vec<Beat> {
        let done = self.bus().0.read(burst);
        self.halt();
        done
    }

    /// Makes a write burst on behalf of the accelerator.
    pub fn axi_write(&mut self, burst: &Burst, data: &[WriteBeat]) -> Resp {
        let done = self.bus().0.write(burst, data);
        self.halt();
        done
    }

    /// Reads bytes from a 64-byte-aligned address, as [`ShieldBus::read_bytes`].
    pub fn axi_read_bytes(&mut self, addr: u64, out: &mut [u8]) -> Resp {
        let done = self.bus().0.read_bytes(addr, out);
        self.halt();
        done
    }

    /// Writes bytes from a 64-byte-aligned address in bursts of up to 8 beats, as
    /// [`ShieldBus::write_bytes`].
    pub fn axi_write_bytes(&mut self, addr: u64, data: &[u8]) -> Resp {
        let done = self.bus().0.write_bytes(addr, data, 8);
        self.halt();
        done
    }

    fn bus(&mut self) -> (Bus<'_>, &mut dyn Accelerator) {
        (
            Bus { engine: &mut self.engine, card: &mut self.card, watch: &mut self.watch },
            &mut *self.accelerator,
        )
    }

    fn status(&self) -> u32 {
        let state = match self.life {
            Life::Empty => ctl::STATUS_STATE_EMPTY,
            Life::Fresh { .. } => ctl::STATUS_STATE_FRESH,
            Life::Keyed { .. } => ctl::STATUS_STATE_KEYED,
            Life::Closed { .. } => ctl::STATUS_STATE_CLOSED,
        };
        let r = &self.engine.records;
        ctl::STATUS_STATE.put(state)
            | ctl::STATUS_STOPPED.put(r.stopped.into())
            | ctl::STATUS_LOAD_REFUSED.put(self.load_refused.into())
            | ctl::STATUS_CHAN_REFUSED.put(self.chan_refused.into())
            | ctl::STATUS_CHAN_ANSWER.put(self.answer.into())
            | ctl::STATUS_UNCLEARED.put(self.uncleared.into())
            | ctl::STATUS_FAULT_KIND
                .put(r.fault.map_or(FaultKind::None, |f| f.kind).number().into())
    }

    fn load(&mut self, len: u32) {
        self.load_refused = true;
        let Life::Fresh { sk, pk } = &self.life else { return };
        let Some(message) = usize::try_from(len).ok().and_then(|n| self.load_msg.get(..n)) else {
            return;
        };
        let Ok((keys, epochs)) = open_load_key(&self.config, sk, message) else { return };
        self.load_refused = false;
        self.engine.enable(&keys, &epochs);
        self.life = Life::Keyed {
            pk: *pk,
            t: keys.transcript(),
            confirm: keys.confirmation(),
            channel: Box::new(ShieldChannel::new(&keys)),
        };
        self.accelerator.reset();
        self.halt();
    }

    fn channel(&mut self) {
        self.chan_refused = false;
        let Life::Keyed { channel, .. } = &mut self.life else {
            self.chan_refused = true;
            return;
        };
        let request = match channel.receive(&self.chan_req) {
            Received::Run(request) => request,
            Received::Repeat(stored) => {
                self.chan_rsp = *stored;
                self.answer = true;
                return;
            }
            Received::Refused => {
                self.chan_refused = true;
                return;
            }
        };
        let number = channel.seq();
        let closing = request.op == Op::Close as u8 || request.op == Op::Abort as u8;
        let answer = self.run(&request, number);
        let Life::Keyed { channel, t, .. } = &mut self.life else { return };
        self.chan_rsp = channel.answer(&answer);
        self.answer = true;
        if closing {
            self.life = Life::Closed { t: *t, last: Box::new(self.chan_rsp) };
            self.engine.wipe();
            self.accelerator.reset();
            self.accelerator.clear();
        }
        self.halt();
    }

    /// `on_fault = "halt"`: a stopped Shield ends the session.
    fn halt(&mut self) {
        if self.config.on_fault() != OnFault::Halt || !self.engine.records.stopped {
            return;
        }
        let Life::Keyed { channel, t, .. } = &self.life else { return };
        self.chan_rsp = channel.halt(self.statement(State::Closed, channel.seq() + 1));
        self.life = Life::Closed { t: *t, last: Box::new(self.chan_rsp) };
        self.chan_refused = false;
        self.answer = true;
        self.engine.wipe();
        self.accelerator.reset();
        self.accelerator.clear();
    }

    fn run(&mut self, request: &ShieldRequest, number: u64) -> ShieldAnswer {
        let mut answer = ShieldAnswer::to(request, status::DONE);
        let stopped = self.engine.records.stopped;
        let Some(op) = Op::from_number(request.op) else {
            answer.status = status::BAD;
            return answer;
        };
        let addr = u16::try_from(request.addr).ok().filter(|a| a % 4 == 0);
        match op {
            Op::Ping => {}
            Op::Read | Op::Write | Op::Flush | Op::Invalidate | Op::Epoch if stopped => {
                answer.status = status::STOPPED;
            }
            Op::Read => match addr {
                None => answer.status = status::BAD,
                Some(addr) => match self.accelerator.reg_read(addr) {
                    Some(v) => answer.value = v.into(),
                    None => answer.status = status::REGISTER,
                },
            },
            Op::Write => match addr {
                None => answer.status = status::BAD,
                Some(addr) => {
                    let (mut bus, accelerator) = self.bus();
                    if accelerator.reg_write(addr, request.value as u32) {
                        accelerator.run(&mut bus);
                    } else {
                        answer.status = status::REGISTER;
                    }
                }
            },
            Op::Flush if !self.engine.flush(&mut self.card) => answer.status = status::FAULT,
            Op::Flush => {}
            Op::Invalidate if !self.engine.invalidate(&mut self.card) => {
                answer.status = status::FAULT;
            }
            Op::Invalidate => {}
            Op::Epoch if !self.engine.may_raise(request.region, request.value) => {
                answer.status = status::BAD;
            }
            Op::Epoch
                if !self.engine.raise_epoch(&mut self.card, request.region, request.value) =>
            {
                answer.status = status::FAULT;
            }
            Op::Epoch => {}
            Op::Statement if request.addr == 0 => {
                answer.payload = self.statement(State::Keyed, number);
            }
            Op::Statement => match u8::try_from(request.addr - 1)
                .ok()
                .and_then(|id| self.engine.region_statement(id))
            {
                Some(page) => answer.payload = page.to_payload(),
                None => answer.status = status::BAD,
            },
            Op::Map => match self.engine.map_page(request.region, request.addr) {
                Some(page) => answer.payload = page,
                None => answer.status = status::BAD,
            },
            Op::Stats => match self
                .engine
                .counters(request.region.into())
                .and_then(|c| Statistics::new(*c).page(request.addr))
            {
                Some(page) => answer.payload = page,
                None => answer.status = status::BAD,
            },
            Op::Close | Op::Abort => {
                if op == Op::Close && !stopped && !self.engine.flush(&mut self.card) {
                    answer.status = status::FAULT;
                }
                answer.payload = self.statement(State::Closed, number);
            }
            _ => answer.status = status::BAD,
        }
        answer
    }

    fn statement(&self, state: State, number: u64) -> [u8; 48] {
        let r = &self.engine.records;
        ShieldStatement {
            state,
            stopped: r.stopped,
            fault_kind: r.fault.map_or(FaultKind::None, |f| f.kind),
            fault_region: r.fault.map_or(0, |f| f.region),
            faults: r.faults,
            refusals: r.refusals,
            refusal_kind: r.refusal.map_or(RefusalKind::None, |f| f.kind),
            refusal_region: r.refusal.map_or(0, |f| f.region),
            fault_chunk: r.fault.map_or(0, |f| f.chunk),
            fault_version: r.fault.map_or(0, |f| f.version),
            refusal_addr: r.refusal.map_or(0, |f| f.addr),
            requests: number,
        }
        .to_payload()
    }
}

/// The word at `addr`, if it lies in `bytes`, which start at `base`.
fn bytes_at(addr: u32, base: u32, bytes: &[u8]) -> Option<u32> {
    let at = addr.checked_sub(base)? as usize;
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(word.iter().rev().fold(0, |n, &b| n << 8 | u32::from(b)))
}

fn set_bytes(addr: u32, base: u32, bytes: &mut [u8], value: u32) -> bool {
    let Some(at) = addr.checked_sub(base).map(|a| a as usize) else { return false };
    match bytes.get_mut(at..at.saturating_add(4)) {
        Some(word) => {
            word.copy_from_slice(&value.to_le_bytes());
            true
        }
        None => false,
    }
}

/// The same accelerator wired directly to memory, without a Shield.
pub struct Bare {
    accelerator: Box<dyn Accelerator>,
    memory: SparseMemory,
}

impl Bare {
    /// An accelerator on an empty memory.
    pub fn new(mut accelerator: Box<dyn Accelerator>) -> Self {
        accelerator.reset();
        Self { accelerator, memory: SparseMemory::new() }
    }

    /// Reads an accelerator register; `None` is SLVERR.
    pub fn reg_read(&mut self, addr: u16) -> Option<u32> {
        self.accelerator.reg_read(addr)
    }

    /// Writes an accelerator register; `None` is SLVERR.
    pub fn reg_write(&mut self, addr: u16, value: u32) -> Option<()> {
        if !self.accelerator.reg_write(addr, value) {
            return None;
        }
        self.accelerator.run(&mut BareBus(&mut self.memory));
        Some(())
    }

    /// The memory.
    pub fn memory_mut(&mut self) -> &mut SparseMemory {
        &mut self.memory
    }
}

struct BareBus<'a>(&'a mut SparseMemory);

impl ShieldBus for BareBus<'_> {
    fn read(&mut self, burst: &Burst) -> Vec<Beat> {
        (0..burst.beats() as u64)
            .map(|i| {
                let mut data = [0; BEAT];
                self.0.read((burst.start() + (i << burst.size.min(7))) & !63, &mut data);
                Beat { data, resp: Resp::Okay }
            })
            .collect()
    }

    fn write(&mut self, burst: &Burst, data: &[WriteBeat]) -> Resp {
        for (i, beat) in (0u64..).zip(data).take(burst.beats()) {
            self.0.write_strobed(
                (burst.start() + (i << burst.size.min(7))) & !63,
                &beat.data,
                beat.strb,
            );
        }
        Resp::Okay
    }
}
