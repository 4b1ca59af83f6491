//! The whole system: Security Kernel, Shield and DMA engine in one model, connected as in a shell.
//!
//! Most tests run a test program from the boot ROM (`rv32/mod.rs`) that lets the test act as the
//! kernel; the long one runs boot ROM and firmware as committed.

mod rv32;

use rv32::CoreOp;
use shef_device::ring::{
    Completion, Descriptor, DmaMemory, OP_TO_CARD, OP_TO_HOST, Queue, Registers, Status,
};
use shef_device::{DeviceError, OutOfRange};
use shef_proto::channel::{OwnerChannel, Sealed, ShieldRequest, status};
use shef_proto::config::Config;
use shef_proto::entropy::Entropy;
use shef_proto::hpke_suite::{PublicKey, derive_key_pair};
use shef_proto::load::{first_epochs, seal_load_key};
use shef_regs::ctl::{
    self, CHAN_DOORBELL, CHAN_REQ, CHAN_RSP, LOAD_DOORBELL, LOAD_MSG, STATUS,
    STATUS_STATE_CLOSED as CLOSED, STATUS_STATE_EMPTY as EMPTY, STATUS_STATE_FRESH as FRESH,
    STATUS_STATE_KEYED as KEYED,
};
use shef_regs::krn;
use shef_rtl::agent::Rng;
use shef_rtl::memory::SparseMemory;
use shef_rtl::system_sim::MAILBOX;
use shef_rtl::{
    Agent, AxiMemoryConfig, DesignSpec, HostBus, HostFault, HostMemory, KernelStraps, Library, Sim,
    SystemSim, SystemSnapshot, build, build_once, counted, counts_coverage, repo_root, system_spec,
};
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::OnceLock;
use std::time::Duration;

const LOAD_BUSY: u32 = ctl::STATUS_LOAD_BUSY.put(1);
const CHAN_BUSY: u32 = ctl::STATUS_CHAN_BUSY.put(1);

// The kernel's view.
const MEMORY: u32 = 0x1000_0000;
const RAM: u32 = 0x2000_0000;
const SYS: u32 = 0x4000_0000;
const WATCHDOG: u32 = SYS + 0x18;
const SHIELD: u32 = 0x4000_2000;
const NOISE: u32 = 0x4000_3000;
const CONFIG: u32 = 0x4000_b000;
const BEGIN: u32 = 1;
const FINISH: u32 = 2;
const CLEAR: u32 = 4;
const KRN_CTRL: u32 = SHIELD + krn::CTRL;
const KRN_STATUS: u32 = SHIELD + krn::STATUS;
const KRN_SEED: u32 = SHIELD + krn::SEED;
const KRN_PUBKEY: u32 = SHIELD + krn::PUBKEY;
const KRN_T: u32 = SHIELD + krn::T;
const KRN_LAST: u32 = SHIELD + krn::LAST;

// The host's view.
const DMA: u32 = 0xb000;
const REQ_LEN: u32 = 0xff00;
const MAGIC: u32 = u32::from_le_bytes(*b"SHEF");

/// A register of the digits accelerator.
const TRAIN_ROWS: u32 = 0x10;

fn digits() -> Config {
    shef_gen::shield::parse(include_str!("../../../shell-rtl/accel/digits/shield.toml"))
        .expect("shield.toml")
        .config
}

fn spec(boot: Option<&Path>) -> DesignSpec {
    system_spec(boot).expect("sources").search("shell-rtl/accel/digits").savable()
}

/// The folder of the test program's ROM.
fn probe() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("system-probe");
        std::fs::create_dir_all(&folder).expect("folder");
        std::fs::write(folder.join("shef_kernel_rom_pkg.sv"), rv32::package(&rv32::probe()))
            .expect("package");
        folder
    })
}

/// The system with the test program in its ROM.
fn library() -> &'static Library {
    build_once(&counted(spec(Some(probe())))).expect("model")
}

/// The same with a hostile core in the fabric (`system/shef_core.sv`).
fn hostile() -> &'static Library {
    let mut spec = system_spec(Some(probe())).expect("sources").search("shell-rtl/accel/digits");
    spec.sources.search.insert(0, repo_root().join("sim/rtl/tests/system"));
    build_once(&counted(spec.param("WipeCycles", WIPE))).expect("model")
}

fn straps() -> KernelStraps {
    KernelStraps {
        uds: core::array::from_fn(|i| 0xa0 + i as u8),
        root: 2,
        target: KernelStraps::name("test"),
        shell: core::array::from_fn(|i| 0x10 + i as u8),
        shell_flags: 5,
        debug: false,
        seeded: true,
        unmeasured: false,
    }
}

/// Edges of the kernel's clock relative to the design's.
#[derive(Clone, Copy, Debug)]
enum Pace {
    Each,
    Second,
    Random,
}

impl Pace {
    fn pace(self) -> shef_rtl::KernelClock {
        let mut rng = Rng::new(7);
        match self {
            Self::Each => Box::new(|_| true),
            Self::Second => Box::new(|cycle| cycle.is_multiple_of(2)),
            Self::Random => Box::new(move |_| rng.one_in(3)),
        }
    }

    /// Most cycles that this number of edges takes.
    fn cycles(self, edges: u64) -> u64 {
        match self {
            Self::Each => edges,
            Self::Second => 2 * edges,
            Self::Random => 4 * edges,
        }
    }
}

thread_local! {
    /// Pace of each new [`System`].
    static PACE: Cell<Pace> = const { Cell::new(Pace::Each) };
}

/// Runs a test at each pace of the kernel's clock.
fn at_each_pace(test: impl Fn()) {
    for pace in [Pace::Each, Pace::Second, Pace::Random] {
        println!("the kernel's clock: {pace:?}");
        PACE.set(pace);
        test();
    }
}

