//! A fork of a process with a sealer, a channel or an HPKE sender seals nothing: it would seal
//! other data under the same IVs.
#![cfg(feature = "parallel")]
#![expect(unsafe_code, reason = "forks")]

use shef_proto::channel::{ChannelError, MESSAGE_LEN, OwnerChannel, ShieldRequest};
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_proto::entropy::SeededEntropy;
use shef_proto::hpke_suite::{Sender, SenderError, derive_key_pair};
use shef_proto::load::{first_epochs, seal_load_key};
use shef_seal::{SealError, SealedRun, Sealer};

/// Runs `run` in a fork of this process: the first process of a new namespace, or any process if
/// this user cannot create namespaces.
fn copied(run: impl FnOnce()) {
    let fork = |flags: libc::c_int| {
        // SAFETY: as fork. Without a new stack the child continues on its copy.
        unsafe { libc::syscall(libc::SYS_clone, flags | libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t }
    };
    let copy = [libc::CLONE_NEWPID, libc::CLONE_NEWPID | libc::CLONE_NEWUSER, 0]
        .into_iter()
        .map(fork)
        .find(|copy| *copy >= 0)
        .unwrap();
    if copy == 0 {
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err();
        // SAFETY: ends the child without running the test harness.
        unsafe { libc::_exit(failed.into()) };
    }
    let mut status = 0;
    // SAFETY: the id is the child's, and the status outlives the call.
    assert_eq!(unsafe { libc::waitpid(copy, &raw mut status, 0) }, copy);
    assert_eq!((libc::WIFEXITED(status), libc::WEXITSTATUS(status)), (true, 0), "the copy failed");
}

/// The fork may have the same process id as its maker: here both are the first of their namespaces.
/// This is the only test of its program: the fork has one thread, and locks that other threads held
/// would never be released.
#[test]
fn a_copy_of_the_process_seals_nothing() {
    copied(|| {
        let region = Region {
            name: "in".into(),
            mode: Mode::Input,
            size: 1 << 15,
            chunk: 4096,
            tag_base: 1 << 15,
            ..Region::default()
        };
        let second = Region {
            id: 1,
            name: "second".into(),
            base: 1 << 16,
            tag_base: 3 << 15,
            ..region.clone()
        };
        let config =
            Config::new(OnFault::Shield, 1, vec![Set::default()], vec![region, second]).unwrap();
        let public = derive_key_pair(&[7; 32]).1;
        let epochs = first_epochs(&config, 1);
        let (_, mut keys) =
            seal_load_key(&config, &public, b"", &epochs, &mut SeededEntropy::new(1, "fork"))
                .unwrap();
        let mut sealer = Sealer::new(&config, &mut keys, 0, 1, 1 << 15).unwrap();
        let mut channel = OwnerChannel::new(&keys);
        let mut sender = Sender::setup(&public, b"", &mut SeededEntropy::new(2, "fork")).unwrap().1;
        let mut portions: Vec<_> = (0..3).map(|_| sealer.portion(4096).unwrap()).collect();
        copied(|| {
            let mut run = SealedRun::default();
            assert!(matches!(
                portions.remove(0).seal_into(&[1; 4096], &mut run),
                Err(SealError::Forked { .. })
            ));
            assert_eq!(run, SealedRun::default());
            let taken =
                portions.remove(0).seal_to(&[1; 4096], |_, _, _| panic!("sealed in a copy"));
            assert!(matches!(taken, Err(SealError::Forked { .. })));
            assert!(matches!(sealer.portion(4096), Err(SealError::Forked { .. })));
            // A sealer made from the maker's keys seals nothing either.
            let mut sealer = Sealer::new(&config, &mut keys, 1, 1, 1 << 15).unwrap();
            assert!(matches!(sealer.portion(4096), Err(SealError::Forked { .. })));
            let copied = |result: Result<_, ChannelError>| {
                matches!(result, Err(ChannelError::Forked { .. }))
            };
            assert!(copied(channel.request(&ShieldRequest::ping()).map(drop)));
            assert!(copied(channel.answer(&[0; MESSAGE_LEN]).map(drop)));
            assert!(copied(OwnerChannel::new(&keys).request(&ShieldRequest::ping()).map(drop)));
            assert!(matches!(sender.seal(b"", b"another"), Err(SenderError::Forked { .. })));
            assert!(matches!(sender.export(b""), Err(SenderError::Forked { .. })));
        });
        channel.request(&ShieldRequest::ping()).unwrap();
        sender.seal(b"", b"one").unwrap();
        portions.remove(0).seal_into(&[1; 4096], &mut SealedRun::default()).unwrap();
    });
}
