//! `shef-gen`: regenerates the repository's generated files (`generate`), or says which are out of
//! date (`check`); `shef-gen shield check|generate|digest FILE` does one `shield.toml`.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(("shield", rest)) = args.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return shield(rest);
    }
    if let Some(("ucode", [file, package])) = args.split_first().map(|(first, rest)| (first.as_str(), rest)) {
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
                "usage: shef-gen generate|check [ROOT]\n       shef-gen shield check|digest FILE\n       shef-gen shield generate FILE [PACKAGE.sv [CONSTANTS.rs]]\n       shef-gen ucode FILE.uasm PACKAGE.sv"
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

/// One `shield.toml`: checks it, prints the digest, or writes the package beside it (or where it is
/// asked for).
fn shield(args: &[String]) -> ExitCode {
    let (command, file, outputs) = match args {
        [command, file] => (command.as_str(), file, &[][..]),
        [command, file, outputs @ ..] if command == "generate" && outputs.len() <= 2 => (command.as_str(), file, outputs),
        _ => ("", &String::new(), &[][..]),
    };
    if !matches!(command, "check" | "digest" | "generate") {
        eprintln!("usage: shef-gen shield check|digest FILE\n       shef-gen shield generate FILE [PACKAGE.sv [CONSTANTS.rs]]");
        return ExitCode::from(2);
    }
    let source = match std::fs::read_to_string(file) {
        Ok(source) => source,
        Err(e) => {
            eprintln!("error: {file}: {e}");
            return ExitCode::from(5);
        }
    };
    let shield = match shef_gen::shield::parse(&source) {
        Ok(shield) => shield,
        Err(e) => {
            eprintln!("error[{}]: {file}:{e}", e.code());
            return ExitCode::from(5);
        }
    };
    shield.warnings.iter().for_each(|w| eprintln!("warning: {file}:{w}"));
    let digest: String = shield.config.digest().iter().map(|b| format!("{b:02x}")).collect();
    if command != "generate" {
        println!("{digest}");
        return ExitCode::SUCCESS;
    }
    let package = outputs.first().map_or_else(|| Path::new(file).with_file_name("shef_cfg_pkg.sv"), |p| Path::new(p).to_path_buf());
    let mut files = vec![(package, shef_gen::shield::systemverilog(&shield.config, shield.synthesis))];
    if let Some(constants) = outputs.get(1) {
        files.push((Path::new(constants).to_path_buf(), shef_gen::shield::rust(&shield.config)));
    }
    for (path, content) in files {
        if let Err(e) = std::fs::write(&path, content) {
            eprintln!("error: {}: {e}", path.display());
            return ExitCode::from(5);
        }
        println!("wrote {}", path.display());
    }
    ExitCode::SUCCESS
}

/// Assembles one microprogram; included files are looked up beside it.
fn ucode(file: &Path, package: &Path) -> ExitCode {
    let folder = file.parent().unwrap_or(Path::new(""));
    let name = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let read = |f: &str| std::fs::read_to_string(folder.join(f)).map_err(|e| e.to_string());
    let written = shef_gen::ucode::assemble(&name, &read).map_err(|e| format!("error[{}]: {e}", e.code())).and_then(|program| {
        let text = program.to_systemverilog(&file.display().to_string());
        std::fs::write(package, text).map_err(|e| format!("error: {}: {e}", package.display()))?;
        println!("{} instructions, {} constant bytes, {} scratch bytes", program.words.len(), program.constants.len(), program.scratch);
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
