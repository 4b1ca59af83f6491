//! The kernel's information about PCI functions, in /sys, /proc and /dev. Tests can move the root
//! of these folders.

use std::fs;
use std::path::{Path, PathBuf};

use shef_device::{Bdf, Uri};

use crate::VfioError;

/// Size of a small hugepage in bytes.
pub const HUGEPAGE: u64 = 2 << 20;

/// The machine's system folders.
#[derive(Debug, Clone)]
pub struct System {
    root: PathBuf,
}

impl Default for System {
    fn default() -> Self {
        Self::at("/")
    }
}

/// A PCI function, as the kernel lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Address.
    pub bdf: Bdf,
    /// Vendor ID.
    pub vendor: u16,
    /// Device ID.
    pub device: u16,
    /// Driver, if one is bound.
    pub driver: Option<String>,
    /// IOMMU group.
    pub group: Option<u32>,
    /// Whether the group belongs to no-IOMMU mode.
    pub unprotected: bool,
    /// NUMA node, if there is more than one.
    pub numa_node: Option<u32>,
    /// Sizes of BAR0 to BAR5 in bytes.
    pub bars: [u64; 6],
    /// Name of the function's own VFIO node, as `vfio0`.
    pub node: Option<String>,
}

impl Function {
    /// Vendor and device as `1d0f:f010`.
    pub fn id(&self) -> String {
        format!("{:04x}:{:04x}", self.vendor, self.device)
    }

    /// Whether it has a card's IDs.
    pub fn is_card(&self) -> bool {
        shef_device::pci::IDS.contains(&(self.vendor, self.device))
    }
}

impl System {
    /// The machine whose folders are below `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Whether the folders are those of the real machine.
    pub(crate) fn is_machine(&self) -> bool {
        self.root == Path::new("/")
    }

    /// `/path` of this machine.
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.root.join(path.as_ref().strip_prefix("/").unwrap_or(path.as_ref()))
    }

    /// Text of a small kernel file, without the line break.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        fs::read_to_string(self.path(path)).ok().map(|text| text.trim().to_owned())
    }

    /// Whether a path exists.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.path(path).exists()
    }

    fn names(&self, dir: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path(dir))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }

    /// Last component of a link's target.
    fn target(&self, path: &str) -> Option<String> {
        fs::read_link(self.path(path)).ok()?.file_name()?.to_str().map(str::to_owned)
    }

    /// Folder of a function.
    pub fn folder(function: Bdf) -> String {
        format!("/sys/bus/pci/devices/{function}")
    }

    /// Reads a function.
    ///
    /// # Errors
    /// [`VfioError::NoFunction`].
    pub fn function(&self, bdf: Bdf) -> Result<Function, VfioError> {
        let dir = Self::folder(bdf);
        let hex = |file: &str| {
            self.text(format!("{dir}/{file}"))
                .and_then(|t| u16::from_str_radix(t.trim_start_matches("0x"), 16).ok())
        };
        let (Some(vendor), Some(device)) = (hex("vendor"), hex("device")) else {
            return Err(VfioError::NoFunction { function: bdf });
        };
        let group = self.target(&format!("{dir}/iommu_group")).and_then(|g| g.parse().ok());
        let mut bars = [0; 6];
        for (bar, line) in
            bars.iter_mut().zip(self.text(format!("{dir}/resource")).unwrap_or_default().lines())
        {
            let mut numbers = line
                .split_whitespace()
                .map(|n| u64::from_str_radix(n.trim_start_matches("0x"), 16).unwrap_or(0));
            let (start, end) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            *bar = if end > start { end - start + 1 } else { 0 };
        }
        Ok(Function {
            bdf,
            vendor,
            device,
            driver: self.target(&format!("{dir}/driver")),
            unprotected: group.is_some_and(|g: u32| {
                self.text(format!("/sys/kernel/iommu_groups/{g}/name")).as_deref()
                    == Some("vfio-noiommu")
            }),
            group,
            numa_node: self.text(format!("{dir}/numa_node")).and_then(|n| n.parse().ok()),
            bars,
            node: self.names(&format!("{dir}/vfio-dev")).into_iter().next(),
        })
    }

    /// All functions with a card's IDs.
    pub fn cards(&self) -> Vec<Function> {
        self.names("/sys/bus/pci/devices")
            .iter()
            .filter_map(|name| match format!("pci:{name}").parse() {
                Ok(Uri::Pci { function, .. }) => self.function(function).ok(),
                _ => None,
            })
            .filter(Function::is_card)
            .collect()
    }

    /// The other functions of a group, with their drivers.
    pub fn group_members(&self, function: &Function) -> Vec<Function> {
        let Some(group) = function.group else { return Vec::new() };
        self.names(&format!("/sys/kernel/iommu_groups/{group}/devices"))
            .iter()
            .filter_map(|name| match format!("pci:{name}").parse() {
                Ok(Uri::Pci { function, .. }) => self.function(function).ok(),
                _ => None,
            })
            .filter(|member| member.bdf != function.bdf)
            .collect()
    }

    /// Hugepages of 2 MiB: reserved and free, on one node if it is given.
    pub fn hugepages(&self, node: Option<u32>) -> (u64, u64) {
        let dir = match node {
            Some(node) if self.exists(format!("/sys/devices/system/node/node{node}/hugepages")) => {
                format!("/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB")
            }
            _ => "/sys/kernel/mm/hugepages/hugepages-2048kB".to_owned(),
        };
        let number = |file: &str| {
            self.text(format!("{dir}/{file}")).and_then(|t| t.parse().ok()).unwrap_or(0)
        };
        (number("nr_hugepages"), number("free_hugepages"))
    }

    /// A group's node: `/dev/vfio/12`, or `/dev/vfio/noiommu-0`.
    pub fn group_node(function: &Function) -> Option<String> {
        let group = function.group?;
        Some(if function.unprotected {
            format!("/dev/vfio/noiommu-{group}")
        } else {
            format!("/dev/vfio/{group}")
        })
    }

    /// The commands that bind a function to vfio-pci.
    pub fn bind_command(function: Bdf, driver: Option<&str>) -> String {
        let unbind = driver
            .map(|_| format!("echo {function} > /sys/bus/pci/devices/{function}/driver/unbind; "))
            .unwrap_or_default();
        format!(
            "modprobe vfio-pci; {unbind}echo vfio-pci > /sys/bus/pci/devices/{function}/driver_override; echo {function} > /sys/bus/pci/drivers_probe"
        )
    }

    /// Programs that have this kernel node open, as `pid 12 (name)`; empty if no such program is
    /// visible.
    pub fn holders(&self, node: &str) -> Vec<String> {
        self.names("/proc")
            .into_iter()
            .filter(|pid| pid.bytes().all(|b| b.is_ascii_digit()))
            .filter(|pid| {
                self.names(&format!("/proc/{pid}/fd")).iter().any(|fd| {
                    fs::read_link(self.path(format!("/proc/{pid}/fd/{fd}")))
                        .is_ok_and(|target| target == Path::new(node))
                })
            })
            .map(|pid| self.process(&pid))
            .collect()
    }

    /// `pid 12 (name)`.
    pub fn process(&self, pid: &str) -> String {
        match self.text(format!("/proc/{pid}/comm")) {
            Some(name) => format!("pid {pid} ({name})"),
            None => format!("pid {pid}"),
        }
    }
}
