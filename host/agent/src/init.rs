//! `shef-agent init`, `add-owner`, `renew` and `revoke`: the agent's CA, certificates,
//! configuration, systemd unit.
//!
//! The agent's folder is filled from one inside it, the configuration last. An owner's folder is
//! built next to its final place and moved there when it is complete. A replaced file is written
//! next to the old one and renamed.

use std::fs;
use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use shef_console::shell::word;
use shef_device::is_name;
use shef_device::{Iommu, Uri};
use shef_files::{self as files, FolderLock, Owner, PrivateError};
use shef_proto::name::digest;
use shef_tls::ca::{Ca, Certificate, Holder, KeyPair, Validity, host};

use crate::AgentError;
use crate::config::check_device;
use crate::identity::{Revoked, key_of, noted};

/// Validity of a certificate, in days.
const DAYS: u32 = 730;
/// Common name of the CA.
const CA_NAME: &str = "shef-agent CA";
/// The unit in the repository, for an agent in /etc/shef-agent.
const UNIT: &str = include_str!("../shef-agent.service");
/// Owners' certificates, one per line: SHA-256 of the TBSCertificate, the owner's name, SHA-256 of
/// the whole certificate, which the log shows, and SHA-256 of the public key. Older lines lack the
/// key; version 0.1 wrote the SHA-256 of the whole certificate and the name.
const ISSUED: &str = "issued";
/// The files of an owner.
const OWNERS_FILES: [&str; 4] = ["key.pem", "cert.pem", "ca.pem", "client.toml"];
/// The configuration.
pub(crate) const CONFIG: &str = "agent.toml";
/// Revoked certificates, in the same format.
pub(crate) const REVOKED: &str = "revoked";

/// What to set up.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Folder for all files; created if it does not exist.
    pub dir: PathBuf,
    /// Address that the agent listens on.
    pub listen: String,
    /// Names and addresses that owners use to reach the agent.
    pub names: Vec<String>,
    /// Owners that get a certificate.
    pub owners: Vec<String>,
    /// Devices by name.
    pub devices: Vec<(String, Uri)>,
}

/// Sets up an agent. Overwrites no file.
///
/// # Errors
/// SHEF-AGT-016 for a bad name, SHEF-AGT-017.
pub fn init(plan: &Plan) -> Result<(), AgentError> {
    let devices: Vec<&String> = plan.devices.iter().map(|(name, _)| name).collect();
    for (what, names) in [("--owner", plan.owners.iter().collect()), ("--device", devices)] {
        for (i, name) in names.iter().enumerate() {
            check(name)?;
            if names[..i].contains(name) {
                return Err(AgentError::Config {
                    message: format!("{what} {name} is given twice: expected each name once"),
                });
            }
        }
    }
    let expected = "expected a host name or address that owners connect to, such as card.example \
        or 10.0.0.7";
    let bad =
        |text: &String| AgentError::Config { message: format!("--name {text:?}: {expected}") };
    let hosts = plan
        .names
        .iter()
        .map(|text| host(text).ok_or_else(|| bad(text)))
        .collect::<Result<Vec<_>, _>>()?;
    for (name, uri) in &plan.devices {
        check_device(uri)
            .map_err(|what| AgentError::Config { message: format!("--device {name}: {what}") })?;
    }
    let listen: std::net::SocketAddr = plan.listen.parse().map_err(|e| AgentError::Config {
        message: format!(
            "--listen {:?}: {e}; expected ADDRESS:PORT, such as 0.0.0.0:7433",
            plan.listen
        ),
    })?;
    let whole: PathBuf = std::path::absolute(&plan.dir)
        .map_err(|e| AgentError::file("find", &plan.dir, &e))?
        .components()
        .collect();
    let mut part = None;
    let failed = |e: std::io::Error| AgentError::file("make", &plan.dir, &e);
    files::set_up_folder(&plan.dir, 0o700, CONFIG, failed, |dir| {
        part = Some(dir.to_owned());
        let key = KeyPair::generate().map_err(|e| wrong(&e))?;
        private(&dir.join("ca.key"), key.serialize_pem().as_bytes())?;
        let (ca, certificate) = Ca::new(CA_NAME, key, now()).map_err(|e| wrong(&e))?;
        public(&dir.join("ca.pem"), certificate.pem().as_bytes())?;
        let key = KeyPair::generate().map_err(|e| wrong(&e))?;
        let cert = issue(&ca, agent(&hosts), &key)?;
        private(&dir.join("agent.key"), key.serialize_pem().as_bytes())?;
        public(&dir.join("agent.pem"), cert.pem().as_bytes())?;
        public(&dir.join("names"), (hosts.join("\n") + "\n").as_bytes())?;
        public(&dir.join(ISSUED), b"")?;
        public(
            &dir.join(REVOKED),
            b"# Revoked certificates: `shef-agent revoke` adds them, and a running agent reads this file again when it changes.\n",
        )?;
        folder(&dir.join("owners"))?;
        for owner in &plan.owners {
            certify(dir, owner, &ca)?;
        }
        public(&dir.join("shef-agent.service"), unit(&whole)?.as_bytes())?;
        public(&dir.join(CONFIG), config(listen, &plan.devices).as_bytes())
    })
    .map_err(|error| of_final(error, part, &plan.dir))
}

/// A private key, whose file has none of the permissions `others` for other users: with it they
/// would be the agent, or any owner.
fn key_pair(path: &Path, others: u32) -> Result<KeyPair, AgentError> {
    let read = |e: &dyn std::fmt::Display| AgentError::file("read", path, e);
    let file = files::open_private(path, others).map_err(|error| match error {
        PrivateError::Open(error) => read(&error),
        PrivateError::Mode(mode) => read(&format_args!(
            "its mode is {mode:03o}, so other users can read or replace this private key: expected \
            600 (`chmod 600 {}`)",
            word(path)
        )),
    })?;
    let pem = String::from_utf8(files::contents(&file).map_err(|e| read(&e))?);
    KeyPair::from_pem(&pem.map_err(|e| read(&e.utf8_error()))?).map_err(|e| read(&e))
}

/// The CA of the folder.
fn authority(dir: &Path) -> Result<Ca, AgentError> {
    let path = dir.join("ca.key");
    let key = key_pair(&path, 0o077)?;
    let root = dir.join("ca.pem");
    let certificate = files::read(&root).map_err(|e| AgentError::file("read", &root, &e))?;
    Ca::of_pair(CA_NAME, key, &certificate, now())
        .map_err(|what| AgentError::file("use", &path, &what))
}

/// Issues a certificate for one more owner, or completes an interrupted call for this owner.
///
/// # Errors
/// SHEF-AGT-016 for a bad name or a revoked owner, SHEF-AGT-017.
pub fn add_owner(dir: &Path, owner: &str) -> Result<(), AgentError> {
    check(owner)?;
    let _alone = lock_with_owners(dir)?;
    let mine = dir.join("owners").join(owner);
    if !mine.exists()
        && let Some((part, cert)) = interrupted(dir, owner)?
    {
        refuse_revoked(dir, owner, &cert)?;
        return fs::rename(&part, &mine).map_err(|e| AgentError::file("rename", &part, &e));
    }
    if mine.exists() {
        let message = format!(
            "owner {owner} has a folder, {}: `shef-agent renew --dir {} {owner}` issues a new certificate",
            mine.display(),
            word(dir)
        );
        return Err(AgentError::Files { message });
    }
    refuse_used(dir, owner)?;
    certify(dir, owner, &authority(dir)?)
}

