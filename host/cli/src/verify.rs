//! `shef verify`: appraises evidence from a file, without a device.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use shef::{KeyFolder, SystemEntropy};
use shef_proto::evidence::{Evidence, Layer};
use shef_rego::Workers;
use shef_verify::bundle::{Bundle, BundledEvidence};
use shef_verify::cmw::Cmw;
use shef_verify::corim::{CorimSigner, MAX_CORIM};
use shef_verify::crypto::portable;
use shef_verify::ear::{self, Dialect, Issue, Reader};
use shef_verify::jwt::NamedKey;
use shef_verify::name;
use shef_verify::{
    Appraisal, AppraisalPolicy, Outcome, PolicyError, ReferenceValues, Rego, Revocations,
    TrustAnchor,
};
use zeroize::Zeroizing;

use shef_console::CliError;
use shef_console::Exit;
use shef_console::Output;
use shef_console::file::{self, Outputs};
use shef_console::hex;
use shef_console::output::count;

/// Maximum size of a file of policy, reference values or anchors.
const MAX_TEXT: u64 = 4 << 20;
/// Lifetime of a result in seconds.
const EAR_LIFE: i64 = 300;

/// Inputs of the appraisal: all or none. A command that needs them has the group [`required`].
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("values").args(["reference", "corim"]).multiple(true))]
pub struct TrustArgs {
    /// Policy (TOML)
    #[arg(long, value_name = "FILE", required = false, requires_all = ["anchors", "values"])]
    policy: PathBuf,
    /// Policy in Rego that must allow as well
    #[arg(long, value_name = "FILE", requires = "policy")]
    rego: Option<PathBuf>,
    /// Reference values (TOML, or JSON by file name)
    #[arg(long, value_name = "FILE", requires = "policy")]
    reference: Option<PathBuf>,
    /// Reference values as signed CoRIM; may be given several times
    #[arg(long, value_name = "FILE", requires_all = ["signers", "policy"])]
    corim: Vec<PathBuf>,
    /// Permitted CoRIM signers, and their scope (TOML)
    #[arg(long, value_name = "FILE", requires = "policy")]
    signers: Option<PathBuf>,
    /// Digests of CoRIMs that are no longer in force, one per line
    #[arg(long, value_name = "FILE", requires = "policy")]
    deactivated: Option<PathBuf>,
    /// Revocation list (TOML)
    #[arg(long, value_name = "FILE", requires = "policy")]
    revocations: Option<PathBuf>,
    /// Trust anchors (TOML)
    #[arg(long, value_name = "FILE", required = false, requires = "policy")]
    anchors: PathBuf,
}

/// The group of a command that needs [`TrustArgs`].
pub fn required() -> clap::ArgGroup {
    clap::ArgGroup::new("trusted").args(["policy"]).required(true)
}

/// Evidence and its challenge.
#[derive(clap::Args)]
pub struct EvidenceArgs {
    /// Evidence: COSE_Sign1 as received from the device, or a CMW (CBOR or JSON) around it
    #[arg(long, value_name = "FILE", required = false, requires_all = ["layer", "nonce", "audience"])]
    evidence: PathBuf,
    /// Expected layer: kernel or shield
    #[arg(long, value_name = "LAYER", required = false, requires = "evidence")]
    layer: String,
    /// Nonce of the challenge in hexadecimal, or @FILE
    #[arg(long, value_name = "HEX", required = false, requires = "evidence")]
    nonce: String,
    /// Audience of the challenge, or @FILE
    #[arg(long, value_name = "NAME", required = false, requires = "evidence")]
    audience: String,
    /// When the challenge was made, seconds since 1970; a policy with max_age needs it
    #[arg(long, value_name = "SECONDS", requires = "evidence")]
    challenged: Option<i64>,
}

/// Flags of `shef verify`.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("appraised").args(["evidence"]).required(true), group = required())]
pub struct VerifyArgs {
    #[command(flatten)]
    evidence: EvidenceArgs,
    #[command(flatten)]
    trust: TrustArgs,
    /// Time of the appraisal, in seconds since 1970; defaults to now
    #[arg(long, value_name = "SECONDS")]
    now: Option<i64>,
    /// Output file for the result as a signed EAR (JWT)
    #[arg(long, value_name = "FILE", requires = "ear_keys")]
    ear: Option<PathBuf>,
    /// Key folder that signs the EAR; a signing key is created if the folder has no key
    #[arg(long, value_name = "DIR", requires = "ear")]
    ear_keys: Option<PathBuf>,
    /// Claim names of the EAR: draft 04, or the older profile of 2023
    #[arg(long, value_enum, default_value_t = EarNames::Draft04)]
    ear_dialect: EarNames,
    /// Audience of the EAR
    #[arg(long, value_name = "NAME", default_value = "relying-party")]
    ear_audience: String,
}

