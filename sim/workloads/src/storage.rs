//! The storage node: files of 4 KiB records, put into slots of a store and got back, with a policy
//! check for each record.

use crate::random::Random;
use crate::task::{Paper, Scale, Task, Value, Workload};
use crate::{WorkloadError, random};

/// Bytes of a record.
pub const RECORD: usize = 4096;
/// Bytes of a record's header, and of a line of commands and results.
pub const LINE: usize = 64;
/// Largest length of a record's data.
pub const MAX_DATA: usize = RECORD - LINE;
/// Records of a slot: a file of 1 MiB.
pub const FILE: u32 = 256;
/// Slots of the store, which is a region of 16 MiB.
pub const SLOTS: u32 = 16;
/// Records in each of the regions `put` and `get`.
pub const BLOCKS: u32 = 4096;
/// Commands in a run: the region `commands`.
pub const MAX_COMMANDS: usize = 1024;
/// The first bytes of a record.
const MAGIC: u32 = u32::from_le_bytes(*b"REC1");
/// Seed of the evaluation's data.
const SEED: u64 = 35;

/// Files between a client and a store.
pub struct Storage;

/// The policy of a record, in its first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The client that may store the record, and may always read it.
    pub owner: u64,
    /// The purposes for which others may read it: bit p stands for purpose p.
    pub purposes: u64,
    /// The first moment at which it must not be stored or read any more.
    pub expires: u64,
    /// Its owner objects to processing: no other requester reads it, for any purpose.
    pub objects: bool,
}

/// What a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// From the region `put` to the store.
    Put,
    /// From the store to the region `get`.
    Get,
}

/// A command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// What it does.
    pub op: Op,
    /// Slot of the store.
    pub slot: u32,
    /// First record of the slot.
    pub first: u32,
    /// Number of records.
    pub records: u32,
    /// Their first place in `put` or `get`, in records.
    pub block: u32,
    /// Purpose of the request, 0 to 63.
    pub purpose: u32,
    /// Who requests.
    pub requester: u64,
    /// When.
    pub now: u64,
}

/// Why a record does not pass. The number is its place in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It has no header, or one with unknown bits or a length beyond the record.
    Broken = 3,
    /// It has expired.
    Expired = 4,
    /// It is put by a requester who is not its owner.
    Owner = 5,
    /// Its owner objects to processing.
    Objection = 6,
    /// It does not have the purpose of the request.
    Purpose = 7,
}

/// Whether a task may have records that their policy refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// They are an error of the task.
    Never,
    /// They are a part of the task: zeros come out in their place.
    Expected,
}

/// What a run leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Bytes of the region `get`.
    pub get: Vec<u8>,
    /// Bytes of the region `results`, a line for each command.
    pub results: Vec<u8>,
    /// Records that were stored.
    pub stored: u32,
    /// Records that were released.
    pub released: u32,
    /// Command, record of the command and reason of each record that was refused.
    pub refused: Vec<(usize, u32, Refusal)>,
}

impl Command {
    /// Its line in the region `commands`.
    pub fn line(&self) -> [u8; LINE] {
        let mut line = [0; LINE];
        let op = match self.op {
            Op::Put => 1,
            Op::Get => 2,
        };
        let words = [op, self.slot, self.first, self.records, self.block, self.purpose];
        line[..24].copy_from_slice(&random::bytes_of(&words));
        line[24..32].copy_from_slice(&self.requester.to_le_bytes());
        line[32..40].copy_from_slice(&self.now.to_le_bytes());
        line
    }
}

