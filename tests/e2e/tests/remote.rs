//! Owner, agent and card as three processes: the whole flow, and the data visible to agent and
//! network.

use shef::OpenOptions;
use shef_fixtures::memory::Needles;
use shef_lab::attacks::{buffers, upload};
use shef_lab::data::Dataset;
use shef_lab::knn;
use shef_lab::reference;
use shef_lab::world::{Cards, Plan, World};
use shef_seal::OpenPolicy;
use shef_sim::remote::Remote;

/// Rows that occur in no other process.
fn rows(seed: u64, count: usize) -> Dataset {
    let mut state = seed;
    let mut byte = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    // The same for labels: 0, 1, 2 and so on occur in every program.
    Dataset {
        rows: (0..count).map(|_| core::array::from_fn(|_| byte())).collect(),
        labels: (0..count).map(|_| byte() % 10).collect(),
    }
}

#[test]
fn the_agent_and_the_network_see_no_key_and_no_plaintext() {
    shef_e2e::shef_program();
    let dir = tempfile::tempdir().unwrap();
    let remote = Remote::start(dir.path(), &["--device".into(), "model".into()])
        .unwrap_or_else(|e| panic!("{e}"));
    let shef::Uri::Tls { port, .. } = remote.uri else { panic!("{}", remote.uri) };
    let agent: std::net::SocketAddr = format!("127.0.0.1:{port}").parse().unwrap();
    // Owner -> proxy that records the wire -> proxy that records the plaintext of TLS, as an agent
    // sees it -> agent.
    let inside = shef_fixtures::agent::Mitm::new(
        agent,
        &dir.path().join("agent"),
        &remote.tls,
        std::sync::Arc::new(|_, frame| vec![frame]),
    );
    let wire = shef_fixtures::agent::Proxy::new(
        ([127, 0, 0, 1], inside.port).into(),
        std::sync::Arc::new(shef_fixtures::agent::Faithful),
    );

    let plan = Plan {
        cards: Cards::Served {
            uri: remote.uri.clone(),
            control: remote.control.clone(),
            tls: None,
        },
        seed: None,
        name: "remote".into(),
        service: None,
    };
    let mut world = World::new(&dir.path().join("world"), plan).unwrap();
    let options = OpenOptions { tls: Some(remote.tls.clone()), progress: None };
    let mut host =
        shef::open_with(&shef_fixtures::agent::uri(wire.port, "card0"), options).unwrap();
    let (train, query) = (rows(0x1234, 300), rows(0x9876, 128));
    let mut session = world.session(&mut host).unwrap();
    let secrets = world.session_keys().unwrap();
    let b = buffers(&session).unwrap();
    upload(&mut session, &b, &train, &query).unwrap();
    let job = knn::job(b.train.addr(), b.query.addr(), b.result.addr(), 300, 128);
    let statement =
        session.run(&job, (knn::reg::CTRL, 1), (knn::reg::STATUS, knn::DONE | knn::ERROR)).unwrap();
    let len = knn::result_len(128);
    let opened = session.open(&b.result, &statement, len, OpenPolicy::default()).unwrap();
    assert_eq!(
        knn::answers(&opened.data[..len], 128),
        Some(reference::classify_all(&train, &query))
    );

    let (train_image, pixels) = (knn::train_image(&train), query.pixels());
    let regions = session.config().regions();
    let data = regions.iter().filter_map(|region| secrets.data_key(region.id));
    let mut keys: Vec<_> = data.map(|key| ("a data key", key.expose())).collect();
    keys.extend([
        ("a channel key", secrets.to_shield().expose()),
        ("a channel key", secrets.to_owner().expose()),
    ]);
    let keys = Needles::new(keys);
    let plain = Needles::new([
        ("training rows", &train_image[..]),
        ("queries", &pixels),
        ("results", &opened.data),
    ]);
    assert!(
        keys.count() >= 5 && plain.count() > 25_000,
        "{} and {} windows",
        keys.count(),
        plain.count()
    );

    // The control: the data is in the owner's memory.
    let found = plain.found_in_process(std::process::id());
    assert!(
        found.count() * 100 > plain.count() * 95,
        "{} of {} windows in the owner",
        found.count(),
        plain.count()
    );
    assert_eq!(
        keys.found_in_process(std::process::id()).count(),
        keys.count(),
        "keys in the owner"
    );
    // It is also in the card's memory.
    assert!(
        plain.found_in_process(remote.card()).count() > 0,
        "no plaintext in the card, which computes on it"
    );

    // The claim.
    let found = plain.found_in_process(remote.agent());
    assert!(found.searched > 1 << 20, "{} bytes of the agent's memory", found.searched);
    assert!(found.places.is_empty(), "plaintext in the agent's memory: {:#?}", found.places);
    let found = keys.found_in_process(remote.agent());
    assert!(found.places.is_empty(), "keys in the agent's memory: {:#?}", found.places);
    for (what, bytes) in [("on the wire", &wire.captured), ("inside TLS", &inside.seen)] {
        let bytes = bytes.lock().unwrap();
        // All ciphertext went this way.
        assert!(bytes.len() > train_image.len() + pixels.len(), "{} bytes {what}", bytes.len());
        assert_eq!(plain.found(&bytes).count(), 0, "plaintext {what}");
        assert_eq!(keys.found(&bytes).count(), 0, "keys {what}");
    }
    session.close().unwrap();
}

