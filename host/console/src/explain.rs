//! `shef explain CODE`: what a code means, offline.

use serde::Serialize;
use shef_proto::code::Code;

use crate::error::CliError;
use crate::output::Output;

/// All codes of the program, in groups of one crate each.
pub fn groups() -> Vec<(&'static str, Vec<&'static Code>)> {
    let mut groups = shef::codes();
    // A library without simulator is not made of these, and cards and `shef shield` give them too.
    for (part, codes) in [("Security Kernel", shef_kernel::CODES), ("generators", shef_gen::CODES)] {
        if groups.iter().all(|(known, _)| *known != part) {
            groups.push((part, codes.iter().collect()));
        }
    }
    groups.push(("command shef", crate::error::CODES.iter().collect()));
    groups
}

/// The code named `id`.
pub fn find(id: &str) -> Option<&'static Code> {
    groups().into_iter().flat_map(|(_, codes)| codes).find(|code| code.id == id)
}

#[derive(Serialize)]
struct Explained {
    code: &'static str,
    part: &'static str,
    summary: &'static str,
    help: &'static str,
}

/// Explains one code, or lists all of them.
///
/// # Errors
/// SHEF-CLI-002 where there is no such code.
pub fn run(output: &Output, id: Option<&str>) -> Result<(), CliError> {
    let all: Vec<Explained> = groups()
        .into_iter()
        .flat_map(|(part, codes)| codes.into_iter().map(move |c| Explained { code: c.id, part, summary: c.summary, help: c.help }))
        .collect();
    match id {
        None => {
            for e in &all {
                output.line(format_args!("{}  {}", e.code, e.summary))?;
            }
            output.document(&all)
        }
        Some(id) => {
            let wanted = id.trim().to_ascii_uppercase();
            let Some(e) = all.iter().find(|e| e.code == wanted) else {
                let shown: String = id.chars().take(40).collect();
                return Err(CliError::usage("SHEF-CLI-002", format!("there is no code {shown:?}")));
            };
            output.line(format_args!("{} ({})", output.heading(e.code), e.part))?;
            output.line(e.summary)?;
            output.line("")?;
            output.line(e.help)?;
            output.document(e)
        }
    }
}

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
                assert!(prefix.starts_with("SHEF-") && number.len() == 3 && number.bytes().all(|b| b.is_ascii_digit()), "{}", code.id);
                assert!(!code.summary.is_empty() && !code.help.is_empty(), "{} is not explained", code.id);
            }
        }
    }
}
