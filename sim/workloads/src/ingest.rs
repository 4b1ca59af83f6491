//! Ingestion for recommendation models: columns of raw features become rows of a batch, as the
//! data-ingestion work of ShEF's authors accelerates it. Dense features are clamped, and replaced
//! by their logarithm or their bucket; ids of sparse features are hashed to rows of an embedding
//! table. Sparse columns come deduplicated, as unique lists and an inverse index (RecD, MLSys
//! 2023).

use std::time::Instant;

use crate::task::{Paper, Scale, Task, Value, Workload};
use crate::{
    WorkloadError,
    random::{self, Random},
};

/// Dense features.
pub const DENSE: usize = 16;
/// Sparse features, at most.
pub const SPARSE: usize = 7;
/// Ids of a list.
pub const IDS: usize = 16;
/// Rows and unique lists of a group, at most.
pub const GROUP: usize = 64;
/// An id that is no entry.
pub const PAD: u32 = u32::MAX;
/// Largest batch, in bytes: its region of the Shield.
pub const MAX_BATCH: usize = 8 << 20;
/// Boundaries of a bucketized feature, at most.
pub const BOUNDS: usize = 16;

/// What happens to a dense feature after it is clamped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// It stays.
    Pass,
    /// `log2(1 + value)` with 16 fractional bits; negative values count as 0.
    Log,
    /// How many of these boundaries are below the value.
    Bucket(Vec<i32>),
}

/// A dense feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dense {
    /// The smallest and the largest value that stay as they are.
    pub clamp: (i32, i32),
    /// What happens then.
    pub op: Op,
    /// The value of each row.
    pub values: Vec<i32>,
}

/// A list of a sparse feature.
pub type List = [u32; IDS];

/// A sparse feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sparse {
    /// Rows of its embedding table.
    pub size: u32,
    /// Salt of its hash.
    pub salt: u32,
    /// The unique lists of each group of rows.
    pub lists: Vec<Vec<List>>,
    /// For each row, the list of its group.
    pub inverse: Vec<u8>,
}

/// Columns: the features, and how many rows each group has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// Dense features.
    pub dense: Vec<Dense>,
    /// Sparse features.
    pub sparse: Vec<Sparse>,
    /// Rows of each group.
    pub groups: Vec<usize>,
}

/// `log2(1 + x)` with 16 fractional bits: 128 segments, linear in each.
pub fn log2(x: u32) -> u32 {
    let value = x + 1;
    let exponent = value.ilog2();
    let fraction = (u64::from(value) << 31 >> exponent) & 0x7fff_ffff;
    let node = |i: u64| ((1.0 + i as f64 / 128.0).log2() * f64::from(1 << 20)).round() as u64;
    let (segment, part) = (fraction >> 24, fraction >> 8 & 0xffff);
    let at = node(segment);
    let log = at + (((node(segment + 1) - at) * part) >> 16);
    (exponent << 16) + ((log as u32 + 8) >> 4)
}

/// The row of a table of this size that an id belongs to.
pub fn hash(id: u32, salt: u32, size: u32) -> u32 {
    if id == PAD {
        return PAD;
    }
    let mut h = id ^ salt;
    h = (h ^ h >> 16).wrapping_mul(0x85eb_ca6b);
    h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    h ^= h >> 16;
    ((u64::from(h) * u64::from(size)) >> 32) as u32
}

fn transform(feature: &Dense, value: i32) -> u32 {
    let value = value.clamp(feature.clamp.0, feature.clamp.1);
    match &feature.op {
        Op::Pass => value as u32,
        Op::Log => log2(value.max(0) as u32),
        Op::Bucket(bounds) => bounds.iter().filter(|bound| **bound < value).count() as u32,
    }
}

/// The rows: for each, its dense values and then a list of table rows for each sparse feature.
///
/// The columns are well-formed: [`task`] checks them.
pub fn reference(columns: &Columns) -> Vec<u32> {
    let mut batch = Vec::new();
    let mut row = 0;
    for (group, rows) in columns.groups.iter().enumerate() {
        // Each unique list is hashed once.
        let hashed: Vec<Vec<List>> = columns
            .sparse
            .iter()
            .map(|f| {
                f.lists[group].iter().map(|list| list.map(|id| hash(id, f.salt, f.size))).collect()
            })
            .collect();
        for row in row..row + rows {
            batch.extend(columns.dense.iter().map(|f| transform(f, f.values[row])));
            for (f, lists) in columns.sparse.iter().zip(&hashed) {
                batch.extend(lists[usize::from(f.inverse[row])]);
            }
        }
        row += rows;
    }
    batch
}

