//! Maps with the statistics of the real ones, for any number of ranks.
//!
//! Those that are handed around are for 16 ranks: 866 columns of 72 levels (F); 285 cells, 879 edges and 593 vertices of 100
//! levels (G); a grid of 96 x 144 of which 5663 cells are land (I). More ranks get grids that are larger in proportion.

use super::decomposition::{Decomposition, Requests, Run};
use crate::random::Random;
use hyperslab_core::{Error, Result};

/// Ranks of the maps that are handed around.
const PUBLISHED_RANKS: u64 = 16;
/// The most ranks that maps are generated for.
const MOST_RANKS: u64 = 1 << 17;
/// What all maps begin with, so that they are the same in every run.
const SEED: u64 = 0x4533_534D;

fn scaled(at_sixteen: u64, ranks: u64) -> u64 {
    (at_sixteen * ranks).div_ceil(PUBLISHED_RANKS)
}

fn check(ranks: u64) -> Result<()> {
    if (1..=MOST_RANKS).contains(&ranks) {
        return Ok(());
    }
    Err(Error::invalid("generate map", format!("{ranks} ranks; 1 to {MOST_RANKS} are possible")))
}

/// Atmosphere: D1 in 2 to 4 runs of neighbours, D2 in four combs one after the other, D3 the same on all levels.
pub fn atmosphere(ranks: u64, levels: u64) -> Result<Vec<Decomposition>> {
    check(ranks)?;
    let columns = scaled(866, ranks).max(4 * ranks);
    let mut random = Random::new(SEED);
    // About 47 runs for 16 ranks, dealt like cards, so that a rank has runs far from each other.
    let runs = (47 * ranks).div_ceil(PUBLISHED_RANKS).min(columns);
    let mut ends: Vec<u64> = (1..runs).map(|run| (run * columns / runs + random.below(9)).saturating_sub(4)).collect();
    ends.push(columns);
    let mut near = vec![Requests::default(); ranks as usize];
    let mut start = 0;
    for (run, end) in ends.into_iter().enumerate() {
        let end = end.clamp(start, columns);
        if end > start {
            near[run % ranks as usize].data.push((start, end - start));
        }
        start = end;
    }
    // 64 combs for 16 ranks: a rank has four, in no order.
    let stride = 4 * ranks;
    let mut combs: Vec<u64> = (0..stride).collect();
    random.shuffle(&mut combs);
    let teeth = |comb: &u64| (*comb..columns).step_by(stride as usize).map(|column| (column, 1));
    let combed: Vec<Requests> = combs
        .chunks(4)
        .map(|mine| Requests { data: mine.iter().flat_map(teeth).collect(), holes: Vec::new() })
        .collect();
    let layered = combed.iter().map(|requests| on_levels(requests, levels, columns)).collect();
    let of = |dims: &[u64], requests| Decomposition { dims: dims.into(), requests };
    Ok(vec![of(&[columns], near), of(&[columns], combed), of(&[levels, columns], layered)])
}

/// The same requests on every level.
fn on_levels(requests: &Requests, levels: u64, plane: u64) -> Requests {
    let repeat = |runs: &[Run]| {
        let level = |level: u64| runs.iter().map(move |(start, len)| (level * plane + start, *len));
        (0..levels).flat_map(level).collect()
    };
    Requests { data: repeat(&requests.data), holes: repeat(&requests.holes) }
}

/// Ocean: short runs of cells (D1) and edges (D2, falling), and whole rows of levels of cells (D3), edges (D4), vertices (D5,
/// unevenly) and interfaces of cells (D6).
pub fn ocean(ranks: u64, levels: u64) -> Result<Vec<Decomposition>> {
    check(ranks)?;
    let [cells, edges, vertices] = [285, 879, 593].map(|count| scaled(count, ranks).max(ranks));
    let mut random = Random::new(SEED + 1);
    let of_cells = dealt(cells, 8, ranks, &mut random, |_| 1);
    let mut of_edges = dealt(edges, 2, ranks, &mut random, |_| 1);
    of_edges.iter_mut().for_each(|requests| requests.data.reverse());
    let mut of_vertices = dealt(vertices, 3, ranks, &mut random, |rank| 1 + rank * 7 % 5);
    // The order of the mesh is not that of the file.
    for requests in &mut of_vertices {
        random.shuffle(&mut requests.data);
    }
    let mut edge_rows = of_edges.clone();
    for requests in &mut edge_rows {
        random.shuffle(&mut requests.data);
    }
    let rows = |requests: &[Requests], width: u64| {
        let row = |(start, len): &Run| (*start..start + len).map(move |row| (row * width, width));
        let of =
            |requests: &Requests| Requests { data: requests.data.iter().flat_map(row).collect(), holes: Vec::new() };
        requests.iter().map(of).collect::<Vec<Requests>>()
    };
    let of = |dims: &[u64], requests| Decomposition { dims: dims.into(), requests };
    Ok(vec![
        of(&[cells, levels], rows(&of_cells, levels)),
        of(&[edges, levels], rows(&edge_rows, levels)),
        of(&[vertices, levels], rows(&of_vertices, levels)),
        of(&[cells, levels + 1], rows(&of_cells, levels + 1)),
    ]
    .into_iter()
    .fold(vec![of(&[cells], of_cells), of(&[edges], of_edges)], |mut all, next| {
        all.push(next);
        all
    }))
}

