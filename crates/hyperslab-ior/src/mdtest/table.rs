//! The table of mdtest.

use super::options::Options;
use super::phases::{ItemKind, Iteration};

const ROWS: [(ItemKind, &str); 10] = [
    (ItemKind::DirectoryCreation, "Directory creation"),
    (ItemKind::DirectoryStat, "Directory stat"),
    (ItemKind::DirectoryRename, "Directory rename"),
    (ItemKind::DirectoryRemoval, "Directory removal"),
    (ItemKind::FileCreation, "File creation"),
    (ItemKind::FileStat, "File stat"),
    (ItemKind::FileRead, "File read"),
    (ItemKind::FileRemoval, "File removal"),
    (ItemKind::TreeCreation, "Tree creation"),
    (ItemKind::TreeRemoval, "Tree removal"),
];

/// Rates, times, or both.
pub fn summary(options: &Options, iterations: &[Iteration]) -> String {
    let mut text = String::new();
    if options.print_rates {
        let rate = |items: u64, seconds: f64| items as f64 / seconds;
        text.push_str(&table("rate (in ops/sec)", options, iterations, rate));
    }
    if options.print_times {
        let time = |items: u64, seconds: f64| seconds * 1000.0 / items.max(1) as f64;
        text.push_str(&table("time (in ms/op)", options, iterations, time));
    }
    text
}

fn table(what: &str, options: &Options, iterations: &[Iteration], of: impl Fn(u64, f64) -> f64) -> String {
    let mut text = format!(
        "\nSUMMARY {what}: (of {} iterations)\n   Operation                     Max            Min           Mean        Std Dev\n   \
         ---------                     ---            ---           ----        -------\n",
        iterations.len()
    );
    for (kind, name) in ROWS {
        let found = iterations.iter().flat_map(|iteration| iteration.phases.iter().filter(|phase| phase.kind == kind));
        let values: Vec<f64> = found.map(|phase| of(phase.items, phase.seconds)).collect();
        let asked = match kind {
            ItemKind::DirectoryRename => options.rename && options.on_directories,
            ItemKind::DirectoryCreation | ItemKind::DirectoryStat | ItemKind::DirectoryRemoval => {
                options.on_directories
            }
            ItemKind::FileCreation | ItemKind::FileStat | ItemKind::FileRead | ItemKind::FileRemoval => {
                options.on_files
            }
            ItemKind::TreeCreation | ItemKind::TreeRemoval => true,
        };
        if asked {
            text.push_str(&row(name, &values));
        }
    }
    text
}

/// A phase that was not run has no figures.
fn row(name: &str, values: &[f64]) -> String {
    if values.is_empty() {
        return format!("   {name:<22} {:>14} {:>14} {:>14} {:>14}\n", "NA", "NA", "NA", "NA");
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    // Of a sample, unlike in IOR.
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    format!("   {name:<22} {max:>14.3} {min:>14.3} {mean:>14.3} {:>14.3}\n", variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As wide as a line of mdtest itself.
    #[test]
    fn rows_are_as_wide_as_in_mdtest() {
        let line = "   Directory creation          61959.353         25.855      30992.604      43793.596\n";
        assert_eq!(row("Directory creation", &[61959.353, 25.855]), line);
        assert_eq!(
            row("Tree removal", &[2.0]),
            "   Tree removal                    2.000          2.000          2.000          0.000\n"
        );
    }
}
