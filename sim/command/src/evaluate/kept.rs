//! Rows that are kept by content: a row whose design, data and memory are the same is not run again.

use std::fs;
use std::path::PathBuf;

use sha2::{Digest, Sha256};
use shef_card::{Design, cache_dir};
use shef_console::hex;
use shef_workloads::{Task, Value};

use super::row::Row;

/// Changes when rows are measured in another way.
const VERSION: u64 = 1;

/// Where a row is kept.
pub struct Kept(PathBuf);

impl Kept {
    /// The place of a row of this task: the accelerator in both designs, behind a memory of this
    /// latency.
    pub fn new(task: &Task, bare: &Design, shielded: &Design, latency: u64) -> Self {
        let mut hash = Sha256::new();
        let mut part = |bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        for number in [VERSION, latency] {
            part(&number.to_le_bytes());
        }
        part(env!("CARGO_PKG_VERSION").as_bytes());
        part(&bare.digest());
        part(&shielded.digest());
        for (name, value) in &task.registers {
            part(name.as_bytes());
            match value {
                Value::Number(number) => part(&number.to_le_bytes()),
                Value::Address(region) => part(format!("@{region}").as_bytes()),
                Value::Offset(region, byte) => part(format!("@{region}+{byte}").as_bytes()),
                Value::AddressHigh(region) => part(format!("@{region}:high").as_bytes()),
            }
        }
        for (name, data) in task.inputs.iter().chain(&task.outputs) {
            part(name.as_bytes());
            part(data);
        }
        for (name, value) in &task.reads {
            part(name.as_bytes());
            part(&value.to_le_bytes());
        }
        let name = format!("{}.json", hex::encode(&hash.finalize()[..16]));
        Self(cache_dir().join("evaluation").join(name))
    }

    /// The row, if it is there.
    pub fn read(&self) -> Option<Row> {
        serde_json::from_slice(&fs::read(&self.0).ok()?).ok()
    }

    /// Keeps a row that passed. A cache that cannot be written keeps nothing.
    pub fn write(&self, row: &Row) {
        let Some(folder) = self.0.parent() else { return };
        let Ok(text) = serde_json::to_vec(row) else { return };
        let part = self.0.with_extension(format!("{}.part", std::process::id()));
        let written = fs::create_dir_all(folder)
            .and_then(|()| fs::write(&part, text))
            .and_then(|()| fs::rename(&part, &self.0));
        if written.is_err() {
            // A row that is not kept is measured again.
            let _ = fs::remove_file(&part);
        }
    }
}
