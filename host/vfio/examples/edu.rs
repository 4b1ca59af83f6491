//! Tests this crate on QEMU's device `edu` in a guest: registers, interrupts, DMA, the state after
//! DMA memory is freed, limits.
//!
//! `edu pci:0000:00:03.0[?iommu=...]` prints one line for each claim and exits with 1 if one does
//! not hold. `edu URI locked-memory` expects the limit of locked memory to be too low;
//! `edu URI removal` has the kernel remove the function. `cargo xtask vm` runs it.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use shef_device::Uri;
use shef_vfio::{Bar, DmaBuffer, Interrupts, OpenFunction, System, Vectors, VfioError};

const IDS: &[(u16, u16)] = &[(0x1234, 0x11e8)];

// Registers of the device (docs/specs/edu.rst of QEMU).
const ID: u64 = 0x00;
const LIVENESS: u64 = 0x04;
const FACTORIAL: u64 = 0x08;
const STATUS: u64 = 0x20;
const STATUS_INTERRUPT: u32 = 0x80;
const INTERRUPT: u64 = 0x24;
const ACKNOWLEDGE: u64 = 0x64;
const DMA_SOURCE: u64 = 0x80;
const DMA_DESTINATION: u64 = 0x88;
const DMA_COUNT: u64 = 0x90;
const DMA_COMMAND: u64 = 0x98;
const DMA_START: u32 = 1;
const DMA_TO_HOST: u32 = 2;
const DMA_INTERRUPT: u32 = 4;
/// Address of the device's own DMA buffer.
const BUFFER: u64 = 0x40000;
/// Bytes of a transfer.
const LEN: usize = 0x800;
const PATIENCE: Duration = Duration::from_secs(20);

struct Edu {
    bar: Bar,
    interrupts: Interrupts,
    function: OpenFunction,
}

type Claim = Result<String, String>;

fn said(error: VfioError) -> String {
    format!("{}: {error}", error.code())
}

impl Edu {
    fn open(uri: &Uri) -> Result<Self, VfioError> {
        let Uri::Pci { function, iommu, .. } = uri else { unreachable!("checked by main") };
        let function = OpenFunction::open(&System::default(), *function, *iommu, IDS)?;
        Ok(Self {
            bar: function.bar(0, 0x1000)?,
            interrupts: function.interrupts(Vectors::Msi, 1, 1)?,
            function,
        })
    }

    fn read(&self, offset: u64) -> Result<u32, String> {
        self.bar.read32(offset).map_err(said)
    }

    fn write(&self, offset: u64, value: u32) -> Result<(), String> {
        self.bar.write32(offset, value).map_err(said)
    }

    fn interrupted(&self) -> Claim {
        match self.interrupts.wait(0, PATIENCE) {
            Ok(true) => {
                let status = self.read(INTERRUPT)?;
                self.write(ACKNOWLEDGE, status)?;
                Ok(format!("vector 0, status {status:#x}"))
            }
            Ok(false) => Err("no interrupt".to_owned()),
            Err(error) => Err(said(error)),
        }
    }

    fn registers(&self) -> Claim {
        let id = self.read(ID)?;
        self.write(LIVENESS, 0x1234_5678)?;
        let inverted = self.read(LIVENESS)?;
        let outside = self.bar.read32(self.bar.size()).err().map(|e| e.code());
        match (id & 0xff, inverted, outside) {
            (0xed, 0xedcb_a987, Some("SHEF-PCI-019")) => {
                Ok(format!("identification {id:#x}, an access behind the BAR is refused"))
            }
            other => Err(format!("{other:?}")),
        }
    }

    fn interrupt(&self) -> Claim {
        self.write(STATUS, STATUS_INTERRUPT)?;
        self.write(FACTORIAL, 10)?;
        let how = self.interrupted()?;
        self.write(STATUS, 0)?;
        match self.read(FACTORIAL)? {
            3_628_800 => Ok(format!("10! = 3628800 by {how}")),
            other => Err(format!("10! = {other}")),
        }
    }

