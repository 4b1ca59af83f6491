//! AES-GCM with one of two equivalent implementations: RustCrypto, which runs everywhere, or aws-lc
//! (feature `aws-lc`), which is faster in bulk.

use alloc::boxed::Box;

use shef_proto::config::TAG_LEN;
use shef_proto::load::Key;

#[cfg(feature = "aws-lc")]
pub(crate) use lc::Aes;
#[cfg(not(feature = "aws-lc"))]
pub(crate) use rust::Aes;

/// A 16-byte tag.
pub type ChunkTag = [u8; TAG_LEN as usize];

#[cfg(any(not(feature = "aws-lc"), test))]
pub(crate) mod rust {
    use super::{Box, ChunkTag, Key};
    use aes_gcm::aead::AeadInOut;
    use aes_gcm::{Aes128Gcm, Aes256Gcm, KeyInit, Nonce, Tag};
    use shef_proto::crypto::scrub::{CIPHER, scrubbed};

    /// An expanded key; erased when dropped.
    pub(crate) enum Aes {
        A128(Aes128Gcm),
        A256(Aes256Gcm),
    }

    impl Aes {
        pub(crate) fn new(key: &Key) -> Box<Self> {
            let key = key.expose();
            scrubbed::<CIPHER, _>(|| {
                Box::new(match Aes128Gcm::new_from_slice(key) {
                    Ok(aes) => Self::A128(aes),
                    Err(_) => Self::A256(
                        Aes256Gcm::new_from_slice(key).expect("a key has 16 or 32 bytes"),
                    ),
                })
            })
        }

        pub(crate) fn seal(&self, iv: [u8; 12], aad: &[u8], data: &mut [u8]) -> ChunkTag {
            let iv = Nonce::from(iv);
            scrubbed::<CIPHER, _>(|| match self {
                Self::A128(a) => a.encrypt_inout_detached(&iv, aad, data.into()),
                Self::A256(a) => a.encrypt_inout_detached(&iv, aad, data.into()),
            })
            .expect("a chunk is within GCM's limit")
            .into()
        }

        pub(crate) fn open(
            &self,
            iv: [u8; 12],
            aad: &[u8],
            data: &mut [u8],
            tag: &ChunkTag,
        ) -> bool {
            let (iv, tag) = (Nonce::from(iv), Tag::from(*tag));
            scrubbed::<CIPHER, _>(|| match self {
                Self::A128(a) => a.decrypt_inout_detached(&iv, aad, data.into(), &tag),
                Self::A256(a) => a.decrypt_inout_detached(&iv, aad, data.into(), &tag),
            })
            .is_ok()
        }

        pub(crate) fn seal_into(&self, iv: [u8; 12], plain: &[u8], sealed: &mut [u8]) -> ChunkTag {
            sealed.copy_from_slice(plain);
            self.seal(iv, &[], sealed)
        }

        pub(crate) fn open_into(
            &self,
            iv: [u8; 12],
            sealed: &[u8],
            tag: &ChunkTag,
            plain: &mut [u8],
        ) -> bool {
            plain.copy_from_slice(sealed);
            self.open(iv, &[], plain, tag)
        }
    }
}

#[cfg(feature = "aws-lc")]
pub(crate) mod lc {
    use super::{Box, ChunkTag, Key};
    use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

    /// An expanded key; erased when dropped.
    pub(crate) struct Aes(LessSafeKey);

    impl Aes {
        pub(crate) fn new(key: &Key) -> Box<Self> {
            let key = key.expose();
            let algorithm = if key.len() == 16 { &AES_128_GCM } else { &AES_256_GCM };
            Box::new(Self(LessSafeKey::new(
                UnboundKey::new(algorithm, key).expect("a key has 16 or 32 bytes"),
            )))
        }

        pub(crate) fn seal(&self, iv: [u8; 12], aad: &[u8], data: &mut [u8]) -> ChunkTag {
            let tag = self.0.seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(iv),
                Aad::from(aad),
                data,
            );
            let tag = tag.expect("a chunk is within GCM's limit");
            ChunkTag::try_from(tag.as_ref()).expect("a tag has 16 bytes")
        }

        pub(crate) fn open(
            &self,
            iv: [u8; 12],
            aad: &[u8],
            data: &mut [u8],
            tag: &ChunkTag,
        ) -> bool {
            // A failed open overwrites its buffer, but our callers need the data unchanged.
            let mut plain = zeroize::Zeroizing::new(alloc::vec![0; data.len()]);
            let result = self.0.open_separate_gather(
                Nonce::assume_unique_for_key(iv),
                Aad::from(aad),
                data,
                tag,
                &mut plain,
            );
            if result.is_ok() {
                data.copy_from_slice(&plain);
            }
            result.is_ok()
        }

        pub(crate) fn seal_into(&self, iv: [u8; 12], plain: &[u8], sealed: &mut [u8]) -> ChunkTag {
            let mut tag = [0; 16];
            self.0
                .seal_out_of_place_scatter(
                    Nonce::assume_unique_for_key(iv),
                    Aad::empty(),
                    plain,
                    sealed,
                    &[],
                    &mut tag,
                )
                .expect("a chunk is within GCM's limit, and both buffers have its length");
            tag
        }

        pub(crate) fn open_into(
            &self,
            iv: [u8; 12],
            sealed: &[u8],
            tag: &ChunkTag,
            plain: &mut [u8],
        ) -> bool {
            self.0
                .open_separate_gather(
                    Nonce::assume_unique_for_key(iv),
                    Aad::empty(),
                    sealed,
                    tag,
                    plain,
                )
                .is_ok()
        }
    }
}

#[cfg(all(test, feature = "aws-lc"))]
mod tests {
    use super::{Key, lc, rust};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_implementations_give_the_same_bytes(
            key in prop_oneof![prop::collection::vec(any::<u8>(), 16), prop::collection::vec(any::<u8>(), 32)],
            iv in any::<[u8; 12]>(),
            aad in prop::collection::vec(any::<u8>(), 0..64),
            data in prop::collection::vec(any::<u8>(), 0..5000),
            flip in any::<prop::sample::Index>(),
        ) {
            let key = Key::new(&key).unwrap();
            let (a, b) = (rust::Aes::new(&key), lc::Aes::new(&key));
            let (mut x, mut y) = (data.clone(), data.clone());
            let tag = a.seal(iv, &aad, &mut x);
            prop_assert_eq!(tag, b.seal(iv, &aad, &mut y));
            prop_assert_eq!(&x, &y);
            let mut out = vec![0; data.len()];
            prop_assert_eq!(a.seal_into(iv, &data, &mut out), b.seal_into(iv, &data, &mut y));
            prop_assert_eq!(&out, &y);

            prop_assert!(b.open(iv, &aad, &mut x, &tag));
            prop_assert_eq!(&x, &data);
            // Both reject a changed tag and leave the data unchanged.
            let mut wrong = tag;
            wrong[flip.index(16)] ^= 1;
            for opened in [a.open(iv, &aad, &mut x, &wrong), b.open(iv, &aad, &mut x, &wrong)] {
                prop_assert!(!opened);
                prop_assert_eq!(&x, &data);
            }
            let tag = a.seal_into(iv, &data, &mut out);
            prop_assert!(b.open_into(iv, &out, &tag, &mut y) && a.open_into(iv, &out, &tag, &mut x));
            prop_assert_eq!((&x, &y), (&data, &data));
        }
    }
}
