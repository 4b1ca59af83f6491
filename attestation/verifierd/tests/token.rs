//! The signing key and the key that seals the KEK, in a token of PKCS #11: that of SoftHSM.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::secrets::SystemEntropy;

use crate::binary::{Dir, Process, command, dir, run_by, signal};
use shef_fixtures::postgres::Postgres;
use shef_fixtures::service::*;

const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";
const PIN: &str = "5678";

/// A set-up whose token is in its own folder.
struct Held {
    dir: Dir,
    /// The program, which finds the token.
    program: PathBuf,
}

impl Held {
    /// `None`, and a line that says so, if SoftHSM or OpenSC is not installed.
    fn new() -> Option<Self> {
        if !Path::new(MODULE).exists() || !Path::new("/usr/bin/pkcs11-tool").exists() {
            println!("skipped: SoftHSM or OpenSC is not installed");
            return None;
        }
        let dir = dir();
        let tokens = dir.path.join("tokens");
        std::fs::create_dir(&tokens).unwrap();
        let conf = dir.path.join("softhsm2.conf");
        let text = format!("directories.tokendir = {}\nlog.level = ERROR\n", tokens.display());
        std::fs::write(&conf, text).unwrap();
        let init = ["--init-token", "--free", "--label", "shef", "--so-pin", "1234", "--pin", PIN];
        let made = Command::new("softhsm2-util").args(init).env("SOFTHSM2_CONF", &conf).output();
        assert!(made.unwrap().status.success());
        let program = dir.path.join("program");
        let held = Self { dir, program };
        held.script(&held.program, "");
        held.pin(PIN);
        held.dir.configure(|text| {
            format!(
                "{text}\n[pkcs11]\nmodule = \"{MODULE}\"\ntoken = \"shef\"\npin_file = \"pin\"\nsigning = \"sign-1\"\nkek = \"seal\"\n"
            )
        });
        Some(held)
    }

