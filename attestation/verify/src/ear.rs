//! Attestation results: EAR (draft-ietf-rats-ear-04) and its older dialect of 2023, as JWT.
//!
//! There is one serializer and one reader, with a table of names for each dialect. Times, ids and
//! nonces are inputs; this module uses no clock.

use base64_simd::URL_SAFE_NO_PAD as B64;
use serde_json::{Map, Value};
use shef_proto::cose::VerifyFn;
use shef_proto::evidence::Layer;
use shef_proto::hpke_suite::PublicKey;

use crate::appraise::Outcome;
use crate::ar4si::{CLAIM_NAMES, Status, TrustVector};
use crate::json::{self, Object};
use crate::jwt::{self, JwtError, JwtKey, Signer};
use crate::verified::Verified;

/// Dialect of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// draft-ietf-rats-ear-04.
    #[default]
    Draft04,
    /// Veraison's profile of 2023, read by its deployed clients and Trustee.
    Veraison2023,
}

/// The intended reader of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// A relying party of this project: [`verify`].
    Own,
    /// The `ear` crate, and programs built on it, refuse every token with `aud`, so the audience is
    /// in `shef_audience`.
    Veraison,
    /// The same, with the key of accepted evidence as a JWK where Trustee's KBS expects it.
    Trustee,
}

/// The claim that holds the audience of a result without `aud`.
const AUDIENCE: &str = "shef_audience";

struct Names {
    verifier_id: &'static str,
    /// Name of the overall status, which the older dialect lacks.
    overall: Option<&'static str>,
    status: &'static str,
    vector: &'static str,
    policy_ids: &'static str,
    attester: &'static str,
    verifier: &'static str,
    key: &'static str,
}

impl Dialect {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Draft04, Self::Veraison2023];

    /// `eat_profile`.
    #[must_use]
    pub fn profile(self) -> &'static str {
        match self {
            Self::Draft04 => "tag:ietf.org,2026:rats/ear#04",
            Self::Veraison2023 => "tag:github.com,2023:veraison/ear",
        }
    }

    /// Media type.
    #[must_use]
    pub fn media_type(self) -> String {
        format!("application/eat+jwt; eat_profile=\"{}\"", self.profile())
    }

    /// The dialect of this profile.
    #[must_use]
    pub fn from_profile(profile: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.profile() == profile)
    }

    fn names(self) -> &'static Names {
        match self {
            Self::Draft04 => &Names {
                verifier_id: "ear_verifier_id",
                overall: Some("ear_status"),
                status: "ear_status",
                vector: "ear_trustworthiness_vector",
                policy_ids: "ear_appraisal_policy_ids",
                attester: "ear_attester_claims",
                verifier: "ear_verifier_claims",
                key: "ear_veraison_key_attestation",
            },
            Self::Veraison2023 => &Names {
                verifier_id: "ear.verifier-id",
                overall: None,
                status: "ear.status",
                vector: "ear.trustworthiness-vector",
                policy_ids: "ear.appraisal-policy-id",
                attester: "ear.veraison.annotated-evidence",
                verifier: "ear.veraison.policy-claims",
                key: "ear.veraison.key-attestation",
            },
        }
    }
}

/// Name of the layer in `submods`.
#[must_use]
pub fn submod(layer: Layer) -> &'static str {
    match layer {
        Layer::Kernel => "fpga-kernel",
        Layer::Shield => "fpga-shield",
    }
}

/// Data that the issuer adds to an appraisal.
#[derive(Clone, Copy, Debug)]
pub struct Issue<'a> {
    /// Names of claims.
    pub dialect: Dialect,
    /// `iss`: the verifier.
    pub issuer: &'a str,
    /// The audience: `aud`, or its replacement for [`Reader::Veraison`].
    pub audience: &'a str,
    /// The intended reader.
    pub reader: Reader,
    /// `iat`, seconds since 1970.
    pub issued: i64,
    /// `exp`, seconds since 1970.
    pub expires: i64,
    /// `jti`: unique id of this result.
    pub id: &'a str,
    /// `eat_nonce`: the relying party's nonce, or that of the challenge.
    pub nonce: &'a [u8],
    /// Name of the policy, `name@version`, if it has one; precedes the digests in the policy ids.
    pub policy: Option<&'a str>,
    /// `developer` of the verifier id.
    pub developer: &'a str,
    /// `build` of the verifier id.
    pub build: &'a str,
    /// Whether the result names the device.
    pub with_ueid: bool,
}

