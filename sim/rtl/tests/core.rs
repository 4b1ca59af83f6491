//! The control plane in RTL matches crate `hpke` and shef-proto: seed, Load Key, register channel,
//! close, wipe.

mod inside;

use inside::Inside;
use shef_device::DeviceError;
use shef_device::ring::{Descriptor, OP_TO_CARD, OP_TO_HOST, Queue, Registers, Status, reg};
use shef_model::{Accelerator, Burst, Model, Resp, ShieldBus, WriteBeat};
use shef_proto::channel::{
    ChannelError, FaultKind, HALT, Op, OwnerChannel, Sealed, ShieldAnswer, ShieldRequest,
    ShieldStatement, State, status,
};
use shef_proto::config::{Config, Mode};
use shef_proto::entropy::{Entropy, SeededEntropy};
use shef_proto::hpke_suite::{PublicKey, Sender, derive_key_pair};
use shef_proto::load::{
    FirstEpoch, MASTER_LEN, Message, SessionKeys, first_epochs, open_load_key, seal_load_key,
};
use shef_regs::ctl::{
    self, CHAN_DOORBELL, CHAN_REQ, CHAN_RSP, CONFIRM, LOAD_DOORBELL, LOAD_MSG, STATUS,
    STATUS_STATE_CLOSED as CLOSED, STATUS_STATE_EMPTY as EMPTY, STATUS_STATE_FRESH as FRESH,
    STATUS_STATE_KEYED as KEYED,
};
use shef_regs::krn::{
    CONFIG_DIGEST as KRN_DIGEST, CTRL as KRN_CTRL, LAST as KRN_LAST, PUBKEY as KRN_PUBKEY,
    SEED as KRN_SEED, STATUS as KRN_STATUS, T as KRN_T,
};
use shef_rtl::agent::Rng;
use shef_rtl::{
    AxiMemoryConfig, CoreSim, DesignSpec, HostMemory, Library, Sim, build, build_once, module_spec,
    repo_root,
};
use shef_tb::dma::{Msix, RingMemory, Shared};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Duration;

const LOAD_BUSY: u32 = ctl::STATUS_LOAD_BUSY.put(1);
const LOAD_REFUSED: u32 = ctl::STATUS_LOAD_REFUSED.put(1);
const CHAN_BUSY: u32 = ctl::STATUS_CHAN_BUSY.put(1);
const CHAN_REFUSED: u32 = ctl::STATUS_CHAN_REFUSED.put(1);
const CHAN_ANSWER: u32 = ctl::STATUS_CHAN_ANSWER.put(1);

fn library() -> &'static Library {
    let spec = module_spec("shef_sim_top").expect("sources").search("sim/rtl/tests/core");
    build_once(&spec).expect("build")
}

/// The same Shield in the core with a `host` port.
fn hosted() -> &'static Library {
    let spec = module_spec("shef_host_top").expect("sources").search("sim/rtl/tests/core");
    build_once(&spec).expect("build")
}

/// The same accelerator behind another Shield, whose package is in `folder`.
fn spec_of(config: &Config, folder: &std::path::Path) -> DesignSpec {
    std::fs::create_dir_all(folder).unwrap();
    let package = folder.join("shef_cfg_pkg.sv");
    std::fs::write(
        &package,
        shef_gen::shield::systemverilog(config, shef_gen::shield::Synthesis::default()),
    )
    .unwrap();
    module_spec("shef_sim_top").expect("sources").source(&package).search("sim/rtl/tests/core")
}

/// The same Shield with `on_fault = "halt"` and scratch regions, with comparable state.
fn halting_spec(folder: &std::path::Path) -> DesignSpec {
    spec_of(&halting_config(), folder).savable()
}

/// A Shield without card memory.
fn memoryless() -> (&'static Library, Config) {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    let config = shef_gen::shield::parse("").expect("a Shield without regions").config;
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("core-no-memory");
    (LIBRARY.get_or_init(|| build(&spec_of(&config, &folder)).expect("build")), config)
}

fn halting() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("core-halt");
        build(&halting_spec(&folder)).expect("build")
    })
}

fn halting_config() -> Config {
    // two levels of the tree are in memory
    const SCRATCH: &str = "\n[[region]]\nname = \"counted\"\nmode = \"counted\"\nbase = 0x40_0000\nsize = \"64 KiB\"\nchunk = 512\n\
                           [[region]]\nname = \"tree\"\nmode = \"tree\"\nbase = 0x1000_0000\nsize = \"128 MiB\"\nchunk = 64\n";
    let source = include_str!("core/shield.toml")
        .replace("on_fault = \"shield\"", "on_fault = \"halt\"")
        + SCRATCH;
    shef_gen::shield::parse(&source).expect("shield.toml").config
}

/// First bytes of the scratch regions.
const COUNTED: u32 = 0x40_0000;
const TREE: u32 = 0x1000_0000;
/// Distance in bytes between chunks whose nodes compete for the same set of the node cache, which
/// has four ways.
const SAME_NODE_SET: u32 = 128 * 8 * 64;

fn config() -> Config {
    shef_gen::shield::parse(include_str!("core/shield.toml")).expect("shield.toml").config
}

struct Shield {
    core: CoreSim,
    config: Config,
    /// Cycles from the last doorbell to its completion.
    busy: u64,
}

impl Shield {
    fn new() -> Self {
        Self::of(library(), config())
    }

    fn of(library: &Library, config: Config) -> Self {
        Self::with(library, config, AxiMemoryConfig::default())
    }

    fn with(library: &Library, config: Config, memory: AxiMemoryConfig) -> Self {
        let mut s =
            Self { core: CoreSim::new(library, memory).expect("instance"), config, busy: 0 };
        s.wait(7, EMPTY);
        s
    }

    fn wait(&mut self, mask: u32, want: u32) -> u64 {
        self.core.wait_ctl(STATUS, mask, want, 4, 1_000_000).expect("state")
    }

    fn status(&mut self) -> u32 {
        self.core.ctl_read(STATUS).unwrap().unwrap()
    }

    fn ctl_bytes(&mut self, at: u32, n: usize) -> Vec<u8> {
        (0..n as u32 / 4)
            .flat_map(|i| self.core.ctl_read(at + 4 * i).unwrap().expect("readable").to_le_bytes())
            .collect()
    }

    fn krn_bytes(&mut self, at: u32, n: usize) -> Vec<u8> {
        (0..n as u32 / 4)
            .flat_map(|i| self.core.krn_read(at + 4 * i).unwrap().expect("readable").to_le_bytes())
            .collect()
    }

    fn ctl_put(&mut self, at: u32, bytes: &[u8]) {
        for (i, word) in bytes.chunks(4).enumerate() {
            let mut w = [0; 4];
            w[..word.len()].copy_from_slice(word);
            assert!(self.core.ctl_write(at + 4 * i as u32, u32::from_le_bytes(w)).unwrap());
        }
    }

    /// Gives a seed; returns the public key that the port shows.
    fn seed(&mut self, seed: &[u8; 32]) -> PublicKey {
        for (i, w) in seed.chunks(4).enumerate() {
            assert!(
                self.core
                    .krn_write(KRN_SEED + 4 * i as u32, u32::from_le_bytes(w.try_into().unwrap()))
                    .unwrap()
            );
        }
        assert!(self.core.krn_write(KRN_CTRL, 1).unwrap());
        let cycles = self.wait(7, FRESH);
        println!("derive key pair: {cycles} cycles");
        let xy: [u8; 64] = self.krn_bytes(KRN_PUBKEY, 64).try_into().unwrap();
        PublicKey::from_xy(&xy).expect("a point of the curve")
    }

    /// Delivers a Load Key; returns whether it was accepted.
    fn load(&mut self, message: &[u8], len: u32) -> bool {
        self.ctl_put(LOAD_MSG, message);
        assert!(self.core.ctl_write(LOAD_DOORBELL, len).unwrap());
        self.busy = self.wait(LOAD_BUSY, 0);
        self.status() & LOAD_REFUSED == 0
    }

    fn deliver(&mut self, sealed: &[u8]) -> Option<Sealed> {
        self.ctl_put(CHAN_REQ, sealed);
        assert!(self.core.ctl_write(CHAN_DOORBELL, 0).unwrap());
        self.busy = self.wait(CHAN_BUSY, 0);
        let status = self.status();
        (status & CHAN_REFUSED == 0).then(|| {
            assert_ne!(status & CHAN_ANSWER, 0);
            self.ctl_bytes(CHAN_RSP, 88).try_into().unwrap()
        })
    }

    fn call(&mut self, owner: &mut OwnerChannel, request: &ShieldRequest) -> ShieldAnswer {
        let sealed = owner.request(request).expect("request");
        let answer = self.deliver(&sealed).expect("accepted");
        owner.answer(&answer).expect("authentic answer")
    }

    /// Seed, Load Key, confirmation.
    fn keyed(&mut self, n: u64, epoch: u64) -> (SessionKeys, OwnerChannel) {
        let mut rng = SeededEntropy::new(n, "core");
        let mut seed = [0; 32];
        rng.fill(&mut seed);
        let pk = self.seed(&seed);
        let epochs = first_epochs(&self.config, epoch);
        let (message, keys) = seal_load_key(&self.config, &pk, b"info", &epochs, &mut rng).unwrap();
        assert!(self.load(&message, message.len() as u32));
        println!("load key of {} bytes: {} cycles", message.len(), self.busy);
        assert_eq!(self.status() & 7, KEYED);
        keys.check_confirmation(&self.ctl_bytes(CONFIRM, 32)).expect("confirmation");
        assert_eq!(self.krn_bytes(KRN_T, 32), keys.transcript().0);
        let owner = OwnerChannel::new(&keys);
        (keys, owner)
    }

    fn shield_page(&mut self, owner: &mut OwnerChannel) -> ShieldStatement {
        let a = self.call(owner, &ShieldRequest::statement(0));
        assert_eq!(a.status, status::DONE);
        ShieldStatement::from_payload(&a.payload).expect("page 0")
    }
}

#[test]
fn identity_registers() {
    let mut s = Shield::new();
    assert_eq!(s.ctl_bytes(0, 4), b"SHEF");
    assert_eq!(s.core.ctl_read(4).unwrap(), Some(0x0001_0000));
    assert_eq!(s.core.ctl_read(8).unwrap(), Some(1));
    assert_eq!(s.core.ctl_read(0xc).unwrap(), Some(250_000));
    assert_eq!(s.core.ctl_read(0x10).unwrap(), Some(1 | 1 << 4 | 3 << 8));
    assert_eq!(s.ctl_bytes(0x20, 32), s.config.digest());
    assert_eq!(s.krn_bytes(KRN_DIGEST, 32), s.config.digest());
    assert_eq!(s.core.krn_read(KRN_STATUS).unwrap(), Some(EMPTY));
}

#[test]
fn every_address_is_answered_and_only_registers_decode() {
    let mut s = Shield::new();
    let inside = |a: u32, from: u32, len: u32| a >= from && a < from + len;
    let ctl_read = |a| {
        inside(a, 0, 0x14)
            || inside(a, 0x20, 32)
            || inside(a, 0x100, 4)
            || inside(a, 0x120, 32)
            || inside(a, 0x2100, 88)
    };
    let ctl_write = |a| inside(a, 0x200, 8) || inside(a, 0x1000, 1024) || inside(a, 0x2000, 88);
    for a in (0..0x1_0000).step_by(4) {
        assert_eq!(s.core.ctl_read(a).unwrap().is_some(), ctl_read(a), "ctl read {a:#x}");
        assert_eq!(s.core.ctl_write(a, 0).unwrap(), ctl_write(a), "ctl write {a:#x}");
    }
    let krn_read = |a| inside(a, 4, 4) || inside(a, 0x40, 0x80) || inside(a, 0x100, 88);
    for a in (0..0x1000).step_by(4) {
        assert_eq!(s.core.krn_read(a).unwrap().is_some(), krn_read(a), "krn read {a:#x}");
        assert_eq!(
            s.core.krn_write(a, 0).unwrap(),
            a == 0 || inside(a, 0x20, 32),
            "krn write {a:#x}"
        );
    }
    // Doorbells outside their state are refused at once.
    assert_eq!(s.status(), EMPTY | LOAD_REFUSED | CHAN_REFUSED);
}

