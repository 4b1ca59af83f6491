//! Commands that create files or open databases never remove, follow or disclose another user's
//! file, and never call a file good without checking it.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};

use shef_verifierd::secrets::{Kek, read_secret};

use crate::binary::{
    Dir, command, dir, fails, fill_with_keys, make_database, run, signal, started,
};

fn succeeds(args: &[&str]) -> String {
    let output = command(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn sql(database: &Path, statements: &[&str]) {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let options =
            sqlx::sqlite::SqliteConnectOptions::new().filename(database).create_if_missing(true);
        let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
        for statement in statements {
            sqlx::query(sqlx::AssertSqlSafe((*statement).to_owned())).execute(&pool).await.unwrap();
        }
        pool.close().await;
    });
}

/// Names in a folder, except the lock of commands.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.retain(|name| name != ".lock");
    names.sort();
    names
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A backup of a new database in `copy.db`, with the database deleted.
fn backed_up(dir: &Dir) -> String {
    make_database(dir);
    let copy = text(&dir.path.join("copy.db")).to_owned();
    succeeds(&["backup", "--config", &dir.config, "--out", &copy]);
    std::fs::remove_file(dir.path.join("verifierd.db")).unwrap();
    copy
}

#[test]
fn rekey_takes_no_file_away_and_needs_another_one() {
    let dir = dir();
    make_database(&dir);
    let kek = std::fs::read(dir.path.join("kek")).unwrap();
    std::fs::rename(dir.path.join("kek"), dir.path.join("kek.new")).unwrap();
    dir.configure(|text| text.replace("kek = \"kek\"", "kek = \"kek.new\""));
    let to = |name: &str| text(&dir.path.join(name)).to_owned();
    // The configured file, under other names.
    std::fs::hard_link(dir.path.join("kek.new"), dir.path.join("kek.again")).unwrap();
    for name in ["kek.new", "../v/kek.new", "kek.again"] {
        let said = fails(&["rekey", "--config", &dir.config, "--to", &to(name)], 5, "SHEF-SVC-008");
        assert!(said.contains("is the KEK that the configuration names"), "{said}");
    }
    std::fs::rename(dir.path.join("kek.again"), dir.path.join("kek.2027.new")).unwrap();
    succeeds(&["rekey", "--config", &dir.config, "--to", &to("kek.2027")]);
    for name in ["kek.new", "kek.2027.new"] {
        assert_eq!(std::fs::read(dir.path.join(name)).unwrap(), kek, "{name}");
    }
    // Without the current KEK, no new one is created.
    std::fs::remove_file(dir.path.join("kek.new")).unwrap();
    fails(&["rekey", "--config", &dir.config, "--to", &to("../v/kek.new")], 5, "SHEF-SVC-002");
    assert!(!dir.path.join("kek.new").exists());
}

/// A file under one of these names would later be removed, overwritten or misread: SQLite deletes a
/// KEK that has the name of its journal.
#[test]
fn no_command_makes_a_file_under_a_name_that_the_service_uses() {
    let dir = dir();
    make_database(&dir);
    dir.configure(|text| {
        text.replace("client_ca =", "crls = [\"lists/l.pem\"]\nclient_ca =")
            .replace("key = \"signing.key\"", "key = \"signing.key\"\nretired = [\"lists/r\"]")
    });
    std::fs::create_dir(dir.path.join("lists")).unwrap();
    symlink(&dir.path, dir.path.parent().unwrap().join("again")).unwrap();
    for name in ["ca.key", "ca.pem", ".lock"] {
        let _ = std::fs::remove_file(dir.path.join(name));
    }
    let everything = || (names(&dir.path), names(&dir.path.join("lists")));
    let before = everything();
    for name in [
        "verifierd.db",
        "verifierd.db-journal",
        "verifierd.db-wal",
        "verifierd.db-shm",
        "signing.key",
        "signing.key.retired",
        "lists/r",
        "lists/l.pem",
        "server.pem",
        "server.key",
        "ca.pem",
        "ca.key",
        "crl.pem",
        "verifierd.toml",
        ".lock",
    ] {
        for to in [
            dir.path.join(name),
            dir.path.join("../again").join(name),
            dir.path.join("../v").join(name),
        ] {
            let said =
                fails(&["rekey", "--config", &dir.config, "--to", text(&to)], 5, "SHEF-SVC-008");
            assert!(said.contains("is the file of"), "{to:?}: {said}");
            let said =
                fails(&["backup", "--config", &dir.config, "--out", text(&to)], 5, "SHEF-SVC-009");
            assert!(
                said.contains("is the file of") || said.contains("exists already"),
                "{to:?}: {said}"
            );
        }
    }
    assert_eq!(everything(), before);
    // Nor may the configuration give the KEK a name of this kind.
    let text = std::fs::read_to_string(&dir.config).unwrap();
    dir.configure(|text| text.replace("kek = \"kek\"", "kek = \"verifierd.db-journal\""));
    assert!(
        fails(&["check", "--config", &dir.config], 5, "SHEF-SVC-001")
            .contains("storage.kek is the file of the database")
    );
    std::fs::write(&dir.config, text).unwrap();
}

