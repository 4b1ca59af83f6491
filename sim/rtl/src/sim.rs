//! A loaded design and its instances.

use crate::{DesignSpec, Error, Result};
use libloading::os::unix::{Library as Dl, RTLD_LOCAL, RTLD_NOW, Symbol};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

#[repr(C)]
struct RawPort {
    name: *const c_char,
    dir: u32,
    bits: u32,
    at: *mut c_void,
}

type NewFn = unsafe extern "C" fn(u32) -> *mut c_void;
type HandleFn = unsafe extern "C" fn(*mut c_void);
type RunFn = unsafe extern "C" fn(*mut c_void, *mut u8, u64);
type PortFn = unsafe extern "C" fn(*mut c_void, u32) -> RawPort;
type FlagFn = unsafe extern "C" fn(*mut c_void) -> u32;
type CoverageFn = unsafe extern "C" fn(*mut c_void, *const c_char);
type OpenFn = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> i32;
type SaveFn = unsafe extern "C" fn(*mut c_void, *mut u8, u64) -> u64;
type RestoreFn = unsafe extern "C" fn(*mut c_void, *const u8, u64) -> u32;
type DumpFn = unsafe extern "C" fn(*mut c_void, u64);

struct Inner {
    new: Symbol<NewFn>,
    free: Symbol<HandleFn>,
    eval: Symbol<HandleFn>,
    run: Symbol<RunFn>,
    port_at: Symbol<PortFn>,
    finished: Symbol<FlagFn>,
    trace: Option<(Symbol<OpenFn>, Symbol<DumpFn>, Symbol<HandleFn>)>,
    save: Option<(Symbol<SaveFn>, Symbol<RestoreFn>)>,
    coverage: Option<Symbol<CoverageFn>>,
    ports: u32,
    random_contents: bool,
    digest: [u8; 32],
    top: String,
    path: PathBuf,
    // Last: dropped after the symbols.
    _dl: Dl,
}

/// A design, compiled and loaded. Cheap to clone; instances share it.
#[derive(Clone)]
pub struct Library(Arc<Inner>);

impl Library {
    pub(crate) fn load(path: &Path, top: &str) -> Result<Self> {
        let fail = |e: &dyn std::fmt::Display| Error::Load {
            path: path.display().to_string(),
            reason: e.to_string(),
        };
        // SAFETY: the object was linked by this crate from Verilator's output; its initialisers are
        // those of Verilator's runtime, which only set up static data of the runtime.
        let dl = unsafe { Dl::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map_err(|e| fail(&e))?;
        macro_rules! sym {
            ($name:literal, $t:ty) => {
                // SAFETY: the shim this crate generates declares the symbol with exactly this type.
                unsafe { dl.get::<$t>($name) }
            };
        }
        let digest_text = sym!(b"shef_design_digest", *const c_char).map_err(|e| fail(&e))?;
        // SAFETY: the symbol is a 65-byte array that ends with a zero byte and lives as long as
        // `dl`.
        let digest_text = unsafe { CStr::from_ptr(digest_text.into_raw().cast::<c_char>()) };
        let mut digest = [0u8; 32];
        hex::decode_to_slice(digest_text.to_bytes(), &mut digest).map_err(|e| fail(&e))?;
        let count = sym!(b"shef_port_count", *const u32).map_err(|e| fail(&e))?;
        // SAFETY: the symbol is an aligned u32 constant.
        let ports = unsafe { *count.into_raw().cast::<u32>() };
        let random = sym!(b"shef_random_contents", *const u32).map_err(|e| fail(&e))?;
        // SAFETY: the symbol is an aligned u32 constant.
        let random_contents = unsafe { *random.into_raw().cast::<u32>() } != 0;
        let trace = match (
            sym!(b"shef_trace_open", OpenFn),
            sym!(b"shef_trace_dump", DumpFn),
            sym!(b"shef_trace_close", HandleFn),
        ) {
            (Ok(a), Ok(b), Ok(c)) => Some((a, b, c)),
            _ => None,
        };
        let save = match (sym!(b"shef_save", SaveFn), sym!(b"shef_restore", RestoreFn)) {
            (Ok(a), Ok(b)) => Some((a, b)),
            _ => None,
        };
        Ok(Self(Arc::new(Inner {
            new: sym!(b"shef_new", NewFn).map_err(|e| fail(&e))?,
            free: sym!(b"shef_free", HandleFn).map_err(|e| fail(&e))?,
            eval: sym!(b"shef_eval", HandleFn).map_err(|e| fail(&e))?,
            run: sym!(b"shef_run", RunFn).map_err(|e| fail(&e))?,
            port_at: sym!(b"shef_port_at", PortFn).map_err(|e| fail(&e))?,
            finished: sym!(b"shef_finished", FlagFn).map_err(|e| fail(&e))?,
            trace,
            save,
            coverage: sym!(b"shef_coverage", CoverageFn).ok(),
            ports,
            random_contents,
            digest,
            top: top.to_owned(),
            path: path.to_path_buf(),
            _dl: dl,
        })))
    }

    /// SHA-256 over the RTL's relative paths, contents and parameters, as compiled into the loaded
    /// object.
    #[must_use]
    pub fn design_digest(&self) -> [u8; 32] {
        self.0.digest
    }

    /// Name of the top module.
    #[must_use]
    pub fn top(&self) -> &str {
        &self.0.top
    }

    /// Path of the compiled object.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

/// Direction of a port, seen from the design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Driven by the test.
    Input,
    /// Driven by the design.
    Output,
    /// Element of an array: one of the two.
    Element,
}

/// Handle of one port of one [`Sim`]; using it with another instance panics.
#[derive(Debug, Clone, Copy)]
pub struct Port {
    at: *mut u8,
    sim: u32,
    bits: u32,
    dir: Direction,
}

// SAFETY: the pointer is only followed through a `Sim`, which checks that the port belongs to it.
unsafe impl Send for Port {}
// SAFETY: as above; a shared `Port` alone gives no access.
unsafe impl Sync for Port {}

impl Port {
    /// Width in bits.
    #[must_use]
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Direction.
    #[must_use]
    pub fn direction(self) -> Direction {
        self.dir
    }

