//! `shef run`: one job of a project on a card, from sources to opened results.
//!
//! Data owner and, unless a verifier service has the keys, IP vendor are this process.

mod data;
mod flags;
mod parties;
mod report;
mod session;
mod steps;

pub use flags::JobArgs;
pub use parties::PartyArgs;
pub use steps::Steps;

use std::path::{Path, PathBuf};

use shef::{Host, OpenOptions, SdkError, Uri};
use shef_console::file::{self, Outputs};
use shef_console::{CliError, Exit, Output, interrupt};
use shef_device::{SimKernel, SimParameters};
use shef_flags::{TlsArgs, WaveArgs};
use shef_project::{Design, Job, Jobs};
use shef_verify::bundle::Bundle;

use crate::attest::warn_of_end;
use crate::project::failed;
use crate::verify::TrustArgs;
use parties::named;
use report::Report;
use session::{Ended, Plan, Ran};

/// Flags of `shef run`.
#[derive(clap::Args)]
#[command(
    after_help = "Without --device, the card is a simulated one of the project with a native Security Kernel, \
which boots at once: this command starts and ends it, and trusts it. For the kernel's firmware give \
--device 'sim:rtl?project=DIR'. A simulated card protects nothing. Any other card needs trust data \
(--anchors, --reference, --policy) or a verifier service (--verifier with --image-key and --data-key)."
)]
pub struct RunArgs {
    /// Folder of the project
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    #[command(flatten)]
    job: JobArgs,
    /// Device URI; by default a simulated card of the project
    #[arg(long, value_name = "URI")]
    device: Option<String>,
    /// Number of sessions, one after the other with the loaded image; all results must be equal
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
    /// Seed for the inputs `random:BYTES`
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    waves: WaveArgs,
    #[command(flatten)]
    parties: PartyArgs,
    /// Trust data for a card that this command did not start
    #[command(flatten)]
    trust: Option<TrustArgs>,
    /// Certificates for an agent
    #[command(flatten)]
    tls: TlsArgs,
}

/// The card of the project that this command starts.
fn own_card(dir: &Path) -> Uri {
    let project = Some(dir.to_owned());
    Uri::SimRtl(SimParameters { project, kernel: SimKernel::Native, ..SimParameters::default() })
}

/// A simulated card has the design of its project: it must be this one.
fn same_design(uri: &Uri, dir: &Path, design: &Design) -> Result<(), CliError> {
    let other = match uri {
        Uri::SimRtl(SimParameters { project: Some(project), .. }) if project != dir => {
            Design::project(project)
        }
        Uri::SimModel | Uri::SimRtl(SimParameters { project: None, .. }) => Design::digits(),
        _ => return Ok(()),
    };
    let other = other.map_err(failed)?;
    if other.digest() == design.digest() && other.name() == design.name() {
        return Ok(());
    }
    let named = |design: &Design| named(design.name(), &design.digest());
    let (own, other) = (named(design), named(&other));
    let message = format!("{} is {own}, and the card {uri} is {other}", dir.display());
    Err(CliError::new("SHEF-CLI-029", message))
}

/// A job of a project, for a card.
pub struct Work<'a> {
    /// Folder of the project.
    pub dir: &'a Path,
    /// Flags of the job.
    pub job: &'a JobArgs,
    /// Number of sessions.
    pub sessions: u32,
    /// Seed of random inputs.
    pub seed: u64,
    /// The parties.
    pub parties: &'a PartyArgs,
}

impl Work<'_> {
    /// The jobs of the project, and the one of the flags.
    fn job_of(&self, design: &Design) -> Result<(Jobs, Job), CliError> {
        let jobs = Jobs::read(self.dir, design.config()).map_err(failed)?;
        let job = self.job.job(&jobs, design.config())?;
        Ok((jobs, job))
    }
}

/// The card of a run.
pub struct Card<'a> {
    /// Its name.
    pub uri: Uri,
    /// Device type of its images.
    pub target: &'a str,
    /// Trust data, unless this command starts the card and trusts it.
    pub trust: Option<Bundle>,
}

