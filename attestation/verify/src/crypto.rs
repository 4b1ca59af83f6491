//! ECDSA P-256: the portable verification, and with feature `aws-lc` a faster one, and a signer, for services.

pub use shef_proto::cose::{VerifyFn, verify as portable};

#[cfg(feature = "aws-lc")]
pub use aws::{AwsLcKey, aws_lc};

#[cfg(feature = "aws-lc")]
mod aws {
    use aws_lc_rs::rand::SystemRandom;
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey};
    use shef_proto::hpke_suite::{PrivateKey, PublicKey};

    use crate::jwt::{JwtError, Signer};

    /// Verification by aws-lc-rs, for [`crate::Request::verify`].
    #[must_use]
    pub fn aws_lc(key: &PublicKey, message: &[u8], signature: &[u8; 64]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.as_bytes()).verify(message, signature).is_ok()
    }

    /// A key that signs results, held by aws-lc-rs. Its signatures are randomised by that library.
    pub struct AwsLcKey {
        kid: String,
        pair: EcdsaKeyPair,
    }

    impl AwsLcKey {
        /// The key with this private scalar, under this name.
        ///
        /// # Errors
        /// The library does not take it.
        pub fn new(kid: &str, private: &PrivateKey) -> Result<Self, JwtError> {
            let (secret, public) = (private.to_bytes(), private.public_key());
            EcdsaKeyPair::from_private_key_and_public_key(&ECDSA_P256_SHA256_FIXED_SIGNING, &secret[..], public.as_bytes())
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
            let signature = self.pair.sign(&SystemRandom::new(), message).map_err(|_| unusable("no signature"))?;
            signature.as_ref().try_into().map_err(|_| unusable("a signature of another length"))
        }
    }
}
