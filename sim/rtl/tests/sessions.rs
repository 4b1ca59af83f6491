//! Isolation of consecutive sessions: faults before a seed, bursts and lines of a chunk cache, the
//! accelerator's memory.

use shef_proto::channel::{
    OwnerChannel, Sealed, ShieldAnswer, ShieldRequest, ShieldStatement, status,
};
use shef_proto::config::Config;
use shef_proto::entropy::{Entropy, SeededEntropy};
use shef_proto::hpke_suite::PublicKey;
use shef_proto::load::{first_epochs, seal_load_key};
use shef_regs::ctl::{
    self, CHAN_DOORBELL, CHAN_REQ, CHAN_RSP, LOAD_DOORBELL, LOAD_MSG, STATUS,
    STATUS_STATE_CLOSED as CLOSED, STATUS_STATE_EMPTY as EMPTY, STATUS_STATE_FRESH as FRESH,
    STATUS_STATE_KEYED as KEYED,
};
use shef_regs::krn::{CTRL as KRN_CTRL, PUBKEY as KRN_PUBKEY, SEED as KRN_SEED};
use shef_rtl::check::{Checked, DoneRegister};
use shef_rtl::{AxiMemoryConfig, CoreSim, Hostile, Library, build, module_spec};
use std::path::Path;
use std::sync::OnceLock;

const LOAD_BUSY: u32 = ctl::STATUS_LOAD_BUSY.put(1);
const CHAN_BUSY: u32 = ctl::STATUS_CHAN_BUSY.put(1);
const UNCLEARED: u32 = ctl::STATUS_UNCLEARED.put(1);
const STOPPED: u32 = ctl::STATUS_STOPPED.put(1);

/// One set, with lines or with a single chunk cache at its accelerator port.
fn config(cached: bool) -> Config {
    let cache = if cached { "cache = \"16 KiB\"\ncache_line = 512\n" } else { "" };
    let text = format!(
        "suite = 1\n[[set]]\nlanes = 1\nbig_lines = 3\nsmall_lines = 8\n{cache}\n[[region]]\nname = \"in\"\nmode = \"input\"\nbase = 0\n\
         size = \"64 KiB\"\nchunk = 512\n[[region]]\nname = \"scratch\"\nmode = \"counted\"\nbase = 0x1_0000\nsize = \"64 KiB\"\nchunk = 512\n"
    );
    shef_gen::shield::parse(&text).expect("shield.toml").config
}
const SCRATCH: u32 = 0x1_0000;

fn library(cached: bool) -> &'static Library {
    static BUILT: [OnceLock<Library>; 2] = [const { OnceLock::new() }; 2];
    BUILT[usize::from(cached)].get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(if cached {
            "sessions-cached"
        } else {
            "sessions-plain"
        });
        std::fs::create_dir_all(&folder).unwrap();
        let package = folder.join("shef_cfg_pkg.sv");
        std::fs::write(
            &package,
            shef_gen::shield::systemverilog(
                &config(cached),
                shef_gen::shield::Synthesis::default(),
            ),
        )
        .unwrap();
        build(
            &module_spec("shef_sim_top")
                .expect("sources")
                .source(&package)
                .search("sim/rtl/tests/sessions"),
        )
        .expect("build")
    })
}

struct Shield {
    core: CoreSim,
    config: Config,
    entropy: SeededEntropy,
}

impl Shield {
    fn new(cached: bool) -> Self {
        let core = CoreSim::new(library(cached), AxiMemoryConfig::default()).expect("instance");
        let mut s =
            Self { core, config: config(cached), entropy: SeededEntropy::new(18, "sessions") };
        s.wait(7, EMPTY);
        s
    }

    fn wait(&mut self, mask: u32, want: u32) {
        self.core.wait_ctl(STATUS, mask, want, 4, 1_000_000).expect("state");
    }

    fn status(&mut self) -> u32 {
        self.core.ctl_read(STATUS).unwrap().unwrap()
    }

    fn put(&mut self, at: u32, bytes: &[u8]) {
        for (i, word) in bytes.chunks(4).enumerate() {
            let mut w = [0; 4];
            w[..word.len()].copy_from_slice(word);
            assert!(self.core.ctl_write(at + 4 * i as u32, u32::from_le_bytes(w)).unwrap());
        }
    }

    /// Rings the seed's doorbell; returns the following state.
    fn seed(&mut self) -> u32 {
        let mut seed = [0; 32];
        self.entropy.fill(&mut seed);
        for (i, w) in seed.chunks(4).enumerate() {
            assert!(
                self.core
                    .krn_write(KRN_SEED + 4 * i as u32, u32::from_le_bytes(w.try_into().unwrap()))
                    .unwrap()
            );
        }
        assert!(self.core.krn_write(KRN_CTRL, 1).unwrap());
        while self.status() & 7 == 2 {
            self.core.step(64);
        }
        self.status() & 7
    }

