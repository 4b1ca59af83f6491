//! `shef sim trust`: the trust data that verifiers need to accept a simulated card.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use shef::Source;
use shef_card::SimKernel;
use shef_console::file::{self, Outputs};
use shef_console::{CliError, Output, folder};
use shef_proto::evidence::RootOfTrust;
use shef_verify::{
    KernelReference, Policy, PolicyError, ReferenceValues, ShellReference, TrustAnchor,
};

use crate::makers::{MAKERS, maker};

/// Flags of `shef sim trust`.
#[derive(clap::Args)]
pub struct TrustArgs {
    /// Folder of the manufacturer's keys, as for `shef sim serve`; created if missing
    #[arg(long, value_name = "DIR")]
    manufacturer: PathBuf,
    /// Output folder: new, empty, or created by this command
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Serialize)]
struct Trusted {
    files: Vec<file::PathText>,
    kernel_digest: String,
    native_kernel_digest: String,
    shell_digest: String,
}

/// The trust anchor of a manufacturer of simulated cards.
///
/// # Errors
/// `root` is no certificate.
pub fn anchor(root: &[u8]) -> Result<TrustAnchor, PolicyError> {
    TrustAnchor::new("simulated", RootOfTrust::Simulated, false, root)
}

/// The Security Kernels of simulated cards.
const KERNELS: [(&str, SimKernel); 2] =
    [("security-kernel", SimKernel::Firmware), ("native-security-kernel", SimKernel::Native)];

/// Reference values of all simulated cards: both Security Kernels, and the shell.
pub fn reference() -> ReferenceValues {
    let kernel = |(name, kernel): (&str, _)| KernelReference {
        name: name.to_owned(),
        digest: shef_card::kernel_digest(kernel),
        svn: shef_card::KERNEL_SVN,
    };
    ReferenceValues {
        kernels: KERNELS.map(kernel).into(),
        shells: vec![ShellReference {
            name: "simulation".to_owned(),
            digest: shef_card::shell_digest(),
        }],
        images: Vec::new(),
    }
}

/// The files of `shef sim trust`.
const FILES: [&str; 5] =
    ["root.pem", "anchor.json", "anchors.toml", "reference.toml", "policy.toml"];

/// Runs `shef sim trust`.
pub fn run(output: &Output, args: &TrustArgs) -> Result<(), CliError> {
    folder::is_ours(&args.out, &[], &FILES, |name| FILES.contains(&name))?;
    let mut entropy = Source::new(None, "")?;
    let root = maker(Some(&args.manufacturer), MAKERS[0], &mut entropy)?.root().der().to_vec();
    let (anchor, reference) = (anchor(&root).map_err(shef::SdkError::from)?, reference());
    let hex = shef_console::hex::encode;
    let [kernel_digest, native_kernel_digest] =
        KERNELS.map(|(_, kernel)| hex(&shef_card::kernel_digest(kernel)));
    let policy = Policy::strict("simulated", &[RootOfTrust::Simulated]);
    let body = STANDARD.encode(&root);
    let lines: Vec<&str> = body
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap_or_default())
        .collect();
    let pem =
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"));
    let registration =
        serde_json::json!({"name": "simulated", "kind": "simulated", "certificate": pem});
    std::fs::create_dir_all(&args.out).map_err(|e| CliError::write_file(&args.out, &e))?;
    let texts = [
        pem,
        format!("{registration}\n"),
        anchor.to_toml(),
        reference.to_toml().map_err(shef::SdkError::from)?,
        policy.to_toml().map_err(shef::SdkError::from)?,
    ];
    let keys = MAKERS.map(|(name, _)| args.manufacturer.join(name));
    let mut outputs = Outputs::new(keys[..1].iter().map(PathBuf::as_path))?;
    let mut files = Vec::new();
    for (name, text) in FILES.into_iter().zip(texts) {
        let path = args.out.join(name);
        let slot = outputs.file(&path)?;
        outputs.fill(slot, text)?;
        files.push(path.into());
    }
    outputs.place()?;
    output.line(format_args!(
        "wrote root, reference values and policy of simulated cards to {}",
        args.out.display()
    ))?;
    output.note(
        "a simulated card protects nothing: do not register its root where real keys are released",
    );
    output.document(&Trusted {
        files,
        kernel_digest,
        native_kernel_digest,
        shell_digest: hex(&shef_card::shell_digest()),
    })
}
