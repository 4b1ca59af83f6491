//! Counters of a slot, with their meaning.
//!
//! Names: `cli_show_image_info` of the HDK's fpga_local_cmd.c; meanings: the README of its tools and
//! the shell's interface specification.

use serde::Serialize;

use crate::slot::Slot;

/// A counter that the shell keeps.
struct Known {
    name: &'static str,
    meaning: &'static str,
    /// Next step, if it is not zero; empty for a counter of traffic.
    hint: &'static str,
}

const fn known(name: &'static str, meaning: &'static str, hint: &'static str) -> Known {
    Known { name, meaning, hint }
}

const OCL: &str = "the core did not answer BAR0, and the adapter answers within 6 us: OCL_LATE of its page counts the same. A count here means a stopped clk_main_a0, or another image";
const PCIS: &str = "an access of BAR4 was not answered in 8 us: the interface may stay dead until the image is loaded again";
const PCIM: &str = "the image breaks a rule of PCIM, which stays dead until it is loaded again: `shef cloud lint`, then report it";

const KNOWN: &[Known] = &[
    known(
        "sdacl-slave-timeout-count",
        "accesses of SDA that were not answered",
        "shef answers SDA at once: the slot holds another image",
    ),
    known(
        "virtual-jtag-slave-timeout-count",
        "accesses of the virtual JTAG that were not answered",
        "shef has no debug bridge: end the JTAG server",
    ),
    known("ocl-slave-timeout-count", "accesses of BAR0 (OCL) that were not answered", OCL),
    known(
        "bar1-slave-timeout-count",
        "accesses of BAR1 that were not answered",
        "F2 has no BAR1: the slot holds an image for F1",
    ),
    known("dma-pcis-timeout-count", "accesses of BAR4 (PCIS) that were not answered", PCIS),
    known(
        "pcim-range-error-count",
        "DMA to addresses outside of the instance",
        "a descriptor had a wrong address: only the driver of shef may write the rings",
    ),
    known("pcim-axi-protocol-error-count", "rules of PCIM that were broken", PCIM),
    known(
        "dma-range-error",
        "DMA of the shell outside of its range",
        "F2's shell has no DMA engine: the slot holds another image",
    ),
    known("pcim-axi-protocol-4K-cross-error", "a burst crossed a 4 KiB page", PCIM),
    known(
        "pcim-axi-protocol-bus-master-enable-error",
        "DMA while the function may not master the bus",
        "`shef cloud bind` sets Bus Master Enable: another program has cleared it",
    ),
    known(
        "pcim-axi-protocol-request-size-error",
        "a request larger than MPS or MRRS",
        "host and shell see different sizes (aws-fpga issue 656): `shef cloud doctor` compares them",
    ),
    known("pcim-axi-protocol-write-incomplete-error", "a burst with a wrong number of beats", PCIM),
    known(
        "pcim-axi-protocol-first-byte-enable-error",
        "wrong byte enables at the first beat",
        PCIM,
    ),
    known("pcim-axi-protocol-last-byte-enable-error", "wrong byte enables at the last beat", PCIM),
    known("pcim-axi-protocol-bready-error", "a write response that was not taken in 8 us", PCIM),
    known("pcim-axi-protocol-rready-error", "read data that was not taken in 8 us", PCIM),
    known("pcim-axi-protocol-wchannel-error", "write data that came later than 8 us", PCIM),
    known("pcim-write-count", "32-bit words that the card wrote to the host", ""),
    known("pcim-read-count", "32-bit words that the card read from the host", ""),
];

/// A counter as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Counter {
    /// Name, as AWS's tools print it.
    pub name: String,
    /// Its value.
    pub value: u64,
    /// Its meaning, if this program knows it.
    pub meaning: &'static str,
}

/// Counters of a slot.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Metrics {
    /// All counters.
    pub counters: Vec<Counter>,
    /// Power of the core supply in watts: last, average, highest.
    pub watts: [Option<u64>; 3],
    /// What needs attention, with the next step.
    pub attention: Vec<String>,
}

impl Metrics {
    /// A counter's value; 0 if it is missing.
    fn get(&self, name: &str) -> u64 {
        self.counters.iter().find(|it| it.name == name).map_or(0, |it| it.value)
    }
}