struct System {
    sim: SystemSim,
    /// Cycles of the last answer.
    took: u64,
}

impl System {
    /// The kernel's memories are clear, and the fabric is empty.
    fn new() -> Self {
        static BOOTED: OnceLock<SystemSnapshot> = OnceLock::new();
        let mut system = Self::fresh();
        match BOOTED.get().filter(|_| !counts_coverage()) {
            Some(snapshot) => {
                system.sim.restore(snapshot, AxiMemoryConfig::default()).expect("same design");
            }
            None => {
                system.sim.core.step(70_000);
                assert_eq!(system.read(SYS), u32::from_le_bytes(*b"SHEK"));
                let _ = BOOTED.set(system.sim.save().expect("quiet"));
            }
        }
        system.sim.environment().pace = PACE.get().pace();
        system
    }

    fn fresh() -> Self {
        Self::of(library())
    }

    fn of(library: &Library) -> Self {
        let mut sim =
            SystemSim::new(library, &straps(), AxiMemoryConfig::default()).expect("instance");
        sim.environment().fabric = Box::new(|_: &[u8]| Some(shef_fixtures::world::DESIGN));
        Self { sim, took: 0 }
    }

    /// The system with a design in the fabric.
    fn loaded() -> Self {
        let mut system = Self::new();
        system.load();
        system
    }

    fn start(&mut self, ask: CoreOp, address: u32, value: u32) {
        let request: Vec<u8> =
            [ask as u32, address, value, 0].iter().flat_map(|w| w.to_le_bytes()).collect();
        assert!(self.sim.send(&request).expect("host port"));
    }

    fn finish(&mut self, limit: u64) -> Option<(u32, u32)> {
        let begin = self.sim.core.cycles();
        let answer = self.sim.receive(limit).expect("host port")?;
        self.took = self.sim.core.cycles() - begin;
        let word =
            |n: usize| u32::from_le_bytes(answer[4 * n..4 * n + 4].try_into().expect("word"));
        Some((word(0), word(1)))
    }

    fn ask(&mut self, ask: CoreOp, address: u32, value: u32) -> (u32, u32) {
        self.start(ask, address, value);
        self.finish(300_000).expect("an answer")
    }

    fn read(&mut self, address: u32) -> u32 {
        let (word, trap) = self.ask(CoreOp::Read, address, 0);
        assert_eq!(trap, 0, "read of {address:#x}");
        word
    }

    fn write(&mut self, address: u32, value: u32) {
        assert_eq!(self.ask(CoreOp::Write, address, value).1, 0, "write of {address:#x}");
    }

    fn bytes(&mut self, address: u32, len: u32) -> Vec<u8> {
        (0..len / 4).flat_map(|n| self.read(address + 4 * n).to_le_bytes()).collect()
    }

    fn image(&mut self) {
        self.write(CONFIG, BEGIN);
        self.write(CONFIG + 8, 0x0bad_c0de);
        self.write(CONFIG + 8, 0xdead_beef);
        self.write(CONFIG, FINISH);
    }

    fn load(&mut self) {
        self.image();
        let state =
            (0..2000).find_map(|_| Some(self.read(CONFIG + 4)).filter(|status| status & 1 == 0));
        assert_eq!(state, Some(2), "a design is active");
        self.krn_state(EMPTY);
    }

    fn krn_state(&mut self, state: u32) {
        assert!((0..2000).any(|_| self.read(KRN_STATUS) & 7 == state), "state {state}");
    }

    fn seed(&mut self, seed: &[u8; 32]) {
        for (n, word) in seed.chunks(4).enumerate() {
            self.write(KRN_SEED + 4 * n as u32, u32::from_le_bytes(word.try_into().expect("word")));
        }
    }

    fn ctl(&mut self, at: u32) -> Option<u32> {
        self.sim.core.ctl_read(at).expect("an answer")
    }

    fn put(&mut self, at: u32, bytes: &[u8]) {
        for (n, word) in (0..).zip(bytes.chunks(4)) {
            let mut w = [0; 4];
            w[..word.len()].copy_from_slice(word);
            assert!(self.sim.core.ctl_write(at + 4 * n, u32::from_le_bytes(w)).expect("an answer"));
        }
    }

    fn status(&mut self, mask: u32, want: u32) {
        self.sim.core.wait_ctl(STATUS, mask, want, 50, 3_000_000).expect("state");
    }

    /// Delivers a Load Key to a fresh Shield.
    fn load_key(&mut self, message: &[u8]) {
        self.put(LOAD_MSG, message);
        assert!(self.sim.core.ctl_write(LOAD_DOORBELL, message.len() as u32).expect("an answer"));
        self.status(LOAD_BUSY, 0);
        self.status(7, KEYED);
    }

    fn call(&mut self, owner: &mut OwnerChannel, request: &ShieldRequest) -> u64 {
        let sealed = owner.request(request).expect("a request");
        self.put(CHAN_REQ, &sealed);
        assert!(self.sim.core.ctl_write(CHAN_DOORBELL, 0).expect("an answer"));
        self.status(CHAN_BUSY, 0);
        let shown: Vec<u8> = (0..22)
            .flat_map(|i| self.ctl(CHAN_RSP + 4 * i).expect("readable").to_le_bytes())
            .collect();
        let answer = owner.answer(&Sealed::try_from(shown).expect("88 bytes")).expect("authentic");
        assert_eq!(answer.status, status::DONE);
        answer.value
    }

    /// Writes and reads a register of the accelerator, then closes.
    fn session(&mut self, owner: &mut OwnerChannel) {
        self.call(owner, &ShieldRequest::write(TRAIN_ROWS, 1234));
        assert_eq!(self.call(owner, &ShieldRequest::read(TRAIN_ROWS)), 1234);
        self.call(owner, &ShieldRequest::close());
        self.status(7, CLOSED);
    }
}

