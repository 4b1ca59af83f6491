//! Digests that name a TLS certificate in a list of revoked ones.

use rustls::pki_types::CertificateDer;
use shef_proto::crypto::{sha256, twin};
use x509_cert::der::asn1::{AnyRef, BitStringRef, UintRef};
use x509_cert::der::{self, Decode as _, Encode as _, Reader as _, Tag};

/// SHA-256 of the TBSCertificate, which the issuer signed; of the DER; and, if an ECDSA P-256 key
/// signed it, of the DER with the other spelling of the signature, because anyone can turn one into
/// the other. `None` if this is no certificate.
#[must_use]
pub fn names(certificate: &CertificateDer<'_>) -> Option<Vec<[u8; 32]>> {
    let (tbs, twin) = parts(certificate).ok()?;
    Some([sha256(&tbs), sha256(certificate)].into_iter().chain(twin.map(|der| sha256(&der))).collect())
}

/// The TBSCertificate, and the certificate in its other spelling.
fn parts(certificate: &[u8]) -> der::Result<(Vec<u8>, Option<Vec<u8>>)> {
    AnyRef::from_der(certificate)?.sequence(|reader| {
        let (tbs, algorithm): (AnyRef<'_>, AnyRef<'_>) = (reader.decode()?, reader.decode()?);
        let signature: BitStringRef<'_> = reader.decode()?;
        let tbs = tbs.to_der()?;
        let twin = signature.as_bytes().and_then(|bytes| other(bytes).ok().flatten());
        let twin = twin.map(|twin| -> der::Result<Vec<u8>> {
            let body = [tbs.clone(), algorithm.to_der()?, BitStringRef::from_bytes(&twin)?.to_der()?].concat();
            AnyRef::new(Tag::Sequence, &body)?.to_der()
        });
        Ok((tbs, twin.transpose()?))
    })
}

/// The other spelling of an ECDSA P-256 signature in DER.
fn other(signature: &[u8]) -> der::Result<Option<Vec<u8>>> {
    let (r, s) = AnyRef::from_der(signature)?
        .sequence(|reader| -> der::Result<(UintRef<'_>, UintRef<'_>)> { Ok((reader.decode()?, reader.decode()?)) })?;
    let mut both = [0; 64];
    for (half, number) in both.chunks_exact_mut(32).zip([r.as_bytes(), s.as_bytes()]) {
        let Some(start) = half.len().checked_sub(number.len()) else { return Ok(None) };
        half[start..].copy_from_slice(number);
    }
    let Some(twin) = twin(&both) else { return Ok(None) };
    let (r, s) = twin.split_at(32);
    let body = [UintRef::new(r)?.to_der()?, UintRef::new(s)?.to_der()?].concat();
    AnyRef::new(Tag::Sequence, &body)?.to_der().map(Some)
}
