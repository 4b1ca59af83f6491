//! Alert rules and dashboard use the metrics of the running service, with their labels.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use shef_verifierd::run;
use shef_verifierd::time::DAY;

use shef_fixtures::service::*;

const RULES: &str = include_str!("../dist/prometheus-rules.yml");
const DASHBOARD: &str = include_str!("../dist/grafana-dashboard.json");

/// Labels that Prometheus adds to each sample, and metrics that it makes.
const SCRAPE: [&str; 2] = ["job", "instance"];
const UP: &str = "up";

/// Families that the dashboard does not show, each with a reason.
const LEFT_OUT: [(&str, &str); 2] = [
    ("shef_provider_keys_age_seconds", "few services have providers; an alert watches it"),
    ("shef_trace_spans_lost_total", "few services have a collector; an alert watches it"),
];

/// The labels of one family, with their values.
type Labels = BTreeMap<String, BTreeSet<String>>;

/// The families of a text in Prometheus' format, by the names that queries use.
fn families(text: &str) -> BTreeMap<String, Labels> {
    let mut all: BTreeMap<String, Labels> = BTreeMap::new();
    for line in text.lines() {
        if let Some(line) = line.strip_prefix("# TYPE ") {
            let (name, kind) = line.split_once(' ').unwrap();
            if kind != "histogram" {
                all.entry(name.to_owned()).or_default();
            }
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (sample, value) = line.rsplit_once(' ').unwrap();
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
        let family = all.entry(name.to_owned()).or_default();
        for (label, value) in pairs(labels.trim_end_matches('}'), &["="]) {
            family.entry(label).or_default().insert(value);
        }
    }
    all
}

/// Labels and values of a list as `a="x",b="y"`, if they are joined by one of these operators.
fn pairs(mut list: &str, operators: &[&str]) -> Vec<(String, String)> {
    let mut all = Vec::new();
    while let Some((left, rest)) = list.split_once('"') {
        let (value, rest) = rest.split_once('"').unwrap();
        let left = left.trim_start_matches([',', ' ']);
        let label = left.trim_end_matches(['=', '!', '~']);
        assert!(!label.is_empty(), "{list}");
        // Only exact matches tell a value.
        let exact = operators.contains(&&left[label.len()..]);
        all.push((label.to_owned(), if exact { value.to_owned() } else { String::new() }));
        list = rest;
    }
    all
}

/// A metric of a query, and its labels; without values where the query does not name them exactly.
type Use = (String, Vec<(String, String)>);

/// The metrics of a query, and the labels that it groups by.
fn uses(query: &str) -> (Vec<Use>, Vec<String>) {
    let (mut metrics, mut grouped) = (Vec::new(), Vec::new());
    let mut rest = query;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphabetic() || c == '"') {
        rest = &rest[at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        if word.is_empty() {
            // A text outside of a list of labels.
            rest = rest[1..].split_once('"').map_or("", |(_, after)| after);
        } else if ["by", "on", "without"].contains(&word) {
            let (list, after) = after.trim_start()[1..].split_once(')').unwrap();
            grouped.extend(list.split(',').map(|label| label.trim().to_owned()));
            rest = after;
        } else if word.starts_with("shef_") || word.starts_with("process_") || word == UP {
            let labels = after.strip_prefix('{').and_then(|list| list.split_once('}'));
            metrics.push((
                word.to_owned(),
                labels.map_or(Vec::new(), |(list, _)| pairs(list, &["="])),
            ));
            rest = labels.map_or(after, |(_, after)| after);
        }
    }
    (metrics, grouped)
}

/// Metrics, labels and values of a query that the service does not have.
fn unknown(query: &str, families: &BTreeMap<String, Labels>) -> Vec<String> {
    let (metrics, grouped) = uses(query);
    let mut bad = Vec::new();
    if metrics.is_empty() {
        bad.push(format!("no metric in {query}"));
    }
    let is_scrapes = |label: &str| SCRAPE.contains(&label);
    for (metric, labels) in &metrics {
        let Some(family) = families.get(metric) else {
            if metric != UP {
                bad.push(metric.clone());
            }
            continue;
        };
        for (label, value) in labels.iter().filter(|(label, _)| !is_scrapes(label)) {
            match family.get(label) {
                // This service has no revocation list.
                Some(values) if value.is_empty() || values.contains(value) || value == "crl" => {}
                _ => bad.push(format!("{metric}{{{label}={value:?}}}")),
            }
        }
    }
    let known = |label: &String| {
        is_scrapes(label)
            || metrics.iter().all(|(metric, _)| {
                families.get(metric).is_some_and(|family| family.contains_key(label))
            })
    };
    bad.extend(grouped.iter().filter(|label| !known(label)).map(|label| format!("by ({label})")));
    bad
}

/// Name, query and the other lines of each alert. The file's own syntax is for promtool.
fn rules() -> Vec<(&'static str, String, String)> {
    let alerts = RULES.split("- alert: ").skip(1);
    let all: Vec<_> = alerts
        .map(|alert| {
            let (name, rest) = alert.split_once('\n').unwrap();
            let (before, rest) = rest.split_once("expr: ").unwrap();
            assert!(before.trim().is_empty(), "{name}: {before}");
            // A folded text ends at the next key.
            let mut lines = rest.lines();
            let mut query = lines.next().unwrap().trim_start_matches(">-").to_owned();
            let mut others = Vec::new();
            for line in lines {
                if others.is_empty() && line.starts_with("          ") {
                    query = format!("{query} {}", line.trim());
                } else {
                    others.push(line);
                }
            }
            (name, query, others.join("\n"))
        })
        .collect();
    assert_eq!(all.len(), RULES.matches("expr:").count());
    all
}

/// Every query and legend of the dashboard.
fn panels(dashboard: &Value) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut all: Vec<_> = dashboard["panels"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|panel| {
            let targets = panel["targets"].as_array().cloned().unwrap_or_default();
            assert_eq!(targets.is_empty(), panel["type"] == "row", "{panel}");
            targets.into_iter().map(move |one| {
                (text(&panel["title"]), text(&one["expr"]), text(&one["legendFormat"]))
            })
        })
        .collect();
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if variable["type"] == "query" {
            let query = text(&variable["query"]["query"]);
            // `label_values(SELECTOR, LABEL)`
            let (selector, label) = query.rsplit_once(", ").unwrap();
            let query = format!("count by ({label} {selector}");
            all.push((text(&variable["name"]), query, String::new()));
        }
    }
    all
}

