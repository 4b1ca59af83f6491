//! The certificate chain: other parsers read issued certificates, and every rule of the validator
//! refuses.

use shef_fixtures::der::{AKI, BASIC, EKU, Parts, SKI, TCB, UEID, USAGE, ext, tlv};
use shef_proto::cert::{self, CertError, Certificate, NO_CLOCK, NO_END, TcbInfo, validate_chain};
use shef_proto::cose::SigningKey;
use x509_cert::der::{Decode, Encode};

const NOW: i64 = 1_795_000_000;

fn key(label: &str) -> SigningKey {
    SigningKey::derive(label.as_bytes())
}

fn tcb() -> TcbInfo {
    TcbInfo { version: "0.1.0".into(), svn: 7, digest: [0xab; 32], flags: 0 }
}

struct Pki {
    ca: SigningKey,
    device: SigningKey,
    ak: SigningKey,
    root: Certificate,
    chain: Vec<Certificate>,
}

fn pki() -> Pki {
    let (ca, device, ak) = (key("ca"), key("device"), key("ak"));
    let root = Certificate::parse(&cert::issue_root(&ca, "maker", NOW - 10, NOW + 10)).unwrap();
    let device_cert =
        Certificate::parse(&cert::issue_device_id(&ca, &root, &device.public_key(), NOW - 10))
            .unwrap();
    let ak_cert =
        Certificate::parse(&cert::issue_ak(&device, &device_cert, &ak.public_key(), &tcb()))
            .unwrap();
    Pki { ca, device, ak, root, chain: vec![ak_cert, device_cert] }
}

#[test]
fn a_chain_is_valid() {
    let pki = pki();
    let chain = validate_chain(&pki.chain, &pki.root, NOW).unwrap();
    assert_eq!(chain.ak, pki.ak.public_key());
    assert_eq!(chain.device_id, pki.device.public_key());
    assert_eq!(chain.ueid, cert::ueid_of(&pki.device.public_key()));
    assert_eq!(chain.tcb_info, tcb());
}

/// The independent crate x509-cert must read our certificates, with the same contents.
#[test]
fn others_read_our_certificates() {
    let pki = pki();
    for certificate in [&pki.root, &pki.chain[0], &pki.chain[1]] {
        let other = x509_cert::Certificate::from_der(certificate.der()).unwrap();
        assert_eq!(other.to_der().unwrap(), certificate.der());
        let tbs = other.tbs_certificate();
        assert_eq!(tbs.serial_number().as_bytes(), certificate.serial());
        assert_eq!(
            tbs.validity().not_before.to_unix_duration().as_secs() as i64,
            certificate.not_before()
        );
        assert_eq!(
            tbs.validity().not_after.to_unix_duration().as_secs() as i64,
            certificate.not_after()
        );
        assert_eq!(
            tbs.subject_public_key_info().subject_public_key.raw_bytes(),
            certificate.key().as_bytes()
        );
    }
    assert_eq!(pki.chain[0].not_before(), NO_CLOCK);
    assert_eq!(pki.chain[0].not_after(), NO_END);
    let ak = x509_cert::Certificate::from_der(pki.chain[0].der()).unwrap();
    let extensions = ak.tbs_certificate().extensions().unwrap();
    let info = extensions.iter().find(|e| e.extn_id.to_string() == "2.23.133.5.4.1").unwrap();
    assert!(info.critical);
    // IMPLICIT tags: [6] holds the FWIDs themselves.
    let hex = hex::encode(info.extn_value.as_bytes());
    assert!(
        hex.contains(&format!("a62f302d06096086480165030402010420{}", "ab".repeat(32))),
        "{hex}"
    );
    let purposes = extensions.iter().find(|e| e.extn_id.to_string() == "2.5.29.37").unwrap();
    assert_eq!(hex::encode(purposes.extn_value.as_bytes()), "3009060767810505046409");
}

#[test]
fn times_across_the_calendar() {
    for seconds in
        [0, 951_782_400, 1_582_934_400, 2_524_607_999, 2_524_608_000, 4_107_542_400, NO_END]
    {
        let der = cert::issue_root(&key("ca"), "maker", 0, seconds);
        assert_eq!(Certificate::parse(&der).unwrap().not_after(), seconds);
        let other = x509_cert::Certificate::from_der(&der).unwrap();
        assert_eq!(
            other.tbs_certificate().validity().not_after.to_unix_duration().as_secs() as i64,
            seconds
        );
    }
}

