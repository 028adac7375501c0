//! LZ77 match finder for the simple formats of literals and back-references.

/// Minimum match length.
pub(crate) const SHORTEST: usize = 4;
const TABLE_BITS: u32 = 14;

/// Hash table: the last position of each hash. Its allocation is reused from call to call.
pub(crate) type Table = Vec<u32>;

/// Receiver of the token stream. Each method returns whether the output had room.
pub(crate) trait Sink {
    /// Emits literal bytes.
    fn literals(&mut self, bytes: &[u8]) -> bool;
    /// Emits a match: copy `len` bytes from `distance` bytes back.
    fn reference(&mut self, distance: usize, len: usize) -> bool;
}

/// A bounded output buffer.
pub(crate) struct Room<'a> {
    out: &'a mut [u8],
    end: usize,
}

impl<'a> Room<'a> {
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { out, end: 0 }
    }

    /// Appends bytes. Returns whether there was room.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> bool {
        let Some(room) = self.out.get_mut(self.end..self.end + bytes.len()) else { return false };
        room.copy_from_slice(bytes);
        self.end += bytes.len();
        true
    }

    /// Bytes written so far.
    pub(crate) fn filled(&self) -> usize {
        self.end
    }
}

/// Tokenises `input` into literals and matches. Match distances are at most `farthest`; the last `tail` bytes are always literals.
/// Returns whether the sink had room for everything.
pub(crate) fn find(input: &[u8], table: &mut Table, farthest: usize, tail: usize, sink: &mut impl Sink) -> bool {
    table.clear();
    table.resize(1 << TABLE_BITS, 0);
    let end = input.len().saturating_sub(tail);
    let (mut literals_from, mut place, mut misses) = (0, 0, 0usize);
    while place + SHORTEST <= end {
        let word = word(input, place);
        let slot = &mut table[(word.wrapping_mul(2_654_435_761) >> (32 - TABLE_BITS)) as usize];
        // Positions are stored plus one, so that zero means none; they wrap at 4 GiB, and a wrong one is rejected below.
        let before = (*slot as usize).checked_sub(1);
        *slot = (place + 1) as u32;
        let matching =
            before.filter(|before| *before < place && place - before <= farthest && self::word(input, *before) == word);
        let Some(before) = matching else {
            // Skips ahead faster the longer no match is found.
            misses += 1;
            place += 1 + (misses >> 5);
            continue;
        };
        let len = SHORTEST + common(&input[before + SHORTEST..end], &input[place + SHORTEST..end]);
        let literals = &input[literals_from..place];
        if !(literals.is_empty() || sink.literals(literals)) || !sink.reference(place - before, len) {
            return false;
        }
        place += len;
        (literals_from, misses) = (place, 0);
    }
    literals_from >= input.len() || sink.literals(&input[literals_from..])
}

fn word(input: &[u8], place: usize) -> u32 {
    input.get(place..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}

/// Length of the common prefix.
fn common(first: &[u8], second: &[u8]) -> usize {
    let mut same = 0;
    for (one, other) in first.chunks_exact(8).zip(second.chunks_exact(8)) {
        let differ = number(one) ^ number(other);
        if differ != 0 {
            return same + differ.trailing_zeros() as usize / 8;
        }
        same += 8;
    }
    same + first[same..].iter().zip(&second[same..]).take_while(|(one, other)| one == other).count()
}

fn number(eight: &[u8]) -> u64 {
    eight.first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight))
}

/// Executes a match: copies `len` bytes from `distance` before `end` to `end`. Source and target may overlap, which repeats the
/// bytes. Returns `None` if either lies outside `out`.
pub(crate) fn copy_back(out: &mut [u8], end: usize, distance: usize, len: usize) -> Option<()> {
    let start = end.checked_sub(distance)?;
    if distance == 0 || len > out.len() - end {
        return None;
    }
    if distance == 1 {
        let value = out[start];
        out[end..end + len].fill(value);
    } else {
        // Overlapping copy by doubling: copied bytes are the source of the next copy.
        let mut done = 0;
        while done < len {
            let piece = (distance + done).min(len - done);
            out.copy_within(start..start + piece, end + done);
            done += piece;
        }
    }
    Some(())
}
