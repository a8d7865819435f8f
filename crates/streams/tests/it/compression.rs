//! Compressed input: recognised by content, in many pieces, and cut off.

use std::io::Write;
use std::ops::ControlFlow;

use lzma_rust2::{XzOptions, XzWriter};
use ucl_streams::{OnError, ReadErrorKind, ReadOptions, Source, read};

use crate::support::{collect, keys, options};

pub fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

pub fn zstd(data: &[u8]) -> Vec<u8> {
    zstd::encode_all(data, 3).unwrap()
}

pub fn xz(data: &[u8]) -> Vec<u8> {
    let mut encoder = XzWriter::new(Vec::new(), XzOptions::with_preset(6)).unwrap();
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

pub fn bzip2(data: &[u8]) -> Vec<u8> {
    let mut encoder = ::bzip2::write::BzEncoder::new(Vec::new(), ::bzip2::Compression::fast());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

type Packer = fn(&[u8]) -> Vec<u8>;

/// Every compression that is unpacked.
pub const PACKERS: [(&str, Packer); 4] = [("gzip", gzip), ("zstd", zstd), ("xz", xz), ("bzip2", bzip2)];

/// Lines that do not compress well, so that a cut-off file still yields some.
fn many_lines(n: u32) -> String {
    (0..n).map(|i| format!("{:08x}\n", i.wrapping_mul(0x9e37_79b1))).collect()
}

#[test]
fn members_and_frames_in_a_row() {
    for (name, pack) in PACKERS {
        let packed = [pack(b"a\nb"), pack(b""), pack(b"b\nc")].concat();
        assert_eq!(keys("lines", &packed), ["a", "bb", "c"], "{name}");
        assert_eq!(keys("csv:k", &pack(b"k\n1\n")), ["1"], "{name}");
        assert_eq!(keys("lines", &pack(b"")), [""; 0], "{name}");
    }
}

#[test]
fn beginnings_of_signatures_are_plain_data() {
    for data in [&b"\x1f"[..], b"\x1f\x8b", b"\x28\xb5\x2f", b"\x1f\x8bx\n", b"\xfd7zXZ", b"BZh91AY&S", b"BZh9\n"] {
        let (items, result) = collect(data, &options("lines", None, OnError::Stop));
        assert_eq!(items, [(data.strip_suffix(b"\n").unwrap_or(data).to_vec(), 1)]);
        assert_eq!(result.unwrap().bytes_read, data.len() as u64);
    }
}

#[test]
fn truncated_files_keep_what_came_before() {
    let text = many_lines(50_000);
    for (name, pack) in PACKERS {
        let packed = pack(text.as_bytes());
        let cut = &packed[..packed.len() / 2];
        let (items, result) = collect(cut, &options("lines", None, OnError::Stop));
        let error = result.unwrap_err();
        assert!(matches!(error.kind, ReadErrorKind::Truncated(_)));
        let start = format!("input: the {name} data is truncated near byte {}", cut.len());
        assert!(error.to_string().starts_with(&start), "{error}");
        // Whole lines only, all of them right, and a good part of the file.
        assert!(items.len() > 5_000, "{name}: {}", items.len());
        let expected = text.lines().map(str::as_bytes);
        assert!(items.iter().map(|(key, _)| &key[..]).eq(expected.take(items.len())));
        assert_eq!(error.summary.items, items.len() as u64);

        let (again, result) = collect(cut, &options("lines", None, OnError::Skip));
        assert_eq!(again, items);
        assert!(result.unwrap().truncated.unwrap().starts_with(&start));
    }
}

#[test]
fn damaged_files_say_so() {
    let mut packed = gzip(many_lines(1000).as_bytes());
    let checksum = packed.len() - 6;
    packed[checksum] ^= 1;
    let (items, result) = collect(&packed[..], &options("lines", None, OnError::Stop));
    assert_eq!(items.len(), 1000);
    assert!(result.unwrap_err().to_string().starts_with("input: the gzip data is damaged near byte"));
    for (name, pack) in PACKERS {
        let with_rubbish = [&pack(b"a\n")[..], b"rubbish"].concat();
        let (_, result) = collect(&with_rubbish[..], &options("lines", None, OnError::Skip));
        assert!(result.unwrap().truncated.is_some(), "{name}");
    }
}

/// The block header of an xz file names its dictionary: only so much is allocated for it.
#[test]
fn an_xz_dictionary_beyond_the_limit_is_refused() {
    let mut packed = xz(b"a\nb\n");
    // 12 bytes of stream header; the block header has a size, flags, a filter, the size of its
    // properties, the dictionary, padding and a checksum.
    assert_eq!(packed[13..16], [0, 0x21, 1], "one filter, LZMA2, no sizes");
    for (dictionary, lines) in [(32, 2), (33, 0), (40, 0)] {
        packed[16] = dictionary;
        let checksum = crc32(&packed[12..20]).to_le_bytes();
        packed[20..24].copy_from_slice(&checksum);
        let (items, result) = collect(&packed[..], &options("lines", None, OnError::Stop));
        assert_eq!(items.len(), lines, "{dictionary}: {result:?}");
        let message = result.map_or_else(|error| error.to_string(), |_| "fine".to_owned());
        assert_eq!(message.contains("needs a dictionary of more than 256MB"), lines == 0, "{message}");
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

/// gzip(1) ignores zeros behind a member, which tapes and block devices leave there.
#[test]
fn zeros_behind_gzip_members_are_padding() {
    let zeros = vec![0; 300_000];
    assert_eq!(keys("lines", &[&gzip(b"a\nb\n")[..], &zeros].concat()), ["a", "b"]);
    assert_eq!(
        keys("lines", &[&gzip(b"a\nb")[..], &zeros[..7], &gzip(b"b\nc\n"), &zeros[..1]].concat()),
        ["a", "bb", "c"]
    );
    let (items, result) = collect(
        &[&gzip(b"a\n")[..], &zeros, b"rubbish behind zeros"].concat()[..],
        &options("lines", None, OnError::Stop),
    );
    assert_eq!(items.len(), 1);
    assert!(result.unwrap_err().to_string().starts_with("input: the gzip data is damaged"));
}

/// As `zstd --long=31` writes it to a pipe: the frame asks for a window of 2GB, whatever is in it.
#[test]
fn zstd_with_the_largest_window() {
    let mut encoder = ::zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.long_distance_matching(true).unwrap();
    encoder.window_log(31).unwrap();
    encoder.write_all(b"a\nb\n").unwrap();
    // A block by itself, so that the size is not known when the header is written.
    encoder.flush().unwrap();
    encoder.write_all(b"c\n").unwrap();
    let packed = encoder.finish().unwrap();
    assert_eq!(packed[5] >> 3, 21, "a window of 2^(10 + 21) bytes");
    assert_eq!(keys("lines", &packed), ["a", "b", "c"]);
    // Behind a frame to be skipped, with which parallel compressors begin.
    assert_eq!(keys("lines", &[b"\x50\x2a\x4d\x18\x04\0\0\0size", &packed[..]].concat()), ["a", "b", "c"]);

    // A larger one cannot be had, which is not to say that the data is damaged.
    let mut larger = packed.clone();
    larger[5] = 31 << 3;
    let (_, result) = collect(&larger[..], &options("lines", None, OnError::Stop));
    let message = result.unwrap_err().to_string();
    assert!(message.contains("needs a larger window than there is memory for"), "{message}");
}

/// Each in the compression of its name, if any: the content decides, not the name and not the
/// format.
#[test]
fn content_of_another_kind_is_named() {
    let zip = b"PK\x03\x04 and more\n";
    let capture = b"\xd4\xc3\xb2\xa1 and more\n";
    for format in ["lines", "field:1", "csv:1", "tsv:a", "jsonl:/a", "fimi", "records:2", "pcap"] {
        for on_error in [OnError::Stop, OnError::Skip] {
            for input in [zip.to_vec(), gzip(zip), zstd(zip), xz(zip), bzip2(zip), gzip(&xz(b"a\n"))] {
                let (items, result) = collect(&input[..], &options(format, None, on_error));
                assert!(items.is_empty());
                let message = result.unwrap_err().to_string();
                assert!(
                    ["input is a zip archive", "input is compressed with xz"].contains(&&*message),
                    "{format}: {message}"
                );
            }
        }
        let (_, result) = collect(&capture[..], &options(format, None, OnError::Stop));
        assert_eq!(result.unwrap_err().to_string().contains("is a packet capture"), format != "pcap", "{format}");
    }
    let raw = ReadOptions { raw: true, ..ReadOptions::default() };
    assert_eq!(collect(&zip[..], &raw).0, [(zip[..zip.len() - 1].to_vec(), 1)]);
    let packed = gzip(b"a\n");
    let stored: Vec<u8> = collect(&packed[..], &ReadOptions { format: "records:1".parse().unwrap(), ..raw })
        .0
        .into_iter()
        .flat_map(|(key, _)| key)
        .collect();
    assert_eq!(stored, packed, "nothing is unpacked");
    assert_eq!(
        keys("lines", b"PAR1\nBZh9\n\n\r\r\n"),
        ["PAR1", "BZh9", "", "\r"],
        "text that begins like something else"
    );
}

#[test]
fn several_files_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, data: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, data).unwrap();
        path.to_str().unwrap().parse::<Source>().unwrap()
    };
    let cut = gzip(many_lines(50_000).as_bytes());
    let sources = [
        file("1.csv", b"k\na\n"),
        file("2.csv.gz", &gzip(b"x,k\n1,b\n")),
        file("empty", b""),
        file("3", &zstd(b"k\nc")),
    ];
    let read_all = |sources: &[Source], options: &ReadOptions| {
        let mut items = Vec::new();
        let result = read(sources, options, &mut |batch| {
            items.extend(batch.keys().map(|key| String::from_utf8_lossy(key).into_owned()));
            ControlFlow::Continue(())
        });
        (items, result)
    };
    let csv = options("csv:k", None, OnError::Stop);
    let (items, result) = read_all(&sources, &csv);
    assert_eq!(items, ["a", "b", "c"], "every file has its own header row, and is unpacked by itself");
    let stored: u64 = sources
        .iter()
        .map(|source| match source {
            Source::Path(path) => std::fs::metadata(path).unwrap().len(),
            _ => unreachable!(),
        })
        .sum();
    assert_eq!(result.unwrap().bytes_read, stored);

    // A truncated file among others: with `Skip`, the next one is still read.
    let with_cut = [file("cut.gz", &cut[..cut.len() / 2]), file("whole", b"whole\n")];
    let (items, result) = read_all(&with_cut, &options("lines", None, OnError::Skip));
    assert_eq!(items.last().unwrap(), "whole");
    assert!(result.unwrap().truncated.unwrap().contains("cut.gz"));
    let (items, result) = read_all(&with_cut, &options("lines", None, OnError::Stop));
    assert!(items.len() > 1000 && items.last().unwrap() != "whole");
    assert!(result.unwrap_err().to_string().contains("cut.gz"));

    // A file that is not there: what came before is delivered, also with `Skip`.
    let missing = [sources[0].clone(), Source::Path(directory.path().join("none"))];
    let (items, result) = read_all(&missing, &csv);
    assert_eq!(items, ["a"]);
    let message = result.unwrap_err().to_string();
    assert!(message.starts_with("cannot open ") && message.contains("none: "), "{message}");
}
