//! Errors of the host library, by the party at fault.

use std::path::{Path, PathBuf};
use std::time::Duration;

use shef_proto::channel::FaultKind;
use shef_proto::fault::{self, Coded, Fault};
use shef_proto::text::one_line;

shef_proto::coded! {
    /// Why an operation failed.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum SdkError -> &str {
        /// The statement shows a fault: no result opens.
        #[error("the Shield stopped: {count} fault(s), the first in region {region}, chunk {chunk}, version {version}: {}", kind_text(*kind))]
        Faulted {
            /// Kind of the first fault.
            kind: FaultKind,
            /// Its region.
            region: u8,
            /// Its chunk.
            chunk: u64,
            /// Version at which it was read.
            version: u64,
            /// Number of faults.
            count: u32,
        } => { kind, .. } match kind {
            FaultKind::Tag => "SHEF-SDK-021",
            FaultKind::Bus => "SHEF-SDK-022",
            FaultKind::Timeout => "SHEF-SDK-023",
            FaultKind::Protocol => "SHEF-SDK-024",
            FaultKind::Node => "SHEF-SDK-025",
            _ => "SHEF-SDK-026",
        },
        /// The device, or the path to it.
        #[error(transparent)]
        Device(#[from] shef_device::DeviceError) => (error) match error {
            shef_device::DeviceError::Remote { code, .. } => theirs(code, AGENT),
            shef_device::DeviceError::SimulatorEnded { code, .. } => theirs(code, SIMULATOR),
            error => error.code(),
        },
        /// The Load Key.
        #[error(transparent)]
        Load(#[from] shef_proto::load::LoadError) => (e) e.code(),
        /// The register channel.
        #[error(transparent)]
        Channel(#[from] shef_proto::channel::ChannelError) => (e) e.code(),
        /// The sealed memory.
        #[error(transparent)]
        Seal(#[from] shef_seal::SealError) => (e) e.code(),
        /// Evidence was rejected.
        #[error("evidence rejected: {}", rejection(appraisal))]
        Rejected {
            /// Every check, with expected and actual value.
            appraisal: Box<shef_verify::Appraisal>,
        } => { appraisal } appraisal.first_failure().map_or("SHEF-SDK-018", |check| check.code),
        /// The Security Kernel refused.
        #[error("the Security Kernel refused: {text}")]
        Kernel {
            /// Code of the component that refused.
            code: String,
            /// Its message.
            text: String,
        } => { code, .. } theirs(code, KERNEL),
        /// A message of the kernel's mailbox.
        #[error("mailbox: {0}")]
        Mailbox(shef_proto::mailbox::MailboxError) => (e) e.code(),
        /// A certificate.
        #[error(transparent)]
        Certificate(#[from] shef_proto::cert::CertError) => (e) e.code(),
        /// An image container.
        #[error(transparent)]
        Image(#[from] shef_proto::image::ImageError) => (e) e.code(),
        /// Reference values cannot be written.
        #[error(transparent)]
        Corim(#[from] shef_verify::corim::CorimError) if "corim" => (e) e.code(),
        /// A released key.
        #[error(transparent)]
        Release(#[from] shef_proto::release::ReleaseError) => (e) e.code(),
        /// A close record.
        #[error(transparent)]
        Close(#[from] shef_proto::close::CloseError) => (e) e.code(),
        /// The Load Key cannot be made for this evidence.
        #[error(transparent)]
        LoadKey(#[from] shef_verify::LoadKeyError) => (e) e.code(),
        /// The verifier service refused.
        #[error("the verifier service refused: {text}")]
        Refused {
            /// Its code.
            code: String,
            /// Its message.
            text: String,
            /// HTTP status.
            status: u16,
        } => { code, .. } theirs(code, SERVICE),
        /// The verifier service denied evidence.
        #[error("the verifier service denied the evidence: {text}")]
        Denied {
            /// Code of the first check that failed.
            code: String,
            /// Its message.
            text: String,
        } => { code, .. } theirs(code, SERVICE),
        /// The verifier service's receipt does not vouch for the evidence.
        #[error(transparent)]
        Vouch(#[from] shef_verify::VouchError) => (e) e.code(),
        /// Anchors, reference values or policy that cannot be written.
        #[error(transparent)]
        Policy(#[from] shef_verify::PolicyError) => (e) e.code(),
        /// The Shield stays busy for longer than is possible.
        #[error("the Shield stays busy, plain status {status:#010x}")]
        ShieldBusy {
            /// Plain status.
            status: u32,
        } = "SHEF-SDK-002": "the Shield stays busy", "reset the device and open a new session",
        /// A message is longer than its buffer.
        #[error("{what} of {len} bytes, at most {max} are possible")]
        MessageTooLong {
            /// Which message.
            what: &'static str,
            /// Its bytes.
            len: usize,
            /// Bytes of the buffer.
            max: usize,
        } = "SHEF-SDK-003": "a message is longer than its buffer", "give less; the message names the limit",
        /// Plain status says that the Shield refused a sealed request, and the answer buffer does
        /// not hold the answer.
        #[error("plain status says that the Shield refused a sealed request, and what it shows is not the answer")]
        RequestRefused = "SHEF-SDK-004": "plain status says that the Shield refused a sealed request",
            "a hint, which the host can forge: the request was damaged on its way, or its answer is withheld; SHEF-SDK-040 says what to do",
        /// Plain status says that the Shield refused a Load Key, and there is no confirmation.
        #[error("the Shield refused the Load Key")]
        LoadRefused = "SHEF-SDK-005": "the Shield refused the Load Key",
            "it was made for another Shield key or configuration, replayed, or damaged on its way; attest the Shield again and make a new \
             one",
        /// The configuration has no such region.
        #[error("the configuration has no region {name:?}")]
        NoRegion {
            /// Name asked for.
            name: String,
        } = "SHEF-SDK-006": "there is no such region", "the names of the regions are in shield.toml",
        /// The region has another mode.
        #[error("region {name:?} is of mode {found}, expected {expected}")]
        WrongMode {
            /// Name of the region.
            name: String,
            /// Its mode.
            found: &'static str,
            /// Mode needed.
            expected: &'static str,
        } = "SHEF-SDK-007": "the region is of another mode", "data goes into `input` regions, results come from `output` regions",
        /// Data does not fit the region.
        #[error("{len} bytes at offset {offset} do not fit region {name:?} of {size} bytes")]
        TooLong {
            /// Name of the region.
            name: String,
            /// Offset in the region.
            offset: u64,
            /// Bytes.
            len: u64,
            /// Bytes of the region.
            size: u64,
        } = "SHEF-SDK-008": "the data does not fit the region", "make the region larger in shield.toml, or give less data",
        /// The statement shows refusals, and the caller did not allow results to open in spite of
        /// them.
        #[error(
            "the accelerator did {count} things that the Shield refused ({allowed} of them allowed before), the first {kind} at {addr:#x} (region {region:#04x})"
        )]
        Refusals {
            /// Number of refusals.
            count: u32,
            /// How many of them were already allowed when results of earlier launches were opened.
            allowed: u32,
            /// Kind of the first.
            kind: &'static str,
            /// Its region, 0xff for none.
            region: u8,
            /// Its address.
            addr: u64,
        } = "SHEF-SDK-010": "the accelerator did things that the Shield refused",
            "the results may be incomplete: open them with the policy's `refusals` only if the accelerator is known to do so; that allows \
             those that this statement shows, and later ones must be allowed again",
        /// The accelerator did not reach the expected state.
        #[error("the accelerator did not finish: register {addr:#06x} is {last:#010x} after {after:?}")]
        NotFinished {
            /// Register that was watched.
            addr: u32,
            /// Last value.
            last: u32,
            /// Duration of the wait.
            after: Duration,
        } = "SHEF-SDK-011": "the accelerator did not finish",
            "check its registers and its data, or give it more time (`patience`); a stopped Shield shows in the statement",
        /// The accelerator makes no progress.
        #[error("no progress for {cycles} cycles: register {addr:#06x} is {last:#010x}, {}", progress.waits())]
        Stalled {
            /// Register that was watched.
            addr: u32,
            /// Last value.
            last: u32,
            /// The limit in cycles.
            cycles: u64,
            /// The bursts at the accelerator's ports.
            progress: Box<crate::ports::Progress>,
        } = "SHEF-SDK-053": "the accelerator makes no progress",
            "the message shows which port waits, and for which side; an accelerator that computes for longer without a transfer needs a \
             larger `stall_cycles`",
        /// A limit in cycles, for a device that does not report progress.
        #[error(
            "{uri} does not report the progress of its accelerator: expected a simulated card of this machine, sim: or vfio-user: with the \
             control socket PATH.control beside its socket"
        )]
        NoProgressReport {
            /// The device.
            uri: String,
        } = "SHEF-SDK-054": "a limit in cycles without progress, and no report of progress",
            "without `stall_cycles` (--stall-cycles), the limit in seconds holds",
        /// A key file cannot be read or written.
        #[error("key file {}: {reason}", path.display())]
        KeyFile {
            /// Path of the file.
            path: PathBuf,
            /// The system's message.
            reason: String,
        } = "SHEF-SDK-012": "a key file cannot be read or written", "check path and permissions; key files are never overwritten",
        /// A key file is malformed.
        #[error("key file {} is malformed: {reason}", path.display())]
        KeyFormat {
            /// Path of the file.
            path: PathBuf,
            /// What is wrong.
            reason: String,
        } = "SHEF-SDK-013": "a key file is malformed", "a key file holds 64 hexadecimal digits and a line feed, a certificate (`.der`) is strict DER",
        /// The statement is of another session or older than the last launch.
        #[error("the statement is stale: it was read before request {needed}, and {found} is its number")]
        StaleStatement {
            /// Number of the request that the statement must follow.
            needed: u64,
            /// Number of the statement.
            found: u64,
        } = "SHEF-SDK-014": "the statement is stale", "read the statement after the last launch and flush",
        /// A message has an impossible length.
        #[error("{what} has {found} bytes, expected {expected}")]
        Length {
            /// Which message.
            what: &'static str,
            /// Bytes found.
            found: usize,
            /// Bytes expected.
            expected: usize,
        } = "SHEF-SDK-015": "a message has an impossible length",
            "the message was damaged on its way, or the other side is of another version",
        /// The statement promised results, but they did not arrive.
        #[error("results withheld: {source}")]
        Withheld {
            /// The opener's error.
            source: shef_seal::SealError,
        } = "SHEF-SDK-016": "results withheld",
            "the Shield says that a chunk was sealed, and what the host delivered is not that chunk: read again from an honest host; do \
             not use the results",
        /// The operating system delivered no random bytes.
        #[error("the operating system gave no random bytes: {reason}")]
        Entropy {
            /// The system's message.
            reason: String,
        } = "SHEF-SDK-017": "no random bytes", "check the operating system's random source",
        /// The appraised Shield has a configuration other than the owner's.
        #[error("the Shield's configuration has the digest {found}, expected {expected}: the image was built from another shield.toml")]
        OtherConfig {
            /// Digest of the configuration that the session is for, in hexadecimal.
            expected: String,
            /// Digest of the Shield's configuration.
            found: String,
        } = "SHEF-SDK-019": "the Shield runs another configuration",
            "the image is known, but the session is for another configuration: seal nothing, and take the shield.toml that the image was \
             built from (`shef shield show` prints its digest)",
        /// The close record is not of this session.
        #[error("the close record is of another session: its {what} differs")]
        OtherRecord {
            /// What differs.
            what: &'static str,
        } = "SHEF-SDK-020": "the close record is of another session",
            "the record was swapped on its way; it proves nothing about this session",
        /// A fault froze a region, and the caller did not declare it out of the launch's reach.
        #[error(
            "a fault froze region {name:?}, and the result may depend on it: it opens only where the launch could not have reached that region, and you say so"
        )]
        Reached {
            /// Name of the region.
            name: String,
        } = "SHEF-SDK-027": "a fault froze a region that the result may depend on",
            "memory of that region was tampered with or failed: repeat the work in a new session; only where the launch could not have \
             reached the region may you name it and open the result all the same",
        /// The caller's reader or writer failed.
        #[error("{what}: {source}")]
        Stream {
            /// Its purpose.
            what: &'static str,
            /// Its error.
            source: std::io::Error,
        } = "SHEF-SDK-028": "what is to be sealed cannot be read, or results cannot be written",
            "the message says why; the epoch of an upload is over, and what a writer took of a result is not the result",
        /// The caller ended a transfer.
        #[error("ended by the caller after {done} of {total} bytes")]
        Cancelled {
            /// Bytes that were transferred.
            done: u64,
            /// Bytes in all.
            total: u64,
        } = "SHEF-SDK-029": "a transfer was ended by the caller",
            "the epoch of an upload is over: raise it and upload again; what a writer took of a result is not the result: open it again",
        /// The address of a verifier service is invalid.
        #[error("{url:?} is no address of a verifier service, expected https://HOST:PORT")]
        ServiceUrl {
            /// The given address.
            url: String,
        } = "SHEF-SDK-030": "the address of a verifier service is none",
            "give https://HOST:PORT, with a name or address of its certificate",
        /// The verifier service does not answer.
        #[error("the verifier service {url} does not answer: {reason}")]
        ServiceUnreachable {
            /// Its address.
            url: String,
            /// What happened.
            reason: String,
        } = "SHEF-SDK-031": "the verifier service does not answer",
            "is it running, and is the address right? `curl -k URL/healthz` must answer; nothing was decided and no key was released",
        /// The proxy in front of the verifier service.
        #[error("the proxy {name}: {reason}")]
        Proxy {
            /// Its address, and the variable that names it.
            name: String,
            /// What is wrong.
            reason: String,
        } = "SHEF-SDK-052": "the proxy on the way to the verifier service",
            "ALL_PROXY, HTTPS_PROXY and HTTP_PROXY name a proxy, in upper or lower case, and NO_PROXY the hosts that are reached without \
             it. Is the proxy running, and does it allow this host and port? Nothing was decided and no key was released.",
        /// The verifier service's certificate is not valid for it.
        #[error("the certificate of {url} is not good under the CA of {}: {reason}", ca.display())]
        ServiceCertificate {
            /// Its address.
            url: String,
            /// The configured CA.
            ca: PathBuf,
            /// What is wrong.
            reason: String,
        } = "SHEF-SDK-032": "the verifier service's certificate is not good",
            "the message says why: of another CA, give the service's ca.pem; for another host name, use one that the certificate names; a \
             CA's own certificate or one without a host name, its operator must issue a server certificate",
        /// The verifier service's certificate has expired.
        #[error("the certificate of {url} {state}, or this machine's clock is wrong")]
        ServiceExpired {
            /// Its address.
            url: String,
            /// Whether the certificate has expired or is not valid yet.
            state: &'static str,
        } = "SHEF-SDK-033": "the verifier service's certificate is not valid now",
            "compare the clocks of both machines; if they agree, its operator must issue a new one and send SIGHUP",
        /// The verifier service rejects this client's certificate.
        #[error("{url} refuses the certificate {}: {reason}", path.display())]
        ClientCertificate {
            /// Its address.
            url: String,
            /// The certificate.
            path: PathBuf,
            /// Why.
            reason: &'static str,
        } = "SHEF-SDK-034": "the verifier service refuses the client's certificate",
            "it has expired, was revoked, or is of another CA: ask the operator for a new one (`shef-verifierd client`)",
        /// The peer does not speak the verifier service's API.
        #[error("an answer that is none of a verifier service: {what}")]
        ServiceAnswer {
            /// What is wrong.
            what: String,
        } = "SHEF-SDK-035": "what answers is not a verifier service",
            "look at the address: another program listens there, or the versions differ",
        /// A data key that is not a master key.
        #[error("the data key has {found} bytes, and the master key of a Load Key has 32")]
        MasterKey {
            /// Its bytes.
            found: usize,
        } = "SHEF-SDK-036": "the data key is no master key",
            "the master key of a Load Key has 32 bytes: add the key with `generate` 32, or a secret of 32 bytes",
        /// The lanes of a ring cannot take turns.
        #[error("the lanes of a ring must have equal regions of their own: {what}: {found}, expected {expected}")]
        Lanes {
            /// What does not fit.
            what: &'static str,
            /// What was found.
            found: String,
            /// What was expected.
            expected: String,
        } = "SHEF-SDK-037": "the lanes of a ring do not fit",
            "a ring wants two lanes or more, each with buffers of its own, as many and as large as in the others; a batch has data for \
             each input",
        /// The ring cannot continue.
        #[error("batch {number} may or may not have been launched, so the ring is over")]
        RingOver {
            /// Number of the batch.
            number: u64,
        } = "SHEF-SDK-038": "a ring is over",
            "a launch failed half-way: take the last results with `finish`, then make a new ring or close the session",
        /// The thread of a session ended before it completed the work.
        #[error("the thread of the session ended before this was done")]
        WorkerGone = "SHEF-SDK-039": "the thread of a session ended",
            "something that was given to it panicked, or the system gave no thread: look at the first message, and open a new session",
        /// A request was sent, possibly several times, and no authentic answer came.
        #[error("no answer to request {seq}: whether it ran is unknown ({source})")]
        Unanswered {
            /// Number of the request.
            seq: u64,
            /// The last failure.
            source: Box<SdkError>,
        } = "SHEF-SDK-040": "no answer to a request: whether it ran is unknown",
            "messages were lost or damaged, again and again: the host or the way to it does that. The session is not over: the next call \
             sends the same bytes first, which the Shield runs at most once (`settle` does nothing else)",
        /// The caller ended the wait for the accelerator, which continues to run.
        #[error("the wait was ended by the caller: register {addr:#06x} is {last:#010x} after {after:?}, and what was launched goes on")]
        WaitEnded {
            /// Register that was watched.
            addr: u32,
            /// Last value.
            last: u32,
            /// Duration of the wait.
            after: Duration,
        } = "SHEF-SDK-041": "the caller ended a wait for the accelerator",
            "what was launched goes on: wait again with `finish` or `wait_register`",
        /// The session belongs to another process, and this process is a fork of it.
        #[error("the session belongs to process {made}; process {found} is a fork of it and must not use it")]
        Forked {
            /// Number of the process that made it.
            made: u32,
            /// Number of this process, which may be the same.
            found: u32,
        } = "SHEF-SDK-042": "a session of another process",
            "after a fork only the process that made a session may use it: the copy would seal other data under the same keys and numbers. \
             Open a new session in the copy",
        /// A buffer is of another session.
        #[error("the buffer of region {name:?} is of another session")]
        OtherSession {
            /// Name of the region.
            name: String,
        } = "SHEF-SDK-043": "a buffer of another session",
            "get buffers from the session that they are used with, and new ones after a new Load Key",
        /// Randomness from a test's seed, for a device that is not simulated.
        #[error(
            "the randomness comes from a seed, and the root of trust of this device is {kind}: keys from a seed are for simulated devices only"
        )]
        Seeded {
            /// Kind of root of trust in the evidence.
            kind: &'static str,
        } = "SHEF-SDK-044": "randomness from a seed for a device that is not simulated",
            "whoever knows the seed knows the keys: use `SystemEntropy`",
        /// Results of a ring have not been taken yet.
        #[error("the results of batch {number} wait: take or discard them before the next batch, which would overwrite them")]
        ResultsWait {
            /// Number of the batch.
            number: u64,
        } = "SHEF-SDK-045": "results of a ring wait",
            "the next batch would overwrite them: take them with `results`, which may be called again where it failed, or give them up \
             with `discard`",
        /// The verifier service released a key other than the requested one.
        #[error("the verifier service released another {what}: expected {expected}, found {found}")]
        OtherRelease {
            /// What differs.
            what: &'static str,
            /// The requested value.
            expected: String,
            /// The returned value.
            found: String,
        } = "SHEF-SDK-047": "the verifier service released something else",
            "key, version, receipt or head are not those that belong to what was asked for: an answer was exchanged on its way, or the \
             service is not honest. Use nothing of it",
        /// A key file or folder is accessible to users other than its owner.
        #[error("key file {}: {reason}", path.display())]
        KeyOpen {
            /// Path of the file.
            path: PathBuf,
            /// What is wrong with it.
            reason: &'static str,
        } = "SHEF-SDK-048": "a key file is not its owner's alone",
            "a key file is a plain file that only its owner can read, in a folder that only its owner can change: `chmod 600 FILE`, `chmod \
             700 FOLDER`; links and pipes are refused",
        /// The caller ended a request to a verifier service.
        #[error("the request to {url} was ended by the caller")]
        ServiceEnded {
            /// Address of the service.
            url: String,
        } = "SHEF-SDK-049": "a request to a verifier service was ended by the caller",
            "nothing is known of what the service did; ask again",
        /// The appraised Shield runs a program other than the owner's.
        #[error("the Shield's {what} is {found}, expected {expected}")]
        OtherProgram {
            /// Image, accelerator, design or signer.
            what: &'static str,
            /// What the owner expects.
            expected: String,
            /// The value in the evidence.
            found: String,
        } = "SHEF-SDK-050": "the Shield runs another program",
            "the verifier knows this image, but the owner expects another one: no key was sent. Load the image that you mean, or expect \
             this one if it is yours",
        /// The memory of this process cannot be protected from other processes.
        #[error("the system does not keep the memory of this process from others: {reason}")]
        Traces {
            /// The system's message.
            reason: String,
        } = "SHEF-SDK-051": "the memory of this process is open to others",
            "the system refuses PR_SET_DUMPABLE: look at what confines this process (seccomp, container)",
    }
    also {
        "SHEF-SDK-018": "evidence rejected", "the appraisal lists every check with what was expected and found",
        "SHEF-SDK-021": "the Shield stopped: a tag did not match",
            "the accelerator read a chunk that was never written, such as one behind the end of a short input or of a result, or memory was \
             tampered with. No result of this session opens. The error has region and chunk: fill every chunk that the accelerator \
             reads; if it was written, look at who can write card memory. Then reset the device and open a new session",
        "SHEF-SDK-022": "the Shield stopped: the memory answered with a bus error",
            "a defect of memory or shell rather than tampering: reset the device and open a new session",
        "SHEF-SDK-023": "the Shield stopped: the memory did not answer",
            "a defect of memory or shell: reset the device and open a new session",
        "SHEF-SDK-024": "the Shield stopped: the memory broke the bus protocol",
            "a defect of the shell, or an attack on the bus: reset the device and open a new session",
        "SHEF-SDK-025": "the Shield stopped: a tree node did not match",
            "memory was tampered with: no result of this session opens; reset the device and open a new session",
        "SHEF-SDK-026": "the Shield stopped: a countermeasure fired",
            "reset the device and open a new session; if it happens again the device is damaged or attacked",
        "SHEF-SDK-046": "the other side refused with a code that is not its own",
            "the Security Kernel, the agent or the service answered with something that only others may say, or the host changed its \
             answer: conclude nothing from it; the message shows what was said",
    }
}

impl From<shef_proto::mailbox::MailboxError> for SdkError {
    fn from(error: shef_proto::mailbox::MailboxError) -> Self {
        match error {
            shef_proto::mailbox::MailboxError::Refused { code, text } => {
                Self::Kernel { code: printable(&code), text: printable(&text) }
            }
            error => Self::Mailbox(error),
        }
    }
}

/// Text from the peer, safe to show on one line.
pub(crate) fn printable(text: &str) -> String {
    one_line(&text.chars().take(400).collect::<String>())
}

/// A code from the peer, if the peer may report it: codes of this library's own findings come from
/// this library only.
fn theirs<'c>(code: &'c str, may: &[&str]) -> &'c str {
    let number =
        may.iter().find_map(|who| code.strip_prefix("SHEF-")?.strip_prefix(who)?.strip_prefix('-'));
    if number
        .is_some_and(|number| number.len() == 3 && number.bytes().all(|byte| byte.is_ascii_digit()))
    {
        code
    } else {
        NOT_THEIRS
    }
}

