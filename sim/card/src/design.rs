//! A design for simulated cards: the Shield of a configuration around an accelerator, either the
//! digits accelerator or that of a folder with `shield.toml` and SystemVerilog.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sha2::{Digest, Sha256};
use shef_gen::shield::Synthesis;
use shef_proto::config::Config;
use shef_rtl::{DesignSpec, module_spec};

use crate::program::Program;
use crate::{ACCELERATOR, CardError};

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
    /// The generated package, unless it is the shipped one.
    package: Option<PathBuf>,
}

impl Parts {
    /// The design under a top module of the simulation shell. Modules of the Shield take precedence
    /// over files of the project.
    fn spec(&self, top: &str) -> Result<DesignSpec, CardError> {
        let spec = self.package.iter().fold(module_spec(top)?, DesignSpec::source);
        Ok(match &self.folder {
            Some((_, full)) => spec.project(full),
            None => spec.search(DIGITS),
        })
    }
}

impl Design {
    fn read(name: String, config: Config, parts: Parts) -> Result<Self, CardError> {
        let measured = parts.spec(MEASURED)?.measure()?;
        let digest = measured.digest();
        let program = Program::of(measured, &config, &name);
        Ok(Self(Arc::new(Contents { name, config, parts, digest, program })))
    }

    /// The digits accelerator with its shipped configuration.
    ///
    /// # Errors
    /// If sources are missing.
    pub fn digits() -> Result<Self, CardError> {
        let parts = Parts { folder: None, package: None };
        Self::read(ACCELERATOR.to_owned(), crate::config()?, parts)
    }

    /// The same accelerator in a Shield of another configuration.
    ///
    /// # Errors
    /// If sources are missing, or the generated package cannot be written.
    pub fn with_config(&self, config: Config) -> Result<Self, CardError> {
        let package = Some(write_package(&config, Synthesis::default())?);
        Self::read(self.0.name.clone(), config, Parts { package, ..self.0.parts.clone() })
    }

