//! AES-256-GCM over one direction of the channel.

use alloc::boxed::Box;

use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes256Gcm, KeyInit, Nonce, Tag};
use zeroize::Zeroizing;

use super::{MESSAGE_LEN, PLAINTEXT_LEN, Sealed};
use crate::crypto::scrub::{CIPHER, scrubbed};
use crate::load::Key;

/// One direction of the channel. Its key stays in one place.
pub(super) struct Direction(Box<Aes256Gcm>);

impl Direction {
    pub(super) fn new(key: &Key) -> Self {
        scrubbed::<CIPHER, _>(|| {
            Self(Box::new(
                Aes256Gcm::new_from_slice(key.expose()).expect("channel keys have 32 bytes"),
            ))
        })
    }

    fn iv(seq: u64) -> [u8; 12] {
        let mut iv = [0; 12];
        iv[4..].copy_from_slice(&seq.to_be_bytes());
        iv
    }

    pub(super) fn seal(&self, seq: u64, plaintext: &[u8; PLAINTEXT_LEN]) -> Sealed {
        let mut m = [0; MESSAGE_LEN];
        m[..8].copy_from_slice(&seq.to_be_bytes());
        m[8..72].copy_from_slice(plaintext);
        let iv = Nonce::from(Self::iv(seq));
        let tag = scrubbed::<CIPHER, _>(|| {
            self.0.encrypt_inout_detached(&iv, &[], (&mut m[8..72]).into())
        })
        .expect("64 bytes are within GCM's limit");
        m[72..].copy_from_slice(&tag);
        m
    }

    pub(super) fn open(&self, m: &Sealed) -> Option<(u64, Zeroizing<[u8; PLAINTEXT_LEN]>)> {
        let mut seq = [0; 8];
        seq.copy_from_slice(&m[..8]);
        let seq = u64::from_be_bytes(seq);
        let mut plaintext = Zeroizing::new([0; PLAINTEXT_LEN]);
        plaintext.copy_from_slice(&m[8..72]);
        let mut tag = Tag::default();
        tag.copy_from_slice(&m[72..]);
        let iv = Nonce::from(Self::iv(seq));
        scrubbed::<CIPHER, _>(|| {
            self.0.decrypt_inout_detached(&iv, &[], (&mut plaintext[..]).into(), &tag)
        })
        .ok()?;
        Some((seq, plaintext))
    }
}
