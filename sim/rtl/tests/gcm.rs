//! The AES-GCM engine of a set matches published vectors and the aes-gcm crate: both forms of its
//! arithmetic, with four, two and one lanes.

use aes_gcm::aead::{AeadInOut, KeyInit, Nonce};
use aes_gcm::{Aes128Gcm, Aes256Gcm};
use shef_rtl::agent::Rng;
use shef_rtl::{DesignSpec, Library, Port, Sim, build};
use std::collections::VecDeque;

const REGIONS: usize = 5;
const NODES: usize = 3;
/// Key slot of the first node key.
const NODE: usize = 16;

/// A form of the arithmetic: tables for simulation, logic, and the tables with S-boxes in block
/// RAM.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Table,
    Logic,
    Ram,
}

impl Form {
    fn table(self) -> String {
        format!("1'b{}", u8::from(self != Self::Logic))
    }

    fn ram(self) -> String {
        format!("1'b{}", u8::from(self == Self::Ram))
    }
}

/// Every number of lanes, and every form at one of them.
const NORMAL: [(usize, Form); 5] =
    [(4, Form::Table), (4, Form::Logic), (4, Form::Ram), (2, Form::Table), (1, Form::Table)];

fn library(lanes: usize, form: Form) -> Library {
    let spec = DesignSpec::new("shef_gcm")
        .search("shell-rtl/rtl")
        .param("Lanes", lanes)
        .param("NRegions", REGIONS)
        .param("NNodes", NODES)
        .param("TableForm", form.table())
        .param("SboxRam", form.ram());
    build(&spec.deny_warnings()).expect("build")
}

fn vectors() -> serde_json::Value {
    let path = shef_rtl::repo_root().join("tests/vectors/aes-gcm.json");
    serde_json::from_slice(&std::fs::read(path).expect("vectors")).expect("JSON")
}

fn bytes(v: &serde_json::Value, name: &str) -> Vec<u8> {
    hex::decode(v[name].as_str().expect("a string")).expect("hexadecimal")
}

/// One message of 4n blocks, and the engine's output for it.
struct Message {
    region: usize,
    slot: usize,
    iv: [u8; 12],
    plain: Vec<u8>,
    cipher: Vec<u8>,
    tag: [u8; 16],
    mask: [u8; 16],
}

#[derive(Clone)]
struct Job {
    region: usize,
    blocks: [u8; 64],
    user: u64,
}

#[derive(Clone)]
struct Beat {
    region: usize,
    slot: usize,
    first: bool,
    last: bool,
    pow: u64,
    data: [u8; 64],
    user: u64,
}

struct Gcm {
    sim: Sim,
    lanes: u64,
    p: Vec<Port>,
    keys: Vec<(Vec<u8>, u32)>,
    jobs: VecDeque<Job>,
    beats: [VecDeque<Beat>; 3],
    job_times: VecDeque<(u64, u64)>,
    last_times: VecDeque<(u64, usize, u64)>,
    ks: Vec<[u8; 64]>,
    s: Vec<(usize, [u8; 16])>,
    accepted: (u64, u64),
}

const NAMES: [&str; 25] = [
    "job_valid_i",
    "job_ready_o",
    "job_key_i",
    "job_block_i",
    "job_user_i",
    "ks_valid_o",
    "ks_o",
    "ks_user_o",
    "gh_valid_i",
    "gh_ready_o",
    "gh_key_i",
    "gh_slot_i",
    "gh_first_i",
    "gh_last_i",
    "gh_pow_i",
    "gh_data_i",
    "gh_user_i",
    "s_valid_o",
    "s_slot_o",
    "s_o",
    "s_user_o",
    "key_valid_i",
    "key_ready_o",
    "wipe_i",
    "wipe_done_o",
];

fn at(name: &str) -> usize {
    NAMES.iter().position(|n| *n == name).expect("a port")
}

impl Gcm {
    fn new(lib: &Library, lanes: usize) -> Self {
        let mut sim = Sim::new(lib).expect("instance");
        sim.reset("rst_ni", 3);
        let p = NAMES.iter().map(|n| sim.port(n).expect("port")).collect();
        Self {
            sim,
            lanes: lanes as u64,
            p,
            keys: vec![(Vec::new(), 6); NODE + NODES],
            jobs: VecDeque::new(),
            beats: Default::default(),
            job_times: VecDeque::new(),
            last_times: VecDeque::new(),
            ks: Vec::new(),
            s: Vec::new(),
            accepted: (0, 0),
        }
    }

