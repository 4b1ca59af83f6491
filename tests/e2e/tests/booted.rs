//! A card on AWS F2 boots from the medium that its URI names, at each open and after each reset:
//! behind an agent, an owner attests it and computes with it. Without a medium it is refused.
//!
//! Adapter page, boot medium and resets are those of `cl_shef` in the model of F2's shell.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use shef::OpenOptions;
use shef_agent::init::{Plan as AgentPlan, init};
use shef_agent::{Agent, Config};
use shef_card::Control;
use shef_device::pci::f2::adapter::{MEDIUM, PAGE, reg};
use shef_device::pci::f2::{F2, Medium};
use shef_device::pci::{BAR_CTL, BAR_MSIX, Function, VECTOR_ACCELERATOR};
use shef_device::{DeviceError, Uri, mailbox};
use shef_e2e::Served;
use shef_lab::attacks::{buffers, upload};
use shef_lab::data::{Dataset, PIXELS};
use shef_lab::world::{Cards, Plan, World};
use shef_lab::{knn, reference};
use shef_seal::OpenPolicy;
use shef_vfio_user::{DEFAULT_TIMEOUT, VfioUserFunction};

#[test]
fn an_owner_computes_on_a_card_that_an_agent_boots() {
    let dir = tempfile::tempdir().unwrap();
    let boot = dir.path().join("boot");
    let served = Served::on_f2(&boot);
    let state = || Control::open(&Control::path_of(&served.socket())).unwrap().state().unwrap();
    let device = |query: &str| format!("{}{query}", served.uri()).parse::<Uri>().unwrap();
    let names = ["whole", "none", "empty"];
    let queries = [format!("?boot={}", boot.display()), String::new(), "?boot=/nowhere".to_owned()];
    let plan = AgentPlan {
        dir: dir.path().join("agent"),
        listen: "127.0.0.1:0".into(),
        names: vec!["localhost".into()],
        owners: vec!["alice".into()],
        devices: names
            .iter()
            .map(|name| (*name).to_owned())
            .zip(queries.iter().map(|q| device(q)))
            .collect(),
    };
    init(&plan).unwrap();
    let all = Config::load(&plan.dir.join("agent.toml")).unwrap();
    let owner = plan.dir.join("owners/alice");
    let tls = shef::TlsFiles {
        ca: owner.join("ca.pem"),
        cert: owner.join("cert.pem"),
        key: owner.join("key.pem"),
    };
    // One device at a time: there is one card.
    let with_agent = |name: &str, body: &mut dyn FnMut(&Uri)| {
        let mut config = all.clone();
        config.devices.retain(|known, _| known == name);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let agent = runtime.block_on(Agent::bind(&config, Arc::new(shef_agent::open))).unwrap();
        let (port, running) = (agent.address().unwrap().port(), agent.handle());
        let serving = runtime.spawn(agent.serve());
        body(&shef_fixtures::agent::uri(port, name));
        running.stop();
        runtime.block_on(serving).unwrap();
    };
    let open =
        |uri: &Uri| shef::open_with(uri, OpenOptions { tls: Some(tls.clone()), progress: None });

    with_agent("none", &mut |uri| {
        let error = open(uri).err().expect("a card without medium");
        let waits = format!("{} waits for its boot medium", served.uri());
        assert!(error.to_string().contains(&waits), "{error}");
    });
    let resets = state().resets;
    with_agent("empty", &mut |uri| {
        let error = open(uri).err().expect("a folder that is not there");
        assert!(error.to_string().contains("cannot read /nowhere/kernel.img"), "{error}");
    });
    assert_eq!(state().resets, resets, "without its files the card is not opened");

    assert_eq!(state().vectors >> ACCELERATOR & 1, 0);
    with_agent("whole", &mut |uri| {
        let cards = Cards::Served {
            uri: uri.clone(),
            control: Control::path_of(&served.socket()),
            tls: Some(tls.clone()),
        };
        let plan = Plan { cards, seed: None, name: "booted".into(), service: None };
        let mut world = World::new(&dir.path().join("world"), plan).unwrap();
        let rows = (0..16).map(|n| [5 * n; PIXELS]).collect();
        let few = Dataset { rows, labels: (0..16).map(|n| n % 10).collect() };
        // The agent resets the card between two owners.
        for _ in 0..2 {
            let mut host = open(uri).unwrap();
            let mut session = world.session(&mut host).unwrap();
            let b = buffers(&session).unwrap();
            upload(&mut session, &b, &few, &few).unwrap();
            let job = knn::job(b.train.addr(), b.query.addr(), b.result.addr(), 16, 16);
            let done = (knn::reg::STATUS, knn::DONE | knn::ERROR);
            let statement = session.run(&job, (knn::reg::CTRL, 1), done).unwrap();
            // By the vector that the host gave it, and not by that of other cards.
            shef_fixtures::agent::eventually("the accelerator's interrupt", || {
                state().vectors >> ACCELERATOR & 1 == 1
            });
            assert_eq!(state().vectors >> VECTOR_ACCELERATOR & 1, 0);
            let len = knn::result_len(16);
            let opened = session.open(&b.result, &statement, len, OpenPolicy::default()).unwrap();
            let expected = Some(reference::classify_all(&few, &few));
            assert_eq!(knn::answers(&opened.data[..len], 16), expected);
            let resets = state().resets;
            drop(session);
            drop(host);
            shef_fixtures::agent::eventually("a reset after the session", || {
                state().resets > resets
            });
        }
    });
}

