//! Encoding of messages: a header of 16 bytes, then a body whose format depends on the command. All
//! integers are little-endian.
//!
//! Source: the vfio-user protocol, version 0.1 (QEMU's `docs/interop/vfio-user.rst`). Bodies have
//! exactly the length of their format.

use crate::errno;

/// Bytes of the header.
pub const HEADER: usize = 16;
/// Most bytes of data in one message, in both directions.
pub const MAX_DATA: usize = 1 << 20;
/// Most bytes of an entire incoming message.
pub const MAX_MESSAGE: usize = HEADER + 64 + MAX_DATA;
/// Most file descriptors in one message.
pub const MAX_FDS: usize = 8;
/// Most DMA maps of one client; QEMU rejects a server that allows more.
pub const MAX_MAPS: usize = 0xffff;
/// Supported version.
pub const VERSION: (u16, u16) = (0, 1);

/// Commands.
pub mod command {
    #![expect(missing_docs, reason = "the protocol's own names")]
    pub const VERSION: u16 = 1;
    pub const DMA_MAP: u16 = 2;
    pub const DMA_UNMAP: u16 = 3;
    pub const GET_INFO: u16 = 4;
    pub const GET_REGION_INFO: u16 = 5;
    pub const GET_IRQ_INFO: u16 = 7;
    pub const SET_IRQS: u16 = 8;
    pub const REGION_READ: u16 = 9;
    pub const REGION_WRITE: u16 = 10;
    pub const DMA_READ: u16 = 11;
    pub const DMA_WRITE: u16 = 12;
    pub const RESET: u16 = 13;

    /// Name of a command, for people.
    pub fn name(command: u16) -> &'static str {
        match command {
            VERSION => "VERSION",
            DMA_MAP => "DMA_MAP",
            DMA_UNMAP => "DMA_UNMAP",
            GET_INFO => "DEVICE_GET_INFO",
            GET_REGION_INFO => "DEVICE_GET_REGION_INFO",
            GET_IRQ_INFO => "DEVICE_GET_IRQ_INFO",
            SET_IRQS => "DEVICE_SET_IRQS",
            REGION_READ => "REGION_READ",
            REGION_WRITE => "REGION_WRITE",
            DMA_READ => "DMA_READ",
            DMA_WRITE => "DMA_WRITE",
            RESET => "DEVICE_RESET",
            _ => "unknown command",
        }
    }
}

/// Flags of a region.
pub mod region_flag {
    /// It can be read.
    pub const READ: u32 = 1;
    /// It can be written.
    pub const WRITE: u32 = 2;
    /// Parts of it can be mapped.
    pub const MMAP: u32 = 4;
    /// Capabilities follow its description.
    pub const CAPS: u32 = 8;
}

/// Flags of SET_IRQS: one of `DATA_*`, one of `ACTION_*`.
pub mod irq_flag {
    #![expect(missing_docs, reason = "the protocol's own names")]
    pub const DATA_NONE: u32 = 1;
    pub const DATA_BOOL: u32 = 2;
    pub const DATA_EVENTFD: u32 = 4;
    pub const ACTION_MASK: u32 = 8;
    pub const ACTION_UNMASK: u32 = 16;
    pub const ACTION_TRIGGER: u32 = 32;
}

/// The device can be reset.
pub const INFO_RESET: u32 = 1;
/// The device is a PCI function.
pub const INFO_PCI: u32 = 2;
/// Interrupts are delivered to an event descriptor.
pub const IRQ_EVENTFD: u32 = 1;
/// Interrupts can be masked.
pub const IRQ_MASKABLE: u32 = 2;
/// The number of vectors in use cannot change unless all are disabled.
pub const IRQ_NORESIZE: u32 = 8;
/// The device may read the mapped memory.
pub const MAP_READ: u32 = 1;
/// The device may write the mapped memory.
pub const MAP_WRITE: u32 = 2;
/// Unmap everything.
pub const UNMAP_ALL: u32 = 2;

const TYPE_MASK: u32 = 0xf;
const TYPE_COMMAND: u32 = 0;
const TYPE_REPLY: u32 = 1;
const NO_REPLY: u32 = 1 << 4;
const ERROR: u32 = 1 << 5;