/// Elements in runs of 1 to `longest`, dealt to ranks as often as `weight` says of each.
fn dealt(count: u64, longest: u64, ranks: u64, random: &mut Random, weight: impl Fn(u64) -> u64) -> Vec<Requests> {
    let mut requests = vec![Requests::default(); ranks as usize];
    let cards: Vec<u64> = (0..ranks).flat_map(|rank| std::iter::repeat_n(rank, weight(rank) as usize)).collect();
    let (mut start, mut deck) = (0, Vec::new());
    while start < count {
        if deck.is_empty() {
            deck.clone_from(&cards);
            random.shuffle(&mut deck);
        }
        let len = (1 + random.below(longest)).min(count - start);
        let Some(rank) = deck.pop() else { break };
        let mine: &mut Vec<Run> = &mut requests[rank as usize].data;
        match mine.last_mut() {
            // Runs of a rank that touch are one; no longer than the longest.
            Some((before, known)) if *before + *known == start && *known + len <= longest => *known += len,
            Some((before, known)) if *before + *known == start => {
                // Left to the next rank.
                deck.insert(0, rank);
                let other = deck.pop().unwrap_or(rank);
                requests[other as usize].data.push((start, len));
            }
            _ => mine.push((start, len)),
        }
        start += len;
    }
    requests
}

/// Land: 41 % of a grid of latitudes and longitudes, in runs of up to a whole row; then the same on the levels of the ground, of
/// lakes, of kinds of land and of plants. What is not land are holes.
pub fn land(ranks: u64) -> Result<Vec<Decomposition>> {
    check(ranks)?;
    // Both extents grow, so that the shape stays.
    let larger = (ranks.div_ceil(PUBLISHED_RANKS) as f64).sqrt().ceil() as u64;
    let (latitudes, longitudes) = (96 * larger, 144 * larger);
    let mut random = Random::new(SEED + 2);
    let runs = continents(latitudes, longitudes, &mut random);
    let mut flat = vec![Requests::default(); ranks as usize];
    spread(&runs, &mut flat, |requests| &mut requests.data);
    let mut holes = Vec::new();
    let mut end = 0;
    for (start, len) in &runs {
        holes.extend((*start > end).then(|| (end, start - end)));
        end = start + len;
    }
    holes.extend((latitudes * longitudes > end).then(|| (end, latitudes * longitudes - end)));
    spread(&holes, &mut flat, |requests| &mut requests.holes);
    let mut maps = vec![Decomposition { dims: [latitudes, longitudes].as_slice().into(), requests: flat.clone() }];
    for levels in [15, 10, 9, 17] {
        let requests = flat.iter().map(|requests| on_levels(requests, levels, latitudes * longitudes)).collect();
        maps.push(Decomposition { dims: [levels, latitudes, longitudes].as_slice().into(), requests });
    }
    Ok(maps)
}

/// Runs of land cells: whole rows at one pole, shorter ones elsewhere, in all 5663 of 13824 cells.
fn continents(latitudes: u64, longitudes: u64, random: &mut Random) -> Vec<Run> {
    let target = latitudes * longitudes * 5663 / 13824;
    let polar = latitudes / 12;
    let mut runs: Vec<Run> = (0..polar).map(|row| (row * longitudes, longitudes)).collect();
    let mut shorter = Vec::new();
    for row in polar..latitudes {
        let mut at = random.below(20);
        while at < longitudes {
            // Half of them up to 7, few of them long.
            let len = match random.below(8) {
                0..4 => 1 + random.below(7),
                4..7 => 8 + random.below(9),
                _ => 17 + random.below(24),
            };
            let len = len.min(longitudes - at);
            shorter.push((row * longitudes + at, len));
            at += len + 2 + random.below(22);
        }
    }
    random.shuffle(&mut shorter);
    let mut cells = polar * longitudes;
    for (start, len) in shorter {
        let len = len.min(target - cells);
        if len == 0 {
            break;
        }
        runs.push((start, len));
        cells += len;
    }
    runs.sort_unstable();
    runs
}

