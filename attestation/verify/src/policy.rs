//! The demands of an appraisal: typed TOML for the common ones, Rego for the rest.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use shef_proto::config::OnFault;
use shef_proto::evidence::{AcceptedEntropy, RootOfTrust};

use crate::files::{PolicyError, policy_id};
use crate::name;
use crate::rego::Rego;

/// A kind of name in a policy.
pub(crate) trait Name {
    const WHAT: &'static str;
    /// The canonical spelling of the name in `text`, if it is one.
    fn read(text: &str) -> Option<String>;
}

fn known(text: &str, known: bool) -> Option<String> {
    known.then(|| text.to_owned())
}

struct Kind;
impl Name for Kind {
    const WHAT: &'static str = "a kind of root of trust: shef-boot, board, provider or simulated";
    fn read(text: &str) -> Option<String> {
        known(text, RootOfTrust::from_name(text).is_some())
    }
}

struct FaultPolicy;
impl Name for FaultPolicy {
    const WHAT: &'static str = "a fault policy: shield, halt or region";
    fn read(text: &str) -> Option<String> {
        known(text, OnFault::from_name(text).is_some())
    }
}

struct State;
impl Name for State {
    const WHAT: &'static str = "a state: fresh, keyed or closed";
    fn read(text: &str) -> Option<String> {
        known(text, ["fresh", "keyed", "closed"].contains(&text))
    }
}

struct Noise;
impl Name for Noise {
    const WHAT: &'static str = "a noise source: tested or unmeasured";
    fn read(text: &str) -> Option<String> {
        known(text, AcceptedEntropy::from_name(text).is_some())
    }
}

pub(crate) struct Ueid;
impl Name for Ueid {
    const WHAT: &'static str = name::UEID;
    fn read(text: &str) -> Option<String> {
        name::ueid(text)
    }
}

pub(crate) struct DigestName;
impl Name for DigestName {
    const WHAT: &'static str = name::DIGEST;
    fn read(text: &str) -> Option<String> {
        name::digest(text)
    }
}

pub(crate) struct Serial;
impl Name for Serial {
    const WHAT: &'static str = name::SERIAL;
    fn read(text: &str) -> Option<String> {
        name::serial(text)
    }
}

/// A name that is checked while it is parsed, so that the error has its line and column.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Checked<N>(String, PhantomData<N>);

impl<'de, N: Name> Deserialize<'de> for Checked<N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let name = N::read(&text)
            .ok_or_else(|| D::Error::custom(format!("{text:?} is not {}", N::WHAT)))?;
        Ok(Self(name, PhantomData))
    }
}

fn list<'de, N: Name, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<Checked<N>>::deserialize(deserializer)?.into_iter().map(|name| name.0).collect())
}

fn at_least_one<'de, N: Name, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<String>, D::Error> {
    let names = list::<N, D>(deserializer)?;
    if names.is_empty() {
        Err(D::Error::custom("the list is empty: such a policy accepts nothing"))
    } else {
        Ok(names)
    }
}

pub(crate) fn set<'de, N: Name, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeSet<String>, D::Error> {
    list::<N, D>(deserializer).map(BTreeSet::from_iter)
}

/// Demands of one relying party. Anything that a policy does not allow by name is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Name of the policy, shown in every appraisal.
    pub id: String,
    /// Accepted kinds of root of trust: `shef-boot`, `board`, `provider`, `simulated`.
    #[serde(deserialize_with = "at_least_one::<Kind, _>")]
    pub root_of_trust: Vec<String>,
    /// Accept devices in debug mode. They protect nothing.
    #[serde(default)]
    pub allow_debug: bool,
    /// Accept devices that draw from a test's seed. They protect nothing.
    #[serde(default)]
    pub allow_seeded: bool,
    /// The weakest noise source that is accepted: `tested`, or `unmeasured` for one whose min-entropy
    /// was never measured too.
    #[serde(default, with = "entropy", skip_serializing_if = "is_tested")]
    pub entropy: AcceptedEntropy,
    /// Minimum security version of the kernel.
    pub min_kernel_svn: u64,
    /// Minimum security version of the image.
    #[serde(default)]
    pub min_image_svn: u64,
    /// Maximum seconds between challenge and appraisal; `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_age: Option<u32>,
    /// Deny without a current revocation list.
    #[serde(default)]
    pub require_revocation: bool,
    /// Keys marked for it may be released under this policy to a key of the card's host. It does
    /// not affect the appraisal.
    #[serde(default)]
    pub to_host: bool,
    /// Accepted fault policies: `shield`, `halt`, `region`.
    #[serde(default = "default_on_fault", deserialize_with = "list::<FaultPolicy, _>")]
    pub on_fault: Vec<String>,
    /// Names of regions that may be without protection.
    #[serde(default)]
    pub bypass: Vec<String>,
    /// Accepted states of the Shield: `fresh`, `keyed`, `closed`.
    #[serde(default = "default_states", deserialize_with = "list::<State, _>")]
    pub states: Vec<String>,
    /// Accepted types of device; empty for any.
    #[serde(default)]
    pub targets: Vec<String>,
    /// Accepted shells among the known ones, by measurement; empty for any known one.
    #[serde(default, deserialize_with = "set::<DigestName, _>")]
    pub shells: BTreeSet<String>,
    /// Accepted Shield configurations, by digest; empty for that of any known image.
    #[serde(default, deserialize_with = "set::<DigestName, _>")]
    pub configs: BTreeSet<String>,
    /// Accepted images among the known ones, by digest; empty for any known one.
    #[serde(default, deserialize_with = "set::<DigestName, _>")]
    pub images: BTreeSet<String>,
    /// Accelerators whose images are accepted, by name; empty for those of any known image.
    #[serde(default)]
    pub accelerators: BTreeSet<String>,
    /// IP vendors whose images are accepted, by SHA-256 of their public key; empty for the vendor
    /// of any known image.
    #[serde(default, deserialize_with = "set::<DigestName, _>")]
    pub image_signers: BTreeSet<String>,
    /// Accepted devices, by ueid in hexadecimal; empty for any.
    #[serde(default, deserialize_with = "set::<Ueid, _>")]
    pub devices: BTreeSet<String>,
    /// Refused devices, by ueid in hexadecimal.
    #[serde(default, deserialize_with = "set::<Ueid, _>")]
    pub revoked: BTreeSet<String>,
}

