//! Conceptual message wrappers, CMW (RFC 9999): a typed envelope around evidence, endorsements and
//! results, in CBOR or JSON.
//!
//! Reading is strict: deterministic CBOR, JSON without duplicate names, at most [`MAX_DEPTH`]
//! nested collections.

use base64_simd::URL_SAFE_NO_PAD as B64;
use serde_json::{Map, Value as Json};
use shef_proto::cbor::{self, CborError, Limits, Value};
use shef_proto::evidence::{FORM, MEDIA_TYPE};

use crate::jwt::json;

/// Maximum size of a wrapper.
pub const MAX_CMW: usize = 64 * 1024;
/// Maximum number of nested collections.
pub const MAX_DEPTH: usize = 2;
/// Maximum number of items in a collection.
pub const MAX_ITEMS: usize = 64;
/// CoAP content format of `application/eat+cwt`.
pub const FORMAT_EAT_CWT: u16 = 263;
/// Tag of content format 0 (RFC 9277); format `n` has this plus `n`.
const TAG_BASE: u64 = 1_668_546_817;
/// Last content format that has a tag.
const LAST_TAGGED: u16 = 65_024;
/// Name of the type of a collection.
const COLLECTION_TYPE: &str = "__cmwc_t";

shef_proto::coded! {
    /// Why a wrapper is refused.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum CmwError {
        /// Not strict CBOR.
        #[error(transparent)]
        Cbor(#[from] CborError) => (error) error.code(),
        /// Not JSON, or a duplicate name.
        #[error("not JSON: {text}")]
        Json {
            /// Where and why.
            text: String,
        } = "SHEF-PRO-080": "not a conceptual message wrapper",
            "The bytes are not a CMW (RFC 9999): a record of type, message and optional indicator, or a collection of records by name.",
        /// Neither a record nor a collection.
        #[error("not a CMW: {what}")]
        Form {
            /// What is wrong.
            what: &'static str,
        } = "SHEF-PRO-080",
        /// Too large, too deep, or too many items.
        #[error("exceeds the limit on {what} ({limit})")]
        Limit {
            /// Which limit.
            what: &'static str,
            /// Its value.
            limit: usize,
        } = "SHEF-PRO-081": "wrapper exceeds a limit", "A wrapper holds at most 64 KiB, 64 items, and two collections inside each other.",
        /// The wrapper does not hold exactly the expected message.
        #[error("expected {expected}, found {found}")]
        Content {
            /// The expected message.
            expected: &'static str,
            /// The actual contents.
            found: String,
        } = "SHEF-PRO-082": "wrapper holds something else",
            "The wrapper must hold exactly one record of application/eat+cwt whose indicator, if there is one, says evidence.",
    }
}

/// Type of the wrapped message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// A media type, with its parameters.
    Media(String),
    /// A CoAP content format.
    Format(u16),
}

impl Type {
    /// True for `application/eat+cwt`, as a media type or a content format.
    #[must_use]
    pub fn is_eat_cwt(&self) -> bool {
        match self {
            Self::Format(format) => *format == FORMAT_EAT_CWT,
            Self::Media(text) => {
                MediaType::parse(text).is_some_and(|media| media.essence == MEDIA_TYPE)
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Media(text) => text.chars().take(128).collect(),
            Self::Format(format) => format!("content format {format}"),
        }
    }
}

/// A media type and the parameter that matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaType {
    /// `type/subtype` in lower case.
    pub essence: String,
    /// `eat_profile`.
    pub eat_profile: Option<String>,
}

