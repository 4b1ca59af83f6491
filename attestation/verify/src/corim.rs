//! Reference values as signed CoRIM (draft-ietf-rats-corim-11): who may vouch for what, reading, and writing.
//!
//! | what | class | measurements |
//! |---|---|---|
//! | kernel | vendor `shef`, model `security-kernel`, layer 1 | `kernel`: name, exact SVN, SHA-256 |
//! | shell | vendor `shef`, model `shell`, layer 0 | `shell`: name, measurement |
//! | image | class id SHA-256 of the IP vendor's key, vendor `shef`, model = accelerator, layer 2 | `image`: name, exact SVN, digest; `configuration`, `design`: digests |
//!
//! Bytes are checked to be deterministic before anything is read; nothing is read before the signature is verified.

use std::collections::BTreeSet;

use corim::builder::{ComidBuilder, CorimBuilder};
use corim::cbor::value::Value as CborValue;
use corim::types::common::{ClassIdChoice, MeasuredElement, TagIdChoice};
use corim::types::corim::CorimId;
use corim::types::environment::{ClassMap, EnvironmentMap};
use corim::types::measurement::{Digest as CorimDigest, MeasurementMap, MeasurementValuesMap, SvnChoice};
use corim::types::signed::{CoseAlgorithm, CwtClaims, SignedCorimBuilder, decode_signed_corim};
use corim::types::triples::ReferenceTriple;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use shef_proto::cbor::{self, CborError, Limits, Value};
use shef_proto::cert::{self, Certificate};
use shef_proto::cose::{ES256, ESP256, SigningKey, VerifyFn};
use shef_proto::hpke_suite::PublicKey;

use crate::policy::{DigestName, PolicyError, set};
use crate::reference::{ImageReference, KernelReference, ReferenceValues, ShellReference};
use crate::revocation::Revocations;

/// Most bytes of a signed CoRIM.
pub const MAX_CORIM: usize = 1 << 20;
/// Media type of a signed CoRIM.
pub const MEDIA_TYPE: &str = "application/rim+cose";
/// Content type in its protected header.
const CONTENT_TYPE: &str = "application/rim+cbor";
/// Named Information number of SHA-256.
const SHA_256: i64 = 1;
const CLASS_VENDOR: &str = "shef";
const KERNEL_MODEL: &str = "security-kernel";
const SHELL_MODEL: &str = "shell";

/// Why a CoRIM is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CorimError {
    /// Not strict CBOR.
    #[error(transparent)]
    Cbor(#[from] CborError),
    /// Not a signed CoRIM of the form.
    #[error("not a CoRIM of the form: {text}")]
    Form {
        /// What is wrong.
        text: String,
    },
    /// Not a COSE_Sign1 whose header says that it signs a CoRIM.
    #[error("not a signed CoRIM: {text}")]
    Unsigned {
        /// What is wrong.
        text: String,
    },
    /// One of the same id and signer with a higher version, or the same version and other bytes, is known.
    #[error("{id:?} version {version} of {signer} is not newer than version {known}")]
    Older {
        /// Id of the CoRIM.
        id: String,
        /// Its signer.
        signer: String,
        /// Its version.
        version: u64,
        /// The version known.
        known: u64,
    },
    /// Nobody who may vouch for reference values signed it.
    #[error("no known signer: {text}")]
    Signer {
        /// Why.
        text: String,
    },
    /// The signature does not verify.
    #[error("the signature of {signer} does not verify")]
    Signature {
        /// The signer it should be of.
        signer: String,
    },
    /// Outside its validity.
    #[error("not valid at {now}: {text}")]
    Validity {
        /// Seconds since 1970.
        now: i64,
        /// Which limit.
        text: String,
    },
    /// The signer may not vouch for this class.
    #[error("{signer} may not vouch for {class}")]
    Authority {
        /// The signer.
        signer: String,
        /// The class.
        class: String,
    },
    /// Deactivated, or its signer revoked.
    #[error("{what} is no longer in force")]
    Deactivated {
        /// The CoRIM or its signer.
        what: String,
    },
}

