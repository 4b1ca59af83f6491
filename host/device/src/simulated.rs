//! Parameters of a simulated card around the RTL, by the names that its URI and the flags of
//! `shef sim serve` share.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// Security Kernel of a simulated card.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SimKernel {
    /// Boot ROM and firmware, on the processor in the RTL.
    #[default]
    Firmware,
    /// The same kernel as a function of the simulator. It has a different measurement.
    Native,
}

/// Shell around the design of a simulated card.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SimShell {
    /// A test bench at the ports of the design.
    #[default]
    Plain,
    /// The model of AWS F2's shell, around the custom logic for it.
    AwsF2,
}

/// Signals in the waves of a simulated card.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum WaveScope {
    /// All signals of the design and its simulation shell.
    #[default]
    All,
    /// The accelerator: its ports, and what is below.
    Accel,
}

/// Parameters of a simulated card around the RTL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct SimParameters {
    /// Folder of a user's project; `None` for the digits accelerator.
    pub project: Option<PathBuf>,
    /// Its Security Kernel.
    pub kernel: SimKernel,
    /// The shell around the design.
    pub shell: SimShell,
    /// Cycles from a read request to its first beat.
    pub latency: Option<u64>,
    /// Seed for a memory with random stalls, latencies and order of responses; without one, it has
    /// none of these.
    pub stalls: Option<u64>,
    /// Seed for random contents of registers and memories at the start; zeros without one.
    pub contents: Option<u64>,
    /// Seed for the card's randomness, which evidence reports; a tested source without one.
    pub seed: Option<u64>,
    /// Whether the protocol checker watches the accelerator's ports from the start.
    pub check: bool,
    /// File for waves (FST).
    pub wave: Option<PathBuf>,
    /// Signals in the waves.
    pub wave_scope: WaveScope,
    /// Cycle at which the waves begin.
    pub wave_from: u64,
}

/// One row of [`SimParameters::TABLE`].
#[derive(Debug, Clone, Copy)]
pub struct SimParameter {
    /// Its key in a URI; with `--`, its flag.
    pub name: &'static str,
    set: fn(&mut SimParameters, &OsStr) -> Result<(), String>,
    get: fn(&SimParameters) -> Option<OsString>,
}

fn number(value: &OsStr) -> Result<Option<u64>, String> {
    let text = value.to_string_lossy();
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    number.map(Some).ok_or_else(|| format!("expected a number, found {text:?}"))
}

fn switch(value: &OsStr) -> Result<bool, String> {
    if value == "1" { Ok(true) } else { Err(format!("expected 1, found {value:?}")) }
}

fn path(value: &OsStr, what: &str) -> Result<Option<PathBuf>, String> {
    if value.is_empty() { Err(format!("expected {what}")) } else { Ok(Some(value.into())) }
}

fn scope(value: &OsStr) -> Result<WaveScope, String> {
    match value.to_str() {
        Some("all") => Ok(WaveScope::All),
        Some("accel") => Ok(WaveScope::Accel),
        _ => Err(format!("expected accel or all, found {value:?}")),
    }
}

fn shell(value: &OsStr) -> Result<SimShell, String> {
    match value.to_str() {
        Some("plain") => Ok(SimShell::Plain),
        Some("f2") => Ok(SimShell::AwsF2),
        _ => Err(format!("expected plain or f2, found {value:?}")),
    }
}

fn kernel(value: &OsStr) -> Result<SimKernel, String> {
    match value.to_str() {
        Some("firmware") => Ok(SimKernel::Firmware),
        Some("native") => Ok(SimKernel::Native),
        _ => Err(format!("expected firmware or native, found {value:?}")),
    }
}

