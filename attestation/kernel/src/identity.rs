//! The identity that the boot code hands over to the kernel.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use shef_proto::cbor::{self, CborError, Fields, Limits, Value};
use shef_proto::cert::UEID_LEN;
use shef_proto::cose::{MAX_X5CHAIN, SigningKey};
use shef_proto::evidence::{DebugState, NAME_MAX, RootOfTrust};
use shef_proto::hpke_suite::{PrivateKey, PublicKey};
use zeroize::{Zeroize, Zeroizing};

/// Maximum size of an identity in memory.
pub const IDENTITY_MAX: usize = 4092;

/// The boot code's output: keys and certificates of the measured kernel, and the measurement.
pub struct Identity {
    pub(crate) cdi: Zeroizing<[u8; 32]>,
    pub(crate) ak: SigningKey,
    pub(crate) certificates: Vec<Vec<u8>>,
    pub(crate) ueid: [u8; UEID_LEN],
    pub(crate) kernel_digest: [u8; 32],
    pub(crate) kernel_svn: u64,
    pub(crate) kernel_version: String,
    pub(crate) root_of_trust: RootOfTrust,
    pub(crate) target: String,
    pub(crate) debug_at_boot: DebugState,
}

impl Identity {
    /// Erases the kernel's secrets. It can no longer sign or derive.
    pub(crate) fn erase(&mut self) {
        self.cdi.zeroize();
        self.ak = SigningKey::derive(&[]);
    }

    /// The bytes that boot ROM and kernel exchange in memory: a CBOR map `{1: CDI, 2: attestation
    /// key, 3: its public key, 4: [certificates, leaf first], 5: ueid, 6: kernel digest, 7: SVN,
    /// 8: version, 9: root of trust, 10: target, 11: debug state}`.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let certificates = self.certificates.iter().map(|der| der.as_slice().into()).collect();
        Zeroizing::new(
            Value::map(vec![
                (1, self.cdi[..].into()),
                (2, self.ak.private_bytes()[..].into()),
                (3, self.ak.public_key().as_bytes()[..].into()),
                (4, Value::Array(certificates)),
                (5, self.ueid[..].into()),
                (6, self.kernel_digest[..].into()),
                (7, self.kernel_svn.into()),
                (8, self.kernel_version.as_str().into()),
                (9, self.root_of_trust.name().into()),
                (10, self.target.as_str().into()),
                (11, u64::from(self.debug_at_boot.number()).into()),
            ])
            .encode(),
        )
    }

    /// Reads the output of [`Identity::to_bytes`].
    ///
    /// # Errors
    /// The bytes are not an identity: the boot ROM has another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CborError> {
        let mut f = Fields::new(cbor::read(bytes, &Limits::bytes(IDENTITY_MAX))?, "identity")?;
        let cdi = Zeroizing::new(f.array(1)?);
        let private = Zeroizing::new(f.array::<32>(2)?);
        let public =
            PublicKey::from_bytes(&f.array::<65>(3)?).map_err(|_| f.bad(3, "a public key"))?;
        let ak =
            PrivateKey::of_pair(&private[..], public).map_err(|_| f.bad(2, "a private key"))?;
        let Value::Array(list) = f.take(4)? else { return Err(f.bad(4, "a list of certificates")) };
        if list.len() > MAX_X5CHAIN {
            return Err(f.bad(4, "a list of certificates"));
        }
        let mut certificates = Vec::with_capacity(list.len());
        for der in list {
            let Value::Bytes(der) = der else { return Err(f.bad(4, "a list of certificates")) };
            certificates.push(der.to_vec());
        }
        let identity = Self {
            cdi,
            ak: SigningKey::new(&ak),
            certificates,
            ueid: f.array(5)?,
            kernel_digest: f.array(6)?,
            kernel_svn: f.uint(7, u64::MAX)?,
            kernel_version: f.text(8, 0..=NAME_MAX)?.into(),
            root_of_trust: RootOfTrust::from_name(f.text(9, 1..=NAME_MAX)?)
                .ok_or_else(|| f.bad(9, "a kind of root of trust"))?,
            target: f.text(10, 1..=NAME_MAX)?.into(),
            debug_at_boot: DebugState::from_number(f.uint(11, 4)?)
                .ok_or_else(|| f.bad(11, "a debug state"))?,
        };
        f.finish()?;
        Ok(identity)
    }
}
