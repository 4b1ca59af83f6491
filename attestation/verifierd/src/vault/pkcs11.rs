//! A token of PKCS #11.
//!
//! One session, which calls take turns at. A call that fails opens another session and is tried once
//! more: the token may have been away. A PIN that the token refuses is not tried again until the file
//! changes, because tokens lock after a few attempts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11 as Module};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::slot::Slot;
use cryptoki::types::AuthPin;
use shef_proto::hpke_suite::PublicKey;
use zeroize::Zeroizing;

use super::Vault;
use crate::config::Pkcs11;
use crate::problem::{Kind, Problem, Result};
use crate::secrets::{private_text, random, sha256};

/// Length of the IV and of the tag of AES-GCM.
const IV: usize = 12;
const TAG: usize = 16;
/// What sealed KEKs are bound to.
const AAD: &[u8] = b"shef-verifierd KEK/1";
/// P-256, as the parameters of a key: its object identifier in DER.
const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

/// Libraries that this process has loaded: each can be initialised once.
static MODULES: Mutex<BTreeMap<PathBuf, Module>> = Mutex::new(BTreeMap::new());

/// A token, by its library and label.
type Name = (PathBuf, String);

/// The digest of the last PIN of each token, and whether the token accepted it.
static PINS: Mutex<BTreeMap<Name, ([u8; 32], bool)>> = Mutex::new(BTreeMap::new());

/// A session, and the objects that were found in it.
struct Open {
    session: Session,
    found: BTreeMap<(String, u8), ObjectHandle>,
}

/// A token.
pub struct Token {
    config: Pkcs11,
    module: Module,
    open: Mutex<Option<Open>>,
}

/// Kinds of objects.
#[derive(Clone, Copy)]
enum Is {
    Private,
    Public,
    Secret,
}

impl Is {
    fn class(self) -> ObjectClass {
        match self {
            Self::Private => ObjectClass::PRIVATE_KEY,
            Self::Public => ObjectClass::PUBLIC_KEY,
            Self::Secret => ObjectClass::SECRET_KEY,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Private => "private key",
            Self::Public => "public key",
            Self::Secret => "AES key",
        }
    }
}

/// Why a call failed: for good, or so that another session may help.
enum Failed {
    Problem(Problem),
    Call(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Call(error)
    }
}

impl Token {
    /// The token of a configuration.
    ///
    /// # Errors
    /// The library cannot be loaded, it has no such token, or the token refuses the PIN.
    pub fn open(config: &Pkcs11) -> Result<Arc<dyn Vault>> {
        let token =
            Self { config: config.clone(), module: module(config)?, open: Mutex::new(None) };
        token.with(|_| Ok(()))?;
        Ok(Arc::new(token))
    }

    fn problem(&self, what: impl std::fmt::Display) -> Problem {
        let text =
            format!("token {:?} of {}: {what}", self.config.token, self.config.module.display());
        Kind::Vault.because(text).retry_after(5)
    }

    fn slot(&self) -> Result<Slot> {
        let cannot = |error: Error| self.problem(error);
        let mut others = Vec::new();
        for slot in self.module.get_slots_with_initialized_token().map_err(cannot)? {
            // Another token's slot may be empty by now.
            let Ok(info) = self.module.get_token_info(slot) else { continue };
            if info.label() == self.config.token {
                return Ok(slot);
            }
            others.push(info.label().to_owned());
        }
        Err(self.problem(format!("it is not there; there are {others:?}")))
    }

