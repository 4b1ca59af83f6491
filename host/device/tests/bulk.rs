//! Bulk transfers of a PCI card through its ring are posted, batched and prefetched, and every
//! failure is reported. The card is in this process and works only while the program waits.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use shef_device::pci::{BAR_MEM, Function, MSIX_BYTES, PciCard, RING_FROM};
use shef_device::ring::{
    COMPLETION, Completion, DESCRIPTOR, Descriptor, DmaBuffer, OP_TO_CARD, Status, reg,
};
use shef_device::{
    CTL_BYTES, CtlOp, Device, DeviceError, DmaSlot, DmaSlots, SLOT_BYTES, SharedMemory, mailbox,
};

/// As in bulk.rs: the queue and its vector, descriptors of the ring and per doorbell, pieces of
/// memory including the ring's.
const QUEUE: u32 = 3;
const VECTOR: u32 = 4;
const ENTRIES: u32 = 128;
const BATCH: u32 = 16;
const PIECES: usize = 4;

/// A card that works only while the program waits, and counts. The device address of a piece of
/// host memory is its index in the list times 4 GiB.
struct Card {
    memory: Vec<Arc<SharedMemory>>,
    ring: u64,
    seen: Rc<Seen>,
}

/// The card's claims about descriptor `n`, of which `honest` is the true one: completions with
/// their status and sequence number, written from `n`'s slot on.
type Lie = fn(n: u32, honest: Completion) -> Vec<(Completion, u16, u32)>;

/// The test's view of the card, from outside.
struct Seen {
    dram: SharedMemory,
    made: Cell<usize>,
    released: Cell<usize>,
    on: Cell<u32>,
    tail: Cell<u32>,
    head: Cell<u32>,
    doorbells: Cell<u32>,
    waits: Cell<u32>,
    status: Cell<Status>,
    /// Falsifies the completions of each descriptor.
    lie: Cell<Option<Lie>>,
    /// Accesses to registers of the DMA engine.
    engine: Cell<u32>,
}

fn card() -> (PciCard<Card>, Rc<Seen>) {
    let seen = Rc::new(Seen {
        dram: SharedMemory::new(64 << 20).unwrap(),
        made: Cell::default(),
        released: Cell::default(),
        on: Cell::default(),
        tail: Cell::default(),
        head: Cell::default(),
        doorbells: Cell::default(),
        waits: Cell::default(),
        status: Cell::new(Status::Done),
        lie: Cell::default(),
        engine: Cell::default(),
    });
    let card = Card { memory: Vec::new(), ring: u64::MAX, seen: Rc::clone(&seen) };
    (PciCard::open(card, "test", "test", "none").unwrap(), seen)
}

impl Seen {
    fn touched(&self, offset: u64) {
        if (u64::from(reg::BASE)..u64::from(mailbox::REQUEST)).contains(&offset) {
            self.engine.set(self.engine.get() + 1);
        }
    }
}

impl Card {
    fn work(&mut self) {
        let (ring, seen) = (self.memory[(self.ring >> 32) as usize].clone(), &self.seen);
        while seen.head.get() != seen.tail.get() {
            let slot = u64::from(seen.head.get() % ENTRIES);
            let mut bytes = [0; DESCRIPTOR as usize];
            ring.read(slot * DESCRIPTOR, &mut bytes).unwrap();
            let d = Descriptor::decode(&bytes).unwrap();
            assert_ne!(d.host >> 32, self.ring >> 32, "bulk data lies beside the ring");
            let (host, at, n) =
                (&self.memory[(d.host >> 32) as usize], d.host & 0xffff_ffff, d.bytes as usize);
            match d.op {
                OP_TO_CARD => seen.dram.copy_from(d.card, host, at, n).unwrap(),
                _ => host.copy_from(at, &seen.dram, d.card, n).unwrap(),
            }
            let honest =
                Completion { tag: d.tag, status: seen.status.get(), retired: 1, bytes: d.bytes };
            let number = seen.head.get() + 1;
            let said = seen.lie.get().map_or_else(
                || vec![(honest, honest.status as u16, number)],
                |lie| lie(number, honest),
            );
            for (i, (completion, status, number)) in said.into_iter().enumerate() {
                let slot = u64::from(ENTRIES) * DESCRIPTOR
                    + (slot + i as u64) % u64::from(ENTRIES) * COMPLETION;
                let mut bytes = completion.encode();
                bytes[4..6].copy_from_slice(&status.to_le_bytes());
                ring.write(slot, &bytes).unwrap();
                ring.store(slot + 12, number).unwrap();
            }
            seen.head.set(number);
        }
    }
}

