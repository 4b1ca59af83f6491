//! An operator reloads, revokes, drains and monitors an agent, or loses a card, while owners work.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use shef_agent::Config;
use shef_agent::init::{renew, revoke};
use shef_device::Device;
use shef_fixtures::agent::*;
use shef_fixtures::der::certificate_with_other_s;
use shef_proto::crypto::sha256;
use shef_remote::wire::{DeviceOp, DeviceState, ToAgent, ToOwner};
use shef_remote::{TlsFiles, certificates, list};
use shef_tls::ca::{Ca, Holder, KeyPair, Validity};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(600);

fn state(bed: &Bed, owner: &str) -> DeviceState {
    list("localhost", bed.address.port(), &bed.files(owner), &limits()).unwrap()[0].state
}

#[test]
fn a_revoked_owner_loses_its_sessions_at_once_and_others_keep_theirs() {
    let bed = Bed::new(LONG);
    let mut alice = bed.open("alice", "card1").unwrap();
    let mut bob = bed.open("bob", "card0").unwrap();
    alice.ctl_write32(SUM, 3).unwrap();
    bob.ctl_write32(SUM, 4).unwrap();
    assert_eq!(revoke(&bed.agent_dir(), "alice").unwrap().added, 1);
    // No SIGHUP, and no reload of the configuration.
    eventually("the wipe", || bed.cards["card1"].resets.load(Ordering::SeqCst) == 1);
    assert_eq!(code(alice.ctl_read32(SUM)), "SHEF-AGT-011");
    assert_eq!(code(bed.open("alice", "card1")), "SHEF-AGT-011");
    assert_eq!(bob.ctl_read32(SUM).unwrap(), 4);
    // A missing list admits no owner, and changes nothing.
    std::fs::remove_file(bed.agent_dir().join("revoked")).unwrap();
    assert_eq!(bed.handle().reload(&bed.config).unwrap_err().code(), "SHEF-AGT-017");
    assert_eq!(code(bed.open("alice", "card1")), "SHEF-AGT-011");
}

/// `n - s` for s, which needs no key, makes another certificate of it that TLS accepts as well.
#[test]
fn a_revoked_owner_stays_out_with_either_encoding_of_its_certificate() {
    use base64::Engine as _;
    let bed = Bed::new(LONG);
    let (file, list_file) = (bed.files("alice").cert, bed.agent_dir().join("revoked"));
    let one = certificates(&file).unwrap().remove(0).to_vec();
    let other = certificate_with_other_s(&one);
    let shown = [&one, &other].map(|der| {
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
    });
    let asks = |pem: &String| {
        std::fs::write(&file, pem).unwrap();
        code(list("localhost", bed.address.port(), &bed.files("alice"), &limits()))
    };
    for der in [&one, &other] {
        assert_eq!(shown.each_ref().map(asks), ["accepted", "accepted"]);
        std::fs::write(&list_file, hex::encode(sha256(der))).unwrap();
        for pem in &shown {
            eventually("the revocation", || asks(pem) == "SHEF-AGT-011");
        }
        std::fs::write(&list_file, "").unwrap();
        eventually("the empty list", || asks(&shown[0]) == "accepted");
    }
}

#[test]
fn an_owner_who_came_before_its_certificate_was_revoked_has_no_card() {
    let bed = Bed::new(LONG);
    let [mut opens, mut lists] = [(); 2].map(|()| {
        let mut alice = Raw::new(&bed, "alice");
        alice.say(&ToAgent::Hello { min: 1, max: 1, program: "test".into() });
        assert!(matches!(alice.hear(), Ok(ToOwner::Welcome { .. })));
        alice
    });
    let mut inside = bed.open("alice", "card0").unwrap();
    revoke(&bed.agent_dir(), "alice").unwrap();
    // A card that is removed from the configuration stays until a restart, but she loses it.
    let mut config = bed.config.clone();
    config.devices.remove("card0").unwrap();
    bed.handle().reload(&config).unwrap();
    assert!(inside.ctl_read32(SUM).is_err());
    opens.say(&ToAgent::Open { device: "card1".into(), resume: None });
    assert!(matches!(opens.hear(), Ok(ToOwner::Refused { .. })));
    lists.say(&ToAgent::List);
    assert!(matches!(lists.hear(), Ok(ToOwner::Devices(list)) if list.is_empty()));
}

#[test]
fn owners_of_a_device_and_certificates_change_without_a_restart() {
    let bed = Bed::new(LONG);
    let mut alice = bed.open("alice", "card1").unwrap();
    let mut bob = bed.open("bob", "card0").unwrap();
    let mut config = bed.config.clone();
    config.devices.get_mut("card1").unwrap().owners = vec!["bob".into()];
    renew(&bed.agent_dir(), None).unwrap();
    renew(&bed.agent_dir(), Some("bob")).unwrap();
    bed.handle().reload(&config).unwrap();
    bob.ctl_write32(SUM, 1).unwrap();
    eventually("the wipe", || bed.cards["card1"].resets.load(Ordering::SeqCst) == 1);
    assert_eq!(code(alice.ctl_read32(SUM)), "SHEF-AGT-006");
    // With the new certificates on both sides.
    bed.open("bob", "card1").unwrap().ctl_write32(SUM, 1).unwrap();
    assert_eq!(bob.ctl_read32(SUM).unwrap(), 1);
}

