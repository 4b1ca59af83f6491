//! Device URIs.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::simulated::{SimParameters, decoded, encoded};
use crate::{DeviceError, Ueid};

/// Longest accepted URI.
const MAX_LEN: usize = 4096;

/// Address of a PCI function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bdf {
    /// Domain. Linux prints at least four digits of it; behind Intel VMD and in some machines it is
    /// longer.
    pub domain: u32,
    /// Bus.
    pub bus: u8,
    /// Device, 0 to 31.
    pub device: u8,
    /// Function, 0 to 7.
    pub function: u8,
}

impl fmt::Display for Bdf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

/// How DMA of a PCI function is confined.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Iommu {
    /// By the IOMMU, through whichever interface the kernel offers.
    #[default]
    Any,
    /// By the IOMMU, through a VFIO container of type 1.
    Type1,
    /// By the IOMMU, through iommufd and the device's own node.
    Iommufd,
    /// Not at all: the device reads and writes all of the machine's memory. Only used on explicit
    /// request.
    None,
}

/// As the URI's parameter.
impl fmt::Display for Iommu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMED.iter().find(|(named, _)| named == self) {
            Some((_, name)) => write!(f, "?iommu={name}"),
            None => Ok(()),
        }
    }
}

impl Iommu {
    /// All explicit values, by name.
    const NAMED: [(Self, &str); 3] =
        [(Self::Type1, "type1"), (Self::Iommufd, "iommufd"), (Self::None, "none")];
}

/// Address of a device.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Uri {
    /// `sim:model`
    SimModel,
    /// `sim:rtl`, with `?` and parameters, such as `project=DIR&kernel=native`
    SimRtl(SimParameters),
    /// `vfio-user:/path/socket`, with `?boot=` as in [`Uri::Pci`]
    VfioUser {
        /// Path of the socket.
        socket: PathBuf,
        /// Folder of its boot medium, an absolute path.
        boot: Option<PathBuf>,
    },
    /// `pci:0000:65:00.0`, with `?iommu=` to select how its DMA is confined, and with `boot=` if its
    /// kernel boots from files of this machine
    Pci {
        /// Address of the function.
        function: Bdf,
        /// How its DMA is confined.
        iommu: Iommu,
        /// Folder of its boot medium, an absolute path: [`Medium::read`](crate::pci::f2::Medium::read).
        boot: Option<PathBuf>,
    },
    /// `pci:ueid=01...`, with `?iommu=` as in [`Uri::Pci`]
    PciUeid {
        /// Name of the card.
        ueid: Ueid,
        /// How its DMA is confined.
        iommu: Iommu,
    },
    /// `tls://host:port/DEVICE`
    Tls {
        /// Name or address of the agent's machine.
        host: String,
        /// TCP port.
        port: u16,
        /// Name of the device in the agent's configuration.
        device: String,
    },
}

impl Uri {
    /// How the device's DMA is confined, if this machine controls it.
    pub fn iommu(&self) -> Option<Iommu> {
        match self {
            Self::Pci { iommu, .. } | Self::PciUeid { iommu, .. } => Some(*iommu),
            _ => None,
        }
    }

    /// Whether the device is a simulated card in this process.
    pub fn is_simulated(&self) -> bool {
        matches!(self, Self::SimModel | Self::SimRtl(_))
    }

    /// The file for the waves of a simulated card.
    pub fn wave(&self) -> Option<&Path> {
        match self {
            Self::SimRtl(parameters) => parameters.wave.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SimModel => f.write_str("sim:model"),
            Self::SimRtl(parameters) => write!(f, "sim:rtl{}", parameters.query()),
            Self::VfioUser { socket, boot } => {
                write!(f, "vfio-user:{}", socket.display())?;
                let Some(boot) = boot else { return Ok(()) };
                write!(f, "?boot={}", encoded(boot.as_os_str()))
            }
            Self::Pci { function, iommu, boot } => {
                write!(f, "pci:{function}{iommu}")?;
                let Some(boot) = boot else { return Ok(()) };
                let separator = if *iommu == Iommu::Any { '?' } else { '&' };
                write!(f, "{separator}boot={}", encoded(boot.as_os_str()))
            }
            Self::PciUeid { ueid, iommu } => write!(f, "pci:ueid={ueid}{iommu}"),
            Self::Tls { host, port, device } => write!(f, "tls://{host}:{port}/{device}"),
        }
    }
}