/// Header of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Chosen by the sender of the command, repeated in the reply.
    pub id: u16,
    /// The command.
    pub command: u16,
    /// Length of the entire message in bytes.
    pub size: u32,
    /// Type and flags.
    pub flags: u32,
    /// System error number, in a reply that is marked as an error.
    pub error: u32,
}

impl Header {
    /// Decodes a header. All 16-byte strings decode; the caller checks the values.
    pub fn decode(bytes: &[u8; HEADER]) -> Self {
        let mut r = Reader(bytes);
        Self { id: r.u16(), command: r.u16(), size: r.u32(), flags: r.u32(), error: r.u32() }
    }

    /// Encodes the header.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[0..2].copy_from_slice(&self.id.to_le_bytes());
        out[2..4].copy_from_slice(&self.command.to_le_bytes());
        out[4..8].copy_from_slice(&self.size.to_le_bytes());
        out[8..12].copy_from_slice(&self.flags.to_le_bytes());
        out[12..16].copy_from_slice(&self.error.to_le_bytes());
        out
    }

    /// Header of a command with a body of `body` bytes.
    pub fn command(id: u16, command: u16, body: usize) -> Self {
        Self { id, command, size: (HEADER + body) as u32, flags: TYPE_COMMAND, error: 0 }
    }

    /// The same command's header, without a request for a reply.
    #[must_use]
    pub fn posted(self) -> Self {
        Self { flags: self.flags | NO_REPLY, ..self }
    }

    /// Header of the reply to `self` with a body of `body` bytes.
    #[must_use]
    pub fn reply(&self, body: usize) -> Self {
        Self { size: (HEADER + body) as u32, flags: TYPE_REPLY, error: 0, ..*self }
    }

    /// Header of the reply that refuses `self`.
    #[must_use]
    pub fn refusal(&self, error: u32) -> Self {
        Self { size: HEADER as u32, flags: TYPE_REPLY | ERROR, error, ..*self }
    }

    /// Whether this is a command.
    pub fn is_command(&self) -> bool {
        self.flags & TYPE_MASK == TYPE_COMMAND
    }

    /// Whether this is a reply.
    pub fn is_reply(&self) -> bool {
        self.flags & TYPE_MASK == TYPE_REPLY
    }

    /// Whether the sender wants a reply.
    pub fn wants_reply(&self) -> bool {
        self.flags & NO_REPLY == 0
    }

    /// The error of a reply, if it has one; an error without a number counts as `EIO`.
    pub fn failed(&self) -> Option<u32> {
        (self.flags & ERROR != 0).then_some(if self.error == 0 { errno::EIO } else { self.error })
    }
}

/// Takes integers off the front of a body whose length was checked; past the end it returns zeros.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, tail) = self.0.split_at(n.min(self.0.len()));
        self.0 = tail;
        head
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        let head = self.take(N);
        out[..head.len()].copy_from_slice(head);
        out
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }
}

/// A body under construction.
#[derive(Default)]
pub(crate) struct Writer(pub Vec<u8>);

impl Writer {
    pub fn u16(mut self, v: u16) -> Self {
        self.0.extend_from_slice(&v.to_le_bytes());
        self
    }

    pub fn u32(mut self, v: u32) -> Self {
        self.0.extend_from_slice(&v.to_le_bytes());
        self
    }

    pub fn u64(mut self, v: u64) -> Self {
        self.0.extend_from_slice(&v.to_le_bytes());
        self
    }

    pub fn bytes(mut self, v: &[u8]) -> Self {
        self.0.extend_from_slice(v);
        self
    }
}

/// The peer's capabilities, sent with its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Most file descriptors in a message to the peer.
    pub max_fds: usize,
    /// Most bytes of data in a message to the peer.
    pub max_data: usize,
}

impl Default for Capabilities {
    /// The protocol's defaults.
    fn default() -> Self {
        Self { max_fds: 1, max_data: MAX_DATA }
    }
}

impl Capabilities {
    /// Our own, as null-terminated JSON.
    pub(crate) fn ours() -> Vec<u8> {
        let text = serde_json::json!({"capabilities": {
            "max_msg_fds": MAX_FDS, "max_data_xfer_size": MAX_DATA, "max_dma_maps": MAX_MAPS, "pgsizes": 4096,
        }});
        let mut bytes = text.to_string().into_bytes();
        bytes.push(0);
        bytes
    }

