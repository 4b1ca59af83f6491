//! Every error, as one type: an error at start-up and a response in `application/problem+json` (RFC
//! 9457).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use shef_proto::code;
use shef_proto::fault::Coded;
use shef_proto::service::CODES;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = ($code:literal, $status:literal),)*) => {
        /// Kinds of errors; each has a stable code.
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

            /// HTTP status; 0 for errors that happen outside a request.
            #[must_use]
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// One-line summary.
            #[must_use]
            pub fn summary(self) -> &'static str {
                code::find(CODES, self.code()).map_or("", |code| code.summary)
            }
        }
    };
}

kinds! {
    /// Invalid configuration file.
    Config = ("SHEF-SVC-001", 0),
    /// Unusable file of keys or certificates.
    Material = ("SHEF-SVC-002", 0),
    /// A secret that others can read.
    Permissions = ("SHEF-SVC-003", 0),
    /// The database does not open.
    Store = ("SHEF-SVC-004", 503),
    /// A database of a newer version.
    NewerStore = ("SHEF-SVC-005", 0),
    /// The keys are sealed under another KEK.
    WrongKek = ("SHEF-SVC-006", 503),
    /// The address cannot be used.
    Listen = ("SHEF-SVC-007", 0),
    /// `init` would overwrite something.
    Exists = ("SHEF-SVC-008", 0),
    /// Backup or restore failed.
    Backup = ("SHEF-SVC-009", 0),
    /// Broken chain of receipts.
    Audit = ("SHEF-SVC-010", 0),
    /// An identity provider does not answer as it should.
    Provider = ("SHEF-SVC-011", 503),
    /// The token that holds keys does not answer, or refuses.
    Vault = ("SHEF-SVC-012", 503),

    /// No such path or object.
    NotFound = ("SHEF-SVC-020", 404),
    /// Method not allowed.
    Method = ("SHEF-SVC-021", 405),
    /// Body exceeds the limit.
    TooLarge = ("SHEF-SVC-022", 413),
    /// Body arrives too slowly.
    Slow = ("SHEF-SVC-023", 408),
    /// Unsupported content type.
    MediaType = ("SHEF-SVC-024", 415),
    /// No acceptable media type.
    NotAcceptable = ("SHEF-SVC-025", 406),
    /// Malformed request.
    Malformed = ("SHEF-SVC-026", 400),
    /// Missing or unknown credentials.
    Unauthenticated = ("SHEF-SVC-027", 401),
    /// Missing right.
    Forbidden = ("SHEF-SVC-028", 403),
    /// A tenant exceeds its rate.
    RateLimited = ("SHEF-SVC-029", 429),
    /// Too many concurrent requests.
    Busy = ("SHEF-SVC-030", 503),
    /// Internal error.
    Internal = ("SHEF-SVC-031", 500),
    /// The log cannot be written, and it is required.
    Log = ("SHEF-SVC-032", 503),
    /// The database is damaged, read-only, or lacks what the service needs.
    Broken = ("SHEF-SVC-033", 500),

    /// Session token not from this service.
    Session = ("SHEF-SVC-040", 400),
    /// Session token expired.
    SessionExpired = ("SHEF-SVC-041", 410),
    /// The nonce was used before.
    NonceUsed = ("SHEF-SVC-042", 409),
    /// The appraisal denies the evidence.
    Denied = ("SHEF-SVC-043", 422),

    /// Unusable policy.
    Policy = ("SHEF-SVC-050", 422),
    /// Unusable trust anchor.
    Anchor = ("SHEF-SVC-051", 422),
    /// Unusable reference values.
    Corim = ("SHEF-SVC-052", 422),
    /// Unusable revocation.
    Revocation = ("SHEF-SVC-053", 422),
    /// The name is taken.
    Conflict = ("SHEF-SVC-054", 409),
    /// Malformed name.
    Name = ("SHEF-SVC-055", 422),
    /// Another dry run is in progress.
    DryRun = ("SHEF-SVC-056", 429),
    /// The dry run took too long.
    DryRunTime = ("SHEF-SVC-057", 503),
    /// The tenant's storage is full.
    Full = ("SHEF-SVC-058", 409),
    /// The device must not be forgotten.
    Known = ("SHEF-SVC-059", 409),

    /// Unusable key description.
    Key = ("SHEF-SVC-060", 422),
    /// The key is disabled.
    KeyDisabled = ("SHEF-SVC-061", 409),
    /// Outside the key's validity window.
    KeyWindow = ("SHEF-SVC-062", 409),
    /// The key's release limit is reached.
    KeyExhausted = ("SHEF-SVC-063", 409),
    /// The session is for another layer.
    Layer = ("SHEF-SVC-064", 409),
    /// The session has no recipient.
    Recipient = ("SHEF-SVC-065", 409),
    /// The policy, or the version of a key or policy, is in use.
    InUse = ("SHEF-SVC-066", 409),
}

