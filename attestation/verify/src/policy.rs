//! What an appraisal demands, as typed TOML.

use serde::{Deserialize, Serialize};
use shef_proto::config::OnFault;
use shef_proto::evidence::RootOfTrust;

/// Policy, reference values or anchors that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The policy.
    #[error("policy: {text}")]
    Policy {
        /// What and where.
        text: String,
    },
    /// The reference values.
    #[error("reference values: {text}")]
    Reference {
        /// What and where.
        text: String,
    },
    /// A trust anchor.
    #[error("trust anchor {name}: {text}")]
    Anchor {
        /// Its name.
        name: String,
        /// What is wrong.
        text: String,
    },
}

impl PolicyError {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Policy { .. } => "SHEF-ATT-050",
            Self::Reference { .. } => "SHEF-ATT-051",
            Self::Anchor { .. } => "SHEF-ATT-052",
        }
    }
}

/// Demands of one relying party. What a policy does not allow by name is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Name of the policy; shows in every appraisal.
    pub id: String,
    /// Kinds of root of trust that are accepted: `shef-boot`, `board`, `provider`, `simulated`.
    pub root_of_trust: Vec<String>,
    /// Accept devices in debug mode. They protect nothing.
    #[serde(default)]
    pub allow_debug: bool,
    /// Accept devices that draw from a test's seed. They protect nothing.
    #[serde(default)]
    pub allow_seeded: bool,
    /// Least security version of the kernel.
    pub min_kernel_svn: u64,
    /// Least security version of the image.
    #[serde(default)]
    pub min_image_svn: u64,
    /// Fault policies that are accepted: `shield`, `halt`, `region`.
    #[serde(default = "default_on_fault")]
    pub on_fault: Vec<String>,
    /// Names of regions that may be without protection.
    #[serde(default)]
    pub bypass: Vec<String>,
    /// States of the Shield that are accepted: `fresh`, `keyed`, `closed`.
    #[serde(default = "default_states")]
    pub states: Vec<String>,
    /// Types of device that are accepted; none named: any.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Devices that are accepted, by ueid in hexadecimal; none named: any.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Devices that are refused, by ueid in hexadecimal.
    #[serde(default)]
    pub revoked: Vec<String>,
}

fn default_on_fault() -> Vec<String> {
    vec![OnFault::Shield.name().into(), OnFault::Halt.name().into()]
}

fn default_states() -> Vec<String> {
    vec!["fresh".into()]
}

impl Policy {
    /// A policy that accepts these kinds of root of trust and is strict in everything else.
    #[must_use]
    pub fn strict(id: &str, kinds: &[RootOfTrust]) -> Self {
        Self {
            id: id.into(),
            root_of_trust: kinds.iter().map(|kind| kind.name().into()).collect(),
            allow_debug: false,
            allow_seeded: false,
            min_kernel_svn: 1,
            min_image_svn: 1,
            on_fault: default_on_fault(),
            bypass: Vec::new(),
            states: default_states(),
            targets: Vec::new(),
            devices: Vec::new(),
            revoked: Vec::new(),
        }
    }

    /// Reads a policy.
    ///
    /// # Errors
    /// Not TOML, an unknown key, a missing one, or a name that does not exist.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        let policy: Self = toml::from_str(text).map_err(|error| PolicyError::Policy { text: error.to_string() })?;
        policy.check()?;
        Ok(policy)
    }

    /// The policy as TOML.
    ///
    /// # Errors
    /// Never for a policy that was read; a policy with impossible values cannot be written.
    pub fn to_toml(&self) -> Result<String, PolicyError> {
        toml::to_string(self).map_err(|error| PolicyError::Policy { text: error.to_string() })
    }

    fn check(&self) -> Result<(), PolicyError> {
        let bad = |what: &str, name: &str| Err(PolicyError::Policy { text: format!("{what} {name:?} does not exist") });
        if self.root_of_trust.is_empty() {
            return Err(PolicyError::Policy { text: "root_of_trust is empty: such a policy accepts nothing".into() });
        }
        for name in &self.root_of_trust {
            if RootOfTrust::from_name(name).is_none() {
                return bad("root_of_trust", name);
            }
        }
        for name in &self.on_fault {
            if OnFault::from_name(name).is_none() {
                return bad("on_fault", name);
            }
        }
        for name in &self.states {
            if !["fresh", "keyed", "closed"].contains(&name.as_str()) {
                return bad("state", name);
            }
        }
        for name in self.devices.iter().chain(&self.revoked) {
            if name.len() != 66 || hex::decode(name).is_err() || name.bytes().any(|byte| byte.is_ascii_uppercase()) {
                return Err(PolicyError::Policy { text: format!("{name:?} is not a ueid: 66 hexadecimal digits, lower case") });
            }
        }
        Ok(())
    }
}
