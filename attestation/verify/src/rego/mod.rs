//! Appraisal policies in Rego: text and evaluation.
//!
//! A policy is untrusted code. [`Rego`] scans its text without parsing it, and an appraisal uses
//! the caller's [`Evaluate`]. A service, or a command that handles third-party policies, runs them
//! in a separate process (`shef-rego`).

#[cfg(feature = "rego")]
mod look;
#[cfg(feature = "rego")]
mod program;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use shef_proto::evidence::{Claims, EntropySource};

use crate::files::{PolicyError, policy_id};
#[cfg(feature = "rego")]
use look::look_over;
#[cfg(feature = "rego")]
pub use program::{Program, may_call};

/// Maximum size of a policy.
pub const MAX_BYTES: usize = 64 * 1024;

/// Maximum time of one evaluation; a longer one denies. The engine reads the wall clock; a caller
/// that can measure processor time extends the limit on a busy machine.
pub const MAX_TIME: Duration = Duration::from_secs(1);

/// A Rego policy, `package shef` with a rule `allow`: text that is scanned but not yet parsed.
#[derive(Clone, PartialEq, Eq)]
pub struct Rego {
    text: Arc<str>,
    id: String,
}

impl fmt::Debug for Rego {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rego").field("id", &self.id).finish_non_exhaustive()
    }
}

shef_proto::coded! {
    /// Why a policy gave no answer. An undecided policy denies.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum RegoError {
        /// The policy failed, or its answer is not a boolean.
        #[error("{text}")]
        Failed {
            /// The problem and its place.
            text: String,
        } = "SHEF-ATT-048",
        /// It took too long.
        #[error("it took longer than {} ms", MAX_TIME.as_millis())]
        Time = "SHEF-ATT-055": "Rego policy passed a limit",
            "One evaluation may take 64 MiB of memory and one second. The policy was ended and the evidence denied. Look for products of \
             lists and for texts or numbers that grow.",
        /// Its process exceeded a limit and ended.
        #[error("its process passed a limit and ended: {text}")]
        Ended {
            /// The limits, and the cause of its end.
            text: String,
        } = "SHEF-ATT-055",
        /// It exceeded its limits too often.
        #[error("it passed its limits {times} times in a row: it is not run again for {seconds} s")]
        Refused {
            /// How often.
            times: u32,
            /// Duration of the pause.
            seconds: u64,
        } = "SHEF-ATT-056": "Rego policy is not run for a while",
            "It passed its limits several times in a row (SHEF-ATT-055). The text says for how long; a policy with another text is run at \
             once.",
        /// No evaluator is available.
        #[error("policies in Rego are not run: {text}")]
        Unavailable {
            /// Why.
            text: String,
        } = "SHEF-ATT-057": "Rego policies are not run here",
            "The process in which policies run did not start, or the caller of the library gave none. The text says why; the evidence was \
             denied.",
    }
}

/// Evaluates Rego policies for an appraisal.
pub trait Evaluate: Sync {
    /// Whether the policy allows `input`, a JSON object.
    ///
    /// # Errors
    /// The policy could not be decided.
    fn evaluate(&self, policy: &Rego, input: &str) -> Result<bool, RegoError>;
}

/// Evaluates in this process, for the caller's own policies and for tests. A policy can use up all
/// memory, which kills the process, and unbounded time in one step.
#[cfg(feature = "rego")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Unconfined;

#[cfg(feature = "rego")]
impl Evaluate for Unconfined {
    fn evaluate(&self, policy: &Rego, input: &str) -> Result<bool, RegoError> {
        policy
            .compile()
            .map_err(|error| RegoError::Failed { text: error.to_string() })?
            .evaluate(input)
    }
}

impl Rego {
    /// Scans a policy. Only [`Rego::compile`] determines whether it is valid.
    ///
    /// # Errors
    /// Too long, too deeply nested, or calls a function that is not allowed; any policy if feature
    /// `rego` is off.
    pub fn new(text: &str) -> Result<Self, PolicyError> {
        look_over(text)?;
        Ok(Self { text: text.into(), id: policy_id(text) })
    }

    /// Id: SHA-256 of the text.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Parses and analyses the policy. The parser's memory use is unbounded, so third-party
    /// policies must be compiled in a separate process.
    ///
    /// # Errors
    /// Not Rego (with line and column), a package other than `shef`, or no rule `allow`.
    #[cfg(feature = "rego")]
    pub fn compile(&self) -> Result<Program, PolicyError> {
        Program::new(&self.text)
    }
}

/// Without the engine no function is known to be safe, so every policy is rejected.
#[cfg(not(feature = "rego"))]
fn look_over(_: &str) -> Result<(), PolicyError> {
    Err(PolicyError::Rego {
        text: "this program was built without Rego: expected the cargo feature `rego`".into(),
    })
}

/// The input of a policy: the claims of the evidence, with their names in reports, and the time.
#[derive(Serialize)]
struct Input<'a> {
    layer: &'a str,
    now: i64,
    audience: &'a str,
    ueid: String,
    target: &'a str,
    debug: &'a str,
    root_of_trust: &'a str,
    kernel_digest: String,
    kernel_svn: u64,
    shell_digest: String,
    seeded: bool,
    entropy: &'a str,
    #[serde(flatten)]
    shield: Option<ShieldInput<'a>>,
}

#[derive(Serialize)]
struct ShieldInput<'a> {
    image_digest: String,
    config_digest: String,
    design_digest: String,
    image_svn: u64,
    accelerator: &'a str,
    vendor: String,
    on_fault: &'a str,
    bypass: &'a [String],
    state: &'a str,
}

/// The input document of an appraisal, in JSON.
pub(crate) fn input(claims: &Claims, now: i64) -> String {
    let c = &claims.common;
    let hex = |bytes: &[u8]| hex_simd::encode_to_string(bytes, hex_simd::AsciiCase::Lower);
    let input = Input {
        layer: claims.layer().name(),
        now,
        audience: &c.audience,
        ueid: hex(&c.ueid),
        target: &c.target,
        debug: c.debug.name(),
        root_of_trust: c.root_of_trust.name(),
        kernel_digest: hex(&c.kernel_digest),
        kernel_svn: c.kernel_svn,
        shell_digest: hex(&c.shell_digest),
        seeded: c.entropy == EntropySource::Seeded,
        entropy: c.entropy.name(),
        shield: claims.shield.as_ref().map(|s| ShieldInput {
            image_digest: hex(&s.image_digest),
            config_digest: hex(&s.config_digest),
            design_digest: hex(&s.design_digest),
            image_svn: s.image_svn,
            accelerator: &s.accelerator,
            vendor: hex(&s.vendor),
            on_fault: s.on_fault.name(),
            bypass: &s.bypass,
            state: s.state.name(),
        }),
    };
    // An object of strings and numbers always has a JSON form. Without input, a policy that needs
    // input allows nothing.
    serde_json::to_string(&input).unwrap_or_default()
}
