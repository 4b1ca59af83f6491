//! One attempt: honest traffic, one hostile act on one transaction, and what came of it.

use super::Kind;
use super::session::{Card, Flood, Piece, Session, Talk, phase, piece, place};
use crate::Result;
use crate::bench::{Bench, BenchError};
use crate::owner::Owner;
use crate::traffic::{Op, Outcome, Phase};
use shef_proto::channel::{FaultKind, MESSAGE_LEN, Request, Sealed};
use shef_proto::config::{Mode, Region};
use shef_proto::load::first_epochs;
use shef_regs::ctl;
use shef_rtl::AxiMemoryConfig;
use shef_rtl::Hostile;
use shef_rtl::agent::Rng;
use std::collections::{BTreeMap, BTreeSet};

/// What came of an attempt.
#[derive(Debug, Default)]
pub struct Verdict {
    /// Shield, owner or channel refused what the act made.
    pub detected: bool,
    /// Transactions of all kinds.
    pub transactions: u64,
    /// Those that no act touched and that had to succeed.
    pub honest: u64,
    /// Words (64 bytes) delivered with OKAY that are not what was written, words that are not zero without OKAY, broken
    /// bus rules.
    pub delivered_wrong: Vec<String>,
    /// A forged message that ran, a wrong result that opened.
    pub accepted_wrong: Vec<String>,
    /// Honest transactions that did not succeed.
    pub refused_wrong: Vec<String>,
    /// Answers that never came.
    pub hangs: Vec<String>,
    /// What the act was.
    pub act: String,
}

impl Verdict {
    /// Whether nothing went wrong.
    pub fn clean(&self) -> bool {
        [&self.delivered_wrong, &self.accepted_wrong, &self.refused_wrong, &self.hangs].iter().all(|v| v.is_empty())
    }
}

/// The state of one attempt.
pub struct Trial<'a> {
    s: &'a mut Session,
    rng: Rng,
    kind: Kind,
    v: Verdict,
    talk: Talk,
    /// Output chunks that this attempt wrote.
    fresh: BTreeMap<(u8, u64), Vec<u8>>,
    /// Chunks (region, index / 4: those that share a line of tags) that honest traffic leaves alone.
    avoid: BTreeSet<(u8, u64)>,
    stalls: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// A sealed chunk that the accelerator reads.
    Chunk,
    /// A result that the owner opens.
    Result,
    /// The owner's message to the Shield.
    Request,
    /// The Shield's message to the owner.
    Answer,
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> Option<T> {
    from.get(usize::try_from(rng.below(from.len() as u64)).ok()?).copied()
}

impl<'a> Trial<'a> {
    /// An attempt on a session, from its snapshot.
    pub fn new(s: &'a mut Session, kind: Kind, seed: u64) -> Result<Self> {
        let mut rng = Rng::new(seed);
        let stalls = (!rng.one_in(3)).then(|| rng.next_u64());
        let memory = AxiMemoryConfig {
            read_latency: 1 + rng.below(60),
            write_latency: 1 + rng.below(40),
            outstanding: if rng.one_in(4) { 2 + rng.below(6) as usize } else { 64 },
            stalls,
            reorder: stalls.is_some() && rng.one_in(2),
        };
        let stalls = (!rng.one_in(3)).then(|| rng.next_u64());
        let snapshot = s.snapshot.clone();
        s.card.restore(&snapshot, memory, stalls)?;
        let talk = Talk::again(s.keys(), &s.wire)?;
        Ok(Self { s, rng, kind, v: Verdict::default(), talk, fresh: BTreeMap::new(), avoid: BTreeSet::new(), stalls })
    }

    /// Carries the attempt out.
    pub fn run(mut self, index: u64) -> Verdict {
        let outcome = match self.kind {
            Kind::Flip | Kind::Swap | Kind::Replay | Kind::Splice | Kind::Zero | Kind::Truncate => self.forgery(),
            Kind::Delay => self.delay(),
            Kind::Reorder => self.reorder(),
            Kind::Error | Kind::Silence => self.failing(),
            Kind::Reset => self.reset(index),
            Kind::Flood => self.flood(),
        };
        match outcome {
            Ok(()) => {}
            Err(BenchError::Rtl(e)) if matches!(e, shef_rtl::Error::Hang { .. }) => {
                self.v.hangs.push(format!("{e}: {}", self.s.card.stuck))
            }
            Err(BenchError::Wait { what, status }) => self.v.hangs.push(format!("{what}, status {status:#x}")),
            Err(BenchError::Bus(e)) => self.v.delivered_wrong.push(e),
            Err(e) => self.v.refused_wrong.push(e.to_string()),
        }
        self.v
    }

    fn regions(&self, mode: Mode) -> Vec<Region> {
        self.s.config.regions().iter().filter(|r| r.mode == mode).cloned().collect()
    }