    fn get(&self, name: &str) -> u64 {
        self.sim.get(self.p[at(name)])
    }

    fn set(&mut self, name: &str, v: u64) {
        let p = self.p[at(name)];
        self.sim.set(p, v);
    }

    fn set_be(&mut self, name: &str, data: &[u8]) {
        let p = self.p[at(name)];
        let raw = self.sim.raw_mut(p);
        for (r, d) in raw.iter_mut().zip(data.iter().rev()) {
            *r = *d;
        }
    }

    fn get_be<const N: usize>(&self, name: &str) -> [u8; N] {
        let raw = self.sim.raw(self.p[at(name)]);
        std::array::from_fn(|i| raw[N - 1 - i])
    }

    /// Loads a key into slot `region`; returns the cycles it took.
    fn load(&mut self, region: usize, key: &[u8], chunk_log2: u32) -> u64 {
        let mut k = [0xeeu8; 32];
        k[..key.len()].copy_from_slice(key);
        self.sim.poke_be("key_i", &k);
        self.sim.poke("key_region_i", region as u64 % 16);
        self.sim.poke("key_node_i", u64::from(region >= NODE));
        self.sim.poke("key256_i", u64::from(key.len() == 32));
        self.sim.poke("chunk_log2_i", u64::from(chunk_log2));
        self.sim.poke("key_valid_i", 1);
        self.sim.eval();
        let ready = |s: &mut Sim| s.peek("key_ready_o") == 1;
        if self.get("key_ready_o") == 0 {
            self.sim.run_until(5000, ready).expect("ready for a key");
        }
        self.sim.tick();
        self.sim.poke("key_valid_i", 0);
        self.sim.poke_be("key_i", &[0x77; 32]);
        let took = self.sim.run_until(5000, ready).expect("the key is stored");
        self.keys[region] = (key.to_vec(), chunk_log2);
        took
    }

    /// One cycle; the ports offer data in `duty` of eight cycles.
    fn cycle(&mut self, rng: &mut Rng, duty: u64) -> Result<(), String> {
        let job = (rng.below(8) < duty).then(|| self.jobs.front().cloned()).flatten();
        self.set("job_valid_i", u64::from(job.is_some()));
        if let Some(j) = &job {
            self.set("job_key_i", j.region as u64);
            self.set("job_user_i", j.user);
            self.set_be("job_block_i", &j.blocks);
        }
        let from = rng.below(3) as usize;
        let slot =
            (0..3).map(|i| (from + i) % 3).find(|s| !self.beats[*s].is_empty()).unwrap_or(from);
        let beat = (rng.below(8) < duty).then(|| self.beats[slot].front().cloned()).flatten();
        self.set("gh_valid_i", u64::from(beat.is_some()));
        if let Some(b) = &beat {
            self.set("gh_key_i", b.region as u64);
            self.set("gh_slot_i", b.slot as u64);
            self.set("gh_first_i", u64::from(b.first));
            self.set("gh_last_i", u64::from(b.last));
            self.set("gh_pow_i", b.pow);
            self.set("gh_user_i", b.user);
            self.set_be("gh_data_i", &b.data);
        }
        self.sim.settle();
        let now = self.sim.cycles();
        let late = match self.lanes {
            4 => 0,
            2 => 1,
            _ => 3,
        };
        if self.get("ks_valid_o") == 1 {
            let Some((t, user)) = self.job_times.pop_front() else {
                return Err("keystream nobody asked for".into());
            };
            if user != self.get("ks_user_o") || now - t != 15 + if late > 0 { late + 1 } else { 0 }
            {
                return Err(format!("keystream of job {user} after {} cycles", now - t));
            }
            self.ks.push(self.get_be("ks_o"));
        }
        if self.get("s_valid_o") == 1 {
            let Some((t, slot, user)) = self.last_times.pop_front() else {
                return Err("hash nobody asked for".into());
            };
            if user != self.get("s_user_o")
                || slot as u64 != self.get("s_slot_o")
                || now - t != 6 + late
            {
                return Err(format!("hash of slot {slot}, user {user} after {} cycles", now - t));
            }
            self.s.push((slot, self.get_be("s_o")));
        }
        if let Some(j) = job
            && self.get("job_ready_o") == 1
        {
            self.jobs.pop_front();
            self.job_times.push_back((now, j.user));
            self.accepted.0 += 1;
        }
        if let Some(b) = beat
            && self.get("gh_ready_o") == 1
        {
            self.beats[slot].pop_front();
            if b.last {
                self.last_times.push_back((now, slot, b.user));
            }
            self.accepted.1 += 1;
        }
        self.sim.edge();
        Ok(())
    }