/// The regions `config` and `columns`.
fn encode(columns: &Columns) -> (Vec<u32>, Vec<u32>) {
    let mut config = Vec::new();
    config.extend(columns.dense.iter().map(|f| f.clamp.0 as u32));
    config.extend(columns.dense.iter().map(|f| f.clamp.1 as u32));
    config.extend(columns.dense.iter().map(|f| match f.op {
        Op::Pass => 0,
        Op::Log => 1,
        Op::Bucket(_) => 2,
    }));
    let mut hashes = [0; 16];
    for (k, f) in columns.sparse.iter().enumerate() {
        (hashes[k], hashes[8 + k]) = (f.size, f.salt);
    }
    config.extend(hashes);
    for f in &columns.dense {
        let bounds = if let Op::Bucket(bounds) = &f.op { bounds.as_slice() } else { &[] };
        let mut line = [i32::MAX as u32; BOUNDS];
        for (word, bound) in line.iter_mut().zip(bounds) {
            *word = *bound as u32;
        }
        config.extend(line);
    }

    let mut lines = Vec::new();
    let mut row = 0;
    for (group, &rows) in columns.groups.iter().enumerate() {
        let mut header = [0; 16];
        header[0] = rows as u32;
        for (k, f) in columns.sparse.iter().enumerate() {
            header[1 + k] = f.lists[group].len() as u32;
        }
        lines.extend(header);
        for f in &columns.sparse {
            let mut index = [0; 64];
            index[..rows].copy_from_slice(&f.inverse[row..row + rows]);
            lines.extend(index.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)));
        }
        for f in &columns.dense {
            lines.extend(f.values[row..row + rows].iter().map(|value| *value as u32));
            lines.resize(lines.len().next_multiple_of(16), 0);
        }
        for f in &columns.sparse {
            lines.extend(f.lists[group].iter().flatten());
        }
        row += rows;
    }
    (config, lines)
}

fn check(columns: &Columns) -> Result<(), String> {
    let Columns { dense, sparse, groups } = columns;
    if dense.len() != DENSE || sparse.is_empty() || sparse.len() > SPARSE {
        return Err(format!(
            "expected {DENSE} dense and 1 to {SPARSE} sparse features, found {} and {}",
            dense.len(),
            sparse.len()
        ));
    }
    if let Some(rows) = groups.iter().find(|rows| !(1..=GROUP).contains(*rows)) {
        return Err(format!("expected groups of 1 to {GROUP} rows, found {rows}"));
    }
    let rows: usize = groups.iter().sum();
    let max = MAX_BATCH / 64 / (1 + sparse.len());
    if !(1..=max).contains(&rows) {
        return Err(format!(
            "expected 1 to {max} rows of {} sparse features, found {rows}",
            sparse.len()
        ));
    }
    for (i, f) in dense.iter().enumerate() {
        if f.values.len() != rows {
            return Err(format!(
                "expected columns of {rows} rows, found {} in dense feature {i}",
                f.values.len()
            ));
        }
        if f.clamp.0 > f.clamp.1 {
            return Err(format!(
                "expected a lower limit of dense feature {i} up to its upper limit {}, found {}",
                f.clamp.1, f.clamp.0
            ));
        }
        if let Op::Bucket(bounds) = &f.op
            && (bounds.len() > BOUNDS || !bounds.is_sorted())
        {
            return Err(format!(
                "expected up to {BOUNDS} ascending boundaries for dense feature {i}, found {bounds:?}"
            ));
        }
    }
    for (k, f) in sparse.iter().enumerate() {
        if f.size == 0 {
            return Err(format!(
                "expected a table of at least one row for sparse feature {k}, found size 0"
            ));
        }
        if f.inverse.len() != rows || f.lists.len() != groups.len() {
            return Err(format!(
                "expected columns of {rows} rows in {} groups, found {} in {} in sparse feature {k}",
                groups.len(),
                f.inverse.len(),
                f.lists.len()
            ));
        }
        let mut inverse = f.inverse.as_slice();
        for (group, (lists, rows)) in f.lists.iter().zip(groups).enumerate() {
            if !(1..=GROUP).contains(&lists.len()) {
                return Err(format!(
                    "expected 1 to {GROUP} unique lists for sparse feature {k} in group {group}, \
                     found {}",
                    lists.len()
                ));
            }
            let (of_group, rest) = inverse.split_at(*rows);
            if let Some(entry) = of_group.iter().find(|entry| usize::from(**entry) >= lists.len()) {
                return Err(format!(
                    "expected an inverse index below {} for sparse feature {k} in group {group}, \
                     found {entry}",
                    lists.len()
                ));
            }
            inverse = rest;
        }
    }
    Ok(())
}

