//! `shef audit`: fetches and verifies a chain of receipts, independently of the service that wrote
//! it.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use shef::service::api;
use shef_proto::event::{Event, EventAudit, EventError};
use shef_proto::hpke_suite::PublicKey;
use shef_proto::receipt::{Audit, Forgotten, Head, ReceiptError};

use crate::verify::text;
use shef_console::CliError;
use shef_console::Exit;
use shef_console::Output;
use shef_console::file::{Outputs, PathText};
use shef_console::hex;
use shef_console::output::count;
use shef_flags::ServiceArgs;

/// Subcommands of `shef audit`.
#[derive(clap::Subcommand)]
pub enum AuditCommand {
    /// Fetch all receipts of a verifier service, for `shef audit verify`
    Receipts(ReceiptsArgs),
    /// Find edits, gaps, reordering and truncation in the receipts of a verifier service
    Verify(VerifyArgs),
}

/// Arguments of `shef audit receipts`.
#[derive(clap::Args)]
pub struct ReceiptsArgs {
    /// File for the receipts (JSON)
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// File for the events (JSON): who changed what, or was refused
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// The verifier service
    #[command(flatten)]
    service: ServiceArgs,
}

/// Arguments of `shef audit verify`.
#[derive(clap::Args)]
pub struct VerifyArgs {
    /// Receipts by `shef audit receipts`, or answers of GET /v1/receipts in their order
    #[arg(required = true, value_name = "FILE")]
    receipts: Vec<PathBuf>,
    /// The service's keys: a trusted copy of its /.well-known/jwks.json
    #[arg(long, value_name = "FILE")]
    jwks: PathBuf,
    /// Events by `shef audit receipts`, or an answer of GET /v1/events with all of them; they must be
    /// those that the receipts name
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Head that a release returned: the chain must contain it. Without it, truncation goes
    /// undetected
    #[arg(long, value_name = "SEQ:DIGEST")]
    head: Option<String>,
    /// Head after which the receipts begin, if known from another source; without it the service
    /// must have signed that it deleted earlier ones
    #[arg(long, value_name = "SEQ:DIGEST")]
    after: Option<String>,
}

#[derive(Serialize)]
struct Fetched {
    out: PathText,
    receipts: usize,
    events: Option<usize>,
}

#[derive(Serialize)]
struct Document {
    tenant: String,
    receipts: u64,
    /// How many events fit the receipts, if they were given.
    events: Option<u64>,
    head: String,
    holds: bool,
}

/// Runs `shef audit`.
///
/// # Errors
/// A file is malformed, the chain does not verify, or an error of the service.
pub fn run(output: &Output, command: &AuditCommand) -> Result<Exit, CliError> {
    match command {
        AuditCommand::Receipts(args) => fetch(output, args),
        AuditCommand::Verify(args) => verify(output, args),
    }
}

fn fetch(output: &Output, args: &ReceiptsArgs) -> Result<Exit, CliError> {
    let mut outputs = Outputs::new([])?;
    let slot = outputs.file(&args.out)?;
    let events = args.events.as_deref().map(|path| outputs.file(path)).transpose()?;
    let service = args.service.open()?;
    let page = service.receipts()?;
    outputs.fill(slot, text_of(&page)?)?;
    let receipts = page.receipts.len();
    let events = match events {
        None => None,
        Some(slot) => {
            // After the receipts, which name events that then exist.
            let page = service.events()?;
            outputs.fill(slot, text_of(&page)?)?;
            Some(page.events.len())
        }
    };
    outputs.place()?;
    output.line(format_args!(
        "{} into {}",
        count(receipts as u64, "receipt"),
        args.out.display()
    ))?;
    if let (Some(events), Some(path)) = (events, &args.events) {
        output.line(format_args!("{} into {}", count(events as u64, "event"), path.display()))?;
    }
    output.document(&Fetched { out: args.out.as_path().into(), receipts, events })?;
    Ok(Exit::Done)
}

