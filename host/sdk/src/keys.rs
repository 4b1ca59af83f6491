//! The key folder of a party: secrets as files that only their owner can read.

use std::fs;
use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::time::{Duration, Instant};

use shef_proto::cose::SigningKey;
use shef_proto::entropy::Entropy;
use shef_proto::hpke_suite::{PrivateKey, generate_key_pair};
use zeroize::Zeroizing;

use crate::SdkError;

/// File of a party's signing key.
const SECRET: &str = "signing.key";
const PUBLIC: &str = "signing.pub";

/// Lock file that is held while keys are made.
#[cfg(unix)]
const LOCK: &str = ".lock";
/// The longest wait for that lock. Keys are made in milliseconds.
#[cfg(unix)]
const HELD: Duration = Duration::from_secs(10);

/// Maximum size of a secret's file.
#[cfg(unix)]
const MOST: usize = 256;

/// Maximum size of a public file.
const MOST_PUBLIC: u64 = 1 << 20;

/// A folder that belongs to one party and holds its keys. Parties exchange messages, never folders.
pub struct KeyFolder {
    path: PathBuf,
}

impl KeyFolder {
    /// Opens a folder; creates it, readable by its owner only, if it does not exist.
    ///
    /// # Errors
    /// [`SdkError::KeyFile`], [`SdkError::KeyOpen`].
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, SdkError> {
        let path = path.into();
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path).map_err(|e| match e.kind() {
            std::io::ErrorKind::AlreadyExists => SdkError::KeyFile {
                path: path.clone(),
                reason: "expected a folder, found a file".to_owned(),
            },
            _ => SdkError::key_file(&path, &e),
        })?;
        Self::existing(path)
    }

    /// Opens an existing folder: a caller that only reads keys creates no folder.
    ///
    /// # Errors
    /// [`SdkError::KeyFile`], [`SdkError::KeyOpen`].
    pub fn existing(path: impl Into<PathBuf>) -> Result<Self, SdkError> {
        let path = path.into();
        if !fs::metadata(&path).map_err(|e| SdkError::key_file(&path, &e))?.is_dir() {
            return Err(SdkError::KeyFile {
                path,
                reason: "expected a folder, found a file".to_owned(),
            });
        }
        // Write access to the folder is enough to substitute a key.
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let found = fs::metadata(&path).map_err(|e| SdkError::key_file(&path, &e))?;
            own(
                &path,
                found.uid(),
                found.mode() & 0o022,
                "others can change the folder that it is in: chmod 700 it",
            )?;
        }
        Ok(Self { path })
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps other processes and threads from making keys here until the returned lock is dropped:
    /// keys are made once, and all callers find the same ones. The lock is on a file that only the
    /// owner can open: other users could lock a folder that they can read.
    ///
    /// # Errors
    /// [`SdkError::KeyFile`] with the file, also after [`HELD`]; [`SdkError::KeyOpen`].
    #[cfg(unix)]
    pub(crate) fn alone(&self) -> Result<fs::File, SdkError> {
        use rustix::fs::{Mode, OFlags};
        use std::os::unix::fs::MetadataExt;
        let path = self.path.join(LOCK);
        let failed = |e: std::io::Error| SdkError::key_file(&path, &e);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = fs::File::from(
            rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)
                .map_err(|e| failed(e.into()))?,
        );
        let found = file.metadata().map_err(failed)?;
        if !found.is_file() {
            return Err(SdkError::KeyOpen { path, reason: "it is not a plain file" });
        }
        own(&path, found.uid(), found.mode() & 0o077, "others can open and lock it: chmod 600 it")?;
        let begun = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(fs::TryLockError::Error(e)) => return Err(failed(e)),
                Err(fs::TryLockError::WouldBlock) if begun.elapsed() < HELD => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                Err(fs::TryLockError::WouldBlock) => {
                    let reason = format!(
                        "another process has held this lock for {} s: end that process",
                        HELD.as_secs()
                    );
                    return Err(SdkError::KeyFile { path, reason });
                }
            }
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn alone(&self) -> Result<(), SdkError> {
        Ok(())
    }

    /// Whether a file of that name exists.
    pub fn has(&self, name: &str) -> bool {
        self.path.join(name).exists()
    }

    /// Stores a secret as hexadecimal digits; an existing one is never overwritten.
    ///
    /// # Errors
    /// [`SdkError::KeyFile`].
    pub fn store_secret(&self, name: &str, secret: &[u8]) -> Result<(), SdkError> {
        let mut text = Zeroizing::new(String::with_capacity(2 * secret.len() + 1));
        for byte in secret {
            for nibble in [byte >> 4, byte & 15] {
                text.push(char::from(b"0123456789abcdef"[usize::from(nibble)]));
            }
        }
        text.push('\n');
        self.store_secret_text(name, &text)
    }

    /// Stores text that contains a secret; an existing file is never overwritten.
    ///
    /// # Errors
    /// [`SdkError::KeyFile`].
    pub fn store_secret_text(&self, name: &str, text: &str) -> Result<(), SdkError> {
        let path = self.path.join(name);
        shef_files::staged::write_new_secret(&path, text.as_bytes())
            .map_err(|e| SdkError::key_file(&path, &e))
    }

    /// Reads a 32-byte secret from a plain file that only its owner can read.
    ///
    /// # Errors
    /// [`SdkError::KeyFile`], [`SdkError::KeyFormat`], [`SdkError::KeyOpen`].
    pub fn secret32(&self, name: &str) -> Result<Zeroizing<[u8; 32]>, SdkError> {
        let path = self.path.join(name);
        let text = read_secret(&path)?;
        let digits: &[u8] = text.strip_suffix(b"\n").unwrap_or(&text);
        if digits.len() != 64 {
            return Err(SdkError::KeyFormat {
                path,
                reason: format!("{} digits, expected 64", digits.len()),
            });
        }
        let nibble = |c: u8| char::from(c).to_digit(16).map(|d| d as u8);
        let mut key = Zeroizing::new([0; 32]);
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            match (nibble(pair[0]), nibble(pair[1])) {
                (Some(high), Some(low)) => *byte = high << 4 | low,
                _ => {
                    return Err(SdkError::KeyFormat {
                        path,
                        reason: "a character is no hexadecimal digit".to_owned(),
                    });
                }
            }
        }
        Ok(key)
    }

    /// The party's signing key; created, with its public key beside it, if it is missing.
    ///
    /// # Errors
    /// [`SdkError::KeyFile`], [`SdkError::KeyFormat`].
    pub fn signing_key(&self, entropy: &mut dyn Entropy) -> Result<SigningKey, SdkError> {
        if !self.has(SECRET) || !self.has(PUBLIC) {
            let _alone = self.alone()?;
            if !self.has(SECRET) && self.has(PUBLIC) {
                let reason = format!(
                    "it is missing, and {PUBLIC} beside it names a key: expected both or neither. Restore it from a copy; for a new key, use another folder"
                );
                return Err(SdkError::KeyFormat { path: self.path.join(SECRET), reason });
            }
            if !self.has(SECRET) {
                self.store_secret(SECRET, &generate_key_pair(entropy).0.to_bytes()[..])?;
            }
            // A process may have ended between writing the two.
            if !self.has(PUBLIC) {
                self.store_public(PUBLIC, self.existing_signing_key()?.public_key().as_bytes())?;
            }
        }
        self.existing_signing_key()
    }

    /// The party's signing key, which must exist, and match the public key beside it.
    ///
    /// # Errors
    /// [`SdkError::KeyFile`], [`SdkError::KeyFormat`].
    pub fn existing_signing_key(&self) -> Result<SigningKey, SdkError> {
        let format = |reason| SdkError::KeyFormat { path: self.path.join(SECRET), reason };
        let secret = self.secret32(SECRET)?;
        let secret = PrivateKey::from_bytes(&secret[..]).map_err(|e| format(e.to_string()))?;
        let key = SigningKey::new(&secret);
        if self.has(PUBLIC) && self.public(PUBLIC)? != key.public_key().as_bytes() {
            return Err(format(format!(
                "{PUBLIC} beside it names another key: expected a pair. Restore the one that is wrong from a copy"
            )));
        }
        Ok(key)
    }

    /// Stores public bytes.
    ///
    /// # Errors
    /// [`SdkError::KeyFile`].
    pub fn store_public(&self, name: &str, bytes: &[u8]) -> Result<(), SdkError> {
        let path = self.path.join(name);
        shef_files::staged::write_file(&path, bytes).map_err(|e| SdkError::key_file(&path, &e))
    }

    /// Reads public bytes.
    ///
    /// # Errors
    /// [`SdkError::KeyFile`].
    pub fn public(&self, name: &str) -> Result<Vec<u8>, SdkError> {
        let path = self.path.join(name);
        shef_files::regular::read(&path, MOST_PUBLIC).map_err(|e| SdkError::key_file(&path, &e))
    }
}

