//! Folders for the secret of an image: in memory, and readable by their owner only.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, flock, statfs};
use rustix::io::{FdFlags, fcntl_setfd};

use crate::CloudError;

/// File systems in memory, by the number of statfs(2).
const MEMORY: &[(u64, &str)] = &[(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs")];
/// Others, for messages.
const OTHERS: &[(u64, &str)] = &[
    (0xef53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683e, "btrfs"),
    (0x794c_7630, "overlayfs"),
    (0x6969, "nfs"),
    (0x2fc1_2fc1, "zfs"),
];

/// Checks that an existing folder is in memory.
///
/// # Errors
/// SHEF-CLD-015.
pub fn in_memory(dir: &Path) -> Result<(), CloudError> {
    let found = statfs(dir).map_err(|e| CloudError::io("find", dir)(e.into()))?;
    let number = u64::from_ne_bytes(found.f_type.to_ne_bytes());
    if MEMORY.iter().any(|(known, _)| *known == number) {
        return Ok(());
    }
    let name = OTHERS.iter().find(|(known, _)| *known == number);
    let found = name.map_or(format!("file system {number:#x}"), |(_, name)| (*name).to_owned());
    Err(CloudError::NotInMemory { dir: dir.to_owned(), found })
}

/// Checks that only this user can use an existing folder, which is in memory.
///
/// # Errors
/// SHEF-CLD-015, SHEF-CLD-016.
pub fn private(dir: &Path) -> Result<(), CloudError> {
    in_memory(dir)?;
    let found = fs::symlink_metadata(dir).map_err(CloudError::io("find", dir))?;
    let (mode, user) = (found.mode() & 0o7777, found.uid());
    if found.is_dir() && mode & 0o077 == 0 && user == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(CloudError::NotPrivate { dir: dir.to_owned(), mode, user })
}

/// Disks to which a machine may move memory, tmpfs included, by its `/proc/swaps`. Compressed memory
/// does not count.
#[must_use]
pub fn swaps(list: &str) -> Vec<String> {
    let names = list.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    names.filter(|name| !name.starts_with("/dev/zram")).map(str::to_owned).collect()
}

/// Makes a folder for this user only, below one that is in memory.
///
/// # Errors
/// SHEF-CLD-015, or it cannot be made.
pub fn make(dir: &Path) -> Result<(), CloudError> {
    in_memory(shef_files::folder(dir))?;
    fs::DirBuilder::new().mode(0o700).create(dir).map_err(CloudError::io("make", dir))
}

/// The right to work in a folder. Programs that this process starts inherit it: it ends when all of
/// them have ended, also after this process was killed.
pub struct Held {
    _file: File,
}

/// Name of the file that is locked.
pub const HELD: &str = ".lock";

impl Held {
    /// Takes the right, if no other process has it.
    ///
    /// # Errors
    /// SHEF-CLD-025.
    pub fn take(dir: &Path) -> Result<Self, CloudError> {
        let path = dir.join(HELD);
        let file = File::options()
            .create(true)
            .append(true)
            .read(true)
            .open(&path)
            .map_err(CloudError::io("write", &path))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(CloudError::Busy { dir: dir.to_owned(), holder: holder(&file) });
        }
        fcntl_setfd(file.as_fd(), FdFlags::empty())
            .map_err(|e| CloudError::io("hold", &path)(e.into()))?;
        Ok(Self { _file: file })
    }
}

/// A process that has the file open, by the kernel's list.
fn holder(file: &File) -> String {
    let unknown = || "a process of another user".to_owned();
    let Ok(wanted) = file.metadata() else { return unknown() };
    let this = std::process::id().to_string();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let name = process.file_name().to_string_lossy().into_owned();
        if name == this || !name.bytes().all(|b| b.is_ascii_digit()) {
            continue;
        }
        let open = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        for fd in open {
            let same = fs::metadata(fd.path())
                .is_ok_and(|it| (it.dev(), it.ino()) == (wanted.dev(), wanted.ino()));
            if same {
                let program = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
                return format!("process {name}, {}", program.trim());
            }
        }
    }
    unknown()
}

/// Writes a file of the folder as a whole: a command that is killed leaves the old one or the new
/// one.
///
/// # Errors
/// SHEF-CLD-055.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), CloudError> {
    shef_files::replace(path, 0o600, bytes).map_err(CloudError::io("write", path))
}

/// Overwrites a file that holds a secret, and removes it. Nothing happens if it is missing.
///
/// # Errors
/// SHEF-CLD-055.
pub fn erase(path: &Path) -> Result<(), CloudError> {
    let wrong = CloudError::io("erase", path);
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(wrong(e)),
    };
    if found.is_file() {
        // Without truncation: the same pages are overwritten.
        let mut file = File::options().write(true).open(path).map_err(&wrong)?;
        let mut zeros = std::io::Read::take(std::io::repeat(0), found.len());
        std::io::copy(&mut zeros, &mut file).map_err(&wrong)?;
        file.sync_all().map_err(&wrong)?;
    }
    fs::remove_file(path).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_on_a_disk_is_refused() {
        let error = in_memory(Path::new("/proc")).unwrap_err();
        assert_eq!(error.code(), "SHEF-CLD-015");
        assert!(error.to_string().contains("file system 0x9fa0"), "{error}");
        in_memory(Path::new("/dev/shm")).unwrap();
    }

    #[test]
    fn a_folder_in_memory_is_private_and_held_by_one_command() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let at = dir.path().join("image");
        make(&at).unwrap();
        private(&at).unwrap();
        let held = Held::take(&at).unwrap();
        let error = Held::take(&at).err().unwrap();
        assert_eq!(error.code(), "SHEF-CLD-025");
        // A program that outlives the command still holds it.
        let mut sleeps = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        drop(held);
        let error = Held::take(&at).err().unwrap();
        assert!(error.to_string().contains(&format!("process {}, sleep", sleeps.id())), "{error}");
        sleeps.kill().unwrap();
        sleeps.wait().unwrap();
        Held::take(&at).unwrap();
        fs::set_permissions(&at, std::os::unix::fs::PermissionsExt::from_mode(0o750)).unwrap();
        assert_eq!(private(&at).unwrap_err().code(), "SHEF-CLD-016");
    }

    #[test]
    fn a_disk_for_swapping_is_seen() {
        let list = "Filename Type Size Used Priority\n/dev/zram0 partition 1 0 100\n/swapfile file 8 0 -2\n";
        assert_eq!(swaps(list), ["/swapfile"]);
        assert_eq!(swaps(""), [""; 0]);
    }

    #[test]
    fn a_secret_is_overwritten_before_its_name_goes() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let (file, second) = (dir.path().join("secret"), dir.path().join("second"));
        fs::write(&file, "secret").unwrap();
        fs::hard_link(&file, &second).unwrap();
        erase(&file).unwrap();
        erase(&file).unwrap();
        assert!(!file.exists());
        assert_eq!(fs::read(&second).unwrap(), [0; 6]);
    }
}
