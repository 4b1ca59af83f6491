//! One tenant, and strangers, attack.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use shef_fixtures::service::{Device, b64};
use shef_proto::hpke_suite::generate_key_pair;
use shef_verifierd::secrets::{SystemEntropy, random};

use crate::Result;
use crate::client::{Client, Request, Service};
use crate::load::{self, GOOD, KEYS};
use crate::machines::HOSTILE;

/// How long an attacker waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pause of each connection.
const PAUSE: Duration = Duration::from_millis(200);
/// Attackers use other machines: on this one, the services go first.
const NICE: i32 = 10;

/// Bytes of large reference values: a tenth of a second to parse for a program that is not
/// optimized. A tenant may store some thirty of them.
const LARGE: usize = 250_000;

/// What a connection sends again and again.
#[derive(Clone, Copy)]
enum Attack {
    /// One release.
    Repeat,
    /// Random bytes in place of evidence.
    Junk,
    /// Large reference values, always others.
    Large,
    /// A token that the service does not know.
    Token,
    /// A probe of readiness, without a token.
    Probe,
}

/// The connections of each kind to a service.
const KINDS: [(Attack, usize); 5] = [
    (Attack::Repeat, 100),
    (Attack::Junk, 50),
    (Attack::Large, 10),
    (Attack::Token, 50),
    (Attack::Probe, 50),
];

impl Attack {
    /// The token of the client.
    fn token(self) -> &'static str {
        match self {
            Self::Repeat => "release",
            Self::Junk => "attest",
            Self::Large => "operator",
            Self::Token | Self::Probe => "unknown",
        }
    }

    fn request(self, (repeated, large): (&load::Case, &str)) -> Request {
        match self {
            Self::Repeat => load::release_of(KEYS[0], repeated),
            Self::Junk => {
                let junk = json!({"nonce": b64(&random::<32>()), "layer": "shield", "evidence": b64(&random::<2048>())});
                Request::json("POST", "/v1/appraise", &junk)
            }
            Self::Large => {
                let other = hex::encode(random::<8>());
                Request::toml(format!("/v1/corims/large-{other}"), format!("# {other}\n{large}"))
            }
            Self::Token => Request::get("/v1/keys"),
            Self::Probe => Request::get("/readyz"),
        }
    }
}

/// All connections to a service.
pub fn connections() -> usize {
    KINDS.iter().map(|(_, connections)| connections).sum()
}

/// Large reference values. A comment in front makes others of them.
fn large() -> String {
    let mut text = String::new();
    while text.len() < LARGE {
        let (name, digest) = (hex::encode(random::<8>()), hex::encode(random::<32>()));
        text.push_str(&format!("[[kernel]]\nname = \"{name}\"\ndigest = \"{digest}\"\nsvn = 2\n"));
    }
    text
}

/// Attacks a service until `stop`. Returns how many requests it answered.
///
/// # Errors
/// The attack cannot begin.
pub fn attack(service: &Service, stop: &AtomicBool) -> Result<usize> {
    let client = |attack: Attack| Client::with_timeout(service, HOSTILE, attack.token(), TIMEOUT);
    let release = client(Attack::Repeat)?;
    let (_, recipient) = generate_key_pair(&mut SystemEntropy);
    let case = load::case(&release, &Device::new(GOOD), Some(&recipient)).ok_or("no session")?;
    load::release(&release, KEYS[0], &case);
    let (large, answered) = (large(), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for (attack, connections) in KINDS {
            for connection in 0..connections {
                let (client, content) = (client(attack)?, (&case, large.as_str()));
                let answered = &answered;
                scope.spawn(move || {
                    // On Linux, of this thread.
                    let _ = rustix::process::nice(NICE);
                    while !stop.load(Ordering::Relaxed) {
                        let answer = client.send(connection, &attack.request(content));
                        answered.fetch_add(usize::from(answer.is_some()), Ordering::Relaxed);
                        std::thread::sleep(PAUSE);
                    }
                });
            }
        }
        Result::Ok(())
    })?;
    Ok(answered.into_inner())
}