impl MediaType {
    /// Reads a media type: `type/subtype`, then `; name=value` or `; name="value"`. `None` if it is
    /// malformed or has a duplicate parameter.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (essence, rest) =
            text.split_once(';').map_or((text, ""), |(essence, rest)| (essence, rest));
        let essence = essence.trim();
        let token = |text: &str| {
            !text.is_empty()
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
        };
        let (kind, subtype) = essence.split_once('/')?;
        if !token(kind) || !token(subtype) {
            return None;
        }
        let mut seen: Vec<String> = Vec::new();
        let mut eat_profile = None;
        let mut rest = rest.trim();
        while !rest.is_empty() {
            let (name, value) = rest.split_once('=')?;
            let name = name.trim().to_ascii_lowercase();
            if !token(&name) || seen.contains(&name) {
                return None;
            }
            let (value, after) = match value.strip_prefix('"') {
                Some(quoted) => {
                    quoted.split_once('"').filter(|(value, _)| !value.contains('\\'))?
                }
                None => value.split_at(value.find(';').unwrap_or(value.len())),
            };
            if name == "eat_profile" {
                eat_profile = Some(value.trim().to_owned());
            }
            seen.push(name);
            let after = after.trim_start();
            rest = if after.is_empty() { "" } else { after.strip_prefix(';')?.trim_start() };
        }
        Some(Self { essence: essence.to_ascii_lowercase(), eat_profile })
    }
}

/// Contents of a record, as bits of its indicator.
pub mod indicator {
    /// Reference values.
    pub const REFERENCE_VALUES: u8 = 1 << 0;
    /// Endorsements.
    pub const ENDORSEMENTS: u8 = 1 << 1;
    /// Evidence.
    pub const EVIDENCE: u8 = 1 << 2;
    /// Attestation results.
    pub const RESULTS: u8 = 1 << 3;
    /// An appraisal policy.
    pub const POLICY: u8 = 1 << 4;
    /// All of them.
    pub(super) const ALL: u8 = (1 << 5) - 1;
}

/// One wrapped message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its type.
    pub kind: Type,
    /// The message.
    pub value: Vec<u8>,
    /// Its contents ([`indicator`]), if stated.
    pub indicator: Option<u8>,
}

impl Record {
    /// Evidence of this project's devices.
    #[must_use]
    pub fn evidence(bytes: &[u8]) -> Self {
        Self {
            kind: Type::Format(FORMAT_EAT_CWT),
            value: bytes.to_vec(),
            indicator: Some(indicator::EVIDENCE),
        }
    }
}

/// A wrapper: one message, or several by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cmw {
    /// One message.
    Record(Record),
    /// Several, by name.
    Collection {
        /// Type of the collection (URI or OID), if stated.
        kind: Option<String>,
        /// The items, in order of their encoded names.
        items: Vec<(String, Cmw)>,
    },
}

fn indicator_of(bits: u64) -> Result<u8, CmwError> {
    let bits = u8::try_from(bits).ok().filter(|bits| *bits != 0 && bits & !indicator::ALL == 0);
    bits.ok_or_else(|| CmwError::Content {
        expected: "an indicator of known bits, not 0",
        found: "another number".into(),
    })
}

fn media(text: String) -> Result<Type, CmwError> {
    if MediaType::parse(&text).is_none() {
        return Err(CmwError::Form { what: "the type is no media type" });
    }
    Ok(Type::Media(text))
}

fn format(n: u64) -> Result<Type, CmwError> {
    u16::try_from(n)
        .map(Type::Format)
        .map_err(|_| CmwError::Form { what: "the type is no content format" })
}

fn check_collection(items: &[(String, Cmw)]) -> Result<(), CmwError> {
    if items.is_empty() {
        return Err(CmwError::Form { what: "the collection is empty" });
    }
    if items.len() > MAX_ITEMS {
        return Err(CmwError::Limit { what: "items", limit: MAX_ITEMS });
    }
    Ok(())
}

