//! Random operations in all modes: the model matches reference and oracle in any configuration, and
//! the RTL matches them, too.
//!
//! `cargo run -p shef-tb --example differential` runs any number of operations.

use shef_model::MemoryFault;
use shef_proto::channel::{FaultKind, ShieldRequest, ShieldStatement};
use shef_proto::config::{Config, Mode, NODE_LEN, OnFault, Region, Set};
use shef_proto::load::first_epochs;
use shef_rtl::Library;
use shef_rtl::agent::Rng;
use shef_seal::{ChunkCipher, NodeCipher};
use shef_tb::{
    Bench, ModelBench, Op, Oracle, Owner, Reference, RtlBench, built, campaign, random_config,
};

fn seed() -> u64 {
    std::env::var("SHEF_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(20_261_121)
}

#[test]
fn the_model_in_any_configuration() {
    let mut operations = 0;
    for seed in seed()..seed() + 24 {
        let config = random_config(seed).unwrap_or_else(|e| panic!("SHEF_SEED={seed}: {e}"));
        let report = campaign(&mut ModelBench::new(&config), &config, seed, 1000);
        operations += report
            .unwrap_or_else(|e| panic!("SHEF_SEED={seed} cargo test -p shef-tb --test modes: {e}"))
            .operations;
    }
    assert!(operations >= 10_000, "only {operations} operations");
}

/// An oracle over a session of a small Shield, and ciphers with the session's keys.
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
        let regions = (0..)
            .zip(modes)
            .map(|(id, mode)| {
                region(id, mode, u64::from(id) << 12, 0x1_0000 + (u64::from(id) << 12))
            })
            .collect();
        let config =
            Config::new(OnFault::Shield, 1, vec![Set::default()], regions).expect("config");
        let epochs = first_epochs(&config, 7);
        let owner =
            Owner::open(&mut ModelBench::new(&config), &config, &epochs, 1).expect("session");
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
        for (at, beat) in (self.config.regions()[usize::from(region)].chunk_addr(chunk)..)
            .step_by(64)
            .zip(data.as_chunks().0)
        {
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

    /// Whether the oracle passes at rest, with chunk 0 of every region all `plain`.
    fn good(&self, plain: u8) -> bool {
        let (first, zeros) = ([plain; 128], [0; 128]);
        self.oracle
            .at_rest(|region, chunk| {
                if chunk == 0 && region != INPUT && region != OUTPUT { &first } else { &zeros }
            })
            .is_ok()
    }
}

/// The oracle accepts everything that the format allows, in any order that a memory port may show,
/// and nothing else.
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

fn library() -> (&'static Library, &'static Config) {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("modes");
    built(include_str!("modes.toml"), &dir).unwrap_or_else(|e| panic!("{e}"))
}

/// The RTL gives the same answers, sealed data and statements as the model, with random timing of
/// memory and accelerator.
fn as_the_model(seeds: std::ops::Range<u64>) {
    let (library, config) = library();
    let mut operations = 0;
    for seed in seeds.clone() {
        let again = |e| {
            panic!(
                "SHEF_SEED={seed} SHEF_WAVES=target/waves cargo test -p shef-tb --test modes: {e}"
            )
        };
        let model =
            campaign(&mut ModelBench::new(config), config, seed, 2500).unwrap_or_else(again);
        let mut rtl = RtlBench::new(library, config, Some(seed)).expect("bench");
        assert_eq!(
            campaign(&mut rtl, config, seed, 2500).unwrap_or_else(again),
            model,
            "SHEF_SEED={seed}"
        );
        operations += model.operations;
    }
    assert!(operations >= 2500 * (seeds.end - seeds.start), "only {operations} operations");
}

#[test]
fn the_rtl_as_the_model() {
    as_the_model(seed()..seed() + 1);
}

/// A session on a bench, one burst at a time.
struct Session<'a, B> {
    bench: &'a mut B,
    owner: Owner,
    config: &'a Config,
}

impl<'a, B: Bench> Session<'a, B> {
    /// Creates it with the inputs in memory.
    fn new(bench: &'a mut B, config: &'a Config) -> Self {
        let owner = Owner::open(bench, config, &first_epochs(config, 1), 3).expect("session");
        for (addr, data) in Reference::new(config, 1).fill_inputs(&mut Rng::new(3), owner.keys()) {
            bench.mem_write(addr, &data);
        }
        Self { bench, owner, config }
    }

