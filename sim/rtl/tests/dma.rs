//! The DMA engine in RTL works under the real driver of the rings, with a host memory that checks
//! the rules of AWS F2's shell on every burst.

use std::time::Duration;

use shef_device::ring::{
    CHAIN, Completion, Descriptor, MAX_BYTES, OP_NOTHING, OP_TO_CARD, OP_TO_HOST, QUEUES, Queue,
    Status, reg,
};
use shef_rtl::agent::Rng;
use shef_rtl::{AxiMemoryConfig, Hostile};
use shef_tb::dma::{CARD_BYTES, DmaBench, Engine, HOST, RingMemory, TIMEOUT, both_ways, inside};

/// Far beyond the duration of a test.
const LIMIT: Duration = Duration::from_secs(60);

fn to_card(tag: u32, host: u64, card: u64, bytes: u32) -> Descriptor {
    Descriptor { op: OP_TO_CARD, flags: 0, tag, host, card, bytes }
}

fn to_host(tag: u32, host: u64, card: u64, bytes: u32) -> Descriptor {
    Descriptor { op: OP_TO_HOST, ..to_card(tag, host, card, bytes) }
}

fn register(queue: u32, register: u32) -> u32 {
    reg::BASE + queue * reg::STRIDE + register
}

fn one(bench: &mut DmaBench, q: &mut Queue<RingMemory>, d: Descriptor) -> Completion {
    assert!(q.push(&d).unwrap());
    q.submit(bench).unwrap();
    q.wait(bench, LIMIT).unwrap().expect("a completion")
}

/// Bytes of one side, and which of them are known.
#[derive(Clone)]
struct Image {
    base: u64,
    bytes: Vec<u8>,
    known: Vec<bool>,
}

impl Image {
    fn random(base: u64, len: usize, rng: &mut Rng) -> Self {
        let mut bytes = vec![0; len];
        rng.fill(&mut bytes);
        Self { base, bytes, known: vec![true; len] }
    }

    fn at(&self, addr: u64, len: u32) -> std::ops::Range<usize> {
        let at = (addr - self.base) as usize;
        at..at + len as usize
    }

    fn forget(&mut self, addr: u64, len: u32) {
        let range = self.at(addr, len);
        let end = range.end.min(self.known.len());
        self.known[range.start..end].fill(false);
    }

    fn copy(&mut self, to: u64, from: &Self, at: u64, len: u32) {
        let (to, from_range) = (self.at(to, len), from.at(at, len));
        self.bytes[to.clone()].copy_from_slice(&from.bytes[from_range.clone()]);
        self.known[to].copy_from_slice(&from.known[from_range]);
    }

    fn check(&self, seen: &[u8], what: &str) {
        for (i, (byte, known)) in self.bytes.iter().zip(&self.known).enumerate() {
            assert!(
                !known || *byte == seen[i],
                "{what}, byte {:#x}: {byte:#04x} expected, {:#04x} found",
                self.base + i as u64,
                seen[i]
            );
        }
    }
}

/// Effects of a queue's descriptors, in order.
struct Oracle {
    entries: u32,
    host: Image,
    card: Image,
    /// Parts of host memory that are not readable, not writable, or poisoned.
    unreadable: Vec<std::ops::Range<u64>>,
    unwritable: Vec<std::ops::Range<u64>>,
    poisoned: Vec<std::ops::Range<u64>>,
    chain: (u16, u32, Option<(u32, Status)>),
    /// The chain failed at a write: later writes to the host may have been in flight.
    late: bool,
}

impl Oracle {
    fn transfer(&mut self, d: &Descriptor) -> Result<u32, Status> {
        if !(OP_TO_CARD..=OP_NOTHING).contains(&d.op) || d.flags > CHAIN || d.bytes > MAX_BYTES {
            return Err(Status::Malformed);
        }
        if d.op == OP_NOTHING {
            return Ok(0);
        }
        if d.card.checked_add(d.bytes.into()).is_none_or(|end| end > CARD_BYTES) {
            return Err(Status::Card);
        }
        if d.bytes == 0 {
            return Ok(0);
        }
        let mut lines = (d.host & !63..d.host + u64::from(d.bytes)).step_by(64);
        if d.op == OP_TO_CARD {
            let bad = lines.find_map(|at| match at {
                _ if inside(&self.unreadable, at) => Some(Status::Host),
                _ if inside(&self.poisoned, at) => Some(Status::Poisoned),
                _ => None,
            });
            if let Some(status) = bad {
                self.card.forget(d.card, d.bytes);
                return Err(status);
            }
            self.card.copy(d.card, &self.host, d.host, d.bytes);
        } else if lines.any(|at| inside(&self.unwritable, at)) {
            self.late = true;
            self.host.forget(d.host, d.bytes);
            return Err(Status::Host);
        } else {
            self.host.copy(d.host, &self.card, d.card, d.bytes);
        }
        Ok(d.bytes)
    }

