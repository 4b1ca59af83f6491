//! The engine set: chunks between the accelerator and card memory, verified before release and sealed before they leave.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use shef_proto::channel::{FaultKind, RefusalKind, RegionStatement, WrittenMap};
use shef_proto::config::{Config, MAX_KEY_BLOCKS, Mode, Region, TAG_LEN};
use shef_proto::load::{FirstEpoch, SessionKeys};
use shef_seal::ChunkCipher;
use zeroize::Zeroizing;

use crate::bus::{BEAT, Beat, Burst, Resp, WriteBeat};
use crate::memory::SparseMemory;

/// What a faulty range of card memory does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryFault {
    /// Answers with an error.
    Error,
    /// Never answers.
    Hang,
}

/// Card memory with faults on demand.
#[derive(Default)]
pub(crate) struct Card {
    pub memory: SparseMemory,
    pub faults: Vec<(Range<u64>, MemoryFault)>,
    pub dead: bool,
}

impl Card {
    /// The fault of an access to `len` bytes, whole beats.
    fn fault(&self, addr: u64, len: u64) -> Option<FaultKind> {
        let (from, to) = (addr & !63, (addr + len + 63) & !63);
        let hit = |kind| self.faults.iter().any(|(r, k)| *k == kind && r.start < to && from < r.end);
        if self.dead || hit(MemoryFault::Hang) {
            Some(FaultKind::Timeout)
        } else if hit(MemoryFault::Error) {
            Some(FaultKind::Bus)
        } else {
            None
        }
    }
}

/// First fault.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub kind: FaultKind,
    pub region: u8,
    pub chunk: u64,
    pub version: u64,
}

/// First refusal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    pub kind: RefusalKind,
    pub region: u8,
    pub addr: u64,
}

/// What the statement says about faults and refusals.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Records {
    pub stopped: bool,
    pub fault: Option<Fault>,
    pub faults: u32,
    pub refusal: Option<Refusal>,
    pub refusals: u32,
}

/// A chunk on chip. `gather` holds the bytes that are there while the line is being written; a line without it is verified or sealed.
struct Line {
    data: Zeroizing<Vec<u8>>,
    gather: Option<Vec<u64>>,
}

struct RegionState {
    region: Region,
    cipher: Option<ChunkCipher>,
    epoch: u64,
    written: WrittenMap,
    blocks: u64,
    lines: BTreeMap<u64, Line>,
}

impl RegionState {
    fn new(region: &Region) -> Self {
        let chunks = if region.mode == Mode::Output { region.chunks() } else { 0 };
        Self { region: region.clone(), cipher: None, epoch: 0, written: WrittenMap::empty(chunks), blocks: 0, lines: BTreeMap::new() }
    }
}

pub(crate) struct Engine {
    regions: Vec<RegionState>,
    /// Lines in the order in which they were taken, for chunks above 512 B and for the others.
    order: [VecDeque<(usize, u64)>; 2],
    room: [usize; 2],
    enabled: bool,
    pub records: Records,
}

fn class(region: &Region) -> usize {
    usize::from(region.chunk <= 512)
}

impl Engine {
    pub fn new(config: &Config) -> Self {
        let set = &config.sets()[0];
        Self {
            regions: config.regions().iter().map(RegionState::new).collect(),
            order: [VecDeque::new(), VecDeque::new()],
            room: [usize::from(set.big_lines), usize::from(set.small_lines)],
            enabled: false,
            records: Records::default(),
        }
    }

    /// Takes keys and first epochs of a session.
    pub fn enable(&mut self, keys: &SessionKeys, epochs: &[FirstEpoch]) {
        for r in &mut self.regions {
            r.cipher = keys.data_key(r.region.id).map(|k| ChunkCipher::new(r.region.id, k));
        }
        for e in epochs {
            self.regions[usize::from(e.region)].epoch = e.epoch;
        }
        self.enabled = true;
    }

    /// Zeroises keys, lines, maps and epochs; the records stay.
    pub fn wipe(&mut self) {
        self.enabled = false;
        self.order = [VecDeque::new(), VecDeque::new()];
        for r in &mut self.regions {
            *r = RegionState::new(&r.region);
        }
    }

