//! Codes of all errors between an owner's program and an agent.

use shef_proto::code::Code;

/// The agent cannot be reached.
pub const UNREACHABLE: &str = "SHEF-AGT-001";
/// TLS failed.
pub const TLS: &str = "SHEF-AGT-002";
/// Certificates or keys for TLS are missing or wrong.
pub const TLS_FILES: &str = "SHEF-AGT-003";
/// The other side broke the protocol.
pub const PROTOCOL: &str = "SHEF-AGT-004";
/// No common version.
pub const VERSION: &str = "SHEF-AGT-005";
/// No such device.
pub const NO_DEVICE: &str = "SHEF-AGT-006";
/// Another owner has the device.
pub const IN_USE: &str = "SHEF-AGT-007";
/// The session is over.
pub const NO_SESSION: &str = "SHEF-AGT-008";
/// No answer in time.
pub const TIMEOUT: &str = "SHEF-AGT-009";
/// The connection was lost and could not be resumed.
pub const LOST: &str = "SHEF-AGT-010";
/// This owner may not use the device.
pub const NOT_ALLOWED: &str = "SHEF-AGT-011";
/// The agent is stopping.
pub const STOPPING: &str = "SHEF-AGT-012";
/// The device does not start or does not reset.
pub const DEVICE_FAILED: &str = "SHEF-AGT-013";
/// A request was aborted because the session ended.
pub const CANCELLED: &str = "SHEF-AGT-014";
/// Too many connections.
pub const BUSY: &str = "SHEF-AGT-015";
/// The agent's configuration is wrong.
pub const CONFIG: &str = "SHEF-AGT-016";
/// A file or folder of the agent cannot be read or written.
pub const FILES: &str = "SHEF-AGT-017";
/// The agent cannot listen.
pub const LISTEN: &str = "SHEF-AGT-018";
/// A request took longer than the agent gives it.
pub const TOO_LONG: &str = "SHEF-AGT-019";

/// Codes of agents and of the way to them.
pub const CODES: &[Code] = &[
    Code::new(
        UNREACHABLE,
        "the agent cannot be reached",
        "check host and port, that `shef-agent run` is running there, and that no firewall blocks \
        the connection",
    ),
    Code::new(
        TLS,
        "the TLS connection to the agent failed",
        "both sides need certificates from the agent's CA, and the agent's certificate must name \
        the host in tls://HOST:PORT/DEVICE (`shef-agent init --name HOST`)",
    ),
    Code::new(
        TLS_FILES,
        "certificates or keys for TLS are missing or wrong",
        "for a verifier service give --as PREFIX (of PREFIX.pem and PREFIX.key) and --verifier-ca; for an agent, --tls-ca, --tls-cert and --tls-key, or its client.toml in SHEF_TLS_CONFIG; the agent itself has `ca`, `cert` and `key` in agent.toml",
    ),
    Code::new(
        PROTOCOL,
        "the other side broke the agent protocol",
        "the peer is faulty, hostile or of another version: compare `shef --version` with \
        `shef-agent --version`",
    ),
    Code::new(
        VERSION,
        "owner and agent have no common version of the protocol",
        "update the older of the two programs",
    ),
    Code::new(
        NO_DEVICE,
        "the agent has no device of that name",
        "the agent's configuration has the names; `shef-agent status` lists them",
    ),
    Code::new(
        IN_USE,
        "another owner holds the device",
        "wait until that owner is done: a device serves one session; an owner that disconnects \
        loses it after the agent's grace period",
    ),
    Code::new(
        NO_SESSION,
        "the session at the agent is over",
        "it ended, or the connection was down for longer than the agent's grace period: the card \
        was wiped; open a new session",
    ),
    Code::new(
        TIMEOUT,
        "the agent did not answer in time",
        "the agent or the card hangs, and the outcome of the request is unknown; open a new \
        session",
    ),
    Code::new(
        LOST,
        "the connection to the agent was lost",
        "reconnecting took longer than the grace period, and the card is wiped; open a new session",
    ),
    Code::new(
        NOT_ALLOWED,
        "the device is not for this owner",
        "ask the agent's operator: `owners` in agent.toml lists the owners of a device, and the \
        file `revoked` the revoked certificates",
    ),
    Code::new(
        STOPPING,
        "the agent is stopping",
        "it wipes its cards and ends; open a new session when it runs again",
    ),
    Code::new(
        DEVICE_FAILED,
        "a device of the agent does not start or does not reset",
        "check the agent's log; the next request to open the device retries",
    ),
    Code::new(CANCELLED, "a request was cut off because its session ended", "open a new session"),
    Code::new(
        BUSY,
        "the agent is at its limit of connections",
        "try again later, or raise max_connections in the agent's configuration",
    ),
    Code::new(
        CONFIG,
        "an argument or the configuration of the agent is wrong",
        "the message begins with the place. A flag: `shef-agent help COMMAND` shows its form. \
        agent.toml with line and column: correct the key; unknown keys are errors. An owner's \
        name or a fingerprint: it was never given (`issued` lists all), was given to another key \
        (take a new name), or is revoked (`renew --readmit` lifts that)",
    ),
    Code::new(
        FILES,
        "a file or folder of the agent cannot be read or written",
        "the message names the file and the cause. Permission denied, or a folder of another \
        user: run the command as the user that the message names. Locked: another command \
        is changing the folder; run this one again. No space: `df -h`. No such \
        file in --dir: give the folder from `shef-agent init`, or put the file back. The file or \
        folder exists: `init` and `add-owner` overwrite nothing (`renew` makes a new certificate). \
        Not a certificate or key: restore the file, or issue it again",
    ),
    Code::new(
        LISTEN,
        "the agent cannot listen",
        "`ss -ltnp` shows which program has the port, perhaps a running agent; the address must \
        be one of this machine, or 0.0.0.0 for all of them",
    ),
    Code::new(
        TOO_LONG,
        "the card took longer for a request than the agent's limit",
        "the message has the progress; send smaller requests, and reset the card or open a new \
        session if it hangs",
    ),
];
