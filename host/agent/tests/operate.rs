//! What an operator does to an agent while owners work: reload, revoke, drain, look at it, and lose
//! a card.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::*;
use shef_agent::Config;
use shef_agent::init::{renew, revoke};
use shef_device::Device;
use shef_door::ca::{Ca, Holder, KeyPair, Validity};
use shef_remote::wire::{DeviceState, Op, ToAgent, ToOwner};
use shef_remote::{TlsFiles, list};

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
    // A list that is not there lets nobody in, and changes nothing.
    std::fs::remove_file(bed.agent_dir().join("revoked")).unwrap();
    assert_eq!(bed.handle().reload(&bed.config).unwrap_err().code(), "SHEF-AGT-017");
    assert_eq!(code(bed.open("alice", "card1")), "SHEF-AGT-011");
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
    // A card that is left out of the configuration stays until a restart, but not with her.
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
    // With the new certificates of both sides.
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
    eventually("both cards", || shows("shef_agent_device_state{device=\"card0\",state=\"free\"} 1"));
    assert!(
        shows("shef_agent_device_state{device=\"card1\",state=\"in use\"} 1") && shows("shef_agent_sessions_total{device=\"card1\"} 1")
    );
    assert!(get(at, "/healthz").starts_with("HTTP/1.1 200") && get(at, "/readyz").starts_with("HTTP/1.1 200"));
    assert!(get(at, "/").starts_with("HTTP/1.1 404"));
    // Nobody has it, and nobody asks for it.
    bed.cards["card0"].broken.store(true, Ordering::SeqCst);
    eventually("the notice", || shows("shef_agent_device_state{device=\"card0\",state=\"failed\"} 1"));
    bed.cards["card0"].broken.store(false, Ordering::SeqCst);
    eventually("the card", || state(&bed, "bob") == DeviceState::Free);
    bed.open("bob", "card0").unwrap().ctl_write32(SUM, 1).unwrap();
    drop(alice);
}

#[test]
fn memory_of_a_card_is_cleared_between_owners_where_that_is_asked_for() {
    for clear in [true, false] {
        let bed = Bed::with(LONG, |config| config.devices.get_mut("card0").unwrap().clear_memory = clear);
        bed.cards["card0"].keeps_memory.store(true, Ordering::SeqCst);
        bed.open("alice", "card0").unwrap().mem_write(MEMORY - 4, &[9; 4]).unwrap();
        assert_eq!(left_to_bob(&bed), if clear { [0; 4] } else { [9; 4] });
    }
}

/// Four bytes that alice left, as bob finds them.
fn left_to_bob(bed: &Bed) -> [u8; 4] {
    let mut back = [0; 4];
    bed.open("bob", "card0").unwrap().mem_read(MEMORY - 4, &mut back).unwrap();
    back
}

#[test]
fn memory_that_was_not_cleared_is_cleared_before_the_card_has_an_owner_again() {
    let mut bed = Bed::with(LONG, |config| config.devices.get_mut("card0").unwrap().clear_memory = true);
    let card = Arc::clone(&bed.cards["card0"]);
    card.keeps_memory.store(true, Ordering::SeqCst);
    let leave = |bed: &Bed| {
        let mut alice = bed.open("alice", "card0").unwrap();
        alice.mem_write(MEMORY - 4, &[9; 4]).unwrap();
        alice
    };
    // The card fails while it is cleared, and is opened anew.
    let alice = leave(&bed);
    card.read_only.store(true, Ordering::SeqCst);
    drop(alice);
    eventually("the failure", || state(&bed, "bob") == DeviceState::Failed);
    card.read_only.store(false, Ordering::SeqCst);
    eventually("the card", || state(&bed, "bob") == DeviceState::Free);
    assert_eq!(left_to_bob(&bed), [0; 4]);
    // The agent ends, which does not wait for so much memory, and another one begins.
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
    // Alice is not to have the card any more while she closes her session.
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
    let frame = ToAgent::Request { id: 1, acked: 0, op: Op::Kernel(vec![0; 4000]) }.encode();
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
        // Bytes that were still on their way made a reset of the connection's end.
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
    let signal = |name: &str| assert!(Command::new("kill").args([name, &agent.id().to_string()]).status().unwrap().success());
    signal("-HUP");
    assert_eq!((told(), told()), ("RELOADING=1".to_owned(), "READY=1".to_owned()));
    // A file with an error changes nothing and ends nothing.
    std::fs::write(bed.agent_dir().join("agent.toml"), "nonsense").unwrap();
    signal("-HUP");
    assert_eq!((told(), told()), ("RELOADING=1".to_owned(), "READY=1".to_owned()));
    signal("-TERM");
    assert_eq!(told(), "STOPPING=1");
    assert!(agent.wait().unwrap().success());
    let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
    assert!(log.contains("configuration taken over") && log.contains("SHEF-AGT-016") && !log.contains('\u{1b}'), "{log}");
}