    /// Forgets verified and sealed lines: what is asked for again is fetched again.
    pub fn forget_clean(&mut self) {
        for (id, r) in self.regions.iter_mut().enumerate() {
            r.lines.retain(|_, l| l.gather.is_some());
            let lines = &r.lines;
            self.order.iter_mut().for_each(|o| o.retain(|(i, chunk)| *i != id || lines.contains_key(chunk)));
        }
    }

    pub fn region_statement(&self, id: u8) -> Option<RegionStatement> {
        let r = self.regions.get(usize::from(id))?;
        Some(RegionStatement {
            mode: r.region.mode,
            chunk_log2: r.region.chunk_log2(),
            written: r.written.count() as u32,
            epoch: r.epoch,
            chunks: r.region.chunks(),
        })
    }

    pub fn map_page(&self, id: u8, page: u32) -> Option<[u8; 48]> {
        let r = self.regions.get(usize::from(id)).filter(|r| r.region.mode == Mode::Output)?;
        r.written.page(u64::from(page))
    }

    fn fault(&mut self, kind: FaultKind, region: usize, chunk: u64) {
        let r = &self.regions[region];
        let fault = Fault { kind, region: r.region.id, chunk, version: r.epoch };
        self.stop(fault);
    }

    /// A fault of the memory that belongs to no single chunk: a time-out, an error answer to a tag line or to a write.
    fn memory_fault(&mut self, card: &mut Card, kind: FaultKind) {
        card.dead |= kind == FaultKind::Timeout;
        self.stop(Fault { kind, region: 0xff, chunk: 0, version: 0 });
    }

    fn stop(&mut self, fault: Fault) {
        self.records.stopped = true;
        self.records.faults = self.records.faults.saturating_add(1);
        self.records.fault.get_or_insert(fault);
    }

    fn refuse(&mut self, kind: RefusalKind, region: u8, addr: u64) {
        self.records.refusals = self.records.refusals.saturating_add(1);
        self.records.refusal.get_or_insert(Refusal { kind, region, addr });
    }

    /// What is wrong with a burst as a whole.
    fn check(&self, burst: &Burst, write: bool) -> Result<usize, (RefusalKind, u8)> {
        if !self.enabled {
            return Err((RefusalKind::NotKeyed, 0xff));
        }
        let span = (burst.beats() as u64) << burst.size.min(7);
        if !burst.incr || burst.size > 6 || burst.start() % 4096 + span > 4096 {
            return Err((RefusalKind::Burst, 0xff));
        }
        let at = self.regions.iter().position(|r| r.region.contains(burst.addr, 1)).ok_or((RefusalKind::Range, 0xff))?;
        let r = &self.regions[at];
        if write && r.region.mode != Mode::Output {
            return Err((RefusalKind::ReadOnly, r.region.id));
        }
        if !matches!(r.region.mode, Mode::Input | Mode::Output) {
            return Err((RefusalKind::Range, 0xff));
        }
        if r.epoch == 0 {
            return Err((RefusalKind::EpochZero, r.region.id));
        }
        if write && r.blocks + u64::from(r.region.chunk) / 16 + 2 > MAX_KEY_BLOCKS {
            return Err((RefusalKind::Exhausted, r.region.id));
        }
        Ok(at)
    }

    /// Addresses of the words of a burst, grouped by chunk.
    fn segments(&self, region: usize, burst: &Burst) -> Vec<(u64, Vec<usize>)> {
        let r = &self.regions[region].region;
        let mut out: Vec<(u64, Vec<usize>)> = Vec::new();
        for i in 0..burst.beats() as u64 {
            let offset = (burst.start() + (i << burst.size)) - r.base;
            let (chunk, word) = (offset / u64::from(r.chunk), (offset % u64::from(r.chunk)) as usize / BEAT);
            match out.last_mut() {
                Some((c, words)) if *c == chunk => words.push(word),
                _ => out.push((chunk, vec![word])),
            }
        }
        out
    }

