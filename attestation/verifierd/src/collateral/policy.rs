//! Policies as they are stored: a typed part, and a part in Rego.

use serde::Deserialize;
use shef_verify::{AppraisalPolicy, Rego};

use crate::problem::{Because, Kind, Result};
use crate::secrets::sha256;

/// Media type of a typed policy.
pub const POLICY_TOML: &str = "application/toml";
/// Media type of a policy with both parts: `{"typed": TOML, "rego": Rego}`.
pub const POLICY_JSON: &str = "application/json";
/// Media types of policies.
pub const POLICY_TYPES: &[&str] = &[POLICY_TOML, POLICY_JSON];
/// One version of a policy.
#[derive(Clone, Debug)]
pub struct StoredPolicy {
    /// Name.
    pub name: String,
    /// Version.
    pub version: i64,
    /// SHA-256 of its text.
    pub sha256: [u8; 32],
    pub(super) policy: AppraisalPolicy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BothParts {
    typed: String,
    rego: String,
}

impl StoredPolicy {
    /// Parses a policy. Its part in Rego gets only basic checks:
    /// [`WorkQueue::check`](crate::work_queue::WorkQueue::check) parses it.
    ///
    /// # Errors
    /// Not a policy.
    pub fn parse(name: &str, version: i64, media_type: &str, content: &[u8]) -> Result<Self> {
        let bad = |text: String| Kind::Policy.because(text);
        let typed =
            |text: &str| AppraisalPolicy::from_toml(text).map_err(|error| bad(error.to_string()));
        let text = std::str::from_utf8(content).map_err(|_| bad("not UTF-8".into()))?;
        let policy = match media_type {
            POLICY_TOML => typed(text)?,
            POLICY_JSON => {
                let both: BothParts =
                    serde_json::from_str(text).map_err(|error| bad(error.to_string()))?;
                typed(&both.typed)?
                    .with_rego(Rego::new(&both.rego).map_err(|error| bad(error.to_string()))?)
            }
            other => {
                return Err(bad(format!(
                    "content type {other}, expected one of {}",
                    POLICY_TYPES.join(", ")
                )));
            }
        };
        Ok(Self { name: name.into(), version, sha256: sha256(content), policy })
    }

    /// Its part in Rego.
    #[must_use]
    pub fn rego(&self) -> Option<&Rego> {
        self.policy.rego()
    }

    /// Whether keys under this policy may be marked as the host's.
    #[must_use]
    pub fn to_host(&self) -> bool {
        self.policy.typed().to_host
    }

    /// `name@version`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}