    fn run(&mut self, d: &Descriptor) -> Option<Completion> {
        self.chain.0 += 1;
        if self.chain.2.is_none() {
            match self.transfer(d) {
                Ok(n) => self.chain.1 += n,
                Err(status) => self.chain.2 = Some((d.tag, status)),
            }
        } else if self.late && d.op == OP_TO_HOST {
            self.host.forget(d.host, d.bytes);
        }
        let malformed =
            !(OP_TO_CARD..=OP_NOTHING).contains(&d.op) || d.flags > CHAIN || d.bytes > MAX_BYTES;
        if !malformed && d.flags == CHAIN && u32::from(self.chain.0) < self.entries {
            return None;
        }
        self.late = false;
        let (retired, bytes, failed) = std::mem::take(&mut self.chain);
        let (tag, status) = failed.unwrap_or((d.tag, Status::Done));
        Some(Completion { tag, status, retired, bytes })
    }
}

/// Bytes of host and card memory reserved for each queue of the random test.
const AREA: u64 = 128 << 10;

fn random_descriptor(rng: &mut Rng, index: u64, tag: u32, failures: bool) -> Descriptor {
    let bytes = match rng.below(8) {
        0 => 0,
        1 | 2 => 1 + rng.below(200),
        3 => 64 * (1 + rng.below(64)),
        4 => 4096,
        5 | 6 => 1 + rng.below(6000),
        _ => 1 + rng.below(30_000),
    };
    let align = if rng.one_in(2) { 64 } else { 1 };
    let place = |rng: &mut Rng| rng.below((AREA - bytes) / align + 1) * align;
    let (host, card) = (0x10_0000 * (index + 1) + place(rng), AREA * index + place(rng));
    let op = if rng.one_in(2) { OP_TO_CARD } else { OP_TO_HOST };
    let d = Descriptor {
        op,
        flags: u8::from(rng.one_in(3)) * CHAIN,
        tag,
        host,
        card,
        bytes: bytes as u32,
    };
    match rng.below(if failures { 24 } else { 1 << 40 }) {
        0 => Descriptor { op: rng.next_u64() as u8 & 0xfc, ..d },
        1 => Descriptor { flags: 2 << rng.below(7), ..d },
        2 => Descriptor { op: OP_NOTHING, card: u64::MAX, ..d },
        3 => Descriptor { card: CARD_BYTES - bytes + 1, ..d },
        4 => Descriptor { card: u64::MAX - 100, bytes: 200, ..d },
        5 => Descriptor { bytes: MAX_BYTES + 1, ..d },
        _ => d,
    }
}

/// A queue, the effects of its descriptors, and the expected completions.
struct Driven {
    queue: Queue<RingMemory>,
    oracle: Oracle,
    descriptors: Vec<Descriptor>,
    expected: Vec<Completion>,
}

