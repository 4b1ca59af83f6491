//! Additional steps of `cargo xtask test --full`. Each step is independent, so that an interrupted
//! run can resume.

use super::binaries::{self, Built, Rest, Which};
use super::lanes::{Lanes, Outcome};
use super::{BUILD, PACKAGES, PROVER, Plan, VERILATOR, checked, kept};
use crate::process::{self, Failure, say};
use crate::{compat, firmware, formal, mutants, root, tools, vm};
use std::process::Stdio;

/// Hostile attempts in total and per step.
const ATTEMPTS: (u64, u64) = (20_000, 5_000);
const ATTACK_SEED: u64 = 20_261_123;
/// Random operations on the RTL, compared with the model.
const OPERATIONS: u64 = 10_000;

/// Searches for keys in optimised builds, which place values elsewhere: the names of their steps,
/// and cargo's arguments.
const OPTIMISED: &[(&str, &[&[&str]])] = &[
    (
        "search for keys, optimised: ciphers",
        &[&[
            "test",
            "--release",
            "--quiet",
            "--package",
            "shef-seal",
            "--features",
            "aws-lc",
            "--lib",
            "residue::",
        ]],
    ),
    (
        "search for keys, optimised: service",
        &[&[
            "test",
            "--release",
            "--quiet",
            "--package",
            "shef-verifierd",
            "--test",
            "verifierd",
            "residue::",
        ]],
    ),
    (
        "search for keys, optimised: sessions",
        &[
            &[
                "build",
                "--release",
                "--quiet",
                "--package",
                "shef-cli",
                "--package",
                "shef-agent",
                "--package",
                "shef-verifierd",
            ],
            &["test", "--release", "--quiet", "--package", "shef-e2e", "--test", "traces"],
        ],
    ),
];

/// Runs cargo until one command fails. Missing tests are a failure, too.
fn optimised_searches(plan: &Plan, commands: &[&[&str]]) -> Outcome {
    let mut passed = 0;
    for args in commands {
        let mut cargo = process::cargo(args);
        let out = match cargo.env("SHEF_VERILATOR", plan.verilator()).stdin(Stdio::null()).output()
        {
            Ok(out) => out,
            Err(e) => return Outcome::failed(format!("cargo {}: {e}", args.join(" "))),
        };
        let said = String::from_utf8_lossy(&out.stdout);
        let found: u32 =
            said.lines().filter_map(binaries::closing_line).map(|(passed, _)| passed).sum();
        if !out.status.success() || (args[0] == "test" && found == 0) {
            return Outcome::failed(format!(
                "cargo {}: {}\n{said}\n{}",
                args.join(" "),
                out.status,
                String::from_utf8_lossy(&out.stderr)
            ));
        }
        passed += found;
    }
    Outcome { passed, ..Outcome::default() }
}

