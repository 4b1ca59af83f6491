//! Adds two files of 32-bit words on an FPGA. Only the accelerator sees the plaintext.
//!
//! Without DEVICE the card is a simulated one in this process. With DEVICE it is any card that
//! holds the design of this folder, for example one behind an agent, and ANCHORS is the file of its
//! maker's root certificates.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use shef::proto::evidence::{AcceptedEntropy, RootOfTrust};
use shef::proto::image::Description;
use shef::proto::load::first_epochs;
use shef::seal::OpenPolicy;
use shef::verify::{
    ImageReference, KernelReference, Policy, ReferenceValues, ShellReference, TrustAnchor,
};
use shef::{
    Batch, Expect, Host, Image, IpVendor, Job, KeyFolder, Keyed, Lane, Manufacturer, SdkError,
    Session, SystemEntropy, Uri, Verifier,
};
use shef_card::{self as sim, Blank, CardOptions, Design, Engine, RtlOptions};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Bytes that fit a lane's regions.
const LANE: u64 = 64 << 10;
/// Bytes that the accelerator adds per block.
const BLOCK: u64 = 512;

/// An existing card.
struct There {
    device: Uri,
    /// Its maker's root certificates, as `shef sim trust` writes them.
    anchors: PathBuf,
}

fn main() -> ExitCode {
    match run() {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("vecadd: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<String> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let (a, b, out, there) = match args.as_slice() {
        [a, b, out] => (a, b, out, None),
        [a, b, out, device, anchors] => {
            let device = device.to_str().ok_or("DEVICE is not UTF-8")?.parse()?;
            (a, b, out, Some(There { device, anchors: anchors.into() }))
        }
        _ => return Err("expected three arguments or five: vecadd A B OUT [DEVICE ANCHORS]".into()),
    };
    let open = |path| {
        File::open(path).map_err(|e| format!("cannot read {}: {e}", Path::new(path).display()))
    };
    let (a, b) = (open(a)?, open(b)?);
    let (bytes, of_b) = (a.metadata()?.len(), b.metadata()?.len());
    if bytes == 0 || bytes % 4 != 0 || of_b != bytes {
        return Err(format!("A has {bytes} bytes and B {of_b}: expected the same number of 32-bit words, at least one").into());
    }
    // A result gets its final name only when it is complete.
    let part = Path::new(out).with_extension("part");
    let keys = std::env::temp_dir().join(format!("vecadd-{}", std::process::id()));
    let added = add(&keys, there, BufReader::new(a), BufReader::new(b), bytes, &part);
    let _ = fs::remove_dir_all(&keys);
    match added {
        Ok(batches) => {
            fs::rename(&part, out)?;
            Ok(format!("{} sums in {batches} batches", bytes / 4))
        }
        Err(error) => {
            let _ = fs::remove_file(&part);
            Err(error)
        }
    }
}

fn add(
    keys: &Path,
    there: Option<There>,
    a: impl Read,
    b: impl Read,
    bytes: u64,
    out: &Path,
) -> Result<u64> {
    let mut entropy = SystemEntropy::new()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
    let design = Design::project(Path::new(env!("CARGO_MANIFEST_DIR")))?;

    let (mut host, anchors) = match there {
        Some(There { device, anchors }) => {
            let text = fs::read_to_string(&anchors)
                .map_err(|e| format!("cannot read {}: {e}", anchors.display()))?;
            (shef::open(&device)?, TrustAnchor::list_from_toml(&text)?)
        }
        None => make(keys, design.clone(), now, &mut entropy)?,
    };

    // The IP vendor: an image of the design. Other parties get the container and the reference
    // values, as files.
    let vendor = IpVendor::open(KeyFolder::open(keys.join("vendor"))?, "vendor", &mut entropy)?;
    let image = build(&vendor, &design, &mut entropy)?;
    let verifier = verifier(anchors, vendor.reference(&image, design.name()));

    // Kernel round: the image's key goes only to an appraised Security Kernel.
    let release = vendor.release(&mut host, &image, 1, &verifier, now, &mut entropy)?;
    host.load_image(&image.container, release.key_box)?;

    // Shield round, and from here on the data owner: the Load Key goes only to an appraised Shield.
    let expect = Expect::image(design.config(), &image.digest);
    let session = Session::connect(&mut host)?.attest(&verifier, &expect, now, &mut entropy)?;
    let mut session = session.key("owner", &first_epochs(design.config(), 1), &mut entropy)?;
    let batches = stream(&mut session, a, b, bytes, File::create(out)?)?;

    // The Shield's last words, countersigned by the appraised kernel.
    let closed = session.close()?;
    closed.verify_record(&host.close_record()?)?;
    Ok(batches)
}

/// A simulated card, and the root of the manufacturer that made it.
fn make(
    keys: &Path,
    design: Design,
    now: i64,
    entropy: &mut SystemEntropy,
) -> Result<(Host, Vec<TrustAnchor>)> {
    let maker = Manufacturer::open(
        KeyFolder::open(keys.join("manufacturer"))?,
        "manufacturer of the example",
        now,
        entropy,
    )?;
    let options = CardOptions::new(Engine::Rtl(RtlOptions::default()), design);
    let mut blank = Blank::new(options, &mut |what| eprintln!("{what}"))?;
    let device_id = blank.burn(maker.device_secret(entropy));
    let card = blank.finish(maker.certify(&device_id, now))?;
    let anchor =
        TrustAnchor::new("manufacturer", RootOfTrust::Simulated, false, maker.root().der())?;
    Ok((Host::new(Box::new(card)), vec![anchor]))
}

fn build(vendor: &IpVendor, design: &Design, entropy: &mut SystemEntropy) -> Result<Image> {
    let description = Description {
        target: sim::TARGET.to_owned(),
        accelerator: design.name().to_owned(),
        svn: 1,
        min_kernel_svn: 1,
        config: design.config().clone(),
        design_digest: design.digest(),
        chunk_size: 4096,
        entropy: AcceptedEntropy::Tested,
    };
    // A simulated card loads the design's sources in place of a bitstream.
    Ok(vendor.build(&description, &design.program()?, entropy)?)
}

/// The verifier's inputs. It accepts only simulated cards of these makers; the policy must name the
/// one unprotected region.
fn verifier(anchors: Vec<TrustAnchor>, image: ImageReference) -> Verifier {
    let kernel = sim::kernel_digest(sim::SimKernel::Firmware);
    let reference = ReferenceValues {
        kernels: vec![KernelReference {
            name: "security-kernel".to_owned(),
            digest: kernel,
            svn: sim::KERNEL_SVN,
        }],
        shells: vec![ShellReference { name: "simulation".to_owned(), digest: sim::shell_digest() }],
        images: vec![image],
    };
    let mut policy = Policy::strict("example", &[RootOfTrust::Simulated]);
    policy.bypass = vec!["progress".to_owned()];
    Verifier::new("owner", anchors, reference, policy)
}

/// Adds batch after batch: while the accelerator works on one, the next is read, sealed and
/// uploaded. Only a few batches are in memory, whatever the length of the files.
fn stream(
    session: &mut Session<'_, Keyed>,
    mut a: impl Read,
    mut b: impl Read,
    bytes: u64,
    mut out: File,
) -> Result<u64> {
    let lane = |i| -> std::result::Result<Lane, SdkError> {
        let (a, b) = (session.input(&format!("a{i}"))?, session.input(&format!("b{i}"))?);
        Ok(Lane::new([a, b], [session.output(&format!("result{i}"))?]))
    };
    let lanes = [lane(0)?, lane(1)?];
    let (sums, progress) = (session.scratch("sums")?, session.unprotected("progress")?.addr());
    let length = |number: u64| LANE.min(bytes - number * LANE);
    let mut write = |batch: Option<Batch>| -> std::io::Result<()> {
        batch.map_or(Ok(()), |batch| out.write_all(&batch.outputs[0].data))
    };

    let batches = bytes.div_ceil(LANE);
    let mut ring = session.ring(lanes)?;
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for number in 0..batches {
        for (file, data) in [(&mut a as &mut dyn Read, &mut x), (&mut b as &mut dyn Read, &mut y)] {
            data.resize(length(number) as usize, 0);
            file.read_exact(data)?;
        }
        ring.push(&[&x, &y], |lane| Job {
            registers: vec![
                (0x08, length(number).div_ceil(BLOCK) as u32),
                (0x10, lane.inputs[0].addr() as u32),
                (0x14, lane.inputs[1].addr() as u32),
                (0x18, sums as u32),
                (0x1c, lane.outputs[0].addr() as u32),
                (0x20, progress as u32),
            ],
            start: (0x00, 1),
            done: (0x04, 2.into()),
            results: vec![length(number) as usize],
            policy: OpenPolicy::default(),
        })?;
        // The results of the previous batch: this one is still running.
        write(ring.results()?)?;
    }
    write(ring.finish()?)?;
    Ok(batches)
}
