//! `shef cloud load|bind|metrics|clear`: a slot of this F2 instance.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use shef_cloud::lock::Lock;
use shef_cloud::metrics::Metrics;
use shef_cloud::slot::{self, Pace, Slot};
use shef_cloud::{CloudError, Step, bind};
use shef_console::{CliError, Exit, Output, interrupt};
use shef_device::Iommu;
use shef_device::pci::Function as _;
use shef_device::pci::f2::{self, adapter};
use shef_vfio::{CardFunction, System};

use super::print::{self, ProgramArgs, Watching};

/// The slot, and how long to wait for it.
#[derive(clap::Args)]
pub struct SlotArgs {
    /// Number of the slot
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub slot: u32,
    /// Longest time to wait for a state of the slot
    #[arg(long, value_name = "SECONDS", default_value_t = 180)]
    wait: u64,
    #[command(flatten)]
    pub programs: ProgramArgs,
}

impl SlotArgs {
    /// How the slot is used.
    pub fn pace(&self) -> Pace {
        Pace {
            interval: Duration::from_millis(500),
            wait: Duration::from_secs(self.wait),
            limits: self.programs.limits(),
        }
    }
}

/// Flags of `shef cloud load`.
#[derive(clap::Args)]
pub struct LoadArgs {
    /// Lock file of the image
    #[arg(long, value_name = "FILE")]
    lock: PathBuf,
    /// Clear the slot if it holds another image
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    slot: SlotArgs,
}

/// Flags of `shef cloud bind`.
#[derive(clap::Args)]
pub struct BindArgs {
    /// Folder in place of /, for /sys and /dev
    #[arg(long, value_name = "DIR", hide = true)]
    root: Option<PathBuf>,
    #[command(flatten)]
    slot: SlotArgs,
}

/// Flags of `shef cloud metrics`.
#[derive(clap::Args)]
pub struct MetricsArgs {
    #[command(flatten)]
    slot: SlotArgs,
}

/// Flags of `shef cloud clear`.
#[derive(clap::Args)]
pub struct ClearArgs {
    #[command(flatten)]
    slot: SlotArgs,
}

fn show(output: &Output, found: &Slot) -> Result<(), CliError> {
    let image = found.image.as_deref().unwrap_or("no image");
    for (name, text) in [
        ("slot", found.slot.to_string()),
        ("status", found.status.name().to_owned()),
        ("image", image.to_owned()),
        ("shell", found.shell.clone()),
    ] {
        print::pair(output, name, &text)?;
    }
    for (id, address) in &found.functions {
        print::pair(output, "function", &format!("{address}, {id}"))?;
    }
    Ok(())
}

/// What an interrupt leaves of a slot.
fn leaves(slot: u32) -> interrupt::Hook {
    print::leaves(move || {
        format!(
            "slot {slot} ends its last command by itself; the same command again begins with a look"
        )
    })
}

/// Runs `shef cloud load`.
///
/// # Errors
/// Those of the lock file and of the slot.
pub fn load(output: &Output, args: &LoadArgs) -> Result<Exit, CliError> {
    interrupt::cleans_up()?;
    let lock = Lock::read(&args.lock)?;
    let number = args.slot.slot;
    if args.slot.programs.dry_run {
        return print::plan(output, &slot::load_plan(number, &lock.agfi, args.replace)?);
    }
    let interrupted = leaves(number);
    let watching = Watching::new(output, "looking at the slot");
    let mut step = |text: &str| watching.step(text);
    let found = slot::load(number, &lock.agfi, args.replace, args.slot.pace(), &mut step)?;
    drop((watching, interrupted));
    show(output, &found)?;
    let next = "shef cloud bind; evidence decides what runs, not the slot's report";
    print::pair(output, "next", next)?;
    output.document(&found)?;
    Ok(Exit::Done)
}

