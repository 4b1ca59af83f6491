//! A session leaves no secrets in the memory of its owner's process, which is searched from outside
//! during and after the session.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use shef::service::{KeyMaterial, NewKey};
use shef::{Connected, SdkError, Service, Session, SystemEntropy, TlsFiles};
use shef_card::Control;
use shef_e2e::Served;
use shef_fixtures::memory::{MASK, Needles};
use shef_lab::attacks::{buffers, upload};
use shef_lab::data::Dataset;
use shef_lab::knn;
use shef_lab::secrets::{Again, session_keys};
use shef_lab::tap::MessageKind;
use shef_lab::world::{Cards, Plan, World};
use shef_proto::entropy::Entropy;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::{PublicKey, Sender, derive_key_pair};
use shef_proto::load::{LoadError, Message, first_epochs};
use shef_seal::OpenPolicy;
use shef_verifierd::init::{self, Setup};
use shef_verifierd::run::{Running, start};
use shef_verifierd::time::Clock;

/// Passes the card's socket to the owner's process.
const OWNER: &str = "SHEF_TEST_OWNER";
/// Passes the verifier service's address, and the folder of its certificates.
const SERVICE: &str = "SHEF_TEST_SERVICE";
/// The key that the service releases.
const KEY: &str = "known";
/// How sessions end, and whether the owner works afterwards. Work overwrites leftovers on the
/// stack; some sessions end without it.
const ENDS: [(&str, bool); 5] = [
    ("closed", false),
    ("closed", true),
    ("aborted", false),
    ("dropped", false),
    ("dropped", true),
];

/// Bytes as the owner prints them: masked.
fn hidden(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{:02x}", byte ^ MASK)).collect()
}

/// The system's random bytes, with a copy of all draws.
struct Drawn(SystemEntropy, Vec<u8>);

