//! The certificates of a device: manufacturer's CA -> DeviceID -> attestation key (AK), X.509 with the TCG DICE extensions.
//!
//! Issuing, strict parsing, and a path validator that knows exactly this chain: `[AK, DeviceID]` under a root that is the trust anchor.
//! General validators do not fit: the TcbInfo extension is critical, and the key purposes are DICE's own.

use alloc::{string::String, vec::Vec};

use p256::ecdsa::Signature;
use sha2::{Digest, Sha256};

use crate::cbor::printable;
use crate::code::Code;
use crate::cose::{self, SigningKey, VerifyFn};
use crate::der::{self, DerError, Reader, tlv};
use crate::hpke_suite::PublicKey;

/// Most bytes of one certificate.
pub const MAX_CERTIFICATE: usize = 2048;
/// Bytes of a ueid: type 0x01 (random) and 32 bytes.
pub const UEID_LEN: usize = 33;
/// notBefore of certificates made by a device, which has no clock (2018-03-22 23:59:59 UTC, as in the Open Profile for DICE).
pub const NO_CLOCK: i64 = 1_521_763_199;
/// notAfter of certificates without an end: 9999-12-31 23:59:59 UTC (RFC 5280 section 4.1.2.5).
pub const NO_END: i64 = 253_402_300_799;
/// `debug` of the TcbInfo flags.
pub const FLAG_DEBUG: u32 = 1 << 3;

const OID_EC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const OID_P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const OID_ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const OID_SHA256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
const OID_COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const OID_SERIAL_NUMBER: &[u8] = &[0x55, 0x04, 0x05];
const OID_SKI: &[u8] = &[0x55, 0x1d, 0x0e];
const OID_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const OID_BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const OID_AKI: &[u8] = &[0x55, 0x1d, 0x23];
const OID_EKU: &[u8] = &[0x55, 0x1d, 0x25];
const OID_TCB_INFO: &[u8] = &[0x67, 0x81, 0x05, 0x05, 0x04, 0x01];
const OID_UEID: &[u8] = &[0x67, 0x81, 0x05, 0x05, 0x04, 0x04];
/// tcg-dice-kp-attestLoc: signs evidence.
const OID_KP_ATTEST_LOC: &[u8] = &[0x67, 0x81, 0x05, 0x05, 0x04, 0x64, 0x09];
/// tcg-dice-kp-eca: may issue certificates of the next layer.
const OID_KP_ECA: &[u8] = &[0x67, 0x81, 0x05, 0x05, 0x04, 0x64, 0x0c];
/// id-kp-codeSigning: signs reference values.
const OID_KP_CODE_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03];

const KEY_USAGE_SIGN: u16 = 1 << 0;
const KEY_USAGE_CERT_SIGN: u16 = 1 << 5;

/// What is wrong with a certificate or a chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CertError {
    /// Not DER of this kind of certificate.
    #[error("certificate is malformed at its {part}")]
    Malformed {
        /// Which part.
        part: &'static str,
    },
    /// Not ECDSA P-256 with SHA-256.
    #[error("{part} is not ECDSA P-256 with SHA-256")]
    Algorithm {
        /// Key or signature.
        part: &'static str,
    },
    /// Not exactly the certificates of AK and DeviceID.
    #[error("{found} certificates where AK and DeviceID are expected")]
    Length {
        /// How many.
        found: usize,
    },
    /// A rule of the chain is broken.
    #[error("{which} certificate: {rule}")]
    Rule {
        /// `root`, `DeviceID`, `AK` or `signer`.
        which: &'static str,
        /// What does not hold.
        rule: &'static str,
    },
    /// The issuer named did not sign it.
    #[error("{which} certificate was not signed by its issuer")]
    Signature {
        /// `root`, `DeviceID`, `AK` or `signer`.
        which: &'static str,
    },
    /// Outside its validity.
    #[error("{which} certificate is valid from {not_before} to {not_after}, not at {now}")]
    Validity {
        /// `root`, `DeviceID`, `AK`, `signer`, or `one` of them.
        which: &'static str,
        /// Seconds since 1970.
        not_before: i64,
        /// Seconds since 1970.
        not_after: i64,
        /// Seconds since 1970.
        now: i64,
    },
}

