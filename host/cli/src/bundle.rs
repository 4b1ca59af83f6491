//! `shef bundle create|verify|import|export`: evidence and everything for its appraisal, in one
//! signed file.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;
use shef::SystemEntropy;
use shef_files::staged::resolved;
use shef_proto::hpke_suite::PublicKey;
use shef_rego::Workers;
use shef_verify::bundle::{Bundle, BundleError, MAX_BUNDLE};
use shef_verify::crypto::portable;
use shef_verify::{Outcome, Revocations};

use crate::verify::{
    Document, EvidenceArgs, TrustArgs, document, key_folder, note_unknown_revocations, now, print,
    read, required, text, value,
};
use shef_console::CliError;
use shef_console::Exit;
use shef_console::Output;
use shef_console::file::Outputs;
use shef_console::folder::NewFolder;
use shef_console::hex;

/// The time as of which a bundle is appraised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum AsOf {
    /// At its creation
    Date,
    /// Now
    Today,
    /// Both must affirm
    Both,
}

/// A bundle and its signer.
#[derive(clap::Args)]
pub struct FileArgs {
    /// The bundle
    file: PathBuf,
    /// Public key of the bundle's signer: 65 bytes in hexadecimal, or @FILE
    #[arg(long, value_name = "HEX")]
    maker: String,
}

/// The subcommands.
#[derive(Subcommand)]
#[expect(clippy::large_enum_variant, reason = "a process has one of them")]
pub enum BundleCommand {
    /// Put evidence, challenge, anchors, reference values, policy and revocation list into one
    /// signed file
    #[command(group = required())]
    Create {
        #[command(flatten)]
        trust: TrustArgs,
        #[command(flatten)]
        evidence: Option<EvidenceArgs>,
        /// Key folder of the signer; a signing key is created if the folder has no key
        #[arg(long, value_name = "DIR")]
        keys: PathBuf,
        /// Output file for the bundle
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// Creation time, in seconds since 1970; defaults to now
        #[arg(long, value_name = "SECONDS")]
        created: Option<i64>,
    },
    /// Appraise its evidence as of its date and as of today, offline
    Verify {
        #[command(flatten)]
        file: FileArgs,
        /// Time of the appraisal
        #[arg(long, value_enum, default_value_t = AsOf::Both)]
        as_of: AsOf,
        /// A newer revocation list for today (TOML); the entries of the bundle stay in force
        #[arg(long, value_name = "FILE")]
        revocations: Option<PathBuf>,
        /// Today, in seconds since 1970; defaults to now
        #[arg(long, value_name = "SECONDS")]
        now: Option<i64>,
    },
    /// Install its trust data (everything but evidence) into a folder; an older bundle never
    /// replaces a newer one, and only a previously imported folder is replaced
    Import {
        #[command(flatten)]
        file: FileArgs,
        /// The folder
        #[arg(long, value_name = "DIR")]
        into: PathBuf,
    },
    /// Write its parts into a new folder, as input files for `shef verify`
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
    move |e| CliError::new(e.code(), format!("{}: {e}", path.display()))
}

impl FileArgs {
    fn open(&self) -> Result<Bundle, CliError> {
        let maker = hex::decode(&value(&self.maker)?, "the maker's key")?;
        let maker = PublicKey::from_bytes(&maker)
            .map_err(|e| CliError::new(e.code(), format!("the maker's key: {e}")))?;
        Bundle::open(&read(&self.file, MAX_BUNDLE as u64)?, &maker, portable)
            .map_err(named(&self.file))
    }
}

