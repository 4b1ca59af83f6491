//! The agent protocol's decoder returns every encoded message unchanged, rejects everything else,
//! and never panics.

use proptest::prelude::*;
use shef_device::{CtlOp, DeviceError, DeviceInfo};
use shef_remote::wire::{
    DeviceAnswer, DeviceOp, DeviceState, Frames, Listed, MAX_BULK, MAX_FRAME, MAX_OPS, ToAgent,
    ToOwner, Token, WireError,
};

fn ctl_op() -> impl Strategy<Value = CtlOp> {
    prop_oneof![
        any::<u32>().prop_map(|offset| CtlOp::Read { offset }),
        any::<(u32, u32)>().prop_map(|(offset, value)| CtlOp::Write { offset, value }),
        any::<(u32, u32, u32, u32)>().prop_map(|(offset, clear, some, polls)| CtlOp::Poll {
            offset,
            clear,
            some,
            polls
        }),
    ]
}

fn op() -> impl Strategy<Value = DeviceOp> {
    prop_oneof![
        prop::collection::vec(ctl_op(), 0..40).prop_map(DeviceOp::Ctl),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(DeviceOp::Kernel),
        (any::<u64>(), 1..=MAX_BULK as u32).prop_map(|(addr, len)| DeviceOp::MemRead { addr, len }),
        (any::<u64>(), prop::collection::vec(any::<u8>(), 1..300))
            .prop_map(|(addr, data)| DeviceOp::MemWrite { addr, data }),
        Just(DeviceOp::WaitHint),
        Just(DeviceOp::WaitInterrupt),
        Just(DeviceOp::Reset),
        Just(DeviceOp::Close),
    ]
}

fn to_agent() -> impl Strategy<Value = ToAgent> {
    prop_oneof![
        (any::<u16>(), any::<u16>(), "[ -~]{0,40}")
            .prop_map(|(min, max, program)| ToAgent::Hello { min, max, program }),
        Just(ToAgent::List),
        ("[a-z0-9_-][a-z0-9._-]{0,63}", any::<Option<([u8; 32], u64)>>()).prop_map(
            |(device, token)| ToAgent::Open {
                device,
                resume: token.map(|(token, acked)| (Token(token), acked))
            }
        ),
        (1..u64::MAX, any::<u64>(), op()).prop_map(|(id, acked, op)| ToAgent::Request {
            id,
            acked: acked % id,
            op
        }),
    ]
}

fn error() -> impl Strategy<Value = DeviceError> {
    prop_oneof![
        any::<u32>().prop_map(|offset| DeviceError::Gone { offset }),
        (any::<bool>(), any::<u32>()).prop_map(|(w, offset)| DeviceError::CtlRefused {
            access: if w { "write" } else { "read" },
            offset
        }),
        any::<(u64, u64, u64)>().prop_map(|(addr, len, memory_bytes)| DeviceError::MemoryRange {
            addr,
            len,
            memory_bytes
        }),
        any::<(u32, u32)>().prop_map(|(len, max)| DeviceError::MailboxTooLong {
            len: len as usize,
            max: max as usize
        }),
        any::<(u32, u32)>()
            .prop_map(|(status, polls)| DeviceError::MailboxTimeout { status, polls }),
        ("SHEF-[A-Z]{3}-[0-9]{3}", "[ -~ä]{0,60}")
            .prop_map(|(code, message)| DeviceError::Remote { code, message }),
    ]
}

