//! Convolution: 5 x 5 filters over a batch of images of 32-bit words, padding 2, stride 1.

use crate::task::{Paper, Scale, Task, Value, Workload};
use crate::{WorkloadError, random};

/// Rows and columns of a filter.
pub const TAPS: usize = 5;
/// Zeros around an image.
const PADDING: usize = TAPS / 2;
/// Filters whose weights lie together.
pub const GROUP: usize = 32;
/// Channels are multiples of this.
const STEP: usize = 16;
/// Largest height and width of an image.
pub const MAX_SIDE: usize = 27;
/// Largest number of channels.
pub const MAX_CHANNELS: usize = 96;
/// Largest number of filters.
pub const MAX_FILTERS: usize = 256;
/// Bytes of the regions of images and of the output.
const MAX_IMAGES: usize = 8 << 20;
const MAX_OUTPUT: usize = 16 << 20;

/// Convolution of a batch of images.
pub struct Conv;

/// Shape of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Images.
    pub count: usize,
    /// Rows of an image.
    pub height: usize,
    /// Pixels of a row.
    pub width: usize,
    /// Words of a pixel.
    pub channels: usize,
    /// Filters, which are the words of a pixel of the output.
    pub filters: usize,
}

impl Shape {
    /// The layer of the paper, for this number of images.
    pub fn paper(count: usize) -> Self {
        Self { count, height: 27, width: 27, channels: 96, filters: 256 }
    }

    /// Words of the images: of each image, its pixels row by row, with all channels of a pixel.
    pub fn image_words(&self) -> usize {
        self.count * self.height * self.width * self.channels
    }

    /// Words of the weights: for each group of 32 filters, row, column and channel, those of the 32
    /// filters.
    pub fn weight_words(&self) -> usize {
        TAPS * TAPS * self.channels * self.filters
    }

    /// Words of the output: as the images, with a word for each filter.
    pub fn output_words(&self) -> usize {
        self.count * self.height * self.width * self.filters
    }
}

/// The output of a convolution modulo 2^32. The layout of the words is that of [`Shape`].
pub fn reference(shape: &Shape, images: &[u32], weights: &[u32]) -> Vec<u32> {
    let &Shape { height, width, channels, filters, .. } = shape;
    let pixel = |image: usize, y: usize, x: usize| (image * height + y) * width + x;
    let mut output = vec![0_u32; shape.output_words()];
    for (place, sums) in output.chunks_exact_mut(filters).enumerate() {
        let (image, y, x) = (place / (height * width), place / width % height, place % width);
        // The rows and columns of the filter that lie in the image.
        let rows = PADDING.saturating_sub(y)..TAPS.min(height + PADDING - y);
        let columns = PADDING.saturating_sub(x)..TAPS.min(width + PADDING - x);
        for (group, sums) in sums.chunks_exact_mut(GROUP).enumerate() {
            for row in rows.clone() {
                for column in columns.clone() {
                    let from = pixel(image, y + row - PADDING, x + column - PADDING) * channels;
                    let tap = ((group * TAPS + row) * TAPS + column) * channels * GROUP;
                    let taps = weights[tap..].chunks_exact(GROUP);
                    for (value, taps) in images[from..from + channels].iter().zip(taps) {
                        for (sum, weight) in sums.iter_mut().zip(taps) {
                            *sum = sum.wrapping_add(value.wrapping_mul(*weight));
                        }
                    }
                }
            }
        }
    }
    output
}

/// The convolution of a batch.
///
/// # Errors
/// SHEF-WRK-003 if the shape is out of range, or if images or weights have another number of words
/// than it says.
pub fn task(shape: &Shape, images: &[u32], weights: &[u32]) -> Result<Task, WorkloadError> {
    let value = |what| Err(WorkloadError::Value { what });
    let &Shape { count, height, width, channels, filters } = shape;
    for (name, found, step, max) in [
        ("rows of an image", height, 1, MAX_SIDE),
        ("pixels of a row", width, 1, MAX_SIDE),
        ("channels", channels, STEP, MAX_CHANNELS),
        ("filters", filters, GROUP, MAX_FILTERS),
    ] {
        if found == 0 || found > max || !found.is_multiple_of(step) {
            return value(format!(
                "expected {step} to {max} {name}, in steps of {step}, found {found}"
            ));
        }
    }
    let most = (MAX_IMAGES / (4 * height * width * channels))
        .min(MAX_OUTPUT / (4 * height * width * filters))
        .min(1024);
    if count == 0 || count > most {
        return value(format!("expected 1 to {most} images of this shape, found {count}"));
    }
    for (name, expected, found) in [
        ("images", shape.image_words(), images.len()),
        ("weights", shape.weight_words(), weights.len()),
    ] {
        if found != expected {
            return value(format!("expected {expected} words of {name}, found {found}"));
        }
    }
    Ok(Task {
        shape: format!(
            "{count} {} of {height} x {width} x {channels}, {filters} filters",
            if count == 1 { "image" } else { "images" }
        ),
        registers: vec![
            ("count", Value::Number(count as u32)),
            ("height", Value::Number(height as u32)),
            ("width", Value::Number(width as u32)),
            ("channels", Value::Number(channels as u32)),
            ("filters", Value::Number(filters as u32)),
            ("images", Value::Address("images")),
            ("images_high", Value::AddressHigh("images")),
            ("weights", Value::Address("weights")),
            ("weights_high", Value::AddressHigh("weights")),
            ("output", Value::Address("output")),
            ("output_high", Value::AddressHigh("output")),
        ],
        inputs: vec![("images", random::bytes_of(images)), ("weights", random::bytes_of(weights))],
        outputs: vec![("output", random::bytes_of(&reference(shape, images, weights)))],
        reads: vec![("status", 2)],
        facts: Vec::new(),
    })
}

