//! Digests that name a TLS certificate in a list of revoked ones.

use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use shef_proto::crypto::sha256;
use x509_cert::der::asn1::{AnyRef, BitStringRef, UintRef};
use x509_cert::der::{self, Decode as _, Encode as _, Reader as _, Tag};

/// Orders of P-256, P-384 and P-521: the curves of the CAs that rustls accepts.
const ORDERS: [&[u8]; 3] = [
    b"\xff\xff\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xbc\xe6\xfa\xad\xa7\x17\x9e\x84\xf3\xb9\xca\xc2\xfc\x63\x25\x51",
    b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xc7\x63\x4d\x81\xf4\x37\x2d\xdf\
      \x58\x1a\x0d\xb2\x48\xb0\xa7\x7a\xec\xec\x19\x6a\xcc\xc5\x29\x73",
    b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\
      \xff\xfa\x51\x86\x87\x83\xbf\x2f\x96\x6b\x7f\xcc\x01\x48\xf7\x09\xa5\xd0\x3b\xb5\xc9\xb8\x89\x9c\x47\xae\xbb\x6f\xb7\x1e\x91\x38\
      \x64\x09",
];

/// SHA-256 of the TBSCertificate, which the issuer signed; of the DER; and, for an ECDSA signature,
/// of the DER with the other encoding of the signature, because anyone can convert one into the
/// other. The curve is the issuer's, which the certificate does not contain: each curve that the
/// signature fits yields a name. `None` for anything but a certificate.
#[must_use]
pub fn names(certificate: &CertificateDer<'_>) -> Option<Vec<[u8; 32]>> {
    let (tbs, twins) = parts(certificate).ok()?;
    Some(
        [sha256(&tbs), sha256(certificate)]
            .into_iter()
            .chain(twins.iter().map(|der| sha256(der)))
            .collect(),
    )
}

/// Whether this key (the bits of subjectPublicKey) signed a certificate or a revocation list in DER.
pub(crate) fn signed_with(key: &[u8], der: &[u8], provider: &CryptoProvider) -> bool {
    let parts = AnyRef::from_der(der).and_then(|whole| {
        whole.sequence(|reader| -> der::Result<_> {
            let (signed, _): (AnyRef<'_>, AnyRef<'_>) = (reader.decode()?, reader.decode()?);
            let signature: BitStringRef<'_> = reader.decode()?;
            Ok((signed.to_der()?, signature.raw_bytes().to_vec()))
        })
    });
    let Ok((message, signature)) = parts else { return false };
    let algorithms = provider.signature_verification_algorithms.all;
    algorithms.iter().any(|one| one.verify_signature(key, &message, &signature).is_ok())
}

/// The TBSCertificate, and the certificate with the other encodings of its signature.
fn parts(certificate: &[u8]) -> der::Result<(Vec<u8>, Vec<Vec<u8>>)> {
    AnyRef::from_der(certificate)?.sequence(|reader| {
        let (tbs, algorithm): (AnyRef<'_>, AnyRef<'_>) = (reader.decode()?, reader.decode()?);
        let signature: BitStringRef<'_> = reader.decode()?;
        let tbs = tbs.to_der()?;
        let with = |signature: Vec<u8>| -> der::Result<Vec<u8>> {
            let body =
                [tbs.clone(), algorithm.to_der()?, BitStringRef::from_bytes(&signature)?.to_der()?]
                    .concat();
            AnyRef::new(Tag::Sequence, &body)?.to_der()
        };
        let signatures =
            ORDERS.iter().filter_map(|order| other(signature.as_bytes()?, order).ok().flatten());
        let twins = signatures.map(with).collect::<der::Result<_>>()?;
        Ok((tbs, twins))
    })
}

/// The other encoding of an ECDSA signature in DER: n - s instead of s. `None` if s is out of
/// range.
fn other(signature: &[u8], order: &[u8]) -> der::Result<Option<Vec<u8>>> {
    let (r, s) = AnyRef::from_der(signature)?.sequence(
        |reader| -> der::Result<(UintRef<'_>, UintRef<'_>)> {
            Ok((reader.decode()?, reader.decode()?))
        },
    )?;
    let Some(twin) = difference(order, s.as_bytes()) else { return Ok(None) };
    let body = [r.to_der()?, UintRef::new(&twin)?.to_der()?].concat();
    AnyRef::new(Tag::Sequence, &body)?.to_der().map(Some)
}

/// a - b of big-endian numbers; `None` if the result is not positive.
fn difference(a: &[u8], b: &[u8]) -> Option<Vec<u8>> {
    let zeros = a.len().checked_sub(b.len())?;
    let mut out = vec![0; a.len()];
    let mut borrow = false;
    for at in (0..a.len()).rev() {
        let (first, under) = a[at].overflowing_sub(at.checked_sub(zeros).map_or(0, |at| b[at]));
        let (second, under_again) = first.overflowing_sub(u8::from(borrow));
        (out[at], borrow) = (second, under || under_again);
    }
    (!borrow && out.iter().any(|byte| *byte != 0)).then_some(out)
}
