//! The API description (OpenAPI 3.1): the routes of the table that admits requests, with their
//! inputs and outputs.

use serde_json::{Map, Value, json};

use super::routes::{ROUTES, Route, Takes};
use super::veraison;
use crate::role::Need;

/// Type of a member of an object or of a parameter.
#[derive(Clone, Copy)]
enum Is {
    Text,
    /// A text, or null.
    TextOrNull,
    Number,
    /// A number, or null.
    NumberOrNull,
    Flag,
    /// Texts.
    Texts,
    /// An object of these members.
    Object(&'static [Member]),
    /// A list of objects of these members.
    List(&'static [Member]),
    /// Of a form that is described elsewhere, or free.
    Anything,
}

/// A member of an object or a parameter: name, type, meaning. A `?` after the name marks it as
/// optional.
type Member = (&'static str, Is, &'static str);

/// The response of a route.
enum Gives {
    /// Nothing but the status.
    Nothing(u16),
    /// An object.
    Json(u16, &'static [Member]),
    /// An object of another protocol, or of this media type.
    Other(u16, &'static [&'static str]),
}

/// Inputs and outputs of a route, beyond those in the table.
struct Describe {
    query: &'static [Member],
    body: &'static [Member],
    gives: Gives,
    /// Error statuses beyond those that every route of its kind has.
    refuses: &'static [u16],
}

const fn gives(gives: Gives) -> Describe {
    Describe { query: &[], body: &[], gives, refuses: &[] }
}

impl Describe {
    const fn query(self, query: &'static [Member]) -> Self {
        Self { query, ..self }
    }

    const fn body(self, body: &'static [Member]) -> Self {
        Self { body, ..self }
    }

    const fn refuses(self, refuses: &'static [u16]) -> Self {
        Self { refuses, ..self }
    }
}

use Is::{Anything, Flag, List, Number, NumberOrNull, Object, Text, TextOrNull, Texts};

const LIMIT: Member = ("limit?", Number, "most rows of a page, 1 to 1000; 100 when not given");
const AFTER_NAME: Member = ("after?", Text, "rows behind this one: `next` of the page before");
const AFTER_NUMBER: Member =
    ("after?", Number, "rows behind this number: `next` of the page before");
const NEXT: Member = ("next", TextOrNull, "where the next page begins; null on the last one");
const NEXT_NUMBER: Member =
    ("next", NumberOrNull, "where the next page begins; null on the last one");
const GENERATION: Member = ("generation", Number, "raised with every change of the collateral");
const CREATED: Member = ("created", Number, "seconds since 1970");
const NAME: Member = ("name", Text, "name");
const SHA256: Member = ("sha256", Text, "SHA-256 in hexadecimal");
const HEAD: &[Member] = &[
    ("seq", Number, "number of a receipt; 0 before the first"),
    ("digest", Text, "its SHA-256 in hexadecimal"),
];
const KEPT: &[Member] = &[
    ("seq", Number, "the last receipt that was forgotten; 0 for none"),
    ("digest", Text, "its SHA-256 in hexadecimal"),
    ("statement?", Text, "the service's signature under that, base64url"),
];
const REVOCATION: &[Member] = &[
    ("kind", Text, "device, serial, certificate, authority, kernel, shell, image or vendor"),
    ("value", Text, "hexadecimal; answered in lower case without separators and leading zeros"),
    ("reason", Text, "1 to 256 characters"),
];
const KNOWN: Member =
    ("known", Flag, "whether anchors, reference values or the newest 256 appraisals hold it");
const MADE_REVOCATION: &[Member] = &[REVOCATION[0], REVOCATION[1], KNOWN];
const KEPT_REVOCATION: &[Member] = &[REVOCATION[0], REVOCATION[1], REVOCATION[2], CREATED];
const DEVICE: &[Member] = &[
    ("ueid", Text, "identity, hexadecimal"),
    ("target", Text, "type of device"),
    ("kernel_svn", Number, "security version of its kernel in its newest genuine evidence"),
    ("highest_svn", Number, "the highest one that a known kernel of it has shown"),
    ("verdict", Text, "accepted or denied"),
    ("first_seen", Number, "seconds since 1970"),
    ("last_seen", Number, "seconds since 1970"),
    ("last_appraised", NumberOrNull, "when it was accepted last, seconds since 1970"),
    ("stale", Flag, "whether that is longer ago than retention.stale_seconds"),
];
const APPRAISAL: &[Member] = &[
    ("id", Text, "hexadecimal"),
    ("time", Number, "seconds since 1970"),
    ("layer", Text, "kernel or shield"),
    ("verdict", Text, "accepted or denied"),
    ("code", Text, "of the first failed check; empty for none"),
    ("policy", Text, "`name@version`"),
    ("ueid", Text, "identity in the evidence, hexadecimal"),
    ("evidence_sha256", Text, "SHA-256 of the evidence; empty in records of older versions"),
];
const CHECKED: Member = ("appraisal", Anything, "every check with expected and actual");
const CLAIMS: Member =
    ("claims", Anything, "the claims in words; null where the evidence cannot be read");
const WHOLE_APPRAISAL: &[Member] = &[
    APPRAISAL[0],
    APPRAISAL[1],
    APPRAISAL[2],
    APPRAISAL[3],
    APPRAISAL[4],
    APPRAISAL[5],
    APPRAISAL[6],
    APPRAISAL[7],
    CHECKED,
    CLAIMS,
];
const KEY: &[Member] = &[
    NAME,
    ("layer", Text, "kernel or shield"),
    ("to", Text, "evidence, or host: any key of whoever stands beside the card"),
    ("disabled", Flag, "no version is released any more"),
    ("version", Number, "the newest one"),
    ("version_disabled", Flag, "that version is not released any more"),
];
const KEY_VERSION: &[Member] = &[
    ("version", Number, "from 1"),
    ("policy", Text, "`name@version`, frozen"),
    ("max_releases", Number, "0 for any number"),
    ("released", Number, "so far"),
    ("not_before", Number, "seconds since 1970"),
    ("not_after", Number, "seconds since 1970; 0 for none"),
    ("disabled", Flag, "not released any more"),
    CREATED,
];
const WHOLE_KEY: &[Member] = &[
    KEY[0],
    KEY[1],
    KEY[2],
    KEY[3],
    KEY[4],
    KEY[5],
    ("versions", List(KEY_VERSION), "newest first"),
];
const ADDED_KEY: &[Member] = &[
    NAME,
    ("version", Number, "its number"),
    ("layer", Text, "kernel or shield"),
    ("policy", Text, "`name@version`"),
];
const EVENT: &[Member] = &[
    ("seq", Number, "from 1, without gaps"),
    ("time", Number, "seconds since 1970"),
    ("who", Text, "name of the identity, or service"),
    ("role", Text, "its role"),
    ("action", Text, "what was done, or refused"),
    ("what", Text, "what it was about"),
    ("digest", Text, "SHA-256 over the event before and this one, hexadecimal"),
];
const RECEIPT: &[Member] = &[
    ("seq", Number, "from 1"),
    ("time", Number, "seconds since 1970"),
    ("key", Text, "name of the key"),
    ("receipt", Text, "base64url"),
];
const ANCHOR: &[Member] = &[
    NAME,
    ("kind", Text, "shef-boot, board, provider or simulated"),
    ("debug", Flag, "for devices in debug mode"),
    SHA256,
    ("authority", Text, "SHA-256 of its public key: what revokes it"),
    ("certificate", Text, "DER, base64url"),
    CREATED,
];
const NEW_ANCHOR: &[Member] = &[
    NAME,
    ("kind", Text, "shef-boot, board, provider or simulated"),
    ("debug?", Flag, "for devices in debug mode"),
    ("certificate", Text, "DER in base64, or PEM"),
];
const CORIM: &[Member] = &[
    ("id", Text, "under which it is stored"),
    ("media_type", Text, "of the content"),
    ("active", Flag, "whether it counts"),
    SHA256,
    ("bytes", Number, "of the content"),
    CREATED,
];
const COUNTS: &[Member] = &[
    ("kernels", Number, "how many"),
    ("shells", Number, "how many"),
    ("images", Number, "how many"),
];
const POLICY: &[Member] =
    &[NAME, ("version", Number, "from 1"), ("media_type", Text, "of the text"), SHA256, CREATED];
const CHANGE: &[Member] = &[
    ("appraisal_id", Text, "hexadecimal"),
    ("ueid", Text, "hexadecimal"),
    ("time", Number, "seconds since 1970"),
    ("was", Text, "accepted or denied"),
    ("would_be", Text, "accepted or denied"),
    ("failed", Anything, "checks that failed"),
];
const VERSION: &[Member] = &[
    ("policy", Text, "`name` or `name@version`; frozen with the version of the key"),
    ("secret?", Text, "base64url, in a string without escapes; not with generate or image"),
    ("generate?", Number, "length of a random secret, 16 to 64"),
    ("image?", Object(IMAGE), "an image key"),
    ("max_releases?", Number, "0 for any number"),
    ("not_before?", Number, "seconds since 1970"),
    ("not_after?", Number, "seconds since 1970; 0 for none"),
];
const NEW_KEY: &[Member] = &[
    ("layer", Text, "kernel or shield"),
    ("to?", Text, "evidence, or host for a resource of the KBS"),
    VERSION[0],
    VERSION[1],
    VERSION[2],
    VERSION[3],
    VERSION[4],
    VERSION[5],
    VERSION[6],
];
const IMAGE: &[Member] = &[
    ("key", Text, "base64url, 32 bytes"),
    ("min_svn", Number, "least version of the image"),
    ("vendor", Text, "base64url point"),
];
const WHICH: &[Member] = &[("version?", Number, "all when not given")];
const SUBMISSION: &[Member] = &[
    ("evidence", Text, "base64"),
    ("session?", Text, "from /v1/sessions"),
    ("nonce?", Text, "base64; a relying party's own nonce, instead of session"),
    ("layer?", Text, "kernel or shield; with nonce"),
    ("policy?", Text, "`name`, or an operator's `name@version`; `default` when not given"),
    (
        "aud?",
        Flag,
        "false: the result has no `aud`, for parsers that refuse it, and `shef_audience` in its place",
    ),
];
const JWK: &[Member] = &[
    ("kty", Text, "EC"),
    ("crv", Text, "P-256"),
    ("alg", Text, "ES256"),
    ("use", Text, "sig"),
    ("kid", Text, "RFC 7638 thumbprint"),
    ("x", Text, "base64url"),
    ("y", Text, "base64url"),
];

/// Inputs and outputs of a route.
#[expect(clippy::too_many_lines, reason = "a table")]
fn describe(route: &Route) -> Option<Describe> {
    use Gives::{Json, Nothing, Other};
    const HTML: &[&str] = &["text/html"];
    Some(match (route.method, route.path) {
        ("GET", "/") => gives(Other(200, HTML)).refuses(&[400]).query(&[
            ("devices?", Text, "devices behind this one"),
            ("appraisals?", Text, "appraisals behind this one"),
            ("keys?", Text, "keys behind this one"),
            ("receipts?", Number, "receipts up to this number"),
        ]),
        ("GET", "/style.css") => gives(Other(200, &["text/css"])),
        ("GET", "/appraisals/{id}") => gives(Other(200, HTML)),
        ("GET", "/revoke") => gives(Other(200, HTML)).refuses(&[400, 422]).query(&[
            ("kind", Text, "as in /v1/revocations"),
            ("value", Text, "as in /v1/revocations"),
        ]),
        ("POST", "/revoke") => gives(Nothing(303)).refuses(&[409, 422]),
        ("GET", "/healthz") => gives(Json(200, &[("status", Text, "ok")])),
        ("GET", "/readyz") => gives(Json(
            200,
            &[
                ("status", Text, "ready"),
                ("version", Text, "of the program"),
                ("certificate_ends", Number, "seconds since 1970"),
                ("log", Text, "`written`; `lost` if lines of the log are lost; `none`"),
                (
                    "identity_providers",
                    List(&[
                        ("issuer", Text, "of [[oidc]]"),
                        (
                            "keys_age",
                            NumberOrNull,
                            "seconds since its keys were fetched; null without keys",
                        ),
                    ]),
                    "whose tokens identify callers",
                ),
            ],
        )),
        ("GET", "/metrics") => gives(Other(200, &["text/plain"])),
        ("GET", "/.well-known/jwks.json") => {
            gives(Json(200, &[("keys", List(JWK), "the present one first")]))
        }
        ("GET", "/v1/openapi.json") => gives(Other(200, &["application/json"])),
        ("POST", "/v1/sessions") => gives(Json(
            201,
            &[
                ("session", Text, "signed token; nothing is stored"),
                ("nonce", Text, "base64, 48 bytes"),
                ("audience", Text, "what evidence must name"),
                ("layer", Text, "kernel or shield"),
                ("expires", Number, "seconds since 1970"),
                ("accept", Texts, "media types of evidence"),
            ],
        ))
        .body(&[
            ("layer", Text, "kernel or shield"),
            ("recipient?", Text, "base64url point: the owner's one-time key that data keys go to"),
        ]),
        ("POST", "/v1/appraise") => gives(Json(
            200,
            &[
                ("verdict", Text, "accepted"),
                ("result", Text, "EAR as JWT"),
                ("appraisal_id", Text, "hexadecimal"),
                ("policy", Text, "`name@version`"),
                ("policy_sha256", Text, "SHA-256 of its text, hexadecimal"),
                CHECKED,
            ],
        ))
        .body(SUBMISSION)
        .refuses(&[404, 406, 409, 410, 422]),
        ("POST", "/v1/explain") => gives(Json(
            200,
            &[
                ("would_be", Text, "accepted or denied"),
                ("nonce_used", Flag, "the challenge was used up"),
                ("policy", Text, "`name@version`"),
                CLAIMS,
                ("revocations", List(KEPT_REVOCATION), "those that this evidence falls under"),
                CHECKED,
            ],
        ))
        .body(SUBMISSION)
        .refuses(&[404, 410, 422]),
        ("POST", "/v1/release") => gives(Json(
            200,
            &[
                ("key", Text, "name"),
                ("version", Number, "of the key"),
                ("box", Text, "base64url; key-release.md"),
                ("receipt", Text, "base64url"),
                ("head", Object(HEAD), "of the chain of receipts: keep it"),
                ("expires", Number, "until when the same request gives the same bytes"),
            ],
        ))
        .body(&[
            ("key", Text, "name"),
            ("version?", Number, "newest when not given"),
            ("session", Text, "from /v1/sessions"),
            ("evidence", Text, "base64"),
        ])
        .refuses(&[404, 409, 410, 422]),
        ("GET", "/v1/trust-anchors") => {
            gives(Json(200, &[GENERATION, ("trust_anchors", List(ANCHOR), "all of them")]))
        }
        ("POST", "/v1/trust-anchors") => {
            gives(Json(201, &[NAME, SHA256])).body(NEW_ANCHOR).refuses(&[409, 422])
        }
        ("GET", "/v1/signers") => gives(Json(
            200,
            &[
                GENERATION,
                (
                    "signers",
                    List(&[NAME, ("signer", Text, "its entry in TOML"), CREATED]),
                    "all of them",
                ),
            ],
        )),
        ("PUT", "/v1/signers/{name}") => gives(Json(201, &[NAME])).refuses(&[409, 422]),
        ("GET", "/v1/corims") => {
            gives(Json(200, &[GENERATION, ("corims", List(CORIM), "all of them")]))
        }
        ("PUT", "/v1/corims/{id}") => gives(Json(
            201,
            &[
                ("id", Text, "as given"),
                SHA256,
                ("reference_values", Object(COUNTS), "that it holds"),
            ],
        ))
        .refuses(&[409, 422]),
        ("GET", "/v1/corims/{id}") => gives(Other(200, crate::collateral::REFERENCE_TYPES)),
        ("POST", "/v1/corims/{id}/activate") => gives(Nothing(204)).refuses(&[422]),
        ("POST", "/v1/corims/{id}/deactivate")
        | (
            "DELETE",
            "/v1/trust-anchors/{name}"
            | "/v1/signers/{name}"
            | "/v1/corims/{id}"
            | "/v1/revocations/{kind}/{value}",
        ) => gives(Nothing(204)),
        ("DELETE", "/v1/policies/{name}") => gives(Nothing(204)).refuses(&[409]),
        ("DELETE", "/v1/keys/{name}") => gives(Nothing(204))
            .query(&[("version?", Number, "only this version; not the newest")])
            .refuses(&[400, 409]),
        ("GET", "/v1/policies") => {
            gives(Json(200, &[GENERATION, ("policies", List(POLICY), "all versions")]))
        }
        ("PUT", "/v1/policies/{name}") => gives(Json(
            201,
            &[
                NAME,
                ("version", Number, "its number; that of the newest where the text is the same"),
                SHA256,
            ],
        ))
        .refuses(&[409, 422]),
        ("GET", "/v1/policies/{name}") => {
            gives(Other(200, crate::collateral::POLICY_TYPES)).refuses(&[422])
        }
        ("POST", "/v1/policies/dry-run") => gives(Json(
            200,
            &[
                ("held", Number, "records that were held against it"),
                ("accepted", Number, "of these"),
                ("denied", Number, "of these"),
                ("changes", List(CHANGE), "those whose verdict would be another"),
            ],
        ))
        .query(&[LIMIT])
        .refuses(&[422, 503]),
        ("GET", "/v1/revocations") => {
            gives(Json(200, &[GENERATION, ("revocations", List(KEPT_REVOCATION), "all of them")]))
        }
        ("POST", "/v1/revocations") => {
            gives(Json(201, MADE_REVOCATION)).body(REVOCATION).refuses(&[409, 422])
        }
        ("GET", "/v1/devices") => gives(Json(200, &[("devices", List(DEVICE), "by ueid"), NEXT]))
            .query(&[AFTER_NAME, LIMIT])
            .refuses(&[400]),
        ("GET", "/v1/devices/{ueid}") => gives(Json(200, DEVICE)),
        ("DELETE", "/v1/devices/{ueid}") => gives(Nothing(204)).refuses(&[409]),
        ("GET", "/v1/appraisals") => {
            gives(Json(200, &[("appraisals", List(APPRAISAL), "newest first"), NEXT]))
                .query(&[("before?", Text, "a time, or `next` of the page before"), LIMIT])
                .refuses(&[400])
        }
        ("GET", "/v1/appraisals/{id}") => gives(Json(200, WHOLE_APPRAISAL)),
        ("GET", "/v1/keys") => gives(Json(200, &[("keys", List(KEY), "by name"), NEXT]))
            .query(&[AFTER_NAME, LIMIT])
            .refuses(&[400]),
        ("PUT", "/v1/keys/{name}") => {
            gives(Json(201, ADDED_KEY)).body(NEW_KEY).refuses(&[409, 422])
        }
        ("GET", "/v1/keys/{name}") => gives(Json(200, WHOLE_KEY)),
        ("POST", "/v1/keys/{name}/rotate") => {
            gives(Json(201, ADDED_KEY)).body(VERSION).refuses(&[409, 422])
        }
        ("POST", "/v1/keys/{name}/disable" | "/v1/keys/{name}/enable") => {
            gives(Nothing(204)).body(WHICH)
        }
        ("GET", "/v1/events") => {
            gives(Json(200, &[("events", List(EVENT), "oldest first"), NEXT_NUMBER]))
                .query(&[AFTER_NUMBER, LIMIT])
                .refuses(&[400])
        }
        ("GET", "/v1/receipts") => gives(Json(
            200,
            &[
                ("tenant", Text, "whose"),
                ("receipts", List(RECEIPT), "oldest first"),
                ("head", Object(HEAD), "the end of the chain"),
                ("kept", Object(KEPT), "behind which receipts are kept"),
                NEXT_NUMBER,
            ],
        ))
        .query(&[("key?", Text, "of this key only"), AFTER_NUMBER, LIMIT])
        .refuses(&[400]),
        // The documents of other services' protocols describe their own types.
        ("GET", "/.well-known/veraison/verification") => {
            gives(Other(200, &["application/vnd.veraison.discovery+json"])).refuses(&[406])
        }
        ("POST", "/challenge-response/v1/newSession") => gives(Other(201, &[veraison::SESSION]))
            .query(&[
                ("nonce?", Text, "base64; the client's own, which is no challenge"),
                ("nonceSize?", Number, "bytes of a drawn one"),
            ])
            .refuses(&[400, 406]),
        ("POST" | "GET", "/challenge-response/v1/session/{id}") => {
            gives(Other(200, &[veraison::SESSION])).refuses(&[406, 409, 422])
        }
        ("DELETE", "/challenge-response/v1/session/{id}") => gives(Nothing(204)),
        ("POST", "/endorsement-provisioning/v1/submit") => {
            gives(Other(200, &["application/vnd.veraison.provisioning-session+json"]))
                .refuses(&[406, 409])
        }
        ("POST", "/kbs/v0/auth" | "/kbs/v0/attest") => gives(Other(200, &["application/json"])),
        ("GET", "/kbs/v0/resource/{repository}/{kind}/{tag}") => {
            gives(Other(200, &["application/json"]))
        }
        ("POST", "/kbs/v0/resource/{repository}/{kind}/{tag}") => {
            gives(Nothing(201)).refuses(&[409, 422])
        }
        _ => return None,
    })
}

fn schema(is: Is) -> Value {
    match is {
        Text => json!({"type": "string"}),
        TextOrNull => json!({"type": ["string", "null"]}),
        Number => json!({"type": "integer"}),
        NumberOrNull => json!({"type": ["integer", "null"]}),
        Flag => json!({"type": "boolean"}),
        Texts => json!({"type": "array", "items": {"type": "string"}}),
        Object(members) => object(members),
        List(members) => json!({"type": "array", "items": object(members)}),
        Anything => json!({}),
    }
}

fn object(members: &[Member]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, is, text) in members {
        let plain = name.trim_end_matches('?');
        if plain == *name {
            required.push(plain);
        }
        let mut member = schema(*is);
        member["description"] = json!(text);
        properties.insert(plain.to_owned(), member);
    }
    json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
}

fn parameters(route: &Route, query: &[Member]) -> Vec<Value> {
    let in_path =
        route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path.map(
        |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}),
    );
    let in_query = query.iter().map(|(name, is, text)| {
        let plain = name.trim_end_matches('?');
        json!({"name": plain, "in": "query", "required": plain == *name, "description": text, "schema": schema(*is)})
    });
    in_path.chain(in_query).collect()
}

