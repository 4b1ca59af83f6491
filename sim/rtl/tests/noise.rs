//! `shef_noise`: the health tests of SP 800-90B have exact cut-offs, and pass good noise.

use shef_rtl::agent::Rng;
use shef_rtl::{DesignSpec, Sim, build_once, counted, module_spec};
use std::path::Path;

const START_UP: usize = 4096;
const REPETITION_CUTOFF: usize = 61;
const WINDOW: usize = 1024;
const PROPORTION_CUTOFF: usize = 810;
const SILENCE: u64 = 1 << 20;
const REPETITION: u64 = 1;
const PROPORTION: u64 = 2;
const SILENT: u64 = 4;
const LAG: u64 = 8;
/// The longest pattern, in bits, that is detected.
const LAGS: usize = 16;

struct Noise(Sim);

impl Noise {
    fn new() -> Self {
        let spec = counted(module_spec("shef_noise").expect("sources"));
        let lib = build_once(&spec).expect("model");
        let mut sim = Sim::new(lib).expect("instance");
        sim.reset("rst_ni", 2);
        Self(sim)
    }

    fn bit(&mut self, bit: bool) {
        self.0.poke("noise_valid_i", 1);
        self.0.poke("noise_bit_i", bit.into());
        self.0.tick();
        self.0.poke("noise_valid_i", 0);
    }

    /// The same, reading each word in the cycle in which it arrives.
    fn read(mut self) -> Self {
        self.0.poke("word_ready_i", 1);
        self
    }

    /// Feeds bits until the first alarm; returns their number and the alarm.
    fn until_alarm(&mut self, bits: impl IntoIterator<Item = bool>) -> Option<(usize, u64)> {
        for (n, bit) in bits.into_iter().enumerate() {
            self.bit(bit);
            if self.alarm() != 0 {
                return Some((n + 1, self.alarm()));
            }
        }
        None
    }

    fn alarm(&self) -> u64 {
        self.0.peek("alarm_o")
    }

    fn tested(&self) -> bool {
        self.0.peek("tested_o") == 1
    }

    fn word(&mut self) -> Option<u32> {
        let word = (self.0.peek("word_valid_o") == 1).then(|| self.0.peek("word_o") as u32);
        assert!(word.is_some() || self.0.peek("word_o") == 0);
        self.0.poke("word_ready_i", 1);
        self.0.tick();
        self.0.poke("word_ready_i", 0);
        word
    }
}

fn fair(seed: u64) -> impl Iterator<Item = bool> {
    let mut rng = Rng::new(seed);
    std::iter::repeat_with(move || rng.next_u64() >> 63 == 1)
}

/// A window that begins and ends with `true`, contains `equal` of them in irregular order, and
/// repeats no bit 61 times.
fn window(equal: usize) -> Vec<bool> {
    let mut rng = Rng::new(equal as u64);
    let mut bits: Vec<bool> = (0..WINDOW).map(|n| n < equal).collect();
    loop {
        for n in (2..WINDOW).rev() {
            bits.swap(n, 1 + rng.below(n as u64) as usize);
        }
        let runs = || bits.chunk_by(|a, b| a == b).map(<[bool]>::len);
        if bits[WINDOW - 1] && runs().max() < Some(REPETITION_CUTOFF) {
            return bits;
        }
    }
}

#[test]
fn a_fair_source_gives_its_bits_in_order_after_the_start_up_test() {
    for seed in 1..=8 {
        let mut noise = Noise::new();
        let mut bits = fair(seed);
        for n in 0..START_UP {
            assert!(!noise.tested(), "tested after {n} bits");
            noise.bit(bits.next().unwrap());
        }
        assert!(noise.tested());
        assert_eq!(noise.word(), None, "bits of the start-up test leave");
        for n in 0..300 {
            let expected = (0..32).fold(0, |word, _| {
                let bit = bits.next().unwrap();
                noise.bit(bit);
                word << 1 | u32::from(bit)
            });
            if n % 3 == 0 {
                // Bits that arrive while a word waits belong to no word.
                for bit in bits.by_ref().take(n) {
                    noise.bit(bit);
                }
            }
            assert_eq!(noise.word(), Some(expected), "word {n} of seed {seed}");
            assert_eq!(noise.word(), None);
        }
        assert_eq!(noise.alarm(), 0);
    }
}

#[test]
fn the_repetition_count_fails_at_61_equal_bits() {
    for (value, before) in [(false, 0), (true, 0), (true, 17), (false, 5000)] {
        let mut noise = Noise::new();
        assert_eq!(noise.until_alarm(fair(3).take(before)), None);
        // Runs of 60 are good.
        noise.bit(!value);
        for _ in 0..3 {
            assert_eq!(noise.until_alarm(vec![value; REPETITION_CUTOFF - 1]), None);
            noise.bit(!value);
        }
        assert_eq!(noise.until_alarm(vec![value; 100]), Some((REPETITION_CUTOFF, REPETITION)));
        assert!(!noise.tested());
    }
}

