//! The plots of the page, as SVG.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::row::Row;
use super::sizes::Size;
use super::sweep::{CHUNKS, Swept};

/// Colors of a theme.
#[derive(Debug, Clone, Copy)]
pub struct Colors {
    text: RGBColor,
    grid: RGBColor,
    ours: RGBColor,
    best: RGBColor,
    worst: RGBColor,
}

/// How a plot is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Width and height in pixels.
    pub size: (u32, u32),
    /// Its colors.
    pub colors: Colors,
}

/// Classes of the page with the size of their plots.
pub const SHAPES: [(&str, (u32, u32)); 2] = [("wide", (1000, 420)), ("narrow", (350, 460))];

/// The same for heat maps.
pub const HEAT: [(&str, (u32, u32)); 2] = [("wide", (760, 320)), ("narrow", (350, 320))];

/// Classes of the page with their colors.
pub const THEMES: [(&str, Colors); 2] = [
    (
        "light",
        Colors {
            text: RGBColor(0x1a, 0x1a, 0x1a),
            grid: RGBColor(0xdd, 0xdd, 0xdd),
            ours: RGBColor(0x1f, 0x6f, 0xb4),
            best: RGBColor(0xd9, 0x8a, 0x2b),
            worst: RGBColor(0xa8, 0x4b, 0x2a),
        },
    ),
    (
        "dark",
        Colors {
            text: RGBColor(0xe8, 0xe8, 0xe8),
            grid: RGBColor(0x3c, 0x3c, 0x3c),
            ours: RGBColor(0x6c, 0xb4, 0xee),
            best: RGBColor(0xe8, 0xb0, 0x62),
            worst: RGBColor(0xe0, 0x82, 0x5e),
        },
    ),
];

/// Size of text in pixels.
const FONT: i32 = 17;
/// Width below which plots have less room.
const NARROW: u32 = 600;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn draw(
    look: Look,
    content: impl FnOnce(&Area<'_>) -> Result<(), Box<dyn std::error::Error>>,
) -> Result<String, String> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, look.size).into_drawing_area();
        content(&root).map_err(|e| e.to_string())?;
        root.present().map_err(|e| e.to_string())?;
    }
    Ok(svg)
}

fn font(color: RGBColor) -> TextStyle<'static> {
    ("system-ui, sans-serif", FONT).into_font().color(&color)
}

/// Bars of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// The workload.
    name: String,
    ours: f64,
    best: Option<f64>,
    worst: Option<f64>,
}

/// The bars of our layout, with AES-256 and the lanes of its file.
pub fn bars(rows: &[Row]) -> Vec<Bars> {
    let mut all: Vec<Bars> = Vec::new();
    for row in rows.iter().filter(|row| row.passed() && row.layout == "ours" && row.key_bits == 256)
    {
        // The first row of a workload has the lanes of its file.
        if all.iter().all(|bars| bars.name != row.workload) {
            all.push(Bars {
                name: row.workload.clone(),
                ours: row.ratio,
                best: row.paper_ratio,
                worst: row.paper_worst,
            });
        }
    }
    all
}

/// A legend of colored squares below the plot's top edge.
fn legend(
    root: &Area<'_>,
    entries: &[(&str, RGBColor)],
    look: Look,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut at = 8;
    for (text, color) in entries {
        root.draw(&Rectangle::new([(at, 8), (at + 12, 20)], color.filled()))?;
        root.draw(&Text::new((*text).to_owned(), (at + 18, 7), font(look.colors.text)))?;
        at += 18 + 7 * text.len() as i32 + 22;
    }
    Ok(())
}

