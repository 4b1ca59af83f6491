//! Every rule of a configuration, in the order of the list in `docs/reference/shield-config.md`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{
    CACHE, Config, ConfigError, Field, LINES, MAX_COUNTERS, MAX_MAP_BITS, MAX_PREFETCH,
    MAX_REGIONS, MAX_ROOT, MAX_SETS, Mode, PAGE, Region, Set,
};

impl Config {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        let counts = [
            (Field::Ports, "memory ports", MAX_SETS, usize::from(self.ports)),
            (Field::Sets, "engine sets", MAX_SETS, self.sets.len()),
            (Field::Regions, "regions", MAX_REGIONS, self.regions.len()),
        ];
        if counts.iter().all(|(.., found)| *found == 0) {
            return Ok(());
        }
        for (field, what, max, found) in counts {
            if !(1..=max).contains(&found) {
                let none = if found == 0 {
                    ": memory ports, engine sets and regions are there together or not at all"
                } else {
                    ""
                };
                return Err(ConfigError::Rule {
                    field,
                    rule: alloc::format!("1 to {max} {what}, found {found}{none}"),
                });
            }
        }
        for (i, s) in self.sets.iter().enumerate() {
            self.check_set(i, s)?;
        }
        for (i, r) in self.regions.iter().enumerate() {
            self.check_region(i, r)?;
            self.check_place(i, r)?;
        }
        for i in 0..self.sets.len() {
            if !self.regions.iter().any(|r| usize::from(r.set) == i) {
                return Err(ConfigError::Set {
                    set: i,
                    field: Field::Set,
                    rule: "no region belongs to it".to_string(),
                });
            }
        }
        self.check_overlaps()?;
        self.check_on_chip(
            Mode::Output,
            Region::chunks,
            MAX_MAP_BITS,
            "chunks",
            "a bit for each of",
        )?;
        self.check_on_chip(
            Mode::Counted,
            Region::chunks,
            MAX_COUNTERS,
            "chunks",
            "a counter for each of",
        )?;
        self.check_on_chip(Mode::Tree, Region::root_entries, MAX_ROOT, "root table entries", "")
    }

    fn check_set(&self, i: usize, s: &Set) -> Result<(), ConfigError> {
        let bad = |field: Field, rule: String| Err(ConfigError::Set { set: i, field, rule });
        if !matches!(s.lanes, 1 | 2 | 4) {
            return bad(Field::Lanes, alloc::format!("lanes must be 1, 2 or 4, found {}", s.lanes));
        }
        // Reads leave two lines of each kind to writes, and writes leave two to reads; the
        // directory addresses at most 64.
        let (least, most) = LINES;
        for (field, name, lines) in [
            (Field::BigLines, "big_lines", s.big_lines),
            (Field::SmallLines, "small_lines", s.small_lines),
        ] {
            if lines < least {
                return bad(field, alloc::format!("{name} must be {least} or more, found {lines}"));
            }
            if u32::from(s.big_lines) + u32::from(s.small_lines) > u32::from(most)
                && lines >= most / 2
            {
                return bad(
                    field,
                    alloc::format!(
                        "big_lines and small_lines must be {most} or less together, found {} and {}",
                        s.big_lines,
                        s.small_lines
                    ),
                );
            }
        }
        if !(128..=4096).contains(&s.ring_beats) || !s.ring_beats.is_power_of_two() {
            return bad(
                Field::RingBeats,
                alloc::format!(
                    "ring_beats must be a power of two from 128 to 4096, found {}",
                    s.ring_beats
                ),
            );
        }
        if usize::from(s.acc) >= MAX_SETS {
            return bad(
                Field::Acc,
                alloc::format!(
                    "acc names an accelerator port from 0 to {}, found {}",
                    MAX_SETS - 1,
                    s.acc
                ),
            );
        }
        if let Some(missing) = (0..s.acc).find(|&a| self.sets.iter().all(|o| o.acc != a)) {
            return bad(
                Field::Acc,
                alloc::format!("accelerator port {} needs a set on port {missing} too", s.acc),
            );
        }
        match (s.cache_bytes, s.cache_line) {
            (0, 0) => {}
            (0, _) => return bad(Field::CacheLine, "cache_line without cache".to_string()),
            (bytes, line) => {
                if !line.is_power_of_two() || !(64..=4096).contains(&line) {
                    return bad(
                        Field::CacheLine,
                        alloc::format!(
                            "cache_line must be a power of two from 64 to 4096, found {line}"
                        ),
                    );
                }
                let (lines, most) = CACHE;
                if !bytes.is_power_of_two() || bytes > most || bytes / u32::from(line) < lines {
                    return bad(
                        Field::Cache,
                        alloc::format!(
                            "cache must be a power of two from {lines} lines ({} B) to {most} B, found {bytes}",
                            lines * u32::from(line)
                        ),
                    );
                }
            }
        }
        Ok(())
    }

    /// Checks a region against its engine set.
    fn check_place(&self, i: usize, r: &Region) -> Result<(), ConfigError> {
        let bad = |field: Field, rule: String| {
            Err(ConfigError::Region { region: i, name: r.name.clone(), field, rule })
        };
        let set = &self.sets[usize::from(r.set)];
        if let Some(first) = self.regions[..i].iter().find(|o| o.set == r.set && o.port != r.port) {
            return bad(
                Field::Port,
                alloc::format!(
                    "port {}, but region {} ({}) of the same engine set uses port {}: all regions of a set use one memory port",
                    r.port,
                    first.id,
                    first.name,
                    first.port
                ),
            );
        }
        if set.cache_bytes != 0 {
            if r.mode == Mode::Output {
                return bad(
                    Field::Mode,
                    alloc::format!(
                        "engine set {} has a cache, which cannot hold output regions",
                        r.set
                    ),
                );
            }
            if r.chunk != u32::from(set.cache_line) {
                return bad(
                    Field::Chunk,
                    alloc::format!(
                        "chunk {} in engine set {}, whose cache has lines of {} B: they must be equal",
                        r.chunk,
                        r.set,
                        set.cache_line
                    ),
                );
            }
        }
        let lines = if r.is_big() { set.big_lines } else { set.small_lines };
        if u16::from(r.prefetch) + LINES.0 > lines && r.prefetch != 0 {
            return bad(
                Field::Prefetch,
                alloc::format!(
                    "prefetch {} needs {} {}, engine set {} has {lines}",
                    r.prefetch,
                    u16::from(r.prefetch) + LINES.0,
                    if r.is_big() { "big_lines" } else { "small_lines" },
                    r.set
                ),
            );
        }
        Ok(())
    }

    /// Checks the on-chip memory of all regions of a mode; names the region that exceeds it.
    fn check_on_chip(
        &self,
        mode: Mode,
        of: impl Fn(&Region) -> u64,
        most: u64,
        what: &str,
        each: &str,
    ) -> Result<(), ConfigError> {
        let mut sum = 0u64;
        for (i, r) in self.regions.iter().enumerate().filter(|(_, r)| r.mode == mode) {
            sum = sum.saturating_add(of(r));
            if sum > most {
                let name = mode.name();
                let fits = alloc::format!("{each} {most}");
                let rule = alloc::format!(
                    "the {name} regions up to this one have {sum} {what}, on-chip memory holds {}; use larger chunks or a smaller region",
                    fits.trim()
                );
                return Err(ConfigError::Region {
                    region: i,
                    name: r.name.clone(),
                    field: Field::Size,
                    rule,
                });
            }
        }
        Ok(())
    }

    fn check_region(&self, i: usize, r: &Region) -> Result<(), ConfigError> {
        let bad = |field: Field, rule: String| {
            Err(ConfigError::Region { region: i, name: r.name.clone(), field, rule })
        };
        if usize::from(r.id) != i {
            return bad(Field::Region, alloc::format!("number {} at place {i} of the list", r.id));
        }
        let name_ok = (1..=32).contains(&r.name.len())
            && r.name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
        if !name_ok {
            return bad(Field::Name, "a name is 1 to 32 of a-z 0-9 _ -".to_string());
        }
        if self.regions[..i].iter().any(|o| o.name == r.name) {
            return bad(Field::Name, "another region has this name".to_string());
        }
        if !r.chunk.is_power_of_two() || !(64..=4096).contains(&r.chunk) {
            return bad(
                Field::Chunk,
                alloc::format!("chunk must be a power of two from 64 to 4096, found {}", r.chunk),
            );
        }
        if !matches!(r.key_bits, 128 | 256) {
            return bad(
                Field::Key,
                alloc::format!("key must be 128 or 256 bits, found {}", r.key_bits),
            );
        }
        if !r.base.is_multiple_of(PAGE) {
            return bad(
                Field::Base,
                alloc::format!("base 0x{:x} is not a multiple of 4 KiB", r.base),
            );
        }
        if r.size == 0 || !r.size.is_multiple_of(PAGE) {
            return bad(
                Field::Size,
                alloc::format!("size 0x{:x} is not a positive multiple of 4 KiB", r.size),
            );
        }
        if r.base.checked_add(r.size).is_none() {
            return bad(Field::Size, "the region runs past the last address".to_string());
        }
        if r.chunks() > 1 << 31 {
            return bad(Field::Size, alloc::format!("{} chunks, at most 2^31", r.chunks()));
        }
        if r.mode.has_tags() {
            if !r.tag_base.is_multiple_of(PAGE) {
                return bad(
                    Field::TagBase,
                    alloc::format!("tag_base 0x{:x} is not a multiple of 4 KiB", r.tag_base),
                );
            }
            if r.tag_base.checked_add(r.tag_size()).is_none() {
                return bad(Field::TagBase, "the tags run past the last address".to_string());
            }
        } else if r.tag_base != 0 {
            return bad(Field::TagBase, "a bypass region has no tags".to_string());
        }
        match (r.mode, r.node_base) {
            (Mode::Tree, None) => {
                return bad(Field::NodeBase, "a tree region needs node_base".to_string());
            }
            (Mode::Tree, Some(n)) if !n.is_multiple_of(PAGE) => {
                return bad(
                    Field::NodeBase,
                    alloc::format!("node_base 0x{n:x} is not a multiple of 4 KiB"),
                );
            }
            (Mode::Tree, Some(n)) if n.checked_add(r.node_size()).is_none() => {
                return bad(Field::NodeBase, "the nodes run past the last address".to_string());
            }
            (Mode::Tree, Some(_)) | (_, None) => {}
            (_, Some(_)) => {
                return bad(Field::NodeBase, "only a tree region has node_base".to_string());
            }
        }
        if r.prefetch > MAX_PREFETCH {
            return bad(
                Field::Prefetch,
                alloc::format!("prefetch must be 0 to {MAX_PREFETCH} chunks, found {}", r.prefetch),
            );
        }
        match (r.mode, r.counter_bits) {
            (Mode::Counted, Some(36 | 48)) => {}
            (Mode::Counted, _) => {
                return bad(Field::Counter, "counter must be 36 or 48 bits".to_string());
            }
            (_, None) => {}
            (_, Some(_)) => {
                return bad(Field::Counter, "only a counted region has counter".to_string());
            }
        }
        if r.port >= self.ports {
            return bad(
                Field::Port,
                alloc::format!("port {} does not exist, there are {}", r.port, self.ports),
            );
        }
        if usize::from(r.set) >= self.sets.len() {
            return bad(
                Field::Set,
                alloc::format!(
                    "engine set {} does not exist, there are {}",
                    r.set,
                    self.sets.len()
                ),
            );
        }
        Ok(())
    }

    /// All ranges of card memory: start, end, region and the field with the start.
    fn ranges(&self) -> Vec<(u64, u64, usize, Field)> {
        let mut ranges = Vec::new();
        for (i, r) in self.regions.iter().enumerate() {
            ranges.push((r.base, r.base + r.size, i, Field::Base));
            if r.mode.has_tags() {
                ranges.push((r.tag_base, r.tag_base + r.tag_size(), i, Field::TagBase));
            }
            if let Some(n) = r.node_base {
                ranges.push((n, n + r.node_size(), i, Field::NodeBase));
            }
        }
        ranges
    }

    /// Bytes of card memory that the regions need: the end of the last data, tags or nodes.
    pub fn memory_end(&self) -> u64 {
        self.ranges().iter().map(|range| range.1).max().unwrap_or(0)
    }

    fn check_overlaps(&self) -> Result<(), ConfigError> {
        let ranges = self.ranges();
        let what = |i: usize, f: Field| {
            let part = match f {
                Field::TagBase => "tags",
                Field::NodeBase => "nodes",
                _ => "data",
            };
            alloc::format!("{part} of region {i} ({})", self.regions[i].name)
        };
        for (n, b) in ranges.iter().enumerate() {
            for a in &ranges[..n] {
                if a.0 < b.1 && b.0 < a.1 {
                    return Err(ConfigError::Overlap {
                        a: what(b.2, b.3),
                        a_start: b.0,
                        a_end: b.1,
                        b: what(a.2, a.3),
                        b_start: a.0,
                        b_end: a.1,
                        region: b.2,
                        field: b.3,
                    });
                }
            }
        }
        Ok(())
    }
}
