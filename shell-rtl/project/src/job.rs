//! Jobs: input data, register writes, start and end of an accelerator, and its results.
//!
//! The keys of `[jobs.NAME]` in `shef.toml` and the flags of `shef run` take the same texts:
//! `in = ["a=a.bin"]` is `--in a=a.bin`. `docs/reference/project.md` lists them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use shef_proto::config::{Config, Mode, Region};

use crate::list::{inside, is_identifier, resolved};

/// Bytes of the register space.
const SPACE: u32 = 1 << 16;
/// Seconds after which a job ends unless it says otherwise.
const SECONDS: u64 = 3600;
/// Cycles without progress after which a job of a simulated card ends unless it says otherwise.
const STALL_CYCLES: u64 = 1_000_000;

/// Why a text is refused.
pub type Refused = String;

/// The names of an accelerator's registers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registers(BTreeMap<String, u32>);

impl Registers {
    /// Adds a register, and returns its offset.
    ///
    /// # Errors
    /// If it cannot have this name or offset.
    pub(crate) fn add(&mut self, name: &str, offset: i64) -> Result<u32, Refused> {
        let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b));
        if !is_name {
            return Err(format!(
                "expected the name of a register (a letter, then letters, digits, '_', '-', '.'), found {name:?}"
            ));
        }
        let offset = aligned(offset)?;
        self.0.insert(name.to_owned(), offset);
        Ok(offset)
    }

    /// Offset of a register by its name, or by the offset itself (`0x10`).
    ///
    /// # Errors
    /// There is no such register.
    pub fn offset(&self, text: &str) -> Result<u32, Refused> {
        if let Some(offset) = self.0.get(text) {
            return Ok(*offset);
        }
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            return aligned(number(text)?);
        }
        let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
        Err(match known.as_slice() {
            [] => format!(
                "no register is named {text:?}: [registers] in shef.toml names none; give an offset such as 0x10"
            ),
            known => format!("no register is named {text:?}; there are {}", known.join(", ")),
        })
    }

    /// The name of the register at an offset, or the offset.
    pub fn name(&self, offset: u32) -> String {
        let named = self.0.iter().find(|(_, at)| **at == offset);
        named.map_or_else(|| format!("{offset:#x}"), |(name, _)| name.clone())
    }

    /// All registers, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u32)> {
        self.0.iter().map(|(name, offset)| (name.as_str(), *offset))
    }
}

fn aligned(offset: impl TryInto<u32> + ToString + Copy) -> Result<u32, Refused> {
    let text = offset.to_string();
    let offset = offset.try_into().ok().filter(|at: &u32| at.is_multiple_of(4) && *at < SPACE);
    offset.ok_or_else(|| {
        format!("expected the offset of a register, a multiple of 4 below {SPACE:#x}, found {text}")
    })
}

/// A number: decimal or `0x`, with `_` between digits.
fn unsigned(text: &str) -> Option<u64> {
    let plain = text.replace('_', "");
    let (digits, radix) = plain.strip_prefix("0x").map_or((&*plain, 10), |hex| (hex, 16));
    let all = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    u64::from_str_radix(digits, radix).ok().filter(|_| all)
}

/// A number of 32 bits.
fn number(text: &str) -> Result<u32, Refused> {
    unsigned(text)
        .and_then(|number| number.try_into().ok())
        .ok_or_else(|| format!("expected a number of 32 bits such as 32 or 0x20, found {text:?}"))
}

/// What the texts of a job refer to.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The registers.
    pub registers: &'a Registers,
    /// The regions.
    pub config: &'a Config,
    /// The project's folder, which contains every file. Without it, as on a command line, files are
    /// relative to the current folder and may be anywhere.
    pub project: Option<&'a Path>,
}

