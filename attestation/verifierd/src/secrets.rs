//! The service's own secrets: the key encryption key, keys derived from it, and the signing key.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf;
use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as B64;
use shef_api::{Jwk, Jwks};
use shef_files as files;
use shef_proto::cose::SigningKey;
use shef_proto::crypto::scrub::{DERIVATION, scrubbed};
use shef_proto::entropy::Entropy;
use shef_proto::hpke_suite::{PrivateKey, PublicKey};
use shef_proto::receipt::{Forgotten, Receipt};
use shef_verify::crypto::{AwsLcKey, aws_lc};
use shef_verify::jwt::{self, JwtError, JwtKey};
use zeroize::Zeroizing;

use crate::problem::{Because, Kind, Problem, Result};
use crate::spans;
use crate::vault::{Vault, VaultKey};

/// The operating system's randomness.
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&mut self, out: &mut [u8]) {
        aws_lc_rs::rand::fill(out).expect("the system's random source works");
    }
}

/// Random bytes.
#[must_use]
pub fn random<const N: usize>() -> [u8; N] {
    let mut out = [0; N];
    SystemEntropy.fill(&mut out);
    out
}

/// SHA-256.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    digest.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// The folder in which systemd has put the credentials of this process, if there are any.
pub(crate) fn credentials() -> Option<PathBuf> {
    std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from)
}

/// Opens a file with a secret by the rules of [`files::open_private`]: orchestrators link the current
/// version of a secret. systemd may let a service read a credential by an ACL, whose mask shows as the
/// group's right to read.
///
/// # Errors
/// Missing, not a regular file, another user's, or accessible to others.
pub(crate) fn open_private(path: &Path) -> Result<std::fs::File> {
    let credential = credentials().is_some_and(|folder| path.parent() == Some(&*folder));
    let others = if credential { 0o037 } else { 0o077 };
    files::open_private(path, others).map_err(|error| match error {
        files::PrivateError::Open(error) => {
            Kind::Material.because(format!("{}: {error}", path.display()))
        }
        files::PrivateError::Mode(mode) => Kind::Permissions
            .because(format!("{}: mode is {mode:03o}, expected 600", path.display())),
    })
}

/// Reads a text from a file with a secret.
///
/// # Errors
/// Missing, not a regular file, another user's, accessible to others, or not UTF-8.
pub(crate) fn private_text(path: &Path) -> Result<Zeroizing<String>> {
    let cannot = |error: io::Error| Kind::Material.because(format!("{}: {error}", path.display()));
    let bytes = files::contents(&open_private(path)?).map_err(cannot)?;
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Zeroizing::new(text)),
        Err(error) => {
            let what = error.utf8_error();
            drop(Zeroizing::new(error.into_bytes()));
            Err(cannot(io::Error::new(io::ErrorKind::InvalidData, what)))
        }
    }
}

/// Reads 32 bytes in hexadecimal from a file with a secret.
///
/// # Errors
/// Missing, not a regular file, another user's, accessible to others, or not 64 hexadecimal digits.
pub fn read_secret(path: &Path) -> Result<Zeroizing<[u8; 32]>> {
    let cannot = |error: io::Error| Kind::Material.because(format!("{}: {error}", path.display()));
    let mut file = open_private(path)?;
    // Full capacity at once: a growing buffer would leave parts of the secret behind.
    let mut text = Zeroizing::new(Vec::with_capacity(128));
    file.by_ref().take(128).read_to_end(&mut text).map_err(cannot)?;
    let mut key = Zeroizing::new([0; 32]);
    hex::decode_to_slice(text.trim_ascii(), &mut key[..]).map_err(|_| {
        Kind::Material.because(format!("{}: expected 64 hexadecimal digits", path.display()))
    })?;
    Ok(key)
}

struct Derived;

impl hkdf::KeyType for Derived {
    fn len(&self) -> usize {
        32
    }
}

/// Begins the file of a KEK that a token has sealed; the sealed bytes follow, in hexadecimal.
pub(crate) const SEALED: &str = "shef-kek/1 ";

/// The sealed KEK in a file, if a token has sealed it.
pub(crate) fn sealed(path: &Path) -> Result<Option<Vec<u8>>> {
    let text = private_text(path)?;
    let Some(digits) = text.strip_prefix(SEALED) else { return Ok(None) };
    hex::decode(digits.trim()).map(Some).map_err(|_| {
        Kind::Material
            .because(format!("{}: expected {SEALED}and hexadecimal digits", path.display()))
    })
}

