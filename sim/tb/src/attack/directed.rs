//! What neither attempts nor random operations come to, for coverage: each register, the
//! accelerator's registers over the sealed channel, statistics, a chunk whose last gap is filled by
//! the middle of a burst, answers to nobody, commands that break, a wipe while answers wait, and
//! the ends of a session.

use super::session::Session;
use super::talk::Talk;
use crate::Result;
use crate::bench::{Bench, BenchError};
use crate::host;
use crate::owner::Owner;
use crate::traffic::Op;
use shef_proto::channel::Request;
use shef_proto::config::{Mode, OnFault, Region};
use shef_proto::load::first_epochs;
use shef_regs::{ctl, krn};
use shef_rtl::{AxiMemoryConfig, Hostile};

/// Goes round; the session is of no use afterwards.
pub fn tour(s: &mut Session) -> Result<()> {
    let mut talk = rest(s)?;
    registers(s)?;
    talk.must(&mut s.bench, &Request::ping())?;
    accelerator(s, &mut talk)?;
    for set in 0..s.config.sets().len() {
        for page in 0..2 {
            talk.must(&mut s.bench, &Request::stats(u8::try_from(set).unwrap_or_default(), page))?;
        }
    }
    gaps(s)?;
    // an epoch that is not above the present one, and one of a region that has none
    for r in s.config.regions().iter().map(|r| r.id).collect::<Vec<_>>() {
        refused(s, &mut talk, &Request::epoch(r, s.epoch))?;
    }
    talk.must(&mut s.bench, &Request::close())?;
    registers(s)?;
    // a session whose epochs are not yet given
    Owner::open(&mut s.bench, &s.config, &first_epochs(&s.config, 0), s.seed ^ 1)?;
    let reads: Vec<Op> = s.config.epoch_regions().map(|r| Op::Read { id: 2, addr: r.base, beats: 1 }).collect();
    s.bench.burst(&reads)?;

    let mut talk = rest(s)?;
    talk.must(&mut s.bench, &Request::abort())?;

    // no set has the first number, so nobody is asked
    for id in [0xc0, 0x00] {
        rest(s)?;
        for memory in s.bench.core().axi_memories() {
            memory.inject(Hostile::UnownedR { id });
            memory.inject(Hostile::UnownedB { id });
        }
        s.bench.core().step(200);
    }
    commands_that_break(s)?;

    rest(s)?;
    wipe_while_answers_wait(s)
}

/// The quiet moment that attempts start from, with the owner's talk until then.
fn rest(s: &mut Session) -> Result<Talk> {
    let start = s.snapshot.clone();
    s.bench.restore(&start, AxiMemoryConfig::bench(20, 10), None)?;
    Talk::again(s.keys(), &s.wire)
}

/// Reads everything that has an address; what may not be read answers with an error.
fn registers(s: &mut Session) -> Result<()> {
    for item in ctl::ITEMS {
        for at in (item.offset..item.offset + item.bytes.min(32)).step_by(4) {
            s.bench.core().ctl_read(at)?;
        }
    }
    for item in krn::ITEMS {
        for at in (item.offset..item.offset + item.bytes.min(32)).step_by(4) {
            s.bench.core().krn_read(at)?;
        }
    }
    Ok(())
}

