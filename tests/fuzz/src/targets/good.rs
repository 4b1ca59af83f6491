//! Valid messages of one device and its verifier, as seeds for mutation.

use std::sync::OnceLock;

use shef_proto::close::{CloseRecord, LAST_LEN};
use shef_proto::cose::SigningKey;
use shef_proto::evidence::{Evidence, Layer};
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::load;
use shef_proto::mailbox::Request;
use shef_proto::receipt::{Receipt, genesis};
use shef_verify::bundle::{Bundle, BundledEvidence};
use shef_verify::cmw::{Cmw, Record};
use shef_verify::corim::{self, CorimSigner, Describe};
use shef_verify::ear::{self, Dialect, Issue, Reader};
use shef_verify::jwt::NamedKey;
use shef_verify::{AppraisalPolicy, Policy, ReferenceValues, TrustAnchors};

use shef_fixtures::world::{AUDIENCE, NOW, World, config, entropy, kernel_image};

/// The valid messages, created once.
pub struct Good {
    pub kernel: Vec<u8>,
    pub kernel_nonce: Vec<u8>,
    pub shield: Vec<u8>,
    pub chain: Vec<Vec<u8>>,
    pub key_box: Vec<u8>,
    pub info: Vec<u8>,
    pub secret: Vec<u8>,
    pub image: Vec<u8>,
    pub header: Vec<u8>,
    pub load_key: Vec<u8>,
    pub requests: Vec<Vec<u8>>,
    pub wrappers: Vec<Vec<u8>>,
    pub results: Vec<Vec<u8>>,
    pub corim: Vec<u8>,
    pub unsigned_corim: Vec<u8>,
    /// Signer of the reference values.
    pub corim_signer: CorimSigner,
    pub bundle: Vec<u8>,
    pub kernel_image: Vec<u8>,
    pub close_record: Vec<u8>,
    pub receipt: Vec<u8>,
    pub reference: Vec<Vec<u8>>,
    pub anchors: TrustAnchors,
    pub anchors_toml: Vec<u8>,
    pub values: ReferenceValues,
    pub policy: AppraisalPolicy,
}

/// Signer of all messages that no device signs.
pub fn signer() -> SigningKey {
    SigningKey::derive(b"signs results and reference values")
}

pub fn good_policy() -> Policy {
    Policy::strict("fuzz", &[shef_proto::evidence::RootOfTrust::ShefBoot])
}

const REVOCATIONS: &str =
    "issued = 1\nnext_update = 2000000000\ndevices = []\nserials = [\"01\"]\n";

pub fn good() -> &'static Good {
    static GOOD: OnceLock<Good> = OnceLock::new();
    GOOD.get_or_init(make)
}