/// The key encryption key: seals keys at rest and signs session tokens. Replicas share it. The
/// derived keys stay in one place on the heap; a move only moves pointers.
pub struct Kek {
    seal: Box<LessSafeKey>,
    session: Box<hmac::Key>,
    form: Box<hmac::Key>,
}

/// Length-prefixed parts, so that no two lists give the same bytes.
fn join(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in parts {
        out.extend_from_slice(&(part.len() as u32).to_be_bytes());
        out.extend_from_slice(part);
    }
    out
}

/// Parts that bind the secret of a key's version.
pub(crate) fn key_parts<'a>(tenant: &'a str, name: &'a str, version: &'a [u8; 8]) -> [&'a [u8]; 4] {
    [b"key", tenant.as_bytes(), name.as_bytes(), version]
}

/// Parts that bind a resource.
pub(crate) fn resource_parts<'a>(tenant: &'a str, path: &'a str) -> [&'a [u8]; 3] {
    [b"resource", tenant.as_bytes(), path.as_bytes()]
}

impl Kek {
    /// From the bytes of the KEK file.
    ///
    /// # Panics
    /// Never: lengths are fixed.
    #[must_use]
    pub fn new(kek: &[u8; 32]) -> Self {
        scrubbed::<DERIVATION, _>(|| {
            let prk = hkdf::Salt::new(hkdf::HKDF_SHA256, b"shef-verifierd/1").extract(kek);
            let derive = |label: &[u8]| {
                let mut key = Zeroizing::new([0; 32]);
                prk.expand(&[label], Derived)
                    .and_then(|okm| okm.fill(&mut key[..]))
                    .expect("32 bytes are within HKDF's limit");
                key
            };
            let mac = |label| Box::new(hmac::Key::new(hmac::HMAC_SHA256, &derive(label)[..]));
            let seal = UnboundKey::new(&AES_256_GCM, &derive(b"keys at rest")[..])
                .expect("a key of AES-256 has 32 bytes");
            Self {
                seal: Box::new(LessSafeKey::new(seal)),
                session: mac(b"session tokens"),
                form: mac(b"form tokens"),
            }
        })
    }

    /// Seals a secret under these parts (tenant, name, version): `nonce (12) | ciphertext | tag`.
    ///
    /// # Panics
    /// Never: secrets are short.
    #[must_use]
    pub fn seal(&self, parts: &[&[u8]], secret: &[u8]) -> Vec<u8> {
        let nonce: [u8; NONCE_LEN] = random();
        // Full capacity at once: a growing buffer would leave the secret behind.
        let mut sealed = Vec::with_capacity(NONCE_LEN + secret.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(secret);
        let (nonce, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(join(parts)));
        let tag = self
            .seal
            .seal_in_place_separate_tag(nonce, aad, &mut sealed[NONCE_LEN..])
            .expect("a short message can be sealed");
        sealed.extend_from_slice(tag.as_ref());
        sealed
    }

    /// Unseals the output of [`Kek::seal`] for the same parts; `None` for anything else.
    #[must_use]
    pub fn open(&self, parts: &[&[u8]], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_LEN>()?;
        let mut buffer = Zeroizing::new(sealed.to_vec());
        let len = self
            .seal
            .open_in_place(
                Nonce::assume_unique_for_key(*nonce),
                Aad::from(join(parts)),
                &mut buffer,
            )
            .ok()?
            .len();
        buffer.truncate(len);
        Some(buffer)
    }

    /// Authenticates a session token.
    #[must_use]
    pub fn session_mac(&self, token: &[u8]) -> [u8; 32] {
        hmac::sign(&self.session, token).as_ref().try_into().expect("HMAC-SHA-256 has 32 bytes")
    }

    /// Whether a session token is authentic; in constant time.
    #[must_use]
    pub fn session_verify(&self, token: &[u8], mac: &[u8]) -> bool {
        hmac::verify(&self.session, token, mac).is_ok()
    }

    /// A token for this identity's forms.
    #[must_use]
    pub fn form_token(&self, parts: &[&[u8]]) -> String {
        B64.encode(hmac::sign(&self.form, &join(parts)))
    }

    /// Whether a form's token belongs to this identity; in constant time.
    #[must_use]
    pub fn form_verify(&self, parts: &[&[u8]], token: &str) -> bool {
        B64.decode(token).is_ok_and(|mac| hmac::verify(&self.form, &join(parts), &mac).is_ok())
    }
}

/// Where the private key is that signs results and receipts.
enum Held {
    /// Here.
    Here { jwt: AwsLcKey, cose: Box<SigningKey> },
    /// In a token.
    Vault(VaultKey),
}

/// Signs results and receipts.
pub struct Signer {
    held: Held,
    public: PublicKey,
    /// The current key first.
    all: Vec<PublicKey>,
}

impl Signer {
    /// Creates a signer from a private scalar, and earlier public keys that are still published.
    ///
    /// # Errors
    /// The scalar is out of range.
    pub fn new(scalar: &[u8; 32], retired: Vec<PublicKey>) -> Result<Self> {
        let bad = || Kind::Material.because("signing key: not a private key of P-256");
        let private = PrivateKey::from_bytes(scalar).map_err(|_| bad())?;
        let public = private.public_key();
        let jwt = AwsLcKey::new(&thumbprint(&public), &private).map_err(|_| bad())?;
        let held = Held::Here { jwt, cose: Box::new(SigningKey::new(&private)) };
        Ok(Self { held, public, all: published(public, retired) })
    }