    fn bytes(self) -> usize {
        match self.bits {
            0..=8 => 1,
            9..=16 => 2,
            17..=32 => 4,
            33..=64 => 8,
            n => n.div_ceil(32) as usize * 4,
        }
    }
}

/// State of an instance, which can be restored into an instance of the same design. It contains any
/// keys in the design.
#[derive(Clone)]
pub struct Snapshot {
    bytes: Vec<u8>,
    digest: [u8; 32],
}

impl Snapshot {
    /// The state itself, in the order of Verilator's serialisation.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Size in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// One instance of a design.
///
/// Time: set inputs, [`Sim::eval`] to see outputs that depend on them, [`Sim::tick`] for a rising
/// clock edge. After `tick` the outputs are those of the new state.
pub struct Sim {
    lib: Library,
    model: *mut c_void,
    id: u32,
    ports: HashMap<String, Port>,
    clk: Option<Port>,
    cycles: u64,
    /// Cycle from which on waves are written, if they are.
    waves: Option<u64>,
    /// Cycle before which they end.
    waves_end: u64,
}

// SAFETY: a model and its context are used by one thread at a time and hold no thread-local state.
unsafe impl Send for Sim {}

/// A folder: designs of [`counted`] count coverage, and each instance writes its record there.
const COVERAGE: &str = "SHEF_COVERAGE";

/// Whether `cargo xtask coverage` runs this program. An instance then accepts only its own
/// snapshots.
#[must_use]
pub fn counts_coverage() -> bool {
    std::env::var_os(COVERAGE).is_some()
}

/// The design as tests build it: it counts coverage if `cargo xtask coverage` runs the tests.
#[must_use]
pub fn counted(spec: DesignSpec) -> DesignSpec {
    if counts_coverage() { spec.coverage() } else { spec }
}

impl Drop for Sim {
    fn drop(&mut self) {
        self.trace_stop();
        // The coverage of a failing test counts as well: snapshots have other bytes then.
        if let (Some(folder), Some(_)) = (std::env::var_os(COVERAGE), &self.lib.0.coverage) {
            let name = format!("{}-{}-{}.dat", self.lib.0.top, std::process::id(), self.id);
            let written = self.write_coverage(&Path::new(&folder).join(name));
            assert!(written.is_ok() || std::thread::panicking(), "{written:?}");
        }
        // SAFETY: `model` came from `shef_new` and is freed once.
        unsafe { (self.lib.0.free)(self.model) }
    }
}

impl Sim {
    /// A new instance: every input 0, not yet reset.
    ///
    /// # Errors
    /// When the object's port table is invalid.
    pub fn new(lib: &Library) -> Result<Self> {
        Self::with_contents(lib, None)
    }

