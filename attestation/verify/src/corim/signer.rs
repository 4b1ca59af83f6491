//! Signers of reference values and their authority.

use std::collections::BTreeSet;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use shef_proto::cert::{self, Certificate};
use shef_proto::hpke_suite::PublicKey;

use super::{CorimError, Trust};
use crate::files::PolicyError;
use crate::policy::{DigestName, set};

/// How a signer is identified.
#[derive(Clone, Debug)]
enum Identity {
    Key(PublicKey),
    Authority(Box<Certificate>),
}

/// A signer of reference values and its authority.
#[derive(Clone, Debug)]
pub struct CorimSigner {
    name: String,
    identity: Identity,
    pub(super) kernels: bool,
    pub(super) shells: bool,
    pub(super) vendors: BTreeSet<String>,
}

impl CorimSigner {
    /// A signer known by its key, without authority yet.
    #[must_use]
    pub fn with_key(name: &str, key: PublicKey) -> Self {
        Self {
            name: name.into(),
            identity: Identity::Key(key),
            kernels: false,
            shells: false,
            vendors: BTreeSet::new(),
        }
    }

    /// Signers with codeSigning certificates from this CA in the CoRIM's header, without authority
    /// yet.
    ///
    /// # Errors
    /// The certificate is not a self-signed root.
    pub fn with_authority(name: &str, root: &[u8]) -> Result<Self, PolicyError> {
        let bad = |error: cert::CertError| PolicyError::Anchor {
            name: name.into(),
            text: error.to_string(),
        };
        let root = Certificate::parse(root).map_err(bad)?;
        root.check_root().map_err(bad)?;
        let identity = Identity::Authority(Box::new(root));
        Ok(Self {
            name: name.into(),
            identity,
            kernels: false,
            shells: false,
            vendors: BTreeSet::new(),
        })
    }

    /// An IP vendor: its image-signing key vouches for its own images.
    #[must_use]
    pub fn vendor(name: &str, key: PublicKey) -> Self {
        Self::with_key(name, key).for_vendor(&vendor_id(&key))
    }

    /// Allows it to vouch for kernels.
    #[must_use]
    pub fn for_kernels(mut self) -> Self {
        self.kernels = true;
        self
    }

    /// Allows it to vouch for shells.
    #[must_use]
    pub fn for_shells(mut self) -> Self {
        self.shells = true;
        self
    }

    /// Allows it to vouch for images of this vendor (SHA-256 of its public key).
    #[must_use]
    pub fn for_vendor(mut self, vendor: &[u8; 32]) -> Self {
        self.vendors.insert(hex::encode(vendor));
        self
    }

    /// The certificate of the signer's CA; `None` if the signer is known by its key.
    #[must_use]
    pub fn certificate(&self) -> Option<&Certificate> {
        match &self.identity {
            Identity::Key(_) => None,
            Identity::Authority(root) => Some(root),
        }
    }

    /// Its key, or its CA's key.
    #[must_use]
    pub fn key(&self) -> &PublicKey {
        match &self.identity {
            Identity::Key(key) => key,
            Identity::Authority(root) => root.key(),
        }
    }

    /// Name for reports.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Expiry of its certificate, seconds since 1970; `None` if it is known by its key.
    #[must_use]
    pub fn not_after(&self) -> Option<i64> {
        self.certificate().map(Certificate::not_after)
    }

