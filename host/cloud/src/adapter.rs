//! The adapter's page in BAR0 of a card on F2, and the boot medium behind it
//! (`shell-rtl/regs/f2.toml`).

use std::time::{Duration, Instant};

use shef_kernel::{Medium, SIGNATURE_FILE_LEN};
use shef_regs::f2;

use crate::{CloudError, Watch};

/// The page in BAR0.
pub const PAGE: u64 = f2::BASE as u64;
/// The boot medium in BAR0.
pub const MEDIUM: u64 = 0x100_0000;
/// Bytes of BAR0 that this program uses.
pub const BYTES: u64 = 0x200_0000;
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
    fn read(&mut self, offset: u64) -> Result<u32, CloudError>;

    /// Writes a word.
    ///
    /// # Errors
    /// The transport's.
    fn write(&mut self, offset: u64, value: u32) -> Result<(), CloudError>;

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
fn word(window: &mut dyn Window, offset: u64) -> Result<u32, CloudError> {
    match window.read(offset)? {
        u32::MAX => Err(CloudError::Gone { card: window.card(), offset }),
        value => Ok(value),
    }
}

/// Waits until the page answers, and checks that it is the adapter's. Returns the waiting time.
///
/// # Errors
/// SHEF-CLD-042, SHEF-CLD-044.
pub fn present(window: &mut dyn Window, limit: Duration) -> Result<Duration, CloudError> {
    let begun = Instant::now();
    loop {
        let found = window.read(PAGE + reg::ID)?;
        if found == ID {
            break;
        }
        let card = window.card();
        // Another page answers, and will not become ours.
        if found != u32::MAX && found != 0 {
            return Err(CloudError::Adapter { card, name: "ID", found, expected: ID });
        }
        if begun.elapsed() >= limit {
            return Err(CloudError::NoReturn { card, found, ms: begun.elapsed().as_millis() });
        }
        std::thread::sleep(LOOK);
    }
    let found = word(window, PAGE + reg::VERSION)?;
    if found != VERSION {
        let card = window.card();
        return Err(CloudError::Adapter { card, name: "VERSION", found, expected: VERSION });
    }
    Ok(begun.elapsed())
}

/// PCIe parameters as the shell sees them: maximum payload and maximum read request in bytes.
///
/// # Errors
/// SHEF-CLD-043.
pub fn pcie(window: &mut dyn Window) -> Result<[u32; 2], CloudError> {
    let value = word(window, PAGE + reg::PCIE)?;
    Ok([128 << (value & 3), 128 << (value >> 4 & 7)])
}

/// Builds the boot medium from its three files, and checks it as the boot ROM does.
///
/// # Errors
/// SHEF-CLD-045.
pub fn medium(image: &[u8], signature: &[u8], certificate: &[u8]) -> Result<Vec<u8>, CloudError> {
    let wrong = |what: String| CloudError::Medium { what };
    let found = signature.len();
    let signature = signature.try_into().map_err(|_| {
        wrong(format!("the signature has {found} bytes, expected {SIGNATURE_FILE_LEN}"))
    })?;
    if certificate.is_empty() {
        return Err(wrong("the certificate is empty".to_owned()));
    }
    let bytes = Medium::build(image, signature, certificate);
    let word = |at: usize| bytes.get(at..at + 4).map_or([0; 4], |b| [b[0], b[1], b[2], b[3]]);
    Medium::read(bytes.len(), MAX_IMAGE, word).map_err(|e| wrong(e.to_string()))?;
    Ok(bytes)
}

