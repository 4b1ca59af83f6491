//! What stands beside a simulated card: observation and faults, in this process or through the
//! control socket of another.

use std::cell::RefCell;
use std::ops::Range;

use shef::sim::{self, BootFault, Control, KernelView};

use crate::world::card;
use shef_console::CliError;

/// Observation and faults of one card.
pub enum Bench {
    /// Of a card in this process.
    Here(sim::Bench),
    /// Of a card in another.
    There(RefCell<Control>),
}

impl Bench {
    /// Counts 64-bit words that the accelerator receives from these addresses too, from now on.
    ///
    /// # Errors
    /// Those of the control socket, as for all that follow.
    pub fn watch(&self, range: Range<u64>) -> Result<(), CliError> {
        match self {
            Self::Here(bench) => bench.watch(range),
            Self::There(control) => control.borrow_mut().watch(range).map_err(card)?,
        }
        Ok(())
    }

    /// Forgets what was watched and starts counting at 0.
    ///
    /// # Errors
    /// Those of the control socket.
    pub fn unwatch(&self) -> Result<(), CliError> {
        match self {
            Self::Here(bench) => bench.unwatch(),
            Self::There(control) => control.borrow_mut().unwatch().map_err(card)?,
        }
        Ok(())
    }

    /// Words received with an OKAY answer from the watched addresses.
    ///
    /// # Errors
    /// Those of the control socket.
    pub fn words_delivered(&self) -> Result<u64, CliError> {
        match self {
            Self::Here(bench) => Ok(bench.words_delivered()),
            Self::There(control) => control.borrow_mut().words_delivered().map_err(card),
        }
    }

    /// The memory answers reads of these addresses with a bus error, until the card is reset.
    ///
    /// # Errors
    /// Those of the control socket.
    pub fn fail_reads(&self, range: Range<u64>) -> Result<(), CliError> {
        match self {
            Self::Here(bench) => bench.fail_reads(range),
            Self::There(control) => control.borrow_mut().fail_reads(range).map_err(card)?,
        }
        Ok(())
    }

    /// Clock cycles so far, where there is a clock. For figures only.
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

    /// The next reset boots with this fault.
    ///
    /// # Errors
    /// A card of another process, whose boot nobody here can spoil.
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