/// Replaces a code that the peer may not report.
const NOT_THEIRS: &str = "SHEF-SDK-046";
/// Prefixes of the codes that a peer may report: the Security Kernel, an agent (its own, and those
/// of its devices), the program of a simulated card, and a verifier service.
const KERNEL: &[&str] = &["KRN", "PRO"];
const AGENT: &[&str] = &["AGT", "DEV", "PCI", "VFU", "CARD", "RTL", "PRJ", "GEN"];
const SIMULATOR: &[&str] = &["CLI", "CARD", "RTL", "PRJ", "GEN", "KRN", "PRO", "DEV", "VFU", "SDK"];
const SERVICE: &[&str] = &["SVC", "ATT", "PRO"];

/// What happened to the request to the Shield, or to the launch, that an error ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ran {
    /// It ran, or was running when the call ended.
    Ran,
    /// It did not run.
    DidNotRun,
    /// Unknown: the Shield's answer is missing.
    Unknown,
}

fn rejection(appraisal: &shef_verify::Appraisal) -> String {
    match appraisal.first_failure() {
        Some(check) => {
            // Values of claims, and names in the owner's files.
            let [actual, expected] =
                [&check.actual, &check.expected].map(|text| one_line(&text.to_string()));
            format!("{} is {actual}, expected {expected}", check.id.name())
        }
        None => "no check failed".to_owned(),
    }
}

