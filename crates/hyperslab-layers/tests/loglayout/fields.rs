//! Some fields of elements: the others are kept, whoever wrote them.

use crate::{FORMATS, content, format, place, ranks};
use hyperslab_core::{ArraySpec, Datatype, MemoryLayout, MemoryView, OpenMode, Selection, TransferMode};

const FIELDS: usize = 8;
const ELEMENTS: u64 = 50;

/// Eight fields of 4 bytes, as particles have.
fn particle() -> Datatype {
    Datatype::packed_compound((0..FIELDS).map(|n| (format!("field {n}"), Datatype::I32))).unwrap()
}

fn value(round: i32, field: usize, element: u64) -> [u8; 4] {
    (round * 10_000 + field as i32 * 1000 + element as i32).to_ne_bytes()
}

fn expected(round: impl Fn(usize) -> i32) -> Vec<u8> {
    (0..ELEMENTS).flat_map(|e| (0..FIELDS).flat_map(|f| value(round(f), f, e)).collect::<Vec<_>>()).collect()
}

/// Every rank writes one field of all elements, so that each element is written by eight ranks between two flushes.
#[test]
fn ranks_that_write_one_field_each_keep_the_others() {
    for below in FORMATS {
        for options in ["", "(room=0)", "(room=900)", "(room=3KiB)"] {
            let stack = format!("loglayout{options}/{below}");
            let format = format(&stack);
            let (_folder, path) = place(&*format);
            ranks(&*format, &path, OpenMode::Truncate, FIELDS, |comm, container| {
                let array = container.create("particles", &ArraySpec::new(particle(), &[ELEMENTS]))?;
                let field = comm.rank();
                // Memory has the field alone, or at the end of larger structures.
                let before = if field % 2 == 0 { 0 } else { 8 };
                let layout = MemoryLayout::fields(before + 4, [(format!("field {field}"), before)]);
                let all = Selection::all(&[ELEMENTS])?;
                for round in 0..2 {
                    // The second time ranks 4 to 7 write nothing new.
                    if round == 0 || field < 4 {
                        let data: Vec<u8> = (0..ELEMENTS)
                            .flat_map(|e| [&[0xAA; 8][..before as usize], &value(round, field, e)].concat())
                            .collect();
                        array.write(&all, MemoryView { data: &data, layout: &layout }, TransferMode::Independent)?;
                    }
                    container.flush(hyperslab_core::Durability::Visible)?;
                    assert!(
                        crate::read(&*array)? == expected(|f| if f < 4 { round } else { 0 }),
                        "{stack}, rank {field}, round {round}"
                    );
                    comm.barrier()?;
                }
                array.close()
            });
            assert!(content(&*format, &path, "particles").unwrap() == expected(|f| i32::from(f < 4)), "{stack}");
        }
    }
}

/// Members in another order than the fields, with others between them, and nested layouts.
#[test]
fn members_may_lie_in_any_order() {
    for options in ["", "(room=0)"] {
        let format = format(&format!("loglayout{options}/memory"));
        let (_folder, path) = place(&*format);
        ranks(&*format, &path, OpenMode::Truncate, 1, |_, container| {
            let array = container.create("particles", &ArraySpec::new(particle(), &[ELEMENTS]))?;
            let all = Selection::all(&[ELEMENTS])?;
            let write = |fields: &[usize], round: i32, gap: usize| {
                let size = fields.len() * 4 + gap;
                let members = fields.iter().enumerate().map(|(at, field)| (format!("field {field}"), at as u64 * 4));
                let layout = MemoryLayout::fields(size as u64, members);
                let mut data = Vec::new();
                for e in 0..ELEMENTS {
                    fields.iter().for_each(|field| data.extend(value(round, *field, e)));
                    data.extend(vec![0xBB; gap]);
                }
                array.write(&all, MemoryView { data: &data, layout: &layout }, TransferMode::Independent)
            };
            write(&[7, 6, 5, 4, 3, 2, 1, 0], 1, 0)?;
            write(&[2, 3], 2, 0)?;
            write(&[6, 5], 3, 0)?;
            write(&[0, 7], 4, 5)
        });
        let round = |field| [4, 1, 2, 2, 1, 3, 3, 4][field];
        assert!(content(&*format, &path, "particles").unwrap() == expected(round), "{options}");
    }
}
