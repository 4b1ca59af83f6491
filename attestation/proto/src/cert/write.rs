//! DER of a certificate's parts.

use alloc::{string::String, vec::Vec};

use super::types::*;
use crate::calendar::civil;
use crate::crypto;
use crate::der::{self, tlv};
use crate::hpke_suite::PublicKey;

pub(super) fn key_id(key: &PublicKey) -> [u8; 20] {
    let digest = crypto::sha256(key.as_bytes());
    let mut id = [0; 20];
    id.copy_from_slice(&digest[..20]);
    id[0] &= 0x7f;
    id
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|n| char::from(if n < 10 { b'0' + n } else { b'a' + n - 10 }))
        .collect()
}

/// Name with a common name and, for devices, the hexadecimal id of their key.
pub(super) fn name(common: &str, id: Option<&[u8]>) -> Vec<u8> {
    let attribute = |oid: &[u8], tag: u8, text: &str| {
        tlv(
            der::SET,
            &[&tlv(der::SEQUENCE, &[&tlv(der::OID, &[oid]), &tlv(tag, &[text.as_bytes()])])],
        )
    };
    let common = attribute(OID_COMMON_NAME, der::UTF8_STRING, common);
    match id {
        None => tlv(der::SEQUENCE, &[&common]),
        Some(id) => tlv(
            der::SEQUENCE,
            &[&common, &attribute(OID_SERIAL_NUMBER, der::PRINTABLE_STRING, &hex(id))],
        ),
    }
}

pub(super) fn time(seconds: i64) -> Vec<u8> {
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

pub(super) fn algorithm() -> Vec<u8> {
    tlv(der::SEQUENCE, &[&tlv(der::OID, &[OID_ECDSA_SHA256])])
}

/// The algorithm of every key: a point of P-256.
pub(super) fn key_algorithm() -> Vec<u8> {
    tlv(der::SEQUENCE, &[&tlv(der::OID, &[OID_EC_KEY]), &tlv(der::OID, &[OID_P256])])
}

pub(super) fn spki(key: &PublicKey) -> Vec<u8> {
    tlv(der::SEQUENCE, &[&key_algorithm(), &tlv(der::BIT_STRING, &[&[0], key.as_bytes()])])
}

pub(super) fn extension(oid: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let flag = if critical { tlv(der::BOOLEAN, &[&[0xff]]) } else { Vec::new() };
    tlv(der::SEQUENCE, &[&tlv(der::OID, &[oid]), &flag, &tlv(der::OCTET_STRING, &[value])])
}

pub(super) fn basic_constraints(ca: bool, path_len: Option<u64>) -> Vec<u8> {
    let ca = if ca { tlv(der::BOOLEAN, &[&[0xff]]) } else { Vec::new() };
    let path_len =
        path_len.map_or_else(Vec::new, |n| der::unsigned(der::INTEGER, &n.to_be_bytes()));
    extension(OID_BASIC_CONSTRAINTS, true, &tlv(der::SEQUENCE, &[&ca, &path_len]))
}

/// Content of a named BIT STRING: top bit of the first byte first, trailing zeros removed.
fn named_bits(bits: u32) -> Vec<u8> {
    let mut bytes = bits.reverse_bits().to_be_bytes().to_vec();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    let unused = bytes.last().map_or(0, |last| last.trailing_zeros() as u8);
    bytes.insert(0, unused);
    bytes
}

pub(super) fn key_usage(bits: u16) -> Vec<u8> {
    extension(OID_KEY_USAGE, true, &tlv(der::BIT_STRING, &[&named_bits(u32::from(bits))]))
}

pub(super) fn purpose(oid: &[u8]) -> Vec<u8> {
    extension(OID_EKU, true, &tlv(der::SEQUENCE, &[&tlv(der::OID, &[oid])]))
}

pub(super) fn key_identifiers(subject: &PublicKey, issuer: &PublicKey) -> Vec<u8> {
    let mut out = extension(OID_SKI, false, &tlv(der::OCTET_STRING, &[&key_id(subject)]));
    out.extend(extension(OID_AKI, false, &tlv(der::SEQUENCE, &[&tlv(0x80, &[&key_id(issuer)])])));
    out
}

pub(super) fn tcb_info(info: &TcbInfo) -> Vec<u8> {
    let fwid = tlv(
        der::SEQUENCE,
        &[&tlv(der::OID, &[OID_SHA256]), &tlv(der::OCTET_STRING, &[&info.digest])],
    );
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
