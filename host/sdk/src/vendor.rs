//! The IP vendor: builds image containers and releases their keys to appraised kernels.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};
use shef_proto::cose::SigningKey;
use shef_proto::entropy::Entropy;
use shef_proto::hpke_suite::{PublicKey, generate_key_pair};
use shef_proto::image::{Container, Description, ImageKey};
use shef_proto::release::ImageSecret;
#[cfg(feature = "corim")]
use shef_verify::ReferenceValues;
#[cfg(feature = "corim")]
use shef_verify::corim::{self, Describe};
use shef_verify::{ImageReference, VerifiedKernelEvidence};
use zeroize::Zeroizing;

use crate::entropy::fit_for;
use crate::{Appraised, Challenge, Host, KeyFolder, SdkError, Verifier};

/// Image keys by the names that their files would have.
type InMemory = BTreeMap<String, Zeroizing<[u8; 32]>>;

/// The keys of a vendor's images.
enum Keys {
    /// As files.
    Folder(KeyFolder),
    /// In no file.
    Memory(Mutex<InMemory>),
}

fn lock(keys: &Mutex<InMemory>) -> MutexGuard<'_, InMemory> {
    keys.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keys {
    fn store(&self, name: String, key: &ImageKey) -> Result<(), SdkError> {
        match self {
            Self::Folder(folder) => folder.store_secret(&name, key.expose()),
            Self::Memory(keys) => {
                lock(keys).insert(name, Zeroizing::new(*key.expose()));
                Ok(())
            }
        }
    }

    fn find(&self, name: &str) -> Result<ImageKey, SdkError> {
        match self {
            Self::Folder(folder) => Ok(ImageKey::from_bytes(&*folder.secret32(name)?)),
            Self::Memory(keys) => {
                let keys = lock(keys);
                let key = keys.get(name).map(|key| ImageKey::from_bytes(key));
                key.ok_or_else(|| SdkError::KeyFile {
                    path: PathBuf::from(name),
                    reason: "this vendor, whose keys are in no file, did not build the image"
                        .to_owned(),
                })
            }
        }
    }
}

/// An IP vendor with its signing key and the keys of its images.
pub struct IpVendor {
    keys: Keys,
    tenant: String,
    signing: SigningKey,
}

/// Name of the key file of an image in its vendor's folder.
fn key_name(container: &Container) -> String {
    let id: String =
        container.header().container_id().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("image-{id}.key")
}

/// An image with the data that its vendor keeps.
#[derive(Debug, Clone)]
pub struct Image {
    /// The container, which anyone may carry.
    pub container: Vec<u8>,
    /// Image digest, as in evidence.
    pub digest: [u8; 32],
    /// Content of the header.
    pub description: Description,
}

impl IpVendor {
    /// Opens the vendor whose keys are in `folder`; creates the signing key if it is missing.
    ///
    /// # Errors
    /// [`SdkError::KeyFile`], [`SdkError::KeyFormat`].
    pub fn open(
        folder: KeyFolder,
        tenant: &str,
        entropy: &mut dyn Entropy,
    ) -> Result<Self, SdkError> {
        let signing = folder.signing_key(entropy)?;
        Ok(Self { keys: Keys::Folder(folder), tenant: tenant.to_owned(), signing })
    }

    /// The same, but the signing key must already exist.
    ///
    /// # Errors
    /// [`SdkError::KeyFile`], [`SdkError::KeyFormat`].
    pub fn existing(folder: KeyFolder, tenant: &str) -> Result<Self, SdkError> {
        let signing = folder.existing_signing_key()?;
        Ok(Self { keys: Keys::Folder(folder), tenant: tenant.to_owned(), signing })
    }

    /// A vendor with a new signing key. It and the keys of its images are in no file and end with
    /// this value: for images that need not outlast it.
    pub fn in_memory(tenant: &str, entropy: &mut dyn Entropy) -> Self {
        let signing = SigningKey::new(&generate_key_pair(entropy).0);
        Self { keys: Keys::Memory(Mutex::default()), tenant: tenant.to_owned(), signing }
    }

    /// The key that signs image headers.
    pub fn public_key(&self) -> PublicKey {
        self.signing.public_key()
    }

