//! The Security Kernel of a card, behind its mailbox: native, or boot ROM and firmware on the
//! Verilated subsystem.

use std::cell::RefCell;
use std::rc::Rc;

use shef_device::{SimKernel, mailbox};
use shef_kernel::{
    BootError, Kernel, KernelImage, Measurement, Medium, SIGNATURE_FILE_LEN, SIMULATED_SIGNER,
    admit, boot,
};
use shef_project::TARGET;
use shef_proto::cose::SigningKey;
use shef_proto::crypto;
use shef_proto::entropy::Entropy;
use shef_regs::bus::sys;
use shef_rtl::{
    KernelPort, KernelSim, KernelSnapshot, KernelStraps, Library, Moment, Noise, fair_noise,
    sparse_noise,
};

use crate::CardError;
use crate::platform::{
    CardPlatform, FIRMWARE, Fuses, Hardware, KERNEL_SVN, Source, kernel_image, shell_digest,
};

/// Signature of [`FIRMWARE`].
const SIGNATURE: &[u8; SIGNATURE_FILE_LEN] =
    include_bytes!("../../../attestation/firmware/kernel.sig");

/// Maximum cycles of a boot that neither ends nor raises an alert.
const BOOT_LIMIT: u64 = 60_000_000;
/// Cycles that the kernel runs while the host polls for its answer.
const POLL_CYCLES: u64 = 20_000;
/// Cycles between two polls of the mailbox.
const LOOK_CYCLES: u64 = 200;
/// Cycles within which a halt clears every memory.
const HALT_CYCLES: u64 = 70_000;
/// Maximum cycles of the Shield's clock between two accesses of the kernel; the Shield is otherwise
/// idle then.
const SHIELD_CYCLES: u64 = 4096;

/// Fault of the next boot; only cards with the firmware's kernel boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootFault {
    /// One bit of the kernel image is flipped.
    ImageBit,
    /// The kernel is older than the boot ROM allows, but signed by the right signer.
    OldKernel,
    /// The kernel is new, but signed by another signer.
    OtherSigner,
    /// The noise source is stuck.
    StuckNoise,
    /// No fault, but the caller does not wait for the end of the boot: host accesses overlap with
    /// it.
    Unattended,
}

impl BootFault {
    /// Kernel image and signature on the boot medium.
    fn kernel(self) -> (Vec<u8>, [u8; SIGNATURE_FILE_LEN]) {
        let mut image = FIRMWARE.to_vec();
        match (self, KernelImage::parse(FIRMWARE)) {
            (Self::OldKernel, Ok(kernel)) => {
                signed(KernelImage { svn: 0, ..kernel }.to_bytes(), SIMULATED_SIGNER)
            }
            (Self::OtherSigner, Ok(kernel)) => {
                signed(KernelImage { svn: KERNEL_SVN + 1, ..kernel }.to_bytes(), b"somebody else")
            }
            (Self::ImageBit, _) => {
                let middle = image.len() / 2;
                image[middle] ^= 1;
                (image, *SIGNATURE)
            }
            _ => (image, *SIGNATURE),
        }
    }
}

/// A kernel image, signed with the key derived from `signer`.
fn signed(image: Vec<u8>, signer: &[u8]) -> (Vec<u8>, [u8; SIGNATURE_FILE_LEN]) {
    let key = SigningKey::derive(signer);
    let mut signature = [0; SIGNATURE_FILE_LEN];
    let (rs, public) = signature.split_at_mut(64);
    rs.copy_from_slice(&key.sign(&image));
    public.copy_from_slice(&key.public_key().xy());
    (image, signature)
}

/// A stage of a boot.
#[derive(Debug, Clone, Copy)]
pub struct BootStage {
    /// `clear`, `measure`, `verify` or `identify`.
    pub name: &'static str,
    /// Clock cycles of the kernel's processor.
    pub cycles: u64,
    /// Milliseconds of wall clock.
    pub ms: u64,
}

/// A bench's view of the firmware's kernel.
#[derive(Debug, Clone, Default)]
pub struct KernelView {
    /// Clock cycles of its processor.
    pub cycles: u64,
    /// The first alert since reset, 0 for none.
    pub alert: u64,
    /// The card's first boot, in the order in which it happened.
    pub boot: Vec<BootStage>,
}

/// State shared between the bench and the card's power-on.
#[derive(Default)]
pub(crate) struct Power {
    pub(crate) next: Option<BootFault>,
    /// Absent if the kernel is native.
    pub(crate) seen: Option<KernelView>,
}

impl Power {
    /// Records the state that a bench may observe.
    fn saw(&mut self, sim: &KernelSim) {
        let seen = self.seen.get_or_insert_default();
        (seen.cycles, seen.alert) = (sim.cycles(), sim.alert());
    }
}

