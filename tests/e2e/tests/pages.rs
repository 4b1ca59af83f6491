//! The page about the verifier service works word by word, with the programs that it builds.

use std::fs;
use std::process::Command;

use shef_e2e::{example_program, shef_program};

const PAGE: &str = include_str!("../../../docs/how-to/verifier-service.md");
/// The sections whose commands run in one shell, up to the example of a provider.
const SECTIONS: [&str; 5] = ["1. ", "2. ", "3. ", "4. ", "5. "];

/// Before the commands of the page.
const BEFORE: &str = "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\nset -m\n";
/// Commands that stay in the background, and how a reader of their output knows that they are ready.
const READY: [(&str, &str); 2] = [
    ("run --config", "curl -s --cacert v/ca.pem https://localhost:8443/healthz"),
    ("sim serve", "test -S card0.sock"),
];

/// The commands of the page for a shell, without the builds. They listen on another port than
/// the page's, as tests run beside each other.
fn script(port: u16) -> (Vec<&'static str>, String) {
    let (mut built, mut script) = (Vec::new(), BEFORE.to_owned());
    let sections = PAGE.split("\n## ").filter(|text| SECTIONS.iter().any(|n| text.starts_with(n)));
    for section in sections {
        // These programs do not include a provider of OpenID Connect.
        let section = section.split("\nPeople and machines").next().unwrap();
        let blocks = section.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        for line in blocks.flat_map(str::lines) {
            if line.starts_with("cargo build") {
                let words: Vec<_> = line.split_whitespace().collect();
                let made = words.windows(2).filter(|two| ["--bin", "--example"].contains(&two[0]));
                built.extend(made.map(|two| two[1]));
            } else if !line.starts_with("export PATH=") {
                script += &line.replace("init --dir v", "init --dir v --listen 127.0.0.1:8443");
                script.push('\n');
                if line.ends_with(" &") {
                    let (_, ready) = READY.iter().find(|(what, _)| line.contains(what)).unwrap();
                    script +=
                        &format!("for i in $(seq 300); do {ready} && break; sleep 0.1; done\n");
                }
            }
        }
    }
    (built, script.replace("8443", &port.to_string()))
}

#[test]
fn the_page_of_the_service_works_word_by_word() {
    for tool in ["curl", "jq", "openssl"] {
        if Command::new(tool).arg("--version").output().is_err() {
            println!("skipped: {tool} is not installed");
            return;
        }
    }
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (built, script) = script(port);
    assert!(script.lines().count() > 50, "{script}");
    let home = tempfile::tempdir().unwrap();
    let programs = home.path().join("programs");
    fs::create_dir(&programs).unwrap();
    let shef = shef_program();
    for name in built {
        let made = match name {
            "device" => example_program(name),
            _ => shef.with_file_name(name),
        };
        // No link: a program looks for others beside the file that a link names.
        let own = programs.join(name);
        fs::hard_link(&made, &own).or_else(|_| fs::copy(&made, &own).map(drop)).unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let done = Command::new("bash")
        .args(["-c", &script])
        .env("HOME", home.path())
        .env("PATH", path)
        .output()
        .unwrap();
    let said = [done.stdout, done.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(done.status.success(), "{}\n{}", said[0], said[1]);
}
