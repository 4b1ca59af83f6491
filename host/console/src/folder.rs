//! Folders that commands make: whole or not there.

use std::fs;
use std::path::{Path, PathBuf};

use shef::files::{beside, exchange, rename_new};

use crate::{CliError, file};

/// A folder that is filled beside its final name. Dropped before it is placed, it is removed, with
/// the files that were written into it and nothing else.
#[derive(Debug)]
pub struct NewFolder {
    part: PathBuf,
    files: Vec<String>,
    placed: bool,
}

impl NewFolder {
    /// Makes it beside `path`, whose parent exists.
    ///
    /// # Errors
    /// SHEF-CLI-015.
    pub fn beside(path: &Path) -> Result<Self, CliError> {
        let part = beside(path).map_err(|e| CliError::write_file(path, &e))?;
        fs::create_dir(&part).map_err(|e| CliError::write_file(path, &e))?;
        Ok(Self { part, files: Vec::new(), placed: false })
    }

    /// Writes a file into it.
    ///
    /// # Errors
    /// SHEF-CLI-015.
    pub fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), CliError> {
        self.files.push(name.to_owned());
        file::write(&self.part.join(name), bytes)
    }

    /// Gives it a name that nothing has.
    ///
    /// # Errors
    /// SHEF-CLI-015, where something has it too.
    pub fn place(mut self, path: &Path) -> Result<(), CliError> {
        rename_new(&self.part, path).map_err(|e| CliError::write_file(path, &e))?;
        self.placed = true;
        Ok(())
    }

    /// Gives it the name of a folder, at one moment, and what had the name another, if `check`
    /// agrees to what that turns out to be. The old folder's new name.
    ///
    /// # Errors
    /// SHEF-CLI-015 and that of `check`: the old folder is in its place.
    pub fn replace(mut self, path: &Path, check: impl FnOnce(&Path) -> Result<(), CliError>) -> Result<PathBuf, CliError> {
        let failed = |e| CliError::write_file(path, &e);
        if exchange(&self.part, path).is_ok() {
            if let Err(error) = check(&self.part) {
                exchange(&self.part, path).map_err(failed)?;
                return Err(error);
            }
            self.placed = true;
            return Ok(self.part.clone());
        }
        // Without that call there is a moment without a folder; what a crash leaves then is found by
        // its name.
        let aside = beside(path).map_err(failed)?;
        fs::rename(path, &aside).map_err(failed)?;
        let done = check(&aside).and_then(|()| rename_new(&self.part, path).map_err(failed));
        if let Err(error) = done {
            rename_new(&aside, path).map_err(failed)?;
            return Err(error);
        }
        self.placed = true;
        Ok(aside)
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if !self.placed {
            for name in &self.files {
                let _ = fs::remove_file(self.part.join(name));
            }
            let _ = fs::remove_dir(&self.part);
        }
    }
}
