//! Names, groups and the list of arrays.

use super::{Check, ensure, refused, trying};
use crate::{OraclePair, Subject};
use hyperslab_core::{ArraySpec, Attribute, Caps, Datatype, ErrorKind, MemoryLayout, OpenMode, Selection};
use libtest_mimic::Failed;

pub(super) fn checks(caps: &Caps) -> Vec<Check> {
    vec![
        Check::new("names/of every sort", names),
        Check::new("names/that are refused", bad_names),
        Check::new("names/groups above an array are made", parents),
        Check::new("groups/are objects of their own", groups).needs(caps.data.groups, "no groups"),
        Check::new("names/an array is no group", array_is_no_group),
    ]
}

fn names(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let long = "n".repeat(120);
    let mut names = vec![
        "plain",
        "Plain",
        "with space",
        "dot.dot",
        "..x",
        "données/été",
        "日本/語",
        "a-b_c+d=e",
        "1",
        "0/1/2",
        "q?*[x]",
        "percent%20",
        "per:cent",
        "quote\"s'",
        "back\\slash",
        "c",
        "c/0",
        "data",
        "array",
        &long,
    ];
    for (i, name) in names.iter().enumerate() {
        let created = OraclePair::create(&pair.subject, &pair.oracle, name, &ArraySpec::new(Datatype::I32, &[3]));
        let twin = match created {
            // `c` is an array above, so nothing can be inside it.
            Err(_) if *name == "c/0" => continue,
            created => trying(created, || format!("create {name:?}"))?,
        };
        let seed = 100 * i as u64;
        trying(twin.write(&Selection::all(&[3])?, &MemoryLayout::packed(), seed), || format!("write {name:?}"))?;
    }
    pair.close()?;
    names.retain(|name| *name != "c/0");
    names.sort_unstable();
    let pair = subject.pair("a", OpenMode::Read)?;
    let found = pair.subject.arrays()?;
    ensure!(found == names, "the arrays are {found:?}, expected {names:?}");
    for name in names {
        let twin = trying(OraclePair::open(&pair.subject, &pair.oracle, name), || format!("open {name:?}"))?;
        twin.compare_all(name)?;
    }
    Ok(pair.close()?)
}

fn bad_names(subject: &Subject) -> Result<(), Failed> {
    let outer = subject.open("a", OpenMode::Create)?;
    let listing = || -> Result<Vec<std::ffi::OsString>, Failed> {
        let mut names = std::fs::read_dir(subject.directory())?
            .map(|entry| Ok(entry?.file_name()))
            .collect::<Result<Vec<_>, std::io::Error>>()?;
        names.sort();
        Ok(names)
    };
    let before = listing()?;
    for name in ["", "/absolute", "ends/", "two//parts", "..", "a/../b", "../escaped", ".", "./a", "a/."] {
        // The empty name is that of the root, which exists.
        let also = if name.is_empty() { ErrorKind::AlreadyExists } else { ErrorKind::InvalidInput };
        let kinds = [ErrorKind::InvalidInput, also];
        let created = outer.create(name, &ArraySpec::new(Datatype::I32, &[3]));
        refused(created, &kinds, &format!("create {name:?}"))?;
        refused(outer.array(name), &[ErrorKind::InvalidInput, ErrorKind::NotFound], &format!("open {name:?}"))?;
        if !name.is_empty() && subject.caps.data.groups {
            refused(outer.create_group(name), &kinds, &format!("create group {name:?}"))?;
        }
    }
    ensure!(outer.arrays()?.is_empty(), "a refused name is listed");
    let after = listing()?;
    ensure!(before == after, "files beside the container changed from {before:?} to {after:?}");
    Ok(outer.close()?)
}

fn parents(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    for name in ["a/b/c", "a/b/d", "a/e", "f"] {
        let twin = OraclePair::create(&pair.subject, &pair.oracle, name, &ArraySpec::new(Datatype::F64, &[2, 2]))?;
        twin.write(&Selection::all(&[2, 2])?, &MemoryLayout::packed(), name.len() as u64)?;
    }
    pair.close()?;
    let pair = subject.pair("a", OpenMode::Update)?;
    let names = pair.subject.arrays()?;
    ensure!(names == ["a/b/c", "a/b/d", "a/e", "f"], "the arrays are {names:?}");
    if subject.caps.data.groups {
        let groups = pair.subject.groups()?;
        ensure!(groups == ["a", "a/b"], "the groups are {groups:?}");
    }
    for name in &names {
        OraclePair::open(&pair.subject, &pair.oracle, name)?.compare_all(name)?;
    }
    if subject.caps.data.attributes && subject.caps.data.groups {
        pair.subject.set_attribute("a/b", "made", &Attribute::integer(1))?;
    }
    refused(pair.subject.array("a/b"), &[ErrorKind::NotFound, ErrorKind::InvalidInput], "opening a group as array")?;
    Ok(pair.close()?)
}

fn groups(subject: &Subject) -> Result<(), Failed> {
    let container = subject.open("a", OpenMode::Create)?;
    container.create_group("g/h/été x")?;
    container.create_group("g/h")?;
    container.create_group("g/h/été x")?;
    let kinds = [ErrorKind::AlreadyExists];
    refused(container.create("g/h", &ArraySpec::new(Datatype::I32, &[3])), &kinds, "an array where a group is")?;
    container.create("g/h/array", &ArraySpec::new(Datatype::I32, &[3]))?;
    container.create_group("g/h")?;
    container.close()?;
    let container = subject.open("a", OpenMode::Update)?;
    let arrays = container.arrays()?;
    ensure!(arrays == ["g/h/array"], "the arrays are {arrays:?}");
    let groups = container.groups()?;
    ensure!(groups == ["g", "g/h", "g/h/été x"], "the groups are {groups:?}");
    if subject.caps.data.attributes {
        for group in ["", "g", "g/h", "g/h/été x"] {
            trying(container.set_attribute(group, "level", &Attribute::text(group)), || format!("group {group:?}"))?;
            let names = container.attributes(group)?;
            ensure!(names == ["level"], "group {group:?} has the attributes {names:?}");
        }
    }
    Ok(container.close()?)
}

fn array_is_no_group(subject: &Subject) -> Result<(), Failed> {
    let pair = subject.pair("a", OpenMode::Create)?;
    let twin = OraclePair::create(&pair.subject, &pair.oracle, "array", &ArraySpec::new(Datatype::I32, &[3]))?;
    twin.write(&Selection::all(&[3])?, &MemoryLayout::packed(), 5)?;
    refused(pair.subject.create("array/inner", &ArraySpec::new(Datatype::I32, &[3])), &[], "an array in an array")?;
    if subject.caps.data.groups {
        refused(pair.subject.create_group("array"), &[], "a group where an array is")?;
        refused(pair.subject.create_group("array/inner"), &[], "a group in an array")?;
    }
    let names = pair.subject.arrays()?;
    ensure!(names == ["array"], "the arrays are {names:?}");
    twin.compare_all("after refusals")?;
    Ok(pair.close()?)
}
