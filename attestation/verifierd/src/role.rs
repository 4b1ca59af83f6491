//! Roles of an identity, and the rights that requests need.

/// Role of an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Sessions and appraisals.
    Attest,
    /// The same, and key releases.
    Release,
    /// Read access to everything except secrets.
    Audit,
    /// Everything within the tenant.
    Operator,
}

/// Right that a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// No right: health, keys for verification.
    Open,
    /// Submit evidence.
    Attest,
    /// Have keys released.
    Release,
    /// Read.
    Read,
    /// Make changes.
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

    /// Whether this role has a right.
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
