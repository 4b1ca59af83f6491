//! Affine transform of a photograph: rotation, scale and shear, with bilinear interpolation.
//!
//! A map leads from the target to the source: each pixel of the target takes the value that the
//! source has at its place, which lies between four pixels. All arithmetic is in fixed point, so
//! that the accelerator's results are the reference's to the last bit.

use std::path::Path;

use crate::WorkloadError;
use crate::task::{Paper, Scale, Task, Value, Workload};

/// Columns and rows of the pictures of the evaluation.
pub const SIDE: usize = 512;
/// Maps of one run.
pub const MAX_MAPS: usize = 4;
/// Columns and rows of a tile, which is a line of memory.
const TILE: usize = 8;
/// 1 in coordinates and coefficients.
const ONE: i32 = 1 << 16;
/// Largest coefficient of a column or a row.
const MAX_SLOPE: i32 = 2 * ONE;
/// The photograph.
const CAMERA: &[u8] = include_bytes!("../../../tests/data/camera.png");

/// The transform of a photograph.
pub struct Affine;

/// An 8-bit greyscale picture, row by row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// One byte for each pixel.
    pub pixels: Vec<u8>,
}

impl Picture {
    /// The picture of a PNG file.
    ///
    /// # Errors
    /// SHEF-WRK-002 if `bytes` are no PNG file, or one that is not 8-bit greyscale.
    pub fn from_png(file: &Path, bytes: &[u8]) -> Result<Self, WorkloadError> {
        let data = |what| WorkloadError::Data { file: file.to_owned(), what };
        let damaged = |error| data(format!("expected a PNG file, found: {error}"));
        let decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        let mut reader = decoder.read_info().map_err(damaged)?;
        let info = reader.info();
        let found = (info.color_type, info.bit_depth);
        if found != (png::ColorType::Grayscale, png::BitDepth::Eight) {
            return Err(data(format!(
                "expected 8-bit greyscale, found {:?} with {} bits",
                found.0, found.1 as u8
            )));
        }
        let (width, height) = (info.width as usize, info.height as usize);
        if width > SIDE || height > SIDE {
            return Err(data(format!(
                "expected at most {SIDE} x {SIDE} pixels, found {width} x {height}"
            )));
        }
        let mut pixels = vec![0; width * height];
        reader.next_frame(&mut pixels).map_err(damaged)?;
        reader.finish().map_err(damaged)?;
        Ok(Self { width, height, pixels })
    }

    /// The pixel at a place, or `border` outside.
    fn at(&self, column: i32, row: i32, border: u8) -> i32 {
        let inside =
            (0..self.width as i32).contains(&column) && (0..self.height as i32).contains(&row);
        i32::from(if inside {
            self.pixels[row as usize * self.width + column as usize]
        } else {
            border
        })
    }

    /// The picture in memory: tiles of 8 x 8 pixels, row by row, and so the pixels of a tile.
    pub fn tiles(&self) -> Vec<u8> {
        let (across, down) = (self.width.div_ceil(TILE), self.height.div_ceil(TILE));
        let mut bytes = Vec::with_capacity(across * down * TILE * TILE);
        for at in 0..across * down * TILE * TILE {
            let (tile, row, column) = (at / (TILE * TILE), at / TILE % TILE, at % TILE);
            let (row, column) = (tile / across * TILE + row, tile % across * TILE + column);
            bytes.push(self.at(column as i32, row as i32, 0) as u8);
        }
        bytes
    }
}

/// A map from pixels of the target to places of the source: column `a * column + b * row + c`, row
/// `d * column + e * row + f`, all in 1/65536.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Map {
    /// Columns of the source for a column of the target.
    pub a: i32,
    /// Columns of the source for a row of the target.
    pub b: i32,
    /// Column of the source of the target's first pixel.
    pub c: i32,
    /// Rows of the source for a column of the target.
    pub d: i32,
    /// Rows of the source for a row of the target.
    pub e: i32,
    /// Row of the source of the target's first pixel.
    pub f: i32,
}

impl Map {
    /// Each pixel is where it was.
    pub const IDENTITY: Self = Self { a: ONE, b: 0, c: 0, d: 0, e: ONE, f: 0 };

