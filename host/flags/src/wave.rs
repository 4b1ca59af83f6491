//! Flags for waves of a simulated card.

use std::path::PathBuf;

use shef_device::{SimParameters, WaveScope};

/// Waves of a simulated card: the parameters `wave`, `wave-scope` and `wave-from` of its URI.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct WaveArgs {
    /// Write waveforms of the simulated card to this file; they need another build
    #[arg(long, value_name = "FILE.fst")]
    pub wave: Option<PathBuf>,
    /// Signals in the waves: `all` by default
    #[arg(long, value_enum, requires = "wave")]
    wave_scope: Option<Scope>,
    /// Cycle at which the waves begin
    #[arg(long, value_name = "CYCLE", requires = "wave")]
    wave_from: Option<u64>,
}

/// Signals in the waves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Scope {
    /// The accelerator: its ports, and what is below
    Accel,
    /// All signals of the design and its simulation shell
    All,
}

impl WaveArgs {
    /// Sets the parameters that the flags give.
    pub fn apply(&self, to: &mut SimParameters) {
        if let Some(wave) = &self.wave {
            to.wave = Some(wave.clone());
        }
        if let Some(scope) = self.wave_scope {
            to.wave_scope = match scope {
                Scope::Accel => WaveScope::Accel,
                Scope::All => WaveScope::All,
            };
        }
        if let Some(from) = self.wave_from {
            to.wave_from = from;
        }
    }
}
