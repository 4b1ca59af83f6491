//! End-to-end tests: the same flow on every back end.
