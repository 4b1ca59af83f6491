//! Sparse byte memory with 64-bit addresses: the untrusted card memory of every simulated card.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Allocation unit in bytes.
const PAGE: usize = 4096;

/// Page numbers are already well distributed; a multiplication is enough and costs little on the
/// path of every beat.
#[derive(Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.write_u64(u64::from(b));
        }
    }
    fn write_u64(&mut self, n: u64) {
        let x = (self.0 ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = x ^ (x >> 29);
    }
}

/// Externally stored bytes, for example in memory shared with another program. Bytes outside it
/// read as zeros, and writes to them are ignored.
pub trait Bytes: Send + Sync {
    /// Copies bytes out.
    fn read(&self, addr: u64, buf: &mut [u8]);
    /// Copies bytes in.
    fn write(&self, addr: u64, data: &[u8]);
}

/// Memory of any size up to 2^64 bytes; bytes that were never written are zero. Accesses past the
/// last address wrap to 0. A clone shares pages until one of the two writes to them.
#[derive(Default, Clone)]
pub struct SparseMemory {
    pages: HashMap<u64, Arc<[u8; PAGE]>, BuildHasherDefault<PageHasher>>,
    elsewhere: Option<Arc<dyn Bytes>>,
}

impl SparseMemory {
    /// An empty (all zero) memory.
    pub fn new() -> Self {
        Self::default()
    }

    /// A memory over externally stored bytes. Its clones share them.
    pub fn over(bytes: Arc<dyn Bytes>) -> Self {
        Self { elsewhere: Some(bytes), ..Self::default() }
    }

    /// Copies `buf.len()` bytes from `addr` on into `buf`.
    pub fn read(&self, addr: u64, buf: &mut [u8]) {
        if let Some(bytes) = &self.elsewhere {
            return bytes.read(addr, buf);
        }
        let mut at = addr;
        let mut rest = buf;
        while !rest.is_empty() {
            let offset = (at % PAGE as u64) as usize;
            let n = rest.len().min(PAGE - offset);
            let (head, tail) = rest.split_at_mut(n);
            match self.pages.get(&(at / PAGE as u64)) {
                Some(page) => head.copy_from_slice(&page[offset..offset + n]),
                None => head.fill(0),
            }
            rest = tail;
            at = at.wrapping_add(n as u64);
        }
    }

    /// Copies `data` to `addr` and the bytes after it.
    pub fn write(&mut self, addr: u64, data: &[u8]) {
        if let Some(bytes) = &self.elsewhere {
            return bytes.write(addr, data);
        }
        let mut at = addr;
        let mut rest = data;
        while !rest.is_empty() {
            let offset = (at % PAGE as u64) as usize;
            let n = rest.len().min(PAGE - offset);
            let (head, tail) = rest.split_at(n);
            self.page(at)[offset..offset + n].copy_from_slice(head);
            rest = tail;
            at = at.wrapping_add(n as u64);
        }
    }

    /// Writes those bytes of `data` whose bit of `strobe` is set (bit i: byte i); at most 64 bytes,
    /// like one AXI beat.
    pub fn write_strobed(&mut self, addr: u64, data: &[u8], strobe: u64) {
        if self.elsewhere.is_some() && data.len() == 64 && strobe == u64::MAX {
            return self.write(addr, data);
        }
        for (i, &byte) in data.iter().take(64).enumerate() {
            if strobe >> i & 1 == 1 {
                if let Some(bytes) = &self.elsewhere {
                    bytes.write(addr.wrapping_add(i as u64), &[byte]);
                    continue;
                }
                let at = addr.wrapping_add(i as u64);
                self.page(at)[(at % PAGE as u64) as usize] = byte;
            }
        }
    }

    /// Number of 4 KiB pages allocated here.
    pub fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Clears everything stored here: all bytes are zero again.
    pub fn clear(&mut self) {
        self.pages.clear();
    }

    fn page(&mut self, addr: u64) -> &mut [u8; PAGE] {
        Arc::make_mut(self.pages.entry(addr / PAGE as u64).or_insert_with(|| Arc::new([0; PAGE])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritten_bytes_are_zero_and_writes_cross_pages() {
        let mut m = SparseMemory::new();
        let mut b = [1u8; 16];
        m.read(0xffff_ffff_0000, &mut b);
        assert_eq!(b, [0; 16]);
        let data: Vec<u8> = (0..10_000u32).map(|i| i as u8 | 1).collect();
        m.write(4090, &data);
        let mut back = vec![0; 10_002];
        m.read(4089, &mut back);
        assert_eq!(back[0], 0);
        assert_eq!(&back[1..10_001], &data[..]);
        assert_eq!(back[10_001], 0);
    }

    #[test]
    fn bytes_may_lie_elsewhere() {
        struct Few(std::sync::Mutex<[u8; 256]>);
        impl Bytes for Few {
            fn read(&self, addr: u64, buf: &mut [u8]) {
                buf.copy_from_slice(&self.0.lock().unwrap()[addr as usize..][..buf.len()]);
            }
            fn write(&self, addr: u64, data: &[u8]) {
                self.0.lock().unwrap()[addr as usize..][..data.len()].copy_from_slice(data);
            }
        }
        let few = Arc::new(Few(std::sync::Mutex::new([0; 256])));
        let mut m = SparseMemory::over(Arc::clone(&few) as Arc<dyn Bytes>);
        m.write(3, &[1, 2]);
        m.write_strobed(64, &[7; 64], 1 << 2);
        m.write_strobed(128, &[9; 64], u64::MAX);
        let here = *few.0.lock().unwrap();
        assert_eq!((here[3], here[4], here[64], here[66], here[191]), (1, 2, 0, 7, 9));
        let mut b = [0; 2];
        m.clone().read(3, &mut b);
        assert_eq!((b, m.pages()), ([1, 2], 0));
    }

    #[test]
    fn strobes_choose_bytes_and_addresses_wrap() {
        let mut m = SparseMemory::new();
        m.write_strobed(64, &[0xaa; 64], 0x8000_0000_0000_0005);
        let mut b = [0; 64];
        m.read(64, &mut b);
        assert_eq!((b[0], b[1], b[2], b[62], b[63]), (0xaa, 0, 0xaa, 0, 0xaa));
        m.write(u64::MAX, &[1, 2]);
        let mut b = [0; 2];
        m.read(u64::MAX, &mut b);
        assert_eq!(b, [1, 2]);
        m.read(0, &mut b);
        assert_eq!(b, [2, 0]);
    }
}