    fn region(&self, id: u8) -> Region {
        self.s.config.regions()[usize::from(id)].clone()
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng.below(n)
    }

    fn plain(&self, r: &Region, chunk: u64) -> Vec<u8> {
        if let Some(p) = self.fresh.get(&(r.id, chunk)) {
            return p.clone();
        }
        let at = (chunk * u64::from(r.chunk)) as usize;
        self.s.plain[usize::from(r.id)][at..at + r.chunk as usize].to_vec()
    }

    fn written(&self, r: &Region, chunk: u64) -> bool {
        r.mode == Mode::Input || self.s.written[usize::from(r.id)].contains(&chunk) || self.fresh.contains_key(&(r.id, chunk))
    }

    fn may(&self, r: &Region, chunk: u64) -> bool {
        !self.avoid.contains(&(r.id, chunk / 4))
    }

    /// A burst of reads of one chunk, or from it on over several, with what it must bring.
    fn read_of(&mut self, r: &Region, chunk: u64, most: u64) -> (Op, Outcome) {
        let per = u64::from(r.chunk) / 64;
        let first = self.below(per);
        let mut beats = 1 + if self.rng.one_in(2) { per - first - 1 } else { self.below(per - first) };
        if self.rng.one_in(3) {
            beats = beats.max(1 + self.below(most));
        }
        let start = chunk * per + first;
        beats = beats.min(64 - start % 64).min(r.size / 64 - start);
        // Only over chunks that may be read.
        let mut data = Vec::new();
        let mut n = 0;
        for b in start..start + beats {
            let c = b / per;
            if c != chunk && (!self.may(r, c) || !self.written(r, c)) {
                break;
            }
            let p = self.plain(r, c);
            let at = (b % per * 64) as usize;
            data.extend_from_slice(&p[at..at + 64]);
            n += 1;
        }
        let op = Op::Read { id: self.below(8) as u8, addr: r.base + start * 64, beats: n };
        (op, Outcome { okay: vec![true; n as usize], data })
    }

    /// An honest read, if there is one to be made.
    fn honest_read(&mut self, pending: &BTreeSet<(u8, u64)>) -> Option<(Op, Outcome)> {
        for _ in 0..40 {
            let id = self.below(self.s.config.regions().len() as u64) as u8;
            let r = self.region(id);
            let c = self.below(r.chunks());
            if self.may(&r, c) && self.written(&r, c) && !pending.contains(&(id, c)) {
                let most = if r.mode == Mode::Input { 16 } else { 1 };
                return Some(self.read_of(&r, c, most));
            }
        }
        None
    }

    /// An honest write of a chunk that was not written in this epoch.
    fn honest_write(&mut self, pending: &mut BTreeSet<(u8, u64)>) -> Option<(Op, Outcome)> {
        let outputs = self.regions(Mode::Output);
        for _ in 0..40 {
            let at = self.below(outputs.len() as u64) as usize;
            let r = &outputs[at];
            let c = self.below(r.chunks());
            if self.may(r, c) && !self.written(r, c) {
                let per = u64::from(r.chunk) / 64;
                let used = if self.rng.one_in(3) { 1 + self.below(per) } else { per } as usize;
                let mut data = vec![0; used * 64];
                self.rng.fill(&mut data);
                let mut strobes = Vec::new();
                let mut plain = vec![0; r.chunk as usize];
                plain[..data.len()].copy_from_slice(&data);
                if self.rng.one_in(4) {
                    for k in 0..used {
                        let s = self.rng.next_u64();
                        (0..64).filter(|i| s >> i & 1 == 0).for_each(|i| plain[64 * k + i] = 0);
                        strobes.push(s | u64::from(k == 0));
                    }
                    plain[0] = data[0];
                }
                self.fresh.insert((r.id, c), plain);
                pending.insert((r.id, c));
                let op = Op::Write { id: self.below(4) as u8, addr: r.chunk_addr(c), data, strobes };
                return Some((op, Outcome { okay: vec![true], data: Vec::new() }));
            }
        }
        None
    }

    fn honest(&mut self, n: u64, writes: bool) -> Phase {
        let mut pending = BTreeSet::new();
        let mut list = Vec::new();
        for _ in 0..n {
            let op = if writes && self.rng.one_in(3) { self.honest_write(&mut pending) } else { self.honest_read(&pending) };
            list.extend(op);
        }
        phase(list)
    }

