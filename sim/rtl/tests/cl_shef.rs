//! The custom logic for AWS F2 in the model of its shell, with the native kernel: it breaks no rule,
//! answers every access in time, and no state or burst outlives a wipe.

use std::sync::OnceLock;

use shef_regs::f2;
use shef_rtl::f2::{CoreClock, F2Config, F2Shell, Rule, TestHost};
use shef_rtl::{AxiMemoryConfig, Library, build_once, counted, f2_spec};

const IDS: [u32; 2] = [0xf010_1d0f, 0x1d51_fedc];
const MEDIUM: u32 = 0x100_0000;

fn library() -> &'static Library {
    static LIB: OnceLock<Library> = OnceLock::new();
    LIB.get_or_init(|| {
        build_once(&counted(f2_spec(true).unwrap().search("shell-rtl/accel/digits"))).unwrap().clone()
    })
}

fn page(shell: &mut F2Shell<TestHost>, register: u32) -> u32 {
    shell.ocl_read(f2::BASE + register)
}

fn shell(config: F2Config) -> F2Shell<TestHost> {
    F2Shell::new(library(), config, IDS, TestHost::default()).unwrap()
}

#[test]
fn starts_wiped_and_held() {
    let mut shell = shell(F2Config::default());
    for _ in 0..40 {
        shell.step(1000);
        println!("{:#x} {}", page(&mut shell, f2::STATUS), page(&mut shell, f2::WIPE_CYCLES));
    }
    assert_eq!(page(&mut shell, f2::ID).to_le_bytes(), *b"HSF2");
    for v in shell.violations() {
        println!("{v}");
    }
}
