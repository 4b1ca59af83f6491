//! Host-side throughput and latency: sealing, opening, and both together with rings to a card
//! around the model, each beside its baseline in the same run; part of `cargo xtask bench host`.
//!
//! Throughputs are the best of many short runs, baselines included, all of them in turns, so that
//! other load on the machine slows all of them. Latencies are of the quietest of several turns. The
//! card is a thread of this process, so its copies take their share of the processors.

use std::cell::RefCell;
use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use shef::transfer::{Open, download_into, unwatched, upload};
use shef::{Device, Host, SystemEntropy, Uri};
use shef_card::{Blank, Card, CardError, CardOptions, Engine, Identity, ServeOptions, serve};
use shef_device::pci::{BAR_CTL, Function, PciCard};
use shef_device::ring::{
    COMPLETION, Completion, DESCRIPTOR, Descriptor, DmaBuffer, DmaMemory, OP_NOTHING, OP_TO_CARD,
    Queue, Registers, Status, reg,
};
use shef_device::{DeviceError, SharedMemory, mailbox};
use shef_proto::cert::{Certificate, NO_CLOCK, NO_END, issue_device_id, issue_root};
use shef_proto::channel::{
    ChannelError, Op, OwnerChannel, Received, RegionStatement, ShieldAnswer, ShieldChannel,
    ShieldStatement, Statement, WrittenMap,
};
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::{Entropy, SeededEntropy};
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::load::{SessionKeys, first_epochs, open_load_key, seal_load_key};
use shef_seal::{ChunkCipher, OpenPolicy, Opener, SealedRun, Sealer, Spent};
use shef_vfio_user::VfioUserFunction;

/// Bytes of each region.
///
/// Larger regions measure the main memory of this machine, which holds the card's memory here; a
/// real card has separate memory.
const SIZE: usize = 8 << 20;
/// Bytes of a chunk.
const CHUNK: usize = 4096;
/// Bytes for one core: no thread is started for fewer.
const ONE_CORE: usize = 256 << 10;
/// Bytes per run on all cores.
const ALL_CORES: usize = 8 << 20;
/// Total time for all throughputs, and for one turn of one of them.
const TIME: (Duration, Duration) = (Duration::from_secs(15), Duration::from_millis(40));
/// Turns of small operations, and operations of each kind in a turn.
const SMALL: (usize, usize) = (9, 2000);
/// Descriptors per doorbell, as in bulk transfers, and descriptors that callgrind counts.
const COUNTED: (u32, u32) = (8, 4000);

struct Row {
    name: &'static str,
    value: f64,
    unit: &'static str,
    baseline: f64,
    /// Name of the baseline.
    beside: &'static str,
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, mode, which] = &args[..]
        && mode == "--descriptors"
    {
        return descriptors(which == "ring");
    }
    let mut rows = throughputs();
    rows.extend(latencies());
    rows.extend(instructions());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if args.iter().any(|arg| arg == "--json") {
        let row = |r: &Row| {
            let (value, baseline) = (r.value, r.baseline);
            let ratio = value / baseline;
            let (name, unit, beside) = (r.name, r.unit, r.beside);
            format!(
                r#"{{"name":"{name}","value":{value:.3},"unit":"{unit}","baseline":{baseline:.3},"ratio":{ratio:.3},"beside":"{beside}"}}"#
            )
        };
        let rows: Vec<String> = rows.iter().map(row).collect();
        println!(r#"{{"cores":{cores},"rows":[{}]}}"#, rows.join(","));
    } else {
        println!("{cores} cores, AES-256-GCM, chunks of {CHUNK} bytes");
        for r in rows {
            println!(
                "{:<16} {:>10.2} {:<12} {:>6.2} of {:.2}, {}",
                r.name,
                r.value,
                r.unit,
                r.value / r.baseline,
                r.baseline,
                r.beside
            );
        }
    }
}