/// All queues at once, each with its part of both memories; checks every completion and every byte.
fn random_rings(seed: u64, failures: bool) {
    let mut rng = Rng::new(seed);
    let timing = |rng: &mut Rng| AxiMemoryConfig {
        read_latency: 1 + rng.below(200),
        write_latency: 1 + rng.below(100),
        ..AxiMemoryConfig::seeded(rng.next_u64())
    };
    let mut bench = DmaBench::new(timing(&mut rng), timing(&mut rng));
    let mut queues: Vec<Driven> = Vec::new();
    for index in 0..u64::from(QUEUES) {
        let entries = 1 << (1 + rng.below(7));
        let base = 0x10_0000 * (index + 1);
        let host = Image::random(base, AREA as usize, &mut rng);
        let card = Image::random(AREA * index, AREA as usize, &mut rng);
        bench.host.0.borrow_mut().bytes.write(base, &host.bytes);
        bench.mem.memory.write(card.base, &card.bytes);
        let page = |n: u64| base + 4096 * n..base + 4096 * (n + 1);
        let line = |at: u64| base + at..base + at + 64;
        let (unreadable, unwritable, poisoned) = if failures {
            (vec![page(3), page(9)], vec![page(3), page(17)], vec![line(0x6040)])
        } else {
            Default::default()
        };
        for n in 0..AREA / 4096 {
            let mut host = bench.host.0.borrow_mut();
            if !unreadable.contains(&page(n)) {
                host.readable.push(page(n));
            }
            if !unwritable.contains(&page(n)) {
                host.writable.push(page(n));
            }
        }
        bench.host.0.borrow_mut().poisoned.extend(poisoned.clone());
        let mut oracle = Oracle {
            entries,
            host,
            card,
            unreadable,
            unwritable,
            poisoned,
            chain: Default::default(),
            late: false,
        };
        let mut descriptors: Vec<_> =
            (0..60).map(|tag| random_descriptor(&mut rng, index, tag, failures)).collect();
        descriptors.push(Descriptor { op: OP_NOTHING, ..to_card(60, 0, 0, 0) });
        let expected = descriptors.iter().filter_map(|d| oracle.run(d)).collect();
        let queue = bench.queue(
            index as u32,
            entries,
            0x8000_0000 + 0x10_0000 * index,
            rng.below(4) as u16,
        );
        queues.push(Driven { queue, oracle, descriptors, expected });
    }
    let mut next = [0; QUEUES as usize];
    let mut taken = [0; QUEUES as usize];
    while queues.iter().zip(taken).any(|(q, taken)| taken < q.expected.len()) {
        for (index, Driven { queue, descriptors, expected, .. }) in queues.iter_mut().enumerate() {
            for _ in 0..rng.below(12) {
                if next[index] < descriptors.len() && queue.push(&descriptors[next[index]]).unwrap()
                {
                    next[index] += 1;
                }
            }
            // A ring that contains only the head of a chain makes no progress without the next
            // descriptor.
            if rng.one_in(2) || queue.room() == 0 || next[index] == descriptors.len() {
                queue.submit(&mut bench).unwrap();
            }
            while let Some(completion) = queue.poll().unwrap() {
                assert_eq!(
                    completion, expected[taken[index]],
                    "seed {seed}, queue {index}, completion {}",
                    taken[index]
                );
                taken[index] += 1;
            }
        }
        let n = rng.below(400);
        bench.step(n);
        assert!(
            bench.sim.cycles() < 3_000_000,
            "seed {seed}: {taken:?} completions of {:?}",
            queues.iter().map(|q| q.expected.len()).collect::<Vec<_>>()
        );
    }
    for (index, Driven { queue, oracle, .. }) in queues.into_iter().enumerate() {
        let mut seen = vec![0; AREA as usize];
        bench.mem.memory.read(oracle.card.base, &mut seen);
        oracle.card.check(&seen, &format!("seed {seed}, card memory of queue {index}"));
        bench.host.0.borrow().bytes.read(oracle.host.base, &mut seen);
        oracle.host.check(&seen, &format!("seed {seed}, host memory of queue {index}"));
        queue.drain(&mut bench, LIMIT, |c| panic!("{c:?} is one too many")).unwrap();
    }
    bench.check();
    assert!(bench.mem.idle() && bench.shell().idle());
}

#[test]
fn random_rings_move_every_byte() {
    (0..12).for_each(|seed| random_rings(seed, false));
}

#[test]
fn random_rings_with_failures_end_each_descriptor_as_it_should() {
    (100..120).for_each(|seed| random_rings(seed, true));
}

/// A bench with host memory mapped from 1 MiB, containing these bytes, and memory without stalls.
fn plain(bytes: &[u8]) -> DmaBench {
    let timing = AxiMemoryConfig::bench(60, 40);
    let bench = DmaBench::new(timing.clone(), timing);
    let mut host = bench.host.0.borrow_mut();
    host.map(HOST..HOST + (4 << 20));
    host.bytes.write(HOST, bytes);
    drop(host);
    bench
}

const RING: u64 = 1 << 31;

fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Rng::new(seed).fill(&mut bytes);
    bytes
}

fn card_bytes(bench: &DmaBench, at: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bench.mem.memory.read(at, &mut bytes);
    bytes
}

