//! A card around the model, served from a thread.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use shef_card::{
    Blank, Card, CardError, CardOptions, Control, Engine, Identity, ServeOptions, serve,
};
use shef_device::pci::PciCard;
use shef_proto::cert::{Certificate, NO_CLOCK, NO_END, issue_device_id, issue_root};
use shef_proto::cose::SigningKey;
use shef_vfio_user::{DEFAULT_TIMEOUT, VfioUserFunction};
use zeroize::Zeroizing;

pub fn make() -> Result<(Card, Identity), CardError> {
    let ca = SigningKey::derive(&[7; 32]);
    let der = issue_root(&ca, "test", NO_CLOCK, NO_END);
    let root = Certificate::parse(&der).unwrap();
    let mut blank = Blank::new(CardOptions::digits(Engine::Model)?, &mut |_| {})?;
    let key = blank.burn(Zeroizing::new([1; 32]));
    let mut card = blank.finish(issue_device_id(&ca, &root, &key, NO_CLOCK))?;
    card.add_debug_identity(Zeroizing::new([2; 32]), |key| {
        issue_device_id(&ca, &root, key, NO_CLOCK)
    });
    Ok((
        card,
        Identity {
            root: der.clone(),
            debug_root: der,
            design_digest: [3; 32],
            accelerator: "digits".into(),
            program: Vec::new(),
            engine: "sim:model".into(),
        },
    ))
}

pub struct Served {
    dir: tempfile::TempDir,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub fn new(memory_bytes: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let stop = Arc::<AtomicBool>::default();
        let options = ServeOptions { memory_bytes, ..ServeOptions::new(&dir.path().join("card")) };
        let (sender, ready) = mpsc::channel();
        let end = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            serve(&options, make, &end, || sender.send(()).unwrap()).unwrap();
        });
        ready.recv().unwrap();
        Self { dir, stop, thread: Some(thread) }
    }

    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("card")
    }

    /// Opens the card as soon as the previous client has disconnected.
    pub fn open_within(&self, timeout: Duration) -> PciCard<VfioUserFunction> {
        (0..2000)
            .find_map(|_| match shef_vfio_user::open(&self.socket(), timeout) {
                Ok(card) => Some(card),
                Err(error) if error.code() == "SHEF-VFU-002" => {
                    std::thread::sleep(Duration::from_millis(5));
                    None
                }
                Err(error) => panic!("{error}"),
            })
            .expect("the place is free")
    }

    pub fn open(&self) -> PciCard<VfioUserFunction> {
        self.open_within(DEFAULT_TIMEOUT)
    }

    pub fn control(&self) -> Control {
        Control::open(&Control::path_of(&self.socket())).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.thread.take().unwrap().join();
    }
}
