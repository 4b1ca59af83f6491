//! Where a party's randomness comes from.

use shef_proto::entropy::{Entropy, SeededEntropy};
use shef_proto::evidence::RootOfTrust;

use crate::SdkError;

/// The operating system's source.
pub struct SystemEntropy(());

impl SystemEntropy {
    /// Tries the source once.
    ///
    /// # Errors
    /// [`SdkError::Entropy`].
    pub fn new() -> Result<Self, SdkError> {
        getrandom::fill(&mut [0; 16]).map_err(|e| SdkError::Entropy { reason: e.to_string() })?;
        Ok(Self(()))
    }
}

impl Entropy for SystemEntropy {
    fn fill(&mut self, out: &mut [u8]) {
        // The source worked when this was created. Falling back to weaker bytes would be worse than
        // stopping.
        if let Err(error) = getrandom::fill(out) {
            panic!("the operating system gave no random bytes: {error}");
        }
    }
}

/// Either source.
pub enum Source {
    /// The operating system's.
    System(SystemEntropy),
    /// Repeatable bytes, for comparisons between simulated devices only.
    Seeded(Box<SeededEntropy>),
}

impl Source {
    /// The operating system's source, or with a seed the repeatable stream of `party`.
    ///
    /// # Errors
    /// [`SdkError::Entropy`].
    pub fn new(seed: Option<u64>, party: &str) -> Result<Self, SdkError> {
        Ok(match seed {
            Some(seed) => Self::Seeded(Box::new(SeededEntropy::new(seed, party))),
            None => Self::System(SystemEntropy::new()?),
        })
    }
}

impl Entropy for Source {
    fn fill(&mut self, out: &mut [u8]) {
        match self {
            Self::System(source) => source.fill(out),
            Self::Seeded(source) => source.fill(out),
        }
    }

    fn is_seeded(&self) -> bool {
        matches!(self, Self::Seeded(_))
    }
}

/// A seed's bytes are for simulated devices only.
///
/// # Errors
/// [`SdkError::Seeded`].
pub(crate) fn fit_for(entropy: &dyn Entropy, kind: RootOfTrust) -> Result<(), SdkError> {
    if entropy.is_seeded() && kind != RootOfTrust::Simulated {
        Err(SdkError::Seeded { kind: kind.name() })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_for_simulated_devices_only() {
        use RootOfTrust::{Board, Provider, ShefBoot, Simulated};
        let mut seeded = Source::new(Some(1), "owner").unwrap();
        let mut system = Source::new(None, "owner").unwrap();
        for kind in [ShefBoot, Board, Provider] {
            for source in [&seeded as &dyn Entropy, &SeededEntropy::new(1, "owner")] {
                assert_eq!(
                    fit_for(source, kind).unwrap_err().code(),
                    "SHEF-SDK-044",
                    "{}",
                    kind.name()
                );
            }
            assert_eq!(
                fit_for(&&mut seeded, kind).unwrap_err().code(),
                "SHEF-SDK-044",
                "{}",
                kind.name()
            );
            fit_for(&&mut system, kind).unwrap();
        }
        fit_for(&seeded, Simulated).unwrap();
    }
}
