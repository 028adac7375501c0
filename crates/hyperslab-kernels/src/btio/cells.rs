//! Which cells of the grid a rank owns.

/// First point and number of points along each dimension, slowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cell {
    pub start: [u64; 3],
    pub count: [u64; 3],
}

/// The cells of `rank`, by rising layer. The next one is one to the right and one up, around the edges.
pub fn cells_of(rank: u64, side: u64, grid: [u64; 3]) -> Vec<Cell> {
    (0..side)
        .map(|layer| {
            let at = [layer, (rank / side + side - layer) % side, (rank % side + layer) % side];
            let part = |d: usize| part(grid[d], side, at[d]);
            let [z, y, x] = [part(0), part(1), part(2)];
            Cell { start: [z.0, y.0, x.0], count: [z.1, y.1, x.1] }
        })
        .collect()
}

/// Part `number` of `extent` in `parts`; the first ones get what is left over.
fn part(extent: u64, parts: u64, number: u64) -> (u64, u64) {
    let (size, more) = (extent / parts, extent % parts);
    (number * size + number.min(more), size + u64::from(number < more))
}
