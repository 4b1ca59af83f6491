//! The boot ROM: checks and measures the kernel on the boot medium, makes its identity, erases the
//! secrets that the kernel must not have, and starts it.
#![no_std]
#![no_main]
#![expect(unsafe_code, reason = "the entry of the program and its way out")]
extern crate alloc;

use alloc::string::ToString;
use alloc::vec::Vec;
use core::arch::global_asm;

use shef_firmware::machine::{BUS, clear_stack};
use shef_firmware::signer::{LEAST_SVN, SIGNER};
use shef_firmware::{HANDOVER, Hardware, clear_registers, serve, stop, zero_memory};
use shef_kernel::{
    BootError, KernelImage, Measurement, Medium, SIGNATURE_FILE_LEN, admit, identify,
};
use shef_proto::crypto::{ACTIVE, Crypto};
use shef_proto::mailbox::Answer;
use shef_units::{Bus, regs};

// Traps jump to the vector of their cause, reset starts at 0x80.
global_asm!(
    ".section .start, \"ax\"",
    ".option push",
    ".option norvc",
    "vectors:",
    "  .rept 32",
    "  j    trap",
    "  .endr",
    ".globl start",
    "start:",
    "  csrw mie, zero",
    "  li   t0, 1",
    "  csrw mtvec, t0",
    clear_registers!(),
    "  li   t0, 0x20000000",
    "  li   t1, 0x20040000",
    zero_memory!(),
    "  li   sp, 0x20004000",
    "  j    main",
    // Clears the registers and all RAM except the identity. Then, from the end of kernel memory,
    // where the ROM may be closed: kernel memory r-x, RAM and registers rw-, the fourth entry off,
    // everything else closed (MMWP), locked until reset.
    ".globl leave",
    "leave:",
    "  li   t0, 0x20000000",
    "  li   t1, 0x2003f000",
    zero_memory!(),
    "  la   t0, way_out",
    "  li   t1, 0x1003ffc0",
    "  lw   t2, 0(t0)",
    "  sw   t2, 0(t1)",
    "  lw   t2, 4(t0)",
    "  sw   t2, 4(t1)",
    "  lw   t2, 8(t0)",
    "  sw   t2, 8(t1)",
    "  fence.i",
    clear_registers!(),
    "  li   t1, 0x1003ffc0",
    // NAPOT: 256 KiB each, then 64 KiB of registers.
    "  li   t0, (0x10000000 >> 2) | 0x7fff",
    "  csrw pmpaddr0, t0",
    "  li   t0, (0x20000000 >> 2) | 0x7fff",
    "  csrw pmpaddr1, t0",
    "  li   t0, (0x40000000 >> 2) | 0x1fff",
    "  csrw pmpaddr2, t0",
    "  li   t0, 0x809b9b9d",
    "  li   t2, 2",
    "  li   t3, 0x10000000",
    "  jr   t1",
    "way_out:",
    "  csrw pmpcfg0, t0",
    "  csrw 0x747, t2",
    "  jr   t3",
    // Clears RAM and registers, and restarts at `refused`. The mailbox keeps a pending request.
    ".globl forget",
    "forget:",
    "  li   t0, 0x20000000",
    "  li   t1, 0x20040000",
    zero_memory!(),
    clear_registers!(),
    "  li   sp, 0x20004000",
    "  j    refused",
    ".option pop",
);

unsafe extern "C" {
    fn leave() -> !;
    fn forget() -> !;
}

/// After start: registers and RAM are zero.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    match boot() {
        // SAFETY: the identity and the kernel are in place; nothing is used afterwards.
        Ok(()) => unsafe { leave() },
        Err(error) => refuse(&error),
    }
}

/// Reads a word of the boot medium.
fn word(at: usize) -> [u8; 4] {
    BUS.read(regs::MEDIUM + at as u32).to_le_bytes()
}

/// Copies from the boot medium.
fn copy(at: usize, out: &mut [u8]) {
    for (word_at, bytes) in (at..).step_by(4).zip(out.chunks_mut(4)) {
        bytes.copy_from_slice(&word(word_at)[..bytes.len()]);
    }
}

/// Maximum length of an image's head, in whole words.
const HEAD_MAX: usize = (KernelImage::HEAD_MAX + 1).next_multiple_of(4);

