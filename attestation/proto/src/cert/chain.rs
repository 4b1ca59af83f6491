//! The path validator: certificate positions, issuers and validity.

use super::CertError;
use super::types::*;
use crate::cose::{self, VerifyFn};
use crate::crypto;
use crate::hpke_suite::PublicKey;

impl Certificate {
    fn check_issuer(
        &self,
        which: &'static str,
        is_ca: bool,
        max_path: u64,
    ) -> Result<(), CertError> {
        let rule = |rule| Err(CertError::Rule { which, rule });
        if self.extensions.unknown_critical {
            return rule("has an unknown critical extension");
        }
        let Some(basic) = &self.extensions.basic else { return rule("has no basic constraints") };
        if !basic.critical {
            return rule("its basic constraints are not critical");
        }
        if basic.value.ca != is_ca {
            return rule(if is_ca { "is not a CA" } else { "is a CA" });
        }
        if !is_ca && basic.value.path_len.is_some() {
            return rule("has a path length without being a CA");
        }
        if is_ca && basic.value.path_len.is_some_and(|n| n < max_path) {
            return rule("its path length does not allow this chain");
        }
        let usage = if is_ca { KEY_USAGE_CERT_SIGN } else { KEY_USAGE_SIGN };
        match &self.extensions.key_usage {
            None => return rule("has no key usage"),
            Some(ext) if !ext.critical => return rule("its key usage is not critical"),
            Some(ext) if is_ca && ext.value & usage == 0 => {
                return rule("may not sign certificates");
            }
            Some(ext) if is_ca && max_path == 0 && ext.value != usage => {
                return rule("its key usage is not keyCertSign alone");
            }
            Some(ext) if !is_ca && ext.value != usage => {
                return rule("its key usage is not digitalSignature alone");
            }
            Some(_) => {}
        }
        Ok(())
    }

    fn check_purpose(&self, which: &'static str, oid: &[u8]) -> Result<(), CertError> {
        match &self.extensions.eku {
            Some(ext) if ext.critical && ext.value.len() == 1 && ext.value[0] == oid => Ok(()),
            _ => Err(CertError::Rule {
                which,
                rule: "its key purpose is not the one of its place in the chain, critical and alone",
            }),
        }
    }

    fn check_signed_by(
        &self,
        which: &'static str,
        issuer: &Certificate,
        verify: VerifyFn,
    ) -> Result<(), CertError> {
        if self.issuer != issuer.subject {
            return Err(CertError::Rule { which, rule: "names another issuer" });
        }
        if self.extensions.aki.is_none() || self.extensions.aki != issuer.extensions.ski {
            return Err(CertError::Rule {
                which,
                rule: "its authority key identifier is not the issuer's",
            });
        }
        if verify(&issuer.key, &self.tbs, &self.signature) {
            Ok(())
        } else {
            Err(CertError::Signature { which })
        }
    }

    fn check_time(&self, which: &'static str, now: i64) -> Result<(), CertError> {
        let (not_before, not_after) = (self.not_before, self.not_after);
        if (not_before..=not_after).contains(&now) {
            Ok(())
        } else {
            Err(CertError::Validity { which, not_before, not_after, now })
        }
    }

    /// Checks that this is a self-signed root that may issue DeviceID certificates. Chain
    /// validation checks its time.
    ///
    /// # Errors
    /// The violated rule.
    pub fn check_root(&self) -> Result<(), CertError> {
        const WHICH: &str = "root";
        self.check_issuer(WHICH, true, 1)?;
        self.check_signed_by(WHICH, self, cose::verify)
    }
}

/// Validates exactly `[AK, DeviceID]` under `root` at time `now` (seconds since 1970).
///
/// # Errors
/// The first violated rule.
pub fn validate_chain(
    chain: &[Certificate],
    root: &Certificate,
    now: i64,
) -> Result<Chain, CertError> {
    root.check_root()?;
    validate_under_anchor(chain, root, now, cose::verify)
}

