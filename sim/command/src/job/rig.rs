//! A card with a project's design, and all parties.

use shef_card::{CardOptions, CardProbe, Design, Engine, RtlOptions, SimKernel, SimParameters};
use shef_console::CliError;
use shef_console::file::TempFolder;
use shef_flags::WaveArgs;
use shef_lab::probe::Location;
use shef_lab::world::{Cards, Plan, World};

/// A card with a project's design and a native Security Kernel, and all parties.
pub struct Rig {
    /// The parties.
    pub world: World,
    /// The host with the card.
    pub host: shef::Host,
    /// Observation of the card.
    pub card: CardProbe,
    _keys: TempFolder,
}

/// A card's options with the waves of the command line, whose file was checked.
pub fn waves(args: &WaveArgs) -> RtlOptions {
    let mut parameters = SimParameters::default();
    args.apply(&mut parameters);
    RtlOptions::from(&parameters)
}

/// What a seed decides of a card: the memory's latency and stalls, and what registers and memories of
/// the design contain at the start. The waves are those of `base`.
pub fn timing(base: &RtlOptions, seed: u64) -> RtlOptions {
    const LATENCIES: [u64; 4] = [20, 1, 100, 40];
    let latency = LATENCIES[(seed % 4) as usize];
    RtlOptions { memory_latency: Some(latency), stalls: Some(seed), ..steady(base, seed) }
}

/// The same without stalls, whose sequence would depend on what came before.
pub fn steady(base: &RtlOptions, seed: u64) -> RtlOptions {
    RtlOptions { contents: Some(seed), ..base.clone() }
}

/// A card with a project's design, a native Security Kernel and this timing.
pub fn options(design: &Design, timing: RtlOptions) -> CardOptions {
    let options = RtlOptions { kernel: SimKernel::Native, ..timing };
    CardOptions::new(Engine::Rtl(options), design.clone())
}

impl Rig {
    /// Builds the design, or takes it from the cache, and starts a card with this timing. The seed
    /// decides everything else that is random: keys, and the card's randomness.
    ///
    /// # Errors
    /// Build errors.
    pub fn new(
        design: &Design,
        timing: RtlOptions,
        seed: u64,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, CliError> {
        let keys = TempFolder::new()?;
        let cards = Cards::Made(options(design, timing));
        let plan = Plan { cards, seed: Some(seed), name: "test".to_owned(), service: None };
        let mut world = World::new(keys.path(), plan)?;
        let (host, probe) = world.card(progress)?;
        let Location::InProcess(card) = probe.location() else {
            return Err(CliError::internal("the card is in another process"));
        };
        let card = card.clone();
        Ok(Self { world, host, card, _keys: keys })
    }
}
