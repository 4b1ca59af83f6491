//! The engine sets: chunks between the accelerator and card memory, verified before release and
//! sealed before they leave.

mod faults;
mod lines;
mod tree;
mod versions;

use shef_proto::channel::{FaultKind, RefusalKind, RegionStatement};
use shef_proto::config::{Config, MAX_EPOCH, MAX_KEY_BLOCKS, Mode, OnFault, Region, TAG_LEN};
use shef_proto::load::{FirstEpoch, SessionKeys};
use shef_seal::ChunkCipher;
use zeroize::Zeroizing;

use crate::bus::{BEAT, Beat, Burst, Resp, WriteBeat};
use faults::Fault;
pub(crate) use faults::{Card, Records};
pub use faults::{MemoryFault, WriteTap};
use lines::{Line, Lines};
use tree::Trees;
use versions::Versions;

/// Statistics of an engine set, in the order of the RTL's `cnt_sel_i`.
pub type Counters = [u64; 16];

/// Indices of the [`Counters`] that have a meaning without a clock; the others stay 0.
mod count {
    pub const READ_HIT: usize = 0;
    pub const READ_MISS: usize = 1;
    pub const WRITE_HIT: usize = 2;
    pub const WRITE_MISS: usize = 3;
    pub const BEATS_READ: usize = 4;
    pub const BEATS_WRITTEN: usize = 5;
    pub const FETCHED: usize = 6;
    pub const SEALED: usize = 7;
}

/// Why a chunk is not served.
enum Denied {
    /// The Shield has stopped, the region is frozen, or a fault happened just now: it is already
    /// recorded.
    Fault,
    Refused(RefusalKind),
}

/// A fault happened and is recorded.
struct Faulted;

impl From<Faulted> for Denied {
    fn from(_: Faulted) -> Self {
        Self::Fault
    }
}

struct RegionState {
    region: Region,
    cipher: Option<ChunkCipher>,
    versions: Versions,
    blocks: u64,
    /// A fault under `on_fault = "region"`.
    frozen: bool,
}

impl RegionState {
    fn new(region: &Region) -> Self {
        Self {
            region: region.clone(),
            cipher: None,
            versions: Versions::new(region),
            blocks: 0,
            frozen: false,
        }
    }
}

pub(crate) struct Engine {
    config: Config,
    regions: Vec<RegionState>,
    lines: Lines,
    /// One for each engine set.
    trees: Vec<Trees>,
    counters: Vec<Counters>,
    enabled: bool,
    pub records: Records,
}

impl Engine {
    pub fn new(config: &Config) -> Self {
        let of_set = |set: usize| {
            config.regions().iter().enumerate().filter(move |(_, r)| usize::from(r.set) == set)
        };
        Self {
            regions: config.regions().iter().map(RegionState::new).collect(),
            lines: Lines::new(config),
            trees: (0..config.sets().len()).map(|set| Trees::new(of_set(set))).collect(),
            counters: vec![[0; 16]; config.sets().len()],
            enabled: false,
            records: Records::default(),
            config: config.clone(),
        }
    }

    /// Takes the keys and first epochs of a session.
    pub fn enable(&mut self, keys: &SessionKeys, epochs: &[FirstEpoch]) {
        for r in &mut self.regions {
            r.cipher = keys.data_key(r.region.id).map(|k| ChunkCipher::new(r.region.id, k));
        }
        self.trees.iter_mut().for_each(|t| t.enable(keys));
        for e in epochs {
            self.regions[usize::from(e.region)].versions.set_epoch(e.epoch);
        }
        self.enabled = true;
    }

    /// Zeroises keys, lines, versions and statistics; the records stay.
    pub fn wipe(&mut self) {
        let records = self.records;
        *self = Self { records, ..Self::new(&self.config) };
    }

    /// Drops verified and sealed lines and nodes: the next access fetches them again.
    pub fn forget_clean(&mut self) {
        self.lines.retain(|_, l| l.dirty());
        self.trees.iter_mut().for_each(Trees::forget_clean);
    }

    /// Statistics of an engine set; counters that need a clock, and those of prefetch, read 0.
    pub fn counters(&self, set: usize) -> Option<&Counters> {
        self.counters.get(set)
    }

    /// Bit i: region i is frozen under `on_fault = "region"`.
    pub fn region_faults(&self) -> u16 {
        self.regions.iter().filter(|r| r.frozen).fold(0, |n, r| n | 1 << r.region.id)
    }