fn make() -> Good {
    let mut world = World::new();
    let kernel_nonce = world.nonce();
    let kernel = world.evidence(Layer::Kernel, &kernel_nonce).unwrap();
    let secret = world.vendor.secret(3);
    let verified = world.verified_kernel();
    let sealed = verified
        .release_image_key("vendor", "image", 1, [9; 16], &secret, &mut entropy(3))
        .unwrap();
    let requests =
        shef_proto::mailbox::load_requests(&world.vendor.container.clone(), &sealed.to_cbor());
    let mut requests: Vec<Vec<u8>> = requests.iter().map(Request::encode).collect();
    requests.push(
        Request::KernelEvidence { nonce: kernel_nonce.clone(), audience: AUDIENCE.into() }.encode(),
    );
    requests.push(
        Request::ShieldEvidence { nonce: kernel_nonce.clone(), audience: AUDIENCE.into() }.encode(),
    );
    world.load(&sealed.to_cbor()).unwrap();
    let shield_nonce = world.nonce();
    let shield = world.evidence(Layer::Shield, &shield_nonce).unwrap();
    let (_, public) = derive_key_pair(b"shield");
    let info = load::Info {
        tenant: b"tenant".to_vec(),
        evidence_digest: [1; 32],
        nonce: shield_nonce.clone(),
    }
    .to_bytes()
    .unwrap();
    let epochs = load::first_epochs(&config(), 1);
    let (load_key, _) =
        load::seal_load_key(&config(), &public, &info, &epochs, &mut entropy(8)).unwrap();
    let outcome = world.appraise(Layer::Shield, &shield, &shield_nonce);
    let key = NamedKey { kid: "k".into(), key: signer() };
    let results = Dialect::ALL.map(|dialect| {
        let issue = Issue {
            dialect,
            issuer: "verifier",
            audience: AUDIENCE,
            reader: Reader::Own,
            issued: NOW,
            expires: NOW + 300,
            id: "1",
            nonce: &shield_nonce,
            policy: None,
            developer: "shef",
            build: "1",
            with_ueid: true,
        };
        ear::sign(&outcome, Layer::Shield, &issue, &key).unwrap().into_bytes()
    });
    let describe =
        Describe { id: "values", version: 1, issuer: "builder", not_after: Some(NOW + 10) };
    let unsigned_corim = corim::write(&world.reference, &describe).unwrap();
    let corim = corim::sign(unsigned_corim.clone(), "builder", &signer(), None).unwrap();
    let record_of_close = CloseRecord {
        transcript: [1; 32],
        last: [2; LAST_LEN],
        image_digest: [3; 32],
        config_digest: config().digest(),
        ueid: Evidence::parse(&kernel).unwrap().unverified_claims().common.ueid,
    };
    let receipt = Receipt {
        tenant: "default".into(),
        seq: 1,
        previous: genesis("default"),
        id: [9; 16],
        time: NOW,
        key_id: "image".into(),
        key_version: 1,
        layer: Layer::Kernel,
        ueid: record_of_close.ueid,
        evidence_digest: shef_proto::evidence::digest(&kernel),
        policy_digest: [4; 32],
        recipient_digest: [5; 32],
        to_host: false,
        events: Some(shef_proto::event::NONE),
    };
    let vendor = world.reference.images[0].vendor;
    let corim_signer = CorimSigner::with_key("builder", signer().public_key())
        .for_kernels()
        .for_shells()
        .for_vendor(&vendor);
    let bundle = Bundle {
        created: NOW,
        evidence: Some(BundledEvidence {
            layer: Layer::Kernel,
            evidence: kernel.clone(),
            certificates: Vec::new(),
            nonce: kernel_nonce.clone(),
            audience: AUDIENCE.into(),
            challenged: Some(NOW),
        }),
        anchors: world.anchors[0].to_toml(),
        reference: world.reference.to_toml().unwrap(),
        signers: corim_signer.to_toml(),
        corims: vec![corim.clone()],
        deactivated: [hex::encode([7; 32])].into(),
        policy: good_policy().to_toml().unwrap(),
        rego: Some("package shef\nallow := true\n".into()),
        revocations: Some(REVOCATIONS.into()),
    };
    let record = Cmw::Record(Record::evidence(&kernel));
    let collection = Cmw::Collection {
        kind: Some("tag:example.com,2026:x".into()),
        items: vec![("a".into(), record.clone())],
    };
    let mut chain = Evidence::parse(&kernel).unwrap().x5chain().to_vec();
    chain.push(world.manufacturer.root.der().to_vec());
    Good {
        chain,
        key_box: sealed.to_cbor(),
        info: sealed.info().to_cbor(),
        secret: secret.to_bytes().to_vec(),
        image: world.vendor.container.to_bytes(),
        header: world.vendor.container.header().bytes().to_vec(),
        load_key,
        requests,
        wrappers: vec![
            record.to_cbor(),
            record.to_json().into_bytes(),
            collection.to_cbor(),
            collection.to_json().into_bytes(),
        ],
        results: results.to_vec(),
        corim,
        unsigned_corim,
        corim_signer,
        bundle: bundle.sign(&signer()),
        kernel_image: kernel_image(2),
        close_record: record_of_close.sign(&signer()),
        receipt: receipt.sign(&signer()),
        reference: vec![
            world.reference.to_toml().unwrap().into_bytes(),
            serde_json::to_vec(&world.reference).unwrap(),
        ],
        anchors_toml: world.anchors[0].to_toml().into_bytes(),
        anchors: world.anchors.clone().into(),
        values: world.reference.clone(),
        policy: AppraisalPolicy::new(good_policy()),
        kernel,
        kernel_nonce,
        shield,
    }
}

