//! An oblivious memory: Path ORAM (Stefanov et al., CCS 2013). An observer of memory learns the
//! number of accesses, and nothing of their blocks and operations.

use crate::task::{Paper, Scale, Task, Value, Workload};
use crate::{WorkloadError, random::Random};

/// Blocks.
pub const BLOCKS: usize = 1 << 12;
/// Bytes of data in a block.
pub const DATA: usize = 60;
/// Levels of the tree, with the root.
pub const LEVELS: u32 = 12;
/// Leaves of the tree.
pub const LEAVES: u32 = 1 << (LEVELS - 1);
/// Blocks of a bucket.
pub const BUCKET: usize = 4;
/// Slots of the stash.
pub const SLOTS: usize = 128;
/// Blocks that may stay in the stash after an access: a path fits too.
pub const MAX_LIMIT: u32 = SLOTS as u32 - LEVELS * BUCKET as u32 - 1;
/// Commands of a run, at most: their region of the Shield.
pub const MAX_COMMANDS: usize = 1 << 14;

/// Data of a block.
pub type Data = [u8; DATA];

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Reads a block.
    Read,
    /// Writes a block, and reads what it was before.
    Write,
    /// One of the two codes without a meaning: 2 or 3.
    Unknown(u32),
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What it does.
    pub op: Op,
    /// The caller's, for the result.
    pub tag: u16,
    /// The block, below 2^14: the hardware refuses those that do not exist.
    pub id: u32,
    /// What is written.
    pub data: Data,
}

/// The 64 bytes of a command or of a result.
fn line(code: u32, command: &Command, data: &Data) -> Vec<u8> {
    let word = code << 30 | u32::from(command.tag) << 14 | command.id;
    let mut line = word.to_le_bytes().to_vec();
    line.extend(data);
    line
}

/// The status of a command: 0, or 2 for an unknown operation, or 1 for a block that does not exist.
fn status(command: &Command) -> u32 {
    match command.op {
        Op::Unknown(_) => 2,
        _ if command.id as usize >= BLOCKS => 1,
        _ => 0,
    }
}

/// The results, in bytes: those of a memory that hides nothing.
pub fn reference(commands: &[Command]) -> Vec<u8> {
    let mut memory = vec![[0; DATA]; BLOCKS];
    let mut results = Vec::new();
    for command in commands {
        let status = status(command);
        let mut data = [0; DATA];
        if status == 0 {
            let block = &mut memory[command.id as usize];
            data = *block;
            if command.op == Op::Write {
                *block = command.data;
            }
        }
        results.extend(line(status, command, &data));
    }
    results
}

/// Keystream of ChaCha with nonce 0 and a 64-bit counter (Bernstein, 2008).
#[derive(Debug, Clone)]
struct ChaCha {
    key: [u32; 8],
    block: u64,
    rounds: usize,
    words: Vec<u32>,
}

impl ChaCha {
    fn new(key: [u32; 8], rounds: usize) -> Self {
        Self { key, block: 0, rounds, words: Vec::new() }
    }

    fn word(&mut self) -> u32 {
        if self.words.is_empty() {
            let mut first = [0; 16];
            first[..4].copy_from_slice(&[0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574]);
            first[4..12].copy_from_slice(&self.key);
            (first[12], first[13]) = (self.block as u32, (self.block >> 32) as u32);
            let mut x = first;
            for round in 0..self.rounds {
                for i in 0..4 {
                    let turn = round % 2;
                    let at = |row: usize| 4 * row + (i + row * turn) % 4;
                    let [a, b, c, d] = [at(0), at(1), at(2), at(3)];
                    for (left, right) in [(16, 12), (8, 7)] {
                        x[a] = x[a].wrapping_add(x[b]);
                        x[d] = (x[d] ^ x[a]).rotate_left(left);
                        x[c] = x[c].wrapping_add(x[d]);
                        x[b] = (x[b] ^ x[c]).rotate_left(right);
                    }
                }
            }
            self.words = x.iter().zip(first).map(|(x, y)| x.wrapping_add(y)).rev().collect();
            self.block += 1;
        }
        self.words.pop().expect("a block has 16 words")
    }
}

