//! Names the linker scripts of the two programs.

fn main() {
    println!("cargo:rerun-if-changed=ld");
    if std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "riscv32") {
        let here = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
        println!("cargo:rustc-link-arg-bins=-L{here}/ld");
        for program in ["rom", "kernel"] {
            println!("cargo:rustc-link-arg-bin={program}=-T{program}.ld");
        }
    }
}
