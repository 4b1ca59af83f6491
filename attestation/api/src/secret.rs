//! Secrets in requests.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use zeroize::Zeroizing;

/// A secret in a request, base64url in a string without escapes; erased when dropped.
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(value_type = String))]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// A secret in base64url.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Its base64url.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> serde::de::Visitor<'de> for Text {
            type Value = Secret;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64 in a string without escapes")
            }

            // Unescaping a string would leave a copy of the secret: only one that can be read from the
            // body directly into this buffer is taken.
            fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<Secret, E> {
                Ok(Secret::new(text.to_owned()))
            }

            fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Secret, E> {
                Err(E::custom("a secret must be base64 in a string without escapes"))
            }
        }
        deserializer.deserialize_str(Text)
    }
}
