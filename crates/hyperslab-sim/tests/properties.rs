//! What must hold of every simulation.
#![allow(clippy::unwrap_used)]

use hyperslab_core::{Stack, TransferMode};
use hyperslab_kernels::ior::{Ior, Layout, Readers};
use hyperslab_sim::{
    LayerEffects, RunPlacement, Simulated, System, WalkEvent, Walked, builtin, builtin_names, intervals, limits,
    simulate, walk,
};
use proptest::prelude::*;

fn ior(ranks: usize, block: u64, transfer: u64, segments: u64, collective: bool) -> Ior {
    let mode = if collective { TransferMode::Collective } else { TransferMode::Independent };
    Ior { block, transfer, segments, layout: Layout::Bytes { chunk: None }, mode, ..Ior::new(ranks, "file") }
}

fn walked(ior: &Ior, stack: &str, system: &System, run: &RunPlacement, writes: bool) -> Walked {
    let workload = if writes { ior.write().unwrap() } else { ior.read(Readers::own()).unwrap() };
    walk(&workload, &stack.parse().unwrap(), system, run).unwrap()
}

fn time(walked: &Walked, stack: &str, system: &System) -> Simulated {
    let stack: Stack = stack.parse().unwrap();
    simulate(walked, system, &LayerEffects::of(&stack).unwrap(), &system.timing)
}

fn run_of(system: &System, ior: &Ior, stack: &str) -> f64 {
    let found = walked(ior, stack, system, &RunPlacement::of(system), true);
    time(&found, stack, system).seconds
}

fn moved(walked: &Walked) -> f64 {
    let of = |event: &WalkEvent| match event {
        WalkEvent::Transfer(loads) => loads.iter().map(|load| load.bytes * load.rounds).sum(),
        _ => 0.0,
    };
    walked.events.iter().map(of).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn bytes_that_are_asked_for_reach_links_and_targets(
        ranks in 1_usize..12, calls in 1_u64..9, size in 1_u64..40, segments in 1_u64..6, collective: bool, writes: bool
    ) {
        let system = builtin("lustre-2014").unwrap();
        let ior = ior(ranks, calls * size * 65536, size * 65536, segments, collective);
        let found = walked(&ior, "hdf5", &system, &RunPlacement::of(&system), writes);
        let all = ior.total_bytes().unwrap() as f64;
        prop_assert!((found.written + found.read - all).abs() < 1.0);
        prop_assert!((moved(&found) / all - 1.0).abs() < 1e-9, "{} {all}", moved(&found));
        for event in &found.events {
            let WalkEvent::Transfer(loads) = event else { continue };
            for load in loads {
                // The busiest has at least its share, and nobody more than all.
                prop_assert!(load.target_bytes >= load.bytes / load.targets * 0.999 && load.target_bytes <= load.bytes * 1.001);
                prop_assert!(load.node_bytes >= load.bytes / load.nodes * 0.999 && load.node_bytes <= load.bytes * 1.001);
                prop_assert!(load.conflicts <= 1.0 && load.writers >= 1.0);
            }
        }
    }

    #[test]
    fn more_bytes_take_longer_and_faster_links_do_not(
        ranks in 1_usize..10, calls in 1_u64..20, collective: bool, faster in 1.0_f64..8.0
    ) {
        let system = builtin("lustre-2014").unwrap();
        // Whole cycles of stripes: blocks that begin on other servers may be faster.
        let one = ior(ranks, (calls * 10) << 20, 1 << 20, 1, collective);
        let more = Ior { block: ((calls + 7) * 10) << 20, ..one.clone() };
        let (short, long) = (run_of(&system, &one, "hdf5"), run_of(&system, &more, "hdf5"));
        prop_assert!(long > short * 0.999, "{short} {long}");
        let mut quick = system.clone();
        quick.nodes.link_rate.value *= faster;
        quick.storage.server_rate.value *= faster;
        quick.storage.write_rate.value *= faster;
        prop_assert!(run_of(&quick, &one, "hdf5") <= short * 1.0001);
    }

    #[test]
    fn a_system_that_is_faster_in_everything_is_faster_by_as_much(ranks in 1_usize..10, times in 1.1_f64..50.0, collective: bool) {
        let system = builtin("lustre-2014").unwrap();
        let ior = ior(ranks, 8 << 20, 1 << 20, 3, collective);
        let found = walked(&ior, "hdf5", &system, &RunPlacement::of(&system), true);
        let slow = time(&found, "hdf5", &system).stages.total;
        let mut quick = system.clone();
        quick.timing = system.timing.faster(times);
        for rate in [
            &mut quick.nodes.link_rate, &mut quick.storage.server_rate, &mut quick.storage.write_rate,
            &mut quick.storage.read_rate,
        ] {
            rate.value *= times;
        }
        let fast = time(&found, "hdf5", &quick).stages.total;
        prop_assert!((slow / fast / times - 1.0).abs() < 1e-6, "{slow} {fast} {times}");
    }

    #[test]
    fn hostile_descriptions_are_errors(at in 0_usize..4000, with in any::<u8>()) {
        let mut bytes = builtin("cori").unwrap().to_json().into_bytes();
        let at = at % bytes.len();
        bytes[at] = with;
        if let Ok(text) = String::from_utf8(bytes) {
            let _ = System::parse(&text);
        }
    }
}

