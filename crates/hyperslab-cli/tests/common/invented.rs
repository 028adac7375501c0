//! A profile of a machine that does not exist.
#![allow(clippy::unwrap_used)]

use hyperslab_core::CacheState;
use hyperslab_model::{
    Alignment, Class, Contention, ContentionCurve, Count, Fit, Interval, LayerCost, MachineFacts, Profile, RankKind,
};

/// A profile of an invented machine, on which calls and bytes cost something and nothing else does.
pub fn invented() -> String {
    let mut coefficients = vec![0.0; 2 * Count::ALL.len()];
    for (count, seconds) in [
        (Count::Requests, 1e-6),
        (Count::ReadCalls, 5e-6),
        (Count::ReadBytes, 1e-9),
        (Count::WriteCalls, 5e-6),
        (Count::WriteBytes, 1e-9),
        (Count::FilesOpened, 2e-5),
        (Count::FilesCreated, 5e-5),
    ] {
        coefficients[count as usize] = seconds;
        coefficients[Count::ALL.len() + count as usize] = seconds;
    }
    let fit = Fit { coefficients, interval: Interval { factor: 1.1 }, ..Fit::default() };
    let both = |class| [CacheState::Warm, CacheState::Cold].map(|warmth| ((class, warmth), fit.clone()));
    let layer = LayerCost { write_call: 2e-6, write_byte: 2e-10, read_call: 2e-6, read_byte: 2e-10 };
    let profile = Profile {
        program: "0.1.0".into(),
        measured: 0.0,
        machine: MachineFacts {
            processor: "invented".into(),
            processors: 1_000_000,
            memory: 1,
            file_system: "invented".into(),
            device: "none".into(),
        },
        fits: Class::ALL.into_iter().flat_map(both).collect(),
        sharing: [(
            (Class::Posix, RankKind::Threads),
            ContentionCurve::new(vec![Contention { ranks: 1, create: 0.0, open: 0.0, read: 2.0, write: 2.0 }]).unwrap(),
        )]
        .into(),
        missing: Vec::new(),
        layers: ["async", "log", "cache", "twophase"].map(|name| (name.to_owned(), layer)).into(),
        alignment: vec![Alignment { bytes: 4096, read: 1.0, write: 0.9 }],
        copy_rate: Some(1e10),
        python: Default::default(),
    };
    profile.to_json().unwrap()
}