    /// Parses the text after a version; a missing text means the defaults. Unknown members are
    /// ignored.
    fn decode(text: &[u8]) -> Result<Self, u32> {
        let text = text.strip_suffix(&[0]).unwrap_or(text);
        let mut out = Self::default();
        if text.is_empty() {
            return Ok(out);
        }
        let json: serde_json::Value = serde_json::from_slice(text).map_err(|_| errno::EINVAL)?;
        let number = |name: &str| match json.get("capabilities").and_then(|c| c.get(name)) {
            None => Ok(None),
            Some(n) => {
                n.as_u64().and_then(|n| usize::try_from(n).ok()).map(Some).ok_or(errno::EINVAL)
            }
        };
        if !json.is_object() {
            return Err(errno::EINVAL);
        }
        if let Some(n) = number("max_msg_fds")? {
            out.max_fds = n.min(MAX_FDS);
        }
        if let Some(n) = number("max_data_xfer_size")? {
            // Messages with less than a page of data would be too slow.
            out.max_data = if n < 4096 { return Err(errno::EINVAL) } else { n.min(MAX_DATA) };
        }
        Ok(out)
    }
}

/// A command, decoded from its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request<'a> {
    /// First message of a connection.
    Version {
        /// Must be ours.
        major: u16,
        /// The lower one of both sides' is used.
        minor: u16,
        /// The sender's capabilities.
        capabilities: Capabilities,
    },
    /// Maps client memory for the device.
    DmaMap {
        /// [`MAP_READ`], [`MAP_WRITE`].
        flags: u32,
        /// Offset of the first byte in the file.
        offset: u64,
        /// First device address.
        address: u64,
        /// Size in bytes.
        size: u64,
    },
    /// Unmaps client memory.
    DmaUnmap {
        /// [`UNMAP_ALL`] or 0.
        flags: u32,
        /// First device address.
        address: u64,
        /// Size in bytes.
        size: u64,
    },
    /// Requests the description of the device.
    GetInfo,
    /// Requests the description of a region.
    GetRegionInfo {
        /// Most bytes of the answer.
        argsz: u32,
        /// Region.
        index: u32,
    },
    /// Requests the description of a kind of interrupt.
    GetIrqInfo {
        /// Kind.
        index: u32,
    },
    /// Connects, masks or fires interrupts.
    SetIrqs {
        /// See [`irq_flag`].
        flags: u32,
        /// Kind.
        index: u32,
        /// First vector.
        start: u32,
        /// Number of vectors.
        count: u32,
        /// One byte per vector with `DATA_BOOL`, otherwise empty.
        data: &'a [u8],
    },
    /// Reads a region.
    RegionRead {
        /// First byte.
        offset: u64,
        /// Region.
        region: u32,
        /// Number of bytes.
        count: u32,
    },
    /// Writes a region.
    RegionWrite {
        /// First byte.
        offset: u64,
        /// Region.
        region: u32,
        /// Bytes to write.
        data: &'a [u8],
    },
    /// The device reads the client's memory.
    DmaRead {
        /// First device address.
        address: u64,
        /// Number of bytes.
        count: u64,
    },
    /// The device writes the client's memory.
    DmaWrite {
        /// First device address.
        address: u64,
        /// Bytes to write.
        data: &'a [u8],
    },
    /// Resets the device.
    Reset,
}