/// Codes of this module.
pub const CODES: &[Code] = &[
    Code::new(
        "SHEF-PRO-020",
        "malformed certificate",
        "The bytes are not strict DER of an X.509 v3 certificate with the extensions that this chain uses.",
    ),
    Code::new(
        "SHEF-PRO-021",
        "certificate of another algorithm",
        "Keys are P-256 points, signatures ECDSA with SHA-256. Certificates with RSA, other curves or other hashes are refused.",
    ),
    Code::new(
        "SHEF-PRO-022",
        "certificate chain breaks a rule",
        "Names, key identifiers, basic constraints, key usage, key purposes or DICE extensions are not those of manufacturer -> DeviceID -> AK.",
    ),
    Code::new(
        "SHEF-PRO-023",
        "certificate not signed by its issuer",
        "The certificate was changed, or the trust anchor is not the CA that made this device.",
    ),
    Code::new(
        "SHEF-PRO-024",
        "certificate not valid now",
        "The time of the check lies outside the validity of the certificate. Look at the clock of the verifier first.",
    ),
    Code::new(
        "SHEF-PRO-025",
        "wrong number of certificates",
        "A chain is exactly two certificates, AK first, then DeviceID. The root is never sent: it is the trust anchor.",
    ),
];

impl CertError {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "SHEF-PRO-020",
            Self::Algorithm { .. } => "SHEF-PRO-021",
            Self::Rule { .. } => "SHEF-PRO-022",
            Self::Signature { .. } => "SHEF-PRO-023",
            Self::Validity { .. } => "SHEF-PRO-024",
            Self::Length { .. } => "SHEF-PRO-025",
        }
    }
}

/// TCG DiceTcbInfo of the Security Kernel, as the AK certificate carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcbInfo {
    /// Version text of the kernel.
    pub version: String,
    /// Security version number.
    pub svn: u64,
    /// SHA-256 of the kernel image.
    pub digest: [u8; 32],
    /// OperationalFlags, bit `i` of the BIT STRING at `1 << i`.
    pub flags: u32,
}

/// DiceTcbInfo `vendor` of the kernel.
pub const TCB_VENDOR: &str = "shef";
/// DiceTcbInfo `model` of the kernel.
pub const TCB_MODEL: &str = "security-kernel";
/// DiceTcbInfo `layer` of the kernel.
pub const TCB_LAYER: u64 = 1;

/// basicConstraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Basic {
    ca: bool,
    path_len: Option<u64>,
}

/// An extension's value and whether it is critical.
#[derive(Clone, Debug)]
struct Ext<T> {
    critical: bool,
    value: T,
}

#[derive(Clone, Debug, Default)]
struct Extensions {
    basic: Option<Ext<Basic>>,
    key_usage: Option<Ext<u16>>,
    eku: Option<Ext<Vec<Vec<u8>>>>,
    ski: Option<Vec<u8>>,
    aki: Option<Vec<u8>>,
    ueid: Option<Vec<u8>>,
    tcb_info: Option<Ext<TcbInfo>>,
    unknown_critical: bool,
}

/// A parsed certificate. Nothing about it is verified yet.
#[derive(Clone, Debug)]
pub struct Certificate {
    der: Vec<u8>,
    tbs: Vec<u8>,
    serial: Vec<u8>,
    issuer: Vec<u8>,
    subject: Vec<u8>,
    not_before: i64,
    not_after: i64,
    key: PublicKey,
    extensions: Extensions,
    signature: [u8; 64],
}

/// What a valid chain says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Attestation key.
    pub ak: PublicKey,
    /// DeviceID key.
    pub device_id: PublicKey,
    /// Identity of the device, certified by the manufacturer.
    pub ueid: [u8; UEID_LEN],
    /// The measured kernel, certified by the boot code.
    pub tcb_info: TcbInfo,
    /// From when on all certificates including the root are valid, seconds since 1970.
    pub not_before: i64,
    /// Until when all certificates including the root are valid, seconds since 1970.
    pub not_after: i64,
}

/// The ueid of a device: type 0x01 and SHA-256 of its DeviceID public key.
#[must_use]
pub fn ueid_of(device_id: &PublicKey) -> [u8; UEID_LEN] {
    let mut ueid = [1; UEID_LEN];
    ueid[1..].copy_from_slice(&Sha256::digest(device_id.as_bytes()));
    ueid
}

// ---- issuing ----

fn key_id(key: &PublicKey) -> [u8; 20] {
    let digest = Sha256::digest(key.as_bytes());
    let mut id = [0; 20];
    id.copy_from_slice(&digest[..20]);
    id[0] &= 0x7f;
    id
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|n| char::from(if n < 10 { b'0' + n } else { b'a' + n - 10 })).collect()
}

/// Name of a common name and, for devices, the hexadecimal id of their key.
fn name(common: &str, id: Option<&[u8]>) -> Vec<u8> {
    let attribute =
        |oid: &[u8], tag: u8, text: &str| tlv(der::SET, &[&tlv(der::SEQUENCE, &[&tlv(der::OID, &[oid]), &tlv(tag, &[text.as_bytes()])])]);
    let common = attribute(OID_COMMON_NAME, der::UTF8_STRING, common);
    match id {
        None => tlv(der::SEQUENCE, &[&common]),
        Some(id) => tlv(der::SEQUENCE, &[&common, &attribute(OID_SERIAL_NUMBER, der::PRINTABLE_STRING, &hex(id))]),
    }
}

