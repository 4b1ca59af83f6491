//! The operator's page shows the state, confirms revocations, and loads nothing from other origins.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::role::Role;
use shef_verifierd::secrets::{SystemEntropy, sha256};

use shef_fixtures::service::*;

fn html(client: &Client, path: &str) -> String {
    let answer = client.get(path);
    assert_eq!(
        (answer.status, answer.headers["content-type"].to_str().unwrap()),
        (200, "text/html; charset=utf-8")
    );
    let policy = answer.headers["content-security-policy"].to_str().unwrap();
    assert!(
        policy.starts_with("default-src 'none'; style-src 'self'") && !policy.contains("unsafe"),
        "{policy}"
    );
    String::from_utf8(answer.bytes).unwrap()
}

#[test]
fn the_page_shows_everything_and_escapes_it() {
    let (service, device) = (Service::start(), Device::new(1));
    let operator = &service.operator;
    assert!(html(operator, "/").contains("No device has shown genuine evidence yet."));
    service.furnish(&device);
    operator.put_key("data").ok();
    let (session, nonce) = operator.session(Layer::Kernel, None);
    operator
        .post(
            "/v1/appraise",
            &json!({"session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))}),
        )
        .ok();
    let mut other = Device::new(1);
    other.image = [0xee; 32];
    let (session, nonce) = operator.session(Layer::Shield, None);
    let denied = operator
        .post(
            "/v1/appraise",
            &json!({"session": session, "evidence": b64(&other.evidence(Layer::Shield, &nonce))}),
        )
        .problem(422, "SHEF-SVC-043");
    operator.post("/v1/revocations", &json!({"kind": "image", "value": "ee".repeat(32), "reason": "<script>alert(1)</script>"})).ok();
    let page = html(operator, "/");
    for expected in [
        &hex::encode(device.ueid),
        "shef-test",
        "build-1",
        "maker",
        "unknown image",
        "SHEF-ATT-040",
        "&lt;script&gt;",
        "data",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    assert!(
        !page.contains("<script") && !page.contains("http://") && !page.contains("https://"),
        "nothing from elsewhere"
    );
    let page = html(operator, &format!("/appraisals/{}", denied["appraisal_id"].as_str().unwrap()));
    assert!(
        page.contains("unknown image") && page.contains("failed") && page.contains("passed"),
        "{page}"
    );
    // A check that was not reached has no reason.
    assert!(
        page.contains("not reached")
            && page.contains("SHEF-ATT-040")
            && !page.contains("SHEF-ATT-041"),
        "{page}"
    );
    assert_eq!(operator.get("/style.css").headers["content-type"], "text/css; charset=utf-8");
    service.stranger().get("/").problem(401, "SHEF-SVC-027");
}

#[test]
fn a_revocation_needs_a_confirmed_form_of_this_service() {
    let (service, device) = (Service::start(), Device::new(1));
    let operator = &service.operator;
    service.furnish(&device);
    let ueid = hex::encode(device.ueid);
    let unknown = "No trust anchor, reference value or recent appraisal has this value";
    let page = html(operator, &format!("/revoke?kind=device&value={ueid}"));
    assert!(page.contains(unknown), "{page}");
    operator.get(&format!("/revoke?kind=device&value={ueid}0")).problem(422, "SHEF-SVC-053");
    let (session, nonce) = operator.session(Layer::Kernel, None);
    let evidence = b64(&device.evidence(Layer::Kernel, &nonce));
    operator.post("/v1/appraise", &json!({"session": session, "evidence": evidence})).ok();
    // The value is known, in whatever spelling.
    for value in [ueid.clone(), ueid.to_uppercase()] {
        let page = html(operator, &format!("/revoke?kind=device&value={value}"));
        assert!(!page.contains(unknown), "{page}");
    }
    let token = page.split("name=\"token\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let post = |client: &Client, body: String| {
        client.send(
            "POST",
            "/revoke",
            &[("content-type", "application/x-www-form-urlencoded")],
            body.as_bytes(),
        )
    };
    let form = |value: &str, token: &str| {
        format!("kind=device&value={value}&reason=lost+in+transit&token={token}")
    };
    post(operator, form(&ueid, "AAAA")).problem(403, "SHEF-SVC-028");
    post(operator, form(&"0".repeat(66), token)).problem(403, "SHEF-SVC-028");
    let second = service.client("default", Role::Operator, "second");
    post(&second, form(&ueid, token)).problem(403, "SHEF-SVC-028");
    let audit = service.client("default", Role::Audit, "auditor");
    post(&audit, form(&ueid, token)).problem(403, "SHEF-SVC-028");
    assert!(!html(&audit, "/").contains("href=\"/revoke"), "who may not revoke is not offered it");
    assert!(operator.get("/v1/revocations").ok()["revocations"].as_array().unwrap().is_empty());
    let done = post(operator, form(&ueid, token));
    assert_eq!((done.status, done.headers["location"].to_str().unwrap()), (303, "/"));
    assert_eq!(operator.get("/v1/revocations").ok()["revocations"][0]["reason"], "lost in transit");
    let (session, nonce) = operator.session(Layer::Kernel, None);
    operator
        .post(
            "/v1/appraise",
            &json!({"session": session, "evidence": b64(&device.evidence(Layer::Kernel, &nonce))}),
        )
        .problem(422, "SHEF-SVC-043");
}

/// For `cargo xtask test --full`.
mod long {
    use super::*;

    /// The page in a browser, light and dark, with rows of every kind: its security policy blocks
    /// nothing, and the two look different. The pictures are in `target/page` for visual review.
    /// `cargo test -p shef-verifierd --test verifierd -- --ignored in_a_browser`.
    #[test]
    #[ignore = "long: starts a browser eight times"]
    fn the_page_in_a_browser() {
        if Command::new("chromium").arg("--version").output().is_err() {
            println!("no Chromium, which `cargo xtask test --full` tells at its end");
            return;
        }
        let token = "a-token-for-the-browser";
        let entry = format!(
            "[[tenant.token]]\nname = \"browser\"\nrole = \"operator\"\nsha256 = \"{}\"\n",
            hex::encode(sha256(token.as_bytes()))
        );
        let service = Service::with(|text| format!("{text}{entry}"), Default::default());
        let operator = &service.operator;
        let device = Device::new(1);
        service.furnish(&device);
        operator.put_key("data").ok();
        let (_, public) = generate_key_pair(&mut SystemEntropy);
        let (session, nonce) = operator.session(Layer::Shield, Some(&public));
        operator
            .post("/v1/release", &json!({"key": "data", "session": session, "evidence": b64(&device.evidence(Layer::Shield, &nonce))}))
            .ok();
        let mut other = Device::new(2);
        other.image = [0xee; 32];
        let (session, nonce) = operator.session(Layer::Shield, None);
        let denied = operator
            .post("/v1/appraise", &json!({"session": session, "evidence": b64(&other.evidence(Layer::Shield, &nonce))}))
            .problem(422, "SHEF-SVC-043");
        operator.post("/v1/revocations", &json!({"kind": "image", "value": "ee".repeat(32), "reason": "a wrong build got out"})).ok();
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).with_file_name("page");
        std::fs::create_dir_all(&folder).unwrap();
        let appraisal = format!("/appraisals/{}", denied["appraisal_id"].as_str().unwrap());
        let ask = format!("/revoke?kind=device&value={}", hex::encode(device.ueid));
        let ueid = hex::encode(device.ueid);
        let mut pictures = Vec::new();
        for (name, path, dark, shown) in [
            ("overview-light", "/", false, ueid.as_str()),
            ("overview-dark", "/", true, ueid.as_str()),
            ("appraisal-light", appraisal.as_str(), false, "<h1>Appraisal</h1>"),
            ("revoke-dark", ask.as_str(), true, ueid.as_str()),
        ] {
            let profile = tempfile::tempdir().unwrap();
            let picture = folder.join(format!("{name}.png"));
            let _ = std::fs::remove_file(&picture);
            let mut browser = Command::new("chromium");
            browser
                .args([
                    "--headless",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--disable-background-networking",
                    "--ignore-certificate-errors",
                ])
                .args(["--enable-logging=stderr", "--window-size=1200,2400", "--hide-scrollbars"])
                .args(dark.then_some("--force-dark-mode"))
                .arg(format!("--user-data-dir={}", profile.path().display()))
                .arg(format!("https://operator:{token}@{}{path}", service.running().address));
            let page =
                browser.arg("--dump-dom").output().expect("Chromium: apt-get install chromium");
            assert!(
                String::from_utf8_lossy(&page.stdout).contains(shown),
                "{name}: {}",
                String::from_utf8_lossy(&page.stdout)
            );
            let output =
                browser.arg(format!("--screenshot={}", picture.display())).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(
                !said.contains("CONSOLE") && !said.contains("Content Security Policy"),
                "{name}: {said}"
            );
            pictures.push(
                std::fs::read(&picture).unwrap_or_else(|error| panic!("{name}: {error}: {said}")),
            );
        }
        assert_ne!(pictures[0], pictures[1], "light and dark look the same");
    }
}
