//! Requests of the parties to the Security Kernel, through the host.

use shef_proto::image::Container;
use shef_proto::mailbox::{Answer, MailboxError, Request, Status, evidence_answer, load_requests};

use crate::{Challenge, Host, MessageKind, SdkError};

impl Host {
    /// Fetches evidence of the Shield that answers `challenge`.
    ///
    /// # Errors
    /// Kernel and host errors.
    pub fn shield_evidence(&mut self, challenge: &Challenge) -> Result<Vec<u8>, SdkError> {
        let nonce = self.carry(MessageKind::Nonce, challenge.nonce().to_vec())?;
        let answer = self.kernel(
            Request::ShieldEvidence { nonce, audience: challenge.audience().to_owned() }.encode(),
        )?;
        let evidence = evidence_answer(&answer)?;
        self.carry(MessageKind::ShieldEvidence, evidence)
    }

    /// Fetches evidence of the kernel that answers `challenge`.
    ///
    /// # Errors
    /// Kernel and host errors.
    pub fn kernel_evidence(&mut self, challenge: &Challenge) -> Result<Vec<u8>, SdkError> {
        let nonce = self.carry(MessageKind::Nonce, challenge.nonce().to_vec())?;
        let answer = self.kernel(
            Request::KernelEvidence { nonce, audience: challenge.audience().to_owned() }.encode(),
        )?;
        let evidence = evidence_answer(&answer)?;
        self.carry(MessageKind::KernelEvidence, evidence)
    }

    /// Makes the kernel load an image under a released key.
    ///
    /// # Errors
    /// Kernel and host errors, and a malformed container.
    pub fn load_image(
        &mut self,
        container: Vec<u8>,
        key_box: Vec<u8>,
    ) -> Result<LoadedImage, SdkError> {
        let key_box = self.carry(MessageKind::Release, key_box)?;
        let container = self.carry(MessageKind::Image, container)?;
        let container = Container::parse(&container)?;
        for request in load_requests(&container, &key_box) {
            let answer = self.kernel(request.encode())?;
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
        let answer = self.kernel(request.encode())?;
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
        let answer = self.kernel(Request::CloseRecord.encode())?;
        match Answer::decode(&answer)?.into_result()? {
            Answer::CloseRecord(record) => self.carry(MessageKind::CloseRecord, record),
            _ => Err(MailboxError::Answer.into()),
        }
    }

    /// The kernel's status. A hint.
    ///
    /// # Errors
    /// Kernel and host errors.
    pub fn kernel_status(&mut self) -> Result<Status, SdkError> {
        let answer = self.kernel(Request::Status.encode())?;
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
        let answer = self.kernel(Request::Certificates.encode())?;
        match Answer::decode(&answer)?.into_result()? {
            Answer::Certificates(list) => {
                list.into_iter().map(|der| self.carry(MessageKind::Certificates, der)).collect()
            }
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
