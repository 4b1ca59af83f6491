//! Observation and fault injection beside a simulated card, in this process or through the control
//! socket of another, and the tap in the host that has it.

use std::cell::RefCell;
use std::ops::Range;

use shef_card::check::{Checked, DoneRegister};
use shef_card::progress::Progress;
use shef_card::{BootFault, CardError, Control, KernelView};

use crate::tap::Tap;
use shef_console::CliError;

/// Where a card is.
pub enum Location {
    /// In this process.
    InProcess(shef_card::CardProbe),
    /// In another process.
    Served(RefCell<Control>),
}

/// Observation and fault injection for one card.
pub struct Probe {
    location: Location,
    tap: Tap,
}

impl Probe {
    /// For a card and the tap of its device.
    pub fn new(location: Location, tap: Tap) -> Self {
        Self { location, tap }
    }

    /// Where the card is.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// The tap between the parties and the card.
    pub fn tap(&self) -> &Tap {
        &self.tap
    }

    /// Also counts 64-bit words that the accelerator receives from these addresses, from now on.
    ///
    /// # Errors
    /// Control socket errors, as for all methods below.
    pub fn watch(&self, range: Range<u64>) -> Result<(), CliError> {
        match &self.location {
            Location::InProcess(probe) => probe.watch(range),
            Location::Served(control) => control.borrow_mut().watch(range).map_err(card)?,
        }
        Ok(())
    }

    /// Clears the watched addresses and resets the count.
    ///
    /// # Errors
    /// Control socket errors.
    pub fn unwatch(&self) -> Result<(), CliError> {
        match &self.location {
            Location::InProcess(probe) => probe.unwatch(),
            Location::Served(control) => control.borrow_mut().unwatch().map_err(card)?,
        }
        Ok(())
    }

    /// Words received with OKAY from the watched addresses.
    ///
    /// # Errors
    /// Control socket errors.
    pub fn words_delivered(&self) -> Result<u64, CliError> {
        match &self.location {
            Location::InProcess(probe) => Ok(probe.words_delivered()),
            Location::Served(control) => control.borrow_mut().words_delivered().map_err(card),
        }
    }

    /// Makes memory answer reads of these addresses with a bus error, until the card is reset.
    ///
    /// # Errors
    /// Control socket errors.
    pub fn fail_reads(&self, range: Range<u64>) -> Result<(), CliError> {
        match &self.location {
            Location::InProcess(probe) => probe.fail_reads(range),
            Location::Served(control) => control.borrow_mut().fail_reads(range).map_err(card)?,
        }
        Ok(())
    }

    /// Turns the protocol checker of the accelerator's ports on ([`shef_card::CardProbe::check`]).
    ///
    /// # Errors
    /// A card without RTL, and control socket errors.
    pub fn check(&self, done: Option<DoneRegister>) -> Result<(), CliError> {
        match &self.location {
            Location::InProcess(probe) => probe.check(done),
            Location::Served(control) => control.borrow_mut().check(done),
        }
        .map_err(card)
    }

    /// What the checker saw since the last call.
    ///
    /// # Errors
    /// Control socket errors.
    pub fn checked(&self) -> Result<Checked, CliError> {
        match &self.location {
            Location::InProcess(probe) => Ok(probe.checked()),
            Location::Served(control) => control.borrow_mut().checked().map_err(card),
        }
    }

    /// The bursts at the accelerator's ports, and who waits for whom.
    ///
    /// # Errors
    /// A card without RTL, and control socket errors.
    pub fn progress(&self) -> Result<Progress, CliError> {
        match &self.location {
            Location::InProcess(probe) => probe.progress(),
            Location::Served(control) => control.borrow_mut().progress(),
        }
        .map_err(card)
    }

    /// Clock cycles so far, if there is a clock. For figures only.
    pub fn cycles(&self) -> Option<u64> {
        match &self.location {
            Location::InProcess(probe) => probe.cycles(),
            Location::Served(control) => {
                control.borrow_mut().cycles().ok().and_then(|(now, _)| now)
            }
        }
    }

    /// Cycle at which the memory acknowledged the last write. For figures only.
    pub fn last_write_cycle(&self) -> Option<u64> {
        match &self.location {
            Location::InProcess(probe) => probe.last_write_cycle(),
            Location::Served(control) => {
                control.borrow_mut().cycles().ok().and_then(|(_, last)| last)
            }
        }
    }

    /// Makes the next reset boot with this fault.
    ///
    /// # Errors
    /// A card of another process, whose boot cannot be disturbed from here.
    pub fn fail_boot(&self, fault: BootFault) -> Result<(), CliError> {
        match &self.location {
            Location::InProcess(probe) => probe.fail_boot(fault),
            Location::Served(_) => {
                return Err(CliError::internal("only a card of this process boots with a fault"));
            }
        }
        Ok(())
    }

    /// The Security Kernel, if it is the firmware on the RTL of a card of this process.
    pub fn kernel(&self) -> Option<KernelView> {
        match &self.location {
            Location::InProcess(probe) => probe.kernel(),
            Location::Served(_) => None,
        }
    }
}

/// Converts an error of the card to one of the command.
pub fn card(error: impl Into<CardError>) -> CliError {
    let error = error.into();
    shef::DeviceError::from(error).into()
}
