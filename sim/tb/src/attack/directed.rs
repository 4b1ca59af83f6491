//! A directed sequence that covers what attempts and random operations do not reach: every
//! register, the accelerator's registers over the sealed channel, statistics, a chunk whose last
//! gap is filled in the middle of a burst, unsolicited responses, failing commands, a wipe while
//! responses wait, and the ends of a session.

use super::recorded::RecordedChannel;
use super::session::Session;
use crate::bench::Bench;
use crate::host;
use crate::owner::Owner;
use crate::traffic::Op;
use crate::{BenchError, Result};
use shef_proto::channel::ShieldRequest;
use shef_proto::config::{Mode, OnFault, Region};
use shef_proto::load::first_epochs;
use shef_regs::{ctl, krn};
use shef_rtl::{AxiMemoryConfig, Hostile};

/// Runs the sequence. The session cannot be used afterwards.
pub fn run(s: &mut Session) -> Result<()> {
    let mut channel = restore(s)?;
    registers(s)?;
    channel.must(&mut s.bench, &ShieldRequest::ping())?;
    accelerator(s, &mut channel)?;
    for set in 0..s.config.sets().len() {
        for page in 0..2 {
            channel.must(
                &mut s.bench,
                &ShieldRequest::stats(u8::try_from(set).unwrap_or_default(), page),
            )?;
        }
    }
    gaps(s)?;
    // an epoch that is not above the current one, and an epoch for a region without epochs
    for r in s.config.regions().iter().map(|r| r.id).collect::<Vec<_>>() {
        refused(s, &mut channel, &ShieldRequest::epoch(r, s.epoch))?;
    }
    channel.must(&mut s.bench, &ShieldRequest::close())?;
    registers(s)?;
    // a session whose epochs are not set yet
    Owner::open(&mut s.bench, &s.config, &first_epochs(&s.config, 0), s.seed ^ 1)?;
    let reads: Vec<Op> =
        s.config.epoch_regions().map(|r| Op::Read { id: 2, addr: r.base, beats: 1 }).collect();
    s.bench.burst(&reads)?;

    let mut channel = restore(s)?;
    channel.must(&mut s.bench, &ShieldRequest::abort())?;

    // no set has the first number, so the command reaches no set
    for id in [0xc0, 0x00] {
        restore(s)?;
        for memory in s.bench.core().axi_memories() {
            memory.inject(Hostile::UnownedR { id });
            memory.inject(Hostile::UnownedB { id });
        }
        s.bench.core().step(200);
    }
    commands_that_break(s)?;

    restore(s)?;
    wipe_while_answers_wait(s)
}

/// Restores the snapshot that attempts start from, and the owner's channel at that point.
fn restore(s: &mut Session) -> Result<RecordedChannel> {
    let start = s.snapshot.clone();
    s.bench.restore(&start, AxiMemoryConfig::bench(20, 10), None)?;
    RecordedChannel::replay(s.keys(), &s.wire)
}

/// Reads every address. Write-only registers answer with an error.
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

/// Accesses registers of an accelerator that answers at once, with errors, and not at all.
fn accelerator(s: &mut Session, channel: &mut RecordedChannel) -> Result<()> {
    const ANSWERS: [&str; 5] =
        ["reg_awready", "reg_wready", "reg_arready", "reg_bvalid", "reg_rvalid"];
    let put = |s: &mut Session, names: &[&str], value: u64| {
        for name in names {
            s.bench.core().sim().poke(name, value);
        }
    };
    put(s, &ANSWERS, 1);
    put(s, &["reg_rdata"], 0x5a);
    channel.must(&mut s.bench, &ShieldRequest::write(0x10, 7))?;
    channel.must(&mut s.bench, &ShieldRequest::read(0x10))?;
    put(s, &["reg_bresp", "reg_rresp"], 2);
    refused(s, channel, &ShieldRequest::write(0x10, 7))?;
    refused(s, channel, &ShieldRequest::read(0x10))?;
    put(s, &["reg_bresp", "reg_rresp"], 0);
    put(s, &ANSWERS, 0);
    // the second access is not forwarded at all
    refused(s, channel, &ShieldRequest::read(0x10))?;
    refused(s, channel, &ShieldRequest::write(0x10, 7))?;
    // an interrupt, which the bench acknowledges at once
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

fn refused(s: &mut Session, channel: &mut RecordedChannel, request: &ShieldRequest) -> Result<()> {
    match channel.ask(&mut s.bench, request)?.status {
        0 => Err(BenchError::Refused {
            what: "a request that cannot be done",
            status: host::ready(&mut s.bench)?,
        }),
        _ => Ok(()),
    }
}

/// Writes the second half of a chunk, then all of it: the line is full before the burst's last
/// beat.
fn gaps(s: &mut Session) -> Result<()> {
    let regions: Vec<Region> = s
        .config
        .regions()
        .iter()
        .filter(|r| r.chunk >= 256 && !r.mode.has_epoch())
        .cloned()
        .collect();
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

/// Memory answers under the wrong id while a command seals gathered writes.
fn commands_that_break(s: &mut Session) -> Result<()> {
    let Some(r) =
        s.config.regions().iter().find(|r| r.mode == Mode::Output && r.chunk > 64).cloned()
    else {
        return Ok(());
    };
    let board = &s.scoreboards[usize::from(r.id)];
    let free = board.used.iter().copied().find(|c| !board.plain.contains_key(c));
    // under `halt` there are no more answers
    let (Some(chunk), false) = (free, s.config.on_fault() == OnFault::Halt) else { return Ok(()) };
    for request in [ShieldRequest::invalidate(), ShieldRequest::epoch(r.id, s.epoch + 1)] {
        let mut channel = restore(s)?;
        s.bench.burst(&[Op::Write {
            id: 1,
            addr: r.chunk_addr(chunk),
            data: vec![1; 64],
            strobes: Vec::new(),
        }])?;
        for memory in s.bench.core().axi_memories() {
            memory.inject(Hostile::WrongBid(1));
        }
        refused(s, &mut channel, &request)?;
    }
    Ok(())
}

/// The requester accepts no response until the wipe is done.
fn wipe_while_answers_wait(s: &mut Session) -> Result<()> {
    let Some(r) = s.config.regions().iter().find(|r| r.mode == Mode::Input) else { return Ok(()) };
    let port = s.config.sets().get(usize::from(r.set)).map_or(0, |set| set.acc);
    let beats = u64::from(r.chunk / 64);
    let addr = r.chunk_addr(s.scoreboards[usize::from(r.id)].used[0]);
    let core = s.bench.core();
    let name = |signal: &str| format!("acc{port}_{signal}");
    let read = [
        ("arid", 1),
        ("araddr", addr),
        ("arlen", beats - 1),
        ("arsize", 6),
        ("arburst", 1),
        ("arvalid", 1),
        ("rready", 0),
    ];
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