fn verify(output: &Output, args: &VerifyArgs) -> Result<Exit, CliError> {
    let keys = keys(&args.jwks)?;
    let pages = args
        .receipts
        .iter()
        .map(|path| json::<api::Receipts>(path))
        .collect::<Result<Vec<_>, _>>()?;
    let tenant = &pages[0].tenant;
    let after = args.after.as_deref().map(|given| head(given, "--after")).transpose()?;
    let known = args.head.as_deref().map(|given| head(given, "--head")).transpose()?;

    let broken = |e: ReceiptError| CliError::new(e.code(), e.to_string());
    let kept = Some(&pages[0].kept).filter(|kept| after.is_none() && kept.seq > 0);
    let after = match kept {
        None => after,
        Some(kept) => {
            let head =
                Head { seq: kept.seq, digest: hex::decode_array(&kept.digest, "kept.digest")? };
            let statement = kept.statement.as_deref().unwrap_or_default();
            let statement = base64(statement, &args.receipts[0], "kept.statement")?;
            Some(Forgotten::verify(&statement, &keys, tenant, head).map_err(broken)?.head)
        }
    };
    let mut audit = Audit::new(tenant, &keys, after);
    let mut events = EventAudit::new(tenant);
    let unfit = |e: EventError| CliError::new(e.code(), e.to_string());
    let (mut total, mut reached) = (0, known.is_none() || known == after);
    for (path, page) in args.receipts.iter().zip(&pages) {
        if page.tenant != *tenant {
            let message = format!(
                "{} holds receipts of tenant {:?}, expected {tenant:?}",
                path.display(),
                page.tenant
            );
            return Err(CliError::new("SHEF-CLI-016", message));
        }
        for row in &page.receipts {
            let bytes = base64(&row.receipt, path, "a receipt")?;
            let receipt = audit.push(&bytes).map_err(broken)?;
            receipt.events.map_or(Ok(()), |named| events.expect(named)).map_err(unfit)?;
            total += 1;
            reached |= known == Some(audit.head());
            output.detail(format_args!(
                "{} {} version {}",
                receipt.seq, receipt.key_id, receipt.key_version
            ));
        }
    }
    let end = audit.head();
    if let (Some(known), false) = (known, reached) {
        return Err(broken(ReceiptError::Head { expected: known.seq, found: end.seq }));
    }
    if let Some(path) = &args.events {
        for row in json::<api::Events>(path)?.events {
            let api::Event { seq, time, who, role, action, what, digest } = &row;
            let event = Event { seq: *seq, time: *time, who, role, action, what };
            // Events of version 0.1 have none.
            let digest = match digest.as_str() {
                "" => Vec::new(),
                digest => hex::decode_array::<32>(digest, "digest of an event")?.to_vec(),
            };
            events.push(&event, &digest).map_err(unfit)?;
        }
        events.finish().map_err(unfit)?;
    }
    let found = args.events.as_ref().map(|_| events.head().0);
    let end = format!("{}:{}", end.seq, hex::encode(&end.digest));
    output.line(format_args!(
        "{} {} of tenant {tenant}, head {end}",
        output.good("holds"),
        count(total, "receipt")
    ))?;
    if let Some(found) = found {
        output.line(format_args!(
            "{} {}, of which receipts name those up to number {}",
            output.good("holds"),
            count(found, "event"),
            events.named()
        ))?;
    }
    if known.is_none() {
        output.note(
            "without --head a truncation goes undetected: keep the head that each release returns",
        );
    }
    output.document(&Document {
        tenant: tenant.clone(),
        receipts: total,
        events: found,
        head: end,
        holds: true,
    })?;
    Ok(Exit::Done)
}

fn text_of(page: &impl Serialize) -> Result<String, CliError> {
    serde_json::to_string(page).map_err(|e| CliError::internal(e.to_string()))
}

fn json<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, CliError> {
    serde_json::from_str(&text(path)?)
        .map_err(|e| CliError::new("SHEF-CLI-016", format!("{}: {e}", path.display())))
}

fn base64(given: &str, path: &Path, what: &str) -> Result<Vec<u8>, CliError> {
    let bad = |e| {
        CliError::new(
            "SHEF-CLI-016",
            format!("{}: {what} is no base64url without padding: {e}", path.display()),
        )
    };
    URL_SAFE_NO_PAD.decode(given).map_err(bad)
}

fn keys(path: &Path) -> Result<Vec<PublicKey>, CliError> {
    let wrong = |what: String| CliError::new("SHEF-CLI-016", format!("{}: {what}", path.display()));
    shef::service::keys_from_jwks(text(path)?.as_bytes()).map_err(wrong)
}

fn head(given: &str, flag: &str) -> Result<Head, CliError> {
    let wrong = || {
        CliError::new(
            "SHEF-CLI-001",
            format!("{flag} is {given:?}, expected SEQ:DIGEST, as 12:9f86..."),
        )
    };
    let (seq, digest) = given.split_once(':').ok_or_else(wrong)?;
    Ok(Head { seq: seq.parse().map_err(|_| wrong())?, digest: hex::decode_array(digest, flag)? })
}
