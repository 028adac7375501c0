//! Serialised form (JSON lines): a header line, then one line per step. Documented in docs/workload-format.md.

use super::{Header, Step, StepSource, Steps, TimedSteps, Workload, WrittenSteps};
use crate::{Error, ErrorKind, Result};
use serde::Deserialize;
use std::fmt::{self, Debug};
use std::io::{BufRead, Read, Write};
use std::sync::Arc;

/// The longest line that is read.
const MAX_LINE: u64 = 64 << 20;

/// A step with the rank that takes it; without a rank, every rank takes it.
#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    rank: Option<usize>,
    /// Nanoseconds that it took when it was recorded.
    #[serde(default)]
    took: Option<u64>,
    #[serde(flatten)]
    step: Step,
}

/// Writes the whole workload. A step that all ranks take next is written once, without a rank.
pub fn write_json_lines(workload: &Workload, to: &mut dyn Write) -> Result<()> {
    write_header(&workload.header, to)?;
    let mut line = Vec::new();
    let mut put = |rank: Option<usize>, took: Option<u64>, step: &Step| {
        line.clear();
        write_step(rank, took, step, &mut line)?;
        to.write_all(&line).map_err(|e| Error::io("write workload", e))
    };
    if let Some(steps) = workload.source.written_steps() {
        return steps?.try_for_each(|step| step.and_then(|(rank, took, step)| put(rank, took, &step)));
    }
    let mut streams = (0..workload.header.ranks).map(|r| workload.timed_steps(r)).collect::<Result<Vec<_>>>()?;
    loop {
        let steps: Vec<_> = streams.iter_mut().map(|s| s.next().transpose()).collect::<Result<_>>()?;
        if steps.iter().all(Option::is_none) {
            return Ok(());
        }
        let shared = steps.len() > 1 && steps.windows(2).all(|w| w[0] == w[1]);
        for (rank, step) in steps.into_iter().enumerate() {
            if let Some((step, took)) = step {
                put((!shared).then_some(rank), took, &step)?;
                if shared {
                    break;
                }
            }
        }
    }
}

/// Writes the header line.
pub fn write_header(header: &Header, to: &mut dyn Write) -> Result<()> {
    let mut line = serde_json::to_vec(header).map_err(unwritable)?;
    line.push(b'\n');
    to.write_all(&line).map_err(|e| Error::io("write workload", e))
}

/// Appends the line of a step: of one rank or of all, with the nanoseconds it took where that is known.
pub fn write_step(rank: Option<usize>, took: Option<u64>, step: &Step, to: &mut Vec<u8>) -> Result<()> {
    let begin = to.len();
    for (key, value) in [("rank", rank.map(|rank| rank as u64)), ("took", took)] {
        if let Some(value) = value {
            let before = if to.len() == begin { '{' } else { ',' };
            write!(to, "{before}\"{key}\":{value}").map_err(|e| Error::io("write workload", e))?;
        }
    }
    let inside = to.len();
    serde_json::to_writer(&mut *to, step).map_err(unwritable)?;
    if inside > begin {
        // Splices the step's keys into the object that these keys opened.
        to[inside] = b',';
    }
    to.push(b'\n');
    Ok(())
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::new(ErrorKind::Io, "write workload", error.to_string())
}

/// Reads and checks the header line.
pub fn read_header(from: &mut dyn BufRead) -> Result<Header> {
    let text = next_line(from)?.ok_or_else(|| Error::invalid("read workload", "it is empty"))?;
    let header: Header = serde_json::from_str(&text).map_err(|e| at_line(1, &e))?;
    header.check()?;
    Ok(header)
}

/// Opens the text anew from its beginning.
pub type Reopen = dyn Fn() -> std::io::Result<Box<dyn BufRead + Send>> + Send + Sync;

/// Steps parsed lazily; each rank's stream opens the text again.
pub struct JsonLines {
    open: Box<Reopen>,
}

impl Debug for JsonLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JsonLines")
    }
}

impl JsonLines {
    /// The workload in the text that `open` opens.
    pub fn workload(open: Box<Reopen>) -> Result<Workload> {
        let mut text = open().map_err(|e| Error::io("read workload", e))?;
        let header = read_header(&mut *text)?;
        Workload::new(header, Arc::new(Self { open }))
    }
}

