//! The version of a chunk, by mode of its region.

use std::collections::BTreeMap;

use shef_proto::channel::WrittenMap;
use shef_proto::config::{MAX_EPOCH, Mode, Region};

/// On-chip versions of one region.
pub(super) enum Versions {
    /// `input`
    Epoch(u64),
    /// `output`: the epoch, and the chunks sealed in it
    Once(u64, WrittenMap),
    /// `counted`: a counter per chunk, absent: 0; and the largest
    Counted(BTreeMap<u64, u64>, u64),
    /// `tree`: in card memory
    Tree,
    /// `bypass`
    Without,
}

impl Versions {
    pub fn new(region: &Region) -> Self {
        match region.mode {
            Mode::Input => Self::Epoch(0),
            Mode::Output => Self::Once(0, WrittenMap::empty(region.chunks())),
            Mode::Counted => {
                Self::Counted(BTreeMap::new(), (1 << region.counter_bits.unwrap_or(36)) - 1)
            }
            Mode::Tree => Self::Tree,
            _ => Self::Without,
        }
    }

    /// The epoch; 0 for modes without one.
    pub fn epoch(&self) -> u64 {
        match self {
            Self::Epoch(e) | Self::Once(e, _) => *e,
            _ => 0,
        }
    }

    /// A new epoch; nothing is written in it.
    pub fn set_epoch(&mut self, epoch: u64) {
        match self {
            Self::Epoch(e) => *e = epoch,
            Self::Once(e, map) => {
                *e = epoch;
                *map = WrittenMap::empty(map.chunks());
            }
            _ => {}
        }
    }

    /// The largest version a chunk may have.
    pub fn limit(&self) -> u64 {
        if let Self::Counted(_, limit) = self { *limit } else { MAX_EPOCH }
    }

    pub fn written(&self) -> Option<&WrittenMap> {
        if let Self::Once(_, map) = self { Some(map) } else { None }
    }
}
