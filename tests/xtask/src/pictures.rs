//! The pictures of the documentation: `docs/pictures/NAME.light.svg` is the source; the picture for
//! dark pages differs only in its colours.

use crate::process::{Result, ensure};
use fs_err as fs;
use std::path::Path;

const FOLDER: &str = "docs/pictures";

/// Colours on a light page, each with its replacement on a dark page. Parts trusted with the data
/// are green, those in the adversary's hands orange, keys blue, others grey: fill, border, text.
const COLOURS: [(&str, &str); 14] = [
    ("#dafbe1", "#12261e"),
    ("#1a7f37", "#3fb950"),
    ("#116329", "#7ee787"),
    ("#fff1e5", "#2d1a0e"),
    ("#bc4c00", "#db6d28"),
    ("#953800", "#ffa657"),
    ("#ddf4ff", "#0c2d4a"),
    ("#0969da", "#58a6ff"),
    ("#0550ae", "#a5d6ff"),
    ("#f6f8fa", "#161b22"),
    ("#8c959f", "#656c76"),
    ("#1f2328", "#e6edf3"),
    // Lines and remarks; the page.
    ("#59636e", "#9198a1"),
    ("#ffffff", "#0d1117"),
];

/// The picture for dark pages.
fn dark(light: &str) -> Result<String> {
    for colour in light.split("=\"").filter(|value| value.starts_with('#')) {
        let known = COLOURS.iter().any(|(light, _)| colour.starts_with(light));
        ensure!(known, "{colour:.7} has no dark colour in tests/xtask/src/pictures.rs");
    }
    Ok(COLOURS.iter().fold(light.to_owned(), |svg, (light, dark)| svg.replace(light, dark)))
}

/// Writes the pictures for dark pages; with `check`, only compares.
///
/// # Errors
/// A source has an unknown colour, or (with `check`) a picture differs from its source.
pub fn run(root: &Path, check: bool) -> Result<()> {
    for entry in fs::read_dir(root.join(FOLDER))? {
        let source = entry?.path();
        let Some(name) = source.to_str().and_then(|path| path.strip_suffix(".light.svg")) else {
            continue;
        };
        let svg = dark(&fs::read_to_string(&source)?)?;
        let path = format!("{name}.dark.svg");
        if fs::read_to_string(&path).is_ok_and(|found| found == svg) {
            continue;
        }
        ensure!(!check, "{path} differs from its source; run `cargo xtask generate`");
        fs::write(&path, svg)?;
        println!("{path}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_has_a_dark_one() {
        assert_eq!(dark("<a fill=\"#ffffff\"/>").expect("known"), "<a fill=\"#0d1117\"/>");
        assert!(dark("<a fill=\"#fffffe\"/>").is_err());
    }
}
