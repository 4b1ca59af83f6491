//! Everything that must be right before a build or a load: each finding is a line with its next
//! step.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;
use shef_device::Bdf;
use shef_device::pci::f2::adapter::{ID, PAGE, reg};
use shef_device::pci::{BAR_CTL, f2};
use shef_vfio::System;

use crate::hdk::{Hdk, KNOWN};
use crate::run::{self, Limits, Said};
use crate::tools::{self, Tool};
use crate::{CODES, CloudError, Step, place};

/// Memory that Vivado needs, in GiB.
const MEMORY: u64 = 32;
/// Memory for the folder of an image on tmpfs, in GiB, besides.
const FOLDER: u64 = 16;
/// Part of the memory that a machine keeps for itself, in GiB.
const KEPT: u64 = 2;
/// vCPUs of the smallest F2 instance.
const VCPUS: f64 = 24.0;
/// Code of the quota.
const QUOTA: &str = "L-74FC7D96";

/// Outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is right.
    Ok,
    /// It works, with a limit.
    Warning,
    /// A build or a load would fail.
    Fault,
    /// It was not checked.
    Untested,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its subject.
    pub check: &'static str,
    /// Its outcome.
    pub verdict: Verdict,
    /// The state found.
    pub found: String,
    /// Code of the fault.
    pub code: Option<&'static str>,
    /// The next step.
    pub next: Option<String>,
}

impl Finding {
    fn new(check: &'static str, verdict: Verdict, found: impl Into<String>) -> Self {
        Self { check, verdict, found: found.into(), code: None, next: None }
    }

    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self::new(check, Verdict::Ok, found)
    }

    fn of(check: &'static str, result: Result<String, CloudError>) -> Self {
        let error = match result {
            Ok(found) => return Self::ok(check, found),
            Err(error) => error,
        };
        let code = error.code();
        let mut known = [CODES, shef_device::CODES].into_iter().flatten();
        let next = known.find(|known| known.id == code).map(|code| code.help.to_owned());
        Self { check, verdict: Verdict::Fault, found: error.to_string(), code: Some(code), next }
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// What is examined.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// Folder of the HDK: without it, nothing of a build host is examined.
    pub hdk: Option<&'a Path>,
    /// Region: without it, nothing of the account is examined.
    pub region: Option<&'a str>,
    /// Digest of an encryption script that the user has read.
    pub encrypt_script: Option<&'a str>,
    /// The machine's system folders.
    pub system: &'a System,
    /// Limits of the programs.
    pub limits: Limits,
}

/// The subjects that were not examined.
#[must_use]
pub fn unchecked(findings: &[Finding]) -> Vec<&'static str> {
    let untested = findings.iter().filter(|it| it.verdict == Verdict::Untested);
    untested.map(|it| it.check).collect()
}

/// Whether nothing that was examined is wrong, and a build host, an account or a card was examined.
#[must_use]
pub fn ready(findings: &[Finding]) -> bool {
    let unchecked = unchecked(findings);
    let any = ["build host", "account", "card"].iter().any(|part| !unchecked.contains(part));
    any && !findings.iter().any(|it| it.verdict == Verdict::Fault)
}

/// One line for each program that [`examine`] runs.
///
/// # Errors
/// SHEF-CLD-054.
pub fn plan(scope: Scope<'_>) -> Result<Vec<Step>, CloudError> {
    let mut used: Vec<&'static Tool> = Vec::new();
    if scope.hdk.is_some() {
        used.push(&tools::VIVADO_VERSION);
    }
    if scope.region.is_some() {
        used.extend([&tools::AWS_VERSION, &tools::IDENTITY, &tools::REGION, &tools::QUOTA]);
    }
    let region = scope.region.unwrap_or("REGION");
    used.into_iter().map(|tool| Ok(tool.call(&[("region", region)])?.into())).collect()
}

/// Examines everything; a failed check ends nothing.
#[must_use]
pub fn examine(
    scope: Scope<'_>,
    environment: impl Fn(&str) -> Option<std::ffi::OsString>,
) -> Vec<Finding> {
    let mut all = vec![Finding::ok(
        "DMA",
        "F2's shell has no DMA engine, and shef brings its own (PCIM): no /dev/xdma, no Vitis",
    )];
    match scope.hdk {
        None => all.push(
            Finding::new("build host", Verdict::Untested, "no HDK was named")
                .next("--hdk DIR examines HDK, Vivado and memory"),
        ),
        Some(dir) => build_host(scope, dir, environment, &mut all),
    }
    match scope.region {
        None => all.push(
            Finding::new("account", Verdict::Untested, "no region was named")
                .next("--region NAME examines credentials, quota and region"),
        ),
        Some(region) => account(scope, region, &mut all),
    }
    let cards = scope.system.cards();
    if cards.is_empty() {
        all.push(
            Finding::new("card", Verdict::Untested, "this machine shows no card of shef")
                .next("on an F2 instance, `shef cloud load` first"),
        );
    }
    for card in cards {
        all.push(link(scope.system, card.bdf));
    }
    all.push(Finding::new(
        "silicon",
        Verdict::Untested,
        "no part of this has run on an F2 instance: docs/how-to/aws-f2.md has the state of each",
    ));
    all
}