#[test]
fn a_certificate_takes_no_name_that_the_service_uses() {
    let dir = dir();
    let folder = text(&dir.path);
    let before = names(&dir.path);
    let client = |name: &str| {
        fails(&["client", "--dir", folder, "--role", "attest", "--name", name], 5, "SHEF-SVC-008")
    };
    for name in ["ca", "crl", "signing", "kek", "server", "verifierd.db-wal"] {
        assert!(client(name).contains("is the file of"), "{name}");
    }
    for name in ["ca", "crl", "signing", "kek"] {
        assert!(
            fails(&["server", "--dir", folder, "--name", name], 5, "SHEF-SVC-008")
                .contains("is the file of"),
            "{name}"
        );
    }
    assert_eq!(names(&dir.path), before);
    // Missing files of the server's own certificate can be created again.
    ["server.pem", "server.key"]
        .iter()
        .for_each(|name| std::fs::remove_file(dir.path.join(name)).unwrap());
    succeeds(&["server", "--dir", folder, "--name", "server"]);
    // Also files that only the configuration names.
    dir.configure(|text| text.replace("client_ca =", "crls = [\"partner.pem\"]\nclient_ca ="));
    assert!(client("partner").contains("is the file of tls.crls"));
}

#[test]
fn rekey_takes_no_name_that_the_configuration_cannot_hold() {
    let dir = dir();
    fill_with_keys(&dir, 1);
    let before = names(&dir.path);
    let mut rekey = Command::new(env!("CARGO_BIN_EXE_shef-verifierd"));
    let output = rekey
        .args(["rekey", "--config", &dir.config, "--to"])
        .arg(dir.path.join(OsStr::from_bytes(b"kek\xff")))
        .output()
        .unwrap();
    assert!(
        output.status.code() == Some(5)
            && String::from_utf8_lossy(&output.stderr).contains("UTF-8"),
        "{output:?}"
    );
    assert_eq!(names(&dir.path), before);
    succeeds(&["check", "--config", &dir.config]);
}

#[test]
fn a_copy_is_not_restored_without_the_changes_beside_it() {
    let dir = dir();
    let copy = backed_up(&dir);
    for end in ["-wal", "-journal"] {
        let beside = format!("{copy}{end}");
        std::fs::write(&beside, b"a revocation").unwrap();
        let said = fails(&["restore", "--config", &dir.config, "--from", &copy], 5, "SHEF-SVC-009");
        assert!(said.contains(&beside) && said.contains("wal_checkpoint"), "{said}");
        assert!(!dir.path.join("verifierd.db").exists());
        std::fs::write(&beside, b"").unwrap();
    }
    succeeds(&["restore", "--config", &dir.config, "--from", &copy]);
}