/// Boots the kernel: writes the medium and reads it back, starts, and waits until the kernel is
/// ready.
///
/// # Errors
/// SHEF-CLD-043 to SHEF-CLD-047.
pub fn boot(
    window: &mut dyn Window,
    medium: &[u8],
    limit: Duration,
    watch: Watch<'_>,
) -> Result<(), CloudError> {
    let words: Vec<u32> = medium
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
        return Err(CloudError::Medium { what });
    }
    window.write(PAGE + reg::CONTROL, RESET)?;
    until(window, limit, |state| !state.has("wiping") && !state.has("medium frozen"))?;
    watch("writing the boot medium");
    for (at, value) in (0..).zip(&words) {
        window.write(MEDIUM + 4 * at, *value)?;
    }
    for (number, written) in words.iter().enumerate() {
        let found = window.read(MEDIUM + 4 * number as u64)?;
        if found != *written {
            return Err(CloudError::MediumChanged { word: number, found, written: *written });
        }
    }
    let writes = word(window, PAGE + reg::MEDIUM_WRITES)?;
    if writes as usize != words.len() {
        let what = format!("{writes} words were written to it, and {} were sent", words.len());
        return Err(CloudError::Medium { what });
    }
    until(window, limit, |state| state.has("clock locked") && state.has("memory ready"))?;
    watch("starting the Security Kernel");
    window.write(PAGE + reg::CONTROL, START)?;
    until(window, limit, |state| state.has("kernel ready") || state.alert() != 0)?;
    let state = Status(word(window, PAGE + reg::STATUS)?);
    if state.has("kernel ready") && state.alert() == 0 && state.has("medium frozen") {
        return Ok(());
    }
    Err(CloudError::NoKernel { state: state.to_string(), ms: limit.as_millis() })
}

/// Waits for a state.
fn until(
    window: &mut dyn Window,
    limit: Duration,
    wanted: impl Fn(Status) -> bool,
) -> Result<(), CloudError> {
    let begun = Instant::now();
    loop {
        let state = Status(word(window, PAGE + reg::STATUS)?);
        if wanted(state) {
            return Ok(());
        }
        if begun.elapsed() >= limit {
            let ms = begun.elapsed().as_millis();
            return Err(CloudError::NoKernel { state: state.to_string(), ms });
        }
        std::thread::sleep(LOOK);
    }
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
        fn read(&mut self, offset: u64) -> Result<u32, CloudError> {
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

        fn write(&mut self, offset: u64, value: u32) -> Result<(), CloudError> {
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

    fn booted(fault: &'static str) -> Result<(), CloudError> {
        let mut model = Model::new(fault);
        let medium = medium(&[7; 1001], &[1; 128], &[2; 301])?;
        let limit = Duration::from_millis(30);
        present(&mut model, limit)?;
        boot(&mut model, &medium, limit, &mut |_| {})?;
        assert_eq!(pcie(&mut model)?, [256, 512]);
        // A second time, as after a reset.
        boot(&mut model, &medium, limit, &mut |_| {})
    }

    #[test]
    fn a_card_boots_from_the_medium_and_every_fault_has_its_code() {
        booted("").unwrap();
        for (fault, code) in [
            ("gone", "SHEF-CLD-042"),
            ("dead", "SHEF-CLD-042"),
            ("other image", "SHEF-CLD-044"),
            ("version", "SHEF-CLD-044"),
            ("bit", "SHEF-CLD-046"),
            ("second writer", "SHEF-CLD-045"),
            ("no memory", "SHEF-CLD-047"),
            ("alert", "SHEF-CLD-047"),
            ("never", "SHEF-CLD-047"),
        ] {
            let error = booted(fault).unwrap_err();
            assert_eq!(error.code(), code, "{fault}: {error}");
        }
        let error = booted("alert").unwrap_err().to_string();
        assert!(error.contains("alert 4") && error.contains("not kernel ready"), "{error}");
        let mut gone = Model::new("");
        boot(&mut gone, &[0; 8], Duration::ZERO, &mut |_| {}).unwrap();
        gone.fault = "gone";
        let error = boot(&mut gone, &[0; 8], Duration::ZERO, &mut |_| {}).unwrap_err();
        assert_eq!(error.code(), "SHEF-CLD-043");
    }

    #[test]
    fn a_medium_is_checked_before_it_is_written() {
        for (image, signature, certificate) in
            [(1, 127, 1), (MAX_IMAGE + 1, 128, 1), (1, 128, 2049), (1, 128, 0)]
        {
            let error =
                medium(&vec![0; image], &vec![0; signature], &vec![0; certificate]).unwrap_err();
            assert_eq!(error.code(), "SHEF-CLD-045");
        }
        let mut model = Model::new("");
        let error = boot(&mut model, &[0; 1 << 19], Duration::ZERO, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("room for 65536"), "{error}");
    }
}
