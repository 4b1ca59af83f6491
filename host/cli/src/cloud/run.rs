//! `shef cloud run`: a job on a card of this F2 instance, under the policy of a lock file.
//!
//! The slot's word decides nothing: the policy names kernel, shell, device and design of the lock
//! file, and another image has another device secret.

use std::path::{Path, PathBuf};

use shef::{OpenOptions, Uri};
use shef_cloud::lock::Lock;
use shef_cloud::{CloudError, Step, bind, slot};
use shef_console::{CliError, Exit, Output, file, hex};
use shef_device::Iommu;
use shef_device::pci::f2::Medium;
use shef_project::Design;
use shef_proto::evidence::AcceptedEntropy;
use shef_verify::bundle::Bundle;
use shef_verify::corim::MAX_CORIM;
use shef_verify::{KernelReference, Policy, PolicyError, ReferenceValues, ShellReference};

use super::afi::MAX_KERNEL;
use super::print;
use super::slot::SlotArgs;
use crate::project::failed;
use crate::run::{Card, JobArgs, PartyArgs, Work, check, perform};
use crate::verify::text;

/// Flags of `shef cloud run`.
#[derive(clap::Args)]
#[command(
    after_help = "The boot medium is written and the kernel started again after each reset of the card. With --device, a simulated card takes \
                  the place of the slot's: it boots without a medium, and the lock file must name it."
)]
pub struct RunArgs {
    /// Folder of the project
    #[arg(value_name = "DIR", default_value = ".")]
    dir: PathBuf,
    /// Lock file of the image
    #[arg(long, value_name = "FILE")]
    lock: PathBuf,
    /// Trust anchor of the image: anchor.toml of `shef cloud new`
    #[arg(long, value_name = "FILE")]
    anchors: PathBuf,
    /// Folder of the boot medium: kernel.img, kernel.sig, and device-id.der of `shef cloud new`
    #[arg(long, value_name = "DIR", required_unless_present = "device", conflicts_with = "device")]
    boot: Option<PathBuf>,
    /// The vendor's signed reference values, if the image of the accelerator is not built here
    #[arg(long, value_name = "FILE", requires = "signers")]
    corim: Option<PathBuf>,
    /// Permitted signers of them (TOML)
    #[arg(long, value_name = "FILE", requires = "corim")]
    signers: Option<PathBuf>,
    /// Revocation list (TOML)
    #[arg(long, value_name = "FILE")]
    revocations: Option<PathBuf>,
    /// A simulated card in place of the slot's: vfio-user:/SOCKET, sim:rtl?project=DIR
    #[arg(long, value_name = "URI")]
    device: Option<String>,
    #[command(flatten)]
    job: JobArgs,
    /// Number of sessions, one after the other with the loaded image; all results must be equal
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
    /// Seed for the inputs `random:BYTES`
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    parties: PartyArgs,
    #[command(flatten)]
    slot: SlotArgs,
}

fn malformed(file: &Path) -> impl Fn(PolicyError) -> CliError + '_ {
    move |e| CliError::new(e.code(), format!("{}: {e}", file.display()))
}

/// Reads a file, and compares it with its digest in the lock file.
fn locked(
    lock: &Lock,
    path: &Path,
    most: u64,
    what: &'static str,
    digest: &str,
) -> Result<Vec<u8>, CliError> {
    let bytes = file::read(path, most)?;
    lock.holds(path, &bytes, what, digest)?;
    Ok(bytes)
}

