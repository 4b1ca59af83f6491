//! Valid evidence of the simulated device, the verifier that accepts it, and tools to corrupt it.

use shef_kernel::device_id_key;
use shef_proto::cbor::{self, Limits, Value};
use shef_proto::cert::{self, Certificate, TcbInfo};
use shef_proto::cose::{ESP256, SigningKey};
use shef_proto::evidence::{Claims, DebugState, Evidence, Layer, RootOfTrust};
use shef_proto::hpke_suite::PublicKey;
use shef_verify::{
    Appraisal, AppraisalPolicy, AppraisalRequest, ChainCache, Outcome, Policy, ReferenceValues,
    Revocations, TrustAnchors, appraise,
};

use crate::{ACCEPTED, Seen};
use shef_fixtures::der::Parts;
use shef_fixtures::world::{AUDIENCE, NOW, UDS, World, description};

/// A verifier that accepts the device's evidence.
#[derive(Clone)]
pub struct Verifier {
    pub anchors: TrustAnchors,
    pub reference: ReferenceValues,
    pub policy: AppraisalPolicy,
    pub revocations: Option<Revocations>,
    pub layer: Layer,
    pub nonce: Vec<u8>,
    pub audience: String,
    pub now: i64,
    /// Certificates sent with the evidence.
    pub beside: Vec<Vec<u8>>,
    /// The verifier's own keys.
    pub own_keys: Vec<PublicKey>,
}

impl Verifier {
    fn request<'a>(&'a self, evidence: &'a [u8]) -> AppraisalRequest<'a> {
        let request = AppraisalRequest::new(
            evidence,
            &self.anchors,
            &self.reference,
            &self.policy,
            self.layer,
            &self.nonce,
            &self.audience,
            self.now,
        );
        AppraisalRequest {
            certificates: &self.beside,
            revocations: self.revocations.as_ref(),
            own_keys: &self.own_keys,
            rego: Some(&shef_verify::rego::Unconfined),
            ..request
        }
    }

    pub fn outcome(&self, evidence: &[u8]) -> Outcome {
        appraise(&self.request(evidence))
    }

    /// Outcome of this evidence.
    pub fn ask(&self, variant: impl Into<String>, evidence: &[u8]) -> Seen {
        let outcome = self.outcome(evidence);
        assert_eq!(outcome.verified.is_some(), outcome.appraisal.accepted());
        seen(variant, &outcome.appraisal)
    }

    /// As [`Verifier::ask`], with a cache of chains.
    pub fn ask_cached(&self, variant: &str, evidence: &[u8], cache: &dyn ChainCache) -> Seen {
        let request = self.request(evidence);
        seen(variant, &appraise(&AppraisalRequest { chains: Some(cache), ..request }).appraisal)
    }

    pub fn policy(&mut self, change: impl FnOnce(&mut Policy)) {
        let mut typed = self.policy.typed().clone();
        change(&mut typed);
        self.policy = AppraisalPolicy::new(typed);
    }
}

/// Outcome of an appraisal. The most exact code is the one that the failed check names, as a person
/// would read it.
pub fn seen(variant: impl Into<String>, appraisal: &Appraisal) -> Seen {
    let claims = appraisal.vector.claims().map(|(name, value)| (name.to_owned(), value)).collect();
    let failure = appraisal.first_failure();
    let check = failure.map(|check| check.code.to_owned());
    let exact = failure.and_then(|check| {
        let text = check.actual.to_string();
        let (_, code) = text.rsplit_once('(')?;
        code.strip_suffix(')').filter(|code| code.starts_with("SHEF-")).map(str::to_owned)
    });
    let accepted = appraisal.accepted();
    let affirming = appraisal.status == shef_verify::Status::Affirming;
    assert!(accepted || !affirming, "denied evidence never affirms");
    let code = if accepted {
        ACCEPTED.to_owned()
    } else {
        exact.or_else(|| check.clone()).unwrap_or_default()
    };
    Seen { variant: variant.into(), code, check, claims: Some(claims) }
}

