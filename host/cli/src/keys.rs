//! `shef keys`: the keys of a verifier service, and their release.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;
use shef::service::{KeyMaterial, NewKey, Released, api};
use shef::{IpVendor, KeyFolder, Service, SystemEntropy};
use shef_proto::evidence::Layer;
use shef_proto::image::{Container, ImageKey};
use zeroize::Zeroizing;

use crate::attest::{ImageArgs, LayerArg, open, outputs_with};
use crate::image::MAX_CONTAINER;
use crate::verify::{read, read_secret};
use shef_console::CliError;
use shef_console::Exit;
use shef_console::Output;
use shef_console::file::{Outputs, Slot};
use shef_console::hex;
use shef_flags::ServiceArgs;
use shef_flags::TlsArgs;

/// The material of a key, and the conditions of its release.
#[derive(clap::Args)]
struct VersionArgs {
    /// Policy for its release, `name` or `name@version`; fixed for this version of the key
    #[arg(long, value_name = "POLICY")]
    policy: String,
    /// The key of this image container (layer kernel); the key file and the signing key are in
    /// --vendor
    #[arg(long, value_name = "FILE", requires = "vendor", conflicts_with_all = ["secret", "generate"])]
    image: Option<PathBuf>,
    /// The vendor's key folder, as for `shef image build`
    #[arg(long, value_name = "DIR", requires = "image")]
    vendor: Option<PathBuf>,
    /// Minimum SVN that may be loaded with the image key; defaults to the image's
    #[arg(long, value_name = "N", requires = "image")]
    min_svn: Option<u64>,
    /// The content of this file, 1 to 512 bytes (layer shield)
    #[arg(long, value_name = "FILE", conflicts_with = "generate")]
    secret: Option<PathBuf>,
    /// Random bytes drawn by the service, 16 to 64 (layer shield); 32 make a master key for a Load
    /// Key
    #[arg(long, value_name = "BYTES")]
    generate: Option<usize>,
    /// Maximum number of releases; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    max_releases: u32,
    /// Start of validity, in seconds since 1970
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    not_before: i64,
    /// End of validity, in seconds since 1970; 0 for no end
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    not_after: i64,
}

/// Subcommands.
#[derive(Subcommand)]
enum Action {
    /// List the keys, without their secrets
    List,
    /// Show a key with its versions
    Show {
        /// Name of the key
        name: String,
    },
    /// Add a key: of an image, for kernels, or a secret for the owners of Shields
    Add {
        /// Name of the key
        name: String,
        #[command(flatten)]
        version: VersionArgs,
    },
    /// Add the next version of a key; earlier ones stay until they are disabled
    Rotate {
        /// Name of the key
        name: String,
        #[command(flatten)]
        version: VersionArgs,
    },
    /// Stop releasing a key, or one version of it; boxes already released are not returned again
    Disable {
        /// Name of the key
        name: String,
        /// Only this version
        #[arg(long, value_name = "N")]
        version: Option<u64>,
    },
    /// Resume its release
    Enable {
        /// Name of the key
        name: String,
        /// Only this version
        #[arg(long, value_name = "N")]
        version: Option<u64>,
    },
    /// Delete a key and its secrets, or an older version; its receipts stay
    Delete {
        /// Name of the key
        name: String,
        /// Only this version, which is not the newest
        #[arg(long, value_name = "N")]
        version: Option<u64>,
    },
    /// Request evidence from a device and the release of a key for it
    Release {
        /// Name of the key
        name: String,
        /// Device URI
        device: String,
        /// Layer of the key
        #[arg(long, value_enum)]
        layer: LayerArg,
        /// Version; defaults to the newest
        #[arg(long, value_name = "N")]
        version: Option<u64>,
        /// New file for the key: the box (layer kernel), which only that kernel can open, or the
        /// secret itself (layer shield), readable by its owner only
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
        /// New file for the signed receipt
        #[arg(long, value_name = "FILE")]
        receipt: Option<PathBuf>,
        #[command(flatten)]
        image: ImageArgs,
        /// Certificates for an agent
        #[command(flatten)]
        tls: TlsArgs,
    },
}

