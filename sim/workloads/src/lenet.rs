//! LeNet-5 in int8 on handwritten digits: class and scores of each image.
//!
//! Two layers of 5 x 5 filters with pooling, and three layers that take all of their inputs. Sums
//! are 32-bit, and become int8 by a rounding shift, so that the accelerator's results are the
//! reference's to the last bit.

use std::path::Path;

use crate::WorkloadError;
use crate::digits::data::{Dataset, PIXELS};
use crate::task::{Paper, Scale, Task, Value, Workload};

/// Largest value of a pixel.
pub const MAX_PIXEL: u8 = 16;
/// Columns and rows of the network's input.
pub const SIDE: usize = 32;
/// Images of one run.
pub const MAX_IMAGES: usize = 1024;
/// Classes.
pub const CLASSES: usize = 10;
/// Rows of the digits that the network was trained on; the others test it.
pub const TRAINED: usize = 1000;
/// Outputs and inputs of each layer.
const SHAPES: [(usize, usize); 5] = [(6, 25), (16, 150), (120, 400), (84, 120), (10, 84)];
const MAX_SHIFT: u32 = 24;
const MAGIC: &[u8; 8] = b"lenet\0\0\x01";
/// Multiplier lanes of the accelerator, and bytes of a line of memory.
const LANES: usize = 16;
const LINE: usize = 64;
/// First bytes of the windows that the accelerator reads of a row of 32 bytes.
const WINDOWS: [usize; 7] = [0, 5, 10, 15, 20, 25, 27];

const WEIGHTS: &[u8] = include_bytes!("../../../tests/data/lenet.bin");

/// Classes of digits by a network.
pub struct LeNet;

fn data(file: &Path, what: String) -> WorkloadError {
    WorkloadError::Data { file: file.to_owned(), what }
}

/// The network's input for a digit: each pixel three times in both directions, a border of four
/// zeros, seven for a step of a pixel's value.
///
/// # Errors
/// SHEF-WRK-003 if a pixel is larger than 16.
pub fn picture(pixels: &[u8; PIXELS]) -> Result<Vec<i8>, WorkloadError> {
    if let Some(at) = pixels.iter().position(|pixel| *pixel > MAX_PIXEL) {
        return Err(WorkloadError::Value {
            what: format!(
                "expected pixels of 0 to {MAX_PIXEL}, found {} in row {}, column {}",
                pixels[at],
                at / 8,
                at % 8
            ),
        });
    }
    let mut picture = vec![0; SIDE * SIDE];
    for row in 0..24 {
        for column in 0..24 {
            let pixel = pixels[row / 3 * 8 + column / 3];
            picture[(row + 4) * SIDE + column + 4] = 7 * pixel as i8;
        }
    }
    Ok(picture)
}

/// A layer of the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Inputs of each output.
    pub inputs: usize,
    /// Those of output 0, then those of output 1, and so on.
    pub weights: Vec<i8>,
    /// One for each output, in the scale of the sums.
    pub biases: Vec<i16>,
    /// Bits by which the sums are shifted.
    pub shift: u32,
}

impl Layer {
    fn weights_of(&self, output: usize) -> &[i8] {
        &self.weights[output * self.inputs..][..self.inputs]
    }

    /// An output from its sum.
    fn int8(&self, sum: i32) -> i8 {
        let half = (1 << self.shift) >> 1;
        ((sum + half) >> self.shift).clamp(0, 127) as i8
    }
}

/// The network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// Its five layers.
    pub layers: Vec<Layer>,
}

