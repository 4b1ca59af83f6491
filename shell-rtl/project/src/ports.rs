//! The ports of an accelerator.

use crate::verilog::Lexer;
use crate::verilog::Token;

/// The ports of every accelerator: direction, type and name. Those of memory are arrays with one
/// element per port of the accelerator.
const PORTS: [(&str, &str, &str); 36] = [
    ("input", "", "clk_i"),
    ("input", "", "rst_ni"),
    ("input", "", "clear_i"),
    ("output", "", "cleared_o"),
    ("input", "[15:0]", "reg_awaddr_i"),
    ("input", "", "reg_awvalid_i"),
    ("output", "", "reg_awready_o"),
    ("input", "[31:0]", "reg_wdata_i"),
    ("input", "[3:0]", "reg_wstrb_i"),
    ("input", "", "reg_wvalid_i"),
    ("output", "", "reg_wready_o"),
    ("output", "[1:0]", "reg_bresp_o"),
    ("output", "", "reg_bvalid_o"),
    ("input", "", "reg_bready_i"),
    ("input", "[15:0]", "reg_araddr_i"),
    ("input", "", "reg_arvalid_i"),
    ("output", "", "reg_arready_o"),
    ("output", "[31:0]", "reg_rdata_o"),
    ("output", "[1:0]", "reg_rresp_o"),
    ("output", "", "reg_rvalid_o"),
    ("input", "", "reg_rready_i"),
    ("output", "axi_ax_t", "acc_aw_o"),
    ("output", "", "acc_aw_valid_o"),
    ("input", "", "acc_aw_ready_i"),
    ("output", "axi_w_t", "acc_w_o"),
    ("output", "", "acc_w_valid_o"),
    ("input", "", "acc_w_ready_i"),
    ("input", "axi_b_t", "acc_b_i"),
    ("input", "", "acc_b_valid_i"),
    ("output", "", "acc_b_ready_o"),
    ("output", "axi_ax_t", "acc_ar_o"),
    ("output", "", "acc_ar_valid_o"),
    ("input", "", "acc_ar_ready_i"),
    ("input", "axi_r_t", "acc_r_i"),
    ("input", "", "acc_r_valid_i"),
    ("output", "", "acc_r_ready_o"),
];
/// The last one, the interrupt.
const IRQ: (&str, &str, &str) = ("output", "", "irq_o");

fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    PORTS.into_iter().chain([IRQ])
}

/// A module `shef_accel` around a top module of another name, with these parameters.
pub(crate) fn wrapper(top: &str, parameters: &[(String, String)]) -> String {
    let port = |(direction, kind, name): (&str, &str, &str)| {
        let array = if name.starts_with("acc_") { "[shef_cfg_pkg::N_ACC-1:0]" } else { "" };
        let (net, kind) = match kind {
            "" => ("logic", String::new()),
            bits if bits.starts_with('[') => ("logic", format!(" {bits}")),
            name => (name, String::new()),
        };
        let wire = if direction == "input" { "input wire" } else { "output" };
        format!("    {wire} {net}{kind} {array} {name}")
    };
    let ports: Vec<String> = all().map(port).collect();
    let pins: Vec<String> = all().map(|(_, _, name)| format!("      .{name}")).collect();
    let values: Vec<String> =
        parameters.iter().map(|(name, value)| format!("      .{name}({value})")).collect();
    let values =
        if values.is_empty() { String::new() } else { format!(" #(\n{}\n  )", values.join(",\n")) };
    format!(
        "// Generated: the accelerator around the module {top}.\n`default_nettype none\nmodule shef_accel\n  import shef_pkg::*;\n\
         (\n{}\n);\n  {top}{values} u_top (\n{}\n  );\nendmodule\n`default_nettype wire\n",
        ports.join(",\n"),
        pins.join(",\n")
    )
}

/// Bits of a port with this type, of one memory port.
fn bits(kind: &str) -> u32 {
    match kind {
        "" => 1,
        "axi_ax_t" => 85,
        "axi_w_t" => 577,
        "axi_b_t" => 10,
        "axi_r_t" => 523,
        range => {
            let high = range.trim_start_matches('[').split(':').next();
            high.and_then(|high| high.parse::<u32>().ok()).unwrap_or(0) + 1
        }
    }
}

