//! The simulated card, and the manufacturer that makes and certifies it.

pub use crate::manufacturer::Manufacturer;
pub use shef_card::*;

use shef_proto::cert::{Certificate, NO_CLOCK, NO_END, issue_device_id, issue_root};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::Entropy;
use zeroize::Zeroizing;

use crate::{DeviceError, SdkError, SystemEntropy};

/// Makes a card around `engine`, with a temporary manufacturer.
pub(crate) fn open(engine: Engine) -> Result<Card, SdkError> {
    let mut entropy = SystemEntropy::new()?;
    let ca = SigningKey::generate(&mut entropy);
    let root = Certificate::parse(&issue_root(
        &ca,
        "throw-away simulated manufacturer",
        NO_CLOCK,
        NO_END,
    ))?;
    let mut blank = Blank::new(CardOptions::new(engine), &mut |_| {}).map_err(DeviceError::from)?;
    let mut uds = Zeroizing::new([0; 32]);
    entropy.fill(&mut uds[..]);
    let key = blank.burn(uds);
    Ok(blank.finish(issue_device_id(&ca, &root, &key, NO_CLOCK)).map_err(DeviceError::from)?)
}