/// The accelerator's vector on F2.
const ACCELERATOR: u32 = 15;

/// A card as a program opens it that has this medium.
fn booted(socket: &Path, medium: Medium) -> Result<F2<VfioUserFunction>, DeviceError> {
    F2::new(function(socket), "card", medium)
}

/// Connects as soon as the previous client has left.
fn function(socket: &Path) -> VfioUserFunction {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        match VfioUserFunction::open(socket, DEFAULT_TIMEOUT) {
            Err(error) if error.code() == "SHEF-VFU-002" && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(20));
            }
            other => return other.unwrap(),
        }
    }
}

fn read(card: &mut impl Function, bar: u8, offset: u64) -> u32 {
    let mut word = [0; 4];
    card.bar_read(bar, offset, &mut word).unwrap();
    u32::from_le_bytes(word)
}

fn write(card: &mut impl Function, bar: u8, offset: u64, value: u32) {
    card.bar_write(bar, offset, &value.to_le_bytes()).unwrap();
}

/// Locked, memory ready.
const UP: u32 = 1 | 1 << 3;
/// Running, frozen.
const RUNS: u32 = UP | 1 << 1 | 1 << 4;
const READY: u32 = RUNS | 1 << 2;
/// The alert of a boot ROM that refuses the medium.
const REFUSED: u32 = RUNS | 4 << 8;
const START: u32 = 1;
const RESET: u32 = 2;
/// Interrupt registers in BAR2: mask, vectors.
const ENABLE: u64 = 0x2004;
const VECTORS: u64 = 0x2080;