#[test]
fn both_directions_at_once_at_the_speed_of_the_bus() {
    const HALF: usize = CARD_BYTES as usize / 2;
    for (piece, count, host_latency) in
        [(4096, 256, 250), (64 << 10, 16, 250), (HALF as u64, 2, 600), (4096 - 64, 256, 250)]
    {
        let mut bench = DmaBench::new(
            AxiMemoryConfig::bench(host_latency, 100),
            AxiMemoryConfig::bench(60, 40),
        );
        let data = pattern(2 * HALF, 1);
        bench.host.0.borrow_mut().bytes.write(HOST, &data[..HALF]);
        bench.mem.memory.write(HALF as u64, &data[HALF..]);
        let cycles = both_ways(&mut bench, piece, count);
        let bytes = piece * count;
        println!(
            "{count} x {piece} bytes, host latency {host_latency}: {cycles} cycles, {:.1} B/cycle each way",
            bytes as f64 / cycles as f64
        );
        // In such a short run, the time before the first beat and after the last one matters.
        assert!(
            bytes as f64 / (cycles - 2 * host_latency - 300) as f64 >= 60.0,
            "{cycles} cycles for {bytes} bytes each way"
        );
        if bytes.is_multiple_of(HALF as u64) {
            assert!(card_bytes(&bench, 0, 2 * HALF) == data);
            let mut seen = vec![0; HALF];
            bench.host.0.borrow().bytes.read(HOST + HALF as u64, &mut seen);
            assert!(seen == data[HALF..]);
        }
        bench.check();
    }
}

#[test]
fn each_descriptor_fails_by_itself() {
    let mut bench = plain(&pattern(4096, 2));
    bench.host.0.borrow_mut().poisoned.push(HOST + 0x2040..HOST + 0x2080);
    let mut q = bench.queue(1, 4, RING, 1);
    let end = HOST + (4 << 20);
    let cases = [
        (to_card(1, HOST, 0, 64), Status::Done, 64),
        (to_card(2, HOST - 64, 0, 128), Status::Host, 0),
        (to_host(3, end - 10, 0, 64), Status::Host, 0),
        (to_card(4, end - 10, 0, 64), Status::Host, 0),
        (to_card(5, HOST, CARD_BYTES - 10, 64), Status::Card, 0),
        (to_host(6, HOST, u64::MAX, 64), Status::Card, 0),
        (to_host(7, HOST, CARD_BYTES + 1, 0), Status::Card, 0),
        (to_host(8, HOST, CARD_BYTES, 0), Status::Done, 0),
        (Descriptor { op: 9, ..to_card(9, HOST, 0, 64) }, Status::Malformed, 0),
        (Descriptor { op: 0, ..to_card(10, HOST, 0, 64) }, Status::Malformed, 0),
        (Descriptor { flags: 0x80, ..to_card(11, HOST, 0, 64) }, Status::Malformed, 0),
        (to_card(12, HOST, 0, MAX_BYTES + 1), Status::Malformed, 0),
        (Descriptor { op: OP_NOTHING, ..to_card(13, 0, u64::MAX, MAX_BYTES) }, Status::Done, 0),
        (to_card(14, HOST + 0x2000, 0, 0x40), Status::Done, 0x40),
        (to_card(15, HOST + 0x2000, 0, 0x41), Status::Poisoned, 0),
        (to_card(16, u64::MAX - 63, 0, 0x80), Status::Host, 0),
        (to_card(17, HOST - 64, 0, 512 << 10), Status::Host, 0),
        (to_host(18, end - 64, 0, 512 << 10), Status::Host, 0),
        (to_host(19, HOST, 0, 64), Status::Done, 64),
    ];
    for (descriptor, status, moved) in cases {
        let before = bench.host.0.borrow().accesses;
        let done = one(&mut bench, &mut q, descriptor);
        assert_eq!(
            (done.tag, done.status, done.bytes, done.retired),
            (descriptor.tag, status, moved, 1),
            "{descriptor:?}"
        );
        let accesses = bench.host.0.borrow().accesses - before;
        assert!(
            accesses < 3000,
            "{accesses} accesses of host memory for {descriptor:?}: it goes on after it failed"
        );
    }
    // Card memory that answers with an error.
    bench.mem.error_ranges.push(0x1000..0x1040);
    for d in [to_card(30, HOST, 0xff0, 64), to_host(31, HOST, 0xff0, 64)] {
        assert_eq!(
            one(&mut bench, &mut q, d),
            Completion { tag: d.tag, status: Status::Card, retired: 1, bytes: 0 }
        );
    }
    // Unused bytes of a descriptor must be zero.
    for at in [2u64, 3, 28, 32, 63] {
        let slot = RING + 64 * u64::from(bench.read(register(1, reg::TAIL)).unwrap() & 3);
        assert!(q.push(&to_card(40, HOST, 0, 64)).unwrap());
        bench.host.0.borrow_mut().bytes.write(slot + at, &[1]);
        q.submit(&mut bench).unwrap();
        let done = q.wait(&mut bench, LIMIT).unwrap().unwrap();
        assert_eq!((done.tag, done.status), (40, Status::Malformed), "byte {at}");
    }
    bench.check();
}

