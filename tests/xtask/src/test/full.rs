//! Additional steps of `cargo xtask test --full`. Each step is independent, so that an interrupted
//! run can resume.

use super::binaries::{self, Built, Rest, Which};
use super::lanes::{Lanes, Outcome};
use super::{BUILD, PACKAGES, PROVER, Plan, VERILATOR, checked, checked_if_possible, passes};
use crate::process::{self, output, say};
use crate::{compat, debian, deployment, formal, mutants, root, torture, upgrade, vm};
use std::process::Command;

/// Hostile attempts in total and per step.
const ATTEMPTS: (u64, u64) = (20_000, 5_000);
const ATTACK_SEED: u64 = 20_261_123;
/// Random operations on the RTL, compared with the model.
const OPERATIONS: u64 = 10_000;

/// Searches for keys in optimised builds, which place values elsewhere: the names of their steps,
/// and cargo's arguments.
const OPTIMISED: [(&str, &[&str]); 3] = [
    (
        "search for keys, optimised: ciphers",
        &["test --release --quiet --package shef-seal --features aws-lc --lib residue::"],
    ),
    (
        "search for keys, optimised: service",
        &["test --release --quiet --package shef-verifierd --test verifierd residue::"],
    ),
    (
        "search for keys, optimised: sessions",
        &[
            "build --release --quiet --package shef-cli --package shef-sim --package shef-agent --package shef-verifierd",
            "test --release --quiet --package shef-e2e --test traces",
        ],
    ),
];

/// Runs cargo until one command fails. Missing tests are a failure, too.
fn optimised_searches(plan: &Plan, commands: &[&str]) -> Outcome {
    let mut passed = 0;
    for args in commands {
        let mut cargo = process::cargo(args);
        let out = match output(cargo.env("SHEF_VERILATOR", plan.verilator())) {
            Ok(out) => out,
            Err(e) => return Outcome::failed(format!("{e:#}")),
        };
        let results = out.stdout.lines().filter_map(binaries::closing_line);
        let found: u32 = results.map(|(passed, _)| passed).sum();
        if !out.status.success() || (args.starts_with("test") && found == 0) {
            return Outcome::failed(format!("cargo {args}: {}\n{}", out.status, out.all()));
        }
        passed += found;
    }
    Outcome { passed, ..Outcome::default() }
}

/// Adds the steps.
pub fn steps<'a>(plan: &'a Plan, lanes: &Lanes<'a>, built: &'a Built) {
    let rest = Rest::of(&plan.tree);
    for binary in built.binaries.iter().filter(|b| b.has_long()) {
        let name = format!("long tests: {}", binary.name());
        let key = binary.key(&Which::Long, &rest);
        plan.add_keyed(lanes, &name, &[BUILD, VERILATOR, PACKAGES], key, || {
            binary.run(&Which::Long, plan.verilator())
        });
    }
    builds(plan, lanes);
    clients(plan, lanes);
    faults(plan, lanes);
    beside(plan, lanes, built);
    // Mutants, the bench and the random operations take hours: they count as long as the RTL, its
    // tests, bench and model are unchanged. The normal run detects anything else that a change
    // could break in them.
    let rtl = plan.tree.digest(|path| drives_the_rtl(path) && !of_the_kernel(path));
    mutations(plan, lanes, built, &rtl);
    campaigns(plan, lanes, &rtl);
    guests(plan, lanes);
}