impl StepSource for JsonLines {
    fn steps(&self, rank: usize) -> Result<Steps<'_>> {
        Ok(Box::new(self.timed_steps(rank)?.map(|step| step.map(|(step, _)| step))))
    }

    fn timed_steps(&self, rank: usize) -> Result<TimedSteps<'_>> {
        let lines = self.lines(Some(rank))?;
        Ok(Box::new(lines.map(|line| line.map(|line| (line.step, line.took)))))
    }

    fn written_steps(&self) -> Option<Result<WrittenSteps<'_>>> {
        let lines = self.lines(None);
        Some(lines.map(|lines| -> WrittenSteps<'_> {
            Box::new(lines.map(|line| line.map(|line| (line.rank, line.took, line.step))))
        }))
    }
}

impl JsonLines {
    /// The lines that concern `rank`, or all, up to the first that cannot be read.
    fn lines(&self, rank: Option<usize>) -> Result<impl Iterator<Item = Result<Line>> + Send + '_> {
        let mut text = (self.open)().map_err(|e| Error::io("read workload", e))?;
        let header = read_header(&mut *text)?;
        let others = move |of: Option<usize>| rank.is_some() && of.is_some() && of != rank;
        let mut number = 1u64;
        let mut failed = false;
        Ok(std::iter::from_fn(move || {
            while !failed {
                number += 1;
                match next_line(&mut *text) {
                    Ok(None) => return None,
                    Ok(Some(line)) if line.trim().is_empty() || others(rank_at_begin(&line)) => {}
                    Ok(Some(line)) => match parse(&line, number, &header) {
                        Ok(line) if others(line.rank) => {}
                        read => {
                            failed = read.is_err();
                            return Some(read);
                        }
                    },
                    Err(error) => {
                        failed = true;
                        return Some(Err(error));
                    }
                }
            }
            None
        }))
    }
}

fn parse(line: &str, number: u64, header: &Header) -> Result<Line> {
    let read: Line = serde_json::from_str(line).map_err(|e| at_line(number, &e))?;
    let refuse = |what: String| Err(Error::invalid("read workload", format!("line {number}: {what}")));
    match (read.took, read.rank) {
        (Some(_), _) if header.version < 2 => refuse("took belongs to version 2 of the form".into()),
        (_, Some(rank)) if rank >= header.ranks => refuse(format!("rank {rank} of {}", header.ranks)),
        _ => Ok(read),
    }
}

/// The rank of a line as this build writes it, found without reading the rest: most lines are other ranks'.
fn rank_at_begin(line: &str) -> Option<usize> {
    line.strip_prefix("{\"rank\":")?.split_once(',')?.0.parse().ok()
}

fn at_line(line: u64, error: &serde_json::Error) -> Error {
    Error::invalid("read workload", format!("line {line}, column {}: {error}", error.column()))
}

