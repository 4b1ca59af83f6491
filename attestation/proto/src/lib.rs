//! Wire types and formats of shef: evidence, certificates, image container, key release, Load Key
//! and register channel.
//!
//! Pure: no I/O, no clock, no entropy source; on Unix, sealing types check their process id
//! ([`fork`]). External bytes are parsed strictly: bounded, canonical, no trailing bytes.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

pub mod calendar;
pub mod cbor;
pub mod cert;
pub mod channel;
pub mod close;
pub mod code;
pub mod config;
pub mod cose;
pub mod crypto;
mod der;
pub mod entropy;
pub mod event;
pub mod evidence;
pub mod fault;
pub mod fork;
pub mod hpke_suite;
pub mod image;
pub mod load;
pub mod mailbox;
pub mod name;
pub mod receipt;
pub mod release;
pub mod service;
pub mod text;

const PARTS: &[&[code::Code]] = &[
    cbor::CborError::CODES,
    cose::CoseError::CODES,
    cert::CertError::CODES,
    evidence::EvidenceError::CODES,
    image::ImageError::CODES,
    release::ReleaseError::CODES,
    receipt::ReceiptError::CODES,
    event::EventError::CODES,
    mailbox::MailboxError::CODES,
    close::CloseError::CODES,
    config::ConfigError::CODES,
    load::LoadError::CODES,
    channel::ChannelError::CODES,
    hpke_suite::HpkeError::CODES,
    hpke_suite::SenderError::CODES,
    service::Kind::CODES,
];

/// All codes of this crate.
pub const CODES: &[code::Code] = &code::join::<{ code::count(PARTS) }>(PARTS);
