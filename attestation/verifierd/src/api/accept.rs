//! What a client accepts: media types, and dialects of results.

use axum::http::{HeaderMap, header};
use shef_verify::cmw::MediaType;
use shef_verify::ear::Dialect;

use crate::problem::{Because, Kind, Result};

/// The ranges of a request's `Accept` header, except those with weight 0; `None` without the
/// header. A comma inside quotes does not separate ranges.
#[must_use]
pub fn accepted(headers: &HeaderMap) -> Option<Vec<&str>> {
    if !headers.contains_key(header::ACCEPT) {
        return None;
    }
    let mut ranges = Vec::new();
    for value in headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok()) {
        let (mut quoted, mut escaped) = (false, false);
        let parts = value.split(|character| {
            match character {
                _ if escaped => escaped = false,
                '\\' if quoted => escaped = true,
                '"' => quoted = !quoted,
                _ => {}
            }
            character == ',' && !quoted
        });
        ranges
            .extend(parts.map(str::trim).filter(|range| !range.is_empty() && !is_unwanted(range)));
    }
    Some(ranges)
}

/// Whether a range has weight 0.
fn is_unwanted(range: &str) -> bool {
    let weight = |parameter: &str| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse::<f32>().ok())?
    };
    range.split(';').skip(1).any(|parameter| weight(parameter) == Some(0.0))
}

/// The dialect of results that a request asks for
/// (`Accept: application/eat+jwt; eat_profile="..."`); `None` if it names no dialect.
///
/// # Errors
/// The request accepts unknown dialects only.
pub fn dialect(headers: &HeaderMap) -> Result<Option<Dialect>> {
    let ranges = accepted(headers).unwrap_or_default();
    let profiles: Vec<String> =
        ranges.into_iter().filter_map(|range| MediaType::parse(range)?.eat_profile).collect();
    let known = profiles.iter().find_map(|profile| Dialect::from_profile(profile));
    if known.is_none() && !profiles.is_empty() {
        let text = format!(
            "eat_profile {:?}, expected one of {:?}",
            profiles.join(", "),
            Dialect::ALL.map(Dialect::profile)
        );
        return Err(Kind::NotAcceptable.because(text));
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn asking(accept: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_str(accept).unwrap())])
    }

    #[test]
    fn commas_in_quotes_part_nothing() {
        let old = r#"application/eat+jwt; eat_profile="tag:github.com,2023:veraison/ear""#;
        let both = format!("text/html, {old} ,,*/*;q=0.1");
        assert_eq!(accepted(&asking(&both)), Some(vec!["text/html", old, "*/*;q=0.1"]));
        assert_eq!(accepted(&asking(r#"a/b; c="\",", d/e"#)), Some(vec![r#"a/b; c="\",""#, "d/e"]));
        assert_eq!(accepted(&asking("a/b; Q=0.000, c/d;q=0.5")), Some(vec!["c/d;q=0.5"]));
        assert_eq!(accepted(&HeaderMap::new()), None);
        assert_eq!(dialect(&asking(&both)).unwrap(), Some(Dialect::Veraison2023));
        assert_eq!(dialect(&asking("*/*")).unwrap(), None);
        let other = r#"application/eat+jwt; eat_profile="tag:ietf.org,2025-07:ear""#;
        assert_eq!(dialect(&asking(other)).unwrap_err().kind, Kind::NotAcceptable);
        assert_eq!(
            dialect(&asking(&format!("{other}, {}", Dialect::Draft04.media_type()))).unwrap(),
            Some(Dialect::Draft04)
        );
    }
}
