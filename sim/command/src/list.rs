//! `shef-sim list`: the kinds of simulated cards, and what this machine lacks for them.

use serde::Serialize;
use shef_console::{CliError, Output};

#[derive(Serialize)]
struct Kind {
    uri: &'static str,
    missing: Option<Missing>,
}

#[derive(Serialize)]
struct Missing {
    code: String,
    message: String,
    help: &'static str,
}

/// Runs `shef-sim list`.
///
/// # Errors
/// Standard output cannot be written.
pub fn run(output: &Output) -> Result<(), CliError> {
    let missing = shef_card::rtl_tools().err().map(|error| {
        let error = shef_lab::world::card(error);
        Missing { help: error.help(), code: error.code.into_owned(), message: error.message }
    });
    let kinds = [Kind { uri: "sim:model", missing: None }, Kind { uri: "sim:rtl", missing }];
    for kind in &kinds {
        match &kind.missing {
            None => output.line(format_args!("{:<10} available", kind.uri))?,
            Some(Missing { code, message, help }) => {
                output.line(format_args!("{:<10} fault {code}: {message}", kind.uri))?;
                output.line(format_args!("help: {help}"))?;
            }
        }
    }
    output.document(&kinds)
}