#[test]
fn seed_gives_the_key_pair_of_rfc_9180() {
    let mut s = Shield::new();
    for n in 0..2 {
        let mut seed = [0; 32];
        SeededEntropy::new(n, "seed").fill(&mut seed);
        let (_, pk) = derive_key_pair(&seed);
        assert_eq!(s.seed(&seed), pk);
        // one seed only: the port accepts no second one
        assert!(!s.core.krn_write(KRN_SEED, 1).unwrap());
        assert!(!s.core.krn_write(KRN_CTRL, 1).unwrap());
        assert_eq!(s.status() & 7, FRESH);
        // a wipe removes it
        s.core.krn_write(KRN_CTRL, 2).unwrap();
        s.wait(7, EMPTY);
        assert_eq!(s.krn_bytes(KRN_PUBKEY, 64), [0; 64]);
    }
}

/// A key pair requires a whole seed, written since the last one was taken.
#[test]
fn a_seed_that_is_not_whole_is_refused() {
    let mut p = Pair::new();
    assert!(!p.krn(KRN_CTRL, 1));
    for missing in 0..8_u32 {
        for word in (0..8).filter(|&w| w != missing) {
            assert!(p.krn(KRN_SEED + 4 * word, 0x1111_1111 * word));
        }
        assert!(!p.krn(KRN_CTRL, 1));
        assert_eq!(p.rtl.status(), EMPTY, "word {missing} is missing");
        // a refused command has no effect at all: no wipe either
        assert!(!p.krn(KRN_CTRL, 3));
        assert!(p.krn(KRN_CTRL, 2));
        p.rtl.wait(7, EMPTY);
    }
    // words of a seed that a wipe removed do not count, nor do those of the previous seed
    for word in 0..7 {
        assert!(p.krn(KRN_SEED + 4 * word, 5));
    }
    assert!(p.krn(KRN_CTRL, 2));
    p.rtl.wait(7, EMPTY);
    assert!(p.krn(KRN_SEED + 28, 5));
    assert!(!p.krn(KRN_CTRL, 1));
    p.seed(&[7; 32]);
    p.compare();
    assert!(!p.krn(KRN_CTRL, 1));
    assert!(!p.krn(KRN_SEED, 1));
    assert_eq!(p.rtl.status() & 7, FRESH);
}

#[test]
fn session_from_seed_to_close() {
    let mut s = Shield::new();
    assert_eq!(s.ctl_bytes(CONFIRM, 32), [0; 32]);
    let (keys, mut owner) = s.keyed(1, 5);

    let before = s.core.cycles();
    let a = s.call(&mut owner, &ShieldRequest::ping());
    println!("ping: {} cycles, {} with its transfer", s.busy, s.core.cycles() - before);
    assert_eq!((a.op, a.status, a.value, a.payload), (Op::Ping as u8, 0, 0, [0; 48]));

    // registers
    for i in 0..8 {
        assert_eq!(s.call(&mut owner, &ShieldRequest::write(4 * i, 0xa5a5_0000 + i)).status, 0);
    }
    for i in 0..8 {
        let a = s.call(&mut owner, &ShieldRequest::read(4 * i));
        assert_eq!((a.status, a.value, a.addr), (0, u64::from(0xa5a5_0000 + i), 4 * i));
    }
    for (request, want) in [
        (ShieldRequest::read(0x40), status::REGISTER),
        (ShieldRequest::write(0x40, 1), status::REGISTER),
        (ShieldRequest::read(2), status::BAD),
        (ShieldRequest::write(0x1_0000, 1), status::BAD),
        (ShieldRequest { op: 0, ..ShieldRequest::default() }, status::BAD),
        (ShieldRequest { op: 0xff, region: 7, addr: 9, value: 3 }, status::BAD),
        (ShieldRequest::statement(4), status::BAD),
        (ShieldRequest::statement(0x100), status::BAD),
        (ShieldRequest::statement(0x0100_0001), status::BAD),
        (ShieldRequest::map(0, 0), status::BAD),
        (ShieldRequest::map(3, 0), status::BAD),
        (ShieldRequest::map(1, 3), status::BAD),
        (ShieldRequest::epoch(3, 9), status::BAD),
        (ShieldRequest::epoch(1, 5), status::BAD),
        (ShieldRequest::epoch(1, 4), status::BAD),
        (ShieldRequest::epoch(1, 1 << 48), status::BAD),
        (ShieldRequest::epoch(1, u64::MAX), status::BAD),
        (ShieldRequest::stats(1, 0), status::BAD),
        (ShieldRequest::stats(0, 2), status::BAD),
        (ShieldRequest::stats(0, 0x0100_0000), status::BAD),
        (ShieldRequest { op: HALT, ..ShieldRequest::default() }, status::BAD),
        (ShieldRequest::map(1, 2), status::DONE),
        (ShieldRequest::epoch(1, 6), status::DONE),
        (ShieldRequest::flush(), status::DONE),
        (ShieldRequest::invalidate(), status::DONE),
    ] {
        let a = s.call(&mut owner, &request);
        assert_eq!(
            (a.status, a.op, a.region, a.addr),
            (want, request.op, request.region, request.addr),
            "{request:?}"
        );
        assert_eq!((a.value, a.payload), (0, [0; 48]), "{request:?}");
    }

    // statement
    let page = s.shield_page(&mut owner);
    assert_eq!((page.state, page.stopped, page.faults, page.refusals), (State::Keyed, false, 0, 0));
    assert_eq!(page.requests, owner.seq());
    for (i, r) in config().regions().iter().enumerate() {
        let a = s.call(&mut owner, &ShieldRequest::statement(1 + i as u32));
        assert_eq!(a.payload[0], r.mode.number());
        assert_eq!(a.payload[1], r.chunk_log2());
        assert_eq!(a.payload[4..8], [0; 4]);
        assert_eq!(a.payload[8..16], if i == 1 { 6_u64 } else { 5 }.to_le_bytes());
        assert_eq!(a.payload[16..24], r.chunks().to_le_bytes());
    }

    // close
    let last = s.call(&mut owner, &ShieldRequest::close());
    assert_eq!(last.status, 0);
    let page = ShieldStatement::from_payload(&last.payload).unwrap();
    assert_eq!((page.state, page.requests), (State::Closed, owner.seq()));
    assert_eq!(s.status() & 7, CLOSED);
    assert_eq!(s.krn_bytes(KRN_LAST, 88), s.ctl_bytes(CHAN_RSP, 88));
    assert_eq!(s.krn_bytes(KRN_T, 32), keys.transcript().0);
    assert_eq!(s.krn_bytes(KRN_PUBKEY, 64), [0; 64]);
    assert_eq!(s.ctl_bytes(CONFIRM, 32), [0; 32]);

    // the next session is a different one
    let (other, mut owner) = s.keyed(2, 1);
    assert_ne!(other.transcript(), keys.transcript());
    assert_eq!(s.call(&mut owner, &ShieldRequest::ping()).status, 0);
    assert_eq!(s.shield_page(&mut owner).requests, 2);
}

#[test]
fn replays_and_forgeries_change_nothing() {
    let mut s = Shield::new();
    let (_, mut owner) = s.keyed(3, 1);
    s.call(&mut owner, &ShieldRequest::write(0, 1));
    let first = owner.request(&ShieldRequest::write(0, 7)).unwrap();
    let answer = s.deliver(&first).unwrap();
    owner.answer(&answer).unwrap();

    // the same bytes: the stored answer, and nothing runs again
    let write = owner.request(&ShieldRequest::write(0, 9)).unwrap();
    let stored = s.deliver(&write).unwrap();
    for _ in 0..3 {
        assert_eq!(s.deliver(&write).unwrap(), stored);
    }
    owner.answer(&stored).unwrap();

    let next = owner.request(&ShieldRequest::read(0)).unwrap();
    let mut bad: Vec<Sealed> = vec![first, [0; 88], [0xff; 88], stored];
    for bit in (0..88 * 8).step_by(7) {
        let mut m = next;
        m[bit / 8] ^= 1 << (bit % 8);
        bad.push(m);
        let mut m = write;
        m[bit / 8] ^= 1 << (bit % 8);
        bad.push(m);
    }
    for m in &bad {
        assert!(s.deliver(m).is_none(), "{m:02x?}");
        assert_eq!(s.ctl_bytes(CHAN_RSP, 88), stored, "the last answer stays readable");
    }
    // the last request is still the last one, and the next one runs
    assert_eq!(s.deliver(&write).unwrap(), stored);
    let a = s.deliver(&next).unwrap();
    assert_eq!(owner.answer(&a).unwrap().value, 9);
    let page = s.shield_page(&mut owner);
    assert_eq!((page.requests, page.stopped), (5, false));
}

#[test]
fn malformed_load_keys_are_refused_and_the_good_one_still_opens() {
    let mut s = Shield::new();
    let mut rng = SeededEntropy::new(4, "malformed");
    let mut seed = [0; 32];
    rng.fill(&mut seed);
    let pk = s.seed(&seed);
    let epochs = first_epochs(&s.config, 1);
    let (good, keys) = seal_load_key(&s.config, &pk, b"who and why", &epochs, &mut rng).unwrap();
    let fresh = s.krn_bytes(KRN_PUBKEY, 64);

    // every length but the right one, from the same mailbox
    s.ctl_put(LOAD_MSG, &[good.as_slice(), &[0; 64]].concat());
    for len in (0..=1100).chain([2047, 2048, 1 << 16, u32::MAX]).filter(|&n| n != good.len() as u32)
    {
        assert!(s.core.ctl_write(LOAD_DOORBELL, len).unwrap());
        s.wait(LOAD_BUSY, 0);
        assert_eq!(s.status(), FRESH | LOAD_REFUSED, "length {len}");
    }
    // wrong suite and length fields
    for (at, value) in [
        (0, 1),
        (1, 2),
        (1, 0),
        (2, 1),
        (3, 64),
        (3, 66),
        (69, 1),
        (70, 10),
        (70, 12),
        (71 + 11, 1),
        (71 + 12, 0),
        (71 + 12, 15),
    ] {
        let mut m = good.clone();
        assert_ne!(m[at], value);
        m[at] = value;
        assert!(!s.load(&m, m.len() as u32), "byte {at} = {value}");
    }
    assert_eq!(s.krn_bytes(KRN_PUBKEY, 64), fresh);
    assert!(s.load(&good, good.len() as u32));
    keys.check_confirmation(&s.ctl_bytes(CONFIRM, 32)).unwrap();
    // one seed takes one Load Key
    assert!(!s.load(&good, good.len() as u32));
    assert_eq!(s.status() & 7, KEYED);
    let mut owner = OwnerChannel::new(&keys);
    assert_eq!(s.call(&mut owner, &ShieldRequest::ping()).status, 0);
}

