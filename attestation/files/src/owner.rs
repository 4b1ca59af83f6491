//! Which folders and files root trusts: those that only it, or the user of a service, can change.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

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
/// their own files there, or change where its path leads ([`way`]).
///
/// # Errors
/// The folder cannot be found, or this process runs as root and another user can change the folder
/// or its path.
pub fn check(folder: &Path, owner: Owner) -> io::Result<()> {
    resolve(folder, owner, Others::Nothing).map(drop)
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

/// What users other than its owner may do in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// No more than read.
    Nothing,
    /// Make files, but not move those of root, as in /tmp.
    Add,
    /// Anything.
    Anything,
}

impl Others {
    /// Whether a folder with this mode gives others more.
    fn exceeded_by(self, mode: u32) -> bool {
        let sticky = self == Self::Add && mode & 0o1000 != 0;
        self != Self::Anything && mode & 0o022 != 0 && !sticky
    }
}

/// Whether someone other than root can change what belongs to `user`.
fn not_root(user: u32) -> bool {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    user != 0
        && !is_outside(user, &read("/proc/self/uid_map"), &read("/proc/sys/kernel/overflowuid"))
}

fn refused(path: &Path, found: &Metadata, expected: &str) -> io::Error {
    let (shown, user, mode) = (path.display(), found.uid(), found.mode() & 0o7777);
    let text = format!(
        "{shown} belongs to user {user} with mode {mode:o}, and this command runs as root: expected {expected}"
    );
    io::Error::new(ErrorKind::PermissionDenied, text)
}

/// Most links on a path, as in the kernel.
const LINKS: u32 = 40;

/// Follows a path to its end, a folder or a file, and returns it with all links resolved. If this
/// process runs as root, users other than root must not be able to change where the path leads:
/// root owns each link, and each folder through which the path leads. This includes the
/// steps of each link's target. Others may write only to folders with the sticky bit, and what the
/// path names there is root's. The end itself may be another user's, except in such a folder.
///
/// # Errors
/// It leads nowhere, or this process runs as root and another user can change where it leads.
pub fn way(path: &Path) -> io::Result<PathBuf> {
    if !is_root() {
        return path.canonicalize();
    }
    let steps = |path: &Path| -> Vec<_> {
        path.components().rev().map(|step| step.as_os_str().to_owned()).collect()
    };
    let mut real = PathBuf::from("/");
    let (mut left, mut links) = (steps(&std::path::absolute(path)?), 0);
    let refused = |path: &Path, found: &Metadata| {
        let expected = "a path that only root can change. Choose another path, or run this as the user \
            who owns it";
        refused(path, found, expected)
    };
    while let Some(step) = left.pop() {
        // The path so far has no links, so its parent is what `..` names.
        if step == ".." {
            real.pop();
            continue;
        }
        // The first step of an absolute target takes the place of the path so far.
        let next = real.join(&step);
        let (above, found) = (std::fs::symlink_metadata(&real)?, std::fs::symlink_metadata(&next)?);
        if not_root(above.uid()) || Others::Add.exceeded_by(above.mode()) {
            return Err(refused(&real, &above));
        }
        let shared = Others::Nothing.exceeded_by(above.mode());
        if (shared || found.is_symlink()) && not_root(found.uid()) {
            return Err(refused(&next, &found));
        }
        if !found.is_symlink() {
            real = next;
            continue;
        }
        links += 1;
        if links > LINKS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        left.extend(steps(&std::fs::read_link(&next)?));
    }
    Ok(real)
}

/// Resolves a folder in which files are made or changed. As root, only `owner` may own it, and other
/// users may do no more than `others` in it, nor change its path ([`way`]).
pub(crate) fn resolve(folder: &Path, owner: Owner, others: Others) -> io::Result<PathBuf> {
    let real = way(folder)?;
    if !is_root() {
        return Ok(real);
    }
    let found = std::fs::symlink_metadata(&real)?;
    if owner == Owner::Root && not_root(found.uid()) || others.exceeded_by(found.mode()) {
        let expected = match (owner, others) {
            (_, Others::Add | Others::Anything) => "a path that only root can change",
            (Owner::Root, _) => "a folder that only root can change",
            (Owner::Service, _) => "a folder that only its owner can change",
        };
        return Err(refused(folder, &found, expected));
    }
    Ok(real)
}

