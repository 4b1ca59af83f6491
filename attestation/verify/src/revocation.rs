//! Revocation lists.

use std::collections::BTreeSet;

use hex_simd::{AsOut, AsciiCase};
use serde::{Deserialize, Serialize};

use shef_proto::cert::UEID_LEN;

use crate::files::PolicyError;
use crate::policy::{DigestName, Serial, Ueid, set};

/// A revocation list. The list itself is unsigned: its source vouches for it (a service by its
/// store, a bundle by its signature).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revocations {
    /// Time of issue, seconds since 1970.
    pub issued: i64,
    /// End of its validity, seconds since 1970.
    pub next_update: i64,
    /// Devices, by ueid.
    #[serde(default, deserialize_with = "set::<Ueid, _>")]
    pub devices: BTreeSet<String>,
    /// Serial numbers of certificates.
    #[serde(default, deserialize_with = "set::<Serial, _>")]
    pub serials: BTreeSet<String>,
    /// Certificates, by SHA-256 of their TBSCertificate or of their DER
    /// ([`shef_proto::cert::Certificate::names`]).
    #[serde(default, deserialize_with = "set::<DigestName, _>")]
    pub certificates: BTreeSet<String>,
    /// Authorities (trust anchors, signers of reference values), by SHA-256 of their public key.
    #[serde(default, deserialize_with = "set::<DigestName, _>")]
    pub authorities: BTreeSet<String>,
    /// Kernel images, by digest.
    #[serde(default, deserialize_with = "set::<DigestName, _>")]
    pub kernels: BTreeSet<String>,
    /// Shells, by measurement.
    #[serde(default, deserialize_with = "set::<DigestName, _>")]
    pub shells: BTreeSet<String>,
    /// Images, by digest.
    #[serde(default, deserialize_with = "set::<DigestName, _>")]
    pub images: BTreeSet<String>,
    /// IP vendors, by SHA-256 of their public key.
    #[serde(default, deserialize_with = "set::<DigestName, _>")]
    pub vendors: BTreeSet<String>,
}

impl Revocations {
    /// Reads a list.
    ///
    /// # Errors
    /// Not TOML of this form, with line and column.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        toml::from_str(text).map_err(|error| PolicyError::Revocation { text: error.to_string() })
    }

    /// The list as TOML.
    ///
    /// # Errors
    /// Never for a list that was read.
    pub fn to_toml(&self) -> Result<String, PolicyError> {
        toml::to_string(self).map_err(|error| PolicyError::Revocation { text: error.to_string() })
    }

    /// The entries of both lists, with the dates of the one that was issued last.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        let both = |mut one: BTreeSet<String>, other: &BTreeSet<String>| {
            one.extend(other.iter().cloned());
            one
        };
        let last = (self.issued, self.next_update).max((other.issued, other.next_update));
        Self {
            issued: last.0,
            next_update: last.1,
            devices: both(self.devices, &other.devices),
            serials: both(self.serials, &other.serials),
            certificates: both(self.certificates, &other.certificates),
            authorities: both(self.authorities, &other.authorities),
            kernels: both(self.kernels, &other.kernels),
            shells: both(self.shells, &other.shells),
            images: both(self.images, &other.images),
            vendors: both(self.vendors, &other.vendors),
        }
    }

    /// True if the list is current at `now`.
    #[must_use]
    pub fn is_current(&self, now: i64) -> bool {
        (self.issued..=self.next_update).contains(&now)
    }

    /// The kind of the first entry found on the list, or `None`.
    #[must_use]
    pub(crate) fn find(&self, subject: &Subject<'_>) -> Option<&'static str> {
        let hit = |set: &BTreeSet<String>, bytes: &[u8]| {
            // The longest name is a ueid; a longer one is on no list.
            let mut digits = [0; 2 * UEID_LEN];
            let digits = digits.get_mut(..2 * bytes.len()).filter(|_| !set.is_empty());
            digits.is_some_and(|digits| {
                set.contains(&*hex_simd::encode_as_str(bytes, digits.as_out(), AsciiCase::Lower))
            })
        };
        let any = |set: &BTreeSet<String>, list: &[&[u8]]| list.iter().any(|bytes| hit(set, bytes));
        [
            (hit(&self.devices, subject.ueid), "the device is revoked"),
            (any(&self.serials, &subject.serials), "a certificate is revoked by its serial number"),
            (
                subject.certificates.iter().any(|name| hit(&self.certificates, name)),
                "a certificate is revoked by its digest",
            ),
            (
                subject.authority.is_some_and(|key| hit(&self.authorities, key)),
                "the authority that made the device is revoked",
            ),
            (hit(&self.kernels, subject.kernel), "the kernel is revoked"),
            (hit(&self.shells, subject.shell), "the shell is revoked"),
            (subject.image.is_some_and(|image| hit(&self.images, image)), "the image is revoked"),
            (
                subject.vendor.is_some_and(|vendor| hit(&self.vendors, vendor)),
                "the signer of the image is revoked",
            ),
        ]
        .into_iter()
        .find_map(|(found, what)| found.then_some(what))
    }
}

/// Everything that one piece of evidence depends on.
pub(crate) struct Subject<'a> {
    pub ueid: &'a [u8],
    pub serials: [&'a [u8]; 3],
    pub certificates: &'a [[u8; 32]],
    pub authority: Option<&'a [u8]>,
    pub kernel: &'a [u8],
    pub shell: &'a [u8],
    pub image: Option<&'a [u8]>,
    pub vendor: Option<&'a [u8]>,
}
