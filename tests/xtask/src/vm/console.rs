//! The guest's output, and what it shows.

use super::Purpose;
use crate::process::say;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The emulator.
const QEMU: &str = "11.1 (vfio-user-pci), TCG";

/// The observations of a run.
#[derive(Serialize, Default)]
pub struct Report {
    pub driver: String,
    pub iommu: String,
    pub kernel: String,
    pub qemu: String,
    pub steps: Vec<Value>,
    pub digits: Value,
    pub attacks: Vec<Value>,
    /// Why no guest was started.
    pub skipped: Option<String>,
    pub seconds: u64,
}

impl Report {
    /// The failed checks of a run.
    pub fn failed(&self) -> Vec<String> {
        let name = |v: &Value| v["name"].as_str().unwrap_or("?").to_owned();
        let steps = self.steps.iter().filter(|step| step["ok"] != true).map(name);
        let attacks = self.attacks.iter().filter(|attack| !is_refused(attack)).map(name);
        let digits = (self.digits["equal_to_reference"] != true).then(|| "digits".to_owned());
        steps.chain(attacks).chain(digits).collect()
    }
}

pub fn is_refused(attack: &Value) -> bool {
    attack["detected"] == true && attack["words_delivered"] == 0
}

/// The guest's output.
#[derive(Default)]
pub struct Output {
    pub words: BTreeMap<String, String>,
    pub documents: BTreeMap<String, String>,
    exits: BTreeMap<String, i32>,
    pub failures: Vec<String>,
    pub steps: Vec<Value>,
}

impl Output {
    /// Parses a line of the console.
    pub fn line(&mut self, line: &str, open: &mut Option<String>) {
        let Some(event) = line.strip_prefix("@@ ") else {
            if let Some(text) = open.as_ref().and_then(|name| self.documents.get_mut(name)) {
                *text += line;
                text.push('\n');
            }
            return;
        };
        match event.split_once(' ').unwrap_or((event, "")) {
            ("begin", name) => {
                self.documents.insert(name.to_owned(), String::new());
                *open = Some(name.to_owned());
            }
            ("end", _) => *open = None,
            ("exit", rest) => {
                if let Some((name, code)) = rest.split_once(' ') {
                    self.exits.insert(name.to_owned(), code.parse().unwrap_or(-1));
                }
            }
            ("failed", what) => self.failures.push(what.to_owned()),
            // `@@ step ok NAME: DETAIL`
            ("step", rest) => self.steps.extend(parsed(rest, "")),
            ("at", what) => say(&format!("in the guest: {what}")),
            ("note", _) => {}
            (key, value) => {
                self.words.insert(key.to_owned(), value.to_owned());
            }
        }
    }

    pub fn word(&self, key: &str) -> String {
        self.words.get(key).cloned().unwrap_or_default()
    }

    pub fn json(&self, name: &str) -> Value {
        let document = self.documents.get(name);
        document.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null)
    }

    /// The command's document.
    pub fn report(&self, iommu: String, steps: Vec<Value>) -> Report {
        let demo = self.json("demo");
        Report {
            driver: self.word("driver"),
            iommu,
            kernel: self.word("kernel"),
            qemu: QEMU.to_owned(),
            steps,
            digits: demo["digits"].clone(),
            attacks: demo["attacks"].as_array().cloned().unwrap_or_default(),
            ..Report::default()
        }
    }
}

/// Whether the card's Security Kernel was boot ROM and firmware, and the card in the shell of this
/// guest: a native kernel and another shell show in the URI.
pub fn security_kernel(identity: &Value, purpose: Purpose) -> Value {
    let engine = identity["engine"].as_str().unwrap_or("of an unknown kind");
    let expected = if purpose == Purpose::AwsF2 { "sim:rtl?shell=f2" } else { "sim:rtl" };
    step("security-kernel", engine == expected, format!("the card is {engine}"))
}

/// Least number of bytes that the demo moves each way through rings.
const BULK: u64 = 64 << 10;

/// Whether bulk data went through rings: the card accessed the guest's memory directly.
pub fn rings(state: &Value) -> Value {
    let bytes = |key: &str| state[key].as_u64().unwrap_or(0);
    let (read, written, interrupts) =
        (bytes("dma_read"), bytes("dma_written"), bytes("dma_interrupts"));
    let detail = format!(
        "the card's DMA engine read {read} bytes of the guest's memory, wrote {written}, and raised {interrupts} interrupts"
    );
    step("rings", read >= BULK && written > 0 && interrupts > 0, detail)
}

pub fn step(name: &str, ok: bool, detail: impl Into<String>) -> Value {
    serde_json::json!({ "name": name, "ok": ok, "detail": detail.into() })
}

/// The step of a line `VERDICT NAME: DETAIL`.
fn parsed(line: &str, prefix: &str) -> Option<Value> {
    let (verdict, rest) = line.split_once(' ')?;
    let (name, detail) = rest.split_once(": ")?;
    Some(step(&format!("{prefix}{name}"), verdict == "ok", detail))
}

/// Whether the guest came up.
pub fn booted(output: &Output) -> Value {
    let ready = output.words.contains_key("ready") && output.failures.is_empty();
    step("boot", ready, output.failures.join("; "))
}

/// Steps of the demo, or their absence.
pub fn demo(output: &Output) -> Vec<Value> {
    let steps = output.json("demo")["steps"].as_array().cloned();
    let exit = format!("exit {:?}", output.exits.get("demo"));
    steps.unwrap_or_else(|| vec![step("demo", false, exit)])
}