    pub fn region_statement(&self, id: u8) -> Option<RegionStatement> {
        let r = self.regions.get(usize::from(id))?;
        Some(RegionStatement {
            mode: r.region.mode,
            chunk_log2: r.region.chunk_log2(),
            frozen: r.frozen,
            written: r.versions.written().map_or(0, |map| map.count() as u32),
            epoch: r.versions.epoch(),
            chunks: r.region.chunks(),
        })
    }

    pub fn map_page(&self, id: u8, page: u32) -> Option<[u8; 48]> {
        self.regions.get(usize::from(id))?.versions.written()?.page(u64::from(page))
    }

    /// Records a fault and freezes the region or stops the Shield.
    fn fault(&mut self, card: &mut Card, fault: Fault) -> Faulted {
        self.records.fault(fault);
        card.dead |= fault.kind == FaultKind::Timeout;
        match self
            .regions
            .iter()
            .position(|r| r.region.id == fault.region)
            .filter(|_| self.config.on_fault() == OnFault::Region)
        {
            Some(at) => {
                self.regions[at].frozen = true;
                self.lines.retain(|(region, _), _| region != at);
                self.trees.iter_mut().for_each(|t| t.freeze(at));
            }
            None => self.records.stopped = true,
        }
        Faulted
    }

    fn halted(&self, region: usize) -> bool {
        self.records.stopped || self.regions[region].frozen
    }

    fn count(&mut self, region: usize, what: usize, by: u64) {
        self.counters[usize::from(self.regions[region].region.set)][what] += by;
    }

    /// The region of a burst, or the reason to refuse the burst as a whole.
    fn check(&mut self, burst: &Burst, write: bool) -> Result<usize, Denied> {
        if self.records.stopped {
            return Err(Denied::Fault);
        }
        self.region_of(burst, write).map_err(|(kind, region)| match kind {
            RefusalKind::None => Denied::Fault,
            _ => {
                self.records.refuse(kind, region, burst.addr);
                Denied::Refused(kind)
            }
        })
    }

    /// Kind `None`: the region is frozen.
    fn region_of(&self, burst: &Burst, write: bool) -> Result<usize, (RefusalKind, u8)> {
        if !self.enabled {
            return Err((RefusalKind::NotKeyed, 0xff));
        }
        let span = (burst.beats() as u64) << burst.size.min(7);
        if !burst.incr || burst.size > 6 || burst.start() % 4096 + span > 4096 {
            return Err((RefusalKind::Burst, 0xff));
        }
        let at = self
            .regions
            .iter()
            .position(|r| r.region.contains(burst.addr, 1))
            .ok_or((RefusalKind::Range, 0xff))?;
        let r = &self.regions[at];
        let id = r.region.id;
        if r.frozen {
            return Err((RefusalKind::None, id));
        }
        if write && r.region.mode == Mode::Input {
            return Err((RefusalKind::ReadOnly, id));
        }
        if r.region.mode.has_epoch() && r.versions.epoch() == 0 {
            return Err((RefusalKind::EpochZero, id));
        }
        if write
            && r.region.mode.has_tags()
            && r.blocks + u64::from(r.region.chunk) / 16 + 2 > MAX_KEY_BLOCKS
        {
            return Err((RefusalKind::Exhausted, id));
        }
        Ok(at)
    }

    /// Addresses of the words of a burst, grouped by chunk.
    fn segments(&self, region: usize, burst: &Burst) -> Vec<(u64, Vec<usize>)> {
        let r = &self.regions[region].region;
        let mut out: Vec<(u64, Vec<usize>)> = Vec::new();
        for i in 0..burst.beats() as u64 {
            let offset = (burst.start() + (i << burst.size)) - r.base;
            let (chunk, word) =
                (offset / u64::from(r.chunk), (offset % u64::from(r.chunk)) as usize / BEAT);
            match out.last_mut() {
                Some((c, words)) if *c == chunk => words.push(word),
                _ => out.push((chunk, vec![word])),
            }
        }
        out
    }

    pub fn read(&mut self, card: &mut Card, burst: &Burst) -> Vec<Beat> {
        const ERROR: Beat = Beat { data: [0; BEAT], resp: Resp::SlvErr };
        let Ok(region) = self.check(burst, false) else { return vec![ERROR; burst.beats()] };
        let mut out = Vec::with_capacity(burst.beats());
        let mut told = false;
        for (chunk, words) in self.segments(region, burst) {
            match self.readable(card, region, chunk) {
                Ok(line) => {
                    out.extend(words.iter().map(|&w| {
                        let mut data = [0; BEAT];
                        data.copy_from_slice(&line[w * BEAT..(w + 1) * BEAT]);
                        Beat { data, resp: Resp::Okay }
                    }));
                    self.count(region, count::BEATS_READ, words.len() as u64);
                }
                Err(denied) => {
                    if let Denied::Refused(kind) = denied
                        && !told
                    {
                        self.records.refuse(kind, self.regions[region].region.id, burst.addr);
                        told = true;
                    }
                    out.extend(words.iter().map(|_| ERROR));
                }
            }
        }
        out
    }