/// Runs `shef cloud clear`.
///
/// # Errors
/// Those of the slot.
pub fn clear(output: &Output, args: &ClearArgs) -> Result<Exit, CliError> {
    interrupt::cleans_up()?;
    if args.slot.programs.dry_run {
        return print::plan(output, &slot::clear_plan(args.slot.slot)?);
    }
    let interrupted = leaves(args.slot.slot);
    let watching = Watching::new(output, "looking at the slot");
    let found = slot::clear(args.slot.slot, args.slot.pace(), &mut |text| watching.step(text))?;
    drop((watching, interrupted));
    show(output, &found)?;
    output.document(&found)?;
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct Counted {
    slot: Slot,
    #[serde(flatten)]
    metrics: Metrics,
}

/// Runs `shef cloud metrics`. Exit status 1 if something needs attention.
///
/// # Errors
/// Those of the slot.
pub fn metrics(output: &Output, args: &MetricsArgs) -> Result<Exit, CliError> {
    let number = args.slot.slot;
    if args.slot.programs.dry_run {
        return print::plan(output, &[slot::counters_plan(number)?]);
    }
    let (found, said) = slot::counters(number, args.slot.pace().limits)?;
    let metrics = shef_cloud::metrics::read(&found, &said.text);
    show(output, &found)?;
    if let [Some(last), Some(average), Some(most)] = metrics.watts {
        let text = format!("{last} W now, {average} W on average, {most} W at most");
        print::pair(output, "core supply", &text)?;
    }
    for counter in metrics.counters.iter().filter(|it| it.value != 0) {
        let meaning = if counter.meaning.is_empty() {
            String::new()
        } else {
            format!(": {}", counter.meaning)
        };
        print::pair(output, "counter", &format!("{} {}{meaning}", counter.value, counter.name))?;
    }
    for text in &metrics.attention {
        print::beside(output, print::COLUMN, ("attention", &output.bad("attention")), text)?;
    }
    if metrics.attention.is_empty() {
        print::pair(output, "attention", "nothing: no time-out and no broken rule")?;
    }
    let exit = if metrics.attention.is_empty() { Exit::Done } else { Exit::No };
    output.document(&Counted { slot: found, metrics })?;
    Ok(exit)
}

#[derive(Serialize)]
struct Bound {
    slot: u32,
    function: String,
    driver: &'static str,
    /// Milliseconds until the adapter answered after a reset; absent with other system folders.
    return_ms: Option<u128>,
    /// Whether interrupts reach the host; otherwise the card is polled.
    interrupts: Option<bool>,
}

/// Runs `shef cloud bind`.
///
/// # Errors
/// Those of the slot, the kernel and the card.
pub fn bind(output: &Output, args: &BindArgs) -> Result<Exit, CliError> {
    let number = args.slot.slot;
    if args.slot.programs.dry_run {
        let mut steps = vec![slot::describe_plan(number, false)?];
        steps.extend(bind::plan("FUNCTION")?);
        let text = "open FUNCTION through VFIO, reset it, and read the adapter's ID";
        steps.push(Step::Change(text.to_owned()));
        return print::plan(output, &steps);
    }
    let system = args.root.as_ref().map_or_else(System::default, System::at);
    let watching = Watching::new(output, "looking at the slot");
    let limits = args.slot.pace().limits;
    let bdf = bind::function(&slot::describe(number, false, limits)?)?;
    bind::bind(&system, bdf, limits, &mut |text| watching.step(text))?;
    let mut bound = Bound {
        slot: number,
        function: bdf.to_string(),
        driver: "vfio-pci",
        return_ms: None,
        interrupts: None,
    };
    // Other folders have no card behind them.
    if args.root.is_none() {
        watching.step("resetting the card");
        let opened = CardFunction::open(&system, bdf, Iommu::None);
        let mut function = opened.map_err(CloudError::from)?;
        function.reset()?;
        let answer = f2::returned(&mut function, &bound.function)?;
        bound.return_ms = Some(answer.as_millis());
        bound.interrupts = Some(f2::interrupts(&mut function)?);
    }
    drop(watching);
    let function = format!("{}, driver vfio-pci, without an IOMMU", bound.function);
    print::pair(output, "function", &function)?;
    if let Some(ms) = bound.return_ms {
        let most = adapter::RETURN.as_millis();
        let text = format!("answers {ms} ms after it (at most {most})");
        print::pair(output, "reset", &text)?;
    }
    match bound.interrupts {
        Some(true) => print::pair(output, "interrupts", "16, routed by BAR2")?,
        Some(false) => {
            let text = "none: BAR2 has no block 0x1fc20006, so the card is polled";
            print::pair(output, "interrupts", text)?;
        }
        None => {}
    }
    print::pair(output, "next", "shef cloud run")?;
    output.document(&bound)?;
    Ok(Exit::Done)
}
