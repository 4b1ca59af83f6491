//! `shef cloud afi`: an image at AWS, and its lock file.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use shef_cloud::afi::{self, Order};
use shef_cloud::build::Record;
use shef_cloud::lock::Lock;
use shef_cloud::logic::{self, Folder, Image};
use shef_cloud::tarball::Checked;
use shef_cloud::{CloudError, Step, place};
use shef_console::{CliError, Exit, Output, file, hex, interrupt};
use shef_kernel::KernelImage;
use shef_proto::crypto::sha256;
use shef_proto::evidence::AcceptedEntropy;
use shef_verify::bundle::Bundle;
use shef_verify::corim::MAX_CORIM;
use shef_verify::crypto::portable;

use super::print::{self, ProgramArgs, Watching};
use crate::secret::{ANCHOR, CERTIFICATE};
use crate::verify::{now, text};

/// Longest kernel image.
pub const MAX_KERNEL: u64 = 1 << 20;

/// Flags of `shef cloud afi`.
#[derive(clap::Args)]
#[command(
    override_usage = "shef cloud afi [OPTIONS] --bucket <BUCKET> --kernel <FILE> \\\n         \
                      --corim <FILE> --signers <FILE> --lock <FILE> <NAME>",
    after_help = "The object in S3 holds the secret inside of the checkpoint: it is deleted as soon as the image is available, or failed. \
                  An interrupted call leaves it there: run the same command again. A second call waits for the same image, in the region of the first one. The lock file is written last."
)]
pub struct AfiArgs {
    /// Folder that `shef cloud build` finished
    #[arg(value_name = "NAME")]
    dir: PathBuf,
    /// Private bucket without versioning, in the region
    #[arg(long, value_name = "BUCKET")]
    bucket: String,
    /// AWS region [default: AWS_REGION, else AWS_DEFAULT_REGION]
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Begin of all names in the bucket
    #[arg(long, value_name = "TEXT", default_value = "shef")]
    prefix: String,
    /// Image of the Security Kernel that cards boot with this image
    #[arg(long, value_name = "FILE")]
    kernel: PathBuf,
    /// The vendor's signed reference values, of `shef image build`
    #[arg(long, value_name = "FILE")]
    corim: PathBuf,
    /// Permitted signers of them (TOML)
    #[arg(long, value_name = "FILE")]
    signers: PathBuf,
    /// Output file: the lock file
    #[arg(long, value_name = "FILE")]
    lock: PathBuf,
    /// Longest time to wait for the image
    #[arg(long, value_name = "MINUTES", default_value_t = 360)]
    wait: u64,
    /// Time between two looks at it
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    interval: u64,
    #[command(flatten)]
    programs: ProgramArgs,
}

#[derive(Serialize)]
struct Document<'a> {
    file: String,
    #[serde(flatten)]
    lock: &'a Lock,
}

/// The object and the image that a call without its end leaves at AWS, and the way on.
fn left(tarball: &Checked) -> String {
    let record = afi::Record::of(tarball);
    record.map_or_else(|error| error.to_string(), |record| record.remains())
}

/// As [`left`], after an error: nothing if that is the record's own, or if nothing is left.
fn warn_of_rest(tarball: &Checked) {
    interrupt::silences();
    match afi::Record::of(tarball) {
        Ok(record) if record.is_begun() => shef_console::output::warn(record.remains()),
        _ => {}
    }
}

/// Checks the vendor's reference values: signed, and with an image of this design.
fn vouched(args: &AfiArgs, image: &Image) -> Result<Vec<u8>, CliError> {
    let corim = file::read(&args.corim, MAX_CORIM as u64)?;
    let bundle =
        Bundle { signers: text(&args.signers)?, corims: vec![corim.clone()], ..Bundle::default() };
    let values = bundle
        .reference_values(now(None), None, portable)
        .map_err(|e| CliError::new(e.code(), format!("{}: {e}", args.corim.display())))?;
    let name = |accelerator: &str, design: &str| format!("{accelerator}, design {design}");
    let found = values.images.iter();
    let found: Vec<String> =
        found.map(|known| name(&known.accelerator, &hex::encode(&known.design_digest))).collect();
    let expected = name(&image.accelerator, &image.design);
    if found.contains(&expected) {
        return Ok(corim);
    }
    let (file, found) = (args.corim.clone(), found.join("; "));
    let found = if found.is_empty() { "no image".to_owned() } else { found };
    Err(CloudError::NotSigned { file, found, expected }.into())
}

