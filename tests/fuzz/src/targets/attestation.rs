//! Attestation formats: messages of devices, manufacturers, vendors, verifiers and auditors.

use std::cell::RefCell;
use std::collections::BTreeSet;

use shef_kernel::{Identity, KernelImage, Medium, SIGNATURE_FILE_LEN};
use shef_proto::cbor::{self, Limits, Value};
use shef_proto::cert::Certificate;
use shef_proto::close::{self, CloseRecord};
use shef_proto::config::Config;
use shef_proto::cose;
use shef_proto::evidence::{Claims, DebugState, Evidence, Layer, RootOfTrust};
use shef_proto::hpke_suite::{PublicKey, derive_key_pair};
use shef_proto::image::{Container, Header};
use shef_proto::load;
use shef_proto::mailbox::{Answer, Request};
use shef_proto::receipt::{self, Audit, Receipt};
use shef_proto::release::{ImageSecret, KeyBox, ReleaseInfo};
use shef_verify::bundle::{self, Bundle};
use shef_verify::cmw::{Cmw, MediaType};
use shef_verify::corim::{self, CorimSigner, Trust};
use shef_verify::ear::{self, Expect};
use shef_verify::jwt::{self, JwtKey, NamedKey};
use shef_verify::rego::Unconfined;
use shef_verify::{
    AppraisalPolicy, CheckId, Policy, ReferenceValues, Rego, Revocations, TrustAnchor, appraise,
    crypto,
};

use super::good::{good, good_policy, signer};
use super::{ACCEPTED, outcome, utf8};
use shef_fixtures::world::{AUDIENCE, NOW, World, config, description, entropy};

pub fn run_cbor(bytes: &[u8]) -> String {
    outcome(cbor::parse(bytes, &Limits::bytes(8192)), |value: Value| {
        assert_eq!(value.encode(), bytes, "one encoding");
    })
}

pub fn run_certificate(bytes: &[u8]) -> String {
    outcome(Certificate::parse(bytes), |certificate| {
        assert_eq!(certificate.der(), bytes);
        let root = certificate.check_root().is_ok();
        assert!(!root || bytes == good().chain[2], "a root that nobody signed");
    })
}

pub fn run_evidence(bytes: &[u8]) -> String {
    outcome(Evidence::parse(bytes), |evidence| {
        assert!(!evidence.describe().is_empty());
        let claims = evidence.unverified_claims();
        assert_eq!(Claims::from_cbor(&claims.to_cbor()).as_ref(), Ok(claims));
    })
}

pub fn run_claims(bytes: &[u8]) -> String {
    outcome(Claims::from_cbor(bytes), |claims| assert_eq!(claims.to_cbor(), bytes, "one encoding"))
}

pub fn run_appraisal(bytes: &[u8]) -> String {
    let good = good();
    let request = shef_verify::AppraisalRequest::new(
        bytes,
        &good.anchors,
        &good.values,
        &good.policy,
        Layer::Kernel,
        &good.kernel_nonce,
        AUDIENCE,
        NOW,
    );
    let appraisal = appraise(&request).appraisal;
    assert!(!appraisal.accepted() || bytes == good.kernel, "only what the device signed");
    match appraisal.first_failure() {
        None => ACCEPTED.into(),
        Some(check) => {
            // The actual value may contain bytes of the input; the exact code is at its end.
            let found = check.actual.to_string();
            format!("{} {}", check.code, found.rsplit_once("(SHEF-").map_or("", |(_, code)| code))
        }
    }
}

pub fn run_key_box(bytes: &[u8]) -> String {
    outcome(KeyBox::from_cbor(bytes), |sealed| assert_eq!(sealed.to_cbor(), bytes))
}

pub fn run_release_info(bytes: &[u8]) -> String {
    outcome(ReleaseInfo::from_cbor(bytes), |info| assert_eq!(info.to_cbor(), bytes))
}

pub fn run_image_secret(bytes: &[u8]) -> String {
    outcome(ImageSecret::from_bytes(bytes), |secret| assert_eq!(&secret.to_bytes()[..], bytes))
}

