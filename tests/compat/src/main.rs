//! Third-party clients and parsers against a running `shef-verifierd`: the crates `ear` and
//! `kbs-types`, Veraison's documented calls, and a provider of OpenID Connect.
//!
//! It is a separate workspace, started by `cargo xtask compat`. The clients' requests and answers
//! are recorded in `exchanges/`. The service's own tests replay them, so the clients' expectations
//! are tested without building the clients.

mod ear;
mod kbs;
mod oidc;
mod service;
mod veraison;

use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use serde_json::{Value, json};
use shef_proto::evidence::RootOfTrust;

use service::{Client, Expect as _, Service, Tape};
use shef_fixtures::device::{Device, reference};

/// Result of a case; the error is a message.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Fails a case unless a condition holds.
#[macro_export]
macro_rules! demand {
    ($holds:expr, $($words:tt)*) => {
        if !$holds {
            return Err(format!($($words)*).into());
        }
    };
}

/// A client's case.
pub struct Case(pub &'static str, pub fn(&World) -> Outcome);

/// The running service, its users, and their cards.
pub struct World {
    pub operator: Client,
    pub anyone: Client,
    /// A client with the role `release` in the first tenant.
    pub host: Client,
    /// The same in the tenant whose policies name `simulated`.
    pub lab: Client,
    pub card: Device,
    /// Another device of the same manufacturer, which is revoked at the end.
    pub stolen: Device,
    pub simulated: Device,
    /// The key that verifies results, as a JWK.
    pub jwk: Vec<u8>,
    write: bool,
}

/// The profiles that clients request by name.
pub const OLD: &str = "application/eat+jwt; eat_profile=\"tag:github.com,2023:veraison/ear\"";
pub const NEW: &str = "application/eat+jwt; eat_profile=\"tag:ietf.org,2026:rats/ear#04\"";

impl World {
    fn new(service: &Service, write: bool) -> Outcome<Self> {
        let mut simulated = Device::made_by(2, 1);
        simulated.kind = RootOfTrust::Simulated;
        let operator = service.operator()?;
        let keys = operator.send("GET", "/.well-known/jwks.json", &[], b"")?.expect(200)?;
        let world = Self {
            operator,
            anyone: service.anyone()?,
            host: service.known("default", "release", "host")?,
            lab: service.known("lab", "release", "lab-host")?,
            card: Device::new(1),
            stolen: Device::new(2),
            simulated,
            jwk: serde_json::to_vec(&keys["keys"][0])?,
            write,
        };
        world.recorded("set-up", |tape| {
            let operator = world.operator.on(tape);
            furnish(&operator, &world.card, "shef-boot")?;
            // The service sees the card first, so that the version that it requires does not depend
            // on the order of the cases.
            world.appraise(&operator, "*/*", &json!({})).map(|_| ())
        })?;
        let lab = service.known("lab", "operator", "lab-operator")?;
        furnish(&lab, &world.simulated, "simulated")?;
        Ok(world)
    }

    /// Runs `f` and keeps a record of the traffic of its recorded clients.
    pub fn recorded(
        &self,
        name: &str,
        what: impl FnOnce(&Rc<RefCell<Tape>>) -> Outcome,
    ) -> Outcome {
        let tape = Rc::default();
        what(&tape)?;
        tape.borrow().end(name, self.write)
    }

    /// Appraises evidence of the card through the service's native API, with more members in the
    /// request.
    pub fn appraise(&self, operator: &Client, accept: &str, more: &Value) -> Outcome<Value> {
        let session =
            operator.call("POST", "/v1/sessions", &json!({"layer": "kernel"}))?.expect(201)?;
        let evidence = B64.encode(self.card.evidence(
            shef_proto::evidence::Layer::Kernel,
            &STANDARD.decode(text(&session, "nonce")?)?,
        ));
        operator.know("evidence", &evidence);
        let mut body = json!({"session": session["session"], "evidence": evidence});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        let headers = [("content-type", "application/json"), ("accept", accept)];
        operator.send("POST", "/v1/appraise", &headers, body.to_string().as_bytes())?.expect(200)
    }
}

/// A text member.
pub fn text<'a>(value: &'a Value, name: &str) -> Outcome<&'a str> {
    value[name].as_str().ok_or_else(|| format!("no text {name} in {value}").into())
}

