//! Resources and performance of a Shield: area, bytes per cycle, memory in addition to the data,
//! and the life of counters and keys.
//!
//! Area starts from the synthesised blocks ([`Basis::Measured`], the table in `docs/evaluation.md`
//! or that of `cargo xtask area`); everything else is [`Basis::Estimate`]. Bytes per cycle are a
//! model: those of reads agree with every point of `cargo xtask evaluate --sweep` to 15 %, those of
//! writes with the measured tables of that page to about a fifth.

use crate::shield::{Sbox, Synthesis};
use serde::{Deserialize, Serialize};
use shef_proto::config::{Config, MAX_KEY_BLOCKS, Mode, Region, Set, TAG_LEN};

/// Source of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Synthesised unchanged (`cargo xtask area`).
    Measured,
    /// Computed from sizes, or scaled from a measured block.
    Estimate,
}

/// Resources of an UltraScale+ device.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Area {
    /// LUTs, without those used as memory.
    pub lut: u64,
    /// Flip-flops.
    pub ff: u64,
    /// Block RAMs of 36 Kbit.
    pub ramb36: f64,
    /// UltraRAMs of 288 Kbit.
    pub uram: u64,
    /// DSP slices.
    pub dsp: u64,
}

impl Area {
    const fn new(lut: u64, ff: u64, ramb36: f64, uram: u64, dsp: u64) -> Self {
        Self { lut, ff, ramb36, uram, dsp }
    }

    fn plus(self, o: Self) -> Self {
        Self {
            lut: self.lut + o.lut,
            ff: self.ff + o.ff,
            ramb36: self.ramb36 + o.ramb36,
            uram: self.uram + o.uram,
            dsp: self.dsp + o.dsp,
        }
    }
}

/// One part of the Shield.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Block {
    /// Description.
    pub name: String,
    /// Engine set of the block; absent for the control plane.
    pub set: Option<usize>,
    /// Its resources.
    #[serde(flatten)]
    pub area: Area,
    /// Source of the figures.
    pub basis: Basis,
}

/// Bytes per cycle, memory and life of one region. All of these are estimates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegionEstimate {
    /// Name.
    pub name: String,
    /// Mode.
    pub mode: &'static str,
    /// Sequential reads in whole chunks, many outstanding, bytes per cycle.
    pub sequential_read: f64,
    /// Sequential writes; absent for `input`.
    pub sequential_write: Option<f64>,
    /// Random reads of 64 bytes, 32 outstanding, that are not on chip.
    pub random_read: f64,
    /// Bytes of data.
    pub data_bytes: u64,
    /// Bytes of tags.
    pub tag_bytes: u64,
    /// Bytes of tree nodes.
    pub node_bytes: u64,
    /// Beats on the memory bus for tags and nodes, per hundred beats of data, in sequence.
    pub bus_percent: f64,
    /// Seconds until the version counter of one chunk that is rewritten without pause is exhausted;
    /// absent if versions are epochs.
    pub counter_seconds: Option<f64>,
    /// Seconds of sealing at full load until the region's key has sealed its 2^48 blocks; absent if
    /// the Shield seals nothing.
    pub key_seconds: Option<f64>,
}

/// The complete estimate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Clock for the figures in seconds.
    pub clock_mhz: f64,
    /// Memory latency, cycles from a request to its first beat.
    pub latency: u64,
    /// Every block.
    pub blocks: Vec<Block>,
    /// Sum of all blocks.
    pub total: Area,
    /// Every region.
    pub regions: Vec<RegionEstimate>,
}

/// Area of the blocks of a Shield.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// Blocks of the control plane, once in every Shield: module, name, area.
    control: Vec<(&'static str, &'static str, Area, Basis)>,
    /// One AES round of four lanes.
    aes_round_x4: Area,
    /// The same with its S-boxes in block RAM.
    aes_round_ram_x4: (Area, Basis),
    /// GHASH of four lanes.
    ghash_x4: Area,
    /// Directory, split, queues, tag lines, write path, memory port of a set.
    set_rest: (Area, Basis),
    /// Tree walker, without root table and node caches.
    tree: (Area, Basis),
    /// Chunk cache, without its data.
    cache: (Area, Basis),
}

