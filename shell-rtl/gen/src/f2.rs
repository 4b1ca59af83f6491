//! The ports of a custom logic in the shell of AWS F2: the table `shell-rtl/shell/aws_f2/ports.csv`,
//! and the header made from it, which takes the place of the HDK's `cl_ports.vh`.

use std::fmt::Write as _;

/// The table.
pub const TABLE: &str = include_str!("../../shell/aws_f2/ports.csv");

/// A port of a custom logic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// AWS's name.
    pub name: String,
    /// Bits.
    pub width: u32,
    /// `input`, `output` or `inout`, as the custom logic sees it.
    pub direction: String,
    /// The interface that the port belongs to.
    pub interface: String,
    /// The clock that the port is synchronous to; `-`: the port is a clock or has no known one.
    pub clock: String,
    /// What an unused output has to do: a constant, or words; `-`: nothing.
    pub if_unused: String,
}

/// Reads a table of ports.
///
/// # Errors
/// Line and content of the first line that is not a port.
pub fn ports(table: &str) -> Result<Vec<Port>, String> {
    let rows = (1..).zip(table.lines()).filter(|(_, line)| !line.starts_with('#'));
    rows.skip(1)
        .map(|(n, line)| {
            // Only the last column may contain a comma, and then has quotes.
            let mut columns = line.splitn(6, ',').map(|column| column.trim_matches('"').to_owned());
            let mut next = || columns.next();
            let port = (|| {
                let (name, width, direction) = (next()?, next()?.parse().ok()?, next()?);
                let (interface, clock, if_unused) = (next()?, next()?, next()?);
                let known = ["input", "output", "inout"].contains(&direction.as_str());
                known.then_some(Port { name, width, direction, interface, clock, if_unused })
            })();
            port.ok_or_else(|| format!("line {n}: expected a port in six columns, found {line}"))
        })
        .collect()
}

/// The port list of a custom logic, for inclusion between the parentheses of a module's header.
#[must_use]
pub fn header(ports: &[Port]) -> String {
    let mut out = "// Generated from shell-rtl/shell/aws_f2/ports.csv by `cargo xtask generate`; do not edit.\n// The port \
                   list of a custom logic, in place of the HDK's header.\n"
        .to_owned();
    for (i, port) in ports.iter().enumerate() {
        let Port { name, width, direction, .. } = port;
        let kind = if direction == "inout" { "wire" } else { "logic" };
        let range = if *width == 1 { String::new() } else { format!(" [{}:0]", width - 1) };
        let end = if i + 1 == ports.len() { "" } else { "," };
        let _ = writeln!(out, "  {direction:<6} {kind}{range} {name}{end}");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_ports_of_the_shell() {
        let ports = ports(TABLE).unwrap();
        let bits = |direction: &str| -> u32 {
            ports.iter().filter(|port| port.direction == direction).map(|port| port.width).sum()
        };
        assert_eq!(ports.len(), 217);
        assert_eq!([bits("input"), bits("output"), bits("inout")], [2284, 2183, 108]);
    }

    #[test]
    fn a_line_that_is_no_port_is_named() {
        let error = ports("# x\nname,width\na,1,input,i,-,-\nb,none,input,i,-,-\n").unwrap_err();
        assert!(error.starts_with("line 4: "), "{error}");
    }
}