/// A record: the header's line, the data, and zeros.
///
/// # Errors
/// SHEF-WRK-003 if the data are longer than 4,032 bytes.
pub fn record(header: &Header, data: &[u8]) -> Result<Vec<u8>, WorkloadError> {
    if data.len() > MAX_DATA {
        return Err(WorkloadError::Value {
            what: format!("expected at most {MAX_DATA} bytes in a record, found {}", data.len()),
        });
    }
    let mut record = random::bytes_of(&[MAGIC, u32::from(header.objects)]);
    for word in [header.owner, header.purposes, header.expires] {
        record.extend(word.to_le_bytes());
    }
    record.extend((data.len() as u32).to_le_bytes());
    record.resize(LINE, 0);
    record.extend_from_slice(data);
    record.resize(RECORD, 0);
    Ok(record)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// The policy: what leaves of a record for a command.
pub fn pass(record: &[u8], command: &Command) -> Result<Vec<u8>, Refusal> {
    let flags = word(record, 4);
    let length = word(record, 32) as usize;
    let reserved = &record[36..LINE];
    if word(record, 0) != MAGIC
        || flags > 1
        || length > MAX_DATA
        || reserved.iter().any(|&b| b != 0)
    {
        return Err(Refusal::Broken);
    }
    let (owner, purposes, expires) = (long(record, 8), long(record, 16), long(record, 24));
    if command.now >= expires {
        return Err(Refusal::Expired);
    }
    if owner != command.requester {
        if command.op == Op::Put {
            return Err(Refusal::Owner);
        }
        if flags == 1 {
            return Err(Refusal::Objection);
        }
        if purposes >> command.purpose & 1 == 0 {
            return Err(Refusal::Purpose);
        }
    }
    let mut out = record[..LINE + length].to_vec();
    out.resize(RECORD, 0);
    Ok(out)
}

/// Runs commands that are in range, one after the other, on an empty store.
pub fn reference(put: &[u8], commands: &[Command]) -> Answer {
    let mut answer = Answer::default();
    let mut store = vec![0; (SLOTS * FILE) as usize * RECORD];
    for (number, command) in commands.iter().enumerate() {
        let mut result = [0u32; LINE / 4];
        for i in 0..command.records {
            let client = (command.block + i) as usize * RECORD;
            let stored = (command.slot * FILE + command.first + i) as usize * RECORD;
            let record = match command.op {
                Op::Put => &put[client..][..RECORD],
                Op::Get => &store[stored..][..RECORD],
            };
            let record = match pass(record, command) {
                Ok(record) => {
                    match command.op {
                        Op::Put => answer.stored += 1,
                        Op::Get => answer.released += 1,
                    }
                    result[1] += 1;
                    record
                }
                Err(refusal) => {
                    answer.refused.push((number, i, refusal));
                    result[0] = 1;
                    result[2] += 1;
                    result[refusal as usize] += 1;
                    result[8 + i as usize / 32] |= 1 << (i % 32);
                    vec![0; RECORD]
                }
            };
            match command.op {
                Op::Put => store[stored..][..RECORD].copy_from_slice(&record),
                Op::Get => {
                    let end = answer.get.len().max(client + RECORD);
                    answer.get.resize(end, 0);
                    answer.get[client..][..RECORD].copy_from_slice(&record);
                }
            }
        }
        answer.results.extend(random::bytes_of(&result));
    }
    answer
}

/// Runs commands on the records of the region `put`.
///
/// # Errors
/// SHEF-WRK-002 if `put` is no multiple of 4 KiB or larger than 16 MiB, or, with
/// [`Refused::Never`], has a record that its policy refuses to a command. SHEF-WRK-003 if there are
/// no commands or more than 1,024, or one is out of range: slot, records, place, or purpose; or if
/// the records of the GETs do not fill the region `get` from its start, each place once.
pub fn task(put: &[u8], commands: &[Command], refused: Refused) -> Result<Task, WorkloadError> {
    let data = |what| WorkloadError::Data { file: "put".into(), what };
    let value = |what| WorkloadError::Value { what };
    let blocks = put.len() / RECORD;
    if !put.len().is_multiple_of(RECORD) || blocks > BLOCKS as usize {
        return Err(data(format!(
            "expected files of records of {RECORD} bytes, {BLOCKS} records at most, found {} bytes",
            put.len()
        )));
    }
    if commands.is_empty() || commands.len() > MAX_COMMANDS {
        return Err(value(format!(
            "expected 1 to {MAX_COMMANDS} commands, found {}",
            commands.len()
        )));
    }
    let mut places = Vec::new();
    for (number, command) in commands.iter().enumerate() {
        let limit = match command.op {
            Op::Put => blocks as u32,
            Op::Get => BLOCKS,
        };
        let range = |what: &str, from: u32, count: u32, limit: u32| {
            if count == 0 || u64::from(from) + u64::from(count) > u64::from(limit) {
                return Err(value(format!(
                    "command {number}: expected {what} below {limit}, found {count} from {from} on"
                )));
            }
            Ok(())
        };
        range("a slot", command.slot, 1, SLOTS)?;
        range("records of a slot", command.first, command.records, FILE)?;
        range("records of the client", command.block, command.records, limit)?;
        range("a purpose", command.purpose, 1, 64)?;
        if command.op == Op::Get {
            places.extend(command.block..command.block + command.records);
        }
    }
    places.sort_unstable();
    if !places.iter().copied().eq(0..places.len() as u32) {
        return Err(value(format!(
            "expected each of the {} records that are got at another place, from 0 on without gaps",
            places.len()
        )));
    }
    let answer = reference(put, commands);
    if let (Refused::Never, Some((command, record, refusal))) = (refused, answer.refused.first()) {
        return Err(data(format!(
            "expected records that their policy allows, found {refusal:?} for record {record} of \
             command {command}"
        )));
    }
    let moved: u32 = commands.iter().map(|command| command.records).sum();
    let lines: Vec<u8> = commands.iter().flat_map(Command::line).collect();
    let mut outputs = vec![("results", answer.results)];
    if !answer.get.is_empty() {
        outputs.push(("get", answer.get));
    }
    Ok(Task {
        shape: format!("{} commands, {} KiB", commands.len(), moved * 4),
        registers: vec![
            ("commands", Value::Number(commands.len() as u32)),
            ("slots", Value::Number(SLOTS)),
            ("put_blocks", Value::Number(blocks as u32)),
            ("get_blocks", Value::Number(BLOCKS)),
            ("commands_at", Value::Address("commands")),
            ("commands_high", Value::AddressHigh("commands")),
            ("put", Value::Address("put")),
            ("put_high", Value::AddressHigh("put")),
            ("store", Value::Address("store")),
            ("store_high", Value::AddressHigh("store")),
            ("get", Value::Address("get")),
            ("get_high", Value::AddressHigh("get")),
            ("results", Value::Address("results")),
            ("results_high", Value::AddressHigh("results")),
        ],
        inputs: vec![("commands", lines), ("put", put.to_vec())],
        outputs,
        reads: vec![
            ("status", 2),
            ("stored", answer.stored),
            ("released", answer.released),
            ("refused", answer.refused.len() as u32),
            ("bad", 0),
        ],
        facts: vec![("refused", format!("{} of {moved} records", answer.refused.len()))],
    })
}

/// Puts and gets `files` files of `records` records, and between them `single` accesses to up to 16
/// records each at random places. An eighth of the records is broken, expired, of another owner, or
/// not for the purpose.
///
/// # Errors
/// As [`task`].
pub fn random_task(files: u32, records: u32, single: u32) -> Result<Task, WorkloadError> {
    let mut random = Random::new(SEED);
    let mut below = |n: u32| random.below(u64::from(n)) as u32;
    let now = 1_700_000_000;
    let owner_of = |file: u32| 100 + u64::from(file % 4);

    let mut put = Vec::new();
    for block in 0..files * records {
        let mut header = Header {
            owner: owner_of(block / records),
            purposes: u64::from(below(u32::MAX)) | 1 << 3,
            expires: now + 1 + u64::from(below(1_000_000)),
            objects: below(32) == 0,
        };
        let mut broken = false;
        match below(32) {
            0 => broken = true,
            1 => header.expires = now - u64::from(below(1000)),
            2 => header.owner += 1,
            3 => header.purposes &= !(1 << 3),
            _ => {}
        }
        let length = if below(4) == 0 { below(MAX_DATA as u32 + 1) as usize } else { MAX_DATA };
        let words = random::words(SEED + 1 + u64::from(block), MAX_DATA / 4);
        let mut bytes = record(&header, &random::bytes_of(&words)[..length])?;
        if broken {
            bytes[below(LINE as u32) as usize] ^= 0x80;
        }
        put.extend(bytes);
    }

    let mut commands = Vec::new();
    let mut got = 0;
    let mut get = |slot, first, count, requester| {
        got += count;
        let block = got - count;
        Command { op: Op::Get, slot, first, records: count, block, purpose: 3, requester, now }
    };
    // The slot of a file: not the order in which they are put.
    let slot_of = |file: u32| (5 * file + 2) % SLOTS;
    for file in 0..files {
        let command = Command {
            op: Op::Put,
            slot: slot_of(file),
            first: 0,
            records,
            block: file * records,
            purpose: 0,
            requester: owner_of(file),
            now,
        };
        commands.push(command);
        // The file before this one: at once after it is put, it would wait for it.
        if file > 0 {
            commands.push(get(
                slot_of(file - 1),
                0,
                records,
                owner_of(file - 1) + u64::from(file % 2),
            ));
        }
        for _ in 0..single / files {
            let count = 1 + below(16.min(records));
            let first = below(records - count + 1);
            let other = below(file + 1);
            commands.push(if below(4) == 0 {
                let block = other * records + below(records - count + 1);
                Command { first, records: count, block, requester: owner_of(other), ..command }
            } else {
                get(slot_of(other), first, count, owner_of(other) + u64::from(below(4) == 0))
            });
        }
    }
    commands.push(get(slot_of(files - 1), 0, records, owner_of(files - 1)));
    task(&put, &commands, Refused::Expected)
}

impl Workload for Storage {
    fn name(&self) -> &'static str {
        "storage"
    }

    fn about(&self) -> &'static str {
        "put and get of files of 1 MiB, with a policy check for each record of 4 KiB"
    }

    fn paper(&self) -> Option<Paper> {
        Some(Paper {
            best: Some(1.20),
            worst: Some(3.98),
            source: "Table 2: two sets, buffers of 16 KB, 4 KiB; baseline with a port of 64 bits",
        })
    }

    fn task(&self, scale: Scale) -> Result<Task, WorkloadError> {
        match scale {
            Scale::Small => random_task(4, 8, 8),
            Scale::Quick => random_task(4, FILE, 32),
            Scale::Full => random_task(12, FILE, 96),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: Header = Header { owner: 7, purposes: 1 << 5, expires: 2000, objects: false };
    const PUT: Command = Command {
        op: Op::Put,
        slot: 3,
        first: 0,
        records: 1,
        block: 0,
        purpose: 0,
        requester: 7,
        now: 1000,
    };
    const GET: Command = Command { op: Op::Get, requester: 9, purpose: 5, ..PUT };

    #[test]
    fn a_record_begins_with_its_policy() {
        let header = Header { owner: 0x0102, purposes: 1 << 63, expires: 3, objects: true };
        let record = record(&header, b"data").unwrap();
        let mut expected = b"REC1\x01\0\0\0\x02\x01\0\0\0\0\0\0".to_vec();
        expected.extend(b"\0\0\0\0\0\0\0\x80\x03\0\0\0\0\0\0\0\x04\0\0\0");
        expected.resize(64, 0);
        expected.extend(b"data");
        expected.resize(4096, 0);
        assert_eq!(record, expected);
    }

    #[test]
    fn each_rule_of_the_policy_refuses_its_records() {
        let good = record(&HEADER, &[1; 100]).unwrap();
        // Not the bytes: a failure would print them all.
        let check = |record: &[u8], command: &Command| {
            pass(record, command).map(|out| assert!(out == record, "{command:?}"))
        };
        assert_eq!(check(&good, &PUT), Ok(()));
        assert_eq!(check(&good, &GET), Ok(()));
        assert_eq!(check(&good, &Command { now: 1999, ..GET }), Ok(()));
        assert_eq!(check(&good, &Command { now: 2000, ..GET }), Err(Refusal::Expired));
        assert_eq!(check(&good, &Command { purpose: 4, ..GET }), Err(Refusal::Purpose));
        assert_eq!(check(&good, &Command { purpose: 4, requester: 7, ..GET }), Ok(()));
        assert_eq!(check(&good, &Command { requester: 9, ..PUT }), Err(Refusal::Owner));
        let objects = record(&Header { objects: true, ..HEADER }, &[]).unwrap();
        assert_eq!(check(&objects, &GET), Err(Refusal::Objection));
        assert_eq!(check(&objects, &Command { requester: 7, ..GET }), Ok(()));
        // Magic, unknown flag, length 4,192 instead of 100, a byte that is zero.
        for (at, byte) in [(0, 0), (4, 2), (33, 16), (63, 1)] {
            let mut broken = good.clone();
            broken[at] = byte;
            assert_eq!(check(&broken, &PUT), Err(Refusal::Broken), "byte {at}");
        }
        assert_eq!(check(&[0; RECORD], &GET), Err(Refusal::Broken));
    }

    #[test]
    fn bytes_behind_the_length_become_zero() {
        let mut long = record(&HEADER, &[1; 100]).unwrap();
        long[164] = 1;
        assert!(pass(&long, &PUT).unwrap() == record(&HEADER, &[1; 100]).unwrap());
    }

    #[test]
    fn a_refused_record_is_zeros_and_counted() {
        let good = record(&HEADER, b"a").unwrap();
        let late = record(&Header { expires: 1000, ..HEADER }, b"b").unwrap();
        let put = [good.clone(), late].concat();
        let commands = [Command { records: 2, ..PUT }, Command { records: 2, ..GET }];
        let answer = reference(&put, &commands);
        assert!(answer.get == [good, vec![0; RECORD]].concat());
        assert_eq!((answer.stored, answer.released), (1, 1));
        assert_eq!(answer.refused, [(0, 1, Refusal::Expired), (1, 1, Refusal::Broken)]);
        let result =
            |line: usize| random::bytes_of(&[1, 1, 1][..]) == answer.results[line * 64..][..12];
        assert!(result(0) && result(1));
        assert_eq!(answer.results[16], 1, "expired");
        assert_eq!(answer.results[64 + 12], 1, "broken");
        assert_eq!(answer.results[32], 2, "the second record");
    }

    #[test]
    fn what_the_accelerator_refuses_is_refused() {
        let put = record(&HEADER, &[]).unwrap();
        let bad = |command| task(&put, &[command], Refused::Expected).unwrap_err();
        for command in [
            Command { slot: SLOTS, ..PUT },
            Command { records: 0, ..PUT },
            Command { first: FILE, ..PUT },
            Command { first: 1, records: FILE, ..GET },
            Command { records: 2, ..PUT },
            Command { block: BLOCKS, ..GET },
            Command { block: u32::MAX, ..GET },
            Command { block: 1, ..GET },
            Command { purpose: 64, ..GET },
        ] {
            assert_eq!(bad(command).code(), "SHEF-WRK-003", "{command:?}");
        }
        for commands in [vec![], vec![PUT; MAX_COMMANDS + 1], vec![GET, GET]] {
            let error = task(&put, &commands, Refused::Expected).unwrap_err();
            assert_eq!(error.code(), "SHEF-WRK-003", "{} commands", commands.len());
        }
        assert_eq!(record(&HEADER, &[0; 4033]).unwrap_err().code(), "SHEF-WRK-003");
    }

    #[test]
    fn files_of_broken_records_are_refused() {
        let put = record(&HEADER, &[]).unwrap();
        for len in [RECORD - 1, RECORD + 64, (BLOCKS as usize + 1) * RECORD] {
            let error = task(&vec![0; len], &[PUT], Refused::Expected).unwrap_err();
            assert_eq!(error.code(), "SHEF-WRK-002", "{len} bytes");
        }
        assert!(task(&put, &[PUT, GET], Refused::Never).is_ok());
        let late = [PUT, Command { now: 2000, ..GET }];
        assert!(task(&put, &late, Refused::Expected).is_ok());
        let error = task(&put, &late, Refused::Never).unwrap_err();
        assert_eq!(error.code(), "SHEF-WRK-002");
        assert!(error.to_string().contains("Expired for record 0 of command 1"), "{error}");
    }

    #[test]
    fn the_evaluation_meets_every_rule() {
        let task = Storage.task(Scale::Quick).unwrap();
        let results = &task.outputs[0].1;
        for reason in 3..8 {
            let count: u32 = results.chunks(LINE).map(|line| word(line, 4 * reason)).sum();
            assert!(count > 0, "reason {reason}");
        }
        let size = task.outputs[1].1.len();
        assert!(size >= 4 << 20, "{size} bytes are got");
    }
}
