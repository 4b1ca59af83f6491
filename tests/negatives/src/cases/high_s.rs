//! `n - s` for s, in every signed format: refused if the format is the project's. Third-party
//! signatures may have either s; the signed object is identified without its signature.

use shef_kernel::{KernelImage, Measurement, SIGNATURE_FILE_LEN, admit};
use shef_proto::cert::{self, Certificate, validate_signer};
use shef_proto::close::{CloseRecord, LAST_LEN};
use shef_proto::cose::{self, SigningKey};
use shef_proto::evidence::{Evidence, Layer};
use shef_proto::image::Header;
use shef_proto::receipt::{Audit, Forgotten, Head, Receipt, genesis};
use shef_verify::bundle::Bundle;
use shef_verify::cmw::{Cmw, Record};
use shef_verify::crypto;

use super::Run;
use super::corims::corim_with_other_s;
use super::results::result_with_other_s;
use crate::Seen;
use crate::device::Device;
use sha2::{Digest, Sha256};
use shef_fixtures::der::{certificate_with_other_s, other_s};
use shef_fixtures::world::{NOW, kernel_image};

pub(super) const CASES: &[(u32, Run)] = &[(35, high_s)];

/// Reads the good bytes, and the same bytes with the other s.
fn read<T, E>(
    variant: &str,
    good: &[u8],
    read: impl Fn(&[u8]) -> Result<T, E>,
    code: impl FnOnce(&E) -> &str,
) -> Seen {
    assert!(read(good).is_ok(), "{variant}: what is signed is read");
    Seen::of(variant, &read(&other_s(good)), code)
}

fn high_s() -> Vec<Seen> {
    let mut seen = vec![result_with_other_s("result"), corim_with_other_s("CoRIM")];
    for (variant, layer) in [("kernel evidence", Layer::Kernel), ("Shield evidence", Layer::Shield)]
    {
        let device = Device::new(layer);
        let evidence = other_s(&device.signed(&device.claims.to_cbor()));
        seen.push(device.ask(variant, &evidence));
        let wrapper = Cmw::Record(Record::evidence(&evidence));
        for (form, bytes) in [("CBOR", wrapper.to_cbor()), ("JSON", wrapper.to_json().into_bytes())]
        {
            let inside =
                Cmw::parse(&bytes).and_then(|cmw| cmw.evidence().map(<[u8]>::to_vec)).unwrap();
            seen.push(device.ask(format!("{variant} in a CMW, {form}"), &inside));
        }
    }
    seen.extend(certificates());
    let key = SigningKey::derive(b"signs everything else");
    let keys = [key.public_key()];
    seen.extend(of_device(&key));
    seen.extend(of_service(&key));
    let bundle = Bundle { created: NOW, ..Bundle::default() }.sign(&key);
    for (variant, verify) in
        [("bundle", crypto::portable as cose::VerifyFn), ("bundle, by aws-lc", crypto::aws_lc)]
    {
        seen.push(read(
            variant,
            &bundle,
            |bytes| Bundle::open(bytes, &keys[0], verify),
            |error| error.code(),
        ));
    }
    seen
}

fn certificates() -> Vec<Seen> {
    let device = Device::new(Layer::Shield);
    let [ak, id] = [&device.ak_certificate, &device.device_certificate].map(Certificate::der);
    let authority = &device.world.manufacturer;
    let leaf = cert::issue_signer(
        &authority.key,
        &authority.root,
        &device.ak.public_key(),
        "signer",
        NOW - 1,
        NOW + 1,
    );
    let leaf = Certificate::parse(&certificate_with_other_s(&leaf)).unwrap();
    vec![
        device.ask(
            "AK certificate",
            &device.with_chain(&[certificate_with_other_s(ak), id.to_vec()]),
        ),
        device.ask(
            "DeviceID certificate",
            &device.with_chain(&[ak.to_vec(), certificate_with_other_s(id)]),
        ),
        Seen::of(
            "certificate of a CoRIM signer",
            &validate_signer(&leaf, &authority.root, NOW, cose::verify),
            |error| error.code(),
        ),
    ]
}

fn of_device(key: &SigningKey) -> Vec<Seen> {
    let device = Device::new(Layer::Kernel);
    let vendor = &device.world.vendor;
    let header = vendor.container.header().bytes();
    let public = vendor.key.public_key();
    let record = CloseRecord {
        transcript: [1; 32],
        last: [2; LAST_LEN],
        image_digest: [3; 32],
        config_digest: [4; 32],
        ueid: Evidence::parse(&device.evidence).unwrap().unverified_claims().common.ueid,
    };
    let image = kernel_image(2);
    let kernel = Measurement { digest: KernelImage::digest(&image), svn: 2, version: "0.1.0" };
    let xy = key.public_key().xy();
    let boots = |rs: &[u8]| {
        let file: [u8; SIGNATURE_FILE_LEN] = [rs, &xy].concat().try_into().unwrap();
        admit(&kernel, &file, &Sha256::digest(xy).into(), 2)
    };
    vec![
        read(
            "image header",
            header,
            |bytes| Header::open(bytes.to_vec(), &public),
            |error| error.code(),
        ),
        read(
            "image header, parsed before",
            header,
            |bytes| Header::parse(bytes)?.verify(&public),
            |error| error.code(),
        ),
        read(
            "close record",
            &record.sign(key),
            |bytes| CloseRecord::verify(bytes, &key.public_key()),
            |error| error.code(),
        ),
        read("kernel image on the boot medium", &key.sign(&image), boots, |error| error.code()),
    ]
}

fn of_service(key: &SigningKey) -> Vec<Seen> {
    let keys = [SigningKey::derive(b"retired").public_key(), key.public_key()];
    let receipt = Receipt {
        tenant: "default".into(),
        seq: 1,
        previous: genesis("default"),
        id: [9; 16],
        time: NOW,
        key_id: "image".into(),
        key_version: 1,
        layer: Layer::Kernel,
        ueid: [1; 33],
        evidence_digest: [3; 32],
        policy_digest: [4; 32],
        recipient_digest: [5; 32],
        to_host: false,
        events: None,
    };
    let receipt = receipt.sign(key);
    let head = Head { seq: 1, digest: [7; 32] };
    let forgotten = Forgotten { tenant: "default".into(), head, time: NOW }.sign(key);
    vec![
        read("receipt", &receipt, |bytes| Receipt::verify(bytes, &keys), |error| error.code()),
        read(
            "receipt stored in its chain",
            &receipt,
            |bytes| Audit::new("default", &keys, None).push(bytes),
            |error| error.code(),
        ),
        read(
            "statement of forgotten receipts",
            &forgotten,
            |bytes| Forgotten::verify(bytes, &keys, "default", head),
            |error| error.code(),
        ),
    ]
}