impl Cmw {
    /// Reads a wrapper in CBOR: record, tagged record or collection.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn from_cbor(bytes: &[u8]) -> Result<Self, CmwError> {
        from_value(cbor::parse(bytes, &Limits::bytes(MAX_CMW))?, 0)
    }

    /// Reads a wrapper in JSON: record or collection.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn from_json(bytes: &[u8]) -> Result<Self, CmwError> {
        if bytes.len() > MAX_CMW {
            return Err(CmwError::Limit { what: "length", limit: MAX_CMW });
        }
        from_json_value(json(bytes).map_err(|error| CmwError::Json { text: error.to_string() })?, 0)
    }

    /// Reads either form by its first byte: JSON begins with `[` or `{`, which no CMW in CBOR does.
    ///
    /// # Errors
    /// The first violated rule.
    pub fn parse(bytes: &[u8]) -> Result<Self, CmwError> {
        match bytes.first() {
            Some(b'[' | b'{') => Self::from_json(bytes),
            Some(_) => Self::from_cbor(bytes),
            None => Err(CmwError::Form { what: "there are no bytes" }),
        }
    }

    /// The wrapper in deterministic CBOR.
    #[must_use]
    pub fn to_cbor(&self) -> Vec<u8> {
        to_value(self).encode()
    }

    /// A record of a content format in the form of a tag: `TN(format)(bytes)`; `None` if the format
    /// has no tag.
    #[must_use]
    pub fn to_tagged_cbor(&self) -> Option<Vec<u8>> {
        match self {
            Self::Record(Record { kind: Type::Format(format), value, indicator: None })
                if *format <= LAST_TAGGED =>
            {
                Some(
                    Value::Tag(TAG_BASE + u64::from(*format), Box::new(value.as_slice().into()))
                        .encode(),
                )
            }
            _ => None,
        }
    }

    /// The wrapper in JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        to_json_value(self).to_string()
    }

    /// The one piece of evidence (`application/eat+cwt`) in this wrapper: the record itself, or the
    /// only item of a collection whose indicator says or allows that it is evidence.
    ///
    /// # Errors
    /// No items or several, another type, or an indicator without the evidence bit.
    pub fn evidence(&self) -> Result<&[u8], CmwError> {
        const EXPECTED: &str = "one record of application/eat+cwt that holds evidence";
        let mut found = Vec::new();
        self.records(&mut found);
        let is_evidence =
            |record: &&Record| record.indicator.is_none_or(|bits| bits & indicator::EVIDENCE != 0);
        let evidence: Vec<&Record> = found
            .iter()
            .copied()
            .filter(|record| record.kind.is_eat_cwt())
            .filter(is_evidence)
            .collect();
        match evidence[..] {
            [one] if one.value.len() <= FORM.max_len => Ok(&one.value),
            [_] => Err(CmwError::Limit { what: "length of evidence", limit: FORM.max_len }),
            [] => {
                let names: Vec<String> = found.iter().map(|record| record.kind.name()).collect();
                Err(CmwError::Content { expected: EXPECTED, found: names.join(", ") })
            }
            _ => Err(CmwError::Content {
                expected: EXPECTED,
                found: format!("{} of them", evidence.len()),
            }),
        }
    }

    fn records<'a>(&'a self, out: &mut Vec<&'a Record>) {
        match self {
            Self::Record(record) => out.push(record),
            Self::Collection { items, .. } => items.iter().for_each(|(_, item)| item.records(out)),
        }
    }
}

fn from_value(value: Value, depth: usize) -> Result<Cmw, CmwError> {
    match value {
        Value::Array(items) => {
            let mut items = items.into_iter();
            let (kind, message, bits) = (items.next(), items.next(), items.next());
            if items.next().is_some() {
                return Err(CmwError::Form { what: "a record has two or three parts" });
            }
            let kind = match kind {
                Some(Value::Text(text)) => media(text)?,
                Some(Value::Uint(n)) => format(n)?,
                _ => return Err(CmwError::Form { what: "the type is neither text nor number" }),
            };
            let Some(Value::Bytes(value)) = message else {
                return Err(CmwError::Form { what: "the message is not a byte string" });
            };
            let indicator = match bits {
                None => None,
                Some(Value::Uint(bits)) => Some(indicator_of(bits)?),
                Some(_) => return Err(CmwError::Form { what: "the indicator is not a number" }),
            };
            Ok(Cmw::Record(Record { kind, value, indicator }))
        }
        Value::Tag(tag, inner) => {
            let kind = tag.checked_sub(TAG_BASE).filter(|n| *n <= u64::from(LAST_TAGGED));
            let kind = format(
                kind.ok_or(CmwError::Form { what: "the tag is none of a content format" })?,
            )?;
            let Value::Bytes(value) = *inner else {
                return Err(CmwError::Form { what: "the message is not a byte string" });
            };
            Ok(Cmw::Record(Record { kind, value, indicator: None }))
        }
        Value::Map(entries) => {
            if depth == MAX_DEPTH {
                return Err(CmwError::Limit { what: "depth", limit: MAX_DEPTH });
            }
            let mut kind = None;
            let mut items = Vec::new();
            for (name, value) in entries {
                match (name, value) {
                    (Value::Text(name), Value::Text(text)) if name == COLLECTION_TYPE => {
                        kind = Some(text);
                    }
                    (Value::Text(name), value) if name != COLLECTION_TYPE => {
                        items.push((name, from_value(value, depth + 1)?));
                    }
                    _ => {
                        return Err(CmwError::Form {
                            what: "a name in the collection is not a text",
                        });
                    }
                }
            }
            check_collection(&items)?;
            Ok(Cmw::Collection { kind, items })
        }
        _ => Err(CmwError::Form { what: "neither record, tag nor collection" }),
    }
}

