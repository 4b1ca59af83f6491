//! Matrix multiplication: the product of two matrices of 32-bit words.

use crate::task::{Paper, Scale, Task, Value, Workload};
use crate::{WorkloadError, random};

/// Sizes are multiples of this.
const STEP: usize = 16;
/// Largest number of rows and columns: the memories of the accelerator.
pub const MAX: usize = 1024;

/// Product of two matrices.
pub struct MatMul;

/// A matrix, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matrix {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Words: `rows * columns`.
    pub words: Vec<u32>,
}

impl Matrix {
    /// The random matrix of a seed.
    pub fn random(seed: u64, rows: usize, columns: usize) -> Self {
        Self { rows, columns, words: random::words(seed, rows * columns) }
    }
}

/// The product of two matrices modulo 2^32; `a` has as many columns as `b` has rows.
pub fn reference(a: &Matrix, b: &Matrix) -> Matrix {
    let mut words = vec![0_u32; a.rows * b.columns];
    for (row, sums) in words.chunks_exact_mut(b.columns).enumerate() {
        for k in 0..a.columns {
            let factor = a.words[row * a.columns + k];
            for (sum, b) in sums.iter_mut().zip(&b.words[k * b.columns..]) {
                *sum = sum.wrapping_add(factor.wrapping_mul(*b));
            }
        }
    }
    Matrix { rows: a.rows, columns: b.columns, words }
}

/// The product of two matrices.
///
/// # Errors
/// SHEF-WRK-003 if a number of rows or columns is not a multiple of 16 or is above 1024, if `a` does
/// not have as many columns as `b` has rows, or if the words of a matrix do not fit its shape.
pub fn task(a: &Matrix, b: &Matrix) -> Result<Task, WorkloadError> {
    let value = |what| Err(WorkloadError::Value { what });
    for (name, matrix) in [("A", a), ("B", b)] {
        let Matrix { rows, columns, words } = matrix;
        if [rows, columns].iter().any(|n| **n == 0 || !n.is_multiple_of(STEP) || **n > MAX) {
            return value(format!(
                "expected a matrix {name} of {STEP} to {MAX} rows and columns, in steps of {STEP}, \
                 found {rows} x {columns}"
            ));
        }
        if words.len() != rows * columns {
            return value(format!(
                "expected {} words in the matrix {name} of {rows} x {columns}, found {}",
                rows * columns,
                words.len()
            ));
        }
    }
    if a.columns != b.rows {
        return value(format!(
            "expected as many columns of A as rows of B, found {} and {}",
            a.columns, b.rows
        ));
    }
    Ok(Task {
        shape: if a.rows == a.columns && b.rows == b.columns {
            format!("{} x {}", a.rows, a.columns)
        } else {
            format!("{} x {} by {} x {}", a.rows, a.columns, b.rows, b.columns)
        },
        registers: vec![
            ("rows", Value::Number(a.rows as u32)),
            ("depth", Value::Number(a.columns as u32)),
            ("columns", Value::Number(b.columns as u32)),
            ("a", Value::Address("a")),
            ("a_high", Value::AddressHigh("a")),
            ("b", Value::Address("b")),
            ("b_high", Value::AddressHigh("b")),
            ("c", Value::Address("c")),
            ("c_high", Value::AddressHigh("c")),
        ],
        inputs: vec![("a", random::bytes_of(&a.words)), ("b", random::bytes_of(&b.words))],
        outputs: vec![("c", random::bytes_of(&reference(a, b).words))],
        reads: vec![("status", 2)],
        facts: Vec::new(),
    })
}

/// The product of random matrices of `rows` x `depth` and `depth` x `columns`.
///
/// # Errors
/// As [`task`].
pub fn random_task(rows: usize, depth: usize, columns: usize) -> Result<Task, WorkloadError> {
    task(&Matrix::random(1, rows, depth), &Matrix::random(2, depth, columns))
}

impl Workload for MatMul {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn about(&self) -> &'static str {
        "product of two matrices of 32-bit words"
    }

    fn paper(&self) -> Option<Paper> {
        Some(Paper {
            best: None,
            worst: Some(1.26),
            source: "text beside Figure 5: largest overhead with AES/4x, sizes not given",
        })
    }

    fn task(&self, scale: Scale) -> Result<Task, WorkloadError> {
        match scale {
            Scale::Small => random_task(48, 64, 144),
            Scale::Quick | Scale::Full => random_task(512, 512, 512),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_computed_by_hand() {
        let a = Matrix { rows: 2, columns: 3, words: vec![1, 2, 3, 4, 5, 6] };
        let b = Matrix { rows: 3, columns: 2, words: vec![7, 8, 9, 10, 11, 12] };
        assert_eq!(reference(&a, &b).words, [58, 64, 139, 154]);
    }

    #[test]
    fn products_are_modulo_2_32() {
        let a = Matrix { rows: 1, columns: 2, words: vec![u32::MAX, 0x1_0001] };
        let b = Matrix { rows: 2, columns: 1, words: vec![u32::MAX, 0x1_0001] };
        assert_eq!(reference(&a, &b).words, [0x0002_0002]);
    }

    #[test]
    fn the_identity_changes_nothing() {
        let a = Matrix::random(3, 16, 32);
        let mut one = Matrix { rows: 32, columns: 32, words: vec![0; 32 * 32] };
        for i in 0..32 {
            one.words[33 * i] = 1;
        }
        assert_eq!(reference(&a, &one), a);
    }

    #[test]
    fn matrices_that_do_not_fit_are_refused() {
        let whole = |rows, columns| Matrix { rows, columns, words: vec![0; rows * columns] };
        let short = Matrix { rows: 16, columns: 16, words: vec![0; 255] };
        for (a, b) in [
            (whole(16, 32), whole(16, 32)),
            (whole(0, 16), whole(16, 16)),
            (whole(16, 24), whole(24, 16)),
            (whole(16, 16), whole(16, 1040)),
            (short.clone(), whole(16, 16)),
            (whole(16, 16), short),
        ] {
            assert_eq!(
                task(&a, &b).unwrap_err().code(),
                "SHEF-WRK-003",
                "{} x {} ({} words) by {} x {} ({} words)",
                a.rows,
                a.columns,
                a.words.len(),
                b.rows,
                b.columns,
                b.words.len()
            );
        }
    }
}