impl Names<'_> {
    /// The path of a file, which may be missing.
    fn file(&self, text: &str) -> Result<PathBuf, Refused> {
        let Some(folder) = self.project else { return Ok(text.into()) };
        let path = folder.join(text);
        let found = folder.canonicalize().and_then(|root| Ok((resolved(&path)?, root)));
        let (found, root) = found.map_err(|e| format!("cannot find {}: {e}", path.display()))?;
        inside(&found, &root)?;
        Ok(path)
    }

    /// The region of this name, which must have this mode.
    fn region(&self, name: &str, mode: Option<Mode>) -> Result<&Region, Refused> {
        let fits = |region: &&Region| mode.is_none_or(|mode| region.mode == mode);
        let known = || {
            let all = self.config.regions().iter().filter(fits);
            let all: Vec<&str> = all.map(|region| region.name.as_str()).collect();
            let mode = mode.map_or(String::new(), |mode| format!(" of mode {}", mode.name()));
            if all.is_empty() {
                format!("there is no region{mode}")
            } else {
                format!("the regions{mode} are {}", all.join(", "))
            }
        };
        let found = self.config.region_by_name(name);
        match found.filter(fits) {
            Some(region) => Ok(region),
            None if found.is_some() => {
                let is = found.map_or("", |region| region.mode.name());
                Err(format!("the region {name} is of mode {is}; {}", known()))
            }
            None => Err(format!("no region is named {name:?}; {}", known())),
        }
    }
}

/// The data of an input region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// The contents of a file.
    File(PathBuf),
    /// So many bytes that a seed decides.
    Random(u64),
}

/// An input region and its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Name of the region.
    pub region: String,
    /// Its data.
    pub data: Data,
}

/// The value of a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Number(u32),
    /// The low 32 bits of the address of a byte of the named region, `@REGION` or `@REGION+BYTES`.
    Low(String, u64),
    /// The high 32 bits, `@REGION:high`.
    High(String, u64),
}

impl Value {
    /// The number.
    ///
    /// # Errors
    /// The configuration has no such region, so it is not the one of the job's [`Names`].
    pub fn number(&self, config: &Config) -> Result<u32, Refused> {
        let base = |name: &String| {
            let region = config.region_by_name(name);
            region.map(|region| region.base).ok_or_else(|| format!("no region is named {name:?}"))
        };
        Ok(match self {
            Self::Number(number) => *number,
            Self::Low(name, byte) => base(name)?.wrapping_add(*byte) as u32,
            Self::High(name, byte) => (base(name)?.wrapping_add(*byte) >> 32) as u32,
        })
    }
}

/// A write of a register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Offset of the register.
    pub offset: u32,
    /// Its value.
    pub value: Value,
}

/// The state of a register in which a job is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Offset of the register.
    pub offset: u32,
    /// The bits that count.
    pub mask: u32,
    /// Their value.
    pub value: u32,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputFile {
    /// Name of the region.
    pub region: String,
    /// File for it.
    pub file: PathBuf,
    /// Bytes from the start of the region.
    pub bytes: u64,
}

/// A job of an accelerator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Data for input regions, each at most once.
    pub inputs: Vec<Input>,
    /// Registers to write before the start, in this order, each at most once.
    pub registers: Vec<Write>,
    /// The write that starts the accelerator.
    pub start: Option<Write>,
    /// When it is done.
    pub done: Option<Done>,
    /// Results, each region at most once.
    pub outputs: Vec<OutputFile>,
    /// Offsets of the registers to read at the end.
    pub reads: Vec<u32>,
    /// Maximum duration in seconds.
    pub seconds: u64,
    /// Maximum number of cycles without any progress at the accelerator's ports, on a simulated card.
    pub stall_cycles: u64,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            inputs: Vec::new(),
            registers: Vec::new(),
            start: None,
            done: None,
            outputs: Vec::new(),
            reads: Vec::new(),
            seconds: SECONDS,
            stall_cycles: STALL_CYCLES,
        }
    }
}