#[test]
fn classes_of_ranks_are_the_same_as_all_ranks() {
    let system = builtin("cori").unwrap();
    for collective in [false, true] {
        let ior = ior(4096, 4 << 20, 1 << 20, 2, collective);
        let all = RunPlacement { most_ranks: 1 << 20, ..RunPlacement::of(&system) };
        let folded = RunPlacement { most_ranks: 384, ..all.clone() };
        let (whole, part) = (
            walked(&ior, "hdf5(align=16MiB)", &system, &all, true),
            walked(&ior, "hdf5(align=16MiB)", &system, &folded, true),
        );
        assert_eq!((whole.looked_at, part.looked_at), (4096, 384));
        let (whole, part) = (time(&whole, "hdf5", &system).seconds, time(&part, "hdf5", &system).seconds);
        assert!((whole / part - 1.0).abs() < 0.05, "collective {collective}: {whole} {part}");
    }
}

#[test]
fn one_and_none_of_everything_is_a_time() {
    let system = builtin("lustre-2014").unwrap();
    let run = RunPlacement { stripe_count: 1, stripe_size: 4096, ..RunPlacement::of(&system) };
    let found = walked(&ior(1, 8, 8, 1, true), "posix", &system, &run, true);
    let simulated = time(&found, "posix", &system);
    assert!(simulated.seconds.is_finite() && simulated.seconds > 0.0);
    let layers = LayerEffects::default();
    let limits = limits(&simulated, &found, &system, &layers);
    assert!(!limits.resources.is_empty() && limits.gains.iter().all(|gain| gain.seconds.is_finite()));
    let nothing = simulate(&Walked::default(), &system, &layers, &system.timing);
    assert_eq!((nothing.seconds, nothing.rate()), (0.0, 0.0));
    let [low, high] = intervals(&found, &system, &layers).ninety;
    assert!(low <= simulated.seconds * 1.2 && high >= simulated.seconds * 0.8 && low <= high);
}

#[test]
fn aligned_blocks_that_fill_targets_are_faster_than_others() {
    let system = builtin("lustre-2014").unwrap();
    let disjoint = Ior { layout: Layout::Bytes { chunk: None }, ..ior(10, 200 << 20, 1 << 20, 1, false) };
    let filling = ior(10, 1 << 20, 1 << 20, 200, false);
    let rate = |ior: &Ior, stack: &str| ior.total_bytes().unwrap() as f64 / run_of(&system, ior, stack);
    let (apart, fills) = (rate(&disjoint, "posix"), rate(&filling, "posix"));
    assert!(fills > 1.2 * apart, "{fills} {apart}");
    let shifted = rate(&filling, "hdf5(align=1)");
    let aligned = rate(&filling, "hdf5(align=1MiB)");
    assert!(aligned > 1.5 * shifted, "{aligned} {shifted}");
}

#[test]
fn layers_hide_and_order_what_they_are_for() {
    let system = builtin("cori").unwrap();
    let computing = Ior { compute: 2_000_000_000, ..ior(64, 64 << 20, 64 << 20, 4, true) };
    let run = RunPlacement::of(&system);
    let plain = time(&walked(&computing, "hdf5", &system, &run, true), "hdf5", &system);
    let hidden = time(&walked(&computing, "async/hdf5", &system, &run, true), "async/hdf5", &system);
    assert!(hidden.seconds < plain.seconds && hidden.hidden > 0.0, "{hidden:?} {plain:?}");
    let small = ior(64, 4096, 4096, 512, true);
    let direct = time(&walked(&small, "hdf5", &system, &run, true), "hdf5", &system).seconds;
    for stack in ["log/hdf5", "twophase/hdf5"] {
        let layered = time(&walked(&small, stack, &system, &run, true), stack, &system).seconds;
        assert!(layered < direct, "{stack}: {layered} {direct}");
    }
}

