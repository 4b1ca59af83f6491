//! Reads over chunk size, lanes and lines: the table from which a developer chooses, beside the
//! estimates of `shef shield estimate`.

use std::fs;

use serde::{Deserialize, Serialize};
use shef_card::{Design, cache_dir};
use shef_console::{CliError, hex};
use shef_gen::estimate::{Estimate, Figures};
use shef_gen::shield::Synthesis;
use shef_lab::probe::card;
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_tb::throughput::{self, Access, Point};

use super::row::rounded;
use super::{CLOCK_MHZ, LATENCY};

/// Changes when points are measured in another way.
const VERSION: u32 = 1;
/// Chunk sizes in bytes, in the order of a heat map's columns.
pub const CHUNKS: [u32; 5] = [64, 256, 512, 1024, 4096];

/// A point: one Shield and one pattern of reads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Swept {
    /// `stream` (bursts of 4 KiB, 32 KiB in flight), `strided` or `random` (64 bytes, 32 in flight,
    /// each in another chunk).
    pub pattern: String,
    /// Bytes of a chunk.
    pub chunk: u32,
    /// AES lanes of the engine set.
    pub lanes: u8,
    /// Lines for chunks above 512 bytes.
    pub big_lines: u16,
    /// Lines for chunks of up to 512 bytes.
    pub small_lines: u16,
    /// Bytes per cycle behind the Shield.
    pub bytes_per_cycle: f64,
    /// Without it.
    pub bytes_per_cycle_bare: f64,
    /// What `shef shield estimate` says.
    pub estimate: f64,
    /// The estimate divided by the measured value, less one.
    pub estimate_error: f64,
    /// LUTs of the Shield, estimated.
    pub lut: u64,
}

fn pattern(access: Access) -> &'static str {
    match access {
        Access::StridedRead => "strided",
        Access::RandomRead => "random",
        _ => "stream",
    }
}

impl Swept {
    /// A measured point, without an estimate.
    fn new(point: &Point) -> Self {
        let row = &point.row;
        Self {
            pattern: pattern(row.name).to_owned(),
            chunk: row.chunk,
            lanes: row.engines,
            big_lines: point.big_lines,
            small_lines: point.small_lines,
            bytes_per_cycle: rounded(row.bytes_per_cycle),
            bytes_per_cycle_bare: rounded(row.bytes as f64 / row.bare_cycles.max(1) as f64),
            estimate: 0.0,
            estimate_error: 0.0,
            lut: 0,
        }
    }

    /// Adds what this program estimates.
    fn estimated(mut self, figures: &Figures) -> Result<Self, CliError> {
        let set = Set {
            lanes: self.lanes,
            big_lines: self.big_lines,
            small_lines: self.small_lines,
            ..Set::default()
        };
        let region = Region {
            name: "swept".to_owned(),
            mode: Mode::Input,
            size: 1 << 20,
            chunk: self.chunk,
            tag_base: 1 << 20,
            ..Region::default()
        };
        let config = Config::new(OnFault::Shield, 1, vec![set], vec![region])
            .map_err(|e| CliError::internal(e.to_string()))?;
        let all = Estimate::new(&config, Synthesis::default(), figures, CLOCK_MHZ, LATENCY);
        let region = all.regions.first().ok_or_else(|| CliError::internal("no region"))?;
        let stream = self.pattern == pattern(Access::SeqRead);
        let estimate = if stream { region.sequential_read } else { region.random_read };
        self.estimate = rounded(estimate);
        self.estimate_error = rounded(estimate / self.bytes_per_cycle - 1.0);
        self.lut = all.total.lut;
        Ok(self)
    }

    /// The row of the table.
    pub fn line(&self) -> String {
        format!(
            "{:<8} {:>5} {:>5} {:>5} {:>5} {:>8.2} {:>8.2} {:>8.2} {:>6.1}% {:>8}",
            self.pattern,
            self.chunk,
            self.lanes,
            self.big_lines,
            self.small_lines,
            self.bytes_per_cycle_bare,
            self.bytes_per_cycle,
            self.estimate,
            100.0 * self.estimate_error,
            self.lut
        )
    }
}

/// Head of the table's columns.
pub const HEAD: &str =
    "pattern  chunk lanes   big small     bare   Shield estimate   error      LUT";

/// All points, measured or kept. What is kept depends on the RTL of the Shield.
///
/// # Errors
/// A build that fails, or a wrong byte.
pub fn run(again: bool, progress: &mut dyn FnMut(&str)) -> Result<Vec<Swept>, CliError> {
    let figures = Figures::shipped().map_err(CliError::internal)?;
    let digest = Design::digits().map_err(card)?.digest();
    let folder = cache_dir().join("evaluation");
    let file = folder.join(format!("sweep-{VERSION}-{}.json", hex::encode(&digest[..16])));
    let found = if again { None } else { fs::read(&file).ok() };
    let kept = found.and_then(|text| serde_json::from_slice::<Vec<Swept>>(&text).ok());
    let points = match kept {
        Some(points) => points,
        None => {
            let points = throughput::sweep(&folder.join("sweep"), progress);
            let points = points.map_err(|e| CliError::new(e.code(), e.to_string()))?;
            let points: Vec<Swept> = points.iter().map(Swept::new).collect();
            let text = serde_json::to_vec(&points);
            let text = text.map_err(|e| CliError::internal(e.to_string()))?;
            // Points that are not kept are measured again.
            let _ = fs::create_dir_all(&folder).and_then(|()| fs::write(&file, text));
            points
        }
    };
    points.into_iter().map(|point| point.estimated(&figures)).collect()
}
