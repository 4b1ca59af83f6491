//! The generated register maps match RTL and model: every item answers according to its access
//! type, every other address with an error.

use shef_regs::{Access, Item, ctl, krn};
use shef_tb::{Bench, ModelBench, RtlBench, design};
use std::collections::BTreeSet;

const SHIELD: &str = include_str!("shield.toml");

fn check(bench: &mut dyn Bench, map: &str, items: &[Item], size: u32) {
    let read = |b: &mut dyn Bench, a| if map == "ctl" { b.ctl_read(a) } else { b.krn_read(a) };
    let write =
        |b: &mut dyn Bench, a, v| if map == "ctl" { b.ctl_write(a, v) } else { b.krn_write(a, v) };
    let mut listed = BTreeSet::new();
    for i in items {
        for offset in (i.offset..i.offset + i.bytes).step_by(4) {
            listed.insert(offset);
            let value = read(bench, offset);
            assert_eq!(
                value.is_ok(),
                i.access != Access::W,
                "{map} read of {} at {offset:#x}: {value:?}",
                i.name
            );
            if let (Ok(value), Some(reset)) = (&value, i.reset) {
                assert_eq!(*value, reset, "{map} reset value of {}", i.name);
            }
            if i.access == Access::R {
                assert!(
                    write(bench, offset, 0xffff_ffff).is_err(),
                    "{map} write of read-only {} at {offset:#x}",
                    i.name
                );
                assert_eq!(
                    read(bench, offset).ok(),
                    value.ok(),
                    "{map} {} changed by a write",
                    i.name
                );
            }
        }
    }
    let around = listed.iter().flat_map(|o| [o.wrapping_sub(4), o + 4]);
    for hole in around
        .chain((0..size).step_by(0x400))
        .chain([size - 4])
        .filter(|o| *o < size && !listed.contains(o))
    {
        assert!(read(bench, hole).is_err(), "{map} read of the hole at {hole:#x}");
        assert!(write(bench, hole, 1).is_err(), "{map} write of the hole at {hole:#x}");
    }
}

fn scrubbed(bench: &mut dyn Bench) {
    for _ in 0..1000 {
        if ctl::STATUS_STATE.get(bench.ctl_read(ctl::STATUS).unwrap()) == ctl::STATUS_STATE_EMPTY {
            return;
        }
        bench.wait();
    }
    panic!("the Shield is not ready for a seed");
}

fn both_maps(bench: &mut dyn Bench, digest: [u8; 32]) {
    scrubbed(bench);
    check(bench, "ctl", ctl::ITEMS, ctl::SIZE);
    check(bench, "krn", krn::ITEMS, krn::SIZE);
    for (offset, word) in (ctl::CONFIG_DIGEST..).step_by(4).zip(digest.chunks(4)) {
        let want = u32::from_le_bytes(word.try_into().unwrap());
        assert_eq!(bench.ctl_read(offset).unwrap(), want, "configuration digest at {offset:#x}");
    }
}

#[test]
fn rtl() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("registers");
    let (spec, config) = design(SHIELD, &dir).unwrap();
    let lib = shef_rtl::build(&spec).unwrap();
    both_maps(&mut RtlBench::new(&lib, &config, None).unwrap(), config.digest());
}

#[test]
fn model() {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("registers");
    let (_, config) = design(SHIELD, &dir).unwrap();
    both_maps(&mut ModelBench::new(&config), config.digest());
}
