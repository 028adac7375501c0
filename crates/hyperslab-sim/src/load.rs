//! What a few consecutive rounds of calls make each part of the system do.

use crate::extent_locks::LockTables;
use crate::file_layout::FileRanges;
use crate::flow_classes::FlowClasses;
use crate::stripe_placement::StripePlacement;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Locks that change hands in a round for clients to be in each other's way.
const TURNS: f64 = 0.05;

/// Part of the largest flow by which flows may differ and still be alike.
const GRAIN: f64 = 1.0 / 32.0;

/// How calls are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKind {
    /// They write.
    pub writes: bool,
    /// All ranks make them together.
    pub collective: bool,
    /// Through a library of arrays.
    pub library: bool,
    /// By POSIX calls, not by MPI-IO.
    pub posix: bool,
    /// The array is stored in chunks.
    pub chunked: bool,
}

/// One call of one rank.
#[derive(Debug, Clone)]
pub struct RoundCall {
    /// Number of the call among those of its rank here.
    pub round: usize,
    /// Machine.
    pub node: usize,
    /// File, object and bytes.
    pub file: u64,
    /// Where.
    pub ranges: FileRanges,
}

/// What each round of such calls makes parts of the system do, on average. A round is one call of every rank.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// How calls are made.
    pub kind: CallKind,
    /// Rounds that it stands for.
    pub rounds: f64,
    /// Bytes of all ranks.
    pub bytes: f64,
    /// Bytes over the link of the busiest node.
    pub node_bytes: f64,
    /// Nodes that take part.
    pub nodes: f64,
    /// Ranks that take part.
    pub ranks: f64,
    /// Calls of the busiest rank.
    pub calls: f64,
    /// Bytes of the busiest target.
    pub target_bytes: f64,
    /// Bytes of the busiest server.
    pub server_bytes: f64,
    /// Targets in use.
    pub targets: f64,
    /// Clients of the busiest target.
    pub fan_in: f64,
    /// The same at a time: in one round.
    pub crowd: f64,
    /// Contiguous bytes of a call in the object of a target.
    pub run: f64,
    /// Whether blocks of clients take turns in the objects of targets.
    pub interleaved: bool,
    /// Contiguous bytes of a client in the file.
    pub block: f64,
    /// Whether a client's calls leave bytes out that lie between.
    pub strided: bool,
    /// Locks of the busiest target that change hands.
    pub hand_overs: f64,
    /// Bytes of the busiest target over those of its busiest client: 1 if one client fills it.
    pub writers: f64,
    /// Share of rounds in which clients meet at a target, or come to one that another had.
    pub conflicts: f64,
    /// Ends of pieces inside pages, for a call.
    pub page_ends: f64,
    /// Chunks of the busiest rank.
    pub chunks: f64,
    /// Chunks of it that are covered in part.
    pub partial_chunks: f64,
    /// Objects that are found by name, of all ranks.
    pub objects: f64,
    /// Who sends how much where, of those that are looked at; none: all parts have as much to do.
    pub flows: Arc<FlowClasses>,
    /// Ranks of the run for each that is looked at.
    pub scale: f64,
}

/// What the calls belong to.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    /// How calls are made.
    pub kind: CallKind,
    /// Ranks of the run for each that is looked at.
    pub scale: f64,
    /// Targets of a server.
    pub targets_per_server: u64,
    /// How files are spread.
    pub stripes: StripePlacement,
}

impl Load {
    /// Whether it differs from another only in how many rounds it stands for.
    pub fn is_like(&self, other: &Self) -> bool {
        let (a, b) = (self.figures(), other.figures());
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * a.abs().max(b.abs());
        self.kind == other.kind
            && (self.interleaved, self.strided) == (other.interleaved, other.strided)
            && a.iter().zip(&b).all(|(a, b)| near(*a, *b))
            && (Arc::ptr_eq(&self.flows, &other.flows) || self.flows.classes.len() == other.flows.classes.len())
    }

    fn figures(&self) -> [f64; 16] {
        [
            self.bytes,
            self.node_bytes,
            self.nodes,
            self.calls,
            self.target_bytes,
            self.server_bytes,
            self.targets,
            self.fan_in,
            self.crowd,
            self.run,
            self.hand_overs,
            self.writers,
            self.conflicts,
            self.page_ends,
            self.chunks,
            self.partial_chunks + self.objects,
        ]
    }
}

