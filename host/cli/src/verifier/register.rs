//! `shef verifier register`: gives a verifier service the trust data in files.

use std::path::{Path, PathBuf};

use serde::Serialize;
use shef::Service;
use shef_console::{CliError, Exit, Output, file};
use shef_flags::ServiceArgs;
use shef_verify::corim::{self, CorimSigner, MAX_CORIM};
use shef_verify::{AppraisalPolicy, Policy, PolicyError, ReferenceValues, TrustAnchor};

use crate::image::beside;
use crate::verify::text;

/// Flags of `shef verifier register`.
#[derive(clap::Args)]
pub struct RegisterArgs {
    /// Folder with anchors.toml, reference.toml and policy.toml, as `shef sim trust` writes it; trust
    /// anchors, as in anchor.toml of `shef image secret`; or an image, whose signer and reference
    /// values `shef image build` wrote beside it
    #[arg(value_name = "FOLDER|ANCHORS.toml|IMAGE", required = true)]
    from: Vec<PathBuf>,
    /// Name of a folder's policy at the service
    #[arg(long, value_name = "NAME", default_value = "default")]
    policy: String,
    /// The verifier service
    #[command(flatten)]
    service: ServiceArgs,
}

/// A registration, checked as far as it can be without the service.
enum Registration {
    Anchor(TrustAnchor),
    Reference { id: String, values: ReferenceValues },
    Policy { name: String, policy: Policy },
    Signer { name: String, text: String },
    Corim { id: String, bytes: Vec<u8> },
}

#[derive(Serialize)]
struct Registered {
    kind: &'static str,
    name: String,
}

#[derive(Serialize)]
struct Document {
    url: String,
    registered: Vec<Registered>,
}

/// The name of a folder or image. The service's names are in lower case.
fn stem(path: &Path) -> Result<String, CliError> {
    let full = path.canonicalize().map_err(|e| CliError::read_file(path, &e))?;
    let name = if full.is_dir() { full.file_name() } else { full.file_stem() };
    Ok(name.unwrap_or_default().to_string_lossy().to_lowercase())
}

fn named(path: &Path) -> impl Fn(PolicyError) -> CliError + '_ {
    move |e| CliError::new(e.code(), format!("{}: {e}", path.display()))
}

fn of_anchors(path: &Path) -> Result<Vec<Registration>, CliError> {
    let list = TrustAnchor::list_from_toml(&text(path)?).map_err(named(path))?;
    Ok(list.into_iter().map(Registration::Anchor).collect())
}

fn of_folder(folder: &Path, policy: &str) -> Result<Vec<Registration>, CliError> {
    let [anchors, reference, typed] =
        ["anchors.toml", "reference.toml", "policy.toml"].map(|name| folder.join(name));
    let mut all = of_anchors(&anchors)?;
    let values = ReferenceValues::from_toml(&text(&reference)?).map_err(named(&reference))?;
    let typed_text = text(&typed)?;
    AppraisalPolicy::from_toml(&typed_text).map_err(named(&typed))?;
    let parsed = Policy::from_toml(&typed_text).map_err(named(&typed))?;
    all.push(Registration::Reference { id: stem(folder)?, values });
    all.push(Registration::Policy { name: policy.to_owned(), policy: parsed });
    Ok(all)
}

fn of_image(image: &Path) -> Result<Vec<Registration>, CliError> {
    let [reference, signers] = [".corim", ".signers.toml"].map(|end| beside(image, end));
    let bytes = file::read(&reference, MAX_CORIM as u64)?;
    corim::names(&bytes)
        .map_err(|e| CliError::new(e.code(), format!("{}: {e}", reference.display())))?;
    let signer = text(&signers)?;
    let list = CorimSigner::list_from_toml(&signer).map_err(named(&signers))?;
    let [one] = list.as_slice() else {
        return Err(CliError::new(
            "SHEF-CLI-016",
            format!("{}: expected one signer, found {}", signers.display(), list.len()),
        ));
    };
    let name = one.name().to_owned();
    // The signer first: the service accepts no reference values of an unknown one.
    Ok(vec![
        Registration::Signer { name, text: signer },
        Registration::Corim { id: stem(image)?, bytes },
    ])
}

fn send(service: &Service, what: &Registration) -> Result<Registered, CliError> {
    let (kind, name) = match what {
        Registration::Anchor(anchor) => {
            service.add_anchor(anchor)?;
            ("trust anchor", anchor.name().to_owned())
        }
        Registration::Reference { id, values } => {
            service.add_reference(id, values)?;
            ("reference values", id.clone())
        }
        Registration::Policy { name, policy } => ("policy", service.add_policy(name, policy)?),
        Registration::Signer { name, text } => {
            service.add_signer(name, text)?;
            ("signer", name.clone())
        }
        Registration::Corim { id, bytes } => {
            service.add_corim(id, bytes)?;
            ("reference values", id.clone())
        }
    };
    Ok(Registered { kind, name })
}

/// Runs `shef verifier register`. Every file is read and parsed before anything is sent; repeating a
/// registration changes nothing.
///
/// # Errors
/// Bad files, transport errors, and the service's refusals: registrations before it stay, and are
/// printed.
pub fn run(output: &Output, args: &RegisterArgs) -> Result<Exit, CliError> {
    let mut all = Vec::new();
    for path in &args.from {
        all.extend(if path.is_dir() {
            of_folder(path, &args.policy)?
        } else if path.extension().is_some_and(|end| end == "toml") {
            of_anchors(path)?
        } else {
            of_image(path)?
        });
    }
    let service = args.service.open()?;
    let mut document = Document { url: service.url().to_owned(), registered: Vec::new() };
    for registration in &all {
        let done = send(&service, registration)?;
        output.line(format_args!("registered      {} {}", done.kind, done.name))?;
        document.registered.push(done);
    }
    output.document(&document)?;
    Ok(Exit::Done)
}