/// A card around the model, served from a thread.
struct Served {
    dir: tempfile::TempDir,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        let stop = Arc::<AtomicBool>::default();
        let options =
            ServeOptions { memory_bytes: 1 << 30, ..ServeOptions::new(&dir.path().join("card")) };
        let (sender, ready) = mpsc::channel();
        let end = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            serve(&options, card, &end, || sender.send(()).expect("awaited")).expect("served");
        });
        ready.recv().expect("a card");
        Self { dir, stop, thread: Some(thread) }
    }

    fn socket(&self) -> std::path::PathBuf {
        self.dir.path().join("card")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A card with a separate manufacturer.
fn card() -> Result<(Card, Identity), CardError> {
    let mut entropy = SystemEntropy::new().expect("entropy");
    let ca = SigningKey::generate(&mut entropy);
    let der = issue_root(&ca, "bench", NO_CLOCK, NO_END);
    let root = Certificate::parse(&der).expect("a certificate");
    let mut blank = Blank::new(CardOptions::digits(Engine::Model)?, &mut |_| {})?;
    let mut uds = zeroize::Zeroizing::new([0; 32]);
    entropy.fill(&mut uds[..]);
    let key = blank.burn(uds);
    let card = blank.finish(issue_device_id(&ca, &root, &key, NO_CLOCK))?;
    Ok((
        card,
        Identity {
            root: der.clone(),
            debug_root: der,
            design_digest: [0; 32],
            accelerator: "digits".into(),
            program: Vec::new(),
            engine: "sim:model".into(),
        },
    ))
}

/// A measured operation: bytes of a run, how long a run takes, and the shortest time so far.
struct Body<'a> {
    bytes: usize,
    run: Box<dyn FnMut() -> Duration + 'a>,
    least: Duration,
}

impl<'a> Body<'a> {
    fn new(bytes: usize, run: impl FnMut() -> Duration + 'a) -> Self {
        Self { bytes, run: Box::new(run), least: Duration::MAX }
    }

    /// The best rate, in GB/s.
    fn rate(&self) -> f64 {
        self.bytes as f64 / self.least.as_secs_f64() / 1e9
    }
}

