//! Certificate chains that violate a rule, and payloads that contradict their chain.

use shef_proto::cert::{self, Certificate};
use shef_proto::cose::SigningKey;
use shef_proto::evidence::{Layer, RootOfTrust};
use shef_verify::{Revocations, TrustAnchor, TrustAnchors};

use super::Run;
use crate::device::{Device, Verifier};
use crate::{ACCEPTED, Seen};
use shef_fixtures::der::{AKI, BASIC, EKU, Parts, SKI, TCB, USAGE, ext, tlv};
use shef_fixtures::world::{Manufacturer, NOW};

pub(super) const CASES: &[(u32, Run)] = &[
    (62, self_signed),
    (63, unknown_root),
    (64, root_included),
    (65, shuffled),
    (66, extra),
    (67, five),
    (68, path_length),
    (69, issuer_no_ca),
    (70, leaf_ca),
    (71, no_key_usage),
    (72, key_purpose),
    (73, unknown_critical),
    (74, tcb_info),
    (75, names),
    (76, key_identifiers),
    (77, algorithms_differ),
    (78, other_keys),
    (79, expired_ca),
    (80, not_yet),
    (81, revoked),
    (82, no_list),
    (83, cached),
    (84, ueid),
    (85, measured),
];

fn shield() -> Device {
    Device::new(Layer::Shield)
}

/// Evidence under leaves with these parts.
fn leaves(device: &Device, forms: Vec<(&str, Parts)>) -> Vec<Seen> {
    assert_eq!(device.ask("", &device.with_leaf(&device.leaf())).code, ACCEPTED);
    forms.into_iter().map(|(what, parts)| device.ask(what, &device.with_leaf(&parts))).collect()
}

/// Evidence under DeviceID certificates with these parts.
fn devices(device: &Device, forms: Vec<(&str, Parts)>) -> Vec<Seen> {
    assert_eq!(
        device.ask("", &device.with_device(&Parts::of(&device.device_certificate))).code,
        ACCEPTED
    );
    forms.into_iter().map(|(what, parts)| device.ask(what, &device.with_device(&parts))).collect()
}

fn with_extension(parts: &Parts, extension: Vec<u8>) -> Parts {
    let mut parts = parts.clone();
    parts.extensions.push(extension);
    parts
}

fn self_signed() -> Vec<Seen> {
    let device = shield();
    let mut own = device.leaf();
    own.issuer = own.subject.clone();
    let second = device.device_certificate.der().to_vec();
    vec![
        device
            .ask("under its own name", &device.with_chain(&[own.sign(&device.ak), second.clone()])),
        device.ask("under its own key identifier", &{
            let ski = own.extensions.iter().find(|e| hex::encode(e).contains(SKI)).unwrap();
            let id = hex::encode(&ski[ski.len() - 20..]);
            let own = own.with(AKI, &[ext(AKI, false, &format!("30168014{id}"))]);
            device.with_chain(&[own.sign(&device.ak), second])
        }),
    ]
}

fn unknown_root() -> Vec<Seen> {
    let mut device = shield();
    let stranger = Manufacturer::new(77).anchor(RootOfTrust::ShefBoot, false);
    let mut seen = Vec::new();
    device.verifier.anchors = TrustAnchors::new(vec![stranger]);
    seen.push(device.ask("another maker of the same name", &device.evidence));
    device.verifier.anchors = TrustAnchors::new(Vec::new());
    seen.push(device.ask("no anchors at all", &device.evidence));
    seen
}

fn root_included() -> Vec<Seen> {
    let device = shield();
    let [ak, id] = [device.ak_certificate.der().to_vec(), device.device_certificate.der().to_vec()];
    let root = device.world.manufacturer.root.der().to_vec();
    vec![
        device.ask("omitted", &device.with_chain(&[ak.clone(), id.clone()])),
        device.ask("included", &device.with_chain(&[ak, id, root])),
    ]
}

fn shuffled() -> Vec<Seen> {
    let device = shield();
    let [ak, id] = [device.ak_certificate.der().to_vec(), device.device_certificate.der().to_vec()];
    vec![
        device.ask("DeviceID first", &device.with_chain(&[id, ak.clone()])),
        device.ask("AK twice", &device.with_chain(&[ak.clone(), ak])),
    ]
}

