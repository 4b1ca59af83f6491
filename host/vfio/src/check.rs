//! Requirements for opening a card. [`crate::OpenFunction`] stops at the first failed check;
//! `shef device doctor` shows all of them.

use std::path::Path;

use shef_device::{Bdf, CTL_BYTES, Iommu, pci};

use crate::VfioError;
use crate::sys;
use crate::system::{Function, HUGEPAGE, System};

/// Drivers that other functions of a card's group may have: these do no DMA.
const HARMLESS: [&str; 3] = ["vfio-pci", "pci-stub", "pcieport"];
/// DMA memory that a program may want, in bytes, for the check of the limit.
const DMA_BYTES: u64 = 64 << 20;

/// The interface that a function is opened through.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Interface {
    /// A VFIO container of type 1 and the group's node.
    Type1 {
        /// The group's node.
        node: String,
    },
    /// iommufd and the function's own node.
    Iommufd {
        /// The function's node.
        node: String,
    },
    /// A container without an IOMMU and the group's node.
    Unprotected {
        /// The group's node.
        node: String,
    },
}

impl Interface {
    /// Name, as in `?iommu=`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Type1 { .. } => "type1",
            Self::Iommufd { .. } => "iommufd",
            Self::Unprotected { .. } => "none",
        }
    }

    /// The node to open.
    pub fn node(&self) -> &str {
        match self {
            Self::Type1 { node } | Self::Iommufd { node } | Self::Unprotected { node } => node,
        }
    }
}

/// Outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The check passed.
    Pass,
    /// The card works, but not optimally.
    Warn,
    /// The card cannot be opened.
    Fail,
    /// Not checked.
    Untested,
}

/// One check of `shef device doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Subject of the check.
    pub check: &'static str,
    /// Its outcome.
    pub verdict: Verdict,
    /// The state found.
    pub found: String,
    /// Code of the fault.
    pub code: Option<&'static str>,
    /// The command that fixes it.
    pub command: Option<String>,
}

impl Finding {
    fn pass(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Pass, found: found.into(), code: None, command: None }
    }

    fn warn(
        check: &'static str,
        found: impl Into<String>,
        code: Option<&'static str>,
        command: Option<String>,
    ) -> Self {
        Self { check, verdict: Verdict::Warn, found: found.into(), code, command }
    }

    fn untested(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, verdict: Verdict::Untested, found: found.into(), code: None, command: None }
    }

    fn of(check: &'static str, result: Result<String, VfioError>) -> Self {
        match result {
            Ok(found) => Self::pass(check, found),
            Err(error) => Self {
                check,
                verdict: Verdict::Fail,
                found: error.to_string(),
                code: Some(error.code()),
                command: error.command().map(str::to_owned),
            },
        }
    }
}

/// Checks everything that must hold before `function`, which must have one of the `ids`, is opened.
///
/// # Errors
/// The first failed check.
pub fn ready(
    system: &System,
    function: Bdf,
    iommu: Iommu,
    ids: &[(u16, u16)],
) -> Result<(Function, Interface), VfioError> {
    let function = system.function(function)?;
    identity(&function, ids)?;
    driver(&function)?;
    let interface = interface(system, &function, iommu)?;
    viable(system, &function)?;
    kernel(system, &interface)?;
    permission(system, &interface)?;
    Ok((function, interface))
}

/// Runs all checks of a function, including those after a failure.
pub fn examine(system: &System, bdf: Bdf, iommu: Iommu) -> Vec<Finding> {
    let version = system.text("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    let mut all = vec![Finding::pass(
        "versions",
        format!("shef {}, Linux {version}", env!("CARGO_PKG_VERSION")),
    )];
    let function = match system.function(bdf) {
        Ok(function) => function,
        Err(error) => {
            all.push(Finding::of("function", Err(error)));
            return all;
        }
    };
    all.push(Finding::of("function", identity(&function, pci::IDS)));
    all.push(Finding::of("driver", driver(&function)));
    let interface = interface(system, &function, iommu);
    all.push(Finding::of(
        "IOMMU",
        interface
            .clone()
            .map(|i| format!("interface {}, group {}", i.name(), function.group.unwrap_or(0))),
    ));
    all.push(Finding::of("group", viable(system, &function)));
    match &interface {
        Ok(interface) => {
            all.push(Finding::of("kernel modules", kernel(system, interface)));
            all.push(Finding::of("permission", permission(system, interface)));
            all.push(Finding::of("use", free(system, &function, interface)));
        }
        Err(_) => all.push(Finding::untested(
            "kernel modules, permission, use",
            "they depend on the IOMMU's interface",
        )),
    }
    all.push(Finding::of("BARs", bars(&function)));
    all.push(hugepages(system, &function, &interface));
    all.push(locked());
    all.push(reset(system, &function));
    all.push(Finding::untested(
        "the card itself",
        format!(
            "doctor does not touch registers, interrupts, DMA or Security Kernel: `shef device \
            info pci:{bdf}` opens the card"
        ),
    ));
    all.push(Finding::untested(
        "boards",
        "this version was tested only with simulated cards, not on a board",
    ));
    all
}