/// Documentation, optimised builds and proofs.
fn builds<'a>(plan: &'a Plan, lanes: &Lanes<'a>) {
    let sources = plan.tree.digest(|path| path.ends_with(".rs") || path.ends_with("Cargo.toml"));
    plan.add_once(lanes, "API documentation", &[BUILD], sources, || {
        let mut doc = process::cargo("doc --workspace --no-deps --quiet");
        checked(process::run(doc.env("RUSTDOCFLAGS", "-D warnings"), "cargo doc"))
    });
    let chart = plan.tree.digest(|path| {
        path.starts_with(deployment::FILES) || path.starts_with("tests/xtask/src/deployment")
    });
    plan.add_once(lanes, "Helm chart and manifests", &[], chart, || {
        checked(deployment::chart(false))
    });
    // One after the other: they share one target folder.
    let mut before = BUILD.to_owned();
    for (name, commands) in OPTIMISED {
        let optimised = plan.tree.digest(|path| {
            path.ends_with(".rs") || path.ends_with("Cargo.toml") || path.ends_with("Cargo.lock")
        });
        plan.add_once(lanes, name, &[&before, VERILATOR], optimised, || {
            optimised_searches(plan, commands)
        });
        before = name.to_owned();
    }
    // Each task is cached by its content.
    plan.add(lanes, "all proofs and their mutants", &[PROVER], |_| {
        checked(formal::prove(false, &say))
    });
}

fn clients<'a>(plan: &'a Plan, lanes: &Lanes<'a>) {
    let inputs =
        format!("{} {}", program_digest("shef-verifierd"), plan.tree.digest(compat_decides));
    plan.add_once(lanes, "other people's clients", &[BUILD, PACKAGES], inputs, || {
        match compat::program() {
            _ if !debian::has_openssl() => {
                Outcome::skipped(format!("run `apt-get install -y {}`", compat::PACKAGES.0))
            }
            Ok(mut program) => ended(&mut program),
            // Without npm's or Python's registry.
            Err(e) => checked_if_possible(Err(e)),
        }
    });
}

/// The verifier service while machines, databases and a tenant misbehave.
fn faults<'a>(plan: &'a Plan, lanes: &Lanes<'a>) {
    let inputs = ["shef-verifierd", "shef-torture"].map(program_digest).join(" ");
    plan.add_once(
        lanes,
        "faults under load of the verifier service",
        &[BUILD, PACKAGES],
        inputs,
        || match torture::program() {
            _ if !debian::has_postgres() => {
                Outcome::skipped(format!("run `apt-get install -y {}`", torture::PACKAGES))
            }
            Ok(mut program) => ended(&mut program),
            Err(e) => checked(Err(e)),
        },
    );
}

/// Replicas of the verifier service of the version before and of this one, on one database.
fn beside<'a>(plan: &'a Plan, lanes: &Lanes<'a>, built: &'a Built) {
    let name = "replicas of the version before beside those of this one";
    let commit = match upgrade::commit() {
        Ok(commit) => commit,
        Err(e) => return plan.add(lanes, name, &[], |_| checked(Err(e))),
    };
    let is = |b: &&binaries::Binary| b.name() == "shef-verifierd/verifierd";
    let Some(binary) = built.binaries.iter().find(is) else {
        return plan.add(lanes, name, &[], |_| Outcome::failed("its test program is missing"));
    };
    let inputs = format!("{commit} {}", binary.key(&Which::Beside, &Rest::of(&plan.tree)));
    plan.add_once(lanes, name, &[BUILD, PACKAGES], inputs, move || {
        match upgrade::program(&commit) {
            _ if !debian::has_postgres() => {
                Outcome::skipped(format!("run `apt-get install -y {}`", torture::PACKAGES))
            }
            Ok(before) => binary.run_beside(&before, plan.verilator()),
            Err(e) => checked(Err(e)),
        }
    });
}

/// Hostile attempts and random operations on the RTL.
fn campaigns<'a>(plan: &'a Plan, lanes: &Lanes<'a>, rtl: &str) {
    for from in (0..ATTEMPTS.0).step_by(ATTEMPTS.1 as usize) {
        let name = format!("hostile attempts {from} to {}", from + ATTEMPTS.1 - 1);
        plan.add_once(lanes, &name, &[BUILD, VERILATOR], rtl.to_owned(), move || {
            let args = format!("--from {from} --n {} --seed {ATTACK_SEED}", ATTEMPTS.1);
            let mut attack = program(plan, "shef-attack", &args);
            ended(attack.arg("--dir").arg(process::target_dir().join("attack")))
        });
    }
    for config in ["sim/tb/tests/modes.toml", "sim/tb/tests/shield.toml"] {
        let name = format!("random operations on the RTL: {config}");
        plan.add_once(lanes, &name, &[BUILD, VERILATOR], rtl.to_owned(), move || {
            let args = format!("--rtl --config {config} --operations {OPERATIONS}");
            ended(&mut program(plan, "examples/differential", &args))
        });
    }
}

