//! Conceptual message wrappers around evidence.

use shef_proto::cbor::Value;
use shef_proto::evidence::Layer;
use shef_verify::cmw::{Cmw, Record, Type, indicator};

use super::Run;
use crate::device::Device;
use crate::{ACCEPTED, Seen};

pub(super) const CASES: &[(u32, Run)] = &[(7, depth), (8, indicators), (9, types)];

/// Outcome of a wrapper: the appraisal of its evidence, or the refusal of the wrapper.
fn ask(device: &Device, variant: &str, bytes: &[u8]) -> Seen {
    match Cmw::parse(bytes).and_then(|cmw| cmw.evidence().map(<[u8]>::to_vec)) {
        Ok(evidence) => device.ask(variant, &evidence),
        Err(error) => Seen::new(variant, error.code()),
    }
}

fn good() -> Device {
    let device = Device::new(Layer::Shield);
    let record = Cmw::Record(Record::evidence(&device.evidence));
    assert_eq!(ask(&device, "", &record.to_cbor()).code, ACCEPTED);
    assert_eq!(ask(&device, "", record.to_json().as_bytes()).code, ACCEPTED);
    device
}

fn depth() -> Vec<Seen> {
    let device = good();
    let wrap = |levels: usize| {
        let record = Cmw::Record(Record::evidence(&device.evidence));
        (0..levels).fold(record, |inner, _| Cmw::Collection {
            kind: None,
            items: vec![("part".into(), inner)],
        })
    };
    assert_eq!(ask(&device, "", &wrap(2).to_cbor()).code, ACCEPTED);
    [3, 4]
        .into_iter()
        .flat_map(|levels| {
            let cmw = wrap(levels);
            [
                ask(&device, &format!("{levels} in CBOR"), &cmw.to_cbor()),
                ask(&device, &format!("{levels} in JSON"), cmw.to_json().as_bytes()),
            ]
        })
        .collect()
}

fn record(device: &Device, kind: Value, indicator: Option<u64>) -> Vec<u8> {
    let mut parts = vec![kind, device.evidence.as_slice().into()];
    parts.extend(indicator.map(Value::Uint));
    Value::Array(parts).encode()
}

fn indicators() -> Vec<Seen> {
    let device = good();
    let with = |bits: u8| record(&device, Value::Uint(263), Some(u64::from(bits)));
    let json =
        String::from_utf8(Cmw::Record(Record::evidence(&device.evidence)).to_json().into_bytes())
            .unwrap();
    let zero = json.replace(&format!(",{}]", indicator::EVIDENCE), ",0]");
    assert_ne!(zero, json);
    vec![
        ask(&device, "0", &with(0)),
        ask(&device, "0 in JSON", zero.as_bytes()),
        ask(&device, "unknown bits", &with(0x80 | indicator::EVIDENCE)),
        ask(&device, "endorsements", &with(indicator::ENDORSEMENTS)),
        ask(&device, "reference values", &with(indicator::REFERENCE_VALUES)),
        ask(&device, "results", &with(indicator::RESULTS)),
        ask(
            &device,
            "all but evidence",
            &with(
                indicator::RESULTS
                    | indicator::ENDORSEMENTS
                    | indicator::REFERENCE_VALUES
                    | indicator::POLICY,
            ),
        ),
    ]
}

fn types() -> Vec<Seen> {
    let device = good();
    let of = |kind: Type, value: &[u8]| {
        Cmw::Record(Record { kind, value: value.to_vec(), indicator: None }).to_cbor()
    };
    let media = |text: &str| Type::Media(text.into());
    let corim = Value::Tag(501, Box::new(Value::Map(vec![]))).encode();
    vec![
        ask(&device, "a result's type", &of(Type::Format(264), &device.evidence)),
        ask(&device, "a CoRIM's type", &of(media("application/rim+cose"), &device.evidence)),
        ask(&device, "JSON's type", &of(media("application/json"), &device.evidence)),
        ask(&device, "type of evidence, another content", &of(Type::Format(263), &corim)),
    ]
}