    /// Every word with OKAY is what it must be, every other one is zero; with `strict` all must be OKAY.
    fn judge(&mut self, ops: &[Op], want: &[Outcome], got: &[Outcome], strict: bool) {
        for ((op, want), got) in ops.iter().zip(want).zip(got) {
            self.v.transactions += 1;
            self.v.honest += u64::from(strict);
            let name = || match op {
                Op::Read { addr, beats, .. } => format!("read of {beats} words at {addr:#x}"),
                Op::Write { addr, data, .. } => format!("write of {} words at {addr:#x}", data.len() / 64),
                Op::Wrap { addr, .. } => format!("wrapped burst at {addr:#x}"),
            };
            for (k, okay) in got.okay.iter().enumerate() {
                let word = |o: &Outcome| o.data.get(64 * k..64 * k + 64).map(<[u8]>::to_vec);
                let due = if *okay { word(want) } else { word(got).map(|w| vec![0; w.len()]) };
                if word(got) != due {
                    self.v.delivered_wrong.push(format!("{}: word {k} with OKAY {okay}", name()));
                }
            }
            if strict && got.okay != want.okay {
                self.v.refused_wrong.push(format!("{}: {:?}", name(), got.okay));
            }
        }
    }

    fn go(&mut self, p: &Phase, strict: bool) -> Result<Vec<Outcome>> {
        let got = self.s.card.burst(&p.ops)?;
        self.judge(&p.ops, &p.expected, &got, strict);
        Ok(got)
    }

    fn warm_up(&mut self) -> Result<()> {
        let n = 3 + self.below(4);
        let p = self.honest(n, true);
        self.go(&p, true)?;
        Ok(())
    }

    fn owner_says(&mut self, request: &Request) -> Result<()> {
        self.v.transactions += 1;
        self.v.honest += 1;
        self.talk.must(&mut self.s.card, request)?;
        Ok(())
    }

    /// Another piece that does not belong at this place: the same place in the epoch before, another place, another region.
    fn foreign(&mut self, r: &Region, chunk: u64) -> (Piece, u64) {
        let like: Vec<Region> = self.s.config.regions().iter().filter(|o| o.chunk == r.chunk).cloned().collect();
        let at = self.below(like.len() as u64) as usize;
        let o = &like[at];
        let other = if o.id == r.id { (chunk + 1 + self.below(r.chunks() - 1)) % r.chunks() } else { self.below(o.chunks()) };
        (piece(&self.s.card, o, other), other)
    }

    /// What the act makes of a chunk; always another one than lies there.
    fn forged(&mut self, r: &Region, chunk: u64, now: &Piece) -> Piece {
        let old = self.s.old[usize::from(r.id)][chunk as usize].clone();
        let (other, _) = self.foreign(r, chunk);
        let mut p = now.clone();
        let part = self.below(3);
        let blocks = u64::from(r.chunk) / 16;
        let cut = |rng: &mut Rng| 16 * (rng.below(blocks - 1) as usize + 1);
        let mix = |p: &mut Piece, from: &Piece| match part {
            0 => *p = from.clone(),
            1 => p.0.clone_from(&from.0),
            _ => p.1 = from.1,
        };
        match self.kind {
            Kind::Flip => {
                let bits = 1 + if self.rng.one_in(2) { 0 } else { self.below(4) };
                for _ in 0..bits {
                    let on_tag = part == 2;
                    let bit = self.below(if on_tag { 128 } else { 8 * u64::from(r.chunk) });
                    let b = if on_tag { &mut p.1[bit as usize / 8] } else { &mut p.0[bit as usize / 8] };
                    *b ^= 1 << (bit % 8);
                }
            }
            Kind::Swap => mix(&mut p, &other),
            Kind::Replay => mix(&mut p, &old),
            Kind::Splice => {
                let from = if self.rng.one_in(2) { &old } else { &other };
                let (a, b) = (cut(&mut self.rng), cut(&mut self.rng));
                p.0[a.min(b)..].copy_from_slice(&from.0[a.min(b)..]);
                if part == 0 {
                    p.1 = from.1;
                }
            }
            Kind::Truncate => {
                let a = cut(&mut self.rng);
                if part == 0 { p.0[a..].fill(0) } else { p.0[a..].copy_from_slice(&old.0[a..]) }
            }
            _ => match part {
                0 => p = (vec![0; r.chunk as usize], [0; 16]),
                1 => {
                    let a = cut(&mut self.rng);
                    p.0[a - 16..a].fill(0);
                }
                _ => p.1 = [0; 16],
            },
        }
        if p == *now {
            p.0[0] ^= 1;
        }
        p
    }

    /// A sealed chunk to attack: of an input region, or one that the Shield sealed before.
    fn victim(&mut self) -> (Region, u64) {
        loop {
            let id = self.below(self.s.config.regions().len() as u64) as u8;
            let r = self.region(id);
            let c = self.below(r.chunks());
            if self.written(&r, c) && !self.fresh.contains_key(&(id, c)) {
                self.avoid.insert((id, c / 4));
                return (r, c);
            }
        }
    }

