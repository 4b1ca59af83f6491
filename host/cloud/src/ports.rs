//! Ports of a custom logic: our table of them, and the header of the user's HDK.

use std::path::Path;

use shef_gen::f2;

use crate::CloudError;

/// A port of the custom logic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Width in bits.
    pub width: u32,
    /// `input`, `output` or `inout`, seen from the custom logic.
    pub direction: String,
}

impl std::fmt::Display for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} of {} bits", self.direction, self.name, self.width)
    }
}

/// The table that the adapter is written for.
#[must_use]
pub fn table() -> Vec<Port> {
    let rows = f2::ports(f2::TABLE).expect("the table is part of the program, and a test reads it");
    rows.into_iter()
        .map(|f2::Port { name, width, direction, .. }| Port { name, width, direction })
        .collect()
}

/// Without comments; line breaks stay.
fn without_comments(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        out.push_str(&rest[..at]);
        let comment = &rest[at..];
        let len = if comment.starts_with("//") {
            comment.find('\n')
        } else {
            comment.find("*/").map(|end| end + 2)
        };
        let len = len.unwrap_or(comment.len());
        out.extend(comment[..len].chars().filter(|c| *c == '\n'));
        rest = &comment[len..];
    }
    out + rest
}

/// The ports that a header declares: `direction [type] [range] name`, separated by commas.
///
/// # Errors
/// SHEF-CLD-003 with the line.
pub fn of_header(file: &Path, text: &str) -> Result<Vec<Port>, CloudError> {
    let text = without_comments(text);
    let mut line = 1;
    let mut ports = Vec::new();
    for item in text.split(',') {
        let before = item.len() - item.trim_start().len();
        let begins = line + item[..before].matches('\n').count();
        line += item.matches('\n').count();
        if item.trim().is_empty() {
            continue;
        }
        ports.push(port(item.trim()).ok_or_else(|| CloudError::Header {
            file: file.to_owned(),
            line: begins,
            found: item.trim().lines().next().unwrap_or_default().chars().take(80).collect(),
        })?);
    }
    if ports.is_empty() {
        let found = "no port".to_owned();
        return Err(CloudError::Header { file: file.to_owned(), line: 1, found });
    }
    Ok(ports)
}

/// One declaration.
fn port(item: &str) -> Option<Port> {
    let (range, words) = match item.split_once('[') {
        None => (None, item.to_owned()),
        Some((before, rest)) => {
            let (range, after) = rest.split_once(']')?;
            (Some(range), format!("{before} {after}"))
        }
    };
    let width = match range {
        None => 1,
        Some(range) => {
            let (high, low) = range.split_once(':')?;
            let [high, low]: [u32; 2] = [high.trim().parse().ok()?, low.trim().parse().ok()?];
            high.checked_sub(low)? + 1
        }
    };
    let words: Vec<&str> = words.split_whitespace().collect();
    let (direction, name) = match words[..] {
        [direction, "logic" | "wire" | "reg", name] | [direction, name] => (direction, name),
        [direction, "wire", "logic", name] => (direction, name),
        _ => return None,
    };
    let identifier = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    (["input", "output", "inout"].contains(&direction) && identifier(name)).then(|| Port {
        name: name.to_owned(),
        width,
        direction: direction.to_owned(),
    })
}

/// Compares the header of an HDK with our table.
///
/// # Errors
/// SHEF-CLD-002 with the first difference, SHEF-CLD-003.
pub fn compare(file: &Path, text: &str) -> Result<usize, CloudError> {
    let (found, table) = (of_header(file, text)?, table());
    let by_name = |ports: &[Port], name: &str| ports.iter().find(|it| it.name == name).cloned();
    let missing = table.iter().find_map(|port| match by_name(&found, &port.name) {
        None => Some(format!("there is no {port}")),
        Some(other) if other != *port => Some(format!("expected {port}, found {other}")),
        Some(_) => None,
    });
    let added = || {
        let new = found.iter().find(|port| by_name(&table, &port.name).is_none());
        new.map(|port| format!("there is a new {port}"))
    };
    let twice = || {
        let many = found.len() > table.len();
        many.then(|| format!("{} ports are declared", found.len()))
    };
    match missing.or_else(added).or_else(twice) {
        None => Ok(found.len()),
        Some(difference) => {
            Err(CloudError::Ports { file: file.to_owned(), difference, expected: table.len() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of our model, which is generated from the table.
    const MODEL: &str = include_str!("../../../shell-rtl/shell/f2_model/cl_ports.vh");

    #[test]
    fn the_table_has_the_ports_of_the_header() {
        let sum = |direction: &str| -> u32 {
            table().iter().filter(|port| port.direction == direction).map(|port| port.width).sum()
        };
        assert_eq!((sum("input"), sum("output"), sum("inout")), (2284, 2183, 108));
        assert_eq!(compare(Path::new("cl_ports.vh"), MODEL).unwrap(), 217);
    }

    #[test]
    fn every_change_of_a_header_is_found_with_its_place() {
        let file = Path::new("cl_ports.vh");
        for (from, to, code, says) in [
            ("input  logic clk_main_a0,", "", "SHEF-CLD-002", "no input clk_main_a0 of 1 bits"),
            (
                "output logic [15:0] cl_sh_pcim_awid",
                "output logic [17:0] cl_sh_pcim_awid",
                "SHEF-CLD-002",
                "found output cl_sh_pcim_awid of 18",
            ),
            (
                "output logic cl_sh_flr_done",
                "input logic cl_sh_flr_done",
                "SHEF-CLD-002",
                "found input cl_sh_flr_done",
            ),
            (
                "input  logic clk_main_a0,",
                "input logic clk_main_a0, input clk_extra,",
                "SHEF-CLD-002",
                "new input clk_extra",
            ),
            (
                "input  logic clk_main_a0,",
                "input logic clk_main_a0, input clk_main_a0,",
                "SHEF-CLD-002",
                "218 ports are declared",
            ),
            (
                "input  logic rst_main_n,",
                "`ifdef OLD input rst_main_n `endif,",
                "SHEF-CLD-003",
                ":4: expected a port",
            ),
            ("[1:0] sh_cl_pwr_state", "[N-1:0] sh_cl_pwr_state", "SHEF-CLD-003", "[N-1:0]"),
        ] {
            assert!(MODEL.contains(from), "{from}");
            let error = compare(file, &MODEL.replacen(from, to, 1)).unwrap_err();
            assert!(error.code() == code && error.to_string().contains(says), "{error}");
        }
        assert_eq!(compare(file, "").unwrap_err().code(), "SHEF-CLD-003");
        // AWS's own form: comments of both kinds, spaces in ranges, and wires.
        let text = "// [31:0]\n input /* x, y */ logic [7 : 0] a, // b,\n inout  wire [1:0] c\n";
        let ports = of_header(file, text).unwrap();
        assert_eq!(ports.iter().map(|p| p.width).collect::<Vec<_>>(), [8, 2]);
    }
}
