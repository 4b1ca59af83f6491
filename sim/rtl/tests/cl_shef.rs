//! The custom logic for AWS F2 builds with either kernel.

use shef_rtl::{build, f2_spec};

#[test]
fn builds_native() {
    let t = std::time::Instant::now();
    let lib = build(&f2_spec(true).unwrap().search("shell-rtl/accel/digits")).unwrap();
    println!("{:?} {}", t.elapsed(), lib.path().display());
}

#[test]
fn builds_kernel() {
    let t = std::time::Instant::now();
    let lib = build(&f2_spec(false).unwrap().search("shell-rtl/accel/digits").savable().fast()).unwrap();
    println!("{:?} {}", t.elapsed(), lib.path().display());
}
