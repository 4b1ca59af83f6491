//! Addresses and bits on the bus. Generated from shell-rtl/regs/kernel.toml by `cargo xtask
//! generate`; do not edit.

/// Boot ROM; the processor starts at 0x80.
pub const ROM: u32 = 0x00000000;
/// Bytes of [`ROM`].
pub const ROM_LEN: usize = 0x10000;

/// Kernel memory: the measured image runs here; with ROM, the only memory that instructions are
/// fetched from.
pub const MEMORY: u32 = 0x10000000;
/// Bytes of [`MEMORY`].
pub const MEMORY_LEN: usize = 0x40000;

/// RAM, zero after reset.
pub const RAM: u32 = 0x20000000;
/// Bytes of [`RAM`].
pub const RAM_LEN: usize = 0x40000;

/// Boot medium, not trusted: whole words come from the shell.
pub const MEDIUM: u32 = 0x30000000;
/// Bytes of [`MEDIUM`].
pub const MEDIUM_LEN: usize = 0x100000;

/// Registers `sys`.
pub const SYS: u32 = 0x40000000;
/// Bytes of [`SYS`].
pub const SYS_LEN: usize = 0x1000;

/// Registers `mailbox`.
pub const MAILBOX: u32 = 0x40001000;
/// Bytes of [`MAILBOX`].
pub const MAILBOX_LEN: usize = 0x1000;

/// Registers `krn` of the Shield.
pub const SHIELD: u32 = 0x40002000;
/// Bytes of [`SHIELD`].
pub const SHIELD_LEN: usize = 0x1000;

/// Registers `noise`.
pub const NOISE: u32 = 0x40003000;
/// Bytes of [`NOISE`].
pub const NOISE_LEN: usize = 0x1000;

/// Request of the host, while one waits; zero otherwise.
pub const REQUEST: u32 = 0x40004000;
/// Bytes of [`REQUEST`].
pub const REQUEST_LEN: usize = 0x2000;

/// Answer to the host, written while a request waits; the host sees the first 7,680 bytes.
pub const ANSWER: u32 = 0x40006000;
/// Bytes of [`ANSWER`].
pub const ANSWER_LEN: usize = 0x2000;

/// Registers `unit` of the scalar multiplication on P-256.
pub const P256: u32 = 0x40008000;
/// Bytes of [`P256`].
pub const P256_LEN: usize = 0x1000;

/// Registers `unit` of SHA-256 and HMAC-SHA-256.
pub const HASH: u32 = 0x40009000;
/// Bytes of [`HASH`].
pub const HASH_LEN: usize = 0x1000;

/// Registers `unit` of AES-GCM.
pub const AES: u32 = 0x4000a000;
/// Bytes of [`AES`].
pub const AES_LEN: usize = 0x1000;

/// Registers `config`.
pub const CONFIG: u32 = 0x4000b000;
/// Bytes of [`CONFIG`].
pub const CONFIG_LEN: usize = 0x1000;

/// Registers `unit` of a second SHA-256 and HMAC-SHA-256, for a digest that runs beside others.
pub const MEASURE: u32 = 0x4000c000;
/// Bytes of [`MEASURE`].
pub const MEASURE_LEN: usize = 0x1000;

