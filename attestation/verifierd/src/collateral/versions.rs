//! The highest version that is known of each CoRIM, by its id and its signer.

use std::collections::HashMap;

use shef_verify::corim::{Corim, CorimError, CorimSigner};

use crate::problem::{Because, Kind, Result};
use crate::secrets::sha256;
use crate::store::CorimVersion;

/// The version of a CoRIM to remember, under each key of its signer.
pub(super) fn versions(corim: &Corim) -> Result<Vec<CorimVersion>> {
    let version = i64::try_from(corim.version).map_err(|_| {
        Kind::Corim.because(format!(
            "version {} of {}: expected at most {}",
            corim.version,
            corim.id,
            i64::MAX
        ))
    })?;
    Ok(corim
        .signer_keys
        .iter()
        .map(|key| CorimVersion { signer: signer_id(key), id: corim.id.clone(), version })
        .collect())
}

/// How the store names the signer of a CoRIM: by its key. Versions before 0.2 stored the signer's
/// registered name.
fn signer_id(key: &[u8; 32]) -> String {
    format!("key:{}", hex::encode(key))
}

/// Converts versions that were remembered under a signer's name (before 0.2) to the current key of
/// that name.
pub(super) fn by_key(known: &[CorimVersion], signers: &[CorimSigner]) -> Vec<CorimVersion> {
    let keys: HashMap<&str, String> = signers
        .iter()
        .map(|signer| (signer.name(), signer_id(&sha256(signer.key().as_bytes()))))
        .collect();
    let converted = |known: &CorimVersion| {
        Some(CorimVersion { signer: keys.get(known.signer.as_str())?.clone(), ..known.clone() })
    };
    known.iter().filter_map(converted).collect()
}

/// Known versions.
pub(super) struct Known<'a>(HashMap<(&'a str, &'a str), u64>);

impl<'a> Known<'a> {
    /// The highest of these versions of each CoRIM.
    pub(super) fn new(versions: impl IntoIterator<Item = &'a CorimVersion>) -> Self {
        let mut highest = HashMap::new();
        for known in versions {
            let version = known.version.unsigned_abs();
            highest
                .entry((known.id.as_str(), known.signer.as_str()))
                .and_modify(|highest| *highest = version.max(*highest))
                .or_insert(version);
        }
        Self(highest)
    }

    /// Whether this version, or a higher one, is known.
    pub(super) fn holds(&self, version: &CorimVersion) -> bool {
        self.0
            .get(&(version.id.as_str(), version.signer.as_str()))
            .is_some_and(|highest| *highest >= version.version.unsigned_abs())
    }

    /// Rejects a CoRIM if a higher version was ever known, even one that was removed or has expired.
    pub(super) fn admit(&self, corim: &Corim) -> Result<()> {
        let [first, second] = corim.signer_keys.each_ref().map(signer_id);
        let highest = [&first, &second, &corim.signer]
            .into_iter()
            .filter_map(|signer| self.0.get(&(corim.id.as_str(), signer.as_str())))
            .max()
            .copied()
            .unwrap_or(0);
        if corim.version >= highest {
            return Ok(());
        }
        let error = CorimError::Older {
            id: corim.id.clone(),
            signer: corim.signer.clone(),
            version: corim.version,
            known: highest,
        };
        Err(Kind::Corim.because(format!("{error} ({})", error.code())))
    }
}
