//! A running verifier service releases keys to the demo, and the command drives it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicI64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use shef::service::api;
use shef::{Connected, Expect, SdkError, Session, TlsFiles};
use shef_card::{self as sim, Control, Engine};
use shef_e2e::{ATTACKS, Served, shef_program};
use shef_fixtures::memory::Needles;
use shef_flags::ServiceArgs;
use shef_lab::world::{Cards, Plan, World};
use shef_project::Design;
use shef_proto::evidence::RootOfTrust;
use shef_proto::receipt::Audit;
use shef_sim::DemoArgs;
use shef_verifierd::auth::Identity;
use shef_verifierd::config::Config;
use shef_verifierd::init::{self, Setup};
use shef_verifierd::role::Role;
use shef_verifierd::run::{Running, start};
use shef_verifierd::time::Clock;
use shef_verify::corim::CorimSigner;
use shef_verify::{KernelReference, Policy, ReferenceValues, ShellReference, TrustAnchor};

mod hardware;
use hardware::Hardware;

const DAY: i64 = 86_400;

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

/// A service in a separate folder, created and run at this time.
struct Verifier {
    _folder: tempfile::TempDir,
    dir: PathBuf,
    runtime: tokio::runtime::Runtime,
    running: Option<Running>,
}

impl Verifier {
    fn start() -> Self {
        Self::at(now(), Clock::System)
    }

    fn at(made: i64, clock: Clock) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("v");
        let setup = Setup {
            listen: "127.0.0.1:0".into(),
            hosts: vec!["localhost".into(), "127.0.0.1".into()],
            audience: "https://verifier.test".into(),
            tenant: "default".into(),
        };
        init::init(&dir, &setup, made).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let running = runtime
            .block_on(start(Config::read(&dir.join("verifierd.toml")).unwrap(), clock))
            .unwrap();
        Self { _folder: folder, dir, runtime, running: Some(running) }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}", self.running.as_ref().unwrap().address.port())
    }

    fn files(&self, name: &str) -> TlsFiles {
        TlsFiles {
            ca: self.dir.join("ca.pem"),
            cert: self.dir.join(format!("{name}.pem")),
            key: self.dir.join(format!("{name}.key")),
        }
    }

    fn service(&self) -> shef::Service {
        shef::Service::new(&self.url(), self.files("operator")).unwrap()
    }

    /// A client certificate of this role, issued at this time.
    fn client(&self, name: &str, role: Role, issued: i64) {
        init::client(
            &self.dir,
            name,
            &Identity { tenant: "default".into(), name: name.into(), role },
            issued,
        )
        .unwrap();
    }

    /// Runs `shef` as this client.
    fn shef(&self, client: &str, args: &[&str]) -> Output {
        let mut command = Command::new(shef_program());
        command
            .args(["--json", "--quiet"])
            .args(args)
            .args(["--verifier", &self.url(), "--as"])
            .arg(self.dir.join(client));
        command.output().unwrap()
    }

    #[track_caller]
    fn ok(&self, client: &str, args: &[&str]) -> Value {
        let output = self.shef(client, args);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    #[track_caller]
    fn fails(&self, client: &str, args: &[&str], exit: i32, code: &str) -> String {
        let output = self.shef(client, args);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(exit), "{args:?}: {said}");
        assert_eq!(said.matches(&format!("error [{code}]")).count(), 1, "{args:?}: {said}");
        assert!(said.matches("help:").count() == 2, "every code is explained: {said}");
        said
    }
}

impl Drop for Verifier {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            self.runtime.block_on(running.stop());
        }
    }
}

fn released(service: &shef::Service) -> usize {
    service.receipts().unwrap().receipts.len()
}

#[track_caller]
fn code<T>(result: Result<T, SdkError>) -> String {
    result.map(drop).expect_err("it was accepted").code().to_owned()
}

fn world(dir: &Path, service: &shef::Service) -> World {
    let plan = Plan {
        cards: Cards::digits(Engine::Model).unwrap(),
        seed: None,
        name: "service".into(),
        service: Some(service.clone()),
    };
    World::new(dir, plan).unwrap()
}

#[test]
fn keys_leave_only_after_appraisal_and_each_leaves_a_receipt() {
    let verifier = Verifier::start();
    let service = verifier.service();
    let dir = tempfile::tempdir().unwrap();
    let mut world = world(dir.path(), &service);
    let (mut host, _) = world.card(&mut |_| {}).unwrap();

    // The kernel is no longer known: no image key.
    let reference = service.get::<api::Corims>("/v1/corims").unwrap().corims[0].id.clone();
    service.remove("corims", &reference).unwrap();
    assert_eq!(code(world.release(&mut host)), "SHEF-ATT-030");
    assert_eq!(released(&service), 0);
    // Kernel and shell are known, the image is not: it is loaded, and gets no data key.
    let known = world.verifier().reference().clone();
    service
        .add_reference("without", &ReferenceValues { images: Vec::new(), ..known.clone() })
        .unwrap();
    world.load(&mut host).unwrap();
    assert_eq!(released(&service), 1);
    assert_eq!(code(world.attest(&mut host)), "SHEF-ATT-040");
    assert_eq!(released(&service), 1);
    // All are known: the data key is released, and the Shield runs under it.
    service.add_reference(&reference, &known).unwrap();
    let image = hex::encode(world.image().digest);
    let mut session = world.keyed(&mut host).unwrap();
    assert_eq!(released(&service), 2);
    // The image is revoked while the session runs: the session continues, and the next one gets no
    // data key.
    let revoked = serde_json::json!({"kind": "image", "value": image, "reason": "test"});
    service.post::<Value>("/v1/revocations", &revoked).unwrap();
    session.ping().unwrap();
    session.close().unwrap();
    host.new_session().unwrap();
    assert_eq!(code(world.attest(&mut host)), "SHEF-ATT-025");
    assert_eq!(released(&service), 2);

    // The chain of receipts, verified with the service's published keys.
    let page = service.receipts().unwrap();
    let keys = service.keys_that_sign().unwrap();
    let mut audit = Audit::new("default", &keys, None);
    for row in &page.receipts {
        audit.push(&unbase64(&row.receipt)).unwrap();
    }
    assert_eq!(page.head.seq, audit.head().seq);
    drop(world);
    assert!(service.get::<api::Anchors>("/v1/trust-anchors").unwrap().trust_anchors.is_empty());
    assert!(service.keys().unwrap().iter().all(|key| key.disabled));
}