/// The complete folder of an owner that an interrupted command recorded, but did not rename, and the
/// certificate in it.
fn interrupted(
    dir: &Path,
    owner: &str,
) -> Result<Option<(PathBuf, CertificateDer<'static>)>, AgentError> {
    let (owners, record) = (dir.join("owners"), dir.join(ISSUED));
    let read = |e: std::io::Error| AgentError::file("read", &owners, &e);
    let issued = files::read(&record).map_err(|e| AgentError::file("read", &record, &e))?;
    for entry in fs::read_dir(&owners).map_err(read)? {
        let entry = entry.map_err(read)?;
        let name = entry.file_name();
        let digits = name
            .to_str()
            .and_then(|name| name.strip_prefix(owner)?.strip_prefix('.')?.strip_suffix(".part"));
        if !digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit())) {
            continue;
        }
        let path = entry.path();
        let there = |file| fs::symlink_metadata(path.join(file)).is_ok_and(|found| found.is_file());
        let Ok(Some(cert)) = certificate(&path.join("cert.pem")) else { continue };
        let Some([name, _]) = noted(&cert) else { continue };
        let recorded = |one: Issued<'_>| one.owner == owner && one.has(&name);
        if OWNERS_FILES.into_iter().all(there)
            && issued.lines().filter_map(Issued::of).any(recorded)
        {
            return Ok(Some((path, cert)));
        }
    }
    Ok(None)
}

/// Refuses a name that another key has had: its certificates may still be valid, and a card in its
/// hands would be shared; or they are revoked, and the name would be let in again.
fn refuse_used(dir: &Path, owner: &str) -> Result<(), AgentError> {
    let Some(file) = used(dir, owner)? else { return Ok(()) };
    Err(AgentError::Config {
        message: format!(
            "{} names an owner {owner}, who has another key: expected a name that no owner has had",
            file.display()
        ),
    })
}

/// Issues a new certificate for `owner`'s key, or for the agent's key if `owner` is `None`. The
/// previous certificate stays valid until it expires or is revoked. Returns the file.
///
/// # Errors
/// SHEF-AGT-016 for a bad name or a revoked owner, SHEF-AGT-017, also if the key is no longer in
/// the folder.
pub fn renew(dir: &Path, owner: Option<&str>) -> Result<PathBuf, AgentError> {
    reissue(dir, owner, false)
}

/// Issues a new certificate to an owner like [`renew`], even if certificates of that key were
/// revoked.
///
/// # Errors
/// Those of [`renew`], except for a revoked owner.
pub fn readmit(dir: &Path, owner: &str) -> Result<PathBuf, AgentError> {
    reissue(dir, Some(owner), true)
}

/// The file that names an owner, if there is or was one of this name.
fn used(dir: &Path, owner: &str) -> Result<Option<PathBuf>, AgentError> {
    let path = dir.join(ISSUED);
    let text = files::read(&path).map_err(|e| AgentError::file("read", &path, &e))?;
    if text.lines().filter_map(Issued::of).any(|one| one.owner == owner) {
        return Ok(Some(path));
    }
    Ok(load_list(dir)?.of_owner(owner).next().map(|_| dir.join(REVOKED)))
}

fn reissue(dir: &Path, owner: Option<&str>, readmit: bool) -> Result<PathBuf, AgentError> {
    if let Some(owner) = owner {
        check(owner)?;
    }
    let _alone = lock_with_owners(dir)?;
    let ca = authority(dir)?;
    let read = |path: &Path| files::read(path).map_err(|e| AgentError::file("read", path, &e));
    let (key, file) = match owner {
        Some(owner) => {
            let mine = dir.join("owners").join(owner);
            if !mine.exists() {
                let (folder, dir_text) = (mine.display(), word(dir));
                let message = match used(dir, owner)? {
                    Some(_) if interrupted(dir, owner)?.is_some() => format!(
                        "no folder {folder}, as `shef-agent add-owner` was interrupted: `shef-agent add-owner --dir {dir_text} {owner}` completes it"
                    ),
                    None => format!(
                        "no owner {owner} in {}: `shef-agent add-owner --dir {dir_text} {owner}` makes one",
                        dir.join("owners").display()
                    ),
                    Some(_) => format!(
                        "no folder {folder}: a new certificate needs the owner's key.pem in it. Put the folder back, or `shef-agent revoke --dir {dir_text} {owner}` and \
                         `shef-agent add-owner --dir {dir_text} NEW-NAME`"
                    ),
                };
                return Err(AgentError::Files { message });
            }
            (mine.join("key.pem"), mine.join("cert.pem"))
        }
        None => (dir.join("agent.key"), dir.join("agent.pem")),
    };
    // As `shef_remote::open_key`, with which agent and owner read the same files.
    let key = key_pair(&key, 0o027)?;
    let cert = match owner {
        Some(name) => {
            let cert = issue(&ca, Holder::Client { name, uri: None }, &key)?;
            if !readmit {
                refuse_revoked(dir, name, cert.der())?;
            }
            note(dir, name, cert.der())?;
            cert
        }
        None => {
            let path = dir.join("names");
            let hosts: Option<Vec<String>> = read(&path)?.lines().map(shef_tls::ca::host).collect();
            let hosts = hosts.filter(|hosts| !hosts.is_empty()).ok_or_else(|| {
                let expected = "expected a host name or an address in each line";
                AgentError::file("use", &path, &expected)
            })?;
            issue(&ca, agent(&hosts), &key)?
        }
    };
    replace(&file, cert.pem().as_bytes())?;
    Ok(file)
}

/// Refuses a certificate for a key that has a revoked one. An old line of the issued certificates
/// does not name its key: it counts for the owner of that name. The list of revoked certificates
/// names no keys either: an entry of this owner counts if the issued certificates do not have it,
/// as after that file was emptied. The owner's present certificate counts on its own.
///
/// # Errors
/// SHEF-AGT-016 with what to do, SHEF-AGT-017.
fn refuse_revoked(dir: &Path, owner: &str, der: &CertificateDer<'_>) -> Result<(), AgentError> {
    let (revoked, path) = (load_list(dir)?, dir.join(ISSUED));
    let text = files::read(&path).map_err(|e| AgentError::file("read", &path, &e))?;
    let key = key_of(der);
    let same = |one: &Issued<'_>| match (one.key, key.as_deref()) {
        (Some(of), Some(key)) => of == key,
        _ => one.owner == owner,
    };
    let mine = dir.join("owners").join(owner);
    let present = certificate(&mine.join("cert.pem"))?.and_then(|der| noted(&der));
    let issued: Vec<_> = text.lines().filter_map(Issued::of).collect();
    let by_key =
        issued.iter().find(|one| same(one) && one.is_in(&revoked)).map(|one| one.fingerprint);
    let itself = || present.iter().flatten().map(String::as_str).find(|name| revoked.lists(name));
    let by_name = || revoked.of_owner(owner).find(|name| !issued.iter().any(|one| one.has(name)));
    let Some(found) = by_key.or_else(itself).or_else(by_name) else { return Ok(()) };
    let shown = word(dir);
    // Without a folder there is no key to let in again.
    let again = match mine.exists() {
        true => format!(
            ", and `shef-agent renew --dir {shown} {owner} --readmit` lets this key in again"
        ),
        false => String::new(),
    };
    Err(AgentError::Config {
        message: format!(
            "{owner} is revoked: {} lists the certificate {found} of {owner} or of the same key; `shef-agent add-owner --dir {shown} NEW-NAME` makes an owner with a key of its \
             own{again}",
            dir.join(REVOKED).display()
        ),
    })
}

/// The certificate in a file; `None` if there is no file.
fn certificate(path: &Path) -> Result<Option<CertificateDer<'static>>, AgentError> {
    let pem = match files::read(path) {
        Ok(pem) => pem,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(AgentError::file("read", path, &error)),
    };
    let der = CertificateDer::from_pem_slice(pem.as_bytes())
        .map_err(|e| AgentError::file("read", path, &e))?;
    Ok(Some(der))
}

/// Result of a revocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revocation {
    /// Number of certificates added to the list.
    pub added: usize,
    /// Owner of the certificates; `None` if this CA's record does not have them.
    pub owner: Option<String>,
    /// Files that could not be read, and lines that the record of issued certificates has lost:
    /// certificates that only they name are not in the list.
    pub unread: Vec<String>,
}

/// A line of the record of issued certificates.
struct Issued<'a> {
    /// Digest that identifies the certificate in the revocation list.
    fingerprint: &'a str,
    owner: &'a str,
    /// SHA-256 of the whole certificate.
    whole: Option<&'a str>,
    /// SHA-256 of the public key.
    key: Option<&'a str>,
}

