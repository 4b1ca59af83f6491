//! `shef-sim evaluate`: every workload of ShEF's evaluation on real data, without a Shield and behind
//! it, with the paper's figures beside.
//!
//! Each row is a whole session: attested, keyed, its results opened under a statement and compared
//! with a CPU reference to the last byte.

mod error;
mod html;
mod kept;
mod plot;
mod row;
mod sizes;
mod subject;
mod sweep;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;
use shef_card::{Design, RtlOptions};
use shef_console::file::Outputs;
use shef_console::output::count;
use shef_console::{CliError, Exit, Output};
use shef_gen::estimate::{Estimate, Figures};
use shef_gen::shield::Synthesis;
use shef_workloads::{Layout, Scale, Task, WORKLOADS, Workload, find};

pub use error::EvaluateError;
use kept::Kept;
use row::{HEADS, Row, Traffic, layout_name};
use sizes::Sizes;
use subject::{Subject, Variant};
use sweep::Swept;

use crate::job::failure::{Failure, Kind};
use crate::job::measure::{Measurement, Shown};

/// Cycles from a read request of the memory to its first beat.
const LATENCY: u64 = 40;
/// Copies of the accelerator that find its end: it is exact to a few cycles.
const COPIES: usize = 1;
/// Clock of the area's estimate, which does not depend on it.
const CLOCK_MHZ: f64 = 250.0;

/// Flags of `shef-sim evaluate`.
#[derive(clap::Args)]
pub struct EvaluateArgs {
    /// Workloads; by default all
    #[arg(value_name = "WORKLOAD")]
    workloads: Vec<String>,
    /// One row for each layout, and at most about a minute of simulation for each
    #[arg(long)]
    quick: bool,
    /// Also measure reads over chunk size, lanes and lines, beside the estimates of `shef shield
    /// estimate`
    #[arg(long)]
    sweep: bool,
    /// Write tables and plots into this file, a page without network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also run rows that are kept from an earlier run
    #[arg(long)]
    again: bool,
    /// Rows side by side [default: one for each processor]
    #[arg(short = 'j', long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

/// The document.
#[derive(Serialize)]
struct Report {
    quick: bool,
    latency: u64,
    rows: Vec<Row>,
    /// Vector addition over its size, if it is among the workloads.
    sizes: Option<Sizes>,
    /// Reads over chunk size, lanes and lines, with `--sweep`.
    sweep: Vec<Swept>,
    seconds: u64,
}

/// The Shields of a workload.
fn variants(workload: &dyn Workload, memory: bool, quick: bool) -> Vec<Variant> {
    let ours = Variant { layout: Layout::Ours, key_bits: None, lanes: None };
    let mut all = vec![ours];
    if memory && !quick {
        all.extend([2, 1].map(|lanes| Variant { lanes: Some(lanes), ..ours }));
        all.extend([4, 2, 1].map(|lanes| Variant {
            key_bits: Some(128),
            lanes: (lanes != 4).then_some(lanes),
            ..ours
        }));
    }
    if workload.paper().is_some() {
        let paper = Variant { layout: Layout::Paper, ..ours };
        all.push(paper);
        if memory && !quick {
            all.push(Variant { key_bits: Some(256), ..paper });
        }
    }
    all
}

/// A workload and its run without a Shield, which all its rows share.
struct Shared {
    subject: Subject,
    bare_design: Design,
    bare: Mutex<Option<Result<Traffic, Failure>>>,
}

impl Shared {
    fn new(workload: &'static dyn Workload, task: Task) -> Result<Self, CliError> {
        let subject = Subject::new(workload, task)?;
        let ours = Variant { layout: Layout::Ours, key_bits: None, lanes: None };
        let bare_design = subject.design(ours)?;
        Ok(Self { subject, bare_design, bare: Mutex::default() })
    }

