//! The committed table of expected outcomes.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::Seen;

/// Expected outcome of a form of a case.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expectation {
    /// Stable code, or accepted.
    pub code: String,
    /// First failed check of the appraisal; if empty, the code itself.
    pub check: String,
    /// AR4SI claims of the appraisal; `all` stands for every claim that it makes.
    pub ar4si: BTreeMap<String, i8>,
}

impl Expectation {
    /// The first difference, or `None`.
    #[must_use]
    pub fn misfit(&self, seen: &Seen) -> Option<String> {
        if seen.code != self.code {
            return Some(format!("{}: {} expected, {} came", seen.variant, self.code, seen.code));
        }
        if let Some(check) = &seen.check {
            let expected = if self.check.is_empty() { &self.code } else { &self.check };
            if check != expected {
                return Some(format!(
                    "{}: check {expected} expected, {check} failed",
                    seen.variant
                ));
            }
        }
        let claims = seen.claims.as_ref();
        for (name, value) in &self.ar4si {
            let fits = match claims {
                None => false,
                Some(claims) if name == "all" => {
                    !claims.is_empty() && claims.values().all(|claim| claim == value)
                }
                Some(claims) => claims.get(name) == Some(value),
            };
            if !fits {
                return Some(format!("{}: {name} {value} expected, {claims:?} came", seen.variant));
            }
        }
        None
    }

    /// The AR4SI claims as text.
    #[must_use]
    pub fn claims(&self) -> String {
        self.ar4si
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Variant {
    code: Option<String>,
    check: Option<String>,
    ar4si: Option<BTreeMap<String, i8>>,
}

/// One row of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Number.
    pub id: u32,
    /// Heading in the documentation.
    pub group: String,
    /// The defect of the input.
    pub name: String,
    /// Why the case cannot be run.
    pub not_applicable: Option<String>,
    #[serde(default)]
    code: String,
    #[serde(default)]
    check: String,
    #[serde(default)]
    ar4si: BTreeMap<String, i8>,
    #[serde(default)]
    variants: BTreeMap<String, Variant>,
}

impl Case {
    /// Expected outcome of this form of the case.
    #[must_use]
    pub fn expectation(&self, variant: &str) -> Expectation {
        let own = self.variants.get(variant);
        Expectation {
            code: own.and_then(|own| own.code.clone()).unwrap_or_else(|| self.code.clone()),
            check: own.and_then(|own| own.check.clone()).unwrap_or_else(|| self.check.clone()),
            ar4si: own.and_then(|own| own.ar4si.clone()).unwrap_or_else(|| self.ar4si.clone()),
        }
    }

    /// Forms that the table names.
    pub fn named(&self) -> impl Iterator<Item = &str> {
        self.variants.keys().map(String::as_str)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

/// The table.
///
/// # Panics
/// If the committed file is malformed.
#[must_use]
pub fn table() -> &'static [Case] {
    static TABLE: OnceLock<Vec<Case>> = OnceLock::new();
    TABLE.get_or_init(|| {
        toml::from_str::<File>(include_str!("../expected.toml"))
            .expect("expected.toml is of its form")
            .case
    })
}
