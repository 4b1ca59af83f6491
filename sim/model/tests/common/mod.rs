//! Owner, kernel and host in one, for tests: everything goes through the two register ports.
#![allow(dead_code, reason = "each test file uses a part")]

use shef_model::{Accelerator, Model};
use shef_proto::channel::{
    ChannelError, MESSAGE_LEN, OwnerChannel, Sealed, ShieldAnswer, ShieldRequest, Statement,
};
use shef_proto::config::{Config, Mode, OnFault, Region, Set};
use shef_proto::entropy::SeededEntropy;
use shef_proto::hpke_suite::PublicKey;
use shef_proto::load::{FirstEpoch, SessionKeys, first_epochs, seal_load_key};
use shef_regs::{ctl, krn};

#[expect(clippy::too_many_arguments, reason = "a row of a table")]
pub fn region(
    id: u8,
    name: &str,
    mode: Mode,
    base: u64,
    size: u64,
    chunk: u32,
    key_bits: u16,
    tag_base: u64,
) -> Region {
    Region {
        id,
        name: name.into(),
        mode,
        base,
        size,
        chunk,
        key_bits,
        tag_base,
        ..Region::default()
    }
}

/// The demo's Shield: as in `shell-rtl/accel/digits/shield.toml`.
pub fn digits_config() -> Config {
    let regions = vec![
        region(0, "train", Mode::Input, 0, 1 << 20, 4096, 256, 0x30_0000),
        region(1, "query", Mode::Input, 0x10_0000, 1 << 20, 512, 256, 0x30_1000),
        region(2, "result", Mode::Output, 0x20_0000, 256 << 10, 512, 256, 0x30_9000),
    ];
    Config::new(OnFault::Shield, 1, vec![Set::default()], regions).unwrap()
}

/// All chunk sizes and both key sizes; [`Owner::start`] starts region 3 at epoch 0 on request.
pub fn small_config() -> Config {
    let regions = vec![
        region(0, "in64", Mode::Input, 0x0, 0x1000, 64, 128, 0x10_0000),
        region(1, "out512", Mode::Output, 0x1_0000, 0x4000, 512, 128, 0x10_1000),
        region(2, "out4k", Mode::Output, 0x2_0000, 0x1_0000, 4096, 256, 0x10_2000),
        region(3, "out64", Mode::Output, 0x4_0000, 0x2000, 64, 256, 0x10_3000),
    ];
    Config::new(OnFault::Shield, 1, vec![Set::default()], regions).unwrap()
}

pub struct Owner {
    pub model: Model,
    pub keys: SessionKeys,
    pub channel: OwnerChannel,
    pub load_key: Vec<u8>,
}

pub fn state(model: &Model) -> u32 {
    ctl::STATUS_STATE.get(model.ctl_read(ctl::STATUS).unwrap())
}

pub fn field(model: &Model, f: shef_regs::Field) -> u32 {
    f.get(model.ctl_read(ctl::STATUS).unwrap())
}

pub fn seed(model: &mut Model, seed: &[u8; 32]) -> PublicKey {
    for (i, w) in seed.chunks(4).enumerate() {
        model
            .krn_write(krn::SEED + 4 * i as u32, u32::from_le_bytes(w.try_into().unwrap()))
            .unwrap();
    }
    model.krn_write(krn::CTRL, krn::CTRL_SEED.put(1)).unwrap();
    public_key(model)
}

pub fn krn_bytes(model: &Model, base: u32, len: usize) -> Vec<u8> {
    (0..len as u32 / 4).flat_map(|i| model.krn_read(base + 4 * i).unwrap().to_le_bytes()).collect()
}

pub fn public_key(model: &Model) -> PublicKey {
    PublicKey::from_xy(&krn_bytes(model, krn::PUBKEY, 64).try_into().unwrap()).unwrap()
}

