//! The configuration: one TOML file. Every error names line and column.

mod at;
mod callers;
mod limits;
mod oidc;
mod pkcs11;
mod storage;
mod traces;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use shef_files as files;
use toml::Spanned;

use crate::problem::{Because, Kind, Problem, Result};
use crate::secrets::{credentials, open_private};

use at::{At, place};

pub use callers::{Compat, Tenant, Token};
pub use limits::{Limits, Retention};
pub use oidc::{Grant, Oidc, Source};
pub use pkcs11::Pkcs11;
pub use storage::{Database, Server};
pub use traces::Traces;

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
    storage: storage::StorageFile,
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
    service: callers::ServiceFile,
    #[serde(default)]
    tenant: Vec<Spanned<callers::TenantFile>>,
    #[serde(default)]
    oidc: Vec<Spanned<oidc::OidcFile>>,
    pkcs11: Option<Spanned<pkcs11::Pkcs11File>>,
    traces: Option<traces::TracesFile>,
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
struct SigningFile {
    key: PathBuf,
    retired: Vec<PathBuf>,
}

impl Default for SigningFile {
    fn default() -> Self {
        Self { key: "signing.key".into(), retired: Vec::new() }
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
    /// Providers of OpenID Connect whose tokens identify callers.
    pub oidc: Vec<Oidc>,
    /// Keys in a token.
    pub pkcs11: Option<Pkcs11>,
    /// The collector of spans.
    pub traces: Option<Traces>,
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
            ("the next signing key", self.next_key()),
            ("tls.certificate", self.tls.certificate.clone()),
            ("tls.key", self.tls.key.clone()),
            ("tls.client_ca", self.tls.client_ca.clone()),
            ("the configuration", self.file.clone()),
        ];
        all.extend(self.retired.iter().map(|path| ("signing.retired", path.clone())));
        all.extend(self.tls.crls.iter().map(|path| ("tls.crls", path.clone())));
        let cas = self.oidc.iter().filter_map(|oidc| oidc.source.ca.clone());
        all.extend(cas.map(|path| ("oidc.ca", path)));
        all.extend(self.pkcs11.iter().map(|token| ("pkcs11.pin_file", token.pin_file.clone())));
        if let Some(traces) = &self.traces {
            all.extend(traces.ca.iter().map(|path| ("traces.ca", path.clone())));
            let headers = traces.headers_file.iter();
            all.extend(headers.map(|path| ("traces.headers_file", path.clone())));
        }
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

    /// The names of all tenants.
    #[must_use]
    pub fn tenant_names(&self) -> Vec<&str> {
        self.tenants.iter().map(|tenant| tenant.name.as_str()).collect()
    }

    /// The tenant of this name.
    #[must_use]
    pub fn tenant(&self, name: &str) -> Option<&Tenant> {
        self.tenants.iter().find(|tenant| tenant.name == name)
    }

    /// Where the keys of the identity providers come from.
    #[must_use]
    pub fn oidc_sources(&self) -> Vec<Source> {
        self.oidc.iter().map(|oidc| oidc.source.clone()).collect()
    }

    /// The file beside the signing key in which `shef-verifierd signing rotate` keeps the retired
    /// public keys.
    #[must_use]
    pub fn rotated(&self) -> PathBuf {
        self.beside_key(".retired")
    }

    /// The file beside the signing key in which `shef-verifierd signing prepare` keeps the next one.
    #[must_use]
    pub fn next_key(&self) -> PathBuf {
        self.beside_key(".next")
    }

    fn beside_key(&self, end: &str) -> PathBuf {
        let mut name = self.signing_key.as_os_str().to_owned();
        name.push(end);
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
        kept.oidc.retain(|known| other.oidc.contains(known));
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
            ("traces", self.traces == other.traces),
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
        let credentials = credentials();
        Self::parse_at(&At { name, text, folder, credentials: credentials.as_deref() })
    }

