//! Keeps keys from staying in the memory of this process.

use crate::SdkError;

/// Keeps other processes of the same user, debuggers and core dumps away from the memory of this
/// one, where the keys of its sessions are. A data owner's program does this first.
///
/// # Errors
/// [`SdkError::Traces`] where the system refuses; on systems other than Linux nothing is done.
pub fn undumpable() -> Result<(), SdkError> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(|error| SdkError::Traces { reason: error.to_string() })?;
    Ok(())
}
