//! Waves are written on request, of the part that is wanted, and refused with a reason if the build
//! cannot have them.

use shef_project::{Design, repo_root};
use shef_rtl::f2::{F2Config, F2Shell, TestHost, small_cl};
use shef_rtl::{AxiMemoryConfig, CoreSim, DesignSpec, Error, Library, Sim, build};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A build with waves; `None` without the libraries: their reason is then all that there is to test.
fn traced(spec: DesignSpec) -> Option<Library> {
    match build(&spec.trace()) {
        Ok(library) => Some(library),
        Err(e @ Error::TraceLibraries) => {
            assert!(e.to_string().contains("apt-get install liblz4-dev zlib1g-dev"));
            None
        }
        Err(e) => panic!("{e}"),
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("waves-{name}.fst"))
}

/// A big-endian number of eight bytes.
fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Decompresses an LZ4 block: literals, and copies of earlier output.
fn lz4(mut from: &[u8]) -> Vec<u8> {
    let mut to = Vec::new();
    let byte = |from: &mut &[u8]| {
        let (first, rest) = from.split_first().expect("a byte");
        *from = rest;
        usize::from(*first)
    };
    let length = |from: &mut &[u8], first: usize| {
        let (mut length, mut more) = (first, if first == 15 { 255 } else { 0 });
        while more == 255 {
            more = byte(from);
            length += more;
        }
        length
    };
    while !from.is_empty() {
        let token = byte(&mut from);
        let count = length(&mut from, token >> 4);
        let (literals, rest) = from.split_at(count);
        to.extend_from_slice(literals);
        from = rest;
        if from.is_empty() {
            break;
        }
        let back = byte(&mut from) | byte(&mut from) << 8;
        for _ in 0..length(&mut from, token & 15) + 4 {
            to.push(to[to.len() - back]);
        }
    }
    to
}

/// What a file holds.
struct Waves {
    /// Names of all signals, with their instances.
    names: BTreeSet<String>,
    /// Times of the first and the last change.
    times: [u64; 2],
}

/// Reads the header and the hierarchy of an FST file.
fn read(path: &Path) -> Waves {
    let file = fs::read(path).expect("file");
    let (mut at, mut times, mut names) = (0, [u64::MAX; 2], BTreeSet::new());
    while at < file.len() {
        let (kind, end) = (file[at], at + 1 + number(&file, at + 1) as usize);
        let block = &file[at + 9..end];
        match kind {
            0 => times = [number(block, 0), number(block, 8)],
            // Changes: the time of the first.
            1 | 5 | 8 => assert!(number(block, 0) >= times[0]),
            6 => names = hierarchy(&lz4(&block[8..]), number(block, 0)),
            2 | 3 => {}
            other => panic!("{}: a block of kind {other}", path.display()),
        }
        at = end;
    }
    Waves { names, times }
}

fn hierarchy(bytes: &[u8], length: u64) -> BTreeSet<String> {
    assert_eq!(bytes.len() as u64, length);
    let (mut scopes, mut names) = (Vec::new(), BTreeSet::new());
    let mut bytes = bytes.iter().copied();
    let text = |bytes: &mut dyn Iterator<Item = u8>| {
        String::from_utf8(bytes.take_while(|b| *b != 0).collect()).expect("a name")
    };
    let skip_number =
        |bytes: &mut dyn Iterator<Item = u8>| while bytes.next().is_some_and(|b| b >= 128) {};
    while let Some(kind) = bytes.next() {
        match kind {
            // A scope: its kind, name and component.
            254 => {
                bytes.next();
                scopes.push(text(&mut bytes));
                text(&mut bytes);
            }
            255 => drop(scopes.pop()),
            // An attribute: two kinds, a name, a number.
            252 => {
                bytes.nth(1);
                text(&mut bytes);
                skip_number(&mut bytes);
            }
            253 => {}
            // A signal: direction, name, bits, and the signal that it is another name of.
            _ => {
                bytes.next();
                names.insert(format!("{}.{}", scopes.join("."), text(&mut bytes)));
                skip_number(&mut bytes);
                skip_number(&mut bytes);
            }
        }
    }
    names
}