    /// The bytes of a chunk, fetched and verified if they are not all on chip.
    fn readable(&mut self, card: &mut Card, region: usize, chunk: u64) -> Result<&[u8], Denied> {
        if self.halted(region) {
            return Err(Denied::Fault);
        }
        let key = (region, chunk);
        if self.lines.get(key).is_some() {
            self.count(region, count::READ_HIT, 1);
            self.complete(card, region, chunk)?;
        } else {
            if self.regions[region].versions.written().is_some_and(|map| !map.is_written(chunk)) {
                return Err(Denied::Refused(RefusalKind::NotWritten));
            }
            self.count(region, count::READ_MISS, 1);
            let version = self.version(card, region, chunk)?;
            let data = self.below(card, region, chunk, version)?;
            self.lines.put(key, Line::clean(data));
        }
        self.lines.get(key).map(|l| &l.data[..]).ok_or(Denied::Fault)
    }

    /// The version under which memory holds a chunk; 0: never sealed.
    fn version(&mut self, card: &mut Card, region: usize, chunk: u64) -> Result<u64, Faulted> {
        let r = &self.regions[region];
        match &r.versions {
            Versions::Epoch(epoch) | Versions::Once(epoch, _) => Ok(*epoch),
            Versions::Counted(counters, _) => Ok(counters.get(&chunk).copied().unwrap_or(0)),
            Versions::Tree => {
                self.of_tree(card, region, |trees, card| trees.version(card, region, chunk))
            }
            Versions::Without => Ok(0),
        }
    }

    /// Queries the trees of a region's set. An eviction from their cache may fail for another
    /// region, which need not stop this one.
    fn of_tree(
        &mut self,
        card: &mut Card,
        region: usize,
        ask: impl Fn(&mut Trees, &mut Card) -> Result<u64, Fault>,
    ) -> Result<u64, Faulted> {
        let set = usize::from(self.regions[region].region.set);
        loop {
            match ask(&mut self.trees[set], card) {
                Ok(version) => return Ok(version),
                Err(fault) => self.fault(card, fault),
            };
            if self.halted(region) {
                return Err(Faulted);
            }
        }
    }

    /// Allocates a new version for sealing a chunk. No version is used twice.
    fn raise(&mut self, card: &mut Card, region: usize, chunk: u64) -> Result<u64, Faulted> {
        let r = &mut self.regions[region];
        // Neither the accelerator nor memory can cause this: such writes are refused earlier.
        let internal = Fault {
            kind: FaultKind::Internal,
            region: r.region.id,
            chunk,
            version: r.versions.epoch(),
        };
        match &mut r.versions {
            Versions::Once(epoch, map) => {
                let epoch = *epoch;
                if map.set(chunk) { Ok(epoch) } else { Err(self.fault(card, internal)) }
            }
            Versions::Counted(counters, limit) => {
                let counter = counters.entry(chunk).or_insert(0);
                if *counter >= *limit {
                    let version = *counter;
                    return Err(self.fault(card, Fault { version, ..internal }));
                }
                *counter += 1;
                Ok(*counter)
            }
            Versions::Tree => {
                self.of_tree(card, region, |trees, card| trees.raise(card, region, chunk))
            }
            Versions::Without => Ok(0),
            Versions::Epoch(_) => Err(self.fault(card, internal)),
        }
    }

    /// The content of a chunk below the lines: memory, verified, or zeros if the chunk was never
    /// sealed.
    fn below(
        &mut self,
        card: &mut Card,
        region: usize,
        chunk: u64,
        version: u64,
    ) -> Result<Zeroizing<Vec<u8>>, Faulted> {
        let r = &self.regions[region].region;
        let (mode, len) = (r.mode, u64::from(r.chunk));
        let (id, addr, tag_addr) = (r.id, r.chunk_addr(chunk), r.tag_addr(chunk));
        let mut data = Zeroizing::new(vec![0; len as usize]);
        if version == 0 && mode.has_tags() {
            return Ok(data);
        }
        let here = |kind| Fault { kind, region: id, chunk, version };
        if let Err(kind) = card.access(addr, len) {
            return Err(self.fault(
                card,
                if kind == FaultKind::Bus { here(kind) } else { Fault::memory(kind) },
            ));
        }
        card.memory.read(addr, &mut data);
        if mode.has_tags() {
            if let Err(kind) = card.access(tag_addr, TAG_LEN) {
                return Err(self.fault(card, Fault::memory(kind)));
            }
            let mut tag = [0; TAG_LEN as usize];
            card.memory.read(tag_addr, &mut tag);
            if !self.regions[region]
                .cipher
                .as_ref()
                .is_some_and(|c| c.open(version, chunk, &mut data, &tag))
            {
                return Err(self.fault(card, here(FaultKind::Tag)));
            }
        }
        self.count(region, count::FETCHED, 1);
        Ok(data)
    }

