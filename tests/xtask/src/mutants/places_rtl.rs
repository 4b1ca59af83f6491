//! The same as [`places`](super::places) for the RTL of Security Kernel and system: every
//! comparison, every gate and every erasure, found in the sources, and its mutant.
//!
//! A place is one line or several adjacent lines of a module of `shell-rtl/rtl/kernel` or
//! `shell-rtl/rtl/system`; packages have no places. It is one of these:
//!
//! - comparison: `==`, `!=`, `<`, `>` or `>=`; except for the decoding of registers (`item ==
//!   ...`);
//! - mask: a choice between a value and zero;
//! - latch: `if (...)` that sets or clears one register;
//! - erasure: lines that set registers to constants, one of more than one bit to zero among them;
//! - joint: a port of an instance that is connected to more than a name; and in `shef_system`,
//!   which consists of joints, lines with logic.
//!
//! The list, `tests/mutants/places-rtl.toml`, gives one of these for each place:
//!
//! - `weak`, the replacement (if empty, the lines are removed), with the `proof` or the `test` that
//!   must then fail: the full run tries it with the mutants of that proof or test;
//! - `mutant`, which changes this place: `NAME` of `tests/mutants` or `PROOF/NAME` of
//!   `proofs.toml`;
//! - `why`, the reason why it has no mutant.

use super::places::{code, numbered};
use super::{Edit, Mutant};
use crate::process::{Context, Result, ensure};
use crate::{files, root};
use fs_err as fs;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// The list.
pub const LIST: &str = "tests/mutants/places-rtl.toml";
/// Folders below `shell-rtl` that are searched for places.
const SOURCES: [&str; 2] = ["rtl/kernel", "rtl/system"];
/// The module that only joins others.
const JOINTS: &str = "rtl/system/shef_system.sv";
/// Texts with which the generated packages decode registers.
const DECODED: [&str; 2] = ["item ==", "item !="];
const COMPARES: [&str; 5] = [" == ", " != ", " < ", " > ", " >= "];
const LOGIC: [&str; 7] = [" && ", " || ", "!", " & ", " | ", "~", " ? "];

/// The list's entry for a place.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The replacement.
    weak: Option<String>,
    /// The proof that must then fail.
    proof: Option<String>,
    /// `package/test-target/test-name` that must then fail.
    test: Option<String>,
    /// Mutant that changes this place.
    mutant: Option<String>,
    /// Why it has no mutant.
    why: Option<String>,
}

impl Entry {
    /// Whether exactly one of them is given, and `weak` with a proof or a test.
    fn is_one(&self) -> bool {
        let all = [&self.proof, &self.test, &self.mutant, &self.why].into_iter().flatten();
        let one = all.filter(|text| !text.is_empty()).count() == 1;
        one && self.weak.is_some() == (self.proof.is_some() || self.test.is_some())
    }
}

/// File below `shell-rtl`, then key of the place.
type List = BTreeMap<String, BTreeMap<String, Entry>>;

/// One place of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    /// Its text, the first line of a joint, or the registers that it erases: the key in the list.
    key: String,
    at: Range<usize>,
}

/// Kind of a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Line,
    /// Sets a register to a constant; true if the register has more than one bit and the constant
    /// is zero.
    Erases(bool),
    Joins,
}

fn is_zero(value: &str) -> bool {
    value == "'0"
        || value
            .split_once("'d")
            .or_else(|| value.split_once("'h"))
            .is_some_and(|(bits, zero)| bits != "1" && zero == "0")
}