    fn forgery(&mut self) -> Result<()> {
        let target = match self.below(10) {
            0..5 => Target::Chunk,
            5..7 => Target::Result,
            // Messages have no chunks to swap.
            7 | 8 => Target::Request,
            _ => Target::Answer,
        };
        match target {
            Target::Chunk if self.kind == Kind::Truncate && self.rng.one_in(2) => self.broken_burst(&[0, 1, 2]),
            Target::Chunk => self.forged_chunk(),
            Target::Result => self.forged_result(),
            Target::Request => self.forged_request(),
            Target::Answer => self.forged_answer(),
        }
    }

    fn forged_chunk(&mut self) -> Result<()> {
        let (r, c) = self.victim();
        self.warm_up()?;
        let now = piece(&self.s.card, &r, c);
        let bad = self.forged(&r, c, &now);
        let wire = self.rng.one_in(2);
        self.v.act = format!("region {} chunk {c}, {}", r.name, if wire { "on the wire" } else { "in memory" });
        if wire {
            let (data_at, tag_at) = (r.chunk_addr(c), r.tag_addr(c));
            self.s.card.core.axi_memory().on_read(move |addr, beat| {
                if addr >= data_at && addr < data_at + bad.0.len() as u64 {
                    let at = (addr - data_at) as usize;
                    beat.copy_from_slice(&bad.0[at..at + 64]);
                } else if addr == tag_at & !63 {
                    let at = (tag_at - addr) as usize;
                    beat[at..at + 16].copy_from_slice(&bad.1);
                }
            });
        } else {
            place(&mut self.s.card, &r, c, &bad);
        }
        self.read_victims(&[(r, c)], FaultKind::Tag)
    }

    /// Reads attacked chunks among honest ones, and demands that the Shield tells and stops.
    fn read_victims(&mut self, victims: &[(Region, u64)], kind: FaultKind) -> Result<()> {
        let mut list = Vec::new();
        let n = self.below(3);
        let mut p = self.honest(n, true);
        for (r, c) in victims {
            let (op, want) = self.read_of(r, *c, 1);
            let at = self.below(p.ops.len() as u64 + 1) as usize;
            list.push((op.clone(), want.clone()));
            p.ops.insert(at, op);
            p.expected.insert(at, want);
        }
        let got = self.go(&p, false)?;
        let mut through = false;
        for (op, _) in &list {
            let at = p.ops.iter().position(|o| o == op).unwrap_or(0);
            through |= victims.len() == 1 && got[at].okay.iter().any(|o| *o);
        }
        let told = self.stopped(&[kind], Some(victims))?;
        if through {
            self.v.act.push_str(": words of the chunk were delivered");
        }
        self.v.detected = told && !through;
        Ok(())
    }

    /// Whether the Shield says over its sealed channel that it stopped for such a fault there, and refuses everything.
    fn stopped(&mut self, kinds: &[FaultKind], victims: Option<&[(Region, u64)]>) -> Result<bool> {
        self.v.transactions += 1;
        let page = self.talk.page0(&mut self.s.card)?;
        let there = victims
            .is_none_or(|v| v.iter().any(|(r, c)| (page.fault_region, page.fault_chunk, page.fault_version) == (r.id, *c, self.s.epoch)));
        let told = page.stopped && page.faults > 0 && (kinds.is_empty() || kinds.contains(&page.fault_kind)) && there;
        if !told {
            self.v.act.push_str(&format!(": statement {page:?}"));
            return Ok(false);
        }
        let writes = self.s.card.core.axi_memory().counters.writes;
        let p = self.honest(1, true);
        let got = self.go(&p, false)?;
        let after = self.s.card.core.axi_memory().counters.writes;
        if got.iter().any(|o| o.okay.iter().any(|k| *k)) {
            self.v.delivered_wrong.push("a burst succeeded after the Shield stopped".into());
        }
        if writes != after {
            self.v.delivered_wrong.push("the Shield wrote after it stopped".into());
        }
        Ok(true)
    }

