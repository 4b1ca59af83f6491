//! Contents of the chain's certificates, and the object identifiers that they use.

use alloc::{string::String, vec::Vec};

use crate::crypto;
use crate::hpke_suite::PublicKey;

/// Maximum size of a certificate.
pub const MAX_CERTIFICATE: usize = 2048;
/// Bytes of a ueid: type 0x01 (random) and 32 bytes.
pub const UEID_LEN: usize = 33;
/// notBefore of certificates made by a device, which has no clock (2018-03-22 23:59:59 UTC, as in
/// the Open Profile for DICE).
pub const NO_CLOCK: i64 = 1_521_763_199;
/// notAfter of certificates without an end: 9999-12-31 23:59:59 UTC (RFC 5280 section 4.1.2.5).
pub const NO_END: i64 = 253_402_300_799;
/// `debug` of the TcbInfo flags.
pub const FLAG_DEBUG: u32 = 1 << 3;

pub(super) const OID_EC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
pub(super) const OID_P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
pub(super) const OID_ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
pub(super) const OID_SHA256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
pub(super) const OID_COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
pub(super) const OID_SERIAL_NUMBER: &[u8] = &[0x55, 0x04, 0x05];
pub(super) const OID_SKI: &[u8] = &[0x55, 0x1d, 0x0e];
pub(super) const OID_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
pub(super) const OID_BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
pub(super) const OID_AKI: &[u8] = &[0x55, 0x1d, 0x23];
pub(super) const OID_EKU: &[u8] = &[0x55, 0x1d, 0x25];
pub(super) const OID_TCB_INFO: &[u8] = &[0x67, 0x81, 0x05, 0x05, 0x04, 0x01];
pub(super) const OID_UEID: &[u8] = &[0x67, 0x81, 0x05, 0x05, 0x04, 0x04];
/// tcg-dice-kp-attestLoc: signs evidence.
pub(super) const OID_KP_ATTEST_LOC: &[u8] = &[0x67, 0x81, 0x05, 0x05, 0x04, 0x64, 0x09];
/// tcg-dice-kp-eca: may issue certificates of the next layer.
pub(super) const OID_KP_ECA: &[u8] = &[0x67, 0x81, 0x05, 0x05, 0x04, 0x64, 0x0c];
/// id-kp-codeSigning: signs reference values.
pub(super) const OID_KP_CODE_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03];

pub(super) const KEY_USAGE_SIGN: u16 = 1 << 0;
pub(super) const KEY_USAGE_CERT_SIGN: u16 = 1 << 5;

/// TCG DiceTcbInfo of the Security Kernel, as in the AK certificate.
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
pub(super) struct Basic {
    pub(super) ca: bool,
    pub(super) path_len: Option<u64>,
}

/// An extension's value and whether it is critical.
#[derive(Clone, Debug)]
pub(super) struct Ext<T> {
    pub(super) critical: bool,
    pub(super) value: T,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Extensions {
    pub(super) basic: Option<Ext<Basic>>,
    pub(super) key_usage: Option<Ext<u16>>,
    pub(super) eku: Option<Ext<Vec<Vec<u8>>>>,
    pub(super) ski: Option<Vec<u8>>,
    pub(super) aki: Option<Vec<u8>>,
    pub(super) ueid: Option<Vec<u8>>,
    pub(super) tcb_info: Option<Ext<TcbInfo>>,
    pub(super) unknown_critical: bool,
}

/// A parsed certificate, not verified yet.
#[derive(Clone, Debug)]
pub struct Certificate {
    pub(super) der: Vec<u8>,
    pub(super) tbs: Vec<u8>,
    pub(super) serial: Vec<u8>,
    pub(super) issuer: Vec<u8>,
    pub(super) subject: Vec<u8>,
    pub(super) not_before: i64,
    pub(super) not_after: i64,
    pub(super) key: PublicKey,
    pub(super) extensions: Extensions,
    pub(super) signature: [u8; 64],
}

/// The contents of a valid chain.
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
    /// Start of validity of all certificates including the root, seconds since 1970.
    pub not_before: i64,
    /// End of validity of all certificates including the root, seconds since 1970.
    pub not_after: i64,
}

/// The ueid of a device: type 0x01 and SHA-256 of its DeviceID public key.
#[must_use]
pub fn ueid_of(device_id: &PublicKey) -> [u8; UEID_LEN] {
    let mut ueid = [1; UEID_LEN];
    ueid[1..].copy_from_slice(&crypto::sha256(device_id.as_bytes()));
    ueid
}

impl Certificate {
    /// The bytes as received.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The subject's name in DER.
    #[must_use]
    pub fn subject(&self) -> &[u8] {
        &self.subject
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

    /// The TcbInfo extension, if present.
    #[must_use]
    pub fn tcb_info(&self) -> Option<&TcbInfo> {
        self.extensions.tcb_info.as_ref().map(|ext| &ext.value)
    }

    /// True if `other` names this certificate as its issuer.
    #[must_use]
    pub fn is_issuer_of(&self, other: &Certificate) -> bool {
        other.issuer == self.subject
            && other.extensions.aki.is_some()
            && other.extensions.aki == self.extensions.ski
    }
}