    /// A signer whose key is in a token, under this label, and earlier public keys.
    ///
    /// # Errors
    /// The token does not answer, or lacks the key.
    pub fn in_vault(vault: Arc<dyn Vault>, label: &str, retired: Vec<PublicKey>) -> Result<Self> {
        let public = vault.public_key(label)?;
        let held = Held::Vault(VaultKey::new(vault, label, public, thumbprint(&public))?);
        Ok(Self { held, public, all: published(public, retired) })
    }

    /// Whether a signature may take its time, because a token makes it.
    #[must_use]
    pub fn is_slow(&self) -> bool {
        matches!(self.held, Held::Vault(_))
    }

    /// Why the key in a token did not sign the last time, if so.
    #[must_use]
    pub fn failed(&self) -> Option<Problem> {
        match &self.held {
            Held::Here { .. } => None,
            Held::Vault(key) => key.failed(),
        }
    }

    /// Finds out whether the key can sign: one in a token signs something, unless it has just done
    /// so.
    ///
    /// # Errors
    /// The token does not answer.
    pub fn probe(&self) -> Result<()> {
        match &self.held {
            Held::Here { .. } => Ok(()),
            Held::Vault(key) => key.probe(),
        }
    }

    /// The public key.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// The current key and the retired ones.
    #[must_use]
    pub fn public_keys(&self) -> &[PublicKey] {
        &self.all
    }

    /// The key, to sign results of this tenant for this caller.
    #[must_use]
    pub fn jwt<'a>(&'a self, tenant: &'a str, caller: &'a str) -> ResultSigner<'a> {
        ResultSigner { held: &self.held, tenant, caller, problem: Mutex::default() }
    }

    /// Signs a receipt.
    ///
    /// # Errors
    /// The token that holds the key does not answer.
    pub fn receipt(&self, receipt: &Receipt) -> Result<Vec<u8>> {
        let _step = spans::step("sign receipt");
        match &self.held {
            Held::Here { cose, .. } => Ok(receipt.sign(cose)),
            Held::Vault(key) => {
                receipt.sign_by(|message| key.signature(&receipt.tenant, None, message))
            }
        }
    }

    /// Signs a statement about receipts that are forgotten.
    ///
    /// # Errors
    /// The token that holds the key does not answer.
    pub fn forgotten(&self, statement: &Forgotten) -> Result<Vec<u8>> {
        match &self.held {
            Held::Here { cose, .. } => Ok(statement.sign(cose)),
            Held::Vault(key) => {
                statement.sign_by(|message| key.signature(&statement.tenant, None, message))
            }
        }
    }

    /// The keys that verify results of this service: the current one and the retired ones.
    #[must_use]
    pub fn keys(&self) -> Vec<JwtKey> {
        self.all.iter().map(|key| JwtKey { kid: thumbprint(key), key: *key }).collect()
    }

    /// The claims of a JWT that this service signed.
    #[must_use]
    pub fn verify_jwt(&self, token: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
        jwt::verify(token, &self.keys(), aws_lc).ok()
    }

    /// The published keys, newest first.
    #[must_use]
    pub fn jwks(&self) -> Jwks {
        Jwks { keys: self.all.iter().map(jwk).collect() }
    }
}