    /// The run without a Shield. Rows that need it at the same time wait for one of them.
    fn bare(&self, progress: &mut dyn FnMut(&str)) -> Result<Traffic, Failure> {
        let mut kept = self.bare.lock().unwrap_or_else(PoisonError::into_inner);
        let run = || {
            let case = self.subject.case(self.bare_design.config());
            let measurement = Measurement::new(case, COPIES)?;
            let ran = measurement.bare(&self.bare_design, LATENCY, progress)??;
            Ok(Traffic::new(&ran.measured))
        };
        kept.get_or_insert_with(run).clone()
    }

    /// A row, measured or kept.
    fn row(
        &self,
        variant: Variant,
        again: bool,
        figures: &Figures,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Row, CliError> {
        let (task, workload) = (&self.subject.task, self.subject.workload);
        let design = self.subject.design(variant)?;
        let config = design.config();
        let place = Kept::new(task, &self.bare_design, &design, LATENCY);
        let found = if again { None } else { place.read() };
        let area = Estimate::new(config, Synthesis::default(), figures, CLOCK_MHZ, LATENCY).total;
        let mut row = Row {
            workload: workload.name().to_owned(),
            shape: task.shape.clone(),
            layout: layout_name(variant.layout).to_owned(),
            key_bits: config.regions().iter().map(|r| r.key_bits).min().unwrap_or(256),
            lanes: config.sets().iter().map(|set| set.lanes).max().unwrap_or(0),
            latency: LATENCY,
            cycles: 0,
            cycles_bare: 0,
            ratio: 0.0,
            bytes_per_cycle: 0.0,
            bytes_per_cycle_bare: 0.0,
            bus_share_bare: 0.0,
            shielded: None,
            bare: None,
            attested: false,
            equal_to_reference: false,
            statement_clean: false,
            paper_ratio: None,
            paper_worst: None,
            paper_source: None,
            area,
            facts: task.facts.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect(),
            error: None,
        };
        row.compare(workload.paper());
        // Sizes, facts and the paper's figures are those of this program.
        if let Some(Row { bare: Some(bare), shielded: Some(shielded), .. }) = found {
            (row.attested, row.equal_to_reference, row.statement_clean) = (true, true, true);
            row.measure(bare, shielded);
            return Ok(row);
        }
        let mut shown = Shown::default();
        let mut run = || {
            let bare = self.bare(progress)?;
            let one = Measurement::new(self.subject.case(config), COPIES)?;
            let base = RtlOptions::default();
            let ran = one.shielded(&design, &base, LATENCY, &mut shown, progress)??;
            Ok((bare, Traffic::new(&ran.measured)))
        };
        let ran: Result<_, Failure> = run();
        (row.attested, row.statement_clean) = (shown.attested, shown.statement_clean);
        match ran {
            Ok((bare, shielded)) => {
                row.equal_to_reference = true;
                row.measure(bare, shielded);
                place.write(&row);
            }
            Err(failure) => {
                row.equal_to_reference = failure.kind != Kind::Result && row.statement_clean;
                row.error = Some(failure.lines().join(" "));
            }
        }
        Ok(row)
    }
}

/// The series over sizes, if all of them passed.
fn sizes_of(rows: &[Row]) -> Option<Sizes> {
    let cycles: Vec<(u64, u64)> =
        rows.iter().filter(|row| row.passed()).map(|row| (row.cycles_bare, row.cycles)).collect();
    Some(Sizes::new(cycles.try_into().ok()?))
}

/// Rows in progress, for the terminal.
struct Board<'o> {
    output: &'o Output,
    begin: Instant,
    state: Mutex<(usize, BTreeMap<usize, Row>, Option<CliError>)>,
    rows: usize,
}

impl Board<'_> {
    /// The next row to run, unless all are given out or one ended the run.
    fn next(&self) -> Option<usize> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.2.is_some() || state.0 == self.rows {
            return None;
        }
        state.0 += 1;
        Some(state.0 - 1)
    }

    fn over(&self, at: usize, row: Result<Row, CliError>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match row {
            Ok(row) => {
                state.1.insert(at, row);
                let done = state.1.len();
                let passed = self.begin.elapsed();
                let left = passed.mul_f64((self.rows - done) as f64 / done as f64);
                let row = &state.1[&at];
                let name = format!("{}, {}", row.workload, row.layout);
                self.output.note(format_args!(
                    "{done} of {}: {name}, {}; {} left",
                    count(self.rows, "row"),
                    if row.passed() { format!("ratio {:.3}", row.ratio) } else { "FAILED".into() },
                    minutes(left)
                ));
            }
            Err(error) => state.2 = state.2.take().or(Some(error)),
        }
    }
}

