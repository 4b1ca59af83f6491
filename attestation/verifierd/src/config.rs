//! The configuration: one TOML file. Every error names line and column.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shef_files as files;
use toml::Spanned;

use crate::name::{is_name, is_path, name_rule};
use crate::problem::{Kind, Problem, Result};
use crate::role::Role;
use crate::secrets::open_private;

/// Whether clients must present certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuth {
    /// A certificate of the CA is required.
    Required,
    /// A certificate of the CA, or a bearer token.
    Optional,
    /// Bearer tokens only.
    Off,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: Spanned<String>,
    audience: Spanned<String>,
    #[serde(default)]
    tls: Tls,
    #[serde(default)]
    storage: StorageFile,
    #[serde(default)]
    signing: SigningFile,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    retention: Retention,
    #[serde(default)]
    audit: AuditLog,
    #[serde(default)]
    compat: Compat,
    #[serde(default)]
    service: ServiceFile,
    #[serde(default)]
    tenant: Vec<Spanned<TenantFile>>,
}

/// Files for TLS. Relative paths start at the configuration's folder.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// Certificate chain, PEM, leaf first.
    pub certificate: PathBuf,
    /// Private key, PEM (PKCS #8).
    pub key: PathBuf,
    /// CA of client certificates, PEM.
    pub client_ca: PathBuf,
    /// Revocation lists of that CA, PEM.
    pub crls: Vec<PathBuf>,
    /// Whether clients must present certificates.
    pub client_auth: ClientAuth,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            certificate: "server.pem".into(),
            key: "server.key".into(),
            client_ca: "ca.pem".into(),
            crls: Vec::new(),
            client_auth: ClientAuth::Optional,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StorageFile {
    url: Spanned<String>,
    password_file: Option<Spanned<PathBuf>>,
    kek: PathBuf,
    connections: u32,
}

impl Default for StorageFile {
    fn default() -> Self {
        Self {
            url: Spanned::new(0..0, "sqlite:verifierd.db".into()),
            password_file: None,
            kek: "kek".into(),
            connections: 8,
        }
    }
}

/// Where to keep data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// A file.
    Sqlite(PathBuf),
    /// A database on a server.
    Postgres(Server),
}

/// A database of PostgreSQL.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// A `postgres://` URL. It may hold a password.
    pub url: String,
    /// File of the password.
    pub password_file: Option<PathBuf>,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("password_file", &self.password_file).finish_non_exhaustive()
    }
}

impl Server {
    /// Whether the URL holds a password.
    fn has_password(&self) -> bool {
        let (rest, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let authority = rest.split_once("://").map_or("", |(_, rest)| rest);
        let authority = authority.split('/').next().unwrap_or("");
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        user.contains(':') || query.split('&').any(|pair| pair.starts_with("password="))
    }
}

impl From<String> for Server {
    fn from(url: String) -> Self {
        Self { url, password_file: None }
    }
}

impl Database {
    /// The file of an SQLite database, and the files that SQLite puts beside it.
    #[must_use]
    pub fn files(path: &Path) -> [PathBuf; 4] {
        ["", "-wal", "-shm", "-journal"].map(|end| {
            let mut name = path.as_os_str().to_owned();
            name.push(end);
            name.into()
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SigningFile {
    key: PathBuf,
    retired: Vec<PathBuf>,
}

impl Default for SigningFile {
    fn default() -> Self {
        Self { key: "signing.key".into(), retired: Vec::new() }
    }
}

/// Limits; all have defaults.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Maximum size of a body in bytes.
    pub body_bytes: usize,
    /// Maximum size of a CoRIM in bytes.
    pub corim_bytes: usize,
    /// Maximum bytes that a tenant stores: reference values, policies, keys and resources,
    /// revocations, anchors, signers.
    pub tenant_bytes: i64,
    /// Maximum number of a tenant's trust anchors, signers, reference values and versions of
    /// policies: each change reads them all.
    pub tenant_rows: i64,
    /// Seconds within which TLS handshake and request header must arrive.
    pub header_seconds: u64,
    /// Seconds within which a body must arrive.
    pub body_seconds: u64,
    /// Seconds that open requests have to finish when the service stops.
    pub shutdown_seconds: u64,
    /// Maximum number of connections.
    pub connections: usize,
    /// Seconds after which a connection ends, once its request has been answered: no client keeps
    /// an outdated identity.
    pub connection_seconds: u64,
    /// Maximum number of concurrent requests.
    pub requests: usize,
    /// Seconds for which a session is valid.
    pub session_seconds: i64,
    /// Seconds for which an attestation result is valid.
    pub result_seconds: i64,
    /// Seconds for which a client can fetch a released box again.
    pub release_seconds: i64,
    /// Requests per second for the operators of a tenant, and for all its other callers; one of
    /// these has half of it.
    pub rate: u32,
    /// Requests that they may send in a burst after a pause, divided in the same way.
    pub burst: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 64 * 1024,
            corim_bytes: 1024 * 1024,
            tenant_bytes: 8 * 1024 * 1024,
            tenant_rows: 4096,
            header_seconds: 10,
            body_seconds: 10,
            shutdown_seconds: 10,
            connections: 1024,
            connection_seconds: 600,
            requests: 256,
            session_seconds: 150,
            result_seconds: 300,
            release_seconds: 600,
            rate: 5000,
            burst: 10_000,
        }
    }
}

/// How long to keep data.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retention {
    /// Appraisals kept for each tenant.
    pub appraisals: i64,
    /// Appraisals kept for each tenant in addition: of evidence that no certified device has
    /// signed. Anybody can send that.
    pub unproven: i64,
    /// Days for which to keep receipts; 0: for ever. The chain stays verifiable from the oldest one
    /// kept.
    pub receipt_days: u32,
    /// Seconds without an accepted appraisal after which a device is stale.
    pub stale_seconds: i64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { appraisals: 10_000, unproven: 1000, receipt_days: 0, stale_seconds: 24 * 3600 }
    }
}

