//! The ports of the top module against those of the shell.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use shef_gen::f2::{self, Port};
use shef_project::{Elaborated, SourceSet};

use crate::error::HEADER;
use crate::rtlil::Netlist;
use crate::{Check, Design, Error, Finding, Result, source};

/// Folder of the header in AWS's kit.
const INTERFACES: &str = "common/shell_stable/design/interfaces";
/// Digests of the known headers, with the versions of the kit.
const KNOWN: [(&str, &str); 2] = [
    ("d400554f98e130dc34e9ba231b566b3a8fc12d6282a2e328e8fe4a2a8262c025", "2.3.2"),
    ("184137bf", "2.0.2"),
];
/// A module whose ports are the header's.
const WRAPPER: &str = "shef_hdk_ports";

/// The ports of the shell.
pub(crate) struct Shell {
    /// What they were read from.
    pub name: String,
    /// The header, for the sources to include.
    pub text: String,
    /// The memory controller from outside.
    pub memory: String,
    /// The ports, with the facts of our table.
    pub table: Vec<Port>,
    /// Ports of our table that the kit's header lacks or has otherwise, and new ones.
    differs: Vec<String>,
}

/// The ports of a kit's header against those that this program knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Number of its ports.
    pub ports: usize,
    /// Number of known ports, those of HDK 2.3.2.
    pub expected: usize,
    /// How it differs: missing, changed and new ports.
    pub differences: Vec<String>,
}

/// Reads the list of ports `cl_ports.vh` of AWS's kit. `scratch` is an empty folder.
///
/// # Errors
/// [`Error::NoHeader`], [`Error::Header`].
pub fn header(file: &Path, scratch: &Path) -> Result<Header> {
    let shell = Shell::of(Some(file), scratch)?;
    let expected = f2::ports(f2::TABLE).map_or(0, |known| known.len());
    Ok(Header { ports: shell.table.len(), expected, differences: shell.differs })
}

impl Shell {
    /// The ports of the kit in this folder, or of our table. `scratch` is a folder for copies.
    pub(crate) fn of(hdk: Option<&Path>, scratch: &Path) -> Result<Self> {
        let own = f2::ports(f2::TABLE).unwrap_or_default();
        let Some(hdk) = hdk else {
            let name = "the table of HDK 2.3.2".to_owned();
            let memory = source::sh_ddr();
            let text = f2::header(&own);
            return Ok(Self { name, text, memory, table: own, differs: Vec::new() });
        };
        let (path, stub) = files(hdk)?;
        let unreadable = |reason: String| Error::Header { path: path.clone(), reason };
        let text = std::fs::read(&path).map_err(|e| unreadable(e.to_string()))?;
        let digest = hex::encode(Sha256::digest(&text));
        let text = String::from_utf8(text).map_err(|_| unreadable("it is not UTF-8".to_owned()))?;
        let wrapper = format!("module {WRAPPER} (\n`include \"{HEADER}\"\n);\nendmodule\n");
        let set = SourceSet::new(WRAPPER)
            .generated(&format!("{WRAPPER}.sv"), wrapper)
            .generated(HEADER, text.clone());
        let folder = scratch.join("header");
        std::fs::create_dir_all(&folder).map_err(|e| unreadable(e.to_string()))?;
        let read = Elaborated::new(&set, &folder).map_err(|e| unreadable(e.to_string()))?;
        let netlist = Netlist::parse(&read.netlist).ok_or(Error::Netlist)?;
        let mut table = Vec::new();
        for wire in &netlist.wires {
            let Some(direction) = wire.port else { continue };
            let name = wire.name.trim_start_matches('\\').to_owned();
            let known = own.iter().find(|port| port.name == name);
            let fact = |of: fn(&Port) -> &String| known.map_or("-", |port| of(port)).to_owned();
            table.push(Port {
                width: wire.width,
                direction: direction.name().to_owned(),
                interface: fact(|port| &port.interface),
                clock: fact(|port| &port.clock),
                if_unused: fact(|port| &port.if_unused),
                name,
            });
        }
        let differs = differences(&own, &table);
        let known = KNOWN.iter().find(|(known, _)| digest.starts_with(known));
        let version = match known {
            Some((_, version)) => format!("HDK {version}"),
            None => format!("an HDK this program does not know (sha256 {}...)", &digest[..8]),
        };
        let name = format!("{} of {version}", source::shown(&path).display());
        let memory = stub.and_then(|stub| std::fs::read_to_string(stub).ok());
        let memory = memory.unwrap_or_else(source::sh_ddr);
        Ok(Self { name, text, memory, table, differs })
    }
}

