//! A token of PKCS #11.
//!
//! One session, which calls take turns at. A call that fails opens another session and is tried once
//! more, and where that fails, the library is initialised anew: the token may have been away.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11 as Module};
use cryptoki::error::{Error, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::object::{Attribute, AttributeType, KeyType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, SessionState, UserType};
use cryptoki::slot::{Slot, TokenInfo};
use cryptoki::types::AuthPin;
use shef_proto::hpke_suite::PublicKey;
use zeroize::Zeroizing;

use super::pin::{Answer, Attempts, Known, Wrong};
use super::{Vault, unanswered};
use crate::config::Pkcs11;
use crate::problem::{Because, Kind, Problem, Result};
use crate::secrets::{private_text, random, sha256};

/// Length of the IV and of the tag of AES-GCM.
const IV: usize = 12;
const TAG: usize = 16;
/// What sealed KEKs are bound to.
const AAD: &[u8] = b"shef-verifierd KEK/1";
/// P-256, as the parameters of a key: its object identifier in DER.
const P256: [u8; 10] = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];

/// Libraries that this process has loaded and initialised. Calls hold one for reading: nothing may be
/// under way while it is initialised anew.
static MODULES: Mutex<BTreeMap<PathBuf, Library>> = Mutex::new(BTreeMap::new());

/// A library; none until it is initialised.
type Library = Arc<RwLock<Option<Module>>>;

/// A token, by its library and label.
type Name = (PathBuf, String);

/// What is known of the PIN of each token. Logins at one token take turns; one that hangs holds up no
/// other token.
static PINS: Mutex<BTreeMap<Name, Arc<Mutex<Known>>>> = Mutex::new(BTreeMap::new());

/// A session, and the objects that were found in it.
struct Open {
    session: Session,
    found: BTreeMap<(String, u8), ObjectHandle>,
}

/// A token.
pub struct Token {
    config: Pkcs11,
    library: Library,
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

/// Why a call failed: for good, or so that another session may help, or because the token is not there.
enum Failed {
    Problem(Problem),
    Absent(Problem),
    Call(Error),
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
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
        let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
        let library = Arc::clone(modules.entry(config.module.clone()).or_default());
        drop(modules);
        let token = Self { config: config.clone(), library, open: Mutex::new(None) };
        token.with(|_| Ok(()))?;
        Ok(Arc::new(token))
    }

    fn problem(&self, what: impl std::fmt::Display) -> Problem {
        let Pkcs11 { token, module, .. } = &self.config;
        unanswered(format!("token {token:?} of {}: {what}", module.display()))
    }

    fn slot(&self, module: &Module) -> Result<(Slot, TokenInfo), Failed> {
        let (mut found, mut others) = (Vec::new(), Vec::new());
        for slot in module.get_slots_with_initialized_token()? {
            // Another token's slot may be empty by now.
            match module.get_token_info(slot) {
                Ok(info) if info.label() == self.config.token => found.push((slot, info)),
                Ok(info) => others.push(info.label().to_owned()),
                Err(error) if unusable(&error) => return Err(error.into()),
                Err(_) => {}
            }
        }
        if found.len() > 1 {
            let text = format!("there are {} tokens with this label: expected one", found.len());
            return Err(Failed::Problem(self.problem(text)));
        }
        found.pop().ok_or_else(|| {
            Failed::Absent(self.problem(format!("it is not there; there are {others:?}")))
        })
    }

    fn session(&self, module: &Module) -> Result<Open, Failed> {
        let pin = private_text(&self.config.pin_file)?;
        let pin = Zeroizing::new(pin.trim().to_owned());
        let digest = sha256(pin.as_bytes());
        let name = (self.config.module.clone(), self.config.token.clone());
        let known = {
            let mut pins = PINS.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(pins.entry(name).or_default())
        };
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let wrong = |wrong: Wrong| {
            let (Pkcs11 { token, .. }, file) = (&self.config, self.config.pin_file.display());
            let problem =
                Kind::Pin.because("the token that holds the keys of this service is not usable");
            Problem { cause: Some(format!("token {token:?}, PIN in {file}: {wrong}")), ..problem }
        };
        let (slot, info) = self.slot(module)?;
        let session = module.open_rw_session(slot)?;
        let answer = if session.get_session_info()?.session_state() == SessionState::RwUser {
            Answer::Already
        } else {
            known.may_try(digest, attempts(&info)).map_err(wrong)?;
            login(&session, &pin)?
        };
        known.learn(digest, answer).map_err(wrong)?;
        Ok(Open { session, found: BTreeMap::new() })
    }