/// Why the ports of a top module, as the front end prints them, do not fit an accelerator with this
/// number of memory ports, if so. Further outputs do.
pub(crate) fn misfit(printed: &[String], memory_ports: u32) -> Option<String> {
    let words = printed.iter().map(|line| line.split(' ').collect::<Vec<_>>());
    let found: Vec<(&str, &str, &str)> =
        words.filter_map(|words| Some((*words.first()?, *words.get(1)?, *words.get(2)?))).collect();
    let differs = |(direction, kind, name): (&'static str, &str, &str)| {
        let all = if name.starts_with("acc_") { memory_ports } else { 1 };
        let range = format!("[{}:0]", bits(kind) * all - 1);
        let (is, has, _) = found.iter().find(|(_, _, port)| *port == name)?;
        let expected = match all {
            1 => format!("{direction} {range}"),
            n => format!("{direction} {range}, for {n} memory ports"),
        };
        ((*is, *has) != (direction, range.as_str()))
            .then(|| format!("{name} is {is} {has}: expected {expected}"))
    };
    let own = |name: &str| all().any(|(_, _, port)| port == name);
    let open = found.iter().find(|(direction, _, name)| *direction != "output" && !own(name));
    all().find_map(differs).or_else(|| {
        open.map(|(direction, _, name)| {
            format!("{direction} {name} is no port of an accelerator: nothing would drive it")
        })
    })
}

/// The first port of an accelerator that a module's header lacks, and the offset of the module's
/// name. `None` also if macros write the header: only a front end reads those.
pub(crate) fn missing(text: &[u8], module: &str) -> Option<(usize, &'static str)> {
    let (at, names) = header(text, module)?;
    all().map(|(_, _, name)| name).find(|name| !names.contains(name)).map(|name| (at, name))
}

/// The names of a module's ports, and the offset of its name.
fn header<'a>(text: &'a [u8], module: &str) -> Option<(usize, Vec<&'a str>)> {
    let tokens: Vec<(usize, Token<'a>)> = Lexer::new(text).collect();
    let word = |i: usize| match tokens.get(i) {
        Some((_, Token::Identifier(name))) => *name,
        _ => "",
    };
    let byte = |i: usize| match tokens.get(i) {
        Some((at, Token::Other)) => text[*at],
        _ => 0,
    };
    let declares = |i: &usize| {
        let before = i.checked_sub(1).map(word).unwrap_or_default();
        let keyword = if ["automatic", "static"].contains(&before) { 2 } else { 1 };
        word(*i) == module
            && i.checked_sub(keyword).is_some_and(|k| ["module", "macromodule"].contains(&word(k)))
    };
    let name = (0..tokens.len()).find(declares)?;
    let (mut i, mut depth) = (name + 1, 0_usize);
    // Imports and parameters.
    while word(i) == "import" {
        i += (i..tokens.len()).position(|k| byte(k) == b';')? + 1;
    }
    if byte(i) == b'#' {
        i += 1;
        loop {
            match byte(i) {
                b'(' => depth += 1,
                b')' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            tokens.get(i)?;
            i += 1;
            if depth == 0 {
                break;
            }
        }
    }
    if byte(i) != b'(' {
        return Some((tokens[name].0, Vec::new()));
    }
    let (mut names, mut last, mut default) = (Vec::new(), None, false);
    for k in i.. {
        let (_, token) = tokens.get(k)?;
        match (token, byte(k)) {
            (Token::Directive("ifdef" | "ifndef" | "elsif" | "else" | "endif"), _) => {}
            (Token::Directive(_), _) => return None,
            (_, b'(' | b'[' | b'{') => depth += 1,
            (_, b')' | b']' | b'}') => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    names.extend(last.take());
                    return Some((tokens[name].0, names));
                }
            }
            (_, b',') if depth == 1 => {
                names.extend(last.take());
                default = false;
            }
            (_, b'=') if depth == 1 => default = true,
            (Token::Identifier(word), _) if depth == 1 && !default => last = Some(*word),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_each_memory_port_are_side_by_side() {
        let printed = ["output [84:0] acc_aw_o".to_owned()];
        assert_eq!(misfit(&printed, 1), None);
        assert_eq!(
            misfit(&printed, 2).unwrap(),
            "acc_aw_o is output [84:0]: expected output [169:0], for 2 memory ports"
        );
    }
}
