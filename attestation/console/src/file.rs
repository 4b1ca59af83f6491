//! Files that commands read and write, and their names in documents.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use shef_files::id;
use shef_files::staged::Staged;

use crate::{CliError, interrupt};

/// Device and inode of every file that this process read as an input, with its name: outputs must
/// not replace them.
static INPUTS: Mutex<Vec<(PathBuf, (u64, u64))>> = Mutex::new(Vec::new());

/// Records an input that other code reads: no output replaces it.
pub fn is_input(path: &Path) {
    if let Some(id) = path.metadata().ok().as_ref().map(id) {
        INPUTS.lock().unwrap_or_else(PoisonError::into_inner).push((path.to_owned(), id));
    }
}

/// Records the files below a folder that other code reads, such as the sources of a project. Links
/// to folders are not followed, as that code does not follow them. If there is no folder, that code
/// reports it.
pub fn are_inputs(folder: &Path) {
    /// Folders within folders; more are no sources.
    const DEPTH: usize = 32;
    fn below(folder: &Path, depth: usize) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            is_input(&entry.path());
            if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                below(&entry.path(), depth - 1);
            }
        }
    }
    below(folder, DEPTH);
}

/// A temporary folder that an interrupt removes, and that is removed when this is dropped.
#[derive(Debug)]
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// Makes it, for this user only.
    ///
    /// # Errors
    /// SHEF-CLI-015.
    pub fn new() -> Result<Self, CliError> {
        interrupt::cleans_up()?;
        let mut parts = interrupt::parts();
        let folder = tempfile::tempdir();
        let folder = folder.map_err(|e| CliError::write_file(&std::env::temp_dir(), &e))?.keep();
        parts.push(folder.clone());
        Ok(Self(folder))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // The lock is held until the folder is gone: an interrupt waits for that.
        let mut parts = interrupt::parts();
        interrupt::remove(&self.0);
        parts.retain(|part| *part != self.0);
    }
}

/// Reads an entire regular file of at most `most` bytes.
///
/// # Errors
/// SHEF-CLI-010, for pipes and devices too; SHEF-CLI-019 for a larger one.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, CliError> {
    is_input(path);
    shef_files::regular::read(path, most).map_err(|e| match e.kind() {
        std::io::ErrorKind::FileTooLarge => {
            CliError::new("SHEF-CLI-019", format!("{} has more than {most} bytes", path.display()))
        }
        _ => CliError::read_file(path, &e),
    })
}

/// Writes or replaces an output file ([`Staged::replacing`]). An interrupt leaves no part of it.
///
/// # Errors
/// SHEF-CLI-015, with the file's name; a failed write leaves no partial file.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), CliError> {
    write_staged(path, Staged::replacing, bytes.as_ref())
}

/// Writes a file that must not exist, for its owner only ([`Staged::new_secret`]).
///
/// # Errors
/// As [`write()`].
pub fn write_new_secret(path: &Path, bytes: &[u8]) -> Result<(), CliError> {
    write_staged(path, Staged::new_secret, bytes)
}

fn write_staged(
    path: &Path,
    stage: impl FnOnce(&Path) -> std::io::Result<Staged>,
    bytes: &[u8],
) -> Result<(), CliError> {
    let mut file = registered(path, stage)?;
    let part = file.part().map(Path::to_owned);
    let wrote = file.fill(bytes);
    // A pipe or device may be slow: an interrupt ends the write.
    let mut parts = part.is_some().then(interrupt::parts);
    // The drop of a file that is not placed removes its part, before it is forgotten.
    let wrote = wrote.and_then(|()| file.place()).and_then(|()| file.keep());
    if let Some(parts) = &mut parts {
        parts.retain(|one| Some(one) != part.as_ref());
    }
    wrote.map_err(|e| CliError::write_file(path, &e))
}

/// Prepares an output file, whose part an interrupt removes.
fn registered(
    path: &Path,
    stage: impl FnOnce(&Path) -> std::io::Result<Staged>,
) -> Result<Staged, CliError> {
    interrupt::cleans_up()?;
    let mut parts = interrupt::parts();
    let file = stage(path).map_err(|e| CliError::write_file(path, &e))?;
    parts.extend(file.part().map(Path::to_owned));
    Ok(file)
}