/// Year, month, day of a day counted from 1970-01-01 (proleptic Gregorian).
fn civil(day: i64) -> (i64, i64, i64) {
    let z = day + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, doy - (153 * mp + 2) / 5 + 1)
}

fn day(year: i64, month: i64, date: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let mp = if month > 2 { month - 3 } else { month + 9 };
    let doy = (153 * mp + 2) / 5 + date - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

fn time(seconds: i64) -> Vec<u8> {
    let seconds = seconds.clamp(0, NO_END);
    let (year, month, date) = civil(seconds.div_euclid(86_400));
    let rest = seconds.rem_euclid(86_400);
    let fields = [month, date, rest / 3600, rest / 60 % 60, rest % 60];
    let two = |n: i64| [b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8];
    let mut text = Vec::new();
    if year >= 2050 {
        text.extend_from_slice(&two(year / 100));
    }
    text.extend_from_slice(&two(year % 100));
    for field in fields {
        text.extend_from_slice(&two(field));
    }
    text.push(b'Z');
    tlv(if year >= 2050 { der::GENERALIZED_TIME } else { der::UTC_TIME }, &[&text])
}

fn algorithm() -> Vec<u8> {
    tlv(der::SEQUENCE, &[&tlv(der::OID, &[OID_ECDSA_SHA256])])
}

fn spki(key: &PublicKey) -> Vec<u8> {
    let algorithm = tlv(der::SEQUENCE, &[&tlv(der::OID, &[OID_EC_KEY]), &tlv(der::OID, &[OID_P256])]);
    tlv(der::SEQUENCE, &[&algorithm, &tlv(der::BIT_STRING, &[&[0], key.as_bytes()])])
}

fn extension(oid: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let flag = if critical { tlv(der::BOOLEAN, &[&[0xff]]) } else { Vec::new() };
    tlv(der::SEQUENCE, &[&tlv(der::OID, &[oid]), &flag, &tlv(der::OCTET_STRING, &[value])])
}

fn basic_constraints(ca: bool, path_len: Option<u64>) -> Vec<u8> {
    let ca = if ca { tlv(der::BOOLEAN, &[&[0xff]]) } else { Vec::new() };
    let path_len = path_len.map_or_else(Vec::new, |n| der::unsigned(der::INTEGER, &n.to_be_bytes()));
    extension(OID_BASIC_CONSTRAINTS, true, &tlv(der::SEQUENCE, &[&ca, &path_len]))
}

/// Content of a named BIT STRING: bits in order from the first byte's top, trailing zeros removed.
fn named_bits(bits: u32) -> Vec<u8> {
    let mut bytes = bits.reverse_bits().to_be_bytes().to_vec();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    let unused = bytes.last().map_or(0, |last| last.trailing_zeros() as u8);
    bytes.insert(0, unused);
    bytes
}

fn key_usage(bits: u16) -> Vec<u8> {
    extension(OID_KEY_USAGE, true, &tlv(der::BIT_STRING, &[&named_bits(u32::from(bits))]))
}

fn purpose(oid: &[u8]) -> Vec<u8> {
    extension(OID_EKU, true, &tlv(der::SEQUENCE, &[&tlv(der::OID, &[oid])]))
}

fn key_identifiers(subject: &PublicKey, issuer: &PublicKey) -> Vec<u8> {
    let mut out = extension(OID_SKI, false, &tlv(der::OCTET_STRING, &[&key_id(subject)]));
    out.extend(extension(OID_AKI, false, &tlv(der::SEQUENCE, &[&tlv(0x80, &[&key_id(issuer)])])));
    out
}

fn tcb_info(info: &TcbInfo) -> Vec<u8> {
    let fwid = tlv(der::SEQUENCE, &[&tlv(der::OID, &[OID_SHA256]), &tlv(der::OCTET_STRING, &[&info.digest])]);
    tlv(
        der::SEQUENCE,
        &[
            &tlv(0x80, &[TCB_VENDOR.as_bytes()]),
            &tlv(0x81, &[TCB_MODEL.as_bytes()]),
            &tlv(0x82, &[info.version.as_bytes()]),
            &der::unsigned(0x83, &info.svn.to_be_bytes()),
            &der::unsigned(0x84, &TCB_LAYER.to_be_bytes()),
            &tlv(0xa6, &[&fwid]),
            &tlv(0x87, &[&named_bits(info.flags)]),
        ],
    )
}

struct Template<'a> {
    subject_key: &'a PublicKey,
    issuer: &'a [u8],
    subject: &'a [u8],
    not_before: i64,
    not_after: i64,
    extensions: &'a [&'a [u8]],
}