/// Flags of `shef keys`.
#[derive(clap::Args)]
pub struct KeysArgs {
    #[command(subcommand)]
    action: Action,
    /// The verifier service
    #[command(flatten)]
    service: ServiceArgs,
}

/// The material sent to the service.
enum Material {
    Secret(Zeroizing<Vec<u8>>),
    Generate(usize),
    Image { key: ImageKey, min_svn: u64, vendor: shef_proto::hpke_suite::PublicKey },
}

impl VersionArgs {
    fn material(&self) -> Result<Material, CliError> {
        match (&self.image, &self.vendor, &self.secret, self.generate) {
            (Some(image), Some(vendor), None, None) => {
                let container =
                    Container::parse(&read(image, MAX_CONTAINER)?).map_err(shef::SdkError::from)?;
                let vendor = IpVendor::existing(KeyFolder::existing(vendor)?, "vendor")?;
                let key = vendor.key_of(&container)?;
                // Key, signature and container must belong together, or kernels would refuse the
                // released key.
                container
                    .open(&vendor.public_key(), vendor.key_of(&container)?)
                    .map_err(shef::SdkError::from)?;
                let min_svn = self.min_svn.unwrap_or(container.header().description().svn);
                Ok(Material::Image { key, min_svn, vendor: vendor.public_key() })
            }
            (None, None, Some(path), None) => Ok(Material::Secret(read_secret(path, 512)?)),
            (None, None, None, Some(len)) => Ok(Material::Generate(len)),
            _ => Err(CliError::new(
                "SHEF-CLI-001",
                "expected one of --image with --vendor, --secret, --generate",
            )),
        }
    }

    fn send(
        &self,
        action: impl FnOnce(Layer, &NewKey<'_>) -> Result<api::AddedKey, shef::SdkError>,
    ) -> Result<api::AddedKey, CliError> {
        let material = self.material()?;
        let (layer, material) = match &material {
            Material::Secret(bytes) => (Layer::Shield, KeyMaterial::Secret(bytes)),
            Material::Generate(len) => (Layer::Shield, KeyMaterial::Generate(*len)),
            Material::Image { key, min_svn, vendor } => {
                (Layer::Kernel, KeyMaterial::Image { key, min_svn: *min_svn, vendor })
            }
        };
        let Self { max_releases, not_before, not_after, .. } = *self;
        Ok(action(
            layer,
            &NewKey { policy: &self.policy, material, max_releases, not_before, not_after },
        )?)
    }
}

#[derive(Serialize)]
struct ReleasedDocument<'a> {
    key: &'a str,
    version: u64,
    layer: &'static str,
    out: shef_console::file::PathText,
    head: String,
    expires: i64,
}

fn line(output: &Output, key: &api::Key) -> Result<(), CliError> {
    let state = match (key.disabled, key.version_disabled) {
        (true, _) => "disabled",
        (false, true) => "enabled, but this version is disabled",
        (false, false) => "enabled",
    };
    output.line(format_args!(
        "{:<32} {:<7} version {:<4} {state}",
        key.name,
        Layer::from(key.layer).name(),
        key.version
    ))
}

#[expect(clippy::too_many_arguments, reason = "what a release is of, and where it goes")]
fn release(
    output: &Output,
    service: &Service,
    name: &str,
    layer: Layer,
    version: Option<u64>,
    host: &mut shef::Host,
    out: &Path,
    (mut outputs, slots): (Outputs, (Slot, Option<Slot>)),
) -> Result<(), CliError> {
    let (bytes, released): (Zeroizing<Vec<u8>>, Released) = match layer {
        Layer::Kernel => {
            let (_, released) = service.release_image_key(host, name, version)?;
            (Zeroizing::new(released.key_box.clone()), released)
        }
        Layer::Shield => {
            let data = service.release_data_key(host, name, version, &mut SystemEntropy::new()?)?;
            (data.secret, data.released)
        }
    };
    outputs.fill(slots.0, &bytes)?;
    if let Some(slot) = slots.1 {
        outputs.fill(slot, &released.receipt)?;
    }
    outputs.place()?;
    let head = format!("{}:{}", released.head.seq, hex::encode(&released.head.digest));
    output.line(format_args!(
        "released {name} version {} into {}",
        released.version,
        out.display()
    ))?;
    output
        .line(format_args!("head of the receipts {head} (keep it: `shef audit verify --head`)"))?;
    output.document(&ReleasedDocument {
        key: name,
        version: released.version,
        layer: layer.name(),
        out: out.into(),
        head,
        expires: released.expires,
    })
}

