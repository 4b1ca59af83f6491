//! The parties of a run, and what they trust: the vendor of the image, and the data owner. Each
//! appraises in this process, or lets a verifier service appraise.

use std::path::{Path, PathBuf};

use shef::{
    Attested, Connected, Expect, Host, IpVendor, SdkError, Service, Session, SystemEntropy,
    Verifier,
};
use shef_console::{CliError, Output, hex};
use shef_flags::ServiceArgs;
use shef_project::Design;
use shef_proto::evidence::{AcceptedEntropy, RootOfTrust};
use shef_proto::image::{Container, Description};
use shef_rego::Workers;
use shef_verify::bundle::{Bundle, BundleError};
use shef_verify::crypto::portable;
use shef_verify::{ImageReference, Policy};

use super::steps::Steps;
use crate::image::MAX_CONTAINER;
use crate::verify::{key_folder, now, read};

/// Audience of the evidence.
const AUDIENCE: &str = "shef run";

/// Flags of the parties.
#[derive(clap::Args)]
pub struct PartyArgs {
    /// Key folder of the vendor that builds the image, created if it is missing; by default a new
    /// vendor, whose keys are in no file
    #[arg(long, value_name = "DIR", conflicts_with = "image")]
    vendor: Option<PathBuf>,
    /// Load this image of the project, whose key comes from a verifier service
    #[arg(long, value_name = "FILE", requires = "image_key")]
    image: Option<PathBuf>,
    /// Name of the image's key at the service
    #[arg(long, value_name = "NAME", requires = "image")]
    image_key: Option<String>,
    /// Name of a data key of 32 bytes at the service, which appraises the Shield: the master key of
    /// each session; --policy also applies
    #[arg(long, value_name = "NAME")]
    data_key: Option<String>,
    /// The verifier service
    #[command(flatten)]
    service: ServiceArgs,
}

/// The source of the image.
enum Source {
    /// Built by this vendor.
    Built(Box<IpVendor>),
    /// A container, and the name of its key at the service.
    Given(Box<Container>, String),
}

/// The parties, with everything that their files hold.
pub struct Parties {
    source: Source,
    vendor_keys: Option<PathBuf>,
    service: Option<Service>,
    data_key: Option<String>,
    trust: Option<Bundle>,
    /// The policy for a simulated card that this command starts.
    own_policy: Policy,
    /// Device type of an image that is built.
    target: String,
    entropy: SystemEntropy,
}

/// The loaded image.
pub struct Loaded {
    /// Its digest, as the card reports it; for an image that was built here, evidence must show it.
    pub digest: [u8; 32],
    /// The appraisal of the Security Kernel.
    pub appraisal: String,
    /// What the data owner expects of the Shield.
    pub expect: Expect,
    verifier: Option<Verifier>,
}

/// A project or an image, in messages.
pub fn named(accelerator: &str, design: &[u8; 32]) -> String {
    format!("{accelerator}, design {}", hex::encode(design))
}

fn missing(what: &str) -> CliError {
    CliError::new("SHEF-CLI-001", what)
}

fn malformed(error: impl Into<BundleError>) -> CliError {
    let error = error.into();
    CliError::new(error.code(), error.to_string())
}