    pub fn read(&mut self, card: &mut Card, burst: &Burst) -> Vec<Beat> {
        const ERROR: Beat = Beat { data: [0; BEAT], resp: Resp::SlvErr };
        let mut out = Vec::with_capacity(burst.beats());
        if self.records.stopped {
            return vec![ERROR; burst.beats()];
        }
        let region = match self.check(burst, false) {
            Ok(region) => region,
            Err((kind, id)) => {
                self.refuse(kind, id, burst.addr);
                return vec![ERROR; burst.beats()];
            }
        };
        let mut told = false;
        for (chunk, words) in self.segments(region, burst) {
            match self.readable(card, region, chunk) {
                Ok(line) => out.extend(words.iter().map(|&w| {
                    let mut data = [0; BEAT];
                    data.copy_from_slice(&line[w * BEAT..(w + 1) * BEAT]);
                    Beat { data, resp: Resp::Okay }
                })),
                Err(kind) => {
                    if let Some(kind) = kind
                        && !told
                    {
                        let id = self.regions[region].region.id;
                        self.refuse(kind, id, burst.addr);
                        told = true;
                    }
                    out.extend(words.iter().map(|_| ERROR));
                }
            }
        }
        out
    }

    /// The bytes of a chunk, fetched and verified if it is not on chip. An error without a kind: the Shield has stopped.
    fn readable(&mut self, card: &mut Card, region: usize, chunk: u64) -> Result<&[u8], Option<RefusalKind>> {
        if self.records.stopped {
            return Err(None);
        }
        let r = &self.regions[region];
        if !r.lines.contains_key(&chunk) {
            if r.region.mode == Mode::Output && !r.written.is_written(chunk) {
                return Err(Some(RefusalKind::NotWritten));
            }
            let data = self.fetch(card, region, chunk).ok_or(None)?;
            self.take(card, region, chunk, Line { data, gather: None });
        }
        let line = self.regions[region].lines.get(&chunk).ok_or(None)?;
        Ok(&line.data)
    }

    fn fetch(&mut self, card: &mut Card, region: usize, chunk: u64) -> Option<Zeroizing<Vec<u8>>> {
        let r = &self.regions[region];
        let len = u64::from(r.region.chunk);
        let (addr, tag_addr) = (r.region.chunk_addr(chunk), r.region.tag_addr(chunk));
        match card.fault(addr, len) {
            Some(FaultKind::Bus) => {
                self.fault(FaultKind::Bus, region, chunk);
                return None;
            }
            Some(kind) => {
                self.memory_fault(card, kind);
                return None;
            }
            None => {}
        }
        if let Some(kind) = card.fault(tag_addr, TAG_LEN) {
            self.memory_fault(card, kind);
            return None;
        }
        let mut data = Zeroizing::new(vec![0; len as usize]);
        let mut tag = [0; 16];
        card.memory.read(addr, &mut data);
        card.memory.read(tag_addr, &mut tag);
        let good = r.cipher.as_ref().is_some_and(|c| c.open(r.epoch, chunk, &mut data, &tag));
        if !good {
            self.fault(FaultKind::Tag, region, chunk);
            return None;
        }
        Some(data)
    }

    /// Puts a line on chip; the oldest verified one of its class makes room, or else the oldest that is being written is sealed.
    fn take(&mut self, card: &mut Card, region: usize, chunk: u64, line: Line) {
        let class = class(&self.regions[region].region);
        let gather = line.gather.is_some();
        let gathering = |s: &Self, (r, c): &(usize, u64)| s.regions[*r].lines.get(c).is_some_and(|l| l.gather.is_some());
        if gather
            && self.order[class].iter().filter(|l| gathering(self, l)).count() + 2 >= self.room[class]
            && let Some((r, c)) = self.order[class].iter().find(|l| gathering(self, l)).copied()
        {
            self.seal(card, r, c);
        }
        if self.order[class].len() >= self.room[class]
            && let Some(at) = self.order[class].iter().position(|l| !gathering(self, l))
            && let Some((r, c)) = self.order[class].remove(at)
        {
            self.regions[r].lines.remove(&c);
        }
        self.order[class].push_back((region, chunk));
        self.regions[region].lines.insert(chunk, line);
    }