    /// The map of a transform that shears the picture, scales it and rotates it by an angle, about
    /// the centre of a square of `side` pixels.
    ///
    /// # Errors
    /// SHEF-WRK-003 if the transform has no inverse, or a pixel of the target is more than two
    /// columns or rows of the source away from its neighbour.
    pub fn new(degrees: f64, scale: f64, shear: f64, side: usize) -> Result<Self, WorkloadError> {
        let value = |what: String| Err(WorkloadError::Value { what });
        if !(degrees.is_finite() && scale.is_normal() && shear.is_finite()) {
            return value(format!(
                "expected a transform with an inverse, found an angle of {degrees} degrees, a \
                 scale of {scale} and a shear of {shear}"
            ));
        }
        let (sine, cosine) = degrees.to_radians().sin_cos();
        let slopes =
            [cosine + shear * sine, sine - shear * cosine, -sine, cosine].map(|x| x / scale);
        let limit = f64::from(MAX_SLOPE / ONE);
        if let Some(steep) = slopes.iter().find(|slope| slope.abs() > limit) {
            return value(format!(
                "expected coefficients of -{limit} to {limit}, found {steep:.4} for an angle of \
                 {degrees} degrees, a scale of {scale} and a shear of {shear}"
            ));
        }
        let [a, b, d, e] = slopes.map(|slope| (slope * f64::from(ONE)).round() as i32);
        // The centre lies between the two middle pixels if their number is even.
        let end = side as i32 - 1;
        let [c, f] = [(a, b), (d, e)].map(|(x, y)| (end * (ONE - x - y)) / 2);
        Ok(Self { a, b, c, d, e, f })
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let slopes = [self.a, self.b, self.d, self.e];
        let shifts = [self.c, self.f];
        if slopes.iter().any(|x| x.unsigned_abs() > MAX_SLOPE as u32)
            || shifts.iter().any(|x| x.unsigned_abs() > 1 << 30)
        {
            return Err(WorkloadError::Value {
                what: format!(
                    "expected a map with coefficients of -2 to 2 and shifts of -16384 to 16384, in \
                     1/65536, found {self:?}"
                ),
            });
        }
        Ok(())
    }
}

/// The target of `width` columns and `height` rows.
pub fn reference(source: &Picture, map: &Map, width: usize, height: usize, border: u8) -> Vec<u8> {
    let mut target = Vec::with_capacity(width * height);
    for row in 0..height as i32 {
        for column in 0..width as i32 {
            let x = map.a * column + map.b * row + map.c;
            let y = map.d * column + map.e * row + map.f;
            // The upper left of four neighbours, and how far the place is from it, in 1/256.
            let (left, top) = (x >> 16, y >> 16);
            let (fx, fy) = (x >> 8 & 255, y >> 8 & 255);
            let pixel = |column, row| source.at(column, row, border);
            let upper = pixel(left, top) * (256 - fx) + pixel(left + 1, top) * fx;
            let lower = pixel(left, top + 1) * (256 - fx) + pixel(left + 1, top + 1) * fx;
            target.push(((upper * (256 - fy) + lower * fy + (1 << 15)) >> 16) as u8);
        }
    }
    target
}

/// The first `rows` rows of the targets of these maps.
///
/// # Errors SHEF-WRK-002 if the picture does not have 512 x 512 pixels; SHEF-WRK-003 if the number
/// of maps or rows is out of range, or a map.
pub fn task(
    file: &Path,
    source: &Picture,
    maps: &[Map],
    rows: usize,
    border: u8,
) -> Result<Task, WorkloadError> {
    if (source.width, source.height) != (SIDE, SIDE) {
        return Err(WorkloadError::Data {
            file: file.to_owned(),
            what: format!(
                "expected {SIDE} x {SIDE} pixels, found {} x {}",
                source.width, source.height
            ),
        });
    }
    let value = |what| Err(WorkloadError::Value { what });
    if !(1..=MAX_MAPS).contains(&maps.len()) {
        return value(format!("expected 1 to {MAX_MAPS} maps, found {}", maps.len()));
    }
    if !(1..=SIDE).contains(&rows) {
        return value(format!("expected 1 to {SIDE} rows, found {rows}"));
    }
    let mut registers = vec![
        ("width", Value::Number(SIDE as u32)),
        ("height", Value::Number(SIDE as u32)),
        ("lines", Value::Number((SIDE / 64) as u32)),
        ("rows", Value::Number(rows as u32)),
        ("maps", Value::Number(maps.len() as u32)),
        ("border", Value::Number(u32::from(border))),
        ("source", Value::Address("source")),
        ("source_high", Value::AddressHigh("source")),
        ("target", Value::Address("target")),
        ("target_high", Value::AddressHigh("target")),
    ];
    let names = [
        ["a0", "b0", "c0", "d0", "e0", "f0"],
        ["a1", "b1", "c1", "d1", "e1", "f1"],
        ["a2", "b2", "c2", "d2", "e2", "f2"],
        ["a3", "b3", "c3", "d3", "e3", "f3"],
    ];
    let mut target = Vec::new();
    for (map, names) in maps.iter().zip(names) {
        map.check()?;
        let values = [map.a, map.b, map.c, map.d, map.e, map.f];
        registers.extend(names.into_iter().zip(values.map(|x| Value::Number(x.cast_unsigned()))));
        target.extend(reference(source, map, SIDE, rows, border));
    }
    let times = if maps.len() == 1 { String::new() } else { format!("{} of ", maps.len()) };
    Ok(Task {
        shape: format!("{times}{SIDE} x {rows}"),
        registers,
        inputs: vec![("source", source.tiles())],
        outputs: vec![("target", target)],
        reads: vec![("status", 2)],
        facts: Vec::new(),
    })
}

