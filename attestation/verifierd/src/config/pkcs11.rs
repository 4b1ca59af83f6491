//! `[pkcs11]`: keys in a token.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::at::At;
use crate::problem::Result;

/// Keys in a token of PKCS #11.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pkcs11 {
    /// The library of the token's vendor.
    pub module: PathBuf,
    /// Label of the token.
    pub token: String,
    /// File that holds the user's PIN.
    pub pin_file: PathBuf,
    /// Label of the key pair that signs results and receipts, if it is in the token.
    pub signing: Option<String>,
    /// Label of the AES key that seals the KEK file, if it is in the token.
    pub kek: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pkcs11File {
    module: PathBuf,
    token: Spanned<String>,
    pin_file: PathBuf,
    signing: Option<Spanned<String>>,
    kek: Option<Spanned<String>>,
}

fn label(at: &At<'_>, what: &str, label: &Spanned<String>) -> Result<String> {
    // PKCS #11 has 32 bytes for the label of a token.
    if !(1..=32).contains(&label.get_ref().len()) {
        let text = format!("pkcs11.{what} = {:?}: expected 1 to 32 bytes", label.get_ref());
        return Err(at.error(&label.span(), text));
    }
    Ok(label.get_ref().clone())
}

/// The token of a file.
pub(super) fn token(at: &At<'_>, file: Option<&Spanned<Pkcs11File>>) -> Result<Option<Pkcs11>> {
    let Some(spanned) = file else { return Ok(None) };
    let file = spanned.get_ref();
    let optional = |what, text: &Option<Spanned<String>>| {
        text.as_ref().map(|text| label(at, what, text)).transpose()
    };
    let token = Pkcs11 {
        module: at.path(&file.module)?,
        token: label(at, "token", &file.token)?,
        pin_file: at.path(&file.pin_file)?,
        signing: optional("signing", &file.signing)?,
        kek: optional("kek", &file.kek)?,
    };
    if token.signing.is_none() && token.kek.is_none() {
        let text = "[pkcs11] names no key: expected signing = LABEL, kek = LABEL, or both";
        return Err(at.error(&spanned.span(), text));
    }
    if cfg!(not(feature = "pkcs11")) {
        let text = "this program was built without PKCS #11: a static program cannot load the library of a token; build it with `cargo build --release --package shef-verifierd`";
        return Err(at.error(&spanned.span(), text));
    }
    Ok(Some(token))
}
