//! `shef cloud build`: the tarball of an image.

use std::path::{Path, PathBuf};

use shef_cloud::CloudError;
use shef_cloud::build::{self, Options};
use shef_cloud::hdk::Hdk;
use shef_cloud::logic::{self, Folder};
use shef_cloud::place;
use shef_console::{CliError, Exit, Output, interrupt};

use super::print::{self, ProgramArgs, Watching};

/// Flags of `shef cloud build`.
#[derive(clap::Args)]
#[command(
    after_help = "It takes hours. A second call continues after the last step whose result is there. At the end the secret is gone from \
                  the folder: tarball and reports stay in NAME/out."
)]
pub struct BuildArgs {
    /// Folder that `shef cloud new` made
    #[arg(value_name = "NAME")]
    dir: PathBuf,
    /// Directive of place_design
    #[arg(long, value_name = "DIRECTIVE", default_value = "SSI_SpreadLogic_high")]
    place: String,
    /// Directive of route_design
    #[arg(long, value_name = "DIRECTIVE", default_value = "AggressiveExplore")]
    route: String,
    /// SHA-256 of an encrypt.tcl of another release that you have read
    #[arg(long, value_name = "SHA256")]
    encrypt_script: Option<String>,
    /// Refused: the secret would be in the checkpoint in the clear
    #[arg(long, hide = true)]
    no_encrypt: bool,
    #[command(flatten)]
    programs: ProgramArgs,
}

/// Runs `shef cloud build`.
///
/// # Errors
/// Those of the build; everything that was done is recorded.
pub fn run(output: &Output, args: &BuildArgs) -> Result<Exit, CliError> {
    interrupt::cleans_up()?;
    if args.no_encrypt {
        return Err(CloudError::NoEncryption { what: "--no-encrypt is refused".to_owned() }.into());
    }
    let options = Options {
        place: args.place.clone(),
        route: args.route.clone(),
        encrypt_script: args.encrypt_script.clone(),
        limits: args.programs.limits(),
    };
    let image = logic::read(&args.dir)?;
    let hdk = Hdk::open(Path::new(&image.hdk))?;
    let environment = |name: &str| std::env::var_os(name);
    if args.programs.dry_run {
        place::private(&args.dir)?;
        return print::plan(output, &build::plan(&args.dir, &image, &hdk, &options, environment)?);
    }
    let (folder, image) = Folder::open(&args.dir)?;
    let interrupted = print::leaves({
        let name = args.dir.display().to_string();
        move || {
            format!(
                "{name} is in memory, and holds the secret of the image until the build has ended; \
                 the same command again continues after the last step that is done"
            )
        }
    });
    let watching = Watching::new(output, "checking the folder");
    let mut step = |text: &str| watching.step(text);
    let built = build::build(&folder, &image, &hdk, &options, environment, &mut step)?;
    drop((watching, interrupted));
    let slack = built.slack_ns.map_or("not reported".to_owned(), |ns| format!("{ns} ns"));
    for (name, text) in [
        ("tarball", built.tarball.to_string()),
        ("SHA-256", built.digest.clone()),
        ("worst slack", slack),
        ("secret", format!("in none of {} files; its own file is gone", built.searched)),
        (
            "next",
            format!(
                "shef image build, then shef cloud afi {}",
                shef_console::shell::word(&args.dir)
            ),
        ),
    ] {
        print::pair(output, name, &text)?;
    }
    output.document(&built)?;
    Ok(Exit::Done)
}
