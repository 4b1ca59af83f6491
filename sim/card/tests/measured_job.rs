//! A measured job: its end is the first cycle in which a read of the status register returns it, and
//! nothing changes by measuring.

mod common;

use shef_card::check::DoneRegister;
use shef_card::measure::{EXACT, Measured, MeasuredJob};
use shef_card::{BareCard, CardError, Design, RtlOptions, repository};

const CTRL: u16 = 0x00;
const STATUS: u16 = 0x04;
const DONE: u32 = 2;
const BLOCKS: u64 = 6;
const BYTES: u64 = 512 * BLOCKS;
const WRITES: [(u32, u32); 6] = [
    (0x08, BLOCKS as u32),
    (0x10, 0),
    (0x14, 0x1_0000),
    (0x18, 0x2_0000),
    (0x1c, 0x3_0000),
    (0x20, 0x7_0000),
];

fn job() -> MeasuredJob {
    let done = DoneRegister { offset: STATUS, mask: DONE, value: DONE };
    // The first operand, and the rest of card memory.
    let regions = vec![0..0x1_0000, 0x1_0000..0x8_0000];
    MeasuredJob { writes: WRITES.len() as u64, start: CTRL, done, regions, copies: EXACT }
}

fn vecadd(latency: u64) -> BareCard {
    let design = Design::project(&repository().join("examples/vecadd")).unwrap();
    let options = RtlOptions { memory_latency: Some(latency), ..RtlOptions::default() };
    BareCard::new(&design, &options, &mut |_| {}).unwrap()
}

fn start(card: &mut BareCard) {
    for (register, value) in WRITES {
        card.reg_write(register, value).unwrap();
    }
    card.reg_write(CTRL.into(), 1).unwrap();
}

fn is_done(card: &mut BareCard) -> bool {
    card.reg_read(STATUS.into()).unwrap() & DONE != 0
}

/// Runs the job, polled every `every` cycles. Returns what was measured.
fn measured(latency: u64, every: u64) -> Measured {
    let mut card = vecadd(latency);
    card.measure(job()).unwrap();
    start(&mut card);
    while !is_done(&mut card) {
        card.step(every);
    }
    card.measured().unwrap()
}

#[test]
fn the_end_is_the_first_cycle_in_which_a_read_returns_it() {
    for latency in [1, 40] {
        let found = measured(latency, 64);
        assert_eq!(found.within, 1);
        // A read whose AR is accepted in this cycle; a card for each, as a read takes some.
        for (cycles, done) in
            [(found.cycles - 2, false), (found.cycles - 1, false), (found.cycles, true)]
        {
            let mut card = vecadd(latency);
            start(&mut card);
            let left = found.start + cycles - card.cycles();
            card.step(left);
            assert_eq!(is_done(&mut card), done, "{cycles} of {found:?}");
        }
    }
}

#[test]
fn polls_do_not_change_what_is_measured() {
    let found = measured(40, 1);
    assert_eq!(found, measured(40, 1000));
    let [port] = found.counts.ports.as_slice() else { panic!("{found:?}") };
    // Two operands; the scratch is written and read, and the result and the progress are written.
    assert_eq!(port.reads.bursts.bytes, 3 * BYTES);
    assert_eq!(port.reads.beats * 64, 3 * BYTES);
    assert_eq!(found.counts.regions[0].reads.bytes, BYTES);
    let [one, other] = [0, 1].map(|k| found.counts.regions[k]);
    assert_eq!(one.reads.count + other.reads.count, port.reads.bursts.count);
    assert_eq!(one.writes.count + other.writes.count, port.writes.bursts.count);
    assert_eq!(port.reads.bursts.answered, port.reads.bursts.count);
    assert_eq!(port.writes.bursts.answered, port.writes.bursts.count);
    // The memory answers reads after its latency.
    assert!(port.reads.bursts.cycles >= 40 * port.reads.bursts.count, "{port:?}");
    assert!(port.stalled + port.reads.beats <= found.cycles, "{port:?}");
}

#[test]
fn a_measured_run_has_the_cycles_of_another() {
    let [mut one, mut other] = [vecadd(40), vecadd(40)];
    one.measure(job()).unwrap();
    for card in [&mut one, &mut other] {
        start(card);
        while !is_done(card) {
            card.step(7);
        }
    }
    assert_eq!(one.cycles(), other.cycles());
    assert_eq!(one.beats(), other.beats());
}

#[test]
fn a_job_that_did_not_run_is_not_measured() {
    let mut card = vecadd(40);
    let none = |result: Result<Measured, CardError>| {
        let error = result.unwrap_err();
        assert_eq!(error.code(), "SHEF-RTL-029", "{error}");
        error.to_string()
    };
    none(card.measured());
    card.measure(MeasuredJob { start: 0x08, ..job() }).unwrap();
    start(&mut card);
    let text = none(card.measured());
    assert!(
        text.contains("expected the start at register 0x8, found a write of register 0x0"),
        "{text}"
    );
    let (model, _) = common::make().unwrap();
    let design = Design::project(&repository().join("examples/vecadd")).unwrap();
    let error = model.probe().measure(&design, job(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("use the RTL"), "{error}");
}