/// Rejects a file that root must not use: a third user's, and one of root's to which another user
/// has given a second name.
pub(crate) fn ours(found: &Metadata, folder: &Metadata) -> io::Result<()> {
    if !found.is_file() {
        let text = if found.is_symlink() {
            "it is a symbolic link: name the file itself"
        } else {
            "it is not a regular file"
        };
        return Err(io::Error::new(ErrorKind::InvalidInput, text));
    }
    // Root has put every file into a folder that only root can change.
    if !is_root() || folder.uid() == 0 && !Others::Nothing.exceeded_by(folder.mode()) {
        return Ok(());
    }
    let (user, owner, mode) = (found.uid(), folder.uid(), folder.mode() & 0o7777);
    let text = if ![0, owner].contains(&user) {
        format!(
            "it belongs to user {user}, and its folder to user {owner} with mode {mode:o}: expected the owner of the folder, or root"
        )
    } else if user == 0 && found.nlink() > 1 {
        format!(
            "it belongs to root and has {} names, and its folder belongs to user {owner} with mode {mode:o}: expected one name",
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
pub fn look(path: &Path) -> io::Result<Option<Metadata>> {
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

    /// The path as written, each link's target and the resolved path: a user who can change one of
    /// them decides where root writes.
    #[test]
    fn root_takes_no_path_that_another_user_can_redirect() {
        use std::os::unix::fs::{PermissionsExt as _, chown, lchown, symlink};
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let at = |name: &str| top.join(name);
        for name in ["srv", "home", "real/agent", "shared/agent"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::fs::set_permissions(at("shared"), std::fs::Permissions::from_mode(0o1777)).unwrap();
        for (target, link) in [
            ("../real", "srv/real"),
            ("../home/link", "srv/middle"),
            ("../real/agent", "home/link"),
            ("../srv/../real/agent/.", "srv/dots"),
            ("../home/../real/agent", "srv/through"),
            ("loop", "srv/loop"),
            ("agent", "shared/link"),
        ] {
            symlink(target, at(link)).unwrap();
        }
        symlink(at("srv/real"), at("srv/whole")).unwrap();
        let leads = |name: &str| way(&at(name));
        for name in ["real/agent", "srv/real/agent", "srv/whole/agent", "srv/dots", "srv/middle"] {
            assert_eq!(leads(name).unwrap(), at("real/agent"), "{name}");
        }
        for name in ["shared/agent", "shared/link", "srv/../shared/./agent/"] {
            assert_eq!(leads(name).unwrap(), at("shared/agent"), "{name}");
        }
        assert!(leads("srv/loop").is_err() && leads("srv/missing").is_err());
        if !is_root() {
            println!("skipped: only root can give files away");
            return;
        }
        let refused = |name: &str, by: &str| {
            for refused in [leads(name).map(drop), check(&at(name), Owner::Service)] {
                let text = refused.unwrap_err().to_string();
                let named = format!("{} belongs to user", at(by).display());
                assert!(text.starts_with(&named) && text.contains("path that only root"), "{text}");
            }
        };
        // A link of another user in root's folder, and links in that user's folder.
        lchown(at("home/link"), Some(4001), None).unwrap();
        refused("home/link", "home/link");
        refused("srv/middle", "home/link");
        lchown(at("home/link"), Some(0), None).unwrap();
        chown(at("home"), Some(4001), None).unwrap();
        for name in ["home/link", "srv/middle", "srv/through"] {
            // `..` in a target leaves no name in that folder.
            if name == "srv/through" {
                assert_eq!(leads(name).unwrap(), at("real/agent"));
            } else {
                refused(name, "home");
            }
        }
        chown(at("home"), Some(0), None).unwrap();
        std::fs::set_permissions(at("home"), std::fs::Permissions::from_mode(0o777)).unwrap();
        refused("srv/middle", "home");
        // The sticky bit protects root's entries only.
        lchown(at("shared/link"), Some(4001), None).unwrap();
        refused("shared/link", "shared/link");
        chown(at("shared/agent"), Some(4001), None).unwrap();
        refused("shared/agent", "shared/agent");
        // The folder of a service in a folder of root's.
        chown(at("real/agent"), Some(4001), None).unwrap();
        check(&at("srv/real/agent"), Owner::Service).unwrap();
        assert!(check(&at("srv/real/agent"), Owner::Root).is_err());
    }
}
