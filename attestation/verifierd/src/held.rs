//! The service's keys, where its configuration says that they are held: in files, or in a token.

use std::path::Path;
use std::sync::Arc;

use shef_files as files;
use shef_proto::crypto::scrub::{DERIVATION, scrubbed};
use shef_proto::hpke_suite::PublicKey;

use crate::config::Config;
use crate::problem::{Kind, Result};
use crate::secrets::{Kek, Signer, read_secret, sealed};
use crate::vault::Vault;

/// The token that a configuration names, if any.
///
/// # Errors
/// It does not answer.
#[cfg(feature = "pkcs11")]
pub fn vault(config: &Config) -> Result<Option<Arc<dyn Vault>>> {
    config.pkcs11.as_ref().map(crate::vault::pkcs11::Token::open).transpose()
}

/// The token that a configuration names, if any.
///
/// # Errors
/// None: a program without PKCS #11 refuses a configuration that names one.
#[cfg(not(feature = "pkcs11"))]
pub fn vault(_: &Config) -> Result<Option<Arc<dyn Vault>>> {
    Ok(None)
}

/// Makes the keys that a configuration names and its token lacks.
///
/// # Errors
/// It names no token, or the token refuses or does not answer.
pub fn make(config: &Config) -> Result<Vec<String>> {
    let (Some(token), Some(vault)) = (&config.pkcs11, vault(config)?) else {
        return Err(Kind::Config.because("the configuration has no [pkcs11]"));
    };
    vault.make(token.signing.as_deref(), token.kek.as_deref())
}

/// The KEK of a configuration.
///
/// # Errors
/// As for [`kek_in`].
pub fn kek(config: &Config) -> Result<Kek> {
    kek_in(&config.kek, config)
}

/// The KEK in a file: 64 hexadecimal digits, or a KEK that the configured token has sealed.
///
/// # Errors
/// As for [`read_secret`], and those of the token.
pub fn kek_in(path: &Path, config: &Config) -> Result<Kek> {
    scrubbed::<DERIVATION, _>(|| match sealed(path)? {
        None => Ok(Kek::new(&*read_secret(path)?)),
        Some(sealed) => {
            let named = config.pkcs11.as_ref().and_then(|token| token.kek.as_deref());
            let (Some(label), Some(vault)) = (named, vault(config)?) else {
                return Err(Kind::Material.because(format!(
                    "{}: a token has sealed this KEK, and the configuration names none in pkcs11.kek",
                    path.display()
                )));
            };
            Ok(Kek::new(&*vault.open(label, &sealed)?))
        }
    })
}

/// The signing key and the retired ones.
///
/// # Errors
/// A file is missing, not a regular file, accessible to others, or holds no key; see also
/// [`read_secret`].
pub fn signer(config: &Config) -> Result<Signer> {
    let mut retired = Vec::new();
    let by_command = config.rotated();
    for path in config.retired.iter().chain(by_command.exists().then_some(&by_command)) {
        let bad = |text: String| Kind::Material.because(format!("{}: {text}", path.display()));
        // The configured public keys may be symbolic links.
        let read = if *path == by_command { files::read } else { files::read_linked };
        let text = read(path).map_err(|error| bad(error.to_string()))?;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let bytes = hex::decode(line.trim()).map_err(|_| {
                bad("expected public keys of 65 bytes in hexadecimal, one a line".into())
            })?;
            retired.push(PublicKey::from_bytes(&bytes).map_err(|error| bad(error.to_string()))?);
        }
    }
    if let Some(label) = config.pkcs11.as_ref().and_then(|token| token.signing.as_deref())
        && let Some(vault) = vault(config)?
    {
        return Signer::in_vault(vault, label, retired);
    }
    scrubbed::<DERIVATION, _>(|| Signer::new(&*read_secret(&config.signing_key)?, retired))
}