#[derive(Debug, Clone, Copy)]
struct Block {
    id: u32,
    leaf: u32,
    data: Data,
}

/// The slots of a set, from the lowest.
fn slots(mut set: u128) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let slot = set.trailing_zeros() as usize;
        set &= set.wrapping_sub(1);
        (slot < SLOTS).then_some(slot)
    })
}

/// What an access does on the bus: beats of 64 bytes, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// Written, not read.
    pub write: bool,
    /// Line of 64 bytes of the tree.
    pub line: u32,
}

/// The accelerator, slot by slot of its stash.
#[derive(Debug, Clone)]
pub struct Model {
    random: ChaCha,
    map: Vec<u32>,
    tree: Vec<[Option<Block>; BUCKET]>,
    stash: [Block; SLOTS],
    /// A bit for each slot of the stash that has a block.
    taken: u128,
    limit: u32,
    /// Largest number of blocks in the stash after an access.
    pub peak: u32,
    /// Checksum of all leaves.
    pub trace: u32,
}

impl Model {
    /// An empty memory.
    pub fn new(seed: [u32; 8], limit: u32) -> Self {
        let mut random = ChaCha::new(seed, 8);
        Self {
            map: (0..BLOCKS).map(|_| random.word() % LEAVES).collect(),
            random,
            tree: vec![[None; BUCKET]; 1 << LEVELS],
            stash: [Block { id: 0, leaf: 0, data: [0; DATA] }; SLOTS],
            taken: 0,
            limit,
            peak: 0,
            trace: 0,
        }
    }

    /// Blocks in the stash.
    pub fn held(&self) -> u32 {
        self.taken.count_ones()
    }

    /// To the lowest slot that is free: there is one for a path and a block beside the limit.
    fn insert(&mut self, block: Block) {
        let slot = self.taken.trailing_ones();
        self.stash[slot as usize] = block;
        self.taken |= 1 << slot;
    }

    /// Buckets from the root to a leaf.
    fn path(leaf: u32) -> impl DoubleEndedIterator<Item = u32> + ExactSizeIterator {
        (0..LEVELS as u16).map(move |level| {
            let level = u32::from(level);
            1 << level | leaf >> (LEVELS - 1 - level)
        })
    }

    /// What an access to this leaf does on the bus.
    pub fn beats(leaf: u32) -> Vec<Beat> {
        let lines = |bucket| (0..BUCKET as u32).map(move |i| BUCKET as u32 * bucket + i);
        let beat = |write| move |line| Beat { write, line };
        Self::path(leaf)
            .flat_map(lines)
            .map(beat(false))
            .chain(Self::path(leaf).rev().flat_map(lines).map(beat(true)))
            .collect()
    }

    /// One access: its leaf and its result; no result if the stash has more blocks than its limit.
    pub fn access(&mut self, command: &Command) -> (u32, Option<Vec<u8>>) {
        let status = status(command);
        let word = self.random.word();
        let fresh = word % LEAVES;
        let leaf = if status == 0 {
            std::mem::replace(&mut self.map[command.id as usize], fresh)
        } else {
            (word >> 16) % LEAVES
        };
        self.trace = (self.trace ^ leaf).wrapping_mul(0x0100_0193);

        for bucket in Self::path(leaf) {
            for block in std::mem::take(&mut self.tree[bucket as usize]).into_iter().flatten() {
                self.insert(block);
            }
        }

        let mut data = [0; DATA];
        if status == 0 {
            if let Some(slot) = slots(self.taken).find(|slot| self.stash[*slot].id == command.id) {
                let block = &mut self.stash[slot];
                block.leaf = fresh;
                data = block.data;
                if command.op == Op::Write {
                    block.data = command.data;
                }
            } else if command.op == Op::Write {
                self.insert(Block { id: command.id, leaf: fresh, data: command.data });
            }
        }

        for (above, bucket) in Self::path(leaf).rev().enumerate() {
            let fits = |slot: &usize| (self.stash[*slot].leaf ^ leaf) >> above == 0;
            let places = &mut self.tree[bucket as usize];
            for (place, slot) in places.iter_mut().zip(slots(self.taken).filter(fits)) {
                *place = Some(self.stash[slot]);
                self.taken &= !(1 << slot);
            }
        }
        let held = self.held();
        self.peak = self.peak.max(held);
        (leaf, (held <= self.limit).then(|| line(status, command, &data)))
    }
}

