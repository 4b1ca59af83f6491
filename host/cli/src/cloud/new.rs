//! `shef cloud new`: the folder of an image, in memory.

use std::path::{Path, PathBuf};

use serde::Serialize;
use shef_cloud::hdk::Hdk;
use shef_cloud::logic::{self, CoreClock, Folder, Image, Source, TARGET, TOP};
use shef_cloud::place;
use shef_cloud::{CloudError, Step};
use shef_console::{CliError, Exit, Output, hex, interrupt};
use shef_gen::secret::SECRET_PACKAGE;
use shef_project::{Design, repo_root};
use shef_proto::crypto::sha256;

use super::print::{self, Watching};
use crate::project::failed;
use crate::secret;

/// Our part of the custom logic, below the repository.
const SHELL: &str = "shell-rtl/shell/aws_f2";
/// Stand-ins for AWS's modules in simulation: an image has AWS's own.
const MODEL: &str = "shell-rtl/shell/f2_model";
/// The module that a design's digest measures.
const MEASURED: &str = "shef_core";
/// Clock of the core in MHz, unless a flag names another: 1,000 MHz / 15.
const CORE_MHZ: f64 = 66.7;

/// Flags of `shef cloud new`.
#[derive(clap::Args)]
#[command(
    after_help = "NAME holds the secret of the image until `shef cloud build` removes it: it must be on tmpfs, as below /dev/shm. \
                  Nothing of the HDK is copied; links refer to it."
)]
pub struct NewArgs {
    /// Folder to make, on tmpfs
    #[arg(value_name = "NAME")]
    dir: PathBuf,
    /// Folder of AWS's hardware development kit (aws-fpga, branch f2), after hdk_setup.sh
    #[arg(long, value_name = "DIR")]
    hdk: PathBuf,
    /// Folder of the accelerator's project, as `shef new` makes one; by default the digits
    /// accelerator, which has no job for `shef cloud run`
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// The vendor's key folder; a CA for images is created in it if it is missing
    #[arg(long, value_name = "DIR")]
    vendor: PathBuf,
    /// Name of the vendor, in the trust anchor and in a newly created CA
    #[arg(long, value_name = "TEXT", default_value = "image-vendor")]
    vendor_name: String,
    /// Clock of the core: the highest possible one that is not faster [default: 66.7]
    #[arg(long, value_name = "MHZ")]
    core_mhz: Option<f64>,
    /// Card memory in the HBM, 16 GiB, instead of the DDR, 64 GiB
    #[arg(long)]
    hbm: bool,
    /// Print the changes, and make none
    #[arg(long)]
    dry_run: bool,
}

#[derive(Serialize)]
struct Document {
    folder: String,
    #[serde(flatten)]
    image: Image,
}

/// Refuses a source of the project that could reach the secret or stand for a module of the adapter:
/// with the secret's package in the same build, the name is all that it takes.
fn stranger(source: &shef_project::Source) -> Result<(), CliError> {
    let stem = shef_project::stem(&source.path);
    let wrong = |found: String, expected: &'static str| {
        CliError::from(CloudError::Value { what: "a source of the project", found, expected })
    };
    let adapter = shef_project::sv_files(&repo_root().join(SHELL)).map_err(failed)?;
    if adapter.iter().any(|path| shef_project::stem(path).eq_ignore_ascii_case(&stem)) {
        let found = source.path.display().to_string();
        return Err(wrong(found, "a name that no module of the adapter has"));
    }
    for word in ["shef_image", "u_image", "``"] {
        if source.bytes.windows(word.len()).any(|part| part == word.as_bytes()) {
            let found = format!("{word} in {}", source.path.display());
            let expected =
                "no name of the image's identity, and no ``, which could make such a name";
            return Err(wrong(found, expected));
        }
    }
    Ok(())
}

/// The sources of the custom logic: the design in a Shield, the Security Kernel, and the adapter.
/// Those of AWS come from the HDK, and identity and secret are generated. The project stands alone
/// among them: its names end inside of it, and no tool reads it in another way than the front end.
fn sources(design: &Design) -> Result<Vec<Source>, CliError> {
    let set = design.bare_sources(MEASURED).map_err(failed)?;
    if let Some((name, _)) = set.defines.first() {
        return Err(CloudError::Value {
            what: "a macro of shef.toml",
            found: name.clone(),
            expected: "none for an image on F2: write `define in a header that the sources include",
        }
        .into());
    }
    let mut set = set.with_kernel().map_err(failed)?.search(SHELL).search(MODEL);
    TOP.clone_into(&mut set.top);
    let (measured, built) = set.measure_below(MEASURED).read().map_err(failed)?;
    let shipped = ["shell-rtl/rtl", "shell-rtl/shell"].map(|folder| repo_root().join(folder));
    let ibex = shef_project::ibex().map_err(failed)?;
    let own = |source: &&shef_project::Source| {
        !shipped.iter().chain([&ibex]).any(|folder| source.path.starts_with(folder))
    };
    let (strangers, ours): (Vec<_>, Vec<_>) = built.iter().partition(own);
    strangers.iter().try_for_each(|source| stranger(source))?;
    let [strangers, ours] =
        [strangers, ours].map(|all| all.into_iter().map(Into::into).collect::<Vec<_>>());
    shef_project::alone(&strangers, &ours).map_err(failed)?;
    if design.folder().is_some() {
        let scratch = shef_console::file::TempFolder::new()?;
        design.ports(scratch.path()).map_err(failed)?;
    }
    if measured.digest() != design.digest() {
        return Err(CloudError::Value {
            what: "the design below the adapter",
            found: "sources that the design by itself does not have".to_owned(),
            expected: "no name of a module of the shell in a source of the project",
        }
        .into());
    }
    let model = repo_root().join(MODEL);
    let own = built.into_iter().filter(|source| !source.path.starts_with(&model));
    let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let sources = own.map(|source| Source { name: name(&source.path), bytes: source.bytes });
    Ok(logic::flat(sources.collect())?)
}

