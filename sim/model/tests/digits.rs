//! The digits accelerator matches its definition: sort all rows by (distance, row), take three,
//! vote.

use proptest::prelude::*;
use shef_model::digits::classify;

/// Result record from a sorted list of (distance, row, label).
fn expected(mut rows: Vec<(u32, u16, u8)>) -> [u8; 16] {
    rows.sort_by_key(|&(d, i, _)| (d, i));
    rows.truncate(3);
    let votes = |label: u8| rows.iter().filter(|r| r.2 == label).count() as u8;
    let label = rows.iter().map(|r| r.2).max_by_key(|&l| (votes(l) >= 2, l == rows[0].2)).unwrap();
    let mut r = [0; 16];
    (r[0], r[1]) = (label, votes(label));
    for k in 0..3 {
        r[2 + 2 * k..4 + 2 * k].copy_from_slice(&rows.get(k).map_or(0xffff, |r| r.1).to_le_bytes());
    }
    r[8..12].copy_from_slice(&rows[0].0.to_le_bytes());
    r
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Few different pixels, so that distances tie often.
    #[test]
    fn nearest_three_with_ties(
        train in prop::collection::vec((prop::array::uniform2(0u8..3), 0u8..4), 1..40),
        queries in prop::collection::vec(prop::array::uniform2(0u8..3), 1..10),
    ) {
        let row = |p: &[u8; 2]| { let mut r = [0u8; 64]; (r[0], r[63]) = (p[0], p[1] * 85); r };
        let pixels: Vec<u8> = train.iter().flat_map(|t| row(&t.0)).collect();
        let labels: Vec<u8> = train.iter().map(|t| t.1).collect();
        let asked: Vec<u8> = queries.iter().flat_map(row).collect();
        let found = classify(&pixels, &labels, &asked);
        prop_assert_eq!(found.len(), queries.len().div_ceil(4) * 64);
        for (i, q) in queries.iter().enumerate() {
            let d = |t: &[u8; 2]| row(t).iter().zip(row(q)).map(|(&a, b)| u32::from(a.abs_diff(b)).pow(2)).sum();
            let all = (0u16..).zip(&train).map(|(k, t)| (d(&t.0), k, t.1)).collect();
            prop_assert_eq!(&found[16 * i..16 * i + 16], &expected(all)[..], "query {}", i);
        }
        prop_assert!(found[16 * queries.len()..].iter().all(|&b| b == 0));
    }
}
