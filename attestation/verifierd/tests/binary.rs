//! The real binary: set-up, start-up errors, signals, kill -9, backup and restore.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::json;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::config::Config;
use shef_verifierd::secrets::{Kek, SystemEntropy, read_secret};
use shef_verifierd::store::{self, Store};
use sqlx::Connection as _;

use shef_fixtures::service::*;

pub fn command(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_shef-verifierd")).args(args).output().unwrap()
}

#[track_caller]
pub fn fails(args: &[&str], status: i32, code: &str) -> String {
    let output = command(args);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert_eq!(text.matches(&format!("error [{code}]")).count(), 1, "{text}");
    text
}

/// A folder with a set-up.
pub struct Dir {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
    pub config: String,
}

pub fn dir() -> Dir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("v");
    let text = path.to_str().unwrap();
    let output = command(&[
        "init",
        "--dir",
        text,
        "--listen",
        "127.0.0.1:0",
        "--audience",
        AUDIENCE,
        "--host",
        "127.0.0.1",
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let config = path.join("verifierd.toml").to_str().unwrap().to_owned();
    Dir { _folder: folder, path, config }
}

impl Dir {
    /// Changes the configuration.
    pub fn configure(&self, change: impl FnOnce(String) -> String) {
        std::fs::write(&self.config, change(std::fs::read_to_string(&self.config).unwrap()))
            .unwrap();
    }
}

pub struct Process {
    pub child: Child,
    pub client: Client,
}

/// Starts the binary and waits until it prints its address.
pub fn run(dir: &Dir) -> Process {
    started(dir).0
}

/// The same, with the lines of its log until then.
pub fn started(dir: &Dir) -> (Process, Vec<serde_json::Value>) {
    started_by(Path::new(env!("CARGO_BIN_EXE_shef-verifierd")), dir)
}

/// Starts another binary in the same way.
pub fn run_by(program: &Path, dir: &Dir) -> Process {
    started_by(program, dir).0
}

fn started_by(program: &Path, dir: &Dir) -> (Process, Vec<serde_json::Value>) {
    // A write beyond the file size limit returns an error, as on a full disk, instead of killing
    // the program.
    let mut child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" run --config \"$1\""])
        .args([program.as_os_str(), dir.config.as_ref()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut log = Vec::new();
    let address = loop {
        let line: serde_json::Value =
            serde_json::from_str(&lines.next().expect("the service ended").unwrap()).unwrap();
        let address = line["address"].as_str().map(str::to_owned);
        let listens = line["message"] == "listening";
        log.push(line);
        if listens {
            break address.unwrap();
        }
    };
    // Its log must not fill the pipe.
    std::thread::spawn(move || lines.for_each(drop));
    let client = Client::new(&dir.path, &format!("https://{address}"), Some("operator"));
    (Process { child, client }, log)
}

pub fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// systemd may give a file to a service by an ACL, whose mask shows as the right of a group.
#[test]
fn a_secret_may_be_a_credential_of_systemd() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = dir();
    let folder = dir.path.join("credentials");
    std::fs::create_dir(&folder).unwrap();
    let mode = |mode| {
        let rights = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(folder.join("kek"), rights).unwrap();
    };
    std::fs::rename(dir.path.join("kek"), folder.join("kek")).unwrap();
    dir.configure(|text| text.replace("\"kek\"", "\"%d/kek\""));
    let check = |folder: Option<&Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shef-verifierd"));
        command.args(["check", "--config", &dir.config]).env_remove("CREDENTIALS_DIRECTORY");
        let output = command.envs(folder.map(|path| ("CREDENTIALS_DIRECTORY", path))).output();
        String::from_utf8(output.unwrap().stderr).unwrap()
    };
    mode(0o440);
    assert_eq!(check(Some(&folder)), "");
    mode(0o444);
    assert!(check(Some(&folder)).contains("SHEF-SVC-003"));
    let said = check(None);
    assert!(said.contains("SHEF-SVC-001") && said.contains("LoadCredential="), "{said}");
    // The same file is no credential under another name.
    mode(0o440);
    dir.configure(|text| text.replace("%d/kek", "credentials/kek"));
    assert!(check(None).contains("SHEF-SVC-003"));
}

#[test]
fn init_makes_a_set_up_that_runs_and_never_overwrites() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = dir();
    for secret in ["ca.key", "server.key", "operator.key", "signing.key", "kek"] {
        assert_eq!(
            std::fs::metadata(dir.path.join(secret)).unwrap().permissions().mode() & 0o777,
            0o600,
            "{secret}"
        );
    }
    fails(&["init", "--dir", dir.path.to_str().unwrap()], 5, "SHEF-SVC-008");
    assert!(command(&["check", "--config", &dir.config]).status.success());
    let said = String::from_utf8(command(&["version"]).stdout).unwrap();
    let schema = format!("\nschema {}, serves beside {}\n", store::version(), store::beside());
    assert!(said.starts_with("shef-verifierd ") && said.ends_with(&schema), "{said}");
    assert!(command(&["explain", "shef-svc-042"]).status.success());
    let mut process = run(&dir);
    assert_eq!(process.client.get("/healthz").ok()["status"], "ok");
    // An error in the file: SIGHUP keeps the old configuration. Then an orderly shutdown.
    let text = std::fs::read_to_string(&dir.config).unwrap();
    std::fs::write(&dir.config, text.replace("[storage]", "[storag]")).unwrap();
    signal(&process.child, "-HUP");
    process.client.get("/v1/devices").ok();
    signal(&process.child, "-TERM");
    assert_eq!(process.child.wait().unwrap().code(), Some(0));
}

