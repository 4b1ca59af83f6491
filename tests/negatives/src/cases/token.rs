//! CBOR and COSE: malformed evidence, and signed evidence in a different format.

use shef_proto::cbor::Value;
use shef_proto::evidence::Layer;

use super::Run;
use crate::Seen;
use crate::device::{Device, Token, raw_map};

pub(super) const CASES: &[(u32, Run)] = &[
    (10, truncated),
    (11, trailing),
    (12, nesting),
    (13, huge_length),
    (14, indefinite),
    (15, claim_twice),
    (16, label_twice),
    (17, label_in_both),
    (18, unsorted),
    (19, long_integers),
    (20, floats),
    (21, tags),
    (22, other_messages),
    (23, detached),
    (24, crit),
    (25, utf8),
];

fn shield() -> Device {
    Device::new(Layer::Shield)
}

/// The entries of the claims-set, encoded.
fn encoded(device: &Device) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries: Vec<_> =
        device.entries().iter().map(|(key, value)| (key.encode(), value.encode())).collect();
    entries.sort();
    entries
}

/// Replaces the only place where `from` occurs.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let places: Vec<usize> =
        (0..bytes.len() - from.len()).filter(|at| bytes[*at..].starts_with(from)).collect();
    let [at] = places[..] else { panic!("{} places", places.len()) };
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

fn truncated() -> Vec<Seen> {
    let device = shield();
    let good = &device.evidence;
    (0..good.len()).map(|end| device.ask(format!("{end} bytes"), &good[..end])).collect()
}

fn trailing() -> Vec<Seen> {
    let device = shield();
    let payload = [&device.claims.to_cbor()[..], &[0]].concat();
    vec![
        device.ask("a zero", &[&device.evidence[..], &[0]].concat()),
        device.ask("a second token", &[&device.evidence[..], &device.evidence[..]].concat()),
        device.ask("in the protected header", &device.spoilt(|token| token.protected.push(0))),
        device.ask("in the payload", &device.signed(&payload)),
    ]
}

fn nesting() -> Vec<Seen> {
    let device = shield();
    // Nested arrays of one element, with a number in the innermost.
    let deep = |levels: usize| [vec![0x81; levels], vec![0]].concat();
    vec![
        device.ask("200,000 levels", &deep(200_000)),
        device.ask(
            "200,000 levels behind the tags",
            &[&[0xd8, 61, 0xd2][..], &deep(200_000)].concat(),
        ),
        device.ask("as many as fit", &deep(6_000)),
        device.ask("tags as deep as fits", &[vec![0xd2; 6_000], vec![0]].concat()),
        device.ask("as many as fit, in the payload", &device.signed(&deep(4_000))),
    ]
}

fn huge_length() -> Vec<Seen> {
    let device = shield();
    let length = (1u64 << 60).to_be_bytes();
    [("byte string", 0x5b), ("text", 0x7b), ("array", 0x9b), ("map", 0xbb)]
        .into_iter()
        .flat_map(|(what, head)| {
            let item = [&[head][..], &length].concat();
            let inside = [&[0xd8, 61, 0xd2, 0x84][..], &item].concat();
            [device.ask(what, &item), device.ask(format!("{what} in the token"), &inside)]
        })
        .collect()
}

fn indefinite() -> Vec<Seen> {
    let device = shield();
    let good = device.signed(&device.claims.to_cbor());
    let array = [&good[..3], &[0x9f], &good[4..], &[0xff]].concat();
    let protected = device.token(&[]).protected;
    let chunked = [&[0x5f, 0x40 | protected.len() as u8][..], &protected, &[0xff]].concat();
    let whole = [&[0x40 | protected.len() as u8][..], &protected].concat();
    let claims = device.claims.to_cbor();
    let map = [&[0xbf], &claims[1..], &[0xff]].concat();
    let header = [&[0xbf], &protected[1..], &[0xff]].concat();
    vec![
        device.ask("token", &array),
        device.ask("byte string", &replaced(&good, &whole, &chunked)),
        device.ask("protected header", &device.spoilt(|token| token.protected = header)),
        device.ask("claims-set", &device.signed(&map)),
    ]
}

