//! `shef-verifierd init`: a working set-up with a local CA. Later on, this module issues further
//! certificates of that CA.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use shef_files::{self as files, Owner};
use shef_proto::hpke_suite::generate_key_pair;
use shef_tls::ca::{Ca, Holder, KeyPair, Revocations, Validity};
use zeroize::Zeroizing;

use crate::auth::Identity;
use crate::config::{Config, same_file};
use crate::problem::{Because, Kind, Result};
use crate::secrets::{SEALED, SystemEntropy, open_private, private_text, random};
use crate::tls;

const CA_NAME: &str = "shef-verifierd CA";
/// Name of the configuration.
const CONFIG: &str = "verifierd.toml";
/// Days for which a certificate is valid.
const DAYS: u32 = 365;

fn write(path: &Path, mode: u32, bytes: &[u8]) -> Result<()> {
    write_in_place_of(path, path, mode, bytes)
}

/// Like `write`, for a file that is to replace `other` under another name. Root writes no key where
/// users other than the service's can exchange it ([`files::check`]).
fn write_in_place_of(path: &Path, other: &Path, mode: u32, bytes: &[u8]) -> Result<()> {
    let cannot =
        |error: std::io::Error| Kind::Material.because(format!("{}: {error}", path.display()));
    files::check(files::folder(path), Owner::Service).map_err(cannot)?;
    files::write_new(path, mode, other, bytes).map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Kind::Exists.because(format!("{} exists", path.display()))
        }
        _ => cannot(error),
    })
}

/// A secret in hexadecimal, as a line; erased when dropped.
pub(crate) fn hex_line(secret: &[u8; 32]) -> Zeroizing<[u8; 65]> {
    let mut line = Zeroizing::new([b'\n'; 65]);
    hex::encode_to_slice(secret, &mut line[..64]).expect("64 digits");
    line
}

/// Writes `NAME.key` and `NAME.pem`: both of them, or neither. They get the owner of `like`, or
/// without it the owner that follows from their own names.
fn write_pair(
    folder: &Path,
    name: &str,
    like: Option<&Path>,
    (key, certificate): (String, String),
) -> Result<()> {
    let [first, second] = ["key", "pem"].map(|end| folder.join(format!("{name}.{end}")));
    write_in_place_of(&first, like.unwrap_or(&first), 0o600, key.as_bytes())?;
    write_in_place_of(&second, like.unwrap_or(&second), 0o644, certificate.as_bytes()).inspect_err(
        |_| {
            let _ = std::fs::remove_file(&first);
        },
    )
}

/// Writes a new secret of 32 bytes to a new file and syncs it; the file is to replace another one.
///
/// # Errors
/// The file exists or cannot be written.
pub(crate) fn write_secret(path: &Path, in_place_of: &Path, secret: &[u8; 32]) -> Result<()> {
    write_in_place_of(path, in_place_of, 0o600, &hex_line(secret)[..])
}

/// Writes a KEK that a token has sealed to a new file, which is to replace another one.
///
/// # Errors
/// The file exists or cannot be written.
pub(crate) fn write_sealed(path: &Path, in_place_of: &Path, sealed: &[u8]) -> Result<()> {
    let line = format!("{SEALED}{}\n", hex::encode(sealed));
    write_in_place_of(path, in_place_of, 0o600, line.as_bytes())
}

fn cannot(error: impl std::fmt::Display) -> crate::problem::Problem {
    Kind::Material.because(format!("certificate: {error}"))
}

/// Reads a file of the service.
fn owned(path: &Path) -> Result<String> {
    files::read(path)
        .map_err(|error| Kind::Material.because(format!("{}: {error}", path.display())))
}

/// Whether the key of the CA beside a configuration, if it is there, is closed to other users: with
/// it they would be any client.
///
/// # Errors
/// It cannot be opened, or is accessible to others.
pub(crate) fn authority_is_private(config: &Path) -> Result<()> {
    let key = files::folder(config).join("ca.key");
    if is_there(&key) { open_private(&key).map(drop) } else { Ok(()) }
}