impl CorimError {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Cbor(_) | Self::Form { .. } => "SHEF-ATT-080",
            Self::Unsigned { .. }
            | Self::Signer { .. }
            | Self::Signature { .. }
            | Self::Validity { .. }
            | Self::Authority { .. }
            | Self::Deactivated { .. }
            | Self::Older { .. } => "SHEF-ATT-081",
        }
    }
}

fn form(text: impl ToString) -> CorimError {
    CorimError::Form { text: text.to_string() }
}

fn unsigned(text: impl ToString) -> CorimError {
    CorimError::Unsigned { text: text.to_string() }
}

/// How a signer is known.
#[derive(Clone, Debug)]
enum Identity {
    Key(PublicKey),
    Authority(Box<Certificate>),
}

/// Who may vouch for reference values, and for which.
#[derive(Clone, Debug)]
pub struct CorimSigner {
    name: String,
    identity: Identity,
    kernels: bool,
    shells: bool,
    vendors: BTreeSet<String>,
}

impl CorimSigner {
    /// A signer known by its key. It vouches for nothing yet.
    #[must_use]
    pub fn with_key(name: &str, key: PublicKey) -> Self {
        Self { name: name.into(), identity: Identity::Key(key), kernels: false, shells: false, vendors: BTreeSet::new() }
    }

    /// Signers with certificates (codeSigning) of this CA, in the CoRIM's header. They vouch for nothing yet.
    ///
    /// # Errors
    /// The certificate is no self-signed root.
    pub fn with_authority(name: &str, root: &[u8]) -> Result<Self, PolicyError> {
        let bad = |error: cert::CertError| PolicyError::Anchor { name: name.into(), text: error.to_string() };
        let root = Certificate::parse(root).map_err(bad)?;
        root.check_root().map_err(bad)?;
        let identity = Identity::Authority(Box::new(root));
        Ok(Self { name: name.into(), identity, kernels: false, shells: false, vendors: BTreeSet::new() })
    }

    /// An IP vendor: its image-signing key vouches for its own images.
    #[must_use]
    pub fn vendor(name: &str, key: PublicKey) -> Self {
        Self::with_key(name, key).for_vendor(&vendor_id(&key))
    }

    /// Lets it vouch for kernels.
    #[must_use]
    pub fn for_kernels(mut self) -> Self {
        self.kernels = true;
        self
    }

    /// Lets it vouch for shells.
    #[must_use]
    pub fn for_shells(mut self) -> Self {
        self.shells = true;
        self
    }

    /// Lets it vouch for images of this vendor (SHA-256 of its public key).
    #[must_use]
    pub fn for_vendor(mut self, vendor: &[u8; 32]) -> Self {
        self.vendors.insert(hex::encode(vendor));
        self
    }