fn to_value(cmw: &Cmw) -> Value {
    match cmw {
        Cmw::Record(record) => {
            let kind = match &record.kind {
                Type::Media(text) => text.as_str().into(),
                Type::Format(format) => Value::Uint(u64::from(*format)),
            };
            let mut parts = vec![kind, record.value.as_slice().into()];
            parts.extend(record.indicator.map(|bits| Value::Uint(u64::from(bits))));
            Value::Array(parts)
        }
        Cmw::Collection { kind, items } => {
            let mut entries: Vec<(Value, Value)> =
                items.iter().map(|(name, item)| (name.as_str().into(), to_value(item))).collect();
            entries.extend(kind.as_deref().map(|kind| (COLLECTION_TYPE.into(), kind.into())));
            Value::Map(entries)
        }
    }
}

fn from_json_value(value: Json, depth: usize) -> Result<Cmw, CmwError> {
    match value {
        Json::Array(items) => {
            let (kind, message, bits) = match &items[..] {
                [kind, message] => (kind, message, None),
                [kind, message, bits] => (kind, message, Some(bits)),
                _ => return Err(CmwError::Form { what: "a record has two or three parts" }),
            };
            let kind = match (kind, kind.as_u64()) {
                (Json::String(text), _) => media(text.clone())?,
                (_, Some(n)) => format(n)?,
                _ => return Err(CmwError::Form { what: "the type is neither text nor number" }),
            };
            let value = message.as_str().and_then(|text| B64.decode_to_vec(text).ok());
            let value = value
                .ok_or(CmwError::Form { what: "the message is not base64url without padding" })?;
            let indicator = match bits.map(Json::as_u64) {
                None => None,
                Some(Some(bits)) => Some(indicator_of(bits)?),
                Some(None) => return Err(CmwError::Form { what: "the indicator is not a number" }),
            };
            Ok(Cmw::Record(Record { kind, value, indicator }))
        }
        Json::Object(entries) => {
            if depth == MAX_DEPTH {
                return Err(CmwError::Limit { what: "depth", limit: MAX_DEPTH });
            }
            let mut kind = None;
            let mut items = Vec::new();
            for (name, value) in entries {
                match value {
                    Json::String(text) if name == COLLECTION_TYPE => kind = Some(text),
                    _ if name == COLLECTION_TYPE => {
                        return Err(CmwError::Form {
                            what: "the type of the collection is not a text",
                        });
                    }
                    value => items.push((name, from_json_value(value, depth + 1)?)),
                }
            }
            check_collection(&items)?;
            // CBOR order, shorter names first, so that both forms give the same value.
            items.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
            Ok(Cmw::Collection { kind, items })
        }
        _ => Err(CmwError::Form { what: "neither record nor collection" }),
    }
}

fn to_json_value(cmw: &Cmw) -> Json {
    match cmw {
        Cmw::Record(record) => {
            let kind = match &record.kind {
                Type::Media(text) => Json::from(text.as_str()),
                Type::Format(format) => Json::from(*format),
            };
            let mut parts = vec![kind, Json::from(B64.encode_to_string(&record.value))];
            parts.extend(record.indicator.map(Json::from));
            Json::Array(parts)
        }
        Cmw::Collection { kind, items } => {
            let mut map: Map<String, Json> =
                items.iter().map(|(name, item)| (name.clone(), to_json_value(item))).collect();
            if let Some(kind) = kind {
                map.insert(COLLECTION_TYPE.into(), Json::from(kind.as_str()));
            }
            Json::Object(map)
        }
    }
}
