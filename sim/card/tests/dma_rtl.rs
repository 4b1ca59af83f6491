//! The DMA engine in RTL behaves like that of the simulated card: the same driver, the same rings,
//! the same answers.

mod common;
use std::time::{Duration, Instant};

use common::Served;
use shef_device::Device;
use shef_device::ring::{
    CHAIN, Completion, Descriptor, DmaMemory, MAX_BYTES, OP_NOTHING, OP_TO_CARD, OP_TO_HOST,
    QUEUES, Queue, Registers, reg,
};
use shef_rtl::AxiMemoryConfig;
use shef_rtl::agent::Rng;
use shef_tb::dma::{CARD_BYTES, DmaBench, Engine, RingMemory};

const LIMIT: Duration = Duration::from_secs(20);
/// Bytes of host memory for data.
const DATA: u64 = 256 << 10;

fn bench(seed: u64) -> DmaBench {
    DmaBench::new(AxiMemoryConfig::seeded(seed), AxiMemoryConfig::seeded(seed + 1))
}

fn descriptor(rng: &mut Rng, tag: u32, base: u64) -> Descriptor {
    let bytes = match rng.below(4) {
        0 => rng.below(300),
        1 => 4096,
        _ => rng.below(12_000),
    };
    let op = if rng.one_in(2) { OP_TO_CARD } else { OP_TO_HOST };
    let flags = u8::from(rng.one_in(3)) * CHAIN;
    let d = Descriptor {
        op,
        flags,
        tag,
        host: base + rng.below(DATA - bytes),
        card: rng.below(CARD_BYTES - bytes),
        bytes: bytes as u32,
    };
    match rng.below(20) {
        0 => Descriptor { op: rng.next_u64() as u8, ..d },
        1 => Descriptor { flags: rng.next_u64() as u8, ..d },
        2 => Descriptor { op: OP_NOTHING, ..d },
        3 => Descriptor { card: CARD_BYTES - bytes + 1, ..d },
        4 => Descriptor { bytes: MAX_BYTES + 1, ..d },
        // Nothing is mapped there. The successor of a failing write may already be in flight, so
        // its chain has no successor.
        5 => Descriptor { host: 64, flags: if op == OP_TO_HOST { 0 } else { flags }, ..d },
        _ => d,
    }
}

/// A driver's view of these descriptors.
fn run<M: DmaMemory>(
    card: &mut impl Registers,
    queue: &mut Queue<M>,
    descriptors: &[Descriptor],
    seed: u64,
) -> Vec<Completion> {
    let (mut rng, mut done, mut next) = (Rng::new(seed), Vec::new(), 0);
    loop {
        for _ in 0..1 + rng.below(8) {
            if next < descriptors.len() && queue.push(&descriptors[next]).unwrap() {
                next += 1;
            }
        }
        queue.submit(card).unwrap();
        while let Some(completion) = queue.poll().unwrap() {
            done.push(completion);
        }
        if next < descriptors.len() && queue.room() > 0 {
            continue;
        }
        if queue.pending() == 0 {
            return done;
        }
        done.push(queue.wait(card, LIMIT).unwrap().expect("a completion"));
    }
}

#[test]
fn random_rings_end_alike() {
    let served = Served::new(CARD_BYTES);
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let mut card = served.open();
        let memory = card.function().dma(DATA).unwrap();
        let base = memory.device_address();
        let entries = 2 << rng.below(6);
        let mut descriptors: Vec<_> = (0..150).map(|tag| descriptor(&mut rng, tag, base)).collect();
        descriptors.push(Descriptor {
            op: OP_NOTHING,
            flags: 0,
            tag: 150,
            host: 0,
            card: 0,
            bytes: 0,
        });
        let (mut host, mut dram) = (vec![0; DATA as usize], vec![0; CARD_BYTES as usize]);
        rng.fill(&mut host);
        rng.fill(&mut dram);

        memory.write(0, &host).unwrap();
        card.mem_write(0, &dram).unwrap();
        let ring = card
            .function()
            .dma(Queue::<RingMemory>::bytes(entries).next_multiple_of(4096))
            .unwrap();
        let mut queue = Queue::open(card.function(), 2, entries, ring, 3, 2).unwrap();
        let by_model = run(card.function(), &mut queue, &descriptors, seed);

        let mut rtl = bench(seed);
        rtl.host.0.borrow_mut().map(base..base + DATA);
        rtl.host.0.borrow_mut().bytes.write(base, &host);
        rtl.mem.memory.write(0, &dram);
        let mut queue = rtl.queue(2, entries, 1 << 60, 2);
        let by_rtl = run(&mut rtl, &mut queue, &descriptors, seed);

        assert_eq!(by_model, by_rtl, "seed {seed}");
        let (mut left, mut right) = (vec![0; DATA as usize], vec![0; DATA as usize]);
        memory.read(0, &mut left).unwrap();
        rtl.host.0.borrow().bytes.read(base, &mut right);
        assert!(left == right, "seed {seed}: host memory");
        let (mut left, mut right) = (vec![0; CARD_BYTES as usize], vec![0; CARD_BYTES as usize]);
        card.mem_read(0, &mut left).unwrap();
        rtl.mem.memory.read(0, &mut right);
        assert!(left == right, "seed {seed}: card memory");
        rtl.check();
    }
}

#[test]
fn registers_are_alike_whatever_is_written() {
    let served = Served::new(CARD_BYTES);
    let mut card = served.open();
    let ring = card.function().dma(8192).unwrap();
    let place = ring.device_address();
    let mut rtl = bench(77);
    rtl.host.0.borrow_mut().map(place..place + 8192);
    let mut rng = Rng::new(78);
    for step in 0..400 {
        let queue = reg::BASE + rng.below(QUEUES.into()) as u32 * reg::STRIDE;
        let offset = 4 * rng.below(8) as u32;
        let tail = rtl.register(queue + reg::TAIL).unwrap();
        let any = rng.next_u64() as u32;
        let value = match offset {
            reg::RING_LO => {
                [place as u32, place as u32, 0, place as u32 + 64][rng.below(4) as usize]
            }
            reg::RING_HI => {
                [(place >> 32) as u32, (place >> 32) as u32, 1 << 30][rng.below(3) as usize]
            }
            reg::ENTRIES => [2, 16, 64, 3, 1, 4096, 8192, any][rng.below(8) as usize],
            reg::CONTROL => {
                [reg::ENABLE, reg::ENABLE, reg::ENABLE, 0, reg::CANCEL, 7][rng.below(6) as usize]
            }
            // A tail behind the ring by less than the card's batch is refused by one engine and
            // accepted by the other.
            reg::TAIL => [
                tail.wrapping_add(1),
                tail.wrapping_add(2),
                tail,
                tail.wrapping_add(5000),
                tail.wrapping_sub(1),
            ][rng.below(5) as usize],
            _ => any,
        };
        for card in [&mut rtl as &mut dyn Registers, card.function()] {
            card.set_register(queue + offset, value).unwrap();
        }
        // Let its work finish.
        rtl.step(1500);
        let all = |card: &mut dyn Registers| {
            (0..16).map(|n| card.register(queue + 4 * n).unwrap()).collect::<Vec<_>>()
        };
        let begin = Instant::now();
        let wanted = all(&mut rtl);
        while all(card.function()) != wanted {
            assert!(
                begin.elapsed() < LIMIT,
                "step {step}, {value:#x} to {offset:#x}: {wanted:x?} in RTL, {:x?} in the model",
                all(card.function())
            );
        }
    }
    rtl.check();
}
