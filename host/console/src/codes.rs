//! The codes of the whole program.

use std::sync::OnceLock;

use shef_proto::code::Code;

/// Codes, grouped by crate.
pub type Groups = Vec<(&'static str, Vec<&'static Code>)>;

/// Codes of the program that no library below this one has.
static OTHERS: OnceLock<fn() -> Groups> = OnceLock::new();

/// Adds codes of the program to [`groups`], once, at its start.
pub fn add(others: fn() -> Groups) {
    let _ = OTHERS.set(others);
}

/// All codes of the program, grouped by crate.
pub fn groups() -> Groups {
    let mut groups = shef::codes();
    groups.extend(OTHERS.get().map(|others| others()).unwrap_or_default());
    // Cards and `shef shield` report these.
    for (part, codes) in [("Security Kernel", shef_kernel::CODES), ("generators", shef_gen::CODES)]
    {
        if groups.iter().all(|(known, _)| *known != part) {
            groups.push((part, codes.iter().collect()));
        }
    }
    groups.push(("command shef", CODES.iter().collect()));
    groups
}

/// The code named `id`.
pub fn find(id: &str) -> Option<&'static Code> {
    groups().into_iter().flat_map(|(_, codes)| codes).find(|code| code.id == id)
}

/// Codes of the command itself.
pub const CODES: &[Code] = &[
    Code::new("SHEF-CLI-001", "flags conflict", "see `shef COMMAND --help`"),
    Code::new(
        "SHEF-CLI-002",
        "there is no such code",
        "every error prints its code, such as SHEF-ATT-012; `shef explain` without a code lists \
        them all",
    ),
    Code::new("SHEF-CLI-010", "a file cannot be read", "check path and permissions"),
    Code::new(
        "SHEF-CLI-011",
        "a gzipped file is damaged",
        "fetch the file again; `gzip -t FILE` must succeed",
    ),
    Code::new(
        "SHEF-CLI-012",
        "a line of the data file is not valid",
        "each line has 64 whole numbers from 0 to 255 and a label from 0 to 15, separated by commas",
    ),
    Code::new(
        "SHEF-CLI-013",
        "the data file is empty or too large",
        "give a file with 2 to 20480 rows",
    ),
    Code::new(
        "SHEF-CLI-014",
        "the data cannot be split like this",
        "choose --train N so that 1 to 4096 rows train and 1 to 16384 are queries",
    ),
    Code::new(
        "SHEF-CLI-015",
        "a file or folder cannot be written",
        "check path, permissions and free space (`df -h`), then run the command again",
    ),
    Code::new(
        "SHEF-CLI-016",
        "a configuration file is not valid",
        "the message names line and column; unknown keys are errors",
    ),
    Code::new(
        "SHEF-CLI-017",
        "a key file is not valid",
        "the key files of a party are 32 bytes in hexadecimal, readable by their owner only",
    ),
    Code::new(
        "SHEF-CLI-018",
        "a hexadecimal argument is not valid",
        "give an even number of the digits 0-9 and a-f, of the length that the message names",
    ),
    Code::new(
        "SHEF-CLI-019",
        "a file is too large",
        "the message names the limit; is it the right file?",
    ),
    Code::new(
        "SHEF-CLI-020",
        "the results differ from the reference",
        "the accelerator or the Shield computed wrongly: this is a defect, please report it with the output of --json",
    ),
    Code::new(
        "SHEF-CLI-021",
        "an attack was not refused",
        "this is a serious defect, please report it with the output of --json",
    ),
    Code::new(
        "SHEF-CLI-022",
        "the appraisal is undecided",
        "give evidence, trust anchors, and reference values for every part of the layer",
    ),
    Code::new(
        "SHEF-CLI-023",
        "the trust data installed are newer",
        "an older bundle would lose later revocations; to install it anyway, remove the folder \
        first",
    ),
    Code::new(
        "SHEF-CLI-024",
        "a process of the demo did not start",
        "shef-sim, shef-agent and shef-verifierd must be in the same folder: `cargo build -p \
        shef-sim -p shef-agent -p shef-verifierd`",
    ),
    Code::new(
        "SHEF-CLI-025",
        "a secret would be written into a git work tree",
        "a committed secret stays in the history: give a folder outside every work tree",
    ),
    Code::new(
        "SHEF-CLI-026",
        "an output is also another file of the command",
        "give each output a separate name, not that of an input or key; no request was sent and \
        nothing was written",
    ),
    Code::new(
        "SHEF-CLI-027",
        "this command did not create the folder",
        "give a new or empty folder, or one that this command created and that has no other \
        files; the folder was not changed",
    ),
    Code::new("SHEF-CLI-070", "internal error", "please report it together with the command"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_code_is_listed_once_and_explained() {
        let mut seen = HashSet::new();
        for (part, codes) in groups() {
            assert!(!codes.is_empty(), "{part} lists no codes");
            for code in codes {
                assert!(seen.insert(code.id), "{} twice", code.id);
                let (prefix, number) = code.id.rsplit_once('-').unwrap();
                assert!(
                    prefix.starts_with("SHEF-")
                        && number.len() == 3
                        && number.bytes().all(|b| b.is_ascii_digit()),
                    "{}",
                    code.id
                );
                assert!(
                    !code.summary.is_empty() && !code.help.is_empty(),
                    "{} is not explained",
                    code.id
                );
            }
        }
    }
}
