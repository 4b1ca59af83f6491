//! Errors of `shef bench`.

shef_proto::coded! {
    /// Why a job was not measured.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum BenchError {
        /// The job failed, or has wrong results.
        #[error("job {job}: {what}")]
        Failed {
            /// The job.
            job: String,
            /// In which run, and what happened.
            what: String,
        } = "SHEF-BEN-001": "a job that is measured failed",
            "the cycles of a job with wrong results mean nothing: `shef test` runs it with many timings, and shows what is wrong",
        /// There is no such job, or a value is out of range.
        #[error("{what}")]
        Value {
            /// What was found and expected.
            what: String,
        } = "SHEF-BEN-002": "`shef bench` cannot measure this",
            "jobs are the tables [jobs.NAME] in shef.toml with `start` and `done` (docs/reference/project.md); a latency has 1 to 100,000 cycles",
    }
}

impl shef_proto::fault::Coded for BenchError {
    fn code(&self) -> &str {
        self.code()
    }
}
