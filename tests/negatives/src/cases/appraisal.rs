//! Well-formed evidence of a device, kernel or image that is not accepted.

use shef_proto::cbor::Value;
use shef_proto::cert;
use shef_proto::evidence::{DebugState, Layer};
use shef_verify::{AppraisalPolicy, Rego};

use super::Run;
use crate::Seen;
use crate::device::Device;

pub(super) const CASES: &[(u32, Run)] = &[
    (86, one_bit),
    (87, unknown_model),
    (88, old_svn),
    (89, no_svn),
    (91, debug),
    (92, flags),
    (93, mode),
    (95, least_svn),
    (99, configuration),
    (101, failing_policy),
    (102, endless_policy),
];

fn shield() -> Device {
    Device::new(Layer::Shield)
}

/// Flips each bit of the known image's digest, in the evidence or in the reference values.
fn one_bit() -> Vec<Seen> {
    let device = shield();
    let mut seen: Vec<Seen> = (0..256)
        .map(|bit| {
            let bytes = device.changed(|claims| {
                claims.shield.as_mut().unwrap().image_digest[bit / 8] ^= 1 << (bit % 8);
            });
            device.ask(format!("bit {bit}"), &bytes)
        })
        .collect();
    let mut other = shield();
    other.verifier.reference.images[0].digest[31] ^= 0x80;
    seen.push(other.ask("in the reference value", &other.evidence));
    seen
}

fn unknown_model() -> Vec<Seen> {
    let mut device = shield();
    let target = device.claims.common.target.clone();
    device.verifier.policy(|policy| policy.targets = [target].into());
    vec![
        device
            .ask("another", &device.changed(|claims| claims.common.target = "another-card".into())),
        device.ask("ours and more", &device.changed(|claims| claims.common.target.push('2'))),
    ]
}

fn old_svn() -> Vec<Seen> {
    let mut device = shield();
    let (kernel, image) =
        (device.claims.common.kernel_svn, device.claims.shield.as_ref().unwrap().image_svn);
    device
        .verifier
        .policy(|policy| (policy.min_kernel_svn, policy.min_image_svn) = (kernel, image));
    assert_eq!(device.ask("", &device.evidence).code, crate::ACCEPTED);
    device
        .verifier
        .policy(|policy| (policy.min_kernel_svn, policy.min_image_svn) = (kernel + 1, image));
    let mut seen = vec![device.ask("kernel", &device.evidence)];
    device
        .verifier
        .policy(|policy| (policy.min_kernel_svn, policy.min_image_svn) = (kernel, image + 1));
    seen.push(device.ask("image", &device.evidence));
    seen
}

fn no_svn() -> Vec<Seen> {
    let device = shield();
    vec![
        device.ask("kernel", &device.with_claim(-75_003, None)),
        device.ask("image of the claims", &device.with_claim(-75_013, None)),
    ]
}

fn debug() -> Vec<Seen> {
    let device = shield();
    let mut on = Device::in_debug();
    on.verifier.anchors =
        vec![on.world.manufacturer.anchor(on.claims.common.root_of_trust, true)].into();
    vec![
        on.ask("0", &on.evidence),
        device.ask("1", &device.changed(|claims| claims.common.debug = DebugState::Disabled)),
        device.ask("absent", &device.with_claim(263, None)),
    ]
}

fn flags() -> Vec<Seen> {
    let device = shield();
    // Bits of OperationalFlags: 0 not configured, 1 not secure, 2 recovery, 3 debug.
    [
        ("not configured", 0),
        ("not secure", 1),
        ("recovery", 2),
        ("debug", 3),
        ("a bit that has no name", 31),
    ]
    .into_iter()
    .map(|(what, bit)| {
        let tcb = cert::TcbInfo { flags: 1 << bit, ..device.tcb.clone() };
        let ak = cert::issue_ak(
            &device.device_id,
            &device.device_certificate,
            &device.ak.public_key(),
            &tcb,
        );
        device.ask(what, &device.with_chain(&[ak, device.device_certificate.der().to_vec()]))
    })
    .collect()
}

fn mode() -> Vec<Seen> {
    let device = Device::in_debug();
    let quiet = device.changed(|claims| claims.common.debug = DebugState::DisabledSinceBoot);
    let good = shield();
    vec![
        device.ask("booted for debug", &device.evidence),
        device.ask("booted for debug, and silent about it", &quiet),
        good.ask("7", &good.with_claim(263, Some(Value::Uint(7)))),
    ]
}

fn least_svn() -> Vec<Seen> {
    let device = shield();
    [(552, "exact, tagged"), (553, "least")]
        .into_iter()
        .map(|(tag, what)| {
            device.ask(
                what,
                &device.with_claim(-75_003, Some(Value::Tag(tag, Box::new(Value::Uint(2))))),
            )
        })
        .collect()
}

fn configuration() -> Vec<Seen> {
    let device = shield();
    let mut other = shield();
    other.verifier.reference.images[0].config_digest[0] ^= 1;
    vec![
        device.ask(
            "in the evidence",
            &device.changed(|claims| claims.shield.as_mut().unwrap().config_digest[31] ^= 1),
        ),
        other.ask("in the reference value", &other.evidence),
    ]
}

fn with_rego(text: &str) -> Device {
    let mut device = shield();
    let rego = Rego::new(text).unwrap_or_else(|error| panic!("{error}"));
    device.verifier.policy =
        AppraisalPolicy::new(device.verifier.policy.typed().clone()).with_rego(rego);
    device
}

fn failing_policy() -> Vec<Seen> {
    let good = with_rego("package shef\nallow := input.kernel_svn >= 2\n");
    assert_eq!(good.ask("", &good.evidence).code, crate::ACCEPTED);
    [
        ("an error", "package shef\nallow := x if { x := 1 / (input.kernel_svn - input.kernel_svn) }\n"),
        ("a built-in function on the wrong type", "package shef\nallow := x if { x := to_number(input.target) > 1 }\n"),
        ("a number", "package shef\nallow := 1\n"),
        ("a text", "package shef\nallow := \"true\"\n"),
        ("a set", "package shef\nallow contains \"everything\"\n"),
        ("two values", "package shef\nallow := true if input.kernel_svn >= 1\nallow := false if input.kernel_svn >= 2\n"),
    ]
    .into_iter()
    .map(|(what, text)| {
        let device = with_rego(text);
        device.ask(what, &device.evidence)
    })
    .collect()
}

/// Counts beyond any limit.
const ENDLESS: &str = "package shef
n := [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
allow if { some a in n; some b in n; some c in n; some d in n; some e in n; some f in n; some g in n; a + b + c + d + e + f + g == -1 }
";

fn endless_policy() -> Vec<Seen> {
    let device = with_rego(ENDLESS);
    vec![device.ask("ten million steps", &device.evidence)]
}
