//! The model of AWS F2's shell, with a small CL that obeys every rule or breaks one.

use shef_rtl::f2::{Fault, RULES, RuleText, exercise, faults, small_cl};
use shef_rtl::{Library, build};
use std::collections::BTreeSet;

fn lib() -> Library {
    build(&small_cl().random_contents()).expect("build")
}

#[test]
fn a_good_cl_breaks_no_rule() {
    let lib = lib();
    for seed in 0..12 {
        let out = exercise(&lib, None, seed, 12).expect("a run");
        assert!(out.violations.is_empty(), "seed {seed}: {:#?}", out.violations);
        assert!(out.wrong.is_empty(), "seed {seed}: {:#?}", out.wrong);
        assert_eq!(out.jobs, 12 * 9);
    }
}

#[test]
fn each_rule_is_broken_by_a_fault() {
    let rules: BTreeSet<_> = faults().iter().map(|f| f.rule).collect();
    assert_eq!(rules.len(), RULES.len());
    let numbers: BTreeSet<_> = faults().iter().map(|f| f.number).collect();
    assert_eq!(numbers.len(), faults().len());
}

#[test]
fn each_fault_breaks_its_rule_and_no_other() {
    let lib = lib();
    let mut bad = Vec::new();
    for fault in faults() {
        let Fault { name, rule, .. } = fault;
        for seed in 1..4 {
            let out = exercise(&lib, Some(fault), seed, 32).expect("a run");
            let seen: BTreeSet<_> = out.violations.iter().map(|v| v.rule).collect();
            if seen != BTreeSet::from([*rule]) {
                let text: Vec<String> =
                    out.violations.iter().take(4).map(ToString::to_string).collect();
                bad.push(format!("{name} {seed}: {seen:?} {text:#?} {:?}", out.wrong.first()));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// The page lists every rule, and no other.
#[test]
fn the_page_lists_the_rules() {
    let page = include_str!("../../../docs/reference/f2-shell-model.md");
    let listed: Vec<&str> = page
        .lines()
        .skip_while(|line| *line != "## Rules")
        .filter(|line| line.starts_with("| `"))
        .collect();
    let row =
        |r: &RuleText| format!("| `{}` | {} | {} | {} |", r.name, r.text, r.consequence, r.source);
    let rules: Vec<String> = RULES.iter().map(row).collect();
    assert_eq!(listed, rules);
}