/// As [`validate_chain`], for a root that passed [`Certificate::check_root`] when it became a trust
/// anchor.
///
/// # Errors
/// The first violated rule.
pub fn validate_under_anchor(
    chain: &[Certificate],
    root: &Certificate,
    now: i64,
    verify: VerifyFn,
) -> Result<Chain, CertError> {
    let [ak, device] = chain else { return Err(CertError::Length { found: chain.len() }) };
    const AK: &str = "AK";
    const DEVICE: &str = "DeviceID";
    root.check_issuer("root", true, 1)?;
    root.check_time("root", now)?;

    device.check_issuer(DEVICE, true, 0)?;
    device.check_purpose(DEVICE, OID_KP_ECA)?;
    device.check_signed_by(DEVICE, root, verify)?;
    device.check_time(DEVICE, now)?;
    if device.extensions.tcb_info.is_some() {
        return Err(CertError::Rule { which: DEVICE, rule: "carries a TcbInfo" });
    }
    let ueid = ueid_of(&device.key);
    if device.extensions.ueid.as_deref() != Some(&ueid[..]) {
        return Err(CertError::Rule {
            which: DEVICE,
            rule: "its ueid is missing or not the one of its key",
        });
    }

    ak.check_issuer(AK, false, 0)?;
    ak.check_purpose(AK, OID_KP_ATTEST_LOC)?;
    ak.check_signed_by(AK, device, verify)?;
    // Boot code issues it with low s. The other certificates come from CAs that may use either.
    if !crypto::is_low_s(&ak.signature) {
        return Err(CertError::HighS { which: AK });
    }
    ak.check_time(AK, now)?;
    if ak.extensions.ueid.is_some() {
        return Err(CertError::Rule { which: AK, rule: "carries a ueid" });
    }
    let Some(tcb) = &ak.extensions.tcb_info else {
        return Err(CertError::Rule { which: AK, rule: "has no TcbInfo" });
    };
    if !tcb.critical {
        return Err(CertError::Rule { which: AK, rule: "its TcbInfo is not critical" });
    }
    if ak.key == device.key || ak.key == root.key || device.key == root.key {
        return Err(CertError::Rule {
            which: AK,
            rule: "two certificates of the chain hold the same key",
        });
    }
    let all = [root, device, ak];
    let mut window = (i64::MIN, i64::MAX);
    for certificate in all {
        window = (window.0.max(certificate.not_before), window.1.min(certificate.not_after));
    }
    Ok(Chain {
        ak: ak.key,
        device_id: device.key,
        ueid,
        tcb_info: tcb.value.clone(),
        not_before: window.0,
        not_after: window.1,
    })
}

/// Validates the certificate of a signer of reference values, directly under `root`, at time `now`:
/// not a CA, only digitalSignature and codeSigning, no DICE extensions. So a key that signs
/// evidence cannot sign reference values, or the reverse.
///
/// # Errors
/// The first violated rule.
pub fn validate_signer(
    leaf: &Certificate,
    root: &Certificate,
    now: i64,
    verify: VerifyFn,
) -> Result<PublicKey, CertError> {
    const WHICH: &str = "signer";
    root.check_issuer("root", true, 0)?;
    root.check_time("root", now)?;
    leaf.check_issuer(WHICH, false, 0)?;
    leaf.check_purpose(WHICH, OID_KP_CODE_SIGNING)?;
    if leaf.extensions.tcb_info.is_some() || leaf.extensions.ueid.is_some() {
        return Err(CertError::Rule { which: WHICH, rule: "carries an extension of DICE" });
    }
    leaf.check_signed_by(WHICH, root, verify)?;
    leaf.check_time(WHICH, now)?;
    Ok(leaf.key)
}

impl Chain {
    /// Checks the time of a chain that was validated earlier.
    ///
    /// # Errors
    /// Now is outside the validity of one of its certificates.
    pub fn check_time(&self, now: i64) -> Result<(), CertError> {
        let (not_before, not_after) = (self.not_before, self.not_after);
        if (not_before..=not_after).contains(&now) {
            Ok(())
        } else {
            Err(CertError::Validity { which: "one", not_before, not_after, now })
        }
    }
}