/// Sets an input in one cycle, counted from the start of the agent.
struct Later {
    port: &'static str,
    value: u64,
    left: u64,
}

impl Agent for Later {
    fn sample(&mut self, _: &Sim) {}

    fn drive(&mut self, sim: &mut Sim) {
        if self.left == 0 {
            sim.poke(self.port, self.value);
        }
        self.left = self.left.wrapping_sub(1);
    }
}

/// Counts the kernel's accesses that the design accepts.
#[derive(Default)]
struct Accesses {
    writes: u64,
    reads: u64,
}

impl Agent for Accesses {
    fn sample(&mut self, sim: &Sim) {
        let count = |port: &str| sim.get(sim.port(port).expect("a port"));
        self.writes += count("obs_krn_write");
        self.reads += count("obs_krn_read");
    }

    fn drive(&mut self, _: &mut Sim) {}
}

fn inside(a: u32, from: u32, len: u32) -> bool {
    a >= from && a < from + len
}

/// Whether the mailbox answers a read.
fn mailbox_read(a: u32) -> bool {
    inside(a, 0xe000, 0x1e00) || inside(a, 0xff04, 8)
}

fn mailbox_write(a: u32) -> bool {
    inside(a, MAILBOX, 0x2000) || a == REQ_LEN
}

#[test]
fn without_a_design_the_mailbox_alone_answers() {
    at_each_pace(|| {
        let mut s = System::new();
        assert!(s.sim.held());
        for a in (0..0x1_0000).step_by(4) {
            assert_eq!(s.ctl(a).is_some(), mailbox_read(a), "read of {a:#x}");
            // The doorbell is last.
            if a != REQ_LEN {
                assert_eq!(
                    s.sim.core.ctl_write(a, 1).unwrap(),
                    mailbox_write(a),
                    "write of {a:#x}"
                );
            }
        }
        // Nor does the kernel find a Shield.
        assert_eq!(s.read(KRN_STATUS), 0);
        assert_eq!(s.read(SYS + 8) >> 4 & 1, 1, "NO_SHIELD");
        assert_eq!(s.read(CONFIG + 4), 0);
        assert_eq!(s.bytes(CONFIG + 0x20, 32), [0; 32]);
        let counters = s.sim.core.counters();
        assert_eq!((counters.reads, counters.writes), (0, 0));
        assert!(s.sim.held());
        // An incomplete image is no design, whatever the fabric reports.
        s.write(CONFIG, BEGIN);
        s.write(CONFIG + 8, 1);
        s.write(CONFIG + 8, 2);
        s.sim.core.sim().poke("cfg_active_i", 1);
        s.sim.core.step(100);
        assert!(s.sim.held());
        assert_eq!(s.ctl(0), None);
        s.sim.core.sim().poke("cfg_active_i", 0);
        s.write(CONFIG, CLEAR);
        s.load();
        assert_eq!(s.ctl(0), Some(MAGIC));
        assert_eq!(s.bytes(CONFIG + 0x20, 32), shef_fixtures::world::DESIGN);
    });
}

#[test]
fn with_a_design_the_host_reaches_its_registers_and_no_more() {
    at_each_pace(|| {
        let mut s = System::loaded();
        let markers = [0x5ec2_e700, 0x5ec2_e701, 0x5ec2_e702];
        s.write(RAM, markers[0]);
        s.write(MEMORY, markers[1]);
        let seed: [u8; 32] = core::array::from_fn(|i| markers[2].to_le_bytes()[i % 4]);
        s.seed(&seed);
        let secret = |word: u32| {
            markers.contains(&word) || straps().uds.windows(4).any(|w| w == word.to_le_bytes())
        };
        let shield = |a| {
            inside(a, 0, 0x14)
                || inside(a, 0x20, 32)
                || inside(a, 0x100, 4)
                || inside(a, 0x120, 32)
                || inside(a, CHAN_RSP, 88)
        };
        let queues = |a: u32| inside(a, DMA, 0x100) && a & 0x3f < 0x1c;
        let mut answered = 0;
        for a in (0..0x1_0000).step_by(4) {
            let word = s.ctl(a);
            let want = shield(a) || (queues(a) && a & 0x3f != 0xc) || mailbox_read(a);
            assert_eq!(word.is_some(), want, "read of {a:#x}");
            assert!(!word.is_some_and(secret), "read of {a:#x}");
            answered += u32::from(want);
        }
        assert_eq!(answered, 5 + 8 + 1 + 8 + 22 + 4 * 6 + 0x780 + 2);
        let writable = |a| {
            inside(a, LOAD_DOORBELL, 8)
                || inside(a, LOAD_MSG, 1024)
                || inside(a, CHAN_REQ, 88)
                || mailbox_write(a)
        };
        for a in (0..0x1_0000).step_by(4).filter(|a| *a != REQ_LEN) {
            let taken = s.sim.core.ctl_write(a, 2).unwrap();
            assert!(
                if queues(a) { true } else { taken == writable(a) },
                "write of {a:#x}: {taken}"
            );
        }
        // Nothing of it reached the kernel or its port: the seed is whole, and gives its key.
        assert_eq!((s.read(RAM), s.read(MEMORY)), (markers[0], markers[1]));
        assert_eq!(s.bytes(SYS + 0x20, 32), straps().uds);
        assert_eq!(s.read(KRN_STATUS) & 7, EMPTY);
        s.write(KRN_CTRL, 1);
        s.krn_state(FRESH);
        let (_, key) = derive_key_pair(&seed);
        assert_eq!(s.bytes(KRN_PUBKEY, 64), key.xy());
        // The host sees nothing of that port; the answer buffer is that of another request.
        s.read(SYS);
        for a in (0..0x1_0000).step_by(4) {
            let word = s.ctl(a);
            assert!(!word.is_some_and(|w| secret(w) || key.xy().windows(4).any(|k| k == w.to_le_bytes())), "read of {a:#x}");
        }
    });
}