impl PartyArgs {
    /// Reads the files of the parties. `own` says that this command starts the card, and `trust` is
    /// the trust data for any other one, of the device type `target`.
    ///
    /// # Errors
    /// SHEF-CLI-001 for missing flags, SHEF-CLI-029 for an image of another project, and errors of
    /// the files.
    pub fn read(
        &self,
        output: &Output,
        design: &Design,
        own: bool,
        trust: Option<Bundle>,
        target: &str,
    ) -> Result<Parties, CliError> {
        let by_service = self.image_key.is_some() || self.data_key.is_some();
        if let (false, Some(flag)) = (by_service, self.service.given()) {
            return Err(missing(&format!(
                "a verifier service appraises only for a key that it has: expected {flag} with --image-key or --data-key"
            )));
        }
        let service = if by_service { Some(self.service.open()?) } else { None };
        if trust.is_none() && !own && (self.image.is_none() || self.data_key.is_none()) {
            return Err(missing(
                "this command trusts only simulated cards that it starts: expected --anchors, --reference and \
                 --policy, or --verifier with --image, --image-key and --data-key",
            ));
        }
        let mut entropy = SystemEntropy::new()?;
        let mut vendor_keys = None;
        let source = match (&self.image, &self.image_key, &self.vendor) {
            (Some(file), Some(key), _) => {
                let container = Container::parse(&read(file, MAX_CONTAINER)?)
                    .map_err(|e| CliError::new(e.code(), format!("{}: {e}", file.display())))?;
                same_design(file, container.header().description(), design)?;
                Source::Given(Box::new(container), key.clone())
            }
            (.., Some(folder)) => {
                let folder = key_folder(output, folder)?;
                vendor_keys = Some(folder.path().to_owned());
                Source::Built(Box::new(IpVendor::open(folder, "vendor", &mut entropy)?))
            }
            _ => Source::Built(Box::new(IpVendor::in_memory("vendor", &mut entropy))),
        };
        let mut own_policy = Policy::strict(AUDIENCE, &[RootOfTrust::Simulated]);
        own_policy.bypass = design.config().bypass_regions().map(|r| r.name.clone()).collect();
        let data_key = self.data_key.clone();
        let target = target.to_owned();
        Ok(Parties { source, vendor_keys, service, data_key, trust, own_policy, target, entropy })
    }
}

/// Refuses an image of another project.
fn same_design(file: &Path, image: &Description, design: &Design) -> Result<(), CliError> {
    if image.design_digest == design.digest() && image.accelerator == design.name() {
        return Ok(());
    }
    let message = format!(
        "the image {} is {}, and the project is {}",
        file.display(),
        named(&image.accelerator, &image.design_digest),
        named(design.name(), &design.digest()),
    );
    Err(CliError::new("SHEF-CLI-029", message))
}

impl Parties {
    /// The folders whose keys no output replaces.
    pub fn key_folders(&self) -> impl Iterator<Item = &Path> {
        self.vendor_keys.iter().map(PathBuf::as_path)
    }

    /// Takes the trust data of a simulated card that this command started, unless flags gave others.
    ///
    /// # Errors
    /// The policy cannot be written.
    pub fn trusts(&mut self, host: &Host) -> Result<(), CliError> {
        if let (None, Some(card)) = (&self.trust, host.simulated_trust()) {
            self.trust = Some(Bundle {
                anchors: card.anchors.clone(),
                reference: card.reference.clone(),
                policy: self.own_policy.to_toml().map_err(malformed)?,
                ..Bundle::default()
            });
        }
        Ok(())
    }

    /// The verifier in this process, if there is trust data for one. `image` is built here.
    fn verifier(&self, image: Option<ImageReference>) -> Result<Option<Verifier>, CliError> {
        let Some(trust) = &self.trust else { return Ok(None) };
        let revocations = trust.revocation_list().map_err(malformed)?;
        let mut reference =
            trust.reference_values(now(None), revocations.as_ref(), portable).map_err(malformed)?;
        reference.images.extend(image);
        let anchors = trust.trust_anchors().map_err(malformed)?.list().to_vec();
        let policy = trust.appraisal_policy().map_err(malformed)?;
        let verifier =
            Verifier::new(AUDIENCE, anchors, reference, policy).with_rego(Workers::default());
        Ok(Some(match revocations {
            Some(revocations) => verifier.with_revocations(revocations),
            None => verifier,
        }))
    }