    fn waiting(&self) -> usize {
        self.jobs.len() + self.beats.iter().map(VecDeque::len).sum::<usize>()
    }

    fn drain(&mut self, rng: &mut Rng, duty: u64) -> Result<(), String> {
        let work = self.waiting();
        for _ in 0..work * 40 + 200 {
            self.cycle(rng, duty)?;
            if self.waiting() + self.job_times.len() + self.last_times.len() == 0 {
                return Ok(());
            }
        }
        Err("something never came out".into())
    }

    /// Encrypts one block in lane `lane`; the other lanes get other blocks.
    fn block(&mut self, region: usize, block: &[u8], lane: usize) -> Result<[u8; 16], String> {
        let mut blocks = [0x3cu8; 64];
        blocks[16 * lane..16 * lane + 16].copy_from_slice(block);
        self.jobs.push_back(Job { region, blocks, user: 9 });
        self.ks.clear();
        self.drain(&mut Rng::new(1), 8)?;
        Ok(std::array::from_fn(|i| self.ks[0][16 * lane + i]))
    }

    /// Seals messages: keystream and masks first, then GHASH of the cipher text, the slots
    /// interleaved.
    fn seal(&mut self, rng: &mut Rng, messages: &mut [Message], duty: u64) -> Result<(), String> {
        self.ks.clear();
        self.s.clear();
        for m in messages.iter() {
            let counter = |n: u32| {
                let mut b = [0; 16];
                b[..12].copy_from_slice(&m.iv);
                b[12..].copy_from_slice(&n.to_be_bytes());
                b
            };
            let beats = m.plain.len() as u32 / 64;
            for j in 0..=beats {
                let mut blocks = [0; 64];
                for k in 0..4u32 {
                    // the mask block in one lane, then four counters per job
                    let n = if j == 0 { 1 + k * 0x1111 } else { 4 * (j - 1) + 2 + k };
                    blocks[16 * k as usize..][..16].copy_from_slice(&counter(n));
                }
                self.jobs.push_back(Job { region: m.region, blocks, user: rng.below(256) });
            }
        }
        self.drain(rng, duty)?;
        let mut ks = std::mem::take(&mut self.ks).into_iter();
        for m in messages.iter_mut() {
            m.mask.copy_from_slice(&ks.next().ok_or("too little keystream")?[..16]);
            m.cipher = m.plain.clone();
            let count = m.plain.len() / 64;
            for (i, beat) in m.cipher.chunks_mut(64).enumerate() {
                for (c, k) in beat.iter_mut().zip(ks.next().ok_or("too little keystream")?) {
                    *c ^= k;
                }
                self.beats[m.slot].push_back(Beat {
                    region: m.region,
                    slot: m.slot,
                    first: i == 0,
                    last: i + 1 == count,
                    pow: (count - 1 - i) as u64,
                    data: std::array::from_fn(|k| beat[k]),
                    user: rng.below(256),
                });
            }
        }
        self.drain(rng, duty)?;
        for slot in 0..2 {
            let mut hashes = self.s.iter().filter(|(s, _)| *s == slot);
            for m in messages.iter_mut().filter(|m| m.slot == slot) {
                let (_, s) = hashes.next().ok_or("too few hashes")?;
                m.tag = std::array::from_fn(|i| s[i] ^ m.mask[i]);
            }
        }
        Ok(())
    }
}

fn message(region: usize, slot: usize, iv: &[u8], plain: Vec<u8>) -> Message {
    Message {
        region,
        slot,
        iv: iv.try_into().expect("96-bit IV"),
        cipher: Vec::new(),
        plain,
        tag: [0; 16],
        mask: [0; 16],
    }
}