/// Runs all of them in turns.
fn in_turns(bodies: &mut [&mut Body<'_>]) {
    let begin = Instant::now();
    while begin.elapsed() < TIME.0 {
        for body in &mut *bodies {
            let turn = Instant::now();
            while turn.elapsed() < TIME.1 {
                body.least = body.least.min((body.run)());
            }
        }
    }
}

fn throughputs() -> Vec<Row> {
    let config = config();
    let served = Served::new();
    let uri = Uri::VfioUser { socket: served.socket(), boot: None };
    let host = RefCell::new(shef::open(&uri).expect("the card"));
    let bytes = vec![0x5a; SIZE];
    let (mut copy, mut into) = (vec![0; SIZE], vec![0; SIZE]);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (mut bare, mut bare_all) = (bare(ONE_CORE, 1), bare(ALL_CORES, threads));
    let mut memcpy =
        Body::new(SIZE, || timed(|| black_box(&mut copy).copy_from_slice(black_box(&bytes))));
    let mut seal_core = seal(&config, ONE_CORE);
    let mut open_core = open(&config, ONE_CORE);
    let mut seal_all = seal(&config, ALL_CORES);
    let mut open_all = open(&config, ALL_CORES);
    let mut uploads = uploads(&config, &host);
    let mut downloads = downloads(&config, &host);
    let mut to_card = Body::new(SIZE, || {
        timed(|| {
            let mut host = host.borrow_mut();
            host.device().mem_write(0, &bytes).expect("written");
            host.device().ctl_read32(mailbox::STATUS).expect("a register");
        })
    });
    let mut from_card = Body::new(SIZE, || {
        timed(|| host.borrow_mut().device().mem_read(0x800_0000, &mut into).expect("read"))
    });
    in_turns(&mut [
        &mut bare,
        &mut bare_all,
        &mut memcpy,
        &mut seal_core,
        &mut open_core,
        &mut seal_all,
        &mut open_all,
        &mut uploads,
        &mut downloads,
        &mut to_card,
        &mut from_card,
    ]);
    let row = |name, body: &Body<'_>, baseline: &Body<'_>, beside| Row {
        name,
        value: body.rate(),
        unit: "GB/s",
        baseline: baseline.rate(),
        beside,
    };
    let (cipher, copied) = ("bare aws-lc-rs on one core", "memcpy on one core");
    vec![
        row("seal_core", &seal_core, &bare, cipher),
        row("open_core", &open_core, &bare, cipher),
        // This machine's rate on more than one core.
        row("bare_all", &bare_all, &bare, cipher),
        row("seal_all", &seal_all, &bare, cipher),
        row("open_all", &open_all, &bare, cipher),
        row("upload", &uploads, &bare, cipher),
        row("download", &downloads, &bare, cipher),
        row("upload_memcpy", &uploads, &memcpy, copied),
        row("download_memcpy", &downloads, &memcpy, copied),
        row("ring_to_card", &to_card, &memcpy, copied),
        row("ring_from_card", &from_card, &memcpy, copied),
    ]
}

/// The given percentile of `times`, in microseconds.
fn percentile(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e6
}

fn latencies() -> Vec<Row> {
    let served = Served::new();
    let mut card =
        shef_vfio_user::open(&served.socket(), shef_vfio_user::DEFAULT_TIMEOUT).expect("the card");
    let mut rows = doorbells(&mut card);
    rows.extend(small_operations(&mut card));
    rows
}

/// A descriptor that does nothing, from the doorbell to its completion.
fn doorbells(card: &mut PciCard<VfioUserFunction>) -> Vec<Row> {
    let function = card.function();
    let memory = function.dma(4096).expect("memory");
    let mut queue = Queue::open(function, 0, 2, memory, 1, 1).expect("a queue");
    let nothing = Descriptor { op: OP_NOTHING, flags: 0, tag: 0, host: 0, card: 0, bytes: 0 };
    let mut quietest = [f64::MAX; 3];
    for _ in 0..SMALL.0 {
        let mut times = [const { vec![] }; 3];
        for _ in 0..SMALL.1 {
            times[0].push(timed(|| {
                function
                    .bar_read(BAR_CTL, (reg::BASE + reg::STATUS).into(), &mut [0; 4])
                    .expect("a register");
            }));
            for (n, wait) in [(1, false), (2, true)] {
                times[n].push(timed(|| {
                    assert!(queue.push(&nothing).expect("pushed"));
                    queue.submit(function).expect("a doorbell");
                    if wait {
                        queue
                            .wait(function, Duration::from_secs(10))
                            .expect("a queue")
                            .expect("a completion");
                    } else {
                        while queue.poll().expect("sense").is_none() {
                            std::hint::spin_loop();
                        }
                    }
                }));
            }
        }
        for (best, times) in quietest.iter_mut().zip(&mut times) {
            *best = best.min(percentile(times, 50));
        }
    }
    let [read, polled, waited] = quietest;
    queue.close(function).expect("off");
    let row =
        |name, value| Row { name, value, unit: "us", baseline: read, beside: "a register read" };
    vec![row("doorbell_polled", polled), row("doorbell_waited", waited)]
}

/// Writes of one chunk through the window, sealed and plain.
fn small_operations(card: &mut PciCard<VfioUserFunction>) -> Vec<Row> {
    let mut sealer = Some(first_epoch(&config(), 1000));
    let (chunk, mut run) = (vec![0x5a; CHUNK], SealedRun::default());
    let mut quietest: Option<([f64; 2], [f64; 2])> = None;
    for _ in 0..SMALL.0 {
        let mut times = [vec![], vec![]];
        for _ in 0..SMALL.1 {
            // Done means that the card has the data: a register read after it.
            let settled = |card: &mut PciCard<VfioUserFunction>| {
                card.ctl_read32(mailbox::STATUS).expect("a register")
            };
            times[0].push(timed(|| {
                card.mem_write(0, &chunk).expect("written");
                settled(card);
            }));
            let mut ready = sealer.take().expect("it comes back");
            times[1].push(timed(|| {
                ready.push_into(&chunk, &mut run).expect("sealed");
                card.mem_write(run.addr, &run.data).expect("written");
                card.mem_write(run.tag_addr, &run.tags).expect("written");
                settled(card);
            }));
            sealer = Some(with_room(ready, CHUNK));
        }
        let mean =
            |times: &[Duration]| times.iter().sum::<Duration>().as_secs_f64() / times.len() as f64;
        let rates = times.each_ref().map(|t| 1.0 / mean(t));
        let p99 = times.each_mut().map(|t| percentile(t, 99));
        if quietest.is_none_or(|(best, _)| p99[0] + p99[1] < best[0] + best[1]) {
            quietest = Some((p99, rates));
        }
    }
    let (p99, rates) = quietest.expect("there are turns");
    let beside = "the same without sealing";
    vec![
        Row { name: "small_op_p99", value: p99[1], unit: "us", baseline: p99[0], beside },
        Row {
            name: "small_ops",
            value: rates[1],
            unit: "operations/s",
            baseline: rates[0],
            beside,
        },
    ]
}

/// Instructions per descriptor: the difference that callgrind counts with and without the ring.
fn instructions() -> Option<Row> {
    let count = |which: &str| -> Option<f64> {
        let program = std::env::current_exe().ok()?;
        let mut command = Command::new("valgrind");
        command
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(program)
            .args(["--descriptors", which]);
        let output = match command.output() {
            Ok(output) if output.status.success() => output,
            Ok(output) => panic!("valgrind failed: {}", String::from_utf8_lossy(&output.stderr)),
            Err(error) => {
                eprintln!(
                    "ring_descriptor is not measured, valgrind does not start ({error}): apt-get install valgrind"
                );
                return None;
            }
        };
        // `==1234== Collected : 567`
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let counted = text
            .lines()
            .find_map(|line| line.split_once("Collected :")?.1.trim().parse::<f64>().ok());
        Some(
            counted.unwrap_or_else(|| panic!("callgrind counted nothing: {text}"))
                / f64::from(COUNTED.1),
        )
    };
    let (with, without) = (count("ring")?, count("bare")?);
    Some(Row {
        name: "ring_descriptor",
        value: with - without,
        unit: "instructions",
        baseline: without,
        beside: "the program without a ring",
    })
}

/// A card that completes every descriptor at once.
struct Ready {
    memory: DmaBuffer,
    entries: u32,
    over: u32,
    on: u32,
}

impl Ready {
    /// Writes completions for all descriptors before `tail`.
    fn complete(&mut self, tail: u32) {
        while self.over != tail {
            let at = u64::from(self.entries) * DESCRIPTOR
                + u64::from(self.over % self.entries) * COMPLETION;
            let completion =
                Completion { tag: self.over, status: Status::Done, retired: 1, bytes: 4096 };
            self.over += 1;
            self.memory.write(at, &completion.encode()).expect("inside");
            self.memory.memory().store(at + 12, self.over).expect("inside");
        }
    }
}

impl Registers for Ready {
    fn register(&mut self, _: u32) -> Result<u32, DeviceError> {
        Ok(self.on)
    }

    fn set_register(&mut self, offset: u32, value: u32) -> Result<(), DeviceError> {
        match offset - reg::BASE {
            reg::CONTROL => self.on = value,
            reg::TAIL => self.complete(value),
            _ => {}
        }
        Ok(())
    }

    fn interrupted(&mut self, _: u32, _: Duration) -> Result<bool, DeviceError> {
        Ok(true)
    }
}

/// The workload for callgrind: descriptors through a ring, or only the card's part of it.
fn descriptors(through_ring: bool) {
    let entries = 16;
    let memory = Arc::new(SharedMemory::new(Queue::<()>::bytes(entries)).expect("memory"));
    let memory = DmaBuffer::new(memory, 0);
    let mut card = Ready { memory: memory.clone(), entries, over: 0, on: 0 };
    let mut queue =
        Queue::open(&mut card, 0, entries, memory, 1, COUNTED.0 as u16).expect("a queue");
    for first in (0..COUNTED.1).step_by(COUNTED.0 as usize) {
        let end = first + COUNTED.0;
        if !through_ring {
            card.complete(black_box(end));
            continue;
        }
        for tag in first..end {
            let descriptor = Descriptor {
                op: OP_TO_CARD,
                flags: 0,
                tag,
                host: u64::from(tag) << 12,
                card: u64::from(tag) << 12,
                bytes: 4096,
            };
            assert!(queue.push(&descriptor).expect("pushed"));
        }
        queue.submit(&mut card).expect("a doorbell");
        for tag in first..end {
            let done = queue
                .wait(&mut card, Duration::from_secs(1))
                .expect("a queue")
                .expect("a completion");
            assert_eq!((done.tag, done.status), (tag, Status::Done));
        }
    }
}

fn config() -> Config {
    let region = |id, mode, base: u64, tag_base| Region {
        id,
        name: format!("r{id}"),
        mode,
        base,
        size: SIZE as u64,
        chunk: CHUNK as u32,
        key_bits: 256,
        tag_base,
        ..Region::default()
    };
    let regions = vec![
        region(0, Mode::Input, 0, 0x1000_0000),
        region(1, Mode::Output, 0x800_0000, 0x1800_0000),
    ];
    Config::new(OnFault::Shield, 1, vec![Set::default()], regions).expect("a valid configuration")
}

/// The keys of owner and Shield.
fn session(config: &Config, seed: u64) -> (SessionKeys, SessionKeys) {
    let (secret, public) = derive_key_pair(&seed.to_be_bytes().repeat(4));
    let (message, owner) = seal_load_key(
        config,
        &public,
        b"",
        &first_epochs(config, 1),
        &mut SeededEntropy::new(seed, "owner"),
    )
    .expect("a Load Key");
    (owner, open_load_key(config, &secret, &message).expect("the same keys").0)
}

/// The statement of a Shield that wrote every chunk, over a real channel.
fn statement(config: &Config, owner: &SessionKeys, shield: &SessionKeys) -> Statement {
    let mut end = ShieldChannel::new(shield);
    let chunks = (SIZE / CHUNK) as u64;
    let mut map = WrittenMap::empty(chunks);
    (0..chunks).for_each(|i| assert!(map.set(i)));
    let mut carry = |message: &_| -> Result<_, ChannelError> {
        let Received::Run(request) = end.receive(message) else { panic!("refused") };
        let mut answer = ShieldAnswer::to(&request, 0);
        answer.payload = if request.op == Op::Map as u8 {
            map.page(request.addr.into()).expect("a page")
        } else if request.addr == 0 {
            ShieldStatement::keyed(end.seq()).to_payload()
        } else {
            let r = &config.regions()[request.addr as usize - 1];
            let written = if r.mode == Mode::Output { chunks as u32 } else { 0 };
            RegionStatement {
                mode: r.mode,
                chunk_log2: r.chunk_log2(),
                frozen: false,
                written,
                epoch: 1,
                chunks,
            }
            .to_payload()
        };
        Ok(end.answer(&answer))
    };
    OwnerChannel::new(owner).statement(config, &mut carry).expect("a statement")
}

fn timed(body: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    body();
    begin.elapsed()
}

/// The cipher alone, in place, on `threads` threads.
fn bare(bytes: usize, threads: usize) -> Body<'static> {
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[7; 32]).expect("a key"));
    let mut data = vec![0x5a; bytes];
    let part = bytes / threads;
    let seal = move |part: &mut [u8]| {
        let mut iv = [0u8; 12];
        for (i, chunk) in part.chunks_exact_mut(CHUNK).enumerate() {
            iv[4..].copy_from_slice(&(i as u64).to_be_bytes());
            let _ = black_box(
                key.seal_in_place_separate_tag(
                    Nonce::assume_unique_for_key(iv),
                    Aad::empty(),
                    chunk,
                )
                .expect("sealed"),
            );
        }
    };
    Body::new(bytes, move || {
        timed(|| {
            let (first, others) = data.split_at_mut(part);
            std::thread::scope(|scope| {
                others.chunks_mut(part).for_each(|part| drop(scope.spawn(|| seal(part))));
                seal(first);
            });
        })
    })
}

