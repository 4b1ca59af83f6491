//! The whole flow on the functional model, and the traces of a run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use aes_gcm::aead::{Aead, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce};
use shef_proto::entropy::{Entropy, SeededEntropy};

fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut out = BTreeMap::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(at) = todo.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else {
                out.insert(path.strip_prefix(dir).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    out
}

#[test]
fn the_whole_line() {
    let report = shef_e2e::whole_line("sim:model");
    assert_eq!((report.cycles.shielded, report.cycles.bare), (None, None));
}

#[test]
fn a_seed_gives_the_same_bytes_again_and_another_seed_others() {
    let dir = tempfile::tempdir().unwrap();
    let a = shef_e2e::seeded("sim:model", 7, &dir.path().join("a"));
    let b = shef_e2e::seeded("sim:model", 7, &dir.path().join("b"));
    let c = shef_e2e::seeded("sim:model", 8, &dir.path().join("c"));
    assert!(a.seeded);
    let (mut fa, mut fb, fc) =
        (files(&dir.path().join("a")), files(&dir.path().join("b")), files(&dir.path().join("c")));
    for f in [&mut fa, &mut fb] {
        assert!(f.remove(Path::new("report.json")).is_some(), "it holds times");
    }
    assert_eq!(fa, fb);
    assert_eq!(a.sealed.inputs, b.sealed.inputs);
    assert_ne!(a.sealed.inputs, c.sealed.inputs);
    assert_ne!(fa[Path::new("memory/train.data")], fc[Path::new("memory/train.data")]);
}

#[test]
fn unseeded_runs_share_no_key() {
    let dir = tempfile::tempdir().unwrap();
    let runs: Vec<_> = ["a", "b"]
        .map(|name| {
            let keep = dir.path().join(name);
            shef_e2e::demo(&shef_sim::DemoArgs {
                device: "sim:model".into(),
                keep: Some(keep.clone()),
                keep_secrets: true,
                attack: vec!["none".into()],
                ..Default::default()
            });
            files(&keep)
        })
        .into();
    for name in [
        "memory/train.data",
        "memory/train.tags",
        "load-key.bin",
        "secrets.json",
        "certificates/device-id.der",
    ] {
        assert_ne!(runs[0][Path::new(name)], runs[1][Path::new(name)], "{name}");
    }
}

/// The documented format of sealed memory, implemented again without the product's code.
#[test]
fn kept_memory_opens_with_the_kept_keys_as_the_documentation_says() {
    let dir = tempfile::tempdir().unwrap();
    shef_e2e::seeded("sim:model", 1, dir.path());
    let secrets: serde_json::Value =
        serde_json::from_slice(&fs::read(dir.path().join("secrets.json")).unwrap()).unwrap();
    let mut csv = String::new();
    let raw = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz")).unwrap();
    std::io::Read::read_to_string(&mut flate2::bufread::GzDecoder::new(&raw[..]), &mut csv)
        .unwrap();
    let rows: Vec<Vec<u8>> =
        csv.lines().map(|l| l.split(',').map(|x| x.parse().unwrap()).collect()).collect();
    let mut train: Vec<u8> = rows[..1000].iter().flat_map(|r| r[..64].to_vec()).collect();
    train.resize(train.len().next_multiple_of(4096), 0);
    train.extend(rows[..1000].iter().map(|r| r[64]));
    let query: Vec<u8> = rows[1000..].iter().flat_map(|r| r[..64].to_vec()).collect();
    for (name, region, chunk, expected) in [
        ("train", 0u8, 4096, Some(train)),
        ("query", 1, 512, Some(query)),
        ("result", 2, 512, None),
    ] {
        let key = hex::decode(secrets["data"][name]["key"].as_str().unwrap()).unwrap();
        let cipher = Aes256Gcm::new_from_slice(&key).unwrap();
        let data = fs::read(dir.path().join(format!("memory/{name}.data"))).unwrap();
        let tags = fs::read(dir.path().join(format!("memory/{name}.tags"))).unwrap();
        let mut plain = Vec::new();
        for (index, (ct, tag)) in data.chunks(chunk).zip(tags.chunks(16)).enumerate() {
            let mut iv = [0; 12];
            iv[0] = region;
            iv[6] = 1;
            iv[7..].copy_from_slice(&(index as u64).to_be_bytes()[3..]);
            plain.extend(
                cipher
                    .decrypt(&Nonce::from(iv), [ct, tag].concat().as_slice())
                    .unwrap_or_else(|_| panic!("{name}, chunk {index}")),
            );
        }
        match expected {
            Some(expected) => {
                assert_eq!(plain[..expected.len()], expected, "{name}");
                assert!(plain[expected.len()..].iter().all(|b| *b == 0), "{name} ends in zeros");
            }
            None => {
                let right = (0..797).filter(|q| plain[16 * q] == rows[1000 + q][64]).count();
                assert_eq!(right, 766);
            }
        }
    }
}

/// Searches for a secret in all encodings in which it could leak.
fn leaks(haystack: &[u8], secret: &[u8]) -> bool {
    let hex = hex::encode(secret);
    let decimal = secret.iter().map(u8::to_string).collect::<Vec<_>>();
    let base64 = base64(secret);
    let forms = [
        secret.to_vec(),
        hex.clone().into_bytes(),
        hex.to_uppercase().into_bytes(),
        decimal.join(", ").into_bytes(),
        decimal.join(",").into_bytes(),
        base64.into_bytes(),
    ];
    forms.iter().any(|form| haystack.windows(form.len()).any(|w| w == &form[..]))
}

/// Without padding and without the last, partial group, so that the search also finds it inside a
/// longer text.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks_exact(3) {
        let n = u32::from(group[0]) << 16 | u32::from(group[1]) << 8 | u32::from(group[2]);
        out.extend([18, 12, 6, 0].map(|shift| char::from(DIGITS[(n >> shift & 63) as usize])));
    }
    out
}

