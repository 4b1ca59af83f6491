//! Observation and fault injection beside a simulated card, in this process or through the control
//! socket of another.

use std::cell::RefCell;
use std::ops::Range;

use shef::sim::{self, BootFault, Control, KernelView};

use crate::world::card;
use shef_console::CliError;

/// Observation and fault injection for one card.
pub enum Bench {
    /// For a card in this process.
    Here(sim::Bench),
    /// For a card in another process.
    There(RefCell<Control>),
}

impl Bench {
    /// Also counts 64-bit words that the accelerator receives from these addresses, from now on.
    ///
    /// # Errors
    /// Control socket errors, as for all methods below.
    pub fn watch(&self, range: Range<u64>) -> Result<(), CliError> {
        match self {
            Self::Here(bench) => bench.watch(range),
            Self::There(control) => control.borrow_mut().watch(range).map_err(card)?,
        }
        Ok(())
    }

    /// Clears the watched addresses and resets the count.
    ///
    /// # Errors
    /// Control socket errors.
    pub fn unwatch(&self) -> Result<(), CliError> {
        match self {
            Self::Here(bench) => bench.unwatch(),
            Self::There(control) => control.borrow_mut().unwatch().map_err(card)?,
        }
        Ok(())
    }

    /// Words received with OKAY from the watched addresses.
    ///
    /// # Errors
    /// Control socket errors.
    pub fn words_delivered(&self) -> Result<u64, CliError> {
        match self {
            Self::Here(bench) => Ok(bench.words_delivered()),
            Self::There(control) => control.borrow_mut().words_delivered().map_err(card),
        }
    }

    /// Makes memory answer reads of these addresses with a bus error, until the card is reset.
    ///
    /// # Errors
    /// Control socket errors.
    pub fn fail_reads(&self, range: Range<u64>) -> Result<(), CliError> {
        match self {
            Self::Here(bench) => bench.fail_reads(range),
            Self::There(control) => control.borrow_mut().fail_reads(range).map_err(card)?,
        }
        Ok(())
    }

    /// Clock cycles so far, if there is a clock. For figures only.
    pub fn cycles(&self) -> Option<u64> {
        match self {
            Self::Here(bench) => bench.cycles(),
            Self::There(control) => control.borrow_mut().cycles().ok().and_then(|(now, _)| now),
        }
    }

    /// Cycle at which the memory acknowledged the last write. For figures only.
    pub fn last_write_cycle(&self) -> Option<u64> {
        match self {
            Self::Here(bench) => bench.last_write_cycle(),
            Self::There(control) => control.borrow_mut().cycles().ok().and_then(|(_, last)| last),
        }
    }

    /// Makes the next reset boot with this fault.
    ///
    /// # Errors
    /// A card of another process, whose boot cannot be disturbed from here.
    pub fn fail_boot(&self, fault: BootFault) -> Result<(), CliError> {
        match self {
            Self::Here(bench) => bench.fail_boot(fault),
            Self::There(_) => {
                return Err(CliError::internal("only a card of this process boots with a fault"));
            }
        }
        Ok(())
    }

    /// The Security Kernel, if it is the firmware on the RTL of a card of this process.
    pub fn kernel(&self) -> Option<KernelView> {
        match self {
            Self::Here(bench) => bench.kernel(),
            Self::There(_) => None,
        }
    }
}
