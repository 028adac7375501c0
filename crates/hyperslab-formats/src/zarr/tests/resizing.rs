//! Growing and shrinking.

use super::*;

fn growing(stack: &str, dir: &Path) -> (Arc<dyn Container>, Arc<dyn Array>) {
    let store = create(stack, &dir.join("s.zarr"));
    let mut spec = spec("<u2", &[10, 10], &[4, 3]);
    if stack.contains("shard") {
        spec.chunk = None;
    }
    spec.max_shape = Some(vec![None, Some(20)]);
    spec.fill_value = Some(vec![7, 8]);
    let array = store.create("a", &spec).unwrap();
    (store, array)
}

#[test]
fn regrown_elements_are_fill_value() {
    for stack in STACKS {
        let dir = tempfile::tempdir().unwrap();
        let (store, array) = growing(stack, dir.path());
        let other_handle = store.array("a").unwrap();
        let old = pattern(200, 1);
        write(&array, &Selection::all(&[10, 10]).unwrap(), &old).unwrap();
        array.resize(&[5, 7]).unwrap();
        assert_eq!(other_handle.spec().unwrap().shape.as_slice(), [5, 7]);
        array.resize(&[13, 12]).unwrap();
        let all = read_all(&open(&dir.path().join("s.zarr"), OpenMode::Read).array("a").unwrap());
        for row in 0..13 {
            for column in 0..12 {
                let have = &all[(row * 12 + column) * 2..][..2];
                let at = (row * 10 + column) * 2;
                let want = if row < 5 && column < 7 { &old[at..at + 2] } else { &[7, 8] };
                assert_eq!(have, want, "{stack} at {row}, {column}");
            }
        }
        array.resize(&[0, 0]).unwrap();
        array.resize(&[2, 2]).unwrap();
        assert_eq!(read_all(&array), [7, 8].repeat(4));
    }
}

#[test]
fn shapes_an_array_cannot_take_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (store, array) = growing("zarr", dir.path());
    for shape in [&[1, 21][..], &[1], &[1, 1, 1], &[u64::MAX, 2]] {
        assert!(array.resize(shape).is_err(), "{shape:?}");
    }
    let fixed = store.create("fixed", &spec("<u2", &[4], &[2])).unwrap();
    assert!(fixed.resize(&[5]).is_err());
    fixed.resize(&[4]).unwrap();
    let reopened = open(&dir.path().join("s.zarr"), OpenMode::Update).array("fixed").unwrap();
    assert!(reopened.resize(&[5]).is_err());
}

#[test]
fn what_another_program_left_beyond_the_shape_does_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let (store, array) = growing("zarr", dir.path());
    write(&array, &Selection::all(&[10, 10]).unwrap(), &pattern(200, 1)).unwrap();
    store.close().unwrap();
    drop((store, array));
    // Shrinks as a program would that only rewrites the metadata.
    let document = dir.path().join("s.zarr/a/zarr.json");
    let text = std::fs::read_to_string(&document).unwrap();
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    json["shape"] = serde_json::json!([3, 4]);
    std::fs::write(&document, json.to_string()).unwrap();
    let array = open(&dir.path().join("s.zarr"), OpenMode::Update).array("a").unwrap();
    array.resize(&[10, 10]).unwrap();
    let all = read_all(&array);
    for at in 0..100 {
        let inside = at / 10 < 3 && at % 10 < 4;
        assert_eq!(all[at * 2..at * 2 + 2] == [7, 8], !inside, "{at}");
    }
}
