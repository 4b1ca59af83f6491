//! The adapter's page in BAR0 of a card on F2, and the boot medium behind it
//! (`shell-rtl/regs/f2.toml`).

use std::path::Path;
use std::time::{Duration, Instant};

use shef_kernel::SIGNATURE_FILE_LEN;
use shef_regs::f2;

use crate::DeviceError;

/// The page in BAR0.
pub const PAGE: u64 = f2::BASE as u64;
/// The boot medium in BAR0.
pub const MEDIUM: u64 = 0x100_0000;
/// Value of [`reg::ID`].
pub const ID: u32 = 0x3246_5348;
/// Value of [`reg::VERSION`].
pub const VERSION: u32 = 1;
/// Time in which the adapter answers after a reset.
pub const RETURN: Duration = Duration::from_millis(100);
/// Time in which a kernel boots: 5.8 million cycles of its clock, at 8 MHz at least.
pub const BOOT: Duration = Duration::from_secs(2);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(1);
/// Longest kernel image.
const MAX_IMAGE: usize = 0x4_0000;
/// Longest file of a medium.
const MAX_FILE: u64 = 1 << 20;

/// Registers of the page, by their offsets in it.
pub mod reg {
    use shef_regs::f2;

    /// `HSF2`.
    pub const ID: u64 = f2::ID as u64;
    /// Version of the page.
    pub const VERSION: u64 = f2::VERSION as u64;
    /// State, see [`super::Status`].
    pub const STATUS: u64 = f2::STATUS as u64;
    /// Clock of the core in kHz.
    pub const CORE_KHZ: u64 = f2::CORE_KHZ as u64;
    /// PCIe parameters as the shell sees them.
    pub const PCIE: u64 = f2::PCIE as u64;
    /// Words of the medium.
    pub const MEDIUM_WORDS: u64 = f2::MEDIUM_WORDS as u64;
    /// Commands.
    pub const CONTROL: u64 = f2::CONTROL as u64;
    /// Words written to the medium since the last reset.
    pub const MEDIUM_WRITES: u64 = f2::MEDIUM_WRITES as u64;
}

/// Freezes the medium and releases core and kernel.
const START: u32 = f2::CONTROL_COMMAND_START;
/// Wipes, resets and opens the medium again.
const RESET: u32 = f2::CONTROL_COMMAND_RESET;

/// Access to BAR0, by words of 32 bits.
pub trait Window {
    /// Reads a word.
    ///
    /// # Errors
    /// The transport's.
    fn read(&mut self, offset: u64) -> Result<u32, DeviceError>;

    /// Writes a word.
    ///
    /// # Errors
    /// The transport's.
    fn write(&mut self, offset: u64, value: u32) -> Result<(), DeviceError>;

    /// Name of the card, for messages.
    fn card(&self) -> String;
}

/// State of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(u32);

impl Status {
    const BITS: [(u32, &str); 6] = [
        (f2::STATUS_LOCKED.put(1), "clock locked"),
        (f2::STATUS_RUNNING.put(1), "running"),
        (f2::STATUS_READY.put(1), "kernel ready"),
        (f2::STATUS_MEMORY_READY.put(1), "memory ready"),
        (f2::STATUS_FROZEN.put(1), "medium frozen"),
        (f2::STATUS_WIPING.put(1), "wiping"),
    ];

    fn has(self, name: &str) -> bool {
        Self::BITS.iter().any(|(bit, known)| *known == name && self.0 & bit != 0)
    }

    fn alert(self) -> u32 {
        f2::STATUS_ALERT.get(self.0)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (bit, name) in Self::BITS {
            write!(f, "{}{name}, ", if self.0 & bit == 0 { "not " } else { "" })?;
        }
        write!(f, "alert {}", self.alert())
    }
}

