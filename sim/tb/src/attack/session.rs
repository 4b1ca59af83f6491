//! A keyed Shield at a quiet moment, and what everybody around it knows.

use crate::bench::{Bench, BenchError, design};
use crate::owner::Owner;
use crate::traffic::{Op, Outcome};
use crate::{Phase, Result};
use shef_proto::channel::{Answer, MESSAGE_LEN, OwnerChannel, Request, Sealed, ShieldStatement};
use shef_proto::config::{Config, Mode, Region};
use shef_proto::load::{SessionKeys, first_epochs};
use shef_regs::ctl;
use shef_rtl::agent::{Agent, Rng};
use shef_rtl::{AxiLite, AxiMaster, AxiMemoryConfig, AxiOp, CoreSim, CoreSnapshot, Library, build};
use shef_seal::ChunkCipher;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Cycles without any answer after which bursts count as hung; the Shield's own time-out is 4,096.
const QUIET: u64 = 40_000;

/// The Shield with the bench in place of accelerator, host and kernel.
pub struct Card {
    /// Simulation.
    pub core: CoreSim,
    /// The accelerator's place.
    pub acc: AxiMaster,
    tag: u64,
    /// How the buses stood when bursts hung.
    pub stuck: String,
}

/// What a host does to registers while bursts run.
pub struct Flood {
    lite: AxiLite,
    rng: Rng,
    /// A message that was run already.
    old: Sealed,
    /// Accesses that were answered.
    pub answered: u64,
}

impl Flood {
    /// A flood from a seed.
    pub fn new(card: &mut Card, seed: u64, old: Sealed) -> Result<Self> {
        Ok(Self { lite: AxiLite::new(card.core.sim(), "ctl_")?, rng: Rng::new(seed), old, answered: 0 })
    }
}

impl Agent for Flood {
    fn sample(&mut self, sim: &shef_rtl::Sim) {
        self.lite.sample(sim);
    }

    #[expect(clippy::cast_possible_truncation, reason = "fields of a random word")]
    fn drive(&mut self, sim: &mut shef_rtl::Sim) {
        self.lite.drive(sim);
        self.answered += u64::from(self.lite.take().is_some());
        if self.lite.busy() || self.rng.one_in(8) {
            return;
        }
        let r = self.rng.next_u64();
        let (value, strobe) = ((r >> 32) as u32, (r >> 20) as u8 & 15);
        let word = self.rng.below(22);
        match r % 9 {
            0 => self.lite.start_read(sim, r >> 8 & 0xfffc),
            1 => self.lite.start_write(sim, r >> 8 & 0xffff, value, strobe),
            2 => self.lite.start_write(sim, u64::from(ctl::CHAN_REQ) + 4 * word, value, strobe),
            3 => {
                let at = 4 * word as usize;
                let old = u32::from_le_bytes(self.old[at..at + 4].try_into().unwrap_or([0; 4]));
                self.lite.start_write(sim, u64::from(ctl::CHAN_REQ) + 4 * word, old, 15);
            }
            4 => self.lite.start_write(sim, u64::from(ctl::CHAN_DOORBELL), value, 15),
            5 => self.lite.start_write(sim, u64::from(ctl::LOAD_DOORBELL), value & 0x7ff, 15),
            6 => self.lite.start_write(sim, u64::from(ctl::LOAD_MSG) + 4 * self.rng.below(256), value, 15),
            7 => self.lite.start_read(sim, u64::from(ctl::CHAN_RSP) + 4 * word),
            _ => self.lite.start_read(sim, u64::from(ctl::STATUS)),
        }
    }
}

impl Card {
    fn new(lib: &Library) -> Result<Self> {
        let mut core = CoreSim::new(lib, AxiMemoryConfig::bench(20, 10))?;
        let acc = AxiMaster::new(core.sim(), "acc_", None)?;
        Ok(Self { core, acc, tag: 0, stuck: String::new() })
    }

    /// Takes a snapshot back, with this timing.
    pub fn restore(&mut self, to: &CoreSnapshot, memory: AxiMemoryConfig, stalls: Option<u64>) -> Result<()> {
        self.core.restore(to, memory)?;
        self.master(stalls)
    }