    /// Makes a line whole: unwritten bytes come from below. Gaps of an `output` chunk are zeros
    /// already.
    fn complete(&mut self, card: &mut Card, region: usize, chunk: u64) -> Result<(), Faulted> {
        let key = (region, chunk);
        if self.regions[region].region.mode == Mode::Output
            || self.lines.get(key).is_none_or(|l| l.whole)
        {
            return Ok(());
        }
        let version = self.version(card, region, chunk)?;
        let below = self.below(card, region, chunk, version)?;
        if let Some(line) = self.lines.get_mut(key) {
            line.fill(&below);
        }
        Ok(())
    }

    pub fn write(&mut self, card: &mut Card, burst: &Burst, data: &[WriteBeat]) -> Resp {
        let Ok(region) = self.check(burst, true) else { return Resp::SlvErr };
        let mut beats = data.iter();
        let mut resp = Resp::Okay;
        let mut told = false;
        for (chunk, words) in self.segments(region, burst) {
            let beats = beats.by_ref().take(words.len()).collect::<Vec<_>>();
            match self.writable(card, region, chunk) {
                Ok(()) => {
                    self.count(region, count::BEATS_WRITTEN, beats.len() as u64);
                    let Some(line) = self.lines.get_mut((region, chunk)) else {
                        return Resp::SlvErr;
                    };
                    let all =
                        words.iter().zip(beats).fold(false, |_, (w, beat)| line.write(*w, beat));
                    if all && self.seal(card, region, chunk).is_err() {
                        return Resp::SlvErr;
                    }
                }
                Err(denied) => {
                    if let Denied::Refused(kind) = denied
                        && !told
                    {
                        self.records.refuse(kind, self.regions[region].region.id, burst.addr);
                        told = true;
                    }
                    resp = Resp::SlvErr;
                }
            }
        }
        resp
    }

    /// Makes a line for this chunk ready for writes.
    fn writable(&mut self, card: &mut Card, region: usize, chunk: u64) -> Result<(), Denied> {
        if self.halted(region) {
            return Err(Denied::Fault);
        }
        let key = (region, chunk);
        let dirty = self.lines.get(key).map(Line::dirty);
        if dirty == Some(true) {
            self.count(region, count::WRITE_HIT, 1);
            return Ok(());
        }
        let r = &self.regions[region];
        let (mode, len) = (r.region.mode, r.region.chunk as usize);
        if mode == Mode::Output {
            if dirty.is_some() || r.versions.written().is_none_or(|map| map.is_written(chunk)) {
                return Err(Denied::Refused(RefusalKind::SecondWrite));
            }
        } else if mode != Mode::Bypass
            && self.version(card, region, chunk)? >= self.regions[region].versions.limit()
        {
            return Err(Denied::Refused(RefusalKind::Exhausted));
        }
        if let Some((r, c)) = self.lines.to_seal(region)
            && self.seal(card, r, c).is_err()
            && self.halted(region)
        {
            return Err(Denied::Fault);
        }
        if dirty.is_none() {
            self.count(region, count::WRITE_MISS, 1);
            self.lines.put(key, Line::gather(len));
        } else {
            self.count(region, count::WRITE_HIT, 1);
        }
        Ok(())
    }

