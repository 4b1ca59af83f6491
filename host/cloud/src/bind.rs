//! Binds the application function of a slot to vfio-pci, without an IOMMU: an F2 instance has none.
//! The management function stays with AWS's tools.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use shef_device::{Bdf, Uri, pci};
use shef_vfio::System;

use crate::run::{self, Limits};
use crate::slot::Slot;
use crate::tools;
use crate::{CloudError, Step, Watch};

const DRIVER: &str = "vfio-pci";
/// Whether VFIO serves functions without an IOMMU.
const MODE: &str = "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode";
const DRIVERS: &str = "/sys/bus/pci/drivers/vfio-pci";
const PROBE: &str = "/sys/bus/pci/drivers_probe";
/// Time in which the kernel binds a function.
const WAIT: Duration = Duration::from_secs(5);

/// The application function of a slot.
///
/// # Errors
/// SHEF-CLD-040.
pub fn function(slot: &Slot) -> Result<Bdf, CloudError> {
    let wrong = |found: String| CloudError::Function { slot: slot.slot, found };
    let Some((id, address)) = slot.functions.first() else {
        return Err(wrong("no PCI function".to_owned()));
    };
    let known = pci::IDS.iter().any(|(vendor, device)| *id == format!("{vendor:04x}:{device:04x}"));
    match format!("pci:{address}").parse() {
        Ok(Uri::Pci { function, .. }) if known && function.function == 0 => Ok(function),
        _ => Err(wrong(format!("the function {address} with the ids {id}"))),
    }
}

/// One line for each thing that [`bind`] may do.
///
/// # Errors
/// Never: these programs take no values.
pub fn plan(bdf: &str) -> Result<Vec<Step>, CloudError> {
    let vfio = tools::MODPROBE_VFIO.call(&[])?.only_if("the kernel has not loaded vfio");
    let driver = tools::MODPROBE_PCI.call(&[])?.only_if("the kernel has not loaded vfio-pci");
    let mode = format!("write 1 to {MODE} if it is loaded in another mode");
    let others = [
        format!("write {DRIVER} to /sys/bus/pci/devices/{bdf}/driver_override"),
        format!("write {bdf} to the unbind file of another driver, if one has it"),
        format!("write {bdf} to {PROBE}, unless it is bound to {DRIVER}"),
    ];
    let mut steps = vec![vfio, Step::Change(mode), driver];
    steps.extend(others.map(Step::Change));
    Ok(steps)
}

