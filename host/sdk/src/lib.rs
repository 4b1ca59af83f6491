//! Host library for data owners, IP vendors and manufacturers of shielded FPGA accelerators.
//!
//! Parties are types of their own ([`Manufacturer`], [`IpVendor`], and for the data owner
//! [`Session`]); each has its own [`KeyFolder`], and they exchange messages only. Everything
//! between them passes through a [`Host`], which is not trusted: an [`Adversary`] in it may see,
//! change and drop every message, and do to the card whatever a host can do.
//!
//! ```text
//! Manufacturer --certifies--> device <--evidence-- IpVendor --image key--> kernel
//!                                    <--evidence-- Session<Connected> -> Session<Attested> --Load Key--> Session<Keyed>
//! ```
//!
//! What a data owner's program looks like:
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

mod buffer;
mod carrier;
mod entropy;
mod error;
mod host;
mod judge;
mod kernel;
mod keys;
mod manufacturer;
mod ring;
pub mod service;
mod session;
mod traces;
pub mod transfer;
mod vendor;
mod verifier;
mod wait;
mod worker;

pub use buffer::{InputBuffer, OutputBuffer, UnprotectedBuffer, Untrusted};
pub use entropy::{Source, SystemEntropy};
pub use error::{CODES, Fault, Ran, SdkError};
pub use host::{Adversary, Honest, Host, Leg, LoadHint, Record};
pub use kernel::LoadedImage;
pub use keys::KeyFolder;
pub use manufacturer::Manufacturer;
pub use ring::{Batch, Job, Lane, Ring};
pub use service::Service;
pub use session::{Attested, Closed, Connected, Keyed, Session, SessionSecrets};
pub use shef_device::{Device, DeviceError, Ueid, Uri};
/// What passes between the parties: configurations, Load Keys, images, certificates.
pub use shef_proto as proto;
pub use shef_proto::code::Code;
pub use shef_remote::TlsFiles;
use shef_remote::{Limits, RemoteDevice};
/// Sealed memory: what of a result is opened, and how.
pub use shef_seal as seal;
/// Appraisal: anchors, reference values, policies.
pub use shef_verify as verify;
pub use traces::undumpable;
pub use transfer::{Progress, Watch, unwatched};
pub use vendor::{Image, IpVendor, Release};
pub use verifier::{Appraised, Challenge, Expect, Verifier};
pub use wait::{Cancel, Patience, WaitWatch, Waited};
pub use worker::{End, Pending, Worker};

/// The simulated card.
#[cfg(feature = "sim")]
pub use shef_card as sim;

/// All codes that this library and what it is made of can give, in groups.
pub fn codes() -> Vec<(&'static str, Vec<&'static Code>)> {
    let mut groups: Vec<(&'static str, Vec<&'static Code>)> = vec![
        ("wire formats", shef_proto::CODES.iter().collect()),
        ("sealed memory", shef_seal::CODES.iter().collect()),
        ("appraisal", shef_verify::CODES.iter().collect()),
        ("device", shef_device::CODES.iter().collect()),
        ("PCI cards", shef_vfio::CODES.iter().collect()),
        ("vfio-user", shef_vfio_user::CODES.iter().collect()),
        ("agent", shef_remote::wire::codes::CODES.iter().collect()),
        ("host library", CODES.iter().collect()),
    ];
    #[cfg(feature = "sim")]
    groups.extend(shef_card::codes());
    groups.retain(|(_, codes)| !codes.is_empty());
    groups
}

/// How a device is opened, where its URI does not say all.
#[derive(Default)]
pub struct OpenOptions {
    /// Certificates for `tls://`; without them those that [`TlsFiles::find`] finds.
    pub tls: Option<TlsFiles>,
    /// Told what takes long.
    pub progress: Option<shef_remote::Progress>,
}

/// Opens the device that `uri` names, with what the environment says: see [`open_with`].
///
/// # Errors
/// As [`open_with`].
pub fn open(uri: &Uri) -> Result<Host, SdkError> {
    open_with(uri, OpenOptions::default())
}

/// Opens the device that `uri` names. A simulated device gets a manufacturer of its own, made for
/// it and thrown away.
///
/// # Errors
/// [`DeviceError::NotInThisVersion`], [`DeviceError::NoSimulator`], and those of the device.
pub fn open_with(uri: &Uri, options: OpenOptions) -> Result<Host, SdkError> {
    match uri {
        #[cfg(feature = "sim")]
        Uri::SimModel | Uri::SimRtl { .. } => {
            use shef_proto::cert::{Certificate, NO_CLOCK, NO_END, issue_device_id, issue_root};
            use shef_proto::cose::SigningKey;
            let engine = match uri {
                Uri::SimRtl { project } => sim::Engine::Rtl(sim::RtlOptions { project: project.clone(), ..sim::RtlOptions::default() }),
                _ => sim::Engine::Model,
            };
            let mut entropy = SystemEntropy::new()?;
            let ca = SigningKey::generate(&mut entropy);
            let root = Certificate::parse(&issue_root(&ca, "throw-away simulated manufacturer", NO_CLOCK, NO_END))?;
            let mut blank = sim::Blank::new(sim::CardOptions::new(engine), &mut |_| {}).map_err(DeviceError::from)?;
            let mut uds = zeroize::Zeroizing::new([0; 32]);
            shef_proto::entropy::Entropy::fill(&mut entropy, &mut uds[..]);
            let key = blank.burn(uds);
            let card = blank.finish(issue_device_id(&ca, &root, &key, NO_CLOCK)).map_err(DeviceError::from)?;
            Ok(Host::new(Box::new(card)))
        }
        #[cfg(not(feature = "sim"))]
        Uri::SimModel | Uri::SimRtl { .. } => Err(DeviceError::NoSimulator { uri: uri.to_string() }.into()),
        Uri::Pci { function, iommu } => Ok(Host::new(Box::new(shef_vfio::open(*function, *iommu)?))),
        Uri::PciUeid { ueid, iommu } => Ok(Host::new(Box::new(shef_vfio::open_ueid(ueid, *iommu)?))),
        Uri::VfioUser { socket } => {
            let card = shef_vfio_user::open(socket, shef_vfio_user::DEFAULT_TIMEOUT)?;
            Ok(Host::new(Box::new(card)))
        }
        Uri::Tls { .. } => {
            let tls = options.tls.map_or_else(TlsFiles::find, Ok)?;
            Ok(Host::new(Box::new(RemoteDevice::open(uri, &tls, Limits::default(), options.progress)?)))
        }
        uri => Err(DeviceError::NotInThisVersion { uri: uri.to_string() }.into()),
    }
}