#[test]
fn load_keys_that_do_not_open_change_nothing() {
    let mut s = Shield::new();
    let mut rng = SeededEntropy::new(5, "closed");
    let mut seed = [0; 32];
    rng.fill(&mut seed);
    let pk = s.seed(&seed);
    let (sk, _) = derive_key_pair(&seed);
    let epochs = first_epochs(&s.config, 1);
    let (good, keys) = seal_load_key(&s.config, &pk, b"info", &epochs, &mut rng).unwrap();
    let (_, stranger) = derive_key_pair(&[7; 32]);

    // authentic plaintexts with wrong contents
    let plain = |list: &[(u8, u64)], count: u8, cut: usize, rng: &mut SeededEntropy| {
        let mut p = vec![9; MASTER_LEN];
        p.push(count);
        for (region, epoch) in list {
            p.push(*region);
            p.extend_from_slice(&epoch.to_be_bytes()[2..]);
        }
        p.truncate(p.len() - cut);
        let (enc, mut sender) = Sender::setup(&pk, b"", rng).unwrap();
        let aad = [&[0, 1], &config().digest()[..]].concat();
        let ct = sender.seal(&aad, &p).unwrap();
        Message { enc, info: Vec::new(), ct }.to_bytes()
    };
    let mut bad: Vec<(&str, Vec<u8>)> = vec![
        (
            "for another key",
            seal_load_key(&s.config, &stranger, b"info", &epochs, &mut rng).unwrap().0,
        ),
        ("no region", plain(&[], 0, 0, &mut rng)),
        ("a region missing", plain(&[(0, 1), (1, 1)], 2, 0, &mut rng)),
        ("a region twice", plain(&[(0, 1), (1, 1), (1, 1)], 3, 0, &mut rng)),
        ("not ascending", plain(&[(0, 1), (2, 1), (1, 1)], 3, 0, &mut rng)),
        ("a region too many", plain(&[(0, 1), (1, 1), (2, 1), (3, 1)], 4, 0, &mut rng)),
        ("count too small", plain(&[(0, 1), (1, 1), (2, 1)], 2, 0, &mut rng)),
        ("count too large", plain(&[(0, 1), (1, 1), (2, 1)], 4, 0, &mut rng)),
        ("cut inside an entry", plain(&[(0, 1), (1, 1), (2, 1)], 3, 1, &mut rng)),
        ("cut inside the master key", plain(&[], 0, 2, &mut rng)),
    ];
    // (every byte of the message that HPKE binds)
    for at in [4, 5, 40, 68, 71, 74, 77, 77 + 33, good.len() - 16, good.len() - 1] {
        let mut m = good.clone();
        m[at] ^= 0x20;
        bad.push(("a changed byte", m));
    }
    let mut m = good.clone();
    m[5..69].fill(0);
    bad.push(("the point (0, 0)", m));
    let mut m = good.clone();
    m[5..69].fill(0xff);
    bad.push(("coordinates above p", m));
    for (what, m) in &bad {
        assert!(open_load_key(&config(), &sk, m).is_err(), "{what}");
        assert!(!s.load(m, m.len() as u32), "{what}");
        assert_eq!(s.status(), FRESH | LOAD_REFUSED, "{what}");
        assert_eq!(
            (s.ctl_bytes(CONFIRM, 32), s.krn_bytes(KRN_T, 32)),
            (vec![0; 32], vec![0; 32]),
            "{what}"
        );
    }
    assert!(s.load(&good, good.len() as u32));
    keys.check_confirmation(&s.ctl_bytes(CONFIRM, 32)).unwrap();
}

/// A point that is not on the curve must not meet the private key: it is refused long before a
/// multiplication could complete.
#[test]
fn a_point_off_the_curve_is_never_multiplied() {
    const MULTIPLICATION: u64 = 200_000;
    let mut s = Shield::new();
    let mut rng = SeededEntropy::new(6, "off the curve");
    let mut seed = [0; 32];
    rng.fill(&mut seed);
    let pk = s.seed(&seed);
    let (good, _) =
        seal_load_key(&s.config, &pk, b"info", &first_epochs(&s.config, 1), &mut rng).unwrap();
    for (what, at, change) in [
        ("x", 5..37, 1),
        ("y", 37..69, 1),
        ("last bit of y", 68..69, 1),
        ("(0, 0)", 5..69, 0),
        ("above p", 5..69, 0xff),
    ] {
        let mut m = good.clone();
        m[at].iter_mut().for_each(|b| *b = if change == 1 { *b ^ 1 } else { change });
        assert!(!s.load(&m, m.len() as u32), "{what}");
        assert!(s.busy < MULTIPLICATION / 4, "{what}: refused after {} cycles", s.busy);
    }
    assert!(s.load(&good, good.len() as u32));
    assert!(s.busy > MULTIPLICATION, "{} cycles", s.busy);
}

#[test]
fn random_load_keys_agree_with_crate_hpke() {
    let mut s = Shield::new();
    let mut rng = SeededEntropy::new(6, "random");
    for (n, info_len) in [0, 1, 55, 255, 256].into_iter().enumerate() {
        let mut seed = [0; 32];
        rng.fill(&mut seed);
        let pk = s.seed(&seed);
        let mut info = vec![0; info_len];
        rng.fill(&mut info);
        let epochs: Vec<FirstEpoch> = [0, (1 << 48) - 1, 0x0102_0304_0506]
            .iter()
            .zip(0..)
            .map(|(&epoch, region)| FirstEpoch { region, epoch })
            .collect();
        let (message, keys) = seal_load_key(&s.config, &pk, &info, &epochs, &mut rng).unwrap();
        assert!(s.load(&message, message.len() as u32), "message {n}");
        keys.check_confirmation(&s.ctl_bytes(CONFIRM, 32)).unwrap();
        assert_eq!(s.krn_bytes(KRN_T, 32), keys.transcript().0);
        let mut owner = OwnerChannel::new(&keys);
        for e in &epochs {
            let a = s.call(&mut owner, &ShieldRequest::statement(1 + u32::from(e.region)));
            assert_eq!(a.payload[8..16], e.epoch.to_le_bytes());
        }
        assert_eq!(s.call(&mut owner, &ShieldRequest::abort()).status, 0);
        assert_eq!(s.status() & 7, CLOSED);
    }
}

#[test]
fn a_register_that_hangs_is_an_error() {
    let mut s = Shield::new();
    let (_, mut owner) = s.keyed(7, 1);
    s.call(&mut owner, &ShieldRequest::write(0, 3));
    assert_eq!(s.call(&mut owner, &ShieldRequest::read(0x100)).status, status::REGISTER);
    // it is not forwarded again in this session
    assert_eq!(s.call(&mut owner, &ShieldRequest::read(0)).status, status::REGISTER);
    assert_eq!(s.call(&mut owner, &ShieldRequest::ping()).status, 0);
    assert_eq!(s.call(&mut owner, &ShieldRequest::close()).status, 0);
    let (_, mut owner) = s.keyed(8, 1);
    let a = s.call(&mut owner, &ShieldRequest::read(0));
    assert_eq!((a.status, a.value), (0, 0), "the accelerator was reset between the sessions");
}

#[test]
fn wipe_ends_everything_at_any_moment() {
    let mut s = Shield::new();
    let (_, mut owner) = s.keyed(9, 1);
    let request = owner.request(&ShieldRequest::ping()).unwrap();
    println!("wipe: {} cycles", s.core.wipe().unwrap());
    s.wait(7, EMPTY);
    assert_eq!(s.ctl_bytes(CONFIRM, 32), [0; 32]);
    assert_eq!(s.krn_bytes(KRN_T, 32), [0; 32]);
    assert_eq!(s.krn_bytes(KRN_PUBKEY, 64), [0; 64]);
    assert_eq!(s.krn_bytes(KRN_LAST, 88), [0; 88]);
    assert!(s.deliver(&request).is_none());

    // in the middle of a derivation, of a Load Key, of a request
    let mut rng = SeededEntropy::new(9, "wipe");
    let mut seed = [0; 32];
    for wait in [10, 3_000, 100_000] {
        rng.fill(&mut seed);
        for (i, w) in seed.chunks(4).enumerate() {
            s.core
                .krn_write(KRN_SEED + 4 * i as u32, u32::from_le_bytes(w.try_into().unwrap()))
                .unwrap();
        }
        s.core.krn_write(KRN_CTRL, 1).unwrap();
        s.core.step(wait);
        s.core.wipe().unwrap();
        s.wait(7, EMPTY);
        assert_eq!(s.krn_bytes(KRN_PUBKEY, 64), [0; 64]);
    }
    let pk = s.seed(&seed);
    let (message, _) =
        seal_load_key(&s.config, &pk, b"", &first_epochs(&config(), 1), &mut rng).unwrap();
    s.ctl_put(LOAD_MSG, &message);
    s.core.ctl_write(LOAD_DOORBELL, message.len() as u32).unwrap();
    s.core.step(50_000);
    assert_eq!(s.status(), FRESH | LOAD_BUSY);
    s.core.wipe().unwrap();
    s.wait(7, EMPTY);
    let (_, mut owner) = s.keyed(10, 1);
    s.ctl_put(CHAN_REQ, &owner.request(&ShieldRequest::ping()).unwrap());
    s.core.ctl_write(CHAN_DOORBELL, 1).unwrap();
    s.core.step(500);
    s.core.wipe().unwrap();
    s.wait(7, EMPTY);
    assert_eq!(s.ctl_bytes(CHAN_RSP, 88), [0; 88]);
}

#[test]
fn the_set_gets_the_keys_and_epochs_of_the_session() {
    let mut s = Shield::new();
    let (keys, mut owner) = s.keyed(11, 3);
    for region in config().regions() {
        let chunk = 1_usize << region.chunk_log2();
        let key = keys.data_key(region.id).unwrap();
        if region.id == 1 {
            // the accelerator writes a chunk, and the owner's key opens it
            s.call(&mut owner, &ShieldRequest::write(0, 0x1234_5678));
            s.call(&mut owner, &ShieldRequest::write(0x20, region.base as u32));
            s.call(&mut owner, &ShieldRequest::write(0x24, 2));
            s.core.step(2_000);
            assert_eq!(s.call(&mut owner, &ShieldRequest::read(0x28)).value, 1);
            assert_eq!(s.call(&mut owner, &ShieldRequest::flush()).status, 0);
            let (mut data, mut tag) = (vec![0; chunk], [0; 16]);
            s.core.memory().read(region.base, &mut data);
            s.core.memory().read(region.tag_base, &mut tag);
            let iv = iv(region.id, 3, 0);
            open(key.expose(), &iv, &mut data, &tag).expect("sealed under the region's key");
            assert!(data.chunks(4).all(|w| w == 0x1234_5678_u32.to_le_bytes()));
            let a = s.call(&mut owner, &ShieldRequest::map(1, 0));
            assert_eq!((a.payload[0], &a.payload[1..]), (1, &[0; 47][..]));
            assert_eq!(s.call(&mut owner, &ShieldRequest::statement(2)).payload[4], 1);
        } else {
            // the owner seals a chunk, the accelerator reads it
            let mut data: Vec<u8> = (0..chunk).map(|i| (i * 7 + i / 256) as u8).collect();
            let fold =
                data[..512].chunks(4).fold(0, |x, w| x ^ u32::from_le_bytes(w.try_into().unwrap()));
            let tag = seal(key.expose(), &iv(region.id, 3, 0), &mut data);
            s.core.memory_mut().write(region.base, &data);
            s.core.memory_mut().write(region.tag_base, &tag);
            s.call(&mut owner, &ShieldRequest::write(0x20, region.base as u32));
            s.call(&mut owner, &ShieldRequest::write(0x24, 1));
            s.core.step(2_000);
            assert_eq!(
                s.call(&mut owner, &ShieldRequest::read(0x28)).value,
                1,
                "region {}",
                region.id
            );
            assert_eq!(s.call(&mut owner, &ShieldRequest::read(0x2c)).value, u64::from(fold));
        }
    }
    // a refusal is counted, and the Shield continues
    s.call(&mut owner, &ShieldRequest::write(0x20, 0));
    s.call(&mut owner, &ShieldRequest::write(0x24, 2));
    s.core.step(1_000);
    assert_eq!(s.call(&mut owner, &ShieldRequest::read(0x28)).value, 5);
    let page = s.shield_page(&mut owner);
    assert_eq!((page.refusals, page.refusal_region, page.stopped), (1, 0, false));
    assert_eq!(page.refusal_kind, shef_proto::channel::RefusalKind::ReadOnly);

    // a tag that does not match stops the whole Shield
    let at = 4096;
    s.call(&mut owner, &ShieldRequest::write(0x20, at));
    s.call(&mut owner, &ShieldRequest::write(0x24, 1));
    s.core.step(2_000);
    assert_eq!(s.call(&mut owner, &ShieldRequest::read(0x28)).status, status::STOPPED);
    let page = s.shield_page(&mut owner);
    assert!(page.stopped);
    assert_eq!(
        (page.faults, page.fault_region, page.fault_chunk, page.fault_version),
        (1, 0, 8, 3)
    );
    assert_eq!(page.fault_kind, shef_proto::channel::FaultKind::Tag);
    for request in [
        ShieldRequest::flush(),
        ShieldRequest::invalidate(),
        ShieldRequest::epoch(1, 9),
        ShieldRequest::write(0, 1),
    ] {
        assert_eq!(s.call(&mut owner, &request).status, status::STOPPED);
    }
    assert_eq!(s.call(&mut owner, &ShieldRequest::map(1, 0)).status, 0);
    let last = s.call(&mut owner, &ShieldRequest::close());
    assert!(last.status == 0 && ShieldStatement::from_payload(&last.payload).unwrap().stopped);
    // and the next session starts clean
    let (_, mut owner) = s.keyed(12, 1);
    assert!(!s.shield_page(&mut owner).stopped);
}

