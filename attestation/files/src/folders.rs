//! New folders, and folders that a set-up fills: complete or not at all.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{
    DirBuilderExt, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use crate::lock::{LOCK, lock};
use crate::owner::{Owner, check_way};
use crate::{beside, folder};

/// Opens a folder, and not the target of a link in its place, and sets its mode.
fn set_mode(path: &Path, mode: impl FnOnce(u32) -> u32) -> io::Result<()> {
    let flags = libc::O_NOFOLLOW | libc::O_DIRECTORY | libc::O_CLOEXEC;
    let folder = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = folder.metadata()?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        let text = format!("it belongs to user {}", found.uid());
        return Err(io::Error::new(ErrorKind::PermissionDenied, text));
    }
    let (old, new) = (found.mode() & 0o7777, mode(found.mode() & 0o7777));
    // Some file systems have one mode.
    if new == old { Ok(()) } else { folder.set_permissions(Permissions::from_mode(new)) }
}

/// Makes one folder with exactly this mode, whatever the umask.
///
/// # Errors
/// It exists, or cannot be made.
pub fn new_folder(path: &Path, mode: u32) -> io::Result<()> {
    DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).create(path)?;
    set_mode(path, |_| mode).inspect_err(|_| drop(std::fs::remove_dir(path)))
}

/// Makes a missing folder with exactly this mode completely or not at all: `fill` fills a folder
/// beside it, which gets its name at the end.
///
/// # Errors
/// Those of `fill`; through `failed`, the folder exists or cannot be made, or this process runs as
/// root and another user can change the path.
pub fn make_folder<E>(
    path: &Path,
    mode: u32,
    failed: impl Fn(io::Error) -> E,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let part = || {
        check_way(folder(path), true)?;
        if path.is_symlink() || path.exists() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let part = beside(path)?;
        new_folder(&part, mode)?;
        Ok(part)
    };
    let part = part().map_err(&failed)?;
    // Only this new folder is removed.
    fill(&part)
        .and_then(|()| std::fs::rename(&part, path).map_err(&failed))
        .inspect_err(|_| drop(std::fs::remove_dir_all(&part)))
}

/// Sets up an empty or missing folder completely or not at all. `fill` fills a folder inside it,
/// whose files then move up, `last` as the last one: without that file, a set-up was interrupted.
/// A missing folder is made with exactly this mode, and its missing parents with 755. An existing
/// one stays, as it may be a mount point or the current folder, but group and others lose the
/// permission to write.
///
/// # Errors
/// Those of `fill`; through `failed`, there are files in the folder, it cannot be made or written,
/// or this process runs as root and another user can change the folder or its path.
pub fn set_up_folder<E>(
    path: &Path,
    mode: u32,
    last: &str,
    failed: impl Fn(io::Error) -> E,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let ready = || {
        // `x/` and `x/.` name the folder x, also if it is missing.
        let path: PathBuf = std::path::absolute(path)?.components().collect();
        let made = make_missing(&path, mode)?;
        check_way(&path, false)?;
        let real = path.canonicalize()?;
        if std::fs::metadata(&real)?.uid() == rustix::process::geteuid().as_raw() {
            set_mode(&real, |mode| mode & !0o022)?;
        }
        let alone = lock(&real, Owner::Root)?;
        check_empty(&real)?;
        let part = beside(&real.join(SET_UP))?;
        new_folder(&part, 0o700)?;
        Ok((made, real, alone, part))
    };
    let (made, real, _alone, part) = ready().map_err(&failed)?;
    fill(&part).and_then(|()| move_up(&part, &real, last).map_err(&failed)).inspect_err(|_| {
        let _ = std::fs::remove_dir_all(&part);
        if made {
            let _ = std::fs::remove_file(real.join(LOCK));
            let _ = std::fs::remove_dir(&real);
        }
    })
}

/// Begin of the name of the folder that [`set_up_folder`] fills.
const SET_UP: &str = "setup";