    fn session(&self) -> Result<Open> {
        let pin = private_text(&self.config.pin_file)?;
        let pin = Zeroizing::new(pin.trim().to_owned());
        let digest = sha256(pin.as_bytes());
        let mut pins = PINS.lock().unwrap_or_else(PoisonError::into_inner);
        let of = (self.config.module.clone(), self.config.token.clone());
        let known = pins.get(&of).copied();
        let wrong = format!("it refuses the PIN in {}", self.config.pin_file.display());
        if known == Some((digest, false)) {
            let text = format!("{wrong}; it is not tried again until the file changes");
            return Err(self.problem(text));
        }
        let cannot = |error: Error| self.problem(error);
        let session = self.module.open_rw_session(self.slot()?).map_err(cannot)?;
        match session.login(UserType::User, Some(&AuthPin::new(String::clone(&pin).into()))) {
            Ok(()) => {}
            // The token compares no PIN while this process is logged in.
            Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _))
                if known == Some((digest, true)) => {}
            Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => {
                let text = format!(
                    "the PIN in {} is another one than it took, which shows at the next start",
                    self.config.pin_file.display()
                );
                return Err(self.problem(text));
            }
            Err(Error::Pkcs11(
                RvError::PinIncorrect | RvError::PinLenRange | RvError::PinLocked,
                _,
            )) => {
                pins.insert(of, (digest, false));
                return Err(self.problem(wrong));
            }
            Err(error) => return Err(cannot(error)),
        }
        pins.insert(of, (digest, true));
        Ok(Open { session, found: BTreeMap::new() })
    }

    /// Makes calls in the session; once more in another one if they fail.
    fn with<T>(&self, mut calls: impl FnMut(&mut Open) -> Result<T, Failed>) -> Result<T> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut failed = None;
        for _ in 0..2 {
            let mut session = match open.take() {
                Some(session) => session,
                None => self.session()?,
            };
            match calls(&mut session) {
                Ok(result) => {
                    *open = Some(session);
                    return Ok(result);
                }
                Err(Failed::Problem(problem)) => {
                    *open = Some(session);
                    return Err(problem);
                }
                Err(Failed::Call(error)) => failed = Some(error),
            }
        }
        Err(failed.map_or_else(|| self.problem("no answer"), |error| self.problem(error)))
    }

    /// The object with this label; `None` without one.
    fn look(&self, open: &mut Open, label: &str, is: Is) -> Result<Option<ObjectHandle>, Failed> {
        let key = (label.to_owned(), is as u8);
        if let Some(handle) = open.found.get(&key) {
            return Ok(Some(*handle));
        }
        let template = [Attribute::Class(is.class()), Attribute::Label(label.as_bytes().to_vec())];
        let found = open.session.find_objects(&template)?;
        if found.len() > 1 {
            let text =
                format!("it has {} {}s labelled {label:?}: expected one", found.len(), is.name());
            return Err(Failed::Problem(self.problem(text)));
        }
        let handle = found.first().copied();
        if let Some(handle) = handle {
            open.found.insert(key, handle);
        }
        Ok(handle)
    }

    fn find(&self, open: &mut Open, label: &str, is: Is) -> Result<ObjectHandle, Failed> {
        self.look(open, label, is)?.ok_or_else(|| {
            let text = format!(
                "it has no {} labelled {label:?}: `shef-verifierd token-keys` makes it",
                is.name()
            );
            Failed::Problem(self.problem(text))
        })
    }
}

/// Loads and initialises a library, once.
fn module(config: &Pkcs11) -> Result<Module> {
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(module) = modules.get(&config.module) {
        return Ok(module.clone());
    }
    let cannot = |error: Error| {
        Kind::Vault
            .because(format!("the library {} of the token: {error}", config.module.display()))
    };
    let module = Module::new(&config.module).map_err(cannot)?;
    module.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)).map_err(cannot)?;
    modules.insert(config.module.clone(), module.clone());
    Ok(module)
}

/// The point in the attribute of a public key: an octet string in DER, or the bare point.
fn point(attribute: &[u8]) -> Option<PublicKey> {
    let bytes = match attribute {
        [0x04, 0x41, point @ ..] if point.len() == 65 => point,
        bare => bare,
    };
    PublicKey::from_bytes(bytes).ok()
}

impl Vault for Token {
    fn public_key(&self, label: &str) -> Result<PublicKey> {
        self.with(|open| {
            let handle = self.find(open, label, Is::Public)?;
            let found = open.session.get_attributes(handle, &[AttributeType::EcPoint])?;
            let key = found.iter().find_map(|attribute| match attribute {
                Attribute::EcPoint(bytes) => point(bytes),
                _ => None,
            });
            let bad = || self.problem(format!("the key pair {label:?} is none on P-256"));
            key.ok_or_else(|| Failed::Problem(bad()))
        })
    }