/// The labels that a text of an alert or a legend names.
fn named<'a>(text: &'a str, begin: &'a str) -> impl Iterator<Item = String> + 'a {
    text.split(begin).skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        rest[..end.unwrap_or(rest.len())].to_owned()
    })
}

#[test]
fn rules_and_dashboard_use_the_metrics_that_exist() {
    let service = Service::start();
    service.furnish(&Device::new(1));
    let text = String::from_utf8(service.operator.get("/metrics").ok_bytes()).unwrap();
    let families = families(&text);
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();

    let (rules, panels) = (rules(), panels(&dashboard));
    assert!(rules.len() >= 15 && panels.len() >= 25, "{} and {}", rules.len(), panels.len());
    let mut bad = Vec::new();
    for (name, query, others) in &rules {
        bad.extend(unknown(query, &families).into_iter().map(|what| format!("{name}: {what}")));
        // After an aggregation, only the labels that it groups by are left.
        let (metrics, grouped) = uses(query);
        let left = |label: &String| match grouped.is_empty() {
            true => {
                metrics.iter().any(|(metric, _)| {
                    families.get(metric).is_some_and(|family| family.contains_key(label))
                }) || SCRAPE.contains(&label.as_str())
            }
            false => grouped.contains(label),
        };
        let lost = named(others, "$labels.").filter(|label| !left(label));
        bad.extend(lost.map(|label| format!("{name}: $labels.{label}")));
    }
    let mut shown = BTreeSet::new();
    for (title, query, legend) in &panels {
        bad.extend(unknown(query, &families).into_iter().map(|what| format!("{title}: {what}")));
        let (metrics, grouped) = uses(query);
        let left = |label: &String| match grouped.is_empty() {
            true => SCRAPE.contains(&label.as_str()),
            false => grouped.contains(label),
        };
        let lost = named(legend, "{{").filter(|label| !left(label));
        bad.extend(lost.map(|label| format!("{title}: {{{{{label}}}}}")));
        shown.extend(metrics.into_iter().map(|(metric, _)| metric));
    }
    for family in families.keys() {
        let left_out = LEFT_OUT.iter().any(|(name, _)| name == family);
        if shown.contains(family) == left_out {
            bad.push(format!("{family}: neither in the dashboard nor left out, or both"));
        }
    }
    assert!(bad.is_empty(), "{bad:#?}\n{text}");
}

