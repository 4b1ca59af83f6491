//! A simulated PCIe card around the model or the RTL
