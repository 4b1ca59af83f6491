//! Every decoder of untrusted input, run on mutations of valid messages.
//!
//! A [`Target`] takes arbitrary bytes, must not panic, and checks invariants of accepted input: the
//! input re-encodes to the same bytes, and verifies only if it is the signed message. Signed
//! content is also tested with a valid signature. There is no instrumentation, so this builds with
//! the project's compiler. The search is guided by outcomes: the text of the refusal without
//! numbers. An input with a new outcome is minimized and kept in the target's corpus, which the
//! normal test run replays.
#![forbid(unsafe_code)]

mod mutate;
mod targets;

use mutate::Rng;
pub use targets::all;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use sha2::{Digest, Sha256};

/// One decoder.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, and that of its corpus.
    pub name: &'static str,
    /// Good messages to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Decodes, checks the invariants, and gives the outcome.
    pub run: fn(&[u8]) -> String,
}

/// Longest input; above every decoder's length limit, except that of reference values.
pub const MAX_INPUT: usize = 80 * 1024;

/// Summary of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The target.
    pub target: String,
    /// Seed of the mutations.
    pub seed: u64,
    /// Inputs tried.
    pub inputs: u64,
    /// Outcomes as texts without numbers, each with its count.
    pub outcomes: BTreeMap<String, u64>,
    /// Inputs in the corpus at the end.
    pub corpus: usize,
    /// Files with inputs that broke the decoder or a property.
    pub failures: Vec<PathBuf>,
    /// Longest time for one input, in microseconds.
    pub slowest_us: u64,
}

/// Folder of a target's corpus.
#[must_use]
pub fn corpus_dir(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target)
}

/// The inputs of a target's corpus, by file name.
///
/// # Errors
/// A file cannot be read.
pub fn corpus(target: &str) -> std::io::Result<Vec<Vec<u8>>> {
    let dir = corpus_dir(target);
    if !dir.exists() {
        return Ok(Vec::new());
    }
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    files.sort();
    files.iter().map(std::fs::read).collect()
}

/// Runs one input; `Err` holds the message of a panic.
///
/// # Errors
/// The decoder panicked, or a property does not hold.
pub fn run_one(target: &Target, input: &[u8]) -> Result<String, String> {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "panic".into())
    })
}

/// An outcome without details of the input: numbers become one `#`, quoted text and the name after
/// a region's number are removed, and lines that show the input (`3 | a = b`) are left out.
#[must_use]
pub fn class(outcome: &str) -> String {
    let shows = |line: &str| {
        line.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ').starts_with('|')
    };
    let text = outcome.lines().filter(|line| !shows(line)).collect::<Vec<_>>().join(" ");
    let mut out = String::new();
    let mut quote = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quote) {
            ('"' | '`', None) => {
                quote = Some(c);
                out.push(c);
            }
            ('(', None) if out.ends_with("# ") => {
                quote = Some(')');
                out.push(c);
            }
            // Quoted text may contain the quote character: it ends the text only if no word
            // follows.
            (_, Some(end))
                if c == end
                    && chars.peek().is_none_or(|next| *next != end && !next.is_alphanumeric()) =>
            {
                quote = None;
                out.push(c);
            }
            ('\\', Some(_)) => drop(chars.next()),
            (_, Some(_)) => {}
            (_, None) if c.is_ascii_hexdigit() && out.ends_with("#x") => {}
            ('0'..='9', None) if out.ends_with('#') => {}
            ('0'..='9', None) => out.push('#'),
            _ => out.push(c),
        }
    }
    out
}

/// Limits of a corpus: bytes and files.
const CORPUS: (usize, usize) = (6 * 1024, 32);

/// Seconds after which an input counts as a hang.
const LONGEST: u64 = 30;

/// The current input, for the thread that detects hangs.
#[derive(Default)]
struct Watch {
    /// Runs so far.
    number: AtomicU64,
    input: Mutex<Vec<u8>>,
}

impl Watch {
    fn run(&self, target: &Target, input: &[u8]) -> Result<String, String> {
        if let Ok(mut held) = self.input.lock() {
            held.clear();
            held.extend_from_slice(input);
        }
        self.number.fetch_add(1, Ordering::Relaxed);
        run_one(target, input)
    }

