//! The table of all requests: path and method, right, body, answer. The service rejects a path that
//! is not here, even if a handler exists; the API's description is made from the same table.

use axum::http::{HeaderMap, Method, header};
use shef_api as api;
use shef_verify::corim;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{Ref, RefOr, Schema};
use utoipa::{IntoParams, ToSchema};

use super::{media_type, veraison};
use crate::collateral;
use crate::lanes::Lane;
use crate::problem::{Because, Kind, Result};
use crate::role::Need;

/// Types that a page can make a browser send to another site without a preflight (Fetch,
/// "CORS-safelisted request-header").
const FORMS: [&str; 3] = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];

/// What the body of a request may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The body is ignored; it may have any type that no HTML form can send.
    Nothing,
    /// One of these media types.
    One(&'static [&'static str]),
    /// Evidence, or a wrapper of it.
    Evidence,
    /// Bytes; the clients name no media type.
    Bytes,
}

impl Takes {
    const JSON: Self = Self::One(&["application/json"]);

    /// Checks that the body has a type that this route takes. No form of another site can send one
    /// of them.
    ///
    /// # Errors
    /// The type is another one; the answer lists the valid types in `Accept`.
    pub fn demand(self, headers: &HeaderMap) -> Result<()> {
        let found = media_type(headers);
        let absent = !headers.contains_key(header::CONTENT_TYPE);
        let (fits, expected) = match self {
            Self::Nothing => (!FORMS.contains(&found.as_str()), "application/json".to_owned()),
            Self::One(types) => (types.contains(&found.as_str()), types.join(", ")),
            Self::Evidence => {
                (veraison::is_evidence(&found), veraison::evidence_types().join(", "))
            }
            Self::Bytes => (
                absent
                    || ["application/octet-stream", "application/json"].contains(&found.as_str()),
                "application/octet-stream".to_owned(),
            ),
        };
        if fits {
            return Ok(());
        }
        Err(Kind::MediaType
            .because(format!("content type {found:?}, expected {expected}"))
            .header(header::ACCEPT, &expected))
    }
}

/// Schemas by name.
pub type Schemas = Vec<(String, RefOr<Schema>)>;

/// A reference to the schema of a type, which is added to those of the description.
pub type SchemaOf = fn(&mut Schemas) -> Ref;

/// Adds the schema of a type, and those of its members; returns a reference to it.
pub fn schema<T: ToSchema>(all: &mut Schemas) -> Ref {
    T::schemas(all);
    all.push((T::name().into_owned(), T::schema()));
    Ref::from_schema_name(T::name())
}

fn parameters<T: IntoParams>() -> Vec<Parameter> {
    T::into_params(|| Some(ParameterIn::Query))
}

/// The content of a successful answer.
#[derive(Clone, Copy, Debug)]
pub enum Content {
    /// None.
    Nothing,
    /// JSON of this media type, and its schema.
    Json(&'static str, SchemaOf),
    /// One of these media types, which other specifications describe.
    Other(&'static [&'static str]),
}

/// One path and method.
#[derive(Clone, Copy, Debug)]
pub struct Route {
    /// Method.
    pub method: &'static str,
    /// Path with parameters in braces.
    pub path: &'static str,
    /// The right that it needs.
    pub need: Need,
    /// The body that it takes.
    pub takes: Takes,
    /// One line for the API's description.
    pub summary: &'static str,
    /// Parameters in the query.
    pub query: fn() -> Vec<Parameter>,
    /// Schema of the body, if it is JSON of this API.
    pub body: Option<SchemaOf>,
    /// Status of a successful answer.
    pub status: u16,
    /// Its content.
    pub gives: Content,
    /// Statuses of problems beyond those of every route of its kind.
    pub refuses: &'static [u16],
}