#[test]
fn nothing_of_a_chain_is_begun_after_its_first_failure() {
    let data = pattern(3000, 3);
    let mut bench = plain(&data);
    let mut q = bench.queue(0, 8, RING, 1);
    let piece = |tag, at: u64, flags| Descriptor { flags, ..to_card(tag, HOST + at, at, 1000) };
    for round in 0..10 {
        for (tag, flags) in [(0, CHAIN), (1, CHAIN), (2, 0)] {
            assert!(q.push(&piece(3 * round + tag, 1000 * u64::from(tag), flags)).unwrap());
        }
        q.submit(&mut bench).unwrap();
        let done = q.wait(&mut bench, LIMIT).unwrap().unwrap();
        assert_eq!(
            done,
            Completion { tag: 3 * round + 2, status: Status::Done, retired: 3, bytes: 3000 }
        );
    }
    assert_eq!(card_bytes(&bench, 0, 3000), data);
    // Once because of its fields, once because host memory is not mapped; the latter shows only
    // when the next one is in flight.
    for bad in [
        Descriptor { card: 1 << 40, ..piece(2, 1000, CHAIN) },
        Descriptor { host: 0, ..piece(2, 1000, CHAIN) },
    ] {
        bench.mem.memory.write(0, &[0; 3000]);
        for d in
            [piece(1, 0, CHAIN), bad, piece(3, 2000, CHAIN), piece(4, 2000, 0), piece(5, 2500, 0)]
        {
            assert!(q.push(&d).unwrap());
        }
        q.submit(&mut bench).unwrap();
        let done = q.wait(&mut bench, LIMIT).unwrap().unwrap();
        assert_eq!(
            done,
            Completion {
                tag: 2,
                status: if bad.host == 0 { Status::Host } else { Status::Card },
                retired: 4,
                bytes: 1000
            }
        );
        let seen = card_bytes(&bench, 0, 2500);
        assert_eq!((&seen[..1000], &seen[2000..]), (&data[..1000], &[0; 500][..]), "{bad:?}");
        assert_eq!(q.wait(&mut bench, LIMIT).unwrap().unwrap().tag, 5, "the next chain is done");
    }
    bench.check();
}

#[test]
fn registers_take_what_makes_sense_and_nothing_else() {
    let mut bench = plain(&[]);
    let words = [
        (reg::RING_LO, 0x1234_5000),
        (reg::RING_HI, 0x9abc),
        (reg::ENTRIES, 16),
        (reg::INTERRUPT, 0x0003_0002),
    ];
    for queue in 0..QUEUES {
        for (offset, value) in words {
            assert!(bench.write(register(queue, offset), value + queue));
        }
    }
    for queue in 0..QUEUES {
        for (offset, value) in words {
            assert_eq!(bench.read(register(queue, offset)), Some(value + queue));
        }
        assert_eq!(
            (bench.read(register(queue, reg::TAIL)), bench.read(register(queue, reg::STATUS))),
            (Some(0), Some(reg::OFF))
        );
    }
    // Missing registers, and accesses in the wrong direction.
    assert_eq!(bench.read(register(0, reg::CONTROL)), None);
    assert!(!bench.write(register(0, reg::STATUS), 1));
    for offset in [0x1c, 0x20, 0x3c] {
        assert_eq!(bench.read(register(1, offset)), None);
        assert!(!bench.write(register(1, offset), 1));
    }
    // Invalid ring parameters.
    for (low, entries) in
        [(0x1000, 0), (0x1000, 1), (0x1000, 3), (0x1000, 8192), (0x1000, 0x8000_0000), (0x1040, 8)]
    {
        bench.write(register(2, reg::RING_LO), low);
        bench.write(register(2, reg::ENTRIES), entries);
        bench.write(register(2, reg::CONTROL), reg::ENABLE);
        assert_eq!(bench.read(register(2, reg::STATUS)), Some(reg::OFF), "{low:#x} {entries}");
        bench.write(register(2, reg::TAIL), 1);
        assert_eq!(bench.read(register(2, reg::TAIL)), Some(0));
    }
    // An enabled ring keeps its position, and its doorbell only moves forward, within the ring.
    let _q = bench.queue(3, 8, RING, 0);
    for (offset, value) in words {
        let before = bench.read(register(3, offset));
        bench.write(register(3, offset), value);
        assert_eq!(bench.read(register(3, offset)), before);
    }
    for (value, taken) in [(9, 0), (u32::MAX, 0), (8, 8), (7, 8), (17, 8), (16, 16)] {
        bench.write(register(3, reg::TAIL), value);
        assert_eq!(bench.read(register(3, reg::TAIL)), Some(taken), "{value}");
        bench.step(3000);
    }
    bench.write(register(3, reg::CONTROL), 0);
    bench.step(1000);
    assert_eq!(
        (bench.read(register(3, reg::STATUS)), bench.read(register(3, reg::TAIL))),
        (Some(reg::OFF), Some(0))
    );
    bench.check();
}

