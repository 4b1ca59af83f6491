//! Requests of the parties to the Security Kernel, through the host.

use shef_proto::image::Container;
use shef_proto::mailbox::{Answer, MailboxError, Request, Status, evidence_answer, load_requests};

use super::Host;
use crate::SdkError;
use crate::verifier::Challenge;

impl Host {
    /// Fetches evidence of the Shield that answers `challenge`.
    ///
    /// # Errors
    /// Kernel and host errors.
    pub fn shield_evidence(&mut self, challenge: &Challenge) -> Result<Vec<u8>, SdkError> {
        let (nonce, audience) = (challenge.nonce().to_vec(), challenge.audience().to_owned());
        let answer = self.kernel(&Request::ShieldEvidence { nonce, audience }.encode())?;
        Ok(evidence_answer(&answer)?)
    }

    /// Fetches evidence of the kernel that answers `challenge`.
    ///
    /// # Errors
    /// Kernel and host errors.
    pub fn kernel_evidence(&mut self, challenge: &Challenge) -> Result<Vec<u8>, SdkError> {
        let (nonce, audience) = (challenge.nonce().to_vec(), challenge.audience().to_owned());
        let answer = self.kernel(&Request::KernelEvidence { nonce, audience }.encode())?;
        Ok(evidence_answer(&answer)?)
    }

    /// Makes the kernel load an image under a released key.
    ///
    /// # Errors
    /// Kernel and host errors, and a malformed container.
    pub fn load_image(
        &mut self,
        container: impl AsRef<[u8]>,
        key_box: impl AsRef<[u8]>,
    ) -> Result<LoadedImage, SdkError> {
        let container = Container::parse(container.as_ref())?;
        for request in load_requests(&container, key_box.as_ref()) {
            let answer = self.kernel(&request.encode())?;
            match Answer::decode(&answer)?.into_result()? {
                Answer::Done => {}
                Answer::Loaded { image_digest, config_digest } => {
                    return Ok(LoadedImage { image_digest, config_digest });
                }
                _ => return Err(MailboxError::Answer.into()),
            }
        }
        Err(MailboxError::Answer.into())
    }

    /// Requests a new seed for the Shield from the kernel, so that another session can begin.
    ///
    /// # Errors
    /// Kernel and host errors.
    pub fn new_session(&mut self) -> Result<(), SdkError> {
        self.done(Request::NewSession)
    }

    /// Makes the kernel wipe the Shield and forget image and session.
    ///
    /// # Errors
    /// Kernel and host errors.
    pub fn reset_kernel(&mut self) -> Result<(), SdkError> {
        self.done(Request::Reset)
    }

    fn done(&mut self, request: Request) -> Result<(), SdkError> {
        let answer = self.kernel(&request.encode())?;
        match Answer::decode(&answer)?.into_result()? {
            Answer::Done => Ok(()),
            _ => Err(MailboxError::Answer.into()),
        }
    }

    /// Fetches the close record of the ended session.
    ///
    /// # Errors
    /// Kernel and host errors.
    pub fn close_record(&mut self) -> Result<Vec<u8>, SdkError> {
        let answer = self.kernel(&Request::CloseRecord.encode())?;
        match Answer::decode(&answer)?.into_result()? {
            Answer::CloseRecord(record) => Ok(record),
            _ => Err(MailboxError::Answer.into()),
        }
    }

    /// The kernel's status. A hint.
    ///
    /// # Errors
    /// Kernel and host errors.
    pub fn kernel_status(&mut self) -> Result<Status, SdkError> {
        let answer = self.kernel(&Request::Status.encode())?;
        match Answer::decode(&answer)?.into_result()? {
            Answer::Status(status) => Ok(status),
            _ => Err(MailboxError::Answer.into()),
        }
    }

    /// Fetches the device's certificates, leaf first.
    ///
    /// # Errors
    /// Kernel and host errors.
    pub fn certificates(&mut self) -> Result<Vec<Vec<u8>>, SdkError> {
        let answer = self.kernel(&Request::Certificates.encode())?;
        match Answer::decode(&answer)?.into_result()? {
            Answer::Certificates(list) => Ok(list),
            _ => Err(MailboxError::Answer.into()),
        }
    }
}

/// Digests that the kernel reports as loaded. A hint for the host: the parties believe evidence.
#[derive(Debug, Clone, Copy)]
pub struct LoadedImage {
    /// Image digest.
    pub image_digest: [u8; 32],
    /// Digest of the configuration that the Shield shows.
    pub config_digest: [u8; 32],
}