/// Ratios of all workloads beside the paper's: upright, or lying where there is little width.
///
/// # Errors
/// The reason why it cannot be drawn.
pub fn draw_bars(all: &[Bars], look: Look) -> Result<String, String> {
    let Colors { text, grid, ours, best, worst } = look.colors;
    let highest = all.iter().flat_map(|b| [Some(b.ours), b.best, b.worst]).flatten();
    let highest = highest.fold(1.2, f64::max).ceil();
    let narrow = look.size.0 < NARROW;
    let count = all.len() as f64;
    let centred = |h, v| font(text).pos(Pos::new(h, v));
    draw(look, |root| {
        legend(root, &[("this Shield", ours), ("paper, best", best), ("worst", worst)], look)?;
        let plot = root.margin(40, 8, 8, 12);
        let (width, height) = plot.dim_in_pixel();
        let (width, height) = (f64::from(width), f64::from(height));
        let (names, values) = if narrow { (84.0, 26.0) } else { (28.0, 32.0) };
        // From a place along the workloads, and a ratio, to a pixel.
        let place = |along: f64, ratio: f64| {
            if narrow {
                let x = names + ratio / highest * (width - names - 44.0);
                let y = along / count * (height - values);
                (x as i32, y as i32)
            } else {
                let x = values + along / count * (width - values);
                let y = (height - names) * (1.0 - ratio / highest * 0.96);
                (x as i32, y as i32)
            }
        };
        let mut tick = 0.0;
        while tick <= highest {
            plot.draw(&PathElement::new(
                [place(0.0, tick), place(count, tick)],
                grid.stroke_width(1),
            ))?;
            let label = format!("{tick:.0}");
            let (at, style) = if narrow {
                let (x, _) = place(0.0, tick);
                ((x, height as i32 - 20), centred(HPos::Center, VPos::Top))
            } else {
                let (_, y) = place(0.0, tick);
                ((values as i32 - 8, y), centred(HPos::Right, VPos::Center))
            };
            plot.draw(&Text::new(label, at, style))?;
            tick += 1.0;
        }
        let bar = |from: f64, to: f64, ratio: f64, color: RGBColor| {
            let (one, other) = (place(from, 0.0), place(to, ratio));
            plot.draw(&Rectangle::new([one, other], color.filled()))
        };
        for (k, one) in all.iter().enumerate() {
            let k = k as f64;
            bar(k + 0.14, k + 0.46, one.ours, ours)?;
            if let Some(ratio) = one.best {
                bar(k + 0.52, k + 0.84, ratio, best)?;
            }
            if let (Some(high), Some(low)) = (one.worst, one.best)
                && high > low
            {
                let middle = k + 0.68;
                let line = [place(middle, low), place(middle, high)];
                plot.draw(&PathElement::new(line, worst.stroke_width(2)))?;
                let cap = [place(middle - 0.12, high), place(middle + 0.12, high)];
                plot.draw(&PathElement::new(cap, worst.stroke_width(2)))?;
            }
            let ((x, y), value) = (place(k + 0.30, one.ours), format!("{:.2}", one.ours));
            let style = if narrow {
                centred(HPos::Left, VPos::Center)
            } else {
                centred(HPos::Center, VPos::Bottom)
            };
            let at = if narrow { (x + 5, y) } else { (x, y - 3) };
            plot.draw(&Text::new(value, at, style))?;
            let (at, style) = if narrow {
                let (_, y) = place(k + 0.5, 0.0);
                ((names as i32 - 6, y), centred(HPos::Right, VPos::Center))
            } else {
                let (x, _) = place(k + 0.5, 0.0);
                ((x, height as i32 - 22), centred(HPos::Center, VPos::Top))
            };
            plot.draw(&Text::new(one.name.clone(), at, style))?;
        }
        Ok(())
    })
}

/// A ratio of a size.
type Ratio = fn(&Size) -> f64;

