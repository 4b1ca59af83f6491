//! Faults of the memory and refusals of the accelerator, by kind.

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// No fault.
    None,
    /// A chunk's tag did not match.
    Tag,
    /// The memory answered with an error.
    Bus,
    /// The memory did not answer.
    Timeout,
    /// An unexpected answer, or one of the wrong length.
    Protocol,
    /// A tree node's tag did not match.
    Node,
    /// A countermeasure inside the Shield fired.
    Internal,
}

impl FaultKind {
    /// The number in statement and status register.
    pub fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Tag => 1,
            Self::Bus => 2,
            Self::Timeout => 3,
            Self::Protocol => 4,
            Self::Node => 5,
            Self::Internal => 6,
        }
    }

    /// Short description.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "no fault",
            Self::Tag => "a tag that does not match",
            Self::Bus => "an error of the memory",
            Self::Timeout => "a memory that does not answer",
            Self::Protocol => "an answer of the memory that is not owed",
            Self::Node => "a tree node that does not match",
            Self::Internal => "a countermeasure inside the Shield",
        }
    }

    /// The kind with this number.
    pub fn from_number(n: u8) -> Option<Self> {
        [
            Self::None,
            Self::Tag,
            Self::Bus,
            Self::Timeout,
            Self::Protocol,
            Self::Node,
            Self::Internal,
        ]
        .into_iter()
        .find(|k| k.number() == n)
    }
}

/// Kinds of refusals: illegal accesses by the accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RefusalKind {
    /// No refusal.
    None,
    /// Not entirely inside one region.
    Range,
    /// Not an INCR burst, or across a 4 KiB page.
    Burst,
    /// Write to an `input` region.
    ReadOnly,
    /// Chunk of an `output` region already sealed in this epoch.
    SecondWrite,
    /// The region's epoch is 0.
    EpochZero,
    /// A counter or a key's use limit is exhausted.
    Exhausted,
    /// No session.
    NotKeyed,
    /// Read of an `output` chunk that was not sealed in this epoch and is not on chip.
    NotWritten,
    /// A command cut the write off because its data did not arrive.
    CutOff,
}

impl RefusalKind {
    /// The number in the statement.
    pub fn number(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Range => 1,
            Self::Burst => 2,
            Self::ReadOnly => 3,
            Self::SecondWrite => 4,
            Self::EpochZero => 5,
            Self::Exhausted => 6,
            Self::NotKeyed => 7,
            Self::NotWritten => 8,
            Self::CutOff => 9,
        }
    }

    /// The kind with this number.
    pub fn from_number(n: u8) -> Option<Self> {
        [
            Self::None,
            Self::Range,
            Self::Burst,
            Self::ReadOnly,
            Self::SecondWrite,
            Self::EpochZero,
            Self::Exhausted,
            Self::NotKeyed,
            Self::NotWritten,
            Self::CutOff,
        ]
        .into_iter()
        .find(|k| k.number() == n)
    }
}