fn reference(key: &[u8], m: &Message) -> (Vec<u8>, Vec<u8>) {
    let mut buf = m.plain.clone();
    let tag = if key.len() == 16 {
        let c = Aes128Gcm::new_from_slice(key).expect("key");
        c.encrypt_inout_detached(&Nonce::<Aes128Gcm>::from(m.iv), b"", buf.as_mut_slice().into())
            .expect("encrypts")
    } else {
        let c = Aes256Gcm::new_from_slice(key).expect("key");
        c.encrypt_inout_detached(&Nonce::<Aes256Gcm>::from(m.iv), b"", buf.as_mut_slice().into())
            .expect("encrypts")
    };
    (buf, tag.to_vec())
}

fn known_answers(lib: &Library, lanes: usize) -> Result<(), String> {
    let mut rng = Rng::new(3);
    let v = vectors();
    let list = |name: &str| v[name].as_array().expect("a list").clone();
    let mut g = Gcm::new(lib, lanes);
    for (i, b) in list("blocks").iter().enumerate() {
        let region = i % REGIONS;
        g.load(region, &bytes(b, "key"), 6);
        for lane in 0..4 {
            if g.block(region, &bytes(b, "plain"), lane)?[..] != bytes(b, "cipher") {
                return Err(format!("{} in lane {lane}", b["source"]));
            }
        }
    }
    for (i, b) in list("ctr").iter().enumerate() {
        g.load(i, &bytes(b, "key"), 6);
        let start = u128::from_be_bytes(bytes(b, "counter").try_into().expect("16 bytes"));
        let blocks: Vec<u8> = (0..4).flat_map(|k| (start + k).to_be_bytes()).collect();
        g.ks.clear();
        g.jobs.push_back(Job { region: i, blocks: blocks.try_into().expect("64 bytes"), user: 1 });
        g.drain(&mut rng, 8)?;
        let got: Vec<u8> = g.ks[0].iter().zip(bytes(b, "plain")).map(|(k, p)| k ^ p).collect();
        if got != bytes(b, "cipher") {
            return Err(b["source"].to_string());
        }
    }
    for (i, b) in list("gcm").iter().enumerate() {
        g.load(i, &bytes(b, "key"), 6);
        let mut m = [message(i, i % 2, &bytes(b, "iv"), bytes(b, "plain"))];
        g.seal(&mut rng, &mut m, 8)?;
        if m[0].cipher != bytes(b, "cipher") || m[0].tag[..] != bytes(b, "tag") {
            return Err(b["source"].to_string());
        }
    }
    Ok(())
}

