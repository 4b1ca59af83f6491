//! A card in this machine, through Linux VFIO.
//!
//! | interface | what confines the card's DMA | when |
//! |---|---|---|
//! | container of type 1 (v2) | the IOMMU | every kernel with VFIO; the default |
//! | iommufd and the function's own node | the IOMMU | Linux 6.6 or newer, built with it |
//! | no-IOMMU | nothing | only where the URI says `?iommu=none`; machines without an IOMMU, as most cloud instances |
//!
//! [`check`] says what must hold before a card can be opened and what to do where it does not; [`OpenFunction`] is the open function with BARs, interrupts, reset
//! and [`DmaBuffer`]s; [`open`] gives that as a [`shef_device::Device`].
//!
//! **Why not the crate vfio-ioctls.** Its `region_read`, `region_write` and `reset` give no errors back, so that a card that went away looks like one that
//! reads zeros; it has no no-IOMMU mode and does not ask which addresses the IOMMU allows; its iommufd part panics where detaching fails. What is left of VFIO
//! is a dozen ioctls, and they are here, over the structures of `vfio-bindings`.
//!
//! **Order of release.** BARs are unmapped before the last descriptor of the function is closed; DMA memory is taken from the device before it is freed, and
//! where the kernel refuses that it is never used again. The lock that keeps a second program out ends with the process, however that ends.

mod card;
pub mod check;
mod error;
mod function;
mod space;
mod sys;
mod system;

pub use card::{CardFunction, open, open_ueid};
pub use error::{CODES, VfioError};
pub use function::{Bar, Interrupts, OpenFunction, Vectors};
pub use space::{DmaAddr, DmaBuffer, Segment};
pub use system::{Function, HUGEPAGE, System};