fn stranger() -> Vec<u8> {
    Manufacturer::new(78).certify(RootOfTrust::ShefBoot, false)
}

fn extra() -> Vec<Seen> {
    let device = shield();
    let [ak, id] = [device.ak_certificate.der().to_vec(), device.device_certificate.der().to_vec()];
    vec![
        device.ask("at the end", &device.with_chain(&[ak.clone(), id.clone(), stranger()])),
        device.ask("in the middle", &device.with_chain(&[ak.clone(), stranger(), id.clone()])),
        device.ask("in front", &device.with_chain(&[stranger(), ak, id])),
    ]
}

fn five() -> Vec<Seen> {
    let device = shield();
    let [ak, id] = [device.ak_certificate.der().to_vec(), device.device_certificate.der().to_vec()];
    let all = vec![ak, id, stranger(), stranger(), stranger()];
    let mut beside = device.verifier.clone();
    beside.beside = all.clone();
    let bare = device.spoilt(|token| token.unprotected = shef_proto::cbor::Value::Map(vec![]));
    vec![
        device.ask("in the evidence", &device.with_chain(&all)),
        beside.ask("beside the evidence", &bare),
    ]
}

fn path_length() -> Vec<Seen> {
    let device = shield();
    let maker = &device.world.manufacturer;
    let short = Parts::of(&maker.root)
        .with(BASIC, &[ext(BASIC, true, "30060101ff020100")])
        .sign(&maker.key);
    let root = TrustAnchor::new("short", RootOfTrust::ShefBoot, false, &short);
    let mut seen = vec![Seen::of("root of length 0 as trust anchor", &root, |error| error.code())];
    seen.extend(leaves(
        &device,
        vec![("leaf with a length", device.leaf().with(BASIC, &[ext(BASIC, true, "3003020100")]))],
    ));
    // The AK issues a certificate for another key: a chain of three, cut to the two that the
    // verifier accepts.
    let below = SigningKey::derive(b"below the AK");
    let forged =
        cert::issue_ak(&device.ak, &device.ak_certificate, &below.public_key(), &device.tcb);
    let payload = device.claims.to_cbor();
    let mut token = device.token(&payload);
    let chain = [forged.as_slice(), device.ak_certificate.der()].map(shef_proto::cbor::Value::from);
    token.unprotected =
        shef_proto::cbor::Value::map(vec![(33, shef_proto::cbor::Value::Array(chain.to_vec()))]);
    token.signature = (&below.sign(&crate::device::to_sign(&token.protected, &payload))).into();
    seen.push(device.ask("AK issued by an AK", &token.bytes()));
    seen
}

fn issuer_no_ca() -> Vec<Seen> {
    let device = shield();
    let good = Parts::of(&device.device_certificate);
    devices(
        &device,
        vec![
            ("CA false", good.with(BASIC, &[ext(BASIC, true, "3000")])),
            ("no basic constraints", good.with(BASIC, &[])),
            (
                "basic constraints not critical",
                good.with(BASIC, &[ext(BASIC, false, "30060101ff020100")]),
            ),
            ("no keyCertSign", good.with(USAGE, &[ext(USAGE, true, "03020780")])),
        ],
    )
}

fn leaf_ca() -> Vec<Seen> {
    let device = shield();
    let good = device.leaf();
    leaves(
        &device,
        vec![
            ("CA", good.with(BASIC, &[ext(BASIC, true, "30030101ff")])),
            ("CA of length 0", good.with(BASIC, &[ext(BASIC, true, "30060101ff020100")])),
            ("keyCertSign too", good.with(USAGE, &[ext(USAGE, true, "03020284")])),
            ("keyCertSign alone", good.with(USAGE, &[ext(USAGE, true, "03020204")])),
        ],
    )
}

fn no_key_usage() -> Vec<Seen> {
    let device = shield();
    let mut seen = leaves(&device, vec![("AK", device.leaf().with(USAGE, &[]))]);
    seen.extend(devices(
        &device,
        vec![("DeviceID", Parts::of(&device.device_certificate).with(USAGE, &[]))],
    ));
    seen
}

