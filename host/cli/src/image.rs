//! `shef image build|secret|inspect|verify`.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;
use shef::{IpVendor, KeyFolder, SdkError, SystemEntropy};
use shef_proto::config::Config;
use shef_proto::evidence::AcceptedEntropy;
use shef_proto::hpke_suite::PublicKey;
use shef_proto::image::{Container, Description, Header, ImageKey};
use shef_verify::corim::CorimSigner;

use crate::project;
use crate::verify::{key_folder, read, text};
use shef_console::CliError;
use shef_console::Exit;
use shef_console::Output;
use shef_console::file::Outputs;
use shef_console::hex;
use shef_console::output::count;

/// Maximum size of a container.
pub const MAX_CONTAINER: u64 = 1 << 30;

/// Flags of `shef image build`. Of what is signed, the design, the program, the accelerator, the device
/// type and the security version have no default. Three values have one, which weakens nothing:
///
/// - `--chunk-size` divides the plaintext. The header lists each chunk, whatever its size.
/// - `--min-kernel-svn 1` admits every kernel. The kernel itself checks this number, so no vendor may
///   rely on it against an old kernel: the policy under which the image key is released decides that
///   (`min_kernel_svn` in [`Policy`](shef::verifier::Policy)).
/// - `--entropy tested` is the strict one of its two values.
#[derive(clap::Args)]
#[command(
    after_help = "The design is --project DIR, --simulated-card, or all of --config, --payload, --design, --accelerator and --target."
)]
pub struct BuildArgs {
    /// Folder of a project, for a simulated card
    #[arg(long, value_name = "DIR", conflicts_with_all = ["simulated_card", "config", "payload", "design", "accelerator", "target"])]
    project: Option<PathBuf>,
    /// The design of a simulated card without a project
    #[arg(long, conflicts_with_all = ["config", "payload", "design", "accelerator", "target"])]
    simulated_card: bool,
    /// The Shield's configuration (shield.toml)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The program that the kernel loads into the fabric
    #[arg(long, value_name = "FILE")]
    payload: Option<PathBuf>,
    /// Digest of the design in hexadecimal
    #[arg(long, value_name = "HEX")]
    design: Option<String>,
    /// Name of the accelerator
    #[arg(long)]
    accelerator: Option<String>,
    /// Device type
    #[arg(long)]
    target: Option<String>,
    /// Security version of the image
    #[arg(long, value_name = "N")]
    svn: u64,
    /// Minimum security version of the kernel that may load it
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_kernel_svn: u64,
    /// Weakest noise source from which the kernel may make a seed: tested, or unmeasured for one whose
    /// min-entropy was never measured too
    #[arg(long, value_name = "SOURCE", default_value = "tested", value_parser = accepted_entropy)]
    entropy: AcceptedEntropy,
    /// Plaintext bytes per chunk
    #[arg(long, value_name = "N", default_value_t = 4096)]
    chunk_size: usize,
    /// The vendor's key folder; a signing key is created if the folder has no key
    #[arg(long, value_name = "DIR")]
    vendor: PathBuf,
    /// Output file for the container; its reference values go beside it, as signed NAME.corim with
    /// NAME.signers.toml for the verifier. NAME is FILE without a final .shef
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

fn accepted_entropy(name: &str) -> Result<AcceptedEntropy, String> {
    AcceptedEntropy::from_name(name).ok_or_else(|| "expected tested or unmeasured".to_owned())
}

#[derive(Subcommand)]
pub enum ImageCommand {
    /// Seal and sign an image; its key stays in the vendor's folder
    Build(BuildArgs),
    /// Draw and certify the device secret of an image that a cloud provider loads
    Secret(crate::secret::SecretArgs),
    /// Print the header of a container, without verifying it
    Inspect {
        /// The container
        file: PathBuf,
    },
    /// Verify the vendor's signature, and with the image key also every chunk
    Verify {
        /// The container
        file: PathBuf,
        /// The vendor's public key: 65 bytes in hexadecimal, or @FILE
        #[arg(long, value_name = "HEX")]
        vendor_key: String,
        /// File with the image key, to open the chunks and compute the image digest
        #[arg(long, value_name = "FILE")]
        image_key: Option<PathBuf>,
    },
}

#[derive(Serialize)]
struct Region {
    name: String,
    mode: &'static str,
    base: u64,
    size: u64,
    chunk: u32,
    key_bits: u16,
}

#[derive(Serialize)]
struct Document {
    signature: &'static str,
    image_digest: Option<String>,
    target: String,
    accelerator: String,
    svn: u64,
    min_kernel_svn: u64,
    entropy: &'static str,
    container_id: String,
    header_digest: String,
    config_digest: String,
    design_digest: String,
    chunks: usize,
    plaintext_bytes: usize,
    on_fault: &'static str,
    regions: Vec<Region>,
}

impl Document {
    fn new(header: &Header, signature: &'static str, image_digest: Option<[u8; 32]>) -> Self {
        let d = header.description();
        Self {
            signature,
            image_digest: image_digest.map(|digest| hex::encode(&digest)),
            target: d.target.clone(),
            accelerator: d.accelerator.clone(),
            svn: d.svn,
            min_kernel_svn: d.min_kernel_svn,
            entropy: d.entropy.name(),
            container_id: hex::encode(header.container_id()),
            header_digest: hex::encode(&header.digest()),
            config_digest: hex::encode(&d.config.digest()),
            design_digest: hex::encode(&d.design_digest),
            chunks: header.chunks(),
            plaintext_bytes: header.plaintext_len(),
            on_fault: d.config.on_fault().name(),
            regions: d
                .config
                .regions()
                .iter()
                .map(|r| Region {
                    name: r.name.clone(),
                    mode: r.mode.name(),
                    base: r.base,
                    size: r.size,
                    chunk: r.chunk,
                    key_bits: r.key_bits,
                })
                .collect(),
        }
    }