#[test]
fn one_interrupt_for_many_and_none_where_none_is_wanted() {
    for (batch, least, most) in [(1, 32, 40), (8, 4, 5), (64, 1, 1), (0, 0, 0)] {
        let mut bench = plain(&[]);
        let mut q = bench.queue(2, 64, RING, batch);
        for tag in 0..40 {
            assert!(q.push(&to_card(tag, HOST, 0, 4096)).unwrap());
        }
        q.submit(&mut bench).unwrap();
        bench.step(6000);
        let count = bench.irqs.count(3);
        assert!(
            (least..=most).contains(&count),
            "{count} interrupts for 40 completions, {batch} together"
        );
        assert_eq!(
            (0..40).filter(|tag| q.poll().unwrap().is_some_and(|c| c.tag == *tag)).count(),
            40
        );
        assert_eq!(bench.irqs.vectors(), usize::from(count > 0), "no other vector");
    }
}

#[test]
fn control_is_not_stuck_behind_bulk() {
    let mut bench = plain(&pattern(1 << 20, 4));
    let mut bulk = bench.queue(3, 16, RING, 0);
    let mut control = bench.queue(0, 4, RING + (1 << 20), 1);
    for tag in 0..16 {
        assert!(bulk.push(&to_card(tag, HOST, 0, 1 << 20)).unwrap());
    }
    bulk.submit(&mut bench).unwrap();
    bench.step(5000);
    let start = bench.sim.cycles();
    assert!(control.push(&to_card(1, HOST, 0, 64)).unwrap());
    control.submit(&mut bench).unwrap();
    while control.poll().unwrap().is_none() {
        bench.step(1);
    }
    let took = bench.sim.cycles() - start;
    println!("64 bytes beside bulk: {took} cycles");
    // Already in flight: 16 pages inbound, and some that wait for card memory.
    assert!(took < 3000, "{took} cycles");
    assert!(bulk.poll().unwrap().is_none());
}

