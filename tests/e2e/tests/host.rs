//! The host is not trusted: any change to any single message of a run deceives no party and causes
//! no hang.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use shef::{Device, Host, SdkError};
use shef_card::Engine;
use shef_lab::attacks::small_run;
use shef_lab::data::Dataset;
use shef_lab::reference::{self, Classification};
use shef_lab::tap::{Adversary, MessageKind};
use shef_lab::world::{Cards, Plan, Probe, World};

/// The change to the message.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Nothing,
    /// Bit `seed mod bits` is flipped.
    Flip,
    Drop,
    /// All bytes are zero.
    Zero,
    Cut,
    Extend,
    /// The previous message of the same kind replaces it.
    Replay,
}

struct Hand {
    deed: Deed,
    at: usize,
    seed: usize,
    seen: Rc<RefCell<Seen>>,
}

impl Adversary for Hand {
    fn message(
        &mut self,
        kind: MessageKind,
        mut bytes: Vec<u8>,
        _: &mut dyn Device,
    ) -> Option<Vec<u8>> {
        let mut seen = self.seen.borrow_mut();
        let now = seen.len();
        let earlier = seen.iter().rev().find(|(l, _)| *l == kind).map(|(_, b)| b.clone());
        seen.push((kind, bytes.clone()));
        if now != self.at {
            return Some(bytes);
        }
        match self.deed {
            Deed::Nothing => {}
            Deed::Drop => return None,
            Deed::Flip => {
                let bit = self.seed.wrapping_mul(0x9e37_79b9) % (8 * bytes.len().max(1));
                if let Some(byte) = bytes.get_mut(bit / 8) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            Deed::Zero => bytes.fill(0),
            Deed::Cut => {
                bytes.pop();
            }
            Deed::Extend => bytes.push(0),
            Deed::Replay => return earlier.or(Some(bytes)),
        }
        Some(bytes)
    }
}

fn data() -> (Dataset, Dataset) {
    let all =
        Dataset::load(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../data/digits.csv.gz")))
            .unwrap();
    let (train, query) = all.split(1000).unwrap();
    (train.head(64), query.head(8))
}

type Seen = Vec<(MessageKind, Vec<u8>)>;

fn attempt(
    world: &mut World,
    (host, probe): (&mut Host, &Probe),
    data: &(Dataset, Dataset),
    deed: Deed,
    at: usize,
    seed: usize,
) -> (Result<Vec<Classification>, SdkError>, Seen) {
    probe.tap().honest();
    host.reset().unwrap();
    let seen = Rc::new(RefCell::new(Vec::new()));
    probe.tap().corrupt(Hand { deed, at, seed, seen: Rc::clone(&seen) });
    let result = small_run(world, host, &data.0, &data.1);
    probe.tap().honest();
    (result, seen.take())
}

#[test]
fn one_changed_message_never_gives_a_wrong_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::new(
        dir.path(),
        Plan {
            cards: Cards::digits(Engine::Model).unwrap(),
            seed: None,
            name: "hostile".into(),
            service: None,
        },
    )
    .unwrap();
    let (mut host, probe) = world.card(&mut |_| {}).unwrap();
    let data = data();
    let right = reference::classify_all(&data.0, &data.1);
    let (honest, messages) = attempt(&mut world, (&mut host, &probe), &data, Deed::Nothing, 0, 0);
    assert_eq!(honest.unwrap(), right);
    assert!(messages.len() > 60, "{} messages", messages.len());
    let mut refused = 0;
    let mut without_effect = Vec::new();
    // The owner retransmits messages to and from the Shield, which runs each once.
    let sent_again = |kind| {
        matches!(
            kind,
            MessageKind::Request
                | MessageKind::Answer
                | MessageKind::LoadKey
                | MessageKind::Confirmation
        )
    };
    let others = messages.iter().filter(|(kind, _)| !sent_again(*kind)).count();
    for at in 0..messages.len() {
        let kind = messages[at].0;
        for (seed, deed) in [
            Deed::Flip,
            Deed::Flip,
            Deed::Flip,
            Deed::Drop,
            Deed::Zero,
            Deed::Cut,
            Deed::Extend,
            Deed::Replay,
        ]
        .into_iter()
        .enumerate()
        {
            let (result, seen) =
                attempt(&mut world, (&mut host, &probe), &data, deed, at, at * 8 + seed + 1);
            match result {
                Err(error) => {
                    refused += 1;
                    assert!(
                        !sent_again(kind),
                        "{deed:?} of message {at} ({kind:?}) was not made good: {error}"
                    );
                    assert!(error.code().starts_with("SHEF-"), "{error}");
                }
                Ok(answers) if sent_again(kind) => {
                    assert_eq!(answers, right, "{deed:?} of message {at} ({kind:?})");
                }
                // Some messages are hints, or were replaced by equal messages; the run is then
                // unaffected.
                Ok(answers) => {
                    assert_eq!(
                        answers, right,
                        "{deed:?} of message {at} ({kind:?}) gave wrong answers, and nobody noticed"
                    );
                    assert_eq!(seen.len(), messages.len());
                    without_effect.push((kind.name(), format!("{deed:?}")));
                }
            }
        }
    }
    // Changes without effect: the kernel's plain answers are hints; an extra byte after the card's
    // copy or after an upload is ignored; a missing last byte changes nothing if the card holds
    // that byte already (a zero, or the same by chance); a reader of card memory takes as many bytes
    // as it asked for; and the first message of its kind has no previous one to replace it.
    for (kind, deed) in &without_effect {
        let allowed = matches!(
            (*kind, deed.as_str()),
            ("kernel-answer", "Flip")
                | ("memory-write" | "memory-read", "Extend" | "Cut")
                | (_, "Replay")
        );
        assert!(allowed, "{deed} of {kind} passed");
    }
    assert!(refused > others * 6, "only {refused} of {} were refused", others * 8);
}

/// A host that replays an old run's messages into a new run achieves nothing.
#[test]
fn a_whole_recorded_run_cannot_be_played_again() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = World::new(
        dir.path(),
        Plan {
            cards: Cards::digits(Engine::Model).unwrap(),
            seed: None,
            name: "hostile".into(),
            service: None,
        },
    )
    .unwrap();
    let (mut host, probe) = world.card(&mut |_| {}).unwrap();
    let data = data();
    let (honest, recorded) =
        attempt(&mut world, (&mut host, &probe), &data, Deed::Nothing, usize::MAX, 0);
    honest.unwrap();
    for kind in [
        MessageKind::KernelEvidence,
        MessageKind::ShieldEvidence,
        MessageKind::Release,
        MessageKind::LoadKey,
        MessageKind::Confirmation,
        MessageKind::Request,
        MessageKind::Answer,
        MessageKind::CloseRecord,
    ] {
        struct Old {
            kind: MessageKind,
            old: Vec<Vec<u8>>,
            next: usize,
        }
        impl Adversary for Old {
            fn message(
                &mut self,
                kind: MessageKind,
                bytes: Vec<u8>,
                _: &mut dyn Device,
            ) -> Option<Vec<u8>> {
                if kind != self.kind {
                    return Some(bytes);
                }
                self.next += 1;
                Some(self.old.get(self.next - 1).cloned().unwrap_or(bytes))
            }
        }
        let old = recorded.iter().filter(|(l, _)| *l == kind).map(|(_, b)| b.clone()).collect();
        host.reset().unwrap();
        probe.tap().corrupt(Old { kind, old, next: 0 });
        let played = small_run(&mut world, &mut host, &data.0, &data.1);
        probe.tap().honest();
        match played {
            Err(error) => assert!(error.code().starts_with("SHEF-"), "{}: {error}", kind.name()),
            // The old messages ran out, and the owner's retransmission got through.
            Ok(answers) => {
                assert!(
                    matches!(kind, MessageKind::LoadKey | MessageKind::Confirmation),
                    "{} passed",
                    kind.name()
                );
                assert_eq!(answers, reference::classify_all(&data.0, &data.1));
            }
        }
    }
}
