//! Which revocation list is in force. A running agent reports it to the commands on its machine, so
//! that `shef-agent revoke` can say whether a revocation took effect.
//!
//! The agent listens on a socket in Linux's abstract namespace. The socket's name is the SHA-256 of
//! the list's path. The agent sends the SHA-256 of the list in force to each connection. Any user
//! can take that name first: a command trusts root, its own user, and the owner of `agent.key`.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use shef_files as files;
use shef_proto::crypto::sha256;
use tokio::io::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};

use crate::AgentError;
use crate::identity::Revoked;
use crate::init::{REVOKED, Revocation};
use crate::state::Running;

/// Hexadecimal digits of a digest.
const DIGEST: usize = 64;
/// How often the agent checks for a new list, and a command checks whether its list is in force.
const LOOK: Duration = Duration::from_millis(200);
/// How long a command waits for an agent, which checks its list every second.
const PATIENCE: Duration = Duration::from_secs(5);

/// Name of the socket of the agents that use this list.
fn address(list: &Path) -> std::io::Result<SocketAddr> {
    let name = list.file_name().unwrap_or_default();
    let whole = std::fs::canonicalize(files::folder(list))?.join(name);
    SocketAddr::from_abstract_name(format!(
        "shef-agent/{}",
        hex::encode(sha256(whole.as_os_str().as_encoded_bytes()))
    ))
}

fn listen(list: &Path) -> std::io::Result<UnixListener> {
    let listener = StdListener::bind_addr(&address(list)?)?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

async fn accept(listener: Option<&UnixListener>) -> std::io::Result<UnixStream> {
    match listener {
        Some(listener) => Ok(listener.accept().await?.0),
        None => std::future::pending().await,
    }
}

/// Reports which list is in force.
pub(crate) async fn serve(running: Running) {
    let mut of: Option<PathBuf> = None;
    let mut listener: Option<UnixListener> = None;
    let mut failed = false;
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            accepted = accept(listener.as_ref()) => match accepted {
                // A socket buffer always has room for 64 bytes.
                Ok(stream) => drop(stream.try_write(running.shared().applied().as_bytes())),
                Err(_) => tokio::time::sleep(LOOK).await,
            },
            _ = look.tick() => {
                let list = running.shared().setup().list_file();
                if list != of {
                    (of, listener, failed) = (list, None, false);
                }
                if let (Some(list), None) = (&of, &listener) {
                    match listen(list) {
                        Ok(new) => listener = Some(new),
                        Err(error) if !failed => {
                            failed = true;
                            tracing::warn!(file = %list.display(), "cannot tell `shef-agent \
                                revoke` that this list is applied: {error}");
                        }
                        Err(_) => {}
                    }
                }
            }
        }
    }
}

/// The digest that an agent sends, if it runs as a user that a command trusts.
async fn ask(list: &Path, believed: &[u32]) -> Result<String, String> {
    let none = |e: std::io::Error| format!("no running agent uses this list ({e})");
    let stream = address(list).and_then(|at| StdStream::connect_addr(&at)).map_err(none)?;
    let stream = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
    let mut stream = stream.map_err(|e| e.to_string())?;
    let user = stream.peer_cred().map_err(|e| e.to_string())?.uid();
    if !believed.contains(&user) {
        return Err(format!("a program of user {user} answers in place of the agent"));
    }
    let mut digest = [0; DIGEST];
    match tokio::time::timeout(PATIENCE, stream.read_exact(&mut digest)).await {
        Ok(Ok(_)) => Ok(String::from_utf8_lossy(&digest).into_owned()),
        Ok(Err(e)) => Err(format!("the running agent does not report which list it applies: {e}")),
        Err(_) => Err("the running agent does not answer".to_owned()),
    }
}

/// Why an agent with the folder's configuration would not apply the list there, if so.
fn doubt(dir: &Path) -> Option<String> {
    let file = dir.join("agent.toml");
    let text = files::read(&file).ok()?;
    let shown = file.display();
    let Ok(table) = text.parse::<toml::Table>() else {
        return Some(format!("{shown} is not TOML: no agent starts with it"));
    };
    let Some(named) = table.get("revoked").and_then(toml::Value::as_str) else {
        return Some(format!(
            "{shown} has no key `revoked`, so an agent with it applies no list: expected revoked \
            = \"{REVOKED}\""
        ));
    };
    let whole = |path: &Path| std::fs::canonicalize(path).ok();
    let (named, list) = (dir.join(named), dir.join(REVOKED));
    (whole(&named) != whole(&list))
        .then(|| format!("{shown} names the list {}, expected {}", named.display(), list.display()))
}

/// Waits until a running agent applies the list in `dir` as it is now.
///
/// # Errors
/// Why no agent has confirmed the list. The revocation stays in the list.
pub fn confirm(dir: &Path) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    let result = runtime.block_on(wait(dir));
    result.map_err(|why| match doubt(dir) {
        Some(doubt) => format!("{why}; {doubt}"),
        None => why,
    })
}

async fn wait(dir: &Path) -> Result<(), String> {
    let list = dir.join(REVOKED);
    let mut believed = vec![0, rustix::process::geteuid().as_raw()];
    believed.extend(std::fs::symlink_metadata(dir.join("agent.key")).map(|key| key.uid()));
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        // Another revocation may have changed the list since; revocations only add lines.
        let now =
            files::read(&list).map_err(|e| AgentError::file("read", &list, &e).to_string())?;
        if ask(&list, &believed).await? == Revoked::digest_of(&now) {
            return Ok(());
        }
        if tokio::time::Instant::now() > end {
            let seconds = PATIENCE.as_secs();
            return Err(format!(
                "the running agent has not applied the list within {seconds} s: see its log"
            ));
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What `shef-agent revoke` prints about a revocation and its confirmation, and a warning for each
/// thing that is left open.
#[must_use]
pub fn told(whom: &str, done: &Revocation, confirmed: Result<(), String>) -> (String, Vec<String>) {
    let in_force = confirmed.is_ok();
    let by_name = done.owner.as_deref() == Some(whom);
    let whose = match &done.owner {
        Some(owner) if by_name => format!("of {owner}"),
        Some(owner) => format!("of {owner} with the fingerprint {whom}"),
        None => format!("with the fingerprint {whom}"),
    };
    let what = match done.added {
        0 if by_name => {
            format!("nothing changed: the certificates {whose} were already in the list")
        }
        0 => format!("nothing changed: the certificate {whose} was already in the list"),
        1 => {
            format!("1 certificate {whose} is {}", if in_force { "revoked" } else { "in the list" })
        }
        n => format!(
            "{n} certificates {whose} are {}",
            if in_force { "revoked" } else { "in the list" }
        ),
    };
    let line = if in_force { format!("{what}: the running agent applies the list") } else { what };
    let unknown = done.owner.is_none().then(|| {
        format!(
            "the list of issued certificates does not have the fingerprint {whom}: if that \
            certificate exists, it is revoked; check the digits"
        )
    });
    let open = confirmed.err().map(|why| {
        format!(
            "no agent has confirmed that it applies the list: {why}. Revoked owners stay \
            connected until one does; an agent applies the list when it starts"
        )
    });
    let unread = done.unread.iter().cloned();
    (line, unknown.into_iter().chain(unread).chain(open).collect())
}
