//! The sealed-memory format: chunks, versions, tags