/// The function has the expected IDs.
fn identity(function: &Function, ids: &[(u16, u16)]) -> Result<String, VfioError> {
    if ids.contains(&(function.vendor, function.device)) {
        return Ok(function.id());
    }
    let expected: Vec<String> = ids.iter().map(|(v, d)| format!("{v:04x}:{d:04x}")).collect();
    Err(VfioError::WrongId {
        function: function.bdf,
        found: function.id(),
        expected: expected.join(" or "),
    })
}

/// vfio-pci is bound to the function.
fn driver(function: &Function) -> Result<String, VfioError> {
    match function.driver.as_deref() {
        Some("vfio-pci") => Ok("vfio-pci".to_owned()),
        other => Err(VfioError::OtherDriver {
            function: function.bdf,
            driver: other.map_or_else(|| "no driver".to_owned(), |d| format!("driver {d}")),
            command: System::bind_command(function.bdf, other),
        }),
    }
}

/// Selects the interface for opening the function.
fn interface(system: &System, function: &Function, iommu: Iommu) -> Result<Interface, VfioError> {
    let bdf = function.bdf;
    let group = || System::group_node(function).ok_or(VfioError::NoIommu { function: bdf });
    match (iommu, function.unprotected) {
        (Iommu::None, true) => Ok(Interface::Unprotected { node: group()? }),
        (Iommu::None, false) if function.group.is_some() => Err(VfioError::NoUnprotected {
            function: bdf,
            reason: "it is behind an IOMMU, which is better".to_owned(),
            command: format!("the same with pci:{bdf}"),
        }),
        (Iommu::None, false) => Err(VfioError::NoUnprotected {
            function: bdf,
            reason: "the kernel's no-IOMMU mode is off".to_owned(),
            command: format!(
                "modprobe vfio enable_unsafe_noiommu_mode=1; echo 1 > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode; {}",
                System::bind_command(bdf, function.driver.as_deref())
            ),
        }),
        (_, true) => Err(VfioError::Unprotected { function: bdf }),
        (Iommu::Iommufd, false) => iommufd(system, function),
        (Iommu::Type1, false) => Ok(Interface::Type1 { node: group()? }),
        // The older interface if both are available: every kernel with VFIO has it.
        _ => match group() {
            Ok(node) if system.exists("/dev/vfio/vfio") => Ok(Interface::Type1 { node }),
            Ok(node) => iommufd(system, function).or(Ok(Interface::Type1 { node })),
            Err(error) => Err(error),
        },
    }
}

fn iommufd(system: &System, function: &Function) -> Result<Interface, VfioError> {
    if function.group.is_none() {
        return Err(VfioError::NoIommu { function: function.bdf });
    }
    let missing = |missing: &str| VfioError::NoIommufd {
        function: function.bdf,
        missing: missing.to_owned(),
    };
    if !system.exists("/dev/iommu") {
        return Err(missing("/dev/iommu"));
    }
    match &function.node {
        Some(node) => Ok(Interface::Iommufd { node: format!("/dev/vfio/devices/{node}") }),
        None => Err(missing(&format!("{}/vfio-dev", System::folder(function.bdf)))),
    }
}

/// No other function of the group can do DMA on behalf of another driver.
fn viable(system: &System, function: &Function) -> Result<String, VfioError> {
    let members = system.group_members(function);
    let bad: Vec<&Function> = members
        .iter()
        .filter(|m| m.driver.as_deref().is_some_and(|driver| !HARMLESS.contains(&driver)))
        .collect();
    let shown = |m: &Function| {
        format!("{} ({}, {})", m.bdf, m.id(), m.driver.as_deref().unwrap_or("no driver"))
    };
    match (bad.is_empty(), members.is_empty()) {
        (true, true) => Ok("the card alone".to_owned()),
        (true, false) => {
            Ok(format!("with {}", members.iter().map(shown).collect::<Vec<_>>().join(", ")))
        }
        _ => Err(VfioError::NotViable {
            group: function.group.unwrap_or(0),
            members: bad.iter().map(|m| shown(m)).collect::<Vec<_>>().join(", "),
            command: bad
                .iter()
                .map(|m| format!("echo {0} > /sys/bus/pci/devices/{0}/driver/unbind", m.bdf))
                .collect::<Vec<_>>()
                .join("; "),
        }),
    }
}

