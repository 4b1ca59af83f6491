//! Policy in Rego, revocation lists, age, and the lists of a typed policy.

use sha2::{Digest, Sha256};
use shef_fixtures::case::{Case, NOW, key};
use shef_proto::evidence::Layer;
use shef_verify::{
    AppraisalPolicy, AppraisalRequest, CheckId, Policy, Rego, Revocations, Status, TrustAnchor,
    TrustAnchors, appraise, floor,
};

fn with_rego(text: &'static str) -> Case {
    Case { rego: Some(text), ..Case::new(Layer::Shield) }
}

#[test]
fn rego_must_allow() {
    let case = with_rego(
        r#"package shef
default allow := false
allow if {
    input.layer == "shield"
    input.kernel_svn >= 5
    input.accelerator in {"digits", "other"}
    input.image_digest == "0303030303030303030303030303030303030303030303030303030303030303"
    input.now > 1700000000
    count(input.bypass) == 0
}"#,
    );
    let appraisal = case.appraise();
    assert!(appraisal.accepted(), "{}", appraisal.to_json());
    assert_eq!(appraisal.policy_ids.len(), 2);
    for denying in
        ["package shef\ndefault allow := false", "package shef\nallow if input.layer == \"kernel\""]
    {
        let appraisal = with_rego(denying).appraise();
        assert_eq!(appraisal.first_failure().unwrap().id, CheckId::Rego, "{denying}");
        assert_eq!(
            (appraisal.status, appraisal.vector.get("configuration")),
            (Status::Contraindicated, Some(96))
        );
    }
}

/// Regular expressions work in full in every build: classes, word boundaries and case folding need
/// tables that `regorus` does not enable.
#[test]
fn rego_has_whole_regular_expressions() {
    let text = "package shef\nallow if {\n    every pattern in [`^\\w+$`, `^[^\\d\\s]+$`, `\\bshield\\b`, `(?i)^SHIELD$`, `^\\p{L}+$`] { regex.match(pattern, input.layer) }\n}";
    let appraisal = with_rego(text).appraise();
    assert!(appraisal.accepted(), "{}", appraisal.to_json());
}

/// An undecided policy denies, and reports a failure of the verifier.
#[test]
fn rego_that_fails_denies_with_malfunction() {
    for text in [
        "package shef\nallow := 1",
        "package shef\nallow := \"true\"",
        "package shef\nallow := {\"allow\": true}",
        "package shef\nallow := [true]",
        "package shef\nallow := null",
        "package shef\nallow if to_number(\"x\") > 1",
        "package shef\nallow := true\nallow := false if input.layer == \"shield\"",
        // 10^9 steps.
        "package shef\nn := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\nm := [[a, b, c] | some a in n; some b in n; some c in n]\nallow if { some x in m; some y in m; some z in m; x[0] + y[0] + z[0] == -1 }",
    ] {
        let appraisal = with_rego(text).appraise();
        assert!(!appraisal.accepted());
        assert_eq!(appraisal.first_failure().map(|check| check.id), Some(CheckId::Rego), "{text}");
        assert_eq!(
            (appraisal.status, appraisal.vector.get("hardware")),
            (Status::None, Some(-1)),
            "{text}\n{}",
            appraisal.to_json()
        );
    }
}

/// Rego can deny more, but cannot allow what a check denied.
#[test]
fn rego_does_not_overrule_checks() {
    let mut case = with_rego("package shef\nallow := true");
    assert!(case.appraise().accepted());
    case.shield().image_digest[0] ^= 1;
    let appraisal = case.appraise();
    assert!(!appraisal.accepted() && !appraisal.check(CheckId::Rego).unwrap().reached);
}