#[test]
fn an_access_of_the_kernel_reaches_the_shield_once() {
    at_each_pace(|| {
        let mut s = System::loaded();
        let seen = Rc::new(RefCell::new(Accesses::default()));
        s.sim.core.attach(Box::new(Rc::clone(&seen)));
        let mut reads = 0;
        for n in 0..8 {
            s.write(KRN_SEED + 4 * n, n);
            for _ in 0..n {
                assert_eq!(s.read(KRN_STATUS) & 7, EMPTY);
                reads += 1;
            }
        }
        let seen = seen.borrow();
        assert_eq!((seen.writes, seen.reads), (8, reads));
    });
}

#[test]
fn what_the_shell_says_of_itself_reaches_the_kernel() {
    const SOURCE: u32 = 3 << 12;
    const DEBUG: u64 = 7;
    at_each_pace(|| {
        let mut s = System::new();
        let straps = straps();
        assert_eq!(s.bytes(SYS + 0x20, 32), straps.uds);
        assert_eq!(s.bytes(SYS + 0x40, 32), straps.target);
        assert_eq!(s.bytes(SYS + 0x60, 32), straps.shell);
        assert_eq!(
            (s.read(SYS + 0x1c), s.read(SYS + 0x80)),
            (straps.root.into(), straps.shell_flags.into())
        );
        // A seed is worse than a source that was never measured, and both set the lower bit.
        for (seeded, unmeasured, source) in
            [(false, false, 0), (true, false, 1), (true, true, 1), (false, true, 3)]
        {
            s.sim.strap(&KernelStraps { seeded, unmeasured, ..straps.clone() }).expect("ports");
            assert_eq!(s.read(NOISE) & SOURCE, source << 12, "{seeded} {unmeasured}");
        }
        // Debug for one cycle of the design's clock, at every position between two edges of the
        // kernel's clock.
        for wait in 0..4 {
            let mut s = System::new();
            assert_eq!((s.read(SYS + 8) >> 1 & 1, s.sim.alert()), (0, 0));
            s.sim.core.step(wait);
            s.sim.core.sim().poke("debug_i", 1);
            s.sim.core.step(1);
            s.sim.core.sim().poke("debug_i", 0);
            s.sim.core.step(100);
            assert_eq!(s.sim.alert(), DEBUG, "debug after {wait} cycles");
        }
    });
}

#[test]
fn an_access_that_the_kernel_forgot_answers_no_later_one() {
    for pace in [Pace::Each, Pace::Second] {
        PACE.set(pace);
        let mut s = System::loaded();
        let loaded = s.sim.save().expect("quiet");
        let asked = |s: &mut System, cycles: u64| {
            s.sim.restore(&loaded, AxiMemoryConfig::default()).expect("same design");
            s.start(CoreOp::Read, KRN_STATUS, 0);
            s.sim.core.step(cycles);
        };
        // At the time the design accepts it.
        asked(&mut s, 0);
        let port = s.sim.core.sim().port("obs_krn_read").expect("a port");
        let taken = (1..5_000).find(|_| {
            s.sim.core.step(1);
            s.sim.core.sim().eval();
            s.sim.core.sim().get(port) == 1
        });
        let taken = taken.expect("a read");
        for cycles in taken - 3..taken + 4 {
            asked(&mut s, cycles);
            // The kernel restarts.
            s.sim.core.wipe().expect("acknowledged");
            s.sim.core.step(200);
            s.image();
            assert!((0..2000).any(|_| s.read(CONFIG + 4) == 2), "a design is active");
            s.sim.core.step(10_000);
            assert_eq!(
                (s.read(KRN_STATUS) & 7, s.read(SYS + 8) >> 4 & 1),
                (EMPTY, 0),
                "{pace:?}: forgotten after {cycles} cycles"
            );
        }
    }
}

#[test]
fn a_session_runs_and_ends_behind_the_joint() {
    at_each_pace(|| {
        let mut s = System::loaded();
        let mut rng = shef_fixtures::world::entropy(5);
        let mut seed = [0; 32];
        rng.fill(&mut seed);
        s.seed(&seed);
        s.write(KRN_CTRL, 1);
        s.krn_state(FRESH);
        let key = PublicKey::from_xy(&s.bytes(KRN_PUBKEY, 64).try_into().expect("64 bytes"))
            .expect("a point of the curve");
        let (message, keys) =
            seal_load_key(&digits(), &key, b"info", &first_epochs(&digits(), 1), &mut rng)
                .expect("a Load Key");
        s.load_key(&message);
        assert_eq!(s.bytes(KRN_T, 32), keys.transcript().0);
        let keyed = s.sim.save().expect("quiet");
        s.session(&mut OwnerChannel::new(&keys));
        assert_ne!(s.bytes(KRN_LAST, 88), [0; 88]);
        // Another image replaces a keyed one: nothing of the session remains.
        s.sim.restore(&keyed, AxiMemoryConfig::default()).expect("same design");
        s.load();
        assert_eq!((s.bytes(KRN_PUBKEY, 64), s.bytes(KRN_T, 32)), (vec![0; 64], vec![0; 32]));
        assert!((0..8).all(|n| s.ctl(0x120 + 4 * n) == Some(0)), "confirmation");
        // An earlier, partly written seed does not count.
        s.seed(&seed);
        s.load();
        s.write(KRN_CTRL, 1);
        assert_eq!(s.read(KRN_STATUS) & 7, EMPTY);
    });
}

/// Occurrences of this word in the state, at any byte.
fn count(s: &mut System, word: u32) -> usize {
    s.sim
        .core
        .sim()
        .save()
        .expect("savable")
        .bytes()
        .windows(4)
        .filter(|w| *w == word.to_le_bytes())
        .count()
}

