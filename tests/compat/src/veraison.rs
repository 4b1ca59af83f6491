//! Veraison's challenge-response API, according to its documentation; its clients are not on any
//! registry. The Go client decodes nonces as standard base64 with padding, the service's own
//! documentation specifies base64url without padding; clients of both kinds are in use.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use serde_json::{Value, json};
use shef_proto::evidence::Layer;

use crate::service::{Client, Expect as _, HttpResponse};
use crate::{Case, Outcome, World, demand, text};

const SESSION: &str = "application/vnd.veraison.challenge-response-session+json";
const DISCOVERY: &str = "application/vnd.veraison.discovery+json";
const EVIDENCE: &str = "application/eat+cwt";

/// An open session: its path, its object, its nonce.
struct Session {
    path: String,
    object: Value,
    nonce: Vec<u8>,
}

impl Session {
    fn open(client: &Client, query: &str) -> Outcome<Self> {
        let answer = client.send(
            "POST",
            &format!("/challenge-response/v1/newSession{query}"),
            &[("accept", SESSION)],
            b"",
        )?;
        demand!(
            answer.header("content-type") == Some(SESSION),
            "content type {:?}",
            answer.header("content-type")
        );
        let location = answer.header("location").ok_or("no Location")?.to_owned();
        let object = answer.expect(201)?;
        demand!(location.starts_with("session/"), "Location {location} is not relative");
        let nonce = STANDARD.decode(text(&object, "nonce")?)?;
        Ok(Self { path: format!("/challenge-response/v1/{location}"), object, nonce })
    }

    fn submit(
        &self,
        client: &Client,
        accept: &str,
        media: &str,
        body: &[u8],
    ) -> Outcome<HttpResponse> {
        client.send("POST", &self.path, &[("accept", accept), ("content-type", media)], body)
    }

    /// Submits the card's evidence unchanged.
    fn attest(&self, world: &World, client: &Client, accept: &str) -> Outcome<Value> {
        let evidence = world.card.evidence(Layer::Kernel, &self.nonce);
        client.know("evidence", &B64.encode(&evidence));
        self.submit(client, accept, EVIDENCE, &evidence)?.expect(200)
    }
}

/// A result obtained in this way and its nonce, in the dialect that `accept` requests.
pub fn result(world: &World, accept: Option<&str>) -> Outcome<(String, Value)> {
    let session = Session::open(&world.anyone, "")?;
    let accept = accept.map_or_else(|| SESSION.to_owned(), |accept| format!("{SESSION}, {accept}"));
    let done = session.attest(world, &world.anyone, &accept)?;
    Ok((text(&done, "result")?.to_owned(), session.object["nonce"].clone()))
}

/// The result of evidence that the card did not sign.
pub fn denied(world: &World, accept: &str) -> Outcome<String> {
    let session = Session::open(&world.anyone, "")?;
    let mut evidence = world.card.evidence(Layer::Kernel, &session.nonce);
    *evidence.last_mut().ok_or("no evidence")? ^= 1;
    let done = session
        .submit(&world.anyone, &format!("{SESSION}, {accept}"), EVIDENCE, &evidence)?
        .expect(200)?;
    demand!(done["status"] == "complete", "status {}", done["status"]);
    Ok(text(&done, "result")?.to_owned())
}

fn problem(answer: &HttpResponse, status: u16) -> Outcome<String> {
    demand!(
        answer.header("content-type") == Some("application/problem+json"),
        "content type {:?}",
        answer.header("content-type")
    );
    let body = answer.expect(status)?;
    demand!(body["status"] == status && body["title"].is_string(), "{body}");
    Ok(text(&body, "detail")?.to_owned())
}