impl Drawn {
    fn said(&self) -> String {
        self.1.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Entropy for Drawn {
    fn fill(&mut self, out: &mut [u8]) {
        self.0.fill(out);
        self.1.extend(out.iter().map(|byte| byte ^ MASK));
    }
}

/// The owner: prints its keys while a session is open, and waits to be searched.
fn owner(socket: PathBuf, service: Option<Service>) {
    let dir = tempfile::tempdir().unwrap();
    let uri = format!("vfio-user:{}", socket.display()).parse().unwrap();
    let cards = Cards::Served { uri, control: Control::path_of(&socket), tls: None };
    let mut world = World::new(
        dir.path(),
        Plan { cards, seed: None, name: "traces".into(), service: service.clone() },
    )
    .unwrap();
    let (mut host, bench) = world.card(&mut |_| {}).unwrap();
    let all =
        Dataset::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz")))
            .unwrap();
    let (train, query) = (all.head(64), all.head(32));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
        as i64;
    let say = |line: String| {
        println!("owner: {line}");
        std::io::stdin().read_line(&mut String::new()).unwrap();
    };
    world.load(&mut host).unwrap();
    say("ready".to_owned());
    for (end, works) in ENDS {
        let (expect, mut drawn) =
            (world.expect(), Drawn(SystemEntropy::new().unwrap(), Vec::with_capacity(256)));
        let session = Session::<Connected>::connect(&mut host).unwrap();
        let attested = match &service {
            None => session.attest(world.verifier(), &expect, now, &mut drawn.0).unwrap(),
            Some(service) => {
                let expect = expect.clone().floor(world.verifier().policy().clone());
                let attested =
                    session.attest_by(service, (KEY, None), &expect, now, &mut drawn).unwrap();
                say(format!("attested drawn={}", drawn.said()));
                attested
            }
        };
        let shield = hidden(attested.verified().claims().key.as_bytes());
        let mut session =
            attested.key("owner", &first_epochs(expect.config(), 1), &mut drawn).unwrap();
        let said = format!(
            "open shield={shield} message={} drawn={}",
            hidden(session.load_key()),
            drawn.said()
        );
        // Every use of a key, with as many threads as there are cores.
        if works {
            let b = buffers(&session).unwrap();
            session.upload(&b.train, &vec![7; 1 << 20]).unwrap();
            session.next_input_epoch(&b.train).unwrap();
            upload(&mut session, &b, &train, &query).unwrap();
            let job = knn::job(b.train.addr(), b.query.addr(), b.result.addr(), 64, 32);
            let statement = session
                .run(&job, (knn::reg::CTRL, 1), (knn::reg::STATUS, knn::DONE | knn::ERROR))
                .unwrap();
            session
                .open(
                    &b.result,
                    &statement,
                    b.result.region().size as usize,
                    OpenPolicy { holes: true, ..Default::default() },
                )
                .unwrap();
        }
        say(said);
        match end {
            "closed" => session.close().map(drop).unwrap(),
            "aborted" => session.abort().map(drop).unwrap(),
            _ => drop(session),
        }
        say(end.to_owned());
        if end == "dropped" {
            // The Shield does not learn of it.
            host.reset().unwrap();
            world.load(&mut host).unwrap();
        } else {
            host.new_session().unwrap();
        }
    }
    // The Shield's confirmation is always wrong.
    bench.tap().meddle(|kind, mut bytes, _| {
        if kind == MessageKind::Confirmation {
            bytes[0] ^= 1;
        }
        Some(bytes)
    });
    let (expect, mut drawn) =
        (world.expect(), Drawn(SystemEntropy::new().unwrap(), Vec::with_capacity(256)));
    let session = Session::<Connected>::connect(&mut host).unwrap();
    let attested = match &service {
        None => session.attest(world.verifier(), &expect, now, &mut drawn.0),
        Some(service) => session.attest_by(
            service,
            (KEY, None),
            &expect.clone().floor(world.verifier().policy().clone()),
            now,
            &mut drawn,
        ),
    };
    let refused = attested
        .unwrap()
        .key("owner", &first_epochs(expect.config(), 1), &mut drawn)
        .err()
        .unwrap();
    assert!(
        matches!(refused, SdkError::LoadRefused | SdkError::Load(LoadError::Confirmation)),
        "{refused}"
    );
    drop(refused);
    say(format!("unconfirmed drawn={}", drawn.said()));
}

/// The round keys of AES, in the order of FIPS 197.
fn round_keys(key: &[u8]) -> Vec<u8> {
    let double = |x: u8| x << 1 ^ if x & 0x80 == 0 { 0 } else { 0x1b };
    let times = |a: u8, b: u8| {
        (0..8)
            .fold((0, a), |(sum, a), bit| {
                (if b >> bit & 1 == 0 { sum } else { sum ^ a }, double(a))
            })
            .0
    };
    let inverse = |x: u8| (0..254).fold(1, |power, _| times(power, x));
    let substitute = |x: u8| {
        let y = inverse(x);
        (1..5).fold(y ^ 0x63, |sum, by| sum ^ y.rotate_left(by))
    };
    let words = key.len() / 4;
    let mut all: Vec<[u8; 4]> = key.chunks(4).map(|word| word.try_into().unwrap()).collect();
    let mut constant = 1;
    for i in words..4 * (words + 7) {
        let mut word = all[i - 1];
        if i % words == 0 {
            word.rotate_left(1);
            word = word.map(substitute);
            word[0] ^= constant;
            constant = double(constant);
        } else if words > 6 && i % words == 4 {
            word = word.map(substitute);
        }
        let before = all[i - words];
        all.push(core::array::from_fn(|j| before[j] ^ word[j]));
    }
    all.concat()
}

/// The hash key of AES-GCM.
fn hash_key(key: &[u8]) -> Vec<u8> {
    use aes_gcm::aes::cipher::BlockCipherEncrypt;
    use aes_gcm::{KeyInit, aes};
    let mut block = aes::Block::default();
    match aes::Aes128::new_from_slice(key) {
        Ok(aes) => aes.encrypt_block(&mut block),
        Err(_) => aes::Aes256::new_from_slice(key).unwrap().encrypt_block(&mut block),
    }
    block.to_vec()
}

/// The value that the owner printed under a name.
fn told(said: &str, name: &str) -> Vec<u8> {
    let value =
        said.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('=')).unwrap();
    hex::decode(value).unwrap().iter().map(|byte| byte ^ MASK).collect()
}

/// A private key for HPKE, as bytes and as a number in this machine's memory, and the seed of the
/// key.
fn private_key(name: &str, seed: &[u8]) -> [(String, Vec<u8>); 3] {
    let key = derive_key_pair(seed).0.to_bytes().to_vec();
    let number = key.iter().rev().copied().collect();
    [
        (format!("what the {name} key is made of"), seed.to_vec()),
        (format!("{name} key"), key),
        (format!("{name} key, a number"), number),
    ]
}

/// The key to which a service releases another key.
fn recipient(drawn: &[u8]) -> [(String, Vec<u8>); 3] {
    private_key("recipient's", &drawn[..32])
}

/// The sources of a session's keys.
fn sources(drawn: &[u8], released: Option<[u8; 32]>) -> Vec<(String, Vec<u8>)> {
    let (first, seed) = drawn.split_at(32);
    let mut all =
        vec![("master key".into(), released.map_or(first.to_vec(), |master| master.to_vec()))];
    if released.is_some() {
        all.extend(recipient(first));
    }
    all.extend(private_key("ephemeral", seed));
    all
}

/// Every secret of a session, by name, from the owner's output and the key that a service released.
fn secrets(said: &str, released: Option<[u8; 32]>) -> Vec<(String, Vec<u8>)> {
    let told = |name| told(said, name);
    let mut all = Vec::new();
    let drawn = told("drawn");
    let seed = &drawn[32..];
    let (load_key, shield) = (told("message"), PublicKey::from_bytes(&told("shield")).unwrap());
    let used = if released.is_some() { seed } else { &drawn };
    let config = shef_card::config().unwrap();
    let keys = session_keys(&config, &shield, &load_key, used, released.as_ref()).unwrap();
    let data = |region| keys.data_key(region).unwrap().expose().to_vec();
    for (name, key) in [
        ("data0", data(0)),
        ("data1", data(1)),
        ("data2", data(2)),
        ("to_shield", keys.to_shield().expose().to_vec()),
        ("to_owner", keys.to_owner().expose().to_vec()),
    ] {
        assert!(matches!(key.len(), 16 | 32));
        all.push((format!("hash key of {name}"), hash_key(&key)));
        all.push((format!("round keys of {name}"), round_keys(&key)[key.len()..].to_vec()));
        all.push((name.to_owned(), key));
    }
    all.extend(sources(&drawn, released));
    let message = Message::from_bytes(&load_key).unwrap();
    let (enc, sender) = Sender::setup(&shield, &message.info, &mut Again(seed)).unwrap();
    assert_eq!(enc, message.enc, "the session can be derived again");
    all.push(("exported secret".into(), sender.export(b"shef-session").unwrap().to_vec()));
    all
}

fn needles(secrets: &[(String, Vec<u8>)]) -> Needles {
    Needles::new(secrets.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])))
}