impl Route {
    /// Whether it may change something.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.method != "GET"
    }

    /// The places that its requests take; `None` if they are answered from memory at once.
    #[must_use]
    pub fn lane(&self) -> Option<Lane> {
        let revokes = self.path.starts_with("/v1/revocations")
            || self.path == "/revoke"
            || self.path.ends_with("/disable");
        Some(match self.need {
            Need::Open if self.path == "/readyz" => Lane::Ready,
            Need::Open => return None,
            Need::Operate if self.changes() && revokes => Lane::Revoke,
            Need::Operate if self.changes() => Lane::Change,
            Need::Operate | Need::Read => Lane::Read,
            Need::Release => Lane::Release,
            Need::Attest if self.path.starts_with("/kbs/v0/resource/") => Lane::Release,
            Need::Attest => Lane::Attest,
        })
    }

    /// Whether it may give a right or add something: only to take a right away, a caller needs none at
    /// the end.
    #[must_use]
    pub fn may_give(&self) -> bool {
        match self.lane() {
            Some(Lane::Change) => true,
            Some(Lane::Revoke) => self.method == "DELETE",
            _ => false,
        }
    }

    /// Whether its body may hold a key.
    #[must_use]
    pub fn brings_key(&self) -> bool {
        matches!(
            (self.method, self.path),
            ("PUT", "/v1/keys/{name}")
                | ("POST", "/v1/keys/{name}/rotate")
                | ("POST", "/kbs/v0/resource/{repository}/{kind}/{tag}")
        )
    }

    const fn new(
        method: &'static str,
        path: &'static str,
        need: Need,
        summary: &'static str,
    ) -> Self {
        Self {
            method,
            path,
            need,
            takes: Takes::Nothing,
            summary,
            query: Vec::new,
            body: None,
            status: 204,
            gives: Content::Nothing,
            refuses: &[],
        }
    }

    const fn takes(self, takes: Takes) -> Self {
        Self { takes, ..self }
    }

    const fn query<T: IntoParams>(self) -> Self {
        Self { query: parameters::<T>, ..self }
    }

    /// A body of this form, which may be missing.
    const fn may_take<T: ToSchema>(self) -> Self {
        Self { body: Some(schema::<T>), ..self }
    }

    const fn json<T: ToSchema>(self) -> Self {
        self.takes(Takes::JSON).may_take::<T>()
    }

    const fn status(self, status: u16) -> Self {
        Self { status, ..self }
    }

    const fn gives<T: ToSchema>(self, status: u16) -> Self {
        Self { status, gives: Content::Json("application/json", schema::<T>), ..self }
    }

    /// The media type of the JSON that it gives.
    const fn media(self, media: &'static str) -> Self {
        let gives = match self.gives {
            Content::Json(_, schema) => Content::Json(media, schema),
            other => other,
        };
        Self { gives, ..self }
    }

    const fn other(self, status: u16, types: &'static [&'static str]) -> Self {
        Self { status, gives: Content::Other(types), ..self }
    }

    const fn refuses(self, refuses: &'static [u16]) -> Self {
        Self { refuses, ..self }
    }
}

const fn get(path: &'static str, need: Need, summary: &'static str) -> Route {
    Route::new("GET", path, need, summary)
}

const fn post(path: &'static str, need: Need, summary: &'static str) -> Route {
    Route::new("POST", path, need, summary)
}

const fn put(path: &'static str, need: Need, summary: &'static str) -> Route {
    Route::new("PUT", path, need, summary)
}

const fn delete(path: &'static str, need: Need, summary: &'static str) -> Route {
    Route::new("DELETE", path, need, summary)
}

const HTML: &[&str] = &["text/html"];
const JSON: &[&str] = &["application/json"];
const SESSION: &[&str] = &[veraison::SESSION];