/// A device and its evidence.
pub struct Device {
    pub world: World,
    /// Evidence of its kernel, unmodified.
    pub evidence: Vec<u8>,
    /// Claims of the evidence.
    pub claims: Claims,
    /// The verifier that accepts it.
    pub verifier: Verifier,
    /// DeviceID certificate.
    pub device_certificate: Certificate,
    /// DeviceID key.
    pub device_id: SigningKey,
    /// TCB information in the AK certificate.
    pub tcb: TcbInfo,
    /// An attestation key whose private part the test holds; certified by the same DeviceID key.
    pub ak: SigningKey,
    /// Its certificate.
    pub ak_certificate: Certificate,
}

/// The CBOR of a signed message, part by part.
#[derive(Clone)]
pub struct Token {
    pub tags: Vec<u64>,
    pub protected: Vec<u8>,
    pub unprotected: Value,
    pub payload: Value,
    pub signature: Value,
}

impl Token {
    pub fn bytes(&self) -> Vec<u8> {
        let parts = vec![
            self.protected.as_slice().into(),
            self.unprotected.clone(),
            self.payload.clone(),
            self.signature.clone(),
        ];
        self.tags
            .iter()
            .rev()
            .fold(Value::Array(parts), |value, tag| Value::Tag(*tag, Box::new(value)))
            .encode()
    }
}

impl Device {
    /// The device with a loaded Shield (or its kernel alone), and fresh evidence.
    pub fn new(layer: Layer) -> Self {
        let world = match layer {
            Layer::Kernel => World::new(),
            Layer::Shield => World::loaded(),
        };
        Self::of(world, layer, RootOfTrust::ShefBoot, false)
    }

    /// As [`Device::new`], booted for debug, with the verifier's anchor for production.
    pub fn in_debug() -> Self {
        let world =
            World::with(RootOfTrust::ShefBoot, DebugState::Enabled, &description(3), |_| {});
        Self::of(world, Layer::Kernel, RootOfTrust::ShefBoot, true)
    }

    fn of(mut world: World, layer: Layer, kind: RootOfTrust, debug: bool) -> Self {
        let nonce = world.nonce();
        let evidence = world.evidence(layer, &nonce).unwrap();
        let parsed = Evidence::parse(&evidence).unwrap();
        let claims = parsed.unverified_claims().clone();
        let [real_ak, device] = <[Vec<u8>; 2]>::try_from(parsed.x5chain().to_vec()).unwrap();
        let device_certificate = Certificate::parse(&device).unwrap();
        let tcb = Certificate::parse(&real_ak).unwrap().tcb_info().unwrap().clone();
        let device_id = device_id_key(&UDS, kind, debug);
        let ak = SigningKey::derive(b"an attestation key whose private part is known");
        let ak_certificate = Certificate::parse(&cert::issue_ak(
            &device_id,
            &device_certificate,
            &ak.public_key(),
            &tcb,
        ))
        .unwrap();
        let verifier = Verifier {
            anchors: TrustAnchors::new(vec![world.manufacturer.anchor(kind, false)]),
            reference: world.reference.clone(),
            policy: AppraisalPolicy::new(Policy::strict("test", &[kind])),
            revocations: None,
            layer,
            nonce,
            audience: AUDIENCE.into(),
            now: NOW,
            beside: Vec::new(),
            own_keys: Vec::new(),
        };
        let made = Self {
            world,
            evidence,
            claims,
            verifier,
            device_certificate,
            device_id,
            tcb,
            ak,
            ak_certificate,
        };
        if !debug {
            // The unmodified input must be accepted: the device's own evidence, and the same claims
            // under the known key.
            assert_eq!(made.verifier.ask("", &made.evidence).code, ACCEPTED);
            assert_eq!(made.verifier.ask("", &made.signed(&made.claims.to_cbor())).code, ACCEPTED);
        }
        made
    }

    pub fn ask(&self, variant: impl Into<String>, evidence: &[u8]) -> Seen {
        self.verifier.ask(variant, evidence)
    }