    /// A new accelerator that waits for nothing.
    pub fn master(&mut self, stalls: Option<u64>) -> Result<()> {
        let sim = self.core.sim();
        for p in ["awvalid", "wvalid", "bready", "arvalid", "rready"] {
            sim.poke(&format!("acc_{p}"), 0);
        }
        sim.eval();
        self.acc = AxiMaster::new(sim, "acc_", stalls)?;
        self.tag = 0;
        Ok(())
    }

    /// Hands bursts to the accelerator without waiting.
    pub fn push(&mut self, ops: &[Op]) {
        for op in ops {
            self.acc.push(match op {
                Op::Read { id, addr, beats } => AxiOp::Read { id: *id, addr: *addr, beats: *beats },
                Op::Write { id, addr, data, strobes } => {
                    AxiOp::Write { id: *id, addr: *addr, data: data.clone(), strobes: strobes.clone() }
                }
                Op::Wrap { write, id, addr, beats } => AxiOp::Odd { write: *write, id: *id, addr: *addr, beats: *beats, size: 6, burst: 2 },
            });
        }
    }

    /// Runs what was pushed (`n` bursts) to its end.
    pub fn finish(&mut self, n: usize, mut flood: Option<&mut Flood>) -> Result<Vec<Outcome>> {
        let mut out: Vec<Option<Outcome>> = vec![None; n];
        let mut silent = 0;
        loop {
            while let Some(d) = self.acc.pop() {
                silent = 0;
                let at = usize::try_from(d.tag - self.tag).unwrap_or(usize::MAX);
                let slot = out.get_mut(at).ok_or_else(|| BenchError::Bus(format!("burst {} came back", d.tag)))?;
                *slot = Some(Outcome { okay: d.resp.iter().map(|r| *r == 0).collect(), data: d.data });
            }
            if self.acc.idle() {
                break;
            }
            match &mut flood {
                Some(f) => self.core.step_with(&mut [&mut self.acc, *f]),
                None => self.core.step_with(&mut [&mut self.acc]),
            }
            silent += 1;
            if silent > QUIET {
                let done = out.iter().flatten().count();
                let open: Vec<usize> = (0..n).filter(|i| out[*i].is_none()).take(20).collect();
                self.stuck = format!("{done} of {n} bursts done, without answer: {open:?}...; {}", self.channels());
                self.rules()?;
                return Err(shef_rtl::Error::Hang { what: "bursts", cycles: QUIET }.into());
            }
        }
        self.tag += n as u64;
        if let Some(f) = flood {
            for _ in 0..2000 {
                if !f.lite.busy() {
                    break;
                }
                self.core.step_with(&mut [&mut self.acc, &mut f.lite]);
            }
        }
        self.rules()?;
        out.into_iter().map(|o| o.ok_or_else(|| BenchError::Bus("a burst has no outcome".into()))).collect()
    }

    /// Valid and ready of every channel.
    fn channels(&mut self) -> String {
        let sim = self.core.sim();
        let mut text = String::new();
        for p in ["acc_", "mem0_"] {
            for c in ["ar", "r", "aw", "w", "b"] {
                let bit = |x: &str| sim.peek(&format!("{p}{c}{x}"));
                text.push_str(&format!("{p}{c} {}{} ", bit("valid"), bit("ready")));
            }
        }
        text
    }

    /// Whether a bus rule was broken by the Shield.
    pub fn rules(&mut self) -> Result<()> {
        let first = self.acc.violations().first().or(self.core.axi_memory().violations().first()).cloned();
        first.map_or(Ok(()), |v| Err(BenchError::Bus(v)))
    }

    /// Plain status register.
    pub fn status(&mut self) -> Result<u32> {
        self.ctl_read(ctl::STATUS)
    }

    /// Waits until no request and no Load Key is being run.
    pub fn ready(&mut self) -> Result<u32> {
        let mut status = 0;
        for _ in 0..20_000 {
            status = self.status()?;
            if ctl::STATUS_CHAN_BUSY.get(status) == 0 && ctl::STATUS_LOAD_BUSY.get(status) == 0 {
                return Ok(status);
            }
            self.core.step(40);
        }
        Err(BenchError::Wait { what: "the end of a request", status })
    }