fn body(route: &Route, members: &[Member]) -> Option<Value> {
    let bytes = || json!({"schema": {"type": "string", "format": "binary"}});
    let content: Map<String, Value> = match route.takes {
        _ if !members.is_empty() => {
            Map::from_iter([("application/json".to_owned(), json!({"schema": object(members)}))])
        }
        Takes::Nothing => return None,
        Takes::One(types) => types.iter().map(|media| ((*media).to_owned(), bytes())).collect(),
        Takes::Evidence => {
            veraison::evidence_types().into_iter().map(|media| (media, bytes())).collect()
        }
        Takes::Bytes => Map::from_iter([("application/octet-stream".to_owned(), bytes())]),
    };
    Some(json!({"required": route.takes != Takes::Nothing, "content": content}))
}

/// Error statuses of a route, each with a problem document.
fn refusals(route: &Route, own: &[u16]) -> Vec<u16> {
    // Any route can meet a fault, too many requests or an unreachable store.
    let mut all = vec![500, 503];
    if route.need != Need::Open {
        all.extend([401, 403, 429]);
    }
    if route.path.contains('{') {
        all.extend([400, 404, 422]);
    }
    if route.changes() {
        all.extend([400, 403, 408, 413, 415]);
    }
    all.extend(own);
    all.sort_unstable();
    all.dedup();
    all
}