#[test]
fn tcb_info_of_any_svn_and_flags() {
    let pki = pki();
    for svn in [0, 1, 0x7f, 0x80, 0xff, 0x1_0000, u64::MAX] {
        for flags in [0, cert::FLAG_DEBUG, 1, 0x8000_0000, 0x8000_0008] {
            let info = TcbInfo { svn, flags, ..tcb() };
            let der = cert::issue_ak(&pki.device, &pki.chain[1], &pki.ak.public_key(), &info);
            assert_eq!(*Certificate::parse(&der).unwrap().tcb_info().unwrap(), info);
            assert!(x509_cert::Certificate::from_der(&der).is_ok());
        }
    }
}

#[test]
fn shape_of_the_chain() {
    let pki = pki();
    let [ak, device] = [pki.chain[0].clone(), pki.chain[1].clone()];
    let cases: Vec<(&str, Vec<Certificate>)> = vec![
        ("empty", vec![]),
        ("leaf alone", vec![ak.clone()]),
        ("root included", vec![ak.clone(), device.clone(), pki.root.clone()]),
        ("extra certificate", vec![ak.clone(), ak.clone(), device.clone()]),
    ];
    for (what, chain) in cases {
        assert_eq!(
            validate_chain(&chain, &pki.root, NOW).unwrap_err().code(),
            "SHEF-PRO-025",
            "{what}"
        );
    }
    for (what, chain) in [
        ("shuffled", [device.clone(), ak.clone()]),
        ("leaf twice", [ak.clone(), ak.clone()]),
        ("device twice", [device.clone(), device.clone()]),
    ] {
        assert_eq!(
            validate_chain(&chain, &pki.root, NOW).unwrap_err().code(),
            "SHEF-PRO-022",
            "{what}"
        );
    }
    assert_eq!(
        validate_chain(&[ak.clone(), pki.root.clone()], &pki.root, NOW).unwrap_err().code(),
        "SHEF-PRO-022"
    );
    // A root of another manufacturer.
    let other =
        Certificate::parse(&cert::issue_root(&key("other"), "other maker", NOW - 10, NOW + 10))
            .unwrap();
    assert_eq!(validate_chain(&pki.chain, &other, NOW).unwrap_err().code(), "SHEF-PRO-022");
    // Another manufacturer with the same name and key id cannot exist; with the same name, the key
    // id differs.
    let twin =
        Certificate::parse(&cert::issue_root(&key("other"), "maker", NOW - 10, NOW + 10)).unwrap();
    assert_eq!(validate_chain(&pki.chain, &twin, NOW).unwrap_err().code(), "SHEF-PRO-022");
    // An AK of another device.
    let device2 = key("device 2");
    let device2_cert = Certificate::parse(&cert::issue_device_id(
        &pki.ca,
        &pki.root,
        &device2.public_key(),
        NOW - 10,
    ))
    .unwrap();
    assert_eq!(
        validate_chain(&[ak, device2_cert], &pki.root, NOW).unwrap_err().code(),
        "SHEF-PRO-022"
    );
}

#[test]
fn validity_is_checked() {
    let pki = pki();
    for now in [NOW - 11, NOW + 11, 0, i64::MAX, i64::MIN] {
        assert_eq!(
            validate_chain(&pki.chain, &pki.root, now).unwrap_err().code(),
            "SHEF-PRO-024",
            "{now}"
        );
    }
    let root =
        Certificate::parse(&cert::issue_root(&pki.ca, "maker", NOW - 100, NOW + 100)).unwrap();
    let error = validate_chain(&pki.chain, &root, NOW - 50).unwrap_err();
    assert!(matches!(error, CertError::Validity { which: "DeviceID", .. }), "{error}");
}

#[test]
fn every_changed_byte_is_refused() {
    let pki = pki();
    for which in 0..2 {
        let der = pki.chain[which].der();
        for at in 0..der.len() {
            for bit in [1, 0x80] {
                let mut bytes = der.to_vec();
                bytes[at] ^= bit;
                let Ok(changed) = Certificate::parse(&bytes) else { continue };
                let mut chain = pki.chain.clone();
                chain[which] = changed;
                assert!(
                    validate_chain(&chain, &pki.root, NOW).is_err(),
                    "certificate {which} byte {at}"
                );
            }
        }
        for end in 0..der.len() {
            assert!(Certificate::parse(&der[..end]).is_err());
        }
        assert!(Certificate::parse(&[der, &[0]].concat()).is_err());
    }
}

