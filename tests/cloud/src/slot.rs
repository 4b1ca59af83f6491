//! AWS's tools for slots, in the form of `cli_show_image_info` of fpga_local_cmd.c.

use std::path::Path;

use crate::world::World;

/// Names of the errors, by number.
const ERRORS: &[(u32, &str)] = &[
    (0, "ok"),
    (3, "busy"),
    (5, "invalid-afi-id"),
    (6, "timeout"),
    (11, "invalid-afi-cmd-api-version"),
    (12, "cl-id-mismatch"),
    (13, "cl-ddr-calib-failed"),
    (14, "unspecified-error"),
    (16, "afi-shell-version-mismatch"),
    (17, "afi-power-violation"),
    (19, "hardware-busy"),
    (20, "pci-device-missing"),
    (21, "afi-cmd-malformed"),
    (24, "software-problem"),
    (25, "unresponsive"),
    (26, "rl-reload-needed"),
    (27, "invalid-flags"),
    (28, "clkgen-invalid"),
    (29, "clkgen-failed"),
];

const STATUSES: [&str; 8] = [
    "loaded",
    "cleared",
    "busy",
    "not-programmed",
    "caching",
    "loading-rl",
    "reserved",
    "load-failed",
];

/// Looks until a command of a slot has ended.
const LOOKS: u32 = 2;

fn name(number: u32) -> &'static str {
    ERRORS.iter().find(|(known, _)| *known == number).map_or("internal-error", |(_, name)| name)
}

/// Answers a form. Returns the exit status.
#[must_use]
pub fn answer(folder: &Path, form: &str, fault: &str, arguments: &[String]) -> i32 {
    let mut world = World::of(folder);
    let reported = fault.strip_prefix("error:").and_then(|number| number.parse::<u32>().ok());
    let slot = &mut world.slot;
    match form {
        "load-slot" | "clear-slot" => {
            // An error of the command itself.
            if let Some(number) =
                reported.filter(|_| fault.starts_with("error:") && form == "clear-slot")
            {
                println!("Error: ({number}) {}", name(number));
                return number as i32;
            }
            if let Some(number) =
                fault.strip_prefix("refuses:").and_then(|it| it.parse::<u32>().ok())
            {
                println!("Error: ({number}) {}", name(number));
                return number as i32;
            }
            // The command fails, and another user loads an image.
            if let Some(number) = fault.strip_prefix("taken:").and_then(|it| it.parse().ok()) {
                slot.image = Some("agfi-0ffffffffffffffff".to_owned());
                (slot.status, slot.error, slot.next) = (0, 0, None);
                world.keep(folder);
                println!("Error: ({number}) {}", name(number));
                return number as i32;
            }
            let image = (form == "load-slot").then(|| arguments[3].clone());
            let next = match (form, reported) {
                ("clear-slot", _) => (None, 1, 0),
                // The slot reports the error of a load.
                (_, Some(number)) => (image, 7, number),
                _ if fault == "other" => (Some("agfi-0ffffffffffffffff".to_owned()), 0, 0),
                _ => (image, 0, 0),
            };
            slot.next = Some(next);
            slot.left = if fault == "stuck" { u32::MAX } else { LOOKS };
            (slot.status, slot.error) = (2, 0);
        }
        _ => {
            if let Some(next) = slot.next.clone() {
                match slot.left.checked_sub(1) {
                    Some(left) => slot.left = left,
                    None => {
                        (slot.image, slot.status, slot.error) = next;
                        slot.next = None;
                    }
                }
            }
            if let Some(number) = reported {
                println!("Error: ({number}) {}", name(number));
                return number as i32;
            }
            let status = if fault == "new-status" { 9 } else { slot.status };
            let image = if fault == "lies" {
                Some("agfi-0ffffffffffffffff".to_owned())
            } else {
                slot.image.clone()
            };
            println!(
                "{:<10}  {:>2}       {:<22}  {:<8}         {status:>2}        {:<8}        {:>2}       0x10212415",
                "AFI",
                arguments[1],
                image.as_deref().unwrap_or("none"),
                STATUSES.get(status as usize).unwrap_or(&"internal-error"),
                name(slot.error),
                slot.error,
            );
            let device = if slot.status == 0 { "0xf010" } else { "0x9048" };
            println!(
                "{:<10}  {:>2}       0x1d0f      {device}      0000:34:00.0",
                "AFIDEVICE", arguments[1]
            );
            if form == "slot-metrics" {
                let late = if fault == "late" { 3 } else { 0 };
                print!(
                    "ocl-slave-timeout-addr=0x1000d\nocl-slave-timeout-count={late}\npcim-write-count=4096\npcim-read-count=4096\nDDR0\n   write-count=100\n   read-count=100\nClock Group A Frequency (Mhz)\n250  0  0  \nPower consumption (Vccint):\n   Last measured: 21 watts\n   Average: 20 watts\n   Max measured: 22 watts\n"
                );
            }
        }
    }
    world.keep(folder);
    0
}
