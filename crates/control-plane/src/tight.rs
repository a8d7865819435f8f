//! Vectors with one entry per known key grow by an eighth instead of doubling: server memory is
//! counted per key.

/// `Vec::push`, with little to spare.
pub(crate) fn push<T>(vector: &mut Vec<T>, value: T) {
    make_room(vector, vector.len() + 1);
    vector.push(value);
}

/// `Vec::resize` to more entries, with little to spare.
pub(crate) fn grow<T: Clone>(vector: &mut Vec<T>, len: usize, value: T) {
    make_room(vector, len);
    vector.resize(len, value);
}

/// `Vec::extend_from_slice`, with little to spare.
pub(crate) fn extend<T: Clone>(vector: &mut Vec<T>, values: &[T]) {
    make_room(vector, vector.len() + values.len());
    vector.extend_from_slice(values);
}

fn make_room<T>(vector: &mut Vec<T>, len: usize) {
    if len > vector.capacity() {
        vector.reserve_exact((len - vector.len()).max(vector.len() / 8).max(64));
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn there_is_little_to_spare() {
        let mut vector = Vec::new();
        for n in 0..10_000 {
            super::push(&mut vector, n);
            assert!(vector.capacity() <= vector.len() + (vector.len() / 8).max(64));
        }
        assert!(vector.iter().copied().eq(0..10_000));
    }
}