    /// Name for reports.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Reads a list: `[[signer]]` with `name`, `key` (65 bytes) or `certificate` (DER) in hexadecimal, and what it may vouch for: `kernels`,
    /// `shells` (default false), `vendors` (SHA-256 of public keys).
    ///
    /// # Errors
    /// Not TOML of this form; with line and column.
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
        let file: File = toml::from_str(text).map_err(|error| PolicyError::Anchor { name: "signers".into(), text: error.to_string() })?;
        file.signer
            .into_iter()
            .map(|entry| {
                let bad = |text: String| PolicyError::Anchor { name: entry.name.clone(), text };
                let bytes = |text: &str| hex::decode(text).map_err(|_| bad("not hexadecimal".into()));
                let signer = match (&entry.key, &entry.certificate) {
                    (Some(key), None) => {
                        let key = PublicKey::from_bytes(&bytes(key)?).map_err(|error| bad(error.to_string()))?;
                        Self::with_key(&entry.name, key)
                    }
                    (None, Some(der)) => Self::with_authority(&entry.name, &bytes(der)?)?,
                    _ => return Err(bad("expected either key or certificate".into())),
                };
                Ok(Self { kernels: entry.kernels, shells: entry.shells, vendors: entry.vendors, ..signer })
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
        let vendors: Vec<String> = self.vendors.iter().map(|vendor| format!("{vendor:?}")).collect();
        format!(
            "[[signer]]\nname = {:?}\n{identity}\nkernels = {}\nshells = {}\nvendors = [{}]\n",
            self.name,
            self.kernels,
            self.shells,
            vendors.join(", ")
        )
    }

    fn public_key(&self) -> &PublicKey {
        match &self.identity {
            Identity::Key(key) => key,
            Identity::Authority(root) => root.key(),
        }
    }
}

/// Name of an IP vendor: SHA-256 of its public key.
#[must_use]
pub fn vendor_id(key: &PublicKey) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// What CoRIMs are read against.
#[derive(Clone, Copy)]
pub struct Trust<'a> {
    /// Who may sign.
    pub signers: &'a [CorimSigner],
    /// CoRIMs that were taken out of force, by SHA-256 of their bytes in hexadecimal.
    pub deactivated: &'a BTreeSet<String>,
    /// Revoked authorities and certificates, when there is a list.
    pub revocations: Option<&'a Revocations>,
    /// Seconds since 1970.
    pub now: i64,
    /// Implementation of ECDSA verification.
    pub verify: VerifyFn,
}

/// Reference values whose signature, authority and validity were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corim {
    /// Its id.
    pub id: String,
    /// Its version: of two with the same id and signer the higher one counts.
    pub version: u64,
    /// SHA-256 of its bytes.
    pub digest: [u8; 32],
    /// Who signed it.
    pub signer: String,
    /// Until when it counts, seconds since 1970; none: without end.
    pub not_after: Option<i64>,
    /// The reference values.
    pub reference: ReferenceValues,
    /// Triples about other makers' classes, which were not used.
    pub ignored: usize,
}

/// Reads a signed CoRIM.
///
/// # Errors
/// The first rule that is broken; nothing of it may be used then.
pub fn read(bytes: &[u8], trust: &Trust<'_>) -> Result<Corim, CorimError> {
    let limits = Limits::bytes(MAX_CORIM);
    let envelope = cbor::parse(bytes, &limits)?;
    let (protected, x5chain) = shape(&envelope)?;
    let header = header(protected)?;
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    if trust.deactivated.contains(hex::encode(digest).as_str()) {
        return Err(CorimError::Deactivated { what: "this CoRIM".into() });
    }

    let signed = decode_signed_corim(bytes).map_err(form)?;
    let payload = signed.payload.as_deref().ok_or_else(|| form("the payload is not attached"))?;
    let message = signed.to_be_signed(b"").map_err(form)?;
    let signature: [u8; 64] = signed.signature.as_slice().try_into().map_err(|_| form("the signature is not 64 bytes r | s"))?;
    let signer = verified_signer(trust, &x5chain, &message, &signature)?;
    in_time(trust.now, header.not_before, header.not_after)?;

    // Authentic from here on.
    for tag in tags(payload, &limits)? {
        cbor::check(&tag, &limits)?;
    }
    let validity = |error: corim::ValidationError| match error {
        corim::ValidationError::Expired | corim::ValidationError::NotYetValid => {
            CorimError::Validity { now: trust.now, text: error.to_string() }
        }
        other => form(other),
    };
    let (map, comids) = corim::validate::decode_and_validate_at(payload, trust.now).map_err(validity)?;
    let id = match &map.id {
        CorimId::Text(text) => text.clone(),
        CorimId::Uuid(uuid) => hex::encode(uuid),
        _ => return Err(form("the id is neither text nor UUID")),
    };
    let own_end = map.rim_validity.as_ref().map(|validity| validity.not_after.epoch_secs());
    let mut out = Corim {
        id,
        version: 0,
        digest,
        signer: signer.name.clone(),
        not_after: own_end.into_iter().chain(header.not_after).min(),
        reference: ReferenceValues::default(),
        ignored: 0,
    };
    for comid in &comids {
        out.version = out.version.max(comid.tag_identity.tag_version.unwrap_or(0));
        for triple in comid.triples.reference_triples.iter().flatten() {
            reference(signer, triple, &mut out)?;
        }
    }
    Ok(out)
}

