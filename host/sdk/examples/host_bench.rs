//! Bytes per second of sealing, opening, and of both together with card memory, each beside bare aws-lc-rs in the same run: `cargo xtask bench host`.
//!
//! Every figure is the best of many short runs, the bare cipher's too: what else the machine does slows all of them.

use std::hint::black_box;
use std::time::{Duration, Instant};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use shef::transfer::{download, upload};
use shef::{Host, Uri};
use shef_proto::channel::{
    Answer, ChannelError, Op, OwnerChannel, Received, RegionStatement, ShieldChannel, ShieldStatement, State, Statement, WrittenMap,
};
use shef_proto::channel::{FaultKind, RefusalKind};
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_proto::entropy::SeededEntropy;
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::load::{SessionKeys, first_epochs, open_load_key, seal_load_key};
use shef_seal::{ChunkCipher, OpenPolicy, Opener, SealedRun, Sealer};

/// Bytes of each region.
const SIZE: usize = 32 << 20;
/// Bytes of a chunk.
const CHUNK: usize = 4096;
/// Bytes that one core works on: below this no thread is started.
const ONE_CORE: usize = 256 << 10;
/// Bytes in one go on all cores.
const ALL_CORES: usize = 8 << 20;
/// Time for each row.
const TIME: Duration = Duration::from_millis(1500);

struct Row {
    name: &'static str,
    value: f64,
    baseline: f64,
}