#[test]
fn an_agent_that_drains_lets_sessions_end_and_none_begin() {
    let mut bed = Bed::with(LONG, |config| config.drain = LONG);
    let mut alice = bed.open("alice", "card0").unwrap();
    bed.handle().drain();
    eventually("the refusal", || code(bed.open("bob", "card0")) != "SHEF-AGT-007");
    assert_eq!(code(bed.open("alice", "card1")), "SHEF-AGT-012");
    alice.ctl_write32(SUM, 5).unwrap();
    assert_eq!(alice.ctl_read32(SUM).unwrap(), 5);
    drop(alice);
    bed.ended();
    assert_eq!(bed.cards["card0"].resets.load(Ordering::SeqCst), 1);
}

#[test]
fn an_agent_that_is_asked_twice_ends_at_once() {
    let mut bed = Bed::with(LONG, |config| config.drain = LONG);
    let mut alice = bed.open("alice", "card0").unwrap();
    bed.handle().drain();
    eventually("the refusal", || code(bed.open("alice", "card1")) == "SHEF-AGT-012");
    bed.handle().drain();
    bed.ended();
    assert_eq!(bed.cards["card0"].resets.load(Ordering::SeqCst), 1);
    assert!(alice.ctl_read32(SUM).is_err());
}

fn get(at: SocketAddr, path: &str) -> String {
    let mut tcp = TcpStream::connect(at).unwrap();
    write!(tcp, "GET {path} HTTP/1.1\r\nHost: agent\r\n\r\n").unwrap();
    let mut text = String::new();
    tcp.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_card_that_dies_is_noticed_and_opened_anew_and_metrics_say_so() {
    let bed = Bed::with(LONG, |config| config.metrics = Some(([127, 0, 0, 1], 0).into()));
    let at = bed.metrics.unwrap();
    let shows = |row: &str| get(at, "/metrics").contains(row);
    let alice = bed.open("alice", "card1").unwrap();
    eventually("both cards", || {
        shows("shef_agent_device_state{device=\"card0\",state=\"free\"} 1")
    });
    assert!(
        shows("shef_agent_device_state{device=\"card1\",state=\"in use\"} 1")
            && shows("shef_agent_sessions_total{device=\"card1\"} 1")
    );
    assert!(
        get(at, "/healthz").starts_with("HTTP/1.1 200")
            && get(at, "/readyz").starts_with("HTTP/1.1 200")
    );
    assert!(get(at, "/").starts_with("HTTP/1.1 404"));
    // The card is idle, and no owner requests it.
    bed.cards["card0"].broken.store(true, Ordering::SeqCst);
    eventually("the notice", || {
        shows("shef_agent_device_state{device=\"card0\",state=\"failed\"} 1")
    });
    bed.cards["card0"].broken.store(false, Ordering::SeqCst);
    eventually("the card", || state(&bed, "bob") == DeviceState::Free);
    bed.open("bob", "card0").unwrap().ctl_write32(SUM, 1).unwrap();
    drop(alice);
}

#[test]
fn memory_of_a_card_is_cleared_between_owners_where_that_is_asked_for() {
    for clear in [true, false] {
        let bed =
            Bed::with(LONG, |config| config.devices.get_mut("card0").unwrap().clear_memory = clear);
        bed.cards["card0"].keeps_memory.store(true, Ordering::SeqCst);
        bed.open("alice", "card0").unwrap().mem_write(MEMORY - 4, &[9; 4]).unwrap();
        assert_eq!(left_to_bob(&bed), if clear { [0; 4] } else { [9; 4] });
    }
}

/// Four bytes that alice left, as bob reads them.
fn left_to_bob(bed: &Bed) -> [u8; 4] {
    let mut back = [0; 4];
    bed.open("bob", "card0").unwrap().mem_read(MEMORY - 4, &mut back).unwrap();
    back
}

#[test]
fn memory_that_was_not_cleared_is_cleared_before_the_card_has_an_owner_again() {
    let mut bed =
        Bed::with(LONG, |config| config.devices.get_mut("card0").unwrap().clear_memory = true);
    let card = Arc::clone(&bed.cards["card0"]);
    card.keeps_memory.store(true, Ordering::SeqCst);
    let leave = |bed: &Bed| {
        let mut alice = bed.open("alice", "card0").unwrap();
        alice.mem_write(MEMORY - 4, &[9; 4]).unwrap();
        alice
    };
    // The card fails while it is being cleared, and is reopened.
    let alice = leave(&bed);
    card.read_only.store(true, Ordering::SeqCst);
    drop(alice);
    eventually("the failure", || state(&bed, "bob") == DeviceState::Failed);
    card.read_only.store(false, Ordering::SeqCst);
    eventually("the card", || state(&bed, "bob") == DeviceState::Free);
    assert_eq!(left_to_bob(&bed), [0; 4]);
    // The agent ends, which does not wait for this much memory, and another one starts.
    let alice = leave(&bed);
    bed.restart();
    drop(alice);
    assert_eq!(left_to_bob(&bed), [0; 4]);
}

#[test]
fn a_card_is_wiped_once_and_not_under_its_next_owner() {
    let bed = Bed::new(LONG);
    let card = Arc::clone(&bed.cards["card0"]);
    let alice = bed.open("alice", "card0").unwrap();
    // Alice loses her access to the card while she closes her session.
    card.slow_clock.store(500, Ordering::SeqCst);
    let mut config = bed.config.clone();
    config.devices.get_mut("card0").unwrap().owners = vec!["bob".into()];
    let closing = std::thread::spawn(move || drop(alice));
    std::thread::sleep(Duration::from_millis(250));
    bed.handle().reload(&config).unwrap();
    let mut bob = bed.open("bob", "card0").unwrap();
    card.slow_clock.store(0, Ordering::SeqCst);
    bob.ctl_write32(SUM, 5).unwrap();
    closing.join().unwrap();
    assert_eq!((bob.ctl_read32(SUM).unwrap(), state(&bed, "bob")), (5, DeviceState::InUse));
    assert_eq!(card.resets.load(Ordering::SeqCst), 1);
}

#[test]
fn a_message_that_drips_ends_its_connection_and_not_its_session() {
    let limit = Duration::from_millis(400);
    let bed = Bed::with(LONG, |config| config.times.message = limit);
    let mut raw = Raw::opened(&bed, "alice", "card0");
    let frame = ToAgent::Request { id: 1, acked: 0, op: DeviceOp::Kernel(vec![0; 4000]) }.encode();
    let begin = Instant::now();
    for byte in frame.chunks(1) {
        if raw.tls.write_all(byte).is_err() || begin.elapsed() > Duration::from_secs(15) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(begin.elapsed() < Duration::from_secs(15), "{:?}", begin.elapsed());
    match raw.hear() {
        Ok(ToOwner::Refused { code, .. }) => assert_eq!(code, "SHEF-AGT-009"),
        // Bytes still in flight turned the end of the connection into a reset.
        Ok(other) => panic!("{other:?}"),
        Err(_) => {}
    }
    eventually("the absence", || state(&bed, "alice") == DeviceState::Orphaned);
}

#[test]
fn the_program_tells_systemd_reloads_and_logs_without_escapes() {
    let bed = Bed::new(LONG);
    let dir = tempfile::tempdir().unwrap();
    let socket = UnixDatagram::bind(dir.path().join("notify")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let told = || {
        let mut text = [0; 64];
        let n = socket.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..n]).into_owned()
    };
    let log = std::fs::File::create(dir.path().join("log")).unwrap();
    let mut agent = Command::new(env!("CARGO_BIN_EXE_shef-agent"))
        .args(["run", "--config"])
        .arg(bed.agent_dir().join("agent.toml"))
        .env("NOTIFY_SOCKET", dir.path().join("notify"))
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("{\"listen\":\"127.0.0.1:"), "{line}");
    assert_eq!(told(), "READY=1");
    let signal = |name: &str| {
        assert!(
            Command::new("kill").args([name, &agent.id().to_string()]).status().unwrap().success()
        );
    };
    signal("-HUP");
    assert_eq!((told(), told()), ("RELOADING=1".to_owned(), "READY=1".to_owned()));
    // A file with an error changes nothing and ends no session.
    std::fs::write(bed.agent_dir().join("agent.toml"), "nonsense").unwrap();
    signal("-HUP");
    assert_eq!((told(), told()), ("RELOADING=1".to_owned(), "READY=1".to_owned()));
    signal("-TERM");
    assert_eq!(told(), "STOPPING=1");
    assert!(agent.wait().unwrap().success());
    let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
    assert!(
        log.contains("configuration reloaded")
            && log.contains("SHEF-AGT-016")
            && !log.contains('\u{1b}'),
        "{log}"
    );
}