impl Network {
    /// The network of a file: eight bytes that name the format; for each layer the numbers of
    /// outputs and inputs, the shift and zero, 16 bits each; for each layer the weights, one byte
    /// each, and the biases, 16 bits each. All numbers are little-endian.
    ///
    /// # Errors
    /// SHEF-WRK-002 if the file has another form, or the layers another shape.
    pub fn parse(file: &Path, bytes: &[u8]) -> Result<Self, WorkloadError> {
        let word = |at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
        let header = MAGIC.len() + 8 * SHAPES.len();
        if bytes.len() < header || !bytes.starts_with(MAGIC) {
            return Err(data(file, "expected the weights of a LeNet-5, format 1".to_owned()));
        }
        let whole = header + SHAPES.iter().map(|(m, n)| m * n + 2 * m).sum::<usize>();
        let mut layers = Vec::new();
        let mut from = header;
        for (number, (outputs, inputs)) in SHAPES.into_iter().enumerate() {
            let at = MAGIC.len() + 8 * number;
            if (word(at), word(at + 2)) != (outputs, inputs) {
                return Err(data(
                    file,
                    format!(
                        "layer {number}: expected weights of {outputs} x {inputs}, found {} x {}",
                        word(at),
                        word(at + 2)
                    ),
                ));
            }
            let shift = word(at + 4) as u32;
            if shift > MAX_SHIFT {
                return Err(data(
                    file,
                    format!("layer {number}: expected a shift of 0 to {MAX_SHIFT}, found {shift}"),
                ));
            }
            if bytes.len() != whole {
                return Err(data(file, format!("expected {whole} bytes, found {}", bytes.len())));
            }
            let (weights, rest) = bytes[from..].split_at(outputs * inputs);
            from += outputs * inputs + 2 * outputs;
            layers.push(Layer {
                inputs,
                weights: weights.iter().map(|x| x.cast_signed()).collect(),
                biases: (0..outputs)
                    .map(|i| i16::from_le_bytes([rest[2 * i], rest[2 * i + 1]]))
                    .collect(),
                shift,
            });
        }
        Ok(Self { layers })
    }

    /// Weights and biases as the accelerator reads them: for each layer a line of biases for each
    /// 16 outputs, and three lines of weights for each step of such a group.
    pub fn lines(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (number, layer) in self.layers.iter().enumerate() {
            let steps = match number {
                0 => 3,
                1 => 15,
                2 => 46,
                _ => 14,
            };
            let outputs = layer.biases.len();
            let groups = outputs.div_ceil(LANES);
            // Layer 0 has its outputs twice: for even and for odd columns.
            let output = |group: usize, lane: usize| match number {
                0 => (lane < 12).then_some(lane % 6),
                _ => Some(group * LANES + lane).filter(|output| *output < outputs),
            };
            for group in 0..groups {
                let line = bytes.len();
                bytes.resize(line + LINE, 0);
                for lane in 0..LANES {
                    if let Some(output) = output(group, lane) {
                        let bias = layer.biases[output].to_le_bytes();
                        bytes[line + 2 * lane..][..2].copy_from_slice(&bias);
                    }
                }
            }
            for group in 0..groups {
                for step in 0..steps {
                    let word = bytes.len();
                    bytes.resize(word + 3 * LINE, 0);
                    for at in 0..10 * LANES {
                        let (lane, row, tap) = (at / 10, at / 5 % 2, at % 5);
                        let input = input_of(number, step, row, tap);
                        if let (Some(output), Some(input)) = (output(group, lane), input) {
                            bytes[word + at] = layer.weights_of(output)[input].cast_unsigned();
                        }
                    }
                }
            }
        }
        bytes
    }
}

/// Which input of a layer byte `tap` of row `row` is in a step; `None` if its weight is zero.
fn input_of(layer: usize, step: usize, row: usize, tap: usize) -> Option<usize> {
    match layer {
        // Rows 0 and 1 of the filters, rows 2 and 3, row 4.
        0 => Some(2 * step + row).filter(|row| *row < 5).map(|row| 5 * row + tap),
        // A row of the filters of two channels.
        1 => Some((2 * (step / 5) + row) * 25 + step % 5 * 5 + tap),
        // Windows of both halves of a line. The last window begins in the one before it.
        _ => {
            let window = step % 7;
            let at = LINE * (step / 7) + LINE / 2 * row + WINDOWS[window] + tap;
            let again = window == 6 && WINDOWS[window] + tap < WINDOWS[5] + 5;
            let input = match layer {
                // 16 channels of each of 25 places; the layer has 25 places of each of 16 channels.
                2 => Some(at % 16 * 25 + at / 16).filter(|_| at < 400),
                3 => Some(at).filter(|_| at < 120),
                _ => Some(at).filter(|_| at < 84),
            };
            input.filter(|_| !again)
        }
    }
}

