//! Vector addition: the sums of two vectors of 32-bit words.

use crate::task::{Paper, Scale, Task, Value, Workload};
use crate::{WorkloadError, random};

/// Words in a line of 64 bytes.
const WORDS: usize = 16;
/// Largest vector, in bytes: the regions of the Shield.
pub const MAX_BYTES: usize = 8 << 20;

/// Sums of two vectors.
pub struct VecAdd;

/// The sums of words, modulo 2^32.
pub fn reference(a: &[u32], b: &[u32]) -> Vec<u32> {
    a.iter().zip(b).map(|(a, b)| a.wrapping_add(*b)).collect()
}

/// The sums of two vectors.
///
/// # Errors
/// SHEF-WRK-003 if the vectors differ in length, are empty, are no multiple of 64 bytes or larger
/// than 8 MiB.
pub fn task(a: &[u32], b: &[u32]) -> Result<Task, WorkloadError> {
    let value = |what| Err(WorkloadError::Value { what });
    if a.len() != b.len() {
        return value(format!(
            "expected two vectors of one length, found {} and {} words",
            a.len(),
            b.len()
        ));
    }
    let bytes = 4 * a.len();
    if a.is_empty() || !a.len().is_multiple_of(WORDS) || bytes > MAX_BYTES {
        return value(format!(
            "expected vectors of {WORDS} to {} words, in steps of {WORDS}, found {}",
            MAX_BYTES / 4,
            a.len()
        ));
    }
    Ok(Task {
        shape: if bytes.is_multiple_of(1 << 20) {
            format!("{} MiB", bytes >> 20)
        } else {
            format!("{} KiB", bytes >> 10)
        },
        registers: vec![
            ("lines", Value::Number((a.len() / WORDS) as u32)),
            ("a", Value::Address("a")),
            ("a_high", Value::AddressHigh("a")),
            ("b", Value::Address("b")),
            ("b_high", Value::AddressHigh("b")),
            ("sum", Value::Address("sum")),
            ("sum_high", Value::AddressHigh("sum")),
        ],
        inputs: vec![("a", random::bytes_of(a)), ("b", random::bytes_of(b))],
        outputs: vec![("sum", random::bytes_of(&reference(a, b)))],
        reads: vec![("status", 2)],
        facts: Vec::new(),
    })
}

/// The run on random vectors of this size in bytes.
///
/// # Errors
/// As [`task`].
pub fn random_task(bytes: usize) -> Result<Task, WorkloadError> {
    task(&random::words(1, bytes / 4), &random::words(2, bytes / 4))
}

impl Workload for VecAdd {
    fn name(&self) -> &'static str {
        "vecadd"
    }

    fn about(&self) -> &'static str {
        "sums of two vectors of 32-bit words"
    }

    fn paper(&self) -> Option<Paper> {
        Some(Paper {
            best: Some(1.28),
            worst: Some(3.58),
            source: "Figure 5: AES-128, 8 input and 4 output sets, 512 B",
        })
    }

    fn task(&self, scale: Scale) -> Result<Task, WorkloadError> {
        random_task(match scale {
            Scale::Small => 8 << 10,
            Scale::Quick | Scale::Full => MAX_BYTES,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_added_modulo_2_32() {
        assert_eq!(reference(&[1, u32::MAX, 0x8000_0000], &[2, 1, 0x8000_0000]), [3, 0, 0]);
    }

    #[test]
    fn vectors_that_do_not_fit_are_refused() {
        for (a, b) in [(16, 32), (0, 0), (15, 15), (MAX_BYTES / 4 + 16, MAX_BYTES / 4 + 16)] {
            let error = task(&vec![0; a], &vec![0; b]).unwrap_err();
            assert_eq!(error.code(), "SHEF-WRK-003", "{a} and {b} words");
        }
    }
}
