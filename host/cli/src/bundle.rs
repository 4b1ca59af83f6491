//! `shef bundle create|verify|import|export`: evidence and all it is appraised against, in one
//! signed file.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;
use shef::{KeyFolder, SystemEntropy};
use shef_proto::cose::CoseError;
use shef_proto::hpke_suite::PublicKey;
use shef_rego::Workers;
use shef_verify::bundle::{Bundle, BundleError, MAX_BUNDLE};
use shef_verify::crypto::portable;
use shef_verify::{Outcome, Revocations};

use crate::verify::{Document, EvidenceArgs, TrustArgs, document, now, print, read, text, value};
use shef_console::CliError;
use shef_console::Exit;
use shef_console::Output;
use shef_console::hex;

/// At which time a bundle is appraised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum AsOf {
    /// When it was made
    Date,
    /// Now
    Today,
    /// Both must affirm
    Both,
}

/// Who made a bundle, and where it is.
#[derive(clap::Args)]
pub struct FileArgs {
    /// The bundle
    file: PathBuf,
    /// Public key of whoever made it: 65 bytes in hexadecimal, or @FILE
    #[arg(long, value_name = "HEX")]
    maker: String,
}

/// The subcommands.
#[derive(Subcommand)]
#[expect(clippy::large_enum_variant, reason = "a process has one of them")]
pub enum BundleCommand {
    /// Put evidence, challenge, anchors, reference values, policy and revocation list into one
    /// signed file
    Create {
        #[command(flatten)]
        trust: TrustArgs,
        #[command(flatten)]
        evidence: Option<EvidenceArgs>,
        /// Key folder of whoever makes it; a signing key is made where there is none
        #[arg(long, value_name = "DIR")]
        keys: PathBuf,
        /// The bundle
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Creation time, in seconds since 1970; defaults to now
        #[arg(long, value_name = "SECONDS")]
        created: Option<i64>,
    },
    /// Appraise its evidence as of its date and as of today, without a network
    Verify {
        #[command(flatten)]
        file: FileArgs,
        /// As of when
        #[arg(long, value_enum, default_value_t = AsOf::Both)]
        as_of: AsOf,
        /// A newer revocation list for today (TOML)
        #[arg(long, value_name = "FILE")]
        revocations: Option<PathBuf>,
        /// Today, in seconds since 1970; defaults to now
        #[arg(long, value_name = "SECONDS")]
        now: Option<i64>,
    },
    /// Install its trust data (everything but evidence) into a folder; an older bundle never
    /// replaces a newer one
    Import {
        #[command(flatten)]
        file: FileArgs,
        /// The folder
        #[arg(long, value_name = "DIR")]
        into: PathBuf,
    },
    /// Write its parts into a new folder, as files for `shef verify`
    Export {
        #[command(flatten)]
        file: FileArgs,
        /// The folder
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

#[derive(Serialize)]
struct Created {
    bundle: String,
    created: i64,
    maker: String,
    bytes: usize,
    with_evidence: bool,
}

#[derive(Serialize)]
struct Audit<'a> {
    created: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of_date: Option<Document<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of_today: Option<Document<'a>>,
}

#[derive(Serialize)]
struct Written {
    folder: String,
    created: i64,
    files: Vec<String>,
}

fn named(path: &Path) -> impl Fn(BundleError) -> CliError + '_ {
    move |e| {
        let exit = match &e {
            BundleError::Cose(CoseError::Signature | CoseError::HighS) => Exit::No,
            BundleError::NoEvidence => Exit::Undecided,
            _ => Exit::Input,
        };
        CliError { code: e.code().into(), message: format!("{}: {e}", path.display()), exit }
    }
}

impl FileArgs {
    fn open(&self) -> Result<Bundle, CliError> {
        let maker = hex::decode(&value(&self.maker)?, "the maker's key")?;
        let maker = PublicKey::from_bytes(&maker).map_err(|e| CliError::input(e.code(), format!("the maker's key: {e}")))?;
        Bundle::open(&read(&self.file, MAX_BUNDLE as u64)?, &maker, portable).map_err(named(&self.file))
    }
}

/// Runs one of the subcommands.
pub fn run(output: &Output, command: &BundleCommand) -> Result<Exit, CliError> {
    match command {
        BundleCommand::Create { trust, evidence, keys, out, created } => {
            let mut bundle = trust.load()?;
            bundle.created = now(*created);
            bundle.evidence = evidence.as_ref().map(EvidenceArgs::load).transpose()?;
            let key = KeyFolder::open(keys)?.signing_key(&mut SystemEntropy::new()?)?;
            let bytes = bundle.sign(&key);
            if bytes.len() > MAX_BUNDLE {
                return Err(CliError::input(
                    "SHEF-CLI-019",
                    format!("the bundle would have {} bytes, the limit is {MAX_BUNDLE}", bytes.len()),
                ));
            }
            shef_console::file::write(out, &bytes)?;
            let maker = hex::encode(key.public_key().as_bytes());
            output.line(format_args!("bundle          {} ({} bytes)", out.display(), bytes.len()))?;
            output.line(format_args!("created         {}", bundle.created))?;
            output.line(format_args!("maker           {maker}"))?;
            let (bundle, created, with_evidence) = (out.display().to_string(), bundle.created, bundle.evidence.is_some());
            output.document(&Created { bundle, created, maker, bytes: bytes.len(), with_evidence })?;
            Ok(Exit::Done)
        }
        BundleCommand::Verify { file, as_of, revocations, now: today } => verify(output, file, *as_of, revocations.as_deref(), now(*today)),
        BundleCommand::Import { file, into } => {
            let bundle = file.open()?;
            if let Some(installed) = installed(into)?.filter(|installed| *installed > bundle.created) {
                let message = format!("{} holds trust data of {installed}, the bundle is of {}", into.display(), bundle.created);
                return Err(CliError { code: "SHEF-CLI-023".into(), message, exit: Exit::No });
            }
            let next = into.with_extension("new");
            let before = into.with_extension("old");
            for path in [&next, &before] {
                if path.exists() {
                    fs::remove_dir_all(path).map_err(|e| CliError::write_file(path, &e))?;
                }
            }
            let files = write_parts(&next, &Bundle { evidence: None, ..bundle.clone() })?;
            if into.exists() {
                fs::rename(into, &before).map_err(|e| CliError::write_file(into, &e))?;
            }
            fs::rename(&next, into).map_err(|e| CliError::write_file(into, &e))?;
            if before.exists() {
                fs::remove_dir_all(&before).map_err(|e| CliError::write_file(&before, &e))?;
            }
            written(output, into, &bundle, files)
        }
        BundleCommand::Export { file, out } => {
            let bundle = file.open()?;
            if out.exists() {
                return Err(CliError::input("SHEF-CLI-015", format!("{} exists already; give a new folder", out.display())));
            }
            let files = write_parts(out, &bundle)?;
            written(output, out, &bundle, files)
        }
    }
}

