//! What layers do to requests and epochs: put off, log, exchange.

use crate::load::Load;
use crate::system::System;
use hyperslab_core::{Error, Result, Stack};
use std::sync::Arc;

/// The layers of a stack, as far as they change what storage is asked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LayerEffects {
    puts_off: bool,
    local: bool,
    log: bool,
    appends: bool,
    exchanges: Option<Exchange>,
    subfiles: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Exchange {
    aggregators: Option<f64>,
}

/// A load as storage sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Below {
    /// What is asked for at once.
    pub load: Load,
    /// Seconds that the program copies, or writes to a log.
    pub copy: f64,
    /// Seconds of the exchange between ranks.
    pub exchange: f64,
    /// What is asked for when the log is flushed.
    pub later: Option<Load>,
}

impl LayerEffects {
    /// Of a stack; refuses layers that nothing is known of.
    pub fn of(stack: &Stack) -> Result<Self> {
        let mut effects = Self::default();
        for layer in &stack.layers {
            match layer.name.as_str() {
                "async" => effects.puts_off = true,
                "cache" => (effects.puts_off, effects.local) = (true, true),
                "log" => effects.log = true,
                "loglayout" => effects.appends = true,
                "twophase" => {
                    let aggregators = layer.number("aggregators", 1..=1 << 20)?.map(|number| number as f64);
                    effects.exchanges = Some(Exchange { aggregators });
                }
                "auto" => effects.puts_off = true,
                "trace" => {}
                other => {
                    return Err(Error::unsupported("simulate", format!("what the layer {other} does is not known"))
                        .hint("use async, cache, log, loglayout, twophase or auto"));
                }
            }
        }
        effects.subfiles = stack.format.get("driver") == Some("subfiling");
        Ok(effects)
    }

    /// Whether transfers go on while the program computes.
    pub fn puts_off(&self, writes: bool) -> bool {
        self.puts_off && (writes || !self.local)
    }

    /// Whether writes go to a log first.
    pub fn logs(&self) -> bool {
        self.log
    }

    /// What of a load reaches storage, and what it costs before.
    pub fn below(&self, load: &Load, system: &System) -> Below {
        let mut below = Below { load: load.clone(), copy: 0.0, exchange: 0.0, later: None };
        let nodes = &system.nodes;
        if self.subfiles {
            below.load = ordered(load);
        }
        if self.appends && load.kind.writes {
            below.load = ordered(load);
        }
        if let Some(exchange) = self.exchanges.filter(|_| load.kind.collective) {
            // Bytes go to the aggregators, which then have contiguous domains that begin at stripes.
            let receivers = exchange.aggregators.unwrap_or(2.0 * load.nodes).clamp(1.0, load.ranks.max(1.0));
            let busiest = (load.bytes / receivers.min(load.nodes.max(1.0))).max(load.node_bytes);
            below.exchange =
                busiest / nodes.link_rate.value.min(nodes.copy_rate.value) + load.node_bytes / nodes.copy_rate.value;
            let most = load.bytes / receivers.min(load.nodes.max(1.0));
            below.load = Load { node_bytes: most.max(load.bytes / load.nodes.max(1.0)), ..ordered(&below.load) };
        }
        if self.puts_off && (load.kind.writes || !self.local) {
            below.copy = match (&nodes.local_write_rate, self.local) {
                (Some(rate), true) => load.node_bytes / rate.value,
                _ => load.node_bytes / nodes.copy_rate.value,
            };
        }
        if self.log && load.kind.writes {
            below.copy = log_seconds(load, system);
            below.later = Some(ordered(load));
        }
        below
    }
}

/// Seconds of appending to logs: on storage of the node, on the burst buffer, or in memory.
fn log_seconds(load: &Load, system: &System) -> f64 {
    let nodes = &system.nodes;
    match (&nodes.local_write_rate, &system.burst_buffer) {
        (Some(rate), _) => load.node_bytes / rate.value,
        (None, Some(buffer)) => {
            let shared = load.bytes / (buffer.servers.value * buffer.rate.value);
            shared.max(load.node_bytes / nodes.link_rate.value)
        }
        (None, None) => load.node_bytes / nodes.copy_rate.value,
    }
}

/// The same bytes in few large requests, sorted, each client in a region of its own.
fn ordered(load: &Load) -> Load {
    let evenly = load.bytes / load.targets.max(1.0);
    Load {
        interleaved: false,
        strided: false,
        hand_overs: 0.0,
        writers: 1.0,
        conflicts: 0.0,
        page_ends: 0.0,
        partial_chunks: 0.0,
        target_bytes: load.target_bytes.min(evenly.max(load.bytes / load.targets.max(1.0))),
        run: load.run.max(8e6),
        block: load.block.max(8e6),
        flows: Arc::default(),
        ..load.clone()
    }
}
