//! `shef-sim evaluate`: a workload without a Shield and behind it, its page, and what it refuses. Needs
//! Verilator: `cargo xtask setup`.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;
use shef_e2e::shef_program;

fn evaluate(args: &[&str]) -> Output {
    Command::new(shef_program().with_file_name("shef-sim"))
        .arg("evaluate")
        .args(args)
        .output()
        .unwrap()
}

/// The quick rows of the smallest workload have everything that a reader of the document expects, and
/// the page shows them.
#[test]
fn rows_of_a_workload_and_their_page() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let run = evaluate(&["bitcoin", "--quick", "--json", "--html", page.to_str().unwrap()]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let document: Value = serde_json::from_slice(&run.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let layouts: Vec<_> = rows.iter().map(|row| row["layout"].as_str().unwrap()).collect();
    assert_eq!(layouts, ["ours", "paper"]);
    for row in rows {
        for flag in ["attested", "equal_to_reference", "statement_clean"] {
            assert_eq!(row[flag], true, "{row}");
        }
        assert_eq!(row["key_bits"], 256);
        assert_eq!(row["paper_ratio"], 1.0);
        let (bare, shielded) = (row["cycles_bare"].as_u64(), row["cycles"].as_u64());
        assert!(bare.unwrap() > 1000 && shielded >= bare, "{row}");
    }
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("<td class=\"name\">bitcoin</td>") && page.contains("<svg"));
    assert!(
        !page.contains("http://")
            || page.matches("http://www.w3.org/2000/svg").count()
                == page.matches("http://").count()
    );
}