#[test]
fn a_wrong_medium_boots_nothing_and_a_right_one_is_frozen() {
    let dir = tempfile::tempdir().unwrap();
    let boot = dir.path().join("boot");
    let served = Served::on_f2(&boot);
    let socket = served.socket();
    let [image, signature, certificate] =
        Medium::FILES.map(|name| std::fs::read(boot.join(name)).unwrap());
    let flipped = |bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        bytes
    };

    // Files that are no medium do not reach the card.
    let error = Medium::new(&image, &signature[..127], &certificate).err().unwrap();
    assert_eq!(error.code(), "SHEF-DEV-020");
    for (what, image, signature, certificate) in [
        ("an image cut short", image[..image.len() / 2].to_vec(), &signature, &certificate),
        ("a changed image", flipped(&image), &signature, &certificate),
        ("a changed signature", image.clone(), &flipped(&signature), &certificate),
        ("another device's certificate", image.clone(), &signature, &flipped(&certificate)),
    ] {
        let medium = Medium::new(&image, signature, certificate).unwrap();
        let error = booted(&socket, medium).err().expect(what);
        assert_eq!(error.code(), "SHEF-DEV-022", "{what}: {error}");
        let text = error.to_string();
        assert!(text.contains("not kernel ready") && text.contains("alert 4"), "{what}: {text}");
    }

    let medium = Medium::new(&image, &signature, &certificate).unwrap();
    let mut card = booted(&socket, medium).unwrap();
    assert!(!card.polled());
    assert_eq!(read(&mut card, BAR_CTL, PAGE + reg::STATUS), READY);
    assert_eq!(read(&mut card, BAR_CTL, mailbox::STATUS.into()), mailbox::STATUS_IDLE);
    assert_eq!(read(&mut card, BAR_MSIX, ENABLE), 0xffff);
    assert_eq!(read(&mut card, BAR_MSIX, VECTORS + 12), 0x0f0e_0d0c);
    // Frozen: nothing is read, and a write changes nothing.
    write(&mut card, BAR_CTL, MEDIUM + 4, 99);
    assert_eq!(read(&mut card, BAR_CTL, MEDIUM + 4), 0);
    write(&mut card, BAR_CTL, PAGE + reg::CONTROL, START);
    assert_eq!(read(&mut card, BAR_CTL, PAGE + reg::STATUS), READY);
    write(&mut card, BAR_CTL, PAGE + reg::CONTROL, RESET);
    let wiped = |card: &mut F2<VfioUserFunction>| {
        let end = Instant::now() + Duration::from_secs(60);
        while read(card, BAR_CTL, PAGE + reg::STATUS) != UP {
            assert!(Instant::now() < end, "{:#x}", read(card, BAR_CTL, PAGE + reg::STATUS));
        }
    };
    wiped(&mut card);
    let length = read(&mut card, BAR_CTL, MEDIUM + 4);
    assert_eq!(length as usize % 4, 0);
    assert!((image.len()..image.len() + 4096).contains(&(length as usize)), "{length}");
    // The kernel is gone with the core.
    assert_eq!(read(&mut card, BAR_CTL, mailbox::STATUS.into()), u32::MAX);

    // The core starts with the content of the medium, also if a host has checked another one: less
    // than the header names, then no medium.
    for at in length / 8..length / 4 {
        write(&mut card, BAR_CTL, MEDIUM + 4 * u64::from(at), 0);
    }
    write(&mut card, BAR_CTL, PAGE + reg::CONTROL, START);
    assert_eq!(read(&mut card, BAR_CTL, PAGE + reg::STATUS), REFUSED);
    write(&mut card, BAR_CTL, PAGE + reg::CONTROL, RESET);
    wiped(&mut card);
    write(&mut card, BAR_CTL, MEDIUM, 0);
    write(&mut card, BAR_CTL, PAGE + reg::CONTROL, START);
    assert_eq!(read(&mut card, BAR_CTL, PAGE + reg::STATUS), REFUSED);

    // A reset of the function boots again, with the medium and the interrupts of the host.
    card.reset().unwrap();
    assert_eq!(read(&mut card, BAR_CTL, PAGE + reg::STATUS), READY);
    drop(card);
    let mut function = function(&socket);
    // Memory accesses.
    function.config_write(4, &[2, 0]).unwrap();
    assert_eq!(read(&mut function, BAR_MSIX, ENABLE), 0);
    assert_eq!(read(&mut function, BAR_MSIX, VECTORS + 12), 0);
    assert_eq!(read(&mut function, BAR_CTL, PAGE + reg::STATUS), UP);
}

/// Agent and owner open it in the same way: first the files, then the card.
#[test]
fn every_program_reads_the_medium_that_the_uri_names() {
    let uri: Uri = "pci:0000:34:00.0?iommu=none&boot=/nowhere".parse().unwrap();
    let agent = shef_agent::open(&uri).err().expect("no medium");
    let owner = shef::open(&uri).err().expect("no medium");
    for (code, message) in [(agent.code(), agent.to_string()), (owner.code(), owner.to_string())] {
        assert_eq!(code, "SHEF-DEV-024");
        assert!(message.contains("/nowhere/kernel.img"), "{message}");
    }
}
