//! Errors in reaching a PCI function through VFIO. Each states the remedy.

use std::io;

use shef_device::{Bdf, DeviceError};

shef_proto::coded! {
    /// Why a PCI function could not be opened or used.
    #[derive(Debug, Clone, thiserror::Error)]
    #[non_exhaustive]
    pub enum VfioError {
        /// The function does not exist.
        #[error("there is no PCI function {function}; `shef device list` shows the cards of this machine")]
        NoFunction {
            /// The function.
            function: Bdf,
        } = "SHEF-PCI-001": "there is no such PCI function", "`shef device list` shows the cards \
            of this machine. Without one: does the card have power? On an F2 instance, \
            `shef cloud load` and `shef cloud bind` come first",
        /// The function is not a card.
        #[error("PCI function {function} is {found}, expected a card, {expected}; `shef device \
            list` shows the cards of this machine")]
        WrongId {
            /// The function.
            function: Bdf,
            /// Its IDs, vendor:device.
            found: String,
            /// A card's IDs.
            expected: String,
        } = "SHEF-PCI-002": "the PCI function is not a card",
            "`shef device list` shows the cards of this machine; a card has its PCI IDs only \
            while a shef image is loaded",
        /// The kernel has put the function into no IOMMU group.
        #[error(
            "PCI function {function} is not in an IOMMU group: there is no IOMMU, or it is off; \
            boot with intel_iommu=on (Intel) or amd_iommu=on (AMD); on a machine without one, \
            read `shef explain SHEF-PCI-011`, then add ?iommu=none to the URI"
        )]
        NoIommu {
            /// The function.
            function: Bdf,
        } = "SHEF-PCI-003": "there is no IOMMU, or it is off",
            "enable VT-d or AMD-Vi in the firmware, boot with intel_iommu=on or amd_iommu=on, and \
            run `shef device doctor`; most cloud virtual machines have no IOMMU: see SHEF-PCI-011",
        /// The function has another driver or no driver.
        #[error("PCI function {function} is bound to {driver}, expected vfio-pci; run: {command}")]
        OtherDriver {
            /// The function.
            function: Bdf,
            /// Driver, or `no driver`.
            driver: String,
            /// The command that binds it.
            command: String,
        } = "SHEF-PCI-004": "another driver holds the card",
            "`shef device doctor` prints the commands that bind it to vfio-pci; they need root",
        /// Other functions of the same group have drivers that do DMA.
        #[error("IOMMU group {group} is not viable: {members} must be bound to vfio-pci or to no driver; run: {command}")]
        NotViable {
            /// Group.
            group: u32,
            /// Functions and their drivers.
            members: String,
            /// The command that unbinds them.
            command: String,
        } = "SHEF-PCI-005": "the card's IOMMU group is not viable",
            "every function of the group must be bound to vfio-pci or to no driver: `shef device doctor` lists them with the commands",
        /// The user lacks permission.
        #[error("no permission for {path}: {reason}; run as root, or: {command}")]
        Permission {
            /// The path.
            path: String,
            /// The system's error.
            reason: String,
            /// The command that fixes it.
            command: String,
        } = "SHEF-PCI-006": "no permission for VFIO",
            "run as root, or give your user the group's node: `shef device doctor` prints the command",
        /// Another program uses the function.
        #[error("PCI function {function} is in use by {holder}; end that program, or wait for it")]
        InUse {
            /// The function.
            function: Bdf,
            /// `pid N (name)`, if known.
            holder: String,
        } = "SHEF-PCI-007": "another program uses the card", "a card has one user at a time: end the program that the message names",
        /// The kernel does not provide VFIO.
        #[error("{path} does not exist: the kernel's VFIO module is not loaded; run: {command}")]
        NoVfio {
            /// What is missing.
            path: String,
            /// The command that fixes it.
            command: String,
        } = "SHEF-PCI-008": "the kernel's VFIO module is not loaded",
            "run `modprobe vfio-pci` as root",
        /// A BAR is missing or too small.
        #[error(
            "BAR{bar} of {function} has {found:#x} bytes, expected {expected:#x} or more: this is \
            not a card of this version, or its image is not loaded"
        )]
        BarSize {
            /// The function.
            function: Bdf,
            /// Number of the BAR.
            bar: u8,
            /// Its size in bytes.
            found: u64,
            /// The required size in bytes.
            expected: u64,
        } = "SHEF-PCI-009": "a BAR is missing or too small",
            "the function does not have a card's layout: check that the right image is loaded and \
            that the bus was rescanned afterwards",
        /// The limit of locked memory is reached.
        #[error(
            "cannot lock {needed} more bytes for DMA: the limit (RLIMIT_MEMLOCK) is {limit}; run: ulimit -l unlimited, or LimitMEMLOCK=infinity in the unit"
        )]
        LockedMemory {
            /// The required bytes.
            needed: u64,
            /// The limit.
            limit: u64,
        } = "SHEF-PCI-010": "the limit of locked memory is too low for DMA",
            "`ulimit -l unlimited` before the program, LimitMEMLOCK=infinity in a systemd unit, or /etc/security/limits.conf",
        /// Only no-IOMMU works here, and the URI does not request it.
        #[error(
            "{function} can only be used without an IOMMU, which leaves this machine unprotected: \
            the device, and anyone who controls it, can read and write all of this machine's memory; add \
            ?iommu=none to the URI to accept that"
        )]
        Unprotected {
            /// The function.
            function: Bdf,
        } = "SHEF-PCI-011": "the card can only be used without an IOMMU, and the URI does not \
            allow that",
            "without an IOMMU the card, and anyone who controls it, can read and write all of \
            this machine's memory, and the kernel is tainted; the Shield still protects the \
            owner's data in card memory, nothing protects this machine; ?iommu=none accepts that",
        /// The URI requests no-IOMMU, and the kernel does not offer it for this function.
        #[error("{function} cannot be used without an IOMMU: {reason}; run: {command}")]
        NoUnprotected {
            /// The function.
            function: Bdf,
            /// The reason.
            reason: String,
            /// The command that fixes it.
            command: String,
        } = "SHEF-PCI-012": "the kernel does not offer the card without an IOMMU",
            "the kernel needs CONFIG_VFIO_NOIOMMU and `echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode` before the card is \
             bound to vfio-pci",
        /// The URI requests iommufd, which the kernel does not offer.
        #[error(
            "{function} has no iommufd interface ({missing} does not exist): this kernel is older than 6.6 or built without CONFIG_VFIO_DEVICE_CDEV; use ?iommu=type1"
        )]
        NoIommufd {
            /// The function.
            function: Bdf,
            /// What is missing.
            missing: String,
        } = "SHEF-PCI-013": "there is no iommufd interface",
            "use ?iommu=type1, or a kernel of 6.6 or newer with CONFIG_IOMMUFD and CONFIG_VFIO_DEVICE_CDEV",
        /// The function cannot be reset.
        #[error("{function} cannot be reset: it has neither function-level reset nor a power state that resets it")]
        NoReset {
            /// The function.
            function: Bdf,
        } = "SHEF-PCI-014": "the card cannot be reset", "unload and load its image, or cycle its power",
        /// The function has no MSI-X.
        #[error("{function} has {found} MSI-X vectors, expected {wanted}")]
        Interrupts {
            /// The function.
            function: Bdf,
            /// Number of available vectors.
            found: u32,
            /// Number of required vectors.
            wanted: u32,
        } = "SHEF-PCI-015": "the card has too few interrupts", "is the right image loaded?",
        /// A buffer cannot be mapped.
        #[error("DMA buffer of {len} bytes: {reason}")]
        Dma {
            /// Size in bytes.
            len: u64,
            /// The reason.
            reason: String,
        } = "SHEF-PCI-016": "memory cannot be mapped for DMA", "the message names the reason",
        /// Physical addresses are hidden.
        #[error("physical addresses of this process's memory are hidden: DMA without an IOMMU needs CAP_SYS_ADMIN; run as root")]
        HiddenAddresses = "SHEF-PCI-017": "physical addresses are hidden", "DMA without an IOMMU needs CAP_SYS_ADMIN: run as root",
        /// No hugepage is free, and one is needed.
        #[error("no free 2 MiB hugepage, and DMA without an IOMMU needs memory in one piece; run: {command}")]
        NoHugepage {
            /// The command that reserves some.
            command: String,
        } = "SHEF-PCI-018": "there is no free hugepage", "`echo 64 > /proc/sys/vm/nr_hugepages` as root, or hugepages=64 at boot",
        /// An access outside a BAR or a buffer.
        #[error("access of {len} bytes at {offset:#x} of {what}, which has {size:#x} bytes")]
        Bounds {
            /// The BAR or buffer.
            what: String,
            /// Offset.
            offset: u64,
            /// Bytes.
            len: u64,
            /// Its size.
            size: u64,
        } = "SHEF-PCI-019": "an access outside a BAR or a buffer", "check the addresses against `shef device info`",
        /// The function has left the bus, or is about to.
        #[error("{function} left the bus, or the kernel wants to remove it and waits until it is closed")]
        Gone {
            /// The function.
            function: Bdf,
        } = "SHEF-PCI-020": "the card left the bus",
            "check `dmesg`; rescan the bus (`echo 1 > /sys/bus/pci/rescan`), then open a new \
            session: keys do not survive",
        /// The kernel refused a request that should succeed.
        #[error("{function}: {what}: {reason}")]
        Kernel {
            /// The function.
            function: Bdf,
            /// The request.
            what: &'static str,
            /// The system's error.
            reason: String,
        } = "SHEF-PCI-021": "the kernel refused a VFIO request",
            "`dmesg` may have details; `shef device doctor` checks the known causes",
    }
}

impl VfioError {
    /// The kernel refused a request.
    pub(crate) fn refused(function: Bdf, what: &'static str) -> impl Fn(io::Error) -> Self {
        move |e| Self::Kernel { function, what, reason: e.to_string() }
    }

    /// The command that fixes it, if there is one.
    pub fn command(&self) -> Option<&str> {
        match self {
            Self::OtherDriver { command, .. }
            | Self::NotViable { command, .. }
            | Self::Permission { command, .. }
            | Self::NoVfio { command, .. }
            | Self::NoUnprotected { command, .. }
            | Self::NoHugepage { command } => Some(command),
            Self::NoFunction { .. } | Self::WrongId { .. } => Some("shef device list"),
            Self::LockedMemory { .. } => Some("ulimit -l unlimited"),
            Self::Gone { .. } => Some("echo 1 > /sys/bus/pci/rescan"),
            _ => None,
        }
    }
}

impl From<VfioError> for DeviceError {
    fn from(error: VfioError) -> Self {
        Self::Transport { code: error.code(), message: error.to_string() }
    }
}
