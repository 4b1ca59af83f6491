//! A card on AWS F2 boots from the medium that its URI names, at each open and after each reset:
//! behind an agent, an owner attests it and computes with it. Without a medium it is refused.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use shef::OpenOptions;
use shef_agent::init::{Plan as AgentPlan, init};
use shef_agent::{Agent, Config, Opener};
use shef_card::Control;
use shef_device::pci::f2::adapter::{ID, MEDIUM, PAGE, VERSION, reg};
use shef_device::pci::f2::{self, F2, Medium};
use shef_device::pci::{BAR_CTL, BAR_MSIX, Function, PciCard, VECTOR_ACCELERATOR};
use shef_device::{CTL_BYTES, DeviceError, Uri};
use shef_e2e::Served;
use shef_lab::attacks::{buffers, upload};
use shef_lab::data::{Dataset, PIXELS};
use shef_lab::world::{Cards, Plan, World};
use shef_lab::{knn, reference};
use shef_seal::OpenPolicy;
use shef_vfio_user::{DEFAULT_TIMEOUT, VfioUserFunction};

/// Words of the medium.
const WORDS: usize = 1 << 16;
/// The accelerator's vector on F2.
const ACCELERATOR: u32 = 15;

/// A served card behind the rules of F2's adapter: the control window answers only after START with
/// a complete medium, until the next reset.
struct Adapter {
    card: VfioUserFunction,
    medium: Vec<u32>,
    writes: u32,
    alert: u32,
    running: bool,
    boots: Arc<AtomicU32>,
}

impl Adapter {
    fn new(card: VfioUserFunction, boots: Arc<AtomicU32>) -> Self {
        Self { card, medium: vec![0; WORDS], writes: 0, alert: 0, running: false, boots }
    }

    fn register(&mut self, offset: u64) -> Result<u32, DeviceError> {
        Ok(match offset {
            o if o == PAGE + reg::ID => ID,
            o if o == PAGE + reg::VERSION => VERSION,
            o if o == PAGE + reg::MEDIUM_WORDS => WORDS as u32,
            o if o == PAGE + reg::MEDIUM_WRITES => self.writes,
            // Clock and memory, kernel ready, frozen.
            o if o == PAGE + reg::STATUS => {
                9 | if self.running { 0x14 } else { 0 } | self.alert << 8
            }
            o if o == PAGE + reg::PCIE => {
                let host = f2::configured(|at, out| self.card.config_read(at, out))?;
                let code = |bytes: u32| (bytes / 128).ilog2();
                host.map_or(0, |[payload, request]| code(payload) | code(request) << 4)
            }
            o if o >= MEDIUM && !self.running => self.medium[(o - MEDIUM) as usize / 4],
            _ => 0,
        })
    }

    fn set(&mut self, offset: u64, value: u32) {
        match (offset, value) {
            (o, 1) if o == PAGE + reg::CONTROL => {
                let word = |at: usize| self.medium[at / 4].to_le_bytes();
                let size = 4 * self.writes as usize;
                self.running = shef_kernel::Medium::read(size, 1 << 18, word).is_ok();
                self.alert = if self.running { 0 } else { 4 };
                self.boots.fetch_add(1, Ordering::SeqCst);
            }
            (o, 2) if o == PAGE + reg::CONTROL => {
                (self.running, self.alert, self.writes) = (false, 0, 0);
            }
            (o, value) if o >= MEDIUM && !self.running => {
                self.medium[(o - MEDIUM) as usize / 4] = value;
                self.writes += 1;
            }
            _ => {}
        }
    }
}

impl Function for Adapter {
    type Memory = <VfioUserFunction as Function>::Memory;

    fn dma(&mut self, bytes: u64) -> Result<Self::Memory, DeviceError> {
        Function::dma(&mut self.card, bytes)
    }

    fn release(&mut self, memory: Self::Memory, quiet: bool) -> Result<(), DeviceError> {
        self.card.release(memory, quiet)
    }