#[test]
fn of_two_set_ups_at_once_one_is_whole() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    for round in 0..6 {
        let folder = dir.path().join(round.to_string());
        let setups: Vec<_> = (0..2)
            .map(|_| {
                Command::new("sh")
                    .args(["-c", "umask 000; exec \"$0\" init --dir \"$1\""])
                    .arg(env!("CARGO_BIN_EXE_shef-verifierd"))
                    .arg(&folder)
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let ends = setups.into_iter().map(|setup| setup.wait_with_output().unwrap());
        let (made, refused): (Vec<_>, Vec<_>) = ends.partition(|end| end.status.success());
        assert_eq!((made.len(), refused.len()), (1, 1), "{refused:?}");
        let said = String::from_utf8_lossy(&refused[0].stderr).into_owned();
        assert!(said.contains("error [SHEF-SVC-008]"), "{said}");
        let config = folder.join("verifierd.toml");
        assert!(command(&["check", "--config", config.to_str().unwrap()]).status.success());
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o755);
    }
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 6, "nothing else is left");
}

#[test]
fn start_up_errors_say_what_and_where() {
    let dir = dir();
    let text = std::fs::read_to_string(&dir.config).unwrap();
    let with =
        |from: &str, to: &str| std::fs::write(&dir.config, text.replacen(from, to, 1)).unwrap();
    with("audience", "audiense");
    assert!(
        fails(&["run", "--config", &dir.config], 5, "SHEF-SVC-001")
            .contains("verifierd.toml:4:1: unknown field")
    );
    with("server.pem", "missing.pem");
    fails(&["check", "--config", &dir.config], 5, "SHEF-SVC-002");
    with("sqlite:verifierd.db", "postgres://127.0.0.1:1/none");
    fails(&["check", "--config", &dir.config], 4, "SHEF-SVC-004");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    with("127.0.0.1:0", &taken.local_addr().unwrap().to_string());
    fails(&["run", "--config", &dir.config], 4, "SHEF-SVC-007");
    std::fs::write(&dir.config, &text).unwrap();
    assert!(command(&["check", "--config", &dir.config]).status.success());
    make_database(&dir);
    // Another KEK, a KEK that others can read, a database of a newer version.
    let kek = dir.path.join("kek");
    let right = std::fs::read(&kek).unwrap();
    std::fs::write(&kek, "00".repeat(32)).unwrap();
    fails(&["check", "--config", &dir.config], 5, "SHEF-SVC-006");
    std::fs::write(&kek, &right).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&kek, std::fs::Permissions::from_mode(0o640)).unwrap();
    fails(&["check", "--config", &dir.config], 5, "SHEF-SVC-003");
    std::fs::set_permissions(&kek, std::fs::Permissions::from_mode(0o600)).unwrap();
    newer(&dir.path.join("verifierd.db"), 1000);
    fails(&["check", "--config", &dir.config], 5, "SHEF-SVC-005");
}

#[test]
fn a_certificate_that_no_client_accepts_is_refused() {
    let dir = dir();
    let day = 86_400;
    let later =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
            as i64
            + 3 * day;
    shef_verifierd::init::server(&dir.path, "later", &["localhost".to_owned()], later).unwrap();
    let text = std::fs::read_to_string(&dir.config).unwrap();
    for (name, says) in [("later", "starts at"), ("ca", "CA:TRUE"), ("operator", "names no host")] {
        let named = text.replacen("server.pem", &format!("{name}.pem"), 1).replacen(
            "server.key",
            &format!("{name}.key"),
            1,
        );
        std::fs::write(&dir.config, named).unwrap();
        for verb in ["check", "run"] {
            let error = fails(&[verb, "--config", &dir.config], 5, "SHEF-SVC-002");
            assert!(error.contains(says) && error.contains(&format!("{name}.pem")), "{error}");
        }
    }
}

#[test]
fn an_ipv6_address_is_a_host_and_an_unknown_code_is_wrong_use() {
    let folder = tempfile::tempdir().unwrap();
    for (number, host) in ["::1", "[::1]"].iter().enumerate() {
        let path = folder.path().join(number.to_string());
        let made = command(&[
            "init",
            "--dir",
            path.to_str().unwrap(),
            "--listen",
            "[::1]:8443",
            "--host",
            host,
        ]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let text = std::fs::read_to_string(path.join("verifierd.toml")).unwrap();
        assert!(text.contains("audience = \"https://[::1]:8443\""), "{text}");
    }
    fails(&["explain", "SHEF-XYZ-999"], 2, "SHEF-CLI-002");
    // A closed pipe is success.
    for args in [&["version"][..], &["explain", "shef-svc-042"], &["explain"], &["man", "run"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = Command::new(env!("CARGO_BIN_EXE_shef-verifierd"))
            .args(args)
            .stdout(writer)
            .status()
            .unwrap();
        assert!(status.success(), "{args:?}: {status}");
    }
}

/// Commands reject bad input before they create or print anything, and print configuration text
/// exactly as it must be in the file.
#[test]
fn commands_refuse_what_would_not_work_and_say_what_to_write() {
    let dir = dir();
    let new = dir.path.join("new");
    let init = |more: &[&str], code| {
        fails(&[&["init", "--dir", new.to_str().unwrap()][..], more].concat(), 5, code)
    };
    assert!(
        init(&["--listen", "8443"], "SHEF-SVC-001")
            .contains("listen = \"8443\" is not an address with port, such as \"127.0.0.1:8443\"")
    );
    for host in ["", "a b", "https://localhost", "*.", "::1:"] {
        let said = init(&["--host", "localhost", "--host", host], "SHEF-SVC-001");
        assert!(
            said.contains(&format!("host {host:?}: expected a host name or an address")),
            "{said}"
        );
    }
    assert!(!new.exists());
    let output = command(&["token", "--name", "No name", "--role", "attest"]);
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(5), &b""[..]));
    let text = std::fs::read_to_string(&dir.config).unwrap();
    let prints = |args: &[&str]| {
        let output = command(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines()
            .filter_map(|line| line.strip_prefix("    "))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let folder = dir.path.to_str().unwrap();
    let server = prints(&[
        "server",
        "--dir",
        folder,
        "--name",
        "server-2",
        "--host",
        "*.example.org",
        "--host",
        "::1",
    ]);
    let kek = prints(&["rekey", "--config", &dir.config, "--to", &format!("{folder}/../v/kek-2")]);
    let operator = format!("{folder}/operator.pem");
    let said = fails(&["revoke", "--new-list", "--dir", folder, &operator], 5, "SHEF-SVC-001");
    let list = "crls = [\"crl.pem\"]";
    assert!(said.contains(list) && dir.path.join("crl.pem").exists(), "{said}");
    assert_eq!(
        [&server[..], &kek[..]].concat(),
        ["certificate = \"server-2.pem\"", "key = \"server-2.key\"", "kek = \"kek-2\""]
    );
    let changed = text
        .replace("key = \"server.key\"", &server[1])
        .replace("kek = \"kek\"", &kek[0])
        .replace("[storage]", &format!("{list}\n[storage]"));
    dir.configure(|_| changed.clone());
    let said = fails(&["check", "--config", &dir.config], 5, "SHEF-SVC-002");
    assert!(said.contains("server.pem: with the key") && said.contains("server-2.key"), "{said}");
    dir.configure(|_| changed.replace("certificate = \"server.pem\"", &server[0]));
    assert!(command(&["check", "--config", &dir.config]).status.success());
    let elsewhere = dir.path.parent().unwrap().join("kek-3");
    let kek = prints(&["rekey", "--config", &dir.config, "--to", elsewhere.to_str().unwrap()]);
    assert_eq!(kek, [format!("kek = {:?}", elsewhere.canonicalize().unwrap())]);
}

/// Starts the service once, which creates its database.
pub fn make_database(dir: &Dir) {
    let mut process = run(dir);
    signal(&process.child, "-TERM");
    process.child.wait().unwrap();
}

/// Makes a database of a newer version, beside which programs of versions from `oldest` may serve.
fn newer(database: &Path, oldest: i64) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let pool = sqlx::SqlitePool::connect(database.to_str().unwrap()).await.unwrap();
        for (name, number) in [("version", 1000), ("beside", oldest)] {
            sqlx::query("UPDATE meta SET number = $1 WHERE name = $2")
                .bind(number)
                .bind(name)
                .execute(&pool)
                .await
                .unwrap();
        }
        pool.close().await;
    });
}