/// Identity, life and alarms of the Security Kernel; registers are written in whole words.
pub mod sys {
    /// The bytes SHEK (r).
    pub const ID: u32 = 0x40000000;
    /// What to do; writing 1 acts (w).
    pub const CONTROL: u32 = 0x40000004;
    /// Bits of [`CONTROL`]: UDS reads as zeros until reset.
    pub const CONTROL_UDS_LOCK: u32 = 0x1;
    /// Bits of [`CONTROL`]: clear RAM, mailbox and units; the processor goes on, and its accesses
    /// to them wait.
    pub const CONTROL_WIPE: u32 = 0x2;
    /// Bits of [`CONTROL`]: stop until reset: the processor and its registers are cleared first,
    /// RAM, kernel memory, mailbox and units then.
    pub const CONTROL_HALT: u32 = 0x4;
    /// Bits of [`CONTROL`]: boot is over: the watchdog cannot be stopped any more.
    pub const CONTROL_READY: u32 = 0x8;
    /// State (r).
    pub const STATUS: u32 = 0x40000008;
    /// Bits of [`STATUS`]: UDS is locked.
    pub const STATUS_UDS_LOCKED: u32 = 0x1;
    /// Bits of [`STATUS`]: a debug function of the shell was on since the last reset, restart or
    /// wipe.
    pub const STATUS_DEBUG: u32 = 0x2;
    /// Bits of [`STATUS`]: RAM, mailbox and units are being cleared.
    pub const STATUS_CLEARING: u32 = 0x4;
    /// Bits of [`STATUS`]: they are clear since reset or the last WIPE, but for what was written
    /// since.
    pub const STATUS_CLEARED: u32 = 0x8;
    /// Bits of [`STATUS`]: the last access to SHIELD was answered with an error or not at all; it
    /// read zero or wrote nothing.
    pub const STATUS_NO_SHIELD: u32 = 0x10;
    /// Bits of [`STATUS`]: READY was written.
    pub const STATUS_READY: u32 = 0x20;
    /// The first alert since reset, which leaves the subsystem; later ones do not change it (rw).
    pub const ALERT: u32 = 0x4000000c;
    /// Bits of [`ALERT`]: what happened.
    pub const ALERT_CODE: u32 = 0xf;
    /// Value of [`ALERT_CODE`].
    pub const ALERT_CODE_DEBUG: u32 = 0x7;
    /// Value of [`ALERT_CODE`].
    pub const ALERT_CODE_IMAGE: u32 = 0x4;
    /// Value of [`ALERT_CODE`].
    pub const ALERT_CODE_MEMORY: u32 = 0x3;
    /// Value of [`ALERT_CODE`].
    pub const ALERT_CODE_NOISE: u32 = 0x5;
    /// Value of [`ALERT_CODE`].
    pub const ALERT_CODE_NONE: u32 = 0x0;
    /// Value of [`ALERT_CODE`].
    pub const ALERT_CODE_PANIC: u32 = 0x2;
    /// Value of [`ALERT_CODE`].
    pub const ALERT_CODE_TRAP: u32 = 0x1;
    /// Value of [`ALERT_CODE`].
    pub const ALERT_CODE_WATCHDOG: u32 = 0x6;
    /// Cycles since the processor started: low half; reading it keeps the high half for TIMER_HI
    /// (r).
    pub const TIMER_LO: u32 = 0x40000010;
    /// High half when TIMER_LO was read last (r).
    pub const TIMER_HI: u32 = 0x40000014;
    /// Cycles until the subsystem is reset, with alert WATCHDOG; 0 stops it, and is ignored after
    /// READY (rw).
    pub const WATCHDOG: u32 = 0x40000018;
    /// Kind of the root of trust, from the shell (r).
    pub const ROOT: u32 = 0x4000001c;
    /// Bits of [`ROOT`]: who vouches for the UDS.
    pub const ROOT_KIND: u32 = 0x3;
    /// Value of [`ROOT_KIND`].
    pub const ROOT_KIND_BOARD: u32 = 0x2;
    /// Value of [`ROOT_KIND`].
    pub const ROOT_KIND_PROVIDER: u32 = 0x3;
    /// Value of [`ROOT_KIND`].
    pub const ROOT_KIND_SHEF_BOOT: u32 = 0x1;
    /// Value of [`ROOT_KIND`].
    pub const ROOT_KIND_SIMULATED: u32 = 0x0;
    /// Unique device secret; zeros once it is locked (r).
    pub const UDS: u32 = 0x40000020;
    /// Name of the target, zero padded, from the shell (r).
    pub const TARGET: u32 = 0x40000040;
    /// Digest of the shell, from the shell (r).
    pub const SHELL: u32 = 0x40000060;
    /// What the shell leaves open to the host, from the shell (r).
    pub const SHELL_FLAGS: u32 = 0x40000080;
    /// Bits of [`SHELL_FLAGS`]: a configuration port.
    pub const SHELL_FLAGS_CONFIGURATION: u32 = 0x1;
    /// Bits of [`SHELL_FLAGS`]: readback of the configuration.
    pub const SHELL_FLAGS_READBACK: u32 = 0x2;
    /// Bits of [`SHELL_FLAGS`]: a debug bridge.
    pub const SHELL_FLAGS_DEBUG_BRIDGE: u32 = 0x4;
}

/// The Security Kernel's side of the mailbox; the host's side is in kernel-mailbox.md.
pub mod mailbox {
    /// Bytes of the request as the host gave them, which may be more than the buffer holds; 0 while
    /// none waits (r).
    pub const REQ_LEN: u32 = 0x40001000;
    /// State (r).
    pub const STATUS: u32 = 0x40001004;
    /// Bits of [`STATUS`]: a request waits for its answer; the host can change neither buffer.
    pub const STATUS_WAITING: u32 = 0x1;
    /// Bytes of the answer: hands it to the host; ignored while no request waits (w).
    pub const RSP_LEN: u32 = 0x40001008;
}