fn kind_text(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::None => "no fault",
        FaultKind::Tag => "a tag did not match (a chunk that was never written, or tampering)",
        FaultKind::Bus => "the memory answered with a bus error",
        FaultKind::Timeout => "the memory did not answer",
        FaultKind::Protocol => "the memory broke the bus protocol",
        FaultKind::Node => "a tree node's tag did not match (tampering)",
        _ => "a countermeasure fired",
    }
}

impl SdkError {
    pub(crate) fn key_file(path: &Path, error: &std::io::Error) -> Self {
        Self::KeyFile { path: path.to_owned(), reason: error.to_string() }
    }

    /// What happened to the last request to the Shield in the call that this error ended; for
    /// [`crate::Session::run`] and rings, to the launch.
    pub fn ran(&self) -> Ran {
        use shef_proto::channel::{ChannelError as C, status};
        match self {
            Self::Channel(
                C::Status { status: status::BAD | status::STOPPED, .. }
                | C::Halted { ran: false, .. },
            ) => Ran::DidNotRun,
            Self::Channel(C::Busy { .. } | C::Idle | C::Closed) => Ran::DidNotRun,
            // An authentic answer came.
            Self::Channel(
                C::Status { .. } | C::Halted { ran: true, .. } | C::Impossible { .. },
            ) => Ran::Ran,
            Self::NotFinished { .. } | Self::WaitEnded { .. } => Ran::Ran,
            // A code from elsewhere shows nothing about the Shield.
            Self::Device(shef_device::DeviceError::Remote { .. }) => Ran::Unknown,
            error if error.at_fault() == Fault::Input => Ran::DidNotRun,
            _ => Ran::Unknown,
        }
    }