    fn forged_result(&mut self) -> Result<()> {
        self.warm_up()?;
        // What was written, some of it in this attempt, all of it sealed by the flush.
        for _ in 0..2 {
            let mut pending = BTreeSet::new();
            let op = self.honest_write(&mut pending);
            let p = phase(op.into_iter().collect());
            self.go(&p, true)?;
        }
        self.owner_says(&Request::flush())?;
        let page = self.talk.page0(&mut self.s.card)?;
        if page.stopped || page.faults != 0 {
            self.v.refused_wrong.push(format!("honest traffic stopped the Shield: {page:?}"));
            return Ok(());
        }
        let fresh: Vec<(u8, u64)> = self.fresh.keys().copied().collect();
        let bad_one = match pick(&mut self.rng, &fresh) {
            Some(x) if self.rng.one_in(2) => x,
            _ => loop {
                let outputs = self.regions(Mode::Output);
                let r = &outputs[self.below(outputs.len() as u64) as usize];
                let c = self.below(r.chunks());
                // A chunk of the epoch before in the place of one that was not written is a replay, too.
                if self.written(r, c) || self.kind == Kind::Replay {
                    break (r.id, c);
                }
            },
        };
        for (id, c) in fresh {
            let r = self.region(id);
            self.v.transactions += 1;
            self.v.honest += 1;
            let p = piece(&self.s.card, &r, c);
            match self.s.open_chunk(&r, c, &p) {
                Some(d) if d == self.fresh[&(id, c)] => {}
                Some(_) => self.v.accepted_wrong.push(format!("region {} chunk {c} opens to something else", r.name)),
                None => self.v.refused_wrong.push(format!("region {} chunk {c} does not open", r.name)),
            }
        }
        let (r, c) = (self.region(bad_one.0), bad_one.1);
        let now = piece(&self.s.card, &r, c);
        self.v.act = format!("result {} chunk {c}", r.name);
        self.v.transactions += 1;
        // The owner opens what the written map says was sealed in this epoch.
        let answer = self.talk.must(&mut self.s.card, &Request::map(r.id, (c / 384) as u32))?;
        let bit = c % 384;
        let says = answer.payload[bit as usize / 8] >> (bit % 8) & 1 == 1;
        if says != self.written(&r, c) {
            let list = if says { &mut self.v.accepted_wrong } else { &mut self.v.refused_wrong };
            list.push(format!("written map of region {} chunk {c} says {says}", r.name));
        }
        let bad = if says { self.forged(&r, c, &now) } else { self.s.old[usize::from(r.id)][c as usize].clone() };
        let opened = self.s.open_chunk(&r, c, &bad);
        if opened.is_some() {
            self.v.accepted_wrong.push(format!("forged result {} chunk {c} opened", r.name));
        }
        self.v.detected = opened.is_none();
        Ok(())
    }

    /// What the act makes of a message; `None` in `words` means that all of it is written.
    fn forged_message(&mut self, now: &Sealed, before: &[Sealed]) -> (Sealed, std::ops::Range<usize>) {
        let mut m = *now;
        let all = 0..MESSAGE_LEN / 4;
        let old = pick(&mut self.rng, before).unwrap_or([0; MESSAGE_LEN]);
        let block = |rng: &mut Rng| 8 + 16 * rng.below(5) as usize;
        match self.kind {
            Kind::Flip => {
                let bit = self.below(8 * MESSAGE_LEN as u64);
                m[bit as usize / 8] ^= 1 << (bit % 8);
            }
            Kind::Swap => {
                let (a, b) = (block(&mut self.rng), block(&mut self.rng));
                let (x, y) = (m[a..a + 16].to_vec(), m[b..b + 16].to_vec());
                m[a..a + 16].copy_from_slice(&y);
                m[b..b + 16].copy_from_slice(&x);
            }
            Kind::Replay => m = old,
            Kind::Splice => {
                let a = [8, 24, 40, 56, 72][self.below(5) as usize];
                if self.rng.one_in(2) { m[a..].copy_from_slice(&old[a..]) } else { m[..a].copy_from_slice(&old[..a]) }
            }
            Kind::Truncate => return (m, 0..2 + self.below(20) as usize),
            _ => {
                let a = [0, 8, 24, 40, 56, 72][self.below(6) as usize];
                let b = (a + 16).max(MESSAGE_LEN * self.below(2) as usize);
                m[a..b.min(MESSAGE_LEN)].fill(0);
            }
        }
        if m == *now {
            m[MESSAGE_LEN - 1] ^= 1;
        }
        (m, all)
    }

    fn some_request(&mut self) -> Request {
        let id = self.below(self.s.config.regions().len() as u64) as u8;
        match self.below(5) {
            0 => Request::ping(),
            1 => Request::epoch(id, self.s.epoch + 1 + self.rng.below(9)),
            2 => Request::invalidate(),
            3 => Request::statement(1 + u32::from(id)),
            _ => Request::flush(),
        }
    }

