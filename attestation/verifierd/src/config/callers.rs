//! `[[tenant]]`, `[compat]` and `[service]`: who the callers are.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::at::{At, place};
use crate::name::{is_name, is_path, name_rule};
use crate::problem::Result;
use crate::role::Role;

/// Settings for clients of other services.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Compat {
    /// Tenant of clients without credentials, on the Veraison and KBS paths only; if it is missing,
    /// they are rejected.
    pub anonymous_tenant: Option<String>,
    /// Resources of that tenant that these clients may fetch, by path; all others need the role
    /// `release`.
    pub anonymous_resources: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServiceFile {
    operators: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TenantFile {
    name: Spanned<String>,
    #[serde(default)]
    token: Vec<TokenFile>,
    #[serde(default)]
    submitter: Vec<SubmitterFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SubmitterFile {
    name: Spanned<String>,
    policies: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    name: Spanned<String>,
    role: Spanned<String>,
    sha256: Spanned<String>,
}

/// A bearer token, by its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Name in the audit log.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// SHA-256 of the token.
    pub sha256: [u8; 32],
}

/// One tenant.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// Its name.
    pub name: String,
    /// Its bearer tokens.
    pub tokens: Vec<Token>,
    /// Policies that these identities may use; all other identities may name any policy.
    pub submitters: BTreeMap<String, Vec<String>>,
}

/// The tenants of a file.
pub(super) fn tenants(at: &At<'_>, files: &[Spanned<TenantFile>]) -> Result<Vec<Tenant>> {
    let mut tenants: Vec<Tenant> = Vec::new();
    for tenant in files {
        let tenant = tenant.get_ref();
        let name = tenant.name.get_ref();
        if !is_name(name) {
            return Err(at.error(&tenant.name.span(), format!("tenant {name:?}: {}", name_rule())));
        }
        if tenants.iter().any(|other| other.name == *name) {
            return Err(at.error(&tenant.name.span(), format!("tenant {name:?} is there twice")));
        }
        let (tokens, submitters) = (tokens(at, tenant, &tenants)?, submitters(at, tenant)?);
        tenants.push(Tenant { name: name.clone(), tokens, submitters });
    }
    Ok(tenants)
}

/// The bearer tokens of a tenant; those of the `earlier` tenants have other digests.
fn tokens(at: &At<'_>, tenant: &TenantFile, earlier: &[Tenant]) -> Result<Vec<Token>> {
    let mut tokens: Vec<Token> = Vec::new();
    for token in &tenant.token {
        let role = Role::from_name(token.role.get_ref()).ok_or_else(|| {
            at.error(
                &token.role.span(),
                format!(
                    "role {:?} is none of attest, release, audit, operator",
                    token.role.get_ref()
                ),
            )
        })?;
        let sha256 =
            hex::decode(token.sha256.get_ref()).ok().and_then(|bytes| bytes.try_into().ok());
        let Some(sha256) = sha256 else {
            return Err(at.error(
                &token.sha256.span(),
                "sha256 is not 64 hexadecimal digits; `shef-verifierd token` makes an entry",
            ));
        };
        if !is_name(token.name.get_ref()) {
            return Err(at.error(
                &token.name.span(),
                format!("token {:?}: {}", token.name.get_ref(), name_rule()),
            ));
        }
        // With two entries, the role would be ambiguous.
        let mut known = earlier.iter().flat_map(|tenant| &tenant.tokens).chain(&tokens);
        if let Some(other) = known.find(|other| other.sha256 == sha256) {
            let text = format!("sha256 is that of the token {:?}, which has an entry", other.name);
            return Err(at.error(&token.sha256.span(), text));
        }
        tokens.push(Token { name: token.name.get_ref().clone(), role, sha256 });
    }
    Ok(tokens)
}

/// The policies that callers of a tenant may use, by name.
fn submitters(at: &At<'_>, tenant: &TenantFile) -> Result<BTreeMap<String, Vec<String>>> {
    let mut submitters = BTreeMap::new();
    for submitter in &tenant.submitter {
        for (what, text) in [("submitter", &submitter.name)]
            .into_iter()
            .chain(submitter.policies.iter().map(|p| ("policy", p)))
        {
            if !is_name(text.get_ref()) {
                return Err(
                    at.error(&text.span(), format!("{what} {:?}: {}", text.get_ref(), name_rule()))
                );
            }
        }
        let policies = submitter.policies.iter().map(|policy| policy.get_ref().clone()).collect();
        if submitters.insert(submitter.name.get_ref().clone(), policies).is_some() {
            return Err(at.error(
                &submitter.name.span(),
                format!("submitter {:?} is there twice", submitter.name.get_ref()),
            ));
        }
    }
    Ok(submitters)
}

/// Checks what clients without credentials may do.
pub(super) fn check_compat(at: &At<'_>, compat: &Compat, tenants: &[Tenant]) -> Result<()> {
    if let Some(anonymous) = &compat.anonymous_tenant
        && !tenants.iter().any(|tenant| tenant.name == *anonymous)
    {
        return Err(at.error(
            &place(at.text, "compat", "anonymous_tenant"),
            format!("anonymous_tenant {anonymous:?} is none of the tenants"),
        ));
    }
    if let Some(bad) = compat.anonymous_resources.iter().find(|path| !is_path(path)) {
        return Err(at.error(
            &place(at.text, "compat", "anonymous_resources"),
            format!("anonymous_resources: {bad:?} is no path REPOSITORY/TYPE/TAG of names"),
        ));
    }
    Ok(())
}

/// The callers who see the metrics of all tenants.
pub(super) fn operators(
    at: &At<'_>,
    service: &ServiceFile,
    tenants: &[Tenant],
) -> Result<Vec<String>> {
    let mut operators = Vec::new();
    for operator in &service.operators {
        let known = |(tenant, name): (&str, &str)| {
            is_name(name) && tenants.iter().any(|known| known.name == tenant)
        };
        if !operator.get_ref().split_once('/').is_some_and(known) {
            let text = format!(
                "service.operators: {:?} is not TENANT/NAME of a tenant of this file",
                operator.get_ref()
            );
            return Err(at.error(&operator.span(), text));
        }
        operators.push(operator.get_ref().clone());
    }
    Ok(operators)
}
