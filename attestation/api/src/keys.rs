//! Keys and receipts.

use serde::{Deserialize, Serialize};

use crate::{Forgotten, Head, Layer, Secret};

// It repeats the members of `NewVersion`: `flatten` would pass them through buffers that are not
// erased.
/// A new key with its first version.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// Layer of the evidence that it is released for.
    pub layer: Layer,
    /// Keys that it may be released to.
    #[serde(default, skip_serializing_if = "To::is_evidence")]
    pub to: To,
    /// `name` or `name@version`; frozen with this version of the key.
    pub policy: String,
    /// Secret; not with `generate` or `image`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// Length of a random secret, 16 to 64 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate: Option<usize>,
    /// An image key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageKey>,
    /// Most releases; 0 for any number.
    #[serde(default)]
    pub max_releases: u32,
    /// Start of validity.
    #[serde(default)]
    pub not_before: i64,
    /// End of validity; 0 for no end.
    #[serde(default)]
    pub not_after: i64,
}

impl NewKey {
    /// A key for this layer, with its first version.
    #[must_use]
    pub fn new(layer: Layer, to: To, version: NewVersion) -> Self {
        let NewVersion { policy, secret, generate, image, max_releases, not_before, not_after } =
            version;
        Self { layer, to, policy, secret, generate, image, max_releases, not_before, not_after }
    }

    /// The first version of the key.
    #[must_use]
    pub fn version(self) -> NewVersion {
        let Self { policy, secret, generate, image, max_releases, not_before, not_after, .. } =
            self;
        NewVersion { policy, secret, generate, image, max_releases, not_before, not_after }
    }
}

/// A new version of a key, with exactly one of `secret`, `generate` and `image`.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewVersion {
    /// `name` or `name@version`; frozen with this version of the key.
    pub policy: String,
    /// Secret; not with `generate` or `image`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// Length of a random secret, 16 to 64 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generate: Option<usize>,
    /// An image key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageKey>,
    /// Most releases; 0 for any number.
    #[serde(default)]
    pub max_releases: u32,
    /// Start of validity.
    #[serde(default)]
    pub not_before: i64,
    /// End of validity; 0 for no end.
    #[serde(default)]
    pub not_after: i64,
}

/// The key of an image.
#[derive(Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct ImageKey {
    /// 32 bytes.
    pub key: Secret,
    /// Least security version of the image.
    pub min_svn: u64,
    /// The key that signs the vendor's images: a point, base64url.
    pub vendor: String,
}

/// Keys that a release may be sealed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum To {
    /// The key that the evidence vouches for, or that the session bound to it.
    #[default]
    Evidence,
    /// Any key on the card's host; resources of the KBS only.
    Host,
}

impl To {
    /// Whether it is the default.
    #[must_use]
    pub fn is_evidence(&self) -> bool {
        *self == Self::Evidence
    }
}

/// All versions of a key, or one.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema, utoipa::IntoParams))]
#[cfg_attr(feature = "schema", into_params(parameter_in = Query))]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// Only this version; all if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
}

/// The version that was added.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AddedKey {
    /// Name of the key.
    pub name: String,
    /// Its number.
    pub version: u64,
    /// Layer of the evidence that it is released for.
    pub layer: Layer,
    /// `name@version`, frozen.
    pub policy: String,
}

/// A page of keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Keys {
    /// By name.
    pub keys: Vec<Key>,
    /// Start of the next page; null on the last one.
    #[cfg_attr(feature = "schema", schema(required))]
    pub next: Option<String>,
}

/// A key, without its secrets.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Key {
    /// Name.
    pub name: String,
    /// Layer of the evidence that it is released for.
    pub layer: Layer,
    /// Keys that it may be released to.
    pub to: To,
    /// Whether no version is released.
    pub disabled: bool,
    /// The newest version.
    pub version: u64,
    /// Whether that version is not released.
    pub version_disabled: bool,
}

/// A key with its versions.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WholeKey {
    /// The key.
    #[serde(flatten)]
    pub key: Key,
    /// Newest first.
    pub versions: Vec<KeyVersion>,
}

/// A version of a key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KeyVersion {
    /// Number, from 1.
    pub version: u64,
    /// `name@version`, frozen.
    pub policy: String,
    /// Most releases; 0 for any number.
    pub max_releases: u64,
    /// Releases so far.
    pub released: u64,
    /// Start of validity.
    pub not_before: i64,
    /// End of validity; 0 for no end.
    pub not_after: i64,
    /// Whether it is not released.
    pub disabled: bool,
    /// When it was added.
    pub created: i64,
}

/// A page of receipts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Receipts {
    /// Their tenant.
    pub tenant: String,
    /// Oldest first.
    pub receipts: Vec<Receipt>,
    /// End of the chain.
    pub head: Head,
    /// The place after which receipts are kept.
    pub kept: Forgotten,
    /// Start of the next page; null on the last one.
    #[cfg_attr(feature = "schema", schema(required))]
    pub next: Option<u64>,
}

/// A receipt.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Receipt {
    /// Number, from 1.
    pub seq: u64,
    /// Time of the release.
    pub time: i64,
    /// Name of the key.
    pub key: String,
    /// Signed receipt, base64url.
    pub receipt: String,
}
