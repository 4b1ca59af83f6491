//! The kernel's side of the mailbox.

use alloc::vec::Vec;

use shef_proto::mailbox::MAX_MESSAGE;
use shef_units::{Bus, regs};
use zeroize::Zeroizing;

use crate::hardware::kick;

/// Answers requests one at a time. `clear` overwrites the stack that an answer used before the host
/// gets the answer.
pub fn serve<B: Bus>(bus: &B, clear: fn(), mut answer: impl FnMut(&[u8]) -> Vec<u8>) -> ! {
    bus.write(regs::sys::CONTROL, regs::sys::CONTROL_READY);
    loop {
        kick(bus);
        if bus.read(regs::mailbox::STATUS) & regs::mailbox::STATUS_WAITING != 0 {
            serve_one(bus, clear, &mut answer);
        }
    }
}

/// Runs in a frame below the caller's, so that `clear` reaches it.
#[inline(never)]
fn answered(answer: &mut impl FnMut(&[u8]) -> Vec<u8>, request: &[u8]) -> Vec<u8> {
    answer(request)
}

/// Copies the whole pending request before parsing it, and answers it.
fn serve_one<B: Bus>(bus: &B, clear: fn(), answer: &mut impl FnMut(&[u8]) -> Vec<u8>) {
    // A request longer than the buffer is not a message.
    let len = Some(bus.read(regs::mailbox::REQ_LEN) as usize)
        .filter(|len| *len <= MAX_MESSAGE)
        .unwrap_or(0);
    let mut request = Zeroizing::new(Vec::with_capacity(len.next_multiple_of(4)));
    for at in (0..len).step_by(4) {
        request.extend_from_slice(&bus.read(regs::REQUEST + at as u32).to_le_bytes());
    }
    request.truncate(len);
    let answer = answered(answer, &request);
    drop(request);
    clear();
    for (word, bytes) in answer.chunks(4).enumerate() {
        let mut value = [0; 4];
        value[..bytes.len()].copy_from_slice(bytes);
        bus.write(regs::ANSWER + 4 * word as u32, u32::from_le_bytes(value));
    }
    bus.write(regs::mailbox::RSP_LEN, answer.len() as u32);
}
