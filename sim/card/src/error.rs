//! Errors of the simulated card.

shef_proto::coded! {
    /// Why a simulated card did not start or failed.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum CardError {
        /// Building, loading or driving the RTL.
        #[error(transparent)]
        Rtl(#[from] shef_rtl::Error) => (error) error.code(),
        /// The boot code stopped.
        #[error("boot: {0}")]
        Boot(#[from] shef_kernel::BootError) => (error) error.code(),
        /// The design cannot be read.
        #[error(transparent)]
        Project(#[from] shef_project::Error) => (error) error.code(),
        /// The card's socket cannot be served.
        #[error(transparent)]
        Serve(#[from] shef_vfio_user::VfioUserError) => (error) error.code(),
        /// The design lacks a function that the card needs.
        #[error("design: {what}")]
        Design {
            /// What is wrong.
            what: String,
        } = "SHEF-CARD-001": "the simulated design does not do what the card needs",
            "it was changed or built from other sources: rebuild it, and compare with shell-rtl/shell/sim",
        /// Card memory cannot be created.
        #[error("card memory of {bytes:#x} bytes: {what}")]
        Memory {
            /// Requested bytes.
            bytes: u64,
            /// What is wrong.
            what: String,
        } = "SHEF-CARD-004": "the simulated card's memory cannot be made",
            "its size is a power of two from 1 MiB to 64 GiB; only pages that are written cost memory, but the address space must not be \
             limited (`ulimit -v`)",
        /// The control socket of a served card.
        #[error("control socket {}: {what}", path.display())]
        Control {
            /// The socket.
            path: std::path::PathBuf,
            /// What is wrong.
            what: String,
        } = "SHEF-CARD-005": "the control socket of a simulated card does not answer as it must",
            "`shef sim serve` makes it beside the card's socket, as PATH.control; name another one with --control",
    }
}

impl From<CardError> for shef_device::DeviceError {
    fn from(error: CardError) -> Self {
        Self::Simulator { code: error.code(), message: error.to_string() }
    }
}
