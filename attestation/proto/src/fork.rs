//! Detects that a fork uses the sealing keys or counters of another process.
//!
//! A fork of a process has the same keys and counters: it would seal other data under the same IV.
//! So every message counter under a key holds a [`ForkGuard`], and works in no other process.
//! Systems without fork have one process and need no check.

/// Remembers the process that made a key or a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkGuard {
    #[cfg(unix)]
    process: shef_process::Process,
}

/// A fork uses the keys of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forked {
    /// The process that made them.
    pub made: u32,
    /// This process.
    pub found: u32,
}

impl ForkGuard {
    /// A guard for what this process makes.
    #[must_use]
    pub fn this() -> Self {
        Self {
            #[cfg(unix)]
            process: shef_process::Process::this(),
        }
    }

    /// Checks that this is the process that made the guard.
    ///
    /// # Errors
    /// It is a fork.
    #[cfg_attr(
        not(unix),
        expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "there is one process")
    )]
    pub fn check(self) -> Result<(), Forked> {
        #[cfg(unix)]
        {
            let found = shef_process::Process::this();
            if found != self.process {
                return Err(Forked { made: self.process.number(), found: found.number() });
            }
        }
        Ok(())
    }
}
