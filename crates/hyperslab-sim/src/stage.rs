//! The time of one round of calls: the most loaded resource, and what is serial.

use crate::fair_sharing::{Capacities, stretch};
use crate::load::Load;
use crate::system::System;
use crate::timing::TimingParameters;
use serde::Serialize;
use std::ops::{Add, AddAssign, Mul};

/// Where the time of a round goes, in seconds. Those up to `disk` work at a time; the others are waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct StageTime {
    /// The link of the busiest node, and the library's calls on it.
    pub link: f64,
    /// The network between all nodes and servers.
    pub network: f64,
    /// The link of the busiest server, and the seeks of its targets.
    pub server: f64,
    /// The busiest target.
    pub disk: f64,
    /// Of the server's: seeks.
    pub seeks: f64,
    /// Waiting for calls and for all ranks.
    pub calls: f64,
    /// Extent locks, and pages that go from client to client.
    pub locks: f64,
    /// Chunks: their index, and reading those that are changed in part.
    pub chunks: f64,
    /// Objects that are made or found by name.
    pub metadata: f64,
    /// All of it together.
    pub total: f64,
}

impl Add for StageTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (a, b) = (self, other);
        Self {
            link: a.link + b.link,
            network: a.network + b.network,
            server: a.server + b.server,
            disk: a.disk + b.disk,
            seeks: a.seeks + b.seeks,
            calls: a.calls + b.calls,
            locks: a.locks + b.locks,
            chunks: a.chunks + b.chunks,
            metadata: a.metadata + b.metadata,
            total: a.total + b.total,
        }
    }
}

impl AddAssign for StageTime {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Mul<f64> for StageTime {
    type Output = Self;

    fn mul(self, by: f64) -> Self {
        Self {
            link: self.link * by,
            network: self.network * by,
            server: self.server * by,
            disk: self.disk * by,
            seeks: self.seeks * by,
            calls: self.calls * by,
            locks: self.locks * by,
            chunks: self.chunks * by,
            metadata: self.metadata * by,
            total: self.total * by,
        }
    }
}

/// The rates that a round is held against.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// Bytes per second of a node's link.
    pub link: f64,
    /// Of the network.
    pub network: f64,
    /// Of a server's link.
    pub server: f64,
    /// That a target writes.
    pub write: f64,
    /// That a target reads.
    pub read: f64,
    /// Names that all metadata servers make or find in a second.
    pub metadata: f64,
    /// Bytes that a client reads ahead at most.
    pub cache: f64,
}

impl Rates {
    /// What a system leaves to a program beside the others.
    pub fn of(system: &System) -> Self {
        let free = 1.0 - system.background.load;
        let storage = &system.storage;
        Self {
            link: system.nodes.link_rate.value,
            network: system.network_rate.as_ref().map_or(f64::INFINITY, |rate| rate.value * free),
            server: storage.server_rate.value * free,
            write: storage.write_rate.value * free,
            read: storage.read_rate.value * free,
            metadata: system.metadata.operations.value * system.metadata.servers.value * free,
            cache: system.nodes.client_cache.value,
        }
    }
}

/// How much longer a collective call of so many ranks takes than one of ten, with which it was measured.
fn depth(ranks: f64) -> f64 {
    ranks.max(1.0).log10().max(0.0)
}

/// The time of one round.
pub fn round_time(load: &Load, rates: &Rates, timing: &TimingParameters) -> StageTime {
    if load.bytes <= 0.0 {
        let calls = if load.kind.collective { load.calls * timing.barrier * depth(load.ranks) } else { 0.0 };
        return StageTime { calls, total: calls, ..StageTime::default() };
    }
    let mut time = if load.kind.writes { write(load, timing) } else { read(load, rates.cache, timing) };
    let shared = 1.0 - 1.0 / load.fan_in.max(1.0);
    let (overlapped, seeks) = (time.link, time.seeks * timing.seek);
    time.seeks = seeks;
    time.link += load.node_bytes / rates.link;
    time.network = load.bytes / rates.network;
    let unshared = load.target_bytes * timing.incast * shared;
    time.server = load.server_bytes / rates.server + unshared + seeks;
    time.disk = load.target_bytes / if load.kind.writes { rates.write } else { rates.read };
    let mut at_a_time = [time.link, time.network, time.server, time.disk].into_iter().fold(0.0, f64::max);
    at_a_time *= unevenness(load, &time);
    let waits = load.kind.writes && !load.kind.collective && !load.kind.posix && !load.interleaved;
    if waits && load.fan_in > 1.0 {
        // Clients that wait for nobody drift apart, and some targets starve.
        at_a_time = (at_a_time - overlapped) * (1.0 + (timing.drift - 1.0).max(0.0) * shared) + overlapped;
    }
    // A client that has a target for itself goes on while it hands over a page.
    let alone = load.kind.writes && !load.kind.collective && load.writers < 1.5 && load.hand_overs >= 1.0;
    if alone {
        at_a_time = at_a_time.max(time.locks);
    }
    time.metadata = load.objects / rates.metadata;
    time.total = at_a_time + if alone { 0.0 } else { time.locks } + time.calls + time.chunks + time.metadata;
    time
}