fn issue(issuer_key: &SigningKey, template: &Template<'_>) -> Vec<u8> {
    // The serial number need only be unique per issuer: 16 bytes of the subject key's digest, made positive and not zero.
    let mut serial = [0; 16];
    serial.copy_from_slice(&key_id(template.subject_key)[4..]);
    serial[0] = serial[0] & 0x7f | 0x40;
    let tbs = tlv(
        der::SEQUENCE,
        &[
            &tlv(0xa0, &[&der::unsigned(der::INTEGER, &[2])]),
            &der::unsigned(der::INTEGER, &serial),
            &algorithm(),
            template.issuer,
            &tlv(der::SEQUENCE, &[&time(template.not_before), &time(template.not_after)]),
            template.subject,
            &spki(template.subject_key),
            &tlv(0xa3, &[&tlv(der::SEQUENCE, template.extensions)]),
        ],
    );
    let rs = issuer_key.sign(&tbs);
    let signature = tlv(der::SEQUENCE, &[&der::unsigned(der::INTEGER, &rs[..32]), &der::unsigned(der::INTEGER, &rs[32..])]);
    tlv(der::SEQUENCE, &[&tbs, &algorithm(), &tlv(der::BIT_STRING, &[&[0], &signature])])
}

/// A manufacturer's root certificate, self-signed.
#[must_use]
pub fn issue_root(key: &SigningKey, common_name: &str, not_before: i64, not_after: i64) -> Vec<u8> {
    let public = key.public_key();
    let subject = name(common_name, None);
    issue(
        key,
        &Template {
            subject_key: &public,
            issuer: &subject,
            subject: &subject,
            not_before,
            not_after,
            extensions: &[&basic_constraints(true, Some(1)), &key_usage(KEY_USAGE_CERT_SIGN), &key_identifiers(&public, &public)],
        },
    )
}

/// The DeviceID certificate: the manufacturer vouches for the device's identity key.
#[must_use]
pub fn issue_device_id(ca: &SigningKey, root: &Certificate, device_id: &PublicKey, not_before: i64) -> Vec<u8> {
    let ueid = tlv(der::SEQUENCE, &[&tlv(der::OCTET_STRING, &[&ueid_of(device_id)])]);
    issue(
        ca,
        &Template {
            subject_key: device_id,
            issuer: &root.subject,
            subject: &name("shef DeviceID", Some(&key_id(device_id))),
            not_before,
            not_after: NO_END,
            extensions: &[
                &basic_constraints(true, Some(0)),
                &key_usage(KEY_USAGE_CERT_SIGN),
                &purpose(OID_KP_ECA),
                &key_identifiers(device_id, &ca.public_key()),
                &extension(OID_UEID, false, &ueid),
            ],
        },
    )
}

/// The AK certificate: the boot code vouches for the attestation key of the kernel that it measured.
#[must_use]
pub fn issue_ak(device: &SigningKey, device_certificate: &Certificate, ak: &PublicKey, info: &TcbInfo) -> Vec<u8> {
    issue(
        device,
        &Template {
            subject_key: ak,
            issuer: &device_certificate.subject,
            subject: &name("shef AK", Some(&key_id(ak))),
            not_before: NO_CLOCK,
            not_after: NO_END,
            extensions: &[
                &basic_constraints(false, None),
                &key_usage(KEY_USAGE_SIGN),
                &purpose(OID_KP_ATTEST_LOC),
                &key_identifiers(ak, &device.public_key()),
                &extension(OID_TCB_INFO, true, &tcb_info(info)),
            ],
        },
    )
}

/// A certificate of a signer of reference values, directly under a CA.
#[must_use]
pub fn issue_signer(ca: &SigningKey, root: &Certificate, key: &PublicKey, common_name: &str, not_before: i64, not_after: i64) -> Vec<u8> {
    issue(
        ca,
        &Template {
            subject_key: key,
            issuer: &root.subject,
            subject: &name(common_name, Some(&key_id(key))),
            not_before,
            not_after,
            extensions: &[
                &basic_constraints(false, None),
                &key_usage(KEY_USAGE_SIGN),
                &purpose(OID_KP_CODE_SIGNING),
                &key_identifiers(key, &ca.public_key()),
            ],
        },
    )
}

// ---- parsing ----

fn malformed(part: &'static str) -> impl Fn(DerError) -> CertError {
    move |DerError| CertError::Malformed { part }
}