/// Checks that a CoRIM may join those known: none of the same id and signer has a higher version, or the same version and other bytes.
///
/// # Errors
/// One has.
pub fn admit(corim: &Corim, known: &[Corim]) -> Result<(), CorimError> {
    let same = |other: &&Corim| other.id == corim.id && other.signer == corim.signer && other.digest != corim.digest;
    match known.iter().filter(same).map(|other| other.version).max() {
        Some(known) if known >= corim.version => {
            Err(CorimError::Older { id: corim.id.clone(), signer: corim.signer.clone(), version: corim.version, known })
        }
        _ => Ok(()),
    }
}

/// Merges CoRIMs: of several with the same id and signer only the one of the highest version counts.
///
/// # Errors
/// Two of the same id, signer and version that differ: nobody can say which is meant.
pub fn merge(corims: &[Corim]) -> Result<ReferenceValues, CorimError> {
    let mut out = ReferenceValues::default();
    for corim in corims {
        match admit(corim, corims) {
            Ok(()) => out.extend(&corim.reference),
            Err(CorimError::Older { version, known, .. }) if version < known => {}
            Err(error) => return Err(error),
        }
    }
    Ok(out)
}

struct Header {
    not_before: Option<i64>,
    not_after: Option<i64>,
}

/// The parts of the COSE_Sign1 that are ours to check: protected bytes and certificates.
fn shape(envelope: &Value) -> Result<(&[u8], Vec<Vec<u8>>), CorimError> {
    let Value::Tag(18, inner) = envelope else { return Err(unsigned("not a COSE_Sign1 under tag 18; unsigned CoRIMs are not taken")) };
    let Value::Array(parts) = &**inner else { return Err(unsigned("the COSE_Sign1 is not an array")) };
    let [Value::Bytes(protected), Value::Map(unprotected), Value::Bytes(_), Value::Bytes(_)] = &parts[..] else {
        return Err(unsigned("the COSE_Sign1 is not header, header, attached payload, signature"));
    };
    let chain = match &unprotected[..] {
        [] => Vec::new(),
        [(label, Value::Bytes(one))] if label.as_int() == Some(33) => vec![one.clone()],
        _ => return Err(unsigned("the unprotected header may hold one certificate (33) only")),
    };
    Ok((protected, chain))
}

fn header(protected: &[u8]) -> Result<Header, CorimError> {
    let Value::Map(entries) = cbor::parse(protected, &Limits::bytes(4096))? else {
        return Err(unsigned("the protected header is not a map"));
    };
    let (mut algorithm, mut content, mut meta) = (None, None, false);
    let mut out = Header { not_before: None, not_after: None };
    for (label, value) in entries {
        match label.as_int() {
            Some(1) => algorithm = value.as_int(),
            Some(3) => content = Some(value),
            Some(8) => meta = true,
            Some(15) => {
                let Value::Map(claims) = value else { return Err(unsigned("the CWT claims are not a map")) };
                meta = true;
                for (claim, value) in claims {
                    match claim.as_int() {
                        Some(4) => out.not_after = Some(value.as_int().ok_or_else(|| unsigned("exp is not a whole number"))?),
                        Some(5) => out.not_before = Some(value.as_int().ok_or_else(|| unsigned("nbf is not a whole number"))?),
                        _ => {}
                    }
                }
            }
            _ => return Err(unsigned("the protected header may hold alg (1), content type (3), corim-meta (8) and CWT claims (15) only")),
        }
    }
    if !matches!(algorithm, Some(ESP256 | ES256)) {
        return Err(unsigned(format!("algorithm {algorithm:?}, expected ECDSA P-256 with SHA-256 (-9 or -7)")));
    }
    if content != Some(CONTENT_TYPE.into()) {
        return Err(unsigned(format!("the content type is not {CONTENT_TYPE}")));
    }
    if !meta {
        return Err(unsigned("neither corim-meta nor CWT claims say who signed"));
    }
    Ok(out)
}

