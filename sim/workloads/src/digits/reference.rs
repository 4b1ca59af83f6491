//! k-nearest-neighbour on the CPU, in plain code: the reference for the accelerator's results.

use super::data::{Dataset, PIXELS};

/// Neighbours that vote.
pub const K: usize = 3;
/// Index of a neighbour that is missing because there are fewer than [`K`] rows.
pub const MISSING: u16 = 0xffff;
/// Bytes of a result.
pub const RECORD: usize = 16;

/// Result for one query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classification {
    /// The label.
    pub label: u8,
    /// Neighbours that have it.
    pub votes: u8,
    /// Training rows, nearest first.
    pub nearest: [u16; K],
    /// Squared distance of the nearest.
    pub distance: u32,
}

impl Classification {
    /// Decodes the 16 bytes that the accelerator writes; `None` if the padding is not zero.
    pub fn from_record(record: &[u8; RECORD]) -> Option<Self> {
        let half = |at: usize| u16::from_le_bytes([record[at], record[at + 1]]);
        if record[12..] != [0; 4] {
            return None;
        }
        Some(Self {
            label: record[0],
            votes: record[1],
            nearest: [half(2), half(4), half(6)],
            distance: u32::from_le_bytes([record[8], record[9], record[10], record[11]]),
        })
    }

    /// The 16 bytes that the accelerator writes.
    pub fn to_record(&self) -> [u8; RECORD] {
        let mut record = [0; RECORD];
        record[0] = self.label;
        record[1] = self.votes;
        for (slot, nearest) in record[2..8].chunks_exact_mut(2).zip(self.nearest) {
            slot.copy_from_slice(&nearest.to_le_bytes());
        }
        record[8..12].copy_from_slice(&self.distance.to_le_bytes());
        record
    }
}

/// Squared Euclidean distance.
fn distance(a: &[u8; PIXELS], b: &[u8; PIXELS]) -> u32 {
    a.iter().zip(b).map(|(x, y)| u32::from(x.abs_diff(*y)).pow(2)).sum()
}

/// Classifies one query: k = 3, ties by (distance, index), label by majority; without a majority,
/// the label of the nearest.
pub fn classify(train: &Dataset, query: &[u8; PIXELS]) -> Classification {
    let mut all: Vec<(u32, usize)> =
        train.rows.iter().enumerate().map(|(i, row)| (distance(row, query), i)).collect();
    all.sort_unstable();
    all.truncate(K);
    let label_of = |i: usize| train.labels[all[i].1];
    let votes_for = |label: u8| (0..all.len()).filter(|i| label_of(*i) == label).count();
    let label = (0..all.len())
        .map(label_of)
        .find(|label| votes_for(*label) * 2 > K)
        .unwrap_or_else(|| label_of(0));
    let mut nearest = [MISSING; K];
    for (slot, (_, index)) in nearest.iter_mut().zip(&all) {
        *slot = *index as u16;
    }
    Classification { label, votes: votes_for(label) as u8, nearest, distance: all[0].0 }
}

/// Classifies all queries.
pub fn classify_all(train: &Dataset, queries: &Dataset) -> Vec<Classification> {
    queries.rows.iter().map(|query| classify(train, query)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_real_digits_766_are_right() {
        let data = Dataset::shipped().unwrap();
        let (train, query) = data.split(1000).unwrap();
        let right = classify_all(&train, &query)
            .iter()
            .zip(&query.labels)
            .filter(|(a, l)| a.label == **l)
            .count();
        assert_eq!(right, 766);
    }

    fn set(rows: &[(u8, u8)]) -> Dataset {
        Dataset {
            rows: rows
                .iter()
                .map(|(p, _)| {
                    let mut r = [0; PIXELS];
                    r[0] = *p;
                    r
                })
                .collect(),
            labels: rows.iter().map(|(_, l)| *l).collect(),
        }
    }

    #[test]
    fn ties_go_to_the_lower_index_and_no_majority_to_the_nearest() {
        let query = [0; PIXELS];
        let a = classify(&set(&[(2, 1), (1, 2), (1, 3), (1, 4), (1, 2)]), &query);
        assert_eq!((a.label, a.votes, a.nearest, a.distance), (2, 1, [1, 2, 3], 1));
        let a = classify(&set(&[(9, 5), (1, 2), (3, 5)]), &query);
        assert_eq!((a.label, a.votes, a.nearest, a.distance), (5, 2, [1, 2, 0], 1));
        let a = classify(&set(&[(1, 7)]), &query);
        assert_eq!((a.label, a.votes, a.nearest), (7, 1, [0, MISSING, MISSING]));
    }

    #[test]
    fn records_are_little_endian_and_padding_is_checked() {
        let mut record = [3, 2, 0x34, 0x12, 1, 0, 0xff, 0xff, 0x78, 0x56, 0, 0, 0, 0, 0, 0];
        let answer = Classification::from_record(&record).unwrap();
        assert_eq!(
            answer,
            Classification { label: 3, votes: 2, nearest: [0x1234, 1, MISSING], distance: 0x5678 }
        );
        assert_eq!(answer.to_record(), record);
        record[15] = 1;
        assert!(Classification::from_record(&record).is_none());
    }
}
