//! Reference values: measurements and manufacturers' certificates.

use std::collections::HashSet;
use std::hash::Hash;

use serde::{Deserialize, Serialize};
use shef_proto::cert::Certificate;
use shef_proto::evidence::RootOfTrust;

use crate::files::PolicyError;

/// A digest in hexadecimal.
mod digest {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(digest: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(digest))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = hex::decode(&text)
            .map_err(|_| D::Error::custom("a digest is 64 hexadecimal digits"))?;
        bytes.try_into().map_err(|_| D::Error::custom("a digest is 64 hexadecimal digits"))
    }
}

/// A known Security Kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelReference {
    /// Name for reports.
    pub name: String,
    /// SHA-256 of the kernel image.
    #[serde(with = "digest")]
    pub digest: [u8; 32],
    /// Security version of that image.
    pub svn: u64,
}

/// A known shell.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellReference {
    /// Name for reports.
    pub name: String,
    /// Measurement of the shell.
    #[serde(with = "digest")]
    pub digest: [u8; 32],
}

/// A known image.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageReference {
    /// Name for reports.
    pub name: String,
    /// Name of the accelerator.
    pub accelerator: String,
    /// Image digest.
    #[serde(with = "digest")]
    pub digest: [u8; 32],
    /// Digest of the Shield's configuration.
    #[serde(with = "digest")]
    pub config_digest: [u8; 32],
    /// Digest of the design.
    #[serde(with = "digest")]
    pub design_digest: [u8; 32],
    /// SHA-256 of the IP vendor's public key.
    #[serde(with = "digest")]
    pub vendor: [u8; 32],
    /// Security version.
    pub svn: u64,
}

/// Known-good measurements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceValues {
    /// Known kernels.
    #[serde(default, rename = "kernel")]
    pub kernels: Vec<KernelReference>,
    /// Known shells.
    #[serde(default, rename = "shell")]
    pub shells: Vec<ShellReference>,
    /// Known images.
    #[serde(default, rename = "image")]
    pub images: Vec<ImageReference>,
}

impl ReferenceValues {
    /// Reads reference values from TOML (`[[kernel]]`, `[[shell]]`, `[[image]]`).
    ///
    /// # Errors
    /// Not TOML, an unknown or missing key, or a malformed digest.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        toml::from_str(text).map_err(|error| PolicyError::Reference { text: error.to_string() })
    }

    /// Reads reference values from JSON of the same shape.
    ///
    /// # Errors
    /// Not JSON, an unknown or missing key, or a malformed digest.
    pub fn from_json(text: &str) -> Result<Self, PolicyError> {
        let bad = |error: serde_json::Error| PolicyError::Reference { text: error.to_string() };
        // As a typed value first: the text must be an object, and errors then name line and column.
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(text).map_err(bad)?;
        serde_json::from_str(text).map_err(bad)
    }

    /// Adds the values of other sets, without duplicates.
    pub fn extend<'a>(&mut self, others: impl IntoIterator<Item = &'a Self>) {
        // Hashed: there may be thousands of values, and the caller waits for this.
        fn add<T: Clone + Eq + Hash>(list: &mut Vec<T>, known: &mut HashSet<T>, more: &[T]) {
            list.extend(more.iter().filter(|value| known.insert((*value).clone())).cloned());
        }
        let mut kernels = self.kernels.iter().cloned().collect();
        let mut shells = self.shells.iter().cloned().collect();
        let mut images = self.images.iter().cloned().collect();
        for other in others {
            add(&mut self.kernels, &mut kernels, &other.kernels);
            add(&mut self.shells, &mut shells, &other.shells);
            add(&mut self.images, &mut images, &other.images);
        }
    }

    /// The values as TOML.
    ///
    /// # Errors
    /// A number that TOML cannot represent.
    pub fn to_toml(&self) -> Result<String, PolicyError> {
        toml::to_string(self).map_err(|error| PolicyError::Reference { text: error.to_string() })
    }
}

/// A manufacturer's root, registered for one kind of root of trust: a simulator cannot call itself
/// hardware.
#[derive(Clone, Debug)]
pub struct TrustAnchor {
    name: String,
    kind: RootOfTrust,
    debug: bool,
    certificate: Certificate,
}

impl TrustAnchor {
    /// Registers a root certificate (DER) for devices of one kind; `debug` for a CA that certifies
    /// devices in debug mode.
    ///
    /// # Errors
    /// The certificate is not a self-signed root of this form.
    pub fn new(
        name: &str,
        kind: RootOfTrust,
        debug: bool,
        der: &[u8],
    ) -> Result<Self, PolicyError> {
        let bad = |error: shef_proto::cert::CertError| PolicyError::Anchor {
            name: name.into(),
            text: error.to_string(),
        };
        let certificate = Certificate::parse(der).map_err(bad)?;
        certificate.check_root().map_err(bad)?;
        Ok(Self { name: name.into(), kind, debug, certificate })
    }

    /// Reads a list of anchors: `[[anchor]]` with `name`, `kind`, `debug` (default false) and
    /// `certificate` (DER in hexadecimal).
    ///
    /// # Errors
    /// Not TOML of this form, or a certificate that is not a root.
    pub fn list_from_toml(text: &str) -> Result<Vec<Self>, PolicyError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Entry {
            name: String,
            kind: String,
            #[serde(default)]
            debug: bool,
            certificate: String,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[serde(default)]
            anchor: Vec<Entry>,
        }
        let file: File = toml::from_str(text).map_err(|error| PolicyError::Anchor {
            name: "file".into(),
            text: error.to_string(),
        })?;
        file.anchor
            .into_iter()
            .map(|entry| {
                let bad = |text: &str| PolicyError::Anchor {
                    name: entry.name.clone(),
                    text: text.into(),
                };
                let kind = RootOfTrust::from_name(&entry.kind)
                    .ok_or_else(|| bad("kind does not exist"))?;
                let der = hex::decode(&entry.certificate)
                    .map_err(|_| bad("certificate is not hexadecimal"))?;
                Self::new(&entry.name, kind, entry.debug, &der)
            })
            .collect()
    }

    /// The anchor as an entry of the file that [`TrustAnchor::list_from_toml`] reads.
    #[must_use]
    pub fn to_toml(&self) -> String {
        format!(
            "[[anchor]]\nname = {}\nkind = \"{}\"\ndebug = {}\ncertificate = \"{}\"\n",
            toml::Value::from(self.name.as_str()),
            self.kind.name(),
            self.debug,
            hex::encode(self.certificate.der())
        )
    }

    /// Name for reports.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kind of root of trust that it is registered for.
    #[must_use]
    pub fn kind(&self) -> RootOfTrust {
        self.kind
    }

    /// True if it certifies devices in debug mode.
    #[must_use]
    pub fn debug(&self) -> bool {
        self.debug
    }

    /// The root certificate.
    #[must_use]
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }
}