/// HDK, Vivado, memory.
fn build_host(
    scope: Scope<'_>,
    dir: &Path,
    environment: impl Fn(&str) -> Option<std::ffi::OsString>,
    all: &mut Vec<Finding>,
) {
    let hdk = match Hdk::open(dir) {
        Ok(hdk) => hdk,
        Err(error) => {
            all.push(Finding::of("HDK", Err(error)));
            return;
        }
    };
    let named = format!("release {}, shell {}", hdk.release, hdk.shell_version);
    let [oldest, newest] = KNOWN;
    let range = "2.3.2 to 2.3.4";
    all.push(if hdk.numbers() < oldest {
        Finding::new("HDK", Verdict::Warning, format!("{named}: older than {range}"))
            .next("`git pull` in the HDK: AWS refuses shells and tools of old releases")
    } else if hdk.numbers() > newest {
        Finding::new("HDK", Verdict::Warning, format!("{named}: newer than {range}"))
            .next("read its RELEASE_NOTES: the checks below compare what shef relies on")
    } else {
        Finding::ok("HDK", named)
    });
    let ports = hdk.ports().map(|n| format!("{n} ports, as in shell-rtl/shell/aws_f2/ports.csv"));
    all.push(Finding::of("ports", ports));
    all.push(Finding::of("links", hdk.links().map(|()| "git kept them".to_owned())));
    let shell = hdk.shell_digest().map(|digest| format!("SHA-256 {digest}"));
    all.push(Finding::of("shell", shell));
    let encrypts = hdk.encrypts(scope.encrypt_script).map(|()| match scope.encrypt_script {
        None => "encrypt.tcl is AWS's own".to_owned(),
        Some(_) => "encrypt.tcl is AWS's own or that of --encrypt-script".to_owned(),
    });
    all.push(Finding::of("encryption", encrypts));
    let scripts = hdk.scripts().map(|all| format!("{}, which others cannot change", all.len()));
    all.push(Finding::of("scripts", scripts));
    let set = hdk.environment(environment).map(|()| "hdk_setup.sh was sourced".to_owned());
    all.push(Finding::of("environment", set));
    let vivado = tools::VIVADO_VERSION.call(&[]).and_then(|call| {
        let said = run::run(&call, scope.limits)?;
        hdk.supports(&said.text)?;
        Ok(said.text.lines().next().unwrap_or_default().trim().to_owned())
    });
    all.push(Finding::of("Vivado", vivado));
    all.push(memory(scope.system));
    let swaps = place::swaps(&scope.system.text("/proc/swaps").unwrap_or_default());
    all.push(if swaps.is_empty() {
        Finding::ok("swap", "none: what is on tmpfs stays in memory")
    } else {
        let found = format!("{}: the secret of an image on tmpfs may reach it", swaps.join(", "));
        Finding::new("swap", Verdict::Warning, found).next(
            "`swapoff -a` for the time of the build, or mount a tmpfs with noswap (Linux 6.4)",
        )
    });
}

/// Memory of the machine.
fn memory(system: &System) -> Finding {
    let text = system.text("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib: u64 = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    let found = kib >> 20;
    if found + KEPT >= MEMORY + FOLDER {
        return Finding::ok("memory", format!("{found} GiB"));
    }
    if found + KEPT < MEMORY {
        return Finding::of("memory", Err(CloudError::Memory { found, expected: MEMORY + FOLDER }));
    }
    let text =
        format!("{found} GiB: enough for Vivado, not for a folder of {FOLDER} GiB beside it");
    Finding::new("memory", Verdict::Warning, text)
        .next("a small design fits; otherwise take a build host with 48 GiB, or add swap for Vivado and mount the folder's tmpfs with noswap (Linux 6.4)")
}

/// AWS CLI, credentials, region, quota.
fn account(scope: Scope<'_>, region: &str, all: &mut Vec<Finding>) {
    let ask = |tool: &'static Tool| -> Result<Said, CloudError> {
        run::run(&tool.call(&[("region", region)])?, scope.limits)
    };
    let version = ask(&tools::AWS_VERSION);
    let missing = matches!(version, Err(CloudError::NoProgram { .. }));
    let first = |said: Said| said.text.lines().next().unwrap_or_default().trim().to_owned();
    all.push(Finding::of("AWS CLI", version.map(first)));
    if missing {
        return;
    }
    let identity = ask(&tools::IDENTITY).and_then(|said| {
        let answer = said.json("JSON with Arn")?;
        let arn = answer["Arn"].as_str().map(str::to_owned);
        arn.ok_or_else(|| said.unlike("JSON with Arn"))
    });
    let known = identity.is_ok();
    all.push(Finding::of("credentials", identity));
    if !known {
        return;
    }
    let offers = ask(&tools::REGION).and_then(|said| {
        let answer = said.json("JSON with InstanceTypeOfferings")?;
        let Some(list) = answer["InstanceTypeOfferings"].as_array() else {
            return Err(said.unlike("JSON with InstanceTypeOfferings"));
        };
        let types: Vec<&str> = list.iter().filter_map(|it| it["InstanceType"].as_str()).collect();
        if types.is_empty() {
            return Err(CloudError::Region { region: region.to_owned() });
        }
        Ok(format!("{region} offers {}", types.join(", ")))
    });
    all.push(Finding::of("region", offers));
    let quota = ask(&tools::QUOTA).and_then(|said| {
        let answer = said.json("JSON with Quota")?;
        match answer["Quota"]["Value"] {
            Value::Number(ref value) if value.as_f64().is_some_and(|vcpus| vcpus >= VCPUS) => {
                Ok(format!("{value} vCPUs of F instances"))
            }
            Value::Number(ref value) => {
                Err(CloudError::Quota { quota: QUOTA, found: value.to_string() })
            }
            _ => Err(said.unlike("JSON with Quota")),
        }
    });
    all.push(Finding::of("quota", quota));
}

