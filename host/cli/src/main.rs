//! The command `shef`.

fn main() -> std::process::ExitCode {
    std::process::ExitCode::from(shef_cli::main() as u8)
}