/// Cases of its clients.
pub const CASES: &[Case] = &[
    Case("discovery", |world| {
        let answer = world.anyone.send(
            "GET",
            "/.well-known/veraison/verification",
            &[("accept", DISCOVERY)],
            b"",
        )?;
        demand!(
            answer.header("content-type") == Some(DISCOVERY),
            "content type {:?}",
            answer.header("content-type")
        );
        let found = answer.expect(200)?;
        demand!(
            found["api-endpoints"]["newChallengeResponseSession"]
                == "/challenge-response/v1/newSession",
            "{found}"
        );
        demand!(
            found["ear-verification-key"] == serde_json::from_slice::<Value>(&world.jwk)?,
            "the key is not the published one"
        );
        demand!(
            found["service-state"] == "READY"
                && found["version"].is_string()
                && found["media-types"].is_array(),
            "{found}"
        );
        Ok(())
    }),
    Case("a session from nonce to result", |world| {
        world.recorded("veraison-session", |tape| {
            let client = world.anyone.on(tape);
            let session = Session::open(&client, "")?;
            demand!(
                session.object["status"] == "waiting" && session.object["state"].is_null(),
                "{}",
                session.object
            );
            demand!(
                session.object["expiry"].as_str().is_some_and(|time| time.ends_with('Z')),
                "{}",
                session.object
            );
            let done = session.attest(world, &client, SESSION)?;
            demand!(done["status"] == "complete" && done["evidence"]["type"] == EVIDENCE, "{done}");
            STANDARD.decode(text(&done["evidence"], "value")?)?;
            let shown =
                client.send("GET", &session.path, &[("accept", SESSION)], b"")?.expect(200)?;
            demand!(shown["result"] == done["result"], "another result is shown later");
            client.send("DELETE", &session.path, &[("accept", SESSION)], b"")?.expect(204)?;
            Ok(())
        })
    }),
    Case("nonces that every client decodes alike", |world| {
        for _ in 0..40 {
            let session = Session::open(&world.anyone, "?nonceSize=48")?;
            demand!(
                B64.decode(text(&session.object, "nonce")?)? == session.nonce
                    && session.nonce.len() == 48,
                "{}",
                session.object
            );
        }
        Ok(())
    }),
    Case("a nonce of the size that is asked for, and one of the client's own", |world| {
        for size in [32, 64] {
            let session = Session::open(&world.anyone, &format!("?nonceSize={size}"))?;
            demand!(session.nonce.len() == size, "{} bytes, asked for {size}", session.nonce.len());
        }
        let own = [0x5a; 48];
        let session = Session::open(&world.anyone, &format!("?nonce={}", B64.encode(own)))?;
        demand!(session.nonce == own, "another nonce than the client's");
        session.attest(world, &world.anyone, SESSION)?;
        Ok(())
    }),
    Case("the eight bytes of its own example are refused with what there is instead", |world| {
        world.recorded("veraison-short-nonce", |tape| {
            let answer = world.anyone.on(tape).send(
                "POST",
                "/challenge-response/v1/newSession?nonceSize=8",
                &[("accept", SESSION)],
                b"",
            )?;
            let detail = problem(&answer, 400)?;
            demand!(detail.contains("32 to 64"), "{detail}");
            Ok(())
        })
    }),
    Case("evidence in the wrapper that the Go client sends", |world| {
        let session = Session::open(&world.anyone, "")?;
        let wrapped =
            json!([EVIDENCE, B64.encode(world.card.evidence(Layer::Kernel, &session.nonce)), 4])
                .to_string();
        let done = session
            .submit(
                &world.anyone,
                SESSION,
                "application/vnd.veraison.cmw+json",
                wrapped.as_bytes(),
            )?
            .expect(200)?;
        demand!(done["status"] == "complete", "{done}");
        Ok(())
    }),
    Case("bad evidence is answered with a result", |world| denied(world, crate::OLD).map(|_| ())),
    Case("another media type is answered with those that are taken", |world| {
        let session = Session::open(&world.anyone, "")?;
        let answer =
            session.submit(&world.anyone, SESSION, "application/psa-attestation-token", b"x")?;
        problem(&answer, 415)?;
        demand!(
            answer.header("accept").is_some_and(|list| list.contains(EVIDENCE)),
            "Accept {:?}",
            answer.header("accept")
        );
        Ok(())
    }),
    Case("another Accept is told", |world| {
        let answer = world.anyone.send(
            "POST",
            "/challenge-response/v1/newSession",
            &[("accept", "text/html")],
            b"",
        )?;
        problem(&answer, 406).map(|_| ())
    }),
    Case("a session that was deleted or never was is not there", |world| {
        let session = Session::open(&world.anyone, "")?;
        world.anyone.send("DELETE", &session.path, &[], b"")?.expect(204)?;
        for path in [
            session.path.as_str(),
            "/challenge-response/v1/session/8a5c0b1e-0000-0000-0000-000000000000",
        ] {
            problem(&world.anyone.send("GET", path, &[("accept", SESSION)], b"")?, 404)?;
        }
        Ok(())
    }),
    Case("provisioning of what nobody known signed fails in words", |world| {
        let headers = [
            ("content-type", "application/rim+cose"),
            ("accept", "application/vnd.veraison.provisioning-session+json"),
        ];
        let answer = world
            .operator
            .send("POST", "/endorsement-provisioning/v1/submit", &headers, b"\xd2\x84")?
            .expect(200)?;
        demand!(
            answer["status"] == "failed"
                && answer["failure-reason"].is_string()
                && answer["expiry"].is_string(),
            "{answer}"
        );
        Ok(())
    }),
];
