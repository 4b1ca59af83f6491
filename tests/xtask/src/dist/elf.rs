//! Checks that a program depends only on the kernel.

use crate::process::{Context, Result, bail, ensure};
use elf::abi::PT_INTERP;
use elf::{ElfBytes, endian::LittleEndian, file::Class};

/// A 64-bit little-endian ELF program without an interpreter, so that no library is loaded with it.
///
/// # Errors
/// The property that is missing.
pub fn is_static(bytes: &[u8]) -> Result<()> {
    let file = ElfBytes::<LittleEndian>::minimal_parse(bytes);
    let file = file.context("not a 64-bit little-endian ELF program")?;
    ensure!(file.ehdr.class == Class::ELF64, "not a 64-bit little-endian ELF program");
    let segments = file.segments().context("the program has no segments")?;
    if let Some(interpreter) = segments.iter().find(|segment| segment.p_type == PT_INTERP) {
        let name = String::from_utf8_lossy(file.segment_data(&interpreter)?);
        bail!("the program is not static: it asks for {:?}", name.trim_end_matches('\0'));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_static;

    #[test]
    fn dynamic_programs_are_refused() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let error = is_static(&own).unwrap_err().to_string();
        assert!(error.contains("ld-linux"), "tests are linked dynamically: {error}");
        // The same program without its interpreter.
        let table = u64::from_le_bytes(own[32..40].try_into().unwrap()) as usize;
        let mut headers = (0..own[56] as usize).map(|n| table + n * 56);
        let mut changed = own.clone();
        changed[headers.find(|at| own[*at] == 3).unwrap()] = 0;
        is_static(&changed).unwrap();
        assert!(is_static(b"#!/bin/sh").is_err());
        assert!(is_static(&own[..64]).is_err());
    }
}
