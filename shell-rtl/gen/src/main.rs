//! `shef-gen`: writes the repository's generated files (`generate`), or reports the outdated ones
//! (`check`); `ucode` assembles one microprogram. For a `shield.toml` there is `shef shield`.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("ucode", [file, package])) =
        args.split_first().map(|(first, rest)| (first.as_str(), rest))
    {
        return ucode(Path::new(file), Path::new(package));
    }
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
            eprintln!(
                "usage: shef-gen generate|check [ROOT]\n       shef-gen ucode FILE.uasm PACKAGE.sv"
            );
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

/// Assembles one microprogram; included files are relative to its folder.
fn ucode(file: &Path, package: &Path) -> ExitCode {
    let folder = file.parent().unwrap_or(Path::new(""));
    let name = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let read = |f: &str| std::fs::read_to_string(folder.join(f)).map_err(|e| e.to_string());
    let written = shef_gen::ucode::assemble(&name, &read)
        .map_err(|e| format!("error[{}]: {e}", e.code()))
        .and_then(|program| {
            let text = program.to_systemverilog(&file.display().to_string());
            std::fs::write(package, text)
                .map_err(|e| format!("error: {}: {e}", package.display()))?;
            println!(
                "{} instructions, {} constant bytes, {} scratch bytes",
                program.words.len(),
                program.constants.len(),
                program.scratch
            );
            Ok(())
        });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(5)
        }
    }
}
