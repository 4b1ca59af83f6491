//! Places in the text of a configuration, for error messages.

use std::net::IpAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use axum::http::Uri;
use toml::Spanned;

use crate::problem::{Because, Kind, Problem, Result};

/// A configuration's name and text, and where the paths in it start.
pub(super) struct At<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    /// Where relative paths start.
    pub(super) folder: &'a Path,
    /// systemd's folder of credentials, if it has given this process any.
    pub(super) credentials: Option<&'a Path>,
}

/// Begins a path below systemd's folder of credentials.
const CREDENTIAL: &str = "%d/";

impl At<'_> {
    pub(super) fn error(&self, span: &Range<usize>, what: impl std::fmt::Display) -> Problem {
        let before = &self.text[..span.start.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Kind::Config.because(format!("{}:{line}:{column}: {what}", self.name))
    }

    /// The path of a file: `%d/NAME` is a credential of systemd, as in its units, and a relative path
    /// starts at the configuration's folder.
    pub(super) fn path(&self, path: &Path) -> Result<PathBuf> {
        let Ok(name) = path.strip_prefix(CREDENTIAL) else { return Ok(self.folder.join(path)) };
        let credentials = self.credentials.ok_or_else(|| {
            let shown = path.display().to_string();
            let mut at = 0;
            for line in self.text.split_inclusive('\n') {
                let column = line.find(&shown).filter(|_| !line.trim_start().starts_with('#'));
                if let Some(column) = column {
                    at += column.saturating_sub(1);
                    break;
                }
                at += line.len();
            }
            let what = format!(
                "{shown:?} is a credential of systemd, and $CREDENTIALS_DIRECTORY is not set: expected LoadCredential= in the unit, or \
                 for a command, CREDENTIALS_DIRECTORY=/run/credentials/UNIT"
            );
            self.error(&(at..at), what)
        })?;
        Ok(credentials.join(name))
    }

    /// The URL of another service: `https`, or `http` if it leads to this machine and `local` says so.
    pub(super) fn url(&self, what: &str, url: &Spanned<String>, local: bool) -> Result<String> {
        let text = url.get_ref();
        let good = text.parse::<Uri>().is_ok_and(|url| {
            let scheme = match url.scheme_str() {
                Some("https") => true,
                Some("http") => local && is_here(&url),
                _ => false,
            };
            scheme && url.authority().is_some() && url.query().is_none()
        });
        if !good || text.contains(['#', '@']) {
            let plain = if local { " (http:// only to this machine)" } else { "" };
            let what = format!(
                "{what} = {text:?}: expected https://HOST/PATH{plain}, without query and fragment"
            );
            return Err(self.error(&url.span(), what));
        }
        Ok(text.clone())
    }
}

/// Whether a URL leads to this machine.
fn is_here(url: &Uri) -> bool {
    let host = url.host().unwrap_or("").trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Where the value of a key in a table is, for values whose position the parser does not report.
pub(super) fn place(text: &str, table: &str, key: &str) -> Range<usize> {
    let (mut at, mut inside) = (0, false);
    for line in text.split_inclusive('\n') {
        let plain = line.trim();
        if plain.starts_with('[') {
            inside = plain.split(['[', ']']).nth(1).is_some_and(|name| name.trim() == table);
        } else if inside && plain.split('=').next().is_some_and(|name| name.trim() == key) {
            return at..at;
        }
        at += line.len();
    }
    0..0
}
