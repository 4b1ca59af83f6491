//! What reading a tenant's collateral costs: it grows with the number of rows and no faster, a
//! change reads only what is new, and the number of rows has a limit.

use serde_json::json;
use shef_proto::cose::SigningKey;
use shef_proto::entropy::SeededEntropy;
use shef_verifierd::collateral::{Before, Collateral};
use shef_verifierd::secrets::sha256;
use shef_verifierd::store::{CollateralRows, CorimRow, SignerRow};
use shef_verify::ReferenceValues;
use shef_verify::corim::{self, CorimSigner, Describe, write_signed};

use shef_fixtures::service::*;

/// Seconds for which this thread has run, whatever else the machine does.
fn ran() -> f64 {
    // Linux brings the number up to date when a thread gives way.
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// The least time in seconds that some work takes this thread.
fn least<T>(mut work: impl FnMut() -> T) -> f64 {
    let once = |_| {
        let start = ran();
        let done = work();
        let took = ran() - start;
        drop(done);
        took
    };
    (0..10).map(once).fold(f64::INFINITY, f64::min)
}

/// Signed CoRIMs, each with a different kernel.
fn rows(count: usize) -> CollateralRows {
    let key = SigningKey::generate(&mut SeededEntropy::new(5, "signer"));
    let signer = CorimSigner::with_key("vendor", key.public_key())
        .for_kernels()
        .for_shells()
        .for_vendor(&VENDOR);
    let corim = |number: usize| {
        let mut values = ReferenceValues::from_toml(&reference()).unwrap();
        values.kernels[0].digest = sha256(&number.to_be_bytes());
        let id = format!("build-{number}");
        let describe = Describe { id: &id, version: 1, issuer: "vendor", not_after: None };
        CorimRow {
            content: write_signed(&values, &describe, &key, None).unwrap(),
            id,
            media_type: corim::MEDIA_TYPE.into(),
            active: 1,
            created: 1,
        }
    };
    CollateralRows {
        generation: 1,
        anchors: Vec::new(),
        signers: vec![SignerRow { name: "vendor".into(), content: signer.to_toml(), created: 1 }],
        corims: (0..count).map(corim).collect(),
        versions: Vec::new(),
        policies: Vec::new(),
        revocations: Vec::new(),
    }
}

#[test]
fn reading_grows_with_the_rows_and_a_change_reads_what_is_new() {
    const ROWS: usize = 100;
    /// Three times twice the rows: the caches of the processor count for less.
    const MORE: usize = 8;
    let all = rows(MORE * ROWS);
    let part = |count: usize| {
        let mut rows = all.clone();
        rows.corims.truncate(count);
        // As the store has it after the first change.
        rows.versions = Collateral::new(&rows, now(), Before::default()).unwrap().versions;
        rows
    };
    let cost = |count: usize| {
        let (whole, mut before) = (part(count), part(count));
        let new = before.corims.pop().unwrap();
        let before = Collateral::new(&before, now(), Before::default()).unwrap();
        let anew = least(|| Collateral::new(&whole, now(), Before::default()).unwrap());
        let change = least(|| {
            Collateral::check(&whole, &new, now(), Some(&before).into()).unwrap();
            Collateral::new(&whole, now(), Some(&before).into()).unwrap()
        });
        (anew, change)
    };
    let (small, large) = (cost(ROWS), cost(MORE * ROWS));
    let (anew, change) = ((large.0 / small.0).cbrt(), (large.1 / small.1).cbrt());
    println!(
        "{ROWS} rows: anew {:.0} us, a change {:.0} us; twice the rows: {anew:.2} and {change:.2} times that",
        small.0 * 1e6,
        small.1 * 1e6
    );
    assert!(anew <= 2.2 && change <= 2.2, "{anew:.2} {change:.2}");
    assert!(small.1 * 4.0 <= small.0, "a change costs {} of {} s", small.1, small.0);
}

/// What was read counts as long as it would be read in the same way: not beyond the end of a CoRIM,
/// and not under other signers.
#[test]
fn what_was_read_does_not_outlive_its_reasons() {
    let mut all = rows(2);
    let key = SigningKey::generate(&mut SeededEntropy::new(5, "signer"));
    let values = ReferenceValues::from_toml(&reference()).unwrap();
    let end = now() + 1000;
    let describe = Describe { id: "ends", version: 1, issuer: "vendor", not_after: Some(end) };
    all.corims.push(CorimRow {
        id: "ends".into(),
        content: write_signed(&values, &describe, &key, None).unwrap(),
        ..all.corims[0].clone()
    });
    let kernel = |number: usize| hex::encode(sha256(&number.to_be_bytes()));
    let ends = hex::encode(values.kernels[0].digest);
    let before = Collateral::new(&all, now(), Before::default()).unwrap();
    assert!(before.names("kernel", &kernel(0)) && before.names("kernel", &ends));
    // It has ended.
    let after = Collateral::new(&all, end + 1, Some(&before).into()).unwrap();
    assert!(after.names("kernel", &kernel(0)) && !after.names("kernel", &ends));
    // Another key has the signer's name.
    let mut other = all.clone();
    let stranger = SigningKey::generate(&mut SeededEntropy::new(6, "signer"));
    let signer = CorimSigner::with_key("vendor", stranger.public_key()).for_kernels();
    other.signers[0].content = signer.to_toml();
    let after = Collateral::new(&other, now(), Some(&before).into()).unwrap();
    assert!(!after.names("kernel", &kernel(0)));
    let again = Collateral::new(&all, now(), Some(&after).into()).unwrap();
    assert!(again.names("kernel", &kernel(0)) && again.names("kernel", &ends));
    // Other bytes under the same id.
    let mut changed = all.clone();
    changed.corims[0].content = changed.corims[1].content.clone();
    let after = Collateral::new(&changed, now(), Some(&before).into()).unwrap();
    assert!(!after.names("kernel", &kernel(0)) && after.names("kernel", &kernel(1)));
}

/// New reference values are parsed before the database is locked and not again under the lock,
/// unless the signers have changed in between.
#[test]
fn new_reference_values_are_read_without_the_lock() {
    let mut whole = rows(1);
    let before = Collateral::new(&whole, now(), Before::default()).unwrap();
    let mut text = reference();
    for number in 0..2000usize {
        let digest = hex::encode(sha256(&number.to_le_bytes()));
        text.push_str(&format!("[[kernel]]\nname = \"k\"\ndigest = \"{digest}\"\nsvn = 1\n"));
    }
    let (media_type, content) = ("application/toml".into(), text.into_bytes());
    let new = CorimRow { id: "large".into(), media_type, content, ..whole.corims[0].clone() };
    whole.corims.push(new.clone());
    let ahead = before.read_ahead(&new, now());
    let cost = |ahead| {
        least(|| {
            let before = Before { collateral: Some(&before), ahead };
            Collateral::check(&whole, &new, now(), before).unwrap();
            Collateral::new(&whole, now(), before).unwrap()
        })
    };
    let (read, unread) = (cost(Some(&ahead)), cost(None));
    assert!(read * 4.0 <= unread, "{read} of {unread} s under the lock");
    // Another key has the signer's name.
    let (mut whole, new) = (rows(1), rows(2).corims.pop().unwrap());
    let ahead = before.read_ahead(&new, now());
    let before = Before { collateral: Some(&before), ahead: Some(&ahead) };
    Collateral::check(&whole, &new, now(), before).unwrap();
    let stranger = SigningKey::generate(&mut SeededEntropy::new(6, "signer"));
    let signer = CorimSigner::with_key("vendor", stranger.public_key()).for_kernels();
    whole.signers[0].content = signer.to_toml();
    Collateral::check(&whole, &new, now(), before).unwrap_err();
}

#[test]
fn a_tenant_has_so_many_rows_and_no_more() {
    let service =
        Service::with(|text| format!("{text}\n[limits]\ntenant_rows = 16\n"), Default::default());
    let operator = &service.operator;
    let toml: &[(&str, &str)] = &[("content-type", "application/toml")];
    let put = |number: usize| {
        let text = format!("{}# {number}\n", reference());
        operator.send("PUT", &format!("/v1/corims/b-{number}"), toml, text.as_bytes())
    };
    (0..16).for_each(|number| drop(put(number).ok()));
    let refused = put(16).problem(409, "SHEF-SVC-058");
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains("of at most 16") && detail.contains("limits.tenant_rows"), "{detail}");
    put(3).ok();
    let lost = json!({"kind": "certificate", "value": "11".repeat(32), "reason": "lost"});
    operator.post("/v1/revocations", &lost).ok();
    operator.send("DELETE", "/v1/corims/b-0", &[], b"").ok();
    put(16).ok();
}
