//! Files of programs: those that commands change while a service reads them or another administrator
//! changes them, [inputs](regular) and [outputs](staged).
//!
//! A command takes the [`lock`] of the folder, reads the file, and [`replace`]s it. A reader finds
//! the old or the new file, always complete: the new one is written as a [`Part`], under a name
//! that no other file has. Except for [`open_linked`], [`open_private`] and [`read_linked`], no
//! function here follows a symbolic link at the end of a file's path. Root trusts neither folders
//! that others can change, nor their files, nor paths that they can redirect ([`way`]).

pub mod regular;
pub mod staged;

mod folders;
mod lock;
mod owner;
mod part;
mod read;

pub use folders::{make_folder, new_folder, set_up_folder};
pub use lock::{FolderLock, LOCK, lock};
pub use owner::{Owner, check, foreign, look, way};
pub use part::{Part, replace, write_new};
pub use read::{
    PrivateError, close_to_others, contents, open, open_linked, open_private, read, read_linked,
};

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

/// The folder of a file.
#[must_use]
pub fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn no_follow(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
}

/// Gives a file created by root the owner and group of `like`.
fn hand_over(file: &File, like: &std::fs::Metadata) -> io::Result<()> {
    if file.metadata()?.uid() == 0 {
        fchown(file, Some(like.uid()), Some(like.gid()))
    } else {
        Ok(())
    }
}

/// Creates an empty file with exactly this mode, whatever the umask. If root creates it, it gets
/// the owner and group of the file that it replaces, or of its folder.
///
/// # Errors
/// It exists, or cannot be created.
pub fn create(path: &Path, mode: u32, in_place_of: &Path) -> io::Result<File> {
    // Before the new file exists: it may have the name of the old one.
    let owner =
        std::fs::symlink_metadata(in_place_of).or_else(|_| std::fs::metadata(folder(path)))?;
    let file = no_follow(OpenOptions::new().write(true).create_new(true).mode(mode)).open(path)?;
    let ready =
        hand_over(&file, &owner).and_then(|()| file.set_permissions(Permissions::from_mode(mode)));
    match ready {
        Ok(()) => Ok(file),
        Err(error) => {
            let _ = std::fs::remove_file(path);
            Err(error)
        }
    }
}

/// A name beside `path` that no other file has: the whole name, a random number and `.part`.
///
/// # Errors
/// The system provides no random number.
pub fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(io::Error::other)?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:016x}.part", u64::from_le_bytes(random)));
    Ok(name.into())
}

/// A version of a file: inode, time of its last change, length in bytes.
pub type Stamp = (u64, i64, i64, u64);

/// The version of a file that is there now, through links; `None` if there is no file.
#[must_use]
pub fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.ino(), found.ctime(), found.ctime_nsec(), found.len()))
}

/// Device and inode number of a file.
#[must_use]
pub fn id(found: &std::fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}
