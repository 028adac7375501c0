//! Comparisons for continuous integration.

use super::{Compared, Comparison, Verdict};
use crate::table::escaped;
use crate::terminal::plain;
use std::fmt::Write;

fn name(compared: &Compared<'_>) -> String {
    let (a, b) = (compared.pair.a, compared.pair.b);
    let stack = if a.stack == b.stack { a.stack.to_string() } else { format!("{} -> {}", a.stack, b.stack) };
    plain(&format!("{} on {stack}, {} ranks, {}", a.benchmark, a.ranks, a.cache.name()))
}

fn words(compared: &Compared<'_>) -> String {
    let interval = compared.ratio.interval.map(|[low, high]| format!(", {low:.3} to {high:.3}")).unwrap_or_default();
    format!("{}: {:.3} times as fast as before{interval}", compared.verdict.word(), compared.ratio.value)
}

/// XML as JUnit writes it: a suite for each pair of files, a test for each case; a slower one failed, one that was not
/// compared is skipped, or failed if it worked before.
pub fn junit(comparisons: &[Comparison<'_>]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for one in comparisons {
        let slower = one.compared.iter().filter(|c| c.verdict == Verdict::Slower).count();
        let broke = one.left_out.iter().filter(|(_, why)| one.broke && why.starts_with("failed in the second")).count();
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">",
            attribute(&format!("{} against {}", one.b, one.a)),
            one.compared.len() + one.left_out.len(),
            slower + broke,
            one.left_out.len() - broke,
        );
        for compared in &one.compared {
            let said = match compared.verdict {
                Verdict::Slower => format!("<failure message=\"{}\"/>", attribute(&words(compared))),
                _ => format!("<system-out>{}</system-out>", escaped(&words(compared))),
            };
            let _ = writeln!(
                out,
                "    <testcase classname=\"hyperslab\" name=\"{}\">{said}</testcase>",
                attribute(&name(compared))
            );
        }
        for (case, why) in &one.left_out {
            let kind = if one.broke && why.starts_with("failed in the second") { "failure" } else { "skipped" };
            let title = plain(&format!("{} on {}, case {}", case.benchmark, case.stack, case.number));
            let _ = writeln!(
                out,
                "    <testcase classname=\"hyperslab\" name=\"{}\"><{kind} message=\"{}\"/></testcase>",
                attribute(&title),
                attribute(&plain(why))
            );
        }
        out.push_str("  </testsuite>\n");
    }
    out + "</testsuites>\n"
}

fn attribute(text: &str) -> String {
    escaped(&plain(text)).replace('"', "&quot;")
}

/// Lines that a workflow of GitHub shows beside a change.
pub fn github(comparisons: &[Comparison<'_>]) -> String {
    let mut out = String::new();
    // A line is a command: what would end it is escaped.
    let data = |text: &str| plain(text).replace('%', "%25");
    for one in comparisons {
        for compared in &one.compared {
            let level = match compared.verdict {
                Verdict::Slower => "error",
                Verdict::CannotTell => "warning",
                Verdict::Faster | Verdict::Same => "notice",
            };
            let _ = writeln!(
                out,
                "::{level} title=hyperslab::{}",
                data(&format!("{}: {}", name(compared), words(compared)))
            );
        }
        for (case, why) in &one.left_out {
            let level = if one.broke && why.starts_with("failed in the second") { "error" } else { "warning" };
            let text = format!("{} on {} was not compared: {why}", case.benchmark, case.stack);
            let _ = writeln!(out, "::{level} title=hyperslab::{}", data(&text));
        }
    }
    out
}
