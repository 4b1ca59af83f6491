//! Where the files of a custom logic are, and whether AWS's build takes them.

use std::path::{Path, PathBuf};

use shef_project::{SourceSet, repo_root};

use crate::{Check, CustomLogic, Design, Error, Finding, Result, check as checked};

/// The memory controller in the model of the shell; the content of AWS's is encrypted.
const SH_DDR: &str = include_str!("../../shell/f2_model/sh_ddr.sv");
/// Ports of the HBM IP, a header that [`HBM`] includes.
pub(crate) const HBM_PORTS: (&str, &str) =
    ("cl_hbm_ports.vh", include_str!("../../shell/f2_model/cl_hbm_ports.vh"));
/// The HBM IP from outside: its ports, no content.
pub(crate) const HBM: &str =
    "`default_nettype none\nmodule cl_hbm (\n`include \"cl_hbm_ports.vh\"\n);\nendmodule\n";
/// The custom logic of this repository.
const SHIPPED: &str = "cl_shef";
/// Its folder.
const FOLDER: &str = "shell-rtl/shell/aws_f2";
/// An identity without a secret.
const IMAGE: &str = include_str!("shef_image.sv");
/// Folders of the processor's sources.
const PROCESSOR: [&str; 3] =
    ["rtl", "vendor/lowrisc_ip/ip/prim/rtl", "vendor/lowrisc_ip/dv/sv/dv_utils"];
/// Beginnings of the names of the processor's files.
const OTHERS: [&str; 3] = ["ibex_", "prim_", "dv_"];
/// Options of synthesis that set a parameter of the top module, and a macro.
const GENERIC: &str = "-generic";
const DEFINE: &str = "-verilog_define";
/// Macros of the script that `shef cloud new` writes, for a folder without a script.
const DEFINES: &str = "-verilog_define XSDB_SLV_DIS -verilog_define USE_64GB_DDR_DIMM";
/// Contents of memories, which AWS's build does not copy.
const CONTENTS: [&str; 5] = ["mem", "hex", "coe", "mif", "dat"];

/// The memory controller from outside.
pub(crate) fn sh_ddr() -> String {
    without_content(SH_DDR)
}

/// A module of the model of the shell with its ports and without its content.
fn without_content(module: &str) -> String {
    let (ports, _) = module.split_once("\n);\n").unwrap_or((module, ""));
    format!("{ports}\n);\nendmodule\n`default_nettype wire\n")
}

/// A path for messages: relative to the current folder if it is below it.
pub(crate) fn shown(path: &Path) -> PathBuf {
    let below = std::env::current_dir().ok();
    let below = below.as_deref().and_then(|folder| path.strip_prefix(folder).ok());
    below.unwrap_or(path).to_owned()
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e: std::io::Error| Error::Folder { path: folder.into(), reason: e.to_string() };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut files = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(failed)?;
    files.sort();
    Ok(files)
}

fn is(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own == extension)
}

fn constraints(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let Some(folder) = folders.iter().find(|folder| folder.is_dir()) else { return Ok(Vec::new()) };
    let mut files = files(folder)?;
    files.retain(|file| is(file, "xdc"));
    Ok(files)
}

pub(crate) fn in_folder(folder: &Path) -> Result<CustomLogic> {
    let failed = |reason: String| Error::Folder { path: folder.to_owned(), reason };
    let real = folder.canonicalize().map_err(|e| failed(e.to_string()))?;
    if real == repo_root().join(FOLDER) {
        return shipped();
    }
    let name = real.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let design = Some(real.join("design")).filter(|design| design.is_dir()).unwrap_or(real.clone());
    let is_top = |path: &&PathBuf| {
        is(path, "sv")
            && shef_project::stem(path).starts_with("cl_")
            && !shef_project::stem(path).ends_with("_pkg")
    };
    let all = files(&design)?;
    let top = if design.join(format!("{name}.sv")).is_file() {
        name
    } else {
        let tops: Vec<&PathBuf> = all.iter().filter(is_top).collect();
        match tops.as_slice() {
            [top] => shef_project::stem(top),
            _ => return Err(failed(format!("expected the top module in {name}.sv"))),
        }
    };
    let folders = [real.join("build/constraints"), real.join("constraints"), real.clone()];
    // AWS's build takes the files as they are, those of others among them; what reaches outside is
    // found by a check.
    let mut sources = SourceSet::new(&top).foreign(&design);
    sources.files.extend(all.iter().filter(|path| is(path, "v")).cloned());
    let script = real.join(format!("build/scripts/synth_{top}.tcl"));
    let text = match std::fs::read_to_string(&script) {
        // A backslash continues a line.
        Ok(text) => text.replace("\\\n", " "),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => DEFINES.to_owned(),
        Err(e) => return Err(Error::Folder { path: script, reason: e.to_string() }),
    };
    for (option, name, value) in
        settings(&text).map_err(|reason| Error::Folder { path: script.clone(), reason })?
    {
        sources = match option {
            GENERIC => sources.param(name, value),
            _ => sources.define(name, value),
        };
    }
    Ok(CustomLogic { sources, constraints: constraints(&folders)?, folder: Some(real) })
}

