//! Strict CBOR against the examples of RFC 8949 appendix A and against minicbor.

use proptest::prelude::*;
use shef_proto::cbor::{CborError, Fields, Limits, Value, check, parse, read};

const LIMITS: Limits = Limits::bytes(4096);

fn code(bytes: &[u8]) -> &'static str {
    check(bytes, &LIMITS).unwrap_err().code()
}

/// RFC 8949 appendix A: the deterministic examples of kinds that the formats here use.
#[test]
fn rfc_8949_examples() {
    let text = |s: &str| Value::Text(s.into());
    let list = |items: &[u64]| Value::Array(items.iter().map(|n| Value::Uint(*n)).collect());
    let cases: Vec<(&str, Value)> = vec![
        ("00", Value::Uint(0)),
        ("01", Value::Uint(1)),
        ("0a", Value::Uint(10)),
        ("17", Value::Uint(23)),
        ("1818", Value::Uint(24)),
        ("1819", Value::Uint(25)),
        ("1864", Value::Uint(100)),
        ("1903e8", Value::Uint(1000)),
        ("1a000f4240", Value::Uint(1_000_000)),
        ("1b000000e8d4a51000", Value::Uint(1_000_000_000_000)),
        ("1bffffffffffffffff", Value::Uint(u64::MAX)),
        ("3bffffffffffffffff", Value::Nint(u64::MAX)),
        ("20", Value::int(-1)),
        ("29", Value::int(-10)),
        ("3863", Value::int(-100)),
        ("3903e7", Value::int(-1000)),
        ("f4", Value::Bool(false)),
        ("f5", Value::Bool(true)),
        ("f6", Value::Null),
        (
            "c074323031332d30332d32315432303a30343a30305a",
            Value::Tag(0, Box::new(text("2013-03-21T20:04:00Z"))),
        ),
        ("c11a514b67b0", Value::Tag(1, Box::new(Value::Uint(1_363_896_240)))),
        ("d74401020304", Value::Tag(23, Box::new(Value::Bytes(vec![1, 2, 3, 4])))),
        ("d818456449455446", Value::Tag(24, Box::new(Value::Bytes(b"dIETF".to_vec())))),
        ("40", Value::Bytes(vec![])),
        ("4401020304", Value::Bytes(vec![1, 2, 3, 4])),
        ("60", text("")),
        ("6161", text("a")),
        ("6449455446", text("IETF")),
        ("62225c", text("\"\\")),
        ("62c3bc", text("\u{fc}")),
        ("63e6b0b4", text("\u{6c34}")),
        ("64f0908591", text("\u{10151}")),
        ("80", list(&[])),
        ("83010203", list(&[1, 2, 3])),
        ("8301820203820405", Value::Array(vec![Value::Uint(1), list(&[2, 3]), list(&[4, 5])])),
        ("a0", Value::Map(vec![])),
        (
            "a201020304",
            Value::Map(vec![(Value::Uint(1), Value::Uint(2)), (Value::Uint(3), Value::Uint(4))]),
        ),
        (
            "a26161016162820203",
            Value::Map(vec![(text("a"), Value::Uint(1)), (text("b"), list(&[2, 3]))]),
        ),
        (
            "826161a161626163",
            Value::Array(vec![text("a"), Value::Map(vec![(text("b"), text("c"))])]),
        ),
    ];
    for (hex, value) in cases {
        let bytes = hex::decode(hex).unwrap();
        assert_eq!(parse(&bytes, &LIMITS).unwrap(), value, "{hex}");
        assert_eq!(value.encode(), bytes, "{hex}");
    }
}

/// RFC 8949 appendix A: the examples that are not deterministic or of a refused kind; appendix F:
/// the ones that are not well-formed.
#[test]
fn rfc_8949_refused() {
    for hex in [
        "f90000",
        "f98000",
        "fa47c35000",
        "fb3ff199999999999a",
        "f97e00",
        "f7",
        "f0",
        "f8ff",
        "5f42010243030405ff",
        "7f657374726561646d696e67ff",
        "9fff",
        "9f018202039f0405ffff",
        "bf61610161629f0203ffff",
        "1800",
        "1817",
        "190018",
        "1a0000ffff",
        "1b00000000ffffffff",
        "3800",
        "5800",
        "7800",
        "9800",
        "b800",
        "d800",
        "580100",
    ] {
        assert_eq!(code(&hex::decode(hex).unwrap()), "SHEF-PRO-002", "{hex}");
    }
    for hex in [
        "18",
        "19",
        "1a",
        "1b",
        "1901",
        "1a0102",
        "1b01020304050607",
        "38",
        "58",
        "78",
        "98",
        "a1",
        "a101",
        "81",
        "8201",
        "c0",
        "41",
        "61",
        "5affffffff00",
        "5bffffffffffffffff010203",
        "1c",
        "1d",
        "1e",
        "3c",
        "5c",
        "7c",
        "9c",
        "bc",
        "dc",
        "fc",
        "9bffffffffffffffff",
        "bbffffffffffffffff",
    ] {
        assert_eq!(code(&hex::decode(hex).unwrap()), "SHEF-PRO-001", "{hex}");
    }
}

