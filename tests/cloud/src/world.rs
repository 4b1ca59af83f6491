//! The world of the fakes: one file for each fact, so that a test can look and set.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An image at AWS.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Afi {
    /// Its client token.
    pub token: String,
    /// How often its state was read.
    pub looks: u32,
    /// AWS's message, once it has failed: for ever, and for every request with its token.
    #[serde(default)]
    pub failed: Option<String>,
}

/// A slot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Slot {
    /// The image.
    pub image: Option<String>,
    /// AWS's number of the status.
    pub status: u32,
    /// AWS's number of the error.
    pub error: u32,
    /// Status after `left` looks.
    pub next: Option<(Option<String>, u32, u32)>,
    /// Looks until then.
    pub left: u32,
}

/// Everything that the fakes remember.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct World {
    /// Objects by name, with their sizes.
    pub objects: BTreeMap<String, u64>,
    /// Images by id.
    pub afis: BTreeMap<String, Afi>,
    /// Slot 0.
    pub slot: Slot,
}

/// The folder.
///
/// # Panics
/// If `SHEF_FAKES` is not set: a fake is never used outside of a test.
#[must_use]
pub fn folder() -> PathBuf {
    std::env::var_os("SHEF_FAKES").map(PathBuf::from).expect("SHEF_FAKES names the world")
}

impl World {
    /// Reads the world in a folder.
    ///
    /// # Panics
    /// If it is not readable.
    #[must_use]
    pub fn of(folder: &Path) -> Self {
        match fs::read(folder.join("world.json")) {
            Ok(bytes) => serde_json::from_slice(&bytes).expect("a world"),
            Err(_) => {
                let slot = Slot { status: 1, ..Slot::default() };
                Self { slot, ..Self::default() }
            }
        }
    }

    /// Writes it as a whole.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn keep(&self, folder: &Path) {
        let part = folder.join("world.part");
        fs::write(&part, serde_json::to_vec(self).expect("JSON")).expect("written");
        fs::rename(part, folder.join("world.json")).expect("renamed");
    }
}
