//! Vector addition over the size of its vectors, the paper's Figure 5.

use serde::Serialize;
use shef_workloads::{Task, WorkloadError, vecadd};

use super::row::rounded;

/// Sizes that are measured, in bytes of a vector.
pub const MEASURED: [usize; 4] = [8 << 10, 80 << 10, 800 << 10, 8000 << 10];
/// Size that is extrapolated.
const LARGEST: u64 = 80_000 << 10;
/// The paper's ratios at these five sizes, with 16 and 4 copies of the S-box, read off its Figure 5.
const PAPER: [[f64; 2]; 5] = [[1.28, 1.42], [1.40, 1.93], [1.48, 3.15], [1.50, 3.55], [1.51, 3.58]];

/// A size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Size {
    /// Bytes of a vector.
    pub bytes: u64,
    /// Whether it was measured. Otherwise its cycles are extrapolated.
    pub measured: bool,
    /// Cycles without a Shield.
    pub cycles_bare: u64,
    /// Cycles behind it.
    pub cycles: u64,
    /// The second divided by the first.
    pub ratio: f64,
    /// The paper's ratio with 16 copies of the S-box.
    pub paper_best: f64,
    /// With 4 copies.
    pub paper_worst: f64,
}

/// The series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sizes {
    /// All sizes, the extrapolated one last.
    pub sizes: Vec<Size>,
    /// Relative error, at the fourth size, of the line through the second and third: the larger one of
    /// both series.
    pub extrapolation_error: f64,
}

/// The line through two points, at a third.
fn line([one, two]: [(u64, u64); 2], at: u64) -> f64 {
    let slope = (two.1 as f64 - one.1 as f64) / (two.0 as f64 - one.0 as f64);
    one.1 as f64 + slope * (at as f64 - one.0 as f64)
}

impl Sizes {
    /// From the cycles of the measured sizes, without a Shield and behind it.
    pub fn new(cycles: [(u64, u64); 4]) -> Self {
        let size = |k: usize, bytes: u64, measured, (cycles_bare, cycles): (u64, u64)| Size {
            bytes,
            measured,
            cycles_bare,
            cycles,
            ratio: rounded(cycles as f64 / cycles_bare.max(1) as f64),
            paper_best: PAPER[k][0],
            paper_worst: PAPER[k][1],
        };
        let bytes = MEASURED.map(|bytes| bytes as u64);
        let points =
            |pick: fn((u64, u64)) -> u64, k: [usize; 2]| k.map(|k| (bytes[k], pick(cycles[k])));
        let both: [fn((u64, u64)) -> u64; 2] = [|pair| pair.0, |pair| pair.1];
        let error = |pick: fn((u64, u64)) -> u64| {
            let found = pick(cycles[3]) as f64;
            ((line(points(pick, [1, 2]), bytes[3]) - found) / found).abs()
        };
        let largest = both.map(|pick| line(points(pick, [2, 3]), LARGEST).round() as u64);
        let mut sizes: Vec<Size> = (0..4).map(|k| size(k, bytes[k], true, cycles[k])).collect();
        sizes.push(size(4, LARGEST, false, (largest[0], largest[1])));
        Self {
            sizes,
            extrapolation_error: rounded(both.map(error).into_iter().fold(0.0, f64::max)),
        }
    }
}

/// The run of a size.
///
/// # Errors
/// A size out of range.
pub fn task(bytes: usize) -> Result<Task, WorkloadError> {
    vecadd::random_task(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_straight_line_is_extrapolated_without_error() {
        let cycles = MEASURED.map(|bytes| (100 + bytes as u64 / 32, 300 + bytes as u64 / 31));
        let sizes = Sizes::new(cycles);
        assert!(sizes.extrapolation_error < 0.001, "{sizes:?}");
        let last = &sizes.sizes[4];
        assert_eq!((last.bytes, last.measured), (80_000 << 10, false));
        assert_eq!(last.cycles_bare, 100 + (80_000 << 10) / 32);
        let mut bent = cycles;
        bent[3].1 *= 2;
        assert!(Sizes::new(bent).extrapolation_error > 0.4);
    }
}