/// Filters of 5 x 5 on channels of `side` x `side`, and the largest of each 2 x 2 outputs.
fn filters(layer: &Layer, input: &[i8], side: usize) -> Vec<i8> {
    let channels = input.len() / (side * side);
    let (out, pooled) = (side - 4, (side - 4) / 2);
    let mut outputs = vec![0; layer.biases.len() * pooled * pooled];
    for (filter, bias) in layer.biases.iter().enumerate() {
        let weights = layer.weights_of(filter);
        for at in 0..out * out {
            let (row, column) = (at / out, at % out);
            let mut sum = i32::from(*bias);
            for line in 0..5 * channels {
                let (channel, dy) = (line / 5, line % 5);
                let from = (channel * side + row + dy) * side + column;
                for (x, w) in input[from..from + 5].iter().zip(&weights[5 * line..5 * line + 5]) {
                    sum += i32::from(*x) * i32::from(*w);
                }
            }
            let output = &mut outputs[(filter * pooled + row / 2) * pooled + column / 2];
            *output = layer.int8(sum).max(*output);
        }
    }
    outputs
}

/// Sums over all inputs.
fn sums(layer: &Layer, input: &[i8]) -> Vec<i32> {
    let outputs = layer.biases.iter().enumerate();
    outputs
        .map(|(output, bias)| {
            let products = input.iter().zip(layer.weights_of(output));
            products.fold(i32::from(*bias), |sum, (x, w)| sum + i32::from(*x) * i32::from(*w))
        })
        .collect()
}

/// The scores of a picture of 32 x 32.
pub fn reference(network: &Network, picture: &[i8]) -> Vec<i32> {
    let [first, second, third, fourth, last] = &network.layers[..] else {
        unreachable!("a network has five layers")
    };
    let maps = filters(first, picture, SIDE);
    let mut values = filters(second, &maps, 14);
    for layer in [third, fourth] {
        values = sums(layer, &values).into_iter().map(|sum| layer.int8(sum)).collect();
    }
    sums(last, &values)
}

/// The class of scores: the first of the largest.
pub fn class(scores: &[i32]) -> usize {
    let mut best = 0;
    for (at, score) in scores.iter().enumerate() {
        if *score > scores[best] {
            best = at;
        }
    }
    best
}

/// Scores and class of each image. `labels` are those that are known.
///
/// # Errors
/// SHEF-WRK-003 if the number of images or a pixel is out of range.
pub fn task(
    network: &Network,
    images: &[[u8; PIXELS]],
    labels: &[u8],
) -> Result<Task, WorkloadError> {
    if !(1..=MAX_IMAGES).contains(&images.len()) {
        return Err(WorkloadError::Value {
            what: format!("expected 1 to {MAX_IMAGES} images, found {}", images.len()),
        });
    }
    let mut pictures = Vec::new();
    let mut result = Vec::new();
    let mut right = 0;
    for (number, image) in images.iter().enumerate() {
        let picture = picture(image)?;
        let scores = reference(network, &picture);
        let class = class(&scores);
        right += usize::from(labels.get(number).is_some_and(|label| usize::from(*label) == class));
        pictures.extend(picture.into_iter().map(i8::cast_unsigned));
        let line = result.len();
        result.extend(scores.into_iter().flat_map(i32::to_le_bytes));
        result.extend((class as u32).to_le_bytes());
        result.resize(line + LINE, 0);
    }
    let shifts = network.layers.iter().take(4).enumerate();
    let shifts = shifts.fold(0, |word, (at, layer)| word | layer.shift << (8 * at));
    let mut facts = Vec::new();
    if !labels.is_empty() {
        let accuracy = right as f64 / images.len() as f64;
        facts.push(("accuracy", format!("{accuracy:.3} ({right} of {})", images.len())));
    }
    Ok(Task {
        shape: format!("{} images", images.len()),
        registers: vec![
            ("count", Value::Number(images.len() as u32)),
            ("shifts", Value::Number(shifts)),
            ("weights", Value::Address("weights")),
            ("weights_high", Value::AddressHigh("weights")),
            ("images", Value::Address("images")),
            ("images_high", Value::AddressHigh("images")),
            ("maps", Value::Address("maps")),
            ("maps_high", Value::AddressHigh("maps")),
            ("result", Value::Address("result")),
            ("result_high", Value::AddressHigh("result")),
        ],
        inputs: vec![("weights", network.lines()), ("images", pictures)],
        outputs: vec![("result", result)],
        reads: vec![("status", 2)],
        facts,
    })
}

