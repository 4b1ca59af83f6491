//! Errors of `shef-sim evaluate`.

shef_proto::coded! {
    /// Why the evaluation is not complete.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum EvaluateError {
        /// Rows failed.
        #[error("{failed} of {rows} rows failed, the first with: {first}")]
        Failed {
            /// Rows that failed.
            failed: usize,
            /// All rows.
            rows: usize,
            /// Workload, Shield and reason of the first.
            first: String,
        } = "SHEF-EVA-001": "a workload failed, or its result is not that of the CPU reference",
            "`shef test shell-rtl/accel/NAME` runs the accelerator with many timings, and shows what is wrong; rows that passed are kept",
        /// A file of a workload is missing or invalid.
        #[error("workload {workload}: {what}")]
        Project {
            /// The workload.
            workload: String,
            /// What was found and expected.
            what: String,
        } = "SHEF-EVA-002": "the project of a workload does not fit its host side",
            "each workload is a project in shell-rtl/accel with a shef.toml whose registers have the names that sim/workloads uses; restore the folder",
    }
}

impl shef_proto::fault::Coded for EvaluateError {
    fn code(&self) -> &str {
        self.code()
    }
}