/// The parser tries brackets twice at each level: without a bound this test would not end.
#[test]
fn rego_that_takes_long_to_read_is_refused() {
    let nested = |open: &str, close: &str, n| {
        format!("package shef\nallow if {{ x := {}1{} }}", open.repeat(n), close.repeat(n))
    };
    for text in [
        nested("[{", "}]", 25),
        nested("{\"a\": ", "}", 50),
        nested("[", "", 60_000),
        "{".repeat(60_000),
    ] {
        let error = Rego::new(&text).unwrap_err().to_string();
        assert!(error.contains("nested so deep"), "{error}");
    }
    Rego::new(&nested("[", "]", 12)).unwrap().compile().unwrap();
    let inert = "[".repeat(99);
    Rego::new(&format!("package shef\n# {inert}\nallow if {{ \"\\\"{inert}\" != `{inert}` }}\n"))
        .unwrap()
        .compile()
        .unwrap();
    // A long policy of ordinary depth.
    let rules: String =
        (0..1200).map(|n| format!("rule_{n} if {{ input.bypass[_] == [\"a\"][0] }}\n")).collect();
    Rego::new(&format!("package shef\nallow := true\n{rules}")).unwrap().compile().unwrap();
}

/// Functions that make large outputs from small inputs, or read more than the input, are refused by
/// name, or when they are called if the name is hidden.
#[test]
fn rego_calls_what_is_on_the_list_and_nothing_else() {
    for call in [
        "count(numbers.range(1, 400000000000)) > 3",
        "numbers.range_step(1, 9, 2)",
        "bits.lsh(1, 4000000000) > 1",
        "sprintf(\"%4000000000d\", [1]) == \"\"",
        "replace(input.target, \"\", input.target) == \"\"",
        "strings.replace_n({\"\": \"xx\"}, input.target) == \"\"",
        "concat(input.target, input.bypass) == \"\"",
        "product([9, 9]) == 81",
        "regex.replace(input.target, \"\", \"xx\") == \"\"",
        "json.marshal(input) == \"\"",
        "json.unmarshal(\"1\") == 1",
        "object.union_n([input, input]) == input",
        "print(input.target)",
        "trace(\"x\")",
    ] {
        let name = call.split('(').find(|part| !part.starts_with("count")).unwrap();
        let error = Rego::new(&format!("package shef\nallow if {{ {call} }}")).unwrap_err();
        assert!(
            error.to_string().contains(&format!("{name}: a policy may not call it")),
            "{call}: {error}"
        );
    }
    // A policy may use any words that it defines.
    let inert = "# numbers.range(1, 9)\nproduct := 3\nmyreplace(x) := x\nallow if { myreplace(product) == 3; \"replace(x)\" != `sprintf(` }";
    assert!(with_rego(Box::leak(format!("package shef\n{inert}").into())).appraise().accepted());
    for hidden in [
        "package shef\nallow if count(numbers[\"range\"](1, 3)) == 3",
        "package shef\nallow if count(numbers[\"r\\u0061nge\"](1, 3)) == 3",
        "package shef\nallow if sprintf (\"x\", [])",
        "package shef\nsome_count(x) := 3\nallow if some_count(1) == 3 with some_count as numbers[\"range\"]",
    ] {
        // Refused by the parser, or denied when the function is called.
        let Ok(program) = Rego::new(hidden).and_then(|policy| policy.compile()) else { continue };
        let answer = program.clone().evaluate("{}");
        assert!(answer.is_err(), "{hidden}: {answer:?}");
    }
}

/// A caller without a Rego evaluator accepts no evidence under a Rego policy.
#[test]
fn rego_without_an_evaluator_denies() {
    let case = with_rego("package shef\nallow := true");
    assert!(case.appraise().accepted());
    let anchor = TrustAnchor::new(
        case.known_maker,
        case.anchor.0,
        case.anchor.1,
        Case::root(case.known_maker).der(),
    )
    .unwrap();
    let (evidence, policy, anchors) =
        (case.evidence(), case.appraisal_policy(), TrustAnchors::new(vec![anchor]));
    let request = AppraisalRequest::new(
        &evidence,
        &anchors,
        &case.reference,
        &policy,
        case.layer,
        &case.nonce,
        &case.audience,
        case.now,
    );
    let appraisal = appraise(&request).appraisal;
    assert!(!appraisal.accepted());
    assert_eq!(
        (appraisal.first_failure().map(|check| check.id), appraisal.status),
        (Some(CheckId::Rego), Status::None)
    );
    assert!(appraisal.to_json().contains("SHEF-ATT-057"));
}

