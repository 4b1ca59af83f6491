//! A statement may not be cleaner than the Shield's earlier answers.

use shef_proto::channel::{
    ChannelError, FaultKind, OwnerChannel, Received, ShieldAnswer, ShieldChannel, ShieldRequest,
    ShieldStatement, State, status,
};
use shef_proto::config::{Config, OnFault};
use shef_proto::entropy::SeededEntropy;
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::load::{SessionKeys, open_load_key, seal_load_key};

/// Both ends of a session without regions.
fn session() -> (OwnerChannel, ShieldChannel) {
    let config = Config::new(OnFault::Shield, 0, Vec::new(), Vec::new()).unwrap();
    let (private, public) = derive_key_pair(&[3; 32]);
    let (message, keys): (_, SessionKeys) =
        seal_load_key(&config, &public, b"", &[], &mut SeededEntropy::new(1, "clean")).unwrap();
    let (theirs, _) = open_load_key(&config, &private, &message).unwrap();
    (OwnerChannel::new(&keys), ShieldChannel::new(&theirs))
}

fn page(state: State, stopped: bool, faults: u32) -> ShieldStatement {
    ShieldStatement {
        state,
        stopped,
        fault_kind: if faults == 0 { FaultKind::None } else { FaultKind::Tag },
        faults,
        ..ShieldStatement::keyed(2)
    }
}

/// The owner sends a request, and a Shield answers with this status and page.
fn ask(
    owner: &mut OwnerChannel,
    shield: &mut ShieldChannel,
    request: ShieldRequest,
    status: u16,
    page: Option<&ShieldStatement>,
) -> Result<ShieldAnswer, ChannelError> {
    let sealed = owner.request(&request)?;
    let Received::Run(seen) = shield.receive(&sealed) else { panic!("the Shield runs it") };
    let mut answer = ShieldAnswer::to(&seen, status);
    if let Some(page) = page {
        answer.payload = page.to_payload();
    }
    owner.answer(&shield.answer(&answer))
}

#[test]
fn a_statement_cleaner_than_the_answers_before_it_is_refused() {
    // status of the flush, the statement, and whether they agree
    let cases = [
        (status::DONE, false, 0, true),
        (status::DONE, true, 1, true),
        (status::STOPPED, false, 0, false),
        (status::STOPPED, false, 1, false),
        (status::STOPPED, true, 1, true),
        (status::FAULT, false, 0, false),
        (status::FAULT, false, 1, true),
        (status::FAULT, true, 1, true),
        (status::REGISTER, false, 0, true),
    ];
    for (status, stopped, faults, agrees) in cases {
        for (request, state) in [
            (ShieldRequest::statement(0), State::Keyed),
            (ShieldRequest::close(), State::Closed),
            (ShieldRequest::abort(), State::Closed),
        ] {
            let (mut owner, mut shield) = session();
            assert_eq!(
                ask(&mut owner, &mut shield, ShieldRequest::flush(), status, None).unwrap().status,
                status
            );
            let shown = ask(
                &mut owner,
                &mut shield,
                request,
                status::DONE,
                Some(&page(state, stopped, faults)),
            );
            assert_eq!(
                shown.is_ok(),
                agrees,
                "status {status}, stopped {stopped}, {faults} faults, {request:?}: {shown:?}"
            );
            assert!(agrees || shown.unwrap_err().code() == "SHEF-PRO-255");
        }
    }
    // this holds for the rest of the session
    let (mut owner, mut shield) = session();
    ask(&mut owner, &mut shield, ShieldRequest::write(0, 1), status::STOPPED, None).unwrap();
    for _ in 0..2 {
        ask(&mut owner, &mut shield, ShieldRequest::ping(), status::DONE, None).unwrap();
        assert!(
            ask(
                &mut owner,
                &mut shield,
                ShieldRequest::statement(0),
                status::DONE,
                Some(&page(State::Keyed, false, 0))
            )
            .is_err()
        );
    }
    // also for a statement after one that showed a fault
    for (stopped, faults) in [(true, 1), (false, 1)] {
        let (mut owner, mut shield) = session();
        ask(
            &mut owner,
            &mut shield,
            ShieldRequest::statement(0),
            status::DONE,
            Some(&page(State::Keyed, stopped, faults)),
        )
        .unwrap();
        assert!(
            ask(
                &mut owner,
                &mut shield,
                ShieldRequest::statement(0),
                status::DONE,
                Some(&page(State::Keyed, false, 0))
            )
            .is_err()
        );
        assert!(
            ask(
                &mut owner,
                &mut shield,
                ShieldRequest::close(),
                status::DONE,
                Some(&page(State::Closed, false, 0))
            )
            .is_err()
        );
    }
    // also for a close that reports a fault of its flush
    let (mut owner, mut shield) = session();
    assert!(
        ask(
            &mut owner,
            &mut shield,
            ShieldRequest::close(),
            status::FAULT,
            Some(&page(State::Closed, false, 0))
        )
        .is_err()
    );
}
