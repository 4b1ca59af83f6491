//! One program under many names: `shef` itself, and the fakes of the programs that it runs.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use shef_fakes::{aws, fault, script, slot, table, vivado, world};

fn main() -> ExitCode {
    let mut words = std::env::args();
    let name = words.next().unwrap_or_default();
    let program = Path::new(&name).file_name().unwrap_or_default().to_string_lossy().into_owned();
    if program == "shef" || program == "shef-fakes" {
        return shef_rego::serve().unwrap_or_else(|| shef_cli::main().into());
    }
    let arguments: Vec<String> = words.collect();
    let folder = world::folder();
    let form = table::form(&program, &arguments);
    let mut log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("calls"))
        .expect("the list of calls");
    let known = form.map_or("REFUSED", |form| form.name);
    writeln!(log, "{known}: {program} {}", arguments.join(" ")).expect("written");
    let Some(form) = form else {
        eprintln!("\nUnknown options: {}", arguments.join(", "));
        return ExitCode::from(252);
    };
    let calls = std::fs::read_to_string(folder.join("calls")).unwrap_or_default();
    let fault = fault::of(&folder, form.name, calls.lines().count()).unwrap_or_default();
    fault::act(&fault, true);
    let status = match program.as_str() {
        "vivado" => vivado::answer(form.name, &fault, &arguments),
        "python3" => script::answer(&fault, &arguments),
        "aws" => aws::answer(&folder, form.name, &fault, &arguments),
        "modprobe" => 0,
        _ => slot::answer(&folder, form.name, &fault, &arguments),
    };
    fault::act(&fault, false);
    ExitCode::from(status as u8)
}
