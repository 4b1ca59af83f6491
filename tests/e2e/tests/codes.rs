//! Codes and exit statuses of all programs.

use std::collections::{BTreeMap, BTreeSet};

use shef_console::CliError;
use shef_console::codes::{self, Groups};
use shef_proto::fault;

/// The table for users.
const PAGE: &str = include_str!("../../../docs/reference/exit-statuses.md");

/// The codes that `explain` of each program lists.
fn programs() -> [(&'static str, Groups); 4] {
    let programs: [(_, fn() -> Groups); 4] = [
        ("shef", shef_cli::codes),
        ("shef-sim", shef_sim::codes),
        ("shef-agent", shef_agent::codes),
        ("shef-verifierd", shef_verifierd::codes),
    ];
    programs.map(|(program, libraries)| {
        let mut groups = libraries();
        groups.push(("commands", codes::CODES.iter().collect()));
        (program, groups)
    })
}

/// The codes in a list of numbers, single or from first to last.
fn numbers<'a>(family: &'a str, list: &'a str) -> impl Iterator<Item = String> + 'a {
    list.split_whitespace().flat_map(move |range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let [first, last]: [u16; 2] = [first, last].map(|number| number.parse().unwrap());
        (first..=last).map(move |number| format!("SHEF-{family}-{number:03}"))
    })
}

/// The exit status of each code on the page.
fn page() -> BTreeMap<String, u8> {
    let mut all = BTreeMap::new();
    for section in PAGE.split("\n## ").skip(1) {
        let (status, _) = section.split_once(':').unwrap();
        let list = section.split("```text\n").nth(1).unwrap().split("```").next().unwrap();
        let mut family = "";
        for line in list.lines() {
            let rest = line.trim_start_matches(|c: char| c.is_ascii_uppercase());
            if rest.len() < line.len() {
                family = &line[..line.len() - rest.len()];
            }
            for code in numbers(family, rest) {
                let before = all.insert(code.clone(), status.parse().unwrap());
                assert_eq!(before, None, "{code} has two statuses");
            }
        }
    }
    all
}

#[test]
fn every_code_of_every_program_has_the_exit_status_of_the_table() {
    let (page, mut known) = (page(), BTreeSet::new());
    for (program, groups) in programs() {
        for code in groups.iter().flat_map(|(_, codes)| codes) {
            assert!(
                fault::of(code.id).is_some(),
                "{program}: {} has no category: add its number to fault::TABLE",
                code.id
            );
            let status = CliError::new(code.id, "").exit() as u8;
            assert_eq!(
                page.get(code.id),
                Some(&status),
                "{program}: {} in docs/reference/exit-statuses.md, and what the program does",
                code.id
            );
            known.insert(code.id.to_owned());
        }
    }
    let rows = fault::TABLE.iter().flat_map(|(family, _, list)| numbers(family, list));
    let rows: Vec<String> = rows.collect();
    let unknown: Vec<&String> = rows.iter().filter(|code| !known.contains(*code)).collect();
    assert!(unknown.is_empty(), "no program has the codes {unknown:?}");
    assert_eq!(rows.len(), known.len(), "a code has two categories");
    assert_eq!(page.len(), known.len(), "the page has codes that no program has");
}

#[test]
fn every_code_is_listed_once_and_explained() {
    for (program, groups) in programs() {
        let mut seen = BTreeSet::new();
        for (part, codes) in groups {
            assert!(!codes.is_empty(), "{program}: {part} lists no codes");
            for code in codes {
                assert!(seen.insert(code.id), "{program}: {} twice", code.id);
                let (prefix, number) = code.id.rsplit_once('-').unwrap();
                assert!(
                    prefix.starts_with("SHEF-")
                        && number.len() == 3
                        && number.bytes().all(|b| b.is_ascii_digit()),
                    "{}",
                    code.id
                );
                assert!(
                    !code.summary.is_empty() && !code.help.is_empty(),
                    "{} is not explained",
                    code.id
                );
            }
        }
    }
}