    /// Who is at fault: by the code ([`fault::of`]), unless the error holds more than its code says.
    pub fn at_fault(&self) -> Fault {
        use shef_proto::channel::{ChannelError as C, status};
        match self {
            // Such a code carries no information, whatever its origin.
            _ if self.code() == NOT_THEIRS => Fault::Undecided,
            // A fault of the service, or too many requests: it may answer later.
            Self::Refused { status: 429 | 500.., .. } => Fault::Undecided,
            Self::Channel(C::Status { status: status::REGISTER, .. }) => Fault::Device,
            // The caller's request is impossible.
            Self::Channel(C::Status { status: status::BAD, .. }) => Fault::Input,
            // The verdict stands even if this version does not know the check's code.
            Self::Denied { .. } => Fault::Answer,
            error => fault::of(error.code()).unwrap_or(match error {
                Self::Device(_) => Fault::Device,
                _ => Fault::Undecided,
            }),
        }
    }
}

impl Coded for SdkError {
    fn code(&self) -> &str {
        self.code()
    }

    fn fault(&self) -> Fault {
        self.at_fault()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_that_does_not_match_may_be_of_a_chunk_that_was_never_written() {
        let (kind, count) = (FaultKind::Tag, 1);
        let error = SdkError::Faulted { kind, region: 2, chunk: 9, version: 0, count };
        let code = SdkError::CODES.iter().find(|code| code.id == error.code()).unwrap();
        for text in [error.to_string().as_str(), code.help] {
            assert!(text.contains("never written") && text.contains("tamper"), "{text}");
        }
    }

    #[test]
    fn a_code_from_elsewhere_does_not_show_that_nothing_ran() {
        for code in ["SHEF-GEN-010", "SHEF-CARD-003", "SHEF-AGT-006"] {
            let (code, message) = (code.to_owned(), String::new());
            let error = SdkError::from(shef_device::DeviceError::Remote { code, message });
            assert_eq!((error.at_fault(), error.ran()), (Fault::Input, Ran::Unknown));
        }
    }

    #[test]
    fn what_is_known_beside_the_code_decides_whose_fault_it_is() {
        let refused = |code: &str, status| {
            SdkError::Refused { code: code.to_owned(), text: String::new(), status }.at_fault()
        };
        assert_eq!(refused("SHEF-SVC-031", 500), Fault::Undecided);
        assert_eq!(refused("SHEF-SVC-054", 409), Fault::Input);
        assert_eq!(refused("SHEF-SVC-063", 409), Fault::Answer);
        assert_eq!(refused("SHEF-SVC-999", 409), Fault::Undecided);
        let denied =
            |code: &str| SdkError::Denied { code: code.to_owned(), text: String::new() }.at_fault();
        assert_eq!(denied("SHEF-ATT-999"), Fault::Answer);
        assert_eq!(denied("SHEF-SDK-018"), Fault::Undecided, "not the service's code");
        let gone = SdkError::from(shef_device::DeviceError::Remote {
            code: "SHEF-DEV-999".to_owned(),
            message: String::new(),
        });
        assert_eq!(gone.at_fault(), Fault::Device);
    }

    #[test]
    fn codes_of_others_are_believed_by_what_they_may_say() {
        for (code, may, expected) in [
            ("SHEF-KRN-021", KERNEL, "SHEF-KRN-021"),
            ("SHEF-PRO-041", KERNEL, "SHEF-PRO-041"),
            ("SHEF-SDK-021", KERNEL, NOT_THEIRS),
            ("SHEF-ATT-001", KERNEL, NOT_THEIRS),
            ("SHEF-KRN-", KERNEL, NOT_THEIRS),
            ("SHEF-KRN-1234", KERNEL, NOT_THEIRS),
            ("SHEF-KRN-00\u{1b}", KERNEL, NOT_THEIRS),
            ("KRN-001", KERNEL, NOT_THEIRS),
            ("", KERNEL, NOT_THEIRS),
            ("SHEF-AGT-012", AGENT, "SHEF-AGT-012"),
            ("SHEF-PRJ-006", AGENT, "SHEF-PRJ-006"),
            ("SHEF-SEAL-010", AGENT, NOT_THEIRS),
            ("SHEF-CLI-007", AGENT, NOT_THEIRS),
            ("SHEF-CLI-007", SIMULATOR, "SHEF-CLI-007"),
            ("SHEF-ATT-020", SIMULATOR, NOT_THEIRS),
            ("SHEF-ATT-020", SERVICE, "SHEF-ATT-020"),
            ("SHEF-SDK-016", SERVICE, NOT_THEIRS),
        ] {
            assert_eq!(theirs(code, may), expected, "{code}");
        }
        assert_eq!(printable("a\x1b[2Jb\nc\u{202e}d\u{2028}"), r"a\u{1b}[2Jb\nc\u{202e}d\u{2028}");
        assert_eq!(printable(&"x".repeat(1000)).len(), 400);
    }
}