#[test]
fn the_proportion_fails_at_810_of_1024() {
    let mut noise = Noise::new();
    for _ in 0..6 {
        assert_eq!(noise.until_alarm(window(PROPORTION_CUTOFF - 1)), None);
    }
    assert!(noise.tested());
    assert_eq!(noise.until_alarm(window(PROPORTION_CUTOFF)), Some((WINDOW, PROPORTION)));
    // The same with zeros, as soon as the count is full.
    let mut noise = Noise::new();
    let (at, alarm) = noise.until_alarm(window(900).into_iter().map(|bit| !bit)).expect("an alarm");
    assert_eq!(alarm, PROPORTION);
    assert_eq!(window(900)[..at].iter().filter(|bit| **bit).count(), PROPORTION_CUTOFF);
    // Seven equal bits of ten are within the assumed half bit of entropy.
    let mut rng = Rng::new(5);
    assert_eq!(Noise::new().until_alarm((0..50_000).map(|_| rng.below(10) < 7)), None);
    // Seven of eight are not.
    assert!(Noise::new().until_alarm((0..50_000).map(|_| rng.below(8) != 0)).is_some());
}

#[test]
fn a_pattern_that_repeats_is_noticed() {
    // Alternating bits and every other pattern that passes the two tests of SP 800-90B.
    let mut rng = Rng::new(11);
    let mut patterns = vec![vec![false, true]];
    for len in 3..=LAGS {
        // An almost equal number of ones and zeros, in random order; and all ones before all zeros.
        let even: Vec<bool> = (0..len).map(|i| i < len / 2).collect();
        let mut mixed = even.clone();
        for i in (1..len).rev() {
            mixed.swap(i, rng.below(i as u64 + 1) as usize);
        }
        patterns.extend([even, mixed]);
    }
    for pattern in &patterns {
        let mut noise = Noise::new();
        let alarm = noise.until_alarm(pattern.iter().copied().cycle().take(START_UP));
        let (at, alarm) = alarm.unwrap_or_else(|| panic!("{pattern:?} passed"));
        assert_eq!(alarm & LAG, LAG, "{pattern:?}");
        assert!(at < PROPORTION_CUTOFF + LAGS + 1, "{pattern:?}: {at}");
        assert!(!noise.tested());
    }
    // A pattern and its complement alternating, up to half as long.
    let turned = (0..START_UP).map(|i| (i % 8).is_multiple_of(3) != (i / 8 % 2 == 0));
    assert_eq!(Noise::new().until_alarm(turned).map(|(_, alarm)| alarm), Some(LAG));
    // One changed bit of eight is too few; three of ten are within the assumed half bit of entropy.
    let mut wrong = |of: u64, less: u64| {
        let mut last = false;
        let mut noise = Noise::new();
        noise.until_alarm((0..50_000).map(|_| {
            last = last == (rng.below(of) < less);
            last
        }))
    };
    assert_eq!(wrong(8, 1).map(|(_, alarm)| alarm), Some(LAG));
    assert_eq!(wrong(10, 3), None);
}

#[test]
fn words_that_are_read_hide_no_bit_from_the_tests() {
    // A reader that takes each word at once, or one that takes a word after 40 bits. Good bits for
    // whole and partial words come first, so that a word is read at each position of the failing
    // pattern.
    for start in [0, 7, 16, 31] {
        let begun = |waits: bool| {
            let mut noise = Noise::new();
            assert_eq!(noise.until_alarm(fair(3).take(START_UP + start)), None);
            if waits {
                assert_eq!(noise.until_alarm(fair(4).take(40)), None);
            }
            // The window ends here.
            let rest = WINDOW - (start + if waits { 40 } else { 0 });
            let mut noise = noise.read();
            assert_eq!(noise.until_alarm(fair(5).take(rest - 1).chain([true])), None);
            noise
        };
        for waits in [false, true] {
            assert_eq!(
                begun(waits).until_alarm(vec![false; 100]),
                Some((REPETITION_CUTOFF, REPETITION)),
                "{start}"
            );
            assert_eq!(
                begun(waits).until_alarm(window(PROPORTION_CUTOFF)),
                Some((WINDOW, PROPORTION)),
                "{start}"
            );
            assert_eq!(begun(waits).until_alarm(window(PROPORTION_CUTOFF - 1)), None, "{start}");
            // Each bit equals the one two before it, with one exception.
            let alternate = (0..WINDOW).map(|n| n % 2 == 0);
            let (at, alarm) = begun(waits).until_alarm(alternate).expect("an alarm");
            assert_eq!(alarm & LAG, LAG, "{start}");
            assert!(at <= PROPORTION_CUTOFF + 2, "{start}: {at}");
        }
    }
    // Silence is counted from bit to bit, whatever is read between them.
    let mut noise = Noise::new().read();
    assert_eq!(noise.until_alarm(fair(3).take(START_UP + 64)), None);
    noise.0.run(SILENCE - 1);
    assert_eq!(noise.alarm(), 0);
    noise.0.tick();
    assert_eq!(noise.alarm(), SILENT);
}

