//! `--keep DIR`: stores everything that crossed a boundary, so that others can check it with
//! independent tools.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use shef::{Host, Image, Keyed, Service, Session};
use shef_proto::config::{Region, TAG_LEN};

use super::report::Report;
use shef_console::CliError;
use shef_console::file;
use shef_console::folder;
use shef_console::hex;
use shef_lab::tap::{MessageKind, Record};
use shef_lab::world::World;
use shef_proto::load::SessionKeys;

const README: &str = "Everything that crossed a boundary in one run of `shef demo`.

report.json          what the command printed with --json
policy.toml, reference.toml, anchors.toml
                     what evidence was held against (`shef verify` reads them)
config.cbor          the Shield's configuration, measured (docs/reference/shield-config.md)
evidence/            kernel.cbor and shield.cbor (COSE_Sign1, EAT), with .nonce and .audience of their challenges
certificates/        ak.der, device-id.der, root.der
image.shef           image container; image.pub the vendor's key; key-box.cbor the released image key, sealed to the kernel
load-key.bin         Load Key (docs/reference/load-key.md); confirmation.bin what the Shield showed
memory/              card memory of each region: NAME.data ciphertext, NAME.tags (docs/reference/sealed-memory.md)
channel.jsonl        register traffic, sealed, in order (docs/reference/register-channel.md)
close-record.cbor    close record, countersigned by the kernel
messages.jsonl       every message in order, as it was delivered
receipts.json        only with --verifier: the service's receipts, and jwks.json its keys (`shef audit verify`)
secrets.json         only with --keep-secrets: the keys of the session
";

/// Its subfolders.
const FOLDERS: [&str; 3] = ["evidence", "certificates", "memory"];

/// Whether a run writes a file at this path.
fn is_part(name: &str) -> bool {
    const NAMES: [&str; 16] = [
        "README.txt",
        "report.json",
        "policy.toml",
        "reference.toml",
        "anchors.toml",
        "config.cbor",
        "image.shef",
        "image.pub",
        "key-box.cbor",
        "load-key.bin",
        "confirmation.bin",
        "channel.jsonl",
        "close-record.cbor",
        "messages.jsonl",
        "receipts.json",
        "jwks.json",
    ];
    const BELOW: [(&str, &[&str], &[&str]); 3] = [
        ("evidence/", &["kernel", "shield"], &[".cbor", ".nonce", ".audience"]),
        ("certificates/", &["ak", "device-id", "root"], &[".der"]),
        ("memory/", &[], &[".data", ".tags"]),
    ];
    let below = |(folder, names, ends): &(&str, &[&str], &[&str])| {
        let Some(file) = name.strip_prefix(folder) else { return false };
        ends.iter()
            .filter_map(|end| file.strip_suffix(end))
            .any(|stem| names.is_empty() || names.contains(&stem))
    };
    NAMES.contains(&name) || name == "secrets.json" || BELOW.iter().any(below)
}

/// The folder.
pub struct Keep {
    dir: PathBuf,
}

impl Keep {
    /// Creates the folder, or reuses one from an earlier run.
    ///
    /// # Errors
    /// SHEF-CLI-015, and SHEF-CLI-027 if it holds anything else.
    pub fn new(dir: &Path) -> Result<Self, CliError> {
        folder::is_ours(dir, &FOLDERS, &["README.txt"], is_part)?;
        let keep = Self { dir: dir.to_owned() };
        fs::create_dir_all(dir).map_err(|e| CliError::write_file(dir, &e))?;
        // Written first: the next run recognises the folder by it.
        keep.write("README.txt", README.as_bytes())?;
        for part in FOLDERS {
            let path = dir.join(part);
            fs::create_dir_all(&path).map_err(|e| CliError::write_file(&path, &e))?;
        }
        // Secrets of an earlier run must not lie beside the messages of this one.
        let secrets = dir.join("secrets.json");
        if secrets.exists() {
            fs::remove_file(&secrets).map_err(|e| CliError::write_file(&secrets, &e))?;
        }
        Ok(keep)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), CliError> {
        file::write(&self.dir.join(name), bytes)
    }

    /// Writes the report.
    ///
    /// # Errors
    /// SHEF-CLI-015.
    pub fn report(&self, report: &Report) -> Result<(), CliError> {
        let text =
            serde_json::to_string_pretty(report).map_err(|e| CliError::internal(e.to_string()))?;
        self.write("report.json", text.as_bytes())
    }

    /// Writes evidence and its challenge.
    ///
    /// # Errors
    /// SHEF-CLI-015.
    pub fn evidence(
        &self,
        name: &str,
        evidence: &[u8],
        nonce: &[u8],
        audience: &str,
    ) -> Result<(), CliError> {
        self.write(&format!("evidence/{name}.cbor"), evidence)?;
        self.write(
            &format!("evidence/{name}.nonce"),
            format!("{}\n", hex::encode(nonce)).as_bytes(),
        )?;
        self.write(&format!("evidence/{name}.audience"), format!("{audience}\n").as_bytes())
    }