/// The owner compares everything that the service's policy accepts, keys included, with the owner's
/// expectations.
#[test]
fn the_services_word_is_not_enough() {
    let verifier = Verifier::start();
    let service = verifier.service();
    let dir = tempfile::tempdir().unwrap();
    let mut world = world(dir.path(), &service);
    let (mut host, _) = world.card(&mut |_| {}).unwrap();
    world.load(&mut host).unwrap();
    let keys = service.keys().unwrap();
    let key =
        keys.iter().map(|key| key.name.as_str()).find(|name| name.ends_with("-data")).unwrap();
    let mut entropy = shef::SystemEntropy::new().unwrap();
    let mut attest = |service: &shef::Service, version, expect: &Expect| {
        let session = Session::<Connected>::connect(&mut host).unwrap();
        session.attest_by(service, (key, version), expect, now(), &mut entropy).map(drop)
    };
    let floor = world.verifier().policy().clone();
    let expect = world.expect().floor(floor.clone());
    attest(&service, None, &expect).unwrap();
    attest(&service, Some(1), &expect).unwrap();
    attest(&service, None, &expect.clone().receipt_keys(service.keys_that_sign().unwrap()))
        .unwrap();
    // An owner without a floor accepts hardware only.
    assert_eq!(code(attest(&service, None, &world.expect())), "SHEF-ATT-020");
    let newer = shef_verify::Policy { min_image_svn: 99, ..floor.clone() };
    assert_eq!(code(attest(&service, None, &world.expect().floor(newer))), "SHEF-ATT-043");
    let other = Expect::image(world.config(), &[7; 32]).floor(floor);
    assert_eq!(code(attest(&service, None, &other)), "SHEF-SDK-050");
    // Receipts under a different key from the one that the owner knows.
    let stranger =
        vec![shef_proto::hpke_suite::generate_key_pair(&mut shef::SystemEntropy::new().unwrap()).1];
    assert_eq!(
        code(attest(&service, None, &expect.clone().receipt_keys(stranger))),
        "SHEF-PRO-090"
    );
    // Revocations from the owner's list.
    let current = shef_verify::Revocations {
        issued: now() - 5,
        next_update: now() + 60,
        ..Default::default()
    };
    attest(&service, None, &expect.clone().revocations(current.clone())).unwrap();
    let revoked =
        shef_verify::Revocations { images: [hex::encode(world.image().digest)].into(), ..current };
    assert_eq!(code(attest(&service, None, &expect.revocations(revoked))), "SHEF-ATT-025");
}

/// A service, or an attacker with its key, whose answers to releases belong to something else. All
/// other answers are genuine.
struct Dishonest {
    port: u16,
    /// The change to the answer to a release.
    deed: std::sync::Arc<std::sync::Mutex<Deed>>,
}

type Deed = Box<dyn FnMut(&mut Value) + Send>;

impl Dishonest {
    fn start(verifier: &Verifier) -> Self {
        use std::io::{BufRead, BufReader, Read, Write};
        let read = |name: &str| verifier.dir.join(name);
        let tls = rustls::ServerConfig::builder_with_provider(
            rustls::crypto::aws_lc_rs::default_provider().into(),
        )
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            shef_remote::certificates(&read("server.pem")).unwrap(),
            shef_remote::private_key(&read("server.key")).unwrap(),
        )
        .unwrap();
        let (tls, service) = (std::sync::Arc::new(tls), verifier.service());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let deed: std::sync::Arc<std::sync::Mutex<Deed>> =
            std::sync::Arc::new(std::sync::Mutex::new(Box::new(|_| {})));
        let done = deed.clone();
        std::thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                let connection = rustls::ServerConnection::new(tls.clone()).unwrap();
                let mut stream = BufReader::new(rustls::StreamOwned::new(connection, tcp));
                let (mut first, mut length) = (String::new(), 0);
                stream.read_line(&mut first).unwrap();
                let path = first.split(' ').nth(1).unwrap().to_owned();
                loop {
                    let mut line = String::new();
                    stream.read_line(&mut line).unwrap();
                    let line = line.trim().to_ascii_lowercase();
                    if let Some(value) = line.strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    if line.is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                let mut answer: Value = if length > 0 {
                    service.post(&path, &serde_json::from_slice::<Value>(&body).unwrap())
                } else {
                    service.get(&path)
                }
                .unwrap();
                if path == "/v1/release" {
                    done.lock().unwrap()(&mut answer);
                }
                let answer = answer.to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                    answer.len()
                );
                let mut stream = stream.into_inner();
                stream.write_all((head + &answer).as_bytes()).unwrap();
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
        Self { port, deed }
    }

    fn does(&self, deed: impl FnMut(&mut Value) + Send + 'static) {
        *self.deed.lock().unwrap() = Box::new(deed);
    }
}

