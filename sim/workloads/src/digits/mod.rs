//! Classification of handwritten digits by their nearest neighbours.

pub mod data;
pub mod knn;
pub mod reference;

use crate::WorkloadError;
use crate::task::{Paper, Scale, Task, Value, Workload};
use data::Dataset;

/// Training rows of the evaluation; the others are queries.
const TRAIN: usize = 1000;
/// Queries of a small run.
const FEW: usize = 6;

/// Classification by k nearest neighbours.
pub struct Digits;

/// The classification of queries.
///
/// # Errors
/// SHEF-WRK-003 if there are too many rows, or none.
pub fn task(train: &Dataset, queries: &Dataset) -> Result<Task, WorkloadError> {
    let (rows, count) = (train.rows.len(), queries.rows.len());
    if !(1..=4096).contains(&rows) || !(1..=16384).contains(&count) {
        return Err(WorkloadError::Value {
            what: format!(
                "expected 1 to 4096 training rows and 1 to 16384 queries, found {rows} and {count}"
            ),
        });
    }
    let answers = reference::classify_all(train, queries);
    let mut records: Vec<u8> = answers.iter().flat_map(|answer| answer.to_record()).collect();
    records.resize(knn::result_len(count), 0);
    let right = answers.iter().zip(&queries.labels).filter(|(a, label)| a.label == **label).count();
    Ok(Task {
        shape: format!("{rows} rows, {count} queries"),
        registers: vec![
            ("train", Value::Address("train")),
            ("train_high", Value::AddressHigh("train")),
            ("query", Value::Address("query")),
            ("query_high", Value::AddressHigh("query")),
            ("result", Value::Address("result")),
            ("result_high", Value::AddressHigh("result")),
            ("label", Value::Offset("train", knn::label_offset(rows) as u32)),
            ("label_high", Value::AddressHigh("train")),
            ("train_rows", Value::Number(rows as u32)),
            ("query_rows", Value::Number(count as u32)),
        ],
        inputs: vec![("train", knn::train_image(train)), ("query", queries.pixels())],
        outputs: vec![("result", records)],
        reads: vec![("status", knn::DONE)],
        facts: vec![("right", format!("{right} of {count}"))],
    })
}

impl Workload for Digits {
    fn name(&self) -> &'static str {
        "digits"
    }

    fn about(&self) -> &'static str {
        "the three nearest of 1,000 handwritten digits, by squared distance"
    }

    fn paper(&self) -> Option<Paper> {
        Some(Paper {
            best: Some(1.85),
            worst: Some(3.15),
            source: "Figure 6: 2 input and 1 output set, 512 B",
        })
    }

    fn task(&self, scale: Scale) -> Result<Task, WorkloadError> {
        let all = Dataset::shipped().map_err(WorkloadError::Digits)?;
        let (train, queries) = all.split(TRAIN).map_err(WorkloadError::Digits)?;
        match scale {
            Scale::Small => task(&train.head(100), &queries.head(FEW)),
            Scale::Quick | Scale::Full => task(&train, &queries),
        }
    }
}