/// All output files of a command. They are prepared before the command makes a request that cannot
/// be repeated. The preparation checks that each file is writable, that no two are the same file,
/// that no output is an input, and that no secret is replaced. At the end, either all files get
/// their names or no file does. A file that is to be replaced and has no content this time is
/// removed: no result of an earlier run lies beside those of this one. Pipes and devices are written
/// last: if one fails, the files stay.
#[derive(Default)]
pub struct Outputs {
    files: Vec<Prepared>,
    /// Folders whose keys are inputs.
    keys: Vec<PathBuf>,
}

/// One of the files of [`Outputs`].
#[derive(Debug, Clone, Copy)]
pub struct Slot(usize);

/// A file of [`Outputs`].
struct Prepared {
    /// As the user wrote it.
    path: PathBuf,
    file: Staged,
    replaces: bool,
    filled: bool,
}

impl Prepared {
    /// Whether an earlier run left a file that this one removes.
    fn is_stale(&self) -> bool {
        self.replaces && !self.filled && !self.file.is_direct() && self.file.path().is_file()
    }
}

impl Outputs {
    /// Outputs of a command that reads or makes the keys in these folders. The folders exist.
    ///
    /// # Errors
    /// SHEF-CLI-015 if a folder cannot be found.
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a Path>) -> Result<Self, CliError> {
        let real = |path: &Path| path.canonicalize().map_err(|e| CliError::write_file(path, &e));
        Ok(Self { files: Vec::new(), keys: keys.into_iter().map(real).collect::<Result<_, _>>()? })
    }

    /// A file to write or replace, or to remove if [`Outputs::fill`] does not follow.
    ///
    /// # Errors
    /// SHEF-CLI-015 if it cannot be written or would replace a secret, SHEF-CLI-026 if it is
    /// another file of the command.
    pub fn file(&mut self, path: &Path) -> Result<Slot, CliError> {
        self.add(path, true, Staged::replacing)
    }

    /// A file that must not exist.
    ///
    /// # Errors
    /// As [`Outputs::file`].
    pub fn new_file(&mut self, path: &Path) -> Result<Slot, CliError> {
        self.add(path, false, Staged::new_file)
    }

    /// A file that must not exist, for its owner only.
    ///
    /// # Errors
    /// As [`Outputs::file`].
    pub fn new_secret(&mut self, path: &Path) -> Result<Slot, CliError> {
        self.add(path, false, Staged::new_secret)
    }

    fn add(
        &mut self,
        path: &Path,
        replaces: bool,
        stage: impl FnOnce(&Path) -> std::io::Result<Staged>,
    ) -> Result<Slot, CliError> {
        let file = registered(path, stage)?;
        self.add_checked(Prepared { path: path.to_owned(), file, replaces, filled: false })?;
        Ok(Slot(self.files.len() - 1))
    }

    /// Checks a file that a library or another program will write, such as the waves of a simulated
    /// card, as [`Outputs::file`] does, after all outputs. It is not an output of the command, which
    /// decides what an interrupt does.
    ///
    /// # Errors
    /// As [`Outputs::file`].
    pub fn elsewhere(&mut self, path: &Path) -> Result<(), CliError> {
        let file = Staged::replacing(path).map_err(|e| CliError::write_file(path, &e))?;
        let one = Prepared { path: path.to_owned(), file, replaces: true, filled: false };
        self.add_checked(one)?;
        self.files.pop();
        Ok(())
    }

    /// Adds a file that is no other output, no input and no secret.
    fn add_checked(&mut self, new: Prepared) -> Result<(), CliError> {
        let path = new.path.clone();
        if let Some(other) = self.files.iter().find(|other| other.file.is_also(&new.file)) {
            return Err(clash(
                &path,
                &format!("is the same file as {}, another output", other.path.display()),
            ));
        }
        let private = new.file.is_private();
        self.files.push(new);
        self.check()?;
        if private {
            let message = format!(
                "{} is readable only by its owner, as secrets are, and is not replaced: remove it \
                first",
                path.display()
            );
            return Err(CliError::new("SHEF-CLI-015", message));
        }
        Ok(())
    }

    /// Checks that no output is an input.
    fn check(&self) -> Result<(), CliError> {
        let inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
        for Prepared { path, file, .. } in self.files.iter().filter(|one| !one.file.is_direct()) {
            if let Some((input, _)) = inputs.iter().find(|(_, id)| file.is(Some(*id))) {
                return Err(clash(
                    path,
                    &format!("is the same file as {}, an input", input.display()),
                ));
            }
            let name = file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
            let kept = [".key", ".pub", ".der", ".lock"].iter().any(|end| name.ends_with(end));
            if let Some(folder) =
                self.keys.iter().find(|folder| kept && file.path().parent() == Some(folder))
            {
                return Err(clash(
                    path,
                    &format!("has the name of a key in the key folder {}", folder.display()),
                ));
            }
        }
        Ok(())
    }

    /// Sets the contents of a file.
    ///
    /// # Errors
    /// SHEF-CLI-015.
    pub fn fill(&mut self, slot: Slot, bytes: impl AsRef<[u8]>) -> Result<(), CliError> {
        let one = &mut self.files[slot.0];
        one.filled = true;
        one.file.fill(bytes.as_ref()).map_err(|e| CliError::write_file(&one.path, &e))
    }

    /// Gives all filled files their names, removes those of an earlier run that are not filled, then
    /// writes to pipes and devices.
    ///
    /// # Errors
    /// SHEF-CLI-015 and SHEF-CLI-026: no file is new, and no file has changed. If a pipe or device
    /// fails, the files stay, and the message names them: the response in them may not be given
    /// twice.
    pub fn place(mut self) -> Result<(), CliError> {
        // Includes files that were read or made since the first check.
        self.check()?;
        self.files.retain(|one| one.filled || one.is_stale());
        let direct: Vec<_> = self.files.extract_if(.., |one| one.file.is_direct()).collect();
        // An interrupt takes effect before all files or after them.
        let mut parts = interrupt::parts();
        for one in &mut self.files {
            if let Err(error) = one.file.place() {
                let error = CliError::write_file(&one.path, &error);
                self.files.clear();
                return Err(error);
            }
        }
        let placed: Vec<PathBuf> =
            self.files.iter().filter_map(|one| one.file.part().map(Path::to_owned)).collect();
        let (mut done, mut kept) = (Ok(()), Vec::new());
        for Prepared { path, file, filled, .. } in self.files.drain(..) {
            let name = file.path().to_owned();
            let mut ended = file.keep();
            if filled {
                kept.push(path.display().to_string());
            } else {
                ended = ended.and_then(|()| std::fs::remove_file(name));
            }
            done = done.and(ended.map_err(|e| CliError::write_file(&path, &e)));
        }
        parts.retain(|part| !placed.contains(part));
        // A reader may be slow: an interrupt ends the write.
        drop(parts);
        for Prepared { path, mut file, .. } in direct {
            let wrote = file.place().map_err(|e| {
                let mut error = CliError::write_file(&path, &e);
                if !kept.is_empty() {
                    error.message.push_str(&format!("; written and kept: {}", kept.join(", ")));
                }
                error
            });
            done = done.and(wrote);
        }
        done
    }
}