#[test]
fn an_answer_that_belongs_to_another_release_is_refused() {
    let verifier = Verifier::start();
    let service = verifier.service();
    let dir = tempfile::tempdir().unwrap();
    let mut world = world(dir.path(), &service);
    let (mut host, _) = world.card(&mut |_| {}).unwrap();
    world.load(&mut host).unwrap();
    let keys = service.keys().unwrap();
    let key =
        keys.iter().map(|key| key.name.as_str()).find(|name| name.ends_with("-data")).unwrap();
    let expect = world.expect().floor(world.verifier().policy().clone());
    let dishonest = Dishonest::start(&verifier);
    let between = shef::Service::new(
        &format!("https://localhost:{}", dishonest.port),
        verifier.files("operator"),
    )
    .unwrap();
    let mut entropy = shef::SystemEntropy::new().unwrap();
    let mut attest = || {
        let session = Session::<Connected>::connect(&mut host).unwrap();
        session.attest_by(&between, (key, None), &expect, now(), &mut entropy).map(drop)
    };
    let first = std::sync::Arc::new(std::sync::Mutex::new(Value::Null));
    let seen = first.clone();
    dishonest.does(move |answer| seen.lock().unwrap().clone_from(answer));
    attest().unwrap();
    let first = first.lock().unwrap().clone();
    dishonest.does(|answer| answer["version"] = 2.into());
    assert_eq!(code(attest()), "SHEF-SDK-047");
    dishonest.does(|answer| answer["head"]["seq"] = 0.into());
    assert_eq!(code(attest()), "SHEF-SDK-047");
    for (part, expected) in [("box", "SHEF-ATT-062"), ("receipt", "SHEF-ATT-062")] {
        let old = first[part].clone();
        dishonest.does(move |answer| answer[part] = old.clone());
        assert_eq!(code(attest()), expected, "the {part} of an earlier release");
    }
    dishonest.does(|_| {});
    attest().unwrap();
}

/// Refused before the service releases anything to a key derived from a seed.
#[test]
fn nothing_is_released_to_a_seed_for_hardware() {
    let verifier = Verifier::start();
    let service = verifier.service();
    let dir = tempfile::tempdir().unwrap();
    let mut world = world(dir.path(), &service);
    let (mut host, bench) = world.card(&mut |_| {}).unwrap();
    world.load(&mut host).unwrap();
    let before = released(&service);
    bench.tap().corrupt(Hardware::new(&world, "https://verifier.test"));
    let mut release = |source: &mut shef::Source| {
        code(service.release_data_key(&mut host, "none", None, source).map(drop))
    };
    assert_eq!(release(&mut shef::Source::new(Some(1), "owner").unwrap()), "SHEF-SDK-044");
    assert_eq!(
        release(&mut shef::Source::new(None, "owner").unwrap()),
        "SHEF-SVC-020",
        "the service was asked"
    );
    assert_eq!(released(&service), before);
}

/// The command has added the key, and blocks on printing the result: its output is full. Only root
/// can search its memory then.
#[test]
fn a_secret_that_was_brought_leaves_the_memory_of_the_command() {
    use std::io::{Read, Write};
    let verifier = Verifier::start();
    let service = verifier.service();
    let dir = tempfile::tempdir().unwrap();
    let _world = world(dir.path(), &service);
    let mut secret = vec![0; 500];
    shef_proto::entropy::Entropy::fill(&mut shef::SystemEntropy::new().unwrap(), &mut secret);
    let file = dir.path().join("secret");
    std::fs::write(&file, &secret).unwrap();
    let text = base64::Engine::encode(&base64::engine::general_purpose::URL_SAFE_NO_PAD, &secret);
    let needles = Needles::new([("secret", &secret[..]), ("text of the secret", text.as_bytes())]);

    let (mut reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(&[b' '; 1 << 16]).unwrap();
    let mut command = Command::new(shef_program());
    let policy = shef_e2e::policy_of_demo(&service.get("/v1/policies").unwrap());
    command.args(["--json", "keys", "add", "brought", "--policy", &policy, "--secret"]).arg(&file);
    command
        .args(["--verifier", &verifier.url(), "--as"])
        .arg(verifier.dir.join("operator"))
        .stdout(writer);
    let mut child = command.spawn().unwrap();
    drop(command);
    let until = std::time::Instant::now() + Duration::from_secs(60);
    while !service.keys().unwrap().iter().any(|key| key.name == "brought") {
        assert!(
            std::time::Instant::now() < until && child.try_wait().unwrap().is_none(),
            "the key is not added"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    // The output follows the answer shortly.
    std::thread::sleep(Duration::from_secs(1));
    assert!(child.try_wait().unwrap().is_none(), "it waits for its output");
    match std::fs::File::open(format!("/proc/{}/mem", child.id())) {
        Ok(_) => {
            let found = needles.found_in_process(child.id());
            assert!(found.searched > 1 << 20, "{} bytes", found.searched);
            assert!(found.places.is_empty(), "{:#?}", found.places);
        }
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
    }
    let mut said = Vec::new();
    reader.read_to_end(&mut said).unwrap();
    assert!(child.wait().unwrap().success() && said.len() > 1 << 16);
}

/// A service that accepts connections and does not answer.
#[test]
fn a_request_ends_at_its_time_and_when_the_owner_says_so() {
    let verifier = Verifier::start();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}", silent.local_addr().unwrap().port());
    let service = shef::Service::new(&url, verifier.files("operator")).unwrap();
    let begun = std::time::Instant::now();
    assert_eq!(
        code(service.clone().with_deadline(Duration::from_millis(200)).ready()),
        "SHEF-SDK-031"
    );
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    drop(silent.accept().unwrap());
    let cancel = shef::Cancel::default();
    let ended = service.ended_by(&cancel);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| ended.ready());
        std::thread::sleep(Duration::from_millis(100));
        cancel.cancel();
        assert_eq!(code(waits.join().unwrap()), "SHEF-SDK-049");
    });
    assert!(begun.elapsed() < Duration::from_secs(40), "{:?}", begun.elapsed());
    // No further request is sent. On a busy machine, the earlier ones have tried more than once.
    silent.set_nonblocking(true).unwrap();
    while silent.accept().is_ok() {}
    assert_eq!(code(ended.ready()), "SHEF-SDK-049");
    assert_eq!(silent.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

fn unbase64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).unwrap()
}

