//! What a running agent reports to `shef-agent revoke` about its revocation list
//! ([`shef_console::applied`]).

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use shef_console::applied::{self, Reporter};
use shef_files as files;

use crate::AgentError;
use crate::init::{REVOKED, Revocation};
use crate::state::Running;

/// Reports which list is in force.
pub(crate) async fn serve(running: Running) -> ! {
    let mut reporter = Reporter::new("agent");
    let mut look = tokio::time::interval(applied::LOOK);
    loop {
        look.tick().await;
        let list = running.shared().setup().list_file();
        let list = list.map(|file| (file, running.shared().applied()));
        for (file, error) in reporter.answer(list.as_slice()) {
            tracing::warn!(file = %file.display(), "cannot tell `shef-agent revoke` that this list \
                is applied: {error}");
        }
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

/// Waits until the running agents apply the list in `dir` as it is now, and returns their number. They
/// run as root, as the command's user, or as the owner of `agent.key`.
///
/// # Errors
/// Why not all agents, or no agent, have confirmed the list. The revocation stays in the list.
pub fn confirm(dir: &Path) -> Result<usize, String> {
    let list = dir.join(REVOKED);
    let mut believed = vec![0, rustix::process::geteuid().as_raw()];
    believed.extend(std::fs::symlink_metadata(dir.join("agent.key")).map(|key| key.uid()));
    let wanted = || {
        let text = files::read(&list).map_err(|e| AgentError::file("read", &list, &e).to_string());
        text.map(|text| applied::digest(text.as_bytes()))
    };
    applied::confirm("agent", &list, &believed, wanted).map_err(|why| match doubt(dir) {
        Some(doubt) => format!("{why}; {doubt}"),
        None => why,
    })
}

/// What `shef-agent revoke` prints about a revocation and its confirmation, and a warning for each
/// thing that is left open.
#[must_use]
pub fn told(
    whom: &str,
    done: &Revocation,
    confirmed: Result<usize, String>,
) -> (String, Vec<String>) {
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
    let line = match confirmed {
        Ok(1) => format!("{what}: the running agent applies the list"),
        Ok(agents) => format!("{what}: {agents} running agents apply the list"),
        Err(_) => what,
    };
    let unknown = done.owner.is_none().then(|| {
        format!(
            "the list of issued certificates does not have the fingerprint {whom}: if that \
            certificate exists, it is revoked; check the digits"
        )
    });
    let open = confirmed.err().map(|why| {
        format!(
            "it is not confirmed that every running agent applies the list: {why}. Revoked owners stay \
            connected until one does; an agent applies the list when it starts"
        )
    });
    let unread = done.unread.iter().cloned();
    (line, unknown.into_iter().chain(unread).chain(open).collect())
}
