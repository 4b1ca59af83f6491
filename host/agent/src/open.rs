//! Opens the cards of this machine.

use shef_device::{Device, DeviceError, Uri};

/// Opens a device. It runs on the device's own thread.
pub type Opener =
    std::sync::Arc<dyn Fn(&Uri) -> Result<Box<dyn Device>, DeviceError> + Send + Sync>;

/// Opens a card of this machine.
///
/// # Errors
/// [`DeviceError::NotInThisVersion`], and the device's errors.
pub fn open(uri: &Uri) -> Result<Box<dyn Device>, DeviceError> {
    // Simulated cards hold keys and plaintext, so they never run in the agent: `shef sim serve`
    // gives them a separate process.
    match uri {
        Uri::Pci { function, iommu, boot } => shef_vfio::open(*function, *iommu, boot.as_deref()),
        Uri::PciUeid { ueid, iommu } => shef_vfio::open_ueid(ueid, *iommu),
        Uri::VfioUser { socket, boot } => shef_vfio_user::open_uri(socket, boot.as_deref()),
        // The configuration check has rejected these.
        uri => Err(DeviceError::NotInThisVersion { uri: uri.to_string() }),
    }
}
