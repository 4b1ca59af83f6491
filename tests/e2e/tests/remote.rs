//! Owner, agent and card as three processes: the whole line, and what the agent and the network get to see.

use std::collections::HashSet;
use std::fs;
use std::io::{Read, Seek, SeekFrom};

use shef::OpenOptions;
use shef_cli::demo::attacks::{buffers, upload};
use shef_cli::demo::data::Dataset;
use shef_cli::demo::knn;
use shef_cli::demo::reference;
use shef_cli::demo::remote::Remote;
use shef_cli::demo::world::{Cards, Plan, World};
use shef_seal::OpenPolicy;

#[path = "../../../host/agent/tests/common/mod.rs"]
mod common;

/// Bytes of a window that is searched for.
const WINDOW: usize = 16;
/// What is searched for is kept changed, so that the search does not find itself.
const MASK: u8 = 0xa5;

/// The 16-byte windows of secrets.
struct Needles {
    windows: HashSet<[u8; WINDOW]>,
    /// Whether a window begins with these two bytes.
    heads: Vec<bool>,
}

impl Needles {
    fn new(secrets: &[&[u8]]) -> Self {
        let mut needles = Self { windows: HashSet::new(), heads: vec![false; 1 << 16] };
        for window in secrets.iter().flat_map(|secret| secret.windows(WINDOW)) {
            // What has few different bytes is in every memory.
            let mut seen = [false; 256];
            window.iter().for_each(|b| seen[usize::from(*b)] = true);
            if seen.iter().filter(|s| **s).count() < 8 {
                continue;
            }
            let masked: [u8; WINDOW] = core::array::from_fn(|i| window[i] ^ MASK);
            needles.heads[usize::from(u16::from_be_bytes([masked[0], masked[1]]))] = true;
            needles.windows.insert(masked);
        }
        needles
    }

    /// Different windows that are found in `bytes`.
    fn found(&self, bytes: &[u8]) -> HashSet<[u8; WINDOW]> {
        let head = |w: &[u8]| self.heads[usize::from(u16::from_be_bytes([w[0] ^ MASK, w[1] ^ MASK]))];
        let masked = |w: &[u8]| -> [u8; WINDOW] { core::array::from_fn(|i| w[i] ^ MASK) };
        bytes.windows(WINDOW).filter(|w| head(w)).map(masked).filter(|w| self.windows.contains(w)).collect()
    }

    /// The same in every mapping of a process that can be read, and how many bytes those are.
    fn found_in_process(&self, pid: u32) -> (HashSet<[u8; WINDOW]>, usize) {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let mut memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
        let (mut found, mut bytes) = (HashSet::new(), 0);
        let mut buffer = vec![0; 1 << 20];
        for line in maps.lines() {
            let mut fields = line.split_whitespace();
            let (range, rights) = (fields.next().unwrap(), fields.next().unwrap());
            // The card's memory is a sparse file of 64 GiB, which reading would fill; all that is ever written there crosses the wire.
            if !rights.starts_with('r') || line.ends_with("[vvar]") || line.ends_with("[vsyscall]") || line.contains("/memfd:") {
                continue;
            }
            let (from, to) = range.split_once('-').unwrap();
            let (mut at, to) = (u64::from_str_radix(from, 16).unwrap(), u64::from_str_radix(to, 16).unwrap());
            while at < to {
                let len = (to - at).min(buffer.len() as u64) as usize;
                if memory.seek(SeekFrom::Start(at)).is_err() || memory.read_exact(&mut buffer[..len]).is_err() {
                    break;
                }
                bytes += len;
                found.extend(self.found(&buffer[..len]));
                // The next piece begins inside this one, so that no window falls between two.
                at += if at + len as u64 == to { len } else { len - WINDOW } as u64;
            }
        }
        (found, bytes)
    }
}

/// Rows that nobody else has.
fn rows(seed: u64, count: usize) -> Dataset {
    let mut state = seed;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    // Labels as well: 0, 1, 2 and so on stands in every program.
    Dataset { rows: (0..count).map(|_| core::array::from_fn(|_| byte())).collect(), labels: (0..count).map(|_| byte() % 10).collect() }
}

