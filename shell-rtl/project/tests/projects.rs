//! Projects: their files, their sources and their digests.

use shef_project::{Design, repo_root};

/// Signed reference values and evidence name these: a change is a new design.
#[test]
fn the_digests_of_shipped_designs_are_pinned() {
    let project = |folder: &str| Design::project(&repo_root().join(folder));
    for (design, digest) in [
        (Design::digits(), "7e2ed07deda99ebdd07bfcc92b4485d66fa72e17238ad7c09b523c8f654472b2"),
        (
            project("examples/vecadd"),
            "eb8012c129d0daf7c65c02ce6911411283d4a63a623fee514e766c753b1c2dba",
        ),
        (
            project("shell-rtl/accel/hotp"),
            "1aa08cd0bbe330133f6f649cc2621b492f72152dce1c0413e33b4c51f3e519ea",
        ),
    ] {
        let design = design.unwrap();
        assert_eq!(hex::encode(design.digest()), digest, "{}", design.name());
    }
}
