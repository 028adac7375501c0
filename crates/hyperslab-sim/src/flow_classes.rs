//! Flows from clients to targets, with those that are alike as one class.

use std::collections::{BTreeMap, BTreeSet};

/// Flows that are all alike: between clients of one class and targets of one class, and of as many bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FlowClass {
    /// Class of its clients.
    pub client: usize,
    /// Class of its targets.
    pub target: usize,
    /// Bytes of each flow.
    pub bytes: f64,
    /// Number of flows.
    pub number: f64,
}

/// All flows of a phase. Clients are alike if they send as much to targets that are alike, and the other way round; under a
/// fair division flows of one class then have one rate, so that classes give what single flows would.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FlowClasses {
    /// Clients of each class.
    pub clients: Vec<f64>,
    /// Targets of each class, and the class of their servers.
    pub targets: Vec<(f64, usize)>,
    /// Servers of each class.
    pub servers: Vec<f64>,
    /// Flows.
    pub classes: Vec<FlowClass>,
}

/// Who is alike, by number.
type Colours = BTreeMap<u64, usize>;
/// A flow's bytes as a key, and the class at its other end.
type FlowKey = (u64, usize);

/// Classes of flows that are kept; of more, none are, and all parts are taken to be evenly loaded.
const MOST_CLASSES: usize = 512;

impl FlowClasses {
    /// From client, target and bytes of each flow, with so many targets on a server. Flows whose bytes differ by less than
    /// `grain` of those of the largest are alike, and have their mean.
    pub fn of(flows: impl Iterator<Item = (usize, u64, f64)>, targets_per_server: u64, grain: f64) -> Self {
        let mut edges: BTreeMap<(u64, u64), f64> = BTreeMap::new();
        flows
            .filter(|(.., bytes)| *bytes > 0.0)
            .for_each(|(client, target, bytes)| *edges.entry((client as u64, target)).or_default() += bytes);
        let most = edges.values().copied().fold(0.0, f64::max);
        let edges: Vec<(u64, u64, f64)> =
            edges.into_iter().map(|((client, target), bytes)| (client, target, bytes)).collect();
        let key = |bytes: f64| (bytes / (most * grain)).round() as u64;
        let server_of = |target: u64| target / targets_per_server.max(1);
        let mut clients: Colours = edges.iter().map(|edge| (edge.0, 0)).collect();
        let mut targets: Colours = edges.iter().map(|edge| (edge.1, 0)).collect();
        let mut servers: Colours = edges.iter().map(|edge| (server_of(edge.1), 0)).collect();
        // Who is alike is told apart by whom they have to do with, until nobody is.
        let mut known = (1, 1, 1);
        for _ in 0..MOST_CLASSES {
            clients = told_apart(&clients, edges.iter().map(|edge| (edge.0, (key(edge.2), targets[&edge.1]))));
            let ends = edges.iter().map(|edge| (edge.1, (key(edge.2), clients[&edge.0])));
            let homes = targets.keys().map(|target| (*target, (u64::MAX, servers[&server_of(*target)])));
            let next = told_apart(&targets, ends.chain(homes).collect::<Vec<_>>().into_iter());
            servers = told_apart(&servers, next.iter().map(|(target, colour)| (server_of(*target), (0, *colour))));
            targets = next;
            let now = (number(&clients), number(&targets), number(&servers));
            if now == known || now.0.max(now.1) > MOST_CLASSES {
                break;
            }
            known = now;
        }
        let mut classes: BTreeMap<(usize, usize, u64), (f64, f64)> = BTreeMap::new();
        for (client, target, bytes) in &edges {
            let class = classes.entry((clients[client], targets[target], key(*bytes))).or_default();
            *class = (class.0 + 1.0, class.1 + bytes);
        }
        if classes.len() > MOST_CLASSES {
            return Self::default();
        }
        let classes = classes.into_iter();
        let classes = classes.map(|((client, target, _), (number, bytes))| FlowClass {
            client,
            target,
            bytes: bytes / number,
            number,
        });
        let mut home = vec![(0.0, 0); number(&targets)];
        for (target, colour) in &targets {
            home[*colour] = (home[*colour].0 + 1.0, servers[&server_of(*target)]);
        }
        Self { clients: members(&clients), targets: home, servers: members(&servers), classes: classes.collect() }
    }
}

fn number(colours: &Colours) -> usize {
    colours.values().max().map_or(0, |most| most + 1)
}

fn members(colours: &Colours) -> Vec<f64> {
    let mut members = vec![0.0; number(colours)];
    colours.values().for_each(|colour| members[*colour] += 1.0);
    members
}

/// Finer colours: the old one, and all flows in order.
fn told_apart(old: &Colours, flows: impl Iterator<Item = (u64, FlowKey)>) -> Colours {
    let mut keys: BTreeMap<u64, (usize, Vec<FlowKey>)> =
        old.iter().map(|(member, colour)| (*member, (*colour, Vec::new()))).collect();
    for (member, flow) in flows {
        keys.entry(member).or_default().1.push(flow);
    }
    keys.values_mut().for_each(|key| key.1.sort_unstable());
    let different: BTreeSet<&(usize, Vec<FlowKey>)> = keys.values().collect();
    let numbered: BTreeMap<&(usize, Vec<FlowKey>), usize> =
        different.into_iter().enumerate().map(|(number, key)| (key, number)).collect();
    keys.iter().map(|(member, key)| (*member, numbered[key])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_do_the_same_are_one_class() {
        let flows = (0..100).flat_map(|client| (0..10).map(move |target| (client, target, 5.0)));
        let found = FlowClasses::of(flows, 2, 1e-6);
        assert_eq!((found.clients, found.targets, found.servers), (vec![100.0], vec![(10.0, 0)], vec![5.0]));
        assert_eq!(found.classes, [FlowClass { client: 0, target: 0, bytes: 5.0, number: 1000.0 }]);
    }

    #[test]
    fn who_shares_a_target_with_others_is_another_class() {
        let found = FlowClasses::of([(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0), (3, 2, 1.0)].into_iter(), 1, 1e-6);
        let mut clients = found.clients.clone();
        clients.sort_by(f64::total_cmp);
        assert_eq!((clients, found.classes.len()), (vec![2.0, 2.0], 2));
    }

    #[test]
    fn servers_tell_targets_apart() {
        // Targets 0 and 1 share a server that 2 has for itself.
        let found = FlowClasses::of([(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0)].into_iter(), 2, 1e-6);
        assert_eq!((found.servers.len(), found.targets.len(), found.clients.len()), (2, 2, 2));
    }
}
