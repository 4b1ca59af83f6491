//! The parties, each with its own key folder and source of randomness.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use shef::service::{KeyMaterial, NewKey};
use shef::{
    Challenge, Connected, Expect, Host, Image, IpVendor, KeyFolder, Keyed, Manufacturer,
    OpenOptions, Release, SdkError, Service, Session, Source, TlsFiles, Uri, Verifier,
};
use shef_card::{
    self as sim, Blank, CardOptions, Control, Design, Engine, Identity, RtlOptions, SimKernel,
};
use shef_proto::config::Config;
use shef_proto::evidence::{AcceptedEntropy, Layer, RootOfTrust};
use shef_proto::hpke_suite::PublicKey;
use shef_proto::image::{Container, Description};
use shef_proto::load::{MASTER_LEN, SessionKeys, first_epochs};
use shef_regs::ctl;
use shef_verify::{KernelReference, Policy, ReferenceValues, ShellReference, TrustAnchor};

use shef_console::CliError;
use shef_console::interrupt::{self, Hook};
use shef_console::output::warn;

use crate::probe::Location;
pub use crate::probe::{Probe, card};
use crate::secrets::{Drawn, session_keys};
use crate::tap::tap;

/// Name of the data owner as a tenant.
pub const OWNER: &str = "data-owner";
/// Name of the IP vendor as a tenant.
pub const VENDOR: &str = "ip-vendor";
/// Security version of the image that is released.
const IMAGE_SVN: u64 = 2;
/// Plaintext bytes of a chunk of the image.
const CHUNK: usize = 4096;
/// The current time for all parties under a seed: 2026-01-01.
const SEEDED_NOW: i64 = 1_767_225_600;

/// Origin of the cards.
#[derive(Debug, Clone)]
pub enum Cards {
    /// Made here. World and attacks choose seed and debug state.
    Made(CardOptions),
    /// An existing card behind this device; its maker, faults and observation are reached through
    /// the control socket.
    Served {
        /// The device.
        uri: Uri,
        /// The control socket, or a character device connected to it.
        control: PathBuf,
        /// Certificates, if the device is behind an agent.
        tls: Option<TlsFiles>,
    },
}

impl Cards {
    /// Cards with the digits accelerator, made here.
    ///
    /// # Errors
    /// If the design's sources are missing.
    pub fn digits(engine: Engine) -> Result<Self, CliError> {
        Ok(Self::Made(CardOptions::digits(engine).map_err(card)?))
    }

    /// Cards around the functional model, with the digits accelerator in a Shield of this
    /// configuration.
    ///
    /// # Errors
    /// If the design's sources are missing, or its package cannot be written.
    pub fn model_of(config: Config) -> Result<Self, CliError> {
        let design = Design::digits().and_then(|design| design.with_config(config));
        Ok(Self::Made(CardOptions::new(Engine::Model, design.map_err(card)?)))
    }

    /// Cards around the RTL, with the design of a user's folder.
    ///
    /// # Errors
    /// Errors of the project.
    pub fn project(folder: &Path) -> Result<Self, CliError> {
        let design = Design::project(folder).map_err(card)?;
        Ok(Self::Made(CardOptions::new(Engine::Rtl(RtlOptions::default()), design)))
    }
}

/// How to create a world.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Origin of the cards.
    pub cards: Cards,
    /// Seed for the randomness of all parties.
    pub seed: Option<u64>,
    /// Separates the random streams of different worlds.
    pub name: String,
    /// The service that appraises and releases keys; if `None`, the parties do.
    pub service: Option<Service>,
}

/// Anchors, reference values and keys of a world's parties at a verifier service. Dropping this
/// value removes them; policies, receipts and disabled keys stay.
struct Entrusted {
    service: Service,
    /// Common prefix of all names.
    id: String,
    /// The data key.
    master: [u8; MASTER_LEN],
    /// An interrupt removes the same as the end does.
    _interrupted: Hook,
}