fn verify(output: &Output, file: &FileArgs, as_of: AsOf, revocations: Option<&Path>, today: i64) -> Result<Exit, CliError> {
    let bundle = file.open()?;
    let newer = revocations
        .map(|path| Revocations::from_toml(&text(path)?).map_err(|e| CliError::input(e.code(), format!("{}: {e}", path.display()))))
        .transpose()?;
    let rego = Workers::default();
    let policy = bundle.appraisal_policy().map_err(|e| named(&file.file)(e.into()))?;
    if let Some(policy) = policy.rego() {
        rego.check(policy).map_err(|e| named(&file.file)(e.into()))?;
    }
    let appraise = |when: i64, newer: Option<&Revocations>| bundle.appraise(when, newer, portable, Some(&rego)).map_err(named(&file.file));
    let date: Option<Outcome> = (as_of != AsOf::Today).then(|| appraise(bundle.created, None)).transpose()?;
    let today: Option<Outcome> = (as_of != AsOf::Date).then(|| appraise(today, newer.as_ref())).transpose()?;
    let evidence = bundle.evidence.as_ref().map(|e| e.evidence.as_slice()).unwrap_or_default();
    for (what, outcome) in [("as of its date", &date), ("as of today", &today)] {
        if let Some(outcome) = outcome {
            output.line(output.heading(what))?;
            print(output, evidence, outcome)?;
            output.line("")?;
        }
    }
    let accepted = [&date, &today].into_iter().flatten().all(|outcome| outcome.verified.is_some());
    output.document(&Audit {
        created: bundle.created,
        as_of_date: date.as_ref().map(|outcome| document(evidence, outcome)),
        as_of_today: today.as_ref().map(|outcome| document(evidence, outcome)),
    })?;
    Ok(if accepted { Exit::Done } else { Exit::No })
}

/// When the trust data of a folder was made.
fn installed(folder: &Path) -> Result<Option<i64>, CliError> {
    let path = folder.join("created");
    if !path.exists() {
        return Ok(None);
    }
    let text = text(&path)?;
    text.trim().parse().map(Some).map_err(|_| CliError::input("SHEF-CLI-016", format!("{} is not a time", path.display())))
}

fn write_parts(folder: &Path, bundle: &Bundle) -> Result<Vec<String>, CliError> {
    let mut parts: Vec<(String, Vec<u8>)> = vec![
        ("created".into(), format!("{}\n", bundle.created).into()),
        ("anchors.toml".into(), bundle.anchors.clone().into()),
        ("reference.toml".into(), bundle.reference.clone().into()),
        ("signers.toml".into(), bundle.signers.clone().into()),
        ("policy.toml".into(), bundle.policy.clone().into()),
    ];
    parts.extend(bundle.rego.clone().map(|text| ("policy.rego".into(), text.into())));
    parts.extend(bundle.revocations.clone().map(|text| ("revocations.toml".into(), text.into())));
    if !bundle.deactivated.is_empty() {
        let list: Vec<&str> = bundle.deactivated.iter().map(String::as_str).collect();
        parts.push(("deactivated".into(), (list.join("\n") + "\n").into()));
    }
    parts.extend(bundle.corims.iter().enumerate().map(|(at, bytes)| (format!("{at:03}.corim"), bytes.clone())));
    if let Some(e) = &bundle.evidence {
        parts.extend([
            (format!("{}.cbor", e.layer.name()), e.evidence.clone()),
            (format!("{}.nonce", e.layer.name()), format!("{}\n", hex::encode(&e.nonce)).into()),
            (format!("{}.audience", e.layer.name()), format!("{}\n", e.audience).into()),
        ]);
    }
    fs::create_dir_all(folder).map_err(|e| CliError::write_file(folder, &e))?;
    // The folder is new: a part of it is of no use.
    parts.iter().try_for_each(|(name, bytes)| shef_console::file::write(&folder.join(name), bytes)).inspect_err(|_| {
        let _ = fs::remove_dir_all(folder);
    })?;
    Ok(parts.into_iter().map(|(name, _)| name).collect())
}

fn written(output: &Output, folder: &Path, bundle: &Bundle, files: Vec<String>) -> Result<Exit, CliError> {
    for file in &files {
        output.line(folder.join(file).display())?;
    }
    output.document(&Written { folder: folder.display().to_string(), created: bundle.created, files })?;
    Ok(Exit::Done)
}
