//! Every fault of a machine has its own code and states the remedy. The test's folders resemble
//! those of a kernel.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use shef_device::{Bdf, Iommu, pci};
use shef_vfio::check::{Finding, Verdict, examine, ready};
use shef_vfio::{CardFunction, System, VfioError};

const CARD: Bdf = Bdf { domain: 0, bus: 0x65, device: 0, function: 0 };
const BARS: &str = "\
0x00000000a0000000 0x00000000a3ffffff 0x0000000000140204
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x00000000a4000000 0x00000000a400ffff 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
0x0000002000000000 0x0000003fffffffff 0x000000000014220c
0x0000000000000000 0x0000000000000000 0x0000000000000000
";

/// A machine with a card in group 12, bound to vfio-pci, and a bridge next to it.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap() };
        machine.file("proc/sys/kernel/osrelease", "6.1.0-test\n");
        machine.file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "64\n");
        machine.file("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "60\n");
        machine.function("0000:65:00.0", "0x1d0f", "0xf010", Some("vfio-pci"), Some(12));
        machine.file("sys/bus/pci/devices/0000:65:00.0/resource", BARS);
        machine.file("sys/bus/pci/devices/0000:65:00.0/config", "");
        machine.file("sys/bus/pci/devices/0000:65:00.0/reset_method", "flr bus\n");
        machine.function("0000:64:00.0", "0x8086", "0x2030", Some("pcieport"), Some(12));
        machine.file("dev/vfio/vfio", "");
        machine.file("dev/vfio/12", "");
        machine
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.dir.path().join(path)
    }

    fn file(&self, path: &str, text: &str) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), text).unwrap();
    }

    fn function(
        &self,
        name: &str,
        vendor: &str,
        device: &str,
        driver: Option<&str>,
        group: Option<u32>,
    ) {
        let dir = format!("sys/bus/pci/devices/{name}");
        self.file(&format!("{dir}/vendor"), &format!("{vendor}\n"));
        self.file(&format!("{dir}/device"), &format!("{device}\n"));
        for (link, target) in [
            ("driver", driver.map(|d| format!("../../drivers/{d}"))),
            ("iommu_group", group.map(|g| format!("../../../../kernel/iommu_groups/{g}"))),
        ] {
            let link = self.path(&format!("{dir}/{link}"));
            let _ = fs::remove_file(&link);
            if let Some(target) = target {
                symlink(target, &link).unwrap();
            }
        }
        if let Some(group) = group {
            let members = self.path(&format!("sys/kernel/iommu_groups/{group}/devices"));
            fs::create_dir_all(&members).unwrap();
            let _ = symlink(format!("../../../../bus/pci/devices/{name}"), members.join(name));
        }
    }

    fn remove(&self, path: &str) {
        let path = self.path(path);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }

    fn system(&self) -> System {
        System::at(self.dir.path())
    }

    /// The fault that prevents the card from being opened.
    fn fault(&self, iommu: Iommu) -> VfioError {
        ready(&self.system(), CARD, iommu, pci::IDS).unwrap_err()
    }

    fn finding(&self, check: &str) -> Finding {
        examine(&self.system(), CARD, Iommu::Any)
            .into_iter()
            .find(|f| f.check == check)
            .unwrap_or_else(|| panic!("no check {check}"))
    }
}