    /// Seals a dirty line: makes it whole, takes a new version, then writes data and tag.
    fn seal(&mut self, card: &mut Card, region: usize, chunk: u64) -> Result<(), Faulted> {
        if self.halted(region) {
            return Err(Faulted);
        }
        let mode = self.regions[region].region.mode;
        // Bypass memory takes single bytes: nothing vouches for it.
        if mode != Mode::Bypass {
            self.complete(card, region, chunk)?;
        }
        let version = self.raise(card, region, chunk)?;
        let r = &mut self.regions[region];
        let Some(line) = self.lines.get_mut((region, chunk)) else { return Err(Faulted) };
        let Some(marks) = line.marks.take() else { return Ok(()) };
        let (addr, tag_addr) = (r.region.chunk_addr(chunk), r.region.tag_addr(chunk));
        let mut data = line.data.to_vec();
        let mut good = card.access(addr, data.len() as u64);
        if mode == Mode::Bypass {
            if good.is_ok() {
                card.write_marked(addr, &data, marks.into_iter());
            }
            if !line.whole {
                self.lines.retain(|key, _| key != (region, chunk));
            }
        } else {
            r.blocks += u64::from(r.region.chunk) / 16 + 1;
            let Some(cipher) = &r.cipher else { return Err(Faulted) };
            let tag = cipher.seal(version, chunk, &mut data);
            good = good.and_then(|()| card.access(tag_addr, TAG_LEN));
            if good.is_ok() {
                card.write_marked(addr, &data, marks.iter().map(|_| u64::MAX));
                card.write_part(tag_addr, &tag);
            }
        }
        self.count(region, count::SEALED, 1);
        good.map_err(|kind| self.fault(card, Fault::memory(kind)))
    }

    /// Seals all dirty lines, except in frozen regions. False: the Shield has stopped.
    pub fn flush(&mut self, card: &mut Card) -> bool {
        for (region, chunk) in self.lines.dirty() {
            if self.records.stopped {
                break;
            }
            // A failure here is recorded; under `on_fault = "region"` the other regions continue.
            let _recorded = self.seal(card, region, chunk);
        }
        !self.records.stopped
    }

    /// Flush, then drop all lines.
    pub fn invalidate(&mut self, card: &mut Card) -> bool {
        let good = self.flush(card);
        if good {
            self.lines.clear();
        }
        good
    }

    /// Whether the region has an epoch and `epoch` is above it.
    pub fn may_raise(&self, id: u8, epoch: u64) -> bool {
        self.regions.get(usize::from(id)).is_some_and(|r| {
            r.region.mode.has_epoch() && epoch > r.versions.epoch() && epoch <= MAX_EPOCH
        })
    }

    /// Flush, then a new epoch for one region: its map is cleared and its lines are dropped.
    pub fn raise_epoch(&mut self, card: &mut Card, id: u8, epoch: u64) -> bool {
        if !self.flush(card) {
            return false;
        }
        let at = usize::from(id);
        self.lines.retain(|(region, _), _| region != at);
        self.regions[at].versions.set_epoch(epoch);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shef_proto::config::Set;

    fn engine(mode: Mode, bits: Option<u8>) -> Engine {
        let region = Region {
            id: 0,
            name: "scratch".into(),
            mode,
            base: 0,
            size: 4096,
            chunk: 64,
            key_bits: 128,
            port: 0,
            set: 0,
            tag_base: 4096,
            node_base: (mode == Mode::Tree).then_some(8192),
            prefetch: 0,
            counter_bits: bits,
        };
        let mut e = Engine::new(
            &Config::new(OnFault::Shield, 1, vec![Set::default()], vec![region]).unwrap(),
        );
        e.enabled = true;
        e.regions[0].cipher =
            Some(ChunkCipher::new(0, &shef_proto::load::Key::new(&[1; 16]).unwrap()));
        e
    }

    /// A chunk is sealed under the largest version once; the next write is refused, whether its
    /// line is on chip or not.
    #[test]
    fn an_exhausted_counter_refuses_writes() {
        for bits in [36, 48] {
            let (mut e, mut card) = (engine(Mode::Counted, Some(bits)), Card::default());
            let limit = (1 << bits) - 1;
            e.regions[0].versions = Versions::Counted([(3, limit - 1)].into(), limit);
            let word = [WriteBeat { data: [9; BEAT], strb: u64::MAX }];
            let burst = Burst::whole(3 * 64, 1);
            assert_eq!(e.write(&mut card, &burst, &word), Resp::Okay);
            assert!(e.flush(&mut card));
            assert_eq!(e.write(&mut card, &burst, &word), Resp::SlvErr);
            e.forget_clean();
            assert_eq!(e.write(&mut card, &burst, &word), Resp::SlvErr);
            assert_eq!(e.read(&mut card, &burst)[0], Beat { data: [9; BEAT], resp: Resp::Okay });
            let r = e.records;
            assert_eq!(
                (r.refusals, r.faults, r.refusal.map(|r| (r.kind, r.addr))),
                (2, 0, Some((RefusalKind::Exhausted, 192)))
            );
            assert_eq!(e.write(&mut card, &Burst::whole(4 * 64, 1), &word), Resp::Okay);
        }
    }
}