impl<'a> Request<'a> {
    /// Decodes the body of a command.
    ///
    /// # Errors
    /// The error number for the reply: `EINVAL` for a malformed body, `EOPNOTSUPP` for an unknown
    /// command.
    pub fn decode(command: u16, body: &'a [u8]) -> Result<Self, u32> {
        let mut r = Reader(body);
        let exact = |n: usize| if body.len() == n { Ok(()) } else { Err(errno::EINVAL) };
        let at_least = |n: usize| if body.len() >= n { Ok(()) } else { Err(errno::EINVAL) };
        Ok(match command {
            command::VERSION => {
                at_least(4)?;
                let (major, minor) = (r.u16(), r.u16());
                Self::Version { major, minor, capabilities: Capabilities::decode(r.0)? }
            }
            command::DMA_MAP => {
                exact(32)?;
                let (_argsz, flags) = (r.u32(), r.u32());
                Self::DmaMap { flags, offset: r.u64(), address: r.u64(), size: r.u64() }
            }
            command::DMA_UNMAP => {
                exact(24)?;
                let (_argsz, flags) = (r.u32(), r.u32());
                Self::DmaUnmap { flags, address: r.u64(), size: r.u64() }
            }
            command::GET_INFO => exact(16).map(|()| Self::GetInfo)?,
            command::GET_REGION_INFO => {
                exact(32)?;
                let (argsz, _flags) = (r.u32(), r.u32());
                Self::GetRegionInfo { argsz, index: r.u32() }
            }
            command::GET_IRQ_INFO => {
                exact(16)?;
                let (_argsz, _flags) = (r.u32(), r.u32());
                Self::GetIrqInfo { index: r.u32() }
            }
            command::SET_IRQS => {
                at_least(20)?;
                let (_argsz, flags, index, start, count) =
                    (r.u32(), r.u32(), r.u32(), r.u32(), r.u32());
                let data = if flags & irq_flag::DATA_BOOL != 0 { count as usize } else { 0 };
                if r.0.len() != data {
                    return Err(errno::EINVAL);
                }
                Self::SetIrqs { flags, index, start, count, data: r.0 }
            }
            command::REGION_READ => {
                exact(16)?;
                Self::RegionRead { offset: r.u64(), region: r.u32(), count: r.u32() }
            }
            command::REGION_WRITE => {
                at_least(16)?;
                let (offset, region, count) = (r.u64(), r.u32(), r.u32());
                exact(16 + count as usize)?;
                Self::RegionWrite { offset, region, data: r.0 }
            }
            command::DMA_READ => {
                exact(16)?;
                Self::DmaRead { address: r.u64(), count: r.u64() }
            }
            command::DMA_WRITE => {
                at_least(16)?;
                let (address, count) = (r.u64(), r.u64());
                if r.0.len() as u64 != count {
                    return Err(errno::EINVAL);
                }
                Self::DmaWrite { address, data: r.0 }
            }
            command::RESET => exact(0).map(|()| Self::Reset)?,
            _ => return Err(errno::EOPNOTSUPP),
        })
    }

    /// Encodes command and body.
    pub fn encode(&self) -> (u16, Vec<u8>) {
        let w = Writer::default();
        let (command, w) = match *self {
            Self::Version { major, minor, .. } => {
                (command::VERSION, w.u16(major).u16(minor).bytes(&Capabilities::ours()))
            }
            Self::DmaMap { flags, offset, address, size } => {
                (command::DMA_MAP, w.u32(32).u32(flags).u64(offset).u64(address).u64(size))
            }
            Self::DmaUnmap { flags, address, size } => {
                (command::DMA_UNMAP, w.u32(24).u32(flags).u64(address).u64(size))
            }
            Self::GetInfo => (command::GET_INFO, w.u32(16).u32(0).u64(0)),
            Self::GetRegionInfo { argsz, index } => {
                (command::GET_REGION_INFO, w.u32(argsz).u32(0).u32(index).u32(0).u64(0).u64(0))
            }
            Self::GetIrqInfo { index } => {
                (command::GET_IRQ_INFO, w.u32(16).u32(0).u32(index).u32(0))
            }
            Self::SetIrqs { flags, index, start, count, data } => (
                command::SET_IRQS,
                w.u32(20 + data.len() as u32)
                    .u32(flags)
                    .u32(index)
                    .u32(start)
                    .u32(count)
                    .bytes(data),
            ),
            Self::RegionRead { offset, region, count } => {
                (command::REGION_READ, w.u64(offset).u32(region).u32(count))
            }
            Self::RegionWrite { offset, region, data } => (
                command::REGION_WRITE,
                w.u64(offset).u32(region).u32(data.len() as u32).bytes(data),
            ),
            Self::DmaRead { address, count } => (command::DMA_READ, w.u64(address).u64(count)),
            Self::DmaWrite { address, data } => {
                (command::DMA_WRITE, w.u64(address).u64(data.len() as u64).bytes(data))
            }
            Self::Reset => (command::RESET, w),
        };
        (command, w.0)
    }
}