/// The card in virtual machines.
fn guests<'a>(plan: &'a Plan, lanes: &Lanes<'a>) {
    let mut before: Vec<String> = [BUILD, VERILATOR].map(str::to_owned).into();
    for purpose in vm::Purpose::ALL {
        // The programs contain the unit; the how-to page's commands are run verbatim.
        let (other, own): (_, &[&str]) = match purpose {
            vm::Purpose::Unit => (
                "shef-agent",
                &["host/agent/shef-agent.service", "docs/how-to/owner-and-agent.md", "shell-rtl/"],
            ),
            _ => ("examples/edu", &["shell-rtl/"]),
        };
        let decides = |path: &str| match own.iter().find(|from| path.starts_with(**from)) {
            Some(from) => *from == path || decides(path),
            None => ["tests/vm/", "tests/xtask/src/vm/", "tests/xtask/src/debian.rs"]
                .iter()
                .any(|from| path.starts_with(from)),
        };
        let programs = ["shef", "shef-sim", other].map(program_digest).join(" ");
        let inputs = format!("{programs} {}", plan.tree.digest(decides));
        let after: Vec<&str> = before.iter().map(String::as_str).collect();
        plan.add_once(lanes, &purpose.title(), &after, inputs, move || match vm::test(purpose) {
            Ok(result) => checked(result),
            Err(why) => Outcome::skipped(format!("{why:#}")),
        });
        // One after the other: they share a folder.
        before.push(purpose.title());
    }
}

/// Every mutant of the RTL against its test. Only tests of shef-tb use the hostile bench.
fn mutations<'a>(plan: &'a Plan, lanes: &Lanes<'a>, built: &'a Built, rtl: &str) {
    let all = match mutants::load() {
        Ok(all) => all,
        Err(e) => return plan.add(lanes, "mutants of the RTL", &[], |_| checked(Err(e))),
    };
    let native = ["attestation/", "tests/fixtures/", "tests/vectors/", "shell-rtl/regs/", "Cargo."];
    let attestation = plan.tree.digest(|path| native.iter().any(|from| path.starts_with(from)));
    let units = plan.tree.digest(|path| {
        drives_the_rtl(path) && !of_the_kernel(path) && !path.starts_with("sim/tb/src/attack")
    });
    for mutant in all {
        let binary = mutant.binary(&built.binaries).cloned();
        let name = format!("mutant {}", mutant.name);
        let of_the_test = |path: &str| path.starts_with("sim/") && is_source(binary.as_ref(), path);
        let test = plan.tree.digest(of_the_test);
        let kernel = match mutant.weakens(of_the_kernel) {
            true => plan.tree.digest(|path| drives_the_rtl(path) && of_the_kernel(path)),
            false => String::new(),
        };
        let rtl =
            if binary.as_ref().is_some_and(|b| b.package == "shef-tb") { rtl } else { &units };
        let key = match mutant.is_native() {
            true => passes::key(&name, &[&attestation, &mutant.text()]),
            false => passes::key(&name, &[rtl, &kernel, &test, &mutant.text()]),
        };
        plan.add_keyed(lanes, &name, &[BUILD, VERILATOR], key, move || {
            match mutant.try_test(binary.as_ref(), plan.verilator()) {
                Ok("caught") => Outcome::passed(),
                Ok(other) => Outcome::failed(format!("{}: {other}", mutant.breaks)),
                Err(e) => checked(Err(e)),
            }
        });
    }
}

/// Whether a file is the source of a test program.
fn is_source(binary: Option<&binaries::Binary>, path: &str) -> bool {
    binary.is_some_and(|binary| test_of(path) == Some(&binary.target))
}