/// The audit log.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AuditLog {
    /// A release whose announcement cannot be logged is refused. Otherwise it is released, and the
    /// line is lost.
    pub required: bool,
}

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
struct ServiceFile {
    operators: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TenantFile {
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

/// A checked configuration.
#[derive(Clone, Debug)]
pub struct Config {
    /// The configuration's own file.
    pub file: PathBuf,
    /// Address to listen on.
    pub listen: SocketAddr,
    /// The audience that evidence must name, and the issuer of results.
    pub audience: String,
    /// TLS files.
    pub tls: Tls,
    /// Where to keep data.
    pub database: Database,
    /// Maximum number of database connections.
    pub connections: u32,
    /// File of the key encryption key.
    pub kek: PathBuf,
    /// File of the signing key.
    pub signing_key: PathBuf,
    /// Public keys (hexadecimal points) of earlier signing keys that are still published.
    pub retired: Vec<PathBuf>,
    /// Limits.
    pub limits: Limits,
    /// How long to keep data.
    pub retention: Retention,
    /// The audit log.
    pub audit: AuditLog,
    /// Settings for clients of other services.
    pub compat: Compat,
    /// Operators of the service as a whole, as `TENANT/NAME`: they see the metrics of all tenants.
    pub operators: Vec<String>,
    /// Tenants.
    pub tenants: Vec<Tenant>,
}

struct At<'a> {
    name: &'a str,
    text: &'a str,
}

impl At<'_> {
    fn error(&self, span: &Range<usize>, what: impl std::fmt::Display) -> Problem {
        let before = &self.text[..span.start.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Kind::Config.because(format!("{}:{line}:{column}: {what}", self.name))
    }
}

/// Why an audience with a scheme is no URL. One without is any text.
fn bad_url(audience: &str) -> Option<String> {
    if !audience.contains("://") {
        return None;
    }
    let authority =
        audience.parse::<axum::http::Uri>().ok().and_then(|url| url.into_parts().authority);
    let Some(authority) = authority else {
        return Some("is no URL: expected such as https://verifier.example:8443".into());
    };
    let host = authority.host();
    let address = host.trim_matches(['[', ']']).contains(':');
    (address && !host.starts_with('['))
        .then(|| "has an IPv6 address without brackets: expected such as https://[::1]:8443".into())
}

/// The tenants of a file.
fn tenants(at: &At<'_>, file: &File) -> Result<Vec<Tenant>> {
    let mut tenants: Vec<Tenant> = Vec::new();
    for tenant in &file.tenant {
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
fn check_compat(at: &At<'_>, file: &File, tenants: &[Tenant]) -> Result<()> {
    if let Some(anonymous) = &file.compat.anonymous_tenant
        && !tenants.iter().any(|tenant| tenant.name == *anonymous)
    {
        return Err(at.error(
            &place(at.text, "compat", "anonymous_tenant"),
            format!("anonymous_tenant {anonymous:?} is none of the tenants"),
        ));
    }
    if let Some(bad) = file.compat.anonymous_resources.iter().find(|path| !is_path(path)) {
        return Err(at.error(
            &place(at.text, "compat", "anonymous_resources"),
            format!("anonymous_resources: {bad:?} is no path REPOSITORY/TYPE/TAG of names"),
        ));
    }
    Ok(())
}

/// Checks that limits are within their bounds, and fit each other.
fn check_limits(at: &At<'_>, file: &File) -> Result<()> {
    for (table, name, value, least, most) in
        bounds(&file.limits, &file.retention, file.storage.connections)
    {
        if !(least..=most).contains(&value) {
            let what = format!("{table}.{name} = {value} is not within {least} to {most}");
            return Err(at.error(&place(at.text, table, name), what));
        }
    }
    // The service remembers the releases of an attestation until the box ends, which must
    // outlast the attestation.
    let l = &file.limits;
    if l.result_seconds > l.release_seconds {
        let said = |name| Some(place(at.text, "limits", name)).filter(|span| span.start > 0);
        let text = format!(
            "limits.result_seconds = {} is more than limits.release_seconds = {}: an attestation would outlive the box that it released, and release \
             the key a second time; make result_seconds at most release_seconds",
            l.result_seconds, l.release_seconds
        );
        return Err(at.error(
            &said("result_seconds").or_else(|| said("release_seconds")).unwrap_or(0..0),
            text,
        ));
    }
    Ok(())
}

/// The callers who see the metrics of all tenants.
fn operators(at: &At<'_>, file: &File, tenants: &[Tenant]) -> Result<Vec<String>> {
    let mut operators = Vec::new();
    for operator in &file.service.operators {
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

/// Where the value of a key in a table is, for values whose position the parser does not report.
fn place(text: &str, table: &str, key: &str) -> Range<usize> {
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

/// Every number of a configuration: table, key, value, minimum and maximum.
fn bounds(
    limits: &Limits,
    retention: &Retention,
    connections: u32,
) -> [(&'static str, &'static str, i64, i64, i64); 20] {
    let (l, r) = (limits, retention);
    let size = |value: usize| i64::try_from(value).unwrap_or(i64::MAX);
    let seconds = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    const DAY: i64 = 86_400;
    [
        ("limits", "body_bytes", size(l.body_bytes), 8192, 16 << 20),
        ("limits", "corim_bytes", size(l.corim_bytes), 8192, 64 << 20),
        ("limits", "tenant_bytes", l.tenant_bytes, 64 << 10, 1 << 40),
        ("limits", "tenant_rows", l.tenant_rows, 16, 1 << 20),
        ("limits", "header_seconds", seconds(l.header_seconds), 1, 600),
        ("limits", "body_seconds", seconds(l.body_seconds), 1, 600),
        ("limits", "shutdown_seconds", seconds(l.shutdown_seconds), 0, 600),
        ("limits", "connections", size(l.connections), 1, 1 << 20),
        ("limits", "connection_seconds", seconds(l.connection_seconds), 1, DAY),
        ("limits", "requests", size(l.requests), 1, 1 << 16),
        ("limits", "session_seconds", l.session_seconds, 5, DAY),
        ("limits", "result_seconds", l.result_seconds, 5, DAY),
        ("limits", "release_seconds", l.release_seconds, 5, DAY),
        ("limits", "rate", l.rate.into(), 1, 1 << 24),
        ("limits", "burst", l.burst.into(), 1, 1 << 24),
        ("retention", "appraisals", r.appraisals, 1, 1 << 40),
        ("retention", "unproven", r.unproven, 1, 1 << 40),
        ("retention", "receipt_days", r.receipt_days.into(), 0, 36_500),
        ("retention", "stale_seconds", r.stale_seconds, 1, 3650 * DAY),
        ("storage", "connections", connections.into(), 1, 256),
    ]
}

/// The path of a file that need not exist: absolute, with its folder's symbolic links resolved.
fn resolved(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (whole.parent().map(Path::canonicalize), whole.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => whole,
    }
}

/// Whether two paths name the same file, whatever their spelling, and whether or not it exists.
pub(crate) fn same_file(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let id = |path: &Path| std::fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    resolved(one) == resolved(other) || id(one).is_some_and(|found| id(other) == Some(found))
}

impl Config {
    /// Every file that the service, its commands or SQLite use under a name that follows from the
    /// configuration, whether or not it exists: its purpose and its path. Commands do not create
    /// other files under these names.
    fn files(&self) -> Vec<(&'static str, PathBuf)> {
        let mut all = vec![
            ("storage.kek", self.kek.clone()),
            ("signing.key", self.signing_key.clone()),
            ("the retired signing keys", self.rotated()),
            ("tls.certificate", self.tls.certificate.clone()),
            ("tls.key", self.tls.key.clone()),
            ("tls.client_ca", self.tls.client_ca.clone()),
            ("the configuration", self.file.clone()),
        ];
        all.extend(self.retired.iter().map(|path| ("signing.retired", path.clone())));
        all.extend(self.tls.crls.iter().map(|path| ("tls.crls", path.clone())));
        let mut folders = vec![
            files::folder(&self.file),
            files::folder(&self.tls.client_ca),
            files::folder(&self.signing_key),
        ];
        if let Database::Sqlite(path) = &self.database {
            all.extend(Database::files(path).map(|path| ("the database", path)));
            folders.push(files::folder(path));
        }
        for folder in folders {
            let of_the_ca =
                ["ca.key", "ca.pem", "crl.pem"].map(|name| ("the CA", folder.join(name)));
            all.extend(
                of_the_ca.into_iter().chain([("the lock of commands", folder.join(files::LOCK))]),
            );
        }
        all
    }

    /// Whether this is one of the revocation lists, whatever the spelling of its path.
    #[must_use]
    pub fn names_list(&self, path: &Path) -> bool {
        self.tls.crls.iter().any(|list| same_file(list, path))
    }

    /// The purpose of `path`, if the configuration already uses it.
    #[must_use]
    pub fn reserved(&self, path: &Path) -> Option<&'static str> {
        self.files().into_iter().find(|(_, file)| same_file(file, path)).map(|(what, _)| what)
    }

    /// The same for a set-up by `init` in `folder`, and for the configuration that exists there.
    #[must_use]
    pub fn reserved_in(folder: &Path, path: &Path) -> Option<&'static str> {
        let name = "verifierd.toml";
        let usual = "listen = \"127.0.0.1:0\"\naudience = \"-\"\n[[tenant]]\nname = \"default\"\n";
        let both = [Self::parse(usual, name, folder), Self::read(&folder.join(name))];
        both.into_iter().flatten().find_map(|config| config.reserved(path))
    }

    /// Resolves a path from the configuration: relative paths start at its folder.
    #[must_use]
    pub fn named(&self, path: &Path) -> PathBuf {
        let (own, path) = (resolved(&self.file), resolved(path));
        own.parent()
            .and_then(|folder| path.strip_prefix(folder).ok())
            .map(Path::to_path_buf)
            .unwrap_or(path)
    }

    /// The tenant of this name.
    #[must_use]
    pub fn tenant(&self, name: &str) -> Option<&Tenant> {
        self.tenants.iter().find(|tenant| tenant.name == name)
    }

    /// The file beside the signing key in which `shef-verifierd signing rotate` keeps the retired
    /// public keys.
    #[must_use]
    pub fn rotated(&self) -> PathBuf {
        let mut name = self.signing_key.as_os_str().to_owned();
        name.push(".retired");
        name.into()
    }

    /// This configuration without the rights of callers that `other` takes from them.
    #[must_use]
    pub fn without_removed(&self, other: &Self) -> Self {
        let mut kept = self.clone();
        kept.tenants.retain_mut(|tenant| {
            let Some(new) = other.tenant(&tenant.name) else { return false };
            tenant.tokens.retain(|token| new.tokens.contains(token));
            for (name, policies) in &new.submitters {
                let own = tenant.submitters.entry(name.clone()).or_insert_with(|| policies.clone());
                own.retain(|policy| policies.contains(policy));
            }
            true
        });
        kept.operators.retain(|operator| other.operators.contains(operator));
        if kept.compat.anonymous_tenant != other.compat.anonymous_tenant {
            kept.compat.anonymous_tenant = None;
        }
        kept.compat
            .anonymous_resources
            .retain(|path| other.compat.anonymous_resources.contains(path));
        kept
    }

    /// Settings that differ in another configuration and need a restart.
    #[must_use]
    pub fn fixed(&self, other: &Self) -> Vec<&'static str> {
        let (a, b) = (&self.limits, &other.limits);
        let all = [
            ("listen", self.listen == other.listen),
            ("storage.url", self.database == other.database),
            ("storage.connections", self.connections == other.connections),
            ("limits.header_seconds", a.header_seconds == b.header_seconds),
            ("limits.shutdown_seconds", a.shutdown_seconds == b.shutdown_seconds),
            ("limits.connections", a.connections == b.connections),
            ("limits.connection_seconds", a.connection_seconds == b.connection_seconds),
            ("limits.requests", a.requests == b.requests),
        ];
        all.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }

    /// Reads and checks a file.
    ///
    /// # Errors
    /// The file cannot be read, is not TOML, or has an invalid value.
    pub fn read(path: &Path) -> Result<Self> {
        let text = files::read_linked(path)
            .map_err(|error| Kind::Config.because(format!("{}: {error}", path.display())))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let config = Self {
            file: path.to_owned(),
            ..Self::parse(&text, &path.display().to_string(), &folder)?
        };
        if let Database::Postgres(server) = &config.database
            && server.has_password()
        {
            let hint = "storage.url holds a password; name a file that holds it in storage.password_file, or close this one to others";
            open_private(path).map_err(|problem| Problem {
                detail: format!("{} ({hint})", problem.detail),
                ..problem
            })?;
        }
        Ok(config)
    }

    /// Checks a text; relative paths start at `folder`.
    ///
    /// # Errors
    /// Not TOML, or an invalid value; the error says where.
    pub fn parse(text: &str, name: &str, folder: &Path) -> Result<Self> {
        let at = At { name, text };
        let file: File = toml::from_str(text)
            .map_err(|error| at.error(&error.span().unwrap_or(0..0), error.message()))?;
        let listen = file.listen.get_ref().parse().map_err(|_| {
            at.error(
                &file.listen.span(),
                format!(
                    "listen = {:?} is not an address with port, such as \"127.0.0.1:8443\"",
                    file.listen.get_ref()
                ),
            )
        })?;
        let audience = file.audience.get_ref().clone();
        if !(1..=shef_proto::evidence::AUDIENCE_MAX).contains(&audience.len()) {
            return Err(at.error(
                &file.audience.span(),
                format!(
                    "audience has {} bytes, not 1 to {}",
                    audience.len(),
                    shef_proto::evidence::AUDIENCE_MAX
                ),
            ));
        }
        if let Some(why) = bad_url(&audience) {
            return Err(at.error(&file.audience.span(), format!("audience {audience:?} {why}")));
        }
        let url = file.storage.url.get_ref();
        let database = if let Some(path) = url.strip_prefix("sqlite:") {
            // Elsewhere these mean something else: another file, or none.
            let other = ["//", "file:", ":memory:"].iter().any(|begin| path.starts_with(begin));
            if path.is_empty() || other || path.contains('?') {
                let text = format!(
                    "storage.url = {url:?}: expected sqlite:FILE, the plain name of a file, without parameters"
                );
                return Err(at.error(&file.storage.url.span(), text));
            }
            if let Some(file) = &file.storage.password_file {
                return Err(at.error(&file.span(), "storage.password_file is for postgres:// only"));
            }
            Database::Sqlite(folder.join(path))
        } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            let password = file.storage.password_file.as_ref();
            let password_file = password.map(|path| folder.join(path.get_ref()));
            let server = Server { url: url.clone(), password_file };
            if let Some(file) = password.filter(|_| server.has_password()) {
                let text =
                    "storage.password_file: storage.url holds a password, too; remove it there";
                return Err(at.error(&file.span(), text));
            }
            Database::Postgres(server)
        } else {
            return Err(at.error(
                &file.storage.url.span(),
                "storage.url must begin with sqlite: or postgres://",
            ));
        };
        let tenants = tenants(&at, &file)?;
        if tenants.is_empty() {
            return Err(at.error(&(text.len()..text.len()), "there is no [[tenant]]"));
        }
        check_compat(&at, &file, &tenants)?;
        check_limits(&at, &file)?;
        let operators = operators(&at, &file, &tenants)?;
        let mut tls = file.tls;
        for path in [&mut tls.certificate, &mut tls.key, &mut tls.client_ca]
            .into_iter()
            .chain(&mut tls.crls)
        {
            *path = folder.join(&*path);
        }
        let config = Self {
            file: folder.join(Path::new(name).file_name().unwrap_or_default()),
            listen,
            audience,
            tls,
            database,
            connections: file.storage.connections,
            kek: folder.join(file.storage.kek),
            signing_key: folder.join(file.signing.key),
            retired: file.signing.retired.into_iter().map(|path| folder.join(path)).collect(),
            limits: file.limits,
            retention: file.retention,
            audit: file.audit,
            compat: file.compat,
            operators,
            tenants,
        };
        let others = config.files().into_iter().filter(|(what, _)| *what != "storage.kek");
        if let Some((what, _)) = others.into_iter().find(|(_, other)| same_file(&config.kek, other))
        {
            let what = format!(
                "storage.kek is the file of {what}: expected a file of its own, which `shef-verifierd rekey` makes"
            );
            return Err(at.error(&place(text, "storage", "kek"), what));
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "listen = \"127.0.0.1:0\"\naudience = \"https://v.example\"\n[[tenant]]\nname = \"default\"\n";

    fn bad(text: &str) -> String {
        Config::parse(text, "v.toml", Path::new("/x")).unwrap_err().detail
    }

    #[test]
    fn defaults_and_paths() {
        let config = Config::parse(GOOD, "v.toml", Path::new("/x")).unwrap();
        assert_eq!(config.tls.certificate, Path::new("/x/server.pem"));
        assert!(
            matches!(config.database, Database::Sqlite(path) if path == Path::new("/x/verifierd.db"))
        );
        assert_eq!(config.limits.body_bytes, 65_536);
    }

    #[test]
    fn every_number_has_bounds() {
        let numbers = |table: &str, value: serde_json::Value| -> Vec<String> {
            value.as_object().unwrap().keys().map(|key| format!("{table}.{key}")).collect()
        };
        let (limits, retention) = (Limits::default(), Retention::default());
        let mut keys = numbers("limits", serde_json::to_value(&limits).unwrap());
        keys.extend(numbers("retention", serde_json::to_value(&retention).unwrap()));
        keys.push("storage.connections".into());
        let bounds = bounds(&limits, &retention, StorageFile::default().connections);
        let mut bounded: Vec<String> =
            bounds.iter().map(|(table, key, ..)| format!("{table}.{key}")).collect();
        keys.sort_unstable();
        bounded.sort_unstable();
        assert_eq!(keys, bounded);
        assert!(
            bounds.iter().all(|(.., value, least, most)| (least..=most).contains(&value)),
            "a default is out of bounds"
        );
    }

    #[test]
    fn mistakes_name_line_and_column() {
        for (change, with, place) in [
            ("127.0.0.1:0", "localhost", "v.toml:1:10: "),
            ("audience", "audiense", "v.toml:2:1: unknown field"),
            ("\"default\"", "\"../x\"", "v.toml:4:8: tenant"),
            ("\"default\"", "7", "v.toml:4:8: invalid type"),
            ("[[tenant]]", "[limits]\nrate = 0\n[[tenant]]", "v.toml:4:1: limits.rate"),
            ("[[tenant]]", "[storage]\nurl = \"mysql:x\"\n[[tenant]]", "v.toml:4:7: storage.url"),
            // Spellings of others: an empty database in place of the old one accepts revoked devices.
            (
                "[[tenant]]",
                "[storage]\nurl = \"sqlite://v.db\"\n[[tenant]]",
                "v.toml:4:7: storage.url",
            ),
            (
                "[[tenant]]",
                "[storage]\nurl = \"sqlite:v.db?mode=ro\"\n[[tenant]]",
                "v.toml:4:7: stor",
            ),
            ("[[tenant]]", "[storage]\nurl = \"sqlite::memory:\"\n[[tenant]]", "v.toml:4:7: stor"),
            ("[[tenant]]", "[storage]\nurl = \"sqlite:file:v.db\"\n[[tenant]]", "v.toml:4:7: stor"),
            ("[[tenant]]", "[storage]\nurl = \"sqlite:\"\n[[tenant]]", "v.toml:4:7: storage.url"),
            ("https://v.example", "https://::1:8443", "v.toml:2:12: audience \"https://::1:8443\""),
            (
                "https://v.example",
                "https://[::1:8443",
                "v.toml:2:12: audience \"https://[::1:8443\"",
            ),
            (
                "[[tenant]]",
                "[limits]\nrelease_seconds = 299\n[[tenant]]",
                "v.toml:4:1: limits.result_seconds = 300 is more than limits.release",
            ),
            (
                "[[tenant]]",
                "[limits]\nrelease_seconds = 9\nresult_seconds = 10\n[[tenant]]",
                "v.toml:5:1: limits.result_seconds",
            ),
            // Not the key of the same name in another table.
            (
                "[[tenant]]",
                "[storage]\nconnections = 9\n[limits]\nconnections = 0\n[[tenant]]",
                "v.toml:6:1: limits.connections",
            ),
            (
                "[[tenant]]",
                "[retention]\nunproven = 0\n[[tenant]]",
                "v.toml:4:1: retention.unproven",
            ),
            (
                "[[tenant]]",
                "[limits]\nburst = 0\n[[tenant]]",
                "v.toml:4:1: limits.burst = 0 is not within 1",
            ),
            (
                "[[tenant]]",
                "[retention]\nstale_seconds = -5\n[[tenant]]",
                "v.toml:4:1: retention.stale_seconds = -5 is not within 1",
            ),
            (
                "[[tenant]]",
                "[storage]\nconnections = 0\n[[tenant]]",
                "v.toml:4:1: storage.connections = 0 is not within 1 to 256",
            ),
            (
                "[[tenant]]",
                "[storage]\nconnections = 100000\n[[tenant]]",
                "v.toml:4:1: storage.connections = 100000",
            ),
            (
                "[[tenant]]",
                "[storage]\nkek = \"signing.key\"\n[[tenant]]",
                "v.toml:4:1: storage.kek is the file of signing.key",
            ),
            ("[[tenant]]\nname = \"default\"\n", "", "v.toml:3:1: there is no [[tenant]]"),
        ] {
            let text = GOOD.replacen(change, with, 1);
            assert!(bad(&text).starts_with(place), "{}", bad(&text));
        }
        let limits = GOOD.replacen(
            "[[tenant]]",
            "[limits]\nrelease_seconds = 10\nresult_seconds = 10\n[[tenant]]",
            1,
        );
        assert!(Config::parse(&limits, "v", Path::new("")).is_ok());
        let token = |role: &str, sha: &str| {
            format!("{GOOD}[[tenant.token]]\nname = \"t\"\nrole = {role:?}\nsha256 = {sha:?}\n")
        };
        assert!(bad(&token("root", &"0".repeat(64))).starts_with("v.toml:7:8: role"));
        assert!(bad(&token("audit", "00")).starts_with("v.toml:8:10: sha256"));
        let twice = token("attest", &"0a".repeat(32))
            + &token("operator", &"0A".repeat(32)).replace(GOOD, "");
        assert!(
            bad(&twice).starts_with("v.toml:12:10: sha256 is that of the token"),
            "{}",
            bad(&twice)
        );
        assert!(Config::parse(&token("audit", &"0".repeat(64)), "v", Path::new("")).is_ok());
        let submitter = |policies: &str| {
            format!("{GOOD}[[tenant.submitter]]\nname = \"host-7\"\npolicies = {policies}\n")
        };
        assert!(bad(&submitter("[\"default@1\"]")).starts_with("v.toml:7:13: policy"));
        assert!(bad(&submitter("\"default\"")).starts_with("v.toml:7:12: invalid type"));
        let config = Config::parse(&submitter("[\"default\"]"), "v", Path::new("")).unwrap();
        assert_eq!(config.tenant("default").unwrap().submitters["host-7"], ["default"]);
    }
}
