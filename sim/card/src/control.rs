//! The bench's control connection to a card served by another process: observation and fault
//! injection, one JSON document per line.
//!
//! It is not part of the card: a host, honest or hostile, has only the PCI function. Requests are
//! [`ControlRequest`], answers [`ControlResponse`].

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::CardError;
use crate::check::{Checked, DoneRegister};
use crate::link::LinkFault;
use crate::progress::Progress;

/// Maximum size of a request.
pub(crate) const MAX_REQUEST: u64 = 64 << 10;
/// Maximum size of a response, which may hold an image.
const MAX_RESPONSE: u64 = 64 << 20;
/// Time limit for an answer.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A request.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub enum ControlRequest {
    /// The identity data of the card's manufacturer.
    Identity,
    /// Also counts 64-bit words that the accelerator receives from these addresses.
    Watch {
        /// First address.
        start: u64,
        /// One past the last.
        end: u64,
    },
    /// Clears the watched addresses and resets the count.
    Unwatch,
    /// Words received with OKAY from the watched addresses.
    Words,
    /// Memory answers reads of these addresses with a bus error until the card is reset.
    FailReads {
        /// First address.
        start: u64,
        /// One past the last.
        end: u64,
    },
    /// Turns the protocol checker on.
    Check {
        /// The status register of a job, if bursts must be complete when it is done.
        done: Option<DoneRegister>,
    },
    /// Turns the checker off.
    Uncheck,
    /// Takes the checker's reports.
    Checked,
    /// The bursts at the accelerator's ports, and who waits for whom.
    Progress,
    /// The clock.
    Cycles,
    /// Enables or disables debug, which wipes the card and restarts it with another identity.
    Debug {
        /// On.
        on: bool,
    },
    /// Injects a link fault.
    Fault {
        /// Which.
        fault: LinkFault,
    },
    /// State of the function and of the link.
    State,
}

/// Data about a simulated card from its manufacturer, as needed by verifiers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Root certificate of the manufacturer (DER).
    pub root: Vec<u8>,
    /// Root certificate of the manufacturer of devices with debug on (DER).
    pub debug_root: Vec<u8>,
    /// Digest of the card's design.
    pub design_digest: [u8; 32],
    /// Name of its accelerator.
    pub accelerator: String,
    /// Plaintext of an image for it ([`crate::Design::program`]), for parties without its
    /// sources.
    pub program: Vec<u8>,
    /// The card's engine, as a device URI.
    pub engine: String,
}

/// State of the function and of the link.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The link is down.
    pub link_down: bool,
    /// Bus mastering is on and the function is awake.
    pub bus_master: bool,
    /// Resets so far, of every kind.
    pub resets: u64,
    /// Clients so far.
    pub clients: u64,
    /// Ranges of host memory that are mapped for the card.
    pub maps: usize,
    /// Messages of clients that read or wrote a BAR.
    pub accesses: u64,
    /// Interrupts of the DMA engine.
    pub dma_interrupts: u64,
    /// Vectors of all interrupts so far, one a bit.
    pub vectors: u64,
    /// Bytes that the DMA engine read from host memory, rings included.
    pub dma_read: u64,
    /// Bytes that it wrote there.
    pub dma_written: u64,
    /// Blocked accesses of the card to host memory.
    pub dma_faults: u64,
    /// The first of them.
    pub first_dma_faults: Vec<String>,
}

/// A response.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum ControlResponse {
    /// Success.
    Done,
    /// To [`ControlRequest::Identity`].
    Identity(Identity),
    /// To [`ControlRequest::Words`].
    Words {
        /// Words.
        words: u64,
    },
    /// To [`ControlRequest::Checked`].
    Checked(Checked),
    /// To [`ControlRequest::Progress`].
    Progress(Progress),
    /// To [`ControlRequest::Cycles`].
    Cycles {
        /// Cycles so far, if there is a clock.
        now: Option<u64>,
        /// Cycle at which the memory acknowledged the last write.
        last_write: Option<u64>,
    },
    /// To [`ControlRequest::State`].
    State(State),
    /// Failure.
    Error {
        /// Why.
        message: String,
    },
}

/// One line of at most `most` bytes, without its terminator; `None` at the end of the stream.
pub(crate) fn line(reader: &mut impl BufRead, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let n = reader.take(most).read_until(b'\n', &mut line)?;
    if n == 0 {
        return Ok(None);
    }
    match line.pop() {
        Some(b'\n') => Ok(Some(line)),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a line without an end, or a longer one than is taken",
        )),
    }
}

enum Stream {
    Socket(UnixStream),
    /// A character device connected to it, such as a serial line in a guest.
    Device(File),
}

impl Read for Stream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Socket(s) => s.read(buf),
            Self::Device(f) => f.read(buf),
        }
    }
}

/// The bench's end of a control connection.
pub struct Control {
    path: PathBuf,
    stream: BufReader<Stream>,
}

impl Control {
    /// The default control socket for a card's socket.
    pub fn path_of(socket: &Path) -> PathBuf {
        let mut path = socket.as_os_str().to_owned();
        path.push(".control");
        path.into()
    }

