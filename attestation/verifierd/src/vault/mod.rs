//! Keys that something else holds and never gives away: a token of PKCS #11, or, behind the same
//! trait, the key management service of a cloud.

#[cfg(feature = "pkcs11")]
pub mod pkcs11;

use std::sync::Arc;

use shef_proto::hpke_suite::PublicKey;
use shef_verify::jwt::{self, JwtError};
use tokio::task::block_in_place;
use zeroize::Zeroizing;

use crate::problem::Result;

/// A holder of keys, which it knows by their labels.
pub trait Vault: Send + Sync {
    /// The public key of a pair on P-256.
    ///
    /// # Errors
    /// There is no such pair, or the holder does not answer.
    fn public_key(&self, label: &str) -> Result<PublicKey>;

    /// The signature `r | s` of ECDSA with SHA-256, with either s.
    ///
    /// # Errors
    /// There is no such pair, or the holder does not answer.
    fn sign(&self, label: &str, message: &[u8]) -> Result<[u8; 64]>;

    /// Seals a key of 32 bytes under a key of the holder.
    ///
    /// # Errors
    /// There is no such key, or the holder does not answer.
    fn seal(&self, label: &str, key: &[u8; 32]) -> Result<Vec<u8>>;

    /// Opens what [`Vault::seal`] has sealed.
    ///
    /// # Errors
    /// The bytes were not sealed under this key, the key is missing, or the holder does not answer.
    fn open(&self, label: &str, sealed: &[u8]) -> Result<Zeroizing<[u8; 32]>>;

    /// Makes the keys with these labels that are missing: a pair that signs, a key that seals.
    /// Returns the labels of those that it made.
    ///
    /// # Errors
    /// The holder refuses, or does not answer.
    fn make(&self, pair: Option<&str>, seals: Option<&str>) -> Result<Vec<String>>;
}

/// A pair of a vault, which signs.
pub struct VaultKey {
    vault: Arc<dyn Vault>,
    label: String,
    /// Name in headers.
    kid: String,
}

impl VaultKey {
    /// The pair with this label, under its name in headers.
    #[must_use]
    pub fn new(vault: Arc<dyn Vault>, label: &str, kid: String) -> Self {
        Self { vault, label: label.into(), kid }
    }

    /// Signs a message.
    ///
    /// # Errors
    /// As [`Vault::sign`].
    pub fn signature(&self, message: &[u8]) -> Result<[u8; 64]> {
        // A token may take its time.
        block_in_place(|| self.vault.sign(&self.label, message))
    }
}

impl jwt::Signer for VaultKey {
    fn key_id(&self) -> &str {
        &self.kid
    }

    fn sign(&self, message: &[u8]) -> Result<[u8; 64], JwtError> {
        self.signature(message).map_err(|problem| JwtError::Signer { text: problem.with_cause() })
    }
}
