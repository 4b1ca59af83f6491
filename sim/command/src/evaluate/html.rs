//! The evaluation as one page without network, in light and dark.

use std::fmt::Write as _;

use super::Report;
use super::plot::{self, Look, SHAPES, THEMES};
use super::row::Row;
use super::sizes::Size;
use super::sweep::Swept;

const STYLE: &str = "
:root { color-scheme: light dark; --text: #1a1a1a; --soft: #5a5a5a; --line: #d8d8d8; --back: #ffffff; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e8; --soft: #a8a8a8; --line: #3a3a3a; --back: #161616; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1260px; padding: 24px 20px 48px; background: var(--back); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 26px; margin: 0 0 4px; } h2 { font-size: 20px; margin: 36px 0 4px; }
p { margin: 4px 0 12px; max-width: 72ch; color: var(--soft); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 11px 5px 0; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; } th.name, td.name { text-align: left; }
figure { margin: 12px 0; } figure svg { display: block; max-width: 100%; }
figure > div { display: none; }
.wide.light { display: block; } 
@media (prefers-color-scheme: dark) { .wide.light { display: none; } .wide.dark { display: block; } }
@media (max-width: 760px) {
  .wide.light, .wide.dark { display: none; } .narrow.light { display: block; }
}
@media (max-width: 760px) and (prefers-color-scheme: dark) { .narrow.light { display: none; } .narrow.dark { display: block; } }
";

/// Text of a page.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A plot in all looks, of which the style sheet shows one.
fn figure(name: &str, draw: impl Fn(Look) -> String) -> String {
    figure_of(&SHAPES, name, draw)
}

fn figure_of(
    shapes: &[(&str, (u32, u32)); 2],
    name: &str,
    draw: impl Fn(Look) -> String,
) -> String {
    let mut out = format!("<figure id=\"{name}\">");
    for (shape, size) in *shapes {
        for (theme, colors) in THEMES {
            let svg = draw(Look { size, colors });
            let _ = write!(out, "<div class=\"{shape} {theme}\">{svg}</div>");
        }
    }
    out + "</figure>\n"
}

/// A table: the heads, and rows of cells. The first columns are names.
fn table(names: usize, heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let class = |k: usize| if k < names { " class=\"name\"" } else { "" };
    let mut out = "<div class=\"scroll\"><table><tr>".to_owned();
    for (k, head) in heads.iter().enumerate() {
        let _ = write!(out, "<th{}>{}</th>", class(k), escape(head));
    }
    out += "</tr>\n";
    for cells in rows {
        out += "<tr>";
        for (k, cell) in cells.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(k), escape(cell));
        }
        out += "</tr>\n";
    }
    out + "</table></div>\n"
}

/// A number with its thousands apart.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

fn share(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}

/// LUTs and flip-flops of a VU9P, the device of the paper.
const VU9P: (u64, u64) = (1_182_240, 2_364_480);

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"))
}

fn cells(row: &Row) -> Vec<String> {
    let (stalled, bare) = match (&row.shielded, &row.bare) {
        (Some(shielded), Some(bare)) => {
            (share(shielded.stalled, shielded.cycles), share(bare.stalled, bare.cycles))
        }
        _ => ("-".to_owned(), "-".to_owned()),
    };
    vec![
        row.workload.clone(),
        row.shape.clone(),
        row.layout.clone(),
        row.key_bits.to_string(),
        row.lanes.to_string(),
        thousands(row.cycles_bare),
        thousands(row.cycles),
        format!("{:.3}", row.ratio),
        ratio(row.paper_ratio),
        ratio(row.paper_worst),
        format!("{:.1}", row.bytes_per_cycle_bare),
        format!("{:.1}", row.bytes_per_cycle),
        bare,
        stalled,
    ]
}

