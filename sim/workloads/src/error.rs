//! Errors of the workloads' host side.

use std::path::PathBuf;

shef_proto::coded! {
    /// Why a workload cannot run on these data.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum WorkloadError {
        /// There is no such workload.
        #[error("there is no workload {name:?}; the workloads are {known}")]
        Unknown {
            /// The name.
            name: String,
            /// All names.
            known: String,
        } = "SHEF-WRK-001": "there is no workload of this name",
            "give names of the list, or none for all workloads",
        /// A file does not have the form that the workload reads.
        #[error("{}: {what}", file.display())]
        Data {
            /// The file.
            file: PathBuf,
            /// Expectation and finding.
            what: String,
        } = "SHEF-WRK-002": "the data of a workload do not have the form that it reads",
            "the README of the accelerator (shell-rtl/accel/NAME) has the format of its data and their limits",
        /// The file with the digits is damaged.
        #[error(transparent)]
        Digits(shef_console::CliError) = "SHEF-WRK-004": "the digits cannot be read",
            "restore tests/data/digits.csv.gz",
        /// A value is out of range.
        #[error("{what}")]
        Value {
            /// Expectation and finding.
            what: String,
        } = "SHEF-WRK-003": "a value of a workload is out of range",
            "the README of the accelerator (shell-rtl/accel/NAME) has the limits of its values",
    }
}

impl shef_proto::fault::Coded for WorkloadError {
    fn code(&self) -> &str {
        self.code()
    }
}