#[test]
fn waves_on_demand() {
    let spec = DesignSpec::new("loop").source("sim/rtl/tests/loop.sv");
    let mut s = Sim::new(&build(&spec).expect("build")).expect("instance");
    let file = file("loop");
    assert!(matches!(s.trace_start(&file), Err(Error::TraceOff(_))));
    let Some(library) = traced(spec) else { return };
    let mut s = Sim::new(&library).expect("instance");
    s.trace_start(&file).expect("start");
    s.reset("rst_n", 2);
    s.run(20);
    s.trace_stop();
    let Waves { names, times } = read(&file);
    assert!(names.iter().any(|name| name.starts_with("top.loop.")), "{names:?}");
    assert_eq!(times, [0, 43], "half cycles");
}

#[test]
fn waves_of_two_clocks() {
    let Some(library) = traced(small_cl()) else { return };
    let ids = [0xf000_1d0f, 0x1d51_fedc];
    let mut shell =
        F2Shell::new(&library, F2Config::default(), ids, TestHost::default()).expect("a slot");
    let file = file("two-clocks");
    let begin = shell.now_ps();
    shell.core().sim().trace_start(&file).expect("start");
    shell.step(100);
    let end = shell.now_ps();
    shell.core().sim().trace_stop();
    let Waves { names, times } = read(&file);
    assert!(names.contains("top.f2_small_cl.core_clk"), "{names:?}");
    assert!(begin < times[0] && times[0] <= begin + 4_000 && times[1] == end, "picoseconds");
    assert!((396_000..404_000).contains(&(times[1] - times[0])), "{times:?}");
}

/// Waves of a shell's accelerator, from cycle 50 on: they have its ports, nothing beside it, and no
/// earlier change. Those of all signals have its surroundings, and begin at the start.
fn accelerator(top: &str, instance: &str) {
    const FROM: u64 = 50;
    let design = Design::project(&repo_root().join("shell-rtl/accel/hotp")).expect("design");
    let sources =
        if top == "shef_bare_top" { design.bare_sources(top) } else { design.sources(top) };
    let Some(library) = traced(DesignSpec::from(sources.expect("sources"))) else { return };
    let waves = |part: bool| {
        let mut core = CoreSim::new(&library, AxiMemoryConfig::default()).expect("instance");
        let file = file(&format!("{top}-{part}"));
        match part {
            true => core.trace_accelerator(&file, FROM).expect("start"),
            false => core.sim().trace_start(&file).expect("start"),
        }
        core.step(100);
        core.sim().trace_stop();
        read(&file)
    };
    let own = format!("top.{top}.{instance}.");
    let Waves { names, times } = waves(true);
    assert!(names.iter().all(|name| name.starts_with(&own)), "{names:?}");
    for port in ["clk_i", "reg_awvalid_i", "reg_rready_i"] {
        assert!(names.contains(&format!("{own}{port}")), "no {port} in {names:?}");
    }
    assert_eq!(times[0], 2 * FROM);
    let all = waves(false);
    assert!(all.names.is_superset(&names) && all.names.len() > names.len());
    assert!(all.times[0] < 2 * FROM && all.times[1] == times[1]);
}

#[test]
fn waves_of_an_accelerator_alone() {
    accelerator("shef_bare_top", "u_accel");
}

/// For `cargo xtask test --full`.
mod long {
    use super::*;

    #[test]
    #[ignore = "long: two Shields are built"]
    fn waves_of_an_accelerator_behind_a_shield() {
        accelerator("shef_sim_top", "u_core.u_accel");
        accelerator("shef_host_top", "u_core.u_core.u_accel");
    }
}
