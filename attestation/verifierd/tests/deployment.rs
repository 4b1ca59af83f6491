//! The files for operators. Of the Kubernetes manifests, without a cluster: a folder as the kubelet
//! mounts a Secret, the command of the init container, and the service with the pod's user. Of systemd:
//! which faults end in a restart.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use shef_console::Exit;
use shef_console::exit::TABLE;

use crate::binary::{command, dir, signal};
use shef_fixtures::service::*;

const MANIFESTS: &str = include_str!("../dist/kubernetes/shef-verifierd.yaml");
const UNIT: &str = include_str!("../dist/shef-verifierd.service");
/// The pod's user and group.
const USER: u32 = 65_532;

/// A program under the pod's user.
fn as_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args([format!("--reuid={USER}"), format!("--regid={USER}")]);
    command.args(["--clear-groups", "--no-new-privs"]).arg(program).env("SHEF_LOG", "warn");
    command
}

/// Mounts files as the kubelet does: root's, readable by `fsGroup`, behind a link to a folder with
/// the version.
fn mount(files: &Path, at: &Path) {
    let version = at.join("..2026_11_27_12_00_00.123");
    fs::create_dir_all(&version).unwrap();
    symlink(version.file_name().unwrap(), at.join("..data")).unwrap();
    for name in ["verifierd.toml", "kek", "signing.key", "server.pem", "server.key", "ca.pem"] {
        let file = version.join(name);
        fs::copy(files.join(name), &file).unwrap();
        chown(&file, Some(0), Some(USER)).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o440)).unwrap();
        symlink(Path::new("..data").join(name), at.join(name)).unwrap();
    }
}

#[test]
fn the_init_container_makes_files_that_the_service_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    if chown(folder.path(), Some(0), Some(0)).is_err() {
        println!("skipped: only root can give files away");
        return;
    }
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    set_up(&at("set-up"));
    mount(&at("set-up"), &at("secret"));
    // An emptyDir with fsGroup.
    fs::create_dir(at("config")).unwrap();
    chown(at("config"), Some(0), Some(USER)).unwrap();
    fs::set_permissions(at("config"), Permissions::from_mode(0o2777)).unwrap();
    let program = at("shef-verifierd");
    fs::copy(env!("CARGO_BIN_EXE_shef-verifierd"), &program).unwrap();
    let check = |config: &Path| -> Output {
        as_user(&program).args(["check", "--config"]).arg(config).output().unwrap()
    };

    // The mount itself does not serve.
    let refused = check(&at("secret").join("verifierd.toml"));
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && text.contains("SHEF-SVC-003"), "{text}");
    assert!(text.contains("mode is 440, expected 600"), "{text}");

    let (_, command) = MANIFESTS.split_once("command: [\"sh\", \"-euc\", \"").unwrap();
    let (command, _) = command.split_once("\"]").unwrap();
    let command = command
        .replace("/secret/", &format!("{}/", at("secret").display()))
        .replace("/config/", &format!("{}/", at("config").display()));
    let copied = as_user(Path::new("sh")).args(["-euc", &command]).output().unwrap();
    assert!(copied.status.success(), "{copied:?}");
    let config = at("config").join("verifierd.toml");
    let checked = check(&config);
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    let mut run = as_user(&program);
    run.args(["run", "--config"]).arg(&config).stdout(Stdio::piped());
    let mut child = run.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("\"listen\""), "{line}");
    let address = line.split('"').nth(3).unwrap();
    let client = Client::new(&at("set-up"), &format!("https://{address}"), None);
    client.get("/readyz").ok();
    // setpriv has become the service.
    signal(&child, "-TERM");
    assert!(child.wait().unwrap().success());
}

/// The value of a setting of the unit.
fn setting(section: &str, name: &str) -> &'static str {
    let (_, section) = UNIT.split_once(&format!("[{section}]\n")).expect("a section");
    let section = section.split("\n[").next().unwrap();
    section
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
        .unwrap_or_else(|| panic!("the unit has no {name}"))
}

#[test]
fn systemd_restarts_after_passing_faults_only() {
    assert_eq!(setting("Service", "Restart"), "on-failure");
    // Otherwise five starts while a database is away would be the last.
    assert_eq!(setting("Unit", "StartLimitIntervalSec"), "0");
    let never: Vec<i32> = setting("Service", "RestartPreventExitStatus")
        .split(' ')
        .map(|status| status.parse().unwrap())
        .collect();
    for (exit, meaning) in TABLE {
        let permanent = matches!(exit, Exit::No | Exit::Usage | Exit::Input);
        assert_eq!(never.contains(&(*exit as i32)), permanent, "{meaning}");
    }
    // What the program does: a bad configuration, a wrong flag, an address that is taken.
    let dir = dir();
    let ends = |args: &[&str], code: &str| {
        let done = command(args);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(said.contains(code), "{args:?}: {said}");
        never.contains(&done.status.code().expect("a status"))
    };
    let run = ["run", "--config", &dir.config];
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("\"{}\"", taken.local_addr().unwrap());
    dir.configure(|text| text.replace("\"127.0.0.1:0\"", &listen));
    assert!(!ends(&run, "SHEF-SVC-007"), "an address that is taken may be free later");
    dir.configure(|text| text.replace("[[tenant]]", "[[tenants]]"));
    assert!(ends(&run, "SHEF-SVC-001"), "a bad configuration is started again and again");
    assert!(ends(&["run", "--confg", &dir.config], "--confg"), "wrong usage");
}

#[test]
fn systemd_accepts_the_unit() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("shef-verifierd.service");
    // It looks whether the program is there.
    let program = env!("CARGO_BIN_EXE_shef-verifierd");
    fs::write(&unit, UNIT.replace("/usr/local/bin/shef-verifierd", program)).unwrap();
    let verify = Command::new("systemd-analyze").arg("verify").arg(&unit).output();
    let Ok(verified) = verify else {
        println!("skipped: systemd-analyze is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    assert!(verified.status.success() && !said.contains("shef-verifierd"), "{said}");
}
