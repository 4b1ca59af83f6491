//! The Shield of a configuration around an accelerator: either the digits accelerator or that of a
//! user's folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use shef_gen::shield::Synthesis;
use shef_proto::config::Config;

use crate::Jobs;
use crate::error::place;
use crate::file::{NAME as FILE, Project, is_name, own as own_file};
use crate::program::Program;
use crate::verilog::Text;
use crate::{Error, Listed, Result, Source, SourceSet, frontend, ports, stem, sv_files};

/// Device type of the simulated card, whose images are designs as sources.
pub const TARGET: &str = "shef-sim";
/// Name of the digits accelerator.
pub const ACCELERATOR: &str = "digits-knn";
/// Top module of every accelerator.
const ACCEL: &str = "shef_accel";
/// The generated package.
const PACKAGE: &str = "shef_cfg_pkg";
/// Its file.
const PACKAGE_FILE: &str = "shef_cfg_pkg.sv";
/// The generated module `shef_accel`, in a folder so that it is no file of a project.
const WRAPPER_FILE: &str = "shef/shef_accel.sv";
/// The module that a design's digest measures, with everything below it.
const MEASURED: &str = "shef_core";
/// Folder of the digits accelerator.
const DIGITS: &str = "shell-rtl/accel/digits";
/// Endings of sources, headers, lists and descriptions.
const SOURCES: [&str; 7] = ["sv", "svh", "v", "vh", "f", "vc", "toml"];
/// Maximum size of a `shield.toml`.
const MAX_TOML: u64 = 1 << 20;

/// A design: the Shield of its configuration around its accelerator.
///
/// Its sources are read once: digest, program and configuration belong together. The digest does
/// not depend on the shell, so it is the same for a card in this process, a served card and a card
/// in a guest.
#[derive(Clone)]
pub struct Design(Arc<Contents>);

impl std::fmt::Debug for Design {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digest = hex::encode(self.0.digest);
        f.debug_struct("Design").field("name", &self.0.name).field("digest", &digest).finish()
    }
}

struct Contents {
    name: String,
    config: Config,
    parts: Parts,
    digest: [u8; 32],
    program: Program,
    files: Vec<PathBuf>,
}

/// Where the sources are that are not the Shield's.
#[derive(Debug, Clone)]
struct Parts {
    /// The user's folder and its canonical path; `None` for the digits accelerator.
    folder: Option<(PathBuf, PathBuf)>,
    /// The text of the generated package, unless it is the shipped one.
    package: Option<String>,
    /// The text of a generated module `shef_accel`, if the top module has another name.
    wrapper: Option<String>,
    /// The top module.
    top: String,
    /// The sources, unless the folder is searched for them.
    listed: Option<Listed>,
    /// Macros.
    defines: Vec<(String, String)>,
}

impl Parts {
    /// The design under a top module of the simulation shell. Modules of the Shield take precedence
    /// over files of the project.
    fn sources(&self, top: &str) -> Result<SourceSet> {
        let mut set = SourceSet::shipped(top)?;
        for (name, text) in [(PACKAGE_FILE, &self.package), (WRAPPER_FILE, &self.wrapper)] {
            set = text.iter().cloned().fold(set, |set, text| set.generated(name, text));
        }
        set.defines.clone_from(&self.defines);
        Ok(match (&self.folder, &self.listed) {
            (Some(_), Some(listed)) => set.listed(listed.clone(), ACCEL),
            (Some((_, full)), None) => set.project(full),
            (None, _) => set.search(DIGITS),
        })
    }
}

impl Design {
    /// `files` are those that were read before the sources.
    fn read(name: String, config: Config, parts: Parts, mut files: Vec<PathBuf>) -> Result<Self> {
        let measured = parts.sources(MEASURED)?.measure()?;
        if let Some((_, full)) = &parts.folder {
            check_places(&measured.sources, full)?;
        }
        check_top(&measured.sources, &parts.top, parts.listed.as_ref())?;
        let digest = measured.digest();
        files.extend(measured.sources.iter().map(|source| source.path.clone()));
        let program = Program::of(measured, &config, &name);
        Ok(Self(Arc::new(Contents { name, config, parts, digest, program, files })))
    }

    /// The digits accelerator with its shipped configuration.
    ///
    /// # Errors
    /// If sources are missing.
    pub fn digits() -> Result<Self> {
        let parts = Parts {
            folder: None,
            package: None,
            wrapper: None,
            top: ACCEL.to_owned(),
            listed: None,
            defines: Vec::new(),
        };
        Self::read(ACCELERATOR.to_owned(), digits_config()?, parts, Vec::new())
    }

