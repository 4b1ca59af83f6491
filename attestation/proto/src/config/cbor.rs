//! The deterministic CBOR (RFC 8949 4.2.1) of a configuration, which is measured.

use alloc::string::ToString;
use alloc::vec::Vec;

use minicbor::{Decoder, Encoder};

use super::{
    Config, ConfigError, MAX_CBOR, MAX_REGIONS, MAX_SETS, Mode, OnFault, Region, SUITE, Set,
    VERSION,
};

impl Config {
    /// The deterministic CBOR (RFC 8949 4.2.1) of `docs/reference/shield-config.md`.
    pub fn to_cbor(&self) -> Vec<u8> {
        let mut e = Encoder::new(Vec::new());
        self.encode(&mut e).expect("writing to a Vec cannot fail");
        e.into_writer()
    }

    fn encode(
        &self,
        e: &mut Encoder<Vec<u8>>,
    ) -> Result<(), minicbor::encode::Error<core::convert::Infallible>> {
        e.map(6)?
            .u8(1)?
            .u8(VERSION)?
            .u8(2)?
            .u16(SUITE)?
            .u8(3)?
            .u8(self.on_fault.number())?
            .u8(4)?
            .u8(self.ports)?;
        e.u8(5)?.array(self.sets.len() as u64)?;
        for s in &self.sets {
            e.map(7)?
                .u8(1)?
                .u8(s.lanes)?
                .u8(2)?
                .u16(s.big_lines)?
                .u8(3)?
                .u16(s.small_lines)?
                .u8(4)?
                .u16(s.ring_beats)?;
            e.u8(5)?.u8(s.acc)?.u8(6)?.u32(s.cache_bytes)?.u8(7)?.u16(s.cache_line)?;
        }
        e.u8(6)?.array(self.regions.len() as u64)?;
        for r in &self.regions {
            e.map(
                10 + u64::from(r.mode.has_tags())
                    + u64::from(r.node_base.is_some())
                    + u64::from(r.counter_bits.is_some()),
            )?;
            e.u8(1)?.u8(r.id)?.u8(2)?.str(&r.name)?.u8(3)?.u8(r.mode.number())?;
            e.u8(4)?.u64(r.base)?.u8(5)?.u64(r.size)?.u8(6)?.u32(r.chunk)?;
            e.u8(7)?.u16(r.key_bits)?.u8(8)?.u8(r.port)?.u8(9)?.u8(r.set)?;
            if r.mode.has_tags() {
                e.u8(10)?.u64(r.tag_base)?;
            }
            if let Some(n) = r.node_base {
                e.u8(11)?.u64(n)?;
            }
            e.u8(12)?.u8(r.prefetch)?;
            if let Some(bits) = r.counter_bits {
                e.u8(13)?.u8(bits)?;
            }
        }
        Ok(())
    }

    /// Reads the output of [`Config::to_cbor`]; any other byte string is refused.
    ///
    /// # Errors
    /// Malformed bytes, unknown version or suite, or a violated rule.
    pub fn from_cbor(bytes: &[u8]) -> Result<Self, ConfigError> {
        if bytes.len() > MAX_CBOR {
            return Err(ConfigError::Malformed("too long"));
        }
        let config = decode(bytes)?;
        config.check()?;
        // Any other form of the same content differs here.
        if config.to_cbor() != bytes {
            return Err(ConfigError::Malformed("not deterministic CBOR"));
        }
        Ok(config)
    }
}

impl From<minicbor::decode::Error> for ConfigError {
    fn from(_: minicbor::decode::Error) -> Self {
        Self::Malformed("truncated or of another type")
    }
}

fn key(d: &mut Decoder<'_>, want: u8) -> Result<(), ConfigError> {
    if d.u8()? == want { Ok(()) } else { Err(ConfigError::Malformed("unexpected map key")) }
}

fn map(d: &mut Decoder<'_>) -> Result<u64, ConfigError> {
    d.map()?.ok_or(ConfigError::Malformed("indefinite length"))
}