pub fn load(model: &mut Model, message: &[u8]) -> bool {
    for (i, w) in message.chunks(4).enumerate() {
        let mut word = [0; 4];
        word[..w.len()].copy_from_slice(w);
        model.ctl_write(ctl::LOAD_MSG + 4 * i as u32, u32::from_le_bytes(word)).unwrap();
    }
    model.ctl_write(ctl::LOAD_DOORBELL, message.len() as u32).unwrap();
    field(model, ctl::STATUS_LOAD_REFUSED) == 0
}

/// Submits 88 bytes; returns the answer, or `None` if the request was refused.
pub fn ring(model: &mut Model, request: &Sealed) -> Option<Sealed> {
    for (i, w) in request.chunks(4).enumerate() {
        model
            .ctl_write(ctl::CHAN_REQ + 4 * i as u32, u32::from_le_bytes(w.try_into().unwrap()))
            .unwrap();
    }
    model.ctl_write(ctl::CHAN_DOORBELL, 1).unwrap();
    (field(model, ctl::STATUS_CHAN_REFUSED) == 0).then(|| response(model))
}

pub fn response(model: &Model) -> Sealed {
    let mut out = [0; MESSAGE_LEN];
    for (i, w) in out.chunks_mut(4).enumerate() {
        w.copy_from_slice(&model.ctl_read(ctl::CHAN_RSP + 4 * i as u32).unwrap().to_le_bytes());
    }
    out
}

impl Owner {
    pub fn start(config: Config, accelerator: Box<dyn Accelerator>, epoch: u64) -> Self {
        let epochs = first_epochs(&config, epoch);
        Self::start_with(config, accelerator, &epochs)
    }

    pub fn start_with(
        config: Config,
        accelerator: Box<dyn Accelerator>,
        epochs: &[FirstEpoch],
    ) -> Self {
        let mut model = Model::new(config.clone(), accelerator);
        let pk = seed(&mut model, &[7; 32]);
        let (load_key, keys) =
            seal_load_key(&config, &pk, b"info", epochs, &mut SeededEntropy::new(1, "owner"))
                .unwrap();
        assert!(load(&mut model, &load_key));
        assert_eq!(state(&model), ctl::STATUS_STATE_KEYED);
        let shown: Vec<u8> = (0..8)
            .flat_map(|i| model.ctl_read(ctl::CONFIRM + 4 * i).unwrap().to_le_bytes())
            .collect();
        keys.check_confirmation(&shown).unwrap();
        let channel = OwnerChannel::new(&keys);
        Self { model, keys, channel, load_key }
    }

    /// Returns the answer with any status.
    pub fn ask(&mut self, request: ShieldRequest) -> ShieldAnswer {
        let sealed = self.channel.request(&request).unwrap();
        let answer = ring(&mut self.model, &sealed).expect("not refused");
        self.channel.answer(&answer).unwrap()
    }

    pub fn write(&mut self, addr: u32, value: u32) {
        assert_eq!(self.ask(ShieldRequest::write(addr, value)).status, 0);
    }

    pub fn statement(&mut self) -> Statement {
        let config = self.model.config().clone();
        let model = &mut self.model;
        self.channel
            .statement::<ChannelError>(&config, &mut |m| Ok(ring(model, m).expect("not refused")))
            .unwrap()
    }

    pub fn copy_in(&mut self, run: &shef_seal::SealedRun) {
        self.model.memory_mut().write(run.addr, &run.data);
        self.model.memory_mut().write(run.tag_addr, &run.tags);
    }

    pub fn copy_out(&self, region: u8, first: u64, chunks: u64) -> (Vec<u8>, Vec<u8>) {
        let r = self.model.config().region(region).unwrap();
        let mut data = vec![0; (chunks * u64::from(r.chunk)) as usize];
        let mut tags = vec![0; chunks as usize * 16];
        self.model.memory().read(r.chunk_addr(first), &mut data);
        self.model.memory().read(r.tag_addr(first), &mut tags);
        (data, tags)
    }
}