impl Default for Figures {
    /// The table of `docs/evaluation.md`, and estimates for everything else.
    fn default() -> Self {
        use Basis::{Estimate, Measured};
        Self {
            control: vec![
                ("shef_p256", "P-256", Area::new(2640, 863, 0.0, 0, 16), Measured),
                ("shef_hmac", "SHA-256, HMAC", Area::new(1657, 1386, 0.0, 0, 0), Measured),
                (
                    "shef_gcm_iter",
                    "AES-GCM of the control plane",
                    Area::new(1973, 1028, 0.0, 0, 0),
                    Measured,
                ),
                (
                    "shef_seq",
                    "sequencer and microprogram",
                    Area::new(1862, 422, 0.5, 0, 0),
                    Measured,
                ),
                ("", "registers, key ports, boundary", Area::new(5000, 4000, 2.0, 0, 0), Estimate),
            ],
            aes_round_x4: Area::new(3278, 512, 0.0, 0, 0),
            aes_round_ram_x4: (Area::new(1230, 0, 16.0, 0, 0), Estimate),
            ghash_x4: Area::new(20823, 6182, 14.5, 0, 0),
            set_rest: (Area::new(13_000, 12_000, 0.0, 0, 0), Estimate),
            tree: (Area::new(3500, 4000, 0.0, 0, 0), Estimate),
            cache: (Area::new(3000, 3000, 2.0, 0, 0), Estimate),
        }
    }
}

/// The parts used of `shell-rtl/area.toml`.
#[derive(Deserialize)]
struct Table {
    #[serde(default)]
    block: Vec<TableBlock>,
}

#[derive(Deserialize)]
struct TableBlock {
    name: String,
    whole: Area,
}

impl Figures {
    /// With the blocks that this repository's table has.
    ///
    /// # Errors
    /// As [`Figures::with_table`].
    pub fn shipped() -> Result<Self, String> {
        Self::default().with_table(include_str!("../../area.toml"))
    }

    /// Replaces the figures here with those of the table of `cargo xtask area`
    /// (`shell-rtl/area.toml`, of a Shield with four lanes).
    ///
    /// # Errors
    /// The text is not such a table.
    pub fn with_table(mut self, text: &str) -> Result<Self, String> {
        let table: Table = toml::from_str(text).map_err(|e| e.to_string())?;
        let whole = |name: &str| table.block.iter().find(|b| b.name == name).map(|b| b.whole);
        for (module, _, area, basis) in &mut self.control {
            if let Some(found) = whole(module) {
                (*area, *basis) = (found, Basis::Measured);
            }
        }
        self.aes_round_x4 = whole("shef_aes_stage").unwrap_or(self.aes_round_x4);
        if let Some(found) = whole("shef_aes_stage, S-boxes in RAM") {
            self.aes_round_ram_x4 = (found, Basis::Measured);
        }
        self.ghash_x4 = whole("shef_ghash").unwrap_or(self.ghash_x4);
        // Their memories depend on the configuration and are counted separately.
        let logic = |a: Area| Area { ramb36: 0.0, uram: 0, ..a };
        if let (Some(set), Some(crypto)) = (whole("shef_set"), whole("shef_gcm")) {
            let rest = Area {
                lut: set.lut.saturating_sub(crypto.lut),
                ff: set.ff.saturating_sub(crypto.ff),
                ..Area::default()
            };
            self.set_rest = (rest, Basis::Measured);
        }
        if let Some(tree) = whole("shef_tree") {
            self.tree = (logic(tree), Basis::Measured);
        }
        if let Some(cache) = whole("shef_cache") {
            self.cache = (logic(cache), Basis::Measured);
        }
        Ok(self)
    }
}

