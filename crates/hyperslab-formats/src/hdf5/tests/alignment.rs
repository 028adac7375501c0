//! Where chunks lie with `align`, and the sizes of files that grow.

use super::*;
use hyperslab_core::{ArraySpec, Datatype};

const STRIPE: usize = 64 << 10;

fn growing(shape: &[u64], max: &[Option<u64>]) -> ArraySpec {
    let mut spec = ArraySpec::new(Datatype::U8, shape);
    spec.max_shape = Some(max.to_vec());
    spec
}

#[test]
fn chunks_of_an_aligned_file_lie_stripe_after_stripe() {
    const CHUNKS: usize = 200;
    let bench = Bench::new("hdf5(align=64KiB)");
    let file = bench.open(OpenMode::Create);
    let array = file.create("a", &growing(&[(CHUNKS * STRIPE) as u64], &[None])).unwrap();
    assert_eq!(array.spec().unwrap().chunk.unwrap().as_slice(), [STRIPE as u64]);
    let data: Vec<u8> = (0..CHUNKS).flat_map(|i| vec![i as u8 + 1; STRIPE]).collect();
    put(&*array, &all(&*array), &data);
    assert_eq!(file.diagnostics(), [""; 0]);
    file.close().unwrap();
    let bytes = std::fs::read(bench.path()).unwrap();
    let places: Vec<usize> = (0..CHUNKS)
        .map(|i| bytes.chunks_exact(STRIPE).position(|stripe| stripe == &data[i * STRIPE..][..STRIPE]).unwrap())
        .collect();
    let (rounds, apart) = places.chunks_exact(10).fold((0, 0), |(rounds, apart), places| {
        let targets: std::collections::BTreeSet<usize> = places.iter().map(|place| place % 10).collect();
        (rounds + 1, apart + usize::from(targets.len() == 10))
    });
    assert_eq!(rounds, apart, "ten ranks meet ten targets in each round: {places:?}");
}

#[test]
fn an_alignment_without_effect_is_told() {
    let bench = Bench::new("hdf5(align=1MiB,chunk=32768)");
    let file = bench.open(OpenMode::Create);
    file.create("small", &ArraySpec::new(Datatype::U8, &[1 << 20])).unwrap();
    let told = file.diagnostics();
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("align=1.00 MiB aligned nothing") && told[0].contains("32.00 KiB"), "{told:?}");
    let bench = Bench::new("hdf5(align=1MiB)");
    let file = bench.open(OpenMode::Create);
    file.create("large", &ArraySpec::new(Datatype::U8, &[1 << 20])).unwrap();
    file.create("small", &ArraySpec::new(Datatype::U8, &[1 << 10])).unwrap();
    assert_eq!(file.diagnostics(), [""; 0]);
}

#[test]
fn a_file_of_few_records_is_not_much_larger_than_they_are() {
    let bench = Bench::new("hdf5");
    let file = bench.open(OpenMode::Create);
    let array = file.create("a", &growing(&[0, 262_144], &[None, Some(262_144)])).unwrap();
    for record in 0..4 {
        array.resize(&[record + 1, 262_144]).unwrap();
        put(&*array, &Selection::dense(&[record, 0], &[1, 262_144]).unwrap(), &pattern(262_144));
    }
    file.close().unwrap();
    let bytes = bench.path().metadata().unwrap().len();
    assert!(bytes < 3 << 20, "{bytes}");
}