/// Policy and reference values of a lock file: this image, and no other.
fn trust(args: &RunArgs, lock: &Lock, design: &Design) -> Result<Bundle, CliError> {
    let digest = |text: &str| hex::decode_array::<32>(text, "a digest of the lock file");
    let locked_text = lock.text()?;
    let id = hex::encode(&shef_proto::crypto::sha256(locked_text.as_bytes()));
    let mut policy = Policy::strict(&format!("lock file {id}"), &[]);
    policy.root_of_trust = vec![lock.root_of_trust.clone()];
    policy.min_kernel_svn = lock.firmware_svn;
    // An unknown name accepts a tested source only.
    policy.entropy = AcceptedEntropy::from_name(&lock.entropy).unwrap_or_default();
    policy.targets = vec![lock.target.clone()];
    policy.shells.insert(lock.shell.clone());
    policy.devices.insert(lock.ueid.clone());
    policy.accelerators.insert(lock.accelerator.clone());
    policy.bypass = design.config().bypass_regions().map(|region| region.name.clone()).collect();
    let reference = ReferenceValues {
        kernels: vec![KernelReference {
            name: "firmware of the lock file".to_owned(),
            digest: digest(&lock.firmware)?,
            svn: lock.firmware_svn,
        }],
        shells: vec![ShellReference {
            name: format!("shell {}", lock.shell_version),
            digest: digest(&lock.shell)?,
        }],
        images: Vec::new(),
    };
    let anchors = locked(lock, &args.anchors, 1 << 20, "the trust anchor", &lock.anchor)?;
    let anchors = String::from_utf8(anchors)
        .map_err(|e| CliError::new("SHEF-CLI-016", format!("{}: {e}", args.anchors.display())))?;
    let mut bundle = Bundle {
        policy: policy.to_toml().map_err(malformed(&args.lock))?,
        anchors,
        reference: reference.to_toml().map_err(malformed(&args.lock))?,
        revocations: args.revocations.as_deref().map(text).transpose()?,
        ..Bundle::default()
    };
    if let (Some(corim), Some(signers)) = (&args.corim, &args.signers) {
        bundle.corims = vec![locked(
            lock,
            corim,
            MAX_CORIM as u64,
            "the vendor's reference values",
            &lock.corim,
        )?];
        bundle.signers = text(signers)?;
    }
    Ok(bundle)
}

/// The folder of the boot medium, as an absolute path, and the words of the medium: its kernel and
/// certificate are those that the lock file names.
fn medium(boot: &Path, lock: &Lock) -> Result<(PathBuf, usize), CliError> {
    let boot = std::path::absolute(boot).map_err(|e| CliError::read_file(boot, &e))?;
    let [kernel, _, certificate] = Medium::FILES.map(|name| boot.join(name));
    locked(lock, &kernel, MAX_KERNEL, "the kernel image", &lock.firmware)?;
    locked(lock, &certificate, 1 << 16, "the certificate", &lock.certificate)?;
    let words = Medium::read(&boot)?.words();
    Ok((boot, words))
}

/// Runs `shef cloud run`.
///
/// # Errors
/// Those of the files, of the slot, of the card, and of the appraisal.
pub fn run(output: &Output, args: &RunArgs) -> Result<Exit, CliError> {
    let lock = Lock::read(&args.lock)?;
    let design = Design::project(&args.dir).map_err(failed)?;
    let found = hex::encode(&design.digest());
    if found != lock.source {
        return Err(CloudError::Locked {
            file: args.dir.clone(),
            what: "the design of the project",
            found,
            expected: lock.source,
        }
        .into());
    }
    let trust = trust(args, &lock, &design)?;
    let given = args.device.as_deref().map(str::parse::<Uri>).transpose()?;
    let medium = args.boot.as_deref().map(|boot| medium(boot, &lock)).transpose()?;
    let work = Work {
        dir: &args.dir,
        job: &args.job,
        sessions: args.sessions,
        seed: args.seed,
        parties: &args.parties,
    };
    if args.slot.programs.dry_run {
        check(&work, &design)?;
        let mut steps = Vec::new();
        if given.is_none() {
            steps.push(slot::describe_plan(args.slot.slot, true)?);
            steps.push(Step::Change(format!(
                "open the card, reset it, write {} words to the boot medium, and start the kernel",
                medium.as_ref().map_or(0, |(_, words)| *words)
            )));
        }
        steps.push(Step::Change(format!(
            "read evidence under the policy of {}: firmware {}, shell {}, design {}, device {}",
            args.lock.display(),
            &lock.firmware[..16],
            &lock.shell[..16],
            &lock.source[..16],
            lock.ueid
        )));
        return print::plan(output, &steps);
    }
    let uri = match given {
        Some(uri) => uri,
        None => {
            let slot = slot::describe(args.slot.slot, true, args.slot.pace().limits)?;
            if slot.image.as_deref() != Some(&*lock.agfi) {
                let image = slot.image.as_deref().unwrap_or("no image");
                output.warn(format!(
                    "slot {} reports {image}, and the lock file has {}: evidence decides",
                    slot.slot, lock.agfi
                ));
            }
            let boot = medium.map(|(boot, _)| boot);
            Uri::Pci { function: bind::function(&slot)?, iommu: Iommu::None, boot }
        }
    };
    let card = Card { uri, target: &lock.target, trust: Some(trust) };
    perform(output, &work, card, |uri, steps| {
        let options = OpenOptions { tls: None, progress: Some(steps.progress()) };
        Ok(shef::open_with(uri, options)?)
    })
}
