//! Results of all tests, as documents.

use std::fmt::Write as _;

use serde::Serialize;

use super::attacks::Attacked;
use super::phases::Phase;
use super::waves::Kept;
use crate::job::failure::Failure;

/// A phase of a test, with all its seeds.
#[derive(Debug, Serialize)]
pub struct PhaseReport {
    /// The test.
    pub test: String,
    /// The phase.
    pub phase: Phase,
    /// Whether it passed with every seed.
    pub passed: bool,
    /// Why it did not run.
    pub skipped: Option<String>,
    /// Seeds that ran.
    pub seeds: Vec<u64>,
    /// Of the first seed, the cycles of the job.
    pub cycles: Option<u64>,
    /// Attacks of the first seed.
    pub attacks: Vec<Attacked>,
    /// Duration, in which other phases may have run as well.
    pub ms: u64,
    /// The seed that failed.
    pub seed: Option<u64>,
    /// The failure.
    pub failure: Option<Failure>,
    /// Command that runs the failing seed again.
    pub replay: Option<String>,
    /// Waves of the failing seed without a Shield.
    pub wave: Option<Kept>,
    /// Why no waves were kept.
    pub no_wave: Option<String>,
}

/// Results of all tests.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The project's name.
    pub project: String,
    /// Digest of its design.
    pub design_digest: String,
    /// All phases of all tests.
    pub phases: Vec<PhaseReport>,
    /// Whether all passed.
    pub passed: bool,
    /// Duration.
    pub ms: u64,
}

/// Text of an XML attribute or element.
fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML 1.0 has no other control characters.
            '\n' | '\t' => {
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The results in JUnit's format: a suite for each test, a case for each phase.
pub fn junit(report: &Report) -> String {
    let seconds = |ms: u64| format!("{}.{:03}", ms / 1000, ms % 1000);
    let counts = |phases: &[&PhaseReport]| {
        let failed = phases.iter().filter(|phase| phase.failure.is_some()).count();
        format!("tests=\"{}\" failures=\"{failed}\" errors=\"0\"", phases.len())
    };
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let all: Vec<&PhaseReport> = report.phases.iter().collect();
    let _ = writeln!(
        out,
        "<testsuites name=\"{}\" {} time=\"{}\">",
        xml(&report.project),
        counts(&all),
        seconds(report.ms)
    );
    for tests in report.phases.chunk_by(|one, other| one.test == other.test) {
        let phases: Vec<&PhaseReport> = tests.iter().collect();
        let time = tests.iter().map(|phase| phase.ms).sum();
        let name = xml(&tests[0].test);
        let _ = writeln!(
            out,
            "  <testsuite name=\"{name}\" {} skipped=\"{}\" time=\"{}\">",
            counts(&phases),
            phases.iter().filter(|phase| phase.skipped.is_some()).count(),
            seconds(time)
        );
        for phase in tests {
            let case = format!(
                "    <testcase classname=\"{}.{name}\" name=\"{}\" time=\"{}\"",
                xml(&report.project),
                phase.phase.name(),
                seconds(phase.ms)
            );
            match (&phase.failure, &phase.skipped) {
                (None, None) => {
                    let _ = writeln!(out, "{case}/>");
                }
                (None, Some(why)) => {
                    let why = xml(why);
                    let _ = writeln!(
                        out,
                        "{case}>\n      <skipped message=\"{why}\"/>\n    </testcase>"
                    );
                }
                (Some(failure), _) => {
                    let replay = phase.replay.iter().map(|replay| format!("again: {replay}"));
                    let waves = phase.wave.iter().map(|kept| format!("waves: {}", kept.file));
                    let lines = failure.lines().into_iter().chain(replay).chain(waves);
                    let lines: Vec<String> = lines.collect();
                    let _ = writeln!(
                        out,
                        "{case}>\n      <failure message=\"{}\">{}</failure>\n    </testcase>",
                        xml(&failure.message),
                        xml(&lines.join("\n"))
                    );
                }
            }
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_others_is_no_markup() {
        assert_eq!(xml("a<b & \"c\"\n\u{1b}"), "a&lt;b &amp; &quot;c&quot;&#10;\u{fffd}");
    }
}