#[track_caller]
fn is(error: &VfioError, code: &str, says: &[&str]) {
    let text = format!("{error} {}", error.command().unwrap_or_default());
    assert_eq!(error.code(), code, "{text}");
    for part in says {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn a_machine_without_faults_is_ready() {
    let m = Machine::new();
    let (function, interface) = ready(&m.system(), CARD, Iommu::Any, pci::IDS).unwrap();
    assert_eq!((interface.name(), interface.node()), ("type1", "/dev/vfio/12"));
    assert_eq!(
        (function.group, function.bars),
        (Some(12), [64 << 20, 0, 64 << 10, 0, 128 << 30, 0])
    );
    let all = examine(&m.system(), CARD, Iommu::Any);
    assert!(all.iter().all(|f| matches!(f.verdict, Verdict::Pass | Verdict::Untested)), "{all:#?}");
    // The result lists checks that were not made.
    assert!(
        all.iter().any(|f| f.verdict == Verdict::Untested && f.found.contains("shef device info"))
    );
    assert_eq!(m.system().cards().len(), 1);
    assert!(m.finding("group").found.contains("0000:64:00.0"));
}

/// Controllers of storage (VMD) and virtual machines have domains of more than four digits.
#[test]
fn a_domain_of_more_than_four_digits_is_a_card_and_a_member_of_a_group() {
    let m = Machine::new();
    m.function("10000:01:00.0", "0x1d0f", "0xf010", Some("vfio-pci"), Some(12));
    let far = Bdf { domain: 0x10000, bus: 1, device: 0, function: 0 };
    let card = m.system().function(far).unwrap();
    assert_eq!((card.bdf, card.group), (far, Some(12)));
    let cards: Vec<Bdf> = m.system().cards().iter().map(|card| card.bdf).collect();
    assert_eq!(cards.len(), 2);
    assert!(cards.contains(&far) && cards.contains(&CARD), "{cards:?}");
    let members = m.system().group_members(&m.system().function(CARD).unwrap());
    assert!(members.iter().any(|member| member.bdf == far), "{members:?}");
    // A member that another driver has is found, with this address in the command.
    m.function("10000:01:00.0", "0x1d0f", "0xf010", Some("nvme"), Some(12));
    let error = m.fault(Iommu::Any);
    is(&error, error.code(), &["10000:01:00.0", "nvme"]);
}

#[test]
fn no_card_or_another_function() {
    let m = Machine::new();
    m.function("0000:65:00.0", "0x10de", "0x1234", Some("vfio-pci"), Some(12));
    is(&m.fault(Iommu::Any), "SHEF-PCI-002", &["10de:1234", "1d0f:f010", "shef device list"]);
    assert!(m.system().cards().is_empty());
    m.remove("sys/bus/pci/devices/0000:65:00.0");
    is(&m.fault(Iommu::Any), "SHEF-PCI-001", &["0000:65:00.0", "shef device list"]);
    assert_eq!(m.finding("function").code, Some("SHEF-PCI-001"));
}

#[test]
fn no_iommu_and_what_may_be_done_without() {
    let m = Machine::new();
    m.remove("sys/bus/pci/devices/0000:65:00.0/iommu_group");
    is(&m.fault(Iommu::Any), "SHEF-PCI-003", &["intel_iommu=on", "?iommu=none"]);
    is(&m.fault(Iommu::Type1), "SHEF-PCI-003", &[]);
    is(&m.fault(Iommu::Iommufd), "SHEF-PCI-003", &[]);
    // Requested, but the kernel's mode is off.
    is(&m.fault(Iommu::None), "SHEF-PCI-012", &["enable_unsafe_noiommu_mode"]);
    // The mode is on: still only on request.
    m.function("0000:65:00.0", "0x1d0f", "0xf010", Some("vfio-pci"), Some(0));
    m.file("sys/kernel/iommu_groups/0/name", "vfio-noiommu\n");
    m.file("dev/vfio/noiommu-0", "");
    for iommu in [Iommu::Any, Iommu::Type1, Iommu::Iommufd] {
        is(&m.fault(iommu), "SHEF-PCI-011", &["all of this machine's memory", "?iommu=none"]);
    }
    match ready(&m.system(), CARD, Iommu::None, pci::IDS) {
        Ok((_, interface)) => assert_eq!(interface.node(), "/dev/vfio/noiommu-0"),
        Err(error) => is(&error, "SHEF-PCI-017", &["root"]),
    }
    // An IOMMU is never given up by accident.
    let m = Machine::new();
    is(&m.fault(Iommu::None), "SHEF-PCI-012", &["pci:0000:65:00.0"]);
}

#[test]
fn another_driver_or_none() {
    let m = Machine::new();
    m.function("0000:65:00.0", "0x1d0f", "0xf010", Some("xdma"), Some(12));
    is(
        &m.fault(Iommu::Any),
        "SHEF-PCI-004",
        &["driver xdma", "driver/unbind", "driver_override", "drivers_probe"],
    );
    m.function("0000:65:00.0", "0x1d0f", "0xf010", None, Some(12));
    let error = m.fault(Iommu::Any);
    is(&error, "SHEF-PCI-004", &["no driver", "modprobe vfio-pci"]);
    assert!(!error.to_string().contains("unbind"));
}

#[test]
fn a_group_with_a_function_that_another_driver_has() {
    let m = Machine::new();
    m.function("0000:65:00.1", "0x1d0f", "0x0001", Some("nvme"), Some(12));
    is(
        &m.fault(Iommu::Any),
        "SHEF-PCI-005",
        &[
            "group 12",
            "0000:65:00.1",
            "nvme",
            "echo 0000:65:00.1 > /sys/bus/pci/devices/0000:65:00.1/driver/unbind",
        ],
    );
    m.function("0000:65:00.1", "0x1d0f", "0x0001", None, Some(12));
    assert!(ready(&m.system(), CARD, Iommu::Any, pci::IDS).is_ok());
}

#[test]
fn no_vfio_in_the_kernel() {
    let m = Machine::new();
    m.remove("dev/vfio/12");
    is(&m.fault(Iommu::Any), "SHEF-PCI-008", &["/dev/vfio/12", "modprobe vfio-pci"]);
    m.remove("dev/vfio");
    is(&m.fault(Iommu::Type1), "SHEF-PCI-008", &["/dev/vfio/vfio", "modprobe"]);
}

#[test]
fn iommufd_where_the_kernel_has_it() {
    let m = Machine::new();
    is(&m.fault(Iommu::Iommufd), "SHEF-PCI-013", &["/dev/iommu", "?iommu=type1"]);
    m.file("dev/iommu", "");
    is(&m.fault(Iommu::Iommufd), "SHEF-PCI-013", &["vfio-dev"]);
    m.file("sys/bus/pci/devices/0000:65:00.0/vfio-dev/vfio0/dev", "");
    m.file("dev/vfio/devices/vfio0", "");
    let (_, interface) = ready(&m.system(), CARD, Iommu::Iommufd, pci::IDS).unwrap();
    assert_eq!(interface.node(), "/dev/vfio/devices/vfio0");
    // If the container is missing, iommufd is used without a request.
    m.remove("dev/vfio/vfio");
    assert_eq!(ready(&m.system(), CARD, Iommu::Any, pci::IDS).unwrap().1.name(), "iommufd");
}

#[test]
fn bars_hugepages_and_reset_are_looked_at() {
    let m = Machine::new();
    m.file(
        "sys/bus/pci/devices/0000:65:00.0/resource",
        &BARS.replace("00000000a3ffffff", "00000000a0000fff"),
    );
    let found = m.finding("BARs");
    assert_eq!((found.verdict, found.code), (Verdict::Fail, Some("SHEF-PCI-009")));
    assert!(found.found.contains("0x1000") && found.found.contains("0x10000"), "{}", found.found);
    m.file("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0\n");
    let found = m.finding("hugepages");
    assert_eq!((found.verdict, found.code), (Verdict::Warn, Some("SHEF-PCI-018")));
    assert!(found.command.unwrap().contains("nr_hugepages"));
    m.remove("sys/bus/pci/devices/0000:65:00.0/reset_method");
    assert_eq!(m.finding("reset").code, Some("SHEF-PCI-014"));
}

#[test]
fn a_second_opener_hears_who_has_the_card() {
    let m = Machine::new();
    symlink("/proc", m.path("real")).unwrap();
    m.remove("proc");
    symlink("/proc", m.path("proc")).unwrap();
    m.file("dev/iommu", "");
    m.file("sys/bus/pci/devices/0000:65:00.0/vfio-dev/vfio0/dev", "");
    m.file("dev/vfio/devices/vfio0", "");
    let error = |iommu| CardFunction::open(&m.system(), CARD, iommu).err().unwrap();
    let held = std::fs::File::open(m.path("dev/vfio/devices/vfio0")).unwrap();
    held.lock().unwrap();
    is(&error(Iommu::Iommufd), "SHEF-PCI-007", &[&format!("pid {} ", std::process::id())]);
    // The lock ends with its holder; then the error is that the nodes are not VFIO's, or not the
    // machine's.
    drop(held);
    is(&error(Iommu::Iommufd), "SHEF-PCI-021", &["IOMMU_IOAS_ALLOC", "os error 25"]);
    is(&error(Iommu::Type1), "SHEF-PCI-021", &["/dev/vfio/12", "the machine's own"]);
}

/// Every user of a machine can open each of these.
#[test]
fn a_lock_on_what_everybody_can_read_keeps_nobody_out() {
    let m = Machine::new();
    m.file("dev/iommu", "");
    m.file("sys/bus/pci/devices/0000:65:00.0/vfio-dev/vfio0/dev", "");
    m.file("dev/vfio/devices/vfio0", "");
    let mut held = Vec::new();
    let dir = m.path("sys/bus/pci/devices/0000:65:00.0");
    let files =
        fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.exists());
    for entry in files.chain([dir.clone(), m.path("dev/vfio"), m.path("dev/vfio/devices")]) {
        let file = fs::File::open(entry).unwrap();
        file.lock().unwrap();
        held.push(file);
    }
    assert!(held.len() > 6, "{}", held.len());
    for iommu in [Iommu::Iommufd, Iommu::Type1] {
        let error = CardFunction::open(&m.system(), CARD, iommu).err().unwrap();
        is(&error, "SHEF-PCI-021", &[]);
    }
}

/// Runs itself as an unprivileged user if root started it.
#[test]
fn without_permission_the_node_is_named() {
    const AS_NOBODY: &str = "SHEF_TEST_AS_NOBODY";
    if let Some(root) = std::env::var_os(AS_NOBODY) {
        let error = ready(&System::at(Path::new(&root)), CARD, Iommu::Any, pci::IDS).unwrap_err();
        is(&error, "SHEF-PCI-006", &["/dev/vfio/12", "sudo chown"]);
        return;
    }
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    let m = Machine::new();
    let mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(&m.path("dev/vfio/12"), 0o000);
    mode(m.dir.path(), 0o755);
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        is(&m.fault(Iommu::Any), "SHEF-PCI-006", &["/dev/vfio/12", "sudo chown"]);
        return;
    }
    let copy = m.path("test");
    fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    mode(&copy, 0o755);
    let output = std::process::Command::new(&copy)
        .args(["--exact", "without_permission_the_node_is_named"])
        .env(AS_NOBODY, m.dir.path())
        .current_dir("/")
        .uid(65534)
        .gid(65534)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"));
}