/// Removes the anchors and reference values of the demo of this `id`, and disables its keys.
/// Returns those that are left. After a request without an answer it sends no other, which would
/// wait as long.
fn withdraw(service: &Service, id: &str) -> Vec<String> {
    let (mut left, mut answers) = (Vec::new(), true);
    let mut gone = |what: String, request: &dyn Fn() -> Result<(), SdkError>| {
        let result = answers.then(request);
        answers = matches!(result, Some(Ok(()) | Err(SdkError::Refused { .. })));
        if !matches!(result, Some(Ok(()) | Err(SdkError::Refused { status: 404, .. }))) {
            left.push(what);
        }
    };
    // Keys first: they are what a stranger could use.
    for key in ["image", "data"] {
        let name = format!("{id}-{key}");
        gone(format!("key {name}"), &|| service.switch_key(&name, None, false));
    }
    for anchor in ["simulated", "simulated-debug"] {
        let name = format!("{id}-{anchor}");
        gone(format!("trust anchor {name}"), &|| service.remove("trust-anchors", &name));
    }
    gone(format!("reference values {id}"), &|| service.remove("corims", id));
    left
}

fn withdraw_and_warn(service: &Service, id: &str) {
    let left = withdraw(service, id);
    if !left.is_empty() {
        let url = service.url();
        warn(format_args!("the service {url} still has {}: remove them there", left.join(", ")));
    }
}

impl Entrusted {
    fn new(
        service: &Service,
        verifier: &Verifier,
        vendor: &IpVendor,
        image: &Image,
        entropy: &mut dyn shef_proto::entropy::Entropy,
    ) -> Result<Self, SdkError> {
        let (mut random, mut master) = ([0; 8], [0; MASTER_LEN]);
        entropy.fill(&mut random);
        entropy.fill(&mut master);
        let id = format!("demo-{}", shef_console::hex::encode(&random));
        let (at, of) = (service.clone(), id.clone());
        let interrupted = interrupt::first(move || withdraw_and_warn(&at, &of));
        let entrusted = Self { service: service.clone(), id, master, _interrupted: interrupted };
        interrupt::guarded(|| entrusted.post(verifier, vendor, image))?;
        Ok(entrusted)
    }

    fn post(&self, verifier: &Verifier, vendor: &IpVendor, image: &Image) -> Result<(), SdkError> {
        let (service, id) = (&self.service, &self.id);
        for anchor in verifier.anchors() {
            let name = format!("{id}-{}", anchor.name());
            service.add_anchor(&TrustAnchor::new(
                &name,
                anchor.kind(),
                anchor.debug(),
                anchor.certificate().der(),
            )?)?;
        }
        service.add_reference(id, verifier.reference())?;
        // A unique name.
        let policy = service.add_policy(id, verifier.policy())?;
        let key = |material| NewKey {
            policy: &policy,
            material,
            max_releases: 0,
            not_before: 0,
            not_after: 0,
        };
        let image = KeyMaterial::Image {
            key: &vendor.key_of(&Container::parse(&image.container)?)?,
            min_svn: IMAGE_SVN,
            vendor: &vendor.public_key(),
        };
        service.add_key(&self.image_key(), Layer::Kernel, &key(image))?;
        let data = KeyMaterial::Secret(&self.master);
        service.add_key(&self.data_key(), Layer::Shield, &key(data))?;
        Ok(())
    }

    fn image_key(&self) -> String {
        format!("{}-image", self.id)
    }

    fn data_key(&self) -> String {
        format!("{}-data", self.id)
    }
}

impl Drop for Entrusted {
    fn drop(&mut self) {
        withdraw_and_warn(&self.service, &self.id);
    }
}

/// All parties, and their data.
pub struct World {
    plan: Plan,
    now: i64,
    config: Config,
    /// The makers of devices without and with debug on; `None` for an existing card, which has
    /// another maker.
    makers: Option<(Manufacturer, Manufacturer)>,
    root: Vec<u8>,
    vendor: IpVendor,
    image: Image,
    old_image: Image,
    verifier: Verifier,
    entrusted: Option<Entrusted>,
    /// Of the last session: the Shield's public key, the Load Key, and what the owner drew.
    last: Option<(PublicKey, Vec<u8>, Vec<u8>)>,
    manufacturer_entropy: Source,
    vendor_entropy: Source,
    owner_entropy: Source,
    adversary_entropy: Source,
}

