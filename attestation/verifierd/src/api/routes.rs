//! The table of all requests: path and method, right, body. The service rejects a path that is not
//! here, even if a handler exists.

use axum::http::{HeaderMap, Method, header};
use shef_verify::corim;

use super::{media_type, veraison};
use crate::collateral;
use crate::lanes::Lane;
use crate::problem::{Kind, Result};
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
}

const fn route(
    method: &'static str,
    path: &'static str,
    need: Need,
    takes: Takes,
    summary: &'static str,
) -> Route {
    Route { method, path, need, takes, summary }
}

/// Every path of the service.
pub const ROUTES: &[Route] = &[
    route("GET", "/", Need::Read, Takes::Nothing, "The operator's page."),
    route("GET", "/style.css", Need::Open, Takes::Nothing, "Its style."),
    route("GET", "/appraisals/{id}", Need::Read, Takes::Nothing, "One appraisal, to be read."),
    route("GET", "/revoke", Need::Operate, Takes::Nothing, "Asks before something is revoked."),
    route(
        "POST",
        "/revoke",
        Need::Operate,
        Takes::One(&["application/x-www-form-urlencoded"]),
        "Revokes, from the page's form.",
    ),
    route("GET", "/healthz", Need::Open, Takes::Nothing, "The process works."),
    route(
        "GET",
        "/readyz",
        Need::Open,
        Takes::Nothing,
        "The service can answer: database, certificate, keys.",
    ),
    route("GET", "/metrics", Need::Read, Takes::Nothing, "Counters for Prometheus."),
    route(
        "GET",
        "/.well-known/jwks.json",
        Need::Open,
        Takes::Nothing,
        "Keys that verify results and receipts.",
    ),
    route("GET", "/v1/openapi.json", Need::Open, Takes::Nothing, "This description."),
    route(
        "POST",
        "/v1/sessions",
        Need::Attest,
        Takes::JSON,
        "A challenge: nonce, audience and a signed session token. Nothing is stored.",
    ),
    route(
        "POST",
        "/v1/appraise",
        Need::Attest,
        Takes::JSON,
        "Appraise evidence; the nonce is used up. Denied evidence is answered with 422 and every check.",
    ),
    route(
        "POST",
        "/v1/explain",
        Need::Attest,
        Takes::JSON,
        "The same without using the nonce up and without a signed result.",
    ),
    route(
        "POST",
        "/v1/release",
        Need::Release,
        Takes::JSON,
        "Appraise under the key's own policy and release the key in an HPKE box with a receipt.",
    ),
    route("GET", "/v1/trust-anchors", Need::Read, Takes::Nothing, "Manufacturers' roots."),
    route(
        "POST",
        "/v1/trust-anchors",
        Need::Operate,
        Takes::JSON,
        "Register a root for one kind of root of trust.",
    ),
    route("DELETE", "/v1/trust-anchors/{name}", Need::Operate, Takes::Nothing, "Remove a root."),
    route("GET", "/v1/signers", Need::Read, Takes::Nothing, "Who may sign CoRIMs, and for what."),
    route(
        "PUT",
        "/v1/signers/{name}",
        Need::Operate,
        Takes::One(&["application/toml"]),
        "Add or replace a signer of CoRIMs.",
    ),
    route(
        "DELETE",
        "/v1/signers/{name}",
        Need::Operate,
        Takes::Nothing,
        "Remove a signer; its CoRIMs are no longer used.",
    ),
    route("GET", "/v1/corims", Need::Read, Takes::Nothing, "Reference values."),
    route(
        "PUT",
        "/v1/corims/{id}",
        Need::Operate,
        Takes::One(collateral::REFERENCE_TYPES),
        "Add reference values under an id.",
    ),
    route("GET", "/v1/corims/{id}", Need::Read, Takes::Nothing, "Reference values as they came."),
    route("DELETE", "/v1/corims/{id}", Need::Operate, Takes::Nothing, "Remove reference values."),
    route(
        "POST",
        "/v1/corims/{id}/activate",
        Need::Operate,
        Takes::Nothing,
        "Count these reference values again.",
    ),
    route(
        "POST",
        "/v1/corims/{id}/deactivate",
        Need::Operate,
        Takes::Nothing,
        "Deactivate these reference values.",
    ),
    route("GET", "/v1/policies", Need::Read, Takes::Nothing, "Policies and their versions."),
    route(
        "PUT",
        "/v1/policies/{name}",
        Need::Operate,
        Takes::One(collateral::POLICY_TYPES),
        "Add the next version of a policy; versions never change.",
    ),
    route(
        "GET",
        "/v1/policies/{name}",
        Need::Read,
        Takes::Nothing,
        "The text of a policy, `name` or `name@version`.",
    ),
    route(
        "DELETE",
        "/v1/policies/{name}",
        Need::Operate,
        Takes::Nothing,
        "Remove a policy that no key names, or an older version of it, `name@version`.",
    ),
    route(
        "POST",
        "/v1/policies/dry-run",
        Need::Operate,
        Takes::One(collateral::POLICY_TYPES),
        "Hold recorded evidence against a policy: what would it deny?",
    ),
    route("GET", "/v1/revocations", Need::Read, Takes::Nothing, "Revocations."),
    route(
        "POST",
        "/v1/revocations",
        Need::Operate,
        Takes::JSON,
        "Revoke a device, kernel, shell, image, vendor, certificate or authority.",
    ),
    route(
        "DELETE",
        "/v1/revocations/{kind}/{value}",
        Need::Operate,
        Takes::Nothing,
        "Take a revocation back.",
    ),
    route(
        "GET",
        "/v1/devices",
        Need::Read,
        Takes::Nothing,
        "Devices with their last appraisal; `stale` when it is too long ago.",
    ),
    route("GET", "/v1/devices/{ueid}", Need::Read, Takes::Nothing, "One device."),
    route(
        "DELETE",
        "/v1/devices/{ueid}",
        Need::Operate,
        Takes::Nothing,
        "Forget a device that was never accepted, or that is revoked.",
    ),
    route("GET", "/v1/appraisals", Need::Read, Takes::Nothing, "Recent appraisals."),
    route(
        "GET",
        "/v1/appraisals/{id}",
        Need::Read,
        Takes::Nothing,
        "One appraisal with every check.",
    ),
    route("GET", "/v1/keys", Need::Read, Takes::Nothing, "Keys, never their secrets."),
    route(
        "PUT",
        "/v1/keys/{name}",
        Need::Operate,
        Takes::JSON,
        "Add a key: layer, policy, secret or length to generate, limits, window.",
    ),
    route("GET", "/v1/keys/{name}", Need::Read, Takes::Nothing, "One key with its versions."),
    route(
        "DELETE",
        "/v1/keys/{name}",
        Need::Operate,
        Takes::Nothing,
        "Delete a key, or an older version of it, with the boxes of its releases. Receipts stay.",
    ),
    route(
        "POST",
        "/v1/keys/{name}/rotate",
        Need::Operate,
        Takes::JSON,
        "Add the next version of a key.",
    ),
    route(
        "POST",
        "/v1/keys/{name}/disable",
        Need::Operate,
        Takes::Nothing,
        "Stop releasing a key, or one version of it.",
    ),
    route("POST", "/v1/keys/{name}/enable", Need::Operate, Takes::Nothing, "Release it again."),
    route(
        "GET",
        "/.well-known/veraison/verification",
        Need::Open,
        Takes::Nothing,
        "Veraison: discovery.",
    ),
    route(
        "POST",
        "/challenge-response/v1/newSession",
        Need::Attest,
        Takes::Nothing,
        "Veraison: a challenge.",
    ),
    route(
        "POST",
        "/challenge-response/v1/session/{id}",
        Need::Attest,
        Takes::Evidence,
        "Veraison: submit evidence; the answer is complete.",
    ),
    route(
        "GET",
        "/challenge-response/v1/session/{id}",
        Need::Attest,
        Takes::Nothing,
        "Veraison: the session.",
    ),
    route(
        "DELETE",
        "/challenge-response/v1/session/{id}",
        Need::Attest,
        Takes::Nothing,
        "Veraison: end the session.",
    ),
    route(
        "POST",
        "/endorsement-provisioning/v1/submit",
        Need::Operate,
        Takes::One(&[corim::MEDIA_TYPE]),
        "Veraison: add a signed CoRIM.",
    ),
    route("POST", "/kbs/v0/auth", Need::Attest, Takes::JSON, "KBS: a challenge."),
    route("POST", "/kbs/v0/attest", Need::Attest, Takes::JSON, "KBS: attest."),
    route(
        "GET",
        "/kbs/v0/resource/{repository}/{kind}/{tag}",
        Need::Attest,
        Takes::Nothing,
        "KBS: fetch a resource as JWE.",
    ),
    route(
        "POST",
        "/kbs/v0/resource/{repository}/{kind}/{tag}",
        Need::Operate,
        Takes::Bytes,
        "KBS: store a resource.",
    ),
    route(
        "GET",
        "/v1/events",
        Need::Read,
        Takes::Nothing,
        "Who changed what, the oldest first, behind the number `after`.",
    ),
    route(
        "GET",
        "/v1/receipts",
        Need::Read,
        Takes::Nothing,
        "Receipts of releases, the head of their chain, and the head behind which they are kept.",
    ),
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