fn parse_time(reader: &mut Reader<'_>) -> Result<i64, DerError> {
    let (tag, text, _) = reader.any()?;
    let digits = match (tag, text) {
        (der::UTC_TIME, [digits @ .., b'Z']) if digits.len() == 12 => digits,
        (der::GENERALIZED_TIME, [digits @ .., b'Z']) if digits.len() == 14 => digits,
        _ => return Err(DerError),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(DerError);
    }
    let mut pairs = digits.chunks_exact(2).map(|pair| i64::from(pair[0] - b'0') * 10 + i64::from(pair[1] - b'0'));
    let mut next = || pairs.next().ok_or(DerError);
    let year = if tag == der::UTC_TIME {
        let year = next()?;
        if year < 50 { 2000 + year } else { 1900 + year }
    } else {
        let year = next()? * 100 + next()?;
        if year < 2050 {
            return Err(DerError);
        }
        year
    };
    let (month, date, hour, minute, second) = (next()?, next()?, next()?, next()?, next()?);
    let number = day(year, month, date);
    if !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59 || civil(number) != (year, month, date) {
        return Err(DerError);
    }
    Ok(number * 86_400 + hour * 3600 + minute * 60 + second)
}

/// A named BIT STRING of at most 32 bits, without trailing zero bits.
fn parse_bits(content: &[u8]) -> Result<u32, DerError> {
    let [unused, bytes @ ..] = content else { return Err(DerError) };
    if bytes.len() > 4 || *unused > 7 {
        return Err(DerError);
    }
    match bytes.last() {
        None if *unused != 0 => return Err(DerError),
        Some(last) if last.trailing_zeros() != u32::from(*unused) => return Err(DerError),
        _ => {}
    }
    let mut word = [0; 4];
    word[..bytes.len()].copy_from_slice(bytes);
    Ok(u32::from_be_bytes(word).reverse_bits())
}

fn parse_tcb_info(value: &[u8]) -> Result<TcbInfo, DerError> {
    let mut outer = Reader::new(value);
    let mut fields = outer.inside(der::SEQUENCE)?;
    outer.finish()?;
    if fields.value(0x80)? != TCB_VENDOR.as_bytes() || fields.value(0x81)? != TCB_MODEL.as_bytes() {
        return Err(DerError);
    }
    let version = fields.value(0x82)?;
    if version.len() > 32 {
        return Err(DerError);
    }
    let version = printable(version).ok_or(DerError)?.into();
    let svn = der::u64_content(fields.value(0x83)?)?;
    if der::u64_content(fields.value(0x84)?)? != TCB_LAYER {
        return Err(DerError);
    }
    let mut fwids = fields.inside(0xa6)?;
    let mut fwid = fwids.inside(der::SEQUENCE)?;
    fwids.finish()?;
    if fwid.value(der::OID)? != OID_SHA256 {
        return Err(DerError);
    }
    let digest = fwid.value(der::OCTET_STRING)?.try_into().map_err(|_| DerError)?;
    fwid.finish()?;
    let flags = parse_bits(fields.value(0x87)?)?;
    fields.finish()?;
    Ok(TcbInfo { version, svn, digest, flags })
}

fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), DerError> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(DerError),
    }
}

fn parse_extensions(mut list: Reader<'_>) -> Result<Extensions, DerError> {
    let mut out = Extensions::default();
    let mut seen: Vec<&[u8]> = Vec::new();
    while !list.is_empty() {
        let mut extension = list.inside(der::SEQUENCE)?;
        let oid = extension.value(der::OID)?;
        if seen.contains(&oid) {
            return Err(DerError);
        }
        seen.push(oid);
        let critical = if extension.peek() == Some(der::BOOLEAN) {
            if extension.value(der::BOOLEAN)? != [0xff] {
                return Err(DerError);
            }
            true
        } else {
            false
        };
        let value = extension.value(der::OCTET_STRING)?;
        extension.finish()?;
        let mut reader = Reader::new(value);
        match oid {
            OID_BASIC_CONSTRAINTS => {
                let mut fields = reader.inside(der::SEQUENCE)?;
                let mut basic = Basic { ca: false, path_len: None };
                if fields.peek() == Some(der::BOOLEAN) {
                    if fields.value(der::BOOLEAN)? != [0xff] {
                        return Err(DerError);
                    }
                    basic.ca = true;
                }
                if fields.peek() == Some(der::INTEGER) {
                    basic.path_len = Some(der::u64_content(fields.value(der::INTEGER)?)?);
                }
                fields.finish()?;
                once(&mut out.basic, Ext { critical, value: basic })?;
            }
            OID_KEY_USAGE => {
                let bits = parse_bits(reader.value(der::BIT_STRING)?)?;
                let bits = u16::try_from(bits).map_err(|_| DerError)?;
                once(&mut out.key_usage, Ext { critical, value: bits })?;
            }
            OID_EKU => {
                let mut list = reader.inside(der::SEQUENCE)?;
                let mut purposes = Vec::new();
                while !list.is_empty() {
                    purposes.push(list.value(der::OID)?.to_vec());
                }
                once(&mut out.eku, Ext { critical, value: purposes })?;
            }
            OID_SKI => once(&mut out.ski, reader.value(der::OCTET_STRING)?.to_vec())?,
            OID_AKI => {
                let mut fields = reader.inside(der::SEQUENCE)?;
                once(&mut out.aki, fields.value(0x80)?.to_vec())?;
                fields.finish()?;
            }
            OID_UEID => {
                let mut fields = reader.inside(der::SEQUENCE)?;
                once(&mut out.ueid, fields.value(der::OCTET_STRING)?.to_vec())?;
                fields.finish()?;
            }
            OID_TCB_INFO => {
                let info = parse_tcb_info(reader.whole(der::SEQUENCE)?)?;
                once(&mut out.tcb_info, Ext { critical, value: info })?;
            }
            _ => {
                out.unknown_critical |= critical;
                continue;
            }
        }
        reader.finish()?;
    }
    Ok(out)
}