/// The identity of a served card.
fn served(cards: &Cards) -> Result<Option<Identity>, CliError> {
    let Cards::Served { uri, control, tls } = cards else { return Ok(None) };
    let identity = Control::open(control).and_then(|mut control| control.identity());
    // If the card is not served at all, report that error.
    let device = || shef::open_with(uri, OpenOptions { tls: tls.clone(), progress: None });
    identity.map(Some).map_err(|error| device().err().map_or_else(|| card(error), CliError::from))
}

/// What an image of the cards' design is made of.
struct Built {
    config: Config,
    accelerator: String,
    digest: [u8; 32],
    program: Vec<u8>,
}

/// The design in the cards. That of a served card is known by its process alone, which may have read
/// other sources; this program needs none.
fn built(cards: &Cards, served: Option<&Identity>) -> Result<Built, CliError> {
    if let Cards::Made(CardOptions { design, .. }) = cards {
        return Ok(Built {
            config: design.config().clone(),
            accelerator: design.name().to_owned(),
            digest: design.digest(),
            program: design.program().map_err(card)?,
        });
    }
    let found = served.map_or("", |identity| &identity.accelerator);
    let Some(identity) = served.filter(|_| found == sim::ACCELERATOR) else {
        let what = format!(
            "the served card has the accelerator {found:?}, expected {:?}",
            sim::ACCELERATOR
        );
        return Err(card(sim::CardError::Design { what }));
    };
    Ok(Built {
        config: sim::config().map_err(card)?,
        accelerator: found.to_owned(),
        digest: identity.design_digest,
        program: identity.program.clone(),
    })
}

/// The noise source that vendor and owner accept: that of the cards made here.
fn accepted_entropy(cards: &Cards) -> AcceptedEntropy {
    match cards {
        Cards::Made(CardOptions { unmeasured: true, .. }) => AcceptedEntropy::Unmeasured,
        _ => AcceptedEntropy::Tested,
    }
}

/// Reference values of kernels and shell.
fn platforms(cards: &Cards) -> ReferenceValues {
    let kernels: &[SimKernel] = match cards {
        Cards::Made(options) => match &options.engine {
            Engine::Rtl(RtlOptions { kernel: SimKernel::Firmware, .. }) => &[SimKernel::Firmware],
            _ => &[SimKernel::Native],
        },
        Cards::Served { .. } => &[SimKernel::Firmware, SimKernel::Native],
    };
    let kernel = |kernel: &SimKernel| KernelReference {
        name: "security-kernel".to_owned(),
        digest: sim::kernel_digest(*kernel),
        svn: sim::KERNEL_SVN,
    };
    ReferenceValues {
        kernels: kernels.iter().map(kernel).collect(),
        shells: vec![ShellReference { name: "simulation".to_owned(), digest: sim::shell_digest() }],
        images: Vec::new(),
    }
}