    /// Writes a program that is the service, with the token and more in its environment.
    fn script(&self, program: &Path, environment: &str) {
        let conf = self.dir.path.join("softhsm2.conf");
        let service = env!("CARGO_BIN_EXE_shef-verifierd");
        let script = format!(
            "#!/bin/sh\nSOFTHSM2_CONF={} {environment} exec {service} \"$@\"\n",
            conf.display()
        );
        std::fs::write(program, script).unwrap();
        std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn pin(&self, pin: &str) {
        let file = self.dir.path.join("pin");
        std::fs::write(&file, format!("{pin}\n")).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    }

    fn command(&self, args: &[&str]) -> Output {
        let config = ["--config", self.dir.config.as_str()];
        Command::new(&self.program).args(args).args(config).output().unwrap()
    }

    #[track_caller]
    fn ok(&self, args: &[&str]) -> String {
        let done = self.command(args);
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap()
    }

    #[track_caller]
    fn fails(&self, args: &[&str], code: &str, says: &str) {
        let done = self.command(args);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(
            done.status.code(),
            Some(shef_console::exit::of(code) as i32),
            "{args:?}: {said}"
        );
        assert!(said.contains(&format!("error [{code}]")) && said.contains(says), "{said}");
    }

    /// Makes the keys, and puts the database under a KEK that the token seals.
    fn furnished(&self) {
        self.ok(&["token-keys"]);
        let to = self.dir.path.join("kek-2");
        self.ok(&["rekey", "--to", to.to_str().unwrap()]);
        self.dir.configure(|text| text.replace("kek = \"kek\"", "kek = \"kek-2\""));
    }

    fn run(&self) -> Process {
        run_by(&self.program, &self.dir)
    }
}

fn release(client: &Client, device: &Device) -> HttpResponse {
    let (_, public) = generate_key_pair(&mut SystemEntropy);
    let (session, nonce) = client.session(Layer::Shield, Some(&public));
    let evidence = b64(&device.evidence(Layer::Shield, &nonce));
    client.post("/v1/release", &json!({"key": "data", "session": session, "evidence": evidence}))
}

fn ends(mut process: Process) {
    signal(&process.child, "-TERM");
    assert!(process.child.wait().unwrap().success());
}

/// The claims of the result of an appraisal, verified with the published key of its name.
fn result(client: &Client, device: &Device) -> Value {
    let (session, nonce) = client.session(Layer::Kernel, None);
    let evidence = b64(&device.evidence(Layer::Kernel, &nonce));
    let body = json!({"session": session, "evidence": evidence});
    let answer = client.post("/v1/appraise", &body).ok();
    let token = answer["result"].as_str().unwrap();
    let keys: JwkSet = serde_json::from_value(client.get("/.well-known/jwks.json").ok()).unwrap();
    let kid = jsonwebtoken::decode_header(token).unwrap().kid.unwrap();
    let key = DecodingKey::from_jwk(keys.find(&kid).expect("a published key")).unwrap();
    let mut validation = Validation::new(Algorithm::ES256);
    validation.validate_aud = false;
    decode::<Value>(token, &key, &validation).unwrap().claims
}

#[test]
fn the_keys_of_a_service_stay_in_a_token() {
    let Some(held) = Held::new() else { return };
    held.fails(&["check"], "SHEF-SVC-012", "has no public key labelled \"sign-1\"");
    let made = held.ok(&["token-keys"]);
    assert!(made.contains("made sign-1") && made.contains("made seal"), "{made}");
    assert!(!held.ok(&["token-keys"]).contains("made "), "keys are made once");
    held.furnished();
    let file = std::fs::read_to_string(held.dir.path.join("kek-2")).unwrap();
    assert!(file.starts_with("shef-kek/1 "), "{file}");
    // The files of both keys are not needed any more.
    for name in ["signing.key", "kek"] {
        std::fs::remove_file(held.dir.path.join(name)).unwrap();
    }
    held.ok(&["check"]);
    let (device, process) = (Device::new(1), held.run());
    furnish(&process.client, &device);
    process.client.put_key("data").ok();
    release(&process.client, &device).ok();
    assert_eq!(result(&process.client, &device)["ear_status"], "affirming");
    let signs = made.lines().find_map(|line| line.strip_prefix("signs as ")).unwrap();
    assert_eq!(signs.len(), 130);
    ends(process);
    // Another start finds the same keys.
    let process = held.run();
    release(&process.client, &device).ok();
    ends(process);
    assert!(held.ok(&["audit"]).contains("receipts 1 to 2 hold"));

    // Another pair signs; the chain across both holds, and the old key must stay published.
    held.dir.configure(|text| text.replace("sign-1", "sign-2"));
    held.ok(&["token-keys"]);
    held.fails(&["run"], "SHEF-SVC-002", signs);
    std::fs::write(held.dir.path.join("signing.key.retired"), format!("{signs}\n")).unwrap();
    let process = held.run();
    release(&process.client, &device).ok();
    assert_eq!(result(&process.client, &device)["ear_status"], "affirming");
    ends(process);
    assert!(held.ok(&["audit"]).contains("receipts 1 to 3 hold"));
    // A KEK sealed by the token needs the token.
    held.dir.configure(|text| text.replace("kek = \"seal\"\n", ""));
    held.fails(&["check"], "SHEF-SVC-002", "a token has sealed this KEK");
}

#[test]
fn a_token_that_is_away_or_refuses_is_named() {
    let Some(held) = Held::new() else { return };
    held.furnished();
    let (device, process) = (Device::new(1), held.run());
    furnish(&process.client, &device);
    process.client.put_key("data").ok();
    release(&process.client, &device).ok();
    // The token has lost the key: nothing is released, and nothing of it stays. The key comes back.
    let [there, copy, spare] = ["tokens", "copy", "spare"].map(|name| held.dir.path.join(name));
    for to in [&copy, &spare] {
        let mut copies = Command::new("cp");
        assert!(copies.arg("-a").args([&there, to]).status().unwrap().success());
    }
    let lose =
        ["--login", "--pin", PIN, "--delete-object", "--type", "privkey", "--label", "sign-1"];
    let mut tool = Command::new("pkcs11-tool");
    tool.args(["--module", MODULE, "--token-label", "shef"]).args(lose);
    let lost = tool.env("SOFTHSM2_CONF", held.dir.path.join("softhsm2.conf")).output().unwrap();
    assert!(lost.status.success(), "{}", String::from_utf8_lossy(&lost.stderr));
    release(&process.client, &device).problem(503, "SHEF-SVC-012");
    let ready = |status: u16| {
        let start = std::time::Instant::now();
        while process.client.get("/readyz").status != status {
            assert!(start.elapsed().as_secs() < 20, "{status}");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    };
    ready(503);
    process.client.get("/readyz").problem(503, "SHEF-SVC-012");
    assert_eq!(process.client.get("/v1/receipts").ok()["head"]["seq"], 1);
    std::fs::remove_dir_all(&there).unwrap();
    std::fs::rename(&copy, &there).unwrap();
    release(&process.client, &device).ok();
    ready(200);
    // The whole token goes while the service wants to sign, and comes back.
    std::fs::rename(&there, &copy).unwrap();
    let refused = release(&process.client, &device);
    let said = refused.json().to_string();
    refused.problem(503, "SHEF-SVC-012");
    for inside in ["shef\\\"", "sign-1", "softhsm", held.dir.path.to_str().unwrap()] {
        assert!(!said.contains(inside), "{said}");
    }
    ready(503);
    std::fs::rename(&copy, &there).unwrap();
    ready(200);
    release(&process.client, &device).ok();
    assert_eq!(process.client.get("/v1/receipts").ok()["head"]["seq"], 3);
    ends(process);
    // Two tokens of the same label: either could have the keys.
    let again = ["--init-token", "--free", "--label", "shef", "--so-pin", "1234", "--pin", PIN];
    let conf = held.dir.path.join("softhsm2.conf");
    let made = Command::new("softhsm2-util").args(again).env("SOFTHSM2_CONF", &conf).output();
    assert!(made.unwrap().status.success());
    held.fails(&["check"], "SHEF-SVC-012", "there are 2 tokens with this label");
    std::fs::remove_dir_all(&there).unwrap();
    let mut copies = Command::new("cp");
    assert!(copies.arg("-a").args([&spare, &there]).status().unwrap().success());

    held.pin("0000");
    held.fails(&["check"], "SHEF-SVC-013", "the token refuses it");
    held.pin(PIN);
    let pin = held.dir.path.join("pin");
    std::fs::set_permissions(&pin, PermissionsExt::from_mode(0o644)).unwrap();
    held.fails(&["check"], "SHEF-SVC-003", "pin");
    held.pin(PIN);
    held.ok(&["check"]);
    for (change, with, says) in [
        ("token = \"shef\"", "token = \"other\"", "it is not there; there are [\"shef\"]"),
        (MODULE, "/nowhere/lib.so", "/nowhere/lib.so"),
        ("kek = \"seal\"", "kek = \"none\"", "has no AES key labelled \"none\""),
    ] {
        held.dir.configure(|text| text.replace(change, with));
        held.fails(&["check"], "SHEF-SVC-012", says);
        held.dir.configure(|text| text.replace(with, change));
    }
    held.dir.configure(|text| {
        text.replace("kek = \"seal\"\n", "").replace("signing = \"sign-1\"\n", "")
    });
    held.fails(&["check"], "SHEF-SVC-001", "names no key");
}

/// A service whose token signs only while a gate is open.
struct Gated {
    process: Process,
    gate: PathBuf,
    signed: PathBuf,
}

impl Gated {
    /// Starts a replica with a separate gate, which is open.
    fn run(held: &Held, name: &str) -> Self {
        let library = held.dir.path.join("gated.so");
        if !library.exists() {
            let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gated_token.c");
            let mut compiler = Command::new("cc");
            compiler.args(["-shared", "-fPIC", "-o", library.to_str().unwrap(), source, "-ldl"]);
            assert!(compiler.arg(format!("-DSOFTHSM=\"{MODULE}\"")).status().unwrap().success());
            held.dir.configure(|text| text.replace(MODULE, library.to_str().unwrap()));
        }
        let [program, gate, signed] =
            ["program", "gate", "signed"].map(|what| held.dir.path.join(format!("{what}-{name}")));
        let environment = format!("GATE={} SIGNED={}", gate.display(), signed.display());
        held.script(&program, &environment);
        Self { process: run_by(&program, &held.dir), gate, signed }
    }

    fn close(&self) {
        std::fs::write(&self.gate, "").unwrap();
    }

    fn open(&self) {
        std::fs::remove_file(&self.gate).unwrap();
    }

    /// How many signatures have begun and ended.
    fn said(&self) -> u64 {
        std::fs::metadata(&self.signed).map_or(0, |file| file.len())
    }

    /// Waits until another signature begins or ends.
    fn says(&self, before: u64) {
        let start = std::time::Instant::now();
        while self.said() == before {
            assert!(start.elapsed().as_secs() < 60, "nothing is signed");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

/// The release of this request, as often as it takes: each attempt waits some seconds for the token.
fn released(client: &Client, request: &Value) -> Value {
    for _ in 0..20 {
        let answer = client.post("/v1/release", request);
        if answer.status != 503 {
            return answer.ok();
        }
    }
    panic!("it was not released");
}

fn request(client: &Client, device: &Device) -> Value {
    let (_, public) = generate_key_pair(&mut SystemEntropy);
    let (session, nonce) = client.session(Layer::Shield, Some(&public));
    let evidence = b64(&device.evidence(Layer::Shield, &nonce));
    json!({"key": "data", "session": session, "evidence": evidence})
}

#[test]
fn a_slow_token_holds_up_its_signatures_only() {
    let Some(held) = Held::new() else { return };
    held.furnished();
    let gated = Gated::run(&held, "only");
    let client = &gated.process.client;
    let device = Device::new(1);
    furnish(client, &device);
    client.put_key("data").ok();
    release(client, &device).ok();
    let wanted = request(client, &device);
    gated.close();
    // While it signs, the database is free for changes, of this tenant too. A machine that is slow
    // may not get that far before the signature is given up.
    let free = (1..=5).any(|serial| {
        let before = gated.said();
        std::thread::scope(|scope| {
            let releasing = scope.spawn(|| client.post("/v1/release", &wanted));
            gated.says(before);
            let revocation =
                json!({"kind": "serial", "value": format!("{serial:02}"), "reason": "lost"});
            client.post("/v1/revocations", &revocation).ok();
            let free = !releasing.is_finished();
            releasing.join().unwrap().problem(503, "SHEF-SVC-012");
            client.get("/readyz").problem(503, "SHEF-SVC-012");
            let signing = gated.said();
            gated.open();
            gated.says(signing);
            gated.close();
            free
        })
    });
    assert!(free, "a change waited for a signature");
    assert_eq!(client.get("/v1/receipts").ok()["head"]["seq"], 1);
    // Nothing was used up.
    gated.open();
    released(client, &wanted);
    assert_eq!(client.get("/v1/receipts").ok()["head"]["seq"], 2);
    assert_eq!(client.get("/readyz").status, 200);
    // Without requests, nothing is signed.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let before = gated.said();
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(gated.said(), before);
    ends(gated.process);
    assert!(held.ok(&["audit"]).contains("receipts 1 to 2 hold"));
}

/// Waits until it is so.
#[track_caller]
fn until(mut so: impl FnMut() -> bool) {
    let start = std::time::Instant::now();
    while !so() {
        assert!(start.elapsed().as_secs() < 60, "it never happens");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn a_token_that_hangs_holds_up_neither_revocations_nor_the_end() {
    let Some(held) = Held::new() else { return };
    held.furnished();
    held.dir.configure(|text| format!("{text}\n[[tenant]]\nname = \"other\"\n"));
    let mut gated = Gated::run(&held, "only");
    let folder = held.dir.path.to_str().unwrap();
    let client =
        ["client", "--dir", folder, "--tenant", "other", "--role", "operator", "--name", "o"];
    assert!(command(&client).status.success());
    let other = Client::new(&held.dir.path, gated.process.client.url(), Some("o"));
    other.get("/v1/keys").ok();
    let slots = gated.gate.with_extension("slots");
    std::fs::write(&slots, "").unwrap();
    signal(&gated.process.child, "-HUP");
    std::thread::sleep(std::time::Duration::from_millis(500));
    // The next configuration cannot be used, but it takes a tenant away.
    held.dir.configure(|text| {
        text.replace("[[tenant]]\nname = \"other\"\n", "").replace("\"sign-1\"", "\"none\"")
    });
    signal(&gated.process.child, "-HUP");
    until(|| other.get("/v1/keys").status == 401);
    let metrics = gated.process.client.get("/metrics").ok_bytes();
    let metrics = String::from_utf8_lossy(&metrics);
    assert!(metrics.contains("shef_reloads_total{result=\"refused\"} 0\n"), "{metrics}");
    // The first reload goes on, and does not bring the tenant back.
    std::fs::remove_file(&slots).unwrap();
    for _ in 0..40 {
        assert_eq!(other.get("/v1/keys").status, 401);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    held.dir.configure(|text| text.replace("\"none\"", "\"sign-1\""));
    std::fs::write(&slots, "").unwrap();
    let checked = Command::new(held.dir.path.join("program-only"))
        .args(["check", "--config", &held.dir.config])
        .output()
        .unwrap();
    let said = String::from_utf8(checked.stderr).unwrap();
    assert!(said.contains("error [SHEF-SVC-012]") && said.contains("within 10 s"), "{said}");
    signal(&gated.process.child, "-HUP");
    std::thread::sleep(std::time::Duration::from_millis(500));
    signal(&gated.process.child, "-TERM");
    assert!(gated.process.child.wait().unwrap().success());
}

#[test]
fn a_caller_that_is_removed_while_the_token_signs_gets_nothing() {
    let Some(held) = Held::new() else { return };
    held.furnished();
    let token = "shef_a-token-of-this-test";
    let sha256 = hex::encode(shef_verifierd::secrets::sha256(token.as_bytes()));
    let entry =
        format!("\n[[tenant.token]]\nname = \"t\"\nrole = \"release\"\nsha256 = \"{sha256}\"\n");
    held.dir.configure(|text| text.replace("\n[pkcs11]", &format!("{entry}\n[pkcs11]")));
    let gated = Gated::run(&held, "only");
    let (client, device) = (&gated.process.client, Device::new(1));
    furnish(client, &device);
    client.put_key("data").ok();
    let caller = Client::new(&held.dir.path, client.url(), None).with_token(token);
    let wanted = request(&caller, &device);
    gated.close();
    let before = gated.said();
    std::thread::scope(|scope| {
        let releasing = scope.spawn(|| caller.post("/v1/release", &wanted));
        gated.says(before);
        held.dir.configure(|text| text.replace(&entry, ""));
        signal(&gated.process.child, "-HUP");
        until(|| caller.get("/v1/keys").status == 401);
        gated.open();
        let answer = releasing.join().unwrap();
        assert!([401, 503].contains(&answer.status), "{}", answer.json());
    });
    assert_eq!(client.get("/v1/receipts").ok()["head"]["seq"], 0);
    ends(gated.process);
}

/// What a private key signs must fit the public key of the same label.
#[test]
fn a_pair_that_does_not_belong_together_signs_nothing() {
    let Some(held) = Held::new() else { return };
    held.furnished();
    let tool = |args: &[&str]| {
        let mut tool = Command::new("pkcs11-tool");
        tool.args(["--module", MODULE, "--token-label", "shef", "--login", "--pin", PIN]);
        let conf = held.dir.path.join("softhsm2.conf");
        let done = tool.args(args).env("SOFTHSM2_CONF", conf).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    tool(&["--delete-object", "--type", "privkey", "--label", "sign-1"]);
    held.fails(&["check"], "SHEF-SVC-012", "has no private key labelled \"sign-1\"");
    held.fails(&["run"], "SHEF-SVC-012", "has no private key labelled \"sign-1\"");
    tool(&["--delete-object", "--type", "pubkey", "--label", "sign-1"]);
    for id in ["01", "02"] {
        let pair = ["--keypairgen", "--key-type", "EC:prime256v1", "--label", "sign-1", "--id"];
        tool(&[&pair[..], &[id]].concat());
    }
    tool(&["--delete-object", "--type", "privkey", "--id", "01"]);
    tool(&["--delete-object", "--type", "pubkey", "--id", "02"]);
    held.fails(&["check"], "SHEF-SVC-012", "does not verify with the public key");
    held.fails(&["run"], "SHEF-SVC-012", "does not verify with the public key");
}

#[test]
fn a_receipt_that_was_signed_too_late_is_signed_anew() {
    let Some(held) = Held::new() else { return };
    let Some(server) = Postgres::start() else { return };
    held.dir.configure(|text| text.replace("sqlite:verifierd.db", &server.url()));
    held.furnished();
    let (slow, quick) = (Gated::run(&held, "slow"), Gated::run(&held, "quick"));
    let device = Device::new(1);
    furnish(&slow.process.client, &device);
    slow.process.client.put_key("data").ok();
    let wanted = request(&slow.process.client, &device);
    slow.close();
    std::thread::scope(|scope| {
        let releasing = scope.spawn(|| released(&slow.process.client, &wanted));
        slow.says(0);
        release(&quick.process.client, &device).ok();
        let begun = slow.said();
        slow.open();
        assert_eq!(releasing.join().unwrap()["head"]["seq"], 2);
        assert!(slow.said() > begun + 1, "signed for the new end of the chain");
    });
    ends(slow.process);
    ends(quick.process);
    assert!(held.ok(&["audit"]).contains("receipts 1 to 2 hold"));
}

/// A replica whose token is slow does not lose to one whose token is quick for ever: at last, the other
/// one waits for it.
#[test]
fn a_replica_with_a_slow_token_releases_beside_a_quick_one() {
    let Some(held) = Held::new() else { return };
    let Some(server) = Postgres::start() else { return };
    held.dir.configure(|text| text.replace("sqlite:verifierd.db", &server.url()));
    held.furnished();
    let (slow, quick) = (Gated::run(&held, "slow"), Gated::run(&held, "quick"));
    let device = Device::new(1);
    furnish(&slow.process.client, &device);
    slow.process.client.put_key("data").ok();
    let wanted = request(&slow.process.client, &device);
    std::fs::write(slow.gate.with_extension("slow"), "").unwrap();
    std::thread::scope(|scope| {
        let releasing = scope.spawn(|| slow.process.client.post("/v1/release", &wanted));
        let mut others = 0;
        while !releasing.is_finished() {
            others += usize::from(release(&quick.process.client, &device).status == 200);
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        releasing.join().unwrap().ok();
        assert!(others > 3, "the other replica released {others} times: the test shows nothing");
    });
    ends(slow.process);
    ends(quick.process);
    assert!(held.ok(&["audit"]).contains("hold"));
}

/// Another token takes the place of one that hangs in a login.
#[test]
fn a_token_that_hangs_holds_up_no_other() {
    let Some(held) = Held::new() else { return };
    held.furnished();
    let (gated, device) = (Gated::run(&held, "only"), Device::new(1));
    furnish(&gated.process.client, &device);
    let (library, other) = (held.dir.path.join("gated.so"), held.dir.path.join("other.so"));
    std::fs::copy(MODULE, &other).unwrap();
    let slots = gated.gate.with_extension("slots");
    std::fs::write(&slots, "").unwrap();
    let reloads = |result: &str| {
        let metrics = gated.process.client.get("/metrics").ok_bytes();
        let line = format!("shef_reloads_total{{result=\"{result}\"}} 1\n");
        String::from_utf8_lossy(&metrics).contains(&line)
    };
    signal(&gated.process.child, "-HUP");
    until(|| reloads("refused"));
    held.dir.configure(|text| text.replace(library.to_str().unwrap(), other.to_str().unwrap()));
    signal(&gated.process.child, "-HUP");
    until(|| reloads("done"));
    result(&gated.process.client, &device);
    std::fs::remove_file(&slots).unwrap();
    ends(gated.process);
}

/// The flags of a token in the file of SoftHSM, which itself sets neither of these: a token of another
/// kind has counted wrong PINs.
fn set_flags(held: &Held, from: u64, to: u64) {
    let mut changed = 0;
    for token in std::fs::read_dir(held.dir.path.join("tokens")).unwrap() {
        let file = token.unwrap().path().join("token.object");
        let mut bytes = std::fs::read(&file).unwrap();
        let at = bytes.windows(8).position(|window| window == from.to_be_bytes());
        if let Some(at) = at {
            bytes[at..at + 8].copy_from_slice(&to.to_be_bytes());
            std::fs::write(&file, bytes).unwrap();
            changed += 1;
        }
    }
    assert_eq!(changed, 1, "no token has the flags {from:x}");
}

#[test]
fn the_last_attempt_of_a_token_is_not_used_up() {
    let (usual, last, locked) = (0x42d, 0x2_0000, 0x4_0000);
    let Some(held) = Held::new() else { return };
    held.ok(&["token-keys"]);
    held.ok(&["check"]);
    for (flag, says) in [(last, "one more wrong PIN locks it"), (locked, "the token is locked")] {
        set_flags(&held, usual, usual | flag);
        // Neither the right PIN nor a wrong one is tried.
        for pin in [PIN, "0000"] {
            held.pin(pin);
            held.fails(&["check"], "SHEF-SVC-013", says);
            held.fails(&["run"], "SHEF-SVC-013", says);
        }
        held.pin(PIN);
        set_flags(&held, usual | flag, usual);
        held.ok(&["check"]);
    }
}