/// The service's user can replace any file by a pipe.
#[test]
fn no_pipe_in_the_place_of_a_file_holds_a_command_up() {
    let dir = dir();
    make_database(&dir);
    let bounded = |args: &[&str]| {
        Command::new("timeout")
            .args(["20", env!("CARGO_BIN_EXE_shef-verifierd")])
            .args(args)
            .output()
            .unwrap()
    };
    // It says that the configuration does not name the list yet.
    command(&["revoke", "--new-list", "--dir", text(&dir.path)]);
    dir.configure(|text| text.replace("client_ca =", "crls = [\"crl.pem\"]\nclient_ca ="));
    succeeds(&["signing", "rotate", "--config", &dir.config]);
    for name in [
        "kek",
        "signing.key",
        "signing.key.retired",
        "server.pem",
        "server.key",
        "ca.pem",
        "crl.pem",
        "verifierd.toml",
    ] {
        let (path, away) = (dir.path.join(name), dir.path.join("away"));
        std::fs::rename(&path, &away).unwrap();
        assert!(Command::new("mkfifo").args(["-m", "600"]).arg(&path).status().unwrap().success());
        for command in ["check", "run"] {
            let output = bounded(&[command, "--config", &dir.config]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                output.status.code() == Some(5) && said.contains("it is not a regular file"),
                "{command}, {name}: {output:?}"
            );
        }
        std::fs::remove_file(&path).unwrap();
        // Links are for files that others manage, such as orchestrators, not for files that the
        // service creates. Root follows no link in another user's folder.
        symlink(&away, &path).unwrap();
        let check = || command(&["check", "--config", &dir.config]);
        assert_eq!(
            check().status.success(),
            name != "signing.key.retired",
            "{name}: {:?}",
            check()
        );
        if rustix::process::geteuid().is_root()
            && !["signing.key.retired", "verifierd.toml"].contains(&name)
        {
            chown(&dir.path, Some(4001), None).unwrap();
            let said = check();
            assert!(
                String::from_utf8_lossy(&said.stderr).contains("a path that only root can change"),
                "{name}: {said:?}"
            );
            chown(&dir.path, Some(0), None).unwrap();
        }
        std::fs::rename(&away, &path).unwrap();
    }
    succeeds(&["check", "--config", &dir.config]);
}

/// Every command that opens the database; `backup` writes to `out`.
fn openers<'a>(config: &'a str, out: &'a str, kek: &'a str) -> [Vec<&'a str>; 6] {
    [
        vec!["backup", "--config", config, "--out", out],
        vec!["check", "--config", config],
        vec!["audit", "--config", config],
        vec!["events", "--config", config],
        vec!["rekey", "--config", config, "--to", kek],
        vec!["run", "--config", config],
    ]
}

#[test]
fn a_command_follows_no_link_to_a_database() {
    let dir = dir();
    let copy = backed_up(&dir);
    let folder = dir.path.parent().unwrap();
    let (database, victim) = (dir.path.join("verifierd.db"), folder.join("victim"));
    let (out, kek) = (folder.join("out.db"), folder.join("kek-2"));
    let openers = openers(&dir.config, text(&out), text(&kek));
    let root = std::fs::metadata(folder).unwrap().uid() == 0;
    let give = |path: &Path, user| {
        if root {
            chown(path, Some(user), None).unwrap();
        }
    };
    let refused = |args: &[&str], name: &str, says: &str| {
        let output = command(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains(name) && said.contains(says),
            "{args:?}: {said}"
        );
        assert!(!out.exists(), "{args:?}");
    };
    // Owned by the service's user, like the folder.
    for entry in std::fs::read_dir(&dir.path).unwrap() {
        give(&entry.unwrap().path(), 4001);
    }
    give(&dir.path, 4001);
    // Another database under the same KEK, as if only root could access it.
    std::fs::copy(&copy, &victim).unwrap();
    std::fs::set_permissions(&victim, std::fs::Permissions::from_mode(0o644)).unwrap();
    let before = (std::fs::read(&victim).unwrap(), 0o100_644);
    let unchanged = || {
        assert!(
            (std::fs::read(&victim).unwrap(), std::fs::metadata(&victim).unwrap().mode()) == before,
            "the victim changed"
        );
    };
    symlink(&victim, &database).unwrap();
    for args in &openers {
        refused(args, "verifierd.db", "symbolic link");
        unchanged();
    }
    refused(
        &["restore", "--config", &dir.config, "--from", &copy],
        "verifierd.db",
        "is there already",
    );
    std::fs::remove_file(&database).unwrap();
    for end in ["-wal", "-shm", "-journal"] {
        let name = format!("verifierd.db{end}");
        symlink(&victim, dir.path.join(&name)).unwrap();
        refused(&["restore", "--config", &dir.config, "--from", &copy], &name, "is there already");
        std::fs::copy(&copy, &database).unwrap();
        give(&database, 4001);
        for args in &openers {
            refused(args, &name, "symbolic link");
            unchanged();
        }
        std::fs::remove_file(&database).unwrap();
        std::fs::remove_file(dir.path.join(&name)).unwrap();
    }
    symlink(&victim, dir.path.join("nightly.db")).unwrap();
    refused(
        &["restore", "--config", &dir.config, "--from", text(&dir.path.join("nightly.db"))],
        "nightly.db",
        "symbolic link",
    );
    unchanged();
    assert_eq!(names(folder), ["v", "victim"]);
    if !root {
        println!("skipped: only root can give files away");
        return;
    }
    // A third user's file, and a file of root's under a second name.
    std::fs::copy(&copy, &database).unwrap();
    give(&database, 5001);
    openers.iter().for_each(|args| refused(args, "verifierd.db", "user 5001"));
    std::fs::remove_file(&database).unwrap();
    std::fs::hard_link(&victim, &database).unwrap();
    openers.iter().for_each(|args| refused(args, "verifierd.db", "2 names"));
    std::fs::remove_file(&database).unwrap();
    unchanged();
    // And a folder that others can write to.
    std::fs::copy(&copy, &database).unwrap();
    std::fs::set_permissions(&dir.path, std::fs::Permissions::from_mode(0o777)).unwrap();
    openers.iter().for_each(|args| refused(args, "verifierd.db", "mode 777"));
}