    fn forged_request(&mut self) -> Result<()> {
        self.warm_up()?;
        let request = self.some_request();
        // Every older message but the last, whose repetition is answered by the stored answer and runs nothing.
        let before: Vec<Sealed> = self.talk.wire.iter().rev().skip(1).map(|(_, m, _)| *m).collect();
        let sealed = self.talk.seal(&request)?;
        let (bad, words) = self.forged_message(&sealed, &before);
        self.v.act = format!("request {request:?}");
        self.v.transactions += 2;
        self.v.honest += 1;
        // What lies in the window is the last message, as the host left it.
        let last = self.talk.wire.last().map(|(_, m, _)| *m);
        if let (Some(last), Kind::Truncate) = (last, self.kind) {
            let again = self.s.card.ring(&last, 0..MESSAGE_LEN / 4)?;
            let shown = self.s.card.shown()?;
            if ctl::STATUS_CHAN_REFUSED.get(again) != 0 || Some(shown) != self.talk.wire.last().map(|(_, _, a)| *a) {
                self.v.refused_wrong.push("the last message again did not get its stored answer".into());
            }
        }
        let status = self.s.card.ring(&bad, words)?;
        let refused = ctl::STATUS_CHAN_REFUSED.get(status) != 0;
        if !refused {
            self.v.accepted_wrong.push(format!("a forged message was not refused, status {status:#x}"));
        }
        let answer = self.s.card.carry(&sealed)?;
        match self.talk.hear(&request, &sealed, &answer) {
            Some(a) if a.status == 0 => {}
            a => self.v.refused_wrong.push(format!("the true message after it: {:?}", a.map(|a| a.status))),
        }
        let page = self.talk.page0(&mut self.s.card)?;
        if page.requests != self.talk.wire.len() as u64 || page.stopped {
            self.v.accepted_wrong.push(format!("{} requests were sent, page {page:?}", self.talk.wire.len()));
        }
        self.v.detected = refused;
        Ok(())
    }

    fn forged_answer(&mut self) -> Result<()> {
        self.warm_up()?;
        let request = self.some_request();
        let before: Vec<Sealed> = self.talk.wire.iter().map(|(_, _, a)| *a).collect();
        let sealed = self.talk.seal(&request)?;
        let answer = self.s.card.carry(&sealed)?;
        let (mut bad, words) = self.forged_message(&answer, &before);
        for (i, b) in bad.iter_mut().enumerate() {
            if !words.contains(&(i / 4)) {
                *b = 0;
            }
        }
        self.v.act = format!("answer to {request:?}");
        self.v.transactions += 2;
        self.v.honest += 1;
        if self.talk.hear(&request, &sealed, &bad).is_some() {
            self.v.accepted_wrong.push("a forged answer was taken".into());
            return Ok(());
        }
        self.v.detected = true;
        if self.talk.hear(&request, &sealed, &answer).is_none_or(|a| a.status != 0) {
            self.v.refused_wrong.push("the true answer after it".into());
        }
        Ok(())
    }

    /// A breach of the protocol by the memory: bursts that end early, late or never; answers that nobody is owed, under
    /// another id, twice or not at all.
    fn broken_burst(&mut self, which: &[u64]) -> Result<()> {
        self.warm_up()?;
        let id = self.below(256) as u8;
        let wrong = 1 << self.below(8);
        let h = match pick(&mut self.rng, which).unwrap_or(0) {
            0 => Hostile::EarlyLast,
            1 => Hostile::LateLast,
            2 => Hostile::MissingLast,
            3 => Hostile::UnownedR { id },
            4 => Hostile::UnownedB { id },
            5 => Hostile::WrongRid(wrong),
            6 => Hostile::WrongBid(wrong),
            7 => Hostile::DoubleB,
            8 => Hostile::LoseRead,
            _ => Hostile::LoseWrite,
        };
        self.v.act = format!("{h:?}");
        self.s.card.core.axi_memory().inject(h);
        let p = self.honest(8, true);
        self.go(&p, false)?;
        // What was written reaches memory by a flush; the Shield may stop in it.
        self.v.transactions += 1;
        self.talk.ask(&mut self.s.card, &Request::flush())?;
        self.s.card.core.step(5000);
        if !self.s.card.core.axi_memory().injected_all() {
            // There was no burst that it fits: an honest run.
            self.v.act.push_str(" had no occasion");
            return Ok(());
        }
        self.v.detected = self.stopped(&[], None)?;
        Ok(())
    }

    fn delay(&mut self) -> Result<()> {
        self.warm_up()?;
        let memory = self.s.card.core.axi_memory();
        memory.config.read_latency = 100 + self.rng.below(1900);
        memory.config.write_latency = 100 + self.rng.below(1900);
        memory.config.outstanding = memory.config.outstanding.max(16);
        self.v.act = format!("latency {} and {}", memory.config.read_latency, memory.config.write_latency);
        self.s.card.master(Some(self.rng.next_u64()))?;
        for _ in 0..2 {
            let n = 2 + self.below(4);
            let p = self.honest(n, true);
            self.go(&p, true)?;
        }
        self.unharmed()
    }

    /// The session goes on as if nothing had happened: flush, statement without fault, what was written opens.
    fn unharmed(&mut self) -> Result<()> {
        self.owner_says(&Request::flush())?;
        let page = self.talk.page0(&mut self.s.card)?;
        if page.stopped || page.faults != 0 {
            self.v.detected = true;
            self.v.refused_wrong.push(format!("the Shield stopped: {page:?}"));
        }
        for ((id, c), want) in std::mem::take(&mut self.fresh) {
            let r = self.region(id);
            let p = piece(&self.s.card, &r, c);
            match self.s.open_chunk(&r, c, &p) {
                Some(d) if d == want => {}
                Some(_) => self.v.accepted_wrong.push(format!("region {} chunk {c} opens to something else", r.name)),
                None => self.v.refused_wrong.push(format!("region {} chunk {c} does not open", r.name)),
            }
        }
        Ok(())
    }