fn in_time(now: i64, not_before: Option<i64>, not_after: Option<i64>) -> Result<(), CorimError> {
    if not_before.is_some_and(|from| now < from) {
        return Err(CorimError::Validity { now, text: "not yet valid".into() });
    }
    if not_after.is_some_and(|until| now > until) {
        return Err(CorimError::Validity { now, text: "expired".into() });
    }
    Ok(())
}

fn verified_signer<'a>(
    trust: &Trust<'a>,
    x5chain: &[Vec<u8>],
    message: &[u8],
    signature: &[u8; 64],
) -> Result<&'a CorimSigner, CorimError> {
    let revoked = |signer: &CorimSigner, key: &PublicKey, leaf: Option<&Certificate>| {
        let Some(list) = trust.revocations else { return Ok(()) };
        let hash = |bytes: &[u8]| hex::encode(Sha256::digest(bytes));
        let hit = list.authorities.contains(&hash(signer.public_key().as_bytes()))
            || list.authorities.contains(&hash(key.as_bytes()))
            || list.vendors.contains(&hash(key.as_bytes()))
            || leaf.is_some_and(|leaf| list.certificates.contains(&hash(leaf.der())) || list.serials.contains(&hex::encode(leaf.serial())));
        if hit { Err(CorimError::Deactivated { what: format!("the signer {}", signer.name) }) } else { Ok(()) }
    };
    if let [der] = x5chain {
        let bad = |error: cert::CertError| CorimError::Signer { text: format!("{error} ({})", error.code()) };
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
            revoked(signer, &key, Some(&leaf))?;
            return Ok(signer);
        }
        return Err(CorimError::Signer { text: "the certificate was issued by none of the authorities".into() });
    }
    for signer in trust.signers {
        let Identity::Key(key) = &signer.identity else { continue };
        if (trust.verify)(key, message, signature) {
            revoked(signer, key, None)?;
            return Ok(signer);
        }
    }
    Err(CorimError::Signer { text: "the signature is of none of the known keys".into() })
}

/// The encoded tags (CoMIDs and others) inside a CoRIM, after a check of the CoRIM itself.
fn tags(payload: &[u8], limits: &Limits) -> Result<Vec<Vec<u8>>, CorimError> {
    let Value::Tag(501, map) = cbor::parse(payload, limits)? else { return Err(form("the payload is not a CoRIM under tag 501")) };
    let Value::Map(entries) = *map else { return Err(form("the CoRIM is not a map")) };
    let tags = entries.into_iter().find(|(key, _)| key.as_int() == Some(1)).map(|(_, value)| value);
    let Some(Value::Array(tags)) = tags else { return Err(form("the CoRIM has no tags")) };
    tags.into_iter()
        .map(|tag| match tag {
            Value::Tag(_, inner) => match *inner {
                Value::Bytes(bytes) => Ok(bytes),
                _ => Err(form("a tag is not a byte string")),
            },
            _ => Err(form("a tag is not tagged")),
        })
        .collect()
}

