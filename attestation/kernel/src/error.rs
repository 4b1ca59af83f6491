//! Errors of the kernel and their codes.

use shef_proto::image::ImageError;
use shef_proto::mailbox::MailboxError;
use shef_proto::release::ReleaseError;

use crate::platform::PlatformError;

shef_proto::coded! {
    /// Why the kernel refuses a request.
    #[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum KernelError {
        /// The request is malformed.
        #[error(transparent)]
        Request(#[from] MailboxError) => (error) error.code(),
        /// The key box is not for this evidence, or does not open.
        #[error(transparent)]
        KeyBox(#[from] ReleaseError) => (error) error.code(),
        /// The image's header or chunk is rejected.
        #[error(transparent)]
        Image(#[from] ImageError) => (error) error.code(),
        /// A hardware operation failed.
        #[error("platform: {0}")]
        Platform(#[from] PlatformError) = "SHEF-KRN-010": "platform error",
            "The hardware under the kernel failed to do what was asked; the text says what.",
        /// The entropy source fails its health test.
        #[error("no tested entropy source")]
        Entropy = "SHEF-KRN-011": "no tested entropy source",
            "The health test of the random source fails, so the kernel makes no key and no seed. This is not retried with weaker bytes.",
        /// Seeded randomness in a device that is not simulated.
        #[error("seeded randomness is refused for root of trust {kind}")]
        Seeded {
            /// Kind of the device.
            kind: &'static str,
        } = "SHEF-KRN-012": "seeded randomness outside simulation", "A test's seed is allowed for simulated devices only.",
        /// An unmeasured source, and an image that does not accept one.
        #[error("the noise source was never measured, and the image does not have entropy = \"unmeasured\"")]
        Unmeasured = "SHEF-KRN-015": "image does not accept an unmeasured noise source",
            "The noise source passes its health tests, but its min-entropy was never measured on silicon, so the kernel makes no seed \
             unless the image's vendor accepts that: `shef image build --entropy unmeasured` signs `entropy = \"unmeasured\"` into the \
             image's header. Every verifier of the card needs the same line in its policy (SHEF-ATT-026).",
        /// The shell can access the fabric.
        #[error("the shell has a {what}")]
        Shell {
            /// The means of access.
            what: &'static str,
        } = "SHEF-KRN-013": "shell refused",
            "A shell with a configuration port, readback or a debug bridge could read or change the Shield. Load another shell.",
        /// The request is invalid in this state.
        #[error("{what}")]
        State {
            /// The unmet condition.
            what: &'static str,
        } = "SHEF-KRN-014": "request in the wrong state", "The request needs a step that was not done, or undoes one; the text says which. An image is loaded with `--load IMAGE --image-key NAME` of `shef attest` and `shef keys release`.",
        /// The image is for another device.
        #[error("image is for {image}, this device is {device}")]
        Target {
            /// Target in the header.
            image: alloc::string::String,
            /// This device.
            device: alloc::string::String,
        } = "SHEF-KRN-020": "image for another device", "The header names another target. Build the image for this type of device.",
        /// The image is older than its key allows.
        #[error("image has security version {svn}, its key demands {least}")]
        ImageSvn {
            /// Version of the image.
            svn: u64,
            /// Minimum version.
            least: u64,
        } = "SHEF-KRN-021": "image too old",
            "The security version of the image is below the least that its vendor releases the key for. Use a newer image.",
        /// The image requires a newer kernel.
        #[error("kernel has security version {svn}, the image demands {least}")]
        KernelSvn {
            /// Version of the kernel.
            svn: u64,
            /// Minimum version.
            least: u64,
        } = "SHEF-KRN-022": "kernel too old for the image", "The image demands a newer Security Kernel. Update the kernel.",
        /// The loaded design differs from the one in the header.
        #[error("the design in the fabric is not the one that the image names")]
        Design = "SHEF-KRN-023": "design differs from the image",
            "The digest of the design in the fabric is not the one of the signed header: the image names a design that is not what was \
             loaded.",
        /// The Shield was built from another configuration.
        #[error("the Shield's configuration digest is not the one that the image names")]
        Config = "SHEF-KRN-024": "configuration differs from the image",
            "The Shield's configuration digest is not that of the configuration in the signed header: the RTL was generated from another \
             shield.toml.",
        /// The Shield shows a public key that the kernel did not derive.
        #[error("the Shield shows another public key than its seed gives")]
        ShieldKey = "SHEF-KRN-030": "Shield key differs",
            "The Shield shows another public key than its seed gives. The kernel signs nothing; the Shield was wiped. If it happens again, \
             the design is broken.",
        /// The Shield did not reach a state in time.
        #[error("the Shield did not become {state} in time")]
        Timeout {
            /// The state.
            state: &'static str,
        } = "SHEF-KRN-031": "Shield did not answer in time", "The Shield did not reach the state within the bounded wait. Reset the card.",
        /// Debug was turned on after boot.
        #[error("debug was turned on: the kernel has wiped the Shield and stopped")]
        Debug = "SHEF-KRN-032": "debug turned on",
            "Debug was turned on after boot. The kernel wiped the Shield and stopped until the next power-on.",
        /// The accelerator kept data of the previous session.
        #[error("the accelerator did not clear its memories or left bursts open: no session begins")]
        Uncleared = "SHEF-KRN-033": "accelerator not cleared",
            "Before a session the Shield waits, within a bound, for the accelerator to zero its memories and for the end of its bursts. \
             That did not come, so the Shield shows no key. Reset the card; if it happens again, the accelerator does not answer `clear_i` \
             as it must.",
        /// The Shield is still stopped after a wipe.
        #[error("the Shield has stopped and stays so after a wipe")]
        Stopped = "SHEF-KRN-034": "Shield has stopped before its session",
            "Card memory broke a rule before the session began, and the Shield was wiped: begin again. Where this comes again, a memory \
             port has timed out, which a wipe does not end: reset the card.",
    }
}