/// Replicas are upgraded one by one: a program serves beside a database that the next version has
/// extended, if that version says so, and leaves its version alone.
#[test]
fn a_program_serves_beside_the_next_version() {
    let (dir, device) = (dir(), Device::new(1));
    make_database(&dir);
    newer(&dir.path.join("verifierd.db"), shef_verifierd::store::version());
    for _ in 0..2 {
        let mut process = run(&dir);
        furnish(&process.client, &device);
        let (session, nonce) = process.client.session(Layer::Kernel, None);
        let evidence = b64(&device.evidence(Layer::Kernel, &nonce));
        let body = json!({"session": session, "evidence": evidence});
        process.client.post("/v1/appraise", &body).ok();
        signal(&process.child, "-TERM");
        process.child.wait().unwrap();
    }
    for args in [&["audit"][..], &["check"]] {
        let done = command(&[args, &["--config", &dir.config]].concat());
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    newer(&dir.path.join("verifierd.db"), shef_verifierd::store::version() + 1);
    fails(&["run", "--config", &dir.config], 5, "SHEF-SVC-005");
}

struct Case {
    session: String,
    evidence: String,
    /// The response, if one came.
    answer: Option<serde_json::Value>,
}

/// A set-up keeps the folder that it gets, and its permissions do not depend on the umask.
#[test]
fn a_set_up_fills_the_folder_that_is_there() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let init = |folder: &str, current: &Path| {
        let made = Command::new("sh")
            .args(["-c", "umask 0; exec \"$0\" init --dir \"$1\""])
            .args([env!("CARGO_BIN_EXE_shef-verifierd"), folder])
            .current_dir(current)
            .output()
            .unwrap();
        assert!(made.status.success(), "{folder}: {}", String::from_utf8_lossy(&made.stderr));
    };
    std::fs::create_dir(at("here")).unwrap();
    std::fs::set_permissions(at("here"), PermissionsExt::from_mode(0o777)).unwrap();
    let id = || std::fs::metadata(at("here")).unwrap().ino();
    let before = id();
    init(".", &at("here"));
    assert_eq!(id(), before);
    init("p/q/v/", dir.path());
    for folder in ["here", "p", "p/q", "p/q/v"] {
        assert_eq!(std::fs::metadata(at(folder)).unwrap().mode() & 0o7777, 0o755, "{folder}");
    }
    for folder in ["here", "p/q/v"] {
        let config = at(folder).join("verifierd.toml");
        assert!(command(&["check", "--config", config.to_str().unwrap()]).status.success());
    }
}

/// A new list would let in again whom the lost one refused.
#[test]
fn a_lost_list_is_not_begun_anew_however_the_configuration_names_it() {
    let dir = dir();
    let (folder, list) = (dir.path.to_str().unwrap(), dir.path.join("crl.pem"));
    let certificate = dir.path.join("operator.pem");
    let revoke = |more: &[&'static str]| {
        [&["revoke", "--dir", folder, certificate.to_str().unwrap()], more].concat()
    };
    // The live configuration may be elsewhere.
    let said = fails(&revoke(&[]), 5, "SHEF-SVC-002");
    assert!(said.contains("--new-list") && !list.exists(), "{said}");
    assert!(fails(&revoke(&["--new-list"]), 5, "SHEF-SVC-001").contains("does not name"));
    std::os::unix::fs::symlink("crl.pem", dir.path.join("link.pem")).unwrap();
    let text = std::fs::read_to_string(&dir.config).unwrap();
    let content = std::fs::read(&list).unwrap();
    let whole = list.to_str().unwrap();
    for spelling in ["crl.pem", "./crl.pem", "../v/crl.pem", "link.pem", whole] {
        let named = format!("crls = [{spelling:?}]\nclient_ca =");
        dir.configure(|_| text.replace("client_ca =", &named));
        let said = command(&revoke(&[]));
        let warning = String::from_utf8_lossy(&said.stderr).into_owned();
        let none = "not confirmed that every running service applies the list: no running service";
        assert!(said.status.code() == Some(3) && warning.contains(none), "{spelling}: {said:?}");
        std::fs::remove_file(&list).unwrap();
        for more in [&[][..], &["--new-list"]] {
            let said = fails(&revoke(more), 5, "SHEF-SVC-002");
            assert!(said.contains("verifierd.toml names it"), "{spelling}: {said}");
            assert!(!list.exists(), "{spelling}");
        }
        std::fs::write(&list, &content).unwrap();
    }
    // A configuration that a service would refuse: the list is written, and nothing is confirmed.
    let retired = "key = \"signing.key\"\nretired = [\"gone.pub\"]";
    for (good, broken) in [("key = \"signing.key\"", retired), ("[storage]", "[storag]")] {
        let named = "crls = [\"crl.pem\"]\nclient_ca =";
        dir.configure(|_| text.replace("client_ca =", named).replace(good, broken));
        let said = command(&revoke(&[]));
        let warning = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(
            said.status.code() == Some(3) && warning.contains("a service does not start again"),
            "{said:?}"
        );
    }
}

