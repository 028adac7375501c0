//! `hyperslab layout`, as a user runs it.
#![allow(clippy::unwrap_used)]
#![cfg(feature = "hdf5")]

#[path = "common/alone.rs"]
mod alone;
#[path = "common/program.rs"]
#[allow(dead_code)]
mod program;

use alone::ALONE;
use hyperslab_comm::Solo;
use hyperslab_core::{ArraySpec, Datatype, Dims, Filter, MemoryView, OpenMode, Selection, Stack, TransferMode};
use program::run;
use std::path::Path;

/// 16 chunks of 64 KiB, one array in one piece, and 4 chunks with a filter.
fn write(stack: &str, path: &Path) {
    let format = hyperslab_formats::build(&stack.parse::<Stack>().unwrap().format).unwrap();
    let file = format.open(path, OpenMode::Create, &Solo::shared()).unwrap();
    let flat = ArraySpec::new(Datatype::F32, &[512, 512]);
    let mut chunked = flat.clone();
    let chunks = format.caps().data.chunks;
    chunked.chunk = chunks.then(|| Dims::from_slice(&[128, 128]));
    let mut coded = ArraySpec { chunk: chunks.then(|| Dims::from_slice(&[256, 256])), ..flat.clone() };
    coded.filters = if chunks { vec![Filter::Deflate(1)] } else { Vec::new() };
    for (name, spec) in [("flat", &flat), ("g/chunked", &chunked), ("coded", &coded)] {
        let array = file.create(name, spec).unwrap();
        let data = vec![7; 512 * 512 * 4];
        array
            .write(&Selection::all(&[512, 512]).unwrap(), MemoryView::packed(&data), TransferMode::Independent)
            .unwrap();
        array.close().unwrap();
    }
    file.close().unwrap();
}

/// Two ranks, each with half of the rows of the chunked array in four calls, and all of the flat one in one.
fn workload() -> String {
    let mut text = String::from(
        r#"{"hyperslab_workload":2,"name":"halves","about":"","ranks":2,"seed":1,"files":[{"name":"a.h5"}],"arrays":[{"dtype":"<f4","shape":[512,512]}]}"#,
    );
    text.push_str("\n{\"do\":\"open_file\",\"file\":0,\"how\":\"read\"}");
    for (slot, name) in ["g/chunked", "flat"].iter().enumerate() {
        text.push_str(&format!("\n{{\"do\":\"open\",\"slot\":{slot},\"file\":0,\"array\":0,\"name\":\"{name}\"}}"));
    }
    for rank in 0..2 {
        for part in 0..4 {
            let start = [rank * 256, part * 128];
            text.push_str(&format!(
                "\n{{\"rank\":{rank},\"do\":\"read\",\"slot\":0,\"selection\":{{\"start\":{start:?},\"count\":[128,128]}}}}"
            ));
        }
        text.push_str(&format!(
            "\n{{\"rank\":{rank},\"do\":\"read\",\"slot\":1,\"selection\":{{\"start\":[0,0],\"count\":[512,512]}}}}"
        ));
    }
    text.push_str("\n{\"do\":\"close_array\",\"slot\":0}\n{\"do\":\"close_array\",\"slot\":1}\n{\"do\":\"close_file\",\"file\":0}\n");
    text
}

#[test]
fn files_are_mapped_and_calls_followed_to_targets() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (stack, name) in [("hdf5", "a.h5"), ("hdf5(align=64KiB)", "b.h5"), ("netcdf4(align=64KiB)", "c.nc")] {
        write(stack, &path(name));
        let (code, out, err) = run(folder.path(), &["layout", name, "--stripe-size", "64KiB", "--stripe-count", "8"]);
        assert_eq!(code, 0, "{out}{err}");
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
        let row = |array: &str| {
            let line = out.lines().find(|line| line.split_whitespace().nth(1) == Some(array)).unwrap();
            line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        // Letter, name, pieces, bytes with their unit, unaligned, targets.
        let chunked = row("g/chunked");
        assert_eq!(chunked[2..5], ["16", "1.00", "MiB"], "{out}");
        let aligned = name != "a.h5";
        assert_eq!((chunked[5] == "0", chunked[6] == "1"), (aligned, aligned), "{out}");
        assert_eq!(row("coded")[2], "4", "{out}");
        assert!(row("flat")[6] == "8" && out.contains("metadata") && out.contains(&chunked[0].repeat(16)), "{out}");
    }
    std::fs::write(path("w.jsonl"), workload()).unwrap();
    let words =
        ["layout", "b.h5", "--stripe-size", "64KiB", "--stripe-count", "8", "--workload", "w.jsonl", "-o", "b.svg"];
    let (code, out, err) = run(folder.path(), &words);
    assert_eq!(code, 0, "{out}{err}");
    for rank in ["0", "1"] {
        let line = out.lines().rfind(|line| line.split_whitespace().next() == Some(rank)).unwrap();
        let numbers: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(numbers[1..], ["5", "1", "1", "8", "8", "of", "8"], "{out}");
    }
    let svg = std::fs::read_to_string(path("b.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n") && svg.contains("g/chunked"), "{svg}");
    assert!(svg.matches("<rect").count() > 5, "{svg}");
}

#[test]
fn other_formats_are_mapped_or_counted_and_nonsense_is_refused() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write("netcdf3(var_align=4KiB)", &path("a.nc3"));
    write("zarr", &path("b.zarr"));
    let (code, out, err) = run(folder.path(), &["layout", "a.nc3", "--stripe-size", "4KiB"]);
    assert!(code == 0 && out.contains("0 of 3 pieces") && out.contains("g/chunked"), "{out}{err}");
    let (code, out, err) = run(folder.path(), &["layout", "b.zarr"]);
    assert!(code == 0 && out.contains("files"), "{out}{err}");
    std::fs::write(path("w.jsonl"), workload().replace("flat", "none").replace("g/chunked", "nothing")).unwrap();
    for (words, said) in [
        (&["missing.h5"][..], "missing.h5"),
        (&["a.nc3", "--stripe-size", "0"], "at least one byte"),
        (&["a.nc3", "--stripe-count", "0"], "1..=65536"),
        (&["a.nc3", "-o", "a.png"], "svg"),
        (&["b.zarr", "-o", "a.svg"], "files of their own"),
        (&["a.nc3", "--workload", "w.jsonl"], "no array that the workload"),
    ] {
        let (code, _, err) = run(folder.path(), &[&["layout"], words].concat());
        assert!(code == 2 && err.contains(said), "{words:?}: {code} {err}");
    }
}
