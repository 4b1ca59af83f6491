//! Evidence that does not answer this challenge.

use shef_proto::cbor::Value;
use shef_proto::evidence::Layer;

use super::Run;
use crate::Seen;
use crate::device::Device;

pub(super) const CASES: &[(u32, Run)] = &[(40, new_session), (45, form)];

fn new_session() -> Vec<Seen> {
    [Layer::Kernel, Layer::Shield]
        .into_iter()
        .map(|layer| {
            let mut device = Device::new(layer);
            device.verifier.nonce = vec![0x77; 48];
            device.ask(layer.name(), &device.evidence)
        })
        .collect()
}

fn form() -> Vec<Seen> {
    let mut device = Device::new(Layer::Shield);
    let nonce = device.verifier.nonce.clone();
    let with = |value: Value| device.with_claim(10, Some(value));
    let one = Value::from(nonce.as_slice());
    let mut seen = vec![
        device.ask("31 bytes", &with((&nonce[..31]).into())),
        device.ask("65 bytes", &with((&[7; 65]).into())),
        device.ask("empty", &with(Value::Bytes(Vec::new()))),
        device.ask("list of one", &with(Value::Array(vec![one.clone()]))),
        device.ask("list with the right one", &with(Value::Array(vec![(&[7; 48]).into(), one]))),
        device.ask("text", &with(hex::encode(&nonce).as_str().into())),
        device.ask("prefix", &with((&nonce[..32]).into())),
    ];
    // The reverse: the verifier expects a prefix of the nonce that the device signed.
    device.verifier.nonce.truncate(32);
    seen.push(device.ask("prefix", &device.evidence));
    seen
}