fn clash(path: &Path, what: &str) -> CliError {
    CliError::new("SHEF-CLI-026", format!("the output {} {what}", path.display()))
}

/// A path in a JSON document. In a name that is not UTF-8, each invalid byte becomes U+FFFD: a
/// document is text, and the command has done its work.
#[derive(Debug, Clone, serde::Serialize)]
#[serde(transparent)]
pub struct PathText(String);

impl std::fmt::Display for PathText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<P: AsRef<Path>> From<P> for PathText {
    fn from(path: P) -> Self {
        Self(path.as_ref().display().to_string())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn files_stay_when_a_device_fails() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("box");
        let mut outputs = Outputs::new([]).unwrap();
        // In both orders.
        let full = outputs.file(Path::new("/dev/full")).unwrap();
        let slot = outputs.new_secret(&file).unwrap();
        outputs.fill(full, "receipt").unwrap();
        outputs.fill(slot, "key").unwrap();
        let error = outputs.place().unwrap_err();
        assert_eq!(error.code, "SHEF-CLI-015");
        assert!(
            error.message.contains("/dev/full")
                && error.message.contains(&format!("kept: {}", file.display())),
            "{error}"
        );
        assert_eq!(std::fs::read(&file).unwrap(), b"key");
    }

    #[test]
    fn an_output_without_content_does_not_stay_from_an_earlier_run() {
        let dir = tempfile::tempdir().unwrap();
        let [old, new, other] = ["old", "new", "other"].map(|name| dir.path().join(name));
        std::fs::write(&old, "accepted").unwrap();
        let mut outputs = Outputs::new([]).unwrap();
        let slot = outputs.file(&new).unwrap();
        outputs.file(&old).unwrap();
        outputs.new_file(&other).unwrap();
        outputs.fill(slot, "evidence").unwrap();
        // Of another program, since then.
        std::fs::write(&other, "theirs").unwrap();
        assert_eq!(std::fs::read(&old).unwrap(), b"accepted", "until the others are there");
        outputs.place().unwrap();
        assert!(!old.exists());
        assert_eq!(std::fs::read(&new).unwrap(), b"evidence");
        assert_eq!(std::fs::read(&other).unwrap(), b"theirs");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_file_of_another_program_is_no_input_no_other_output_and_stays() {
        let dir = tempfile::tempdir().unwrap();
        let [input, wave, out] = ["input", "wave", "out"].map(|name| dir.path().join(name));
        std::fs::write(&input, "input").unwrap();
        read(&input, 100).unwrap();
        // Files of other tests do not get its inode.
        let _open = std::os::fd::IntoRawFd::into_raw_fd(std::fs::File::open(&input).unwrap());
        let outputs = || Outputs::new([]).unwrap();
        assert_eq!(outputs().elsewhere(&input).unwrap_err().code, "SHEF-CLI-026");
        // A file that is missing, and that of an earlier run.
        for _ in 0..2 {
            let mut both = outputs();
            both.file(&wave).unwrap();
            assert_eq!(both.elsewhere(&wave).unwrap_err().code, "SHEF-CLI-026");
            drop(both);
            let mut outputs = outputs();
            let slot = outputs.file(&out).unwrap();
            outputs.elsewhere(&wave).unwrap();
            std::fs::write(&wave, "waves").unwrap();
            outputs.fill(slot, "result").unwrap();
            outputs.place().unwrap();
            assert_eq!(std::fs::read(&wave).unwrap(), b"waves");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "no part stays");
        }
    }