fn the_whole_line_on(device: &str) {
    shef_e2e::shef_program();
    let args = shef_sim::DemoArgs { device: device.into(), remote: true, ..Default::default() };
    let report = shef_e2e::demo(&args);
    assert!(report.steps.iter().all(|step| step.ok), "{:?}", report.steps);
    assert!(report.device.starts_with("tls://localhost:"), "{}", report.device);
    assert_eq!((report.digits.correct, report.digits.equal_to_reference), (766, true));
    assert!(report.attacks.len() >= 12);
    for attack in &report.attacks {
        assert!(
            attack.detected && attack.words_delivered == 0,
            "{}: {}",
            attack.name,
            attack.detail
        );
    }
}

#[test]
fn the_whole_line_through_an_agent() {
    the_whole_line_on("sim:model");
}

/// For `cargo xtask test --full`.
mod long {
    #[test]
    #[ignore = "long: as `rtl`, in another process behind an agent"]
    fn the_whole_line_through_an_agent_on_the_rtl() {
        super::the_whole_line_on("sim:rtl");
    }
}

/// The reach of an owner with only a certificate, through the card's DMA engine: the owner uploads
/// descriptors as bulk data, points a queue at their buffer in the agent's memory, and has the card
/// copy a piece of that memory to a readable place.
fn agent_memory(remote: &Remote) -> Result<Vec<u8>, shef::DeviceError> {
    use shef_device::ring::{DESCRIPTOR, Descriptor, OP_TO_CARD, reg};
    /// Base address of the buffers for bulk transfers of a served card, 128 KiB each.
    const PLACES: u64 = 1 << 32;
    const SPOIL: u64 = 0x200_0000;
    let options = OpenOptions { tls: Some(remote.tls.clone()), progress: None };
    let mut host = shef::open_with(&remote.uri, options).unwrap();
    let card = host.device();
    let mut data = vec![0; 16 * (128 << 10)];
    let steal = Descriptor {
        op: OP_TO_CARD,
        flags: 0,
        tag: 1,
        host: PLACES + (1 << 20),
        card: SPOIL,
        bytes: 4096,
    };
    data.chunks_mut(128 << 10).for_each(|place| {
        place.fill(0x5a);
        place[..DESCRIPTOR as usize].copy_from_slice(&steal.encode());
    });
    card.mem_write(0, &data)?;
    card.ctl_read32(shef_device::mailbox::STATUS)?;
    let at = (PLACES + (2 << 17)).to_le_bytes();
    let word = |i: usize| u32::from_le_bytes([at[i], at[i + 1], at[i + 2], at[i + 3]]);
    for (register, value) in [
        (reg::RING_LO, word(0)),
        (reg::RING_HI, word(4)),
        (reg::ENTRIES, 2),
        (reg::CONTROL, reg::ENABLE),
        (reg::TAIL, 1),
    ] {
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
    let remote = Remote::start(dir.path(), &["--device".into(), "model".into()])
        .unwrap_or_else(|e| panic!("{e}"));
    match agent_memory(&remote) {
        Err(error) => assert_eq!(error.code(), "SHEF-DEV-006", "{error}"),
        Ok(spoil) => panic!("memory of the agent: {:02x?}...", &spoil[..80]),
    }
}