/// Reads the counters that AWS's tools print for a slot.
#[must_use]
pub fn read(slot: &Slot, text: &str) -> Metrics {
    let mut metrics = Metrics::default();
    let (mut below, mut addresses) = (String::new(), Vec::new());
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some((name, value)) = trimmed.split_once('=') {
            let name =
                if line.starts_with(' ') { format!("{below} {name}") } else { name.to_owned() };
            if let Some(hex) = value.strip_prefix("0x") {
                if let Ok(address) = u64::from_str_radix(hex, 16) {
                    addresses.push((name, address));
                }
            } else if let Ok(value) = value.parse() {
                let known = KNOWN.iter().find(|known| known.name == name);
                let meaning = match known {
                    Some(known) => known.meaning,
                    None if name.ends_with("write-count") => {
                        "beats of 64 bytes written to this memory"
                    }
                    None if name.ends_with("read-count") => {
                        "beats of 64 bytes read from this memory"
                    }
                    None => "",
                };
                metrics.counters.push(Counter { name, value, meaning });
            }
        } else if let Some((name, value)) = trimmed.split_once(':') {
            let at = ["Last measured", "Average", "Max measured"].iter().position(|it| *it == name);
            if let (Some(at), Some(watts)) = (at, value.split_whitespace().next()) {
                metrics.watts[at] = watts.parse().ok();
            }
        } else if !trimmed.is_empty() && !line.starts_with(' ') {
            trimmed.clone_into(&mut below);
        }
    }
    let mut attention = Vec::new();
    for known in KNOWN.iter().filter(|known| !known.hint.is_empty()) {
        let value = metrics.get(known.name);
        if value == 0 {
            continue;
        }
        let stem = known.name.trim_end_matches("-count");
        let address = addresses.iter().find(|(name, _)| *name == format!("{stem}-addr"));
        let place = address.map(|(_, address)| {
            let kind = match address & 3 {
                1 => ", a read",
                2 => ", a write",
                _ => "",
            };
            format!(" (first at {:#x}{kind})", address & !3)
        });
        attention.push(format!(
            "{} is {value}{}: {}",
            known.name,
            place.unwrap_or_default(),
            known.hint
        ));
    }
    match slot.error {
        17 => attention.push(
            "power violation: the shell has stopped the clocks, and the adapter has wiped the keys. Clear the slot, and load an image with a lower --core-mhz".to_owned(),
        ),
        13 => attention.push(
            "card memory was not calibrated: the stat bus of sh_ddr must be wired (`shef cloud lint`); another slot rules out the DIMM".to_owned(),
        ),
        _ => {}
    }
    let sum = |end: &str| -> u64 {
        let memory = metrics.counters.iter().filter(|it| it.name.starts_with("DDR"));
        memory.filter(|it| it.name.ends_with(end)).map(|it| it.value).sum()
    };
    // The host reads results by DMA: the card writes them.
    if sum(" read-count") > 1 << 14 && metrics.get("pcim-write-count") == 0 {
        attention.push(
            "card memory was read, and the card wrote nothing to the host: results came through BAR4, which reads about 3 MB/s. Use the rings (hugepages, a card that is bound)".to_owned(),
        );
    }
    metrics.attention = attention;
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Status;

    fn slot(error: u32) -> Slot {
        Slot {
            slot: 0,
            image: None,
            status: Status::Loaded,
            error,
            shell: "0x10212415".to_owned(),
            functions: Vec::new(),
        }
    }

    const TEXT: &str = "AFI          0       agfi-1  loaded            0        ok               0       0x10212415\n\
        sdacl-slave-timeout=0\n\
        ocl-slave-timeout-addr=0x1001d\n\
        ocl-slave-timeout-count=3\n\
        pcim-write-count=0\n\
        pcim-read-count=128\n\
        DDR0\n   write-count=7\n   read-count=20000\n\
        Clock Group A Frequency (Mhz)\n250  0  0  \n\
        Power consumption (Vccint):\n   Last measured: 21 watts\n   Average: 20 watts\n   Max measured: 22 watts\n";

    #[test]
    fn counters_have_a_meaning_and_a_hint_with_the_place() {
        let metrics = read(&slot(0), TEXT);
        assert_eq!(metrics.watts, [Some(21), Some(20), Some(22)]);
        assert_eq!(metrics.get("DDR0 read-count"), 20_000);
        assert!(
            metrics
                .counters
                .iter()
                .all(|it| it.name == "sdacl-slave-timeout" || !it.meaning.is_empty())
        );
        let [ocl, reads] = &metrics.attention[..] else { panic!("{:?}", metrics.attention) };
        assert!(
            ocl.contains("count is 3 (first at 0x1001c, a read): the core did not answer"),
            "{ocl}"
        );
        assert!(reads.contains("about 3 MB/s"), "{reads}");
        let quiet =
            TEXT.replace("count=3", "count=0").replace("pcim-write-count=0", "pcim-write-count=9");
        assert_eq!(read(&slot(0), &quiet).attention, [""; 0]);
        assert!(read(&slot(17), &quiet).attention[0].contains("power violation"));
        assert!(read(&slot(13), &quiet).attention[0].contains("not calibrated"));
    }
}
