//! Clean-up after an interrupt (Ctrl-C, SIGTERM, SIGHUP) of a command: no folder and no process
//! remains.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::CliError;

const SIGNALS: [i32; 3] = [SIGHUP, SIGINT, SIGTERM];

/// Set by an interrupt under [`removes`].
static ENDING: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Processes that end with this one.
static CHILDREN: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

/// From now on an interrupt sets `stop`, and a second one ends the process at once.
///
/// # Errors
/// SHEF-CLI-070 if the system refuses the handler.
pub fn stops(stop: &Arc<AtomicBool>) -> Result<(), CliError> {
    for signal in SIGNALS {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(stop))
            .map_err(|e| refused(&e))?;
        signal_hook::flag::register(signal, Arc::clone(stop)).map_err(|e| refused(&e))?;
    }
    Ok(())
}

type Hooks = BTreeMap<u64, Box<dyn FnOnce() + Send>>;

/// What an interrupt under [`removes`] does first.
static HOOKS: Mutex<Hooks> = Mutex::new(BTreeMap::new());

/// Keeps a hook of [`first`]; dropping it forgets the hook.
#[derive(Debug)]
pub struct Hook(u64);

impl Drop for Hook {
    fn drop(&mut self) {
        HOOKS.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// An interrupt under [`removes`] calls `hook` before it ends anything, as long as the returned
/// value exists. For what this process has left elsewhere, at a service.
#[must_use]
pub fn first(hook: impl FnOnce() + Send + 'static) -> Hook {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    HOOKS.lock().unwrap_or_else(PoisonError::into_inner).insert(number, Box::new(hook));
    Hook(number)
}

/// From now on an interrupt calls the hooks of [`first`], ends every [`child`], removes the folder
/// `dir`, and ends the process as usual.
///
/// # Errors
/// SHEF-CLI-070 if the system refuses the handler.
pub fn removes(dir: &Path) -> Result<(), CliError> {
    for signal in SIGNALS {
        signal_hook::flag::register(signal, Arc::clone(&ENDING)).map_err(|e| refused(&e))?;
    }
    let mut signals = Signals::new(SIGNALS).map_err(|e| refused(&e))?;
    let dir: PathBuf = dir.to_owned();
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let hooks = std::mem::take(&mut *HOOKS.lock().unwrap_or_else(PoisonError::into_inner));
            hooks.into_values().for_each(|hook| hook());
            let _ended = end_children();
            // Other threads may still be writing there: the next pass removes the files that they
            // add.
            let _ = (0..100).find(|_| std::fs::remove_dir_all(&dir).is_ok());
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    });
    Ok(())
}

/// Unfinished files, and folders of intermediate results.
static PARTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The files and folders that an interrupt removes after [`removes_parts`]. The interrupt waits
/// while this lock is held.
pub fn parts() -> MutexGuard<'static, Vec<PathBuf>> {
    PARTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on an interrupt ends every [`child`], removes what is in [`parts`], and ends the process
/// as usual.
///
/// # Errors
/// SHEF-CLI-070 if the system refuses the handler.
pub fn removes_parts() -> Result<(), CliError> {
    static BEGUN: Mutex<bool> = Mutex::new(false);
    let mut begun = BEGUN.lock().unwrap_or_else(PoisonError::into_inner);
    if !std::mem::replace(&mut *begun, true) {
        let mut signals = Signals::new(SIGNALS).map_err(|e| refused(&e))?;
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                let _ended = end_children();
                let parts = parts();
                for part in parts.iter() {
                    let _ = std::fs::remove_file(part).or_else(|_| std::fs::remove_dir_all(part));
                }
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
    }
    Ok(())
}

/// Ends every [`child`]. While the returned lock is held, no thread starts another one: until the
/// process ends.
fn end_children() -> MutexGuard<'static, Vec<Pid>> {
    let children = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
    for child in children.iter() {
        let _ = kill_process(*child, Signal::KILL);
    }
    children
}

/// Starts a process that an interrupt also ends, until [`forgets`].
///
/// # Errors
/// The system's.
pub fn child(command: &mut Command) -> std::io::Result<Child> {
    let mut children = CHILDREN.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    children.push(Pid::from_child(&child));
    Ok(child)
}

/// An interrupt no longer ends the child with this process id.
pub fn forgets(child: u32) {
    CHILDREN
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|pid| pid.as_raw_nonzero().get().cast_unsigned() != child);
}

/// Does not return if an interrupt is ending this process: errors in its threads are then
/// consequences of that end, and are not reported.
pub fn silences() {
    while ENDING.load(Ordering::Relaxed) {
        std::thread::park();
    }
}

fn refused(error: &std::io::Error) -> CliError {
    CliError::internal(format!("cannot install an interrupt handler: {error}"))
}
