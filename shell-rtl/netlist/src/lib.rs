//! Analysis of a custom logic for AWS F2 before a build: its ports, drivers, cells, clocks,
//! crossings between clocks, ids and constraints.
//!
//! yosys elaborates the sources once, to a flat netlist of operators, registers and memories; all
//! checks are made on that netlist and on the constraint files. Neither a simulator nor Vivado is
//! needed, and the HDK only for its list of ports.
#![forbid(unsafe_code)]

mod cell;
mod checks;
mod clocks;
mod constants;
mod crossings;
mod error;
mod ports;
mod rtlil;
mod size;
mod source;
mod xdc;

use std::path::{Path, PathBuf};

use serde::Serialize;
use shef_project::{Elaborated, SourceSet};

pub use error::Error;
pub use ports::{Header, header, kit};

use clocks::Clocks;
use constants::Constants;
use crossings::Form;
use rtlil::Netlist;

/// All codes of this crate.
pub const CODES: &[shef_proto::code::Code] = Error::CODES;

/// Result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// LUTs of the card's FPGA, a VU47P.
pub const DEVICE_LUTS: u32 = 1_303_680;
/// The largest share of them that a custom logic of this project may take.
pub const LARGEST_SHARE: f64 = 0.14;

/// The sources and constraints of a custom logic.
#[derive(Debug, Clone)]
pub struct CustomLogic {
    /// Sources; the top module has the ports of the shell.
    pub sources: SourceSet,
    /// The folder that AWS's build takes, if the sources are in one.
    pub folder: Option<PathBuf>,
    /// Constraint files.
    pub constraints: Vec<PathBuf>,
}

impl CustomLogic {
    /// The custom logic in a folder: sources in the folder or in `design`, constraints in
    /// `build/constraints`, `constraints` or the folder. The top module has the folder's name.
    ///
    /// # Errors
    /// [`Error::Folder`]: the folder has no top module, or cannot be read.
    pub fn in_folder(folder: &Path) -> Result<Self> {
        source::in_folder(folder)
    }

    /// The custom logic of this repository.
    ///
    /// # Errors
    /// [`Error::Folder`]: the folder of its constraints cannot be read.
    pub fn shipped() -> Result<Self> {
        source::shipped()
    }
}

/// A thing that a check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// File and line; empty: the design as a whole.
    pub place: String,
    /// What was expected and what was found.
    pub what: String,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable name.
    pub check: &'static str,
    /// Whether nothing was found.
    pub passed: bool,
    /// Stable code of its findings; `shef explain` prints the next step.
    pub code: &'static str,
    /// Kinds of objects that the check read, each with how many.
    pub looked_at: String,
    /// Everything that was found.
    pub findings: Vec<Finding>,
    /// Of the crossings: those without a recognised form or without a constraint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crossings_unnamed: Option<usize>,
}

impl Check {
    /// The next step after a finding.
    #[must_use]
    pub fn help(&self) -> &'static str {
        shef_proto::code::find(CODES, self.code).map_or("", |code| code.help)
    }
}

/// A crossing between two clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CrossingLine {
    /// Its form; `unknown`: none that is safe.
    pub form: &'static str,
    /// First register or port, and its clock.
    pub from: String,
    /// Clock of the first one.
    pub from_clock: String,
    /// The register or memory that it reaches.
    pub to: String,
    /// Clock of the second one.
    pub to_clock: String,
    /// Bits.
    pub bits: usize,
    /// Whether a constraint covers it.
    pub constrained: bool,
}

/// The result of all checks.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Name of the top module.
    pub top: String,
    /// The list of ports that was compared.
    pub ports: String,
    /// One for each check.
    pub checks: Vec<Check>,
    /// Crossings between clocks.
    pub crossings: Vec<CrossingLine>,
    /// Crossings without a recognised form or without a constraint.
    pub crossings_unnamed: usize,
    /// Estimated LUTs, without the memory controller.
    pub luts: u64,
    /// Share of the card's LUTs.
    pub lut_share: f64,
}

impl Report {
    /// Whether all checks passed.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|check| check.passed)
    }
}

/// What the checks look at.
struct Design<'n> {
    netlist: &'n Netlist<'n>,
    elaborated: &'n Elaborated,
    clocks: &'n Clocks,
    constants: &'n Constants<'n>,
    table: &'n [shef_gen::f2::Port],
}

impl Design<'_> {
    /// File and line of an attribute `src`.
    fn place(&self, src: &str) -> String {
        let place = self.elaborated.place(src);
        place.map_or_else(String::new, |(path, line)| {
            format!("{}:{line}", source::shown(path).display())
        })
    }

    fn finding(&self, src: &str, what: String) -> Finding {
        Finding { place: self.place(src), what }
    }
}

fn check(
    check: &'static str,
    code: &'static str,
    looked_at: String,
    findings: Vec<Finding>,
) -> Check {
    let passed = findings.is_empty();
    Check { check, passed, code, looked_at, findings, crossings_unnamed: None }
}