    /// Writes a chunk; returns whether that succeeded.
    fn write(&mut self, r: &Region, chunk: u64, byte: u8) -> bool {
        let data = vec![byte; r.chunk as usize];
        let got = self
            .bench
            .burst(&[Op::Write { id: 0, addr: r.chunk_addr(chunk), data, strobes: Vec::new() }])
            .expect("answer");
        got[0].okay[0]
    }

    /// Writes part of a chunk, which stays on chip.
    fn begin(&mut self, r: &Region, chunk: u64) {
        let op = Op::Write {
            id: 0,
            addr: r.chunk_addr(chunk),
            data: vec![0x77; 64],
            strobes: vec![0xff00],
        };
        assert!(
            self.bench.burst(&[op]).expect("answer")[0].okay[0],
            "{} is refused before the attack was met",
            r.name
        );
    }

    /// The bytes of a chunk, or `None` if it is refused, which must concern all of it.
    fn read(&mut self, r: &Region, chunk: u64) -> Option<Vec<u8>> {
        let got = self
            .bench
            .burst(&[Op::Read { id: 1, addr: r.chunk_addr(chunk), beats: r.chunk / 64 }])
            .expect("answer")
            .remove(0);
        if got.okay.iter().all(|o| *o) {
            return Some(got.data);
        }
        assert!(
            got.okay.iter().all(|o| !o) && got.data.iter().all(|b| *b == 0),
            "{} chunk {chunk}: words got through",
            r.name
        );
        None
    }

    fn holds(&mut self, r: &Region, chunk: u64, byte: u8) -> bool {
        self.read(r, chunk).is_some_and(|data| data.iter().all(|b| *b == byte))
    }

    fn call(&mut self, request: &ShieldRequest) {
        self.owner.call(self.bench, request).expect("the command is done");
    }

    /// The sealed chunk and its tag in memory.
    fn image(&self, r: &Region, chunk: u64) -> (Vec<u8>, [u8; 16]) {
        let (mut data, mut tag) = (vec![0; r.chunk as usize], [0; 16]);
        self.bench.mem_read(r.chunk_addr(chunk), &mut data);
        if r.mode.has_tags() {
            self.bench.mem_read(r.tag_addr(chunk), &mut tag);
        }
        (data, tag)
    }

    /// Evicts the nodes above a chunk: reads others that share their places in the node caches.
    fn push_nodes_out(&mut self, r: &Region, chunk: u64) {
        const APART: u64 = 8 * 8 * 128;
        for k in 1..=16 {
            assert!(self.holds(r, chunk + k * APART, 0));
        }
    }

    /// Checks that after a fault only this region is frozen, that the chunk in progress is not
    /// sealed, and that all others continue; returns the statement.
    fn frozen(&mut self, r: &Region, begun: u64, what: &str) -> ShieldStatement {
        let before = self.image(r, begun);
        assert!(
            self.read(r, 5).is_none() && self.read(r, begun).is_none() && !self.write(r, begun, 1),
            "{what}: the region goes on"
        );
        for other in self.config.regions().iter().filter(|o| o.id != r.id) {
            if other.mode == Mode::Input {
                assert!(self.read(other, 7).is_some(), "{what}: {} is refused", other.name);
                continue;
            }
            assert!(self.write(other, 1, 0x33), "{what}: {} is refused", other.name);
            self.call(&ShieldRequest::invalidate());
            assert!(
                self.holds(other, 1, 0x33),
                "{what}: {} does not hold what was written",
                other.name
            );
        }
        assert_eq!(self.image(r, begun), before, "{what}: sealed after the fault");
        let statement = self.owner.statement(self.bench).expect("statement");
        assert_eq!(statement.frozen().collect::<Vec<_>>(), [r.id], "{what}");
        *statement.shield()
    }
}

/// The tampering with chunk 5 of a scratch region, whose second version is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attack {
    Data,
    Tag,
    OldVersion,
    OtherPlace,
    BusError,
}