    fn transfer(&self, from: u64, to: u64, direction: u32) -> Claim {
        for (register, value) in
            [(DMA_SOURCE, from), (DMA_DESTINATION, to), (DMA_COUNT, LEN as u64)]
        {
            self.write(register, value as u32)?;
            self.write(register + 4, (value >> 32) as u32)?;
        }
        self.write(DMA_COMMAND, DMA_START | direction | DMA_INTERRUPT)?;
        self.interrupted()
    }

    fn dma(&self) -> Claim {
        let buffer = self.function.dma(1 << 20).map_err(said)?;
        let at = address(&buffer);
        let pattern: Vec<u8> = (0..LEN).map(|i| (i * 7 + i / 256) as u8).collect();
        buffer.write(0, &pattern).map_err(said)?;
        self.transfer(at, BUFFER, 0)?;
        self.transfer(BUFFER, at + 0x1000, DMA_TO_HOST)?;
        let mut back = vec![0; 0x2000];
        buffer.read(0x1000, &mut back).map_err(said)?;
        if back[..LEN] != pattern[..] || back[LEN..].iter().any(|b| *b != 0) {
            return Err("the bytes that came back are others".to_owned());
        }
        Ok(format!("{LEN} bytes there and back at {at:#x}, hugepages: {}", buffer.is_huge()))
    }

    /// After the memory is freed, the device can no longer access it, if there is an IOMMU.
    fn after_free(&self) -> Claim {
        let buffer = self.function.dma(1 << 20).map_err(said)?;
        let at = address(&buffer);
        buffer.write(0, &[0x5a; LEN]).map_err(said)?;
        self.transfer(at, BUFFER, 0)?;
        drop(buffer);
        // The device's own buffer holds 0x5a. The device's next write must not arrive anywhere, and
        // its next read must not return memory.
        self.transfer(BUFFER, at, DMA_TO_HOST)?;
        let again = self.function.dma(1 << 20).map_err(said)?;
        let mut bytes = vec![0; LEN];
        again.read(0, &mut bytes).map_err(said)?;
        if address(&again) == at && bytes.iter().all(|b| *b == 0) {
            Ok(format!("nothing arrived at {at:#x}"))
        } else {
            Err(format!("memory at {:#x} begins with {:02x?}", address(&again), &bytes[..4]))
        }
    }

    fn master(&self) -> Claim {
        let buffer = self.function.dma(4096).map_err(said)?;
        buffer.write(0, &[0; LEN]).map_err(said)?;
        self.function.bus_master(false).map_err(said)?;
        // Interrupts are also writes of the device, so this one cannot arrive.
        for (register, value) in
            [(DMA_SOURCE, BUFFER), (DMA_DESTINATION, address(&buffer)), (DMA_COUNT, LEN as u64)]
        {
            self.write(register, value as u32)?;
            self.write(register + 4, (value >> 32) as u32)?;
        }
        self.write(DMA_COMMAND, DMA_START | DMA_TO_HOST)?;
        while self.read(DMA_COMMAND)? & DMA_START != 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.function.bus_master(true).map_err(said)?;
        let mut bytes = vec![0; LEN];
        buffer.read(0, &mut bytes).map_err(said)?;
        if bytes.iter().all(|b| *b == 0) {
            Ok("no DMA without bus mastering".to_owned())
        } else {
            Err("the device wrote".to_owned())
        }
    }

    fn second(&self, uri: &Uri) -> Claim {
        match Self::open(uri).err() {
            Some(error)
                if error.code() == "SHEF-PCI-007"
                    && error.to_string().contains(&format!("pid {} ", std::process::id())) =>
            {
                Ok(error.to_string())
            }
            Some(error) => Err(said(error)),
            None => Err("it was opened twice".to_owned()),
        }
    }