/// Checks a custom logic. `hdk` is the folder of AWS's kit, whose list of ports is compared; without
/// it, that of this repository is. `scratch` is an empty folder.
///
/// # Errors
/// The sources, the kit's list or the constraints cannot be read. Faults of the custom
/// logic itself is in the report.
pub fn lint(logic: &CustomLogic, hdk: Option<&Path>, scratch: &Path) -> Result<Report> {
    let shell = ports::Shell::of(hdk, scratch)?;
    let mut sources = logic.sources.clone();
    sources.generated.push((error::HEADER.into(), shell.text.clone()));
    sources.generated.push(("sh_ddr.sv".into(), shell.memory.clone()));
    sources.generated.push(("cl_hbm.sv".into(), source::HBM.to_owned()));
    let (name, text) = source::HBM_PORTS;
    sources.generated.push((name.into(), text.to_owned()));
    let folder = scratch.join("design");
    std::fs::create_dir_all(&folder)
        .map_err(|e| Error::Folder { path: folder.clone(), reason: e.to_string() })?;
    let elaborated = Elaborated::new(&sources, &folder).map_err(source::refused)?;
    let netlist = Netlist::parse(&elaborated.netlist).ok_or(Error::Netlist)?;
    let clocks = Clocks::of(&netlist, &shell.table);
    let constants = Constants::of(&netlist);
    let design = Design {
        netlist: &netlist,
        elaborated: &elaborated,
        clocks: &clocks,
        constants: &constants,
        table: &shell.table,
    };
    let mut checks = vec![
        source::check(logic, &design)?,
        ports::check(&design, &shell),
        checks::outputs(&design),
        checks::inputs(&design),
        checks::undriven(&design),
        checks::answers(&design),
        checks::memory(&design),
        checks::hbm(&design),
        checks::cells(&design),
        checks::clocks(&design),
        checks::loops(&design),
        checks::latches(&design),
        checks::ids(&design),
    ];
    let mut found = crossings::find(&netlist, &clocks);
    // A fault of a pointer is the cause of one at its FIFO's words.
    found.sort_by_key(crossings::Crossing::of_memory);
    let mut objects = xdc::Objects::of(&netlist, &clocks);
    let mut constraints = xdc::Constraints::default();
    for file in &logic.constraints {
        let text = std::fs::read_to_string(file)
            .map_err(|e| Error::Folder { path: file.clone(), reason: e.to_string() })?;
        constraints.read(file, &text, &mut objects, &clocks);
    }
    let (mut unsafe_paths, mut uncovered, mut lines) = (Vec::new(), Vec::new(), Vec::new());
    for crossing in &found {
        let bounded = matches!(crossing.form, Form::Gray | Form::Memory | Form::Static);
        // A signal without a clock has no timing to except; ASYNC_REG is its constraint.
        let timed = !crossing.asynchronous;
        let coverage = match timed {
            true => constraints.covers(crossing, &netlist, &clocks, bounded),
            false => xdc::Coverage::Whole,
        };
        let ((from, to), (from_clock, to_clock)) = (&crossing.names, &crossing.clocks);
        let path = format!("{from} ({from_clock}) to {to} ({to_clock})");
        if !crossing.problem.is_empty() {
            let what = format!("{path}: {}", crossing.problem);
            unsafe_paths.push(design.finding(&crossing.place, what));
        }
        let need = match coverage {
            xdc::Coverage::Whole => None,
            xdc::Coverage::Missing if bounded => Some("no set_max_delay -datapath_only"),
            xdc::Coverage::Missing => Some("no set_max_delay -datapath_only or set_false_path"),
            xdc::Coverage::Cancelled => {
                Some("set_false_path or set_clock_groups removes the bound of its delay")
            }
            xdc::Coverage::Long => {
                Some("set_max_delay is longer than a period of the fastest clock, 3.75 ns")
            }
        };
        if let Some(need) = need {
            uncovered.push(design.finding(&crossing.place, format!("{path}: {need}")));
        }
        lines.push(CrossingLine {
            form: crossing.form.name(),
            from: from.clone(),
            from_clock: from_clock.clone(),
            to: to.clone(),
            to_clock: to_clock.clone(),
            bits: crossing.to.len(),
            constrained: coverage == xdc::Coverage::Whole,
        });
    }
    let unnamed = |(crossing, line): &(&crossings::Crossing, &CrossingLine)| {
        !crossing.problem.is_empty() || !line.constrained
    };
    let crossings_unnamed = found.iter().zip(&lines).filter(unnamed).count();
    let forms: Vec<String> = crossings::FORMS
        .iter()
        .map(|form| (form, found.iter().filter(|crossing| crossing.form == *form).count()))
        .filter(|(_, n)| *n > 0)
        .map(|(form, n)| format!("{n} {}", form.name()))
        .collect();
    let total = found.len();
    let named = if forms.is_empty() { String::new() } else { format!(": {}", forms.join(", ")) };
    let looked = format!("{total} crossings{named}");
    let crossings = check("crossings", "SHEF-NET-112", looked, unsafe_paths);
    checks.push(Check { crossings_unnamed: Some(crossings_unnamed), ..crossings });
    let looked = format!("{total} crossings, {} files", logic.constraints.len());
    checks.push(check("constraints", "SHEF-NET-113", looked, uncovered));
    let remark = |remark: &xdc::Remark| Finding {
        place: format!("{}:{}", source::shown(&remark.file).display(), remark.line),
        what: remark.what.clone(),
    };
    let remarks = constraints.unread.iter().chain(&constraints.unmatched).map(remark).collect();
    let looked = format!("{} patterns", constraints.patterns);
    checks.push(check("patterns", "SHEF-NET-114", looked, remarks));
    checks.push(checks::names(&design));
    let (luts, size) = size::check(&design);
    checks.push(size);
    Ok(Report {
        top: netlist.top.to_owned(),
        ports: shell.name,
        checks,
        crossings: lines,
        crossings_unnamed,
        luts,
        lut_share: luts as f64 / f64::from(DEVICE_LUTS),
    })
}