/// The kernel provides the interface.
fn kernel(system: &System, interface: &Interface) -> Result<String, VfioError> {
    let control = match interface {
        Interface::Iommufd { .. } => "/dev/iommu",
        _ => "/dev/vfio/vfio",
    };
    for path in [control, interface.node()] {
        if !system.exists(path) {
            let module = if matches!(interface, Interface::Type1 { .. }) {
                " && modprobe vfio_iommu_type1"
            } else {
                ""
            };
            return Err(VfioError::NoVfio {
                path: path.to_owned(),
                command: format!("modprobe vfio-pci{module}"),
            });
        }
    }
    Ok(format!("{control} and {}", interface.node()))
}

/// This user may open the interface.
fn permission(system: &System, interface: &Interface) -> Result<String, VfioError> {
    let mut nodes = vec![interface.node()];
    if matches!(interface, Interface::Iommufd { .. }) {
        nodes.push("/dev/iommu");
    }
    for node in nodes {
        sys::may_open(&system.path(node)).map_err(|e| denied(node, &e))?;
    }
    if matches!(interface, Interface::Unprotected { .. }) && !sys::is_root() {
        return Err(VfioError::HiddenAddresses);
    }
    Ok(format!("{} can be opened", interface.node()))
}

/// The error for a node without permission.
pub(crate) fn denied(node: &str, error: &std::io::Error) -> VfioError {
    VfioError::Permission {
        path: node.to_owned(),
        reason: error.to_string(),
        command: format!("sudo chown $USER {node}"),
    }
}

/// No other program has it open.
fn free(system: &System, function: &Function, interface: &Interface) -> Result<String, VfioError> {
    match system.holders(interface.node()).first() {
        Some(holder) => Err(VfioError::InUse { function: function.bdf, holder: holder.clone() }),
        None => Ok("not in use, as far as this user can see".to_owned()),
    }
}

/// The BARs have the required sizes.
fn bars(function: &Function) -> Result<String, VfioError> {
    for (bar, expected) in [(pci::BAR_CTL, u64::from(CTL_BYTES)), (pci::BAR_MEM, 4096)] {
        let found = function.bars[usize::from(bar)];
        if found < expected {
            return Err(VfioError::BarSize { function: function.bdf, bar, found, expected });
        }
    }
    let shown: Vec<String> = function
        .bars
        .iter()
        .enumerate()
        .filter(|(_, size)| **size > 0)
        .map(|(bar, size)| format!("BAR{bar} {size:#x}"))
        .collect();
    Ok(shown.join(", "))
}

fn hugepages(
    system: &System,
    function: &Function,
    interface: &Result<Interface, VfioError>,
) -> Finding {
    let (reserved, free) = system.hugepages(function.numa_node);
    let command = match function.numa_node {
        Some(node) => format!(
            "echo 64 > /sys/devices/system/node/node{node}/hugepages/hugepages-2048kB/nr_hugepages"
        ),
        None => "echo 64 > /proc/sys/vm/nr_hugepages".to_owned(),
    };
    if free > 0 {
        return Finding::pass(
            "hugepages",
            format!("{free} of {reserved} free, {} MiB", (free * HUGEPAGE) >> 20),
        );
    }
    match interface {
        Ok(Interface::Unprotected { .. }) => {
            Finding::of("hugepages", Err(VfioError::NoHugepage { command }))
        }
        _ => Finding::warn(
            "hugepages",
            format!(
                "{free} of {reserved} free: DMA memory uses small pages, and mapping it takes \
                longer"
            ),
            Some("SHEF-PCI-018"),
            Some(command),
        ),
    }
}

fn locked() -> Finding {
    match sys::locked_limit() {
        Some(limit) if limit < DMA_BYTES && !sys::is_root() => Finding::warn(
            "locked memory",
            format!("the limit is {limit} bytes, and a program may need {DMA_BYTES}"),
            Some("SHEF-PCI-010"),
            Some("ulimit -l unlimited".to_owned()),
        ),
        Some(limit) => Finding::pass("locked memory", format!("limit {limit} bytes")),
        None => Finding::pass("locked memory", "no limit"),
    }
}

fn reset(system: &System, function: &Function) -> Finding {
    let dir = System::folder(function.bdf);
    match system.text(Path::new(&dir).join("reset_method")) {
        Some(methods) if !methods.is_empty() => Finding::pass("reset", methods),
        _ => Finding::warn(
            "reset",
            "the kernel has no way to reset this function",
            Some("SHEF-PCI-014"),
            None,
        ),
    }
}