/// A service that names its list in this spelling, with the client bob and the arguments that revoke
/// it.
fn with_list(spelling: &str) -> (Dir, Process, Client, [String; 4]) {
    let dir = dir();
    let (folder, bob) = (dir.path.to_str().unwrap(), dir.path.join("bob.pem"));
    assert!(
        command(&["client", "--dir", folder, "--role", "audit", "--name", "bob"]).status.success()
    );
    fails(&["revoke", "--dir", folder, "--new-list"], 5, "SHEF-SVC-001");
    std::os::unix::fs::symlink("crl.pem", dir.path.join("link.pem")).unwrap();
    let named = format!("crls = [{spelling:?}]\nclient_ca =");
    dir.configure(|text| text.replace("client_ca =", &named));
    let (process, log) = started(&dir);
    let url = format!("https://{}", log.last().unwrap()["address"].as_str().unwrap());
    let client = Client::new(&dir.path, &url, Some("bob"));
    client.get("/v1/devices").ok();
    let revoke = ["revoke", "--dir", folder, bob.to_str().unwrap()].map(str::to_owned);
    (dir, process, client, revoke)
}

fn is_refused(client: &Client) -> bool {
    client.try_send("GET", "/v1/devices", &[], b"").map_or(true, |answer| answer.status == 401)
}

fn ends(mut process: Process) {
    process.client.get("/v1/devices").ok();
    signal(&process.child, "-TERM");
    assert_eq!(process.child.wait().unwrap().code(), Some(0));
}

/// `revoke` ends with 0 when the running service refuses the client.
#[test]
fn a_revocation_is_in_force_when_the_command_says_so() {
    for spelling in ["crl.pem", "link.pem"] {
        let (_dir, process, client, revoke) = with_list(spelling);
        let said = command(&revoke.each_ref().map(String::as_str));
        let line = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(
            said.status.success() && line.contains("the running service applies it"),
            "{spelling}: {said:?}"
        );
        assert!(is_refused(&client), "{spelling}: the revoked client is accepted");
        ends(process);
    }
}

/// The list is written, but the service applies nothing while it is stopped.
#[test]
fn a_list_that_no_service_applies_is_not_confirmed() {
    let (_dir, process, client, revoke) = with_list("crl.pem");
    signal(&process.child, "-STOP");
    let said = command(&revoke.each_ref().map(String::as_str));
    let warning = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        said.status.code() == Some(3) && warning.contains("the running service does not answer"),
        "{said:?}"
    );
    signal(&process.child, "-CONT");
    let refused = (0..1000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(10));
        is_refused(&client)
    });
    assert!(refused, "the revoked client is accepted");
    ends(process);
}