    /// Writes a message, words from `from` on and before `to`, and rings; the status after it.
    pub fn ring(&mut self, message: &Sealed, words: std::ops::Range<usize>) -> Result<u32> {
        for (i, c) in message.chunks_exact(4).enumerate().filter(|(i, _)| words.contains(i)) {
            self.ctl_write(ctl::CHAN_REQ + 4 * i as u32, u32::from_le_bytes(c.try_into().unwrap_or([0; 4])))?;
        }
        self.ctl_write(ctl::CHAN_DOORBELL, 1)?;
        self.ready()
    }

    /// The answer that is shown.
    pub fn shown(&mut self) -> Result<Sealed> {
        let mut answer = [0; MESSAGE_LEN];
        for (i, c) in answer.chunks_exact_mut(4).enumerate() {
            c.copy_from_slice(&self.ctl_read(ctl::CHAN_RSP + 4 * i as u32)?.to_le_bytes());
        }
        Ok(answer)
    }

    /// Carries a sealed request there and its answer back.
    pub fn carry(&mut self, sealed: &Sealed) -> Result<Sealed> {
        let status = self.ring(sealed, 0..MESSAGE_LEN / 4)?;
        if ctl::STATUS_CHAN_REFUSED.get(status) != 0 || ctl::STATUS_CHAN_ANSWER.get(status) == 0 {
            return Err(BenchError::Refused { what: "a request of the owner", status });
        }
        self.shown()
    }
}

impl Bench for Card {
    fn ctl_read(&mut self, addr: u32) -> Result<u32> {
        self.core.ctl_read(addr)?.ok_or(BenchError::Register(addr))
    }

    fn ctl_write(&mut self, addr: u32, value: u32) -> Result<()> {
        if self.core.ctl_write(addr, value)? { Ok(()) } else { Err(BenchError::Register(addr)) }
    }

    fn krn_read(&mut self, addr: u32) -> Result<u32> {
        self.core.krn_read(addr)?.ok_or(BenchError::Register(addr))
    }

    fn krn_write(&mut self, addr: u32, value: u32) -> Result<()> {
        if self.core.krn_write(addr, value)? { Ok(()) } else { Err(BenchError::Register(addr)) }
    }

    fn wait(&mut self) {
        self.core.step(200);
    }

    fn mem_read(&self, addr: u64, out: &mut [u8]) {
        self.core.memory().read(addr, out);
    }

    fn mem_write(&mut self, addr: u64, data: &[u8]) {
        self.core.memory_mut().write(addr, data);
    }

    fn burst(&mut self, ops: &[Op]) -> Result<Vec<Outcome>> {
        self.push(ops);
        self.finish(ops.len(), None)
    }
}

/// The owner's channel, and the talk so far as it went over the wire: a channel at the snapshot's number is made by
/// hearing that talk again.
pub struct Talk {
    channel: OwnerChannel,
    /// Requests and answers.
    pub wire: Vec<(Request, Sealed, Sealed)>,
}

impl Talk {
    /// The channel of these keys after this talk.
    pub fn again(keys: &SessionKeys, wire: &[(Request, Sealed, Sealed)]) -> Result<Self> {
        let mut channel = OwnerChannel::new(keys);
        for (request, _, answer) in wire {
            channel.request(request)?;
            channel.answer(answer)?;
        }
        Ok(Self { channel, wire: wire.to_vec() })
    }

    /// A request sealed, to be carried by hand.
    pub fn seal(&mut self, request: &Request) -> Result<Sealed> {
        Ok(self.channel.request(request)?)
    }

    /// The answer to [`Talk::seal`]; whether the owner takes it for authentic.
    pub fn hear(&mut self, request: &Request, sealed: &Sealed, answer: &Sealed) -> Option<Answer> {
        let a = self.channel.answer(answer).ok()?;
        self.wire.push((*request, *sealed, *answer));
        Some(a)
    }

    /// A request and its answer, whatever its status.
    pub fn ask(&mut self, card: &mut Card, request: &Request) -> Result<Answer> {
        let sealed = self.seal(request)?;
        let answer = card.carry(&sealed)?;
        self.hear(request, &sealed, &answer).ok_or(BenchError::Refused { what: "an answer of the Shield", status: 0 })
    }

