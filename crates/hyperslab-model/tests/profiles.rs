//! Profiles written, read, refused; and predictions by them.
#![allow(clippy::unwrap_used)]

#[path = "common/transfers.rs"]
mod transfers;

use hyperslab_core::{CacheState, Datatype, Selection};
use hyperslab_model::{
    Alignment, Bias, Class, Conditions, Contention, ContentionCurve, Count, Fit, Interval, LayerCost, MachineFacts,
    Part, Prediction, Profile, RankKind, count, default_coefficients, predict,
};
use transfers::Transfers;

fn machine() -> MachineFacts {
    MachineFacts {
        processor: "a processor".into(),
        processors: 4,
        memory: 1 << 34,
        file_system: "ext4".into(),
        device: "/dev/a".into(),
    }
}

/// Of numbers of ranks, how much longer each takes to make something, what they read and what they write.
fn sharing(crowds: &[(usize, f64, f64, f64)]) -> ContentionCurve {
    let crowd = |&(ranks, create, read, write): &_| Contention { ranks, create, open: 0.0, read, write };
    ContentionCurve::new(crowds.iter().map(crowd).collect()).unwrap()
}

fn profile() -> Profile {
    let mut coefficients = vec![0.0; 2 * Count::ALL.len()];
    let mut set = |count: Count, read: f64, write: f64| {
        coefficients[count as usize] = read;
        coefficients[Count::ALL.len() + count as usize] = write;
    };
    set(Count::ReadCalls, 2e-6, 0.0);
    set(Count::ReadBytes, 1e-10, 0.0);
    set(Count::WriteCalls, 0.0, 4e-6);
    set(Count::WriteBytes, 0.0, 3e-10);
    set(Count::LayerBytes, 0.0, 1e-10);
    let fit = Fit { coefficients, interval: Interval { factor: 1.5 }, ..Fit::default() };
    Profile {
        program: "0.1.0".into(),
        measured: 1.0,
        machine: machine(),
        fits: [Class::Posix, Class::Hdf5].map(|class| ((class, CacheState::Warm), fit.clone())).into(),
        sharing: [
            ((Class::Posix, RankKind::Threads), sharing(&[(1, 0.0, 1.0, 1.0), (4, 0.0, 3.0, 2.0)])),
            ((Class::Hdf5, RankKind::Processes), sharing(&[(1, 0.125, 0.75, 0.75), (4, 0.25, 4.0, 1.6)])),
        ]
        .into(),
        missing: vec!["nothing cold".into()],
        layers: [("async".into(), LayerCost { write_call: 1e-5, write_byte: 1e-10, read_call: 2e-5, read_byte: 0.0 })]
            .into(),
        alignment: vec![Alignment { bytes: 4096, read: 1.0, write: 0.5 }],
        copy_rate: Some(1e10),
        python: Default::default(),
    }
}

const THREADS: Conditions = Conditions { warmth: CacheState::Warm, ranks: RankKind::Threads };
const PROCESSES: Conditions = Conditions { warmth: CacheState::Warm, ranks: RankKind::Processes };

fn predicted(transfers: &Transfers, stack: &str) -> Prediction {
    predicted_under(transfers, stack, THREADS)
}

fn predicted_under(transfers: &Transfers, stack: &str, conditions: Conditions) -> Prediction {
    let configuration = hyperslab::configuration(&stack.parse().unwrap()).unwrap();
    let costs = count(&transfers.workload(), &configuration).unwrap();
    predict(&costs, configuration.class(), &profile(), conditions).unwrap()
}

#[test]
fn profiles_round_trip() {
    let text = profile().to_json().unwrap();
    assert_eq!(Profile::from_json(&text).unwrap(), profile());
    assert!(profile().check_machine(&machine()).is_ok());
    let mut corrected = profile();
    let correction = Bias { makes: vec![vec![0.25; 5], vec![0.5; 5]], weights: vec![1.5, -0.5] };
    corrected.fits.values_mut().for_each(|fit| fit.correction = correction.clone());
    let text = corrected.to_json().unwrap();
    assert_eq!(Profile::from_json(&text).unwrap(), corrected);
    assert!(Profile::from_json(&text.replacen("\"read_calls\"\n", "\"read_bytes\"\n", 1)).is_err());
    let some = some_guessed();
    assert_eq!(Profile::from_json(&some.to_json().unwrap()).unwrap(), some);
    let mut unknown = profile();
    unknown.fits.values_mut().for_each(|fit| fit.interval = Interval::default());
    let read = Profile::from_json(&unknown.to_json().unwrap()).unwrap();
    assert!(read.fits.values().all(|fit| fit.interval.factor.is_infinite()));
}

