//! The card's DMA engine serves rings in host memory.

mod common;

use std::time::{Duration, Instant};

use common::Served;
use shef_card::LinkFault;
use shef_device::pci::{BAR_MEM, Function, PciCard, RING_FROM};
use shef_device::ring::{
    CHAIN, Completion, Descriptor, DmaBuffer, DmaMemory, OP_NOTHING, OP_TO_CARD, OP_TO_HOST, Queue,
    Status,
};
use shef_device::{Device, mailbox};
use shef_vfio_user::VfioUserFunction;

type Card = PciCard<VfioUserFunction>;

const LIMIT: Duration = Duration::from_secs(60);

/// Opens a queue with `entries` descriptors on its own vector.
fn queue(card: &mut Card, index: u32, entries: u32, batch: u16) -> Queue<DmaBuffer> {
    let ring = card.function().dma(Queue::<DmaBuffer>::bytes(entries)).unwrap();
    Queue::open(card.function(), index, entries, ring, 1 + index, batch).unwrap()
}

fn to_card(tag: u32, host: u64, card: u64, bytes: u32) -> Descriptor {
    Descriptor { op: OP_TO_CARD, flags: 0, tag, host, card, bytes }
}

fn to_host(tag: u32, host: u64, card: u64, bytes: u32) -> Descriptor {
    Descriptor { op: OP_TO_HOST, ..to_card(tag, host, card, bytes) }
}

/// Pushes, submits and waits for one completion.
fn one(card: &mut Card, queue: &mut Queue<DmaBuffer>, descriptor: Descriptor) -> Completion {
    assert!(queue.push(&descriptor).unwrap());
    queue.submit(card.function()).unwrap();
    queue.wait(card.function(), LIMIT).unwrap().expect("a completion")
}