#[test]
fn fair_sources_raise_no_alarm() {
    // Two million bits: a false alarm is expected once in 2^26 windows at most.
    for seed in 1..=4 {
        assert_eq!(Noise::new().until_alarm(fair(seed).take(500_000)), None, "seed {seed}");
    }
}

#[test]
fn a_silent_source_is_noticed() {
    let mut noise = Noise::new();
    noise.bit(true);
    noise.0.run(SILENCE - 1);
    assert_eq!(noise.alarm(), 0);
    noise.bit(false);
    noise.0.run(SILENCE - 1);
    assert_eq!(noise.alarm(), 0);
    noise.0.tick();
    assert_eq!(noise.alarm(), SILENT);
    // A source that never starts, too.
    let mut noise = Noise::new();
    noise.0.run(SILENCE + 2);
    assert_eq!(noise.alarm(), SILENT);
}

#[test]
fn an_alarm_ends_everything_until_a_wipe_begins_anew() {
    let mut noise = Noise::new();
    let mut bits = fair(9);
    for bit in bits.by_ref().take(START_UP + 32) {
        noise.bit(bit);
    }
    assert_eq!(noise.0.peek("word_valid_o"), 1);
    assert!(noise.until_alarm(vec![true; 100]).is_some());
    assert_eq!((noise.word(), noise.tested()), (None, false));
    for bit in bits.by_ref().take(3 * START_UP) {
        noise.bit(bit);
        assert!(!noise.tested() && noise.0.peek("word_valid_o") == 0);
    }
    assert_eq!(noise.alarm(), REPETITION);
    noise.0.poke("wipe_i", 1);
    noise.0.tick();
    noise.0.poke("wipe_i", 0);
    assert_eq!(noise.alarm(), 0);
    for bit in bits.by_ref().take(START_UP - 1) {
        noise.bit(bit);
    }
    assert!(!noise.tested());
    noise.bit(bits.next().unwrap());
    assert!(noise.tested());
}

/// In the shell of AWS F2 no input changes what the source states: not from a seed, never measured.
/// One clock stands for all three here: a bit is the parity of 511 samples of a wave of two cycles.
#[test]
fn the_source_of_f2_states_that_it_was_never_measured() {
    const CELLS: &str = "`default_nettype none
module MMCME4_BASE #(
    parameter real CLKIN1_PERIOD = 0.0, CLKFBOUT_MULT_F = 1.0, CLKOUT0_DIVIDE_F = 1.0,
    parameter int DIVCLK_DIVIDE = 1
) (
    input wire logic CLKIN1, CLKFBIN, PWRDWN, RST,
    output logic CLKFBOUT, CLKFBOUTB, CLKOUT0, CLKOUT0B, CLKOUT1, CLKOUT1B, CLKOUT2, CLKOUT2B,
        CLKOUT3, CLKOUT3B, CLKOUT4, CLKOUT5, CLKOUT6, LOCKED
);
  assign CLKOUT0 = CLKIN1;
  assign LOCKED = !RST;
  assign {CLKFBOUT, CLKFBOUTB, CLKOUT0B, CLKOUT1, CLKOUT1B, CLKOUT2, CLKOUT2B, CLKOUT3, CLKOUT3B,
      CLKOUT4, CLKOUT5, CLKOUT6} = '0;
endmodule
`default_nettype wire
";
    const BUFFER: &str = "`default_nettype none
module BUFGCE (input wire logic I, CE, output logic O);
  assign O = I;
endmodule
`default_nettype wire
";
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("noise of f2");
    std::fs::create_dir_all(&folder).expect("folder");
    std::fs::write(folder.join("MMCME4_BASE.sv"), CELLS).expect("cell");
    std::fs::write(folder.join("BUFGCE.sv"), BUFFER).expect("cell");
    let spec = DesignSpec::new("shef_f2_noise").search(&folder).search("shell-rtl/shell/aws_f2");
    let mut sim = Sim::new(build_once(&spec).expect("model")).expect("instance");
    let (mut rng, mut bits) = (Rng::new(1), Vec::new());
    for cycle in 0..20_000 {
        if cycle < 10_000 {
            sim.poke("rst_ni", u64::from(rng.next_u64() % 16 != 0));
        } else {
            sim.poke("rst_ni", u64::from(cycle > 10_010));
            bits.extend((sim.peek("valid_o") == 1).then(|| sim.peek("bit_o")));
        }
        let states = (sim.peek("seeded_o"), sim.peek("unmeasured_o"));
        assert_eq!(states, (0, 1), "cycle {cycle}");
        sim.poke("kernel_clk_i", 1);
        sim.tick();
        sim.poke("kernel_clk_i", 0);
        sim.eval();
    }
    assert!(bits.len() >= 18 && bits.windows(2).all(|pair| pair[0] != pair[1]), "{bits:?}");
}
