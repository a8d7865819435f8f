//! The configuration that opens a segment: with it the control plane rebuilds every column.
//!
//! Version 1 knew signed counters or not, that is Count Sketch or Count-Min, and one heavy part.
//! Version 2 has the base sketch in the place of the sign (so that 0 and 1 mean what they meant),
//! and the heavy part's kind at the end. Version 3 has a seed of 128 bits behind the number of the
//! hash functions; before, both were those of [`Hashing::V1`]. Version 4 knows mirrored tables and
//! codes.

use alloc::vec::Vec;

use ucl_data_plane::mirrored::{MirroredShape, Policy};
use ucl_data_plane::{Base, BloomKind, Config, CounterBits, Hashing, HeavyKind, KeyFormat, ReportRule, Seed, Shape};

use crate::bytes::{Reader, put_varint};
use crate::{MAX_COUNTER_BYTES, WireError};

/// The number of the heavy part that is a mirrored table.
const MIRRORED: u8 = 3;
/// Added to the bits of a code, to tell them from bytes of a key.
const CODE: u8 = 128;

/// Checks that a configuration is within the limits of the format.
pub(crate) fn check(config: &Config) -> Result<(), WireError> {
    config.shape.validate()?;
    let mirrored = matches!(config.shape.heavy, HeavyKind::Mirrored(_));
    let known = match config.keys {
        KeyFormat::Fixed(bytes) => KeyFormat::FIXED_SIZES.contains(&bytes.into()),
        KeyFormat::Digest => !mirrored,
        KeyFormat::Code(bits) => mirrored && (8..=KeyFormat::CODE_BITS).contains(&bits),
    };
    if !known {
        return Err(WireError::Corrupt { what: "key format" });
    }
    let bytes = config.shape.counter_bits.bytes(config.shape.geometry().counters());
    limit("bytes of counters", bytes, MAX_COUNTER_BYTES)
}

/// Checks that a reader that takes so many counters at most takes a configuration.
pub(crate) fn check_counters(config: &Config, most: usize) -> Result<(), WireError> {
    limit("counters", config.shape.geometry().counters(), most)?;
    // A mirror holds four bytes for each slot.
    match config.shape.heavy {
        HeavyKind::Mirrored(table) => limit("slots", table.slots(), most),
        _ => Ok(()),
    }
}

fn limit(what: &'static str, value: usize, most: usize) -> Result<(), WireError> {
    let (value, most) = (value as u64, most as u64);
    if value > most { Err(WireError::TooLarge { what, value, most }) } else { Ok(()) }
}

pub(crate) fn write(config: &Config, out: &mut Vec<u8>) {
    let shape = &config.shape;
    out.push(match config.keys {
        KeyFormat::Fixed(bytes) => bytes,
        KeyFormat::Digest => 0,
        KeyFormat::Code(bits) => CODE | bits,
    });
    out.push(match config.rule {
        ReportRule::Paper => 0,
        ReportRule::New => 1,
        ReportRule::Refresh => 2,
        ReportRule::Rotate => 3,
        ReportRule::Generations => 4,
    });
    out.push(config.seed.hashing().number());
    out.extend_from_slice(&config.seed.value().to_le_bytes());
    put_varint(out, shape.slots.into());
    put_varint(out, shape.vote_ratio.into());
    put_varint(out, shape.rows.into());
    put_varint(out, shape.width.into());
    out.push(shape.counter_bits.bits() as u8);
    out.push(match shape.base {
        Base::CountMin => 0,
        Base::CountSketch => 1,
        Base::FlowRadar => 2,
    });
    out.push(match shape.bloom {
        BloomKind::Classic => 0,
        BloomKind::SplitBlock => 1,
        BloomKind::Recent => 2,
    });
    put_varint(out, shape.bloom_bits.into());
    out.push(shape.bloom_hashes);
    out.push(match shape.heavy {
        HeavyKind::Voting => 0,
        HeavyKind::Augmented => 1,
        HeavyKind::Elastic => 2,
        HeavyKind::Mirrored(_) => MIRRORED,
    });
    if let HeavyKind::Mirrored(MirroredShape { sets, count_bits, buffer, policy }) = shape.heavy {
        put_varint(out, sets.into());
        out.push(count_bits);
        put_varint(out, buffer.into());
        out.push(match policy {
            Policy::Skewed => 0,
            Policy::Flows => 1,
        });
    }
}