/// The signed payload of a message of this form.
fn payload(form: &shef_proto::cose::Form, message: &[u8]) -> Vec<u8> {
    shef_proto::cose::Sign1::parse(form, message).unwrap().payload().to_vec()
}

/// Seeds of the targets that have more than one message.
pub mod seeds {
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
    use shef_device::{CtlOp, DeviceError, DeviceInfo, ring};
    use shef_fixtures::world::{FakePlatform, Manufacturer};
    use shef_kernel::{KernelImage, Measurement, Medium, identify};
    use shef_proto::channel::{FaultKind, RefusalKind, RegionStatement, ShieldStatement, State};
    use shef_proto::config::Mode;
    use shef_proto::evidence::{DebugState, RootOfTrust};
    use shef_remote::wire::{DeviceAnswer, DeviceOp, DeviceState, Listed, ToAgent, ToOwner, Token};
    use shef_vfio_user::wire;

    pub fn claims() -> Vec<Vec<u8>> {
        [&good().kernel, &good().shield]
            .map(|evidence| Evidence::parse(evidence).unwrap().unverified_claims().to_cbor())
            .to_vec()
    }

    pub fn answers() -> Vec<Vec<u8>> {
        use shef_proto::mailbox::Answer;
        vec![Answer::Done.encode(), Answer::Evidence(good().kernel.clone()).encode()]
    }

    pub fn close_records() -> Vec<Vec<u8>> {
        vec![good().close_record.clone(), payload(&shef_proto::close::FORM, &good().close_record)]
    }

    pub fn receipts() -> Vec<Vec<u8>> {
        vec![good().receipt.clone(), payload(&shef_proto::receipt::FORM, &good().receipt)]
    }

    pub fn bundle_contents() -> Vec<Vec<u8>> {
        vec![payload(&shef_verify::bundle::FORM, &good().bundle)]
    }

    pub fn configs() -> Vec<Vec<u8>> {
        vec![config().to_cbor()]
    }

    pub fn public_keys() -> Vec<Vec<u8>> {
        vec![derive_key_pair(b"a").1.as_bytes().to_vec()]
    }

    pub fn media_types() -> Vec<Vec<u8>> {
        vec![b"application/eat+cwt; eat_profile=\"tag:shef.dev,2026:kernel#1\"".to_vec()]
    }

    pub fn result_claims() -> Vec<Vec<u8>> {
        let claims = |token: &Vec<u8>| {
            B64.decode(token.split(|byte| *byte == b'.').nth(1).unwrap()).unwrap()
        };
        good().results.iter().map(claims).collect()
    }

    pub fn signers() -> Vec<Vec<u8>> {
        vec![good().corim_signer.to_toml().into_bytes()]
    }

    pub fn policies() -> Vec<Vec<u8>> {
        vec![good_policy().to_toml().unwrap().into_bytes()]
    }

    pub fn rego() -> Vec<Vec<u8>> {
        let rules = "package shef\ndefault allow := false\nallow if { input.kernel_svn >= 2; input.debug != \"enabled\" }\n";
        vec![rules.as_bytes().to_vec(), b"package shef\nallow := true\n".to_vec()]
    }

    pub fn revocations() -> Vec<Vec<u8>> {
        vec![REVOCATIONS.as_bytes().to_vec()]
    }

    pub fn sessions() -> Vec<Vec<u8>> {
        let session = |layer, recipient| shef_verifierd::session::Session {
            layer,
            recipient,
            ..shef_verifierd::session::Session::new(
                shef_verifierd::session::Protocol::Native,
                "default",
                vec![7; 48],
                NOW,
                60,
            )
        };
        let sessions = [
            session(Some(Layer::Kernel), None),
            session(Some(Layer::Shield), Some(derive_key_pair(b"a").1)),
            session(None, None),
        ];
        let fields = |session: &shef_verifierd::session::Session| {
            let token = B64.decode(session.token(&crate::targets::service::kek())).unwrap();
            token[..token.len() - 32].to_vec()
        };
        sessions.iter().map(fields).collect()
    }

    pub fn jwks() -> Vec<Vec<u8>> {
        let key = derive_key_pair(b"a").1.xy();
        let (x, y) = (B64.encode(&key[..32]), B64.encode(&key[32..]));
        vec![serde_json::json!({"kty": "EC", "crv": "P-256", "alg": "ECDH-ES+A256KW", "x": x, "y": y}).to_string().into_bytes()]
    }

