//! What IOR printed, as text or JSON: its flags, ranks and rates.

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// A test of IOR with its results.
#[derive(Debug, PartialEq)]
pub struct IorOutput {
    /// Flags, without the program's name.
    pub flags: Vec<String>,
    /// Ranks.
    pub ranks: usize,
    /// Ranks of a node.
    pub per_node: usize,
    /// Whether each repetition wrote, and its bytes per second while transferring.
    pub rates: Vec<(bool, f64)>,
}

const MIB: f64 = 1_048_576.0;
/// Repetitions of one output.
const MOST_ROWS: usize = 100_000;

/// Whether a text may be IOR's.
pub fn is_ior(text: &str) -> bool {
    text.contains("IOR-") || text.contains("Command line")
}

/// Reads an output.
pub fn read(text: &str) -> Result<IorOutput> {
    let found = if text.trim_start().starts_with('{') { from_json(text)? } else { from_text(text)? };
    ensure!(found.ranks >= 1 && found.ranks <= 1 << 20, "{} ranks are no number of ranks", found.ranks);
    ensure!(found.per_node >= 1, "no ranks on a node");
    ensure!(!found.rates.is_empty(), "there are no results: neither a write nor a read ended");
    Ok(found)
}

fn from_json(text: &str) -> Result<IorOutput> {
    let all: Value = serde_json::from_str(text).context("this is no JSON")?;
    let line = all["Command line"].as_str().context("it has no \"Command line\"")?;
    let tests = all["tests"].as_array().context("it has no \"tests\"")?;
    let [test] = tests.as_slice() else { bail!("it has {} tests; a calibration takes outputs of one", tests.len()) };
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
    let summary = &all["summary"][0];
    let options = &test["Options"];
    let ranks = number(&summary["numTasks"])
        .or_else(|| number(&options["tasks"]))
        .context("it does not say how many tasks ran")?;
    let per_node = number(&summary["tasksPerNode"]).or_else(|| number(&options["clients per node"])).unwrap_or(1);
    let mut rates = Vec::new();
    for row in test["Results"].as_array().context("it has no \"Results\"")?.iter().take(MOST_ROWS) {
        let writes = match row["access"].as_str() {
            Some("write") => true,
            Some("read") => false,
            _ => continue,
        };
        let (whole, seconds) = (row["totalTime"].as_f64(), row["wrRdTime"].as_f64());
        let rate = row["bwMiB"].as_f64().context("a result has no \"bwMiB\"")? * MIB;
        rates.push((writes, transferring(rate, whole, seconds)));
    }
    Ok(IorOutput { flags: flags(line), ranks: ranks as usize, per_node: per_node as usize, rates })
}

fn from_text(text: &str) -> Result<IorOutput> {
    let value = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let commands = text.lines().filter(|line| line.trim_start().starts_with("Command line")).count();
    ensure!(commands == 1, "it has {commands} command lines; a calibration takes outputs of one test");
    let line = value("Command line").context("it has no command line")?;
    let count = |name: &str| value(name).and_then(|text| text.parse::<usize>().ok());
    let ranks = count("tasks").context("it does not say how many tasks ran")?;
    let per_node = count("clients per node").unwrap_or(1);
    let heads: Vec<&str> = text
        .lines()
        .find(|line| line.trim_start().starts_with("access") && line.contains("bw(MiB/s)"))
        .context("it has no table of results")?
        .split_whitespace()
        .collect();
    let place = |name: &str| heads.iter().position(|head| head.starts_with(name));
    let mut rates = Vec::new();
    for line in text.lines().take(MOST_ROWS) {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let writes = match cells.first() {
            Some(&"write") => true,
            Some(&"read") => false,
            _ => continue,
        };
        // Rows of the summary have other columns.
        if cells.len() != heads.len() {
            continue;
        }
        let cell = |name: &str| cells.get(place(name)?)?.parse::<f64>().ok();
        let rate = cell("bw").context("a row of results has no rate")? * MIB;
        rates.push((writes, transferring(rate, cell("total"), cell("wr/rd"))));
    }
    Ok(IorOutput { flags: flags(&line), ranks, per_node, rates })
}

/// The rate without opening and closing, where the times are known.
fn transferring(rate: f64, whole: Option<f64>, transfers: Option<f64>) -> f64 {
    match (whole, transfers) {
        (Some(whole), Some(transfers)) if transfers > 0.0 && whole >= transfers => rate * whole / transfers,
        _ => rate,
    }
}

/// The words after the program's name. Quotes hold words together.
fn flags(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut quote, mut begun) = (String::new(), None, false);
    for c in line.chars() {
        match (c, quote) {
            ('"' | '\'', None) => (quote, begun) = (Some(c), true),
            (c, Some(end)) if c == end => quote = None,
            (c, None) if c.is_whitespace() => {
                if begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (c, _) => word.push(c),
        }
    }
    if begun || !word.is_empty() {
        words.push(word);
    }
    // `hyperslab ior ...` names itself by two words.
    let program = words.iter().position(|word| word.starts_with('-')).unwrap_or(words.len());
    words.split_off(program)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read() {
        let text = "IOR-4.0.0: MPI Coordinated Test of Parallel I/O\nCommand line        : /opt/ior -a HDF5 -b 4g -t \"1m\" -o '/a b/x'\n\
            nodes               : 4\ntasks               : 8\nclients per node    : 2\n\n\
            access    bw(MiB/s)  IOPS       Latency(s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter\n\
            ------    ---------  ----       ----------  ---------- ---------  --------   --------   --------   --------   ----\n\
            write     100.0      100        0.1         4194304    1024.00    0.5        9.0        0.5        10.0       0\n\
            read      200.0      100        0.1         4194304    1024.00    0.0        5.0        0.0        5.0        0\n\n\
            Summary of all tests:\nOperation   Max(MiB)   Min(MiB)\nwrite       100.0 100.0\n";
        let found = read(text).unwrap();
        assert_eq!(found.flags, ["-a", "HDF5", "-b", "4g", "-t", "1m", "-o", "/a b/x"]);
        assert_eq!((found.ranks, found.per_node), (8, 2));
        assert_eq!(found.rates, [(true, 100.0 * MIB * 10.0 / 9.0), (false, 200.0 * MIB)]);
    }

    #[test]
    fn what_is_no_output_is_refused() {
        for text in [
            "",
            "{}",
            "{\"Command line\": \"ior\"}",
            "Command line: ior\ntasks: 0\n",
            "Command line: a\nCommand line: b\n",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