/// Adds the steps.
pub fn steps<'a>(plan: &'a Plan, lanes: &Lanes<'a>, built: &'a Built) {
    let rest = Rest::of(&plan.tree);
    for binary in built.binaries.iter().filter(|b| b.has_long()) {
        let (key, name) =
            (binary.key(&Which::Long, &rest), format!("long tests: {}", binary.name()));
        let title = name.clone();
        plan.add(lanes, &name, &[BUILD, VERILATOR, PACKAGES], move |_| {
            binaries::once(&plan.kept, &key, &title, || binary.run(&Which::Long, plan.verilator()))
        });
    }
    let sources = plan.tree.digest(|path| path.ends_with(".rs") || path.ends_with("Cargo.toml"));
    plan.add_once(lanes, "API documentation", &[BUILD], sources, || {
        let mut doc = process::cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
        checked(process::run(doc.env("RUSTDOCFLAGS", "-D warnings"), "cargo doc"))
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
        before = (*name).to_owned();
    }
    // Each task is cached by its content.
    plan.add(lanes, "all proofs and their mutants", &[PROVER], |_| {
        checked(
            tools::ensure_prover(&root(), &say)
                .map_err(Failure::from)
                .and_then(|prover| formal::all_of_them(&prover, &say)),
        )
    });
    let inputs = plan.tree.digest(|path| {
        path.starts_with("attestation/")
            || path.starts_with("Cargo.")
            || path.ends_with("_rom_pkg.sv")
    });
    plan.add_once(
        lanes,
        "firmware rebuilt in two folders",
        &[],
        inputs,
        || match firmware::check() {
            Err(Failure::Message { code: 3, message }) => Outcome::skipped(message),
            result => checked(result.map(drop)),
        },
    );
    let inputs =
        format!("{} {}", program_digest("shef-verifierd"), plan.tree.digest(compat_decides));
    plan.add_once(lanes, "other people's clients", &[BUILD, PACKAGES], inputs, || {
        match compat::program() {
            _ if !tools::has_openssl() => {
                Outcome::skipped(format!("run `apt-get install -y {}`", compat::PACKAGES.0))
            }
            Ok(program) => ended(program),
            Err(e) => checked(Err(e)),
        }
    });
    // Mutants, the bench and the random operations take hours: they count as long as the RTL, its
    // tests, bench and model are unchanged. The normal run detects anything else that a change
    // could break in them.
    let rtl = plan.tree.digest(|path| drives_the_rtl(path) && !of_the_kernel(path));
    mutations(plan, lanes, built, &rtl);
    for from in (0..ATTEMPTS.0).step_by(ATTEMPTS.1 as usize) {
        let name = format!("hostile attempts {from} to {}", from + ATTEMPTS.1 - 1);
        plan.add_once(lanes, &name, &[BUILD, VERILATOR], rtl.clone(), move || {
            let (from, n, seed) =
                (from.to_string(), ATTEMPTS.1.to_string(), ATTACK_SEED.to_string());
            let dir = process::target_dir().join("attack").display().to_string();
            program(
                plan,
                "shef-attack",
                &["--from", &from, "--n", &n, "--seed", &seed, "--dir", &dir],
            )
        });
    }
    for config in ["sim/tb/tests/modes.toml", "sim/tb/tests/shield.toml"] {
        plan.add_once(
            lanes,
            &format!("random operations on the RTL: {config}"),
            &[BUILD, VERILATOR],
            rtl.clone(),
            move || {
                program(
                    plan,
                    "examples/differential",
                    &["--rtl", "--config", config, "--operations", &OPERATIONS.to_string()],
                )
            },
        );
    }
    let mut before: Vec<String> = [BUILD, VERILATOR].map(str::to_owned).into();
    for purpose in vm::Purpose::ALL {
        // The programs contain the unit; the how-to page's commands are run verbatim.
        let (other, own): (_, &[&str]) = match purpose {
            vm::Purpose::Card(_) => ("examples/edu", &["shell-rtl/"]),
            vm::Purpose::Unit => (
                "shef-agent",
                &["host/agent/shef-agent.service", "docs/how-to/owner-and-agent.md", "shell-rtl/"],
            ),
        };
        let decides = |path: &str| match own.iter().find(|from| path.starts_with(**from)) {
            Some(from) => *from == path || decides(path),
            None => path.starts_with("tests/vm/") || path.contains("xtask/src/vm/"),
        };
        let inputs = format!(
            "{} {} {}",
            program_digest("shef"),
            program_digest(other),
            plan.tree.digest(decides)
        );
        let after: Vec<&str> = before.iter().map(String::as_str).collect();
        plan.add_once(lanes, &purpose.title(), &after, inputs, move || match vm::test(purpose) {
            Ok(result) => checked(result),
            Err(why) => Outcome::skipped(why),
        });
        // One after the other: they share a folder.
        before.push(purpose.title());
    }
}

/// Every mutant of the RTL against its test.
fn mutations<'a>(plan: &'a Plan, lanes: &Lanes<'a>, built: &'a Built, rtl: &str) {
    let all = match mutants::load() {
        Ok(all) => all,
        Err(e) => return plan.add(lanes, "mutants of the RTL", &[], |_| checked(Err(e))),
    };
    let native = ["attestation/", "tests/vectors/", "shell-rtl/regs/", "Cargo."];
    let attestation = plan.tree.digest(|path| native.iter().any(|from| path.starts_with(from)));
    for mutant in all {
        let Some(binary) = mutant.binary(&built.binaries).cloned() else { continue };
        let name = format!("mutant {}", mutant.name);
        let test = plan
            .tree
            .digest(|path| path.starts_with("sim/") && test_of(path) == Some(&binary.target));
        let kernel = match mutant.weakens(of_the_kernel) {
            true => plan.tree.digest(|path| drives_the_rtl(path) && of_the_kernel(path)),
            false => String::new(),
        };
        let key = match mutant.is_native() {
            true => kept::key(&name, &[&attestation, &mutant.text()]),
            false => kept::key(&name, &[rtl, &kernel, &test, &mutant.text()]),
        };
        let title = name.clone();
        plan.add(lanes, &name, &[BUILD, VERILATOR], move |_| {
            binaries::once(&plan.kept, &key, &title, || {
                match mutant.try_test(Some(&binary), plan.verilator()) {
                    Ok("caught") => Outcome::passed(),
                    Ok(other) => Outcome::failed(format!("{}: {other}", mutant.breaks)),
                    Err(e) => checked(Err(e)),
                }
            })
        });
    }
}

/// Whether a file is RTL, or drives RTL in any bench or test.
fn drives_the_rtl(path: &str) -> bool {
    let below = ["shell-rtl/", "sim/rtl/", "sim/tb/", "sim/model/", "tests/vectors/"];
    below.iter().any(|folder| path.starts_with(folder))
        && !kept::counts_where_named(path)
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
        "sim/rtl/src/sources.rs",
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
    !path.ends_with(".rs") && !kept::counts_where_named(path)
}

/// Whether a file affects the results of third-party clients, other than the service's source.
fn compat_decides(path: &str) -> bool {
    path.starts_with("tests/compat/")
        || path.starts_with("attestation/proto/")
        || path == "attestation/verifierd/tests/common/device.rs"
}

fn program_digest(name: &str) -> String {
    kept::file_digest(&process::target_dir().join("debug").join(name))
}

/// Runs a program of the workspace that is already built.
fn program(plan: &Plan, name: &str, args: &[&str]) -> Outcome {
    let mut command = std::process::Command::new(process::target_dir().join("debug").join(name));
    command.current_dir(root()).args(args).env("SHEF_VERILATOR", plan.verilator());
    ended(command)
}

/// Runs a program to completion.
fn ended(mut command: std::process::Command) -> Outcome {
    match command.stdin(Stdio::null()).output() {
        Ok(out) if out.status.success() => Outcome::passed(),
        Ok(out) => Outcome::failed(format!(
            "{}\n{}\n{}",
            String::from_utf8_lossy(&out.stderr),
            String::from_utf8_lossy(&out.stdout),
            out.status
        )),
        Err(e) => Outcome::failed(format!("cannot start {}: {e}", command.get_program().display())),
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
        assert_eq!(test_of("sim/rtl/tests/common/mod.rs"), None);
    }
}
