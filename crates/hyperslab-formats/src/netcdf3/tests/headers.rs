//! Headers that other programs write and read, byte by byte, and headers that are none.

use super::super::decode::{Flaw, decode};
use super::super::encode::{encode, encoded_len};
use super::super::header::{CdfAttribute, Dimension, Header, Variable};
use super::super::layout::{Spacing, check_records, place_all, place_new};
use super::super::types::{CdfType, Version};

pub(crate) const TIGHT: Spacing = Spacing { header_pad: 0, data_align: 4, var_align: 4, record_align: 4 };

pub(crate) const VERSIONS: [Version; 3] = [Version::Classic, Version::Offset64, Version::Data64];

fn dimension(name: &str, len: u64) -> Dimension {
    Dimension { name: name.into(), len }
}

fn variable(name: &str, kind: CdfType, dimensions: &[usize]) -> Variable {
    Variable { name: name.into(), dimensions: dimensions.into(), attributes: Vec::new(), kind, begin: 0 }
}

fn header(version: Version, records: u64, dimensions: Vec<Dimension>, variables: Vec<Variable>) -> Header {
    let mut header = Header { records, dimensions, variables, ..Header::empty(version) };
    place_all(&mut header, 0, &TIGHT).unwrap();
    header
}

/// A record dimension, one of 3 elements, and a variable of bytes with both.
fn bytes_by_three(version: Version, records: u64) -> Header {
    let dimensions = vec![dimension("t", 0), dimension("x", 3)];
    header(version, records, dimensions, vec![variable("r", CdfType::Byte, &[0, 1])])
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

#[test]
fn an_empty_file_is_only_a_header() {
    for (version, len) in VERSIONS.into_iter().zip([32, 32, 48]) {
        let empty = Header::empty(version);
        let bytes = encode(&empty);
        assert_eq!((bytes.len(), encoded_len(&empty), empty.end()), (len, len as u64, 0), "{version:?}");
        assert_eq!(bytes[..4], [b'C', b'D', b'F', version.number()]);
        assert!(bytes[4..].iter().all(|byte| *byte == 0));
        assert_eq!(decode(&bytes).unwrap().header, empty);
    }
}

#[test]
fn a_single_record_variable_has_no_padding_between_records() {
    let header = bytes_by_three(Version::Classic, 2);
    let expected = hex(
        "43444601 00000002 0000000a 00000002 00000001 74000000 00000000 00000001 78000000 00000003 00000000 00000000
         0000000b 00000001 00000001 72000000 00000002 00000000 00000001 00000000 00000000 00000001 00000004 00000060",
    );
    assert_eq!(encode(&header), expected);
    assert_eq!((header.record_size(), header.end()), (3, 102));
    let decoded = decode(&expected).unwrap();
    assert_eq!((decoded.header, decoded.len, decoded.streaming), (header, 96, false));
}

#[test]
fn several_record_variables_are_padded() {
    for (version, end) in VERSIONS.into_iter().zip([148, 156, 232]) {
        let mut two = bytes_by_three(version, 2);
        two.variables.push(variable("s", CdfType::Short, &[0]));
        place_all(&mut two, 0, &TIGHT).unwrap();
        assert_eq!((two.record_size(), two.end()), (8, end), "{version:?}");
        assert_eq!(two.variables[1].begin - two.variables[0].begin, 4);
        assert_eq!(decode(&encode(&two)).unwrap().header, two);
    }
    for (version, end) in VERSIONS.into_iter().zip([86, 90, 134]) {
        let one = header(version, 3, vec![dimension("t", 0)], vec![variable("r", CdfType::Short, &[0])]);
        assert_eq!((one.record_size(), one.end()), (2, end), "{version:?}");
    }
}

#[test]
fn variables_begin_where_options_say() {
    let dimensions = vec![dimension("t", 0), dimension("x", 5)];
    let variables = vec![
        variable("a", CdfType::Double, &[1]),
        variable("r", CdfType::Short, &[0]),
        variable("b", CdfType::Byte, &[]),
        variable("s", CdfType::Double, &[0, 1]),
        variable("c", CdfType::Int, &[1, 1]),
    ];
    let mut mixed = header(Version::Data64, 2, dimensions, variables);
    let aligned = Spacing { var_align: 4096, record_align: 4096, ..TIGHT };
    place_all(&mut mixed, 0, &aligned).unwrap();
    let begins: Vec<u64> = ["a", "b", "c", "r", "s"]
        .map(|name| mixed.variables.iter().find(|variable| variable.name == name).unwrap().begin)
        .into();
    assert_eq!(begins, [4096, 8192, 12288, 16384, 16388]);
    assert_eq!((mixed.record_size(), mixed.end()), (44, 16384 + 2 * 44));
    place_all(&mut mixed, 0, &Spacing { header_pad: 65536, ..TIGHT }).unwrap();
    assert_eq!(mixed.variables[0].begin, 65536);
}

#[test]
fn what_is_new_leaves_the_rest_where_it_is() {
    let mut file = header(Version::Data64, 0, vec![dimension("t", 0), dimension("x", 5)], Vec::new());
    let wide = Spacing { header_pad: 4096, ..TIGHT };
    let mut add = |variable: Variable, records: u64| {
        let known = file.variables.len();
        let before = file.clone();
        file.records = records;
        file.variables.push(variable);
        let placed = place_new(&mut file, known, 0, &wide).unwrap();
        if placed && records > 0 {
            let kept = file.variables.iter().zip(&before.variables).all(|(new, old)| new.begin == old.begin);
            assert!(kept, "{:?}", file.variables);
        } else if !placed {
            file = before;
        }
        (placed, file.end())
    };
    assert_eq!(add(variable("a", CdfType::Double, &[1]), 0), (true, 4096 + 40));
    assert_eq!(add(variable("r", CdfType::Short, &[0]), 0), (true, 4096 + 40));
    assert_eq!(add(variable("b", CdfType::Double, &[1]), 0), (true, 4096 + 80));
    assert_eq!(add(variable("s", CdfType::Short, &[0]), 3), (false, 4096 + 80), "records would be cut anew");
    assert_eq!(add(variable("c", CdfType::Double, &[1]), 3), (false, 4096 + 80), "records are where it would be");
    let mut crowded = header(Version::Data64, 0, vec![dimension("x", 5)], vec![variable("a", CdfType::Byte, &[0])]);
    crowded.variables.push(variable("b", CdfType::Byte, &[0]));
    assert!(!place_new(&mut crowded, 1, 0, &TIGHT).unwrap(), "the header has no room");
}

#[test]
fn sizes_that_a_version_has_no_numbers_for() {
    let gib = 1u64 << 30;
    let one = |version, gibs: u64| {
        let mut header = Header::empty(version);
        header.dimensions = vec![dimension("x", gibs * gib / 8), dimension("y", 4)];
        header.variables.push(variable("large", CdfType::Double, &[0]));
        place_all(&mut header, 0, &TIGHT).map(|()| header)
    };
    let size_field = |header: &Header| {
        let bytes = encode(header);
        let offset = header.version.offset_bytes();
        bytes[bytes.len() - offset - 4..bytes.len() - offset].to_vec()
    };
    assert_eq!(size_field(&one(Version::Classic, 3).unwrap()), [0xC0, 0, 0, 0]);
    assert_eq!(size_field(&one(Version::Offset64, 5).unwrap()), [0xFF; 4]);
    for (version, gibs) in [(Version::Classic, 3), (Version::Offset64, 5), (Version::Data64, 5)] {
        let mut header = one(version, gibs).unwrap();
        assert_eq!(decode(&encode(&header)).unwrap().header, header);
        header.variables.push(variable("after", CdfType::Byte, &[1]));
        let placed = place_all(&mut header, 0, &TIGHT);
        assert_eq!(placed.is_ok(), version == Version::Data64, "{placed:?}");
    }
    let records = bytes_by_three(Version::Classic, 0);
    assert!(check_records(&records, i32::MAX as u64).is_ok() && check_records(&records, 1 << 31).is_err());
    assert!(check_records(&bytes_by_three(Version::Data64, 0), i64::MAX as u64 / 3).is_err());
}

#[test]
fn the_number_of_records_may_be_left_open() {
    for version in VERSIONS {
        let mut bytes = encode(&bytes_by_three(version, 2));
        bytes[4..4 + version.count_bytes()].fill(0xFF);
        let decoded = decode(&bytes).unwrap();
        assert!(decoded.streaming && decoded.header.records == 0);
    }
}

/// What is refused, by a part of what is said.
#[track_caller]
fn refused(bytes: &[u8], said: &str) {
    match decode(bytes) {
        Err(Flaw::Wrong(_, message)) => assert!(message.contains(said), "{message:?} does not say {said:?}"),
        other => panic!("{other:?}, expected {said:?}"),
    }
}

#[test]
fn contradictions_are_refused() {
    let good = encode(&bytes_by_three(Version::Classic, 2));
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    refused(b"HDF\x01 and more", "CDF");
    refused(&with(3, 3), "version 3");
    refused(&with(4, 0x80), "records");
    refused(&with(11, 11), "expected 10");
    refused(&with(21, b'x'), "padded");
    refused(&with(20, 0xFF), "UTF-8");
    refused(&with(39, 0), "more than one record dimension");
    refused(&with(75, 9), "dimension 9 of 2");
    refused(&with(87, 7), "type 7");
    refused(&with(95, 0x5C), "within the header");
    refused(&with(92, 0x80), "negative offset");
    let swapped = {
        let mut bytes = with(71, 1);
        bytes[75] = 0;
        bytes
    };
    refused(&swapped, "not its first");
    let twice = {
        let mut header = bytes_by_three(Version::Classic, 2);
        header.dimensions[1].name = "t".into();
        encode(&header)
    };
    refused(&twice, "are named \"t\"");
    let mut unpadded = bytes_by_three(Version::Data64, 2);
    let data = vec![0; 3];
    unpadded.attributes.push(CdfAttribute { name: "a".into(), kind: CdfType::Byte, data });
    place_all(&mut unpadded, 0, &TIGHT).unwrap();
    assert_eq!(decode(&encode(&unpadded)).unwrap().header, unpadded);
}

#[test]
fn huge_counts_take_no_memory() {
    for (at, version) in [(12, Version::Classic), (16, Version::Data64)] {
        let mut bytes = encode(&bytes_by_three(version, 2));
        let count = version.count_bytes();
        bytes[at..at + count].fill(0xFF);
        bytes[at] = 0x7F;
        // As many dimensions as there are bytes for, then a byte that is not there or makes no sense.
        assert!(decode(&bytes).is_err());
    }
    let large = Header { records: u64::MAX >> 1, ..bytes_by_three(Version::Data64, 2) };
    refused(&encode(&large), "beyond 2^63");
    let mut bytes = encode(&bytes_by_three(Version::Data64, 2));
    let at = 4 + 8 + 12 + 20 + 12; // the length of the second dimension
    assert_eq!(bytes[at..at + 8], 3u64.to_be_bytes());
    bytes[at..at + 8].copy_from_slice(&(u64::MAX >> 1).to_be_bytes());
    refused(&bytes, "2^63");
}

/// What the fuzz target begins with is whole.
#[test]
fn seeds_are_headers() {
    let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/cdf_header");
    let mut count = 0;
    for seed in std::fs::read_dir(seeds).unwrap() {
        let path = seed.unwrap().path();
        assert!(super::super::fuzzing::header(&std::fs::read(&path).unwrap()), "{}", path.display());
        count += 1;
    }
    assert_eq!(count, 9);
}
