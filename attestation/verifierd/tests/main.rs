//! All tests of the running service in one program: linking each separately takes minutes.

/// As in the service.
#[global_allocator]
static ALLOCATOR: shef_erase::Erasing = shef_erase::Erasing;

mod beside;
mod binary;
mod clients;
mod compat;
mod deletes;
mod deployment;
mod ended;
mod exchanges;
mod fleet;
mod growth;
mod kbs;
mod logs;
mod monitoring;
mod oidc;
mod operators;
mod page;
mod places;
mod policies;
mod postgres;
mod reference;
mod release;
mod residue;
mod revocation;
mod service;
mod spellings;
mod stores;
mod token;
mod traces;
