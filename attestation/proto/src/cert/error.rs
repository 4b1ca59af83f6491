//! Errors of certificates and chains.

crate::coded! {
    /// Why a certificate or chain is rejected.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum CertError {
        /// Not DER of this kind of certificate.
        #[error("certificate is malformed at its {part}")]
        Malformed {
            /// The malformed part.
            part: &'static str,
        } = "SHEF-PRO-020": "malformed certificate",
            "The bytes are not strict DER of an X.509 v3 certificate with the extensions that this chain uses.",
        /// Not ECDSA P-256 with SHA-256.
        #[error("{part} is not ECDSA P-256 with SHA-256")]
        Algorithm {
            /// Key or signature.
            part: &'static str,
        } = "SHEF-PRO-021": "certificate of another algorithm",
            "Keys are P-256 points, signatures ECDSA with SHA-256. Certificates with RSA, other curves or other hashes are refused.",
        /// A violated rule of the chain.
        #[error("{which} certificate: {rule}")]
        Rule {
            /// `root`, `DeviceID`, `AK` or `signer`.
            which: &'static str,
            /// The rule.
            rule: &'static str,
        } = "SHEF-PRO-022": "certificate chain breaks a rule",
            "Names, key identifiers, basic constraints, key usage, key purposes or DICE extensions are not those of manufacturer -> \
             DeviceID -> AK.",
        /// The named issuer did not sign it.
        #[error("{which} certificate was not signed by its issuer")]
        Signature {
            /// `root`, `DeviceID`, `AK` or `signer`.
            which: &'static str,
        } = "SHEF-PRO-023": "certificate not signed by its issuer",
            "The certificate was changed, or the trust anchor is not the CA that made this device.",
        /// Outside its validity period.
        #[error("{which} certificate is valid from {not_before} to {not_after}, not at {now}: {}", distance(*not_before, *not_after, *now))]
        Validity {
            /// `root`, `DeviceID`, `AK`, `signer`, or `one` of them.
            which: &'static str,
            /// Seconds since 1970.
            not_before: i64,
            /// Seconds since 1970.
            not_after: i64,
            /// Seconds since 1970.
            now: i64,
        } = "SHEF-PRO-024": "certificate not valid now",
            "The time of the check lies outside the validity of the certificate. Look at the clock of the verifier first, then at the \
             clock of the machine that issued the certificate.",
        /// Not exactly the certificates of AK and DeviceID.
        #[error("{found} certificates where AK and DeviceID are expected")]
        Length {
            /// Their number.
            found: usize,
        } = "SHEF-PRO-025": "wrong number of certificates",
            "A chain is exactly two certificates, AK first, then DeviceID. The root is never sent: it is the trust anchor.",
        /// Its signature verifies with `n - s` for s: the same certificate under another digest.
        #[error("{which} certificate: the s of its signature is above n / 2: expected the lower of s and n - s")]
        HighS {
            /// `AK`.
            which: &'static str,
        } = "SHEF-PRO-026": "signature of the certificate has a high s",
            "Boot code signs AK certificates with the lower of s and n - s. This one was changed on its way, or the device boots code of \
             version 0.1: update its boot code.",
    }
}

/// The distance from the validity period, to help diagnose a wrong clock.
fn distance(not_before: i64, not_after: i64, now: i64) -> alloc::string::String {
    let (seconds, what) = if now < not_before {
        (not_before.saturating_sub(now), "before it starts; is a clock wrong?")
    } else {
        (now.saturating_sub(not_after), "after its end")
    };
    match seconds {
        0..7200 => alloc::format!("{seconds} s {what}"),
        7200..172_800 => alloc::format!("{} hours {what}", seconds / 3600),
        _ => alloc::format!("{} days {what}", seconds / 86_400),
    }
}