/// Certificate and key of an owner that expire in `days` days, or have expired.
fn short_lived(bed: &Bed, owner: &str, days: i64) -> TlsFiles {
    const BEFORE: i64 = 10;
    valid_from(bed, owner, -BEFORE, u32::try_from(BEFORE + days).unwrap())
}

/// Certificate and key of an owner, valid for `days` days from `begin` days on.
fn valid_from(bed: &Bed, owner: &str, begin: i64, days: u32) -> TlsFiles {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
        .cast_signed();
    let validity = Validity { from: now + begin * 86_400, days };
    let ca = std::fs::read_to_string(bed.agent_dir().join("ca.key")).unwrap();
    let root = std::fs::read_to_string(bed.agent_dir().join("ca.pem")).unwrap();
    let ca = Ca::of_pair("shef-agent CA", KeyPair::from_pem(&ca).unwrap(), &root, now).unwrap();
    let key = KeyPair::generate().unwrap();
    let cert = ca.issue(Holder::Client { name: owner, uri: None }, &key, validity).unwrap();
    let (cert_file, key_file) =
        (bed.dir.path().join("short.pem"), bed.dir.path().join("short.key"));
    std::fs::write(&cert_file, cert.pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key_file, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    TlsFiles { cert: cert_file, key: key_file, ..bed.files(owner) }
}

#[test]
fn the_program_says_what_to_do_and_whose_fault_it_is_by_its_exit_status() {
    let bed = Bed::new(LONG);
    let (dir, files) = (bed.agent_dir(), bed.agent_dir().join("owners/alice"));
    let (dir, files) = (dir.to_str().unwrap(), files.to_str().unwrap());
    let at = format!("localhost:{}", bed.address.port());
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_shef-agent"))
            .args(args)
            .env("HOME", "/nonexistent")
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let client = format!("{files}/client.toml");
    let (exit, stdout, _) = run(&["status", "--agent", &at, "--client", &client]);
    assert!(
        exit == 0
            && stdout.starts_with("DEVICE ")
            && stdout.contains("\ncard0 ")
            && stdout.contains("free"),
        "{stdout}"
    );
    let (exit, stdout, _) = run(&["explain", "shef-agt-016"]);
    assert!(
        exit == 0
            && stdout.starts_with("SHEF-AGT-016 (agent)")
            && stdout.ends_with("Exit status 5: bad input or configuration\n"),
        "{stdout}"
    );
    let (exit, _, stderr) = run(&["explain", "SHEF-AGT-999"]);
    assert!(exit == 2 && stderr.contains("run `shef-agent explain SHEF-CLI-002`"), "{stderr}");
    assert_eq!(run(&["version"]), run(&["--version"]));
    // Output that cannot be written is an error.
    for args in [
        &["status", "--agent", &at, "--client", &client][..],
        &["status", "--agent", &at, "--client", &client, "--json"],
        &["--help"],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_shef-agent"))
            .args(args)
            .env("HOME", "/nonexistent")
            .stdout(full)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let told = said.contains("error [SHEF-CLI-015]: cannot write to standard output: ");
        assert!(output.status.code() == Some(5) && told, "{args:?}: {said}");
    }
    for (args, expected, says) in [
        (&["status", "--agent", "localhost", "--client", &client][..], 5, "expected HOST:PORT"),
        (
            &["status", "--agent", &format!("tls://{at}"), "--client", &client],
            5,
            "expected HOST:PORT, such as card.example:7433",
        ),
        (&["status", "--agent", &at, "--client", &format!("{files}/none.toml")], 5, "SHEF-AGT-003"),
        (&["status", "--agent", &at], 5, "SHEF_TLS_CONFIG"),
        (&["status", "--agent", "localhost:1", "--client", &client], 4, "SHEF-AGT-001"),
        (&["revoke", "--dir", dir, "carol"], 5, "no certificate was issued to \"carol\""),
        (&["add-owner", "--dir", dir, "alice"], 5, "shef-agent renew"),
        (
            &["init", "--dir", dir, "--device", "card0=vfio-user:/a"],
            5,
            "expected an empty or missing folder",
        ),
    ] {
        let (exit, _, stderr) = run(args);
        assert!(
            exit == expected && stderr.contains(says) && stderr.contains("\nhelp: "),
            "{args:?}: exit {exit}, {stderr}"
        );
    }
    // A port that is in use.
    let config = std::fs::read_to_string(bed.agent_dir().join("agent.toml")).unwrap();
    let taken = bed.agent_dir().join("taken.toml");
    std::fs::write(&taken, config.replace("127.0.0.1:0", &bed.address.to_string())).unwrap();
    let (exit, _, stderr) = run(&["run", "--config", taken.to_str().unwrap()]);
    assert!(
        exit == 4 && stderr.contains("SHEF-AGT-018") && stderr.contains("ss -ltnp"),
        "{stderr}"
    );
}

#[test]
fn the_program_says_of_a_revocation_what_the_agent_that_runs_says() {
    let mut bed = Bed::new(LONG);
    let dir = bed.agent_dir();
    let revoke = |whom: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_shef-agent"))
            .args(["revoke", "--dir"])
            .arg(&dir)
            .arg(whom)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let alice = bed.open("alice", "card1").unwrap();
    let (exit, stdout, stderr) = revoke("alice");
    assert!(
        exit == 0
            && stdout.starts_with("1 certificate of alice is revoked: the running agent applies"),
        "{stdout}{stderr}"
    );
    // The revocation is in force, not pending.
    assert_eq!(code(bed.open("alice", "card1")), "SHEF-AGT-011");
    drop(alice);
    assert_eq!((revoke("alice").0, revoke("alice").1.starts_with("nothing changed: ")), (0, true));
    let (exit, stdout, stderr) = revoke(&"7".repeat(64));
    assert!(exit == 3 && stderr.contains("does not have the fingerprint"), "{stdout}{stderr}");
    // The agent applies another list.
    let config = Config { revoked: Some(bed.dir.path().join("other")), ..bed.config.clone() };
    std::fs::write(bed.dir.path().join("other"), "").unwrap();
    bed.handle().reload(&config).unwrap();
    eventually("the other list", || revoke("alice").0 == 3);
    let (exit, stdout, stderr) = revoke("bob");
    assert!(
        exit == 3
            && stdout.starts_with("1 certificate of bob is in the list")
            && stderr.contains("no running agent uses this list"),
        "{stdout}{stderr}"
    );
    bed.open("bob", "card0").unwrap();
    bed.handle().reload(&bed.config).unwrap();
    eventually("the list", || revoke("bob").0 == 0);
    // No agent is running.
    bed.stop();
    assert_eq!(revoke("bob").0, 3);
}

#[test]
fn an_owner_is_told_before_its_certificate_ends() {
    // Issued by hand, because the certificate expires soon.
    let bed = Bed::new(LONG);
    let files = short_lived(&bed, "alice", 5);
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let progress = Box::new(move |text: &str| heard.lock().unwrap().push(text.to_owned()));
    drop(
        shef_remote::RemoteDevice::open(
            &uri(bed.address.port(), "card0"),
            &files,
            limits(),
            Some(progress),
        )
        .unwrap(),
    );
    assert!(told.lock().unwrap().iter().any(|text| text.contains("expires in 4 days")), "{told:?}");
    // After the expiry, the error names it.
    let files = short_lived(&bed, "alice", -1);
    let error =
        shef_remote::RemoteDevice::open(&uri(bed.address.port(), "card0"), &files, limits(), None)
            .err()
            .unwrap();
    assert!(
        error.code() == "SHEF-AGT-002" && error.to_string().contains("which has expired"),
        "{error}"
    );
}

#[test]
fn a_ca_that_has_ended_lets_nobody_in_and_vouches_for_no_agent() {
    let bed = Bed::new(LONG);
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs()
        .cast_signed();
    // Ten years and a day ago; the certificates under this CA expire later.
    let from = now - 3651 * 86_400;
    let validity = Validity { from: now - 86_400, days: 30 };
    let (ca, root) = Ca::new("shef-agent CA", KeyPair::generate().unwrap(), from).unwrap();
    let dir = bed.dir.path();
    let issue = |name: &str, holder| {
        let key = KeyPair::generate().unwrap();
        let (cert, path) = (ca.issue(holder, &key, validity).unwrap(), |end: &str| {
            dir.join(format!("{name}.{end}"))
        });
        std::fs::write(path("pem"), cert.pem()).unwrap();
        std::fs::write(path("key"), key.serialize_pem()).unwrap();
        std::fs::set_permissions(path("key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
        (path("pem"), path("key"))
    };
    let ended = dir.join("ended.pem");
    std::fs::write(&ended, root.pem()).unwrap();
    let (cert, key) = issue("alice", Holder::Client { name: "alice", uri: None });
    let (server, server_key) =
        issue("agent", Holder::Server { name: "agent", hosts: &["localhost".to_owned()] });
    // Next to the agent's own CA, which is valid.
    let (own, both) = (bed.config.ca.clone(), dir.join("both.pem"));
    std::fs::write(&both, root.pem() + &std::fs::read_to_string(&own).unwrap()).unwrap();
    let told = |files: &TlsFiles| {
        list("localhost", bed.address.port(), files, &limits()).map(|list| list.len())
    };

    bed.handle().reload(&Config { ca: both.clone(), ..bed.config.clone() }).unwrap();
    assert_eq!(told(&bed.files("alice")).unwrap(), 2);
    let error = told(&TlsFiles { ca: own, cert, key }).unwrap_err();
    assert!(error.code() == "SHEF-AGT-002", "{error}");

    bed.handle().reload(&Config { cert: server, key: server_key, ..bed.config.clone() }).unwrap();
    for ca in [both, ended] {
        let error = told(&TlsFiles { ca, ..bed.files("alice") }).unwrap_err();
        assert!(error.to_string().contains("has expired"), "{error}");
    }
}

/// The program `shef-agent run` with a bed's files; reads its notifications to systemd.
struct Program {
    child: std::process::Child,
    notes: UnixDatagram,
    address: SocketAddr,
    metrics: Option<SocketAddr>,
}

impl Program {
    /// Starts it with the bed's agent.toml and this stderr.
    fn start(bed: &Bed, stderr: std::fs::File) -> Self {
        let path = bed.dir.path().join("notes");
        let notes = UnixDatagram::bind(&path).unwrap();
        notes.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_shef-agent"))
            .args(["run", "--config"])
            .arg(bed.agent_dir().join("agent.toml"))
            .env("NOTIFY_SOCKET", &path)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: serde_json::Value = serde_json::from_str(&line).unwrap();
        let at = |key: &str| ready.get(key).map(|at| at.as_str().unwrap().parse().unwrap());
        let program = Self { child, notes, address: at("listen").unwrap(), metrics: at("metrics") };
        assert_eq!(program.note(), "READY=1");
        program
    }

    fn note(&self) -> String {
        let mut text = [0; 64];
        let n = self.notes.recv(&mut text).unwrap();
        String::from_utf8_lossy(&text[..n]).into_owned()
    }

    fn signal(&self, name: &str) {
        assert!(
            Command::new("kill")
                .args([name, &self.child.id().to_string()])
                .status()
                .unwrap()
                .success()
        );
    }

    fn reload(&self) {
        self.signal("-HUP");
        assert_eq!((self.note(), self.note()), ("RELOADING=1".to_owned(), "READY=1".to_owned()));
    }

    /// Ends the program; returns its exit status.
    fn end(mut self) -> Option<i32> {
        self.signal("-TERM");
        self.child.wait().unwrap().code()
    }
}

/// Edits the agent.toml of a bed.
fn edit(bed: &Bed, change: impl FnOnce(String) -> String) {
    let file = bed.agent_dir().join("agent.toml");
    std::fs::write(&file, change(std::fs::read_to_string(&file).unwrap())).unwrap();
}

#[test]
fn a_log_that_cannot_be_written_turns_nobody_away() {
    let bed = Bed::new(LONG);
    edit(&bed, |text| format!("metrics = \"127.0.0.1:0\"\n{text}"));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let program = Program::start(&bed, full);
    for owner in ["alice", "bob", "alice"] {
        assert!(
            !list("localhost", program.address.port(), &bed.files(owner), &limits())
                .unwrap()
                .is_empty()
        );
    }
    program.reload();
    assert!(get(program.metrics.unwrap(), "/healthz").starts_with("HTTP/1.1 200"));
    // It logs when it ends, too.
    assert_eq!(program.end(), Some(0));
}

#[test]
fn a_reload_without_the_list_lifts_no_revocation() {
    let bed = Bed::new(LONG);
    revoke(&bed.agent_dir(), "alice").unwrap();
    let log = bed.dir.path().join("log");
    let said = |what: &str| std::fs::read_to_string(&log).unwrap().contains(what);
    let program = Program::start(&bed, std::fs::File::create(&log).unwrap());
    let refused =
        || code(list("localhost", program.address.port(), &bed.files("alice"), &limits()));
    assert_eq!(refused(), "SHEF-AGT-011");
    edit(&bed, |text| text.replace("revoked = \"revoked\"\n", ""));
    program.reload();
    assert_eq!(refused(), "SHEF-AGT-011");
    assert!(said("the configuration no longer has `revoked`, and the list stays in force"));
    // The list is still reread: a line is removed on purpose, and the log reports the effect.
    revoke(&bed.agent_dir(), "bob").unwrap();
    eventually("bob's revocation", || {
        code(list("localhost", program.address.port(), &bed.files("bob"), &limits()))
            == "SHEF-AGT-011"
    });
    assert!(!said("are accepted again"));
    std::fs::write(bed.agent_dir().join("revoked"), "").unwrap();
    eventually("alice", || refused() == "accepted");
    assert!(said("these certificates are accepted again") && said("lifted=2"));
    assert_eq!(program.end(), Some(0));
    // An agent that starts without a list logs it.
    std::fs::remove_file(bed.dir.path().join("notes")).unwrap();
    assert!(!said("no certificate is revoked"));
    let log = bed.dir.path().join("second");
    let program = Program::start(&bed, std::fs::File::create(&log).unwrap());
    assert!(
        std::fs::read_to_string(&log)
            .unwrap()
            .contains("has no `revoked`: no certificate is revoked")
    );
    program.end();
}

#[test]
fn a_pipe_in_the_place_of_a_file_stops_no_agent() {
    let bed = Bed::new(LONG);
    revoke(&bed.agent_dir(), "alice").unwrap();
    let (log, list_file) = (bed.dir.path().join("log"), bed.agent_dir().join("revoked"));
    let said = |what: &str| std::fs::read_to_string(&log).unwrap().matches(what).count();
    let program = Program::start(&bed, std::fs::File::create(&log).unwrap());
    let port = program.address.port();
    let asks = |owner: &str| code(list("localhost", port, &bed.files(owner), &limits()));
    let new = bed.agent_dir().join("new");
    let pipe = |path: &std::path::Path| {
        assert!(Command::new("mkfifo").arg(&new).status().unwrap().success());
        std::fs::rename(&new, path).unwrap();
    };
    let kept = "the last one stays in force";
    let good = std::fs::read(&list_file).unwrap();
    pipe(&list_file);
    eventually("the pipe", || said(kept) == 1 && said("it is not a regular file") == 1);
    assert_eq!((asks("alice"), asks("bob")), ("SHEF-AGT-011".into(), "accepted".into()));
    // An endless file changes nothing either.
    std::fs::File::create(&new).unwrap().set_len(1 << 40).unwrap();
    std::fs::rename(&new, &list_file).unwrap();
    eventually("the large file", || said(kept) == 2 && said("expected at most") == 1);
    assert_eq!((asks("alice"), asks("bob")), ("SHEF-AGT-011".into(), "accepted".into()));
    std::fs::write(&list_file, good).unwrap();
    revoke(&bed.agent_dir(), "bob").unwrap();
    eventually("bob's revocation", || asks("bob") == "SHEF-AGT-011");
    assert_eq!((asks("alice").as_str(), program.end()), ("SHEF-AGT-011", Some(0)));
    for name in ["issued", "revoked", "agent.toml"] {
        let path = bed.agent_dir().join(name);
        let before = std::fs::read(&path).unwrap();
        pipe(&path);
        let mut run = Command::new("timeout");
        run.args(["5", env!("CARGO_BIN_EXE_shef-agent"), "run", "--config"])
            .arg(bed.agent_dir().join("agent.toml"));
        let output = run.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        if name == "issued" {
            // Only a warning depends on it.
            assert!(String::from_utf8_lossy(&output.stdout).contains("listen"), "{output:?}");
        } else {
            assert!(
                output.status.code() == Some(5) && text.contains("it is not a regular file"),
                "{name}: {output:?}"
            );
        }
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, before).unwrap();
    }
}

/// Certificate managers and orchestrators link the current version of a file. As root, the agent
/// follows such a link only where no other user can change it.
#[test]
fn the_agent_follows_links_of_root_and_as_root_no_others() {
    use std::os::unix::fs::{chown, lchown, symlink};
    let bed = Bed::new(LONG);
    let (dir, versions) = (bed.agent_dir(), bed.dir.path().join("versions"));
    std::fs::create_dir(&versions).unwrap();
    let toml = dir.join("agent.toml");
    let reload = || -> String {
        let config = match Config::load(&toml) {
            Ok(found) => Config { devices: bed.config.devices.clone(), ..found },
            Err(error) => return error.code().to_owned(),
        };
        bed.handle()
            .reload(&config)
            .map_or_else(|error| error.code().to_owned(), |()| "good".into())
    };
    for (name, code) in [
        ("agent.toml", "SHEF-AGT-017"),
        ("revoked", "SHEF-AGT-017"),
        ("ca.pem", "SHEF-AGT-003"),
        ("agent.pem", "SHEF-AGT-003"),
    ] {
        let file = dir.join(name);
        std::fs::rename(&file, versions.join(name)).unwrap();
        symlink(format!("../versions/{name}"), &file).unwrap();
        assert_eq!(reload(), "good", "{name}");
        if lchown(&file, Some(4001), None).is_err() {
            println!("skipped: only root can give files away");
            continue;
        }
        // A link of another user, and one to that user's folder.
        assert_eq!(reload(), code, "{name}");
        lchown(&file, Some(0), None).unwrap();
        chown(&versions, Some(4001), None).unwrap();
        assert_eq!(reload(), code, "{name}");
        chown(&versions, Some(0), None).unwrap();
        assert_eq!(reload(), "good", "{name}");
        // A file of a third user in another user's folder.
        std::fs::rename(versions.join(name), &file).unwrap();
        for (user, expected) in [(4001, "good"), (5001, code)] {
            chown(&dir, Some(4001), None).unwrap();
            chown(&file, Some(user), None).unwrap();
            assert_eq!(reload(), expected, "{name} of user {user}");
            chown(&file, Some(0), None).unwrap();
            chown(&dir, Some(0), None).unwrap();
        }
    }
}

#[test]
fn a_reload_says_what_needs_a_restart_and_which_owners_have_no_certificate() {
    let bed = Bed::new(LONG);
    let log = bed.dir.path().join("log");
    let said = |what: &str| std::fs::read_to_string(&log).unwrap().matches(what).count();
    // A name that `init` did not certify.
    edit(&bed, |text| text.replacen("# owners = [\"NAME\"]", "owners = [\"alcie\"]", 1));
    let program = Program::start(&bed, std::fs::File::create(&log).unwrap());
    let unknown = "names an owner without a certificate";
    assert!(
        said(unknown) == 1 && said("owner=\"alcie\"") == 1,
        "{}",
        std::fs::read_to_string(&log).unwrap()
    );
    program.reload();
    assert_eq!((said(unknown), said(": restart the agent to apply")), (2, 0));
    edit(&bed, |text| {
        text.replace("alcie", "alice")
            .replace("127.0.0.1:0", "127.0.0.1:1")
            .replace("# metrics", "metrics")
            .replace("# clear_memory", "clear_memory")
    });
    program.reload();
    assert_eq!(said(unknown), 2);
    for key in ["key=\"listen\"", "key=\"metrics\""] {
        assert_eq!(
            said(&format!("it changed: restart the agent to apply it {key}")),
            1,
            "{}",
            std::fs::read_to_string(&log).unwrap()
        );
    }
    assert_eq!(said("its clear_memory changed: restart the agent to apply it"), 2);
    program.end();
}

#[test]
fn a_certificate_that_is_no_cas_is_no_ca() {
    let bed = Bed::new(LONG);
    let wrong = Config { ca: bed.agent_dir().join("agent.pem"), ..bed.config.clone() };
    let error = bed.handle().reload(&wrong).unwrap_err();
    assert!(
        error.code() == "SHEF-AGT-003"
            && error.to_string().contains("expected basicConstraints CA:TRUE"),
        "{error}"
    );
    edit(&bed, |text| text.replace("ca.pem", "agent.pem"));
    let file = bed.agent_dir().join("agent.toml");
    let output = Command::new(env!("CARGO_BIN_EXE_shef-agent"))
        .args(["run", "--config"])
        .arg(file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5));
}

#[test]
fn a_closed_stderr_changes_no_exit_status() {
    let bed = Bed::new(LONG);
    let dir = bed.agent_dir();
    let dir = dir.to_str().unwrap();
    let unknown = "7".repeat(64);
    for (args, expected) in [
        (&["revoke", "--dir", dir, "x1"][..], 5),
        (&["revoke", "--dir", dir, &unknown], 3),
        (&["frobnicate"], 2),
    ] {
        // A pipe without a reader.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = Command::new(env!("CARGO_BIN_EXE_shef-agent"))
            .args(args)
            .stdout(writer.try_clone().unwrap())
            .stderr(writer)
            .status();
        assert_eq!(status.unwrap().code(), Some(expected), "{args:?}");
    }
}

#[test]
fn files_are_for_the_agents_user_under_any_umask() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("new/agent");
    for umask in ["077", "000"] {
        let done = Command::new("sh")
            .args([
                "-c",
                "umask $0; exec \"$@\"",
                umask,
                env!("CARGO_BIN_EXE_shef-agent"),
                "init",
                "--device",
                "card0=vfio-user:/a",
                "--dir",
            ])
            .arg(&home)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        for (mode, files) in [
            (0o600, &["ca.key", "agent.key", "owners/owner/key.pem"][..]),
            (
                0o644,
                &[
                    "ca.pem",
                    "agent.pem",
                    "agent.toml",
                    "revoked",
                    "issued",
                    "names",
                    "shef-agent.service",
                    "owners/owner/cert.pem",
                ],
            ),
            (0o700, &[".", "owners", "owners/owner"]),
            (0o755, &[".."]),
        ] {
            for file in files {
                let found =
                    std::fs::metadata(home.join(file)).unwrap().permissions().mode() & 0o777;
                assert_eq!(found, mode, "umask {umask}: {file} has mode {found:o}");
            }
        }
        std::fs::remove_dir_all(dir.path().join("new")).unwrap();
    }
}