    /// The same accelerator in a Shield of another configuration.
    ///
    /// # Errors
    /// If sources are missing.
    pub fn with_config(&self, config: Config) -> Result<Self> {
        let package = Some(shef_gen::shield::systemverilog(&config, Synthesis::default()));
        let parts = Parts { package, ..self.0.parts.clone() };
        Self::read(self.0.name.clone(), config, parts, Vec::new())
    }

    /// Reads and checks a user's folder, which also names the accelerator.
    ///
    /// # Errors
    /// [`Error::Folder`] if a file is missing, [`Error::Shield`] if `shield.toml` is invalid, and
    /// those of [`SourceSet::measure`].
    pub fn project(dir: &Path) -> Result<Self> {
        let bad = |what: String| Error::Folder { dir: dir.to_owned(), what };
        let full =
            dir.canonicalize().map_err(|e| bad(format!("the folder cannot be opened: {e}")))?;
        if !full.is_dir() {
            return Err(bad("it is not a folder".to_owned()));
        }
        let project = Project::read(dir, &full)?;
        let name = match project.name {
            Some(name) => name,
            None => {
                let name = full.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if !is_name(&name) {
                    return Err(bad(format!(
                        "the folder's name {name:?} names the accelerator: 1 to 64 letters, digits, '_', '-', '.'; \
                         or name it in a {FILE}"
                    )));
                }
                name
            }
        };
        let top = project.top.unwrap_or_else(|| ACCEL.to_owned());

        let toml = project.shield;
        let file = toml.file_name().unwrap_or_default().to_string_lossy().into_owned();
        std::fs::metadata(&toml).map_err(|e| bad(format!("no {file} in it: {e}")))?;
        own_file(&toml, dir)?;
        let source = shef_files::regular::read(&toml, MAX_TOML)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other))
            .map_err(|e| bad(format!("{file} cannot be read: {e}")))?;
        let shield = shef_gen::shield::parse(&source)
            .map_err(|error| Error::Shield { file: toml.clone(), error })?;

        let own = match &project.sources {
            Some(contents) => contents.listed.files.clone(),
            None => folder_sources(dir, &full, &top)?,
        };
        let package = shef_gen::shield::systemverilog(&shield.config, shield.synthesis);
        for copy in own.iter().filter(|p| stem(p).eq_ignore_ascii_case(PACKAGE)) {
            if std::fs::read(copy).map_err(|e| bad(format!("{}: {e}", copy.display())))?
                != package.as_bytes()
            {
                let what = format!(
                    "{} is not the package that shield.toml gives: remove it, or generate it anew",
                    copy.display()
                );
                return Err(bad(what));
            }
        }
        let contents = project.sources;
        let mut files = vec![dir.join(FILE), toml];
        files.extend(contents.iter().flat_map(|contents| &contents.lists).cloned());
        let parameters = contents.as_ref().map_or(&[][..], |contents| &contents.parameters);
        let wrapper = (top != ACCEL).then(|| ports::wrapper(&top, parameters));
        let (listed, defines) = match contents {
            Some(contents) => (Some(contents.listed), contents.defines),
            None => (None, Vec::new()),
        };
        let folder = Some((dir.to_owned(), full));
        let parts = Parts { folder, package: Some(package), wrapper, top, listed, defines };
        Self::read(name, shield.config, parts, files)
    }

    /// The ports of the accelerator's top module as the netlist's front end reads them, one a line.
    /// It works in `scratch`, an empty folder.
    ///
    /// # Errors
    /// [`Error::FrontEnd`]; [`Error::Top`] if a port has another direction or width.
    pub fn ports(&self, scratch: &Path) -> Result<Vec<String>> {
        let parts = &self.0.parts;
        let mut set = parts.sources(MEASURED)?;
        ACCEL.clone_into(&mut set.top);
        let sources = set.measure()?.sources;
        let ports = frontend::ports(&set, &sources, &parts.top, scratch)?;
        let memory_ports = u32::from(self.config().accelerator_ports()).max(1);
        if let Some(what) = ports::misfit(&ports, memory_ports) {
            return Err(Error::Top { place: parts.top.clone(), what });
        }
        if parts.top != ACCEL {
            // The module around the top module sets its parameters.
            frontend::elaborate(&set, &sources, ACCEL, scratch)?;
        }
        Ok(ports)
    }

    /// The top module of the accelerator.
    pub fn top(&self) -> &str {
        &self.0.parts.top
    }

    /// The files that were read for it: `shef.toml`, `shield.toml`, file lists and sources, those of
    /// the Shield too. Generated ones do not exist.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.0.files.iter().map(PathBuf::as_path)
    }

    /// The files that no output of a command replaces: [`Design::files`], those that jobs and tests
    /// read, and an output with the name of a source. Other files of the folder may be results of an
    /// earlier run.
    pub fn kept<'a>(
        &'a self,
        jobs: &'a Jobs,
        outputs: impl Iterator<Item = &'a Path>,
    ) -> impl Iterator<Item = &'a Path> {
        let is_source =
            |path: &&Path| path.extension().is_some_and(|end| SOURCES.iter().any(|e| end == *e));
        self.files().chain(jobs.files()).chain(outputs.filter(is_source))
    }

    /// The sources that are not published with the Shield's, by their names in the manifest.
    pub fn own_sources(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.program.sources()
    }

    /// Name of the accelerator.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The Shield's configuration.
    pub fn config(&self) -> &Config {
        &self.0.config
    }

    /// Digest of the design with the Shield, computed from its sources: the same that a library
    /// built from them reports.
    pub fn digest(&self) -> [u8; 32] {
        self.0.digest
    }

    /// Plaintext of an image for this design: an archive of its manifest, its configuration and its
    /// own sources (`docs/reference/image-container.md`).
    ///
    /// # Errors
    /// If the archive cannot be written.
    pub fn program(&self) -> Result<Vec<u8>> {
        self.0.program.pack()
    }

    /// The user's folder as it was given, if the accelerator is not the digits accelerator.
    pub fn folder(&self) -> Option<&Path> {
        self.0.parts.folder.as_ref().map(|(given, _)| given.as_path())
    }

    /// The sources under a top module of the simulation shell, measured below the shell.
    ///
    /// # Errors
    /// If sources are missing.
    pub fn sources(&self, top: &str) -> Result<SourceSet> {
        Ok(self.bare_sources(top)?.measure_below(MEASURED))
    }

    /// The sources of the accelerator without a Shield, under a top module of the simulation shell.
    ///
    /// # Errors
    /// If sources are missing.
    pub fn bare_sources(&self, top: &str) -> Result<SourceSet> {
        self.0.parts.sources(top)
    }
}

