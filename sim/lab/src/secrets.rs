//! The keys of a session, derived again from what its owner drew.
//!
//! The owner's library never shows a session's keys. They follow from the Load Key's randomness, so
//! a test that records its own owner's draws can compute them, and check with other tools what was
//! sealed.

use shef_proto::config::Config;
use shef_proto::entropy::Entropy;
use shef_proto::hpke_suite::PublicKey;
use shef_proto::load::{
    LoadError, MASTER_LEN, Message, SessionKeys, first_epochs, seal_load_key_of,
};

/// A source of randomness that records its output.
pub struct Drawn<E> {
    source: E,
    /// Everything drawn so far.
    pub bytes: Vec<u8>,
}

impl<E: Entropy> Drawn<E> {
    /// Draws from `source`.
    pub fn new(source: E) -> Self {
        // One allocation: no copies stay behind in freed memory.
        Self { source, bytes: Vec::with_capacity(256) }
    }
}

impl<E: Entropy> Entropy for Drawn<E> {
    fn fill(&mut self, out: &mut [u8]) {
        self.source.fill(out);
        self.bytes.extend_from_slice(out);
    }

    fn is_seeded(&self) -> bool {
        self.source.is_seeded()
    }
}

/// Draws the same bytes again.
pub struct Again<'a>(pub &'a [u8]);

impl Entropy for Again<'_> {
    fn fill(&mut self, out: &mut [u8]) {
        let (head, tail) = self.0.split_at(out.len());
        out.copy_from_slice(head);
        self.0 = tail;
    }
}

/// The keys of the session that begins with `load_key`, sent to the Shield with the public key
/// `shield`. `drawn` is what the owner drew for it, and `released` the master key that a verifier
/// service released in place of the first draw. All regions begin at epoch 1.
///
/// # Errors
/// [`LoadError::Confirmation`] if these inputs give another Load Key.
pub fn session_keys(
    config: &Config,
    shield: &PublicKey,
    load_key: &[u8],
    drawn: &[u8],
    released: Option<&[u8; MASTER_LEN]>,
) -> Result<SessionKeys, LoadError> {
    let info = Message::from_bytes(load_key)?.info;
    let (master, seed) = match (released, drawn.split_first_chunk()) {
        (Some(released), _) => (released, drawn),
        (None, Some((master, seed))) => (master, seed),
        (None, None) => return Err(LoadError::Confirmation),
    };
    let epochs = first_epochs(config, 1);
    let (message, keys) =
        seal_load_key_of(master, config, shield, &info, &epochs, &mut Again(seed))?;
    if message == load_key { Ok(keys) } else { Err(LoadError::Confirmation) }
}
