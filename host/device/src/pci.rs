//! The card as a PCI function: what it is called and what lies behind its base address registers. The shape is that of AWS F2's application function.

/// Vendor and device numbers under which a card answers: the application function of AWS F2, and so the simulated card too.
pub const IDS: &[(u16, u16)] = &[(0x1d0f, 0xf010)];

/// BAR of the control window.
pub const BAR_CTL: u8 = 0;
/// BAR of the MSI-X table.
pub const BAR_MSIX: u8 = 2;
/// BAR of the window to card memory; the window begins at address 0 of card memory.
pub const BAR_MEM: u8 = 4;