impl SimParameters {
    /// All parameters, in the order in which a URI prints them.
    pub const TABLE: [SimParameter; 11] = [
        SimParameter {
            name: "project",
            set: |to, value| path(value, "a folder").map(|value| to.project = value),
            get: |of| of.project.clone().map(Into::into),
        },
        SimParameter {
            name: "kernel",
            set: |to, value| kernel(value).map(|value| to.kernel = value),
            get: |of| (of.kernel == SimKernel::Native).then(|| "native".into()),
        },
        SimParameter {
            name: "shell",
            set: |to, value| shell(value).map(|value| to.shell = value),
            get: |of| (of.shell == SimShell::AwsF2).then(|| "f2".into()),
        },
        SimParameter {
            name: "latency",
            set: |to, value| number(value).map(|value| to.latency = value),
            get: |of| of.latency.map(|value| value.to_string().into()),
        },
        SimParameter {
            name: "stalls",
            set: |to, value| number(value).map(|value| to.stalls = value),
            get: |of| of.stalls.map(|value| value.to_string().into()),
        },
        SimParameter {
            name: "contents",
            set: |to, value| number(value).map(|value| to.contents = value),
            get: |of| of.contents.map(|value| value.to_string().into()),
        },
        SimParameter {
            name: "seed",
            set: |to, value| number(value).map(|value| to.seed = value),
            get: |of| of.seed.map(|value| value.to_string().into()),
        },
        SimParameter {
            name: "check",
            set: |to, value| switch(value).map(|value| to.check = value),
            get: |of| of.check.then(|| "1".into()),
        },
        SimParameter {
            name: "wave",
            set: |to, value| path(value, "a file").map(|value| to.wave = value),
            get: |of| of.wave.clone().map(Into::into),
        },
        SimParameter {
            name: "wave-scope",
            set: |to, value| scope(value).map(|value| to.wave_scope = value),
            get: |of| (of.wave_scope == WaveScope::Accel).then(|| "accel".into()),
        },
        SimParameter {
            name: "wave-from",
            set: |to, value| number(value).map(|value| to.wave_from = value.unwrap_or_default()),
            get: |of| (of.wave_from != 0).then(|| of.wave_from.to_string().into()),
        },
    ];

    /// The parameters that differ from the default, with their values.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        Self::TABLE.iter().filter_map(|row| Some((row.name, (row.get)(self)?)))
    }

    /// The query of a URI with these parameters: nothing, or `?` and what follows it.
    pub(crate) fn query(&self) -> String {
        let mut text = String::new();
        for (name, value) in self.given() {
            text += if text.is_empty() { "?" } else { "&" };
            text += name;
            text.push('=');
            text += &encoded(&value);
        }
        text
    }

    /// Parses a query, which is percent-encoded.
    ///
    /// # Errors
    /// The reason.
    pub(crate) fn parse(query: &str) -> Result<Self, String> {
        let (mut all, mut seen) = (Self::default(), Vec::new());
        for part in query.split('&') {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let Some(row) = Self::TABLE.iter().find(|row| row.name == name) else {
                let known = Self::TABLE.map(|row| row.name).join(", ");
                return Err(format!("unknown parameter {name:?}; there are {known}"));
            };
            if seen.contains(&name) {
                return Err(format!("the parameter {name} is there twice"));
            }
            seen.push(name);
            (row.set)(&mut all, &decoded(value)?).map_err(|what| format!("{name}: {what}"))?;
        }
        let part = seen.iter().find(|name| name.starts_with("wave-"));
        match part {
            Some(part) if all.wave.is_none() => Err(format!("{part} needs wave=FILE")),
            _ => Ok(all),
        }
    }
}

/// A value in a query. Blanks and letters of all languages stay as they are.
pub(crate) fn encoded(value: &OsStr) -> String {
    let mut text = String::new();
    for chunk in value.as_bytes().utf8_chunks() {
        for char in chunk.valid().chars() {
            if char.is_control() || matches!(char, '%' | '&' | '#') {
                for byte in char.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(text, "%{byte:02X}");
                }
            } else {
                text.push(char);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

pub(crate) fn decoded(text: &str) -> Result<OsString, String> {
    let mut bytes = Vec::new();
    let mut parts = text.split('%');
    bytes.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        let hex = part.get(..2).filter(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|byte| *byte != 0);
        let Some(byte) = byte else {
            return Err("expected two hexadecimal digits after %, which stands for itself as %25"
                .to_owned());
        };
        bytes.push(byte);
        bytes.extend(part[2..].bytes());
    }
    Ok(OsString::from_vec(bytes))
}
