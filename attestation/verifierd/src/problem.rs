//! Every error, as one type: an error at start-up and a response in `application/problem+json` (RFC
//! 9457).

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use shef_api::Finding;
use shef_proto::fault::Coded;
pub use shef_proto::service::Kind;

/// An error.
#[derive(Debug)]
pub struct Problem {
    /// Its kind.
    pub kind: Kind,
    /// The expected and the actual value.
    pub detail: String,
    /// The text of another program, such as the database, which no response contains.
    pub cause: Option<String>,
    /// What was found about evidence.
    pub finding: Option<Box<Finding>>,
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
        Self { kind, detail: detail.into(), cause: None, finding: None, headers: Vec::new() }
    }

    /// The text and its cause, for the user of a command on this machine.
    #[must_use]
    pub fn with_cause(&self) -> String {
        match &self.cause {
            Some(cause) => format!("{} ({cause})", self.detail),
            None => self.detail.clone(),
        }
    }

    /// Adds what was found about evidence.
    #[must_use]
    pub fn with(mut self, add: impl FnOnce(&mut Finding)) -> Self {
        add(self.finding.get_or_insert_default());
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
pub trait Because {
    /// The problem with this text.
    #[must_use]
    fn because(self, detail: impl Into<String>) -> Problem;
}

impl Because for Kind {
    fn because(self, detail: impl Into<String>) -> Problem {
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
        let status = StatusCode::from_u16(self.kind.status());
        self.with_status(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
    }
}

impl Problem {
    /// The response with another status than that of the code.
    #[must_use]
    pub fn with_status(self, status: StatusCode) -> Response {
        let code = self.kind.code();
        let document = shef_api::Problem {
            r#type: format!("urn:shef:code:{code}"),
            title: self.kind.summary().to_owned(),
            status: status.as_u16(),
            code: code.to_owned(),
            detail: self.detail,
            finding: self.finding.map(|finding| *finding).unwrap_or_default(),
        };
        let mut response = (status, Json(document)).into_response();
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
