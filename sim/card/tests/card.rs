//! A card works from outside: manufacture, BAR0, card memory.

use shef_card::{Blank, Card, CardOptions, Engine, RtlOptions};
use shef_device::{CTL_BYTES, Device, mailbox};
use shef_proto::cert::{Certificate, NO_CLOCK, NO_END, issue_device_id, issue_root};
use shef_proto::cose::SigningKey;
use shef_proto::mailbox::{Answer, Request};
use zeroize::Zeroizing;

fn ca() -> (SigningKey, Certificate) {
    let ca = SigningKey::derive(&[7; 32]);
    let root = Certificate::parse(&issue_root(&ca, "test", NO_CLOCK, NO_END)).unwrap();
    (ca, root)
}

fn card(engine: Engine) -> Card {
    let (ca, root) = ca();
    let mut blank = Blank::new(CardOptions::digits(engine).unwrap(), &mut |_| {}).unwrap();
    let key = blank.burn(Zeroizing::new([1; 32]));
    blank.finish(issue_device_id(&ca, &root, &key, NO_CLOCK)).unwrap()
}

/// A card with the native kernel, and one whose kernel runs on the processor in the RTL.
fn cards() -> [Card; 2] {
    [card(Engine::Model), card(Engine::Rtl(RtlOptions::default()))]
}

/// Waits for the answer to the last doorbell.
fn answered(card: &mut Card) -> bool {
    (0..10_000).any(|_| card.ctl_read32(mailbox::STATUS).unwrap() == mailbox::STATUS_ANSWER)
}

#[test]
fn a_card_boots_only_with_a_secret_and_its_own_certificate() {
    let (ca, root) = ca();
    let blank = || Blank::new(CardOptions::digits(Engine::Model).unwrap(), &mut |_| {}).unwrap();
    let mut first = blank();
    let key = first.burn(Zeroizing::new([1; 32]));
    let certificate = issue_device_id(&ca, &root, &key, NO_CLOCK);
    assert_eq!(blank().finish(certificate.clone()).err().unwrap().code(), "SHEF-CARD-001");
    let mut other = blank();
    assert!(other.burn(Zeroizing::new([2; 32])) != key);
    assert_eq!(other.finish(certificate.clone()).err().unwrap().code(), "SHEF-KRN-003");
    // Debug derives another identity from the same secret.
    let mut debug = Blank::new(
        CardOptions { debug: true, ..CardOptions::digits(Engine::Model).unwrap() },
        &mut |_| {},
    )
    .unwrap();
    assert!(debug.burn(Zeroizing::new([1; 32])) != key);
    assert_eq!(debug.finish(certificate.clone()).err().unwrap().code(), "SHEF-KRN-003");
    assert!(first.finish(certificate).is_ok());
}

#[test]
fn the_control_window_answers_every_access_and_is_closed_before_an_image_is_loaded() {
    for mut card in cards() {
        for offset in (0..CTL_BYTES + 64).step_by(4).chain([1, 2, 3, 0xff05]) {
            let readable = matches!(offset, mailbox::STATUS | mailbox::RSP_LEN)
                || (mailbox::ANSWER..mailbox::ANSWER + mailbox::MAX_ANSWER as u32)
                    .contains(&offset);
            assert_eq!(
                card.ctl_read32(offset).is_ok(),
                readable && offset % 4 == 0,
                "read {offset:#x}"
            );
        }
        for offset in [
            0,
            0x204,
            0x1000,
            mailbox::ANSWER,
            mailbox::STATUS,
            mailbox::RSP_LEN,
            0xfff8,
            CTL_BYTES,
            2,
        ] {
            assert_eq!(
                card.ctl_write32(offset, 1).unwrap_err().code(),
                "SHEF-DEV-006",
                "write {offset:#x}"
            );
        }
    }
}

#[test]
fn the_mailbox_takes_any_length() {
    for mut card in cards() {
        assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap(), mailbox::STATUS_IDLE);
        let status = card.kernel_call(&Request::Status.encode()).unwrap();
        assert!(matches!(Answer::decode(&status).unwrap(), Answer::Status(_)));
        for len in [0, 1, mailbox::MAX_REQUEST as u32, mailbox::MAX_REQUEST as u32 + 1, u32::MAX] {
            card.ctl_write32(mailbox::REQ_LEN, len).unwrap();
            assert!(answered(&mut card), "{len} bytes");
            assert!(card.ctl_read32(mailbox::RSP_LEN).unwrap() as usize <= mailbox::MAX_ANSWER);
        }
        card.reset().unwrap();
        assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap(), mailbox::STATUS_IDLE);
        assert_eq!(card.ctl_read32(mailbox::ANSWER).unwrap(), 0, "an answer of before the reset");
    }
}

#[test]
fn memory_has_an_end() {
    let mut card = card(Engine::Model);
    let size = card.info().memory_bytes;
    let mut byte = [0];
    card.mem_write(size - 1, &[9]).unwrap();
    card.mem_read(size - 1, &mut byte).unwrap();
    assert_eq!(byte, [9]);
    for (addr, len) in [(size, 1), (size - 1, 2), (u64::MAX, 1), (u64::MAX - 1, 8)] {
        assert_eq!(card.mem_write(addr, &vec![0; len]).unwrap_err().code(), "SHEF-DEV-007");
        assert_eq!(card.mem_read(addr, &mut vec![0; len]).unwrap_err().code(), "SHEF-DEV-007");
    }
}

#[test]
fn the_identity_survives_a_reset_and_the_random_source_goes_on() {
    let ask = |card: &mut Card| {
        let answer = card
            .kernel_call(
                &Request::KernelEvidence { nonce: vec![5; 32], audience: "test".into() }.encode(),
            )
            .unwrap();
        shef_proto::evidence::Evidence::parse(
            &shef_proto::mailbox::evidence_answer(&answer).unwrap(),
        )
        .unwrap()
    };
    for mut card in cards() {
        let (before, after) = (ask(&mut card), {
            card.reset().unwrap();
            ask(&mut card)
        });
        let (b, a) = (&before.unverified_claims().common, &after.unverified_claims().common);
        assert_eq!(b.ueid, a.ueid);
        assert_eq!(before.x5chain(), after.x5chain());
        assert_ne!(b.key.as_bytes(), a.key.as_bytes(), "the same key after a reset");
    }
}
