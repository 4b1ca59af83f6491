//! Register maps of the Shield, and of the Security Kernel's bus ([`bus`]). Generated from
//! shell-rtl/regs by `cargo xtask generate`; do not edit.
//!
//! Offsets are in bytes, registers are 32 bits wide; byte strings lie in byte-lane order: byte i at
//! offset + i.
#![no_std]
#![forbid(unsafe_code)]

pub mod bus;

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

/// Access by software.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Read only.
    R,
    /// Write only; reads are answered with an error.
    W,
    /// Both.
    Rw,
}

/// A register or memory of a map.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// Name.
    pub name: &'static str,
    /// Byte offset.
    pub offset: u32,
    /// Bytes.
    pub bytes: u32,
    /// Access by software.
    pub access: Access,
    /// Value after reset, where it is fixed.
    pub reset: Option<u32>,
}

/// Control window of the Shield (BAR0, AXI4-Lite, 64 KiB), reached by the untrusted host.
pub mod ctl {
    use super::{Access, Field, Item};

    /// Bytes of the map.
    pub const SIZE: u32 = 0x10000;
    /// The bytes SHEF (r).
    pub const MAGIC: u32 = 0x0;
    /// Version of this map: major in the upper half, minor in the lower (r).
    pub const VERSION: u32 = 0x4;
    /// The shell around the core: 1 simulation, 2 AWS F2, 3 Vitis (parameter of the shell, so the
    /// reset value is the shell's) (r).
    pub const SHELL: u32 = 0x8;
    /// Clock of the core in kHz, as the shell gives it (r).
    pub const CLOCK_KHZ: u32 = 0xc;
    /// Shape of the configured Shield (from shield.toml) (r).
    pub const SHAPE: u32 = 0x10;
    /// SHA-256 of the resolved configuration's deterministic CBOR (r).
    pub const CONFIG_DIGEST: u32 = 0x20;
    /// Bytes of [`CONFIG_DIGEST`].
    pub const CONFIG_DIGEST_BYTES: usize = 32;
    /// Plain status: a hint, decisions rest on sealed answers (r).
    pub const STATUS: u32 = 0x100;
    /// Key confirmation, zero unless KEYED (r).
    pub const CONFIRM: u32 = 0x120;
    /// Bytes of [`CONFIRM`].
    pub const CONFIRM_BYTES: usize = 32;
    /// Writing n opens the n bytes in LOAD_MSG as a Load Key; ignored while LOAD_BUSY or CHAN_BUSY
    /// (w).
    pub const LOAD_DOORBELL: u32 = 0x200;
    /// Any write hands the 88 bytes in CHAN_REQ to the Shield; ignored while LOAD_BUSY or CHAN_BUSY
    /// (w).
    pub const CHAN_DOORBELL: u32 = 0x204;
    /// Load Key message (w).
    pub const LOAD_MSG: u32 = 0x1000;
    /// Bytes of [`LOAD_MSG`].
    pub const LOAD_MSG_BYTES: usize = 1024;
    /// Sealed request (w).
    pub const CHAN_REQ: u32 = 0x2000;
    /// Bytes of [`CHAN_REQ`].
    pub const CHAN_REQ_BYTES: usize = 88;
    /// Sealed answer (r).
    pub const CHAN_RSP: u32 = 0x2100;
    /// Bytes of [`CHAN_RSP`].
    pub const CHAN_RSP_BYTES: usize = 88;
    /// Memory ports.
    pub const SHAPE_PORTS: Field = Field { lsb: 0, width: 4 };
    /// Engine sets.
    pub const SHAPE_SETS: Field = Field { lsb: 4, width: 4 };
    /// Regions.
    pub const SHAPE_REGIONS: Field = Field { lsb: 8, width: 5 };
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
    /// Bytes in LOAD_MSG, at most 1024.
    pub const LOAD_DOORBELL_LEN: Field = Field { lsb: 0, width: 11 };
    /// All registers and memories, by address.
    pub const ITEMS: &[Item] = &[
        Item { name: "MAGIC", offset: 0x0, bytes: 4, access: Access::R, reset: Some(0x46454853) },
        Item { name: "VERSION", offset: 0x4, bytes: 4, access: Access::R, reset: Some(0x10000) },
        Item { name: "SHELL", offset: 0x8, bytes: 4, access: Access::R, reset: None },
        Item { name: "CLOCK_KHZ", offset: 0xc, bytes: 4, access: Access::R, reset: Some(0x3d090) },
        Item { name: "SHAPE", offset: 0x10, bytes: 4, access: Access::R, reset: None },
        Item { name: "CONFIG_DIGEST", offset: 0x20, bytes: 32, access: Access::R, reset: None },
        Item { name: "STATUS", offset: 0x100, bytes: 4, access: Access::R, reset: None },
        Item { name: "CONFIRM", offset: 0x120, bytes: 32, access: Access::R, reset: None },
        Item { name: "LOAD_DOORBELL", offset: 0x200, bytes: 4, access: Access::W, reset: None },
        Item { name: "CHAN_DOORBELL", offset: 0x204, bytes: 4, access: Access::W, reset: None },
        Item { name: "LOAD_MSG", offset: 0x1000, bytes: 1024, access: Access::W, reset: None },
        Item { name: "CHAN_REQ", offset: 0x2000, bytes: 88, access: Access::W, reset: None },
        Item { name: "CHAN_RSP", offset: 0x2100, bytes: 88, access: Access::R, reset: None },
    ];
}