fn key_purpose() -> Vec<Seen> {
    let device = shield();
    let good = device.leaf();
    let with = |value: &str| good.with(EKU, &[ext(EKU, true, value)]);
    leaves(
        &device,
        vec![
            ("missing", good.with(EKU, &[])),
            ("serverAuth", with("300a06082b06010505070301")),
            ("any", with("30060604551d2500")),
            ("attestInit (100.8)", with("3009060767810505046408")),
            ("eca (100.12)", with("300906076781050504640c")),
            ("two of them", with("3012060767810505046409060767810505046408")),
            ("not critical", good.with(EKU, &[ext(EKU, false, "3009060767810505046409")])),
        ],
    )
}

fn unknown_critical() -> Vec<Seen> {
    let device = shield();
    let unknown = ext("2a0304", true, "0500");
    let mut seen = leaves(&device, vec![("AK", with_extension(&device.leaf(), unknown.clone()))]);
    seen.extend(devices(
        &device,
        vec![("DeviceID", with_extension(&Parts::of(&device.device_certificate), unknown))],
    ));
    seen
}

fn tcb_info() -> Vec<Seen> {
    let device = shield();
    let good = device.leaf();
    let whole = good
        .extensions
        .iter()
        .find(|extension| hex::encode(extension).contains(TCB))
        .unwrap()
        .clone();
    // The fields of the extension, edited as text.
    let text = hex::encode(&whole);
    let fwid = format!("302d06096086480165030402010420{}", hex::encode(device.tcb.digest));
    let svn = format!("8301{:02x}", device.tcb.svn);
    let start = text.find("8004").unwrap();
    let fields = &text[start..];
    let with = |fields: String| {
        let body = hex::decode(fields).unwrap();
        good.with(TCB, &[ext(TCB, true, &hex::encode(tlv(0x30, &[&body])))])
    };
    assert_eq!(device.ask("", &device.with_leaf(&with(fields.into()))).code, ACCEPTED);
    let change = |from: &str, to: &str| {
        assert!(fields.contains(from), "{from} in {fields}");
        with(fields.replacen(from, to, 1))
    };
    leaves(
        &device,
        vec![
            ("missing", good.with(TCB, &[])),
            ("not critical", good.with(TCB, &[ext(TCB, false, &text[start - 4..])])),
            ("twice", with_extension(&good, whole.clone())),
            ("FWIDs wrapped twice", change(&format!("a62f{fwid}"), &format!("a631302f{fwid}"))),
            ("no FWID", change(&format!("a62f{fwid}"), "a600")),
            ("two FWIDs", change(&format!("a62f{fwid}"), &format!("a65e{fwid}{fwid}"))),
            ("FWID of SHA-384", change("0402010420", "0402020420")),
            ("negative SVN", change(&svn, "8301ff")),
            ("SVN of 65 bits", change(&svn, "8309010000000000000000")),
            (
                "SVN not in its shortest form",
                change(&svn, &format!("830200{:02x}", device.tcb.svn)),
            ),
            (
                "length not in its shortest form",
                change(&format!("a62f{fwid}"), &format!("a6812f{fwid}")),
            ),
            ("indefinite length", change(&format!("a62f{fwid}"), &format!("a680{fwid}0000"))),
        ],
    )
}

fn names() -> Vec<Seen> {
    let device = shield();
    let good = device.leaf();
    let mut seen = leaves(&device, vec![("AK", Parts { issuer: good.subject.clone(), ..good })]);
    let id = Parts::of(&device.device_certificate);
    seen.extend(devices(&device, vec![("DeviceID", Parts { issuer: id.subject.clone(), ..id })]));
    seen
}

fn key_identifiers() -> Vec<Seen> {
    let device = shield();
    let good = device.leaf();
    let other = ext(AKI, false, &format!("30168014{}", "00".repeat(20)));
    let mut seen = leaves(
        &device,
        vec![
            ("AK", good.with(AKI, std::slice::from_ref(&other))),
            ("AK without", good.with(AKI, &[])),
        ],
    );
    let id = Parts::of(&device.device_certificate);
    seen.extend(devices(
        &device,
        vec![
            ("DeviceID", id.with(AKI, &[other])),
            (
                "subject key identifier",
                id.with(SKI, &[ext(SKI, false, &format!("0414{}", "00".repeat(20)))]),
            ),
        ],
    ));
    seen
}