fn is_constant(value: &str) -> bool {
    is_zero(value)
        || value.starts_with(|c: char| c.is_ascii_digit())
        || value.starts_with(|c: char| c.is_ascii_uppercase())
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Name and value of a statement that sets a register.
fn sets(statement: &str) -> Option<(&str, &str)> {
    statement
        .strip_suffix(';')?
        .split_once(" <= ")
        .filter(|(name, value)| is_name(name) && !value.contains(' '))
}

fn kind(line: &str, joints: bool) -> Option<Kind> {
    if ["for (", "localparam", "parameter", "`", "assert ", "import "]
        .iter()
        .any(|begin| line.starts_with(begin))
    {
        return None;
    }
    if let Some((_, value)) = sets(line).filter(|(_, value)| is_constant(value)) {
        return Some(Kind::Erases(is_zero(value)));
    }
    let compares: usize = COMPARES.iter().map(|sign| line.matches(sign).count()).sum();
    let decodes: usize = DECODED.iter().map(|sign| line.matches(sign).count()).sum();
    let masks = line.contains(" ? ") && line.split([' ', '(', ')', ';', ',']).any(is_zero);
    let latches = line.split_once("if (").is_some_and(|(_, rest)| {
        rest.rsplit_once(") ")
            .and_then(|(_, statement)| sets(statement))
            .is_some_and(|(_, value)| is_zero(value) || value.starts_with("1'b"))
    });
    if compares > decodes || masks || latches {
        return Some(Kind::Line);
    }
    let logic = |text: &str| LOGIC.iter().any(|sign| text.contains(sign));
    if joints && logic(line) && !line.starts_with("if (!rst_ni)") {
        return Some(Kind::Joins);
    }
    let (name, value) = line.strip_prefix('.')?.split_once('(')?;
    (is_name(name) && logic(value) && !value.starts_with('{')).then_some(Kind::Line)
}

/// Finds the places of one file.
fn scan(text: &str, joints: bool) -> Vec<Place> {
    let code = code(text);
    let code = String::from_utf8_lossy(&code);
    let mut found: Vec<(Range<usize>, Kind)> = Vec::new();
    // Whether the previous line belongs to the last place.
    let (mut from, mut open) = (0, false);
    for line in code.split_inclusive('\n') {
        let bare = line.trim();
        let start = from + line.len() - line.trim_start().len();
        let at = start..start + bare.len();
        from += line.len();
        let kind = kind(bare, joints);
        match (kind, found.last_mut()) {
            (Some(Kind::Erases(zero)), Some((range, Kind::Erases(some)))) if open => {
                (range.end, *some) = (at.end, *some || zero);
            }
            (Some(Kind::Joins), Some((range, Kind::Joins))) if open => range.end = at.end,
            (Some(kind), _) => found.push((at, kind)),
            (None, _) => {}
        }
        open = kind.is_some();
    }
    let (mut seen, mut out) = (BTreeMap::new(), Vec::new());
    for (at, kind) in found.into_iter().filter(|(_, kind)| *kind != Kind::Erases(false)) {
        let text = &code[at.clone()];
        let key = match kind {
            Kind::Line => text.trim().to_owned(),
            Kind::Joins => text.lines().next().unwrap_or_default().trim().to_owned(),
            Kind::Erases(_) => {
                let names: Vec<&str> =
                    text.lines().filter_map(|line| Some(sets(line.trim())?.0)).collect();
                format!("erases {}", names.join(", "))
            }
        };
        out.push(Place { key: numbered(&mut seen, "", key), at });
    }
    out
}

fn list() -> Result<List> {
    toml::from_str(&fs::read_to_string(root().join(LIST))?).context(LIST)
}

/// Each file with its text and its places.
fn places() -> Result<Vec<(String, String, Vec<Place>)>> {
    let mut all = Vec::new();
    for folder in SOURCES {
        for path in files::below(&root().join("shell-rtl").join(folder))? {
            let file = format!("{folder}/{}", files::name(&path));
            if file.ends_with(".sv") && !file.ends_with("_pkg.sv") {
                let text = fs::read_to_string(&path)?;
                let places = scan(&text, file == JOINTS);
                all.push((file, text, places));
            }
        }
    }
    Ok(all)
}

/// The places for which the list has a replacement, with their entries.
fn weakened() -> Result<Vec<(Entry, Mutant)>> {
    let (list, mut out) = (list()?, Vec::new());
    for (file, text, places) in places()? {
        let Some(of) = list.get(&file) else { continue };
        for place in places {
            let Some(entry) = of.get(&place.key) else { continue };
            let what = "weak with a proof or a test, a mutant or a reason, and one of them";
            ensure!(entry.is_one(), "{LIST}: {file}: {}: {what}", place.key);
            let Some(weak) = entry.weak.clone() else { continue };
            let line = text[..place.at.start].matches('\n').count() + 1;
            let stem = file.rsplit('/').next().unwrap_or(&file).trim_end_matches(".sv");
            let edit = Edit {
                file: file.clone(),
                find: text[place.at.clone()].into(),
                replace: weak,
                at: Some(place.at.start),
            };
            let name = format!("{stem}-{line}");
            let mutant = Mutant::of_place(name, place.key, entry.test.clone(), edit);
            out.push((entry.clone(), mutant));
        }
    }
    Ok(out)
}

/// The mutants that a test must detect.
pub fn load() -> Result<Vec<Mutant>> {
    let tested = weakened()?.into_iter().filter(|(entry, _)| entry.test.is_some());
    Ok(tested.map(|(_, mutant)| mutant).collect())
}

/// The mutants in which this proof must fail: name, file below `rtl`, and its text with the edit.
pub fn of_proof(proof: &str) -> Result<Vec<(String, String, String)>> {
    let mut out = Vec::new();
    for (_, mutant) in weakened()?.iter().filter(|(entry, _)| entry.proof.as_deref() == Some(proof))
    {
        for edit in &mutant.edit {
            let text = fs::read_to_string(root().join(edit.path()))?;
            let file = edit.file.strip_prefix("rtl/").unwrap_or(&edit.file).to_owned();
            out.push((mutant.name.clone(), file, mutant.applied(edit, &text)?));
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{meets, named};
    use super::*;
    use crate::formal;

    #[test]
    fn every_place_of_the_rtl_is_in_the_list() -> Result<()> {
        let (list, places, mutants, proofs) = (list()?, places()?, named()?, formal::names());
        weakened()?;
        let all = places.iter().flat_map(|(file, _, of)| of.iter().map(move |place| (file, place)));
        let unnamed = all
            .filter(|(file, place)| !list.get(*file).is_some_and(|of| of.contains_key(&place.key)));
        let unnamed: Vec<String> = unnamed
            .map(|(file, place)| format!("[{file:?}]\n{:?} = {{ why = \"\" }}", place.key))
            .collect();
        assert!(unnamed.is_empty(), "not in {LIST}:\n{}", unnamed.join("\n"));
        for (file, of) in &list {
            let (_, text, places) = places
                .iter()
                .find(|(name, ..)| name == file)
                .unwrap_or_else(|| panic!("{LIST}: there is no {file}"));
            for (key, entry) in of {
                let here = format!("{LIST}: {file}: {key}");
                let place = places
                    .iter()
                    .find(|place| place.key == *key)
                    .unwrap_or_else(|| panic!("{here}: there is no such place"));
                let same = entry.weak.as_deref() == Some(&text[place.at.clone()]);
                assert!(!same, "{here}: nothing is weakened");
                if let Some(proof) = &entry.proof {
                    assert!(proofs.contains(proof), "{here}: there is no proof {proof}");
                }
                if let Some(name) = &entry.mutant {
                    let path = format!("shell-rtl/{file}");
                    let meets = mutants.get(name).map(|edits| meets(edits, &path, text, &place.at));
                    assert_eq!(meets, Some(true), "{here}: {name} is a mutant of this place");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn places_of_the_rtl_are_found() {
        let source = "
  // if (a == b) c_q <= '0;
  localparam int A = B == 1 ? 2 : 3;
  wire late = left_q == 32'd1;
  wire control = write && item == SYS_SEL_CONTROL;
  wire data = item == SEL_DATA && left_q != 0;
  assign word_o = locked_q ? 32'd0 : word;
  assign ready_o = ready_q;
  u_one u_one (
      .clk_i,
      .clear_i(!on),
      .b_i(b)
  );
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= S_IDLE;
      key_q <= '0;
      one_q <= 1'b0;
    end else begin
      flag_q <= 1'b0;
      if (lock) locked_q <= 1'b1;
      else if (give) out_q <= in_q;
    end
    if (!rst_ni) begin
      key_q <= '0;
    end
  end
";
        let keys: Vec<String> = scan(source, false).into_iter().map(|place| place.key).collect();
        let expected = [
            "wire late = left_q == 32'd1;",
            "wire data = item == SEL_DATA && left_q != 0;",
            "assign word_o = locked_q ? 32'd0 : word;",
            ".clear_i(!on),",
            "erases state_q, key_q, one_q",
            "if (lock) locked_q <= 1'b1;",
            "erases key_q",
        ];
        assert_eq!(keys, expected);
        let joined = scan(
            "  assign a = b && !held;\n  assign c = d && !held;\n\n  assign e = f || g;\n  assign h = i;\n",
            true,
        );
        let keys: Vec<&str> = joined.iter().map(|place| place.key.as_str()).collect();
        assert_eq!(keys, ["assign a = b && !held;", "assign e = f || g;"]);
    }
}