/// The owners in `issued`, next to the CA's certificate; `None` if there is no such record, as for
/// a CA that `init` did not create.
pub(crate) fn issued_to(ca: &Path) -> Option<std::collections::HashSet<String>> {
    let text = files::read_linked(&files::folder(ca).join(ISSUED)).ok()?;
    Some(text.lines().filter_map(Issued::of).map(|one| one.owner.to_owned()).collect())
}

impl<'a> Issued<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let mut words = line.split_whitespace();
        Some(Self {
            fingerprint: words.next()?,
            owner: words.next()?,
            whole: words.next(),
            key: words.next(),
        })
    }

    fn is_in(&self, revoked: &Revoked) -> bool {
        [Some(self.fingerprint), self.whole].into_iter().flatten().any(|name| revoked.lists(name))
    }

    fn has(&self, fingerprint: &str) -> bool {
        self.fingerprint == fingerprint || self.whole == Some(fingerprint)
    }
}

/// Adds every certificate of an owner, or the one with a fingerprint, to the revocation list.
/// [`crate::confirm`] reports whether a running agent applies it. Only the list must be readable;
/// [`Revocation::unread`] names what else could not be read, or is lost.
///
/// # Errors
/// SHEF-AGT-016 if there is no match or `whom` is ambiguous, SHEF-AGT-017.
pub fn revoke(dir: &Path, whom: &str) -> Result<Revocation, AgentError> {
    let read = |path: &Path| files::read(path).map_err(|e| AgentError::file("read", path, &e));
    let list = dir.join(REVOKED);
    let _alone = lock(dir)?;
    let before = load_list(dir)?;
    let mut text = read(&list)?;
    // A hand-edited file may lack the last line break.
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let mut unread = Vec::new();
    let mut or_note = |error: AgentError| {
        unread.push(format!("{error}. Certificates that only this file names are not in the list"));
    };
    let record = dir.join(ISSUED);
    let (issued, is_read) = match read(&record) {
        Ok(issued) => (issued, true),
        Err(error) => {
            or_note(error);
            (String::new(), false)
        }
    };
    let issued: Vec<Issued<'_>> = issued.lines().filter_map(Issued::of).collect();
    let bad = |message| Err(AgentError::Config { message });
    // The certificate in the owner's folder counts even if the record has lost it.
    let present = match is_name(whom) {
        true => {
            let mine = dir.join("owners").join(whom);
            let found = check_owner(dir, &mine).and_then(|()| certificate(&mine.join("cert.pem")));
            let found = found.unwrap_or_else(|error| {
                or_note(error);
                None
            });
            found.and_then(|der| noted(&der))
        }
        false => None,
    };
    let unrecorded = present
        .iter()
        .find(|names| !issued.iter().any(|one| names.iter().any(|name| one.has(name))));
    if unrecorded.is_some() && is_read {
        unread.push(format!(
            "{} has lost lines: it does not have the certificate in {}. Earlier certificates of {whom} are not in the list: put {ISSUED} back from a copy and revoke {whom} again, \
             or revoke the fingerprints that the log has of {whom}",
            record.display(),
            dir.join("owners").join(whom).join("cert.pem").display()
        ));
    }
    let unrecorded = unrecorded.map(|[fingerprint, whole]| Issued {
        fingerprint,
        owner: whom,
        whole: Some(whole),
        key: None,
    });
    let named: Vec<&Issued<'_>> =
        issued.iter().filter(|one| one.owner == whom).chain(&unrecorded).collect();
    let fingerprint = digest(whom);
    let meant: Vec<&Issued<'_>> = issued
        .iter()
        .filter(|one| fingerprint.as_deref().is_some_and(|digits| one.has(digits)))
        .collect();
    let (found, owner): (Vec<String>, _) = match (&named[..], &meant[..], fingerprint) {
        ([], [], Some(fingerprint)) => (vec![fingerprint], None),
        ([], [], None) => {
            let expected = format!(
                "no certificate was issued to {whom:?}: expected the name of an owner in {ISSUED}, or a fingerprint of 64 hexadecimal digits"
            );
            let lines: Vec<String> = [expected].into_iter().chain(unread).collect();
            return bad(lines.join("; "));
        }
        ([_, ..], [_, ..], _) => {
            return bad(format!(
                "{whom} is the name of an owner and the fingerprint of a certificate of {}: expected another fingerprint of that certificate, from {ISSUED}",
                meant[0].owner
            ));
        }
        (these, [], _) | ([], these, _) => (
            these.iter().map(|one| one.fingerprint.to_owned()).collect(),
            these.first().map(|one| one.owner.to_owned()),
        ),
    };
    let comment = owner.as_deref().unwrap_or(whom);
    let new: Vec<_> = found.iter().filter(|fingerprint| !before.lists(fingerprint)).collect();
    new.iter().for_each(|fingerprint| text.push_str(&format!("{fingerprint} # {comment}\n")));
    // Also if nothing is new: an agent that could not read the list before reads it again.
    replace(&list, text.as_bytes())?;
    Ok(Revocation { added: new.len(), owner, unread })
}

/// The revocation list of a folder.
fn load_list(dir: &Path) -> Result<Revoked, AgentError> {
    let list = dir.join(REVOKED);
    if !list.exists() {
        let (shown, quoted) = (list.display(), word(&list));
        let message = format!(
            "there is no {shown}: restore it from a backup, or run `install -m 644 /dev/null \
            {quoted}` for an empty one, which revokes no certificate"
        );
        return Err(AgentError::Files { message });
    }
    Revoked::load(&list)
}

/// The agent's certificate holder, with these names and addresses.
fn agent(hosts: &[String]) -> Holder<'_> {
    Holder::Server { name: "shef-agent", hosts }
}

/// Writes an owner's certificate, key and client.toml, for the owner's machine.
fn certify(dir: &Path, owner: &str, ca: &Ca) -> Result<(), AgentError> {
    made(&dir.join("owners").join(owner), |mine| {
        let key = KeyPair::generate().map_err(|e| wrong(&e))?;
        let cert = issue(ca, Holder::Client { name: owner, uri: None }, &key)?;
        private(&mine.join("key.pem"), key.serialize_pem().as_bytes())?;
        public(&mine.join("cert.pem"), cert.pem().as_bytes())?;
        let root = dir.join("ca.pem");
        public(
            &mine.join("ca.pem"),
            files::read(&root).map_err(|e| AgentError::file("read", &root, &e))?.as_bytes(),
        )?;
        public(
            &mine.join("client.toml"),
            b"# SHEF_TLS_CONFIG names this file; paths are beside it.\nca = \"ca.pem\"\ncert = \"cert.pem\"\nkey = \"key.pem\"\n",
        )?;
        // Recorded before it is delivered: no certificate is issued that could not be revoked.
        note(dir, owner, cert.der())
    })
}

/// Adds a certificate to the record of issued ones.
fn note(dir: &Path, owner: &str, der: &CertificateDer<'_>) -> Result<(), AgentError> {
    let path = dir.join(ISSUED);
    let unread = || AgentError::file("write", &path, &"the certificate cannot be parsed");
    let ([name, whole], key) = (noted(der).ok_or_else(unread)?, key_of(der).ok_or_else(unread)?);
    let issued = files::read(&path).map_err(|e| AgentError::file("read", &path, &e))?;
    replace(&path, format!("{issued}{name} {owner} {whole} {key}\n").as_bytes())
}

/// Creates a missing folder completely or not at all ([`files::make_folder`]).
fn made(path: &Path, fill: impl FnOnce(&Path) -> Result<(), AgentError>) -> Result<(), AgentError> {
    let mut part = None;
    let failed = |e: std::io::Error| AgentError::file("make", path, &e);
    files::make_folder(path, 0o700, failed, |beside| {
        part = Some(beside.to_owned());
        fill(beside)
    })
    .map_err(|error| of_final(error, part, path))
}

/// An error that names the final folder in place of the one that was filled.
fn of_final(error: AgentError, part: Option<PathBuf>, path: &Path) -> AgentError {
    match (error, part) {
        (AgentError::Files { message }, Some(part)) => AgentError::Files {
            message: message.replace(&*part.to_string_lossy(), &path.to_string_lossy()),
        },
        (error, _) => error,
    }
}