    /// As [`Sim::new`]; registers and memories without an initial value in the RTL begin with random
    /// contents of this seed ([`crate::DesignSpec::random_contents`]), or with zeros.
    ///
    /// # Errors
    /// As [`Sim::new`], and when the design was built without random contents.
    pub fn with_contents(lib: &Library, seed: Option<u64>) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        if seed.is_some() && !lib.0.random_contents {
            return Err(Error::ContentsOff(lib.0.top.clone()));
        }
        // A positive number of C's `int`; 0 stands for zeros.
        let mixed = |seed: u64| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let seed = seed.map_or(0, |seed| (mixed(seed) % 0x7fff_ffff) as u32 + 1);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        // SAFETY: allocates an independent model.
        let model = unsafe { (lib.0.new)(seed) };
        let mut ports = HashMap::new();
        for i in 0..lib.0.ports {
            // SAFETY: `model` is alive and `i` is below the count the object declares.
            let p = unsafe { (lib.0.port_at)(model, i) };
            if p.name.is_null() || p.at.is_null() {
                return Err(Error::Load {
                    path: lib.0.path.display().to_string(),
                    reason: format!("port {i} is missing"),
                });
            }
            // SAFETY: a string literal of the shim.
            let name = unsafe { CStr::from_ptr(p.name) }.to_string_lossy().into_owned();
            let dir = match p.dir {
                0 => Direction::Input,
                1 => Direction::Output,
                _ => Direction::Element,
            };
            ports.insert(name, Port { at: p.at.cast(), sim: id, bits: p.bits, dir });
        }
        let clk = ["clk_i", "clk"].iter().find_map(|n| ports.get(*n).copied());
        let (lib, waves_end) = (lib.clone(), u64::MAX);
        let mut sim = Self { lib, model, id, ports, clk, cycles: 0, waves: None, waves_end };
        let inputs: Vec<Port> =
            sim.ports.values().copied().filter(|p| p.dir != Direction::Output).collect();
        for p in inputs {
            sim.fill(p, 0);
        }
        sim.eval();
        Ok(sim)
    }

    /// The library of this instance.
    #[must_use]
    pub fn library(&self) -> &Library {
        &self.lib
    }

    /// Handle of a port.
    ///
    /// # Errors
    /// When no port has that name.
    pub fn port(&self, name: &str) -> Result<Port> {
        self.find(name)
            .ok_or_else(|| Error::NoPort { top: self.lib.0.top.clone(), port: name.to_owned() })
    }

    /// Handle of a port of exactly `bits` bits.
    ///
    /// # Errors
    /// When no port has that name and width.
    pub fn port_of(&self, name: &str, bits: u32) -> Result<Port> {
        let p = self.port(name)?;
        if p.bits == bits {
            Ok(p)
        } else {
            Err(Error::PortWidth {
                top: self.lib.0.top.clone(),
                port: name.to_owned(),
                actual: p.bits,
                expected: bits,
            })
        }
    }

    /// Handle of a port, if there is one.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Port> {
        self.ports.get(name).copied()
    }

    /// Names of all ports, sorted.
    #[must_use]
    pub fn port_names(&self) -> Vec<String> {
        let mut v: Vec<String> = self.ports.keys().cloned().collect();
        v.sort();
        v
    }

    #[inline]
    fn own(&self, p: Port) {
        assert!(p.sim == self.id, "port of another instance");
    }