fn parse_signature(content: &[u8]) -> Result<[u8; 64], DerError> {
    let [0, signature @ ..] = content else { return Err(DerError) };
    let mut outer = Reader::new(signature);
    let mut fields = outer.inside(der::SEQUENCE)?;
    outer.finish()?;
    let mut rs = [0; 64];
    for half in [0..32, 32..64] {
        let digits = der::unsigned_content(fields.value(der::INTEGER)?)?;
        let out = &mut rs[half];
        let at = out.len().checked_sub(digits.len()).ok_or(DerError)?;
        out[at..].copy_from_slice(digits);
    }
    fields.finish()?;
    // Also refuses r or s outside 1..n.
    Signature::from_slice(&rs).map_err(|_| DerError)?;
    Ok(rs)
}

impl Certificate {
    /// Parses one certificate.
    ///
    /// # Errors
    /// It is not a strictly encoded v3 certificate of a P-256 key, signed by ECDSA with SHA-256.
    pub fn parse(bytes: &[u8]) -> Result<Self, CertError> {
        if bytes.len() > MAX_CERTIFICATE {
            return Err(CertError::Malformed { part: "length" });
        }
        let outer = malformed("outer form");
        let mut reader = Reader::new(bytes);
        let mut fields = reader.inside(der::SEQUENCE).map_err(&outer)?;
        reader.finish().map_err(&outer)?;
        let tbs = fields.whole(der::SEQUENCE).map_err(&outer)?;
        let outer_algorithm = fields.whole(der::SEQUENCE).map_err(&outer)?;
        let signature = fields.value(der::BIT_STRING).map_err(&outer)?;
        fields.finish().map_err(&outer)?;

        let mut reader = Reader::new(tbs);
        let mut fields = reader.inside(der::SEQUENCE).map_err(&outer)?;
        let version = fields.value(0xa0).map_err(malformed("version"))?;
        if version != [2, 1, 2] {
            return Err(CertError::Malformed { part: "version" });
        }
        let serial = fields.value(der::INTEGER).and_then(der::unsigned_content).map_err(malformed("serial number"))?;
        if serial.is_empty() || serial.len() > 20 {
            return Err(CertError::Malformed { part: "serial number" });
        }
        let inner_algorithm = fields.whole(der::SEQUENCE).map_err(malformed("signature algorithm"))?;
        if inner_algorithm != algorithm() || outer_algorithm != inner_algorithm {
            return Err(CertError::Algorithm { part: "signature" });
        }
        let issuer = fields.whole(der::SEQUENCE).map_err(malformed("issuer"))?.to_vec();
        let mut validity = fields.inside(der::SEQUENCE).map_err(malformed("validity"))?;
        let not_before = parse_time(&mut validity).map_err(malformed("validity"))?;
        let not_after = parse_time(&mut validity).map_err(malformed("validity"))?;
        validity.finish().map_err(malformed("validity"))?;
        let subject = fields.whole(der::SEQUENCE).map_err(malformed("subject"))?.to_vec();
        let key = {
            let mut info = fields.inside(der::SEQUENCE).map_err(malformed("public key"))?;
            let kind = info.whole(der::SEQUENCE).map_err(malformed("public key"))?;
            let expected = tlv(der::SEQUENCE, &[&tlv(der::OID, &[OID_EC_KEY]), &tlv(der::OID, &[OID_P256])]);
            if kind != expected {
                return Err(CertError::Algorithm { part: "public key" });
            }
            let bits = info.value(der::BIT_STRING).map_err(malformed("public key"))?;
            info.finish().map_err(malformed("public key"))?;
            match bits {
                [0, point @ ..] => PublicKey::from_bytes(point).map_err(|_| CertError::Malformed { part: "public key" })?,
                _ => return Err(CertError::Malformed { part: "public key" }),
            }
        };
        let mut wrapper = fields.inside(0xa3).map_err(malformed("extensions"))?;
        fields.finish().map_err(malformed("extensions"))?;
        let list = wrapper.inside(der::SEQUENCE).map_err(malformed("extensions"))?;
        wrapper.finish().map_err(malformed("extensions"))?;
        let extensions = parse_extensions(list).map_err(malformed("extensions"))?;
        let signature = parse_signature(signature).map_err(malformed("signature"))?;
        Ok(Self {
            der: bytes.to_vec(),
            tbs: tbs.to_vec(),
            serial: serial.to_vec(),
            issuer,
            subject,
            not_before,
            not_after,
            key,
            extensions,
            signature,
        })
    }