/// The files of a boot medium with the native kernel: image, signature, certificate.
pub(crate) fn boot_files(fuses: &Fuses) -> [Vec<u8>; 3] {
    let (image, signature) = signed(kernel_image(SimKernel::Native), SIMULATED_SIGNER);
    [image, signature.to_vec(), fuses.certificate.clone()]
}

/// A Security Kernel and the host's side of its mailbox. Offsets are those of the control window.
///
/// An access returns `None` or `false` if the bus answers with an error.
pub(crate) trait Mailbox {
    /// Powers on with the manufacturer's fuses, and boots from the card's own medium.
    fn power_on(&mut self, fuses: &Rc<Fuses>) -> Result<(), CardError>;
    /// Powers on, and boots from a medium of the host. Returns the alert, 0 for none.
    fn boot(&mut self, fuses: &Rc<Fuses>, medium: &[u8]) -> Result<u32, CardError> {
        let _ = (fuses, medium);
        Err(CardError::Design {
            what: "only a native kernel boots from the host's medium".to_owned(),
        })
    }
    /// The shell's debug state changes, which halts the kernel until the next power-on.
    fn debug(&mut self, on: bool) -> Result<(), CardError>;
    /// Reads a word.
    fn read(&mut self, offset: u32) -> Result<Option<u32>, CardError>;
    /// Writes a word.
    fn write(&mut self, offset: u32, value: u32) -> Result<bool, CardError>;
}

/// The kernel as a function of this program. It answers within the doorbell write.
///
/// It refuses a medium as the boot ROM does, and any kernel but itself.
pub(crate) struct Native {
    hardware: Hardware,
    kernel: Option<Kernel<CardPlatform>>,
    request: Vec<u8>,
    answer: Vec<u8>,
    status: u32,
}

impl Native {
    pub(crate) fn new(hardware: Hardware) -> Self {
        Self {
            hardware,
            kernel: None,
            request: vec![0; mailbox::MAX_REQUEST],
            answer: Vec::new(),
            status: mailbox::STATUS_IDLE,
        }
    }

    /// Boots from a medium of the host, as the boot ROM does.
    fn boot_from(
        &self,
        fuses: &Rc<Fuses>,
        medium: &[u8],
    ) -> Result<Kernel<CardPlatform>, BootError> {
        let bad = |what| BootError::KernelImage { what };
        let bytes = |at: usize, len: usize| {
            medium.get(at..).and_then(|rest| rest.get(..len)).ok_or(bad("length"))
        };
        let word = |at| bytes(at, 4).map_or([0; 4], |word| [word[0], word[1], word[2], word[3]]);
        let layout = Medium::read(medium.len(), medium.len(), word)?;
        let image = bytes(Medium::IMAGE, layout.image_len)?;
        let KernelImage { svn, version, .. } = KernelImage::parse(image)?;
        let kernel = Measurement { digest: KernelImage::digest(image), svn, version };
        let signature = bytes(layout.signature(), SIGNATURE_FILE_LEN)?;
        let signature = signature.first_chunk().ok_or(bad("length"))?;
        let signer = crypto::sha256(&SigningKey::derive(SIMULATED_SIGNER).public_key().xy());
        admit(&kernel, signature, &signer, KERNEL_SVN)?;
        if image != kernel_image(SimKernel::Native) {
            return Err(bad("another kernel than this card's native one"));
        }
        let certificate = bytes(layout.certificate(), layout.certificate_len)?.to_vec();
        boot(CardPlatform::new(self.hardware.clone(), Rc::clone(fuses), certificate), image)
    }

    /// The old kernel is gone before a new one reads the fuses.
    fn power_off(&mut self) {
        self.kernel = None;
        self.request.fill(0);
        self.answer.clear();
        self.status = mailbox::STATUS_IDLE;
    }
}

const ANSWER_END: u32 = mailbox::ANSWER + mailbox::MAX_ANSWER as u32;

impl Mailbox for Native {
    fn power_on(&mut self, fuses: &Rc<Fuses>) -> Result<(), CardError> {
        self.power_off();
        let certificate = fuses.certificate.clone();
        let platform = CardPlatform::new(self.hardware.clone(), Rc::clone(fuses), certificate);
        self.kernel = Some(boot(platform, &kernel_image(SimKernel::Native))?);
        Ok(())
    }

