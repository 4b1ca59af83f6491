//! A simulated device for trying out the service: prints its manufacturer's root and its reference
//! values, answers challenges, opens boxes.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use clap::{Parser, Subcommand};
use shef_fixtures::device::{Device, reference};
use shef_proto::evidence::{Layer, RootOfTrust};
use shef_proto::release::{Expected, KeyBox};

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Root certificate of its manufacturer, base64url.
    Root,
    /// Its reference values, TOML.
    Reference,
    /// Evidence of a layer for a challenge, base64url.
    Evidence { layer: String, nonce: String, audience: String },
    /// Opens a box for the kernel; prints the secret in hexadecimal.
    Open { key_box: String },
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut device = Device::new(1);
    device.kind = RootOfTrust::Simulated;
    match Args::parse().command {
        Command::Root => println!("{}", B64.encode(device.root.der())),
        Command::Reference => print!("{}", reference()),
        Command::Evidence { layer, nonce, audience } => {
            device.audience = audience;
            let layer = Layer::from_name(&layer).ok_or("layer is kernel or shield")?;
            println!(
                "{}",
                B64.encode(
                    device.evidence(
                        layer,
                        &STANDARD.decode(nonce).map_err(|error| error.to_string())?
                    )
                )
            );
        }
        Command::Open { key_box } => {
            let sealed =
                KeyBox::from_cbor(&B64.decode(key_box).map_err(|error| error.to_string())?)?;
            let info = sealed.info();
            let expected = Expected {
                layer: Layer::Kernel,
                evidence_digest: &info.evidence_digest,
                nonce: &info.nonce,
                key: None,
            };
            println!("{}", hex::encode(&sealed.open(&device.key, &expected)?[..]));
        }
    }
    Ok(())
}