fn algorithms_differ() -> Vec<Seen> {
    let device = shield();
    let good = device.leaf();
    let sha384 = tlv(0x30, &[&tlv(6, &[&hex::decode("2a8648ce3d040303").unwrap()])]);
    leaves(
        &device,
        vec![
            ("inside", Parts { inner_algorithm: sha384.clone(), ..good.clone() }),
            ("outside", Parts { outer_algorithm: sha384.clone(), ..good.clone() }),
            (
                "both another",
                Parts { inner_algorithm: sha384.clone(), outer_algorithm: sha384, ..good },
            ),
        ],
    )
}

fn other_keys() -> Vec<Seen> {
    let device = shield();
    let good = device.leaf();
    let oid = |hex: &str| tlv(6, &[&hex::decode(hex).unwrap()]);
    let p521 = tlv(
        0x30,
        &[
            &tlv(0x30, &[&oid("2a8648ce3d0201"), &oid("2b81040023")]),
            &tlv(3, &[&[0, 4], &[0x11; 132]]),
        ],
    );
    let modulus = tlv(0x30, &[&tlv(2, &[&[0x41; 128]]), &tlv(2, &[&[1, 0, 1]])]);
    let rsa = tlv(
        0x30,
        &[&tlv(0x30, &[&oid("2a864886f70d010101"), &[5, 0]]), &tlv(3, &[&[0], &modulus])],
    );
    let ed25519 = tlv(0x30, &[&tlv(0x30, &[&oid("2b6570")]), &tlv(3, &[&[0], &[0x22; 32]])]);
    leaves(
        &device,
        vec![
            ("RSA", Parts { spki: rsa, ..good.clone() }),
            ("P-521", Parts { spki: p521, ..good.clone() }),
            ("Ed25519", Parts { spki: ed25519, ..good }),
        ],
    )
}

fn expired_ca() -> Vec<Seen> {
    let mut device = shield();
    device.verifier.now = device.world.manufacturer.root.not_after();
    assert_eq!(device.ask("", &device.evidence).code, ACCEPTED);
    device.verifier.now += 1;
    let mut seen = vec![device.ask("a second later", &device.evidence)];
    device.verifier.now = i64::MAX;
    seen.push(device.ask("at the end of time", &device.evidence));
    seen
}

fn not_yet() -> Vec<Seen> {
    let mut device = shield();
    device.verifier.now = device.device_certificate.not_before();
    assert_eq!(device.ask("", &device.evidence).code, ACCEPTED);
    device.verifier.now -= 1;
    let mut seen = vec![device.ask("DeviceID", &device.evidence)];
    device.verifier.now = device.world.manufacturer.root.not_before() - 1;
    seen.push(device.ask("root", &device.evidence));
    device.verifier.now = i64::MIN;
    seen.push(device.ask("at the beginning of time", &device.evidence));
    seen
}

/// A list that is current and revokes nothing.
fn list() -> Revocations {
    Revocations { issued: NOW - 10, next_update: NOW + 10, ..Revocations::default() }
}

fn with_list(device: &Device, list: Revocations) -> Verifier {
    let mut verifier = device.verifier.clone();
    verifier.revocations = Some(list);
    verifier
}

fn digest(bytes: &[u8]) -> String {
    hex::encode(shef_fixtures::world::sha256(bytes))
}