    fn parse_at(at: &At<'_>) -> Result<Self> {
        let At { name, text, folder, .. } = *at;
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
        let database = storage::database(at, &file.storage)?;
        let tenants = callers::tenants(at, &file.tenant)?;
        if tenants.is_empty() {
            return Err(at.error(&(text.len()..text.len()), "there is no [[tenant]]"));
        }
        callers::check_compat(at, &file.compat, &tenants)?;
        limits::check(at, &file.limits, &file.retention, file.storage.connections)?;
        let operators = callers::operators(at, &file.service, &tenants)?;
        let oidc = oidc::providers(at, &file.oidc, &tenants)?;
        let pkcs11 = pkcs11::token(at, file.pkcs11.as_ref())?;
        let traces = traces::traces(at, file.traces.as_ref())?;
        let mut tls = file.tls;
        for path in [&mut tls.certificate, &mut tls.key, &mut tls.client_ca]
            .into_iter()
            .chain(&mut tls.crls)
        {
            *path = at.path(path)?;
        }
        let config = Self {
            file: folder.join(Path::new(name).file_name().unwrap_or_default()),
            listen,
            audience,
            tls,
            database,
            connections: file.storage.connections,
            kek: at.path(&file.storage.kek)?,
            signing_key: at.path(&file.signing.key)?,
            retired: file
                .signing
                .retired
                .iter()
                .map(|path| at.path(path))
                .collect::<Result<_>>()?,
            limits: file.limits,
            retention: file.retention,
            audit: file.audit,
            compat: file.compat,
            operators,
            tenants,
            oidc,
            pkcs11,
            traces,
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
    fn a_path_with_percent_d_is_a_credential_of_systemd() {
        let text = format!(
            "{GOOD}# kek = \"%d/kek\"\n[storage]\nurl = \"postgres://u@h/d\"\npassword_file = \"%d/db\"\nkek = \"%d/kek\"\n\
             [signing]\nkey = \"%d/signing\"\n[tls]\nkey = \"%d/tls\"\n\
             [traces]\nendpoint = \"https://c.example/v1/traces\"\nheaders_file = \"%d/headers\"\n"
        );
        let parse = |text: &str, credentials| {
            let folder = Path::new("/x");
            Config::parse_at(&At { name: "v.toml", text, folder, credentials })
        };
        let config = parse(&text, Some(Path::new("/run/c"))).unwrap();
        let Database::Postgres(server) = config.database else { panic!("no server") };
        let found = [
            server.password_file.unwrap(),
            config.kek,
            config.signing_key,
            config.tls.key,
            config.traces.unwrap().headers_file.unwrap(),
        ];
        for (path, name) in found.iter().zip(["db", "kek", "signing", "tls", "headers"]) {
            assert_eq!(*path, Path::new("/run/c").join(name));
        }
        assert_eq!(config.tls.certificate, Path::new("/x/server.pem"));
        // Without credentials, a value that names one is shown, and no comment.
        let said = parse(&text, None).unwrap_err().detail;
        assert!(said.starts_with("v.toml:8:17: \"%d/db\""), "{said}");
        let said = parse(&text.replace("%d/db", "db"), None).unwrap_err().detail;
        assert!(said.starts_with("v.toml:16:16: \"%d/headers\""), "{said}");
        let token = format!(
            "{GOOD}[pkcs11]\nmodule = \"m.so\"\ntoken = \"t\"\nsigning = \"s\"\npin_file = \"%d/pin\"\n"
        );
        let said = parse(&token, None).unwrap_err().detail;
        assert!(said.starts_with("v.toml:9:12: \"%d/pin\""), "{said}");
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
        let connections = storage::StorageFile::default().connections;
        let bounds = limits::bounds(&limits, &retention, connections);
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

    #[test]
    fn mistakes_about_traces_name_line_and_column() {
        let of =
            |endpoint: &str, more: &str| format!("{GOOD}[traces]\nendpoint = {endpoint:?}\n{more}");
        let parse = |text: &str| Config::parse(text, "v.toml", Path::new("/x"));
        for endpoint in [
            "https://collector.example:4318/v1/traces",
            "http://127.0.0.1:4318/v1/traces",
            "http://[::1]:4318/v1/traces",
            "http://localhost:4318/v1/traces",
        ] {
            let traces = parse(&of(endpoint, "ca = \"c.pem\"\n")).unwrap().traces.unwrap();
            assert_eq!((&*traces.endpoint, traces.sample), (endpoint, 1.0));
            assert_eq!(traces.ca.as_deref(), Some(Path::new("/x/c.pem")));
        }
        for endpoint in [
            "http://collector.example:4318/v1/traces",
            "http://10.0.0.1/v1/traces",
            "http://localhost.example/v1/traces",
            "https://user:password@collector.example/v1/traces",
            "https://collector.example/v1/traces?token=x",
            "https://collector.example/v1/traces#x",
            "collector.example:4318",
            "grpc://collector.example:4317",
            "",
        ] {
            let said = bad(&of(endpoint, ""));
            assert!(said.starts_with("v.toml:6:12: traces.endpoint = "), "{said}");
        }
        for (more, place) in [
            ("sample = 1.5", "v.toml:7:10: traces.sample = 1.5"),
            ("sample = -0.1", "v.toml:7:10: traces.sample"),
            ("sample = nan", "v.toml:7:10: traces.sample"),
            ("sample = \"all\"", "v.toml:7:10: invalid type"),
            ("samples = 1.0", "v.toml:7:1: unknown field"),
        ] {
            let said = bad(&of("https://c.example/v1/traces", more));
            assert!(said.starts_with(place), "{said}");
        }
        let none = format!("{GOOD}[traces]\nsample = 0.5\n");
        assert!(bad(&none).starts_with("v.toml:5:1: missing field `endpoint`"), "{}", bad(&none));
    }

    #[test]
    fn mistakes_of_a_provider_name_line_and_column() {
        let good = format!(
            "{GOOD}[[oidc]]\nissuer = \"https://id.example/realm\"\naudience = \"shef\"\n[[oidc.grant]]\nclaim = \"groups\"\n\
             value = \"fpga\"\ntenant = \"default\"\nrole = \"operator\"\n"
        );
        let config = Config::parse(&good, "v.toml", Path::new("/x")).unwrap();
        assert_eq!((config.oidc[0].grants.len(), config.oidc[0].keys_seconds), (1, 86_400));
        for (change, with, place) in [
            ("https://id", "http://id", "v.toml:6:10: oidc.issuer"),
            ("/realm", "/realm?x=1", "v.toml:6:10: oidc.issuer"),
            ("https://id.example/realm", "id.example", "v.toml:6:10: oidc.issuer"),
            ("\"shef\"", "\"\"", "v.toml:7:12: oidc.audience"),
            (
                "audience = \"shef\"",
                "audience = \"shef\"\njwks_uri = \"x\"",
                "v.toml:8:12: oidc.jwks_uri",
            ),
            (
                "audience = \"shef\"",
                "audience = \"shef\"\nkeys_seconds = 0",
                "v.toml:8:16: oidc.keys_seconds = 0: expected 1 to 2592000",
            ),
            ("\"fpga\"", "7", "v.toml:10:9: invalid type"),
            (
                "tenant = \"default\"\nrole",
                "tenant = \"other\"\nrole",
                "v.toml:11:10: oidc.grant.tenant",
            ),
            ("\"operator\"", "\"root\"", "v.toml:12:8: role"),
        ] {
            let text = good.replacen(change, with, 1);
            assert!(bad(&text).starts_with(place), "{}", bad(&text));
        }
        let nobody = &good[..good.find("[[oidc.grant]]").unwrap()];
        assert!(bad(nobody).contains("no [[oidc.grant]]"), "{}", bad(nobody));
        let twice = good.clone() + &good[GOOD.len()..];
        assert!(bad(&twice).contains("is there twice"), "{}", bad(&twice));
    }
}
