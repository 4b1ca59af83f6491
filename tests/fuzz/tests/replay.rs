//! No target panics on its corpus or on a few fresh mutations.

use shef_fuzz::{all, class, corpus, run_one};

#[test]
fn corpora_replay() {
    let mut inputs = 0;
    for target in all() {
        for input in (target.seeds)().into_iter().chain(corpus(target.name).unwrap()) {
            if let Err(message) = run_one(target, &input) {
                panic!("{}: {message}: {}", target.name, hex::encode(input));
            }
            inputs += 1;
        }
    }
    assert!(inputs > all().len());
}

/// Mutation starts from messages that the decoder accepts.
#[test]
fn good_messages_are_accepted() {
    for target in all() {
        let outcomes: Vec<String> =
            (target.seeds)().iter().map(|seed| run_one(target, seed).unwrap()).collect();
        let accepted = |outcome: &String| {
            ["accepted", "with profile"].iter().any(|word| outcome.contains(word))
        };
        assert!(outcomes.iter().any(accepted), "{}: {outcomes:?}", target.name);
    }
}

/// Every target has a corpus of inputs that mutation found, and all corpora together are small.
#[test]
fn corpora_are_there_and_small() {
    let corpora: Vec<_> =
        all().iter().map(|target| (target.name, corpus(target.name).unwrap())).collect();
    for (name, inputs) in &corpora {
        assert!(!inputs.is_empty(), "{name}: run `cargo xtask fuzz --target {name}`");
    }
    let bytes: usize = corpora.iter().flat_map(|(_, inputs)| inputs).map(Vec::len).sum();
    assert!(bytes < 300 * 1024, "{bytes} bytes");
    let dirs = std::fs::read_dir(shef_fuzz::corpus_dir(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap());
    for dir in dirs {
        assert!(corpora.iter().any(|(name, _)| *name == dir), "{dir}: a corpus without a target");
    }
}

/// The run detects a decoder that panics, and a property that does not hold.
#[test]
fn what_breaks_is_seen() {
    let breaks =
        shef_fuzz::Target { name: "breaks", seeds: Vec::new, run: |bytes| format!("{}", bytes[3]) };
    assert!(run_one(&breaks, b"abc").is_err());
    assert_eq!(run_one(&breaks, b"abcd"), Ok("100".into()));
}

#[test]
fn numbers_and_names_do_not_make_classes() {
    assert_eq!(class("malformed CBOR at byte 1234, 7"), "malformed CBOR at byte #, #");
    assert_eq!(
        class("unknown field `a1`, expected `name` in \"x`y\" 3"),
        "unknown field ``, expected `` in \"\" #"
    );
    assert_eq!(class("unknown field `a``b`c`, expected `name`"), "unknown field ``, expected ``");
    assert_eq!(
        class("region 3 (out): base 0x1be0 is not (SHEF-CON-010)"),
        "region # (): base #x is not (SHEF-CON-#)"
    );
    assert_eq!(class("at 1:2\n1 | k\\n\n  | ^\nno \"a\\\"b\" here"), "at #:# no \"\" here");
}