/// The convolution of random images with random weights.
///
/// # Errors
/// As [`task`].
pub fn random_task(shape: &Shape) -> Result<Task, WorkloadError> {
    let images = random::words(1, shape.image_words());
    task(shape, &images, &random::words(2, shape.weight_words()))
}

impl Workload for Conv {
    fn name(&self) -> &'static str {
        "conv"
    }

    fn about(&self) -> &'static str {
        "convolution of 32-bit words with 5 x 5 filters"
    }

    fn paper(&self) -> Option<Paper> {
        Some(Paper {
            best: Some(1.20),
            worst: Some(1.35),
            source: "Figure 6: AES-256, 8 input and 4 output sets, 512 B",
        })
    }

    fn task(&self, scale: Scale) -> Result<Task, WorkloadError> {
        random_task(&match scale {
            Scale::Small => Shape { count: 2, height: 4, width: 9, channels: 32, filters: 64 },
            Scale::Quick => Shape::paper(1),
            Scale::Full => Shape::paper(4),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: Shape = Shape { count: 1, height: 3, width: 3, channels: 16, filters: 32 };

    /// The weights of a shape, of which one is not zero.
    fn one_weight(row: usize, column: usize, channel: usize, filter: usize) -> Vec<u32> {
        let mut weights = vec![0; TINY.weight_words()];
        weights[((row * TAPS + column) * TINY.channels + channel) * GROUP + filter] = 3;
        weights
    }

    #[test]
    fn a_weight_moves_the_image() {
        // Channel 7 of pixel i is i + 1, all else is zero.
        let mut images = vec![0; TINY.image_words()];
        for i in 0..9 {
            images[i * TINY.channels + 7] = i as u32 + 1;
        }
        for (row, column, expected) in [
            (2, 2, [3, 6, 9, 12, 15, 18, 21, 24, 27]),
            (2, 3, [6, 9, 0, 15, 18, 0, 24, 27, 0]),
            (1, 2, [0, 0, 0, 3, 6, 9, 12, 15, 18]),
            (4, 0, [0, 0, 21, 0, 0, 0, 0, 0, 0]),
        ] {
            let output = reference(&TINY, &images, &one_weight(row, column, 7, 5));
            for (i, pixel) in output.chunks_exact(TINY.filters).enumerate() {
                assert_eq!(pixel[5], expected[i], "pixel {i}, weight at {row}, {column}");
                assert_eq!(
                    pixel.iter().filter(|word| **word != 0).count(),
                    usize::from(pixel[5] != 0)
                );
            }
            let other = reference(&TINY, &images, &one_weight(row, column, 8, 5));
            assert!(other.iter().all(|word| *word == 0), "another channel");
        }
    }

    #[test]
    fn ones_count_the_products() {
        let shape = Shape { count: 2, ..TINY };
        let output =
            reference(&shape, &vec![1; shape.image_words()], &vec![1; shape.weight_words()]);
        // All 9 pixels of an image are within 2 of each of its pixels.
        assert_eq!(output, vec![9 * 16; 2 * 9 * 32]);
    }

    #[test]
    fn sums_are_modulo_2_32() {
        let shape = Shape { height: 1, width: 1, ..TINY };
        let mut images = vec![0; 16];
        (images[0], images[1]) = (u32::MAX, 0x8000_0000);
        let mut weights = vec![0; shape.weight_words()];
        let centre = (2 * TAPS + 2) * 16 * GROUP;
        (weights[centre], weights[centre + GROUP]) = (2, 3);
        assert_eq!(reference(&shape, &images, &weights)[0], 0x7fff_fffe);
    }

    #[test]
    fn batches_that_do_not_fit_are_refused() {
        for shape in [
            Shape { count: 0, ..TINY },
            Shape { height: 0, ..TINY },
            Shape { width: 28, ..TINY },
            Shape { channels: 24, ..TINY },
            Shape { channels: 112, ..TINY },
            Shape { filters: 48, ..TINY },
            Shape { filters: 288, ..TINY },
            Shape::paper(23),
        ] {
            let error = task(&shape, &[], &[]).unwrap_err();
            assert_eq!(error.code(), "SHEF-WRK-003", "{shape:?}");
            assert!(!error.to_string().contains("words"), "{error}");
        }
        let images = vec![0; TINY.image_words()];
        let weights = vec![0; TINY.weight_words()];
        for (images, weights, name) in
            [(&images[1..], &weights[..], "images"), (&images[..], &weights[1..], "weights")]
        {
            let error = task(&TINY, images, weights).unwrap_err();
            assert_eq!(error.code(), "SHEF-WRK-003");
            assert!(error.to_string().contains(name), "{error}");
        }
    }
}
