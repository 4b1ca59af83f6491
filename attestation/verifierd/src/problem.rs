//! Everything that can go wrong, as one type: an error of start-up and an answer in `application/problem+json` (RFC 9457).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use shef_proto::code::Code;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = ($code:literal, $status:literal, $summary:literal, $help:literal),)*) => {
        /// What went wrong; each has a stable code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Kind {
            $($(#[$doc])* $variant,)*
        }

        impl Kind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Stable code.
            #[must_use]
            pub fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// Status of the answer; 0 for what happens before there are answers.
            #[must_use]
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// One line.
            #[must_use]
            pub fn summary(self) -> &'static str {
                match self { $(Self::$variant => $summary,)* }
            }
        }

        /// All codes of this crate.
        pub const CODES: &[Code] = &[$(Code::new($code, $summary, $help),)*];
    };
}

kinds! {
    /// The configuration file.
    Config = ("SHEF-SVC-001", 0, "configuration is not valid",
        "The text names line and column. `shef-verifierd check --config FILE` checks a file without starting."),
    /// A file of keys or certificates.
    Material = ("SHEF-SVC-002", 0, "key or certificate file cannot be used",
        "A file that the configuration names is missing, unreadable, not PEM, expired, or does not fit its key."),
    /// A secret that others may read.
    Permissions = ("SHEF-SVC-003", 0, "secret file is open to others",
        "A file of secrets must belong to the service alone: chmod 600 FILE."),
    /// The database does not open.
    Store = ("SHEF-SVC-004", 503, "store does not answer",
        "The database cannot be reached or refuses. Nothing was released; the same request can be sent again."),
    /// A database of a newer program.
    NewerStore = ("SHEF-SVC-005", 0, "database was made by a newer version",
        "This program does not know the database's version and leaves it alone. Start the newer shef-verifierd, or restore a backup of this version."),
    /// Another KEK than the one the keys are sealed under.
    WrongKek = ("SHEF-SVC-006", 0, "key encryption key is not the one of this database",
        "The keys in the database are sealed under another KEK. Give the KEK file that belongs to it; without it the keys are lost."),
    /// The address.
    Listen = ("SHEF-SVC-007", 0, "address cannot be listened on",
        "Another program listens there, or the address is not one of this machine. Change `listen`."),
    /// `init` where something is already.
    Exists = ("SHEF-SVC-008", 0, "folder holds a set-up already",
        "init never overwrites keys. Choose an empty folder."),
    /// Backup or restore.
    Backup = ("SHEF-SVC-009", 0, "backup cannot be made or restored",
        "The text says which file. restore never overwrites a database: move the old one away first."),
    /// A chain of receipts that does not hold.
    Audit = ("SHEF-SVC-010", 0, "receipts do not form the chain",
        "A receipt was changed, left out or put elsewhere, or the end is missing. The text names the first one that does not fit."),

    /// No such path or thing.
    NotFound = ("SHEF-SVC-020", 404, "not found", "There is no such resource for this tenant."),
    /// Wrong method.
    Method = ("SHEF-SVC-021", 405, "method not allowed", "The path exists, but not for this method; the header Allow lists those it takes."),
    /// Body over the limit.
    TooLarge = ("SHEF-SVC-022", 413, "body is too large", "Requests are at most 64 KiB, CoRIMs 1 MiB, unless the configuration says otherwise."),
    /// Body too slow.
    Slow = ("SHEF-SVC-023", 408, "request did not arrive in time", "The whole body must arrive within limits.body_seconds."),
    /// Content type.
    MediaType = ("SHEF-SVC-024", 415, "content type is not accepted", "The header Accept of the answer lists what this path takes."),
    /// Accept header.
    NotAcceptable = ("SHEF-SVC-025", 406, "no acceptable form of answer", "The header Accept of the request allows none of the forms that this path answers in."),
    /// Malformed request.
    Malformed = ("SHEF-SVC-026", 400, "request is malformed", "The text says which part: JSON of the documented form is expected; unknown members are refused."),
    /// Who is asking?
    Unauthenticated = ("SHEF-SVC-027", 401, "not authenticated", "Show a client certificate of this service's CA, or a bearer token of the configuration."),
    /// Not theirs.
    Forbidden = ("SHEF-SVC-028", 403, "role does not allow this", "The identity is known, but its role is too small for this request."),
    /// Too many requests of a tenant.
    RateLimited = ("SHEF-SVC-029", 429, "too many requests", "The tenant's rate is used up; Retry-After says when to come again."),
    /// Too many at once.
    Busy = ("SHEF-SVC-030", 503, "too many requests at once", "The service works on as many requests as it may; Retry-After says when to come again."),
    /// A fault of the service.
    Internal = ("SHEF-SVC-031", 500, "fault in the service", "Not the caller's fault. The log has the details."),

    /// Session token not ours.
    Session = ("SHEF-SVC-040", 400, "session is not valid", "The session token was changed, belongs to another tenant, or was made under another KEK. Ask for a new session."),
    /// Session token too old.
    SessionExpired = ("SHEF-SVC-041", 410, "session has expired", "Evidence came too late. Ask for a new session."),
    /// The nonce was used.
    NonceUsed = ("SHEF-SVC-042", 409, "nonce has been used", "A nonce is taken once: this evidence was submitted before. Ask for a new session and new evidence."),
    /// The appraisal says no.
    Denied = ("SHEF-SVC-043", 422, "evidence is denied", "`appraisal.checks` lists every check with what was expected and what is. `shef explain CODE` explains each."),

    /// Policy that cannot be used.
    Policy = ("SHEF-SVC-050", 422, "policy is not valid", "The text names the place. Nothing was stored."),
    /// Trust anchor that cannot be used.
    Anchor = ("SHEF-SVC-051", 422, "trust anchor is not valid", "A trust anchor is a self-signed P-256 root in DER (base64url) or PEM, with the kind of root of trust that it stands for."),
    /// Reference values that cannot be used.
    Corim = ("SHEF-SVC-052", 422, "reference values are not valid", "The CoRIM, or the reference values, are not of the form, or their signer is not one of the tenant's."),
    /// Revocation that cannot be used.
    Revocation = ("SHEF-SVC-053", 422, "revocation is not valid", "kind is device (ueid), serial, certificate (SHA-256 of its DER), authority (SHA-256 of its public key), kernel, shell, image or vendor (digests); values are lower-case hexadecimal."),
    /// A name that is taken.
    Conflict = ("SHEF-SVC-054", 409, "exists already with other content", "Names and versions are never overwritten. Choose another name, or rotate."),
    /// Malformed name.
    Name = ("SHEF-SVC-055", 422, "name is not valid", "Names are 1 to 64 characters: lower-case letters, digits, '-', '_' and '.', beginning with a letter or digit."),

    /// Key description.
    Key = ("SHEF-SVC-060", 422, "key is not valid", "The text says which member. A key has a layer, a policy and either a secret or the length of one to generate."),
    /// Disabled.
    KeyDisabled = ("SHEF-SVC-061", 409, "key is disabled", "The key, or this version of it, is disabled and is not released."),
    /// Outside its window.
    KeyWindow = ("SHEF-SVC-062", 409, "key is outside its window", "The key is released between not_before and not_after only."),
    /// Limit reached.
    KeyExhausted = ("SHEF-SVC-063", 409, "key has been released as often as it may", "max_releases of this version is reached. Rotate the key, or raise the limit with a new version."),
    /// Session of another layer.
    Layer = ("SHEF-SVC-064", 409, "session is for another layer than the key", "An image key answers evidence of the kernel, a data key evidence of the Shield. Make the session for the key's layer."),
    /// No recipient in a session.
    Recipient = ("SHEF-SVC-065", 409, "session names no recipient", "A data key goes to a one-time key of the owner's: give `recipient` when the session is made; it is bound to the evidence through the nonce."),
}