#[test]
fn the_whole_demo_has_its_keys_from_a_service_of_its_own() {
    let program = shef_program();
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept");
    let args = DemoArgs {
        device: "sim:model".into(),
        service: ServiceArgs { verifier: Some("local".into()), ..ServiceArgs::default() },
        keep: Some(kept.clone()),
        ..DemoArgs::default()
    };
    let report = shef_e2e::demo(&args);
    assert!(report.steps.iter().all(|step| step.ok), "{:?}", report.steps);
    assert_eq!((report.digits.correct, report.digits.equal_to_reference), (766, true));
    for (attack, (name, code)) in report.attacks.iter().zip(ATTACKS) {
        assert!(attack.detected && attack.words_delivered == 0, "{name}: {}", attack.detail);
        assert_eq!((attack.name, attack.code.as_str()), (*name, *code), "{}", attack.detail);
    }
    assert_eq!(report.attacks.len(), ATTACKS.len());
    // The honest run released two keys: that of the image and that of the data. The rest runs
    // without the service.
    let verifier = report.verifier.unwrap();
    assert!(
        verifier.url.starts_with("https://localhost:") && verifier.head.starts_with("2:"),
        "{verifier:?}"
    );
    let audit = |head: &str| {
        let mut command = Command::new(&program);
        command
            .args(["audit", "verify", "--head", head, "--jwks"])
            .args([kept.join("jwks.json"), kept.join("receipts.json")]);
        command.output().unwrap().status.code()
    };
    assert_eq!(audit(&verifier.head), Some(0));
    let receipts = kept.join("receipts.json");
    let mut page: Value = serde_json::from_slice(&std::fs::read(&receipts).unwrap()).unwrap();
    page["receipts"].as_array_mut().unwrap().pop();
    std::fs::write(&receipts, page.to_string()).unwrap();
    assert_eq!(audit(&verifier.head), Some(1), "a truncated chain");
}

/// An interrupt removes what a demo has left at a service, and no demo touches a policy of others.
#[test]
fn an_interrupted_demo_leaves_nothing_at_a_service() {
    let verifier = Verifier::start();
    let service = verifier.service();
    let own = Policy::strict("demo", &[RootOfTrust::ShefBoot]);
    let own = service.add_policy("demo", &own).unwrap();
    let enabled = || {
        let keys = service.keys().unwrap();
        keys.iter().filter(|key| !key.disabled).count()
    };
    let objects = || {
        let count = |kind: &str| {
            let list = service.get_bytes(&format!("/v1/{kind}")).unwrap();
            String::from_utf8_lossy(&list).matches("\"demo-").count()
        };
        enabled() + count("trust-anchors") + count("corims")
    };
    let dir = tempfile::tempdir().unwrap();
    let wave = dir.path().join("wave.fst").to_str().unwrap().to_owned();
    let model: &[&str] = &["sim:model"];
    let rtl: &[&str] = &["sim:rtl?kernel=native", "--wave", &wave];
    // With the first object posted, others are about to be.
    let rounds = [
        ("-TERM", model, 1),
        ("-TERM", model, 1),
        ("-TERM", model, 1),
        ("-QUIT", model, 1),
        ("-TERM", rtl, 1),
        ("-TERM", model, 5),
    ];
    for (signal, device, most) in rounds {
        let mut demo = Command::new(shef_program())
            .args(["demo", "--verifier", &verifier.url(), "--as"])
            .arg(verifier.dir.join("operator"))
            .arg("--device")
            .args(device)
            .env("TMPDIR", dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let begin = std::time::Instant::now();
        while objects() < most {
            assert!(demo.try_wait().unwrap().is_none() && begin.elapsed().as_secs() < 120);
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let mut kill = Command::new("kill");
        assert!(kill.args([signal, &demo.id().to_string()]).status().unwrap().success());
        let output = demo.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_none() && !said.contains("still has"), "{said}");
        assert_eq!(objects(), 0, "{signal} {device:?}");
        let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap()).collect();
        assert!(left.is_empty(), "{signal} {device:?}: {left:?}");
    }
    let policies: api::Policies = service.get("/v1/policies").unwrap();
    let demo = policies.policies.iter().find(|row| row.name == "demo").unwrap();
    assert_eq!((own.as_str(), demo.version), ("demo@1", 1));
}

