//! HTTP: the paths, the rights that they need, and the parsing of bodies and queries.

mod accept;
mod appraise;
mod collateral;
mod devices;
pub(crate) mod kbs;
mod keys;
mod open;
mod openapi;
mod release;
pub(crate) mod routes;
mod veraison;

pub(crate) use collateral::is_known;
pub use collateral::{add_revocation, authorities};
pub(crate) use devices::{cursor, cursor_of, unhex};
pub use openapi::openapi;
pub use routes::{ROUTES, Route, Takes};

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use shef_api::Verdict;
use shef_proto::evidence::Layer;
use utoipa::IntoParams;
use zeroize::Zeroizing;

use crate::app::App;
use crate::problem::{Because, Kind, Problem, Result};

/// The shared state, as handlers receive it.
pub type Shared = State<Arc<App>>;

/// A query string. A malformed one, or one with an unknown parameter, is answered like any
/// malformed request.
pub struct Query<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self> {
        let query = axum::extract::Query::from_request_parts(parts, state).await;
        query.map(|query| Self(query.0)).map_err(|error| Kind::Malformed.because(error.body_text()))
    }
}

/// Where the tables of the operator's page begin, as encoded in their `more` links.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Begin {
    /// Devices after this one.
    #[param(nullable = false)]
    pub devices: Option<String>,
    /// Appraisals after this one.
    #[param(nullable = false)]
    pub appraisals: Option<String>,
    /// Keys after this one.
    #[param(nullable = false)]
    pub keys: Option<String>,
    /// Receipts up to this number.
    #[param(nullable = false)]
    pub receipts: Option<i64>,
}

/// What the operator's page asks about before it revokes.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Target {
    /// Kind of the subject, as in `/v1/revocations`.
    pub kind: String,
    /// The subject, as in `/v1/revocations`.
    pub value: String,
}

/// The API's paths.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .merge(open::router())
        .merge(appraise::router())
        .merge(release::router())
        .merge(collateral::router())
        .merge(devices::router())
        .merge(kbs::router())
        .merge(keys::router())
        .merge(veraison::router())
}

/// The media type of a request, without parameters, in lower case.
pub fn media_type(headers: &HeaderMap) -> String {
    let value =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    value.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// Parses a JSON body.
///
/// # Errors
/// The body does not have the expected form.
pub fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| Kind::Malformed.because(error.to_string()))
}

/// Bytes in base64, either alphabet, padded or not.
///
/// # Errors
/// Not base64.
pub fn bytes(name: &str, text: &str) -> Result<Vec<u8>> {
    let text = text.trim_end_matches('=');
    // May be a secret: one buffer that does not grow and is erased.
    let mut plain = Zeroizing::new(Vec::with_capacity(text.len()));
    plain.extend(text.bytes().map(|byte| match byte {
        b'+' => b'-',
        b'/' => b'_',
        other => other,
    }));
    URL_SAFE_NO_PAD
        .decode(&*plain)
        .map_err(|_| Kind::Malformed.because(format!("{name} is not base64")))
}

/// Bytes as this API writes them: base64url without padding.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A nonce as text: none of its characters differs between the base64 alphabets.
#[must_use]
pub fn nonce_text(nonce: &[u8]) -> String {
    STANDARD.encode(nonce)
}

/// The layer of a stored row.
///
/// # Errors
/// A fault: rows hold names of layers.
pub fn stored_layer(name: &str) -> Result<Layer> {
    Layer::from_name(name)
        .ok_or_else(|| Kind::Internal.because("a stored row has an unknown layer"))
}

/// The verdict of a stored row.
pub fn stored_verdict(name: &str) -> Verdict {
    Verdict::of(name == Verdict::Accepted.name())
}

/// The `next` of a page: the place of its last row, if more rows may follow.
pub fn next<R, T>(rows: &[R], limit: Option<i64>, place: impl FnOnce(&R) -> T) -> Option<T> {
    rows.last().filter(|_| rows.len() as i64 == page(limit)).map(place)
}

/// Page sizes: 1 to 1000, 100 by default.
#[must_use]
pub fn page(limit: Option<i64>) -> i64 {
    limit.unwrap_or(100).clamp(1, 1000)
}
