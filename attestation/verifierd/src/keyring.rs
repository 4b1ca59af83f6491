//! The service's keys, where its configuration says that they are held: in files, or in a token.

use std::path::Path;
use std::sync::Arc;

use shef_files as files;
use shef_proto::crypto::scrub::{DERIVATION, scrubbed};
use shef_proto::hpke_suite::PublicKey;
use zeroize::Zeroizing;

use crate::config::Config;
use crate::problem::{Because, Kind, Problem, Result};
use crate::secrets::{Kek, Signer, read_secret, sealed};
use crate::vault::Vault;

/// Does something with the token of a configuration, which must answer in time.
///
/// # Errors
/// The configuration names no token, it does not answer, or those of `work`.
#[cfg(feature = "pkcs11")]
fn with_token<T: Send + 'static>(
    config: &Config,
    work: impl FnOnce(Arc<dyn Vault>) -> Result<T> + Send + 'static,
) -> Result<T> {
    let Some(token) = config.pkcs11.clone() else { return Err(no_token()) };
    crate::vault::within(move || work(crate::vault::pkcs11::Token::open(&token)?))
}

/// Does something with the token of a configuration.
///
/// # Errors
/// Always: a program without PKCS #11 refuses a configuration that names a token.
#[cfg(not(feature = "pkcs11"))]
fn with_token<T: Send + 'static>(
    _: &Config,
    _: impl FnOnce(Arc<dyn Vault>) -> Result<T> + Send + 'static,
) -> Result<T> {
    Err(no_token())
}

fn no_token() -> Problem {
    Kind::Config.because("the configuration has no [pkcs11]")
}

/// Makes the keys that a configuration names and its token lacks.
///
/// # Errors
/// It names no token, or the token refuses or does not answer.
pub fn make(config: &Config) -> Result<Vec<String>> {
    let token = config.pkcs11.clone().ok_or_else(no_token)?;
    with_token(config, move |vault| vault.make(token.signing.as_deref(), token.kek.as_deref()))
}

/// Has the token seal a new KEK under its key with this label.
///
/// # Errors
/// The configuration names no token, or the token refuses or does not answer.
pub fn seal(config: &Config, label: &str, kek: &Zeroizing<[u8; 32]>) -> Result<Vec<u8>> {
    let (label, kek) = (label.to_owned(), kek.clone());
    with_token(config, move |vault| vault.seal(&label, &kek))
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
    let Some(sealed) = sealed(path)? else {
        return scrubbed::<DERIVATION, _>(|| Ok(Kek::new(&*read_secret(path)?)));
    };
    let Some(label) = config.pkcs11.as_ref().and_then(|token| token.kek.clone()) else {
        return Err(Kind::Material.because(format!(
            "{}: a token has sealed this KEK, and the configuration names none in pkcs11.kek",
            path.display()
        )));
    };
    with_token(config, move |vault| {
        scrubbed::<DERIVATION, _>(|| Ok(Kek::new(&*vault.open(&label, &sealed)?)))
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
    if let Some(label) = config.pkcs11.as_ref().and_then(|token| token.signing.clone()) {
        return with_token(config, move |vault| Signer::in_vault(vault, &label, retired));
    }
    scrubbed::<DERIVATION, _>(|| Signer::new(&*read_secret(&config.signing_key)?, retired))
}
