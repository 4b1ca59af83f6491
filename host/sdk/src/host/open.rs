//! Opens the device that a URI names.

use super::Host;
use crate::{DeviceError, SdkError, Uri};

/// Options for opening a device, beyond its URI.
#[derive(Default)]
pub struct OpenOptions {
    /// Certificates for `tls://`; by default those that [`TlsFiles::find`](crate::TlsFiles::find)
    /// finds.
    #[cfg(feature = "tls")]
    pub tls: Option<crate::TlsFiles>,
    /// Receives messages about long steps.
    #[cfg(feature = "tls")]
    pub progress: Option<shef_remote::Progress>,
}

/// Opens the device that `uri` names, with options from the environment: see [`open_with`].
///
/// # Errors
/// As [`open_with`].
pub fn open(uri: &Uri) -> Result<Host, SdkError> {
    open_with(uri, OpenOptions::default())
}

/// Opens the device that `uri` names. For a simulated device, starts the program `shef-sim`, which
/// serves one of a temporary manufacturer.
///
/// # Errors
/// [`DeviceError::NotInThisVersion`], [`DeviceError::NotBuilt`], and device errors.
#[cfg_attr(
    not(feature = "tls"),
    expect(unused_variables, reason = "only an agent's cards take options")
)]
pub fn open_with(uri: &Uri, options: OpenOptions) -> Result<Host, SdkError> {
    match uri {
        #[cfg(feature = "vfio-user")]
        Uri::SimModel | Uri::SimRtl(_) => {
            #[cfg(feature = "tls")]
            if let Some(mut progress) = options.progress {
                return Host::simulated(uri, Some(&mut |text| progress(text)));
            }
            Host::simulated(uri, None)
        }
        #[cfg(feature = "vfio")]
        Uri::Pci { function, iommu, boot } => {
            Ok(Host::new(shef_vfio::open(*function, *iommu, boot.as_deref())?))
        }
        #[cfg(feature = "vfio")]
        Uri::PciUeid { ueid, iommu } => Ok(Host::new(shef_vfio::open_ueid(ueid, *iommu)?)),
        #[cfg(feature = "vfio-user")]
        Uri::VfioUser { socket, boot } => {
            Ok(Host::new(shef_vfio_user::open_uri(socket, boot.as_deref())?))
        }
        #[cfg(feature = "tls")]
        Uri::Tls { .. } => {
            let tls = options.tls.map_or_else(crate::TlsFiles::find, Ok)?;
            let limits = shef_remote::Limits::default();
            Ok(Host::new(Box::new(shef_remote::RemoteDevice::open(
                uri,
                &tls,
                limits,
                options.progress,
            )?)))
        }
        uri => Err(absent(uri).into()),
    }
}

/// Why this program cannot open `uri`.
fn absent(uri: &Uri) -> DeviceError {
    let (what, feature) = match uri {
        Uri::SimModel | Uri::SimRtl(_) => ("the simulated card", "vfio-user"),
        Uri::Pci { .. } | Uri::PciUeid { .. } => ("VFIO", "vfio"),
        Uri::VfioUser { .. } => ("vfio-user", "vfio-user"),
        Uri::Tls { .. } => ("the agent protocol", "tls"),
        uri => return DeviceError::NotInThisVersion { uri: uri.to_string() },
    };
    DeviceError::NotBuilt { uri: uri.to_string(), what, feature }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_the_program_was_built_without_names_its_feature() {
        for (uri, feature) in [
            ("sim:model", "vfio-user"),
            ("pci:0000:65:00.0", "vfio"),
            ("vfio-user:/card", "vfio-user"),
            ("tls://a:1/b", "tls"),
        ] {
            let error = absent(&uri.parse().unwrap());
            assert_eq!(error.code(), "SHEF-DEV-004");
            assert!(
                error.to_string().contains(uri)
                    && error.to_string().ends_with(&format!("`{feature}`")),
                "{error}"
            );
        }
    }
}