#[test]
fn the_fabric_hears_of_an_end_when_the_design_is_wiped_and_held() {
    at_each_pace(|| {
        const CANARY: u32 = 0xca9a_27a5;
        let mut s = System::loaded();
        for n in 0..256 {
            assert!(s.sim.core.ctl_write(LOAD_MSG + 4 * n, CANARY).unwrap());
        }
        assert!(s.sim.core.ctl_write(LOAD_MSG, 0).unwrap());
        assert!(count(&mut s, CANARY) >= 255);
        let filled = s.sim.save().expect("quiet");
        for (control, told) in [(BEGIN, "cfg_begin_o"), (CLEAR, "cfg_clear_o")] {
            s.sim.restore(&filled, AxiMemoryConfig::default()).expect("same design");
            s.start(CoreOp::Write, CONFIG, control);
            let other = if control == BEGIN { "cfg_clear_o" } else { "cfg_begin_o" };
            let mut reached = false;
            for _ in 0..200_000 {
                let held = s.sim.held();
                let sim = s.sim.core.sim();
                sim.eval();
                assert_eq!((sim.peek(other), sim.peek("cfg_valid_o")), (0, 0));
                if sim.peek(told) == 1 {
                    assert!(held, "{told} while the design is not held");
                    reached = true;
                    break;
                }
                s.sim.core.step(1);
            }
            assert!(reached, "{told}");
            assert_eq!(count(&mut s, CANARY), 0, "{told}");
            assert_eq!(s.finish(10_000), Some((0, 0)));
            assert_eq!(s.ctl(0), None);
            s.write(CONFIG, CLEAR);
            s.load();
            assert_eq!(s.ctl(0), Some(MAGIC));
        }
        // The end of the kernel ends the design, too: watchdog, halt.
        for (address, value) in [(WATCHDOG, 500), (SYS + 4, 4)] {
            s.sim.restore(&filled, AxiMemoryConfig::default()).expect("same design");
            s.start(CoreOp::Write, address, value);
            s.sim.core.step(70_000);
            assert!(s.sim.held(), "{address:#x}");
            assert_eq!((count(&mut s, CANARY), s.ctl(0)), (0, None));
        }
    });
}

#[test]
fn accesses_under_way_are_answered_when_the_design_ends() {
    at_each_pace(|| {
        let mut s = System::loaded();
        let loaded = s.sim.save().expect("quiet");
        // The fabric loses its design during an access of the host.
        for left in 0..16 {
            for write in [None, Some(7)] {
                s.sim.restore(&loaded, AxiMemoryConfig::default()).expect("same design");
                let mut later = Later { port: "cfg_active_i", value: 0, left };
                let at = if write.is_some() { LOAD_MSG } else { 0 };
                let start = s.sim.core.cycles();
                let answer =
                    s.sim.core.access(false, at, write, &mut [&mut later]).expect("an answer");
                assert!(
                    answer.is_none() || answer == Some(if write.is_some() { 0 } else { MAGIC }),
                    "{left}: {answer:x?}"
                );
                assert!(s.sim.core.cycles() - start < 20, "{left}");
                for _ in 0..20 {
                    s.sim.core.step_with(&mut [&mut later]);
                }
                assert_eq!((s.ctl(at), s.ctl(MAILBOX + 0x3f04)), (None, Some(1)), "{left}");
                // The next design does not repeat the answer given in its place.
                s.load();
                assert_eq!(s.ctl(0x4), Some(0x0001_0000), "{left}");
            }
        }
        // The same during an access of the kernel, which then accesses the next design.
        let (mut seen, mut missed) = (0, 0);
        for left in (0..160).step_by(3) {
            s.sim.restore(&loaded, AxiMemoryConfig::default()).expect("same design");
            s.start(CoreOp::Read, KRN_STATUS, 0);
            let mut later = Later { port: "cfg_active_i", value: 0, left };
            for _ in 0..=left {
                s.sim.core.step_with(&mut [&mut later]);
            }
            let (word, trap) = s.finish(3_000).expect("an answer");
            assert_eq!(trap, 0);
            assert!(word == EMPTY || word == 0, "{left}: {word:#x}");
            assert!(s.took < 900, "{left}: {} cycles", s.took);
            *(if word == 0 { &mut missed } else { &mut seen }) += 1;
            assert_eq!(s.read(KRN_STATUS), 0);
            s.load();
        }
        assert!(seen > 3 && missed > 3, "{seen} answers of the design, {missed} of the gate");
    });
}

/// Host memory, fully mapped.
#[derive(Clone, Default)]
struct Host(Rc<RefCell<SparseMemory>>);

impl HostBus for Host {
    fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), HostFault> {
        self.0.borrow().read(addr, out);
        Ok(())
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), HostFault> {
        self.0.borrow_mut().write(addr, bytes);
        Ok(())
    }
}

/// Address of the ring.
const RING: u64 = 1 << 20;

impl DmaMemory for Host {
    fn device_address(&self) -> u64 {
        RING
    }

    fn bytes(&self) -> u64 {
        1 << 16
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        self.0.borrow().read(RING + offset, out);
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), OutOfRange> {
        self.0.borrow_mut().write(RING + offset, bytes);
        Ok(())
    }

    fn load(&self, offset: u64) -> Result<u32, OutOfRange> {
        let mut word = [0; 4];
        DmaMemory::read(self, offset, &mut word)?;
        Ok(u32::from_le_bytes(word))
    }
}

impl Registers for System {
    fn register(&mut self, offset: u32) -> Result<u32, DeviceError> {
        Ok(self.ctl(offset).unwrap_or(u32::MAX))
    }

    fn set_register(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        self.sim.core.ctl_write(offset, value).expect("an answer");
        Ok(())
    }