impl Scene {
    /// How one object is spread: files and objects begin at targets in turn.
    fn placement(&self, file: u64, object: u64) -> StripePlacement {
        let first = file.wrapping_add(object).wrapping_mul(if object > 0 { 1 } else { self.stripes.count.max(1) });
        StripePlacement { first: first % self.stripes.targets.max(1), ..self.stripes }
    }

    /// Works out the load of `calls`, which are those of `rounds` rounds; `locks` are those that earlier ones left.
    pub fn load(&self, calls: &[RoundCall], rounds: usize, locks: &mut LockTables) -> Load {
        let per_round = 1.0 / rounds.max(1) as f64;
        let mut nodes: BTreeMap<usize, f64> = BTreeMap::new();
        let mut by_target: BTreeMap<u64, TargetLoad> = BTreeMap::new();
        let (mut bytes, mut page_ends, mut objects) = (0.0, 0.0, 0.0);
        let (mut chunks, mut partial): (BTreeMap<usize, f64>, f64) = (BTreeMap::new(), 0.0);
        let mut blocks = ClientBlocks::default();
        for call in calls {
            let ranges = &call.ranges;
            bytes += ranges.bytes;
            *nodes.entry(call.node).or_default() += ranges.bytes;
            *chunks.entry(call.node).or_default() += ranges.chunks;
            partial += ranges.partial_chunks;
            page_ends += ranges.page_ends;
            let mut passed = 0;
            for extent in &ranges.extents {
                objects += f64::from(u8::from(extent.object > 0)) * ranges.scale;
                blocks.add(call.node, call.file, extent.offset, extent.len);
                let object = (call.file, extent.object);
                for (place, range) in self.placement(call.file, extent.object).in_order(extent.offset, extent.len) {
                    let (offset, len) = (range.offset, range.len);
                    let place = place + passed;
                    let piece = TargetPiece { round: call.round, place, node: call.node, object, offset, len };
                    by_target.entry(range.target).or_default().add(piece, ranges.scale);
                }
                passed += extent.len.div_ceil(self.stripes.size.max(1));
            }
        }
        let made = calls.len().max(1) as f64;
        let partial_share = partial / chunks.values().sum::<f64>().max(1.0);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        // The ranks that were looked at fill targets unevenly only as far as all of them do.
        let held: f64 = by_target.values().map(|target| target.bytes).sum();
        let mut servers: BTreeMap<u64, f64> = BTreeMap::new();
        for (number, target) in &by_target {
            *servers.entry(number / self.targets_per_server.max(1)).or_default() += target.bytes;
        }
        let clients = nodes.len().max(1) as f64;
        let evenly = held / by_target.len().max(1) as f64;
        let turns: Vec<Turns> = by_target.iter_mut().map(|(number, target)| target.turns(*number, locks)).collect();
        let mut conflicted: HashSet<usize> = HashSet::new();
        turns.iter().for_each(|turns| conflicted.extend(turns.conflicts.iter().copied()));
        let hand_overs = most(&mut turns.iter().map(|turns| turns.hand_overs as f64)) * per_round;
        let writers = turns.iter().map(|turns| turns.writers / turns.conflicts.len().max(1) as f64).fold(1.0, f64::max);
        let crowd = most(&mut turns.iter().map(|turns| turns.crowd as f64)).max(1.0);
        let interleaved = hand_overs > TURNS && clients > 1.0;
        let busiest = by_target.values().max_by(|a, b| a.bytes.total_cmp(&b.bytes));
        let block = blocks.mean();
        let flows = by_target.iter().flat_map(|(number, target)| {
            target.by_client.iter().map(|(client, bytes)| (*client, *number, bytes * per_round))
        });
        let flows = Arc::new(FlowClasses::of(flows, self.targets_per_server, GRAIN));
        Load {
            kind: self.kind,
            rounds: rounds as f64,
            bytes: bytes * self.scale * per_round,
            node_bytes: most(&mut nodes.values().copied()) * per_round,
            nodes: clients * self.scale,
            ranks: made * self.scale * per_round,
            calls: 1.0,
            target_bytes: scaled(busiest.map_or(0.0, |target| target.bytes), evenly, self.scale) * per_round,
            server_bytes: scaled(most(&mut servers.values().copied()), held / servers.len().max(1) as f64, self.scale)
                * per_round,
            targets: by_target.len() as f64,
            fan_in: busiest
                .map_or(1.0, |target| target.by_client.len() as f64 * self.scale)
                .clamp(1.0, clients * self.scale),
            crowd: (crowd * self.scale).clamp(1.0, (clients * self.scale).max(1.0)),
            run: busiest.map_or(0.0, |target| target.bytes / target.runs.max(1) as f64),
            interleaved,
            block,
            strided: rounds > 1 && block < 1.5 * bytes / made,
            hand_overs: hand_overs * self.scale,
            writers: if interleaved { (writers * self.scale).min(clients * self.scale) } else { 1.0 },
            conflicts: if interleaved { conflicted.len() as f64 * per_round } else { 0.0 },
            page_ends: page_ends / made,
            chunks: most(&mut chunks.values().copied()) * per_round,
            partial_chunks: most(&mut chunks.values().copied()) * per_round * partial_share,
            objects: objects * self.scale * per_round,
            flows,
            scale: self.scale,
        }
    }
}