/// A core with its `host` port, driven by the real driver of the rings.
struct Hosted {
    s: Shield,
    host: Shared,
    shell: Rc<RefCell<HostMemory<Shared>>>,
    irqs: Rc<RefCell<Msix>>,
}

impl Hosted {
    /// Creates it with this timing of host and card memory.
    fn new(timing: AxiMemoryConfig, memory: AxiMemoryConfig) -> Self {
        let mut s = Shield::with(hosted(), config(), memory);
        let host = Shared::default();
        let shell = Rc::new(RefCell::new(
            HostMemory::new(s.core.sim(), "host_", timing, host.clone()).expect("host port"),
        ));
        let irqs = Rc::<RefCell<Msix>>::default();
        s.core.attach(Box::new(shell.clone()));
        s.core.attach(Box::new(irqs.clone()));
        Self { s, host, shell, irqs }
    }

    fn queue(&mut self, index: u32, base: u64) -> Queue<RingMemory> {
        let ring = self.host.ring(16, base);
        Queue::open(self, index, 16, ring, index + 1, 4).expect("a queue")
    }

    /// Moves bytes and waits for completion.
    fn moves(&mut self, queue: &mut Queue<RingMemory>, op: u8, host: u64, card: u64, bytes: u32) {
        assert!(queue.push(&Descriptor { op, flags: 0, tag: 7, host, card, bytes }).unwrap());
        queue.submit(self).unwrap();
        let done = queue.wait(self, Duration::from_secs(60)).unwrap().expect("a completion");
        assert_eq!((done.status, done.bytes), (Status::Done, bytes));
    }
}

impl Registers for Hosted {
    fn register(&mut self, offset: u32) -> Result<u32, DeviceError> {
        Ok(self.s.core.ctl_read(offset).unwrap().unwrap_or(u32::MAX))
    }

    fn set_register(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        self.s.core.ctl_write(offset, value).unwrap();
        Ok(())
    }

    fn interrupted(&mut self, vector: u32, _: Duration) -> Result<bool, DeviceError> {
        let irqs = self.irqs.clone();
        Ok(self.s.core.run_until(20_000, 16, |_| irqs.borrow_mut().take(vector)).is_some())
    }
}

#[test]
fn rings_keep_the_bus_busy_both_ways_beside_the_shield() {
    const HOST: u64 = 1 << 32;
    const CYCLES: u64 = 6000;
    let mut h = Hosted::new(AxiMemoryConfig::bench(250, 100), AxiMemoryConfig::bench(60, 40));
    h.host.0.borrow_mut().map(HOST..HOST + (1 << 20));
    let mut queues = [h.queue(1, 1 << 40), h.queue(2, 1 << 41)];
    for (queue, op) in queues.iter_mut().zip([OP_TO_CARD, OP_TO_HOST]) {
        for n in 0..16 {
            let d = Descriptor {
                op,
                flags: 0,
                tag: n,
                host: HOST + (512 << 10) * u64::from(op / 2),
                card: 1 << 24,
                bytes: 512 << 10,
            };
            assert!(queue.push(&d).unwrap());
        }
        queue.submit(&mut h).unwrap();
    }
    h.s.core.step(2000);
    let before = (h.shell.borrow().counters.read_beats, h.shell.borrow().bytes_written);
    h.s.core.step(CYCLES);
    let read = 64 * (h.shell.borrow().counters.read_beats - before.0);
    let written = h.shell.borrow().bytes_written - before.1;
    println!(
        "{:.1} B/cycle to the card, {:.1} to the host",
        read as f64 / CYCLES as f64,
        written as f64 / CYCLES as f64
    );
    assert!(read >= 60 * CYCLES && written >= 60 * CYCLES);
    assert_eq!(h.shell.borrow().violations(), &[] as &[String]);
}

#[test]
fn sealed_data_goes_in_and_out_through_the_rings() {
    const HOST: u64 = 0x7_0000_0000;
    const BULK: u64 = 0x100_0000;
    let mut h = Hosted::new(AxiMemoryConfig::seeded(3), AxiMemoryConfig::seeded(4));
    h.host.0.borrow_mut().map(HOST..HOST + BULK);
    let (mut queue, mut bulk) = (h.queue(0, 0x8_0000_0000), h.queue(3, 0x8_0010_0000));
    let (keys, mut owner) = h.s.keyed(15, 4);
    // Concurrent traffic at the same memory port.
    let noise: Vec<u8> = (0..1 << 20).map(|i: u32| (i ^ i >> 8) as u8).collect();
    h.host.0.borrow_mut().bytes.write(HOST + BULK / 2, &noise);
    for _ in 0..15 {
        let d = Descriptor {
            op: OP_TO_CARD,
            flags: 0,
            tag: 0,
            host: HOST + BULK / 2,
            card: BULK,
            bytes: noise.len() as u32,
        };
        assert!(bulk.push(&d).unwrap());
    }
    bulk.submit(&mut h).unwrap();

    // Inbound: sealed on the host, transferred, read by the accelerator.
    let region = config().regions()[2].clone();
    let chunk = 1_usize << region.chunk_log2();
    let plain: Vec<u8> = (0..chunk).map(|i| (i * 13 + i / 256) as u8).collect();
    let fold = plain[..512].chunks(4).fold(0, |x, w| x ^ u32::from_le_bytes(w.try_into().unwrap()));
    let mut data = plain.clone();
    let tag = seal(keys.data_key(region.id).unwrap().expose(), &iv(region.id, 4, 0), &mut data);
    h.host.0.borrow_mut().bytes.write(HOST + 5, &data);
    h.host.0.borrow_mut().bytes.write(HOST + 0x8003, &tag);
    h.moves(&mut queue, OP_TO_CARD, HOST + 5, region.base, chunk as u32);
    h.moves(&mut queue, OP_TO_CARD, HOST + 0x8003, region.tag_base, 16);
    h.s.call(&mut owner, &ShieldRequest::write(0x20, region.base as u32));
    h.s.call(&mut owner, &ShieldRequest::write(0x24, 1));
    h.s.core.step(2_000);
    assert_eq!(h.s.call(&mut owner, &ShieldRequest::read(0x28)).value, 1);
    assert_eq!(h.s.call(&mut owner, &ShieldRequest::read(0x2c)).value, u64::from(fold));

    // Outbound: written by the accelerator, transferred, opened on the host.
    let region = config().regions()[1].clone();
    let chunk = 1_usize << region.chunk_log2();
    h.s.call(&mut owner, &ShieldRequest::write(0, 0x8765_4321));
    h.s.call(&mut owner, &ShieldRequest::write(0x20, region.base as u32));
    h.s.call(&mut owner, &ShieldRequest::write(0x24, 2));
    h.s.core.step(2_000);
    assert_eq!(h.s.call(&mut owner, &ShieldRequest::flush()).status, 0);
    h.moves(&mut queue, OP_TO_HOST, HOST + 0x9001, region.base, chunk as u32);
    h.moves(&mut queue, OP_TO_HOST, HOST + 0xa002, region.tag_base, 16);
    let (mut data, mut tag) = (vec![0; chunk], [0; 16]);
    h.host.0.borrow().bytes.read(HOST + 0x9001, &mut data);
    h.host.0.borrow().bytes.read(HOST + 0xa002, &mut tag);
    open(keys.data_key(region.id).unwrap().expose(), &iv(region.id, 4, 0), &mut data, &tag)
        .expect("sealed under the region's key");
    assert!(data.chunks(4).all(|w| w == 0x8765_4321_u32.to_le_bytes()));
    assert!(!h.s.shield_page(&mut owner).stopped);

    // A wipe ends both, and every register has its initial value.
    assert!(bulk.pending() > 0);
    let before = h.host.0.borrow().accesses;
    h.s.core.step(500);
    assert!(h.host.0.borrow().accesses > before, "the other traffic goes on");
    h.s.core.wipe().unwrap();
    let before = h.host.0.borrow().accesses;
    h.s.core.step(2_000);
    assert_eq!(h.host.0.borrow().accesses, before);
    assert_eq!(h.s.status() & 7, EMPTY);
    assert_eq!(h.s.core.ctl_read(0).unwrap(), Some(u32::from_le_bytes(*b"SHEF")));
    assert_eq!(h.s.core.ctl_read(reg::BASE + reg::ENTRIES).unwrap(), Some(0));
    let mut queue = h.queue(0, 0x8_0000_0000);
    h.moves(&mut queue, OP_TO_CARD, HOST + BULK / 2, BULK, 4096);
    let mut seen = vec![0; 4096];
    h.s.core.memory().read(BULK, &mut seen);
    assert_eq!(seen, noise[..4096]);
    assert_eq!(h.shell.borrow().violations(), &[] as &[String]);
    assert_eq!(h.s.core.violation(), None);
}

fn iv(region: u8, version: u64, chunk: u64) -> [u8; 12] {
    let mut iv = [0; 12];
    iv[0] = region;
    iv[1..7].copy_from_slice(&version.to_be_bytes()[2..]);
    iv[7..].copy_from_slice(&chunk.to_be_bytes()[3..]);
    iv
}

fn seal(key: &[u8], iv: &[u8; 12], data: &mut [u8]) -> [u8; 16] {
    use aes_gcm::aead::{AeadInOut, KeyInit};
    let nonce = aes_gcm::Nonce::from(*iv);
    match key.len() {
        16 => aes_gcm::Aes128Gcm::new_from_slice(key)
            .unwrap()
            .encrypt_inout_detached(&nonce, &[], data.into())
            .unwrap()
            .into(),
        _ => aes_gcm::Aes256Gcm::new_from_slice(key)
            .unwrap()
            .encrypt_inout_detached(&nonce, &[], data.into())
            .unwrap()
            .into(),
    }
}

fn open(key: &[u8], iv: &[u8; 12], data: &mut [u8], tag: &[u8; 16]) -> Option<()> {
    use aes_gcm::aead::{AeadInOut, KeyInit};
    let nonce = aes_gcm::Nonce::from(*iv);
    let tag = aes_gcm::Tag::from(*tag);
    match key.len() {
        16 => aes_gcm::Aes128Gcm::new_from_slice(key)
            .unwrap()
            .decrypt_inout_detached(&nonce, &[], data.into(), &tag)
            .ok(),
        _ => aes_gcm::Aes256Gcm::new_from_slice(key)
            .unwrap()
            .decrypt_inout_detached(&nonce, &[], data.into(), &tag)
            .ok(),
    }
}

