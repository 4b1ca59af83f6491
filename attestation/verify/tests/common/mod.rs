//! A device with its certificates, valid claims, and a verifier that accepts them.
#![allow(dead_code, reason = "each test uses a part")]

use std::collections::BTreeMap;
use std::sync::Mutex;

use shef_proto::cert::{self, Certificate, TcbInfo};
use shef_proto::config::OnFault;
use shef_proto::cose::SigningKey;
use shef_proto::evidence::{
    self, Claims, Common, DebugState, Layer, RootOfTrust, ShieldClaims, ShieldState,
};
use shef_proto::hpke_suite::PublicKey;
use shef_verify::crypto::{ReadyKey, portable};
use shef_verify::rego::Unconfined;
use shef_verify::{
    Appraisal, AppraisalPolicy, CheckId, ImageReference, KernelReference, MemoryChainCache, Policy,
    ReferenceValues, Rego, Request, Revocations, ShellReference, TrustAnchor, TrustAnchors,
    appraise,
};

pub const NOW: i64 = 1_795_000_000;
pub const NONCE: [u8; 48] = [0x42; 48];
pub const AUDIENCE: &str = "owner.example";

pub fn key(label: &str) -> SigningKey {
    SigningKey::derive(label.as_bytes())
}

/// A device with its certificates, valid claims, and a verifier that accepts them.
#[derive(Clone, Debug)]
pub struct Case {
    pub claims: Claims,
    pub tcb: TcbInfo,
    pub anchor: (RootOfTrust, bool),
    pub reference: ReferenceValues,
    pub policy: Policy,
    pub nonce: Vec<u8>,
    pub audience: String,
    pub layer: Layer,
    pub now: i64,
    pub maker: &'static str,
    pub known_maker: &'static str,
    pub signer: &'static str,
    pub rego: Option<&'static str>,
    pub revocations: Option<Revocations>,
    pub challenged: Option<i64>,
    pub shown_svn: u64,
}

impl Case {
    pub fn new(layer: Layer) -> Self {
        let device = key("device").public_key();
        let common = Common {
            audience: AUDIENCE.into(),
            nonce: NONCE.to_vec(),
            ueid: cert::ueid_of(&device),
            target: "shef-sim".into(),
            debug: DebugState::DisabledSinceBoot,
            root_of_trust: RootOfTrust::ShefBoot,
            kernel_digest: [1; 32],
            kernel_svn: 5,
            shell_digest: [2; 32],
            seeded: false,
            key: key("shield").public_key(),
        };
        let shield = ShieldClaims {
            image_digest: [3; 32],
            config_digest: [4; 32],
            design_digest: [5; 32],
            image_svn: 6,
            accelerator: "digits".into(),
            vendor: [6; 32],
            on_fault: OnFault::Shield,
            bypass: vec![],
            state: ShieldState::Fresh,
        };
        let reference = ReferenceValues {
            kernels: vec![KernelReference { name: "kernel".into(), digest: [1; 32], svn: 5 }],
            shells: vec![ShellReference { name: "shell".into(), digest: [2; 32] }],
            images: vec![ImageReference {
                name: "digits".into(),
                accelerator: "digits".into(),
                digest: [3; 32],
                config_digest: [4; 32],
                design_digest: [5; 32],
                vendor: [6; 32],
                svn: 6,
            }],
        };
        Self {
            claims: Claims { common, shield: (layer == Layer::Shield).then_some(shield) },
            tcb: TcbInfo { version: "1".into(), svn: 5, digest: [1; 32], flags: 0 },
            anchor: (RootOfTrust::ShefBoot, false),
            reference,
            policy: Policy::strict("production", &[RootOfTrust::ShefBoot]),
            nonce: NONCE.to_vec(),
            audience: AUDIENCE.into(),
            layer,
            now: NOW,
            maker: "maker",
            known_maker: "maker",
            signer: "ak",
            rego: None,
            revocations: None,
            challenged: None,
            shown_svn: 5,
        }
    }

    pub fn shield(&mut self) -> &mut ShieldClaims {
        self.claims.shield.as_mut().unwrap()
    }

    pub fn root(maker: &str) -> Certificate {
        Certificate::parse(&cert::issue_root(&key(maker), maker, NOW - 100, NOW + 100)).unwrap()
    }

    pub fn certificates(&self) -> Vec<Vec<u8>> {
        let root = Self::root(self.maker);
        let device =
            cert::issue_device_id(&key(self.maker), &root, &key("device").public_key(), NOW - 50);
        let ak = cert::issue_ak(
            &key("device"),
            &Certificate::parse(&device).unwrap(),
            &key("ak").public_key(),
            &self.tcb,
        );
        vec![ak, device]
    }

    pub fn evidence(&self) -> Vec<u8> {
        let certificates = self.certificates();
        let chain: Vec<&[u8]> = certificates.iter().map(Vec::as_slice).collect();
        evidence::sign(&self.claims, &key(self.signer), &chain)
    }

    pub fn appraisal_policy(&self) -> AppraisalPolicy {
        let policy = AppraisalPolicy::new(self.policy.clone());
        match self.rego {
            Some(text) => policy.with_rego(Rego::new(text).unwrap()),
            None => policy,
        }
    }

    pub fn appraise_bytes(
        &self,
        evidence: &[u8],
        certificates: &[Vec<u8>],
    ) -> shef_verify::Outcome {
        type Known = (&'static str, RootOfTrust, bool);
        static ANCHORS: Mutex<BTreeMap<Known, TrustAnchor>> = Mutex::new(BTreeMap::new());
        let known = (self.known_maker, self.anchor.0, self.anchor.1);
        let anchor = ANCHORS
            .lock()
            .unwrap()
            .entry(known)
            .or_insert_with(|| {
                TrustAnchor::new(known.0, known.1, known.2, Self::root(known.0).der()).unwrap()
            })
            .clone();
        let anchors = TrustAnchors::new(vec![anchor]);
        let policy = self.appraisal_policy();
        let request = Request::new(
            evidence,
            &anchors,
            &self.reference,
            &policy,
            self.layer,
            &self.nonce,
            &self.audience,
            self.now,
        );
        let (revocations, challenged, shown_svn) =
            (self.revocations.as_ref(), self.challenged, self.shown_svn);
        let request = Request {
            certificates,
            revocations,
            challenged,
            shown_svn,
            rego: Some(&Unconfined),
            ..request
        };
        let outcome = appraise(&request);
        // Neither a chain cache nor its prepared keys change a result.
        let ready = |key: &PublicKey| {
            let key = *key;
            Some(ReadyKey::new(move |message, signature| portable(&key, message, signature)))
        };
        let cache = MemoryChainCache::new(4).with_ready_keys(ready);
        for _ in 0..2 {
            assert_eq!(
                appraise(&Request { chains: Some(&cache), ..request }).appraisal,
                outcome.appraisal
            );
        }
        outcome
    }

    pub fn appraise(&self) -> Appraisal {
        let outcome = self.appraise_bytes(&self.evidence(), &[]);
        assert_eq!(outcome.verified.is_some(), outcome.appraisal.accepted());
        outcome.appraisal
    }

    /// The checks that ran and failed.
    pub fn failed(&self) -> Vec<CheckId> {
        self.appraise()
            .checks
            .iter()
            .filter(|check| check.reached && !check.passed)
            .map(|check| check.id)
            .collect()
    }
}