#[test]
fn an_unknown_workload_is_a_usage_error() {
    let run = evaluate(&["bitcoins"]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(said.contains("SHEF-WRK-001") && said.contains("vecadd, "), "{said}");
    assert!(run.stdout.is_empty());
}

/// For `cargo xtask test --full`.
mod long {
    use super::*;
    use std::path::{Path, PathBuf};

    /// Every workload: all quick rows are attested and equal to the reference, the ratios of our layout
    /// are at most those wanted, and `shef shield estimate` agrees with each point of the sweep.
    #[test]
    #[ignore = "long: builds a simulator of each accelerator in two Shields"]
    fn all_quick_rows() {
        let page = pictures().join("evaluation.html");
        let run = evaluate(&["--quick", "--sweep", "--json", "--html", page.to_str().unwrap()]);
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        let document: Value = serde_json::from_slice(&run.stdout).unwrap();
        let rows = document["rows"].as_array().unwrap();
        let limits = [
            ("vecadd", 1.08),
            ("matmul", 1.03),
            ("conv", 1.08),
            ("digits", 1.08),
            ("affine", 1.25),
            ("lenet", 1.08),
            ("bitcoin", 1.005),
            ("storage", 1.06),
            ("oram", 99.0),
            ("ingest", 1.06),
        ];
        for (name, limit) in limits {
            let own = rows.iter().find(|row| {
                row["workload"] == name && row["layout"] == "ours" && row["key_bits"] == 256
            });
            let row = own.unwrap_or_else(|| panic!("no row of {name}"));
            let ratio = row["ratio"].as_f64().unwrap();
            assert!(ratio <= limit, "{name}: expected at most {limit}, found {ratio}");
            if ["vecadd", "storage", "ingest"].contains(&name) {
                let share = row["bus_share_bare"].as_f64().unwrap();
                assert!(share >= 0.9, "{name} uses {share} of the bus");
            }
        }
        let sweep = document["sweep"].as_array().unwrap();
        assert_eq!(sweep.len(), 135, "three patterns, five chunk sizes, nine sets");
        for point in sweep {
            let error = point["estimate_error"].as_f64().unwrap();
            assert!(error.abs() <= 0.15, "the estimate is wrong by more than 15 %: {point}");
        }
        legible(&page);
    }

    /// The suite of every accelerator, without a Shield and behind it.
    #[test]
    #[ignore = "long: builds a simulator of each accelerator"]
    fn suites_of_all_accelerators() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shell-rtl/accel");
        let mut names: Vec<PathBuf> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.join("shef.toml").exists())
            .collect();
        names.sort();
        assert!(names.len() >= 10, "{names:?}");
        for project in names {
            for phase in ["bare", "shielded"] {
                let mut test = Command::new(shef_program());
                let run = test.arg("test").arg(&project).args(["--only", phase]).output().unwrap();
                assert!(
                    run.status.success(),
                    "{}: {}{}",
                    project.display(),
                    String::from_utf8_lossy(&run.stdout),
                    String::from_utf8_lossy(&run.stderr)
                );
            }
        }
    }

    /// Where pictures for visual review go.
    fn pictures() -> PathBuf {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("evaluation");
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Finds texts of the shown plots that overlap, leave their plot or are smaller than 9 pixels, and
    /// plots without content.
    const SCRIPT: &str = "<script>
const faults = [];
for (const svg of document.querySelectorAll('figure svg')) {
  if (svg.getBoundingClientRect().width === 0) continue;
  const id = svg.closest('figure').id, box = svg.getBoundingClientRect();
  if (svg.querySelectorAll('rect, polyline, circle, path').length < 4) faults.push(id + ' is empty');
  const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent.trim(), t.getBoundingClientRect()]);
  if (texts.length < 4) faults.push(id + ' has no labels');
  for (const [text, r] of texts) {
    if (r.height < 9) faults.push(id + ': small ' + text);
    if (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1) faults.push(id + ': cut ' + text);
  }
  for (let i = 0; i < texts.length; i++) for (let j = i + 1; j < texts.length; j++) {
    const [a, b] = [texts[i][1], texts[j][1]];
    const w = Math.min(a.right, b.right) - Math.max(a.left, b.left), h = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (w > 1 && h > 2) faults.push(id + ': ' + texts[i][0] + ' over ' + texts[j][0]);
  }
}
const shown = [...document.querySelectorAll('figure')].map(f => [...f.children].filter(c => c.getBoundingClientRect().width > 0).length);
if (shown.some(n => n !== 1)) faults.push('plots shown: ' + shown);
if (document.documentElement.scrollWidth > innerWidth) faults.push('the page is wider than the window');
document.body.dataset.faults = faults.length ? faults.join('; ') : 'none, ' + shown.length + ' plots';
</script>";

    /// The page in a browser, at two widths, light and dark: the plots are shown, no text overlaps or
    /// is cut, and light and dark differ. The pictures are in `target/evaluation`.
    fn legible(page: &Path) {
        if Command::new("chromium").arg("--version").output().is_err() {
            println!("no Chromium, which `cargo xtask test --full` tells at its end");
            return;
        }
        let text = fs::read_to_string(page).unwrap();
        let checked = page.with_file_name("checked.html");
        fs::write(&checked, text.replace("</body>", &format!("{SCRIPT}</body>"))).unwrap();
        for width in [1280, 390] {
            let mut pictures = Vec::new();
            for theme in ["light", "dark"] {
                let profile = tempfile::tempdir().unwrap();
                let picture = page.with_file_name(format!("{theme}-{width}.png"));
                let _ = fs::remove_file(&picture);
                let browser = || {
                    let mut browser = Command::new("chromium");
                    browser
                        .args(["--headless", "--no-sandbox", "--disable-gpu"])
                        .args(["--disable-background-networking", "--hide-scrollbars"])
                        .arg(format!("--window-size={width},2600"))
                        .arg(format!("--user-data-dir={}", profile.path().display()));
                    if theme == "dark" {
                        browser.arg("--blink-settings=preferredColorScheme=0");
                    }
                    browser
                };
                let url = format!("file://{}", checked.display());
                let dom = browser().arg("--dump-dom").arg(&url).output().unwrap();
                let dom = String::from_utf8_lossy(&dom.stdout).into_owned();
                assert!(
                    dom.contains("data-faults=\"none, 5 plots\""),
                    "{width} {theme}: {}",
                    dom.split("data-faults").nth(1).unwrap_or(&dom)
                );
                let shot = format!("--screenshot={}", picture.display());
                browser().arg(shot).arg(&url).output().unwrap();
                pictures.push(fs::read(&picture).unwrap());
            }
            assert_ne!(pictures[0], pictures[1], "light and dark look the same");
        }
    }
}