/// A module with another program in the sequencer.
fn with_program(top: &str, file: &str, read: &dyn Fn(&str) -> Result<String, String>) -> Library {
    let program = shef_gen::ucode::assemble(file, read).expect("assembles");
    let folder = std::env::temp_dir().join(format!("shef-{file}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let package = folder.join("shef_ucode_pkg.sv");
    std::fs::write(&package, program.to_systemverilog(file)).unwrap();
    let library = build(&module_spec(top).expect("sources").source(&package)).expect("build");
    std::fs::remove_dir_all(&folder).unwrap();
    library
}

/// `hpke.uasm` on `shef_ctrl`; the bench is the memory on its ext bus.
struct Hpke {
    sim: Sim,
    ext: Vec<u8>,
    /// Number of candidates for the private key that are replaced by a number above the order.
    spoil: u32,
}

const V_VERDICT: usize = 0x520;
const IO_AEAD: usize = 0x809;
const SK: usize = 0x900;

impl Hpke {
    fn new(aead: u8) -> Self {
        static LIBRARY: OnceLock<Library> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| {
            let read = |f: &str| {
                std::fs::read_to_string(repo_root().join("shell-rtl/ucode").join(f))
                    .map_err(|e| e.to_string())
            };
            with_program("shef_ctrl", "hpke_vector.uasm", &read)
        });
        let mut sim = Sim::new(library).expect("instance");
        sim.reset("rst_ni", 2);
        let mut ext = vec![0; 4096];
        ext[IO_AEAD] = aead;
        Self { sim, ext, spoil: 0 }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.ext[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Runs until there is a verdict; returns the number of cycles.
    fn run(&mut self) -> u64 {
        self.ext[V_VERDICT] = 0;
        let start = self.sim.cycles();
        while self.ext[V_VERDICT] == 0 {
            assert!(self.sim.cycles() - start < 5_000_000, "no verdict");
            assert_eq!(self.sim.peek("trap_o"), 0);
            let request = self.sim.peek("ext_req_o") == 1 && self.sim.peek("ext_ack_i") == 0;
            let at = self.sim.peek("ext_addr_o") as usize;
            let write =
                (self.sim.peek("ext_we_o") == 1).then(|| self.sim.peek("ext_wdata_o") as u8);
            self.sim.tick();
            self.sim.poke("ext_ack_i", u64::from(request));
            self.sim.poke("event_i", 1);
            if request {
                if let Some(byte) = write {
                    self.ext[at] = byte;
                    if at == SK + 31 && self.spoil > 0 {
                        self.spoil -= 1;
                        self.ext[SK..SK + 32].fill(0xff);
                    }
                }
                self.sim.poke("ext_rdata_i", u64::from(self.ext[at]));
            }
            self.sim.eval();
        }
        self.sim.poke("event_i", 0);
        self.sim.cycles() - start
    }
}

#[test]
fn rfc_9180_a3_on_the_microprogram() {
    let text =
        std::fs::read_to_string(repo_root().join("tests/vectors/hpke-rfc9180-a3.json")).unwrap();
    let vector: serde_json::Value = serde_json::from_str(&text).unwrap();
    let field = |name: &str| hex::decode(vector[name].as_str().unwrap()).unwrap();
    let mut h = Hpke::new(1);
    let (info, aad, ct) = (field("info"), field("aad"), field("ct"));
    h.put(0x000, &field("ikm_r"));
    h.put(0x040, &field("enc"));
    h.put(0x100, &info);
    h.put(0x140, &aad);
    h.put(0x180, &ct);
    // RFC 9180 A.3.1.2, exported values
    for (context, exported) in [
        (&b""[..], "5e9bc3d236e1911d95e65b576a8a86d478fb827e8bdfe77b741b289890490d4d"),
        (&[0][..], "6cff87658931bda83dc857e6353efe4987a201b849658d9b047aab4cf216e796"),
        (b"TestContext", "d8f1ea7942adbba7412c6d431c62d01371ea476b823eb697e1f6e6cae1dab85a"),
    ] {
        h.put(0x1e0, context);
        h.put(
            0x200,
            &[info.len() as u8, aad.len() as u8, ct.len() as u8 - 16, context.len() as u8],
        );
        h.put(0x300, &[0; 0x220]);
        println!("RFC 9180 A.3 from seed to export: {} cycles", h.run());
        assert_eq!(h.ext[V_VERDICT], 1);
        assert_eq!(h.ext[0x900..0x920], field("sk_r"));
        assert_eq!(h.ext[0x300..0x341], field("pk_r"));
        assert_eq!(h.ext[0x380..0x3a0], field("shared_secret"));
        assert_eq!(
            h.ext[0x3a0..0x3e1],
            [&[0][..], &field("psk_id_hash"), &field("info_hash")].concat()
        );
        assert_eq!(h.ext[0x400..0x410], field("key"));
        assert_eq!(h.ext[0x420..0x42c], field("base_nonce"));
        assert_eq!(h.ext[0x440..0x460], field("exporter_secret"));
        assert_eq!(h.ext[0x480..0x480 + ct.len() - 16], field("pt"));
        assert_eq!(hex::encode(&h.ext[0x500..0x520]), exported);
    }
    // the same under another AEAD id, another aad, a changed tag, a point off the curve
    for (at, value, verdict) in [
        (IO_AEAD, 2, 4),
        (0x140, 0x44, 4),
        (0x180 + ct.len() - 1, 0, 4),
        (0x040, 2, 3),
        (0x041, 0xa8, 3),
    ] {
        let was = std::mem::replace(&mut h.ext[at], value);
        assert_ne!(was, value);
        h.put(0x480, &[0; 0x60]);
        h.run();
        assert_eq!((h.ext[V_VERDICT], &h.ext[0x480..0x4e0]), (verdict, &[0; 0x60][..]), "{at:#x}");
        h.ext[at] = was;
    }
    h.run();
    assert_eq!(h.ext[V_VERDICT], 1);
}

/// HMAC-SHA-256 with a key of 32 bytes.
fn hmac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    use sha2::{Digest, Sha256};
    let pad = |x: u8| -> Vec<u8> { (0..64).map(|i| key.get(i).unwrap_or(&0) ^ x).collect() };
    let inner = Sha256::digest([pad(0x36), parts.concat()].concat());
    Sha256::digest([pad(0x5c), inner.to_vec()].concat()).to_vec()
}

#[test]
fn candidates_that_are_no_scalar_are_passed_over() {
    let mut h = Hpke::new(2);
    h.put(0x000, &[3; 32]);
    let prk = hmac(&[0; 32], &[b"HPKE-v1KEM\x00\x10dkp_prk", &[3; 32]]);
    for skip in [0, 1, 2, 255] {
        h.spoil = skip;
        h.run();
        assert_eq!(h.ext[V_VERDICT], 3, "there is no message, only a key pair");
        let sk = hmac(&prk, &[&[0, 32], b"HPKE-v1KEM\x00\x10candidate", &[skip as u8, 1]]);
        assert_eq!(h.ext[SK..SK + 32], sk, "after {skip} candidates");
        assert_eq!(h.spoil, 0);
    }
    h.spoil = 256;
    h.run();
    assert_eq!(h.ext[V_VERDICT], 2, "256 candidates are the end");
}

/// `core/shef_accel.sv` as a functional model.
#[derive(Default)]
struct Mover {
    regs: [u32; 9],
    fold: u32,
    resp: u32,
    done: bool,
    dead: bool,
    command: u32,
}

impl Accelerator for Mover {
    fn name(&self) -> &'static str {
        "mover"
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    fn reg_read(&mut self, addr: u16) -> Option<u32> {
        self.dead |= addr == 0x100;
        match addr {
            _ if self.dead => None,
            0x00..0x24 => Some(self.regs[usize::from(addr) / 4]),
            0x28 => Some(self.resp << 1 | u32::from(self.done)),
            0x2c => Some(self.fold),
            0x24..0x40 => Some(0),
            _ => None,
        }
    }

    fn reg_write(&mut self, addr: u16, value: u32) -> bool {
        self.dead |= addr == 0x100;
        match addr {
            _ if self.dead => return false,
            0x00..0x24 => self.regs[usize::from(addr) / 4] = value,
            0x24 => {
                (self.command, self.fold, self.resp, self.done) = (value, 0, 0, false);
            }
            _ => return false,
        }
        true
    }

    fn run(&mut self, bus: &mut dyn ShieldBus) {
        let burst = Burst::whole(self.regs[8].into(), 8);
        let mut worst = Resp::Okay;
        match std::mem::take(&mut self.command) {
            1 => {
                for beat in bus.read(&burst) {
                    self.fold = beat
                        .data
                        .chunks(4)
                        .fold(self.fold, |x, w| x ^ u32::from_le_bytes(w.try_into().unwrap()));
                    if beat.resp != Resp::Okay {
                        worst = beat.resp;
                    }
                }
            }
            2 => {
                let data: [u8; 64] = std::array::from_fn(|i| self.regs[0].to_le_bytes()[i % 4]);
                worst = bus.write(&burst, &[WriteBeat { data, strb: u64::MAX }; 8]);
            }
            _ => return,
        }
        self.done = true;
        self.resp = if worst == Resp::Okay { 0 } else { 2 };
    }
}

/// The RTL and the functional model in lockstep.
struct Pair {
    rtl: Shield,
    model: Model,
    trail: Vec<String>,
}

impl Pair {
    fn new() -> Self {
        Self::of(library(), config())
    }

    fn of(library: &Library, config: Config) -> Self {
        let model = Model::new(config.clone(), Box::new(Mover::default()));
        Self { rtl: Shield::of(library, config), model, trail: Vec::new() }
    }

    /// Everything that host and kernel can read, except the status.
    fn visible(&mut self) -> Vec<u8> {
        let ctl = [(CONFIRM, 32), (CHAN_RSP, 88)].map(|(at, n)| self.rtl.ctl_bytes(at, n)).concat();
        ctl.into_iter()
            .chain(
                [(KRN_PUBKEY, 64), (KRN_T, 32), (KRN_LAST, 88)]
                    .map(|(at, n)| self.rtl.krn_bytes(at, n))
                    .concat(),
            )
            .collect()
    }

    /// Seed and Load Key; returns the owner's channel.
    fn keyed(&mut self, n: u64) -> OwnerChannel {
        let mut entropy = SeededEntropy::new(n, "pair");
        let mut ikm = [0; 32];
        entropy.fill(&mut ikm);
        self.seed(&ikm);
        let config = self.rtl.config.clone();
        let (message, keys) = seal_load_key(
            &config,
            &derive_key_pair(&ikm).1,
            b"pair",
            &first_epochs(&config, 1),
            &mut entropy,
        )
        .unwrap();
        self.load(&message, message.len() as u32);
        assert_eq!(self.rtl.status() & 7, KEYED);
        OwnerChannel::new(&keys)
    }

    /// Sends one request to both, and checks that the answers are equal.
    fn call(&mut self, owner: &mut OwnerChannel, request: &ShieldRequest) -> ShieldAnswer {
        self.channel(&owner.request(request).unwrap());
        self.compare();
        owner.answer(&self.rtl.ctl_bytes(CHAN_RSP, 88).try_into().unwrap()).unwrap()
    }

    fn compare(&mut self) {
        let at = self.trail.last().cloned().unwrap_or_default();
        assert_eq!(
            Some(self.rtl.status()),
            self.model.ctl_read(STATUS),
            "status after {at}: {:?}",
            self.trail
        );
        for (base, n) in [(CONFIRM, 32), (CHAN_RSP, 88)] {
            for a in (base..base + n).step_by(4) {
                assert_eq!(
                    self.rtl.core.ctl_read(a).unwrap(),
                    self.model.ctl_read(a),
                    "ctl {a:#x} after {at}: {:?}",
                    self.trail
                );
            }
        }
        for (base, n) in [(KRN_STATUS, 4), (KRN_PUBKEY, 64), (KRN_T, 32), (KRN_LAST, 88)] {
            for a in (base..base + n).step_by(4) {
                assert_eq!(
                    self.rtl.core.krn_read(a).unwrap(),
                    self.model.krn_read(a),
                    "krn {a:#x} after {at}: {:?}",
                    self.trail
                );
            }
        }
    }

    fn ctl(&mut self, addr: u32, value: u32) {
        assert_eq!(
            self.rtl.core.ctl_write(addr, value).unwrap(),
            self.model.ctl_write(addr, value).is_some(),
            "ctl write {addr:#x}"
        );
    }

    /// Returns whether the kernel port accepted it.
    fn krn(&mut self, addr: u32, value: u32) -> bool {
        let taken = self.rtl.core.krn_write(addr, value).unwrap();
        assert_eq!(taken, self.model.krn_write(addr, value).is_some(), "krn write {addr:#x}");
        taken
    }

    fn words(bytes: &[u8]) -> impl Iterator<Item = (u32, u32)> {
        bytes.chunks(4).zip(0..).map(|(c, i)| {
            let mut w = [0; 4];
            w[..c.len()].copy_from_slice(c);
            (4 * i, u32::from_le_bytes(w))
        })
    }

    fn seed(&mut self, seed: &[u8; 32]) {
        for (at, w) in Self::words(seed) {
            assert!(self.krn(KRN_SEED + at, w));
        }
        assert!(self.krn(KRN_CTRL, 1));
        self.rtl.core.wait_ctl(STATUS, 6, 2, 16, 1_000_000).ok();
        while self.rtl.status() & 7 == 2 {
            self.rtl.core.step(64);
        }
    }

    fn load(&mut self, message: &[u8], len: u32) {
        for (at, w) in Self::words(message) {
            self.ctl(LOAD_MSG + at, w);
        }
        self.ctl(LOAD_DOORBELL, len);
        self.rtl.wait(LOAD_BUSY, 0);
    }

    fn channel(&mut self, message: &[u8]) {
        for (at, w) in Self::words(message) {
            self.ctl(CHAN_REQ + at, w);
        }
        self.ctl(CHAN_DOORBELL, 0);
        self.rtl.wait(CHAN_BUSY, 0);
        self.rtl.core.step(3_000); // the accelerator continues in the background
    }
}

#[test]
fn model_and_rtl_answer_the_same_messages() {
    same_messages(0..1);
}

fn same_messages(seeds: std::ops::Range<u64>) {
    // the traffic must include every status and, in statements, refusals, faults and written chunks
    let (mut statuses, mut refusals, mut faults, mut written) = ([0; 5], 0, 0, 0);
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let mut entropy = SeededEntropy::new(seed, "pair");
        let mut p = Pair::new();
        p.compare();
        for session in 0..3_u64 {
            p.trail.clear();
            let mut ikm = [0; 32];
            entropy.fill(&mut ikm);
            p.trail.push("seed".into());
            p.seed(&ikm);
            p.compare();
            let (_, pk) = derive_key_pair(&ikm);
            let epoch = if session == 1 { 0 } else { 1 + rng.below(2) };
            let (message, keys) = seal_load_key(
                &config(),
                &pk,
                b"pair",
                &first_epochs(&config(), epoch),
                &mut entropy,
            )
            .unwrap();
            let mut bad = message.clone();
            bad[rng.below(message.len() as u64) as usize] ^= 1 << rng.below(8);
            p.trail.push("bad load key".into());
            p.load(&bad, bad.len() as u32);
            p.compare();
            p.trail.push("load key".into());
            p.load(&message, message.len() as u32);
            p.compare();
            for r in config().regions().iter().filter(|r| r.id != 1) {
                let size = 1_usize << r.chunk_log2();
                for chunk in 0..4_u64 {
                    let mut data = vec![0; size];
                    rng.fill(&mut data);
                    let tag = seal(
                        keys.data_key(r.id).unwrap().expose(),
                        &iv(r.id, epoch, chunk),
                        &mut data,
                    );
                    for (at, bytes) in [
                        (r.base + chunk * size as u64, &data[..]),
                        (r.tag_base + 16 * chunk, &tag[..]),
                    ] {
                        p.rtl.core.memory_mut().write(at, bytes);
                        p.model.memory_mut().write(at, bytes);
                    }
                }
            }
            let mut owner = OwnerChannel::new(&keys);
            let (mut last, mut open) = ([0; 88], true);
            let mut plan = Vec::new();
            for _ in 0..40 {
                match rng.below(14) {
                    0 => plan.push(ShieldRequest::ping()),
                    1 => plan.push(ShieldRequest::read(4 * rng.below(20) as u32)),
                    2 => plan.push(ShieldRequest::write(
                        4 * rng.below(12) as u32,
                        rng.next_u64() as u32 & !3,
                    )),
                    3..7 => {
                        // reads and writes where the owner has sealed data, rarely elsewhere
                        let (base, chunks) =
                            [(0, 4), (0x10_0000, 1024), (0x10_0000, 4), (0x20_0000, 32)]
                                [rng.below(4) as usize];
                        let at = if rng.one_in(24) {
                            0x30_0000
                        } else {
                            base + 512 * rng.below(chunks) as u32
                        };
                        let at = if rng.one_in(48) { base + 512 * 5 * 8 } else { at };
                        plan.extend([
                            ShieldRequest::write(0x20, at),
                            ShieldRequest::write(0x24, 1 + rng.below(2) as u32),
                            ShieldRequest::read(0x28),
                            ShieldRequest::read(0x2c),
                        ]);
                    }
                    7 => plan.push(ShieldRequest::statement(rng.below(5) as u32)),
                    8 => plan.push(ShieldRequest::map(rng.below(4) as u8, rng.below(4) as u32)),
                    9 => plan.push(ShieldRequest::flush()),
                    10 => plan.push(ShieldRequest::invalidate()),
                    11 => plan.push(ShieldRequest::epoch(rng.below(4) as u8, epoch + rng.below(3))),
                    12 => {
                        plan.push(ShieldRequest::stats(
                            rng.below(3) as u8,
                            2 + rng.below(3) as u32,
                        ));
                    }
                    _ if rng.one_in(12) => plan.push(ShieldRequest::read(0x100)),
                    _ => plan.push(ShieldRequest {
                        op: rng.below(256) as u8,
                        region: rng.below(256) as u8,
                        addr: rng.next_u64() as u32,
                        value: rng.next_u64(),
                    }),
                }
            }
            plan.extend([
                ShieldRequest::statement(2),
                ShieldRequest::map(1, 0),
                ShieldRequest::statement(0),
            ]);
            for request in plan {
                p.trail.push(format!("{request:x?}"));
                let sealed = owner.request(&request).unwrap();
                match rng.below(6) {
                    0 => {
                        let mut forged = sealed;
                        forged[rng.below(88) as usize] ^= 1 << rng.below(8);
                        p.channel(&forged);
                        p.compare();
                    }
                    1 => {
                        p.channel(&last);
                        p.compare();
                    }
                    _ => {}
                }
                p.channel(&sealed);
                p.compare();
                let answer: Sealed = p.rtl.ctl_bytes(CHAN_RSP, 88).try_into().unwrap();
                let answer = owner.answer(&answer).unwrap();
                statuses[usize::from(answer.status)] += 1;
                match ShieldStatement::from_payload(&answer.payload) {
                    Some(page) if request == ShieldRequest::statement(0) => {
                        (refusals, faults) = (refusals + page.refusals, faults + page.faults);
                    }
                    _ if request == ShieldRequest::statement(2) => {
                        written += u32::from(answer.payload[4]);
                    }
                    _ => {}
                }
                last = sealed;
                if request.op == Op::Close as u8 || request.op == Op::Abort as u8 {
                    open = false;
                    break;
                }
            }
            match (session, open) {
                (_, false) => {}
                (0, _) => {
                    p.trail.push("close".into());
                    p.channel(&owner.request(&ShieldRequest::close()).unwrap());
                }
                (1, _) => {
                    p.trail.push("abort".into());
                    p.channel(&owner.request(&ShieldRequest::abort()).unwrap());
                }
                _ => {
                    p.trail.push("wipe".into());
                    p.rtl.core.wipe().unwrap();
                    p.rtl.wait(7, EMPTY);
                    p.model.wipe();
                }
            }
            p.compare();
        }
    }
    println!(
        "answers by status {statuses:?}, in statements {refusals} refusals, {faults} faults, {written} chunks written"
    );
    assert!(statuses[..4].iter().all(|&n| n > 0) && refusals > 0 && faults > 0 && written > 0);
}

/// Every doorbell and command in every state gets its answer and has no unintended effect, and the
/// next valid step still works.
#[test]
fn every_event_in_every_state() {
    let mut load_key = Vec::new();
    for state in [EMPTY, FRESH, KEYED, CLOSED] {
        let mut p = Pair::new();
        let mut owner = None;
        let ikm = [state as u8; 32];
        match state {
            EMPTY => {}
            FRESH => p.seed(&ikm),
            _ => owner = Some(p.keyed(u64::from(state))),
        }
        if let (CLOSED, Some(owner)) = (state, &mut owner) {
            p.call(owner, &ShieldRequest::abort());
        }
        assert_eq!(p.rtl.status() & 7, state);
        let before = p.visible();
        let unchanged = |p: &mut Pair, what: &str, flags: u32| {
            p.trail.push(format!("{what} in state {state}"));
            p.compare();
            assert_eq!(p.visible(), before, "{what} in state {state}");
            let status = p.rtl.status();
            assert_eq!(status & 7, state, "{what}");
            assert_eq!(status & flags, flags, "{what} in state {state}");
        };
        // Load Keys: no message, garbage, one for another Shield, lengths beyond the box
        for (message, len) in [
            (&[][..], 0),
            (&[0x55; 147], 147),
            (&load_key[..], load_key.len() as u32),
            (&[], 1024),
            (&[], 1025),
            (&[], u32::MAX),
        ] {
            p.load(message, len);
            unchanged(&mut p, &format!("load key of {len} bytes"), LOAD_REFUSED);
        }
        // requests: garbage, zeros
        for byte in [0, 0xa5] {
            p.channel(&[byte; 88]);
            unchanged(&mut p, "a request that is none", CHAN_REFUSED);
        }
        // the kernel's port: commands without effect, a seed in the wrong state, half of one in the
        // right state
        assert!(p.krn(KRN_CTRL, 0));
        assert!(!p.krn(KRN_CTRL, 1));
        let open = state == EMPTY || state == CLOSED;
        for word in 0..4 {
            assert_eq!(p.krn(KRN_SEED + 4 * word, 0x0101_0101), open);
        }
        assert!(!p.krn(KRN_CTRL, 1));
        unchanged(&mut p, "a seed that is not due", 0);
        // the next valid step
        match state {
            EMPTY | CLOSED => {
                p.seed(&ikm);
                assert_eq!(p.rtl.status() & 7, FRESH);
            }
            FRESH => {
                let mut entropy = SeededEntropy::new(1, "state");
                let epochs = first_epochs(&config(), 1);
                let (message, _) =
                    seal_load_key(&config(), &derive_key_pair(&ikm).1, b"", &epochs, &mut entropy)
                        .unwrap();
                p.load(&message, message.len() as u32);
                assert_eq!(p.rtl.status() & 7, KEYED);
                load_key = message;
            }
            _ => assert_eq!(
                p.call(owner.as_mut().unwrap(), &ShieldRequest::ping()).status,
                status::DONE
            ),
        }
        p.compare();
        // and a wipe ends it
        assert!(p.krn(KRN_CTRL, 2));
        p.rtl.wait(7, EMPTY);
        p.compare();
        assert!(p.visible().iter().all(|&b| b == 0), "after a wipe in state {state}");
    }
}

/// A reset in the middle of a derivation, a Load Key and a request; the following session works
/// normally.
#[test]
fn a_reset_in_the_middle_of_everything() {
    let mut p = Pair::new();
    for (n, after) in [10, 60_000, 150_000].into_iter().enumerate() {
        for (at, w) in Pair::words(&[n as u8 + 1; 32]) {
            p.rtl.core.krn_write(KRN_SEED + at, w).unwrap();
        }
        p.rtl.core.krn_write(KRN_CTRL, 1).unwrap();
        p.rtl.core.step(after);
        assert_eq!(p.rtl.status() & 7, 2);
        p.rtl.core.reset();
        p.rtl.wait(7, EMPTY);
        p.model.reset();
        p.compare();
    }
    for after in [100, 100_000] {
        p.seed(&[9; 32]);
        let epochs = first_epochs(&config(), 1);
        let (message, _) = seal_load_key(
            &config(),
            &derive_key_pair(&[9; 32]).1,
            b"",
            &epochs,
            &mut SeededEntropy::new(after, "reset"),
        )
        .unwrap();
        p.rtl.ctl_put(LOAD_MSG, &message);
        p.rtl.core.ctl_write(LOAD_DOORBELL, message.len() as u32).unwrap();
        p.rtl.core.step(after);
        assert_eq!(p.rtl.status() & LOAD_BUSY, LOAD_BUSY);
        p.rtl.core.reset();
        p.rtl.wait(7, EMPTY);
        p.model.reset();
        p.compare();
    }
    for after in [20, 1_200] {
        let mut owner = p.keyed(after);
        let sealed = owner.request(&ShieldRequest::flush()).unwrap();
        p.rtl.ctl_put(CHAN_REQ, &sealed);
        p.rtl.core.ctl_write(CHAN_DOORBELL, 1).unwrap();
        p.rtl.core.step(after);
        assert_eq!(p.rtl.status() & CHAN_BUSY, CHAN_BUSY);
        p.rtl.core.reset();
        p.rtl.wait(7, EMPTY);
        p.model.reset();
        p.channel(&sealed);
        p.compare();
    }
    let mut owner = p.keyed(5);
    assert_eq!(p.call(&mut owner, &ShieldRequest::ping()).status, status::DONE);
}

/// `on_fault = "halt"`: model and RTL end the session with the same last message, whichever
/// doorbells the host rings.
#[test]
fn a_fault_ends_the_session_by_itself() {
    let config = halting_config();
    let mut p = Pair::of(halting(), config);
    for session in 0..2 {
        let mut owner = p.keyed(40 + session);
        assert_eq!(p.call(&mut owner, &ShieldRequest::write(0x20, 0)).status, status::DONE);
        // no chunk was sealed there: the first tag does not match
        p.channel(&owner.request(&ShieldRequest::write(0x24, 1)).unwrap());
        // a host that keeps ringing does not prevent this
        for _ in 0..400 {
            p.rtl.core.ctl_write(CHAN_DOORBELL, 1).unwrap();
            p.rtl.core.step(7);
        }
        p.rtl.wait(7, CLOSED);
        p.rtl.wait(CHAN_BUSY, 0);
        p.rtl.core.ctl_write(CHAN_DOORBELL, 1).unwrap();
        p.model.ctl_write(CHAN_DOORBELL, 1).unwrap();
        p.compare();
        assert_ne!(p.rtl.status() & CHAN_REFUSED, 0);
        let shown: Sealed = p.rtl.ctl_bytes(CHAN_RSP, 88).try_into().unwrap();
        assert_eq!(shown[..], p.rtl.krn_bytes(KRN_LAST, 88), "the kernel has it too");
        let Err(ChannelError::Halted { last, .. }) = owner.answer(&shown) else {
            panic!("no halt")
        };
        assert_eq!((last.state, last.stopped, last.faults), (State::Closed, true, 1));
        assert_eq!(
            (last.fault_kind, last.fault_region, last.fault_chunk, last.fault_version),
            (FaultKind::Tag, 0, 0, 1)
        );
        assert_eq!(last.requests, 3);
        assert_eq!(p.rtl.ctl_bytes(CONFIRM, 32), [0; 32]);
        assert!(p.model.axi_read(&Burst::whole(0, 1)).iter().all(|b| b.resp == Resp::SlvErr));
    }
    // a session without a fault continues to its end
    let mut owner = p.keyed(50);
    assert_eq!(p.call(&mut owner, &ShieldRequest::ping()).status, status::DONE);
    assert_eq!(p.call(&mut owner, &ShieldRequest::close()).status, status::DONE);
}

/// Remains of a session: the state of every register and memory after a wipe, and the cycles of
/// seed, Load Keys and flush.
struct Remains {
    state: Vec<u8>,
    cycles: Vec<u64>,
}

/// How a session ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Wipe,
    Close,
    Abort,
    /// Automatically, after a fault.
    Halt,
}