    fn interrupted(&mut self, _: u32, _: Duration) -> Result<bool, DeviceError> {
        self.sim.core.step(500);
        Ok(true)
    }
}

/// Attaches host memory.
fn host(s: &mut System) -> (Host, Rc<RefCell<HostMemory<Host>>>) {
    let host = Host::default();
    let memory =
        HostMemory::new(s.sim.core.sim(), "host_", AxiMemoryConfig::default(), host.clone())
            .expect("host port");
    let memory = Rc::new(RefCell::new(memory));
    s.sim.core.attach(Box::new(Rc::clone(&memory)));
    s.sim.core.sim().poke("dma_irq_ready", 1);
    (host, memory)
}

#[test]
fn the_dma_engine_reaches_memory_alone() {
    at_each_pace(|| {
        const CARD_BYTES: u64 = 0x4_0000_0000;
        let mut s = System::loaded();
        let (host, memory) = host(&mut s);
        let markers: [u32; 2] = [0x5ec2_e700, 0x5ec2_e701];
        s.write(RAM, markers[0]);
        s.write(MEMORY, markers[1]);
        s.seed(&[0x77; 32]);
        let mut queue = Queue::open(&mut s, 0, 64, host.clone(), 0, 1).expect("a queue");
        let mut one = |s: &mut System, d: Descriptor| -> Completion {
            assert!(queue.push(&d).unwrap());
            queue.submit(s).unwrap();
            queue.wait(s, Duration::from_secs(60)).unwrap().expect("a completion")
        };
        // Addresses of the control window, of the mailbox and of the kernel have no meaning for it:
        // its writes go to card memory, and its reads come from there.
        let places = [
            0,
            0x100,
            0x1000,
            0xb000,
            0xc000,
            0xe000,
            0xff00,
            MEMORY,
            RAM,
            0x3000_0000,
            SYS,
            SYS + 0x20,
            SHIELD,
            0x4000_4000,
            CONFIG,
        ];
        for (n, place) in (0..).zip(places) {
            let card = u64::from(place);
            let (from, to) = (0x20_0000 + 0x1000 * n, 0x40_0000 + 0x1000 * n);
            let bytes: Vec<u8> = (0..64).map(|i| (i * 7 + n * 31) as u8).collect();
            host.0.borrow_mut().write(from, &bytes);
            let d = Descriptor { op: OP_TO_CARD, flags: 0, tag: 1, host: from, card, bytes: 64 };
            assert_eq!(one(&mut s, d).status, Status::Done, "{place:#x}");
            let mut there = [0; 64];
            s.sim.core.memory().read(card, &mut there);
            assert_eq!(there[..], bytes, "{place:#x}");
            s.sim.core.memory_mut().write(card, &[0x3c; 64]);
            assert_eq!(
                one(&mut s, Descriptor { op: OP_TO_HOST, host: to, ..d }).status,
                Status::Done,
                "{place:#x}"
            );
            host.0.borrow().read(to, &mut there);
            assert_eq!(there, [0x3c; 64], "{place:#x}");
        }
        for card in [CARD_BYTES, CARD_BYTES + 0x4000_0020, u64::MAX - 63, 1 << 63] {
            for op in [OP_TO_CARD, OP_TO_HOST] {
                let d = Descriptor { op, flags: 0, tag: 1, host: 0x20_0000, card, bytes: 64 };
                assert_eq!(one(&mut s, d).status, Status::Card, "{card:#x}");
            }
        }
        assert_eq!((s.read(RAM), s.read(MEMORY), s.read(CONFIG + 4)), (markers[0], markers[1], 2));
        assert_eq!(s.bytes(SYS + 0x20, 32), straps().uds);
        // The seed is unchanged since the kernel wrote it.
        s.write(KRN_CTRL, 1);
        s.krn_state(FRESH);
        assert_eq!(s.bytes(KRN_PUBKEY, 64), derive_key_pair(&[0x77; 32]).1.xy());
        assert_eq!(memory.borrow().violations(), &[] as &[String]);
    });
}

#[test]
fn a_wipe_is_acknowledged_when_kernel_and_design_are_clear() {
    at_each_pace(|| {
        const CANARY: u32 = 0xca9a_27a5;
        let mut s = System::loaded();
        let (host, memory) = host(&mut s);
        s.write(RAM, CANARY);
        for n in 0..256 {
            assert!(s.sim.core.ctl_write(LOAD_MSG + 4 * n, CANARY).unwrap());
        }
        let mut queue = Queue::open(&mut s, 0, 64, host, 0, 1).expect("a queue");
        assert!(
            queue
                .push(&Descriptor {
                    op: OP_TO_CARD,
                    flags: 0,
                    tag: 1,
                    host: 0x20_0000,
                    card: 0,
                    bytes: 4096
                })
                .unwrap()
        );
        // Host memory owes the engine an answer: the kernel is cleared first.
        memory.borrow_mut().frozen = true;
        queue.submit(&mut s).unwrap();
        s.sim.core.step(200);
        let sim = s.sim.core.sim();
        sim.poke("ctl_wdata", 0);
        sim.poke("wipe_req", 1);
        for _ in 0..1000 {
            s.sim.core.step(100);
            assert_eq!(s.sim.core.sim().peek("wipe_ack"), 0);
        }
        assert!(!s.sim.held());
        // The host's accesses are still answered.
        assert_eq!((s.ctl(0), s.ctl(0xff04), s.ctl(0xe000)), (None, Some(0), Some(0)));
        memory.borrow_mut().frozen = false;
        let acknowledged = (0..100_000).find(|_| {
            s.sim.core.step(1);
            s.sim.core.sim().peek("wipe_ack") == 1
        });
        assert!(acknowledged.is_some() && s.sim.held());
        assert_eq!(count(&mut s, CANARY), 0);
        assert_eq!(memory.borrow().violations(), &[] as &[String]);
        let sim = s.sim.core.sim();
        sim.poke("wipe_req", 0);
        sim.eval();
        assert_eq!(sim.peek("wipe_ack"), 0);
        // With nothing in flight, the kernel is cleared first: the acknowledgement waits for it.
        s.sim.core.step(100);
        s.load();
        let took = s.sim.core.wipe().expect("acknowledged");
        assert!((65_536..PACE.get().cycles(70_000)).contains(&took), "{took} cycles");
        assert_eq!(s.ctl(0), None);
        s.sim.core.step(100);
        s.load();
        assert_eq!(s.ctl(0), Some(MAGIC));
    });
}