/// Runs `shef cloud afi`.
///
/// # Errors
/// Those of the files, of AWS's programs, and of AWS.
pub fn run(output: &Output, args: &AfiArgs) -> Result<Exit, CliError> {
    interrupt::cleans_up()?;
    let region = print::region(args.region.as_deref())
        .ok_or_else(|| CliError::new("SHEF-CLI-001", "expected --region, or AWS_REGION"))?;
    let prefix = args.prefix.trim_end_matches('/');
    Order::names(&region, &args.bucket, prefix)?;
    let beside = shef_files::folder(&args.lock);
    if !beside.is_dir() || args.lock.is_dir() {
        let missing = std::io::Error::from(std::io::ErrorKind::NotADirectory);
        return Err(CliError::write_file(&args.lock, &missing));
    }
    // Nothing but an earlier lock file is replaced: all inputs have names, too.
    if args.lock.exists() && Lock::read(&args.lock).is_err() {
        let text = format!(
            "the output {} exists and is no lock file: give another name, or remove it first",
            args.lock.display()
        );
        return Err(CliError::new("SHEF-CLI-026", text));
    }
    // A dry run changes nothing: it does not take the folder.
    let (_folder, image) = if args.programs.dry_run {
        let image = logic::read(&args.dir)?;
        place::private(&args.dir)?;
        (None, image)
    } else {
        let (folder, image) = Folder::open(&args.dir)?;
        (Some(folder), image)
    };
    let tarball = Record::result(&args.dir, &image)?;
    let corim = vouched(args, &image)?;
    let kernel = file::read(&args.kernel, MAX_KERNEL)?;
    let parsed = KernelImage::parse(&kernel)
        .map_err(|e| CliError::new(e.code(), format!("{}: {e}", args.kernel.display())))?;
    let of = |name: &str| -> Result<String, CliError> {
        Ok(hex::encode(&sha256(&file::read(&args.dir.join(name), 1 << 16)?)))
    };
    let (certificate, anchor) = (of(CERTIFICATE)?, of(ANCHOR)?);
    let order = Order {
        region,
        bucket: args.bucket.clone(),
        prefix: prefix.to_owned(),
        name: format!("{}-{}", image.accelerator, tarball.tag),
        description: format!("shef design {}", &image.design[..16]),
        interval: Duration::from_secs(args.interval),
        wait: Duration::from_secs(args.wait.saturating_mul(60)),
        limits: args.programs.limits(),
    };
    if args.programs.dry_run {
        let mut steps = order.plan(&tarball)?;
        steps.push(Step::Change(format!("write {}", args.lock.display())));
        return print::plan(output, &steps);
    }
    let interrupted = print::leaves({
        let tarball = tarball.clone();
        move || left(&tarball)
    });
    let watching = Watching::new(output, "looking at the tarball");
    let made = afi::make(&order, &tarball, &mut |text| watching.step(text)).inspect_err(|_| {
        warn_of_rest(&tarball);
    })?;
    let lock = Lock {
        format: Lock::format(),
        accelerator: image.accelerator,
        target: image.target,
        root_of_trust: image.root_of_trust,
        source: image.design,
        firmware: hex::encode(&sha256(&kernel)),
        firmware_svn: parsed.svn,
        shell: image.shell,
        shell_version: image.shell_version,
        hdk_release: image.hdk_release,
        // The noise source of the adapter was never measured.
        entropy: AcceptedEntropy::Unmeasured.name().to_owned(),
        core_khz: image.core_khz,
        hbm: image.hbm,
        dcp: tarball.dcp,
        tarball: tarball.digest,
        region: made.region,
        afi: made.afi,
        agfi: made.agfi,
        ueid: image.ueid,
        certificate,
        anchor,
        corim: hex::encode(&sha256(&corim)),
    };
    lock.write(&args.lock)?;
    drop((watching, interrupted));
    for (name, text) in [
        ("image", format!("{} in {}, {}", lock.afi, lock.region, lock.agfi)),
        ("object in S3", "deleted".to_owned()),
        ("logs of AWS", made.logs),
        ("lock file", args.lock.display().to_string()),
        ("keep", format!("{CERTIFICATE} and {ANCHOR} of {}", args.dir.display())),
        ("next", "on the F2 instance: shef cloud load".to_owned()),
    ] {
        print::pair(output, name, &text)?;
    }
    output.document(&Document { file: args.lock.display().to_string(), lock: &lock })?;
    Ok(Exit::Done)
}