    /// SHA-256 of [`IpVendor::public_key`]: the vendor's identifier in evidence.
    pub fn id(&self) -> [u8; 32] {
        Sha256::digest(self.public_key().as_bytes()).into()
    }

    /// Seals and signs an image under a fresh key, which stays with the vendor.
    ///
    /// # Errors
    /// [`SdkError::Image`], [`SdkError::KeyFile`].
    pub fn build(
        &self,
        description: &Description,
        plaintext: &[u8],
        entropy: &mut dyn Entropy,
    ) -> Result<Image, SdkError> {
        let key = ImageKey::generate(entropy);
        let container = Container::build(description, plaintext, &key, &self.signing, entropy)?;
        self.keys.store(key_name(&container), &key)?;
        let (digest, _) = container.open(&self.public_key(), key)?;
        Ok(Image { container: container.to_bytes(), digest, description: description.clone() })
    }

    /// Reference values of an image for verifiers.
    pub fn reference(&self, image: &Image, name: &str) -> ImageReference {
        ImageReference {
            name: name.to_owned(),
            accelerator: image.description.accelerator.clone(),
            digest: image.digest,
            config_digest: image.description.config.digest(),
            design_digest: image.description.design_digest,
            vendor: self.id(),
            svn: image.description.svn,
        }
    }

    /// Reference values of an image for verifiers, as a CoRIM that the vendor signs with its
    /// image-signing key. Its version is the SVN.
    ///
    /// # Errors
    /// [`SdkError::Corim`].
    #[cfg(feature = "corim")]
    pub fn corim(&self, image: &Image, name: &str) -> Result<Vec<u8>, SdkError> {
        let reference = ReferenceValues {
            images: vec![self.reference(image, name)],
            ..ReferenceValues::default()
        };
        let describe = Describe {
            id: name,
            version: image.description.svn,
            issuer: &self.tenant,
            not_after: None,
        };
        Ok(corim::write_signed(&reference, &describe, &self.signing, None)?)
    }

    /// The key of one of this vendor's images, to be entrusted to a verifier service.
    ///
    /// # Errors
    /// [`SdkError::KeyFile`], [`SdkError::KeyFormat`].
    pub fn key_of(&self, container: &Container) -> Result<ImageKey, SdkError> {
        self.keys.find(&key_name(container))
    }

    /// Challenges the kernel behind `host`, appraises its evidence, and seals the image's key to
    /// it; images older than `min_svn` cannot be loaded with it.
    ///
    /// # Errors
    /// [`SdkError::Rejected`] with every check, [`SdkError::Seeded`]; no key is released then.
    pub fn release(
        &self,
        host: &mut Host,
        image: &Image,
        min_svn: u64,
        verifier: &Verifier,
        now: i64,
        entropy: &mut dyn Entropy,
    ) -> Result<Release, SdkError> {
        let challenge = Challenge::draw(verifier.audience(), entropy);
        let evidence = host.kernel_evidence(&challenge)?;
        let (verified, appraisal) = verifier.appraise_kernel(&evidence, &challenge, now)?;
        fit_for(entropy, verified.claims().root_of_trust)?;
        let secret = ImageSecret {
            key: self.key_of(&Container::parse(&image.container)?)?,
            min_svn,
            vendor: self.public_key(),
        };
        let mut receipt = [0; 16];
        entropy.fill(&mut receipt);
        let key_box = verified.release_image_key(
            &self.tenant,
            &image.description.accelerator,
            image.description.svn,
            receipt,
            &secret,
            entropy,
        )?;
        Ok(Release {
            key_box: key_box.to_cbor(),
            evidence,
            challenge,
            verified,
            appraised: Appraised::Here(appraisal),
        })
    }
}

/// A released image key, with the evidence that it was released for.
#[derive(Debug, Clone)]
pub struct Release {
    /// The key, sealed to the kernel.
    pub key_box: Vec<u8>,
    /// The evidence.
    pub evidence: Vec<u8>,
    /// The challenge that it answers.
    pub challenge: Challenge,
    /// The evidence, verified.
    pub verified: VerifiedKernelEvidence,
    /// Who appraised it.
    pub appraised: Appraised,
}
