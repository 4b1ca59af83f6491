//! Issuing: root, DeviceID, AK and signers of reference values.

use alloc::vec::Vec;

use super::types::*;
use super::write::{
    algorithm, basic_constraints, extension, key_id, key_identifiers, key_usage, name, purpose,
    spki, tcb_info, time,
};
use crate::cose::SigningKey;
use crate::der::{self, tlv};
use crate::hpke_suite::PublicKey;

struct Template<'a> {
    subject_key: &'a PublicKey,
    issuer: &'a [u8],
    subject: &'a [u8],
    not_before: i64,
    not_after: i64,
    extensions: &'a [&'a [u8]],
}

fn issue(issuer_key: &SigningKey, template: &Template<'_>) -> Vec<u8> {
    // The serial number need only be unique per issuer: 16 bytes of the subject key's digest, made
    // positive and non-zero.
    let mut serial = [0; 16];
    serial.copy_from_slice(&key_id(template.subject_key)[4..]);
    serial[0] = serial[0] & 0x7f | 0x40;
    let tbs = tlv(
        der::SEQUENCE,
        &[
            &tlv(0xa0, &[&der::unsigned(der::INTEGER, &[2])]),
            &der::unsigned(der::INTEGER, &serial),
            &algorithm(),
            template.issuer,
            &tlv(der::SEQUENCE, &[&time(template.not_before), &time(template.not_after)]),
            template.subject,
            &spki(template.subject_key),
            &tlv(0xa3, &[&tlv(der::SEQUENCE, template.extensions)]),
        ],
    );
    signed(&tbs, &issuer_key.sign(&tbs))
}

/// The certificate of a TBSCertificate and its signature `r | s`.
pub(super) fn signed(tbs: &[u8], rs: &[u8; 64]) -> Vec<u8> {
    let signature = tlv(
        der::SEQUENCE,
        &[&der::unsigned(der::INTEGER, &rs[..32]), &der::unsigned(der::INTEGER, &rs[32..])],
    );
    tlv(der::SEQUENCE, &[tbs, &algorithm(), &tlv(der::BIT_STRING, &[&[0], &signature])])
}

/// A manufacturer's root certificate, self-signed.
#[must_use]
pub fn issue_root(key: &SigningKey, common_name: &str, not_before: i64, not_after: i64) -> Vec<u8> {
    let public = key.public_key();
    let subject = name(common_name, None);
    issue(
        key,
        &Template {
            subject_key: &public,
            issuer: &subject,
            subject: &subject,
            not_before,
            not_after,
            extensions: &[
                &basic_constraints(true, Some(1)),
                &key_usage(KEY_USAGE_CERT_SIGN),
                &key_identifiers(&public, &public),
            ],
        },
    )
}

/// The DeviceID certificate: the manufacturer vouches for the device's identity key.
#[must_use]
pub fn issue_device_id(
    ca: &SigningKey,
    root: &Certificate,
    device_id: &PublicKey,
    not_before: i64,
) -> Vec<u8> {
    let ueid = tlv(der::SEQUENCE, &[&tlv(der::OCTET_STRING, &[&ueid_of(device_id)])]);
    issue(
        ca,
        &Template {
            subject_key: device_id,
            issuer: &root.subject,
            subject: &name("shef DeviceID", Some(&key_id(device_id))),
            not_before,
            not_after: NO_END,
            extensions: &[
                &basic_constraints(true, Some(0)),
                &key_usage(KEY_USAGE_CERT_SIGN),
                &purpose(OID_KP_ECA),
                &key_identifiers(device_id, &ca.public_key()),
                &extension(OID_UEID, false, &ueid),
            ],
        },
    )
}

/// The AK certificate: the boot code vouches for the attestation key of the measured kernel.
#[must_use]
pub fn issue_ak(
    device: &SigningKey,
    device_certificate: &Certificate,
    ak: &PublicKey,
    info: &TcbInfo,
) -> Vec<u8> {
    issue(
        device,
        &Template {
            subject_key: ak,
            issuer: &device_certificate.subject,
            subject: &name("shef AK", Some(&key_id(ak))),
            not_before: NO_CLOCK,
            not_after: NO_END,
            extensions: &[
                &basic_constraints(false, None),
                &key_usage(KEY_USAGE_SIGN),
                &purpose(OID_KP_ATTEST_LOC),
                &key_identifiers(ak, &device.public_key()),
                &extension(OID_TCB_INFO, true, &tcb_info(info)),
            ],
        },
    )
}

/// A certificate of a signer of reference values, directly under a CA.
#[must_use]
pub fn issue_signer(
    ca: &SigningKey,
    root: &Certificate,
    key: &PublicKey,
    common_name: &str,
    not_before: i64,
    not_after: i64,
) -> Vec<u8> {
    issue(
        ca,
        &Template {
            subject_key: key,
            issuer: &root.subject,
            subject: &name(common_name, Some(&key_id(key))),
            not_before,
            not_after,
            extensions: &[
                &basic_constraints(false, None),
                &key_usage(KEY_USAGE_SIGN),
                &purpose(OID_KP_CODE_SIGNING),
                &key_identifiers(key, &ca.public_key()),
            ],
        },
    )
}

impl Certificate {
    /// The same certificate with the other spelling of its signature ([`crate::crypto::twin`]).
    #[must_use]
    pub fn twin(&self) -> Option<Vec<u8>> {
        Some(signed(&self.tbs, &crate::crypto::twin(&self.signature)?))
    }

    /// The digests that name this certificate in a revocation list: SHA-256 of the TBSCertificate,
    /// which its issuer signed, and of the DER in both spellings of the signature, because anyone
    /// can turn one into the other.
    #[must_use]
    pub fn names(&self) -> [[u8; 32]; 3] {
        let sha256 = crate::crypto::sha256;
        let der = sha256(&self.der);
        [sha256(&self.tbs), der, self.twin().map_or(der, |twin| sha256(&twin))]
    }
}