    fn config_read(&mut self, offset: u16, out: &mut [u8]) -> Result<(), DeviceError> {
        self.card.config_read(offset, out)
    }

    fn config_write(&mut self, offset: u16, data: &[u8]) -> Result<(), DeviceError> {
        self.card.config_write(offset, data)
    }

    fn bar_bytes(&self, bar: u8) -> u64 {
        if bar == BAR_CTL { 64 << 20 } else { self.card.bar_bytes(bar) }
    }

    fn bar_read(&mut self, bar: u8, offset: u64, out: &mut [u8]) -> Result<(), DeviceError> {
        match bar {
            BAR_CTL if offset >= CTL_BYTES.into() || !self.running => {
                let word = self.register(offset)?.to_le_bytes();
                out.copy_from_slice(&word[..out.len()]);
                Ok(())
            }
            // No block of interrupt registers.
            BAR_MSIX => {
                out.fill(0);
                Ok(())
            }
            _ => self.card.bar_read(bar, offset, out),
        }
    }

    fn bar_write(&mut self, bar: u8, offset: u64, data: &[u8]) -> Result<(), DeviceError> {
        match bar {
            BAR_CTL if offset >= CTL_BYTES.into() || !self.running => {
                let mut word = [0; 4];
                word[..data.len()].copy_from_slice(data);
                self.set(offset, u32::from_le_bytes(word));
                Ok(())
            }
            _ => self.card.bar_write(bar, offset, data),
        }
    }

    fn wait_vector(&mut self, vector: u32, timeout: Duration) -> Result<bool, DeviceError> {
        let vector = if vector == ACCELERATOR { VECTOR_ACCELERATOR } else { vector };
        self.card.wait_vector(vector, timeout)
    }

    fn reset(&mut self) -> Result<(), DeviceError> {
        self.card.reset()?;
        (self.running, self.alert, self.writes) = (false, 0, 0);
        Ok(())
    }
}

/// Opens a card as `shef_vfio::open` does, with the served card in place of a function of this
/// machine.
fn opener(socket: &Path, boots: &Arc<AtomicU32>) -> Opener {
    let (socket, boots) = (socket.to_owned(), Arc::clone(boots));
    Arc::new(move |uri| {
        let Uri::Pci { function, boot, .. } = uri else { panic!("{uri}") };
        let medium = boot.as_deref().map(Medium::read).transpose()?;
        let card = VfioUserFunction::open(&socket, DEFAULT_TIMEOUT)?;
        let card = Adapter::new(card, Arc::clone(&boots));
        let (uri, root) = (uri.to_string(), "provider");
        match medium {
            Some(medium) => {
                let card = F2::new(card, &function.to_string(), medium)?;
                Ok(Box::new(PciCard::open(card, &uri, "a card on F2", root)?))
            }
            None => Ok(Box::new(PciCard::open(card, &uri, "a card", root)?)),
        }
    })
}

/// Writes the files of a boot medium.
fn medium(folder: &Path) {
    std::fs::create_dir(folder).unwrap();
    for (name, bytes) in Medium::FILES.iter().zip([9000, shef_kernel::SIGNATURE_FILE_LEN, 300]) {
        std::fs::write(folder.join(name), vec![7; bytes]).unwrap();
    }
}

