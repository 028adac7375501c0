//! Max-min fair sharing: how long flows of bytes take that cross links of clients, servers, targets and the network.
//!
//! All flows get as much as each other until something on their way is full; those that are not held up get what is left
//! (progressive filling). Whoever is done leaves its share to the others.

use crate::flow_classes::FlowClasses;

/// Bytes per second of each part of the system, for the flows that are looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Capacities {
    /// Of a client's link.
    pub link: f64,
    /// Of a server.
    pub server: f64,
    /// Of a target.
    pub target: f64,
    /// Of the network between all of them.
    pub network: f64,
}

/// Something that flows cross.
struct Constraint {
    capacity: f64,
    /// Numbers of classes of flows, and how many flows of the class cross it.
    crossed: Vec<(usize, f64)>,
}

impl Constraint {
    /// Seconds of all bytes that cross it, if nothing else held them up.
    fn alone(&self, bytes: &[f64]) -> f64 {
        self.crossed.iter().map(|(class, number)| bytes[*class] * number).sum::<f64>() / self.capacity
    }
}

/// Seconds until the last byte has arrived.
pub fn fair_seconds(flows: &FlowClasses, capacities: &Capacities) -> f64 {
    let constraints = constraints(flows, capacities);
    let mut left: Vec<f64> = flows.classes.iter().map(|class| class.bytes).collect();
    let mut now = 0.0;
    // Each turn ends at least one class.
    for _ in 0..flows.classes.len() {
        let rates = fair_rates(&constraints, &left);
        let next = left.iter().zip(&rates).filter(|(left, _)| **left > 0.0).map(|(left, rate)| left / rate);
        let next = next.fold(f64::INFINITY, f64::min);
        if !next.is_finite() {
            break;
        }
        now += next;
        for (left, rate) in left.iter_mut().zip(&rates) {
            let after = *left - rate * next;
            *left = if after <= 1e-9 * *left { 0.0 } else { after };
        }
    }
    now
}

/// How many times longer the flows take than their busiest part alone would: 1 where all have as much to do.
pub fn stretch(flows: &FlowClasses, capacities: &Capacities) -> f64 {
    if flows.classes.len() < 2 {
        return 1.0;
    }
    let bytes: Vec<f64> = flows.classes.iter().map(|class| class.bytes).collect();
    let busiest = constraints(flows, capacities).iter().map(|one| one.alone(&bytes)).fold(0.0, f64::max);
    if busiest > 0.0 { (fair_seconds(flows, capacities) / busiest).max(1.0) } else { 1.0 }
}

fn constraints(flows: &FlowClasses, capacities: &Capacities) -> Vec<Constraint> {
    let some = |number: usize, capacity: f64| (0..number).map(move |_| Constraint { capacity, crossed: Vec::new() });
    let (clients, targets) = (flows.clients.len(), flows.targets.len());
    let mut all: Vec<Constraint> = some(clients, capacities.link)
        .chain(some(targets, capacities.target))
        .chain(some(flows.servers.len(), capacities.server))
        .chain(some(1, capacities.network))
        .collect();
    let network = all.len() - 1;
    for (at, class) in flows.classes.iter().enumerate() {
        let (alike, server) = flows.targets[class.target];
        all[class.client].crossed.push((at, class.number / flows.clients[class.client]));
        all[clients + class.target].crossed.push((at, class.number / alike));
        all[clients + targets + server].crossed.push((at, class.number / flows.servers[server]));
        all[network].crossed.push((at, class.number));
    }
    all.retain(|constraint| constraint.capacity.is_finite() && !constraint.crossed.is_empty());
    all
}

/// Bytes per second of each flow of a class, of those that have bytes left.
fn fair_rates(constraints: &[Constraint], left: &[f64]) -> Vec<f64> {
    let mut rates = vec![0.0; left.len()];
    let mut open: Vec<bool> = left.iter().map(|bytes| *bytes > 0.0).collect();
    let mut level = 0.0;
    while open.contains(&true) {
        // How far all open flows can still rise together.
        let mut rise = f64::INFINITY;
        let mut room = Vec::with_capacity(constraints.len());
        for constraint in constraints {
            let taken: f64 = constraint.crossed.iter().map(|(class, number)| rates[*class] * number).sum();
            let risen: f64 =
                constraint.crossed.iter().filter(|(class, _)| open[*class]).map(|(_, number)| number).sum();
            let here = if risen > 0.0 { (constraint.capacity - taken).max(0.0) / risen } else { f64::INFINITY };
            room.push(here);
            rise = rise.min(here);
        }
        if !rise.is_finite() {
            // Nothing holds them up.
            (0..open.len()).filter(|class| open[*class]).for_each(|class| rates[class] = f64::INFINITY);
            break;
        }
        level += rise;
        (0..open.len()).filter(|class| open[*class]).for_each(|class| rates[class] = level);
        for (constraint, here) in constraints.iter().zip(room) {
            if here <= rise * (1.0 + 1e-12) {
                constraint.crossed.iter().for_each(|(class, _)| open[*class] = false);
            }
        }
    }
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: Capacities = Capacities { link: 1.0, server: 1.0, target: 10.0, network: f64::INFINITY };

    fn seconds(flows: &[(usize, u64, f64)], capacities: &Capacities) -> f64 {
        fair_seconds(&FlowClasses::of(flows.iter().copied(), 1, 1e-6), capacities)
    }

    #[test]
    fn even_flows_take_what_the_busiest_part_takes() {
        let flows: Vec<_> = (0..4).flat_map(|client| (0..4).map(move |target| (client, target, 1.0))).collect();
        assert!((seconds(&flows, &EVEN) - 4.0).abs() < 1e-9);
        assert!((stretch(&FlowClasses::of(flows.into_iter(), 1, 1e-6), &EVEN) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_flow_that_is_held_up_twice_makes_all_take_longer() {
        // Target 0 is shared by two clients; the second one has a byte of its own for target 1. While both share target 0,
        // each has half of it, and the second client's own flow the other half of its link.
        let flows = [(0, 0, 1.0), (1, 0, 1.0), (1, 1, 1.0)];
        assert!((seconds(&flows, &EVEN) - 2.0).abs() < 1e-9);
        // With four at target 0, the flow of the second client ends late although its link has long been idle.
        let uneven = [(0, 0, 1.0), (1, 0, 3.0), (1, 1, 3.0)];
        let found = seconds(&uneven, &EVEN);
        assert!((found - 6.0).abs() < 1e-9, "{found}");
    }

    #[test]
    fn the_network_holds_all_flows() {
        let flows: Vec<_> = (0..3).map(|client| (client, client as u64, 2.0)).collect();
        let narrow = Capacities { network: 1.5, ..EVEN };
        assert!((seconds(&flows, &EVEN) - 2.0).abs() < 1e-9 && (seconds(&flows, &narrow) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn no_flows_take_no_time() {
        assert_eq!(seconds(&[], &EVEN), 0.0);
    }
}
