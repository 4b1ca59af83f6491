//! Errors of reaching a device, by who can act on them.

use shef_proto::code::Code;

/// Why a device could not be named, opened or reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The URI names no kind of device that exists.
    #[error(
        "unknown device URI {uri:?}: expected sim:model, sim:rtl, sim:rtl?project=DIR, vfio-user:/SOCKET, pci:DOMAIN:BUS:DEVICE.FUNCTION, pci:ueid=UEID or tls://HOST:PORT/DEVICE"
    )]
    UnknownUri {
        /// The text as given.
        uri: String,
    },
    /// The kind of device is known, the rest of the URI is malformed.
    #[error("malformed device URI {uri:?}: {reason}")]
    MalformedUri {
        /// The text as given.
        uri: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The URI is right, but this version cannot open such a device.
    #[error("this program cannot open {uri}: `shef device list` shows the forms of devices")]
    NotInThisVersion {
        /// The URI.
        uri: String,
    },
    /// This program was built without what opens such a device.
    #[error("{uri} needs {what}, and this program was built without it: expected the cargo feature `{feature}`")]
    NotBuilt {
        /// The URI.
        uri: String,
        /// What it needs.
        what: &'static str,
        /// The cargo feature of crate `shef`, and of the command, that builds it.
        feature: &'static str,
    },
    /// A register read returned all ones where that is no legal value.
    #[error("device gone: register {offset:#06x} reads all ones")]
    Gone {
        /// Offset in the control window.
        offset: u32,
    },
    /// The bus answered a register access with an error.
    #[error("control window refused {access} at offset {offset:#06x}")]
    CtlRefused {
        /// `read` or `write`.
        access: &'static str,
        /// Offset in the control window.
        offset: u32,
    },
    /// A range of card memory does not exist.
    #[error("card memory has {memory_bytes:#x} bytes, access asked for {len:#x} bytes at {addr:#x}")]
    MemoryRange {
        /// First byte.
        addr: u64,
        /// Bytes.
        len: u64,
        /// Size of the memory.
        memory_bytes: u64,
    },
    /// A message is longer than the mailbox.
    #[error("message of {len} bytes for the Security Kernel, the mailbox holds {max}")]
    MailboxTooLong {
        /// Bytes of the message.
        len: usize,
        /// Bytes of the mailbox.
        max: usize,
    },
    /// The Security Kernel did not answer.
    #[error("the Security Kernel did not answer: mailbox status is {status:#x} after {polls} polls")]
    MailboxTimeout {
        /// Last status.
        status: u32,
        /// Polls made.
        polls: u32,
    },
    /// The window is not that of a Shield.
    #[error("no Shield behind {uri}: register MAGIC is {found:#010x}, expected {expected:#010x}")]
    NotAShield {
        /// The URI.
        uri: String,
        /// What was read.
        found: u32,
        /// What a Shield shows.
        expected: u32,
    },
    /// The function on the bus is not shaped as a card.
    #[error("no card behind {uri}: BAR{bar} has {bytes:#x} bytes, expected at least {need:#x}")]
    NotACard {
        /// The URI.
        uri: String,
        /// The BAR.
        bar: u8,
        /// Its bytes.
        bytes: u64,
        /// Bytes that a card has there.
        need: u64,
    },
    /// A queue of the DMA engine.
    #[error("queue {index}: {what}")]
    Queue {
        /// Number of the queue.
        index: u32,
        /// What is wrong with it.
        what: String,
    },
    /// What the Security Kernel shows as certificates names no device.
    #[error("the Security Kernel shows no identity: {reason}")]
    NoIdentity {
        /// What is wrong with it.
        reason: String,
    },
    /// No card of this machine has the name.
    #[error("no card of this machine says that its ueid is {ueid}: {others}")]
    NoSuchCard {
        /// The name.
        ueid: crate::Ueid,
        /// What the cards said that there are.
        others: String,
    },
    /// Two cards say that they have the name.
    #[error("{first} and {second} both say that their ueid is {ueid}")]
    TwoCards {
        /// The name.
        ueid: crate::Ueid,
        /// One of them.
        first: String,
        /// The other one.
        second: String,
    },
    /// An access outside memory that is mapped into this program.
    #[error(transparent)]
    OutOfRange(#[from] crate::OutOfRange),
    /// The way to the device failed: VFIO, a socket, an agent.
    #[error("{message}")]
    Transport {
        /// Code of what failed.
        code: &'static str,
        /// What failed, what was expected, what to do.
        message: String,
    },
    /// A device behind an agent failed, in a way of which only code and message came over.
    #[error("{message}")]
    Remote {
        /// Code of what failed.
        code: String,
        /// What failed.
        message: String,
    },
    /// The simulated card failed.
    #[error("simulated card: {message}")]
    Simulator {
        /// Code of what failed.
        code: &'static str,
        /// What failed.
        message: String,
    },
}

impl DeviceError {
    /// Stable code of the error.
    pub fn code(&self) -> &str {
        match self {
            Self::UnknownUri { .. } => "SHEF-DEV-001",
            Self::MalformedUri { .. } => "SHEF-DEV-002",
            Self::NotInThisVersion { .. } => "SHEF-DEV-003",
            Self::NotBuilt { .. } => "SHEF-DEV-004",
            Self::Gone { .. } => "SHEF-DEV-005",
            Self::CtlRefused { .. } => "SHEF-DEV-006",
            Self::MemoryRange { .. } => "SHEF-DEV-007",
            Self::MailboxTooLong { .. } => "SHEF-DEV-008",
            Self::MailboxTimeout { .. } => "SHEF-DEV-009",
            Self::NotAShield { .. } => "SHEF-DEV-010",
            Self::NotACard { .. } => "SHEF-DEV-011",
            Self::OutOfRange(_) => "SHEF-DEV-012",
            Self::Queue { .. } => "SHEF-DEV-013",
            Self::NoSuchCard { .. } => "SHEF-DEV-014",
            Self::TwoCards { .. } => "SHEF-DEV-015",
            Self::NoIdentity { .. } => "SHEF-DEV-016",
            Self::Simulator { code, .. } | Self::Transport { code, .. } => code,
            Self::Remote { code, .. } => code,
        }
    }
}

/// Codes of this crate.
pub const CODES: &[Code] = &[
    Code {
        id: "SHEF-DEV-001",
        summary: "the device URI names no kind of device",
        help: "use one of the forms that `shef device list` prints",
    },
    Code { id: "SHEF-DEV-002", summary: "the device URI is malformed", help: "compare it with the forms that `shef device list` prints" },
    Code {
        id: "SHEF-DEV-003",
        summary: "this program cannot open such a device",
        help: "name one of a form that `shef device list` prints",
    },
    Code {
        id: "SHEF-DEV-004",
        summary: "the program was built without this kind of device",
        help: "build it with the feature that the message names: `cargo build -p shef-cli --features sim` for the command `shef`, a feature of crate `shef` for a program of your own",
    },
    Code {
        id: "SHEF-DEV-005",
        summary: "the device left the bus",
        help: "reset or re-attach the device, then open a new session: keys do not survive",
    },
    Code {
        id: "SHEF-DEV-006",
        summary: "a register access was answered with an error",
        help: "the offset is not a register of this card, or one of its DMA engine, which belongs to the program that has the card: check the version of the card with `shef device info`",
    },
    Code {
        id: "SHEF-DEV-007",
        summary: "an access outside card memory",
        help: "check the region addresses of shield.toml against the card's memory (`shef device info`)",
    },
    Code { id: "SHEF-DEV-008", summary: "a message is longer than the kernel's mailbox", help: "send less data in one message" },
    Code {
        id: "SHEF-DEV-009",
        summary: "the Security Kernel did not answer",
        help: "reset the device; if it stays silent its boot failed",
    },
    Code {
        id: "SHEF-DEV-010",
        summary: "there is no Shield behind this device",
        help: "load an image that contains a Shield, or name another device",
    },
    Code {
        id: "SHEF-DEV-011",
        summary: "the PCI function is no card of this kind",
        help: "name another device; on AWS F2 load the image first, because an unloaded function has other BARs",
    },
    Code {
        id: "SHEF-DEV-012",
        summary: "an access outside memory that is shared with a device",
        help: "this is a defect of the program that made the access: please report it with the command",
    },
    Code {
        id: "SHEF-DEV-013",
        summary: "a queue of the card's DMA engine does not work as it must",
        help: "open the device anew, which resets the card; a queue that stops again and again means that the card cannot reach host memory: see `shef device doctor`",
    },
    Code {
        id: "SHEF-DEV-014",
        summary: "no card of this machine has this ueid",
        help: "`shef device list --ueid` shows those of the cards that are free; a card that another program uses is not asked",
    },
    Code {
        id: "SHEF-DEV-015",
        summary: "two cards of this machine show the same ueid",
        help: "one of them lies or was cloned: neither is opened by that name; name the slot, and let a policy demand the ueid of evidence",
    },
    Code {
        id: "SHEF-DEV-016",
        summary: "the Security Kernel shows no identity",
        help: "the device has no valid certificates: reset it; if that does not help it was never provisioned",
    },
];