    fn sign(&self, label: &str, message: &[u8]) -> Result<[u8; 64]> {
        let digest = sha256(message);
        let signature = self.with(|open| {
            let key = self.find(open, label, Is::Private)?;
            Ok(open.session.sign(&Mechanism::Ecdsa, key, &digest)?)
        })?;
        signature
            .try_into()
            .map_err(|_| self.problem("a signature of another length than 64 bytes"))
    }

    fn seal(&self, label: &str, key: &[u8; 32]) -> Result<Vec<u8>> {
        let iv: [u8; IV] = random();
        let sealed = self.with(|open| {
            let own = self.find(open, label, Is::Secret)?;
            let mut iv = iv;
            let parameters = GcmParams::new(&mut iv, AAD, (TAG as u64 * 8).into())?;
            Ok(open.session.encrypt(&Mechanism::AesGcm(parameters), own, key)?)
        })?;
        let sealed = [&iv[..], &sealed].concat();
        // What cannot be opened again would be lost.
        if *self.open(label, &sealed)? != *key {
            return Err(self.problem(format!("the key {label:?} does not open what it sealed")));
        }
        Ok(sealed)
    }

    fn open(&self, label: &str, sealed: &[u8]) -> Result<Zeroizing<[u8; 32]>> {
        let Some((iv, sealed)) = sealed.split_first_chunk::<IV>() else {
            return Err(self.problem("what is to be opened is too short"));
        };
        let plain = self.with(|open| {
            let own = self.find(open, label, Is::Secret)?;
            let mut iv = *iv;
            let parameters = GcmParams::new(&mut iv, AAD, (TAG as u64 * 8).into())?;
            Ok(Zeroizing::new(open.session.decrypt(&Mechanism::AesGcm(parameters), own, sealed)?))
        })?;
        let mut key = Zeroizing::new([0; 32]);
        if plain.len() != key.len() {
            return Err(self.problem("what it opened has not 32 bytes"));
        }
        key.copy_from_slice(&plain);
        Ok(key)
    }

    fn make(&self, pair: Option<&str>, seals: Option<&str>) -> Result<Vec<String>> {
        self.with(|open| {
            let mut made = Vec::new();
            if let Some(label) = pair
                && self.look(open, label, Is::Private)?.is_none()
            {
                let (id, label_bytes) = (random::<16>().to_vec(), label.as_bytes().to_vec());
                let both =
                    [Attribute::Token(true), Attribute::Label(label_bytes), Attribute::Id(id)];
                let public = [
                    &both[..],
                    &[
                        Attribute::Private(false),
                        Attribute::Verify(true),
                        Attribute::EcParams(P256.to_vec()),
                    ],
                ]
                .concat();
                let private = [
                    &both[..],
                    &[
                        Attribute::Private(true),
                        Attribute::Sensitive(true),
                        Attribute::Extractable(false),
                        Attribute::Sign(true),
                    ],
                ]
                .concat();
                open.session.generate_key_pair(&Mechanism::EccKeyPairGen, &public, &private)?;
                made.push(label.to_owned());
            }
            if let Some(label) = seals
                && self.look(open, label, Is::Secret)?.is_none()
            {
                let template = [
                    Attribute::Token(true),
                    Attribute::Label(label.as_bytes().to_vec()),
                    Attribute::Id(random::<16>().to_vec()),
                    Attribute::KeyType(KeyType::AES),
                    Attribute::ValueLen(32u64.into()),
                    Attribute::Private(true),
                    Attribute::Sensitive(true),
                    Attribute::Extractable(false),
                    Attribute::Encrypt(true),
                    Attribute::Decrypt(true),
                ];
                open.session.generate_key(&Mechanism::AesKeyGen, &template)?;
                made.push(label.to_owned());
            }
            Ok(made)
        })
    }
}