/// A session that derives every secret from `secret`, and that `end` ends at `moment` (ends other
/// than a wipe: after the last moment). The public parts, that is the number and length of
/// messages, are the same for all.
fn remains(secret: u64, moment: usize, end: End) -> Remains {
    let mut s = Shield::of(halting(), halting_config());
    let mut rng = SeededEntropy::new(secret, "wiped");
    let mut seed = [0; 32];
    rng.fill(&mut seed);
    let mut cycles = Vec::new();
    'session: {
        for (at, w) in Pair::words(&seed) {
            s.core.krn_write(KRN_SEED + at, w).unwrap();
        }
        s.core.krn_write(KRN_CTRL, 1).unwrap();
        if moment == 1 {
            s.core.step(70_000);
            break 'session;
        }
        cycles.push(s.wait(7, FRESH));
        let epochs = first_epochs(&s.config, 1);
        let (message, keys) =
            seal_load_key(&s.config, &derive_key_pair(&seed).1, b"info", &epochs, &mut rng)
                .unwrap();
        // messages that do not open, with the error at any position
        if moment == 0 {
            for at in [message.len() - 1, message.len() - 17, 80] {
                let mut bad = message.clone();
                bad[at] ^= 1 + (secret as u8 & 0x7f);
                assert!(!s.load(&bad, bad.len() as u32), "byte {at}");
                cycles.push(s.busy);
            }
        }
        if moment == 2 || moment == 3 {
            s.ctl_put(LOAD_MSG, &message);
            s.core.ctl_write(LOAD_DOORBELL, message.len() as u32).unwrap();
            // in the multiplication, and while keys are handed out
            s.core.step(if moment == 2 { 90_000 } else { 214_000 });
            assert_eq!(s.status() & LOAD_BUSY, LOAD_BUSY);
            break 'session;
        }
        assert!(s.load(&message, message.len() as u32));
        cycles.push(s.busy);
        for r in s.config.clone().regions().iter().filter(|r| r.mode == Mode::Input) {
            for chunk in 0..8 {
                let mut data = vec![0; r.chunk as usize];
                rng.fill(&mut data);
                let tag =
                    seal(keys.data_key(r.id).unwrap().expose(), &iv(r.id, 1, chunk), &mut data);
                s.core.memory_mut().write(r.chunk_addr(chunk), &data);
                s.core.memory_mut().write(r.tag_addr(chunk), &tag);
            }
        }
        let mut owner = OwnerChannel::new(&keys);
        let mut word = [0; 4];
        rng.fill(&mut word);
        for (at, value) in [(0, u32::from_le_bytes(word)), (0x20, 0x20_0000), (0x24, 1)] {
            assert_eq!(s.call(&mut owner, &ShieldRequest::write(at, value)).status, status::DONE);
        }
        s.core.step(if moment == 4 { 60 } else { 2_000 });
        if moment == 4 {
            break 'session;
        }
        assert_eq!(s.call(&mut owner, &ShieldRequest::read(0x28)).value, 1);
        for (at, value) in [(0x20, 0), (0x24, 1), (0x20, 0x10_0000), (0x24, 2)] {
            assert_eq!(s.call(&mut owner, &ShieldRequest::write(at, value)).status, status::DONE);
            s.core.step(if moment == 5 && value == 2 { 0 } else { 1_000 });
        }
        if moment == 5 {
            break 'session;
        }
        // Counters, lines and nodes: addresses that others do not use, more writes than there are
        // lines, more nodes than the node cache has ways, and back to the first.
        let own = [COUNTED + 2048 * secret as u32, TREE + 0x1_0000 * 64 + 512 * secret as u32];
        let nodes = (0..6).map(|i| TREE + i * SAME_NODE_SET);
        for addr in own.into_iter().chain([COUNTED, COUNTED + 512]).chain(nodes) {
            for (at, value) in [(0x20, addr), (0x24, 2)] {
                assert_eq!(
                    s.call(&mut owner, &ShieldRequest::write(at, value)).status,
                    status::DONE
                );
            }
        }
        for addr in [COUNTED, TREE + SAME_NODE_SET, TREE] {
            assert_eq!(s.call(&mut owner, &ShieldRequest::read(0x28)).value, 1);
            for (at, value) in [(0x20, addr), (0x24, 1)] {
                assert_eq!(
                    s.call(&mut owner, &ShieldRequest::write(at, value)).status,
                    status::DONE
                );
            }
        }
        if moment == 6 {
            break 'session;
        }
        assert_eq!(s.call(&mut owner, &ShieldRequest::read(0x28)).value, 1);
        assert_eq!(s.call(&mut owner, &ShieldRequest::flush()).status, status::DONE);
        cycles.push(s.busy);
        s.ctl_put(CHAN_REQ, &owner.request(&ShieldRequest::read(0x2c)).unwrap());
        s.core.ctl_write(CHAN_DOORBELL, 1).unwrap();
        s.core.step(if moment == 7 { 1_100 } else { 5_000 });
        if moment == 7 {
            break 'session;
        }
        s.wait(CHAN_BUSY, 0);
        owner.answer(&s.ctl_bytes(CHAN_RSP, 88).try_into().unwrap()).unwrap();
        // the operands of the last request are as secret as any
        if end != End::Wipe {
            assert_eq!(
                s.call(&mut owner, &ShieldRequest::write(0, u32::from_le_bytes(word))).status,
                status::DONE
            );
        }
        match end {
            End::Wipe => {}
            End::Close => {
                assert_eq!(s.call(&mut owner, &ShieldRequest::close()).status, status::DONE);
            }
            End::Abort => {
                assert_eq!(s.call(&mut owner, &ShieldRequest::abort()).status, status::DONE);
            }
            End::Halt => {
                // no chunk was sealed there
                assert_eq!(
                    s.call(&mut owner, &ShieldRequest::write(0x20, 0x20_8000)).status,
                    status::DONE
                );
                let sealed = owner.request(&ShieldRequest::write(0x24, 1)).unwrap();
                s.ctl_put(CHAN_REQ, &sealed);
                s.core.ctl_write(CHAN_DOORBELL, 1).unwrap();
                s.wait(7, CLOSED);
            }
        }
        s.wait(CHAN_BUSY, 0);
    }
    if end == End::Wipe {
        s.core.wipe().unwrap();
        s.wait(7, EMPTY);
    } else {
        assert_eq!(s.status() & 7, CLOSED);
    }
    // the last words on the buses, and the host's writes, are equal in both sessions
    for (at, len) in [(LOAD_MSG, 1024), (CHAN_REQ, 88)] {
        s.ctl_put(at, &vec![0; if end == End::Wipe { 4 } else { len }]);
    }
    s.core.ctl_read(STATUS).unwrap();
    assert!(s.core.krn_write(KRN_CTRL, 0).unwrap());
    s.core.krn_read(KRN_STATUS).unwrap();
    s.core.step(5_000);
    // memory's outputs to the Shield are not the Shield's state
    for port in s
        .core
        .sim()
        .port_names()
        .into_iter()
        .filter(|n| n.starts_with("mem0_r") || n.starts_with("mem0_b"))
    {
        if let Some(p) =
            s.core.sim().find(&port).filter(|p| p.direction() == shef_rtl::Direction::Input)
        {
            s.core.sim().fill(p, 0);
        }
    }
    s.core.sim().eval();
    Remains { state: s.core.sim().save().unwrap().bytes().to_vec(), cycles }
}

