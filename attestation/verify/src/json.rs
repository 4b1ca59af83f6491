//! JSON writer for results: one pass, in order, into one buffer. It makes base64 and hexadecimal
//! digits in blocks: one at a time, they took a sixth of an appraisal's time outside its
//! signatures.

use base64_simd::URL_SAFE_NO_PAD;
use hex_simd::AsciiCase;

/// An object being written. Names are constants of this crate and need no escapes.
pub(crate) struct Object<'a> {
    out: &'a mut Vec<u8>,
    first: bool,
}

/// Writes an object; `fill` writes its members.
pub(crate) fn object(out: &mut Vec<u8>, fill: impl FnOnce(&mut Object<'_>)) {
    out.push(b'{');
    fill(&mut Object { out, first: true });
    out.push(b'}');
}

impl Object<'_> {
    fn name(&mut self, name: &'static str) -> &mut Vec<u8> {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    pub(crate) fn text(&mut self, name: &'static str, value: &str) {
        text(self.name(name), value);
    }

    pub(crate) fn texts<'v>(
        &mut self,
        name: &'static str,
        values: impl IntoIterator<Item = &'v String>,
    ) {
        list(self.name(name), values, |out, value| text(out, value));
    }

    pub(crate) fn objects<V>(
        &mut self,
        name: &'static str,
        values: impl IntoIterator<Item = V>,
        fill: impl Fn(&mut Object<'_>, V),
    ) {
        list(self.name(name), values, |out, value| object(out, |map| fill(map, value)));
    }

    pub(crate) fn number(&mut self, name: &'static str, value: impl serde::Serialize) {
        // Writing a number to a Vec cannot fail.
        let _ = serde_json::to_writer(self.name(name), &value);
    }

    pub(crate) fn hex(&mut self, name: &'static str, bytes: &[u8]) {
        let out = self.name(name);
        out.push(b'"');
        hex_simd::encode_append(bytes, out, AsciiCase::Lower);
        out.push(b'"');
    }

    /// Bytes in base64url without padding.
    pub(crate) fn base64(&mut self, name: &'static str, bytes: &[u8]) {
        let out = self.name(name);
        out.push(b'"');
        URL_SAFE_NO_PAD.encode_append(bytes, out);
        out.push(b'"');
    }

    pub(crate) fn object(&mut self, name: &'static str, fill: impl FnOnce(&mut Object<'_>)) {
        object(self.name(name), fill);
    }
}

fn list<V>(
    out: &mut Vec<u8>,
    values: impl IntoIterator<Item = V>,
    write: impl Fn(&mut Vec<u8>, V),
) {
    out.push(b'[');
    for (at, value) in values.into_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, value);
    }
    out.push(b']');
}

fn text(out: &mut Vec<u8>, value: &str) {
    // No early exit, so that the loop vectorises.
    let plain = value
        .bytes()
        .fold(true, |plain, byte| plain & (byte >= b' ') & (byte != b'"') & (byte != b'\\'));
    if plain {
        out.push(b'"');
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    } else {
        // Writing a string to a Vec cannot fail.
        let _ = serde_json::to_writer(out, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn value(fill: impl FnOnce(&mut Object<'_>)) -> Value {
        let mut out = Vec::new();
        object(&mut out, fill);
        serde_json::from_slice(&out)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)))
    }

    #[test]
    fn empty_and_nested() {
        assert_eq!(value(|_| {}), json!({}));
        let written = value(|map| {
            map.texts("none", []);
            map.object("inside", |map| map.number("n", -5));
            map.objects("list", [1, 2], |map, n| map.number("n", n));
        });
        assert_eq!(written, json!({"none": [], "inside": {"n": -5}, "list": [{"n": 1}, {"n": 2}]}));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(a in ".*", b in proptest::collection::vec(".*", 0..4), n: u64, bytes: Vec<u8>) {
            let written = value(|map| {
                map.text("a", &a);
                map.texts("b", &b);
                map.number("n", n);
                map.hex("hex", &bytes);
                map.base64("base64", &bytes);
            });
            let expected = json!({"a": a, "b": b, "n": n, "hex": hex::encode(&bytes), "base64": URL_SAFE_NO_PAD.encode_to_string(&bytes)});
            prop_assert_eq!(written, expected);
        }
    }
}
