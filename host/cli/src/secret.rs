//! `shef image secret`: the device secret of an image that a cloud provider loads.

use std::path::{Path, PathBuf};

use serde::Serialize;
use shef::proto::cert::ueid_of;
use shef::proto::evidence::RootOfTrust;
use shef::proto::hpke_suite::PublicKey;
use shef::verify::TrustAnchor;
use shef::{KeyFolder, Manufacturer, SdkError, SystemEntropy};
use shef_console::file::Outputs;
use shef_console::{CliError, Exit, Output, hex};
use shef_gen::secret::{SECRET_PACKAGE, secret_package};
use shef_kernel::device_id_key;

use crate::verify::{key_folder, now};

/// Folder of the CA below the vendor's: the CA certifies no other kind of device.
const CA: &str = "image-ca";
/// Name of the DeviceID certificate's file.
pub const CERTIFICATE: &str = "device-id.der";
/// Name of the trust anchor's file.
pub const ANCHOR: &str = "anchor.toml";

/// Flags of `shef image secret`.
#[derive(clap::Args)]
#[command(
    after_help = "All cards that run the image share its secret. The shell takes uds_i of shef_system from the package. \
                        Never commit it, build encrypted artefacts only, and delete it after the build."
)]
pub struct SecretArgs {
    /// The vendor's key folder; a CA for images is created in it if it is missing
    #[arg(long, value_name = "DIR")]
    vendor: PathBuf,
    /// Name of the vendor, in the anchor and in a newly created CA
    #[arg(long, value_name = "TEXT", default_value = "image-vendor")]
    name: String,
    /// Folder for the package with the secret, the DeviceID certificate and the trust anchor;
    /// outside any git work tree
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

#[derive(Serialize)]
struct Document {
    secret: String,
    certificate: String,
    anchor: String,
    device_id: String,
    ueid: String,
}

/// The files of an image's secret, and its identity.
pub struct Drawn {
    /// Package with the secret.
    pub package: PathBuf,
    /// DeviceID certificate.
    pub certificate: PathBuf,
    /// Trust anchor.
    pub anchor: PathBuf,
    /// Public key of the device.
    pub device_id: PublicKey,
    /// Name of the device.
    pub ueid: String,
}

/// Draws the secret of an image of the vendor with this key folder, and writes its files to `out`.
///
/// # Errors
/// The folder is in a git work tree, or files are there already; errors of the folders.
pub fn draw(output: &Output, vendor: &Path, name: &str, out: &Path) -> Result<Drawn, CliError> {
    let out = KeyFolder::open(out)?;
    outside_of_git(out.path())?;
    // The certificate of an image is needed as long as the image, its package only for the build.
    let package = format!("{SECRET_PACKAGE}.sv");
    if let Some(name) = [&package, CERTIFICATE, ANCHOR].into_iter().find(|name| out.has(name)) {
        let reason = "it is there, and the files of an image are never replaced: give another folder with --out".to_owned();
        return Err(SdkError::KeyFile { path: out.path().join(name), reason }.into());
    }
    let mut entropy = SystemEntropy::new()?;
    let vendor = key_folder(output, vendor)?;
    let maker = Manufacturer::open(
        KeyFolder::open(vendor.path().join(CA))?,
        name,
        now(None),
        &mut entropy,
    )?;

    let anchor = TrustAnchor::new(name, RootOfTrust::Provider, false, maker.root().der())
        .map_err(SdkError::from)?;
    // If two processes draw at once, only one proceeds: none of these files may exist.
    let mut outputs = Outputs::new(maker.folder().map(KeyFolder::path))?;
    let at = |name: &str| out.path().join(name);
    let slots = [
        outputs.new_secret(&at(&package))?,
        outputs.new_file(&at(CERTIFICATE))?,
        outputs.new_file(&at(ANCHOR))?,
    ];
    let device_id = {
        let uds = maker.device_secret(&mut entropy);
        outputs.fill(slots[0], &*secret_package(&uds))?;
        device_id_key(&uds, RootOfTrust::Provider, false).public_key()
    };
    outputs.fill(slots[1], maker.certify(&device_id, now(None)))?;
    outputs.fill(slots[2], anchor.to_toml())?;
    outputs.place()?;
    Ok(Drawn {
        package: at(&package),
        certificate: at(CERTIFICATE),
        anchor: at(ANCHOR),
        ueid: hex::encode(&ueid_of(&device_id)),
        device_id,
    })
}

pub fn run(output: &Output, args: &SecretArgs) -> Result<Exit, CliError> {
    let drawn = draw(output, &args.vendor, &args.name, &args.out)?;
    let document = Document {
        secret: drawn.package.display().to_string(),
        certificate: drawn.certificate.display().to_string(),
        anchor: drawn.anchor.display().to_string(),
        device_id: hex::encode(drawn.device_id.as_bytes()),
        ueid: drawn.ueid,
    };
    output.line(format_args!("secret          {} (never commit it)", document.secret))?;
    output.line(format_args!("certificate     {}", document.certificate))?;
    output.line(format_args!("anchor          {} (kind provider)", document.anchor))?;
    output.line(format_args!("DeviceID        {}", document.device_id))?;
    output.line(format_args!("ueid            {}", document.ueid))?;
    output.document(&document)?;
    Ok(Exit::Done)
}

/// Refuses a folder in a git work tree. The folder exists, so links and `..` are resolved.
fn outside_of_git(folder: &Path) -> Result<(), CliError> {
    let real = std::fs::canonicalize(folder).map_err(|e| CliError::write_file(folder, &e))?;
    match real.ancestors().find(|there| there.join(".git").symlink_metadata().is_ok()) {
        None => Ok(()),
        Some(tree) => Err(CliError::new(
            "SHEF-CLI-025",
            format!(
                "{} is in the git work tree {}, expected a folder outside of it",
                folder.display(),
                tree.display()
            ),
        )),
    }
}