/// Refuses files and folders that are accessible to other users.
#[cfg(unix)]
fn own(path: &Path, uid: u32, open: u32, reason: &'static str) -> Result<(), SdkError> {
    let error = |reason| Err(SdkError::KeyOpen { path: path.to_owned(), reason });
    if uid != rustix::process::geteuid().as_raw() {
        return error("it belongs to another user");
    }
    if open == 0 { Ok(()) } else { error(reason) }
}

/// Reads a secret from a plain file that only its owner can access: no link, whose target another
/// user may have chosen, and no pipe, on which the read would block.
#[cfg(unix)]
fn read_secret(path: &Path) -> Result<Zeroizing<Vec<u8>>, SdkError> {
    use rustix::fs::OFlags;
    use std::io::Read;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let refused = |reason| SdkError::KeyOpen { path: path.to_owned(), reason };
    let failed = |error: std::io::Error| match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::LOOP) => refused("it is a link, expected a plain file"),
        _ => SdkError::key_file(path, &error),
    };
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)
        .map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() {
        return Err(refused("it is not a plain file"));
    }
    if found.nlink() != 1 {
        return Err(refused("it has a second name (a hard link)"));
    }
    own(path, found.uid(), found.mode() & 0o077, "others can read or change it: chmod 600 it")?;
    // A secret is short, and a growing buffer leaves copies behind.
    let mut text = Zeroizing::new(Vec::with_capacity(MOST));
    file.take(MOST as u64).read_to_end(&mut text).map_err(failed)?;
    Ok(text)
}

