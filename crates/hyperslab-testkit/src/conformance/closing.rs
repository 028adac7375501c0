//! Flushing, closing, and use after that.

use super::{Check, ensure, refused};
use crate::{OraclePair, Subject};
use hyperslab_core::{
    ArraySpec, Attribute, Caps, Datatype, Durability, MemoryLayout, MemoryView, MemoryViewMut, OpenMode, Selection,
    TransferMode,
};
use libtest_mimic::Failed;

pub(super) fn checks(caps: &Caps) -> Vec<Check> {
    vec![
        Check::new("close/use after closing the container", after_container),
        Check::new("close/use after closing the array", after_array),
        Check::new("close/twice", twice),
        Check::new("close/with nothing inside", empty).needs(caps.data.readable, "the format stores nothing"),
        Check::new("close/dropped without closing", dropped).needs(caps.data.readable, "the format stores nothing"),
        Check::new("close/an array opened twice", opened_twice).needs(caps.data.readable, "the format stores nothing"),
        Check::new("flush/both ways", flush),
        Check::new("flush/others can read it", visible).needs(caps.data.readable, "the format stores nothing"),
    ]
}

fn after_container(subject: &Subject) -> Result<(), Failed> {
    let container = subject.open("a", OpenMode::Create)?;
    let spec = ArraySpec::new(Datatype::I32, &[4]);
    let array = container.create("array", &spec)?;
    let all = Selection::all(&[4])?;
    array.write(&all, MemoryView::packed(&[1; 16]), TransferMode::Independent)?;
    container.close()?;
    let mut buffer = [0; 16];
    refused(array.write(&all, MemoryView::packed(&[2; 16]), TransferMode::Independent), &[], "write")?;
    refused(array.read(&all, MemoryViewMut::packed(&mut buffer), TransferMode::Independent), &[], "read")?;
    refused(array.resize(&[5]), &[], "resize")?;
    refused(container.create("new", &spec), &[], "create")?;
    refused(container.array("array"), &[], "array")?;
    refused(container.arrays(), &[], "arrays")?;
    refused(container.groups(), &[], "groups")?;
    refused(container.create_group("group"), &[], "create_group")?;
    refused(container.set_attribute("", "a", &Attribute::integer(1)), &[], "set_attribute")?;
    refused(container.attribute("", "a"), &[], "attribute")?;
    refused(container.attributes(""), &[], "attributes")?;
    refused(container.flush(Durability::Visible), &[], "flush")?;
    array.close()?;
    container.close()?;
    drop((array, container));
    if subject.caps.data.readable {
        let container = subject.open("a", OpenMode::Read)?;
        let array = container.array("array")?;
        array.read(&all, MemoryViewMut::packed(&mut buffer), TransferMode::Independent)?;
        ensure!(buffer == [1; 16], "the refused write changed the data");
        container.close()?;
    }
    Ok(())
}

fn after_array(subject: &Subject) -> Result<(), Failed> {
    let container = subject.open("a", OpenMode::Create)?;
    let array = container.create("array", &ArraySpec::new(Datatype::I32, &[4]))?;
    array.close()?;
    array.close()?;
    let all = Selection::all(&[4])?;
    refused(array.write(&all, MemoryView::packed(&[2; 16]), TransferMode::Independent), &[], "write")?;
    let mut buffer = [0; 16];
    refused(array.read(&all, MemoryViewMut::packed(&mut buffer), TransferMode::Independent), &[], "read")?;
    let again = container.array("array")?;
    again.write(&all, MemoryView::packed(&[3; 16]), TransferMode::Independent)?;
    again.close()?;
    Ok(container.close()?)
}

fn twice(subject: &Subject) -> Result<(), Failed> {
    let container = subject.open("a", OpenMode::Create)?;
    let array = container.create("array", &ArraySpec::new(Datatype::I32, &[4]))?;
    for _ in 0..3 {
        container.close()?;
    }
    array.close()?;
    if subject.caps.data.readable {
        // What a late close leaves behind must not disturb a new owner.
        let second = subject.open("a", OpenMode::Update)?;
        container.close()?;
        second.create("more", &ArraySpec::new(Datatype::I32, &[4]))?;
        second.close()?;
    }
    Ok(())
}

fn empty(subject: &Subject) -> Result<(), Failed> {
    subject.open("a", OpenMode::Create)?.close()?;
    ensure!(subject.format.exists(&subject.path("a"))?, "an empty container does not exist");
    let container = subject.open("a", OpenMode::Read)?;
    ensure!(container.arrays()?.is_empty(), "an empty container has arrays");
    Ok(container.close()?)
}

fn dropped(subject: &Subject) -> Result<(), Failed> {
    let container = subject.open("a", OpenMode::Create)?;
    let array = container.create("array", &ArraySpec::new(Datatype::I32, &[4]))?;
    let all = Selection::all(&[4])?;
    array.write(&all, MemoryView::packed(&[9; 16]), TransferMode::Independent)?;
    container.flush(Durability::Visible)?;
    drop(container);
    drop(array);
    let container = subject.open("a", OpenMode::Update)?;
    let mut buffer = [0; 16];
    container.array("array")?.read(&all, MemoryViewMut::packed(&mut buffer), TransferMode::Independent)?;
    ensure!(buffer == [9; 16], "flushed data was lost");
    Ok(container.close()?)
}

fn opened_twice(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let one = OraclePair::create(&pair.subject, &pair.oracle, "array", &ArraySpec::new(Datatype::F32, &[7, 3]))?;
    let two = OraclePair::open(&pair.subject, &pair.oracle, "array")?;
    for row in 0..7 {
        let twin = if row % 2 == 0 { &one } else { &two };
        twin.write(&Selection::dense(&[row, 0], &[1, 3])?, &MemoryLayout::packed(), row)?;
        one.compare_all("the first handle")?;
        two.compare_all("the second handle")?;
    }
    one.subject.close()?;
    two.compare_all("after closing the first handle")?;
    Ok(pair.close()?)
}

fn flush(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    pair.subject.flush(Durability::Visible)?;
    pair.subject.flush(Durability::Durable)?;
    let twin = OraclePair::create(&pair.subject, &pair.oracle, "array", &ArraySpec::new(Datatype::F32, &[7, 3]))?;
    for (i, how) in [Durability::Visible, Durability::Durable, Durability::Durable].into_iter().enumerate() {
        twin.write(&Selection::dense(&[2 * i as u64, 0], &[2, 3])?, &MemoryLayout::packed(), i as u64)?;
        pair.subject.flush(how)?;
        if subject.caps.data.readable {
            twin.compare_all("after a flush")?;
        }
    }
    Ok(pair.close()?)
}

fn visible(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let twin = OraclePair::create(&pair.subject, &pair.oracle, "array", &ArraySpec::new(Datatype::F32, &[7, 3]))?;
    twin.write(&Selection::all(&[7, 3])?, &MemoryLayout::packed(), 6)?;
    pair.subject.flush(Durability::Visible)?;
    let other = subject.pair("a", OpenMode::Read)?;
    OraclePair::open(&other.subject, &other.oracle, "array")?.compare_all("seen by another reader")?;
    other.close()?;
    twin.compare_all("after the other reader closed")?;
    Ok(pair.close()?)
}
