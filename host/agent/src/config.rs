//! The agent's configuration file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use shef_device::Uri;
use shef_device::wire::{MAX_DEVICES, is_name};

use crate::AgentError;

/// The configuration, checked. Paths in it are relative to the folder of the file.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Certificate of the CA that issues owners' certificates (PEM).
    pub ca: PathBuf,
    /// Certificate of the agent (PEM).
    pub cert: PathBuf,
    /// Private key of the agent (PEM).
    pub key: PathBuf,
    /// Time after which a card whose owner vanished is wiped and free.
    pub grace: Duration,
    /// Most connections at once.
    pub max_connections: usize,
    /// Devices by name.
    pub devices: BTreeMap<String, Device>,
}

/// A device of the configuration.
#[derive(Debug, Clone)]
pub struct Device {
    /// What it is, as every program names it.
    pub uri: Uri,
    /// Owners that may use it; without any, every owner with a certificate may.
    pub owners: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: SocketAddr,
    ca: PathBuf,
    cert: PathBuf,
    key: PathBuf,
    #[serde(default = "grace")]
    grace_seconds: u64,
    #[serde(default = "connections")]
    max_connections: usize,
    #[serde(default)]
    devices: BTreeMap<String, FileDevice>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileDevice {
    uri: String,
    #[serde(default)]
    owners: Vec<String>,
}

fn grace() -> u64 {
    30
}

fn connections() -> usize {
    64
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// SHEF-AGT-016 with line and column, SHEF-AGT-017.
    pub fn load(path: &Path) -> Result<Self, AgentError> {
        let text = std::fs::read_to_string(path).map_err(|e| AgentError::file("read", path, &e))?;
        let dir = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, dir).map_err(|message| AgentError::Config { message: format!("{}: {message}", path.display()) })
    }

    fn parse(text: &str, dir: &Path) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
        if file.devices.is_empty() {
            return Err("no device: expected at least one [devices.NAME] with uri = \"...\"".to_owned());
        }
        if file.devices.len() > MAX_DEVICES {
            return Err(format!("{} devices, expected at most {MAX_DEVICES}", file.devices.len()));
        }
        if !(1..=4096).contains(&file.max_connections) {
            return Err(format!("max_connections is {}, expected 1 to 4096", file.max_connections));
        }
        if file.grace_seconds > 86_400 {
            return Err(format!("grace_seconds is {}, expected at most 86400", file.grace_seconds));
        }
        let mut devices = BTreeMap::new();
        for (name, device) in file.devices {
            if !is_name(&name) {
                return Err(format!("device {name:?}: expected a name of 1 to 64 letters, digits, '-', '_', '.'"));
            }
            let uri: Uri = device.uri.parse().map_err(|e| format!("device {name:?}: {e}"))?;
            if let Some(owner) = device.owners.iter().find(|owner| !is_name(owner)) {
                return Err(format!("device {name:?}: {owner:?} is no name of an owner"));
            }
            devices.insert(name, Device { uri, owners: device.owners });
        }
        Ok(Self {
            listen: file.listen,
            ca: dir.join(file.ca),
            cert: dir.join(file.cert),
            key: dir.join(file.key),
            grace: Duration::from_secs(file.grace_seconds),
            max_connections: file.max_connections,
            devices,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "listen = \"127.0.0.1:0\"\nca = \"ca.pem\"\ncert = \"a.pem\"\nkey = \"/k\"\n[devices.card0]\nuri = \"pci:0000:65:00.0\"\n";

    #[test]
    fn a_good_file_is_read_and_paths_are_beside_it() {
        let config = Config::parse(GOOD, Path::new("/etc/shef")).unwrap();
        assert_eq!((config.ca, config.key), (PathBuf::from("/etc/shef/ca.pem"), PathBuf::from("/k")));
        assert_eq!(config.grace, Duration::from_secs(30));
        assert!(config.devices["card0"].owners.is_empty());
    }

    #[test]
    fn bad_files_are_refused_and_say_where() {
        for (from, to, says) in [
            ("listen", "lisen", "line 1"),
            ("127.0.0.1:0", "nowhere", "line 1"),
            ("uri", "url", "line 6"),
            ("pci:0000:65:00.0", "usb:1", "unknown device URI"),
            ("devices.card0", "devices.\"a b\"", "expected a name"),
            ("[devices.card0]\nuri = \"pci:0000:65:00.0\"\n", "", "no device"),
            ("key =", "max_connections = 0\nkey =", "1 to 4096"),
            ("key =", "grace_seconds = 100000\nkey =", "86400"),
        ] {
            assert!(GOOD.contains(from));
            let error = Config::parse(&GOOD.replacen(from, to, 1), Path::new("")).unwrap_err();
            assert!(error.contains(says), "{from} -> {to}: {error}");
        }
    }
}
