//! An allocator that erases freed memory, for programs that handle other parties' secrets.
//!
//! A secret passes through buffers of TLS, HTTP, JSON and the database, which erase nothing. A
//! program with this allocator leaves no copy of it in freed memory, nor where a buffer grew.
//! Allocations of C libraries are not covered; AWS-LC erases its own.
//!
//! ```
//! #[global_allocator]
//! static ALLOCATOR: shef_erase::Erasing = shef_erase::Erasing;
//! # fn main() {}
//! ```
#![expect(unsafe_code, reason = "an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::ptr;

/// The system's allocator; overwrites every block with zeros before returning it.
pub struct Erasing;

// SAFETY: every block comes from `System` with the same layout, which upholds the contract.
unsafe impl GlobalAlloc for Erasing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's obligations are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block has this size, and the caller owns it.
        unsafe { ptr::write_bytes(block, 0, layout.size()) };
        // Keeps the compiler from removing a write that is never read.
        black_box(block);
        // SAFETY: the block came from `System` with this layout.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's size, rounded up to the alignment, is within bounds.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the caller's size is not zero.
        let new = unsafe { System.alloc(wanted) };
        if !new.is_null() {
            // SAFETY: both blocks are at least this long, and they do not overlap.
            unsafe { ptr::copy_nonoverlapping(block, new, layout.size().min(size)) };
            // SAFETY: the caller gives up the old block.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }
}
