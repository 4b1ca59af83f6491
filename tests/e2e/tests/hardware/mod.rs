//! A host with a device that claims to be hardware.
#![allow(dead_code, reason = "each test uses a part")]

use std::time::{SystemTime, UNIX_EPOCH};

use shef::Device;
use shef_lab::tap::{Adversary, MessageKind};
use shef_lab::world::World;
use shef_proto::cert::{self, Certificate};
use shef_proto::config::OnFault;
use shef_proto::cose::SigningKey;
use shef_proto::evidence::{
    self, Claims, Common, DebugState, EntropySource, RootOfTrust, ShieldClaims, ShieldState,
};
use shef_verify::{ReferenceValues, TrustAnchor};

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64
}

fn key(label: &str) -> SigningKey {
    SigningKey::derive(label.as_bytes())
}

fn root() -> Vec<u8> {
    cert::issue_root(&key("maker"), "maker", now() - 100, now() + 100)
}

/// Shows evidence of such a device, instead of the card's, with a kernel, shell and image that
/// verifiers know.
pub struct Hardware {
    audience: String,
    nonce: Vec<u8>,
    known: ReferenceValues,
    on_fault: OnFault,
}

impl Hardware {
    pub fn new(world: &World, audience: &str) -> Self {
        let (known, on_fault) = (world.verifier().reference().clone(), world.config().on_fault());
        Self { audience: audience.to_owned(), nonce: Vec::new(), known, on_fault }
    }

    /// Trust anchor of its manufacturer.
    pub fn anchor() -> TrustAnchor {
        TrustAnchor::new("maker", RootOfTrust::ShefBoot, false, &root()).unwrap()
    }

    fn evidence(&self, shield: bool) -> Vec<u8> {
        let (kernel, image) = (&self.known.kernels[0], &self.known.images[0]);
        let common = Common {
            audience: self.audience.clone(),
            nonce: self.nonce.clone(),
            ueid: cert::ueid_of(&key("device").public_key()),
            target: shef_card::TARGET.into(),
            debug: DebugState::DisabledSinceBoot,
            root_of_trust: RootOfTrust::ShefBoot,
            kernel_digest: kernel.digest,
            kernel_svn: kernel.svn,
            shell_digest: self.known.shells[0].digest,
            entropy: EntropySource::Tested,
            key: key("shield").public_key(),
        };
        let shield = shield.then(|| ShieldClaims {
            image_digest: image.digest,
            config_digest: image.config_digest,
            design_digest: image.design_digest,
            image_svn: image.svn,
            accelerator: image.accelerator.clone(),
            vendor: image.vendor,
            on_fault: self.on_fault,
            bypass: vec![],
            state: ShieldState::Fresh,
        });
        let tcb =
            cert::TcbInfo { version: "1".into(), svn: kernel.svn, digest: kernel.digest, flags: 0 };
        let device = cert::issue_device_id(
            &key("maker"),
            &Certificate::parse(&root()).unwrap(),
            &key("device").public_key(),
            now() - 50,
        );
        let ak = cert::issue_ak(
            &key("device"),
            &Certificate::parse(&device).unwrap(),
            &key("ak").public_key(),
            &tcb,
        );
        evidence::sign(&Claims { common, shield }, &key("ak"), &[&ak, &device])
    }
}

impl Adversary for Hardware {
    fn message(
        &mut self,
        kind: MessageKind,
        bytes: Vec<u8>,
        _: &mut dyn Device,
    ) -> Option<Vec<u8>> {
        Some(match kind {
            MessageKind::ShieldEvidence => self.evidence(true),
            MessageKind::KernelEvidence => self.evidence(false),
            MessageKind::Nonce => {
                self.nonce.clone_from(&bytes);
                bytes
            }
            _ => bytes,
        })
    }
}