/// Rounds of AES-256.
const AES_ROUNDS: u64 = 14;
/// Block RAM of the node cache of one tree level.
const TREE_LEVEL_RAMB36: f64 = 8.0;
/// A memory 64 bytes wide and 512 deep takes eight RAMB36 of 512 x 72; an URAM is 4096 x 72.
const WIDE_RAMB36: u64 = 8;
const RAMB36_DEPTH: u64 = 512;
const RAMB36_BITS: u64 = 32 * 1024;
const URAM_WORDS: u64 = 4096;

/// Cycles from the first beat of a chunk to its release, in addition to its beats.
const RELEASE: u64 = 13;
/// Cycles that a line is held for a read, in addition to the memory's latency, the decryption of its
/// chunk and the delivery of its beats.
const HELD: u64 = 17;
/// Cycles that a seal needs to prepare a chunk.
const SEAL_STEPS: u64 = 3;
/// Bytes that the bus moves per cycle in each direction.
const BUS: f64 = 64.0;

impl Estimate {
    /// Estimates `config`, built according to `synthesis`, for a clock and a memory latency in
    /// cycles.
    pub fn new(
        config: &Config,
        synthesis: Synthesis,
        figures: &Figures,
        clock_mhz: f64,
        latency: u64,
    ) -> Self {
        let mut blocks: Vec<Block> = figures
            .control
            .iter()
            .map(|(_, name, area, basis)| block(name, None, *area, *basis))
            .collect();
        for (i, set) in config.sets().iter().enumerate() {
            let regions: Vec<&Region> =
                config.regions().iter().filter(|r| usize::from(r.set) == i).collect();
            blocks.extend(set_blocks(figures, synthesis, i, set, &regions));
        }
        let total = blocks.iter().fold(Area::default(), |sum, b| sum.plus(b.area));
        let regions = config
            .regions()
            .iter()
            .map(|r| region(r, &config.sets()[usize::from(r.set)], clock_mhz, latency))
            .collect();
        Self { clock_mhz, latency, blocks, total, regions }
    }
}

fn block(name: &str, set: Option<usize>, area: Area, basis: Basis) -> Block {
    Block { name: name.to_owned(), set, area, basis }
}