    /// The bytes as they came.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The subject's key.
    #[must_use]
    pub fn key(&self) -> &PublicKey {
        &self.key
    }

    /// Serial number, big-endian without leading zeros.
    #[must_use]
    pub fn serial(&self) -> &[u8] {
        &self.serial
    }

    /// notBefore, seconds since 1970.
    #[must_use]
    pub fn not_before(&self) -> i64 {
        self.not_before
    }

    /// notAfter, seconds since 1970.
    #[must_use]
    pub fn not_after(&self) -> i64 {
        self.not_after
    }

    /// The TcbInfo extension, when there is one.
    #[must_use]
    pub fn tcb_info(&self) -> Option<&TcbInfo> {
        self.extensions.tcb_info.as_ref().map(|ext| &ext.value)
    }

    fn check_issuer(&self, which: &'static str, is_ca: bool, max_path: u64) -> Result<(), CertError> {
        let rule = |rule| Err(CertError::Rule { which, rule });
        if self.extensions.unknown_critical {
            return rule("has an unknown critical extension");
        }
        let Some(basic) = &self.extensions.basic else { return rule("has no basic constraints") };
        if !basic.critical {
            return rule("its basic constraints are not critical");
        }
        if basic.value.ca != is_ca {
            return rule(if is_ca { "is not a CA" } else { "is a CA" });
        }
        if !is_ca && basic.value.path_len.is_some() {
            return rule("has a path length without being a CA");
        }
        if is_ca && basic.value.path_len.is_some_and(|n| n < max_path) {
            return rule("its path length does not allow this chain");
        }
        let usage = if is_ca { KEY_USAGE_CERT_SIGN } else { KEY_USAGE_SIGN };
        match &self.extensions.key_usage {
            None => return rule("has no key usage"),
            Some(ext) if !ext.critical => return rule("its key usage is not critical"),
            Some(ext) if is_ca && ext.value & usage == 0 => return rule("may not sign certificates"),
            Some(ext) if is_ca && max_path == 0 && ext.value != usage => return rule("its key usage is not keyCertSign alone"),
            Some(ext) if !is_ca && ext.value != usage => return rule("its key usage is not digitalSignature alone"),
            Some(_) => {}
        }
        Ok(())
    }

    fn check_purpose(&self, which: &'static str, oid: &[u8]) -> Result<(), CertError> {
        match &self.extensions.eku {
            Some(ext) if ext.critical && ext.value.len() == 1 && ext.value[0] == oid => Ok(()),
            _ => Err(CertError::Rule { which, rule: "its key purpose is not the one of its place in the chain, critical and alone" }),
        }
    }

    fn check_signed_by(&self, which: &'static str, issuer: &Certificate, verify: VerifyFn) -> Result<(), CertError> {
        if self.issuer != issuer.subject {
            return Err(CertError::Rule { which, rule: "names another issuer" });
        }
        if self.extensions.aki.is_none() || self.extensions.aki != issuer.extensions.ski {
            return Err(CertError::Rule { which, rule: "its authority key identifier is not the issuer's" });
        }
        if verify(&issuer.key, &self.tbs, &self.signature) { Ok(()) } else { Err(CertError::Signature { which }) }
    }

    fn check_time(&self, which: &'static str, now: i64) -> Result<(), CertError> {
        let (not_before, not_after) = (self.not_before, self.not_after);
        if (not_before..=not_after).contains(&now) { Ok(()) } else { Err(CertError::Validity { which, not_before, not_after, now }) }
    }

