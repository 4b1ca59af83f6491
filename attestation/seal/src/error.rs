//! Errors of sealing and opening.

use alloc::string::String;

use shef_proto::config::MAX_EPOCH;

shef_proto::coded! {
    /// Why a seal or open operation fails.
    #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
    #[non_exhaustive]
    pub enum SealError {
        /// The region does not exist, or has another mode.
        #[error("region {region} is no {expected} region")]
        Region {
            /// number
            region: u8,
            /// mode that the operation needs
            expected: &'static str,
        } = "SHEF-SEAL-001": "no such region, or of another mode",
            "Only input regions are sealed by the owner and only output regions are opened.",
        /// The key was already taken.
        #[error("the key of region {region} was taken before")]
        KeyTaken {
            /// number
            region: u8,
        } = "SHEF-SEAL-002": "the key of a region was taken before",
            "A region has one sealer or opener in a session. Keep it, or open a new session.",
        /// Zero, too large, or not above the current epoch.
        #[error("epoch {epoch} of region {region} may not be used; expected {least} to {MAX_EPOCH}")]
        Epoch {
            /// number
            region: u8,
            /// the requested epoch
            epoch: u64,
            /// the minimum allowed epoch
            least: u64,
        } = "SHEF-SEAL-003": "an epoch that may not be used", "Epochs are 1 to 2^48 - 1 and only go up in a session.",
        /// A size or alignment mismatch.
        #[error("region {region} ({name}): {what}: {found}, expected {expected}")]
        Length {
            /// number
            region: u8,
            /// name
            name: String,
            /// the mismatch
            what: &'static str,
            /// bytes found
            found: u64,
            /// bytes expected, or the maximum
            expected: u64,
        } = "SHEF-SEAL-004": "a length does not fit",
            "The declared length is at most the region's size, all data but the last piece is whole chunks, and ciphertext and tags cover \
             the same chunks.",
        /// The key has sealed 2^48 blocks.
        #[error("the key of region {region} is used up")]
        Exhausted {
            /// number
            region: u8,
        } = "SHEF-SEAL-005": "a region's key is used up", "A key seals at most 2^48 blocks. Open a new session.",
        /// Another session or configuration.
        #[error("the statement belongs to another session")]
        Session = "SHEF-SEAL-006": "the statement belongs to another session",
            "Results open only under a statement read over the sealed channel of the same session, for the same configuration.",
        /// The Shield has stopped.
        #[error("the shield has stopped: {faults} fault(s)")]
        Stopped {
            /// number of faults
            faults: u32,
        } = "SHEF-SEAL-007": "the Shield has stopped after a fault",
            "Memory was tampered with or failed while the accelerator ran. No result opens. Reset the device, open a new session and run \
             again.",
        /// The Shield refused accesses, and the caller did not choose to open despite that.
        #[error("the shield refused {refusals} access(es) of the accelerator")]
        Refusals {
            /// number of refusals
            refusals: u32,
        } = "SHEF-SEAL-008": "the accelerator did something that the Shield refused",
            "The results may be incomplete. Look at the statement's first refusal; to open them all the same, ask for it.",
        /// A chunk that was not written.
        #[error("chunk {chunk} of region {region} was not written in epoch {epoch}")]
        NotWritten {
            /// number of the region
            region: u8,
            /// chunk
            chunk: u64,
            /// epoch of the statement
            epoch: u64,
        } = "SHEF-SEAL-009": "a chunk was not written in this epoch",
            "The accelerator did not write all that was asked for. Open with holes, or ask for fewer bytes.",
        /// Tag mismatch.
        #[error("chunk {chunk} of region {region} does not open in epoch {epoch}")]
        Tag {
            /// number of the region
            region: u8,
            /// chunk
            chunk: u64,
            /// epoch
            epoch: u64,
        } = "SHEF-SEAL-010": "a chunk does not open",
            "The Shield sealed this chunk, and what came back is something else: memory or host changed, swapped, replayed or withheld it.",
        /// A fault froze this region, and it is the region to open, or the caller did not declare
        /// that the launch could not have reached it.
        #[error("a fault froze region {region}, and what was sealed may depend on it")]
        Frozen {
            /// number
            region: u8,
        } = "SHEF-SEAL-011": "a fault froze a region",
            "Under on_fault = \"region\" a result opens in spite of it only where the launch could not have reached any frozen region, and \
             the caller names them all.",
        /// The sealer belongs to another process, and this one is a fork of it.
        #[error("the sealer belongs to process {made}; process {found} is a fork of it and must not use it")]
        Forked {
            /// number of the process that made it
            made: u32,
            /// number of this process, which may be the same
            found: u32,
        } = "SHEF-SEAL-012": "a sealer of another process",
            "After a fork only the process that made a session may seal for it: the copy would seal other data under the same IVs. Open a \
             new session.",
    }
}