/// Adds an element, in place of one with the same key.
fn put<T, K: PartialEq>(all: &mut Vec<T>, new: T, key: impl Fn(&T) -> K) {
    match all.iter_mut().find(|old| key(old) == key(&new)) {
        Some(old) => *old = new,
        None => all.push(new),
    }
}

/// The two sides of the first `=`.
fn pair<'t>(text: &'t str, form: &str) -> Result<(&'t str, &'t str), Refused> {
    text.split_once('=')
        .filter(|(name, value)| !name.is_empty() && !value.is_empty())
        .ok_or_else(|| format!("expected {form}, found {text:?}"))
}

impl Job {
    /// `REGION=FILE`, or `REGION=random:BYTES`.
    ///
    /// # Errors
    /// The reason.
    pub fn input(&mut self, names: Names, text: &str) -> Result<(), Refused> {
        let (name, data) = pair(text, "REGION=FILE or REGION=random:BYTES")?;
        let region = names.region(name, Some(Mode::Input))?;
        let data = match data.strip_prefix("random:") {
            Some(bytes) => Data::Random(bytes_of(bytes, region)?),
            None => Data::File(names.file(data)?),
        };
        put(&mut self.inputs, Input { region: name.to_owned(), data }, |input| {
            input.region.clone()
        });
        Ok(())
    }

    /// `REGISTER=VALUE`, with a number, `@REGION`, `@REGION+BYTES` or the same with `:high` as value.
    ///
    /// # Errors
    /// The reason.
    pub fn register(&mut self, names: Names, text: &str) -> Result<(), Refused> {
        let write = write(names, text)?;
        put(&mut self.registers, write, |write| write.offset);
        Ok(())
    }

    /// `REGISTER=VALUE`: the write that starts the accelerator.
    ///
    /// # Errors
    /// The reason.
    pub fn start(&mut self, names: Names, text: &str) -> Result<(), Refused> {
        self.start = Some(write(names, text)?);
        Ok(())
    }

    /// `REGISTER:BIT=0` or `=1`, or `REGISTER=VALUE`: when the accelerator is done.
    ///
    /// # Errors
    /// The reason.
    pub fn done(&mut self, names: Names, text: &str) -> Result<(), Refused> {
        let form = "REGISTER:BIT=1 or REGISTER=VALUE";
        let (register, value) = pair(text, form)?;
        let value = number(value)?;
        self.done = Some(match register.split_once(':') {
            None => Done { offset: names.registers.offset(register)?, mask: u32::MAX, value },
            Some((register, bit)) => {
                let bit = number(bit).ok().filter(|bit| *bit < 32);
                let bit = bit.ok_or_else(|| format!("expected a bit from 0 to 31 in {text:?}"))?;
                if value > 1 {
                    return Err(format!("a bit is 0 or 1: expected {form}, found {text:?}"));
                }
                let offset = names.registers.offset(register)?;
                Done { offset, mask: 1 << bit, value: value << bit }
            }
        });
        Ok(())
    }

    /// `REGION=FILE:BYTES`.
    ///
    /// # Errors
    /// The reason.
    pub fn output(&mut self, names: Names, text: &str) -> Result<(), Refused> {
        let form = "REGION=FILE:BYTES";
        let (name, rest) = pair(text, form)?;
        let region = names.region(name, Some(Mode::Output))?;
        let (file, bytes) = rest
            .rsplit_once(':')
            .filter(|(file, _)| !file.is_empty())
            .ok_or_else(|| format!("expected {form}, found {text:?}"))?;
        let bytes = bytes_of(bytes, region)?;
        let new = OutputFile { region: name.to_owned(), file: names.file(file)?, bytes };
        put(&mut self.outputs, new, |output| output.region.clone());
        Ok(())
    }

    /// A register to read at the end.
    ///
    /// # Errors
    /// The reason.
    pub fn read(&mut self, names: Names, text: &str) -> Result<(), Refused> {
        put(&mut self.reads, names.registers.offset(text)?, |offset| *offset);
        Ok(())
    }