    /// As [`Talk::ask`]; every status but done is an error.
    pub fn must(&mut self, card: &mut Card, request: &Request) -> Result<Answer> {
        let a = self.ask(card, request)?;
        if a.status == 0 { Ok(a) } else { Err(BenchError::Refused { what: "an honest request", status: u32::from(a.status) }) }
    }

    /// Page 0 of the statement.
    pub fn page0(&mut self, card: &mut Card) -> Result<ShieldStatement> {
        let a = self.must(card, &Request::statement(0))?;
        ShieldStatement::from_payload(&a.payload).ok_or(BenchError::Refused { what: "page 0", status: 0 })
    }
}

/// Ciphertext and tag of a chunk.
pub type Piece = (Vec<u8>, [u8; 16]);

/// One configuration, keyed.
pub struct Session {
    /// Name of the configuration.
    pub name: &'static str,
    /// What the hardware was made for.
    pub config: Config,
    /// The Shield.
    pub card: Card,
    owner: Owner,
    /// The quiet moment that every attempt starts from.
    pub snapshot: CoreSnapshot,
    /// The owner's talk until then.
    pub wire: Vec<(Request, Sealed, Sealed)>,
    /// Plaintext of every region.
    pub plain: Vec<Vec<u8>>,
    /// Output chunks that were sealed in this epoch; nothing is held on chip.
    pub written: Vec<BTreeSet<u64>>,
    /// Every chunk as it lay in memory in the epoch before, properly sealed.
    pub old: Vec<Vec<Piece>>,
    /// Present epoch of every region.
    pub epoch: u64,
    /// State and memory before the Load Key: for new sessions.
    pub seed: u64,
}

/// A chunk as memory has it.
pub fn piece(card: &Card, r: &Region, chunk: u64) -> Piece {
    let (mut d, mut t) = (vec![0; r.chunk as usize], [0; 16]);
    card.mem_read(r.chunk_addr(chunk), &mut d);
    card.mem_read(r.tag_addr(chunk), &mut t);
    (d, t)
}

/// Places a chunk in memory.
pub fn place(card: &mut Card, r: &Region, chunk: u64, p: &Piece) {
    card.mem_write(r.chunk_addr(chunk), &p.0);
    card.mem_write(r.tag_addr(chunk), &p.1);
}

