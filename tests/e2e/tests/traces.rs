//! After a session ends, no copy of its keys is left in the owner's process.
//!
//! The card is a process of its own, so that every copy that is found is the owner's.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use shef_cli::demo::attacks::{buffers, upload};
use shef_cli::demo::data::Dataset;
use shef_cli::demo::knn;
use shef_cli::demo::world::{Cards, Plan, World};
use shef_e2e::Served;
use shef_seal::OpenPolicy;

/// What keys are kept under here, so that the search does not find its own pattern.
const MASK: u8 = 0x5a;
/// Bytes of a key that are compared.
const LEN: usize = 32;

/// How often each key is in the memory of this process that can be written.
fn copies(masked: &[Vec<u8>]) -> Vec<(usize, String)> {
    let mut piece = vec![0; 1 << 16];
    let mut begins = [false; 256];
    masked.iter().for_each(|key| begins[usize::from(key[0] ^ MASK)] = true);
    let mut found = Vec::new();
    let memory = File::open("/proc/self/mem").unwrap();
    for line in std::fs::read_to_string("/proc/self/maps").unwrap().lines() {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next().unwrap(), words.next().unwrap());
        let name = words.nth(3).unwrap_or("anonymous").to_owned();
        // What is shared with the card is as public as its memory, and has its size.
        if !rights.starts_with("rw-p") {
            continue;
        }
        let (from, to) = range.split_once('-').unwrap();
        let (mut at, to) = (u64::from_str_radix(from, 16).unwrap(), u64::from_str_radix(to, 16).unwrap());
        while at < to {
            // What was read before must not be found in this buffer.
            piece.fill(0);
            let Ok(len) = memory.read_at(&mut piece, at) else { break };
            for start in 0..len.saturating_sub(LEN - 1) {
                if !begins[usize::from(piece[start])] {
                    continue;
                }
                for (which, key) in masked.iter().enumerate() {
                    if piece[start] ^ MASK == key[0] && piece[start..][..LEN].iter().zip(key).all(|(a, b)| a ^ MASK == *b) {
                        found.push((which, format!("{name} at {:#x}", at + start as u64)));
                    }
                }
            }
            at += (len.max(LEN) - (LEN - 1)).max(1) as u64;
        }
    }
    piece.fill(0);
    found
}

#[test]
fn no_key_is_in_memory_after_close() {
    let served = Served::start("model");
    let dir = tempfile::tempdir().unwrap();
    let cards = Cards::Served { uri: served.uri().parse().unwrap(), control: shef::sim::Control::path_of(&served.socket()), tls: None };
    let mut world = World::new(dir.path(), Plan { cards, seed: None, name: "traces".into(), service: None }).unwrap();
    let (mut host, _) = world.card(&mut |_| {}).unwrap();
    let all = Dataset::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz"))).unwrap();
    let (train, query) = (all.head(64), all.head(32));
    let mut session = world.session(&mut host).unwrap();
    session.expose_secrets().unwrap();
    let secrets = session.secrets().unwrap();
    let mask = |key: &[u8]| key.iter().map(|byte| byte ^ MASK).collect::<Vec<_>>();
    let mut masked: Vec<_> = secrets.data.iter().map(|(_, key)| mask(key)).collect();
    masked.extend([mask(&secrets.to_shield), mask(&secrets.to_owner)]);
    assert!(masked.len() == 5 && masked.iter().all(|key| key.len() == LEN));
    // The search finds what is there.
    let during = copies(&masked);
    assert!((0..masked.len()).all(|key| during.iter().any(|(found, _)| *found == key)), "{during:?}");

    let b = buffers(&session).unwrap();
    upload(&mut session, &b, &train, &query).unwrap();
    let job = knn::job(b.train.addr(), b.query.addr(), b.result.addr(), 64, 32);
    let statement = session.run(&job, (knn::reg::CTRL, 1), (knn::reg::STATUS, knn::DONE | knn::ERROR)).unwrap();
    session.open(&b.result, &statement, knn::result_len(32), OpenPolicy::default()).unwrap();
    session.close().unwrap();
    let left = copies(&masked);
    assert!(left.is_empty(), "{} copies: {left:?}", left.len());
}
