//! JSON from strangers: no panic, no unbounded memory, no endless loop.

#![allow(clippy::unwrap_used, missing_docs)]

use hyperslab_core::units::parse_size;
use hyperslab_core::workload::{Step, read_header};
use hyperslab_core::{ChunkGrid, Datatype, Gather, MemoryLayout, MemoryView, Selection, Stack, parse_stacks};
use proptest::prelude::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what is allocated, to catch memory out of proportion to the text.
struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes every call on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(now, Ordering::Relaxed);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are those of the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Far above what the largest refused operation needs, far below what an unchecked one would take.
const MOST: usize = 512 << 20;

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..8,
        2 => 0u64..2000,
        1 => prop::sample::select(vec![1 << 20, (1 << 31) - 1, 1 << 32, (1 << 40) + 7, 1_000_003, 999_983]),
        1 => prop::sample::select(vec![i64::MAX as u64 - 1, i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX]),
        1 => any::<u64>(),
    ]
}

fn dims(rank: usize) -> impl Strategy<Value = Vec<u64>> {
    prop_oneof![20 => prop::collection::vec(number(), rank), 1 => prop::collection::vec(number(), 0..40)]
}

fn slab(rank: usize) -> impl Strategy<Value = String> {
    (dims(rank), prop::option::weighted(0.7, dims(rank)), dims(rank), prop::option::weighted(0.7, dims(rank))).prop_map(
        |(start, stride, count, block)| {
            let optional = |name: &str, dims: Option<Vec<u64>>| {
                dims.map_or(String::new(), |dims| format!(r#","{name}":{dims:?}"#))
            };
            let (stride, block) = (optional("stride", stride), optional("block", block));
            format!(r#"{{"start":{start:?},"count":{count:?}{stride}{block}}}"#)
        },
    )
}

fn selection(rank: usize) -> impl Strategy<Value = String> {
    let union = (prop_oneof![20 => Just(rank as u64), 1 => number()], prop::collection::vec(slab(rank), 0..6))
        .prop_map(|(rank, slabs)| format!(r#"{{"rank":{rank},"union":[{}]}}"#, slabs.join(",")));
    prop_oneof![slab(rank), union.boxed()]
}

fn layout() -> impl Strategy<Value = String> {
    let within = (0usize..4).prop_flat_map(|r| (dims(r), selection(r)));
    let members = prop::collection::vec((prop::option::of(prop::sample::select(vec!["a", "b", "z"])), number()), 0..4);
    (prop::option::of(within), prop::option::of((number(), members))).prop_map(|(within, structure)| {
        let mut parts = Vec::new();
        if let Some((shape, selection)) = within {
            parts.push(format!(r#""within":{{"shape":{shape:?},"selection":{selection}}}"#));
        }
        if let Some((size, members)) = structure {
            let members: Vec<String> = members
                .iter()
                .map(|(field, offset)| match field {
                    Some(field) => format!(r#"{{"field":"{field}","offset":{offset}}}"#),
                    None => format!(r#"{{"offset":{offset}}}"#),
                })
                .collect();
            parts.push(format!(r#""structure":{{"size":{size},"members":[{}]}}"#, members.join(",")));
        }
        format!("{{{}}}", parts.join(","))
    })
}

/// Everything one can do with a selection that was read. Results may be errors.
fn exercise(a: &Selection, b: &Selection, shape: &[u64], chunk: &[u64]) {
    let _ = (a.len(), a.is_empty(), a.bounds(), a.check_inside(shape));
    let _ = (a.first_byte(shape, 8), a.last_byte(shape, u64::MAX));
    let _ = (a.overlaps(b), a.same_elements(b));
    let _ = (a.intersect(b), a.subtract(b), a.union_with(b));
    let _ = a.shifted(&vec![i64::MIN; a.rank()]);
    let _ = a.shifted(&vec![i64::MAX; a.rank()]);
    for shape in [shape, &a.bounds().map_or(Default::default(), |(_, high)| high)] {
        if let Ok(runs) = a.runs(shape, 8) {
            let runs: Vec<_> = runs.take(300).collect();
            assert!(runs.windows(2).all(|w| w[0].end() < w[1].offset));
        }
        if let Ok(grid) = ChunkGrid::new(shape, chunk)
            && let Ok(parts) = a.split_by_chunk(&grid)
        {
            for part in parts.take(20).flatten() {
                let _ = part.copy_to_chunk(&[0; 64], &mut [0; 64], 8);
            }
        }
    }
    let text = serde_json::to_string(a).unwrap();
    assert!(serde_json::from_str::<Selection>(&text).unwrap().len() == a.len());
}

proptest! {
    #[test]
    fn selections_of_strangers(
        (a, b, shape, chunk) in (0usize..4).prop_flat_map(|r| (selection(r), selection(r), dims(r), dims(r))),
    ) {
        let (a, b) = (serde_json::from_str::<Selection>(&a), serde_json::from_str::<Selection>(&b));
        if let (Ok(a), Ok(b)) = (&a, &b) {
            exercise(a, b, &shape, &chunk);
        }
        prop_assert!(PEAK.load(Ordering::Relaxed) < MOST, "{} bytes", PEAK.load(Ordering::Relaxed));
    }

    #[test]
    fn layouts_of_strangers(text in layout(), elements in number()) {
        let dtype = Datatype::packed_compound([("a", Datatype::F32), ("b", Datatype::F64)]).unwrap();
        if let Ok(layout) = serde_json::from_str::<MemoryLayout>(&text) {
            let data = [0u8; 256];
            let selected = layout.within.as_ref().map_or(elements, |w| w.selection.len());
            for count in [elements, selected, 0, 5] {
                let _ = layout.buffer_len(&dtype, count);
                if let Ok(mut gather) = Gather::new(MemoryView { data: &data, layout: &layout }, &dtype, count) {
                    let mut packed = [0u8; 240];
                    prop_assert!(gather.next_into(&mut packed) as u64 <= count);
                }
            }
        }
        prop_assert!(PEAK.load(Ordering::Relaxed) < MOST, "{} bytes", PEAK.load(Ordering::Relaxed));
    }

    #[test]
    fn noise(text in "[\\[\\]{}\",:0-9a-z \\-.e]{0,60}") {
        let _ = serde_json::from_str::<Selection>(&text);
        let _ = serde_json::from_str::<MemoryLayout>(&text);
        let _ = serde_json::from_str::<Datatype>(&text);
        let _ = serde_json::from_str::<Step>(&text);
        let _ = read_header(&mut text.as_bytes());
    }

    #[test]
    fn words(text in "[a-z0-9<>|(),=/\"é x\\-]{0,40}") {
        let _ = text.parse::<Datatype>();
        let _ = parse_size(&text);
        if let Ok(stacks) = parse_stacks(&text) {
            for stack in stacks {
                prop_assert_eq!(&stack.to_string().parse::<Stack>().unwrap(), &stack, "{:?}", text);
            }
        }
    }
}

#[test]
fn known_traps_are_refused_or_answered_at_once() {
    let parse = |text: &str| serde_json::from_str::<Selection>(text);
    // More than 2^64 elements in all, though each slab has fewer.
    let half = |at: u64| format!(r#"{{"start":[{at},0],"count":[4,4611686018427387903]}}"#);
    let several = format!(r#"{{"rank":2,"union":[{},{},{}]}}"#, half(0), half(4), half(8));
    assert!(parse(&several).is_err());
    // Blocks that meet only after a very long time.
    let a = parse(r#"{"start":[0],"stride":[1000003],"count":[1099511627776],"block":[1]}"#).unwrap();
    let b = parse(r#"{"start":[1],"stride":[1000033],"count":[1099511627776],"block":[1]}"#).unwrap();
    assert!(a.overlaps(&b));
    assert_eq!(a.intersect(&b).unwrap().slabs().len(), 1);
    // Pieces without end.
    let a = parse(r#"{"start":[0],"stride":[2000000011],"count":[2000000000],"block":[1000000007]}"#).unwrap();
    let b = parse(r#"{"start":[3],"stride":[2000000033],"count":[2000000000],"block":[1000000009]}"#).unwrap();
    assert!(a.overlaps(&b));
    assert!(a.intersect(&b).is_err() && a.subtract(&b).is_err() && a.union_with(&b).is_err());
    // A rank beyond all arrays.
    assert!(parse(r#"{"rank":18446744073709551615,"union":[]}"#).is_err());
}

const TRACE: &str = r#"{"hyperslab_workload":2,"name":"t","ranks":2,"recorded":{"by":"x","complete":true,"steps":12},"files":[{"name":"a","created":true}],"arrays":[{"dtype":"<f4","shape":[8,4],"max_shape":[null,4]}]}
{"rank":0,"took":5,"do":"open_file","file":0,"how":"create"}
{"rank":0,"do":"compute","nanoseconds":100}
{"rank":0,"took":5,"do":"create","slot":0,"file":0,"array":0,"name":"x"}
{"rank":0,"took":5,"do":"write","slot":0,"selection":{"start":[0,0],"stride":[2,1],"count":[4,4],"block":[1,1]},"memory":{"structure":{"size":32,"members":[{"offset":4}]}}}
{"rank":0,"took":5,"do":"read","slot":0,"selection":{"rank":2,"union":[{"start":[0,0],"count":[1,4]},{"start":[4,1],"count":[2,2]}]}}
{"rank":0,"took":5,"do":"resize","slot":0,"shape":[9,4]}
{"rank":0,"took":5,"do":"close_array","slot":0}
{"rank":0,"took":5,"do":"close_file","file":0}
{"rank":1,"took":5,"do":"open_file","file":0,"how":"create"}
{"rank":1,"took":5,"do":"create","slot":0,"file":0,"array":0,"name":"x"}
{"rank":1,"took":5,"do":"resize","slot":0,"shape":[9,4]}
{"rank":1,"took":5,"do":"close_array","slot":0}
{"rank":1,"took":5,"do":"close_file","file":0}
"#;

fn validate(text: Vec<u8>) -> hyperslab_core::Result<hyperslab_core::workload::WorkloadSummary> {
    let text: std::sync::Arc<[u8]> = text.into();
    let open = move || -> std::io::Result<Box<dyn std::io::BufRead + Send>> {
        Ok(Box::new(std::io::Cursor::new(text.clone())))
    };
    let workload = hyperslab_core::workload::JsonLines::workload(Box::new(open))?;
    // The program refuses many ranks before it walks through them.
    if workload.header.ranks > 64 {
        return Err(hyperslab_core::Error::invalid("test", "many ranks"));
    }
    workload.validate()
}

#[test]
fn a_trace_is_surveyed() {
    let text = TRACE.replace("\"steps\":12", "\"steps\":13");
    let found = validate(text.clone().into_bytes()).unwrap();
    assert_eq!((found.steps, found.bytes_written, found.bytes_read), (13, 64, 32));
    assert_eq!(found.unchecked, [Some(hyperslab_core::workload::Unchecked::Reads)], "row 5 was never written");
    assert_eq!((found.created_bytes, found.compute.as_nanos()), (144, 100));
    assert!(validate(TRACE.into()).unwrap_err().to_string().contains("cut off"));
    let apart = text.replacen("{\"rank\":1,\"took\":5,\"do\":\"resize\",\"slot\":0,\"shape\":[9,4]}\n", "", 1);
    assert!(validate(apart.into_bytes()).unwrap_err().to_string().contains("wait for each other"));
    let shrinks = text.replace("\"shape\":[9,4]}", "\"shape\":[7,4]}");
    assert_eq!(validate(shrinks.into_bytes()).unwrap().unchecked, [Some(hyperslab_core::workload::Unchecked::All)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn changed_traces_are_read_or_refused(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..5), 1..6),
        digits in prop::option::of((any::<prop::sample::Index>(), number())),
    ) {
        let mut text = TRACE.as_bytes().to_vec();
        for (at, byte, how) in changes {
            let at = at.index(text.len().max(1));
            match how {
                0 if at < text.len() => text[at] = byte,
                1 if at < text.len() => { text.remove(at); }
                2 => text.insert(at, byte),
                3 => text.truncate(text.len() - (text.len() - at) % 200),
                _ => {
                    let line = text.split(|b| *b == b'\n').nth(at % 14).unwrap_or_default().to_vec();
                    text.extend(line);
                    text.push(b'\n');
                }
            }
        }
        if let Some((at, number)) = digits {
            let places: Vec<usize> = (0..text.len()).filter(|i| text[*i].is_ascii_digit()).collect();
            if !places.is_empty() {
                let place = places[at.index(places.len())];
                text.splice(place..=place, number.to_string().into_bytes());
            }
        }
        let before = NOW.load(Ordering::Relaxed);
        let _ = validate(text);
        prop_assert!(PEAK.load(Ordering::Relaxed).saturating_sub(before) < MOST);
    }
}