/// Makes a folder, and its parents, if they are missing. Returns whether the folder was.
fn make_missing(path: &Path, mode: u32) -> io::Result<bool> {
    let missing: Vec<_> = path.ancestors().take_while(|above| !above.is_dir()).collect();
    let Some(highest) = missing.last() else { return Ok(false) };
    check_way(folder(highest), true)?;
    let mut made = false;
    for above in missing.iter().rev() {
        made = match new_folder(above, if *above == path { mode } else { 0o755 }) {
            // Another command was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && above.is_dir() => false,
            made => made.map(|()| true)?,
        };
    }
    Ok(made)
}

/// The names in a folder, except for its lock and a file system's own folder.
fn names(folder: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names: Vec<_> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .filter(|name| !name.as_ref().is_ok_and(|name| name == LOCK || name == "lost+found"))
        .collect::<Result<_, _>>()?;
    names.sort();
    Ok(names)
}

fn check_empty(folder: &Path) -> io::Result<()> {
    let names: Vec<_> =
        names(folder)?.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let interrupted =
        names.iter().any(|name| name.starts_with(&format!("{SET_UP}.")) && name.ends_with(".part"));
    let text = format!("expected an empty or missing folder, found in it: {}", names.join(", "));
    let text = if interrupted {
        format!("{text}. A set-up that was interrupted left them: remove them")
    } else {
        text
    };
    Err(io::Error::new(ErrorKind::DirectoryNotEmpty, text))
}

