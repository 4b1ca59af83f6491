//! Host library for data owners and IP vendors of shielded FPGA accelerators