/// See [`Dialect`].
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum EarNames {
    /// draft-ietf-rats-ear-04
    #[value(name = "04")]
    Draft04,
    /// tag:github.com,2023:veraison/ear
    #[value(name = "2023")]
    Veraison2023,
}

/// An appraisal as a JSON document.
#[derive(Serialize)]
pub struct Document<'a> {
    evidence_digest: Option<String>,
    claims: Vec<(&'static str, String)>,
    #[serde(flatten)]
    appraisal: &'a Appraisal,
}

/// Opens a folder of keys. A missing one is created, and a note says so: a wrong name would make a new
/// party.
///
/// # Errors
/// Those of the folder.
pub fn key_folder(output: &Output, path: &Path) -> Result<KeyFolder, CliError> {
    let missing = !path.exists();
    let folder = KeyFolder::open(path)?;
    if missing {
        output.note(format!("made {}: a new folder, with new keys", path.display()));
    }
    Ok(folder)
}

/// Reads a whole regular file of at most `max` bytes.
pub fn read(path: &Path, max: u64) -> Result<Vec<u8>, CliError> {
    file::read(path, max)
}

/// The same for a secret, which is erased when dropped. It may come through a pipe, so that it is
/// on no disk.
pub fn read_secret(path: &Path, max: usize) -> Result<Zeroizing<Vec<u8>>, CliError> {
    use std::io::Read;
    file::is_input(path);
    let file = std::fs::File::open(path).map_err(|e| CliError::read_file(path, &e))?;
    // Room for all of it: a growing buffer leaves the secret behind.
    let mut bytes = Zeroizing::new(vec![0; max + 1]);
    let mut len = 0;
    let mut file = file.take(max as u64 + 1);
    loop {
        match file.read(&mut bytes[len..]).map_err(|e| CliError::read_file(path, &e))? {
            0 => break,
            n => len += n,
        }
    }
    if len > max {
        return Err(CliError::new(
            "SHEF-CLI-019",
            format!("{} has more than {max} bytes", path.display()),
        ));
    }
    bytes.truncate(len);
    Ok(bytes)
}

/// Reads a text file.
pub fn text(path: &Path) -> Result<String, CliError> {
    String::from_utf8(read(path, MAX_TEXT)?).map_err(|_| {
        CliError::new("SHEF-CLI-016", format!("{} is not text in UTF-8", path.display()))
    })
}

/// An argument, or the content of the file that it names as `@FILE`.
pub fn value(given: &str) -> Result<String, CliError> {
    match given.strip_prefix('@') {
        Some(path) => Ok(text(Path::new(path))?.trim().to_owned()),
        None => Ok(given.to_owned()),
    }
}

/// The given time, or the clock's, in seconds since 1970.
pub fn now(given: Option<i64>) -> i64 {
    given.unwrap_or_else(|| {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |d| d.as_secs() as i64)
    })
}

impl TrustArgs {
    /// Reads and checks the files; the result contains everything but evidence and time.
    ///
    /// # Errors
    /// A file cannot be read or is malformed; the message names it.
    pub fn load(&self) -> Result<Bundle, CliError> {
        let named = |path: &Path, e: PolicyError| {
            CliError::new(e.code(), format!("{}: {e}", path.display()))
        };
        let mut bundle = Bundle {
            policy: text(&self.policy)?,
            anchors: text(&self.anchors)?,
            ..Bundle::default()
        };
        AppraisalPolicy::from_toml(&bundle.policy).map_err(|e| named(&self.policy, e))?;
        TrustAnchor::list_from_toml(&bundle.anchors).map_err(|e| named(&self.anchors, e))?;
        if let Some(path) = &self.rego {
            let rego = text(path)?;
            Rego::new(&rego)
                .and_then(|policy| Workers::default().check(&policy))
                .map_err(|e| named(path, e))?;
            bundle.rego = Some(rego);
        }
        if let Some(path) = &self.reference {
            let given = text(path)?;
            let json = path.extension().is_some_and(|x| x.eq_ignore_ascii_case("json"));
            let values = if json {
                ReferenceValues::from_json(&given)
            } else {
                ReferenceValues::from_toml(&given)
            };
            let values = values.map_err(|e| named(path, e))?;
            bundle.reference =
                if json { values.to_toml().map_err(|e| named(path, e))? } else { given };
        }
        if let Some(path) = &self.signers {
            bundle.signers = text(path)?;
            CorimSigner::list_from_toml(&bundle.signers).map_err(|e| named(path, e))?;
        }
        bundle.corims =
            self.corim.iter().map(|path| read(path, MAX_CORIM as u64)).collect::<Result<_, _>>()?;
        if let Some(path) = &self.deactivated {
            bundle.deactivated = digests(path, &text(path)?)?;
        }
        if let Some(path) = &self.revocations {
            let list = text(path)?;
            Revocations::from_toml(&list).map_err(|e| named(path, e))?;
            bundle.revocations = Some(list);
        }
        Ok(bundle)
    }

