//! The Security Kernel: takes over the boot ROM's identity, and answers the mailbox.
#![no_std]
#![no_main]
#![expect(unsafe_code, reason = "the entry of the program")]
extern crate alloc;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::arch::global_asm;

use shef_firmware::machine::{BUS, clear_stack};
use shef_firmware::{HANDOVER, Hardware, clear_registers, serve, stop};
use shef_kernel::{IDENTITY_MAX, Identity, Kernel};
use shef_units::{Bus, Mmio, regs};
use zeroize::Zeroizing;

global_asm!(
    ".section .start, \"ax\"",
    ".option push",
    ".option norvc",
    ".globl start",
    "start:",
    "  la   t0, vectors + 1",
    "  csrw mtvec, t0",
    "  csrw mie, zero",
    clear_registers!(),
    "  li   sp, 0x20004000",
    "  j    main",
    ".balign 256",
    "vectors:",
    "  .rept 32",
    "  j    trap",
    "  .endr",
    ".option pop",
);

/// After start: registers and RAM are zero, and the identity is in place.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    let mut kernel = kernel();
    clear_stack();
    serve(&BUS, clear_stack, |message| kernel.handle(message))
}

/// Builds the kernel in a frame below the caller's, so that its stack residue is cleared.
#[inline(never)]
fn kernel() -> Box<Kernel<Hardware<Mmio>>> {
    let Ok(identity) = Identity::from_bytes(&take_identity()) else {
        stop(&BUS, regs::sys::ALERT_CODE_IMAGE)
    };
    Box::new(Kernel::new(Hardware::new(BUS, Vec::new()), identity))
}

/// Takes the identity's bytes and zeroises them in place.
fn take_identity() -> Zeroizing<Vec<u8>> {
    let len = (BUS.read(HANDOVER) as usize).min(IDENTITY_MAX);
    let mut bytes = Zeroizing::new(Vec::with_capacity(len.next_multiple_of(4)));
    for at in (HANDOVER + 4..).step_by(4).take(len.div_ceil(4)) {
        bytes.extend_from_slice(&BUS.read(at).to_le_bytes());
        BUS.write(at, 0);
    }
    BUS.write(HANDOVER, 0);
    bytes.truncate(len);
    bytes
}