#[test]
fn a_second_administrator_is_told_to_be_root() {
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can be another user");
        return;
    }
    let bed = Bed::new(LONG);
    // A user that may enter and read the folder, and one that may not.
    let program = bed.dir.path().join("program");
    std::fs::copy(env!("CARGO_BIN_EXE_shef-agent"), &program).unwrap();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(bed.dir.path(), 0o755);
    mode(&program, 0o755);
    for folder in [0o755, 0o700] {
        mode(&bed.agent_dir(), folder);
        let output = Command::new(&program)
            .args(["revoke", "alice", "--dir"])
            .arg(bed.agent_dir())
            .uid(4001)
            .gid(4001)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            text.contains("run it as root (or as the user who owns ") && !text.contains("chown"),
            "{folder:o}: {text}"
        );
    }
}

#[test]
fn no_agent_is_set_up_where_others_can_exchange_its_files() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::os::unix::process::CommandExt;
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can be another user");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (program, folder) = (dir.path().join("program"), dir.path().join("open"));
    std::fs::copy(env!("CARGO_BIN_EXE_shef-agent"), &program).unwrap();
    std::fs::create_dir(&folder).unwrap();
    for (path, mode) in [(dir.path(), 0o755), (&program, 0o755), (&folder, 0o777)] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let output = Command::new(&program)
        .args(["init", "--device", "card0=vfio-user:/a", "--dir"])
        .arg(&folder)
        .uid(4001)
        .gid(4001)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(5)
            && text.contains("other users can exchange the files in it"),
        "{output:?}"
    );
    assert_eq!(std::fs::metadata(&folder).unwrap().mode() & 0o7777, 0o777);
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn the_program_warns_of_a_certificate_that_ends_and_of_one_that_begins() {
    let bed = Bed::new(LONG);
    let status = |files: &TlsFiles| {
        let client = bed.dir.path().join("client.toml");
        let text = format!("ca = {:?}\ncert = {:?}\nkey = {:?}\n", files.ca, files.cert, files.key);
        std::fs::write(&client, text).unwrap();
        let at = format!("localhost:{}", bed.address.port());
        let output = Command::new(env!("CARGO_BIN_EXE_shef-agent"))
            .args(["status", "--agent", &at, "--client"])
            .arg(client)
            .output()
            .unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(status(&bed.files("alice")), (0, String::new()));
    let (exit, stderr) = status(&short_lived(&bed, "alice", 5));
    assert!(
        exit == 0 && stderr.contains("short.pem expires in 4 days: ask the agent's operator"),
        "{stderr}"
    );
    let (exit, stderr) = status(&short_lived(&bed, "alice", -1));
    assert!(exit == 4 && stderr.contains("short.pem has expired"), "{stderr}");
    let (exit, stderr) = status(&valid_from(&bed, "alice", 2, 30));
    assert!(
        exit == 4
            && stderr.contains("is not valid yet")
            && stderr.contains("has expired or is not valid yet"),
        "{stderr}"
    );
    // A revoked certificate: the operator has to correct it, as in `shef`.
    revoke(&bed.agent_dir(), "bob").unwrap();
    eventually("the list", || code(bed.open("bob", "card0")) == "SHEF-AGT-011");
    let (exit, stderr) = status(&bed.files("bob"));
    assert!(exit == 5 && stderr.contains("SHEF-AGT-011"), "{stderr}");
}
