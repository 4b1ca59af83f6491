//! Evidence for another recipient, or bound to another key.

use shef_proto::cbor::Value;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::release::{Expected, KeyBox};

use super::Run;
use crate::Seen;
use crate::device::Device;
use shef_fixtures::world::entropy;

pub(super) const CASES: &[(u32, Run)] =
    &[(50, other_audience), (51, no_audience), (56, swapped_key), (61, other_layer)];

fn other_audience() -> Vec<Seen> {
    let mut device = Device::new(Layer::Shield);
    let long = format!("{}.evil.example", device.verifier.audience);
    let with = |text: &str| device.with_claim(3, Some(text.into()));
    let mut seen = vec![
        device.ask("another", &with("somebody.example")),
        device.ask("ours as a prefix", &with(&long)),
        device.ask("upper case", &with(&device.verifier.audience.to_uppercase())),
    ];
    device.verifier.audience = "somebody.example".into();
    seen.push(device.ask("a verifier of another name", &device.evidence));
    device.verifier.audience = String::new();
    seen.push(device.ask("a verifier without a name", &device.evidence));
    seen
}

fn no_audience() -> Vec<Seen> {
    [Layer::Kernel, Layer::Shield]
        .into_iter()
        .map(|layer| {
            let device = Device::new(layer);
            device.ask(layer.name(), &device.with_claim(3, None))
        })
        .collect()
}

/// The host swaps the key that the evidence certifies, or the key that the box is sealed to.
fn swapped_key() -> Vec<Seen> {
    let mut seen = Vec::new();
    for layer in [Layer::Kernel, Layer::Shield] {
        let device = Device::new(layer);
        let (old, new) = (device.claims.common.key.xy(), derive_key_pair(b"the host").1.xy());
        let mut bytes = device.evidence.clone();
        for half in [0..32, 32..64] {
            let at = bytes.windows(32).position(|window| window == &old[half.clone()]).unwrap();
            bytes[at..at + 32].copy_from_slice(&new[half]);
        }
        seen.push(device.ask(layer.name(), &bytes));
    }
    let mut device = Device::new(Layer::Kernel);
    let verified = device.world.verified_kernel();
    let secret = device.world.vendor.secret(3);
    let good = verified
        .release_image_key("vendor", "image", 1, [9; 16], &secret, &mut entropy(3))
        .unwrap();
    let (host, public) = derive_key_pair(b"the host");
    let mut info = good.info().clone();
    let expected = Expected {
        layer: Layer::Kernel,
        evidence_digest: &info.evidence_digest.clone(),
        nonce: &info.nonce.clone(),
        key: None,
    };
    seen.push(Seen::of("box for the swapped key", &good.open(&host, &expected), |error| {
        error.code()
    }));
    // The host sends the kernel a box sealed to the host's own key: the box does not name the
    // kernel's key.
    info.recipient = public;
    let forged = KeyBox::seal(&info, &secret.to_bytes(), &mut entropy(4)).unwrap().to_cbor();
    let answer = device.world.load(&forged).unwrap_err();
    assert_eq!(answer.kernel_code(), Some("SHEF-PRO-050"), "{answer}");
    seen
}

fn other_layer() -> Vec<Seen> {
    let mut kernel = Device::new(Layer::Kernel);
    kernel.verifier.layer = Layer::Shield;
    let mut shield = Device::new(Layer::Shield);
    shield.verifier.layer = Layer::Kernel;
    let renamed = {
        // The Shield's claims under the kernel's profile are not valid kernel claims: they do not
        // even parse.
        let device = Device::new(Layer::Shield);
        device.with_claim(265, Some(Value::from(Layer::Kernel.profile())))
    };
    vec![
        kernel.ask("kernel evidence for a data key", &kernel.evidence),
        shield.ask("Shield evidence for an image key", &shield.evidence),
        shield.ask("under the other profile's name", &renamed),
    ]
}