// ---- malformed certificates ----

#[test]
fn the_builder_of_this_test_makes_good_certificates() {
    let pki = pki();
    let ak = Parts::of(&pki.chain[0]).sign(&pki.device);
    assert_eq!(ak, pki.chain[0].der());
    let device = Parts::of(&pki.chain[1]).sign(&pki.ca);
    assert_eq!(device, pki.chain[1].der());
}

/// The error code if the leaf is replaced.
fn leaf(parts: &Parts) -> &'static str {
    let pki = pki();
    match Certificate::parse(&parts.sign(&pki.device)) {
        Err(error) => error.code(),
        Ok(ak) => validate_chain(&[ak, pki.chain[1].clone()], &pki.root, NOW)
            .err()
            .map_or("accepted", |error| error.code()),
    }
}

fn device(parts: &Parts) -> &'static str {
    let pki = pki();
    match Certificate::parse(&parts.sign(&pki.ca)) {
        Err(error) => error.code(),
        Ok(device) => {
            let ak = Certificate::parse(&cert::issue_ak(
                &pki.device,
                &device,
                &pki.ak.public_key(),
                &tcb(),
            ))
            .unwrap();
            validate_chain(&[ak, device], &pki.root, NOW)
                .err()
                .map_or("accepted", |error| error.code())
        }
    }
}