/// A key, or one version of it, in words.
fn which(name: &str, version: Option<u64>) -> String {
    version.map_or_else(|| name.to_owned(), |version| format!("{name} version {version}"))
}

/// Runs `shef keys`.
///
/// # Errors
/// Service and device errors.
pub fn run(output: &Output, args: &KeysArgs) -> Result<Exit, CliError> {
    let service = args.service.open()?;
    match &args.action {
        Action::List => {
            let keys = service.keys()?;
            keys.iter().try_for_each(|key| line(output, key))?;
            output.document(&keys)?;
        }
        Action::Show { name } => {
            let key = service.key(name)?;
            line(output, &key.key)?;
            for version in &key.versions {
                output.line(format_args!(
                    "  version {:<4} {:<24} released {} of {}, from {} to {}{}",
                    version.version,
                    version.policy,
                    version.released,
                    if version.max_releases == 0 {
                        "any number".to_owned()
                    } else {
                        version.max_releases.to_string()
                    },
                    version.not_before,
                    if version.not_after == 0 {
                        "ever".to_owned()
                    } else {
                        version.not_after.to_string()
                    },
                    if version.disabled { ", disabled" } else { "" },
                ))?;
            }
            output.document(&key)?;
        }
        Action::Add { name, version } => {
            let added = version.send(|layer, key| service.add_key(name, layer, key))?;
            output.line(format_args!(
                "added {name} for the layer {} under {}",
                Layer::from(added.layer).name(),
                added.policy
            ))?;
            output.document(&added)?;
        }
        Action::Rotate { name, version } => {
            let added = version.send(|_, key| service.rotate_key(name, key))?;
            output.line(format_args!(
                "{name} is now at version {} under {}",
                added.version, added.policy
            ))?;
            output.document(&added)?;
        }
        Action::Disable { name, version } | Action::Enable { name, version } => {
            let enabled = matches!(args.action, Action::Enable { .. });
            service.switch_key(name, *version, enabled)?;
            output.line(format_args!(
                "{} is {}",
                which(name, *version),
                if enabled { "enabled" } else { "disabled" }
            ))?;
            // A key and its versions are disabled separately: show what counts now.
            let key = service.key(name)?.key;
            line(output, &key)?;
            output.document(&serde_json::json!({
                "name": name,
                "version": version,
                "disabled": !enabled,
                "key": {"disabled": key.disabled, "version": key.version, "version_disabled": key.version_disabled},
            }))?;
        }
        Action::Delete { name, version } => {
            service.delete_key(name, *version)?;
            output.line(format_args!("deleted {}", which(name, *version)))?;
            output.document(&serde_json::json!({"name": name, "version": version}))?;
        }
        Action::Release { name, device, layer, version, out, receipt, image, tls } => {
            let container = image.read()?;
            tls.files()?;
            // A release counts against the limit: make sure first that its files can be written.
            let mut outputs = outputs_with(device)?;
            let slots = (
                outputs.new_secret(out)?,
                receipt.as_ref().map(|path| outputs.new_file(path)).transpose()?,
            );
            let (_, mut host) = open(output, device, tls)?;
            image.load(container, Some(&service), &mut host)?;
            release(
                output,
                &service,
                name,
                layer.layer(),
                *version,
                &mut host,
                out,
                (outputs, slots),
            )?;
        }
    }
    Ok(Exit::Done)
}
