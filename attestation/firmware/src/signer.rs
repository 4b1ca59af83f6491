//! Whose kernels the boot ROM starts.

/// SHA-256 of the public key (`x | y`) that kernels are signed with. This one belongs to simulated
/// devices, and `cargo xtask firmware` signs with it: everybody has its private key. A manufacturer
/// puts the digest of a key of its own here.
pub const SIGNER: [u8; 32] = [0; 32];

/// Least security version of a kernel that starts.
pub const LEAST_SVN: u64 = 1;