impl Session {
    /// Builds the configuration's Shield, keys it by a Load Key, runs two epochs of honest traffic and keeps that state.
    pub fn open(name: &'static str, toml: &str, dir: &Path, seed: u64, progress: &mut dyn FnMut(&str)) -> Result<Self> {
        let (spec, config) = design(toml, &dir.join(name))?;
        progress(&format!("{name}: building"));
        let lib = build(&spec.fast().savable())?;
        progress(&format!("{name}: keying"));
        let mut card = Card::new(&lib)?;
        let owner = Owner::open(&mut card, &config, &first_epochs(&config, 1), seed)?;
        let mut talk = Talk::again(owner.keys(), &[])?;
        let mut rng = Rng::new(seed ^ 0x5e55);
        let size = |r: &Region| usize::try_from(r.size).unwrap_or(0);
        let mut plain: Vec<Vec<u8>> = config.regions().iter().map(|r| vec![0; size(r)]).collect();
        let mut written = vec![BTreeSet::new(); config.regions().len()];
        let mut old = vec![Vec::new(); config.regions().len()];
        let snapshot = card.core.save()?;
        let mut s = Self {
            name,
            config,
            card,
            owner,
            snapshot,
            wire: Vec::new(),
            plain: Vec::new(),
            written: Vec::new(),
            old: Vec::new(),
            epoch: 1,
            seed,
        };
        for epoch in [1, 2] {
            s.epoch = epoch;
            let regions = s.config.regions().to_vec();
            let mut ops = Vec::new();
            for r in &regions {
                let id = usize::from(r.id);
                if epoch == 2 {
                    talk.must(&mut s.card, &Request::epoch(r.id, 2))?;
                }
                rng.fill(&mut plain[id]);
                for c in 0..r.chunks() {
                    let at = (c * u64::from(r.chunk)) as usize..((c + 1) * u64::from(r.chunk)) as usize;
                    if r.mode == Mode::Input {
                        let p = s.sealed(r, c, &plain[id][at]);
                        place(&mut s.card, r, c, &p);
                    } else if epoch == 1 || rng.one_in(2) {
                        // Some chunks of the second epoch have a gap at their end.
                        let beats = r.chunk as u64 / 64;
                        let used = if epoch == 2 && rng.one_in(4) { 1 + rng.below(beats) } else { beats } as usize * 64;
                        plain[id][at.start + used..at.end].fill(0);
                        ops.push(Op::Write {
                            id: (c % 7) as u8,
                            addr: r.chunk_addr(c),
                            data: plain[id][at.start..at.start + used].to_vec(),
                            strobes: Vec::new(),
                        });
                        written[id].insert(c);
                    } else {
                        plain[id][at].fill(0);
                        written[id].remove(&c);
                    }
                }
            }
            let out = match s.card.burst(&ops) {
                Ok(out) => out,
                Err(e) => return Err(BenchError::File(format!("{name}: honest writes of epoch {epoch}: {e}; {}", s.card.stuck))),
            };
            if out.iter().any(|o| o.okay != [true]) {
                return Err(BenchError::Refused { what: "an honest write", status: s.card.status()? });
            }
            talk.must(&mut s.card, &Request::invalidate())?;
            for r in &regions {
                let id = usize::from(r.id);
                for c in 0..r.chunks() {
                    let p = piece(&s.card, r, c);
                    let at = (c * u64::from(r.chunk)) as usize..((c + 1) * u64::from(r.chunk)) as usize;
                    if (r.mode == Mode::Input || written[id].contains(&c)) && p != s.sealed(r, c, &plain[id][at]) {
                        return Err(BenchError::File(format!("{name}: region {} chunk {c} is not as sealed", r.id)));
                    }
                    if epoch == 1 {
                        old[id].push(p);
                    }
                }
            }
        }
        let page = talk.page0(&mut s.card)?;
        if page.stopped || page.faults != 0 || page.refusals != 0 {
            return Err(BenchError::Refused { what: "honest traffic", status: s.card.status()? });
        }
        s.snapshot = s.card.core.save()?;
        (s.wire, s.plain, s.written, s.old) = (talk.wire, plain, written, old);
        Ok(s)
    }

    /// Keys of the session, as the owner has them.
    pub fn keys(&self) -> &SessionKeys {
        self.owner.keys()
    }

    /// A chunk sealed in the present epoch.
    pub fn sealed(&self, r: &Region, chunk: u64, plain: &[u8]) -> Piece {
        let mut d = plain.to_vec();
        let tag = match self.keys().data_key(r.id) {
            Some(k) => ChunkCipher::new(r.id, k).seal(self.epoch, chunk, &mut d),
            None => [0; 16],
        };
        (d, tag)
    }

    /// What the owner gets out of a chunk in the present epoch.
    pub fn open_chunk(&self, r: &Region, chunk: u64, p: &Piece) -> Option<Vec<u8>> {
        let mut d = p.0.clone();
        let key = self.keys().data_key(r.id)?;
        ChunkCipher::new(r.id, key).open(self.epoch, chunk, &mut d, &p.1).then_some(d)
    }

    /// Starts waves of what follows, where they were asked for.
    pub fn waves(&mut self, attempt: u64) -> Result<Option<PathBuf>> {
        let Some(dir) = std::env::var_os("SHEF_WAVES").filter(|v| !v.is_empty()).map(PathBuf::from) else { return Ok(None) };
        std::fs::create_dir_all(&dir).map_err(|e| BenchError::File(format!("{}: {e}", dir.display())))?;
        let file = dir.join(format!("attack-{}-{attempt}.fst", self.name));
        self.card.core.sim().trace_start(&file)?;
        Ok(Some(file))
    }
}

/// Bursts with their outcomes.
pub fn phase(list: Vec<(Op, Outcome)>) -> Phase {
    let (ops, expected) = list.into_iter().unzip();
    Phase { ops, expected }
}
