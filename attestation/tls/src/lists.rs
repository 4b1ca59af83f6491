//! Revocation lists of client certificates.
//!
//! webpki looks a certificate up in one list only: the first of its issuer's name. The lists here
//! belong to the key that signed them, and a certificate in any list of its issuer is revoked.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::WebPkiClientVerifier;
use x509_cert::crl::CertificateList;
use x509_cert::der::oid::AssociatedOid as _;
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::crl::CrlNumber;
use x509_cert::ext::pkix::{AuthorityKeyIdentifier, IssuingDistributionPoint};

use crate::names::signed_with;
use crate::webpki::{failed, store};

/// Serial numbers that a warning contains at most.
const NAMED: usize = 16;

/// The issuer of a list as the list names it: subject, key identifier and distribution point.
type Issuer = (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>);

/// Whether a verifier can use a revocation list.
fn usable(
    list: &CertificateRevocationListDer<'static>,
    ca: &CertificateDer<'_>,
) -> Result<(), rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    WebPkiClientVerifier::builder_with_provider(store(ca)?, provider)
        .with_crls([list.clone()])
        .build()
        .map(drop)
        .map_err(failed)
}

/// A revocation list.
#[derive(Clone, Debug)]
pub struct List {
    der: CertificateRevocationListDer<'static>,
    issuer: Issuer,
    /// The issuer's name as text.
    name: String,
    /// crlNumber without leading zeros; empty if the list has no crlNumber.
    number: Vec<u8>,
    /// thisUpdate, in seconds since 1970.
    from: u64,
    /// nextUpdate, in seconds since 1970.
    until: Option<u64>,
    serials: BTreeSet<Vec<u8>>,
}

impl List {
    /// Reads a list in DER, which the verifier for `ca` must be able to use. Its signature is not
    /// verified.
    ///
    /// # Errors
    /// Not a revocation list, or one with extensions that the verifier does not support.
    pub fn new(
        der: CertificateRevocationListDer<'static>,
        ca: &CertificateDer<'_>,
    ) -> Result<Self, String> {
        let malformed = |error: x509_cert::der::Error| error.to_string();
        let list: CertificateList = CertificateList::from_der(&der).map_err(malformed)?;
        let list = list.tbs_cert_list;
        usable(&der, ca).map_err(|error| error.to_string())?;
        let extensions = list.crl_extensions.unwrap_or_default();
        let find = |oid| extensions.iter().find(|extension| extension.extn_id == oid);
        let value = |oid| find(oid).map(|extension| extension.extn_value.as_bytes().to_vec());
        let number = value(CrlNumber::OID).map(|der| CrlNumber::from_der(&der));
        let key = value(AuthorityKeyIdentifier::OID)
            .map(|der| AuthorityKeyIdentifier::from_der(&der))
            .transpose()
            .map_err(malformed)?
            .and_then(|id| id.key_identifier);
        Ok(Self {
            issuer: (
                list.issuer.to_der().map_err(malformed)?,
                key.map(|id| id.as_bytes().to_vec()),
                value(IssuingDistributionPoint::OID),
            ),
            name: list.issuer.to_string(),
            number: number
                .transpose()
                .map_err(malformed)?
                .map(|number| number.0.as_bytes().iter().copied().skip_while(|b| *b == 0).collect())
                .unwrap_or_default(),
            from: list.this_update.to_unix_duration().as_secs(),
            until: list.next_update.map(|end| end.to_unix_duration().as_secs()),
            serials: list
                .revoked_certificates
                .into_iter()
                .flatten()
                .map(|entry| entry.serial_number.as_bytes().to_vec())
                .collect(),
            der,
        })
    }

    /// Name of the issuer.
    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.name
    }

    /// Whether a CA issued this list: it has the CA's name, and the CA's key signed it.
    #[must_use]
    pub fn is_of(&self, ca: &CertificateDer<'_>, provider: &CryptoProvider) -> bool {
        let Ok(ca) = x509_cert::Certificate::from_der(ca) else { return false };
        let tbs = ca.tbs_certificate();
        tbs.subject().to_der().is_ok_and(|name| name == self.issuer.0)
            && signed_with(
                tbs.subject_public_key_info().subject_public_key.raw_bytes(),
                &self.der,
                provider,
            )
    }

    /// By crlNumber, then by time.
    fn age(&self, other: &Self) -> Ordering {
        let key = |list: &Self| (list.number.len(), list.number.clone(), list.from);
        key(self).cmp(&key(other))
    }
}

/// The revocation lists in force.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    /// The newest list of each issuer in the configuration. One past its end refuses every
    /// certificate of its issuer.
    newest: BTreeMap<Issuer, List>,
    /// Other lists: their entries stay in force.
    kept: Vec<List>,
}