/// The service's user can replace a file by a link after the check.
#[test]
fn a_database_that_is_exchanged_while_it_is_opened_is_not_read() {
    let dir = dir();
    let copy = backed_up(&dir);
    let folder = dir.path.parent().unwrap();
    if std::fs::metadata(folder).unwrap().uid() != 0 {
        println!("skipped: only root can give files away");
        return;
    }
    let (database, victim) = (dir.path.join("verifierd.db"), folder.join("victim"));
    std::fs::copy(&copy, &victim).unwrap();
    sql(&victim, &["INSERT INTO meta VALUES ('canary', 7, 'root-only-canary')"]);
    let (own, link, spare) = (dir.path.join("own"), dir.path.join("link"), dir.path.join("spare"));
    std::fs::copy(&copy, &own).unwrap();
    symlink(&victim, &link).unwrap();
    for path in [&own, &dir.path] {
        chown(path, Some(4001), None).unwrap();
    }
    let kek = shef_verifierd::keyring::kek(
        &shef_verifierd::config::Config::read(std::path::Path::new(&dir.config)).unwrap(),
    )
    .unwrap();
    let named = shef_verifierd::config::Database::Sqlite(database.clone());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Fast and slow, so that files are exchanged at every step of an opening, and some
            // openings find one file from begin to end, on a loaded machine too.
            for pause in (0..6).cycle().map(|step| 50 << step) {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                for from in [&own, &link] {
                    std::fs::hard_link(from, &spare).unwrap();
                    std::fs::rename(&spare, &database).unwrap();
                    // Two names of one file: nothing was renamed.
                    let _ = std::fs::remove_file(&spare);
                    std::thread::sleep(std::time::Duration::from_micros(pause));
                }
            }
        });
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (mut opened, mut seen, mut tries) = (0, 0, 0);
        let start = std::time::Instant::now();
        while (opened < 10 || tries < 500) && start.elapsed() < std::time::Duration::from_secs(60) {
            tries += 1;
            let out = folder.join("out.db");
            let _ = std::fs::remove_file(&out);
            runtime.block_on(async {
                if let Ok(Some(store)) =
                    shef_verifierd::store::Store::look(&named, &kek, false).await
                {
                    opened += 1;
                    std::fs::File::create(&out).unwrap();
                    store.copy_to(&out).await.unwrap();
                    store.close().await;
                    seen += u32::from(holds(&std::fs::read(&out).unwrap(), b"root-only-canary"));
                }
            });
        }
        stop.store(true, Ordering::Relaxed);
        assert!(opened > 0, "the database was never opened: the test shows nothing");
        assert_eq!(seen, 0, "of {opened} times, {tries} tries");
    });
}

fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

#[test]
fn what_is_no_database_is_neither_restored_nor_good() {
    let dir = dir();
    let copy = backed_up(&dir);
    let database = dir.path.join("verifierd.db");
    let made = |name: &str| {
        let path = dir.path.join(name);
        std::fs::copy(&copy, &path).unwrap();
        path
    };
    std::fs::write(dir.path.join("empty.db"), b"").unwrap();
    std::fs::write(dir.path.join("random.db"), shef_verifierd::secrets::random::<40_000>())
        .unwrap();
    sql(&dir.path.join("foreign.db"), &["CREATE TABLE s (a)", "INSERT INTO s VALUES (1)"]);
    sql(&made("no-kek.db"), &["DELETE FROM meta WHERE name = 'kek'"]);
    sql(&made("no-version.db"), &["DELETE FROM meta WHERE name = 'version'"]);
    // Where only a full check looks: the last page is one of keys.
    let damaged = made("damaged.db");
    let keys = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300) INSERT INTO key_version \
                SELECT 'default', 'data', i, randomblob(60), 'default', 1, 0, 0, 0, 0, 0, 0 FROM n";
    sql(&damaged, &[keys]);
    let file = File::options().write(true).open(&damaged).unwrap();
    file.write_all_at(&[0xff; 600], file.metadata().unwrap().len() - 1024).unwrap();
    let before = names(&dir.path);
    for (name, good) in [
        ("empty", true),
        ("random", false),
        ("foreign", false),
        ("no-kek", false),
        ("no-version", false),
        ("damaged", false),
    ] {
        let from = dir.path.join(format!("{name}.db"));
        let output = command(&["restore", "--config", &dir.config, "--from", text(&from)]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            !output.status.success() && said.contains(&format!("{name}.db cannot be restored")),
            "{name}: {said}"
        );
        let cause = name != "random" || said.contains("file is not a database");
        assert!(output.status.code() == Some(5) && cause, "{name}: {said}");
        assert_eq!(names(&dir.path), before, "{name}");
        // The same file as the database. An empty file is a database that has not been created yet.
        std::fs::copy(&from, &database).unwrap();
        let output = command(&["check", "--config", &dir.config]);
        assert_eq!(output.status.success(), good, "{name}: {output:?}");
        if good {
            assert!(
                String::from_utf8_lossy(&output.stdout).contains("the database is empty"),
                "{output:?}"
            );
        }
        if ["random", "foreign", "no-version"].contains(&name) {
            fails(&["run", "--config", &dir.config], 4, "SHEF-SVC-004");
        }
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(dir.path.join(format!("verifierd.db{end}")));
        }
    }
    // SQLite would write another database's journal into this one.
    for end in ["-wal", "-shm", "-journal"] {
        let left = dir.path.join(format!("verifierd.db{end}"));
        std::fs::write(&left, b"left").unwrap();
        let said = fails(&["restore", "--config", &dir.config, "--from", &copy], 5, "SHEF-SVC-009");
        assert!(
            said.contains(&format!("verifierd.db{end}")) && said.contains("move all files"),
            "{said}"
        );
        let said = fails(&["run", "--config", &dir.config], 4, "SHEF-SVC-004");
        assert!(said.contains("is there, and its database"), "{said}");
        std::fs::remove_file(left).unwrap();
    }
    assert_eq!(names(&dir.path), before);
    succeeds(&["restore", "--config", &dir.config, "--from", &copy]);
    let version = format!("has version {}", shef_verifierd::store::version());
    assert!(succeeds(&["check", "--config", &dir.config]).contains(&version));
}

#[test]
fn a_database_that_begins_anew_is_a_warning() {
    let dir = dir();
    let warnings = || {
        let (mut process, log) = started(&dir);
        signal(&process.child, "-TERM");
        process.child.wait().unwrap();
        let new = |line: &&serde_json::Value| {
            line["level"] == "WARN"
                && line["message"].as_str().is_some_and(|text| text.contains("a new one begins"))
        };
        log.iter().filter(new).count()
    };
    assert_eq!((warnings(), warnings()), (1, 0), "a missing one, and one that is there");
    for end in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(dir.path.join(format!("verifierd.db{end}")));
    }
    File::create(dir.path.join("verifierd.db")).unwrap();
    assert_eq!(warnings(), 1, "an empty one");
}