/// The files of a kit that are read: its header, and the memory controller from outside.
fn files(hdk: &Path) -> Result<(PathBuf, Option<PathBuf>)> {
    let header = find(hdk).ok_or_else(|| Error::NoHeader { dir: hdk.to_owned() })?;
    let stub = header.parent().map(|folder| folder.join("../sh_ddr/sh_ddr.stub.sv"));
    Ok((header, stub.filter(|stub| stub.is_file())))
}

/// The files of AWS's kit that [`lint`](crate::lint) reads.
///
/// # Errors
/// [`Error::NoHeader`].
pub fn kit(hdk: &Path) -> Result<Vec<PathBuf>> {
    let (header, stub) = files(hdk)?;
    Ok([header].into_iter().chain(stub).collect())
}

/// The header below a folder of the kit, or the header itself.
fn find(hdk: &Path) -> Option<PathBuf> {
    let places = [
        hdk.to_owned(),
        hdk.join(HEADER),
        hdk.join(INTERFACES).join(HEADER),
        hdk.join("hdk").join(INTERFACES).join(HEADER),
        hdk.join("interfaces").join(HEADER),
        hdk.join("design/interfaces").join(HEADER),
    ];
    places.into_iter().find(|path| path.is_file())
}

/// How a second list of ports differs from a first one.
fn differences(first: &[Port], second: &[Port]) -> Vec<String> {
    let mut all = Vec::new();
    for port in first {
        match second.iter().find(|other| other.name == port.name) {
            None => all.push(format!("{} is missing", port.name)),
            Some(other) if (other.width, &other.direction) != (port.width, &port.direction) => {
                all.push(format!("{} is {}, not {}", port.name, shape(other), shape(port)));
            }
            Some(_) => {}
        }
    }
    let new = second.iter().filter(|port| !first.iter().any(|own| own.name == port.name));
    all.extend(new.map(|port| format!("{} is new", port.name)));
    all
}

fn shape(port: &Port) -> String {
    format!("{} of {} bit", port.direction, port.width)
}

/// The ports of the top module.
pub(crate) fn check(design: &Design<'_>, shell: &Shell) -> Check {
    let mut findings = Vec::new();
    let own: Vec<_> = design.netlist.wires.iter().filter(|wire| wire.port.is_some()).collect();
    let name_of = |name: &'_ str| name.trim_start_matches('\\').to_owned();
    for port in &shell.table {
        let found = own.iter().find(|wire| name_of(wire.name) == port.name);
        match found {
            None => findings.push(design.finding(
                design.netlist.src,
                format!("{} is missing: expected {}", port.name, shape(port)),
            )),
            Some(wire) => {
                let direction = wire.port.map_or("", crate::rtlil::Direction::name);
                if (wire.width, direction) != (port.width, port.direction.as_str()) {
                    let what = format!(
                        "{} is {direction} of {} bit: expected {}",
                        port.name,
                        wire.width,
                        shape(port)
                    );
                    findings.push(design.finding(wire.src, what));
                }
            }
        }
    }
    for wire in own {
        let name = name_of(wire.name);
        if !shell.table.iter().any(|port| port.name == name) {
            let what = format!("{name} is no port of the shell");
            findings.push(design.finding(wire.src, what));
        }
    }
    if let Some(first) = shell.differs.first() {
        let what = format!(
            "{} differs from the ports that this program knows, those of HDK 2.3.2, in {} places: {first}",
            shell.name,
            shell.differs.len()
        );
        findings.push(Finding { place: String::new(), what });
    }
    let looked = format!("{} ports of {}", shell.table.len(), shell.name);
    crate::check("ports", "SHEF-NET-101", looked, findings)
}
