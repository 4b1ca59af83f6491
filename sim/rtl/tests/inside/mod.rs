//! The registers and memories in a snapshot, by their names in the RTL.

use shef_rtl::{DesignSpec, find_toolchain};
use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// The head of a snapshot: didInit, the number of the design, Verilator's own context.
const HEAD: usize = 1 + 8 + 56;

/// The variables of a design, in snapshot order.
pub struct Inside {
    /// Start of every snapshot of this design.
    check: u64,
    /// Names and sizes in bytes.
    variables: Vec<(String, usize)>,
}

impl Inside {
    /// Reads them from Verilator's generated code, here in a folder of this name.
    ///
    /// # Panics
    /// When Verilator does not generate it.
    pub fn of(spec: &DesignSpec, folder: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        std::fs::create_dir_all(&dir).unwrap();
        let tc = find_toolchain().unwrap();
        // as in the build of the design
        let flags = "--cc --no-timing -O3 --x-assign fast --x-initial fast --assert --prefix Vtop --output-split 30000 \
                     --output-split-cfuncs 3000 --threads 1 -Wno-fatal -Werror-USERERROR --savable";
        let (headers, sources): (Vec<_>, Vec<_>) = spec
            .sources
            .resolve_sources()
            .unwrap()
            .into_iter()
            .partition(|p| p.extension().is_some_and(|e| e == "svh" || e == "vh"));
        let mut c = Command::new(&tc.verilator);
        c.env("VERILATOR_ROOT", &tc.root)
            .args(flags.split(' '))
            .args(["--top-module", &spec.sources.top, "--Mdir"])
            .arg(&dir);
        c.args(
            headers
                .iter()
                .filter_map(|p| p.parent())
                .map(|folder| format!("+incdir+{}", folder.display())),
        );
        // Foreign modules as in synthesis, without their print statements; not the files that they
        // include.
        for source in sources {
            let text = std::fs::read_to_string(&source).unwrap();
            let module = text.contains("\nendmodule") || text.contains("\nendpackage");
            if module && spec.sources.foreign.iter().any(|folder| source.starts_with(folder)) {
                let copy = dir.join(source.file_name().unwrap());
                std::fs::write(&copy, format!("`define SYNTHESIS\n{text}\n`undef SYNTHESIS\n"))
                    .unwrap();
                c.arg(copy);
            } else {
                c.arg(source);
            }
        }
        let run = c.output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
        let sizes = sizes(&read("Vtop___024root.h"));
        let code = std::fs::read_dir(&dir)
            .unwrap()
            .filter_map(|e| e.ok()?.file_name().into_string().ok())
            .filter(|n| n.ends_with(".cpp"))
            .map(|n| read(&n))
            .find(|t| t.contains("void Vtop___024root::__Vserialize("))
            .expect("the code that writes snapshots");
        let body = code
            .split("void Vtop___024root::__Vserialize(")
            .nth(1)
            .unwrap()
            .split("::__Vdeserialize(")
            .next()
            .unwrap();
        let (mut check, mut variables, mut loops) = (0, Vec::new(), Vec::new());
        for line in body.lines().map(str::trim) {
            if let Some(number) = line.strip_prefix("uint64_t __Vcheckval = 0x") {
                check = u64::from_str_radix(number.trim_end_matches("ULL;"), 16).unwrap();
            } else if line.starts_with("for (") {
                loops.push(
                    line.split("< ")
                        .nth(1)
                        .unwrap()
                        .split(';')
                        .next()
                        .unwrap()
                        .parse::<usize>()
                        .unwrap(),
                );
            } else if line == "}" && !loops.is_empty() {
                loops.pop();
            } else if let Some(name) = line.strip_prefix("os<<") {
                let name = name.trim_end_matches(';').split('[').next().unwrap();
                variables.push((name.to_owned(), sizes[name] * loops.iter().product::<usize>()));
            }
        }
        Self { check, variables }
    }

    /// Name and bytes of each variable in a snapshot that represents hardware, without Verilator's
    /// own variables (of functions, of assignments in progress).
    ///
    /// # Panics
    /// When the snapshot belongs to another design.
    pub fn of_snapshot<'a>(&'a self, state: &'a [u8]) -> impl Iterator<Item = (&'a str, &'a [u8])> {
        assert_eq!(state[1..9], self.check.to_le_bytes(), "the variables are those of this design");
        let all = HEAD + self.variables.iter().map(|(_, bytes)| bytes).sum::<usize>();
        assert!(all <= state.len() && state.len() - all < 1024, "{all} of {}", state.len());
        let mut at = HEAD;
        self.variables
            .iter()
            .map(move |(name, bytes)| {
                at += bytes;
                (name.as_str(), &state[at - bytes..at])
            })
            .filter(|(name, _)| !name.split("__DOT__").any(|part| part.starts_with("__V")))
    }

    /// The names of the variables that differ between two snapshots.
    pub fn differing<'a>(&'a self, a: &'a [u8], b: &'a [u8]) -> Vec<&'a str> {
        self.of_snapshot(a)
            .zip(self.of_snapshot(b))
            .filter(|((_, a), (_, b))| a != b)
            .map(|((name, _), _)| name)
            .collect()
    }
}

/// Size in bytes of an element of each variable that a header declares.
fn sizes(header: &str) -> HashMap<String, usize> {
    let word = |t: &str| {
        t.rsplit(|c: char| !c.is_alphanumeric() && c != '_')
            .find(|w| !w.is_empty())
            .unwrap_or_default()
            .to_owned()
    };
    let mut sizes = HashMap::new();
    for line in header.lines().map(str::trim).filter(|l| l.ends_with(';')) {
        if let Some((kind, rest)) = line
            .strip_prefix("VL_IN")
            .or(line.strip_prefix("VL_OUT"))
            .and_then(|l| l.split_once('('))
        {
            let bytes = match kind {
                "8" => 1,
                "16" => 2,
                "64" => 8,
                _ => 4,
            };
            sizes.insert(word(rest.split(',').next().unwrap()), bytes);
        } else {
            let known = [
                ("VlWide", 4),
                ("CData", 1),
                ("SData", 2),
                ("IData", 4),
                ("QData", 8),
                ("bool", 1),
            ];
            if let Some((_, bytes)) = known.into_iter().find(|(t, _)| line.contains(t)) {
                sizes.insert(word(line), bytes);
            }
        }
    }
    sizes
}