/// Two sessions that differ in every secret leave the same state, at whatever point the wipe
/// occurred and however they ended: no register or memory of the whole design keeps any part of a
/// secret. They also take the same number of cycles, as do Load Keys that do not open, wherever the
/// error is.
fn leaves_nothing(cases: impl IntoIterator<Item = (usize, End)>) {
    // Ciphertext that the memory bus has shown: the last beat read and the last beat written, in
    // registers and on the wires.
    const PUBLIC: [&str; 6] = [
        "u_mem_rd__DOT__r_q",
        "u_mem_wr__DOT__w_q",
        "u_sets__DOT__m_req",
        "mem0_wdata",
        "mem_wdata",
        "mem_rdata",
    ];
    // What host and kernel may read after the end of a session: sealed messages, T, public key,
    // confirmation.
    const SHOWN: [&str; 4] =
        ["__DOT__ctl_out", "__DOT__ctl_out_q", "__DOT__krn_out", "__DOT__krn_out_q"];
    let dir = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("core-variables");
    let inside = Inside::of(&halting_spec(&dir), "core-variables");
    for (moment, end) in cases {
        let (a, b) = (remains(1, moment, end), remains(2, moment, end));
        println!(
            "moment {moment}, {end:?}: {} bytes of state, cycles {:?}",
            a.state.len(),
            a.cycles
        );
        assert_eq!(a.cycles, b.cycles, "moment {moment}");
        assert!(
            moment != 0 || a.cycles[1..4].iter().all(|c| *c == a.cycles[1]),
            "where a Load Key is wrong shows in time: {:?}",
            a.cycles
        );
        assert!(inside.of_snapshot(&a.state).map(|(_, bytes)| bytes.len()).sum::<usize>() > 30_000);
        let mut left = inside.differing(&a.state, &b.state);
        left.retain(|name| {
            !PUBLIC.iter().any(|p| name.ends_with(p))
                && (end == End::Wipe || !SHOWN.iter().any(|p| name.ends_with(p)))
        });
        assert!(left.is_empty(), "moment {moment}, {end:?}: these depend on secrets: {left:?}");
    }
}