    /// Reads a list: `[[signer]]` with `name`, `key` (65 bytes) or `certificate` (DER) in
    /// hexadecimal, and its authority: `kernels`, `shells` (default false), `vendors` (SHA-256 of
    /// public keys).
    ///
    /// # Errors
    /// Not TOML of this form, with line and column.
    pub fn list_from_toml(text: &str) -> Result<Vec<Self>, PolicyError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Entry {
            name: String,
            key: Option<String>,
            certificate: Option<String>,
            #[serde(default)]
            kernels: bool,
            #[serde(default)]
            shells: bool,
            #[serde(default, deserialize_with = "set::<DigestName, _>")]
            vendors: BTreeSet<String>,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[serde(default)]
            signer: Vec<Entry>,
        }
        let file: File = toml::from_str(text).map_err(|error| PolicyError::Anchor {
            name: "signers".into(),
            text: error.to_string(),
        })?;
        file.signer
            .into_iter()
            .map(|entry| {
                let bad = |text: String| PolicyError::Anchor { name: entry.name.clone(), text };
                let bytes =
                    |text: &str| hex::decode(text).map_err(|_| bad("not hexadecimal".into()));
                let signer = match (&entry.key, &entry.certificate) {
                    (Some(key), None) => {
                        let key = PublicKey::from_bytes(&bytes(key)?)
                            .map_err(|error| bad(error.to_string()))?;
                        Self::with_key(&entry.name, key)
                    }
                    (None, Some(der)) => Self::with_authority(&entry.name, &bytes(der)?)?,
                    _ => return Err(bad("expected either key or certificate".into())),
                };
                Ok(Self {
                    kernels: entry.kernels,
                    shells: entry.shells,
                    vendors: entry.vendors,
                    ..signer
                })
            })
            .collect()
    }

    /// The signer as an entry of the file that [`CorimSigner::list_from_toml`] reads.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let identity = match &self.identity {
            Identity::Key(key) => format!("key = \"{}\"", hex::encode(key.as_bytes())),
            Identity::Authority(root) => format!("certificate = \"{}\"", hex::encode(root.der())),
        };
        let vendors: Vec<String> =
            self.vendors.iter().map(|vendor| format!("{vendor:?}")).collect();
        format!(
            "[[signer]]\nname = {}\n{identity}\nkernels = {}\nshells = {}\nvendors = [{}]\n",
            toml::Value::from(self.name.as_str()),
            self.kernels,
            self.shells,
            vendors.join(", ")
        )
    }
}

/// Name of an IP vendor: SHA-256 of its public key.
#[must_use]
pub fn vendor_id(key: &PublicKey) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// The signer of a CoRIM.
pub(super) struct Signed<'a> {
    /// The registered signer.
    pub(super) signer: &'a CorimSigner,
    /// SHA-256 of the signing key and of the registered key.
    pub(super) keys: [[u8; 32]; 2],
    /// Expiry of the included certificate, seconds since 1970.
    pub(super) end: Option<i64>,
}

/// The signer of this signature.
pub(super) fn verified<'a>(
    trust: &Trust<'a>,
    x5chain: &[Vec<u8>],
    message: &[u8],
    signature: &[u8; 64],
) -> Result<Signed<'a>, CorimError> {
    let of = |signer: &'a CorimSigner, key: &PublicKey, end| Signed {
        signer,
        keys: [vendor_id(key), vendor_id(signer.key())],
        end,
    };
    let revoked = |signer: &CorimSigner, key: &PublicKey, chain: &[&Certificate]| {
        let Some(list) = trust.revocations else { return Ok(()) };
        let hash = |bytes: &[u8]| hex::encode(Sha256::digest(bytes));
        let hit = list.authorities.contains(&hash(signer.key().as_bytes()))
            || list.authorities.contains(&hash(key.as_bytes()))
            || list.vendors.contains(&hash(key.as_bytes()))
            || chain.iter().any(|certificate| {
                certificate
                    .names()
                    .iter()
                    .any(|name| list.certificates.contains(&hex::encode(name)))
                    || list.serials.contains(&hex::encode(certificate.serial()))
            });
        if hit {
            Err(CorimError::Deactivated { what: format!("the signer {}", signer.name) })
        } else {
            Ok(())
        }
    };
    if let [der] = x5chain {
        let bad = |error: cert::CertError| CorimError::Signer {
            text: format!("{error} ({})", error.code()),
        };
        let leaf = Certificate::parse(der).map_err(bad)?;
        for signer in trust.signers {
            let Identity::Authority(root) = &signer.identity else { continue };
            if !root.is_issuer_of(&leaf) {
                continue;
            }
            let key = cert::validate_signer(&leaf, root, trust.now, trust.verify).map_err(bad)?;
            if !(trust.verify)(&key, message, signature) {
                return Err(CorimError::Signature { signer: signer.name.clone() });
            }
            revoked(signer, &key, &[&leaf, root])?;
            return Ok(of(signer, &key, Some(leaf.not_after().min(root.not_after()))));
        }
        return Err(CorimError::Signer {
            text: "the certificate was issued by none of the authorities".into(),
        });
    }
    for signer in trust.signers {
        let Identity::Key(key) = &signer.identity else { continue };
        if (trust.verify)(key, message, signature) {
            revoked(signer, key, &[])?;
            return Ok(of(signer, key, None));
        }
    }
    Err(CorimError::Signer { text: "the signature is of none of the known keys".into() })
}
