//! The COSE_Sign1 around a CoRIM, and the tags inside it.

use shef_proto::cbor::{self, Limits, Value};
use shef_proto::cose::{ES256, ESP256};

use super::{CONTENT_TYPE, CorimError, form, unsigned};

/// Validity times in the protected header.
pub(super) struct Header {
    not_before: Option<i64>,
    pub(super) not_after: Option<i64>,
}

/// The parts of the COSE_Sign1 that are checked here: protected bytes and certificates.
pub(super) fn shape(envelope: &Value) -> Result<(&[u8], Vec<Vec<u8>>), CorimError> {
    let Value::Tag(18, inner) = envelope else {
        return Err(unsigned("not a COSE_Sign1 under tag 18; unsigned CoRIMs are not taken"));
    };
    let Value::Array(parts) = &**inner else {
        return Err(unsigned("the COSE_Sign1 is not an array"));
    };
    let [Value::Bytes(protected), Value::Map(unprotected), Value::Bytes(_), Value::Bytes(_)] =
        &parts[..]
    else {
        return Err(unsigned("the COSE_Sign1 is not header, header, attached payload, signature"));
    };
    let chain = match &unprotected[..] {
        [] => Vec::new(),
        [(label, Value::Bytes(one))] if label.as_int() == Some(33) => vec![one.clone()],
        _ => return Err(unsigned("the unprotected header may hold one certificate (33) only")),
    };
    Ok((protected, chain))
}

pub(super) fn header(protected: &[u8]) -> Result<Header, CorimError> {
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
                let Value::Map(claims) = value else {
                    return Err(unsigned("the CWT claims are not a map"));
                };
                meta = true;
                for (claim, value) in claims {
                    match claim.as_int() {
                        Some(4) => {
                            out.not_after = Some(
                                value
                                    .as_int()
                                    .ok_or_else(|| unsigned("exp is not a whole number"))?,
                            );
                        }
                        Some(5) => {
                            out.not_before = Some(
                                value
                                    .as_int()
                                    .ok_or_else(|| unsigned("nbf is not a whole number"))?,
                            );
                        }
                        _ => {}
                    }
                }
            }
            _ => {
                return Err(unsigned(
                    "the protected header may hold alg (1), content type (3), corim-meta (8) and CWT claims (15) only",
                ));
            }
        }
    }
    if !matches!(algorithm, Some(ESP256 | ES256)) {
        return Err(unsigned(format!(
            "algorithm {algorithm:?}, expected ECDSA P-256 with SHA-256 (-9 or -7)"
        )));
    }
    if content != Some(CONTENT_TYPE.into()) {
        return Err(unsigned(format!("the content type is not {CONTENT_TYPE}")));
    }
    if !meta {
        return Err(unsigned("neither corim-meta nor CWT claims say who signed"));
    }
    Ok(out)
}

impl Header {
    pub(super) fn in_time(&self, now: i64) -> Result<(), CorimError> {
        if let Some(from) = self.not_before.filter(|from| now < *from) {
            let text =
                format!("its validity starts {} s later, at {from}; is a clock wrong?", from - now);
            return Err(CorimError::Validity { now, text });
        }
        if let Some(until) = self.not_after.filter(|until| now > *until) {
            return Err(CorimError::Validity {
                now,
                text: format!("its validity ended at {until}"),
            });
        }
        Ok(())
    }
}

/// The encoded tags (CoMIDs and others) inside a CoRIM, after a check of the CoRIM itself.
pub(super) fn tags(payload: &[u8], limits: &Limits) -> Result<Vec<Vec<u8>>, CorimError> {
    let Value::Tag(501, map) = cbor::parse(payload, limits)? else {
        return Err(form("the payload is not a CoRIM under tag 501"));
    };
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