/// Cycles for which the gate of the control window waits for a design (`shef_system_gate`), plus
/// its own.
const GATE: u64 = 4_096 + 20;
/// Cycles allowed for a hostile design to end its wipe (`shef_system_life`).
const WIPE: u64 = 100_000;

/// The shell of the system has the checker of the simulation shells.
#[test]
fn broken_rules_of_an_accelerator_in_the_system_are_reported() {
    let mut s = System::of(hostile());
    s.sim.core.step(10);
    assert_eq!(s.sim.core.checked().reports, [], "it is off");
    s.sim.core.check(None).expect("a checker");
    s.sim.core.step(10);
    s.sim.core.uncheck();
    let reports = s.sim.core.checked().reports;
    let withdrawn = reports.iter().find(|report| report.rule == "AXI_ERRM_ARVALID_STABLE");
    let withdrawn = withdrawn.unwrap_or_else(|| panic!("{reports:?}"));
    assert_eq!((withdrawn.port.as_str(), withdrawn.signal.as_str()), ("port 0", "ARVALID"));
    s.sim.core.step(10);
    assert_eq!(s.sim.core.checked().reports, [], "it is off again");
    assert!(s.sim.core.progress().ports.iter().any(|port| port.port == "port 0"));
}

#[test]
fn a_design_that_answers_nothing_holds_up_neither_host_nor_kernel() {
    let mut s = System::of(hostile());
    // Nor does it end the wipe after the reset.
    s.sim.core.step(WIPE + 70_000);
    s.image();
    assert!((0..2000).any(|_| s.read(CONFIG + 4) == 2), "a design is active");
    let timed = |s: &mut System, at: u32, write: Option<u32>| {
        let begin = s.sim.core.cycles();
        let answer = s.sim.core.access(false, at, write, &mut []).expect("an answer");
        (answer, s.sim.core.cycles() - begin)
    };
    // One access waits, up to a bound; afterwards the others, and the mailbox, are free at once.
    let waits_once = |s: &mut System, write: Option<u32>| {
        let (answer, took) = timed(s, 0x10, write);
        assert_eq!(answer, None);
        assert!(took < GATE, "{took} cycles");
        for other in [None, Some(7)] {
            let (answer, took) = timed(s, 0x10, other);
            assert_eq!(answer, None);
            assert!(took < 20, "asked again: {took} cycles");
        }
        let (answer, took) = timed(s, MAILBOX + 0x3f04, None);
        assert_eq!(answer, Some(1));
        assert!(took < 20, "mailbox: {took} cycles");
        assert_eq!(s.read(SYS), u32::from_le_bytes(*b"SHEK"));
        // The same for the kernel.
        assert_eq!(s.read(KRN_STATUS), 0);
        assert!(s.took < GATE, "{} cycles", s.took);
        assert_eq!(s.read(SYS + 8) >> 4 & 1, 1, "NO_SHIELD");
    };
    waits_once(&mut s, None);
    // A clear ends it, though it never reports the end of its wipe.
    s.write(CONFIG, CLEAR);
    let begin = s.sim.core.cycles();
    s.sim.core.step(WIPE - 10_000);
    assert!(!s.sim.held());
    assert_eq!(s.read(CONFIG + 4) & 1, 1, "BUSY");
    s.sim.core.step(WIPE + 100 - (s.sim.core.cycles() - begin));
    assert!(s.sim.held());
    assert_eq!(s.read(CONFIG + 4), 0, "neither busy nor active");
    let sim = s.sim.core.sim();
    for port in [
        "mem0_awvalid",
        "mem0_wvalid",
        "mem0_arvalid",
        "host_awvalid",
        "host_wvalid",
        "host_arvalid",
        "irq_req",
    ] {
        assert_eq!(sim.peek(port), 0, "{port} of a design that is held");
    }
    // Another design is accessed again.
    s.image();
    assert!((0..2000).any(|_| s.read(CONFIG + 4) == 2), "another design is active");
    waits_once(&mut s, Some(7));
    // A wipe by the shell is acknowledged, but not before the design is gone.
    s.sim.core.sim().poke("wipe_req", 1);
    s.sim.core.step(WIPE - 100);
    assert_eq!((s.sim.core.sim().peek("wipe_ack"), s.sim.held()), (0, false));
    s.sim.core.step(200);
    assert_eq!((s.sim.core.sim().peek("wipe_ack"), s.sim.held()), (1, true));
}

