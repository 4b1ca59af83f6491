//! `[traces]`: where spans go.

use std::path::PathBuf;

use serde::Deserialize;
use toml::Spanned;

use super::at::At;
use crate::problem::Result;

/// The collector of spans.
#[derive(Clone, Debug, PartialEq)]
pub struct Traces {
    /// URL that takes them, by OTLP over HTTP.
    pub endpoint: String,
    /// CAs of the collector's server, PEM; by default those of the system.
    pub ca: Option<PathBuf>,
    /// File with headers of each request to the collector.
    pub headers_file: Option<PathBuf>,
    /// The share of requests that are traced, 0 to 1.
    pub sample: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TracesFile {
    endpoint: Spanned<String>,
    ca: Option<PathBuf>,
    headers_file: Option<PathBuf>,
    #[serde(default = "all")]
    sample: Spanned<f64>,
}

fn all() -> Spanned<f64> {
    Spanned::new(0..0, 1.0)
}

/// The collector of a file.
pub(super) fn traces(at: &At<'_>, file: Option<&TracesFile>) -> Result<Option<Traces>> {
    let Some(file) = file else { return Ok(None) };
    let endpoint = at.url("traces.endpoint", &file.endpoint, true)?;
    let sample = *file.sample.get_ref();
    if !(0.0..=1.0).contains(&sample) {
        let text = format!("traces.sample = {sample}: expected a share of requests, 0.0 to 1.0");
        return Err(at.error(&file.sample.span(), text));
    }
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| at.path(path)).transpose();
    let (ca, headers_file) = (path(&file.ca)?, path(&file.headers_file)?);
    Ok(Some(Traces { endpoint, ca, headers_file, sample }))
}