/// The page.
///
/// # Errors
/// A plot that cannot be drawn.
pub fn page(report: &Report) -> Result<String, String> {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>Evaluation of the Shield</title>\n\
         <style>{STYLE}</style>\n<body>\n<h1>Evaluation of the Shield</h1>\n\
         <p>Cycles at the accelerator, without a Shield and behind it, with the same data and a memory \
         of {} cycles latency. Every row is an attested session with all checks on; its results are \
         those of a CPU reference to the last byte. The paper is ShEF (ASPLOS 2022).</p>\n",
        report.latency
    );
    let failed = report.rows.iter().filter(|row| !row.passed()).count();
    if failed > 0 {
        let _ = writeln!(out, "<p><strong>{failed} rows failed.</strong></p>");
    }
    let bars = plot::bars(&report.rows);
    if !bars.is_empty() {
        out += "<h2>Time against unshielded</h2>\n<p>The paper's Figure 6, and further workloads. Its \
                bar is its best figure, the line above it its worst.</p>\n";
        let draw = |look| plot::draw_bars(&bars, look);
        draw(Look { size: SHAPES[0].1, colors: THEMES[0].1 })?;
        out += &figure("ratios", |look| draw(look).unwrap_or_default());
    }
    if let Some(sizes) = &report.sizes {
        out += "<h2>Vector addition over its size</h2>\n";
        let _ = writeln!(
            out,
            "<p>The paper's Figure 5. The largest size is extrapolated; the same line through two \
             smaller sizes misses the largest measured one by {:.1} %.</p>",
            100.0 * sizes.extrapolation_error
        );
        let draw = |look| plot::draw_sizes(&sizes.sizes, look);
        draw(Look { size: SHAPES[0].1, colors: THEMES[0].1 })?;
        out += &figure("sizes", |look| draw(look).unwrap_or_default());
        let heads =
            ["vector", "bare cycles", "shielded", "ratio", "paper, S-box x16", "paper, S-box x4"];
        let row = |size: &Size| {
            let mark = if size.measured { "" } else { ", extrapolated" };
            vec![
                format!("{} KiB{mark}", thousands(size.bytes >> 10)),
                thousands(size.cycles_bare),
                thousands(size.cycles),
                format!("{:.3}", size.ratio),
                format!("{:.2}", size.paper_best),
                format!("{:.2}", size.paper_worst),
            ]
        };
        out += &table(1, &heads, sizes.sizes.iter().map(row));
    }
    if !report.sweep.is_empty() {
        out += "<h2>Reads by chunk size, lanes and lines</h2>\n<p>Bytes per cycle of one engine set, of \
                at most 64 (a stream) or 32 (64 bytes at random, with their tags). Columns are sizes of \
                a chunk; lines are those for large and for small chunks.</p>\n";
        for pattern in ["stream", "strided", "random"] {
            let points: Vec<&Swept> =
                report.sweep.iter().filter(|point| point.pattern == pattern).collect();
            let draw = |look| plot::draw_sweep(pattern, &points, look);
            draw(Look { size: plot::HEAT[0].1, colors: THEMES[0].1 })?;
            out += &figure_of(&plot::HEAT, &format!("sweep-{pattern}"), |look| {
                draw(look).unwrap_or_default()
            });
        }
    }
    out += "<h2>All rows</h2>\n<p>B/cycle, stalled: without a Shield, and behind it. Stalled is the share of the cycles in which the accelerator waits at its \
            busiest port and no beat passes.</p>\n";
    let heads = [
        "workload",
        "data",
        "Shield",
        "key",
        "lanes",
        "bare cycles",
        "shielded",
        "ratio",
        "paper, best",
        "worst",
        "B/cycle",
        "shielded",
        "stalled",
        "shielded",
    ];
    out += &table(3, &heads, report.rows.iter().map(cells));
    out += "<h2>Size of each Shield</h2>\n<p>The paper's Table 3, in its device (VU9P). Blocks that \
            were synthesised, and estimates for the rest.</p>\n";
    let heads =
        ["workload", "Shield", "lanes", "LUT", "of VU9P", "FF", "of VU9P", "RAMB36", "URAM", "DSP"];
    let area = |row: &Row| {
        vec![
            row.workload.clone(),
            row.layout.clone(),
            row.lanes.to_string(),
            thousands(row.area.lut),
            share(row.area.lut, VU9P.0),
            thousands(row.area.ff),
            share(row.area.ff, VU9P.1),
            format!("{:.1}", row.area.ramb36),
            row.area.uram.to_string(),
            row.area.dsp.to_string(),
        ]
    };
    let own = report.rows.iter().filter(|row| row.key_bits == 256 || row.layout == "paper");
    out += &table(2, &heads, own.map(area));
    let facts: Vec<_> = report
        .rows
        .iter()
        .filter(|row| row.layout == "ours" && row.key_bits == 256)
        .flat_map(|row| row.facts.iter().map(move |fact| (&row.workload, fact)))
        .collect();
    if !facts.is_empty() {
        out += "<h2>Data and results</h2>\n";
        let mut seen: Vec<(&String, &(String, String))> = Vec::new();
        for fact in facts {
            if !seen.contains(&fact) {
                seen.push(fact);
            }
        }
        let row = |(workload, (name, value)): (&String, &(String, String))| {
            vec![workload.clone(), name.clone(), value.clone()]
        };
        out += &table(3, &["workload", "", ""], seen.into_iter().map(row));
    }
    out += "</body></html>\n";
    Ok(out)
}