fn claim_twice() -> Vec<Seen> {
    let device = shield();
    let entries = encoded(&device);
    (0..entries.len())
        .flat_map(|at| {
            let mut twice = entries.clone();
            twice.insert(at, entries[at].clone());
            let mut other = entries.clone();
            other.insert(at + 1, (entries[at].0.clone(), Value::Null.encode()));
            let key = hex::encode(&entries[at].0);
            [
                device.ask(format!("claim {key}, same value"), &device.signed(&raw_map(&twice))),
                device.ask(format!("claim {key}, another value"), &device.signed(&raw_map(&other))),
            ]
        })
        .collect()
}

fn label_twice() -> Vec<Seen> {
    let device = shield();
    let (alg, typ) = ((vec![0x01], vec![0x28]), (vec![0x03], vec![0x19, 0x01, 0x07]));
    let other = (vec![0x01], vec![0x26]);
    let chain = device.token(&[]).unprotected;
    let Value::Map(chain) = chain else { unreachable!() };
    vec![
        device.ask(
            "alg",
            &device.spoilt(|token| {
                token.protected = raw_map(&[alg.clone(), alg.clone(), typ.clone()]);
            }),
        ),
        device.ask(
            "alg, another value",
            &device.spoilt(|token| token.protected = raw_map(&[alg.clone(), other, typ.clone()])),
        ),
        device.ask(
            "content type",
            &device.spoilt(|token| token.protected = raw_map(&[alg, typ.clone(), typ])),
        ),
        device.ask(
            "x5chain",
            &device
                .spoilt(|token| token.unprotected = Value::Map([&chain[..], &chain[..]].concat())),
        ),
    ]
}

fn label_in_both() -> Vec<Seen> {
    let device = shield();
    let both = |label: i64, value: Value| {
        device.spoilt(|token| {
            let Value::Map(entries) = &mut token.unprotected else { unreachable!() };
            entries.insert(0, (Value::int(label), value));
        })
    };
    vec![
        device.ask("alg, same value", &both(1, Value::int(-9))),
        device.ask("alg, another value", &both(1, Value::int(-35))),
        device.ask("content type", &both(3, Value::Uint(263))),
        device.ask("x5chain", &{
            let chain = device.token(&[]).unprotected;
            device.spoilt(|token| {
                let Value::Map(mut entries) = chain else { unreachable!() };
                entries
                    .extend([(Value::int(1), Value::int(-9)), (Value::int(3), Value::Uint(263))]);
                token.protected = Value::Map(entries).encode();
            })
        }),
    ]
}

fn unsorted() -> Vec<Seen> {
    let device = shield();
    let mut entries = encoded(&device);
    entries.reverse();
    let reversed = device.signed(&raw_map(&entries));
    entries.reverse();
    entries.swap(3, 4);
    let swapped = device.signed(&raw_map(&entries));
    let header = raw_map(&[(vec![0x03], vec![0x19, 0x01, 0x07]), (vec![0x01], vec![0x28])]);
    vec![
        device.ask("all claims", &reversed),
        device.ask("two claims", &swapped),
        device.ask("protected header", &device.spoilt(|token| token.protected = header)),
    ]
}

fn long_integers() -> Vec<Seen> {
    let device = shield();
    let with = |key: i64, value: &[u8]| {
        let mut entries = encoded(&device);
        let entry = entries.iter_mut().find(|(k, _)| *k == Value::int(key).encode()).unwrap();
        entry.1 = value.to_vec();
        device.signed(&raw_map(&entries))
    };
    let svn = device.claims.common.kernel_svn as u8;
    let good = device.signed(&device.claims.to_cbor());
    vec![
        device.ask("one byte", &with(-75_003, &[0x18, svn])),
        device.ask("two bytes", &with(-75_003, &[0x19, 0, svn])),
        device.ask("four bytes", &with(-75_003, &[0x1a, 0, 0, 0, svn])),
        device.ask("eight bytes", &with(-75_003, &[0x1b, 0, 0, 0, 0, 0, 0, 0, svn])),
        device.ask(
            "length of a byte string",
            &with(-75_002, &[&[0x59, 0, 32][..], &device.claims.common.kernel_digest].concat()),
        ),
        device.ask("tag", &[&[0xd9, 0, 61], &good[2..]].concat()),
    ]
}

