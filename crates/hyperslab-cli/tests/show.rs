//! `hyperslab show`, as a user runs it.
#![allow(clippy::unwrap_used)]

#[path = "common/alone.rs"]
mod alone;

use alone::ALONE;
use assert_cmd::Command;
use hyperslab_comm::Solo;
use hyperslab_core::{
    ArraySpec, Attribute, Datatype, Dims, Filter, MemoryView, OpenMode, Selection, Stack, TransferMode,
};
use std::path::Path;

fn file(path: &Path) {
    let format = hyperslab_formats::build(&"hdf5".parse::<Stack>().unwrap().format).unwrap();
    let file = format.open(path, OpenMode::Create, &Solo::shared()).unwrap();
    let mut spec = ArraySpec::new(Datatype::F32, &[64, 64]);
    let flat = file.create("flat", &spec).unwrap();
    spec.chunk = Some(Dims::from_slice(&[16, 16]));
    let plain = file.create("g/plain", &spec).unwrap();
    spec.filters = vec![Filter::Shuffle, Filter::Deflate(4)];
    let coded = file.create("g/coded", &spec).unwrap();
    let all = Selection::all(&spec.shape).unwrap();
    for array in [flat, plain, coded] {
        array.write(&all, MemoryView::packed(&[3; 64 * 64 * 4]), TransferMode::Independent).unwrap();
    }
    file.set_attribute("flat", "units", &Attribute::text("m")).unwrap();
    file.close().unwrap();
}

/// What the program prints, and whether it succeeded.
fn show(path: &Path, words: &[&str]) -> (String, bool) {
    let mut command = Command::cargo_bin("hyperslab").unwrap();
    let output = command.arg("show").arg(path).args(words).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.success())
}

#[test]
fn arrays_are_listed_transfers_explained_and_bad_input_is_told() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.h5");
    file(&path);
    let expect = |words: &[&str], parts: &[&str]| {
        let (text, success) = show(&path, words);
        assert!(success, "{text}");
        for part in parts {
            assert!(text.contains(part), "{words:?} lacks {part:?}:\n{text}");
        }
    };
    expect(&[], &["3 arrays, 1 groups", "flat: 64x64 of <f4", "chunks of 16x16", "Shuffle then Deflate(4)"]);
    expect(&["flat"], &["@units = \"m\""]);
    expect(&["flat", "--explain"], &["16.00 KiB wanted, 16.00 KiB moved in 1 call", "in one piece at byte"]);
    expect(&["flat", "--explain", "--select", "::2,3"], &["128 B wanted", "move neighbours together"]);
    expect(&["flat", "--explain", "--select", "::2,3", "--write"], &["read first and written back"]);
    expect(&["g/plain", "--explain", "--select", "7"], &["3.06 KiB moved in 1 call, 4 chunks touched"]);
    expect(&["g/coded", "--explain", "--select", "7"], &["4 chunks touched", "decoded on up to", "kept decoded"]);
    expect(&["g/coded", "--explain", "--write"], &["16 chunks touched", "coded whole"]);
    expect(&["flat", "--explain", "--select", "9:9"], &["nothing is selected"]);
    for (words, part) in [
        (&["missing"][..], "missing"),
        (&["flat", "--explain", "--select", "64"], "outside 0 to 63"),
        (&["flat", "--explain", "--select", "1,2,3"], "3 dimensions"),
        (&["flat", "--explain", "--stack", "hdf5"], "plane=on"),
        (&["flat", "--select", "1"], "--explain"),
    ] {
        let (text, success) = show(&path, words);
        assert!(!success && text.contains(part), "{words:?}: {text}");
    }
    assert!(!show(&folder.path().join("nothing.h5"), &[]).1);
}

#[test]
fn names_of_a_file_do_not_reach_the_terminal_as_commands() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostile.h5");
    let format = hyperslab_formats::build(&"hdf5".parse::<Stack>().unwrap().format).unwrap();
    let file = format.open(&path, OpenMode::Create, &Solo::shared()).unwrap();
    file.create("red\u{1b}[31m", &ArraySpec::new(Datatype::F32, &[4])).unwrap();
    file.set_attribute("", "title\u{1b}]0;owned\u{7}", &Attribute::integer(1)).unwrap();
    file.close().unwrap();
    let (text, success) = show(&path, &[]);
    assert!(success && text.contains("red [31m") && text.contains("@title ]0;owned"), "{text:?}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
}

#[test]
fn netcdf_files_are_printed_as_ncdump_does() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    for (stack, name) in [("netcdf4", "ocean.nc"), ("netcdf3", "ocean.nc3")] {
        let path = folder.path().join(name);
        let format = hyperslab_formats::build(&stack.parse::<Stack>().unwrap().format).unwrap();
        let file = format.open(&path, OpenMode::Create, &Solo::shared()).unwrap();
        let dims = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
        let mut spec = ArraySpec::new(Datatype::F64, &[2, 3]);
        (spec.max_shape, spec.dims) = (Some(vec![None, Some(3)]), dims(&["time", "x"]));
        let temperature = file.create("temperature", &spec).unwrap();
        let data: Vec<u8> = [1.5f64, 2.0, -3.0, 4.0, 5.0, 6.25].iter().flat_map(|value| value.to_ne_bytes()).collect();
        let all = Selection::all(&spec.shape).unwrap();
        temperature.write(&all, MemoryView::packed(&data), TransferMode::Independent).unwrap();
        file.set_attribute("temperature", "units", &Attribute::text("K \"kelvin\"")).unwrap();
        file.set_attribute("", "title\u{e9}", &Attribute::integer(7)).unwrap();
        file.close().unwrap();
        let (text, success) = show(&path, &[]);
        assert!(success, "{text}");
        for part in [
            "netcdf ocean {",
            "\ttime = UNLIMITED ; // (2 currently)",
            "\tx = 3 ;",
            "\tdouble temperature(time, x) ;",
            "\t\ttemperature:units = \"K \\\"kelvin\\\"\" ;",
            "\t\t:titlé = 7 ;".replace("titlé", "title\u{e9}").as_str(),
            &format!("// opened as {stack}, "),
        ] {
            assert!(text.contains(part), "{stack} lacks {part:?}:\n{text}");
        }
        assert_eq!(text.contains("chunks of 43690x3 ("), stack == "netcdf4", "{text}");
        let (text, success) = show(&path, &["--values"]);
        assert!(success && text.contains("data:\n\n temperature =\n  1.5, 2, -3,\n  4, 5, 6.25 ;\n"), "{text}");
        let (text, success) = show(&path, &["temperature", "--values", "--select", "1,::2"]);
        assert!(success && text.contains(" temperature =\n  4, 6.25 ;\n"), "{text}");
    }
}