    pub fn service_configs() -> Vec<Vec<u8>> {
        let config = "listen = \"127.0.0.1:8443\"\naudience = \"https://verifier.example\"\n[storage]\nurl = \"sqlite:verifierd.db\"\nkek = \"kek\"\n\
            [signing]\nkey = \"signing.key\"\nretired = [\"old.key\"]\n[tls]\ncertificate = \"server.pem\"\ncrls = [\"crl.pem\"]\n\
            [limits]\nrate = 10\nburst = 20\n[[tenant]]\nname = \"default\"\n[[tenant.token]]\nname = \"t\"\nrole = \"audit\"\n\
            sha256 = \"0101010101010101010101010101010101010101010101010101010101010101\"\n";
        vec![config.as_bytes().to_vec()]
    }

    pub fn certificate_lists() -> Vec<Vec<u8>> {
        vec![crate::targets::service::certificate_list()]
    }

    /// Two chunks of 4096 bytes, and their tags.
    pub fn sealed_chunks() -> Vec<Vec<u8>> {
        vec![crate::targets::card::sealed()]
    }

    pub fn tree_nodes() -> Vec<Vec<u8>> {
        vec![crate::targets::card::node().to_vec()]
    }

    /// The expected answer, and one to the previous request.
    pub fn channel_answers() -> Vec<Vec<u8>> {
        crate::targets::card::answers().map(|answer| answer.to_vec()).to_vec()
    }

    pub fn statements() -> Vec<Vec<u8>> {
        let shield = ShieldStatement {
            state: State::Keyed,
            stopped: false,
            fault_kind: FaultKind::Tag,
            fault_region: 1,
            faults: 1,
            refusals: 2,
            refusal_kind: RefusalKind::Range,
            refusal_region: 0,
            fault_chunk: 3,
            fault_version: 4,
            refusal_addr: 5,
            requests: 6,
        };
        let region = RegionStatement {
            mode: Mode::Output,
            chunk_log2: 12,
            frozen: true,
            written: 3,
            epoch: 1,
            chunks: 16,
        };
        vec![shield.to_payload().to_vec(), region.to_payload().to_vec()]
    }

    pub fn descriptors() -> Vec<Vec<u8>> {
        let descriptor = ring::Descriptor {
            op: ring::OP_TO_CARD,
            flags: ring::CHAIN,
            tag: 7,
            host: 0x1000,
            card: 0x2000,
            bytes: 4096,
        };
        vec![descriptor.encode().to_vec()]
    }

    pub fn agent_requests() -> Vec<Vec<u8>> {
        let ops = vec![
            DeviceOp::Ctl(vec![
                CtlOp::Write { offset: 8, value: 1 },
                CtlOp::Read { offset: 4 },
                CtlOp::Poll { offset: 4, clear: 1, some: 2, polls: 9 },
            ]),
            DeviceOp::Kernel(vec![1, 2, 3]),
            DeviceOp::MemRead { addr: 0x1000, len: 64 },
            DeviceOp::MemWrite { addr: 0x1000, data: vec![5; 64] },
            DeviceOp::WaitHint,
            DeviceOp::WaitInterrupt,
            DeviceOp::Reset,
            DeviceOp::Close,
        ];
        let requests = ops.into_iter().enumerate().map(|(at, op)| ToAgent::Request {
            id: at as u64 + 1,
            acked: at as u64,
            op,
        });
        let open = |resume| ToAgent::Open { device: "card0".into(), resume };
        let first = [
            ToAgent::Hello { min: 1, max: 1, program: "shef 0.1.0".into() },
            ToAgent::List,
            open(None),
            open(Some((Token([7; 32]), 3))),
        ];
        first.into_iter().chain(requests).map(|message| message.encode()).collect()
    }

    /// Boot media: whole words, and pieces that need padding.
    pub fn media() -> Vec<Vec<u8>> {
        let signature = core::array::from_fn(|i| i as u8);
        vec![
            Medium::build(&good().kernel_image, &signature, &good().chain[1]),
            Medium::build(b"image", &signature, b"certificate"),
        ]
    }

