//! Recordings of very many requests: a part of them that stands for all, so that advice comes soon.

use anyhow::{Context, Result};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use tempfile::TempDir;

/// More requests than this are thinned out to about as many.
const MOST: u64 = 20_000;
/// Requests that follow each other are kept together, since caches live of that.
const TOGETHER: u64 = 250;

/// A recording with fewer requests, gone when it is dropped.
pub struct Thinned {
    /// Holds the file.
    pub folder: TempDir,
    /// One in so many requests is left.
    pub factor: u64,
    /// Requests that there were.
    pub requests: u64,
}

/// The name of the file in the folder.
pub const NAME: &str = "thinned.jsonl";

/// Thins out a workload in a file of JSON lines; `None` if it has few requests, or several ranks, whose requests may belong
/// together.
pub fn thinned(path: &Path) -> Result<Option<Thinned>> {
    let requests = match requests(path)? {
        Some(requests) if requests > MOST => requests,
        _ => return Ok(None),
    };
    let factor = requests.div_ceil(MOST);
    let folder = TempDir::with_prefix("hyperslab-advise-").context("make a temporary folder")?;
    let mut lines = BufReader::new(File::open(path)?).lines();
    let mut header: Value = serde_json::from_str(&lines.next().context("it is empty")??)?;
    let (mut kept, mut steps, mut seen, mut keeps) = (Vec::new(), 0u64, 0u64, true);
    for line in lines {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        if is_request(&line) {
            keeps = (seen / TOGETHER).is_multiple_of(factor);
            seen += 1;
        }
        // What was computed beside requests that are left out is left out with them.
        let beside = is_request(&line) || line.contains("\"do\":\"compute\"");
        if keeps || !beside {
            steps += 1;
            kept.push(line);
        }
    }
    if let Some(recorded) = header.get_mut("recorded").filter(|recorded| recorded.is_object()) {
        recorded["steps"] = steps.into();
    }
    let mut out = BufWriter::new(File::create(folder.path().join(NAME))?);
    writeln!(out, "{header}")?;
    for line in kept {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(Some(Thinned { folder, factor, requests }))
}

/// How many requests there are; `None` if they are of several ranks.
fn requests(path: &Path) -> Result<Option<u64>> {
    let mut lines = BufReader::new(File::open(path).with_context(|| format!("read {}", path.display()))?).lines();
    let Some(header) = lines.next() else { return Ok(None) };
    // What is no workload is refused by those who read it whole.
    let header: Value = serde_json::from_str(&header?).unwrap_or_default();
    if header["ranks"].as_u64() != Some(1) {
        return Ok(None);
    }
    let mut requests = 0;
    for line in lines {
        requests += u64::from(is_request(&line?));
    }
    Ok(Some(requests))
}

fn is_request(line: &str) -> bool {
    ["\"do\":\"write\"", "\"do\":\"read\"", "\"do\": \"write\"", "\"do\": \"read\""]
        .iter()
        .any(|word| line.contains(word))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use hyperslab_core::workload::JsonLines;

    #[test]
    fn a_part_stands_for_all_and_is_a_workload() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w.jsonl");
        let mut text = String::from(
            "{\"hyperslab_workload\":2,\"name\":\"w\",\"ranks\":1,\"recorded\":{\"by\":\"x\",\"complete\":true,\"steps\":100004},\"files\":[{\"name\":\"f\",\
             \"created\":true}],\"arrays\":[{\"dtype\":\"<i4\",\"shape\":[100000]}]}\n\
             {\"do\":\"open_file\",\"file\":0,\"how\":\"create\"}\n\
             {\"do\":\"create\",\"slot\":0,\"file\":0,\"array\":0,\"name\":\"a\"}\n",
        );
        for i in 0..100_000 {
            text += &format!("{{\"do\":\"write\",\"slot\":0,\"selection\":{{\"start\":[{i}],\"count\":[1]}}}}\n");
        }
        text += "{\"do\":\"close_array\",\"slot\":0}\n{\"do\":\"close_file\",\"file\":0}\n";
        std::fs::write(&path, &text).unwrap();
        let found = thinned(&path).unwrap().unwrap();
        assert_eq!((found.factor, found.requests), (5, 100_000));
        let file = found.folder.path().join(NAME);
        let open = move || Ok(Box::new(BufReader::new(File::open(&file)?)) as Box<dyn BufRead + Send>);
        let workload = JsonLines::workload(Box::new(open)).unwrap();
        assert_eq!(workload.validate().unwrap().bytes_written, 20_000 * 4);
        std::fs::write(&path, text.replacen("\"ranks\":1", "\"ranks\":2", 1)).unwrap();
        assert!(thinned(&path).unwrap().is_none());
    }
}
