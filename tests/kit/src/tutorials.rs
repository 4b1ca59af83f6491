//! Tutorials: the commands of the how-to page, in a new folder.

use serde::Serialize;

use crate::programs::Programs;
use crate::{Result, root};

/// A tutorial.
#[derive(Serialize)]
pub struct Tutorial {
    /// Its name.
    pub name: String,
    /// Whether all its commands succeed.
    pub passed: bool,
    seconds: f64,
}

/// Durations, with the programs built and no design built.
#[derive(Serialize, Default)]
pub struct Times {
    /// From `shef new` to the end of the first attested run.
    new_to_attested_s: f64,
    /// `shef test` after an edit of the model.
    edit_host_s: f64,
    /// `shef test` after an edit of the accelerator.
    edit_rtl_s: f64,
}

/// The templates, and the job of each.
const TEMPLATES: [(&str, &str); 3] =
    [("stream", "add"), ("random", "count"), ("registers", "encrypt")];

/// The page with the commands from a template to a run through agent and verifier service, and the
/// heading above them.
const PAGE: &str = "docs/how-to/your-accelerator.md";
const HEADING: &str = "### Behind an agent, with a verifier service\n";
/// Most lines of these commands.
const LINES: usize = 12;

/// The commands below [`HEADING`].
fn through_agent_and_service() -> Result<String> {
    let page = std::fs::read_to_string(root().join(PAGE))?;
    let below = page.split_once(HEADING).and_then(|(_, below)| below.split_once("```sh\n"));
    let commands = below.and_then(|(_, block)| block.split_once("```")).map(|(block, _)| block);
    let commands = commands.ok_or_else(|| format!("{PAGE} has no commands below {HEADING:?}"))?;
    match commands.lines().count() {
        1..=LINES => Ok(commands.to_owned()),
        n => {
            Err(format!("{PAGE}: expected 1 to {LINES} commands below {HEADING:?}, found {n}")
                .into())
        }
    }
}

fn rounded(seconds: f64) -> f64 {
    (seconds * 10.0).round() / 10.0
}

/// Runs all tutorials.
///
/// # Errors
/// A program does not start.
pub fn run(programs: &Programs) -> Result<(Vec<Tutorial>, Times)> {
    let (mut all, mut times) = (Vec::new(), Times::default());
    let (scratch, cache) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut run = |name: &str, cache, text: &str| -> Result<f64> {
        let ended = programs.script(scratch.path(), cache, text)?;
        let passed = ended.status == 0;
        let seconds = rounded(ended.seconds);
        eprintln!("{} {name}, {seconds} s", if passed { "ok  " } else { "FAIL" });
        if !passed {
            eprintln!("{}{}", ended.stdout, ended.stderr);
        }
        all.push(Tutorial { name: name.to_owned(), passed, seconds });
        Ok(seconds)
    };
    for (template, job) in TEMPLATES {
        let made =
            format!("shef new {template} --template {template} && shef run {template} --job {job}");
        // The first with an empty cache: the design is built.
        if template == "stream" {
            times.new_to_attested_s = run("new to attested", Some(cache.path()), &made)?;
            run("test", None, "shef test stream")?;
            let model = "printf '\\n' >> stream/model.py && shef test stream";
            times.edit_host_s = run("edit of the model", None, model)?;
            // Another constant in the computation, which the model follows.
            let rtl = "sed -i 's/+ addend;/+ addend + 32'\"'\"'d7;/' stream/shef_accel.sv && grep -q d7 stream/shef_accel.sv && \
                       sed -i 's/words + /words + np.uint32(7) + /' stream/model.py && shef test stream";
            times.edit_rtl_s = run("edit of the accelerator", None, rtl)?;
            run("agent and verifier service", None, &through_agent_and_service()?)?;
        } else {
            run(&format!("template {template}"), None, &format!("{made} && shef test {template}"))?;
        }
    }
    Ok((all, times))
}