/// Reads a word, where all ones is no value.
fn word(window: &mut dyn Window, offset: u64) -> Result<u32, DeviceError> {
    match window.read(offset)? {
        u32::MAX => Err(DeviceError::Gone { offset: offset as u32 }),
        value => Ok(value),
    }
}

/// Waits until the page answers, and checks that it is the adapter's. Returns the waiting time.
///
/// # Errors
/// [`DeviceError::NoReturn`], [`DeviceError::Adapter`], and those of the transport.
pub fn present(window: &mut dyn Window, limit: Duration) -> Result<Duration, DeviceError> {
    let begun = Instant::now();
    loop {
        let found = window.read(PAGE + reg::ID)?;
        if found == ID {
            break;
        }
        let card = window.card();
        // Another page answers, and will not become ours.
        if found != u32::MAX && found != 0 {
            return Err(DeviceError::Adapter { card, name: "ID", found, expected: ID });
        }
        if begun.elapsed() >= limit {
            return Err(DeviceError::NoReturn { card, found, ms: begun.elapsed().as_millis() });
        }
        std::thread::sleep(LOOK);
    }
    let found = word(window, PAGE + reg::VERSION)?;
    if found != VERSION {
        let card = window.card();
        return Err(DeviceError::Adapter { card, name: "VERSION", found, expected: VERSION });
    }
    Ok(begun.elapsed())
}

/// PCIe parameters as the shell sees them: maximum payload and maximum read request in bytes.
///
/// # Errors
/// [`DeviceError::Gone`], and those of the transport.
pub fn pcie(window: &mut dyn Window) -> Result<[u32; 2], DeviceError> {
    let value = word(window, PAGE + reg::PCIE)?;
    Ok([128 << (value & 3), 128 << (value >> 4 & 7)])
}

/// The boot medium of a card: kernel image, its signature, and the certificate of the image in the
/// slot. Nothing on it is secret, and the card trusts none of it.
#[derive(Debug, Clone)]
pub struct Medium(Vec<u8>);

impl Medium {
    /// The files of a medium in a folder: kernel image, signature, certificate.
    pub const FILES: [&str; 3] = ["kernel.img", "kernel.sig", "device-id.der"];

    /// Builds a medium from the contents of its files, and checks it as the boot ROM does.
    ///
    /// # Errors
    /// [`DeviceError::Medium`].
    pub fn new(image: &[u8], signature: &[u8], certificate: &[u8]) -> Result<Self, DeviceError> {
        let wrong = |what: String| DeviceError::Medium { what };
        let found = signature.len();
        let signature = signature.try_into().map_err(|_| {
            wrong(format!("the signature has {found} bytes, expected {SIGNATURE_FILE_LEN}"))
        })?;
        if certificate.is_empty() {
            return Err(wrong("the certificate is empty".to_owned()));
        }
        let bytes = shef_kernel::Medium::build(image, signature, certificate);
        let word = |at: usize| bytes.get(at..at + 4).map_or([0; 4], |b| [b[0], b[1], b[2], b[3]]);
        shef_kernel::Medium::read(bytes.len(), MAX_IMAGE, word)
            .map_err(|e| wrong(e.to_string()))?;
        Ok(Self(bytes))
    }

    /// Builds a medium from the [`Medium::FILES`] of a folder.
    ///
    /// # Errors
    /// [`DeviceError::MediumFile`], [`DeviceError::Medium`].
    pub fn read(folder: &Path) -> Result<Self, DeviceError> {
        let [image, signature, certificate] = Self::FILES.map(|name| {
            let file = folder.join(name);
            shef_files::regular::read(&file, MAX_FILE)
                .map_err(|e| DeviceError::MediumFile { file, why: e.to_string() })
        });
        Self::new(&image?, &signature?, &certificate?)
    }

    /// Number of 32-bit words.
    #[must_use]
    pub fn words(&self) -> usize {
        self.0.len().div_ceil(4)
    }
}