/// Reads and writes the weakest accepted noise source by its name.
mod entropy {
    use super::{AcceptedEntropy, Checked, Deserialize, Deserializer, Noise};
    use serde::Serializer;

    pub fn serialize<S: Serializer>(
        accepted: &AcceptedEntropy,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(accepted.name())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<AcceptedEntropy, D::Error> {
        let name = Checked::<Noise>::deserialize(deserializer)?.0;
        Ok(AcceptedEntropy::from_name(&name).unwrap_or_default())
    }
}

fn is_tested(accepted: &AcceptedEntropy) -> bool {
    *accepted == AcceptedEntropy::Tested
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
            entropy: AcceptedEntropy::Tested,
            min_kernel_svn: 1,
            min_image_svn: 1,
            max_age: None,
            require_revocation: false,
            to_host: false,
            on_fault: default_on_fault(),
            bypass: Vec::new(),
            states: default_states(),
            targets: Vec::new(),
            shells: BTreeSet::new(),
            configs: BTreeSet::new(),
            images: BTreeSet::new(),
            accelerators: BTreeSet::new(),
            image_signers: BTreeSet::new(),
            devices: BTreeSet::new(),
            revoked: BTreeSet::new(),
        }
    }

    /// Reads a policy.
    ///
    /// # Errors
    /// Not TOML, an unknown or missing key, or a name that does not exist, with line and column.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        toml::from_str(text).map_err(|error| PolicyError::Policy { text: error.to_string() })
    }

    /// The policy as TOML.
    ///
    /// # Errors
    /// A number that TOML cannot represent; never for a policy that was parsed.
    pub fn to_toml(&self) -> Result<String, PolicyError> {
        toml::to_string(self).map_err(|error| PolicyError::Policy { text: error.to_string() })
    }
}

/// An appraisal policy as a verifier runs it: the typed part, and the Rego part if any. Immutable;
/// its ids name its texts.
#[derive(Clone, Debug)]
pub struct AppraisalPolicy {
    typed: Policy,
    rego: Option<Rego>,
    ids: Vec<String>,
}

impl From<Policy> for AppraisalPolicy {
    fn from(policy: Policy) -> Self {
        Self::new(policy)
    }
}

impl AppraisalPolicy {
    /// Reads the typed part.
    ///
    /// # Errors
    /// As [`Policy::from_toml`].
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        Ok(Self { typed: Policy::from_toml(text)?, rego: None, ids: vec![policy_id(text)] })
    }

    /// A policy made in code. Its text is that of [`Policy::to_toml`], or JSON if it holds a number
    /// that TOML cannot represent.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        let text = policy
            .to_toml()
            .ok()
            .or_else(|| serde_json::to_string(&policy).ok())
            .unwrap_or_default();
        Self { typed: policy, rego: None, ids: vec![policy_id(&text)] }
    }

    /// Adds a policy in Rego, which must allow as well.
    #[must_use]
    pub fn with_rego(mut self, rego: Rego) -> Self {
        self.ids.truncate(1);
        self.ids.push(rego.id().to_owned());
        self.rego = Some(rego);
        self
    }

    /// The typed part.
    #[must_use]
    pub fn typed(&self) -> &Policy {
        &self.typed
    }

    /// The Rego part.
    #[must_use]
    pub fn rego(&self) -> Option<&Rego> {
        self.rego.as_ref()
    }

    /// Ids of its texts, typed part first.
    #[must_use]
    pub fn ids(&self) -> &[String] {
        &self.ids
    }
}
