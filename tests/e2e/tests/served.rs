//! The same card in a separate process works over vfio-user.

use std::sync::atomic::{AtomicBool, Ordering};

use shef_card::Control;
use shef_device::{CtlOp, mailbox};
use shef_e2e::Served;
use shef_proto::mailbox::{Request, evidence_answer};

#[test]
fn the_whole_line_on_the_model() {
    let served = Served::start("model");
    let report = shef_e2e::whole_line(&served.uri());
    assert_eq!((report.cycles.shielded, report.cycles.bare), (None, None));
}

/// The firmware takes a million cycles for evidence, and each poll of the mailbox runs some of
/// them; the server answers other requests between polls.
#[test]
fn a_kernel_that_works_blocks_nobody() {
    let served = Served::start("rtl");
    let mut host = shef::open(&served.uri().parse().unwrap()).unwrap();
    let mut control = Control::open(&Control::path_of(&served.socket())).unwrap();
    let request =
        Request::KernelEvidence { nonce: vec![7; 32], audience: "verifier.example".into() }
            .encode();

    // Sequentially: registers, card memory and control socket between two polls.
    let card = host.device();
    let mut ops: Vec<CtlOp> = CtlOp::write_bytes(mailbox::REQUEST, &request).collect();
    ops.push(CtlOp::Write { offset: mailbox::REQ_LEN, value: request.len() as u32 });
    card.ctl_batch(&ops).unwrap();
    let mut looks = 0_u64;
    while card.ctl_read32(mailbox::STATUS).unwrap() == mailbox::STATUS_BUSY {
        looks += 1;
        assert_eq!(card.ctl_read32(mailbox::RSP_LEN).unwrap_or(0), 0);
        card.mem_write(0x1000, &looks.to_le_bytes()).unwrap();
        let mut back = [0; 8];
        card.mem_read(0x1000, &mut back).unwrap();
        assert_eq!(u64::from_le_bytes(back), looks);
        assert_eq!(control.words_delivered().unwrap(), 0);
        assert_eq!(control.state().unwrap().clients, 1);
        assert_eq!(
            shef::open(&served.uri().parse().unwrap()).err().expect("one client at a time").code(),
            "SHEF-VFU-002"
        );
    }
    assert!(looks >= 10, "only {looks} looks until the answer");
    assert_eq!(card.ctl_read32(mailbox::STATUS).unwrap(), mailbox::STATUS_ANSWER);

    // Concurrently: the control socket answers repeatedly while a program waits for evidence.
    let waiting = AtomicBool::new(true);
    let answered = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut answered = 0_u64;
            while waiting.load(Ordering::SeqCst) {
                control.words_delivered().unwrap();
                answered += 1;
            }
            answered
        });
        let evidence = host.device().kernel_call(&request);
        waiting.store(false, Ordering::SeqCst);
        evidence_answer(&evidence.unwrap()).unwrap();
        asking.join().unwrap()
    });
    assert!(answered >= 10, "only {answered} answers of the control socket");
}

/// For `cargo xtask test --full`.
mod long {
    use super::*;

    #[test]
    #[ignore = "long: as `rtl`, in another process"]
    fn the_whole_line_on_the_rtl() {
        let served = Served::start("rtl");
        let report = shef_e2e::whole_line(&served.uri());
        assert!(
            report.cycles.shielded.is_some_and(|cycles| cycles > 10_000),
            "{:?}",
            report.cycles
        );
    }
}