/// The claims-set of a result, in JSON.
#[must_use]
pub fn claims(outcome: &Outcome, layer: Layer, issue: &Issue<'_>) -> Vec<u8> {
    let names = issue.dialect.names();
    let Outcome { appraisal, verified } = outcome;
    let mut out = Vec::with_capacity(2048);
    json::object(&mut out, |map| {
        map.text("eat_profile", issue.dialect.profile());
        map.text("iss", issue.issuer);
        map.text(if issue.reader == Reader::Own { "aud" } else { AUDIENCE }, issue.audience);
        map.number("iat", issue.issued);
        map.number("exp", issue.expires);
        map.text("jti", issue.id);
        map.base64("eat_nonce", issue.nonce);
        map.object(names.verifier_id, |map| {
            map.text("developer", issue.developer);
            map.text("build", issue.build);
        });
        if let Some(overall) = names.overall {
            map.text(overall, appraisal.status.name());
        }
        map.object("submods", |map| {
            map.object(submod(layer), |map| {
                map.text(names.status, appraisal.status.name());
                map.object(names.vector, |map| {
                    appraisal.vector.claims().for_each(|(name, value)| map.number(name, value));
                });
                let ids: Vec<String> = issue
                    .policy
                    .map(str::to_owned)
                    .into_iter()
                    .chain(appraisal.policy_ids.iter().cloned())
                    .collect();
                match issue.dialect {
                    Dialect::Draft04 => map.texts(names.policy_ids, &ids),
                    Dialect::Veraison2023 => map.text(names.policy_ids, &ids.join(" ")),
                }
                if let Some(verified) = verified {
                    map.object(names.attester, |map| attester(map, verified, issue));
                    map.object(names.key, |map| map.base64("akpub", &spki(&verified.claims().key)));
                }
                map.object(names.verifier, |map| {
                    map.text("policy", &appraisal.policy);
                    map.texts("warnings", &appraisal.warnings);
                    let failed =
                        appraisal.checks.iter().filter(|check| check.reached && !check.passed);
                    map.objects("reasons", failed, |map, check| {
                        map.text("code", check.code);
                        map.text("check", check.id.name());
                        map.text("expected", &check.expected.to_string());
                        map.text("actual", &check.actual.to_string());
                    });
                });
            });
        });
    });
    out
}

/// Claims of accepted evidence.
fn attester(map: &mut Object<'_>, verified: &Verified, issue: &Issue<'_>) {
    let c = verified.claims();
    map.hex("evidence_digest", verified.digest());
    if issue.reader == Reader::Trustee {
        let point = c.key.xy();
        map.object("runtime_data_claims", |map| {
            map.object("tee-pubkey", |map| {
                map.text("kty", "EC");
                map.text("crv", "P-256");
                map.text("alg", "ECDH-ES+A256KW");
                map.base64("x", &point[..32]);
                map.base64("y", &point[32..]);
            });
        });
    }
    if issue.with_ueid {
        map.hex("ueid", &c.ueid);
    }
    map.text("root_of_trust", c.root_of_trust.name());
    map.text("target", &c.target);
    map.text("debug", c.debug.name());
    map.hex("kernel_digest", &c.kernel_digest);
    map.number("kernel_svn", c.kernel_svn);
    map.hex("shell_digest", &c.shell_digest);
    if let Verified::Shield(evidence) = verified {
        let s = evidence.shield();
        map.hex("image_digest", &s.image_digest);
        map.number("image_svn", s.image_svn);
        map.text("accelerator", &s.accelerator);
        map.hex("config_digest", &s.config_digest);
        map.hex("design_digest", &s.design_digest);
        map.hex("vendor", &s.vendor);
        map.text("on_fault", s.on_fault.name());
        map.texts("bypass", &s.bypass);
        map.text("state", s.state.name());
    }
}

/// DER SubjectPublicKeyInfo of a P-256 key.
fn spki(key: &PublicKey) -> [u8; 91] {
    let mut out = [0; 91];
    out[..26].copy_from_slice(&SPKI_HEAD);
    out[26..].copy_from_slice(key.as_bytes());
    out
}

