//! Boot code and Security Kernel: measure, load, quote