    /// Value of a port of up to 64 bits.
    ///
    /// # Panics
    /// When the port is wider or belongs to another instance.
    #[inline]
    #[must_use]
    pub fn get(&self, p: Port) -> u64 {
        self.own(p);
        match p.bits {
            // SAFETY: the port is of this living model; Verilator stores up to 8 bits in a `u8`.
            0..=8 => u64::from(unsafe { *p.at }),
            // SAFETY: as above, with up to 16 bits in a `u16`.
            9..=16 => u64::from(unsafe { *p.at.cast::<u16>() }),
            // SAFETY: as above, with up to 32 bits in a `u32`.
            17..=32 => u64::from(unsafe { *p.at.cast::<u32>() }),
            // SAFETY: as above, with up to 64 bits in a `u64`.
            33..=64 => unsafe { *p.at.cast::<u64>() },
            n => panic!("port of {n} bits read as a number"),
        }
    }

    /// Sets a port of up to 64 bits; bits above its width are dropped.
    ///
    /// # Panics
    /// When the port is wider or belongs to another instance.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "masked to the width")]
    pub fn set(&mut self, p: Port, v: u64) {
        self.own(p);
        let v = if p.bits >= 64 { v } else { v & ((1u64 << p.bits) - 1) };
        match p.bits {
            // SAFETY: as in `get`.
            0..=8 => unsafe { *p.at = v as u8 },
            // SAFETY: as in `get`.
            9..=16 => unsafe { *p.at.cast::<u16>() = v as u16 },
            // SAFETY: as in `get`.
            17..=32 => unsafe { *p.at.cast::<u32>() = v as u32 },
            // SAFETY: as in `get`.
            33..=64 => unsafe { *p.at.cast::<u64>() = v },
            n => panic!("port of {n} bits written as a number"),
        }
    }

    /// The bytes of a port as the host stores them: least significant first.
    #[inline]
    #[must_use]
    pub fn raw(&self, p: Port) -> &[u8] {
        self.own(p);
        // SAFETY: the port's storage has `bytes()` bytes and lives as long as the model.
        unsafe { std::slice::from_raw_parts(p.at, p.bytes()) }
    }

    /// Mutable version of [`Sim::raw`]. Bits above the port's width must stay 0.
    #[inline]
    pub fn raw_mut(&mut self, p: Port) -> &mut [u8] {
        self.own(p);
        // SAFETY: as in `raw`; the borrow of `self` makes it the only one.
        unsafe { std::slice::from_raw_parts_mut(p.at, p.bytes()) }
    }

    /// Fills every byte of a port (use 0, or 0xff on ports of full bytes).
    pub fn fill(&mut self, p: Port, b: u8) {
        self.raw_mut(p).fill(b);
    }

    fn named(&self, name: &str) -> Port {
        match self.find(name) {
            Some(p) => p,
            None => panic!(
                "{} has no port {name}; it has {}",
                self.lib.0.top,
                self.port_names().join(" ")
            ),
        }
    }

    /// Value of a port by name.
    ///
    /// # Panics
    /// When there is no such port or it is wider than 64 bits.
    #[must_use]
    pub fn peek(&self, name: &str) -> u64 {
        self.get(self.named(name))
    }

    /// Sets a port by name.
    ///
    /// # Panics
    /// As [`Sim::peek`].
    pub fn poke(&mut self, name: &str, v: u64) {
        self.set(self.named(name), v);
    }

    /// Bytes of a port, most significant first (as the standards print blocks, digests and keys).
    ///
    /// # Panics
    /// When there is no such port.
    #[must_use]
    pub fn peek_be(&self, name: &str) -> Vec<u8> {
        let mut v = self.peek_le(name);
        v.reverse();
        v
    }

    /// Sets a port from bytes, most significant first.
    ///
    /// # Panics
    /// When there is no such port or the length is not its width in bytes.
    pub fn poke_be(&mut self, name: &str, bytes: &[u8]) {
        let mut v = bytes.to_vec();
        v.reverse();
        self.poke_le(name, &v);
    }

    /// Bytes of a port, least significant first (as AXI carries data).
    ///
    /// # Panics
    /// When there is no such port.
    #[must_use]
    pub fn peek_le(&self, name: &str) -> Vec<u8> {
        let p = self.named(name);
        self.raw(p)[..p.bits.div_ceil(8) as usize].to_vec()
    }

