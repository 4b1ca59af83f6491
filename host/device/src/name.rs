//! Finding a card by its ueid.

use shef_proto::cert::{Certificate, ueid_of};
use shef_proto::mailbox::{Answer, Request};

use crate::{Device, DeviceError, Ueid};

impl Ueid {
    /// Requests a device's certificates from its Security Kernel, and computes the ueid from the
    /// DeviceID key's certificate. Does not verify them.
    ///
    /// # Errors
    /// [`DeviceError::NoIdentity`] if they are not certificates, and the device's errors.
    pub fn of<D: Device + ?Sized>(device: &mut D) -> Result<Self, DeviceError> {
        let none = |reason: String| DeviceError::NoIdentity { reason };
        let answer = device.kernel_call(&Request::Certificates.encode())?;
        let answer = Answer::decode(&answer)
            .and_then(Answer::into_result)
            .map_err(|e| none(e.to_string()))?;
        let Answer::Certificates(chain) = answer else {
            return Err(none("the answer is to another request".to_owned()));
        };
        // The AK's certificate, then that of the DeviceID key, which issued it.
        let device_id = chain
            .get(1)
            .ok_or_else(|| none(format!("{} certificates, expected 2", chain.len())))?;
        let device_id = Certificate::parse(device_id).map_err(|e| none(e.to_string()))?;
        Ok(Self(ueid_of(device_id.key())))
    }
}

/// Reads the ueid of every card and keeps the card with the requested one; `cards` opens them one
/// at a time, and names them.
///
/// # Errors
/// [`DeviceError::NoSuchCard`] with the results of all other cards, [`DeviceError::TwoCards`].
pub fn find<D: Device>(
    ueid: &Ueid,
    cards: impl IntoIterator<Item = (String, Result<D, DeviceError>)>,
) -> Result<D, DeviceError> {
    let mut found: Option<(String, D)> = None;
    let mut others = Vec::new();
    for (name, card) in cards {
        match card.and_then(|mut card| Ok((Ueid::of(&mut card)?, card))) {
            Ok((said, card)) if said == *ueid => match found {
                Some((first, _)) => {
                    return Err(DeviceError::TwoCards { ueid: *ueid, first, second: name });
                }
                None => found = Some((name, card)),
            },
            Ok((said, _)) => others.push(format!("{name} is {said}")),
            Err(error) => {
                others.push(format!("{name} could not be read: {} {error}", error.code()));
            }
        }
    }
    if others.is_empty() {
        others.push("there is no other card".to_owned());
    }
    found
        .map(|(_, card)| card)
        .ok_or_else(|| DeviceError::NoSuchCard { ueid: *ueid, others: others.join("; ") })
}
