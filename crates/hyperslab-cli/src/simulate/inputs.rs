//! What is simulated: kernels, workflows, workload files and IOR's flags, each as workloads on a stack.

use super::SimulateOptions;
use anyhow::{Context, Result, bail};
use hyperslab_bench::{BenchOptions, Launcher, MapFiles, Plan};
use hyperslab_core::workload::{JsonLines, Workload};
use hyperslab_core::{Error, Stack, StackElement, suggest};
use hyperslab_kernels::{Kernel, kernels};
use std::fs::File;
use std::path::Path;

/// A workload on a stack.
pub struct SimulatedCase {
    /// What it is.
    pub label: String,
    /// What ranks do.
    pub workload: Workload,
    /// On what.
    pub stack: Stack,
}

/// Ranks beyond which workflows, whose steps are all walked through first, are refused.
const MOST_WALKED: u32 = 1 << 16;

/// All cases of the input.
pub fn cases(options: &SimulateOptions, input: &Path, stack: &Stack) -> Result<Vec<SimulatedCase>> {
    let word = input.to_str().unwrap_or_default();
    let cases = if word == "ior" {
        ior(options, stack)?
    } else if let Some(kernel) = Kernel::named(word) {
        let ranks = options.ranks.map_or(kernel.ranks, |ranks| ranks as usize);
        let phases = kernel.phases(&options.keys, ranks, &MapFiles).context(kernel.name)?;
        let case = |phase: hyperslab_kernels::Phase| {
            let mut stack = stack.clone();
            if let Some(layer) = phase.layer.filter(|layer| !stack.has_layer(layer)) {
                stack.layers.insert(0, StackElement::plain(layer));
            }
            SimulatedCase { label: phase.label, workload: phase.workload, stack }
        };
        phases.into_iter().map(case).collect()
    } else if input.extension().is_some_and(|extension| extension == "jsonl") {
        vec![recorded(options, input, stack)?]
    } else if input.extension().is_none() && !input.exists() {
        let known = kernels().iter().map(|kernel| kernel.name).chain(["ior"]);
        let error = Error::invalid("choose input", format!("{word} is neither a file nor a kernel"));
        return Err(error.hint(suggest::hint(word, known)).into());
    } else {
        workflow(options, input, stack)?
    };
    let changed = |mut case: SimulatedCase| {
        if let Some(transfer) = options.transfers.and_then(|transfers| transfers.on(&case.stack)) {
            case.workload = case.workload.with_transfers(transfer);
        }
        case
    };
    Ok(cases.into_iter().map(changed).collect())
}

fn ior(options: &SimulateOptions, stack: &Stack) -> Result<Vec<SimulatedCase>> {
    let mut notes = Vec::new();
    let Some(tests) = hyperslab_ior::parse(&options.keys, &mut notes)? else {
        bail!("hyperslab ior --help lists IOR's flags");
    };
    notes.iter().for_each(|note| eprintln!("note: {note}"));
    let mut cases = Vec::new();
    for settings in &tests {
        let ranks = options.ranks.unwrap_or(1) as usize;
        let asked = [settings.write_file, settings.read_file];
        let [write, read] = hyperslab_ior::workloads(settings, ranks)?;
        let both = asked == [false, false];
        for (workload, wanted, label) in [(write, asked[0], "ior write"), (read, asked[1], "ior read")] {
            if wanted || both {
                cases.push(SimulatedCase { label: label.into(), workload, stack: stack.clone() });
            }
        }
    }
    Ok(cases)
}

fn recorded(options: &SimulateOptions, input: &Path, stack: &Stack) -> Result<SimulatedCase> {
    let open = || File::open(input).with_context(|| format!("read {}", input.display()));
    open()?;
    let path = input.to_owned();
    let reopen = move || -> std::io::Result<Box<dyn std::io::BufRead + Send>> {
        Ok(Box::new(std::io::BufReader::new(File::open(&path)?)))
    };
    let workload = JsonLines::workload(Box::new(reopen)).with_context(|| input.display().to_string())?;
    let recorded = workload.header.ranks;
    let workload = match options.ranks {
        Some(ranks) if ranks as usize != recorded => {
            eprintln!(
                "note: recorded with {recorded} ranks; {ranks} are taken to do the same beside each other, with as many bytes each"
            );
            hyperslab_sim::rescaled(&workload, ranks as usize).with_context(|| input.display().to_string())?
        }
        _ => workload,
    };
    Ok(SimulatedCase { label: workload.header.name.clone(), workload, stack: stack.clone() })
}

fn workflow(options: &SimulateOptions, input: &Path, stack: &Stack) -> Result<Vec<SimulatedCase>> {
    if let Some(ranks) = options.ranks.filter(|ranks| *ranks > MOST_WALKED) {
        bail!(
            "{ranks} ranks of a workflow are walked through one by one; at most {MOST_WALKED} are taken: use a kernel"
        );
    }
    let asked = BenchOptions {
        config: Some(input.to_owned()),
        stack: Some(stack.to_string()),
        launcher: Launcher::Threads,
        directory: Some(std::env::temp_dir()),
        rank_list: options.ranks.map(|ranks| ranks.to_string()),
        ..BenchOptions::default()
    };
    let plan = Plan::new(&asked, None)?;
    let mut cases = Vec::new();
    for case in plan.cases {
        match case.work {
            Ok(work) => {
                let label = format!("{} {}", case.number, case.benchmark);
                cases.push(SimulatedCase { label, workload: work.workload, stack: case.stack });
            }
            Err(reason) => eprintln!("note: {} on {} is left out: {reason}", case.benchmark, case.stack),
        }
    }
    Ok(cases)
}