    /// An interrupt takes this lock and removes what is registered.
    fn unregistered(there: impl Fn() -> Vec<PathBuf>) -> Vec<PathBuf> {
        let parts = interrupt::parts();
        there().into_iter().filter(|path| !parts.contains(path)).collect()
    }

    #[test]
    fn a_temporary_folder_is_registered_until_it_is_gone() {
        let folder = TempFolder::new().unwrap();
        let path = folder.path().to_owned();
        assert_eq!(unregistered(|| vec![path.clone()]), [""; 0].map(PathBuf::from));
        for n in 0..2000 {
            std::fs::write(path.join(n.to_string()), "secret").unwrap();
        }
        let dropped = std::thread::spawn(move || drop(folder));
        while !dropped.is_finished() {
            let left = unregistered(|| path.exists().then(|| path.clone()).into_iter().collect());
            assert!(left.is_empty(), "it is there, and no interrupt removes it");
        }
        assert!(!path.exists());
    }

    #[test]
    fn every_part_of_a_file_is_registered() {
        let dir = tempfile::tempdir().unwrap();
        let parts = || {
            let names = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
            names.filter(|path| path.to_string_lossy().ends_with(".part")).collect()
        };
        std::thread::scope(|scope| {
            let writes = scope.spawn(|| {
                let content = vec![0; 4 << 20];
                for n in 0..8 {
                    write_new_secret(&dir.path().join(n.to_string()), &content).unwrap();
                    write(&dir.path().join("0"), &content).unwrap();
                }
            });
            while !writes.is_finished() {
                assert!(unregistered(parts).is_empty(), "no interrupt removes it");
            }
            writes.join().unwrap();
        });
        assert_eq!(parts(), [""; 0].map(PathBuf::from));
        let left = interrupt::parts();
        assert!(!left.iter().any(|part| part.starts_with(dir.path())), "{left:?}");
    }

    #[test]
    fn no_output_replaces_a_secret() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let [secret, open] = ["signing.key", "result"].map(|name| dir.path().join(name));
        for (path, mode) in [(&secret, 0o600), (&open, 0o644)] {
            std::fs::write(path, "before").unwrap();
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        }
        let mut outputs = Outputs::new([]).unwrap();
        let slot = outputs.file(&open).unwrap();
        assert_eq!(outputs.file(&secret).unwrap_err().code, "SHEF-CLI-015");
        outputs.fill(slot, "new").unwrap();
        drop(outputs);
        assert_eq!(std::fs::read(&secret).unwrap(), b"before");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