/// Boots the kernel: writes the medium and reads it back, starts, and waits until the kernel is
/// ready.
///
/// # Errors
/// [`DeviceError::Gone`], [`DeviceError::Medium`], [`DeviceError::MediumChanged`],
/// [`DeviceError::NoKernel`], and those of the transport.
pub fn boot(window: &mut dyn Window, medium: &Medium, limit: Duration) -> Result<(), DeviceError> {
    let words: Vec<u32> = medium
        .0
        .chunks(4)
        .map(|chunk| {
            let mut word = [0; 4];
            word[..chunk.len()].copy_from_slice(chunk);
            u32::from_le_bytes(word)
        })
        .collect();
    let room = word(window, PAGE + reg::MEDIUM_WORDS)? as usize;
    if words.len() > room {
        let what = format!("it has {} words, and the card has room for {room}", words.len());
        return Err(DeviceError::Medium { what });
    }
    window.write(PAGE + reg::CONTROL, RESET)?;
    until(window, limit, |state| !state.has("wiping") && !state.has("medium frozen"))?;
    for (at, value) in (0..).zip(&words) {
        window.write(MEDIUM + 4 * at, *value)?;
    }
    for (number, written) in words.iter().enumerate() {
        let found = window.read(MEDIUM + 4 * number as u64)?;
        if found != *written {
            return Err(DeviceError::MediumChanged { word: number, found, written: *written });
        }
    }
    let writes = word(window, PAGE + reg::MEDIUM_WRITES)?;
    if writes as usize != words.len() {
        let what = format!("{writes} words were written to it, and {} were sent", words.len());
        return Err(DeviceError::Medium { what });
    }
    until(window, limit, |state| state.has("clock locked") && state.has("memory ready"))?;
    window.write(PAGE + reg::CONTROL, START)?;
    until(window, limit, |state| state.has("kernel ready") || state.alert() != 0)?;
    let state = Status(word(window, PAGE + reg::STATUS)?);
    if state.has("kernel ready") && state.alert() == 0 && state.has("medium frozen") {
        return Ok(());
    }
    Err(DeviceError::NoKernel { state: state.to_string(), ms: limit.as_millis() })
}