#[test]
fn profiles_of_other_versions_and_machines_are_refused() {
    let text = profile().to_json().unwrap();
    let newer = text.replace("\"hyperslab_profile\": 4", "\"hyperslab_profile\": 5");
    let error = Profile::from_json(&newer).unwrap_err().to_string();
    assert!(error.contains("version 5") && error.contains("this build reads 2 to 4"), "{error}");
    for other in [
        MachineFacts { processors: 8, ..machine() },
        MachineFacts { processor: "another".into(), ..machine() },
        MachineFacts { file_system: "lustre".into(), ..machine() },
    ] {
        let error = profile().check_machine(&other).unwrap_err().to_string();
        assert!(error.contains("another machine"), "{error}");
    }
    // More memory does not change what a call costs.
    assert!(profile().check_machine(&MachineFacts { memory: 1, ..machine() }).is_ok());
}

#[test]
fn damaged_profiles_are_refused() {
    let text = profile().to_json().unwrap();
    for (from, to) in [
        ("read_calls", "read_cells"),
        ("2e-6", "-1"),
        ("1.5", "0.5"),
        ("\"write\": 2.0", "\"write\": 0.0"),
        ("\"create\": 0.125", "\"create\": -0.125"),
        ("\"open\"", "\"oven\""),
        ("\"processes\"", "\"people\""),
        ("\"missing\"", "\"absent\""),
        ("{", "["),
    ] {
        assert!(text.contains(from), "{from}");
        assert!(Profile::from_json(&text.replacen(from, to, 1)).is_err(), "{from} -> {to}");
    }
    assert!(Profile::from_json("").is_err());
}

#[test]
fn predictions_add_up() {
    let shape = [1 << 20];
    let all = Selection::all(&shape).unwrap();
    let found = predicted(&Transfers::making(Datatype::F32, &shape).write(all.clone()).read(all), "posix");
    let (write, read) = (4e-6 + 3e-10 * 4_194_304.0, 2e-6 + 1e-10 * 4_194_304.0);
    assert!((found.seconds - write - read).abs() < 1e-12, "{found:?}");
    assert!((found.parts[&Part::StorageWrite] - write).abs() < 1e-12);
    assert!((found.parts[&Part::StorageRead] - read).abs() < 1e-12);
    assert!((found.high / found.seconds - 1.5).abs() < 1e-9 && (found.seconds / found.low - 1.5).abs() < 1e-9);
}

#[test]
fn ranks_share_what_there_is() {
    let shape = [4 << 20];
    let mut writes = Transfers::making(Datatype::F32, &shape);
    for rank in 0..4 {
        writes = writes.write_by(rank as usize, Selection::dense(&[rank << 20], &[1 << 20]).unwrap());
    }
    let one = 4e-6 + 3e-10 * 4_194_304.0;
    // Two at a time on raw files; one at a time inside libhdf5.
    assert!((predicted(&writes, "posix").seconds - 2.0 * one).abs() < 1e-9);
    let hdf5 = predicted(&writes, "hdf5").seconds;
    assert!((hdf5 - 4.0 * one).abs() < 1e-9, "{hdf5}");
    // Processes have a libhdf5 each: four write as much as 1.6 threads alone, and take a quarter of a second longer to make a
    // file, and an array.
    let found = predicted_under(&writes, "hdf5", PROCESSES);
    assert!((found.seconds - 2.0 * 0.25 - 4.0 * one / 1.6).abs() < 1e-9 && !found.unknown_ranks, "{found:?}");
    // Of processes on raw files nothing is known.
    let found = predicted_under(&writes, "posix", PROCESSES);
    assert!((found.seconds - 2.0 * one).abs() < 1e-9 && found.unknown_ranks, "{found:?}");
}

