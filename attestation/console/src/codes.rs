//! The codes of the running program.

use std::sync::OnceLock;

use shef_proto::code::Code;

/// Codes, grouped by crate.
pub type Groups = Vec<(&'static str, Vec<&'static Code>)>;

/// The program whose `explain` knows the codes, and the codes of this program's libraries.
static PROGRAM: OnceLock<(&'static str, Libraries)> = OnceLock::new();

/// Gives the codes of a program's libraries.
pub type Libraries = fn() -> Groups;

/// Sets both, once, at the start of the program.
pub(crate) fn set(explainer: &'static str, libraries: Libraries) {
    let _ = PROGRAM.set((explainer, libraries));
}

/// The program whose `explain` knows the codes.
pub(crate) fn explainer() -> &'static str {
    PROGRAM.get().map_or("shef", |(explainer, _)| explainer)
}

/// All codes of the running program, grouped by crate.
pub fn groups() -> Groups {
    let mut groups = PROGRAM.get().map(|(_, libraries)| libraries()).unwrap_or_default();
    groups.push(("commands", CODES.iter().collect()));
    groups
}

/// The code named `id`.
pub fn find(id: &str) -> Option<&'static Code> {
    groups().into_iter().flat_map(|(_, codes)| codes).find(|code| code.id == id)
}

/// Codes of commands.
pub const CODES: &[Code] = &[
    Code::new("SHEF-CLI-001", "flags conflict", "`--help` after the command lists its flags"),
    Code::new(
        "SHEF-CLI-002",
        "there is no such code",
        "every error prints its code, such as SHEF-ATT-012; `explain` without a code lists those of \
        the program",
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
        "check path, permissions and free space (`df -h`), then run the command again. If the file \
        is standard output, the command did its work: what it did not show, such as a token, is \
        lost",
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
    Code::new(
        "SHEF-CLI-028",
        "an input of a job does not fit its region",
        "give a file with 1 byte to the size of the region in shield.toml; an input that is shorter \
        than its region is padded with zeros to whole chunks, and the rest of the region cannot be \
        read",
    ),
    Code::new(
        "SHEF-CLI-029",
        "the image or the card is of another project",
        "the message names both: give the folder that the image or card was made from. A change of a \
        source or of shield.toml makes another design",
    ),
    Code::new(
        "SHEF-CLI-030",
        "the accelerator was not done in time, or made no progress",
        "the session was closed and no output was written. Compare the register with the `done` of \
        the job, and the other registers with the accelerator's documentation; a port that waits is \
        in the message. --seconds gives it more time, and --stall-cycles more cycles without progress",
    ),
    Code::new(
        "SHEF-CLI-031",
        "the sessions of a job have different results",
        "the same job on the same data gave another result: the accelerator keeps state between \
        sessions, or uses what it did not write or receive",
    ),
    Code::new("SHEF-CLI-070", "internal error", "please report it together with the command"),
];