/// The next line of the owner's output.
fn heard(lines: &mut std::io::Lines<BufReader<ChildStdout>>) -> String {
    lines
        .find_map(|line| Some(line.unwrap().split_once("owner: ")?.1.to_owned()))
        .expect("the owner goes on")
}

fn go_on(stdin: &mut ChildStdin) {
    stdin.write_all(b"\n").unwrap();
}

#[test]
fn a_session_that_is_over_leaves_no_key_in_memory() {
    searched("a_session_that_is_over_leaves_no_key_in_memory", None);
}

#[test]
fn nor_does_one_whose_master_key_a_service_released() {
    searched("nor_does_one_whose_master_key_a_service_released", Some(Verifier::start));
}

/// A verifier service.
struct Verifier {
    dir: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    running: Option<Running>,
}

impl Verifier {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let setup = Setup {
            listen: "127.0.0.1:0".into(),
            hosts: vec!["localhost".into()],
            audience: "https://verifier.test".into(),
            tenant: "default".into(),
        };
        let (folder, now) = (
            dir.path().join("v"),
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap(),
        );
        init::init(&folder, &setup, now.as_secs() as i64).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let config = shef_verifierd::config::Config::read(&folder.join("verifierd.toml")).unwrap();
        let running = Some(runtime.block_on(start(config, Clock::System)).unwrap());
        Self { dir, runtime, running }
    }

    /// Its description for the owner's process.
    fn told(&self) -> String {
        format!(
            "https://localhost:{} {}",
            self.running.as_ref().unwrap().address.port(),
            self.dir.path().join("v").display()
        )
    }
}