/// A path in UTF-8, as the description of an image holds it.
fn text_of(what: &'static str, path: &Path) -> Result<String, CliError> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let (found, expected) = (path.display().to_string(), "a path in UTF-8");
        CloudError::Value { what, found, expected }.into()
    })
}

/// Our constraints.
fn constraints() -> Result<Vec<Source>, CliError> {
    let folder = repo_root().join(SHELL).join("constraints");
    let mut files = Vec::new();
    // A shell without constraints of ours has no folder.
    for entry in std::fs::read_dir(&folder).into_iter().flatten() {
        let path = entry.map_err(|e| CliError::read_file(&folder, &e))?.path();
        if path.extension().is_some_and(|it| it == "xdc") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push(Source { name, bytes: shef_console::file::read(&path, 1 << 20)? });
        }
    }
    files.sort_by(|one, two| one.name.cmp(&two.name));
    Ok(files)
}

/// Runs `shef cloud new`.
///
/// # Errors
/// Those of the HDK, the project, the place, and the vendor's keys.
pub fn run(output: &Output, args: &NewArgs) -> Result<Exit, CliError> {
    interrupt::cleans_up()?;
    let hdk = Hdk::open(&args.hdk)?;
    hdk.ports()?;
    hdk.links()?;
    let shell = hdk.shell_digest()?;
    if args.hbm {
        hdk.hbm()?;
    }
    let clock = CoreClock::at_most(args.core_mhz.unwrap_or(CORE_MHZ))?;
    if args.core_mhz.is_some_and(|mhz| mhz > CORE_MHZ) {
        output.warn(format!(
            "no clock has met timing in Vivado yet, and --core-mhz is above the default of \
             {CORE_MHZ}: the build may miss it after hours (SHEF-CLD-022)"
        ));
    }
    let design = match &args.project {
        Some(dir) => Design::project(dir).map_err(failed)?,
        None => Design::digits().map_err(failed)?,
    };
    logic::holds(args.hbm, design.name(), design.config().memory_end())?;
    let project = args.project.as_ref().map(|dir| dir.canonicalize()).transpose();
    let project = project
        .map_err(|e| CliError::read_file(args.project.as_deref().unwrap_or(Path::new(".")), &e))?;
    let project = project.as_deref().map(|dir| text_of("--project", dir)).transpose()?;
    let kit = text_of("--hdk", hdk.root())?;
    let (sources, constraints) = (sources(&design)?, constraints()?);
    if args.dry_run {
        let dir = args.dir.display();
        let left = logic::is_left(&args.dir)?
            .then(|| format!("remove {dir}, which an interrupted call left"));
        let steps = [
            format!("make {dir} with mode 700"),
            format!("write {} sources to {dir}/{TOP}/design", sources.len() + 2),
            format!("write the secret to {dir}/{TOP}/design/{SECRET_PACKAGE}.sv, a new one"),
            format!("write scripts and {} constraints to {dir}/{TOP}/build", constraints.len()),
            format!("write a certificate of the CA in {} to {dir}", args.vendor.display()),
        ];
        let steps: Vec<Step> = left.into_iter().chain(steps).map(Step::Change).collect();
        return print::plan(output, &steps);
    }
    let swaps = place::swaps(&std::fs::read_to_string("/proc/swaps").unwrap_or_default());
    if !swaps.is_empty() {
        let disks = swaps.join(", ");
        output.warn(format!(
            "memory may be swapped to {disks}, tmpfs too: `swapoff -a` until the build has ended"
        ));
    }
    let watching = Watching::new(output, "making the folder");
    let folder = Folder::begin(&args.dir)?;
    // An interrupt leaves no secret.
    interrupt::parts().push(folder.path().to_owned());
    let drawn = secret::draw(output, &args.vendor, &args.vendor_name, folder.path())?;
    let certificate = shef_console::file::read(&drawn.certificate, 1 << 16)?;
    let image = Image {
        format: Image::format(),
        accelerator: design.name().to_owned(),
        project,
        target: TARGET.to_owned(),
        root_of_trust: "provider".to_owned(),
        design: hex::encode(&design.digest()),
        shell,
        shell_version: hdk.shell_version.clone(),
        hdk: kit,
        hdk_release: hdk.release.clone(),
        core_khz: clock.khz(),
        hbm: args.hbm,
        ueid: drawn.ueid,
        certificate: hex::encode(&sha256(&certificate)),
        files: Default::default(),
    };
    watching.step("writing sources and scripts");
    let image = folder.fill(&hdk, sources, constraints, clock, image)?;
    interrupt::parts().retain(|part| part != folder.path());
    drop(watching);
    let mhz = f64::from(image.core_khz) / 1000.0;
    for (name, text) in [
        ("folder", format!("{} (mode 700, in memory)", args.dir.display())),
        ("accelerator", image.accelerator.clone()),
        ("design", image.design.clone()),
        ("shell", format!("{} of HDK {}, {}", image.shell_version, image.hdk_release, image.shell)),
        ("clock", format!("{mhz:.3} MHz, the Security Kernel half of it")),
        ("memory", if image.hbm { "16 GiB of HBM" } else { "64 GiB of DDR" }.to_owned()),
        ("ueid", image.ueid.clone()),
        ("next", format!("shef cloud build {}", shef_console::shell::word(&args.dir))),
    ] {
        print::pair(output, name, &text)?;
    }
    output.document(&Document { folder: args.dir.display().to_string(), image })?;
    Ok(Exit::Done)
}