fn to_owner() -> impl Strategy<Value = ToOwner> {
    let name = "[a-z0-9_-][a-z0-9._-]{0,63}";
    let state = prop::sample::select(vec![
        DeviceState::Starting,
        DeviceState::Free,
        DeviceState::InUse,
        DeviceState::Orphaned,
        DeviceState::Resetting,
        DeviceState::Failed,
    ]);
    let listed = (name, "[ -~]{0,200}", state, prop::option::of(name), any::<u64>()).prop_map(
        |(name, description, state, owner, moved)| Listed {
            name,
            description,
            state,
            owner,
            moved,
        },
    );
    let answer = prop_oneof![
        Just(DeviceAnswer::Done),
        any::<bool>().prop_map(DeviceAnswer::Flag),
        prop::collection::vec(any::<u32>(), 0..50).prop_map(DeviceAnswer::Values),
        prop::collection::vec(any::<u8>(), 0..300).prop_map(DeviceAnswer::Bytes),
    ];
    prop_oneof![
        (any::<u16>(), "[ -~]{0,40}", name)
            .prop_map(|(version, program, owner)| ToOwner::Welcome { version, program, owner }),
        prop::collection::vec(listed, 0..8).prop_map(ToOwner::Devices),
        (any::<[u8; 32]>(), any::<u64>(), "[ -~]{0,60}", any::<(u64, bool)>()).prop_map(
            |(token, last, text, (bytes, clock))| {
                ToOwner::Opened {
                    token: Token(token),
                    last,
                    info: DeviceInfo::new(text.clone(), text, "simulated", bytes, clock),
                }
            }
        ),
        (any::<u64>(), "[ -~]{0,60}").prop_map(|(id, text)| ToOwner::Progress { id, text }),
        (any::<u64>(), any::<Option<u64>>(), answer)
            .prop_map(|(id, cycles, answer)| ToOwner::Done { id, cycles, answer }),
        (any::<u64>(), any::<Option<u64>>(), error())
            .prop_map(|(id, cycles, error)| ToOwner::Failed { id, cycles, error }),
        ("SHEF-[A-Z]{3}-[0-9]{3}", "[ -~]{0,60}")
            .prop_map(|(code, message)| ToOwner::Refused { code, message }),
    ]
}

/// The only frame in `bytes`.
fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut frames = Frames::new();
    frames.push(bytes);
    let frame = frames.take().unwrap().expect("a whole frame").to_vec();
    assert_eq!(frames.take().unwrap(), None);
    frame
}

/// Asserts that bytes are the encoding of the message that they decode to. Bytes with a line break or
/// a direction mark in a text decode to a text without them.
fn is_encoding(encoded: &[u8], bytes: &[u8]) -> Result<(), TestCaseError> {
    if !bytes.iter().any(|byte| matches!(byte, b'\n' | 0xd8 | 0xe2)) {
        prop_assert_eq!(encoded, bytes);
    }
    Ok(())
}

proptest! {
    #[test]
    fn requests_come_back(message in to_agent()) {
        prop_assert_eq!(ToAgent::decode(&frame(&message.encode())).unwrap(), message);
    }

    #[test]
    fn answers_come_back(message in to_owner()) {
        let bytes = message.encode();
        let back = ToOwner::decode(&frame(&bytes)).unwrap();
        prop_assert_eq!(format!("{back:?}"), format!("{message:?}"));
        prop_assert_eq!(back.encode(), bytes);
    }

    #[test]
    fn every_cut_and_every_longer_message_is_refused_or_another_one(message in to_agent(), extra in any::<u8>()) {
        let whole = frame(&message.encode());
        for end in 0..whole.len() {
            if let Ok(other) = ToAgent::decode(&whole[..end]) {
                prop_assert_ne!(&other, &message);
                prop_assert_eq!(frame(&other.encode()), &whole[..end]);
            }
        }
        let mut longer = whole;
        longer.push(extra);
        if let Ok(other) = ToAgent::decode(&longer) {
            prop_assert_ne!(&other, &message);
        }
    }

    #[test]
    fn whatever_decodes_has_one_encoding(bytes in prop::collection::vec(any::<u8>(), 0..200), kind in 0u8..5, owner in 0x80u8..0x89) {
        for first in [kind, owner] {
            let mut bytes = bytes.clone();
            bytes.insert(0, first);
            if let Ok(message) = ToAgent::decode(&bytes) {
                is_encoding(&frame(&message.encode()), &bytes)?;
            }
            if let Ok(message) = ToOwner::decode(&bytes) {
                is_encoding(&frame(&message.encode()), &bytes)?;
            }
        }
    }

    #[test]
    fn changed_bytes_never_panic(message in to_owner(), at in any::<prop::sample::Index>(), bit in 0u8..8) {
        let mut bytes = frame(&message.encode());
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(other) = ToOwner::decode(&bytes) {
            is_encoding(&frame(&other.encode()), &bytes)?;
        }
    }

    #[test]
    fn frames_do_not_depend_on_how_bytes_arrive(messages in prop::collection::vec(to_agent(), 1..5), cuts in prop::collection::vec(1usize..40, 1..40)) {
        let mut stream: Vec<u8> = messages.iter().flat_map(ToAgent::encode).collect();
        let mut frames = Frames::new();
        let mut got = Vec::new();
        for cut in cuts.iter().cycle() {
            if stream.is_empty() {
                break;
            }
            let piece: Vec<u8> = stream.drain(..(*cut).min(stream.len())).collect();
            frames.push(&piece);
            while let Some(frame) = frames.take().unwrap() {
                got.push(ToAgent::decode(frame).unwrap());
            }
        }
        prop_assert_eq!(got, messages);
    }
}

