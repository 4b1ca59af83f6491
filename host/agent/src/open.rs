//! Opening the cards of this machine.

use shef_device::{Device, DeviceError, Uri};

/// What opens a device. It runs on the device's own thread.
pub type Opener =
    std::sync::Arc<dyn Fn(&Uri) -> Result<Box<dyn Device>, DeviceError> + Send + Sync>;

/// Opens a card of this machine.
///
/// # Errors
/// [`DeviceError::NotInThisVersion`], and those of the device.
pub fn open(uri: &Uri) -> Result<Box<dyn Device>, DeviceError> {
    // Simulated cards hold keys and plaintext, so they never live in the agent: `shef sim serve`
    // gives them a process of their own.
    match uri {
        Uri::Pci { function, iommu } => Ok(Box::new(shef_vfio::open(*function, *iommu)?)),
        Uri::PciUeid { ueid, iommu } => Ok(Box::new(shef_vfio::open_ueid(ueid, *iommu)?)),
        Uri::VfioUser { socket } => {
            Ok(Box::new(shef_vfio_user::open(socket, shef_vfio_user::DEFAULT_TIMEOUT)?))
        }
        // Such a configuration is refused before.
        uri => Err(DeviceError::NotInThisVersion { uri: uri.to_string() }),
    }
}