/// MPS and MRRS of a card, for the host and for the shell.
fn link(system: &System, bdf: Bdf) -> Finding {
    let config = std::fs::read(system.path(format!("{}/config", System::folder(bdf))));
    let config = config.unwrap_or_default();
    let read = |offset: u16, out: &mut [u8]| {
        let at = usize::from(offset);
        config.get(at..at + out.len()).map(|bytes| out.copy_from_slice(bytes)).ok_or(())
    };
    let Ok(Some(host)) = f2::configured(read) else {
        return Finding::new(
            "card",
            Verdict::Untested,
            format!("{bdf}: configuration space is hidden"),
        )
        .next("run this as root");
    };
    let named = format!("{bdf}: host has MPS {} and MRRS {} bytes", host[0], host[1]);
    let look = |offset| shef_vfio::peek(system, bdf, BAR_CTL, PAGE + offset);
    let seen = look(reg::ID).and_then(|id| Ok((id, look(reg::PCIE)?)));
    match seen {
        Ok((ID, value)) => {
            let shell = [128 << (value & 3), 128 << (value >> 4 & 7)];
            let same = f2::same_parameters(host, shell).map_err(CloudError::from);
            Finding::of("card", same.map(|()| format!("{named}, and so has the shell")))
        }
        Ok((id, _)) => Finding::new(
            "card",
            Verdict::Untested,
            format!("{named}; BAR0 reads {id:#010x} for the adapter's ID"),
        )
        .next("`shef cloud bind`, which enables the function, then this again"),
        Err(error) => Finding::new("card", Verdict::Untested, format!("{named}; {error}"))
            .next("run this as root"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_card_shows_the_parameters_of_both_sides() {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("sys/bus/pci/devices/0000:34:00.0");
        fs::create_dir_all(&at).unwrap();
        for (name, text) in [("vendor", "0x1d0f"), ("device", "0xf010")] {
            fs::write(at.join(name), text).unwrap();
        }
        let mut config = vec![0; 256];
        (config[0x34], config[0x60]) = (0x60, 0x10);
        config[0x68..0x6a].copy_from_slice(&(1_u16 << 5 | 2 << 12).to_le_bytes());
        fs::write(at.join("config"), &config).unwrap();
        let bar = |pcie: u32, id: u32| {
            let mut bytes = vec![0; 0x1_1000];
            bytes[0x1_0000..0x1_0004].copy_from_slice(&id.to_le_bytes());
            bytes[0x1_0014..0x1_0018].copy_from_slice(&pcie.to_le_bytes());
            fs::write(at.join("resource0"), bytes).unwrap();
        };
        let system = System::at(dir.path());
        let look = || {
            let scope = Scope {
                hdk: None,
                region: None,
                encrypt_script: None,
                system: &system,
                limits: Limits::default(),
            };
            let all = examine(scope, |_| None);
            all.into_iter().find(|it| it.check == "card").unwrap()
        };
        bar(2 << 4 | 1, ID);
        assert_eq!(
            look().found,
            "0000:34:00.0: host has MPS 256 and MRRS 512 bytes, and so has the shell"
        );
        bar(2 << 4 | 2, ID);
        let found = look();
        assert_eq!((found.verdict, found.code), (Verdict::Fault, Some("SHEF-DEV-023")));
        assert!(found.found.contains("256 bytes for the host and 512"), "{}", found.found);
        bar(0, u32::MAX);
        assert_eq!(look().verdict, Verdict::Untested);
        fs::write(at.join("config"), [0; 64]).unwrap();
        assert!(look().found.contains("configuration space is hidden"));
    }

    #[test]
    fn a_machine_with_32_gib_shows_a_little_less() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("proc")).unwrap();
        let system = System::at(dir.path());
        for (kib, verdict) in [
            (49_000_000, Verdict::Ok),
            (32_400_000, Verdict::Warning),
            (31_500_000, Verdict::Warning),
            (16_000_000, Verdict::Fault),
        ] {
            fs::write(dir.path().join("proc/meminfo"), format!("MemTotal:  {kib} kB\n")).unwrap();
            assert_eq!(memory(&system).verdict, verdict, "{kib}");
        }
    }
}