/// Kernel port (AXI4-Lite, 4 KiB), reached by the Security Kernel only.
pub mod krn {
    use super::{Access, Field, Item};

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
    /// All registers and memories, by address.
    pub const ITEMS: &[Item] = &[
        Item { name: "KRN_CTRL", offset: 0x0, bytes: 4, access: Access::W, reset: None },
        Item { name: "KRN_STATUS", offset: 0x4, bytes: 4, access: Access::R, reset: None },
        Item { name: "KRN_SEED", offset: 0x20, bytes: 32, access: Access::W, reset: None },
        Item { name: "KRN_PUBKEY", offset: 0x40, bytes: 64, access: Access::R, reset: None },
        Item { name: "KRN_T", offset: 0x80, bytes: 32, access: Access::R, reset: None },
        Item { name: "KRN_CONFIG_DIGEST", offset: 0xa0, bytes: 32, access: Access::R, reset: None },
        Item { name: "KRN_LAST", offset: 0x100, bytes: 88, access: Access::R, reset: None },
    ];
}

/// A queue of the DMA engine, in the control window of a card that has one.
pub mod dma {
    use super::{Access, Field, Item};

    /// Bytes of the map.
    pub const SIZE: u32 = 0x40;
    /// Where the first map lies in the control window.
    pub const BASE: u32 = 0xb000;
    /// Maps.
    pub const COUNT: u32 = 4;
    /// Bytes from a map to the next.
    pub const STRIDE: u32 = 0x40;
    /// Address of the ring for the card, a multiple of 4096: low half; written while the queue is
    /// off (rw).
    pub const RING_LO: u32 = 0x0;
    /// High half; written while the queue is off (rw).
    pub const RING_HI: u32 = 0x4;
    /// Descriptors of the ring: a power of two, 2 to 4096; written while the queue is off (rw).
    pub const ENTRIES: u32 = 0x8;
    /// What to do (w).
    pub const CONTROL: u32 = 0xc;
    /// Doorbell: descriptors submitted since the queue was turned on, modulo 2^32; forward only, at
    /// most ENTRIES beyond the completed ones; 0 while off (rw).
    pub const TAIL: u32 = 0x10;
    /// The queue's life (r).
    pub const STATUS: u32 = 0x14;
    /// Written while the queue is off (rw).
    pub const INTERRUPT: u32 = 0x18;
    /// OFF turns the queue off, which STATUS says when the card touches neither the ring nor what
    /// its descriptors name any more; ENABLE turns it on, empty; CANCEL ends all that was
    /// submitted.
    pub const CONTROL_COMMAND: Field = Field { lsb: 0, width: 32 };
    /// Value of [`CONTROL_COMMAND`].
    pub const CONTROL_COMMAND_CANCEL: u32 = 2;
    /// Value of [`CONTROL_COMMAND`].
    pub const CONTROL_COMMAND_ENABLE: u32 = 1;
    /// Value of [`CONTROL_COMMAND`].
    pub const CONTROL_COMMAND_OFF: u32 = 0;
    /// FAILED where the card could not reach the ring, or reaches nothing any more.
    pub const STATUS_LIFE: Field = Field { lsb: 0, width: 2 };
    /// Value of [`STATUS_LIFE`].
    pub const STATUS_LIFE_FAILED: u32 = 2;
    /// Value of [`STATUS_LIFE`].
    pub const STATUS_LIFE_OFF: u32 = 0;
    /// Value of [`STATUS_LIFE`].
    pub const STATUS_LIFE_ON: u32 = 1;
    /// Vector of the queue's interrupts.
    pub const INTERRUPT_VECTOR: Field = Field { lsb: 0, width: 16 };
    /// Completions until an interrupt, which comes earlier when the queue is empty; 0: no
    /// interrupts.
    pub const INTERRUPT_BATCH: Field = Field { lsb: 16, width: 16 };
    /// All registers and memories, by address.
    pub const ITEMS: &[Item] = &[
        Item { name: "RING_LO", offset: 0x0, bytes: 4, access: Access::Rw, reset: Some(0x0) },
        Item { name: "RING_HI", offset: 0x4, bytes: 4, access: Access::Rw, reset: Some(0x0) },
        Item { name: "ENTRIES", offset: 0x8, bytes: 4, access: Access::Rw, reset: Some(0x0) },
        Item { name: "CONTROL", offset: 0xc, bytes: 4, access: Access::W, reset: None },
        Item { name: "TAIL", offset: 0x10, bytes: 4, access: Access::Rw, reset: Some(0x0) },
        Item { name: "STATUS", offset: 0x14, bytes: 4, access: Access::R, reset: Some(0x0) },
        Item { name: "INTERRUPT", offset: 0x18, bytes: 4, access: Access::Rw, reset: Some(0x0) },
    ];
}

