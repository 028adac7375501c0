//! How fast this machine copies in memory, and whether that is what it did when a profile was measured.

use anyhow::Result;
use hyperslab_core::units::display_size;
use hyperslab_core::{PageBuffer, memcpy_rate};
use hyperslab_model::Profile;
use std::time::{SystemTime, UNIX_EPOCH};

const BYTES: usize = 128 << 20;
const TIMES: usize = 5;
/// Rates differ from run to run; so much is another machine, or one that others use too.
const DIFFERENT: f64 = 1.4;

/// Bytes in a second of a copy from memory to memory that no cache of a processor holds: the best of a few.
pub fn rate() -> Result<f64> {
    let (mut from, mut to) = (PageBuffer::new(BYTES)?, PageBuffer::new(BYTES)?);
    from.fill(1);
    to.fill(2);
    Ok(memcpy_rate(&from, &mut to, TIMES))
}

/// What to say of a profile if the machine is faster or slower than it was.
pub fn difference(profile: &Profile) -> Option<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    words(profile.copy_rate?, rate().ok()?, now - profile.measured)
}

fn words(before: f64, now: f64, age: f64) -> Option<String> {
    let times = now / before;
    if (1.0 / DIFFERENT..=DIFFERENT).contains(&times) {
        return None;
    }
    let (faster, times) = if times > 1.0 { ("faster", times) } else { ("slower", 1.0 / times) };
    let days = match (age / 86400.0).round() {
        0.0 => "today".to_owned(),
        1.0 => "a day ago".to_owned(),
        days => format!("{days} days ago"),
    };
    Some(format!(
        "this machine copies {} in a second, {times:.1} times {faster} than when the profile was measured ({days}); predictions \
         may be wrong by as much. If that stays so, run hyperslab train again",
        display_size(now as u64)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_large_difference_is_worth_a_word() {
        assert_eq!(words(10e9, 8e9, 0.0), None);
        assert_eq!(words(10e9, 13e9, 0.0), None);
        let slower = words(10e9, 5e9, 3.0 * 86400.0).unwrap();
        assert!(slower.contains("2.0 times slower") && slower.contains("3 days ago"), "{slower}");
        assert!(
            words(5e9, 10e9, 60.0).unwrap().contains("2.0 times faster than when the profile was measured (today)")
        );
    }
}