#[test]
fn the_agent_and_the_network_see_no_key_and_no_plaintext() {
    shef_e2e::shef_program();
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::start(dir.path(), &["--device".into(), "model".into()]).unwrap_or_else(|e| panic!("{e}"));
    let shef::Uri::Tls { port, .. } = remote.uri else { panic!("{}", remote.uri) };
    let agent: std::net::SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    // Owner -> proxy that keeps what is on the wire -> one that keeps what is inside TLS, as an agent sees it -> agent.
    let inside = common::Mitm::new(agent, &dir.path().join("agent"), &remote.tls, std::sync::Arc::new(|_, frame| vec![frame]));
    let wire = common::Proxy::new(([127, 0, 0, 1], inside.port).into(), std::sync::Arc::new(common::Faithful));

    let plan = Plan {
        cards: Cards::Served { uri: remote.uri.clone(), control: remote.control.clone(), tls: None },
        seed: None,
        name: "remote".into(),
        service: None,
    };
    let mut world = World::new(&dir.path().join("world"), plan).unwrap();
    let options = OpenOptions { tls: Some(remote.tls.clone()), progress: None };
    let mut host = shef::open_with(&common::uri(wire.port, "card0"), options).unwrap();
    let (train, query) = (rows(0x1234, 300), rows(0x9876, 128));
    let mut session = world.session(&mut host).unwrap();
    session.expose_secrets().unwrap();
    let b = buffers(&session).unwrap();
    upload(&mut session, &b, &train, &query).unwrap();
    let job = knn::job(b.train.addr(), b.query.addr(), b.result.addr(), 300, 128);
    let statement = session.run(&job, (knn::reg::CTRL, 1), (knn::reg::STATUS, knn::DONE | knn::ERROR)).unwrap();
    let len = knn::result_len(128);
    let opened = session.open(&b.result, &statement, len, OpenPolicy::default()).unwrap();
    assert_eq!(knn::answers(&opened.data[..len], 128), Some(reference::classify_all(&train, &query)));

    let secrets = session.secrets().unwrap();
    let (train_image, pixels) = (knn::train_image(&train), query.pixels());
    let mut keys: Vec<&[u8]> = secrets.data.iter().map(|(_, key)| &key[..]).collect();
    keys.extend([&secrets.to_shield[..], &secrets.to_owner[..]]);
    let keys = Needles::new(&keys);
    let plain = Needles::new(&[&train_image, &pixels, &opened.data]);
    assert!(keys.windows.len() >= 5 && plain.windows.len() > 25_000, "{} and {} windows", keys.windows.len(), plain.windows.len());

    // The control: what is searched for is in the owner's memory.
    let (found, _) = plain.found_in_process(std::process::id());
    assert!(found.len() * 100 > plain.windows.len() * 95, "{} of {} windows in the owner", found.len(), plain.windows.len());
    let (found, _) = keys.found_in_process(std::process::id());
    assert_eq!(found.len(), keys.windows.len(), "keys in the owner");
    // And the data is in the card's.
    assert!(!plain.found_in_process(remote.card()).0.is_empty(), "no plaintext in the card, which computes on it");

    // The claim.
    let (found, searched) = plain.found_in_process(remote.agent());
    assert!(searched > 1 << 20, "{searched} bytes of the agent's memory");
    assert!(found.is_empty(), "plaintext in the agent's memory: {:02x?}", found.iter().map(|w| w.map(|b| b ^ MASK)).collect::<Vec<_>>());
    assert_eq!(keys.found_in_process(remote.agent()).0.len(), 0, "keys in the agent's memory");
    for (what, bytes) in [("on the wire", &wire.captured), ("inside TLS", &inside.seen)] {
        let bytes = bytes.lock().unwrap();
        // All of the ciphertext went this way.
        assert!(bytes.len() > train_image.len() + pixels.len(), "{} bytes {what}", bytes.len());
        assert_eq!(plain.found(&bytes).len(), 0, "plaintext {what}");
        assert_eq!(keys.found(&bytes).len(), 0, "keys {what}");
    }
    session.close().unwrap();
}

#[test]
fn the_whole_line_through_an_agent() {
    shef_e2e::shef_program();
    let args = shef_cli::demo::DemoArgs { device: "sim:model".into(), remote: true, ..Default::default() };
    let report = shef_e2e::demo(&args);
    assert!(report.steps.iter().all(|step| step.ok), "{:?}", report.steps);
    assert!(report.device.starts_with("tls://localhost:"), "{}", report.device);
    assert_eq!((report.digits.correct, report.digits.equal_to_reference), (766, true));
    assert!(report.attacks.len() >= 12);
    for attack in &report.attacks {
        assert!(attack.detected && attack.words_delivered == 0, "{}: {}", attack.name, attack.detail);
    }
}

/// What an owner with nothing but a certificate gets by the card's DMA engine: it uploads descriptors as bulk data, points a queue at the place in the agent's memory where
/// they lie on their way, and has the card copy a piece of that memory to where it can be read.
fn agent_memory(remote: &Remote) -> Result<Vec<u8>, shef::DeviceError> {
    use shef_device::ring::{DESCRIPTOR, Descriptor, OP_TO_CARD, reg};
    /// Where bulk transfers of a served card have their memory: places of 128 KiB from here on.
    const PLACES: u64 = 1 << 32;
    const SPOIL: u64 = 0x200_0000;
    let options = OpenOptions { tls: Some(remote.tls.clone()), progress: None };
    let mut host = shef::open_with(&remote.uri, options).unwrap();
    let card = host.device();
    let mut data = vec![0; 16 * (128 << 10)];
    let steal = Descriptor { op: OP_TO_CARD, flags: 0, tag: 1, host: PLACES + (1 << 20), card: SPOIL, bytes: 4096 };
    data.chunks_mut(128 << 10).for_each(|place| {
        place.fill(0x5a);
        place[..DESCRIPTOR as usize].copy_from_slice(&steal.encode());
    });
    card.mem_write(0, &data)?;
    card.ctl_read32(shef_device::mailbox::STATUS)?;
    let at = (PLACES + (2 << 17)).to_le_bytes();
    let word = |i: usize| u32::from_le_bytes([at[i], at[i + 1], at[i + 2], at[i + 3]]);
    for (register, value) in
        [(reg::RING_LO, word(0)), (reg::RING_HI, word(4)), (reg::ENTRIES, 2), (reg::CONTROL, reg::ENABLE), (reg::TAIL, 1)]
    {
        card.ctl_write32(reg::BASE + register, value)?;
    }
    let mut spoil = vec![0; 4096];
    for _ in 0..200 {
        card.mem_read(SPOIL, &mut spoil)?;
        if spoil.iter().any(|b| *b != 0) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Ok(spoil)
}

#[test]
fn an_owner_does_not_drive_the_dma_engine_in_the_agents_machine() {
    shef_e2e::shef_program();
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::start(dir.path(), &["--device".into(), "model".into()]).unwrap_or_else(|e| panic!("{e}"));
    match agent_memory(&remote) {
        Err(error) => assert_eq!(error.code(), "SHEF-DEV-006", "{error}"),
        Ok(spoil) => panic!("memory of the agent: {:02x?}...", &spoil[..80]),
    }
}