    /// The claims-set, changed.
    pub fn changed(&self, change: impl FnOnce(&mut Claims)) -> Vec<u8> {
        let mut claims = self.claims.clone();
        change(&mut claims);
        self.signed(&claims.to_cbor())
    }

    /// Entries of the claims-set.
    pub fn entries(&self) -> Vec<(Value, Value)> {
        let Value::Map(entries) =
            cbor::parse(&self.claims.to_cbor(), &Limits::bytes(8192)).unwrap()
        else {
            unreachable!()
        };
        entries
    }

    /// The claims-set with one claim replaced, or without it.
    pub fn with_claim(&self, claim: i64, value: Option<Value>) -> Vec<u8> {
        let mut entries = self.entries();
        entries.retain(|(key, _)| *key != Value::int(claim));
        entries.extend(value.map(|value| (Value::int(claim), value)));
        self.signed(&Value::Map(entries).encode())
    }

    /// Parts of a good token with this payload.
    pub fn token(&self, payload: &[u8]) -> Token {
        let protected = Value::map(vec![(1, Value::int(ESP256)), (3, Value::Uint(263))]).encode();
        let chain = [&self.ak_certificate, &self.device_certificate]
            .map(|certificate| Value::from(certificate.der()));
        Token {
            tags: vec![61, 18],
            unprotected: Value::map(vec![(33, Value::Array(chain.to_vec()))]),
            payload: payload.into(),
            signature: self.signature(&protected, payload),
            protected,
        }
    }

    /// The good token over the claims, changed and signed again.
    pub fn spoilt(&self, change: impl FnOnce(&mut Token)) -> Vec<u8> {
        let payload = self.claims.to_cbor();
        let mut token = self.token(&payload);
        change(&mut token);
        token.signature = self.signature(&token.protected, &payload);
        token.bytes()
    }

    /// A token over this payload, signed by the known attestation key.
    pub fn signed(&self, payload: &[u8]) -> Vec<u8> {
        self.token(payload).bytes()
    }

    fn signature(&self, protected: &[u8], payload: &[u8]) -> Value {
        Value::from(&self.ak.sign(&to_sign(protected, payload)))
    }

    /// Evidence with these certificates (DER, leaf first).
    pub fn with_chain(&self, certificates: &[Vec<u8>]) -> Vec<u8> {
        let list: Vec<Value> = certificates.iter().map(|der| der.as_slice().into()).collect();
        let chain = if let [one] = &list[..] { one.clone() } else { Value::Array(list) };
        self.spoilt(|token| token.unprotected = Value::map(vec![(33, chain)]))
    }

    /// Parts of the AK certificate.
    pub fn leaf(&self) -> Parts {
        Parts::of(&self.ak_certificate)
    }

    /// Evidence under an AK certificate with these parts.
    pub fn with_leaf(&self, parts: &Parts) -> Vec<u8> {
        self.with_chain(&[parts.sign(&self.device_id), self.device_certificate.der().to_vec()])
    }

    /// Evidence under a DeviceID certificate with these parts, and an AK certificate issued by it.
    pub fn with_device(&self, parts: &Parts) -> Vec<u8> {
        let device = parts.sign(&self.world.manufacturer.key);
        let issuer = Certificate::parse(&device).unwrap();
        self.with_chain(&[
            cert::issue_ak(&self.device_id, &issuer, &self.ak.public_key(), &self.tcb),
            device,
        ])
    }
}

/// The message that a COSE_Sign1 of evidence signs.
pub fn to_sign(protected: &[u8], payload: &[u8]) -> Vec<u8> {
    Value::Array(vec!["Signature1".into(), protected.into(), Value::Bytes(vec![]), payload.into()])
        .encode()
}

/// A map with its entries in this order, even if it is wrong.
pub fn raw_map(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<u8> {
    assert!(entries.len() < 24);
    let mut out = vec![0xa0 | entries.len() as u8];
    for (key, value) in entries {
        out.extend_from_slice(key);
        out.extend_from_slice(value);
    }
    out
}
