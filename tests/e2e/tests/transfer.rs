//! Bulk transfers over vfio-user: through buffers that the card accesses directly, and as messages
//! if they are observed. Both transfer the same bytes, and damaged data opens in neither case.

use shef::transfer::{
    Open, Progress, download, download_into, download_to, unwatched, upload, upload_from,
};
use shef::{Host, SdkError, Uri};
use shef_e2e::Served;
use shef_proto::channel::{
    ChannelError, Op, OwnerChannel, Received, RegionStatement, ShieldAnswer, ShieldChannel,
    ShieldStatement, Statement, WrittenMap,
};
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_proto::entropy::SeededEntropy;
use shef_proto::hpke_suite::derive_key_pair;
use shef_proto::load::{SessionKeys, first_epochs, open_load_key, seal_load_key};
use shef_seal::{ChunkCipher, OpenPolicy, Opener, Sealer};

/// Bytes of each region.
const SIZE: usize = 2 << 20;

fn config(chunk: usize) -> Config {
    let region = |id, mode, base, tag_base| Region {
        id,
        name: format!("r{id}"),
        mode,
        base,
        size: SIZE as u64,
        chunk: chunk as u32,
        tag_base,
        ..Region::default()
    };
    let regions =
        vec![region(0, Mode::Input, 0, 0x100_0000), region(1, Mode::Output, 0x80_0000, 0x180_0000)];
    Config::new(OnFault::Shield, 1, vec![Set::default()], regions).unwrap()
}

/// The keys of owner and Shield.
fn session(config: &Config) -> (SessionKeys, SessionKeys) {
    let (secret, public) = derive_key_pair(&[9; 32]);
    let (message, owner) = seal_load_key(
        config,
        &public,
        b"",
        &first_epochs(config, 1),
        &mut SeededEntropy::new(1, "owner"),
    )
    .unwrap();
    (owner, open_load_key(config, &secret, &message).unwrap().0)
}