#[test]
fn a_fixed_design_is_active_after_its_image() {
    let library = build(&counted(
        DesignSpec::new("shef_cfg_fixed").search("shell-rtl/rtl/system").deny_warnings(),
    ))
    .expect("build");
    let mut sim = Sim::new(&library).expect("instance");
    sim.reset("rst_ni", 2);
    let words = |sim: &mut Sim, words: u32, last: bool| {
        for n in 1..=words {
            for (port, value) in [
                ("cfg_valid_i", 1),
                ("cfg_data_i", n.into()),
                ("cfg_last_i", u64::from(last && n == words)),
            ] {
                sim.poke(port, value);
            }
            sim.eval();
            assert_eq!((sim.peek("cfg_ready_o"), sim.peek("cfg_active_o")), (1, 0));
            sim.run(1);
        }
        sim.poke("cfg_valid_i", 0);
        sim.poke("cfg_last_i", 0);
        sim.eval();
        (sim.peek("cfg_active_o"), sim.peek("cfg_busy_o"), sim.peek("cfg_error_o"))
    };
    let pulse = |sim: &mut Sim, port: &str| {
        sim.poke(port, 1);
        sim.run(1);
        sim.poke(port, 0);
        sim.eval();
    };
    // No image was begun, or it was withdrawn.
    assert_eq!(words(&mut sim, 2, true), (0, 0, 0));
    pulse(&mut sim, "cfg_begin_i");
    assert_eq!(words(&mut sim, 3, false), (0, 1, 0));
    pulse(&mut sim, "cfg_clear_i");
    assert_eq!(words(&mut sim, 1, true), (0, 0, 0));
    for end in ["cfg_begin_i", "cfg_clear_i"] {
        pulse(&mut sim, "cfg_begin_i");
        assert_eq!(words(&mut sim, 5, true), (1, 0, 0));
        sim.run(10);
        assert_eq!(sim.peek("cfg_active_o"), 1);
        pulse(&mut sim, end);
        assert_eq!(
            (sim.peek("cfg_active_o"), sim.peek("cfg_busy_o")),
            (0, u64::from(end == "cfg_begin_i"))
        );
    }
}

mod long {
    use super::*;
    use shef_fixtures::world::*;
    use shef_kernel::{KernelImage, Medium, SIGNATURE_FILE_LEN};
    use shef_proto::evidence::{DebugState, RootOfTrust, ShieldState};
    use shef_proto::image::Description;
    use shef_proto::mailbox::{Answer, Request};
    use shef_rtl::fair_noise;

    const IMAGE: &[u8] = include_bytes!("../../../attestation/firmware/kernel.img");
    const SIGNATURE: &[u8; SIGNATURE_FILE_LEN] =
        include_bytes!("../../../attestation/firmware/kernel.sig");

    impl Answers for System {
        fn answer(&mut self, message: &[u8]) -> Vec<u8> {
            let begin = self.sim.core.cycles();
            assert!(self.sim.send(message).expect("host port"));
            let answer = self.sim.receive(60_000_000).expect("host port");
            let answer = answer.unwrap_or_else(|| panic!("no answer; alert {}", self.sim.alert()));
            println!("request {:02x?}: {} cycles", &message[..2], self.sim.core.cycles() - begin);
            answer
        }
    }

    /// Boot ROM and firmware as committed: both rounds, a session, and its close record.
    #[test]
    #[ignore = "12 million cycles"]
    fn the_committed_firmware_attests_the_design_beside_it() {
        let library = build(&spec(None).fast()).expect("model");
        let straps = KernelStraps {
            uds: UDS,
            root: 1,
            target: KernelStraps::name(TARGET),
            shell: SHELL,
            shell_flags: 0,
            debug: false,
            seeded: false,
            unmeasured: false,
        };
        let mut sim =
            SystemSim::new(&library, &straps, AxiMemoryConfig::default()).expect("instance");
        let kind = RootOfTrust::ShefBoot;
        sim.environment().medium =
            Medium::build(IMAGE, SIGNATURE, &Manufacturer::new(1).certify(kind, false));
        sim.environment().noise = fair_noise(1);
        sim.environment().fabric =
            Box::new(|image: &[u8]| image.starts_with(PLAINTEXT).then_some(DESIGN));
        let begin = std::time::Instant::now();
        println!("boot: {} cycles", sim.boot(60_000_000).expect("boot"));
        assert_eq!((sim.alert(), sim.core.ctl_read(0).unwrap()), (0, None));
        // A boot at one pace continues at another.
        sim.environment().pace = Pace::Second.pace();

        let config = digits();
        let description =
            Description { min_kernel_svn: 1, config: config.clone(), ..description(3) };
        let mut world = World::with(kind, DebugState::DisabledSinceBoot, &description, |_| {});
        let (digest, svn) =
            (KernelImage::digest(IMAGE), KernelImage::parse(IMAGE).expect("an image").svn);
        world.reference.kernels =
            vec![shef_verify::KernelReference { name: "firmware".into(), digest, svn }];
        world.reference.images[0].config_digest = config.digest();
        let mut world = world.on(System { sim, took: 0 });
        let key_box = world.key_box(3);
        let Answer::Loaded { image_digest, config_digest } = world.load(&key_box).unwrap() else {
            panic!()
        };
        assert_eq!((image_digest, config_digest), (world.vendor.image_digest(), config.digest()));
        assert_eq!(world.kernel.sim.environment().image, PLAINTEXT);
        assert_eq!(world.kernel.ctl(0), Some(MAGIC));

        let evidence = world.verified_shield();
        let (message, keys) = evidence
            .seal_load_key(&config, "owner", &first_epochs(&config, 1), &mut entropy(5))
            .unwrap();
        world.kernel.load_key(&message);
        world.policy.states = vec!["keyed".into()];
        assert_eq!(*world.verified_shield().state(), ShieldState::Keyed(keys.transcript().0));
        world.kernel.session(&mut OwnerChannel::new(&keys));
        let Answer::CloseRecord(record) = world.call(&Request::CloseRecord).unwrap() else {
            panic!()
        };
        assert_eq!(evidence.verify_close(&record).unwrap().transcript, keys.transcript().0);
        // A reset of the kernel's image removes the design.
        assert!(matches!(world.call(&Request::Reset), Ok(Answer::Done)));
        assert_eq!((world.kernel.ctl(0), world.kernel.sim.held()), (None, true));
        println!("{} cycles in {:?}", world.kernel.sim.core.cycles(), begin.elapsed());
    }
}