/// Binds a function. Everything that is right already stays as it is.
///
/// # Errors
/// SHEF-CLD-041, and those of programs.
pub fn bind(system: &System, bdf: Bdf, limits: Limits, watch: Watch<'_>) -> Result<(), CloudError> {
    let folder = System::folder(bdf);
    let driver = || system.function(bdf).map(|function| function.driver);
    let is_bound = || Ok::<_, CloudError>(driver()?.as_deref() == Some(DRIVER));
    mode(system, limits, watch)?;
    if !system.exists(DRIVERS) {
        watch("loading vfio-pci");
        run::run(&tools::MODPROBE_PCI.call(&[])?, limits)?;
        if !system.exists(DRIVERS) {
            return Err(CloudError::NoVfio {
                what: DRIVERS.to_owned(),
                found: "it is missing after modprobe".to_owned(),
                expected: "the driver vfio-pci",
            });
        }
    }
    write(system, &format!("{folder}/driver_override"), DRIVER)?;
    if !is_bound()? {
        if let Some(other) = driver()? {
            watch(&format!("unbinding {other}"));
            write(system, &format!("{folder}/driver/unbind"), &bdf.to_string())?;
        }
        watch("binding vfio-pci");
        write(system, PROBE, &bdf.to_string())?;
        let begun = Instant::now();
        while !is_bound()? {
            if begun.elapsed() >= WAIT {
                return Err(CloudError::NoVfio {
                    what: format!("{folder}/driver"),
                    found: driver()?.unwrap_or_else(|| "no driver".to_owned()),
                    expected: "vfio-pci: see `dmesg`",
                });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let found = system.function(bdf)?;
    if found.unprotected {
        return Ok(());
    }
    Err(CloudError::NoVfio {
        what: format!("{folder}/iommu_group"),
        found: found.group.map_or("no group".to_owned(), |group| format!("group {group}")),
        expected: "a group of VFIO's mode without an IOMMU",
    })
}

/// Turns on VFIO's mode without an IOMMU.
fn mode(system: &System, limits: Limits, watch: Watch<'_>) -> Result<(), CloudError> {
    let on = || system.text(MODE).is_some_and(|text| text == "Y" || text == "1");
    if on() {
        return Ok(());
    }
    if system.exists(MODE) {
        write(system, MODE, "1")?;
    } else {
        watch("loading vfio");
        run::run(&tools::MODPROBE_VFIO.call(&[])?, limits)?;
    }
    if on() {
        return Ok(());
    }
    Err(CloudError::NoVfio {
        what: MODE.to_owned(),
        found: system.text(MODE).unwrap_or_else(|| "missing".to_owned()),
        expected: "Y",
    })
}

/// Writes a file of sysfs.
fn write(system: &System, path: &str, text: &str) -> Result<(), CloudError> {
    let file = system.path(Path::new(path));
    let opened = fs::File::options().write(true).open(&file);
    opened.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes())).map_err(|e| {
        CloudError::NoVfio {
            what: path.to_owned(),
            found: e.to_string(),
            expected: "to write it as root",
        }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;
    use crate::slot::Status;

    const BDF: &str = "0000:34:00.0";

    /// Folders as a kernel has them. Files do not act: the test sets the links.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new(driver: Option<&str>, mode: &str) -> Self {
            let machine = Self(tempfile::tempdir().unwrap());
            let dir = format!("sys/bus/pci/devices/{BDF}");
            for (path, text) in [
                (format!("{dir}/vendor"), "0x1d0f"),
                (format!("{dir}/device"), "0xf010"),
                (format!("{dir}/driver_override"), "(null)"),
                (PROBE[1..].to_owned(), ""),
                (format!("{}/bind", &DRIVERS[1..]), ""),
                ("sys/bus/pci/drivers/xocl/unbind".to_owned(), ""),
                ("sys/kernel/iommu_groups/7/name".to_owned(), "vfio-noiommu"),
                (MODE[1..].to_owned(), mode),
            ] {
                let path = machine.at(&path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            symlink("../../../../kernel/iommu_groups/7", machine.at(&format!("{dir}/iommu_group")))
                .unwrap();
            machine.driver(driver);
            machine
        }

        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn driver(&self, driver: Option<&str>) {
            let link = self.at(&format!("sys/bus/pci/devices/{BDF}/driver"));
            let _ = fs::remove_file(&link);
            if let Some(driver) = driver {
                symlink(format!("../../drivers/{driver}"), link).unwrap();
            }
        }

        fn text(&self, path: &str) -> String {
            fs::read_to_string(self.at(path)).unwrap()
        }

        fn bind(&self) -> Result<(), CloudError> {
            let Ok(Uri::Pci { function, .. }) = format!("pci:{BDF}").parse() else { panic!() };
            bind(&System::at(self.0.path()), function, Limits::default(), &mut |_| {})
        }
    }

    #[test]
    fn only_the_application_function_is_bound_and_another_driver_is_unbound() {
        let machine = Machine::new(Some("xocl"), "Y");
        std::thread::scope(|scope| {
            let bound = scope.spawn(|| machine.bind());
            // The kernel's part.
            while machine.text(&PROBE[1..]).is_empty() {
                std::thread::sleep(Duration::from_millis(5));
            }
            machine.driver(Some(DRIVER));
            bound.join().unwrap().unwrap();
        });
        assert_eq!(machine.text("sys/bus/pci/drivers/xocl/unbind"), BDF);
        assert_eq!(machine.text(&format!("sys/bus/pci/devices/{BDF}/driver_override")), DRIVER);
        // A second time there is nothing to do.
        fs::write(machine.at(&PROBE[1..]), "").unwrap();
        machine.bind().unwrap();
        assert_eq!(machine.text(&PROBE[1..]), "");
    }

    #[test]
    fn a_kernel_that_does_not_follow_is_an_error() {
        // The file takes the text, and the mode stays off.
        let machine = Machine::new(None, "N");
        fs::remove_file(machine.at(&MODE[1..])).unwrap();
        fs::create_dir(machine.at(&MODE[1..])).unwrap();
        assert_eq!(machine.bind().unwrap_err().code(), "SHEF-CLD-041");
        // A group that an IOMMU confines.
        let machine = Machine::new(Some(DRIVER), "Y");
        fs::write(machine.at("sys/kernel/iommu_groups/7/name"), "other").unwrap();
        let error = machine.bind().unwrap_err();
        assert!(error.to_string().contains("group 7, expected a group of"), "{error}");
    }

    #[test]
    fn the_slot_must_show_a_function_of_ours() {
        let mut slot = Slot {
            slot: 0,
            image: None,
            status: Status::Loaded,
            error: 0,
            shell: String::new(),
            functions: vec![("1d0f:f010".to_owned(), BDF.to_owned())],
        };
        assert_eq!(function(&slot).unwrap().to_string(), BDF);
        for (id, address) in [("1d0f:9048", BDF), ("1d0f:f010", "0000:34:00.1"), ("1d0f:f010", "x")]
        {
            slot.functions = vec![(id.to_owned(), address.to_owned())];
            assert_eq!(function(&slot).unwrap_err().code(), "SHEF-CLD-040");
        }
        slot.functions.clear();
        assert_eq!(function(&slot).unwrap_err().code(), "SHEF-CLD-040");
    }
}
