//! Challenges. A session is a signed token: creating one writes nothing, so a flood of sessions
//! costs nothing.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD as B64};
use shef_proto::cbor::{self, Fields, Limits, Value};
use shef_proto::evidence::{Layer, NONCE_MAX, NONCE_MIN};
use shef_proto::hpke_suite::PublicKey;

use crate::problem::{Because, Kind, Result};
use crate::secrets::{Kek, random};

/// Default length of a nonce in bytes: 64 characters of base64 without padding.
pub const NONCE_LEN: usize = 48;
const MAX_TOKEN: usize = 1024;
/// Seconds for which the service remembers a relying party's own nonce.
const OWN_NONCE: i64 = 24 * 3600;
const LABEL: &str = "shef-session/2";

/// A nonce whose base64 text is the same in the standard and in the URL alphabet: no character 62
/// or 63. Each group of three bytes is redrawn until it has neither; this loses 0.046 bit of every
/// six.
#[must_use]
pub fn draw_nonce(len: usize) -> Vec<u8> {
    let mut nonce = Vec::with_capacity(len + 2);
    while nonce.len() < len {
        let group: [u8; 3] = random();
        let take = (len - nonce.len()).min(3);
        if !STANDARD.encode(&group[..take]).contains(['+', '/']) {
            nonce.extend_from_slice(&group[..take]);
        }
    }
    nonce
}

/// The protocol of a session. A session is valid in its own protocol only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `/v1`.
    Native,
    /// Veraison's challenge-response.
    Veraison,
    /// The KBS of Confidential Containers.
    Kbs,
}

impl Protocol {
    const ALL: [Self; 3] = [Self::Native, Self::Veraison, Self::Kbs];

    /// Name in tokens.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Veraison => "veraison",
            Self::Kbs => "kbs",
        }
    }
}

/// An open challenge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Random; identifies the used session (the nonce does not).
    pub id: [u8; 16],
    /// Its protocol.
    pub protocol: Protocol,
    /// Tenant.
    pub tenant: String,
    /// Layer of the expected evidence; `None` if the evidence names it (other services' protocols),
    /// and then no key is released.
    pub layer: Option<Layer>,
    /// The nonce.
    pub nonce: Vec<u8>,
    /// Whether this service drew the nonce. A nonce from the client says nothing about when the
    /// evidence was made.
    pub drawn: bool,
    /// Creation time, seconds since 1970.
    pub issued: i64,
    /// Expiry, seconds since 1970.
    pub expires: i64,
    /// The owner's one-time key that data keys are sealed to.
    pub recipient: Option<PublicKey>,
}

impl Session {
    /// A session from `now` on, for evidence of any layer, with a nonce that this service has
    /// drawn.
    #[must_use]
    pub fn new(protocol: Protocol, tenant: &str, nonce: Vec<u8>, now: i64, seconds: i64) -> Self {
        let (issued, expires) = (now, now + seconds);
        Self {
            id: random(),
            protocol,
            tenant: tenant.into(),
            layer: None,
            nonce,
            drawn: true,
            issued,
            expires,
            recipient: None,
        }
    }

    /// The signed token: CBOR and its HMAC in base64url.
    #[must_use]
    pub fn token(&self, kek: &Kek) -> String {
        let mut bytes = Value::Array(vec![
            LABEL.into(),
            self.protocol.name().into(),
            self.id.as_slice().into(),
            self.tenant.as_str().into(),
            self.layer.map_or(Value::Null, |layer| layer.name().into()),
            self.nonce.as_slice().into(),
            Value::Bool(self.drawn),
            Value::int(self.issued),
            Value::int(self.expires),
            self.recipient.as_ref().map_or(Value::Null, |key| key.as_bytes().into()),
        ])
        .encode();
        let mac = kek.session_mac(&bytes);
        bytes.extend_from_slice(&mac);
        B64.encode(bytes)
    }

    /// Opens a token of this protocol and tenant. Does not check its expiry: see
    /// [`Session::is_open`].
    ///
    /// # Errors
    /// The token was altered, is of another protocol or tenant, or was made under another KEK.
    pub fn open(kek: &Kek, protocol: Protocol, tenant: &str, token: &str) -> Result<Self> {
        let session = (token.len() <= MAX_TOKEN).then(|| Self::read(kek, token)).flatten();
        // The same error for both: a stranger learns nothing about other tenants.
        let session = session.filter(|session| session.tenant == tenant).ok_or_else(|| {
            Kind::Session.because("the token is not one that this service gave to this tenant")
        })?;
        if session.protocol != protocol {
            let (found, expected) = (session.protocol.name(), protocol.name());
            return Err(Kind::Session.because(format!(
                "the session was made for another protocol: {found}, expected {expected}"
            )));
        }
        Ok(session)
    }

