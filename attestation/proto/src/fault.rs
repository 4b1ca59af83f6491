//! The party that must act on an error, for every code of the project.
//!
//! Programs exit by this table (`docs/reference/exit-statuses.md`), and a program that receives a
//! code from its peer classifies it by the same table.

use core::fmt::Display;

/// Category of an error: determines how a program reacts, and how a command exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A check failed: the answer is no.
    Answer,
    /// Incorrect use of the command line.
    Usage,
    /// No decision is possible, because a message or a value is missing.
    Undecided,
    /// The device or the path to it.
    Device,
    /// The caller's input or configuration.
    Input,
    /// A bug in the program.
    Internal,
}

/// An error with a stable code.
pub trait Coded: Display {
    /// Stable code.
    fn code(&self) -> &str;

    /// Category. An error overrides the category of its code if it knows more than the code says.
    fn fault(&self) -> Fault {
        of(self.code()).unwrap_or(Fault::Undecided)
    }
}

/// The codes `SHEF-FAMILY-NUMBER`, by family: the numbers of each category, single or from first to
/// last. A new code needs its number here: a test of all programs fails without it.
pub const TABLE: &[(&str, Fault, &str)] = &[
    ("AGT", Fault::Device, "001-002 004-005 007-010 012-015 018-019"),
    ("AGT", Fault::Input, "003 006 011 016-017"),
    (
        "ATT",
        Fault::Answer,
        "001-006 010-018 020-026 030-032 040-048 055-057 061-062 070-074 076 101",
    ),
    ("ATT", Fault::Undecided, "102"),
    ("ATT", Fault::Input, "050-054 060 075 080-081 100"),
    ("BEN", Fault::Answer, "001"),
    ("BEN", Fault::Input, "002"),
    ("CARD", Fault::Device, "001 005"),
    ("CARD", Fault::Input, "003-004"),
    ("CLD", Fault::Answer, "002 019 022-024 026-027 030 033-034 101-115"),
    ("CLD", Fault::Undecided, "008-012 020-021 025 029 035"),
    ("CLD", Fault::Device, "036 040-041 203 205-206 211-214 216-217 219-221 224-229"),
    ("CLD", Fault::Input, "001 003-007 013-018 028 031-032 042-046 049-060"),
    ("CLI", Fault::Answer, "020-021 023 030-031"),
    ("CLI", Fault::Usage, "001-002 026"),
    ("CLI", Fault::Undecided, "022"),
    ("CLI", Fault::Device, "024"),
    ("CLI", Fault::Input, "010-019 025 027-029"),
    ("CLI", Fault::Internal, "070"),
    ("DEV", Fault::Device, "005-016 018-019 021-023"),
    ("DEV", Fault::Input, "001-004 017 020 024-025"),
    ("EVA", Fault::Answer, "001"),
    ("EVA", Fault::Input, "002"),
    ("GEN", Fault::Input, "010-011 020-022"),
    ("KRN", Fault::Answer, "012-015 020-024 030 032 034"),
    ("KRN", Fault::Device, "001-006 010-011 031 033"),
    ("NET", Fault::Answer, "101-118"),
    ("NET", Fault::Input, "001-005"),
    ("PCI", Fault::Device, "001-021"),
    (
        "PRO",
        Fault::Answer,
        "001-007 010-013 020-026 030-031 042-043 050-051 060-062 070 090-095 230-232 235 254-256 271",
    ),
    ("PRJ", Fault::Input, "001-007"),
    ("PRO", Fault::Undecided, "250"),
    ("PRO", Fault::Input, "040-041 044 080-082 200-203 233-234 251-253 257 270 272-274"),
    ("RTL", Fault::Answer, "023 043 045-046"),
    ("RTL", Fault::Device, "014 040-042"),
    ("RTL", Fault::Input, "001-013 015-022 024-029 044"),
    ("SDK", Fault::Answer, "005 010 016 018-027 047 050"),
    ("SDK", Fault::Undecided, "004 015 029 031 033 035 040-041 046 049 052"),
    ("SDK", Fault::Device, "002 011 017 051 053"),
    ("SDK", Fault::Input, "003 006-008 012-014 028 030 032 034 036-038 042-045 048 054"),
    ("SDK", Fault::Internal, "039"),
    ("SEAL", Fault::Answer, "007-011"),
    ("SEAL", Fault::Input, "001-006 012"),
    ("SVC", Fault::Answer, "010 041-043 058-059 061-067"),
    ("SVC", Fault::Undecided, "023 029-030 032 056-057"),
    ("SVC", Fault::Device, "004 007 011-012 033"),
    ("SVC", Fault::Input, "001-003 005-006 008-009 013-015 020-022 024-028 040 050-055 060"),
    ("SVC", Fault::Internal, "031"),
    ("TST", Fault::Answer, "002"),
    ("TST", Fault::Input, "001 003-004"),
    ("VFU", Fault::Device, "001-008"),
    ("WRK", Fault::Usage, "001"),
    ("WRK", Fault::Input, "002-004"),
];

/// Category of a code. Codes of other versions, which a peer may send, have none.
#[must_use]
pub fn of(code: &str) -> Option<Fault> {
    let (family, number) = code.strip_prefix("SHEF-")?.rsplit_once('-')?;
    let known = number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit());
    // Numbers of three digits have the order of their texts.
    let within = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        (first..=last).contains(&number)
    };
    let mut rows = TABLE.iter().filter(|(of, ..)| known && *of == family);
    rows.find(|(.., numbers)| numbers.split(' ').any(within)).map(|(_, fault, _)| *fault)
}