    pub fn identities() -> Vec<Vec<u8>> {
        let manufacturer = Manufacturer::new(1);
        let mut platform =
            FakePlatform::new(&manufacturer, RootOfTrust::ShefBoot, DebugState::DisabledSinceBoot);
        let measured = Measurement {
            digest: KernelImage::digest(&good().kernel_image),
            svn: 2,
            version: "0.1.0",
        };
        vec![identify(&mut platform, &measured).expect("an identity").to_bytes().to_vec()]
    }

    pub fn agent_answers() -> Vec<Vec<u8>> {
        let answers = [
            DeviceAnswer::Done,
            DeviceAnswer::Flag(true),
            DeviceAnswer::Values(vec![1, 2]),
            DeviceAnswer::Bytes(vec![3; 40]),
        ];
        let done = answers.into_iter().enumerate().map(|(at, answer)| ToOwner::Done {
            id: at as u64,
            cycles: Some(9),
            answer,
        });
        let listed = Listed {
            name: "card0".into(),
            description: "a card".into(),
            state: DeviceState::InUse,
            owner: Some("alice".into()),
            moved: 7,
        };
        let first = [
            ToOwner::Welcome {
                version: 1,
                program: "shef-agent 0.1.0".into(),
                owner: "alice".into(),
            },
            ToOwner::Devices(vec![listed]),
            ToOwner::Opened {
                token: Token([7; 32]),
                last: 3,
                info: DeviceInfo::new("tls://h:1/card0", "a card", "simulated", 1 << 30, true),
            },
            ToOwner::Progress { id: 0, text: "opening".into() },
            ToOwner::Failed {
                id: 4,
                cycles: None,
                error: DeviceError::UnknownUri { uri: "x:".into() },
            },
            ToOwner::Refused { code: "SHEF-AGT-005".into(), message: "no".into() },
        ];
        first.into_iter().chain(done).map(|message| message.encode()).collect()
    }

    /// Command (two bytes, little-endian) and body.
    pub fn vfio_user_requests() -> Vec<Vec<u8>> {
        use wire::Request;
        let requests = [
            Request::Version { major: 0, minor: 1, capabilities: wire::Capabilities::default() },
            Request::DmaMap { flags: 3, offset: 0, address: 0x1000, size: 0x1000 },
            Request::DmaUnmap { flags: 0, address: 0x1000, size: 0x1000 },
            Request::GetInfo,
            Request::GetRegionInfo { argsz: 32, index: 2 },
            Request::GetIrqInfo { index: 2 },
            Request::SetIrqs { flags: 0x22, index: 2, start: 0, count: 2, data: &[1, 0] },
            Request::RegionRead { offset: 8, region: 2, count: 4 },
            Request::RegionWrite { offset: 8, region: 2, data: &[1, 2, 3, 4] },
            Request::DmaRead { address: 0x1000, count: 64 },
            Request::DmaWrite { address: 0x1000, data: &[9; 16] },
            Request::Reset,
        ];
        let joined =
            |(command, body): (u16, Vec<u8>)| [command.to_le_bytes().to_vec(), body].concat();
        requests.iter().map(|request| joined(request.encode())).collect()
    }

    pub fn vfio_user_answers() -> Vec<Vec<u8>> {
        let region = |areas| wire::RegionInfo { flags: 3, size: 0x10000, offset: 0, areas };
        vec![
            region(vec![]).encode(0, 32),
            region(vec![(0, 0x1000), (0x8000, 0x1000)]).encode(2, 256),
        ]
    }

    pub fn shield_tomls() -> Vec<Vec<u8>> {
        vec![
            include_bytes!("../../../../examples/vecadd/shield.toml").to_vec(),
            include_bytes!("../../../../shell-rtl/accel/digits/shield.toml").to_vec(),
            include_bytes!("../../../../sim/tb/tests/shield.toml").to_vec(),
        ]
    }

    pub fn uris() -> Vec<Vec<u8>> {
        let uris = [
            "sim:model",
            "sim:rtl?project=/a/b",
            "vfio-user:/run/card.sock",
            "pci:0000:65:00.0?iommu=type1",
            "tls://host.example:7000/card0",
            "tls://[::1]:7000/card0",
        ];
        uris.map(|uri| uri.as_bytes().to_vec()).to_vec()
    }
}