impl Function for Card {
    type Memory = DmaBuffer;

    fn dma(&mut self, bytes: u64) -> Result<DmaBuffer, DeviceError> {
        let memory = Arc::new(SharedMemory::new(bytes).unwrap());
        self.seen.made.set(self.seen.made.get() + 1);
        self.memory.push(memory.clone());
        Ok(DmaBuffer::new(memory, (self.memory.len() as u64 - 1) << 32))
    }

    fn release(&mut self, _: DmaBuffer, quiet: bool) -> Result<(), DeviceError> {
        assert!(quiet);
        self.seen.released.set(self.seen.released.get() + 1);
        Ok(())
    }

    fn config_read(&mut self, _: u16, out: &mut [u8]) -> Result<(), DeviceError> {
        out.fill(0);
        Ok(())
    }

    fn config_write(&mut self, _: u16, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn bar_bytes(&self, bar: u8) -> u64 {
        [u64::from(CTL_BYTES), 0, MSIX_BYTES, 0, self.seen.dram.len(), 0][usize::from(bar)]
    }

    fn bar_read(&mut self, bar: u8, offset: u64, out: &mut [u8]) -> Result<(), DeviceError> {
        if bar == BAR_MEM {
            return Ok(self.seen.dram.read(offset, out)?);
        }
        self.seen.touched(offset);
        out.copy_from_slice(&self.seen.on.get().to_le_bytes());
        Ok(())
    }

    fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        let seen = &self.seen;
        if bar == BAR_MEM {
            return Ok(seen.dram.write(offset, data)?);
        }
        seen.touched(offset);
        let value = u32::from_le_bytes(data.try_into().unwrap());
        match (offset as u32).wrapping_sub(reg::BASE + QUEUE * reg::STRIDE) {
            reg::CONTROL => {
                seen.on.set(value);
                seen.head.set(0);
                seen.tail.set(0);
            }
            reg::RING_HI => self.ring = u64::from(value) << 32,
            reg::TAIL if seen.on.get() == reg::ON => {
                seen.tail.set(value);
                seen.doorbells.set(seen.doorbells.get() + 1);
            }
            _ => {}
        }
        Ok(())
    }

    fn wait_vector(&mut self, vector: u32, _: Duration) -> Result<bool, DeviceError> {
        assert_eq!(vector, VECTOR);
        self.seen.waits.set(self.seen.waits.get() + 1);
        let came = self.seen.head != self.seen.tail;
        self.work();
        Ok(came)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.seen.on.set(reg::OFF);
        Ok(())
    }
}