#[test]
fn a_frame_of_no_or_too_many_bytes_is_refused_before_it_is_read() {
    for (len, fine) in [
        (0, false),
        (1, true),
        (MAX_FRAME, true),
        (MAX_FRAME + 1, false),
        (u32::MAX as usize, false),
    ] {
        let mut frames = Frames::new();
        frames.push(&(len as u32).to_be_bytes());
        assert_eq!(
            frames.take(),
            if fine { Ok(None) } else { Err(WireError::FrameLength { found: len }) }
        );
    }
}

#[test]
fn the_largest_messages_fit_a_frame() {
    let all = [
        DeviceOp::MemWrite { addr: u64::MAX, data: vec![1; MAX_BULK] },
        DeviceOp::Ctl(vec![CtlOp::Poll { offset: 1, clear: 2, some: 3, polls: 4 }; MAX_OPS]),
        DeviceOp::Kernel(vec![0; shef_device::mailbox::MAX_REQUEST]),
    ];
    for op in all {
        let bytes = ToAgent::Request { id: 2, acked: 1, op }.encode();
        assert!(bytes.len() - 4 <= MAX_FRAME);
        ToAgent::decode(&frame(&bytes)).unwrap();
    }
    let bytes =
        ToOwner::Done { id: 1, cycles: Some(1), answer: DeviceAnswer::Bytes(vec![0; MAX_BULK]) }
            .encode();
    ToOwner::decode(&frame(&bytes)).unwrap();
    let listed = Listed {
        name: "n".repeat(64),
        description: "ä".repeat(4000),
        state: DeviceState::InUse,
        owner: Some("o".repeat(64)),
        moved: u64::MAX,
    };
    ToOwner::decode(&frame(&ToOwner::Devices(vec![listed; 300]).encode())).unwrap();
}