/// Attacks a chunk and reads it, after both of its versions read back; returns the statement.
fn attacked<B: Bench>(
    bench: &mut B,
    config: &Config,
    r: &Region,
    attack: Attack,
    break_bus: impl Fn(&mut B),
) -> ShieldStatement {
    let mut s = Session::new(bench, config);
    let mut old = None;
    for version in 1..3 {
        old = old.or((version == 2).then(|| s.image(r, 5)));
        for chunk in [5, 6] {
            assert!(s.write(r, chunk, version + chunk as u8));
        }
        s.call(&ShieldRequest::invalidate());
        assert!(s.holds(r, 5, version + 5), "{attack:?}: version {version}");
        s.call(&ShieldRequest::invalidate());
    }
    let (mut data, mut tag) = match attack {
        Attack::OldVersion => old.expect("version 1"),
        Attack::OtherPlace => s.image(r, 6),
        _ => s.image(r, 5),
    };
    match attack {
        Attack::Data => data[63] ^= 0x80,
        Attack::Tag => tag[15] ^= 1,
        Attack::BusError => break_bus(s.bench),
        _ => {}
    }
    s.bench.mem_write(r.chunk_addr(5), &data);
    if r.mode.has_tags() {
        s.bench.mem_write(r.tag_addr(5), &tag);
    }
    s.begin(r, 9);
    assert!(s.read(r, 5).is_none(), "{attack:?}: words got through");
    s.frozen(r, 9, &format!("{attack:?} on {}", r.name))
}

/// Runs the attacks selected by `chosen` (region's number, attack's number) on each region; on an
/// unprotected one, the bus error.
fn attacks_on_scratch(chosen: impl Fn(usize, usize) -> bool) {
    let (library, config) = library();
    for (n, r) in config.regions().iter().filter(|r| !r.mode.has_epoch()).enumerate() {
        for (k, attack) in
            [Attack::Data, Attack::Tag, Attack::OldVersion, Attack::OtherPlace, Attack::BusError]
                .into_iter()
                .enumerate()
        {
            if (r.mode == Mode::Bypass && attack != Attack::BusError)
                || (r.mode != Mode::Bypass && !chosen(n, k))
            {
                continue;
            }
            let what = format!("{attack:?} on {}", r.name);
            let range = r.chunk_addr(5)..r.chunk_addr(5) + 64;
            let m = attacked(&mut ModelBench::new(config), config, r, attack, |b| {
                b.0.add_fault(range.clone(), MemoryFault::Error);
            });
            let mut rtl = RtlBench::new(library, config, Some(7)).expect("bench");
            let h = attacked(&mut rtl, config, r, attack, |b| {
                b.core().axi_memory().error_ranges.push(range.clone());
            });
            assert_eq!(m, h, "{what}");
            let kind = if attack == Attack::BusError { FaultKind::Bus } else { FaultKind::Tag };
            let version = if r.mode == Mode::Bypass { 0 } else { 2 };
            assert_eq!(
                (h.stopped, h.fault_kind, h.fault_region, h.fault_chunk, h.fault_version),
                (false, kind, r.id, 5, version),
                "{what}"
            );
        }
    }
}

#[test]
fn both_tell_the_same_of_an_attack_on_scratch() {
    attacks_on_scratch(|region, attack| region % 5 == attack);
}

/// The tampering with a node above chunk 5, which was evicted to memory twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnNode {
    Counter,
    Tag,
    OldVersion,
    OtherPlace,
    Zeros,
}

/// Attacks a node and reads chunk 5, after the chunk read back through each of the node's versions;
/// returns the statement.
fn node_attacked<B: Bench>(
    bench: &mut B,
    config: &Config,
    r: &Region,
    level: u32,
    attack: OnNode,
) -> ShieldStatement {
    /// A chunk that shares no node with chunk 5.
    const ELSEWHERE: u64 = 3200;
    let what = format!("{attack:?} on {} level {level}", r.name);
    let mut s = Session::new(bench, config);
    // A chunk under the node next to it.
    let beside = 5 + 8_u64.pow(level + 1);
    let node = |s: &Session<B>, number| {
        let mut bytes = [0; NODE_LEN as usize];
        s.bench.mem_read(r.node_addr(level, number), &mut bytes);
        bytes
    };
    let mut old = None;
    for version in 1..3 {
        old = old.or((version == 2).then(|| node(&s, 0)));
        for chunk in [5, beside] {
            assert!(s.write(r, chunk, version), "{what}");
        }
        s.call(&ShieldRequest::invalidate());
        for chunk in [5, beside] {
            s.push_nodes_out(r, chunk);
        }
        assert!(s.holds(r, 5, version) && s.holds(r, beside, version), "{what}: version {version}");
        s.call(&ShieldRequest::invalidate());
        s.push_nodes_out(r, 5);
    }
    let (now, old) = (node(&s, 0), old.expect("version 1"));
    assert!(now != old && old != [0; NODE_LEN as usize], "{what}: the node did not reach memory");
    let mut bytes = now;
    match attack {
        OnNode::Counter => bytes[5] ^= 1,
        OnNode::Tag => bytes[63] ^= 0x80,
        OnNode::OldVersion => bytes = old,
        OnNode::OtherPlace => bytes = node(&s, 1),
        OnNode::Zeros => bytes = [0; NODE_LEN as usize],
    }
    assert_ne!(bytes, now, "{what}");
    s.bench.mem_write(r.node_addr(level, 0), &bytes);
    s.begin(r, ELSEWHERE);
    assert!(s.read(r, 5).is_none(), "{what}: words got through");
    s.frozen(r, ELSEWHERE, &what)
}

