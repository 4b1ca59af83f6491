//! Everything that can go wrong, as one type: an error of start-up and an answer in
//! `application/problem+json` (RFC 9457).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use shef_proto::code;
use shef_proto::service::CODES;

macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident = ($code:literal, $status:literal),)*) => {
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
                code::find(CODES, self.code()).map_or("", |code| code.summary)
            }
        }
    };
}

kinds! {
    /// The configuration file.
    Config = ("SHEF-SVC-001", 0),
    /// A file of keys or certificates.
    Material = ("SHEF-SVC-002", 0),
    /// A secret that others may read.
    Permissions = ("SHEF-SVC-003", 0),
    /// The database does not open.
    Store = ("SHEF-SVC-004", 503),
    /// A database of a newer program.
    NewerStore = ("SHEF-SVC-005", 0),
    /// Another KEK than the one the keys are sealed under.
    WrongKek = ("SHEF-SVC-006", 503),
    /// The address.
    Listen = ("SHEF-SVC-007", 0),
    /// `init` where something is already.
    Exists = ("SHEF-SVC-008", 0),
    /// Backup or restore.
    Backup = ("SHEF-SVC-009", 0),
    /// A chain of receipts that does not hold.
    Audit = ("SHEF-SVC-010", 0),
    /// What a command says cannot be written.
    Output = ("SHEF-SVC-011", 0),

    /// No such path or thing.
    NotFound = ("SHEF-SVC-020", 404),
    /// Wrong method.
    Method = ("SHEF-SVC-021", 405),
    /// Body over the limit.
    TooLarge = ("SHEF-SVC-022", 413),
    /// Body too slow.
    Slow = ("SHEF-SVC-023", 408),
    /// Content type.
    MediaType = ("SHEF-SVC-024", 415),
    /// Accept header.
    NotAcceptable = ("SHEF-SVC-025", 406),
    /// Malformed request.
    Malformed = ("SHEF-SVC-026", 400),
    /// Who is asking?
    Unauthenticated = ("SHEF-SVC-027", 401),
    /// Not theirs.
    Forbidden = ("SHEF-SVC-028", 403),
    /// Too many requests of a tenant.
    RateLimited = ("SHEF-SVC-029", 429),
    /// Too many at once.
    Busy = ("SHEF-SVC-030", 503),
    /// A fault of the service.
    Internal = ("SHEF-SVC-031", 500),

    /// Session token not ours.
    Session = ("SHEF-SVC-040", 400),
    /// Session token too old.
    SessionExpired = ("SHEF-SVC-041", 410),
    /// The nonce was used.
    NonceUsed = ("SHEF-SVC-042", 409),
    /// The appraisal says no.
    Denied = ("SHEF-SVC-043", 422),

    /// Policy that cannot be used.
    Policy = ("SHEF-SVC-050", 422),
    /// Trust anchor that cannot be used.
    Anchor = ("SHEF-SVC-051", 422),
    /// Reference values that cannot be used.
    Corim = ("SHEF-SVC-052", 422),
    /// Revocation that cannot be used.
    Revocation = ("SHEF-SVC-053", 422),
    /// A name that is taken.
    Conflict = ("SHEF-SVC-054", 409),
    /// Malformed name.
    Name = ("SHEF-SVC-055", 422),
    /// A second dry run at once.
    DryRun = ("SHEF-SVC-056", 429),
    /// A dry run that took too long.
    DryRunTime = ("SHEF-SVC-057", 503),
    /// A tenant that stores as much as it may.
    Full = ("SHEF-SVC-058", 409),
    /// A device that is not to be forgotten.
    Known = ("SHEF-SVC-059", 409),

    /// Key description.
    Key = ("SHEF-SVC-060", 422),
    /// Disabled.
    KeyDisabled = ("SHEF-SVC-061", 409),
    /// Outside its window.
    KeyWindow = ("SHEF-SVC-062", 409),
    /// Limit reached.
    KeyExhausted = ("SHEF-SVC-063", 409),
    /// Session of another layer.
    Layer = ("SHEF-SVC-064", 409),
    /// No recipient in a session.
    Recipient = ("SHEF-SVC-065", 409),
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
            // A header for each: browsers do not part two schemes that share one.
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

/// The code that an answer carries, for log and metrics.
#[derive(Clone, Copy, Debug)]
pub struct Answered(pub &'static str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_explained() {
        // Each kind has its own line of the table, and no line is left over.
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