#[test]
fn cancelling_ends_what_was_submitted_and_turning_off_ends_all() {
    let mut bench = plain(&pattern(1 << 20, 5));
    let mut q = bench.queue(1, 16, RING, 1);
    for tag in 0..16 {
        let flags = if tag < 15 { 0 } else { CHAIN };
        assert!(q.push(&Descriptor { flags, ..to_card(tag, HOST, 0, 1 << 20) }).unwrap());
    }
    q.submit(&mut bench).unwrap();
    bench.step(20_000);
    q.cancel(&mut bench).unwrap();
    let start = bench.sim.cycles();
    for tag in 0..15 {
        let done = q.wait(&mut bench, LIMIT).unwrap().unwrap();
        let status = if tag == 0 { Status::Done } else { Status::Cancelled };
        assert_eq!(
            (done.tag, done.status, done.bytes),
            (tag, status, if tag == 0 { 1 << 20 } else { 0 })
        );
    }
    assert!(bench.sim.cycles() - start < 3000, "the one under way is ended too");
    // The end of the chain follows the cancellation: it is skipped with its chain. Then everything
    // works as before.
    assert!(q.push(&to_card(16, HOST, 0, 64)).unwrap());
    q.submit(&mut bench).unwrap();
    assert_eq!(
        q.wait(&mut bench, LIMIT).unwrap(),
        Some(Completion { tag: 15, status: Status::Cancelled, retired: 2, bytes: 0 })
    );
    assert_eq!(one(&mut bench, &mut q, to_card(17, HOST, 0, 64)).status, Status::Done);
    // Disabled in the middle, in both directions: host memory is not accessed after the engine
    // reports this.
    for d in [to_card(18, HOST, 0, 1 << 20), to_host(18, HOST, 0, 1 << 20)] {
        for _ in 0..4 {
            assert!(q.push(&d).unwrap());
        }
        q.submit(&mut bench).unwrap();
        bench.step(3000);
        let ring = q.drain(&mut bench, Duration::ZERO, |_| {});
        assert_eq!(
            ring.err().map(|e| e.code().to_owned()).as_deref(),
            Some("SHEF-DEV-013"),
            "not everything was over"
        );
        assert_eq!(bench.read(register(1, reg::STATUS)), Some(reg::OFF));
        let before = bench.host.0.borrow().accesses;
        bench.step(3000);
        assert_eq!(bench.host.0.borrow().accesses, before);
        q = bench.queue(1, 16, RING, 1);
        assert_eq!(one(&mut bench, &mut q, to_card(19, HOST, 0, 64)).status, Status::Done);
    }
    bench.check();
}

#[test]
fn a_ring_that_cannot_be_reached_fails_its_queue_only() {
    let mut bench = plain(&[]);
    // The descriptors, or the completions after them.
    for (entries, lost) in [(64, RING..RING + 4096), (64, RING + 4096..RING + 8192)] {
        let mut q = bench.queue(0, entries, RING, 8);
        let mut other = bench.queue(1, 4, RING + (1 << 20), 1);
        let kept = RING..RING + 8192;
        bench.host.0.borrow_mut().readable.retain(|r| !kept.contains(&r.start));
        bench.host.0.borrow_mut().writable.retain(|r| !kept.contains(&r.start));
        for at in (kept.start..kept.end).step_by(4096).filter(|at| !lost.contains(at)) {
            bench.host.0.borrow_mut().map(at..at + 4096);
        }
        let told = bench.irqs.count(1);
        assert!(q.push(&to_card(1, HOST, 0, 64)).unwrap());
        q.submit(&mut bench).unwrap();
        assert_eq!(q.wait(&mut bench, LIMIT).unwrap_err().code(), "SHEF-DEV-013");
        assert_eq!(bench.read(register(0, reg::STATUS)), Some(reg::FAILED));
        assert_eq!(bench.irqs.count(1), told + 1, "and an interrupt says so");
        bench.write(register(0, reg::TAIL), 5);
        assert_eq!(bench.read(register(0, reg::TAIL)), Some(1), "it takes nothing more");
        assert_eq!(one(&mut bench, &mut other, to_card(2, HOST, 0, 64)).status, Status::Done);
        bench.host.0.borrow_mut().map(kept);
        let mut q = bench.queue(0, 8, RING, 8);
        assert_eq!(one(&mut bench, &mut q, to_card(3, HOST, 0, 64)).status, Status::Done);
    }
    bench.check();
}

#[test]
fn a_wipe_in_the_middle_leaves_nothing() {
    let mut bench = plain(&pattern(1 << 20, 6));
    for round in 0..8 {
        let (mut up, mut down) =
            (bench.queue(0, 8, RING, 1), bench.queue(3, 8, RING + (1 << 20), 1));
        for _ in 0..8 {
            assert!(up.push(&to_card(0, HOST, 0, 1 << 20)).unwrap());
            assert!(down.push(&to_host(0, HOST + (2 << 20), 0, 1 << 20)).unwrap());
        }
        up.submit(&mut bench).unwrap();
        down.submit(&mut bench).unwrap();
        bench.step(1 + 397 * round);
        bench.sim.poke("wipe_req", 1);
        let mut took = 0;
        while bench.sim.peek("wipe_ack") == 0 {
            bench.step(1);
            took += 1;
            assert!(took < 4000, "no acknowledgement");
        }
        let before = bench.host.0.borrow().accesses;
        bench.step(2000);
        assert_eq!(bench.host.0.borrow().accesses, before);
        for queue in 0..QUEUES {
            assert!(!bench.write(register(queue, reg::STATUS), 1));
            bench.write(register(queue, reg::RING_LO), 0x5000);
            for offset in
                [reg::RING_LO, reg::RING_HI, reg::ENTRIES, reg::TAIL, reg::STATUS, reg::INTERRUPT]
            {
                assert_eq!(bench.read(register(queue, offset)), Some(0), "while it is wiped");
            }
        }
        bench.sim.poke("wipe_req", 0);
        bench.step(2);
        assert_eq!(bench.sim.peek("wipe_ack"), 0);
        let mut q = bench.queue(2, 8, RING, 1);
        assert_eq!(one(&mut bench, &mut q, to_card(3, HOST, 0, 64)).status, Status::Done);
    }
    bench.check();
}