/// How many times longer a round takes than its busiest resource, since flows that are held up at one leave others idle.
fn unevenness(load: &Load, time: &StageTime) -> f64 {
    if load.flows.classes.len() < 2 {
        return 1.0;
    }
    let rate = |bytes: f64, seconds: f64| if seconds > 0.0 { bytes / seconds } else { f64::INFINITY };
    let all = load.scale.max(1.0);
    let capacities = Capacities {
        link: rate(load.node_bytes, time.link),
        server: rate(load.server_bytes, time.server) / all,
        target: rate(load.target_bytes, time.disk) / all,
        network: rate(load.bytes, time.network) / all,
    };
    // Where some stand for all, all of them are less uneven.
    1.0 + (stretch(&load.flows, &capacities) - 1.0) / all.sqrt()
}

/// Seconds on the link, number of seeks, and what is serial, of a write.
fn write(load: &Load, timing: &TimingParameters) -> StageTime {
    let kind = load.kind;
    let own = match (kind.collective, kind.library) {
        (true, _) => timing.collective_write * depth(load.ranks),
        (false, true) => timing.call,
        (false, false) => 0.0,
    };
    let mut time = StageTime {
        link: own * load.calls,
        // Two ends of a call are pages of others; what is inside is shared by two pieces of its own.
        calls: timing.split * load.page_ends / 2.0,
        chunks: timing.chunk_write * load.chunks + timing.seek * load.partial_chunks,
        ..StageTime::default()
    };
    let shared = 1.0 - 1.0 / load.fan_in.max(1.0);
    if kind.collective && load.strided {
        time.calls += timing.barrier * depth(load.ranks);
    }
    if !load.interleaved {
        time.seeks = load.target_bytes / timing.write_run * shared;
        return time;
    }
    if kind.collective {
        let pages = if load.page_ends > 0.0 { 1.0 } else { 0.0 };
        time.locks = load.conflicts * (timing.lock_base + timing.lock_writer * load.writers + timing.page * pages);
    } else {
        let turns = load.hand_overs;
        time.locks = match turns < 1.0 {
            // A lock that is seldom called back has a cache full of bytes behind it.
            true => turns * timing.lock_base,
            // The last to come waits for nobody after him.
            false => (turns - 1.0).max(1.0) * timing.hand_over,
        };
    }
    time
}

/// The same of a read.
fn read(load: &Load, cache: f64, timing: &TimingParameters) -> StageTime {
    let kind = load.kind;
    let mut time = StageTime { chunks: timing.chunk_read * load.chunks, ..StageTime::default() };
    let shared = 1.0 - 1.0 / load.fan_in.max(1.0);
    if kind.collective && load.strided {
        time.calls = timing.barrier * depth(load.ranks);
    }
    if !load.interleaved {
        let run = timing.read_run.max(load.run.min(timing.read_run.max(cache)));
        time.seeks = load.target_bytes / run * shared;
        if kind.collective {
            // All wait for the target that all of them ask at a time.
            time.calls += timing.collective_read * depth(load.ranks) * (1.0 - 1.0 / load.crowd.max(1.0));
        }
        return time;
    }
    let blocks = load.target_bytes / load.run.max(1.0);
    time.seeks = match kind.collective {
        true if load.page_ends > 0.0 && !kind.chunked => blocks.min(load.writers) * timing.jump_unaligned,
        true if !kind.chunked => blocks.min(load.writers) * timing.jump_aligned,
        true => blocks,
        // Reading ahead saves the more the longer blocks are.
        false => load.writers / (1.0 + 2.0 * load.block / timing.read_run),
    };
    // Neighbours in the file are other clients' chunks: nothing announces the next one.
    time.seeks += load.chunks;
    time
}
