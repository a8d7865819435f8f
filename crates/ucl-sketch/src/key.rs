//! Types whose values can be counted.
//!
//! The planes know bytes. A [`Key`] says how its values become bytes, so that different values give
//! different bytes, and how the bytes become a value again.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Deref;

/// A type whose values can be counted: text, bytes, integers, addresses, and tuples of them.
///
/// Keys that all take 4, 8, 13 or 16 bytes are counted fastest and in the least memory, and every
/// answer has its key. A five-tuple `(Ipv4Addr, Ipv4Addr, u16, u16, u8)` takes 13. Keys of other
/// sizes, such as the 6 bytes of `(Ipv4Addr, u16)`, are counted like text ([`KeyName`]).
///
/// ```
/// use std::net::Ipv4Addr;
/// use ucl_sketch::UclSketch;
///
/// type Flow = (Ipv4Addr, Ipv4Addr, u16, u16, u8);
/// let mut sketch = UclSketch::builder().keys::<Flow>().build()?;
/// let flow = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2), 443, 51_234, 6);
/// sketch.insert(flow)?;
/// assert_eq!(sketch.view().top(1)[0].known_key(), Some(&flow));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Key: Sized {
    /// Bytes of every encoded value, if all have the same number.
    const SIZE: Option<usize>;

    /// Calls `f` with the encoded value. Different values must give different bytes.
    fn with_bytes<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T;

    /// Returns the value that these bytes encode, if any does.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// Type that can be inserted and asked for where keys are of type `K`: a key, a reference to one,
/// or, for text and bytes, a slice.
pub trait AsKey<K> {
    /// Calls `f` with the encoded key.
    fn with_key_bytes<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T;
}

impl<K: Key> AsKey<K> for K {
    #[inline]
    fn with_key_bytes<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T {
        self.with_bytes(f)
    }
}

impl<K: Key> AsKey<K> for &K {
    #[inline]
    fn with_key_bytes<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T {
        self.with_bytes(f)
    }
}

/// Any bytes, text as a rule: the keys of a sketch unless [`Builder::keys`](crate::Builder::keys)
/// says otherwise.
///
/// ```
/// use ucl_sketch::ByteKey;
/// assert_eq!(ByteKey::from("tea").to_string(), "tea");
/// assert_eq!(ByteKey::from(&b"\xff\n"[..]).to_string(), "\\xff\\n");
/// assert_eq!(&*ByteKey::from("tea"), b"tea");
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteKey(Vec<u8>);

impl ByteKey {
    /// Returns the key as text, if it is valid UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Returns the bytes of the key.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl Deref for ByteKey {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for ByteKey {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for ByteKey {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<&str> for ByteKey {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl PartialEq<str> for ByteKey {
    fn eq(&self, text: &str) -> bool {
        self.0 == text.as_bytes()
    }
}

impl PartialEq<&str> for ByteKey {
    fn eq(&self, text: &&str) -> bool {
        self == *text
    }
}

/// Text as it is; bytes that are not UTF-8, and control characters, escaped.
impl fmt::Display for ByteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_str() {
            Some(text) if !text.chars().any(char::is_control) => f.pad(text),
            _ => f.pad(&self.0.escape_ascii().to_string()),
        }
    }
}

impl fmt::Debug for ByteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

impl Key for ByteKey {
    const SIZE: Option<usize> = None;

    #[inline]
    fn with_bytes<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T {
        f(&self.0)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(bytes.into())
    }
}

impl Key for String {
    const SIZE: Option<usize> = None;

    #[inline]
    fn with_bytes<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T {
        f(self.as_bytes())
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

/// Keys of type `$key` from values of other types, by their bytes.
macro_rules! as_key {
    ($key:ty: $([$($generics:tt)*] $type:ty => $bytes:expr),* $(,)?) => {$(
        impl<$($generics)*> AsKey<$key> for $type {
            #[inline]
            fn with_key_bytes<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T {
                let bytes: fn(&Self) -> &[u8] = $bytes;
                f(bytes(self))
            }
        }
    )*};
}
as_key!(ByteKey:
    [] &[u8] => |key| key,
    [const N: usize] [u8; N] => |key| key,
    [const N: usize] &[u8; N] => |key| *key,
    [] Vec<u8> => |key| key,
    [] &Vec<u8> => |key| key,
    [] &str => |key| key.as_bytes(),
    [] String => |key| key.as_bytes(),
    [] &String => |key| key.as_bytes(),
);
as_key!(String: [] &str => |key| key.as_bytes());

/// Numbers, little-endian.
macro_rules! number {
    ($($type:ty),*) => {$(
        impl Key for $type {
            const SIZE: Option<usize> = Some(size_of::<$type>());

            #[inline]
            fn with_bytes<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T {
                f(&self.to_le_bytes())
            }

            fn decode(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(<$type>::from_le_bytes)
            }
        }
    )*};
}
number!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128);

macro_rules! address {
    ($($type:ty: $size:literal),*) => {$(
        impl Key for $type {
            const SIZE: Option<usize> = Some($size);

            #[inline]
            fn with_bytes<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T {
                f(&self.octets())
            }

            fn decode(bytes: &[u8]) -> Option<Self> {
                <[u8; $size]>::try_from(bytes).ok().map(Self::from)
            }
        }
    )*};
}
address!(Ipv4Addr: 4, Ipv6Addr: 16);

/// 4 or 16 bytes: `1.2.3.4` and `::ffff:1.2.3.4` are different keys.
impl Key for IpAddr {
    const SIZE: Option<usize> = None;