/// An error.
#[derive(Debug)]
pub struct Problem {
    /// Its kind.
    pub kind: Kind,
    /// The expected and the actual value.
    pub detail: String,
    /// The database's own text, which no response contains.
    pub cause: Option<String>,
    /// More members of the response.
    pub extra: Map<String, Value>,
    /// More headers of the response.
    pub headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind.summary(), self.with_cause())
    }
}

impl std::error::Error for Problem {}

impl Coded for Problem {
    fn code(&self) -> &str {
        self.kind.code()
    }
}

impl Problem {
    /// A problem.
    #[must_use]
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        Self { kind, detail: detail.into(), cause: None, extra: Map::new(), headers: Vec::new() }
    }

    /// The text and its cause, for the user of a command on this machine.
    #[must_use]
    pub fn with_cause(&self) -> String {
        match &self.cause {
            Some(cause) => format!("{} ({cause})", self.detail),
            None => self.detail.clone(),
        }
    }

    /// Adds a member to the response.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.extra.insert(name.into(), value);
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: header::HeaderName, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// Adds `Retry-After`.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        self.header(header::RETRY_AFTER, &seconds.to_string())
    }
}

/// Creates problems of a kind: `Kind::NotFound.because("...")`.
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
        // The text may hold SQL but no values: parameters are bound.
        tracing::error!(error = %error, "store");
        let cause = Some(error.to_string());
        if error.as_database_error().is_some_and(is_permanent) {
            let text = "the database is damaged, read-only, or lacks a table or a right";
            return Self { cause, ..Self::new(Kind::Broken, text) };
        }
        let problem = Self::new(Kind::Store, "the database refused or is out of reach");
        Self { cause, ..problem.retry_after(1) }
    }
}

/// Whether a database error is permanent, by its SQLSTATE or by SQLite's error code, whose low byte
/// is the primary code.
fn is_permanent(error: &dyn sqlx::error::DatabaseError) -> bool {
    const POSTGRES: [&str; 6] = ["42", "3D", "3F", "25006", "XX001", "XX002"];
    // Not allowed, read-only, corrupt, no database.
    const SQLITE: [u32; 4] = [3, 8, 11, 26];
    let code = error.code().unwrap_or_default();
    match code.len() {
        5 => POSTGRES.iter().any(|class| code.starts_with(class)),
        _ => {
            error.message().starts_with("no such ")
                || code.parse::<u32>().is_ok_and(|code| SQLITE.contains(&(code & 0xff)))
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status =
            StatusCode::from_u16(self.kind.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
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
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            // One header each: browsers do not separate two schemes in one header.
            for scheme in ["Bearer", "Basic realm=\"shef-verifierd\""] {
                response
                    .headers_mut()
                    .append(header::WWW_AUTHENTICATE, HeaderValue::from_static(scheme));
            }
        }
        for (name, value) in self.headers {
            response.headers_mut().insert(name, value);
        }
        response.extensions_mut().insert(Answered(code));
        response
    }
}

/// The code in a response, for log and metrics.
#[derive(Clone, Copy, Debug)]
pub struct Answered(pub &'static str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_explained() {
        // Each kind has one line of the table, and each line has a kind.
        assert_eq!(
            CODES.iter().map(|code| code.id).collect::<Vec<_>>(),
            Kind::ALL.iter().map(|kind| kind.code()).collect::<Vec<_>>()
        );
        for code in CODES {
            assert!(
                code.id.starts_with("SHEF-SVC-")
                    && !code.summary.is_empty()
                    && code.help.len() > 20,
                "{}",
                code.id
            );
        }
    }
}
