//! `[[oidc]]`: providers of OpenID Connect, and what their callers may do.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::at::At;
use super::callers::Tenant;
use crate::problem::Result;
use crate::role::Role;

/// A provider of OpenID Connect whose tokens identify callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oidc {
    /// Its keys.
    pub source: Source,
    /// The `aud` of tokens for this service.
    pub audience: String,
    /// What callers may do, by their claims; the first that fits counts.
    pub grants: Vec<Grant>,
}

/// Where a provider's keys come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The provider's URL, which is the `iss` of its tokens.
    pub issuer: String,
    /// URL of its keys; by default its discovery document says it.
    pub jwks_uri: Option<String>,
    /// CAs of the provider's server, PEM; by default those of the system.
    pub ca: Option<PathBuf>,
}

/// A right of callers with some claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Name of the claim, or a JSON pointer (RFC 6901) to it.
    pub claim: String,
    /// What it must be or contain.
    pub value: String,
    /// The tenant of these callers.
    pub tenant: String,
    /// Their role.
    pub role: Role,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OidcFile {
    issuer: Spanned<String>,
    audience: Spanned<String>,
    jwks_uri: Option<Spanned<String>>,
    ca: Option<PathBuf>,
    #[serde(default)]
    grant: Vec<Spanned<GrantFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantFile {
    claim: Spanned<String>,
    value: Spanned<String>,
    tenant: Spanned<String>,
    role: Spanned<String>,
}

/// Checks the URL of a provider, or of its keys.
fn url(at: &At<'_>, what: &str, url: &Spanned<String>) -> Result<String> {
    let text = url.get_ref();
    let parsed = text.parse::<axum::http::Uri>().ok();
    let good = parsed.is_some_and(|url| {
        url.scheme_str() == Some("https") && url.authority().is_some() && url.query().is_none()
    });
    if !good || text.contains(['#', '@']) {
        return Err(at.error(
            &url.span(),
            format!(
                "oidc.{what} = {text:?}: expected https://HOST/PATH, without query and fragment"
            ),
        ));
    }
    Ok(text.clone())
}

fn filled(at: &At<'_>, what: &str, text: &Spanned<String>) -> Result<String> {
    if text.get_ref().is_empty() {
        return Err(at.error(&text.span(), format!("oidc.{what} is empty")));
    }
    Ok(text.get_ref().clone())
}

/// The providers of a file.
pub(super) fn providers(
    at: &At<'_>,
    files: &[Spanned<OidcFile>],
    tenants: &[Tenant],
    folder: &Path,
) -> Result<Vec<Oidc>> {
    let mut all: Vec<Oidc> = Vec::new();
    for spanned in files {
        let file = spanned.get_ref();
        let issuer = url(at, "issuer", &file.issuer)?;
        if all.iter().any(|known| known.source.issuer == issuer) {
            let text = format!("oidc.issuer {issuer:?} is there twice");
            return Err(at.error(&file.issuer.span(), text));
        }
        if file.grant.is_empty() {
            let text = "this [[oidc]] has no [[oidc.grant]], so nobody could do anything";
            return Err(at.error(&spanned.span(), text));
        }
        all.push(Oidc {
            source: Source {
                issuer,
                jwks_uri: file
                    .jwks_uri
                    .as_ref()
                    .map(|keys| url(at, "jwks_uri", keys))
                    .transpose()?,
                ca: file.ca.as_ref().map(|path| folder.join(path)),
            },
            audience: filled(at, "audience", &file.audience)?,
            grants: file
                .grant
                .iter()
                .map(|grant| self::grant(at, grant.get_ref(), tenants))
                .collect::<Result<_>>()?,
        });
    }
    Ok(all)
}

fn grant(at: &At<'_>, file: &GrantFile, tenants: &[Tenant]) -> Result<Grant> {
    let (tenant, role) = (file.tenant.get_ref(), file.role.get_ref());
    if !tenants.iter().any(|known| known.name == *tenant) {
        let text = format!("oidc.grant.tenant {tenant:?} is none of the tenants");
        return Err(at.error(&file.tenant.span(), text));
    }
    let role = Role::from_name(role).ok_or_else(|| {
        at.error(
            &file.role.span(),
            format!("role {role:?} is none of attest, release, audit, operator"),
        )
    })?;
    Ok(Grant {
        claim: filled(at, "grant.claim", &file.claim)?,
        value: filled(at, "grant.value", &file.value)?,
        tenant: tenant.clone(),
        role,
    })
}
