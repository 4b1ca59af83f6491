//! cbor