/// Certificate and key of an owner that end in so many days, or ended before.
fn short_lived(bed: &Bed, owner: &str, days: i64) -> TlsFiles {
    const BEFORE: i64 = 10;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs().cast_signed();
    let validity = Validity { from: now - BEFORE * 86_400, days: u32::try_from(BEFORE + days).unwrap() };
    let ca = std::fs::read_to_string(bed.agent_dir().join("ca.key")).unwrap();
    let ca = Ca::with_key("shef-agent CA", KeyPair::from_pem(&ca).unwrap());
    let key = KeyPair::generate().unwrap();
    let cert = ca.issue(Holder::Client { name: owner, uri: None }, &key, validity).unwrap();
    let (cert_file, key_file) = (bed.dir.path().join("short.pem"), bed.dir.path().join("short.key"));
    std::fs::write(&cert_file, cert.pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key_file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    TlsFiles { cert: cert_file, key: key_file, ..bed.files(owner) }
}

#[test]
fn the_program_says_what_to_do_and_whose_fault_it_is_by_its_exit_status() {
    let bed = Bed::new(LONG);
    let (dir, files) = (bed.agent_dir(), bed.agent_dir().join("owners/alice"));
    let (dir, files) = (dir.to_str().unwrap(), files.to_str().unwrap());
    let at = format!("localhost:{}", bed.address.port());
    let run = |args: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_shef-agent")).args(args).env("HOME", "/nonexistent").output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let client = format!("{files}/client.toml");
    let (exit, stdout, _) = run(&["status", "--agent", &at, "--client", &client]);
    assert!(exit == 0 && stdout.starts_with("DEVICE ") && stdout.contains("\ncard0 ") && stdout.contains("free"), "{stdout}");
    // Output that cannot be written is an error.
    for args in
        [&["status", "--agent", &at, "--client", &client][..], &["status", "--agent", &at, "--client", &client, "--json"], &["--help"]]
    {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_shef-agent")).args(args).env("HOME", "/nonexistent").stdout(full).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let told = said.contains("error [SHEF-AGT-017]: cannot write to standard output: ") || args == ["--help"];
        assert!(output.status.code() == Some(5) && told, "{args:?}: {said}");
    }
    for (args, expected, says) in [
        (&["status", "--agent", "localhost", "--client", &client][..], 5, "expected HOST:PORT"),
        (&["status", "--agent", &at, "--client", &format!("{files}/none.toml")], 5, "SHEF-AGT-003"),
        (&["status", "--agent", &at], 5, "SHEF_TLS_CONFIG"),
        (&["status", "--agent", "localhost:1", "--client", &client], 4, "SHEF-AGT-001"),
        (&["revoke", "--dir", dir, "carol"], 5, "no certificate was issued to \"carol\""),
        (&["add-owner", "--dir", dir, "alice"], 5, "shef-agent renew"),
        (&["init", "--dir", dir, "--device", "card0=vfio-user:/a"], 5, "expected an empty folder or none"),
    ] {
        let (exit, _, stderr) = run(args);
        assert!(exit == expected && stderr.contains(says) && stderr.contains("\nhelp: "), "{args:?}: exit {exit}, {stderr}");
    }
    // A port that is taken.
    let config = std::fs::read_to_string(bed.agent_dir().join("agent.toml")).unwrap();
    let taken = bed.agent_dir().join("taken.toml");
    std::fs::write(&taken, config.replace("127.0.0.1:0", &bed.address.to_string())).unwrap();
    let (exit, _, stderr) = run(&["run", "--config", taken.to_str().unwrap()]);
    assert!(exit == 4 && stderr.contains("SHEF-AGT-018") && stderr.contains("ss -ltnp"), "{stderr}");
}

#[test]
fn the_program_says_of_a_revocation_what_the_agent_that_runs_says() {
    let mut bed = Bed::new(LONG);
    let dir = bed.agent_dir();
    let revoke = |whom: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_shef-agent")).args(["revoke", "--dir"]).arg(&dir).arg(whom).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
    };
    let alice = bed.open("alice", "card1").unwrap();
    let (exit, stdout, stderr) = revoke("alice");
    assert!(exit == 0 && stdout.starts_with("1 certificate of alice is revoked: the agent that runs applies"), "{stdout}{stderr}");
    // It is so, and not on its way.
    assert_eq!(code(bed.open("alice", "card1")), "SHEF-AGT-011");
    drop(alice);
    assert_eq!((revoke("alice").0, revoke("alice").1.starts_with("nothing changed: ")), (0, true));
    let (exit, stdout, stderr) = revoke(&"7".repeat(64));
    assert!(exit == 3 && stderr.contains("has none with the fingerprint"), "{stdout}{stderr}");
    // The agent applies another list.
    let config = Config { revoked: Some(bed.dir.path().join("other")), ..bed.config.clone() };
    std::fs::write(bed.dir.path().join("other"), "").unwrap();
    bed.handle().reload(&config).unwrap();
    eventually("the other list", || revoke("alice").0 == 3);
    let (exit, stdout, stderr) = revoke("bob");
    assert!(
        exit == 3 && stdout.starts_with("1 certificate of bob is in the list") && stderr.contains("no agent that uses this list"),
        "{stdout}{stderr}"
    );
    bed.open("bob", "card0").unwrap();
    bed.handle().reload(&bed.config).unwrap();
    eventually("the list", || revoke("bob").0 == 0);
    // None runs.
    bed.stop();
    assert_eq!(revoke("bob").0, 3);
}