fn set_blocks(
    figures: &Figures,
    synthesis: Synthesis,
    i: usize,
    set: &Set,
    regions: &[&Region],
) -> Vec<Block> {
    let lanes = u64::from(set.lanes);
    let quarter = |a: Area| Area {
        lut: a.lut * lanes / 4,
        ff: a.ff * lanes / 4,
        ramb36: a.ramb36 * lanes as f64 / 4.0,
        ..a
    };
    let measured = if lanes == 4 { Basis::Measured } else { Basis::Estimate };
    let sum = |mode: Mode, of: &dyn Fn(&Region) -> u64| {
        regions.iter().filter(|r| r.mode == mode).map(|r| of(r)).sum::<u64>()
    };
    let wide = |beats: u64| (beats.div_ceil(RAMB36_DEPTH) * WIDE_RAMB36) as f64;
    let beats = u64::from(set.big_lines) * 64 + u64::from(set.small_lines) * 8;
    let (round, known, kind) = match synthesis.sbox {
        Sbox::Lut => (figures.aes_round_x4, Basis::Measured, ""),
        Sbox::Ram => {
            (figures.aes_round_ram_x4.0, figures.aes_round_ram_x4.1, ", S-boxes in block RAM")
        }
    };
    let aes = Area {
        lut: round.lut * AES_ROUNDS,
        ff: round.ff * AES_ROUNDS,
        ramb36: round.ramb36 * AES_ROUNDS as f64,
        ..round
    };
    let aes_basis = if measured == Basis::Measured { known } else { measured };
    let mut out = vec![
        block(&format!("AES, {lanes} lanes{kind}"), Some(i), quarter(aes), aes_basis),
        block(&format!("GHASH, {lanes} lanes"), Some(i), quarter(figures.ghash_x4), measured),
        block("rest of the engine set", Some(i), figures.set_rest.0, figures.set_rest.1),
        block(
            &format!("lines, {beats} beats"),
            Some(i),
            Area { ramb36: wide(beats), ..Area::default() },
            Basis::Estimate,
        ),
        block(
            &format!("read ring, {} beats", set.ring_beats),
            Some(i),
            Area { ramb36: wide(set.ring_beats.into()), ..Area::default() },
            Basis::Estimate,
        ),
    ];
    let bits = sum(Mode::Output, &Region::chunks);
    if bits > 0 {
        let ramb36 = bits.div_ceil(RAMB36_BITS) as f64;
        out.push(block(
            &format!("written map, {bits} bits"),
            Some(i),
            Area { ramb36, ..Area::default() },
            Basis::Estimate,
        ));
    }
    let per_word = |r: &Region| if r.counter_bits == Some(48) { 1 } else { 2 };
    let words = sum(Mode::Counted, &|r| r.chunks().div_ceil(per_word(r)));
    if words > 0 {
        let uram = words.div_ceil(URAM_WORDS);
        out.push(block(
            &format!("counters, {words} words"),
            Some(i),
            Area { uram, ..Area::default() },
            Basis::Estimate,
        ));
    }
    let roots = sum(Mode::Tree, &Region::root_entries);
    if roots > 0 {
        let levels = regions.iter().map(|r| r.tree_levels()).max().unwrap_or(0);
        let area = Area {
            ramb36: f64::from(levels) * TREE_LEVEL_RAMB36,
            uram: roots.div_ceil(URAM_WORDS),
            ..figures.tree.0
        };
        out.push(block(
            &format!("tree, {levels} levels, {roots} roots"),
            Some(i),
            area,
            Basis::Estimate,
        ));
    }
    if set.cache_bytes > 0 {
        let uram =
            (u64::from(set.cache_bytes) / 8).div_ceil(URAM_WORDS).next_multiple_of(WIDE_RAMB36);
        out.push(block(
            &format!("cache, {} KiB", set.cache_bytes / 1024),
            Some(i),
            Area { uram, ..figures.cache.0 },
            Basis::Estimate,
        ));
    }
    out
}