impl Workload for LeNet {
    fn name(&self) -> &'static str {
        "lenet"
    }

    fn about(&self) -> &'static str {
        "LeNet-5 in int8 on handwritten digits"
    }

    fn paper(&self) -> Option<Paper> {
        Some(Paper {
            best: Some(2.31),
            worst: Some(3.83),
            source: "Figure 6 (DNNWeaver): weights in chunks of 4 KiB, feature maps of 64 B with \
                     counters; AES-128 with PMAC, AES-256 with 4 S-boxes and HMAC",
        })
    }

    fn task(&self, scale: Scale) -> Result<Task, WorkloadError> {
        let network = Network::parse(Path::new("tests/data/lenet.bin"), WEIGHTS)?;
        let digits = Dataset::shipped().map_err(WorkloadError::Digits)?;
        let (_, tested) = digits.split(TRAINED).map_err(WorkloadError::Digits)?;
        let (images, labels) = (&tested.rows, &tested.labels);
        let count = match scale {
            Scale::Small => 1,
            Scale::Quick => 200,
            Scale::Full => images.len(),
        };
        task(&network, &images[..count], &labels[..count])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn network() -> Network {
        Network::parse(Path::new("weights"), WEIGHTS).unwrap()
    }

    #[test]
    fn filters_pool_the_largest_of_four() {
        // The filter takes the pixel in its middle twice, so outputs are those of 2 x 2 pixels.
        let mut weights = vec![0; 25];
        weights[12] = 2;
        let layer = Layer { inputs: 25, weights, biases: vec![3], shift: 1 };
        let mut input = vec![0; 64];
        input[2 * 8 + 2] = 5; // (2 * 5 + 3 + 1) / 2
        input[3 * 8 + 5] = 127; // limited to 127
        input[5 * 8 + 3] = -9; // negative, beside zeros: (3 + 1) / 2
        assert_eq!(filters(&layer, &input, 8), [7, 127, 2, 2]);
        // Two channels: the second has its own weights.
        let mut weights = vec![0; 50];
        weights[24] = 1;
        weights[25] = 10;
        let layer = Layer { inputs: 50, weights, biases: vec![0], shift: 0 };
        let mut input = vec![0; 72];
        input[4 * 6 + 4] = 2; // the last pixel of the first window
        input[36] = 4; // the first one of the same window
        assert_eq!(filters(&layer, &input, 6), [42]);
    }

    #[test]
    fn sums_become_int8_by_a_rounding_shift() {
        let layer = |shift| Layer { inputs: 0, weights: vec![], biases: vec![], shift };
        let cases = [
            (0, 5, 5),
            (0, -5, 0),
            (3, 11, 1),
            (3, 12, 2),
            (3, -4, 0),
            (3, 1015, 127),
            (3, 9999, 127),
        ];
        for (shift, sum, value) in cases {
            assert_eq!(layer(shift).int8(sum), value, "{sum} >> {shift}");
        }
    }

    #[test]
    fn the_first_of_the_largest_scores_is_the_class() {
        assert_eq!(class(&[-5, 7, 3, 7]), 1);
        assert_eq!(class(&[i32::MIN, i32::MIN]), 0);
    }

    #[test]
    fn pictures_are_three_times_as_large() {
        let mut pixels = [0; PIXELS];
        pixels[0] = 16;
        pixels[9] = 1;
        let picture = picture(&pixels).unwrap();
        let count = |value| picture.iter().filter(|x| **x == value).count();
        assert_eq!((count(112), count(7), count(0)), (9, 9, 1024 - 18));
        assert_eq!((picture[4 * 32 + 4], picture[6 * 32 + 6], picture[7 * 32 + 7]), (112, 112, 7));
    }

    #[test]
    fn the_test_rows_have_the_accuracy_of_the_training_script() {
        let digits = Dataset::shipped().unwrap();
        let network = network();
        let right = (TRAINED..digits.labels.len()).filter(|at| {
            let picture = picture(&digits.rows[*at]).unwrap();
            class(&reference(&network, &picture)) == usize::from(digits.labels[*at])
        });
        assert_eq!(right.count(), 774);
    }

    #[test]
    fn lines_have_each_weight_once() {
        let network = network();
        let lines = network.lines();
        assert_eq!(lines.len(), 1469 * LINE);
        // Steps of a sum and the inputs of each layer: which step has which input.
        for (layer, (steps, inputs)) in
            [(3, 25), (15, 150), (46, 400), (14, 120), (14, 84)].into_iter().enumerate()
        {
            let mut seen = vec![0; inputs];
            for at in 0..10 * steps {
                if let Some(input) = input_of(layer, at / 10, at / 5 % 2, at % 5) {
                    seen[input] += 1;
                }
            }
            assert_eq!(seen, vec![1; inputs], "layer {layer}");
        }
        // Layer 0, lane 7, first byte of the second row: output 1, weight 5.
        assert_eq!(lines[LINE + 7 * 10 + 5].cast_signed(), network.layers[0].weights_of(1)[5]);
        assert_eq!(lines[2 * 7..][..2], network.layers[0].biases[1].to_le_bytes());
    }

    #[test]
    fn weights_of_another_shape_are_refused() {
        let mut shape = WEIGHTS.to_vec();
        shape[8 + 8 + 2] = 25;
        let mut shift = WEIGHTS.to_vec();
        shift[8 + 4] = 25;
        let longer = [WEIGHTS, &[0]].concat();
        let files: [(&[u8], &str); 6] = [
            (b"", "expected the weights of a LeNet-5"),
            (&[0; 100], "expected the weights of a LeNet-5"),
            (&shape, "layer 1: expected weights of 16 x 150, found 16 x 25"),
            (&shift, "layer 0: expected a shift of 0 to 24, found 25"),
            (&WEIGHTS[..WEIGHTS.len() - 1], "expected 61990 bytes, found 61989"),
            (&longer, "expected 61990 bytes, found 61991"),
        ];
        for (bytes, what) in files {
            let error = Network::parse(Path::new("weights"), bytes).unwrap_err();
            assert_eq!(error.code(), "SHEF-WRK-002");
            assert!(error.to_string().contains(what), "{error}");
        }
    }

    #[test]
    fn images_out_of_range_are_refused() {
        let network = network();
        let mut image = [16; PIXELS];
        for images in [vec![], vec![image; MAX_IMAGES + 1]] {
            assert_eq!(task(&network, &images, &[]).unwrap_err().code(), "SHEF-WRK-003");
        }
        image[21] = 17;
        let error = task(&network, &[image], &[]).unwrap_err();
        assert_eq!(error.code(), "SHEF-WRK-003");
        assert_eq!(error.to_string(), "expected pixels of 0 to 16, found 17 in row 2, column 5");
    }

    #[test]
    fn equal_weights_give_equal_scores() {
        // All filters and outputs alike: all scores are equal, and the class is the first.
        let mut random = Random::new(5);
        let mut network = network();
        for layer in &mut network.layers {
            let weights: Vec<i8> = (0..layer.inputs).map(|_| random.below(256) as i8).collect();
            let outputs = layer.biases.len();
            layer.weights = weights.repeat(outputs);
            layer.biases = vec![100; outputs];
        }
        let scores = reference(&network, &[50; SIDE * SIDE]);
        assert_eq!(scores, vec![scores[0]; CLASSES]);
        assert_eq!(class(&scores), 0);
    }
}