/// Description of a region for a client.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RegionInfo {
    /// See [`region_flag`].
    pub flags: u32,
    /// Size in bytes; 0 if the region does not exist.
    pub size: u64,
    /// Offset of the region in the file that is sent with the answer.
    pub offset: u64,
    /// Mappable parts: first byte in the region, size in bytes.
    pub areas: Vec<(u64, u64)>,
}

/// Length of a description without capabilities.
const REGION_INFO: usize = 32;
/// Id of the capability that lists mappable areas.
const CAP_SPARSE: u16 = 1;
/// Most areas that are accepted.
const MAX_AREAS: usize = 64;

impl RegionInfo {
    /// Encodes the answer's body, without the areas if `argsz` is too small for them.
    pub fn encode(&self, index: u32, argsz: u32) -> Vec<u8> {
        let caps = if self.areas.is_empty() { 0 } else { 16 + 16 * self.areas.len() };
        let need = REGION_INFO + caps;
        let fits = argsz as usize >= need;
        let flags =
            if caps > 0 { self.flags | region_flag::MMAP | region_flag::CAPS } else { self.flags };
        // Set even if the areas do not fit: QEMU rejects the flag without an offset.
        let cap_offset = if caps > 0 { REGION_INFO as u32 } else { 0 };
        let mut w = Writer::default()
            .u32(need as u32)
            .u32(flags)
            .u32(index)
            .u32(cap_offset)
            .u64(self.size)
            .u64(self.offset);
        if caps > 0 && fits {
            w = w.u16(CAP_SPARSE).u16(1).u32(0).u32(self.areas.len() as u32).u32(0);
            for (offset, size) in &self.areas {
                w = w.u64(*offset).u64(*size);
            }
        }
        w.0
    }