impl World {
    /// Makes the parties with key folders below `dir`.
    ///
    /// # Errors
    /// Errors of key folders and formats.
    pub fn new(dir: &Path, plan: Plan) -> Result<Self, CliError> {
        let source = |party: &str| Source::new(plan.seed, &format!("{}/{party}", plan.name));
        let (mut manufacturer_entropy, mut vendor_entropy) =
            (source("manufacturer")?, source("vendor")?);
        let now = match plan.seed {
            Some(_) => SEEDED_NOW,
            None => std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .map_or(0, |d| d.as_secs() as i64),
        };
        let open = |name: &str| KeyFolder::open(dir.join(name));
        let served = served(&plan.cards)?;
        let mut make = |name: &str, title: &str| {
            Manufacturer::open(open(name)?, title, now, &mut manufacturer_entropy)
        };
        let makers = match served {
            Some(_) => None,
            None => Some((
                make("manufacturer", "shef simulated devices")?,
                make("manufacturer-debug", "shef simulated devices, debug")?,
            )),
        };
        let (root, debug_root) = match (&makers, &served) {
            (Some((maker, debug)), _) => (maker.root().der().to_vec(), debug.root().der().to_vec()),
            (None, Some(identity)) => (identity.root.clone(), identity.debug_root.clone()),
            (None, None) => return Err(CliError::internal("a card without a maker")),
        };
        let vendor = IpVendor::open(open("vendor")?, VENDOR, &mut vendor_entropy)?;

        let Built { config, accelerator, digest: design_digest, program } =
            built(&plan.cards, served.as_ref())?;
        let entropy = accepted_entropy(&plan.cards);
        let describe = |svn| Description {
            target: sim::TARGET.to_owned(),
            accelerator: accelerator.clone(),
            svn,
            min_kernel_svn: 1,
            config: config.clone(),
            design_digest,
            chunk_size: CHUNK,
            entropy,
        };
        let old_image = vendor.build(&describe(IMAGE_SVN - 1), &program, &mut vendor_entropy)?;
        let image = vendor.build(&describe(IMAGE_SVN), &program, &mut vendor_entropy)?;

        let anchors = vec![
            anchor("simulated", RootOfTrust::Simulated, false, &root)?,
            anchor("simulated-debug", RootOfTrust::Simulated, true, &debug_root)?,
        ];
        let images = vec![vendor.reference(&image, &accelerator)];
        let reference = ReferenceValues { images, ..platforms(&plan.cards) };
        // A simulated device is accepted only because this policy names it; the same holds for
        // unprotected regions and the fault policy. Debug is not accepted.
        let mut policy = Policy::strict("demo", &[RootOfTrust::Simulated]);
        policy.allow_seeded = plan.seed.is_some();
        policy.entropy = entropy;
        policy.min_image_svn = IMAGE_SVN;
        policy.on_fault = vec![config.on_fault().name().to_owned()];
        policy.bypass = config.bypass_regions().map(|region| region.name.clone()).collect();
        let verifier = Verifier::new(OWNER, anchors, reference, policy);
        let entrusted = match &plan.service {
            Some(service) => {
                Some(Entrusted::new(service, &verifier, &vendor, &image, &mut vendor_entropy)?)
            }
            None => None,
        };
        Ok(Self {
            entrusted,
            last: None,
            now,
            config,
            makers,
            root,
            vendor,
            image,
            old_image,
            verifier,
            manufacturer_entropy,
            vendor_entropy,
            owner_entropy: source("owner")?,
            adversary_entropy: source("adversary")?,
            plan,
        })
    }

    /// Makes a device (secret, DeviceID certificate, power-on), or opens the existing one.
    ///
    /// # Errors
    /// Card errors.
    pub fn card(&mut self, progress: &mut dyn FnMut(&str)) -> Result<(Host, Probe), CliError> {
        self.make(false, progress)
    }

    /// Runs `body` with a device in debug mode, certified by the CA for such devices. An existing
    /// card is switched to debug, which the host may do.
    ///
    /// # Errors
    /// Errors of the card and of `body`.
    pub fn with_debug_card<T>(
        &mut self,
        host: &mut Host,
        probe: &Probe,
        body: impl FnOnce(&mut Self, &mut Host, &Probe) -> Result<T, CliError>,
    ) -> Result<T, CliError> {
        match probe.location() {
            Location::InProcess(_) => {
                let (mut host, probe) = self.make(true, &mut |_| {})?;
                body(self, &mut host, &probe)
            }
            Location::Served(control) => {
                // Debug halts the kernel; a reset restarts the card.
                control.borrow_mut().set_debug(true).map_err(card)?;
                host.reset()?;
                let result = body(self, host, probe);
                control.borrow_mut().set_debug(false).map_err(card)?;
                host.reset()?;
                result
            }
        }
    }

