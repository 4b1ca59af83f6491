//! `[[oidc]]`: providers of OpenID Connect, and what their callers may do.

use std::path::PathBuf;

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
    /// How long they go on if it does not answer.
    pub keys_seconds: u64,
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
    keys_seconds: Option<Spanned<u64>>,
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

/// The URL of a provider, or of its keys.
fn url(at: &At<'_>, what: &str, url: &Spanned<String>) -> Result<String> {
    at.url(&format!("oidc.{what}"), url, false)
}

fn filled(at: &At<'_>, what: &str, text: &Spanned<String>) -> Result<String> {
    if text.get_ref().is_empty() {
        return Err(at.error(&text.span(), format!("oidc.{what} is empty")));
    }
    Ok(text.get_ref().clone())
}

/// The age that keys may have: a day, unless the file says otherwise.
fn seconds(at: &At<'_>, seconds: Option<&Spanned<u64>>) -> Result<u64> {
    const DAY: u64 = 24 * 3600;
    let Some(seconds) = seconds else { return Ok(DAY) };
    let range = 1..=30 * DAY;
    if !range.contains(seconds.get_ref()) {
        let text = format!(
            "oidc.keys_seconds = {}: expected {} to {}",
            seconds.get_ref(),
            range.start(),
            range.end()
        );
        return Err(at.error(&seconds.span(), text));
    }
    Ok(*seconds.get_ref())
}

/// The providers of a file.
pub(super) fn providers(
    at: &At<'_>,
    files: &[Spanned<OidcFile>],
    tenants: &[Tenant],
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
                ca: file.ca.as_ref().map(|path| at.path(path)).transpose()?,
            },
            keys_seconds: seconds(at, file.keys_seconds.as_ref())?,
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
    let claim = filled(at, "grant.claim", &file.claim)?;
    // A name with a slash is a URL (`https://example.com/roles`), and a pointer begins with one.
    let pointer = claim.starts_with('/');
    let escapes = || claim.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if pointer && !escapes() || !pointer && claim.contains('/') && !claim.contains("://") {
        let text = format!(
            "oidc.grant.claim = {claim:?}: expected the name of a claim, or a JSON pointer, which begins with a slash, such as \"/realm_access/roles\"; ~1 is a slash of a name in it, and ~0 a ~"
        );
        return Err(at.error(&file.claim.span(), text));
    }
    Ok(Grant {
        claim,
        value: filled(at, "grant.value", &file.value)?,
        tenant: tenant.clone(),
        role,
    })
}
