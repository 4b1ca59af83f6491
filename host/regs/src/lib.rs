//! Register map of the Shield's control window, generated from shell-rtl/regs
