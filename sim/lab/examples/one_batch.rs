//! Runs sixteen KiB through the design of `examples/vecadd`, once. The how-to page about
//! accelerators shows this program verbatim.

use std::error::Error;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use shef::proto::evidence::{AcceptedEntropy, RootOfTrust};
use shef::proto::image::Description;
use shef::proto::load::first_epochs;
use shef::seal::OpenPolicy;
use shef::verify::{KernelReference, Policy, ReferenceValues, ShellReference, TrustAnchor};
use shef::{Expect, Host, IpVendor, KeyFolder, Manufacturer, Session, SystemEntropy, Verifier};
use shef_card::{self as sim, Blank, CardOptions, Design, Engine, RtlOptions, SimKernel};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = std::env::args_os().collect();
    let [_, dir, keys] = args.as_slice() else {
        return Err("expected two folders: one_batch PROJECT KEYS".into());
    };
    let (dir, keys) = (Path::new(dir), Path::new(keys));
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() as i64;
    let mut entropy = SystemEntropy::new()?;
    shef::undumpable()?;

    // The design: its configuration and digest go into the vendor's image and reference values.
    let design = Design::project(dir)?;
    let config = design.config();

    // Manufacturer: makes and certifies a simulated card. With a real card this is `shef::open`.
    let maker_keys = KeyFolder::open(keys.join("maker"))?;
    let maker = Manufacturer::open(maker_keys, "example manufacturer", now, &mut entropy)?;
    let options = CardOptions::new(Engine::Rtl(RtlOptions::default()), design.clone());
    let mut blank = Blank::new(options, &mut |progress| eprintln!("{progress}"))?;
    let device_id = blank.burn(maker.device_secret(&mut entropy));
    let mut host = Host::new(Box::new(blank.finish(maker.certify(&device_id, now))?));

    // IP vendor: encrypts and signs the image.
    let vendor_keys = KeyFolder::open(keys.join("vendor"))?;
    let vendor = IpVendor::open(vendor_keys, "example vendor", &mut entropy)?;
    let description = Description {
        target: sim::TARGET.to_owned(),
        accelerator: design.name().to_owned(),
        svn: 1,
        min_kernel_svn: 1,
        config: config.clone(),
        design_digest: design.digest(),
        chunk_size: 4096,
        entropy: AcceptedEntropy::Tested,
    };
    let program = design.program()?;
    let image = vendor.build(&description, &program, &mut entropy)?;

    // Verifier: trust anchors, reference values and policy.
    let root = maker.root().der();
    let anchor = TrustAnchor::new("maker", RootOfTrust::Simulated, false, root)?;
    let reference = ReferenceValues {
        kernels: vec![KernelReference {
            name: "security-kernel".to_owned(),
            digest: sim::kernel_digest(SimKernel::Firmware),
            svn: sim::KERNEL_SVN,
        }],
        shells: vec![ShellReference { name: "simulation".to_owned(), digest: sim::shell_digest() }],
        images: vec![vendor.reference(&image, design.name())],
    };
    let mut policy = Policy::strict("example", &[RootOfTrust::Simulated]);
    policy.bypass = vec!["progress".to_owned()];
    let verifier = Verifier::new("owner", vec![anchor], reference, policy);

    // Kernel round: the image key goes to the appraised Security Kernel.
    let release = vendor.release(&mut host, &image, 1, &verifier, now, &mut entropy)?;
    host.load_image(&image.container, release.key_box)?;

    // Shield round. The data owner expects this image, whatever else the verifier would accept.
    let expect = Expect::image(config, &image.digest);
    let session = Session::connect(&mut host)?.attest(&verifier, &expect, now, &mut entropy)?;
    // The Load Key goes to the appraised Shield, which derives every key of the session.
    let mut session = session.key("owner", &first_epochs(config, 1), &mut entropy)?;

    let (a, b) = (session.input("a0")?, session.input("b0")?);
    let result = session.output("result0")?;
    let bytes = |seed: u32| (0..4096u32).flat_map(|i| (i * seed).to_le_bytes()).collect::<Vec<_>>();
    session.upload(&a, &bytes(3))?;
    session.upload(&b, &bytes(4))?;
    let registers = [
        (0x08, 32), // blocks of 512 bytes
        (0x10, a.addr() as u32),
        (0x14, b.addr() as u32),
        (0x18, session.scratch("sums")? as u32),
        (0x1c, result.addr() as u32),
        (0x20, session.unprotected("progress")?.addr() as u32),
    ];
    // Writes the registers, then 1 to register 0x00; waits for a bit of 0x02 in register 0x04.
    let statement = session.run(&registers, (0x00, 1), (0x04, 2))?;
    let opened = session.open(&result, &statement, 16 << 10, OpenPolicy::default())?;
    assert_eq!(opened.data.to_vec(), bytes(7));

    let closed = session.close()?; // the Shield erases its keys
    closed.verify_record(&host.close_record()?)?; // the kernel countersigned its last words
    println!("4096 sums are right, and the session is closed");
    Ok(())
}
