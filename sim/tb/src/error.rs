//! Why a bench stopped.

shef_proto::coded! {
    /// Why a bench stopped.
    #[derive(Debug, thiserror::Error)]
    #[non_exhaustive]
    pub enum BenchError {
        /// The RTL simulation.
        #[error("rtl: {0}")]
        Rtl(#[from] shef_rtl::Error) => (e) e.code(),
        /// The register channel.
        #[error("channel: {0}")]
        Channel(#[from] shef_proto::channel::ChannelError) => (e) e.code(),
        /// The Load Key.
        #[error("load key: {0}")]
        Load(#[from] shef_proto::load::LoadError) => (e) e.code(),
        /// The Shield's public key.
        #[error("public key: {0}")]
        Hpke(#[from] shef_proto::hpke_suite::HpkeError) => (e) e.code(),
        /// A register answered with an error.
        #[error("register {0:#x} answered with an error")]
        Register(u32) = "SHEF-RTL-040": "a register of the bench answered with an error",
            "The address is not in the register map, or the core is not the one expected.",
        /// The Shield did not reach a state.
        #[error("waited for {what}, status register is {status:#010x}")]
        Wait {
            /// The expected condition.
            what: &'static str,
            /// Last value.
            status: u32,
        } = "SHEF-RTL-041": "the Shield did not reach a state",
            "The message has the status register; docs/reference/registers.md has its fields.",
        /// The Shield refused a message.
        #[error("{what} was refused, status register is {status:#010x}")]
        Refused {
            /// Which message.
            what: &'static str,
            /// Status register.
            status: u32,
        } = "SHEF-RTL-042": "the Shield refused a message of the bench",
            "Keys, configuration digest or sequence differ between the bench and the design.",
        /// An AXI rule was broken.
        #[error("bus rule broken: {0}")]
        Bus(String) = "SHEF-RTL-043": "an AXI rule was broken",
            "The message has the cycle, the channel and the rule; run again with the same seed.",
        /// A file of the bench.
        #[error("{0}")]
        File(String) = "SHEF-RTL-044": "a file of the bench cannot be used", "The message has the path and the reason.",
        /// A measured transfer moved wrong bytes.
        #[error("wrong transfer: {0}")]
        Unequal(String) = "SHEF-RTL-045": "a measured transfer moved wrong bytes",
            "The message has the transfer; discard the figures of this run.",
        /// A write that violates the format.
        #[error("not sealed memory: {0}")]
        Format(String) = "SHEF-RTL-046": "the Shield wrote something other than sealed memory",
            "The message has the address; docs/reference/sealed-memory.md has the format. Run again with the same seed.",
    }
}