fn pattern(n: usize, seed: u64) -> Vec<u8> {
    (0..n as u64)
        .map(|i| (i.wrapping_add(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect()
}

fn bytes(buffer: &DmaBuffer, offset: u64, n: usize) -> Vec<u8> {
    let mut out = vec![0; n];
    buffer.read(offset, &mut out).unwrap();
    out
}

#[test]
fn what_goes_down_comes_back_in_order_and_for_one_doorbell() {
    let served = Served::new(1 << 26);
    let mut card = served.open();
    for by_message in [false, true] {
        let function = card.function();
        let memory =
            if by_message { function.dma_by_message(8 << 20) } else { function.dma(8 << 20) }
                .unwrap();
        let data = pattern(3 << 20, 1);
        memory.write(5, &data).unwrap();
        for batch in [0, 1, 7] {
            let mut q = queue(&mut card, 2, 64, batch);
            // Uneven pieces, so that no edge is a power of two.
            let (mut at, mut tag) = (0u64, 0);
            while at < data.len() as u64 {
                let n = (50_021 + 7 * u64::from(tag)).min(data.len() as u64 - at);
                assert!(
                    q.push(&to_card(tag, memory.device_address() + 5 + at, 1000 + at, n as u32))
                        .unwrap()
                );
                (at, tag) = (at + n, tag + 1);
            }
            q.submit(card.function()).unwrap();
            for expected in 0..tag {
                let done = q.wait(card.function(), LIMIT).unwrap().expect("a completion");
                assert_eq!((done.tag, done.status, done.retired), (expected, Status::Done, 1));
            }
            let mut seen = vec![0; data.len()];
            card.mem_read(1000, &mut seen).unwrap();
            assert!(seen == data);
            assert_eq!(
                one(
                    &mut card,
                    &mut q,
                    to_host(99, memory.device_address() + (4 << 20), 1000, data.len() as u32)
                )
                .bytes,
                3 << 20
            );
            assert!(bytes(&memory, 4 << 20, data.len()) == data);
            card.mem_write(1000, &vec![0; data.len()]).unwrap();
            let ring = q.drain(card.function(), LIMIT, |_| panic!("nothing was left")).unwrap();
            card.function().free(&ring).unwrap();
        }
        card.function().free(&memory).unwrap();
    }
    // Mappings of the card's driver for bulk data: three pieces for data, and one for the ring.
    assert_eq!(served.control().state().unwrap().maps, 4);
}

#[test]
fn a_batch_has_one_interrupt() {
    /// Descriptors that the engine fetches at once: their completions share one interrupt, however
    /// small the batch.
    const TAKEN: u64 = 16;
    const DESCRIPTORS: u64 = 64;
    let served = Served::new(1 << 20);
    let mut card = served.open();
    let mut control = served.control();
    for batch in [1, 15, 16, 32, 33, 64, 1000] {
        let mut q = queue(&mut card, 1, DESCRIPTORS as u32, batch);
        for tag in 0..DESCRIPTORS as u32 {
            assert!(q.push(&Descriptor { op: OP_NOTHING, ..to_card(tag, 0, 0, 0) }).unwrap());
        }
        let before = control.state().unwrap().dma_interrupts;
        q.submit(card.function()).unwrap();
        for _ in 0..DESCRIPTORS {
            assert_eq!(
                q.wait(card.function(), LIMIT).unwrap().expect("a completion").status,
                Status::Done
            );
        }
        // The last ones share one interrupt, however few they are; it follows them.
        let expected = DESCRIPTORS.div_ceil(TAKEN * u64::from(batch).div_ceil(TAKEN));
        let end = Instant::now() + LIMIT;
        while control.state().unwrap().dma_interrupts - before < expected && Instant::now() < end {
            std::thread::yield_now();
        }
        let ring = q.drain(card.function(), LIMIT, |_| panic!("nothing was left")).unwrap();
        card.function().free(&ring).unwrap();
        assert_eq!(
            control.state().unwrap().dma_interrupts - before,
            expected,
            "batches of {batch}"
        );
    }
}

#[test]
fn chains_have_one_completion_and_stop_where_they_fail() {
    let served = Served::new(1 << 20);
    let mut card = served.open();
    let memory = card.function().dma(1 << 20).unwrap();
    let data = pattern(3000, 2);
    memory.write(0, &data).unwrap();
    let mut q = queue(&mut card, 0, 8, 1);
    let host = memory.device_address();
    let piece = |tag, at: u64, flags| Descriptor { flags, ..to_card(tag, host + at, at, 1000) };
    // More rounds than the ring has places, so that it wraps.
    for round in 0..10 {
        for (tag, flags) in [(0, CHAIN), (1, CHAIN), (2, 0)] {
            assert!(q.push(&piece(3 * round + tag, 1000 * u64::from(tag), flags)).unwrap());
        }
        q.submit(card.function()).unwrap();
        let done = q.wait(card.function(), LIMIT).unwrap().unwrap();
        assert_eq!(
            done,
            Completion { tag: 3 * round + 2, status: Status::Done, retired: 3, bytes: 3000 }
        );
    }
    let mut seen = vec![0; 3000];
    card.mem_read(0, &mut seen).unwrap();
    assert_eq!(seen, data);
    // The second one fails, so the third is not executed.
    card.mem_write(0, &vec![0; 3000]).unwrap();
    for d in [
        piece(1, 0, CHAIN),
        Descriptor { card: 1 << 40, ..piece(2, 1000, CHAIN) },
        piece(3, 2000, 0),
    ] {
        assert!(q.push(&d).unwrap());
    }
    q.submit(card.function()).unwrap();
    let done = q.wait(card.function(), LIMIT).unwrap().unwrap();
    assert_eq!(done, Completion { tag: 2, status: Status::Card, retired: 3, bytes: 1000 });
    card.mem_read(0, &mut seen).unwrap();
    assert_eq!((&seen[..1000], &seen[2000..]), (&data[..1000], &vec![0; 1000][..]));
}

#[test]
fn each_descriptor_fails_by_itself_and_faults_are_recorded() {
    let served = Served::new(1 << 20);
    let mut card = served.open();
    let mut control = served.control();
    let memory = card.function().dma(1 << 20).unwrap();
    let host = memory.device_address();
    let mut q = queue(&mut card, 1, 4, 1);
    let cases = [
        (to_card(1, host, 0, 64), Status::Done, 64),
        (to_card(2, host - 64, 0, 128), Status::Host, 0),
        (to_host(3, host + (1 << 20) - 10, 0, 64), Status::Host, 0),
        (to_card(4, host, (1 << 20) - 10, 64), Status::Card, 0),
        (to_host(5, host, u64::MAX, 64), Status::Card, 0),
        (Descriptor { op: 9, ..to_card(6, host, 0, 64) }, Status::Malformed, 0),
        (Descriptor { flags: 0x80, ..to_card(7, host, 0, 64) }, Status::Malformed, 0),
        (Descriptor { op: OP_NOTHING, ..to_card(8, 0, 0, 0) }, Status::Done, 0),
        (to_card(9, host, 0, 0), Status::Done, 0),
        (to_host(10, host, 0, 64), Status::Done, 64),
    ];
    for (descriptor, status, moved) in cases {
        let done = one(&mut card, &mut q, descriptor);
        assert_eq!(
            (done.tag, done.status, done.bytes),
            (descriptor.tag, status, moved),
            "{descriptor:?}"
        );
    }
    let state = control.state().unwrap();
    assert_eq!(state.dma_faults, 2, "{:?}", state.first_dma_faults);
    assert!(state.first_dma_faults[0].contains("not mapped"), "{:?}", state.first_dma_faults);
    assert!(q.push(&to_card(1, host, 0, 64)).unwrap());
    control.fault(LinkFault::LoseInterrupt { count: 1 }).unwrap();
    q.submit(card.function()).unwrap();
    assert_eq!(
        q.wait(card.function(), LIMIT).unwrap().unwrap().status,
        Status::Done,
        "a lost interrupt costs time only"
    );
}

#[test]
fn a_full_queue_takes_no_more_and_cancelling_ends_what_is_in_it() {
    let served = Served::new(1 << 28);
    let mut card = served.open();
    // By message, so that nothing progresses while this program does not respond.
    let memory = card.function().dma_by_message(64 << 20).unwrap();
    let mut q = queue(&mut card, 3, 16, 4);
    for tag in 0..16 {
        assert!(q.push(&to_card(tag, memory.device_address(), 0, 64 << 20)).unwrap());
    }
    assert!(!q.push(&to_card(16, 0, 0, 0)).unwrap(), "full");
    assert_eq!((q.room(), q.pending()), (0, 16));
    q.cancel(card.function()).unwrap();
    let mut ends = Vec::new();
    // Control continues during the transfers.
    let mut first = queue(&mut card, 0, 2, 1);
    assert_eq!(
        one(&mut card, &mut first, Descriptor { op: OP_NOTHING, ..to_card(77, 0, 0, 0) }).tag,
        77
    );
    let ring = q.drain(card.function(), LIMIT, |c| ends.push((c.tag, c.status))).unwrap();
    assert_eq!(ends.iter().map(|(tag, _)| *tag).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
    assert!(
        ends.iter().filter(|(_, status)| *status == Status::Cancelled).count() >= 12,
        "{ends:?}"
    );
    // The same memory serves another queue, and old content is not mistaken for completions.
    let mut again = Queue::open(card.function(), 3, 16, ring, 4, 1).unwrap();
    assert_eq!(again.poll().unwrap(), None);
    assert_eq!(one(&mut card, &mut again, to_card(5, memory.device_address(), 0, 4096)).tag, 5);
}

#[test]
fn unmapping_reset_and_a_dropped_link_end_transfers() {
    let served = Served::new(1 << 28);
    let mut control = served.control();
    let mut card = served.open();
    let memory = card.function().dma(64 << 20).unwrap();
    let big = |tag| to_card(tag, memory.device_address(), 0, 64 << 20);
    // Unmapped in the middle of a transfer: the descriptor fails, the queue survives.
    let mut q = queue(&mut card, 0, 8, 1);
    for tag in 0..4 {
        q.push(&big(tag)).unwrap();
    }
    q.submit(card.function()).unwrap();
    card.function().free(&memory).unwrap();
    for tag in 0..4 {
        let done = q.wait(card.function(), LIMIT).unwrap().unwrap();
        assert_eq!(done.tag, tag);
        assert!(matches!(done.status, Status::Host | Status::Done), "{done:?}");
    }
    assert_eq!(one(&mut card, &mut q, big(9)).status, Status::Host);
    // The ring itself is unmapped: the queue fails, and reports it.
    let other = card.function().dma(4096).unwrap();
    let mut doomed = Queue::open(card.function(), 1, 2, other.clone(), 2, 1).unwrap();
    card.function().free(&other).unwrap();
    doomed.push(&to_card(0, 0, 0, 0)).unwrap();
    doomed.submit(card.function()).unwrap();
    assert_eq!(doomed.wait(card.function(), LIMIT).unwrap_err().code(), "SHEF-DEV-013");
    // A reset in the middle of a transfer: queues are off, and can be turned on again. By message,
    // so that no transfer finishes before it.
    let memory = card.function().dma_by_message(64 << 20).unwrap();
    for tag in 0..4 {
        q.push(&Descriptor { host: memory.device_address(), ..big(tag) }).unwrap();
    }
    q.submit(card.function()).unwrap();
    card.reset().unwrap();
    let end = loop {
        match q.wait(card.function(), LIMIT) {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert_eq!(end.unwrap_err().code(), "SHEF-DEV-013");
    let mut q = queue(&mut card, 0, 8, 1);
    assert_eq!(
        one(&mut card, &mut q, to_card(1, memory.device_address(), 0, 4096)).status,
        Status::Done
    );
    // Without bus mastering the card reaches nothing, and records that.
    let faults = control.state().unwrap().dma_faults;
    card.function().config_write(4, &[2, 0]).unwrap();
    q.push(&to_card(2, memory.device_address(), 0, 4096)).unwrap();
    q.submit(card.function()).unwrap();
    assert_eq!(q.wait(card.function(), LIMIT).unwrap_err().code(), "SHEF-DEV-013");
    assert!(control.state().unwrap().dma_faults > faults);
    card.function().config_write(4, &[6, 0]).unwrap();
    card.reset().unwrap();
    // The link drops in the middle of a transfer.
    let mut q = queue(&mut card, 0, 8, 1);
    for tag in 0..8 {
        q.push(&Descriptor { host: memory.device_address(), ..big(tag) }).unwrap();
    }
    q.submit(card.function()).unwrap();
    control.fault(LinkFault::LinkDrop).unwrap();
    let end = loop {
        match q.wait(card.function(), LIMIT) {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert_eq!(end.unwrap_err().code(), "SHEF-DEV-005");
    control.fault(LinkFault::None).unwrap();
    card.function().config_write(4, &[6, 0]).unwrap();
    let mut q = queue(&mut card, 0, 8, 1);
    assert_eq!(
        one(&mut card, &mut q, to_card(1, memory.device_address(), 0, 4096)).status,
        Status::Done
    );
}

#[test]
fn a_client_that_leaves_in_the_middle_leaves_nothing() {
    let served = Served::new(1 << 28);
    let mut control = served.control();
    for _ in 0..5 {
        let mut card = served.open();
        let memory = card.function().dma(64 << 20).unwrap();
        let mut q = queue(&mut card, 0, 8, 1);
        for tag in 0..8 {
            q.push(&to_card(tag, memory.device_address(), 0, 64 << 20)).unwrap();
        }
        q.submit(card.function()).unwrap();
    }
    let mut card = served.open();
    assert_eq!(control.state().unwrap().maps, 0);
    let memory = card.function().dma(4096).unwrap();
    let mut q = queue(&mut card, 0, 8, 1);
    assert_eq!(
        one(&mut card, &mut q, to_card(1, memory.device_address(), 0, 4096)).status,
        Status::Done
    );
}

#[test]
fn bulk_goes_through_a_ring_whole_and_again_after_faults() {
    let served = Served::new(1 << 26);
    let mut control = served.control();
    let mut card = served.open();
    // Sizes around the edges of window, places, batches and rounds.
    let place = 128 << 10;
    let lens = [
        RING_FROM - 1,
        RING_FROM,
        place - 1,
        place,
        place + 1,
        8 * place,
        48 * place,
        48 * place + 5,
        100 * place + 77,
    ];
    for (n, len) in lens.into_iter().enumerate() {
        let data = pattern(len, n as u64);
        let addr = 1000 * n as u64 + 3;
        card.mem_write(addr, &data).unwrap();
        // A register read waits until the data has arrived.
        card.ctl_read32(mailbox::STATUS).unwrap();
        let mut window = vec![0; len];
        card.function().bar_read(BAR_MEM, addr, &mut window).unwrap();
        assert!(window == data, "{len} bytes to the card");
        let mut back = vec![0; len];
        card.mem_read(addr, &mut back).unwrap();
        assert!(back == data, "{len} bytes from the card");
        assert_eq!(control.state().unwrap().maps, if n > 0 { 4 } else { 0 }, "{len} bytes");
    }
    let data = pattern(8 << 20, 99);
    let mut back = vec![0; data.len()];
    // One doorbell and about one interrupt per sixteen descriptors, and nothing else: no system
    // call for each.
    let before = control.state().unwrap();
    card.mem_write(0, &data).unwrap();
    card.ctl_read32(mailbox::STATUS).unwrap();
    let after = control.state().unwrap();
    let batches = (data.len() / place / 16) as u64;
    // Data and descriptors, some of them fetched twice.
    let (read, least) =
        (after.dma_read - before.dma_read, (data.len() + data.len() / place * 64) as u64);
    assert!((least..=least + (data.len() / place * 64) as u64).contains(&read), "{read} bytes");
    // On a busy machine a wait may end without an interrupt and poll the queue's status.
    let (accesses, interrupts) =
        (after.accesses - before.accesses, after.dma_interrupts - before.dma_interrupts);
    assert!(accesses <= batches + 10, "{accesses} accesses");
    assert!(interrupts <= 2 * batches, "{interrupts} interrupts");
    let mut goes = |card: &mut Card| {
        back.fill(0);
        card.mem_write(0, &data).unwrap();
        card.mem_read(0, &mut back).unwrap();
        assert!(back == data);
    };
    // A lost interrupt costs time only; poisoned data is an error, and the next transfer works.
    control.fault(LinkFault::LoseInterrupt { count: 2 }).unwrap();
    goes(&mut card);
    control.fault(LinkFault::Poison { count: 1000 }).unwrap();
    // The ring's registers are poisoned too.
    let error =
        card.mem_write(0, &data).and_then(|()| card.ctl_read32(mailbox::STATUS)).unwrap_err();
    assert!(["SHEF-DEV-005", "SHEF-DEV-013"].contains(&error.code()), "{error}");
    control.fault(LinkFault::None).unwrap();
    goes(&mut card);
    card.reset().unwrap();
    goes(&mut card);
    // A transfer that is lost without bus mastering is reported, and the next transfer turns bus
    // mastering on again; a removed card is reported as gone.
    card.function().config_write(4, &[2, 0]).unwrap();
    card.mem_write(0, &data[..1 << 20]).unwrap();
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap_err().code(), "SHEF-DEV-013");
    goes(&mut card);
    control.fault(LinkFault::LinkDrop).unwrap();
    assert_eq!(card.mem_read(0, &mut vec![0; 1 << 20]).unwrap_err().code(), "SHEF-DEV-005");
    assert_eq!(card.mem_write(0, &vec![0; 1 << 20]).unwrap_err().code(), "SHEF-DEV-005");
    control.fault(LinkFault::None).unwrap();
    card.reset().unwrap();
    goes(&mut card);
    drop(card);
    let _next = served.open();
    assert_eq!(control.state().unwrap().maps, 0);
}

#[test]
fn numbers_that_make_no_queue_are_refused() {
    let served = Served::new(1 << 20);
    let mut card = served.open();
    for (index, entries, bytes) in
        [(4, 8, 4096), (0, 3, 4096), (0, 1, 4096), (0, 8192, 1 << 20), (0, 64, 4096)]
    {
        let ring = card.function().dma(bytes).unwrap();
        let refused = Queue::open(card.function(), index, entries, ring, 1, 1).err();
        assert_eq!(
            refused.map(|e| e.code().to_owned()).as_deref(),
            Some("SHEF-DEV-013"),
            "{index} {entries} {bytes}"
        );
    }
}
