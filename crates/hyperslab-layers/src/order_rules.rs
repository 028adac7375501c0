//! Rules for the order of layers in a stack. Layers do not know each other, so that the rules are here, by name.

use crate::layers;
use hyperslab_core::{Error, Result, Stack, StackElement};

/// Layers that buffer writes: a rank reads its own writes before others can.
const HOLDING_BACK: &[&str] = &["async", "auto", "cache", "log", "loglayout"];
/// Layers that `auto` contains, or that are equivalent to it.
const LIKE_AUTO: &[&str] = &["async", "cache", "log"];

/// Refuses stacks whose layers make no sense in this order. Ignores unknown layers, which [`crate::build`] refuses.
pub fn check_order(stack: &Stack) -> Result<()> {
    let names: Vec<&str> = stack.layers.iter().map(|layer| layer.name.as_str()).collect();
    let known = |name: &&str| layers().iter().any(|entry| entry.name == *name);
    match names.iter().all(known) {
        true => check(&names).and_then(|()| check_staging(stack)).map_err(|error| error.target(stack)),
        false => Ok(()),
    }
}

/// Layers that complete logged writes once the layer below has them need one below that survives a crash.
fn check_staging(stack: &Stack) -> Result<()> {
    let by_option = |layer: &StackElement| ["auto", "cache"].contains(&&*layer.name) && layer.get("dir").is_some();
    let stages = |layer: &StackElement| layer.name == "log" || by_option(layer);
    let below = stack.layers.iter().skip_while(|layer| !stages(layer));
    match below.clone().find(|layer| layer.name == "loglayout").and_then(|_| below.clone().next()) {
        None => Ok(()),
        Some(upper) => Err(refuse(format!(
            "{} takes a write out of its log when the layer below has it, and loglayout makes it findable only by a flush \
             that all ranks make together: a crash in between would lose it",
            upper.name
        ))
        .hint(format!("put loglayout above {}", upper.name))),
    }
}

/// Checks layer names, outermost first.
fn check(names: &[&str]) -> Result<()> {
    for (at, upper) in names.iter().enumerate() {
        let below = &names[at + 1..];
        if below.contains(upper) {
            return Err(refuse(format!("{upper} is there twice")).hint("leave one of them out"));
        }
        if let ("slow", [lower, ..]) = (*upper, below) {
            return Err(refuse(format!("slow stands for the storage, so {lower} cannot lie below it"))
                .hint("put slow last, next to the format"));
        }
        if *upper == "async" && below.contains(&"cache") {
            return Err(refuse(
                "cache stages writes and reads ahead by itself, so async above it would only copy once more",
            )
            .hint("leave async out"));
        }
        if let ("async" | "cache", true) = (*upper, below.contains(&"log")) {
            return Err(refuse(format!(
                "log takes writes at the speed of its storage and moves them in the background, so {upper} above it would \
                 only copy once more, and a crash would lose what has not reached the log"
            ))
            .hint(format!("leave {upper} out, or put it below log")));
        }
        let beside = |other: &&&str| LIKE_AUTO.contains(*other) && (*upper == "auto" || below.contains(&"auto"));
        if let Some(other) = names[at..].iter().find(beside) {
            return Err(refuse(format!(
                "auto chooses between waiting, async and log by itself, so {other} cannot be beside it"
            ))
            .hint(format!("leave {other} out, or auto")));
        }
        if let ("twophase", Some(lower)) = (*upper, below.iter().find(|lower| HOLDING_BACK.contains(lower))) {
            return Err(refuse(format!(
                "in twophase other ranks write for a rank, and {lower} below would hold such data back where their owner \
                 cannot read them"
            ))
            .hint(format!("put {lower} above twophase")));
        }
    }
    Ok(())
}

fn refuse(message: impl Into<String>) -> Error {
    Error::invalid("choose stack", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_core::ErrorKind;

    #[test]
    fn orders_that_make_no_sense_are_refused_with_the_reason() {
        for (names, reason) in [
            (&["twophase", "twophase"][..], "twophase is there twice"),
            (&["trace", "async", "trace"], "trace is there twice"),
            (&["slow", "twophase"], "twophase cannot lie below it"),
            (&["async", "slow", "trace"], "trace cannot lie below it"),
            (&["async", "cache"], "ahead by itself"),
            (&["async", "cache", "twophase", "slow"], "ahead by itself"),
            (&["twophase", "async"], "hold such data back"),
            (&["twophase", "log"], "hold such data back"),
            (&["async", "log"], "lose what has not reached"),
            (&["cache", "trace", "log"], "put it below log"),
            (&["twophase", "trace", "cache", "slow"], "cache below"),
            (&["twophase", "loglayout"], "loglayout below"),
            (&["loglayout", "async", "loglayout"], "loglayout is there twice"),
            (&["auto", "async"], "async cannot be beside it"),
            (&["cache", "trace", "auto"], "cache cannot be beside it"),
            (&["auto", "trace", "log"], "log cannot be beside it"),
            (&["twophase", "auto"], "auto below"),
        ] {
            let error = check(names).unwrap_err();
            assert!(error.to_string().contains(reason) && error.what_to_try().is_some(), "{names:?}: {error}");
        }
        for names in [
            &[][..],
            &["slow"],
            &["async", "slow"],
            &["cache", "async"],
            &["trace", "async", "twophase", "slow"],
            &["async", "trace"],
            &["cache", "trace", "slow"],
            &["cache", "twophase"],
            &["trace", "log", "cache", "slow"],
            &["log", "twophase"],
            &["loglayout", "twophase", "slow"],
            &["loglayout", "async", "trace"],
            &["cache", "loglayout"],
            &["trace", "auto", "twophase", "slow"],
            &["loglayout", "auto"],
        ] {
            assert!(check(names).is_ok(), "{names:?}");
        }
    }

    #[test]
    fn unknown_layers_are_left_to_others() {
        let check = |text: &str| check_order(&text.parse().unwrap());
        assert!(check("nonsense/nonsense/posix").is_ok());
        for text in
            ["log(dir=x)/loglayout/posix", "auto(dir=x)/loglayout/posix", "trace/cache(dir=x)/async/loglayout/posix"]
        {
            assert!(check(text).unwrap_err().to_string().contains("put loglayout above"), "{text}");
        }
        for text in ["cache/loglayout/posix", "loglayout/log(dir=x)/posix", "loglayout/cache(dir=x)/posix"] {
            assert!(check(text).is_ok(), "{text}");
        }
        let error = check("slow(1MB/s)/twophase/posix").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("slow(1MB/s)/twophase/posix"), "{error}");
    }
}
