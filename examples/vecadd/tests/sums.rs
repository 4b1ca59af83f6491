//! The accelerator without a Shield, at several timings of its memory: the sums are those of Rust, and
//! it keeps the rules of its ports.

use std::error::Error;
use std::path::Path;

use shef_card::check::DoneRegister;
use shef_card::{BareCard, Design, RtlOptions};

/// Blocks of 512 bytes in a job.
const BLOCKS: u32 = 4;
/// Cycles that a job may take.
const LIMIT: u64 = 1_000_000;

fn bytes(words: impl Iterator<Item = u32>) -> Vec<u8> {
    words.flat_map(u32::to_le_bytes).collect()
}

#[test]
fn sums_are_right_at_every_timing() -> Result<(), Box<dyn Error>> {
    let design = Design::project(Path::new(env!("CARGO_MANIFEST_DIR")))?;
    let base = |name: &str| {
        let region = design.config().region_by_name(name);
        region.map(|region| region.base).ok_or_else(|| format!("no region {name}"))
    };
    let words = BLOCKS * 128;
    for seed in 1..=4 {
        // The seed varies the memory's timing, and what registers contain at the start.
        let options =
            RtlOptions { stalls: Some(seed), contents: Some(seed), ..RtlOptions::default() };
        let mut card = BareCard::new(&design, &options, &mut |text| eprintln!("{text}"))?;
        card.check(Some(DoneRegister { offset: 0x04, mask: 2, value: 2 }))?;
        let (a, b) = (|i: u32| i.wrapping_mul(0x9e37_79b9), |i: u32| i ^ seed as u32);
        card.mem_write(base("a0")?, &bytes((0..words).map(a)));
        card.mem_write(base("b0")?, &bytes((0..words).map(b)));
        let registers =
            [(0x10, "a0"), (0x14, "b0"), (0x18, "sums"), (0x1c, "result0"), (0x20, "progress")];
        card.reg_write(0x08, BLOCKS)?;
        for (offset, region) in registers {
            card.reg_write(offset, base(region)? as u32)?;
        }
        card.run(0x00, 1, 0x04, 2, LIMIT)?;
        let mut sums = vec![0; 4 * words as usize];
        card.mem_read(base("result0")?, &mut sums);
        assert_eq!(sums, bytes((0..words).map(|i| a(i).wrapping_add(b(i)))), "seed {seed}");
        let reports = card.checked().reports;
        assert!(reports.is_empty(), "seed {seed}: {}", reports[0]);
    }
    Ok(())
}