/// Signs results of a tenant.
pub struct ResultSigner<'a> {
    held: &'a Held,
    tenant: &'a str,
    caller: &'a str,
    problem: Mutex<Option<Problem>>,
}

impl ResultSigner<'_> {
    /// Why the key did not sign, if that was so.
    #[must_use]
    pub fn problem(self) -> Option<Problem> {
        self.problem.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl jwt::Signer for ResultSigner<'_> {
    fn key_id(&self) -> &str {
        match self.held {
            Held::Here { jwt, .. } => jwt.key_id(),
            Held::Vault(key) => key.key_id(),
        }
    }

    fn sign(&self, message: &[u8]) -> Result<[u8; 64], JwtError> {
        match self.held {
            Held::Here { jwt, .. } => jwt.sign(message),
            Held::Vault(key) => {
                key.signature(self.tenant, Some(self.caller), message).map_err(|problem| {
                    let text = problem.with_cause();
                    *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(problem);
                    JwtError::Signer { text }
                })
            }
        }
    }
}

/// The keys to publish: the present one, and the retired ones that differ.
fn published(public: PublicKey, retired: Vec<PublicKey>) -> Vec<PublicKey> {
    let mut all = vec![public];
    for key in retired {
        if !all.contains(&key) {
            all.push(key);
        }
    }
    all
}

/// RFC 7638 thumbprint of a P-256 key: the `kid`.
#[must_use]
pub fn thumbprint(key: &PublicKey) -> String {
    let xy = key.xy();
    let text = format!(
        r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#,
        B64.encode(&xy[..32]),
        B64.encode(&xy[32..])
    );
    B64.encode(sha256(text.as_bytes()))
}

/// A P-256 key as JWK.
#[must_use]
pub fn jwk(key: &PublicKey) -> Jwk {
    let xy = key.xy();
    let [kty, crv, alg, r#use] = ["EC", "P-256", "ES256", "sig"].map(str::to_owned);
    let [x, y] = [&xy[..32], &xy[32..]].map(|half| B64.encode(half));
    Jwk { kty, crv, alg, r#use, kid: thumbprint(key), x, y }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer that has grown has spare capacity, and has left the secret in its old place.
    #[test]
    fn no_secret_stays_behind_in_a_buffer_that_grew() {
        let kek = Kek::new(&random());
        for len in [1, 32, 500, 4000] {
            let sealed = kek.seal(&[b"tenant", b"name"], &vec![7; len]);
            assert_eq!(sealed.capacity(), sealed.len(), "a secret of {len} bytes");
        }
    }

    #[test]
    fn sealed_keys_open_under_the_same_name_only() {
        let kek = Kek::new(&[1; 32]);
        let sealed = kek.seal(&[b"t", b"k", b"1"], b"secret");
        assert_eq!(&kek.open(&[b"t", b"k", b"1"], &sealed).unwrap()[..], b"secret");
        for parts in [[b"t" as &[u8], b"k", b"2"], [b"u", b"k", b"1"], [b"tk", b"", b"1"]] {
            assert!(kek.open(&parts, &sealed).is_none());
        }
        assert!(Kek::new(&[2; 32]).open(&[b"t", b"k", b"1"], &sealed).is_none());
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert!(kek.open(&[b"t", b"k", b"1"], &changed).is_none());
        }
    }

    #[test]
    fn tokens_of_this_key_only() {
        let signer = Signer::new(&[3; 32], Vec::new()).unwrap();
        let token = jwt::sign(b"{\"a\":1}", &signer.jwt("t", "c")).unwrap();
        assert_eq!(signer.verify_jwt(&token).unwrap()["a"], 1);
        assert!(Signer::new(&[4; 32], Vec::new()).unwrap().verify_jwt(&token).is_none());
        assert!(
            Signer::new(&[4; 32], vec![*signer.public_key()]).unwrap().verify_jwt(&token).is_some()
        );
        let mut parts: Vec<String> = token.split('.').map(Into::into).collect();
        parts[0] = B64.encode(r#"{"alg":"none"}"#);
        assert!(signer.verify_jwt(&parts.join(".")).is_none());
    }
}