/// Random keys, chunk sizes, interleaved slots, gaps; `rounds` sets of keys.
fn random_messages(lib: &Library, lanes: usize, rounds: u64) -> Result<(), String> {
    let mut rng = Rng::new(lanes as u64);
    let mut g = Gcm::new(lib, lanes);
    for round in 0..rounds {
        for region in 0..REGIONS {
            let mut key = vec![0; if rng.one_in(2) { 16 } else { 32 }];
            rng.fill(&mut key);
            // the first five sizes, then the last five
            let chunk_log2 = 6 + (region as u32 + 2 * (round as u32 & 1));
            g.load(region, &key, chunk_log2);
        }
        let mut messages: Vec<Message> = (0..16)
            .map(|i| {
                let region = if i < REGIONS { i } else { rng.below(REGIONS as u64) as usize };
                let mut plain = vec![0; 1 << g.keys[region].1];
                rng.fill(&mut plain);
                let mut iv = [0; 12];
                rng.fill(&mut iv);
                message(region, rng.below(2) as usize, &iv, plain)
            })
            .collect();
        g.seal(&mut rng, &mut messages, [8, 6, 3][round as usize % 3])?;
        for (i, m) in messages.iter().enumerate() {
            let (key, chunk) = &g.keys[m.region];
            let (cipher, tag) = reference(key, m);
            if m.cipher != cipher || m.tag[..] != tag {
                return Err(format!(
                    "round {round}, message {i}, region {}, key of {} bytes, 2^{chunk} bytes: cipher text {}, tag {}",
                    m.region,
                    key.len(),
                    m.cipher == cipher,
                    m.tag[..] == tag
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn published_vectors() {
    for (lanes, form) in NORMAL {
        known_answers(&library(lanes, form), lanes)
            .unwrap_or_else(|e| panic!("lanes {lanes} {form:?}: {e}"));
    }
}

#[test]
fn chunks_of_every_size_match_aes_gcm() {
    for (lanes, form) in NORMAL {
        let rounds = if form == Form::Logic { 2 } else { 6 };
        random_messages(&library(lanes, form), lanes, rounds)
            .unwrap_or_else(|e| panic!("lanes {lanes} {form:?}: {e}"));
    }
}

/// Covers every table entry in every byte position: compares the forms with each other on many
/// blocks.
#[test]
fn all_forms_of_aes_are_equal() {
    let [mut a, mut b, mut c] =
        [Form::Table, Form::Logic, Form::Ram].map(|form| Gcm::new(&library(4, form), 4));
    let mut rng = Rng::new(8);
    for key in [[1u8; 32], [0xfe; 32]] {
        for g in [&mut a, &mut b, &mut c] {
            g.load(0, &key, 6);
            g.ks.clear();
        }
        for n in 0..3000u64 {
            let mut blocks = [0; 64];
            rng.fill(&mut blocks);
            for g in [&mut a, &mut b, &mut c] {
                g.jobs.push_back(Job { region: 0, blocks, user: n & 0xff });
            }
        }
        a.drain(&mut Rng::new(1), 8).unwrap();
        b.drain(&mut Rng::new(1), 8).unwrap();
        c.drain(&mut Rng::new(1), 8).unwrap();
        assert_eq!(a.ks.len(), 3000);
        assert!(a.ks == b.ks && a.ks == c.ks);
    }
}

/// A product is bilinear, so all pairs of unit vectors in every lane test it completely.
#[test]
fn products_of_all_unit_vectors() {
    for table in [true, false] {
        let spec = DesignSpec::new("shef_ghash_mul")
            .search("shell-rtl/rtl")
            .param("Lanes", 4)
            .param("TableForm", format!("1'b{}", u8::from(table)));
        let mut s = Sim::new(&build(&spec).expect("build")).expect("instance");
        s.poke("clear_i", 1);
        s.run(2);
        s.poke("clear_i", 0);
        s.poke("valid_i", 1);
        let (a, b, out) =
            (s.port("a_i").unwrap(), s.port("b_i").unwrap(), s.port("product_o").unwrap());
        let mut due = VecDeque::new();
        for lane in 0..4 {
            for i in 0..128 {
                for j in 0..128 {
                    s.fill(a, 0);
                    s.fill(b, 0);
                    s.raw_mut(a)[16 * lane + i / 8] = 1 << (i % 8);
                    s.raw_mut(b)[16 * lane + j / 8] = 1 << (j % 8);
                    s.tick();
                    due.push_back(i + j);
                    if due.len() == 3 {
                        let bit: usize = due.pop_front().unwrap();
                        let got = s.raw(out);
                        let ok = got
                            .iter()
                            .enumerate()
                            .all(|(k, v)| *v == if k == bit / 8 { 1 << (bit % 8) } else { 0 });
                        assert!(ok, "table {table}, lane {lane}, x^{bit}: {got:02x?}");
                    }
                }
            }
        }
    }
}

/// Tags of 48 bytes without text under the node keys, among chunks of the regions.
fn nodes(lib: &Library, lanes: usize) -> Result<(), String> {
    let mut rng = Rng::new(5);
    let mut g = Gcm::new(lib, lanes);
    for slot in 0..NODE + NODES {
        let mut key = vec![0; if rng.one_in(2) { 16 } else { 32 }];
        rng.fill(&mut key);
        if !(REGIONS..NODE).contains(&slot) {
            // the chunk size of the region does not affect its nodes
            g.load(slot, &key, 6 + slot as u32 % 7);
        }
    }
    let mut chunk = [message(1, 0, &[1; 12], vec![5; 1 << g.keys[1].1])];
    for round in 0..20 {
        let mut want = Vec::new();
        g.ks.clear();
        for i in 0..8 {
            let key = NODE + rng.below(NODES as u64) as usize;
            let (mut iv, mut aad) = ([0; 12], [0; 48]);
            rng.fill(&mut iv);
            rng.fill(&mut aad);
            let mut blocks = [0; 64];
            blocks[..12].copy_from_slice(&iv);
            blocks[15] = 1;
            g.jobs.push_back(Job { region: key, blocks, user: i });
            want.push((key, iv, aad));
        }
        g.drain(&mut rng, 8)?;
        let masks = std::mem::take(&mut g.ks);
        for (key, _, aad) in &want {
            let mut data = [0; 64];
            data[16..].copy_from_slice(aad);
            g.beats[2].push_back(Beat {
                region: *key,
                slot: 2,
                first: true,
                last: true,
                pow: 0,
                data,
                user: 1,
            });
        }
        // their beats come between those of the chunk
        let n = g.beats[2].len();
        let mut late = g.beats[2].split_off(n / 2);
        g.seal(&mut rng, &mut chunk, 6)?;
        let early = std::mem::take(&mut g.s);
        g.beats[2].append(&mut late);
        g.drain(&mut rng, 6)?;
        let hashes: Vec<[u8; 16]> =
            early.iter().chain(&g.s).filter(|(slot, _)| *slot == 2).map(|(_, s)| *s).collect();
        if hashes.len() != want.len() {
            return Err(format!("{} hashes of {} nodes", hashes.len(), want.len()));
        }
        for (i, (key, iv, aad)) in want.iter().enumerate() {
            let tag: Vec<u8> = hashes[i].iter().zip(&masks[i]).map(|(s, m)| s ^ m).collect();
            let k = &g.keys[*key].0;
            let right = if k.len() == 16 {
                let c = Aes128Gcm::new_from_slice(k).expect("key");
                c.encrypt_inout_detached(&Nonce::<Aes128Gcm>::from(*iv), aad, (&mut [][..]).into())
                    .expect("a tag")
                    .to_vec()
            } else {
                let c = Aes256Gcm::new_from_slice(k).expect("key");
                c.encrypt_inout_detached(&Nonce::<Aes256Gcm>::from(*iv), aad, (&mut [][..]).into())
                    .expect("a tag")
                    .to_vec()
            };
            if tag != right {
                return Err(format!("round {round}, node {i} under key {key}"));
            }
        }
        let (cipher, tag) = reference(&g.keys[1].0, &chunk[0]);
        if chunk[0].cipher != cipher || chunk[0].tag[..] != tag {
            return Err(format!("round {round}: the chunk among the nodes"));
        }
    }
    Ok(())
}

#[test]
fn node_tags_match_aes_gcm() {
    for (lanes, form) in NORMAL {
        nodes(&library(lanes, form), lanes)
            .unwrap_or_else(|e| panic!("lanes {lanes} {form:?}: {e}"));
    }
}

/// For `cargo xtask test --full`.
mod long {
    use super::*;

    #[test]
    #[ignore = "long: three more designs"]
    fn other_forms_at_fewer_lanes() {
        for (lanes, form) in [(2, Form::Logic), (1, Form::Logic), (1, Form::Ram)] {
            let lib = library(lanes, form);
            let all = known_answers(&lib, lanes)
                .and_then(|()| random_messages(&lib, lanes, 2))
                .and_then(|()| nodes(&lib, lanes));
            all.unwrap_or_else(|e| panic!("lanes {lanes} {form:?}: {e}"));
        }
    }
}

#[test]
fn rate_and_time_to_load() {
    for lanes in [4usize, 2, 1] {
        let lib = library(lanes, Form::Table);
        let mut g = Gcm::new(&lib, lanes);
        let mut rng = Rng::new(1);
        let load = (g.load(0, &[5; 32], 12), g.load(1, &[6; 16], 6));
        assert!(load.0 <= 800 && load.1 <= 80, "{load:?}");
        let beat = |i: u64| Beat {
            region: 0,
            slot: 0,
            first: i.is_multiple_of(64),
            last: i % 64 == 63,
            pow: 63 - i % 64,
            data: [3; 64],
            user: 0,
        };
        for i in 0..1024 {
            g.jobs.push_back(Job { region: 0, blocks: [i as u8; 64], user: 0 });
            g.beats[0].push_back(beat(i));
        }
        for _ in 0..512 {
            g.cycle(&mut rng, 8).unwrap();
        }
        let full = 512 * lanes as u64 / 4;
        assert_eq!(g.accepted, (full, full));
        println!("lanes {lanes}: load 4 KiB {} cycles, 64 B {} cycles", load.0, load.1);
    }
}

#[test]
fn wipe_and_reset_leave_nothing() {
    for (lanes, form) in [(4, Form::Table), (4, Form::Ram), (2, Form::Table), (1, Form::Logic)] {
        for reset in [false, true] {
            let mut g = Gcm::new(&library(lanes, form), lanes);
            let mut rng = Rng::new(2);
            for region in 0..REGIONS {
                g.load(region, &[region as u8 + 1; 32], 9);
            }
            for node in NODE..NODE + NODES {
                g.load(node, &[node as u8; 32], 9);
            }
            let before = [g.block(0, &[0; 16], 0).unwrap(), g.block(1, &[0; 16], 0).unwrap()];
            assert_ne!(before[0], before[1]);
            // in the middle of processing
            for i in 0..40 {
                g.jobs.push_back(Job { region: 0, blocks: [i; 64], user: 0 });
                g.beats[0].push_back(Beat {
                    region: 1,
                    slot: 0,
                    first: i == 0,
                    last: false,
                    pow: 3,
                    data: [9; 64],
                    user: 0,
                });
            }
            for _ in 0..20 {
                g.cycle(&mut rng, 8).unwrap();
            }
            g.set("job_valid_i", 1);
            g.set("gh_valid_i", 1);
            if reset {
                g.sim.reset("rst_ni", 1);
            } else {
                g.set("wipe_i", 1);
                let took = g.sim.run_until(5000, |s| s.peek("wipe_done_o") == 1).expect("wiped");
                assert!(took <= (64 * REGIONS + NODES) as u64 + 2);
                assert_eq!(
                    (g.get("job_ready_o"), g.get("gh_ready_o"), g.get("key_ready_o")),
                    (0, 0, 0)
                );
            }
            assert_eq!((g.get("ks_valid_o"), g.get("s_valid_o")), (0, 0));
            assert_eq!((g.get_be::<64>("ks_o"), g.get_be::<16>("s_o")), ([0; 64], [0; 16]));
            g.set("job_valid_i", 0);
            g.set("gh_valid_i", 0);
            g.set("wipe_i", 0);
            g.jobs.clear();
            g.beats[0].clear();
            g.job_times.clear();
            g.sim.run_until(5000, |s| s.peek("key_ready_o") == 1).expect("ready again");
            assert_eq!(g.get("wipe_done_o"), 0);
            // all round keys and powers are zero: all regions behave alike, every hash is zero
            g.ks.clear();
            g.s.clear();
            for region in 0..REGIONS {
                g.jobs.push_back(Job { region, blocks: [0; 64], user: 0 });
                for pow in [63, 7, 1, 0] {
                    let (first, last) = (pow == 63, pow == 0);
                    g.beats[0].push_back(Beat {
                        region,
                        slot: 0,
                        first,
                        last,
                        pow,
                        data: [0xff; 64],
                        user: 0,
                    });
                }
            }
            for node in NODE..NODE + NODES {
                g.jobs.push_back(Job { region: node, blocks: [0; 64], user: 0 });
                g.beats[2].push_back(Beat {
                    region: node,
                    slot: 2,
                    first: true,
                    last: true,
                    pow: 0,
                    data: [0xff; 64],
                    user: 0,
                });
            }
            g.drain(&mut rng, 8).unwrap();
            assert!(
                g.ks.iter().all(|k| *k == g.ks[0] && k[..16] != before[0] && k[..16] != before[1])
            );
            // fifteen zero round keys
            assert_eq!(g.ks[0], g.ks[REGIONS + NODES - 1]);
            assert!(g.s.len() == REGIONS + NODES && g.s.iter().all(|(_, s)| *s == [0; 16]));
            // and it works again
            let mut key = [0; 32];
            rng.fill(&mut key);
            g.load(2, &key, 9);
            let mut m = [message(2, 1, &[4; 12], vec![7; 512])];
            g.seal(&mut rng, &mut m, 8).unwrap();
            assert_eq!((m[0].cipher.clone(), m[0].tag.to_vec()), reference(&key, &m[0]));
        }
    }
}