/// Waits for a state.
fn until(
    window: &mut dyn Window,
    limit: Duration,
    wanted: impl Fn(Status) -> bool,
) -> Result<(), DeviceError> {
    let begun = Instant::now();
    loop {
        let state = Status(word(window, PAGE + reg::STATUS)?);
        if wanted(state) {
            return Ok(());
        }
        if begun.elapsed() >= limit {
            let ms = begun.elapsed().as_millis();
            return Err(DeviceError::NoKernel { state: state.to_string(), ms });
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether a card with this page waits for its boot medium: its kernel does not run.
///
/// # Errors
/// Those of the transport.
pub fn waits(window: &mut dyn Window) -> Result<bool, DeviceError> {
    let is = window.read(PAGE + reg::ID)? == ID && window.read(PAGE + reg::VERSION)? == VERSION;
    Ok(is && !Status(window.read(PAGE + reg::STATUS)?).has("kernel ready"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A card without a kernel's code: the rules of the adapter's page.
    #[derive(Default)]
    struct Model {
        memory: Vec<u32>,
        frozen: bool,
        ready: bool,
        writes: u32,
        /// What the card does wrong.
        fault: &'static str,
    }

    impl Model {
        fn new(fault: &'static str) -> Self {
            Self { memory: vec![0; 1 << 16], fault, ..Self::default() }
        }
    }

    impl Window for Model {
        fn read(&mut self, offset: u64) -> Result<u32, DeviceError> {
            if self.fault == "gone" {
                return Ok(u32::MAX);
            }
            Ok(match offset {
                o if o == PAGE + reg::ID => match self.fault {
                    "other image" => 0x5853_4d48,
                    "dead" => 0,
                    _ => ID,
                },
                o if o == PAGE + reg::VERSION => {
                    if self.fault == "version" {
                        2
                    } else {
                        1
                    }
                }
                o if o == PAGE + reg::MEDIUM_WORDS => self.memory.len() as u32,
                o if o == PAGE + reg::MEDIUM_WRITES => self.writes,
                o if o == PAGE + reg::STATUS => {
                    let memory = u32::from(self.fault != "no memory") << 3;
                    let alert = if self.frozen && self.fault == "alert" { 4 << 8 } else { 0 };
                    1 | memory | u32::from(self.ready) << 2 | u32::from(self.frozen) << 4 | alert
                }
                o if o == PAGE + reg::PCIE => 2 << 4 | 1,
                o if o >= MEDIUM && !self.frozen => self.memory[(o - MEDIUM) as usize / 4],
                _ => 0,
            })
        }

        fn write(&mut self, offset: u64, value: u32) -> Result<(), DeviceError> {
            match (offset, value) {
                (o, START) if o == PAGE + reg::CONTROL => {
                    self.frozen = true;
                    self.ready = !["alert", "never"].contains(&self.fault);
                }
                (o, RESET) if o == PAGE + reg::CONTROL => {
                    (self.frozen, self.ready, self.writes) = (false, false, 0);
                }
                (o, value) if o >= MEDIUM && !self.frozen => {
                    let at = (o - MEDIUM) as usize / 4;
                    self.memory[at] = value ^ u32::from(self.fault == "bit" && at == 5);
                    self.writes += if self.fault == "second writer" { 2 } else { 1 };
                }
                _ => {}
            }
            Ok(())
        }

        fn card(&self) -> String {
            "0000:34:00.0".to_owned()
        }
    }

    fn booted(fault: &'static str) -> Result<(), DeviceError> {
        let mut model = Model::new(fault);
        let medium = Medium::new(&[7; 1001], &[1; 128], &[2; 301])?;
        let limit = Duration::from_millis(30);
        present(&mut model, limit)?;
        boot(&mut model, &medium, limit)?;
        assert_eq!(pcie(&mut model)?, [256, 512]);
        // A second time, as after a reset.
        boot(&mut model, &medium, limit)
    }

    #[test]
    fn a_card_boots_from_the_medium_and_every_fault_has_its_code() {
        booted("").unwrap();
        for (fault, code) in [
            ("gone", "SHEF-DEV-018"),
            ("dead", "SHEF-DEV-018"),
            ("other image", "SHEF-DEV-019"),
            ("version", "SHEF-DEV-019"),
            ("bit", "SHEF-DEV-021"),
            ("second writer", "SHEF-DEV-020"),
            ("no memory", "SHEF-DEV-022"),
            ("alert", "SHEF-DEV-022"),
            ("never", "SHEF-DEV-022"),
        ] {
            let error = booted(fault).unwrap_err();
            assert_eq!(error.code(), code, "{fault}: {error}");
        }
        let error = booted("alert").unwrap_err().to_string();
        assert!(error.contains("alert 4") && error.contains("not kernel ready"), "{error}");
        let mut gone = Model::new("");
        boot(&mut gone, &Medium(vec![0; 8]), Duration::ZERO).unwrap();
        gone.fault = "gone";
        let error = boot(&mut gone, &Medium(vec![0; 8]), Duration::ZERO).unwrap_err();
        assert_eq!(error.code(), "SHEF-DEV-005");
    }

    #[test]
    fn a_medium_is_checked_before_it_is_written() {
        for (image, signature, certificate) in
            [(1, 127, 1), (MAX_IMAGE + 1, 128, 1), (1, 128, 2049), (1, 128, 0)]
        {
            let error = Medium::new(&vec![0; image], &vec![0; signature], &vec![0; certificate])
                .unwrap_err();
            assert_eq!(error.code(), "SHEF-DEV-020");
        }
        let mut model = Model::new("");
        let error = boot(&mut model, &Medium(vec![0; 1 << 19]), Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("room for 65536"), "{error}");
    }
}
