//! ECDSA on P-256 with SHA-256 (FIPS 186-5), nonces by RFC 6979. Scalars are computed in software,
//! in constant time; multiplications are [`Crypto::multiply`].

use p256::elliptic_curve::ops::Reduce;
use p256::elliptic_curve::point::AffineCoordinates;
use p256::elliptic_curve::scalar::IsHigh;
use p256::elliptic_curve::{Field, PrimeField};
use p256::{FieldBytes, ProjectivePoint, Scalar};
use subtle::ConditionallySelectable;
use zeroize::{Zeroize, Zeroizing};

use super::scrub::derived;
use super::software::point;
use super::{ACTIVE, Crypto, hmac};

/// The number, if it is non-zero and below the order of the group.
fn scalar(bytes: &[u8]) -> Option<Scalar> {
    let scalar = Option::<Scalar>::from(Scalar::from_repr(FieldBytes::try_from(bytes).ok()?))?;
    (!bool::from(scalar.is_zero())).then_some(scalar)
}

fn reduced(bytes: &[u8; 32]) -> Scalar {
    Scalar::reduce(&FieldBytes::from(*bytes))
}

/// Whether `0 < number < n`.
#[must_use]
pub fn in_range(number: &[u8; 32]) -> bool {
    scalar(number).is_some()
}

/// `(n - 1) / 2`, the largest low s.
const HALF_ORDER: [u8; 32] = [
    0x7f, 0xff, 0xff, 0xff, 0x80, 0x00, 0x00, 0x00, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    0xde, 0x73, 0x7d, 0x56, 0xd3, 0x8b, 0xcf, 0x42, 0x79, 0xdc, 0xe5, 0x61, 0x7e, 0x31, 0x92, 0xa8,
];

/// Whether the s of the signature `r | s` is at most `n / 2`.
///
/// If s verifies, so does `n - s`, and anyone can compute it. The formats of this project accept
/// only the lower of the two, so that a signed object has one encoding and one digest.
#[must_use]
pub fn is_low_s(signature: &[u8; 64]) -> bool {
    signature[32..] <= HALF_ORDER[..]
}

/// The lower of `s` and `n - s`, in constant time.
fn low(s: Scalar) -> Scalar {
    Scalar::conditional_select(&s, &-s, s.is_high())
}

/// Another signer's signature `r | s`, normalised to the low s. A signature out of range is
/// unchanged: it does not verify.
#[must_use]
pub fn to_low_s(mut signature: [u8; 64]) -> [u8; 64] {
    if let Some(s) = scalar(&signature[32..]) {
        signature[32..].copy_from_slice(&low(s).to_repr());
    }
    signature
}

/// The other signature of the same key over the same message: `r | n - s`. `None` if s is out of
/// range.
#[must_use]
pub fn twin(signature: &[u8; 64]) -> Option<[u8; 64]> {
    let mut twin = *signature;
    twin[32..].copy_from_slice(&(-scalar(&signature[32..])?).to_repr());
    Some(twin)
}

/// The nonces of RFC 6979 section 3.2, in order.
struct Nonces {
    k: Zeroizing<[u8; 32]>,
    v: Zeroizing<[u8; 32]>,
}

impl Nonces {
    fn new(private: &[u8; 32], digest: &[u8; 32]) -> Self {
        let mut nonces = Self { k: Zeroizing::new([0; 32]), v: Zeroizing::new([1; 32]) };
        nonces.stir(0, &[private, digest]);
        nonces.stir(1, &[private, digest]);
        nonces
    }

    fn stir(&mut self, step: u8, data: &[&[u8; 32]]) {
        let step = [step];
        let (private, digest) =
            (data.first().map_or(&[][..], |x| &x[..]), data.get(1).map_or(&[][..], |x| &x[..]));
        *self.k = hmac(&self.k[..], &[&self.v[..], &step, private, digest]);
        *self.v = hmac(&self.k[..], &[&self.v[..]]);
    }

    fn next(&mut self) -> Zeroizing<[u8; 32]> {
        *self.v = hmac(&self.k[..], &[&self.v[..]]);
        self.v.clone()
    }
}

/// The signature `r | s` of the private key over a message with this SHA-256, with low s.
///
/// # Panics
/// The private key is out of range.
#[must_use]
pub fn sign(private: &[u8; 32], digest: &[u8; 32]) -> [u8; 64] {
    derived!({
        let mut d = scalar(private).expect("a private key is in range");
        let z = reduced(digest);
        let mut nonces = Nonces::new(private, &z.to_repr().into());
        loop {
            let nonce = nonces.next();
            if let Some(mut k) = scalar(&nonce[..])
                && let Some(point) = ACTIVE.multiply(&nonce, None)
            {
                let r = reduced(point.first_chunk().expect("64 bytes"));
                let mut inverse = Option::<Scalar>::from(k.invert()).expect("not zero");
                let s = low(inverse * (z + r * d));
                k.zeroize();
                inverse.zeroize();
                if !bool::from(r.is_zero() | s.is_zero()) {
                    d.zeroize();
                    let mut out = [0; 64];
                    out[..32].copy_from_slice(&r.to_repr());
                    out[32..].copy_from_slice(&s.to_repr());
                    return out;
                }
            }
            nonces.stir(0, &[]);
        }
    })
}

/// Whether `r | s` is the public key's signature over a message with this SHA-256; `x | y` is on
/// the curve. Accepts either s: [`is_low_s`] is the rule of formats that require the low one.
#[must_use]
pub fn verify(public: &[u8; 64], digest: &[u8; 32], signature: &[u8; 64]) -> bool {
    let (Some(r), Some(s)) = (scalar(&signature[..32]), scalar(&signature[32..])) else {
        return false;
    };
    let Some(inverse) = Option::<Scalar>::from(s.invert()) else { return false };
    let times = |number: Scalar, of| {
        ACTIVE.multiply(&number.to_repr().into(), of).and_then(|xy| point(&xy))
    };
    // A factor of zero gives the point at infinity, which adds nothing.
    let sum = [times(reduced(digest) * inverse, None), times(r * inverse, Some(public))]
        .into_iter()
        .flatten()
        .fold(ProjectivePoint::IDENTITY, |sum, point| sum + point);
    sum != ProjectivePoint::IDENTITY && reduced(&sum.to_affine().x().into()) == r
}
