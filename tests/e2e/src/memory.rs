//! Searches the memory of a process for secrets.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{Read, Seek, SeekFrom};

/// Bytes of a window.
const WINDOW: usize = 16;
/// Secrets to be searched for are kept XORed with this, so that the search does not find itself.
pub const MASK: u8 = 0xa5;

type Window = [u8; WINDOW];

/// The 16-byte windows of secrets.
pub struct Needles {
    /// Windows, and the name of each secret.
    windows: HashMap<Window, String>,
    /// Whether a window begins with these two bytes.
    heads: Vec<bool>,
}

/// Result of a search.
#[derive(Debug, Default)]
pub struct Found {
    windows: BTreeSet<Window>,
    /// Names of the secrets that were found.
    pub names: BTreeSet<String>,
    /// Locations, for messages.
    pub places: Vec<String>,
    /// Number of bytes searched.
    pub searched: usize,
}

impl Found {
    /// Number of different windows found.
    pub fn count(&self) -> usize {
        self.windows.len()
    }
}

fn masked(window: &[u8]) -> Window {
    core::array::from_fn(|i| window[i] ^ MASK)
}

impl Needles {
    /// Secrets and their names.
    pub fn new<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        let mut needles = Self { windows: HashMap::new(), heads: vec![false; 1 << 16] };
        for (name, window) in secrets
            .into_iter()
            .flat_map(|(name, secret)| secret.windows(WINDOW).map(move |window| (name, window)))
        {
            // A window with few different bytes occurs in every memory.
            let mut seen = [false; 256];
            window.iter().for_each(|b| seen[usize::from(*b)] = true);
            if seen.iter().filter(|s| **s).count() < 8 {
                continue;
            }
            let masked = masked(window);
            needles.heads[usize::from(u16::from_be_bytes([masked[0], masked[1]]))] = true;
            needles.windows.insert(masked, name.to_owned());
        }
        needles
    }

    /// Number of different windows to search for.
    pub fn count(&self) -> usize {
        self.windows.len()
    }

    fn search(&self, bytes: &[u8], place: impl Fn(usize) -> String, found: &mut Found) {
        let head =
            |w: &[u8]| self.heads[usize::from(u16::from_be_bytes([w[0] ^ MASK, w[1] ^ MASK]))];
        // Adjacent windows count as one location.
        let mut before = None;
        for (at, window) in bytes.windows(WINDOW).enumerate().filter(|(_, w)| head(w)) {
            if let Some((window, name)) = self.windows.get_key_value(&masked(window)) {
                if before != Some((at.wrapping_sub(1), name)) {
                    found.places.push(format!("{name} {}", place(at)));
                }
                before = Some((at, name));
                found.windows.insert(*window);
                found.names.insert(name.clone());
            }
        }
        found.searched += bytes.len();
    }

    /// The secrets found in `bytes`.
    pub fn found(&self, bytes: &[u8]) -> Found {
        let mut found = Found::default();
        self.search(bytes, |at| format!("at {at:#x}"), &mut found);
        found
    }

    /// The same in every readable mapping of a process.
    ///
    /// # Panics
    /// If the system does not give access to the memory.
    pub fn found_in_process(&self, pid: u32) -> Found {
        let maps =
            fs::read_to_string(format!("/proc/{pid}/maps")).expect("the mappings of the process");
        let mut memory =
            fs::File::open(format!("/proc/{pid}/mem")).expect("the memory of the process");
        let mut found = Found::default();
        let mut buffer = vec![0; 1 << 20];
        for line in maps.lines() {
            let (range, rights) = line.split_once(' ').expect("a range and its rights");
            // The card's memory is a sparse file of 64 GiB, which reading would fill; everything
            // written to it crosses the wire.
            if !rights.starts_with('r')
                || line.ends_with("[vvar]")
                || line.ends_with("[vsyscall]")
                || line.contains("/memfd:")
            {
                continue;
            }
            let (from, to) = range.split_once('-').expect("two addresses");
            let address = |text| u64::from_str_radix(text, 16).expect("an address");
            let (mut at, to) = (address(from), address(to));
            while at < to {
                let len = (to - at).min(buffer.len() as u64) as usize;
                if memory.seek(SeekFrom::Start(at)).is_err()
                    || memory.read_exact(&mut buffer[..len]).is_err()
                {
                    break;
                }
                self.search(
                    &buffer[..len],
                    |offset| format!("at {:#x} of {line}", at + offset as u64),
                    &mut found,
                );
                // Pieces overlap, so that no window falls between two.
                at += if at + len as u64 == to { len } else { len - WINDOW + 1 } as u64;
            }
        }
        found
    }
}
