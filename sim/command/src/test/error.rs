//! Errors of `shef test`.

use std::path::PathBuf;

shef_proto::coded! {
    /// Why tests did not run, or failed.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum TestError {
        /// Nothing to run.
        #[error("{what}")]
        NoTest {
            /// Which tests there are.
            what: String,
        } = "SHEF-TST-001": "no test ran",
            "tests are the tables [tests.NAME] in shef.toml (docs/reference/project.md); `-k` selects those whose names contain a text",
        /// Tests failed.
        #[error("{failed} of {all} failed: {names}")]
        Failed {
            /// Phases that failed.
            failed: usize,
            /// Phases that ran.
            all: usize,
            /// Their tests and names.
            names: String,
        } = "SHEF-TST-002": "tests failed",
            "each failure has a line that repeats it alone, with the same data and timing",
        /// A model needs Python with NumPy.
        #[error("test {test} has a model, which needs Python with NumPy: {what}")]
        Python {
            /// The test.
            test: String,
            /// What is missing.
            what: String,
        } = "SHEF-TST-003": "Python or NumPy is missing",
            "`python3` on PATH must import numpy: `cargo xtask setup` in the checkout fetches it, or apt-get install python3-numpy; tests with `expect` \
             only need neither",
        /// The data of a test do not fit.
        #[error("test {test}: {}: {what}", file.display())]
        Data {
            /// The test.
            test: String,
            /// The file.
            file: PathBuf,
            /// What is wrong.
            what: String,
        } = "SHEF-TST-004": "the data of a test do not fit its job",
            "an input fits into its region, and an expected result has as many bytes as `out` says",
    }
}

impl shef_proto::fault::Coded for TestError {
    fn code(&self) -> &str {
        self.code()
    }
}