/// The statement of a Shield that wrote the whole output region.
fn statement(config: &Config, owner: &SessionKeys, shield: &SessionKeys) -> Statement {
    let mut end = ShieldChannel::new(shield);
    let chunks = config.region(1).unwrap().chunks();
    let mut map = WrittenMap::empty(chunks);
    (0..chunks).for_each(|i| assert!(map.set(i)));
    let mut carry = |message: &_| -> Result<_, ChannelError> {
        let Received::Run(request) = end.receive(message) else { panic!("refused") };
        let mut answer = ShieldAnswer::to(&request, 0);
        answer.payload = match request.addr {
            page if request.op == Op::Map as u8 => map.page(page.into()).unwrap(),
            0 => ShieldStatement::keyed(end.seq()).to_payload(),
            n => {
                let r = &config.regions()[n as usize - 1];
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
            }
        };
        Ok(end.answer(&answer))
    };
    OwnerChannel::new(owner).statement(config, &mut carry).unwrap()
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Lengths around a block, a buffer and the threads' share.
fn lengths(chunk: usize) -> [usize; 8] {
    let slot = shef_device::SLOT_BYTES / (chunk + 16) * chunk;
    [1, 4095, 4096, 4097, slot, slot + 1, 5 * slot - chunk + 7, SIZE]
}

/// Runs with an honest host, then with a host whose every message is recorded.
fn either_way(uri: &Uri, mut run: impl FnMut(&mut Host, &str)) {
    let (mut host, tap) = shef_lab::tap::tap(shef::open(uri).unwrap());
    run(&mut host, "lent");
    assert!(tap.take_records().is_empty());
    tap.record();
    run(&mut host, "carried");
    assert!(!tap.take_records().is_empty(), "a recorder sees messages");
}

#[test]
fn what_is_uploaded_is_the_same_either_way() {
    let served = Served::start("model");
    let uri = Uri::VfioUser { socket: served.socket(), boot: None };
    for chunk in [64, 512, 4096] {
        let config = config(chunk);
        let cipher = ChunkCipher::new(0, session(&config).1.data_key(0).unwrap());
        either_way(&uri, |host, how| {
            for (n, len) in lengths(chunk).into_iter().enumerate() {
                let data = pattern(len);
                host.device().mem_write(0, &vec![0xee; SIZE]).unwrap();
                let sealer =
                    Sealer::new(&config, &mut session(&config).0, 0, 1, len as u64).unwrap();
                let mut seen = Vec::new();
                let mut watch = |progress: Progress| {
                    seen.push(progress.done);
                    unwatched(progress)
                };
                let (spent, result) = match n % 2 {
                    0 => upload(host, sealer, &data, &mut watch),
                    _ => upload_from(host, sealer, &data[..], len, &mut watch),
                };
                result.unwrap();
                assert_eq!(spent.epoch(), 1);
                assert!(seen.is_sorted() && seen.last() == Some(&(len as u64)), "{seen:?}");
                let whole = len.next_multiple_of(chunk);
                let (mut sealed, mut tags) = (vec![0; SIZE], vec![0; whole / chunk * 16]);
                host.device().mem_read(0, &mut sealed).unwrap();
                host.device().mem_read(0x100_0000, &mut tags).unwrap();
                for (i, (chunk, tag)) in
                    (0..).zip(sealed[..whole].chunks_mut(chunk).zip(tags.chunks(16)))
                {
                    assert!(
                        cipher.open(1, i, chunk, tag.try_into().unwrap()),
                        "{how}: chunk {i} of {len} bytes"
                    );
                }
                assert!(
                    sealed[..len] == data && sealed[len..whole].iter().all(|b| *b == 0),
                    "{how}: {len} bytes"
                );
                assert!(sealed[whole..].iter().all(|b| *b == 0xee), "{how}: beyond {len} bytes");
            }
        });
    }
}

#[test]
fn what_is_downloaded_is_opened_either_way_and_what_is_damaged_is_not() {
    let served = Served::start("model");
    let uri = Uri::VfioUser { socket: served.socket(), boot: None };
    for chunk in [64, 512, 4096] {
        let config = config(chunk);
        let (mut owner, shield) = session(&config);
        let statement = statement(&config, &owner, &shield);
        let opener = Opener::new(&config, &mut owner, 1).unwrap();
        let cipher = ChunkCipher::new(1, shield.data_key(1).unwrap());
        let data = pattern(SIZE);
        let mut sealed = data.clone();
        let tags: Vec<u8> = (0..)
            .zip(sealed.chunks_mut(chunk))
            .flat_map(|(i, chunk)| cipher.seal(1, i, chunk))
            .collect();
        let all = || Open { statement: &statement, unreached: &[], policy: OpenPolicy::default() };
        either_way(&uri, |host, how| {
            host.device().mem_write(0x80_0000, &sealed).unwrap();
            host.device().mem_write(0x180_0000, &tags).unwrap();
            for len in lengths(chunk) {
                let opened = download(host, &opener, all(), len as u64, &mut unwatched).unwrap();
                assert!(opened.data[..] == data[..len], "{how}: {len} bytes");
                let mut out = vec![1; len];
                download_into(host, &opener, all(), &mut out, &mut unwatched).unwrap();
                assert!(out == data[..len], "{how}: {len} bytes into");
                let (out, _) =
                    download_to(host, &opener, all(), Vec::new(), len as u64, &mut unwatched)
                        .unwrap();
                assert!(out == data[..len], "{how}: {len} bytes to");
            }
            // One bit of ciphertext, then of a tag, of a chunk somewhere: the error names that
            // chunk, and no data of the others remains.
            for (at, place) in [(0x80_0000, 1_234_567), (0x180_0000, SIZE / chunk * 16 - 3)] {
                let mut byte = [0];
                host.device().mem_read(at + place as u64, &mut byte).unwrap();
                host.device().mem_write(at + place as u64, &[byte[0] ^ 4]).unwrap();
                let bad = if at == 0x80_0000 { place / chunk } else { place / 16 };
                let mut out = vec![1; SIZE];
                let error =
                    download_into(host, &opener, all(), &mut out, &mut unwatched).unwrap_err();
                let text = error.to_string();
                assert!(
                    matches!(error, SdkError::Seal(_)) && text.contains(&format!("chunk {bad}")),
                    "{how}: {text}"
                );
                assert!(out.iter().all(|b| *b == 0));
                host.device().mem_write(at + place as u64, &byte).unwrap();
            }
        });
    }
}
