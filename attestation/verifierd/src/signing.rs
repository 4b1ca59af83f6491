//! The commands that make and rotate the key that signs results and receipts.

use std::path::Path;

use shef_files::{self as files, Owner};
use shef_proto::hpke_suite::{PublicKey, generate_key_pair};
use zeroize::Zeroizing;

use crate::config::Config;
use crate::init::{hex_line, is_there};
use crate::keyring::signer;
use crate::problem::{Because, Kind, Result};
use crate::secrets::{Signer, SystemEntropy, read_secret, thumbprint};

/// Replaces a file as a whole.
fn exchange(path: &Path, mode: u32, content: &[u8]) -> Result<()> {
    files::replace(path, mode, content)
        .map_err(|error| Kind::Material.because(format!("{}: {error}", path.display())))
}

/// Keys of this configuration are in files, not in a token.
fn in_files(config: &Config) -> Result<()> {
    if let Some(label) = config.pkcs11.as_ref().and_then(|token| token.signing.as_deref()) {
        return Err(Kind::Config.because(format!(
            "the signing key is in a token, as {label:?}: name another label in pkcs11.signing, run `shef-verifierd token-keys`, put the old \
             public key into {}, then SIGHUP",
            config.rotated().display()
        )));
    }
    Ok(())
}

/// Waits until no other command changes the keys of this configuration.
fn alone(config: &Config) -> Result<files::FolderLock> {
    let cannot = |error: std::io::Error| {
        Kind::Material.because(format!("{}: {error}", config.signing_key.display()))
    };
    let lock = files::lock(files::folder(&config.signing_key), Owner::Service).map_err(cannot)?;
    // The rename would replace a symbolic link, not the file that it names.
    files::open(&config.signing_key).map_err(cannot)?;
    Ok(lock)
}

/// Adds a public key to those that stay published.
fn publish(config: &Config, key: &PublicKey) -> Result<()> {
    let mut retired: Vec<String> = match files::read(&config.rotated()) {
        Ok(text) => text.lines().map(str::to_owned).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            return Err(Kind::Material.because(format!("{}: {error}", config.rotated().display())));
        }
    };
    let line = hex::encode(key.as_bytes());
    retired.retain(|known| *known != line);
    retired.insert(0, line);
    exchange(&config.rotated(), 0o644, format!("{}\n", retired.join("\n")).as_bytes())
}

/// The prepared key, unless a rotation has put it into use already.
fn prepared(config: &Config, before: &Signer) -> Result<Option<(Zeroizing<[u8; 32]>, PublicKey)>> {
    let path = config.next_key();
    if !is_there(&path) {
        return Ok(None);
    }
    let secret = read_secret(&path)?;
    let public = *Signer::new(&secret, Vec::new())
        .map_err(|problem| Kind::Material.because(format!("{}: {problem}", path.display())))?
        .public_key();
    Ok((public != *before.public_key()).then_some((secret, public)))
}

/// Makes the key that the next [`rotate`] puts into use, and publishes its public key with the
/// retired ones, so that every replica can publish it before one signs with it. A key that is
/// prepared already stays. Returns its id.
///
/// # Errors
/// A file cannot be read or written, or the signing key is in a token.
pub fn prepare(config: &Config) -> Result<String> {
    in_files(config)?;
    let _alone = alone(config)?;
    let before = signer(config)?;
    let public = match prepared(config, &before)? {
        Some((_, public)) => public,
        None => {
            let (private, public) = generate_key_pair(&mut SystemEntropy);
            exchange(&config.next_key(), 0o600, &hex_line(&private.to_bytes())[..])?;
            public
        }
    };
    publish(config, &public)?;
    Ok(thumbprint(&public))
}

/// Puts the prepared signing key into use, or a new one. The public key of the old one stays
/// published as retired, so that the results and receipts of both verify; its private half is gone.
/// Returns the ids of both.
///
/// # Errors
/// A file cannot be read or written, and the old key then stays; or the signing key is in a token.
pub fn rotate(config: &Config) -> Result<(String, String)> {
    in_files(config)?;
    // The lock covers the read: two concurrent rotations each retire a different key.
    let _alone = alone(config)?;
    let before = signer(config)?;
    // List the old key as retired first, then replace it: after a crash in between, every signature
    // still has its public key.
    publish(config, before.public_key())?;
    let (secret, public) = prepared(config, &before)?.unwrap_or_else(|| {
        let (private, public) = generate_key_pair(&mut SystemEntropy);
        (private.to_bytes(), public)
    });
    exchange(&config.signing_key, 0o600, &hex_line(&secret)[..])?;
    if is_there(&config.next_key()) {
        std::fs::remove_file(config.next_key()).map_err(|error| {
            Kind::Material.because(format!("{}: {error}", config.next_key().display()))
        })?;
    }
    Ok((thumbprint(before.public_key()), thumbprint(&public)))
}
