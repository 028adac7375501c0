//! Finds repetitions for the simple formats that consist of literals and references back.

/// Repetitions shorter than this are not looked for.
pub(crate) const SHORTEST: usize = 4;
const TABLE_BITS: u32 = 14;

/// Where the last place of each hash is remembered, kept from call to call.
pub(crate) type Table = Vec<u32>;

/// What is made of the findings. Each call answers whether there was room.
pub(crate) trait Sink {
    /// These bytes come next, as they are.
    fn literals(&mut self, bytes: &[u8]) -> bool;
    /// Next come `len` bytes that stood `distance` bytes before.
    fn reference(&mut self, distance: usize, len: usize) -> bool;
}

/// A buffer that is filled from its front, as far as there is room.
pub(crate) struct Room<'a> {
    out: &'a mut [u8],
    end: usize,
}

impl<'a> Room<'a> {
    pub(crate) fn new(out: &'a mut [u8]) -> Self {
        Self { out, end: 0 }
    }

    /// Answers whether there was room.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> bool {
        let Some(room) = self.out.get_mut(self.end..self.end + bytes.len()) else { return false };
        room.copy_from_slice(bytes);
        self.end += bytes.len();
        true
    }

    /// How many bytes are in it.
    pub(crate) fn filled(&self) -> usize {
        self.end
    }
}

/// Takes `input` apart. References reach back `farthest` bytes at most; the last `tail` bytes are always literals.
/// Answers whether the sink had room for everything.
pub(crate) fn find(input: &[u8], table: &mut Table, farthest: usize, tail: usize, sink: &mut impl Sink) -> bool {
    table.clear();
    table.resize(1 << TABLE_BITS, 0);
    let end = input.len().saturating_sub(tail);
    let (mut literals_from, mut place, mut misses) = (0, 0, 0usize);
    while place + SHORTEST <= end {
        let word = word(input, place);
        let slot = &mut table[(word.wrapping_mul(2_654_435_761) >> (32 - TABLE_BITS)) as usize];
        // Places are kept plus one, so that zero means none; they wrap at 4 GiB, where a wrong one fails below.
        let before = (*slot as usize).checked_sub(1);
        *slot = (place + 1) as u32;
        let matching =
            before.filter(|before| *before < place && place - before <= farthest && self::word(input, *before) == word);
        let Some(before) = matching else {
            // Where nothing repeats, look at fewer and fewer places.
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

/// How many bytes at the front are the same.
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

/// Puts `len` bytes that stand `distance` before `end` behind it, if both lie within `out`. They may overlap, which
/// repeats them.
pub(crate) fn copy_back(out: &mut [u8], end: usize, distance: usize, len: usize) -> Option<()> {
    let start = end.checked_sub(distance)?;
    if distance == 0 || len > out.len() - end {
        return None;
    }
    if distance == 1 {
        let value = out[start];
        out[end..end + len].fill(value);
    } else {
        // What has been copied can be copied again: pieces double until all is there.
        let mut done = 0;
        while done < len {
            let piece = (distance + done).min(len - done);
            out.copy_within(start..start + piece, end + done);
            done += piece;
        }
    }
    Some(())
}