/// Moves the files of `part` into `folder` above it: all of them, or none.
fn move_up(part: &Path, folder: &Path, last: &str) -> io::Result<()> {
    let mut all = names(part)?;
    all.sort_by_key(|name| name == last);
    let moved = all.iter().try_for_each(|name| {
        let (from, to) = (part.join(name), folder.join(name));
        if to.is_symlink() || to.exists() {
            let text = format!("{} appeared during the set-up", to.display());
            return Err(io::Error::new(ErrorKind::AlreadyExists, text));
        }
        std::fs::rename(from, to)
    });
    if moved.is_err() {
        for name in all.iter().filter(|name| !part.join(name).exists()) {
            let _ = std::fs::rename(folder.join(name), part.join(name));
        }
        return moved;
    }
    std::fs::remove_dir(part)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::{given_away, is_root};
    use crate::{id, read};

    /// A set-up of two files, and the result in words.
    fn set_up(path: &Path) -> Result<(), String> {
        set_up_folder(
            path,
            0o755,
            "last",
            |error| error.to_string(),
            |inside| {
                std::fs::write(inside.join("key"), "secret").unwrap();
                std::fs::write(inside.join("last"), "").map_err(|error| error.to_string())
            },
        )
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    /// Another user who can change a folder on the path could put a link in place of a new folder,
    /// and root would give the target away or write its keys there.
    #[test]
    fn root_makes_no_folder_on_a_path_that_others_can_change() {
        let dir = tempfile::tempdir().unwrap();
        let (home, link) = (dir.path().join("home"), dir.path().join("link"));
        let below = home.join("root/sub");
        std::fs::create_dir_all(&below).unwrap();
        let all = |mode| std::fs::set_permissions(&home, Permissions::from_mode(mode)).unwrap();
        let refused = |path: &Path| {
            let make =
                |path: &Path| make_folder(path, 0o700, |error| error.to_string(), |_| Ok(()));
            for result in [set_up(path), make(path)] {
                if is_root() {
                    let text = result.unwrap_err();
                    assert!(text.contains("expected a path that only root can change"), "{text}");
                    assert!(!path.exists(), "{}", path.display());
                }
            }
        };
        all(0o777);
        refused(&home.join("v"));
        refused(&below.join("v"));
        assert_eq!(set_up(&home.join("p/q/v")).is_err(), is_root());
        assert_eq!(home.join("p").exists(), !is_root());
        if !given_away(&home) {
            println!("skipped: only root can give files away");
            return;
        }
        all(0o755);
        for path in [home.join("v"), below.join("v")] {
            refused(&path);
        }
        // Also an empty folder of another user, and that user's link to one of root's.
        let empty = home.join("empty");
        std::fs::create_dir(&empty).unwrap();
        assert!(set_up(&empty).is_err() && given_away(&empty) && set_up(&empty).is_err());
        let ours = dir.path().join("ours");
        std::fs::create_dir(&ours).unwrap();
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(4001), None).unwrap();
        assert!(set_up(&link).is_err());
        assert_eq!(std::fs::read_dir(&ours).unwrap().count(), 0);
        assert!(given_away(&ours) && set_up(&ours).is_err());
        // No mode is set through a link.
        assert!(set_mode(&link, |_| 0o777).is_err());
        assert_eq!(mode(&ours), 0o755);
        // Root's entries of a folder with the sticky bit are safe.
        std::os::unix::fs::chown(&home, Some(0), None).unwrap();
        all(0o1777);
        set_up(&home.join("v")).unwrap();
    }

    #[test]
    fn an_empty_folder_is_set_up_in_place_without_the_write_permission_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let id = |path: &Path| id(&std::fs::metadata(path).unwrap());
        for name in ["open", "linked"] {
            std::fs::create_dir(at(name)).unwrap();
            std::fs::set_permissions(at(name), Permissions::from_mode(0o777)).unwrap();
        }
        // A mount point has its file system's own folder.
        std::fs::create_dir(at("open/lost+found")).unwrap();
        std::os::unix::fs::symlink("linked", at("link")).unwrap();
        let before = id(&at("open"));
        for (named, folder) in [
            ("open", "open"),
            ("link", "linked"),
            ("slash/", "slash"),
            ("dot/.", "dot"),
            ("p/q/v", "p/q/v"),
        ] {
            set_up(&at(named)).unwrap_or_else(|text| panic!("{named}: {text}"));
            assert_eq!((mode(&at(folder)), mode(&at(folder).join("key")) & 0o400), (0o755, 0o400));
            let made = names(&at(folder)).unwrap();
            assert_eq!(made, ["key", "last"], "{named}");
            let again = set_up(&at(named)).unwrap_err();
            assert!(again.contains("found in it: key, last"), "{again}");
            assert!(!again.contains("interrupted"), "{again}");
        }
        assert_eq!(id(&at("open")), before);
        assert_eq!((mode(&at("p")), mode(&at("p/q"))), (0o755, 0o755));
    }

    #[test]
    fn a_set_up_leaves_nothing_if_it_fails_and_is_named_if_it_was_killed() {
        let dir = tempfile::tempdir().unwrap();
        let (new, old) = (dir.path().join("new"), dir.path().join("old"));
        std::fs::create_dir(&old).unwrap();
        let fails = |path: &Path, fill: &dyn Fn(&Path)| {
            set_up_folder(
                path,
                0o755,
                "last",
                |error| error.to_string(),
                |inside| {
                    std::fs::write(inside.join("key"), "secret").unwrap();
                    fill(path);
                    if path.join("key").exists() { Ok(()) } else { Err("full".to_owned()) }
                },
            )
            .unwrap_err()
        };
        for path in [&new, &old] {
            assert_eq!(fails(path, &|_| ()), "full");
        }
        assert!(!new.exists() && names(&old).unwrap().is_empty());
        // A file that appeared stays.
        let text = fails(&old, &|path| std::fs::write(path.join("key"), "a user's").unwrap());
        assert!(text.contains("appeared"), "{text}");
        assert_eq!(names(&old).unwrap(), ["key"]);
        assert_eq!(read(&old.join("key")).unwrap(), "a user's");
        // What a killed one leaves.
        std::fs::create_dir(old.join("setup.0011223344556677.part")).unwrap();
        let text = set_up(&old).unwrap_err();
        assert!(
            text.contains("key, setup.0011223344556677.part. A set-up that was interrupted left"),
            "{text}"
        );
    }
}