impl Lists {
    /// The lists in force after a reload that found the lists `new`. No entry is lost.
    ///
    /// If the `whole` configuration is good, `new` replaces the lists of the configuration. If not,
    /// `new` only adds: a newer list replaces one of the same issuer, and of other issuers the
    /// entries count, but a CA that needed no list so far still needs no list.
    #[must_use]
    pub fn after(&self, new: Vec<List>, whole: bool) -> Self {
        let mut all = Self { newest: BTreeMap::new(), kept: self.kept.clone() };
        if whole {
            all.kept.extend(self.newest.values().cloned());
        } else {
            all.newest.clone_from(&self.newest);
        }
        for list in new {
            match all.newest.get_mut(&list.issuer) {
                Some(held) if list.age(held) == Ordering::Greater => {
                    all.kept.push(std::mem::replace(held, list));
                }
                None if whole => {
                    all.newest.insert(list.issuer.clone(), list);
                }
                _ => all.kept.push(list),
            }
        }
        // What newer lists of the same issuer contain need not be kept twice.
        all.kept.sort_by(|a, b| b.age(a));
        let mut known: BTreeMap<Issuer, BTreeSet<Vec<u8>>> = BTreeMap::new();
        for list in all.newest.values() {
            known.insert(list.issuer.clone(), list.serials.clone());
        }
        all.kept.retain(|list| {
            let known = known.entry(list.issuer.clone()).or_default();
            let adds = !list.serials.is_subset(known);
            known.extend(list.serials.iter().cloned());
            adds
        });
        all
    }

    /// A warning for each issuer among these lists whose entries are not all in the lists `new` of
    /// a configuration, or whose list there is older. Lists of which `count` is false are ignored.
    #[must_use]
    pub fn lost(&self, new: &[List], count: impl Fn(&List) -> bool) -> Vec<String> {
        let mut lost: BTreeMap<(&str, &Issuer), BTreeSet<&[u8]>> = BTreeMap::new();
        let mut older: BTreeSet<(&str, &Issuer)> = BTreeSet::new();
        for list in self.all().filter(|list| count(list)) {
            let same = || new.iter().filter(|other| other.issuer == list.issuer);
            let missing = list
                .serials
                .iter()
                .filter(|serial| !same().any(|other| other.serials.contains(*serial)))
                .map(Vec::as_slice);
            lost.entry((&list.name, &list.issuer)).or_default().extend(missing);
            if same().next().is_some() && same().all(|other| other.age(list) == Ordering::Less) {
                older.insert((&list.name, &list.issuer));
            }
        }
        let stay = "until the service restarts";
        lost.into_iter()
            .filter_map(|(issuer, serials)| {
                let name = issuer.0;
                if serials.is_empty() {
                    return older.contains(&issuer).then(|| format!(
                        "the revocation list of {name} is older than the one that was in force"
                    ));
                }
                let named: Vec<_> = serials
                    .iter()
                    .take(NAMED)
                    .map(|serial| serial.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
                    .collect();
                let more = if serials.len() > NAMED { ", ..." } else { "" };
                Some(format!(
                    "the configured revocation lists no longer contain {} certificates of {name}, which stay revoked {stay}: serial numbers {}{more}",
                    serials.len(),
                    named.join(", ")
                ))
            })
            .collect()
    }

    /// The newest list of each issuer in the configuration, with the end of its validity in seconds
    /// since 1970.
    pub fn ends(&self) -> impl Iterator<Item = (&List, Option<u64>)> {
        self.newest.values().map(|list| (list, list.until))
    }

    /// Whether the configuration has a list of this CA, or no lists at all.
    #[must_use]
    pub fn cover(&self, ca: &CertificateDer<'_>, provider: &CryptoProvider) -> bool {
        self.newest.is_empty() || self.newest.values().any(|list| list.is_of(ca, provider))
    }

    fn all(&self) -> impl Iterator<Item = &List> {
        self.newest.values().chain(&self.kept)
    }

    /// For the verifier under this CA: the lists in which every certificate must be found, the
    /// newest first, and those that only add entries. Lists of the CA's name that another key signed
    /// are of no use there.
    pub(crate) fn under(
        &self,
        ca: &CertificateDer<'_>,
        provider: &CryptoProvider,
    ) -> [Vec<CertificateRevocationListDer<'static>>; 2] {
        let name = x509_cert::Certificate::from_der(ca)
            .and_then(|ca| ca.tbs_certificate().subject().to_der())
            .unwrap_or_default();
        let fits = |list: &&List| list.issuer.0 != name || list.is_of(ca, provider);
        let mut newest: Vec<&List> = self.newest.values().filter(fits).collect();
        newest.sort_by(|a, b| b.age(a));
        // Of several lists of one name, webpki asks the first.
        let mut names = BTreeSet::new();
        let others: Vec<&List> =
            newest.iter().copied().filter(|list| !names.insert(&list.issuer.0)).collect();
        let der = |list: &List| list.der.clone();
        [
            newest.into_iter().map(der).collect(),
            others.into_iter().chain(self.kept.iter().filter(fits)).map(der).collect(),
        ]
    }
}