fn reference(signer: &CorimSigner, triple: &ReferenceTriple, out: &mut Corim) -> Result<(), CorimError> {
    let environment = triple.environment();
    let class = environment.class.as_ref();
    let (Some(class), None, None) = (class, &environment.instance, &environment.group) else {
        out.ignored += 1;
        return Ok(());
    };
    let (Some(CLASS_VENDOR), Some(model), Some(layer), None) = (class.vendor.as_deref(), class.model.as_deref(), class.layer, class.index)
    else {
        out.ignored += 1;
        return Ok(());
    };
    let measurements = Measurements::new(triple.measurements())?;
    let authority = |allowed: bool, class: String| {
        if allowed { Ok(()) } else { Err(CorimError::Authority { signer: signer.name.clone(), class }) }
    };
    match (layer, &class.class_id) {
        (1, None) if model == KERNEL_MODEL => {
            authority(signer.kernels, "kernels".into())?;
            let (name, digest, svn) = measurements.take("kernel", true)?;
            out.reference.kernels.push(KernelReference { name, digest, svn });
            measurements.only(&["kernel"])
        }
        (0, None) if model == SHELL_MODEL => {
            authority(signer.shells, "shells".into())?;
            let (name, digest, _) = measurements.take("shell", false)?;
            out.reference.shells.push(ShellReference { name, digest });
            measurements.only(&["shell"])
        }
        (2, Some(ClassIdChoice::Bytes(vendor))) => {
            let vendor: [u8; 32] =
                vendor.as_slice().try_into().map_err(|_| form("the class id of an image is not the SHA-256 of a key"))?;
            authority(signer.vendors.contains(&hex::encode(vendor)), format!("images of vendor {}", hex::encode(&vendor[..8])))?;
            let (name, digest, svn) = measurements.take("image", true)?;
            let (_, config_digest, _) = measurements.take("configuration", false)?;
            let (_, design_digest, _) = measurements.take("design", false)?;
            let accelerator = model.to_owned();
            out.reference.images.push(ImageReference { name, accelerator, digest, config_digest, design_digest, vendor, svn });
            measurements.only(&["image", "configuration", "design"])
        }
        _ => Err(form(format!("class {CLASS_VENDOR} {model:?} layer {layer} is none of kernel, shell, image"))),
    }
}

/// The measurements of one environment, by key; none twice.
struct Measurements<'a>(Vec<(&'a str, &'a MeasurementValuesMap)>);

impl<'a> Measurements<'a> {
    fn new(list: &'a [MeasurementMap]) -> Result<Self, CorimError> {
        let mut out: Vec<(&str, &MeasurementValuesMap)> = Vec::new();
        for measurement in list {
            let Some(MeasuredElement::Text(key)) = &measurement.mkey else { return Err(form("a measurement has no text as key")) };
            if measurement.authorized_by.is_some() {
                return Err(form("authorized-by is not taken: authority comes from the signer"));
            }
            if out.iter().any(|(known, _)| known == key) {
                return Err(form(format!("two measurements {key:?} of one environment")));
            }
            out.push((key, &measurement.mval));
        }
        Ok(Self(out))
    }

    fn only(&self, keys: &[&str]) -> Result<(), CorimError> {
        match self.0.iter().find(|(key, _)| !keys.contains(key)) {
            Some((key, _)) => Err(form(format!("unknown measurement {key:?}"))),
            None => Ok(()),
        }
    }

    /// Name, SHA-256 and SVN of a measurement.
    fn take(&self, key: &str, with_svn: bool) -> Result<(String, [u8; 32], u64), CorimError> {
        let (_, values) = self.0.iter().find(|(known, _)| *known == key).ok_or_else(|| form(format!("no measurement {key:?}")))?;
        let digests = values.digests.as_deref().unwrap_or_default();
        let mut sha256 = digests.iter().filter(|digest| digest.alg().as_int() == Some(SHA_256));
        let (Some(digest), None) = (sha256.next(), sha256.next()) else {
            return Err(form(format!("measurement {key:?} has not exactly one SHA-256 digest")));
        };
        let digest = digest.value().try_into().map_err(|_| form(format!("the digest of {key:?} is not 32 bytes")))?;
        let svn = match &values.svn {
            Some(SvnChoice::ExactValue(svn)) => *svn,
            None if !with_svn => 0,
            _ => return Err(form(format!("measurement {key:?} has no exact SVN; least versions are the policy's"))),
        };
        Ok((values.name.clone().unwrap_or_else(|| key.to_owned()), digest, svn))
    }
}