/// The most of some, when `scale` times as many fill all of them. Where those that are looked at overlap by chance, all of them
/// overlap less.
fn scaled(most: f64, mean: f64, scale: f64) -> f64 {
    mean * scale + (most - mean).max(0.0) / scale.sqrt()
}

/// What one target gets.
#[derive(Debug, Default)]
struct TargetLoad {
    bytes: f64,
    /// Contiguous runs of calls.
    runs: usize,
    /// By client and object: round and end of the last piece.
    ends: HashMap<(usize, (u64, u64)), (usize, u64)>,
    /// Bytes of each client.
    by_client: BTreeMap<usize, f64>,
    /// Round, place in the call, client, object, range.
    pieces: Vec<TargetPiece>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TargetPiece {
    round: usize,
    place: u64,
    node: usize,
    object: (u64, u64),
    offset: u64,
    len: u64,
}

/// Who takes turns at a target.
#[derive(Debug, Default)]
struct Turns {
    /// Locks that change hands, of all rounds.
    hand_overs: usize,
    /// Of the rounds with such: bytes over those of the busiest client, summed.
    writers: f64,
    /// Most clients of a round.
    crowd: usize,
    /// The rounds.
    conflicts: Vec<usize>,
}

impl TargetLoad {
    fn add(&mut self, piece: TargetPiece, scale: f64) {
        self.bytes += piece.len as f64 * scale;
        let end = (piece.round, piece.offset + piece.len);
        let last = self.ends.insert((piece.node, piece.object), end);
        self.runs += usize::from(last != Some((piece.round, piece.offset)));
        *self.by_client.entry(piece.node).or_default() += piece.len as f64 * scale;
        self.pieces.push(piece);
    }

    fn turns(&mut self, number: u64, locks: &mut LockTables) -> Turns {
        let mut found = Turns::default();
        self.pieces.sort_unstable();
        for now in self.pieces.chunk_by(|a, b| a.round == b.round) {
            let mut clients: BTreeMap<usize, u64> = BTreeMap::new();
            let mut hand_overs = 0;
            for piece in now {
                *clients.entry(piece.node).or_default() += piece.len;
                let end = piece.offset + piece.len;
                hand_overs += locks.ask(number, piece.object, piece.node, piece.offset, end);
            }
            found.crowd = found.crowd.max(clients.len());
            if hand_overs > 0 {
                let most = clients.values().copied().max().unwrap_or(1).max(1);
                found.writers += clients.values().sum::<u64>() as f64 / most as f64;
                found.hand_overs += hand_overs;
                found.conflicts.push(now[0].round);
            }
        }
        found
    }
}

/// How long the contiguous blocks of clients are.
#[derive(Debug, Default)]
struct ClientBlocks {
    ends: HashMap<(usize, u64), u64>,
    bytes: f64,
    number: f64,
}

impl ClientBlocks {
    fn add(&mut self, node: usize, file: u64, offset: u64, len: u64) {
        let last = self.ends.insert((node, file), offset + len);
        self.number += f64::from(u8::from(last != Some(offset)));
        self.bytes += len as f64;
    }

    fn mean(&self) -> f64 {
        if self.number > 0.0 { self.bytes / self.number } else { 0.0 }
    }
}
