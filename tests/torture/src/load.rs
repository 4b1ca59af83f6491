//! The load of the innocent tenants.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use shef_fixtures::service::{Device, POLICY, b64, unb64};
use shef_proto::evidence::{self, Layer};
use shef_proto::hpke_suite::{PublicKey, generate_key_pair};
use shef_verifierd::secrets::{SystemEntropy, random};

use crate::Result;
use crate::accounts::{Verdict, accepted_again, verdict};
use crate::client::{Client, Request, Service, done, submission};

/// The keys of each tenant that are released.
pub const KEYS: [&str; 2] = ["data", "more"];
/// Of devices, by their seeds: one whose evidence is accepted, one that is revoked before the run,
/// and one that is revoked during it.
pub const GOOD: u64 = 1;
/// See [`GOOD`].
pub const REVOKED: u64 = 2;
/// See [`GOOD`].
pub const DOOMED: u64 = 3;

/// The pause of a thread between two tasks.
const PAUSE: Duration = Duration::from_millis(80);

/// A session and evidence for it.
pub struct Case {
    /// The session's token.
    pub session: String,
    /// The evidence in base64.
    pub evidence: String,
    /// SHA-256 of the evidence.
    pub digest: [u8; 32],
}

/// Begins a session, and has a device answer its challenge; `None` if there was no final answer.
pub fn case(client: &Client<'_>, device: &Device, recipient: Option<&PublicKey>) -> Option<Case> {
    let mut body = json!({"layer": "shield"});
    if let Some(key) = recipient {
        body["recipient"] = json!(b64(key.as_bytes()));
    }
    let session = client.ask(&Request::json("POST", "/v1/sessions", &body), done)?;
    let bytes = device.evidence(Layer::Shield, &unb64(&session["nonce"]));
    Some(Case {
        session: session["session"].as_str()?.to_owned(),
        evidence: b64(&bytes),
        digest: evidence::digest(&bytes),
    })
}

/// Asks for an appraisal, and enters a lost answer into the accounts.
pub fn appraise(client: &Client<'_>, case: &Case) -> Option<Verdict> {
    let request = Request::json("POST", "/v1/appraise", &submission(&case.session, &case.evidence));
    let found = client.ask(&request, verdict);
    if found.is_none() {
        client.service.book.lock().lost(format!("{}: an appraisal", client.account()));
    }
    found
}

/// The request for a release.
pub fn release_of(key: &str, case: &Case) -> Request {
    let mut body = submission(&case.session, &case.evidence);
    body["key"] = json!(key);
    Request::json("POST", "/v1/release", &body)
}

/// Asks for a release, and enters its answer, or its loss, into the accounts.
pub fn release(client: &Client<'_>, key: &str, case: &Case) -> Option<Verdict> {
    let (request, account, book) = (release_of(key, case), client.account(), &client.service.book);
    book.lock().asks(&account, case.digest);
    let answer = client.ask(&request, |status, body| match status {
        200 => Some(Some(body.clone())),
        422 => Some(None),
        _ => None,
    });
    match answer {
        Some(Some(answer)) => {
            book.lock().released(&account, case.digest, &answer);
            Some(Verdict::Accepted)
        }
        Some(None) => Some(Verdict::Denied),
        None => {
            book.lock().lost(format!("{account}: a release of {key}"));
            None
        }
    }
}

