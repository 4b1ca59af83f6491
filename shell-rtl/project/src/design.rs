//! The Shield of a configuration around an accelerator: either the digits accelerator or that of a
//! user's folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use shef_gen::shield::Synthesis;
use shef_proto::config::Config;

use crate::program::Program;
use crate::{Error, Result, SourceSet, stem, sv_files};

/// Device type of the simulated card, whose images are designs as sources.
pub const TARGET: &str = "shef-sim";
/// Name of the digits accelerator.
pub const ACCELERATOR: &str = "digits-knn";
/// Top module of every accelerator.
const ACCEL: &str = "shef_accel";
/// The generated package.
const PACKAGE: &str = "shef_cfg_pkg";
/// The module that a design's digest measures, with everything below it.
const MEASURED: &str = "shef_core";
/// Folder of the digits accelerator.
const DIGITS: &str = "shell-rtl/accel/digits";
/// Maximum size of a `shield.toml`.
const MAX_TOML: u64 = 1 << 20;

/// A design: the Shield of its configuration around its accelerator.
///
/// Its sources are read once: digest, program and configuration belong together. The digest does
/// not depend on the shell, so it is the same for a card in this process, a served card and a card
/// in a guest.
#[derive(Debug, Clone)]
pub struct Design(Arc<Contents>);

#[derive(Debug)]
struct Contents {
    name: String,
    config: Config,
    parts: Parts,
    digest: [u8; 32],
    program: Program,
}

/// Where the sources are that are not the Shield's.
#[derive(Debug, Clone)]
struct Parts {
    /// The user's folder and its canonical path; `None` for the digits accelerator.
    folder: Option<(PathBuf, PathBuf)>,
    /// The text of the generated package, unless it is the shipped one.
    package: Option<String>,
}

impl Parts {
    /// The design under a top module of the simulation shell. Modules of the Shield take precedence
    /// over files of the project.
    fn sources(&self, top: &str) -> Result<SourceSet> {
        let package = self.package.iter().cloned();
        let set = package.fold(SourceSet::shipped(top)?, |set, text| {
            set.generated(&format!("{PACKAGE}.sv"), text)
        });
        Ok(match &self.folder {
            Some((_, full)) => set.project(full),
            None => set.search(DIGITS),
        })
    }
}

impl Design {
    fn read(name: String, config: Config, parts: Parts) -> Result<Self> {
        let measured = parts.sources(MEASURED)?.measure()?;
        let digest = measured.digest();
        let program = Program::of(measured, &config, &name);
        Ok(Self(Arc::new(Contents { name, config, parts, digest, program })))
    }

    /// The digits accelerator with its shipped configuration.
    ///
    /// # Errors
    /// If sources are missing.
    pub fn digits() -> Result<Self> {
        let parts = Parts { folder: None, package: None };
        Self::read(ACCELERATOR.to_owned(), digits_config()?, parts)
    }

    /// The same accelerator in a Shield of another configuration.
    ///
    /// # Errors
    /// If sources are missing.
    pub fn with_config(&self, config: Config) -> Result<Self> {
        let package = Some(shef_gen::shield::systemverilog(&config, Synthesis::default()));
        Self::read(self.0.name.clone(), config, Parts { package, ..self.0.parts.clone() })
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
        let name = full.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let fits = (1..=64).contains(&name.len())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
        if !fits {
            return Err(bad(format!(
                "the folder's name {name:?} names the accelerator: 1 to 64 letters, digits, '_', '-', '.'"
            )));
        }

        let toml = dir.join("shield.toml");
        let meta =
            std::fs::metadata(&toml).map_err(|e| bad(format!("no shield.toml in it: {e}")))?;
        if !meta.is_file() {
            return Err(bad("shield.toml is no regular file".to_owned()));
        }
        let len = meta.len();
        if len > MAX_TOML {
            return Err(bad(format!("shield.toml has {len} bytes, at most {MAX_TOML}")));
        }
        let source = shef_files::regular::read(&toml, MAX_TOML)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other))
            .map_err(|e| bad(format!("shield.toml cannot be read: {e}")))?;
        let shield = shef_gen::shield::parse(&source)
            .map_err(|error| Error::Shield { file: toml, error })?;

        let own = sv_files(&full)?;
        if !own.iter().any(|p| stem(p) == ACCEL) {
            return Err(bad(format!(
                "no {ACCEL}.sv in it: the accelerator is a module {ACCEL} in a file of this name"
            )));
        }
        let root = crate::repo_root();
        let mut shipped = Vec::new();
        for folder in ["shell-rtl/rtl", "shell-rtl/shell/sim"] {
            shipped.extend(sv_files(&root.join(folder))?.iter().map(|p| stem(p)));
        }
        if let Some(taken) =
            own.iter().find(|p| shipped.iter().any(|name| name.eq_ignore_ascii_case(&stem(p))))
        {
            return Err(bad(format!(
                "{} has the name of a module of the Shield: give it another",
                taken.display()
            )));
        }
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
        Self::read(
            name,
            shield.config,
            Parts { folder: Some((dir.to_owned(), full)), package: Some(package) },
        )
    }

    /// Name of the accelerator: that of the folder.
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
                assert_eq!(design.sources(top).unwrap().digest().unwrap(), design.digest(), "{top}");
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
