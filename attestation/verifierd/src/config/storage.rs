//! `[storage]`: where to keep data.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::at::At;
use crate::problem::Result;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct StorageFile {
    pub(super) url: Spanned<String>,
    pub(super) password_file: Option<Spanned<PathBuf>>,
    pub(super) kek: PathBuf,
    pub(super) connections: u32,
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
    pub(super) fn has_password(&self) -> bool {
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

/// The database that a file names.
pub(super) fn database(at: &At<'_>, storage: &StorageFile) -> Result<Database> {
    let url = storage.url.get_ref();
    if let Some(path) = url.strip_prefix("sqlite:") {
        // Elsewhere these mean something else: another file, or none.
        let other = ["//", "file:", ":memory:"].iter().any(|begin| path.starts_with(begin));
        if path.is_empty() || other || path.contains('?') {
            let text = format!(
                "storage.url = {url:?}: expected sqlite:FILE, the plain name of a file, without parameters"
            );
            return Err(at.error(&storage.url.span(), text));
        }
        if let Some(file) = &storage.password_file {
            return Err(at.error(&file.span(), "storage.password_file is for postgres:// only"));
        }
        Ok(Database::Sqlite(at.folder.join(path)))
    } else if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        let password = storage.password_file.as_ref();
        let password_file = password.map(|path| at.path(path.get_ref())).transpose()?;
        let server = Server { url: url.clone(), password_file };
        if let Some(file) = password.filter(|_| server.has_password()) {
            let text = "storage.password_file: storage.url holds a password, too; remove it there";
            return Err(at.error(&file.span(), text));
        }
        Ok(Database::Postgres(server))
    } else {
        Err(at.error(&storage.url.span(), "storage.url must begin with sqlite: or postgres://"))
    }
}