pub fn run_image(bytes: &[u8]) -> String {
    let header = outcome(Header::parse(bytes), |header| assert_eq!(header.bytes(), bytes));
    let container =
        outcome(Container::parse(bytes), |container| assert_eq!(container.to_bytes(), bytes));
    format!("{header}; {container}")
}

pub fn run_load_key(bytes: &[u8]) -> String {
    let (private, _) = derive_key_pair(b"shield");
    let message =
        outcome(load::Message::from_bytes(bytes), |message| assert_eq!(message.to_bytes(), bytes));
    let opened = outcome(load::open_load_key(&config(), &private, bytes), |_| {
        assert_eq!(bytes, good().load_key);
    });
    format!("{message}; {opened}")
}

pub fn run_request(bytes: &[u8]) -> String {
    outcome(Request::decode(bytes), |request| assert_eq!(request.encode(), bytes))
}

pub fn run_answer(bytes: &[u8]) -> String {
    outcome(Answer::decode(bytes), |answer| assert_eq!(answer.encode(), bytes))
}

/// The kernel's mailbox: it answers any input with a well-formed message.
pub fn run_kernel(bytes: &[u8]) -> String {
    thread_local! {
        /// A different kernel from that of the valid messages.
        static WORLD: RefCell<World> = RefCell::new(World::with(
            RootOfTrust::ShefBoot,
            DebugState::DisabledSinceBoot,
            &description(3),
            |platform| platform.entropy = entropy(1000),
        ));
    }
    WORLD.with_borrow_mut(|world| {
        let answer = Answer::decode(&world.kernel.handle(bytes))
            .expect("the kernel answers in the form of the mailbox");
        assert!(
            world.kernel.platform_mut().loaded.is_none(),
            "nothing is loaded without a key box for this kernel"
        );
        outcome(answer.into_result(), |_| {})
    })
}

pub fn run_kernel_image(bytes: &[u8]) -> String {
    outcome(KernelImage::parse(bytes), |image| assert_eq!(image.to_bytes(), bytes))
}

/// A boot medium: each word is read once, within the medium's size, and accepted pieces are
/// contiguous.
pub fn run_medium(bytes: &[u8]) -> String {
    const IMAGE_MAX: usize = 64 * 1024;
    let size = bytes.len();
    let read = RefCell::new(BTreeSet::new());
    let word = |at: usize| {
        assert!(
            at.is_multiple_of(4) && read.borrow_mut().insert(at),
            "the word at {at} is read twice, or across two"
        );
        // No window is smaller than the head, which is read whatever the size.
        assert!(at + 4 <= size.max(Medium::IMAGE), "the word at {at} is outside");
        core::array::from_fn(|i| bytes.get(at + i).copied().unwrap_or(0))
    };
    outcome(Medium::read(size, IMAGE_MAX, word), |medium| {
        assert!(medium.image_len <= IMAGE_MAX);
        let piece = |at: usize, len: usize| bytes.get(at..at + len).expect("inside of the medium");
        let (image, certificate) = (
            piece(Medium::IMAGE, medium.image_len),
            piece(medium.certificate(), medium.certificate_len),
        );
        let signature =
            piece(medium.signature(), SIGNATURE_FILE_LEN).try_into().expect("128 bytes");
        let built = Medium::build(image, signature, certificate);
        assert!(
            built.len() <= size && built[..Medium::IMAGE] == bytes[..Medium::IMAGE],
            "one layout"
        );
    })
}

pub fn run_identity(bytes: &[u8]) -> String {
    outcome(Identity::from_bytes(bytes), |identity| {
        assert_eq!(&identity.to_bytes()[..], bytes, "one encoding");
    })
}

/// Runs the input as a signed message and as the content of one.
pub fn run_close_record(bytes: &[u8]) -> String {
    let key = signer();
    let message = outcome(CloseRecord::verify(bytes, &key.public_key()), |_| {
        assert_eq!(bytes, good().close_record, "signed by nobody");
    });
    let signed = cose::sign(&close::FORM, &key, bytes, &[]);
    let content = outcome(CloseRecord::verify(&signed, &key.public_key()), |record| {
        assert_eq!(record.sign(&key), signed);
    });
    format!("{message}; {content}")
}

