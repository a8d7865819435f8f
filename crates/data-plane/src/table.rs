//! Memory whose size comes from a setting: asked for, and an error where there is none.

use alloc::vec::Vec;

/// The system has not enough memory for a table.
///
/// ```
/// let error = ucl_data_plane::filled(usize::MAX / 8, 0u64).unwrap_err();
/// assert!(error.to_string().starts_with("out of memory: a table of "));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: a table of {bytes} bytes does not fit")]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub bytes: usize,
}

/// Returns a vector of `len` times `value`, or an error where `vec![value; len]` would abort the
/// process.
pub fn filled<T: Clone>(len: usize, value: T) -> Result<Vec<T>, OutOfMemory> {
    let mut table = Vec::new();
    reserve(&mut table, len)?;
    table.resize(len, value);
    Ok(table)
}

/// Makes room for exactly `more` entries in a vector, or returns an error.
pub fn reserve<T>(table: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    let bytes = more.saturating_mul(size_of::<T>());
    table.try_reserve_exact(more).map_err(|_| OutOfMemory { bytes })
}
