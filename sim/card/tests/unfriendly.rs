//! A seed makes memory, registers and initial contents unfriendly: an accelerator with a fault shows
//! it, one without computes the same. An accelerator that stops moving is described.

use std::path::{Path, PathBuf};

use shef_card::{BareCard, CardError, Design, RtlOptions, repository};

/// Registers of both accelerators.
const CTRL: u32 = 0x00;
const STATUS: u32 = 0x04;
const DONE: u32 = 2;
/// Registers of the faulty accelerator, and its jobs.
const RESULT: u32 = 0x08;
const WORD: u32 = 0x0c;
const WORKS: u32 = 0;
const DEADLOCK: u32 = 1;
const ORDER: u32 = 2;
const CONTENTS: u32 = 3;
const LIMIT: u64 = 4000;

/// Of all cards here, so that there is one build of each accelerator.
fn options(stalls: Option<u64>, contents: u64) -> RtlOptions {
    RtlOptions { stalls, contents: Some(contents), ..RtlOptions::default() }
}

fn card(folder: PathBuf, options: &RtlOptions) -> BareCard {
    let design = Design::project(&folder).unwrap_or_else(|e| panic!("{e}"));
    BareCard::new(&design, options, &mut |_| {}).unwrap_or_else(|e| panic!("{e}"))
}

/// The faulty accelerator, with 0x1111 and 0x2222 at the addresses that it reads.
fn faulty(options: &RtlOptions) -> BareCard {
    let mut card = card(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faulty"), options);
    card.mem_write(0, &0x1111_u32.to_le_bytes());
    card.mem_write(0x200, &0x2222_u32.to_le_bytes());
    card
}

fn job(card: &mut BareCard, number: u32) -> Result<u32, CardError> {
    card.run(CTRL, number, STATUS, DONE, LIMIT)?;
    card.reg_read(RESULT)
}

/// Runs the example, and compares its sums. Returns its cycles.
fn vecadd(options: &RtlOptions) -> u64 {
    const BLOCKS: u32 = 6;
    const BYTES: usize = 512 * BLOCKS as usize;
    let mut card = card(repository().join("examples/vecadd"), options);
    let words = |seed: u32| {
        let words = (0..BYTES as u32 / 4).map(move |i| (i ^ seed).wrapping_mul(0x9e37_79b1));
        words.collect::<Vec<_>>()
    };
    let bytes = |words: &[u32]| words.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<_>>();
    let (a, b) = (words(1), words(2));
    let sums: Vec<u32> = a.iter().zip(&b).map(|(x, y)| x.wrapping_add(*y)).collect();
    card.mem_write(0, &bytes(&a));
    card.mem_write(0x1_0000, &bytes(&b));
    card.check(None).unwrap();
    for (register, value) in [
        (0x08, BLOCKS),
        (0x10, 0),
        (0x14, 0x1_0000),
        (0x18, 0x2_0000),
        (0x1c, 0x3_0000),
        (0x20, 0x4_0000),
    ] {
        card.reg_write(register, value).unwrap();
    }
    let cycles = card.run(CTRL, 1, STATUS, DONE, 200_000).unwrap_or_else(|e| panic!("{e}"));
    let mut result = vec![0; BYTES];
    card.mem_read(0x3_0000, &mut result);
    assert!(result == bytes(&sums), "{options:?}");
    let checked = card.checked();
    assert_eq!((checked.reports, checked.lost), (Vec::new(), 0), "{options:?}");
    // Everything is answered, so nothing waits.
    let progress = card.progress();
    assert_eq!(progress.waits(), "no port waits");
    assert!(!progress.is_stuck(0));
    assert!(progress.ports[0].bursts.iter().all(|burst| burst.complete), "{progress}");
    // Two reads and two writes a block, one read more, and the last write.
    let number = |write| {
        let bursts = progress.ports[0].bursts.iter().filter(|b| b.burst.write == write);
        bursts.map(|b| b.burst.number).max().unwrap() + 1
    };
    assert_eq!((number(false), number(true)), (3 * BLOCKS, 2 * BLOCKS + 1));
    assert_eq!(checked.bursts, u64::from(number(false) + number(true)));
    cycles
}

#[test]
fn contents_show_a_register_that_nothing_set() {
    let result = |contents| job(&mut faulty(&options(None, contents)), CONTENTS).unwrap();
    assert_eq!(result(1), result(1), "a seed has one meaning");
    assert_ne!(result(1), result(2));
    let mut card = faulty(&options(None, 1));
    card.reg_write(WORD, 77).unwrap();
    assert_eq!(job(&mut card, CONTENTS).unwrap(), 77);
}

#[test]
fn stalls_show_a_master_that_expects_responses_in_order() {
    let result = |stalls| job(&mut faulty(&options(stalls, 1)), ORDER).unwrap();
    assert_eq!(result(None), 0x1111_2222, "a friendly memory answers in order");
    let results: Vec<u32> = (0..10).map(|seed| result(Some(seed))).collect();
    assert!(results.iter().all(|r| [0x1111_2222, 0x2222_1111].contains(r)), "{results:x?}");
    assert!(results.contains(&0x2222_1111) && results.contains(&0x1111_2222), "{results:x?}");
}

#[test]
fn an_accelerator_without_these_faults_computes_the_same() {
    let friendly = vecadd(&options(None, 1));
    let cycles: Vec<u64> = (0..5).map(|seed| vecadd(&options(Some(seed), seed + 1))).collect();
    assert!(cycles.iter().all(|cycles| *cycles > friendly), "{friendly}, {cycles:?}");
    assert!(cycles.windows(2).all(|two| two[0] != two[1]), "{cycles:?}");
}

/// Each port waits for the other one.
#[test]
fn a_deadlock_names_ports_bursts_and_signals() {
    let mut card = faulty(&options(None, 1));
    for _ in 0..3 {
        job(&mut card, WORKS).unwrap();
        assert_eq!(card.progress().waits(), "no port waits");
    }
    let error = job(&mut card, DEADLOCK).unwrap_err().to_string();
    let progress = card.progress();
    let since = |port: usize| progress.ports[port].waits[0].since;
    let waits = format!(
        "port 0: R of burst 3 offered since cycle {}, RREADY low (memory waits for the \
         accelerator); port 1: B of burst 3 offered since cycle {}, BREADY low (memory waits for \
         the accelerator)",
        since(0),
        since(1)
    );
    assert!(error.ends_with(&format!("did not finish in {LIMIT} cycles: {waits}")), "{error}");
    assert!(progress.is_stuck(LIMIT - 1000) && !progress.is_stuck(LIMIT + 1000), "{progress}");
    let text = progress.to_string();
    assert!(text.starts_with(&format!("cycle {}: {waits}\n", progress.cycle)), "{text}");
    for line in [
        "\nport 0: read 2 of id 0x01: 2 beat(s) of 64 bytes at 0x200: 2 transferred, complete at",
        "\nport 0: read 3 of id 0x01: 2 beat(s) of 64 bytes at 0x200: 0 transferred, last transfer",
        "\nport 1: write 3 of id 0x00: 1 beat(s) of 64 bytes at 0x10000: 1 transferred, last",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    // A memory that does not answer is named as well.
    let mut card = faulty(&RtlOptions { memory_latency: Some(100_000), ..options(None, 1) });
    let error = job(&mut card, ORDER).unwrap_err().to_string();
    assert!(error.contains("port 0: R of burst 0 awaited since cycle "), "{error}");
    assert!(error.ends_with(", RVALID low (the accelerator waits for memory)"), "{error}");
}