/// Runs `shef run`.
///
/// # Errors
/// Those of the project, the files, the card and the appraisal.
pub fn run(output: &Output, args: &RunArgs) -> Result<Exit, CliError> {
    let mut uri = match &args.device {
        Some(text) => text.parse()?,
        None => own_card(&args.dir),
    };
    match &mut uri {
        Uri::SimRtl(parameters) => args.waves.apply(parameters),
        _ if args.waves.wave.is_none() => {}
        other => {
            let message = format!(
                "--wave is for a simulated card that this command starts: expected no --device, or \
                 one of sim:rtl, found {other}"
            );
            return Err(CliError::new("SHEF-CLI-001", message));
        }
    }
    let trust = match &args.trust {
        None => None,
        Some(trust) => {
            let bundle = trust.load()?;
            trust.note_unknown(output, &bundle);
            Some(bundle)
        }
    };
    let work = Work {
        dir: &args.dir,
        job: &args.job,
        sessions: args.sessions,
        seed: args.seed,
        parties: &args.parties,
    };
    let tls = args.tls.files()?;
    let card = Card { uri, target: shef_project::TARGET, trust };
    perform(output, &work, card, |uri, steps| {
        warn_of_end(output, uri, &args.tls)?;
        Ok(shef::open_with(uri, OpenOptions { tls, progress: Some(steps.progress()) })?)
    })
}

/// Checks the job and its inputs, and opens no card.
///
/// # Errors
/// Those of the project, of the job and of its files.
pub fn check(work: &Work<'_>, design: &Design) -> Result<(), CliError> {
    let (_, job) = work.job_of(design)?;
    let inputs = data::read(&job, design.config(), work.seed)?;
    Plan::new(&job, design.config(), &inputs).map(|_| ())
}

/// Does the work on a card that `open` opens, after all files were checked.
///
/// # Errors
/// As [`run`].
pub fn perform(
    output: &Output,
    work: &Work<'_>,
    card: Card<'_>,
    open: impl FnOnce(&Uri, &Steps<'_>) -> Result<Host, CliError>,
) -> Result<Exit, CliError> {
    interrupt::cleans_up()?;
    let Card { uri, target, trust } = card;
    let design = Design::project(work.dir).map_err(failed)?;
    let (jobs, job) = work.job_of(&design)?;
    let files = job.outputs.iter().map(|output| output.file.as_path()).chain(uri.wave());
    design.kept(&jobs, files).for_each(file::is_input);
    same_design(&uri, work.dir, &design)?;
    let inputs = data::read(&job, design.config(), work.seed)?;
    let plan = Plan::new(&job, design.config(), &inputs)?;
    let mut parties = work.parties.read(output, &design, uri.is_simulated(), trust, target)?;
    // All files are checked before the card is opened.
    let mut outputs = Outputs::new(parties.key_folders())?;
    let slots = job.outputs.iter().map(|output| outputs.file(&output.file));
    let slots = slots.collect::<Result<Vec<_>, _>>()?;
    uri.wave().map_or(Ok(()), |wave| outputs.elsewhere(wave))?;

    if uri.is_simulated() {
        output.note("the card is simulated: it protects nothing");
    }
    let steps = Steps::new(output);
    steps.begin(format!("opening {uri}"));
    let mut host = open(&uri, &steps)?;
    if work.job.stall_cycles.is_some() && host.device().progress().is_none() {
        return Err(SdkError::NoProgressReport { uri: uri.to_string() }.into());
    }
    parties.trusts(&host)?;
    let image = parties.load(&mut host, &design, &steps)?;
    let mut report = Report::new(&uri, &design, work.job.name.as_deref(), &image);
    report.inputs(&inputs, work.seed);
    let mut first: Option<Ran> = None;
    for number in 1..=work.sessions {
        if number > 1 {
            host.new_session()?;
        }
        let ran = match session::run(&mut host, &plan, &parties, &image, &steps)? {
            Ended::Done(ran) => ran,
            Ended::Late(late) => return Err(report.late(output, late, &jobs.registers)?),
        };
        report.session(&ran);
        let differs = first.as_ref().and_then(|first| first.differs(&ran, &job, &jobs.registers));
        if let Some(what) = differs {
            return Err(report.differ(output, number, &what)?);
        }
        first.get_or_insert(ran);
    }
    drop((host, steps));
    if let Some(ran) = first {
        for (slot, bytes) in slots.into_iter().zip(&ran.outputs) {
            outputs.fill(slot, bytes)?;
        }
        outputs.place()?;
        report.results(&ran, &job, &jobs.registers);
    }
    report.print(output)?;
    Ok(Exit::Done)
}