type Draw = (&'static str, usize, bool);

/// The draws of each party from its stream, in order: meaning, bytes, and whether the value is sent
/// on purpose.
const DRAWS: &[(&str, &[Draw])] = &[
    (
        "demo/manufacturer",
        &[("CA key", 32, false), ("debug CA key", 32, false), ("device secret", 32, false)],
    ),
    (
        "demo/vendor",
        &[
            ("signing key", 32, false),
            ("key of the old image", 32, false),
            ("id of the old image", 16, false),
            ("image key", 32, false),
            ("container id", 16, true),
            ("nonce", 32, true),
            ("receipt id", 16, true),
            ("ephemeral key", 32, false),
        ],
    ),
    (
        "demo/owner",
        &[("nonce", 32, true), ("session master", 32, false), ("ephemeral key", 32, false)],
    ),
    ("card", &[("kernel's KEM key", 32, false), ("freshness of the seed", 32, false)]),
];

/// The canary: the seed determines every secret, so the test knows them all and searches every
/// output for them.
#[test]
fn no_secret_is_in_any_output() {
    const SEED: u64 = 4711;
    let dir = tempfile::tempdir().unwrap();
    let report = shef_e2e::seeded("sim:model", SEED, dir.path());
    let mut outputs = files(dir.path());
    let secrets: serde_json::Value =
        serde_json::from_slice(&outputs.remove(Path::new("secrets.json")).unwrap()).unwrap();
    outputs.insert("debug form of the report".into(), format!("{report:?}").into_bytes());
    let found = |secret: &[u8]| -> Vec<String> {
        outputs
            .iter()
            .filter(|(_, bytes)| leaks(bytes, secret))
            .map(|(file, _)| file.display().to_string())
            .collect()
    };

    let mut canaries: Vec<(String, Vec<u8>)> = Vec::new();
    for (name, value) in secrets["data"].as_object().unwrap() {
        canaries.push((
            format!("data key {name}"),
            hex::decode(value["key"].as_str().unwrap()).unwrap(),
        ));
    }
    for name in ["channel_owner_to_shield", "channel_shield_to_owner"] {
        canaries.push((name.to_owned(), hex::decode(secrets[name].as_str().unwrap()).unwrap()));
    }
    for (party, draws) in DRAWS {
        let mut source = SeededEntropy::new(SEED, party);
        for (what, len, sent) in *draws {
            let mut drawn = vec![0; *len];
            source.fill(&mut drawn);
            let what = format!("{party}: {what}");
            if *sent {
                // Finding it shows that the table is right and that the search works.
                assert!(!found(&drawn).is_empty(), "{what} is sent, and was not found");
            } else {
                // A private key is the DeriveKeyPair of its draw.
                if *len == 32 {
                    let (private, _) = shef_proto::hpke_suite::derive_key_pair(&drawn);
                    canaries.push((format!("{what}, private scalar"), private.to_bytes().to_vec()));
                }
                canaries.push((what, drawn));
            }
        }
    }
    let raw = fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz")).unwrap();
    let mut csv = String::new();
    std::io::Read::read_to_string(&mut flate2::bufread::GzDecoder::new(&raw[..]), &mut csv)
        .unwrap();
    for at in [0, 999, 1000, 1796] {
        let row: Vec<u8> =
            csv.lines().nth(at).unwrap().split(',').take(64).map(|x| x.parse().unwrap()).collect();
        canaries.push((format!("row {at} of the data"), row));
    }
    for (what, secret) in &canaries {
        assert_eq!(found(secret), Vec::<String>::new(), "{what} leaked");
    }
}