fn floats() -> Vec<Seen> {
    let device = shield();
    let with = |value: &[u8]| {
        let mut entries = encoded(&device);
        entries.push((vec![0x06], value.to_vec()));
        entries.sort();
        device.signed(&raw_map(&entries))
    };
    let double = [&[0xfb][..], &1_795_000_000f64.to_be_bytes()].concat();
    vec![
        device.ask("iat in double precision", &with(&double)),
        device.ask("iat in single precision", &with(&[0xfa, 0x4e, 0xd5, 0xf9, 0x4e])),
        device.ask("NaN", &with(&[0xf9, 0x7e, 0])),
        device.ask("NaN with a payload", &with(&[0xfb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 1])),
        device.ask("infinity", &with(&[0xf9, 0x7c, 0])),
    ]
}

fn tagged(what: &[(&str, &[u64])]) -> Vec<Seen> {
    let device = shield();
    what.iter()
        .map(|(name, tags)| device.ask(*name, &device.spoilt(|token| token.tags = tags.to_vec())))
        .collect()
}

fn tags() -> Vec<Seen> {
    tagged(&[
        ("none", &[]),
        ("18 missing", &[61]),
        ("61 missing", &[18]),
        ("swapped", &[18, 61]),
        ("55799 before them", &[55799, 61, 18]),
        ("18 twice", &[61, 18, 18]),
        ("61 twice", &[61, 61, 18]),
        ("detached bundle", &[602, 18]),
    ])
}

fn other_messages() -> Vec<Seen> {
    let mut seen = tagged(&[
        ("COSE_Mac0", &[61, 17]),
        ("COSE_Mac", &[61, 97]),
        ("COSE_Sign", &[61, 98]),
        ("COSE_Encrypt0", &[61, 16]),
        ("COSE_Encrypt", &[61, 96]),
    ]);
    // Also with their true shapes: a Mac0 with a tag as long as a signature, an Encrypt0 of three
    // parts.
    let device = shield();
    let Token { protected, unprotected, payload, .. } = device.token(&device.claims.to_cbor());
    let of = |tag: u64, parts: Vec<Value>| {
        Value::Tag(61, Box::new(Value::Tag(tag, Box::new(Value::Array(parts))))).encode()
    };
    let head = [Value::from(protected.as_slice()), unprotected, payload];
    seen.push(
        device
            .ask("COSE_Mac0 of its shape", &of(17, [&head[..], &[Value::from(&[7; 32])]].concat())),
    );
    seen.push(device.ask("COSE_Encrypt0 of its shape", &of(16, head.to_vec())));
    seen
}

fn detached() -> Vec<Seen> {
    let device = shield();
    vec![device.ask(
        "nil payload, signed over the right one",
        &device.spoilt(|token| token.payload = Value::Null),
    )]
}

fn crit() -> Vec<Seen> {
    let device = shield();
    let with = |list: Vec<Value>, more: Vec<(i64, Value)>| {
        device.spoilt(|token| {
            let entries =
                [vec![(1, Value::int(-9)), (2, Value::Array(list)), (3, Value::Uint(263))], more]
                    .concat();
            token.protected = Value::map(entries).encode();
        })
    };
    vec![
        device.ask(
            "unknown label that is there",
            &with(vec![Value::int(99)], vec![(99, Value::Null)]),
        ),
        device.ask("unknown label that is not there", &with(vec![Value::int(99)], vec![])),
        device.ask("known label", &with(vec![Value::int(1)], vec![])),
        device.ask("empty", &with(vec![], vec![])),
    ]
}

fn utf8() -> Vec<Seen> {
    let device = shield();
    let payload = device.claims.to_cbor();
    let audience = device.verifier.audience.as_bytes();
    [
        ("a stray byte", &[0xff][..]),
        ("overlong", &[0xc0, 0x80]),
        ("a surrogate", &[0xed, 0xa0, 0x80]),
        ("cut", &[0xe2, 0x82]),
    ]
    .into_iter()
    .map(|(what, bad)| {
        let text = [bad, &audience[bad.len()..]].concat();
        device.ask(what, &device.signed(&replaced(&payload, audience, &text)))
    })
    .collect()
}