fn seal<'a>(config: &Config, piece: usize) -> Body<'a> {
    let plain = vec![0x5a; piece];
    let mut run = SealedRun::default();
    let mut sealer = Some(first_epoch(config, 1));
    Body::new(piece, move || {
        let mut ready = sealer.take().expect("it comes back");
        let took = timed(|| ready.push_into(&plain, &mut run).expect("sealed"));
        sealer = Some(with_room(ready, piece));
        took
    })
}

/// A sealer of the whole input region.
fn first_epoch(config: &Config, seed: u64) -> Sealer {
    Sealer::new(config, &mut session(config, seed).0, 0, 1, SIZE as u64).expect("a sealer")
}

/// The sealer if it has `bytes` bytes left, otherwise the next epoch's: it seals its region once
/// per epoch.
fn with_room(sealer: Sealer, bytes: usize) -> Sealer {
    if sealer.remaining() >= bytes as u64 { sealer } else { next_epoch(sealer.give_up()) }
}

/// The same under the next epoch.
fn next_epoch(spent: Spent) -> Sealer {
    let epoch = spent.epoch() + 1;
    spent.next_epoch(epoch, SIZE as u64).map_err(|(error, _)| error).expect("a sealer")
}

/// The whole output region as a Shield seals it: data and tags.
fn results(shield: &SessionKeys) -> (Vec<u8>, Vec<u8>) {
    let cipher = ChunkCipher::new(1, shield.data_key(1).expect("a key"));
    let mut data = vec![0x33; SIZE];
    let tags = (0..)
        .zip(data.chunks_exact_mut(CHUNK))
        .flat_map(|(i, chunk)| cipher.seal(1, i, chunk))
        .collect();
    (data, tags)
}