fn main() {
    let json = std::env::args().any(|arg| arg == "--json");
    let config = config();
    let bare = bare();
    let row = |name, value| Row { name, value, baseline: bare };
    let rows = [
        row("seal_core", seal(&config, ONE_CORE)),
        row("open_core", open(&config, ONE_CORE)),
        row("seal_all", seal(&config, ALL_CORES)),
        row("open_all", open(&config, ALL_CORES)),
        row("upload", uploads(&config)),
        row("download", downloads(&config)),
    ];
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    if json {
        let rows: Vec<String> = rows
            .iter()
            .map(|r| {
                let ratio = r.value / r.baseline;
                format!(r#"{{"name":"{}","value":{:.3},"unit":"GB/s","baseline":{:.3},"ratio":{ratio:.3}}}"#, r.name, r.value, r.baseline)
            })
            .collect();
        println!(r#"{{"cores":{cores},"rows":[{}]}}"#, rows.join(","));
    } else {
        println!("bare aws-lc-rs, AES-256-GCM, {CHUNK} bytes, one core: {bare:.2} GB/s; {cores} cores");
        for r in rows {
            println!("{:<10} {:>6.2} GB/s  {:.2} of bare", r.name, r.value, r.value / r.baseline);
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
    let regions = vec![region(0, Mode::Input, 0, 0x1000_0000), region(1, Mode::Output, 0x800_0000, 0x1800_0000)];
    Config::new(OnFault::Shield, 1, vec![Set::default()], regions).expect("a valid configuration")
}

/// The keys of owner and Shield.
fn session(config: &Config, seed: u64) -> (SessionKeys, SessionKeys) {
    let (secret, public) = derive_key_pair(&seed.to_be_bytes().repeat(4));
    let (message, owner) =
        seal_load_key(config, &public, b"", &first_epochs(config, 1), &mut SeededEntropy::new(seed, "owner")).expect("a Load Key");
    (owner, open_load_key(config, &secret, &message).expect("the same keys").0)
}

/// The statement of a Shield that wrote everything, over a real channel.
fn statement(config: &Config, owner: &SessionKeys, shield: &SessionKeys) -> Statement {
    let mut end = ShieldChannel::new(shield);
    let chunks = (SIZE / CHUNK) as u64;
    let mut map = WrittenMap::empty(chunks);
    (0..chunks).for_each(|i| assert!(map.set(i)));
    let mut carry = |message: &_| -> Result<_, ChannelError> {
        let Received::Run(request) = end.receive(message) else { panic!("refused") };
        let mut answer = Answer::to(&request, 0);
        answer.payload = if request.op == Op::Map as u8 {
            map.page(request.addr.into()).expect("a page")
        } else if request.addr == 0 {
            ShieldStatement {
                state: State::Keyed,
                stopped: false,
                fault_kind: FaultKind::None,
                fault_region: 0,
                faults: 0,
                refusals: 0,
                refusal_kind: RefusalKind::None,
                refusal_region: 0,
                fault_chunk: 0,
                fault_version: 0,
                refusal_addr: 0,
                requests: end.seq(),
            }
            .to_payload()
        } else {
            let r = &config.regions()[request.addr as usize - 1];
            let written = if r.mode == Mode::Output { chunks as u32 } else { 0 };
            RegionStatement { mode: r.mode, chunk_log2: r.chunk_log2(), frozen: false, written, epoch: 1, chunks }.to_payload()
        };
        Ok(end.answer(&answer))
    };
    OwnerChannel::new(owner).statement(config, &mut carry).expect("a statement")
}

/// The best of many runs, in GB/s; `run` says how long it took for `bytes`.
fn best(bytes: usize, mut run: impl FnMut() -> Duration) -> f64 {
    let begin = Instant::now();
    let mut least = Duration::MAX;
    while begin.elapsed() < TIME || least == Duration::MAX {
        least = least.min(run());
    }
    bytes as f64 / least.as_secs_f64() / 1e9
}

fn timed(body: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    body();
    begin.elapsed()
}

fn bare() -> f64 {
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &[7; 32]).expect("a key"));
    let mut data = vec![0x5a; ONE_CORE];
    let mut iv = [0u8; 12];
    best(ONE_CORE, || {
        timed(|| {
            for (i, chunk) in data.chunks_exact_mut(CHUNK).enumerate() {
                iv[4..].copy_from_slice(&(i as u64).to_be_bytes());
                let _ = black_box(key.seal_in_place_separate_tag(Nonce::assume_unique_for_key(iv), Aad::empty(), chunk).expect("sealed"));
            }
        })
    })
}

fn seal(config: &Config, piece: usize) -> f64 {
    let plain = vec![0x5a; piece];
    let mut run = SealedRun::default();
    let mut seed = 0;
    let mut sealer = None;
    best(piece, || {
        // A sealer seals its region once.
        let ready = match sealer.take() {
            Some(s) => s,
            None => {
                seed += 1;
                Sealer::new(config, &mut session(config, seed).0, 0, 1, SIZE as u64).expect("a sealer")
            }
        };
        let mut ready = ready;
        let took = timed(|| ready.push_into(&plain, &mut run).expect("sealed"));
        if ready.remaining() >= piece as u64 {
            sealer = Some(ready);
        }
        took
    })
}

/// Everything of the output region as a Shield seals it: data and tags.
fn results(shield: &SessionKeys) -> (Vec<u8>, Vec<u8>) {
    let cipher = ChunkCipher::new(1, shield.data_key(1).expect("a key"));
    let mut data = vec![0x33; SIZE];
    let tags = (0..).zip(data.chunks_exact_mut(CHUNK)).flat_map(|(i, chunk)| cipher.seal(1, i, chunk)).collect();
    (data, tags)
}

fn open(config: &Config, piece: usize) -> f64 {
    let (mut owner, shield) = session(config, 1);
    let statement = statement(config, &owner, &shield);
    let (data, tags) = results(&shield);
    let opener = Opener::new(config, &mut owner, 1).expect("an opener");
    let mut out = vec![0; piece];
    let tags = &tags[..piece / CHUNK * 16];
    best(piece, || {
        timed(|| {
            opener.open_piece(&statement, &[], OpenPolicy::default(), 0, (&data[..piece], tags), &mut out).expect("opened");
        })
    })
}

fn uploads(config: &Config) -> f64 {
    let mut host = shef::open(&Uri::SimModel).expect("the model card");
    let plain = vec![0x5a; SIZE];
    let mut seed = 100;
    best(SIZE, || {
        seed += 1;
        let sealer = Sealer::new(config, &mut session(config, seed).0, 0, 1, SIZE as u64).expect("a sealer");
        timed(|| upload(&mut host, sealer, &plain).1.expect("uploaded"))
    })
}

fn downloads(config: &Config) -> f64 {
    let mut host: Host = shef::open(&Uri::SimModel).expect("the model card");
    let (mut owner, shield) = session(config, 1);
    let statement = statement(config, &owner, &shield);
    let (data, tags) = results(&shield);
    let opener = Opener::new(config, &mut owner, 1).expect("an opener");
    host.device().mem_write(opener.region().base, &data).expect("written");
    host.device().mem_write(opener.region().tag_base, &tags).expect("written");
    best(SIZE, || {
        timed(|| {
            let opened = download(&mut host, &opener, &statement, &[], OpenPolicy::default(), (SIZE / CHUNK) as u64).expect("downloaded");
            assert!(opened.data[SIZE - 1] == 0x33);
        })
    })
}