    fn load(&mut self) -> OwnerChannel {
        let xy: Vec<u8> = (0..16)
            .flat_map(|i| self.core.krn_read(KRN_PUBKEY + 4 * i).unwrap().unwrap().to_le_bytes())
            .collect();
        let pk = PublicKey::from_xy(&xy.try_into().unwrap()).expect("a point of the curve");
        let (message, keys) = seal_load_key(
            &self.config,
            &pk,
            b"info",
            &first_epochs(&self.config, 1),
            &mut self.entropy,
        )
        .unwrap();
        self.put(LOAD_MSG, &message);
        assert!(self.core.ctl_write(LOAD_DOORBELL, message.len() as u32).unwrap());
        self.wait(LOAD_BUSY, 0);
        assert_eq!(self.status() & 7, KEYED);
        OwnerChannel::new(&keys)
    }

    fn keyed(&mut self) -> OwnerChannel {
        assert_eq!(self.seed(), FRESH);
        self.load()
    }

    fn call(&mut self, owner: &mut OwnerChannel, request: &ShieldRequest) -> ShieldAnswer {
        let sealed = owner.request(request).unwrap();
        self.put(CHAN_REQ, &sealed);
        assert!(self.core.ctl_write(CHAN_DOORBELL, 0).unwrap());
        self.wait(CHAN_BUSY, 0);
        let shown: Vec<u8> = (0..22)
            .flat_map(|i| self.core.ctl_read(CHAN_RSP + 4 * i).unwrap().unwrap().to_le_bytes())
            .collect();
        owner.answer(&Sealed::try_from(shown).unwrap()).expect("authentic answer")
    }

    fn read(&mut self, owner: &mut OwnerChannel, addr: u32) -> u32 {
        let a = self.call(owner, &ShieldRequest::read(addr));
        assert_eq!(a.status, status::DONE, "register {addr:#x}");
        a.value as u32
    }

    fn write(&mut self, owner: &mut OwnerChannel, addr: u32, value: u32) {
        assert_eq!(
            self.call(owner, &ShieldRequest::write(addr, value)).status,
            status::DONE,
            "register {addr:#x}"
        );
    }

    fn start(&mut self, owner: &mut OwnerChannel, blocks: u32, seed: u32, mode: u32) {
        for (addr, value) in
            [(0x08, blocks), (0x0c, seed), (0x10, SCRATCH), (0x18, mode), (0x00, 1)]
        {
            self.write(owner, addr, value);
        }
    }

    /// Runs the accelerator; returns its status and the number of wrong words.
    fn run(&mut self, owner: &mut OwnerChannel, blocks: u32, seed: u32, mode: u32) -> (u32, u32) {
        self.start(owner, blocks, seed, mode);
        for _ in 0..100 {
            self.core.step(1000);
            let status = self.read(owner, 0x04);
            if status & 1 == 1 {
                return (status, self.read(owner, 0x14));
            }
        }
        panic!("the accelerator does not come to an end");
    }

    fn statement(&mut self, owner: &mut OwnerChannel) -> ShieldStatement {
        let a = self.call(owner, &ShieldRequest::statement(0));
        assert_eq!(a.status, status::DONE);
        ShieldStatement::from_payload(&a.payload).expect("page 0")
    }

    /// An unsolicited answer of card memory; the Shield stops.
    fn stray(&mut self, breach: Hostile) {
        self.core.axi_memory().inject(breach);
        self.core.step(200);
        assert!(self.core.axi_memory().injected_all());
        assert_ne!(self.status() & STOPPED, 0, "{breach:?}");
    }
}

const STRAYS: [Hostile; 2] = [Hostile::UnownedR { id: 0 }, Hostile::UnownedB { id: 0 }];

/// A fault in EMPTY or CLOSED does not reach the next session, neither its statement nor the
/// hardware; a fault in FRESH is in its statement.
#[test]
fn a_fault_before_a_session_is_wiped_with_its_set_or_told() {
    for breach in STRAYS {
        let mut s = Shield::new(false);
        for session in 0..2 {
            s.stray(breach);
            let mut owner = s.keyed();
            let page = s.statement(&mut owner);
            assert_eq!(
                (page.stopped, page.faults, s.status() & STOPPED),
                (false, 0, 0),
                "session {session}"
            );
            assert_eq!(
                s.run(&mut owner, 4, 7, 3),
                (1, 0),
                "session {session}: a clean statement, and memory that does not work"
            );
            assert_eq!(
                s.call(
                    &mut owner,
                    &if session == 1 { ShieldRequest::abort() } else { ShieldRequest::close() }
                )
                .status,
                status::DONE
            );
            assert_eq!(s.status() & 7, CLOSED);
        }
        assert_eq!(s.seed(), FRESH);
        s.stray(breach);
        let mut owner = s.load();
        let page = s.statement(&mut owner);
        assert_eq!((page.stopped, page.faults), (true, 1));
        assert_eq!(s.call(&mut owner, &ShieldRequest::write(0, 1)).status, status::STOPPED);
    }
}

