//! `shef new`: a project from a template, which passes its own tests.

use std::path::{Path, PathBuf};

use serde::Serialize;
use shef_console::file::Outputs;
use shef_console::{CliError, Output, folder, shell};

/// Name of the project in the files of a template.
const NAME: &str = "@NAME@";

/// The templates, in `templates`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Template {
    /// Bursts from an input region to an output region, with a small computation
    Stream,
    /// Random accesses to a table in a scratch region
    Random,
    /// Registers only: no card memory
    Registers,
}

/// Flags of `shef new`.
#[derive(clap::Args)]
pub struct NewArgs {
    /// Folder of the project: missing or empty; its last part is the project's name
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// What the project begins with
    #[arg(long, value_enum, default_value_t = Template::Stream)]
    template: Template,
}

#[derive(Serialize)]
struct Made {
    name: String,
    folder: String,
    files: Vec<&'static str>,
}

macro_rules! files {
    ($folder:literal) => {
        [
            ("shef.toml", include_str!(concat!("../templates/", $folder, "/shef.toml"))),
            ("shield.toml", include_str!(concat!("../templates/", $folder, "/shield.toml"))),
            ("shef_accel.sv", include_str!(concat!("../templates/", $folder, "/shef_accel.sv"))),
            ("model.py", include_str!(concat!("../templates/", $folder, "/model.py"))),
            ("README.md", include_str!(concat!("../templates/", $folder, "/README.md"))),
            (".gitignore", include_str!("../templates/gitignore")),
        ]
    };
}

impl Template {
    fn files(self) -> [(&'static str, &'static str); 6] {
        match self {
            Self::Stream => files!("stream"),
            Self::Random => files!("random"),
            Self::Registers => files!("registers"),
        }
    }
}

/// The last part of a path, also of one such as `.`.
fn name_of(dir: &Path) -> Result<String, CliError> {
    let full = std::path::absolute(dir).map_err(|e| CliError::write_file(dir, &e))?;
    let full = full.canonicalize().unwrap_or(full);
    let name = full.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if shef_project::is_name(&name) {
        return Ok(name);
    }
    let what = format!(
        "the project's name is the last part of its folder: expected 1 to 64 letters, digits, '_', '-', '.', found {name:?}"
    );
    Err(CliError::new("SHEF-CLI-001", what))
}

/// Runs the command.
///
/// # Errors
/// A folder that is not empty, a name that no project can have, and errors of the file system;
/// nothing is written then.
pub fn run(output: &Output, args: &NewArgs) -> Result<(), CliError> {
    let dir = &args.dir;
    let name = name_of(dir)?;
    folder::is_ours(dir, &[], &[], |_| false)?;
    let is_new = !dir.exists();
    if is_new {
        std::fs::create_dir(dir).map_err(|e| CliError::write_file(dir, &e))?;
    }
    let files = args.template.files();
    let written = write(dir, &name, &files);
    if written.is_err() && is_new {
        // It fails if another program has written something there.
        let _ = std::fs::remove_dir(dir);
    }
    written?;
    let made = files.map(|(file, _)| file);
    output.line(format_args!("wrote the project {name}: {}", made.join(", ")))?;
    output.line(format_args!("next: shef test {}, and README.md there", shell::word(dir)))?;
    output.document(&Made { name, folder: dir.display().to_string(), files: made.to_vec() })
}

fn write(dir: &Path, name: &str, files: &[(&str, &str)]) -> Result<(), CliError> {
    let mut outputs = Outputs::new([])?;
    for (file, text) in files {
        let slot = outputs.new_file(&dir.join(file))?;
        outputs.fill(slot, text.replace(NAME, name))?;
    }
    outputs.place()
}