/// The guest's output as the command's document.
pub fn report(output: &Output, purpose: Purpose) -> Report {
    let mut steps = vec![booted(output)];
    let edu = ["edu", "edu-locked-memory", "edu-removal"];
    let texts = edu.iter().filter_map(|name| output.documents.get(*name));
    let lines = texts.flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("edu "));
    steps.extend(lines.filter_map(|line| parsed(line, "vfio-")));
    // A program that panics prints nothing.
    let runs = |name: &&str| *name != "edu-locked-memory" || purpose != Purpose::NoIommu;
    for name in edu.into_iter().filter(runs) {
        match output.exits.get(name) {
            Some(0) => {}
            Some(code) => steps.push(step(name, false, format!("exit {code}"))),
            None => steps.push(step(name, false, "it did not end")),
        }
    }
    // The same function without permission, or without a statement that nothing confines it.
    let mut refused = |name: &str, document: &str, code: &str, what: &str| {
        let refused = output.documents.get(document).is_some_and(|text| text.contains(code));
        steps.push(step(name, refused, format!("{what} is refused with {code}")));
    };
    if purpose == Purpose::NoIommu {
        refused("vfio-permission", "edu-permission", "SHEF-PCI-017", "another user's open");
        refused("vfio-unasked", "edu-unasked", "SHEF-PCI-011", "a URI without iommu=none");
    } else {
        refused("vfio-permission", "edu-permission", "SHEF-PCI-006", "another user's open");
    }
    let before = output.json("doctor-before").to_string();
    let unbound = "a card without driver is named with its command";
    steps.push(step("doctor-unbound", before.contains("SHEF-PCI-004"), unbound));
    let doctor = output.json("doctor");
    steps.push(step("doctor", doctor[0]["ready"] == true, "the bound card can be opened"));
    let mut checks = doctor[0]["checks"].as_array().into_iter().flatten();
    let iommu = checks.find(|check| check["check"] == "IOMMU");
    let interface = iommu.and_then(|check| check["found"].as_str()).unwrap_or_default();
    let expected = interface.starts_with(&format!("interface {},", purpose.iommu()));
    steps.push(step("interface", expected, interface));
    let info = output.json("info");
    let description = info["description"].as_str().unwrap_or_default();
    steps.push(step("info", info["kernel"]["state"].is_string(), description));
    steps.extend(demo(output));
    output.report(interface.to_owned(), steps)
}

#[cfg(test)]
mod tests {
    use super::{Output, Purpose, report, rings, security_kernel};

    fn output(lines: &[&str]) -> Output {
        let (mut output, mut open) = (Output::default(), None);
        for line in lines {
            output.line(line, &mut open);
        }
        output
    }

    #[test]
    fn lines_of_the_guest_become_a_report() {
        let output = output(&[
            "[    0.1] noise",
            "@@ kernel 6.1",
            "@@ ready 3.1",
            "@@ exit edu 0",
            "@@ begin edu",
            "edu ok dma: there and back",
            "edu FAILED reset: no",
            "@@ end edu",
            "@@ exit edu-removal 101",
            "@@ begin edu-removal",
            "@@ end edu-removal",
            "noise between documents",
            "@@ begin demo",
            "{\"digits\":{\"tested\":1},",
            " \"steps\":[{\"name\":\"seal\",\"ok\":true}],\"attacks\":[]}",
            "@@ end demo",
        ]);
        let r = report(&output, Purpose::Type1);
        assert_eq!((r.kernel.as_str(), &r.digits["tested"]), ("6.1", &1.into()));
        let found = |name: &str| r.steps.iter().find(|step| step["name"] == name);
        let step = |name: &str| found(name).unwrap_or_else(|| panic!("{name}"))["ok"] == true;
        assert!(step("boot") && step("vfio-dma") && !step("vfio-reset") && step("seal"));
        // Nor does a program that panicked before it printed anything.
        assert!(!step("edu-removal") && found("edu").is_none());
        // Anything missing from the guest's output counts as failed.
        for name in ["edu-locked-memory", "doctor", "info", "vfio-permission"] {
            assert!(!step(name), "{name}");
        }
        assert!(r.failed().contains(&"digits".to_owned()));
    }

    #[test]
    fn bulk_that_went_through_the_window_has_failed() {
        let state = |read, interrupts| serde_json::json!({ "is": "state", "dma_read": read, "dma_written": 1, "dma_interrupts": interrupts });
        assert_eq!(rings(&state(1 << 20, 9))["ok"], true);
        for other in [state(100, 9), state(1 << 20, 0), serde_json::Value::Null] {
            assert_eq!(rings(&other)["ok"], false, "{other}");
        }
    }

    #[test]
    fn a_card_with_a_native_kernel_or_in_another_shell_has_failed() {
        let identity = |engine: &str| serde_json::json!({ "is": "identity", "engine": engine });
        for (purpose, engine, other_shell) in [
            (Purpose::Type1, "sim:rtl", "sim:rtl?shell=f2"),
            (Purpose::AwsF2, "sim:rtl?shell=f2", "sim:rtl"),
        ] {
            assert_eq!(security_kernel(&identity(engine), purpose)["ok"], true);
            for other in [
                identity(other_shell),
                identity("sim:rtl?kernel=native"),
                identity("sim:rtl?kernel=native&shell=f2"),
                identity("sim:model"),
                serde_json::Value::Null,
            ] {
                assert_eq!(security_kernel(&other, purpose)["ok"], false, "{other}");
            }
        }
    }

    #[test]
    fn a_guest_that_says_nothing_has_failed() {
        let r = report(&output(&["Kernel panic - not syncing"]), Purpose::NoIommu);
        assert!(r.failed().iter().any(|f| f == "boot") && r.failed().iter().any(|f| f == "demo"));
    }
}