    /// Writes the parties' published data.
    ///
    /// # Errors
    /// SHEF-CLI-015.
    pub fn parties(
        &self,
        world: &World,
        image: &Image,
        key_box: &[u8],
        certificates: &[Vec<u8>],
    ) -> Result<(), CliError> {
        let verifier = world.verifier();
        let att = |e: shef_verify::PolicyError| CliError::new(e.code(), e.to_string());
        self.write("policy.toml", verifier.policy().to_toml().map_err(att)?.as_bytes())?;
        self.write("reference.toml", verifier.reference().to_toml().map_err(att)?.as_bytes())?;
        let anchors: Vec<String> =
            verifier.anchors().iter().map(shef_verify::TrustAnchor::to_toml).collect();
        self.write("anchors.toml", anchors.join("\n").as_bytes())?;
        self.write("config.cbor", &world.config().to_cbor())?;
        self.write("image.shef", &image.container)?;
        self.write(
            "image.pub",
            format!("{}\n", hex::encode(world.vendor_key().as_bytes())).as_bytes(),
        )?;
        self.write("key-box.cbor", key_box)?;
        for (name, der) in ["ak", "device-id"].into_iter().zip(certificates) {
            self.write(&format!("certificates/{name}.der"), der)?;
        }
        self.write("certificates/root.der", world.root())
    }

    /// Writes receipts of a verifier service, and the keys that verify them.
    ///
    /// # Errors
    /// SHEF-CLI-015, and service errors.
    pub fn service(&self, service: &Service) -> Result<(), CliError> {
        let receipts = serde_json::to_vec(&service.receipts()?)
            .map_err(|error| CliError::internal(error.to_string()))?;
        self.write("receipts.json", &receipts)?;
        self.write("jwks.json", &service.get_bytes("/.well-known/jwks.json")?)
    }

    /// Writes the session's Load Key, and its keys if they are given.
    ///
    /// # Errors
    /// SHEF-CLI-015.
    pub fn session(
        &self,
        session: &Session<'_, Keyed>,
        keys: Option<&SessionKeys>,
    ) -> Result<(), CliError> {
        self.write("load-key.bin", session.load_key())?;
        let Some(keys) = keys else { return Ok(()) };
        let regions: serde_json::Map<String, serde_json::Value> = session
            .config()
            .regions()
            .iter()
            .filter_map(|r| {
                let key = hex::encode(keys.data_key(r.id)?.expose());
                Some((r.name.clone(), json!({ "region": r.id, "key": key })))
            })
            .collect();
        let text = json!({
            "warning": "keys of a simulated session; a real one never shows them",
            "transcript": hex::encode(&session.transcript()),
            "data": regions,
            "channel_owner_to_shield": hex::encode(keys.to_shield().expose()),
            "channel_shield_to_owner": hex::encode(keys.to_owner().expose()),
        });
        let text =
            serde_json::to_string_pretty(&text).map_err(|e| CliError::internal(e.to_string()))?;
        file::write_new_secret(&self.dir.join("secrets.json"), text.as_bytes())
    }

    /// Writes the card memory of these regions.
    ///
    /// # Errors
    /// SHEF-CLI-015, and device errors.
    pub fn memory(&self, host: &mut Host, parts: &[(Region, usize)]) -> Result<(), CliError> {
        for (region, len) in parts {
            let chunks = (*len as u64).div_ceil(u64::from(region.chunk));
            let mut data = vec![0; (chunks * u64::from(region.chunk)) as usize];
            let mut tags = vec![0; (chunks * TAG_LEN) as usize];
            host.device().mem_read(region.base, &mut data)?;
            host.device().mem_read(region.tag_base, &mut tags)?;
            self.write(&format!("memory/{}.data", region.name), &data)?;
            self.write(&format!("memory/{}.tags", region.name), &tags)?;
        }
        Ok(())
    }

    /// Writes the close record.
    ///
    /// # Errors
    /// SHEF-CLI-015.
    pub fn close_record(&self, record: &[u8]) -> Result<(), CliError> {
        self.write("close-record.cbor", record)
    }

    /// Writes every message.
    ///
    /// # Errors
    /// SHEF-CLI-015.
    pub fn messages(&self, records: &[Record]) -> Result<(), CliError> {
        let mut all = String::new();
        let mut channel = String::new();
        for Record { kind, bytes } in records {
            let line = match kind {
                MessageKind::MemoryWrite { addr } => {
                    json!({ "leg": "memory-write", "addr": addr, "bytes": bytes.len() })
                }
                MessageKind::MemoryRead { addr } => {
                    json!({ "leg": "memory-read", "addr": addr, "bytes": bytes.len() })
                }
                kind => json!({ "leg": kind.name(), "hex": hex::encode(bytes) }),
            };
            all.push_str(&format!("{line}\n"));
            if matches!(kind, MessageKind::Request | MessageKind::Answer) {
                channel.push_str(&format!("{line}\n"));
            }
            if *kind == MessageKind::Confirmation {
                self.write("confirmation.bin", bytes)?;
            }
        }
        self.write("messages.jsonl", all.as_bytes())?;
        self.write("channel.jsonl", channel.as_bytes())
    }
}