fn attacks_on_nodes(chosen: impl Fn(u32, u32) -> bool) {
    let (library, config) = library();
    let r =
        config.regions().iter().find(|r| r.tree_levels() == 2).expect("a region with two levels");
    for level in 0..2 {
        for (k, attack) in (0..).zip([
            OnNode::Counter,
            OnNode::Tag,
            OnNode::OldVersion,
            OnNode::OtherPlace,
            OnNode::Zeros,
        ]) {
            if !chosen(level, k) {
                continue;
            }
            let what = format!("{attack:?} on level {level}");
            let m = node_attacked(&mut ModelBench::new(config), config, r, level, attack);
            let h = node_attacked(
                &mut RtlBench::new(library, config, Some(11)).expect("bench"),
                config,
                r,
                level,
                attack,
            );
            assert_eq!(m, h, "{what}");
            let place = (h.stopped, h.fault_kind, h.fault_region, h.fault_chunk);
            assert_eq!(place, (false, FaultKind::Node, r.id, u64::from(level) << 36), "{what}");
            assert!(h.fault_version >= 2, "{what}: {h:?}");
        }
    }
}

#[test]
fn both_tell_the_same_of_an_attack_on_a_node() {
    attacks_on_nodes(|level, attack| attack % 2 == level);
}

/// A flush does not cut off a write whose data waits behind that of the port's other set, however
/// slow that set's memory is.
#[test]
fn a_flush_does_not_cut_off_a_write_behind_those_of_another_set() {
    let (lib, config) = library();
    let mut bench = RtlBench::new(lib, config, None).expect("bench");
    let mut owner = Owner::open(&mut bench, config, &first_epochs(config, 1), 7).expect("session");
    bench.core().axi_memories()[0].config.write_latency = 3_500;
    let region = |name: &str| config.regions().iter().find(|r| r.name == name).expect("region");
    let (slow, first) = (region("scratch256"), region("count1k"));
    assert!(first.set < slow.set, "its set is flushed first");
    // More chunks than lines.
    let write = |id, r: &Region, byte: u8, bytes: usize| Op::Write {
        id,
        addr: r.base,
        data: vec![byte; bytes],
        strobes: Vec::new(),
    };
    bench.push(&[write(1, slow, 1, 4096), write(2, first, 2, 1024)]);
    bench.steps(200);
    owner.call(&mut bench, &ShieldRequest::flush()).expect("flush");
    let got = bench.finish(None).expect("every burst is answered");
    assert!(got.iter().all(|o| o.okay == [true]), "{got:?}");
    let s = *owner.statement(&mut bench).expect("statement").shield();
    assert!(!s.stopped && s.refusals == 0, "{s:?}");
    let read = bench.burst(&[Op::Read { id: 3, addr: first.base, beats: 16 }]).expect("answer");
    assert_eq!(read[0].data, [2; 1024]);
}

/// For `cargo xtask test --full`.
mod long {
    use super::*;

    #[test]
    #[ignore = "long: three more seeds"]
    fn the_rtl_as_the_model() {
        as_the_model(seed() + 1..seed() + 4);
    }

    #[test]
    #[ignore = "long: every attack on every region"]
    fn both_tell_the_same_of_an_attack_on_scratch() {
        attacks_on_scratch(|region, attack| region % 5 != attack);
    }

    #[test]
    #[ignore = "long: every attack on every level"]
    fn both_tell_the_same_of_an_attack_on_a_node() {
        attacks_on_nodes(|level, attack| attack % 2 != level);
    }
}
