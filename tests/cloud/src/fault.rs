//! Faults that a test wants: the file `faults` has a line `FORM FAULT [TIMES]` for each, or `#N FAULT`
//! for the Nth call of all programs, from 1.

use std::fs;
use std::path::Path;
use std::process::exit as end;

use rustix::process::{Pid, Signal, getppid, kill_process};

/// The fault of a form, which is the call with this number, if there is one left. A number of times
/// is counted down.
///
/// # Panics
/// If the file cannot be written.
#[must_use]
pub fn of(folder: &Path, form: &str, call: usize) -> Option<String> {
    let file = folder.join("faults");
    let text = fs::read_to_string(&file).unwrap_or_default();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let number = format!("#{call}");
    let at = lines.iter().position(|line| {
        let name = line.split(' ').next();
        name == Some(form) || name == Some(&number)
    })?;
    let words: Vec<String> = lines[at].split(' ').map(str::to_owned).collect();
    if let Some(times) = words.get(2).and_then(|times| times.parse::<u32>().ok()) {
        if times == 0 {
            return None;
        }
        lines[at] = format!("{} {} {}", words[0], words[1], times - 1);
        fs::write(&file, lines.join("\n")).expect("written");
    }
    Some(words[1].clone())
}

/// Sends SIGKILL.
fn kill(pid: Option<Pid>) {
    if let Some(pid) = pid {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Acts out a fault that every program can have. `before` is what happens before the program works;
/// some faults come after it.
#[expect(clippy::exit, reason = "a fake ends as the program that it stands for")]
pub fn act(fault: &str, before: bool) {
    let says = |text: &str, status: i32| {
        eprintln!("\n{text}");
        end(status);
    };
    match (fault, before) {
        ("hang", true) => std::thread::sleep(std::time::Duration::from_secs(600)),
        // As a script that starts Vivado.
        ("deep", true) => {
            let mut child =
                std::process::Command::new("/bin/sleep").arg("600").spawn().expect("started");
            fs::write(crate::world::folder().join("deep"), child.id().to_string())
                .expect("written");
            child.wait().expect("ended");
        }
        ("die", true) => kill(Some(rustix::process::getpid())),
        ("killed-before", true) | ("killed-after", false) => {
            kill(getppid());
            // The end of the parent ends this process as well.
            std::thread::sleep(std::time::Duration::from_secs(600));
        }
        ("garbage", true) => {
            println!("<html><body>502 Bad Gateway</body></html>");
            end(0);
        }
        ("nothing", true) => end(0),
        ("status", true) => says("it did not work", 1),
        ("lost", true) => says(
            "Could not connect to the endpoint URL: \"https://ec2.us-east-1.amazonaws.com/\"",
            255,
        ),
        ("denied", true) => says(
            "An error occurred (UnauthorizedOperation) when calling the operation: You are not authorized to perform this operation.",
            254,
        ),
        ("refused", true) => {
            says("An error occurred (AccessDenied) when calling the operation: Access Denied", 254);
        }
        ("expired", true) => says(
            "An error occurred (ExpiredToken) when calling the operation: The provided token has expired.",
            254,
        ),
        ("anonymous", true) => says(
            "Unable to locate credentials. You can configure credentials by running \"aws configure\".",
            253,
        ),
        _ => {}
    }
}