impl FromStr for Uri {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        let shown = || text.chars().take(200).collect::<String>();
        let malformed =
            |reason: &str| DeviceError::MalformedUri { uri: shown(), reason: reason.to_owned() };
        if text.len() > MAX_LEN {
            return Err(malformed("longer than 4096 bytes"));
        }
        if text.chars().any(char::is_control) {
            return Err(malformed("it has control characters"));
        }
        let unknown = || DeviceError::UnknownUri { uri: shown() };
        let (scheme, rest) = text.split_once(':').ok_or_else(unknown)?;
        match scheme {
            "sim" => simulated(rest).map_err(|reason| malformed(&reason)),
            "vfio-user" => {
                let (path, query) = match rest.split_once('?') {
                    Some((path, query)) => (path, Some(query)),
                    None => (rest, None),
                };
                let boot = query
                    .map(|query| match query.split_once('=') {
                        Some(("boot", value)) if !value.contains('&') => folder(value),
                        _ => Err("the parameter of vfio-user: is boot=FOLDER".to_owned()),
                    })
                    .transpose()
                    .map_err(|reason| malformed(&reason))?;
                let path = path.strip_prefix("//").unwrap_or(path);
                if !path.starts_with('/') {
                    return Err(malformed(
                        "expected the absolute path of a socket after vfio-user:",
                    ));
                }
                // Several leading slashes count as one.
                Ok(Self::VfioUser {
                    socket: PathBuf::from(format!("/{}", path.trim_start_matches('/'))),
                    boot,
                })
            }
            "pci" => pci(rest).map_err(|reason| malformed(&reason)),
            "tls" => tls(rest).map_err(|reason| malformed(&reason)),
            _ => Err(unknown()),
        }
    }
}

fn simulated(rest: &str) -> Result<Uri, String> {
    let (kind, query) = match rest.split_once('?') {
        Some((kind, query)) => (kind, Some(query)),
        None => (rest, None),
    };
    match (kind, query) {
        ("model", None) => Ok(Uri::SimModel),
        ("model", Some(query)) if query.starts_with("project") => {
            Err("the model needs the accelerator in Rust, so it has no projects: use sim:rtl?project=DIR".to_owned())
        }
        ("model", Some(_)) => Err("sim:model takes no parameters".to_owned()),
        ("rtl", None) => Ok(Uri::SimRtl(SimParameters::default())),
        ("rtl", Some(query)) => SimParameters::parse(query).map(Uri::SimRtl),
        _ => Err(format!("unknown simulated device {kind:?}, expected sim:model or sim:rtl")),
    }
}

/// The folder of a boot medium.
fn folder(value: &str) -> Result<PathBuf, String> {
    let folder = PathBuf::from(decoded(value)?);
    if !folder.is_absolute() {
        return Err("expected the absolute path of a folder after boot=".to_owned());
    }
    Ok(folder)
}

fn pci(rest: &str) -> Result<Uri, String> {
    let (address, query) = match rest.split_once('?') {
        Some((address, query)) => (address, Some(query)),
        None => (rest, None),
    };
    let (mut iommu, mut boot) = (None, None);
    for parameter in query.into_iter().flat_map(|query| query.split('&')) {
        match parameter.split_once('=') {
            Some(("iommu", value)) if iommu.is_none() => {
                let named = Iommu::NAMED.iter().find(|(_, name)| *name == value);
                let (named, _) =
                    named.ok_or("expected iommu=type1, iommu=iommufd or iommu=none")?;
                iommu = Some(*named);
            }
            Some(("boot", value)) if boot.is_none() => {
                boot = Some(folder(value)?);
            }
            _ => {
                return Err(
                    "the parameters of pci: are iommu=type1, iommu=iommufd or iommu=none, \
                    and boot=FOLDER, each once"
                        .to_owned(),
                );
            }
        }
    }
    let iommu = iommu.unwrap_or_default();
    match address.strip_prefix("ueid=") {
        // All cards with an image on F2 have one ueid.
        Some(_) if boot.is_some() => Err(
            "boot= is for pci:DOMAIN:BUS:DEVICE.FUNCTION: a card has no ueid before its kernel \
                boots"
                .to_owned(),
        ),
        Some(ueid) => Ok(Uri::PciUeid { ueid: ueid.parse()?, iommu }),
        None => match bdf(address) {
            Some(function) => Ok(Uri::Pci { function, iommu, boot }),
            None => Err("expected pci:DOMAIN:BUS:DEVICE.FUNCTION in hexadecimal, such as \
                pci:0000:65:00.0, or pci:ueid=UEID"
                .to_owned()),
        },
    }
}

fn bdf(rest: &str) -> Option<Bdf> {
    let hex = |text: &str, digits: std::ops::RangeInclusive<usize>, max: u32| -> Option<u32> {
        if !digits.contains(&text.len()) || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        u32::from_str_radix(text, 16).ok().filter(|v| *v <= max)
    };
    let mut parts = rest.split(':');
    let (domain, bus, last) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let (device, function) = last.split_once('.')?;
    Some(Bdf {
        domain: hex(domain, 4..=8, u32::MAX)?,
        bus: u8::try_from(hex(bus, 2..=2, 0xff)?).ok()?,
        device: u8::try_from(hex(device, 2..=2, 0x1f)?).ok()?,
        function: u8::try_from(hex(function, 1..=1, 7)?).ok()?,
    })
}