#[test]
fn rego_is_refused_when_it_is_read() {
    let refused =
        |text: &str| Rego::new(text).and_then(|policy| policy.compile().map(drop)).unwrap_err();
    for (text, what) in [
        ("", "package"),
        ("package other\nallow := true", "package shef"),
        ("package shef\nallow := (", "policy.rego:2"),
        ("package shef\ndeny := true", "allow"),
        ("package shef\nallow if time.now_ns() > 0", "time.now_ns"),
        ("package shef\nallow if rand.intn(\"x\", 2) == 1", "rand.intn"),
        ("package shef\nallow if http.send({}).status == 200", "http.send"),
    ] {
        let error = refused(text);
        assert_eq!(error.code(), "SHEF-ATT-053");
        assert!(error.to_string().contains(what), "{text}: {error}");
    }
    let long = format!("package shef\nallow := true # {}", "x".repeat(70_000));
    assert!(refused(&long).to_string().contains("65536"));
    let (a, b) = (
        Rego::new("package shef\nallow := true").unwrap(),
        Rego::new("package shef\nallow := true\n").unwrap(),
    );
    assert_ne!(a.id(), b.id(), "the id is of the text");
}

fn list<R>(change: impl FnOnce(&mut Revocations) -> R) -> Option<Revocations> {
    let mut list =
        Revocations { issued: NOW - 10, next_update: NOW + 10, ..Revocations::default() };
    change(&mut list);
    Some(list)
}

#[test]
fn revoked_things_deny() {
    let sha = |bytes: &[u8]| hex::encode(Sha256::digest(bytes));
    let certificates = Case::new(Layer::Shield).certificates();
    let root = Case::root("maker");
    let serial =
        |der: &[u8]| hex::encode(shef_proto::cert::Certificate::parse(der).unwrap().serial());
    let mut case = Case::new(Layer::Shield);
    case.revocations = list(|_| ());
    assert!(case.appraise().accepted());
    type Change = Box<dyn Fn(&mut Revocations) -> bool>;
    let ueid = hex::encode(case.claims.common.ueid);
    let rows: Vec<(&str, Change)> = vec![
        ("device", Box::new(move |l| l.devices.insert(ueid.clone()))),
        (
            "serial of AK",
            Box::new({
                let s = serial(&certificates[0]);
                move |l| l.serials.insert(s.clone())
            }),
        ),
        (
            "serial of DeviceID",
            Box::new({
                let s = serial(&certificates[1]);
                move |l| l.serials.insert(s.clone())
            }),
        ),
        (
            "digest of AK",
            Box::new({
                let s = sha(&certificates[0]);
                move |l| l.certificates.insert(s.clone())
            }),
        ),
        (
            "digest of the root",
            Box::new({
                let s = sha(root.der());
                move |l| l.certificates.insert(s.clone())
            }),
        ),
        (
            "authority",
            Box::new({
                let s = sha(key("maker").public_key().as_bytes());
                move |l| l.authorities.insert(s.clone())
            }),
        ),
        ("kernel", Box::new(|l| l.kernels.insert("01".repeat(32)))),
        ("shell", Box::new(|l| l.shells.insert("02".repeat(32)))),
        ("image", Box::new(|l| l.images.insert("03".repeat(32)))),
        ("vendor", Box::new(|l| l.vendors.insert("06".repeat(32)))),
    ];
    for (what, change) in rows {
        case.revocations = list(&*change);
        assert_eq!(case.failed(), [CheckId::Revocation], "{what}");
        assert_eq!(case.appraise().vector.get("instance-identity"), Some(96), "{what}");
    }
}

