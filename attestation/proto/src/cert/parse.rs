//! Strict parsing: DER, each extension at most once, no other algorithm.

use alloc::vec::Vec;

use super::CertError;
use super::types::*;
use super::write::{algorithm, key_algorithm};
use crate::calendar::{civil, day};
use crate::cbor::printable;
use crate::crypto;
use crate::der::{self, DerError, Reader};
use crate::hpke_suite::PublicKey;

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
    let mut pairs = digits
        .chunks_exact(2)
        .map(|pair| i64::from(pair[0] - b'0') * 10 + i64::from(pair[1] - b'0'));
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
    if !(1..=12).contains(&month)
        || hour > 23
        || minute > 59
        || second > 59
        || civil(number) != (year, month, date)
    {
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
    let good = rs.as_chunks::<32>().0.iter().all(crypto::in_range);
    if good { Ok(rs) } else { Err(DerError) }
}

impl Certificate {
    /// Parses one certificate.
    ///
    /// # Errors
    /// Not a strictly encoded v3 certificate of a P-256 key, signed by ECDSA with SHA-256.
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
        let serial = fields
            .value(der::INTEGER)
            .and_then(der::unsigned_content)
            .map_err(malformed("serial number"))?;
        if serial.is_empty() || serial.len() > 20 {
            return Err(CertError::Malformed { part: "serial number" });
        }
        let inner_algorithm =
            fields.whole(der::SEQUENCE).map_err(malformed("signature algorithm"))?;
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
            if kind != key_algorithm() {
                return Err(CertError::Algorithm { part: "public key" });
            }
            let bits = info.value(der::BIT_STRING).map_err(malformed("public key"))?;
            info.finish().map_err(malformed("public key"))?;
            match bits {
                [0, point @ ..] => PublicKey::from_bytes(point)
                    .map_err(|_| CertError::Malformed { part: "public key" })?,
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
}