    fn print(&self, output: &Output) -> Result<(), CliError> {
        output.line(format_args!("signature       {}", self.signature))?;
        if let Some(digest) = &self.image_digest {
            output.line(format_args!("image digest    {digest}"))?;
        }
        output.line(format_args!("target          {}", self.target))?;
        output.line(format_args!("accelerator     {}", self.accelerator))?;
        output.line(format_args!(
            "SVN             {} (kernel at least {})",
            self.svn, self.min_kernel_svn
        ))?;
        output.line(format_args!("entropy         {}", self.entropy))?;
        output.line(format_args!("container       {}", self.container_id))?;
        output.line(format_args!("config digest   {}", self.config_digest))?;
        output.line(format_args!("design digest   {}", self.design_digest))?;
        output.line(format_args!(
            "plaintext       {} bytes in {}",
            self.plaintext_bytes,
            count(self.chunks, "chunk")
        ))?;
        output.line(format_args!("on fault        {}", self.on_fault))?;
        for r in &self.regions {
            output.line(format_args!(
                "region          {:<10} {:<7} {:#012x} {:#x} bytes, chunks of {}, AES-{}",
                r.name, r.mode, r.base, r.size, r.chunk, r.key_bits
            ))?;
        }
        output.document(self)
    }
}

pub fn run(output: &Output, command: &ImageCommand) -> Result<Exit, CliError> {
    match command {
        ImageCommand::Build(args) => build(output, args),
        ImageCommand::Secret(args) => crate::secret::run(output, args),
        ImageCommand::Inspect { file } => {
            let container = container(file)?;
            Document::new(container.header(), "not verified", None).print(output)?;
            Ok(Exit::Done)
        }
        ImageCommand::Verify { file, vendor_key, image_key } => {
            let key = match vendor_key.strip_prefix('@') {
                Some(path) => text(path.as_ref())?,
                None => vendor_key.clone(),
            };
            let key = PublicKey::from_bytes(&hex::decode(&key, "the vendor's key")?)
                .map_err(|e| CliError::new(e.code(), format!("the vendor's key: {e}")))?;
            let container = container(file)?;
            let checked = match image_key {
                None => container.header().verify(&key).map(|()| None),
                Some(path) => {
                    let folder = KeyFolder::existing(
                        path.parent()
                            .filter(|p| !p.as_os_str().is_empty())
                            .unwrap_or(std::path::Path::new(".")),
                    )?;
                    let name = path
                        .file_name()
                        .map(|n| n.to_string_lossy().into_owned())
                        .unwrap_or_default();
                    let secret = folder.secret32(&name)?;
                    container
                        .open(&key, ImageKey::from_bytes(&secret))
                        .map(|(digest, _)| Some(digest))
                }
            };
            match checked {
                Ok(digest) => {
                    Document::new(container.header(), "verified", digest).print(output)?;
                    Ok(Exit::Done)
                }
                Err(error) => {
                    Err(CliError::new(error.code(), format!("{}: {error}", file.display())))
                }
            }
        }
    }
}

fn container(file: &std::path::Path) -> Result<Container, CliError> {
    Container::parse(&read(file, MAX_CONTAINER)?)
        .map_err(|e| CliError::new(e.code(), format!("{}: {e}", file.display())))
}

/// The design in an image.
struct Design {
    config: Config,
    payload: Vec<u8>,
    digest: [u8; 32],
    accelerator: String,
    target: String,
}

impl BuildArgs {
    /// The design of a project, or of a simulated card without one.
    fn simulated(&self) -> Result<Option<Design>, CliError> {
        let design = match &self.project {
            Some(project) => project::design(project)?,
            None if self.simulated_card => {
                shef_project::Design::digits().map_err(project::failed)?
            }
            None => return Ok(None),
        };
        Ok(Some(Design {
            config: design.config().clone(),
            payload: design.program().map_err(project::failed)?,
            digest: design.digest(),
            accelerator: design.name().to_owned(),
            target: shef_project::TARGET.to_owned(),
        }))
    }