/// Most bytes of a name in an agent's configuration.
const MAX_NAME: usize = 64;

/// Whether `name` is valid for a device or an owner of an agent: 1 to 64 letters, digits, `-`, `_`,
/// `.`, and neither `.` nor `..`, which name folders.
pub fn is_name(name: &str) -> bool {
    !matches!(name, "." | "..")
        && (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

fn tls(rest: &str) -> Result<Uri, String> {
    let form = || "expected tls://HOST:PORT/DEVICE".to_owned();
    let rest = rest.strip_prefix("//").ok_or_else(form)?;
    let (authority, device) = rest.split_once('/').ok_or_else(form)?;
    let (host, port) = authority.rsplit_once(':').ok_or_else(form)?;
    if host.is_empty()
        || host.contains(['@', '/', '?', '#', ' '])
        || (host.contains(':') && !(host.starts_with('[') && host.ends_with(']')))
    {
        return Err(format!("{host:?} is not a host name"));
    }
    let port = port
        .parse::<u16>()
        .ok()
        .filter(|p| *p != 0 && !port.starts_with('+'))
        .ok_or_else(|| format!("{port:?} is not a TCP port"))?;
    if !is_name(device) {
        return Err(format!(
            "{device:?} is not a device name: expected 1 to 64 letters, digits, '-', '_', '.'"
        ));
    }
    Ok(Uri::Tls { host: host.to_owned(), port, device: device.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_form_parses_and_prints_as_it_was_written() {
        for text in [
            "sim:model",
            "sim:rtl",
            "sim:rtl?project=/tmp/my design",
            "sim:rtl?project=/tmp/Übung=1%25%26%23?&kernel=native&latency=100&stalls=7&seed=3&wave=run.fst",
            "sim:rtl?wave=a%0Ab%FF",
            "vfio-user:/run/shef.sock",
            "vfio-user:/run/shef.sock?boot=/a b%26?%25",
            "pci:0000:65:00.0",
            "pci:10000:01:00.0",
            "pci:fffffffe:65:00.0?iommu=type1",
            "pci:0000:65:00.0?iommu=type1",
            "pci:0000:65:00.0?iommu=iommufd",
            "pci:0000:65:00.0?iommu=none",
            "pci:0000:34:00.0?iommu=none&boot=/etc/shef/boot",
            "pci:0000:34:00.0?boot=/a b%26%25",
            "pci:ueid=01000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff",
            "pci:ueid=01000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff?iommu=type1",
            "tls://card.example:7433/left",
            "tls://[::1]:7433/a-b_c.d",
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), text);
        }
        for text in [
            "vfio-user:///run/shef.sock",
            "vfio-user:////run/shef.sock",
            "vfio-user://///run/shef.sock",
        ] {
            assert_eq!(text.parse::<Uri>().unwrap().to_string(), "vfio-user:/run/shef.sock");
        }
    }

    /// In any order; values are percent-decoded.
    #[test]
    fn parameters_of_a_simulated_card_have_no_order() {
        for text in [
            "sim:rtl?seed=3&contents=5&wave-from=900&wave=run.fst&check=1&wave-scope=accel&kernel=native&shell=f2&project=%2ftmp/a%26b&stalls=7&latency=100",
            "sim:rtl?latency=0100&project=/tmp/%61%26b&wave=run.fst&wave-scope=accel&wave-from=900&stalls=7&contents=5&kernel=native&check=1&shell=f2&seed=3",
        ] {
            let Ok(Uri::SimRtl(parameters)) = text.parse() else { panic!("{text}") };
            let all = SimParameters {
                project: Some("/tmp/a&b".into()),
                kernel: crate::SimKernel::Native,
                shell: crate::SimShell::AwsF2,
                latency: Some(100),
                stalls: Some(7),
                contents: Some(5),
                seed: Some(3),
                check: true,
                wave: Some("run.fst".into()),
                wave_scope: crate::WaveScope::Accel,
                wave_from: 900,
            };
            assert_eq!(parameters, all);
        }
        let error = "sim:rtl?latencies=3".parse::<Uri>().unwrap_err().to_string();
        let known = "project, kernel, shell, latency, stalls, contents, seed, check, wave, wave-scope, wave-from";
        assert!(error.contains("\"latencies\"") && error.contains(known), "{error}");
    }

    #[test]
    fn bad_uris_have_codes() {
        for (text, code) in [
            ("", "SHEF-DEV-001"),
            ("rtl", "SHEF-DEV-001"),
            ("usb:1", "SHEF-DEV-001"),
            ("SIM:rtl", "SHEF-DEV-001"),
            ("sim:", "SHEF-DEV-002"),
            ("sim:fpga", "SHEF-DEV-002"),
            ("sim:model?x=1", "SHEF-DEV-002"),
            ("sim:model?project=/x", "SHEF-DEV-002"),
            ("sim:rtl?project=", "SHEF-DEV-002"),
            ("sim:rtl?check", "SHEF-DEV-002"),
            ("sim:rtl?wave-from=3", "SHEF-DEV-002"),
            ("sim:rtl?wave=w&wave-scope=shield", "SHEF-DEV-002"),
            ("sim:rtl?check=yes", "SHEF-DEV-002"),
            ("sim:rtl?dir=/x", "SHEF-DEV-002"),
            ("sim:rtl?", "SHEF-DEV-002"),
            ("sim:rtl?project=/x&project=/x", "SHEF-DEV-002"),
            ("sim:rtl?project=/x&", "SHEF-DEV-002"),
            ("sim:rtl?project=%2", "SHEF-DEV-002"),
            ("sim:rtl?project=%zz", "SHEF-DEV-002"),
            ("sim:rtl?project=%+1", "SHEF-DEV-002"),
            ("sim:rtl?project=a%00", "SHEF-DEV-002"),
            ("sim:rtl?kernel=other", "SHEF-DEV-002"),
            ("sim:rtl?latency=+1", "SHEF-DEV-002"),
            ("sim:rtl?latency=", "SHEF-DEV-002"),
            ("sim:rtl?seed=18446744073709551616", "SHEF-DEV-002"),
            ("sim:rtl\n", "SHEF-DEV-002"),
            ("vfio-user:relative", "SHEF-DEV-002"),
            ("vfio-user:/a?boot=relative", "SHEF-DEV-002"),
            ("vfio-user:/a?boot=/a&boot=/a", "SHEF-DEV-002"),
            ("vfio-user:/a?iommu=none", "SHEF-DEV-002"),
            ("vfio-user:/a?", "SHEF-DEV-002"),
            ("pci:65:00.0", "SHEF-DEV-002"),
            ("pci:123456789:65:00.0", "SHEF-DEV-002"),
            ("pci:000:65:00.0", "SHEF-DEV-002"),
            ("pci:0000:65:20.0", "SHEF-DEV-002"),
            ("pci:0000:65:00.8", "SHEF-DEV-002"),
            ("pci:0000:+5:00.0", "SHEF-DEV-002"),
            ("pci:0000:65:00.0:1", "SHEF-DEV-002"),
            ("pci:0000:65:00.0?iommu=", "SHEF-DEV-002"),
            ("pci:0000:65:00.0?iommu=none&iommu=none", "SHEF-DEV-002"),
            ("pci:0000:65:00.0?boot=", "SHEF-DEV-002"),
            ("pci:0000:65:00.0?boot=relative", "SHEF-DEV-002"),
            ("pci:0000:65:00.0?boot=/a&boot=/a", "SHEF-DEV-002"),
            ("pci:0000:65:00.0?boot=/a%00", "SHEF-DEV-002"),
            (
                "pci:ueid=01000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff?boot=/a",
                "SHEF-DEV-002",
            ),
            ("pci:0000:65:00.0?iommu=any", "SHEF-DEV-002"),
            ("pci:0000:65:00.0?unsafe", "SHEF-DEV-002"),
            ("pci:ueid=", "SHEF-DEV-002"),
            ("pci:ueid=01ff", "SHEF-DEV-002"),
            (
                "pci:ueid=02000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff",
                "SHEF-DEV-002",
            ),
            (
                "pci:ueid=01+00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff",
                "SHEF-DEV-002",
            ),
            (
                "pci:ueid=01000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff?iommu=",
                "SHEF-DEV-002",
            ),
            ("tls://host/dev", "SHEF-DEV-002"),
            ("tls://host:0/dev", "SHEF-DEV-002"),
            ("tls://host:99999/dev", "SHEF-DEV-002"),
            ("tls://host:1/", "SHEF-DEV-002"),
            ("tls://host:1/sim:rtl", "SHEF-DEV-002"),
            ("tls://user@host:1/dev", "SHEF-DEV-002"),
            ("tls:host:1/dev", "SHEF-DEV-002"),
        ] {
            assert_eq!(text.parse::<Uri>().unwrap_err().code(), code, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn what_parses_prints_to_something_that_parses_to_the_same(text in "(sim:|vfio-user:|pci:|tls://)?[a-z0-9:/.?=\\[\\]-]{0,30}") {
            if let Ok(uri) = text.parse::<Uri>() {
                prop_assert_eq!(uri.to_string().parse::<Uri>().unwrap(), uri);
            }
        }
    }
}
