//! The command `shef`.

/// Keys pass through buffers of other libraries.
#[global_allocator]
static ALLOCATOR: shef_erase::Erasing = shef_erase::Erasing;

fn main() -> std::process::ExitCode {
    shef_rego::serve().unwrap_or_else(|| shef_cli::main().into())
}
