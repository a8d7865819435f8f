//! The file around the sections: which there are, how long they are, and whether they are whole.

use super::{FORMAT_VERSION, LoadError, Section};

/// Starts every state file. As PNG's: not text, and the line ends show what a transfer as text has
/// done to it.
pub(super) const MAGIC: [u8; 8] = *b"\x89UCL\r\n\x1a\n";
/// Magic, version, number of sections, length of the file.
pub(super) const HEAD: usize = 24;
/// Number, checksum and length of a section.
pub(super) const ENTRY: usize = 16;
/// The checksum of the file.
pub(super) const TAIL: usize = 8;

/// Lays sections end to end, with a table before them and a checksum behind.
pub(super) fn pack(sections: &[(Section, Vec<u8>)]) -> Vec<u8> {
    let content: usize = sections.iter().map(|(_, bytes)| bytes.len()).sum();
    let length = HEAD + ENTRY * sections.len() + content + TAIL;
    let mut file = Vec::with_capacity(length);
    file.extend(MAGIC);
    file.extend(FORMAT_VERSION.to_le_bytes());
    file.extend((sections.len() as u32).to_le_bytes());
    file.extend((length as u64).to_le_bytes());
    for (section, bytes) in sections {
        file.extend((*section as u32).to_le_bytes());
        file.extend(crc32fast::hash(bytes).to_le_bytes());
        file.extend((bytes.len() as u64).to_le_bytes());
    }
    for (_, bytes) in sections {
        file.extend(bytes);
    }
    let checksum = xxhash_rust::xxh3::xxh3_64(&file);
    file.extend(checksum.to_le_bytes());
    file
}

/// Returns the number of bytes that follow a head; none if it is no head of a state file.
pub(super) fn bytes_after(head: &[u8]) -> u64 {
    match head.first_chunk::<HEAD>() {
        Some(head) if head.starts_with(&MAGIC) => u64::from_le_bytes(part(head, 16)).saturating_sub(HEAD as u64),
        _ => 0,
    }
}

/// A file that is whole: its sections, each at most once.
pub(super) struct Sections<'a> {
    pub(super) version: u32,
    sections: Vec<(Section, &'a [u8])>,
}

impl<'a> Sections<'a> {
    /// Takes a file apart, and checks every length and checksum.
    pub(super) fn unpack(file: &'a [u8]) -> Result<Self, LoadError> {
        let found = file.len() as u64;
        let begun = file.len().min(MAGIC.len());
        if file.is_empty() || file[..begun] != MAGIC[..begun] {
            return Err(LoadError::NotAState);
        }
        let short = |expected: usize| LoadError::Truncated { found, expected: expected as u64 };
        let head: &[u8; HEAD] = file.first_chunk().ok_or_else(|| short(HEAD + TAIL))?;
        let version = u32::from_le_bytes(part(head, 8));
        if version > FORMAT_VERSION {
            return Err(LoadError::NewerVersion { found: version });
        }
        let damaged = |why: String| LoadError::Table { why };
        if version == 0 {
            return Err(damaged("there is no version 0".into()));
        }
        let count = u32::from_le_bytes(part(head, 12));
        let length = u64::from_le_bytes(part(head, 16));
        if found < length {
            return Err(LoadError::Truncated { found, expected: length });
        }
        if found > length {
            return Err(LoadError::TrailingBytes { bytes: found - length });
        }
        if count as usize > Section::ALL.len() {
            return Err(damaged(format!("{count} sections, of {} that there are", Section::ALL.len())));
        }
        let Some((table, rest)) = file[HEAD..].split_at_checked(ENTRY * count as usize) else {
            return Err(damaged(format!("no room for {count} sections in {found} bytes")));
        };
        let Some((mut content, checksum)) = rest.split_last_chunk::<TAIL>() else {
            return Err(damaged(format!("no room for a checksum in {found} bytes")));
        };
        let mut sections: Vec<(Section, &[u8])> = Vec::new();
        for entry in table.as_chunks::<ENTRY>().0 {
            let number = u32::from_le_bytes(part(entry, 0));
            let length = u64::from_le_bytes(part(entry, 8));
            let known = Section::ALL.into_iter().find(|&section| section as u32 == number);
            let section = known.ok_or_else(|| damaged(format!("there is no section {number}")))?;
            if sections.iter().any(|&(other, _)| other == section) {
                return Err(damaged(format!("two sections '{section}'")));
            }
            let taken = usize::try_from(length).ok().and_then(|length| content.split_at_checked(length));
            let Some((bytes, later)) = taken else {
                return Err(damaged(format!("section '{section}' of {length} bytes, but {} are left", content.len())));
            };
            if crc32fast::hash(bytes) != u32::from_le_bytes(part(entry, 4)) {
                return Err(LoadError::SectionChecksum { section });
            }
            sections.push((section, bytes));
            content = later;
        }
        if !content.is_empty() {
            return Err(damaged(format!("{} bytes belong to no section", content.len())));
        }
        if xxhash_rust::xxh3::xxh3_64(&file[..file.len() - TAIL]) != u64::from_le_bytes(*checksum) {
            return Err(LoadError::Checksum);
        }
        Ok(Self { version, sections })
    }

    /// A section's bytes, if it is there.
    pub(super) fn get(&self, section: Section) -> Option<&'a [u8]> {
        self.sections.iter().find(|(other, _)| *other == section).map(|&(_, bytes)| bytes)
    }

    /// All sections, in the order of the file.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Section, &'a [u8])> + '_ {
        self.sections.iter().copied()
    }
}

fn part<const N: usize, const M: usize>(bytes: &[u8; N], at: usize) -> [u8; M] {
    std::array::from_fn(|i| bytes[at + i])
}

/// Repairs lengths and checksums of a file whose content was changed, as far as its table can be
/// followed: what a fuzzer needs to get past them, and nobody else.
#[doc(hidden)]
pub fn mend(file: &mut [u8]) {
    let Some(tail) = file.len().checked_sub(TAIL).filter(|&tail| tail >= HEAD) else { return };
    file[..8].copy_from_slice(&MAGIC);
    let length = file.len() as u64;
    file[16..24].copy_from_slice(&length.to_le_bytes());
    let count = u32::from_le_bytes([file[12], file[13], file[14], file[15]]) as usize;
    let Some(mut start) = count.checked_mul(ENTRY).and_then(|table| table.checked_add(HEAD)) else { return };
    for entry in (HEAD..start.min(tail)).step_by(ENTRY) {
        let Some(bytes) = file.get(entry + 8..entry + 16) else { return };
        let length = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        // The last section takes what is left.
        let last = entry + ENTRY >= HEAD + ENTRY * count;
        let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX)).min(tail);
        let end = if last { tail } else { end };
        if start > end {
            return;
        }
        let checksum = crc32fast::hash(&file[start..end]);
        file[entry + 4..entry + 8].copy_from_slice(&checksum.to_le_bytes());
        file[entry + 8..entry + 16].copy_from_slice(&((end - start) as u64).to_le_bytes());
        start = end;
    }
    let checksum = xxhash_rust::xxh3::xxh3_64(&file[..tail]);
    file[tail..].copy_from_slice(&checksum.to_le_bytes());
}
