//! Why a test failed.

use serde::Serialize;
use shef_card::check::Report;
use shef_console::CliError;

/// What a failure is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The accelerator broke a rule of the protocol.
    Rule,
    /// A result is not the expected one.
    Result,
    /// The job did not end.
    Limit,
    /// An access or a session failed.
    Error,
    /// The model failed.
    Model,
    /// The accelerator or the owner received something that an attacker changed.
    Attack,
    /// A session depends on the one before it.
    Residue,
}

impl Kind {
    /// The rule that a failure of this kind breaks, unless the protocol checker names one.
    fn rule(self) -> &'static str {
        match self {
            Self::Rule => "SHEF_PROTOCOL",
            Self::Result => "SHEF_RESULT",
            Self::Limit => "SHEF_NO_PROGRESS",
            Self::Error => "SHEF_SESSION",
            Self::Model => "SHEF_MODEL",
            Self::Attack => "SHEF_ATTACK",
            Self::Residue => "SHEF_RESIDUE",
        }
    }
}

/// The first byte of a result that is not the expected one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Region, or register.
    pub of: String,
    /// Offset in the region.
    pub offset: u64,
    /// Expected value.
    pub expected: u32,
    /// Its value.
    pub found: u32,
}

/// Why a test failed.
#[derive(Debug, Clone, Serialize)]
pub struct Failure {
    /// What it is about.
    pub kind: Kind,
    /// Stable code, if another part of the project found it.
    pub code: Option<String>,
    /// What happened, with the values.
    pub message: String,
    /// Everything else.
    #[serde(flatten)]
    pub found: Box<Found>,
}

/// Details of a failure.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Found {
    /// The broken rule: that of the protocol checker, or one with `SHEF_` for another kind.
    pub rule: String,
    /// Cycle of the simulation at which it was noticed.
    pub cycle: Option<u64>,
    /// Whether the results are right all the same.
    pub results_right: Option<bool>,
    /// Further lines.
    pub details: Vec<String>,
    /// Of a result, the first difference.
    pub difference: Option<Difference>,
    /// Broken rules of the protocol.
    pub rules: Vec<Report>,
}

impl Failure {
    /// A failure with this message.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let found = Box::new(Found { rule: kind.rule().to_owned(), ..Found::default() });
        Self { kind, code: None, message: message.into(), found }
    }

    /// The failure with the cycle at which it was noticed, unless it has one.
    pub fn at(mut self, cycle: u64) -> Self {
        self.found.cycle.get_or_insert(cycle);
        self
    }

    /// The failure with further lines.
    pub fn with_details(mut self, details: Vec<String>) -> Self {
        self.found.details = details;
        self
    }

    /// The failure with the first difference of a result.
    pub fn with_difference(mut self, difference: Difference) -> Self {
        self.found.difference = Some(difference);
        self
    }

    /// The failure, although the results are right, or beside wrong ones.
    pub fn with_results(mut self, right: bool) -> Self {
        self.found.results_right = Some(right);
        self
    }

    /// All lines of it, for people.
    pub fn lines(&self) -> Vec<String> {
        let code = self.code.as_ref().map(|code| format!(" [{code}]")).unwrap_or_default();
        let mut lines = vec![format!("{}{code}", self.message)];
        lines.extend(self.found.details.iter().cloned());
        lines
    }
}

impl<E: Into<CliError>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error: CliError = error.into();
        Self { code: Some(error.code.to_string()), ..Self::new(Kind::Error, error.message) }
    }
}