/// The results of these commands, from an empty memory with this seed and this limit of its stash.
///
/// # Errors
/// SHEF-WRK-003 if there are no or too many commands, an id has more than 14 bits or an operation
/// more than two, the seed is zero, the limit is above [`MAX_LIMIT`], or the stash overflows.
pub fn task(seed: [u32; 8], limit: u32, commands: &[Command]) -> Result<Task, WorkloadError> {
    let value = |what| Err(WorkloadError::Value { what });
    if !(1..=MAX_COMMANDS).contains(&commands.len()) {
        return value(format!("expected 1 to {MAX_COMMANDS} commands, found {}", commands.len()));
    }
    if seed == [0; 8] {
        return value("expected a random seed, found zeros".to_owned());
    }
    if limit > MAX_LIMIT {
        return value(format!("expected a limit of the stash of 0 to {MAX_LIMIT}, found {limit}"));
    }
    let mut model = Model::new(seed, limit);
    let mut inputs = Vec::new();
    for (i, command) in commands.iter().enumerate() {
        let code = match command.op {
            Op::Read => 0,
            Op::Write => 1,
            Op::Unknown(code) if matches!(code, 2 | 3) => code,
            Op::Unknown(code) => {
                return value(format!(
                    "expected an unknown operation of 2 or 3 in command {i}, found {code}"
                ));
            }
        };
        if command.id >> 14 != 0 {
            return value(format!(
                "expected a block of at most 14 bits in command {i}, found {}",
                command.id
            ));
        }
        inputs.extend(line(code, command, &command.data));
        if model.access(command).1.is_none() {
            return value(format!(
                "expected at most {limit} blocks in the stash, found {} after command {i}",
                model.held()
            ));
        }
    }
    let beats = 2 * LEVELS as usize * BUCKET;
    Ok(Task {
        shape: format!("{} accesses, {BLOCKS} blocks", commands.len()),
        registers: [
            ("count", Value::Number(commands.len() as u32)),
            ("fresh", Value::Number(1)),
            ("limit", Value::Number(limit)),
            ("commands", Value::Address("commands")),
            ("commands_high", Value::AddressHigh("commands")),
            ("results", Value::Address("results")),
            ("results_high", Value::AddressHigh("results")),
            ("tree", Value::Address("tree")),
            ("tree_high", Value::AddressHigh("tree")),
        ]
        .into_iter()
        .chain(SEED.into_iter().zip(seed.map(Value::Number)))
        .collect(),
        inputs: vec![("commands", inputs)],
        outputs: vec![("results", reference(commands))],
        reads: vec![
            ("status", 2),
            ("peak", model.peak),
            ("held", model.held()),
            ("trace", model.trace),
        ],
        facts: vec![
            ("beats of the tree in one access", beats.to_string()),
            ("Path ORAM's bound 2 Z (L + 1)", beats.to_string()),
            ("largest stash", format!("{} of {SLOTS}", model.peak)),
        ],
    })
}

/// Names of the registers of the seed.
const SEED: [&str; 8] = ["seed0", "seed1", "seed2", "seed3", "seed4", "seed5", "seed6", "seed7"];