    #[inline]
    fn with_bytes<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T {
        match self {
            Self::V4(address) => address.with_bytes(f),
            Self::V6(address) => address.with_bytes(f),
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        match bytes.len() {
            4 => Ipv4Addr::decode(bytes).map(Self::V4),
            _ => Ipv6Addr::decode(bytes).map(Self::V6),
        }
    }
}

/// Takes one part off the front of an encoded tuple. Parts that differ in length have theirs before
/// them, but for the last.
fn take<'a, K: Key>(bytes: &mut &'a [u8], last: bool) -> Option<&'a [u8]> {
    let length = match K::SIZE {
        Some(size) => size,
        None if last => bytes.len(),
        None => {
            let (length, rest) = bytes.split_first_chunk::<4>()?;
            *bytes = rest;
            u32::from_le_bytes(*length) as usize
        }
    };
    let (part, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(part)
}

fn put<K: Key>(key: &K, out: &mut Vec<u8>, last: bool) {
    key.with_bytes(|bytes| {
        if K::SIZE.is_none() && !last {
            // No key that can be counted is longer than 65,535 bytes.
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        }
        out.extend_from_slice(bytes);
    });
}

const fn sum(sizes: &[Option<usize>]) -> Option<usize> {
    let mut total = 0;
    let mut i = 0;
    while i < sizes.len() {
        match sizes[i] {
            Some(size) => total += size,
            None => return None,
        }
        i += 1;
    }
    Some(total)
}

macro_rules! tuple {
    ($($name:ident: $at:tt),* ; $last:ident: $last_at:tt) => {
        impl<$($name: Key,)* $last: Key> Key for ($($name,)* $last,) {
            const SIZE: Option<usize> = sum(&[$($name::SIZE,)* $last::SIZE]);

            fn with_bytes<T>(&self, f: impl FnOnce(&[u8]) -> T) -> T {
                let mut bytes = Vec::with_capacity(Self::SIZE.unwrap_or(64));
                $(put(&self.$at, &mut bytes, false);)*
                put(&self.$last_at, &mut bytes, true);
                f(&bytes)
            }

            fn decode(mut bytes: &[u8]) -> Option<Self> {
                let key = ($($name::decode(take::<$name>(&mut bytes, false)?)?,)* $last::decode(take::<$last>(&mut bytes, true)?)?,);
                bytes.is_empty().then_some(key)
            }
        }
    };
}
tuple!(A: 0; B: 1);
tuple!(A: 0, B: 1; C: 2);
tuple!(A: 0, B: 1, C: 2; D: 3);
tuple!(A: 0, B: 1, C: 2, D: 3; E: 4);

/// The key of an answer: known in full, or by its digest or code alone.
///
/// A long key whose name never arrived is known only by its code in mode exact, or by its digest in
/// the other modes. That is rare: the filter that remembers which names were sent must have taken
/// it for another one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyName<K> {
    /// The key.
    Known(K),
    /// The digest that stands for it.
    Digest([u8; 16]),
    /// The code that stands for it.
    Code([u8; 8]),
}

impl<K> KeyName<K> {
    /// Returns the key, if it is known in full.
    pub fn known(&self) -> Option<&K> {
        match self {
            Self::Known(key) => Some(key),
            Self::Digest(_) | Self::Code(_) => None,
        }
    }
}

impl<K: fmt::Display> fmt::Display for KeyName<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(key) => key.fmt(f),
            Self::Digest(digest) => f.pad(&format!("digest:{:032x}", u128::from_be_bytes(*digest))),
            Self::Code(code) => f.pad(&format!("code:{:016x}", u64::from_be_bytes(*code))),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::*;

    fn comes_back<K: Key + PartialEq + Debug>(key: K) {
        key.with_bytes(|bytes| {
            assert!(K::SIZE.is_none_or(|size| size == bytes.len()), "{key:?}");
            assert_eq!(K::decode(bytes).as_ref(), Some(&key));
        });
    }

    proptest! {
        #[test]
        fn every_key_comes_back(number: u32, long: i128, text: String, other: String, address: [u8; 16]) {
            comes_back(number);
            comes_back(long);
            comes_back(text.clone());
            comes_back(ByteKey::from(&address[..]));
            comes_back(IpAddr::from(address));
            comes_back(IpAddr::from([address[0], 1, 2, 3]));
            comes_back((number, text.clone()));
            comes_back((text.clone(), number));
            comes_back((text, other, number));
            comes_back((Ipv4Addr::from(number), Ipv4Addr::from(!number), 1u16, number as u16, 6u8));
        }

        /// What is cut differently is another key.
        #[test]
        fn different_pairs_of_text_have_different_bytes(one: (String, String), two: (String, String)) {
            let bytes = |pair: &(String, String)| pair.with_bytes(<[u8]>::to_vec);
            prop_assert_eq!(bytes(&one) == bytes(&two), one == two);
        }
    }

    #[test]
    fn bytes_of_another_type_are_no_key() {
        assert_eq!(u32::decode(b"abc"), None);
        assert_eq!(String::decode(b"\xff"), None);
        assert_eq!(<(u32, u8)>::decode(b"12345678"), None);
        assert_eq!(<(String, u8)>::decode(b"\x09\0\0\0ab"), None);
    }
}
