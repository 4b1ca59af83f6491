//! hpke_suite