/// Whether a file is RTL, or drives RTL in any bench or test. Custom logic of a cloud, the model of
/// its shell and the lint of its netlist are in no design that is mutated or attacked here.
fn drives_the_rtl(path: &str) -> bool {
    let below = ["shell-rtl/", "sim/rtl/", "sim/tb/", "sim/model/", "tests/vectors/"];
    let cloud = [
        "shell-rtl/netlist/",
        "shell-rtl/regs/f2.toml",
        "shell-rtl/shell/aws_f2/",
        "shell-rtl/shell/f2_model/",
        "shell-rtl/shell/f2_native/",
        "sim/rtl/src/f2/",
        "sim/tb/src/f2.rs",
    ];
    let is_below = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    is_below(&below)
        && !is_below(&cloud)
        && !passes::counts_where_named(path)
        && test_of(path).is_none()
}

/// Whether a file belongs to the Security Kernel's subsystem, to the RTL that joins it with a
/// design, or to their drivers: a Shield alone contains none of them. If the selection of a
/// design's sources fails, it fails loudly in the normal run.
fn of_the_kernel(path: &str) -> bool {
    let below = [
        "shell-rtl/rtl/kernel/",
        "shell-rtl/shell/kernel/",
        "shell-rtl/rtl/system/",
        "shell-rtl/shell/system/",
    ];
    let files = [
        "shell-rtl/regs/kernel.toml",
        "sim/rtl/src/kernel_sim.rs",
        "sim/rtl/src/system_sim.rs",
        "sim/rtl/src/designs.rs",
        "shell-rtl/project/src/sources.rs",
        "sim/rtl/src/lib.rs",
    ];
    below.iter().any(|folder| path.starts_with(folder)) || files.contains(&path)
}

/// Name of the test program whose source a file is: `core` for `sim/rtl/tests/core.rs`.
fn test_of(path: &str) -> Option<&str> {
    let (_, file) = path.split_once("/tests/")?;
    file.strip_suffix(".rs").filter(|name| !name.contains('/'))
}

/// Whether a file affects the result of a program on the RTL, other than the program's source.
fn decides(path: &str) -> bool {
    !path.ends_with(".rs") && !passes::counts_where_named(path)
}

/// Whether a file affects the results of third-party clients, other than the service's source.
fn compat_decides(path: &str) -> bool {
    path.starts_with("tests/compat/")
        || path.starts_with("attestation/proto/")
        || ["tests/fixtures/src/device.rs", "tests/fixtures/src/exchange.rs"].contains(&path)
}

fn program_digest(name: &str) -> String {
    passes::file_digest(&process::target_dir().join("debug").join(name))
}

/// A program of the workspace that is already built.
fn program(plan: &Plan, name: &str, args: &str) -> Command {
    let mut command = Command::new(process::target_dir().join("debug").join(name));
    command.current_dir(root()).args(args.split(' ')).env("SHEF_VERILATOR", plan.verilator());
    command
}

/// Runs a program to completion.
fn ended(command: &mut Command) -> Outcome {
    match output(command) {
        Ok(out) if out.status.success() => Outcome::passed(),
        Ok(out) => Outcome::failed(format!("{}\n{}\n{}", out.stderr, out.stdout, out.status)),
        Err(e) => checked(Err(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn campaigns_depend_on_the_rtl_and_its_benches_and_on_no_single_test() {
        for path in [
            "shell-rtl/rtl/shield/shef_set.sv",
            "sim/rtl/src/sim.rs",
            "sim/tb/tests/modes.toml",
            "sim/rtl/tests/sv/shef_set_tb.sv",
        ] {
            assert!(drives_the_rtl(path), "{path}");
        }
        for path in [
            "sim/rtl/tests/core.rs",
            "shell-rtl/formal/fifo.sv",
            "shell-rtl/README.md",
            "host/agent/src/lib.rs",
        ] {
            assert!(!drives_the_rtl(path), "{path}");
        }
        assert_eq!(test_of("sim/rtl/tests/core.rs"), Some("core"));
        assert_eq!(test_of("sim/rtl/tests/device/mod.rs"), None);
    }
}