/// The sources of a folder without a list: `top` and the modules below it have a file of their name.
fn folder_sources(dir: &Path, full: &Path, top: &str) -> Result<Vec<PathBuf>> {
    let bad = |what: String| Error::Folder { dir: dir.to_owned(), what };
    let own = sv_files(full)?;
    if !own.iter().any(|p| stem(p) == top) {
        return Err(bad(format!(
            "no {top}.sv in it: the accelerator is a module {top} in a file of this name"
        )));
    }
    let root = crate::repo_root();
    let mut shipped = Vec::new();
    // The bench defines its own accelerator, which has the same name.
    let shells = ["sim", "system", "kernel", "aws_f2", "f2_model", "f2_native"];
    let shells = shells.map(|shell| format!("shell-rtl/shell/{shell}"));
    for folder in shells.iter().map(String::as_str).chain(["shell-rtl/rtl"]) {
        shipped.extend(sv_files(&root.join(folder))?.iter().map(|p| stem(p)));
    }
    let taken = own.iter().find(|p| shipped.iter().any(|name| name.eq_ignore_ascii_case(&stem(p))));
    match taken {
        Some(taken) => Err(bad(format!(
            "{} has the name of a module of the Shield: give it another",
            taken.display()
        ))),
        None => Ok(own),
    }
}

/// What the files of a list declare, besides packages: at most twenty names.
fn declared(listed: Option<&Listed>) -> Vec<String> {
    let mut all = Vec::new();
    for file in listed.iter().flat_map(|listed| &listed.files) {
        let bytes = std::fs::read(file).unwrap_or_default();
        let text = Text::of(&bytes);
        let names = text.declared.iter().filter(|(_, name)| !text.packages.contains(name));
        all.extend(names.map(|(_, name)| (*name).to_owned()));
    }
    all.truncate(20);
    all
}

