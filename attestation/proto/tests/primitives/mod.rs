//! The requirements on every implementation of `Crypto`: the same tests for software, for the
//! units' driver over a model, and for the Verilated units.

use serde_json::Value;
use shef_proto::crypto::Crypto;

fn file(name: &str) -> Value {
    let path = format!("{}/../../tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn hex_of(v: &Value, key: &str) -> Vec<u8> {
    hex::decode(v[key].as_str().unwrap_or_else(|| panic!("no {key}"))).unwrap()
}

fn number(hex: &str) -> [u8; 32] {
    hex::decode(hex).unwrap().try_into().unwrap()
}

fn xy(x: &str, y: &str) -> [u8; 64] {
    [number(x), number(y)].concat().try_into().unwrap()
}

const N_LESS_1: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632550";
const G: [&str; 2] = [
    "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296",
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
];
/// -G.
const MINUS_G_Y: &str = "b01cbd1c01e58065711814b583f061e9d431cca994cea1313449bf97c840ae0a";

/// FIPS 180-4, messages up to `longest` bytes, whole and in parts.
pub fn sha256(c: &impl Crypto, longest: usize) {
    let v = file("sha256-hmac-hkdf.json");
    let mut run = 0;
    for case in v["sha256"].as_array().unwrap() {
        let message = case["text"]
            .as_str()
            .unwrap()
            .repeat(case["repeat"].as_u64().unwrap() as usize)
            .into_bytes();
        if message.len() > longest {
            continue;
        }
        let digest = hex_of(case, "digest");
        assert_eq!(c.sha256(&[&message])[..], digest, "{}", case["source"]);
        let (a, b) = message.split_at(message.len() / 3);
        assert_eq!(c.sha256(&[a, b"", b])[..], digest, "{}", case["source"]);
        // Interleaved with another hash.
        let mut running = c.begin();
        c.add(&mut running, a);
        assert_ne!(c.sha256(&[&message, b"more"])[..], digest);
        c.add(&mut running, b);
        assert_eq!(c.end(running)[..], digest, "{}", case["source"]);
        run += 1;
    }
    assert!(run >= 2, "{run}");
}

/// Points, and multiples with known coordinates.
pub fn p256(c: &impl Crypto) {
    let [x, y] = G;
    let g = xy(x, y);
    assert!(c.on_curve(&g) && c.on_curve(&xy(x, MINUS_G_Y)));
    for at in [0, 31, 32, 63] {
        let mut off = g;
        off[at] ^= 1;
        assert!(!c.on_curve(&off), "byte {at}");
    }
    assert!(!c.on_curve(&[0; 64]) && !c.on_curve(&[0xff; 64]));
    let mut one = [0; 32];
    one[31] = 1;
    assert_eq!(c.multiply(&one, None), Some(g));
    assert_eq!(c.multiply(&one, Some(&g)), Some(g));
    assert_eq!(c.multiply(&number(N_LESS_1), None), Some(xy(x, MINUS_G_Y)));
    assert_eq!(c.multiply(&[0; 32], None), None);
    assert_eq!(c.multiply(&[0; 32], Some(&g)), None);
    // RFC 6979, A.2.5: U = x G; and a (b G) = b (a G).
    let private = number("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721");
    let public = xy(
        "60fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6",
        "7903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299",
    );
    assert_eq!(c.multiply(&private, None), Some(public));
    let other = number("a6e3c57dd01abe90086538398355dd4c3b17aa873382b0f24d6129493d8aad60");
    let theirs = c.multiply(&other, None).unwrap();
    assert_eq!(c.multiply(&other, Some(&public)), c.multiply(&private, Some(&theirs)));
}

/// Reference cases and CAVP samples with both key sizes; wrong tags release nothing.
pub fn gcm(c: &impl Crypto) {
    let v = file("aes-gcm-bytes.json");
    let mut run = 0;
    for case in ["reference", "cavp"].iter().flat_map(|k| v[*k].as_array().unwrap()) {
        let (key, aad, plain) = (hex_of(case, "key"), hex_of(case, "aad"), hex_of(case, "plain"));
        let Ok(iv) = <[u8; 12]>::try_from(hex_of(case, "iv")) else { continue };
        let mut data = plain.clone();
        let tag = c.seal(&key, &iv, &aad, &mut data);
        assert_eq!((&tag[..], &data), (&hex_of(case, "tag")[..], &hex_of(case, "cipher")));
        assert!(c.open(&key, &iv, &aad, &mut data, &tag));
        assert_eq!(data, plain);
        let mut wrong = tag;
        wrong[15] ^= 1;
        let mut data = hex_of(case, "cipher");
        assert!(!c.open(&key, &iv, &aad, &mut data, &wrong));
        assert!(data.iter().all(|byte| *byte == 0));
        run += 1;
    }
    assert!(run > 4, "{run}");
}