    /// Sets a port from bytes, least significant first.
    ///
    /// # Panics
    /// When there is no such port or the length is not its width in bytes.
    pub fn poke_le(&mut self, name: &str, bytes: &[u8]) {
        let p = self.named(name);
        assert_eq!(
            bytes.len(),
            p.bits.div_ceil(8) as usize,
            "bytes for port {name} of {} bits",
            p.bits
        );
        let raw = self.raw_mut(p);
        raw[..bytes.len()].copy_from_slice(bytes);
        raw[bytes.len()..].fill(0);
    }

    /// Settles the design for the current inputs without a clock edge.
    #[inline]
    pub fn eval(&mut self) {
        // SAFETY: the model is alive and not in use elsewhere (`&mut self`).
        unsafe { (self.lib.0.eval)(self.model) }
    }

    /// Evaluates a design with several clocks at `time`, in picoseconds, after the caller set clocks
    /// and inputs; `cycle`: one of the cycles that [`Sim::cycles`] counts ends. Waves need a later
    /// time in each call.
    #[inline]
    pub fn eval_at(&mut self, time: u64, cycle: bool) {
        self.eval();
        self.dump(time);
        self.cycles += u64::from(cycle);
    }

    #[inline]
    fn clk(&self) -> Port {
        self.clk.expect("the design has no clk_i or clk port")
    }

    /// First half of a cycle: clock low, outputs settled for the current inputs. Sample handshakes
    /// here.
    #[inline]
    pub fn settle(&mut self) {
        let c = self.clk();
        self.set(c, 0);
        self.eval();
        self.dump(self.cycles * 2);
    }

    /// Second half of a cycle: the rising edge. Set new inputs after it.
    #[inline]
    pub fn edge(&mut self) {
        let c = self.clk();
        self.set(c, 1);
        self.eval();
        self.dump(self.cycles * 2 + 1);
        self.cycles += 1;
    }

    /// One clock cycle.
    ///
    /// # Panics
    /// When the design has no clock port.
    #[inline]
    pub fn tick(&mut self) {
        self.settle();
        self.edge();
    }

    /// `n` clock cycles with unchanged inputs.
    ///
    /// # Panics
    /// As [`Sim::tick`].
    pub fn run(&mut self, n: u64) {
        if self.waves.is_some() {
            for _ in 0..n {
                self.tick();
            }
        } else {
            let c = self.clk();
            // SAFETY: the model is alive; `c` points at its one-byte clock input.
            unsafe { (self.lib.0.run)(self.model, c.at, n) };
            self.cycles += n;
        }
    }

    /// Ticks until `done` holds (checked after each tick); returns the number of cycles, or `None`
    /// after `limit`.
    pub fn run_until(
        &mut self,
        limit: u64,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> Option<u64> {
        for n in 1..=limit {
            self.tick();
            if done(self) {
                return Some(n);
            }
        }
        None
    }

    /// Holds an active-low reset for `cycles` cycles, then releases it.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn reset(&mut self, name: &str, cycles: u64) {
        self.poke(name, 0);
        self.run(cycles);
        self.poke(name, 1);
        self.eval();
    }

    /// Clock cycles so far.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Whether the design called `$finish` (as a failed assertion does).
    #[must_use]
    pub fn finished(&self) -> bool {
        // SAFETY: reads a flag of the living model.
        unsafe { (self.lib.0.finished)(self.model) != 0 }
    }