/// Evidence, and the verdict that it must have.
struct Devices([(&'static str, Device, Verdict); 3]);

impl Devices {
    fn new() -> Self {
        Self([
            ("good evidence", Device::new(GOOD), Verdict::Accepted),
            ("evidence of a revoked device", Device::new(REVOKED), Verdict::Denied),
            ("evidence of an unknown manufacturer", Device::made_by(9, 9), Verdict::Denied),
        ])
    }

    /// Mostly good evidence.
    fn pick(&self, number: usize) -> &(&'static str, Device, Verdict) {
        &self.0[[0, 0, 1, 0, 0, 2][number % 6]]
    }
}

/// Appraisals; some of the evidence is submitted again by another identity.
fn attest(service: &Service, tenant: &'static str, stop: &AtomicBool) -> Result<()> {
    let (client, second) =
        (Client::new(service, tenant, "attest")?, Client::new(service, tenant, "second")?);
    let devices = Devices::new();
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(PAUSE);
        let (what, device, expected) = devices.pick(number);
        let Some(case) = case(&client, device, None) else { continue };
        let Some(found) = appraise(&client, &case) else { continue };
        service.book.lock().verdict(what, *expected, found);
        if *expected == Verdict::Accepted && number % 4 == 0 {
            let body = submission(&case.session, &case.evidence);
            let again = Request::json("POST", "/v1/appraise", &body);
            if let Some(accepted) = second.ask(&again, accepted_again) {
                service.book.lock().reused("an appraisal by another identity", accepted);
            }
        }
    }
    Ok(())
}

/// Releases and their repetitions; some of the evidence is submitted again for another key, or for
/// an appraisal.
fn have_released(service: &Service, tenant: &'static str, stop: &AtomicBool) -> Result<()> {
    let client = Client::new(service, tenant, "release")?;
    let devices = Devices::new();
    let (_, recipient) = generate_key_pair(&mut SystemEntropy);
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        std::thread::sleep(PAUSE);
        let (what, device, expected) = devices.pick(number);
        let [key, other] = if number % 2 == 0 { KEYS } else { [KEYS[1], KEYS[0]] };
        let Some(case) = case(&client, device, Some(&recipient)) else { continue };
        let Some(found) = release(&client, key, &case) else { continue };
        service.book.lock().verdict(what, *expected, found);
        if *expected == Verdict::Denied {
            continue;
        }
        if let Some(again) = release(&client, key, &case) {
            service.book.lock().verdict("a repeated release", Verdict::Accepted, again);
        }
        let (what, again) = match number % 4 {
            0 => ("a release of another key", release_of(other, &case)),
            1 => {
                let body = submission(&case.session, &case.evidence);
                let request = Request::json("POST", "/v1/appraise", &body);
                ("an appraisal of released evidence", request)
            }
            _ => continue,
        };
        if let Some(accepted) = client.ask(&again, accepted_again) {
            service.book.lock().reused(what, accepted);
        }
    }
    Ok(())
}

fn read(service: &Service, tenant: &'static str, stop: &AtomicBool) -> Result<()> {
    let client = Client::new(service, tenant, "audit")?;
    for path in ["/v1/keys", "/v1/receipts?limit=10", "/v1/keys/data"].iter().cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        client.ask(&Request::get(*path), done);
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Rotates a key.
pub fn rotate(client: &Client<'_>, key: &str) {
    let version = json!({"policy": "default", "generate": 32});
    client.ask(&Request::json("POST", format!("/v1/keys/{key}/rotate"), &version), done);
}

/// The request to revoke a random certificate.
pub fn any_revocation() -> Request {
    let value = hex::encode(random::<32>());
    let what = json!({"kind": "certificate", "value": value, "reason": "lost"});
    Request::json("POST", "/v1/revocations", &what)
}

/// Revokes a device.
pub fn revoke(client: &Client<'_>, device: &Device) -> Option<Value> {
    let what = json!({"kind": "device", "value": hex::encode(device.ueid), "reason": "lost"});
    client.ask(&Request::json("POST", "/v1/revocations", &what), done)
}

fn change(service: &Service, tenant: &'static str, stop: &AtomicBool) -> Result<()> {
    let client = Client::new(service, tenant, "operator")?;
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        match number % 4 {
            0 => {
                // Another version, with the same meaning.
                let policy = format!("{POLICY}# {number}\n");
                client.ask(&Request::toml("/v1/policies/default", policy), done);
            }
            1 => rotate(&client, KEYS[1]),
            _ => {
                client.ask(&any_revocation(), done);
            }
        }
        std::thread::sleep(Duration::from_millis(700));
    }
    Ok(())
}

/// What a thread does until it is stopped.
pub type Work = fn(&Service, &'static str, &AtomicBool) -> Result<()>;

/// The threads of an innocent tenant at a service with this many replicas.
pub fn works(replicas: usize) -> Vec<Work> {
    let mut works: Vec<Work> = vec![read, change];
    for _ in 0..replicas {
        works.extend([attest as Work, have_released]);
    }
    works
}
