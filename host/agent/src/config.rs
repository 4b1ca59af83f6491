//! The agent's configuration file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use shef_device::is_name;
use shef_device::{Iommu, Uri};
use shef_files as files;
use shef_remote::wire::MAX_DEVICES;

use crate::AgentError;

/// The checked configuration. Its paths are relative to the folder of the file.
#[derive(Debug, Clone)]
pub struct Config {
    /// Address to listen on.
    pub listen: SocketAddr,
    /// Certificate of the CA that issues the owners' certificates (PEM).
    pub ca: PathBuf,
    /// Certificate of the agent (PEM).
    pub cert: PathBuf,
    /// Private key of the agent (PEM).
    pub key: PathBuf,
    /// Time after which a card whose owner vanished is wiped and freed.
    pub grace: Duration,
    /// Most owner connections at once. A quarter of them is reserved for owners that have a
    /// session.
    pub max_connections: usize,
    /// Most connections of one owner at once.
    pub max_connections_per_owner: usize,
    /// Time for sessions to end when the agent drains.
    pub drain: Duration,
    /// Fingerprints of revoked certificates.
    pub revoked: Option<PathBuf>,
    /// Address of the HTTP server for health and metrics.
    pub metrics: Option<SocketAddr>,
    /// Time limits; not in the file.
    pub times: Times,
    /// Devices by name.
    pub devices: BTreeMap<String, Device>,
}

/// Time limits on the agent's side.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// A handshake, and each message before a card is opened.
    pub hello: Duration,
    /// A message, from its first byte to its last, either way.
    pub message: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// For the card to carry out a request, once it has begun.
    pub request: Duration,
    /// For wiping the cards when the agent ends.
    pub stop: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(10),
            message: Duration::from_secs(60),
            idle: Duration::from_secs(3600),
            request: Duration::from_secs(900),
            stop: Duration::from_secs(60),
        }
    }
}

/// A device of the configuration.
#[derive(Debug, Clone)]
pub struct Device {
    /// Its address, in the notation of every program.
    pub uri: Uri,
    /// Owners that may use it; if empty, every owner with a certificate may.
    pub owners: Vec<String>,
    /// Writes zeros to all of the card's memory before each owner, including the first.
    pub clear_memory: bool,
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
    #[serde(default = "each")]
    max_connections_per_owner: usize,
    #[serde(default = "drain")]
    drain_seconds: u64,
    revoked: Option<PathBuf>,
    metrics: Option<SocketAddr>,
    #[serde(default)]
    devices: BTreeMap<String, FileDevice>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileDevice {
    uri: String,
    owners: Option<Vec<String>>,
    #[serde(default)]
    clear_memory: bool,
    #[serde(default)]
    card_reaches_all_memory: bool,
}

fn grace() -> u64 {
    30
}

fn connections() -> usize {
    64
}

fn each() -> usize {
    16
}

fn drain() -> u64 {
    10
}

/// Checks that an agent can serve the device: a card of this machine, and in a separate process if
/// it is simulated.
pub(crate) fn check_device(uri: &Uri) -> Result<(), String> {
    match uri {
        Uri::Pci { .. } | Uri::PciUeid { .. } | Uri::VfioUser { .. } => Ok(()),
        uri if uri.is_simulated() => Err(format!(
            "{uri} would put the card's keys into the agent: start `shef sim serve --socket /PATH/card` and name the card vfio-user:/PATH/card"
        )),
        uri => Err(format!(
            "expected a card of this machine, pci:... or vfio-user:/SOCKET, found {uri}"
        )),
    }
}

impl Config {
    /// Reads a configuration file, as root by the rules of [`files::open_linked`].
    ///
    /// # Errors
    /// SHEF-AGT-016 with line and column, SHEF-AGT-017.
    pub fn load(path: &Path) -> Result<Self, AgentError> {
        let text = files::read_linked(path).map_err(|e| AgentError::file("read", path, &e))?;
        let dir = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, dir).map_err(|message| AgentError::Config {
            message: format!("{}: {}", path.display(), message.trim_end()),
        })
    }