/// `check` and the start of a replica warn of an audience other than that of the replica before.
#[test]
fn another_audience_than_before_is_a_warning() {
    let dir = dir();
    make_database(&dir);
    let told = |yes: bool| {
        let output = command(&["check", "--config", &dir.config]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(said.contains("all replicas need the same"), yes, "{said}");
    };
    told(false);
    dir.configure(|text| text.replace("audience = \"https://", "audience = \"https://other."));
    told(true);
    make_database(&dir);
    told(false);
}

/// A command that extends the schema of an older version says so.
#[test]
fn a_command_that_extends_an_older_database_says_so() {
    let dir = dir();
    make_database(&dir);
    sql(
        &dir.path.join("verifierd.db"),
        &[
            "ALTER TABLE tenant DROP COLUMN erased",
            "UPDATE meta SET number = 8 WHERE name = 'version'",
        ],
    );
    for name in ["audit", "events"] {
        fails(&[name, "--config", &dir.config], 5, "SHEF-SVC-015");
    }
    let kek = text(&dir.path.join("kek.new")).to_owned();
    let rekey = ["rekey", "--config", &dir.config, "--to", &kek];
    let said = |yes: bool| {
        let output = command(&rekey);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let told = said.contains("extended") && said.contains("\"from\":8");
        assert_eq!(told, yes, "{said}");
    };
    said(true);
    said(false);
}

#[test]
fn a_backup_that_was_cut_short_has_no_name() {
    let dir = dir();
    make_database(&dir);
    let copy = dir.path.join("copy.db");
    // A write beyond the limit kills the program, like kill -9.
    let script = "exec prlimit --core=0 --fsize=2048 \"$0\" backup --config \"$1\" --out \"$2\"";
    let output = Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_shef-verifierd"), &dir.config])
        .arg(&copy)
        .output()
        .unwrap();
    assert!(output.status.signal().is_some(), "{output:?}: the test shows nothing");
    assert!(!copy.exists());
    // The remains are in no command's way.
    assert!(
        names(&dir.path).iter().any(|name| name.starts_with("copy.db.") && name.ends_with(".part"))
    );
    succeeds(&["backup", "--config", &dir.config, "--out", text(&copy)]);
    fails(&["backup", "--config", &dir.config, "--out", text(&copy)], 5, "SHEF-SVC-009");
}

#[test]
fn a_backup_is_the_file_that_was_named() {
    let dir = dir();
    make_database(&dir);
    let folder = dir.path.parent().unwrap().join("backups");
    std::fs::create_dir(&folder).unwrap();
    let backup = |name: &OsStr| -> Output {
        let script = "umask 022; exec \"$0\" backup --config \"$1\" --out \"$2\"";
        let mut shell = Command::new("sh");
        shell
            .args(["-c", script, env!("CARGO_BIN_EXE_shef-verifierd"), &dir.config])
            .arg(name)
            .current_dir(&folder)
            .output()
            .unwrap()
    };
    let odd = [":memory:", "file:q.db?mode=rwc", "file::memory:", "100%41.db", "a#b?c.db"];
    for name in odd {
        let output = backup(OsStr::new(name));
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let path = folder.join(name);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600, "{name}");
        std::fs::remove_file(dir.path.join("verifierd.db")).unwrap();
        succeeds(&["restore", "--config", &dir.config, "--from", text(&path)]);
    }
    let output = backup(OsStr::from_bytes(b"n\xff.db"));
    assert!(
        !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("UTF-8"),
        "{output:?}"
    );
    let mut expected = odd.map(str::to_owned);
    expected.sort();
    assert_eq!(names(&folder), expected);
}

/// Every sealed key of the database.
fn sealed(dir: &Dir) -> Vec<Vec<u8>> {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let pool = sqlx::SqlitePool::connect(dir.path.join("verifierd.db").to_str().unwrap())
            .await
            .unwrap();
        let rows: Vec<(Vec<u8>,)> =
            sqlx::query_as("SELECT sealed FROM key_version").fetch_all(&pool).await.unwrap();
        pool.close().await;
        rows.into_iter().map(|row| row.0).collect()
    })
}

