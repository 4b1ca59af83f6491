//! Which folders and files root trusts: those that only it, or the user of a service, can change.

use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::folder;

/// The owner of a folder that root writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Root only.
    Root,
    /// Root, or the user of a service with exclusive use of the folder.
    Service,
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this process runs as root and the folder belongs to another user, who can exchange its
/// files at any moment.
///
/// # Errors
/// The folder cannot be found.
pub fn foreign(folder: &Path) -> io::Result<bool> {
    Ok(is_root() && std::fs::metadata(folder)?.uid() != 0)
}

/// Rejects a folder in which root must not change files: users other than `owner` can put links or
/// their own files there.
///
/// # Errors
/// The folder cannot be found, or this process runs as root and another user can change the folder.
pub fn check(folder: &Path, owner: Owner) -> io::Result<()> {
    // A link to a folder is not root's folder.
    let found = if owner == Owner::Root {
        std::fs::symlink_metadata(folder)?
    } else {
        std::fs::metadata(folder)?
    };
    let (foreign, expected) = match owner {
        Owner::Root => (found.uid() != 0, "a folder that only root can change"),
        Owner::Service => (false, "a folder that only its owner can change"),
    };
    if is_root() && (foreign || found.mode() & 0o022 != 0) {
        let (shown, user, mode) = (folder.display(), found.uid(), found.mode() & 0o777);
        let text = format!(
            "{shown} belongs to user {user} with mode {mode:o}, and this command runs as root: expected {expected}"
        );
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    Ok(())
}

/// Whether `user` is the number of owners outside the user namespace of an unprivileged user, who is
/// root in it (`unshare --map-root-user`): no user inside has that number, and this command is no
/// more than that user. `map` and `outside` are `/proc/self/uid_map` and the kernel's `overflowuid`.
fn is_outside(user: u32, map: &str, outside: &str) -> bool {
    let ranges: Vec<[u64; 3]> = map
        .lines()
        .filter_map(|line| {
            let numbers = line.split_whitespace().map(|number| number.parse().ok());
            numbers.collect::<Option<Vec<_>>>()?.try_into().ok()
        })
        .collect();
    let inside =
        |user: u64| ranges.iter().find(|range| (range[0]..range[0] + range[2]).contains(&user));
    outside.trim().parse() == Ok(user)
        && inside(user.into()).is_none()
        && inside(0).is_some_and(|root| root[1] != 0)
}

/// Rejects a path that other users can redirect. Root must own each folder and link on it, and
/// others may write only to folders with the sticky bit, which protects root's entries. The last
/// folder may be open to them unless `end_is_closed`.
pub(crate) fn check_way(path: &Path, end_is_closed: bool) -> io::Result<()> {
    if !is_root() {
        return Ok(());
    }
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let (map, outside) = (read("/proc/self/uid_map"), read("/proc/sys/kernel/overflowuid"));
    let foreign = |user| user != 0 && !is_outside(user, &map, &outside);
    for way in [std::path::absolute(path)?, path.canonicalize()?] {
        for step in way.ancestors() {
            let (entry, found) = (std::fs::symlink_metadata(step)?, std::fs::metadata(step)?);
            let open = found.mode() & 0o022 != 0
                && found.mode() & 0o1000 == 0
                && (end_is_closed || step != way);
            if foreign(entry.uid()) || foreign(found.uid()) || open {
                let user = if entry.uid() == 0 { found.uid() } else { entry.uid() };
                let text = format!(
                    "{} belongs to user {user} with mode {:o}, and this command runs as root: expected a path that only root can change. Run it as that user, or choose another folder",
                    step.display(),
                    found.mode() & 0o7777
                );
                return Err(io::Error::new(ErrorKind::PermissionDenied, text));
            }
        }
    }
    Ok(())
}

/// Rejects a file that root must not use: a third user's, and one of root's to which another user
/// has given a second name.
pub(crate) fn ours(found: &std::fs::Metadata, folder: &std::fs::Metadata) -> io::Result<()> {
    if !found.is_file() {
        let text = if found.is_symlink() {
            "it is a symbolic link: name the file itself"
        } else {
            "it is not a regular file"
        };
        return Err(io::Error::new(ErrorKind::InvalidInput, text));
    }
    if !is_root() || folder.uid() == 0 {
        return Ok(());
    }
    let (user, owner) = (found.uid(), folder.uid());
    let text = if ![0, owner].contains(&user) {
        format!(
            "it belongs to user {user}, and its folder to user {owner}: expected the owner of the folder, or root"
        )
    } else if user == 0 && found.nlink() > 1 {
        format!(
            "it belongs to root and has {} names, and its folder belongs to user {owner}: expected one name",
            found.nlink()
        )
    } else {
        return Ok(());
    };
    Err(io::Error::new(ErrorKind::PermissionDenied, text))
}

/// Checks a file that another library opens by name, by the rules of [`open`](crate::open); `None` if it is
/// missing. Does not open the file: closing it would release this process's locks on it.
///
/// # Errors
/// It cannot be found, is a symbolic link or not a file, or belongs to a third user.
pub fn look(path: &Path) -> io::Result<Option<std::fs::Metadata>> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    ours(&found, &std::fs::metadata(folder(path))?)?;
    Ok(Some(found))
}

/// Gives a folder to another user, as a test of root's. Only root can.
#[cfg(test)]
pub(crate) fn given_away(folder: &Path) -> bool {
    is_root() && std::os::unix::fs::chown(folder, Some(4001), Some(4002)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_outside_the_namespace_of_an_unprivileged_user_is_no_other_user() {
        let whole = "         0          0 4294967295\n";
        let unshared = "         0       1000          1\n";
        let container = "0 1000 1\n1 100000 65536\n";
        for (user, map, outside, expected) in [
            (65534, unshared, "65534\n", true),
            (65534, whole, "65534\n", false),
            // A user of the container, and real root with users that it does not map.
            (65534, container, "65534\n", false),
            (65534, "0 0 1\n", "65534\n", false),
            (1000, unshared, "65534\n", false),
            (65534, "", "", false),
        ] {
            assert_eq!(is_outside(user, map, outside), expected, "{user} {map:?}");
        }
    }
}