    fn given(&self, output: &Output) -> Result<Design, CliError> {
        let (Some(path), Some(payload), Some(digest), Some(accelerator), Some(target)) =
            (&self.config, &self.payload, &self.design, &self.accelerator, &self.target)
        else {
            let flags = [
                ("--config FILE", self.config.is_some()),
                ("--payload FILE", self.payload.is_some()),
                ("--design HEX", self.design.is_some()),
                ("--accelerator NAME", self.accelerator.is_some()),
                ("--target TARGET", self.target.is_some()),
            ];
            let missing: Vec<&str> =
                flags.iter().filter(|(_, given)| !given).map(|(flag, _)| *flag).collect();
            let other = "; or --project DIR or --simulated-card alone";
            return Err(CliError::new(
                "SHEF-CLI-001",
                format!("an image names its whole design: expected {}{other}", missing.join(", ")),
            ));
        };
        let shield = shef_gen::shield::parse(&text(path)?)
            .map_err(|e| CliError::new(e.code(), format!("{}:{e}", path.display())))?;
        for warning in &shield.warnings {
            output.warn(format_args!("{}:{warning}", path.display()));
        }
        Ok(Design {
            config: shield.config,
            digest: hex::decode_array::<32>(digest, "the design digest")?,
            payload: read(payload, MAX_CONTAINER)?,
            accelerator: accelerator.clone(),
            target: target.clone(),
        })
    }
}

/// The name of a file beside an image: `digits` plus `end` for `digits.shef`, the whole name plus
/// `end` for any other. No two images share one.
pub fn beside(image: &Path, end: &str) -> PathBuf {
    let mut name = image.file_name().unwrap_or_default().to_owned();
    if image.extension().is_some_and(|x| x == "shef") {
        name = image.file_stem().unwrap_or_default().to_owned();
    }
    name.push(end);
    image.with_file_name(name)
}

fn build(output: &Output, args: &BuildArgs) -> Result<Exit, CliError> {
    let design = match args.simulated()? {
        Some(design) => design,
        None => args.given(output)?,
    };
    let mut entropy = SystemEntropy::new()?;
    let folder = key_folder(output, &args.vendor)?;
    let mut outputs = Outputs::new([folder.path()])?;
    let [corim, signers] = [".corim", ".signers.toml"].map(|end| beside(&args.out, end));
    let slots = [outputs.file(&args.out)?, outputs.file(&corim)?, outputs.file(&signers)?];
    let vendor = IpVendor::open(folder, "vendor", &mut entropy)?;
    let description = Description {
        target: design.target,
        accelerator: design.accelerator,
        svn: args.svn,
        min_kernel_svn: args.min_kernel_svn,
        config: design.config,
        design_digest: design.digest,
        chunk_size: args.chunk_size,
        entropy: args.entropy,
    };
    let image = vendor.build(&description, &design.payload, &mut entropy)?;
    let name = format!("{} {}", description.accelerator, args.svn);
    let signer = CorimSigner::vendor("vendor", vendor.public_key());
    outputs.fill(slots[0], &image.container)?;
    outputs.fill(slots[1], vendor.corim(&image, &name)?)?;
    outputs.fill(slots[2], signer.to_toml())?;
    outputs.place()?;
    let container = Container::parse(&image.container).map_err(SdkError::from)?;
    output.line(format_args!(
        "reference       {} (signed), {}",
        corim.display(),
        signers.display()
    ))?;
    Document::new(container.header(), "verified", Some(image.digest)).print(output)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Build {
        #[command(flatten)]
        _args: BuildArgs,
    }

    /// What the documentation of [`BuildArgs`] says.
    #[test]
    fn three_signed_values_have_a_default() {
        let command = Build::command();
        let named = |wanted: fn(&clap::Arg) -> bool| -> Vec<_> {
            command.get_arguments().filter(|arg| wanted(arg)).map(clap::Arg::get_id).collect()
        };
        let defaults = named(|arg| !arg.get_default_values().is_empty());
        assert_eq!(defaults, ["min_kernel_svn", "entropy", "chunk_size"]);
        assert_eq!(named(clap::Arg::is_required_set), ["svn", "vendor", "out"]);
    }
}