    fn read(kek: &Kek, token: &str) -> Option<Self> {
        let bytes = B64.decode(token).ok()?;
        let (body, mac) = bytes.split_last_chunk::<32>()?;
        if !kek.session_verify(body, mac) {
            return None;
        }
        let Value::Array(items) = cbor::read(body, &Limits::bytes(MAX_TOKEN)).ok()? else {
            return None;
        };
        let mut f = Fields::of_places(items, "session");
        if f.text(0, 0..=32).ok()? != LABEL {
            return None;
        }
        let name = f.text(1, 1..=16).ok()?;
        let protocol = Protocol::ALL.into_iter().find(|protocol| protocol.name() == name)?;
        let id = f.bytes(2, 16..=16).ok()?.try_into().ok()?;
        let tenant = f.text(3, 1..=64).ok()?.into();
        let layer = match f.take(4).ok()? {
            Value::Null => None,
            Value::Text(name) => Some(Layer::from_name(name)?),
            _ => return None,
        };
        let nonce = f.bytes(5, NONCE_MIN..=NONCE_MAX).ok()?.into();
        let Value::Bool(drawn) = f.take(6).ok()? else { return None };
        let issued = f.take(7).ok()?.as_int()?;
        let expires = f.take(8).ok()?.as_int()?;
        let recipient = match f.take(9).ok()? {
            Value::Null => None,
            Value::Bytes(key) => Some(PublicKey::from_bytes(key).ok()?),
            _ => return None,
        };
        f.finish().ok()?;
        Some(Self { id, protocol, tenant, layer, nonce, drawn, issued, expires, recipient })
    }

    /// The layer of a session of the native API.
    ///
    /// # Errors
    /// The session was made for another service's protocol.
    pub fn layer(&self) -> Result<Layer> {
        self.layer.ok_or_else(|| Kind::Session.because("the session was made for another protocol"))
    }

    /// Checks that the session has not expired.
    ///
    /// # Errors
    /// It has.
    pub fn is_open(&self, now: i64) -> Result<()> {
        if now < self.expires {
            return Ok(());
        }
        Err(Kind::SessionExpired
            .because(format!("the session ended {} seconds ago", now - self.expires)))
    }
}

/// The nonce that evidence must carry, and its origin.
#[derive(Clone, Debug)]
pub struct Challenge {
    /// The nonce.
    pub nonce: Vec<u8>,
    /// The token that is used up with it. No two sessions share one, and neither do two identities'
    /// own nonces.
    pub token: Vec<u8>,
    /// Expiry, seconds since 1970.
    pub expires: i64,
    /// Seconds since 1970 until which its use, and the data kept with it, are remembered.
    pub remembered: i64,
    /// When this service drew the nonce. `None`: another party did, at an unknown time, so it does
    /// not count as fresh for any rule or device record.
    pub drawn: Option<i64>,
}

impl Challenge {
    /// The challenge of a session.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        Self {
            nonce: session.nonce.clone(),
            token: [b"session:", &session.id[..]].concat(),
            expires: session.expires,
            remembered: session.expires,
            drawn: session.drawn.then_some(session.issued),
        }
    }

    /// An identity's own nonce.
    #[must_use]
    pub fn own(who: &str, nonce: Vec<u8>, now: i64) -> Self {
        let expires = now + OWN_NONCE;
        let token = [b"own:", who.as_bytes(), b":", &nonce].concat();
        Self { nonce, token, expires, remembered: expires, drawn: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_read_the_same_in_both_alphabets() {
        for len in [32, 33, 34, 48, 64] {
            for _ in 0..200 {
                let nonce = draw_nonce(len);
                assert_eq!(nonce.len(), len);
                let text = STANDARD.encode(&nonce);
                assert!(!text.contains(['+', '/']), "{text}");
                assert_eq!(text.trim_end_matches('='), B64.encode(&nonce));
            }
        }
        assert_eq!(STANDARD.encode(draw_nonce(NONCE_LEN)).len(), 64);
        assert!(!STANDARD.encode(draw_nonce(NONCE_LEN)).contains('='));
    }

    #[test]
    fn tokens_are_bound() {
        let kek = Kek::new(&[1; 32]);
        let key = *crate::secrets::Signer::new(&[9; 32], Vec::new()).unwrap().public_key();
        for recipient in [None, Some(key)] {
            let session = Session {
                layer: Some(Layer::Shield),
                recipient,
                ..Session::new(Protocol::Native, "a", draw_nonce(48), 1, 99)
            };
            let token = session.token(&kek);
            assert_eq!(Session::open(&kek, Protocol::Native, "a", &token).unwrap(), session);
            assert_eq!(
                Session::open(&kek, Protocol::Native, "b", &token).unwrap_err().kind,
                Kind::Session
            );
            assert_eq!(
                Session::open(&Kek::new(&[2; 32]), Protocol::Native, "a", &token).unwrap_err().kind,
                Kind::Session
            );
            for other in [Protocol::Veraison, Protocol::Kbs] {
                assert_eq!(
                    Session::open(&kek, other, "a", &token).unwrap_err().kind,
                    Kind::Session
                );
            }
            let bytes = B64.decode(&token).unwrap();
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                assert_eq!(
                    Session::open(&kek, Protocol::Native, "a", &B64.encode(changed))
                        .unwrap_err()
                        .kind,
                    Kind::Session
                );
            }
            session.is_open(99).unwrap();
            assert_eq!(session.is_open(100).unwrap_err().kind, Kind::SessionExpired);
        }
        for text in ["", &"A".repeat(5000)] {
            assert!(Session::open(&kek, Protocol::Native, "a", text).is_err());
        }
    }
}