/// Adds a manufacturer's root, reference values, a policy, and resources under it.
fn furnish(operator: &Client, device: &Device, kind: &str) -> Outcome {
    let anchor =
        json!({"name": "maker", "kind": kind, "certificate": B64.encode(device.root.der())});
    operator.call("POST", "/v1/trust-anchors", &anchor)?.expect(201)?;
    operator.put("PUT", "/v1/corims/build-1", "application/toml", reference().as_bytes())?;
    let policy = |id: &str, more: &str| {
        format!("id = \"{id}\"\nroot_of_trust = [\"{kind}\"]\nmin_kernel_svn = 1\n{more}")
    };
    operator.put(
        "PUT",
        "/v1/policies/default",
        "application/toml",
        policy("default", "").as_bytes(),
    )?;
    operator.put(
        "PUT",
        "/v1/policies/host",
        "application/toml",
        policy("host", "to_host = true\n").as_bytes(),
    )?;
    for path in ["default/key/one", "Default/Key/One"] {
        operator.put(
            "POST",
            &format!("/kbs/v0/resource/{path}"),
            "application/octet-stream",
            b"the resource",
        )?;
    }
    let to_host = json!({"layer": "kernel", "policy": "host", "to": "host", "secret": B64.encode(b"for the host")});
    operator.call("PUT", "/v1/keys/default%2Fkey%2Fhost", &to_host)?.expect(201)?;
    Ok(())
}

struct Args {
    program: PathBuf,
    /// Node.js, and the folder in which npm installed the provider of OpenID Connect.
    node: PathBuf,
    modules: PathBuf,
    json: bool,
    write: bool,
}

fn args() -> Outcome<Args> {
    let mut all: Vec<String> = std::env::args().skip(1).collect();
    let mut flag = |name: &str| {
        let found = all.iter().position(|arg| arg == name);
        found.map(|at| all.remove(at)).is_some()
    };
    let (json, write) = (flag("--json"), flag("--write"));
    match <[String; 3]>::try_from(all) {
        Ok([program, node, modules]) => Ok(Args {
            program: program.into(),
            node: node.into(),
            modules: modules.into(),
            json,
            write,
        }),
        Err(_) => Err("usage: shef-compat [--json] [--write] PROGRAM NODE MODULES, the paths of shef-verifierd, node, and the folder of \
                       node_modules"
            .into()),
    }
}

/// The results so far.
#[derive(Default)]
struct Results {
    cases: Vec<Value>,
    failed: bool,
}

impl Results {
    fn add(&mut self, client: &str, case: &str, result: Outcome) {
        self.failed |= result.is_err();
        let why = result.err().map(|error| error.to_string());
        match &why {
            None => eprintln!("ok      {client}: {case}"),
            Some(why) => eprintln!("FAILED  {client}: {case}: {why}"),
        }
        let passed = why.is_none();
        self.cases.push(json!({"client": client, "case": case, "passed": passed, "why": why}));
    }
}

fn run() -> Outcome<bool> {
    let args = args()?;
    let mut results = Results::default();
    let trial = oidc::Trial::start(&args.program, &args.node, &args.modules)?;
    for oidc::Step(case, run) in oidc::STEPS {
        results.add("oidc-provider 9.13.3", case, run(&trial));
    }
    let service = Service::start(&args.program)?;
    let world = World::new(&service, args.write)?;
    let clients = [
        ("ear 0.5.0", ear::OLD),
        ("ear 0.6.0", ear::NEW),
        ("veraison (documented calls)", veraison::CASES),
        ("kbs-types 0.18.0", kbs::CASES),
    ];
    for (client, cases) in clients {
        for Case(case, run) in cases {
            results.add(client, case, run(&world));
        }
    }
    let Results { cases, failed } = results;
    if args.json {
        println!("{}", json!({"cases": cases}));
    } else {
        println!("{} cases, {}", cases.len(), if failed { "not all passed" } else { "all passed" });
    }
    Ok(!failed)
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(3)
        }
    }
}
