//! ECDSA P-256 verification: the portable one, and with feature `aws-lc` a faster one for services.

pub use shef_proto::cose::{VerifyFn, verify as portable};

/// Verification by aws-lc-rs. For [`crate::Request::verify`].
#[cfg(feature = "aws-lc")]
#[must_use]
pub fn aws_lc(key: &shef_proto::hpke_suite::PublicKey, message: &[u8], signature: &[u8; 64]) -> bool {
    use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.as_bytes()).verify(message, signature).is_ok()
}