    fn reorder(&mut self) -> Result<()> {
        match self.below(3) {
            0 => {
                // Answers of different ids overtake one another: allowed by AXI.
                self.v.act = "overtaking between ids".into();
                self.s.card.core.axi_memory().config.reorder = true;
                self.warm_up()?;
                let p = self.honest(8, true);
                self.go(&p, true)?;
                self.unharmed()
            }
            1 => self.broken_burst(&[3, 4, 5, 6, 7]),
            _ => {
                // Two chunks of a region in each other's place, both read at once.
                let (r, a) = self.victim();
                let b = loop {
                    let b = self.below(r.chunks());
                    if b != a && self.written(&r, b) {
                        break b;
                    }
                };
                self.avoid.insert((r.id, b / 4));
                self.warm_up()?;
                let (pa, pb) = (piece(&self.s.card, &r, a), piece(&self.s.card, &r, b));
                self.v.act = format!("region {} chunks {a} and {b} change places", r.name);
                place(&mut self.s.card, &r, a, &pb);
                place(&mut self.s.card, &r, b, &pa);
                let victims = [(r.clone(), a), (r, b)];
                self.read_victims(&victims, FaultKind::Tag)
            }
        }
    }

    fn failing(&mut self) -> Result<()> {
        let silent = self.kind == Kind::Silence;
        if silent && self.rng.one_in(4) {
            return self.broken_burst(&[8, 9]);
        }
        let kind = if silent { FaultKind::Timeout } else { FaultKind::Bus };
        let fail = |s: &mut Session, at: u64| {
            let m = s.card.core.axi_memory();
            // Bursts to the page are not answered; errors come word by word.
            if silent { m.silent_ranges.push(at & !4095..(at | 4095) + 1) } else { m.error_ranges.push(at & !63..(at | 63) + 1) }
        };
        if self.rng.one_in(3) {
            // A write that fails when it is sealed.
            self.warm_up()?;
            let mut pending = BTreeSet::new();
            let Some((op, want)) = self.honest_write(&mut pending) else { return Ok(()) };
            let (id, c) = pending.into_iter().next().unwrap_or((0, 0));
            let r = self.region(id);
            let at = if self.rng.one_in(2) { r.chunk_addr(c) } else { r.tag_addr(c) };
            self.v.act = format!("write of region {} chunk {c} at {at:#x}", r.name);
            fail(self.s, at);
            self.go(&phase(vec![(op, want)]), false)?;
            self.v.transactions += 1;
            let a = self.talk.ask(&mut self.s.card, &Request::flush())?;
            if a.status == 0 {
                self.v.accepted_wrong.push("a flush succeeded whose writes failed".into());
            }
            self.v.detected = a.status != 0 && self.stopped(&[kind, FaultKind::Timeout], None)?;
            return Ok(());
        }
        let (r, c) = self.victim();
        self.warm_up()?;
        let at = if self.rng.one_in(2) { r.chunk_addr(c) } else { r.tag_addr(c) };
        self.v.act = format!("read of region {} chunk {c} at {at:#x}", r.name);
        fail(self.s, at);
        // The whole chunk, and nothing beside it: a later answer of the same id would pass for the missing one.
        let per = r.chunk / 64;
        let op = Op::Read { id: 1, addr: r.chunk_addr(c), beats: per };
        let want = Outcome { okay: vec![true; per as usize], data: self.plain(&r, c) };
        let got = self.go(&phase(vec![(op, want)]), false)?;
        let told = self.stopped(&[kind], None)?;
        self.v.detected = told && got[0].okay.iter().all(|o| !o);
        Ok(())
    }