/// Checks that every source is the Shield's, generated, or in the canonical folder of the project,
/// whatever named it: a header in a folder of headers may be a link.
fn check_places(sources: &[Source], project: &Path) -> Result<()> {
    let shipped = crate::repo_root().join("shell-rtl");
    let outside = |path: &Path| {
        path.is_absolute() && !path.starts_with(project) && !path.starts_with(&shipped)
    };
    let Some(source) = sources.iter().find(|source| outside(&source.path)) else { return Ok(()) };
    let what = format!(
        "it is outside of the project {}: copy the file into the project",
        project.display()
    );
    Err(Error::Source { place: source.path.display().to_string(), what })
}

/// Checks that one source declares the module `top`, with the ports of an accelerator.
fn check_top(sources: &[Source], top: &str, listed: Option<&Listed>) -> Result<()> {
    let declares =
        |source: &&Source| Text::of(&source.bytes).declared.iter().any(|(_, name)| *name == top);
    let Some(source) = sources.iter().find(declares) else {
        let mut what = format!("expected a module {top}, and no source of the project declares it");
        let named = declared(listed);
        if !named.is_empty() {
            what +=
                &format!("; name another one with `top`: the sources declare {}", named.join(", "));
        }
        return Err(Error::Top { place: top.to_owned(), what });
    };
    match ports::missing(&source.bytes, top) {
        None => Ok(()),
        Some((at, port)) => Err(Error::Top {
            place: place(&source.path, &source.bytes, at),
            what: format!("module {top} has no port {port}, which every accelerator has"),
        }),
    }
}

/// The configuration of the Shield around the digits accelerator: its `shield.toml`, resolved.
///
/// # Errors
/// [`Error::Shield`].
pub fn digits_config() -> Result<Config> {
    let text = include_str!("../../accel/digits/shield.toml");
    let shield = shef_gen::shield::parse(text);
    let file = Path::new(DIGITS).join("shield.toml");
    Ok(shield.map_err(|error| Error::Shield { file, error })?.config)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The DMA engine of a served card belongs to the shell.
    #[test]
    fn a_design_has_one_digest_under_every_shell() {
        let example = crate::repo_root().join("examples/vecadd");
        for design in [Design::digits().unwrap(), Design::project(&example).unwrap()] {
            for top in ["shef_sim_top", "shef_host_top"] {
                assert_eq!(
                    design.sources(top).unwrap().digest().unwrap(),
                    design.digest(),
                    "{top}"
                );
            }
        }
    }

    #[test]
    fn a_file_that_only_the_shell_would_name_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("own");
        std::fs::create_dir(&project).unwrap();
        let example = crate::repo_root().join("examples/vecadd");
        for file in ["shield.toml", "shef_accel.sv"] {
            std::fs::copy(example.join(file), project.join(file)).unwrap();
        }
        // A name in the text of the shell: the file would be built, and not measured.
        std::fs::write(project.join("obs_arvalid.sv"), "module obs_arvalid; endmodule\n").unwrap();
        let set = Design::project(&project).unwrap().sources("shef_sim_top").unwrap();
        let Err(error) = set.measure() else { panic!("a file that is not measured") };
        let message = error.to_string();
        assert!(message.contains("obs_arvalid.sv") && message.contains("rename it"), "{message}");
    }

    #[test]
    fn a_stale_package_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("own");
        std::fs::create_dir(&project).unwrap();
        let example = crate::repo_root().join("examples/vecadd");
        for file in ["shield.toml", "shef_accel.sv"] {
            std::fs::copy(example.join(file), project.join(file)).unwrap();
        }
        let plain = Design::project(&project).unwrap().digest();
        assert_eq!(plain, Design::project(&example).unwrap().digest(), "wherever it lies");
        let package = Design::project(&project).unwrap().0.parts.package.clone().unwrap();
        let copy = project.join("shef_cfg_pkg.sv");
        std::fs::write(&copy, &package).unwrap();
        assert_eq!(Design::project(&project).unwrap().digest(), plain);
        std::fs::write(&copy, package.clone() + "\n").unwrap();
        let message = Design::project(&project).unwrap_err().to_string();
        assert!(
            message.contains("shef_cfg_pkg.sv is not the package that shield.toml gives"),
            "{message}"
        );
        // Nor may a file have the name of a module of the Shield, in any letter case.
        std::fs::rename(&copy, project.join("Shef_Shield.sv")).unwrap();
        assert!(
            Design::project(&project)
                .unwrap_err()
                .to_string()
                .contains("name of a module of the Shield")
        );
    }
}