    /// Notes that entries of `--deactivated` name no CoRIM of `bundle`, as with a wrong digit. An
    /// entry that names one refuses it.
    pub fn note_unknown(&self, output: &Output, bundle: &Bundle) {
        let Some(path) = &self.deactivated else { return };
        // A malformed CoRIM has no name; the appraisal reports it.
        let named = bundle.corims.iter().filter_map(|corim| shef_verify::corim::names(corim).ok());
        let known: BTreeSet<String> = named.flatten().map(|name| hex::encode(&name)).collect();
        note_unknown(
            output,
            path,
            &[(&bundle.deactivated, known)],
            "CoRIM that this command reads",
        );
    }
}

/// Notes that entries of a revocation list name none of the reference values, as with a wrong digit.
/// Devices and certificates are not looked for: a list names those of a whole fleet.
pub fn note_unknown_revocations(
    output: &Output,
    path: &Path,
    list: &Revocations,
    reference: &ReferenceValues,
) {
    let images = &reference.images;
    let lists = [
        (&list.kernels, reference.kernels.iter().map(|it| hex::encode(&it.digest)).collect()),
        (&list.shells, reference.shells.iter().map(|it| hex::encode(&it.digest)).collect()),
        (&list.images, images.iter().map(|it| hex::encode(&it.digest)).collect()),
        (&list.vendors, images.iter().map(|it| hex::encode(&it.vendor)).collect()),
    ];
    let what = "kernel, shell, image or vendor of its kind in the reference values";
    note_unknown(output, path, &lists, what);
}

/// Prints a note if entries of the file at `path` name no known value: `lists` has both.
fn note_unknown(
    output: &Output,
    path: &Path,
    lists: &[(&BTreeSet<String>, BTreeSet<String>)],
    what: &str,
) {
    let all: usize = lists.iter().map(|(listed, _)| listed.len()).sum();
    let unknown: Vec<&String> =
        lists.iter().flat_map(|(listed, known)| listed.difference(known)).collect();
    if let Some(first) = unknown.first() {
        output.note(format_args!(
            "{}: {} of {} name no {what}, such as {first}",
            path.display(),
            unknown.len(),
            count(all as u64, "digest"),
        ));
    }
}

/// Digests, separated by white space.
///
/// # Errors
/// An entry that is not a digest, with file and line: it must not be ignored.
fn digests(path: &Path, text: &str) -> Result<BTreeSet<String>, CliError> {
    let entries = text
        .lines()
        .zip(1..)
        .flat_map(|(line, number)| line.split_whitespace().map(move |entry| (number, entry)));
    entries
        .map(|(line, entry)| {
            let found: String = entry.chars().take(80).collect();
            let refused = || {
                CliError::new(
                    "SHEF-CLI-018",
                    format!("{}:{line}: {found:?}: expected {}", path.display(), name::DIGEST),
                )
            };
            name::digest(entry).ok_or_else(refused)
        })
        .collect()
}

impl EvidenceArgs {
    /// Reads the evidence, and unwraps it if it is in a wrapper.
    ///
    /// # Errors
    /// A file cannot be read, or an argument is malformed.
    pub fn load(&self) -> Result<BundledEvidence, CliError> {
        let layer = Layer::from_name(&self.layer).ok_or_else(|| {
            CliError::new(
                "SHEF-CLI-001",
                format!("there is no layer {:?}, only kernel and shield", self.layer),
            )
        })?;
        let mut evidence = read(&self.evidence, 1 << 20)?;
        if evidence.is_empty() {
            return undecided(format!(
                "{} is empty: there is nothing to verify",
                self.evidence.display()
            ));
        }
        if let Ok(wrapper) = Cmw::parse(&evidence) {
            let inner = wrapper.evidence().map_err(|e| {
                CliError::new(e.code(), format!("{}: {e}", self.evidence.display()))
            })?;
            evidence = inner.to_vec();
        }
        Ok(BundledEvidence {
            layer,
            evidence,
            certificates: Vec::new(),
            nonce: hex::decode(&value(&self.nonce)?, "the nonce")?,
            audience: value(&self.audience)?,
            challenged: self.challenged,
        })
    }
}

fn undecided<T>(message: String) -> Result<T, CliError> {
    Err(CliError::new("SHEF-CLI-022", message))
}

/// An appraisal as a document.
pub fn document<'a>(evidence: &[u8], outcome: &'a Outcome) -> Document<'a> {
    let parsed = Evidence::parse(evidence).ok();
    Document {
        evidence_digest: parsed.as_ref().map(|e| hex::encode(&e.digest())),
        claims: parsed.as_ref().map(Evidence::describe).unwrap_or_default(),
        appraisal: &outcome.appraisal,
    }
}