#[test]
fn every_system_here_is_a_system_with_sources() {
    for name in builtin_names() {
        let system = builtin(name).unwrap();
        assert_eq!(System::parse(&system.to_json()).unwrap(), system, "{name}");
        assert!(system.figures().iter().all(|(_, value, _)| !value.source.is_empty()));
    }
    let text = builtin("cori").unwrap().to_json();
    for (from, to) in [("\"hyperslab_system\": 1", "\"hyperslab_system\": 9"), ("2388.0", "-1"), ("2388.0", "1e999")] {
        assert!(System::parse(&text.replace(from, to)).is_err(), "{to}");
    }
    assert!(System::parse(&" ".repeat(2 << 20)).is_err() && System::parse("{}").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn more_of_any_one_rate_is_no_slower(which in 0_usize..20, ranks in 1_usize..10, times in 1.0_f64..9.0, writes: bool, collective: bool) {
        let system = builtin("lustre-2014").unwrap();
        let ior = ior(ranks, 10 << 20, 1 << 20, 2, collective);
        let found = walked(&ior, "hdf5", &system, &RunPlacement::of(&system), writes);
        let mut quick = system.clone();
        let rates = [
            &mut quick.nodes.link_rate, &mut quick.nodes.copy_rate, &mut quick.storage.server_rate,
            &mut quick.storage.write_rate, &mut quick.storage.read_rate, &mut quick.metadata.operations,
        ];
        let number = rates.len();
        rates.into_iter().nth(which % number).unwrap().value *= times;
        prop_assert!(time(&found, "hdf5", &quick).seconds <= time(&found, "hdf5", &system).seconds * (1.0 + 1e-9));
    }

    #[test]
    fn whatever_a_description_says_a_time_is_a_number(
        figures in prop::collection::vec(0.0_f64..1.0, 24), ranks in 1_usize..40, stripe in 12_u32..40, count in 1_u64..100_000
    ) {
        let mut system = builtin("cori").unwrap();
        let values: Vec<f64> = system.figures().iter().zip(&figures)
            .map(|((_, _, [low, high]), at)| (low.max(1e-6).ln() * (1.0 - at) + high.ln() * at).exp().clamp(*low, *high)).collect();
        let storage = &mut system.storage;
        let all = [
            &mut system.nodes.count, &mut system.nodes.ranks, &mut system.nodes.copy_rate, &mut system.nodes.link_rate,
            &mut system.nodes.client_cache, &mut system.metadata.servers, &mut system.metadata.operations,
            &mut system.metadata.open_seconds, &mut storage.servers, &mut storage.targets, &mut storage.server_rate,
            &mut storage.write_rate, &mut storage.read_rate,
        ];
        all.into_iter().zip(values).for_each(|(figure, value)| figure.value = value);
        if system.check().is_ok() {
            let ior = ior(ranks, 64 << 20, 8 << 20, 1, true);
            let run = RunPlacement { stripe_size: 1 << stripe, stripe_count: count, ..RunPlacement::of(&system) };
            let found = walked(&ior, "hdf5", &system, &run, true);
            let seconds = time(&found, "hdf5", &system).seconds;
            prop_assert!(seconds.is_finite() && seconds >= 0.0, "{seconds}");
        }
    }
}

#[test]
fn reads_of_all_arrays_of_a_step_are_ahead_of_the_computation() {
    let system = builtin("cori").unwrap();
    let particles = hyperslab_kernels::Particles {
        time_steps: 5,
        compute: std::time::Duration::from_secs(30),
        ..hyperslab_kernels::Particles::new("p", 64, &[1 << 22])
    };
    let reads = particles.read().unwrap();
    let of = |stack: &str| {
        let found = walk(&reads, &stack.parse().unwrap(), &system, &RunPlacement::of(&system)).unwrap();
        time(&found, stack, &system)
    };
    // What is read before the first computation is seen, the rest is not.
    let (plain, ahead) = (of("hdf5").stages.total, of("async/hdf5"));
    let seen = (ahead.seconds - ahead.metadata - ahead.copies) / plain;
    assert!((seen - 0.2).abs() < 0.02, "{seen} of {plain} s");
}

#[test]
fn steps_that_repeat_take_as_often_as_long() {
    let system = builtin("cori").unwrap();
    let steps = |number: u64| {
        let particles = hyperslab_kernels::Particles {
            time_steps: number,
            ..hyperslab_kernels::Particles::new("p", 64, &[1 << 20])
        };
        let found =
            walk(&particles.write().unwrap(), &"hdf5".parse().unwrap(), &system, &RunPlacement::of(&system)).unwrap();
        time(&found, "hdf5", &system).stages.total
    };
    let (few, many) = (steps(3), steps(60));
    assert!((many / few / 20.0 - 1.0).abs() < 0.02, "{few} {many}");
}

/// Seconds of a walk and a simulation of 100 steps, and the most bytes of memory until then.
fn cost(ranks: usize) -> (f64, u64) {
    let system = builtin("perlmutter").unwrap();
    let ior = ior(ranks, 1 << 20, 1 << 20, 100, true);
    let begin = std::time::Instant::now();
    let found = walked(&ior, "hdf5", &system, &RunPlacement::of(&system), true);
    assert!(time(&found, "hdf5", &system).seconds > 0.0);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    (begin.elapsed().as_secs_f64(), peak.unwrap_or(0) << 10)
}

#[test]
#[ignore = "a million ranks; prints what they cost"]
fn a_million_ranks_cost_what_their_classes_cost() {
    let mut last = 0.0;
    for ranks in [100, 1000, 10_000, 100_000, 1_000_000] {
        let (seconds, peak) = cost(ranks);
        eprintln!("{ranks} ranks x 100 steps: {seconds:.2} s, at most {} MiB", peak >> 20);
        assert!(seconds < 10.0 && peak < 2 << 30, "{ranks} ranks: {seconds} s, {peak} bytes");
        last = if ranks == 1000 { seconds } else { last };
        assert!(ranks < 10_000 || seconds < 5.0 * last + 1.0, "{ranks} ranks: {seconds} s, 1000: {last} s");
    }
}
