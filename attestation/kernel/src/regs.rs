//! Registers that the kernel reaches. Generated from shell-rtl/regs by `cargo xtask generate`; do
//! not edit.
//!
//! Offsets are in bytes, registers are 32 bits wide; byte strings lie in byte-lane order: byte i at
//! offset + i.

/// A field of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Lowest bit.
    pub lsb: u32,
    /// Bits.
    pub width: u32,
}

impl Field {
    /// The field's value in a register's value.
    pub const fn get(self, register: u32) -> u32 {
        (register >> self.lsb) & (((1u64 << self.width) - 1) as u32)
    }

    /// A register's value with this field set and all others 0.
    pub const fn put(self, value: u32) -> u32 {
        (value & (((1u64 << self.width) - 1) as u32)) << self.lsb
    }
}

/// Kernel port (AXI4-Lite, 4 KiB), reached by the Security Kernel only.
pub mod krn {
    use super::Field;

    /// Bytes of the map.
    pub const SIZE: u32 = 0x1000;
    /// Commands of the kernel (w).
    pub const CTRL: u32 = 0x0;
    /// As STATUS of the control window (r).
    pub const STATUS: u32 = 0x4;
    /// Seed, in whole words; refused outside EMPTY and CLOSED; erased when the key pair is derived
    /// (w).
    pub const SEED: u32 = 0x20;
    /// Bytes of [`SEED`].
    pub const SEED_BYTES: usize = 32;
    /// Public Shield key x | y, zero unless FRESH or KEYED (r).
    pub const PUBKEY: u32 = 0x40;
    /// Bytes of [`PUBKEY`].
    pub const PUBKEY_BYTES: usize = 64;
    /// Transcript hash T of the session, zero unless KEYED or CLOSED (r).
    pub const T: u32 = 0x80;
    /// Bytes of [`T`].
    pub const T_BYTES: usize = 32;
    /// Configuration digest (r).
    pub const CONFIG_DIGEST: u32 = 0xa0;
    /// Bytes of [`CONFIG_DIGEST`].
    pub const CONFIG_DIGEST_BYTES: usize = 32;
    /// Sealed last message of the session, zero unless CLOSED (r).
    pub const LAST: u32 = 0x100;
    /// Bytes of [`LAST`].
    pub const LAST_BYTES: usize = 88;
    /// Take KRN_SEED; refused with SLVERR outside EMPTY and CLOSED, and unless all eight words of
    /// KRN_SEED were written since the last seed was taken.
    pub const CTRL_SEED: Field = Field { lsb: 0, width: 1 };
    /// Zeroise everything, as wipe_req does.
    pub const CTRL_WIPE: Field = Field { lsb: 1, width: 1 };
    /// Life of the session.
    pub const STATUS_STATE: Field = Field { lsb: 0, width: 3 };
    /// Value of [`STATUS_STATE`].
    pub const STATUS_STATE_CLOSED: u32 = 5;
    /// Value of [`STATUS_STATE`].
    pub const STATUS_STATE_DERIVE: u32 = 2;
    /// Value of [`STATUS_STATE`].
    pub const STATUS_STATE_EMPTY: u32 = 1;
    /// Value of [`STATUS_STATE`].
    pub const STATUS_STATE_FRESH: u32 = 3;
    /// Value of [`STATUS_STATE`].
    pub const STATUS_STATE_KEYED: u32 = 4;
    /// Value of [`STATUS_STATE`].
    pub const STATUS_STATE_SCRUB: u32 = 0;
    /// A fault stopped the Shield.
    pub const STATUS_STOPPED: Field = Field { lsb: 3, width: 1 };
    /// A Load Key is being opened.
    pub const STATUS_LOAD_BUSY: Field = Field { lsb: 4, width: 1 };
    /// The last Load Key was refused; cleared by the next doorbell.
    pub const STATUS_LOAD_REFUSED: Field = Field { lsb: 5, width: 1 };
    /// A request is being run.
    pub const STATUS_CHAN_BUSY: Field = Field { lsb: 6, width: 1 };
    /// The last request was refused; cleared by the next doorbell.
    pub const STATUS_CHAN_REFUSED: Field = Field { lsb: 7, width: 1 };
    /// CHAN_RSP holds an answer.
    pub const STATUS_CHAN_ANSWER: Field = Field { lsb: 8, width: 1 };
    /// The accelerator did not clear its memories, or left bursts open: the seed was given up, no
    /// session began; cleared by the next seed.
    pub const STATUS_UNCLEARED: Field = Field { lsb: 9, width: 1 };
    /// Kind of the first fault.
    pub const STATUS_FAULT_KIND: Field = Field { lsb: 12, width: 4 };
    /// Value of [`STATUS_FAULT_KIND`].
    pub const STATUS_FAULT_KIND_BUS: u32 = 2;
    /// Value of [`STATUS_FAULT_KIND`].
    pub const STATUS_FAULT_KIND_INTERNAL: u32 = 6;
    /// Value of [`STATUS_FAULT_KIND`].
    pub const STATUS_FAULT_KIND_NODE: u32 = 5;
    /// Value of [`STATUS_FAULT_KIND`].
    pub const STATUS_FAULT_KIND_NONE: u32 = 0;
    /// Value of [`STATUS_FAULT_KIND`].
    pub const STATUS_FAULT_KIND_PROTOCOL: u32 = 4;
    /// Value of [`STATUS_FAULT_KIND`].
    pub const STATUS_FAULT_KIND_TAG: u32 = 1;
    /// Value of [`STATUS_FAULT_KIND`].
    pub const STATUS_FAULT_KIND_TIMEOUT: u32 = 3;
}