impl Workload for Affine {
    fn name(&self) -> &'static str {
        "affine"
    }

    fn about(&self) -> &'static str {
        "rotation, scale and shear of a photograph, bilinear"
    }

    fn paper(&self) -> Option<Paper> {
        Some(Paper {
            best: Some(1.41),
            worst: Some(2.22),
            source: "Figure 6: 8 input and 4 output sets, 64 B, buffers of 32 and 16 KB; AES-128 \
                     with 16 S-boxes, AES-256 with 4",
        })
    }

    fn task(&self, scale: Scale) -> Result<Task, WorkloadError> {
        let file = Path::new("tests/data/camera.png");
        let maps = [(30.0, 1.1, 0.1), (90.0, 1.0, 0.0), (-17.0, 0.7, 0.2), (145.0, 2.0, -0.25)];
        let maps: Vec<Map> = maps
            .into_iter()
            .map(|(degrees, scale, shear)| Map::new(degrees, scale, shear, SIDE))
            .collect::<Result<_, _>>()?;
        let (maps, rows) = match scale {
            Scale::Small => (&maps[..1], 16),
            Scale::Quick => (&maps[..1], SIDE),
            Scale::Full => (&maps[..], SIDE),
        };
        task(file, &Picture::from_png(file, CAMERA)?, maps, rows, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const FILE: &str = "picture.png";

    fn camera() -> Picture {
        Picture::from_png(Path::new(FILE), CAMERA).unwrap()
    }

    fn png_of(width: u32, height: u32, color: png::ColorType, depth: png::BitDepth) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_color(color);
        encoder.set_depth(depth);
        let row = color.samples() * (width as usize * depth as usize).div_ceil(8);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&vec![7; row * height as usize]).unwrap();
        writer.finish().unwrap();
        bytes
    }

    #[test]
    fn the_identity_gives_the_picture_back() {
        let camera = camera();
        assert_eq!(reference(&camera, &Map::IDENTITY, SIDE, SIDE, 9), camera.pixels);
        assert_eq!(Map::new(0.0, 1.0, 0.0, SIDE).unwrap(), Map::IDENTITY);
    }

    #[test]
    fn a_quarter_turn_is_exact() {
        let camera = camera();
        let map = Map::new(90.0, 1.0, 0.0, SIDE).unwrap();
        let target = reference(&camera, &map, SIDE, SIDE, 9);
        for row in 0..SIDE {
            for column in 0..SIDE {
                let pixel = camera.pixels[(SIDE - 1 - column) * SIDE + row];
                assert_eq!(target[row * SIDE + column], pixel, "column {column}, row {row}");
            }
        }
    }

    #[test]
    fn between_pixels_are_their_weighted_means() {
        let source = Picture { width: 2, height: 2, pixels: vec![10, 20, 110, 220] };
        let at = |c, f| reference(&source, &Map { c, f, ..Map::IDENTITY }, 1, 1, 100)[0];
        assert_eq!(at(ONE / 2, 0), 15);
        assert_eq!(at(0, ONE / 4), 35);
        // 12.5, and 11.25.
        assert_eq!((at(ONE / 4, 0), at(ONE / 8, 0)), (13, 11));
        // (10 + 20 + 110 + 220) / 4, and (9 * 10 + 3 * 20 + 3 * 110 + 220) / 16 = 43.75.
        assert_eq!(at(ONE / 2, ONE / 2), 90);
        assert_eq!(at(ONE / 4, ONE / 4), 44);
        // Half of the border, three quarters of it, all of it.
        assert_eq!(at(-ONE / 2, 0), 55);
        assert_eq!(at(ONE + ONE / 2, ONE + ONE / 2), 130);
        assert_eq!(at(-ONE, 5 * ONE), 100);
        assert_eq!(at(1 << 30, -(1 << 30)), 100);
    }

    #[test]
    fn a_transform_and_its_inverse_give_the_middle_back() {
        // A smooth picture, so that two interpolations lose little.
        let pixels = (0..SIDE * SIDE).map(|i| ((i % SIDE + i / SIDE) / 4) as u8).collect();
        let source = Picture { width: SIDE, height: SIDE, pixels };
        let turn = |picture: &Picture, degrees| Picture {
            pixels: reference(picture, &Map::new(degrees, 1.0, 0.0, SIDE).unwrap(), SIDE, SIDE, 0),
            ..*picture
        };
        let back = turn(&turn(&source, 33.0), -33.0);
        for row in 150..350 {
            for column in 150..350 {
                let at = row * SIDE + column;
                assert!(back.pixels[at].abs_diff(source.pixels[at]) <= 1);
            }
        }
    }

    #[test]
    fn tiles_hold_all_pixels() {
        let mut random = Random::new(3);
        let pixels = (0..11 * 9).map(|_| random.below(256) as u8).collect();
        let source = Picture { width: 11, height: 9, pixels };
        let tiles = source.tiles();
        assert_eq!(tiles.len(), 4 * 64);
        assert_eq!(tiles[..8], source.pixels[..8]);
        assert_eq!(tiles[8..16], source.pixels[11..19]);
        assert_eq!(tiles[64..67], source.pixels[8..11]);
        assert_eq!(tiles[67..72], [0; 5]);
        assert_eq!(tiles[128..136], source.pixels[88..96]);
    }

    #[test]
    fn other_files_are_refused() {
        use png::{BitDepth, ColorType};
        let damaged = &CAMERA[..CAMERA.len() / 2];
        let files: [(&[u8], &str); 7] = [
            (b"", "expected a PNG file"),
            (b"P5 512 512 255", "expected a PNG file"),
            (damaged, "expected a PNG file"),
            (&png_of(4, 4, ColorType::Rgb, BitDepth::Eight), "expected 8-bit greyscale, found Rgb"),
            (&png_of(4, 4, ColorType::Grayscale, BitDepth::Sixteen), "with 16 bits"),
            (&png_of(4, 4, ColorType::Grayscale, BitDepth::One), "with 1 bits"),
            (&png_of(513, 4, ColorType::Grayscale, BitDepth::Eight), "found 513 x 4"),
        ];
        for (bytes, what) in files {
            let error = Picture::from_png(Path::new(FILE), bytes).unwrap_err();
            assert_eq!(error.code(), "SHEF-WRK-002", "{what}");
            assert!(error.to_string().contains(what), "{error}");
        }
        let small = png_of(511, 512, ColorType::Grayscale, BitDepth::Eight);
        let small = Picture::from_png(Path::new(FILE), &small).unwrap();
        let error = task(Path::new(FILE), &small, &[Map::IDENTITY], 1, 0).unwrap_err();
        assert_eq!(error.code(), "SHEF-WRK-002");
        assert_eq!(error.to_string(), "picture.png: expected 512 x 512 pixels, found 511 x 512");
    }

    #[test]
    fn transforms_out_of_range_are_refused() {
        for (degrees, scale, shear) in [
            (10.0, 0.0, 0.0),
            (10.0, f64::NAN, 0.0),
            (f64::INFINITY, 1.0, 0.0),
            (10.0, 1.0, f64::NAN),
            (0.0, 0.49, 0.0),
            (0.0, 1.0, 2.01),
            (0.0, f64::MIN_POSITIVE, 0.0),
        ] {
            let error = Map::new(degrees, scale, shear, SIDE).unwrap_err();
            assert_eq!(error.code(), "SHEF-WRK-003", "{degrees} {scale} {shear}");
        }
        let camera = camera();
        let steep = Map { e: MAX_SLOPE + 1, ..Map::IDENTITY };
        let far = Map { f: i32::MIN, ..Map::IDENTITY };
        let one = [Map::IDENTITY; 5];
        for (maps, rows) in [
            (&one[..0], 1),
            (&one[..], 1),
            (&one[..1], 0),
            (&one[..1], 513),
            (&[steep], 1),
            (&[far], 1),
        ] {
            let error = task(Path::new(FILE), &camera, maps, rows, 0).unwrap_err();
            assert_eq!(error.code(), "SHEF-WRK-003", "{maps:?} {rows}");
        }
    }
}