    /// Connects to a control socket, or opens a character device that leads to one.
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn open(path: &Path) -> Result<Self, CardError> {
        let connect = || -> io::Result<Stream> {
            if std::fs::metadata(path)?.file_type().is_socket() {
                let socket = UnixStream::connect(path)?;
                socket.set_read_timeout(Some(TIMEOUT))?;
                socket.set_write_timeout(Some(TIMEOUT))?;
                Ok(Stream::Socket(socket))
            } else {
                Ok(Stream::Device(File::options().read(true).write(true).open(path)?))
            }
        };
        let stream = connect()
            .map_err(|e| CardError::Control { path: path.to_owned(), what: e.to_string() })?;
        Ok(Self { path: path.to_owned(), stream: BufReader::new(stream) })
    }

    fn bad(&self, what: impl ToString) -> CardError {
        CardError::Control { path: self.path.clone(), what: what.to_string() }
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// [`CardError::Control`], also if the card reports a failure.
    pub fn ask(&mut self, request: &ControlRequest) -> Result<ControlResponse, CardError> {
        let mut text = serde_json::to_vec(request).map_err(|e| self.bad(e))?;
        text.push(b'\n');
        let sent = match self.stream.get_mut() {
            Stream::Socket(s) => s.write_all(&text),
            Stream::Device(f) => f.write_all(&text),
        };
        sent.map_err(|e| self.bad(e))?;
        let answer = line(&mut self.stream, MAX_RESPONSE)
            .map_err(|e| self.bad(e))?
            .ok_or_else(|| self.bad("it closed the connection"))?;
        match serde_json::from_slice(&answer).map_err(|e| self.bad(e))? {
            ControlResponse::Error { message } => Err(self.bad(message)),
            response => Ok(response),
        }
    }

    fn done(&mut self, request: &ControlRequest) -> Result<(), CardError> {
        match self.ask(request)? {
            ControlResponse::Done => Ok(()),
            other => Err(self.bad(format!("unexpected answer {other:?}"))),
        }
    }

    /// The identity data of the card's manufacturer.
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn identity(&mut self) -> Result<Identity, CardError> {
        match self.ask(&ControlRequest::Identity)? {
            ControlResponse::Identity(identity) => Ok(identity),
            other => Err(self.bad(format!("unexpected answer {other:?}"))),
        }
    }

    /// Like [`crate::CardProbe::watch`].
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn watch(&mut self, range: Range<u64>) -> Result<(), CardError> {
        self.done(&ControlRequest::Watch { start: range.start, end: range.end })
    }

    /// Like [`crate::CardProbe::unwatch`].
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn unwatch(&mut self) -> Result<(), CardError> {
        self.done(&ControlRequest::Unwatch)
    }

    /// Like [`crate::CardProbe::words_delivered`].
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn words_delivered(&mut self) -> Result<u64, CardError> {
        match self.ask(&ControlRequest::Words)? {
            ControlResponse::Words { words } => Ok(words),
            other => Err(self.bad(format!("unexpected answer {other:?}"))),
        }
    }

    /// Like [`crate::CardProbe::fail_reads`].
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn fail_reads(&mut self, range: Range<u64>) -> Result<(), CardError> {
        self.done(&ControlRequest::FailReads { start: range.start, end: range.end })
    }

    /// Like [`crate::CardProbe::check`].
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn check(&mut self, done: Option<DoneRegister>) -> Result<(), CardError> {
        self.done(&ControlRequest::Check { done })
    }

    /// Like [`crate::CardProbe::uncheck`].
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn uncheck(&mut self) -> Result<(), CardError> {
        self.done(&ControlRequest::Uncheck)
    }

    /// Like [`crate::CardProbe::checked`].
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn checked(&mut self) -> Result<Checked, CardError> {
        match self.ask(&ControlRequest::Checked)? {
            ControlResponse::Checked(checked) => Ok(checked),
            other => Err(self.bad(format!("unexpected answer {other:?}"))),
        }
    }

    /// Like [`crate::CardProbe::progress`].
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn progress(&mut self) -> Result<Progress, CardError> {
        match self.ask(&ControlRequest::Progress)? {
            ControlResponse::Progress(progress) => Ok(progress),
            other => Err(self.bad(format!("unexpected answer {other:?}"))),
        }
    }

    /// Cycles so far, and the cycle of the last acknowledged write, if there is a clock.
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn cycles(&mut self) -> Result<(Option<u64>, Option<u64>), CardError> {
        match self.ask(&ControlRequest::Cycles)? {
            ControlResponse::Cycles { now, last_write } => Ok((now, last_write)),
            other => Err(self.bad(format!("unexpected answer {other:?}"))),
        }
    }

    /// Like [`crate::Card::set_debug`].
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn set_debug(&mut self, on: bool) -> Result<(), CardError> {
        self.done(&ControlRequest::Debug { on })
    }

    /// Injects a link fault.
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn fault(&mut self, fault: LinkFault) -> Result<(), CardError> {
        self.done(&ControlRequest::Fault { fault })
    }

    /// State of the function and of the link.
    ///
    /// # Errors
    /// [`CardError::Control`].
    pub fn state(&mut self) -> Result<State, CardError> {
        match self.ask(&ControlRequest::State)? {
            ControlResponse::State(state) => Ok(state),
            other => Err(self.bad(format!("unexpected answer {other:?}"))),
        }
    }
}
