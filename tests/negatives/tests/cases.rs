//! Every case has the outcome in the table; the table and its documentation page are consistent.

use std::path::Path;

use shef_negatives::{cases, run, table};

macro_rules! cases {
    ($($name:ident = $id:literal)*) => {
        $(
            #[test]
            fn $name() {
                let report = run(&[$id]);
                let row = &report.cases[0];
                assert!(row.passed, "case {}: {}\n{}\nagain: cargo run -p shef-negatives -- {}", row.id, row.name, row.misfits.join("\n"), row.id);
            }
        )*

        const TESTED: &[u32] = &[$($id),*];
    };
}

cases! {
    case_001 = 1
    case_002 = 2
    case_003 = 3
    case_004 = 4
    case_005 = 5
    case_006 = 6
    case_007 = 7
    case_008 = 8
    case_009 = 9
    case_010 = 10
    case_011 = 11
    case_012 = 12
    case_013 = 13
    case_014 = 14
    case_015 = 15
    case_016 = 16
    case_017 = 17
    case_018 = 18
    case_019 = 19
    case_020 = 20
    case_021 = 21
    case_022 = 22
    case_023 = 23
    case_024 = 24
    case_025 = 25
    case_026 = 26
    case_027 = 27
    case_028 = 28
    case_029 = 29
    case_030 = 30
    case_031 = 31
    case_032 = 32
    case_033 = 33
    case_034 = 34
    case_035 = 35
    case_036 = 36
    case_037 = 37
    case_038 = 38
    case_039 = 39
    case_040 = 40
    case_041 = 41
    case_042 = 42
    case_043 = 43
    case_044 = 44
    case_045 = 45
    case_046 = 46
    case_049 = 49
    case_050 = 50
    case_051 = 51
    case_052 = 52
    case_053 = 53
    case_054 = 54
    case_055 = 55
    case_056 = 56
    case_057 = 57
    case_058 = 58
    case_059 = 59
    case_060 = 60
    case_061 = 61
    case_062 = 62
    case_063 = 63
    case_064 = 64
    case_065 = 65
    case_066 = 66
    case_067 = 67
    case_068 = 68
    case_069 = 69
    case_070 = 70
    case_071 = 71
    case_072 = 72
    case_073 = 73
    case_074 = 74
    case_075 = 75
    case_076 = 76
    case_077 = 77
    case_078 = 78
    case_079 = 79
    case_080 = 80
    case_081 = 81
    case_082 = 82
    case_083 = 83
    case_084 = 84
    case_085 = 85
    case_086 = 86
    case_087 = 87
    case_088 = 88
    case_089 = 89
    case_090 = 90
    case_091 = 91
    case_092 = 92
    case_093 = 93
    case_094 = 94
    case_095 = 95
    case_096 = 96
    case_097 = 97
    case_099 = 99
    case_100 = 100
    case_101 = 101
    case_102 = 102
    case_103 = 103
    case_104 = 104
    case_106 = 106
    case_107 = 107
    case_108 = 108
    case_109 = 109
    case_110 = 110
    case_111 = 111
    case_112 = 112
    case_113 = 113
    case_114 = 114
    case_115 = 115
    case_116 = 116
    case_117 = 117
    case_118 = 118
}

#[test]
fn every_case_that_there_is_is_tested() {
    let mut there: Vec<u32> = cases::all().iter().map(|(id, _)| *id).collect();
    there.sort_unstable();
    assert_eq!(there, TESTED);
}

#[test]
fn the_table_is_whole() {
    let ids: Vec<u32> = table().iter().map(|case| case.id).collect();
    assert_eq!(ids, (1..=118).collect::<Vec<_>>());
    assert!(table().iter().filter(|case| case.not_applicable.is_some()).count() <= 8);
}

/// The comparison detects a case with a different outcome.
#[test]
fn a_wrong_expectation_fails() {
    let case = table().iter().find(|case| case.id == 11).unwrap();
    let right = case.expectation("a zero");
    let seen = shef_negatives::Seen {
        variant: "a zero".into(),
        code: right.code.clone(),
        check: Some(right.check.clone()),
        claims: Some([("hardware".to_owned(), 99)].into()),
    };
    assert_eq!(right.misfit(&seen), None);
    for wrong in [
        shef_negatives::Seen { code: shef_negatives::ACCEPTED.into(), ..seen.clone() },
        shef_negatives::Seen { check: Some("SHEF-ATT-003".into()), ..seen.clone() },
        shef_negatives::Seen { claims: Some([("hardware".to_owned(), 2)].into()), ..seen.clone() },
        shef_negatives::Seen { claims: Some([].into()), ..seen.clone() },
        shef_negatives::Seen { claims: None, ..seen.clone() },
    ] {
        assert!(right.misfit(&wrong).is_some(), "{wrong:?}");
    }
}

/// `shef explain` knows every code in the table.
#[test]
fn codes_exist() {
    let known: Vec<&str> = shef_proto::CODES
        .iter()
        .chain(shef_verify::CODES)
        .chain(shef_kernel::CODES)
        .map(|code| code.id)
        .collect();
    let there = cases::all();
    for case in table().iter().filter(|case| there.iter().any(|(id, _)| *id == case.id)) {
        for expectation in case.named().chain([""]).map(|variant| case.expectation(variant)) {
            for code in [expectation.code, expectation.check]
                .iter()
                .filter(|code| code.starts_with("SHEF-"))
            {
                assert!(known.contains(&code.as_str()), "case {}: {code}", case.id);
            }
        }
    }
}

#[test]
fn the_page_is_current() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/negatives.md");
    let text = std::fs::read_to_string(page).unwrap_or_default();
    assert!(
        text == run(&[]).markdown(),
        "docs/reference/negatives.md is out of date: cargo xtask negatives --write"
    );
}