    /// This device cannot be reset, and the error states that.
    fn reset(&self) -> Claim {
        match self.function.reset() {
            Err(error) if error.code() == "SHEF-PCI-014" => Ok(error.to_string()),
            other => Err(format!("{other:?}")),
        }
    }
}

fn address(buffer: &DmaBuffer) -> u64 {
    buffer.segments()[0].addr.0
}

fn claims(uri: &Uri, unprotected: bool) -> Vec<(&'static str, Claim)> {
    let edu = match Edu::open(uri) {
        Ok(edu) => edu,
        Err(error) => return vec![("open", Err(said(error)))],
    };
    let mut all = vec![
        ("open", Ok(format!("by {}", edu.function.interface().name()))),
        ("registers", edu.registers()),
        ("interrupt", edu.interrupt()),
        ("dma", edu.dma()),
        ("bus-master", edu.master()),
        ("second-opener", edu.second(uri)),
        ("reset", edu.reset()),
    ];
    if !unprotected {
        all.push(("dma-after-free", edu.after_free()));
    }
    drop(edu);
    all.push((
        "open-again",
        Edu::open(uri).map(|_| "after the first one closed".to_owned()).map_err(said),
    ));
    all
}

fn locked_memory(uri: &Uri) -> Vec<(&'static str, Claim)> {
    let claim = Edu::open(uri).map_err(said).and_then(|edu| match edu.function.dma(4 << 20) {
        Err(error) if error.code() == "SHEF-PCI-010" => Ok(error.to_string()),
        Err(error) => Err(said(error)),
        Ok(_) => Err("4 MiB were locked".to_owned()),
    });
    vec![("locked-memory", claim)]
}

/// The kernel removes the function while it is open: it requests the function back, the program is
/// notified, and after the function is closed, nothing blocks.
fn removal(uri: &Uri) -> Vec<(&'static str, Claim)> {
    let Uri::Pci { function: slot, .. } = uri else { unreachable!("checked by main") };
    let claim = Edu::open(uri).map_err(said).and_then(|edu| {
        edu.function.alive().map_err(said)?;
        let file = format!("/sys/bus/pci/devices/{slot}/remove");
        let removing = std::thread::spawn(move || std::fs::write(file, "1"));
        let begin = Instant::now();
        let heard = loop {
            match edu.function.alive() {
                Err(error) if error.code() == "SHEF-PCI-020" => break error.to_string(),
                Err(error) => return Err(said(error)),
                Ok(()) if begin.elapsed() > PATIENCE => {
                    return Err("the program did not hear of it".to_owned());
                }
                Ok(()) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        let waited = !removing.is_finished();
        drop(edu);
        let removed = removing.join().map_err(|_| "a panic".to_owned())?;
        removed.map_err(|error| format!("the kernel did not remove it: {error}"))?;
        match Edu::open(uri).err().map(|error| error.code()) {
            Some("SHEF-PCI-001") if waited => Ok(format!("{heard}; once closed it was gone")),
            other => Err(format!("the kernel waited: {waited}, opened again: {other:?}")),
        }
    });
    vec![("removal", claim)]
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(Ok(uri @ Uri::Pci { .. })) = arguments.first().map(|a| a.parse::<Uri>()) else {
        eprintln!("usage: edu pci:DOMAIN:BUS:DEVICE.FUNCTION [locked-memory | removal]");
        return ExitCode::from(2);
    };
    let unprotected = matches!(uri, Uri::Pci { iommu: shef_device::Iommu::None, .. });
    let claims = match arguments.get(1).map(String::as_str) {
        None => claims(&uri, unprotected),
        Some("removal") => removal(&uri),
        Some(_) => locked_memory(&uri),
    };
    for (name, claim) in &claims {
        match claim {
            Ok(how) => println!("edu ok {name}: {how}"),
            Err(why) => println!("edu FAILED {name}: {why}"),
        }
    }
    ExitCode::from(u8::from(claims.iter().any(|(_, claim)| claim.is_err())))
}
