//! A forked copy of a process with a session has the same keys and sequence numbers, and cannot use
//! them.

#![expect(unsafe_code, reason = "forks")]

use shef::{Fault, SdkError};
use shef_card::Engine;
use shef_lab::attacks::buffers;
use shef_lab::world::{Cards, Plan, World};
use shef_proto::channel::{MESSAGE_LEN, ShieldRequest};
use shef_seal::OpenPolicy;

/// The only test of its program: the copy has one thread, and locks held by other threads would
/// stay locked.
#[test]
fn a_copy_of_the_process_has_no_session() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        cards: Cards::digits(Engine::Model).unwrap(),
        seed: None,
        name: "forked".into(),
        service: None,
    };
    let mut world = World::new(dir.path(), plan).unwrap();
    let (mut host, _) = world.card(&mut |_| {}).unwrap();
    let mut session = world.session(&mut host).unwrap();
    let b = buffers(&session).unwrap();
    let statement = session.statement().unwrap();
    session.upload(&b.train, &[1; 4096]).unwrap();
    // SAFETY: the copy uses the session, which no other thread has, and ends by `_exit`; glibc does
    // its allocations, and glibc's locks are free in the copy.
    let copy = unsafe { libc::fork() };
    if copy == 0 {
        let forked = |result: Result<(), SdkError>| {
            result.is_err_and(|error| {
                error.code() == "SHEF-SDK-042" && error.at_fault() == Fault::Input
            })
        };
        let refused = [
            forked(session.ping()),
            forked(session.seal_request(&ShieldRequest::ping()).map(drop)),
            forked(session.take_answer(&[0; MESSAGE_LEN]).map(drop)),
            forked(session.settle().map(drop)),
            forked(session.flush()),
            forked(session.statement().map(drop)),
            forked(session.upload(&b.query, &[1; 512])),
            forked(session.next_input_epoch(&b.train).map(drop)),
            forked(session.open(&b.result, &statement, 512, OpenPolicy::default()).map(drop)),
        ];
        let accepted =
            refused.iter().zip(0..).fold(0, |all, (refused, bit)| all | i32::from(!refused) << bit);
        // SAFETY: ends the copy without running any code of the test harness.
        unsafe { libc::_exit(accepted) };
    }
    let mut status = 0;
    // SAFETY: the number is that of the copy, and the status outlives the call.
    assert_eq!(unsafe { libc::waitpid(copy, &raw mut status, 0) }, copy);
    assert_eq!(
        (libc::WIFEXITED(status), libc::WEXITSTATUS(status)),
        (true, 0),
        "bits of what the copy could do"
    );
    // The session still works in its original process.
    session.upload(&b.query, &[1; 512]).unwrap();
    session.close().unwrap().verify_record(&host.close_record().unwrap()).unwrap();
}
