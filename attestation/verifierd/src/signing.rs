//! The command that rotates the key that signs results and receipts.

use std::path::Path;

use shef_files::{self as files, Owner};
use shef_proto::hpke_suite::generate_key_pair;

use crate::config::Config;
use crate::held::signer;
use crate::init::hex_line;
use crate::problem::{Kind, Result};
use crate::secrets::{SystemEntropy, thumbprint};

/// Replaces a file as a whole.
fn exchange(path: &Path, mode: u32, content: &[u8]) -> Result<()> {
    files::replace(path, mode, content)
        .map_err(|error| Kind::Material.because(format!("{}: {error}", path.display())))
}

/// Makes a new signing key. The public key of the old one stays published as retired, so that the
/// results and receipts of both verify; its private half is gone. Returns the ids of both.
///
/// # Errors
/// A file cannot be read or written; the old key then stays.
pub fn rotate(config: &Config) -> Result<(String, String)> {
    if let Some(label) = config.pkcs11.as_ref().and_then(|token| token.signing.as_deref()) {
        return Err(Kind::Config.because(format!(
            "the signing key is in a token, as {label:?}: name another label in pkcs11.signing, run `shef-verifierd token-keys`, put the old \
             public key into signing.retired, then SIGHUP"
        )));
    }
    // The lock covers the read: two concurrent rotations each retire a different key.
    let cannot = |error: std::io::Error| {
        Kind::Material.because(format!("{}: {error}", config.signing_key.display()))
    };
    let _alone = files::lock(files::folder(&config.signing_key), Owner::Service).map_err(cannot)?;
    // The rename would replace a symbolic link, not the file that it names.
    files::open(&config.signing_key).map_err(cannot)?;
    let before = signer(config)?;
    let mut retired: Vec<String> = match files::read(&config.rotated()) {
        Ok(text) => text.lines().map(str::to_owned).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            return Err(Kind::Material.because(format!("{}: {error}", config.rotated().display())));
        }
    };
    retired.insert(0, hex::encode(before.public_key().as_bytes()));
    // List the old key as retired first, then replace it: after a crash in between, every signature
    // still has its public key.
    exchange(&config.rotated(), 0o644, format!("{}\n", retired.join("\n")).as_bytes())?;
    let (private, public) = generate_key_pair(&mut SystemEntropy);
    exchange(&config.signing_key, 0o600, &hex_line(&private.to_bytes())[..])?;
    Ok((thumbprint(before.public_key()), thumbprint(&public)))
}