/// Commands of a seed: writes to all blocks in turn, as far as `fill` goes, and then reads and
/// writes. Half of these go to 64 blocks, and one in 32 has an unknown operation or a block that
/// does not exist.
pub fn random_commands(seed: u64, fill: usize, mixed: usize) -> Vec<Command> {
    let mut random = Random::new(seed);
    (0..fill + mixed)
        .map(|i| {
            let draw = random.below(64);
            let id = match draw {
                _ if i < fill => i as u64,
                0 => BLOCKS as u64 + random.below(3 * BLOCKS as u64),
                1..32 => random.below(64),
                _ => random.below(BLOCKS as u64),
            } as u32;
            let op = match draw {
                _ if i < fill => Op::Write,
                1 => Op::Unknown(2 + random.below(2) as u32),
                _ if random.below(2) == 0 => Op::Write,
                _ => Op::Read,
            };
            let data = std::array::from_fn(|_| random.word() as u8);
            Command { op, tag: random.word() as u16, id, data }
        })
        .collect()
}

/// A seed for measurements. In use it comes from the owner's source of randomness, once.
pub fn fixed_seed(seed: u64) -> [u32; 8] {
    let mut random = Random::new(seed);
    std::array::from_fn(|_| random.word() as u32)
}

/// Path ORAM.
pub struct Oram;