/// The next line without its end, or `None` at the end of the text.
fn next_line(from: &mut dyn BufRead) -> Result<Option<String>> {
    let mut bytes = Vec::new();
    from.take(MAX_LINE).read_until(b'\n', &mut bytes).map_err(|e| Error::io("read workload", e))?;
    if bytes.is_empty() {
        return Ok(None);
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
    } else if bytes.len() as u64 == MAX_LINE {
        return Err(Error::invalid("read workload", format!("a line is longer than {MAX_LINE} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| Error::invalid("read workload", "the text is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{ArrayDeclaration, FileDeclaration, WORKLOAD_VERSION};
    use crate::{ArraySpec, Attribute, Datatype, Durability, Fill, MemoryLayout, OpenMode, Selection, TransferMode};

    #[derive(Debug)]
    struct Fixed(Vec<Vec<Step>>);

    impl StepSource for Fixed {
        fn steps(&self, rank: usize) -> Result<Box<dyn Iterator<Item = Result<Step>> + Send + '_>> {
            Ok(Box::new(self.0[rank].iter().cloned().map(Ok)))
        }
    }

    fn example() -> Workload {
        let header = Header {
            version: WORKLOAD_VERSION,
            name: "example".into(),
            about: "every kind of step".into(),
            ranks: 2,
            seed: 5,
            recorded: None,
            files: vec![FileDeclaration::created("a.h5")],
            arrays: vec![ArrayDeclaration { spec: ArraySpec::new(Datatype::F32, &[8, 4]), fill: Fill::Ramp }],
        };
        let steps = |rank: u64| {
            let selection = Selection::dense(&[rank * 4, 0], &[4, 4]).unwrap();
            let holes = Selection::union(
                2,
                [
                    Selection::strided(&[rank * 4, 0], &[2, 2], &[2, 2], &[1, 1]).unwrap().slabs()[0].clone(),
                    Selection::dense(&[rank * 4 + 3, 1], &[1, 3]).unwrap().slabs()[0].clone(),
                ],
            )
            .unwrap();
            let mut steps = vec![
                Step::OpenFile { file: 0, how: OpenMode::Truncate },
                Step::Group { file: 0, name: "g".into() },
                Step::Attribute { file: 0, object: "".into(), name: "t".into(), value: Attribute::text("x") },
                Step::Epoch { number: 0 },
                Step::Create { slot: 0, file: 0, array: 0, name: "g/x".into() },
                Step::Write {
                    slot: 0,
                    selection: selection.clone(),
                    memory: Arc::new(MemoryLayout::member(32, 4)),
                    transfer: TransferMode::Collective,
                },
                Step::Compute { nanoseconds: 10 },
                Step::Flush { file: 0, how: Durability::Durable },
                Step::Resize { slot: 0, shape: [9, 4].as_slice().into() },
                Step::Read { slot: 0, selection: holes, memory: Arc::default(), transfer: TransferMode::Independent },
                Step::CloseArray { slot: 0 },
                Step::CloseFile { file: 0 },
            ];
            if rank == 1 {
                steps.push(Step::Barrier);
            }
            steps
        };
        Workload::new(header, Arc::new(Fixed(vec![steps(0), steps(1)]))).unwrap()
    }

    fn reread(text: Vec<u8>) -> Result<Workload> {
        let text: Arc<[u8]> = text.into();
        JsonLines::workload(Box::new(move || Ok(Box::new(std::io::Cursor::new(text.clone())))))
    }

    #[test]
    fn the_written_form_round_trips() {
        let before = example();
        let mut text = Vec::new();
        write_json_lines(&before, &mut text).unwrap();
        let after = reread(text.clone()).unwrap();
        assert_eq!(before.header, after.header);
        for rank in 0..2 {
            let walk = |w: &Workload| w.steps(rank).unwrap().collect::<Result<Vec<_>>>().unwrap();
            assert_eq!(walk(&before), walk(&after));
        }
        let mut again = Vec::new();
        write_json_lines(&after, &mut again).unwrap();
        assert_eq!(text, again);
    }

    #[test]
    fn broken_text_is_refused_with_its_place() {
        let mut text = Vec::new();
        write_json_lines(&example(), &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let broken = text.replacen("\"do\":\"group\"", "\"do\":\"grope\"", 1);
        let workload = reread(broken.into_bytes()).unwrap();
        let error = workload.steps(0).unwrap().find_map(Result::err).unwrap();
        assert!(error.to_string().contains("line 3"), "{error}");
        for bad in ["", "{}", "[]", "{\"hyperslab_workload\":2}", "\u{0}"] {
            assert!(reread(bad.as_bytes().to_vec()).is_err(), "{bad}");
        }
        let escape = text.replacen("a.h5", "../a.h5", 1);
        assert!(reread(escape.into_bytes()).unwrap_err().to_string().contains("relative"));
    }

    #[test]
    fn times_and_versions_are_kept_apart() {
        let mut text = Vec::new();
        write_header(&Header { ranks: 1, ..example().header }, &mut text).unwrap();
        let step = Step::CloseFile { file: 0 };
        for (rank, took) in [(None, None), (Some(0), None), (None, Some(7)), (Some(0), Some(u64::MAX))] {
            write_step(rank, took, &step, &mut text).unwrap();
        }
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.ends_with("{\"rank\":0,\"took\":18446744073709551615,\"do\":\"close_file\",\"file\":0}\n"),
            "{text}"
        );
        let times = |text: &str| -> Result<Vec<Option<u64>>> {
            let workload = reread(text.as_bytes().to_vec())?;
            workload.timed_steps(0)?.map(|step| step.map(|(_, took)| took)).collect()
        };
        assert_eq!(times(&text).unwrap(), [None, None, Some(7), Some(u64::MAX)]);
        let old = text.replacen("workload\":2", "workload\":1", 1);
        assert!(times(&old).unwrap_err().to_string().contains("version 2"));
        let other = text.replace("\"rank\":0", "\"rank\":1");
        assert!(times(&other).is_ok_and(|times| times.len() == 2), "other ranks' lines are passed over");
    }
}