    /// The state of every register, memory and port; needs [`crate::DesignSpec::savable`].
    ///
    /// # Errors
    /// When the design was built without it.
    pub fn save(&self) -> Result<Snapshot> {
        let Some((save, _)) = &self.lib.0.save else {
            return Err(Error::SnapshotOff(self.lib.0.top.clone()));
        };
        // SAFETY: the model is alive; with no room it writes nothing and returns only the size.
        let size = unsafe { save(self.model, std::ptr::null_mut(), 0) };
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(0)];
        // SAFETY: as above; at most `bytes.len()` bytes are written.
        let same = unsafe { save(self.model, bytes.as_mut_ptr(), bytes.len() as u64) }
            == bytes.len() as u64;
        if same {
            Ok(Snapshot { bytes, digest: self.lib.0.digest })
        } else {
            Err(Error::SnapshotOff(self.lib.0.top.clone()))
        }
    }

    /// Restores a state that [`Sim::save`] returned for this design; the cycle count continues.
    ///
    /// # Errors
    /// When it belongs to another design.
    pub fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        let fits = self.lib.0.save.as_ref().filter(|_| snapshot.digest == self.lib.0.digest);
        let Some((_, restore)) = fits else {
            return Err(Error::SnapshotOff(self.lib.0.top.clone()));
        };
        // SAFETY: the model is alive, and `shef_save` of this design wrote the bytes (equal
        // digest).
        let whole =
            unsafe { restore(self.model, snapshot.bytes.as_ptr(), snapshot.bytes.len() as u64) };
        if whole == 1 { Ok(()) } else { Err(Error::SnapshotOff(self.lib.0.top.clone())) }
    }

    /// Writes the coverage since the instance was created, in Verilator's format; needs
    /// [`crate::DesignSpec::coverage`].
    ///
    /// # Errors
    /// When the design was built without it or the file cannot be written.
    pub fn write_coverage(&self, path: &Path) -> Result<()> {
        let Some(write) = &self.lib.0.coverage else {
            return Err(Error::CoverageOff(self.lib.0.top.clone()));
        };
        // Verilator ends the process if it cannot open the file.
        std::fs::File::create(path).map_err(|e| Error::io("cannot write coverage to", path, &e))?;
        let bad = |reason: &str| Error::Io {
            what: "cannot write coverage to",
            path: path.display().to_string(),
            reason: reason.to_owned(),
        };
        let c = CString::new(path.display().to_string()).map_err(|_| bad("zero byte in path"))?;
        // SAFETY: the model is alive and the path is a terminated string.
        unsafe { write(self.model, c.as_ptr()) };
        Ok(())
    }

    /// Starts writing waves; needs [`crate::DesignSpec::trace`]. Times are half cycles, or those of
    /// [`Sim::eval_at`].
    ///
    /// # Errors
    /// When the design was built without waves or the file cannot be created.
    pub fn trace_start(&mut self, path: &Path) -> Result<()> {
        self.trace_part(path, "", 0)
    }

    /// Starts writing waves of the instance `scope` (`top.shef_bare_top.u_accel`) and what is below it,
    /// or of all if it is empty, from this cycle on.
    ///
    /// # Errors
    /// As [`Sim::trace_start`].
    pub fn trace_part(&mut self, path: &Path, scope: &str, from: u64) -> Result<()> {
        let Some((open, _, _)) = &self.lib.0.trace else {
            return Err(Error::TraceOff(self.lib.0.top.clone()));
        };
        let bad = |reason: &str| Error::Io {
            what: "cannot write waves to",
            path: path.display().to_string(),
            reason: reason.to_owned(),
        };
        let c = CString::new(path.display().to_string()).map_err(|_| bad("zero byte in path"))?;
        let scope = CString::new(scope).map_err(|_| bad("zero byte in scope"))?;
        // SAFETY: the model is alive, and path and scope are terminated strings.
        if unsafe { open(self.model, c.as_ptr(), scope.as_ptr()) } == 0 {
            return Err(bad("refused"));
        }
        self.waves = Some(from);
        Ok(())
    }

    /// Makes the waves end before this cycle. The file is complete after [`Sim::trace_stop`].
    pub fn trace_until(&mut self, cycle: u64) {
        self.waves_end = cycle;
    }

    /// Stops writing waves.
    pub fn trace_stop(&mut self) {
        if let (Some(_), Some((_, _, close))) = (self.waves, &self.lib.0.trace) {
            // SAFETY: the model is alive and its wave file open.
            unsafe { close(self.model) };
        }
        self.waves = None;
    }

    #[inline]
    fn dump(&mut self, t: u64) {
        if self.waves.is_some_and(|from| (from..self.waves_end).contains(&self.cycles))
            && let Some((_, dump, _)) = &self.lib.0.trace
        {
            // SAFETY: `waves` is only set after the file was opened.
            unsafe { dump(self.model, t) };
        }
    }
}