/// The same between the seed and its key pair.
#[test]
fn a_fault_while_the_key_pair_is_made_is_told() {
    for after in [10, 900, 2_500, 40_000] {
        let mut s = Shield::new(false);
        let mut seed = [0; 32];
        s.entropy.fill(&mut seed);
        for (i, w) in seed.chunks(4).enumerate() {
            assert!(
                s.core
                    .krn_write(KRN_SEED + 4 * i as u32, u32::from_le_bytes(w.try_into().unwrap()))
                    .unwrap()
            );
        }
        assert!(s.core.krn_write(KRN_CTRL, 1).unwrap());
        s.core.step(after);
        s.core.axi_memory().inject(Hostile::UnownedR { id: 0 });
        s.wait(7, FRESH);
        let mut owner = s.load();
        let page = s.statement(&mut owner);
        if !page.stopped {
            assert_eq!(s.run(&mut owner, 4, 7, 3), (1, 0), "after {after} cycles");
        } else {
            assert_eq!(page.faults, 1);
        }
    }
}

/// A real accelerator behind the only chunk cache at its port, twice: it reads its own writes back.
#[test]
fn a_cached_design_from_seed_to_statement_twice() {
    let mut s = Shield::new(true);
    for session in 0..2 {
        let mut owner = s.keyed();
        // 32 blocks are 4,096 words and fill the cache; 128 go through memory
        for blocks in [32, 128] {
            assert_eq!(
                s.run(&mut owner, blocks, 0x1000 * session + blocks, 3),
                (1, 0),
                "session {session}: status, wrong words"
            );
        }
        assert_eq!(s.call(&mut owner, &ShieldRequest::flush()).status, status::DONE);
        let page = s.statement(&mut owner);
        assert_eq!((page.stopped, page.faults, page.refusals), (false, 0, 0));
        assert_eq!(s.call(&mut owner, &ShieldRequest::close()).status, status::DONE);
    }
}

/// Sessions that end in the middle of bursts, in every way: the next one is unaffected.
#[test]
fn bursts_of_one_session_do_not_reach_the_next() {
    for cached in [false, true] {
        let mut s = Shield::new(cached);
        for (n, after) in (0..).zip([0, 13, 34]) {
            let mut owner = s.keyed();
            s.start(&mut owner, 128, n, 3);
            s.core.step(after);
            match n % 3 {
                0 => assert_eq!(s.call(&mut owner, &ShieldRequest::abort()).status, status::DONE),
                1 => assert_eq!(s.call(&mut owner, &ShieldRequest::close()).status, status::DONE),
                _ => {
                    assert!(s.core.krn_write(KRN_CTRL, 2).unwrap());
                    s.wait(7, EMPTY);
                }
            }
            let mut owner = s.keyed();
            assert_eq!(s.run(&mut owner, 64, 0x100 + n, 3), (1, 0), "cached {cached}, end {n}");
            let page = s.statement(&mut owner);
            assert_eq!(
                (page.stopped, page.faults, page.refusals),
                (false, 0, 0),
                "cached {cached}, end {n}"
            );
            assert_eq!(s.call(&mut owner, &ShieldRequest::close()).status, status::DONE);
        }
    }
}

/// An accelerator that accepts no answers blocks neither a flush nor the end of its session; the
/// next one works.
#[test]
fn an_accelerator_that_takes_no_answers_holds_no_command() {
    for cached in [false, true] {
        let mut s = Shield::new(cached);
        for (n, hold) in (0..).zip([1, 2, 3]) {
            let mut owner = s.keyed();
            assert_eq!(s.run(&mut owner, 8, n, 3), (1, 0));
            s.write(&mut owner, 0x28, hold);
            s.start(&mut owner, 8, n, if hold == 1 { 2 } else { 3 });
            s.core.step(2_000);
            assert_eq!(
                s.call(&mut owner, &ShieldRequest::flush()).status,
                status::DONE,
                "cached {cached}, hold {hold}"
            );
            assert_eq!(s.read(&mut owner, 0x04) & 1, 0);
            assert_eq!(
                s.call(&mut owner, &ShieldRequest::close()).status,
                status::DONE,
                "cached {cached}, hold {hold}"
            );
            let mut owner = s.keyed();
            assert_eq!(s.run(&mut owner, 64, 0x100 + n, 3), (1, 0), "cached {cached}, hold {hold}");
            assert_eq!(s.call(&mut owner, &ShieldRequest::close()).status, status::DONE);
        }
    }
}

