//! JSON as results are written: once, in order, straight into one buffer.

/// An object under way. Names are constants of this crate, and need no escapes.
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
        let comma: &[u8] = if self.first { b"" } else { b"," };
        self.first = false;
        for part in [comma, b"\"", name.as_bytes(), b"\":"] {
            self.out.extend_from_slice(part);
        }
        self.out
    }

    pub(crate) fn text(&mut self, name: &'static str, value: &str) {
        text(self.name(name), value);
    }

    pub(crate) fn texts<'v>(&mut self, name: &'static str, values: impl IntoIterator<Item = &'v String>) {
        list(self.name(name), values, |out, value| text(out, value));
    }

    pub(crate) fn objects<V>(&mut self, name: &'static str, values: impl IntoIterator<Item = V>, fill: impl Fn(&mut Object<'_>, V)) {
        list(self.name(name), values, |out, value| object(out, |map| fill(map, value)));
    }

    pub(crate) fn number(&mut self, name: &'static str, value: impl serde::Serialize) {
        // Writing a number to a Vec has no error.
        let _ = serde_json::to_writer(self.name(name), &value);
    }

    pub(crate) fn hex(&mut self, name: &'static str, bytes: &[u8]) {
        let out = self.name(name);
        out.push(b'"');
        let start = out.len();
        out.resize(start + 2 * bytes.len(), 0);
        hex_digits(bytes, &mut out[start..]);
        out.push(b'"');
    }

    /// Bytes in base64url without padding.
    pub(crate) fn base64(&mut self, name: &'static str, bytes: &[u8]) {
        let out = self.name(name);
        out.push(b'"');
        base64url(out, bytes);
        out.push(b'"');
    }

    pub(crate) fn object(&mut self, name: &'static str, fill: impl FnOnce(&mut Object<'_>)) {
        object(self.name(name), fill);
    }
}

fn list<V>(out: &mut Vec<u8>, values: impl IntoIterator<Item = V>, write: impl Fn(&mut Vec<u8>, V)) {
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
    // No early end: so it runs over many bytes at once.
    let plain = value.bytes().fold(true, |plain, byte| plain & (byte >= b' ') & (byte != b'"') & (byte != b'\\'));
    if plain {
        out.push(b'"');
        out.extend_from_slice(value.as_bytes());
        out.push(b'"');
    } else {
        // Writing a text to a Vec has no error.
        let _ = serde_json::to_writer(out, value);
    }
}

/// Writes bytes as hexadecimal digits, two for each.
pub(crate) fn hex_digits(bytes: &[u8], out: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in out.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
}

/// The two characters of each twelve bits.
static PAIRS: [[u8; 2]; 4096] = {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut pairs = [[0; 2]; 4096];
    let mut n = 0;
    while n < 4096 {
        pairs[n] = [ALPHABET[n >> 6], ALPHABET[n & 63]];
        n += 1;
    }
    pairs
};

/// Appends base64url without padding (RFC 4648 section 5), twelve bits at a time: a result is a quarter of all bytes that an appraisal writes.
pub(crate) fn base64url(out: &mut Vec<u8>, bytes: &[u8]) {
    let (threes, rest) = bytes.as_chunks::<3>();
    let start = out.len();
    out.resize(start + 4 * threes.len(), 0);
    for (four, [a, b, c]) in out[start..].as_chunks_mut::<4>().0.iter_mut().zip(threes) {
        let n = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        let ([a, b], [c, d]) = (PAIRS[n >> 12], PAIRS[n & 0xfff]);
        *four = [a, b, c, d];
    }
    match *rest {
        [a] => out.extend_from_slice(&PAIRS[usize::from(a) << 4]),
        [a, b] => {
            let n = usize::from(a) << 16 | usize::from(b) << 8;
            out.extend_from_slice(&PAIRS[n >> 12]);
            out.push(PAIRS[n & 0xfff][0]);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn value(fill: impl FnOnce(&mut Object<'_>)) -> Value {
        let mut out = Vec::new();
        object(&mut out, fill);
        serde_json::from_slice(&out).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out)))
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
            let expected = json!({"a": a, "b": b, "n": n, "hex": hex::encode(&bytes), "base64": URL_SAFE_NO_PAD.encode(&bytes)});
            prop_assert_eq!(written, expected);
        }
    }
}