    /// The start and the end of a job that has both.
    ///
    /// # Errors
    /// The one that is missing.
    pub fn ends(&self) -> Result<(&Write, Done), Refused> {
        let start = self.start.as_ref().ok_or("expected `start`, such as ctrl=1")?;
        Ok((start, self.done.ok_or("expected `done`, such as status:1=1")?))
    }
}

fn write(names: Names, text: &str) -> Result<Write, Refused> {
    let (register, value) = pair(text, "REGISTER=VALUE")?;
    let offset = names.registers.offset(register)?;
    let value = match value.strip_prefix('@') {
        None => Value::Number(number(value)?),
        Some(region) => {
            let (name, high) =
                region.strip_suffix(":high").map_or((region, false), |name| (name, true));
            let (name, byte) = name.split_once('+').map_or((name, "0"), |pair| pair);
            let region = names.region(name, None)?;
            let (name, size) = (region.name.clone(), region.size);
            let byte = unsigned(byte).filter(|byte| *byte < size).ok_or_else(|| {
                format!("expected a byte of region {name}, 0 to {}, found {byte:?}", size - 1)
            })?;
            if high { Value::High(name, byte) } else { Value::Low(name, byte) }
        }
    };
    Ok(Write { offset, value })
}

/// A number of bytes that fits into a region.
fn bytes_of(text: &str, region: &Region) -> Result<u64, Refused> {
    let bytes = unsigned(text).ok_or_else(|| {
        format!("expected a number of bytes such as 4096 or 0x1000, found {text:?}")
    })?;
    if bytes == 0 || bytes > region.size {
        let Region { name, size, .. } = region;
        return Err(format!(
            "the region {name} has {size} bytes: expected 1 to {size}, found {bytes}"
        ));
    }
    Ok(bytes)
}

/// A result that a test expects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// The bytes of an output region are those of a file.
    Region {
        /// Name of the region, an output of the job.
        region: String,
        /// The file.
        file: PathBuf,
    },
    /// A register that the job reads has this value.
    Register {
        /// Its offset.
        offset: u32,
        /// Its value.
        value: u32,
    },
}

/// A Python function that computes the results of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The file.
    pub file: PathBuf,
    /// Name of the function.
    pub function: String,
}

/// A test: a job, and its results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Name of the job.
    pub job: String,
    /// Expected results.
    pub expect: Vec<Expect>,
    /// The model that computes them.
    pub model: Option<Model>,
    /// Number of seeds for the timing of the bare accelerator, and for random inputs.
    pub seeds: u32,
}

/// Seeds of a test, unless it says otherwise.
pub(crate) const SEEDS: u32 = 8;
/// The most of them.
const MAX_SEEDS: u32 = 100_000;

impl Test {
    /// A test of a job without expectations, which is not complete yet.
    pub(crate) fn new(job: &str, seeds: Option<i64>) -> Result<Self, Refused> {
        let seeds = match seeds {
            None => SEEDS,
            Some(seeds) => u32::try_from(seeds)
                .ok()
                .filter(|seeds| (1..=MAX_SEEDS).contains(seeds))
                .ok_or_else(|| format!("expected 1 to {MAX_SEEDS} seeds, found {seeds}"))?,
        };
        Ok(Self { job: job.to_owned(), expect: Vec::new(), model: None, seeds })
    }

    /// `REGION=FILE` or `REGISTER=VALUE`.
    pub(crate) fn expect(&mut self, names: Names, job: &Job, text: &str) -> Result<(), Refused> {
        let (name, value) = pair(text, "REGION=FILE or REGISTER=VALUE")?;
        let new = if job.outputs.iter().any(|output| output.region == name) {
            Expect::Region { region: name.to_owned(), file: names.file(value)? }
        } else {
            let offset = names.registers.offset(name).ok();
            let offset = offset.filter(|offset| job.reads.contains(offset)).ok_or_else(|| {
                format!("expected a region of the job's `out` or a register of its `read`, found {name:?}")
            })?;
            Expect::Register { offset, value: number(value)? }
        };
        self.expect.push(new);
        Ok(())
    }

