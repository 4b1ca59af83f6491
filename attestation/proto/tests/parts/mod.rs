//! Malformed certificates: the parts of a good one, changed and re-signed.
#![allow(dead_code, reason = "each test uses a part")]

use shef_proto::cert::Certificate;
use shef_proto::cose::SigningKey;

pub fn tlv(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let mut out = vec![tag];
    match body.len() {
        n if n < 128 => out.push(n as u8),
        n if n < 256 => out.extend([0x81, n as u8]),
        n => out.extend([0x82, (n >> 8) as u8, n as u8]),
    }
    out.extend(body);
    out
}

pub fn ext(oid: &str, critical: bool, value: &str) -> Vec<u8> {
    let flag = if critical { vec![1, 1, 0xff] } else { vec![] };
    tlv(
        0x30,
        &[&tlv(6, &[&hex::decode(oid).unwrap()]), &flag, &tlv(4, &[&hex::decode(value).unwrap()])],
    )
}

fn integer(number: &[u8]) -> Vec<u8> {
    let digits: Vec<u8> = number.iter().copied().skip_while(|byte| *byte == 0).collect();
    if digits[0] & 0x80 != 0 { tlv(2, &[&[0], &digits]) } else { tlv(2, &[&digits]) }
}

/// Order of P-256.
pub const N: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";

/// `n - s`, for an s of at most 32 bytes.
fn negated(s: &[u8]) -> Vec<u8> {
    let n = hex::decode(N).unwrap();
    let s = [&vec![0; 32 - s.len()], s].concat();
    let mut out = vec![0; 32];
    let mut borrow = 0;
    for at in (0..32).rev() {
        let digit = i16::from(n[at]) - i16::from(s[at]) - borrow;
        out[at] = digit.rem_euclid(256) as u8;
        borrow = i16::from(digit < 0);
    }
    out
}

/// The bytes with the final signature `r | s` replaced by `r | n - s`.
pub fn other_s(signed: &[u8]) -> Vec<u8> {
    let (before, s) = signed.split_at(signed.len() - 32);
    [before, &negated(s)].concat()
}

/// A certificate with `n - s` for s.
pub fn certificate_with_other_s(der: &[u8]) -> Vec<u8> {
    let outer = elements(inside(der));
    let rs = elements(inside(&inside(&outer[2])[1..]));
    let s: Vec<u8> = inside(&rs[1]).iter().copied().skip_while(|byte| *byte == 0).collect();
    let signature = tlv(0x30, &[&rs[0], &integer(&negated(&s))]);
    tlv(0x30, &[&outer[0], &outer[1], &tlv(3, &[&[0], &signature])])
}

/// The parts of a certificate as DER, taken from a good one and changed.
#[derive(Clone)]
pub struct Parts {
    pub version: Vec<u8>,
    pub serial: Vec<u8>,
    pub inner_algorithm: Vec<u8>,
    pub outer_algorithm: Vec<u8>,
    pub issuer: Vec<u8>,
    pub validity: Vec<u8>,
    pub subject: Vec<u8>,
    pub spki: Vec<u8>,
    pub extensions: Vec<Vec<u8>>,
}

pub fn elements(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let (len, head) = match bytes[1] {
            n if n < 128 => (usize::from(n), 2),
            0x81 => (usize::from(bytes[2]), 3),
            _ => (usize::from(bytes[2]) << 8 | usize::from(bytes[3]), 4),
        };
        out.push(bytes[..head + len].to_vec());
        bytes = &bytes[head + len..];
    }
    out
}

pub fn inside(element: &[u8]) -> &[u8] {
    let head = match element[1] {
        n if n < 128 => 2,
        0x81 => 3,
        _ => 4,
    };
    &element[head..]
}

impl Parts {
    pub fn of(certificate: &Certificate) -> Self {
        let outer = elements(inside(certificate.der()));
        let tbs = elements(inside(&outer[0]));
        let list = elements(inside(&tbs[7]));
        Self {
            version: tbs[0].clone(),
            serial: tbs[1].clone(),
            inner_algorithm: tbs[2].clone(),
            outer_algorithm: outer[1].clone(),
            issuer: tbs[3].clone(),
            validity: tbs[4].clone(),
            subject: tbs[5].clone(),
            spki: tbs[6].clone(),
            extensions: elements(inside(&list[0])),
        }
    }

    pub fn sign(&self, key: &SigningKey) -> Vec<u8> {
        let list: Vec<&[u8]> = self.extensions.iter().map(Vec::as_slice).collect();
        let tbs = tlv(
            0x30,
            &[
                &self.version,
                &self.serial,
                &self.inner_algorithm,
                &self.issuer,
                &self.validity,
                &self.subject,
                &self.spki,
                &tlv(0xa3, &[&tlv(0x30, &list)]),
            ],
        );
        let rs = key.sign(&tbs);
        let signature = tlv(0x30, &[&integer(&rs[..32]), &integer(&rs[32..])]);
        tlv(0x30, &[&tbs, &self.outer_algorithm, &tlv(3, &[&[0], &signature])])
    }

    /// Replaces the extension of this OID; an empty replacement removes it.
    pub fn with(&self, oid: &str, replacement: &[Vec<u8>]) -> Self {
        let mut parts = self.clone();
        let raw = tlv(6, &[&hex::decode(oid).unwrap()]);
        parts.extensions.retain(|extension| !inside(extension).starts_with(&raw));
        parts.extensions.extend(replacement.iter().cloned());
        parts
    }
}

pub const BASIC: &str = "551d13";
pub const USAGE: &str = "551d0f";
pub const EKU: &str = "551d25";
pub const SKI: &str = "551d0e";
pub const AKI: &str = "551d23";
pub const TCB: &str = "678105050401";
pub const UEID: &str = "678105050404";
