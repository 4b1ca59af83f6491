//! Errors in reaching a device, by the party that can act on them.

shef_proto::coded! {
    /// Why a device could not be named, opened or reached.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum DeviceError -> &str {
        /// The path to the device failed: VFIO, a socket, an agent.
        #[error("{message}")]
        Transport {
            /// Code of the failure.
            code: &'static str,
            /// The failure, the expectation, and the remedy.
            message: String,
        } => { code, .. } code,
        /// A device behind an agent failed; only code and message were transmitted.
        #[error("{message}")]
        Remote {
            /// Code of the failure.
            code: String,
            /// The failure.
            message: String,
        } => { code, .. } code,
        /// The program of a simulated card ended with this error before the card was ready.
        #[error("{message}")]
        SimulatorEnded {
            /// Code of the failure.
            code: String,
            /// The failure.
            message: String,
        } => { code, .. } code,
        /// The simulated card failed.
        #[error("simulated card: {message}")]
        Simulator {
            /// Code of the failure.
            code: &'static str,
            /// The failure.
            message: String,
        } => { code, .. } code,
        /// The URI names an unknown kind of device.
        #[error(
            "unknown device URI {uri:?}: expected sim:model, sim:rtl, sim:rtl?project=DIR, vfio-user:/SOCKET, pci:DOMAIN:BUS:DEVICE.FUNCTION, pci:ueid=UEID or tls://HOST:PORT/DEVICE"
        )]
        UnknownUri {
            /// The text as given.
            uri: String,
        } = "SHEF-DEV-001": "the device URI does not start with a known kind of device", "use one of the forms that `shef device list` prints",
        /// The kind of device is known, the rest of the URI is malformed.
        #[error("malformed device URI {uri:?}: {reason}")]
        MalformedUri {
            /// The text as given.
            uri: String,
            /// What is wrong with it.
            reason: String,
        } = "SHEF-DEV-002": "the device URI is malformed", "compare it with the forms that `shef device list` prints",
        /// The URI is valid, but this version cannot open a device of this kind.
        #[error("this program cannot open {uri}: `shef device list` shows the supported forms")]
        NotInThisVersion {
            /// The URI.
            uri: String,
        } = "SHEF-DEV-003": "this program cannot open this kind of device", "use one of the forms that `shef device list` prints",
        /// This program was built without support for the device.
        #[error("{uri} needs {what}, and this program was built without it: expected the cargo feature `{feature}`")]
        NotBuilt {
            /// The URI.
            uri: String,
            /// The missing part.
            what: &'static str,
            /// The cargo feature of crate `shef`, and of the command, that builds it.
            feature: &'static str,
        } = "SHEF-DEV-004": "the program was built without this kind of device",
            "build your program with the feature of crate `shef` that the message names",
        /// A register read returned all ones, which is not a legal value there.
        #[error("device gone: register {offset:#06x} reads all ones")]
        Gone {
            /// Offset in the control window.
            offset: u32,
        } = "SHEF-DEV-005": "the device left the bus", "reset or re-attach the device, then open a new session: keys do not survive",
        /// The bus answered a register access with an error.
        #[error("control window refused {access} at offset {offset:#06x}")]
        CtlRefused {
            /// `read` or `write`.
            access: &'static str,
            /// Offset in the control window.
            offset: u32,
        } = "SHEF-DEV-006": "a register access was answered with an error",
            "the offset is not a register of this card, or is one of its DMA engine, which \
            belongs to the program that holds the card: check the version of the card with `shef \
            device info`",
        /// A range of card memory does not exist.
        #[error("access of {len:#x} bytes at {addr:#x} is outside card memory of \
            {memory_bytes:#x} bytes")]
        MemoryRange {
            /// First byte.
            addr: u64,
            /// Bytes.
            len: u64,
            /// Size of the memory.
            memory_bytes: u64,
        } = "SHEF-DEV-007": "an access outside card memory",
            "check the region addresses of shield.toml against the card's memory (`shef device info`)",
        /// A message is longer than the mailbox.
        #[error("message of {len} bytes for the Security Kernel, the mailbox holds {max}")]
        MailboxTooLong {
            /// Bytes of the message.
            len: usize,
            /// Bytes of the mailbox.
            max: usize,
        } = "SHEF-DEV-008": "a message is longer than the kernel's mailbox", "send less data in one message",
        /// The Security Kernel did not answer.
        #[error("the Security Kernel did not answer: mailbox status is {status:#x} after {polls} polls")]
        MailboxTimeout {
            /// Last status.
            status: u32,
            /// Polls made.
            polls: u32,
        } = "SHEF-DEV-009": "the Security Kernel did not answer", "reset the device; if it still does not answer, its boot failed",
        /// The control window does not belong to a Shield.
        #[error("no Shield behind {uri}: register MAGIC is {found:#010x}, expected {expected:#010x}")]
        NotAShield {
            /// The URI.
            uri: String,
            /// The value read.
            found: u32,
            /// The value that a Shield shows.
            expected: u32,
        } = "SHEF-DEV-010": "there is no Shield behind this device", "load an image that contains a Shield, or name another device",
        /// The PCI function does not have the layout of a card.
        #[error("no card behind {uri}: BAR{bar} has {bytes:#x} bytes, expected at least {need:#x}")]
        NotACard {
            /// The URI.
            uri: String,
            /// The BAR.
            bar: u8,
            /// Its size in bytes.
            bytes: u64,
            /// The size in bytes that a card has there.
            need: u64,
        } = "SHEF-DEV-011": "the PCI function is not a card of this kind",
            "name another device; on AWS F2 load the image first, because an unloaded function has other BARs",
        /// An access outside memory that is mapped into this program.
        #[error(transparent)]
        OutOfRange(#[from] crate::OutOfRange) = "SHEF-DEV-012": "an access outside memory shared with a device",
            "this is a defect of the program that made the access: please report it with the command",
        /// A queue of the DMA engine failed.
        #[error("queue {index}: {what}")]
        Queue {
            /// Number of the queue.
            index: u32,
            /// The failure.
            what: String,
        } = "SHEF-DEV-013": "a queue of the card's DMA engine failed",
            "open the device again, which resets the card; if the queue keeps stopping, the card \
            cannot reach host memory: see `shef device doctor`",
        /// No card of this machine has this name.
        #[error("no card of this machine reports the ueid {ueid}: {others}")]
        NoSuchCard {
            /// The name.
            ueid: crate::Ueid,
            /// The names of the other cards.
            others: String,
        } = "SHEF-DEV-014": "no card of this machine has this ueid",
            "`shef device list --ueid` shows the ueids of free cards; it cannot read the ueid of \
            a card that another program uses",
        /// Two cards claim the same name.
        #[error("{first} and {second} both report the ueid {ueid}")]
        TwoCards {
            /// The name.
            ueid: crate::Ueid,
            /// One of them.
            first: String,
            /// The other one.
            second: String,
        } = "SHEF-DEV-015": "two cards of this machine show the same ueid",
            "one of them is a clone or reports a false ueid, so neither is opened by ueid; name \
            the slot, and require the ueid in evidence with a policy",
        /// The Security Kernel's certificates do not name a device.
        #[error("the Security Kernel has no identity: {reason}")]
        NoIdentity {
            /// What is wrong with it.
            reason: String,
        } = "SHEF-DEV-016": "the Security Kernel has no identity",
            "the device has no valid certificates: reset it; if that does not help, it was never \
            provisioned",
        /// The program of simulated cards does not start.
        #[error("no simulated card: {what}")]
        NoSimulator {
            /// The failure.
            what: String,
        } = "SHEF-DEV-017": "the program of simulated cards does not start",
            "a simulated card is a separate process, shef-sim, which is found next to this \
            program, on PATH, or with the environment variable SHEF_SIM; `cargo build -p \
            shef-sim` builds it",
        /// The card does not come back after a reset.
        #[error("the adapter of {card} reads {found:#010x} {ms} ms after a reset, expected 0x32465348")]
        NoReturn {
            /// The card.
            card: String,
            /// The register.
            found: u32,
            /// Waiting time.
            ms: u128,
        } = "SHEF-DEV-018": "the card does not come back after a reset",
            "`shef cloud metrics` shows time-outs and power violations; `shef cloud clear` and `shef cloud load` start the card anew",
        /// The page is not the adapter's.
        #[error("{card}: register {name} is {found:#010x}, expected {expected:#010x}")]
        Adapter {
            /// The card.
            card: String,
            /// The register.
            name: &'static str,
            /// Its value.
            found: u32,
            /// The expected value.
            expected: u32,
        } = "SHEF-DEV-019": "the image in the slot has no adapter of shef, or another version of it",
            "load the image that the lock file names with `shef cloud load`",
        /// The boot medium is malformed or too long.
        #[error("the boot medium: {what}")]
        Medium {
            /// What is wrong.
            what: String,
        } = "SHEF-DEV-020": "the boot medium is truncated, malformed or too long",
            "give the kernel image and signature of attestation/firmware and the certificate that `shef cloud new` left in the image's folder",
        /// The medium reads back differently.
        #[error("word {word} of the boot medium reads {found:#010x}, and {written:#010x} was written")]
        MediumChanged {
            /// Number of the word.
            word: usize,
            /// The value read.
            found: u32,
            /// The value written.
            written: u32,
        } = "SHEF-DEV-021": "the boot medium changed while it was written",
            "another program writes to the card, or it was reset: end the other one, then run the same command again",
        /// The kernel did not boot.
        #[error("the Security Kernel did not boot within {ms} ms: {state}")]
        NoKernel {
            /// State of the card, in words.
            state: String,
            /// Waiting time.
            ms: u128,
        } = "SHEF-DEV-022": "the Security Kernel did not boot",
            "alert 4: kernel image, signature or certificate are not those of this image; alert 5: the noise source; a medium that changed between START and boot also ends there. docs/reference/kernel-image.md lists the alerts",
        /// Card and host have different PCIe parameters.
        #[error("{what} is {host} bytes for the host and {card} for the shell")]
        PcieParameters {
            /// Parameter.
            what: &'static str,
            /// Of configuration space.
            host: u32,
            /// As the shell reports it to the custom logic.
            card: u32,
        } = "SHEF-DEV-023": "host and shell see different PCIe parameters",
            "PCIM fails under load then (aws-fpga issue 656): reload the image, and if it stays, stop the instance and start it again",
        /// A file of the boot medium cannot be read.
        #[error("cannot read {} of the boot medium: {why}", file.display())]
        MediumFile {
            /// The file.
            file: std::path::PathBuf,
            /// The system's message.
            why: String,
        } = "SHEF-DEV-024": "a file of the boot medium cannot be read",
            "the folder that boot= names has three files: kernel.img and kernel.sig of \
            attestation/firmware, and device-id.der that `shef cloud new` left in the image's \
            folder",
        /// The card is behind F2's adapter, and was opened without a boot medium.
        #[error("{uri} waits for its boot medium, and the URI names none")]
        NoMedium {
            /// The URI.
            uri: String,
        } = "SHEF-DEV-025": "a card on AWS F2 was opened without its boot medium",
            "each open resets such a card, and its kernel boots from files of the host: name their \
            folder in the URI, as pci:0000:34:00.0?iommu=none&boot=/etc/shef/boot, or \
            vfio-user:/PATH?boot=/FOLDER for a simulated card. It has \
            kernel.img, kernel.sig and device-id.der",
    }
}

impl shef_proto::fault::Coded for DeviceError {
    fn code(&self) -> &str {
        self.code()
    }
}