#[test]
fn a_wipe_leaves_nothing_of_any_secret() {
    leaves_nothing([(0, End::Wipe), (7, End::Wipe), (8, End::Close)]);
}

/// For `cargo xtask test --full`.
mod long {
    use super::*;

    #[test]
    #[ignore = "long: every moment and end"]
    fn a_wipe_leaves_nothing_of_any_secret() {
        leaves_nothing(
            (1..7).map(|moment| (moment, End::Wipe)).chain([(8, End::Abort), (8, End::Halt)]),
        );
    }

    #[test]
    #[ignore = "long: two more seeds"]
    fn model_and_rtl_answer_the_same_messages() {
        same_messages(1..3);
    }
}

/// Without card memory, a session has only the register channel; model and RTL agree.
#[test]
fn a_session_without_card_memory() {
    let (library, config) = memoryless();
    let mut p = Pair::of(library, config.clone());
    assert_eq!(
        (p.rtl.core.ctl_read(0x10).unwrap(), p.model.ctl_read(0x10)),
        (Some(0), Some(0)),
        "SHAPE"
    );
    assert_eq!(
        (p.rtl.ctl_bytes(0x20, 32), p.rtl.krn_bytes(KRN_DIGEST, 32)),
        (config.digest().to_vec(), config.digest().to_vec())
    );
    p.compare();

    // this Shield refuses a Load Key that names a region
    let seed = [9; 32];
    p.seed(&seed);
    let (_, pk) = derive_key_pair(&seed);
    let (enc, mut sender) = Sender::setup(&pk, b"", &mut SeededEntropy::new(1, "named")).unwrap();
    let plain = [&[7; MASTER_LEN][..], &[1], &[0, 0, 0, 0, 0, 0, 1]].concat();
    let ct = sender.seal(&[&[0, 1], &config.digest()[..]].concat(), &plain).unwrap();
    let named = Message { enc, info: Vec::new(), ct }.to_bytes();
    p.load(&named, named.len() as u32);
    p.compare();
    assert_eq!(p.rtl.status(), FRESH | LOAD_REFUSED);
    assert!(p.krn(KRN_CTRL, 2));
    p.rtl.wait(7, EMPTY);

    let mut owner = p.keyed(1);
    for i in 0..8 {
        assert_eq!(
            p.call(&mut owner, &ShieldRequest::write(4 * i, 0x5a5a_0000 + i)).status,
            status::DONE
        );
    }
    for i in 0..8 {
        assert_eq!(
            p.call(&mut owner, &ShieldRequest::read(4 * i)).value,
            u64::from(0x5a5a_0000 + i)
        );
    }
    for (request, want) in [
        (ShieldRequest::ping(), status::DONE),
        (ShieldRequest::flush(), status::DONE),
        (ShieldRequest::invalidate(), status::DONE),
        (ShieldRequest::statement(0), status::DONE),
        (ShieldRequest::statement(1), status::BAD),
        (ShieldRequest::map(0, 0), status::BAD),
        (ShieldRequest::epoch(0, 2), status::BAD),
        (ShieldRequest::stats(0, 0), status::BAD),
        (ShieldRequest::read(0x100), status::REGISTER),
    ] {
        assert_eq!(p.call(&mut owner, &request).status, want, "{request:?}");
    }
    p.call(&mut owner, &ShieldRequest::close());
    assert_eq!(p.rtl.status() & 7, CLOSED);

    // the accelerator still issues memory accesses: errors and zeros, each counted, and no request
    // leaves
    let mut owner = p.keyed(2);
    assert_eq!(p.call(&mut owner, &ShieldRequest::read(0)).value, 0, "reset between the sessions");
    p.call(&mut owner, &ShieldRequest::write(0, 0xffff_ffff));
    let bursts = [(0, 1), (0, 2), (0x1000, 1), (0x2_0000, 2), (0xffff_fe00, 1), (0xf40, 2)];
    for (n, (at, command)) in (1..).zip(bursts) {
        p.call(&mut owner, &ShieldRequest::write(0x20, at));
        p.call(&mut owner, &ShieldRequest::write(0x24, command));
        assert_eq!(p.call(&mut owner, &ShieldRequest::read(0x28)).value, 5, "done, with an error");
        assert_eq!(p.call(&mut owner, &ShieldRequest::read(0x2c)).value, 0);
        let page = ShieldStatement::from_payload(
            &p.call(&mut owner, &ShieldRequest::statement(0)).payload,
        )
        .unwrap();
        assert_eq!((page.refusals, page.faults, page.stopped), (n, 0, false));
        assert_eq!(
            (page.refusal_kind, page.refusal_region),
            (shef_proto::channel::RefusalKind::Range, 0xff)
        );
    }
    assert_eq!(p.rtl.core.counters(), shef_rtl::BusCounters::default());
    let wiped = p.rtl.core.wipe().unwrap();
    println!("wipe: {wiped} cycles");
    p.model.wipe();
    p.rtl.wait(7, EMPTY);
    p.compare();

    // a burst across a page is a different error
    let mut owner = p.keyed(3);
    p.call(&mut owner, &ShieldRequest::write(0x20, 0xf40));
    p.call(&mut owner, &ShieldRequest::write(0x24, 1));
    assert_eq!(p.call(&mut owner, &ShieldRequest::read(0x28)).value, 5);
    let page =
        ShieldStatement::from_payload(&p.call(&mut owner, &ShieldRequest::statement(0)).payload)
            .unwrap();
    assert_eq!((page.refusals, page.refusal_kind), (1, shef_proto::channel::RefusalKind::Burst));
    p.call(&mut owner, &ShieldRequest::abort());
}

/// Bursts of all lengths are answered completely, and a read does not wait for a write whose data
/// is withheld.
#[test]
fn without_card_memory_reads_and_writes_are_refused_side_by_side() {
    let spec = DesignSpec::new("shef_no_memory_tb")
        .source("sim/rtl/tests/sv/shef_no_memory_tb.sv")
        .search("shell-rtl/rtl");
    let mut sim = Sim::new(&build(&spec.deny_warnings()).expect("build")).expect("instance");
    sim.poke("enable", 1);
    sim.reset("rst_n", 2);
    let mut rng = Rng::new(5);
    let data = sim.port("acc_rdata").expect("port");
    for (n, beats) in (0..).zip([1, 2, 255, 256, 16]) {
        for (ax, id, addr) in [("ar", n, 64 * n), ("aw", 0x80 + n, 1 << 40)] {
            let burst = [("id", id), ("addr", addr), ("len", beats - 1), ("size", 6), ("burst", 1)];
            for (field, value) in burst {
                sim.poke(&format!("acc_{ax}{field}"), value);
            }
        }
        let (mut asked, mut got, mut given, mut answers, mut refused) =
            ([false; 2], 0, 0, 0, [0; 2]);
        for cycle in 0.. {
            assert!(cycle < 5_000, "{beats} beats: {got} read, {given} written");
            sim.poke("acc_arvalid", u64::from(!asked[0]));
            sim.poke("acc_awvalid", u64::from(!asked[1]));
            // write data is sent once all reads have completed
            sim.poke("acc_wvalid", u64::from(got == beats));
            sim.poke("acc_rready", rng.below(2));
            sim.poke("acc_bready", rng.below(2));
            sim.eval();
            let both = |channel: &str| {
                sim.peek(&format!("acc_{channel}valid")) == 1
                    && sim.peek(&format!("acc_{channel}ready")) == 1
            };
            asked = [asked[0] || both("ar"), asked[1] || both("aw")];
            let refusals = sim.peek("refusal_valid");
            refused = [refused[0] + (refusals & 1), refused[1] + (refusals >> 1)];
            given += u64::from(both("w"));
            if both("r") {
                got += 1;
                let r = ["acc_rid", "acc_rresp", "acc_rlast"].map(|port| sim.peek(port));
                assert_eq!(r, [n, 2, u64::from(got == beats)]);
                assert!(sim.raw(data).iter().all(|b| *b == 0));
            }
            if both("b") {
                answers += 1;
                let b = ["acc_bid", "acc_bresp"].map(|port| sim.peek(port));
                assert_eq!((b, given), ([0x80 + n, 2], beats));
            }
            sim.tick();
            if answers == 1 {
                break;
            }
        }
        assert_eq!((got, given, refused), (beats, beats, [1, 1]));
    }
}

#[test]
fn a_wipe_scrubs_the_scratch_ram_and_a_wrong_instruction_stops() {
    // shows all of the scratch RAM, fills it, then writes to the constant ROM
    const PROGRAM: &str = ".bytes K 1 2 3 4\n set r1, 0\nshow:\n copy 0x1000[r1], 0[r1], 1\n set r1, r1 + 1\n cmpr r1, 2048\n jne show\n st8 0x1800, 1\n set r1, 0\n\
                           fill:\n st8 0[r1], 0xa5\n set r1, r1 + 1\n cmpr r1, 2048\n jne fill\n st8 0x1801, 1\n wait_event\n set r1, K\n zero 0[r1], 1\n st8 0x1802, 1\n";
    let library = with_program("shef_seq", "scrub.uasm", &|_| Ok(PROGRAM.into()));
    let mut sim = Sim::new(&library).expect("instance");
    sim.reset("rst_ni", 2);
    let mut ext = vec![0xff_u8; 4096];
    let step = |sim: &mut Sim, ext: &mut Vec<u8>| {
        let request = sim.peek("ext_req_o") == 1 && sim.peek("ext_ack_i") == 0;
        let (at, byte) = (sim.peek("ext_addr_o") as usize, sim.peek("ext_wdata_o") as u8);
        assert!(!request || sim.peek("ext_we_o") == 1);
        sim.tick();
        if request {
            ext[at] = byte;
        }
        sim.poke("ext_ack_i", u64::from(request));
        sim.eval();
    };
    for fill in [50_000, 100, 7_000, 20_000] {
        ext.fill(0xff);
        while ext[0x800] != 1 {
            step(&mut sim, &mut ext);
        }
        assert!(ext[..2048].iter().all(|&b| b == 0), "before {fill}");
        for _ in 0..fill {
            step(&mut sim, &mut ext);
        }
        assert_eq!(ext[0x801] == 1, fill == 50_000);
        sim.poke("wipe_i", 1);
        let start = sim.cycles();
        while sim.peek("wipe_done_o") == 0 {
            step(&mut sim, &mut ext);
            assert!(sim.cycles() - start < 3_000);
        }
        sim.poke("wipe_i", 0);
        sim.eval();
    }
    ext.fill(0xff);
    while ext[0x801] != 1 {
        step(&mut sim, &mut ext);
    }
    assert_eq!(sim.peek("trap_o"), 0);
    sim.poke("event_i", 1);
    for _ in 0..100 {
        step(&mut sim, &mut ext);
    }
    assert_eq!((sim.peek("trap_o"), ext[0x802]), (1, 0xff));
}