/// A service in another folder uses the same list: the command speaks for both.
#[test]
fn every_service_that_uses_a_list_confirms_it() {
    let (dir, process, _client, revoke) = with_list("crl.pem");
    let second = self::dir();
    let [ca, list] = ["ca.pem", "crl.pem"].map(|name| dir.path.join(name));
    let named = format!("crls = [{list:?}]\nclient_ca = {ca:?}");
    second.configure(|text| text.replace("client_ca = \"ca.pem\"", &named));
    let (mut other, _) = started(&second);
    let command = || {
        let said = command(&revoke.each_ref().map(String::as_str));
        let text = [&said.stdout[..], &said.stderr].concat();
        (said.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let (status, said) = command();
    assert!(status == Some(0) && said.contains("2 running services apply it"), "{said}");
    signal(&other.child, "-STOP");
    let (status, said) = command();
    assert!(status == Some(3) && said.contains("the running service does not answer"), "{said}");
    assert!(!said.contains("applies it") && !said.contains("apply it"), "{said}");
    signal(&other.child, "-CONT");
    signal(&other.child, "-TERM");
    assert_eq!(other.child.wait().unwrap().code(), Some(0));
    ends(process);
}

/// Without a configuration beside the list, the command knows no less: the service's configuration
/// may be elsewhere.
#[test]
fn a_list_without_a_configuration_beside_it_is_not_confirmed_unless_a_service_uses_it() {
    let (dir, process, client, revoke) = with_list("crl.pem");
    std::fs::rename(&dir.config, dir.path.join("elsewhere.toml")).unwrap();
    let command = || {
        let said = command(&revoke.each_ref().map(String::as_str));
        let text = [&said.stdout[..], &said.stderr].concat();
        (said.status.code(), String::from_utf8_lossy(&text).into_owned())
    };
    let (status, said) = command();
    assert!(status == Some(0) && said.contains("the running service applies it"), "{said}");
    assert!(is_refused(&client), "the revoked client is accepted");
    ends(process);
    let (status, said) = command();
    assert!(status == Some(3) && said.contains("no running service uses this list"), "{said}");
    assert!(said.contains("crls = [\"crl.pem\"]"), "{said}");
}

/// The key of the CA makes any client: no command uses one that other users can read or replace, and
/// `check` reports it.
#[test]
fn a_key_of_the_authority_that_is_open_to_others_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let dir = dir();
    let folder = dir.path.to_str().unwrap();
    let mode = |mode| {
        let key = dir.path.join("ca.key");
        std::fs::set_permissions(key, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for open in [0o666, 0o640, 0o602] {
        mode(open);
        for args in [
            &["client", "--dir", folder, "--role", "operator", "--name", "eve"][..],
            &["server", "--dir", folder, "--name", "eve"],
            &["revoke", "--dir", folder, "--new-list"],
            &["check", "--config", &dir.config],
        ] {
            let said = fails(args, 5, "SHEF-SVC-003");
            assert!(said.contains(&format!("ca.key: mode is {open:03o}, expected 600")), "{said}");
        }
        for made in ["eve.key", "eve.pem", "crl.pem"] {
            assert!(!dir.path.join(made).exists(), "{made}");
        }
    }
    mode(0o600);
    assert!(command(&["check", "--config", &dir.config]).status.success());
    // It may be on another machine.
    std::fs::remove_file(dir.path.join("ca.key")).unwrap();
    assert!(command(&["check", "--config", &dir.config]).status.success());
}

/// A running service refuses a client that `revoke` named, whatever `hinder` did before. Its result
/// is dropped afterwards.
fn revokes<T>(hinder: impl FnOnce(&Dir) -> T, status: i32) {
    let (dir, process, client, revoke) = with_list("crl.pem");
    let hindered = hinder(&dir);
    // The service reads the file again, and refuses it.
    signal(&process.child, "-HUP");
    let said = command(&revoke.each_ref().map(String::as_str));
    assert_eq!(said.status.code(), Some(status), "{said:?}");
    let line = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(line.contains("the running service applies it"), "{said:?}");
    assert!(is_refused(&client), "the revoked client is accepted");
    drop(hindered);
    // The list leaves an event once the database answers.
    let start = std::time::Instant::now();
    while process.client.events("action", "revocation-list", ["who", "what"]).is_empty() {
        assert!(start.elapsed().as_secs() < 60, "the revocation left no event");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    ends(process);
}

#[test]
fn a_file_with_an_error_holds_no_revocation_back() {
    revokes(|dir| dir.configure(|text| text.replace("[storage]", "[storag]")), 3);
}

/// A transaction of another process, for whose end writers wait.
fn held_database(dir: &Dir) -> (sqlx::SqliteConnection, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let database = dir.path.join("verifierd.db");
    let connection = runtime.block_on(async {
        let mut connection =
            sqlx::SqliteConnection::connect(database.to_str().unwrap()).await.unwrap();
        sqlx::query("BEGIN EXCLUSIVE").execute(&mut connection).await.unwrap();
        connection
    });
    (connection, runtime)
}

#[test]
fn a_database_that_another_process_holds_holds_no_revocation_back() {
    revokes(held_database, 0);
}

/// The event about a refused file waits for the database. A revocation in the next file does not wait
/// for this event.
#[test]
fn a_file_with_an_error_holds_up_no_later_one() {
    let dir = dir();
    let folder = dir.path.to_str().unwrap();
    let tenant = "\n[[tenant]]\nname = \"other\"\n";
    dir.configure(|text| text + tenant);
    let client =
        ["client", "--dir", folder, "--tenant", "other", "--role", "operator", "--name", "o"];
    assert!(command(&client).status.success());
    let process = run(&dir);
    let other = Client::new(&dir.path, process.client.url(), Some("o"));
    other.get("/v1/keys").ok();
    let held = held_database(&dir);
    dir.configure(|text| text.replace("[storage]", "[storag]"));
    signal(&process.child, "-HUP");
    std::thread::sleep(std::time::Duration::from_millis(500));
    dir.configure(|text| text.replace("[storag]", "[storage]").replace(tenant, ""));
    let start = std::time::Instant::now();
    signal(&process.child, "-HUP");
    while other.get("/v1/keys").status != 401 {
        let waited = start.elapsed();
        assert!(waited.as_secs() < 3, "what was taken away is there after {waited:?}");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    drop(held);
    let start = std::time::Instant::now();
    while process.client.events("action", "reload", ["who", "what"]).is_empty() {
        assert!(start.elapsed().as_secs() < 60, "the second file is not in force");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    ends(process);
}

/// A list that is not in the configuration revokes nothing, and a file has one purpose.
#[test]
fn commands_look_whether_they_had_an_effect() {
    let dir = dir();
    let folder = dir.path.to_str().unwrap();
    let certificate = dir.path.join("operator.pem");
    let revoke = ["revoke", "--new-list", "--dir", folder, certificate.to_str().unwrap()];
    assert!(fails(&revoke, 5, "SHEF-SVC-001").contains("does not name"));
    let text = std::fs::read_to_string(&dir.config).unwrap();
    std::fs::write(&dir.config, text.replace("client_ca =", "crls = [\"crl.pem\"]\nclient_ca ="))
        .unwrap();
    let said = command(&revoke);
    let warning = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.status.code() == Some(3) && warning.contains("no running service"), "{said:?}");
    make_database(&dir);
    let signing = dir.path.join("signing.key");
    assert!(
        fails(
            &["rekey", "--config", &dir.config, "--to", signing.to_str().unwrap()],
            5,
            "SHEF-SVC-008"
        )
        .contains("the file of signing.key")
    );
}

#[test]
fn kill_nine_loses_no_receipt_and_releases_nothing_twice() {
    let dir = dir();
    let device = Device::new(1);
    let process = run(&dir);
    furnish(&process.client, &device);
    process.client.put_key("data").ok();
    let (mut process, mut cases) = (Some(process), Vec::new());
    for round in 0..6u64 {
        let Process { mut child, client } = process.take().unwrap();
        let (_, public) = generate_key_pair(&mut SystemEntropy);
        let open: Vec<_> = (0..12).map(|_| client.session(Layer::Shield, Some(&public))).collect();
        let done: Vec<Case> = std::thread::scope(|scope| {
            let threads: Vec<_> = open
                .chunks(3)
                .map(|sessions| {
                    let (client, device) = (client.clone(), &device);
                    scope.spawn(move || {
                        let mut done = Vec::new();
                        for (session, nonce) in sessions {
                            let evidence = b64(&device.evidence(Layer::Shield, nonce));
                            let body =
                                json!({"key": "data", "session": session, "evidence": evidence})
                                    .to_string();
                            let answer = client.try_send(
                                "POST",
                                "/v1/release",
                                &[("content-type", "application/json")],
                                body.as_bytes(),
                            );
                            let answer = answer
                                .ok()
                                .filter(|answer| answer.status == 200)
                                .map(|answer| answer.json());
                            done.push(Case { session: session.clone(), evidence, answer });
                        }
                        done
                    })
                })
                .collect();
            // A different moment each time: from before the first commit to after the last.
            std::thread::sleep(std::time::Duration::from_millis(3 + round * 9));
            signal(&child, "-KILL");
            child.wait().unwrap();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        cases.extend(done);
        process = Some(run(&dir));
    }
    let Process { mut child, client } = process.unwrap();
    let answered = cases.iter().filter(|case| case.answer.is_some()).count();
    for case in &cases {
        let again = client
            .post(
                "/v1/release",
                &json!({"key": "data", "session": case.session, "evidence": case.evidence}),
            )
            .ok();
        // Answered releases are there, byte for byte; the others are answered now, once.
        if let Some(answer) = &case.answer {
            assert_eq!(*answer, again);
        }
    }
    let key = client.get("/v1/keys/data").ok();
    let receipts = client.get("/v1/receipts?limit=1000").ok();
    assert_eq!(key["versions"][0]["released"], cases.len());
    assert_eq!(receipts["receipts"].as_array().unwrap().len(), cases.len());
    assert!(answered < cases.len(), "no kill came before an answer: the test shows nothing");
    signal(&child, "-TERM");
    child.wait().unwrap();
    assert!(
        String::from_utf8(command(&["audit", "--config", &dir.config]).stdout)
            .unwrap()
            .contains(&format!("receipts 1 to {} hold", cases.len()))
    );
}

/// Limits the size of a process's files to `bytes`; `unlimited` lifts the limit.
fn limit_files(process: &str, bytes: &str) {
    assert!(
        Command::new("prlimit")
            .args(["--pid", process, &format!("--fsize={bytes}:")])
            .status()
            .unwrap()
            .success()
    );
}

/// A command that cannot write a whole file leaves no file behind, and works later.
#[test]
fn a_full_disk_leaves_no_part_of_a_file() {
    let dir = dir();
    let mut process = run(&dir);
    signal(&process.child, "-TERM");
    process.child.wait().unwrap();
    let (folder, copy, new) =
        (dir.path.to_str().unwrap(), dir.path.join("copy.db"), dir.path.join("other"));
    let (copy, new) = (copy.to_str().unwrap(), new.to_str().unwrap());
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&dir.path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.retain(|name| !name.to_str().unwrap().starts_with("verifierd.db-"));
        names.sort();
        names
    };
    let limited = |bytes: &str, args: &[&str]| {
        let script = "trap '' XFSZ; bytes=$1; shift; exec prlimit --fsize=$bytes \"$0\" \"$@\"";
        Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_shef-verifierd"), bytes])
            .args(args)
            .output()
            .unwrap()
    };
    let init = [
        "init",
        "--dir",
        new,
        "--listen",
        "127.0.0.1:0",
        "--audience",
        AUDIENCE,
        "--host",
        "127.0.0.1",
    ];
    // A key has about 240 bytes, a certificate 700, a database at least 4,096.
    for (bytes, args) in [
        ("100", &["client", "--dir", folder, "--role", "attest", "--name", "fleet"][..]),
        ("300", &["client", "--dir", folder, "--role", "attest", "--name", "fleet"]),
        ("300", &["server", "--dir", folder, "--name", "second", "--host", "127.0.0.1"]),
        ("4096", &["backup", "--config", &dir.config, "--out", copy]),
        ("300", &init),
    ] {
        let before = names();
        let output = limited(bytes, args);
        assert!(
            output.status.code().is_some_and(|code| code > 2),
            "{args:?} within {bytes} bytes: the test shows nothing"
        );
        if args[0] == "init" {
            assert!(!Path::new(new).exists(), "{args:?}");
        } else {
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(names(), before, "{args:?}: {said}");
            let told = args[0] != "backup" || said.contains("error [SHEF-SVC-009]");
            assert!(told && output.status.code() == Some(5), "{args:?}: {said}");
        }
        if bytes != "100" {
            let output = command(args);
            assert!(
                output.status.success(),
                "{args:?}: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

#[test]
fn a_full_disk_releases_nothing_and_loses_nothing() {
    let dir = dir();
    let device = Device::new(1);
    let Process { mut child, client } = run(&dir);
    furnish(&client, &device);
    client.put_key("data").ok();
    let (_, public) = generate_key_pair(&mut SystemEntropy);
    let request = || {
        let (session, nonce) = client.session(Layer::Shield, Some(&public));
        json!({"key": "data", "session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))})
    };
    let count = |client: &Client| {
        let released =
            client.get("/v1/keys/data").ok()["versions"][0]["released"].as_u64().unwrap();
        (released, client.get("/v1/receipts").ok()["head"]["seq"].as_u64().unwrap())
    };
    let first = request();
    let answer = client.post("/v1/release", &first).ok();
    let (open, other) = (request(), request());
    limit_files(&child.id().to_string(), "1");
    for _ in 0..3 {
        client.post("/v1/release", &open).problem(503, "SHEF-SVC-004");
        let appraisal = json!({"session": other["session"], "evidence": other["evidence"]});
        client.post("/v1/appraise", &appraisal).problem(503, "SHEF-SVC-004");
    }
    assert_eq!((count(&client), client.get("/healthz").status), ((1, 1), 200));
    // A probe every few seconds finds it.
    let until_ready = |ready: bool| {
        let start = std::time::Instant::now();
        while (client.get("/readyz").status == 200) != ready {
            assert!(start.elapsed().as_secs() < 60, "/readyz does not know that the disk is full");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    };
    until_ready(false);
    client.get("/readyz").problem(503, "SHEF-SVC-004");
    // With space again: a refused request used nothing up, and the released boxes are there.
    limit_files(&child.id().to_string(), "unlimited");
    until_ready(true);
    client.post("/v1/release", &open).ok();
    assert_eq!(client.post("/v1/release", &first).ok(), answer);
    assert_eq!(count(&client), (2, 2));
    // Full again, and killed: the database opens, and the chain holds.
    limit_files(&child.id().to_string(), "1");
    client.post("/v1/release", &other).problem(503, "SHEF-SVC-004");
    signal(&child, "-KILL");
    child.wait().unwrap();
    let Process { mut child, client } = run(&dir);
    assert_eq!(client.post("/v1/release", &first).ok(), answer);
    assert_eq!(count(&client), (2, 2));
    signal(&child, "-TERM");
    child.wait().unwrap();
    assert!(
        String::from_utf8(command(&["audit", "--config", &dir.config]).stdout)
            .unwrap()
            .contains("receipts 1 to 2 hold")
    );
}

/// Puts keys into the database, sealed under its KEK.
pub fn fill_with_keys(dir: &Dir, count: i64) {
    make_database(dir);
    let kek = Kek::new(&read_secret(&dir.path.join("kek")).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let pool = sqlx::SqlitePool::connect(dir.path.join("verifierd.db").to_str().unwrap()).await.unwrap();
        let mut tx = pool.begin().await.unwrap();
        for version in 1..=count {
            let sealed = kek.seal(&[b"key", b"default", b"data", &version.to_be_bytes()], &[7; 32]);
            sqlx::query("INSERT INTO key_version VALUES ('default', 'data', $1, $2, 'default', 1, 0, 0, 0, 0, 0, 0)")
                .bind(version)
                .bind(sealed)
                .execute(&mut *tx)
                .await
                .unwrap();
        }
        tx.commit().await.unwrap();
        pool.close().await;
    });
}

#[test]
fn kill_nine_while_the_kek_is_exchanged_leaves_one_that_opens_everything() {
    const KEYS: i64 = 2000;
    const ROUNDS: u32 = 6;
    let dir = dir();
    fill_with_keys(&dir, KEYS);
    let kek = |number: u32| dir.path.join(format!("kek-{number}")).to_str().unwrap().to_owned();
    let text = std::fs::read_to_string(&dir.config).unwrap();
    let name = |number: u32| {
        std::fs::write(
            &dir.config,
            text.replace("kek = \"kek\"", &format!("kek = \"kek-{number}\"")),
        )
        .unwrap();
    };
    let start = std::time::Instant::now();
    assert!(command(&["rekey", "--config", &dir.config, "--to", &kek(0)]).status.success());
    let whole = start.elapsed();
    let mut cut_short = 0;
    for round in 0..ROUNDS {
        name(round);
        let args = ["rekey", "--config", &dir.config, "--to", &kek(round + 1)];
        let mut child = Command::new(env!("CARGO_BIN_EXE_shef-verifierd"))
            .args(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // A different moment each time, from the beginning to the end.
        std::thread::sleep(whole * round / ROUNDS);
        signal(&child, "-KILL");
        child.wait().unwrap();
        let opens = [round, round + 1].map(|number| {
            name(number);
            command(&["check", "--config", &dir.config]).status.success()
        });
        assert_ne!(opens[0], opens[1], "round {round}: exactly one KEK opens the database");
        cut_short += u32::from(opens[0]);
        // The same command completes the work; with nothing left, every secret has opened under the
        // old KEK.
        name(round);
        let output = command(&args);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(
            said.contains(&format!("{KEYS} secrets")) == opens[0]
                && said.contains("already") == opens[1],
            "{said}"
        );
    }
    assert!(cut_short > 0, "no kill came before the end: the test shows nothing");
    name(ROUNDS);
    assert!(
        command(&["rekey", "--config", &dir.config, "--to", &kek(99)]).status.success(),
        "every secret opens under the last KEK"
    );
}

#[test]
fn backup_restore_and_audit() {
    let dir = dir();
    dir.configure(|text| text + "\n[[tenant]]\nname = \"idle\"\n");
    let device = Device::new(1);
    let process = run(&dir);
    furnish(&process.client, &device);
    process.client.put_key("data").ok();
    let (_, public) = generate_key_pair(&mut SystemEntropy);
    let release = |client: &Client| {
        let (session, nonce) = client.session(Layer::Shield, Some(&public));
        let body = json!({"key": "data", "session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))});
        client.post("/v1/release", &body).ok();
        body
    };
    release(&process.client);
    let copy = dir.path.join("copy.db");
    let copy = copy.to_str().unwrap();
    assert!(command(&["backup", "--config", &dir.config, "--out", copy]).status.success());
    fails(&["backup", "--config", &dir.config, "--out", copy], 5, "SHEF-SVC-009");
    // An audit reads one snapshot while the service releases keys.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let config = Config::read(std::path::Path::new(&dir.config)).unwrap();
    let kek = shef_verifierd::keyring::kek(&config).unwrap();
    let heads = |store: &Store| runtime.block_on(store.heads("default")).unwrap().head.seq;
    let held = runtime.block_on(async {
        let store = Store::look(&config.database, &kek, true).await.unwrap().unwrap();
        store.hold().await.unwrap();
        store
    });
    assert_eq!(heads(&held), 1);
    // Released after the backup: the restored database must not release it again.
    let late = release(&process.client);
    assert_eq!(heads(&held), 1);
    runtime.block_on(held.close());
    let Process { mut child, .. } = process;
    signal(&child, "-TERM");
    child.wait().unwrap();
    fails(&["restore", "--config", &dir.config, "--from", copy], 5, "SHEF-SVC-009");
    for file in ["verifierd.db", "verifierd.db-wal", "verifierd.db-shm"] {
        let _ = std::fs::remove_file(dir.path.join(file));
    }
    // A copy that does not pass the audit takes no database's place.
    let changed = dir.path.join("changed.db");
    std::fs::copy(copy, &changed).unwrap();
    let without_receipts = |database: &std::path::Path| {
        runtime.block_on(async {
            let pool = sqlx::SqlitePool::connect(database.to_str().unwrap()).await.unwrap();
            sqlx::query("DELETE FROM receipt").execute(&pool).await.unwrap();
            pool.close().await;
        });
    };
    without_receipts(&changed);
    let args = ["restore", "--config", &dir.config, "--from", changed.to_str().unwrap()];
    assert!(fails(&args, 1, "SHEF-SVC-010").contains("cannot be restored"));
    assert!(!dir.path.join("verifierd.db").exists());
    assert!(command(&["restore", "--config", &dir.config, "--from", copy]).status.success());
    let Process { mut child, client } = run(&dir);
    client.post("/v1/release", &late).problem(409, "SHEF-SVC-042");
    assert_eq!(client.get("/v1/receipts").ok()["head"]["seq"], 1);
    // The restore is in the chain of every tenant, whose audit holds with it.
    for tenant in ["default", "idle"] {
        let events = command(&["events", "--config", &dir.config, "--tenant", tenant]);
        let events = String::from_utf8(events.stdout).unwrap();
        let restored = events.lines().filter(|line| {
            let event: serde_json::Value = serde_json::from_str(line).unwrap();
            event["action"] == "restored" && event["who"] == "service"
        });
        assert_eq!(restored.count(), 1, "{tenant}: {events}");
    }
    signal(&child, "-TERM");
    child.wait().unwrap();
    // A receipt missing from the database is detected.
    assert!(command(&["audit", "--config", &dir.config]).status.success());
    without_receipts(&dir.path.join("verifierd.db"));
    assert!(fails(&["audit", "--config", &dir.config], 1, "SHEF-SVC-010").contains("SHEF-PRO-092"));
    let late = dir.path.join("late.db");
    let args = ["backup", "--config", &dir.config, "--out", late.to_str().unwrap()];
    fails(&args, 1, "SHEF-SVC-010");
    assert!(!late.exists());
}

#[test]
fn nothing_secret_is_in_the_log_the_database_or_the_answers() {
    let dir = dir();
    let process = Command::new(env!("CARGO_BIN_EXE_shef-verifierd"))
        .args(["run", "--config", &dir.config])
        .env("SHEF_LOG", "trace")
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(dir.path.join("log")).unwrap())
        .spawn()
        .unwrap();
    let log = || std::fs::read_to_string(dir.path.join("log")).unwrap();
    let address = loop {
        if let Some(line) = log().lines().find(|line| line.contains("\"listening\"")) {
            break serde_json::from_str::<serde_json::Value>(line).unwrap()["address"]
                .as_str()
                .unwrap()
                .to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let client = Client::new(&dir.path, &format!("https://{address}"), Some("operator"));
    let device = Device::new(1);
    furnish(&client, &device);
    let canary = b"canary-canary-canary-canary-0042";
    client
        .call(
            "PUT",
            "/v1/keys/data",
            &json!({"layer": "shield", "policy": "default", "secret": b64(canary)}),
        )
        .ok();
    let (_, public) = generate_key_pair(&mut SystemEntropy);
    let (session, nonce) = client.session(Layer::Shield, Some(&public));
    let released =
        client.post("/v1/release", &json!({"key": "data", "session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))}));
    let mut process = process;
    let mut seen = vec![
        released.bytes,
        client.get("/v1/keys/data").bytes,
        client.get("/").bytes,
        client.get("/metrics").bytes,
    ];
    signal(&process, "-TERM");
    process.wait().unwrap();
    seen.push(log().into_bytes());
    for file in ["verifierd.db", "verifierd.db-wal"] {
        seen.push(std::fs::read(dir.path.join(file)).unwrap_or_default());
    }
    let kek = std::fs::read_to_string(dir.path.join("kek")).unwrap();
    for form in [
        canary.to_vec(),
        b64(canary).into_bytes(),
        hex::encode(canary).into_bytes(),
        kek.trim().as_bytes().to_vec(),
    ] {
        for (at, bytes) in seen.iter().enumerate() {
            assert!(
                !bytes.windows(form.len()).any(|window| window == form),
                "secret found in place {at}"
            );
        }
    }
    assert!(log().contains("\"target\":\"audit\"") && log().contains("\"action\":\"release\""));
}

/// Persistent attempts with wrong tokens show in the log but do not fill it, and the log never
/// contains the tokens.
#[test]
fn refused_logins_are_logged_at_a_rate_and_without_what_was_shown() {
    let dir = dir();
    let log = dir.path.join("log");
    let mut process = Command::new(env!("CARGO_BIN_EXE_shef-verifierd"))
        .args(["run", "--config", &dir.config])
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let lines = || -> Vec<serde_json::Value> {
        std::fs::read_to_string(&log)
            .unwrap()
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    };
    let address = loop {
        if let Some(line) = lines().into_iter().find(|line| line["message"] == "listening") {
            break line["address"].as_str().unwrap().to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    let stranger =
        Client::new(&dir.path, &format!("https://{address}"), None).with_token("canary-of-a-token");
    for _ in 0..200 {
        stranger.get("/v1/devices").problem(401, "SHEF-SVC-027");
    }
    // A certificate of another CA does not pass the handshake.
    let other = dir.path.join("other");
    set_up(&other);
    std::fs::copy(dir.path.join("ca.pem"), other.join("ca.pem")).unwrap();
    let _ = Client::new(&other, &format!("https://{address}"), Some("operator")).try_send(
        "GET",
        "/v1/devices",
        &[],
        b"",
    );
    signal(&process, "-TERM");
    process.wait().unwrap();
    let refused: Vec<_> =
        lines().into_iter().filter(|line| line["action"] == "login-refused").collect();
    assert!((50..100).contains(&refused.len()), "{}", refused.len());
    assert!(
        refused[0]["address"].as_str().unwrap().starts_with("127.0.0.1:")
            && refused[0]["target"] == "audit",
        "{}",
        refused[0]
    );
    assert!(refused[0]["reason"].as_str().unwrap().contains("bearer token"), "{}", refused[0]);
    assert!(!std::fs::read_to_string(&log).unwrap().contains("canary-of-a-token"));
}
