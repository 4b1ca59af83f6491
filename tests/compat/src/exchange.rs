//! Recorded exchanges: the requests of a client and their answers, stored in files so that they can
//! be replayed without the client.
//!
//! Values that differ between runs are named in requests (`${nonce}`, learned from an answer), and
//! described by shape in answers: long base64 or hexadecimal texts by length, times as times,
//! tokens by their parts. Everything else must match exactly, including the order of members in a
//! JWE header.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One request and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    pub request: Request,
    pub answer: Answer,
}

/// A request; `${NAME}` in its texts stands for a value learned from an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// `operator`, or `anyone` without credentials.
    pub by: String,
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Body,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Body {
    Text(String),
    /// Bytes in base64url.
    Bytes(String),
}

/// An answer by its shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    pub status: u16,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

/// Headers of answers that clients use.
const HEADERS: [&str; 4] = ["content-type", "accept", "location", "set-cookie"];

impl Answer {
    /// The shape of an answer; `header` gives the text of a header.
    pub fn shape<'h>(status: u16, header: impl Fn(&str) -> Option<&'h str>, body: &[u8]) -> Self {
        let headers =
            HEADERS.iter().filter_map(|name| Some(((*name).to_owned(), masked(header(name)?))));
        let body = serde_json::from_slice(body).map_or_else(
            |_| json!(masked(&String::from_utf8_lossy(body))),
            |body| shape("", &body),
        );
        Self { status, headers: headers.collect(), body }
    }
}

/// The values learned so far, by name.
#[derive(Clone, Debug, Default)]
pub struct Values(BTreeMap<&'static str, String>);

impl Values {
    pub fn set(&mut self, name: &'static str, value: &str) {
        self.0.insert(name, value.to_owned());
    }

    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Learns from an answer.
    pub fn learn<'h>(&mut self, header: impl Fn(&str) -> Option<&'h str>, body: &[u8]) {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        for (name, member) in [("nonce", "nonce"), ("session", "session"), ("token", "token")] {
            if let Some(value) = body[member].as_str() {
                self.set(name, value);
            }
        }
        if let Some((_, session)) =
            header("location").and_then(|location| location.rsplit_once('/'))
        {
            self.set("session", session);
        }
        if let Some(cookie) = header("set-cookie").and_then(|cookie| cookie.split(';').next()) {
            self.set("cookie", cookie);
        }
    }

    /// A text with names in place of values.
    pub fn hide(&self, text: &str) -> String {
        let mut values: Vec<_> = self.0.iter().filter(|(_, value)| !value.is_empty()).collect();
        values.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        values.into_iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(value.as_str(), &format!("${{{name}}}"))
        })
    }

    /// A text with values in place of names.
    pub fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("${{{name}}}"), value)
        })
    }
}

/// Texts that differ between runs but are too short for [`masked`], or use other characters.
const RANDOM: [&str; 4] = ["iv", "tag", "ciphertext", "value"];
/// Texts that differ between versions, or are times.
const OTHER: [&str; 3] = ["build", "version", "expiry"];

fn shape(name: &str, value: &Value) -> Value {
    match value {
        // For people; no third-party client reads it.
        _ if name == "appraisal" => json!("<appraisal>"),
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(name, value)| (name.clone(), shape(name, value)))
                .collect::<Map<_, _>>(),
        ),
        Value::Array(list) => Value::Array(list.iter().map(|value| shape("", value)).collect()),
        Value::Number(number) if number.as_i64() > Some(1_000_000_000) => json!("<time>"),
        Value::String(text) if RANDOM.contains(&name) => json!(format!("<{}>", text.len())),
        Value::String(_) if OTHER.contains(&name) => json!(format!("<{name}>")),
        Value::String(text) => token(text).unwrap_or_else(|| json!(masked(text))),
        other => other.clone(),
    }
}

/// A JWT, or the header of a JWE, taken apart.
fn token(text: &str) -> Option<Value> {
    let read = |part: &str| B64.decode(part).ok().filter(|bytes| bytes.first() == Some(&b'{'));
    match text.split('.').collect::<Vec<_>>()[..] {
        // As text: the order of its members counts.
        [header] => Some(json!({"header": masked(std::str::from_utf8(&read(header)?).ok()?)})),
        [header, claims, signature] => {
            let claims: Value = serde_json::from_slice(&read(claims)?).ok()?;
            let header = read(header)?;
            Some(
                json!({"header": masked(std::str::from_utf8(&header).ok()?), "claims": shape("", &claims), "signature": signature.len()}),
            )
        }
        _ => None,
    }
}

/// A text in which each run of 32 or more characters of base64, or 16 of hexadecimal, is replaced
/// by its length. Runs in session tokens, which contain numbers of several lengths, have no length.
fn masked(text: &str) -> String {
    let (mut out, mut run) = (String::new(), String::new());
    let end = |out: &mut String, run: &mut String| {
        let hexadecimal =
            run.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        match run.len() {
            0..16 => out.push_str(run),
            16..32 if !hexadecimal => out.push_str(run),
            16..128 => out.push_str(&format!("<{}>", run.len())),
            _ => out.push_str("<long>"),
        }
        run.clear();
    };
    for character in text.chars() {
        if character.is_ascii_alphanumeric() || "-_+".contains(character) {
            run.push(character);
        } else {
            end(&mut out, &mut run);
            out.push(character);
        }
    }
    end(&mut out, &mut run);
    out
}
