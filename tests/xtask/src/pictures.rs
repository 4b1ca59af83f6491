//! The pictures of the documentation: SVG drawn from `docs/pictures/*.toml`, light and dark.
//!
//! A source has one of three kinds: blocks (boxes and arrows with coordinates), a sequence (actors
//! and messages), or a timeline (holders over time). All share layout and colours.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::process::Failure;

const FOLDER: &str = "docs/pictures";
const BOLD: &str = " font-weight=\"600\"";
/// Distance between lines of text.
const LINE: f64 = 17.0;
const FONT: &str = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif";

/// A source file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Picture {
    /// Description of the picture for screen readers.
    title: String,
    blocks: Option<Blocks>,
    sequence: Option<Sequence>,
    timeline: Option<Timeline>,
}

/// Role of an element, which decides its colour.
#[derive(Deserialize, Clone, Copy, Default)]
#[serde(rename_all = "lowercase")]
enum Kind {
    /// Trusted with the data, or plaintext.
    Trusted,
    /// In the adversary's hands, or ciphertext on its way through them.
    Hostile,
    /// A secret key.
    Key,
    #[default]
    Plain,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Blocks {
    size: [f64; 2],
    #[serde(default)]
    zone: Vec<Block>,
    #[serde(default)]
    node: Vec<Block>,
    #[serde(default)]
    arrow: Vec<Arrow>,
    #[serde(default)]
    text: Vec<Text>,
}

/// A zone or a box: left, top, width, height; its first line is its name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Block {
    at: [f64; 4],
    lines: Vec<String>,
    #[serde(default)]
    kind: Kind,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arrow {
    path: Vec<[f64; 2]>,
    #[serde(default)]
    kind: Kind,
    /// Whether both ends have a head.
    #[serde(default)]
    both: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    at: [f64; 2],
    text: String,
    #[serde(default)]
    kind: Kind,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sequence {
    width: f64,
    actor: Vec<Actor>,
    step: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Actor {
    name: String,
    x: f64,
    #[serde(default)]
    kind: Kind,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    text: String,
    /// Actors by number; without `to`, a note at `from`; without both, a heading.
    from: Option<usize>,
    to: Option<usize>,
    #[serde(default)]
    kind: Kind,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Timeline {
    width: f64,
    columns: Vec<String>,
    row: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    #[serde(default)]
    kind: Kind,
    #[serde(default)]
    bar: Vec<Bar>,
}

/// A party's possession from one column to another; 1.5 is the middle of the second column.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bar {
    from: f64,
    to: f64,
    text: String,
    #[serde(default)]
    kind: Kind,
}

/// Colours of one theme.
struct Theme {
    name: &'static str,
    /// The page behind the picture.
    page: &'static str,
    ink: &'static str,
    muted: &'static str,
    line: &'static str,
    /// Fill, border and text by [`Kind`]: trusted, hostile, key, plain.
    kinds: [[&'static str; 3]; 4],
}

const THEMES: [Theme; 2] = [
    Theme {
        name: "light",
        page: "#ffffff",
        ink: "#1f2328",
        muted: "#59636e",
        line: "#59636e",
        kinds: [
            ["#dafbe1", "#1a7f37", "#116329"],
            ["#fff1e5", "#bc4c00", "#953800"],
            ["#ddf4ff", "#0969da", "#0550ae"],
            ["#f6f8fa", "#8c959f", "#1f2328"],
        ],
    },
    Theme {
        name: "dark",
        page: "#0d1117",
        ink: "#e6edf3",
        muted: "#9198a1",
        line: "#9198a1",
        kinds: [
            ["#12261e", "#3fb950", "#7ee787"],
            ["#2d1a0e", "#db6d28", "#ffa657"],
            ["#0c2d4a", "#58a6ff", "#a5d6ff"],
            ["#161b22", "#656c76", "#e6edf3"],
        ],
    },
];

/// The drawing in one theme.
struct Canvas<'a> {
    theme: &'a Theme,
    body: String,
}

impl Canvas<'_> {
    fn colours(&self, kind: Kind) -> [&'static str; 3] {
        self.theme.kinds[kind as usize]
    }

    fn rect(
        &mut self,
        [x, y, w, h]: [f64; 4],
        radius: f64,
        fill: &str,
        stroke: &str,
        dashed: bool,
    ) {
        let dash = if dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" rx=\"{radius}\" fill=\"{fill}\" stroke=\"{stroke}\"{dash}/>"
        );
    }

    fn text(&mut self, [x, y]: [f64; 2], text: &str, anchor: &str, fill: &str, style: &str) {
        let text = escaped(text);
        let _ = writeln!(
            self.body,
            "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"{fill}\"{style}>{text}</text>"
        );
    }

    /// Style of a text with lines behind it: it keeps the area around its letters clear.
    fn halo(&self) -> String {
        format!(" paint-order=\"stroke\" stroke=\"{}\" stroke-width=\"5\"", self.theme.page)
    }

    /// Lines below each other, the first of which is a name.
    fn lines(&mut self, [x, y]: [f64; 2], lines: &[String], anchor: &str, fill: &str) {
        for (n, line) in lines.iter().enumerate() {
            self.text([x, y + LINE * n as f64], line, anchor, fill, if n == 0 { BOLD } else { "" });
        }
    }

    /// A polyline with a head at its end, and at its beginning if `both`.
    fn arrow(&mut self, path: &[[f64; 2]], colour: &str, dashed: bool, both: bool) {
        let points: Vec<String> = path.iter().map(|[x, y]| format!("{x},{y}")).collect();
        let dash = if dashed { " stroke-dasharray=\"5 4\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.6\"{dash}/>",
            points.join(" ")
        );
        if let [.., before, end] = path {
            self.head(*before, *end, colour);
        }
        if let [end, before, ..] = path
            && both
        {
            self.head(*before, *end, colour);
        }
    }

    fn head(&mut self, [x0, y0]: [f64; 2], [x, y]: [f64; 2], colour: &str) {
        let length = (x - x0).hypot(y - y0).max(1.0);
        let (dx, dy) = ((x - x0) / length, (y - y0) / length);
        let (bx, by) = (x - 9.0 * dx, y - 9.0 * dy);
        let _ = writeln!(
            self.body,
            "<path d=\"M{x:.1} {y:.1}L{:.1} {:.1}L{:.1} {:.1}Z\" fill=\"{colour}\"/>",
            bx - 4.5 * dy,
            by + 4.5 * dx,
            bx + 4.5 * dy,
            by - 4.5 * dx
        );
    }

    fn blocks(&mut self, blocks: &Blocks) -> [f64; 2] {
        for zone in &blocks.zone {
            let [fill, stroke, ink] = self.colours(zone.kind);
            let [x, y, ..] = zone.at;
            self.rect(zone.at, 12.0, fill, stroke, matches!(zone.kind, Kind::Hostile));
            self.lines([x + 14.0, y + 22.0], &zone.lines, "start", ink);
        }
        for node in &blocks.node {
            let [fill, stroke, ink] = self.colours(node.kind);
            let [x, y, w, h] = node.at;
            self.rect(node.at, 7.0, fill, stroke, false);
            let top = y + h / 2.0 - LINE * (node.lines.len() as f64 - 1.0) / 2.0 + 5.0;
            self.lines([x + w / 2.0, top], &node.lines, "middle", ink);
        }
        for arrow in &blocks.arrow {
            let colour = if matches!(arrow.kind, Kind::Plain) {
                self.theme.line
            } else {
                self.colours(arrow.kind)[1]
            };
            self.arrow(&arrow.path, colour, matches!(arrow.kind, Kind::Hostile), arrow.both);
        }
        for text in &blocks.text {
            let ink = if matches!(text.kind, Kind::Plain) {
                self.theme.muted
            } else {
                self.colours(text.kind)[2]
            };
            self.text(text.at, &text.text, "middle", ink, "");
        }
        blocks.size
    }

    fn sequence(&mut self, sequence: &Sequence) -> Result<[f64; 2], String> {
        const ROW: f64 = 40.0;
        let height = 80.0 + ROW * sequence.step.len() as f64;
        for actor in &sequence.actor {
            let [fill, stroke, ink] = self.colours(actor.kind);
            let _ = writeln!(
                self.body,
                "<line x1=\"{0}\" y1=\"44\" x2=\"{0}\" y2=\"{1}\" stroke=\"{stroke}\" stroke-opacity=\"0.6\"/>",
                actor.x,
                height - 16.0
            );
            let width = 8.0 * actor.name.chars().count() as f64 + 28.0;
            self.rect([actor.x - width / 2.0, 12.0, width, 34.0], 7.0, fill, stroke, false);
            self.text([actor.x, 34.0], &actor.name, "middle", ink, BOLD);
        }
        let x = |n: usize| {
            sequence.actor.get(n).map(|actor| actor.x).ok_or(format!("actor {n} does not exist"))
        };
        for (n, step) in sequence.step.iter().enumerate() {
            let y = 82.0 + ROW * n as f64;
            let colour = if matches!(step.kind, Kind::Plain) {
                self.theme.line
            } else {
                self.colours(step.kind)[1]
            };
            match (step.from, step.to) {
                (Some(from), Some(to)) => {
                    let (from, to) = (x(from)?, x(to)?);
                    self.text(
                        [(from + to) / 2.0, y - 7.0],
                        &step.text,
                        "middle",
                        self.theme.ink,
                        &self.halo(),
                    );
                    self.arrow(&[[from, y], [to, y]], colour, false, false);
                }
                (Some(at), None) => {
                    let (at, width) = (x(at)?, 7.2 * step.text.chars().count() as f64 + 24.0);
                    let left = (at - width / 2.0).clamp(6.0, sequence.width - width - 6.0);
                    let [fill, stroke, ink] = self.colours(step.kind);
                    self.rect([left, y - 21.0, width, 28.0], 5.0, fill, stroke, false);
                    self.text([left + width / 2.0, y - 2.0], &step.text, "middle", ink, "");
                }
                _ => {
                    let _ = writeln!(
                        self.body,
                        "<line x1=\"6\" y1=\"{0}\" x2=\"{1}\" y2=\"{0}\" stroke=\"{2}\" stroke-opacity=\"0.4\"/>",
                        y + 6.0,
                        sequence.width - 6.0,
                        self.theme.line
                    );
                    self.text(
                        [8.0, y],
                        &step.text,
                        "start",
                        self.theme.ink,
                        &format!("{BOLD}{}", self.halo()),
                    );
                }
            }
        }
        Ok([sequence.width, height])
    }

    fn timeline(&mut self, timeline: &Timeline) -> [f64; 2] {
        const NAMES: f64 = 150.0;
        const BAR: f64 = 26.0;
        let column = (timeline.width - NAMES - 12.0) / timeline.columns.len() as f64;
        for (n, name) in timeline.columns.iter().enumerate() {
            self.text(
                [NAMES + column * (n as f64 + 0.5), 24.0],
                name,
                "middle",
                self.theme.ink,
                BOLD,
            );
        }
        let mut y = 40.0;
        for row in &timeline.row {
            // Bars that overlap in time are drawn below each other.
            let mut levels: Vec<f64> = Vec::new();
            let placed: Vec<(usize, &Bar)> = row
                .bar
                .iter()
                .map(|bar| {
                    let level =
                        levels.iter().position(|&end| end <= bar.from).unwrap_or(levels.len());
                    levels.resize(levels.len().max(level + 1), 0.0);
                    levels[level] = bar.to;
                    (level, bar)
                })
                .collect();
            let height = BAR * levels.len().max(1) as f64 + 12.0;
            let [_, stroke, ink] = self.colours(row.kind);
            let _ = writeln!(
                self.body,
                "<line x1=\"6\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{}\" stroke-opacity=\"0.35\"/>",
                timeline.width - 6.0,
                self.theme.line
            );
            self.rect([6.0, y + 5.0, 5.0, height - 10.0], 2.0, stroke, stroke, false);
            self.text([20.0, y + height / 2.0 + 5.0], &row.name, "start", ink, BOLD);
            for (level, bar) in placed {
                let [fill, stroke, ink] = self.colours(bar.kind);
                let (left, top) = (NAMES + column * bar.from + 3.0, y + 6.0 + BAR * level as f64);
                let width = column * (bar.to - bar.from) - 6.0;
                self.rect([left, top + 2.0, width, BAR - 4.0], 5.0, fill, stroke, false);
                self.text(
                    [left + width / 2.0, top + BAR / 2.0 + 5.0],
                    &bar.text,
                    "middle",
                    ink,
                    "",
                );
            }
            y += height;
        }
        [timeline.width, y + 10.0]
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn draw(picture: &Picture, theme: &Theme) -> Result<String, String> {
    let mut canvas = Canvas { theme, body: String::new() };
    let [w, h] = match (&picture.blocks, &picture.sequence, &picture.timeline) {
        (Some(blocks), None, None) => canvas.blocks(blocks),
        (None, Some(sequence), None) => canvas.sequence(sequence)?,
        (None, None, Some(timeline)) => canvas.timeline(timeline),
        _ => return Err("expected one of [blocks], [sequence] and [timeline]".into()),
    };
    let title = escaped(&picture.title);
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" font-family=\"{FONT}\" font-size=\"13\">\n<title>{title}</title>\n{}</svg>\n",
        canvas.body
    ))
}

/// Every picture: its path and content.
fn drawn(root: &Path) -> Result<Vec<(PathBuf, String)>, String> {
    let folder = root.join(FOLDER);
    let mut sources: Vec<PathBuf> = fs::read_dir(&folder)
        .map_err(|e| format!("{}: {e}", folder.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    sources.sort();
    let mut out = Vec::new();
    for source in sources {
        let named = |e: String| format!("{}: {e}", source.display());
        let text = fs::read_to_string(&source).map_err(|e| named(e.to_string()))?;
        let picture: Picture = toml::from_str(&text).map_err(|e| named(e.to_string()))?;
        for theme in &THEMES {
            let path = source.with_extension(format!("{}.svg", theme.name));
            out.push((path, draw(&picture, theme).map_err(named)?));
        }
    }
    Ok(out)
}

/// Draws every picture; with `check`, only compares.
///
/// # Errors
/// A source cannot be drawn, or (with `check`) a picture differs from its source.
pub fn run(root: &Path, check: bool) -> Result<(), Failure> {
    for (path, svg) in drawn(root).map_err(Failure::failed)? {
        if fs::read_to_string(&path).is_ok_and(|found| found == svg) {
            continue;
        }
        if check {
            return Err(Failure::failed(format!(
                "{} differs from its source; run `cargo xtask generate`",
                path.display()
            )));
        }
        fs::write(&path, svg).map_err(|e| Failure::failed(format!("{}: {e}", path.display())))?;
        println!("{}", path.display());
    }
    Ok(())
}