fn region(r: &Region, set: &Set, clock_mhz: f64, latency: u64) -> RegionEstimate {
    let chunk = f64::from(r.chunk);
    let beats = chunk / 64.0;
    let lines = f64::from(if r.is_big() { set.big_lines } else { set.small_lines });
    // In addition to its data a chunk needs a quarter of a beat of tags in sequential access, a
    // whole one in random access; of nodes one of eight of each level.
    let tag = |beats: f64| if r.mode.has_tags() { beats } else { 0.0 };
    let nodes: f64 = (1..=r.tree_levels()).map(|level| 8f64.powi(-(level as i32))).sum();
    let extra = tag(0.25) + nodes;
    // AES blocks of a chunk: its data and the mask of its tag.
    let aes = if r.mode == Mode::Bypass { 0.0 } else { (4.0 * beats + 1.0) / f64::from(set.lanes) };
    // Chunks per cycle, with up to `n` in flight, of each of which this number of beats is delivered.
    let in_flight = |n: f64, delivered: f64| {
        (lines - 2.0).min(n) / ((latency + HELD) as f64 + beats.max(aes) + delivered)
    };
    let sequential = |cycles: f64| {
        let rate = chunk / (beats + extra).max(aes).max(cycles);
        rate.min(in_flight(f64::MAX, beats) * chunk).min(BUS)
    };
    let random = beats + tag(1.0) + f64::from(r.tree_levels());
    let seal = if r.mode == Mode::Bypass { 0.0 } else { SEAL_STEPS as f64 };
    // A write also holds its line while its data arrive.
    let write =
        sequential(seal).min((lines - 2.0) * chunk / ((latency + RELEASE) as f64 + 2.0 * beats));
    let hertz = clock_mhz * 1e6;
    let rewrite = (beats + extra).max(aes).max(seal);
    let versions = match r.mode {
        Mode::Counted => Some(f64::from(r.counter_bits.unwrap_or(36)).exp2()),
        Mode::Tree => Some(48f64.exp2()),
        _ => None,
    };
    let sealed = !matches!(r.mode, Mode::Input | Mode::Bypass);
    // One AES cycle is one block in each lane; another block may be the bottleneck.
    let blocks_per_cycle = (4.0 * beats + 1.0) * write / chunk;
    RegionEstimate {
        name: r.name.clone(),
        mode: r.mode.name(),
        sequential_read: sequential(0.0),
        sequential_write: (r.mode != Mode::Input).then_some(write),
        random_read: (64.0 / random.max(aes)).min(in_flight(32.0, 1.0) * 64.0),
        data_bytes: r.size,
        tag_bytes: if r.mode.has_tags() { r.chunks() * TAG_LEN } else { 0 },
        node_bytes: r.node_size(),
        bus_percent: 100.0 * extra / beats,
        counter_seconds: versions.map(|n| n * rewrite / hertz),
        key_seconds: sealed.then(|| MAX_KEY_BLOCKS as f64 / blocks_per_cycle / hertz),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(set: &str, region: &str, latency: u64) -> Estimate {
        let text = format!(
            "[[set]]\n{set}\n[[region]]\nname = \"r\"\nbase = 0\nsize = \"1 MiB\"\n{region}\n"
        );
        let shield = crate::shield::parse(&text).unwrap_or_else(|e| panic!("{e}"));
        Estimate::new(&shield.config, shield.synthesis, &Figures::default(), 250.0, latency)
    }

    /// The tables of docs/evaluation.md: lanes, mode, chunk, latency, read, write, random read with
    /// 32 outstanding.
    #[test]
    fn bytes_per_cycle_are_near_the_measured_ones() {
        let near = |found: f64, measured: f64, what: &str| {
            assert!(
                (found / measured - 1.0).abs() < 0.2,
                "{what}: estimated {found:.1}, measured {measured}"
            );
        };
        for (lanes, chunk, latency, read, write, random) in [
            (4, 4096, 40, 62.6, Some(62.5), None),
            (4, 1024, 40, 61.8, Some(56.6), None),
            (4, 512, 40, 61.8, Some(59.9), None),
            (4, 256, 40, 60.0, Some(56.7), None),
            (4, 64, 40, 33.4, Some(21.2), Some(31.9)),
            (4, 1024, 100, 41.6, Some(36.6), None),
            (4, 1024, 200, 24.8, Some(22.9), None),
            (4, 256, 200, 34.2, Some(31.9), None),
            (4, 64, 100, 16.3, Some(14.7), Some(16.3)),
            (4, 64, 200, 8.8, Some(8.3), Some(8.8)),
            (2, 4096, 40, 31.2, Some(31.0), None),
            (2, 512, 40, 30.0, Some(29.9), None),
            (2, 64, 40, 25.5, Some(21.2), Some(25.6)),
            (1, 4096, 40, 15.7, Some(15.9), None),
            (1, 512, 40, 14.3, Some(14.2), None),
            (1, 64, 40, 12.8, Some(12.7), Some(12.8)),
        ] {
            let e = estimate(
                &format!("lanes = {lanes}"),
                &format!("mode = \"output\"\nchunk = {chunk}"),
                latency,
            );
            let r = &e.regions[0];
            let what = format!("{lanes} lanes, chunk {chunk}, latency {latency}");
            near(r.sequential_read, read, &format!("{what}, read"));
            if let Some(write) = write {
                near(r.sequential_write.unwrap(), write, &format!("{what}, write"));
            }
            if let Some(random) = random {
                near(r.random_read, random, &format!("{what}, random"));
            }
        }
    }

    #[test]
    fn s_boxes_in_block_ram_take_the_place_of_luts() {
        let of = |set: &str| {
            let lut = estimate(set, "mode = \"input\"", 40).total;
            let ram = estimate(set, "mode = \"input\"\n[synthesis]\nsbox = \"ram\"", 40).total;
            (lut.lut - ram.lut, ram.ramb36 - lut.ramb36)
        };
        // 14 rounds of 16 bytes a lane, two bytes in half a RAMB36, about 32 LUTs a byte
        assert_eq!(of("lanes = 4"), (14 * 64 * 32, 224.0));
        assert_eq!(of("lanes = 1"), (14 * 16 * 32, 56.0));
    }

    #[test]
    fn figures_of_the_table_replace_those_here() {
        let row = |name: &str, lut: u64| {
            format!(
                "[[block]]\nname = \"{name}\"\nsources = \"00\"\ninstances = 1\nwhole = {{ lut = {lut}, ff = 7, lutram = 3, ramb36 = 1.5, uram = 0, dsp = 0 }}\n"
            )
        };
        let text = row("shef_p256", 3000)
            + &row("shef_set", 80_000)
            + &row("shef_gcm", 60_000)
            + &row("shef_tree", 5000);
        let figures = Figures::default().with_table(&text).unwrap();
        let config = crate::shield::parse(
            "[[region]]\nname = \"r\"\nbase = 0\nsize = 4096\nmode = \"tree\"\n",
        )
        .unwrap()
        .config;
        let e = Estimate::new(&config, Synthesis::default(), &figures, 250.0, 40);
        let of = |name: &str| {
            e.blocks
                .iter()
                .find(|b| b.name.starts_with(name))
                .map(|b| (b.area.lut, b.basis))
                .unwrap()
        };
        assert_eq!(of("P-256"), (3000, Basis::Measured));
        assert_eq!(of("SHA-256"), (1657, Basis::Measured));
        assert_eq!(of("rest of the engine set"), (20_000, Basis::Measured));
        assert_eq!(of("tree").0, 5000);
        assert!(Figures::default().with_table("[[block]]\nname = 1\n").is_err());
    }

    #[test]
    fn counters_and_keys_last_as_the_design_says() {
        let r = |text: &str| estimate("", text, 40).regions[0].clone();
        let hours = r("mode = \"counted\"").counter_seconds.unwrap() / 3600.0;
        assert!((4.8..5.1).contains(&hours), "one 4 KiB chunk rewritten at line rate: {hours} h");
        assert!(
            r("mode = \"counted\"\ncounter = 48").counter_seconds.unwrap()
                > 4000.0 * hours * 3600.0
        );
        assert!(r("mode = \"tree\"").counter_seconds.is_some());
        assert_eq!(
            (r("mode = \"input\"").counter_seconds, r("mode = \"input\"").key_seconds),
            (None, None)
        );
        assert_eq!(r("mode = \"bypass\"").key_seconds, None);
        let days = r("mode = \"output\"").key_seconds.unwrap() / 86400.0;
        assert!((3.2..3.5).contains(&days), "2^48 blocks at 64 B/cycle: {days} days");
    }

    #[test]
    fn memory_beside_the_data_and_sums() {
        let e = estimate("", "mode = \"tree\"\nchunk = 512", 40);
        let r = &e.regions[0];
        assert_eq!((r.data_bytes, r.tag_bytes, r.node_bytes), (1 << 20, 2048 * 16, 256 * 64));
        assert!((r.bus_percent - 100.0 * (0.25 + 0.125) / 8.0).abs() < 1e-9);
        let lut: u64 = e.blocks.iter().map(|b| b.area.lut).sum();
        assert_eq!(e.total.lut, lut);
        assert_eq!(
            e.blocks
                .iter()
                .filter(|b| b.name.starts_with("tree"))
                .map(|b| b.area.uram)
                .sum::<u64>(),
            1
        );
        let cached =
            estimate("cache = \"256 KiB\"\ncache_line = 64", "mode = \"input\"\nchunk = 64", 40);
        assert_eq!(cached.total.uram, 8);
        let counted = estimate("", "mode = \"counted\"\nchunk = 64", 40);
        assert_eq!(counted.total.uram, 2);
        assert_eq!(estimate("", "mode = \"counted\"\nchunk = 64\ncounter = 48", 40).total.uram, 4);
    }
}