#[test]
fn rules_of_the_leaf() {
    let pki = pki();
    let good = Parts::of(&pki.chain[0]);
    assert_eq!(leaf(&good), "accepted");
    let tcb_hex = |inner: &str| hex::encode(tlv(0x30, &[&hex::decode(inner).unwrap()]));
    let fwid = format!("302d06096086480165030402010420{}", "ab".repeat(32));
    let head = "8004736865668 10f73656375726974792d6b65726e656c".replace(' ', "");
    let good_tcb = tcb_hex(&format!("{head}8205302e312e30830107840101a62f{fwid}870100"));
    assert_eq!(leaf(&good.with(TCB, &[ext(TCB, true, &good_tcb)])), "accepted");
    let rules: Vec<(&str, Parts)> = vec![
        ("no basic constraints", good.with(BASIC, &[])),
        ("basic constraints not critical", good.with(BASIC, &[ext(BASIC, false, "3000")])),
        ("leaf is a CA", good.with(BASIC, &[ext(BASIC, true, "30030101ff")])),
        ("path length without CA", good.with(BASIC, &[ext(BASIC, true, "3003020100")])),
        ("no key usage", good.with(USAGE, &[])),
        ("key usage not critical", good.with(USAGE, &[ext(USAGE, false, "03020780")])),
        ("keyCertSign on the leaf", good.with(USAGE, &[ext(USAGE, true, "03020284")])),
        ("nonRepudiation on the leaf", good.with(USAGE, &[ext(USAGE, true, "030206c0")])),
        ("no key purpose", good.with(EKU, &[])),
        ("serverAuth", good.with(EKU, &[ext(EKU, true, "300a06082b06010505070301")])),
        ("attestInit", good.with(EKU, &[ext(EKU, true, "3009060767810505046408")])),
        ("eca on the leaf", good.with(EKU, &[ext(EKU, true, "300906076781050504640c")])),
        (
            "two purposes",
            good.with(EKU, &[ext(EKU, true, "3012060767810505046409060767810505046408")]),
        ),
        ("purpose not critical", good.with(EKU, &[ext(EKU, false, "3009060767810505046409")])),
        ("unknown critical extension", {
            let mut parts = good.clone();
            parts.extensions.push(ext("2a0304", true, "0500"));
            parts
        }),
        ("no authority key identifier", good.with(AKI, &[])),
        (
            "another authority key identifier",
            good.with(AKI, &[ext(AKI, false, &format!("30168014{}", "00".repeat(20)))]),
        ),
        ("no TcbInfo", good.with(TCB, &[])),
        ("TcbInfo not critical", good.with(TCB, &[ext(TCB, false, &good_tcb)])),
        ("carries a ueid", {
            let mut parts = good.clone();
            parts.extensions.push(ext(UEID, false, &format!("30230421{}", "01".repeat(33))));
            parts
        }),
        ("another issuer name", Parts { issuer: good.subject.clone(), ..good.clone() }),
    ];
    for (what, parts) in rules {
        assert_eq!(leaf(&parts), "SHEF-PRO-022", "{what}");
    }
    let malformed: Vec<(&str, Parts)> = vec![
        ("TcbInfo twice", {
            let mut parts = good.clone();
            parts.extensions.push(ext(TCB, true, &good_tcb));
            parts
        }),
        (
            "FWIDs wrapped twice",
            good.with(
                TCB,
                &[ext(
                    TCB,
                    true,
                    &tcb_hex(&format!("{head}8205302e312e30830107840101a631302f{fwid}870100")),
                )],
            ),
        ),
        (
            "no FWID",
            good.with(
                TCB,
                &[ext(TCB, true, &tcb_hex(&format!("{head}8205302e312e30830107840101a600870100")))],
            ),
        ),
        (
            "two FWIDs",
            good.with(
                TCB,
                &[ext(
                    TCB,
                    true,
                    &tcb_hex(&format!("{head}8205302e312e30830107840101a65e{fwid}{fwid}870100")),
                )],
            ),
        ),
        (
            "SHA-384 FWID",
            good.with(
                TCB,
                &[ext(
                    TCB,
                    true,
                    &tcb_hex(&format!(
                        "{head}8205302e312e30830107840101a62f{}870100",
                        fwid.replace("040201", "040202")
                    )),
                )],
            ),
        ),
        (
            "negative svn",
            good.with(
                TCB,
                &[ext(
                    TCB,
                    true,
                    &tcb_hex(&format!("{head}8205302e312e308301ff840101a62f{fwid}870100")),
                )],
            ),
        ),
        (
            "huge svn",
            good.with(
                TCB,
                &[ext(
                    TCB,
                    true,
                    &tcb_hex(&format!(
                        "{head}8205302e312e308309010000000000000000840101a62f{fwid}870100"
                    )),
                )],
            ),
        ),
        (
            "svn not shortest",
            good.with(
                TCB,
                &[ext(
                    TCB,
                    true,
                    &tcb_hex(&format!("{head}8205302e312e3083020007840101a62f{fwid}870100")),
                )],
            ),
        ),
        (
            "no svn",
            good.with(
                TCB,
                &[ext(TCB, true, &tcb_hex(&format!("{head}8205302e312e30840101a62f{fwid}870100")))],
            ),
        ),
        (
            "no flags",
            good.with(
                TCB,
                &[ext(TCB, true, &tcb_hex(&format!("{head}8205302e312e30830107840101a62f{fwid}")))],
            ),
        ),
        (
            "flags with trailing zeros",
            good.with(
                TCB,
                &[ext(
                    TCB,
                    true,
                    &tcb_hex(&format!("{head}8205302e312e30830107840101a62f{fwid}87020000")),
                )],
            ),
        ),
        (
            "another layer",
            good.with(
                TCB,
                &[ext(
                    TCB,
                    true,
                    &tcb_hex(&format!("{head}8205302e312e30830107840102a62f{fwid}870100")),
                )],
            ),
        ),
        ("trailing bytes in TcbInfo", good.with(TCB, &[ext(TCB, true, &format!("{good_tcb}00"))])),
        ("critical spelled FALSE", {
            let mut parts = good.with(SKI, &[]);
            parts.extensions.push(tlv(
                0x30,
                &[
                    &tlv(6, &[&hex::decode(SKI).unwrap()]),
                    &[1, 1, 0],
                    &tlv(4, &[&tlv(4, &[&[0; 20]])]),
                ],
            ));
            parts
        }),
        ("version 1", Parts { version: tlv(0xa0, &[&[2, 1, 0]]), ..good.clone() }),
        ("negative serial", Parts { serial: vec![2, 1, 0x80], ..good.clone() }),
        ("zero serial", Parts { serial: vec![2, 1, 0], ..good.clone() }),
        ("long serial", Parts { serial: tlv(2, &[&[0x11; 21]]), ..good.clone() }),
        (
            "13th month",
            Parts {
                validity: tlv(
                    0x30,
                    &[&tlv(0x17, &[b"261301000000Z"]), &tlv(0x18, &[b"99991231235959Z"])],
                ),
                ..good.clone()
            },
        ),
        (
            "30 February",
            Parts {
                validity: tlv(
                    0x30,
                    &[&tlv(0x17, &[b"260230000000Z"]), &tlv(0x18, &[b"99991231235959Z"])],
                ),
                ..good.clone()
            },
        ),
        (
            "time with fraction",
            Parts {
                validity: tlv(
                    0x30,
                    &[&tlv(0x17, &[b"260101000000Z"]), &tlv(0x18, &[b"99991231235959.5Z"])],
                ),
                ..good.clone()
            },
        ),
        (
            "GeneralizedTime before 2050",
            Parts {
                validity: tlv(
                    0x30,
                    &[&tlv(0x18, &[b"20260101000000Z"]), &tlv(0x18, &[b"99991231235959Z"])],
                ),
                ..good.clone()
            },
        ),
    ];
    for (what, parts) in malformed {
        assert_eq!(leaf(&parts), "SHEF-PRO-020", "{what}");
    }
}