#[test]
fn a_device_is_attested_and_keys_are_managed_from_the_command_line() {
    let verifier = Verifier::start();
    let service = verifier.service();
    let card = Served::start("model");
    let (device, dir) = (card.uri(), tempfile::tempdir().unwrap());
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let identity = Control::open(&Control::path_of(&card.socket())).unwrap().identity().unwrap();

    // No trust anchors are configured yet.
    let config = sim::config().unwrap();
    let mut policy = Policy::strict("default", &[RootOfTrust::Simulated]);
    policy.on_fault = vec![config.on_fault().name().to_owned()];
    policy.bypass = config.bypass_regions().map(|region| region.name.clone()).collect();
    service.add_policy("default", &policy).unwrap();
    let evidence = path("kernel.cmw");
    let attest = ["attest", &device, "--out", &evidence, "--form", "cmw"];
    verifier.fails("operator", &attest, 1, "SHEF-ATT-011");
    let denied: Value =
        serde_json::from_slice(&verifier.shef("operator", &attest).stdout).expect("a document");
    assert_eq!(
        (&denied["verdict"], &denied["code"], &denied["evidence"]),
        (&"denied".into(), &"SHEF-ATT-011".into(), &evidence.as_str().into())
    );
    service
        .add_anchor(
            &TrustAnchor::new("maker", RootOfTrust::Simulated, false, &identity.root).unwrap(),
        )
        .unwrap();
    let known = ReferenceValues {
        kernels: vec![KernelReference {
            name: "kernel".into(),
            digest: sim::kernel_digest(sim::SimKernel::Native),
            svn: sim::KERNEL_SVN,
        }],
        shells: vec![ShellReference { name: "simulation".into(), digest: sim::shell_digest() }],
        images: Vec::new(),
    };
    service.add_reference("card", &known).unwrap();
    let attested = verifier.ok("operator", &attest);
    assert_eq!(
        (&attested["verdict"], &attested["policy"]),
        (&"accepted".into(), &"default@1".into())
    );
    assert_eq!(attested["audience"], "https://verifier.test");
    let wrapper = shef_verify::cmw::Cmw::parse(&std::fs::read(&evidence).unwrap()).unwrap();
    shef_proto::evidence::Evidence::parse(wrapper.evidence().unwrap()).unwrap();
    assert_eq!(
        std::fs::read_to_string(format!("{evidence}.nonce")).unwrap().trim(),
        attested["nonce"]
    );

    // An image, its key, and the key in a box for this kernel, which accepts it.
    let image = path("digits.shef");
    let build = Command::new(shef_program())
        .args([
            "image",
            "build",
            "--simulated-card",
            "--svn",
            "2",
            "--vendor",
            &path("vendor"),
            "--out",
            &image,
        ])
        .output();
    assert!(build.unwrap().status.success());
    let vendor = path("vendor");
    let add = [
        "keys",
        "add",
        "digits",
        "--policy",
        "default",
        "--image",
        &image,
        "--vendor",
        &vendor,
        "--max-releases",
        "2",
    ];
    assert_eq!(verifier.ok("operator", &add)["layer"], "kernel");
    verifier.fails("operator", &add, 5, "SHEF-SVC-054");
    let (key_box, receipt) = (path("box"), path("receipt"));
    let release = [
        "keys",
        "release",
        "digits",
        &device,
        "--layer",
        "kernel",
        "--out",
        &key_box,
        "--receipt",
        &receipt,
    ];
    let done = verifier.ok("operator", &release);
    assert!(done["head"].as_str().unwrap().starts_with("1:"), "{done}");
    verifier.fails("operator", &release, 5, "SHEF-CLI-015");
    assert_eq!(
        shef_proto::receipt::Receipt::verify(
            &std::fs::read(&receipt).unwrap(),
            &service.keys_that_sign().unwrap()
        )
        .unwrap()
        .seq,
        1
    );
    let boxed = shef_proto::release::KeyBox::from_cbor(&std::fs::read(&key_box).unwrap()).unwrap();
    assert_eq!((boxed.info().key_id.as_str(), boxed.info().tenant.as_str()), ("digits", "default"));

    // Releases are counted, and versions, switches and roles persist.
    verifier.ok(
        "operator",
        &[
            "keys", "rotate", "digits", "--policy", "default", "--image", &image, "--vendor",
            &vendor,
        ],
    );
    let shown = verifier.ok("operator", &["keys", "show", "digits"]);
    let first = shown["versions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|version| version["version"] == 1)
        .unwrap();
    assert_eq!((&shown["version"], &first["released"]), (&2.into(), &1.into()));
    // A data key for the Shield that the image contains, written to a file that only its owner can
    // read.
    let signers = std::fs::read_to_string(path("digits.signers.toml")).unwrap();
    let signer = CorimSigner::list_from_toml(&signers).unwrap().remove(0);
    service
        .put::<api::AddedSigner>(
            &format!("/v1/signers/{}", signer.name()),
            "application/toml",
            signers.as_bytes(),
        )
        .unwrap();
    service
        .put::<api::AddedCorim>(
            "/v1/corims/digits",
            "application/rim+cose",
            &std::fs::read(path("digits.corim")).unwrap(),
        )
        .unwrap();
    verifier.ok("operator", &["keys", "add", "data", "--policy", "default", "--generate", "32"]);
    let secret = path("secret");
    let load = ["--load", &image, "--image-key", "digits"];
    let release = [&release_to(&device, "data", "shield", &secret)[..], &load].concat();
    assert_eq!(verifier.ok("operator", &release)["layer"], "shield");
    let meta = std::fs::metadata(&secret).unwrap();
    assert_eq!(
        (meta.len(), std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o777),
        (32, 0o600)
    );
    let shield = path("shield.cbor");
    let attest_shield =
        [&["attest", &device, "--layer", "shield", "--out", &shield][..], &load].concat();
    assert_eq!(verifier.ok("operator", &attest_shield)["verdict"], "accepted");

    let (second, out) = (path("second"), path("other"));
    let mut first: [&str; 10] = [
        "keys",
        "release",
        "digits",
        &device,
        "--layer",
        "kernel",
        "--version",
        "1",
        "--out",
        &second,
    ];
    verifier.ok("operator", &first);
    first[9] = &out;
    verifier.fails("operator", &first, 1, "SHEF-SVC-063");
    assert_eq!(verifier.ok("operator", &["keys", "list"]).as_array().unwrap().len(), 2);
    verifier.ok("operator", &["keys", "disable", "digits"]);
    verifier.ok("operator", &["keys", "add", "old", "--policy", "default", "--generate", "32"]);
    verifier.ok("operator", &["keys", "rotate", "old", "--policy", "default", "--generate", "32"]);
    verifier.fails("operator", &["keys", "delete", "old", "--version", "2"], 1, "SHEF-SVC-066");
    verifier.ok("operator", &["keys", "delete", "old", "--version", "1"]);
    verifier.ok("operator", &["keys", "delete", "old"]);
    verifier.fails("operator", &["keys", "show", "old"], 5, "SHEF-SVC-020");
    verifier.fails("operator", &release_to(&device, "digits", "kernel", &out), 1, "SHEF-SVC-061");
    verifier.ok("operator", &["keys", "enable", "digits"]);
    verifier.fails("operator", &release_to(&device, "digits", "shield", &out), 1, "SHEF-KRN-014");
    verifier.fails("operator", &release_to(&device, "none", "kernel", &out), 5, "SHEF-SVC-020");
    verifier.fails("operator", &["keys", "show", "none"], 5, "SHEF-SVC-020");
    assert!(!Path::new(&out).exists(), "what was refused left a file");
    verifier.fails("operator", &["keys", "add", "more", "--policy", "default"], 2, "SHEF-CLI-001");
    verifier.fails(
        "operator",
        &["keys", "add", "more", "--policy", "none", "--generate", "32"],
        5,
        "SHEF-SVC-020",
    );

    verifier.client("fleet", Role::Attest, now());
    verifier.ok("fleet", &attest);
    let said = verifier.fails("fleet", &["keys", "list"], 5, "SHEF-SVC-028");
    assert!(said.contains("it needs audit or operator"), "{said}");
    verifier.fails("fleet", &release_to(&device, "digits", "kernel", &out), 5, "SHEF-SVC-028");

    let status = verifier.ok("operator", &["verifier", "status"]);
    assert_eq!(
        (&status["ready"], &status["devices"], &status["devices_stale"]),
        (&true.into(), &1.into(), &0.into())
    );
    assert_eq!(status["attention"], serde_json::json!([]));
    assert!(verifier.ok("fleet", &["verifier", "status"])["devices"].is_null());
}

fn release_to<'a>(device: &'a str, key: &'a str, layer: &'a str, out: &'a str) -> [&'a str; 8] {
    ["keys", "release", key, device, "--layer", layer, "--out", out]
}