/// Ratios of vector addition over its size.
///
/// # Errors
/// The reason why it cannot be drawn.
pub fn draw_sizes(all: &[Size], look: Look) -> Result<String, String> {
    let Colors { text, grid, ours, best, worst } = look.colors;
    let narrow = look.size.0 < NARROW;
    draw(look, |root| {
        legend(root, &[("this Shield", ours), ("paper, x16", best), ("x4", worst)], look)?;
        let plot = root.margin(38, 4, 4, 28);
        let kib = |size: &Size| (size.bytes >> 10) as f64;
        let mut chart = ChartBuilder::on(&plot)
            .x_label_area_size(44)
            .y_label_area_size(36)
            .build_cartesian_2d((6.0..110_000.0).log_scale(), 0.0..4.0)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(grid.stroke_width(1))
            .light_line_style(TRANSPARENT)
            .axis_style(grid.stroke_width(1))
            .x_labels(if narrow { 3 } else { 6 })
            .y_labels(5)
            .x_label_formatter(&|x| format!("{x:.0}"))
            .y_label_formatter(&|y| format!("{y:.0}"))
            .x_desc("KiB of a vector")
            .label_style(font(text))
            .axis_desc_style(font(text))
            .draw()?;
        let lines: [(RGBColor, Ratio, bool); 3] = [
            (worst, |s| s.paper_worst, false),
            (best, |s| s.paper_best, false),
            (ours, |s| s.ratio, true),
        ];
        for (color, pick, own) in lines {
            let points: Vec<(f64, f64)> = all.iter().map(|size| (kib(size), pick(size))).collect();
            chart.draw_series(LineSeries::new(points.iter().copied(), color.stroke_width(2)))?;
            chart.draw_series(all.iter().zip(&points).map(|(size, point)| {
                let style =
                    if size.measured || !own { color.filled() } else { color.stroke_width(2) };
                Circle::new(*point, 4, style)
            }))?;
        }
        Ok(())
    })
}

/// A heat map of a pattern: chunk sizes across, lanes and lines down.
///
/// # Errors
/// The reason why it cannot be drawn.
pub fn draw_sweep(pattern: &str, all: &[&Swept], look: Look) -> Result<String, String> {
    let Colors { text, ours, .. } = look.colors;
    let highest = if pattern == "stream" { 64.0 } else { 32.0 };
    let mut shields: Vec<(u8, u16, u16)> =
        all.iter().map(|p| (p.lanes, p.big_lines, p.small_lines)).collect();
    shields.dedup();
    let styled = |color, h| font(color).pos(Pos::new(h, VPos::Center));
    draw(look, |root| {
        let (width, height) = root.dim_in_pixel();
        let (names, top) = (96, 48);
        let cell = (
            (width as i32 - names) / CHUNKS.len() as i32,
            (height as i32 - top) / shields.len().max(1) as i32,
        );
        root.draw(&Text::new(
            format!("{pattern}, chunk in bytes"),
            (0, 10),
            styled(text, HPos::Left),
        ))?;
        for (k, chunk) in (0..).zip(CHUNKS) {
            let at = (names + k * cell.0 + cell.0 / 2, 34);
            root.draw(&Text::new(chunk.to_string(), at, styled(text, HPos::Center)))?;
        }
        for (row, (lanes, big, small)) in (0..).zip(&shields) {
            let y = top + row * cell.1;
            let name = format!("x{lanes}, {big}/{small}");
            root.draw(&Text::new(name, (0, y + cell.1 / 2), styled(text, HPos::Left)))?;
            for (k, chunk) in (0..).zip(CHUNKS) {
                let of = |p: &&&Swept| {
                    (p.chunk, p.lanes, p.big_lines, p.small_lines) == (chunk, *lanes, *big, *small)
                };
                let Some(point) = all.iter().find(of) else { continue };
                let share = (point.bytes_per_cycle / highest).clamp(0.0, 1.0);
                let x = names + k * cell.0;
                let area = [(x + 1, y + 1), (x + cell.0 - 1, y + cell.1 - 1)];
                root.draw(&Rectangle::new(area, ours.mix(0.1 + 0.6 * share).filled()))?;
                let value = format!("{:.1}", point.bytes_per_cycle);
                let at = (x + cell.0 / 2, y + cell.1 / 2);
                root.draw(&Text::new(value, at, styled(text, HPos::Center)))?;
            }
        }
        Ok(())
    })
}
