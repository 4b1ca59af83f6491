//! Manufacturers of simulated cards.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use shef::{KeyFolder, Manufacturer, Source};
use shef_console::CliError;

/// Titles of the simulated manufacturer, for devices without and with debug.
pub const MAKERS: [(&str, &str); 2] = [
    ("manufacturer", "shef simulated devices"),
    ("manufacturer-debug", "shef simulated devices, debug"),
];

/// Opens one of [`MAKERS`] in a folder of keys, or makes it there. Without a folder, it makes one
/// whose keys are on no disk.
///
/// # Errors
/// Errors of the folder.
pub fn maker(
    keys: Option<&Path>,
    (name, title): (&str, &str),
    entropy: &mut Source,
) -> Result<Manufacturer, CliError> {
    Ok(match keys {
        Some(keys) => Manufacturer::open(KeyFolder::open(keys.join(name))?, title, now(), entropy)?,
        None => Manufacturer::in_memory(title, now(), entropy)?,
    })
}

/// Seconds since 1970.
pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64)
}
