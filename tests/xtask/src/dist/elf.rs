//! Checks that a program depends only on the kernel.

const PT_INTERP: u32 = 3;

/// A 64-bit little-endian ELF program without an interpreter, so that no library is loaded with it.
///
/// # Errors
/// The property that is missing.
pub fn is_static(bytes: &[u8]) -> Result<(), String> {
    let at = |offset: usize, len: usize| {
        let field = bytes.get(offset..offset + len).ok_or("the program is cut off")?;
        Ok::<u64, &str>(field.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)))
    };
    if bytes.get(..6) != Some(&[0x7f, b'E', b'L', b'F', 2, 1]) {
        return Err("not a 64-bit little-endian ELF program".to_owned());
    }
    let (table, size, count) = (at(32, 8)? as usize, at(54, 2)? as usize, at(56, 2)? as usize);
    for header in (0..count).map(|n| table + n * size) {
        if at(header, 4)? == u64::from(PT_INTERP) {
            let (from, len) = (at(header + 8, 8)? as usize, at(header + 32, 8)? as usize);
            let name = bytes.get(from..from + len).unwrap_or_default();
            return Err(format!(
                "the program is not static: it asks for {:?}",
                String::from_utf8_lossy(name).trim_end_matches('\0')
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::is_static;

    #[test]
    fn dynamic_programs_are_told_from_static_ones() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(is_static(&own).unwrap_err().contains("ld-linux"), "tests are linked dynamically");
        // The same program without its interpreter.
        let table = u64::from_le_bytes(own[32..40].try_into().unwrap()) as usize;
        let mut changed = own.clone();
        let header =
            (0..own[56] as usize).map(|n| table + n * 56).find(|at| own[*at] == 3).unwrap();
        changed[header] = 0;
        assert_eq!(is_static(&changed), Ok(()));
        assert!(is_static(b"#!/bin/sh").is_err());
        assert!(is_static(&own[..64]).is_err());
    }
}