/// Replaces a file atomically.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), AgentError> {
    files::replace(path, 0o644, bytes).map_err(|e| AgentError::file("write", path, &e))
}

/// The error of a folder in which root must not change files, or which this user cannot change.
fn refused(dir: &Path, e: &std::io::Error) -> AgentError {
    match (e.kind(), e.raw_os_error()) {
        // The system's own error: this user has no permission.
        (std::io::ErrorKind::PermissionDenied, Some(_)) => {
            let shown = dir.display();
            AgentError::Files {
                message: format!(
                    "cannot change {shown}: {e}; run it as root (or as the user who owns {shown})"
                ),
            }
        }
        // No command for the folder mends the path to it.
        (std::io::ErrorKind::PermissionDenied, None) if files::way(dir).is_err() => {
            AgentError::Files { message: e.to_string() }
        }
        // With files of root's in it, the folder was an agent's before others could change it.
        (std::io::ErrorKind::PermissionDenied, None)
            if ["ca.pem", ISSUED].into_iter().all(|file| is_roots(&dir.join(file))) =>
        {
            let (folder, key) = (word(dir), word(&dir.join("agent.key")));
            let message = format!(
                "{e}; `chown -R root: {folder} && chmod 755 {folder} && chmod -R go-w {folder} && chown -h shef-agent: {key}` makes it one, and the agent \
                 still reads its key"
            );
            AgentError::Files { message }
        }
        (std::io::ErrorKind::PermissionDenied, None) => {
            let message = format!(
                "{e}. Root owns no ca.pem and {ISSUED} in {}, so other users may have put its files there: name the agent's folder, or put it back from a copy",
                dir.display()
            );
            AgentError::Files { message }
        }
        _ => AgentError::file("lock", dir, e),
    }
}

/// Whether a path is a regular file of root's.
fn is_roots(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.uid() == 0)
}

/// Waits until no other command changes the agent's files. Root changes no files in folders of
/// another user, who could put links in their place.
fn lock(dir: &Path) -> Result<FolderLock, AgentError> {
    // For a folder that is not an agent's, the error suggests no command.
    let has = |file| match fs::symlink_metadata(dir.join(file)) {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => Err(refused(dir, &e)),
        found => Ok(found.is_ok()),
    };
    // To revoke a fingerprint, the list is enough.
    let is_agents = has(REVOKED)? || has("ca.pem")? && has(ISSUED)?;
    if !is_agents {
        let (shown, quoted) = (dir.display(), word(dir));
        let message = format!(
            "{shown} is not an agent's folder: expected ca.pem and {ISSUED} in it, which \
            `shef-agent init --dir {quoted}` makes"
        );
        return Err(AgentError::Files { message });
    }
    files::lock(dir, Owner::Root).map_err(|e| refused(dir, &e))
}

/// Takes the lock for a command that also writes below `owners`: each folder there may have another
/// owner.
fn lock_with_owners(dir: &Path) -> Result<FolderLock, AgentError> {
    let alone = lock(dir)?;
    let owners = dir.join("owners");
    if !owners.is_symlink() && !owners.exists() {
        return Ok(alone);
    }
    let failed = |e| AgentError::file("read", &owners, &e);
    for folder in fs::read_dir(&owners).map_err(failed)? {
        check_owner(dir, &folder.map_err(failed)?.path())?;
    }
    Ok(alone)
}

/// Rejects an owner's folder that another user can change. A missing folder is no error.
fn check_owner(dir: &Path, folder: &Path) -> Result<(), AgentError> {
    for folder in [&dir.join("owners"), folder] {
        match files::check(folder, Owner::Root) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            checked => checked.map_err(|e| refused(dir, &e))?,
        }
    }
    Ok(())
}

/// The systemd unit of an agent in `dir`.
///
/// # Errors
/// The path holds a line break or is not UTF-8, which a unit cannot name.
fn unit(dir: &Path) -> Result<String, AgentError> {
    let path = dir.to_str().filter(|path| !path.contains(|c: char| c.is_control()));
    let path = path.ok_or_else(|| {
        AgentError::file(
            "name",
            dir,
            &"a systemd unit names only folders in UTF-8 without control characters",
        )
    })?;
    // systemd.unit(5): `%` begins a specifier. systemd.service(5): `$` begins a variable in
    // ExecStart=, and quotes preserve white space.
    let specifiers = path.replace('%', "%%");
    let quoted = specifiers.replace('\\', "\\\\").replace('"', "\\\"");
    let mut text = String::with_capacity(UNIT.len());
    for line in UNIT.split_inclusive('\n') {
        let command = line.starts_with("Exec");
        let name = if command { quoted.replace('$', "$$") } else { quoted.clone() };
        text.push_str(&quote_words(line, &name));
    }
    Ok(text)
}

/// `line` with `name` in place of the folder that the repository's unit names. A word with the
/// folder is quoted if the name needs it.
fn quote_words(line: &str, name: &str) -> String {
    const FOLDER: &str = "/etc/shef-agent";
    let needs = name.contains(|c: char| c.is_whitespace() || "\"'\\;".contains(c));
    let Some((start, _)) = line.split_once(FOLDER).filter(|_| needs) else {
        return line.replace(FOLDER, name);
    };
    // The word begins after the last blank or `=`, and ends at the next blank.
    let begin = start.rfind([' ', '=']).map_or(0, |at| at + 1);
    let end = line[begin..].find([' ', '\n']).map_or(line.len(), |at| begin + at);
    format!("{}\"{}\"{}", &line[..begin], line[begin..end].replace(FOLDER, name), &line[end..])
}

fn config(listen: std::net::SocketAddr, devices: &[(String, Uri)]) -> String {
    let mut text = format!(
        "# Configuration of shef-agent; paths are relative to this file.\n\
         listen = \"{listen}\"\nca = \"ca.pem\"\ncert = \"agent.pem\"\nkey = \"agent.key\"\nrevoked = \"{REVOKED}\"\n\
         # Seconds after which a card whose owner vanished is wiped and free.\ngrace_seconds = 30\n\
         # Seconds that sessions get to end when the agent is asked to.\ndrain_seconds = 10\n\
         # Connections of all owners, and of one. Each costs at most 5 MiB of memory.\nmax_connections = 64\nmax_connections_per_owner = 16\n\
         # Health and metrics over HTTP:\n# metrics = \"127.0.0.1:9464\"\n"
    );
    for (name, uri) in devices {
        // Of the name's characters only '.' needs quotes; the URI is one that parsed.
        text.push_str(&format!(
            "\n[devices.\"{name}\"]\nuri = {}\n# owners = [\"NAME\"]  # without it, every owner with a certificate\n\
             # clear_memory = true  # zeros all card memory before each owner; without it, the next one can read what regions without protection left\n",
            toml::Value::String(uri.to_string())
        ));
        if uri.iommu() == Some(Iommu::None) {
            text.push_str("# Nothing confines this card's DMA: it reads and writes all memory of this machine. Say so to use it:\n# card_reaches_all_memory = true\n");
        }
    }
    text
}

/// Checks the name of an owner or of a device. A name that looks like a fingerprint could not be
/// revoked.
fn check(name: &str) -> Result<(), AgentError> {
    // A command that was killed leaves a folder `NAME.DIGITS.part` among those of the owners.
    if is_name(name) && digest(name).is_none() && !name.ends_with(".part") {
        return Ok(());
    }
    let message = format!(
        "{name:?} is not a valid name: expected 1 to 64 letters, digits, '-', '_', '.', and neither \
        a fingerprint nor a name that ends in .part"
    );
    Err(AgentError::Config { message })
}

fn issue(ca: &Ca, holder: Holder<'_>, key: &KeyPair) -> Result<Certificate, AgentError> {
    ca.issue(holder, key, Validity { from: now(), days: DAYS }).map_err(|e| wrong(&e))
}

/// Seconds since 1970.
fn now() -> i64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| d.as_secs().cast_signed())
}

fn wrong(error: &dyn std::fmt::Display) -> AgentError {
    AgentError::Files { message: format!("cannot make a certificate: {error}") }
}