    /// `FILE:FUNCTION`.
    pub(crate) fn model(&mut self, names: Names, text: &str) -> Result<(), Refused> {
        let found = text.rsplit_once(':').filter(|(file, function)| {
            !file.is_empty() && is_identifier(function) && !function.contains('$')
        });
        let (file, function) = found.ok_or_else(|| {
            format!("expected FILE:FUNCTION, such as model.py:sum, found {text:?}")
        })?;
        self.model = Some(Model { file: names.file(file)?, function: function.to_owned() });
        Ok(())
    }
}

/// Registers, jobs and tests of a project.
#[derive(Debug, Clone, Default)]
pub struct Jobs {
    /// The named registers.
    pub registers: Registers,
    /// Jobs by name.
    pub jobs: BTreeMap<String, Job>,
    /// Tests by name.
    pub tests: BTreeMap<String, Test>,
}

impl Jobs {
    /// The files that jobs and tests read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let inputs = self.jobs.values().flat_map(|job| &job.inputs);
        let inputs = inputs.filter_map(|input| match &input.data {
            Data::File(file) => Some(file),
            Data::Random(_) => None,
        });
        let expected = self.tests.values().flat_map(|test| &test.expect);
        let expected = expected.filter_map(|expect| match expect {
            Expect::Region { file, .. } => Some(file),
            Expect::Register { .. } => None,
        });
        let models = self.tests.values().filter_map(|test| test.model.as_ref());
        inputs.chain(expected).chain(models.map(|model| &model.file)).map(PathBuf::as_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        let text = "
            [[region]]\nname = \"x\"\nmode = \"input\"\nbase = 0x1_0000_0000\nsize = \"4 KiB\"\nchunk = 512
            [[region]]\nname = \"y\"\nmode = \"output\"\nbase = 0x2000\nsize = \"4 KiB\"\nchunk = 512";
        shef_gen::shield::parse(text).unwrap().config
    }

    #[test]
    fn texts_of_a_job_mean_the_same_in_a_file_and_on_a_command_line() {
        let dir = tempfile::tempdir().unwrap();
        let mut registers = Registers::default();
        registers.add("ctrl", 0).unwrap();
        registers.add("status", 4).unwrap();
        let config = config();
        let names = Names { registers: &registers, config: &config, project: Some(dir.path()) };
        let mut job = Job::default();
        assert_eq!(job.ends().unwrap_err(), "expected `start`, such as ctrl=1");
        job.input(names, "x=in=1.bin").unwrap();
        assert_eq!(job.inputs[0].data, Data::File(dir.path().join("in=1.bin")));
        job.input(names, "x=random:4096").unwrap();
        assert_eq!(job.inputs, [Input { region: "x".to_owned(), data: Data::Random(4096) }]);
        job.register(names, "0x10=1_000").unwrap();
        job.register(names, "16=@x").unwrap();
        job.register(names, "0x14=@x:high").unwrap();
        let values = job.registers.iter().map(|w| (w.offset, w.value.number(&config).unwrap()));
        assert_eq!(values.collect::<Vec<_>>(), [(0x10, 0), (0x14, 1)], "a later one replaces it");
        job.register(names, "0x14=@x+0x40").unwrap();
        job.register(names, "0x18=@x+64:high").unwrap();
        let values = job.registers[1..].iter().map(|w| w.value.number(&config).unwrap());
        assert_eq!(values.collect::<Vec<_>>(), [64, 1]);
        job.start(names, "ctrl=1").unwrap();
        assert_eq!(job.ends().unwrap_err(), "expected `done`, such as status:1=1");
        job.done(names, "status:1=1").unwrap();
        assert_eq!(job.done, Some(Done { offset: 4, mask: 2, value: 2 }));
        job.done(names, "status:0=0").unwrap();
        assert_eq!(job.done, Some(Done { offset: 4, mask: 1, value: 0 }));
        job.output(names, "y=c:y.bin:32").unwrap();
        assert_eq!(
            job.outputs,
            [OutputFile { region: "y".to_owned(), file: dir.path().join("c:y.bin"), bytes: 32 }]
        );
        job.read(names, "status").unwrap();
        assert_eq!((job.reads.as_slice(), &*registers.name(4)), ([4].as_slice(), "status"));
        assert!(job.ends().is_ok());
    }