/// Runs one of the subcommands.
pub fn run(output: &Output, command: &BundleCommand) -> Result<Exit, CliError> {
    match command {
        BundleCommand::Create { trust, evidence, keys, out, created } => {
            let mut bundle = trust.load()?;
            trust.note_unknown(output, &bundle);
            bundle.created = now(*created);
            bundle.evidence = evidence.as_ref().map(EvidenceArgs::load).transpose()?;
            let keys = key_folder(output, keys)?;
            let mut outputs = Outputs::new([keys.path()])?;
            let slot = outputs.file(out)?;
            let key = keys.signing_key(&mut SystemEntropy::new()?)?;
            let bytes = bundle.sign(&key);
            if bytes.len() > MAX_BUNDLE {
                return Err(CliError::new(
                    "SHEF-CLI-019",
                    format!(
                        "the bundle would have {} bytes, the limit is {MAX_BUNDLE}",
                        bytes.len()
                    ),
                ));
            }
            outputs.fill(slot, &bytes)?;
            outputs.place()?;
            let maker = hex::encode(key.public_key().as_bytes());
            output.line(format_args!(
                "bundle          {} ({} bytes)",
                out.display(),
                bytes.len()
            ))?;
            output.line(format_args!("created         {}", bundle.created))?;
            output.line(format_args!("maker           {maker}"))?;
            let (bundle, created, with_evidence) =
                (out.display().to_string(), bundle.created, bundle.evidence.is_some());
            output.document(&Created {
                bundle,
                created,
                maker,
                bytes: bytes.len(),
                with_evidence,
            })?;
            Ok(Exit::Done)
        }
        BundleCommand::Verify { file, as_of, revocations, now: today } => {
            verify(output, file, *as_of, revocations.as_deref(), now(*today))
        }
        BundleCommand::Import { file, into } => import(output, &file.open()?, into),
        BundleCommand::Export { file, out } => {
            let bundle = file.open()?;
            let path = place(out)?;
            if path.symlink_metadata().is_ok() {
                return Err(CliError::new(
                    "SHEF-CLI-015",
                    format!("{} exists already; give a new folder", out.display()),
                ));
            }
            let (folder, files) = parts_beside(&path, &bundle)?;
            folder.place(&path)?;
            written(output, out, &bundle, files)
        }
    }
}

/// Path of an existing or new folder, with links resolved; a missing parent is created.
fn place(folder: &Path) -> Result<PathBuf, CliError> {
    let failed = |e| CliError::write_file(folder, &e);
    // `..` and `/` do not name a folder that can be replaced or created.
    if folder.file_name().is_none() {
        let message = format!("{} does not end with the name of a folder", folder.display());
        return Err(CliError::new("SHEF-CLI-027", message));
    }
    if folder.exists() {
        return folder.canonicalize().map_err(failed);
    }
    if let Some(parent) = folder.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    resolved(folder).map_err(failed)
}

fn import(output: &Output, bundle: &Bundle, into: &Path) -> Result<Exit, CliError> {
    let path = place(into)?;
    let newer = |folder: &Path, found: i64| {
        let message = format!(
            "{} holds trust data of {found}, the bundle is of {}",
            folder.display(),
            bundle.created
        );
        CliError::new("SHEF-CLI-023", message)
    };
    let older = |folder: &Path| match installed(folder, into)? {
        Some(found) if found > bundle.created => Err(newer(into, found)),
        _ => Ok(()),
    };
    let there = path.symlink_metadata().is_ok();
    if there {
        older(&path)?;
    }
    // A killed import leaves a folder that the maker has signed too.
    let left = left_behind(&path)?;
    if let Some((folder, found)) = left.iter().find(|(_, found)| *found > bundle.created) {
        return Err(newer(folder, *found));
    }
    let (folder, files) = parts_beside(&path, &Bundle { evidence: None, ..bundle.clone() })?;
    if there {
        // The folder may have been exchanged since the check.
        let old = folder.replace(&path, older)?;
        let failed = |e| CliError::write_file(&old, &e);
        for entry in fs::read_dir(&old).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if is_part(&entry.file_name()) {
                fs::remove_file(entry.path()).map_err(failed)?;
            }
        }
        fs::remove_dir(&old).map_err(failed)?;
    } else {
        folder.place(&path)?;
    }
    for (folder, _) in &left {
        output.note(format_args!(
            "{} was left by an import that was ended: remove it",
            folder.display()
        ));
    }
    written(output, into, bundle, files)
}

