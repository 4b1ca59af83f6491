//! `shef_kernel` is isolated from its host: in each state of the mailbox every word of the host's
//! port is read and written, and afterwards the state equals that of an instance with an idle host.
//! And the processor's accesses can be denied.

mod inside;
mod probe;
mod rv32;

use inside::Inside;
use probe::*;
use rv32::{Asm, CoreOp};
use shef_rtl::kernel_sim::host;

const PMPCFG0: i32 = 0x3a0;
const PMPADDR0: i32 = 0x3b0;
const RET: u32 = 0x0000_8067;
/// A word of the answer that occurs in no other message.
const ANSWERED: (u64, u32) = (0x100, 0x5ec2_e7aa);

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Clearing,
    Idle,
    Answer,
    Busy,
    Halted,
}

/// A subsystem in this state with a zero request buffer; in all but the first two states, the
/// answer buffer held data.
fn enter(state: State) -> Kernel {
    let mut k = Kernel::new();
    if state == State::Clearing {
        return k;
    }
    if state == State::Idle {
        k.0.step(66_000);
        assert_eq!(k.0.host_read(host::STATUS).unwrap(), Some(0));
        return k;
    }
    k.write(MEMORY, Asm::default().label("here").jump("here").words()[0]);
    k.write(ANSWER + ANSWERED.0 as u32, ANSWERED.1);
    match state {
        State::Busy => assert_eq!(k.within(100, [CoreOp::Call as u32, MEMORY, 0, 0]), None),
        State::Halted => {
            assert_eq!(k.control(2), None);
            k.0.step(70_000);
        }
        _ => (0..4).for_each(|word| assert!(k.0.host_write(host::REQUEST + 4 * word, 0).unwrap())),
    }
    k
}

/// The host's view; `None` is a refusal.
fn shown(state: State, offset: u64) -> Option<u32> {
    let answer = state == State::Answer;
    match offset {
        host::STATUS => Some(match state {
            State::Answer => 1,
            State::Busy => 2,
            _ => 0,
        }),
        host::RSP_LEN => Some(if answer { 8 } else { 0 }),
        _ if !(host::ANSWER..host::ANSWER + host::ANSWER_BYTES as u64).contains(&offset) => None,
        _ if answer && offset == host::ANSWER + ANSWERED.0 => Some(ANSWERED.1),
        _ => Some(0),
    }
}

#[test]
fn the_host_changes_nothing_but_a_request_in_any_state() {
    let inside = Inside::of(&spec(), "kernel-isolated");
    for state in [State::Clearing, State::Idle, State::Answer, State::Busy, State::Halted] {
        let (mut k, mut twin) = (enter(state), enter(state));
        assert_eq!(k.0.cycles(), twin.0.cycles());
        let open = ![State::Clearing, State::Busy].contains(&state);
        for offset in (0..0x4000).step_by(4) {
            assert_eq!(
                k.0.host_read(offset).unwrap(),
                shown(state, offset),
                "{state:?}: read of {offset:#x}"
            );
            // The doorbell would turn it into a request.
            if offset != host::REQ_LEN || !open {
                let request = open && offset < host::REQUEST_BYTES as u64;
                assert_eq!(
                    k.0.host_write(offset, u32::MAX).unwrap(),
                    request,
                    "{state:?}: write of {offset:#x}"
                );
            }
        }
        if open {
            for offset in (0..host::REQUEST_BYTES as u64).step_by(4) {
                assert!(k.0.host_write(offset, 0).unwrap());
            }
        }
        let idle = k.0.cycles() - twin.0.cycles();
        twin.0.step(idle);
        for k in [&mut k, &mut twin] {
            assert_eq!(k.0.host_read(host::STATUS).unwrap(), shown(state, host::STATUS));
            assert_eq!(k.0.host_write(host::REQUEST, 0).unwrap(), open, "{state:?}");
        }
        let [k, twin] = [&k, &twin].map(|k| k.0.save().expect("savable"));
        let changed = inside.differing(k.bytes(), twin.bytes());
        assert!(changed.is_empty(), "{state:?}: the host changed {changed:?}");
    }
}

#[test]
fn a_locked_entry_of_the_pmp_binds_the_kernel_until_reset() {
    const CLOSED: u32 = MEMORY + 0x2_0000;
    let mut k = Kernel::new();
    for address in [CLOSED - 4, CLOSED, CLOSED + 0xffc, CLOSED + 0x1000] {
        k.write(address, RET);
        assert_eq!(k.ask(CoreOp::Call, address, 0), (0, 0));
    }
    // 4 KiB without any permission, locked, and then an attempt to unlock them.
    let mut program = Asm::default();
    program.li(6, CLOSED >> 2 | 0x1ff).csrw(PMPADDR0, 6).li(6, 0x98).csrw(PMPCFG0, 6);
    program.li(6, 0x1f).csrw(PMPCFG0, 6).csrw(PMPADDR0, 0).csrw(PMPCFG0, 0).jalr(0, 1, 0);
    for (n, word) in program.words().iter().enumerate() {
        k.write(MEMORY + 4 * n as u32, *word);
    }
    assert_eq!(k.ask(CoreOp::Call, MEMORY, 0), (0, 0));
    for address in [CLOSED, CLOSED + 0xffc] {
        assert_eq!(k.ask(CoreOp::Read, address, 0), (0, LOAD_FAULT), "{address:#x}");
        assert_eq!(k.ask(CoreOp::Write, address, 0).1, STORE_FAULT, "{address:#x}");
        assert_eq!(k.ask(CoreOp::WriteByte, address, 0).1, STORE_FAULT, "{address:#x}");
        assert_eq!(k.ask(CoreOp::Call, address, 0).1, FETCH_FAULT, "{address:#x}");
    }
    for address in [CLOSED - 4, CLOSED + 0x1000] {
        assert_eq!(k.ask(CoreOp::Call, address, 0), (0, 0));
        assert_eq!(k.read(address), RET);
    }
    k.0.reset();
    k.write(CLOSED, RET);
    assert_eq!((k.read(CLOSED), k.ask(CoreOp::Call, CLOSED, 0)), (RET, (0, 0)));
}

#[test]
fn the_kernel_sees_no_request_before_it_is_whole() {
    const FOUND: u32 = RAM + 0x100;
    let mut k = Kernel::new();
    // Hands its answer over, and copies a word of the request that the host writes without ringing
    // the doorbell.
    let mut program = Asm::default();
    program
        .li(6, MAILBOX)
        .addi(7, 0, 8)
        .sw(7, 8, 6)
        .li(6, REQUEST + 0x100)
        .li(15, FOUND)
        .li(16, 2_000);
    program
        .label("again")
        .lw(7, 0, 6)
        .or(17, 17, 7)
        .sw(17, 0, 15)
        .addi(16, 16, -1)
        .bne(16, 0, "again")
        .jalr(0, 1, 0);
    for (n, word) in program.words().iter().enumerate() {
        k.write(MEMORY + 4 * n as u32, *word);
    }
    assert!(k.within(10_000, [CoreOp::Call as u32, MEMORY, 0, 0]).is_some());
    assert!(k.0.host_write(host::REQUEST + 0x100, u32::MAX).unwrap());
    k.0.step(100_000);
    assert_eq!(k.read(FOUND), 0);
    assert_eq!(k.read(REQUEST + 0x100), u32::MAX);
}