/// The CA in `folder`.
fn authority(folder: &Path, now: i64) -> Result<Ca> {
    let key_file = folder.join("ca.key");
    let (pem, root) = (private_text(&key_file)?, owned(&folder.join("ca.pem"))?);
    let key = KeyPair::from_pem(&pem).map_err(cannot)?;
    Ca::of_pair(CA_NAME, key, &root, now)
        .map_err(|what| Kind::Material.because(format!("{}: {what}", key_file.display())))
}

/// Generates a key and a certificate by the CA in `folder`, as PEM.
fn issue(folder: &Path, holder: Holder<'_>, now: i64) -> Result<(String, String)> {
    let ca = authority(folder, now)?;
    let key = KeyPair::generate().map_err(cannot)?;
    let certificate = ca.issue(holder, &key, Validity { from: now, days: DAYS }).map_err(cannot)?;
    Ok((key.serialize_pem(), certificate.pem()))
}

/// Rejects a name if its files would collide with other files of the service, except `own`.
fn free(folder: &Path, name: &str, own: &[&str]) -> Result<()> {
    for path in ["", ".key", ".pem"].map(|end| folder.join(format!("{name}{end}"))) {
        if let Some(what) = Config::reserved_in(folder, &path).filter(|what| !own.contains(what)) {
            return Err(Kind::Exists.because(format!(
                "{} is the file of {what}; give another name than {name:?}",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Writes `NAME.key` and `NAME.pem` for a client of this identity.
///
/// # Errors
/// The folder has no CA, the files exist, or the service uses the name.
pub fn client(folder: &Path, name: &str, identity: &Identity, now: i64) -> Result<()> {
    free(folder, name, &[])?;
    let holder = Holder::Client { name: &identity.name, uri: Some(&identity.uri()) };
    write_pair(folder, name, None, issue(folder, holder, now)?)
}

/// Writes the CA's revocation list `crl.pem`: its present entries and these certificates, valid for
/// `days`. Only with `new_list`, a missing list is begun.
///
/// # Errors
/// The folder has no CA, a file is not one certificate of this CA, the list is missing or another
/// CA's, or it cannot be written.
pub fn revoke(
    folder: &Path,
    certificates: &[PathBuf],
    days: u32,
    new_list: bool,
    now: i64,
) -> Result<Listed> {
    let path = folder.join("crl.pem");
    let cannot_write =
        |error: std::io::Error| Kind::Material.because(format!("{}: {error}", path.display()));
    let _alone = files::lock(folder, Owner::Service).map_err(cannot_write)?;
    let there = is_there(&path);
    if !there {
        refuse_lost_list(folder, &path, new_list)?;
    }
    let (root, authority) = (folder.join("ca.pem"), authority(folder, now)?);
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let mut revoked: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    let held = if there { tls::lists_in(&path, owned(&path)?.as_bytes())? } else { vec![] };
    let mut number = 0;
    for der in held {
        // Serial numbers of another CA would name other certificates.
        if !authority.signed(&der, &provider) {
            let (shown, root) = (path.display(), root.display());
            return Err(Kind::Material.because(format!(
                "{shown}: expected a list that the key of {root} signed; restore that one, or move this one elsewhere and add it to tls.crls"
            )));
        }
        let list = Revocations::read(&der)
            .map_err(|error| Kind::Material.because(format!("{}: {error}", path.display())))?;
        number = list.number.max(number);
        for (serial, time) in list.entries {
            revoked.entry(serial).or_insert(time);
        }
    }
    let before = revoked.len();
    for certificate in certificates {
        let der = tls::only_certificate(certificate)?;
        // Anyone can copy the CA's identifier into another certificate.
        if !authority.signed(&der, &provider) {
            return Err(Kind::Material.because(format!(
                "{}: not a certificate that the CA in {} signed",
                certificate.display(),
                folder.display()
            )));
        }
        let (serial, client) = tls::serial_of_client(certificate, &der)?;
        if !client {
            return Err(Kind::Material.because(format!(
                "{}: not a client's certificate, and this list refuses no others",
                certificate.display()
            )));
        }
        revoked.entry(serial).or_insert(now);
    }
    let validity = Validity { from: now, days: days.max(1) };
    let (all, added) = (revoked.len(), revoked.len() - before);
    let list = authority.revocations_above(revoked, validity, number);
    let pem = list.and_then(|list| list.pem()).map_err(cannot)?;
    files::replace(&path, 0o644, pem.as_bytes()).map_err(cannot_write)?;
    Ok(Listed { all, added, until: validity.list_end() })
}

/// The entries of a revocation list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// All of them.
    pub all: usize,
    /// Those that are new.
    pub added: usize,
    /// When the list ends, in seconds since 1970.
    pub until: i64,
}

/// Whether a file has this name, also if it is a link to a file that is missing.
#[must_use]
pub fn is_there(path: &Path) -> bool {
    path.is_symlink() || path.exists()
}

/// Refuses to begin a list where there may have been one: its entries would be let in again. The
/// configuration of the service may be elsewhere, or name the list through a link.
fn refuse_lost_list(folder: &Path, path: &Path, new_list: bool) -> Result<()> {
    let config = folder.join(CONFIG);
    let lists = if is_there(&config) {
        Config::parse(&owned(&config)?, &config.display().to_string(), folder)?.tls.crls
    } else {
        Vec::new()
    };
    let (shown, config) = (path.display(), config.display());
    if let Some(lost) = lists.iter().find(|list| same_file(list, path) || !list.exists()) {
        let lost = lost.display();
        return Err(Kind::Material.because(format!(
            "{lost} is missing, and {config} names it: a new list would let in again whom it refused. Restore it; for a new list, take it from the configuration first"
        )));
    }
    if new_list {
        return Ok(());
    }
    Err(Kind::Material.because(format!(
        "{shown} is missing: bring the present list of the service here, or pass --new-list if there is none"
    )))
}

/// A host name or address in the form that certificates use.
///
/// # Errors
/// Not a valid host name or address.
pub fn host(text: &str) -> Result<String> {
    let expected = "expected a host name or an address, such as \"localhost\" or \"127.0.0.1\"";
    shef_tls::ca::host(text)
        .ok_or_else(|| Kind::Config.because(format!("host {text:?}: {expected}")))
}

/// Writes `NAME.key` and `NAME.pem` for a server at these host names and addresses.
///
/// # Errors
/// A host is neither a name nor an address, the folder has no CA, the files exist, or the service
/// uses the name.
pub fn server(folder: &Path, name: &str, hosts: &[String], now: i64) -> Result<()> {
    free(folder, name, &["tls.certificate", "tls.key"])?;
    let hosts = &hosts.iter().map(|text| host(text)).collect::<Result<Vec<_>>>()?;
    let holder = Holder::Server { name: hosts.first().map_or("localhost", String::as_str), hosts };
    write_pair(folder, name, Some(&folder.join("server.key")), issue(folder, holder, now)?)
}

/// Parameters of [`init`].
#[derive(Clone, Debug)]
pub struct Setup {
    /// Address to listen on.
    pub listen: String,
    /// Host names and addresses of the server certificate.
    pub hosts: Vec<String>,
    /// Audience that evidence must name.
    pub audience: String,
    /// First tenant.
    pub tenant: String,
}

/// Creates a set-up in an empty or missing folder: CA, server certificate, an operator's client
/// certificate, signing key, KEK, configuration.
///
/// # Errors
/// The configuration would not be valid, a host is neither a name nor an address, the folder is not
/// empty, or it cannot be written. The folder is then left as it was.
pub fn init(folder: &Path, setup: &Setup, now: i64) -> Result<()> {
    let (config, text) = (folder.join(CONFIG), config_text(setup));
    Config::parse(&text, &config.display().to_string(), folder)?;
    setup.hosts.iter().try_for_each(|text| host(text).map(drop))?;
    let failed = |error: std::io::Error| {
        let kind = match error.kind() {
            std::io::ErrorKind::DirectoryNotEmpty => Kind::Exists,
            _ => Kind::Material,
        };
        kind.because(format!("{}: {error}", folder.display()))
    };
    let mut part = None;
    files::set_up_folder(folder, 0o755, CONFIG, failed, |inside| {
        part = Some(inside.display().to_string());
        fill(inside, &text, setup, now)
    })
    .map_err(|mut problem| {
        // The problem names the final folder.
        if let Some(part) = part {
            problem.detail = problem.detail.replace(&part, &folder.display().to_string());
        }
        problem
    })
}

/// Creates the files of a set-up.
fn fill(folder: &Path, config: &str, setup: &Setup, now: i64) -> Result<()> {
    let key = KeyPair::generate().map_err(cannot)?;
    write(&folder.join("ca.key"), 0o600, Zeroizing::new(key.serialize_pem()).as_bytes())?;
    // Verifiers look for the CA of a list by name.
    let name = shef_tls::ca::name_with_key(CA_NAME, &key);
    let (_, certificate) = Ca::new(&name, key, now).map_err(cannot)?;
    write(&folder.join("ca.pem"), 0o644, certificate.pem().as_bytes())?;
    server(folder, "server", &setup.hosts, now)?;
    let operator = Identity {
        tenant: setup.tenant.clone(),
        name: "operator".into(),
        role: crate::role::Role::Operator,
    };
    client(folder, "operator", &operator, now)?;
    let (signing, _) = generate_key_pair(&mut SystemEntropy);
    write(&folder.join("signing.key"), 0o600, &hex_line(&signing.to_bytes())[..])?;
    let kek = folder.join("kek");
    write_secret(&kek, &kek, &Zeroizing::new(random()))?;
    write(&folder.join(CONFIG), 0o644, config.as_bytes())
}

fn config_text(setup: &Setup) -> String {
    format!(
        "# Configuration of shef-verifierd. Relative paths start at this folder. SIGHUP reads it again.\n\
         listen = {:?}\n\
         # What evidence must name, and the issuer of results.\n\
         audience = {:?}\n\n\
         [tls]\n\
         certificate = \"server.pem\"\n\
         key = \"server.key\"\n\
         client_ca = \"ca.pem\"\n\
         # Revocation lists of that CA, as `shef-verifierd revoke` writes one: crls = [\"crl.pem\"]. One past its end refuses every certificate.\n\
         # required: no connection without a client certificate; optional: or a bearer token; off.\n\
         client_auth = \"optional\"\n\n\
         [storage]\n\
         # sqlite:FILE, or postgres://USER@HOST/DATABASE for several replicas.\n\
         url = \"sqlite:verifierd.db\"\n\
         # Keys are sealed under it. Keep a copy where the database's backups are not.\n\
         kek = \"kek\"\n\n\
         [signing]\n\
         # `shef-verifierd signing rotate` exchanges it.\n\
         key = \"signing.key\"\n\n\
         [service]\n\
         # Who sees the metrics of all tenants: TENANT/NAME of certificates and tokens. An auditor of a tenant sees those of the tenant.\n\
         operators = [{:?}]\n\n\
         [[tenant]]\n\
         name = {:?}\n\
         # `shef-verifierd token` makes bearer tokens and prints an entry [[tenant.token]] for here.\n",
        setup.listen,
        setup.audience,
        format!("{}/operator", setup.tenant),
        setup.tenant
    )
}