fn open(config: &Config, piece: usize) -> Body<'static> {
    let (mut owner, shield) = session(config, 1);
    let statement = statement(config, &owner, &shield);
    let (data, tags) = results(&shield);
    let opener = Opener::new(config, &mut owner, 1).expect("an opener");
    let mut out = vec![0; piece];
    Body::new(piece, move || {
        timed(|| {
            let sealed = (&data[..piece], &tags[..piece / CHUNK * 16]);
            opener
                .open_piece(&statement, &[], OpenPolicy::default(), 0, sealed, &mut out)
                .expect("opened");
        })
    })
}

fn uploads<'a>(config: &Config, host: &'a RefCell<Host>) -> Body<'a> {
    let plain = vec![0x5a; SIZE];
    let mut sealer = Some(first_epoch(config, 100));
    Body::new(SIZE, move || {
        let ready = sealer.take().expect("it comes back");
        timed(|| {
            let mut host = host.borrow_mut();
            let (spent, uploaded) = upload(&mut host, ready, &plain, &mut unwatched);
            uploaded.expect("uploaded");
            // Writes are posted.
            host.device().ctl_read32(mailbox::STATUS).expect("a register");
            sealer = Some(next_epoch(spent));
        })
    })
}

fn downloads<'a>(config: &Config, host: &'a RefCell<Host>) -> Body<'a> {
    let (mut owner, shield) = session(config, 1);
    let statement = statement(config, &owner, &shield);
    let (data, tags) = results(&shield);
    let opener = Opener::new(config, &mut owner, 1).expect("an opener");
    let mut card = host.borrow_mut();
    card.device().mem_write(opener.region().base, &data).expect("written");
    card.device().mem_write(opener.region().tag_base, &tags).expect("written");
    let mut out = vec![0; SIZE];
    Body::new(SIZE, move || {
        let all = Open { statement: &statement, unreached: &[], policy: OpenPolicy::default() };
        let took = timed(|| {
            download_into(&mut host.borrow_mut(), &opener, all, &mut out, &mut unwatched)
                .expect("downloaded");
        });
        assert!(out[0] == 0x33 && out[SIZE - 1] == 0x33);
        took
    })
}