    #[test]
    fn a_text_that_is_refused_says_what_is_expected() {
        let mut registers = Registers::default();
        registers.add("ctrl", 0).unwrap();
        let config = config();
        let names = Names { registers: &registers, config: &config, project: None };
        let mut job = Job::default();
        let mut refused = |what: &str, text: &str| -> String {
            match what {
                "in" => job.input(names, text),
                "reg" => job.register(names, text),
                "done" => job.done(names, text),
                _ => job.output(names, text),
            }
            .unwrap_err()
        };
        for (what, text, part) in [
            ("in", "x", "expected REGION=FILE"),
            ("in", "=f", "expected REGION=FILE"),
            ("in", "y=f", "the region y is of mode output; the regions of mode input are x"),
            ("in", "z=f", "no region is named \"z\""),
            ("in", "x=random:4097", "expected 1 to 4096, found 4097"),
            ("in", "x=random:0", "expected 1 to 4096"),
            ("reg", "ctlr=1", "no register is named \"ctlr\"; there are ctrl"),
            ("reg", "3=1", "a multiple of 4"),
            ("reg", "0x10000=1", "below 0x10000"),
            ("reg", "ctrl=0x1_0000_0000", "a number of 32 bits"),
            ("reg", "ctrl=-1", "a number of 32 bits"),
            ("reg", "ctrl=+1", "a number of 32 bits"),
            ("reg", "ctrl=@z", "no region is named \"z\""),
            ("reg", "ctrl=@x+4096", "a byte of region x, 0 to 4095, found \"4096\""),
            ("reg", "ctrl=@x+-1", "a byte of region x"),
            ("done", "ctrl:32=1", "a bit from 0 to 31"),
            ("done", "ctrl:1=2", "a bit is 0 or 1"),
            ("done", "ctrl", "expected REGISTER:BIT=1"),
            ("out", "y=f", "expected REGION=FILE:BYTES"),
            ("out", "y=:3", "expected REGION=FILE:BYTES"),
            ("out", "y=f:x", "a number of bytes"),
            ("out", "y=f:-1", "a number of bytes"),
            (
                "out",
                "y=f:0x1_0000_0001",
                "the region y has 4096 bytes: expected 1 to 4096, found 4294967297",
            ),
            ("out", "x=f:1", "the region x is of mode input"),
        ] {
            let found = refused(what, text);
            assert!(found.contains(part), "{what} {text}: {found}");
        }
    }

    #[test]
    fn sizes_go_up_to_that_of_the_region() {
        let text = "
            [[region]]\nname = \"x\"\nmode = \"input\"\nbase = 0\nsize = \"8 GiB\"\nchunk = 4096
            [[region]]\nname = \"y\"\nmode = \"output\"\nbase = 0x2_0000_0000\nsize = \"8 GiB\"\nchunk = 4096";
        let config = shef_gen::shield::parse(text).unwrap().config;
        let registers = Registers::default();
        let names = Names { registers: &registers, config: &config, project: None };
        let mut job = Job::default();
        job.input(names, "x=random:0x1_0000_0000").unwrap();
        job.output(names, "y=f:8589934592").unwrap();
        assert_eq!(job.inputs[0].data, Data::Random(1 << 32));
        assert_eq!(job.outputs[0].bytes, 8 << 30);
        assert!(job.output(names, "y=f:8589934593").is_err());
    }
}