/// What a CoRIM to be written says beside the reference values.
#[derive(Clone, Copy, Debug)]
pub struct Describe<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its version: a newer one of the same id and signer replaces it.
    pub version: u64,
    /// Name of the signer.
    pub issuer: &'a str,
    /// Until when it counts, seconds since 1970; none: without end.
    pub not_after: Option<i64>,
}

/// An unsigned CoRIM of these reference values.
///
/// # Errors
/// There are none, or a text that CoRIM does not take.
pub fn write(reference: &ReferenceValues, describe: &Describe<'_>) -> Result<Vec<u8>, CorimError> {
    let class = |class_id, model: &str, layer| EnvironmentMap {
        class: Some(ClassMap { class_id, vendor: Some(CLASS_VENDOR.into()), model: Some(model.into()), layer: Some(layer), index: None }),
        instance: None,
        group: None,
    };
    let measurement = |key: &str, name: Option<&str>, digest: &[u8; 32], svn: Option<u64>| {
        let mut mval = MeasurementValuesMap::default();
        mval.svn = svn.map(SvnChoice::ExactValue);
        mval.digests = Some(vec![CorimDigest::new(SHA_256, digest.to_vec())]);
        mval.name = name.map(str::to_owned);
        MeasurementMap { mkey: Some(MeasuredElement::Text(key.into())), mval, authorized_by: None }
    };
    let mut comid = ComidBuilder::new(TagIdChoice::Text(describe.id.into())).set_tag_version(describe.version);
    for k in &reference.kernels {
        let values = vec![measurement("kernel", Some(&k.name), &k.digest, Some(k.svn))];
        comid = comid.add_reference_triple(ReferenceTriple::new(class(None, KERNEL_MODEL, 1), values));
    }
    for s in &reference.shells {
        let values = vec![measurement("shell", Some(&s.name), &s.digest, None)];
        comid = comid.add_reference_triple(ReferenceTriple::new(class(None, SHELL_MODEL, 0), values));
    }
    for i in &reference.images {
        let values = vec![
            measurement("image", Some(&i.name), &i.digest, Some(i.svn)),
            measurement("configuration", None, &i.config_digest, None),
            measurement("design", None, &i.design_digest, None),
        ];
        let vendor = ClassIdChoice::Bytes(i.vendor.to_vec());
        comid = comid.add_reference_triple(ReferenceTriple::new(class(Some(vendor), &i.accelerator, 2), values));
    }
    let comid = comid.build().map_err(form)?;
    let mut corim = CorimBuilder::new(CorimId::Text(describe.id.into())).add_comid_tag(comid).map_err(form)?;
    if let Some(not_after) = describe.not_after {
        corim = corim.set_validity(None, not_after).map_err(form)?;
    }
    corim.build_bytes().map_err(form)
}

/// Signs a CoRIM. `certificate` is the signer's, where verifiers know its CA and not its key.
///
/// # Errors
/// The bytes cannot be wrapped.
pub fn sign(unsigned: Vec<u8>, issuer: &str, key: &SigningKey, certificate: Option<&[u8]>) -> Result<Vec<u8>, CorimError> {
    let mut builder = SignedCorimBuilder::new(CoseAlgorithm::from_i64(ESP256), unsigned).set_cwt_claims(CwtClaims::new(issuer));
    if let Some(der) = certificate {
        builder = builder.add_unprotected(CborValue::Integer(33), CborValue::Bytes(der.to_vec()));
    }
    let message = builder.to_be_signed(b"").map_err(form)?;
    builder.build_with_signature(key.sign(&message).to_vec()).map_err(form)
}

/// Writes and signs a CoRIM.
///
/// # Errors
/// As [`write`] and [`sign`].
pub fn write_signed(
    reference: &ReferenceValues,
    describe: &Describe<'_>,
    key: &SigningKey,
    certificate: Option<&[u8]>,
) -> Result<Vec<u8>, CorimError> {
    sign(write(reference, describe)?, describe.issuer, key, certificate)
}