#[test]
fn evidence_to_a_nonce_of_ones_own_is_verified_from_files() {
    let card = Served::start("model");
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("e");
    let with = |nonce: &str, more: &[&str]| {
        let mut command = Command::new(shef_program());
        command
            .args(["--json", "attest", &card.uri(), "--nonce", nonce, "--audience", "me", "--out"])
            .arg(&out)
            .args(more)
            .env("SHEF_VERIFIER", "https://localhost:1")
            .output()
            .unwrap()
    };
    let attest = |nonce: &str| with(nonce, &[]);
    assert_eq!(attest("0011").status.code(), Some(5));
    let said = with(&"5a".repeat(32), &["--as", "me"]);
    assert_eq!(said.status.code(), Some(2), "{}", String::from_utf8_lossy(&said.stderr));
    let nonce = "5a".repeat(32);
    let attested = attest(&nonce);
    assert_eq!(attested.status.code(), Some(0));
    let said = String::from_utf8_lossy(&attested.stderr);
    assert!(said.contains("the service in SHEF_VERIFIER appraises nothing"), "{said}");
    let evidence = shef_proto::evidence::Evidence::parse(&std::fs::read(&out).unwrap()).unwrap();
    let claims = &evidence.unverified_claims().common;
    assert_eq!((hex::encode(&claims.nonce), claims.audience.as_str()), (nonce, "me"));
}

