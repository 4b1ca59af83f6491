//! After releasing keys, the service's process keeps no copy of them in memory. Another process
//! searches it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::config::Config;
use shef_verifierd::run::start;
use shef_verifierd::secrets::{SystemEntropy, random};
use shef_verifierd::time::Clock;

use crate::clients::{Kbs, LET_IN};
use shef_fixtures::service::*;

use shef_fixtures::memory::Needles;

/// Names the service's folder to the process that runs it.
const FOLDER: &str = "SHEF_TEST_SERVICE_FOLDER";
const NAME: &str = "residue::released_keys_leave_the_memory_of_the_service";

/// The service: prints its address, and exits at the end of its input.
fn serve(folder: &str) {
    let config = Config::read(&std::path::Path::new(folder).join("verifierd.toml")).unwrap();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let running = runtime.block_on(start(config, Clock::System)).unwrap();
    println!("service: {}", running.address);
    std::io::stdin().read_line(&mut String::new()).unwrap();
    runtime.block_on(running.stop());
}

/// Kills the process when dropped, even if the test fails.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A secret of each kind, as bytes and as text on the wire.
fn needles(secrets: &[(&str, &[u8])]) -> Needles {
    let texts: Vec<_> =
        secrets.iter().map(|(name, bytes)| (format!("text of {name}"), b64(bytes))).collect();
    let texts = texts.iter().map(|(name, text)| (name.as_str(), text.as_bytes()));
    Needles::new(secrets.iter().copied().chain(texts))
}

#[test]
fn released_keys_leave_the_memory_of_the_service() {
    if let Ok(folder) = std::env::var(FOLDER) {
        return serve(&folder);
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("v");
    set_up(&dir);
    let file = dir.join("verifierd.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{text}\n{LET_IN}")).unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", NAME, "--nocapture"])
        .env(FOLDER, &dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut service = Ended(child.spawn().unwrap());
    let mut lines = BufReader::new(service.0.stdout.take().unwrap()).lines();
    let address =
        lines.find_map(|line| Some(line.unwrap().split_once("service: ")?.1.to_owned())).unwrap();
    let (url, device) = (format!("https://{address}"), Device::new(1));
    let operator = Client::new(&dir, &url, Some("operator"));
    furnish(&operator, &device);

    // Operators' secrets, long enough for buffers to grow.
    let (image, data, resource): ([u8; 32], [u8; 500], [u8; 3000]) = (random(), random(), random());
    let vendor = generate_key_pair(&mut SystemEntropy).1;
    let body = json!({"layer": "kernel", "policy": "default", "image": {"key": b64(&image), "min_svn": 3, "vendor": b64(vendor.as_bytes())}});
    operator.call("PUT", "/v1/keys/image", &body).ok();
    operator
        .call(
            "PUT",
            "/v1/keys/data",
            &json!({"layer": "shield", "policy": "default", "secret": b64(&data)}),
        )
        .ok();
    operator.send("POST", "/kbs/v0/resource/default/key/one", &[], &resource).ok();

    // And releases, in boxes and in a JWE.
    let (_, recipient) = generate_key_pair(&mut SystemEntropy);
    for (layer, key, to) in
        [(Layer::Kernel, "image", None), (Layer::Shield, "data", Some(&recipient))]
    {
        let (session, nonce) = operator.session(layer, to);
        let released =
            operator.post("/v1/release", &json!({"key": key, "session": session, "evidence": b64(&device.evidence(layer, &nonce))}));
        assert_ne!(released.ok()["box"], Value::Null);
    }
    let (kbs, _) = Kbs::of_card(&Client::new(&dir, &url, None), &device);
    let (opened, content_key) = kbs.open_with_key(&kbs.fetch("default/key/one").ok());
    assert_eq!(opened, resource);

    // The connections of the clients stay open: only those that carried a key have ended.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let kek = hex::decode(std::fs::read_to_string(dir.join("kek")).unwrap().trim()).unwrap();
    let secrets: [(&str, &[u8]); 5] = [
        ("image key", &image),
        ("data key", &data),
        ("resource", &resource),
        ("key of the JWE", &content_key),
        ("KEK", &kek),
    ];
    let found = needles(&secrets).found_in_process(service.0.id());
    assert!(found.searched > 1 << 20, "{} bytes of the service's memory", found.searched);
    // The search finds data that is there.
    let there = Needles::new([("address", url.as_bytes()), ("audience", AUDIENCE.as_bytes())])
        .found_in_process(service.0.id());
    assert!(there.names.contains("audience"), "{there:?}");
    assert!(
        found.places.is_empty(),
        "{} pieces of secrets are left: {:#?}",
        found.places.len(),
        found.places
    );
    drop((operator, kbs));
    service.0.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert!(service.0.wait().unwrap().success());
}
