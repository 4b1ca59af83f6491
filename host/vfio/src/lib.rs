//! A card in this machine, through Linux VFIO.
//!
//! | interface | what confines the card's DMA | availability |
//! |---|---|---|
//! | container of type 1 (v2) | the IOMMU | every kernel with VFIO; the default |
//! | iommufd and the function's own node | the IOMMU | Linux 6.6 or newer, built with it |
//! | no-IOMMU | nothing | only with `?iommu=none` in the URI; machines without an IOMMU, as most cloud instances |
//!
//! [`check`] contains the requirements for opening a card and their remedies. [`OpenFunction`] is
//! the open function with BARs, interrupts, reset and [`DmaBuffer`]s; [`open`] wraps it as a
//! [`shef_device::Device`].
//!
//! **Division of work with the crate vfio-ioctls.** Type 1 uses the crate (`type1.rs`); the
//! interfaces that it cannot serve are in `ours/`. All other code uses what both provide: a
//! descriptor, and the locations of the regions in it.
//!
//! | | type 1 | iommufd, no-IOMMU |
//! |---|---|---|
//! | container, group, the function's descriptor | crate | ours |
//! | regions and interrupts that the function has | crate | ours |
//! | interrupts to event descriptors | crate | ours |
//! | DMA map and unmap | crate, under its contract | ours |
//! | address ranges that the IOMMU allows | ours: the crate has no request for them | iommufd chooses; physical addresses |
//! | reads and writes of configuration space and BARs | ours: the crate's log errors instead of returning them | ours |
//! | reset | ours: the crate's returns nothing, even if the function cannot be reset | ours |
//! | mapped BARs | ours: the crate has none | ours |
//!
//! iommufd is ours because the crate panics when it closes such a function if the kernel does not
//! detach it, and because its feature `vfio_cdev` pulls in KVM's crates. No-IOMMU is ours because
//! the crate supports neither its nodes nor its container.
//!
//! How `type1.rs` handles the crate's other limits (0.10.0):
//!
//! | the crate | here |
//! |---|---|
//! | drops the error of three requests: group status, group to container, interrupts | the error is read from errno |
//! | leaves out a region that the kernel does not describe, which renumbers those after it | the function is refused if configuration space is not where it belongs |
//! | reads the function's folder in sysfs after it has closed the function, and panics if the kernel has removed it by then | a second descriptor, closed last, keeps the kernel waiting |
//! | takes the group from the container before that last descriptor is closed, which the kernel refuses | the kernel does it when the descriptor is closed. The crate logs "Could not unbind VFIO group" through `log` |
//! | opens `/dev/vfio` itself | a [`System`] with other folders opens nothing through type 1 |
//!
//! **Order of release.** BARs are unmapped before the last descriptor of the function is closed.
//! DMA memory is withdrawn from the device before it is freed; if the kernel refuses that, the
//! memory is never reused. Through type 1 the function stays open until its last BAR and its last
//! DMA memory are dropped. The lock that excludes a second program ends with the process, even
//! after a crash.

mod card;
pub mod check;
mod error;
mod function;
mod handle;
mod ours;
mod space;
mod sys;
mod system;
mod type1;

pub use card::{CardFunction, open, open_ueid};
pub use error::VfioError;
pub use function::{Bar, Interrupts, OpenFunction, Vectors, peek};
pub use space::{DmaAddr, DmaBuffer, Segment};
pub use system::{Function, HUGEPAGE, System};

/// All codes of this crate.
pub const CODES: &[shef_proto::code::Code] = VfioError::CODES;
