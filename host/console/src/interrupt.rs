//! What an interrupt (Ctrl-C, SIGTERM, SIGHUP) of a command leaves behind: no folder, no process.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::CliError;

const SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

/// Set by an interrupt that [`removes`] waits for.
static ENDING: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Processes that end with this one.
static CHILDREN: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// From here on an interrupt sets `stop`, and a second one ends the process at once.
///
/// # Errors
/// SHEF-CLI-070 where the system does not take a handler.
pub fn stops(stop: &Arc<AtomicBool>) -> Result<(), CliError> {
    for signal in SIGNALS {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(stop))
            .map_err(|e| refused(&e))?;
        signal_hook::flag::register(signal, Arc::clone(stop)).map_err(|e| refused(&e))?;
    }
    Ok(())
}

/// From here on an interrupt ends every [`child`], removes the folder `dir`, and ends the process
/// as it would have.
///
/// # Errors
/// SHEF-CLI-070 where the system does not take a handler.
pub fn removes(dir: &Path) -> Result<(), CliError> {
    for signal in SIGNALS {
        signal_hook::flag::register(signal, Arc::clone(&ENDING)).map_err(|e| refused(&e))?;
    }
    let mut signals = Signals::new(SIGNALS).map_err(|e| refused(&e))?;
    let dir: PathBuf = dir.to_owned();
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // Held to the end: no thread starts another.
            let children = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
            for child in children.iter() {
                let _ = kill_process(*child, Signal::KILL);
            }
            // Other threads may be writing there: what they add during one pass falls to the next.
            let _ = (0..100).find(|_| std::fs::remove_dir_all(&dir).is_ok());
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// Files that are not finished.
static PARTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The files that an interrupt removes after [`removes_parts`]. It waits while this is held.
pub fn parts() -> MutexGuard<'static, Vec<PathBuf>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From here on an interrupt removes the files in [`parts`], and ends the process as it would have.
///
/// # Errors
/// SHEF-CLI-070 where the system does not take a handler.
pub fn removes_parts() -> Result<(), CliError> {
    static BEGUN: Mutex<bool> = Mutex::new(false);
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    if !std::mem::replace(&mut *begun, true) {
        let mut signals = Signals::new(SIGNALS).map_err(|e| refused(&e))?;
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                let parts = parts();
                for part in parts.iter() {
                    let _ = std::fs::remove_file(part);
                }
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
    }
    Ok(())
}

/// Starts a process that an interrupt ends too, until [`forgets`].
///
/// # Errors
/// Those of starting it.
pub fn child(command: &mut Command) -> std::io::Result<Child> {
    let mut children = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    children.push(Pid::from_child(&child));
    Ok(child)
}

/// An interrupt does not end this process any more.
pub fn forgets(child: &Child) {
    CHILDREN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|pid| *pid != Pid::from_child(child));
}

/// Does not return where an interrupt is ending this process: what its threads meet then is news of
/// their end, not worth a word.
pub fn silences() {
    while ENDING.load(Ordering::Relaxed) {
        std::thread::park();
    }
}

fn refused(error: &std::io::Error) -> CliError {
    CliError::internal(format!("the system takes no handler for an interrupt: {error}"))
}