#[test]
fn values_out_of_bounds_are_refused() {
    let request = |op: &[u8]| [&[4][..], &7u64.to_be_bytes(), &0u64.to_be_bytes(), op].concat();
    let bad: &[(&str, Vec<u8>)] = &[
        ("empty", vec![]),
        ("kind", vec![9]),
        ("answer as request", vec![0x85]),
        ("magic", [&[1][..], b"SHEFAGNU", &[0, 1, 0, 1, 0, 0]].concat()),
        ("device name", [&[3, 0, 3][..], b"a b", &[0]].concat()),
        ("uri as name", [&[3, 0, 9][..], b"sim:model", &[0]].concat()),
        ("token's presence", [&[3, 0, 1][..], b"a", &[2]].concat()),
        ("number 0", [&[4][..], &[0; 16], &[4]].concat()),
        (
            "acknowledged itself",
            [&[4][..], &7u64.to_be_bytes(), &7u64.to_be_bytes(), &[4]].concat(),
        ),
        ("op", request(&[8])),
        ("access", request(&[0, 3, 0, 0, 0, 0])),
        ("cut access", request(&[0, 1, 0, 0, 0, 0, 0, 0])),
        ("read of nothing", request(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("read of too much", request(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1])),
        ("write of nothing", request(&[3, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("kernel request", request(&[&[1][..], &[0; 8193]].concat())),
        ("more accesses", request(&[&[0][..], &[0; 5 * (MAX_OPS + 1)]].concat())),
        ("after wait", request(&[4, 0])),
    ];
    for (what, bytes) in bad {
        assert!(ToAgent::decode(bytes).is_err(), "{what}");
    }
    // The peer's texts are printed, so they must have no control characters.
    let text = b"\x1b[2J";
    let progress = [&[0x84][..], &[0; 8], &[0, 4], text].concat();
    assert!(ToOwner::decode(&progress).is_err());
    let shown = ToOwner::Progress { id: 0, text: "a\x1b[2Jb".into() }.encode();
    assert!(
        matches!(ToOwner::decode(&frame(&shown)).unwrap(), ToOwner::Progress { text, .. } if text == r"a\u{1b}[2Jb")
    );
}

/// The owner's program prints an agent's text as one line, wherever it prints it: also of an agent
/// that writes other texts than this program does.
#[test]
fn texts_of_a_hostile_agent_are_one_line() {
    const TEXT: &str = "busy\nhelp: run this\u{202e}\u{2028}";
    const SHOWN: &str = r"busy\nhelp: run this\u{202e}\u{2028}";
    // As long as the hostile text, which takes its place in the frame.
    let honest = "x".repeat(TEXT.len());
    let text = || honest.clone();
    let code = "SHEF-AGT-008".to_owned();
    let listed = Listed {
        name: "card0".to_owned(),
        description: text(),
        state: DeviceState::Free,
        owner: None,
        moved: 0,
    };
    let error = DeviceError::Remote { code: code.clone(), message: text() };
    let info = DeviceInfo::new(text(), text(), text(), 0, false);
    for message in [
        ToOwner::Welcome { version: 1, program: text(), owner: "alice".to_owned() },
        ToOwner::Opened { token: Token([0; 32]), last: 0, info },
        ToOwner::Progress { id: 1, text: text() },
        ToOwner::Failed { id: 1, cycles: None, error },
        ToOwner::Refused { code, message: text() },
        ToOwner::Devices(vec![listed]),
    ] {
        let mut bytes = frame(&message.encode());
        while let Some(at) = bytes.windows(honest.len()).position(|w| w == honest.as_bytes()) {
            bytes[at..at + TEXT.len()].copy_from_slice(TEXT.as_bytes());
        }
        let message = ToOwner::decode(&bytes).unwrap();
        let texts = match &message {
            ToOwner::Welcome { program, .. } => vec![program],
            ToOwner::Opened { info, .. } => {
                vec![&info.uri, &info.description, &info.root_of_trust]
            }
            ToOwner::Progress { text, .. } => vec![text],
            ToOwner::Failed { error: DeviceError::Remote { message, .. }, .. } => vec![message],
            ToOwner::Refused { message, .. } => vec![message],
            ToOwner::Devices(list) => vec![&list[0].description],
            other => panic!("{other:?}"),
        };
        assert!(texts.iter().all(|text| *text == SHOWN), "{texts:?}");
        // And it is sent on one line.
        let again = ToOwner::decode(&frame(&message.encode())).unwrap();
        assert_eq!(format!("{again:?}"), format!("{message:?}"));
    }
}

#[test]
fn an_answer_fits_its_request_or_is_refused() {
    let poll = CtlOp::Poll { offset: 0, clear: 1, some: 0, polls: 9 };
    let ops = DeviceOp::Ctl(vec![
        CtlOp::Read { offset: 0 },
        CtlOp::Write { offset: 0, value: 1 },
        poll,
        CtlOp::Read { offset: 4 },
    ]);
    for (values, fits) in [
        (vec![7, 2, 9], true),
        (vec![7, 1], true),
        (vec![7, u32::MAX], true),
        (vec![7, 2], false),
        (vec![7, 1, 9], false),
        (vec![7, 2, 9, 9], false),
        (vec![], false),
    ] {
        assert_eq!(ops.takes(&DeviceAnswer::Values(values.clone())), fits, "{values:?}");
    }
    assert!(!ops.takes(&DeviceAnswer::Done));
    let read = DeviceOp::MemRead { addr: 0, len: 4 };
    assert!(
        read.takes(&DeviceAnswer::Bytes(vec![0; 4]))
            && !read.takes(&DeviceAnswer::Bytes(vec![0; 5]))
            && !read.takes(&DeviceAnswer::Done)
    );
    assert!(
        DeviceOp::WaitInterrupt.takes(&DeviceAnswer::Flag(true))
            && !DeviceOp::WaitInterrupt.takes(&DeviceAnswer::Done)
    );
}

#[test]
fn names_of_folders_are_no_names() {
    use shef_device::is_name;
    assert!(["a", "card.0", "...", ".a", "-_."].into_iter().all(is_name));
    assert!(
        ["", ".", "..", "a/b", "a b", "ä", &"a".repeat(65)].into_iter().all(|name| !is_name(name))
    );
    for device in [".", ".."] {
        let frame = ToAgent::Open { device: device.to_owned(), resume: None }.encode();
        assert_eq!(
            ToAgent::decode(&frame[4..]),
            Err(WireError::Text { what: "name of the device" })
        );
        assert_eq!(
            format!("tls://host:1/{device}").parse::<shef_device::Uri>().unwrap_err().code(),
            "SHEF-DEV-002"
        );
    }
}