/// The batch of these columns.
///
/// # Errors
/// SHEF-WRK-003 if there are too few or too many features or rows, if columns differ in length, a
/// group is too large, a limit, boundary or table size is out of range, or an inverse index names
/// no list.
pub fn task(columns: &Columns) -> Result<Task, WorkloadError> {
    check(columns).map_err(|what| WorkloadError::Value { what })?;
    let (config, lines) = encode(columns);
    let rows: usize = columns.groups.iter().sum();
    let before = Instant::now();
    let batch = reference(columns);
    let seconds = before.elapsed().as_secs_f64();
    let unique: usize = columns.sparse.iter().flat_map(|f| &f.lists).map(Vec::len).sum();
    Ok(Task {
        shape: format!("{rows} rows, {DENSE} dense and {} sparse", columns.sparse.len()),
        registers: vec![
            ("lines", Value::Number((lines.len() / 16) as u32)),
            ("rows", Value::Number(rows as u32)),
            ("sparse", Value::Number(columns.sparse.len() as u32)),
            ("config", Value::Address("config")),
            ("config_high", Value::AddressHigh("config")),
            ("columns", Value::Address("columns")),
            ("columns_high", Value::AddressHigh("columns")),
            ("batch", Value::Address("batch")),
            ("batch_high", Value::AddressHigh("batch")),
        ],
        facts: vec![
            (
                "rows of a unique list",
                format!("{:.2}", (rows * columns.sparse.len()) as f64 / unique as f64),
            ),
            ("input bytes", (4 * lines.len()).to_string()),
            (
                if cfg!(debug_assertions) {
                    "reference, rows per second of a core, not optimised"
                } else {
                    "reference, rows per second of a core"
                },
                format!("{:.0}", rows as f64 / seconds),
            ),
        ],
        inputs: vec![("config", random::bytes_of(&config)), ("columns", random::bytes_of(&lines))],
        outputs: vec![("batch", random::bytes_of(&batch))],
        reads: vec![("status", 2)],
    })
}

/// Synthetic columns of a seed.
///
/// Rows come in groups of 64; the last may be shorter. Within a group, a row shows the same list of
/// a feature as others of its session: a list is drawn from `sessions` lists with probabilities
/// proportional to 1 / rank (Zipf), and those that occur are its unique lists. Lists have 1 to 16
/// ids, drawn with density 1 / id up to 2^32, and then padding. Dense values have the same density.
pub fn synthetic(seed: u64, rows: usize, sparse: usize, sessions: usize) -> Columns {
    let mut random = Random::new(seed);
    let mut groups = vec![GROUP; rows / GROUP];
    if !rows.is_multiple_of(GROUP) {
        groups.push(rows % GROUP);
    }
    // A number of up to `bits` bits, each length as likely as another.
    fn skewed(random: &mut Random, bits: u64) -> u64 {
        let length = random.below(bits + 1);
        random.below(1 << length)
    }
    let dense = (0..DENSE)
        .map(|i| Dense {
            clamp: match i % 4 {
                0 => (0, 1 << 20),
                1 => (-100, 100_000),
                2 => (0, i32::MAX),
                _ => (i32::MIN, i32::MAX),
            },
            op: match i % 8 {
                3 => Op::Pass,
                1 | 5 => Op::Bucket((0..=i as i32).map(|b| (b * b * b) - 20).collect()),
                _ => Op::Log,
            },
            values: (0..rows)
                .map(|_| {
                    let value = skewed(&mut random, 31) as i32;
                    if random.below(16) == 0 { -1 - value } else { value }
                })
                .collect(),
        })
        .collect();
    // Cumulative weights 2^16 / rank.
    let weights: Vec<u64> = (1..=sessions as u64)
        .scan(0, |sum, rank| {
            *sum += (1 << 16) / rank;
            Some(*sum)
        })
        .collect();
    let total = weights.last().copied().unwrap_or(0);
    let sparse = (0..sparse)
        .map(|k| {
            let mut lists = Vec::new();
            let mut inverse = Vec::new();
            for rows in &groups {
                let mut entries = vec![None; sessions];
                let mut unique = Vec::new();
                for _ in 0..*rows {
                    let draw = random.below(total);
                    let session = weights.partition_point(|weight| *weight <= draw);
                    let entry = *entries[session].get_or_insert_with(|| {
                        let length = 1 + random.below(IDS as u64) as usize;
                        unique.push(std::array::from_fn(|i| {
                            if i < length { skewed(&mut random, 32) as u32 } else { PAD }
                        }));
                        (unique.len() - 1) as u8
                    });
                    inverse.push(entry);
                }
                lists.push(unique);
            }
            let size = [1, 1000, 1 << 20, 10_000_019, u32::MAX, 97, 1 << 31][k];
            Sparse { size, salt: random.word() as u32, lists, inverse }
        })
        .collect();
    Columns { dense, sparse, groups }
}