#[cfg(not(unix))]
fn read_secret(path: &Path) -> Result<Zeroizing<Vec<u8>>, SdkError> {
    Ok(Zeroizing::new(fs::read(path).map_err(|e| SdkError::key_file(path, &e))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_come_back_and_are_private_and_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let folder = KeyFolder::open(dir.path().join("owner")).unwrap();
        let secret: [u8; 32] = core::array::from_fn(|i| i as u8 * 7);
        folder.store_secret("a.key", &secret).unwrap();
        assert_eq!(*folder.secret32("a.key").unwrap(), secret);
        assert_eq!(folder.store_secret("a.key", &secret).unwrap_err().code(), "SHEF-SDK-012");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(
                fs::metadata(folder.path().join("a.key")).unwrap().permissions().mode() & 0o777,
                0o600
            );
            assert_eq!(fs::metadata(folder.path()).unwrap().permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn damaged_key_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let folder = KeyFolder::open(dir.path()).unwrap();
        assert_eq!(folder.secret32("none").unwrap_err().code(), "SHEF-SDK-012");
        for bad in [
            String::new(),
            "00".repeat(31),
            "00".repeat(33),
            "0g".repeat(32),
            format!("{}\n\n", "00".repeat(32)),
        ] {
            folder.store_public("bad", bad.as_bytes()).unwrap();
            #[cfg(unix)]
            fs::set_permissions(
                folder.path().join("bad"),
                std::os::unix::fs::PermissionsExt::from_mode(0o600),
            )
            .unwrap();
            assert_eq!(folder.secret32("bad").unwrap_err().code(), "SHEF-SDK-013", "{bad:?}");
        }
    }

    #[test]
    fn a_pair_of_which_a_half_is_lost_or_exchanged_is_no_key() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = KeyFolder::open(dir.path().join(name)).unwrap();
            folder.signing_key(&mut crate::SystemEntropy::new().unwrap()).unwrap();
            folder
        };
        let again = |folder: &KeyFolder| {
            folder.signing_key(&mut crate::SystemEntropy::new().unwrap()).map(drop)
        };
        let (one, other) = (make("one"), make("other"));
        again(&one).unwrap();
        fs::copy(other.path().join(PUBLIC), one.path().join(PUBLIC)).unwrap();
        let mixed = again(&one).unwrap_err();
        assert!(mixed.to_string().contains("names another key"), "{mixed}");
        fs::remove_file(one.path().join(SECRET)).unwrap();
        let lost = again(&one).unwrap_err();
        assert!(lost.code() == "SHEF-SDK-013" && lost.to_string().contains(PUBLIC), "{lost}");
        assert!(!one.has(SECRET), "no key under the old name");
        // A process that ended between writing the two.
        fs::remove_file(other.path().join(PUBLIC)).unwrap();
        again(&other).unwrap();
        assert!(other.has(PUBLIC));
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_of_others_holds_nobody() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let folder = KeyFolder::open(dir.path().join("owner")).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // The folder is all that another user can open.
        let theirs = fs::File::open(folder.path()).unwrap();
        theirs.lock_shared().unwrap();
        let (sender, made) = std::sync::mpsc::channel();
        let at = folder.path().to_owned();
        std::thread::spawn(move || {
            let folder = KeyFolder::open(at).unwrap();
            sender.send(folder.signing_key(&mut crate::SystemEntropy::new().unwrap()).map(drop))
        });
        made.recv_timeout(Duration::from_secs(5)).expect("it waits for a stranger").unwrap();
        let lock = folder.path().join(LOCK);
        assert_eq!(fs::metadata(&lock).unwrap().permissions().mode() & 0o777, 0o600);
        // An existing key needs no lock; a hung process of the same user ends the wait.
        let own = fs::File::open(&lock).unwrap();
        own.lock().unwrap();
        folder.signing_key(&mut crate::SystemEntropy::new().unwrap()).unwrap();
        let error = folder.alone().map(drop).unwrap_err();
        assert!(error.code() == "SHEF-SDK-012" && error.to_string().contains(".lock"), "{error}");
        // A dangling link in its place.
        fs::remove_file(&lock).unwrap();
        std::os::unix::fs::symlink(dir.path().join("elsewhere"), &lock).unwrap();
        folder.alone().map(drop).unwrap_err();
        assert!(!dir.path().join("elsewhere").exists());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_its_owners_alone_is_refused() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().join("owner");
        let folder = KeyFolder::open(&at).unwrap();
        folder.store_secret("a.key", &[7; 32]).unwrap();
        let path = |name: &str| at.join(name);
        let refused = |name: &'static str, says: &str| {
            // A pipe must not block.
            let (sender, result) = std::sync::mpsc::channel();
            let folder = KeyFolder::open(&at).unwrap();
            std::thread::spawn(move || sender.send(folder.secret32(name).map(drop)));
            let error = result
                .recv_timeout(std::time::Duration::from_secs(20))
                .expect("it waits")
                .expect_err(name);
            assert_eq!(error.code(), "SHEF-SDK-048", "{error}");
            assert!(error.to_string().contains(says), "{error}");
        };
        let mode = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        for open in [0o640, 0o604, 0o620, 0o602, 0o644] {
            mode(&path("a.key"), open);
            refused("a.key", "chmod 600");
        }
        mode(&path("a.key"), 0o600);
        symlink(path("a.key"), path("link.key")).unwrap();
        refused("link.key", "a link");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path("pipe.key"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        refused("pipe.key", "not a plain file");
        fs::hard_link(path("a.key"), path("second.key")).unwrap();
        refused("a.key", "second name");
        fs::remove_file(path("second.key")).unwrap();
        assert_eq!(*folder.secret32("a.key").unwrap(), [7; 32]);
        // A folder that other users can change.
        for open in [0o770, 0o707, 0o777] {
            mode(&at, open);
            assert_eq!(KeyFolder::open(&at).err().expect("open to others").code(), "SHEF-SDK-048");
        }
        mode(&at, 0o755);
        KeyFolder::open(&at).unwrap();
        // A file of another user: made with chown if that is permitted, otherwise a file of the
        // system.
        let theirs = if std::os::unix::fs::chown(&at, Some(65_534), None).is_ok() {
            at
        } else {
            "/usr".into()
        };
        let error = KeyFolder::open(theirs).map(drop).expect_err("another user's folder");
        assert!(
            error.code() == "SHEF-SDK-048" && error.to_string().contains("another user"),
            "{error}"
        );
    }
}