/// As [`run_close_record`].
pub fn run_receipt(bytes: &[u8]) -> String {
    let (key, keys) = (signer(), [signer().public_key()]);
    let message = outcome(Receipt::verify(bytes, &keys), |_| {
        assert_eq!(bytes, good().receipt, "signed by nobody");
    });
    let signed = cose::sign(&receipt::FORM, &key, bytes, &[]);
    let content =
        outcome(Receipt::verify(&signed, &keys), |receipt| assert_eq!(receipt.sign(&key), signed));
    let mut audit = Audit::new("default", &keys, None);
    let audited = outcome(audit.push(&signed), |receipt| {
        assert_eq!((receipt.seq, receipt.tenant.as_str()), (1, "default"));
    });
    format!("{message}; {content}; {audited}")
}

pub fn run_config(bytes: &[u8]) -> String {
    outcome(Config::from_cbor(bytes), |config| assert_eq!(config.to_cbor(), bytes))
}

pub fn run_public_key(bytes: &[u8]) -> String {
    outcome(PublicKey::from_bytes(bytes), |key| assert_eq!(key.as_bytes().as_slice(), bytes))
}

pub fn run_cmw(bytes: &[u8]) -> String {
    outcome(Cmw::parse(bytes), |cmw| {
        assert_eq!(Cmw::from_cbor(&cmw.to_cbor()).as_ref(), Ok(&cmw));
        assert_eq!(Cmw::from_json(cmw.to_json().as_bytes()).as_ref(), Ok(&cmw));
        drop(cmw.evidence().map(<[u8]>::to_vec));
    })
}

pub fn run_media_type(bytes: &[u8]) -> String {
    utf8(bytes, |text| match MediaType::parse(text) {
        Some(media) => {
            format!("{} profile", if media.eat_profile.is_some() { "with" } else { "without" })
        }
        None => "no media type".into(),
    })
}

fn verify_result(text: &str, holds: impl FnOnce(ear::Ear)) -> String {
    let known = [JwtKey { kid: "k".into(), key: signer().public_key() }];
    let expect = Expect {
        issuer: None,
        audience: AUDIENCE,
        nonce: None,
        layer: Layer::Shield,
        policy: None,
        now: NOW + 1,
        leeway: 0,
    };
    outcome(ear::verify(text, &known, &expect, crypto::portable), holds)
}

pub fn run_result(bytes: &[u8]) -> String {
    utf8(bytes, |text| {
        verify_result(text, |_| {
            // The signature covers header and claims; only the encoding of the signature could
            // differ.
            let signed =
                |token: &[u8]| token.rsplitn(2, |byte| *byte == b'.').nth(1).map(<[u8]>::to_vec);
            assert!(
                good().results.iter().any(|token| signed(token) == signed(bytes)),
                "a result that nobody signed"
            );
        })
    })
}

/// Claims signed by a verifier.
pub fn run_result_claims(bytes: &[u8]) -> String {
    let key = NamedKey { kid: "k".into(), key: signer() };
    match jwt::sign(bytes, &key) {
        Ok(token) => {
            verify_result(&token, |ear| assert!(ear.issued <= NOW + 1 && ear.expires > NOW))
        }
        Err(error) => error.to_string(),
    }
}

fn read_corim(bytes: &[u8], signers: &[CorimSigner], holds: impl FnOnce(corim::Corim)) -> String {
    let deactivated = BTreeSet::new();
    outcome(
        corim::read(
            bytes,
            &Trust {
                signers,
                deactivated: &deactivated,
                revocations: None,
                now: NOW,
                verify: crypto::portable,
            },
        ),
        holds,
    )
}

pub fn run_corim(bytes: &[u8]) -> String {
    read_corim(bytes, std::slice::from_ref(&good().corim_signer), |corim| {
        assert_eq!(corim.reference, good().values, "only what was signed");
    })
}