impl Drop for Verifier {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running.stop());
        }
    }
}

/// The service of such a description.
fn service(told: &str) -> Service {
    let (url, dir) = told.split_once(' ').unwrap();
    let file = |name: &str| Path::new(dir).join(name);
    Service::new(
        url,
        TlsFiles { ca: file("ca.pem"), cert: file("operator.pem"), key: file("operator.key") },
    )
    .unwrap()
}

/// Runs the test `name` in a separate process as the owner.
fn searched(name: &str, verifier: Option<fn() -> Verifier>) {
    if let Some(socket) = std::env::var_os(OWNER) {
        return owner(socket.into(), std::env::var(SERVICE).ok().as_deref().map(service));
    }
    let verifier = verifier.map(|start| start());
    assert_eq!(
        hex::encode(&round_keys(&hex::decode("2b7e151628aed2a6abf7158809cf4f3c").unwrap())[160..]),
        "d014f9a8c9ee2589e13f0cc8b6630ca6"
    );
    let card = Served::start("model");
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(OWNER, card.socket())
        .envs(verifier.iter().map(|verifier| (SERVICE, verifier.told())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, mut lines) =
        (owner.stdin.take().unwrap(), BufReader::new(owner.stdout.take().unwrap()).lines());
    assert_eq!(heard(&mut lines), "ready");
    let released = verifier.as_ref().map(|verifier| {
        let mut secret = [0; 32];
        SystemEntropy::new().unwrap().fill(&mut secret);
        let material = KeyMaterial::Secret(&secret);
        let service = service(&verifier.told());
        let policy = &shef_e2e::policy_of_demo(&service.get("/v1/policies").unwrap());
        let key = NewKey { policy, material, max_releases: 0, not_before: 0, not_after: 0 };
        service.add_key(KEY, Layer::Shield, &key).unwrap();
        secret
    });
    go_on(&mut stdin);
    let mut left = Vec::new();
    for (end, works) in ENDS {
        if released.is_some() {
            let secrets = recipient(&told(&heard(&mut lines), "drawn"));
            let attested = needles(&secrets).found_in_process(owner.id());
            left.extend(attested.places.iter().map(|place| format!("attested: {place}")));
            go_on(&mut stdin);
        }
        let said = heard(&mut lines);
        let secrets = secrets(&said, released);
        let needles = needles(&secrets);
        // Finding secrets while the session is open shows that the search works.
        let open = needles.found_in_process(owner.id());
        for name in ["data0", "data1", "data2", "to_shield", "to_owner"] {
            assert!(
                open.names.contains(name),
                "{name} of a session that is open: {:#?}",
                open.names
            );
            let expanded = open.names.contains(&format!("round keys of {name}"));
            assert!(
                expanded || (!works && name.starts_with("data")),
                "{name} of a session that is open: {:#?}",
                open.names
            );
        }
        // The sources of keys are gone by then.
        let keys = ["data", "to_", "round keys", "hash key"];
        left.extend(
            open.places
                .iter()
                .filter(|place| !keys.iter().any(|name| place.starts_with(name)))
                .map(|place| format!("open: {place}")),
        );
        go_on(&mut stdin);
        assert_eq!(heard(&mut lines), end);
        let over = needles.found_in_process(owner.id());
        assert!(over.searched > 1 << 20, "{} bytes of the owner's memory", over.searched);
        left.extend(over.places.iter().map(|place| format!("{end}, {works}: {place}")));
        go_on(&mut stdin);
    }
    let drawn = told(&heard(&mut lines), "drawn");
    assert_eq!(drawn.len(), 64);
    let refused = needles(&sources(&drawn, released)).found_in_process(owner.id());
    left.extend(refused.places.iter().map(|place| format!("unconfirmed: {place}")));
    go_on(&mut stdin);
    assert!(owner.wait().unwrap().success());
    assert!(left.is_empty(), "{} pieces of keys are left: {left:#?}", left.len());
}