impl Workload for Oram {
    fn name(&self) -> &'static str {
        "oram"
    }

    fn about(&self) -> &'static str {
        "Path ORAM: a memory of 4,096 blocks that hides which of them are read and written"
    }

    fn paper(&self) -> Option<Paper> {
        None
    }

    fn task(&self, scale: Scale) -> Result<Task, WorkloadError> {
        let (fill, mixed) = match scale {
            Scale::Small => (64, 64),
            Scale::Quick => (BLOCKS, BLOCKS),
            Scale::Full => (BLOCKS, MAX_COMMANDS - BLOCKS),
        };
        task(fixed_seed(2), MAX_LIMIT, &random_commands(2, fill, mixed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(op: Op, id: u32, data: u8) -> Command {
        Command { op, tag: 7, id, data: [data; DATA] }
    }

    fn stream(key: [u32; 8], rounds: usize) -> Vec<u8> {
        let mut cipher = ChaCha::new(key, rounds);
        (0..32).flat_map(|_| cipher.word().to_le_bytes()).collect()
    }

    #[test]
    fn the_keystream_is_the_published_one() {
        // draft-strombergson-chacha-test-vectors-01, TC1: key and nonce of zeros.
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<String>();
        assert_eq!(
            hex(&stream([0; 8], 8)[..64]),
            "3e00ef2f895f40d67f5bb8e81f09a5a12c840ec3ce9a7f3b181be188ef711a1e\
             984ce172b9216f419f445367456d5619314a42a3da86b001387bfdb80e0cfe42"
        );
        // RFC 8439, A.1, test vectors 1 and 2.
        assert_eq!(
            hex(&stream([0; 8], 20)),
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7\
             da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586\
             9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed\
             29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f"
        );
    }

    #[test]
    fn commands_have_the_results_of_a_memory() {
        let commands = [
            command(Op::Read, 5, 1),
            command(Op::Write, 5, 2),
            command(Op::Write, 5, 3),
            command(Op::Read, 5, 0),
            command(Op::Write, 4096, 9),
            command(Op::Unknown(3), 5, 9),
            command(Op::Read, 5, 0),
        ];
        let found: Vec<(u32, u8)> = reference(&commands)
            .chunks(64)
            .map(|l| (u32::from_le_bytes(l[..4].try_into().unwrap()) >> 30, l[63]))
            .collect();
        assert_eq!(found, [(0, 0), (0, 0), (0, 2), (0, 3), (1, 0), (2, 0), (0, 3)]);
        assert_eq!(reference(&commands)[256..260], (1u32 << 30 | 7 << 14 | 4096).to_le_bytes());
    }

    #[test]
    fn a_path_is_read_from_the_root_and_written_from_the_leaf() {
        let beats = Model::beats(LEAVES - 1);
        assert_eq!(beats.len(), 96);
        let (reads, writes) = beats.split_at(48);
        assert!(reads.iter().all(|b| !b.write) && writes.iter().all(|b| b.write));
        assert_eq!([reads[0].line, reads[4].line, reads[47].line], [4, 12, 4 * 4095 + 3]);
        assert_eq!([writes[0].line, writes[47].line], [4 * 4095, 7]);
    }

    #[test]
    fn commands_that_do_not_fit_are_refused() {
        let read = || vec![command(Op::Read, 0, 0)];
        let seed = [1; 8];
        for (words, result) in [
            ("found 0", task(seed, 9, &[])),
            ("1 to 16384 commands", task(seed, 9, &vec![command(Op::Read, 0, 0); 16385])),
            ("found zeros", task([0; 8], 9, &read())),
            ("found 80", task(seed, 80, &read())),
            ("14 bits", task(seed, 9, &[command(Op::Read, 1 << 14, 0)])),
            ("found 1", task(seed, 9, &[command(Op::Unknown(1), 0, 0)])),
            ("in the stash", task(seed, 0, &random_commands(1, BLOCKS, 0))),
        ] {
            let error = result.unwrap_err();
            assert_eq!(error.code(), "SHEF-WRK-003");
            assert!(error.to_string().contains(words), "{words}: {error}");
        }
    }

    /// Patterns of 10^5 accesses to a memory in which every block was written.
    fn patterns() -> Vec<(&'static str, Vec<u32>)> {
        const ACCESSES: u32 = 100_000;
        let blocks = BLOCKS as u32;
        let mut random = Random::new(9);
        vec![
            ("one block", vec![77; ACCESSES as usize]),
            ("all blocks in turn", (0..ACCESSES).map(|i| i % blocks).collect()),
            ("uniform", (0..ACCESSES).map(|_| random.below(BLOCKS as u64) as u32).collect()),
        ]
    }

    /// Runs a pattern, and compares every result with a memory. The leaves, and the largest stash.
    fn run(seed: u64, pattern: &[u32]) -> (Vec<u32>, u32) {
        let mut model = Model::new(fixed_seed(seed), MAX_LIMIT);
        let mut memory = [0; BLOCKS];
        for id in 0..BLOCKS as u32 {
            model.access(&command(Op::Write, id, id as u8)).1.unwrap();
            memory[id as usize] = id as u8;
        }
        let mut leaves = Vec::new();
        for (i, &id) in pattern.iter().enumerate() {
            let op = if i % 3 == 0 { Op::Write } else { Op::Read };
            let (leaf, result) = model.access(&command(op, id, i as u8));
            assert_eq!(result.unwrap()[4..], [memory[id as usize]; DATA]);
            if op == Op::Write {
                memory[id as usize] = i as u8;
            }
            leaves.push(leaf);
        }
        (leaves, model.peak)
    }

    /// Distance of a chi-square statistic from its mean, in standard deviations.
    fn deviation(statistic: f64, freedom: usize) -> f64 {
        (statistic - freedom as f64) / (2.0 * freedom as f64).sqrt()
    }

    /// How far draws from `bins` bins are from uniform.
    fn uniform(bins: usize, draws: impl ExactSizeIterator<Item = usize>) -> f64 {
        let expected = draws.len() as f64 / bins as f64;
        let mut counts = vec![0.0; bins];
        draws.for_each(|bin| counts[bin] += 1.0);
        let statistic = counts.iter().map(|c: &f64| (c - expected).powi(2) / expected).sum();
        deviation(statistic, bins - 1)
    }

    /// How far two samples of equal length are from one distribution.
    fn alike(bins: usize, a: &[u32], b: &[u32]) -> f64 {
        let mut counts = vec![[0.0; 2]; bins];
        a.iter().for_each(|x| counts[*x as usize][0] += 1.0);
        b.iter().for_each(|x| counts[*x as usize][1] += 1.0);
        let statistic = counts.iter().map(|[a, b]: &[f64; 2]| (a - b).powi(2) / (a + b)).sum();
        deviation(statistic, bins - 1)
    }

    #[test]
    fn the_stash_stays_small_and_the_paths_show_no_pattern() {
        let patterns = patterns();
        let runs: Vec<_> = patterns.iter().map(|(_, ids)| run(3, ids)).collect();
        for ((name, _), (leaves, peak)) in patterns.iter().zip(&runs) {
            // Of 79 blocks that may stay.
            println!("{name}: at most {peak} blocks in the stash");
            assert!(*peak <= 20, "{name}: {peak}");
            // Leaves are uniform, and so are pairs of successive ones.
            let single = uniform(LEAVES as usize, leaves.iter().map(|leaf| *leaf as usize));
            let pairs = leaves.windows(2).map(|w| (w[0] >> 6 << 5 | w[1] >> 6) as usize);
            let pairs = uniform(1024, pairs);
            assert!(single.abs() < 4.0 && pairs.abs() < 4.0, "{name}: {single}, {pairs}");
        }
        let (first, _) = &runs[0];
        for ((name, _), (leaves, _)) in patterns.iter().zip(&runs).skip(1) {
            // With one seed, the paths of two patterns are not the same, and are as alike as two
            // samples of one distribution. They may be more alike: both consume the same random
            // words, each in its order.
            assert_ne!(leaves, first, "{name}");
            let distance = alike(LEAVES as usize, leaves, first);
            assert!(distance < 4.0, "{name}: {distance}");
            // The leaf decides all lines of an access, and it has the same number of beats.
            let beats = |leaves: &[u32]| -> usize {
                leaves.iter().map(|leaf| Model::beats(*leaf).len()).sum()
            };
            assert_eq!(beats(leaves), beats(first));
        }
        // With another seed, they are not more alike either.
        let (other, _) = run(4, &patterns[1].1);
        let distance = alike(LEAVES as usize, &other, first);
        assert!(distance.abs() < 4.0, "{distance}");
    }

    #[test]
    fn a_refused_command_reads_a_random_path_and_changes_nothing() {
        let mut model = Model::new(fixed_seed(4), MAX_LIMIT);
        for id in 0..BLOCKS as u32 {
            model.access(&command(Op::Write, id, 1)).1.unwrap();
        }
        let map = model.map.clone();
        let leaves: Vec<u32> = (0..20_000)
            .map(|i| {
                let refused = [command(Op::Write, 5000, 2), command(Op::Unknown(2), 5, 2)];
                let (leaf, result) = model.access(&refused[i % 2]);
                assert_eq!(result.unwrap()[4..], [0; DATA]);
                leaf
            })
            .collect();
        assert_eq!(model.map, map);
        let distance = uniform(LEAVES as usize, leaves.iter().map(|leaf| *leaf as usize));
        assert!(distance.abs() < 4.0, "{distance}");
        assert_eq!(model.access(&command(Op::Read, 5, 0)).1.unwrap()[4..], [1; DATA]);
    }

    /// The file in the accelerator's folder, for `shef test`. With SHEF_WRITE=1 it is written.
    #[test]
    fn the_file_of_the_accelerators_tests_is_as_it_was_written() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../shell-rtl/accel/oram/data/commands.bin");
        let bytes = &Oram.task(Scale::Small).unwrap().inputs[0].1;
        if std::env::var_os("SHEF_WRITE").is_some() {
            std::fs::write(&file, bytes).unwrap();
        }
        let found = std::fs::read(&file).unwrap_or_default();
        assert!(found == *bytes, "{} differs; SHEF_WRITE=1 writes it", file.display());
    }
}