#[test]
fn a_demanded_list_must_be_there_and_current() {
    let mut case = Case::new(Layer::Kernel);
    assert!(case.appraise().accepted());
    case.policy.require_revocation = true;
    assert_eq!(case.failed(), [CheckId::Revocation], "no list");
    case.revocations = list(|_| ());
    assert!(case.appraise().accepted());
    case.revocations = list(|l| l.next_update = NOW - 1);
    assert_eq!(case.failed(), [CheckId::Revocation], "out of date");
    case.revocations = list(|l| l.issued = NOW + 1);
    assert_eq!(case.failed(), [CheckId::Revocation], "of the future");
    // Entries of an outdated list are still revoked.
    case.policy.require_revocation = false;
    case.revocations = list(|l| {
        l.next_update = NOW - 1;
        l.kernels.insert("01".repeat(32));
    });
    assert_eq!(case.failed(), [CheckId::Revocation]);
}

#[test]
fn age_counts_from_the_challenge() {
    let mut case = Case::new(Layer::Kernel);
    case.policy.max_age = Some(60);
    assert_eq!(case.failed(), [CheckId::Age], "nobody knows");
    for (challenged, accepted) in
        [(NOW, true), (NOW - 60, true), (NOW - 61, false), (NOW + 1, false), (i64::MIN, false)]
    {
        case.challenged = Some(challenged);
        assert_eq!(case.appraise().accepted(), accepted, "{challenged}");
    }
}

#[test]
fn lists_of_the_policy() {
    type Change = fn(&mut Case);
    let rows: [(CheckId, Change, Change); 6] = [
        (
            CheckId::Shell,
            |c| c.policy.shells = ["02".repeat(32)].into(),
            |c| c.policy.shells = ["03".repeat(32)].into(),
        ),
        (
            CheckId::Config,
            |c| c.policy.configs = ["04".repeat(32)].into(),
            |c| c.policy.configs = ["05".repeat(32)].into(),
        ),
        (
            CheckId::ImageSigner,
            |c| c.policy.image_signers = ["06".repeat(32)].into(),
            |c| c.policy.image_signers = ["07".repeat(32)].into(),
        ),
        (
            CheckId::Image,
            |c| c.policy.images = ["03".repeat(32)].into(),
            |c| c.policy.images = ["04".repeat(32)].into(),
        ),
        (
            CheckId::Image,
            |c| c.policy.accelerators = ["digits".into()].into(),
            |c| c.policy.accelerators = ["other".into()].into(),
        ),
        // Both must name it.
        (
            CheckId::Image,
            |c| {
                (c.policy.images, c.policy.accelerators) =
                    (["03".repeat(32)].into(), ["digits".into()].into());
            },
            |c| {
                (c.policy.images, c.policy.accelerators) =
                    (["03".repeat(32)].into(), ["other".into()].into());
            },
        ),
    ];
    for (id, good, bad) in rows {
        let mut case = Case::new(Layer::Shield);
        good(&mut case);
        assert!(case.appraise().accepted(), "{}", id.name());
        bad(&mut case);
        assert_eq!(case.failed(), [id]);
    }
}