    /// Reads and checks a user's folder, which also names the accelerator.
    ///
    /// # Errors
    /// [`CardError::Project`] if a file is missing, [`CardError::Shield`] if `shield.toml` is
    /// invalid.
    pub fn project(dir: &Path) -> Result<Self, CardError> {
        let bad = |what: String| CardError::Project { dir: dir.to_owned(), what };
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
            .map_err(|error| CardError::Shield { file: toml, error })?;

        let stem =
            |p: &Path| p.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        let own = shef_rtl::sv_files(&full)?;
        if !own.iter().any(|p| stem(p) == ACCEL) {
            return Err(bad(format!(
                "no {ACCEL}.sv in it: the accelerator is a module {ACCEL} in a file of this name"
            )));
        }
        let root = shef_rtl::repo_root();
        let mut shipped = Vec::new();
        for folder in ["shell-rtl/rtl", "shell-rtl/shell/sim"] {
            shipped.extend(shef_rtl::sv_files(&root.join(folder))?.iter().map(|p| stem(p)));
        }
        if let Some(taken) =
            own.iter().find(|p| shipped.iter().any(|name| name.eq_ignore_ascii_case(&stem(p))))
        {
            return Err(bad(format!(
                "{} has the name of a module of the Shield: give it another",
                taken.display()
            )));
        }
        let package = write_package(&shield.config, shield.synthesis)?;
        let generated =
            std::fs::read(&package).map_err(|e| bad(format!("{}: {e}", package.display())))?;
        for copy in own.iter().filter(|p| stem(p).eq_ignore_ascii_case(PACKAGE)) {
            if std::fs::read(copy).map_err(|e| bad(format!("{}: {e}", copy.display())))?
                != generated
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
    pub fn program(&self) -> Result<Vec<u8>, CardError> {
        self.0.program.pack()
    }

    /// The user's folder as it was given, if the accelerator is not the digits accelerator.
    pub fn folder(&self) -> Option<&Path> {
        self.0.parts.folder.as_ref().map(|(given, _)| given.as_path())
    }

    /// The design under a top module of the simulation shell, measured below the shell.
    pub(crate) fn spec(&self, top: &str) -> Result<DesignSpec, CardError> {
        Ok(self.0.parts.spec(top)?.measure_below(MEASURED))
    }

    /// The accelerator without a Shield, under a top module of the simulation shell.
    pub(crate) fn bare_spec(&self, top: &str) -> Result<DesignSpec, CardError> {
        self.0.parts.spec(top)
    }
}

/// Writes `shef_cfg_pkg.sv` to the build cache, in a separate folder for each content.
fn write_package(config: &Config, synthesis: Synthesis) -> Result<PathBuf, CardError> {
    let text = shef_gen::shield::systemverilog(config, synthesis);
    let id: String = Sha256::digest(&text).iter().take(16).map(|b| format!("{b:02x}")).collect();
    let dir = shef_rtl::cache_dir().join("projects").join(id);
    let file = dir.join(format!("{PACKAGE}.sv"));
    if std::fs::read_to_string(&file).is_ok_and(|old| old == text) {
        return Ok(file);
    }
    let failed = |e: std::io::Error| CardError::Project {
        dir: dir.clone(),
        what: format!("the package cannot be written: {e}"),
    };
    std::fs::create_dir_all(&dir).map_err(failed)?;
    // Another process, or another thread of this one, may be writing the same.
    static WRITERS: AtomicU64 = AtomicU64::new(0);
    let writer = WRITERS.fetch_add(1, Ordering::Relaxed);
    let part = dir.join(format!("{PACKAGE}.{}.{writer}.part", std::process::id()));
    std::fs::write(&part, text).and_then(|()| std::fs::rename(&part, &file)).map_err(failed)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use shef_proto::config::{OnFault, Region, Set};
    use std::sync::Barrier;

    /// The DMA engine of a served card belongs to the shell.
    #[test]
    fn a_design_has_one_digest_under_every_shell() {
        let example = shef_rtl::repo_root().join("examples/vecadd");
        for design in [Design::digits().unwrap(), Design::project(&example).unwrap()] {
            for top in ["shef_sim_top", "shef_host_top"] {
                assert_eq!(design.spec(top).unwrap().digest().unwrap(), design.digest(), "{top}");
            }
        }
    }

    #[test]
    fn a_file_that_only_the_shell_would_name_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("own");
        std::fs::create_dir(&project).unwrap();
        let example = shef_rtl::repo_root().join("examples/vecadd");
        for file in ["shield.toml", "shef_accel.sv"] {
            std::fs::copy(example.join(file), project.join(file)).unwrap();
        }
        // A name in the text of the shell: the file would be built, and not measured.
        std::fs::write(project.join("obs_arvalid.sv"), "module obs_arvalid; endmodule\n").unwrap();
        let spec = Design::project(&project).unwrap().spec("shef_sim_top").unwrap();
        let Err(error) = spec.measure() else { panic!("a file that is not measured") };
        let message = error.to_string();
        assert!(message.contains("obs_arvalid.sv") && message.contains("rename it"), "{message}");
    }

    #[test]
    fn a_stale_package_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let project = dir.path().join("own");
        std::fs::create_dir(&project).unwrap();
        let example = shef_rtl::repo_root().join("examples/vecadd");
        for file in ["shield.toml", "shef_accel.sv"] {
            std::fs::copy(example.join(file), project.join(file)).unwrap();
        }
        let plain = Design::project(&project).unwrap().digest();
        assert_eq!(plain, Design::project(&example).unwrap().digest(), "wherever it lies");
        let package = Design::project(&project).unwrap().0.parts.package.clone().unwrap();
        let copy = project.join("shef_cfg_pkg.sv");
        std::fs::copy(&package, &copy).unwrap();
        assert_eq!(Design::project(&project).unwrap().digest(), plain);
        std::fs::write(&copy, [&std::fs::read(&package).unwrap()[..], b"\n"].concat()).unwrap();
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

    #[test]
    fn threads_that_write_one_package_at_once_all_have_it() {
        // A size that no other test uses, so that this folder can be deleted here.
        let region = Region {
            name: "raced".into(),
            size: 0x7_7000,
            chunk: 4096,
            tag_base: 0x10_0000,
            ..Region::default()
        };
        let config = Config::new(OnFault::Shield, 1, vec![Set::default()], vec![region]).unwrap();
        let file = write_package(&config, Synthesis::default()).unwrap();
        let together = Barrier::new(8);
        for _ in 0..20 {
            std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
            std::thread::scope(|scope| {
                let writers: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(|| {
                            together.wait();
                            write_package(&config, Synthesis::default())
                        })
                    })
                    .collect();
                for writer in writers {
                    assert_eq!(writer.join().unwrap().unwrap(), file);
                }
            });
        }
    }
}
