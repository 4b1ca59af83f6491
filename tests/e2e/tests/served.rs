//! The same card in a separate process, over vfio-user.

use shef_e2e::Served;

#[test]
fn the_whole_line_on_the_model() {
    let served = Served::start("model");
    let report = shef_e2e::whole_line(&served.uri());
    assert_eq!((report.cycles.shielded, report.cycles.bare), (None, None));
}

/// For `cargo xtask test --full`.
mod long {
    use super::*;

    #[test]
    #[ignore = "long: as `rtl`, in another process"]
    fn the_whole_line_on_the_rtl() {
        let served = Served::start("rtl");
        let report = shef_e2e::whole_line(&served.uri());
        assert!(report.cycles.shielded.is_some_and(|cycles| cycles > 10_000), "{:?}", report.cycles);
    }
}