    /// Checks that this is a self-signed root that may issue DeviceID certificates; its time is checked with a chain.
    ///
    /// # Errors
    /// The rule that does not hold.
    pub fn check_root(&self) -> Result<(), CertError> {
        const WHICH: &str = "root";
        self.check_issuer(WHICH, true, 1)?;
        self.check_signed_by(WHICH, self, cose::verify)
    }

    /// True when `other` names this certificate as its issuer.
    #[must_use]
    pub fn is_issuer_of(&self, other: &Certificate) -> bool {
        other.issuer == self.subject && other.extensions.aki.is_some() && other.extensions.aki == self.extensions.ski
    }
}

/// Validates exactly `[AK, DeviceID]` under `root` at time `now` (seconds since 1970).
///
/// # Errors
/// The first rule that does not hold.
pub fn validate_chain(chain: &[Certificate], root: &Certificate, now: i64) -> Result<Chain, CertError> {
    root.check_root()?;
    validate_under_anchor(chain, root, now, cose::verify)
}

/// As [`validate_chain`], for a root that went through [`Certificate::check_root`] when it was made a trust anchor.
///
/// # Errors
/// The first rule that does not hold.
pub fn validate_under_anchor(chain: &[Certificate], root: &Certificate, now: i64, verify: VerifyFn) -> Result<Chain, CertError> {
    let [ak, device] = chain else { return Err(CertError::Length { found: chain.len() }) };
    const AK: &str = "AK";
    const DEVICE: &str = "DeviceID";
    root.check_issuer("root", true, 1)?;
    root.check_time("root", now)?;

    device.check_issuer(DEVICE, true, 0)?;
    device.check_purpose(DEVICE, OID_KP_ECA)?;
    device.check_signed_by(DEVICE, root, verify)?;
    device.check_time(DEVICE, now)?;
    if device.extensions.tcb_info.is_some() {
        return Err(CertError::Rule { which: DEVICE, rule: "carries a TcbInfo" });
    }
    let ueid = ueid_of(&device.key);
    if device.extensions.ueid.as_deref() != Some(&ueid[..]) {
        return Err(CertError::Rule { which: DEVICE, rule: "its ueid is missing or not the one of its key" });
    }

    ak.check_issuer(AK, false, 0)?;
    ak.check_purpose(AK, OID_KP_ATTEST_LOC)?;
    ak.check_signed_by(AK, device, verify)?;
    ak.check_time(AK, now)?;
    if ak.extensions.ueid.is_some() {
        return Err(CertError::Rule { which: AK, rule: "carries a ueid" });
    }
    let Some(tcb) = &ak.extensions.tcb_info else {
        return Err(CertError::Rule { which: AK, rule: "has no TcbInfo" });
    };
    if !tcb.critical {
        return Err(CertError::Rule { which: AK, rule: "its TcbInfo is not critical" });
    }
    if ak.key == device.key || ak.key == root.key || device.key == root.key {
        return Err(CertError::Rule { which: AK, rule: "two certificates of the chain hold the same key" });
    }
    let all = [root, device, ak];
    let mut window = (i64::MIN, i64::MAX);
    for certificate in all {
        window = (window.0.max(certificate.not_before), window.1.min(certificate.not_after));
    }
    Ok(Chain { ak: ak.key, device_id: device.key, ueid, tcb_info: tcb.value.clone(), not_before: window.0, not_after: window.1 })
}

/// Validates the certificate of a signer of reference values, directly under `root`, at time `now`: no CA, digitalSignature and
/// codeSigning alone, nothing of DICE. A key that signs evidence can thus not sign reference values, nor the other way round.
///
/// # Errors
/// The first rule that does not hold.
pub fn validate_signer(leaf: &Certificate, root: &Certificate, now: i64, verify: VerifyFn) -> Result<PublicKey, CertError> {
    const WHICH: &str = "signer";
    root.check_issuer("root", true, 0)?;
    root.check_time("root", now)?;
    leaf.check_issuer(WHICH, false, 0)?;
    leaf.check_purpose(WHICH, OID_KP_CODE_SIGNING)?;
    if leaf.extensions.tcb_info.is_some() || leaf.extensions.ueid.is_some() {
        return Err(CertError::Rule { which: WHICH, rule: "carries an extension of DICE" });
    }
    leaf.check_signed_by(WHICH, root, verify)?;
    leaf.check_time(WHICH, now)?;
    Ok(leaf.key)
}

impl Chain {
    /// Checks the time of a chain that was validated before.
    ///
    /// # Errors
    /// Now is outside the validity of one of its certificates.
    pub fn check_time(&self, now: i64) -> Result<(), CertError> {
        let (not_before, not_after) = (self.not_before, self.not_after);
        if (not_before..=not_after).contains(&now) { Ok(()) } else { Err(CertError::Validity { which: "one", not_before, not_after, now }) }
    }
}