pub(crate) fn read(reader: &mut Reader<'_>, version: u8) -> Result<Config, WireError> {
    let keys = match reader.byte("key format")? {
        0 => KeyFormat::Digest,
        bits if bits >= CODE && version >= 4 => KeyFormat::Code(bits - CODE),
        bytes => KeyFormat::Fixed(bytes),
    };
    let rule = match reader.byte("report rule")? {
        0 => ReportRule::Paper,
        1 => ReportRule::New,
        2 => ReportRule::Refresh,
        3 => ReportRule::Rotate,
        4 => ReportRule::Generations,
        _ => return Err(WireError::Corrupt { what: "report rule" }),
    };
    let seed = read_seed(reader, version)?;
    let mut shape = Shape {
        heavy: HeavyKind::Voting,
        slots: reader.bounded("slots", u32::MAX.into())? as u32,
        vote_ratio: reader.bounded("vote ratio", u32::MAX.into())? as u32,
        rows: reader.bounded("rows", u16::MAX.into())? as u16,
        width: reader.bounded("width", u32::MAX.into())? as u32,
        counter_bits: CounterBits::new(reader.byte("counter bits")?.into())?,
        base: match reader.byte("base sketch")? {
            0 => Base::CountMin,
            1 => Base::CountSketch,
            2 if version >= 2 => Base::FlowRadar,
            _ => return Err(WireError::Corrupt { what: "base sketch" }),
        },
        bloom: match reader.byte("Bloom kind")? {
            0 => BloomKind::Classic,
            1 => BloomKind::SplitBlock,
            2 if version >= 4 => BloomKind::Recent,
            _ => return Err(WireError::Corrupt { what: "Bloom kind" }),
        },
        bloom_bits: reader.bounded("Bloom bits", u32::MAX.into())? as u32,
        bloom_hashes: reader.byte("Bloom hashes")?,
    };
    if version >= 2 {
        shape.heavy = match reader.byte("heavy part")? {
            0 => HeavyKind::Voting,
            1 => HeavyKind::Augmented,
            2 => HeavyKind::Elastic,
            MIRRORED if version >= 4 => HeavyKind::Mirrored(MirroredShape {
                sets: reader.bounded("sets", u32::MAX.into())? as u32,
                count_bits: reader.byte("bits of a count")?,
                buffer: reader.bounded("bytes of the buffer", u32::MAX.into())? as u32,
                policy: match reader.byte("policy")? {
                    0 => Policy::Skewed,
                    1 => Policy::Flows,
                    _ => return Err(WireError::Corrupt { what: "policy" }),
                },
            }),
            _ => return Err(WireError::Corrupt { what: "heavy part" }),
        };
    }
    let config = Config { keys, shape, rule, seed };
    check(&config)?;
    Ok(config)
}

fn read_seed(reader: &mut Reader<'_>, version: u8) -> Result<Seed, WireError> {
    if version < 3 {
        return Ok(Seed::v1(u64::from_le_bytes(reader.array("seed")?)));
    }
    let corrupt = WireError::Corrupt { what: "hash functions" };
    let hashing = Hashing::from_number(reader.byte("hash functions")?).ok_or(corrupt)?;
    let value = u128::from_le_bytes(reader.array("seed")?);
    let seed = Seed::from(value).with_hashing(hashing);
    if seed.value() == value { Ok(seed) } else { Err(WireError::Corrupt { what: "seed" }) }
}
