//! The designs of this repository, with the Shield's RTL.

use crate::{DesignSpec, Result};
use shef_project::{F2_TOP, SourceSet};
use std::path::Path;

/// A design with the Shield's RTL and this `top`, as [`SourceSet::shipped`].
///
/// # Errors
/// When no file is named after the top module.
pub fn module_spec(top: &str) -> Result<DesignSpec> {
    Ok(SourceSet::shipped(top)?.into())
}

/// The Security Kernel's subsystem `shef_kernel`, around Ibex. `boot` is a folder with the package
/// `shef_kernel_rom_pkg`; by default, it is the shipped boot ROM.
///
/// # Errors
/// When Ibex or a source is missing.
pub fn kernel_spec(boot: Option<&Path>) -> Result<DesignSpec> {
    with_kernel("shef_kernel_top", &["shell-rtl/shell/kernel"], boot)
}

/// The whole system `shef_system`: the Security Kernel as in [`kernel_spec`], Shield and DMA
/// engine. Add an accelerator with [`DesignSpec::search`].
///
/// # Errors
/// When Ibex or a source is missing.
pub fn system_spec(boot: Option<&Path>) -> Result<DesignSpec> {
    // With the checker of the simulation shell.
    let shell = ["shell-rtl/shell/system", "shell-rtl/shell/sim"];
    with_kernel("shef_system_top", &shell, boot)
}

/// The custom logic for AWS F2, `cl_shef`, in the simulation top of its shell (`shef_f2_top`). With
/// `native`, the kernel's mailbox and ports belong to the test bench; otherwise it is the Security
/// Kernel as in [`kernel_spec`]. Add an accelerator with [`DesignSpec::search`].
///
/// # Errors
/// When Ibex or a source is missing.
pub fn f2_spec(native: bool) -> Result<DesignSpec> {
    const SHELL: [&str; 3] =
        ["shell-rtl/shell/f2_model", "shell-rtl/shell/aws_f2", "shell-rtl/shell/sim"];
    if native {
        return module_spec(F2_TOP);
    }
    with_kernel(F2_TOP, &SHELL, None)
}

fn with_kernel(top: &str, shell: &[&str], boot: Option<&Path>) -> Result<DesignSpec> {
    let spec = DesignSpec::new(top).source("shell-rtl/shell/kernel/ibex.vlt");
    let spec = boot.into_iter().fold(spec, DesignSpec::search);
    let mut spec = shell.iter().fold(spec, DesignSpec::search).search("shell-rtl/rtl");
    spec.sources = spec.sources.with_kernel()?;
    spec.sources.resolve_sources()?;
    Ok(spec)
}