#[test]
fn an_owner_is_told_before_its_certificate_ends() {
    // Made by hand, as it ends soon.
    let bed = Bed::new(LONG);
    let files = short_lived(&bed, "alice", 5);
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = Arc::clone(&told);
    let progress = Box::new(move |text: &str| heard.lock().unwrap().push(text.to_owned()));
    drop(shef_remote::RemoteDevice::open(&uri(bed.address.port(), "card0"), &files, limits(), Some(progress)).unwrap());
    assert!(told.lock().unwrap().iter().any(|text| text.contains("ends in 4 days")), "{told:?}");
    // And when it has ended, of what became of it.
    let files = short_lived(&bed, "alice", -1);
    let error = shef_remote::RemoteDevice::open(&uri(bed.address.port(), "card0"), &files, limits(), None).err().unwrap();
    assert!(error.code() == "SHEF-AGT-002" && error.to_string().contains("which has ended"), "{error}");
}

#[test]
fn a_ca_that_has_ended_lets_nobody_in_and_vouches_for_no_agent() {
    let bed = Bed::new(LONG);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs().cast_signed();
    // Ten years and a day ago; the certificates under it end later.
    let from = now - 3651 * 86_400;
    let validity = Validity { from: now - 86_400, days: 30 };
    let (ca, root) = Ca::new("shef-agent CA", KeyPair::generate().unwrap(), from).unwrap();
    let dir = bed.dir.path();
    let issue = |name: &str, holder| {
        let key = KeyPair::generate().unwrap();
        let (cert, path) = (ca.issue(holder, &key, validity).unwrap(), |end: &str| dir.join(format!("{name}.{end}")));
        std::fs::write(path("pem"), cert.pem()).unwrap();
        std::fs::write(path("key"), key.serialize_pem()).unwrap();
        std::fs::set_permissions(path("key"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        (path("pem"), path("key"))
    };
    let ended = dir.join("ended.pem");
    std::fs::write(&ended, root.pem()).unwrap();
    let (cert, key) = issue("alice", Holder::Client { name: "alice", uri: None });
    let (server, server_key) = issue("agent", Holder::Server { name: "agent", hosts: &["localhost".to_owned()] });
    // Beside the agent's own CA, which is good.
    let (own, both) = (bed.config.ca.clone(), dir.join("both.pem"));
    std::fs::write(&both, root.pem() + &std::fs::read_to_string(&own).unwrap()).unwrap();
    let told = |files: &TlsFiles| list("localhost", bed.address.port(), files, &limits()).map(|list| list.len());

    bed.handle().reload(&Config { ca: both.clone(), ..bed.config.clone() }).unwrap();
    assert_eq!(told(&bed.files("alice")).unwrap(), 2);
    let error = told(&TlsFiles { ca: own, cert, key }).unwrap_err();
    assert!(error.code() == "SHEF-AGT-002", "{error}");

    bed.handle().reload(&Config { cert: server, key: server_key, ..bed.config.clone() }).unwrap();
    for ca in [both, ended] {
        let error = told(&TlsFiles { ca, ..bed.files("alice") }).unwrap_err();
        assert!(error.to_string().contains("has ended"), "{error}");
    }
}
