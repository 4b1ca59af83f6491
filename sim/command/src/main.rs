//! The program `shef-sim`.

/// Keys pass through buffers of other libraries.
#[global_allocator]
static ALLOCATOR: shef_erase::Erasing = shef_erase::Erasing;

fn main() -> std::process::ExitCode {
    shef_sim::main().into()
}