/// The API description.
///
/// # Panics
/// Panics if a route has no description; a test of this crate rules that out.
#[must_use]
pub fn openapi() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let problem = || {
        json!({
            "description": "What went wrong.",
            "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
        })
    };
    for route in ROUTES {
        let described = describe(route).expect("every route is described");
        let mut responses: Map<String, Value> = refusals(route, described.refuses)
            .into_iter()
            .map(|status| (status.to_string(), problem()))
            .collect();
        let (status, answer) = match described.gives {
            Gives::Nothing(status) => (status, json!({"description": "Done."})),
            Gives::Json(status, members) => {
                let media = if route.path.ends_with("jwks.json") {
                    "application/jwk-set+json"
                } else {
                    "application/json"
                };
                (
                    status,
                    json!({"description": "Done.", "content": {media: {"schema": object(members)}}}),
                )
            }
            Gives::Other(status, types) => {
                let content: Map<String, Value> =
                    types.iter().map(|media| ((*media).to_owned(), json!({}))).collect();
                (status, json!({"description": "Done.", "content": content}))
            }
        };
        responses.insert(status.to_string(), answer);
        let mut operation = json!({
            "summary": route.summary,
            "operationId": operation_id(route.method, route.path),
            "responses": responses,
        });
        let parameters = parameters(route, described.query);
        if !parameters.is_empty() {
            operation["parameters"] = Value::Array(parameters);
        }
        if let Some(body) = body(route, described.body) {
            operation["requestBody"] = body;
        }
        if route.need == Need::Open {
            operation["security"] = json!([]);
        }
        let entry = paths.entry(route.path).or_insert_with(|| json!({}));
        entry[route.method.to_ascii_lowercase()] = operation;
    }
    json!({
        "openapi": "3.1.0",
        "info": {"title": "shef-verifierd", "version": env!("CARGO_PKG_VERSION"), "license": {"name": "Apache-2.0 OR MIT"}},
        "security": [{"bearer": []}, {"mutualTLS": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}, "mutualTLS": {"type": "mutualTLS"}},
            "schemas": {"Problem": {
                "type": "object",
                "required": ["type", "title", "status", "code", "detail"],
                "properties": {
                    "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
                    "code": {"type": "string", "pattern": "^SHEF-[A-Z]{3}-[0-9]{3}$"}, "detail": {"type": "string"},
                },
            }},
        },
    })
}

fn operation_id(method: &str, path: &str) -> String {
    let words = path
        .split(['/', '.', '-'])
        .map(|part| part.trim_matches(['{', '}']))
        .filter(|part| !part.is_empty());
    std::iter::once(method.to_ascii_lowercase())
        .chain(words.map(str::to_owned))
        .collect::<Vec<_>>()
        .join("_")
}