/// Adapter page of a card in the shell of AWS F2: answered by the shell's clock, whatever the core
/// does.
pub mod f2 {
    use super::{Access, Field, Item};

    /// Bytes of the map.
    pub const SIZE: u32 = 0x1000;
    /// Where the first map lies in the control window.
    pub const BASE: u32 = 0x10000;
    /// Maps.
    pub const COUNT: u32 = 1;
    /// Bytes from a map to the next.
    pub const STRIDE: u32 = 0x0;
    /// `HSF2`, least significant byte first (r).
    pub const ID: u32 = 0x0;
    /// Version of this page (r).
    pub const VERSION: u32 = 0x4;
    /// State of the card (r).
    pub const STATUS: u32 = 0x8;
    /// Clock of the core in kHz (r).
    pub const CORE_KHZ: u32 = 0xc;
    /// Clock of the Security Kernel in kHz (r).
    pub const KERNEL_KHZ: u32 = 0x10;
    /// What the shell takes for the configuration of the PCIe link (r).
    pub const PCIE: u32 = 0x14;
    /// 32-bit words of the boot medium, which begins at 0x1000000 of BAR0 (r).
    pub const MEDIUM_WORDS: u32 = 0x18;
    /// What to do (w).
    pub const CONTROL: u32 = 0x1c;
    /// Accesses of BAR0 that the core did not answer in time, since the image was loaded; saturates
    /// (r).
    pub const OCL_LATE: u32 = 0x20;
    /// Reads of BAR4 that the core did not answer in time; saturates (r).
    pub const PCIS_READS_LATE: u32 = 0x24;
    /// Writes of BAR4 that the core did not accept in time; saturates (r).
    pub const PCIS_WRITES_LATE: u32 = 0x28;
    /// Interrupts of vectors that the shell does not have; saturates (r).
    pub const IRQ_DROPPED: u32 = 0x2c;
    /// Duration of the last wipe in cycles of 4 ns, from its cause to the reset of the core (r).
    pub const WIPE_CYCLES: u32 = 0x30;
    /// How often the core's clock was lost; saturates (r).
    pub const UNLOCKS: u32 = 0x34;
    /// Words that the boot medium accepted since it was opened, or since the last RESET (r).
    pub const MEDIUM_WRITES: u32 = 0x38;
    /// The core's clock runs.
    pub const STATUS_LOCKED: Field = Field { lsb: 0, width: 1 };
    /// The core is out of reset, and its control window is reachable.
    pub const STATUS_RUNNING: Field = Field { lsb: 1, width: 1 };
    /// The Security Kernel has booted.
    pub const STATUS_READY: Field = Field { lsb: 2, width: 1 };
    /// Card memory is calibrated.
    pub const STATUS_MEMORY_READY: Field = Field { lsb: 3, width: 1 };
    /// The boot medium is frozen: writes are dropped, and reads return 0.
    pub const STATUS_FROZEN: Field = Field { lsb: 4, width: 1 };
    /// The core is being wiped.
    pub const STATUS_WIPING: Field = Field { lsb: 5, width: 1 };
    /// The kernel's first alert since its reset, 0 for none.
    pub const STATUS_ALERT: Field = Field { lsb: 8, width: 4 };
    /// Maximum payload: 128 bytes << value.
    pub const PCIE_MAX_PAYLOAD: Field = Field { lsb: 0, width: 2 };
    /// Maximum read request: 128 bytes << value.
    pub const PCIE_MAX_READ_REQUEST: Field = Field { lsb: 4, width: 3 };
    /// START freezes the medium and releases core and kernel, if the core is in reset, wiped and
    /// has a clock; RESET wipes the core, resets it and opens the medium.
    pub const CONTROL_COMMAND: Field = Field { lsb: 0, width: 32 };
    /// Value of [`CONTROL_COMMAND`].
    pub const CONTROL_COMMAND_RESET: u32 = 2;
    /// Value of [`CONTROL_COMMAND`].
    pub const CONTROL_COMMAND_START: u32 = 1;
    /// All registers and memories, by address.
    pub const ITEMS: &[Item] = &[
        Item { name: "ID", offset: 0x0, bytes: 4, access: Access::R, reset: Some(0x32465348) },
        Item { name: "VERSION", offset: 0x4, bytes: 4, access: Access::R, reset: Some(0x1) },
        Item { name: "STATUS", offset: 0x8, bytes: 4, access: Access::R, reset: Some(0x0) },
        Item { name: "CORE_KHZ", offset: 0xc, bytes: 4, access: Access::R, reset: None },
        Item { name: "KERNEL_KHZ", offset: 0x10, bytes: 4, access: Access::R, reset: None },
        Item { name: "PCIE", offset: 0x14, bytes: 4, access: Access::R, reset: None },
        Item { name: "MEDIUM_WORDS", offset: 0x18, bytes: 4, access: Access::R, reset: None },
        Item { name: "CONTROL", offset: 0x1c, bytes: 4, access: Access::W, reset: None },
        Item { name: "OCL_LATE", offset: 0x20, bytes: 4, access: Access::R, reset: None },
        Item { name: "PCIS_READS_LATE", offset: 0x24, bytes: 4, access: Access::R, reset: None },
        Item { name: "PCIS_WRITES_LATE", offset: 0x28, bytes: 4, access: Access::R, reset: None },
        Item { name: "IRQ_DROPPED", offset: 0x2c, bytes: 4, access: Access::R, reset: None },
        Item { name: "WIPE_CYCLES", offset: 0x30, bytes: 4, access: Access::R, reset: None },
        Item { name: "UNLOCKS", offset: 0x34, bytes: 4, access: Access::R, reset: None },
        Item { name: "MEDIUM_WRITES", offset: 0x38, bytes: 4, access: Access::R, reset: None },
    ];
}
