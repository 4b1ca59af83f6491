//! Tokens of a provider of OpenID Connect: `oidc-provider`, the OpenID-certified implementation for
//! Node.js, as its clients get them over HTTP.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use josekit::jwk::alg::ec::{EcCurve, EcKeyPair};
use josekit::jws::{ES256, JwsHeader};
use josekit::jwt::{self, JwtPayload};
use serde_json::{Value, json};

use crate::service::{self, Client, Expect as _, Service};
use crate::{Outcome, demand, text};
use shef_fixtures::https::{HttpResponse, Https};

/// The server.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/openid/provider.mjs");
/// The resource that the service is for its provider.
const RESOURCE: &str = "https://shef.example";
/// A program that logs people in, and its page to return to.
const WEB: &str = "web";
const BACK: &str = "https://web.example/back";
/// How long the service uses keys of a silent provider.
const KEYS_SECONDS: u64 = 8;
/// Refused, and no credentials that the service knows.
const REFUSED: (u16, &str) = (401, "SHEF-SVC-027");

/// The provider's process, which ends when the value is dropped.
struct Provider {
    folder: PathBuf,
    modules: PathBuf,
    node: PathBuf,
    port: u16,
    running: Option<(Child, ChildStdin, BufReader<ChildStdout>)>,
    https: Https,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Provider {
    fn new(folder: PathBuf, node: &Path, modules: &Path) -> Outcome<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let https = Https::new(&folder, &format!("https://127.0.0.1:{port}"), None)?;
        let (node, modules) = (node.to_owned(), modules.to_owned());
        let mut provider = Self { folder, modules, node, port, running: None, https };
        provider.start()?;
        Ok(provider)
    }

