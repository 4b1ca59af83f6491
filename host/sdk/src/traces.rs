//! Keeps keys from staying in the memory of this process.

use crate::SdkError;

/// Hides the memory of this process, which holds the keys of its sessions, from other processes of
/// the same user, debuggers and core dumps. A data owner's program calls this first.
///
/// # Errors
/// [`SdkError::Traces`] if the system refuses; on systems other than Linux this does nothing.
pub fn undumpable() -> Result<(), SdkError> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(|error| SdkError::Traces { reason: error.to_string() })?;
    Ok(())
}
