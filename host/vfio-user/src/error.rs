//! Errors of client and server, by the party that can act on them.

use std::io;
use std::path::PathBuf;

use crate::wire::command;

shef_proto::coded! {
    /// Why a device could not be reached or served over a socket.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum VfioUserError {
        /// No server listens on the socket.
        #[error("cannot connect to {}: {error}", path.display())]
        Connect {
            /// The socket.
            path: PathBuf,
            /// The system's error.
            error: io::Error,
        } = "SHEF-VFU-001": "no server listens on the socket of a vfio-user device",
            "start the card first, for example with `shef sim serve --socket PATH`, and give the \
            same path",
        /// Another client is connected.
        #[error("the device at {} is in use by another client", path.display())]
        InUse {
            /// The socket.
            path: PathBuf,
        } = "SHEF-VFU-002": "another client holds the vfio-user device",
            "a device serves one client at a time: end the other program, or serve a second card on another socket",
        /// The peer does not speak the protocol.
        #[error("{}: {what}", path.display())]
        Protocol {
            /// The socket.
            path: PathBuf,
            /// What was wrong.
            what: String,
        } = "SHEF-VFU-003": "the server on the socket does not speak vfio-user as expected",
            "check that the path is the socket of a vfio-user server (version 0.x), not its \
            control socket or another service",
        /// The server refused a command.
        #[error("the server refused {} with {}", command::name(*command), io::Error::from_raw_os_error(*errno as i32))]
        Refused {
            /// The command.
            command: u16,
            /// Error number.
            errno: u32,
        } = "SHEF-VFU-004": "the vfio-user server refused a command",
            "the message names the command and the reason; a server of another version may not \
            support the command",
        /// The server did not answer in time.
        #[error("no answer to {} within {ms} ms", command::name(*command))]
        TimedOut {
            /// The command.
            command: u16,
            /// Milliseconds waited.
            ms: u128,
        } = "SHEF-VFU-005": "the vfio-user server did not answer in time",
            "check the server: it may be stopped or very slow; open the device again once it \
            answers",
        /// The server has disconnected.
        #[error("the server of {} closed the connection", path.display())]
        Disconnected {
            /// The socket.
            path: PathBuf,
        } = "SHEF-VFU-006": "the vfio-user server closed the connection",
            "restart the server and open the device again: the session and the card's keys are \
            lost",
        /// The socket cannot be served.
        #[error("cannot serve {}: {error}", path.display())]
        Serve {
            /// The socket.
            path: PathBuf,
            /// The system's error.
            error: io::Error,
        } = "SHEF-VFU-007": "cannot serve the socket of a vfio-user device",
            "choose a path shorter than 108 bytes, in a writable folder, that no running server \
            uses",
        /// A system call failed.
        #[error("{what}: {error}")]
        System {
            /// The operation.
            what: &'static str,
            /// The system's error.
            error: io::Error,
        } = "SHEF-VFU-008": "the system refused memory, an event or a thread",
            "raise the limits of open files and memory (`ulimit -n`, `ulimit -l`) or free some, then try again",
    }
}

impl From<VfioUserError> for shef_device::DeviceError {
    fn from(error: VfioUserError) -> Self {
        Self::Transport { code: error.code(), message: error.to_string() }
    }
}
