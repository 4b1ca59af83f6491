//! Device trait, URIs and errors