/// A duration, rounded up to seconds or minutes.
fn minutes(time: Duration) -> String {
    match time.as_secs() {
        0..90 => format!("{} s", time.as_secs() + 1),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

/// Runs the command.
///
/// # Errors
/// Unknown workloads, projects that are damaged, and rows that fail.
pub fn run(output: &Output, args: &EvaluateArgs) -> Result<Exit, CliError> {
    let begin = Instant::now();
    let scale = if args.quick { Scale::Quick } else { Scale::Full };
    let mut workloads: Vec<&'static dyn Workload> = Vec::new();
    for name in &args.workloads {
        workloads.push(find(name).map_err(CliError::from)?);
    }
    if workloads.is_empty() {
        workloads.extend(WORKLOADS);
    }
    let figures = Figures::shipped().map_err(CliError::internal)?;
    let spinner = output.spinner("data and references");
    let mut shared = Vec::new();
    for workload in workloads {
        spinner.message(format!("data and reference of {}", workload.name()));
        shared.push(Shared::new(workload, workload.task(scale)?)?);
    }
    // Further sizes of the vector addition are rows of a table of their own.
    let tables = shared.len();
    if let Some(vecadd) = shared.iter().find(|one| one.subject.workload.name() == "vecadd") {
        let workload = vecadd.subject.workload;
        for bytes in sizes::MEASURED {
            shared.push(Shared::new(workload, sizes::task(bytes)?)?);
        }
    }
    let ours = Variant { layout: Layout::Ours, key_bits: None, lanes: None };
    let mut points: Vec<(usize, Variant)> = (tables..shared.len()).map(|at| (at, ours)).collect();
    for (at, one) in shared[..tables].iter().enumerate() {
        let memory = one.bare_design.config().has_memory();
        let variants = variants(one.subject.workload, memory, args.quick);
        points.extend(variants.into_iter().map(|variant| (at, variant)));
    }
    // Rows of different workloads side by side: those of one wait for its run without a Shield.
    let mut order: Vec<usize> = (0..points.len()).collect();
    let nth = |k: usize| points[..k].iter().filter(|(at, _)| *at == points[k].0).count();
    order.sort_by_key(|k| (nth(*k), *k));
    let state = Mutex::new((0, BTreeMap::new(), None));
    let board = Board { output, begin, state, rows: points.len() };
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let jobs = args.jobs.map_or(processors, NonZeroUsize::get);
    let first: OnceLock<()> = OnceLock::new();
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(points.len()) {
            scope.spawn(|| {
                while let Some(next) = board.next() {
                    let (at, variant) = points[order[next]];
                    let name = shared[at].subject.workload.name();
                    let mut say = |text: &str| {
                        if first.set(()).is_ok() {
                            spinner.message("the first run builds simulators");
                        }
                        spinner.message(format!("{name}: {text}"));
                    };
                    let row = shared[at].row(variant, args.again, &figures, &mut say);
                    board.over(order[next], row);
                }
            });
        }
    });
    drop(spinner);
    let (_, rows, error) = board.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(error) = error {
        return Err(error);
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    let table = rows.split_off(shared.len() - tables);
    let sizes = sizes_of(&rows);
    let rows: Vec<Row> = rows.into_iter().filter(|row| !row.passed()).chain(table).collect();
    for head in HEADS {
        output.line(head)?;
    }
    for row in &rows {
        output.line(row.line())?;
        for (name, value) in &row.facts {
            output.detail(format_args!("{}: {name} {value}", row.workload));
        }
    }
    if let Some(Sizes { sizes, extrapolation_error }) = &sizes {
        for size in sizes {
            output.line(format_args!(
                "vecadd {:>10} KiB: ratio {:.3}, paper {:.2}..{:.2}{}",
                html::thousands(size.bytes >> 10),
                size.ratio,
                size.paper_best,
                size.paper_worst,
                if size.measured { "" } else { ", extrapolated" }
            ))?;
        }
        let percent = 100.0 * extrapolation_error;
        output.line(format_args!("the extrapolation misses a measured size by {percent:.1} %"))?;
    }
    let sweep = if args.sweep {
        let spinner = output.spinner("sweep");
        let points = sweep::run(args.again, &mut |text| spinner.message(text))?;
        drop(spinner);
        output.line("")?;
        output.line(sweep::HEAD)?;
        for point in &points {
            output.line(point.line())?;
        }
        points
    } else {
        Vec::new()
    };
    let seconds = begin.elapsed().as_secs();
    let report = Report { quick: args.quick, latency: LATENCY, rows, sizes, sweep, seconds };
    if let Some(file) = &args.html {
        let page = html::page(&report).map_err(CliError::internal)?;
        let mut outputs = Outputs::new([])?;
        let slot = outputs.file(file)?;
        outputs.fill(slot, page)?;
        outputs.place()?;
        output.note(format_args!("wrote {}", file.display()));
    }
    output.document(&report)?;
    let failed: Vec<&Row> = report.rows.iter().filter(|row| !row.passed()).collect();
    match failed.first() {
        None => Ok(Exit::Done),
        Some(row) => Err(EvaluateError::Failed {
            failed: failed.len(),
            rows: report.rows.len(),
            first: format!(
                "{}, {}: {}",
                row.workload,
                row.layout,
                row.error.as_deref().unwrap_or("not equal to the reference")
            ),
        }
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row whose result is not that of the reference fails, says where, and is not kept.
    #[test]
    fn a_result_that_is_not_the_references_fails_its_row() {
        let workload = find("vecadd").unwrap();
        let mut task = workload.task(Scale::Small).unwrap();
        let (region, bytes) = &mut task.outputs[0];
        bytes[100] ^= 1;
        let (region, right) = (*region, bytes[100] ^ 1);
        let shared = Shared::new(workload, task).unwrap();
        let ours = Variant { layout: Layout::Ours, key_bits: None, lanes: None };
        let figures = Figures::shipped().unwrap();
        for _ in 0..2 {
            let row = shared.row(ours, false, &figures, &mut |_| {}).unwrap();
            assert!(!row.passed() && !row.equal_to_reference);
            let error = row.error.unwrap();
            assert!(error.contains(&format!("region {region}, offset 0x64")), "{error}");
            assert!(error.contains(&format!("found {right:#04x} (CPU reference)")), "{error}");
        }
    }

    #[test]
    fn each_workload_has_the_layouts_of_its_project() {
        for workload in WORKLOADS {
            let shared = Shared::new(*workload, workload.task(Scale::Small).unwrap()).unwrap();
            let memory = shared.bare_design.config().has_memory();
            for variant in variants(*workload, memory, false) {
                let design = shared.subject.design(variant).unwrap();
                let regions = |design: &Design| {
                    let all = design.config().regions().iter();
                    all.map(|r| (r.name.clone(), r.mode, r.base, r.size)).collect::<Vec<_>>()
                };
                let name = workload.name();
                assert_eq!(regions(&design), regions(&shared.bare_design), "{name}, {variant:?}");
            }
        }
    }
}