    /// Keeps an input that hangs and ends the program: its thread cannot be stopped.
    fn until(&self, done: &AtomicBool, target: &Target, failures: &Path) {
        let (mut seen, mut since) = (0, Instant::now());
        while !done.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(100));
            let number = self.number.load(Ordering::Relaxed);
            if number != seen {
                (seen, since) = (number, Instant::now());
            } else if since.elapsed().as_secs() >= LONGEST {
                let input = self.input.lock().map(|input| input.clone()).unwrap_or_default();
                if let Err(error) =
                    broken(target, &input, &format!("it takes longer than {LONGEST} s"), failures)
                {
                    eprintln!(
                        "{}: an input that does not end cannot be kept: {error}",
                        target.name
                    );
                }
                std::process::exit(1);
            }
        }
    }
}

/// Removes parts of an input that its outcome does not need, in a few hundred runs at most.
fn shrunk(target: &Target, watch: &Watch, mut input: Vec<u8>, wanted: &str) -> Vec<u8> {
    let mut runs = 400;
    let mut piece = input.len() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < input.len() {
            if runs == 0 {
                return input;
            }
            runs -= 1;
            let mut shorter = input.clone();
            shorter.drain(at..(at + piece).min(input.len()));
            match watch.run(target, &shorter) {
                Ok(outcome) if class(&outcome) == wanted => input = shorter,
                _ => at += piece,
            }
        }
        piece /= 2;
    }
    input
}

/// Writes an input into the folder, named by its digest.
fn keep(dir: &Path, input: &[u8]) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(dir)?;
    let file = dir.join(&hex::encode(Sha256::digest(input))[..16]);
    std::fs::write(&file, input)?;
    Ok(file)
}

/// Keeps an input that broke something, and prints it with the command that runs it again.
fn broken(
    target: &Target,
    input: &[u8],
    message: &str,
    failures: &Path,
) -> std::io::Result<PathBuf> {
    let file = keep(&failures.join(target.name), input)?;
    eprintln!(
        "{}: {message}\nagain: cargo xtask fuzz --target {} --input {}",
        target.name,
        target.name,
        file.display()
    );
    Ok(file)
}

/// Tries inputs for this long; keeps inputs with new outcomes in the corpus, and inputs that break
/// something in `failures`. An input that takes more than half a minute is kept there, and the
/// program ends.
///
/// # Errors
/// A file cannot be read or written.
pub fn fuzz(
    target: &Target,
    time: Duration,
    seed: u64,
    failures: &Path,
) -> std::io::Result<Summary> {
    let (watch, done) = (Watch::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| watch.until(&done, target, failures));
        let summary =
            catch_unwind(AssertUnwindSafe(|| tried(target, &watch, time, seed, failures)));
        done.store(true, Ordering::Relaxed);
        summary.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn tried(
    target: &Target,
    watch: &Watch,
    time: Duration,
    seed: u64,
    failures: &Path,
) -> std::io::Result<Summary> {
    let dir = corpus_dir(target.name);
    let mut kept = corpus(target.name)?;
    let mut pool = (target.seeds)();
    pool.extend(kept.iter().cloned());
    let mut out = Summary {
        target: target.name.into(),
        seed,
        inputs: 0,
        outcomes: BTreeMap::new(),
        corpus: 0,
        failures: Vec::new(),
        slowest_us: 0,
    };
    let mut rng = Rng::new(seed);
    let (start, known) = (Instant::now(), pool.len());
    let mut next = 0;
    while start.elapsed() < time || next < known {
        let input =
            if next < known { pool[next].clone() } else { mutate::mutated(&pool, &mut rng) };
        next += 1;
        let began = Instant::now();
        let outcome = watch.run(target, &input);
        out.slowest_us =
            out.slowest_us.max(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
        out.inputs += 1;
        match outcome {
            Ok(outcome) => {
                let class = class(&outcome);
                let fresh = !out.outcomes.contains_key(&class);
                *out.outcomes.entry(class.clone()).or_default() += 1;
                if fresh && next > known {
                    let input = shrunk(target, watch, input, &class);
                    if kept.len() < CORPUS.1
                        && kept.iter().map(Vec::len).sum::<usize>() + input.len() <= CORPUS.0
                    {
                        keep(&dir, &input)?;
                        kept.push(input.clone());
                    }
                    pool.push(input);
                }
            }
            Err(message) => {
                out.failures.push(broken(target, &input, &message, failures)?);
                if out.failures.len() >= 8 {
                    break;
                }
            }
        }
    }
    out.corpus = kept.len();
    Ok(out)
}