    fn make(
        &mut self,
        debug: bool,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(Host, Probe), CliError> {
        let options = match &self.plan.cards {
            Cards::Made(options) => CardOptions { seed: self.plan.seed, debug, ..options.clone() },
            Cards::Served { uri, control, tls } => {
                let control = Control::open(control).map_err(card)?;
                let host = shef::open_with(uri, OpenOptions { tls: tls.clone(), progress: None })?;
                let (host, tap) = tap(host);
                return Ok((host, Probe::new(Location::Served(RefCell::new(control)), tap)));
            }
        };
        let (maker, debug_maker) = self
            .makers
            .as_ref()
            .ok_or_else(|| CliError::internal("a served card has another maker"))?;
        let manufacturer = if debug { debug_maker } else { maker };
        let checks = matches!(&options.engine, Engine::Rtl(rtl) if rtl.check);
        let mut blank = Blank::new(options, progress).map_err(card)?;
        let device_id = blank.burn(manufacturer.device_secret(&mut self.manufacturer_entropy));
        let made = blank.finish(manufacturer.certify(&device_id, self.now)).map_err(card)?;
        if checks {
            made.probe().on_report(|report| shef_console::output::warn(report));
        }
        let location = Location::InProcess(made.probe());
        let (host, tap) = tap(Host::new(Box::new(made)));
        Ok((host, Probe::new(location, tap)))
    }

    /// The Shield's configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Anchors, reference values and policy.
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// The image that is released.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// The key that signs the vendor's images.
    pub fn vendor_key(&self) -> shef_proto::hpke_suite::PublicKey {
        self.vendor.public_key()
    }

    /// The manufacturer's root certificate (DER).
    pub fn root(&self) -> &[u8] {
        &self.root
    }

    /// The container of an older image from the same vendor.
    pub fn old_image(&self) -> Vec<u8> {
        self.old_image.container.clone()
    }

    /// The dishonest host's randomness.
    pub fn adversary_entropy(&mut self) -> &mut Source {
        &mut self.adversary_entropy
    }

    /// The vendor's round with a kernel: challenge, appraisal, release of the key.
    ///
    /// # Errors
    /// Appraisal and host errors.
    pub fn release(&mut self, host: &mut Host) -> Result<Release, SdkError> {
        if let Some(entrusted) = &self.entrusted {
            return Ok(entrusted.service.release_image_key(host, &entrusted.image_key(), None)?.0);
        }
        self.vendor.release(
            host,
            &self.image,
            IMAGE_SVN,
            &self.verifier,
            self.now,
            &mut self.vendor_entropy,
        )
    }

    /// The same with the manufacturer's root registered for another kind of root of trust, by a
    /// vendor that appraises locally.
    ///
    /// # Errors
    /// Appraisal and host errors.
    pub fn release_under(
        &mut self,
        host: &mut Host,
        kind: RootOfTrust,
    ) -> Result<Result<Release, SdkError>, CliError> {
        let anchors = vec![anchor("hardware", kind, false, &self.root)?];
        let mut policy = Policy::strict("production", &[kind, RootOfTrust::Simulated]);
        policy.allow_seeded = self.plan.seed.is_some();
        policy.entropy = accepted_entropy(&self.plan.cards);
        let verifier = Verifier::new(OWNER, anchors, self.verifier.reference().clone(), policy);
        Ok(self.vendor.release(
            host,
            &self.image,
            IMAGE_SVN,
            &verifier,
            self.now,
            &mut self.vendor_entropy,
        ))
    }

    /// Runs the kernel round and loads the image.
    ///
    /// # Errors
    /// Appraisal, kernel and host errors.
    pub fn load(&mut self, host: &mut Host) -> Result<(), SdkError> {
        let release = self.release(host)?;
        host.load_image(&self.image.container, release.key_box).map(|_| ())
    }

    /// Brings a card to a loaded image and a Shield that waits for a Load Key. The image stays if
    /// the last session has ended; any other card is reset and loaded.
    ///
    /// # Errors
    /// As [`World::load`].
    pub fn ready(&mut self, host: &mut Host) -> Result<(), SdkError> {
        match host.status().map(|status| ctl::STATUS_STATE.get(status)) {
            Ok(ctl::STATUS_STATE_FRESH) => Ok(()),
            Ok(ctl::STATUS_STATE_CLOSED) => host.new_session(),
            _ => {
                host.reset()?;
                self.load(host)
            }
        }
    }

    /// The owner's expectation: the vendor's image, and no other that the verifier knows.
    pub fn expect(&self) -> Expect {
        Expect::image(&self.config, &self.image.digest).signer(&self.vendor.id())
    }

    /// The owner's round with the Shield: challenge and appraisal.
    ///
    /// # Errors
    /// Appraisal and host errors.
    pub fn attest<'h>(
        &mut self,
        host: &'h mut Host,
    ) -> Result<Session<'h, shef::Attested>, SdkError> {
        let session = Session::<Connected>::connect(host)?;
        let expect = self.expect();
        if let Some(entrusted) = &self.entrusted {
            let expect = expect.floor(self.verifier.policy().clone());
            let key = entrusted.data_key();
            return session.attest_by(
                &entrusted.service,
                (&key, None),
                &expect,
                self.now,
                &mut self.owner_entropy,
            );
        }
        session.attest(&self.verifier, &expect, self.now, &mut self.owner_entropy)
    }

    /// The owner's Load Key round.
    ///
    /// # Errors
    /// The Shield's refusal, and host errors.
    pub fn key<'h>(
        &mut self,
        session: Session<'h, shef::Attested>,
    ) -> Result<Session<'h, Keyed>, SdkError> {
        let shield = session.verified().claims().key;
        let mut drawn = Drawn::new(&mut self.owner_entropy);
        let session = session.key(OWNER, &first_epochs(&self.config, 1), &mut drawn)?;
        self.last = Some((shield, session.load_key().to_vec(), drawn.bytes));
        Ok(session)
    }

    /// The keys of the last session, so that other tools can check what was sealed.
    ///
    /// # Errors
    /// If there was no session.
    pub fn session_keys(&self) -> Result<SessionKeys, SdkError> {
        let none = || SdkError::Load(shef_proto::load::LoadError::Confirmation);
        let (shield, load_key, drawn) = self.last.as_ref().ok_or_else(none)?;
        let released = self.entrusted.as_ref().map(|entrusted| &entrusted.master);
        Ok(session_keys(&self.config, shield, load_key, drawn, released)?)
    }

    /// Appraisal and Load Key.
    ///
    /// # Errors
    /// As [`World::attest`] and [`World::key`].
    pub fn keyed<'h>(&mut self, host: &'h mut Host) -> Result<Session<'h, Keyed>, SdkError> {
        let session = self.attest(host)?;
        self.key(session)
    }

    /// All steps up to a keyed session.
    ///
    /// # Errors
    /// As [`World::load`] and [`World::keyed`].
    pub fn session<'h>(&mut self, host: &'h mut Host) -> Result<Session<'h, Keyed>, SdkError> {
        self.load(host)?;
        self.keyed(host)
    }

    /// Evidence of the Shield for a challenge of the owner, not appraised.
    ///
    /// # Errors
    /// Kernel and host errors.
    pub fn shield_evidence(&mut self, host: &mut Host) -> Result<Vec<u8>, SdkError> {
        let challenge = match &self.entrusted {
            Some(entrusted) => entrusted.service.session(Layer::Shield, None)?.challenge().clone(),
            None => Challenge::draw(self.verifier.audience(), &mut self.owner_entropy),
        };
        host.shield_evidence(&challenge)
    }
}

fn anchor(
    name: &str,
    kind: RootOfTrust,
    debug: bool,
    root: &[u8],
) -> Result<TrustAnchor, CliError> {
    TrustAnchor::new(name, kind, debug, root).map_err(|e| CliError::new(e.code(), e.to_string()))
}
