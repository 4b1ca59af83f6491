//! Certificates that nobody should make: the parts of a good one, changed, and signed again.
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
    tlv(0x30, &[&tlv(6, &[&hex::decode(oid).unwrap()]), &flag, &tlv(4, &[&hex::decode(value).unwrap()])])
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
        let integer = |half: &[u8]| {
            let digits: Vec<u8> = half.iter().copied().skip_while(|byte| *byte == 0).collect();
            if digits[0] & 0x80 != 0 { tlv(2, &[&[0], &digits]) } else { tlv(2, &[&digits]) }
        };
        let signature = tlv(0x30, &[&integer(&rs[..32]), &integer(&rs[32..])]);
        tlv(0x30, &[&tbs, &self.outer_algorithm, &tlv(3, &[&[0], &signature])])
    }

    /// Replaces the extension of this OID; nothing removes it.
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