#[test]
fn keys_and_signatures_of_other_algorithms() {
    let pki = pki();
    let good = Parts::of(&pki.chain[0]);
    let sha384 = tlv(0x30, &[&tlv(6, &[&hex::decode("2a8648ce3d040303").unwrap()])]);
    assert_eq!(
        leaf(&Parts { inner_algorithm: sha384.clone(), ..good.clone() }),
        "SHEF-PRO-021",
        "differs from the outer one"
    );
    assert_eq!(
        leaf(&Parts { outer_algorithm: sha384.clone(), ..good.clone() }),
        "SHEF-PRO-021",
        "differs from the inner one"
    );
    assert_eq!(
        leaf(&Parts { inner_algorithm: sha384.clone(), outer_algorithm: sha384, ..good.clone() }),
        "SHEF-PRO-021"
    );
    let p384 = "3076301006072a8648ce3d020106052b8104002203620004".to_string() + &"11".repeat(96);
    assert_eq!(leaf(&Parts { spki: hex::decode(p384).unwrap(), ..good.clone() }), "SHEF-PRO-021");
    let rsa = "301e300d06092a864886f70d010101050003 0d00300a020301000102030100 01".replace(' ', "");
    assert_eq!(leaf(&Parts { spki: hex::decode(rsa).unwrap(), ..good.clone() }), "SHEF-PRO-021");
    let p256 = |point: &[u8]| {
        tlv(
            0x30,
            &[
                &hex::decode("301306072a8648ce3d020106082a8648ce3d030107").unwrap(),
                &tlv(3, &[&[0], point]),
            ],
        )
    };
    let point = *pki.ak.public_key().as_bytes();
    assert_eq!(leaf(&Parts { spki: p256(&point), ..good.clone() }), "accepted");
    let mut off = point;
    off[64] ^= 1;
    let hybrid = [&[6 + (point[64] & 1)], &point[1..]].concat();
    let compressed = [&[2 + (point[64] & 1)], &point[1..33]].concat();
    for (what, bytes) in [
        ("off the curve", &off[..]),
        ("infinity", &[0][..]),
        ("hybrid", &hybrid),
        ("compressed", &compressed),
    ] {
        assert_eq!(leaf(&Parts { spki: p256(bytes), ..good.clone() }), "SHEF-PRO-020", "{what}");
    }
    // The key of the issuer reused.
    assert_eq!(
        leaf(&Parts { spki: p256(pki.device.public_key().as_bytes()), ..good }),
        "SHEF-PRO-022"
    );
}

#[test]
fn signed_by_somebody_else() {
    let pki = pki();
    let ak = Certificate::parse(&Parts::of(&pki.chain[0]).sign(&key("somebody"))).unwrap();
    let error = validate_chain(&[ak, pki.chain[1].clone()], &pki.root, NOW).unwrap_err();
    assert_eq!(error, CertError::Signature { which: "AK" });
    let device = Certificate::parse(&Parts::of(&pki.chain[1]).sign(&key("somebody"))).unwrap();
    let error = validate_chain(&[pki.chain[0].clone(), device], &pki.root, NOW).unwrap_err();
    assert_eq!(error, CertError::Signature { which: "DeviceID" });
    // A self-signed leaf.
    let mut own = Parts::of(&pki.chain[0]);
    own.issuer = own.subject.clone();
    assert_eq!(leaf(&own), "SHEF-PRO-022");
}

