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
        "check host and port, that `shef-agent run` runs there, and that no firewall is between",
    ),
    Code::new(
        TLS,
        "the TLS connection to the agent failed",
        "both sides need certificates of the agent's own CA, and the host in tls://HOST:PORT/DEVICE must be one that the agent's certificate names (`shef-agent init --name HOST`)",
    ),
    Code::new(
        TLS_FILES,
        "certificates or keys for TLS are missing or wrong",
        "for a verifier service give --as PREFIX (of PREFIX.pem and PREFIX.key) and --verifier-ca; for an agent, --tls-ca, --tls-cert and --tls-key, or its client.toml in SHEF_TLS_CONFIG; the agent itself has `ca`, `cert` and `key` in agent.toml",
    ),
    Code::new(
        PROTOCOL,
        "the other side broke the agent protocol",
        "it is damaged, hostile or of another version: compare `shef --version` with `shef-agent --version`",
    ),
    Code::new(
        VERSION,
        "owner and agent speak no common version of the protocol",
        "update the older of the two programs",
    ),
    Code::new(
        NO_DEVICE,
        "the agent has no device of that name",
        "the names stand in the agent's configuration; `shef-agent status` lists them",
    ),
    Code::new(
        IN_USE,
        "another owner has the device",
        "wait until that owner is done: a device serves one session; an owner that vanished loses it after the agent's time of grace",
    ),
    Code::new(
        NO_SESSION,
        "the session at the agent is over",
        "it ended, or the connection was away for longer than the agent's time of grace: the card was wiped; open a new session",
    ),
    Code::new(
        TIMEOUT,
        "the agent did not answer in time",
        "it or the card hangs: nothing is known about the request; open a new session",
    ),
    Code::new(
        LOST,
        "the connection to the agent was lost",
        "it could not be taken up again in time; open a new session, the card is wiped by then",
    ),
    Code::new(
        NOT_ALLOWED,
        "the device is not for this owner",
        "ask the agent's operator: `owners` in agent.toml says who may use a device, and the file `revoked` which certificates are revoked",
    ),
    Code::new(
        STOPPING,
        "the agent stops",
        "it wipes its cards and ends; open a new session when it runs again",
    ),
    Code::new(
        DEVICE_FAILED,
        "a device of the agent does not start or does not reset",
        "look at the agent's log; the next opening tries again",
    ),
    Code::new(CANCELLED, "a request was cut off because its session ended", "open a new session"),
    Code::new(
        BUSY,
        "the agent has as many connections as it takes",
        "try again later, or raise max_connections in the agent's configuration",
    ),
    Code::new(
        CONFIG,
        "an argument or the configuration of the agent is wrong",
        "correct what the message names; keys that agent.toml does not have are errors, and `shef-agent help COMMAND` lists arguments",
    ),
    Code::new(
        FILES,
        "a file or folder of the agent cannot be read or written",
        "check path, permissions and free space (`df -h`); --dir is the folder that `shef-agent init` makes, and nothing in it is overwritten",
    ),
    Code::new(
        LISTEN,
        "the agent cannot listen",
        "`ss -ltnp` shows which program has the port, perhaps an agent that runs already; the address must be one of this machine, or 0.0.0.0 for all of them",
    ),
    Code::new(
        TOO_LONG,
        "the card took longer for a request than the agent waits",
        "the message says how far it came; ask for less at once, and reset the card or open a new session if it hangs",
    ),
];