/// How many of them are in the database's files.
fn left(dir: &Dir, needles: &[Vec<u8>]) -> usize {
    let files = ["verifierd.db", "verifierd.db-wal"]
        .map(|name| std::fs::read(dir.path.join(name)).unwrap_or_default());
    // Search for the random number at the start of each: a deleted row loses its first bytes only.
    needles.iter().filter(|needle| files.iter().any(|bytes| holds(bytes, &needle[..12]))).count()
}

#[test]
fn nothing_is_left_under_a_kek_that_was_exchanged() {
    const KEYS: i64 = 30;
    let dir = dir();
    fill_with_keys(&dir, 2 * KEYS);
    let first = sealed(&dir);
    // As an older version left it: half of the keys are deleted, and still in the file.
    let old = [
        "PRAGMA secure_delete = OFF",
        "DELETE FROM meta WHERE name = 'erased'",
        "DELETE FROM key_version WHERE version % 2 = 0",
    ];
    sql(&dir.path.join("verifierd.db"), &old);
    assert!(left(&dir, &first) > sealed(&dir).len(), "the test shows nothing");
    for (from, to) in [("kek", "kek-2"), ("kek-2", "kek-3")] {
        let before = if from == "kek" { first.clone() } else { sealed(&dir) };
        // While the service reads.
        let mut process = run(&dir);
        let said = succeeds(&["rekey", "--config", &dir.config, "--to", text(&dir.path.join(to))]);
        assert!(said.contains(&format!("{KEYS} secrets")), "{said}");
        assert_eq!(left(&dir, &before), 0, "{to}, beside the service");
        signal(&process.child, "-TERM");
        process.child.wait().unwrap();
        assert_eq!((left(&dir, &before), left(&dir, &sealed(&dir))), (0, KEYS as usize), "{to}");
        dir.configure(|text| {
            text.replace(&format!("kek = \"{from}\""), &format!("kek = \"{to}\""))
        });
    }
    // Data that the service deletes is gone as well.
    let kek = Kek::new(&read_secret(&dir.path.join("kek-3")).unwrap());
    let resource = kek.seal(&[b"resource", b"default", b"a/b/c"], &[9; 500]);
    let insert = format!(
        "INSERT INTO resource VALUES ('default', 'a/b/c', x'{}', 1)",
        hex::encode(&resource)
    );
    sql(&dir.path.join("verifierd.db"), &[&insert]);
    assert_eq!(left(&dir, std::slice::from_ref(&resource)), 1);
    make_database(&dir);
    assert_eq!((left(&dir, &[resource]), sealed(&dir).len()), (0, KEYS as usize + 1));
}

/// A closed pipe is success: `binary::an_ipv6_address_is_a_host_and_an_unknown_code_is_wrong_use`.
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let dir = dir();
    make_database(&dir);
    let (folder, copy) = (text(&dir.path).to_owned(), dir.path.join("copy.db"));
    let new = dir.path.join("new");
    let full = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_shef-verifierd"))
            .args(args)
            .stdout(File::options().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap()
    };
    for args in [
        &["token", "--name", "fleet", "--role", "attest"][..],
        &["check", "--config", &dir.config],
        &["audit", "--config", &dir.config],
        &["explain", "SHEF-SVC-042"],
        &["version"],
        &["backup", "--config", &dir.config, "--out", text(&copy)],
        &["revoke", "--new-list", "--dir", &folder],
        &["client", "--dir", &folder, "--role", "attest", "--name", "fleet"],
        &["server", "--dir", &folder, "--name", "second"],
        &["signing", "rotate", "--config", &dir.config],
        &["rekey", "--config", &dir.config, "--to", text(&dir.path.join("kek-2"))],
        &["init", "--dir", text(&new)],
    ] {
        let output = full(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.code() == Some(5)
                && said.contains("error [SHEF-CLI-015]: cannot write to standard output: "),
            "{args:?}: {said}"
        );
    }
    assert_eq!(full(&["--help"]).status.code(), Some(5));
    assert_eq!(full(&["nonsense"]).status.code(), Some(2));
}