fn revoked() -> Vec<Seen> {
    let device = shield();
    let mine = device.with_chain(&[
        device.ak_certificate.der().to_vec(),
        device.device_certificate.der().to_vec(),
    ]);
    assert_eq!(with_list(&device, list()).ask("", &mine).code, ACCEPTED);
    let root = &device.world.manufacturer.root;
    let claims = &device.claims;
    let shield = claims.shield.as_ref().unwrap();
    type Change<'a> = Box<dyn FnOnce(&mut Revocations) -> bool + 'a>;
    let forms: Vec<(&str, Change<'_>)> = vec![
        (
            "serial number of the AK",
            Box::new(|l| l.serials.insert(hex::encode(device.ak_certificate.serial()))),
        ),
        (
            "serial number of the DeviceID",
            Box::new(|l| l.serials.insert(hex::encode(device.device_certificate.serial()))),
        ),
        (
            "certificate of the AK",
            Box::new(|l| l.certificates.insert(digest(device.ak_certificate.der()))),
        ),
        ("certificate of the CA", Box::new(|l| l.certificates.insert(digest(root.der())))),
        ("key of the CA", Box::new(|l| l.authorities.insert(digest(root.key().as_bytes())))),
        ("device", Box::new(|l| l.devices.insert(hex::encode(claims.common.ueid)))),
        ("kernel", Box::new(|l| l.kernels.insert(hex::encode(claims.common.kernel_digest)))),
        ("shell", Box::new(|l| l.shells.insert(hex::encode(claims.common.shell_digest)))),
        ("image", Box::new(|l| l.images.insert(hex::encode(shield.image_digest)))),
        ("IP vendor", Box::new(|l| l.vendors.insert(hex::encode(shield.vendor)))),
    ];
    forms
        .into_iter()
        .map(|(what, change)| {
            let mut revocations = list();
            assert!(change(&mut revocations));
            with_list(&device, revocations).ask(what, &mine)
        })
        .collect()
}

fn no_list() -> Vec<Seen> {
    let mut device = shield();
    device.verifier.policy(|policy| policy.require_revocation = true);
    assert_eq!(with_list(&device, list()).ask("", &device.evidence).code, ACCEPTED);
    vec![
        device.ask("none", &device.evidence),
        with_list(&device, Revocations { next_update: NOW - 1, ..list() })
            .ask("out of date", &device.evidence),
        with_list(&device, Revocations { issued: NOW + 1, ..list() })
            .ask("of the future", &device.evidence),
    ]
}

fn cached() -> Vec<Seen> {
    let device = shield();
    let cache = shef_verify::MemoryChainCache::new(16);
    let ask = |what: &str, verifier: &Verifier| verifier.ask_cached(what, &device.evidence, &cache);
    assert_eq!(ask("", &device.verifier).code, ACCEPTED);
    assert_eq!(ask("", &device.verifier).code, ACCEPTED, "from the cache");
    let root = &device.world.manufacturer.root;
    let revoke = |change: &dyn Fn(&mut Revocations) -> bool| {
        let mut revocations = list();
        assert!(change(&mut revocations));
        with_list(&device, revocations)
    };
    let by_key = revoke(&|list| list.authorities.insert(digest(root.key().as_bytes())));
    let by_certificate = revoke(&|list| list.certificates.insert(digest(root.der())));
    let mut withdrawn = device.verifier.clone();
    withdrawn.anchors = TrustAnchors::new(Vec::new());
    let seen = vec![
        ask("key revoked", &by_key),
        ask("certificate revoked", &by_certificate),
        ask("withdrawn", &withdrawn),
    ];
    assert_eq!(ask("", &device.verifier).code, ACCEPTED, "and back");
    seen
}

fn ueid() -> Vec<Seen> {
    let device = shield();
    let other = cert::ueid_of(&SigningKey::derive(b"another device").public_key());
    vec![
        device.ask("one bit", &device.changed(|claims| claims.common.ueid[32] ^= 1)),
        device.ask("another type", &device.changed(|claims| claims.common.ueid[0] = 2)),
        device.ask("another device's", &device.changed(|claims| claims.common.ueid = other)),
    ]
}

fn measured() -> Vec<Seen> {
    let device = shield();
    let certified = |change: &dyn Fn(&mut cert::TcbInfo)| {
        let mut tcb = device.tcb.clone();
        change(&mut tcb);
        let ak = cert::issue_ak(
            &device.device_id,
            &device.device_certificate,
            &device.ak.public_key(),
            &tcb,
        );
        assert!(Certificate::parse(&ak).is_ok());
        device.with_chain(&[ak, device.device_certificate.der().to_vec()])
    };
    vec![
        device.ask("digest, one bit", &certified(&|tcb| tcb.digest[31] ^= 1)),
        device.ask("lower SVN certified", &certified(&|tcb| tcb.svn -= 1)),
        device.ask("higher SVN certified", &certified(&|tcb| tcb.svn += 1)),
    ]
}