/// The page names each family that the service has, and no other.
#[test]
fn the_reference_lists_the_metrics_that_exist() {
    const PAGE: &str = include_str!("../../../docs/reference/verifier-api.md");
    let service = Service::start();
    let text = String::from_utf8(service.operator.get("/metrics").ok_bytes()).unwrap();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let served: BTreeSet<_> = types.map(|line| line.split(' ').next().unwrap()).collect();
    let section = PAGE.split("\n## Metrics\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.map(|row| row.split(" | ").next().unwrap());
    let names = cells.flat_map(|cell| cell.split(", "));
    let listed: BTreeSet<_> =
        names.map(|name| name.trim_matches('`').split(['{', '`']).next().unwrap()).collect();
    assert_eq!(listed, served);
}

/// The test above of rules and dashboard recognises what does not exist.
#[test]
fn names_and_labels_that_do_not_exist_are_found() {
    let families = families(
        "# HELP shef_x_total X.\n# TYPE shef_x_total counter\nshef_x_total{kind=\"a\",of=\"b, c\"} 1\n\
         # HELP shef_t X.\n# TYPE shef_t histogram\nshef_t_bucket{le=\"+Inf\"} 1\nshef_t_sum 0.5\nshef_t_count 1\n",
    );
    for good in [
        "sum by (kind) (rate(shef_x_total{kind!=\"z\",of=\"b, c\"}[5m])) > 0",
        "histogram_quantile(0.9, sum by (le) (rate(shef_t_bucket{job=\"x\"}[5m])))",
        "shef_t_sum / shef_t_count and up == 0",
    ] {
        assert_eq!(unknown(good, &families), [""; 0], "{good}");
    }
    for (query, bad) in [
        ("shef_y_total > 1", "shef_y_total"),
        ("shef_t > 1", "shef_t"),
        ("shef_x_total{kinds=~\"a\"}", "shef_x_total{kinds=\"\"}"),
        ("shef_x_total{kind=\"z\"}", "shef_x_total{kind=\"z\"}"),
        ("sum by (job, le) (shef_x_total)", "by (le)"),
        ("vector(1)", "no metric in vector(1)"),
    ] {
        assert_eq!(unknown(query, &families), [bad], "{query}");
    }
}

/// Alert and warning in the log come on the same day.
#[test]
fn what_ends_is_announced_as_in_the_log() {
    for (alert, of, days) in
        [("ShefCertificateEndsSoon", "server", 14), ("ShefRevocationListEndsSoon", "crl", 2)]
    {
        let rules = rules();
        let (_, query, _) = rules.iter().find(|(name, ..)| *name == alert).unwrap();
        assert!(query.ends_with(&format!(" < {days} * 86400")), "{query}");
        assert!(run::ends_soon(of, days * DAY - 1).is_some());
        assert!(run::ends_soon(of, days * DAY).is_none());
    }
}

/// A certificate that has ended is not the database's fault.
#[test]
fn a_service_is_not_ready_with_a_certificate_that_has_ended() {
    let service = Service::with(|text| text, fixed_clock(now()));
    service.stranger().get("/readyz").ok();
    service.set_clock(now() + 20 * 366 * DAY);
    let refused = service.stranger().get("/readyz").problem(503, "SHEF-SVC-002");
    assert!(refused["detail"].as_str().unwrap().contains("server certificate"), "{refused}");
}

/// A service without its database still has metrics, which say so.
#[test]
fn metrics_do_not_need_the_database() {
    let service = Service::start();
    let metrics = || String::from_utf8(service.operator.get("/metrics").ok_bytes()).unwrap();
    let before = metrics();
    assert!(before.contains("\nshef_ready 1\n") && before.contains("\nshef_devices 0\n"));
    service.runtime.block_on(service.running().app.store.close());
    service.operator.get("/readyz").problem(503, "SHEF-SVC-004");
    let after = metrics();
    assert!(after.contains("\nshef_ready 0\n") && !after.contains("shef_devices"), "{after}");
    assert!(after.contains("shef_requests_total{route=\"/readyz\",status=\"503\"} 1\n"), "{after}");
}