/// Deals runs to ranks one after the other, each about as many elements.
fn spread(runs: &[Run], ranks: &mut [Requests], of: impl Fn(&mut Requests) -> &mut Vec<Run>) {
    let whole: u64 = runs.iter().map(|run| run.1).sum();
    let (mut before, mut rank, count) = (0, 0, ranks.len() as u64);
    for (mut start, mut len) in runs.iter().copied() {
        while len > 0 {
            while rank + 1 < ranks.len() && before >= whole * (rank as u64 + 1) / count {
                rank += 1;
            }
            let room = if rank + 1 == ranks.len() { len } else { whole * (rank as u64 + 1) / count - before };
            let part = len.min(room);
            of(&mut ranks[rank]).push((start, part));
            (start, len, before) = (start + part, len - part, before + part);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn check_all(maps: &[Decomposition], ranks: u64, covered: bool) {
        for map in maps {
            map.check().unwrap();
            assert_eq!(map.requests.len() as u64, ranks);
            let holes: u64 = map.requests.iter().flat_map(|requests| &requests.holes).map(|run| run.1).sum();
            let whole: u64 = map.dims.iter().product();
            assert_eq!(map.elements() + holes, whole, "{:?}", map.dims);
            assert!(!covered || holes == 0);
        }
    }

    #[test]
    fn any_number_of_ranks_is_served() {
        for ranks in [1, 2, 3, 7, 16, 17, 100, 300] {
            check_all(&atmosphere(ranks, 3).unwrap(), ranks, true);
            check_all(&ocean(ranks, 3).unwrap(), ranks, true);
            check_all(&land(ranks).unwrap(), ranks, false);
        }
        assert!(atmosphere(0, 72).is_err() && ocean(1 << 18, 1).is_err());
    }

    fn lengths(map: &Decomposition) -> Vec<u64> {
        let mut lengths: Vec<u64> = map.requests.iter().flat_map(|requests| &requests.data).map(|run| run.1).collect();
        lengths.sort_unstable();
        lengths
    }

    fn is_sorted(requests: &Requests) -> bool {
        requests.data.is_sorted()
    }

    #[test]
    fn sixteen_ranks_of_the_atmosphere_ask_as_in_the_real_map() {
        let maps = atmosphere(16, 72).unwrap();
        let number = |map: &Decomposition| map.requests.iter().map(|requests| requests.data.len()).collect::<Vec<_>>();
        assert_eq!(number(&maps[0]).iter().sum::<usize>(), 47);
        assert!(number(&maps[0]).iter().all(|count| (2..=4).contains(count)), "{:?}", number(&maps[0]));
        assert!(lengths(&maps[0]).iter().all(|len| (9..=36).contains(len)), "{:?}", lengths(&maps[0]));
        assert_eq!(number(&maps[1]).iter().sum::<usize>(), 866);
        assert!(number(&maps[1]).iter().all(|count| (52..=56).contains(count)));
        assert!(maps[1].requests.iter().all(|requests| !is_sorted(requests)), "combs one after the other");
        assert_eq!(number(&maps[2]).iter().sum::<usize>(), 62_352);
        assert!(number(&maps[2]).iter().all(|count| (3744..=4032).contains(count)));
        for rank in 0..16 {
            assert!(maps[2].first_record(rank..rank + 1).unwrap().slabs().len() <= 4, "a step stays small");
        }
    }

    #[test]
    fn sixteen_ranks_of_the_ocean_ask_as_in_the_real_map() {
        let maps = ocean(16, 100).unwrap();
        let dims: Vec<Vec<u64>> = maps.iter().map(|map| map.dims.to_vec()).collect();
        assert_eq!(dims, [vec![285], vec![879], vec![285, 100], vec![879, 100], vec![593, 100], vec![285, 101]]);
        assert_eq!((lengths(&maps[0])[0], *lengths(&maps[0]).last().unwrap()), (1, 8));
        assert_eq!((lengths(&maps[1])[0], *lengths(&maps[1]).last().unwrap()), (1, 2));
        let falls = |requests: &Requests| requests.data.windows(2).all(|pair| pair[0].0 > pair[1].0);
        assert!(maps[1].requests.iter().all(falls));
        for (map, width) in maps[2..].iter().zip([100, 100, 100, 101]) {
            assert!(lengths(map).iter().all(|len| *len == width));
        }
        for map in [&maps[3], &maps[4]] {
            assert!(map.requests.iter().filter(|requests| !is_sorted(requests)).count() > 12);
        }
        let elements: Vec<u64> = maps[4].requests.iter().map(Requests::len).collect();
        let (least, most) = (*elements.iter().min().unwrap(), *elements.iter().max().unwrap());
        assert!((800..2000).contains(&least) && (5000..9000).contains(&most), "{elements:?}");
    }

    #[test]
    fn sixteen_ranks_of_the_land_ask_as_in_the_real_map() {
        let maps = land(16).unwrap();
        assert_eq!(maps[0].dims.as_slice(), [96, 144]);
        assert_eq!(maps[0].elements(), 5663);
        let lengths = lengths(&maps[0]);
        assert_eq!((lengths[0], *lengths.last().unwrap()), (1, 144));
        assert!((5..=9).contains(&lengths[lengths.len() / 2]), "median {}", lengths[lengths.len() / 2]);
        let levels: Vec<u64> = maps[1..].iter().map(|map| map.dims[0]).collect();
        assert_eq!(levels, [15, 10, 9, 17]);
        assert!(maps[1..].iter().all(|map| map.elements() == 5663 * map.dims[0]));
    }
}