    pub fn write(&mut self, card: &mut Card, burst: &Burst, data: &[WriteBeat]) -> Resp {
        if self.records.stopped {
            return Resp::SlvErr;
        }
        let region = match self.check(burst, true) {
            Ok(region) => region,
            Err((kind, id)) => {
                self.refuse(kind, id, burst.addr);
                return Resp::SlvErr;
            }
        };
        let mut beats = data.iter();
        let mut resp = Resp::Okay;
        for (chunk, words) in self.segments(region, burst) {
            let r = &self.regions[region];
            let state = r.lines.get(&chunk).map(|l| l.gather.is_some());
            if state == Some(false) || (state.is_none() && r.written.is_written(chunk)) {
                if resp == Resp::Okay {
                    let id = r.region.id;
                    self.refuse(RefusalKind::SecondWrite, id, burst.addr);
                }
                resp = Resp::SlvErr;
                beats.by_ref().take(words.len()).for_each(drop);
                continue;
            }
            if state.is_none() {
                let len = r.region.chunk as usize;
                let line = Line { data: Zeroizing::new(vec![0; len]), gather: Some(vec![0; len / BEAT]) };
                self.take(card, region, chunk, line);
                if self.records.stopped {
                    return Resp::SlvErr;
                }
            }
            let Some(Line { data, gather: Some(valid) }) = self.regions[region].lines.get_mut(&chunk) else { return Resp::SlvErr };
            let mut full = false;
            for (w, beat) in words.iter().zip(beats.by_ref()) {
                for i in (0..BEAT).filter(|i| beat.strb >> i & 1 == 1) {
                    data[w * BEAT + i] = beat.data[i];
                }
                valid[*w] |= beat.strb;
                full = valid.iter().all(|&v| v == u64::MAX);
            }
            if full {
                self.seal(card, region, chunk);
                if self.records.stopped {
                    return Resp::SlvErr;
                }
            }
        }
        resp
    }

    /// Seals a line that is being written: marks the chunk first, then writes data and tag.
    fn seal(&mut self, card: &mut Card, region: usize, chunk: u64) {
        if self.records.stopped {
            return;
        }
        let r = &mut self.regions[region];
        let Some(line) = r.lines.get_mut(&chunk) else { return };
        line.gather = None;
        if !r.written.set(chunk) {
            // A second seal under one version: the map is there to make this impossible.
            self.fault(FaultKind::Internal, region, chunk);
            return;
        }
        let Some(cipher) = &r.cipher else { return };
        r.blocks += u64::from(r.region.chunk) / 16 + 1;
        let mut data = line.data.to_vec();
        let tag = cipher.seal(r.epoch, chunk, &mut data);
        let (addr, tag_addr) = (r.region.chunk_addr(chunk), r.region.tag_addr(chunk));
        if let Some(kind) = card.fault(addr, data.len() as u64).or_else(|| card.fault(tag_addr, TAG_LEN)) {
            self.memory_fault(card, kind);
            return;
        }
        card.memory.write(addr, &data);
        card.memory.write(tag_addr, &tag);
    }

    /// Seals all that is being written. False: a fault happened.
    pub fn flush(&mut self, card: &mut Card) -> bool {
        let dirty: Vec<(usize, u64)> = self
            .regions
            .iter()
            .enumerate()
            .flat_map(|(id, r)| r.lines.iter().filter(|(_, l)| l.gather.is_some()).map(move |(&chunk, _)| (id, chunk)))
            .collect();
        for (region, chunk) in dirty {
            self.seal(card, region, chunk);
        }
        !self.records.stopped
    }

    /// Flush, then drop all lines.
    pub fn invalidate(&mut self, card: &mut Card) -> bool {
        let good = self.flush(card);
        if good {
            self.forget_clean();
        }
        good
    }

    /// Whether the region has an epoch and `epoch` is above it.
    pub fn may_raise(&self, id: u8, epoch: u64) -> bool {
        self.regions
            .get(usize::from(id))
            .is_some_and(|r| r.region.mode.has_epoch() && epoch > r.epoch && epoch <= shef_proto::config::MAX_EPOCH)
    }

    /// Flush, then a new epoch for one region: its map is cleared and its lines are dropped.
    pub fn raise_epoch(&mut self, card: &mut Card, id: u8, epoch: u64) -> bool {
        if !self.flush(card) {
            return false;
        }
        let at = usize::from(id);
        let r = &mut self.regions[at];
        r.epoch = epoch;
        r.lines.clear();
        r.written = WrittenMap::empty(r.written.chunks());
        self.order.iter_mut().for_each(|o| o.retain(|(i, _)| *i != at));
        true
    }
}