fn pattern(n: usize) -> Vec<u8> {
    (0..n as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn a_doorbell_and_a_wait_serve_many_descriptors_and_writes_are_posted() {
    let (mut card, seen) = card();
    let data = pattern(20 << 20);
    card.mem_write(4096, &data).unwrap();
    let descriptors = (data.len() / SLOT_BYTES) as u32;
    // Less than a batch may wait for more.
    assert!(seen.tail.get() + BATCH > descriptors && seen.head < seen.tail, "posted");
    // Every later access finds the bytes there: a register access, a short read, a long read.
    card.ctl_write32(0x200, 1).unwrap();
    assert_eq!(seen.head, seen.tail);
    let mut window = vec![0; data.len()];
    seen.dram.read(4096, &mut window).unwrap();
    assert!(window == data);
    let (doorbells, waits) = (seen.doorbells.get(), seen.waits.get());
    assert!(
        doorbells <= descriptors / BATCH + waits,
        "{doorbells} doorbells and {waits} waits for {descriptors} descriptors"
    );
    assert!(waits <= descriptors / BATCH, "{waits} waits for {descriptors} descriptors");
    for len in [RING_FROM, SLOT_BYTES, SLOT_BYTES + 1, 9 * SLOT_BYTES - 1, data.len()] {
        let mut back = vec![0; len];
        card.mem_write(64, &data[..len]).unwrap();
        card.mem_read(64, &mut back).unwrap();
        assert!(back == data[..len], "{len}");
        card.mem_write(64, &data[1..][..len - 1]).unwrap();
        card.mem_read(64, &mut back[..100]).unwrap();
        assert!(back[..100] == data[1..101], "{len}, through the window");
    }
    // The ranges of one transfer share a batch, even if some are short.
    let before = seen.doorbells.get();
    card.mem_write_ranges(&[(0, &data[..1 << 20]), (2 << 20, &data[..16])]).unwrap();
    let (mut long, mut short) = (vec![0; 1 << 20], [0; 16]);
    card.mem_read_ranges(&mut [(0, &mut long), (2 << 20, &mut short)]).unwrap();
    assert!(long == data[..1 << 20] && short == data[..16]);
    assert_eq!(seen.doorbells.get() - before, 2);
}

/// The contents of a slot.
fn bytes(slot: &DmaSlot, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    slot.read(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn what_is_read_ahead_is_read_once_and_never_old() {
    let (mut card, seen) = card();
    let data = pattern(20 << 20);
    seen.dram.write(0, &data).unwrap();
    // Two ranges each: nearly a whole slot, and the end of a later one.
    let ranges = |n: usize| {
        [
            ((n * SLOT_BYTES) as u64, SLOT_BYTES - 512),
            ((n * SLOT_BYTES + SLOT_BYTES / 2) as u64, 512),
        ]
    };
    let part = |n: usize| {
        [
            &data[n * SLOT_BYTES..][..SLOT_BYTES - 512],
            &data[n * SLOT_BYTES + SLOT_BYTES / 2..][..512],
        ]
        .concat()
    };
    let read = |card: &mut PciCard<Card>, n: usize| {
        bytes(&card.read_slot(&ranges(n)).unwrap(), SLOT_BYTES)
    };
    let ahead = |card: &mut PciCard<Card>, n: usize| card.read_ahead(&ranges(n)).unwrap();
    // In the announced order: the card gets no further request.
    assert!((0..4).all(|n| ahead(&mut card, n)));
    assert!(seen.tail.get() <= 8 && seen.head.get() == 0);
    for n in 0..4 {
        assert!(read(&mut card, n) == part(n), "{n}");
    }
    assert_eq!(seen.head.get(), 8);
    // Out of order, and more than the slots can hold.
    assert_eq!((0..60).filter(|n| ahead(&mut card, *n)).count(), 48);
    for n in [0, 2, 1, 3] {
        assert!(read(&mut card, n) == part(n), "{n}");
    }
    // A different length.
    ahead(&mut card, 0);
    let mut short = vec![0; SLOT_BYTES - 512];
    card.mem_read(0, &mut short).unwrap();
    assert!(short == data[..SLOT_BYTES - 512]);
    // Prefetched data is stale after any other access, even if no read is in flight.
    let accesses: [fn(&mut PciCard<Card>); 2] =
        [|card| card.ctl_write32(0x200, 1).unwrap(), |card| card.mem_write(1 << 20, &[1]).unwrap()];
    for access in accesses {
        assert!(ahead(&mut card, 0) && ahead(&mut card, 1));
        assert!(read(&mut card, 0) == part(0) && seen.head == seen.tail);
        access(&mut card);
        seen.dram.write(SLOT_BYTES as u64, &part(4)[..4096]).unwrap();
        assert!(read(&mut card, 1)[..4096] == part(4)[..4096], "old bytes");
        seen.dram.write(SLOT_BYTES as u64, &part(1)[..4096]).unwrap();
    }
    // Later reads see data written in between, through the ring or the window.
    ahead(&mut card, 0);
    card.mem_write(0, &part(5)[..SLOT_BYTES - 512]).unwrap();
    assert!(read(&mut card, 0)[..SLOT_BYTES / 2] == part(5)[..SLOT_BYTES / 2]);
    ahead(&mut card, 0);
    card.ctl_write32(0x200, 1).unwrap();
    seen.dram.write(0, &part(6)[..4096]).unwrap();
    assert!(read(&mut card, 0)[..4096] == part(6)[..4096]);
    ahead(&mut card, 0);
    card.mem_write(0, &[0xee; 64]).unwrap();
    assert_eq!(read(&mut card, 0)[..65], [&[0xee; 64][..], &part(6)[64..65]].concat());
    ahead(&mut card, 0);
    let slot = card.slot().unwrap();
    slot.write(0, &part(7)).unwrap();
    card.write_slot(slot, &ranges(0)).unwrap();
    assert!(read(&mut card, 0) == part(7));
    assert_eq!(
        card.read_ahead(&[(0, 64), (seen.dram.len() - 1, 2)]).unwrap_err().code(),
        "SHEF-DEV-007"
    );
}

#[test]
fn places_are_lent_and_come_back_by_whichever_way() {
    let (mut card, seen) = card();
    assert!(card.ready().unwrap());
    let data = pattern(SLOT_BYTES);
    // All of them at once, from several threads, and no more.
    let mut lent: Vec<_> = (0..48).map(|_| card.slot().unwrap()).collect();
    assert_eq!(card.slot().unwrap_err().code(), "SHEF-DEV-013");
    std::thread::scope(|scope| {
        lent.iter().for_each(|slot| drop(scope.spawn(|| slot.write(0, &data).unwrap())));
    });
    for (n, slot) in lent.drain(..24).enumerate() {
        card.write_slot(
            slot,
            &[((n * SLOT_BYTES) as u64, SLOT_BYTES - 1), ((48 * SLOT_BYTES + n) as u64, 1)],
        )
        .unwrap();
    }
    // DmaSlots return when the card has finished with them, or when they are dropped.
    let again: Vec<_> = (0..24).map(|_| card.slot().unwrap()).collect();
    drop(again);
    lent.clear();
    card.ctl_write32(0x200, 1).unwrap();
    for n in 0..24 {
        let mut back = vec![0; SLOT_BYTES];
        seen.dram.read((n * SLOT_BYTES) as u64, &mut back[..SLOT_BYTES - 1]).unwrap();
        seen.dram.read((48 * SLOT_BYTES + n) as u64, &mut back[SLOT_BYTES - 1..]).unwrap();
        assert!(back == data, "{n}");
    }
    // A range that does not fit is refused, with no other effect.
    let slot = card.slot().unwrap();
    assert_eq!(slot.write(SLOT_BYTES - 1, &[1, 2]).unwrap_err().code(), "SHEF-DEV-012");
    assert_eq!(slot.read(usize::MAX, &mut [0; 2]).unwrap_err().code(), "SHEF-DEV-012");
    for ranges in [&[][..], &[(0, SLOT_BYTES), (0, 1)], &[(0, 0)]] {
        assert_eq!(card.read_slot(ranges).unwrap_err().code(), "SHEF-DEV-012");
    }
    assert_eq!(card.read_slot(&[(0, 1), (0, usize::MAX)]).unwrap_err().code(), "SHEF-DEV-007");
    // A ring that was turned off is detected before a transfer begins; its lent slots are
    // unusable, and their memory is released once they are dropped.
    seen.on.set(reg::OFF);
    assert!(card.ready().unwrap());
    assert_eq!(seen.released.get(), PIECES - 1, "one piece of memory is still lent");
    assert_eq!(card.write_slot(slot, &[(0, 8)]).unwrap_err().code(), "SHEF-DEV-013");
    let slot = card.slot().unwrap();
    slot.write(0, &data).unwrap();
    card.write_slot(slot, &[(0, 8)]).unwrap();
    card.ctl_write32(0x200, 1).unwrap();
    drop(card);
    assert_eq!(seen.released.get(), 2 * PIECES);
}

#[test]
fn what_was_posted_and_failed_is_told_and_never_forgotten() {
    let (mut card, seen) = card();
    let data = pattern(1 << 20);
    card.mem_write(0, &data).unwrap();
    seen.status.set(Status::Host);
    assert_eq!(card.ctl_write32(0x200, 1).unwrap_err().code(), "SHEF-DEV-013");
    // The next transfer gets a new ring.
    seen.status.set(Status::Done);
    card.mem_write(0, &data).unwrap();
    assert_eq!(seen.released.get(), PIECES);
    // The transfer would be retried, because the ring was turned off, but an earlier write is lost.
    seen.on.set(reg::OFF);
    seen.tail.set(seen.head.get());
    assert!(card.mem_read(0, &mut vec![0; 1 << 20]).is_err());
    card.mem_write(0, &data).unwrap();
    card.ctl_write32(0x200, 1).unwrap();
    // With no write in flight it is retried.
    seen.on.set(reg::OFF);
    let mut back = vec![0; 1 << 20];
    card.mem_read(0, &mut back).unwrap();
    assert!(back == data);
    drop(card);
    assert_eq!(seen.released.get(), 4 * PIECES);
}

#[test]
fn completions_that_cannot_be_end_the_ring_and_nothing_else() {
    let (mut card, seen) = card();
    let data = pattern(3 * SLOT_BYTES);
    let lies: [(&str, Lie); 10] = [
        ("of another descriptor", |n, c| vec![(Completion { tag: c.tag ^ 1, ..c }, 0, n)]),
        ("of one that was never begun", |n, c| vec![(Completion { tag: u32::MAX, ..c }, 0, n)]),
        ("with more bytes", |n, c| vec![(Completion { bytes: c.bytes + 1, ..c }, 0, n)]),
        ("with fewer bytes", |n, c| vec![(Completion { bytes: c.bytes - 1, ..c }, 0, n)]),
        ("of none", |n, c| vec![(Completion { retired: 0, ..c }, 0, n)]),
        ("of two", |n, c| vec![(Completion { retired: 2, ..c }, 0, n)]),
        ("of all and more", |n, c| vec![(Completion { retired: u16::MAX, ..c }, 0, n)]),
        ("with a status that there is not", |n, c| vec![(c, 6, n)]),
        ("twice", |n, c| vec![(c, 0, n), (c, 0, n + 1)]),
        ("before its turn", |n, c| vec![(Completion { tag: c.tag + 1, ..c }, 0, n), (c, 0, n + 1)]),
    ];
    for (what, lie) in lies {
        for write in [true, false] {
            // A lent slot outlives its ring, and is then unusable.
            let slot = card.slot().unwrap();
            seen.lie.set(Some(lie));
            let mut back = vec![0; data.len()];
            let result = if write {
                card.mem_write(0, &data).and_then(|()| card.ctl_write32(0x200, 1))
            } else {
                card.mem_read(0, &mut back)
            };
            // The next transfer sees the second completion of the last descriptor.
            let result = result.and_then(|()| card.slot().map(drop));
            seen.lie.set(None);
            assert!(
                result.is_err_and(|error| error.code() == "SHEF-DEV-013"),
                "{what}, write: {write}"
            );
            assert_eq!(
                card.write_slot(slot, &[(0, 8)]).unwrap_err().code(),
                "SHEF-DEV-013",
                "{what}"
            );
            card.mem_write(0, &data).unwrap();
            card.mem_read(0, &mut back).unwrap();
            assert!(back == data, "{what}");
        }
    }
    drop(card);
    assert!(seen.made.get() > 20 * PIECES);
    assert_eq!(seen.released, seen.made, "memory that is never given back");
}

#[test]
fn registers_of_the_dma_engine_are_out_of_reach() {
    let (mut card, seen) = card();
    card.mem_write(0, &pattern(1 << 20)).unwrap();
    card.ctl_read32(mailbox::STATUS).unwrap();
    let before = seen.engine.get();
    for offset in (reg::BASE..mailbox::REQUEST).chain([
        1,
        3,
        mailbox::ANSWER + 0x1E00,
        mailbox::RSP_LEN + 4,
        CTL_BYTES,
        u32::MAX,
    ]) {
        for op in [
            CtlOp::Read { offset },
            CtlOp::Write { offset, value: 1 },
            CtlOp::Poll { offset, clear: 0, some: 0, polls: 2 },
        ] {
            assert_eq!(card.ctl_batch(&[op]).unwrap_err().code(), "SHEF-DEV-006", "{op:x?}");
        }
        assert_eq!(card.ctl_read32(offset).unwrap_err().code(), "SHEF-DEV-006");
        assert_eq!(card.ctl_write32(offset, 1).unwrap_err().code(), "SHEF-DEV-006");
    }
    assert_eq!(seen.engine.get(), before, "the engine was touched");
    for offset in [
        0,
        0x2100,
        reg::BASE - 4,
        mailbox::REQUEST,
        mailbox::ANSWER,
        mailbox::REQ_LEN,
        mailbox::STATUS,
        mailbox::RSP_LEN,
    ] {
        card.ctl_read32(offset).unwrap();
    }
    card.mem_read(0, &mut vec![0; 1 << 20]).unwrap();
}