/// Every path of the service.
pub const ROUTES: &[Route] = &[
    get("/", Need::Read, "The operator's page.").query::<super::Begin>().other(200, HTML).refuses(&[400]),
    get("/style.css", Need::Open, "Its style.").other(200, &["text/css"]),
    get("/appraisals/{id}", Need::Read, "One appraisal, to be read.").other(200, HTML),
    get("/revoke", Need::Operate, "Asks before something is revoked.").query::<super::Target>().other(200, HTML).refuses(&[400, 422]),
    post("/revoke", Need::Operate, "Revokes, from the page's form.").takes(Takes::One(&["application/x-www-form-urlencoded"])).status(303).refuses(&[409, 422]),
    get("/healthz", Need::Open, "The process works.").gives::<api::Health>(200),
    get("/readyz", Need::Open, "The service can answer: database, certificate, keys.").gives::<api::Ready>(200),
    get("/metrics", Need::Read, "Counters for Prometheus.").other(200, &["text/plain"]),
    get("/.well-known/jwks.json", Need::Open, "Keys that verify results and receipts.").gives::<api::Jwks>(200).media("application/jwk-set+json"),
    get("/v1/openapi.json", Need::Open, "This description.").other(200, JSON),
    post("/v1/sessions", Need::Attest, "A challenge: nonce, audience and a signed session token. Nothing is stored.").json::<api::NewSession>().gives::<api::Session>(201),
    post("/v1/appraise", Need::Attest, "Appraise evidence; the nonce is used up. Denied evidence is answered with 422 and every check.").json::<api::Submission>().gives::<api::Appraised>(200).refuses(&[404, 406, 409, 410, 422]),
    post("/v1/explain", Need::Attest, "The same without using the nonce up and without a signed result.").json::<api::Submission>().gives::<api::Explained>(200).refuses(&[404, 410, 422]),
    post("/v1/release", Need::Release, "Appraise under the key's own policy and release the key in an HPKE box with a receipt.").json::<api::ReleaseRequest>().gives::<api::Released>(200).refuses(&[404, 409, 410, 422]),
    get("/v1/trust-anchors", Need::Read, "Manufacturers' roots.").gives::<api::Anchors>(200),
    post("/v1/trust-anchors", Need::Operate, "Register a root for one kind of root of trust.").json::<api::NewAnchor>().gives::<api::AddedAnchor>(201).refuses(&[409, 422]),
    delete("/v1/trust-anchors/{name}", Need::Operate, "Remove a root."),
    get("/v1/signers", Need::Read, "Who may sign CoRIMs, and for what.").gives::<api::Signers>(200),
    put("/v1/signers/{name}", Need::Operate, "Add or replace a signer of CoRIMs.").takes(Takes::One(&["application/toml"])).gives::<api::AddedSigner>(201).refuses(&[409, 422]),
    delete("/v1/signers/{name}", Need::Operate, "Remove a signer; its CoRIMs are no longer used."),
    get("/v1/corims", Need::Read, "Reference values.").gives::<api::Corims>(200),
    put("/v1/corims/{id}", Need::Operate, "Add reference values under an id.").takes(Takes::One(collateral::REFERENCE_TYPES)).gives::<api::AddedCorim>(201).refuses(&[409, 422]),
    get("/v1/corims/{id}", Need::Read, "Reference values as they came.").other(200, collateral::REFERENCE_TYPES),
    delete("/v1/corims/{id}", Need::Operate, "Remove reference values."),
    post("/v1/corims/{id}/activate", Need::Operate, "Count these reference values again.").refuses(&[422]),
    post("/v1/corims/{id}/deactivate", Need::Operate, "Deactivate these reference values."),
    get("/v1/policies", Need::Read, "Policies and their versions.").gives::<api::Policies>(200),
    put("/v1/policies/{name}", Need::Operate, "Add the next version of a policy; versions never change.").takes(Takes::One(collateral::POLICY_TYPES)).gives::<api::AddedPolicy>(201).refuses(&[409, 422]),
    get("/v1/policies/{name}", Need::Read, "The text of a policy, `name` or `name@version`.").other(200, collateral::POLICY_TYPES).refuses(&[422]),
    delete("/v1/policies/{name}", Need::Operate, "Remove a policy that no key names, or an older version of it, `name@version`.").refuses(&[409]),
    post("/v1/policies/dry-run", Need::Operate, "Hold recorded evidence against a policy: what would it deny?").query::<api::RowsLimit>().takes(Takes::One(collateral::POLICY_TYPES)).gives::<api::DryRun>(200).refuses(&[422]),
    get("/v1/revocations", Need::Read, "Revocations.").gives::<api::Revocations>(200),
    post("/v1/revocations", Need::Operate, "Revoke a device, kernel, shell, image, vendor, certificate or authority.").json::<api::NewRevocation>().gives::<api::AddedRevocation>(201).refuses(&[409, 422]),
    delete("/v1/revocations/{kind}/{value}", Need::Operate, "Take a revocation back."),
    get("/v1/devices", Need::Read, "Devices with their last appraisal; `stale` when it is too long ago.").query::<api::RowsAfter>().gives::<api::Devices>(200).refuses(&[400]),
    get("/v1/devices/{ueid}", Need::Read, "One device.").gives::<api::Device>(200),
    delete("/v1/devices/{ueid}", Need::Operate, "Forget a device that was never accepted, or that is revoked.").refuses(&[409]),
    get("/v1/appraisals", Need::Read, "Recent appraisals.").query::<api::RowsBefore>().gives::<api::Records>(200).refuses(&[400]),
    get("/v1/appraisals/{id}", Need::Read, "One appraisal with every check.").gives::<api::WholeRecord>(200),
    get("/v1/keys", Need::Read, "Keys, never their secrets.").query::<api::RowsAfter>().gives::<api::Keys>(200).refuses(&[400]),
    put("/v1/keys/{name}", Need::Operate, "Add a key: layer, policy, secret or length to generate, limits, window.").json::<api::NewKey>().gives::<api::AddedKey>(201).refuses(&[409, 422]),
    get("/v1/keys/{name}", Need::Read, "One key with its versions.").gives::<api::WholeKey>(200),
    delete("/v1/keys/{name}", Need::Operate, "Delete a key, or an older version of it, with the boxes of its releases. Receipts stay.").query::<api::Which>().refuses(&[400, 409]),
    post("/v1/keys/{name}/rotate", Need::Operate, "Add the next version of a key.").json::<api::NewVersion>().gives::<api::AddedKey>(201).refuses(&[409, 422]),
    post("/v1/keys/{name}/disable", Need::Operate, "Stop releasing a key, or one version of it.").may_take::<api::Which>(),
    post("/v1/keys/{name}/enable", Need::Operate, "Release it again.").may_take::<api::Which>(),
    get("/.well-known/veraison/verification", Need::Open, "Veraison: discovery.").other(200, &[veraison::DISCOVERY]).refuses(&[406]),
    post("/challenge-response/v1/newSession", Need::Attest, "Veraison: a challenge.").query::<veraison::NewSession>().other(201, SESSION).refuses(&[400, 406]),
    post("/challenge-response/v1/session/{id}", Need::Attest, "Veraison: submit evidence; the answer is complete.").takes(Takes::Evidence).other(200, SESSION).refuses(&[406, 409, 422]),
    get("/challenge-response/v1/session/{id}", Need::Attest, "Veraison: the session.").other(200, SESSION).refuses(&[406, 409, 422]),
    delete("/challenge-response/v1/session/{id}", Need::Attest, "Veraison: end the session."),
    post("/endorsement-provisioning/v1/submit", Need::Operate, "Veraison: add a signed CoRIM.").takes(Takes::One(&[corim::MEDIA_TYPE])).other(200, &[veraison::PROVISIONING]).refuses(&[406, 409]),
    post("/kbs/v0/auth", Need::Attest, "KBS: a challenge.").takes(Takes::JSON).other(200, JSON),
    post("/kbs/v0/attest", Need::Attest, "KBS: attest.").takes(Takes::JSON).other(200, JSON),
    get("/kbs/v0/resource/{repository}/{kind}/{tag}", Need::Attest, "KBS: fetch a resource as JWE.").other(200, JSON),
    post("/kbs/v0/resource/{repository}/{kind}/{tag}", Need::Operate, "KBS: store a resource.").takes(Takes::Bytes).status(201).refuses(&[409, 422]),
    get("/v1/events", Need::Read, "Who changed what, the oldest first, behind the number `after`.").query::<api::RowsBehind>().gives::<api::Events>(200).refuses(&[400]),
    get("/v1/receipts", Need::Read, "Receipts of releases, the head of their chain, and the head behind which they are kept.").query::<api::RowsOfKey>().gives::<api::Receipts>(200).refuses(&[400]),
];

/// The route of a request. HEAD is GET without the response body, and needs the same right.
#[must_use]
pub fn find(method: &Method, path: &str) -> Option<&'static Route> {
    let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
    ROUTES.iter().find(|route| route.path == path && route.method == method)
}

/// Rejects requests that a page of another site makes a browser send: the browser would add the
/// user's certificate or password.
///
/// # Errors
/// The browser reports that the request comes from another site.
pub fn demand_same_site(headers: &HeaderMap, authority: &str) -> Result<()> {
    let text = |name: &str| {
        headers
            .get(name)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
    };
    if let Some(site) =
        text("sec-fetch-site").filter(|site| site != "same-origin" && site != "none")
    {
        return Err(Kind::Forbidden
            .because(format!("the request comes from another site (Sec-Fetch-Site: {site:?})")));
    }
    let own = format!("https://{}", authority.to_ascii_lowercase());
    if let Some(origin) = text("origin").filter(|origin| *origin != own) {
        return Err(Kind::Forbidden.because(format!(
            "the request comes from another site (Origin: {origin:?}, expected {own:?})"
        )));
    }
    Ok(())
}