#[test]
fn rules_of_the_device_certificate() {
    let pki = pki();
    let good = Parts::of(&pki.chain[1]);
    assert_eq!(device(&good), "accepted");
    let rules: Vec<(&str, Parts)> = vec![
        ("not a CA", good.with(BASIC, &[ext(BASIC, true, "3000")])),
        ("no basic constraints", good.with(BASIC, &[])),
        (
            "basic constraints not critical",
            good.with(BASIC, &[ext(BASIC, false, "30060101ff020100")]),
        ),
        ("no key usage", good.with(USAGE, &[])),
        ("digitalSignature only", good.with(USAGE, &[ext(USAGE, true, "03020780")])),
        ("digitalSignature too", good.with(USAGE, &[ext(USAGE, true, "03020284")])),
        ("no key purpose", good.with(EKU, &[])),
        ("purpose of a leaf", good.with(EKU, &[ext(EKU, true, "3009060767810505046409")])),
        ("no ueid", good.with(UEID, &[])),
        (
            "another ueid",
            good.with(UEID, &[ext(UEID, false, &format!("30230421{}", "01".repeat(33)))]),
        ),
        ("no subject key identifier", good.with(SKI, &[])),
        (
            "another subject key identifier",
            good.with(SKI, &[ext(SKI, false, &format!("0414{}", "00".repeat(20)))]),
        ),
        ("a TcbInfo", {
            let mut parts = good.clone();
            let ak = Parts::of(&pki.chain[0]);
            parts
                .extensions
                .extend(ak.extensions.into_iter().filter(|e| hex::encode(e).contains(TCB)));
            parts
        }),
    ];
    for (what, parts) in rules {
        assert_eq!(device(&parts), "SHEF-PRO-022", "{what}");
    }
}

#[test]
fn rules_of_the_root() {
    let pki = pki();
    let good = Parts::of(&pki.root);
    let check = |parts: &Parts, key: &SigningKey| {
        Certificate::parse(&parts.sign(key)).unwrap().check_root().err().map(|error| error.code())
    };
    assert_eq!(check(&good, &pki.ca), None);
    assert_eq!(check(&good.with(BASIC, &[ext(BASIC, true, "30030101ff")]), &pki.ca), None);
    assert_eq!(check(&good.with(USAGE, &[ext(USAGE, true, "03020106")]), &pki.ca), None);
    assert_eq!(check(&good, &key("somebody")), Some("SHEF-PRO-023"));
    assert_eq!(
        check(&good.with(BASIC, &[ext(BASIC, true, "30060101ff020100")]), &pki.ca),
        Some("SHEF-PRO-022")
    );
    assert_eq!(
        check(&good.with(BASIC, &[ext(BASIC, true, "3000")]), &pki.ca),
        Some("SHEF-PRO-022")
    );
    assert_eq!(
        check(&good.with(USAGE, &[ext(USAGE, true, "03020780")]), &pki.ca),
        Some("SHEF-PRO-022")
    );
    // A device's certificates are not roots.
    assert!(pki.chain[1].check_root().is_err());
    assert!(pki.chain[0].check_root().is_err());
}

/// The independent openssl must verify the signatures and find the names and extensions.
#[test]
fn openssl_verifies_the_signatures() {
    let pki = pki();
    let dir = std::env::temp_dir().join(format!("shef-att-cert-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let write = |name: &str, certificate: &Certificate| {
        let path = dir.join(name);
        std::fs::write(&path, certificate.der()).unwrap();
        path
    };
    let (root, device, ak) = (
        write("root.der", &pki.root),
        write("device.der", &pki.chain[1]),
        write("ak.der", &pki.chain[0]),
    );
    let output = std::process::Command::new("openssl")
        .args([
            "verify",
            "-ignore_critical",
            "-x509_strict",
            "-attime",
            &NOW.to_string(),
            "-trusted",
        ])
        .arg(&root)
        .arg("-untrusted")
        .arg(&device)
        .arg(&ak)
        .output();
    let _ = std::fs::remove_dir_all(&dir);
    let Ok(output) = output else {
        eprintln!("openssl is not installed: skipped");
        return;
    };
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