/// Raw bits of the noise source, tested.
pub mod noise {
    /// State of the health tests (r).
    pub const STATUS: u32 = 0x40003000;
    /// Bits of [`STATUS`]: the start-up test passed, and no test failed since.
    pub const STATUS_TESTED: u32 = 0x1;
    /// Bits of [`STATUS`]: WORD holds one.
    pub const STATUS_WORD: u32 = 0x2;
    /// Bits of [`STATUS`]: the repetition count test failed.
    pub const STATUS_REPETITION: u32 = 0x100;
    /// Bits of [`STATUS`]: the adaptive proportion test failed.
    pub const STATUS_PROPORTION: u32 = 0x200;
    /// Bits of [`STATUS`]: the source gave no bits.
    pub const STATUS_SILENCE: u32 = 0x400;
    /// Bits of [`STATUS`]: the lag test failed: bits repeat those before them.
    pub const STATUS_LAG: u32 = 0x800;
    /// Bits of [`STATUS`]: the shell's statement on the noise source: its min-entropy was measured
    /// on silicon, its bits come from a seed (simulation), or its min-entropy was never measured;
    /// the last two set bit 12, so that a program that reads bit 12 alone refuses both.
    pub const STATUS_SOURCE: u32 = 0x3000;
    /// Value of [`STATUS_SOURCE`].
    pub const STATUS_SOURCE_MEASURED: u32 = 0x0;
    /// Value of [`STATUS_SOURCE`].
    pub const STATUS_SOURCE_SEEDED: u32 = 0x1000;
    /// Value of [`STATUS_SOURCE`].
    pub const STATUS_SOURCE_UNMEASURED: u32 = 0x3000;
    /// 32 raw bits, the first one on top, each read once; 0 if no word is ready (r).
    pub const WORD: u32 = 0x40003004;
}

/// A unit of cryptography on a stream of bytes: an access waits until the unit takes or has what it
/// needs, and is a bus error after 262,144 cycles.
pub mod unit {
    /// Starts a command of the unit when the one before is over (w).
    pub const CMD: u32 = 0x0;
    /// Bits of [`CMD`]: command.
    pub const CMD_COMMAND: u32 = 0xf;
    /// Bits of [`CMD`]: its length.
    pub const CMD_LEN: u32 = 0xffff0000;
    /// State (r).
    pub const STATUS: u32 = 0x4;
    /// Bits of [`STATUS`]: the last command is over.
    pub const STATUS_READY: u32 = 0x1;
    /// Bits of [`STATUS`]: its outcome.
    pub const STATUS_OK: u32 = 0x2;
    /// Bits of [`STATUS`]: bytes that can be read at once.
    pub const STATUS_READABLE: u32 = 0x700;
    /// Bits of [`STATUS`]: bytes that can be written at once.
    pub const STATUS_WRITABLE: u32 = 0x7000;
    /// Four bytes of the stream, the first one lowest (rw).
    pub const DATA4: u32 = 0x8;
    /// One byte of the stream, lowest (rw).
    pub const DATA1: u32 = 0xc;
    /// Any write clears the unit, and is over when that is done (w).
    pub const WIPE: u32 = 0x10;
}

/// Configuration port of the fabric.
pub mod config {
    /// What to do; writing 1 acts (w).
    pub const CONTROL: u32 = 0x4000b000;
    /// Bits of [`CONTROL`]: clears the fabric; an image follows.
    pub const CONTROL_BEGIN: u32 = 0x1;
    /// Bits of [`CONTROL`]: the word written last ends the image.
    pub const CONTROL_FINISH: u32 = 0x2;
    /// Bits of [`CONTROL`]: clears the fabric and discards an unfinished image.
    pub const CONTROL_CLEAR: u32 = 0x4;
    /// State (r).
    pub const STATUS: u32 = 0x4000b004;
    /// Bits of [`STATUS`]: the image is not yet whole, or the fabric works.
    pub const STATUS_BUSY: u32 = 0x1;
    /// Bits of [`STATUS`]: a design stands in the fabric and runs.
    pub const STATUS_ACTIVE: u32 = 0x2;
    /// Bits of [`STATUS`]: the fabric refused the image.
    pub const STATUS_ERROR: u32 = 0x4;
    /// Four bytes of the image, between BEGIN and FINISH; a bus error elsewhere (w).
    pub const DATA: u32 = 0x4000b008;
    /// Digest of the design in the fabric, from the shell; zeros while none is active (r).
    pub const DESIGN: u32 = 0x4000b020;
}