/// Evidence that one verifier accepted is checked against another's policy: every demand that the
/// policy alone makes.
#[test]
fn a_floor_is_a_policy_without_certificates_and_reference_values() {
    let mut case = Case::new(Layer::Shield);
    case.shield().bypass = vec!["progress".into()];
    case.policy.bypass = vec!["progress".into()];
    let verified = case.appraise_bytes(&case.evidence(), &[]).verified.unwrap();
    let good = case.policy.clone();
    let (challenged, now) = (Some(NOW - 10), NOW);
    floor(&good, &verified, None, challenged, now).unwrap();
    type Change = fn(&mut Policy);
    let rows: &[(CheckId, Change)] = &[
        (CheckId::RootOfTrust, |p| p.root_of_trust = vec!["board".into()]),
        (CheckId::KernelSvn, |p| p.min_kernel_svn = 99),
        (CheckId::ImageSvn, |p| p.min_image_svn = 99),
        (CheckId::Age, |p| p.max_age = Some(9)),
        (CheckId::Revocation, |p| p.require_revocation = true),
        (CheckId::OnFault, |p| p.on_fault = vec!["region".into()]),
        (CheckId::Bypass, |p| p.bypass = vec![]),
        (CheckId::State, |p| p.states = vec!["closed".into()]),
        (CheckId::Target, |p| p.targets = vec!["other".into()]),
        (CheckId::Shell, |p| p.shells = ["09".repeat(32)].into()),
        (CheckId::Config, |p| p.configs = ["09".repeat(32)].into()),
        (CheckId::Image, |p| p.images = ["09".repeat(32)].into()),
        (CheckId::Image, |p| p.accelerators = ["other".into()].into()),
        (CheckId::ImageSigner, |p| p.image_signers = ["09".repeat(32)].into()),
        (CheckId::Device, |p| p.devices = ["09".repeat(33)].into()),
    ];
    for (id, change) in rows {
        let mut policy = good.clone();
        change(&mut policy);
        let denied = floor(&policy, &verified, None, challenged, now).expect_err(id.name());
        assert_eq!(denied.first_failure().map(|check| check.id), Some(*id));
        assert!(!denied.accepted());
    }
    // The time of the challenge is unknown; a list revokes accepted evidence.
    let aged = Policy { max_age: Some(60), ..good.clone() };
    floor(&aged, &verified, None, challenged, now).unwrap();
    assert_eq!(
        floor(&aged, &verified, None, None, now).unwrap_err().first_failure().map(|check| check.id),
        Some(CheckId::Age)
    );
    let revoked = list(|l| l.vendors.insert("06".repeat(32)));
    let denied = floor(&good, &verified, revoked.as_ref(), challenged, now).unwrap_err();
    assert_eq!(denied.first_failure().map(|check| check.id), Some(CheckId::Revocation));
}

#[test]
fn errors_have_line_and_column() {
    let good = "id = \"p\"\nroot_of_trust = [\"board\"]\nmin_kernel_svn = 1\n";
    assert!(Policy::from_toml(good).is_ok());
    for (text, at) in [
        (good.replace("board", "boards"), "line 2, column 17"),
        (
            format!("{good}devices = [\n  \"{}\",\n  \"zz\",\n]\n", "01".repeat(33)),
            "line 4, column 11",
        ),
        (format!("{good}on_fault = [\"ignore\"]\n"), "line 4, column 12"),
        (format!("{good}shells = [\"ABCD\"]\n"), "line 4, column 10"),
        (format!("{good}max_age = -1\n"), "line 4, column 11"),
        (format!("{good}max_ages = 1\n"), "line 4, column 1"),
    ] {
        let error = Policy::from_toml(&text).unwrap_err().to_string();
        assert!(error.contains(at), "{error}");
    }
    let error =
        Revocations::from_toml("issued = 1\nnext_update = 2\nserials = [\"1 2\"]\n").unwrap_err();
    assert_eq!(error.code(), "SHEF-ATT-054");
    assert!(error.to_string().contains("line 3"), "{error}");
    let list = list(|l| l.serials.insert("0102".into())).unwrap();
    assert_eq!(Revocations::from_toml(&list.to_toml().unwrap()).unwrap(), list);
}

/// The id identifies the text byte for byte.
#[test]
fn policy_ids() {
    let text = Policy::strict("p", &[shef_proto::evidence::RootOfTrust::Board]).to_toml().unwrap();
    let id = |text: &str| AppraisalPolicy::from_toml(text).unwrap().ids()[0].clone();
    assert_eq!(id(&text), format!("sha256:{}", hex::encode(Sha256::digest(&text))));
    assert_ne!(id(&text), id(&format!("{text}\n")));
    let policy = AppraisalPolicy::from_toml(&text)
        .unwrap()
        .with_rego(Rego::new("package shef\nallow := true").unwrap());
    assert_eq!(policy.ids().len(), 2);
}