    /// Makes calls in the session; in another one if they fail, and once more after the library was
    /// initialised anew.
    fn with<T>(&self, mut calls: impl FnMut(&mut Open) -> Result<T, Failed>) -> Result<T> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let mut why = None;
        for _ in 0..3 {
            match self.once(&mut open, &mut calls) {
                Ok(result) => return Ok(result),
                Err(Failed::Problem(problem)) => return Err(problem),
                Err(Failed::Absent(problem)) => {
                    self.begin_anew();
                    why = Some(problem);
                }
                Err(Failed::Call(error)) => {
                    if unusable(&error) {
                        self.begin_anew();
                    }
                    why = Some(self.problem(error));
                }
            }
        }
        Err(why.unwrap_or_else(|| self.problem("no answer")))
    }

    fn once<T>(
        &self,
        open: &mut Option<Open>,
        calls: &mut impl FnMut(&mut Open) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        self.initialised()?;
        let library = self.library.read().unwrap_or_else(PoisonError::into_inner);
        let Some(module) = &*library else {
            return Err(Failed::Problem(self.problem("its library is not initialised")));
        };
        let mut session = match open.take() {
            Some(session) => session,
            None => self.session(module)?,
        };
        let result = calls(&mut session);
        if matches!(result, Ok(_) | Err(Failed::Problem(_))) {
            *open = Some(session);
        }
        result
    }

    /// Loads and initialises the library unless that was done.
    fn initialised(&self) -> Result<()> {
        if self.library.read().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Ok(());
        }
        let mut library = self.library.write().unwrap_or_else(PoisonError::into_inner);
        if library.is_none() {
            let path = &self.config.module;
            let cannot = |error: Error| {
                unanswered(format!("the library {} of the token: {error}", path.display()))
            };
            let module = Module::new(path).map_err(cannot)?;
            let locks = CInitializeFlags::OS_LOCKING_OK;
            module.initialize(CInitializeArgs::new(locks)).map_err(cannot)?;
            *library = Some(module);
        }
        Ok(())
    }

    /// Ends the library: the next call initialises it anew.
    fn begin_anew(&self) {
        let mut library = self.library.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = library.take()
            && let Err(error) = module.finalize()
        {
            tracing::warn!(%error, "the library of the token does not end");
        }
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

/// How many times a wrong PIN may still be tried.
fn attempts(info: &TokenInfo) -> Attempts {
    match (info.user_pin_locked(), info.user_pin_final_try()) {
        (true, _) => Attempts::Locked,
        (false, true) => Attempts::Last,
        (false, false) => Attempts::Left,
    }
}

fn login(session: &Session, pin: &Zeroizing<String>) -> Result<Answer, Error> {
    match session.login(UserType::User, Some(&AuthPin::new(String::clone(pin).into()))) {
        Ok(()) => Ok(Answer::Taken),
        Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(Answer::Already),
        Err(Error::Pkcs11(
            RvError::PinIncorrect | RvError::PinLenRange | RvError::PinLocked,
            _,
        )) => Ok(Answer::Refused),
        Err(error) => Err(error),
    }
}

/// Whether only a library that is initialised anew may find the token again.
fn unusable(error: &Error) -> bool {
    use RvError::{
        CryptokiNotInitialized, DeviceError, DeviceRemoved, FunctionFailed, GeneralError,
        TokenNotPresent, TokenNotRecognized,
    };
    matches!(
        error,
        Error::Pkcs11(
            CryptokiNotInitialized
                | DeviceError
                | DeviceRemoved
                | FunctionFailed
                | GeneralError
                | TokenNotPresent
                | TokenNotRecognized,
            _
        )
    )
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