    /// Decodes an answer: the description, and the length of the complete answer.
    ///
    /// # Errors
    /// What is malformed.
    pub fn decode(body: &[u8]) -> Result<(Self, u32), &'static str> {
        if body.len() < REGION_INFO {
            return Err("the description of a region has fewer than 32 bytes");
        }
        let mut r = Reader(body);
        let (argsz, flags, _index, cap_offset) = (r.u32(), r.u32(), r.u32(), r.u32());
        let mut out = Self { flags, size: r.u64(), offset: r.u64(), areas: Vec::new() };
        if flags & region_flag::CAPS == 0 || argsz as usize > body.len() {
            return Ok((out, argsz));
        }
        let mut at = cap_offset as usize;
        let mut hops = 0;
        while at != 0 {
            hops += 1;
            let cap = body
                .get(at..)
                .filter(|c| c.len() >= 8 && hops <= 16)
                .ok_or("a capability of a region is outside its description")?;
            let mut r = Reader(cap);
            let (id, _version, next) = (r.u16(), r.u16(), r.u32());
            if id == CAP_SPARSE {
                let count = r.u32() as usize;
                r.u32();
                if count > MAX_AREAS || r.0.len() < 16 * count {
                    return Err("more mappable areas than the description holds");
                }
                for _ in 0..count {
                    let (offset, size) = (r.u64(), r.u64());
                    if offset.checked_add(size).is_none_or(|end| end > out.size) {
                        return Err("a mappable area outside its region");
                    }
                    out.areas.push((offset, size));
                }
            }
            at = next as usize;
        }
        Ok((out, argsz))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn requests() -> impl Strategy<Value = (u16, Vec<u8>)> {
        let data = proptest::collection::vec(any::<u8>(), 0..40);
        (0u16..18, any::<[u64; 3]>(), data, any::<[u32; 4]>()).prop_map(
            |(kind, [a, b, c], data, [x, y, z, n])| {
                let n = n % 40;
                let data = &data[..];
                let request = match kind {
                    1 => Request::Version {
                        major: 0,
                        minor: x as u16,
                        capabilities: Capabilities::default(),
                    },
                    2 => Request::DmaMap { flags: x, offset: a, address: b, size: c },
                    3 => Request::DmaUnmap { flags: x, address: a, size: b },
                    4 => Request::GetInfo,
                    5 => Request::GetRegionInfo { argsz: x, index: y },
                    7 => Request::GetIrqInfo { index: x },
                    8 => Request::SetIrqs {
                        flags: irq_flag::DATA_BOOL,
                        index: x,
                        start: y,
                        count: data.len() as u32,
                        data,
                    },
                    9 => Request::RegionRead { offset: a, region: x, count: z },
                    10 => Request::RegionWrite { offset: a, region: x, data },
                    11 => Request::DmaRead { address: a, count: b },
                    12 => Request::DmaWrite { address: a, data },
                    _ => Request::Reset,
                };
                let _ = n;
                request.encode()
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back((command, body) in requests()) {
            let read = Request::decode(command, &body).unwrap();
            prop_assert_eq!(read.encode(), (command, body.clone()));
        }

        #[test]
        fn a_body_with_a_byte_more_or_less_is_refused((command, body) in requests(), cut in 1usize..8) {
            let mut more = body.clone();
            more.push(b'x');
            if command != command::VERSION {
                prop_assert_eq!(Request::decode(command, &more), Err(errno::EINVAL));
                if body.len() >= cut {
                    prop_assert_eq!(Request::decode(command, &body[..body.len() - cut]), Err(errno::EINVAL));
                }
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(command in any::<u16>(), body in proptest::collection::vec(any::<u8>(), 0..96)) {
            match Request::decode(command, &body) {
                Ok(_) => prop_assert!((1..=13).contains(&command)),
                Err(errno) => prop_assert!([errno::EINVAL, errno::EOPNOTSUPP].contains(&errno)),
            }
            let _ = RegionInfo::decode(&body);
        }

        #[test]
        fn headers_read_back(bytes in any::<[u8; HEADER]>()) {
            prop_assert_eq!(Header::decode(&bytes).encode(), bytes);
        }

        #[test]
        fn regions_read_back(size in 0u64..1 << 40, areas in proptest::collection::vec((0u64..1 << 20, 0u64..1 << 20), 0..4), argsz in 0u32..200) {
            let size = size + (1 << 21);
            let info = RegionInfo { flags: 3, size, offset: 7, areas };
            let (read, need) = RegionInfo::decode(&info.encode(2, argsz)).unwrap();
            if argsz >= need || info.areas.is_empty() {
                prop_assert_eq!(&read.areas, &info.areas);
            } else {
                prop_assert!(read.areas.is_empty());
                prop_assert_eq!(RegionInfo::decode(&info.encode(2, need)).unwrap().0.areas, info.areas);
            }
            prop_assert_eq!((read.size, read.offset), (size, 7));
        }
    }

    #[test]
    fn capabilities_are_optional_and_bounded() {
        let read = |text: &[u8]| Capabilities::decode(text);
        assert_eq!(read(b""), Ok(Capabilities::default()));
        assert_eq!(read(b"\0"), Ok(Capabilities::default()));
        assert_eq!(read(b"{}\0"), Ok(Capabilities::default()));
        assert_eq!(
            read(b"{\"capabilities\":{\"max_msg_fds\":1,\"twin_socket\":{\"supported\":true}}}\0")
                .unwrap()
                .max_fds,
            1
        );
        assert_eq!(
            read(b"{\"capabilities\":{\"max_msg_fds\":4000000000}}").unwrap().max_fds,
            MAX_FDS
        );
        for bad in [
            &b"{"[..],
            b"[]",
            b"7",
            b"\xff",
            b"{\"capabilities\":{\"max_msg_fds\":-1}}",
            b"{\"capabilities\":{\"max_data_xfer_size\":1}}",
            b"\0\0",
        ] {
            assert_eq!(read(bad), Err(errno::EINVAL), "{bad:?}");
        }
        assert_eq!(
            read(&Capabilities::ours()).unwrap(),
            Capabilities { max_fds: MAX_FDS, max_data: MAX_DATA }
        );
    }

    #[test]
    fn areas_that_are_not_there_are_refused() {
        let info = RegionInfo { flags: 3, size: 1 << 30, offset: 0, areas: vec![(0, 4096)] };
        let good = info.encode(0, 100);
        let broken = |at: usize, value: u32| {
            let mut bytes = good.clone();
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
            RegionInfo::decode(&bytes)
        };
        assert!(broken(12, 1000).is_err(), "capability outside");
        assert!(broken(36, 32).is_err(), "capability that follows itself");
        assert!(broken(40, 5).is_err(), "more areas than there are");
        assert!(broken(60, 0x4000_0000).is_err(), "area outside the region");
    }
}