/// Reference values signed by their builder.
pub fn run_corim_content(bytes: &[u8]) -> String {
    match corim::sign(bytes.to_vec(), "builder", &signer(), None) {
        // Only entries under the signer's authority.
        Ok(signed) => read_corim(&signed, std::slice::from_ref(&good().corim_signer), |corim| {
            let vendors = corim.reference.images.iter().map(|image| image.vendor);
            assert!(vendors.into_iter().all(|vendor| vendor == good().values.images[0].vendor));
        }),
        Err(error) => error.to_string(),
    }
}

pub fn run_signers(bytes: &[u8]) -> String {
    utf8(bytes, |text| {
        outcome(CorimSigner::list_from_toml(text), |list| {
            assert!(
                list.iter().all(|signer| CorimSigner::list_from_toml(&signer.to_toml()).is_ok())
            );
        })
    })
}

pub fn run_policy(bytes: &[u8]) -> String {
    utf8(bytes, |text| {
        outcome(Policy::from_toml(text), |policy| {
            assert!(!policy.root_of_trust.is_empty());
            if let Ok(again) = policy.to_toml() {
                assert_eq!(Policy::from_toml(&again).as_ref(), Ok(&policy));
            }
        })
    })
}

/// A policy that parses is evaluated on good evidence that passes all other checks.
pub fn run_rego(bytes: &[u8]) -> String {
    utf8(bytes, |text| {
        let policy = Rego::new(text).and_then(|rego| rego.compile().map(|_| rego));
        outcome(policy.map_err(|error| error.code()), |rego| {
            assert!(rego.id().starts_with("sha256:"));
            let (good, policy) = (good(), AppraisalPolicy::new(good_policy()).with_rego(rego));
            let request = shef_verify::AppraisalRequest::new(
                &good.kernel,
                &good.anchors,
                &good.values,
                &policy,
                Layer::Kernel,
                &good.kernel_nonce,
                AUDIENCE,
                NOW,
            );
            let appraisal =
                appraise(&shef_verify::AppraisalRequest { rego: Some(&Unconfined), ..request })
                    .appraisal;
            assert_eq!(
                appraisal.accepted(),
                appraisal.check(CheckId::Rego).is_some_and(|check| check.passed)
            );
        })
    })
}

pub fn run_reference(bytes: &[u8]) -> String {
    utf8(bytes, |text| {
        let toml =
            outcome(ReferenceValues::from_toml(text).map_err(|error| error.code()), |values| {
                if let Ok(again) = values.to_toml() {
                    assert_eq!(ReferenceValues::from_toml(&again).as_ref(), Ok(&values));
                }
            });
        let json = outcome(ReferenceValues::from_json(text).map_err(|error| error.code()), |_| {});
        format!("{toml}; {json}")
    })
}

pub fn run_anchors(bytes: &[u8]) -> String {
    utf8(bytes, |text| {
        outcome(TrustAnchor::list_from_toml(text).map_err(|error| error.code()), |list| {
            assert!(list.iter().all(|anchor| anchor.certificate().check_root().is_ok()));
        })
    })
}

pub fn run_revocations(bytes: &[u8]) -> String {
    utf8(bytes, |text| outcome(Revocations::from_toml(text).map_err(|error| error.code()), |_| {}))
}

/// Calls every query on a bundle with any content.
fn use_bundle(bundle: &Bundle) {
    for now in [bundle.created, NOW] {
        drop(bundle.appraise(now, None, crypto::portable, Some(&Unconfined)));
    }
}

pub fn run_bundle(bytes: &[u8]) -> String {
    outcome(Bundle::open(bytes, &signer().public_key(), crypto::portable), |_| {
        assert_eq!(bytes, good().bundle, "signed by nobody");
    })
}

/// A bundle signed by its creator.
pub fn run_bundle_content(bytes: &[u8]) -> String {
    let key = signer();
    let signed = cose::sign(&bundle::FORM, &key, bytes, &[]);
    outcome(Bundle::open(&signed, &key.public_key(), crypto::portable), |bundle| {
        assert_eq!(
            Bundle::open(&bundle.sign(&key), &key.public_key(), crypto::portable).as_ref(),
            Ok(&bundle)
        );
        use_bundle(&bundle);
    })
}