/// SEQUENCE { SEQUENCE { ecPublicKey, prime256v1 }, BIT STRING (66 bytes, no unused bits) ...
const SPKI_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
    0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// A signed result.
///
/// # Errors
/// The key cannot be used.
pub fn sign(
    outcome: &Outcome,
    layer: Layer,
    issue: &Issue<'_>,
    signer: &dyn Signer,
) -> Result<String, JwtError> {
    jwt::sign(&claims(outcome, layer, issue), signer)
}

/// A relying party's requirements for a result.
#[derive(Clone, Copy, Debug)]
pub struct Expect<'a> {
    /// `iss`, if a particular verifier is required.
    pub issuer: Option<&'a str>,
    /// `aud`, or `shef_audience` of a result without `aud`.
    pub audience: &'a str,
    /// `eat_nonce`, if the relying party supplied one.
    pub nonce: Option<&'a [u8]>,
    /// The layer that must have been appraised.
    pub layer: Layer,
    /// `name@version` or digest of the policy, if a particular one is required: a replaced policy
    /// may still be in use elsewhere.
    pub policy: Option<&'a str>,
    /// Seconds since 1970.
    pub now: i64,
    /// Allowed clock difference in seconds.
    pub leeway: i64,
}

/// A result whose signature, audience, time and format have been verified. It may still be
/// negative: see [`Ear::status`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ear {
    /// Its dialect.
    pub dialect: Dialect,
    /// `iss`.
    pub issuer: String,
    /// `jti`; a relying party that acts once per result remembers it until `expires`.
    pub id: String,
    /// `iat`.
    pub issued: i64,
    /// `exp`.
    pub expires: i64,
    /// `eat_nonce`.
    pub nonce: Vec<u8>,
    /// Status of the layer. Only affirming means accepted.
    pub status: Status,
    /// Trustworthiness vector of the layer.
    pub vector: TrustVector,
    /// Ids of the policy: `name@version`, if it has a name, and the digests of its parts.
    pub policy_ids: Vec<String>,
    /// The attested key, if the evidence was accepted.
    pub key: Option<PublicKey>,
    /// SHA-256 of the evidence, if it was accepted.
    pub evidence_digest: Option<[u8; 32]>,
    /// Other claims of the evidence, if it was accepted.
    pub attester: Map<String, Value>,
}

