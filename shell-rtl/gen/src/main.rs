//! `shef-gen`: regenerates the repository's generated files (`generate`), or says which are out of date (`check`).
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (command, root) = match args.as_slice() {
        [command] => (command.as_str(), "."),
        [command, root] => (command.as_str(), root.as_str()),
        _ => ("", "."),
    };
    let root = Path::new(root);
    let result = match command {
        "generate" => shef_gen::files::write(root).map(|written| {
            written.iter().for_each(|p| println!("wrote {}", p.display()));
            true
        }),
        "check" => shef_gen::files::stale(root).map(|stale| {
            stale.iter().for_each(|f| println!("out of date: {}", f.path.display()));
            stale.is_empty()
        }),
        _ => {
            eprintln!("usage: shef-gen generate|check [ROOT]");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(5)
        }
    }
}
