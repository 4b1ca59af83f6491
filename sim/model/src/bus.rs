//! The accelerator's side of the Shield: bursts, beats, and the trait that accelerator models
//! implement.

/// Bytes of a beat.
pub const BEAT: usize = 64;

/// Response to a beat or a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resp {
    /// OKAY
    Okay,
    /// SLVERR; the data is zero.
    SlvErr,
}

/// An AXI4 request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Burst {
    /// Byte address.
    pub addr: u64,
    /// Beats less one.
    pub len: u8,
    /// Base-2 logarithm of the bytes of a beat, 6 for 64 bytes.
    pub size: u8,
    /// INCR; other bursts are refused.
    pub incr: bool,
}

impl Burst {
    /// A burst of `beats` whole beats (1 to 256).
    pub fn whole(addr: u64, beats: usize) -> Self {
        Self { addr, len: (beats.clamp(1, 256) - 1) as u8, size: 6, incr: true }
    }

    /// Number of beats.
    pub fn beats(&self) -> usize {
        usize::from(self.len) + 1
    }

    /// Address of the first beat, aligned to its size.
    pub fn start(&self) -> u64 {
        self.addr & !((1u64 << self.size.min(7)) - 1)
    }
}

/// A beat that was read. The bytes are in their lanes: byte i of the 64-byte word at `data[i]`; a
/// narrow beat shows its whole word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// The word.
    pub data: [u8; BEAT],
    /// OKAY, or SLVERR with zero data.
    pub resp: Resp,
}

/// A beat to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteBeat {
    /// The word.
    pub data: [u8; BEAT],
    /// Bit i: byte i is written.
    pub strb: u64,
}

/// The memory port of an accelerator.
pub trait ShieldBus {
    /// A read burst; returns one entry per beat.
    fn read(&mut self, burst: &Burst) -> Vec<Beat>;

    /// A write burst; takes one entry per beat.
    fn write(&mut self, burst: &Burst, data: &[WriteBeat]) -> Resp;

    /// Reads bytes by whole beats in bursts of up to 64 beats inside a 4 KiB page; `addr` is a
    /// multiple of 64. Beats with an error response read as zero.
    fn read_bytes(&mut self, addr: u64, out: &mut [u8]) -> Resp {
        let mut resp = Resp::Okay;
        let mut done = 0;
        while done < out.len() {
            let at = addr.wrapping_add(done as u64);
            let beats = ((out.len() - done).div_ceil(BEAT))
                .min((4096 - (at % 4096) as usize) / BEAT)
                .max(1);
            for beat in self.read(&Burst::whole(at, beats)) {
                let n = BEAT.min(out.len() - done);
                out[done..done + n].copy_from_slice(&beat.data[..n]);
                done += n;
                if beat.resp != Resp::Okay {
                    resp = Resp::SlvErr;
                }
            }
        }
        resp
    }

    /// Writes bytes by whole beats in bursts of up to `beats` beats that end on a multiple of their
    /// length; `addr` is a multiple of 64.
    fn write_bytes(&mut self, addr: u64, data: &[u8], beats: usize) -> Resp {
        let mut resp = Resp::Okay;
        let span = BEAT * beats.clamp(1, 64).next_power_of_two();
        let mut done = 0;
        while done < data.len() {
            let at = addr.wrapping_add(done as u64);
            let n = (data.len() - done).min(span - (at % span as u64) as usize);
            let words: Vec<WriteBeat> = data[done..done + n]
                .chunks(BEAT)
                .map(|c| {
                    let mut word = [0; BEAT];
                    word[..c.len()].copy_from_slice(c);
                    WriteBeat { data: word, strb: u64::MAX >> (BEAT - c.len()) }
                })
                .collect();
            if self.write(&Burst::whole(at, words.len()), &words) != Resp::Okay {
                resp = Resp::SlvErr;
            }
            done += n;
        }
        resp
    }
}

/// A functional accelerator.
pub trait Accelerator: Send {
    /// Its name, part of the model's design digest.
    fn name(&self) -> &'static str;

    /// Returns to the state after reset; called when a session starts and when it ends.
    fn reset(&mut self);

    /// Zeroises the state that survives a reset, before a session; returns whether it did.
    /// Otherwise no session begins.
    fn clear(&mut self) -> bool {
        true
    }

    /// A 32-bit register read; `None` is SLVERR.
    fn reg_read(&mut self, addr: u16) -> Option<u32>;

    /// A 32-bit register write; false is SLVERR.
    fn reg_write(&mut self, addr: u16, value: u32) -> bool;

    /// Does all started work; called after every register write.
    fn run(&mut self, bus: &mut dyn ShieldBus);
}

/// No accelerator: all register accesses return an error.
#[derive(Debug, Default, Clone, Copy)]
pub struct NoAccelerator;

impl Accelerator for NoAccelerator {
    fn name(&self) -> &'static str {
        "none"
    }
    fn reset(&mut self) {}
    fn reg_read(&mut self, _: u16) -> Option<u32> {
        None
    }
    fn reg_write(&mut self, _: u16, _: u32) -> bool {
        false
    }
    fn run(&mut self, _: &mut dyn ShieldBus) {}
}