    fn parse(text: &str, dir: &Path) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
        if file.devices.is_empty() {
            return Err(
                "no device: expected at least one [devices.NAME] with uri = \"...\"".to_owned()
            );
        }
        if file.devices.len() > MAX_DEVICES {
            return Err(format!("{} devices, expected at most {MAX_DEVICES}", file.devices.len()));
        }
        if !(1..=4096).contains(&file.max_connections) {
            return Err(format!("max_connections is {}, expected 1 to 4096", file.max_connections));
        }
        if !(1..=file.max_connections).contains(&file.max_connections_per_owner)
            && file.max_connections_per_owner != each()
        {
            return Err(format!(
                "max_connections_per_owner is {}, expected 1 to max_connections",
                file.max_connections_per_owner
            ));
        }
        for (what, seconds) in
            [("grace_seconds", file.grace_seconds), ("drain_seconds", file.drain_seconds)]
        {
            if seconds > 86_400 {
                return Err(format!("{what} is {seconds}, expected at most 86400"));
            }
        }
        let mut devices = BTreeMap::new();
        for (name, device) in file.devices {
            if !is_name(&name) {
                return Err(format!(
                    "device {name:?}: expected a name of 1 to 64 letters, digits, '-', '_', '.'"
                ));
            }
            let uri: Uri = device.uri.parse().map_err(|e| format!("device {name:?}: {e}"))?;
            check_device(&uri).map_err(|what| format!("device {name:?}: {what}"))?;
            // Without the key `owners`, every owner may use the card. An empty list must not mean
            // the same.
            if device.owners.as_ref().is_some_and(Vec::is_empty) {
                return Err(format!(
                    "device {name:?}: owners = [] admits no owner: expected the owners that may \
                    use it, or no key `owners` to admit all of them"
                ));
            }
            let owners = device.owners.unwrap_or_default();
            if let Some(owner) = owners.iter().find(|owner| !is_name(owner)) {
                return Err(format!("device {name:?}: {owner:?} is not a valid owner name"));
            }
            let unconfined = uri.iommu() == Some(Iommu::None);
            if unconfined && !device.card_reaches_all_memory {
                return Err(format!(
                    "device {name:?}: with iommu=none nothing confines the card's DMA: the card, \
                    its image, and anyone who controls either can read and write all memory of \
                    this machine; use an IOMMU, or set card_reaches_all_memory = true for this \
                    device"
                ));
            }
            if !unconfined && device.card_reaches_all_memory {
                return Err(format!(
                    "device {name:?}: card_reaches_all_memory is only for iommu=none, which {uri} \
                    does not have"
                ));
            }
            devices.insert(name, Device { uri, owners, clear_memory: device.clear_memory });
        }
        Ok(Self {
            listen: file.listen,
            ca: dir.join(file.ca),
            cert: dir.join(file.cert),
            key: dir.join(file.key),
            grace: Duration::from_secs(file.grace_seconds),
            max_connections: file.max_connections,
            max_connections_per_owner: file.max_connections_per_owner,
            drain: Duration::from_secs(file.drain_seconds),
            revoked: file.revoked.map(|path| dir.join(path)),
            metrics: file.metrics,
            times: Times::default(),
            devices,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "listen = \"127.0.0.1:0\"\nca = \"ca.pem\"\ncert = \"a.pem\"\nkey = \"/k\"\n[devices.card0]\nuri = \"pci:0000:65:00.0\"\n";

    #[test]
    fn a_good_file_is_read_and_paths_are_beside_it() {
        let config = Config::parse(GOOD, Path::new("/etc/shef")).unwrap();
        assert_eq!(
            (config.ca, config.key),
            (PathBuf::from("/etc/shef/ca.pem"), PathBuf::from("/k"))
        );
        assert_eq!(config.grace, Duration::from_secs(30));
        assert!(config.devices["card0"].owners.is_empty());
    }

    #[test]
    fn a_card_that_nothing_confines_is_asked_for_by_what_it_means() {
        let file = GOOD.replace("00.0\"", "00.0?iommu=none\"\ncard_reaches_all_memory = true");
        assert_eq!(
            Config::parse(&file, Path::new("")).unwrap().devices["card0"].uri.iommu(),
            Some(Iommu::None)
        );
    }

    #[test]
    fn bad_files_are_refused_and_say_where() {
        for (from, to, says) in [
            ("listen", "lisen", "line 1"),
            ("127.0.0.1:0", "nowhere", "line 1"),
            ("uri", "url", "line 6"),
            ("pci:0000:65:00.0", "usb:1", "unknown device URI"),
            ("pci:0000:65:00.0", "sim:model", "shef sim serve"),
            (
                "pci:0000:65:00.0",
                "tls://card.example:7433/card0",
                "expected a card of this machine",
            ),
            ("devices.card0", "devices.\"a b\"", "expected a name"),
            ("[devices.card0]\nuri = \"pci:0000:65:00.0\"\n", "", "no device"),
            ("key =", "max_connections = 0\nkey =", "1 to 4096"),
            ("key =", "grace_seconds = 100000\nkey =", "86400"),
            ("key =", "drain_seconds = 100000\nkey =", "86400"),
            ("key =", "max_connections_per_owner = 0\nkey =", "1 to max_connections"),
            ("00.0", "00.0?iommu=none", "card_reaches_all_memory = true"),
            (
                "pci:0000:65:00.0\"",
                "pci:0000:65:00.0?iommu=none\"\ncard_reaches_all_memory = false",
                "card_reaches_all_memory = true",
            ),
            ("00.0\"", "00.0?iommu=type1\"\ncard_reaches_all_memory = true", "only for iommu=none"),
            ("00.0\"", "00.0\"\nowners = []", "owners = [] admits no owner"),
        ] {
            assert!(GOOD.contains(from));
            let error = Config::parse(&GOOD.replacen(from, to, 1), Path::new("")).unwrap_err();
            assert!(error.contains(says), "{from} -> {to}: {error}");
        }
    }
}