#[test]
fn maps_are_sorted_and_without_repeats() {
    // Bytewise order of the encoded keys: 10 (0a), 100 (1864), -1 (20), "z" (617a), "aa" (626161).
    let check_hex =
        |hex: &str| check(&hex::decode(hex).unwrap(), &LIMITS).map_err(|error| error.code());
    assert_eq!(check_hex("a50a00186400200061 7a0062616100".replace(' ', "").as_str()), Ok(()));
    for swapped in ["a218640 00a00", "a220001864 00", "a2617a00 2000", "a26261610 0617a00"] {
        assert_eq!(check_hex(&swapped.replace(' ', "")), Err("SHEF-PRO-002"), "{swapped}");
    }
    assert_eq!(code(&hex::decode("a201010102").unwrap()), "SHEF-PRO-002");
    // Equal keys that are maps.
    assert_eq!(code(&hex::decode("a2a001a002").unwrap()), "SHEF-PRO-002");
}

#[test]
fn limits_hold() {
    assert!(matches!(check(&[0; 5000], &LIMITS), Err(CborError::Limit { what: "length", .. })));
    let mut deep = vec![0x81; 200_000];
    deep.push(0);
    assert_eq!(check(&deep, &Limits::bytes(1 << 20)).unwrap_err().code(), "SHEF-PRO-003");
    let mut tags = vec![0xc1; 2000];
    tags.push(0);
    assert_eq!(check(&tags, &LIMITS).unwrap_err().code(), "SHEF-PRO-003");
    let mut many = vec![0x99, 0x50, 0x00];
    many.extend(vec![0; 0x5000]);
    assert_eq!(check(&many, &Limits::bytes(1 << 20)).unwrap_err().code(), "SHEF-PRO-003");
    assert_eq!(code(&[0x00, 0x00]), "SHEF-PRO-004");
    assert_eq!(code(&[]), "SHEF-PRO-001");
}

#[test]
fn text_is_utf8() {
    for hex in ["61ff", "62c328", "63e28281"] {
        let bytes = hex::decode(hex).unwrap();
        assert_eq!(
            parse(&bytes, &LIMITS).is_ok(),
            std::str::from_utf8(&bytes[1..]).is_ok(),
            "{hex}"
        );
    }
    assert_eq!(code(&[0x61, 0xff]), "SHEF-PRO-002");
    assert_eq!(code(&[0x63, 0xed, 0xa0, 0x80]), "SHEF-PRO-002");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(Value::Uint),
        any::<u64>().prop_map(Value::Nint),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
        ".{0,10}".prop_map(Value::Text),
        any::<bool>().prop_map(Value::Bool),
        Just(Value::Null),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            proptest::collection::vec((any::<i64>().prop_map(Value::int), inner.clone()), 0..6)
                .prop_map(Value::Map),
            (any::<u64>(), inner).prop_map(|(tag, value)| Value::Tag(tag, Box::new(value))),
        ]
    })
}

/// True if no map in the value repeats a key.
fn unique(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(unique),
        Value::Tag(_, inner) => unique(inner),
        Value::Map(entries) => {
            let mut keys: Vec<Vec<u8>> = entries.iter().map(|(key, _)| key.encode()).collect();
            keys.sort();
            keys.windows(2).all(|pair| pair[0] != pair[1])
                && entries.iter().all(|(_, value)| unique(value))
        }
        _ => true,
    }
}

#[test]
fn texts_of_messages_can_be_printed() {
    for (text, printable) in [
        ("", true),
        ("vu9p ~", true),
        ("Ger\u{e4}t", true),
        ("two\nlines", true),
        ("\u{1b}[2J", false),
        ("a\rb", false),
        ("a\u{9b}2J", false),
        ("\0", false),
    ] {
        let message = Value::map(vec![(1, text.into()), (2, text.into())]).encode();
        let mut fields = Fields::new(read(&message, &LIMITS).unwrap(), "message").unwrap();
        assert_eq!(fields.text(1, 0..=16).ok(), printable.then_some(text), "{text:?}");
        assert_eq!(fields.file(2, 0..=16), Ok(text), "a file may hold anything");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(value in value().prop_filter("repeated key", unique)) {
        let bytes = value.encode();
        let back = parse(&bytes, &Limits::bytes(1 << 20)).unwrap();
        prop_assert_eq!(back.encode(), bytes);
    }

    #[test]
    fn what_is_accepted_has_one_encoding(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(value) = parse(&bytes, &LIMITS) {
            prop_assert_eq!(value.encode(), bytes.clone());
            // Another decoder also finds it well-formed.
            let mut other = minicbor::Decoder::new(&bytes);
            prop_assert!(other.skip().is_ok());
            prop_assert_eq!(other.position(), bytes.len());
        }
    }
}
