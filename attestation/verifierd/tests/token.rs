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

use crate::binary::{Dir, Process, dir, run_by, signal};
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
        let script = format!(
            "#!/bin/sh\nSOFTHSM2_CONF={} exec {} \"$@\"\n",
            conf.display(),
            env!("CARGO_BIN_EXE_shef-verifierd")
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let held = Self { dir, program };
        held.pin(PIN);
        held.dir.configure(|text| {
            format!(
                "{text}\n[pkcs11]\nmodule = \"{MODULE}\"\ntoken = \"shef\"\npin_file = \"pin\"\nsigning = \"sign-1\"\nkek = \"seal\"\n"
            )
        });
        Some(held)
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
        assert!(!done.status.success(), "{args:?}");
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
    let (there, copy) = (held.dir.path.join("tokens"), held.dir.path.join("copy"));
    let mut copies = Command::new("cp");
    assert!(copies.arg("-a").args([&there, &copy]).status().unwrap().success());
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
    assert_eq!(process.client.get("/v1/receipts").ok()["head"]["seq"], 2);
    ends(process);

    held.pin("0000");
    held.fails(&["check"], "SHEF-SVC-012", "refuses the PIN in");
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
