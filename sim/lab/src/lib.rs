//! Fixtures for tests and the demo: the parties, a card in a dishonest host, the digits, and every
//! attack.
//!
//! | module | contents |
//! |---|---|
//! | [`world`] | the parties, each with its keys, and the cards that they use |
//! | [`tap`] | a device that reads, changes and drops messages |
//! | [`probe`] | observation and fault injection beside a simulated card |
//! | [`secrets`] | the keys of a session, derived again from what its owner drew |
//! | [`attacks`] | attacks, and the checks that refuse them |
//! | [`data`], [`knn`], [`mod@reference`] | digits, the accelerator's jobs, and the results of a CPU |
//!
//! Nothing here is part of a production build: `host/` and `attestation/` do not depend on `sim/`.

pub mod attacks;
mod buffers;
pub mod probe;
pub mod secrets;
pub mod tap;
pub mod world;

pub use buffers::Buffers;
pub use shef_workloads::digits::{data, knn, reference};

use shef_card::{Blank, Card, CardOptions};
use shef_proto::cert::{Certificate, NO_CLOCK, NO_END, issue_device_id, issue_root};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::Entropy;

/// Makes a card with a temporary manufacturer, for tests that appraise nothing.
///
/// # Errors
/// Errors of the card, as text with their code.
pub fn card(options: CardOptions) -> Result<Card, shef::SdkError> {
    let mut entropy = shef::SystemEntropy::new()?;
    let ca = SigningKey::generate(&mut entropy);
    let root = issue_root(&ca, "throw-away simulated manufacturer", NO_CLOCK, NO_END);
    let root = Certificate::parse(&root)?;
    let mut blank = Blank::new(options, &mut |_| {}).map_err(shef::DeviceError::from)?;
    let mut secret = Box::new([0; 32]);
    entropy.fill(&mut secret[..]);
    let key = blank.burn((*secret).into());
    let certificate = issue_device_id(&ca, &root, &key, NO_CLOCK);
    Ok(blank.finish(certificate).map_err(shef::DeviceError::from)?)
}
