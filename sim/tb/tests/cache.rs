//! A set behind a chunk cache in a whole Shield gives the same answers as without; written-back
//! data stays fresh, tampered fetches are refused, and a new epoch empties the cache.

use shef_proto::channel::{FaultKind, ShieldRequest};
use shef_proto::config::Config;
use shef_proto::load::first_epochs;
use shef_rtl::Library;
use shef_rtl::agent::Rng;
use shef_tb::{Bench, Op, Owner, Reference, RtlBench, built, campaign};

fn library() -> (&'static Library, &'static Config) {
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache");
    built(include_str!("cache.toml"), &dir).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn random_operations_are_as_the_reference_says_and_all_that_leaves_is_sealed() {
    let (lib, config) = library();
    for seed in [5, 6] {
        let mut bench = RtlBench::new(lib, config, Some(seed)).expect("bench");
        let report =
            campaign(&mut bench, config, seed, 1200).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        assert!(report.operations >= 1200, "{report:?}");
    }
}

fn write(addr: u64, byte: u8) -> Op {
    Op::Write { id: 1, addr, data: vec![byte; 64], strobes: Vec::new() }
}

fn read(addr: u64) -> Op {
    Op::Read { id: 1, addr, beats: 1 }
}

struct Session {
    bench: RtlBench,
    owner: Owner,
    config: &'static Config,
}

impl Session {
    fn new(seed: u64) -> Self {
        let (lib, config) = library();
        let mut bench = RtlBench::new(lib, config, Some(seed)).expect("bench");
        let owner =
            Owner::open(&mut bench, config, &first_epochs(config, 1), seed).expect("session");
        for (addr, data) in Reference::new(config, 1).fill_inputs(&mut Rng::new(seed), owner.keys())
        {
            bench.mem_write(addr, &data);
        }
        Self { bench, owner, config }
    }

    fn call(&mut self, request: &ShieldRequest) {
        self.owner.call(&mut self.bench, request).expect("the command is done");
    }

    fn one(&mut self, op: Op) -> (bool, Vec<u8>) {
        let got = self.bench.burst(&[op]).expect("an answer").remove(0);
        (got.okay.iter().all(|k| *k), got.data)
    }

    /// The sealed chunk and its tag in memory.
    fn chunk(&mut self, region: usize, index: u64) -> (Vec<u8>, [u8; 16]) {
        let r = &self.config.regions()[region];
        let (mut d, mut t) = (vec![0; 512], [0; 16]);
        self.bench.mem_read(r.chunk_addr(index), &mut d);
        self.bench.mem_read(r.tag_addr(index), &mut t);
        (d, t)
    }
}

#[test]
fn scratch_behind_the_cache_is_sealed_fresh_each_time_and_an_old_chunk_is_refused() {
    let mut s = Session::new(6);
    let at = s.config.regions()[1].chunk_addr(9);
    assert!(s.one(read(at)) == (true, vec![0; 64]), "never written reads as zeros");
    assert!(s.one(write(at, 7)).0);
    assert_eq!(s.chunk(1, 9), (vec![0; 512], [0; 16]), "a write stays in the cache");
    s.call(&ShieldRequest::invalidate());
    let (old, old_tag) = s.chunk(1, 9);
    assert_ne!(old, vec![0; 512]);
    assert!(s.one(read(at)) == (true, vec![7; 64]));
    assert!(s.one(write(at, 8)).0);
    s.call(&ShieldRequest::invalidate());
    let (new, _) = s.chunk(1, 9);
    assert!(old != new);
    assert!(s.one(read(at)) == (true, vec![8; 64]));
    s.call(&ShieldRequest::invalidate());
    let r = &s.config.regions()[1];
    s.bench.mem_write(r.chunk_addr(9), &old);
    s.bench.mem_write(r.tag_addr(9), &old_tag);
    assert!(s.one(read(at)) == (false, vec![0; 64]), "an old chunk came through");
    let statement = *s.owner.statement(&mut s.bench).expect("statement").shield();
    assert!(
        statement.stopped && statement.fault_kind == FaultKind::Tag && statement.fault_chunk == 9,
        "{statement:?}"
    );
    // the cache does not return its contents any more either
    assert!(s.one(read(s.config.regions()[0].chunk_addr(0))) == (false, vec![0; 64]));
}

#[test]
fn a_new_epoch_empties_the_cache() {
    let mut s = Session::new(7);
    let at = s.config.regions()[0].chunk_addr(3);
    assert!(s.one(read(at)).0);
    s.call(&ShieldRequest::epoch(0, 2));
    assert!(
        s.one(read(at)) == (false, vec![0; 64]),
        "a chunk of the old epoch came out of the cache"
    );
    let statement = *s.owner.statement(&mut s.bench).expect("statement").shield();
    assert!(statement.stopped && statement.fault_kind == FaultKind::Tag, "{statement:?}");
}
