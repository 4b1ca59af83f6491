//! Host library for data owners and IP vendors of shielded FPGA accelerators.
//!
//! Each party has its own type ([`IpVendor`], for the data owner [`Session`], and [`Manufacturer`])
//! and its own [`KeyFolder`], and parties exchange only messages. Everything between them passes
//! through a [`Host`], which is not trusted.
//!
//! ```text
//! Manufacturer --certifies--> device <--evidence-- IpVendor --image key--> kernel
//!                                    <--evidence-- Session<Connected> -> Session<Attested> --Load Key--> Session<Keyed>
//! ```
//!
//! A data owner's program:
//!
//! ```
//! use shef::{Connected, Expect, Host, SdkError, Session, SystemEntropy, Verifier};
//! use shef_proto::load::first_epochs;
//! use shef_seal::OpenPolicy;
//!
//! fn compute(host: &mut Host, verifier: &Verifier, expect: &Expect, now: i64, data: &[u8]) -> Result<Vec<u8>, SdkError> {
//!     let mut entropy = SystemEntropy::new()?;
//!     // Evidence of the Shield, held against anchors, reference values and policy; and the program in it is the one that the owner expects.
//!     let session = Session::<Connected>::connect(host)?.attest(verifier, expect, now, &mut entropy)?;
//!     // The Load Key goes to the appraised Shield and to nothing else; the Shield confirms it.
//!     let mut session = session.key("tenant", &first_epochs(expect.config(), 1), &mut entropy)?;
//!     let (input, output) = (session.input("query")?, session.output("result")?);
//!     session.upload(&input, data)?;
//!     // Registers of the accelerator, over the sealed channel; then flush and statement.
//!     let statement = session.run(&[(0x14, input.addr() as u32), (0x20, output.addr() as u32)], (0x00, 1), (0x04, 6))?;
//!     let results = session.open(&output, &statement, 512, OpenPolicy::default())?;
//!     let bytes = results.data.to_vec();
//!     session.close()?;
//!     Ok(bytes)
//! }
//! ```
//!
//! Cargo features select what a program is built with. All are on by default; a program that uses
//! one kind of card and appraises locally needs one of the first three:
//!
//! | feature | gives |
//! |---|---|
//! | `vfio` | cards of this machine, `pci:` |
//! | `vfio-user` | cards that another process serves, `vfio-user:`, and simulated cards, `sim:` |
//! | `tls` | cards behind an agent, `tls:` |
//! | `service` | a verifier service that appraises and releases keys: [`service`] |
//! | `rego` | policies with a part in Rego |
//! | `corim` | reference values as CoRIM, and bundles for auditors |
//! | `aws-lc` | bulk data sealed and opened by aws-lc instead of RustCrypto: faster, needs a C compiler |
//!
//! A simulated card runs in a separate process: for `sim:`, the library starts the program
//! `shef-sim`, and ends it with the [`Host`].

mod entropy;
mod error;
mod host;
mod keys;
mod manufacturer;
mod owner;
mod progress;
mod traces;
mod vendor;
mod verifier;

pub use entropy::{Source, SystemEntropy};
pub use error::{Ran, SdkError};
pub use host::open::{OpenOptions, open, open_with};
#[cfg(feature = "vfio-user")]
pub use host::simulator::{
    SimulatedTrust, program_beside, simulator_command, simulator_message, simulator_program,
};
pub use host::{Host, LoadHint, LoadedImage};
pub use keys::KeyFolder;
pub use manufacturer::Manufacturer;
pub use owner::buffer::{InputBuffer, OutputBuffer, UnprotectedBuffer, Untrusted};
pub use owner::ring::{Batch, Job, Lane, Ring};
pub use owner::session::{Attested, Closed, Connected, Keyed, Session};
pub use owner::transfer;
pub use owner::wait::{Patience, Until, WaitWatch, Waited};
pub use owner::worker::{End, Pending, Worker};
pub use progress::{Cancel, Progress, Watch, unwatched};
/// Progress of an accelerator: the bursts at its ports.
pub use shef_device::progress as ports;
pub use shef_device::{Device, DeviceError, Ueid, Uri};
pub use shef_files::staged::{write_file, write_new_secret};
/// Messages between the parties: configurations, Load Keys, images, certificates.
pub use shef_proto as proto;
pub use shef_proto::code::Code;
pub use shef_proto::fault::Fault;
#[cfg(feature = "tls")]
pub use shef_remote::TlsFiles;
/// Sealed memory: opening of results, and the policy for it.
pub use shef_seal as seal;
/// Appraisal: anchors, reference values, policies.
pub use shef_verify as verify;
pub use traces::undumpable;
pub use vendor::{Image, IpVendor, Release};
#[cfg(feature = "service")]
pub use verifier::service::{self, Service};
pub use verifier::{Appraised, Challenge, Expect, Verifier};

/// All error codes of this crate.
pub const CODES: &[shef_proto::code::Code] = SdkError::CODES;

/// All error codes that this library and its dependencies can return, in groups.
pub fn codes() -> Vec<(&'static str, Vec<&'static Code>)> {
    let mut groups: Vec<(&'static str, Vec<&'static Code>)> = vec![
        ("wire formats", shef_proto::CODES.iter().collect()),
        ("sealed memory", shef_seal::CODES.iter().collect()),
        ("appraisal", shef_verify::CODES.iter().collect()),
        ("device", shef_device::CODES.iter().collect()),
        #[cfg(feature = "vfio")]
        ("PCI cards", shef_vfio::CODES.iter().collect()),
        #[cfg(feature = "vfio-user")]
        ("vfio-user", shef_vfio_user::CODES.iter().collect()),
        #[cfg(feature = "tls")]
        ("agent", shef_remote::wire::codes::CODES.iter().collect()),
        ("host library", CODES.iter().collect()),
    ];
    groups.retain(|(_, codes)| !codes.is_empty());
    groups
}
