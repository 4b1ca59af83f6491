//! Prints the negative cases, as JSON or text, and writes their documentation page.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: shef-negatives [--json] [--write] [ID ...]";

fn main() -> ExitCode {
    let (mut json, mut write, mut ids) = (false, false, Vec::new());
    for arg in std::env::args().skip(1) {
        match (arg.as_str(), arg.parse()) {
            ("--json", _) => json = true,
            ("--write", _) => write = true,
            (_, Ok(id)) => ids.push(id),
            _ => {
                eprintln!("{USAGE}");
                return ExitCode::from(2);
            }
        }
    }
    let report = shef_negatives::run(&ids);
    for row in report.failed() {
        eprintln!("{} {}: {}", row.id, row.name, row.misfits.join("; "));
    }
    if write && ids.is_empty() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/negatives.md");
        if let Err(error) = std::fs::write(&page, report.markdown()) {
            eprintln!("error: {}: {error}", page.display());
            return ExitCode::from(5);
        }
    }
    let failed = report.failed().count();
    if json {
        println!("{}", report.json());
    } else {
        let apply = report.cases.iter().filter(|row| row.not_applicable_reason.is_none()).count();
        println!(
            "{} of {apply} cases came to what they must, {} do not apply",
            apply - failed,
            report.cases.len() - apply
        );
    }
    ExitCode::from(u8::from(failed > 0))
}
