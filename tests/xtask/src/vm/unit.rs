//! The guest with systemd: the how-to page's commands set the agent up, and it runs under its unit,
//! with the card behind `/dev/vfio`.

use super::archive::Archive;
use super::console::{Output, Report, booted, demo, step};
use super::{LIBRARY, Setup, stripped};
use crate::process::{Context, Result};
use crate::root;
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;

/// The page whose commands set the agent up.
const PAGE: &str = include_str!("../../../../docs/how-to/owner-and-agent.md");
/// The guest's script. Each check in addition to the demo is a line `shown NAME ...`.
const JOB: &str = include_str!("../../../vm/unit/job");
/// The parts that it takes from Debian's system: no documentation, hardware databases, character
/// sets and generators, and of the many units that a boot may start only these.
const UNITS: [&str; 8] = [
    "dev-hugepages.mount",
    "kmod-static-nodes.service",
    "systemd-journald.service",
    "systemd-journald.socket",
    "systemd-tmpfiles-setup-dev.service",
    "systemd-udevd.service",
    "systemd-udev-trigger.service",
    "tmp.mount",
];
const LEFT_OUT: [&str; 6] = [
    "usr/share",
    "usr/lib/x86_64-linux-gnu/gconv",
    "usr/lib/udev/hwdb.d",
    "usr/lib/systemd/catalog",
    "usr/lib/systemd/system-generators",
    "usr/lib/systemd/user",
];

fn wanted(name: &str) -> bool {
    let of_a_boot = name.split_once(".wants/").is_some_and(|(_, unit)| !UNITS.contains(&unit));
    !LEFT_OUT.contains(&name) && !of_a_boot
}

/// The page's commands that set an agent up: the code block with `useradd`.
fn commands() -> Option<&'static str> {
    PAGE.split("```").find_map(|block| {
        block.split_once('\n').map(|(_, code)| code).filter(|code| code.contains("useradd"))
    })
}

/// Packs the initramfs.
pub fn pack(
    mut a: Archive<impl Write>,
    setup: &Setup,
    [shef, sim, agent]: &[PathBuf; 3],
) -> Result<()> {
    let commands =
        commands().context("docs/how-to/owner-and-agent.md has no block of code with useradd")?;
    setup.system.iter().try_for_each(|system| a.tree(system, &wanted))?;
    // A served card measures its image's design.
    a.tree(&root(), &|name| {
        name == "shell-rtl"
            || name.starts_with("shell-rtl/accel")
            || name.starts_with("shell-rtl/rtl")
            || name.starts_with("shell-rtl/shell")
    })?;
    let wants = "etc/systemd/system/multi-user.target.wants";
    for dir in ["proc", "sys", "dev", "tmp", "run", "root", "home", "modules", wants] {
        a.folder(dir)?;
    }
    a.link("var/run", "/run")?;
    a.link("etc/systemd/system/default.target", "/usr/lib/systemd/system/multi-user.target")?;
    a.link("etc/systemd/system/multi-user.target.wants/job.service", "../job.service")?;
    a.copy("usr/bin/busybox", true, &setup.guest.busybox())?;
    a.copy("usr/bin/shef", true, &stripped(shef)?)?;
    a.copy("usr/bin/shef-sim", true, &stripped(sim)?)?;
    a.copy("usr/bin/shef-agent", true, &stripped(agent)?)?;
    for (name, module) in setup.guest.modules() {
        a.copy(&format!("modules/{name}.ko"), false, &module)?;
    }
    for (name, contents) in [
        ("etc/machine-id", "00000000000000000000000000000001\n"),
        ("etc/passwd", PASSWD),
        ("etc/group", "root:x:0:\ntty:x:5:\nnogroup:x:65534:\n"),
        ("etc/systemd/system/job.service", include_str!("../../../vm/unit/job.service")),
        ("job", JOB),
        ("probe", include_str!("../../../vm/unit/probe")),
        ("set-up", commands),
    ] {
        a.file(name, false, contents.as_bytes())?;
    }
    a.file("lib.sh", false, LIBRARY)?;
    a.file("init", true, include_bytes!("../../../vm/unit/init"))?;
    a.finish()?;
    Ok(())
}

const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n\
                      nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n";

/// Abilities of a process of the unit, and of the same user outside it: if only the second has one,
/// the unit denies it.
const CAN: [(&str, &str, &str); 14] = [
    ("read-home", "no", "yes"),
    ("read-other-home", "no", "yes"),
    // The folder is root's: the agent's user writes nothing there, in the unit or outside.
    ("write-configuration", "no", "no"),
    ("write-var-lib", "no", "yes"),
    ("write-run", "yes", "yes"),
    ("see-tmp", "no", "yes"),
    ("see-served-card", "yes", "yes"),
    ("open-console", "no", "yes"),
    ("open-vfio", "yes", "yes"),
    // One process at a time: the agent has it open.
    ("open-group", "yes", "no"),
    ("netlink", "no", "yes"),
    ("suid", "no", "yes"),
    ("lock-memory", "yes", "no"),
    ("new-privileges", "no", "yes"),
];

/// The guest's output as the command's document.
pub fn report(output: &Output) -> Report {
    let mut steps = vec![booted(output)];
    let mut names = JOB.lines().filter_map(|line| line.strip_prefix("shown ")?.split(' ').next());
    let missing = names.find(|name| {
        let found = output.steps.iter().find(|step| step["name"] == **name);
        steps.extend(found.cloned());
        found.is_none()
    });
    match missing {
        // The job ends with the first step that fails.
        Some(name) => {
            steps.push(step(name, false, "the guest did not come to it, and to nothing after it"));
        }
        None => steps.extend(after(output)),
    }
    let iommu = format!("systemd {}", output.word("systemd"));
    Report { attacks: Vec::new(), ..output.report(iommu, steps) }
}

/// Checks of documents, after the guest ended.
fn after(output: &Output) -> Vec<Value> {
    let mut steps = vec![];
    let answer = |place: &str, name: &str| -> String {
        let lines = output.documents.get(place).map(String::as_str).unwrap_or_default().lines();
        let mut answers = lines.filter_map(|line| line.split_once(' '));
        answers.find(|(can, _)| *can == name).map_or("?", |(_, answer)| answer).to_owned()
    };
    for (name, inside, outside) in CAN {
        let (found_inside, found_outside) = (answer("inside", name), answer("outside", name));
        let detail = format!(
            "in the unit {found_inside} (expected {inside}), the same user outside it \
             {found_outside} (expected {outside})"
        );
        let ok = found_inside == inside && found_outside == outside;
        steps.push(step(&format!("unit-{name}"), ok, detail));
    }
    steps.extend(demo(output));
    // `→ Overall exposure level for shef-agent.service: 3.3 OK :-)`
    let exposure = output.word("exposure");
    let level = exposure.split(": ").nth(1).and_then(|rest| rest.split_whitespace().next());
    let low =
        level.and_then(|level| level.parse().ok()).is_some_and(|level: f64| level <= EXPOSURE);
    steps.push(step("exposure", low, format!("{exposure} (at most {EXPOSURE})")));
    steps
}

/// Highest exposure of the unit that `systemd-analyze security` may find, of 10.
const EXPOSURE: f64 = 2.0;
