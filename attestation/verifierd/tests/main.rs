//! The running service, in one program: each linked by itself is minutes of linking.

mod binary;
mod clients;
mod common;
mod compat;
mod ended;
mod exchanges;
mod fleet;
mod kbs;
mod operators;
mod page;
mod policies;
mod postgres;
mod release;
mod service;
mod spellings;