/// Two sessions with one job each, the memory from `base` on; the checker is on or off. Returns the
/// cycles and what the checker saw.
fn watched(on: bool, base: u32) -> (u64, Checked) {
    let mut s = Shield::new(false);
    if on {
        s.core.check(Some(DoneRegister { offset: 4, mask: 1, value: 1 })).expect("checker");
    }
    for session in 0..2 {
        let mut owner = s.keyed();
        s.write(&mut owner, 0x08, 16);
        for (addr, value) in [(0x0c, session), (0x10, base), (0x18, 3), (0x00, 1)] {
            s.write(&mut owner, addr, value);
        }
        for _ in 0..20 {
            s.core.step(1_000);
            if s.read(&mut owner, 0x04) & 1 == 1 {
                break;
            }
        }
        assert_eq!(s.call(&mut owner, &ShieldRequest::flush()).status, status::DONE);
        assert_eq!(s.call(&mut owner, &ShieldRequest::close()).status, status::DONE);
    }
    (s.core.cycles(), s.core.checked())
}

/// The checker is in the shell of every design and only watches: no cycle changes, and legal
/// sessions raise nothing. A burst outside of all regions has one report, not a second one for its
/// refusal.
#[test]
fn the_checker_changes_no_cycle_and_names_a_stray_burst() {
    let ((plain, nothing), (cycles, seen)) = (watched(false, SCRATCH), watched(true, SCRATCH));
    assert_eq!((plain, nothing), (cycles, Checked::default()));
    assert_eq!(seen, Checked { reports: Vec::new(), lost: 0, bursts: 2 * 2 * 16 });
    // Sixteen blocks, of which the last eight are behind the region.
    let (_, seen) = watched(true, SCRATCH + 0xf000);
    let rules: Vec<&str> = seen.reports.iter().map(|r| r.rule.as_str()).collect();
    assert_eq!(rules, ["SHEF_ERRM_RANGE"; 2 * 2 * 8], "{:#?}", seen.reports);
    let burst = seen.reports[0].burst.as_ref().expect("a burst");
    assert_eq!((burst.write, burst.addr, burst.beats), (true, 0x2_0000, 8));
}

/// A memory port that fails while the Shield wipes itself is reported before a seed is used.
#[test]
fn a_port_that_dies_during_a_wipe_is_told_before_the_next_session() {
    let mut s = Shield::new(false);
    let mut owner = s.keyed();
    s.core.axi_memory().inject(Hostile::LoseWrite);
    s.start(&mut owner, 4, 1, 1);
    s.core.step(600);
    assert_eq!(s.status() & STOPPED, 0, "not yet");
    assert!(s.core.krn_write(KRN_CTRL, 2).unwrap());
    s.wait(7, EMPTY);
    s.core.step(100);
    assert_ne!(s.status() & STOPPED, 0, "a port that is dead, and nobody knows");
}

/// The accelerator's memory is cleared before the next session.
#[test]
fn the_memory_of_the_accelerator_is_cleared() {
    let mut s = Shield::new(false);
    let mut owner = s.keyed();
    assert_eq!(s.run(&mut owner, 4, 0x5ec_0000, 3), (1, 0));
    s.write(&mut owner, 0x1c, 2);
    assert_eq!(s.read(&mut owner, 0x20), 0x5ec_0020);
    assert_eq!(s.call(&mut owner, &ShieldRequest::close()).status, status::DONE);
    let mut owner = s.keyed();
    for index in 0..40 {
        s.write(&mut owner, 0x1c, index);
        assert_eq!(s.read(&mut owner, 0x20), 0, "beat {index} of the session before");
    }
}

/// An accelerator that does not clear it gets no further session, and the Shield reports this.
#[test]
fn an_accelerator_that_does_not_clear_gets_no_session() {
    let mut s = Shield::new(false);
    let mut owner = s.keyed();
    s.write(&mut owner, 0x24, 1);
    assert_eq!(s.call(&mut owner, &ShieldRequest::close()).status, status::DONE);
    assert_eq!(s.status() & (7 | UNCLEARED), CLOSED);
    for _ in 0..2 {
        assert_eq!(s.seed(), EMPTY);
        assert_ne!(s.status() & UNCLEARED, 0);
        for word in 0..16 {
            assert_eq!(s.core.krn_read(KRN_PUBKEY + 4 * word).unwrap(), Some(0));
        }
    }
    // a wipe still ends within its bound, and clears the mark
    assert!(s.core.krn_write(KRN_CTRL, 2).unwrap());
    s.wait(7, EMPTY);
    assert_eq!(s.status(), EMPTY);
    assert_eq!(s.seed(), EMPTY);
}
