//! An event-driven play of the same parts: packets that wait in queues, for up to 64 clients. What the flow model works out in one
//! step has to come out of it, too.
#![allow(clippy::unwrap_used)]

use hyperslab_sim::{
    CallKind, Capacities, FileExtent, FileRanges, FlowClasses, LockTables, Rates, RoundCall, Scene, StripePlacement,
    builtin, fair_seconds, round_time, stretch,
};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

/// Packets that the largest flow is cut into.
const PACKETS: f64 = 150.0;
/// Packets of a flow that are on their way at a time.
const WINDOW: usize = 6;

/// A flow of bytes between a client and a target.
type Flow = (usize, u64, f64);

/// Part of the system that serves one packet at a time, flows in turn.
#[derive(Default)]
struct Station {
    rate: f64,
    waiting: BTreeMap<usize, VecDeque<f64>>,
    last: usize,
    busy: bool,
}

impl Station {
    /// The next flow after the last one that was served.
    fn next(&mut self) -> Option<(usize, f64)> {
        let after = self.waiting.range(self.last + 1..).next().or_else(|| self.waiting.iter().next());
        let flow = *after?.0;
        let queue = self.waiting.get_mut(&flow)?;
        let packet = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting.remove(&flow);
        }
        self.last = flow;
        Some((flow, packet))
    }
}

/// A packet leaves a station: when (as bits, which for times of 0 or more have their order), number, flow, hop, bytes.
type Departure = Reverse<(u64, u64, usize, usize, u64)>;

struct EventPlay {
    stations: Vec<Station>,
    /// Stations of each flow in order.
    ways: Vec<Vec<usize>>,
    left: Vec<f64>,
    packet: f64,
    events: BinaryHeap<Departure>,
    number: u64,
    now: f64,
    moved: f64,
}

impl EventPlay {
    fn of(flows: &[Flow], capacities: &Capacities, per_server: u64) -> Self {
        let mut stations: BTreeMap<(u8, u64), usize> = BTreeMap::new();
        let mut all: Vec<Station> = Vec::new();
        let mut station = |kind: u8, number: u64, rate: f64| {
            *stations.entry((kind, number)).or_insert_with(|| {
                all.push(Station { rate, ..Station::default() });
                all.len() - 1
            })
        };
        let mut ways = Vec::new();
        for (client, target, _) in flows {
            let mut way = vec![station(0, *client as u64, capacities.link)];
            if capacities.network.is_finite() {
                way.push(station(1, 0, capacities.network));
            }
            way.push(station(2, target / per_server, capacities.server));
            way.push(station(3, *target, capacities.target));
            ways.push(way);
        }
        let most = flows.iter().map(|flow| flow.2).fold(0.0, f64::max);
        let left = flows.iter().map(|flow| flow.2).collect();
        let (events, packet) = (BinaryHeap::new(), most / PACKETS);
        Self { stations: all, ways, left, packet, events, number: 0, now: 0.0, moved: 0.0 }
    }

    fn serve(&mut self, station: usize) {
        if self.stations[station].busy {
            return;
        }
        let Some((flow, bytes)) = self.stations[station].next() else { return };
        self.stations[station].busy = true;
        let done = self.now + bytes / self.stations[station].rate;
        let hop = self.ways[flow].iter().position(|at| *at == station).unwrap();
        self.number += 1;
        self.events.push(Reverse((done.to_bits(), self.number, flow, hop, bytes.to_bits())));
    }

    fn arrive(&mut self, flow: usize, hop: usize, bytes: f64) {
        let station = self.ways[flow][hop];
        self.stations[station].waiting.entry(flow).or_default().push_back(bytes);
        self.serve(station);
    }

    fn send(&mut self, flow: usize) {
        let bytes = self.left[flow].min(self.packet);
        if bytes > 0.0 {
            self.left[flow] -= bytes;
            self.arrive(flow, 0, bytes);
        }
    }

    /// Seconds until the last packet has arrived.
    fn seconds(mut self) -> (f64, f64) {
        for _ in 0..WINDOW {
            (0..self.ways.len()).for_each(|flow| self.send(flow));
        }
        while let Some(Reverse((time, _, flow, hop, bytes))) = self.events.pop() {
            let (time, bytes) = (f64::from_bits(time), f64::from_bits(bytes));
            self.now = time;
            let station = self.ways[flow][hop];
            self.stations[station].busy = false;
            if hop + 1 < self.ways[flow].len() {
                self.arrive(flow, hop + 1, bytes);
            } else {
                self.moved += bytes;
                self.send(flow);
            }
            self.serve(station);
        }
        (self.now, self.moved)
    }
}