#[test]
fn each_trouble_on_the_way_has_its_own_words() {
    let status = ["verifier", "status"];
    let verifier = Verifier::start();
    // Another CA.
    let other = Verifier::start();
    std::fs::rename(other.dir.join("ca.pem"), other.dir.join("good.pem")).unwrap();
    std::fs::copy(verifier.dir.join("ca.pem"), other.dir.join("ca.pem")).unwrap();
    let said = other.fails("operator", &status, 5, "SHEF-SDK-032");
    assert!(said.contains("is not good under the CA") && said.contains("ca.pem"), "{said}");
    // A client of another CA, an expired one, and one with another client's key.
    for end in [".pem", ".key"] {
        std::fs::copy(
            other.dir.join(format!("operator{end}")),
            verifier.dir.join(format!("other{end}")),
        )
        .unwrap();
    }
    assert!(
        verifier.fails("other", &status, 5, "SHEF-SDK-034").contains("refuses the certificate")
    );
    verifier.client("old", Role::Operator, now() - 800 * DAY);
    assert!(verifier.fails("old", &status, 5, "SHEF-SDK-034").contains("it has expired"));
    std::fs::copy(verifier.dir.join("operator.pem"), verifier.dir.join("mixed.pem")).unwrap();
    std::fs::copy(verifier.dir.join("old.key"), verifier.dir.join("mixed.key")).unwrap();
    verifier.fails("mixed", &status, 5, "SHEF-AGT-003");
    verifier.fails("missing", &status, 5, "SHEF-AGT-003");
    // A revoked client, and then an expired revocation list, under which every client is rejected.
    verifier.client("gone", Role::Operator, now());
    let reload = |issued: i64| {
        init::revoke(&verifier.dir, &[verifier.dir.join("gone.pem")], 1, true, issued).unwrap();
        let text = std::fs::read_to_string(verifier.dir.join("verifierd.toml")).unwrap();
        let text = text.replace("\nclient_ca", "\ncrls = [\"crl.pem\"]\nclient_ca");
        let config = Config::parse(&text, "verifierd.toml", &verifier.dir).unwrap();
        verifier.runtime.block_on(verifier.running.as_ref().unwrap().reload(config)).unwrap();
    };
    reload(now());
    assert!(verifier.fails("gone", &status, 5, "SHEF-SDK-034").contains("it was revoked"));
    verifier.ok("operator", &status);
    reload(now() - 3 * DAY);
    assert!(
        verifier
            .fails("operator", &status, 5, "SHEF-SDK-034")
            .contains("revocation list is past its end")
    );
    reload(now());
    // A service whose certificate has expired.
    let expired = Verifier::at(now() - 800 * DAY, Clock::Set(AtomicI64::new(now() - 790 * DAY)));
    expired.client("new", Role::Operator, now());
    assert!(expired.fails("new", &status, 3, "SHEF-SDK-033").contains("has expired"));
    // Certificate and devices that need the operator's attention: exit status 1.
    let stale = Verifier::at(now() - 360 * DAY, Clock::System);
    let output = stale.shef("operator", &status);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (output.status.code(), &document["certificate_days_left"]),
        (Some(1), &4.into()),
        "{document}"
    );
    assert!(document["attention"][0].as_str().unwrap().contains("expires in 4 days"), "{document}");
    // No server, the wrong server, no address, no certificate.
    let run = |args: &[&str]| {
        let output = Command::new(shef_program()).args(args).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let operator = verifier.dir.join("operator");
    let at = |url: &str| {
        run(&["verifier", "status", "--verifier", url, "--as", operator.to_str().unwrap()])
    };
    let (exit, said) = at("https://localhost:1");
    assert!(exit == 3 && said.contains("error [SHEF-SDK-031]"), "{said}");
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    std::thread::spawn(move || {
        use std::io::Write as _;
        silent
            .incoming()
            .flatten()
            .for_each(|mut stream| drop(stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")));
    });
    let (exit, said) = at(&format!("https://localhost:{port}"));
    assert!(exit == 3 && said.contains("error [SHEF-SDK-031]"), "{said}");
    for bad in ["http://localhost:1", "localhost:1", "https://", "https://a/b", "https://u@h"] {
        let (exit, said) = at(bad);
        assert!(exit == 5 && said.contains("error [SHEF-SDK-030]"), "{bad}: {said}");
    }
    let (exit, said) = run(&["verifier", "status", "--verifier", &verifier.url()]);
    assert!(exit == 2 && said.contains("--as PREFIX"), "{said}");
    let (exit, said) = run(&["keys", "list"]);
    assert!(exit == 2 && said.contains("--verifier https://HOST:PORT"), "{said}");
}

/// The files of `shef sim trust` are enough for a service to accept evidence of a simulated card,
/// in the order of the how-to page.
#[test]
fn a_simulated_card_is_accepted_with_the_files_of_sim_trust() {
    let (verifier, card) = (Verifier::start(), Served::start("model"));
    let out = verifier.dir.join("trust");
    let evidence = verifier.dir.join("kernel.cbor");
    let attest = ["attest", &card.uri(), "--out", evidence.to_str().unwrap()];
    let mut trust = Command::new(shef_program());
    trust
        .args(["--json", "--quiet", "sim", "trust", "--manufacturer"])
        .arg(card.manufacturer())
        .arg("--out")
        .arg(&out);
    let said = trust.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let file = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
    let service = verifier.service();
    service.add_policy("default", &Policy::from_toml(&file("policy.toml")).unwrap()).unwrap();
    service
        .add_reference(
            "simulated-card",
            &ReferenceValues::from_toml(&file("reference.toml")).unwrap(),
        )
        .unwrap();
    // Without the root, the card is unknown.
    verifier.fails("operator", &attest, 1, "SHEF-ATT-011");
    service.add_anchor(&TrustAnchor::list_from_toml(&file("anchors.toml")).unwrap()[0]).unwrap();
    assert_eq!(verifier.ok("operator", &attest)["verdict"], "accepted");
    // With the service in the environment, as on the page.
    let result = verifier.dir.join("result.jwt");
    let said = Command::new(shef_program())
        .args(attest)
        .arg("--result")
        .arg(&result)
        .env("SHEF_VERIFIER", verifier.url())
        .env("SHEF_VERIFIER_AS", verifier.dir.join("operator"))
        .output()
        .unwrap();
    assert!(said.status.success() && result.exists(), "{}", String::from_utf8_lossy(&said.stderr));
    let said =
        Command::new(shef_program()).args(attest).arg("--result").arg(&result).output().unwrap();
    assert_eq!(said.status.code(), Some(2), "{}", String::from_utf8_lossy(&said.stderr));
    let registration: Value = serde_json::from_str(&file("anchor.json")).unwrap();
    assert_eq!(
        (&registration["kind"], &registration["certificate"]),
        (&"simulated".into(), &file("root.pem").into())
    );
}

/// The keys of image and data leave the service for an appraised card only, and the policy of the
/// owner also applies.
#[test]
fn a_job_has_its_keys_from_a_service() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/vecadd");
    let (verifier, card) = (Verifier::start(), Served::project(&project));
    let path = |name: &str| verifier.dir.join(name).to_str().unwrap().to_owned();
    let make = |args: &[&str]| {
        let output = Command::new(shef_program()).arg("--quiet").args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let [trust, image, vendor, out] = ["trust", "add.shef", "vendor", "sums"].map(path);
    let maker = card.manufacturer().display().to_string();
    let project = project.display().to_string();
    make(&["sim", "trust", "--manufacturer", &maker, "--out", &trust]);
    make(&[
        "image",
        "build",
        "--project",
        &project,
        "--svn",
        "3",
        "--vendor",
        &vendor,
        "--out",
        &image,
    ]);
    let [anchors, reference, policy] =
        ["anchors", "reference", "policy"].map(|name| path(&format!("trust/{name}.toml")));

    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    let mut allows = Policy::from_toml(&read("trust/policy.toml")).unwrap();
    allows.bypass = vec!["progress".to_owned()];
    // The service's copy of the trust data permits the region; the owner's own does not yet.
    let folder = path("Card of the service");
    std::fs::create_dir(&folder).unwrap();
    for name in ["anchors", "reference"].map(|name| format!("{name}.toml")) {
        std::fs::copy(path(&format!("trust/{name}")), format!("{folder}/{name}")).unwrap();
    }
    let register = ["verifier", "register", &folder, &image];
    let said = verifier.fails("operator", &register, 5, "SHEF-CLI-010");
    assert!(said.contains("policy.toml"), "{said}");
    std::fs::write(format!("{folder}/policy.toml"), allows.to_toml().unwrap()).unwrap();
    // A name that the service refuses: the additions before it stay.
    let said = verifier.fails("operator", &register, 5, "SHEF-SVC-055");
    assert!(said.contains("card of the service"), "{said}");
    std::fs::rename(&folder, path("card")).unwrap();
    let secret = path("secret");
    make(&["image", "secret", "--vendor", &path("image vendor"), "--out", &secret]);
    let anchor = format!("{secret}/anchor.toml");
    let register = ["verifier", "register", &path("card"), &image, &anchor];
    for _ in 0..2 {
        let done = verifier.ok("operator", &register);
        let names: Vec<_> =
            done["registered"].as_array().unwrap().iter().map(|r| &r["name"]).collect();
        assert_eq!(names, ["simulated", "card", "default@1", "vendor", "add", "image-vendor"]);
    }
    let known: api::Anchors = verifier.service().get("/v1/trust-anchors").unwrap();
    let known = known.trust_anchors;
    assert!(known.iter().any(|anchor| anchor.kind == "provider"), "{known:?}");
    let signers = read("add.signers.toml");
    std::fs::write(path("add.signers.toml"), signers.repeat(2)).unwrap();
    verifier.fails("operator", &register, 5, "SHEF-CLI-016");
    let add =
        ["keys", "add", "image", "--policy", "default", "--image", &image, "--vendor", &vendor];
    verifier.ok("operator", &add);
    verifier.ok("operator", &["keys", "add", "data", "--policy", "default", "--generate", "32"]);

    let (device, result) = (card.uri(), format!("result0={out}:16384"));
    let run = [
        &["run", &project, "--job", "add", "--device", &device, "--out", &result][..],
        &["--image", &image, "--image-key", "image", "--data-key", "data"],
    ]
    .concat();
    let trusted = ["--anchors", &anchors, "--reference", &reference, "--policy", &policy];
    // The owner's floor is strict for hardware, and that of the file for unprotected regions.
    verifier.fails("operator", &run, 1, "SHEF-ATT-020");
    verifier.fails("operator", &[&run[..], &trusted].concat(), 1, "SHEF-ATT-045");
    assert!(!Path::new(&out).exists());
    std::fs::write(&policy, allows.to_toml().unwrap()).unwrap();
    let run = [&run[..], &trusted, &["--sessions", "2"]].concat();
    let done = verifier.ok("operator", &run);
    assert_eq!(done["sessions"].as_array().unwrap().len(), 2);
    let by = done["sessions"][1]["appraisal"].as_str().unwrap();
    assert!(by.starts_with("the service released data version 1, receipt "), "{by}");
    assert_eq!(std::fs::metadata(&out).unwrap().len(), 16384);
    // Its receipts, audited without the service.
    let receipts = path("receipts.json");
    let events = path("events.json");
    let fetch = ["audit", "receipts", "--out", &receipts, "--events", &events];
    let fetched = verifier.ok("operator", &fetch);
    let jwks = path("jwks.json");
    std::fs::write(&jwks, verifier.service().get_bytes("/.well-known/jwks.json").unwrap()).unwrap();
    let audit = || {
        let mut command = Command::new(shef_program());
        command
            .args(["--json", "audit", "verify", &receipts, "--events", &events, "--jwks", &jwks]);
        command.output().unwrap()
    };
    let audited: Value = serde_json::from_slice(&audit().stdout).unwrap();
    for list in ["receipts", "events"] {
        assert_eq!(audited[list], fetched[list]);
    }
    // An event that precedes the releases is left out, as if it never was.
    let text = std::fs::read_to_string(&events).unwrap();
    let mut page: Value = serde_json::from_str(&text).unwrap();
    page["events"].as_array_mut().unwrap().truncate(2);
    std::fs::write(&events, page.to_string()).unwrap();
    let truncated = audit();
    let said = String::from_utf8(truncated.stderr).unwrap();
    assert!(truncated.status.code() == Some(1) && said.contains("[SHEF-PRO-095]"), "{said}");
    assert!(audited["receipts"].as_u64().unwrap() >= 3, "{audited}");

    // An image of another project.
    let digits = path("digits.shef");
    make(&[
        "image",
        "build",
        "--simulated-card",
        "--svn",
        "1",
        "--vendor",
        &vendor,
        "--out",
        &digits,
    ]);
    let mut other = run.clone();
    *other.iter_mut().find(|arg| **arg == image).unwrap() = &digits;
    let said = verifier.fails("operator", &other, 5, "SHEF-CLI-029");
    let [own, others] = [Design::project(Path::new(&project)), Design::digits()]
        .map(|design| hex::encode(design.unwrap().digest()));
    assert!(said.contains(&format!("digits.shef is digits-knn, design {others}")), "{said}");
    assert!(said.contains(&format!("the project is vecadd, design {own}")), "{said}");
}