    /// The noise source that the image accepts: the one vendor and owner share one policy.
    fn accepted_entropy(&self) -> Result<AcceptedEntropy, CliError> {
        Ok(match &self.trust {
            Some(trust) => trust.appraisal_policy().map_err(malformed)?.typed().entropy,
            None => AcceptedEntropy::Tested,
        })
    }

    /// Kernel round: the image's key goes to the appraised Security Kernel, which loads the image.
    ///
    /// # Errors
    /// The appraisal failed, or the card refuses the image: SHEF-CLI-029 if it is of another design.
    pub fn load(
        &mut self,
        host: &mut Host,
        design: &Design,
        steps: &Steps<'_>,
    ) -> Result<Loaded, CliError> {
        let config = design.config();
        let (release, container, expect, verifier) = match &self.source {
            Source::Built(vendor) => {
                steps.begin("building the image");
                let description = Description {
                    target: self.target.clone(),
                    accelerator: design.name().to_owned(),
                    svn: 1,
                    min_kernel_svn: 1,
                    config: config.clone(),
                    design_digest: design.digest(),
                    chunk_size: 4096,
                    entropy: self.accepted_entropy()?,
                };
                let program = design.program().map_err(crate::project::failed)?;
                let image = vendor.build(&description, &program, &mut self.entropy)?;
                let reference = vendor.reference(&image, design.name());
                let verifier = self.verifier(Some(reference))?.ok_or_else(|| {
                    missing("an image that is built here needs --anchors, --reference and --policy")
                })?;
                steps.begin("attesting the Security Kernel");
                let release =
                    vendor.release(host, &image, 1, &verifier, now(None), &mut self.entropy)?;
                let expect = Expect::image(config, &image.digest);
                (release, image.container, expect, Some(verifier))
            }
            Source::Given(container, key) => {
                steps.begin("releasing the image's key");
                let service =
                    self.service.as_ref().ok_or_else(|| missing("expected --verifier"))?;
                let (release, _) = service.release_image_key(host, key, None)?;
                let expect = Expect::design(config, &design.digest());
                (release, container.to_bytes(), expect, self.verifier(None)?)
            }
        };
        steps.begin("loading the image");
        let loaded = host.load_image(container, release.key_box).map_err(|error| match error {
            // Of a kernel that measured the fabric, and of a simulated card that compared.
            SdkError::Kernel { code, text }
                if matches!(&*code, "SHEF-KRN-010" | "SHEF-KRN-023") =>
            {
                let image = named(design.name(), &design.digest());
                CliError::new(
                    "SHEF-CLI-029",
                    format!("the card refuses the image, which is {image}: {text}"),
                )
            }
            error => error.into(),
        })?;
        let expect = match &self.trust {
            Some(trust) => {
                let policy = trust.appraisal_policy().map_err(malformed)?.typed().clone();
                let expect = expect.floor(policy);
                match trust.revocation_list().map_err(malformed)? {
                    Some(list) => expect.revocations(list),
                    None => expect,
                }
            }
            None => expect,
        };
        let appraisal = release.appraised.to_string();
        Ok(Loaded { digest: loaded.image_digest, appraisal, expect, verifier })
    }

    /// Shield round: the Shield is appraised, here or by the service, which then releases the
    /// session's master key.
    ///
    /// # Errors
    /// The appraisal failed.
    pub fn attest<'h>(
        &self,
        session: Session<'h, Connected>,
        image: &Loaded,
        entropy: &mut SystemEntropy,
    ) -> Result<Session<'h, Attested>, CliError> {
        if let (Some(key), Some(service)) = (&self.data_key, &self.service) {
            return Ok(session.attest_by(
                service,
                (key, None),
                &image.expect,
                now(None),
                entropy,
            )?);
        }
        let verifier = image.verifier.as_ref().ok_or_else(|| {
            missing("the Shield is appraised here with --anchors, --reference and --policy, or by a service with --data-key")
        })?;
        Ok(session.attest(verifier, &image.expect, now(None), entropy)?)
    }
}
