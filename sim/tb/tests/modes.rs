//! Random operations in all modes: the model against reference and oracle in any configuration, then the RTL against the same.
//!
//! `cargo run -p shef-tb --example differential` does as many as one wants.

use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_proto::load::first_epochs;
use shef_rtl::build;
use shef_seal::{ChunkCipher, NodeCipher};
use shef_tb::{ModelBench, Oracle, Owner, RtlBench, campaign, design, random_config};

fn seed() -> u64 {
    std::env::var("SHEF_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121)
}

#[test]
fn the_model_in_any_configuration() {
    let mut operations = 0;
    for seed in seed()..seed() + 24 {
        let config = random_config(seed).unwrap_or_else(|e| panic!("SHEF_SEED={seed}: {e}"));
        let report = campaign(&mut ModelBench::new(&config), &config, seed, 1000);
        operations += report.unwrap_or_else(|e| panic!("SHEF_SEED={seed} cargo test -p shef-tb --test modes: {e}")).operations;
    }
    assert!(operations >= 10_000, "only {operations} operations");
}

/// An oracle over a session of a small Shield, and ciphers with its keys.
struct Forge {
    oracle: Oracle,
    data: Vec<ChunkCipher>,
    nodes: NodeCipher,
    config: Config,
}

const OUTPUT: u8 = 0;
const COUNTED: u8 = 1;
const TREE: u8 = 2;
const INPUT: u8 = 3;

impl Forge {
    fn new() -> Self {
        let region = |id, mode, base, tag_base| Region {
            id,
            name: format!("r{id}"),
            mode,
            base,
            size: 4096,
            chunk: 128,
            key_bits: 256,
            port: 0,
            set: 0,
            tag_base,
            node_base: (mode == Mode::Tree).then_some(0x2_0000),
            prefetch: 0,
            counter_bits: (mode == Mode::Counted).then_some(36),
        };
        let modes = [Mode::Output, Mode::Counted, Mode::Tree, Mode::Input];
        let regions = (0..).zip(modes).map(|(id, mode)| region(id, mode, u64::from(id) << 12, 0x1_0000 + (u64::from(id) << 12))).collect();
        let config = Config::new(OnFault::Shield, 1, vec![Set::default()], regions).expect("config");
        let epochs = first_epochs(&config, 7);
        let owner = Owner::open(&mut ModelBench::new(&config), &config, &epochs, 1).expect("session");
        let keys = owner.keys();
        Self {
            oracle: Oracle::new(&config, keys, &epochs),
            data: (0..4).map(|id| ChunkCipher::new(id, keys.data_key(id).expect("key"))).collect(),
            nodes: NodeCipher::new(TREE, keys.node_key(TREE).expect("key")),
            config,
        }
    }

    fn data(&self, region: u8, chunk: u64, version: u64, plain: u8) -> [u8; 16] {
        let mut data = [plain; 128];
        let tag = self.data[usize::from(region)].seal(version, chunk, &mut data);
        for (at, beat) in (self.config.regions()[usize::from(region)].chunk_addr(chunk)..).step_by(64).zip(data.as_chunks().0) {
            self.oracle.see(at, beat, u64::MAX);
        }
        tag
    }

    fn tag(&self, region: u8, chunk: u64, tag: [u8; 16]) {
        let addr = self.config.regions()[usize::from(region)].tag_addr(chunk);
        let mut beat = [0; 64];
        let at = (addr % 64) as usize;
        beat[at..at + 16].copy_from_slice(&tag);
        self.oracle.see(addr - at as u64, &beat, 0xffff << at);
    }

    fn seal(&self, region: u8, chunk: u64, version: u64, plain: u8) {
        self.tag(region, chunk, self.data(region, chunk, version, plain));
    }

    fn node(&self, version: u64, counters: [u64; 8]) {
        self.oracle.see(0x2_0000, &self.nodes.seal(version, 0, 0, &counters), u64::MAX);
    }

    /// At rest, with chunk 0 of every region all `plain`.
    fn good(&self, plain: u8) -> bool {
        let (first, zeros) = ([plain; 128], [0; 128]);
        self.oracle.at_rest(|region, chunk| if chunk == 0 && region != INPUT && region != OUTPUT { &first } else { &zeros }).is_ok()
    }
}

/// The oracle lets pass what the format allows, in the orders that a memory port may show, and nothing else.
#[test]
fn the_oracle_sees_what_is_wrong() {
    let scratch = |f: &Forge| {
        f.seal(COUNTED, 0, 1, 5);
        f.seal(TREE, 0, 1, 5);
    };
    type Case = (&'static str, bool, fn(&Forge));
    let cases: [Case; 21] = [
        ("nothing more", true, |_| ()),
        ("versions one after the other", true, |f| (2..5).for_each(|v| f.seal(COUNTED, 0, v, 5))),
        ("a tag before its data", true, |f| {
            let tag = f.data[1].seal(2, 0, &mut [5; 128]);
            f.tag(COUNTED, 0, tag);
            f.data(COUNTED, 0, 2, 5);
        }),
        ("only the last of two tags", true, |f| {
            f.data(COUNTED, 0, 2, 9);
            f.seal(COUNTED, 0, 3, 5);
        }),
        ("an output chunk", true, |f| f.seal(OUTPUT, 3, 7, 0)),
        ("a node", true, |f| f.node(1, [1, 0, 0, 0, 0, 0, 0, 0])),
        ("a version again", false, |f| f.seal(COUNTED, 0, 1, 5)),
        ("a version left out", false, |f| f.seal(COUNTED, 0, 3, 5)),
        ("a plaintext that nobody wrote", false, |f| f.seal(COUNTED, 0, 2, 6)),
        ("another key", false, |f| {
            f.tag(COUNTED, 0, f.data(TREE, 0, 2, 5));
        }),
        ("a tag that never came", false, |f| {
            f.data(COUNTED, 0, 2, 5);
        }),
        ("an old tag", false, |f| {
            let old = f.data[1].seal(1, 0, &mut [5; 128]);
            f.seal(COUNTED, 0, 2, 5);
            f.tag(COUNTED, 0, old);
        }),
        ("half a chunk", false, |f| f.oracle.see(0x1000, &[0; 64], u64::MAX)),
        ("a beat twice", false, |f| (0..2).for_each(|_| f.oracle.see(0x1000, &[0; 64], u64::MAX))),
        ("single bytes", false, |f| f.oracle.see(0x1000, &[0; 64], 1)),
        ("an output chunk twice", false, |f| (0..2).for_each(|_| f.seal(OUTPUT, 3, 7, 0))),
        ("an output chunk under another epoch", false, |f| f.seal(OUTPUT, 3, 8, 0)),
        ("an input chunk", false, |f| f.seal(INPUT, 0, 7, 0)),
        ("somewhere else", false, |f| f.oracle.see(0x9_0000, &[0; 64], u64::MAX)),
        ("a node under a version left out", false, |f| f.node(2, [1, 0, 0, 0, 0, 0, 0, 0])),
        ("a node that counts what was not sealed", false, |f| f.node(1, [2, 0, 0, 0, 0, 0, 0, 0])),
    ];
    for (what, good, case) in cases {
        let f = Forge::new();
        scratch(&f);
        case(&f);
        assert_eq!(f.good(5), good, "{what}");
    }
}

/// The RTL answers, seals and states the same as the model, with random timing of memory and accelerator.
#[test]
fn the_rtl_as_the_model() {
    let scratch = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("modes");
    let (spec, config) = design(include_str!("modes.toml"), &scratch).expect("design");
    let library = build(&spec.fast()).unwrap_or_else(|e| panic!("{e}"));
    let mut operations = 0;
    for seed in seed()..seed() + 4 {
        let again = |e| panic!("SHEF_SEED={seed} SHEF_WAVES=target/waves cargo test -p shef-tb --test modes: {e}");
        let model = campaign(&mut ModelBench::new(&config), &config, seed, 2500).unwrap_or_else(again);
        let mut rtl = RtlBench::new(&library, &config, Some(seed)).expect("bench");
        assert_eq!(campaign(&mut rtl, &config, seed, 2500).unwrap_or_else(again), model, "SHEF_SEED={seed}");
        operations += model.operations;
    }
    assert!(operations >= 10_000, "only {operations} operations");
}
