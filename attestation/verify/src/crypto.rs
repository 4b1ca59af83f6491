//! ECDSA P-256: the portable verification, and with feature `aws-lc` a faster one and a signer for
//! services.

pub use shef_proto::cose::{VerifyFn, verify as portable};

#[cfg(feature = "aws-lc")]
pub use aws::{AwsLcKey, aws_lc, aws_lc_ready};

use std::fmt;
use std::sync::Arc;

use shef_proto::cose::SIGNATURE_LEN;
use shef_proto::hpke_suite::PublicKey;

/// Verification of a message and `r | s`.
type Verification = dyn Fn(&[u8], &[u8; SIGNATURE_LEN]) -> bool + Send + Sync;

/// A public key that an implementation has decoded and found on the curve, once for many
/// verifications.
#[derive(Clone)]
pub struct ReadyKey(Arc<Verification>);

/// Prepares a key; `None` if the key is invalid.
pub type ReadyFn = fn(&PublicKey) -> Option<ReadyKey>;

impl ReadyKey {
    /// A key given by its verification of a message and `r | s`.
    pub fn new(
        verify: impl Fn(&[u8], &[u8; SIGNATURE_LEN]) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(verify))
    }

    /// True if `signature` (`r | s`) is this key's over `message`.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &[u8; SIGNATURE_LEN]) -> bool {
        (self.0)(message, signature)
    }
}

impl fmt::Debug for ReadyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadyKey")
    }
}

#[cfg(feature = "aws-lc")]
mod aws {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, ParsedPublicKey,
        UnparsedPublicKey,
    };
    use shef_proto::hpke_suite::{PrivateKey, PublicKey};

    use super::ReadyKey;
    use crate::jwt::{JwtError, Signer};

    /// Verification by aws-lc-rs, for [`crate::AppraisalRequest::verify`].
    #[must_use]
    pub fn aws_lc(key: &PublicKey, message: &[u8], signature: &[u8; 64]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.as_bytes())
            .verify(message, signature)
            .is_ok()
    }

    /// Key preparation by aws-lc-rs, for [`crate::MemoryChainCache::with_ready_keys`].
    #[must_use]
    pub fn aws_lc_ready(key: &PublicKey) -> Option<ReadyKey> {
        let key = ParsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.as_bytes()).ok()?;
        Some(ReadyKey::new(move |message, signature| key.verify_sig(message, signature).is_ok()))
    }

    /// A result-signing key held by aws-lc-rs. The library randomises its signatures.
    pub struct AwsLcKey {
        kid: String,
        pair: EcdsaKeyPair,
    }

    impl AwsLcKey {
        /// The key with this private scalar, under this name.
        ///
        /// # Errors
        /// The library rejects the key.
        pub fn new(kid: &str, private: &PrivateKey) -> Result<Self, JwtError> {
            let (secret, public) = (private.to_bytes(), private.public_key());
            EcdsaKeyPair::from_private_key_and_public_key(
                &ECDSA_P256_SHA256_FIXED_SIGNING,
                &secret[..],
                public.as_bytes(),
            )
            .map(|pair| Self { kid: kid.into(), pair })
            .map_err(|error| JwtError::Signer { text: error.to_string() })
        }
    }

    impl Signer for AwsLcKey {
        fn key_id(&self) -> &str {
            &self.kid
        }

        fn sign(&self, message: &[u8]) -> Result<[u8; 64], JwtError> {
            let unusable = |text: &str| JwtError::Signer { text: text.into() };
            let signature = self
                .pair
                .sign(&SystemRandom::new(), message)
                .map_err(|_| unusable("no signature"))?;
            signature.as_ref().try_into().map_err(|_| unusable("a signature of another length"))
        }
    }
}
