//! `shef verify`: appraises evidence from a file, without any device.

use std::path::{Path, PathBuf};

use serde::Serialize;
use shef_proto::evidence::{Evidence, Layer};
use shef_verify::{Appraisal, AppraisalPolicy, ReferenceValues, Request, TrustAnchor, TrustAnchors, appraise};

use crate::error::CliError;
use crate::exit::Exit;
use crate::hex;
use crate::output::Output;

/// Most bytes of a file of policy, reference values or anchors.
const MAX_TEXT: u64 = 4 << 20;

/// Flags of `shef verify`.
#[derive(clap::Args)]
pub struct VerifyArgs {
    /// Evidence: COSE_Sign1 as the device gave it
    #[arg(long, value_name = "FILE")]
    evidence: PathBuf,
    /// Layer that is expected: kernel or shield
    #[arg(long, value_name = "LAYER")]
    layer: String,
    /// Policy (TOML)
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// Reference values (TOML, or JSON by its name)
    #[arg(long, value_name = "FILE")]
    reference: PathBuf,
    /// Trust anchors (TOML)
    #[arg(long, value_name = "FILE")]
    anchors: PathBuf,
    /// Nonce of the challenge in hexadecimal, or @FILE
    #[arg(long, value_name = "HEX")]
    nonce: String,
    /// Audience of the challenge, or @FILE
    #[arg(long, value_name = "NAME")]
    audience: String,
    /// Time of the appraisal, seconds since 1970; now where it is absent
    #[arg(long, value_name = "SECONDS")]
    now: Option<i64>,
}

#[derive(Serialize)]
struct Document<'a> {
    evidence_digest: Option<String>,
    claims: Vec<(&'static str, String)>,
    #[serde(flatten)]
    appraisal: &'a Appraisal,
}

/// Reads a whole file of at most `max` bytes.
pub fn read(path: &Path, max: u64) -> Result<Vec<u8>, CliError> {
    use std::io::Read;
    let file = std::fs::File::open(path).map_err(|e| CliError::read_file(path, &e))?;
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes).map_err(|e| CliError::read_file(path, &e))?;
    if bytes.len() as u64 > max {
        return Err(CliError::input("SHEF-CLI-019", format!("{} has more than {max} bytes", path.display())));
    }
    Ok(bytes)
}

/// Reads a text file.
pub fn text(path: &Path) -> Result<String, CliError> {
    String::from_utf8(read(path, MAX_TEXT)?)
        .map_err(|_| CliError::input("SHEF-CLI-016", format!("{} is not text in UTF-8", path.display())))
}

fn value(given: &str) -> Result<String, CliError> {
    match given.strip_prefix('@') {
        Some(path) => Ok(text(Path::new(path))?.trim().to_owned()),
        None => Ok(given.to_owned()),
    }
}

pub fn run(output: &Output, args: &VerifyArgs) -> Result<Exit, CliError> {
    let layer = Layer::from_name(&args.layer)
        .ok_or_else(|| CliError::usage("SHEF-CLI-001", format!("there is no layer {:?}, only kernel and shield", args.layer)))?;
    let named = |path: &Path, e: shef_verify::PolicyError| CliError::input(e.code(), format!("{}: {e}", path.display()));
    let policy = AppraisalPolicy::from_toml(&text(&args.policy)?).map_err(|e| named(&args.policy, e))?;
    let reference = text(&args.reference)?;
    let json = args.reference.extension().is_some_and(|x| x.eq_ignore_ascii_case("json"));
    let reference = if json { ReferenceValues::from_json(&reference) } else { ReferenceValues::from_toml(&reference) }
        .map_err(|e| named(&args.reference, e))?;
    let anchors = TrustAnchors::new(TrustAnchor::list_from_toml(&text(&args.anchors)?).map_err(|e| named(&args.anchors, e))?);
    let nonce = hex::decode(&value(&args.nonce)?, "the nonce")?;
    let audience = value(&args.audience)?;
    let evidence = read(&args.evidence, 1 << 20)?;
    let now = match args.now {
        Some(now) => now,
        None => std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64),
    };

    let undecided = |what: String| Err(CliError { code: "SHEF-CLI-022".into(), message: what, exit: Exit::Undecided });
    if evidence.is_empty() {
        return undecided(format!("{} is empty: there is nothing to verify", args.evidence.display()));
    }
    if anchors.list().is_empty() {
        return undecided(format!("{} holds no trust anchor", args.anchors.display()));
    }
    if reference.kernels.is_empty() || reference.shells.is_empty() || (layer == Layer::Shield && reference.images.is_empty()) {
        return undecided(format!("{} holds no reference value for every part of the {} layer", args.reference.display(), layer.name()));
    }

    let request = Request::new(&evidence, &anchors, &reference, &policy, layer, &nonce, &audience, now);
    let outcome = appraise(&request);
    let appraisal = &outcome.appraisal;
    let parsed = Evidence::parse(&evidence).ok();
    let claims = parsed.as_ref().map(Evidence::describe).unwrap_or_default();
    for (name, value) in &claims {
        output.line(format_args!("{name:<16} {value}"))?;
    }
    output.line("")?;
    for check in &appraisal.checks {
        let mark = if check.passed { output.good("ok  ") } else { output.bad("FAIL") };
        output.line(format_args!("{mark} {} {}", check.code, check.id.name()))?;
        if !check.passed {
            output.line(format_args!("       expected {}", check.expected))?;
            output.line(format_args!("       actual   {}", check.actual))?;
        }
    }
    for warning in &appraisal.warnings {
        output.line(format_args!("warning: {warning}"))?;
    }
    // Accepted is what the verifier vouches for, not what it failed to refuse.
    let accepted = appraisal.accepted() && outcome.verified.is_some();
    output.line(if accepted { output.good("affirmed") } else { output.bad("rejected") })?;
    output.document(&Document { evidence_digest: parsed.map(|e| hex::encode(&e.digest())), claims, appraisal })?;
    Ok(if accepted { Exit::Done } else { Exit::No })
}
