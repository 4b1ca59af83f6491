//! The ueid: a name that stays with a card when it moves to another slot.

use std::fmt;
use std::str::FromStr;

use shef_proto::cert::UEID_LEN;

/// A device's claim of its ueid: type 0x01 and the digest of its DeviceID key. A hint for finding a
/// card again: evidence proves the ueid, and a policy can require it (`devices`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ueid(pub(crate) [u8; UEID_LEN]);

impl fmt::Display for Ueid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Ueid {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "a ueid is 66 hexadecimal digits that start with 01";
        let mut bytes = [0; UEID_LEN];
        if text.len() != 2 * UEID_LEN || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(FORM);
        }
        for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| FORM)?;
        }
        if bytes[0] == 1 { Ok(Self(bytes)) } else { Err(FORM) }
    }
}