fn verify(
    output: &Output,
    file: &FileArgs,
    as_of: AsOf,
    revocations: Option<&Path>,
    today: i64,
) -> Result<Exit, CliError> {
    let bundle = file.open()?;
    let newer = revocations
        .map(|path| {
            Revocations::from_toml(&text(path)?)
                .map_err(|e| CliError::new(e.code(), format!("{}: {e}", path.display())))
        })
        .transpose()?;
    if let (Some(path), Some(list)) = (revocations, &newer)
        && let Ok(reference) = bundle.reference_values(today, None, portable)
    {
        note_unknown_revocations(output, path, list, &reference);
    }
    let rego = Workers::default();
    let policy = bundle.appraisal_policy().map_err(|e| named(&file.file)(e.into()))?;
    if let Some(policy) = policy.rego() {
        rego.check(policy).map_err(|e| named(&file.file)(e.into()))?;
    }
    let appraise = |when: i64, newer: Option<&Revocations>| {
        bundle.appraise(when, newer, portable, Some(&rego)).map_err(named(&file.file))
    };
    let date: Option<Outcome> =
        (as_of != AsOf::Today).then(|| appraise(bundle.created, None)).transpose()?;
    let today: Option<Outcome> =
        (as_of != AsOf::Date).then(|| appraise(today, newer.as_ref())).transpose()?;
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

/// Whether an import writes a file of this name.
fn is_part(name: &OsStr) -> bool {
    const NAMES: [&str; 8] = [
        "created",
        "anchors.toml",
        "reference.toml",
        "signers.toml",
        "policy.toml",
        "policy.rego",
        "revocations.toml",
        "deactivated",
    ];
    let Some(name) = name.to_str() else { return false };
    let number = name
        .strip_suffix(".corim")
        .is_some_and(|n| n.len() >= 3 && n.bytes().all(|b| b.is_ascii_digit()));
    number || NAMES.contains(&name)
}

/// Creation time of the trust data in a folder; `None` for an empty folder.
///
/// # Errors
/// SHEF-CLI-027 unless it is exactly an imported bundle. `named` is its name in messages.
fn installed(folder: &Path, named: &Path) -> Result<Option<i64>, CliError> {
    let failed = |e| CliError::read_file(named, &e);
    let refused = |what: String| {
        Err(CliError::new(
            "SHEF-CLI-027",
            format!("{} is not a folder of imported trust data: {what}", named.display()),
        ))
    };
    if !folder.is_dir() {
        return refused("it is a file".to_owned());
    }
    let mut empty = true;
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        empty = false;
        if !is_part(&entry.file_name()) || !entry.file_type().map_err(failed)?.is_file() {
            return refused(format!("it holds {}", Path::new(&entry.file_name()).display()));
        }
    }
    if empty {
        return Ok(None);
    }
    let path = folder.join("created");
    if !path.exists() {
        return refused("it holds no file `created`".to_owned());
    }
    let text = text(&path)?;
    text.trim()
        .parse()
        .map(Some)
        .map_err(|_| CliError::new("SHEF-CLI-016", format!("{} is not a time", path.display())))
}

/// Folders beside `path` that killed imports into it left behind, and their creation times.
fn left_behind(path: &Path) -> Result<Vec<(PathBuf, i64)>, CliError> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(Vec::new());
    };
    let failed = |e| CliError::read_file(parent, &e);
    let mut found = Vec::new();
    for entry in fs::read_dir(parent).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (full, folder) = (entry.file_name(), entry.path());
        let random = full
            .as_encoded_bytes()
            .strip_prefix(b".")
            .and_then(|rest| rest.strip_prefix(name.as_encoded_bytes()));
        let random = random
            .and_then(|rest| rest.strip_prefix(b"."))
            .and_then(|rest| rest.strip_suffix(b".part"));
        if random.is_some_and(|r| r.len() == 16 && r.iter().all(u8::is_ascii_hexdigit))
            && let Ok(Some(created)) = installed(&folder, &folder)
        {
            found.push((folder, created));
        }
    }
    Ok(found)
}

/// The bundle's parts in a new folder beside `path`, and their names.
fn parts_beside(path: &Path, bundle: &Bundle) -> Result<(NewFolder, Vec<String>), CliError> {
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
    parts.extend(
        bundle
            .corims
            .iter()
            .enumerate()
            .map(|(at, bytes)| (format!("{at:03}.corim"), bytes.clone())),
    );
    if let Some(e) = &bundle.evidence {
        parts.extend([
            (format!("{}.cbor", e.layer.name()), e.evidence.clone()),
            (format!("{}.nonce", e.layer.name()), format!("{}\n", hex::encode(&e.nonce)).into()),
            (format!("{}.audience", e.layer.name()), format!("{}\n", e.audience).into()),
        ]);
    }
    let mut folder = NewFolder::beside(path)?;
    parts.iter().try_for_each(|(name, bytes)| folder.write(name, bytes))?;
    Ok((folder, parts.into_iter().map(|(name, _)| name).collect()))
}

fn written(
    output: &Output,
    folder: &Path,
    bundle: &Bundle,
    files: Vec<String>,
) -> Result<Exit, CliError> {
    for file in &files {
        output.line(folder.join(file).display())?;
    }
    output.document(&Written {
        folder: folder.display().to_string(),
        created: bundle.created,
        files,
    })?;
    Ok(Exit::Done)
}