fn some_flows() -> impl Strategy<Value = Vec<Flow>> {
    let flow = (0_usize..64, 0_u64..12, 1_u32..5);
    prop::collection::vec(flow, 1..90).prop_map(|all| {
        let mut joined: BTreeMap<(usize, u64), f64> = BTreeMap::new();
        all.iter()
            .for_each(|(client, target, bytes)| *joined.entry((*client, *target)).or_default() += f64::from(*bytes));
        joined.into_iter().map(|((client, target), bytes)| (client, target, bytes * 1e6)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn flows_take_what_packets_take(
        flows in some_flows(), link in 0.2_f64..5.0, server in 0.5_f64..9.0, target in 0.5_f64..9.0,
        network in prop::option::of(2.0_f64..40.0), per_server in 1_u64..4
    ) {
        let network = network.map_or(f64::INFINITY, |rate| rate * 1e6);
        let capacities = Capacities { link: link * 1e6, server: server * 1e6, target: target * 1e6, network };
        let found = fair_seconds(&FlowClasses::of(flows.iter().copied(), per_server, 1e-6), &capacities);
        let (played, moved) = EventPlay::of(&flows, &capacities, per_server).seconds();
        let all: f64 = flows.iter().map(|flow| flow.2).sum();
        prop_assert!((moved / all - 1.0).abs() < 1e-9, "{moved} of {all} bytes arrive");
        prop_assert!((found / played - 1.0).abs() < 0.05, "flows {found}, packets {played}");
    }

    #[test]
    fn folding_flows_into_classes_changes_nothing(flows in some_flows(), link in 0.2_f64..5.0, server in 0.5_f64..9.0) {
        let capacities = Capacities { link: link * 1e6, server: server * 1e6, target: 3e6, network: f64::INFINITY };
        // Bytes that differ in the last place that counts keep everyone apart.
        let apart = flows.iter().enumerate().map(|(at, (client, target, bytes))| (*client, *target, bytes * (1.0 + 1e-5 * at as f64)));
        let (folded, single) = (FlowClasses::of(flows.iter().copied(), 2, 1e-6), FlowClasses::of(apart, 2, 1e-6));
        prop_assert!(folded.classes.len() <= single.classes.len());
        let (folded, single) = (fair_seconds(&folded, &capacities), fair_seconds(&single, &capacities));
        prop_assert!((folded / single - 1.0).abs() < 0.002, "{folded} {single}");
    }

    #[test]
    fn rates_and_bytes_scale_and_more_rate_is_no_slower(
        flows in some_flows(), link in 0.2_f64..5.0, server in 0.5_f64..9.0, times in 1.1_f64..9.0
    ) {
        let capacities = Capacities { link: link * 1e6, server: server * 1e6, target: 3e6, network: 2e7 };
        let by = |by: f64| Capacities {
            link: capacities.link * by, server: capacities.server * by, target: capacities.target * by, network: capacities.network * by,
        };
        let classes = FlowClasses::of(flows.iter().copied(), 1, 1e-6);
        let once = fair_seconds(&classes, &capacities);
        prop_assert!((once / fair_seconds(&classes, &by(times)) / times - 1.0).abs() < 1e-6);
        let more = FlowClasses::of(flows.iter().map(|flow| (flow.0, flow.1, flow.2 * times)), 1, 1e-6);
        prop_assert!((fair_seconds(&more, &capacities) / once / times - 1.0).abs() < 1e-6);
        prop_assert!(stretch(&classes, &capacities) >= 1.0);
    }

    #[test]
    fn rounds_of_calls_take_what_packets_take(
        clients in 1_usize..64, blocks in prop::collection::vec((0_u64..64, 1_u64..9), 1..80), count in 1_u64..10
    ) {
        let mut system = builtin("lustre-2014").unwrap();
        // Nothing that is serial, no seeks: what is left are links, servers and targets.
        (system.timing.incast, system.timing.write_run, system.timing.split) = (0.0, 1e12, 0.0);
        system.timing.drift = 1.0;
        let kind = CallKind { writes: true, collective: false, library: false, posix: true, chunked: false };
        let stripes = StripePlacement { size: 1 << 20, count, first: 0, targets: 10 };
        let scene = Scene { kind, scale: 1.0, targets_per_server: 1, stripes };
        let mut flows: BTreeMap<(usize, u64), f64> = BTreeMap::new();
        let mut calls = Vec::new();
        for (at, (stripe, len)) in blocks.iter().enumerate() {
            // Regions of their own, so that no locks change hands.
            let node = at % clients;
            let extent = FileExtent { object: 0, offset: (node as u64 * 720 + stripe) << 20, len: len << 20 };
            for range in stripes.ranges(extent.offset, extent.len) {
                *flows.entry((node, range.target)).or_default() += range.len as f64;
            }
            let bytes = extent.len as f64;
            let ranges = FileRanges { extents: vec![extent], scale: 1.0, bytes, ..FileRanges::default() };
            calls.push(RoundCall { round: 0, node, file: 0, ranges });
        }
        let load = scene.load(&calls, 1, &mut LockTables::default());
        let rates = Rates::of(&system);
        let found = round_time(&load, &rates, &system.timing);
        let flows: Vec<Flow> = flows.into_iter().map(|((client, target), bytes)| (client, target, bytes)).collect();
        let capacities = Capacities { link: rates.link, server: rates.server, target: rates.write, network: f64::INFINITY };
        let (played, _) = EventPlay::of(&flows, &capacities, 1).seconds();
        let found = found.total - found.locks;
        prop_assert!((found / played - 1.0).abs() < 0.05, "model {found}, packets {played}");
    }
}
