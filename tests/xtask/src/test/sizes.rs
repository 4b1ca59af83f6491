//! Recorded durations of the steps: the table in `docs/test-run.md`. They determine the order of
//! the steps, and steps that take longer are reported.

use crate::process::{Context, Result};
use crate::root;
use fs_err as fs;
use std::collections::BTreeMap;

/// The page with the table.
pub const PAGE: &str = "docs/test-run.md";
/// The markers around the table that [`record`] writes.
const MARKS: (&str, &str) =
    ("<!-- steps: written by `cargo xtask test --record` -->", "<!-- end of steps -->");
/// A step is reported if it takes this many times its recorded duration, relative to the whole run.
const GROWTH: f64 = 1.5;
/// Differences below this many seconds are noise.
const NOISE: f64 = 10.0;

/// Seconds of each recorded step.
pub fn load() -> BTreeMap<String, u64> {
    parse(&fs::read_to_string(root().join(PAGE)).unwrap_or_default())
}

/// Expected duration of a step in seconds, which decides the order. A step without a record may be
/// long: it begins before the short ones, which fill the lanes at the end.
pub fn expected(recorded: &BTreeMap<String, u64>, name: &str) -> u64 {
    const UNRECORDED: u64 = 30;
    recorded.get(name).copied().unwrap_or(UNRECORDED)
}

fn table(page: &str) -> Option<&str> {
    page.split_once(MARKS.0)?.1.split_once(MARKS.1).map(|(table, _)| table)
}

fn parse(page: &str) -> BTreeMap<String, u64> {
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let name = cells.next()?.strip_suffix('`')?.to_owned();
        Some((name, cells.next()?.parse().ok()?))
    };
    table(page).unwrap_or_default().lines().filter_map(row).collect()
}

/// Steps that took half as long again as recorded. A slower machine alone does not count as growth:
/// each step is compared with the others.
pub fn grown(recorded: &BTreeMap<String, u64>, ran: &[(String, f64)]) -> Vec<String> {
    let pairs: Vec<(&str, f64, f64)> = ran
        .iter()
        .filter_map(|(name, now)| Some((name.as_str(), *recorded.get(name)? as f64, *now)))
        .collect();
    let (then, now) = pairs.iter().fold((0.0, 0.0), |(a, b), (_, then, now)| (a + then, b + now));
    if then == 0.0 {
        return Vec::new();
    }
    let pace = (now / then).max(1.0);
    let long = |(name, then, now): &(&str, f64, f64)| {
        (*now > then * pace * GROWTH && *now > then * pace + NOISE).then(|| {
            format!("'{name}' took {now:.0} s, {then:.0} s when it was recorded; this run as a whole took {pace:.1} times as long")
        })
    };
    pairs.iter().filter_map(long).collect()
}

/// Rewrites the table; steps that did not run keep their rows.
pub fn record(ran: &[(String, f64)]) -> Result<()> {
    let path = root().join(PAGE);
    let page = fs::read_to_string(&path)?;
    let old = table(&page)
        .with_context(|| format!("{PAGE} has no lines '{}' and '{}'", MARKS.0, MARKS.1))?;
    let mut steps = parse(&page);
    steps.extend(ran.iter().map(|(name, seconds)| (name.clone(), seconds.round() as u64)));
    let mut rows: Vec<_> = steps.into_iter().filter(|(_, seconds)| *seconds > 0).collect();
    rows.sort_by(|(a, x), (b, y)| y.cmp(x).then_with(|| a.cmp(b)));
    let rows: String =
        rows.iter().map(|(name, seconds)| format!("| `{name}` | {seconds} |\n")).collect();
    let new = format!("\n\n| step | s |\n|---|---:|\n{rows}\n");
    Ok(fs::write(&path, page.replacen(old, &new, 1))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_grew_is_named_and_a_slow_machine_is_not() {
        let page = format!(
            "{}\n| step | s |\n|---|---:|\n| `a` | 100 |\n| `b` | 20 |\n| `c` | 100 |\n{}\n",
            MARKS.0, MARKS.1
        );
        let recorded = parse(&page);
        assert_eq!(recorded.get("b"), Some(&20));
        let ran = |a: f64, b: f64, c: f64| {
            [
                ("a".to_owned(), a),
                ("b".to_owned(), b),
                ("c".to_owned(), c),
                ("new".to_owned(), 900.0),
            ]
        };
        assert!(grown(&recorded, &ran(100.0, 20.0, 100.0)).is_empty());
        assert!(
            grown(&recorded, &ran(300.0, 60.0, 300.0)).is_empty(),
            "three times as slow as a whole"
        );
        let named = grown(&recorded, &ran(100.0, 40.0, 100.0));
        assert!(named.len() == 1 && named[0].starts_with("'b' took 40 s, 20 s"), "{named:?}");
    }

    #[test]
    fn a_step_without_a_row_begins_before_the_short_ones() {
        let recorded = BTreeMap::from([("long".to_owned(), 100), ("short".to_owned(), 5)]);
        let mut names = ["short", "new", "long"];
        names.sort_by_key(|name| std::cmp::Reverse(expected(&recorded, name)));
        assert_eq!(names, ["long", "new", "short"]);
    }

    #[test]
    fn the_page_has_the_table() {
        let page = fs::read_to_string(root().join(PAGE)).expect("page");
        assert!(parse(&page).len() > 20, "{PAGE}: `cargo xtask test --record` writes the table");
    }
}