/// Ingestion of a batch.
pub struct Ingest;

impl Workload for Ingest {
    fn name(&self) -> &'static str {
        "ingest"
    }

    fn about(&self) -> &'static str {
        "columns of features become rows: clamp, logarithm, buckets, hashes, duplicates expanded"
    }

    fn paper(&self) -> Option<Paper> {
        None
    }

    fn task(&self, scale: Scale) -> Result<Task, WorkloadError> {
        let rows = match scale {
            Scale::Small => 170,
            Scale::Quick | Scale::Full => MAX_BATCH / 64 / (1 + SPARSE),
        };
        task(&synthetic(1, rows, SPARSE, GROUP))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_logarithm_is_exact_at_powers_of_two_and_close_elsewhere() {
        assert_eq!([0, 1, 3, 7, 0x7fff_ffff].map(log2), [0, 1 << 16, 2 << 16, 3 << 16, 31 << 16]);
        // log2(3) = 1.58496250
        assert_eq!(log2(2), 103_872);
        let mut random = Random::new(5);
        for _ in 0..100_000 {
            let x = random.word() as u32 >> (1 + random.below(31));
            let exact = (f64::from(x) + 1.0).log2() * 65536.0;
            assert!((f64::from(log2(x)) - exact).abs() < 1.6, "{x}");
        }
    }

    #[test]
    fn the_hash_mixes_as_murmurhash3_does() {
        // The finaliser of MurmurHash3: fmix32(1) = 0x514e28b7, fmix32(0xdeadbeef) = 0x0de5c6a9.
        assert_eq!(hash(1, 0, 1 << 31), 0x514e_28b7 >> 1);
        assert_eq!(hash(0xdead_beee, 1, 1 << 31), 0x0de5_c6a9 >> 1);
        assert_eq!(hash(12345, 678, 1), 0);
        assert_eq!(hash(PAD, 678, 5), PAD);
    }

    /// Two groups of two rows and of one.
    fn tiny() -> Columns {
        let feature = |op| Dense { clamp: (-5, 9), op, values: vec![-7, 3, 10] };
        let mut dense = vec![feature(Op::Log); DENSE];
        dense[1] = feature(Op::Pass);
        dense[2] = feature(Op::Bucket(vec![-5, 0, 3, 8]));
        Columns {
            dense,
            sparse: vec![Sparse {
                size: 1 << 31,
                salt: 0,
                lists: vec![vec![[PAD; IDS]], vec![[1; IDS], [PAD; IDS]]],
                inverse: vec![0, 0, 0],
            }],
            groups: vec![2, 1],
        }
    }

    #[test]
    fn a_tiny_batch_is_as_computed_by_hand() {
        let batch = reference(&tiny());
        let rows: Vec<&[u32]> = batch.chunks(32).collect();
        // Clamped to -5, 3 and 9: log2(1), log2(4), log2(10) = 3.3219.
        assert_eq!([rows[0][0], rows[1][0]], [0, 2 << 16]);
        assert_eq!(rows[2][15] >> 8, 3 << 8 | 82);
        assert_eq!([rows[0][1], rows[1][1], rows[2][1]], [-5i32 as u32, 3, 9]);
        // Below -5: none; below 3: -5 and 0; below 9: all.
        assert_eq!([rows[0][2], rows[1][2], rows[2][2]], [0, 2, 4]);
        assert_eq!(rows[0][16..], [PAD; IDS]);
        assert_eq!(rows[1][16..], [PAD; IDS]);
        assert_eq!(rows[2][16..], [0x514e_28b7 >> 1; IDS]);
    }

    #[test]
    fn columns_that_do_not_fit_are_refused() {
        type Change = fn(&mut Columns);
        let cases: [(&str, Change); 12] = [
            ("16 dense", |c| drop(c.dense.pop())),
            ("1 to 7 sparse", |c| c.sparse.clear()),
            ("groups of 1 to 64", |c| c.groups = vec![65]),
            ("groups of 1 to 64", |c| c.groups = vec![3, 0]),
            ("1 to 65536 rows", |c| c.groups.clear()),
            ("2 in dense feature 3", |c| c.dense[3].values.truncate(2)),
            ("lower limit of dense feature 0", |c| c.dense[0].clamp = (1, 0)),
            ("ascending boundaries", |c| c.dense[2].op = Op::Bucket(vec![2, 1])),
            ("ascending boundaries", |c| c.dense[2].op = Op::Bucket(vec![2; 17])),
            ("found size 0", |c| c.sparse[0].size = 0),
            ("found 2 in 2 in sparse feature 0", |c| c.sparse[0].inverse.truncate(2)),
            ("index below 1 for sparse feature 0 in group 0", |c| c.sparse[0].inverse[1] = 1),
        ];
        for (words, change) in cases {
            let mut columns = tiny();
            change(&mut columns);
            let error = task(&columns).unwrap_err();
            assert_eq!(error.code(), "SHEF-WRK-003");
            assert!(error.to_string().contains(words), "{words}: {error}");
        }
        let mut columns = tiny();
        columns.sparse[0].lists[1] = vec![[PAD; IDS]; 65];
        assert!(task(&columns).unwrap_err().to_string().contains("unique lists"));
    }

    #[test]
    fn the_largest_columns_fit_their_region() {
        // Every list unique: no duplicates at all.
        let rows = MAX_BATCH / 64 / (1 + SPARSE);
        let mut columns = synthetic(1, rows, SPARSE, GROUP);
        for f in &mut columns.sparse {
            f.lists = columns.groups.iter().map(|rows| vec![[PAD; IDS]; *rows]).collect();
        }
        assert!(task(&columns).unwrap().inputs[1].1.len() <= 9 << 20);
    }

    /// The files in the accelerator's folder, for `shef test`. With SHEF_WRITE=1 they are written.
    #[test]
    fn the_files_of_the_accelerators_tests_are_as_they_were_written() {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shell-rtl/accel/ingest/data");
        let full = task(&synthetic(1, 170, SPARSE, GROUP)).unwrap();
        let short = task(&synthetic(2, 37, 2, 8)).unwrap();
        let [config, columns] = [0, 1].map(|i| short.inputs[i].1.clone());
        // Row 9 has an index beyond the lists of the first feature.
        let mut wrong = columns.clone();
        wrong[64 + 9] = wrong[4];
        // The second table has no rows.
        let mut empty = config.clone();
        empty[3 * 64 + 4..][..4].fill(0);
        for (name, bytes) in [
            ("config.bin", full.inputs[0].1.clone()),
            ("columns.bin", full.inputs[1].1.clone()),
            ("short-config.bin", config),
            ("short-columns.bin", columns),
            ("wrong-columns.bin", wrong),
            ("empty-config.bin", empty),
        ] {
            let file = folder.join(name);
            if std::env::var_os("SHEF_WRITE").is_some() {
                std::fs::write(&file, &bytes).unwrap();
            }
            let found = std::fs::read(&file).unwrap_or_default();
            assert!(found == bytes, "{} differs; SHEF_WRITE=1 writes it", file.display());
        }
    }
}