    fn boot(&mut self, fuses: &Rc<Fuses>, medium: &[u8]) -> Result<u32, CardError> {
        self.power_off();
        match self.boot_from(fuses, medium) {
            Ok(kernel) => self.kernel = Some(kernel),
            Err(BootError::Entropy { .. }) => return Ok(sys::ALERT_CODE_NOISE),
            Err(_) => return Ok(sys::ALERT_CODE_IMAGE),
        }
        Ok(0)
    }

    fn debug(&mut self, _: bool) -> Result<(), CardError> {
        self.power_off();
        self.hardware.unmount()
    }

    fn read(&mut self, offset: u32) -> Result<Option<u32>, CardError> {
        Ok(match offset {
            mailbox::STATUS => Some(self.status),
            mailbox::RSP_LEN => Some(self.answer.len() as u32),
            mailbox::ANSWER..ANSWER_END => {
                let at = (offset - mailbox::ANSWER) as usize;
                let mut word = [0; 4];
                for (to, from) in word.iter_mut().zip(self.answer.iter().skip(at)) {
                    *to = *from;
                }
                Some(u32::from_le_bytes(word))
            }
            _ => None,
        })
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<bool, CardError> {
        if offset == mailbox::REQ_LEN {
            let Some(kernel) = &mut self.kernel else { return Ok(false) };
            let len = (value as usize).min(self.request.len());
            self.answer = kernel.handle(&self.request[..len]);
            self.answer.truncate(mailbox::MAX_ANSWER);
            self.status = mailbox::STATUS_ANSWER;
            return Ok(true);
        }
        let place = self
            .request
            .get_mut((offset - mailbox::REQUEST) as usize..)
            .and_then(|rest| rest.first_chunk_mut::<4>());
        Ok(place.map(|word| *word = value.to_le_bytes()).is_some())
    }
}

/// `shef_kernel`, whose processor runs boot ROM and firmware. Its clock runs only while the mailbox
/// is accessed.
pub(crate) struct Firmware {
    hardware: Hardware,
    power: Rc<RefCell<Power>>,
    library: Library,
    running: Option<KernelSim>,
    /// The subsystem after boot, with and without debug: the ROM draws no randomness, and no noise
    /// is buffered in it ([`sparse_noise`]), so that a restored snapshot equals a real power-on.
    booted: Vec<(bool, KernelSnapshot)>,
}

impl Firmware {
    pub(crate) fn new(hardware: Hardware, power: Rc<RefCell<Power>>, library: Library) -> Self {
        Self { hardware, power, library, running: None, booted: Vec::new() }
    }

    fn sim(&mut self) -> Result<&mut KernelSim, CardError> {
        self.running
            .as_mut()
            .ok_or_else(|| CardError::Design { what: "the card was not powered on".to_owned() })
    }
}

impl Mailbox for Firmware {
    fn power_on(&mut self, fuses: &Rc<Fuses>) -> Result<(), CardError> {
        let straps = KernelStraps {
            uds: *fuses.uds,
            root: 0,
            target: KernelStraps::name(TARGET),
            shell: shell_digest(),
            shell_flags: 0,
            debug: fuses.debug,
            seeded: matches!(*self.hardware.source.borrow(), Source::Seeded(_)),
            unmeasured: matches!(
                *self.hardware.source.borrow(),
                Source::System { unmeasured: true }
            ),
        };
        let mut sim = match self.running.take() {
            Some(mut sim) => {
                sim.strap(&straps)?;
                sim
            }
            None => {
                let mut sim = KernelSim::new(&self.library, &straps)?;
                sim.environment.shield = Some(Box::new(self.hardware.clone()));
                sim.environment.fabric = Box::new(self.hardware.clone());
                sim
            }
        };
        let fault = self.power.borrow_mut().next.take();
        let (image, signature) =
            fault.map_or_else(|| (FIRMWARE.to_vec(), *SIGNATURE), BootFault::kernel);
        sim.environment.medium = Medium::build(&image, &signature, &fuses.certificate);
        sim.environment.noise = match fault {
            Some(BootFault::StuckNoise) => Box::new(|_| Some(false)),
            _ => self.hardware.noise(),
        };
        match self.booted.iter().find(|(debug, _)| *debug == fuses.debug) {
            Some((_, snapshot)) if fault.is_none() => sim.restore(snapshot)?,
            _ => {
                if fault.is_none() {
                    // Each power-on from this snapshot tests and draws fresh noise.
                    sim.environment.noise = sparse_noise(self.hardware.noise());
                }
                let stages = Stages::mark(&mut sim, &image, &fuses.certificate);
                sim.reset();
                if fault != Some(BootFault::Unattended) {
                    sim.boot(BOOT_LIMIT)?;
                }
                if fault.is_none() {
                    self.power.borrow_mut().seen.get_or_insert_default().boot = stages.end(&sim);
                    self.booted.push((fuses.debug, sim.save()?));
                    sim.environment.noise = self.hardware.noise();
                }
            }
        }
        self.power.borrow_mut().saw(&sim);
        self.running = Some(sim);
        Ok(())
    }