#[test]
fn an_owner_computes_on_a_card_that_an_agent_boots() {
    let served = Served::start("model");
    let dir = tempfile::tempdir().unwrap();
    let boot = dir.path().join("boot");
    medium(&boot);
    let device = |query: &str| format!("pci:0000:34:00.0{query}").parse::<Uri>().unwrap();
    let names = ["whole", "none", "empty"];
    let queries = [format!("?boot={}", boot.display()), String::new(), "?boot=/nowhere".to_owned()];
    let plan = AgentPlan {
        dir: dir.path().join("agent"),
        listen: "127.0.0.1:0".into(),
        names: vec!["localhost".into()],
        owners: vec!["alice".into()],
        devices: names
            .iter()
            .map(|name| (*name).to_owned())
            .zip(queries.iter().map(|q| device(q)))
            .collect(),
    };
    init(&plan).unwrap();
    let boots = Arc::new(AtomicU32::new(0));
    let all = Config::load(&plan.dir.join("agent.toml")).unwrap();
    let owner = plan.dir.join("owners/alice");
    let tls = shef::TlsFiles {
        ca: owner.join("ca.pem"),
        cert: owner.join("cert.pem"),
        key: owner.join("key.pem"),
    };
    // One device at a time: there is one card.
    let with_agent = |name: &str, body: &mut dyn FnMut(&Uri)| {
        let mut config = all.clone();
        config.devices.retain(|known, _| known == name);
        let opener = opener(&served.socket(), &boots);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let agent = runtime.block_on(Agent::bind(&config, opener)).unwrap();
        let (port, running) = (agent.address().unwrap().port(), agent.handle());
        let serving = runtime.spawn(agent.serve());
        body(&shef_fixtures::agent::uri(port, name));
        running.stop();
        runtime.block_on(serving).unwrap();
    };
    let open =
        |uri: &Uri| shef::open_with(uri, OpenOptions { tls: Some(tls.clone()), progress: None });

    with_agent("none", &mut |uri| {
        let error = open(uri).err().expect("a card without medium");
        assert!(
            error.to_string().contains("pci:0000:34:00.0 waits for its boot medium"),
            "{error}"
        );
    });
    with_agent("empty", &mut |uri| {
        let error = open(uri).err().expect("a folder that is not there");
        assert!(error.to_string().contains("cannot read /nowhere/kernel.img"), "{error}");
    });
    assert_eq!(boots.load(Ordering::SeqCst), 0);

    with_agent("whole", &mut |uri| {
        let cards = Cards::Served {
            uri: uri.clone(),
            control: Control::path_of(&served.socket()),
            tls: Some(tls.clone()),
        };
        let plan = Plan { cards, seed: None, name: "booted".into(), service: None };
        let mut world = World::new(&dir.path().join("world"), plan).unwrap();
        let rows = (0..16).map(|n| [5 * n; PIXELS]).collect();
        let few = Dataset { rows, labels: (0..16).map(|n| n % 10).collect() };
        // The agent resets the card between two owners.
        for _ in 0..2 {
            let before = boots.load(Ordering::SeqCst);
            let mut host = open(uri).unwrap();
            let mut session = world.session(&mut host).unwrap();
            let b = buffers(&session).unwrap();
            upload(&mut session, &b, &few, &few).unwrap();
            let job = knn::job(b.train.addr(), b.query.addr(), b.result.addr(), 16, 16);
            let done = (knn::reg::STATUS, knn::DONE | knn::ERROR);
            let statement = session.run(&job, (knn::reg::CTRL, 1), done).unwrap();
            let len = knn::result_len(16);
            let opened = session.open(&b.result, &statement, len, OpenPolicy::default()).unwrap();
            let expected = Some(reference::classify_all(&few, &few));
            assert_eq!(knn::answers(&opened.data[..len], 16), expected);
            drop(session);
            drop(host);
            shef_fixtures::agent::eventually("a boot after the session", || {
                boots.load(Ordering::SeqCst) > before
            });
        }
    });
}

/// Agent and owner open it in the same way: first the files, then the card.
#[test]
fn every_program_reads_the_medium_that_the_uri_names() {
    let uri: Uri = "pci:0000:34:00.0?iommu=none&boot=/nowhere".parse().unwrap();
    let agent = shef_agent::open(&uri).err().expect("no medium");
    let owner = shef::open(&uri).err().expect("no medium");
    for (code, message) in [(agent.code(), agent.to_string()), (owner.code(), owner.to_string())] {
        assert_eq!(code, "SHEF-DEV-024");
        assert!(message.contains("/nowhere/kernel.img"), "{message}");
    }
}