/// The engine has given up a port: checks its report, and that a reset recovers it.
fn given_up(bench: &mut DmaBench, what: &str) {
    for queue in [0, 3] {
        assert_eq!(
            bench.read(register(queue, reg::STATUS)),
            Some(reg::FAILED),
            "{what}, queue {queue}"
        );
    }
    bench.write(register(1, reg::CONTROL), reg::ENABLE);
    bench.sim.poke("wipe_req", 1);
    bench.step(50);
    assert_eq!(bench.sim.peek("wipe_ack"), 1, "{what}: a wipe does not wait for it");
    bench.sim.poke("wipe_req", 0);
    bench.mem.silent_ranges.clear();
    bench.mem.frozen = false;
    match &mut bench.link {
        shef_tb::dma::Link::Host(host) => host.frozen = false,
        shef_tb::dma::Link::Hostile(host) => {
            (host.frozen, host.silent_ranges) = (false, Vec::new());
        }
    }
    DmaBench::reset(bench);
    let mut q = bench.queue(0, 8, RING, 1);
    assert_eq!(
        one(bench, &mut q, to_card(3, HOST, 0, 64)).status,
        Status::Done,
        "{what}, after a reset"
    );
}

/// Two queues with work in both directions.
fn busy(bench: &mut DmaBench) -> [Queue<RingMemory>; 2] {
    let (mut up, mut down) = (bench.queue(0, 8, RING, 1), bench.queue(3, 8, RING + (1 << 20), 1));
    for _ in 0..8 {
        assert!(up.push(&to_card(0, HOST, 0, 64 << 10)).unwrap());
        assert!(down.push(&to_host(0, HOST + (2 << 20), 0, 64 << 10)).unwrap());
    }
    up.submit(bench).unwrap();
    down.submit(bench).unwrap();
    [up, down]
}

#[test]
fn what_does_not_answer_is_given_up() {
    for what in ["host", "memory", "lost read of memory", "lost write of memory"] {
        let mut bench = plain(&[]);
        let _queues = busy(&mut bench);
        bench.step(700);
        match what {
            "host" => bench.shell().frozen = true,
            "memory" => bench.mem.frozen = true,
            "lost read of memory" => bench.mem.inject(Hostile::LoseRead),
            _ => bench.mem.inject(Hostile::LoseWrite),
        }
        bench.step(3 * TIMEOUT);
        given_up(&mut bench, what);
    }
}

#[test]
fn whoever_breaks_the_protocol_is_not_used_any_more() {
    let breaches = [
        Hostile::UnownedR { id: 0x3f },
        Hostile::UnownedR { id: 0xc0 },
        Hostile::UnownedB { id: 5 },
        Hostile::WrongRid(0x20),
        Hostile::WrongBid(3),
        Hostile::EarlyLast,
        Hostile::LateLast,
        Hostile::MissingLast,
        Hostile::LoseRead,
        Hostile::LoseWrite,
        Hostile::DoubleB,
    ];
    for breach in breaches {
        for at_host in [false, true] {
            let mut bench = DmaBench::hostile();
            let _queues = busy(&mut bench);
            bench.step(500);
            if at_host {
                bench.breaker().inject(breach);
            } else {
                bench.mem.inject(breach);
            }
            bench.step(6000 + 3 * TIMEOUT);
            let happened =
                if at_host { bench.breaker().injected_all() } else { bench.mem.injected_all() };
            assert!(happened, "{breach:?}");
            // If other writes follow, a second answer to a write is taken for that of the next one;
            // the last answer is then unsolicited.
            given_up(
                &mut bench,
                &format!("{breach:?} of {}", if at_host { "host" } else { "card memory" }),
            );
        }
    }
}