/// Verifies a result.
///
/// # Errors
/// The first violated rule.
pub fn verify(
    token: &str,
    keys: &[JwtKey],
    expect: &Expect<'_>,
    verify: VerifyFn,
) -> Result<Ear, JwtError> {
    let claims = jwt::verify(token, keys, verify)?;
    let claims = Claims(&claims);
    let profile = claims.text("eat_profile")?;
    let dialect = Dialect::from_profile(profile)
        .ok_or_else(|| other("eat_profile", "a profile of EAR", profile))?;
    let names = dialect.names();
    let issuer = claims.text("iss")?;
    if let Some(expected) = expect.issuer.filter(|expected| *expected != issuer) {
        return Err(other("iss", &quoted(expected), issuer));
    }
    let audience = match claims.0.get(AUDIENCE) {
        Some(_) if claims.0.contains_key("aud") => {
            return Err(wrong(AUDIENCE, "none beside aud", "both"));
        }
        Some(_) => claims.text(AUDIENCE)?,
        None => claims.text("aud")?,
    };
    if audience != expect.audience {
        return Err(other("aud", &quoted(expect.audience), audience));
    }
    let (issued, expires) = (claims.number("iat")?, claims.number("exp")?);
    if issued > expect.now.saturating_add(expect.leeway) {
        return Err(wrong("iat", &format!("at most {}", expect.now), &issued.to_string()));
    }
    if expires <= expect.now.saturating_sub(expect.leeway) || expires <= issued {
        return Err(wrong("exp", &format!("after {}", expect.now), &expires.to_string()));
    }
    let id = claims.text("jti")?;
    let nonce = B64
        .decode_to_vec(claims.text("eat_nonce")?)
        .map_err(|_| wrong("eat_nonce", "base64url without padding", "another text"))?;
    if expect.nonce.is_some_and(|expected| expected != nonce) {
        return Err(wrong("eat_nonce", "the nonce given", "another nonce"));
    }
    let submods = claims.object("submods")?;
    let only = submods.0.len() == 1;
    let layer = submods.0.get(submod(expect.layer)).and_then(Value::as_object).filter(|_| only);
    let Some(layer) = layer.map(Claims) else {
        let found: Vec<&str> = submods.0.keys().map(String::as_str).collect();
        return Err(other("submods", submod(expect.layer), &found.join(", ")));
    };
    let status = layer.status(names.status)?;
    if let Some(name) = names.overall
        && claims.status(name)? != status
    {
        return Err(wrong(name, "the status of its one layer", "another status"));
    }
    let vector = layer.vector(names.vector)?;
    if status == Status::Affirming
        && vector.claims().any(|(_, value)| Status::of_claim(value) != Status::Affirming)
    {
        return Err(wrong(names.status, "no better than the worst claim", "affirming"));
    }
    let policy_ids = match layer.0.get(names.policy_ids) {
        Some(Value::String(text)) => text.split(' ').map(str::to_owned).collect(),
        Some(Value::Array(list)) => {
            list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        _ => Vec::new(),
    };
    if let Some(expected) =
        expect.policy.filter(|expected| !policy_ids.iter().any(|id| id == expected))
    {
        return Err(other(names.policy_ids, &quoted(expected), &policy_ids.join(" ")));
    }
    let key = match layer.0.get(names.key).and_then(|key| key.get("akpub")).and_then(Value::as_str)
    {
        None => None,
        Some(text) => Some(key_of(text).ok_or_else(|| {
            wrong(names.key, "a P-256 key as base64url of its DER", "something else")
        })?),
    };
    let attester =
        layer.0.get(names.attester).and_then(Value::as_object).cloned().unwrap_or_default();
    let digest = attester
        .get("evidence_digest")
        .and_then(Value::as_str)
        .and_then(|text| hex::decode(text).ok());
    Ok(Ear {
        dialect,
        issuer: issuer.into(),
        id: id.into(),
        issued,
        expires,
        nonce,
        status,
        vector,
        policy_ids,
        key,
        evidence_digest: digest.and_then(|digest| digest.try_into().ok()),
        attester,
    })
}

fn key_of(text: &str) -> Option<PublicKey> {
    let der = B64.decode_to_vec(text).ok()?;
    PublicKey::from_bytes(der.strip_prefix(&SPKI_HEAD)?).ok()
}

fn wrong(claim: &'static str, expected: &str, found: &str) -> JwtError {
    JwtError::Claim { claim, expected: expected.into(), found: found.into() }
}

/// The same for a text other than the expected one.
fn other(claim: &'static str, expected: &str, found: &str) -> JwtError {
    wrong(claim, expected, &quoted(found))
}

/// The escaped start of an untrusted text, safe for terminals and logs.
fn quoted(text: &str) -> String {
    format!("{:?}", text.chars().take(128).collect::<String>())
}

struct Claims<'a>(&'a Map<String, Value>);

impl<'a> Claims<'a> {
    fn text(&self, name: &'static str) -> Result<&'a str, JwtError> {
        self.0.get(name).and_then(Value::as_str).ok_or_else(|| wrong(name, "a text", "none"))
    }

    fn number(&self, name: &'static str) -> Result<i64, JwtError> {
        self.0
            .get(name)
            .and_then(Value::as_i64)
            .ok_or_else(|| wrong(name, "a whole number", "none"))
    }

    fn object(&self, name: &'static str) -> Result<Claims<'a>, JwtError> {
        self.0
            .get(name)
            .and_then(Value::as_object)
            .map(Claims)
            .ok_or_else(|| wrong(name, "an object", "none"))
    }

    fn status(&self, name: &'static str) -> Result<Status, JwtError> {
        let text = self.text(name)?;
        Status::from_name(text).ok_or_else(|| other(name, "a status", text))
    }

    fn vector(&self, name: &'static str) -> Result<TrustVector, JwtError> {
        let mut vector = TrustVector::default();
        for (claim, value) in self.object(name)?.0 {
            let at = CLAIM_NAMES.iter().position(|known| known == claim);
            let value = value.as_i64().and_then(|value| i8::try_from(value).ok());
            match at.zip(value) {
                Some((at, value)) => vector.0[at] = value,
                None => return Err(other(name, "claims of AR4SI", claim)),
            }
        }
        Ok(vector)
    }
}