/// Prints claims and every check with expected and actual value.
pub fn print(output: &Output, evidence: &[u8], outcome: &Outcome) -> Result<(), CliError> {
    for (name, value) in &document(evidence, outcome).claims {
        output.line(format_args!("{name:<16} {value}"))?;
    }
    output.line("")?;
    let appraisal = &outcome.appraisal;
    for check in &appraisal.checks {
        let mark = if check.passed { output.good("ok  ") } else { output.bad("FAIL") };
        output.line(format_args!(
            "{mark} {} {:<16} {}",
            check.code,
            check.id.name(),
            check.actual
        ))?;
        if check.reached && !check.passed {
            output.line(format_args!("                  expected         {}", check.expected))?;
        }
    }
    for warning in &appraisal.warnings {
        output.line(format_args!("warning: {warning}"))?;
    }
    for (claim, value) in appraisal.vector.claims() {
        output.line(format_args!("{claim:<17} {value}"))?;
    }
    // Accepted requires that the verifier vouches for it, not merely that no check failed.
    let accepted = appraisal.accepted() && outcome.verified.is_some();
    output.line(if accepted { output.good("affirmed") } else { output.bad("rejected") })
}

/// Runs `shef verify`.
pub fn run(output: &Output, args: &VerifyArgs) -> Result<Exit, CliError> {
    let evidence = args.evidence.load()?;
    let (layer, now) = (evidence.layer, now(args.now));
    let bundle = Bundle { created: now, evidence: Some(evidence.clone()), ..args.trust.load()? };
    args.trust.note_unknown(output, &bundle);

    let bad = |e: shef_verify::bundle::BundleError| CliError::new(e.code(), e.to_string());
    if bundle.trust_anchors().map_err(|e| bad(e.into()))?.list().is_empty() {
        return undecided(format!("{} holds no trust anchor", args.trust.anchors.display()));
    }
    let revocations = bundle.revocation_list().map_err(|e| bad(e.into()))?;
    let reference = bundle.reference_values(now, revocations.as_ref(), portable).map_err(bad)?;
    if let (Some(path), Some(list)) = (&args.trust.revocations, &revocations) {
        note_unknown_revocations(output, path, list, &reference);
    }
    if reference.kernels.is_empty()
        || reference.shells.is_empty()
        || (layer == Layer::Shield && reference.images.is_empty())
    {
        return undecided(format!(
            "there is no reference value for every part of the {} layer",
            layer.name()
        ));
    }

    let outcome = bundle.appraise(now, None, portable, Some(&Workers::default())).map_err(bad)?;
    if let (Some(path), Some(keys)) = (&args.ear, &args.ear_keys) {
        let keys = key_folder(output, keys)?;
        write_ear(path, &keys, args, &outcome, &evidence, now)?;
    }
    print(output, &evidence.evidence, &outcome)?;
    output.document(&document(&evidence.evidence, &outcome))?;
    Ok(if outcome.verified.is_some() { Exit::Done } else { Exit::No })
}

fn write_ear(
    path: &Path,
    keys: &KeyFolder,
    args: &VerifyArgs,
    outcome: &Outcome,
    evidence: &BundledEvidence,
    now: i64,
) -> Result<(), CliError> {
    let mut entropy = SystemEntropy::new()?;
    let mut outputs = Outputs::new([keys.path()])?;
    let slot = outputs.file(path)?;
    let key = keys.signing_key(&mut entropy)?;
    let mut id = [0; 16];
    shef_proto::entropy::Entropy::fill(&mut entropy, &mut id);
    let issue = Issue {
        dialect: match args.ear_dialect {
            EarNames::Draft04 => Dialect::Draft04,
            EarNames::Veraison2023 => Dialect::Veraison2023,
        },
        issuer: "shef verify",
        audience: &args.ear_audience,
        // Users of the older names have parsers that reject `aud`.
        reader: match args.ear_dialect {
            EarNames::Draft04 => Reader::Own,
            EarNames::Veraison2023 => Reader::Veraison,
        },
        issued: now,
        expires: now.saturating_add(EAR_LIFE),
        id: &hex::encode(&id),
        nonce: &evidence.nonce,
        policy: None,
        developer: "https://shef.dev",
        build: concat!("shef ", env!("CARGO_PKG_VERSION")),
        with_ueid: true,
    };
    let kid = hex::encode(&shef_verify::corim::vendor_id(&key.public_key())[..8]);
    let token = ear::sign(outcome, evidence.layer, &issue, &NamedKey { kid, key })
        .map_err(|e| CliError::new(e.code(), e.to_string()))?;
    outputs.fill(slot, token + "\n")?;
    outputs.place()
}
