//! mailbox
