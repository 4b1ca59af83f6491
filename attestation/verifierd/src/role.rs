//! Roles of an identity, and what a request needs.

/// What an identity may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sessions and appraisals.
    Attest,
    /// These, and key releases.
    Release,
    /// Reading everything but secrets.
    Audit,
    /// All of the tenant.
    Operator,
}

/// What a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: health, keys for verification.
    Open,
    /// To submit evidence.
    Attest,
    /// To have keys released.
    Release,
    /// To read.
    Read,
    /// To change.
    Operate,
}

impl Role {
    /// Name in configuration and certificates.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Attest => "attest",
            Self::Release => "release",
            Self::Audit => "audit",
            Self::Operator => "operator",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Attest, Self::Release, Self::Audit, Self::Operator]
            .into_iter()
            .find(|role| role.name() == name)
    }

    /// Whether this role may do that.
    #[must_use]
    pub fn may(self, need: Need) -> bool {
        match need {
            Need::Open => true,
            Need::Attest => self != Self::Audit,
            Need::Release => matches!(self, Self::Release | Self::Operator),
            Need::Read => matches!(self, Self::Audit | Self::Operator),
            Need::Operate => self == Self::Operator,
        }
    }
}