fn array(d: &mut Decoder<'_>, max: usize) -> Result<usize, ConfigError> {
    let n = d.array()?.ok_or(ConfigError::Malformed("indefinite length"))?;
    usize::try_from(n).ok().filter(|&n| n <= max).ok_or(ConfigError::Malformed("too many entries"))
}

fn decode(bytes: &[u8]) -> Result<Config, ConfigError> {
    let mut d = Decoder::new(bytes);
    let d = &mut d;
    let entries = map(d)?;
    key(d, 1)?;
    let version = d.u64()?;
    key(d, 2)?;
    let suite = d.u64()?;
    if version != u64::from(VERSION) || suite != u64::from(SUITE) {
        return Err(ConfigError::Version { version, suite });
    }
    if entries != 6 {
        return Err(ConfigError::Malformed("wrong number of entries"));
    }
    key(d, 3)?;
    let on_fault =
        OnFault::from_number(d.u8()?).ok_or(ConfigError::Malformed("unknown fault policy"))?;
    key(d, 4)?;
    let ports = d.u8()?;
    key(d, 5)?;
    let mut sets = Vec::new();
    for _ in 0..array(d, MAX_SETS)? {
        if map(d)? != 7 {
            return Err(ConfigError::Malformed("wrong number of entries in a set"));
        }
        key(d, 1)?;
        let lanes = d.u8()?;
        key(d, 2)?;
        let big_lines = d.u16()?;
        key(d, 3)?;
        let small_lines = d.u16()?;
        key(d, 4)?;
        let ring_beats = d.u16()?;
        key(d, 5)?;
        let acc = d.u8()?;
        key(d, 6)?;
        let cache_bytes = d.u32()?;
        key(d, 7)?;
        sets.push(Set {
            lanes,
            big_lines,
            small_lines,
            ring_beats,
            acc,
            cache_bytes,
            cache_line: d.u16()?,
        });
    }
    key(d, 6)?;
    let mut regions = Vec::new();
    for _ in 0..array(d, MAX_REGIONS)? {
        let entries = map(d)?;
        key(d, 1)?;
        let id = d.u8()?;
        key(d, 2)?;
        let name = d.str()?.to_string();
        key(d, 3)?;
        let mode = Mode::from_number(d.u8()?).ok_or(ConfigError::Malformed("unknown mode"))?;
        key(d, 4)?;
        let base = d.u64()?;
        key(d, 5)?;
        let size = d.u64()?;
        key(d, 6)?;
        let chunk = d.u32()?;
        key(d, 7)?;
        let key_bits = d.u16()?;
        key(d, 8)?;
        let port = d.u8()?;
        key(d, 9)?;
        let set = d.u8()?;
        // The mode determines which optional entries are present.
        let expected = 10
            + u64::from(mode.has_tags())
            + u64::from(mode == Mode::Tree)
            + u64::from(mode == Mode::Counted);
        if entries != expected {
            return Err(ConfigError::Malformed("missing or unknown entries in a region"));
        }
        let mut tag_base = 0;
        if mode.has_tags() {
            key(d, 10)?;
            tag_base = d.u64()?;
        }
        let mut node_base = None;
        if mode == Mode::Tree {
            key(d, 11)?;
            node_base = Some(d.u64()?);
        }
        key(d, 12)?;
        let prefetch = d.u8()?;
        let mut counter_bits = None;
        if mode == Mode::Counted {
            key(d, 13)?;
            counter_bits = Some(d.u8()?);
        }
        regions.push(Region {
            id,
            name,
            mode,
            base,
            size,
            chunk,
            key_bits,
            port,
            set,
            tag_base,
            node_base,
            prefetch,
            counter_bits,
        });
    }
    if d.position() != bytes.len() {
        return Err(ConfigError::Malformed("trailing bytes"));
    }
    Ok(Config { on_fault, ports, sets, regions })
}