    fn reset(&mut self, index: u64) -> Result<()> {
        self.warm_up()?;
        let p = self.honest(6, true);
        self.s.card.push(&p.ops);
        let wait = self.below(120);
        for _ in 0..wait {
            self.s.card.core.step_with(&mut [&mut self.s.card.acc]);
        }
        let wipe = self.rng.one_in(2);
        self.v.act = format!("{} {wait} cycles after six bursts", if wipe { "wipe" } else { "reset" });
        if wipe {
            self.s.card.core.sim().poke("wipe_req", 1);
            let got = self.s.card.finish(p.ops.len(), None)?;
            self.judge(&p.ops, &p.expected, &got, false);
            let mut cycles = 0;
            while self.s.card.core.sim().peek("wipe_ack") == 0 {
                self.s.card.core.step(1);
                cycles += 1;
                if cycles > 100_000 {
                    self.v.hangs.push("wipe is not acknowledged".into());
                    return Ok(());
                }
            }
            self.s.card.core.sim().poke("wipe_req", 0);
            self.s.card.core.step(1);
        } else {
            // What came before the reset counts; the rest is lost with it.
            let mut got = Vec::new();
            let mut early = Vec::new();
            while let Some(d) = self.s.card.acc.pop() {
                early.push(d);
            }
            for d in early {
                let at = p.ops.iter().position(|o| {
                    matches!((o, &d.op),
                    (Op::Read { addr: a, beats: n, id: i }, shef_rtl::AxiOp::Read { addr: b, beats: m, id: j }) if (a, n, i) == (b, m, j))
                });
                if let Some(at) = at {
                    got.push((at, Outcome { okay: d.resp.iter().map(|r| *r == 0).collect(), data: d.data }));
                }
            }
            for (at, o) in got {
                self.judge(&p.ops[at..=at], &p.expected[at..=at], &[o], false);
            }
            self.s.card.core.reset();
            self.s.card.master(self.stalls)?;
        }
        let mut status = 0;
        for _ in 0..2000 {
            status = self.s.card.status()?;
            if ctl::STATUS_STATE.get(status) == ctl::STATUS_STATE_EMPTY {
                break;
            }
            self.s.card.core.step(100);
        }
        if ctl::STATUS_STATE.get(status) != ctl::STATUS_STATE_EMPTY {
            self.v.hangs.push(format!("not EMPTY after a reset: status {status:#x}"));
            return Ok(());
        }
        let p = self.honest(3, true);
        let got = self.go(&p, false)?;
        if got.iter().any(|o| o.okay.iter().any(|k| *k)) {
            self.v.delivered_wrong.push("a burst succeeded without keys".into());
        }
        // The session's next message has no session any more.
        let sealed = self.talk.seal(&Request::ping())?;
        self.v.transactions += 1;
        let status = self.s.card.ring(&sealed, 0..MESSAGE_LEN / 4)?;
        let refused = ctl::STATUS_CHAN_REFUSED.get(status) != 0;
        if !refused {
            self.v.accepted_wrong.push(format!("a message of a lost session was taken, status {status:#x}"));
        }
        self.v.detected = refused;
        if index / 12 % 64 == 5 {
            self.new_session()?;
        }
        Ok(())
    }

    /// A new Load Key after a reset, and honest traffic under it.
    fn new_session(&mut self) -> Result<()> {
        self.v.act.push_str(", then a new session");
        let config = self.s.config.clone();
        let owner = Owner::open(&mut self.s.card, &config, &first_epochs(&config, 7), self.s.seed ^ self.rng.next_u64())?;
        let mut talk = Talk::again(owner.keys(), &[])?;
        let (mut list, mut sealed) = (Vec::new(), Vec::new());
        for r in config.regions() {
            let mut data = vec![0; r.chunk as usize];
            self.rng.fill(&mut data);
            let c = self.below(r.chunks());
            let Some(key) = owner.keys().data_key(r.id) else { continue };
            let mut ct = data.clone();
            let tag = shef_seal::ChunkCipher::new(r.id, key).seal(7, c, &mut ct);
            let okay = vec![true; if r.mode == Mode::Input { data.len() / 64 } else { 1 }];
            if r.mode == Mode::Input {
                place(&mut self.s.card, r, c, &(ct, tag));
                list.push((Op::Read { id: 3, addr: r.chunk_addr(c), beats: r.chunk / 64 }, Outcome { okay, data }));
            } else {
                list.push((Op::Write { id: 3, addr: r.chunk_addr(c), data, strobes: Vec::new() }, Outcome { okay, data: Vec::new() }));
                sealed.push((r.clone(), c, (ct, tag)));
            }
        }
        self.go(&phase(list), true)?;
        talk.must(&mut self.s.card, &Request::flush())?;
        for (r, c, want) in sealed {
            if piece(&self.s.card, &r, c) != want {
                self.v.refused_wrong.push(format!("region {} chunk {c} of the new session is not as sealed", r.name));
            }
        }
        Ok(())
    }

    fn flood(&mut self) -> Result<()> {
        self.warm_up()?;
        let old = self.talk.wire.iter().map(|(_, m, _)| *m).collect::<Vec<_>>();
        let old = pick(&mut self.rng, &old).unwrap_or([0; MESSAGE_LEN]);
        let seed = self.rng.next_u64();
        let mut flood = Flood::new(&mut self.s.card, seed, old)?;
        let p = self.honest(8, true);
        self.s.card.push(&p.ops);
        let got = self.s.card.finish(p.ops.len(), Some(&mut flood))?;
        self.judge(&p.ops, &p.expected, &got, true);
        self.v.act = format!("{} register accesses while bursts run", flood.answered);
        self.s.card.ready()?;
        self.unharmed()
    }
}

/// Cycles that an instance has run.
pub fn cycles(card: &Card) -> u64 {
    card.core.cycles()
}
