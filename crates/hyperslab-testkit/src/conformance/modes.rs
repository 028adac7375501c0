//! The four ways to open.

use super::{Check, ensure, refused};
use crate::{OraclePair, Subject};
use hyperslab_core::{
    ArraySpec, Attribute, Caps, Datatype, ErrorKind, MemoryLayout, MemoryView, OpenMode, Selection, TransferMode,
};
use libtest_mimic::Failed;

pub(super) fn checks(caps: &Caps) -> Vec<Check> {
    let stored = "the format stores nothing";
    vec![
        Check::new("open/missing", missing).needs(caps.data.readable, stored),
        Check::new("open/create refuses what exists", create).needs(caps.data.readable, stored),
        Check::new("open/truncate starts anew", truncate).needs(caps.data.readable, stored),
        Check::new("open/read refuses changes", read_only).needs(caps.data.readable, stored),
        Check::new("open/update adds", update).needs(caps.data.readable, stored),
        Check::new("open/in a missing directory", |subject| {
            let path = subject.directory().join("no/such/directory/a");
            let opened = subject.format.open(&path, OpenMode::Read, &hyperslab_comm::Solo::shared());
            refused(opened, &[ErrorKind::NotFound], "reading")?;
            let removed = subject.format.remove(&path);
            refused(removed, &[ErrorKind::NotFound], "removing").map(|_| ())
        })
        .needs(caps.data.readable, stored),
        Check::new("open/create, write, close", |subject| {
            let container = subject.open("a", OpenMode::Create)?;
            let array = container.create("array", &ArraySpec::new(Datatype::F32, &[4, 4]))?;
            let all = Selection::all(&[4, 4])?;
            array.write(&all, MemoryView::packed(&[1; 64]), TransferMode::Independent)?;
            array.write(&all, MemoryView::packed(&[1; 64]), TransferMode::Collective)?;
            ensure!(container.arrays()? == ["array"], "the array is not listed");
            array.close()?;
            Ok(container.close()?)
        }),
    ]
}

fn missing(subject: &Subject) -> Result<(), Failed> {
    for how in [OpenMode::Read, OpenMode::Update] {
        refused(subject.open("a", how), &[ErrorKind::NotFound], &format!("{how:?} of nothing"))?;
    }
    ensure!(!subject.format.exists(&subject.path("a"))?, "nothing exists, but the format says so");
    refused(subject.format.remove(&subject.path("a")), &[ErrorKind::NotFound], "removing nothing")?;
    let left = std::fs::read_dir(subject.directory())?.count();
    ensure!(left == 0, "a failed open left {left} files behind");
    Ok(())
}

fn create(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let twin = OraclePair::create(&pair.subject, &pair.oracle, "array", &ArraySpec::new(Datatype::I32, &[6]))?;
    twin.write(&Selection::all(&[6])?, &MemoryLayout::packed(), 1)?;
    pair.close()?;
    ensure!(subject.format.exists(&subject.path("a"))?, "the container does not exist");
    refused(subject.open("a", OpenMode::Create), &[ErrorKind::AlreadyExists], "Create over a container")?;
    let pair = subject.pair("a", OpenMode::Read)?;
    OraclePair::open(&pair.subject, &pair.oracle, "array")?.compare_all("after a refused Create")?;
    Ok(pair.close()?)
}

fn truncate(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Truncate)?; // where nothing is
    let spec = ArraySpec::new(Datatype::I32, &[64]);
    for name in ["old", "group/old", "both"] {
        let twin = OraclePair::create(&pair.subject, &pair.oracle, name, &spec)?;
        twin.write(&Selection::all(&[64])?, &MemoryLayout::packed(), 1)?;
    }
    pair.close()?;
    let pair = subject.pair("a", OpenMode::Truncate)?;
    ensure!(pair.subject.arrays()?.is_empty(), "arrays survived truncation");
    refused(pair.subject.array("old"), &[ErrorKind::NotFound], "an array from before")?;
    let twin = OraclePair::create(&pair.subject, &pair.oracle, "both", &spec)?;
    twin.compare_all("created anew, nothing written")?;
    pair.close()?;
    let pair = subject.pair("a", OpenMode::Read)?;
    let names = pair.subject.arrays()?;
    ensure!(names == ["both"], "the arrays are {names:?}");
    OraclePair::open(&pair.subject, &pair.oracle, "both")?.compare_all("after opening again")?;
    Ok(pair.close()?)
}

fn read_only(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let twin = OraclePair::create(&pair.subject, &pair.oracle, "array", &ArraySpec::new(Datatype::I32, &[6]))?;
    twin.write(&Selection::all(&[6])?, &MemoryLayout::packed(), 1)?;
    pair.close()?;
    let pair = subject.pair("a", OpenMode::Read)?;
    let twin = OraclePair::open(&pair.subject, &pair.oracle, "array")?;
    let all = Selection::all(&[6])?;
    let data = [0; 24];
    refused(twin.subject.write(&all, MemoryView::packed(&data), TransferMode::Independent), &[], "write")?;
    refused(pair.subject.create("new", &ArraySpec::new(Datatype::I32, &[6])), &[], "create")?;
    refused(pair.subject.set_attribute("array", "a", &Attribute::integer(1)), &[], "set attribute")?;
    refused(twin.subject.resize(&[3]), &[], "resize")?;
    if subject.caps.data.groups {
        refused(pair.subject.create_group("new"), &[], "create group")?;
    }
    twin.compare_all("after refusals")?;
    let names = pair.subject.arrays()?;
    ensure!(names == ["array"], "the arrays are {names:?}");
    Ok(pair.close()?)
}

fn update(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let spec = ArraySpec::new(Datatype::I32, &[6]);
    OraclePair::create(&pair.subject, &pair.oracle, "one", &spec)?.write(
        &Selection::all(&[6])?,
        &MemoryLayout::packed(),
        1,
    )?;
    pair.close()?;
    for (round, name) in ["two", "three", "deep/four"].iter().enumerate() {
        let pair = subject.pair("a", OpenMode::Update)?;
        let twin = OraclePair::create(&pair.subject, &pair.oracle, name, &spec)?;
        twin.write(&Selection::all(&[6])?, &MemoryLayout::packed(), 10 + round as u64)?;
        let one = OraclePair::open(&pair.subject, &pair.oracle, "one")?;
        one.write(&Selection::dense(&[round as u64], &[1])?, &MemoryLayout::packed(), 20 + round as u64)?;
        pair.close()?;
    }
    let pair = subject.pair("a", OpenMode::Read)?;
    for name in ["one", "two", "three", "deep/four"] {
        OraclePair::open(&pair.subject, &pair.oracle, name)?.compare_all(name)?;
    }
    Ok(pair.close()?)
}