/// Creates a private folder, whatever the umask.
fn folder(path: &Path) -> Result<(), AgentError> {
    files::new_folder(path, 0o700).map_err(|e| AgentError::file("make", path, &e))
}

fn private(path: &Path, bytes: &[u8]) -> Result<(), AgentError> {
    write(path, bytes, 0o600)
}

fn public(path: &Path, bytes: &[u8]) -> Result<(), AgentError> {
    write(path, bytes, 0o644)
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), AgentError> {
    // With exactly this mode: the agent's user can read root's files under any umask.
    files::write_new(path, mode, path, bytes).map_err(|e| AgentError::file("write", path, &e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use std::os::unix::fs::PermissionsExt;

    fn plan(dir: &Path) -> Plan {
        Plan {
            dir: dir.join("agent"),
            listen: "127.0.0.1:7433".into(),
            names: vec!["localhost".into()],
            owners: vec!["alice".into()],
            devices: vec![("card0".into(), "vfio-user:/run/a".parse().unwrap())],
        }
    }

    /// With the CA's key, others would be any owner; with another key, they would be the agent or this
    /// owner.
    #[test]
    fn a_private_key_that_others_can_read_or_replace_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan(dir.path());
        init(&plan).unwrap();
        let (own, alice) = (None, Some("alice"));
        let refused = |file: &str, mode: u32, done: &dyn Fn() -> Result<(), AgentError>| {
            let path = plan.dir.join(file);
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let error = done().expect_err(file).to_string();
            let says = format!("{file}: its mode is {mode:03o}");
            assert!(error.contains(&says) && error.contains("chmod 600"), "{error}");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            if file != "ca.key" {
                done().unwrap();
            }
        };
        for mode in [0o666, 0o644, 0o640, 0o602] {
            refused("ca.key", mode, &|| add_owner(&plan.dir, "eve"));
            refused("ca.key", mode, &|| renew(&plan.dir, own).map(drop));
            refused("ca.key", mode, &|| renew(&plan.dir, alice).map(drop));
        }
        assert!(!plan.dir.join("owners/eve").exists());
        for mode in [0o666, 0o644, 0o602] {
            refused("owners/alice/key.pem", mode, &|| renew(&plan.dir, alice).map(drop));
            refused("agent.key", mode, &|| renew(&plan.dir, own).map(drop));
        }
    }

    #[test]
    fn an_agent_is_set_up_once_and_keys_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let devices = vec![("card.0".into(), "vfio-user:/run/a \"b\".sock".parse().unwrap())];
        let plan = Plan { devices, ..plan(dir.path()) };
        init(&plan).unwrap();
        let config = crate::Config::load(&plan.dir.join("agent.toml")).unwrap();
        assert_eq!(config.devices["card.0"].uri, plan.devices[0].1);
        for file in ["ca.key", "agent.key", "owners/alice/key.pem"] {
            assert_eq!(
                fs::metadata(plan.dir.join(file)).unwrap().permissions().mode() & 0o777,
                0o600,
                "{file}"
            );
        }
        assert!(
            fs::read_to_string(plan.dir.join("shef-agent.service"))
                .unwrap()
                .contains(&plan.dir.display().to_string())
        );
        assert_eq!(init(&plan).unwrap_err().code(), "SHEF-AGT-017");
        add_owner(&plan.dir, "bob").unwrap();
        let twice = add_owner(&plan.dir, "bob").unwrap_err();
        assert!(
            twice.code() == "SHEF-AGT-017" && twice.to_string().contains("shef-agent renew"),
            "{twice}"
        );
        assert_eq!(add_owner(&plan.dir, "../bob").unwrap_err().code(), "SHEF-AGT-016");
        for name in ["a b", ".", ".."] {
            let bad =
                Plan { dir: dir.path().join("other"), owners: vec![name.into()], ..plan.clone() };
            assert_eq!(init(&bad).unwrap_err().code(), "SHEF-AGT-016");
            assert!(!bad.dir.exists());
        }
        // Devices that the agent would refuse at its start.
        let device = |name: &str, uri: &str| (name.to_owned(), uri.parse().unwrap());
        for (owners, devices, says) in [
            (
                vec!["alice".into(), "alice".into()],
                plan.devices.clone(),
                "--owner alice is given twice",
            ),
            (
                vec![],
                vec![device("card0", "vfio-user:/a"), device("card0", "vfio-user:/b")],
                "--device card0 is given twice",
            ),
            (vec![], vec![device("card0", "sim:model")], "shef sim serve"),
        ] {
            let bad = Plan { dir: dir.path().join("other"), owners, devices, ..plan.clone() };
            let error = init(&bad).unwrap_err();
            assert!(error.code() == "SHEF-AGT-016" && error.to_string().contains(says), "{error}");
            assert!(!bad.dir.exists());
        }
        // An error names the requested folder, not the temporary one next to it.
        let error =
            made(&dir.path().join("new"), |beside| write(&beside.join("no/file"), b"", 0o600))
                .unwrap_err()
                .to_string();
        assert!(error.contains(&dir.path().join("new/no/file").display().to_string()), "{error}");
    }

    #[test]
    fn only_names_that_owners_can_ask_for_are_certified() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "card.example:7433",
            "http://card.example",
            "card example",
            "10.0.0.300",
            "",
            "[10.0.0.3]",
        ] {
            let error = init(&Plan { names: vec![name.into()], ..plan(dir.path()) }).unwrap_err();
            assert!(
                error.code() == "SHEF-AGT-016" && error.to_string().contains(&format!("{name:?}")),
                "{error}"
            );
            assert!(!plan(dir.path()).dir.exists());
        }
        init(&Plan { names: vec!["[::1]".into(), "card.example".into()], ..plan(dir.path()) })
            .unwrap();
        assert_eq!(
            fs::read_to_string(plan(dir.path()).dir.join("names")).unwrap(),
            "::1\ncard.example\n"
        );
    }

    #[test]
    fn a_unit_names_its_folder_as_systemd_reads_it() {
        let start = |dir: &str| {
            let text = unit(Path::new(dir)).unwrap();
            text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap().to_owned()
        };
        for (dir, command) in [
            ("/srv/agent", r"/usr/bin/shef-agent run --config /srv/agent/agent.toml"),
            ("/srv/my agent", r#"/usr/bin/shef-agent run --config "/srv/my agent/agent.toml""#),
            ("/srv/100%agent", r"/usr/bin/shef-agent run --config /srv/100%%agent/agent.toml"),
            ("/srv/$HOME", r"/usr/bin/shef-agent run --config /srv/$$HOME/agent.toml"),
            (r#"/srv/a"b"#, r#"/usr/bin/shef-agent run --config "/srv/a\"b/agent.toml""#),
            (r"/srv/a\b", r#"/usr/bin/shef-agent run --config "/srv/a\\b/agent.toml""#),
        ] {
            assert_eq!(start(dir), command, "{dir}");
        }
        assert_eq!(unit(Path::new("/srv/a\nb")).unwrap_err().code(), "SHEF-AGT-017");
    }

    #[test]
    fn root_changes_nothing_in_a_folder_of_another_user() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan(dir.path());
        init(&plan).unwrap();
        let issued = || fs::read(plan.dir.join(ISSUED)).unwrap();
        let before = issued();
        fs::set_permissions(&plan.dir, fs::Permissions::from_mode(0o777)).unwrap();
        let root = rustix::process::geteuid().is_root();
        let results = [
            add_owner(&plan.dir, "bob").map(drop),
            revoke(&plan.dir, "alice").map(drop),
            renew(&plan.dir, None).map(drop),
        ];
        for result in results {
            match result {
                Err(error) => assert!(root && error.to_string().contains("chmod 755"), "{error}"),
                Ok(()) => assert!(!root, "root changed a folder that others can change"),
            }
        }
        assert_eq!(issued() == before, root);
        fs::set_permissions(&plan.dir, fs::Permissions::from_mode(0o755)).unwrap();
        add_owner(&plan.dir, "carol").unwrap();
        // A subfolder.
        for folder in ["owners", "owners/carol"].map(|folder| plan.dir.join(folder)) {
            let (before, mode) = (issued(), fs::metadata(&folder).unwrap().permissions());
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
            let results =
                [add_owner(&plan.dir, "dave").map(drop), renew(&plan.dir, Some("carol")).map(drop)];
            assert!(
                results.iter().all(|result| result.is_err() == root),
                "{}: {results:?}",
                folder.display()
            );
            assert_eq!(issued() == before, root);
            // A revocation needs the list only. It reports a certificate that it did not read.
            let first = root && folder.ends_with("owners");
            let revoked = revoke(&plan.dir, "alice").unwrap();
            assert_eq!((revoked.added, revoked.unread.len()), (first.into(), first.into()));
            fs::set_permissions(&folder, mode).unwrap();
            if !root {
                return;
            }
            std::os::unix::fs::chown(&folder, Some(4001), None).unwrap();
            let error = renew(&plan.dir, Some("carol")).unwrap_err();
            assert!(error.to_string().contains("user 4001"), "{error}");
            std::os::unix::fs::chown(&folder, Some(0), None).unwrap();
        }
    }

    #[test]
    fn a_command_that_a_message_proposes_is_safe_to_paste() {
        let dir = tempfile::tempdir().unwrap();
        let open =
            |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
        // A folder that is not an agent's: no command changes it.
        let other = dir.path().join("other");
        fs::create_dir(&other).unwrap();
        open(&other);
        let all = |dir: &Path| {
            [
                add_owner(dir, "bob").map(drop),
                revoke(dir, "alice").map(drop),
                renew(dir, None).map(drop),
            ]
            .map(|result| result.unwrap_err())
        };
        for error in all(&other) {
            let text = error.to_string();
            assert!(
                text.contains("is not an agent's folder: expected ca.pem and issued")
                    && !text.contains("chown"),
                "{text}"
            );
        }
        // An agent's folder, with a blank in its name.
        let plan = Plan { dir: dir.path().join("my agent"), ..plan(dir.path()) };
        init(&plan).unwrap();
        let quoted = format!("'{}'", plan.dir.display());
        let twice = add_owner(&plan.dir, "alice").unwrap_err().to_string();
        assert!(twice.contains(&format!("--dir {quoted} alice")), "{twice}");
        if rustix::process::geteuid().is_root() {
            open(&plan.dir);
            for error in all(&plan.dir) {
                let text = error.to_string();
                assert!(
                    text.contains(&format!("chown -R root: {quoted} && chmod 755 {quoted} &&")),
                    "{text}"
                );
            }
            // On a path that others can change, a command for the folder is not enough.
            open(dir.path());
            for error in all(&plan.dir) {
                let text = error.to_string();
                assert!(text.contains("path that only root") && !text.contains("chown"), "{text}");
            }
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
            // A folder in which another user has put a list: its files are not root's.
            let user = |path: &Path| std::os::unix::fs::chown(path, Some(4001), None).unwrap();
            fs::write(other.join(REVOKED), "").unwrap();
            user(&other.join(REVOKED));
            user(&plan.dir.join("ca.pem"));
            for error in all(&other).into_iter().chain(all(&plan.dir)) {
                let text = error.to_string();
                assert!(
                    text.contains("Root owns no ca.pem and issued in") && !text.contains("chown"),
                    "{text}"
                );
            }
        }
    }

    /// Each command that changes files locks the folder, which refuses a path and a lock of others.
    #[test]
    fn no_command_of_root_takes_a_path_or_a_lock_of_another_user() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan(dir.path());
        init(&plan).unwrap();
        if !rustix::process::geteuid().is_root() {
            println!("skipped: only root can give files away");
            return;
        }
        let (home, link, lock_file) =
            (dir.path().join("home"), dir.path().join("home/l"), plan.dir.join(files::LOCK));
        fs::create_dir(&home).unwrap();
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        let all = |dir: &Path| {
            [
                add_owner(dir, "bob").map(drop),
                revoke(dir, "alice").map(drop),
                renew(dir, None).map(drop),
                init(&Plan { dir: dir.join("new"), ..plan.clone() }),
            ]
        };
        let before = fs::read(plan.dir.join(REVOKED)).unwrap();
        std::os::unix::fs::lchown(&link, Some(4001), None).unwrap();
        for result in all(&link.join("agent")) {
            let text = result.unwrap_err().to_string();
            assert!(text.contains("home/l belongs to user 4001"), "{text}");
        }
        std::os::unix::fs::chown(&lock_file, Some(4001), None).unwrap();
        for result in &all(&plan.dir)[..3] {
            let text = result.as_ref().unwrap_err().to_string();
            let named = format!("{} belongs to user 4001", lock_file.display());
            assert!(text.contains(&named) && !text.contains("chown"), "{text}");
        }
        assert_eq!(fs::read(plan.dir.join(REVOKED)).unwrap(), before);
        // A link of root's.
        std::os::unix::fs::chown(&lock_file, Some(0), None).unwrap();
        std::os::unix::fs::lchown(&link, Some(0), None).unwrap();
        for result in &all(&link.join("agent"))[..3] {
            result.as_ref().unwrap();
        }
    }

    #[test]
    fn a_revoked_owner_is_not_renewed_but_on_purpose() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan { owners: vec!["alice".into(), "bob".into()], ..plan(dir.path()) };
        init(&plan).unwrap();
        let issued = || fs::read_to_string(plan.dir.join(ISSUED)).unwrap();
        let before = issued();
        revoke(&plan.dir, "alice").unwrap();
        let refused = |owner: &str| {
            let error = renew(&plan.dir, Some(owner)).unwrap_err();
            let text = error.to_string();
            assert!(
                error.code() == "SHEF-AGT-016"
                    && text.contains("is revoked")
                    && text.contains("add-owner"),
                "{text}"
            );
            assert!(
                text.contains(&format!("renew --dir {} {owner} --readmit", plan.dir.display())),
                "{text}"
            );
        };
        refused("alice");
        assert_eq!(issued(), before);
        renew(&plan.dir, Some("bob")).unwrap();
        // The same key under another name.
        for file in ["key.pem", "cert.pem"] {
            fs::copy(
                plan.dir.join("owners/alice").join(file),
                plan.dir.join("owners/bob").join(file),
            )
            .unwrap();
        }
        refused("bob");
        readmit(&plan.dir, "alice").unwrap();
        // The name is not issued again, and no message suggests it.
        let (mine, away) = (plan.dir.join("owners/alice"), dir.path().join("alice"));
        fs::rename(&mine, &away).unwrap();
        let used = add_owner(&plan.dir, "alice").unwrap_err();
        assert!(used.to_string().contains("issued names an owner alice"), "{used}");
        let gone = renew(&plan.dir, Some("alice")).unwrap_err().to_string();
        assert!(gone.contains("Put the folder back") && gone.contains("NEW-NAME"), "{gone}");
        let whole = issued();
        fs::write(plan.dir.join(ISSUED), "").unwrap();
        let used = add_owner(&plan.dir, "alice").unwrap_err();
        assert!(used.to_string().contains("revoked names an owner alice"), "{used}");
        fs::write(plan.dir.join(ISSUED), whole).unwrap();
        assert!(!mine.exists(), "a refusal leaves no folder");
        fs::rename(&away, &mine).unwrap();
        // Lines of older versions name no key.
        let old: String = issued()
            .lines()
            .map(|line| line.rsplit_once(' ').unwrap().0.to_owned() + "\n")
            .collect();
        fs::write(plan.dir.join(ISSUED), old).unwrap();
        refused("alice");
        let nobody = renew(&plan.dir, Some("nobodyy")).unwrap_err().to_string();
        assert!(nobody.contains("no owner nobodyy") && nobody.contains("add-owner"), "{nobody}");
        // Without the list, the revoked certificates are unknown.
        fs::remove_file(plan.dir.join(REVOKED)).unwrap();
        for error in
            [renew(&plan.dir, Some("alice")).map(drop), revoke(&plan.dir, "alice").map(drop)]
                .map(|result| result.unwrap_err())
        {
            assert!(error.to_string().contains("install -m 644 /dev/null"), "{error}");
        }
    }

    /// The file of issued certificates is a record: if its lines are gone, the revocation list
    /// counts for the owner whose certificate or name it has.
    #[test]
    fn a_revoked_owner_is_not_renewed_after_the_record_was_emptied() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan { owners: vec!["alice".into(), "bob".into()], ..plan(dir.path()) };
        init(&plan).unwrap();
        revoke(&plan.dir, "alice").unwrap();
        fs::write(plan.dir.join(ISSUED), "").unwrap();
        let refused = || {
            let error = renew(&plan.dir, Some("alice")).unwrap_err();
            assert!(
                error.code() == "SHEF-AGT-016" && error.to_string().contains("alice is revoked"),
                "{error}"
            );
        };
        let (list, cert) = (plan.dir.join(REVOKED), plan.dir.join("owners/alice/cert.pem"));
        let text = fs::read_to_string(&list).unwrap();
        // By the certificate only, and by the name only.
        fs::write(&list, text.replace("# alice", "")).unwrap();
        refused();
        fs::write(&list, &text).unwrap();
        fs::remove_file(&cert).unwrap();
        refused();
        renew(&plan.dir, Some("bob")).unwrap();
        readmit(&plan.dir, "alice").unwrap();
    }

    #[test]
    fn revocations_at_once_are_all_in_the_list() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan(dir.path());
        init(&plan).unwrap();
        let of = |number: u32| format!("{number:064x}");
        std::thread::scope(|scope| {
            for number in 0..24 {
                let dir = &plan.dir;
                scope.spawn(move || {
                    assert_eq!(
                        revoke(dir, &of(number)).unwrap(),
                        Revocation { added: 1, owner: None, ..Revocation::default() }
                    );
                });
            }
        });
        let revoked = Revoked::load(&plan.dir.join(REVOKED)).unwrap();
        assert!((0..24).all(|number| revoked.lists(&of(number))));
    }

    #[test]
    fn a_set_up_that_fails_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        // A folder that a unit cannot name: the unit is written last.
        let plan = Plan { owners: vec![], ..plan(dir.path()) };
        assert_eq!(
            init(&Plan { dir: dir.path().join("line\nbreak"), ..plan.clone() }).unwrap_err().code(),
            "SHEF-AGT-017"
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "a half folder is left");
        // An empty folder is used; a folder with files is left untouched.
        fs::create_dir(&plan.dir).unwrap();
        let good = plan;
        init(&good).unwrap();
        // The same name twice: the second call changes nothing.
        fs::remove_file(good.dir.join("ca.pem")).unwrap();
        fs::create_dir(good.dir.join("ca.pem")).unwrap();
        assert!(add_owner(&good.dir, "alice").is_err());
        assert!(
            fs::read_dir(good.dir.join("owners")).unwrap().next().is_none(),
            "a half folder of an owner is left"
        );
    }

    #[test]
    fn certificates_are_renewed_for_their_keys_and_revoked_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let (names, owners) =
            (vec!["localhost".into(), "10.1.2.3".into()], vec!["alice".into(), "bob".into()]);
        let plan = Plan { names, owners, ..plan(dir.path()) };
        init(&plan).unwrap();
        let read = |file: &str| shef_remote::certificates(&plan.dir.join(file)).unwrap().remove(0);
        let (agent, alice) =
            (read("agent.pem"), Identity::of(&read("owners/alice/cert.pem")).unwrap());
        assert_eq!(renew(&plan.dir, None).unwrap(), plan.dir.join("agent.pem"));
        renew(&plan.dir, Some("alice")).unwrap();
        let renewed = Identity::of(&read("owners/alice/cert.pem")).unwrap();
        assert!(
            agent != read("agent.pem")
                && renewed.name == "alice"
                && renewed.fingerprint() != alice.fingerprint()
        );
        assert_eq!(renew(&plan.dir, Some("carol")).unwrap_err().code(), "SHEF-AGT-017");
        // Old and new certificates alike, once.
        let known =
            |added| Revocation { added, owner: Some("alice".into()), ..Revocation::default() };
        assert_eq!(
            (revoke(&plan.dir, "alice").unwrap(), revoke(&plan.dir, "alice").unwrap()),
            (known(2), known(0))
        );
        assert_eq!(revoke(&plan.dir, "carol").unwrap_err().code(), "SHEF-AGT-016");
        let bob = Identity::of(&read("owners/bob/cert.pem")).unwrap();
        let revoked = || crate::identity::Revoked::load(&plan.dir.join("revoked")).unwrap();
        assert!(
            revoked().contains(&alice) && revoked().contains(&renewed) && !revoked().contains(&bob)
        );
        let of_bob = Revocation { added: 1, owner: Some("bob".into()), ..Revocation::default() };
        assert_eq!(revoke(&plan.dir, &bob.fingerprint().to_uppercase()).unwrap(), of_bob);
        assert!(
            revoked().contains(&bob)
                && fs::read_to_string(plan.dir.join("revoked")).unwrap().ends_with(" # bob\n")
        );
        fs::write(plan.dir.join("revoked"), "alice\n").unwrap();
        assert_eq!(
            crate::identity::Revoked::load(&plan.dir.join("revoked")).unwrap_err().code(),
            "SHEF-AGT-016"
        );
    }

    #[test]
    fn what_an_operator_wrote_into_the_list_keeps_no_certificate_from_being_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan(dir.path());
        init(&plan).unwrap();
        let alice = Identity::of(
            &shef_remote::certificates(&plan.dir.join("owners/alice/cert.pem")).unwrap()[0],
        )
        .unwrap();
        let list = plan.dir.join("revoked");
        let other = "5".repeat(64);
        for text in [
            format!("# {} counts again\n", alice.fingerprint()),
            format!("{other} # bob"),
            "# bob left".to_owned(),
        ] {
            fs::write(&list, &text).unwrap();
            assert_eq!(revoke(&plan.dir, "alice").unwrap().added, 1, "{text:?}");
            let revoked = crate::identity::Revoked::load(&list).unwrap();
            assert!(
                revoked.contains(&alice) && fs::read_to_string(&list).unwrap().starts_with(&text),
                "{text:?}"
            );
        }
        // A name that looks like a fingerprint could not be revoked.
        assert_eq!(add_owner(&plan.dir, &other).unwrap_err().code(), "SHEF-AGT-016");
    }

    #[test]
    fn what_the_record_has_lost_is_revoked_and_leftovers_are_no_owners() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan(dir.path());
        init(&plan).unwrap();
        fs::write(plan.dir.join(ISSUED), "").unwrap();
        let pem = fs::read(plan.dir.join("owners/alice/cert.pem")).unwrap();
        let alice = Identity::of(&CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
        // Earlier certificates of the same key, which only the record named, stay valid: a warning.
        let done = revoke(&plan.dir, "alice").unwrap();
        assert_eq!((done.added, done.owner.as_deref()), (1, Some("alice")));
        let (_, warnings) = crate::told("alice", &done, Ok(1));
        let [warning] = &warnings[..] else { panic!("{warnings:?}") };
        let named = format!("{} has lost lines", plan.dir.join(ISSUED).display());
        assert!(
            warning.starts_with(&named) && warning.contains("Earlier certificates of alice"),
            "{warning}"
        );
        assert!(Revoked::load(&plan.dir.join(REVOKED)).unwrap().contains(&alice));
        // What a command leaves that is killed.
        let left = "bob.00112233445566ff.part";
        fs::rename(plan.dir.join("owners/alice"), plan.dir.join("owners").join(left)).unwrap();
        assert_eq!(renew(&plan.dir, Some(left)).unwrap_err().code(), "SHEF-AGT-016");
    }

    /// The list alone keeps an owner out: whatever else cannot be read is only reported.
    #[test]
    fn a_revocation_needs_nothing_but_the_list() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan { owners: vec!["alice".into(), "bob".into()], ..plan(dir.path()) };
        init(&plan).unwrap();
        let of = |owner: &str| plan.dir.join("owners").join(owner).join("cert.pem");
        let identity = |owner: &str| {
            Identity::of(&shef_remote::certificates(&of(owner)).unwrap().remove(0)).unwrap()
        };
        let [alice, bob] = ["alice", "bob"].map(identity);
        let revoked = || Revoked::load(&plan.dir.join(REVOKED)).unwrap();
        fs::write(of("alice"), "garbage").unwrap();
        let done = revoke(&plan.dir, "alice").unwrap();
        assert_eq!((done.added, done.owner.as_deref()), (1, Some("alice")));
        assert!(done.unread.len() == 1 && done.unread[0].contains("alice/cert.pem"), "{done:?}");
        let (_, warnings) = crate::told("alice", &done, Ok(1));
        assert!(warnings[0].contains("are not in the list"));
        assert!(revoked().contains(&alice));
        fs::remove_file(of("bob")).unwrap();
        std::os::unix::fs::symlink(of("alice"), of("bob")).unwrap();
        assert_eq!(revoke(&plan.dir, "bob").unwrap().unread.len(), 1);
        assert!(revoked().contains(&bob));
        // Neither name nor record: the cause is in the error.
        fs::write(plan.dir.join(ISSUED), "").unwrap();
        let error = revoke(&plan.dir, "alice").unwrap_err().to_string();
        assert!(
            error.contains("no certificate was issued") && error.contains("cert.pem"),
            "{error}"
        );
        // A fingerprint, with the list alone.
        for file in [ISSUED, "ca.pem", "ca.key"] {
            fs::remove_file(plan.dir.join(file)).unwrap();
        }
        fs::remove_dir_all(plan.dir.join("owners")).unwrap();
        let other = "7".repeat(64);
        let done = revoke(&plan.dir, &other).unwrap();
        assert!(done.added == 1 && done.unread.len() == 1, "{done:?}");
        assert!(revoked().lists(&other));
    }

    /// The record has the certificate before the folder gets its name: a command that was killed in
    /// between is completed by the same command.
    #[test]
    fn an_owner_whose_command_was_killed_is_completed() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan(dir.path());
        init(&plan).unwrap();
        let owners = plan.dir.join("owners");
        let (mine, part) = (owners.join("bob"), owners.join("bob.00112233445566ff.part"));
        add_owner(&plan.dir, "bob").unwrap();
        let recorded = fs::read_to_string(plan.dir.join(ISSUED)).unwrap();
        let key = fs::read(mine.join("key.pem")).unwrap();
        fs::rename(&mine, &part).unwrap();
        let other = owners.join("bob.x.00112233445566ff.part");
        fs::create_dir(&other).unwrap();
        let renewed = renew(&plan.dir, Some("bob")).unwrap_err().to_string();
        assert!(
            renewed.contains("add-owner --dir") && renewed.contains("completes it"),
            "{renewed}"
        );
        add_owner(&plan.dir, "bob").unwrap();
        assert_eq!(fs::read(mine.join("key.pem")).unwrap(), key);
        assert_eq!(fs::read_to_string(plan.dir.join(ISSUED)).unwrap(), recorded);
        renew(&plan.dir, Some("bob")).unwrap();
        // Neither a folder without all files nor one of a revoked owner is completed.
        fs::rename(&mine, &part).unwrap();
        for file in OWNERS_FILES {
            fs::rename(part.join(file), owners.join("away")).unwrap();
            let used = add_owner(&plan.dir, "bob").unwrap_err().to_string();
            assert!(used.contains("issued names an owner bob") && !mine.exists(), "{used}");
            fs::rename(owners.join("away"), part.join(file)).unwrap();
        }
        let list = fs::read(plan.dir.join(REVOKED)).unwrap();
        revoke(&plan.dir, "bob").unwrap();
        let refused = add_owner(&plan.dir, "bob").unwrap_err();
        let text = refused.to_string();
        assert!(
            refused.code() == "SHEF-AGT-016"
                && text.contains("bob is revoked")
                && text.contains("NEW-NAME")
                && !text.contains("--readmit"),
            "{text}"
        );
        assert!(!mine.exists() && part.exists());
        fs::write(plan.dir.join(REVOKED), list).unwrap();
        // What is not in the record was not issued.
        let without: String = recorded.lines().filter(|line| !line.contains("bob")).collect();
        fs::write(plan.dir.join(ISSUED), without + "\n").unwrap();
        add_owner(&plan.dir, "bob").unwrap();
        assert!(part.exists() && fs::read(mine.join("key.pem")).unwrap() != key);
    }

    #[test]
    fn no_certificate_is_issued_that_nobody_would_accept() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        for at in [&one, &two] {
            init(&Plan { dir: at.clone(), ..plan(dir.path()) }).unwrap();
        }
        let names = fs::read_to_string(one.join("names")).unwrap();
        for bad in ["", "http://x\n", "localhost\n\n"] {
            fs::write(one.join("names"), bad).unwrap();
            let error = renew(&one, None).unwrap_err().to_string();
            assert!(error.contains("a host name or an address in each line"), "{bad:?}: {error}");
        }
        fs::write(one.join("names"), names).unwrap();
        renew(&one, None).unwrap();
        let before = fs::read(one.join("agent.pem")).unwrap();
        fs::copy(two.join("ca.key"), one.join("ca.key")).unwrap();
        let alice = Some("alice");
        for error in
            [renew(&one, None).map(drop), renew(&one, alice).map(drop), add_owner(&one, "bob")]
        {
            let text = error.unwrap_err().to_string();
            assert!(text.contains("it is not the key of ca.pem"), "{text}");
        }
        assert!(
            fs::read(one.join("agent.pem")).unwrap() == before && !one.join("owners/bob").exists()
        );
    }

    #[test]
    fn a_name_is_a_name_before_it_is_a_fingerprint_and_unknown_ones_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let plan = Plan { owners: vec!["alice".into(), "bob".into()], ..plan(dir.path()) };
        init(&plan).unwrap();
        let issued = fs::read_to_string(plan.dir.join(ISSUED)).unwrap();
        let of = |owner: &str| {
            Issued::of(issued.lines().find(|line| line.contains(owner)).unwrap()).unwrap()
        };
        // Version 0.1 accepted owners' names of this form.
        let (name, other) = ("5".repeat(64), "6".repeat(64));
        let with = |owner: &str| {
            fs::write(plan.dir.join(ISSUED), format!("{issued}{other} {owner}\n")).unwrap();
        };
        with(&name);
        assert_eq!(
            revoke(&plan.dir, &name).unwrap(),
            Revocation { added: 1, owner: Some(name.clone()), ..Revocation::default() }
        );
        let revoked = || Revoked::load(&plan.dir.join(REVOKED)).unwrap();
        assert!(revoked().lists(&other) && !revoked().lists(&name));
        let bob = of("bob").whole.unwrap();
        with(bob);
        let error = revoke(&plan.dir, bob).unwrap_err();
        assert!(
            error.code() == "SHEF-AGT-016" && error.to_string().contains("of a certificate of bob"),
            "{error}"
        );
        // The fingerprint of a whole certificate revokes its TBSCertificate.
        fs::write(plan.dir.join(ISSUED), &issued).unwrap();
        assert_eq!(
            revoke(&plan.dir, bob).unwrap(),
            Revocation { added: 1, owner: Some("bob".into()), ..Revocation::default() }
        );
        assert!(revoked().lists(of("bob").fingerprint));
        assert_eq!(
            revoke(&plan.dir, &name).unwrap(),
            Revocation { added: 1, owner: None, ..Revocation::default() }
        );
    }

    #[test]
    fn a_revocation_that_no_agent_applies_says_so_and_why() {
        let dir = tempfile::tempdir().unwrap();
        let plan = plan(dir.path());
        init(&plan).unwrap();
        let why = || crate::confirm(&plan.dir).unwrap_err();
        assert!(
            why().starts_with("no running agent uses this list") && !why().contains("agent.toml"),
            "{}",
            why()
        );
        let file = plan.dir.join("agent.toml");
        let text = fs::read_to_string(&file).unwrap();
        for (line, says) in [
            ("", "has no key `revoked`"),
            ("revoked = \"other\"", "names the list"),
            ("revoked = ", "is not TOML"),
        ] {
            fs::write(&file, text.replace("revoked = \"revoked\"", line)).unwrap();
            assert!(why().contains(says), "{}", why());
        }
    }
}