    /// Starts it with new keys.
    fn start(&mut self) -> Outcome {
        let mut child = Command::new(&self.node)
            .arg(SCRIPT)
            .args([&self.modules, &self.folder])
            .arg(self.port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().ok_or("no standard input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        self.running = Some((child, input, output));
        self.ready()
    }

    fn stop(&mut self) {
        if let Some((mut child, ..)) = self.running.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn ready(&mut self) -> Outcome {
        let (_, _, output) = self.running.as_mut().ok_or("it does not run")?;
        // It says more, such as which defaults to change.
        match output.lines().find(|line| line.as_ref().is_ok_and(|line| line == "ready")) {
            Some(_) => Ok(()),
            None => Err("the provider ended".into()),
        }
    }

    /// Has it change its keys.
    fn tell(&mut self, what: &str) -> Outcome {
        let (_, input, _) = self.running.as_mut().ok_or("it does not run")?;
        writeln!(input, "{what}")?;
        self.ready()
    }

    /// An answer of the token endpoint to a client.
    fn token(&self, client: &str, form: &[(&str, &str)], dpop: Option<&str>) -> Outcome<Value> {
        let login = format!("Basic {}", STANDARD.encode(format!("{client}:secret")));
        let mut headers = vec![("content-type", FORM), ("authorization", login.as_str())];
        headers.extend(dpop.map(|proof| ("dpop", proof)));
        self.https.send("POST", "/token", &headers, encoded(form).as_bytes())?.expect(200)
    }

    /// An access token of a program, for a resource.
    fn access(&self, client: &str, scope: &str, resource: &str) -> Outcome<String> {
        let mut form = vec![("grant_type", "client_credentials"), ("resource", resource)];
        form.extend((!scope.is_empty()).then_some(("scope", scope)));
        Ok(text(&self.token(client, &form, None)?, "access_token")?.to_owned())
    }

    /// The tokens after a login, as a browser goes through it.
    fn login(&self, name: &str) -> Outcome<Value> {
        let query = encoded(&[
            ("client_id", WEB),
            ("response_type", "code"),
            ("redirect_uri", BACK),
            ("scope", "openid groups attest"),
            ("resource", RESOURCE),
        ]);
        let mut cookies = BTreeMap::new();
        let mut answer = self.page(&mut cookies, &format!("/auth?{query}"), None)?;
        let mut path = String::new();
        for _ in 0..20 {
            if let Some(to) = answer.header("location") {
                if let Some(query) = to.strip_prefix(BACK) {
                    let code = query.split(['?', '&']).find_map(|part| part.strip_prefix("code="));
                    let code = code.ok_or_else(|| format!("no code in {to}"))?;
                    let form = [
                        ("grant_type", "authorization_code"),
                        ("code", code),
                        ("redirect_uri", BACK),
                    ];
                    return self.token(WEB, &form, None);
                }
                path = to.strip_prefix(&self.https.url).unwrap_or(to).to_owned();
                answer = self.page(&mut cookies, &path, None)?;
                continue;
            }
            // Its page asks for the login first, and then for the consent.
            let html = String::from_utf8_lossy(&answer.bytes).into_owned();
            let asks = |prompt: &str| html.contains(&format!("name=\"prompt\" value=\"{prompt}\""));
            let prompt = ["login", "consent"].into_iter().find(|prompt| asks(prompt));
            let prompt = prompt.ok_or_else(|| format!("{path}: {}: {html}", answer.status))?;
            let form = encoded(&[("prompt", prompt), ("login", name), ("password", "any")]);
            answer = self.page(&mut cookies, &path, Some(&form))?;
        }
        Err("the login does not end".into())
    }

    fn page(
        &self,
        cookies: &mut BTreeMap<String, String>,
        path: &str,
        form: Option<&str>,
    ) -> Outcome<HttpResponse> {
        let all: Vec<String> =
            cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let all = all.join("; ");
        let method = if form.is_some() { "POST" } else { "GET" };
        let headers = [("cookie", all.as_str()), ("content-type", FORM)];
        let answer =
            self.https.send(method, path, &headers, form.unwrap_or_default().as_bytes())?;
        for cookie in answer.headers.get_all("set-cookie") {
            let pair = cookie.to_str()?.split(';').next().and_then(|pair| pair.split_once('='));
            let (name, value) = pair.ok_or("not a cookie")?;
            cookies.insert(name.into(), value.into());
        }
        Ok(answer)
    }

    /// A proof of a key for a request to the token endpoint (RFC 9449).
    fn proof(&self) -> Outcome<String> {
        let pair = EcKeyPair::generate(EcCurve::P256)?;
        let mut header = JwsHeader::new();
        header.set_token_type("dpop+jwt");
        header.set_jwk(pair.to_jwk_public_key());
        let mut claims = JwtPayload::new();
        claims.set_issued_at(&SystemTime::now());
        claims.set_jwt_id("one");
        claims.set_claim("htm", Some("POST".into()))?;
        claims.set_claim("htu", Some(format!("{}/token", self.https.url).into()))?;
        Ok(jwt::encode_with_signer(
            &claims,
            &header,
            &ES256.signer_from_jwk(&pair.to_jwk_private_key())?,
        )?)
    }
}

const FORM: &str = "application/x-www-form-urlencoded";

fn encoded(pairs: &[(&str, &str)]) -> String {
    let escape = |text: &str| -> String {
        let byte = |byte: u8| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        };
        text.bytes().map(byte).collect()
    };
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{name}={}", escape(value))).collect();
    pairs.join("&")
}

/// The service and its provider.
pub struct Trial {
    service: Service,
    anyone: Client,
    provider: RefCell<Provider>,
}

impl Trial {
    /// Starts both. `node` is the program of Node.js, `modules` the folder in which npm installed.
    pub fn start(program: &Path, node: &Path, modules: &Path) -> Outcome<Self> {
        let folder = tempfile::tempdir()?;
        let own = folder.path().join("provider");
        service::set_up(program, &own, "127.0.0.1:0")?;
        let provider = Provider::new(own.clone(), node, modules)?;
        let more = format!(
            "\n[[oidc]]\nissuer = \"{}\"\naudience = \"{RESOURCE}\"\nca = {:?}\nkeys_seconds = {KEYS_SECONDS}\n\
             [[oidc.grant]]\nclaim = \"groups\"\nvalue = \"fpga\"\ntenant = \"default\"\nrole = \"operator\"\n\
             [[oidc.grant]]\nclaim = \"scope\"\nvalue = \"attest\"\ntenant = \"default\"\nrole = \"attest\"\n",
            provider.https.url,
            own.join("ca.pem"),
        );
        let service = Service::start_in(folder, program, &more)?;
        let anyone = service.anyone()?;
        Ok(Self { service, anyone, provider: RefCell::new(provider) })
    }

    fn send(&self, token: &str, method: &str, path: &str, body: &Value) -> Outcome<HttpResponse> {
        let bearer = format!("Bearer {token}");
        let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.anyone.send(method, path, &headers, body.as_bytes())
    }

    /// The status, code and text of the answer to a list of keys, which takes an operator.
    fn lists(&self, token: &str) -> Outcome<(u16, String, String)> {
        let answer = self.send(token, "GET", "/v1/keys", &Value::Null)?;
        let body: Value = serde_json::from_slice(&answer.bytes)?;
        let part = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        Ok((answer.status, part("code"), part("detail")))
    }

    /// Demands that the token is one of an operator.
    fn operates(&self, what: &str, token: &str) -> Outcome {
        let (status, code, detail) = self.lists(token)?;
        demand!(status == 200, "{what}: {status} {code}: {detail}");
        Ok(())
    }

    /// Demands that the token has the role `attest`.
    fn attests(&self, what: &str, token: &str) -> Outcome {
        let session = json!({"layer": "kernel"});
        let answer = self.send(token, "POST", "/v1/sessions", &session)?;
        answer.expect(201).map_err(|error| format!("{what}: {error}"))?;
        let (status, code, detail) = self.lists(token)?;
        demand!(
            (status, code.as_str()) == (403, "SHEF-SVC-028"),
            "{what}: {status} {code}: {detail}"
        );
        Ok(())
    }

    /// Demands that the token is refused, for a reason with this word.
    fn refuses(&self, token: &str, word: &str) -> Outcome {
        let (status, code, detail) = self.lists(token)?;
        demand!((status, code.as_str()) == REFUSED, "{word}: {status} {code}: {detail}");
        demand!(detail.contains(word), "{word}: {detail}");
        Ok(())
    }

    /// Waits until the token gets this answer, for a minute at most.
    fn until(&self, token: &str, expected: (u16, &str)) -> Outcome<Duration> {
        let start = Instant::now();
        loop {
            let (status, code, detail) = self.lists(token)?;
            if (status, code.as_str()) == expected {
                return Ok(start.elapsed());
            }
            demand!(
                start.elapsed() < Duration::from_secs(60),
                "{status} {code} ({detail}) for a minute, expected {expected:?}"
            );
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn operator(&self) -> Outcome<String> {
        self.provider.borrow().access("operator", "", RESOURCE)
    }
}

/// A case; they run in this order.
pub struct Step(pub &'static str, pub fn(&Trial) -> Outcome);

/// The claims of a token, not verified.
fn claims(token: &str) -> Outcome<Value> {
    Ok(serde_json::from_slice(&B64.decode(token.split('.').nth(1).ok_or("not a JWS")?)?)?)
}

/// The cases.
pub const STEPS: &[Step] = &[
    Step("its discovery document and keys pass the check", |trial| trial.service.check(0, "")),
    Step("access tokens of each algorithm give the role of their scope", |trial| {
        for alg in ["RS256", "PS256", "ES256", "EdDSA"] {
            let token = trial.provider.borrow().access(alg, "attest", RESOURCE)?;
            trial.attests(alg, &token)?;
        }
        Ok(())
    }),
    Step("a claim of a client gives another role, and its subject is in the events", |trial| {
        let token = trial.operator()?;
        trial.operates("groups", &token)?;
        let policy = "id = \"default\"\nroot_of_trust = [\"shef-boot\"]\nmin_kernel_svn = 1\n";
        let bearer = format!("Bearer {token}");
        let headers = [("content-type", "application/toml"), ("authorization", bearer.as_str())];
        let path = "/v1/policies/default";
        trial.anyone.send("PUT", path, &headers, policy.as_bytes())?.expect(201)?;
        let events = trial.send(&token, "GET", "/v1/events", &Value::Null)?.expect(200)?;
        let added = |event: &&Value| event["action"] == "policy-add";
        let event = events["events"].as_array().into_iter().flatten().find(added);
        let who = event.map(|event| text(event, "who")).transpose()?.unwrap_or_default();
        demand!(who.starts_with("operator."), "{events}");
        Ok(())
    }),
    Step("algorithms that are not accepted are named", |trial| {
        for alg in ["ES512", "Ed25519", "ML-DSA-44"] {
            let token = trial.provider.borrow().access(alg, "attest", RESOURCE)?;
            trial.refuses(&token, &format!("algorithm \"{alg}\""))?;
        }
        Ok(())
    }),
    Step("tokens without a grant, for another resource or for none are refused", |trial| {
        let provider = trial.provider.borrow();
        trial.refuses(&provider.access("RS256", "", RESOURCE)?, "[[oidc.grant]]")?;
        let other = provider.access("operator", "attest", "https://other.example")?;
        trial.refuses(&other, "its `aud` is")?;
        let opaque = provider.token("operator", &[("grant_type", "client_credentials")], None)?;
        trial.refuses(text(&opaque, "access_token")?, "bearer token")
    }),
    Step("a token that is bound to a key is no bearer token", |trial| {
        let provider = trial.provider.borrow();
        let form = [("grant_type", "client_credentials"), ("resource", RESOURCE)];
        let bound = provider.token("operator", &form, Some(&provider.proof()?))?;
        demand!(bound["token_type"] == "DPoP", "{bound}");
        trial.refuses(text(&bound, "access_token")?, "cnf")
    }),
    Step(
        "after a login, the access token counts, and the ID token of the program does not",
        |trial| {
            let tokens = trial.provider.borrow().login("jo")?;
            let (access, id) = (text(&tokens, "access_token")?, text(&tokens, "id_token")?);
            demand!(claims(id)?["groups"] == claims(access)?["groups"], "{tokens}");
            trial.operates("jo", access)?;
            trial.refuses(id, "its `aud` is")?;
            // A person outside of the group.
            let tokens = trial.provider.borrow().login("ann")?;
            trial.attests("ann", text(&tokens, "access_token")?)
        },
    ),
    Step(
        "with the program as the audience, its ID tokens count, and access tokens do not",
        |trial| {
            let tokens = trial.provider.borrow().login("jo")?;
            let (access, id) = (text(&tokens, "access_token")?, text(&tokens, "id_token")?);
            let [resource, program] = [RESOURCE, WEB].map(|of| format!("\naudience = \"{of}\"\n"));
            trial.service.reload(|config| config.replace(&resource, &program))?;
            trial.until(id, (200, ""))?;
            trial.refuses(access, "its `aud` is")?;
            trial.service.reload(|config| config.replace(&program, &resource))?;
            trial.until(access, (200, ""))?;
            trial.refuses(id, "its `aud` is")
        },
    ),
    Step("the service follows a rotation of the keys without a restart", |trial| {
        let old = trial.operator()?;
        trial.operates("before", &old)?;
        trial.provider.borrow_mut().tell("rotate")?;
        let new = trial.operator()?;
        // The service looks an unknown key up, at most every three seconds.
        let waited = trial.until(&new, (200, ""))?;
        demand!(waited.as_secs() < 5, "the new key after {waited:?}");
        trial.operates("an old key that is still published", &old)?;
        trial.provider.borrow_mut().tell("retire")?;
        trial.until(&old, REFUSED)?;
        trial.operates("the new key", &new)
    }),
    Step("keys of a provider that has stopped go on until their age", |trial| {
        // The service has just fetched a key that it did not know.
        trial.provider.borrow_mut().tell("rotate")?;
        let token = trial.operator()?;
        trial.until(&token, (200, ""))?;
        let start = Instant::now();
        trial.provider.borrow_mut().stop();
        trial.service.check(4, "SHEF-SVC-011")?;
        trial.operates("a stopped provider", &token)?;
        let goes_on = start.elapsed();
        demand!(goes_on.as_secs() + 2 < KEYS_SECONDS, "it took {goes_on:?}, which shows nothing");
        trial.until(&token, (503, "SHEF-SVC-011"))?;
        let waited = start.elapsed().as_secs();
        demand!((KEYS_SECONDS - 2..KEYS_SECONDS + 3).contains(&waited), "refused after {waited} s");
        // Callers of other kinds do not notice.
        trial.service.operator()?.send("GET", "/v1/keys", &[], b"")?.expect(200)?;
        // It comes back with other keys.
        trial.provider.borrow_mut().start()?;
        let again = trial.operator()?;
        trial.until(&again, (200, ""))?;
        trial.until(&token, REFUSED).map(drop)
    }),
];