/// One thing that went wrong.
#[derive(Debug)]
pub struct Problem {
    /// Which.
    pub kind: Kind,
    /// What was expected, what was found.
    pub detail: String,
    /// More members of the answer.
    pub extra: Map<String, Value>,
    /// More headers of the answer.
    pub headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind.summary(), self.detail)
    }
}

impl std::error::Error for Problem {}

impl Problem {
    /// A problem.
    #[must_use]
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), extra: Map::new(), headers: Vec::new() }
    }

    /// With another member in the answer.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.extra.insert(name.into(), value);
        self
    }

    /// With another header.
    #[must_use]
    pub fn header(mut self, name: header::HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// With `Retry-After`.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        self.header(header::RETRY_AFTER, &seconds.to_string())
    }
}

/// Makes a problem of each kind by name: `Kind::NotFound.because("...")`.
impl Kind {
    /// The problem with this text.
    #[must_use]
    pub fn because(self, detail: impl Into<String>) -> Problem {
        Problem::new(self, detail)
    }
}

/// Result of everything in this crate.
pub type Result<T, E = Problem> = std::result::Result<T, E>;

impl From<sqlx::Error> for Problem {
    fn from(error: sqlx::Error) -> Self {
        // The text may hold SQL, never values: parameters are bound.
        tracing::error!(error = %error, "store");
        Self::new(Kind::Store, "the database refused or is out of reach").retry_after(1)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let code = self.kind.code();
        let mut body = json!({
            "type": format!("urn:shef:code:{code}"),
            "title": self.kind.summary(),
            "status": status.as_u16(),
            "code": code,
            "detail": self.detail,
        });
        if let Value::Object(body) = &mut body {
            body.extend(self.extra);
        }
        let mut response = (status, body.to_string()).into_response();
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer, Basic realm=\"shef-verifierd\""));
        }
        for (name, value) in self.headers {
            response.headers_mut().insert(name, value);
        }
        response.extensions_mut().insert(Answered(code));
        response
    }
}

/// The code that an answer carries, for log and metrics.
#[derive(Clone, Copy, Debug)]
pub struct Answered(pub &'static str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_explained() {
        let mut ids: Vec<_> = CODES.iter().map(|code| code.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), Kind::ALL.len());
        for code in CODES {
            assert!(code.id.starts_with("SHEF-SVC-") && !code.summary.is_empty() && code.help.len() > 20, "{}", code.id);
        }
    }
}
