//! The runtime below Rust: start, traps, heap, panics.
#![expect(
    unsafe_code,
    reason = "the start of a program, its heap, and memory that is reached by its address"
)]

use core::alloc::{GlobalAlloc, Layout};
use core::arch::global_asm;

use shef_units::{Mmio, regs};

use crate::heap::{Arena, Words};
use crate::stop;

/// The bus of the core.
pub const BUS: Mmio = Mmio::CORE;

// A trap never returns. A panic compiles to an illegal instruction.
global_asm!(
    ".section .text.trap, \"ax\"",
    ".globl trap",
    "trap:",
    "  csrr t0, mcause",
    "  addi t0, t0, -2",
    "  li   t1, {PANIC}",
    "  beqz t0, 1f",
    "  li   t1, {TRAP}",
    "1:",
    "  li   t0, {ALERT}",
    "  sw   t1, 0(t0)",
    "  li   t0, {CONTROL}",
    "  li   t1, {STOP}",
    "2:",
    "  sw   t1, 0(t0)",
    "  j    2b",
    PANIC = const regs::sys::ALERT_CODE_PANIC,
    TRAP = const regs::sys::ALERT_CODE_TRAP,
    ALERT = const regs::sys::ALERT,
    CONTROL = const regs::sys::CONTROL,
    STOP = const regs::sys::CONTROL_WIPE | regs::sys::CONTROL_HALT,
);

/// Assembly: zeroes all registers, because secrets of earlier code survive a reset in them.
#[macro_export]
macro_rules! clear_registers {
    () => {
        "
        .irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        li   x\\n, 0
        .endr
        "
    };
}

/// Assembly: zeroes memory from the address in t0 to that in t1, in steps of 32 bytes.
#[macro_export]
macro_rules! zero_memory {
    () => {
        "
        3:
        sw   zero, 0(t0)
        sw   zero, 4(t0)
        sw   zero, 8(t0)
        sw   zero, 12(t0)
        sw   zero, 16(t0)
        sw   zero, 20(t0)
        sw   zero, 24(t0)
        sw   zero, 28(t0)
        addi t0, t0, 32
        bltu t0, t1, 3b
        "
    };
}

// Clears the stack below the caller, and the registers that the caller does not preserve. A stack
// overflow traps, because there is no memory below the stack.
global_asm!(
    ".section .text.clear_stack, \"ax\"",
    ".globl clear_stack_below",
    "clear_stack_below:",
    "  li   t0, 0x20000000",
    "1:",
    "  sw   zero, 0(t0)",
    "  addi t0, t0, 4",
    "  bltu t0, sp, 1b",
    "  .irp n, 5,6,7,10,11,12,13,14,15,16,17,28,29,30,31",
    "  li   x\\n, 0",
    "  .endr",
    "  ret",
);

unsafe extern "C" {
    fn clear_stack_below();
}

/// Overwrites the stack frames of calls that have returned.
pub fn clear_stack() {
    // SAFETY: the routine writes between the start of the stack and the stack pointer, where no
    // frame is live, and changes only registers that a call may change.
    unsafe { clear_stack_below() }
}

unsafe extern "C" {
    static mut _heap_start: u32;
    static mut _heap_end: u32;
}

/// The words that the linker script reserves for the heap.
struct Memory;

impl Memory {
    fn word(at: usize) -> *mut u32 {
        core::ptr::with_exposed_provenance_mut((&raw mut _heap_start).expose_provenance() + 4 * at)
    }
}

impl Words for Memory {
    fn count(&self) -> usize {
        ((&raw mut _heap_end).addr() - (&raw mut _heap_start).addr()) / 4
    }

    fn get(&self, at: usize) -> u32 {
        // SAFETY: the linker script reserves this memory for the heap, start code has zeroed it,
        // and the arena accesses words below `count` that no block in use has.
        unsafe { Self::word(at).read() }
    }

    fn set(&mut self, at: usize, value: u32) {
        // SAFETY: as above.
        unsafe { Self::word(at).write(value) }
    }
}

struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

// SAFETY: blocks of the arena do not overlap and begin at multiples of 8 bytes, as `_heap_start`
// does. There is one core, interrupts are never enabled, and `Arena` does not allocate.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() <= 8
            && let Some(word) = Arena::new(Memory).allocate(layout.size())
        {
            return Memory::word(word).cast();
        }
        stop(&BUS, regs::sys::ALERT_CODE_MEMORY)
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        Arena::new(Memory).free((block.addr() - (&raw mut _heap_start).addr()) / 4);
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    stop(&BUS, regs::sys::ALERT_CODE_PANIC)
}
