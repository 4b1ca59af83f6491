//! Reference triples: classes, the measurements of each, and the authority for them.

use corim::types::common::{ClassIdChoice, MeasuredElement};
use corim::types::measurement::{MeasurementMap, MeasurementValuesMap, SvnChoice};
use corim::types::triples::ReferenceTriple;

use super::{
    CLASS_VENDOR, Corim, CorimError, CorimSigner, KERNEL_MODEL, SHA_256, SHELL_MODEL, form,
};
use crate::reference::{ImageReference, KernelReference, ShellReference};

/// Adds the values of a triple if its class is known and its signer may vouch for it.
pub(super) fn reference(
    signer: &CorimSigner,
    triple: &ReferenceTriple,
    out: &mut Corim,
) -> Result<(), CorimError> {
    let environment = triple.environment();
    let class = environment.class.as_ref();
    let (Some(class), None, None) = (class, &environment.instance, &environment.group) else {
        out.ignored += 1;
        return Ok(());
    };
    let (Some(CLASS_VENDOR), Some(model), Some(layer), None) =
        (class.vendor.as_deref(), class.model.as_deref(), class.layer, class.index)
    else {
        out.ignored += 1;
        return Ok(());
    };
    let measurements = Measurements::new(triple.measurements())?;
    let authority = |allowed: bool, class: String| {
        if allowed {
            Ok(())
        } else {
            Err(CorimError::Authority { signer: signer.name().into(), class })
        }
    };
    match (layer, &class.class_id) {
        (1, None) if model == KERNEL_MODEL => {
            authority(signer.kernels, "kernels".into())?;
            let (name, digest, svn) = measurements.take("kernel", true)?;
            out.reference.kernels.push(KernelReference { name, digest, svn });
            measurements.only(&["kernel"])
        }
        (0, None) if model == SHELL_MODEL => {
            authority(signer.shells, "shells".into())?;
            let (name, digest, _) = measurements.take("shell", false)?;
            out.reference.shells.push(ShellReference { name, digest });
            measurements.only(&["shell"])
        }
        (2, Some(ClassIdChoice::Bytes(vendor))) => {
            let vendor: [u8; 32] = vendor
                .as_slice()
                .try_into()
                .map_err(|_| form("the class id of an image is not the SHA-256 of a key"))?;
            authority(
                signer.vendors.contains(&hex::encode(vendor)),
                format!("images of vendor {}", hex::encode(&vendor[..8])),
            )?;
            let (name, digest, svn) = measurements.take("image", true)?;
            let (_, config_digest, _) = measurements.take("configuration", false)?;
            let (_, design_digest, _) = measurements.take("design", false)?;
            let accelerator = model.to_owned();
            out.reference.images.push(ImageReference {
                name,
                accelerator,
                digest,
                config_digest,
                design_digest,
                vendor,
                svn,
            });
            measurements.only(&["image", "configuration", "design"])
        }
        _ => Err(form(format!(
            "class {CLASS_VENDOR} {model:?} layer {layer} is none of kernel, shell, image"
        ))),
    }
}

/// The measurements of one environment, by key, without duplicates.
struct Measurements<'a>(Vec<(&'a str, &'a MeasurementValuesMap)>);

impl<'a> Measurements<'a> {
    fn new(list: &'a [MeasurementMap]) -> Result<Self, CorimError> {
        let mut out: Vec<(&str, &MeasurementValuesMap)> = Vec::new();
        for measurement in list {
            let Some(MeasuredElement::Text(key)) = &measurement.mkey else {
                return Err(form("a measurement has no text as key"));
            };
            if measurement.authorized_by.is_some() {
                return Err(form("authorized-by is not taken: authority comes from the signer"));
            }
            if out.iter().any(|(known, _)| known == key) {
                return Err(form(format!("two measurements {key:?} of one environment")));
            }
            out.push((key, &measurement.mval));
        }
        Ok(Self(out))
    }

    fn only(&self, keys: &[&str]) -> Result<(), CorimError> {
        match self.0.iter().find(|(key, _)| !keys.contains(key)) {
            Some((key, _)) => Err(form(format!("unknown measurement {key:?}"))),
            None => Ok(()),
        }
    }

    /// Name, SHA-256 and SVN of a measurement.
    fn take(&self, key: &str, with_svn: bool) -> Result<(String, [u8; 32], u64), CorimError> {
        let (_, values) = self
            .0
            .iter()
            .find(|(known, _)| *known == key)
            .ok_or_else(|| form(format!("no measurement {key:?}")))?;
        let digests = values.digests.as_deref().unwrap_or_default();
        let mut sha256 = digests.iter().filter(|digest| digest.alg().as_int() == Some(SHA_256));
        let (Some(digest), None) = (sha256.next(), sha256.next()) else {
            return Err(form(format!("measurement {key:?} has not exactly one SHA-256 digest")));
        };
        let digest = digest
            .value()
            .try_into()
            .map_err(|_| form(format!("the digest of {key:?} is not 32 bytes")))?;
        let svn = match &values.svn {
            Some(SvnChoice::ExactValue(svn)) => *svn,
            None if !with_svn => 0,
            _ => {
                return Err(form(format!(
                    "measurement {key:?} has no exact SVN; least versions are the policy's"
                )));
            }
        };
        Ok((values.name.clone().unwrap_or_else(|| key.to_owned()), digest, svn))
    }
}
