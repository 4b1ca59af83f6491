//! `explain CODE`: the meaning of a code, offline.

use serde::Serialize;

use crate::codes::groups;
use crate::error::CliError;
use crate::exit;
use crate::output::Output;

#[derive(Serialize)]
struct Explained {
    code: &'static str,
    part: &'static str,
    summary: &'static str,
    help: &'static str,
    exit: u8,
}

/// Explains one code, or lists all of them.
///
/// # Errors
/// SHEF-CLI-002 if the code does not exist.
pub fn run(output: &Output, id: Option<&str>) -> Result<(), CliError> {
    let all: Vec<Explained> = groups()
        .into_iter()
        .flat_map(|(part, codes)| {
            codes.into_iter().map(move |c| Explained {
                code: c.id,
                part,
                summary: c.summary,
                help: c.help,
                exit: exit::of(c.id) as u8,
            })
        })
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
                return Err(CliError::new("SHEF-CLI-002", format!("unknown code {shown:?}")));
            };
            output.line(format_args!("{} ({})", output.heading(e.code), e.part))?;
            output.paragraph(e.summary)?;
            output.line("")?;
            output.paragraph(e.help)?;
            output.line("")?;
            output.line(format_args!(
                "Exit status {}: {}",
                e.exit,
                exit::meaning(exit::of(e.code))
            ))?;
            output.document(e)
        }
    }
}