fn boot() -> Result<(), BootError> {
    let image_max = HEAD_MAX + regs::MEMORY_LEN - 64;
    let medium = Medium::read(regs::MEDIUM_LEN, image_max, word)?;

    // The head is parsed and measured here, the code where it will run.
    let mut head = [0; HEAD_MAX];
    copy(Medium::IMAGE, &mut head);
    let (svn, version, head_len) =
        KernelImage::parse_head(&head[..HEAD_MAX.min(medium.image_len)])?;
    let code_len = medium.image_len - head_len;
    // The exit code overwrites the last 64 bytes of kernel memory. The kernel must not reach them:
    // exactly the measured code runs.
    if code_len > regs::MEMORY_LEN - 64 {
        return Err(BootError::KernelImage { what: "larger than the kernel's memory" });
    }
    let digest = ACTIVE.sha256(&[&head[..head_len], place(head_len, code_len)]);
    let kernel = Measurement { digest, svn, version };

    let mut signature = [0; SIGNATURE_FILE_LEN];
    copy(medium.signature(), &mut signature);
    admit(&kernel, &signature, &SIGNER, LEAST_SVN)?;

    let mut certificate = alloc::vec![0; medium.certificate_len];
    copy(medium.certificate(), &mut certificate);
    let identity = identify(&mut Hardware::new(BUS, certificate), &kernel)?.to_bytes();
    hand_over(&identity);
    Ok(())
}

/// Writes a length and the bytes to memory, as words.
fn store(at: u32, bytes: &[u8]) {
    BUS.write(at, bytes.len() as u32);
    for (at, bytes) in (at + 4..).step_by(4).zip(bytes.chunks(4)) {
        let mut value = [0; 4];
        value[..bytes.len()].copy_from_slice(bytes);
        BUS.write(at, u32::from_le_bytes(value));
    }
}

/// Copies the code to its run address; reset has cleared that memory.
fn place(head_len: usize, code_len: usize) -> &'static [u8] {
    let (from, shift) = (Medium::IMAGE + (head_len & !3), 8 * (head_len % 4) as u32);
    let mut low = u32::from_le_bytes(word(from));
    for at in (0..code_len).step_by(4) {
        let high = u32::from_le_bytes(word(from + at + 4));
        let value = ((u64::from(high) << 32 | u64::from(low)) >> shift) as u32;
        low = high;
        BUS.write(regs::MEMORY + at as u32, value);
    }
    // Clears the bytes after the code in its last word, which are not measured.
    if !code_len.is_multiple_of(4) {
        let last = regs::MEMORY + (code_len & !3) as u32;
        BUS.write(last, BUS.read(last) & ((1 << (8 * (code_len % 4))) - 1));
    }
    // SAFETY: the loop above wrote this memory, nothing else is there, and it does not change.
    unsafe {
        core::slice::from_raw_parts(
            core::ptr::with_exposed_provenance(regs::MEMORY as usize),
            code_len,
        )
    }
}

fn hand_over(identity: &[u8]) {
    if identity.len() > shef_kernel::IDENTITY_MAX {
        stop(&BUS, regs::sys::ALERT_CODE_MEMORY);
    }
    store(HANDOVER, identity);
}

/// Answers every request with this error. Boot leaves nothing but the answer, which replaces the
/// kernel in memory.
fn refuse(error: &BootError) -> ! {
    BUS.write(regs::sys::CONTROL, regs::sys::CONTROL_UDS_LOCK);
    let alert = match error {
        BootError::Entropy { .. } => regs::sys::ALERT_CODE_NOISE,
        _ => regs::sys::ALERT_CODE_IMAGE,
    };
    BUS.write(regs::sys::ALERT, alert);
    store(
        regs::MEMORY,
        &Answer::Error { code: error.code().into(), text: error.to_string() }.encode(),
    );
    // SAFETY: RAM is not used afterwards.
    unsafe { forget() }
}

/// After `forget`: registers and RAM are zero.
#[unsafe(no_mangle)]
extern "C" fn refused() -> ! {
    let len = BUS.read(regs::MEMORY) as usize;
    let words = (regs::MEMORY + 4..).step_by(4).take(len.div_ceil(4));
    let mut answer: Vec<u8> = words.flat_map(|at| BUS.read(at).to_le_bytes()).collect();
    answer.truncate(len);
    serve(&BUS, clear_stack, |_| answer.clone())
}