/// Registers of an accelerator that answers at once, with errors, and never.
fn accelerator(s: &mut Session, talk: &mut Talk) -> Result<()> {
    const ANSWERS: [&str; 5] = ["reg_awready", "reg_wready", "reg_arready", "reg_bvalid", "reg_rvalid"];
    let put = |s: &mut Session, names: &[&str], value: u64| {
        for name in names {
            s.bench.core().sim().poke(name, value);
        }
    };
    put(s, &ANSWERS, 1);
    put(s, &["reg_rdata"], 0x5a);
    talk.must(&mut s.bench, &Request::write(0x10, 7))?;
    talk.must(&mut s.bench, &Request::read(0x10))?;
    put(s, &["reg_bresp", "reg_rresp"], 2);
    refused(s, talk, &Request::write(0x10, 7))?;
    refused(s, talk, &Request::read(0x10))?;
    put(s, &["reg_bresp", "reg_rresp"], 0);
    put(s, &ANSWERS, 0);
    // the second one is not even asked
    refused(s, talk, &Request::read(0x10))?;
    refused(s, talk, &Request::write(0x10, 7))?;
    // an interrupt, which the bench takes at once
    let before = s.bench.core().interrupts();
    put(s, &["acc_irq"], 1);
    s.bench.core().step(8);
    put(s, &["acc_irq"], 0);
    s.bench.core().step(8);
    match s.bench.core().interrupts() - before {
        1 => Ok(()),
        n => Err(BenchError::Unequal(format!("{n} interrupts for one"))),
    }
}

fn refused(s: &mut Session, talk: &mut Talk, request: &Request) -> Result<()> {
    match talk.ask(&mut s.bench, request)?.status {
        0 => Err(BenchError::Refused { what: "a request that cannot be done", status: host::ready(&mut s.bench)? }),
        _ => Ok(()),
    }
}

/// The second half of a chunk, then all of it: the line is full before the burst's last beat.
fn gaps(s: &mut Session) -> Result<()> {
    let regions: Vec<Region> = s.config.regions().iter().filter(|r| r.chunk >= 256 && !r.mode.has_epoch()).cloned().collect();
    let mut ops = Vec::new();
    for r in &regions {
        let half = u64::from(r.chunk) / 2;
        for (from, len) in [(half, half), (0, 2 * half)] {
            let data = vec![0xa5; usize::try_from(len).unwrap_or_default()];
            ops.push(Op::Write { id: 3, addr: r.chunk_addr(0) + from, data, strobes: Vec::new() });
        }
    }
    s.bench.burst(&ops).map(drop)
}

/// The memory answers wrongly when a command seals what was gathered.
fn commands_that_break(s: &mut Session) -> Result<()> {
    let Some(r) = s.config.regions().iter().find(|r| r.mode == Mode::Output && r.chunk > 64).cloned() else { return Ok(()) };
    let book = &s.books[usize::from(r.id)];
    let free = book.used.iter().copied().find(|c| !book.plain.contains_key(c));
    // under `halt` no answer comes any more
    let (Some(chunk), false) = (free, s.config.on_fault() == OnFault::Halt) else { return Ok(()) };
    for request in [Request::invalidate(), Request::epoch(r.id, s.epoch + 1)] {
        let mut talk = rest(s)?;
        s.bench.burst(&[Op::Write { id: 1, addr: r.chunk_addr(chunk), data: vec![1; 64], strobes: Vec::new() }])?;
        for memory in s.bench.core().axi_memories() {
            memory.inject(Hostile::WrongBid(1));
        }
        refused(s, &mut talk, &request)?;
    }
    Ok(())
}

/// The requester takes no answers until the wipe is done.
fn wipe_while_answers_wait(s: &mut Session) -> Result<()> {
    let Some(r) = s.config.regions().iter().find(|r| r.mode == Mode::Input) else { return Ok(()) };
    let port = s.config.sets().get(usize::from(r.set)).map_or(0, |set| set.acc);
    let beats = u64::from(r.chunk / 64);
    let addr = r.chunk_addr(s.books[usize::from(r.id)].used[0]);
    let core = s.bench.core();
    let name = |signal: &str| format!("acc{port}_{signal}");
    let read = [("arid", 1), ("araddr", addr), ("arlen", beats - 1), ("arsize", 6), ("arburst", 1), ("arvalid", 1), ("rready", 0)];
    for (signal, value) in read {
        core.sim().poke(&name(signal), value);
    }
    core.step(20);
    core.sim().poke(&name("arvalid"), 0);
    core.step(500);
    core.wipe()?;
    core.sim().poke(&name("rready"), 1);
    core.step(500);
    Ok(())
}