/// The parameters and macros that a synthesis script sets, each with its option: `-generic NAME=VALUE`,
/// `-verilog_define NAME`, `-verilog_define NAME=VALUE`. In any other form the lint would read other
/// sources than Vivado.
fn settings(script: &str) -> std::result::Result<Vec<(&'static str, &str, &str)>, String> {
    let mut found = Vec::new();
    let lines = script.lines().filter(|line| !line.trim_start().starts_with('#'));
    for mut words in lines.map(str::split_whitespace) {
        while let Some(word) = words.next() {
            let Some(option) = [GENERIC, DEFINE].into_iter().find(|option| *option == word) else {
                // Options may be short, and properties set the same.
                let short = ["-ge", "-verilog"].iter().any(|start| word.starts_with(start));
                if short || word.contains("generic") || word.contains("verilog_define") {
                    return Err(format!("{word}: expected {GENERIC} NAME=VALUE or {DEFINE} NAME"));
                }
                continue;
            };
            let setting = words.next().unwrap_or_default();
            let (name, value) = setting.split_once('=').unwrap_or((setting, "1"));
            let plain = |text: &str| {
                !text.is_empty()
                    && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"_.'".contains(&c))
            };
            if !plain(name) || !plain(value) || option == GENERIC && !setting.contains('=') {
                return Err(format!("{option} {setting}: expected a name and a plain value"));
            }
            found.push((option, name, value));
        }
    }
    Ok(found)
}

pub(crate) fn shipped() -> Result<CustomLogic> {
    let folder = repo_root().join(FOLDER);
    let sources = SourceSet::new(SHIPPED)
        .search(FOLDER)
        .search("shell-rtl/rtl")
        .search("shell-rtl/accel/digits");
    // The identity of an image is the user's; here it is zero.
    let sources = sources.generated("shef_image.sv", IMAGE.to_owned());
    let ibex = shef_project::ibex().ok();
    let folders = ibex.into_iter().flat_map(|ibex| PROCESSOR.map(|folder| ibex.join(folder)));
    let sources = folders.fold(sources, SourceSet::foreign);
    let constraints = constraints(&[folder.join("constraints")])?;
    Ok(CustomLogic { sources, folder: None, constraints })
}

/// The error of the front end; a module without a source has its own.
pub(crate) fn refused(error: shef_project::Error) -> Error {
    const UNKNOWN: &str = ": ERROR: unknown module '";
    if let shef_project::Error::FrontEnd(text) = &error
        && let Some((before, after)) = text.split_once(UNKNOWN)
        && let Some((module, _)) = after.split_once('\'')
    {
        let place = before.rsplit([' ', ';']).next().unwrap_or_default();
        let place = place.rsplit_once(':').map_or_else(
            || place.to_owned(),
            |(path, line)| format!("{}:{line}", shown(Path::new(path)).display()),
        );
        return Error::Unknown { place, module: module.to_owned() };
    }
    error.into()
}

/// The files as AWS's scripts take them.
pub(crate) fn check(logic: &CustomLogic, design: &Design<'_>) -> Result<Check> {
    const NAME: &str = "sources";
    const CODE: &str = "SHEF-NET-117";
    let Some(folder) = &logic.folder else {
        return Ok(checked(NAME, CODE, "no folder of AWS's build".to_owned(), Vec::new()));
    };
    let mut findings = Vec::new();
    let mut add = |path: &Path, what: String| {
        findings.push(Finding { place: shown(path).display().to_string(), what });
    };
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if name != design.netlist.top {
        add(
            folder,
            format!("the top module is {}: expected the folder's name", design.netlist.top),
        );
    }
    let flat = Some(folder.join("design")).filter(|design| design.is_dir());
    let flat = flat.unwrap_or(folder.clone());
    let all = files(&flat)?;
    for path in &all {
        let own = !OTHERS.iter().any(|name| shef_project::stem(path).starts_with(name));
        let source = ["sv", "v", "svh", "vh"].iter().any(|extension| is(path, extension));
        if own
            && source
            && let Ok(text) = std::fs::read(path)
            && let Some((line, what)) = shef_project::reaches_outside(&text)
        {
            let place = format!("{}:{line}", shown(path).display());
            add(Path::new(&place), what);
        }
        if path.is_dir() && flat != *folder {
            add(path, "a folder: encrypt.tcl takes the files beside it only".to_owned());
        } else if CONTENTS.iter().any(|extension| is(path, extension)) {
            add(path, "the content of a memory: AWS's build does not copy it".to_owned());
        } else if is(path, "svh") && std::fs::read(path).is_ok_and(|text| secret(&text)) {
            add(
                path,
                "a secret in a .svh, which encrypt.tcl leaves plain: expected .sv".to_owned(),
            );
        }
    }
    Ok(checked(NAME, CODE, format!("{} files", all.len()), findings))
}

/// Whether a text has a constant of 128 bit or more, or names a secret.
fn secret(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text).to_lowercase();
    let digit = |c: char| c.is_ascii_hexdigit() || c == '_';
    let long = text
        .split("'h")
        .skip(1)
        .any(|rest| rest.chars().take_while(|c| digit(*c)).filter(|c| *c != '_').count() >= 32);
    long || text.contains("secret")
}
