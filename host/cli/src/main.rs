//! The command `shef`.

fn main() -> std::process::ExitCode {
    shef_rego::serve().unwrap_or_else(|| std::process::ExitCode::from(shef_cli::main() as u8))
}