#[test]
fn reading_and_writing_saturate_apart() {
    let shape = [6 << 20];
    let part = |rank: u64| Selection::dense(&[rank << 20], &[1 << 20]).unwrap();
    let mut both = Transfers::making(Datatype::F32, &shape);
    for rank in 0..6 {
        both = both.write_by(rank as usize, part(rank)).read_by(rank as usize, part(rank));
    }
    let (write, read) = (4e-6 + 3e-10 * 4_194_304.0, 2e-6 + 1e-10 * 4_194_304.0);
    let found = predicted(&both, "posix");
    assert!((found.seconds - 3.0 * write - 2.0 * read).abs() < 1e-9, "{found:?}");
}

/// The profile, with ordinary values in place of what reading takes.
fn some_guessed() -> Profile {
    let mut profile = profile();
    let reading: Vec<usize> = (0..Count::ALL.len()).filter(|&place| default_coefficients()[place] > 0.0).collect();
    for fit in profile.fits.values_mut() {
        fit.coefficients[..Count::ALL.len()].copy_from_slice(&default_coefficients()[..Count::ALL.len()]);
        fit.guessed = reading.clone();
        // Two runs that write, made of three things.
        let make = |parts: [f64; 3]| [vec![0.0; reading.len()], parts.to_vec()].concat();
        fit.correction = Bias { makes: vec![make([0.25; 3]), make([0.5; 3])], weights: vec![1.5, -0.5] };
    }
    profile
}

#[test]
fn what_was_not_measured_is_told_and_less_sure() {
    let all = Selection::all(&[1 << 20]).unwrap();
    let transfers = Transfers::making(Datatype::F32, &[1 << 20]).write(all.clone()).read(all);
    let configuration = hyperslab::configuration(&"posix".parse().unwrap()).unwrap();
    let costs = count(&transfers.workload(), &configuration).unwrap();
    let mut profile = some_guessed();
    profile.fits.values_mut().for_each(|fit| fit.correction = Bias::default());
    let found = predict(&costs, configuration.class(), &profile, THREADS).unwrap();
    let guesses: f64 = found.guessed.values().sum();
    assert!(found.guessed[&Count::ReadBytes] > 4e-4 && !found.guessed.contains_key(&Count::WriteBytes), "{found:?}");
    assert!((found.seconds - guesses - (4e-6 + 3e-10 * 4_194_304.0)).abs() < 1e-12, "{found:?}");
    let high = 1.5 * (found.seconds - guesses) + 1.5 * 4.0 * guesses;
    assert!((found.high - high).abs() < 1e-9 && found.low < found.seconds / 1.5, "{found:?}");
}

#[test]
fn profiles_of_version_3_are_read() {
    let mut text: serde_json::Value = serde_json::from_str(&profile().to_json().unwrap()).unwrap();
    text["hyperslab_profile"] = 3.into();
    for fit in text["formats"].as_array_mut().unwrap() {
        for direction in ["read", "write"] {
            fit[direction].as_object_mut().unwrap().retain(|_, seconds| seconds.as_f64() > Some(0.0));
        }
    }
    assert_eq!(Profile::from_json(&text.to_string()).unwrap(), profile(), "what was absent takes no time");
}

#[test]
fn profiles_of_version_2_are_read() {
    let mut text: serde_json::Value = serde_json::from_str(&profile().to_json().unwrap()).unwrap();
    let keys = text.as_object_mut().unwrap();
    keys.insert("hyperslab_profile".into(), 2.into());
    keys.remove("ranks");
    keys.insert("servers".into(), serde_json::json!({"posix": 2.5}));
    let read = Profile::from_json(&text.to_string()).unwrap();
    let posix = sharing(&[(1, 0.0, 1.0, 1.0), (3, 0.0, 2.5, 2.5)]);
    assert_eq!(read.sharing, [((Class::Posix, RankKind::Threads), posix)].into());
    assert_eq!(read.fits, profile().fits);
    text["servers"]["posix"] = 0.0.into();
    assert!(Profile::from_json(&text.to_string()).is_err());
}

#[test]
fn what_a_profile_does_not_know_is_said() {
    let shape = [8];
    let writes = Transfers::making(Datatype::F32, &shape).write(Selection::all(&shape).unwrap());
    let configuration = hyperslab::configuration(&"zarr".parse().unwrap()).unwrap();
    let costs = count(&writes.workload(), &configuration).unwrap();
    let error = predict(&costs, configuration.class(), &profile(), THREADS).unwrap_err();
    assert!(error.to_string().contains("knows nothing of warm zarr"), "{error}");
}