    fn debug(&mut self, on: bool) -> Result<(), CardError> {
        let sim = self.sim()?;
        sim.debug(on);
        sim.step(HALT_CYCLES);
        let Self { power, running: Some(sim), .. } = self else { return Ok(()) };
        power.borrow_mut().saw(sim);
        Ok(())
    }

    fn read(&mut self, offset: u32) -> Result<Option<u32>, CardError> {
        let sim = self.sim()?;
        let port = u64::from(offset - mailbox::REQUEST);
        let mut word = sim.host_read(port)?;
        if offset == mailbox::STATUS {
            let end = sim.cycles() + POLL_CYCLES;
            while word == Some(mailbox::STATUS_BUSY) && sim.cycles() < end {
                sim.step(LOOK_CYCLES);
                word = sim.host_read(port)?;
            }
        }
        let Self { power, running: Some(sim), .. } = self else { return Ok(word) };
        power.borrow_mut().saw(sim);
        Ok(word)
    }

    fn write(&mut self, offset: u32, value: u32) -> Result<bool, CardError> {
        Ok(self.sim()?.host_write(u64::from(offset - mailbox::REQUEST), value)?)
    }
}

/// Start of each stage of a boot, as seen by the boot medium.
struct Stages {
    begin: Moment,
    /// First words of image, signature and certificate.
    words: [u64; 3],
}

impl Stages {
    fn mark(sim: &mut KernelSim, image: &[u8], certificate: &[u8]) -> Self {
        let medium = Medium { image_len: image.len(), certificate_len: certificate.len() };
        // The first access is to the medium's own first word.
        let words = [0, medium.signature(), medium.certificate()].map(|at| at as u64 / 4);
        sim.environment.marks = words.map(|word| (word, None)).into();
        Self { begin: sim.moment(), words }
    }

    /// Each stage lasts until the next one begins; stages that never began are omitted.
    fn end(&self, sim: &KernelSim) -> Vec<BootStage> {
        let marks = self.words.map(|word| sim.environment.marks.get(&word).copied().flatten());
        let begins = [Some(self.begin), marks[0], marks[1], marks[2], Some(sim.moment())];
        let names = ["clear", "measure", "verify", "identify"];
        let stage = |(name, pair): (&'static str, &[Option<Moment>])| match pair {
            [Some(from), Some(to)] => {
                let ms = u64::try_from((to.time - from.time).as_millis()).unwrap_or(u64::MAX);
                Some(BootStage { name, cycles: to.cycle - from.cycle, ms })
            }
            _ => None,
        };
        names.into_iter().zip(begins.windows(2)).filter_map(stage).collect()
    }
}

impl Hardware {
    /// Raw bits for the noise port, one every four cycles.
    fn noise(&self) -> Noise {
        if let Source::Seeded(source) = &mut *self.source.borrow_mut() {
            let mut seed = [0; 8];
            source.fill(&mut seed);
            return fair_noise(u64::from_le_bytes(seed));
        }
        let (mut bytes, mut at) = ([0_u8; 512], usize::MAX);
        Box::new(move |cycle| {
            if !cycle.is_multiple_of(4) {
                return None;
            }
            if at >= 8 * bytes.len() {
                // If the system has no randomness, the source is silent, and the kernel's health
                // tests detect that.
                getrandom::fill(&mut bytes).ok()?;
                at = 0;
            }
            let bit = bytes[at / 8] >> (at % 8) & 1 == 1;
            at += 1;
            Some(bit)
        })
    }
}

/// The Shield's kernel port, which does not respond while the fabric holds no design.
impl KernelPort for Hardware {
    fn pass(&mut self, cycles: u64) {
        let mut backend = self.backend.borrow_mut();
        let end = backend.cycles().map(|now| now + cycles.min(SHIELD_CYCLES));
        while backend.cycles() < end && backend.advance().is_ok() {}
    }

    fn read(&mut self, offset: u32) -> Option<u32> {
        self.krn_read(offset).ok()
    }

    fn write(&mut self, offset: u32, value: u32) -> bool {
        self.krn_write(offset, value).is_ok()
    }
}

/// The configuration port.
impl shef_rtl::Fabric for Hardware {
    fn clear(&mut self) {
        // The design is removed even if resetting its Shield fails.
        let _ = self.unmount();
    }

    fn configure(&mut self, image: &[u8]) -> Option<[u8; 32]> {
        self.mount(image).ok()?;
        self.design()
    }
}
